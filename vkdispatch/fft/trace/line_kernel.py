"""Kernels of lines, step by step: read into registers, transform, write, whatever the values mean."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.fft.plan.indices import add, hold, multiply
from vkdispatch.fft.plan.memory import allocation
from vkdispatch.fft.plan.passes import Pass, reverse_radices
from vkdispatch.fft.plan.stages import Stage
from vkdispatch.fft.plan.transforms import Transform
from vkdispatch.fft.trace.ops import guard
from vkdispatch.fft.trace.place import Place
from vkdispatch.fft.trace.registers import FFTRegisters
from vkdispatch.fft.trace.shared import SharedLines, Slot
from vkdispatch.fft.trace.transform import transform
from vkdispatch.shader.shader_function import ShaderFunction


@record
class Entry:
    """A register and where in the line its value belongs.

    Attributes
    ----------
    register
        Number of the register.
    start, offset
        The position is `start + offset`: what differs between invocations, and what does not.
    bounds
        Least and greatest position that it can be.
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
        The radices of the transform that comes next, or was last.
    place
        Where this invocation is.
    registers
        What it holds of its line.
    shared
        Workgroup memory; None where the plan has none.
    """

    def __init__(self, plan: Pass, returns: bool = False) -> None:
        """Begin a kernel of a pass; `returns` where it comes to transform back."""
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
                least = allocation(self._reversed.split, self._reversed.layout)
            self.shared = SharedLines(plan.layout, plan.split, plan.compute_type, self.place.line, least)
        self.registers = FFTRegisters(plan.split, plan.compute_type)

    def butterflies_of(self, stage: Stage, *, guards: bool = True) -> Iterator[tuple[int, Any, list[Any]]]:
        """Yield number, first position and conditions of the butterflies of a stage, each in its guard."""
        for turn in range(stage.rounds):
            conditions = self.conditions(stage, turn)
            start = stage.butterfly(self.place.thread, turn)
            start = hold(start)
            with guard(conditions if guards else []):
                yield turn, start, conditions

    def conditions(self, stage: Stage, turn: int) -> list[Any]:
        """When an invocation has a butterfly of a line that exists."""
        active = [] if self.place.active is True else [self.place.active]
        return [*active, *stage.conditions(self.place.thread, turn)]

    def read(self, load: Callable[[Entry], Any], limit: int | None = None) -> None:
        """Fill the registers with what the first stage takes; positions from `limit` on hold zero."""
        stage = self.split.stages[0]
        for turn, start, _ in self.butterflies_of(stage):
            for i in range(stage.radix):
                entry = entry_of(stage, turn, i, start)
                if limit is not None and entry.bounds[0] >= limit:
                    continue
                with guard([True if limit is None or entry.bounds[1] < limit else entry.index < limit]):
                    self.registers[entry.register] = load(entry)

    def write(self, store: Callable[[Entry, Any], None], limit: int | None = None) -> None:
        """Give out what the last stage leaves, as far as positions are below `limit`."""
        stage = self.split.stages[-1]
        for turn, start, _ in self.butterflies_of(stage):
            for i in range(stage.radix):
                entry = entry_of(stage, turn, i, start)
                if limit is not None and entry.bounds[0] >= limit:
                    continue
                with guard([True if limit is None or entry.bounds[1] < limit else entry.index < limit]):
                    store(entry, self.registers[entry.register])

    def entries(self, stage: Stage) -> list[tuple[Entry, tuple[Any, ...]]]:
        """All values of an invocation at a stage, each with the conditions under which it exists."""
        found = []
        for turn, start, conditions in self.butterflies_of(stage, guards=False):
            found += [(entry_of(stage, turn, i, start), tuple(conditions)) for i in range(stage.radix)]
        return found

    def transform(self, inverse: bool) -> None:
        """Transform the registers."""
        transform(self.registers, self.shared, self.place.thread, inverse)

    def reverse(self) -> None:
        """Have the next transform take values where the last one left them: by the radices reversed.

        Where workgroup memory does not allow that, they are brought to where the same radices take them.
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
        base = multiply(self.place.line, self.shared.layout.row)

        def slots(stage: Stage) -> list[Slot]:
            return [
                Slot(add(base, entry.index), tuple(c for c in conditions if c is not self.place.active))
                for entry, conditions in self.entries(stage)
            ]

        values = self.shared.rearrange(list(self.registers)[: last.registers], slots(last), slots(first))
        for number, value in enumerate(values):
            self.registers[number] = value


def entry_of(stage: Stage, turn: int, i: int, start: Any) -> Entry:
    """Value number i of an invocation's butterfly, as first stages take and last stages leave it."""
    return Entry(turn * stage.radix + i, start, i * stage.butterflies, stage.input_bounds(turn, i))


def linear_slots(kernel: LineKernel, length: int, row: int) -> list[tuple[Any, Slot]]:
    """Cut a workgroup's lines, laid out one after another, evenly among its invocations.

    Returns
    -------
    list
        Per value of an invocation: its number among the workgroup's values, and its place in workgroup memory
        if lines are `row` apart there. Invocations behind the last value have the last one's, under
        conditions that do not hold.
    """
    grid = kernel.plan.grid
    threads, count = grid.lines * grid.threads, grid.lines * length
    local = vc.local_invocation_index()
    number = grid.inner if grid.is_interleaved else grid.outer
    group = (
        (vc.workgroup_id().x % grid.blocks)
        if grid.is_interleaved and grid.blocks > 1
        else vc.workgroup_id().x
    )
    left = None
    if number % grid.lines:
        # the last workgroup has fewer lines
        left = ((number - group * grid.lines) * length).to_register()
    found = []
    for j in range(-(-count // threads)):
        at = own = add(local, j * threads).to_register()
        conditions = []
        if (j + 1) * threads > count:
            conditions.append(own < count)
            at = vc.min(own, count - 1).to_register()
        if left is not None:
            conditions.append(own < left)
        place = at if row == length else add(multiply(at // length, row - length), at)
        found.append((at, Slot(place, tuple(conditions))))
    return found


def trace_line_kernel(
    name: str,
    annotations: Sequence[Any],
    plan: Pass,
    body: Callable[..., None],
    names: Sequence[str] | None = None,
    returns: bool = False,
) -> ShaderFunction:
    """Trace a kernel of a pass: `body(kernel, *arguments)`."""
    with vc.shader_context(vc.ShaderFlags.NO_EXEC_BOUNDS) as context:
        arguments = context.declare_input_arguments(list(annotations), names)
        body(LineKernel(plan, returns), *arguments)
        description = context.get_description(name)
    return ShaderFunction(description, plan.grid.local_size, (plan.grid.workgroups, 1, 1))


def buffer_types(transform: Transform) -> list[Any]:
    """Return the annotations of a transform's buffers, without maps: output and input, or one for both."""
    kinds = (transform.output_type, transform.input_type)
    return [buffer_of(kind) for kind in (kinds if transform.separate else kinds[:1]) if kind is not None]


def buffer_of(kind: DType) -> Any:
    """Annotation of a buffer."""
    return vc.Buffer[kind]  # type: ignore[valid-type]
