"""Branches, loops, ranges and blocks, and the truth of several conditions.

The context managers (`if_block`...) are the usual way; `if_statement` ... `end` open and close the same
blocks by hand.
"""

import builtins
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Generic, NoReturn, TypeVar

from vkdispatch.base import dtype as dt
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UsageError
from vkdispatch.base.host_numpy import np
from vkdispatch.codegen.functions.trigonometry import Value, as_value
from vkdispatch.codegen.trace.current import current
from vkdispatch.codegen.trace.operands import is_integer_scalar, mismatch
from vkdispatch.codegen.trace.range_checks import check_start
from vkdispatch.codegen.trace.recording import Recorder
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir import Expr, If, Op, RawStatement, Return
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.literals import fits
from vkdispatch.compiler.ir.location import here, located

__all__ = [
    "all",
    "any",
    "break_statement",
    "case_block",
    "continue_statement",
    "default_block",
    "else_block",
    "else_if_all",
    "else_if_any",
    "else_if_block",
    "else_if_statement",
    "else_statement",
    "end",
    "for_block",
    "for_statement",
    "if_all",
    "if_any",
    "if_block",
    "if_statement",
    "logical_and",
    "logical_or",
    "new_scope",
    "range",
    "return_statement",
    "scope_block",
    "select",
    "switch_block",
    "while_block",
    "while_statement",
]


# ---- Ranges that a kernel counts through on the GPU ------------------------------------------------------


class GpuRange:
    """start, start + step, ... up to, without it, stop: counted on the GPU by the for loop over it."""

    def __init__(self, *bounds: Any) -> None:
        if len(bounds) == 1 and type(bounds[0]).__name__ == "range":
            known = bounds[0]
            bounds = (known.start, known.stop, known.step)
        if not 1 <= len(bounds) <= 3:
            raise located(ArgumentTypeError, f"range: expected 1 to 3 bounds, got {len(bounds)}")
        if len(bounds) == 1:
            bounds = (0, bounds[0])
        self.start, self.stop, self.step = bounds if len(bounds) == 3 else (*bounds, 1)
        for name, bound in (("start", self.start), ("stop", self.stop), ("step", self.step)):
            _check(name, bound)
        if ex.is_integer_number(self.step) and self.step == 0:
            raise located(ArgumentValueError, "range: step must not be zero")
        self.is_reversed = False

    def bounds(self) -> tuple[Expr, Expr, Expr]:
        """Start, stop and step in the type of the counter.

        That is uint32 where every bound of the GPU is unsigned and no other is negative, and int32 otherwise.
        """
        values = (self.start, self.stop, self.step)
        known = [int(value) for value in values if ex.is_integer_number(value)]
        types = [value._value().dtype for value in values if isinstance(value, ShaderVariable)]
        unsigned = bool(types) and min(known, default=0) >= 0
        unsigned = unsigned and builtins.all(kind.name.startswith("u") for kind in types)
        kind = dt.uint32 if unsigned else dt.int32
        if unsigned and isinstance(self.start, ShaderVariable):
            check_start(self.start._value())
        for value in known:
            if not -(1 << 31) <= value < (1 << 32 if unsigned else 1 << 31):
                raise located(ArgumentValueError, f"range: {value} does not fit in {kind.name}")
        if len(known) == len(values):
            check_counter("range", kind, *known)
        start, stop, step = (
            ex.cast(value._value(), kind) if isinstance(value, ShaderVariable) else ex.literal(value, kind)
            for value in values
        )
        return start, stop, step

    def __reversed__(self) -> "GpuRange":
        turned = GpuRange(self.start, self.stop, self.step)
        turned.is_reversed = not self.is_reversed
        return turned

    def _refuse(self, *_: object) -> NoReturn:
        raise located(
            UsageError,
            "a range of the GPU can only be looped over by a for statement of a kernel in plain Python; here "
            "Python wants its numbers while the kernel is traced",
        )

    def __iter__(self) -> Iterator[Any]:
        # for statements of kernels never come here: type checkers see that their counters may be anything
        self._refuse()

    __len__ = __getitem__ = __contains__ = _refuse


def find_ends(start: Expr, stop: Expr, step: Expr) -> Expr:
    """Return the sum of the first and the last number of a range that is not empty; it wraps around."""
    kind = start.dtype

    def combine(symbol: str, left: Expr, right: Expr) -> Expr:
        return Expr(Op.BINARY, left.dtype, (left, right), symbol)

    def measure(first: Expr, last: Expr, distance: Expr) -> Expr:
        """Return the steps between the first number and the last, times their distance."""
        span = combine("-", combine("-", ex.cast(last, dt.uint32), ex.cast(first, dt.uint32)), one)
        return combine("*", combine("/", span, distance), distance)

    if step.op is Op.LITERAL and step.value in (1, -1):
        return combine("-", combine("+", start, stop), step)
    one, zero, size = ex.literal(1, dt.uint32), ex.literal(0, dt.uint32), ex.cast(step, dt.uint32)
    if step.op is not Op.LITERAL:
        # with a step of zero the loop does not run
        is_zero = Expr(Op.COMPARE, dt.bool_, (size, zero), "==")
        size = Expr(Op.SELECT, dt.uint32, (is_zero, one, size))
    up = combine("+", ex.cast(start, dt.uint32), measure(start, stop, size))
    down = combine("-", ex.cast(start, dt.uint32), measure(stop, start, combine("-", zero, size)))
    is_up = Expr(Op.COMPARE, dt.bool_, (ex.literal(0, kind), step), "<")
    last = Expr(Op.SELECT, dt.uint32, (is_up, up, down))
    if step.op is Op.LITERAL and isinstance(step.value, int):
        last = up if step.value > 0 else down
    return combine("+", start, ex.cast(last, kind))


def check_counter(what: str, kind: dt.DType, start: int, stop: int, step: int) -> None:
    """Raise ValueError if the counter of a range, one step behind its last number, leaves its type."""
    numbers = builtins.range(start, stop, step)
    if numbers and not fits(numbers[-1] + step, kind):
        raise located(
            ArgumentValueError,
            f"{what}: one step behind {numbers[-1]}, the last number of range({start}, {stop}, {step}), the "
            f"counter does not fit in {kind.name}; loop over fewer numbers, or by a step of 1",
        )


def _check(name: str, bound: Any) -> None:
    if isinstance(bound, ShaderVariable):
        kind = bound._value().dtype
        if not is_integer_scalar(kind):
            raise located(ArgumentTypeError, f"range: {name} must be an integer, got {kind.name}")
        if kind.item_size == 8:
            raise located(
                ArgumentTypeError,
                f"range: {name} is {kind.name}, but loops of the GPU count in 32 bits; convert it",
            )
    elif not ex.is_integer_number(bound):
        raise located(ArgumentTypeError, f"range: {name} must be an integer, got {bound!r}")


def range(*bounds: Any) -> GpuRange:
    """Count on the GPU, in a for loop of a kernel in plain Python, even where Python knows all bounds.

    Parameters
    ----------
    *bounds
        As of Python's `range`: stop; start and stop; or start, stop and step. Integers or GPU values.

    Raises
    ------
    TypeError, ValueError
        A bound is no integer of at most 32 bits, or the step is zero.
    """
    return GpuRange(*bounds)


# ---- Branches, loops and blocks, and the truth of several conditions -------------------------------------


Condition = Value | bool | np.bool_


_Given = TypeVar("_Given")


class _Block(Generic[_Given]):
    """A block that is open while a with statement runs."""

    def __init__(self, opener: Callable[[Recorder], _Given]) -> None:
        self._opener = opener

    def __enter__(self) -> _Given:
        self._recorder = current()
        self._depth = self._recorder.depth
        return self._opener(self._recorder)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # also what was left open inside, so that an error leaves no trace
        self._recorder.close(self._depth)


def _parse_truth(value: object, what: str) -> Expr:
    if isinstance(value, ShaderVariable):
        return ex.condition(value._value())
    if isinstance(value, (bool, np.bool_)):
        return ex.literal(bool(value), dt.bool_)
    raise mismatch(f"{what}: expected a GPU value or a bool as condition", value)


def if_block(arg: Condition) -> _Block[None]:
    """Run a block if the condition holds: `with vc.if_block(x > 0):`."""
    truth = _parse_truth(arg, "if_block")
    return _Block(lambda recorder: recorder.open_if(truth))


def else_if_block(arg: Condition) -> _Block[None]:
    """Run a block if the ones before, which it follows directly, did not and the condition holds."""
    truth = _parse_truth(arg, "else_if_block")
    return _Block(lambda recorder: recorder.open_else_if(truth))


def else_block() -> _Block[None]:
    """Run a block if the ones before, which it follows directly, did not."""
    return _Block(lambda recorder: recorder.open_else())


def while_block(arg: Condition, *, rolled: bool = False) -> _Block[None]:
    """Run a block as long as the condition, evaluated anew each time, holds.

    It should depend on registers. `rolled` asks compilers not to write out several rounds of a long block,
    which may be more than fits a cache of instructions.
    """
    truth = _parse_truth(arg, "while_block")
    return _Block(lambda recorder: recorder.open_while(truth, rolled))


def scope_block(indent: bool = True, comment: str | None = None) -> _Block[None]:
    """Make a block of its own, with an optional comment. `indent` is kept for old programs."""
    return _Block(lambda recorder: recorder.open_scope(comment))


def for_block(
    start: Any, stop: Any = None, step: Any = None, var_name: str | None = None
) -> _Block[ShaderVariable]:
    """Run a block for each number of a range: `with vc.for_block(n) as i:`.

    Parameters
    ----------
    start, stop, step
        As of Python's `range`: one value is `stop`. Integers of at most 32 bits, GPU values or Python ints;
        they are computed once, before the loop.
    var_name
        Name of the counter in the generated code.

    Returns
    -------
    A context manager that gives the counter: uint32 or int32, the promoted type of the three; int32 if all
    are Python ints. It cannot be assigned to, and it exists inside the block only. `stop` and one step more
    must fit in its type.

    Raises
    ------
    TypeError
        A bound is no integer, or one of 64 bits.
    ValueError
        `step` is 0.
    """
    bounds = _range_bounds("for_block", start, stop, step)
    return _Block(lambda recorder: ShaderVariable(recorder.open_for(*bounds, var_name)))


def _range_bounds(what: str, start: Any, stop: Any, step: Any) -> tuple[Expr, Expr, Expr]:
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    values: list[ex.Operand] = []
    for label, value in (("start", start), ("stop", stop), ("step", step)):
        if isinstance(value, ShaderVariable):
            value = value._value()
        if not (is_integer_scalar(value.dtype) if isinstance(value, Expr) else ex.is_integer_number(value)):
            raise mismatch(f"{what}: {label} must be an integer", value)
        values.append(value)
    if ex.is_number(values[2]) and values[2] == 0:
        raise located(ArgumentValueError, f"{what}: step must not be 0")
    numbers = [int(value) for value in values if not isinstance(value, Expr)]
    known = [value for value in values if isinstance(value, Expr)]
    if known:
        kind, _ = ex.meet(known, what)
        if kind.item_size > 4:
            raise located(
                ArgumentTypeError,
                f"{what}: loops count in 32 bits, got {kind.name}; convert with .to_dtype(vd.int32)",
            )
        counted = dt.int32 if dt.is_signed_dtype(kind) or min(numbers, default=0) < 0 else dt.uint32
    else:
        # Python ints count in int32 where that holds them
        counted = dt.int32 if max(numbers) < 1 << 31 else dt.uint32
        if not (fits(min(numbers), counted) and fits(max(numbers), counted)):
            raise located(ArgumentValueError, f"{what}: {start}, {stop}, {step} do not fit in 32 bits")
        check_counter(what, counted, int(start), int(stop), int(step))
    first, last, change = (
        ex.cast(value, counted) if isinstance(value, Expr) else ex.literal(value, counted, what)
        for value in values
    )
    return first, last, change


def switch_block(value: Any) -> _Block[None]:
    """Choose one block by an integer: `with vc.switch_block(x): with vc.case_block(1, 2): ...`.

    It holds `case_block`s and at most one `default_block`, and nothing else. Cases do not fall through; with
    no case for the value and no default nothing runs. Raises TypeError unless the value is an integer scalar
    of at most 32 bits.
    """
    expr = value._value() if isinstance(value, ShaderVariable) else None
    if ex.is_integer_number(value):
        expr = ex.literal(value, dt.int32 if -(1 << 31) <= value < 1 << 31 else dt.uint32)
    if expr is None or not is_integer_scalar(expr.dtype) or expr.dtype.item_size > 4:
        raise mismatch("switch_block: expected an integer scalar of at most 32 bits", value)
    chosen = ex.cast(expr, dt.int32 if dt.is_signed_dtype(expr.dtype) else dt.uint32)
    return _Block(lambda recorder: recorder.open_switch(chosen))


def case_block(*values: int) -> _Block[None]:
    """Run a block if the switch around it is at one of these Python ints.

    Raises TypeError for what is no int; ValueError for none, for one that the switch's type does not hold,
    and for one that has a case already; RuntimeError if it does not stand directly inside a switch block.
    """
    if not values:
        raise located(ArgumentValueError, "case_block: pass at least one value")
    for value in values:
        if not ex.is_integer_number(value):
            given = f"{value!r} ({type(value).__name__})"
            raise located(ArgumentTypeError, f"case_block: every value must be a Python int, got {given}")
    numbers = tuple(int(value) for value in values)
    return _Block(lambda recorder: _open_case(recorder, numbers))


def _open_case(recorder: Recorder, numbers: tuple[int, ...]) -> None:
    kind = recorder.switch_value.dtype
    for position, number in enumerate(numbers):
        if not fits(number, kind):
            raise located(ArgumentValueError, f"case_block: {number} is no value of {kind.name}")
        if number in numbers[:position]:
            raise located(ArgumentValueError, f"case_block: {number} is passed twice")
    recorder.open_case(numbers)


def default_block() -> _Block[None]:
    """Run a block if the switch around it has no case for the value.

    Raises RuntimeError if it does not stand directly inside a switch block, or for the second one.
    """
    return _Block(lambda recorder: recorder.open_default())


def break_statement() -> None:
    """End the innermost loop, also from inside a switch. Raises RuntimeError outside GPU loops."""
    current().leave_loop()


def continue_statement() -> None:
    """Go on with the next round of the innermost loop. Raises RuntimeError outside GPU loops."""
    current().next_round()


def select(cond: Condition, a: Any, b: Any) -> ShaderVariable:
    """Choose a if the condition holds, else b; only the chosen one is evaluated.

    The condition is a scalar; a and b are GPU values or numbers, vectors and matrices too, and meet in their
    promoted type. A Python bool and two numbers give the number. Raises TypeError for anything else and
    ValueError where the two do not meet.
    """
    variables = [value for value in (a, b) if isinstance(value, ShaderVariable)]
    if isinstance(cond, (bool, np.bool_)) and not variables:
        return as_value(a if cond else b)
    truth = _parse_truth(cond, "select")
    kinds = [value.var_type for value in variables]
    first, second = (_choice(value, kinds) for value in (a, b))
    return ShaderVariable(ex.select(truth, first, second))


def _choice(value: Any, kinds: list[dt.DType]) -> ex.Operand:
    if isinstance(value, ShaderVariable):
        return value._value()
    if isinstance(value, (bool, np.bool_)):
        return ex.literal(bool(value), dt.bool_)
    if ex.is_number(value):
        return value
    if isinstance(value, complex):
        return ex.as_complex(value, kinds[0] if kinds and dt.is_complex(kinds[0]) else None)
    raise mismatch("select: expected GPU values or numbers", value)


def return_statement(arg: Any = None) -> None:
    """End this invocation. Kernels return nothing, so `arg` must be None."""
    if arg is not None:
        raise located(ArgumentTypeError, f"return_statement: a kernel returns no value, got {arg!r}")
    current().emit(Return(here()))


def any(*conditions: Condition) -> ShaderVariable:
    """Whether at least one condition holds. Raises TypeError for what is no condition."""
    return _join("||", conditions, "any", False)


def all(*conditions: Condition) -> ShaderVariable:
    """Whether all conditions hold. Raises TypeError for what is no condition."""
    return _join("&&", conditions, "all", True)


def _join(symbol: str, conditions: tuple[Condition, ...], what: str, empty: bool) -> ShaderVariable:
    truths = [_parse_truth(condition, what) for condition in conditions]
    return ShaderVariable(ex.logical(symbol, truths) if truths else ex.literal(empty, dt.bool_))


def logical_and(a: Condition, b: Condition) -> ShaderVariable:
    """Whether both conditions hold."""
    return all(a, b)


def logical_or(a: Condition, b: Condition) -> ShaderVariable:
    """Whether one of the conditions holds."""
    return any(a, b)


# ---- blocks opened and closed by hand ------------------------------------------------------------


def if_statement(cond: Condition, command: str | None = None) -> None:
    """Open a branch until `else_statement`, `else_if_statement` or `end`.

    With `command` (GLSL) it is that alone.
    """
    truth = _parse_truth(cond, "if_statement")
    if command is None:
        current().open_if(truth)
        return
    loc = here()
    current().emit(If(((truth, (RawStatement(command, loc),)),), None, loc))


def if_any(*conditions: Condition) -> None:
    """Open a branch for when at least one condition holds."""
    if_statement(any(*conditions))


def if_all(*conditions: Condition) -> None:
    """Open a branch for when all conditions hold."""
    if_statement(all(*conditions))


def _close_branch() -> Recorder:
    recorder = current()
    if recorder.open_kind == "if":
        recorder.close()
    return recorder


def else_statement() -> None:
    """Close the open branch and open the one for when none before ran."""
    _close_branch().open_else()


def else_if_statement(cond: Condition) -> None:
    """Close the open branch and open another one with a condition."""
    truth = _parse_truth(cond, "else_if_statement")
    _close_branch().open_else_if(truth)


def else_if_any(*conditions: Condition) -> None:
    """Close the open branch and open one for when at least one condition holds."""
    else_if_statement(any(*conditions))


def else_if_all(*conditions: Condition) -> None:
    """Close the open branch and open one for when all conditions hold."""
    else_if_statement(all(*conditions))


def while_statement(cond: Condition) -> None:
    """Open a loop until `end`."""
    current().open_while(_parse_truth(cond, "while_statement"))


def for_statement(
    start: Any, stop: Any = None, step: Any = None, var_name: str | None = None
) -> ShaderVariable:
    """Open a loop over a range until `end`; returns the counter. See `for_block`."""
    return ShaderVariable(current().open_for(*_range_bounds("for_statement", start, stop, step), var_name))


def new_scope(indent: bool = True, comment: str | None = None) -> None:
    """Open a block of its own until `end`."""
    current().open_scope(comment)


def end(indent: bool = True) -> None:
    """Close the innermost block. Raises RuntimeError if none is open."""
    current().close()
