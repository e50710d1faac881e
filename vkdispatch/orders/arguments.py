"""The arguments of an Accel: what is given before and after the order, by name."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import to_numpy_dtype
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, VkDispatchError
from vkdispatch.base.record import record
from vkdispatch.orders.order import Order

Array = npt.NDArray[Any]

DTYPES = frozenset("?bhilqBHILQefdFD")
"""The type codes of what orders compute with: bool, integers and floats of up to 64 bits, complex ones."""


@record
class Parameter:
    """What native code knows of an argument when it is built.

    Attributes
    ----------
    name
        Its name in the body.
    dtype
        Its NumPy dtype, in this machine's byte order.
    ndim
        Its dimensions; none: a scalar, which bodies use by its name.
    output
        Whether the body may assign to it.
    """

    name: str
    dtype: np.dtype[Any]
    ndim: int
    output: bool

    @property
    def code(self) -> str:
        """The kind and the bytes of an element, such as "f4": models have tables of types by it."""
        return f"{self.dtype.kind}{self.dtype.itemsize}"

    @property
    def bound(self) -> bool:
        """Whether it is memory. Scalars that are inputs are values."""
        return self.ndim > 0 or self.output


@record(eq=False)
class Argument:
    """An array, or a buffer on a device, by name.

    Attributes
    ----------
    parameter
        What is known of it beforehand.
    value
        The array or buffer.
    shape
        Its shape.
    """

    parameter: Parameter
    value: "Array | Buffer[Any]"
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Its number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def memory(self) -> Hashable:
        """What arguments have in common that are one array: they stay one wherever they are copied to."""
        value = self.value
        if isinstance(value, Buffer):
            return id(value), self.shape
        return value.ctypes.data, value.shape, value.strides, value.dtype.str

    def read(self) -> Array:
        """Return the contents as an array: the value itself, where that is one."""
        return self.value.read(0) if isinstance(self.value, Buffer) else self.value

    def write(self, array: Array) -> None:
        """Replace the contents."""
        if isinstance(self.value, Buffer):
            self.value.write(np.ascontiguousarray(array))
        else:
            self.value[...] = array

    def copy(self) -> Array:
        """Return the contents as an array of its own."""
        return np.array(self.read(), dtype=self.parameter.dtype, order="C").reshape(self.shape)


def twins(arguments: Sequence[Argument]) -> list[Argument]:
    """Return arguments with the same contents, whose outputs, and inputs that are outputs too, are copies."""
    copies = {argument.memory: argument.copy() for argument in arguments if argument.parameter.output}
    return [
        Argument(argument.parameter, copies.get(argument.memory, argument.value), argument.shape)
        for argument in arguments
    ]


def plain(given: object) -> object:
    """Return a number of NumPy as one of Python, and anything else as it is."""
    return given.item() if isinstance(given, np.generic) else given


def split(args: Sequence[object]) -> tuple[Order, Sequence[object], Sequence[object]]:
    """Return the order among the arguments of an Accel, what stands before and what after it.

    Raises
    ------
    TypeError
        There is no order, or more than one.
    """
    places = [place for place, item in enumerate(args) if isinstance(item, Order)]
    if len(places) != 1:
        raise ArgumentTypeError(
            f"Accel: expected one Order among them, as in Accel(a, Order(text), b), got {len(places)}"
        )
    order = args[places[0]]
    assert isinstance(order, Order)
    return order, args[: places[0]], args[places[0] + 1 :]


def make_arguments(order: Order, inputs: Sequence[object], outputs: Sequence[object]) -> tuple[Argument, ...]:
    """Return inputs and outputs as arguments, with the names that the order has for them.

    Raises
    ------
    TypeError
        An output is no array, or a dtype is none that native code computes with.
    ValueError
        The order names more or fewer of them, or an output cannot be written to.
    """
    ours = _named(inputs, order.inputs, "input", order)
    theirs = _named(outputs, order.outputs, "output", order)
    return (
        *(
            _argument(name, value, f"input {name!r} (argument {i + 1})")
            for i, (name, value) in enumerate(ours)
        ),
        *(
            _argument(name, value, f"output {name!r} (number {i + 1} after the order)", output=True)
            for i, (name, value) in enumerate(theirs)
        ),
    )


def _named(
    values: Sequence[object], names: tuple[str, ...] | None, what: str, order: Order
) -> list[tuple[str, object]]:
    if names is None:
        names = tuple(f"accelpy_{what[:-3]}{i}" for i in range(len(values)))
    if len(names) != len(values):
        before = "before" if what == "input" else "after"
        raise ArgumentValueError(
            f"Accel: the order names {len(names)} {what}s ({', '.join(names)}), and {len(values)} are given "
            f"{before} it; set_argnames in {order.label} says how many there are"
        )
    return list(zip(names, values, strict=True))


def _argument(name: str, given: object, what: str, *, output: bool = False) -> Argument:
    if isinstance(given, Buffer):
        dtype, shape = _layout(given, what)
        return Argument(Parameter(name, dtype, len(shape), output), given, shape)
    if output and not isinstance(given, np.ndarray):
        raise ArgumentTypeError(
            f"{what}: expected a NumPy array, which is filled in place, got {type(given).__name__}; "
            f"numpy.zeros makes one"
        )
    try:
        array = np.asarray(given)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(f"{what}: numpy.asarray makes no array of it ({error})") from None
    if array.dtype.char not in DTYPES:
        raise ArgumentTypeError(
            f"{what}: native code has no type for the dtype {array.dtype}; bool, integers and floats of up "
            f"to 64 bits, complex64 and complex128 would do"
        )
    if output and not array.flags.writeable:
        raise ArgumentValueError(f"{what}: this array is read-only, and outputs are filled in place")
    # What NumPy has two names for (long and long long) is one parameter, and one library.
    dtype = np.dtype(f"{array.dtype.kind}{array.dtype.itemsize}")
    return Argument(Parameter(name, dtype, array.ndim, output), array, array.shape)


def _layout(buffer: "Buffer[Any]", what: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
    kind = buffer.var_type
    scalar = getattr(kind, "scalar", None) or kind
    try:
        dtype = np.dtype(to_numpy_dtype(scalar))
    except (VkDispatchError, TypeError):
        raise ArgumentTypeError(f"{what}: NumPy has no type for elements of {kind.name}") from None
    elements = () if scalar is kind else tuple(kind.true_numpy_shape)
    return dtype, (*buffer.shape, *elements)
