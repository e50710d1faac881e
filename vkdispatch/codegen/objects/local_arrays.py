"""Arrays of one invocation as a kernel's Python body sees them."""

import math
from typing import Any

from vkdispatch.base.derived_dtypes import wrap_array
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.host_numpy import np
from vkdispatch.codegen.objects.structures import ItemArray, declare_arrays
from vkdispatch.compiler.ir.location import located

__all__ = ["ItemArray", "LocalArray"]

_MOST_ELEMENTS = 1 << 16


class LocalArray(ItemArray):
    """An array of one invocation, made by `vc.local_array`; it is used as any `ItemArray`.

    Names share an array as Python's names share a list; `a[:]` is a copy. The elements of a structure,
    `a[i].x`, are read and written as those of a buffer; `a[i]` by itself is a copy of the whole element.

    Attributes
    ----------
    var_type
        dtype of an element: a structure where the elements are dataclasses.
    """

    __slots__ = ()

    def __init__(
        self, kind: DType, shape: tuple[int, ...], name: str | None = None, owner: type[Any] | None = None
    ) -> None:
        """Declare an array of zeros; `owner` is the dataclass of its elements, if any."""
        array = wrap_array(kind, shape)
        super().__init__(declare_arrays(array, name), (), (), array, owner)

    def _copy(self, name: str | None = None) -> "LocalArray":
        copy = LocalArray(self.var_type, self.shape, name, self._owner)
        copy._take(self)
        return copy


def checked_shape(shape: Any) -> tuple[int, ...]:
    """Return the shape of a local array. Raises TypeError or ValueError for what is none."""
    axes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    for count in axes:
        if isinstance(count, (bool, np.bool_)) or not isinstance(count, (int, np.integer)):
            raise located(
                ArgumentTypeError,
                f"local_array: the count of elements must be an int of Python's, or a tuple of them, got "
                f"{count!r}",
            )
    if not axes or min(axes) < 1 or math.prod(map(int, axes)) > _MOST_ELEMENTS:
        raise located(
            ArgumentValueError, f"local_array: expected 1 to {_MOST_ELEMENTS} elements, got {shape}"
        )
    return tuple(map(int, axes))
