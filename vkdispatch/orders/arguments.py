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
    items
        The list that was given for an output, nested as the array is, and is filled from it; or None.
    """

    parameter: Parameter
    value: "Array | Buffer[Any]"
    shape: tuple[int, ...]
    items: list[Any] | None = None

    @property
    def given(self) -> object:
        """What the caller gave for it: the list, or the array or buffer."""
        return self.value if self.items is None else self.items

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

    def load_items(self) -> None:
        """Take the contents from the list, where there is one. Raises ValueError if its shape is another."""
        if self.items is None:
            return
        try:
            array = np.asarray(self.items, self.parameter.dtype)
        except (TypeError, ValueError, OverflowError) as error:
            raise ArgumentValueError(
                f"{self._list_name}: numpy.asarray makes no array of it ({error})"
            ) from None
        if array.shape != self.shape:
            raise ArgumentValueError(
                f"{self._list_name}: its shape was {self.shape} when it was given, and is {array.shape} now"
            )
        self.write(array)

    def store_items(self) -> None:
        """Fill the list, where there is one, in place. Raises ValueError if its shape is another."""
        if self.items is None:
            return
        if _list_shape(self.items, len(self.shape)) != self.shape:
            raise ArgumentValueError(
                f"{self._list_name}: its shape was {self.shape} when it was given, and is another now"
            )
        _fill_list(self.items, self.read().tolist())

    @property
    def _list_name(self) -> str:
        return f"output {self.parameter.name!r}, a list"

    def copy(self) -> Array:
        """Return the contents as an array of its own."""
        return np.array(self.read(), dtype=self.parameter.dtype, order="C").reshape(self.shape)


def copy_arguments(arguments: Sequence[Argument]) -> list[Argument]:
    """Return arguments with the same contents, whose outputs, and inputs that are outputs too, are copies."""
    copies = {argument.memory: argument.copy() for argument in arguments if argument.parameter.output}
    return [
        Argument(argument.parameter, copies.get(argument.memory, argument.value), argument.shape)
        for argument in arguments
    ]


def to_python_number(given: object) -> object:
    """Return a number of NumPy as one of Python, and anything else as it is."""
    return given.item() if isinstance(given, np.generic) else given


def split_arguments(args: Sequence[object]) -> tuple[Order, Sequence[object], Sequence[object]]:
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
        An output is neither an array nor a list, or a dtype is none that native code computes with.
    ValueError
        The order names more or fewer of them, or an output cannot be written to.
    """
    for values, names, what, side in (
        (inputs, order.inputs, "input", "before"),
        (outputs, order.outputs, "output", "after"),
    ):
        if names is not None and len(names) != len(values):
            raise ArgumentValueError(
                f"Accel: the order names {len(names)} {what}s ({', '.join(names)}), and {len(values)} are "
                f"given {side} it; set_argnames in {order.label} says how many there are"
            )
    return _make_all(
        [
            (name, value, f"input {name!r} (argument {i + 1})")
            for i, (name, value) in enumerate(_pair_names(inputs, order.inputs, "in"))
        ],
        [
            (name, value, f"output {name!r} (number {i + 1} after the order)")
            for i, (name, value) in enumerate(_pair_names(outputs, order.outputs, "out"))
        ],
    )


def replace_arguments(arguments: Sequence[Argument], inputs: object, outputs: object) -> tuple[Argument, ...]:
    """Return arguments of the same names, with other inputs or other outputs; None: as they are.

    Raises
    ------
    TypeError, ValueError
        As of `make_arguments`. So if `inputs` or `outputs` is no list or tuple.
    """
    sides = []
    for given, what in ((inputs, "inputs"), (outputs, "outputs")):
        ours = [each for each in arguments if each.parameter.output == (what == "outputs")]
        names = [each.parameter.name for each in ours]
        values = [each.given for each in ours] if given is None else parse_values(given, names, what)
        sides.append(
            [
                (name, value, f"{what}[{i}], {name!r}")
                for i, (name, value) in enumerate(zip(names, values, strict=True))
            ]
        )
    return _make_all(*sides)


def parse_values(given: object, names: Sequence[str], what: str) -> Sequence[object]:
    """Return values for as many names. Raises TypeError or ValueError, which calls them `what`."""
    if not isinstance(given, (list, tuple)):
        raise ArgumentTypeError(
            f"{what}: expected a list or tuple with one for each of {', '.join(names) or 'none'}, got "
            f"{type(given).__name__}"
        )
    if len(given) != len(names):
        raise ArgumentValueError(
            f"{what}: expected {len(names)} ({', '.join(names) or 'none'}), got {len(given)}"
        )
    return given


def do_overlap(ours: Sequence[Argument], theirs: Sequence[Argument]) -> bool:
    """Whether what one group of arguments writes to is also in the other."""
    return any((a.parameter.output or b.parameter.output) and _may_share(a, b) for a in ours for b in theirs)


def copy_results(arguments: Sequence[Argument], targets: Sequence[Argument]) -> None:
    """Copy the contents of outputs to other arrays, buffers or lists of the same shapes."""
    results = [argument.read() for argument in arguments if argument.parameter.output]
    for result, target in zip(results, targets, strict=True):
        target.write(result.astype(target.parameter.dtype, copy=False))
        target.store_items()


def make_targets(arguments: Sequence[Argument], given: object) -> tuple[Argument, ...]:
    """Return what results of outputs are copied to, as arguments: `output=` of `stop` and `output`.

    Raises
    ------
    TypeError, ValueError
        There are more or fewer than outputs, one has another shape, or its dtype cannot hold the results.
    """
    outputs = [argument for argument in arguments if argument.parameter.output]
    names = [each.parameter.name for each in outputs]
    values = (given,) if isinstance(given, (np.ndarray, Buffer)) else given
    values = parse_values(values, names, "output")
    found = []
    for i, (each, value) in enumerate(zip(outputs, values, strict=True)):
        what = f"output[{i}], for {each.parameter.name!r}"
        target = _make_argument(each.parameter.name, value, what, output=True)
        if target.shape != each.shape:
            raise ArgumentValueError(f"{what}: expected the shape {each.shape}, got {target.shape}")
        if not np.can_cast(each.parameter.dtype, target.parameter.dtype, "safe"):
            raise ArgumentTypeError(
                f"{what}: {target.parameter.dtype} cannot hold all results of {each.parameter.dtype}"
            )
        found.append(target)
    return tuple(found)


def _pair_names(
    values: Sequence[object], names: tuple[str, ...] | None, side: str
) -> list[tuple[str, object]]:
    return list(zip(names or [f"accelpy_{side}{i}" for i in range(len(values))], values, strict=True))


_Named = list[tuple[str, object, str]]


def _make_all(inputs: _Named, outputs: _Named) -> tuple[Argument, ...]:
    """Return arguments of names, values and what messages call them. A list that is both stays one."""
    made = [_make_argument(*each, output=True) for each in outputs]
    lists = {id(each.items): each for each in made if each.items is not None}
    if len(lists) < sum(each.items is not None for each in made):
        raise ArgumentValueError("outputs: one list is given for two of them, and can hold one result")
    return (
        *(
            Argument(
                Parameter(name, found.parameter.dtype, len(found.shape), False), found.value, found.shape
            )
            if (found := lists.get(id(value)))
            else _make_argument(name, value, what)
            for name, value, what in inputs
        ),
        *made,
    )


def _make_argument(name: str, given: object, what: str, *, output: bool = False) -> Argument:
    if isinstance(given, Buffer):
        dtype, shape = _find_layout(given, what)
        return Argument(Parameter(name, dtype, len(shape), output), given, shape)
    if output and not isinstance(given, (np.ndarray, list)):
        raise ArgumentTypeError(
            f"{what}: expected a NumPy array or a list, which is filled in place, got "
            f"{type(given).__name__}; numpy.zeros makes one"
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
    # What NumPy has two names for (long and long long) is one parameter, and one library.
    dtype = np.dtype(f"{array.dtype.kind}{array.dtype.itemsize}")
    parameter = Parameter(name, dtype, array.ndim, output)
    if output and isinstance(given, list):
        _check_list(given, array.shape, what)
        return Argument(parameter, array, array.shape, given)
    if output and not array.flags.writeable:
        raise ArgumentValueError(f"{what}: this array is read-only, and outputs are filled in place")
    return Argument(parameter, array, array.shape)


def _check_list(items: list[Any], shape: tuple[int, ...], what: str) -> None:
    """Raise unless every element of a nested list has a place of its own."""
    if _list_shape(items, len(shape)) != shape:
        raise ArgumentTypeError(
            f"{what}: expected lists of lists all the way down, which are filled in place, got a tuple or an "
            "array inside"
        )
    rows = [items]
    for _ in shape[1:]:
        rows = [row for each in rows for row in each]
        if len({id(row) for row in rows}) < len(rows):
            raise ArgumentValueError(
                f"{what}: one list stands in it twice, and can hold one result; "
                "[[0.0] * n for _ in range(m)] makes a list for each row"
            )


def _list_shape(items: object, ndim: int) -> tuple[int, ...] | None:
    """Return the shape of lists nested so deep, or None if they are of different lengths or no lists."""
    if ndim == 0:
        return None if isinstance(items, (list, tuple, np.ndarray)) else ()
    if not isinstance(items, list):
        return None
    if not items:
        return (0,) if ndim == 1 else None
    shapes = {_list_shape(each, ndim - 1) for each in items}
    inner = shapes.pop()
    return None if shapes or inner is None else (len(items), *inner)


def _fill_list(items: list[Any], values: list[Any]) -> None:
    for i, value in enumerate(values):
        if isinstance(value, list):
            _fill_list(items[i], value)
        else:
            items[i] = value


def _may_share(a: Argument, b: Argument) -> bool:
    if isinstance(a.value, np.ndarray) and isinstance(b.value, np.ndarray):
        return np.may_share_memory(a.value, b.value) or (a.items is not None and a.items is b.items)
    return isinstance(a.value, Buffer) and isinstance(b.value, Buffer) and a.value._native is b.value._native


def _find_layout(buffer: "Buffer[Any]", what: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
    kind = buffer.var_type
    scalar = getattr(kind, "scalar", None) or kind
    try:
        dtype = np.dtype(to_numpy_dtype(scalar))
    except (VkDispatchError, TypeError):
        raise ArgumentTypeError(f"{what}: NumPy has no type for elements of {kind.name}") from None
    elements = () if scalar is kind else tuple(kind.true_numpy_shape)
    return dtype, (*buffer.shape, *elements)
