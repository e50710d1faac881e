"""Transforms of the last two axes in one kernel, whose workgroups hold whole planes in registers.

The rows of a plane are transformed, then exchanged through workgroup memory with the invocations that
transform its columns. The data is read once and written once.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType, component_type
from vkdispatch.fft.plan.passes import SharedLayout, Transform
from vkdispatch.fft.plan.planes import PlanePlan
from vkdispatch.fft.plan.stages import Split, Stage, add, hold, multiply
from vkdispatch.fft.trace.transform import (
    FFTRegisters,
    SharedLines,
    guard,
    move_in_parts,
    transform,
    values_in_order,
)
from vkdispatch.shader.shader_function import ShaderFunction

# ---- the kernel ------------------------------------------------------------------------------------


def make_plane_kernel(plan: PlanePlan, transform: Transform) -> ShaderFunction:
    """Make the kernel of plane transforms in place.

    Parameters
    ----------
    plan
        As `plan_planes` makes it.
    transform
        That of the last axis; normalization and scale are those of both axes.
    """
    kind, inverse, scale = transform.output_type, transform.inverse, transform.scale
    assert kind is not None
    with vc.shader_context(vc.ShaderFlags.NO_EXEC_BOUNDS) as shader:
        (buffer,) = shader.declare_input_arguments([vc.Buffer[kind]], ["buffer"])  # type: ignore[valid-type]
        steps = PlaneSteps(plan, kind, buffer)
        values = steps.transform_rows(steps.read_rows(), inverse)
        values = steps.transform_columns(steps.rows_to_columns(values), inverse)
        values = steps.normalize(values) if inverse and transform.normalize else values
        steps.write_columns([hold(value * scale) for value in values] if scale != 1 else values)
        description = shader.get_description(transform.plane_name)
    return ShaderFunction(description, plan.local_size, (plan.workgroups, 1, 1))


class PlaneSteps:
    """The steps of a kernel that is being traced; `least` is the least size of workgroup memory."""

    def __init__(self, plan: PlanePlan, kind: DType, buffer: Any, least: int = 0) -> None:
        self.plan, self.kind, self.buffer = plan, kind, buffer
        local = vc.local_invocation_id()
        self.lane = local.x
        self.plane: Any = 0 if plan.planes == 1 else local.y
        number = add(multiply(vc.workgroup_id().x, plan.planes), self.plane)
        # whether the plane exists
        self.present: Any = hold(number) < plan.count if plan.count % plan.planes else True
        self.origin = hold(multiply(number, plan.height * plan.width))
        compute = plan.compute_type
        part = compute if plan.parts == 1 else component_type(compute)
        self.array = vc.shared_buffer(part, max(plan.elements, least), var_name="planes")
        self.used = False
        # a row belongs to neighbouring invocations; neighbouring columns to neighbouring invocations
        self.row_thread, self.row = _divide(self.lane, plan.rows.threads)
        self.row_count = -(-plan.group // plan.rows.threads)
        self.column_count = -(-plan.group // plan.columns.threads)
        self.column, self.column_thread = _divide(self.lane, self.column_count)
        self.row_there: Any = True if self.row_count == plan.height else self.row < plan.height
        self.column_there: Any = True if self.column_count == plan.width else self.column < plan.width

    def wait_for_readers(self) -> None:
        """Wait until all invocations have read workgroup memory."""
        if self.used:
            vc.barrier()
        self.used = True

    def lines(self, split: Split, layout: SharedLayout | None, line: Any) -> SharedLines | None:
        """Return workgroup memory for a transform."""
        if layout is None:
            return None
        lines = SharedLines(layout, split, self.plan.compute_type, line, array=self.array, used=self.used)
        self.used = True
        return lines

    def load(self, index: Any) -> Any:
        """Return a value of the buffer."""
        return self.buffer[index].to_dtype(self.plan.compute_type)

    def store(self, index: Any, value: Any) -> None:
        """Write a value into the buffer."""
        self.buffer[index] = value.to_dtype(self.kind)

    def normalize(self, values: Sequence[Any]) -> list[Any]:
        """Return values divided by the number of a plane's values."""
        scale = 1.0 / (self.plan.height * self.plan.width)
        return [hold(value * scale) for value in values]

    # -- transforms

    def transform_rows(self, values: Sequence[Any], inverse: bool) -> list[Any]:
        """Transform rows; return the output of the last stage."""
        plan = self.plan
        line = add(multiply(self.plane, self.row_count), self.row)
        return self._transform(plan.rows, plan.row_layout, values, line, self.row_thread, inverse)

    def transform_columns(self, values: Sequence[Any], inverse: bool) -> list[Any]:
        """Transform columns; return the output of the last stage."""
        return self.transform_columns_by(self.plan.columns, self.plan.column_layout, values, inverse)

    def transform_columns_by(
        self, split: Split, layout: SharedLayout | None, values: Sequence[Any], inverse: bool
    ) -> list[Any]:
        """Transform columns by another split of as many invocations."""
        line = add(multiply(self.plane, self.column_count), self.column)
        return self._transform(split, layout, values, line, self.column_thread, inverse)

    def _transform(
        self,
        split: Split,
        layout: SharedLayout | None,
        values: Sequence[Any],
        line: Any,
        thread: Any,
        inverse: bool,
    ) -> list[Any]:
        registers = FFTRegisters(split, self.plan.compute_type, "value")
        for index, value in enumerate(values):
            registers[index] = value
        transform(registers, self.lines(split, layout, line), thread, inverse)
        return list(registers)[: split.stages[-1].registers]

    # -- between rows and columns

    def rows_to_columns(self, values: Sequence[Any]) -> list[Any]:
        """Move the output of the rows to the input of the columns."""
        target = self.plan.columns.stages[0]
        return self._move(values, self._row_slots, -1, self._column_slots, target, target.registers)

    def columns_to_rows(self, values: Sequence[Any], source: Stage) -> list[Any]:
        """Move the output of a last stage of the columns to the input of the rows."""
        registers = self.plan.rows.stages[0].registers
        return self._move(values, self._column_slots, source, self._row_slots, 0, registers)

    def _move(
        self, values: Sequence[Any], source: Any, of_source: Any, target: Any, of_target: Any, count: int
    ) -> list[Any]:
        def move(part: list[Any]) -> list[Any]:
            taken: list[Any] = [vc.new_register(part[0].var_type) for _ in range(count)]
            for chunk in range(self.plan.chunks):
                self.wait_for_readers()
                for number, place in source(of_source, chunk):
                    self.array[place] = part[number]
                vc.barrier()
                for number, place in target(of_target, chunk):
                    taken[number][:] = self.array[place]
            return taken

        return move_in_parts(values, self.plan.parts, move)

    def _row_slots(self, number: int, chunk: int) -> Iterator[tuple[int, Any]]:
        """Yield registers and places in workgroup memory of a stage of the rows, within their guards."""
        plan, stage = self.plan, self.plan.rows.stages[number]
        piece = plan.height // plan.chunks
        conditions = [self.row_there]
        if plan.chunks > 1:
            conditions.append(hold(self.row // piece) == chunk)
        row = self.row - chunk * piece if chunk else self.row
        first = add(multiply(self.plane, piece * plan.pitch), multiply(row, plan.pitch))
        for turn, butterfly, more in _butterflies(stage, self.row_thread):
            base = hold(add(first, butterfly))
            places = [add(base, i * stage.butterflies) for i in range(stage.radix)]
            with guard([*conditions, *more]):
                yield from enumerate(places, turn * stage.radix)

    def _column_slots(self, stage: Stage, chunk: int) -> Iterator[tuple[int, Any]]:
        """Yield the same for a first or last stage of the columns."""
        plan = self.plan
        count = stage.radix // plan.chunks
        first = add(multiply(self.plane, plan.height // plan.chunks * plan.pitch), self.column)
        for turn, butterfly, more in _butterflies(stage, self.column_thread):
            base = hold(add(first, multiply(butterfly, plan.pitch)))
            places = [add(base, i * stage.butterflies * plan.pitch) for i in range(count)]
            with guard([self.column_there, *more]):
                yield from enumerate(places, turn * stage.radix + chunk * count)

    # -- memory

    def read_rows(self) -> list[Any]:
        """Read the input of the rows."""
        plan, stage = self.plan, self.plan.rows.stages[0]
        values: list[Any] = [vc.new_register(plan.compute_type) for _ in range(stage.registers)]
        if plan.staged:
            self.wait_for_readers()
            for index, place in self._in_order():
                self.array[place] = self.load(index)
            vc.barrier()
            for number, place in self._row_slots(0, 0):
                values[number][:] = self.array[place]
            return values
        for number, index in self._row_places(stage):
            values[number][:] = self.load(index)
        return values

    def write_rows(self, values: Sequence[Any]) -> None:
        """Write the output of the rows."""
        plan, stage = self.plan, self.plan.rows.stages[-1]
        if plan.staged:
            self.wait_for_readers()
            for number, place in self._row_slots(-1, 0):
                self.array[place] = values[number]
            vc.barrier()
            for index, place in self._in_order():
                self.store(index, self.array[place])
            return
        for number, index in self._row_places(stage):
            self.store(index, values[number])

    def _row_places(self, stage: Stage) -> Iterator[tuple[int, Any]]:
        """Yield registers and indices in the buffer of a stage of the rows, within their guards."""
        for turn, butterfly, more in _butterflies(stage, self.row_thread):
            base = hold(add(add(self.origin, multiply(self.row, self.plan.width)), butterfly))
            with guard([self.present, self.row_there, *more]):
                for i in range(stage.radix):
                    yield turn * stage.radix + i, add(base, i * stage.butterflies)

    def column_places(self, stage: Stage, origin: Any) -> Iterator[tuple[int, Any]]:
        """Yield the same for the output of a last stage of the columns."""
        for turn, butterfly, more in _butterflies(stage, self.column_thread):
            base = hold(add(add(origin, self.column), multiply(butterfly, self.plan.width)))
            with guard([self.present, self.column_there, *more]):
                for i in range(stage.radix):
                    yield turn * stage.radix + i, add(base, i * stage.butterflies * self.plan.width)

    def write_columns(self, values: Sequence[Any]) -> None:
        """Write the output of the columns."""
        for number, index in self.column_places(self.plan.columns.stages[-1], self.origin):
            self.store(index, values[number])

    def _in_order(self) -> Iterator[tuple[Any, Any]]:
        """Yield indices in the buffer and places in workgroup memory of all planes, within their guards."""
        plan = self.plan
        size = plan.height * plan.width
        threads = plan.planes * plan.group
        for index, element in values_in_order(plan.planes * size, threads, plan.count * size):
            place = element
            if plan.pitch != plan.width:
                place = hold(element // plan.width) * plan.pitch + hold(element % plan.width)
            yield index, place


def _butterflies(stage: Stage, thread: Any) -> Iterator[tuple[int, Any, list[Any]]]:
    """Yield the turns of an invocation, its butterfly in each, and the conditions that it has one."""
    for turn in range(stage.rounds):
        yield turn, stage.butterfly(thread, turn), stage.conditions(thread, turn)


def _divide(lane: Any, size: int) -> tuple[Any, Any]:
    """Return lane % size and lane // size, in registers."""
    if size == 1:
        return 0, hold(lane)
    return hold(lane % size), hold(lane // size)
