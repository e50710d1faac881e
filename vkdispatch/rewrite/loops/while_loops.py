"""While loops: run while Python knows the test, recorded from the first round whose test is a GPU value."""

from collections.abc import Iterable
from typing import Any

from vkdispatch.base.dtype import bool_
from vkdispatch.base.errors import UsageError
from vkdispatch.compiler.ir import Break, If, Return, Statement, While, walk
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import here, located
from vkdispatch.compiler.passes.reads import acts
from vkdispatch.rewrite.loops.loop import Block, Loop
from vkdispatch.rewrite.loops.rounds import RoundCounter, run_round
from vkdispatch.rewrite.state.signals import BREAK, CONTINUE, Entry, Signal
from vkdispatch.rewrite.state.tracer import Retry
from vkdispatch.rewrite.state.values import is_gpu
from vkdispatch.rewrite.state.variables import State, read

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
    if endless and not loop.has_break and not loop.has_return and not _returns(statements):
        raise located(
            UsageError,
            f"{loop.where} never ends: its condition is always true and no break leaves it",
        )
    recorder.emit(While(condition, tuple(statements), here()))
    loop.finish(state)
    return endless


def _returns(block: Iterable[Statement]) -> bool:
    return any(isinstance(statement, Return) for statement in walk(tuple(block)))
