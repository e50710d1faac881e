"""The wheel's bill of materials: a CycloneDX document of what is linked into the native module.

It follows from the lock file, the installed packages that were used instead, the compiler and the module, and
is the same for the same build.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import tomllib
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from fetch_deps import Found, Package, compiler

Component = dict[str, Any]
ARCHIVE = "https://deb.debian.org/debian/"  # paths of the lock file are below it, or below any mirror's root
LIBSTDCXX_LICENSE = "GPL-3.0-or-later WITH GCC-exception-3.1"


def document(root: Path, module: Path, packages: Mapping[Package, Found | None]) -> dict[str, Any]:
    """Return the CycloneDX document of the project in `root`, its built `module` and what that is made of."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    whole = {
        **_component(project["name"], project["version"], project["license"]),
        "purl": f"pkg:pypi/{project['name']}@{quote(project['version'], safe='')}",
    }
    native = {
        **_component(module.name.split(".")[0], project["version"], project["license"]),
        "hashes": [_sha256(hashlib.sha256(module.read_bytes()).hexdigest())],
        "properties": [{"name": "vkdispatch:file", "value": module.name}],
    }
    parts = [_of_package(package, found) for package, found in packages.items()] + _standard_library()
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": _serial_number([whole, native, *parts]),
        "version": 1,
        "metadata": {"component": whole},
        "components": [native, *parts],
        "dependencies": [
            {"ref": whole["bom-ref"], "dependsOn": [native["bom-ref"]]},
            {"ref": native["bom-ref"], "dependsOn": [part["bom-ref"] for part in parts]},
            *({"ref": part["bom-ref"], "dependsOn": []} for part in parts),
        ],
    }


def as_json(document: Mapping[str, Any]) -> str:
    """Return the document's text."""
    return json.dumps(document, indent=2) + "\n"


def _component(name: str, version: str, license: str) -> Component:
    return {
        "type": "library",
        "bom-ref": f"{name}@{version}",
        "name": name,
        "version": version,
        "licenses": [{"expression": license}],
    }


def _of_package(package: Package, found: Found | None) -> Component:
    """Return the entry of a dependency; of an installed one, the file that it came from is not known."""
    version = package.version if found is None else ".".join(map(str, found.version))
    references: list[dict[str, Any]] = [{"type": "vcs", "url": package.source}]
    if found is None:
        url = ARCHIVE + quote(package.path, safe="/~")
        references.append({"type": "distribution", "url": url, "hashes": [_sha256(package.sha256)]})
    return {
        **_component(package.name, version, package.license),
        "purl": _purl(package.source, version),
        "externalReferences": references,
        **({"hashes": [_sha256(package.sha256)]} if found is None else {}),
    }


def _purl(source: str, version: str) -> str:
    # Names of this type are written in lower case.
    return f"pkg:github{urlsplit(source).path.lower()}@{quote(version, safe='')}"


def _sha256(digest: str) -> dict[str, str]:
    return {"alg": "SHA-256", "content": digest}


def _serial_number(components: list[Component]) -> str:
    return f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(components, sort_keys=True))}"


def _standard_library() -> list[Component]:
    """Return the entry of libstdc++, which the compiler has; none where it uses another library."""
    said = subprocess.run(
        [*compiler(), "-E", "-dM", "-x", "c++", "-"],
        input="#include <cstddef>\n",
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    release = re.search(r"#define _GLIBCXX_RELEASE (\d+)", said)
    date = re.search(r"#define __GLIBCXX__ (\d+)", said)
    if release is None or date is None:
        return []
    version = f"{release.group(1)}.{date.group(1)}"
    entry = {
        **_component("libstdc++", version, LIBSTDCXX_LICENSE),
        "purl": f"pkg:generic/libstdc%2B%2B@{version}",
        "externalReferences": [{"type": "vcs", "url": "https://gcc.gnu.org/git/gcc.git"}],
    }
    where = [*compiler(), "-print-file-name=libstdc++.a"]
    archive = Path(subprocess.run(where, capture_output=True, text=True, check=True).stdout.strip())
    if archive.is_file():
        entry["hashes"] = [_sha256(hashlib.sha256(archive.read_bytes()).hexdigest())]
    return [entry]
