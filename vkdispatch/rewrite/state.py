"""The local variables of the functions being traced, seen through their cells."""

from collections import deque
from dataclasses import dataclass, field
from types import CellType
from typing import Any

import numpy as np

from vkdispatch.base.errors import UsageError
from vkdispatch.codegen.location import located
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.rewrite.values import UNBOUND, same

# Python objects whose own code is not a kernel's business.
_FOREIGN = ("vkdispatch", "numpy", "builtins", "types", "functools", "collections", "enum")
_DEEPEST = 4


def read(cell: CellType) -> Any:
    """Value of a local variable, or UNBOUND."""
    try:
        return cell.cell_contents
    except ValueError:
        return UNBOUND


def write(cell: CellType, value: object) -> None:
    """Give a local variable a value, or take it away."""
    if value is not UNBOUND:
        cell.cell_contents = value
    elif read(cell) is not UNBOUND:
        del cell.cell_contents


@dataclass(slots=True)
class Scope:
    """The cells of one running function by name.

    `free` are those that belong to functions around it, `aliases` the names that stay names of places,
    `shared` the module's variables that the function assigns, and `reasons` tell why a variable has no value.
    """

    cells: dict[str, CellType]
    free: frozenset[str] = frozenset()
    aliases: frozenset[str] = frozenset()
    module: dict[str, Any] = field(default_factory=dict)
    shared: tuple[str, ...] = ()
    reasons: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Variable:
    """A local variable of some running function."""

    name: str
    cell: CellType
    scope: Scope


Values = dict[int, Any]


def variables(scopes: list[Scope]) -> dict[int, Variable]:
    """Every local variable of the running functions, by the identity of its cell."""
    found: dict[int, Variable] = {}
    for scope in reversed(scopes):
        for name, cell in scope.cells.items():
            found.setdefault(id(cell), Variable(name, cell, scope))
    return found


@dataclass(frozen=True, slots=True)
class _Global:
    """A variable of a module."""

    module: dict[str, Any]
    name: str


@dataclass(slots=True)
class State:
    """All local variables at one moment, and what the Python containers among them held."""

    variables: dict[int, Variable]
    values: Values
    containers: list[tuple[str, Any, list[Any]]]

    def changed(self) -> dict[int, Any]:
        """Variables that have another value by now, with that value."""
        result = {}
        for key, variable in self.variables.items():
            now = read(variable.cell)
            if now is not self.values[key]:
                result[key] = now
        return result

    def restore(self) -> None:
        """Give every variable the value of that moment."""
        for key, variable in self.variables.items():
            write(variable.cell, self.values[key])

    def check_containers(self, where: str) -> None:
        """Raise RuntimeError if a list, dict, set or object changed since that moment."""
        for label, container, before in self.containers:
            if not _alike(_contents(container), before):
                raise located(
                    UsageError,
                    f"{label} changes inside {where}, but Python objects and global variables change while "
                    "the kernel is traced, whether or not the code runs on the GPU; use local variables, or "
                    "an array of the GPU",
                )


def capture(scopes: list[Scope], *, containers: bool) -> State:
    """Note the value of every local variable of the running functions, and of their containers if asked."""
    known = variables(scopes)
    values = {key: read(variable.cell) for key, variable in known.items()}
    found: list[tuple[str, Any, list[Any]]] = []
    if not containers:
        return State(known, values, found)
    seen: set[int] = set()
    for scope in scopes:
        for name in scope.shared:
            part = _Global(scope.module, name)
            found.append((f"the global variable {name!r}", part, _contents(part) or []))
    for key, variable in known.items():
        _collect(variable.name, values[key], found, seen, _DEEPEST)
    return State(known, values, found)


def _collect(
    label: str, value: Any, found: list[tuple[str, Any, list[Any]]], seen: set[int], depth: int
) -> None:
    if isinstance(value, (ShaderVariable, int, float, str, type)) or value is None or id(value) in seen:
        return
    inner = _contents(value)
    if inner is None:
        return
    if not isinstance(value, tuple):
        seen.add(id(value))
        noun = type(value).__name__ if type(value).__module__ in ("builtins", "numpy") else "object"
        found.append((f"the {noun} {label!r}", value, inner))
    if depth:
        for part in inner[:512]:
            _collect(label, part, found, seen, depth - 1)


def _contents(value: Any) -> list[Any] | None:
    """Return what a container or an object of a user's class holds, or None for anything else."""
    if isinstance(value, _Global):
        return [value.module[value.name]] if value.name in value.module else []
    if isinstance(value, (list, tuple, deque)):
        return list(value)
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=id)
    if isinstance(value, np.ndarray):
        return [value.shape, value.tobytes()]
    if _is_foreign(type(value)):
        return None
    members = getattr(value, "__dict__", {})
    held = [*members.keys(), *members.values()] if isinstance(members, dict) else []
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        names = (slots,) if isinstance(slots, str) else slots
        held.extend(getattr(value, name, None) for name in names)
    return held


def _is_foreign(kind: type) -> bool:
    module = getattr(kind, "__module__", "builtins") or "builtins"
    return module.split(".")[0] in _FOREIGN


def _alike(now: list[Any] | None, before: list[Any]) -> bool:
    if now is None or len(now) != len(before):
        return False
    return all(a is b or same((a, b)) for a, b in zip(now, before, strict=True))
