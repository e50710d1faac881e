"""Fast Fourier transforms: kernels generated for each length, open to the user's own code."""

import typing as _typing

from vkdispatch.base import list_public as _list_public
from vkdispatch.base import names_elsewhere as _names_elsewhere

if _typing.TYPE_CHECKING:
    from vkdispatch.fft import scipy_backend as scipy_backend
    from vkdispatch.fft.any_axes import *  # noqa: F403
    from vkdispatch.fft.frequencies import *  # noqa: F403
    from vkdispatch.fft.functions import *  # noqa: F403
    from vkdispatch.fft.kernels.context import *  # noqa: F403
    from vkdispatch.fft.plan.stages import pad_dim as pad_dim
    from vkdispatch.fft.shader_factories import *  # noqa: F403
    from vkdispatch.fft.src_functions import *  # noqa: F403
    from vkdispatch.fft.trace.ops import *  # noqa: F403
    from vkdispatch.fft.trace.transform import FFTRegisters as FFTRegisters
else:
    __getattr__ = _names_elsewhere(
        __name__,
        {
            "fft.any_axes": "*",
            "fft.frequencies": "*",
            "fft.functions": "*",
            "fft.kernels.context": (
                "FFTConfig FFTContext FFTGridManager FFTResources FFTSDataManager IOManager fft_context "
                "global_reads_iterator global_trasposed_write_iterator global_writes_iterator "
                "memory_reads_iterator memory_writes_iterator"
            ),
            "fft.plan.stages": "pad_dim",
            "fft.scipy_backend": "",
            "fft.shader_factories": "*",
            "fft.src_functions": "*",
            "fft.trace.ops": (
                "GlobalReadOp GlobalTransposedWriteOp GlobalWriteOp IOProxy MemoryOp read_op write_op"
            ),
            "fft.trace.transform": "FFTRegisters",
        },
    )
    __dir__ = _list_public(__name__)
