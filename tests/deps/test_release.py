"""What a release says of itself, in each of its files: its version, name, requirements and commands."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

import vkdispatch as vd
from vkdispatch.installation import DISTRIBUTION

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
yaml = pytest.importorskip("yaml")


def read_yaml(path: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / path).read_text())
    return found


def test_files_name_one_version() -> None:
    released = re.findall(r"^## \[(\d.*?)\] - (\d{4}-\d\d-\d\d)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    newest, date = released[0]
    citation = read_yaml("CITATION.cff")
    shown = re.search(
        r"vkdispatch doctor\n +vkdispatch (\S+)", (ROOT / "docs/help/troubleshooting.rst").read_text()
    )
    assert PROJECT["version"] == vd.__version__ == newest == citation["version"]
    assert str(citation["date-released"]) == date
    assert read_yaml("packaging/conda/recipe.yaml")["context"]["version"] == newest
    assert shown is not None and shown.group(1) == newest


def test_versions_fall_in_the_changelog() -> None:
    versions = re.findall(r"^## \[(\d.*?)\]", (ROOT / "CHANGELOG.md").read_text(), re.M)
    order = [tuple(map(int, version.split("."))) for version in versions]
    assert order == sorted(set(order), reverse=True)


def test_the_recipe_has_the_requirements_and_commands_of_the_project() -> None:
    recipe = read_yaml("packaging/conda/recipe.yaml")
    assert recipe["package"]["name"] == PROJECT["name"] == DISTRIBUTION
    needed = {line.replace(" ", "") for line in recipe["requirements"]["run"]}
    wanted = {*PROJECT["dependencies"], f"python{PROJECT['requires-python']}", "libvulkan-loader"}
    assert needed == wanted
    commands = {line.replace(" ", "") for line in recipe["build"]["python"]["entry_points"]}
    assert commands == {f"{name}={place}" for name, place in PROJECT["scripts"].items()}
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert {line.replace(" ", "") for line in recipe["requirements"]["host"]} == {*build, "python", "pip"}


def test_extras_that_texts_name_are_extras_of_this_distribution() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("not a clone of the repository")
    found = []
    for name in listed.stdout.split():
        if name.endswith((".py", ".pyi", ".rst", ".md", ".yml", "Dockerfile")):
            text = (ROOT / name).read_text()
            found += [
                (name, *each) for each in re.findall(r"(?<![\w/.-])(vkdispatch[\w-]*)\[([a-z-]+)\]", text)
            ]
    wrong = [
        each for each in found if each[1] != DISTRIBUTION or each[2] not in PROJECT["optional-dependencies"]
    ]
    assert found and not wrong
