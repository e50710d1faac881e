"""The local variables of the functions being traced, accessed through their cells."""

from collections.abc import Iterator
from types import CellType
from typing import Any

from vkdispatch.base.errors import UsageError
from vkdispatch.base.record import field, record
from vkdispatch.compiler.ir.location import located
from vkdispatch.control_flow.values import (
    ATOMS,
    DEEPEST,
    UNBOUND,
    GlobalVariable,
    collect_containers,
    is_unchanged,
    list_contents,
    refill,
)

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
class LocalScope:
    """The variables of one running function.

    Attributes
    ----------
    cells
        The cells of its local variables by name.
    free
        Names of variables of the functions around it.
    rebound
        Those of them that the function, or a function inside it, assigns.
    aliases
        Names that are assigned to by parts or by `[:]`: they remain names of places.
    parts
        Those that are assigned to by parts.
    module
        The variables of its module.
    shared
        Names of the module's variables that the function assigns.
    mentioned
        Names of the module's variables that it reads.
    reasons
        Why a variable has no value, by name.
    """

    cells: dict[str, CellType]
    free: frozenset[str] = frozenset()
    rebound: frozenset[str] = frozenset()
    aliases: frozenset[str] = frozenset()
    parts: frozenset[str] = frozenset()
    module: dict[str, Any] = field(factory=dict)
    shared: tuple[str, ...] = ()
    mentioned: tuple[str, ...] = ()
    reasons: dict[str, str] = field(factory=dict)
    # the variables of the functions around it, and those with its own
    merged: "tuple[dict[int, Variable] | None, dict[int, Variable]]" = field(factory=lambda: (None, {}))
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
    scope: LocalScope


Values = dict[int, Any]
_NO_VARIABLES: dict[int, Variable] = {}


def list_variables(scopes: list[LocalScope]) -> dict[int, Variable]:
    """Return all local variables of the running functions, by the identity of their cells."""
    outer = _NO_VARIABLES
    for scope in scopes:
        # the functions around a running one stay the same
        around, known = scope.merged
        if around is not outer:
            # those of the inner ones take precedence, and stand first
            known = {**scope.variables, **outer, **scope.variables} if outer else {**scope.variables}
            scope.merged = outer, known
        outer = known
    return {**outer}


@record(eq=False, frozen=False)
class State:
    """All local variables at one moment, and what the containers among them held if it `compares` them."""

    variables: dict[int, Variable]
    values: Values
    compares: bool = False
    containers: list[tuple[str, Any, list[Any]]] = field(factory=list)
    _seen: set[object] = field(factory=set)
    # the target of the Retry when a function with iterators is called
    retry_on_iterators: object | None = None
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
            if not is_unchanged(list_contents(container), before):
                refill(container, before, strict=strict)

    def admit(self, scope: LocalScope) -> None:
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

    def watch(self, scope: LocalScope) -> None:
        """Note the contents of a function's containers, and the global variables that it assigns."""
        for name in scope.shared:
            key = id(scope.module), name
            if key not in self._seen:
                self._seen.add(key)
                part = GlobalVariable(scope.module, name)
                self.containers.append((f"the global variable {name!r}", part, list_contents(part) or []))
        named = [(name, scope.module.get(name)) for name in scope.mentioned]
        named += [(name, read(cell)) for name, cell in scope.cells.items()]
        for name, value in named:
            if type(value) not in ATOMS:
                collect_containers(name, value, self.containers, self._seen, DEEPEST)

    @property
    def has_iterators(self) -> bool:
        """Whether there are iterators among the containers, which cannot be restored."""
        return any(isinstance(container, Iterator) for _, container, _ in self.containers)

    def check_containers(self, where: str) -> None:
        """Raise RuntimeError if a list, dict, set or object has changed since the capture."""
        for label, container, before in self.containers:
            if not is_unchanged(list_contents(container), before):
                raise located(
                    UsageError,
                    f"{label} changes inside {where}, but Python objects and global variables change while "
                    "the kernel is traced, whether or not the code runs on the GPU; use local variables, or "
                    "an array of the GPU",
                )


def capture(scopes: list[LocalScope], *, containers: bool) -> State:
    """Capture the local variables of the running functions, and with `containers` their contents."""
    known = list_variables(scopes)
    values = {
        key: UNBOUND if variable.cell == _EMPTY else variable.cell.cell_contents
        for key, variable in known.items()
    }
    state = State(known, values, containers)
    if containers:
        for scope in scopes:
            state.watch(scope)
    return state
