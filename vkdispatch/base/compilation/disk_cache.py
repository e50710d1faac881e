"""The disk cache: compiled kernels, pipelines of drivers and measured choices, kept between processes."""

import errno
import functools
import itertools
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.process import log_verbose, log_warning
from vkdispatch.base.record import record

if TYPE_CHECKING:
    import hashlib
    from pathlib import Path


# ---- Folders that no other user can write to, and the files in them --------------------------------------
#
# Folders and files are checked by their descriptors, and used through the same descriptors: nobody can
# replace them between the check and the use. Links are followed on the way to the first folder only, and
# their targets are checked as well.
#
# On systems without owners or such descriptors (Windows), folders are used by path, without checks.


_OWNERS = hasattr(os, "geteuid")
_DESCRIPTORS = (
    _OWNERS
    and {os.open, os.stat, os.mkdir, os.unlink, os.rename} <= os.supports_dir_fd
    and {os.scandir, os.utime} <= os.supports_fd
)
_FOLDER = getattr(os, "O_DIRECTORY", 0)
_UNLINKED = getattr(os, "O_NOFOLLOW", 0)
# O_NONBLOCK: do not wait for a pipe.
_FILE = _UNLINKED | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_DEEPEST = 100  # folders above one; a path has fewer

MAX_FILES = 1 << 17
"""Maximum number of files to list in a folder."""

# Folders whose parents have been checked, by path, device and inode.
_parents_checked: set[tuple[str, int, int]] = set()


class UntrustedError(OSError):
    """Other users could have written a file or folder. The text says which, why, and what to do."""


class PrivateFolder:
    """An open folder that belongs to the user and that nobody else can write to.

    A context manager that closes the folder.

    Attributes
    ----------
    path
        Its path, for messages.
    """

    __slots__ = ("_descriptor", "path")

    def __init__(self, path: str, descriptor: int | None) -> None:
        self.path = path
        self._descriptor = descriptor

    def __enter__(self) -> "PrivateFolder":
        return self

    def __exit__(self, *_: object) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)

    @classmethod
    def open(cls, path: str, make: bool = False) -> "PrivateFolder":
        """Open a folder by its path, which may lead through links.

        Parameters
        ----------
        path
            The folder.
        make
            Make the folder and its parents if they are missing, accessible to the user only.

        Raises
        ------
        UntrustedError
            It belongs to another user, others may write to it, or anyone may rename it.
        OSError
            It cannot be opened.
        """
        if not _DESCRIPTORS:
            return cls._by_path(path, make)
        try:
            descriptor = os.open(path, _FOLDER)
        except FileNotFoundError:
            if not make:
                raise
            _make_folders(path)
            descriptor = os.open(path, _FOLDER)
        return cls._check_opened(path, descriptor, True)

    def subfolder(self, name: str, make: bool = False) -> "PrivateFolder":
        """Open a subfolder. With `make`, make it if it is missing. Raises as `open`."""
        path = f"{self.path}{os.sep}{name}"
        if self._descriptor is None:
            return self._by_path(path, make)
        try:
            descriptor = self._open_subfolder(name, path)
        except FileNotFoundError:
            if not make:
                raise
            with suppress(FileExistsError):  # another process has just made it
                os.mkdir(name, 0o700, dir_fd=self._descriptor)
            descriptor = self._open_subfolder(name, path)
        return self._check_opened(path, descriptor, False)

    def open_file(self, name: str, flags: int) -> int:
        """Open a file and return its descriptor. A new file is accessible to the user only.

        Raises
        ------
        UntrustedError
            It belongs to another user, or others may write to it.
        OSError
            It cannot be opened, or is not a regular file.
        """
        descriptor = os.open(self._place(name), flags | _FILE, 0o600, dir_fd=self._descriptor)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "not a regular file", f"{self.path}{os.sep}{name}")
            _check(status, f"{self.path}{os.sep}{name}")
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def read(self, name: str, limit: int) -> bytes | None:
        """Return the content of a file and update its time of use; None for more than `limit` bytes.

        Raises as `open_file`.
        """
        descriptor = self.open_file(name, os.O_RDONLY)
        try:
            size = os.fstat(descriptor).st_size
            if size > limit:
                return None
            # One byte more than the size, so that a single read also finds the end.
            content = os.read(descriptor, size + 1)
            while len(content) <= size and (more := os.read(descriptor, size + 1 - len(content))):
                content += more
            with suppress(OSError):  # it may be for reading only
                os.utime(self._place(name) if self._descriptor is None else descriptor)
            return content if len(content) <= limit else None
        finally:
            os.close(descriptor)

    def write(self, name: str, parts: tuple[bytes, ...]) -> None:
        """Write a new file. Raises OSError, also if it exists."""
        with open(self.open_file(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
            for part in parts:
                file.write(part)

    def replace(self, name: str, by: str) -> None:
        """Rename the file `by` to `name`, replacing an existing file. Raises OSError."""
        os.replace(
            self._place(by), self._place(name), src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor
        )

    def delete(self, name: str) -> bool:
        """Delete a file or a link. Return whether it is gone."""
        try:
            os.unlink(self._place(name), dir_fd=self._descriptor)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True

    def list(self) -> "Iterator[os.DirEntry[str]]":
        """Yield the entries of the folder, at most `MAX_FILES`; none if it cannot be listed."""
        try:
            items = os.scandir(self.path if self._descriptor is None else self._descriptor)
        except OSError:
            return
        with items:
            yield from itertools.islice(items, MAX_FILES)

    def _place(self, name: str) -> str:
        return name if self._descriptor is not None else os.path.join(self.path, name)

    def _open_subfolder(self, name: str, path: str) -> int:
        try:
            return os.open(name, _FOLDER | _UNLINKED, dir_fd=self._descriptor)
        except OSError as error:
            # The error is the same for links and for files.
            status = os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode):
                raise UntrustedError(
                    f"{path!r} is a symbolic link, and links are not followed here: make it a folder"
                ) from None
            raise error

    @classmethod
    def _check_opened(cls, path: str, descriptor: int, first: bool) -> "PrivateFolder":
        try:
            status = os.fstat(descriptor)
            _check(status, path)
            if first and (path, status.st_dev, status.st_ino) not in _parents_checked:
                _check_parents(status, path, descriptor)
                _parents_checked.add((path, status.st_dev, status.st_ino))
        except BaseException:
            os.close(descriptor)
            raise
        return cls(path, descriptor)

    @classmethod
    def _by_path(cls, path: str, make: bool) -> "PrivateFolder":
        if make:
            os.makedirs(path, exist_ok=True)
        return cls(path, None)


def _check(status: os.stat_result, path: str) -> None:
    if not _OWNERS:
        return
    if status.st_uid != os.geteuid():
        raise UntrustedError(
            f"{path!r} belongs to user {status.st_uid}, and this program runs as user {os.geteuid()}"
        )
    if status.st_mode & _OTHERS:
        raise UntrustedError(
            f"other users may write to {path!r} (its mode is {stat.S_IMODE(status.st_mode):o}): "
            f"run chmod go-w {path!r}"
        )


def _check_parents(below: os.stat_result, path: str, descriptor: int) -> None:
    """Raise UntrustedError if anyone may replace this folder with another folder of the user.

    Parents may be writable by a group, as is common for projects and for groups of one user. A replacement
    would have to belong to the user.
    """
    for depth in range(1, _DEEPEST):
        try:
            status = os.stat("/".join([".."] * depth), dir_fd=descriptor)
        except OSError:
            return  # the user may not access more parents
        if (status.st_dev, status.st_ino) == (below.st_dev, below.st_ino):
            return
        if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
            parent = os.path.realpath(path).rsplit(os.sep, depth)[0] or os.sep
            raise UntrustedError(
                f"anyone may rename {path!r}, as {parent!r} above it has the mode "
                f"{stat.S_IMODE(status.st_mode):o}: run chmod o-w {parent!r}, or chmod +t {parent!r}"
            )
        below = status


def _make_folders(path: str) -> None:
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass  # another process has just made it
    except FileNotFoundError:
        parent = os.path.dirname(path)
        if parent == path:
            raise
        _make_folders(parent)
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)  # in /proc and its like this fails, though the parent exists


# ---- The disk cache: compiled kernels, pipelines of drivers and measured choices, kept between runs ------
#
# An entry is a file `<folder>/<kind>/<hash of the key>.vkd`: a digest, then the data. It is written to a
# temporary file and renamed, so that a reader sees all of it or nothing, whatever other processes do. An
# entry that does not match its digest is deleted and counts as missing. Failures of the disk raise no
# errors: if it is full, read-only or missing, programs run as if the cache were empty.
#
# Entries are trusted, as some are executed. Folders and files that other users could have written are
# ignored, with one warning.
#
# The environment variable VKDISPATCH_CACHE names another folder; `off` or `0` disables the cache. A word
# such as `1`, which is probably not meant as a folder, raises ArgumentValueError.


# Paths are str: importing pathlib would dominate the time of a warm start.

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
    top = _top()
    if top is None:
        return {}
    usage: dict[str, Usage] = {}
    with top:
        for _, kind, _, size in sorted(_files(top), key=lambda file: file[1]):
            before = usage.get(kind, Usage(0, 0))
            usage[kind] = Usage(before.count + 1, before.size + size)
    return usage


def size() -> int:
    """Return the bytes of all entries together."""
    return sum(usage.size for usage in entries().values())


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
        home = os.environ.get("HOME", "")
        for base in (os.environ.get("XDG_CACHE_HOME", ""), os.path.join(home, ".cache")):
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


def _files(top: PrivateFolder, stale_s: float | None = None) -> list[_File]:
    """Return all entries. With `stale_s`, delete unfinished files that are so many seconds old."""
    files: list[_File] = []
    for kind in top.list():
        try:
            if not kind.is_dir(follow_symlinks=False):
                continue
            with top.subfolder(kind.name) as folder:
                files += _files_of(kind.name, folder, stale_s)
        except OSError:
            continue  # deleted, or not trusted, of which `load` warns
    return files


def _files_of(kind: str, folder: PrivateFolder, stale_s: float | None) -> list[_File]:
    files = []
    for item in folder.list():
        whole = item.name.endswith(_SUFFIX) and len(item.name) == _NAME + len(_SUFFIX)
        if not (whole or item.name.endswith(_PARTIAL)):
            continue
        try:
            status = item.stat(follow_symlinks=False)
        except OSError:
            continue  # another process has just deleted it
        if whole:
            files.append((status.st_mtime, kind, item.name, status.st_size))
        elif stale_s is not None and _age(status.st_mtime) >= stale_s:
            folder.delete(item.name)
    return files


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
