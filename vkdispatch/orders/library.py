"""Shared libraries of native code: built once, stored on disk, loaded into the process."""

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

from vkdispatch.orders import compilers, self_test
from vkdispatch.orders.arguments import Grid

_MESSAGE_SIZE = 1024  # bytes
_SELF_TEST_SECONDS = 120


class Library:
    """The loaded native code of an order.

    Attributes
    ----------
    key
        The hash of everything that determines its contents.
    """

    def __init__(self, key: str, content: bytes) -> None:
        self.key = key
        self._loaded = _load(key, content)

    def devices(self) -> tuple[int, str]:
        """Return the number of devices, and a message if there is none."""
        return self._call("accelpy_devices")

    def run(self, pointers: Any, extents: Any, grid: Grid, run_id: int, device: int) -> str | None:
        """Run the body without holding the GIL. Return an error message, or None."""
        counts = (ctypes.c_int32 * 9)(*grid.members, *grid.teams, *grid.assignments)
        numbers = (ctypes.c_int64(run_id), ctypes.c_int32(device))
        return self.call("accelpy_run", pointers, extents, counts, *numbers)

    def call(self, name: str, *args: Any) -> str | None:
        """Call another function of the library. Return an error message, or None."""
        status, message = self._call(name, *args)
        return (message or f"status {status}") if status else None

    def _call(self, name: str, *args: Any) -> tuple[int, str]:
        message = ctypes.create_string_buffer(_MESSAGE_SIZE)
        status = int(getattr(self._loaded, name)(*args, message, ctypes.c_int64(_MESSAGE_SIZE)))
        return status, message.value.decode(errors="replace")


def hash_library(compiler: compilers.Compiler, options: Sequence[str], source: compilers.Source) -> str:
    """Return the hash of everything that determines a library."""
    producer = (platform.machine(), compiler.path, compiler.version, *compiler.words)
    parts = (*producer, "\n", *options, "\n", source.text)
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def is_stored(compiler: compilers.Compiler, options: Sequence[str], source: compilers.Source) -> bool:
    """Whether the library of a source is loaded or stored, so that nothing needs to be compiled."""
    key = hash_library(compiler, options, source)
    return key in _loaded or compilers.load(key) is not None


def build_library(
    compiler: compilers.Compiler, options: Sequence[str], source: compilers.Source
) -> tuple[str, bytes]:
    """Return the key and the contents of the library of a source, stored or compiled now.

    Raises
    ------
    BuildFailure
        The source does not compile.
    """
    key = hash_library(compiler, options, source)
    content = compilers.load(key)
    if content is None:
        content = compilers.compile_library(compiler, options, source)
        compilers.store(key, content)
    return key, content


def load_library(compiler: compilers.Compiler, options: Sequence[str], source: compilers.Source) -> Library:
    """Return the loaded library of a source. A process loads it once.

    Raises
    ------
    BuildFailure
        The source does not compile, or the library cannot be loaded.
    """
    key = hash_library(compiler, options, source)
    with _lock:
        library = _loaded.get(key)
        if library is None:
            library = _loaded[key] = Library(*build_library(compiler, options, source))
    return library


def test_compiler(compiler: compilers.Compiler, options: Sequence[str], source: compilers.Source) -> None:
    """Test a compiler once for each version: build code that copies an array, and run it in a new process.

    Raises
    ------
    BuildFailure
        The code does not compile, does not run or gives another array.
    """
    key = f"works\n{hash_library(compiler, options, source)}"
    with _lock:
        if key in _tested or compilers.load(key):
            _tested.add(key)
            return
        _, content = build_library(compiler, options, source)
        failure = _run_self_test(content)
        if failure:
            raise compilers.BuildFailure(f"{compiler.title}: its self-test failed: {failure}")
        compilers.store(key, b"yes")
        _tested.add(key)


_lock = threading.RLock()
_loaded: dict[str, Library] = {}
_tested: set[str] = set()
_serials = itertools.count()


def _load(key: str, content: bytes) -> ctypes.CDLL:
    """Load a library from its contents, by way of a copy that no other user can access."""
    try:
        return _load_from_memory(key, content)
    except OSError:
        pass  # memfd is not available, or not executable
    with tempfile.TemporaryDirectory(prefix="vkdispatch-order-") as folder:
        path = os.path.join(folder, f"{key}.so")
        with open(path, "wb") as file:
            file.write(content)
        try:
            return ctypes.CDLL(path)
        except OSError as error:
            # usually an undefined function that the body calls
            reason = str(error).replace(f"{path}: ", "")
            raise compilers.CompileFailure(f"the library cannot be loaded: {reason}") from None


def _load_from_memory(key: str, content: bytes) -> ctypes.CDLL:
    """Load a library from an anonymous file in memory. Raises OSError."""
    if not hasattr(os, "memfd_create"):
        raise OSError(errno.ENOSYS, "no memfd_create")
    descriptor = os.memfd_create(f"vkdispatch-order-{key}")
    with open(descriptor, "wb", buffering=0) as file:
        left = memoryview(content)
        while left:
            left = left[file.write(left) :]
        return ctypes.CDLL(_make_path(descriptor))


def _make_path(descriptor: int) -> str:
    """Return a path of an open file that this process has not used before."""
    # The loader takes a known path for the same library, and file descriptors are reused.
    steps = "".join("/." if bit == "1" else "/" for bit in f"{next(_serials):b}")
    return f"/proc/self/fd{steps}/{descriptor}"


def _run_self_test(content: bytes) -> str | None:
    """Run the self-test in another process, which a compiler's runtime may terminate."""
    with tempfile.TemporaryDirectory(prefix="vkdispatch-order-") as folder:
        path = os.path.join(folder, "selftest.so")
        with open(path, "wb") as file:
            file.write(content)
        try:
            done = compilers.run_program(
                [sys.executable, "-I", "-S", self_test.__file__, path], _SELF_TEST_SECONDS
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    if done.returncode == 0:
        return None
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[-1] if lines else f"exit status {done.returncode}"
