"""The arguments of native code in host memory."""

import ctypes
import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from vkdispatch.orders.arguments.argument import Argument, Array

Layout = Literal["C", "F"]


class HostPlacement:
    """Contiguous arguments in host memory. Arrays that are contiguous already are not copied.

    Parameters
    ----------
    arguments
        The arguments to place.
    layout
        "C": the last index varies fastest. "F": the first one.

    Attributes
    ----------
    pointers
        The addresses, for native code.
    extents
        The shape and the strides, in elements, of each argument, as an array of int64.
    """

    def __init__(self, arguments: Sequence[Argument], layout: Layout) -> None:
        self.arguments = tuple(arguments)
        self.layouts = _find_layouts(arguments, layout)
        # Arguments that are the same array remain one, also when copied., also where it is copied
        known = {argument.memory: argument for argument in arguments}
        places = {memory: _make_contiguous(argument, layout) for memory, argument in known.items()}
        self.arrays = [places[argument.memory] for argument in arguments]
        # Not every compiler can map empty array sections, so each array has memory for one element.
        self._memory = [array if array.size else np.zeros(1, array.dtype) for array in self.arrays]
        self.pointers = (ctypes.c_void_p * max(1, len(arguments)))(
            *(array.ctypes.data for array in self._memory)
        )
        self.extents = _pack_extents(self.arrays, layout)

    def serves(self, layout: Layout) -> bool:
        """Whether native code with this layout can use the arguments."""
        return layout in self.layouts

    def fetch(self) -> None:
        """Copy outputs back to the caller's arrays."""
        for argument, array in zip(self.arguments, self.arrays, strict=True):
            if argument.parameter.is_output and array is not argument.value:
                argument.write(array)

    def close(self) -> None:
        """Do nothing: the memory is freed with the object."""


def _pack_extents(arrays: Sequence[Array], layout: Layout) -> Any:
    """Return shapes and strides of arrays, in elements, for native code."""
    numbers = [
        number for array in arrays for number in (*array.shape, *_compute_strides(array.shape, layout))
    ]
    return (ctypes.c_int64 * max(1, len(numbers)))(*numbers)


def _compute_strides(shape: Sequence[int], layout: Layout) -> list[int]:
    # NumPy's strides may differ along axes of length 0 or 1.
    axes = range(len(shape))
    return [math.prod(shape[d + 1 :] if layout == "C" else shape[:d]) for d in axes]


def _find_layouts(arguments: Sequence[Argument], layout: Layout) -> str:
    return layout if any(len(argument.shape) > 1 for argument in arguments) else "CF"


def _make_contiguous(argument: Argument, layout: Layout) -> Array:
    array = argument.read()
    dtype = argument.parameter.dtype
    fits = (
        array.flags.aligned
        and array.dtype.isnative
        and array.flags["C_CONTIGUOUS" if layout == "C" else "F_CONTIGUOUS"]
    )
    if fits and array.dtype == dtype:
        return array
    return np.array(array, dtype=dtype, order=layout, copy=True)
