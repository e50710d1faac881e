"""The disk cache where other users could have written: they plant nothing, and the user is told once."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from vkdispatch.base.compilation import disk_cache
from vkdispatch.base.compilation import disk_cache as private_folder
from vkdispatch.base.compilation.disk_cache import PrivateFolder, UntrustedError

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here")

SOMEBODY = 54321


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(disk_cache, "_warned", False)
    monkeypatch.setattr(private_folder, "_parents_checked", set())
    monkeypatch.setenv("VKDISPATCH_CACHE", str(tmp_path / "cache"))
    disk_cache.store("spirv", "a", b"data")
    disk_cache.store("other", "a", b"other data")
    assert _load_both() == (b"data", b"other data")
    yield tmp_path / "cache"


def _load_both() -> tuple[bytes | None, bytes | None]:
    return disk_cache.load("spirv", "a"), disk_cache.load("other", "a")


def _entry(root: Path, kind: str = "spirv") -> Path:
    (path,) = (root / kind).glob("*.vkd")
    return path


def _content(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def _warning(capsys: pytest.CaptureFixture[str]) -> str:
    """Return the one line that was logged."""
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("[WARNING ")
    assert "Set VKDISPATCH_CACHE to another folder" in line
    return line


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o702, 0o1777])
@pytest.mark.parametrize("what", ["", "spirv"])
def test_folders_writable_by_others_are_refused(
    what: str, mode: int, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = root / what
    folder.chmod(mode)
    before = _content(root)
    for _ in range(2):
        assert _load_both() == (None, b"other data" if what else None)
        disk_cache.store("spirv", "a", b"new")
        disk_cache.store("spirv", "b", b"new")
    assert _content(root).keys() == before.keys()
    assert _content(folder) == {path: data for path, data in before.items() if folder in path.parents}
    assert set(disk_cache.entries()) == ({"other"} if what else set())
    assert disk_cache.clear() == (1 if what else 0)
    assert _entry(root).exists()
    line = _warning(capsys)
    assert f"other users may write to {str(folder)!r} (its mode is {mode:o}): run chmod go-w" in line
    folder.chmod(0o700)
    assert disk_cache.load("spirv", "a") == b"data"


def test_files_writable_by_others_are_refused(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _entry(root).chmod(0o666)
    assert _load_both() == (None, b"other data")
    assert f"other users may write to {str(_entry(root))!r}" in _warning(capsys)
    # what the user makes in its place is the user's alone
    disk_cache.store("spirv", "a", b"anew")
    assert _load_both() == (b"anew", b"other data")
    (root / ".vkdispatch-written").chmod(0o622)
    disk_cache.store("spirv", "a", b"not kept")
    assert _load_both() == (b"anew", b"other data")
    assert capsys.readouterr().out == ""


def test_modes_without_access_by_others_are_accepted(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for mode in (0o755, 0o711, 0o2755, 0o700):
        root.chmod(mode)
        (root / "spirv").chmod(mode)
        assert _load_both() == (b"data", b"other data")
    _entry(root).chmod(0o644)
    assert _load_both() == (b"data", b"other data")
    assert capsys.readouterr().out == ""


def test_process_runs_as_another_user(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = _content(root)
    owner = os.geteuid()
    with monkeypatch.context() as context:
        context.setattr(os, "geteuid", lambda: SOMEBODY)
        assert _load_both() == (None, None)
        disk_cache.store("spirv", "a", b"new")
        assert (disk_cache.entries(), disk_cache.size(), disk_cache.clear()) == ({}, 0, 0)
    assert _content(root) == before
    assert f"{str(root)!r} belongs to user {owner}, and this program runs as user {SOMEBODY}" in _warning(
        capsys
    )


@pytest.mark.parametrize("what", ["root", "kind", "entry", "tally"])
def test_files_of_other_users_are_ignored(what: str, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if os.geteuid() != 0:
        pytest.skip("only the superuser gives files away")
    path = {
        "root": root,
        "kind": root / "spirv",
        "entry": _entry(root),
        "tally": root / ".vkdispatch-written",
    }[what]
    os.chown(path, SOMEBODY, SOMEBODY)
    expected = {"root": (None, None), "tally": (b"data", b"other data")}.get(what, (None, b"other data"))
    assert _load_both() == expected
    disk_cache.store("spirv", "a", b"data")
    assert _load_both() == ((b"data", b"other data") if what == "entry" else expected)
    assert f"{str(path)!r} belongs to user {SOMEBODY}" in _warning(capsys)


def test_links_are_not_followed(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = tmp_path / "theirs"
    (root / "spirv").rename(theirs)
    (root / "spirv").symlink_to(theirs)
    before = _content(theirs)
    assert _load_both() == (None, b"other data")
    disk_cache.store("spirv", "a", b"new")
    disk_cache.store("spirv", "b", b"new")
    assert disk_cache.clear() == 1
    assert _content(theirs) == before
    assert f"{str(root / 'spirv')!r} is a symbolic link" in _warning(capsys)
    # an entry that is right, but for being a link
    (root / "spirv").unlink()
    (root / "spirv").mkdir(0o700)
    (entry,) = before
    (root / "spirv" / entry.name).symlink_to(entry)
    assert _load_both() == (None, None)
    disk_cache.store("spirv", "a", b"new")
    assert disk_cache.load("spirv", "a") == b"new"
    assert _content(theirs) == before
    # nor those at unfinished files, wherever their names come from
    monkeypatch.setattr(os, "urandom", bytes)
    partial = root / "spirv" / f"{entry.stem}-{'00' * 6}.vkd~"
    partial.symlink_to(entry)
    disk_cache.store("spirv", "a", b"newer")
    assert _content(theirs) == before


def test_the_folder_itself_may_be_a_link(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    real = tmp_path / "real"
    root.rename(real)
    root.symlink_to(real)
    assert _load_both() == (b"data", b"other data")
    disk_cache.store("spirv", "b", b"more")
    assert disk_cache.load("spirv", "b") == b"more"
    assert capsys.readouterr().out == ""
    real.chmod(0o777)
    assert _load_both() == (None, None)
    assert "other users may write to" in _warning(capsys)


@pytest.mark.parametrize(("mode", "trusted"), [(0o777, False), (0o773, False), (0o1777, True), (0o775, True)])
@pytest.mark.parametrize("linked", [False, True])
def test_folders_above(
    linked: bool,
    mode: int,
    trusted: bool,
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    high = tmp_path / "high"
    (high / "low").mkdir(parents=True)
    root.rename(high / "low" / "cache")
    high.chmod(mode)
    if linked:
        (tmp_path / "link").symlink_to(high / "low")
    monkeypatch.setenv("VKDISPATCH_CACHE", str((tmp_path / "link" if linked else high / "low") / "cache"))
    assert _load_both() == ((b"data", b"other data") if trusted else (None, None))
    if trusted:
        assert capsys.readouterr().out == ""
    else:
        line = _warning(capsys)
        assert f"{str(high)!r} above it has the mode {mode:o}: run chmod o-w {str(high)!r}" in line
        high.chmod(0o700)
        assert _load_both() == (b"data", b"other data")


def test_the_checked_file_is_the_file_that_is_read(root: Path, tmp_path: Path) -> None:
    name = _entry(root).name
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / name).write_bytes(b"planted")
    before = _entry(root).read_bytes()
    with PrivateFolder.open(str(root)) as top:
        root.rename(tmp_path / "away")
        root.mkdir()
        with top.subfolder("spirv") as folder:
            (tmp_path / "away" / "spirv").rename(tmp_path / "away" / "moved")
            (tmp_path / "away" / "spirv").symlink_to(theirs)
            assert folder.read(name, 1000) == before
            folder.write("made", (b"here",))
            folder.replace(name, by="made")
            assert folder.delete("nothing")
    assert (tmp_path / "away" / "moved" / name).read_bytes() == b"here"
    assert _content(theirs) == {theirs / name: b"planted"}
    assert list(root.iterdir()) == []


def test_new_files_are_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VKDISPATCH_CACHE", str(tmp_path / "new" / "folders" / "cache"))
    before = os.umask(0)
    try:
        disk_cache.store("spirv", "a", b"data")
    finally:
        os.umask(before)
    made = list((tmp_path / "new").rglob("*"))
    assert len(made) == 5
    for path in (tmp_path / "new", *made):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)
    assert disk_cache.load("spirv", "a") == b"data"


@pytest.mark.parametrize("owners", [False, True])
def test_systems_without_directory_descriptors(
    owners: bool, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(private_folder, "_DESCRIPTORS", False)
    monkeypatch.setattr(private_folder, "_OWNERS", owners)
    if not owners:
        monkeypatch.delattr(os, "geteuid")
    assert _load_both() == (b"data", b"other data")
    shutil.rmtree(root)
    assert _load_both() == (None, None)
    disk_cache.store("spirv", "a", b"anew")
    assert _load_both() == (b"anew", None)
    _entry(root).write_bytes(b"damaged")
    assert _load_both() == (None, None)
    assert not any((root / "spirv").iterdir())
    disk_cache.store("other", "a", b"anew")
    assert [usage.count for usage in disk_cache.entries().values()] == [1]
    assert disk_cache.clear() == 1


def test_a_folder_of_very_many_files(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(60):
        (root / "spirv" / f"{number:040x}.vkd").write_bytes(b"x")
    assert disk_cache.entries()["spirv"].count == 61
    monkeypatch.setattr(private_folder, "MAX_FILES", 20)
    assert disk_cache.entries()["spirv"].count == 20
    assert disk_cache.load("spirv", "a") == b"data"


def test_descriptors_are_closed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path("/proc/self/fd")
    if not folder.is_dir():
        pytest.skip("open files cannot be listed here")
    acts: list[Callable[[], object]] = [
        _load_both,
        lambda: disk_cache.store("spirv", "b", b"data"),
        lambda: disk_cache.load("spirv", "none"),
        lambda: disk_cache.load("none", "none"),
        disk_cache.entries,
        lambda: _entry(root, "other").chmod(0o666),
        _load_both,
        lambda: (root / "spirv").chmod(0o777),
        _load_both,
        lambda: disk_cache.store("spirv", "b", b"data"),
        disk_cache.clear,
        lambda: root.chmod(0o777),
        _load_both,
        disk_cache.clear,
    ]
    before = len(list(folder.iterdir()))
    for act in acts:
        act()
        assert len(list(folder.iterdir())) == before


def test_the_error_names_the_path(root: Path) -> None:
    root.chmod(0o777)
    with pytest.raises(UntrustedError, match=str(root)), PrivateFolder.open(str(root)):
        pass
