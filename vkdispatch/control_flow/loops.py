"""For loops and while loops: run while tracing if Python decides, recorded if the GPU decides."""

import itertools
from collections.abc import Callable, Iterable
from typing import Any

from vkdispatch.base.dtype import bool_
from vkdispatch.base.errors import ArgumentValueError, UsageError
from vkdispatch.codegen.execution.control_flow import GpuRange, find_ends
from vkdispatch.compiler.ir import Break, Expr, If, Op, Return, Statement, While, walk
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import here, located
from vkdispatch.compiler.passes.reads import acts
from vkdispatch.control_flow.loop_state import Block, Loop, RoundCounter, run_round
from vkdispatch.control_flow.paths import emit_single_round
from vkdispatch.control_flow.python_ranges import record_python_range
from vkdispatch.control_flow.tracer import BREAK, CONTINUE, Entry, Retry, Signal
from vkdispatch.control_flow.values import LocalValue, State, is_gpu, read

# ---- For loops: unrolled over a Python iterable, recorded over a range of the GPU ------------------------


# Least number of rounds of a Python loop that is recorded as a GPU loop.
_MIN_RECORDED = 64


def run_for(
    loop: Loop, items: Any, body: Callable[[Any], Any], target: str | None, orelse: Block | None
) -> Any:
    """Run a for loop over a Python iterable, or record one over a GPU range."""
    frame = loop.frame
    loop.target = target
    if isinstance(items, GpuRange):
        return _start_range(loop, items, body, orelse)
    unrolled = RoundCounter(loop, len(items) if isinstance(items, (range, list, tuple)) else 1)
    numbers = items if frame.tracer is not None and isinstance(items, range) else None
    recorded: bool | None = False
    is_long = unrolled.would_exceed() or unrolled.size >= _MIN_RECORDED
    if numbers is not None and is_long and len(numbers) > 1:
        recorded = record_python_range(loop, numbers, body)
    if not recorded:
        with unrolled:
            signal, rest = _unroll(loop, items, numbers, body, unrolled, again=recorded is None)
        if signal is loop:
            if isinstance(rest, range):
                return _start_range(loop, GpuRange(rest), body, orelse)
            return loop.record(lambda state: _record_rounds(loop, state, rest, body, orelse), orelse)
        if signal is BREAK:
            return None
        if signal is not None:
            return signal
    return None if orelse is None else orelse()


def _unroll(
    loop: Loop,
    items: Any,
    numbers: range | None,
    body: Callable[[Any], Any],
    unrolled: RoundCounter,
    *,
    again: bool,
) -> tuple[Any, Any]:
    """Run the rounds of a loop while tracing, or record those after the first as a loop of the GPU.

    Returns
    -------
    The signal with which the loop is left, and the items that are left. The signal is the loop itself if the
    GPU decides about leaving it.
    """
    iterator = iter(items)
    for position in itertools.count():
        if numbers is not None and position and (again or unrolled.is_excessive):
            # variables that held Python numbers have GPU values now, or the loops inside are long
            size, unrolled.size = unrolled.size, 1
            if record_python_range(loop, numbers[position:], body):
                break
            again, unrolled.size, unrolled.is_excessive, numbers = False, size, False, None
        try:
            item = next(iterator)
        except StopIteration:
            break
        unrolled.count()
        if loop.names.jumps and loop.frame.tracer is not None:
            mark = loop.tracer.recorder.mark()
            with loop.tracer.watch_variables(containers=False) as state:
                signal = run_round(loop, body, item)
            if signal is loop:
                loop.tracer.rewind(mark, state)
                return loop, items[position:] if isinstance(items, range) else [item, *iterator]
        else:
            signal = run_round(loop, body, item)
        if signal is not None and signal is not CONTINUE:
            return signal, None
    return None, None


def _start_range(loop: Loop, items: GpuRange, body: Callable[[Any], Any], orelse: Block | None) -> Any:
    if loop.target is None:
        raise located(ArgumentValueError, "for: a loop over a range of the GPU has one plain variable")
    return loop.record(lambda state: _record_for(loop, state, items, body, orelse), orelse)


def _record_for(
    loop: Loop, state: State, items: GpuRange, body: Callable[[Any], Any], orelse: Block | None
) -> bool:
    recorder, frame = loop.tracer.recorder, loop.frame
    start, stop, step = items.bounds()
    loop.expect_counter(state, start)
    loop.declare_registers(state)
    loop.watch_breaks(orelse)
    ends = recorder.declare(start.dtype, find_ends(start, stop, step), "ends") if items.is_reversed else None
    counter = recorder.open_for(start, stop, step, loop.target)
    with frame.open_entry(Entry("gpu loop", recorder.depth, loop)):
        if ends is not None:
            backward = Expr(Op.BINARY, counter.dtype, (ends, counter), "-")
            counter = recorder.declare(counter.dtype, backward, loop.target or "index")
        signal = body(LocalValue(counter))
        if signal is None:
            loop.store_registers()
    recorder.close()
    loop.finish(state)
    return False


def _record_rounds(
    loop: Loop, state: State, items: list[Any], body: Callable[[Any], Any], orelse: Block | None
) -> bool:
    """Unroll a loop that the GPU may leave: each round, and the whole loop, becomes a loop of one round."""
    recorder, frame = loop.tracer.recorder, loop.frame
    loop.is_unrolled = True
    loop.declare_registers(state)
    loop.watch_breaks(orelse)
    outer = recorder.depth
    recorder.open_block("while")
    for item in items:
        loop.load_registers()
        inner = recorder.depth
        recorder.open_block("while")
        with frame.open_entry(Entry("gpu loop", recorder.depth, loop)):
            signal = body(item)
            if signal is None:
                loop.store_registers()
        emit_single_round(recorder, recorder.take_block(inner))
        if loop.has_break:
            assert loop.break_register is not None
            recorder.emit(If(((loop.break_register, (Break(here()),)),), None, here()))
        if loop.has_return:
            frame.leave_if_done()
    recorder.emit(Break(here()))
    recorder.emit(While(ex.literal(True, bool_), tuple(recorder.take_block(outer)), here()))
    loop.finish(state)
    return False


# ---- While loops -----------------------------------------------------------------------------------------
#
# Run while Python knows the test, recorded from the first round whose test is a GPU value.


# The signal of a test that Python knows to be false.
_ENDED = Signal("ended")


def run_while(loop: Loop, test: Block, body: Block, orelse: Block | None) -> Any:
    """Run a while loop while Python knows its test, and record the rest of it."""
    frame = loop.frame
    if frame.tracer is None:
        return _run_in_python(test, body, orelse)
    unrolled = RoundCounter(loop)

    def run_test_and_body(_: None) -> Any:
        value = test()
        if is_gpu(value):
            raise Retry(loop)
        return body() if value else _ENDED

    with unrolled:
        while True:
            unrolled.count()
            mark = loop.tracer.recorder.mark()
            with loop.tracer.watch_variables(containers=False) as state:
                signal = run_round(loop, run_test_and_body, None)
            if signal is loop:
                loop.tracer.rewind(mark, state)
            if signal is loop or signal is _ENDED:
                break
            if signal is BREAK:
                return None
            if signal is not None and signal is not CONTINUE:
                return signal
    if signal is loop:
        return loop.record(lambda start: _record_while(loop, start, test, body, orelse), orelse)
    return None if orelse is None else orelse()


def _run_in_python(test: Block, body: Block, orelse: Block | None) -> Any:
    while test():
        signal = body()
        if signal is BREAK:
            return None
        if signal is not None and signal is not CONTINUE:
            return signal
    return None if orelse is None else orelse()


def _record_while(loop: Loop, state: State, test: Block, body: Block, orelse: Block | None) -> bool:
    recorder, frame = loop.tracer.recorder, loop.frame
    loop.declare_registers(state)
    loop.watch_breaks(orelse)
    depth = recorder.depth
    recorder.open_block("while")
    with frame.open_entry(Entry("gpu loop", recorder.depth, loop)):
        at_head = [(variable.cell, read(variable.cell)) for variable in state.variables.values()]
        value = test()
        moved = any(read(cell) is not before for cell, before in at_head)
        condition = ex.condition(value.expr) if is_gpu(value) else ex.literal(bool(value), bool_)
        endless = not is_gpu(value)
        if not endless and (acts(recorder.innermost) or moved):
            recorder.open_block("if")
            loop.store_registers()
            recorder.emit(Break(here()))
            leaving = recorder.take_block(depth + 1)
            recorder.emit(If(((ex.invert(condition), tuple(leaving)),), None, here()))
            condition = ex.literal(True, bool_)
        signal = body()
        if signal is None:
            loop.store_registers()
    statements = recorder.take_block(depth)
    if endless and not value:
        raise located(UsageError, f"{loop.where} changes from a condition of the GPU to one of Python")
    if endless and not (loop.has_break or loop.has_return or _returns(statements)):
        raise located(
            UsageError, f"{loop.where} never ends: its condition is always true and no break leaves it"
        )
    recorder.emit(While(condition, tuple(statements), here()))
    loop.finish(state)
    return endless


def _returns(block: Iterable[Statement]) -> bool:
    return any(isinstance(statement, Return) for statement in walk(tuple(block)))
