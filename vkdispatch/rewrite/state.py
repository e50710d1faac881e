"""The local variables of the functions being traced, seen through their cells."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CellType
from typing import Any

from vkdispatch.base.errors import UsageError
from vkdispatch.codegen.location import located
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.rewrite.values import UNBOUND, same

# Python objects whose own code is not a kernel's business.
_FOREIGN = ("vkdispatch", "numpy", "builtins", "types", "functools", "collections", "enum")
_DEEPEST = 3


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
class _Part:
    """One variable of a module, as a list of at most one value."""

    module: dict[str, Any]
    name: str

    def copy(self) -> list[Any]:
        return [self.module[self.name]] if self.name in self.module else []

    def __len__(self) -> int:
        return len(self.copy())

    def __iter__(self) -> Iterator[Any]:
        return iter(self.copy())


@dataclass(slots=True)
class State:
    """All local variables at one moment, and what the Python containers among them held."""

    variables: dict[int, Variable]
    values: Values
    containers: list[tuple[str, Any, Any]]

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
            if not _unchanged(container, before):
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
    found: list[tuple[str, Any, Any]] = []
    if not containers:
        return State(known, values, found)
    seen: set[int] = set()
    for scope in scopes:
        for name in scope.shared:
            part = _Part(scope.module, name)
            found.append((f"the global variable {name!r}", part, part.copy()))
    for key, variable in known.items():
        _collect(variable.name, values[key], found, seen, _DEEPEST)
    return State(known, values, found)


def _collect(label: str, value: Any, found: list[tuple[str, Any, Any]], seen: set[int], depth: int) -> None:
    if isinstance(value, (ShaderVariable, int, float, str, type)) or value is None or id(value) in seen:
        return
    if isinstance(value, (list, set, dict)):
        seen.add(id(value))
        noun = type(value).__name__
        found.append((f"the {noun} {label!r}", value, value.copy()))
        inner: Iterator[Any] = iter(value.values() if isinstance(value, dict) else value)
    elif isinstance(value, tuple):
        inner = iter(value)
    elif _is_plain_object(value):
        seen.add(id(value))
        members = vars(value)
        found.append((f"the object {label!r}", members, members.copy()))
        inner = iter(members.values())
    else:
        return
    if depth:
        for part in list(inner)[:256]:
            _collect(label, part, found, seen, depth - 1)


def _is_plain_object(value: Any) -> bool:
    kind = type(value)
    module = getattr(kind, "__module__", "builtins") or "builtins"
    return module.split(".")[0] not in _FOREIGN and isinstance(getattr(value, "__dict__", None), dict)


def _unchanged(container: Any, before: Any) -> bool:
    if len(container) != len(before):
        return False
    if isinstance(container, set):
        return bool(container == before)
    if isinstance(container, dict):
        return all(key in before and _alike(value, before[key]) for key, value in container.items())
    return all(map(_alike, container, before))


def _alike(a: Any, b: Any) -> bool:
    return a is b or same((a, b))
