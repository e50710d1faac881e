"""Shared libraries of native code: built once, kept on disk, loaded into the process."""

import ctypes
import errno
import hashlib
import itertools
import os
import platform
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from typing import Any

from vkdispatch.orders import selftest, storage
from vkdispatch.orders.compilers import (
    BuildFailure,
    CompileFailure,
    Compiler,
    Source,
    compile_library,
    run_program,
)
from vkdispatch.orders.grid import Grid

_ROOM = 1024  # bytes for a message of native code
_SELF_TEST_S = 120


class Library:
    """Native code of one order, loaded.

    Attributes
    ----------
    key
        The hash of all that it was made of.
    """

    def __init__(self, key: str, content: bytes) -> None:
        self.key = key
        self._loaded = _load(key, content)
        self._run = self._loaded.accelpy_run
        self._run.restype = ctypes.c_int32

    def devices(self) -> tuple[int, str]:
        """Return how many devices it finds, and what it says where there is none."""
        return self._call(self._loaded.accelpy_devices)

    def run(self, pointers: Any, extents: Any, grid: Grid, run_id: int, device: int) -> str | None:
        """Run the body, and return what is wrong, or None. Python's lock is free meanwhile."""
        counts = (ctypes.c_int32 * 9)(*grid.members, *grid.teams, *grid.assignments)
        status, message = self._call(
            self._run, pointers, extents, counts, ctypes.c_int64(run_id), ctypes.c_int32(device)
        )
        return (message or f"status {status}") if status else None

    def call(self, name: str, *args: Any) -> str | None:
        """Call another function of it, and return what is wrong, or None."""
        status, message = self._call(getattr(self._loaded, name), *args)
        return (message or f"status {status}") if status else None

    def _call(self, function: Any, *args: Any) -> tuple[int, str]:
        message = ctypes.create_string_buffer(_ROOM)
        status = int(function(*args, message, ctypes.c_int64(_ROOM)))
        return status, message.value.decode(errors="replace")


def library_key(compiler: Compiler, options: Sequence[str], source: Source) -> str:
    """Return the hash of all that a library follows from."""
    made_by = (platform.machine(), compiler.path, compiler.version, *compiler.words)
    parts = (*made_by, "\n", *options, "\n", source.text)
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def is_stored(compiler: Compiler, options: Sequence[str], source: Source) -> bool:
    """Whether the library of a source is there, and nothing is to be compiled."""
    key = library_key(compiler, options, source)
    return key in _loaded or storage.load(key) is not None


def build_library(compiler: Compiler, options: Sequence[str], source: Source) -> tuple[str, bytes]:
    """Return the key and the content of the library of a source: kept, or compiled now.

    Raises
    ------
    BuildFailure
        It does not compile.
    """
    key = library_key(compiler, options, source)
    content = storage.load(key)
    if content is None:
        content = compile_library(compiler, options, source)
        storage.store(key, content)
    return key, content


def load_library(compiler: Compiler, options: Sequence[str], source: Source) -> Library:
    """Return the library of a source, loaded. One that the process has already is not loaded again.

    Raises
    ------
    BuildFailure
        It does not compile, or cannot be loaded.
    """
    key = library_key(compiler, options, source)
    with _lock:
        found = _loaded.get(key)
        if found is None:
            found = _loaded[key] = Library(*build_library(compiler, options, source))
    return found


def test_compiler(compiler: Compiler, options: Sequence[str], source: Source) -> None:
    """Have a compiler build a copy of an array, and a process of its own run that: once for each version.

    Raises
    ------
    BuildFailure
        It does not compile, does not run or gives another array.
    """
    key = f"works\n{library_key(compiler, options, source)}"
    with _lock:
        if key in _tested or storage.load(key):
            _tested.add(key)
            return
        _, content = build_library(compiler, options, source)
        said = _run_self_test(content)
        if said:
            raise BuildFailure(f"{compiler.title}: its self-test failed: {said}")
        storage.store(key, b"yes")
        _tested.add(key)


_lock = threading.RLock()
_loaded: dict[str, Library] = {}
_tested: set[str] = set()
_serials = itertools.count()


def _load(key: str, content: bytes) -> ctypes.CDLL:
    """Load the bytes that were checked, from a copy that no other user can reach."""
    # The loader wants a file, for as long as it takes to map it.
    try:
        return _load_from_memory(key, content)
    except OSError:
        pass  # there is no such memory, or nothing there may be executed
    with tempfile.TemporaryDirectory(prefix="vkdispatch-order-") as folder:
        path = os.path.join(folder, f"{key}.so")
        with open(path, "wb") as file:
            file.write(content)
        try:
            return ctypes.CDLL(path)
        except OSError as error:
            # most often a function that the body calls, and nobody has
            said = str(error).replace(f"{path}: ", "")
            raise CompileFailure(f"the library cannot be loaded: {said}") from None


def _load_from_memory(key: str, content: bytes) -> ctypes.CDLL:
    """Load from memory that has no name in any folder. Raises OSError."""
    if not hasattr(os, "memfd_create"):
        raise OSError(errno.ENOSYS, "no files in memory")
    descriptor = os.memfd_create(f"vkdispatch-order-{key}")
    with open(descriptor, "wb", buffering=0) as file:
        left = memoryview(content)
        while left:
            left = left[file.write(left) :]
        return ctypes.CDLL(_make_path(descriptor))


def _make_path(descriptor: int) -> str:
    """Return a path of an open file that this process has not used before."""
    # What has a name that was loaded before is taken for the same library, and numbers of files come back.
    steps = "".join("/." if bit == "1" else "/" for bit in f"{next(_serials):b}")
    return f"/proc/self/fd{steps}/{descriptor}"


def _run_self_test(content: bytes) -> str | None:
    """Run the self-test where it can do no harm: runtimes of compilers may end the process."""
    with tempfile.TemporaryDirectory(prefix="vkdispatch-order-") as folder:
        path = os.path.join(folder, "selftest.so")
        with open(path, "wb") as file:
            file.write(content)
        try:
            done = run_program([sys.executable, "-I", "-S", selftest.__file__, path], _SELF_TEST_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    if done.returncode == 0:
        return None
    said = (done.stdout + done.stderr).strip().splitlines()
    return said[-1] if said else f"exit status {done.returncode}"
