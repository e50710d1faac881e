"""CUDA's streams and allocators: for programs that use PyTorch or CuPy and vkdispatch on one GPU.

DLPack shares arrays without this module: `torch.from_dlpack(buf)`, and tensors as arguments of kernels.
"""

import ctypes
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.context import Context, get_context
from vkdispatch.base.errors import ArgumentValueError, SharingError
from vkdispatch.base.native_module import native
from vkdispatch.base.sharing.cuda_link import LEGACY_STREAM, current_stream, find_link, parse_stream

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
        A stream of PyTorch, CuPy or cuda-core, or its handle as an int. None means the stream of PyTorch or
        CuPy that is current on the context's device, else the default stream.
    context
        None means the current context.

    Raises
    ------
    TypeError, ValueError
        `s` is not a stream, or belongs to another device.
    RuntimeError
        The work of the stream is being captured in a CUDA graph, which would not repeat that of the block.
    BufferError
        CUDA does not support the context's device, or cuda-bindings is not installed.
    """
    link = find_link(context or get_context())
    handle = current_stream(link.ordinal) if s is None else parse_stream(s, "s")
    if handle is None:
        raise ArgumentValueError("s: expected a CUDA stream, got -1")
    link.check_stream(handle, "s")
    link.take(handle)
    try:
        yield
    finally:
        link.give(handle)


class _Allocator:
    """Allocates memory that CUDA and a context know, by address."""

    def __init__(self, context: Context | None) -> None:
        self._context = context or get_context()
        self.link = find_link(self._context)
        self._mutex = threading.Lock()
        self._buffers: dict[int, tuple[Buffer[Any], native.Loan]] = {}  # which survive the context

    def allocate(self, size: int, device: int, stream: int) -> int:
        """Return the address of new memory for a stream. Raises if there is none left."""
        if device != self.link.ordinal:
            raise SharingError(
                f"this allocator has memory of CUDA's device {self.link.ordinal}, and is asked for that of "
                f"{device}; make one with a context on that device"
            )
        buffer: Buffer[Any] = Buffer((max(size, 1) + 3 & ~3,), dtype.uint8, context=self._context)
        loan = buffer._native.lend_on_device()
        address = self.link.lend_for_good(buffer._native)
        self.link.give(stream)
        with self._mutex:
            self._buffers[address] = buffer, loan
        return address

    def free(self, address: int, stream: int | None) -> None:
        """Free memory of `allocate`, after CUDA's work up to now on a stream; None means on all of them."""
        with self._mutex:
            _, loan = self._buffers.pop(address, (None, None))
        if loan is not None:
            if stream is None:
                self.link.synchronize()
            self.link.take_back(loan, stream or LEGACY_STREAM)


def _keep_forever(value: object) -> None:
    """Let what PyTorch and CuPy call live longer than Python's modules."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))


def torch_pool(context: Context | None = None) -> Any:
    """Return a `torch.cuda.MemPool` whose tensors can be kernel arguments without a copy.

    Tensors that are created in `with torch.cuda.use_mem_pool(pool):` are in memory of the context. Its device
    must be PyTorch's current one there.

    Raises
    ------
    ImportError
        PyTorch is not installed.
    BufferError
        CUDA does not support the context's device, or cuda-bindings is not installed.
    """
    import torch

    allocator = _Allocator(context)

    def allocate(size: int, device: int, stream: int | None) -> int:
        try:
            return allocator.allocate(size, device, stream or LEGACY_STREAM)
        except MemoryError:
            return 0
        except Exception as error:  # PyTorch says only that memory is short
            warnings.warn(f"vd.cuda.torch_pool: {error}", RuntimeWarning, stacklevel=2)
            return 0

    def free(address: int | None, size: int, device: int, stream: int | None) -> None:
        allocator.free(address or 0, stream or LEGACY_STREAM)

    address, size, number = ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int
    functions = (
        ctypes.CFUNCTYPE(address, size, number, address)(allocate),
        ctypes.CFUNCTYPE(None, address, size, number, address)(free),
    )
    pluggable = torch._C._cuda_customAllocator(
        *(ctypes.cast(function, address).value for function in functions)
    )
    _keep_forever((functions, pluggable))
    with torch.cuda.device(allocator.link.ordinal):  # a pool belongs to the device that is current now
        return torch.cuda.MemPool(pluggable)


def cupy_allocator(context: Context | None = None) -> Any:
    """Return an allocator for `cupy.cuda.set_allocator`, whose arrays can be kernel arguments without a copy.

    Arrays are made on the context's device, which has to be CuPy's current one.

    Raises
    ------
    ImportError
        CuPy is not installed.
    BufferError
        CUDA does not support the context's device, or cuda-bindings is not installed.
    """
    import cupy

    allocator = _Allocator(context)
    ordinal = allocator.link.ordinal

    def allocate(size: int, device: int) -> int:
        stream = int(cupy.cuda.get_current_stream(ordinal).ptr)
        return allocator.allocate(size, device, stream or LEGACY_STREAM)

    plain = cupy.cuda.PythonFunctionAllocator(allocate, lambda address, device: allocator.free(address, None))
    pool = cupy.cuda.MemoryPool(plain.malloc)
    _keep_forever((plain, pool))
    return pool.malloc
