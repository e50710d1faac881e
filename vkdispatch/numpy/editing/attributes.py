"""Facts about shapes and the order of elements."""

from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.numpy.basics.inputs import to_array
from vkdispatch.numpy.core.array import view_of
from vkdispatch.numpy.core.memory import Shape, is_f_order

__all__ = [
    "broadcast_shapes",
    "isfortran",
]


def broadcast_shapes(*args: Any) -> Shape:
    """Return the shape to which shapes broadcast. See `numpy.broadcast_shapes`. Else raises ValueError.

    Examples
    --------
    >>> vnp.broadcast_shapes((3, 1), (1, 4))
    (3, 4)
    """
    try:
        return np.broadcast_shapes(*args)
    except ValueError as error:
        raise ArgumentValueError(f"broadcast_shapes: {error}") from None


def isfortran(a: Any) -> bool:
    """Whether an array is contiguous in Fortran's order, and not in C's. See `numpy.isfortran`.

    Examples
    --------
    >>> vnp.isfortran(vnp.ones((2, 3)).T)
    True
    """
    view = view_of(to_array(a, "a"))
    return not view.is_contiguous and is_f_order(view)
