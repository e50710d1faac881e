"""Transforms of lines that no workgroup holds, in several passes over memory."""

import cmath
import math
import threading
import weakref
from collections.abc import Callable
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.context import get_context
from vkdispatch.base.dtype import DType, complex64, float32, uint32
from vkdispatch.base.record import record
from vkdispatch.codegen.annotations import constant
from vkdispatch.codegen.description import ShaderSource
from vkdispatch.execution_pipeline.command_graph import CommandGraph, global_graph
from vkdispatch.fft.plan.passes import PassChoices, plan_pass
from vkdispatch.fft.plan.planes import VECTORS, Columns, plan_columns
from vkdispatch.fft.plan.planner import get_planner
from vkdispatch.fft.plan.stages import add, hold, multiply
from vkdispatch.fft.plan.tuning import tuning
from vkdispatch.fft.trace import transform
from vkdispatch.fft.trace.io import Element, Ends, Load, Store
from vkdispatch.fft.trace.line_kernel import Entry, LineKernel, buffer_of, trace_line_kernel
from vkdispatch.shader.shader_function import ShaderFunction

# ---- Transforms of several kernels, with buffers between them --------------------------------------------


# The largest buffer between kernels, in bytes, that is kept for the next call.
_KEPT = 64 << 20


@record
class Step:
    """A launch of a kernel.

    Attributes
    ----------
    kernel
        The kernel.
    inputs, outputs
        Whether its arguments include the caller's for the input, and for the output.
    scratch
        Numbers of the scratch buffers that follow.
    constants
        Its last arguments.
    """

    kernel: ShaderFunction
    inputs: bool
    outputs: bool
    scratch: tuple[int, ...]
    constants: tuple[int, ...] = ()


class KernelSequence:
    """Several kernels that are called like one."""

    __slots__ = ()

    def _kernels(self) -> list[Any]:
        """Return the kernels in the order of their first launches."""
        raise NotImplementedError

    def get_src(self, line_numbers: bool | None = None) -> list[ShaderSource]:
        """Return the GLSL of each kernel, in the order of their first launches."""
        sources: list[ShaderSource] = []
        for kernel in self._kernels():
            source = kernel.get_src(line_numbers)
            sources += source if isinstance(source, list) else [source]
        return sources

    def print_src(self, line_numbers: bool | None = None) -> None:
        """Print the GLSL of each kernel."""
        print("\n".join(map(str, self.get_src(line_numbers))))

    def __repr__(self) -> str:
        return "\n".join(map(str, self.get_src()))


@record
class Program(KernelSequence):
    """Kernels of a transform that are launched one after another, such as those of a long line.

    Attributes
    ----------
    name
        Name of the whole.
    steps
        The launches, in order.
    scratch
        Elements and dtype of the buffers that the steps share.
    outputs
        How many of the caller's arguments belong to the output; the others belong to the input. None: one
        buffer is both.
    """

    name: str
    steps: tuple[Step, ...]
    scratch: tuple[tuple[int, DType], ...]
    outputs: int | None

    def __call__(self, *args: Any, graph: CommandGraph | None = None) -> None:
        """Launch the kernels, or record them. The arguments are those of a kernel of one pass."""
        split = self.outputs
        written, read = (args, args) if split is None else (args[:split], args[split:])
        target = graph if isinstance(graph, CommandGraph) else global_graph()
        buffers = [scratch_buffer(slot, size, kind, target) for slot, (size, kind) in enumerate(self.scratch)]
        for step in self.steps:
            values: list[Any] = []
            if step.outputs:
                values += written
            if step.inputs and not (step.outputs and split is None):
                values += read
            values += [buffers[slot] for slot in step.scratch]
            step.kernel(*values, *step.constants, graph=graph)

    def _kernels(self) -> list[Any]:
        return list(dict.fromkeys(step.kernel for step in self.steps))


class _Scratch(threading.local):
    """The scratch buffers of a thread and context for each graph, by slot and dtype."""

    def __init__(self) -> None:
        self.buffers: weakref.WeakKeyDictionary[CommandGraph, dict[tuple[int, DType], Buffer[Any]]]
        self.buffers = weakref.WeakKeyDictionary()


_SCRATCH = "fft.scratch"


def scratch_buffer(slot: int, elements: int, kind: DType, graph: CommandGraph) -> "Buffer[Any]":
    """Return the scratch buffer of a slot, which is this thread's for a graph until its next call.

    Earlier launches may still use it, as the device runs them in order. Each graph has its own buffers,
    because another thread may submit it between two steps of this thread's call.
    """
    if elements * kind.item_size > _KEPT:
        return function_buffer((elements,), kind)
    hold = get_context()._keep(_SCRATCH, _Scratch).buffers.setdefault(graph, {})
    buffer = hold.get((slot, kind))
    if buffer is None or buffer.size < elements:
        buffer = hold[slot, kind] = function_buffer((elements,), kind)
    buffer._native.announce()
    return buffer


# ---- Passes of transforms on CPU drivers, without barriers -----------------------------------------------
#
# Each invocation transforms neighbouring columns.
#
# These drivers load and store for one invocation after another, and the cost of an access depends little on
# its bytes. So an invocation transforms two or four neighbouring columns, which it reads and writes as
# vectors of 64-bit words. The invocations of a subgroup are the lanes of a processor's register, and
# exchange values with one instruction. So up to eight of them share columns: invocation l of L has rows l,
# l + L, ... With k = k1 + R k2, columns of R L values have the transform
#
#     X[k] = sum over l of exp(-2 pi i l k2 / L) exp(-2 pi i l k1 / (R L)) (transform of l's rows)[k1]
#
# whose outer sum is a transform across the subgroup. The memory between passes stays in the cache of a
# core.


def make_column_kernel(name: str, plan: Columns, inverse: bool, scale: float) -> ShaderFunction:
    """Make the kernel of a pass, of the buffers and the number of the first line.

    The last pass multiplies by `scale`.
    """
    annotations = [buffer_of(VECTORS[plan.width]), buffer_of(VECTORS[plan.words])]
    if plan.last:
        annotations.reverse()
    total = plan.outer * plan.groups * plan.lanes
    with vc.shader_context(vc.ShaderFlags.NO_EXEC_BOUNDS) as context:
        *buffers, start = context.declare_input_arguments([*annotations, constant[uint32]])
        for buffer in buffers:
            vc.get_builder().take_argument_as(buffer, complex64)
        source, target = reversed(buffers) if plan.last else buffers
        number = _invocation(plan)
        with transform.guard([number < total] if total % tuning.column_group else []):
            _Pass(plan, inverse, number, start).trace(source, target, scale)
        description = context.get_description(name)
    return ShaderFunction(description, (tuning.column_group, 1, 1), (-(-total // tuning.column_group), 1, 1))


def _invocation(plan: Columns) -> Any:
    """Return the number of the invocation; those of a subgroup are consecutive."""
    if plan.lanes == 1:
        return vc.global_invocation_id().x
    local = vc.subgroup_id() * vc.subgroup_size() + vc.subgroup_invocation_id()
    return hold(vc.workgroup_id().x * tuning.column_group + local)


class _Pass:
    """The code of a pass for one invocation."""

    def __init__(self, plan: Columns, inverse: bool, number: Any, start: Any) -> None:
        self._plan, self._inverse = plan, inverse
        self._sign = 1 if inverse else -1
        self._lane = hold(vc.subgroup_invocation_id() % plan.lanes) if plan.lanes > 1 else 0
        group = hold(number // plan.lanes) if plan.lanes > 1 else number
        self._line, self._group = hold(group // plan.groups), hold(group % plan.groups)
        self._caller_line = hold(self._line + start)
        # the first result of the invocation: the bits of the lane's number are reversed
        self._k2 = _reverse_bits(self._lane, plan.lanes)

    def trace(self, source: Any, target: Any, scale: float) -> None:
        """Read, transform and write this invocation's part of its columns."""
        plan = self._plan
        line = self._caller_line if plan.first else self._line
        row = add(multiply(line, plan.radix), self._lane)
        begin = hold(add(multiply(row, plan.groups), self._group))
        step = plan.lanes * plan.groups
        vectors = [_unpack(source[add(begin, i * step)], plan.width) for i in range(plan.rows)]
        columns = [transform.dft([vector[w] for vector in vectors], self._sign) for w in range(plan.width)]
        if plan.lanes > 1:
            columns = self._across(columns)
        if plan.last:
            self._write_last(columns, target, scale)
        elif plan.stride == 1:
            self._write_rows(columns, target)
        else:
            self._write_columns(columns, target)

    def _across(self, columns: list[list[Any]]) -> list[list[Any]]:
        plan = self._plan
        powers = self._powers(self._lane, 0, plan.radix)
        columns = [[hold(value * powers[i]) if i else value for i, value in enumerate(c)] for c in columns]
        distance = plan.lanes // 2
        while distance:
            step = _Step(self._lane, distance, self._sign)
            columns = [[step.exchange(value) for value in column] for column in columns]
            distance //= 2
        return columns

    def _powers(self, exponent: Any, beyond: int, denominator: int) -> transform.Powers:
        """Return the powers of exp(-+2 pi i (exponent + beyond) / denominator)."""
        rows = self._plan.rows
        roots = {}
        for power in sorted({1, transform.second_power(rows)}):
            root = transform.root_power(multiply(exponent, power), denominator, complex64, self._inverse)
            roots[power] = transform.rotate(root, power * beyond, denominator, self._sign)
        return transform.Powers(roots, rows)

    def _factors(self, remainder: Any, beyond: int) -> list[Any]:
        """Return the twiddle factors of column `remainder + beyond`; None for a 1."""
        plan = self._plan
        circle = plan.radix * plan.rest
        powers = self._powers(remainder, beyond, circle)
        if plan.lanes == 1:
            return [None, *(powers[i] for i in range(1, plan.rows))]
        exponent = add(remainder, beyond) * (self._k2 * plan.rows)
        first = transform.root_power(hold(exponent), circle, complex64, self._inverse)
        return [first, *(hold(first * powers[i]) for i in range(1, plan.rows))]

    # -- writes

    def _write_last(self, columns: list[list[Any]], target: Any, scale: float) -> None:
        plan = self._plan
        row = add(multiply(self._caller_line, plan.radix), multiply(self._k2, plan.rows))
        begin = hold(add(multiply(row, plan.groups), self._group))
        for i in range(plan.rows):
            row = [column[i] if scale == 1 else hold(column[i] * scale) for column in columns]
            target[add(begin, i * plan.groups)] = _pack(row)

    def _write_rows(self, columns: list[list[Any]], target: Any) -> None:
        """Write columns as rows, of which each invocation has a contiguous part."""
        plan = self._plan
        column = hold(multiply(self._group, plan.width))
        rows = [_multiply_by_factors(each, self._factors(column, w)) for w, each in enumerate(columns)]
        place = multiply(add(multiply(self._line, plan.rest), column), plan.radix)
        runs, words = [[value for row in rows for value in row]], plan.words
        if plan.lanes > 1:
            place, runs = add(place, multiply(self._k2, plan.rows)), rows
        begin = hold(place // words)
        for number, run in enumerate(runs):
            for i in range(0, len(run), words):
                at = add(begin, (number * plan.radix + i) // words)
                target[at] = _pack(run[i : i + words])

    def _write_columns(self, columns: list[list[Any]], target: Any) -> None:
        plan = self._plan
        behind = plan.stride // plan.width
        remainder, inner = hold(self._group // behind), hold(self._group % behind)
        factors = self._factors(remainder, 0)
        columns = [_multiply_by_factors(column, factors) for column in columns]
        row = add(
            multiply(add(multiply(self._line, plan.rest), remainder), plan.radix),
            multiply(self._k2, plan.rows),
        )
        begin = hold(add(multiply(row, behind), inner))
        for i in range(plan.rows):
            target[add(begin, i * behind)] = _pack([column[i] for column in columns])


class _Step:
    """A step of a transform across lanes, between lanes of some distance."""

    def __init__(self, lane: Any, distance: int, sign: int) -> None:
        self._distance = distance
        upper = (lane // distance) % 2
        self._sense = hold(1 - 2 * upper.to_dtype(float32))
        factors = [cmath.exp(sign * 1j * cmath.pi * k / distance) for k in range(distance)]
        choices = [complex(1)] * distance + factors
        self._real = _select_by_lane(lane % (2 * distance), [factor.real for factor in choices])
        self._imag = _select_by_lane(lane % (2 * distance), [factor.imag for factor in choices])

    def exchange(self, value: Any) -> Any:
        """Return the sum of two lanes in the lower one, and their rotated difference in the upper one."""
        parts = (value.real, value.imag)
        other = [vc.subgroup_shuffle_xor(part, self._distance).to_register() for part in parts]
        real, imag = (hold(part * self._sense + its) for part, its in zip(parts, other, strict=True))
        if self._distance == 1:
            return hold(vc.to_complex(real, imag))
        return hold(
            vc.to_complex(real * self._real - imag * self._imag, real * self._imag + imag * self._real)
        )


def _select_by_lane(lane: Any, values: list[float]) -> Any:
    selected: Any = vc.new_register(float32, values[-1])
    for number, value in enumerate(values[:-1]):
        selected = hold(vc.select(lane == number, value, selected))
    return selected


def _reverse_bits(lane: Any, lanes: int) -> Any:
    if isinstance(lane, int):
        return lane
    number: Any = 0
    bits = lanes.bit_length() - 1
    for bit in range(bits):
        number = add(number, (lane >> bit & 1) << (bits - 1 - bit))
    return hold(number)


def _multiply_by_factors(values: list[Any], factors: list[Any]) -> list[Any]:
    return [
        value if factor is None else hold(value * factor)
        for value, factor in zip(values, factors, strict=True)
    ]


def _unpack(element: Any, width: int) -> list[Any]:
    """Return the complex numbers in a vector of words."""
    vector = hold(element)
    pairs = [hold(vc.unpack_double2x32(getattr(vector, letter))) for letter in "xyzw"[:width]]
    return [hold(vc.to_complex(vc.uint_bits_to_float(p.x), vc.uint_bits_to_float(p.y))) for p in pairs]


def _pack(values: list[Any]) -> Any:
    """Return complex numbers as a vector of words."""
    words = [
        vc.pack_double2x32(vc.to_uvec2(vc.float_bits_to_uint(value.real), vc.float_bits_to_uint(value.imag)))
        for value in values
    ]
    return vc.to_dvec4(*words) if len(words) == 4 else vc.to_dvec2(*words)


# A line of N = N1 N2 values is a matrix, n = N2 n1 + n2. The first pass transforms its columns, multiplies
# by exp(-2 pi i k1 n2 / N) and writes each column as a row. The next pass transforms along the other axis.
# As the matrix was transposed, the results k = k1 + N1 k2 are in natural order: this is the four-step
# algorithm (D. H. Bailey, "FFTs in external or hierarchical memory", 1990). Longer lines repeat the first
# step.


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
    at_once = max(1, min(lines.outer, get_planner().chunk // (per_line * compute_type.item_size)))
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
                slot = ends.read_slot if first else ends.write_slot if last else None
                slots = slots if slot is None else (slot, *slots)
                reads, writes = first and slot is None, last and slot is None
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
    registers = length if length <= max(get_planner().lengths_of_pass, default=0) else None
    plan = plan_pass((lines.outer, length, rest * stride), 1, compute_type, PassChoices(registers=registers))
    if plan is None:
        raise AssertionError(f"no pass of {length} values")
    scratch = buffer_of(compute_type)
    types = ends.read_types if first else ends.write_types if last else ()
    annotations = [*types, *([scratch] if first or last else [scratch, scratch]), constant[uint32]]

    def body(kernel: LineKernel, *arguments: Any) -> None:
        *mine, start = arguments
        place = PassPlace(kernel, lines, length, rest, stride, start)
        if first:
            kernel.read(place.load_with(ends.load(mine[: len(types)])))
        else:
            source = mine[-1] if last else mine[0]
            kernel.read(lambda entry: source[place.local_index(entry)])
        kernel.transform(inverse)
        if last:
            kernel.write(place.store_with(ends.store(mine[: len(types)]), lines.length // length))
            return
        _apply_twiddles(kernel, place, compute_type, inverse)
        target = mine[-1]
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
    powers = transform.Powers(
        {
            power: transform.root_power(
                multiply(remainder, power * stage.butterflies), denominator, compute_type, inverse
            )
            for power in {1, transform.second_power(stage.radix)}
        },
        stage.radix,
    )
    for turn, start, _ in kernel.butterflies_of(stage, guards=False):
        # idle invocations would read beyond the table
        exponent = multiply(start, remainder)
        exponent = exponent if stage.is_even else exponent % denominator
        first_place = isinstance(exponent, int) and exponent == 0
        factor = None if first_place else transform.root_power(exponent, denominator, compute_type, inverse)
        for i in range(stage.radix):
            number = turn * stage.radix + i
            value = kernel.registers[number]
            if i:
                value = hold(value * powers[i])
            kernel.registers[number] = value if factor is None else value * factor
