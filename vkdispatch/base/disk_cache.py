"""What is kept on disk between runs: compiled kernels, drivers' pipelines, measured choices.

An entry is a file `<folder>/<kind>/<hash of the key>.vkd`: a digest, then the data. It is written beside its
place and renamed into it, so a reader sees all of it or nothing, whatever other processes do and however they
end. What its digest does not match is deleted and counts as absent. Nothing here raises because of the disk:
where it is full, read-only or gone, programs run as if nothing had been kept.

The environment variable VKDISPATCH_CACHE names another folder; `off` or `0` disables all of it. A word
that is no folder, such as `1`, raises ArgumentValueError.
"""

import errno
import functools
import os
import stat
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.logging import log_verbose
from vkdispatch.base.record import record

# Paths are plain text here: pathlib takes longer to import than a warm start has.
if TYPE_CHECKING:
    import hashlib
    from pathlib import Path

LIMIT = 256 << 20
"""Bytes that all entries together may take on disk; the least recently used go first."""

_VARIABLE = "VKDISPATCH_CACHE"
_OFF = ("off", "0")
_NO_FOLDERS = ("1", "on", "true", "yes", "false", "no")
_MAGIC = b"vkdispatch cache 1\n"
_DIGEST = 16
_HEAD = len(_MAGIC) + _DIGEST
_NAME = 40  # characters of an entry's name
_SUFFIX = ".vkd"
_PARTIAL = ".vkd~"
_TALLY = (
    ".vkdispatch-written"  # one byte for each block that any process has begun to write since the last trim
)
_BLOCK = 4096
_LARGEST = LIMIT // 8
# A pipe or a link in the place of a file, whoever has put it there, is neither waited for nor followed.
_PLAIN = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
_STALE_S = 600  # a write takes far less: whoever began this file is gone

_reported = False


@record
class Usage:
    """What one kind of entry takes: how many there are, and their bytes."""

    count: int
    size: int


@record
class _File:
    used: float
    path: str
    kind: str
    size: int

    @property
    def blocks(self) -> int:
        return _blocks(self.size)


def folder() -> "Path | None":
    """Return the folder that holds the entries, which need not exist yet; None where the cache is off."""
    from pathlib import Path

    root = _root()
    return Path(root) if root is not None else None


def enabled() -> bool:
    """Whether anything is kept at all."""
    return _root() is not None


def load(kind: str, key: str) -> bytes | None:
    """Return the data stored under `key`, or None: there is none, it was damaged, or the cache is off."""
    root = _root()
    if root is None:
        return None
    path, name = _place(root, kind, key)
    try:
        with open(path, "rb", opener=_open_file) as file:
            content = file.read(_LARGEST + _HEAD + 1)
    except OSError:
        return None
    data = content[_HEAD:]
    if content[:_HEAD] != _head(name, data):
        _delete(path)
        return None
    with suppress(OSError):  # a folder may be for reading only
        os.utime(path)  # the time of the last use, by which entries go
    return data


def store(kind: str, key: str, data: bytes) -> None:
    """Keep `data` under `key`, in place of what was there. Where the disk refuses, nothing happens.

    Parameters
    ----------
    kind
        A word for what the data is: a folder's name, and a line of `vdlist --cache`.
    key
        All that the data follows from; only its hash goes to the disk.
    data
        At most an eighth of `LIMIT`; more is not kept.
    """
    root = _root()
    if root is None or len(data) > _LARGEST:
        return
    path, name = _place(root, kind, key)
    partial = f"{path.removesuffix(_SUFFIX)}-{os.urandom(6).hex()}{_PARTIAL}"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        # Counted before it is written: what a killed process leaves behind counts as well.
        full = _count(root, len(data) + _HEAD)
        try:
            with open(partial, "xb") as file:
                file.write(_head(name, data))
                file.write(data)
            os.replace(partial, path)
        except BaseException:
            _delete(partial)
            raise
        if full:
            _trim(root)
    except OSError as error:
        _report(error)


def entries() -> dict[str, Usage]:
    """Return what the entries of each kind take, by kind."""
    usage: dict[str, Usage] = {}
    for file in _files(_root()):
        before = usage.get(file.kind, Usage(0, 0))
        usage[file.kind] = Usage(before.count + 1, before.size + file.size)
    return dict(sorted(usage.items()))


def size() -> int:
    """Return the bytes of all entries together."""
    return sum(file.size for file in _files(_root()))


def clear() -> int:
    """Delete every entry, and what killed processes left behind; return how many entries were deleted.

    Other files in the folder, if it holds any, stay.
    """
    root = _root()
    files = _files(root, stale_s=0)
    for file in files:
        _delete(file.path)
    if root is not None:
        _delete(os.path.join(root, _TALLY))
    return sum(not os.path.lexists(file.path) for file in files)


_roots: dict[str, str] = {}


def _root() -> str | None:
    chosen = os.environ.get(_VARIABLE, "").strip()
    if chosen.lower() in _OFF:
        return None
    if chosen.lower() in _NO_FOLDERS:
        raise ArgumentValueError(f"{_VARIABLE}: expected a folder, or off, got {chosen!r}")
    root = _roots.get(chosen)
    if root is None:
        try:
            path = os.path.expanduser(chosen) if chosen else _user_folder()
            root = "" if path.startswith("~") else os.path.abspath(path)
        # Users of a container may have no home; programs may run in a folder that is gone.
        except (OSError, RuntimeError):
            root = ""
        _roots[chosen] = root
    return root or None


def _user_folder() -> str:
    # On Linux that is XDG_CACHE_HOME or ~/.cache. To ask platformdirs takes longer than all of our import.
    if sys.platform.startswith("linux") and not ({"ANDROID_ROOT", "ANDROID_DATA"} & os.environ.keys()):
        for base in (
            os.environ.get("XDG_CACHE_HOME", ""),
            os.path.join(os.environ.get("HOME", ""), ".cache"),
        ):
            if os.path.isabs(base):
                return os.path.join(base, "vkdispatch")
    from platformdirs import user_cache_dir

    return user_cache_dir("vkdispatch", appauthor=False)


def _open_file(path: str, flags: int) -> int:
    """Open a regular file. Raises OSError where there is something else."""
    descriptor = os.open(path, flags | _PLAIN, 0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", path)
    return descriptor


@functools.cache
def _blake2b() -> "type[hashlib.blake2b]":
    try:
        # hashlib's own. By that name OpenSSL is loaded as well, which takes 4 ms.
        from _blake2 import blake2b
    except ImportError:
        from hashlib import blake2b
    return blake2b


def _hash(*parts: bytes, size: int) -> bytes:
    state = _blake2b()(digest_size=size)
    for part in parts:
        state.update(part)
    return state.digest()


def _place(root: str, kind: str, key: str) -> tuple[str, str]:
    name = _hash(key.encode("utf-8", "surrogatepass"), size=_NAME // 2).hex()
    return f"{root}{os.sep}{kind}{os.sep}{name}{_SUFFIX}", name


def _head(name: str, data: bytes) -> bytes:
    # With the name: a file under another's name is no entry.
    return _MAGIC + _hash(name.encode(), data, size=_DIGEST)


def _blocks(size: int) -> int:
    return size // _BLOCK + 1


def _count(root: str, size: int) -> bool:
    """Add `size` to what all processes have written since the last trim; return whether one is due again."""
    # Appending is atomic, and the file's length is the sum: no lock, nothing that could be left half-written.
    descriptor = _open_file(os.path.join(root, _TALLY), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(descriptor, bytes(_blocks(size)))
        if os.fstat(descriptor).st_size * _BLOCK < LIMIT // 16:
            return False
        os.ftruncate(descriptor, 0)
        return True
    finally:
        os.close(descriptor)


def _trim(root: str) -> None:
    """Delete the least recently used until there is room for all that may come before the next trim."""
    # Two processes that do this at once choose the same files; that one was gone already is no matter.
    files = _files(root, stale_s=_STALE_S)
    total = sum(file.blocks for file in files) * _BLOCK
    if total <= LIMIT // 4 * 3:
        return
    for file in sorted(files, key=lambda file: file.used):
        _delete(file.path)
        total -= file.blocks * _BLOCK
        if total <= LIMIT // 2:
            break


def _files(root: str | None, stale_s: float | None = None) -> list[_File]:
    """Return all entries; with `stale_s`, delete unfinished ones that old."""
    if root is None:
        return []
    found = []
    for kind in _listing(root):
        for item in _listing(kind.path) if kind.is_dir(follow_symlinks=False) else ():
            whole = item.name.endswith(_SUFFIX) and len(item.name) == _NAME + len(_SUFFIX)
            if not (whole or item.name.endswith(_PARTIAL)):
                continue
            try:
                status = item.stat(follow_symlinks=False)
            except OSError:
                continue  # another process has just deleted it
            if whole:
                found.append(_File(status.st_mtime, item.path, kind.name, status.st_size))
            elif stale_s is not None and _age(status.st_mtime) >= stale_s:
                _delete(item.path)
    return found


def _listing(path: str) -> "list[os.DirEntry[str]]":
    try:
        with os.scandir(path) as items:
            return list(items)
    except OSError:
        return []


def _age(moment: float) -> float:
    import time

    return time.time() - moment


def _delete(path: str) -> None:
    with suppress(OSError):  # it may be gone already, or not ours to delete
        os.unlink(path)


def _report(error: OSError) -> None:
    global _reported
    if not _reported:
        _reported = True
        log_verbose(f"the disk cache cannot be written to ({error}); working without it")
