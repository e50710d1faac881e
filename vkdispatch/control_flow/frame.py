"""Execution of rewritten functions: branches, loops, jumps, results, and what rewritten code calls."""

import dis
import functools
import operator
import re
import time
import types
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from types import CellType
from typing import Any

from vkdispatch.base.dtype import bool_
from vkdispatch.base.errors import ArgumentTypeError, UnassignedError, UsageError
from vkdispatch.base.record import record
from vkdispatch.codegen.objects.structures import ItemArray
from vkdispatch.codegen.trace.current import current
from vkdispatch.codegen.trace.recording import Recorder, make_zero
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir import Break, Expr, If, Op, Return
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import Loc, here, located, warn
from vkdispatch.compiler.passes.reads import acts
from vkdispatch.control_flow import paths, tracer, values
from vkdispatch.control_flow.conditions import and_ as and_
from vkdispatch.control_flow.conditions import check_assert as check_assert
from vkdispatch.control_flow.conditions import choose as choose
from vkdispatch.control_flow.conditions import compare_chain as compare_chain
from vkdispatch.control_flow.conditions import contains as contains
from vkdispatch.control_flow.conditions import invert as invert
from vkdispatch.control_flow.conditions import not_ as not_
from vkdispatch.control_flow.conditions import or_ as or_
from vkdispatch.control_flow.conditions import require_known as require_known
from vkdispatch.control_flow.conditions import test_and as test_and
from vkdispatch.control_flow.conditions import test_or as test_or
from vkdispatch.control_flow.loop_state import Loop, LoopNames, RawLoopNames
from vkdispatch.control_flow.loops import run_for, run_while
from vkdispatch.control_flow.tracer import Retry as Retry
from vkdispatch.control_flow.tracer import find_tracer
from vkdispatch.control_flow.values import LocalScope, State, Variable, read, write

# ---- Augmented assignments -------------------------------------------------------------------------------


def _inplace_power(value: Any, operand: Any) -> Any:
    value **= operand
    return value


# By the names of classes in `ast`.
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.iadd,
    "Sub": operator.isub,
    "Mult": operator.imul,
    "MatMult": operator.imatmul,
    "Div": operator.itruediv,
    "FloorDiv": operator.ifloordiv,
    "Mod": operator.imod,
    "Pow": _inplace_power,
    "LShift": operator.ilshift,
    "RShift": operator.irshift,
    "BitAnd": operator.iand,
    "BitOr": operator.ior,
    "BitXor": operator.ixor,
}


# ---- Random numbers and times of the host, which a kernel gets once: while it is traced ------------------


# Modules of the classes whose methods are functions such as random.random and np.random.rand.
_GENERATORS = frozenset(("random", "numpy.random.mtrand", "numpy.random._generator"))
_DRAWS_NONE = frozenset(("seed", "getstate", "setstate", "get_state", "set_state", "spawn"))
_METHODS = (types.MethodType, types.BuiltinMethodType)
_CLOCKS = (time.time, time.time_ns, time.monotonic, time.perf_counter, time.perf_counter_ns)


def is_host_draw(function: object) -> bool:
    """Whether a function returns something else at each call: a random number, or the time."""
    if not isinstance(function, _METHODS):
        return False
    if function in _CLOCKS:
        return True
    return type(function.__self__).__module__ in _GENERATORS and function.__name__ not in _DRAWS_NONE


def wrap_host_draw(function: Any) -> Callable[..., Any]:
    """Wrap such a function, so that calls in a kernel warn."""
    is_clock = function in _CLOCKS
    advice = "" if is_clock else "; vc.random.Philox(seed, sequence=i) draws one for each"

    def draw(*args: Any, **kwargs: Any) -> Any:
        warn(
            f"{function.__name__}() runs once, while Python traces the kernel: all invocations and all calls "
            f"get this {'time' if is_clock else 'number'}{advice}. If one is meant for all, pass it as an "
            "argument"
        )
        return function(*args, **kwargs)

    return draw


# ---- A check that a kernel returns no value --------------------------------------------------------------


def check_result(function: Callable[..., Any], result: object) -> None:
    """Raise TypeError at the line of a kernel's `return` if that has a value.

    A lambda always returns the value of its expression. That is an error only if the lambda records nothing.
    """
    if result is None:
        return
    code = getattr(function, "__code__", None)
    is_lambda = code is not None and code.co_name == "<lambda>"
    if is_lambda and (acts(current().innermost) or not isinstance(result, ShaderVariable)):
        return
    raise located(
        ArgumentTypeError,
        f"return: a kernel returns no value, got {values.describe(result)}; store it: out[i] = ...",
        _find_return(code),
    )


def _find_return(code: Any) -> Loc | None:
    """Return the place of the first `return` with a value, or None if there is none."""
    if code is None:
        return None
    before = None
    for instruction in dis.get_instructions(code):
        nothing = before is not None and before.opname == "LOAD_CONST" and before.argval is None
        returns = instruction.opname == "RETURN_VALUE" and not nothing
        constant = instruction.opname == "RETURN_CONST" and instruction.argval is not None
        if returns or constant:
            return Loc(code, instruction.offset)
        before = instruction
    return None


# ---- The result of a function that the GPU may leave in several places: kept in registers ----------------


@record
class _NoValue:
    """The type of the result of a function that returns no value."""


class Result:
    """The result of one call: its type, its registers, and a register that tells whether it is known."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._kind: values.Kind | _NoValue | None = None
        self._registers: list[Expr] = []
        self._done: Expr | None = None

    @property
    def is_stored(self) -> bool:
        """Whether some `return` is recorded, which stores the result in registers."""
        return self._kind is not None

    def clear(self) -> None:
        """Forget what is known, for another call."""
        self._kind = None
        self.clear_registers()

    def clear_registers(self) -> None:
        """Forget the registers, for another trace of the function. The type remains."""
        self._done = None
        self._registers = []

    def note(self) -> Callable[[], None]:
        """Note the state of the result; returns a function that restores it."""
        known = (self._kind, list(self._registers), self._done)

        def restore() -> None:
            self._kind, registers, self._done = known
            self._registers = list(registers)

        return restore

    def list_registers(self) -> list[Expr]:
        """Return the registers, which are declared after the function has been traced."""
        return self._registers if self._done is None else [*self._registers, self._done]

    def declare(self, recorder: Recorder) -> None:
        """Record the declarations of the registers."""
        if self._done is not None:
            recorder.emit(paths.declare_register(self._done, ex.literal(False, bool_)))
        for place in self._registers:
            recorder.emit(paths.declare_register(place, make_zero(place.dtype)))

    @property
    def value(self) -> Any:
        """The result in its registers."""
        if isinstance(self._kind, _NoValue) or self._kind is None:
            return None
        return values.rebuild(self._kind, map(values.LocalValue, self._registers))

    def store(self, active: tracer.Tracer, value: Any) -> None:
        """Store one of several results that the GPU chooses between. Raises Retry if the type widens."""
        if isinstance(self._kind, _NoValue) or value is None:
            if value is not None or self._kind not in (None, _NoValue()):
                raise located(
                    ArgumentTypeError,
                    f"{self._name} returns a value on some of the paths that the GPU decides between and "
                    "none on others",
                )
            self._kind = _NoValue()
            return
        try:
            kind = paths.join_kinds(value, value)
            kind = kind if self._kind is None else values.join(self._kind, kind)
        except values.Mismatch as error:
            raise located(
                ArgumentTypeError,
                f"{self._name} returns {values.describe(value)} where the GPU decides whether it does: "
                f"{error}",
            ) from None
        types = [values.dtype_of(leaf) for leaf in values.flatten_kind(kind)]
        self._kind = kind
        if self._registers and types != [place.dtype for place in self._registers]:
            raise tracer.Retry(self)
        if not self._registers:
            self._registers = [paths.make_register(active, f"{self._name}_result", dtype) for dtype in types]
        for place, (part, _) in zip(self._registers, values.iterate_leaves(value, kind), strict=True):
            active.recorder.store(place, values.as_expr(part, place.dtype))

    def mark_done(self, active: tracer.Tracer) -> None:
        """Record that the result is known, for the loops that enclose the `return`."""
        if self._done is None:
            self._done = paths.make_register(active, f"{self._name}_done", bool_)
        active.recorder.store(self._done, ex.literal(True, bool_))

    def leave_if_done(self, recorder: Recorder) -> None:
        """Leave the enclosing loop if a `return` has left the inner one."""
        assert self._done is not None
        recorder.emit(If(((self._done, (Break(here()),)),), None, here()))


# ---- Execution of rewritten functions: branches, loops and jumps -----------------------------------------


Block = Callable[[], Any]
# The limit of a recursion that the GPU decides about; each level takes many Python frames.
_DEEPEST_RECURSION = 25
_UNBOUND_NAME = r"variable '(\w+)'"


class Frame:
    """One call of a rewritten function. Rewritten code calls the public methods."""

    def __init__(
        self,
        active: tracer.Tracer | None,
        name: str,
        early: bool,
        parameters: tuple[str, ...],
        scope: LocalScope,
    ) -> None:
        self.tracer = active
        self.name = name
        self.scope = scope
        self.open: list[tracer.Entry] = []
        self.is_kernel = active is not None and active.kernel_next
        self._early = early
        self._parameters = parameters
        self._result = Result(name)
        self._outer: Loop | None = None
        if active is not None:
            active.kernel_next = False

    # -- the whole function

    def run(self, body: Block) -> Any:
        """Run the function and return its result."""
        active = self.tracer
        if active is None:
            signal = body()
            return signal.value if isinstance(signal, tracer.Returned) else None
        self._check_recursion(active)
        active.enter(self)
        try:
            self._make_parameters_assignable(active)
            if active.gpu:
                self._copy_parameters(active)
            if self._early and not self.is_kernel:
                return active.before_gpu(lambda: self._run_inlined(active, body))
            if self.is_kernel:
                return active.before_gpu(lambda: self._run_through(active, body))
            return self._run_through(active, body)
        except NameError as error:
            self._explain_unbound(error)
            raise
        finally:
            active.frames.pop()

    def _run_through(self, active: tracer.Tracer, body: Block) -> Any:
        """Run the kernel, or a function without early returns."""
        with self.open_entry(tracer.Entry("function", active.recorder.depth)):
            signal = body()
        return signal.value if isinstance(signal, tracer.Returned) else None

    def _check_recursion(self, active: tracer.Tracer) -> None:
        frames = (frame for frame in active.frames if isinstance(frame, Frame) and frame.name == self.name)
        alike = [frame for frame in frames if frame._on_gpu()]
        if len(alike) > _DEEPEST_RECURSION:
            raise located(
                tracer.EndlessRecursionError,
                f"{self.name} calls itself as often as the GPU decides; code of the GPU cannot recurse: "
                "use a loop",
            )

    def _on_gpu(self) -> bool:
        return self._result.is_stored or any(entry.kind in ("branch", "gpu loop") for entry in self.open)

    def _copy_parameters(self, active: tracer.Tracer) -> None:
        for name in self._parameters:
            if name not in self.scope.aliases:
                cell = self.scope.cells[name]
                write(cell, active.bind(read(cell), name, fresh=True))

    def _make_parameters_assignable(self, active: tracer.Tracer) -> None:
        """Put parameters whose components are assigned to in registers, which the caller shares."""
        for name in self._parameters:
            if name in self.scope.aliases:
                cell = self.scope.cells[name]
                whole = name not in self.scope.parts
                write(cell, active.make_assignable(read(cell), name, whole=whole))

    def _explain_unbound(self, error: NameError) -> None:
        """Raise a NameError that says why a variable has no value, if the reason is known."""
        match = re.search(_UNBOUND_NAME, str(error))
        name = match.group(1) if match else ""
        reason = self.scope.reasons.get(name)
        if reason is not None and not isinstance(error, UnassignedError):
            raise located(UnassignedError, reason, tracer.last_place(error.__traceback__)) from None

    def _run_inlined(self, active: tracer.Tracer, body: Block) -> Any:
        """Run a function that may return early, which on the GPU leaves a loop of one round."""
        with active.watch_variables() as state:
            return self._run_watched(active, body, state)

    def _run_watched(self, active: tracer.Tracer, body: Block, state: State) -> Any:
        recorder = active.recorder
        result = self._result
        result.clear()
        mark = recorder.mark()
        # variables of enclosing functions, which keep their changes after a return on the GPU
        outer = self._outer = Loop(self, "function", LoopNames())
        outer.what = f"the call of {self.name}"
        while True:
            outer.start(state)
            depth = recorder.depth
            recorder.open_block("while")
            try:
                with self.open_entry(tracer.Entry("function", recorder.depth)):
                    signal = body()
                if result.is_stored and signal is not tracer.RECORDED:
                    result.store(active, signal.value if isinstance(signal, tracer.Returned) else None)
                    outer.store_registers()
                statements = recorder.take_block(depth)
                break
            except tracer.Retry as retry:
                if retry.target is not result and retry.target is not outer:
                    raise
                result.clear_registers()
                active.rewind(mark, state)
                state.restore_containers()
        if not result.is_stored:
            paths.emit_all(recorder, statements)
            return signal.value if isinstance(signal, tracer.Returned) else None
        result.declare(recorder)
        paths.emit_single_round(recorder, statements)
        outer.export(state)
        return result.value

    def note_result(self) -> Callable[[], None]:
        """Note the state of the result; returns a function that restores it."""
        restore_result = self._result.note()
        loops = [(loop, loop.has_return, loop.has_break) for loop in self._loops()]

        def restore() -> None:
            restore_result()
            for loop, returned, broken in loops:
                loop.has_return, loop.has_break = returned, broken

        return restore

    def _loops(self) -> list[Loop]:
        return [entry.loop for entry in self.open if entry.loop is not None]

    def list_result_registers(self) -> list[Expr]:
        """Return the registers that are declared after the function has been traced."""
        return self._result.list_registers()

    @contextmanager
    def open_entry(self, entry: tracer.Entry) -> Iterator[None]:
        """Note a construct as open."""
        self.open.append(entry)
        try:
            yield
        finally:
            self.open.pop()

    # -- variables

    def is_live(self, variable: Variable, names: Set[str]) -> bool:
        """Whether a variable is live, given the live names of this function."""
        is_of_function = variable.scope is self.scope and variable.name not in self.scope.free
        return variable.name in names or not is_of_function

    def bind(self, value: Any, label: str | None, fresh: bool) -> Any:
        """Return the value for a local variable."""
        return value if self.tracer is None else self.tracer.bind(value, label, fresh)

    def make_assignable(self, value: Any, label: str | None, whole: bool) -> Any:
        """Return the value for a local variable that is assigned to by parts, or only as a `whole`."""
        return value if self.tracer is None else self.tracer.make_assignable(value, label, whole=whole)

    def value_of(self, value: Any) -> Any:
        """Return what a name holds now, before `name[:] = value` makes it read its place anew."""
        is_read = type(value) is ShaderVariable and value.expr.op is not Op.REGISTER
        return ShaderVariable(value.expr) if is_read else value

    def is_container(self, value: Any) -> bool:
        """Whether a value is a container or object, rather than a GPU value."""
        return self.tracer is not None and not isinstance(value, (ShaderVariable, ItemArray))

    def freeze_for_place(self, owner: Any, value: Any) -> Any:
        """Return the value for an element or attribute of `owner`."""
        if self.tracer is None or isinstance(owner, ShaderVariable):
            return value
        return self.tracer.freeze(value)

    def augment(self, symbol: str, value: Any, operand: Any, label: str) -> Any:
        """Evaluate `value += operand` and similar; explicit registers are changed in place."""
        result = _OPERATORS[symbol](value, operand)
        if result is value and isinstance(value, ShaderVariable) and value.is_register():
            return result
        if self.tracer is not None:
            self.tracer.note_update(value, result)
        return (
            self.make_assignable(result, label, label not in self.scope.parts)
            if label in self.scope.aliases
            else self.bind(result, label, fresh=False)
        )

    # -- branches and loops

    def if_(self, test: Any, then: Block, orelse: Block | None, after: tuple[str, ...]) -> Any:
        """Run one block, or record both where the GPU decides. Returns a signal or None."""
        active = self.tracer
        if not values.is_gpu(test) or active is None:
            chosen = then if test else orelse
            return None if chosen is None else chosen()
        condition = ex.condition(test._value())
        live = set(after).union(*map(_list_free_names, (then, orelse)))
        active.enter_gpu(live)
        return self.branch(active, condition, then, orelse, set(after))

    def ifs_(
        self, branches: tuple[tuple[Block, Block], ...], orelse: Block | None, after: tuple[str, ...]
    ) -> Any:
        """Run one of many blocks, or record the blocks that the GPU decides between."""
        for position, (test, body) in enumerate(branches):
            value = test()
            if values.is_gpu(value):
                rest = branches[position + 1 :]
                blocks = [block for pair in rest for block in pair]
                mentioned = set(after).union(*map(_list_free_names, blocks))
                others = functools.partial(self.ifs_, rest, orelse, after)
                return self.if_(value, body, others, tuple(mentioned))
            if value:
                return body()
        return None if orelse is None else orelse()

    def branch(
        self, active: tracer.Tracer, condition: Expr, then: Block, orelse: Block | None, after: Set[str]
    ) -> Any:
        """Record an if of two blocks."""
        line = here()
        where = f"the if ({line})"
        with (
            active.watch_variables() as state,
            self.open_entry(tracer.Entry("branch", active.recorder.depth + 1)),
        ):
            first = paths.record_path(active, state, then)
            second = paths.record_path(active, state, orelse)
        state.check_containers(where)
        gone = (first.result is tracer.RECORDED, second.result is tracer.RECORDED)
        if not any(gone):
            paths.join_variables(
                active, state, first, second, lambda variable: self.is_live(variable, after), where
            )
            paths.inline_last_values(first.statements)
            paths.inline_last_values(second.statements)
            paths.emit_if(active, condition, first.statements, second.statements)
            return None
        if all(gone):
            paths.emit_if(active, condition, first.statements, second.statements)
            return tracer.RECORDED
        left, going = (first, second) if gone[0] else (second, first)
        paths.emit_if(active, condition if gone[0] else ex.invert(condition), left.statements, [])
        paths.take_path(active, state, going)
        return None

    def while_(self, test: Block, body: Block, orelse: Block | None, names: RawLoopNames) -> Any:
        """Run or record a while loop. Returns a signal or None."""
        return run_while(Loop(self, "while", LoopNames.from_constant(names)), test, body, orelse)

    def for_(
        self,
        items: Any,
        body: Callable[[Any], Any],
        target: str | None,
        orelse: Block | None,
        names: RawLoopNames,
    ) -> Any:
        """Run or record a for loop. Returns a signal or None."""
        loop = Loop(self, "for", LoopNames.from_constant(names))
        return run_for(loop, items, body, target, orelse)

    # -- jumps

    def _check_jump(self, what: str) -> None:
        active = self.tracer
        if active is None or not self.open:
            return
        manual = [kind for kind in active.recorder.kinds_above(self.open[-1].depth) if kind != "scope"]
        if manual:
            raise located(
                UsageError,
                f"{what}: it would leave the {manual[-1]} block that is open here while the kernel is "
                "traced, for all invocations; use a plain `if` or `while` around it",
            )

    def _check_guard(self, what: str, guarded: bool) -> None:
        if guarded:
            raise located(
                UsageError,
                f"{what}: the GPU decides whether it leaves a try with `finally`, or a `with` block, whose "
                "end Python runs while the kernel is traced; make that block smaller or larger",
            )

    def break_(self, guarded: bool) -> Any:
        """Leave the innermost loop. `guarded` tells that this also leaves a `with` or `finally` block."""
        return self._leave_round("break", guarded)

    def continue_(self, guarded: bool) -> Any:
        """Continue with the next round of the innermost loop."""
        return self._leave_round("continue", guarded)

    def _leave_round(self, what: str, guarded: bool) -> Any:
        self._check_jump(what)
        conditional = False
        for entry in reversed(self.open):
            conditional |= entry.kind == "branch"
            if entry.loop is not None:
                break
        loop = entry.loop
        if entry.kind == "gpu loop":
            self._check_guard(what, guarded)
            loop.jump(what)
            return tracer.RECORDED
        if conditional:
            raise tracer.Retry(loop)
        return tracer.BREAK if what == "break" else tracer.CONTINUE

    def return_(self, guarded: bool, *results: Any) -> Any:
        """Return from the function. `guarded` tells that this leaves a `with` or `finally` block."""
        self._check_jump("return")
        value = results[0] if results else None
        if all(entry.kind in ("function", "loop") for entry in self.open):
            return tracer.Returned(value)
        conditional = False
        for entry in reversed(self.open):
            conditional |= entry.kind == "branch"
            if entry.kind == "loop" and conditional and entry.loop.endless:
                raise tracer.Retry(entry.loop)
        self._check_guard("return", guarded)
        active = self.tracer
        assert active is not None
        if self.is_kernel:
            if value is not None:
                raise located(
                    ArgumentTypeError,
                    f"return: a kernel returns no value, got {values.describe(value)}; store it: "
                    "out[i] = ...",
                )
            active.recorder.emit(Return(here()))
            return tracer.RECORDED
        if not self._early:
            raise located(UsageError, f"return: {self.name} cannot be left here, where the GPU decides")
        self._result.store(active, value)
        assert self._outer is not None
        self._outer.store_registers()
        loops = [entry.loop for entry in self.open if entry.kind == "gpu loop"]
        if loops:
            self._result.mark_done(active)
            for loop in loops:
                loop.has_return = True
        active.recorder.emit(Break(here()))
        return tracer.RECORDED

    def leave_if_done(self) -> None:
        """Leave the enclosing loop if a return has left the inner one."""
        assert self.tracer is not None
        self._result.leave_if_done(self.tracer.recorder)


def _list_free_names(block: Block | None) -> tuple[str, ...]:
    """Return the names of the variables that a block uses."""
    code = getattr(block, "__code__", None)
    return () if code is None else code.co_freevars


# Set by the module `replacement`, which imports this one.
choose_callee: Callable[[Any], Any]


def bind(value: Any, label: str | None, fresh: bool) -> Any:
    """Return the value for a local variable that an expression binds."""
    active = find_tracer()
    return value if active is None else active.bind(value, label, fresh)


def freeze_items(*values: Any) -> list[Any]:
    """Return frozen values for a list, dict, set or object."""
    active = find_tracer()
    return list(values) if active is None else [active.freeze(value) for value in values]


def freeze(value: Any) -> Any:
    """Return a frozen value for a list, dict or object."""
    active = find_tracer()
    return value if active is None else active.freeze(value)


def begin_try(line: int) -> None:
    """Note what has been recorded before a `try` that catches an error of an operation."""
    active = find_tracer()
    if active is not None:
        active.tries[line] = active.recorder.recorded


def end_try(line: int, caught: str) -> None:
    """Warn if the `try` recorded operations of the GPU, which raise no exceptions."""
    active = find_tracer()
    if active is not None and active.recorder.recorded > active.tries.pop(line, active.recorder.recorded):
        warn(
            f"except {caught}: the GPU raises no exceptions, so this never runs for its values: test them by "
            "an `if` before the operation"
        )


def enter(cells: Callable[[], Any], constants: tuple[Any, ...]) -> Frame:
    """Begin a call of a rewritten function.

    Parameters
    ----------
    cells
        A function that mentions the local variables; it is never called.
    constants
        The function's name, whether it may return before its end, its parameters, and the names `free`,
        `rebound`, `aliases`, `parts`, `shared` and `mentioned` of `LocalScope`.
    """
    name, early, parameters, *sets, shared, mentioned = constants
    free, rebound, aliases, parts = map(frozenset, sets)
    code, closure = cells.__code__, cells.__closure__ or ()
    by_name: dict[str, CellType] = dict(zip(code.co_freevars, closure, strict=True))
    scope = LocalScope(by_name, free, rebound, aliases, parts, cells.__globals__, shared, mentioned)
    return Frame(find_tracer(), name, early, parameters, scope)
