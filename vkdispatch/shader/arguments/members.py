"""The members of a block, read from a dictionary or dataclass."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.host_numpy import np

# The members of a structure or array, by name or number; None for a value.
_Tree = dict[Any, Any] | None


def read_members(who: str, argument: str, fields: tuple[str, ...], value: Any) -> list[Any]:
    """Return the value of each field, such as "scale" or "lights[1].color", in their order.

    Parameters
    ----------
    who
        The kernel, as messages call it.
    argument
        The name of the argument.
    value
        A dictionary, a dataclass instance or an element of a structured array. Its values may be such
        objects, or sequences of them.

    Raises
    ------
    TypeError
        `value` is something else.
    ValueError
        A name is missing or unknown.
    """
    label = f"{who}: argument {argument!r}"
    members = _Members(label)
    members.add(_make_tree(fields), value, "")
    if members.missing or members.unknown:
        parts = []
        if members.missing:
            parts.append(f"no value is passed for {', '.join(map(repr, members.missing))}")
        if members.unknown:
            parts.append(f"there is no {', '.join(map(repr, members.unknown))}")
        raise ArgumentValueError(f"{label}: {'; '.join(parts)}; its members are {', '.join(fields)}")
    return [members.values[field] for field in fields]


@functools.lru_cache(256)
def _make_tree(fields: tuple[str, ...]) -> _Tree:
    tree: dict[Any, Any] = {}
    for field in fields:
        *around, last = _split_path(field)
        place = tree
        for step in around:
            place = place.setdefault(step, {})
        place[last] = None
    return tree


def _split_path(field: str) -> list[str | int]:
    """Return ["lights", 1, "color"] for "lights[1].color"."""
    steps = field.replace("]", "").replace("[", ".").split(".")
    return [int(step) if step.isdecimal() else step for step in steps]


class _Members:
    """The values found for the members of a block, by path, and the paths that do not fit."""

    def __init__(self, label: str) -> None:
        self._label = label
        self.values: dict[str, Any] = {}
        self.missing: list[str] = []
        self.unknown: list[str] = []

    def add(self, tree: _Tree, value: object, path: str) -> None:
        """Add the values of a tree, which begins at `path`."""
        if tree is None:
            self.values[path] = value
            return
        if 0 in tree:
            for number, part in enumerate(_read_sequence(self._label, value, path, len(tree))):
                self.add(tree[number], part, f"{path}[{number}]" if path else str(number))
            return
        inside = f"{path}." if path else ""
        parts = _read_parts(self._label, value, path)
        for name, inner in tree.items():
            if name in parts:
                self.add(inner, parts[name], f"{inside}{name}")
            else:
                self.missing.append(f"{inside}{name}")
        # A dataclass may have fields beyond the members.
        if not _is_dataclass(value):
            self.unknown += [f"{inside}{name}" for name in parts if name not in tree]


def _read_parts(label: str, value: Any, path: str) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    if _is_dataclass(value):
        names = [name for name in value.__dataclass_fields__ if hasattr(value, name)]
        return {name: getattr(value, name) for name in names}
    if isinstance(value, np.void) and value.dtype.names:
        return {name: value[name] for name in value.dtype.names}
    what = f"{path!r}: " if path else ""
    raise ArgumentTypeError(
        f"{label}: {what}expected a dictionary or a dataclass instance, got {type(value).__name__} "
        f"{repr(value)[:60]}"
    )


def _read_sequence(label: str, value: Any, path: str, count: int) -> "Sequence[Any] | np.ndarray[Any, Any]":
    what = f"{path!r}: " if path else ""
    if not isinstance(value, (list, tuple, np.ndarray)):
        raise ArgumentTypeError(
            f"{label}: {what}expected a sequence of {count}, got {type(value).__name__} {repr(value)[:60]}"
        )
    if len(value) != count:
        raise ArgumentValueError(f"{label}: {what}expected {count} of them, got {len(value)}")
    return value


def _is_dataclass(value: object) -> bool:
    return hasattr(value, "__dataclass_fields__") and not isinstance(value, type)
