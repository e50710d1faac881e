"""Structures and local arrays in plain Python: places that are written in place, copies that are not."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, ClassVar


class Kind:
    """A type: a number, a pair, a structure, or an array of one of these."""

    def __init__(self, name: str, shape: tuple[int, ...] = (), item: Any = None) -> None:
        self.name, self.shape, self.item = name, shape, item

    def __getitem__(self, shape: Any) -> Kind:
        return Kind("array", shape if isinstance(shape, tuple) else (shape,), self)


class Types:
    """The stand-in for `vd`."""

    int32, ivec2 = Kind("i32"), Kind("iv2")

    @staticmethod
    def fixed_array(item: Any, *shape: int) -> Kind:
        return Kind("array", shape, item)


class Record:
    """An instance of a structure: fields that are written in place."""

    kinds: ClassVar[dict[str, Any]] = {}

    def __init__(self, *values: Any) -> None:
        for (name, kind), value in zip(self.kinds.items(), values, strict=True):
            self.__dict__[name] = filled(kind, value)

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__[name] = filled(self.kinds[name], value)


class Items:
    """An array, or a row of one, which is a view."""

    def __init__(self, item: Any, data: list[Any], axes: int) -> None:
        self.item, self.data, self.axes = item, data, axes

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Any]:
        return (self[place] for place in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return copy.deepcopy(self)
        first, *rest = index if isinstance(index, tuple) else (index,)
        found = self.data[first]
        if self.axes > 1:
            row = Items(self.item, found, self.axes - 1)
            return row[tuple(rest)] if rest else row
        return found

    at = __getitem__

    def set(self, value: Any) -> None:
        self[:] = value

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice):
            values = list(value)
            for place, each in enumerate(values):
                self[place] = each
            return
        first, *rest = index if isinstance(index, tuple) else (index,)
        if self.axes > 1:
            row = Items(self.item, self.data[first], self.axes - 1)
            row[tuple(rest) if rest else slice(None)] = value
        else:
            self.data[first] = filled(self.item, value)


def filled(kind: Any, value: Any) -> Any:
    """Return what a place of a type holds after a store: a copy. Without a value it is zero."""
    from .source_model import Vector, checked

    if isinstance(kind, type):
        made: Any = object.__new__(kind)
        for name, each in kind.kinds.items():  # type: ignore[attr-defined]
            made.__dict__[name] = filled(each, None if value is None else getattr(value, name))
        return made
    if kind.name == "array":
        data = _zeros(kind.item, kind.shape)
        made = Items(kind.item, data, len(kind.shape))
        if value is not None:
            made[:] = value
        return made
    if kind.name == "iv2":
        return Vector([0, 0]) if value is None else Vector(value.values)
    return checked(kind.name, 0 if value is None else value)


def _zeros(item: Any, shape: tuple[int, ...]) -> list[Any]:
    count, *rest = shape
    return [_zeros(item, tuple(rest)) if rest else filled(item, None) for _ in range(count)]


def structure(cls: type[Any]) -> type[Record]:
    """The stand-in for `dataclass`."""
    return type(cls.__name__, (Record,), {"kinds": dict(cls.__annotations__)})


def local_array(kind: Any, shape: Any, name: str = "") -> Items:
    """The stand-in for `vc.local_array`."""
    axes = shape if isinstance(shape, tuple) else (shape,)
    item = kind if isinstance(kind, type) else Kind(kind)
    return Items(item, _zeros(item, axes), len(axes))


def copied(value: Any) -> Any:
    """Return the value that an element is where it is bound to a name or passed on: a structure is copied."""
    return copy.deepcopy(value) if isinstance(value, Record) else value
