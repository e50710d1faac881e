"""Runs of kernels: statements in program order, all active invocations of a batch in lockstep."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vkdispatch.base import errors
from vkdispatch.base.dtype import is_cooperative
from vkdispatch.compiler import ir
from vkdispatch.compiler.analyses.launch_values import find_shared_sizes, is_sized_by_calls, sizes_of_shared
from vkdispatch.compiler.interpreter import memory as mem
from vkdispatch.compiler.interpreter import operations
from vkdispatch.compiler.interpreter.evaluation import Evaluator, add_axis, check_texels
from vkdispatch.compiler.interpreter.program import NOBODY, Checks, Lanes, Memory, Program, find_lazy_choices
from vkdispatch.compiler.ir.location import located
from vkdispatch.compiler.passes.diagnostics import host_value, message_text

# ---- Printed texts of kernels, one for each invocation ---------------------------------------------------


def format_values(statement: ir.Print, values: list[mem.Array], rows: int) -> list[str]:
    """Format the values that each invocation prints."""
    columns = [np.asarray(mem.broadcast_rows(value, rows)).reshape(rows, -1) for value in values]
    texts: list[str] = []
    for row in range(rows):
        shown = [
            host_value(arg.dtype, column[row]) for arg, column in zip(statement.args, columns, strict=True)
        ]
        texts.append(message_text(statement.format, statement.style, shown))
    return texts


# ---- Execution of kernels: statements in program order, all active invocations of a batch in lockstep ----


# Invocations of a batch: many enough to amortize NumPy calls, few enough to fit in caches.
_BATCH = 1 << 16
_BARRIERS = frozenset(("barrier", "controlBarrier"))


@dataclass(slots=True)
class _Loop:
    """The invocations that have left a loop, and those that wait for its next round."""

    left: list[Lanes] = field(default_factory=list)
    waiting: list[Lanes] = field(default_factory=list)


@dataclass(slots=True)
class _Output:
    """Printed texts with their sort keys: the invocation, then the order of printing."""

    entries: list[tuple[int, int, str]] = field(default_factory=list)

    def flush(self) -> None:
        for _, _, text in sorted(self.entries, key=lambda entry: entry[:2]):
            sys.stdout.write(text)
        self.entries.clear()


def run_program(program: Program) -> None:
    """Run a kernel, batch by batch, and print what its invocations have printed."""
    total = math.prod(program.groups)
    at_once = max(1, _BATCH // math.prod(program.local_size))
    output = _Output()
    with np.errstate(all="ignore"):
        try:
            for first in range(0, total, at_once):
                _Runner(Evaluator(program, first, min(at_once, total - first)), output).run()
        finally:
            output.flush()


class _Runner:
    """Runs the statements for one batch of workgroups."""

    def __init__(self, batch: Evaluator, output: _Output) -> None:
        self.batch = batch
        self.output = output
        self.loops: list[_Loop] = []

    def run(self) -> None:
        batch = self.batch
        everyone = Lanes(np.arange(batch.width), True)
        limit = batch.program.kernel.exec_count
        if limit is not None:
            extent = batch.program.memory.arguments[limit.name]
            inside = np.all(batch.builtin(ir.Builtin.GLOBAL_INVOCATION_ID) < extent, axis=1)
            everyone, _ = everyone.split(inside)
        # invocations beyond the execution size have ended, and barriers do not wait for them
        self.present = np.bincount(batch.group[everyone.index], minlength=batch.group_count)
        self.run_block(batch.program.kernel.body, everyone)
        if batch.program.races is not None:
            for cells in batch.shared.values():
                batch.program.races.forget(cells)

    def evaluate(self, expr: ir.Expr, lanes: Lanes) -> mem.Array:
        return self.batch.evaluate(expr, lanes)

    def run_block(self, block: ir.Block, lanes: Lanes) -> Lanes:
        """Run a block, and return the invocations that reach its end."""
        for statement in block:
            if not len(lanes):
                break
            lanes.known.clear()
            lanes = _RUNNERS.get(type(statement), _Runner.refuse_unknown)(self, statement, lanes)
        lanes.known.clear()
        return lanes

    # -- simple statements

    def declare(self, statement: ir.Declare, lanes: Lanes) -> Lanes:
        if is_cooperative(statement.register.dtype):
            return self.refuse_matrix(statement, lanes)
        if statement.value.op is ir.Op.ATOMIC:
            value = self.batch.run_atomic(statement.value, lanes, statement.loc)
        else:
            value = self.evaluate(statement.value, lanes)
        register = self.new_register(statement.register)
        self.batch.check_nan(value, register.what, None, lanes, statement.loc)
        register.data[slice(None) if lanes.whole else lanes.index] = value
        return lanes

    def new_register(self, register: ir.Register) -> mem.Cells:
        registers = self.batch.registers
        if id(register) not in registers:
            data = np.zeros(
                (self.batch.width, *mem.value_shape(register.dtype)), mem.host_dtype(register.dtype)
            )
            registers[id(register)] = mem.Cells(f"register {register.name!r}", data, None, self.batch.width)
        return registers[id(register)]

    def store(self, statement: ir.Store, lanes: Lanes) -> Lanes:
        loc = statement.loc
        value = self.evaluate(statement.value, lanes)
        place = self.batch.find_place(statement.place, lanes, loc)
        races = self.batch.program.races
        access = (
            None
            if races is None or place.owned
            else self.batch.describe_access(place.cells, place.index, lanes, place.rows, loc)
        )
        if statement.operator is not None:
            if access is not None and races is not None:
                races.read(access)
            kinds = (statement.place.dtype, statement.value.dtype)
            value = operations.apply_binary(statement.operator, kinds, place.load(), place.select_rows(value))
        else:
            value = place.select_rows(value)
        if self.batch.program.checks.nan:
            reaching = lanes if place.rows is None else Lanes(lanes.index[place.rows], False)
            element = None if place.owned else place.index[0] % place.cells.size
            self.batch.check_nan(value, place.cells.what, element, reaching, loc)
        if access is not None and races is not None:
            races.write(access, value if statement.operator is None else None)
        place.cells.store(place.index, value)
        return lanes

    def image_store(self, statement: ir.ImageStore, lanes: Lanes) -> Lanes:
        loc, batch = statement.loc, self.batch
        coordinate = add_axis(mem.broadcast_rows(self.evaluate(statement.coordinate, lanes), len(lanes)))
        value = self.evaluate(statement.value, lanes)
        texels = batch.program.memory.images[statement.image.index]
        assert texels.cells is not None
        rows = check_texels(batch, texels, coordinate, None, lanes, loc)
        if rows is not None:
            coordinate, value = coordinate[rows], mem.broadcast_rows(value, len(lanes))[rows]
            lanes_there = Lanes(lanes.index[rows], False)
        else:
            lanes_there = lanes
        batch.check_nan(value, texels.what, None, lanes_there, loc)
        place = (texels.flatten_coordinates(coordinate),)
        if batch.program.races is not None:
            batch.program.races.write(batch.describe_access(texels.cells, place, lanes, rows, loc), value)
        texels.cells.store(place, value)
        return lanes

    def run_effect(self, statement: ir.Effect, lanes: Lanes) -> Lanes:
        batch = self.batch
        arrived = np.bincount(batch.group[lanes.index], minlength=batch.group_count)
        if statement.function in _BARRIERS:
            stuck = (arrived > 0) & (arrived < self.present)
            if stuck.any():
                group = int(np.argmax(stuck))
                where = tuple(batch.builtin(ir.Builtin.WORKGROUP_ID)[group * batch.local].tolist())
                raise located(
                    errors.UsageError,
                    f"{batch.program.who}: barrier: only {arrived[group]} of the {self.present[group]} "
                    f"invocations of workgroup {where} get here; all or none must",
                    statement.loc,
                )
        if statement.function in _BARRIERS or statement.function == "subgroupBarrier":
            batch.epoch[arrived > 0] += 1
        return lanes

    def print(self, statement: ir.Print, lanes: Lanes) -> Lanes:
        if self.batch.program.kernel.flags & ir.ShaderFlags.NO_PRINTF:
            return lanes
        values = [self.evaluate(arg, lanes) for arg in statement.args]
        texts = format_values(statement, values, len(lanes))
        start = len(self.output.entries)
        numbers = self.batch.flat_ids(lanes).tolist()
        self.output.entries += [(number, start, text) for number, text in zip(numbers, texts, strict=True)]
        return lanes

    def check_assert(self, statement: ir.Assert, lanes: Lanes) -> Lanes:
        if not self.batch.program.checks.asserts:
            return lanes
        self.run_block(statement.body, lanes)
        lanes.known.clear()
        holds = self.evaluate(statement.condition, lanes)
        if not holds.all():
            said = f": {statement.message}" if statement.message else ""
            first = int(lanes.index[int(np.argmin(np.broadcast_to(holds, len(lanes))))])
            raise self.batch.make_error(
                errors.KernelAssertionError, f"assertion failed{said}", first, statement.loc
            )
        return lanes

    def skip(self, statement: ir.Statement, lanes: Lanes) -> Lanes:
        return lanes

    def refuse_unknown(self, statement: ir.Statement, lanes: Lanes) -> Lanes:
        raise self.make_refusal(statement, f"{type(statement).__name__} is not known here")

    def refuse_raw(self, statement: ir.RawStatement, lanes: Lanes) -> Lanes:
        raise self.make_refusal(statement, "GLSL given as text runs on a device only")

    def refuse_matrix(self, statement: ir.MatrixLoad | ir.MatrixStore | ir.Declare, lanes: Lanes) -> Lanes:
        raise self.make_refusal(statement, "cooperative matrices live on a device only")

    def make_refusal(self, statement: ir.Statement, reason: str) -> errors.UnsupportedError:
        who = self.batch.program.who
        return located(errors.UnsupportedError, f"{who}: interpret: {reason}", statement.loc)

    # -- control flow

    def run_scope(self, statement: ir.Scope, lanes: Lanes) -> Lanes:
        return self.run_block(statement.body, lanes)

    def run_if(self, statement: ir.If, lanes: Lanes) -> Lanes:
        ends: list[Lanes] = []
        rest = lanes
        for condition, body in statement.branches:
            if not len(rest):
                break
            rest.known.clear()
            truth = mem.broadcast_rows(self.evaluate(condition, rest), len(rest))
            chosen, rest = rest.split(truth)
            ends.append(self.run_block(body, chosen))
        if statement.orelse is not None:
            rest = self.run_block(statement.orelse, rest)
        return _merge_lanes([*ends, rest], lanes)

    def run_switch(self, statement: ir.Switch, lanes: Lanes) -> Lanes:
        value = mem.broadcast_rows(self.evaluate(statement.value, lanes), len(lanes))
        ends: list[Lanes] = []
        rest = lanes
        for numbers, body in statement.cases:
            truth = np.isin(value, np.array(numbers, np.int64).astype(value.dtype))
            chosen, rest = rest.split(np.asarray(truth))
            value = value[~truth]
            ends.append(self.run_block(body, chosen))
        if statement.default is not None:
            rest = self.run_block(statement.default, rest)
        return _merge_lanes([*ends, rest], lanes)

    def while_loop(self, statement: ir.While, lanes: Lanes) -> Lanes:
        most = self.batch.program.checks.rounds

        def decide(running: Lanes, rounds: int) -> tuple[Lanes, Lanes]:
            running.known.clear()
            truth = mem.broadcast_rows(self.evaluate(statement.condition, running), len(running))
            running, done = running.split(truth)
            if rounds == most and len(running):
                text = f'a while loop took more than {most} rounds; check="loops=<rounds>" allows more'
                raise self.batch.make_error(errors.LoopLimitError, text, int(running.index[0]), statement.loc)
            return running, done

        return self.run_rounds(statement.body, lanes, decide)

    def run_rounds(
        self, body: ir.Block, lanes: Lanes, decide: Callable[[Lanes, int], tuple[Lanes, Lanes]]
    ) -> Lanes:
        """Run a loop; `decide` returns who takes part in the round of a number, and who has left the loop."""
        loop = _Loop()
        self.loops.append(loop)
        running, rounds = lanes, 0
        while len(running):
            running, done = decide(running, rounds)
            loop.left.append(done)
            running = _merge_lanes([self.run_block(body, running), *loop.waiting], running)
            loop.waiting.clear()
            rounds += 1
        self.loops.pop()
        return _merge_lanes(loop.left, lanes)

    def for_loop(self, statement: ir.For, lanes: Lanes) -> Lanes:
        start, stop, step = (
            mem.broadcast_rows(self.evaluate(bound, lanes), len(lanes)).astype(np.int64)
            for bound in (statement.start, statement.stop, statement.step)
        )
        safe = np.where(step == 0, 1, step)
        # as many rounds as range() has
        rounds = np.where(step == 0, 0, np.maximum(0, -((start - stop) // safe)))
        counter = self.new_register(statement.counter).data
        kind = np.iinfo(counter.dtype)
        past = start + rounds * step
        wraps = (rounds > 0) & ((past < kind.min) | (past > kind.max))
        if wraps.any():
            text = (
                f"the counter of a loop leaves {statement.counter.dtype.name}, so that the loop does not end"
            )
            raise self.batch.make_error(
                errors.LoopLimitError, text, int(lanes.index[int(np.argmax(wraps))]), statement.loc
            )
        row_of = np.zeros(self.batch.width, np.int64)
        row_of[lanes.index] = np.arange(len(lanes))

        def decide(running: Lanes, number: int) -> tuple[Lanes, Lanes]:
            running, done = running.split(rounds[row_of[running.index]] > number)
            rows = row_of[running.index]
            counter[running.index] = (start[rows] + number * step[rows]).astype(counter.dtype)
            return running, done

        return self.run_rounds(statement.body, lanes, decide)

    def leave(self, statement: ir.Break, lanes: Lanes) -> Lanes:
        self.loops[-1].left.append(lanes)
        return NOBODY

    def next_round(self, statement: ir.Continue, lanes: Lanes) -> Lanes:
        self.loops[-1].waiting.append(lanes)
        return NOBODY

    def return_(self, statement: ir.Return, lanes: Lanes) -> Lanes:
        return NOBODY


def _merge_lanes(parts: list[Lanes], before: Lanes) -> Lanes:
    """Merge invocations that took different paths; `before` are the invocations before they diverged."""
    parts = [part for part in parts if len(part)]
    if sum(len(part) for part in parts) == len(before):
        return before
    if not parts:
        return NOBODY
    if len(parts) == 1:
        return parts[0]
    return Lanes(np.sort(np.concatenate([part.index for part in parts])), False)


_RUNNERS: dict[type[Any], Callable[[_Runner, Any, Lanes], Lanes]] = {
    ir.Declare: _Runner.declare,
    ir.Store: _Runner.store,
    ir.ImageStore: _Runner.image_store,
    ir.MatrixLoad: _Runner.refuse_matrix,
    ir.MatrixStore: _Runner.refuse_matrix,
    ir.If: _Runner.run_if,
    ir.While: _Runner.while_loop,
    ir.For: _Runner.for_loop,
    ir.Switch: _Runner.run_switch,
    ir.Break: _Runner.leave,
    ir.Continue: _Runner.next_round,
    ir.Scope: _Runner.run_scope,
    ir.Effect: _Runner.run_effect,
    ir.Print: _Runner.print,
    ir.Assert: _Runner.check_assert,
    ir.Return: _Runner.return_,
    ir.Comment: _Runner.skip,
    ir.RawStatement: _Runner.refuse_raw,
}


# ---- Runs of kernels over a grid, with NumPy and without a device ----------------------------------------


def run_kernel(
    who: str,
    kernel: ir.Kernel,
    memory: Memory,
    *,
    groups: mem.Extent,
    local_size: mem.Extent,
    subgroup_size: int = 32,
    checks: Checks | None = None,
    races: bool = False,
) -> None:
    """Run a kernel over a grid, writing to the buffers in place.

    Parameters
    ----------
    who
        The name of the kernel in messages.
    kernel
        The kernel.
    memory
        Its arguments, buffers and images.
    groups, local_size
        The number of workgroups, and of invocations in a workgroup, along each axis.
    subgroup_size
        Invocations in a subgroup, a power of two up to 128.
    checks
        The checks to make. None: bounds of indices and asserts.
    races
        Whether unordered accesses to an element are errors.

    Raises
    ------
    IndexError
        An index is out of range for its buffer, shared array, image, vector or matrix.
    FloatingPointError
        A NaN was stored.
    RuntimeError
        Some invocations of a workgroup miss a barrier, a loop takes too many rounds, or there is a race.
    NotImplementedError
        The kernel contains raw GLSL, or something else that is not supported.
    """
    if subgroup_size < 1 or subgroup_size > 128 or subgroup_size & (subgroup_size - 1):
        raise errors.ArgumentValueError(
            f"subgroup_size: expected a power of two up to 128, got {subgroup_size!r}"
        )
    sized = is_sized_by_calls(kernel)
    program = Program(
        who,
        kernel,
        memory,
        groups,
        local_size,
        subgroup_size,
        checks or Checks(),
        mem.RaceDetector(who, groups, local_size) if races else None,
        find_lazy_choices(kernel),
        sizes_of_shared(kernel, find_shared_sizes(who, kernel, _integers(memory)) if sized else ()),
    )
    run_program(program)


def _integers(memory: Memory) -> dict[str, int]:
    """Return the arguments that are one integer."""
    return {
        name: int(value[0])
        for name, value in memory.arguments.items()
        if value.shape == (1,) and value.dtype.kind in "iu"
    }
