"""The protocols of Python and NumPy on buffers, and their `repr`."""

import itertools
import math
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from vkdispatch.base.derived_dtypes import is_structure
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.host_numpy import np

# ---- The `repr` of buffers -------------------------------------------------------------------------------
#
# Some elements at the ends of each axis, as NumPy prints them, and the device.


Array = np.ndarray[Any, Any]


# Elements to show at either end of an axis that is not shown in full, by the number of axes.
_ENDS = (3, 3, 3, 2)


def describe_buffer(buffer: Any) -> str:
    """Return the `repr` of a buffer. Reads from queue 0; errors of reads are shown, not raised."""
    start = f"{type(buffer).__name__}("
    contents, facts = _describe_contents(buffer, start), _describe_facts(buffer)
    line = f"{start}{contents}, {facts})"
    if "\n" not in contents and len(line) <= np.get_printoptions()["linewidth"]:
        return line
    return f"{start}{contents},\n{' ' * len(start)}{facts})"


def _describe_contents(buffer: Any, start: str) -> str:
    if buffer.destroyed:
        return "<device lost>" if buffer.context.lost else "<destroyed>"
    ends = _ENDS[len(buffer.shape)]
    try:
        return np.array2string(
            _read_ends(buffer, ends), separator=", ", prefix=start, threshold=0, edgeitems=ends
        )
    except Exception as error:
        # The text may be shown while another error is handled.
        return f"<{type(error).__name__} when read>"


def _read_ends(buffer: Any, ends: int) -> Any:
    """Return the contents, with one undefined entry for the omitted part of each axis."""
    shape = buffer.shape
    if not shape or not buffer.size:
        return _read(buffer, 0, shape)
    tail = _read(buffer, 0, (0,))
    seen = np.zeros((*(min(length, 2 * ends + 1) for length in shape), *tail.shape[1:]), tail.dtype)
    leading = [_list_shown(length, ends) for length in shape[:-1]]
    for row in itertools.product(*leading):
        start = _flatten(row, shape) * shape[-1]
        line: Array = seen[
            tuple(_move_place(at, length, ends) for at, length in zip(row, shape, strict=False))
        ]
        if shape[-1] <= 2 * ends:
            line[:] = _read(buffer, start, shape[-1:])
        else:
            line[:ends] = _read(buffer, start, (ends,))
            line[-ends:] = _read(buffer, start + shape[-1] - ends, (ends,))
    return seen


def _read(buffer: Any, start: int, elements: tuple[int, ...]) -> Any:
    # Errors that the device has found are raised by waits, not here.
    return buffer._read(start, elements, 0, None, False)


def _list_shown(length: int, ends: int) -> list[int]:
    """Return the indices along an axis that are shown."""
    places = range(length)
    return [*places] if length <= 2 * ends else [*places[:ends], *places[-ends:]]


def _move_place(place: int, length: int, ends: int) -> int:
    """Return the position of an index among those that are shown, with one omitted entry in the middle."""
    return place if place < ends or length <= 2 * ends else place - length + 2 * ends + 1


def _flatten(row: tuple[int, ...], shape: tuple[int, ...]) -> int:
    """Return the flat index of a row, from its indices along all axes but the last."""
    return sum(at * math.prod(shape[axis + 1 : -1]) for axis, at in enumerate(row))


def _describe_facts(buffer: Any) -> str:
    kind = buffer.var_type
    name = kind.name if is_structure(kind) else f"vd.{kind.__name__}"
    facts = [*buffer._describe_shape(), f"dtype={name}", f"device={_describe_device(buffer)!r}"]
    queues = buffer.context.queue_count
    return ", ".join([*facts, f"queues={queues}"] if queues > 1 else facts)


def _describe_device(buffer: Any) -> str:
    first, *others = (info.device_name for info in buffer.context.device_infos)
    return f"{first} and {len(others)} more" if others else first


# ---- The protocols of Python and NumPy on buffers: conversions to host values, and refusals --------------


def refuse_kernel_index(index: object) -> None:
    """Raise TypeError for an index that is a GPU value: the buffer or array is no argument of the kernel."""
    parts = index if isinstance(index, tuple) else (index,)
    if any(hasattr(part, "var_type") and not isinstance(part, HostProtocols) for part in parts):
        raise ArgumentTypeError(
            "a kernel reads and writes memory that is its argument: add a parameter such as `x: Buff[f32]`, "
            "and give the buffer or array in the call"
        )


class HostProtocols:
    """Support `bool`, `len`, `float`, `np.asarray` and the like; refuse iteration and NumPy's functions.

    Conversions to a Python number read the only element from queue 0. Iteration and NumPy's functions would
    copy to the host implicitly; programs copy explicitly with `buf.read(0)` or `np.asarray(buf)`.
    """

    __slots__ = ()

    shape: tuple[int, ...]

    def read(self, index: int | None = None, out: "Array | None" = None) -> Array:
        """Return the contents."""
        raise NotImplementedError

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ArgumentValueError(
                "copy: np.asarray always copies a buffer; np.from_dlpack(buf) shows its memory"
            )
        array = self.read(0)
        return array if dtype is None else array.astype(dtype, copy=False)

    def item(self) -> Any:
        """Return the only element as a Python number, read from queue 0.

        Raises
        ------
        ValueError
            The number of elements is not one, or the element is a vector or matrix.

        Examples
        --------
        >>> vd.sum(vd.asbuffer(np.ones(4, np.float32))).item()
        4.0
        """
        if math.prod(self.shape) == 1:
            array = self.read(0)
            if array.size == 1:
                return array.item()
            raise ArgumentValueError(f"item: the element is {array.size} numbers; use buf.read(0)")
        raise ArgumentValueError(
            f"item: expected a buffer of one element, got one of shape {self.shape}; use buf.read(0)"
        )

    def __bool__(self) -> bool:
        if math.prod(self.shape) != 1:
            raise ArgumentValueError(
                f"the truth value of a buffer of shape {self.shape} is ambiguous; use vd.any(buf) or "
                "vd.all(buf), or `is not None` to test for a buffer"
            )
        return bool(self.item())

    def __float__(self) -> float:
        return float(self._number("float"))

    def __int__(self) -> int:
        return int(self._number("int"))

    def __complex__(self) -> complex:
        return complex(self._number("complex"))

    def __format__(self, spec: str) -> str:
        return format(self._number("format"), spec) if spec else str(self)

    def __round__(self, digits: int | None = None) -> Any:
        return round(self._number("round"), digits)

    def _number(self, wanted: str) -> Any:
        if math.prod(self.shape) != 1:
            raise ArgumentTypeError(
                f"{wanted}: expected a buffer of one element, got one of shape {self.shape}; use buf.read(0)"
            )
        return self.item()

    def __len__(self) -> int:
        if not self.shape:
            raise ArgumentTypeError("len() of a buffer without axes; its size is 1")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        raise ArgumentTypeError("a buffer is not iterable: its elements are on the device; use buf.read(0)")

    if not TYPE_CHECKING:  # `Buffer` declares these for its annotation in kernels

        def __getitem__(self, index: object) -> NoReturn:
            refuse_kernel_index(index)
            raise ArgumentTypeError(
                f"a buffer has no elements on the host; {_READ}, and {_ARRAY}: index these"
            )

        def __setitem__(self, index: object, value: object) -> NoReturn:
            refuse_kernel_index(index)
            raise ArgumentTypeError(
                "a buffer has no elements on the host; buf.write(array) copies all from the host, and "
                "vkdispatch.numpy.asarray(buf)[...] = value writes on the device"
            )

        def __getattr__(self, name: str) -> NoReturn:
            """Tell what to use instead of an attribute that arrays of other libraries have."""
            advice = f"; {_ABSENT[name]}" if name in _ABSENT else ""
            # Python suggests similar names by the last two
            text = f"{type(self).__name__!r} object has no attribute {name!r}{advice}"
            raise AttributeError(text, name=name, obj=self)

    def __contains__(self, item: object) -> bool:
        raise ArgumentTypeError("`in` does not support buffers; use `value in buf.read(0)`")

    def __array_ufunc__(self, ufunc: "np.ufunc", method: str, *inputs: Any, **options: Any) -> Any:
        """Raise TypeError, as NumPy would compute on the host."""
        name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        raise ArgumentTypeError(_explain_refusal("numpy", name))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Raise TypeError, as NumPy would compute on the host."""
        raise ArgumentTypeError(_explain_refusal(func.__module__ or "numpy", func.__name__))


_READ = "buf.read(0) is a NumPy array with its contents"
_ARRAY = "vkdispatch.numpy.asarray(buf) is an Array on the same memory"
# What arrays of other libraries have and a buffer lacks, and what to use instead.
_ABSENT = {
    **dict.fromkeys(("numpy", "cpu", "get", "to_numpy", "to_host", "copy_to_host", "tolist"), _READ),
    **{
        name: f"vkdispatch.numpy.asarray(buf).{name} has it"
        for name in ("T", "reshape", "ravel", "flatten", "transpose", "astype", "fill")
    },
    "zero_": "vkdispatch.numpy.asarray(buf).fill(0) does it",
    **{
        name: f"use vd.{name}(buf)"
        for name in ("all", "any", "argmax", "argmin", "max", "mean", "min", "sum")
    },
    "clone": "copy.copy(buf) copies it",
    "copy": "copy.copy(buf) copies it",
    "dtype": "buf.var_type is the type of its elements",
    "ndim": "len(buf.shape) is the number of its axes",
    "upload": "buf.write(array) copies from the host",
    "download": _READ,
}
_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**"}
_BITWISE = {"and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>", "matmul": "@"}
_COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def _refuse_operator(symbol: str) -> Callable[[Any, Any], Any]:
    def refuse(self: object, other: object) -> Any:
        if isinstance(other, (np.ndarray, np.generic)):
            return NotImplemented  # NumPy asks `__array_ufunc__`
        raise ArgumentTypeError(
            f"{symbol}: buffers have no operators; use vkdispatch.numpy.asarray(buf), an Array on the same "
            "memory, or write a kernel"
        )

    return refuse


if not TYPE_CHECKING:  # type checkers would take these for what a buffer has
    for _name, _symbol in (_ARITHMETIC | _BITWISE | _COMPARISONS).items():
        setattr(HostProtocols, f"__{_name}__", _refuse_operator(_symbol))
        if _name not in _COMPARISONS:
            setattr(HostProtocols, f"__r{_name}__", _refuse_operator(_symbol))


# Functions of NumPy -> attributes of a buffer that give the same result.
_ATTRIBUTES = {"shape": "buf.shape", "size": "buf.size", "ndim": "len(buf.shape)", "copy": "copy.copy(buf)"}


def _explain_refusal(module: str, name: str) -> str:
    """Return why a function of NumPy refuses buffers, and what to use instead."""
    called = f"{module.replace('numpy', 'np', 1)}.{name}"
    instead = _find_own_name(module, name) or _ATTRIBUTES.get(name) or "a kernel or map"
    return (
        f"{called}: NumPy computes on the host, and a buffer is on the device; use {instead}, or pass "
        "np.asarray(buf)"
    )


def _find_own_name(module: str, name: str) -> str | None:
    """Return the name of the function of vkdispatch of the same name, if there is one."""
    # Looked up in the package, as this module cannot import the functions on arrays, which import buffers.
    package: Any = sys.modules.get("vkdispatch")
    if package is None:
        return None
    if module == "numpy.fft":
        return f"vd.fft.{name}" if hasattr(package.fft, name) else None
    function = getattr(package, name, None)
    home = getattr(function, "__module__", "")
    # Functions in base do not compute on arrays: vd.log writes messages.
    if not callable(function) or not home.startswith("vkdispatch.") or home.startswith("vkdispatch.base."):
        return None
    return f"vd.{name}"
