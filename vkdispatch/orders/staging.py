"""Where arguments are while native code on the host computes with them."""

import ctypes
import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from vkdispatch.orders.arguments import Argument, Array

Layout = Literal["C", "F"]


class HostPlacement:
    """The arguments in memory of the host, each contiguous: in place where it is so already.

    Parameters
    ----------
    arguments
        What is placed.
    layout
        "C": the last index is the fastest, or "F": the first.

    Attributes
    ----------
    pointers
        An array of the addresses, for native code.
    extents
        For each argument its shape and its strides, in elements, one after another, as an array of int64.
    """

    def __init__(self, arguments: Sequence[Argument], layout: Layout) -> None:
        self.arguments = tuple(arguments)
        self.layouts = _find_layouts(arguments, layout)
        # what is one array stays one, also where it is copied
        known = {argument.memory: argument for argument in arguments}
        places = {memory: _make_contiguous(argument, layout) for memory, argument in known.items()}
        self.arrays = [places[argument.memory] for argument in arguments]
        # Not every compiler can map sections of no elements: there is always room for one.
        self._memory = [array if array.size else np.zeros(1, array.dtype) for array in self.arrays]
        self.pointers = (ctypes.c_void_p * max(1, len(arguments)))(
            *(array.ctypes.data for array in self._memory)
        )
        self.extents = _pack_extents(self.arrays, layout)

    def serves(self, layout: Layout) -> bool:
        """Whether native code that wants this layout may use the arguments where they are."""
        return layout in self.layouts

    def fetch(self) -> None:
        """Write copies of outputs back to where they come from."""
        for argument, array in zip(self.arguments, self.arrays, strict=True):
            if argument.parameter.output and array is not argument.value:
                argument.write(array)

    def close(self) -> None:
        """Do nothing: the memory goes with the object."""


def _pack_extents(arrays: Sequence[Array], layout: Layout) -> Any:
    """Return shapes and strides of arrays, in elements, as native code wants them."""
    numbers = [
        number for array in arrays for number in (*array.shape, *_compute_strides(array.shape, layout))
    ]
    return (ctypes.c_int64 * max(1, len(numbers)))(*numbers)


def _compute_strides(shape: Sequence[int], layout: Layout) -> list[int]:
    # NumPy's are others along axes of one element, and where there are none: nobody steps there
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
