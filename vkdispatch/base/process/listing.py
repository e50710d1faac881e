"""What `dir()` and completion show of our objects: what the reference has about them."""

import re
from types import FunctionType
from typing import Any, TypeVar

_Member = TypeVar("_Member")

# The names of a docstring's section "Attributes": lines such as "shape, size" that are not indented.
_ATTRIBUTES = r"^Attributes\n-+\n(.*?)(?=^\S[^\n]*\n---|\Z)"
_NAMES = r"^(\w+(?:, \w+)*)$"
_CODE = (FunctionType, property, classmethod, staticmethod)


def internal(member: _Member) -> _Member:
    """Leave a method or property out of `dir()` and of the reference. Programs may go on using it."""
    function: Any = member.fget if isinstance(member, property) else member
    function.__internal__ = True
    return member


def is_internal(member: object) -> bool:
    """Whether `internal` was said of a member of a class."""
    function = member.fget if isinstance(member, property) else member
    return getattr(function, "__internal__", False) is True


def documented_names(owner: type[Any]) -> frozenset[str]:
    """Return the public names that the docstrings of a class and its bases describe."""
    from inspect import cleandoc  # which takes long to import

    found: set[str] = set()
    hidden: set[str] = set()
    for each in owner.__mro__[:-1]:
        section = re.search(_ATTRIBUTES, cleandoc(each.__doc__ or ""), re.MULTILINE | re.DOTALL)
        lines = re.findall(_NAMES, section[1], re.MULTILINE) if section else ()
        found.update(name for line in lines for name in line.split(", "))
        for name, member in vars(each).items():
            if is_internal(member):
                hidden.add(name)
            elif isinstance(member, _CODE) and member.__doc__:
                found.add(name)
    return frozenset(name for name in found - hidden if not name.startswith("_"))


class Listed:
    """An object of which `dir()` shows what its documentation describes, and Python's own names."""

    __slots__ = ()

    def __dir__(self) -> list[str]:
        every = super().__dir__()
        # without docstrings, under python -OO, nothing tells what is described
        owner: type[Any] = type(self)
        if owner.__doc__ is None:
            return sorted(name for name in every if not re.match("_[^_]", name))
        return sorted({*(name for name in every if name.startswith("__")), *documented_names(owner)})
