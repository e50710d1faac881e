"""The steps of kernels that work on lines: read into registers, transform, exchange, write."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.fft.plan.passes import LineGrid, Pass, Transform, count_allocated, reverse_radices
from vkdispatch.fft.plan.stages import Stage, add, hold, multiply
from vkdispatch.fft.trace.transform import FFTRegisters, SharedLines, Slot, guard, transform
from vkdispatch.shader.shader_function import ShaderFunction

# ---- The place of an invocation among the lines of a buffer ----------------------------------------------


class Place:
    """The place of an invocation.

    Attributes
    ----------
    thread, line
        Number of the invocation in its line, and of the line in its workgroup; an int if there is one only.
    outer, inner
        Index of the line along the axes before and behind the transformed one.
    line_number
        Number of the line, in C order of the other axes.
    first
        Flat index of the line's first value.
    active
        Whether the line exists: a GPU bool, or True.
    """

    def __init__(self, grid: LineGrid) -> None:
        self.grid = grid
        local, width = vc.local_invocation_id(), grid.width
        if grid.flat and 1 < width < grid.local_size[0]:
            x, y = hold(local.x % width), hold(local.x // width)
        elif grid.flat:
            x, y = (local.x, 0) if width > 1 else (0, local.x)
        else:
            x = 0 if grid.local_size[0] == 1 else local.x
            y = 0 if grid.local_size[1] == 1 else local.y
        group = vc.workgroup_id().x
        if grid.is_interleaved:
            self.line, self.thread = x, y
            outer = hold(group // grid.blocks if grid.blocks > 1 else group)
            block = group % grid.blocks if grid.blocks > 1 else 0
            column = add(multiply(block, grid.lines), x)
            self.active = column < grid.inner if grid.inner % grid.lines else True
            self.outer, self.inner = outer, hold(column)
            self.line_number = hold(add(multiply(outer, grid.inner), column))
            self.first = hold(add(multiply(outer, grid.length * grid.stride), column))
        else:
            self.thread, self.line = x, y
            number = add(multiply(group, grid.lines), y)
            self.active = number < grid.outer if grid.outer % grid.lines else True
            self.line_number = hold(number)
            self.outer, self.inner = self.line_number, 0
            self.first = hold(multiply(self.line_number, grid.length))


@record
class Entry:
    """A register and the position of its value in the line.

    Attributes
    ----------
    register
        Number of the register.
    start, offset
        The position is `start + offset`; the offset is the same for all invocations.
    bounds
        Least and greatest possible position.
    """

    register: int
    start: Any
    offset: int
    bounds: tuple[int, int]

    @property
    def index(self) -> Any:
        """Position in the line."""
        return add(self.start, self.offset)


class LineKernel:
    """A kernel being traced whose workgroups work on the lines of a pass.

    Attributes
    ----------
    plan
        The pass.
    split
        The radices of the next transform, or of the last one.
    place
        The place of this invocation.
    registers
        The values that it holds.
    shared
        Workgroup memory, or None if the plan has none.
    """

    def __init__(self, plan: Pass, returns: bool = False) -> None:
        """Begin a kernel of a pass; `returns`: it transforms back as well."""
        self.plan = plan
        self.split = plan.split
        self.place = Place(plan.grid)
        self.shared: SharedLines | None = None
        radices = plan.split.radices
        can_reverse = returns and plan.layout is not None and radices != radices[::-1]
        self._reversed = reverse_radices(plan, whole=True) if can_reverse else None
        if plan.layout is not None:
            least = 0
            if self._reversed is not None and self._reversed.layout is not None:
                least = count_allocated(self._reversed.split, self._reversed.layout)
            self.shared = SharedLines(plan.layout, plan.split, plan.compute_type, self.place.line, least)
        self.registers = FFTRegisters(plan.split, plan.compute_type)

    def butterflies_of(self, stage: Stage, *, guards: bool = True) -> Iterator[tuple[int, Any, list[Any]]]:
        """Yield the turn, first position and conditions of each butterfly of a stage, within its guard."""
        for turn in range(stage.rounds):
            conditions = self.conditions(stage, turn)
            start = hold(stage.butterfly(self.place.thread, turn))
            with guard(conditions if guards else []):
                yield turn, start, conditions

    def conditions(self, stage: Stage, turn: int) -> list[Any]:
        """Return the conditions under which an invocation has a butterfly of an existing line."""
        active = [] if self.place.active is True else [self.place.active]
        return [*active, *stage.conditions(self.place.thread, turn)]

    def read(self, load: Callable[[Entry], Any], limit: int | None = None) -> None:
        """Read the input of the first stage; positions from `limit` on are zero."""
        for entry in self._each_entry(self.split.stages[0], limit):
            self.registers[entry.register] = load(entry)

    def write(self, store: Callable[[Entry, Any], None], limit: int | None = None) -> None:
        """Write the output of the last stage at positions below `limit`."""
        for entry in self._each_entry(self.split.stages[-1], limit):
            store(entry, self.registers[entry.register])

    def _each_entry(self, stage: Stage, limit: int | None) -> Iterator[Entry]:
        """Yield each value of a stage at a position below `limit`, within its guards."""
        for turn, start, _ in self.butterflies_of(stage):
            for i in range(stage.radix):
                entry = entry_of(stage, turn, i, start)
                if limit is not None and entry.bounds[0] >= limit:
                    continue
                with guard([True if limit is None or entry.bounds[1] < limit else entry.index < limit]):
                    yield entry

    def entries(self, stage: Stage) -> list[tuple[Entry, tuple[Any, ...]]]:
        """Return the values of an invocation at a stage, each with the conditions under which it exists."""
        entries = []
        for turn, start, conditions in self.butterflies_of(stage, guards=False):
            entries += [(entry_of(stage, turn, i, start), tuple(conditions)) for i in range(stage.radix)]
        return entries

    def slots(
        self, stage: Stage, row: int, position: Callable[[Entry], Any] = lambda entry: entry.index
    ) -> list[Slot]:
        """Return the places of an invocation's values at a stage, with lines of `row` in workgroup memory."""
        base = multiply(self.place.line, row)
        # without the condition of the line: missing lines have a place in workgroup memory too
        return [
            Slot(add(base, position(entry)), tuple(c for c in conditions if c is not self.place.active))
            for entry, conditions in self.entries(stage)
        ]

    def transform(self, inverse: bool) -> None:
        """Transform the registers."""
        transform(self.registers, self.shared, self.place.thread, inverse)

    def reverse(self) -> None:
        """Prepare the next transform, which reads values from where the last one left them.

        It has the radices in reverse order. Where workgroup memory has no room for them, the radices stay and
        the values are moved.
        """
        if self._reversed is None:
            self._move_back()
            return
        assert self.shared is not None and self._reversed.layout is not None
        self.split = self.registers.split = self._reversed.split
        self.shared = self.shared.view_as(self._reversed.layout, self.place.line)

    def _move_back(self) -> None:
        first, last = self.split.stages[0], self.split.stages[-1]
        if first.radix == last.radix:
            return
        assert self.shared is not None
        row = self.shared.layout.row
        places, wanted = self.slots(last, row), self.slots(first, row)
        values = self.shared.rearrange(list(self.registers)[: last.registers], places, wanted)
        for number, value in enumerate(values):
            self.registers[number] = value


def entry_of(stage: Stage, turn: int, i: int, start: Any) -> Entry:
    """Return value number i of a butterfly of the first or the last stage."""
    return Entry(turn * stage.radix + i, start, i * stage.butterflies, stage.input_bounds(turn, i))


def linear_slots(kernel: LineKernel) -> list[tuple[Any, Slot]]:
    """Distribute the contiguous lines of a workgroup evenly among its invocations.

    Returns
    -------
    list
        For each value of an invocation: its number among the workgroup's values, and that place in workgroup
        memory. Invocations beyond the last value have the place of the last one, with conditions that are
        false.
    """
    grid = kernel.plan.grid
    threads, count = grid.lines * grid.threads, grid.lines * grid.length
    local = vc.local_invocation_index()
    group = vc.workgroup_id().x
    left = None
    if grid.outer % grid.lines:
        # the last workgroup may have fewer lines
        left = ((grid.outer - group * grid.lines) * grid.length).to_register()
    slots = []
    for j in range(-(-count // threads)):
        at = position = add(local, j * threads).to_register()
        conditions = []
        if (j + 1) * threads > count:
            conditions.append(position < count)
            at = vc.min(position, count - 1).to_register()
        if left is not None:
            conditions.append(position < left)
        slots.append((at, Slot(at, tuple(conditions))))
    return slots


def trace_line_kernel(
    name: str, annotations: Sequence[Any], plan: Pass, body: Callable[..., None], returns: bool = False
) -> ShaderFunction:
    """Trace a kernel of a pass: `body(kernel, *arguments)`."""
    with vc.shader_context(vc.ShaderFlags.NO_EXEC_BOUNDS) as context:
        arguments = context.declare_input_arguments(list(annotations))
        body(LineKernel(plan, returns), *arguments)
        description = context.get_description(name)
    return ShaderFunction(description, plan.grid.local_size, (plan.grid.workgroups, 1, 1))


def buffer_types(transform: Transform) -> list[Any]:
    """Return the annotations of a transform's buffers, without maps: output and input, or one for both."""
    kinds = (transform.output_type, transform.input_type)
    return [buffer_of(kind) for kind in (kinds if transform.separate else kinds[:1]) if kind is not None]


def buffer_of(kind: DType) -> Any:
    """Return the annotation of a buffer."""
    return vc.Buffer[kind]  # type: ignore[valid-type]
