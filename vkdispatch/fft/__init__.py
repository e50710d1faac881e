"""Fast Fourier transforms: kernels generated for each length, open to the user's own code."""

from vkdispatch.fft import any_axes, frequencies, functions, scipy_backend, shader_factories, src_functions
from vkdispatch.fft.any_axes import *  # noqa: F403
from vkdispatch.fft.frequencies import *  # noqa: F403
from vkdispatch.fft.functions import *  # noqa: F403
from vkdispatch.fft.kernels.context import (
    FFTConfig,
    FFTContext,
    FFTGridManager,
    FFTResources,
    FFTSDataManager,
    IOManager,
    fft_context,
    global_reads_iterator,
    global_trasposed_write_iterator,
    global_writes_iterator,
    memory_reads_iterator,
    memory_writes_iterator,
)
from vkdispatch.fft.plan.stages import pad_dim
from vkdispatch.fft.shader_factories import *  # noqa: F403
from vkdispatch.fft.src_functions import *  # noqa: F403
from vkdispatch.fft.trace.ops import (
    GlobalReadOp,
    GlobalTransposedWriteOp,
    GlobalWriteOp,
    IOProxy,
    MemoryOp,
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
    "global_reads_iterator",
    "global_trasposed_write_iterator",
    "global_writes_iterator",
    "memory_reads_iterator",
    "memory_writes_iterator",
    "pad_dim",
    "read_op",
    "scipy_backend",
    "write_op",
]
__all__ += any_axes.__all__
__all__ += frequencies.__all__
__all__ += functions.__all__
__all__ += shader_factories.__all__
__all__ += src_functions.__all__


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__})
