"""Fast Fourier transforms: kernels generated for each length, open to the user's own code."""

from vkdispatch.fft import scipy_backend
from vkdispatch.fft.api import any_axes, convolutions, frequencies, shaders, sources, transforms
from vkdispatch.fft.api.any_axes import *  # noqa: F403
from vkdispatch.fft.api.convolutions import *  # noqa: F403
from vkdispatch.fft.api.frequencies import *  # noqa: F403
from vkdispatch.fft.api.shaders import *  # noqa: F403
from vkdispatch.fft.api.sources import *  # noqa: F403
from vkdispatch.fft.api.transforms import *  # noqa: F403
from vkdispatch.fft.convolve.kernels import get_transposed_size
from vkdispatch.fft.line.context import (
    FFTContext,
    IOManager,
    fft_context,
    global_reads_iterator,
    global_trasposed_write_iterator,
    global_writes_iterator,
    memory_reads_iterator,
    memory_writes_iterator,
)
from vkdispatch.fft.line.resources import FFTConfig, FFTGridManager, FFTResources, FFTSDataManager
from vkdispatch.fft.plan.stages import pad_dim
from vkdispatch.fft.trace.io import IOProxy
from vkdispatch.fft.trace.ops import (
    GlobalReadOp,
    GlobalTransposedWriteOp,
    GlobalWriteOp,
    MemoryOp,
    mapped_kernel_index,
    read_op,
    write_op,
)
from vkdispatch.fft.trace.transform import FFTRegisters

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
    "fft_context",
    "get_transposed_size",
    "global_reads_iterator",
    "global_trasposed_write_iterator",
    "global_writes_iterator",
    "mapped_kernel_index",
    "memory_reads_iterator",
    "memory_writes_iterator",
    "pad_dim",
    "read_op",
    "scipy_backend",
    "write_op",
]
__all__ += any_axes.__all__
__all__ += shaders.__all__
__all__ += convolutions.__all__
__all__ += frequencies.__all__
__all__ += sources.__all__
__all__ += transforms.__all__


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__})
