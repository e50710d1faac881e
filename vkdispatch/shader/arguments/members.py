"""The members of a block, taken from the dictionary or dataclass that a call gives for it."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.host_numpy import np

# Of members: those within by name or number; None where there is a value.
_Tree = dict[Any, Any] | None


def members_of(who: str, argument: str, fields: tuple[str, ...], value: Any) -> list[Any]:
    """Return the value of each field, such as "scale" or "lights[1].color", in their order.

    Parameters
    ----------
    who
        The kernel, as messages call it.
    argument
        The name of the argument.
    value
        A dictionary, a dataclass instance or an element of a structured array, of such and of sequences of
        such.

    Raises
    ------
    TypeError
        It is something else.
    ValueError
        A name is missing, or is one too many.
    """
    found: dict[str, Any] = {}
    missing: list[str] = []
    unknown: list[str] = []
    label = f"{who}: argument {argument!r}"
    _take(label, _tree_of(fields), value, "", found, missing, unknown)
    if missing or unknown:
        parts = [f"nothing is given for {', '.join(map(repr, missing))}"] if missing else []
        parts += [f"there is no {', '.join(map(repr, unknown))}"] if unknown else []
        raise ArgumentValueError(f"{label}: {'; '.join(parts)}; its members are {', '.join(fields)}")
    return [found[field] for field in fields]


@functools.lru_cache(256)
def _tree_of(fields: tuple[str, ...]) -> _Tree:
    tree: dict[Any, Any] = {}
    for field in fields:
        *around, last = _steps(field)
        place = tree
        for step in around:
            place = place.setdefault(step, {})
        place[last] = None
    return tree


def _steps(field: str) -> list[str | int]:
    """Return ["lights", 1, "color"] for "lights[1].color"."""
    steps = field.replace("]", "").replace("[", ".").split(".")
    return [int(step) if step.isdecimal() else step for step in steps]


def _take(
    label: str,
    tree: _Tree,
    value: Any,
    path: str,
    found: dict[str, Any],
    missing: list[str],
    unknown: list[str],
) -> None:
    """Put the values of a tree into `found` by their names, and note what does not fit it."""
    if tree is None:
        found[path] = value
        return
    if 0 in tree:
        for number, part in enumerate(_sequence(label, value, path, len(tree))):
            _take(
                label,
                tree[number],
                part,
                f"{path}[{number}]" if path else str(number),
                found,
                missing,
                unknown,
            )
        return
    inside = f"{path}." if path else ""
    parts = _parts(label, value, path)
    for name, inner in tree.items():
        if name in parts:
            _take(label, inner, parts[name], f"{inside}{name}", found, missing, unknown)
        else:
            missing.append(f"{inside}{name}")
    if not _is_dataclass(value):  # which may well have more
        unknown += [f"{inside}{name}" for name in parts if name not in tree]


def _parts(label: str, value: Any, path: str) -> Mapping[str, Any]:
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


def _sequence(label: str, value: Any, path: str, count: int) -> "Sequence[Any] | np.ndarray[Any, Any]":
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
