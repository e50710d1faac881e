"""How many invocations or workgroups a call runs: what `exec_size`, `workgroups` and `local_size` may be."""

import builtins
import dis
import operator
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, ComponentError, VkDispatchError
from vkdispatch.base.integers import as_int
from vkdispatch.base.record import record
from vkdispatch.ir.location import located

Extent = tuple[int, int, int]
_FORMS = (
    "an int, a tuple of 1 to 3 ints, a text such as 'data.size', "
    "or a callable such as lambda args: args.data.size"
)


class UnknownArgumentError(ComponentError, KeyError):
    """A launch size asked for a call argument that the kernel does not have."""

    __str__ = Exception.__str__


class UnknownNameError(VkDispatchError, NameError):
    """A launch size given as text names something that is no argument of the kernel."""


class CallValues:
    """The values of a call as attributes, named after the arguments: what a callable launch size gets."""

    def __init__(self, names: Sequence[str], values: Sequence[Any]) -> None:
        self.__dict__.update(zip(names, values, strict=False))

    def __getattr__(self, name: str) -> Any:
        known = ", ".join(self.__dict__) or "none"
        raise UnknownArgumentError(f"the kernel has no argument {name!r}; its arguments are {known}")

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)


@record
class LaunchSize:
    """A launch size as given: fixed, or computed from the values of each call.

    Attributes
    ----------
    option
        "exec_size" (invocations) or "workgroups".
    fixed
        The extent, or None if it is computed.
    compute
        Takes the call's values in order and returns an int or a tuple of ints.
    names
        The arguments, if it was given as a text.
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
            It is not one to three positive ints.
        """
        if self.fixed is not None:
            return self.fixed
        assert self.compute is not None
        try:
            size = self.compute(*values)
        except AttributeError as error:
            if self.names is None or isinstance(error, VkDispatchError):
                raise
            raise ComponentError(_explain(self.option, error, self.names, values)) from error
        return parse_extent(self.option, size)


def parse_launch_size(option: str, value: object, names: Sequence[str]) -> LaunchSize:
    """Understand what was given for `exec_size` or `workgroups`.

    Parameters
    ----------
    option
        How it is called in messages.
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
        A text names something that is no argument.
    """
    if isinstance(value, LaunchSize):
        return value
    if isinstance(value, str):
        return LaunchSize(option, None, _compile(option, value, tuple(names)), tuple(names))
    if callable(value):
        return LaunchSize(option, None, _with_holder(value, tuple(names)))
    return LaunchSize(option, parse_extent(option, value), None)


def size_of_instance(
    option: str, value: object, first: str, instance: Callable[[], Any], names: Sequence[str]
) -> object:
    """Return the launch size of a method: in a text `first` is the instance, which is not kept alive.

    Raises as `parse_launch_size`.
    """
    if not isinstance(value, str):
        return value
    compute = _compile(option, value, (first, *names))
    return LaunchSize(option, None, lambda *values: compute(instance(), *values), tuple(names))


def names_instance(value: object, first: str) -> bool:
    """Whether a launch size of a method asks its instance, which is called `first`."""
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
    unknown = sorted(name for name in _globals_of(compute.__code__) if not hasattr(builtins, name))
    if unknown:
        raise located(UnknownNameError, _unknown(option, text, unknown[0], names))
    return compute


def _globals_of(code: CodeType) -> set[str]:
    """Return the names that an expression reads and does not bind itself."""
    found = {
        each.argval for each in dis.get_instructions(code) if each.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    }
    return found.union(*(_globals_of(value) for value in code.co_consts if isinstance(value, CodeType)))


def _unknown(option: str, text: str, name: str, names: Sequence[str]) -> str:
    close = _close(name, names)
    meant = f"; did you mean {close[0]!r}?" if close else ""
    known = f"its arguments are {', '.join(names)}" if names else "it has no arguments"
    return (
        f"{option}: {text!r} names {name!r}, which is no argument of the kernel: {known}{meant} (a text sees "
        "only them and Python's built-in names; for all else give a number, or a callable such as "
        "lambda args: args.x.size)"
    )


def _close(name: str, known: Sequence[str]) -> list[str]:
    import difflib  # by those who made a mistake

    return difflib.get_close_matches(name, known, 1)


def _explain(option: str, error: AttributeError, names: Sequence[str], values: Sequence[Any]) -> str:
    """Say which argument lacks an attribute that a launch size asks for."""
    owner = next((name for name, value in zip(names, values, strict=False) if value is error.obj), None)
    kind = type(error.obj).__name__
    what = f"a value of type {kind}" if owner is None else f"argument {owner!r} ({kind})"
    known = [name for name in dir(error.obj) if not name.startswith("_")]
    close = _close(str(error.name), known)
    meant = f"; did you mean .{close[0]}?" if close else ""
    return f"{option}: {what} has no attribute {error.name!r}{meant}"


def _with_holder(function: Callable[[CallValues], Any], names: tuple[str, ...]) -> Callable[..., Any]:
    def compute(*values: Any) -> Any:
        return function(CallValues(names, values))

    return compute


def parse_extent(option: str, value: object) -> Extent:
    """Return 1 to 3 positive ints padded with 1 to three. Raises ValueError if `value` is none of that."""
    axes = value if isinstance(value, tuple) else (value,)
    if not 1 <= len(axes) <= 3 or not all(_is_integer(axis) for axis in axes):
        raise ArgumentValueError(f"{option}: expected {_FORMS}; got {value!r}")
    x, y, z = (*(operator.index(axis) for axis in axes), 1, 1)[:3]
    if x < 1 or y < 1 or z < 1:
        raise ArgumentValueError(f"{option}: every size must be at least 1, got {(x, y, z)}")
    return (x, y, z)


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
    if isinstance(value, str) or not (_is_integer(value) or isinstance(value, (tuple, list))):
        raise ArgumentTypeError(f"local_size: expected 1 to 3 ints, such as (256, 1, 1), got {value!r}")
    try:
        return parse_extent("local_size", tuple(value) if isinstance(value, list) else value)
    except ArgumentValueError:
        raise ArgumentValueError(f"local_size: expected 1 to 3 positive ints, got {value!r}") from None


def _is_integer(value: object) -> bool:
    return as_int(value) is not None
