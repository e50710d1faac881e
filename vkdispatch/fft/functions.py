"""The functions of vkdispatch 0.1.0's module of this name; `vkdispatch.fft` has them too."""

from collections.abc import Sequence
from typing import Any

from vkdispatch.base.dtype import DType
from vkdispatch.fft.api import convolutions, transforms
from vkdispatch.fft.api.convolutions import *  # noqa: F403
from vkdispatch.fft.api.transforms import *  # noqa: F403
from vkdispatch.fft.arguments import ensure_supported_complex_precision, resolve_input_type
from vkdispatch.shader.map import MappingFunction

__all__ = ["ensure_supported_complex_precision"]
__all__ += convolutions.__all__
__all__ += transforms.__all__


def _resolve_input_precision(
    buffers: Sequence[Any],
    input_map: MappingFunction | None,
    output_map: MappingFunction | None,
    input_type: DType | None,
    output_precision: DType | None,
) -> DType | None:
    """Return the type of the buffer that is read, or None if a map reads.

    Programs call it, and replace this module's `ensure_supported_complex_precision`, which it uses.
    """
    check = ensure_supported_complex_precision
    return resolve_input_type(buffers, input_map, output_map, input_type, output_precision, check=check)
