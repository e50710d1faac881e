"""Paths between which the GPU decides: recorded, and joined."""

from collections.abc import Callable, Iterable
from typing import Any

from vkdispatch.base.dtype import DType, bool_
from vkdispatch.base.record import field, record, replace
from vkdispatch.codegen.objects.structures import StructureValue
from vkdispatch.codegen.trace.recording import Recorder, make_zero
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler import ir
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import here
from vkdispatch.compiler.passes.reads import acts
from vkdispatch.control_flow import values
from vkdispatch.control_flow.tracer import Tracer
from vkdispatch.control_flow.values import State, Variable, write

# ---- Finished blocks of statements: recorded, and simplified at their ends -------------------------------


def emit_all(recorder: Recorder, statements: Iterable[ir.Statement]) -> None:
    """Record finished statements."""
    for statement in statements:
        recorder.emit(statement)


def emit_single_round(recorder: Recorder, statements: list[ir.Statement]) -> None:
    """Record a block that breaks may leave: as a loop of one round, or as it is if it has no inner breaks."""
    shorter = drop_last_breaks(statements)
    if has_breaks(shorter):
        recorder.emit(ir.While(ex.literal(True, bool_), (*statements, ir.Break(here())), here()))
    else:
        emit_all(recorder, shorter)


def drop_last_breaks(block: list[ir.Statement]) -> list[ir.Statement]:
    """Return a block without the breaks at its end, which have no effect there."""
    if not block:
        return block
    last = block[-1]
    if isinstance(last, (ir.Break, ir.Read)):
        return drop_last_breaks(block[:-1])
    if isinstance(last, ir.If):
        branches = tuple(
            (condition, tuple(drop_last_breaks(list(body)))) for condition, body in last.branches
        )
        orelse = None if last.orelse is None else tuple(drop_last_breaks(list(last.orelse))) or None
        return [*block[:-1], ir.If(branches, orelse, last.loc)]
    return block


def has_breaks(block: list[ir.Statement] | tuple[ir.Statement, ...]) -> bool:
    """Whether a block has a break that leaves the enclosing loop."""
    for statement in block:
        if isinstance(statement, ir.Break):
            return True
        if not isinstance(statement, (ir.While, ir.For)) and any(map(has_breaks, ir.blocks_of(statement))):
            return True
    return False


def inline_last_values(block: list[ir.Statement]) -> None:
    """Replace `T t = value; r = t;` at the end of a block by `r = value;` if nothing else reads t."""
    start = len(block)
    while start and (isinstance(block[start - 1], ir.Read) or _stores_register(block[start - 1])):
        start -= 1
    if start == len(block):
        return
    uses: dict[int, int] = {}
    for statement in ir.walk(tuple(block)):
        for node in ir.nodes(ir.expressions_of(statement)):
            if isinstance(node.value, ir.Register):
                uses[id(node.value)] = uses.get(id(node.value), 0) + 1
    known: dict[int, int] = {}
    for position in range(start - 1, -1, -1):
        statement = block[position]
        if isinstance(statement, ir.Read):
            continue
        if not isinstance(statement, ir.Declare) or statement.value.op is ir.Op.ATOMIC:
            break
        known[id(statement.register)] = position
    gone: set[int] = set()
    stored: set[int] = set()
    for position in range(start, len(block)):
        store = block[position]
        if isinstance(store, ir.Read):
            continue
        assert isinstance(store, ir.Store)
        source = id(store.value.value)
        if store.value.op is ir.Op.REGISTER and source in known and uses[source] == 1:
            first = block[known[source]]
            assert isinstance(first, ir.Declare)
            if not values.find_registers(first.value) & stored:
                block[position] = replace(store, value=first.value)
                gone.add(known[source])
        stored.add(id(store.place.value))
    block[:] = [statement for position, statement in enumerate(block) if position not in gone]


def _stores_register(statement: ir.Statement) -> bool:
    return (
        isinstance(statement, ir.Store)
        and statement.place.op is ir.Op.REGISTER
        and statement.operator is None
    )


# ---- Alternative paths through a kernel, of which the GPU takes one: recorded separately -----------------


@record(frozen=False)
class Path:
    """One path: the statements that it records, the variables that it changes, its value or signal."""

    statements: list[ir.Statement] = field(factory=list)
    changed: dict[int, Any] = field(factory=dict)
    result: Any = None

    @property
    def is_pure(self) -> bool:
        """Whether the path has no effect besides its value."""
        return not self.changed and not acts(self.statements)


def record_path(tracer: Tracer, state: State, body: Callable[[], Any] | None) -> Path:
    """Trace one path and restore the variables to `state`."""
    if body is None:
        return Path()
    recorder = tracer.recorder
    depth = recorder.depth
    recorder.open_block("if")
    try:
        result = body()
    except Exception as error:
        tracer.abandon(error)
        raise
    path = Path(recorder.take_block(depth), state.list_changes(), result)
    state.restore()
    return path


def take_path(tracer: Tracer, state: State, path: Path) -> None:
    """Record the statements of a path unconditionally, and apply its changes of variables."""
    emit_all(tracer.recorder, path.statements)
    for key, value in path.changed.items():
        write(state.variables[key].cell, value)


def make_register(tracer: Tracer, name: str | None, kind: DType) -> ir.Expr:
    """Make a register without declaring it."""
    recorder = tracer.recorder
    return ir.Expr(ir.Op.REGISTER, kind, (), ir.Register(recorder.claim_name(name), kind, local=True), here())


def declare_register(place: ir.Expr, value: ir.Expr) -> ir.Declare:
    """Make the declaration of a register with its initial value."""
    assert isinstance(place.value, ir.Register)
    return ir.Declare(place.value, value, place.loc)


def emit_if(tracer: Tracer, condition: ir.Expr, then: list[ir.Statement], orelse: list[ir.Statement]) -> None:
    """Record an if statement with finished branches."""
    if not acts(then) and not acts(orelse):
        return
    if not acts(then):
        condition, then, orelse = ex.invert(condition), orelse, []
    branches: tuple[tuple[ir.Expr, tuple[ir.Statement, ...]], ...] = ((condition, tuple(then)),)
    last: tuple[ir.Statement, ...] | None = tuple(orelse) or None
    if last is not None and len(last) == 1 and isinstance(last[0], ir.If):
        branches, last = (*branches, *last[0].branches), last[0].orelse
    tracer.recorder.emit(ir.If(branches, last, here()))


# ---- Values of variables after two paths: kept in registers where the paths differ -----------------------


def join_variables(
    tracer: Tracer,
    state: State,
    then: Path,
    orelse: Path,
    is_live: Callable[[Variable], bool],
    where: str,
    *,
    lenient: bool = False,
) -> None:
    """Set the variables to their values after either path; may add statements to the paths.

    A variable that has no value on one path has none afterwards, or zero if `lenient`.
    """
    for key in {**then.changed, **orelse.changed}:
        variable, before = state.variables[key], state.values[key]
        first, second = then.changed.get(key, before), orelse.changed.get(key, before)
        value: Any = values.UNBOUND
        if not is_live(variable):
            reason = f"{variable.name!r} is assigned on one path only through {where}"
        elif values.are_same(first, second):
            value, reason = first, ""
        elif (
            (first is values.UNBOUND or second is values.UNBOUND)
            and lenient
            and (kind := _kind_of_either(first, second))
        ):
            filled = [_make_zeros(kind) if end is values.UNBOUND else end for end in (first, second)]
            value = join_values(tracer, variable.name, kind, before, (then, filled[0]), (orelse, filled[1]))
            reason = ""
        elif first is values.UNBOUND or second is values.UNBOUND:
            reason = (
                f"{variable.name!r} has a value only on one path through {where}, which the GPU decides; "
                "assign it before, or on every path"
            )
        else:
            value, reason = _meet_or_explain(
                tracer, variable.name, before, (then, first), (orelse, second), where
            )
        if before is values.UNBOUND and value is values.UNBOUND:
            # an earlier reason is more specific
            reason = variable.scope.reasons.get(variable.name, reason)
        if reason:
            variable.scope.reasons[variable.name] = reason
        if variable.name in variable.scope.aliases:
            value = unlock_components(value)
        write(variable.cell, value)


def unlock_components(value: Any) -> Any:
    """Return a value in the register of a variable as one whose components can be assigned to."""
    if isinstance(value, tuple):
        return tuple(map(unlock_components, value)) if type(value) is tuple else value
    shared = isinstance(value, values.LocalValue) and values.is_gpu(value) and value.can_index
    return ShaderVariable(value.expr) if shared else value


def _kind_of_either(first: object, second: object) -> values.Kind | None:
    """Return the type of the value that is bound."""
    return values.kind_of(second if first is values.UNBOUND else first)


def _make_zeros(kind: values.Kind) -> Any:
    return values.rebuild(kind, iter([0] * len(values.flatten_kind(kind))))


def _meet_or_explain(
    tracer: Tracer, name: str, before: Any, one: tuple[Path, Any], other: tuple[Path, Any], where: str
) -> tuple[Any, str]:
    """Return the value of a variable after two paths, or the reason why it has none."""
    try:
        kind = join_kinds(one[1], other[1])
    except values.Mismatch as error:
        return values.UNBOUND, (
            f"{name!r} is {values.describe(one[1])} on one path through {where} and "
            f"{values.describe(other[1])} on the other; the GPU decides between them, and {error}"
        )
    return join_values(tracer, name, kind, before, one, other), ""


def join_kinds(first: object, second: object) -> values.Kind:
    """Return the common type of two values. Raises Mismatch if registers cannot hold both."""
    return values.join(_kind_in_registers(first), _kind_in_registers(second))


def _kind_in_registers(value: object) -> values.Kind:
    kind = values.kind_of(value)
    if kind is None:
        why = values.explain_unkept(value)
        raise values.Mismatch(
            why if isinstance(value, StructureValue) else f"{why}, not {values.describe(value)}"
        )
    return kind


def join_values(
    tracer: Tracer,
    name: str | None,
    kind: values.Kind,
    before: Any,
    one: tuple[Path, Any],
    other: tuple[Path, Any],
) -> Any:
    """Store the values of two paths in registers, initialized to `before` if a path does not change it."""
    parts = []
    columns = [[value for value, _ in values.iterate_leaves(path[1], kind)] for path in (one, other)]
    for first, second, leaf in zip(*columns, values.flatten_kind(kind), strict=True):
        if values.are_same(first, second):
            parts.append(first)
            continue
        dtype = values.dtype_of(leaf)
        place = make_register(tracer, name, dtype)
        ends = ((one[0], first), (other[0], second))
        kept = [value for path, value in ends if value is before and _is_unchanged(value, path)]
        start = values.as_expr(kept[0], dtype) if kept else make_zero(dtype)
        tracer.recorder.emit(declare_register(place, start))
        for (path, _), value in ((one, first), (other, second)):
            if not (kept and value is kept[0]):
                path.statements.append(ir.Store(place, values.as_expr(value, dtype), None, here()))
        parts.append(values.LocalValue(place))
    return values.rebuild(kind, iter(parts))


def _is_unchanged(value: object, path: Path) -> bool:
    """Whether a value from before an if is unchanged at the end of a branch."""
    if not values.is_gpu(value) or isinstance(value, values.LocalValue):
        return True
    assert isinstance(value, ShaderVariable)
    if values.is_local(value.expr):
        return not any(
            isinstance(statement, ir.Store) and ir.root_of(statement.place).value is value.expr.value
            for statement in ir.walk(tuple(path.statements))
        )
    return values.is_steady(value.expr)
