"""The state of a trace of rewritten functions: running functions, and copies of their values."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import CodeType, TracebackType
from typing import Any, Literal, Protocol

from vkdispatch.base.errors import UsageError, VkDispatchError
from vkdispatch.base.record import field, record
from vkdispatch.codegen.trace.current import current, is_tracing
from vkdispatch.codegen.trace.recording import Mark, Recorder
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir import Expr, Op, Register, is_part, is_place
from vkdispatch.compiler.ir.location import Loc, here, is_foreign, located
from vkdispatch.control_flow.values import (
    LocalScope,
    LocalValue,
    State,
    Unbound,
    capture,
    is_gpu,
    is_local,
    is_steady,
    list_variables,
    members_of,
    read,
    write,
)

# ---- Signals that blocks of rewritten functions return when a jump leaves them, and open constructs ------


class Signal:
    """How a block was left."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


BREAK = Signal("break")
CONTINUE = Signal("continue")
# The jump is recorded for the GPU; the rest of the block is unreachable.
RECORDED = Signal("gone")


class EndlessRecursionError(UsageError):
    """A function calls itself as often as the GPU decides. Many frames lead here, so it is raised anew."""


@record
class Returned:
    """The function returns a value at trace time."""

    value: Any


@record(frozen=False)
class Entry:
    """An open construct: the function, a GPU branch, an unrolled loop or a GPU loop.

    `depth` is the nesting depth of the recorder inside of it, `loop` the `loop_state.Loop`, if it is one.
    """

    kind: Literal["function", "branch", "loop", "gpu loop"]
    depth: int
    loop: Any = None


class Running(Protocol):
    """A running rewritten function."""

    scope: LocalScope

    def note_result(self) -> Callable[[], None]:
        """Note the state of the result; returns a function that restores it."""
        ...

    def list_result_registers(self) -> list[Expr]:
        """Return the registers that are declared after the function has been traced."""
        ...


_DEEPEST = 4
# Types of values that need no copies.
_STEADY = frozenset((int, float, bool, complex, str, bytes, type(None), Unbound, LocalValue))
_LEAVES = (Op.LITERAL, Op.ARGUMENT, Op.BUILTIN)


class Retry(BaseException):
    """Trace a construct again with more knowledge. Not an Exception, so that kernels do not catch it."""

    def __init__(self, target: object) -> None:
        super().__init__()
        self.target = target


@record(frozen=False)
class Tracer:
    """The trace of one kernel.

    Attributes
    ----------
    recorder
        What records the statements.
    enabled
        Whether functions are rewritten.
    gpu
        Whether the kernel has control flow that the GPU decides. Local variables hold copies of values then.
    reached
        Whether the trace has reached that control flow.
    kernel_next
        Whether the next frame is the kernel's.
    frames
        The calls of rewritten functions, the innermost last.
    waiting
        The target of the Retry when the trace reaches control flow of the GPU for the first time.
    open_states
        The variables as they were at the start of each open construct.
    abandoned
        Where an exception left a construct of the GPU.
    element_copies
        Identities of the registers that hold a value read from a buffer.
    attempts
        The open attempts to record a loop over Python numbers as a loop of the GPU.
    failures
        The number of failed attempts, by the code of the loop's body.
    unrolled
        The loops that are being unrolled, the innermost last.
    tries
        What had been recorded at the open `try` statements, by their lines.
    """

    recorder: Recorder
    enabled: bool = True
    gpu: bool = False
    reached: bool = False
    kernel_next: bool = False
    frames: list[Running] = field(factory=list)
    waiting: object | None = None
    open_states: list[State] = field(factory=list)
    abandoned: Loc | None = None
    element_copies: set[int] = field(factory=set)
    attempts: list[object] = field(factory=list)
    failures: dict[CodeType, int] = field(factory=dict)
    unrolled: list[Any] = field(factory=list)
    tries: dict[int, int] = field(factory=dict)

    def abandon(self, error: Exception) -> None:
        """Note that an exception leaves a GPU construct, after which the trace cannot continue."""
        place = here()
        self.abandoned = self.abandoned or place
        # names that do not exist are mistakes, which no condition would have avoided
        if isinstance(error, (VkDispatchError, AttributeError, NameError)):
            return
        if not getattr(error, "__notes__", None):
            error.add_note(
                f"This happened while the kernel was traced, in code that the GPU decides about ({place}): "
                "Python runs that block once, to record it, whatever the condition. Code of the GPU raises "
                "no exceptions: store an error value, or write `assert` and check the kernel."
            )

    @property
    def scopes(self) -> list[LocalScope]:
        """The scopes of the running functions."""
        return [frame.scope for frame in self.frames]

    @contextmanager
    def watch_variables(self, *, containers: bool = True) -> Iterator[State]:
        """Capture all local variables for a construct; functions called in it add theirs.

        `containers` tells whether the contents of Python containers are captured too.
        """
        state = capture(self.scopes, containers=containers)
        self.open_states.append(state)
        try:
            yield state
        finally:
            self.open_states.remove(state)

    def rewind(self, mark: Mark, state: State) -> None:
        """Discard what was recorded since a mark, and restore the variables."""
        self.recorder.rewind(mark)
        state.restore()
        for frame in self.frames:
            for place in frame.list_result_registers():
                # made since then, and still to be declared
                assert isinstance(place.value, Register)
                self.recorder.reserve_name(place.value.name)

    def before_gpu(self, attempt: Callable[[], Any]) -> Any:
        """Trace a construct that opens blocks and may be the first to reach GPU control flow.

        If it is the first, it is traced again: copies of local variables must be declared before its blocks.
        """
        if self.gpu or self.waiting is not None:
            return attempt()
        mark, frames = self.recorder.mark(), list(self.frames)
        self.waiting = token = object()
        with self.watch_variables() as state:
            try:
                return attempt()
            except Retry as retry:
                if retry.target is not token:
                    raise
            finally:
                self.waiting = None
        self.frames[:] = frames
        self.rewind(mark, state)
        state.restore_containers(strict=False)
        self.enter_gpu()
        self.reached = False
        return attempt()

    def enter(self, frame: Running) -> None:
        """Begin a call of a rewritten function."""
        for state in self.open_states:
            state.admit(frame.scope)
            if state.retry_on_iterators is not None and state.has_iterators:
                raise Retry(state.retry_on_iterators)
        self.frames.append(frame)

    def enter_gpu(self, live: set[str] | None = None) -> None:
        """Prepare for GPU control flow: variables with unevaluated reads get copies.

        `live` are the live names of the innermost function. None: all names.
        """
        if not self.gpu and self.waiting is not None:
            raise Retry(self.waiting)
        self.gpu = self.reached = True
        innermost = self.frames[-1].scope if self.frames else None
        for variable in list_variables(self.scopes).values():
            if variable.scope is innermost and live is not None and variable.name not in live:
                continue
            value = read(variable.cell)
            if type(value) in _STEADY:
                continue
            self._freeze_inside(value, _DEEPEST)
            if variable.name in variable.scope.aliases:
                continue
            copied = self.copy_value(value, variable.name, fresh=True, steady_too=False)
            if copied is not value:
                write(variable.cell, copied)

    def need_gpu(self) -> None:
        """Prepare for a choice that the GPU makes."""
        if not self.gpu:
            self.enter_gpu()

    def _freeze_inside(self, value: Any, depth: int) -> None:
        """Replace unevaluated values in a container or object by copies."""
        if isinstance(value, (ShaderVariable, int, float, str, type)) or value is None or not depth:
            return
        if isinstance(value, tuple):
            for part in value:
                self._freeze_inside(part, depth - 1)
            return
        place = value if isinstance(value, (list, dict)) else members_of(value)
        if place is None or _STEADY.issuperset(
            map(type, place if isinstance(place, list) else place.values())
        ):
            return
        for key, part in list(enumerate(place) if isinstance(place, list) else place.items()):
            self._freeze_inside(part, depth - 1)
            copied = self.freeze(part, steady_too=False)
            if copied is not part:
                place[key] = copied

    def freeze(self, value: Any, *, steady_too: bool = True) -> Any:
        """Return a copy of a value that does not change, for a list, dict or object."""
        if not self.gpu:
            return value
        return self.copy_value(value, None, fresh=True, steady_too=steady_too and self.reached)

    def bind(self, value: Any, label: str | None, fresh: bool) -> Any:
        """Return the value for a local variable. `fresh` tells that nothing else refers to it."""
        return self.copy_value(value, label, fresh=fresh, steady_too=self.reached) if self.gpu else value

    def make_assignable(
        self, value: Any, label: str | None, *, whole: bool = False, depth: int = _DEEPEST
    ) -> Any:
        """Return a value whose components can be assigned to, in a register that all its names share.

        What is assigned to only as a `whole` stays the place that it was read from.
        """
        for part in _parts_of(value) if depth else ():
            self.make_assignable(part, label, whole=whole, depth=depth - 1)
        if not isinstance(value, ShaderVariable) or not is_gpu(value) or not value.can_index:
            return value
        if whole and is_part(value.expr):
            return value
        if isinstance(value, LocalValue):
            return ShaderVariable(self.recorder.declare_local(value.expr, label))
        assignable = value.expr.op in (Op.REGISTER, Op.RAW) and is_place(value.expr)
        if self.enabled and not assignable:
            self._check_assignable(value)
            self.recorder.localize(value, self.recorder.declare_local(value.expr, label))
        return value

    def _check_assignable(self, value: ShaderVariable) -> None:
        """Refuse a value from outside a GPU construct, whose register would be declared inside it."""
        for state in self.open_states:
            for key, held in state.values.items():
                if held is value:
                    name = state.variables[key].name
                    raise located(
                        UsageError,
                        f"a component of {name!r} is assigned to where the GPU decides, by another function "
                        f"or name; make it a register where it gets its value: {name} = {name}.to_register()",
                    )

    def note_update(self, value: Any, result: Any) -> None:
        """Note `name += x` for a name that holds a copy of an element of memory."""
        copied = isinstance(value, LocalValue) and is_gpu(value) and is_gpu(result)
        if copied and id(value.expr.value) in self.element_copies:
            self.recorder.note_update(result.expr)

    def copy_value(self, value: Any, label: str | None, *, fresh: bool, steady_too: bool) -> Any:
        """Return a value that stays as it is, kept in a register where it must."""
        if type(value) is tuple:
            parts = [self.copy_value(part, label, fresh=fresh, steady_too=steady_too) for part in value]
            changed = any(new is not old for new, old in zip(parts, value, strict=True))
            return tuple(parts) if changed else value
        if not is_gpu(value) or isinstance(value, LocalValue):
            return value
        expr = value.expr
        if (expr.op is Op.REGISTER and fresh) or _is_part_of_local(expr):
            return value
        if (expr.op is Op.RAW and is_place(expr)) or _is_leaf(expr) or (not steady_too and is_steady(expr)):
            return value
        place = self.recorder.declare_around(expr.dtype, expr, label)
        if value.can_index:
            self.recorder.localize(value, place)
            return value
        copy = LocalValue(place)
        self.recorder.note_origin(place, expr)
        self.recorder.copied_variables[id(place.value)] = value
        if expr.op is Op.ELEMENT:
            self.element_copies.add(id(copy.expr.value))
        copy.is_conjugate = value.is_conjugate
        return copy


def _parts_of(value: Any) -> Iterable[Any]:
    """Return what a container or an object of a user's class holds; nothing of anything else."""
    if isinstance(value, (list, tuple)):
        return value
    held = value if isinstance(value, dict) else members_of(value)
    return () if held is None else held.values()


def _is_part_of_local(expr: Expr) -> bool:
    while expr.op in (Op.COMPONENT, Op.INDEX):
        expr = expr.args[0]
    return is_local(expr)


def _is_leaf(expr: Expr) -> bool:
    if expr.op in (Op.COMPONENT, Op.SWIZZLE):
        expr = expr.args[0]
    return expr.op in _LEAVES


def last_place(trace: TracebackType | None, *, recursive: bool = False) -> Loc | None:
    """Place in the user's code where an exception came from.

    A RecursionError may come from any file, such as IPython's: `recursive` takes code that repeats.
    """
    places: list[Loc] = []
    while trace is not None:
        if not is_foreign(trace.tb_frame.f_code.co_filename):
            places.append(Loc(trace.tb_frame.f_code, trace.tb_lasti))
        trace = trace.tb_next
    if recursive:
        # by name, since the blocks of a function have codes of their own
        names = [(place.file, place.code.co_name) for place in places]
        counts = Counter(names)
        repeated = [place for place, name in zip(places, names, strict=True) if counts[name] > 1]
        places = repeated or places
    return places[-1] if places else None


def find_tracer() -> Tracer | None:
    """Return the trace of the kernel that this thread traces, or None outside tracing."""
    if not is_tracing():
        return None
    recorder = current()
    if not isinstance(recorder.extension, Tracer):
        recorder.extension = Tracer(recorder)
    return recorder.extension


def require_tracer() -> Tracer:
    """Return the trace of the kernel that this thread traces. Raises RuntimeError outside tracing."""
    active = find_tracer()
    if active is None:
        current()
    assert active is not None
    return active
