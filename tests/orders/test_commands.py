"""`python -m vkdispatch.orders config` and `cache`, and the folder that libraries are kept in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from tests.orders.here import missing, require
from vkdispatch.base.compilation import disk_cache
from vkdispatch.orders import Accel, Order, command_line, compilers, library
from vkdispatch.orders.models import TABLE


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start with empty settings, caches and process state."""
    monkeypatch.delenv("VKDISPATCH_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    monkeypatch.setattr(disk_cache, "_roots", {})
    _forget(monkeypatch)


def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_loaded", {})
    monkeypatch.setattr(library, "_tested", set())


def _call(*words: str) -> Result:
    return CliRunner().invoke(command_line.main, words)


def _said(*words: str) -> str:
    result = _call(*words)
    assert result.exit_code == 0, result.output
    return result.output


def _run(value: int) -> int:
    result = np.zeros(1)
    with Accel(Order(f"[cpp]\naccelpy_out0(0) = {value};\n"), result) as accel:
        accel.run()
    return int(result[0])


def test_config_shows_compilers_and_the_folder(tmp_path: Path) -> None:
    said = _said("config")
    assert f"libraries: {tmp_path}/cache/vkdispatch/orders (in the disk cache)\n" in said
    lines = {line.split()[0]: line for line in said.split("compilers:\n")[1].splitlines()}
    assert set(lines) == set(TABLE)
    for model, line in lines.items():
        lack = missing(model)
        if model in ("glsl", "vkdispatch"):
            assert line.endswith("needs none")
        elif lack:
            assert "no compiler found" in line or lack in line
        elif model.endswith("cpp"):
            assert "/g++: g++ (" in line or "/nvc++: " in line


def test_config_sets_the_folder_of_libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require("cpp")
    assert _run(4) == 4
    in_cache = disk_cache.entries()["orders"].count
    assert in_cache >= 2
    chosen = tmp_path / "mine" / "libraries"
    assert f"libraries: {chosen} (set by config)\n" in _said("config", "--libdir", str(chosen))
    assert f"libraries: {chosen} (set by config)\n" in _said("config")
    assert chosen.stat().st_mode & 0o777 == 0o700
    _forget(monkeypatch)
    assert _run(5) == 5
    assert disk_cache.entries()["orders"].count == in_cache
    assert len(list(chosen.iterdir())) >= 2
    # stored libraries are not compiled again, unless they are damaged
    _forget(monkeypatch)
    with monkeypatch.context() as context:
        context.setattr(compilers, "compile_library", None)
        assert _run(5) == 5
    for path in chosen.iterdir():
        path.write_bytes(path.read_bytes()[:-7])
    _forget(monkeypatch)
    assert _run(5) == 5
    # another process uses the setting; the environment has precedence
    script = "from vkdispatch.orders import compilers; print(compilers.find_folder())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == f"{chosen}\n"
    monkeypatch.setenv("VKDISPATCH_CACHE", str(tmp_path / "other"))
    assert f"libraries: {tmp_path}/other/orders (named by VKDISPATCH_CACHE)\n" in _said("config")
    monkeypatch.setenv("VKDISPATCH_CACHE", "off")
    assert "libraries: not stored (VKDISPATCH_CACHE)\n" in _said("config")
    assert "stored: 0 files, 0 bytes\ndeleted: 0 files\n" in _said("cache", "--clear-all")
    monkeypatch.delenv("VKDISPATCH_CACHE")
    # accelpy's --dir uses a subfolder; --default returns to the cache
    folder = tmp_path / "accelpy"
    assert f"libraries: {folder}/lib (set by config)\n" in _said("config", "-d", str(folder))
    assert "(in the disk cache)\n" in _said("config", "--default")


def test_a_folder_writable_by_others_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    require("cpp")
    chosen = tmp_path / "libraries"
    _said("config", "-l", str(chosen))
    assert _run(6) == 6
    chosen.chmod(0o777)
    _forget(monkeypatch)
    compilers._warn.cache_clear()
    with monkeypatch.context() as context:
        compiled = []
        compile_library = compilers.compile_library
        context.setattr(
            compilers, "compile_library", lambda *args: compiled.append(1) or compile_library(*args)
        )
        assert _run(6) == 6
    assert compiled
    assert capsys.readouterr().out.count("other users may write to") == 1
    refused = _call("cache", "-a")
    assert refused.exit_code == 1
    assert "Error: " in refused.output
    assert "other users may write to" in refused.output
    refused = _call("config", "-l", str(chosen))
    assert refused.exit_code == 1
    # settings that others could have written are ignored
    chosen.chmod(0o700)
    assert "(set by config)" in _said("config")
    (tmp_path / "settings" / "vkdispatch").chmod(0o777)
    assert "(in the disk cache)" in _said("config")


@pytest.mark.parametrize("place", ["cache", "set"])
def test_cache_shows_and_clears_the_folder(place: str, tmp_path: Path) -> None:
    require("cpp")
    folder = tmp_path / "cache" / "vkdispatch" / "orders"
    if place == "set":
        folder = tmp_path / "libraries"
        _said("config", "-l", str(folder))
    assert "stored: 0 files, 0 bytes\n" in _said("cache")
    assert _run(7) == 7
    files = list(folder.iterdir())
    (folder / "mine.txt").write_text("this stays")
    (folder / "half-written.vkd~").write_text("this does not")
    disk_cache.store("other", "key", b"this stays")
    size = sum(path.stat().st_size for path in files)
    said = _said("cache")
    assert f"libraries: {folder} (" in said
    assert f"stored: {len(files)} files, {size:,} bytes\n" in said
    assert f"deleted: {len(files)} files\n" in _said("cache", "--clear-all")
    assert [path.name for path in folder.iterdir()] == ["mine.txt"]
    assert disk_cache.load("other", "key") == b"this stays"
    assert "stored: 0 files, 0 bytes\n" in _said("cache")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("config", "-d", "a", "-l", "b"), "exclude one another"),
        (("config", "-l", ""), "libdir: expected the path of a folder"),
        (("config", "-d", ""), "--dir: expected the path of a folder"),
        (("config", "-l", "/dev/null/folder"), "Not a directory"),
        (("cashe",), "No such command 'cashe'"),
    ],
)
def test_invalid_arguments_of_commands(words: tuple[str, ...], said: str) -> None:
    result = _call(*words)
    assert result.exit_code != 0
    assert said in result.output
    assert "Traceback" not in result.output


def test_the_module_runs_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "vkdispatch.orders", "cache"], capture_output=True, text=True, check=True
    )
    assert "stored: 0 files, 0 bytes" in done.stdout
