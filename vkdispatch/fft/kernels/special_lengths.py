"""Lines of special lengths: large prime factors, primes in two invocations, short contiguous lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType, complex64, float32, uint32
from vkdispatch.base.record import record
from vkdispatch.families.tuning import memoize
from vkdispatch.fft.plan.passes import Pass, Transform
from vkdispatch.fft.plan.stages import Stage, add, find_primitive_root, hold, multiply
from vkdispatch.fft.plan.tuning import tuning
from vkdispatch.fft.trace.line_kernel import Entry, LineKernel, buffer_types, linear_slots, trace_line_kernel
from vkdispatch.fft.trace.ops import Element, Load, Store
from vkdispatch.fft.trace.transform import Slot, dft, guard, host_type
from vkdispatch.shader.shader_function import ShaderFunction

# ---- Tables of Bluestein's and Rader's algorithms --------------------------------------------------------
#
# These algorithms transform lengths with large prime factors.
#
# As n k = (n^2 + k^2 - (k - n)^2) / 2, the transform of N values is the convolution of x[n] c[n] with the
# conjugate of the chirp c[n] = exp(-i pi n^2 / N), multiplied by c[k] (L. I. Bluestein, 1970). The
# convolution takes two transforms of any length of at least 2 N - 1.


@memoize
def _chirp(length: int) -> Any:
    """Return exp(-i pi n^2 / length) for all n, exactly reduced."""
    n = np.arange(length, dtype=np.uint64)
    turns = (n * n % np.uint64(2 * length)).astype(np.float64) / (2 * length)
    return np.exp(-2j * np.pi * turns)


@memoize
def chirp_table(length: int, compute_type: DType) -> vc.ConstantArray:
    """Return the chirp of a forward transform."""
    return vc.ConstantArray(_chirp(length).astype(host_type(compute_type)))


@memoize
def chirp_spectrum(length: int, padded: int, compute_type: DType) -> vc.ConstantArray:
    """Return the transform of the conjugate chirp with period `padded`, divided by `padded`."""
    chirp = _chirp(length).conj()
    around = np.zeros(padded, np.complex128)
    around[:length] = chirp
    around[padded - length + 1 :] = chirp[1:][::-1]
    return vc.ConstantArray((np.fft.fft(around) / padded).astype(host_type(compute_type)))


def conjugate_if(value: Any, wanted: bool) -> Any:
    """Return the complex conjugate if `wanted`, else the value."""
    return vc.to_complex(value.real, -value.imag) if wanted else value


@memoize
def _powers(prime: int) -> Any:
    root = find_primitive_root(prime)
    return np.array([pow(root, q, prime) for q in range(prime - 1)], np.uint32)


@memoize
def rader_order(prime: int) -> vc.ConstantArray:
    """Return the positions g^q, in the order of Rader's convolution."""
    return vc.ConstantArray(_powers(prime))


@memoize
def rader_spectrum(prime: int, compute_type: DType) -> vc.ConstantArray:
    """Return the transform of exp(-2 pi i g^-q / prime), divided by prime - 1."""
    back = np.roll(_powers(prime)[::-1], 1).astype(np.float64)
    kernel = np.exp(-2j * np.pi * back / prime)
    return vc.ConstantArray((np.fft.fft(kernel) / (prime - 1)).astype(host_type(compute_type)))


# ---- Short contiguous lines, which a workgroup copies to its memory and back in one piece ----------------
#
# Neighbouring invocations then access neighbouring values, wherever lines begin and end.


def read_staged(kernel: LineKernel, source: Any) -> None:
    """Read the registers from a buffer of contiguous lines."""
    values = read_lines(kernel, source, kernel.slots(kernel.split.stages[0], kernel.plan.grid.length))
    for number, value in enumerate(values):
        kernel.registers[number] = value


def write_staged(kernel: LineKernel, target: Any, kind: DType) -> None:
    """Write the registers to a buffer of contiguous lines."""
    stage = kernel.split.stages[-1]
    values = list(kernel.registers)[: stage.registers]
    write_lines(kernel, values, kernel.slots(stage, kernel.plan.grid.length), target, kind)


def read_lines(kernel: LineKernel, source: Any, wanted: Sequence[Slot]) -> list[Any]:
    """Copy the lines of a workgroup to its memory, and return the values at some places of it."""
    grid = kernel.plan.grid
    assert kernel.shared is not None
    base, last = _first(kernel), grid.outer * grid.length - 1
    pairs = linear_slots(kernel)
    # reads of missing lines read the last value instead, without a branch
    values = []
    for at, _ in pairs:
        index = add(base, at)
        value = source[vc.min(index, last) if grid.outer % grid.lines else index]
        values.append(vc.to_dtype(kernel.plan.compute_type, value).to_register())
    return kernel.shared.rearrange(values, [slot for _, slot in pairs], wanted)


def write_lines(
    kernel: LineKernel, values: Sequence[Any], places: Sequence[Slot], target: Any, kind: DType
) -> None:
    """Store values at places of workgroup memory, and copy the lines of the workgroup from there."""
    assert kernel.shared is not None
    pairs = linear_slots(kernel)
    taken = kernel.shared.rearrange(values, places, [Slot(slot.place) for _, slot in pairs])
    base = _first(kernel)
    for (at, slot), value in zip(pairs, taken, strict=True):
        with guard(slot.conditions):
            target[add(base, at)] = vc.to_dtype(kind, value)


def _first(kernel: LineKernel) -> Any:
    """Return the flat index of the first value of a workgroup."""
    grid = kernel.plan.grid
    return (vc.workgroup_id().x * (grid.lines * grid.length)).to_register()


def make_staged_kernel(plan: Pass, transform: Transform) -> ShaderFunction:
    """Make the kernel of a transform of contiguous lines, between buffers or in place.

    Several invocations of a line read it directly: what they read twice is cached.
    """
    target = transform.output_type
    assert target is not None

    def body(kernel: LineKernel, *arguments: Any) -> None:
        if plan.split.threads == 1:
            read_staged(kernel, arguments[-1])
        else:
            kernel.read(lambda entry: vc.to_dtype(plan.compute_type, arguments[-1][_flat(kernel, entry)]))
        kernel.transform(transform.inverse)
        if transform.factor != 1:
            kernel.registers.scale(transform.factor)
        write_staged(kernel, arguments[0], target)

    return trace_line_kernel(transform.name, buffer_types(transform), plan, body)


def _flat(kernel: LineKernel, entry: Entry) -> Any:
    return add(hold(add(kernel.place.first, entry.start)), entry.offset)


# ---- Bluestein's and Rader's algorithms in one pass, for lengths with large prime factors ----------------
#
# See the tables above.


def trace_bluestein(kernel: LineKernel, load: Load, store: Store, inverse: bool) -> None:
    """Trace Bluestein's algorithm for the lines of a kernel."""
    plan = kernel.plan
    length, padded = plan.grid.length, plan.split.length
    chirp = vc.constant_array(chirp_table(length, plan.compute_type))
    spectrum = vc.constant_array(chirp_spectrum(length, padded, plan.compute_type))

    def multiply_chirp(entry: Entry, value: Any) -> Any:
        return hold(value * hold(conjugate_if(chirp[entry.index], inverse)))

    kernel.read(lambda entry: multiply_chirp(entry, load(element_of(kernel, entry))), length)
    kernel.transform(inverse)
    _multiply(kernel, spectrum, inverse)
    kernel.reverse()
    kernel.transform(not inverse)
    kernel.write(lambda entry, value: store(element_of(kernel, entry), multiply_chirp(entry, value)), length)


@record
class LineBuffers:
    """Buffers of contiguous lines, which workgroups read and write in one piece."""

    source: Any
    target: Any
    transform: Transform


def trace_rader(kernel: LineKernel, ends: tuple[Load, Store] | LineBuffers, inverse: bool) -> None:
    """Trace Rader's algorithm (C. M. Rader, 1968) for the lines of a kernel.

    It permutes the values of a line. Those of contiguous lines are permuted in workgroup memory.
    """
    plan, place = kernel.plan, kernel.place
    prime = plan.grid.length
    first = plan.split.stages[0]
    order = vc.constant_array(rader_order(prime))
    spectrum = vc.constant_array(rader_spectrum(prime, plan.compute_type))
    leader = True if isinstance(place.thread, int) else place.thread == 0
    row = multiply(place.line, prime)

    def element(index: Any) -> Element:
        flat = add(place.first, multiply(index, plan.grid.stride))
        return Element(
            place.outer, place.inner, index, (0, 0) if isinstance(index, int) else (1, prime - 1), flat
        )

    def slots(stage: Stage, index: Callable[[Entry], Any]) -> list[Slot]:
        return [*kernel.slots(stage, prime, index), Slot(row, () if leader is True else (leader,))]

    def source(entry: Entry) -> Any:
        # idle invocations would read beyond the table
        return order[_within(entry.index, first)].to_register()

    def target(entry: Entry) -> Any:
        # value number m of the convolution is value g^-m of the transform
        index = _within(entry.index, kernel.split.stages[-1])
        if isinstance(index, int):
            return order[(prime - 1 - index) % (prime - 1)]
        return order[vc.select(index == 0, vc.to_dtype(uint32, 0), prime - 1 - index)].to_register()

    if isinstance(ends, LineBuffers):
        *values, zero = read_lines(kernel, ends.source, slots(first, source))
        for number, value in enumerate(values):
            kernel.registers[number] = value
    else:
        load = ends[0]
        zero = vc.new_register(plan.compute_type, var_name="first")
        with guard([place.active, leader]):
            zero[:] = load(element(0))
        kernel.read(lambda entry: load(element(source(entry))))
    kernel.transform(inverse)
    total = hold(kernel.registers[0] + zero)
    _multiply(kernel, spectrum, inverse)
    with guard([leader]):
        kernel.registers[0] = kernel.registers[0] + zero
    kernel.reverse()
    kernel.transform(not inverse)
    if isinstance(ends, LineBuffers):
        last = kernel.split.stages[-1]
        values = [*list(kernel.registers)[: last.registers], total]
        factor, kind = ends.transform.factor, ends.transform.output_type
        assert kind is not None
        values = [value if factor == 1 else hold(value * factor) for value in values]
        write_lines(kernel, values, slots(last, target), ends.target, kind)
        return
    store = ends[1]
    with guard([place.active, leader]):
        store(element(0), total)
    kernel.write(lambda entry, value: store(element(target(entry)), value))


def _within(index: Any, stage: Stage) -> Any:
    return index if stage.is_even or isinstance(index, int) else vc.min(index, stage.length - 1)


def element_of(kernel: LineKernel, entry: Entry) -> Element:
    """Return the value that a register holds."""
    place, stride = kernel.place, kernel.plan.grid.stride
    base = hold(add(place.first, multiply(entry.start, stride)))
    return Element(place.outer, place.inner, entry.index, entry.bounds, add(base, entry.offset * stride))


def _multiply(kernel: LineKernel, spectrum: Any, inverse: bool) -> None:
    """Multiply the registers by a spectrum, or for an inverse transform by its conjugate."""
    stage = kernel.plan.split.stages[-1]
    for entry, _ in kernel.entries(stage):
        index = _within(entry.index, stage)
        value = kernel.registers[entry.register]
        kernel.registers[entry.register] = value * hold(conjugate_if(spectrum[index], inverse))


# ---- Prime lengths p with odd (p - 1) / 2: two invocations hold a line in registers ----------------------
#
# Let g be a primitive root and h = g^2. The powers of h are half of the positions 1 ... p - 1, and p - h^q
# the other half, as p - 1 is not a power of h. With s_q = x[h^q] + x[p - h^q] and d_q = x[h^q] - x[p -
# h^q], the transform is
#
#     X[h^-m], X[p - h^-m] = x[0] + sum of s_q cos(2 pi h^(q - m) / p) -+ i sum of d_q sin(2 pi h^(q - m) / p)
#
# Rader's convolution of p - 1 values (C. M. Rader, 1968) consists of these two cyclic convolutions of odd
# length. One invocation computes that of the sums, another that of the differences.


def make_pair_kernel(transform: Transform) -> ShaderFunction:
    """Make the kernel of a transform of contiguous lines, between buffers or in place."""
    count, target = transform.count, transform.output_type
    assert target is not None
    with vc.shader_context(vc.ShaderFlags.NO_EXEC_BOUNDS) as context:
        arguments = context.declare_input_arguments(buffer_types(transform))
        lines = _Lines(transform.length, count)
        lines.read(arguments[-1])
        lines.transform(transform.inverse, transform.factor)
        lines.write(arguments[0], target)
        description = context.get_description(transform.name)
    return ShaderFunction(description, (2 * tuning.pair_lines, 1, 1), (-(-count // tuning.pair_lines), 1, 1))


class _Lines:
    """The lines of a workgroup, in workgroup memory in the order of the buffer."""

    def __init__(self, length: int, count: int) -> None:
        self._length, self._all = length, count * length
        self._ragged = count % tuning.pair_lines > 0
        self._values = tuning.pair_lines * length
        self._memory = vc.shared_buffer(complex64, self._values, var_name="lines")
        self._local = vc.local_invocation_index().to_register()
        self._start = (vc.workgroup_id().x * self._values).to_register()
        self._row = (self._local % tuning.pair_lines * length).to_register()
        self._sums = (self._local < tuning.pair_lines).to_register()

    def read(self, source: Any) -> None:
        """Copy the lines in; missing lines get the last value."""
        values = []
        for at, _ in self._pieces():
            index = add(self._start, at)
            value = source[vc.min(index, self._all - 1) if self._ragged else index]
            values.append(vc.to_dtype(complex64, value).to_register())
        for (at, within), value in zip(self._pieces(), values, strict=True):
            with guard(within):
                self._memory[at] = value
        vc.barrier()

    def write(self, target: Any, kind: DType) -> None:
        """Copy the lines out."""
        vc.barrier()
        values = [self._memory[at].to_register() for at, _ in self._pieces()]
        for (at, within), value in zip(self._pieces(), values, strict=True):
            index = add(self._start, at).to_register()
            conditions = [*within, index < self._all] if self._ragged else within
            with guard(conditions):
                target[index] = vc.to_dtype(kind, value)

    def _pieces(self) -> Iterator[tuple[Any, list[Any]]]:
        """Yield the places of an invocation's values, each with the conditions that it exists."""
        threads = 2 * tuning.pair_lines
        for j in range(-(-self._values // threads)):
            at = add(self._local, j * threads)
            if (j + 1) * threads <= self._values:
                yield at, []
            else:
                yield vc.min(at, self._values - 1).to_register(), [at < self._values]

    def transform(self, inverse: bool, scale: float) -> None:
        """Transform the lines in place."""
        order = _half_order(self._length)
        half = len(order)
        first = self._memory[self._row].to_register()
        spectrum = dft(_SumsOrDifferences(self._memory, self._row, self._length, order, self._sums), -1)
        values = [vc.new_register(complex64) for _ in range(half)]
        total = vc.new_register(complex64)
        cosines, sines = (kernel * scale for kernel in _spectra(self._length, inverse))
        with vc.if_block(self._sums):
            total[:] = first + spectrum[0]
            values[0][:] = first * scale + spectrum[0] * float(cosines[0].real)
            for value, term, factor in zip(values[1:], spectrum[1:], cosines[1:], strict=True):
                value[:] = term * complex(factor)
        with vc.else_block():
            for value, term, factor in zip(values, spectrum, sines, strict=True):
                value[:] = term * complex(factor)
        outcome = dft(values, 1)
        self._combine(outcome, total if scale == 1 else hold(total * scale))

    def _combine(self, outcome: Sequence[Any], total: Any) -> None:
        """Store the sums and differences of the results of the two invocations, half of them each."""
        order = _half_order(self._length)
        half, middle = len(order), len(order) // 2 + 1
        memory, row = self._memory, self._row
        vc.barrier()
        with vc.if_block(self._sums):
            for m in range(middle, half):
                memory[add(row, m)] = outcome[m]
        with vc.else_block():
            for m in range(middle):
                memory[add(row, m)] = outcome[m]
        vc.barrier()
        evens = [vc.new_register(complex64) for _ in range(middle)]
        odds = [vc.new_register(complex64) for _ in range(middle)]
        with vc.if_block(self._sums):
            for m in range(middle):
                evens[m][:], odds[m][:] = outcome[m], memory[add(row, m)]
        with vc.else_block():
            for m in range(middle, half):
                evens[m - middle][:], odds[m - middle][:] = memory[add(row, m)], outcome[m]
        vc.barrier()

        def put(m: int, even: Any, odd: Any) -> None:
            position = order[-m % half]
            memory[add(row, position)] = even + odd
            memory[add(row, self._length - position)] = even - odd

        with vc.if_block(self._sums):
            memory[row] = total
            for m in range(middle):
                put(m, evens[m], odds[m])
        with vc.else_block():
            for m in range(middle, half):
                put(m, evens[m - middle], odds[m - middle])


class _SumsOrDifferences(Sequence[Any]):
    """The sums or the differences of the values of a line, computed on access."""

    def __init__(self, memory: Any, row: Any, length: int, order: Sequence[int], sums: Any) -> None:
        self._memory, self._row, self._length, self._order = memory, row, length, order
        self._sign = vc.select(sums, vc.to_dtype(float32, 1), vc.to_dtype(float32, -1)).to_register()

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, index: Any) -> Any:
        if index >= len(self):
            raise IndexError(index)
        position = self._order[index]
        other = self._memory[add(self._row, self._length - position)]
        return hold(self._memory[add(self._row, position)] + other * self._sign)


def _half_order(prime: int) -> list[int]:
    """Return the powers h^q, modulo the prime."""
    step = find_primitive_root(prime) ** 2 % prime
    return [pow(step, q, prime) for q in range(prime // 2)]


def _spectra(prime: int, inverse: bool) -> tuple[Any, Any]:
    """Return the transforms of cos(2 pi h^-q / p) and of -+i sin(...), divided by their length."""
    order = _half_order(prime)
    angles = 2 * np.pi * np.array([order[-q % len(order)] for q in range(len(order))]) / prime
    sines = (1j if inverse else -1j) * np.sin(angles)
    return np.fft.fft(np.cos(angles)) / len(order), np.fft.fft(sines) / len(order)
