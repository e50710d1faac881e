"""Transforms of lines that no workgroup holds, in several passes over memory.

A line of N = N1 N2 values is a matrix, n = N2 n1 + n2. The first pass transforms its columns, multiplies by
exp(-2 pi i k1 n2 / N) and writes each column as a row. The next pass transforms along the other axis. As the
matrix was transposed, the results k = k1 + N1 k2 are in natural order: this is the four-step algorithm
(D. H. Bailey, "FFTs in external or hierarchical memory", 1990). Longer lines repeat the first step.
"""

import math
from collections.abc import Callable
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType, uint32
from vkdispatch.base.record import record
from vkdispatch.codegen.abbreviations import Const
from vkdispatch.families.tuning import device_facts
from vkdispatch.fft.many.columns import make_column_kernel
from vkdispatch.fft.many.program import Step
from vkdispatch.fft.plan.columns import plan_columns
from vkdispatch.fft.plan.indices import add, hold, multiply
from vkdispatch.fft.plan.passes import PassChoices, plan_pass
from vkdispatch.fft.plan.tuning import tuning
from vkdispatch.fft.trace.ends import Element, Ends, Load, Store
from vkdispatch.fft.trace.line_kernel import Entry, LineKernel, linear_slots, trace_line_kernel
from vkdispatch.fft.trace.roots import root_power, second_power
from vkdispatch.fft.trace.shared import Slot, trace_if
from vkdispatch.fft.trace.transform import Powers
from vkdispatch.fft.trace.words import annotation_of, unwrap


@record
class Lines:
    """Long lines: `outer` x `length` x `inner` values."""

    outer: int
    length: int
    inner: int


@record
class Plan:
    """The launches of a long transform, and the elements of the buffers between them."""

    steps: tuple[Step, ...]
    scratch: tuple[int, ...]


def make_passes(
    name: str, lines: Lines, factors: tuple[int, ...], ends: Ends, compute_type: DType, inverse: bool
) -> Plan:
    """Make the kernels of a transform of long lines, and their launches."""
    per_line = lines.length * lines.inner
    chunk_size = tuning.cpu_chunk if device_facts().is_cpu else tuning.chunk
    at_once = max(1, min(lines.outer, chunk_size // (per_line * compute_type.item_size)))
    steps: list[Step] = []
    whole, rest = divmod(lines.outer, at_once)
    groups = [(at_once, [i * at_once for i in range(whole)])]
    if rest:
        groups.append((rest, [whole * at_once]))
    for count, starts in groups:
        chunk = Lines(count, lines.length, lines.inner)
        kernels = [
            _make_pass_kernel(name, chunk, factors, number, ends, compute_type, inverse)
            for number in range(len(factors))
        ]
        for start in starts:
            for number, kernel in enumerate(kernels):
                first, last = number == 0, number == len(factors) - 1
                scratch = ((number - 1) % 2, number % 2)
                slots = (scratch[1],) if first else (scratch[0],) if last else scratch
                own = ends.read_slot if first else ends.write_slot if last else None
                slots = slots if own is None else (own, *slots)
                reads, writes = first and own is None, last and own is None
                steps.append(Step(kernel, reads, writes, slots, (start,)))
    size = at_once * per_line
    return Plan(tuple(steps), (size,) * min(2, len(factors) - 1))


def _make_pass_kernel(
    name: str,
    lines: Lines,
    factors: tuple[int, ...],
    number: int,
    ends: Ends,
    compute_type: DType,
    inverse: bool,
) -> Any:
    first, last = number == 0, number == len(factors) - 1
    length, done = factors[number], math.prod(factors[:number])
    rest = math.prod(factors[number + 1 :])
    stride = done * lines.inner
    columns = None
    if ends.scale is not None:
        columns = plan_columns(lines.outer, length, rest, stride, (first, last), compute_type)
    if columns is not None:
        scale = ends.scale if last and ends.scale is not None else 1.0
        return make_column_kernel(f"{name}_pass{number + 1}of{len(factors)}", columns, inverse, scale)
    on_cpu = device_facts().is_cpu
    staged = stride == 1 and not last and not on_cpu
    registers = length if on_cpu and length <= max(tuning.cpu_longest_of_pass) else None
    plan = plan_pass(
        (lines.outer, length, rest * stride), 1, compute_type, PassChoices(whole=staged, registers=registers)
    )
    if plan is None:
        raise AssertionError(f"no pass of {length} values")
    scratch = annotation_of(compute_type)
    types = ends.read_types if first else ends.write_types if last else ()
    annotations = [*types, *([scratch] if first or last else [scratch, scratch]), Const[uint32]]

    def body(kernel: LineKernel, *arguments: Any) -> None:
        *mine, start = arguments
        place = PassPlace(kernel, lines, length, rest, stride, start)
        if first:
            kernel.read(place.load_with(ends.load(mine[: len(types)])))
        else:
            source = unwrap(mine[-1] if last else mine[0])
            kernel.read(lambda entry: source[place.local_index(entry)])
        kernel.transform(inverse)
        if last:
            kernel.write(place.store_with(ends.store(mine[: len(types)]), lines.length // length))
            return
        _apply_twiddles(kernel, place, compute_type, inverse)
        target = unwrap(mine[-1])
        if staged:
            _write_transposed(kernel, place, target)
        else:
            kernel.write(lambda entry, value: target.__setitem__(place.transposed_index(entry), value))

    return trace_line_kernel(f"{name}_pass{number + 1}of{len(factors)}", annotations, plan, body)


class PassPlace:
    """The place of an invocation of a pass, in terms of the long line.

    The pass transforms lines of `length` values, `rest * stride` of them interleaved: `remainder` is the part
    of the position that later passes transform, `inner` that of earlier passes and of the axes behind.
    """

    def __init__(
        self, kernel: LineKernel, lines: Lines, length: int, rest: int, stride: int, start: Any
    ) -> None:
        place = kernel.place
        self.lines, self.length, self.rest, self.stride = lines, length, rest, stride
        self.column = place.inner
        self.outer = place.outer
        self.first = place.first  # in a buffer of this chunk
        self.remainder = hold(self.column // stride if stride > 1 else self.column) if rest > 1 else 0
        self.inner = (
            hold(self.column % stride) if stride > 1 and rest > 1 else self.column if stride > 1 else 0
        )
        per_line = lines.length * lines.inner
        self.chunk_outer = hold(add(place.outer, start))
        self.origin = hold(add(multiply(self.chunk_outer, per_line), self.column))

    def local_index(self, entry: Entry) -> Any:
        """Return the flat index of a value before the pass, in a buffer of this chunk."""
        step = self.rest * self.stride
        base = add(self.first, multiply(entry.start, step))
        return add(hold(base), entry.offset * step)

    def load_with(self, load: Load) -> Callable[[Entry], Any]:
        """Return the function that reads a value of the first pass."""
        step = self.rest * self.stride

        def read(entry: Entry) -> Any:
            flat = add(hold(add(self.origin, multiply(entry.start, step))), entry.offset * step)
            index = add(multiply(entry.index, self.rest), self.remainder)
            least, most = entry.bounds
            bounds = (least * self.rest, most * self.rest + self.rest - 1)
            return load(Element(self.chunk_outer, self._behind(), index, bounds, flat))

        return read

    def store_with(self, store: Store, done: int) -> Callable[[Entry, Any], None]:
        """Return the function that writes a value of the last pass."""
        step = self.stride

        def write(entry: Entry, value: Any) -> None:
            flat = add(hold(add(self.origin, multiply(entry.start, step))), entry.offset * step)
            before = self.column // self.lines.inner if self.lines.inner > 1 else self.column
            index = add(multiply(entry.index, done), before)
            least, most = entry.bounds
            store(
                Element(
                    self.chunk_outer, self._behind(), index, (least * done, most * done + done - 1), flat
                ),
                value,
            )

        return write

    def _behind(self) -> Any:
        return self.column % self.lines.inner if self.lines.inner > 1 else 0

    def transposed_index(self, entry: Entry) -> Any:
        """Return the flat index of a value after the pass, which moves its axis behind the remaining ones."""
        row = add(multiply(self.outer, self.rest), self.remainder)
        base = add(multiply(add(multiply(row, self.length), entry.start), self.stride), self.inner)
        return add(hold(base), entry.offset * self.stride)


def _apply_twiddles(kernel: LineKernel, place: PassPlace, compute_type: DType, inverse: bool) -> None:
    """Multiply by exp(-+2 pi i k remainder / (length rest))."""
    stage = kernel.plan.split.stages[-1]
    denominator = place.length * place.rest
    remainder = place.remainder
    powers = Powers(
        {
            power: root_power(
                multiply(remainder, power * stage.butterflies), denominator, compute_type, inverse
            )
            for power in {1, second_power(stage.radix)}
        },
        stage.radix,
    )
    for turn, start, _ in kernel.butterflies_of(stage, guards=False):
        # idle invocations would read beyond the table
        exponent = multiply(start, remainder)
        exponent = exponent if stage.is_even else exponent % denominator
        first_place = isinstance(exponent, int) and exponent == 0
        factor = None if first_place else root_power(exponent, denominator, compute_type, inverse)
        for i in range(stage.radix):
            number = turn * stage.radix + i
            value = kernel.registers[number]
            if i:
                value = hold(value * powers[i])
            kernel.registers[number] = value if factor is None else value * factor


def _write_transposed(kernel: LineKernel, place: PassPlace, target: Any) -> None:
    """Write the columns of a workgroup as contiguous rows, through workgroup memory."""
    assert kernel.shared is not None
    grid, stage = kernel.plan.grid, kernel.plan.split.stages[-1]
    # one more, so that rows of a power of two spread over the banks
    row = place.length + 1
    base = multiply(kernel.place.line, row)
    entries = kernel.entries(stage)
    places = [Slot(add(base, entry.index), conditions) for entry, conditions in entries]
    pairs = linear_slots(kernel, place.length, row)
    values = [kernel.registers[entry.register] for entry, _ in entries]
    taken = kernel.shared.rearrange(values, places, [slot for _, slot in pairs])
    start = add(
        multiply(place.outer, place.rest * place.length), multiply(_block(grid), grid.lines * place.length)
    )
    start = hold(start)
    for (at, slot), value in zip(pairs, taken, strict=True):
        trace_if(slot.conditions, lambda at=at, value=value: target.__setitem__(add(start, at), value))  # type: ignore[misc]


def _block(grid: Any) -> Any:
    group = vc.workgroup_id().x
    return group % grid.blocks if grid.blocks > 1 else 0
