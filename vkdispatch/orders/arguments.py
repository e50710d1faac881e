"""The arguments of an order and of a run."""

import math
import operator
import os
import sys
import threading
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import to_numpy_dtype
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, VkDispatchError
from vkdispatch.base.record import record
from vkdispatch.orders.order import Order

# ---- Arguments of an order: arrays and buffers by name ---------------------------------------------------


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
    shapes = {find_list_shape(item, ndim - 1) for item in items}
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


# ---- The workers of a run: members, teams and assignments ------------------------------------------------


Counts = tuple[int, int, int]
Workers = int | Sequence[int]

_LARGEST = 2**31 - 1
_WHAT = ("members", "teams", "assignments")


@record
class Grid:
    """The three arguments of `run`, each as three counts.

    Attributes
    ----------
    members
        The workers of a team: threads of a CUDA block, OpenMP threads, invocations of a workgroup.
    teams
        Teams: CUDA blocks, gangs, workgroups.
    assignments
        Numbers that bodies can read, such as the loop count of each member.
    """

    members: Counts
    teams: Counts
    assignments: Counts

    @property
    def is_empty(self) -> bool:
        """Whether there are no workers."""
        return 0 in (*self.members, *self.teams)

    @property
    def workers(self) -> int:
        """The number of workers: the members of all teams."""
        return math.prod(self.members) * math.prod(self.teams)


def make_grid(workers: Sequence[object]) -> Grid:
    """Return the grid of `run(*workers)`.

    Raises
    ------
    TypeError, ValueError
        There are more than three arguments, or one is neither an int nor a tuple of up to three ints.
    """
    if len(workers) > len(_WHAT):
        raise ArgumentTypeError(
            f"run: expected members, teams and assignments at most, got {len(workers)} arguments"
        )
    counts = [_parse_counts(value, what) for value, what in zip(workers, _WHAT, strict=False)]
    return Grid(*counts, *[(1, 1, 1)] * (len(_WHAT) - len(counts)))


def _parse_counts(value: object, what: str) -> Counts:
    items = value if isinstance(value, (tuple, list)) else (value,)
    if not 1 <= len(items) <= 3:
        raise ArgumentValueError(f"{what}: expected an int or a tuple of one to three, got {value!r}")
    counts = [_parse_count(item, value, what) for item in items]
    if math.prod(counts) > _LARGEST:
        raise ArgumentValueError(f"{what}: expected at most {_LARGEST} in all, got {value!r}")
    return counts[0], counts[1] if len(counts) > 1 else 1, counts[2] if len(counts) > 2 else 1


def _parse_count(item: object, value: object, what: str) -> int:
    try:
        if isinstance(item, bool):
            raise TypeError
        count = operator.index(item)  # type: ignore[arg-type]
    except TypeError:
        raise ArgumentTypeError(
            f"{what}: expected an int or a tuple of up to three ints, got {value!r}"
        ) from None
    if count < 0:
        raise ArgumentValueError(f"{what}: expected 0 or more, got {value!r}")
    return count


# ---- Flags and numbers among the arguments of calls ------------------------------------------------------


UNVERIFIED = -1.0
"""The tolerance that `parse_tolerance` returns for `verify=False`."""


def to_python_number(value: object) -> object:
    """Convert a NumPy scalar to a Python number. Return anything else unchanged."""
    return value.item() if isinstance(value, np.generic) else value


def parse_flag(value: object, argument: str) -> bool:
    """Return a bool. Raises TypeError for anything else."""
    flag = to_python_number(value)
    if not isinstance(flag, bool):
        raise ArgumentTypeError(f"{argument}: expected True or False, got {value!r}")
    return flag


def parse_number(value: object, argument: str) -> int:
    """Return an int from 0 to 2**31 - 1. Raises TypeError or ValueError for anything else."""
    number = to_python_number(value)
    if isinstance(number, bool) or not isinstance(number, int):
        raise ArgumentTypeError(f"{argument}: expected an int, got {value!r}")
    if not 0 <= number < 2**31:
        raise ArgumentValueError(f"{argument}: expected an int from 0 to 2**31 - 1, got {value!r}")
    return number


def parse_timeout(timeout: object) -> float | None:
    """Return a timeout in seconds, or None. Raises TypeError or ValueError for anything else."""
    if timeout is None:
        return None
    seconds = to_python_number(timeout)
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise ArgumentTypeError(f"timeout: expected seconds or None, got {timeout!r}")
    if not 0 <= seconds <= threading.TIMEOUT_MAX:
        raise ArgumentValueError(f"timeout: expected seconds, 0 or more, got {timeout!r}")
    return float(seconds)


def parse_tolerance(verify: object) -> float | None:
    """Return the tolerance of `verify`: None for the default by dtype, or UNVERIFIED."""
    number = to_python_number(verify)
    if isinstance(number, bool):
        return None if number else UNVERIFIED
    if not isinstance(number, (int, float)):
        raise ArgumentTypeError(f"verify: expected True, False or a tolerance, got {verify!r}")
    if not 0 <= number <= sys.float_info.max:
        raise ArgumentValueError(f"verify: expected a tolerance of 0 or more, got {verify!r}")
    return float(number)


# ---- The arguments of an Accel: the values before and after the order, by name ---------------------------


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
        group = [argument for argument in arguments if argument.parameter.is_output == (what == "outputs")]
        names = [argument.parameter.name for argument in group]
        values = [item.original for item in group] if value is None else parse_values(value, names, what)
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
    names = [output.parameter.name for output in outputs]
    values = (value,) if isinstance(value, (np.ndarray, Buffer)) else value
    values = parse_values(values, names, "output")
    targets = []
    for i, (output, item) in enumerate(zip(outputs, values, strict=True)):
        what = f"output[{i}], for {output.parameter.name!r}"
        target = _make_argument(output.parameter.name, item, what, is_output=True)
        if target.shape != output.shape:
            raise ArgumentValueError(f"{what}: expected the shape {output.shape}, got {target.shape}")
        if not np.can_cast(output.parameter.dtype, target.parameter.dtype, "safe"):
            raise ArgumentTypeError(
                f"{what}: {target.parameter.dtype} cannot hold all results of {output.parameter.dtype}"
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
    results = [_make_argument(*argument, is_output=True) for argument in outputs]
    lists = {id(argument.items): argument for argument in results if argument.items is not None}
    if len(lists) < sum(argument.items is not None for argument in results):
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
        rows = [row for inner in rows for row in inner]
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
