"""The bill of materials names what is linked into the module, as CycloneDX wants it."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import fetch_deps
import pytest
import sbom

ROOT = Path(__file__).parents[2]
HASH_LENGTHS = {"SHA-256": 64}
LICENSE = r"[A-Za-z0-9.-]+( WITH [A-Za-z0-9.-]+)?"

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="libstdc++ is found through the compiler")


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "vkdispatch_native.abi3.so"
    path.write_bytes(b"a module")
    return path


@pytest.fixture
def document(module: Path) -> dict[str, Any]:
    """Give the document of a build from pinned files alone, as it is read again."""
    found = sbom.document(ROOT, module, dict.fromkeys(fetch_deps.read_lock()))
    return json.loads(sbom.as_json(found))


def by_name(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {component["name"]: component for component in document["components"]}


def test_the_document_is_what_the_specification_wants(document: dict[str, Any]) -> None:
    assert document["bomFormat"] == "CycloneDX"
    assert document["specVersion"] == "1.6"
    assert document["version"] == 1
    uuid = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    assert re.fullmatch(f"urn:uuid:{uuid}", document["serialNumber"])
    components = [document["metadata"]["component"], *document["components"]]
    for component in components:
        assert component["type"] == "library"
        assert component["name"]
        assert component["version"]
        ((kind, expression),) = component["licenses"][0].items()
        assert kind == "expression"
        assert all(re.fullmatch(LICENSE, part) for part in re.split(" (?:AND|OR) ", expression))
        for digest in hashes_of(component):
            assert re.fullmatch("[0-9a-f]+", digest["content"])
            assert len(digest["content"]) == HASH_LENGTHS[digest["alg"]]
        for reference in component.get("externalReferences", []):
            assert reference["type"] in {"vcs", "distribution"}
            assert re.fullmatch(r"https://[^\s+]+", reference["url"])
        if "purl" in component:
            assert re.fullmatch(r"pkg:[a-z]+/[^\s+@]+@[^\s+@/]+", component["purl"])
    names = [component["bom-ref"] for component in components]
    assert len(set(names)) == len(names)
    assert sorted(entry["ref"] for entry in document["dependencies"]) == sorted(names)
    assert all(name in names for entry in document["dependencies"] for name in entry["dependsOn"])


def hashes_of(component: dict[str, Any]) -> list[dict[str, str]]:
    held = [component, *component.get("externalReferences", [])]
    return [digest for each in held for digest in each.get("hashes", [])]


def test_each_pinned_package_is_in_it(document: dict[str, Any]) -> None:
    locked = json.loads((ROOT / "deps" / "deps.lock.json").read_text())["packages"]
    found = by_name(document)
    for entry in locked:
        component = found[entry["name"]]
        assert component["version"] == entry["version"]
        assert component["licenses"] == [{"expression": entry["license"]}]
        assert component["hashes"] == [{"alg": "SHA-256", "content": entry["sha256"]}]
        urls = {reference["type"]: reference["url"] for reference in component["externalReferences"]}
        assert urls["vcs"] == entry["source"]
        assert urls["distribution"].endswith(entry["path"].replace("+", "%2B"))
    assert found["glslang"]["purl"] == "pkg:github/khronosgroup/glslang@15.1.0%2B1.4.309"
    assert set(found) == {entry["name"] for entry in locked} | {"vkdispatch_native", "libstdc++"}


def test_the_module_is_in_it(document: dict[str, Any]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    whole = document["metadata"]["component"]
    assert whole["purl"] == f"pkg:pypi/vkdispatch-gpu@{project['version']}"
    native = by_name(document)["vkdispatch_native"]
    digest = hashlib.sha256(b"a module").hexdigest()
    assert native["hashes"] == [{"alg": "SHA-256", "content": digest}]
    needs = {entry["ref"]: entry["dependsOn"] for entry in document["dependencies"]}
    assert needs[whole["bom-ref"]] == [native["bom-ref"]]
    others = [each["bom-ref"] for each in document["components"] if each is not native]
    assert needs[native["bom-ref"]] == others


def test_an_installed_package_is_named_as_it_is(module: Path) -> None:
    packages: dict[fetch_deps.Package, fetch_deps.Found | None] = dict.fromkeys(fetch_deps.read_lock())
    volk = next(package for package in packages if package.name == "volk")
    packages[volk] = fetch_deps.Found(volk, Path("/usr"), (1, 3, 204))
    component = by_name(sbom.document(ROOT, module, packages))["volk"]
    assert component["version"] == "1.3.204"
    assert component["purl"] == "pkg:github/zeux/volk@1.3.204"
    assert not hashes_of(component)  # those of the lock file are of another file


def test_the_same_build_has_the_same_document(module: Path, document: dict[str, Any]) -> None:
    packages = dict.fromkeys(fetch_deps.read_lock())
    assert sbom.document(ROOT, module, packages) == document
    module.write_bytes(b"another module")
    other = sbom.document(ROOT, module, packages)
    assert other["serialNumber"] != document["serialNumber"]
    first, *rest = packages
    changed = dict.fromkeys([replace(first, version="9"), *rest])
    assert sbom.document(ROOT, module, changed)["serialNumber"] != other["serialNumber"]
