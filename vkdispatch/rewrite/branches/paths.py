"""Alternative paths through a kernel, of which the GPU takes one: recorded separately."""

from collections.abc import Callable
from typing import Any

from vkdispatch.base.dtype import DType
from vkdispatch.base.record import field, record
from vkdispatch.compiler.ir import Declare, Expr, If, Op, Register, Statement
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import here
from vkdispatch.compiler.passes.reads import acts
from vkdispatch.rewrite.branches.blocks import emit_all
from vkdispatch.rewrite.state.tracer import Tracer
from vkdispatch.rewrite.state.variables import State, write


@record(frozen=False)
class Path:
    """One path: the statements that it records, the variables that it changes, its value or signal."""

    statements: list[Statement] = field(factory=list)
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


def make_register(tracer: Tracer, name: str | None, kind: DType) -> Expr:
    """Make a register without declaring it."""
    recorder = tracer.recorder
    return Expr(Op.REGISTER, kind, (), Register(recorder.claim_name(name), kind, local=True), here())


def declare_register(place: Expr, value: Expr) -> Declare:
    """Make the declaration of a register with its initial value."""
    assert isinstance(place.value, Register)
    return Declare(place.value, value, place.loc)


def emit_if(tracer: Tracer, condition: Expr, then: list[Statement], orelse: list[Statement]) -> None:
    """Record an if statement with finished branches."""
    if not acts(then) and not acts(orelse):
        return
    if not acts(then):
        condition, then, orelse = ex.invert(condition), orelse, []
    branches: tuple[tuple[Expr, tuple[Statement, ...]], ...] = ((condition, tuple(then)),)
    last: tuple[Statement, ...] | None = tuple(orelse) or None
    if last is not None and len(last) == 1 and isinstance(last[0], If):
        branches, last = (*branches, *last[0].branches), last[0].orelse
    tracer.recorder.emit(If(branches, last, here()))
