"""How many invocations or workgroups a call runs: what `exec_size`, `workgroups` and `local_size` may be."""

import operator
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, ComponentError
from vkdispatch.base.record import record

Extent = tuple[int, int, int]
_FORMS = (
    "an int, a tuple of 1 to 3 ints, a text such as 'data.size', "
    "or a callable such as lambda args: args.data.size"
)


class UnknownArgumentError(ComponentError, KeyError):
    """A launch size asked for a call argument that the kernel does not have."""

    __str__ = Exception.__str__


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
    """

    option: str
    fixed: Extent | None
    compute: Callable[..., Any] | None

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
        return checked_extent(self.option, self.compute(*values))


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
    """
    if isinstance(value, LaunchSize):
        return value
    if isinstance(value, str):
        return LaunchSize(option, None, _compiled(option, value, tuple(names)))
    if callable(value):
        return LaunchSize(option, None, _with_holder(value, tuple(names)))
    return LaunchSize(option, checked_extent(option, value), None)


def size_of_instance(
    option: str, value: object, first: str, instance: Callable[[], Any], names: Sequence[str]
) -> object:
    """Return the launch size of a method: in a text `first` is the instance, which is not kept alive.

    Raises as `parse_launch_size`.
    """
    if not isinstance(value, str):
        return value
    compute = _compiled(option, value, (first, *names))
    return LaunchSize(option, None, lambda *values: compute(instance(), *values))


def names_instance(value: object, first: str) -> bool:
    """Whether a launch size of a method asks its instance, which is called `first`."""
    return isinstance(value, str) and re.search(rf"\b{first}\b", value) is not None


@lru_cache(maxsize=1024)
def _compiled(option: str, text: str, names: tuple[str, ...]) -> Callable[..., Any]:
    # The parentheses let "a.size, 1" be a tuple and the text span lines.
    source = f"lambda {', '.join(names)}: ({text}\n)"
    try:
        code = compile(source, f"<{option} of a kernel>", "eval")
    except SyntaxError as error:
        raise ArgumentValueError(f"{option}: {text!r} is not a Python expression ({error.msg})") from error
    compute: Callable[..., Any] = eval(code, {})
    return compute


def _with_holder(function: Callable[[CallValues], Any], names: tuple[str, ...]) -> Callable[..., Any]:
    def compute(*values: Any) -> Any:
        return function(CallValues(names, values))

    return compute


def checked_extent(option: str, value: object) -> Extent:
    """Return 1 to 3 positive ints padded with 1 to three. Raises ValueError if `value` is none of that."""
    axes = value if isinstance(value, tuple) else (value,)
    if not 1 <= len(axes) <= 3 or not all(_is_integer(axis) for axis in axes):
        raise ArgumentValueError(f"{option}: expected {_FORMS}; got {value!r}")
    x, y, z = (*(operator.index(axis) for axis in axes), 1, 1)[:3]
    if x < 1 or y < 1 or z < 1:
        raise ArgumentValueError(f"{option}: every size must be at least 1, got {(x, y, z)}")
    return (x, y, z)


def checked_local_size(value: object) -> Extent | None:
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
        return checked_extent("local_size", tuple(value) if isinstance(value, list) else value)
    except ArgumentValueError:
        raise ArgumentValueError(f"local_size: expected 1 to 3 positive ints, got {value!r}") from None


def _is_integer(value: object) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)
