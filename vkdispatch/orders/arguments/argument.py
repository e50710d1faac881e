"""Arguments of an order: arrays and buffers by name."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record

Array = npt.NDArray[Any]


DTYPES = frozenset("?bhilqBHILQefdFD")
"""The type codes of supported dtypes: bool, integers and floats of up to 64 bits, complex64, complex128."""


@record
class Parameter:
    """The properties of an argument that native code is built for.

    Attributes
    ----------
    name
        Its name in the body.
    dtype
        Its NumPy dtype, in native byte order.
    ndim
        The number of dimensions. 0: a scalar, which bodies use by its name.
    is_output
        Whether the body can assign to it.
    """

    name: str
    dtype: np.dtype[Any]
    ndim: int
    is_output: bool

    @property
    def code(self) -> str:
        """The kind and size of an element in bytes, such as "f4": the key of the models' tables of types."""
        return f"{self.dtype.kind}{self.dtype.itemsize}"

    @property
    def is_memory(self) -> bool:
        """Whether it is in memory. Input scalars are passed by value."""
        return self.ndim > 0 or self.is_output


@record(eq=False)
class Argument:
    """A named array, or buffer on a device.

    Attributes
    ----------
    parameter
        Its name and type.
    value
        The array or buffer.
    shape
        Its shape.
    items
        The nested list passed as an output, which is filled from the array; or None.
    """

    parameter: Parameter
    value: "Array | Buffer[Any]"
    shape: tuple[int, ...]
    items: list[Any] | None = None

    @property
    def original(self) -> object:
        """The list, array or buffer that the caller passed."""
        return self.value if self.items is None else self.items

    @property
    def size(self) -> int:
        """Its number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def memory(self) -> Hashable:
        """A key that is equal for arguments that are the same array, and must remain one when copied."""
        value = self.value
        if isinstance(value, Buffer):
            return id(value), self.shape
        return value.ctypes.data, value.shape, value.strides, value.dtype.str

    def read(self) -> Array:
        """Return the contents as an array: the value itself if it is an array."""
        return self.value.read(0) if isinstance(self.value, Buffer) else self.value

    def write(self, array: Array) -> None:
        """Replace the contents."""
        if isinstance(self.value, Buffer):
            self.value.write(np.ascontiguousarray(array))
        else:
            self.value[...] = array

    def load_items(self) -> None:
        """Copy the contents from the list, if there is one. Raises ValueError if its shape has changed."""
        if self.items is None:
            return
        try:
            array = np.asarray(self.items, self.parameter.dtype)
        except (TypeError, ValueError, OverflowError) as error:
            raise ArgumentValueError(
                f"{self._list_name}: numpy.asarray cannot convert it ({error})"
            ) from None
        if array.shape != self.shape:
            raise ArgumentValueError(
                f"{self._list_name}: its shape was {self.shape} before and is {array.shape} now"
            )
        self.write(array)

    def store_items(self) -> None:
        """Fill the list in place, if there is one. Raises ValueError if its shape has changed."""
        if self.items is None:
            return
        if find_list_shape(self.items, len(self.shape)) != self.shape:
            raise ArgumentValueError(
                f"{self._list_name}: its shape was {self.shape} before and is another now"
            )
        _fill_list(self.items, self.read().tolist())

    @property
    def _list_name(self) -> str:
        return f"output {self.parameter.name!r}, a list"

    def copy(self) -> Array:
        """Return a copy of the contents as an array."""
        return np.array(self.read(), dtype=self.parameter.dtype, order="C").reshape(self.shape)


def copy_arguments(arguments: Sequence[Argument]) -> list[Argument]:
    """Return the arguments with copies of the outputs, also where an input is an output too."""
    copies = {argument.memory: argument.copy() for argument in arguments if argument.parameter.is_output}
    return [
        Argument(argument.parameter, copies.get(argument.memory, argument.value), argument.shape)
        for argument in arguments
    ]


def do_overlap(first: Sequence[Argument], second: Sequence[Argument]) -> bool:
    """Whether an output of one group of arguments shares memory with an argument of the other."""
    return any(
        (a.parameter.is_output or b.parameter.is_output) and _may_share(a, b) for a in first for b in second
    )


def _may_share(a: Argument, b: Argument) -> bool:
    if isinstance(a.value, np.ndarray) and isinstance(b.value, np.ndarray):
        return np.may_share_memory(a.value, b.value) or (a.items is not None and a.items is b.items)
    return isinstance(a.value, Buffer) and isinstance(b.value, Buffer) and a.value._native is b.value._native


def find_list_shape(items: object, ndim: int) -> tuple[int, ...] | None:
    """Return the shape of nested lists, or None if their lengths differ or an item is not a list."""
    if ndim == 0:
        return None if isinstance(items, (list, tuple, np.ndarray)) else ()
    if not isinstance(items, list):
        return None
    if not items:
        return (0,) if ndim == 1 else None
    shapes = {find_list_shape(each, ndim - 1) for each in items}
    inner = shapes.pop()
    return None if shapes or inner is None else (len(items), *inner)


def _fill_list(items: list[Any], values: list[Any]) -> None:
    for i, value in enumerate(values):
        if isinstance(value, list):
            _fill_list(items[i], value)
        else:
            items[i] = value


def copy_results(arguments: Sequence[Argument], targets: Sequence[Argument]) -> None:
    """Copy the contents of outputs to other arrays, buffers or lists of the same shapes."""
    results = [argument.read() for argument in arguments if argument.parameter.is_output]
    for result, target in zip(results, targets, strict=True):
        target.write(result.astype(target.parameter.dtype, copy=False))
        target.store_items()
