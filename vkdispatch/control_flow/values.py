"""Local variables of traced functions, and their values: types in registers, copies, common types."""

import warnings
from collections import deque
from collections.abc import Iterator
from operator import is_
from types import BuiltinFunctionType, CellType, FunctionType, GeneratorType, ModuleType
from typing import Any

from vkdispatch.base import dtype as dt
from vkdispatch.base.errors import ArgumentValueError, UsageError, VkDispatchError
from vkdispatch.base.host_numpy import np
from vkdispatch.base.record import field, record, replace
from vkdispatch.codegen.objects.structures import StructureValue
from vkdispatch.codegen.trace.current import current
from vkdispatch.codegen.variables import BoundVariable, ShaderVariable
from vkdispatch.compiler.analyses.contents import PURE
from vkdispatch.compiler.ir import Expr, Op, Register, nodes
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.literals import bounds, common_type, fits
from vkdispatch.compiler.ir.location import located

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


# ---- Values of local variables: their types in registers, and the common types of two values -------------


class LocalValue(ShaderVariable):
    """An immutable GPU value of a local variable in a rewritten kernel, kept in a register.

    In-place operators make a new value, as for Python numbers.
    """

    __slots__ = ("_held",)

    _held: Expr | None

    def _value(self) -> Expr:
        held: Expr | None = getattr(self, "_held", None)
        if held is None:
            held = replace(self.expr, read=True) if self.expr.op is Op.REGISTER else self.expr
            object.__setattr__(self, "_held", held)
        return held

    def _update(self, symbol: str, result: Any) -> Any:
        return result

    def _place(self) -> Expr:
        if current().origin_of(self.expr) is not None:
            return self.expr
        raise located(
            ArgumentValueError,
            "the GPU decides which value this variable holds, so a part of it is not assigned to; assign to "
            "the variable itself, to buffer[index], or to a register made by .to_register()",
        )

    def _component(self, letter: str) -> ShaderVariable:
        return LocalValue(super()._component(letter).expr)

    def _part(self, index: int, name: str) -> ShaderVariable:
        return LocalValue(super()._part(index, name).expr)

    def __getitem__(self, index: Any) -> ShaderVariable:
        return LocalValue(super().__getitem__(index).expr)


# Types of Python ints in registers; the first that fits is used.
_INTEGERS = (dt.int32, dt.uint32, dt.int64, dt.uint64)


class PythonNumber(LocalValue):
    """A Python number that differs from round to round of a recorded loop.

    It combines with other values as Python numbers do. Uses that need more than `extremes` and `as_expr`
    unroll the loop.
    """

    __slots__ = ()

    @property
    def extremes(self) -> tuple[int | float, int | float]:
        """The least and the greatest number."""
        raise NotImplementedError

    def as_expr(self, kind: dt.DType) -> Expr:
        """Expression of a scalar type that holds all of the numbers exactly."""
        raise NotImplementedError

    def is_same(self, other: "PythonNumber") -> bool:
        """Whether both are the same number in every round."""
        raise NotImplementedError


class Unbound:
    """The value of an unbound variable."""

    def __repr__(self) -> str:
        return "no value"


UNBOUND = Unbound()


def is_gpu(value: object) -> bool:
    """Whether a value is known only on the GPU."""
    return isinstance(value, ShaderVariable) and not isinstance(value, (BoundVariable, PythonNumber))


def is_local(expr: Expr) -> bool:
    """Whether an expression is the register of a local variable."""
    return isinstance(expr.value, Register) and expr.value.local


def is_steady(expr: Expr) -> bool:
    """Whether an expression is constant within a kernel: it reads no memory and no register."""
    return all(node.op in PURE for node in nodes((expr,)))


def find_registers(expr: Expr) -> set[int]:
    """Return the identities of the registers that an expression reads."""
    return {id(node.value) for node in nodes((expr,)) if isinstance(node.value, Register)}


@record
class Weak:
    """A Python number, which takes the type of the GPU value that it is combined with.

    For a number that differs from round to round, `value` is the greatest and `least` the least.
    """

    value: bool | int | float | complex
    least: int | float | None = None


@record
class Typed:
    """A GPU value."""

    dtype: dt.DType


@record
class Group:
    """A tuple of values in registers."""

    parts: tuple["Kind", ...]
    maker: Any


Kind = Weak | Typed | Group


class Mismatch(Exception):
    """Two values have no common type, or a value has none that registers hold."""


def kind_of(value: object) -> Kind | None:
    """Return the type of a value in registers, or None unless it is a number, GPU value or tuple of those."""
    if isinstance(value, PythonNumber):
        least, greatest = value.extremes
        return Weak(greatest, least)
    if isinstance(value, ShaderVariable):
        return None if isinstance(value, BoundVariable) else Typed(value._value().dtype)
    if isinstance(value, (np.bool_, np.number)):
        return Weak(value.item())
    if isinstance(value, (bool, int, float, complex)):
        return Weak(value)
    if isinstance(value, tuple) and value:
        parts = [kind_of(part) for part in value]
        known = tuple(part for part in parts if part is not None)
        return Group(known, type(value)) if len(known) == len(parts) else None
    return None


def describe(value: object) -> str:
    """Describe a value, for error messages."""
    if isinstance(value, ShaderVariable) and is_gpu(value):
        return f"a GPU value of type {value.var_type.name}"
    if isinstance(value, Unbound):
        return "no value"
    if isinstance(value, StructureValue):
        return repr(value)
    text = repr(value)
    return f"{text if len(text) < 40 else text[:37] + '...'} ({type(value).__name__})"


def explain_unkept(*values: object) -> str:
    """Say why values cannot be kept in a variable where the GPU decides."""
    if any(isinstance(value, StructureValue) for value in values):
        return "a whole structure is assigned by s[:] = ..., or field by field"
    return "only numbers, GPU values, and tuples and named tuples of them can be kept there"


def dtype_of(kind: Weak | Typed) -> dt.DType:
    """Return the type of the register for a value. Python numbers become int32, float32 or bool."""
    if isinstance(kind, Typed):
        return kind.dtype
    value = kind.value
    if isinstance(value, bool):
        return dt.bool_
    if isinstance(value, int):
        dtype = common_type((value,), _INTEGERS)
        if dtype is None:
            raise located(ArgumentValueError, f"the integer {value} does not fit in 64 bits")
        return dtype
    return dt.complex64 if isinstance(value, complex) else dt.float32


def join(first: Kind, second: Kind) -> Kind:
    """Return the common type of two values. Raises Mismatch if there is none."""
    if isinstance(first, Group) or isinstance(second, Group):
        if not isinstance(first, Group) or not isinstance(second, Group):
            raise Mismatch("a tuple and a single value have no common type")
        if len(first.parts) != len(second.parts):
            raise Mismatch(f"tuples of {len(first.parts)} and {len(second.parts)} values have no common type")
        return Group(tuple(map(join, first.parts, second.parts)), first.maker)
    if isinstance(first, Typed) and isinstance(second, Typed):
        return Typed(_promote(first.dtype, second.dtype))
    if isinstance(first, Weak) and isinstance(second, Weak):
        return _join_numbers(first, second)
    typed, weak = (first, second) if isinstance(first, Typed) else (second, first)
    assert isinstance(typed, Typed)
    assert isinstance(weak, Weak)
    kind = _adopt_number(weak.value, typed.dtype)
    if weak.least is not None and _adopt_number(weak.least, typed.dtype) is not kind:
        raise Mismatch(
            f"{typed.dtype.name} and the numbers from {weak.least} to {weak.value} have no common type"
        )
    return Typed(kind)


def _join_numbers(first: Weak, second: Weak) -> Kind:
    a, b = first.value, second.value
    if isinstance(a, bool) and isinstance(b, bool):
        return first
    for wide in (complex, float):
        if isinstance(a, wide) or isinstance(b, wide):
            return first if isinstance(a, wide) else second
    assert isinstance(a, int)
    assert isinstance(b, int)
    common = common_type((a, b), _INTEGERS)
    if common is None:
        raise Mismatch(f"the numbers {a} and {b} have no common type")
    for kind in (first, second):
        if dtype_of(kind) is common:
            # of two that need that type the larger one
            other = second if kind is first else first
            return other if dtype_of(other) is common and abs(other.value) > abs(kind.value) else kind
    return Typed(common)


def _adopt_number(value: Any, kind: dt.DType) -> dt.DType:
    """Return the type of a number and a GPU value: that of the GPU value, or a wider one that holds both."""
    if isinstance(value, bool) and kind is dt.bool_:
        return kind
    if isinstance(value, complex):
        return _promote(kind, dt.complex64)
    if not (dt.is_scalar(kind) or dt.is_complex(kind)):
        raise Mismatch(f"{kind.name} and the number {value!r} have no common type")
    if isinstance(value, int):
        if kind is dt.bool_:
            return dtype_of(Weak(value))
        if not dt.is_integer_dtype(kind) or fits(value, kind):
            return kind
        candidates = _INTEGERS[:2] if dtype_of(Weak(value)).item_size == 4 else _INTEGERS
        wide = common_type((value, *bounds(kind)), candidates)
        if wide is None:
            raise Mismatch(
                f"{kind.name} and the number {value}, which does not fit in it, have no common type"
            )
        return wide
    return kind if dt.is_float_dtype(kind) or dt.is_complex(kind) else _promote(kind, dt.float32)


def _promote(a: dt.DType, b: dt.DType) -> dt.DType:
    if a is b:
        return a
    same_shape = (dt.is_scalar(a) or dt.is_complex(a)) and (dt.is_scalar(b) or dt.is_complex(b))
    if not same_shape and not (dt.is_vector(a) and dt.is_vector(b)):
        raise Mismatch(f"{a.name} and {b.name} have no common type")
    a, b = (dt.int32 if kind is dt.bool_ else kind for kind in (a, b))
    try:
        return ex.promote(a, b, "assignment")
    except VkDispatchError:
        raise Mismatch(f"{a.name} and {b.name} have no common type") from None


def iterate_leaves(value: object, kind: Kind) -> Iterator[tuple[object, Weak | Typed]]:
    """Yield each scalar of a value, with its type."""
    if isinstance(kind, Group):
        assert isinstance(value, tuple)
        for part, inner in zip(value, kind.parts, strict=True):
            yield from iterate_leaves(part, inner)
    else:
        yield value, kind


def rebuild(kind: Kind, parts: Iterator[Any]) -> Any:
    """Build a value from its leaves."""
    if not isinstance(kind, Group):
        return next(parts)
    made = [rebuild(inner, parts) for inner in kind.parts]
    return kind.maker(*made) if hasattr(kind.maker, "_fields") else tuple(made)


def flatten_kind(kind: Kind) -> list[Weak | Typed]:
    """Return the types of the leaves."""
    return [leaf for part in kind.parts for leaf in flatten_kind(part)] if isinstance(kind, Group) else [kind]


def as_expr(value: Any, kind: dt.DType) -> Expr:
    """Expression of type `kind` for a number or GPU value."""
    if isinstance(value, PythonNumber):
        return ex.cast(value.as_expr(dt.component_type(kind)), kind)
    if isinstance(value, ShaderVariable):
        # for a statement that is recorded at once
        return ex.cast(value.expr, kind)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, complex) or dt.is_complex(kind):
        return ex.construct(kind, (value,))
    if isinstance(value, bool) and kind is not dt.bool_:
        value = int(value)
    return ex.cast(ex.literal(value, kind), kind) if dt.is_scalar(kind) else ex.construct(kind, (value,))


def are_same(first: object, second: object) -> bool:
    """Whether two values are the same object, or equal numbers or strings of one type."""
    if first is second:
        return True
    if isinstance(first, PythonNumber) and isinstance(second, PythonNumber):
        return first.is_same(second)
    if isinstance(first, PythonNumber) or isinstance(second, PythonNumber):
        return False
    if isinstance(first, ShaderVariable) and isinstance(second, ShaderVariable):
        return first.expr is second.expr
    if type(first) is not type(second):
        return False
    if isinstance(first, tuple) and isinstance(second, tuple):
        return len(first) == len(second) and all(map(are_same, first, second))
    if not isinstance(first, (bool, int, float, complex, str, bytes, np.generic)):
        return False
    return bool(first == second or (first != first and second != second))


# ---- Contents of Python containers and objects: captured, compared and restored --------------------------


# Modules whose objects are not inspected.
_FOREIGN = ("vkdispatch", "numpy", "builtins", "types", "functools", "collections", "enum")
# Levels of containers in containers that are captured.
DEEPEST = 4
_PLAIN = (ShaderVariable, int, float, str, bytes, type, FunctionType, ModuleType, BuiltinFunctionType)
# Types of immutable values without contents.
ATOMS = frozenset(
    (
        *(int, float, bool, complex, str, bytes, type(None), Unbound, LocalValue, ShaderVariable),
        *(FunctionType, BuiltinFunctionType, ModuleType, type),
    )
)
# Bytes of an array that are compared.
_MAX_BYTES = 1 << 20


@record
class GlobalVariable:
    """A variable of a module, as a container of one value."""

    module: dict[str, Any]
    name: str


def collect_containers(
    label: str, value: Any, containers: list[tuple[str, Any, list[Any]]], seen: set[object], depth: int
) -> None:
    """Append to `found` the label, container and contents of a value and of what it contains.

    `seen` has the identities of values that are known, `depth` is the number of levels to descend.
    """
    if isinstance(value, _PLAIN) or value is None or id(value) in seen:
        return
    inner = list_contents(value)
    if inner is None:
        return
    if not isinstance(value, tuple):
        seen.add(id(value))
        noun = type(value).__name__ if type(value).__module__ in ("builtins", "numpy") else "object"
        containers.append((f"the {noun} {label!r}", value, inner))
    if depth and not ATOMS.issuperset(map(type, inner)):
        for part in inner[:512]:
            collect_containers(label, part, containers, seen, depth - 1)


def list_contents(value: Any) -> list[Any] | None:
    """Return the contents of a container or of an object of a user's class, or None."""
    if isinstance(value, GlobalVariable):
        return [value.module[value.name]] if value.name in value.module else []
    if isinstance(value, (list, tuple, deque)):
        return list(value)
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=id)
    if isinstance(value, np.ndarray):
        step = -(-value.nbytes // _MAX_BYTES) or 1
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


def refill(container: Any, before: list[Any], *, strict: bool) -> None:
    """Restore contents that `list_contents` returned."""
    half = len(before) // 2
    if isinstance(container, GlobalVariable):
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


def is_unchanged(now: list[Any] | None, before: list[Any]) -> bool:
    """Whether contents that `list_contents` returned are the same as before."""
    if now is None or len(now) != len(before):
        return False
    return all(map(is_, now, before)) or all(
        a is b or are_same(a, b) for a, b in zip(now, before, strict=True)
    )
