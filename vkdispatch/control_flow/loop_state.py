"""A loop: the variables that it changes, its break and continue statements, and its rounds."""

import math
from collections.abc import Callable, Set
from contextlib import AbstractContextManager
from typing import Any, Protocol

from vkdispatch.base.dtype import bool_, int32
from vkdispatch.base.errors import ArgumentTypeError, UsageError
from vkdispatch.base.record import record
from vkdispatch.compiler.ir import Break, Continue, Expr
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import here, located, warn
from vkdispatch.control_flow import values
from vkdispatch.control_flow.paths import inline_last_values, unlock_components
from vkdispatch.control_flow.tracer import RECORDED, Entry, Retry, Tracer
from vkdispatch.control_flow.values import LocalScope, State, Variable, read, write

# ---- A loop: the variables that it changes, and its break and continue statements ------------------------
#
# A GPU loop keeps the variables that it changes in registers. Registers do not change within a round: each
# path to the next round or out of the loop stores the new values. The variables and their types are found
# by tracing the body; if a variable or a wider type is found too late, the loop is traced again.


Block = Callable[[], Any]
_Names = tuple[str, ...]
# `LoopNames` as rewritten code has them: a constant.
RawLoopNames = tuple[_Names, _Names, _Names, bool]
# Types only widen, so that few attempts are needed.
_ATTEMPTS = 40


class Caller(Protocol):
    """The interface of the enclosing function that a loop uses."""

    tracer: Tracer | None
    scope: LocalScope

    def open_entry(self, entry: Entry) -> AbstractContextManager[None]:
        """Note a construct as open."""
        ...

    def is_live(self, variable: Variable, names: Set[str]) -> bool:
        """Whether a variable is live, given the live names of the function."""
        ...

    def branch(
        self, active: Tracer, condition: Expr, then: Block, orelse: Block | None, after: Set[str]
    ) -> Any:
        """Record an if of two blocks."""
        ...

    def leave_if_done(self) -> None:
        """Leave the enclosing loop if a return has left the inner one."""
        ...


class _Carried:
    """A variable that a GPU loop changes: its type and registers."""

    def __init__(self, variable: Variable, kind: values.Kind, registers: list[Expr]) -> None:
        self.variable = variable
        self.kind = kind
        self.registers = registers
        self.value = values.rebuild(kind, map(values.LocalValue, registers))


@record
class LoopNames:
    """Local names that matter to a loop.

    Attributes
    ----------
    assigned
        Names that the loop assigns.
    head
        Names that are read from the start of a round on.
    after
        Names that are read after the loop.
    jumps
        Whether the body has a break, continue or return.
    """

    assigned: frozenset[str] = frozenset()
    head: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()
    jumps: bool = False

    @classmethod
    def from_constant(cls, names: RawLoopNames) -> "LoopNames":
        """Make the record from the tuple in rewritten code."""
        *groups, jumps = names
        assigned, head, after = map(frozenset, groups)
        return cls(assigned, head, after, jumps)

    @property
    def live(self) -> frozenset[str]:
        """Names whose values matter in the loop or after it."""
        return self.assigned | self.head | self.after


class Loop:
    """A loop being run or recorded."""

    def __init__(self, frame: Caller, noun: str, names: LoopNames) -> None:
        self.frame = frame
        self.noun = noun
        self.names = names
        # whether unrolling would not end if the GPU decided when to stop
        self.endless = noun == "while"
        self.loc = here()
        self.what = f"the {noun} loop"
        self.has_return = False
        self.has_break = False
        self._kinds: dict[int, values.Kind] = {}
        self._found_late: set[int] = set()
        self._carried: dict[int, _Carried] = {}
        self._changed: set[int] = set()
        self._state: State | None = None
        self.break_register: Expr | None = None
        self.is_unrolled = False
        self.target: str | None = None

    @property
    def where(self) -> str:
        """The loop and its line, for messages."""
        return f"{self.what} ({self.loc})"

    @property
    def tracer(self) -> Tracer:
        """The tracer of the kernel."""
        assert self.frame.tracer is not None
        return self.frame.tracer

    def is_live(self, variable: Variable) -> bool:
        """Whether the value of a variable is used after a round."""
        return self.frame.is_live(variable, self.names.head | self.names.after)

    # -- a loop on the GPU

    def record(self, attempt: Callable[[State], bool], orelse: Block | None) -> Any:
        """Record the loop, repeatedly until the types of its variables are known, and then its else block.

        `attempt` records the loop once, and returns whether only a break or return leaves it.
        """
        active = self.tracer
        active.enter_gpu(set(self.names.live))
        with active.watch_variables() as state:
            endless = self._attempts(attempt, state)
        return self._leave(orelse, endless=endless)

    def _attempts(self, attempt: Callable[[State], bool], state: State) -> bool:
        active, recorder = self.tracer, self.tracer.recorder
        mark = recorder.mark()
        for _ in range(_ATTEMPTS):
            try:
                self._state = state
                self.has_return = self.has_break = False
                return attempt(state)
            except Exception as error:
                active.abandon(error)
                raise
            except Retry as retry:
                if retry.target is not self:
                    raise
            active.rewind(mark, state)
        raise located(UsageError, f"the types of the variables of {self.where} do not settle")

    def start(self, state: State) -> None:
        """Put variables in registers for a function that the GPU may leave early, as for a loop."""
        self._state = state
        self.declare_registers(state)

    def export(self, state: State) -> None:
        """Set the variables of enclosing functions to their values after such a function."""
        for key, value in state.list_changes().items():
            if key not in self._carried and self.is_live(state.variables[key]):
                write(state.variables[key].cell, value)
        self.load_registers()

    def declare_registers(self, state: State) -> None:
        """Put the variables that the loop changes in registers."""
        self._carried = {}
        self._changed = set()
        for key, variable in state.variables.items():
            value = state.values[key]
            if not self._is_carried(key, variable, value):
                continue
            kind = self._kinds.get(key) or (
                values.Typed(int32) if value is values.UNBOUND else values.kind_of(value)
            )
            assert kind is not None
            recorder = self.tracer.recorder
            leaves = values.flatten_kind(kind)
            parts: list[Any] = [0] * len(leaves)
            if value is not values.UNBOUND:
                parts = [part for part, _ in values.iterate_leaves(value, kind)]
            registers = []
            for part, leaf in zip(parts, leaves, strict=True):
                dtype = values.dtype_of(leaf)
                start = values.as_expr(part, dtype)
                registers.append(recorder.declare(dtype, start, variable.name))
            self._carried[key] = _Carried(variable, kind, registers)
        self.load_registers()

    def _is_carried(self, key: int, variable: Variable, value: Any) -> bool:
        if key in self._found_late:
            return True
        is_of_function = variable.scope is self.frame.scope and variable.name not in variable.scope.free
        if not is_of_function or variable.name not in self.names.assigned or not self.is_live(variable):
            return False
        if value is values.UNBOUND:
            return variable.name == self.target
        is_place = values.is_gpu(value) and not isinstance(value, values.LocalValue)
        if is_place and value.is_register() and not values.is_local(value.expr):
            # += changes the register itself; another value would be noticed
            return False
        return values.kind_of(value) is not None

    def expect_counter(self, state: State, start: Expr) -> None:
        """Note the type of the loop variable, in case its last value is read after the loop."""
        for key, variable in state.variables.items():
            if variable.scope is self.frame.scope and variable.name == self.target and key not in self._kinds:
                before = values.kind_of(state.values[key])
                counter = values.Typed(start.dtype)
                try:
                    self._kinds[key] = counter if before is None else values.join(before, counter)
                except values.Mismatch:
                    self._kinds[key] = counter

    def load_registers(self) -> None:
        """Begin a round: set the variables to their registers."""
        for carried in self._carried.values():
            write(carried.variable.cell, carried.value)

    def store_registers(self, read_next: frozenset[str] | None = None) -> None:
        """Store the variables that are read next; `read_next` is None for the next round."""
        state = self._state
        assert state is not None
        self._find_others(state)
        pairs: list[tuple[Expr, Expr]] = []
        for key, carried in self._carried.items():
            value = read(carried.variable.cell)
            if value is carried.value:
                continue
            self._changed.add(key)
            kind = self._find_kind(carried, value, self.names.head if read_next is None else read_next)
            if kind is None:
                continue
            if [values.dtype_of(leaf) for leaf in values.flatten_kind(kind)] != [
                place.dtype for place in carried.registers
            ]:
                self._kinds[key] = kind
                raise Retry(self)
            for place, (part, _) in zip(carried.registers, values.iterate_leaves(value, kind), strict=True):
                expr = values.as_expr(part, place.dtype)
                if expr.value is not place.value:
                    pairs.append((place, expr))
        recorder = self.tracer.recorder
        stored: set[int] = set()
        settled: list[tuple[Expr, Expr]] = []
        for place, expr in pairs:
            # a value that reads a register which is stored earlier must be evaluated first
            late = bool(values.find_registers(expr) & stored)
            settled.append((place, recorder.declare(expr.dtype, expr) if late else expr))
            stored.add(id(place.value))
        for place, expr in settled:
            recorder.store(place, expr)
        inline_last_values(recorder.innermost)

    def _find_kind(self, carried: _Carried, value: Any, read_next: frozenset[str]) -> values.Kind | None:
        """Return the type that a variable needs, or None for a dead variable that registers cannot hold."""
        name = carried.variable.name
        kind = values.kind_of(value)
        if kind is not None:
            try:
                return values.join(carried.kind, kind)
            except values.Mismatch as error:
                why = str(error)
        else:
            why = values.explain_unkept(value)
        if not self.frame.is_live(carried.variable, read_next):
            return None
        assert self._state is not None
        before = self._state.values[id(carried.variable.cell)]
        raise located(
            ArgumentTypeError,
            f"{name!r} is {values.describe(before)} before {self.where} and {values.describe(value)} at the "
            f"end of a round; this loop runs on the GPU, and {why}",
        )

    def _find_others(self, state: State) -> None:
        """Look for further variables that the loop changes."""
        for key, value in state.list_changes().items():
            if key in self._carried:
                continue
            variable, before = state.variables[key], state.values[key]
            self._changed.add(key)
            if before is values.UNBOUND or not self.is_live(variable):
                continue
            if values.kind_of(before) is not None and values.kind_of(value) is not None:
                self._found_late.add(key)
                raise Retry(self)
            raise located(
                ArgumentTypeError,
                f"{variable.name!r} is {values.describe(before)} before {self.where} and "
                f"{values.describe(value)} in it; this loop runs on the GPU, and "
                f"{values.explain_unkept(before, value)}",
            )

    def finish(self, state: State) -> None:
        """Set the variables to their values after the loop."""
        self._changed.update(state.list_changes())
        state.check_containers(self.where)
        state.restore()
        for key in self._changed:
            variable = state.variables[key]
            if key in self._carried:
                continue
            variable.scope.reasons[variable.name] = (
                f"{variable.name!r} gets its value inside {self.where} only, which runs on the GPU and "
                "may have no iterations; assign it before the loop"
            )
            write(variable.cell, values.UNBOUND)
        self.load_registers()
        for carried in self._carried.values():
            if carried.variable.name in carried.variable.scope.aliases:
                write(carried.variable.cell, unlock_components(carried.value))

    def jump(self, what: str) -> None:
        """Record a break or continue."""
        recorder = self.tracer.recorder
        self.store_registers(self.names.after if what == "break" else self.names.head)
        if what == "break":
            self.has_break = True
            if self.break_register is not None:
                recorder.store(self.break_register, ex.literal(True, bool_))
        recorder.emit(Break(here()) if what == "break" or self.is_unrolled else Continue(here()))

    def _leave(self, orelse: Block | None, *, endless: bool) -> Any:
        """Continue after the loop: run its else block, or pass on a return of the function."""
        if self.has_return:
            self.frame.leave_if_done()
        if endless and not self.has_break:
            return RECORDED
        if orelse is None:
            return None
        if not self.has_break or self.break_register is None:
            return orelse()
        return self.frame.branch(
            self.tracer, ex.invert(self.break_register), orelse, None, set(self.names.after)
        )

    def watch_breaks(self, orelse: Block | None) -> None:
        """Declare `break_register`, which tells whether a break has left the loop, if it is needed."""
        recorder = self.tracer.recorder
        needed = orelse is not None or self.is_unrolled
        self.break_register = recorder.declare(bool_, ex.literal(False, bool_), "left") if needed else None


# ---- Rounds of a loop that is unrolled while tracing: run one by one, and counted ------------------------


# Limits of the rounds of an unrolled loop: without a warning, if each adds to the kernel (a power of two),
# and in any case.
_LONG_LOOP = 1 << 10
_MANY_ROUNDS = 1 << 16
_MAX_ROUNDS = 1 << 22


class RoundCounter:
    """Counts the rounds of a loop while it is unrolled: a context for that time.

    Attributes
    ----------
    size
        How many rounds the loop has, if that is known; 1 otherwise.
    is_excessive
        Whether a loop inside is written out too often because of the loops around it.
    """

    def __init__(self, loop: Loop, size: int = 1) -> None:
        tracer = loop.frame.tracer
        self._loop = loop
        self._rounds = 0
        self._recorded = tracer.recorder.recorded if tracer is not None else 0
        self.size = size
        self.is_excessive = False
        # the loops that are being unrolled, from the outermost, and the rounds of all of them
        self._nest: list[RoundCounter] = [] if tracer is None else tracer.unrolled
        self._total = 0
        self._has_warned = False

    def __enter__(self) -> None:
        if self._nest:
            # of the round around it, only what is inside counts
            self._nest[0]._total -= 1
        self._nest.append(self)

    def __exit__(self, *_: object) -> None:
        self._nest.remove(self)

    def would_exceed(self) -> bool:
        """Whether the nest of loops is too long to be unrolled with this one in it; if so, mark them."""
        if self.size * math.prod(counter.size for counter in self._nest) <= _LONG_LOOP:
            return False
        for counter in self._nest:
            counter.is_excessive = True
        return True

    def count(self) -> None:
        """Count a round. Raises RuntimeError if there are too many."""
        self._rounds += 1
        if self._loop.frame.tracer is None:
            return
        outermost = self._nest[0]
        outermost._total += 1
        is_long = outermost._total == _LONG_LOOP + 1 and not outermost._has_warned
        if is_long and outermost._is_written_out():
            outermost._has_warned = True
            nested = "" if outermost is self else ", with those around it,"
            warn(
                f"this {self._loop.noun} loop{nested} is unrolled: each of more than {_LONG_LOOP:,} rounds "
                f"is written out in the kernel; {self._advice()}",
                self._loop.loc,
            )
        if self._rounds & (_MANY_ROUNDS - 1):
            return
        records = self._loop.tracer.recorder.recorded != self._recorded
        if records or self._rounds >= _MAX_ROUNDS:
            raise located(
                UsageError,
                f"{self._loop.where} has taken {self._rounds} rounds while the kernel is traced, "
                + ("each of which is written out in the kernel" if records else "and does not seem to end")
                + ": Python alone decides how often it runs; for a loop of the GPU use vc.range, or a "
                "condition on a value of the GPU, such as vc.new_int_register()",
            )

    def _is_written_out(self) -> bool:
        """Whether rounds add to the kernel, by statements or by values of variables."""
        if self._loop.tracer.recorder.recorded != self._recorded:
            return True
        scope = self._loop.frame.scope
        assigned = [read(scope.cells[name]) for name in self._loop.names.assigned if name in scope.cells]
        return any(map(_holds_gpu_value, assigned))

    def _advice(self) -> str:
        if self._loop.noun == "while":
            return "for a loop of the GPU use vc.range, or a condition on a value of the GPU"
        return "vc.range makes a loop of the GPU where Python need not know the numbers"


def _holds_gpu_value(value: object) -> bool:
    return any(map(_holds_gpu_value, value)) if isinstance(value, tuple) else values.is_gpu(value)


def run_round(loop: Loop, body: Callable[[Any], Any], item: Any) -> Any:
    """Run a round while tracing. Returns its signal, or the loop if the GPU decides about leaving it."""
    depth = loop.tracer.recorder.depth if loop.frame.tracer is not None else 0
    try:
        with loop.frame.open_entry(Entry("loop", depth, loop)):
            return body(item)
    except Retry as retry:
        if retry.target is not loop:
            raise
        return loop
