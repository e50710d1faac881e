"""Folders that no other user can write to, and the files in them.

Folders and files are checked by their descriptors, and used through the same descriptors: nobody can replace
them between the check and the use. Links are followed on the way to the first folder only, and their targets
are checked as well.

On systems without owners or such descriptors (Windows), folders are used by path, without checks.
"""

import errno
import itertools
import os
import stat
from collections.abc import Iterator
from contextlib import suppress

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

MOST_FILES = 1 << 17
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
        """Yield the entries of the folder, at most `MOST_FILES`; none if it cannot be listed."""
        try:
            items = os.scandir(self.path if self._descriptor is None else self._descriptor)
        except OSError:
            return
        with items:
            yield from itertools.islice(items, MOST_FILES)

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
