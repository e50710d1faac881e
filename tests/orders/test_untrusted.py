"""Libraries that others could have written are not executed, and loaded copies are private."""

from __future__ import annotations

import ctypes
import functools
import os
import stat
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.orders.here import require
from vkdispatch.base.compilation import disk_cache
from vkdispatch.orders import Accel, Order, library

SOMEBODY = 54321


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    require("cpp")
    monkeypatch.setenv("VKDISPATCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(library, "_loaded", {})


def _run(value: int) -> int:
    result = np.zeros(1)
    with Accel(Order(f"[cpp]\naccelpy_out0(0) = {value};\n"), result) as accel:
        accel.run()
    return int(result[0])


@functools.cache
def _plant_library() -> tuple[str, bytes]:
    """Return the key of the library for the order of 4, and the contents of that for 666."""
    made: list[tuple[str, bytes]] = []
    with pytest.MonkeyPatch.context() as context:
        context.setattr(library, "_loaded", {})
        context.setattr(disk_cache, "load", lambda *_: None)
        context.setattr(disk_cache, "store", lambda _, key, data: made.append((key, data)))
        assert _run(4) == 4
        key = made[-1][0]
        assert _run(666) == 666
    assert made[-1][1].startswith(b"\x7fELF")
    return key, made[-1][1]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="libraries are of another format here")
@pytest.mark.parametrize("what", ["nothing", "root", "kind", "file", "user", "owner", "link"])
def test_a_planted_library(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(disk_cache, "_warned", False)
    key, content = _plant_library()
    disk_cache.store("orders", key, content)
    root = tmp_path / "cache"
    (entry,) = (root / "orders").iterdir()
    change: dict[str, Callable[[], object]] = {
        "nothing": lambda: None,
        "root": lambda: root.chmod(0o777),
        "kind": lambda: (root / "orders").chmod(0o777),
        "file": lambda: entry.chmod(0o666),
        "user": lambda: monkeypatch.setattr(os, "geteuid", lambda: SOMEBODY),
        "owner": lambda: os.chown(entry, SOMEBODY, SOMEBODY),
        "link": lambda: (entry.rename(tmp_path / "theirs"), entry.symlink_to(tmp_path / "theirs")),
    }
    if what == "owner" and os.geteuid() != 0:
        pytest.skip("only the superuser gives files away")
    change[what]()
    # In a private folder the planted library is executed, which shows that it is effective.
    assert _run(4) == (666 if what == "nothing" else 4)
    said = capsys.readouterr().out
    assert said.count("[WARNING ") == (0 if what in ("nothing", "link") else 1)


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="no files in memory here")
def test_libraries_are_loaded_from_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    paths: list[str] = []
    load = ctypes.CDLL

    def spy(path: str) -> ctypes.CDLL:
        paths.append(path)
        # as another process of the user would load it
        assert str(Path(path).readlink()).startswith("/memfd:vkdispatch-order-")
        return load(path)

    monkeypatch.setattr(ctypes, "CDLL", spy)
    before = len(list(Path("/proc/self/fd").iterdir()))
    # The loader takes a known path for the same library, and file descriptors are reused.
    assert [_run(value) for value in (71, 72, 73, 71)] == [71, 72, 73, 71]
    assert len(set(paths)) == len(paths) == 3
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    # also from the cache
    monkeypatch.setattr(library, "_loaded", {})
    assert [_run(value) for value in (73, 72, 71)] == [73, 72, 71]
    assert len(set(paths)) == len(paths) == 6


@pytest.mark.parametrize("why", ["missing", "refused", "not to be executed"])
def test_libraries_are_loaded_from_a_folder(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folders: list[tuple[int, int]] = []
    load = ctypes.CDLL

    def spy(path: str) -> ctypes.CDLL:
        if path.startswith("/proc/"):
            raise OSError("failed to map segment from shared object")
        status = Path(path).parent.stat()
        folders.append((stat.S_IMODE(status.st_mode), status.st_uid))
        return load(path)

    def refuse(*_: object) -> int:
        raise PermissionError("no")

    monkeypatch.setattr(ctypes, "CDLL", spy)
    if why == "missing":
        monkeypatch.delattr(os, "memfd_create", raising=False)
    elif why == "refused":
        monkeypatch.setattr(os, "memfd_create", refuse, raising=False)
    assert [_run(value) for value in (81, 82)] == [81, 82]
    assert folders == [(0o700, os.geteuid())] * 2
