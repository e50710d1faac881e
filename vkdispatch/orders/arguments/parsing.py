"""The arguments of an Accel: the values before and after the order, by name."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import to_numpy_dtype
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, VkDispatchError
from vkdispatch.orders.arguments.argument import DTYPES, Argument, Parameter, find_list_shape
from vkdispatch.orders.text.order import Order


def split_arguments(args: Sequence[object]) -> tuple[Order, Sequence[object], Sequence[object]]:
    """Return the order among the arguments of an Accel, the values before it and the values after it.

    Before accelpy 0.3, the text came first, then the inputs and the outputs: a value or a tuple of them each.

    Raises
    ------
    TypeError
        There is not exactly one order.
    """
    if is_text_first(args):
        if len(args) != 3:
            raise ArgumentTypeError(
                "Accel: expected inputs and outputs after the text, as in Accel(text, (a, b), c), got "
                f"{len(args) - 1} arguments; Accel(a, b, Order(text), c) takes any number"
            )
        text, inputs, outputs = args
        assert isinstance(text, (str, os.PathLike))
        return Order(text), _list_side(inputs), _list_side(outputs)
    places = [place for place, item in enumerate(args) if isinstance(item, Order)]
    if len(places) != 1:
        raise ArgumentTypeError(
            f"Accel: expected one Order, as in Accel(a, Order(text), b), got {len(places)}"
        )
    order = args[places[0]]
    assert isinstance(order, Order)
    return order, args[: places[0]], args[places[0] + 1 :]


def _list_side(values: object) -> Sequence[object]:
    """Return the values of a side in the older form. A list of numbers is one value."""
    if isinstance(values, tuple):
        return values
    is_several = isinstance(values, list) and values and isinstance(values[0], (np.ndarray, Buffer))
    return values if is_several and isinstance(values, list) else (values,)


def is_text_first(args: Sequence[object]) -> bool:
    """Whether the arguments of an Accel are those of accelpy before 0.3."""
    is_text = bool(args) and isinstance(args[0], (str, os.PathLike))
    return is_text and not any(isinstance(item, Order) for item in args)


def make_arguments(order: Order, inputs: Sequence[object], outputs: Sequence[object]) -> tuple[Argument, ...]:
    """Return inputs and outputs as arguments with the names of the order.

    Raises
    ------
    TypeError
        An output is neither an array nor a list, or a dtype is not supported.
    ValueError
        The order names another number of them, or an output is read-only.
    """
    for values, names, what, side in (
        (inputs, order.inputs, "input", "before"),
        (outputs, order.outputs, "output", "after"),
    ):
        if names is not None and len(names) != len(values):
            raise ArgumentValueError(
                f"Accel: the order names {len(names)} {what}s ({', '.join(names)}), got {len(values)} "
                f"{side} it; set_argnames in {order.label} defines how many there are"
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
    """Return arguments of the same names with other inputs or outputs. None: unchanged.

    Raises
    ------
    TypeError, ValueError
        As `make_arguments`, or if `inputs` or `outputs` is not a list or tuple.
    """
    sides = []
    for value, what in ((inputs, "inputs"), (outputs, "outputs")):
        group = [each for each in arguments if each.parameter.is_output == (what == "outputs")]
        names = [each.parameter.name for each in group]
        values = [each.original for each in group] if value is None else parse_values(value, names, what)
        sides.append(
            [
                (name, value, f"{what}[{i}], {name!r}")
                for i, (name, value) in enumerate(zip(names, values, strict=True))
            ]
        )
    return _make_all(*sides)


def parse_values(values: object, names: Sequence[str], what: str) -> Sequence[object]:
    """Return a list or tuple with one value for each name. Raises TypeError or ValueError otherwise."""
    if not isinstance(values, (list, tuple)):
        raise ArgumentTypeError(
            f"{what}: expected a list or tuple with one for each of {', '.join(names) or 'none'}, got "
            f"{type(values).__name__}"
        )
    if len(values) != len(names):
        raise ArgumentValueError(
            f"{what}: expected {len(names)} ({', '.join(names) or 'none'}), got {len(values)}"
        )
    return values


def make_targets(arguments: Sequence[Argument], value: object) -> tuple[Argument, ...]:
    """Return the targets that results are copied to (`output=` of `stop` and `output`) as arguments.

    Raises
    ------
    TypeError, ValueError
        Their number is not that of the outputs, or one has another shape or cannot hold the results.
    """
    outputs = [argument for argument in arguments if argument.parameter.is_output]
    names = [each.parameter.name for each in outputs]
    values = (value,) if isinstance(value, (np.ndarray, Buffer)) else value
    values = parse_values(values, names, "output")
    targets = []
    for i, (each, item) in enumerate(zip(outputs, values, strict=True)):
        what = f"output[{i}], for {each.parameter.name!r}"
        target = _make_argument(each.parameter.name, item, what, is_output=True)
        if target.shape != each.shape:
            raise ArgumentValueError(f"{what}: expected the shape {each.shape}, got {target.shape}")
        if not np.can_cast(each.parameter.dtype, target.parameter.dtype, "safe"):
            raise ArgumentTypeError(
                f"{what}: {target.parameter.dtype} cannot hold all results of {each.parameter.dtype}"
            )
        targets.append(target)
    return tuple(targets)


def _pair_names(
    values: Sequence[object], names: tuple[str, ...] | None, side: str
) -> list[tuple[str, object]]:
    return list(zip(names or [f"accelpy_{side}{i}" for i in range(len(values))], values, strict=True))


_Named = list[tuple[str, object, str]]


def _make_all(inputs: _Named, outputs: _Named) -> tuple[Argument, ...]:
    """Return arguments for names, values and their names in messages. A list that is both stays one."""
    results = [_make_argument(*each, is_output=True) for each in outputs]
    lists = {id(each.items): each for each in results if each.items is not None}
    if len(lists) < sum(each.items is not None for each in results):
        raise ArgumentValueError(
            "outputs: the same list is passed for two of them, but can hold only one result"
        )
    return (
        *(
            Argument(
                Parameter(name, result.parameter.dtype, len(result.shape), False), result.value, result.shape
            )
            if (result := lists.get(id(value)))
            else _make_argument(name, value, what)
            for name, value, what in inputs
        ),
        *results,
    )


def _make_argument(name: str, value: object, what: str, *, is_output: bool = False) -> Argument:
    if isinstance(value, Buffer):
        dtype, shape = _find_layout(value, what)
        return Argument(Parameter(name, dtype, len(shape), is_output), value, shape)
    if is_output and not isinstance(value, (np.ndarray, list)):
        raise ArgumentTypeError(
            f"{what}: expected a NumPy array or a list, which is filled in place, got "
            f"{type(value).__name__}; numpy.zeros makes one"
        )
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(f"{what}: numpy.asarray cannot convert it ({error})") from None
    if array.dtype.char not in DTYPES:
        raise ArgumentTypeError(
            f"{what}: expected bool, integers or floats of up to 64 bits, complex64 or complex128, got "
            f"the dtype {array.dtype}"
        )
    # Types with two names in NumPy (long and long long) are one parameter, and need one library.
    dtype = np.dtype(f"{array.dtype.kind}{array.dtype.itemsize}")
    parameter = Parameter(name, dtype, array.ndim, is_output)
    if is_output and isinstance(value, list):
        _check_list(value, array.shape, what)
        return Argument(parameter, array, array.shape, value)
    if is_output and not array.flags.writeable:
        raise ArgumentValueError(f"{what}: this array is read-only, but outputs are filled in place")
    return Argument(parameter, array, array.shape)


def _check_list(items: list[Any], shape: tuple[int, ...], what: str) -> None:
    """Raise TypeError or ValueError unless every element of a nested list is separate."""
    if find_list_shape(items, len(shape)) != shape:
        raise ArgumentTypeError(
            f"{what}: expected nested lists, which are filled in place, got one that contains a tuple or an "
            "array"
        )
    rows = [items]
    for _ in shape[1:]:
        rows = [row for each in rows for row in each]
        if len({id(row) for row in rows}) < len(rows):
            raise ArgumentValueError(
                f"{what}: it contains the same list twice, which can hold only one result; "
                "[[0.0] * n for _ in range(m)] makes a list for each row"
            )


def _find_layout(buffer: "Buffer[Any]", what: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
    kind = buffer.var_type
    scalar = getattr(kind, "scalar", None) or kind
    try:
        dtype = np.dtype(to_numpy_dtype(scalar))
    except (VkDispatchError, TypeError):
        raise ArgumentTypeError(f"{what}: NumPy has no type for elements of {kind.name}") from None
    elements = () if scalar is kind else tuple(kind.true_numpy_shape)
    return dtype, (*buffer.shape, *elements)
