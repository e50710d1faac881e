"""Another project's package of the same name in the same folder: what users of either see."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import vkdispatch as vd
from vkdispatch.installation import DISTRIBUTION, is_ours, write_repair

RunPython = Callable[..., subprocess.CompletedProcess[str]]

PACKAGE = Path(vd.__file__).parent
REPAIR = "pip uninstall -y vkdispatch vkdispatch-core vkdispatch-gpu && pip install vkdispatch-gpu"
COMMAND = "from vkdispatch.command import main; main()"


def add_distribution(site: Path, name: str, version: str, tops: str) -> None:
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (folder / "top_level.txt").write_text(tops)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Make a folder of packages with this project's in it, as far as the other project's files are absent."""
    folder = tmp_path / "site"
    for name in ("installation.py", "command.py", "numpy/__init__.py", "kompute/__init__.py"):
        (folder / "vkdispatch" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PACKAGE / name, folder / "vkdispatch" / name)
    add_distribution(folder, DISTRIBUTION, "1.0.0", "vkdispatch\nvkdispatch_native\n")
    return folder


def add_others(site: Path) -> None:
    add_distribution(site, "vkdispatch", "0.1.0", "\n")
    add_distribution(site, "vkdispatch-core", "0.1.0", "vkdispatch\n")
    (site / "vkdispatch" / "base").mkdir()
    (site / "vkdispatch" / "base" / "buffer_allocators.py").touch()


@pytest.fixture
def python(run_python: RunPython, site: Path) -> RunPython:
    def run(code: str) -> subprocess.CompletedProcess[str]:
        return run_python(f"import sys; sys.path.insert(0, {str(site)!r})\n{code}")

    return run


def test_import_refuses_mixed_files(site: Path, python: RunPython) -> None:
    shutil.copy(PACKAGE / "__init__.py", site / "vkdispatch")
    add_others(site)
    done = python("import vkdispatch")
    assert done.returncode == 1
    said = done.stderr[done.stderr.index("ImportError: ") :]
    assert "vkdispatch-gpu 1.0.0 and another project's" in said
    assert "vkdispatch 0.1.0" in said and "vkdispatch-core 0.1.0" in said
    assert str(site / "vkdispatch") in said and REPAIR in said


@pytest.mark.parametrize("code", [COMMAND, "import vkdispatch.numpy", "import vkdispatch.kompute"])
def test_what_is_left_of_this_project_refuses_the_others_package(
    site: Path, python: RunPython, code: str
) -> None:
    (site / "vkdispatch" / "__init__.py").write_text("name = 'theirs'")
    add_others(site)
    done = python(code)
    assert done.returncode == 1
    assert "another project's" in done.stderr and REPAIR in done.stderr
    assert ("Traceback" in done.stderr) == (code != COMMAND)


def test_files_that_the_others_uninstallation_deleted_are_missed(site: Path, run_python: RunPython) -> None:
    # without the packages of this environment: another whole vkdispatch would be found instead
    done = run_python(None, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(site)!r})\n{COMMAND}")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "Files of vkdispatch-gpu 1.0.0 are missing" in done.stderr
    assert "pip uninstall -y vkdispatch-gpu && pip install vkdispatch-gpu" in done.stderr


def test_the_others_native_module_is_refused(run_python: RunPython, tmp_path: Path) -> None:
    (tmp_path / "vkdispatch_native.py").touch()
    add_distribution(tmp_path, "vkdispatch", "0.0.28", "vkdispatch\nvkdispatch_native\n")
    done = run_python(
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nimport vkdispatch as vd; vd.Buffer"
    )
    assert done.returncode == 1
    assert "ImportError" in done.stderr and "vkdispatch 0.0.28" in done.stderr
    assert "&& pip install vkdispatch-gpu" in done.stderr


def test_names_of_distributions() -> None:
    assert is_ours("vkdispatch-gpu") and is_ours("vkdispatch_gpu") and not is_ours("vkdispatch")
    assert write_repair(["vkdispatch_gpu", "vkdispatch-core", "vkdispatch", "vkdispatch"]) == REPAIR
