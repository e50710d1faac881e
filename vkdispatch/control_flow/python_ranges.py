"""Python loops over a range, recorded as one GPU loop where that is equivalent."""

import builtins
import functools
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from vkdispatch.base import dtype as dt
from vkdispatch.base.errors import UsageError
from vkdispatch.base.host_numpy import np
from vkdispatch.base.record import record
from vkdispatch.codegen.trace.operators import divides_as_python
from vkdispatch.codegen.variables import BoundVariable, ShaderVariable
from vkdispatch.compiler.ir import Expr, Register, Statement
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import located, without_warnings
from vkdispatch.control_flow import comparison, values
from vkdispatch.control_flow.loop_state import Loop
from vkdispatch.control_flow.tracer import Entry, Retry, Tracer, find_tracer
from vkdispatch.control_flow.values import State, read, write

# ---- The index of a Python loop that is recorded as one GPU loop -----------------------------------------
#
# It behaves like a Python number: combined with a GPU value it takes the type of that value, and combined
# with another number it stays a number whose least and greatest values are known. The loop is unrolled
# where this is impossible: where Python needs the value itself, or a type cannot represent it exactly.


_set = object.__setattr__


class LoopIndex(values.PythonNumber):
    """A number computed from the index of a recorded loop. `owner` is the attempt to record that loop."""

    __slots__ = ("owner", "span")
    _goes_first = True

    owner: object
    span: comparison.Span

    def __init__(self, owner: object, span: comparison.Span) -> None:
        _set(self, "owner", owner)
        _set(self, "span", span)
        _set(self, "is_conjugate", False)

    def unroll(self) -> NoReturn:
        """Unroll the loop, because Python needs the number. Raises Retry."""
        active = find_tracer()
        if active is None or not any(attempt is self.owner for attempt in active.attempts):
            raise located(
                UsageError,
                "the index of a loop that runs on the GPU was stored where only Python sees it; put it in a "
                "local variable",
            )
        raise Retry(self.owner)

    @property
    def expr(self) -> Expr:  # type: ignore[override]
        """Not available: the type depends on the other operand, so the loop is unrolled."""
        self.unroll()

    def _value(self) -> Expr:
        self.unroll()

    # -- for codegen and the rewriter

    @property
    def extremes(self) -> tuple[int | float, int | float]:
        """The least and the greatest number."""
        number = int if self.span.whole else float
        return number(self.span.low), number(self.span.high)

    def as_expr(self, kind: dt.DType) -> Expr:
        """Return the numbers as an expression of a scalar type that represents them exactly."""
        if not dt.is_scalar(kind) or kind is dt.bool_ or not self.span.fits(kind):
            self.unroll()
        return ex.cast(self.span.expr, kind)

    def is_same(self, other: values.PythonNumber) -> bool:
        """Whether both are the same number in every round."""
        return isinstance(other, LoopIndex) and other.span.expr is self.span.expr

    def _extremes(self) -> tuple[int, ...]:
        return (int(self.span.low), int(self.span.high)) if self.span.whole else ()

    def _as_index(self) -> Expr:
        if not self.span.whole or self.span.low < 0:
            self.unroll()
        return self.span.expr

    def _as_stored(self, kind: dt.DType) -> Expr:
        if dt.is_complex(kind):
            self.unroll()
        return ex.cast(self.as_expr(dt.component_type(kind)), kind)

    # -- operators

    def _operate(self, symbol: str, other: object, reflected: bool = False) -> Any:
        if isinstance(other, ShaderVariable) and not isinstance(other, values.PythonNumber):
            return self._combine_with_gpu(symbol, other, reflected)
        theirs = _span_of(other)
        if theirs is None:
            if symbol in ("==", "!=") and not isinstance(other, (complex, np.generic, np.ndarray)):
                return NotImplemented
            self.unroll()
        mine = self.span
        left, right = (theirs, mine) if reflected else (mine, theirs)
        if symbol in comparison.COMPARISONS:
            known = comparison.compare_spans(symbol, left, right)
            return self.unroll() if known is None else known
        result = comparison.COMBINATIONS[symbol](left, right)
        if result is None or not result.fits(dt.int32 if result.whole else dt.float32):
            self.unroll()
        if result.known is not None and (result.whole or result.known):
            return int(result.known) if result.whole else float(result.known)
        owner = self.owner
        if isinstance(other, LoopIndex) and getattr(other.owner, "depth", 0) < getattr(owner, "depth", 0):
            # unrolling the outer loop first may be enough
            owner = other.owner
        return LoopIndex(owner, result)

    def _combine_with_gpu(self, symbol: str, value: ShaderVariable, reflected: bool) -> Any:
        """Combine with a GPU value, with the result that each of the numbers would give."""
        if isinstance(value, BoundVariable):
            self.unroll()
        kind = value.var_type
        scalar = dt.component_type(kind)
        if not (dt.is_scalar(kind) or dt.is_vector(kind)) or scalar is dt.bool_:
            self.unroll()
        whole, integers = self.span.whole, dt.is_integer_dtype(scalar)
        if integers and not whole and symbol in comparison.COMPARISONS:
            self.unroll()
        if symbol in ("//", "%") and not reflected:
            # k // x
            pass
        elif symbol == "//" and integers and dt.is_signed_dtype(scalar) and not divides_as_python():
            # whether the quotient truncates depends on the number
            self.unroll()
        adopted = scalar if dt.is_float_dtype(scalar) or (integers and whole) else dt.float32
        typed = values.LocalValue(self.as_expr(adopted))
        left, right = (value, typed) if reflected else (typed, value)
        result = left._operate(symbol, right)
        with without_warnings():
            for number in self.extremes:
                if value._operate(symbol, number, not reflected).var_type is not result.var_type:
                    self.unroll()
        return result

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Unroll for NumPy scalars, which do not combine like Python numbers."""
        self.unroll()

    def __divmod__(self, other: object) -> Any:
        return self // other, self % other

    def __pow__(self, other: object) -> Any:  # type: ignore[override]
        if type(other) is not int or not 0 <= other <= 4:
            self.unroll()
        result: Any = 1
        for _ in range(other):
            result = self * result
        return result

    def __neg__(self) -> Any:
        if not self.span.whole:
            # 0.0 would lose its sign
            self.unroll()
        return self._operate("-", 0, reflected=True)

    def __invert__(self) -> Any:
        return self._operate("-", -1, reflected=True)

    def __abs__(self) -> Any:
        if self.span.low >= 0:
            return self
        if self.span.high <= 0:
            return -self
        if not self.span.whole:
            self.unroll()
        most = max(-self.span.low, self.span.high)
        return LoopIndex(self.owner, comparison.make_whole_span(0, most, ex.absolute(self.span.expr)))

    def __round__(self, digits: object = None) -> Any:
        return self if self.span.whole and digits is None else self.unroll()

    def __bool__(self) -> bool:
        return True if self.span.low > 0 or self.span.high < 0 else self.unroll()

    __hash__ = __index__ = __int__ = __float__ = __complex__ = unroll
    __ipow__ = __pow__


def make_loop_index(owner: object, counter: Expr, numbers: range) -> LoopIndex:
    """Make the index of a GPU loop whose int32 counter takes these numbers."""
    ends = sorted((numbers[0], numbers[-1]))
    return LoopIndex(owner, comparison.make_whole_span(ends[0], ends[1], counter))


def _span_of(value: object) -> comparison.Span | None:
    """Return the span of a Python number, or None for anything else."""
    if isinstance(value, LoopIndex):
        return value.span
    if type(value) in (int, bool):
        number = int(value)  # type: ignore[call-overload]
        return (
            comparison.make_whole_span(number, number, ex.literal(number, dt.int32))
            if abs(number) < 1 << 31
            else None
        )
    if type(value) is float and math.isfinite(value) and (value or math.copysign(1, value) > 0):
        number = comparison.make_fraction(value)
        return comparison.Span(
            number, number, number.denominator.bit_length() - 1, False, ex.literal(value, dt.float32)
        )
    return None


# The body is traced twice with a placeholder for the index: once with the initial values of the variables,
# as in the first round, and once with registers in their place. The loop is equivalent to its unrolled form
# if neither trace needs the value of the index, both record the same statements, and the variables end with
# the same types.


Body = Callable[[Any], Any]
_LIMIT = 1 << 31
# Failed attempts after which a loop is always unrolled.
_MAX_FAILURES = 3


def record_python_range(loop: Loop, numbers: range, body: Body) -> bool | None:
    """Record a Python loop as a GPU loop, if that is equivalent.

    Returns
    -------
    True if the loop is recorded. Otherwise nothing has changed: False, or None if another attempt after one
    unrolled round may succeed, as variables may have GPU values then.
    """
    code = body.__code__
    failures = loop.tracer.failures
    if loop.target is None or not _counts_in_int32(numbers) or failures.get(code, 0) >= _MAX_FAILURES:
        return False
    is_recorded = _Attempt(loop, numbers, body).run()
    if is_recorded is False and not loop.tracer.attempts:
        failures[code] = failures.get(code, 0) + 1
    return is_recorded


def _counts_in_int32(numbers: range) -> bool:
    ends = (numbers.start, numbers.stop)
    return builtins.all(abs(end) + abs(numbers.step) < _LIMIT for end in ends)


@record
class _Trace:
    """A trace of the body: its registers, its statements, and the variables that it changes."""

    registers: list[Register]
    statements: tuple[Statement, ...]
    changed: dict[int, Any]


class _RangeLoop(Loop):
    """A loop whose carried variables are known before it is traced."""

    def __init__(self, loop: Loop, depth: int) -> None:
        super().__init__(loop.frame, loop.noun, loop.names)
        self.loc, self.what, self.target, self.depth = loop.loc, loop.what, loop.target, depth

    def jump(self, what: str) -> None:
        """Give up: a loop with jumps is unrolled until it meets one."""
        raise Retry(self)

    def _find_others(self, state: State) -> None:
        """Do nothing: the carried variables are known."""

    def value_at_head(self, key: int, state: State) -> Any:
        """Return the value of a variable at the start of a round."""
        carried = self._carried.get(key)
        return state.values[key] if carried is None else carried.value

    def _is_carried(self, key: int, variable: Any, value: Any) -> bool:
        return key in self._kinds

    def carry(self, state: State, kinds: dict[int, values.Kind]) -> None:
        """Put variables in registers of the given types."""
        self._state, self._kinds = state, dict(kinds)
        self.declare_registers(state)

    @property
    def starts(self) -> dict[int, tuple[object, Any]]:
        """The initial values of the registers, and their types."""
        assert self._state is not None
        starts: dict[int, tuple[object, Any]] = {}
        for key, carried in self._carried.items():
            parts = values.iterate_leaves(self._state.values[key], carried.kind)
            for place, (part, _) in zip(carried.registers, parts, strict=True):
                starts[id(place.value)] = (part, place.dtype)
        return starts


class _Attempt:
    """One attempt to record a Python loop as a GPU loop."""

    def __init__(self, loop: Loop, numbers: range, body: Body) -> None:
        self._tracer: Tracer = loop.tracer
        self._loop = _RangeLoop(loop, len(self._tracer.attempts))
        self._numbers = numbers
        self._body = body

    def run(self) -> bool | None:
        """Return True if the loop is recorded, None if a later attempt may succeed, else False."""
        tracer = self._tracer
        mark, before = tracer.recorder.mark(), (tracer.gpu, tracer.reached, tracer.abandoned)
        waiting, tracer.waiting = tracer.waiting, None
        done: bool | None = False
        tracer.attempts.append(self._loop)
        try:
            with tracer.watch_variables() as state:
                restore, restore_draws = _note_results(tracer), _note_random_states(state)
                try:
                    state.retry_on_iterators = self._loop
                    done = False if state.has_iterators else self._record()
                except Retry as retry:
                    if retry.target is not self._loop:
                        raise
                except Exception:
                    # an exception of the user's code is raised again by the unrolled loop
                    done = False
                if not done or (waiting is not None and not before[0]):
                    tracer.rewind(mark, state)
                    state.restore_containers(strict=False)
                    restore()
                    restore_draws()
                    tracer.gpu, tracer.reached, tracer.abandoned = before
        finally:
            tracer.attempts.pop()
            tracer.waiting = waiting
        if done and waiting is not None and not before[0]:
            # the first GPU construct: the kernel is traced again with that knowledge
            raise Retry(waiting)
        return done

    def _record(self) -> bool | None:
        loop, tracer, recorder = self._loop, self._tracer, self._tracer.recorder
        tracer.enter_gpu(set(loop.names.live))
        with tracer.watch_variables() as state:
            mark, restore = recorder.mark(), _note_results(tracer)
            loop.carry(state, {})
            first = self._trace(state)
            kinds = self._find_kinds(state, first)
            state.check_containers(loop.where)
            if kinds is None or not (first.statements or kinds):
                return False
            tracer.rewind(mark, state)
            restore()
            loop.carry(state, kinds)
            second = self._trace(state)
            if not self._is_same_round(state, kinds, first, second):
                return None
            loop.store_registers()
            recorder.close()
            self._finish(state, second)
        return True

    def _trace(self, state: State) -> _Trace:
        recorder, loop, numbers = self._tracer.recorder, self._loop, self._numbers
        start, stop = ex.literal(numbers.start, dt.int32), ex.literal(numbers.stop, dt.int32)
        counter = recorder.open_for(start, stop, ex.literal(numbers.step, dt.int32), loop.target)
        assert isinstance(counter.value, Register)
        self._index = make_loop_index(loop, counter, numbers)
        with loop.frame.open_entry(Entry("gpu loop", recorder.depth, loop)):
            signal = self._body(self._index)
        if signal is not None:
            raise Retry(loop)
        registers = [counter.value]
        for place in (place for frame in self._tracer.frames for place in frame.list_result_registers()):
            assert isinstance(place.value, Register)
            registers.append(place.value)
        changed = {
            key: now
            for key, variable in state.variables.items()
            if (now := read(variable.cell)) is not loop.value_at_head(key, state)
        }
        return _Trace(registers, tuple(recorder.innermost), changed)

    def _find_kinds(self, state: State, trace: _Trace) -> dict[int, values.Kind] | None:
        """Return types of the carried variables, or None if the loop changes Python numbers or objects."""
        kinds: dict[int, values.Kind] = {}
        for key, value in trace.changed.items():
            variable = state.variables[key]
            if value is self._index or not self._loop.is_live(variable):
                continue
            kind = values.kind_of(value)
            if state.values[key] is values.UNBOUND or kind is None:
                return None
            if not builtins.all(isinstance(leaf, values.Typed) for leaf in values.flatten_kind(kind)):
                return None
            kinds[key] = kind
        return kinds

    def _is_same_round(
        self, state: State, kinds: dict[int, values.Kind], first: _Trace, second: _Trace
    ) -> bool:
        """Whether a round with registers records the same as the first round."""
        if self._find_kinds(state, second) != kinds:
            return False
        if len(first.registers) != len(second.registers):
            return False
        pairs = zip(first.registers, second.registers, strict=True)
        equality = comparison.Comparison(self._loop.starts, pairs)
        if not equality.are_blocks_equal(first.statements, second.statements):
            return False
        for key, kind in kinds.items():
            ends = (values.iterate_leaves(trace.changed[key], kind) for trace in (first, second))
            for (one, leaf), (other, _) in zip(*ends, strict=True):
                assert isinstance(leaf, values.Typed)
                if not equality.are_expressions_equal(
                    values.as_expr(one, leaf.dtype), values.as_expr(other, leaf.dtype)
                ):
                    return False
        return True

    def _finish(self, state: State, trace: _Trace) -> None:
        """Set the variables to their values after the loop."""
        self._loop.finish(state)
        for key, value in trace.changed.items():
            if value is self._index:
                write(state.variables[key].cell, self._numbers[-1])
        if self._loop.has_return:
            self._loop.frame.leave_if_done()


def _note_results(tracer: Tracer) -> Callable[[], None]:
    """Note the results of the running functions; returns a function that restores them."""
    return _join_calls([frame.note_result() for frame in tracer.frames])


def _join_calls(functions: Sequence[Callable[[], None]]) -> Callable[[], None]:
    """Return a function that calls all of these functions."""

    def call_all() -> None:
        for function in functions:
            function()

    return call_all


# ---- Python's random numbers, which are drawn while tracing ---------------------------------------


def _note_random_states(state: State) -> Callable[[], None]:
    """Note the states of random generators; returns a function that restores them."""
    candidates = [read(variable.cell) for variable in state.variables.values()]
    scopes = {id(variable.scope): variable.scope for variable in state.variables.values()}
    candidates += [scope.module.get(name) for scope in scopes.values() for name in scope.mentioned]
    kinds: list[type] = []
    # both modules are slow to import; each has a global generator behind its functions
    if "random" in sys.modules:
        kinds.append(sys.modules["random"].Random)
        candidates.append(sys.modules["random"]._inst)
    if "numpy.random" in sys.modules:
        kinds += [np.random.Generator, np.random.RandomState]
        candidates.append(np.random.mtrand._rand)
    generators = {id(value): value for value in candidates if isinstance(value, tuple(kinds))}
    return _join_calls([_note_random_state(generator) for generator in generators.values()])


def _note_random_state(generator: Any) -> Callable[[], None]:
    """Note the state of a generator; returns a function that restores it."""
    if hasattr(generator, "bit_generator"):
        bits, before = generator.bit_generator, generator.bit_generator.state
        return lambda: setattr(bits, "state", before)
    if hasattr(generator, "set_state"):
        return functools.partial(generator.set_state, generator.get_state())
    return functools.partial(generator.setstate, generator.getstate())
