"""Constant arrays: numbers that travel with a kernel."""

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from vkdispatch.base import dtype as dt
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.host_numpy import np
from vkdispatch.compiler.ir.location import located

_MAX_AXES = 3
_watching = threading.local()


@contextmanager
def watch_copies() -> Iterator[list[Any]]:
    """Collect the arrays that this thread makes constant arrays of meanwhile."""
    outer = getattr(_watching, "arrays", None)
    copied: list[Any] = []
    _watching.arrays = copied
    try:
        yield copied
    finally:
        _watching.arrays = outer
        if outer is not None:
            outer += copied


class ConstantArray:
    """Numbers that kernels read and nobody writes; `vc.constant_array` makes them part of a kernel.

    Kernels that are given the same object share one copy in device memory, which lives as long as it. Two
    objects are never equal, whatever they hold.

    Attributes
    ----------
    array
        The numbers: a read-only, C-contiguous copy of what was given, of one axis where that had more than 3.
    var_type
        dtype of an element.
    shape
        Elements along each axis.
    size
        Number of elements.
    """

    __slots__ = ("__weakref__", "array", "shape", "size", "var_type")

    array: "np.ndarray[Any, Any]"
    var_type: dt.DType
    shape: tuple[int, ...]
    size: int

    def __init__(self, array: "np.ndarray[Any, Any]") -> None:
        """Copy an array.

        Parameters
        ----------
        array
            A NumPy array of a dtype that buffers have. Its byte order does not matter.

        Raises
        ------
        TypeError
            It is no NumPy array.
        ValueError
            It is empty, or has another dtype.
        """
        if not isinstance(array, np.ndarray):
            raise located(
                ArgumentTypeError,
                f"constant array: expected a NumPy array, got {type(array).__name__}; use np.asarray(...)",
            )
        if array.dtype.hasobject or array.dtype.names is not None:
            raise located(
                ArgumentValueError, f"constant array: an array of dtype {array.dtype} holds no plain numbers"
            )
        host = array.dtype.newbyteorder("=")
        try:
            self.var_type = dt.from_numpy_dtype(host)
        except ArgumentValueError as error:
            raise located(ArgumentValueError, f"constant array: {error}") from None
        if array.size == 0:
            raise located(
                ArgumentValueError,
                f"constant array: needs at least one element, got an array of the shape {array.shape}",
            )
        shape = array.shape if array.ndim <= _MAX_AXES else (array.size,)
        copy = np.array(array, host, order="C", subok=False).reshape(shape)
        copy.flags.writeable = False
        watched = getattr(_watching, "arrays", None)
        if watched is not None:
            watched.append(array)
        self.array = copy
        self.shape = tuple(map(int, shape))
        self.size = math.prod(self.shape)

    def holds(self, array: "np.ndarray[Any, Any]") -> bool:
        """Whether an array has the same dtype and the same bits."""
        if array.size != self.size or array.dtype.newbyteorder("=") != self.array.dtype:
            return False
        other = np.ascontiguousarray(array, self.array.dtype)
        return bool(np.array_equal(self.array.reshape(-1).view(np.uint8), other.reshape(-1).view(np.uint8)))

    def __repr__(self) -> str:
        return f"<vc.ConstantArray of {self.var_type.name}, shape {self.shape}>"
