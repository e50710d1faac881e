"""`dir()` and completion of objects: they list what the reference documents."""

import re
from types import FunctionType
from typing import Any, TypeVar

_Member = TypeVar("_Member")

# The section "Attributes" of a docstring, whose names are lines such as "shape, size" without indentation.
_ATTRIBUTES = r"^Attributes\n-+\n(.*?)(?=^\S[^\n]*\n---|\Z)"
_NAMES = r"^(\w+(?:, \w+)*)$"
_CODE = (FunctionType, property, classmethod, staticmethod)


def internal(member: _Member) -> _Member:
    """Hide a method or property from `dir()` and the reference. Programs may still use it."""
    function: Any = member.fget if isinstance(member, property) else member
    function.__internal__ = True
    return member


def is_internal(member: object) -> bool:
    """Whether a member of a class was marked with `internal`."""
    function = member.fget if isinstance(member, property) else member
    return getattr(function, "__internal__", False) is True


def documented_names(owner: type[Any]) -> frozenset[str]:
    """Return the public names that the docstrings of a class and its bases describe."""
    from inspect import cleandoc  # slow to import

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
    """Base of classes whose `dir()` lists documented names and those of Python itself."""

    __slots__ = ()

    def __dir__(self) -> list[str]:
        every = super().__dir__()
        # python -OO removes docstrings: list all public names
        owner: type[Any] = type(self)
        if owner.__doc__ is None:
            return sorted(name for name in every if not re.match("_[^_]", name))
        return sorted({*(name for name in every if name.startswith("__")), *documented_names(owner)})
