"""CUDA's streams and allocators: for programs that use PyTorch or CuPy and vkdispatch on one GPU.

DLPack shares arrays without this module: `torch.from_dlpack(buf)`, and tensors as arguments of kernels.
"""

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.context import Context, get_context
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.sharing.cuda import LEGACY_STREAM, CudaLink, current_stream, find_link, parse_stream

__all__ = ["cupy_allocator", "stream", "torch_pool"]


@contextmanager
def stream(s: Any = None, *, context: Context | None = None) -> Iterator[None]:
    """Order kernels and functions in a `with` block between the work of a CUDA stream.

    Kernels in the block start after the work that was submitted to the stream before the block. Work that is
    submitted to the stream after the block starts after these kernels. The host does not wait. A block costs
    two switches between the APIs of about 160 us each on the GPU, so put as much work as possible into it.

    Parameters
    ----------
    s
        A stream of PyTorch, CuPy or cuda-core, or its handle as an int. None means the current stream of
        PyTorch or CuPy, else the default stream.
    context
        None means the current context.

    Raises
    ------
    TypeError, ValueError
        `s` is not a stream.
    BufferError
        CUDA does not support the context's device, or cuda-bindings is not installed.
    """
    link = find_link(context or get_context())
    handle = current_stream() if s is None else parse_stream(s, "s")
    if handle is None:
        raise ArgumentValueError("s: expected a CUDA stream, got -1")
    link.take(handle)
    try:
        yield
    finally:
        link.give(handle)


class _Allocator:
    """Allocates memory that CUDA and a context know, as buffers, by address."""

    def __init__(self, link: CudaLink, context: Context) -> None:
        self._link = link
        self._context = context
        self._mutex = threading.Lock()
        self._buffers: dict[int, Buffer[Any]] = {}

    def allocate(self, size: int) -> int:
        """Return the address of new memory; 0 if there is none left."""
        try:
            buffer: Buffer[Any] = Buffer((max(size, 1) + 3 & ~3,), dtype.uint8, context=self._context)
            address = self._link.lend_for_good(buffer._native)
            self._link.give(LEGACY_STREAM)
        except Exception:
            return 0
        with self._mutex:
            self._buffers[address] = buffer
        return address

    def free(self, address: int) -> None:
        """Free memory of `allocate`, after CUDA's work up to now."""
        with self._mutex:
            buffer = self._buffers.pop(address, None)
        if buffer is not None:
            self._link.take_back(None)


_kept: list[Any] = []  # what PyTorch calls


def torch_pool(context: Context | None = None) -> Any:
    """Return a `torch.cuda.MemPool` whose tensors can be kernel arguments without a copy.

    Tensors that are created in `with torch.cuda.use_mem_pool(pool):` are in memory of the context.

    Raises
    ------
    ImportError
        PyTorch is not installed.
    BufferError
        CUDA does not support the context's device, or cuda-bindings is not installed.
    """
    import torch

    place = context or get_context()
    allocator = _Allocator(find_link(place), place)
    allocate = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)(
        lambda size, device, handle: allocator.allocate(size)
    )
    free = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)(
        lambda address, size, device, handle: allocator.free(address or 0)
    )
    _kept.append((allocate, free))
    functions = [ctypes.cast(each, ctypes.c_void_p).value for each in (allocate, free)]
    pluggable = torch._C._cuda_customAllocator(*functions)
    _kept.append(pluggable)
    return torch.cuda.MemPool(pluggable)


def cupy_allocator(context: Context | None = None) -> Any:
    """Return an allocator for `cupy.cuda.set_allocator`, whose arrays can be kernel arguments without a copy.

    Raises
    ------
    ImportError
        CuPy is not installed.
    BufferError
        CUDA does not support the context's device, or cuda-bindings is not installed.
    """
    import cupy

    place = context or get_context()
    allocator = _Allocator(find_link(place), place)
    plain = cupy.cuda.PythonFunctionAllocator(
        lambda size, device: allocator.allocate(size), lambda address, device: allocator.free(address)
    )
    pool = cupy.cuda.MemoryPool(plain.malloc)
    _kept.append((plain, pool))
    return pool.malloc
