"""The local variables of the functions being traced, accessed through their cells."""

import warnings
from collections import deque
from collections.abc import Iterator
from operator import is_
from types import BuiltinFunctionType, CellType, FunctionType, GeneratorType, ModuleType
from typing import Any

from vkdispatch.base.errors import UsageError
from vkdispatch.base.host_numpy import np
from vkdispatch.base.record import field, record
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.ir.location import located
from vkdispatch.rewrite.state.values import UNBOUND, LocalValue, Unbound, are_same

# Modules whose objects are not inspected.
_FOREIGN = ("vkdispatch", "numpy", "builtins", "types", "functools", "collections", "enum")
_DEEPEST = 4
_PLAIN = (ShaderVariable, int, float, str, bytes, type, FunctionType, ModuleType, BuiltinFunctionType)
# Types of immutable values without contents.
_ATOMS = frozenset(
    (int, float, bool, complex, str, bytes, type(None), Unbound, LocalValue, ShaderVariable, FunctionType)
)
# Bytes of an array that are compared.
_MOST_BYTES = 1 << 20


_EMPTY = CellType()


def read(cell: CellType) -> Any:
    """Return the value of a local variable, or UNBOUND."""
    # cells are compared by their contents only if both have any
    return UNBOUND if cell == _EMPTY else cell.cell_contents


def write(cell: CellType, value: object) -> None:
    """Set a local variable, or delete it with UNBOUND."""
    if value is not UNBOUND:
        cell.cell_contents = value
    elif read(cell) is not UNBOUND:
        del cell.cell_contents


@record(frozen=False)
class Scope:
    """The cells of one running function by name.

    `free` are those that belong to functions around it, `rebound` those of them that it or its own functions
    assign, `aliases` the names that stay names of places, `shared` the module's variables that the function
    assigns, `mentioned` those that it reads, and `reasons` tell why a variable has no value.
    """

    cells: dict[str, CellType]
    free: frozenset[str] = frozenset()
    rebound: frozenset[str] = frozenset()
    aliases: frozenset[str] = frozenset()
    module: dict[str, Any] = field(factory=dict)
    shared: tuple[str, ...] = ()
    mentioned: tuple[str, ...] = ()
    reasons: dict[str, str] = field(factory=dict)
    _variables: "dict[int, Variable]" = field(factory=dict)

    @property
    def variables(self) -> "dict[int, Variable]":
        """The variables by the identity of their cells. Do not modify."""
        if not self._variables:
            self._variables.update(
                (id(cell), Variable(name, cell, self)) for name, cell in self.cells.items()
            )
        return self._variables


@record(frozen=False)
class Variable:
    """A local variable of some running function."""

    name: str
    cell: CellType
    scope: Scope


Values = dict[int, Any]


def variables(scopes: list[Scope]) -> dict[int, Variable]:
    """Return all local variables of the running functions, by the identity of their cells."""
    found: dict[int, Variable] = {}
    for scope in scopes:
        # those of the inner ones take precedence, and stand first
        found = {**scope.variables, **found, **scope.variables} if found else {**scope.variables}
    return found


@record
class _Global:
    """A variable of a module."""

    module: dict[str, Any]
    name: str


@record(eq=False, frozen=False)
class State:
    """All local variables at one moment, and what the containers among them held if it `compares` them."""

    variables: dict[int, Variable]
    values: Values
    compares: bool = False
    containers: list[tuple[str, Any, list[Any]]] = field(factory=list)
    _seen: set[object] = field(factory=set)
    # what to trace again if a function is called that has iterators
    wary: object | None = None
    # variables of functions that were called since: they end before the construct does
    _newer: dict[int, CellType] = field(factory=dict)

    def list_changes(self) -> dict[int, Any]:
        """Return the variables whose values have changed, with the new values."""
        values = self.values
        return {
            key: now
            for key, variable in self.variables.items()
            if (now := UNBOUND if variable.cell == _EMPTY else variable.cell.cell_contents) is not values[key]
        }

    def restore(self) -> None:
        """Restore all variables to their captured values."""
        for key in self.list_changes():
            write(self.variables[key].cell, self.values[key])

    def restore_containers(self, *, strict: bool = True) -> None:
        """Restore the captured contents of lists, dicts, sets, arrays and objects.

        If `strict`, raises RuntimeError for other containers.
        """
        for _, container, before in self.containers:
            if not _is_unchanged(_contents(container), before):
                _refill(container, before, strict=strict)

    def admit(self, scope: Scope) -> None:
        """Add the variables that a newly called function can change besides its own."""
        for name, cell in scope.cells.items():
            key = id(cell)
            if name not in scope.free:
                self._newer[key] = cell
            elif name in scope.rebound and key not in self.variables and key not in self._newer:
                self.variables[key] = Variable(name, cell, scope)
                self.values[key] = read(cell)
        if self.compares:
            self.watch(scope)

    def watch(self, scope: Scope) -> None:
        """Note the contents of a function's containers, and the global variables that it assigns."""
        for name in scope.shared:
            key = id(scope.module), name
            if key not in self._seen:
                self._seen.add(key)
                part = _Global(scope.module, name)
                self.containers.append((f"the global variable {name!r}", part, _contents(part) or []))
        for name in scope.mentioned:
            if name in scope.module:
                _collect(name, scope.module[name], self.containers, self._seen, _DEEPEST)
        for name, cell in scope.cells.items():
            value = read(cell)
            if type(value) not in _ATOMS:
                _collect(name, value, self.containers, self._seen, _DEEPEST)

    @property
    def has_iterators(self) -> bool:
        """Whether there are iterators among the containers, which cannot be restored."""
        return any(isinstance(container, Iterator) for _, container, _ in self.containers)

    def check_containers(self, where: str) -> None:
        """Raise RuntimeError if a list, dict, set or object has changed since the capture."""
        for label, container, before in self.containers:
            if not _is_unchanged(_contents(container), before):
                raise located(
                    UsageError,
                    f"{label} changes inside {where}, but Python objects and global variables change while "
                    "the kernel is traced, whether or not the code runs on the GPU; use local variables, or "
                    "an array of the GPU",
                )


def capture(scopes: list[Scope], *, containers: bool) -> State:
    """Capture the local variables of the running functions, and with `containers` their contents."""
    known = variables(scopes)
    values = {
        key: UNBOUND if variable.cell == _EMPTY else variable.cell.cell_contents
        for key, variable in known.items()
    }
    state = State(known, values, containers)
    if containers:
        for scope in scopes:
            state.watch(scope)
    return state


def _collect(
    label: str, value: Any, found: list[tuple[str, Any, list[Any]]], seen: set[object], depth: int
) -> None:
    if isinstance(value, _PLAIN) or value is None or id(value) in seen:
        return
    inner = _contents(value)
    if inner is None:
        return
    if not isinstance(value, tuple):
        seen.add(id(value))
        noun = type(value).__name__ if type(value).__module__ in ("builtins", "numpy") else "object"
        found.append((f"the {noun} {label!r}", value, inner))
    if depth and not _ATOMS.issuperset(map(type, inner)):
        for part in inner[:512]:
            _collect(label, part, found, seen, depth - 1)


def _contents(value: Any) -> list[Any] | None:
    """Return the contents of a container or of an object of a user's class, or None."""
    if isinstance(value, _Global):
        return [value.module[value.name]] if value.name in value.module else []
    if isinstance(value, (list, tuple, deque)):
        return list(value)
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=id)
    if isinstance(value, np.ndarray):
        step = -(-value.nbytes // _MOST_BYTES) or 1
        return [value.shape, value.reshape(-1)[::step].tobytes()]
    if isinstance(value, Iterator):
        return _iterator_state(value)
    if _is_foreign(type(value)):
        return None
    members = members_of(value) or {}
    held = [*members.keys(), *members.values()]
    return held + [getattr(value, name, None) for name in _slots(value)]


def _slots(value: Any) -> list[str]:
    names: list[str] = []
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        names.extend((slots,) if isinstance(slots, str) else slots)
    return names


def _refill(container: Any, before: list[Any], *, strict: bool) -> None:
    """Restore contents that `_contents` returned."""
    half = len(before) // 2
    if isinstance(container, _Global):
        container.module.pop(container.name, None)
        container.module.update(zip([container.name], before, strict=False))
    elif isinstance(container, (list, deque)):
        container.clear()
        container.extend(before)
    elif isinstance(container, set):
        container.clear()
        container.update(before)
    elif isinstance(container, dict):
        container.clear()
        container.update(zip(before[:half], before[half:], strict=True))
    elif (members := members_of(container)) is not None and not _slots(container):
        members.clear()
        members.update(zip(before[:half], before[half:], strict=True))
    elif isinstance(container, np.ndarray) and container.nbytes == len(before[1]):
        container[...] = np.frombuffer(before[1], container.dtype).reshape(container.shape)
    elif strict:
        raise located(
            UsageError,
            f"a value of type {type(container).__name__} changes in a function that has to be traced twice, "
            "since it returns values of several types; return one type",
        )


def members_of(value: Any) -> dict[str, Any] | None:
    """Return the attributes of an object of a user's class, or None."""
    members = None if _is_foreign(type(value)) else getattr(value, "__dict__", None)
    return members if isinstance(members, dict) else None


def _iterator_state(iterator: Iterator[Any]) -> list[Any] | None:
    """Return the state of an iterator, or None if it is not accessible."""
    if isinstance(iterator, GeneratorType):
        frame = iterator.gi_frame
        return [] if frame is None else [frame.f_lasti, *frame.f_locals.values()]
    if type(iterator).__module__ not in ("builtins", "itertools"):
        return None
    try:
        with warnings.catch_warnings():
            # itertools deprecates what pickle is made of
            warnings.simplefilter("ignore")
            state = iterator.__reduce__()
    except TypeError:
        return None
    return [inner for part in state[1:] for inner in (part if isinstance(part, tuple) else (part,))]


def _is_foreign(kind: type) -> bool:
    module = getattr(kind, "__module__", "builtins") or "builtins"
    return module.split(".")[0] in _FOREIGN


def _is_unchanged(now: list[Any] | None, before: list[Any]) -> bool:
    if now is None or len(now) != len(before):
        return False
    return all(map(is_, now, before)) or all(
        a is b or are_same((a, b)) for a, b in zip(now, before, strict=True)
    )
