"""Launch sizes and workgroup sizes: the forms of `exec_size`, `workgroups` and `local_size`."""

import builtins
import dis
import operator
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any, SupportsIndex

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, ComponentError, VkDispatchError
from vkdispatch.base.process import as_int
from vkdispatch.base.record import record
from vkdispatch.compiler.ir.location import located

Extent = tuple[int, int, int]
# An `exec_size` or `workgroups`, and a `local_size`.
Size = SupportsIndex | tuple[SupportsIndex, ...] | str | Callable[[Any], Any]
GroupSize = SupportsIndex | Sequence[SupportsIndex] | str
_FORMS = (
    "an int, a tuple of 1 to 3 ints, a text such as 'data.size', "
    "or a callable such as lambda args: args.data.size"
)


class UnknownArgumentError(ComponentError, KeyError):
    """A launch size refers to an argument that the kernel does not have."""

    __str__ = Exception.__str__


class UnknownNameError(VkDispatchError, NameError):
    """A launch size given as text names something that is not an argument of the kernel."""


class CallValues:
    """The values of a call as attributes named after the arguments, for callable launch sizes."""

    def __init__(self, names: Sequence[str], values: Sequence[Any]) -> None:
        self.__dict__.update(zip(names, values, strict=False))

    def __getattr__(self, name: str) -> Any:
        known = ", ".join(self.__dict__) or "none"
        raise UnknownArgumentError(f"the kernel has no argument {name!r}; its arguments are {known}")

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)


@record
class LaunchSize:
    """A launch size: fixed, or computed from the values of each call.

    Attributes
    ----------
    option
        "exec_size" (invocations) or "workgroups".
    fixed
        The extent, or None if it is computed.
    compute
        Takes the call's values in order and returns an int or a tuple of ints.
    names
        The names of the arguments, if the size was given as text.
    """

    option: str
    fixed: Extent | None
    compute: Callable[..., Any] | None
    names: tuple[str, ...] | None = None

    @property
    def in_groups(self) -> bool:
        """Whether it counts workgroups."""
        return self.option == "workgroups"

    def extent(self, values: Sequence[Any]) -> Extent:
        """Return the extent for a call with these values.

        Raises
        ------
        ValueError
            The result is not 1 to 3 ints of 0 or more.
        """
        if self.fixed is not None:
            return self.fixed
        assert self.compute is not None
        try:
            size = self.compute(*values)
        except AttributeError as error:
            if self.names is None or isinstance(error, VkDispatchError):
                raise
            raise ComponentError(
                _explain_missing_attribute(self.option, error, self.names, values)
            ) from error
        return parse_extent(self.option, size)


def parse_launch_size(option: str, value: object, names: Sequence[str]) -> LaunchSize:
    """Parse an `exec_size` or `workgroups`.

    Parameters
    ----------
    option
        The name of the option.
    value
        An int, a tuple of 1 to 3 ints, a Python expression over the argument names, or a callable that takes
        an object with the call's values as attributes.
    names
        The kernel's arguments in order.

    Raises
    ------
    ValueError
        `value` is none of these.
    NameError
        A text names something that is not an argument.
    """
    if isinstance(value, LaunchSize):
        return value
    if isinstance(value, str):
        return LaunchSize(option, None, _compile(option, value, tuple(names)), tuple(names))
    if callable(value):
        return LaunchSize(option, None, lambda *values: value(CallValues(names, values)))
    return LaunchSize(option, parse_extent(option, value), None)


def bind_instance(
    option: str, value: object, first: str, instance: Callable[[], Any], names: Sequence[str]
) -> object:
    """Return the launch size of a method. In a text, `first` is the instance, which is not kept alive.

    Raises as `parse_launch_size`.
    """
    if not isinstance(value, str):
        return value
    compute = _compile(option, value, (first, *names))
    return LaunchSize(option, None, lambda *values: compute(instance(), *values), tuple(names))


def is_instance_named(value: object, first: str) -> bool:
    """Whether a launch size of a method names the instance, which is called `first`."""
    return isinstance(value, str) and re.search(rf"\b{first}\b", value) is not None


@lru_cache(maxsize=1024)
def _compile(option: str, text: str, names: tuple[str, ...]) -> Callable[..., Any]:
    # The parentheses let "a.size, 1" be a tuple and the text span lines.
    source = f"lambda {', '.join(names)}: ({text}\n)"
    try:
        code = compile(source, f"<{option} of a kernel>", "eval")
    except SyntaxError as error:
        raise ArgumentValueError(f"{option}: {text!r} is not a Python expression ({error.msg})") from error
    compute: Callable[..., Any] = eval(code, {})
    unknown = sorted(name for name in _find_globals(compute.__code__) if not hasattr(builtins, name))
    if unknown:
        raise located(UnknownNameError, _explain_unknown_name(option, text, unknown[0], names))
    if ".shape" not in text:
        return compute
    return lambda *values: compute(*map(_as_in_kernels, values))


class _OneAxis:
    """A buffer of more axes than kernels have, as they see it."""

    def __init__(self, buffer: Any) -> None:
        self._buffer = buffer
        self.shape = (buffer.size,)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._buffer, name)


def _as_in_kernels(value: Any) -> Any:
    many = isinstance(value, Buffer) and len(value.shape) > 3
    return _OneAxis(value) if many else value


def _find_globals(code: CodeType) -> set[str]:
    """Return the names that an expression reads and does not bind itself."""
    names = {op.argval for op in dis.get_instructions(code) if op.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return names.union(*(_find_globals(value) for value in code.co_consts if isinstance(value, CodeType)))


def _explain_unknown_name(option: str, text: str, name: str, names: Sequence[str]) -> str:
    close = _find_close_names(name, names)
    meant = f"; did you mean {close[0]!r}?" if close else ""
    known = f"its arguments are {', '.join(names)}" if names else "it has no arguments"
    return (
        f"{option}: {text!r} names {name!r}, which is no argument of the kernel: {known}{meant} (a text sees "
        "only them and Python's built-in names; for all else pass a number, or a callable such as "
        "lambda args: args.x.size)"
    )


def _find_close_names(name: str, known: Sequence[str]) -> list[str]:
    import difflib  # only needed for this message

    return difflib.get_close_matches(name, known, 1)


def _explain_missing_attribute(
    option: str, error: AttributeError, names: Sequence[str], values: Sequence[Any]
) -> str:
    """Return a message about an attribute that an argument lacks."""
    owner = next((name for name, value in zip(names, values, strict=False) if value is error.obj), None)
    kind = type(error.obj).__name__
    what = f"a value of type {kind}" if owner is None else f"argument {owner!r} ({kind})"
    known = [name for name in dir(error.obj) if not name.startswith("_")]
    close = _find_close_names(str(error.name), known)
    meant = f"; did you mean .{close[0]}?" if close else ""
    return f"{option}: {what} has no attribute {error.name!r}{meant}"


def parse_extent(option: str, value: object) -> Extent:
    """Return 1 to 3 ints of 0 or more, padded with 1 to three. Raises ValueError for anything else."""
    axes = value if isinstance(value, tuple) else (value,)
    if not 1 <= len(axes) <= 3 or None in map(as_int, axes):
        raise ArgumentValueError(f"{option}: expected {_FORMS}; got {value!r}")
    x, y, z = (*(operator.index(axis) for axis in axes), 1, 1)[:3]
    if x < 0 or y < 0 or z < 0:
        raise ArgumentValueError(f"{option}: sizes cannot be negative, got {(x, y, z)}")
    return (x, y, z)


def is_incomplete(extent: Extent, local_size: Extent) -> bool:
    """Whether a launch of as many invocations leaves workgroups that are not full."""
    return any(size % group for size, group in zip(extent, local_size, strict=True))


def parse_local_size(value: object) -> Extent | None:
    """Return a workgroup size padded with 1 to three ints; None stays.

    Raises
    ------
    TypeError
        It is neither an int nor a tuple or list.
    ValueError
        It is not 1 to 3 positive ints.
    """
    if value is None:
        return None
    if isinstance(value, str) or not (as_int(value) is not None or isinstance(value, (tuple, list))):
        raise ArgumentTypeError(f"local_size: expected 1 to 3 ints, such as (256, 1, 1), got {value!r}")
    try:
        size = parse_extent("local_size", tuple(value) if isinstance(value, list) else value)
        if 0 not in size:
            return size
        raise ArgumentValueError
    except ArgumentValueError:
        raise ArgumentValueError(f"local_size: expected 1 to 3 positive ints, got {value!r}") from None
