"""The disk cache: damage, bounds, several processes at once, and processes that are killed."""

from __future__ import annotations

import hashlib
import os
import pwd
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from vkdispatch.base import process as logging
from vkdispatch.base.compilation import disk_cache


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("VKDISPATCH_CACHE", str(tmp_path / "cache"))
    yield tmp_path / "cache"


def _entry_files(root: Path) -> list[Path]:
    return sorted(root.glob("*/*.vkd"))


def _all_files(root: Path) -> list[Path]:
    return sorted(path for path in root.glob("*/*") if path.is_file())


def test_stored_data_is_loaded(root: Path) -> None:
    assert disk_cache.load("spirv", "a") is None
    for data in (b"", b"x", bytes(range(256)) * 99):
        disk_cache.store("spirv", "a", data)
        assert disk_cache.load("spirv", "a") == data
    disk_cache.store("spirv", "b\ud800", b"other key")
    disk_cache.store("tuning", "a", b"other kind")
    assert disk_cache.load("spirv", "a") == bytes(range(256)) * 99
    assert disk_cache.load("spirv", "b\ud800") == b"other key"
    assert disk_cache.load("tuning", "a") == b"other kind"
    assert disk_cache.folder() == root
    assert {kind: usage.count for kind, usage in disk_cache.entries().items()} == {"spirv": 2, "tuning": 1}
    assert disk_cache.size() == sum(path.stat().st_size for path in _entry_files(root))
    assert stat.S_IMODE((root / "spirv").stat().st_mode) & 0o077 == 0


@pytest.mark.parametrize("value", ["off", "0", " OFF "])
def test_cache_can_be_switched_off(value: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk_cache.store("spirv", "a", b"there")
    monkeypatch.setenv("VKDISPATCH_CACHE", value)
    assert disk_cache.folder() is None
    assert disk_cache.load("spirv", "a") is None
    disk_cache.store("spirv", "a", b"not kept")
    assert (disk_cache.entries(), disk_cache.size(), disk_cache.clear()) == ({}, 0, 0)
    monkeypatch.setenv("VKDISPATCH_CACHE", str(root))
    assert disk_cache.load("spirv", "a") == b"there"


def test_environment_variable_moves_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("VKDISPATCH_CACHE", "~/mine")
    assert disk_cache.folder() == tmp_path / "home" / "mine"
    disk_cache.store("spirv", "a", b"data")
    assert len(_entry_files(tmp_path / "home" / "mine")) == 1
    monkeypatch.delenv("VKDISPATCH_CACHE")
    monkeypatch.setattr(disk_cache, "_roots", {})
    if sys.platform.startswith("linux"):
        assert disk_cache.folder() == tmp_path / "xdg" / "vkdispatch"
    assert disk_cache.load("spirv", "a") is None


@pytest.mark.parametrize("damage", ["cut", "flipped", "longer", "empty", "head", "foreign", "other kind"])
def test_damaged_entries_count_as_absent(damage: str, root: Path) -> None:
    disk_cache.store("spirv", "a", b"some data" * 100)
    (path,) = _entry_files(root)
    content = path.read_bytes()
    if damage == "foreign":  # a whole entry, under another's name
        disk_cache.store("spirv", "b", b"of another key")
        (other,) = (item for item in _entry_files(root) if item != path)
        other.replace(path)
    elif damage == "other kind":
        disk_cache.store("tuning", "a", b"of another kind")
        (root / "tuning" / path.name).replace(path)
    else:
        flipped = bytearray(content)
        flipped[-3] ^= 1
        path.write_bytes(
            {
                "cut": content[:-1],
                "flipped": bytes(flipped),
                "longer": content + b"x",
                "empty": b"",
                "head": content[:20],
            }[damage]
        )
    assert disk_cache.load("spirv", "a") is None
    assert not path.exists()
    disk_cache.store("spirv", "a", b"anew")
    assert disk_cache.load("spirv", "a") == b"anew"


def test_oldest_entries_are_removed_first(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_cache, "LIMIT", 1 << 20)
    disk_cache.store("spirv", "kept", b"in use")
    most = 0
    for number in range(300):
        disk_cache.store("spirv", str(number), os.urandom(9000))
        if number % 10 == 0:
            assert disk_cache.load("spirv", "kept") == b"in use"
            time.sleep(0.002)  # the file system's clock moves on
            most = max(most, sum(path.stat().st_blocks * 512 for path in _entry_files(root)))
    assert 1 << 18 < most <= 1 << 20
    assert disk_cache.load("spirv", "299") is not None
    assert disk_cache.load("spirv", "0") is None
    disk_cache.store("spirv", "huge", bytes(1 << 20))
    assert disk_cache.load("spirv", "huge") is None


def test_unfinished_files_are_removed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_cache, "LIMIT", 1 << 20)
    disk_cache.store("spirv", "a", b"data")
    fresh = root / "spirv" / f"{'a' * 40}-{'0' * 12}.vkd~"
    stale = root / "spirv" / f"{'b' * 40}-{'0' * 12}.vkd~"
    fresh.write_bytes(b"half")
    stale.write_bytes(b"half")
    os.utime(stale, (time.time() - 3600, time.time() - 3600))
    for number in range(20):
        disk_cache.store("spirv", str(number), bytes(4096))
    assert fresh.exists()
    assert not stale.exists()
    assert disk_cache.clear() == 21
    assert _all_files(root) == []


def test_clear_keeps_foreign_files(root: Path) -> None:
    disk_cache.store("spirv", "a", b"data")
    theirs = [root / "spirv" / "notes.txt", root / "letters" / "mine.vkd", root / "letter.vkd"]
    for path in theirs:
        path.parent.mkdir(exist_ok=True)
        path.write_text("dear")
    assert disk_cache.clear() == 1
    assert all(path.read_text() == "dear" for path in theirs)


def test_failing_disk(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(disk_cache, "_reported", False)
    monkeypatch.setattr(logging, "_threshold", logging.LogLevel.VERBOSE)
    root.write_text("a file where the folder should be")
    for _ in range(3):
        disk_cache.store("spirv", "a", b"data")
        assert disk_cache.load("spirv", "a") is None
    assert (disk_cache.size(), disk_cache.clear()) == (0, 0)
    assert capsys.readouterr().out.count("continuing without it") == 1  # said once
    root.unlink()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    disk_cache.store("spirv", "a", b"data")
    assert _all_files(root) == []
    monkeypatch.undo()


def test_read_only_folder(root: Path) -> None:
    disk_cache.store("spirv", "a", b"data")
    (root / "spirv").chmod(0o500)
    root.chmod(0o500)
    try:
        if os.access(root, os.W_OK):
            pytest.skip("the superuser may write everywhere")
        disk_cache.store("spirv", "b", b"data")
        assert disk_cache.load("spirv", "a") == b"data"
        assert disk_cache.load("spirv", "b") is None
    finally:
        root.chmod(0o700)
        (root / "spirv").chmod(0o700)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_folder_that_nobody_can_make(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VKDISPATCH_CACHE", "/proc/vkdispatch/cache")
    monkeypatch.setattr(disk_cache, "_roots", {})
    disk_cache.store("spirv", "a", b"data")
    assert disk_cache.load("spirv", "a") is None


def test_threads(root: Path) -> None:
    wrong: list[object] = []

    def work(seed: int) -> None:
        for number in range(60):
            key = str((number * seed) % 7)
            disk_cache.store("spirv", key, key.encode() * 500)
            found = disk_cache.load("spirv", key)
            if found != key.encode() * 500:
                wrong.append(found)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 2, 3, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(_all_files(root)) == 7


WRITER = """
import random, sys
from vkdispatch.base.compilation import disk_cache
disk_cache.LIMIT = 8 << 20
generator = random.Random(int(sys.argv[1]))
print("go", flush=True)
for _ in range(int(sys.argv[2])):
    key = str(generator.randrange(40))
    found = disk_cache.load("spirv", key)
    if found is not None and found != key.encode() * (len(found) // len(key)):
        sys.exit("damaged data was handed out")
    disk_cache.store("spirv", key, key.encode() * generator.randrange(200000))
"""


def _writer(seed: int, rounds: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(seed), str(rounds)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_processes_at_once(root: Path) -> None:
    writers = [_writer(seed, 150) for seed in range(4)]
    for writer in writers:
        _, errors = writer.communicate(timeout=300)
        assert (writer.returncode, errors) == (0, "")
    assert all(re.fullmatch(r"[0-9a-f]{40}\.vkd", path.name) for path in _all_files(root))
    assert 0 < disk_cache.size() <= 8 << 20


def test_process_killed_while_writing(root: Path) -> None:
    for number in range(4):
        writer = _writer(number, 1 << 30)
        assert writer.stdout is not None
        assert writer.stdout.readline() == "go\n"
        while not any(root.glob("spirv/*.vkd")):
            time.sleep(0.001)
        time.sleep(0.03 + 0.02 * number)
        writer.send_signal(signal.SIGKILL)
        writer.communicate(timeout=300)
    found = [disk_cache.load("spirv", str(key)) for key in range(40)]
    kept = [(str(key), data) for key, data in enumerate(found) if data is not None]
    assert kept
    assert all(data == key.encode() * (len(data) // len(key)) for key, data in kept)
    disk_cache.store("spirv", "after", b"data")
    assert disk_cache.load("spirv", "after") == b"data"
    disk_cache.clear()
    assert _all_files(root) == []


def _replace(path: Path, what: str, victim: Path) -> None:
    path.unlink(missing_ok=True)
    if what == "pipe":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    else:
        path.symlink_to(victim if what == "link" else what)


@pytest.mark.parametrize("what", ["pipe", "folder", "link", "/dev/zero"])
def test_entries_that_are_not_files(what: str, root: Path, tmp_path: Path) -> None:
    disk_cache.store("spirv", "a", b"data")
    (entry,) = _entry_files(root)
    victim = tmp_path / "victim"
    victim.write_bytes(b"dear")
    _replace(entry, what, victim)
    assert disk_cache.load("spirv", "a") is None
    disk_cache.store("spirv", "a", b"data")
    assert disk_cache.load("spirv", "a") == (None if what == "folder" else b"data")
    _replace(root / ".vkdispatch-written", what, victim)
    disk_cache.store("spirv", "b", b"data")
    assert disk_cache.load("spirv", "b") is None
    assert victim.read_bytes() == b"dear"
    # what could not be deleted does not count
    assert disk_cache.clear() == (0 if what == "folder" else 1)


def test_a_file_larger_than_any_entry(root: Path) -> None:
    disk_cache.store("spirv", "a", b"data")
    (entry,) = _entry_files(root)
    os.truncate(entry, 1 << 40)  # a hole: it takes no room on disk, and all of memory if it were read
    assert disk_cache.load("spirv", "a") is None


def test_no_home_and_no_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(_: int) -> None:
        raise KeyError("no such user")

    for variable in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("VKDISPATCH_CACHE", "")
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    monkeypatch.setattr(disk_cache, "_roots", {})
    monkeypatch.chdir(tmp_path)
    assert disk_cache.folder() is None
    disk_cache.store("spirv", "a", b"data")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv("VKDISPATCH_CACHE", "here")
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert disk_cache.load("spirv", "a") is None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere platformdirs itself is asked")
@pytest.mark.parametrize("home", ["/home/somebody", "relative"])
@pytest.mark.parametrize("chosen", ["", " ", "/somewhere/else", "relative", "~/no", "/trailing/"])
def test_folder_agrees_with_platformdirs(chosen: str, home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VKDISPATCH_CACHE", "")
    monkeypatch.setattr(disk_cache, "_roots", {})
    monkeypatch.setenv("XDG_CACHE_HOME", chosen)
    monkeypatch.setenv("HOME", home)
    platformdirs = pytest.importorskip("platformdirs")
    assert str(disk_cache.folder()) == platformdirs.user_cache_dir("vkdispatch", appauthor=False)


def test_hash_agrees_with_hashlib() -> None:
    expected = hashlib.blake2b(b"some data", digest_size=16).digest()
    assert disk_cache._hash(b"some ", b"data", size=16) == expected
