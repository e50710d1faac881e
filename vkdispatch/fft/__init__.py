"""Fast Fourier transforms: kernels generated for each length, open to the user's own code."""

from vkdispatch.fft.context import FFTContext, IOManager, fft_context
from vkdispatch.fft.functions import (
    fft,
    fft2,
    fft3,
    ifft,
    ifft2,
    ifft3,
    irfft,
    irfft2,
    irfft3,
    rfft,
    rfft2,
    rfft3,
)
from vkdispatch.fft.io import IOProxy
from vkdispatch.fft.iterators import (
    global_reads_iterator,
    global_trasposed_write_iterator,
    global_writes_iterator,
    memory_reads_iterator,
    memory_writes_iterator,
)
from vkdispatch.fft.ops import (
    GlobalReadOp,
    GlobalTransposedWriteOp,
    GlobalWriteOp,
    MemoryOp,
    mapped_kernel_index,
    read_op,
    write_op,
)
from vkdispatch.fft.registers import FFTRegisters
from vkdispatch.fft.resources import FFTConfig, FFTGridManager, FFTResources, FFTSDataManager
from vkdispatch.fft.shaders import get_cache_info, make_fft_shader, print_cache_info
from vkdispatch.fft.shapes import pad_dim

__all__ = [
    "FFTConfig",
    "FFTContext",
    "FFTGridManager",
    "FFTRegisters",
    "FFTResources",
    "FFTSDataManager",
    "GlobalReadOp",
    "GlobalTransposedWriteOp",
    "GlobalWriteOp",
    "IOManager",
    "IOProxy",
    "MemoryOp",
    "fft",
    "fft2",
    "fft3",
    "fft_context",
    "get_cache_info",
    "global_reads_iterator",
    "global_trasposed_write_iterator",
    "global_writes_iterator",
    "ifft",
    "ifft2",
    "ifft3",
    "irfft",
    "irfft2",
    "irfft3",
    "make_fft_shader",
    "mapped_kernel_index",
    "memory_reads_iterator",
    "memory_writes_iterator",
    "pad_dim",
    "print_cache_info",
    "read_op",
    "rfft",
    "rfft2",
    "rfft3",
    "write_op",
]
