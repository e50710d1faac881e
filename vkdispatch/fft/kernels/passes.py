"""Transforms of lines in several passes over memory, and of lengths with large prime factors."""

import cmath
import math
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.context import get_context
from vkdispatch.base.dtype import DType, complex32, complex64, float32, uint32
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.codegen.annotations import constant
from vkdispatch.codegen.description import ShaderSource
from vkdispatch.execution_pipeline.command_graph import CommandGraph, global_graph
from vkdispatch.fft.kernels.real import combine, spectrum_pair
from vkdispatch.fft.kernels.special_lengths import (
    LineBuffers,
    chirp_spectrum,
    chirp_table,
    conjugate_if,
    make_pair_kernel,
    trace_bluestein,
    trace_rader,
)
from vkdispatch.fft.plan.passes import Pass, PassChoices, Transform, plan_convolved, plan_pass, suits_pairs
from vkdispatch.fft.plan.planes import VECTORS, Columns, choose_factors, choose_radices, plan_columns
from vkdispatch.fft.plan.planner import find_planner
from vkdispatch.fft.plan.stages import add, choose_padded_length, hold, multiply
from vkdispatch.fft.plan.tuning import tuning
from vkdispatch.fft.trace import transform
from vkdispatch.fft.trace.line_kernel import Entry, LineKernel, buffer_of, trace_line_kernel
from vkdispatch.fft.trace.ops import Element, Ends, Load, Store, ends_of
from vkdispatch.fft.trace.transform import guard, multiply_by_i, root_power
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
    at_once = max(1, min(lines.outer, find_planner().chunk // (per_line * compute_type.item_size)))
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
    registers = length if length <= max(find_planner().lengths_of_pass, default=0) else None
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


# ---- Kernels of long lines, and of lengths with large prime factors --------------------------------------


class LongLineError(ArgumentValueError):
    """No kernels transform lines of that length."""


def make_long_fft(transform: Transform) -> Any:
    """Make the kernels of a transform that is not a single pass of small radices.

    Returns
    -------
    ShaderFunction or Program
        One or several kernels, which are called alike.
    """
    shape, axis = transform.shape, transform.axis
    columns = make_column_fft(transform)
    if columns is not None:
        return columns
    ends = ends_of(transform)
    factors = choose_factors(transform.length, transform.compute_type)
    if factors is not None:
        return _make_passes(transform, factors, ends)
    if suits_pairs(shape, axis, transform.compute_type) and _reads_whole_lines(transform):
        return make_pair_kernel(transform)
    convolved = plan_convolved(shape, axis, transform.compute_type)
    if convolved is not None:
        return _make_one_kernel(transform, ends, *convolved)
    return _make_long_convolution(transform, ends)


def make_column_fft(transform: Transform) -> Program | None:
    """Make the kernels of a transform in passes of columns, or None if there are none."""
    if math.prod(transform.shape) < tuning.column_least_values:
        return None
    ends = ends_of(transform)
    if ends.scale is None:
        return None
    factors = choose_radices(transform.length, _lines_of(transform).inner, transform.compute_type)
    return None if factors is None else _make_passes(transform, factors, ends)


def _make_passes(transform: Transform, factors: tuple[int, ...], ends: Ends) -> Program:
    name = transform.name
    plan = make_passes(name, _lines_of(transform), factors, ends, transform.compute_type, transform.inverse)
    return Program(
        name, plan.steps, tuple((size, transform.compute_type) for size in plan.scratch), ends.outputs
    )


def _lines_of(transform: Transform) -> Lines:
    return Lines(transform.count, transform.length, transform.stride)


def _make_one_kernel(transform: Transform, ends: Ends, plan: Pass, rader: bool) -> ShaderFunction:
    """Make the kernel of Rader's or Bluestein's algorithm in one pass."""
    whole = _reads_whole_lines(transform) and find_planner().coalesces

    def body(kernel: LineKernel, *arguments: Any) -> None:
        written = arguments[: len(ends.write_types)]
        read = arguments if ends.outputs is None else arguments[ends.outputs :]
        if rader and whole:
            trace_rader(kernel, LineBuffers(read[0], written[0], transform), transform.inverse)
        elif rader:
            trace_rader(kernel, (ends.load(read), ends.store(written)), transform.inverse)
        else:
            trace_bluestein(kernel, ends.load(read), ends.store(written), transform.inverse)

    types = ends.write_types if ends.outputs is None else (*ends.write_types, *ends.read_types)
    return trace_line_kernel(transform.name, types, plan, body, returns=True)


def _reads_whole_lines(transform: Transform) -> bool:
    """Whether lines are contiguous in buffers that are read and written directly."""
    plain = not transform.is_mapped and not transform.r2c and transform.signal_range is None
    return plain and transform.stride == 1


def _make_long_convolution(transform: Transform, ends: Ends) -> Program:
    """Make the kernels of Bluestein's algorithm over transforms of several passes."""
    name, lines, inverse = transform.name, _lines_of(transform), transform.inverse
    length, padded, kind = transform.length, choose_padded_length(transform.length), transform.compute_type
    factors = choose_factors(padded, kind)
    if factors is None:
        raise LongLineError(f"buffer_shape: lines of {length} values are too long to transform")
    around = Lines(lines.outer, padded, lines.inner)

    def multiply_chirp(element: Element, value: Any) -> Any:
        chirp = vc.constant_array(chirp_table(length, kind))[element.index]
        return hold(value * hold(conjugate_if(chirp, inverse)))

    def within(element: Element) -> Element:
        flat = add(multiply(add(multiply(element.outer, length), element.index), lines.inner), element.inner)
        return Element(element.outer, element.inner, element.index, element.bounds, flat)

    def load_chirped(arguments: Sequence[Any]) -> Load:
        load = ends.load(arguments)

        def read(element: Element) -> Any:
            value = vc.new_register(kind)
            if element.bounds[0] < length:
                with guard([element.index < length]):
                    value[:] = multiply_chirp(element, load(within(element)))
            return value

        return read

    def store_chirped(arguments: Sequence[Any]) -> Store:
        store = ends.store(arguments)

        def write(element: Element, value: Any) -> None:
            if element.bounds[0] < length:
                with guard([element.index < length]):
                    store(within(element), multiply_chirp(element, value))

        return write

    def load_product(arguments: Sequence[Any]) -> Load:
        def read(element: Element) -> Any:
            spectrum = vc.constant_array(chirp_spectrum(length, padded, kind))[element.index]
            return hold(hold(arguments[0][element.flat]) * hold(conjugate_if(spectrum, inverse)))

        return read

    def store_plain(arguments: Sequence[Any]) -> Store:
        return lambda element, value: arguments[0].__setitem__(element.flat, value)

    scratch = (buffer_of(kind),)
    there = Ends(ends.read_types, scratch, load_chirped, store_plain, write_slot=2)
    back = Ends(scratch, ends.write_types, load_product, store_chirped, read_slot=2)
    first = make_passes(f"{name}_there", around, factors, there, kind, inverse)
    second = make_passes(f"{name}_back", around, factors, back, kind, not inverse)
    between = tuple(max(a, b) for a, b in zip(first.scratch, second.scratch, strict=True))
    sizes = (*between, *([1] * (2 - len(between))), lines.outer * padded * lines.inner)
    return Program(name, (*first.steps, *second.steps), tuple((size, kind) for size in sizes), ends.outputs)


# ---- Real transforms of long lines, by complex ones of half the length in several passes --------
#
# With the names of `kernels.real`, the passes write Z[k] to the place of X[k], and another kernel computes
# X[k] and X[h - k] from Z[k] and Z[h - k]. In an inverse transform that kernel comes first.


def make_long_real_fft(transform: Transform) -> Program | None:
    """Make the kernels of a real transform of even length in place, or None if there are none."""
    half, kind = transform.length // 2, transform.compute_type
    # the buffer must hold the values between the kernels without loss
    if (
        not find_planner().has_long_reals
        or transform.length % 2
        or kind is not transform.output_type
        or kind is complex32
    ):
        return None
    factors = choose_factors(half, kind)
    if factors is None:
        return None
    count = transform.count
    name = transform.name
    kernel = _make_pair_kernel(f"{name}_pairs", count, half, kind, transform.inverse, transform.factor)
    pairs = Step(kernel, True, True, ())
    plan = make_passes(name, Lines(count, half, 1), factors, _rows(half, kind), kind, transform.inverse)
    steps = (pairs, *plan.steps) if transform.inverse else (*plan.steps, pairs)
    return Program(name, steps, tuple((size, kind) for size in plan.scratch), None)


def _rows(half: int, kind: DType) -> Ends:
    """Return the ends of lines of `half` values in rows of one more."""

    def place(element: Element) -> Any:
        return add(multiply(element.outer, half + 1), element.index)

    def load(arguments: Sequence[Any]) -> Load:
        values = arguments[0]
        return lambda element: hold(values[place(element)])

    def store(arguments: Sequence[Any]) -> Store:
        values = arguments[0]
        return lambda element, value: values.__setitem__(place(element), value)

    return Ends((buffer_of(kind),), (buffer_of(kind),), load, store)


def _make_pair_kernel(
    name: str, count: int, half: int, kind: DType, inverse: bool, scale: float
) -> ShaderFunction:
    pairs = half // 2 + 1
    with vc.shader_context() as context:
        (values,) = context.declare_input_arguments([buffer_of(kind)])
        flat = vc.global_invocation_id().x
        k, row = hold(flat % pairs), hold(flat // pairs * (half + 1))
        near, far = hold(row + k), hold(row + half - k)

        def load(index: Any) -> Any:
            return hold(values[index])

        def store(index: Any, value: Any) -> None:
            values[index] = value if scale == 1 else value * scale

        root = root_power(k, 2 * half, kind, inverse)
        (_join_pair if inverse else _split_pair)(k, row, near, far, root, load, store)
        description = context.get_description(name)
    return ShaderFunction(description, None, None, count * pairs)


def _split_pair(
    k: Any, row: Any, near: Any, far: Any, root: Any, load: Callable[[Any], Any], store: Any
) -> None:
    """Compute X[k] and X[h - k] from Z[k] and Z[h - k]; Z[h] is Z[0]."""
    a, b = load(near), load(vc.select(k == 0, row, far))
    left, right = spectrum_pair(a, b, root)
    store(near, left)
    store(far, right)


def _join_pair(
    k: Any, row: Any, near: Any, far: Any, root: Any, load: Callable[[Any], Any], store: Any
) -> None:
    """Compute Z[k] and Z[h - k] from X[k] and X[h - k]."""
    a, b = load(near), load(far)
    with vc.if_block(k == 0):
        # these imaginary parts are zero for real lines
        a.imag, b.imag = 0, 0
    total, difference = combine(a, b)
    odd = hold(hold(multiply_by_i(difference, 1)) * root)
    store(near, total + odd)
    opposite = hold(total - odd)
    with vc.if_block(k > 0):
        store(far, vc.to_complex(opposite.real, -opposite.imag))
