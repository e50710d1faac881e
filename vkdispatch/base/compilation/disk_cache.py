"""The disk cache: compiled kernels, pipelines of drivers and measured choices, kept between runs.

An entry is a file `<folder>/<kind>/<hash of the key>.vkd`: a digest, then the data. It is written to a
temporary file and renamed, so that a reader sees all of it or nothing, whatever other processes do. An entry
that does not match its digest is deleted and counts as missing. Failures of the disk raise no errors: if it
is full, read-only or missing, programs run as if the cache were empty.

Entries are trusted, as some are executed. Folders and files that other users could have written are ignored,
with one warning.

The environment variable VKDISPATCH_CACHE names another folder; `off` or `0` disables the cache. A
word such as `1`, which is probably not meant as a folder, raises ArgumentValueError.
"""

import functools
import os
import sys
from typing import TYPE_CHECKING

from vkdispatch.base.compilation.private_folder import PrivateFolder, UntrustedError
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.process.logging import log_verbose, log_warning
from vkdispatch.base.record import record

# Paths are str: importing pathlib would dominate the time of a warm start.
if TYPE_CHECKING:
    import hashlib
    from pathlib import Path

LIMIT = 256 << 20
"""Maximum bytes of all entries together. The least recently used are deleted first."""

_VARIABLE = "VKDISPATCH_CACHE"
_OFF = ("off", "0")
_NO_FOLDERS = ("1", "on", "true", "yes", "false", "no")
_MAGIC = b"vkdispatch cache 1\n"
_DIGEST = 16
_HEAD = len(_MAGIC) + _DIGEST
_NAME = 40  # characters of an entry's name
_SUFFIX = ".vkd"
_PARTIAL = ".vkd~"
_TALLY = ".vkdispatch-written"  # a byte for each block that any process has written since the last trim
_BLOCK = 4096
_LARGEST = LIMIT // 8
_STALE_S = 600  # a write takes far less: the process that began this file has ended

_reported = False
_warned = False


@record
class Usage:
    """The number of entries of a kind, and their bytes."""

    count: int
    size: int


_File = tuple[float, str, str, int]
"""An entry: time of last use, kind, name and size."""


def folder() -> "Path | None":
    """Return the folder of the entries, which need not exist yet; None if the cache is off."""
    from pathlib import Path

    root = _root()
    return Path(root) if root is not None else None


def is_enabled() -> bool:
    """Whether the cache is on."""
    return _root() is not None


def load(kind: str, key: str) -> bytes | None:
    """Return the data stored under `key`; None if there is none, it is damaged, or the cache is off."""
    root = _root()
    if root is None:
        return None
    name = _name(key)
    try:
        with PrivateFolder.open(root) as top, top.subfolder(kind) as folder:
            content = folder.read(name + _SUFFIX, _LARGEST + _HEAD) or b""
            data = content[_HEAD:]
            if content[:_HEAD] == _head(kind, name, data):
                return data
            folder.delete(name + _SUFFIX)
    except UntrustedError as error:
        _warn(error)
    except OSError:
        pass
    return None


def store(kind: str, key: str, data: bytes) -> None:
    """Store `data` under `key`, replacing earlier data. Failures of the disk are ignored.

    Parameters
    ----------
    kind
        A word for the kind of data: the name of a folder, and of a line of `vdlist --cache`.
    key
        Everything that the data depends on. Only its hash is written to the disk.
    data
        At most an eighth of `LIMIT`; larger data is not stored.
    """
    root = _root()
    if root is None or len(data) > _LARGEST:
        return
    name = _name(key)
    partial = f"{name}-{os.urandom(6).hex()}{_PARTIAL}"
    try:
        with PrivateFolder.open(root, make=True) as top, top.subfolder(kind, make=True) as folder:
            # Count before writing, so that files of killed processes count as well.
            full = _count(top, len(data) + _HEAD)
            try:
                folder.write(partial, (_head(kind, name, data), data))
                folder.replace(name + _SUFFIX, by=partial)
            except BaseException:
                folder.delete(partial)
                raise
            if full:
                _trim(top)
    except UntrustedError as error:
        _warn(error)
    except OSError as error:
        _report(error)


def entries() -> dict[str, Usage]:
    """Return the usage of each kind of entry."""
    usage: dict[str, Usage] = {}
    for _, kind, _, size in _all_files():
        before = usage.get(kind, Usage(0, 0))
        usage[kind] = Usage(before.count + 1, before.size + size)
    return dict(sorted(usage.items()))


def size() -> int:
    """Return the bytes of all entries together."""
    return sum(size for _, _, _, size in _all_files())


def clear() -> int:
    """Delete every entry and the files of killed processes. Return the number of deleted entries.

    Other files in the folder are not touched.
    """
    top = _top()
    if top is None:
        return 0
    with top:
        deleted = sum(_delete(top, kind, name) for _, kind, name, _ in _files(top, stale_s=0))
        top.delete(_TALLY)
    return deleted


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
        # Users of a container may have no home; the working directory may have been deleted.
        except (OSError, RuntimeError):
            root = ""
        _roots[chosen] = root
    return root or None


def _user_folder() -> str:
    # On Linux that is XDG_CACHE_HOME or ~/.cache. Importing platformdirs takes longer than this package.
    if sys.platform.startswith("linux") and not ({"ANDROID_ROOT", "ANDROID_DATA"} & os.environ.keys()):
        for base in (
            os.environ.get("XDG_CACHE_HOME", ""),
            os.path.join(os.environ.get("HOME", ""), ".cache"),
        ):
            if os.path.isabs(base):
                return os.path.join(base, "vkdispatch")
    from platformdirs import user_cache_dir

    return user_cache_dir("vkdispatch", appauthor=False)


def _top() -> PrivateFolder | None:
    """Open the folder of the entries, if there is one."""
    root = _root()
    if root is None:
        return None
    try:
        return PrivateFolder.open(root)
    except UntrustedError as error:
        _warn(error)
    except OSError:
        pass
    return None


@functools.cache
def _blake2b() -> "type[hashlib.blake2b]":
    try:
        # the implementation in hashlib, without OpenSSL, which takes 4 ms to load
        from _blake2 import blake2b
    except ImportError:
        from hashlib import blake2b
    return blake2b


def _hash(*parts: bytes, size: int) -> bytes:
    state = _blake2b()(digest_size=size)
    for part in parts:
        state.update(part)
    return state.digest()


def _name(key: str) -> str:
    return _hash(key.encode("utf-8", "surrogatepass"), size=_NAME // 2).hex()


def _head(kind: str, name: str, data: bytes) -> bytes:
    # The digest includes the name: a file that was moved is not an entry.
    return _MAGIC + _hash(f"{kind}/{name}".encode(), data, size=_DIGEST)


def _blocks(size: int) -> int:
    return size // _BLOCK + 1


def _count(top: PrivateFolder, size: int) -> bool:
    """Add `size` to the bytes that all processes wrote since the last trim. Return whether to trim."""
    # Appending is atomic, and the file's length is the sum: no lock, nothing that could be left half-written.
    descriptor = top.open_file(_TALLY, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(descriptor, bytes(_blocks(size)))
        if os.fstat(descriptor).st_size * _BLOCK < LIMIT // 16:
            return False
        os.ftruncate(descriptor, 0)
        return True
    finally:
        os.close(descriptor)


def _trim(top: PrivateFolder) -> None:
    """Delete the least recently used entries, to make room for all writes before the next trim."""
    # Two processes that trim at once choose the same files. A file that is already gone is not an error.
    files = _files(top, stale_s=_STALE_S)
    total = sum(_blocks(size) for *_, size in files) * _BLOCK
    if total <= LIMIT // 4 * 3:
        return
    for _, kind, name, size in sorted(files):
        _delete(top, kind, name)
        total -= _blocks(size) * _BLOCK
        if total <= LIMIT // 2:
            break


def _all_files() -> list[_File]:
    top = _top()
    if top is None:
        return []
    with top:
        return _files(top)


def _files(top: PrivateFolder, stale_s: float | None = None) -> list[_File]:
    """Return all entries. With `stale_s`, delete unfinished files that are so many seconds old."""
    found: list[_File] = []
    for kind in top.list():
        try:
            if not kind.is_dir(follow_symlinks=False):
                continue
            with top.subfolder(kind.name) as folder:
                found += _files_of(kind.name, folder, stale_s)
        except OSError:
            continue  # deleted, or not trusted, of which `load` warns
    return found


def _files_of(kind: str, folder: PrivateFolder, stale_s: float | None) -> list[_File]:
    found = []
    for item in folder.list():
        whole = item.name.endswith(_SUFFIX) and len(item.name) == _NAME + len(_SUFFIX)
        if not (whole or item.name.endswith(_PARTIAL)):
            continue
        try:
            status = item.stat(follow_symlinks=False)
        except OSError:
            continue  # another process has just deleted it
        if whole:
            found.append((status.st_mtime, kind, item.name, status.st_size))
        elif stale_s is not None and _age(status.st_mtime) >= stale_s:
            folder.delete(item.name)
    return found


def _delete(top: PrivateFolder, kind: str, name: str) -> bool:
    try:
        with top.subfolder(kind) as folder:
            return folder.delete(name)
    except OSError:
        return False


def _age(moment: float) -> float:
    import time

    return time.time() - moment


def _warn(error: UntrustedError) -> None:
    global _warned
    if not _warned:
        _warned = True
        log_warning(
            f"the disk cache ignores what other users could have written: {error}. Set {_VARIABLE} to "
            f"another folder, or to off"
        )


def _report(error: OSError) -> None:
    global _reported
    if not _reported:
        _reported = True
        log_verbose(f"the disk cache cannot be written to ({error}); continuing without it")
