"""The transform of a line in registers: butterflies, roots of unity, exchanges between invocations."""

from __future__ import annotations

import cmath
import copy
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType, complex64, complex128, component_type, to_numpy_dtype
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.codegen.trace.current import current
from vkdispatch.families.tuning import memoize
from vkdispatch.fft.plan.passes import SharedLayout, count_allocated
from vkdispatch.fft.plan.planner import find_planner
from vkdispatch.fft.plan.stages import Split, Stage, add, find_first_factor, hold, multiply

# ---- Discrete Fourier transforms of a few values that one invocation holds in registers ------------------
#
# Composite lengths are split into coprime factors by the Good-Thomas mapping, which needs no twiddle
# factors, or else by the Cooley-Tukey algorithm. Odd primes use the symmetry of the sine and cosine sums.


def dft(values: Sequence[Any], sign: int) -> list[Any]:
    """Return the transform of some complex values, in natural order.

    Parameters
    ----------
    values
        Complex GPU values, already in registers.
    sign
        Sign of the exponent: -1 forward, 1 inverse (unnormalized).
    """
    n = len(values)
    if n == 1:
        return list(values)
    if n == 2:
        values = list(values)
        return [hold(values[0] + values[1]), hold(values[0] - values[1])]
    if n == 4:
        return _dft4(values, sign)
    left = find_first_factor(n)
    if left == n:
        return _dft_prime(values, sign)
    if math.gcd(left, n // left) == 1:
        return _dft_coprime(values, sign, left)
    return _dft_product(values, sign, left)


def multiply_by_i(value: Any, sign: int) -> Any:
    """Return the value multiplied by i (sign 1) or -i (sign -1)."""
    if sign > 0:
        return vc.to_complex(-value.imag, value.real)
    return vc.to_complex(value.imag, -value.real)


def rotate(value: Any, numerator: int, denominator: int, sign: int) -> Any:
    """Return the value times exp(sign 2 pi i numerator / denominator), a constant."""
    eighths, rest = divmod(8 * (numerator % denominator), denominator)
    if rest == 0 and eighths % 2 == 0:
        quarter = eighths // 2
        if quarter == 0:
            return value
        if quarter == 2:
            return hold(-value)
        return hold(multiply_by_i(value, sign if quarter == 1 else -sign))
    factor = cmath.exp(2j * cmath.pi * (numerator % denominator) / denominator)
    if rest == 0:
        factor = complex(
            math.copysign(math.sqrt(0.5), factor.real), math.copysign(math.sqrt(0.5), factor.imag)
        )
    return hold(value * complex(factor.real, sign * factor.imag))


def _dft4(values: Sequence[Any], sign: int) -> list[Any]:
    a, b, c, d = values
    even, odd = hold(a + c), hold(b + d)
    left, right = hold(a - c), hold(multiply_by_i(b - d, sign))
    return [hold(even + odd), hold(left + right), hold(even - odd), hold(left - right)]


def _dft_prime(values: Sequence[Any], sign: int) -> list[Any]:
    values, n = list(values), len(values)
    half = (n - 1) // 2
    sums = [hold(values[j] + values[n - j]) for j in range(1, half + 1)]
    differences = [hold(multiply_by_i(values[j] - values[n - j], sign)) for j in range(1, half + 1)]
    total = values[0]
    for value in sums:
        total = total + value
    outcome = [hold(total)] + [None] * (n - 1)
    for k in range(1, half + 1):
        even, odd = values[0], None
        for j in range(1, half + 1):
            angle = 2 * math.pi * (j * k % n) / n
            even = even + sums[j - 1] * math.cos(angle)
            term = differences[j - 1] * math.sin(angle)
            odd = term if odd is None else odd + term
        even, odd = hold(even), hold(odd)
        outcome[k] = hold(even + odd)
        outcome[n - k] = hold(even - odd)
    return outcome


def _dft_coprime(values: Sequence[Any], sign: int, left: int) -> list[Any]:
    n = len(values)
    right = n // left
    rows = [dft([values[(right * i + left * j) % n] for j in range(right)], sign) for i in range(left)]
    outcome: list[Any] = [None] * n
    # 1 modulo one factor and 0 modulo the other
    to_left, to_right = right * pow(right, -1, left), left * pow(left, -1, right)
    for k in range(right):
        column = dft([row[k] for row in rows], sign)
        for j in range(left):
            outcome[(to_left * j + to_right * k) % n] = column[j]
    return outcome


def _dft_product(values: Sequence[Any], sign: int, left: int) -> list[Any]:
    n = len(values)
    right = n // left
    columns = []
    for j in range(right):
        inner = dft([values[right * i + j] for i in range(left)], sign)
        columns.append([rotate(inner[k], j * k, n, sign) for k in range(left)])
    outcome: list[Any] = [None] * n
    for k in range(left):
        outer = dft([column[k] for column in columns], sign)
        for j in range(right):
            outcome[k + left * j] = outer[j]
    return outcome


# ---- Tables of roots of unity, computed once in double precision and shared by all kernels ---------------


def host_type(compute_type: DType) -> Any:
    """Return the NumPy dtype of the tables of a kernel that computes in `compute_type`."""
    return np.dtype(to_numpy_dtype(complex128 if compute_type is complex128 else complex64))


def roots_of_unity(count: int, denominator: int, step: int = 1) -> Any:
    """Return exp(-2 pi i k step / denominator) for k = 0 ... count - 1, to about the last bit."""
    k = np.arange(count, dtype=np.int64) * step % denominator
    # reduced to an eighth of the circle, where sine and cosine are exact to the last bit
    octant, rest = np.divmod(8 * k, denominator)
    odd = (octant & 1).astype(bool)
    rest = np.where(odd, denominator - rest, rest)
    angle = rest * (np.pi / 4 / denominator)
    cosine, sine = np.cos(angle), np.sin(angle)
    cosine, sine = np.where(odd, sine, cosine), np.where(odd, cosine, sine)
    value = cosine - 1j * sine
    return value * np.array([1, -1j, -1, 1j])[octant >> 1]


def second_power(radix: int) -> int:
    """Return the power of a twiddle factor that the table of `twiddles` holds besides the first power."""
    step = radix // find_first_factor(radix)
    return step if step > 1 else min(2, radix - 1)


def twiddle_offsets(split: Split) -> tuple[int, ...]:
    """Return where the factors of each stage begin in the table of `twiddles`; the first stage has none."""
    offsets, offset = [], 0
    for stage in split.stages:
        offsets.append(offset)
        offset += 2 * stage.previous if stage.previous > 1 else 0
    return tuple(offsets)


@memoize
def twiddles(split: Split, compute_type: DType) -> vc.ConstantArray:
    """Return the tables of exp(-2 pi i k / (previous radix)) of all stages but the first, concatenated.

    Each factor is followed by a power of it. The other powers are products of few of these, so that rounding
    errors stay small.
    """
    parts = []
    for stage in split.stages:
        if stage.previous > 1:
            circle = stage.previous * stage.radix
            powers = (1, second_power(stage.radix))
            parts += [np.stack([roots_of_unity(stage.previous, circle, p) for p in powers], axis=1).ravel()]
    # for the idle invocations of the last stage
    last = split.stages[-1]
    parts.append(np.ones(2 * (last.rounds * last.threads - last.butterflies)))
    return vc.ConstantArray(np.concatenate(parts).astype(host_type(compute_type)))


@memoize
def _table(denominator: int, compute_type: DType, longest: int) -> tuple[vc.ConstantArray, int]:
    """Return the table, and where its second part begins; 0 if it has one part."""
    kind = host_type(compute_type)
    if denominator <= longest:
        return vc.ConstantArray(roots_of_unity(denominator, denominator).astype(kind)), 0
    step = 1 << math.ceil(math.log2(denominator) / 2)
    fine = roots_of_unity(step, denominator)
    coarse = roots_of_unity(-(-denominator // step), denominator, step)
    return vc.ConstantArray(np.concatenate([fine, coarse]).astype(kind)), step


def root_power(exponent: Any, denominator: int, compute_type: DType, inverse: bool) -> Any:
    """Return exp(-+2 pi i exponent / denominator) for an exponent (u32) less than the denominator."""
    array, step = _table(denominator, compute_type, find_planner().largest_table)
    table = vc.constant_array(array)
    if step == 0:
        value = hold(table[exponent])
    else:
        exponent = hold(exponent)
        fine, coarse = table[exponent % step], table[add(exponent // step, step)]
        value = hold(hold(fine) * hold(coarse))
    return hold(vc.to_complex(value.real, -value.imag)) if inverse else value


# ---- The registers of an invocation ----------------------------------------------------------------------


class FFTRegisters:
    """Complex registers: `registers[i]` reads one, `registers[i] = value` writes it.

    Butterfly number `turn` of a stage is in registers turn * radix ... turn * radix + radix - 1.

    Attributes
    ----------
    count
        Number of registers.
    """

    def __init__(self, split: Split, compute_type: DType, name: str = "register", count: int | None = None):
        self.split = split
        self.compute_type = compute_type
        self.count = split.registers if count is None else count
        self._values = [vc.new_register(compute_type, var_name=f"{name}{i}") for i in range(self.count)]

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __getitem__(self, index: int) -> Any:
        return self._values[index]

    def __setitem__(self, index: int, value: Any) -> None:
        self._values[index][:] = value

    def register_slice(self, slc: slice) -> list[Any]:
        """Return some of the registers."""
        return self._values[slc]

    def slice_set(self, slc: slice, values: Sequence[Any]) -> None:
        """Store into some of the registers. Raises ValueError for another number of values."""
        targets = self._values[slc]
        if len(targets) != len(values):
            raise ArgumentValueError(f"values: expected {len(targets)}, got {len(values)}")
        # the value of one may depend on the target of another
        values = [value.to_register() for value in values]
        for target, value in zip(targets, values, strict=True):
            target[:] = value

    def clear(self) -> None:
        """Set all to zero."""
        for register in self._values:
            register[:] = 0

    def normalize(self) -> None:
        """Divide all by the length of the line."""
        self.scale(1.0 / self.split.length)

    def scale(self, factor: float) -> None:
        """Multiply all by a number."""
        for register in self._values:
            register[:] = register * factor

    def read_from_registers(self, other: FFTRegisters) -> None:
        """Copy all registers of another set. Raises ValueError for another number of them."""
        if other.count != self.count:
            raise ArgumentValueError(f"other: expected {self.count} registers, got {other.count}")
        for register, value in zip(self._values, other, strict=True):
            register[:] = value


# ---- Exchanges of values through workgroup memory --------------------------------------------------------


@record
class Slot:
    """A place in workgroup memory, and the conditions under which an invocation accesses it."""

    place: Any
    conditions: tuple[Any, ...] = ()


class SharedLines:
    """Lines in workgroup memory; `row` is the start of this invocation's line."""

    def __init__(
        self,
        layout: SharedLayout,
        split: Split,
        compute_type: DType,
        line: Any,
        least: int = 0,
        array: Any = None,
        used: bool = False,
    ) -> None:
        """Allocate the elements that a transform needs, and at least `least`.

        With `array`, use that memory instead; `used` says whether it was accessed before.
        """
        self.layout = layout
        self.compute_type = compute_type
        if array is None:
            kind = compute_type if layout.parts == 1 else component_type(compute_type)
            array = vc.shared_buffer(kind, max(least, count_allocated(split, layout)), var_name="lines")
        self.array = array
        self.row = multiply(line, layout.row)
        self._used = used

    def view_as(self, layout: SharedLayout, line: Any) -> SharedLines:
        """Return the same memory with another layout of as many parts."""
        other = copy.copy(self)
        other.layout, other.row, other._used = layout, multiply(line, layout.row), True
        return other

    def wait_for_readers(self) -> None:
        """Wait until all invocations have read the current contents."""
        if self._used:
            vc.barrier()
        self._used = True

    def exchange(self, values: Sequence[Any], source: Stage, target: Stage, thread: Any) -> list[Any]:
        """Exchange the output of a stage for the input of another."""
        return move_in_parts(values, self.layout.parts, lambda part: self._move(part, source, target, thread))

    def rearrange(self, values: Sequence[Any], places: Sequence[Slot], wanted: Sequence[Slot]) -> list[Any]:
        """Store values at some places of workgroup memory, and return the values at other places.

        The layout must have one chunk.
        """
        return move_in_parts(values, self.layout.parts, lambda part: self._rearrange(part, places, wanted))

    def _rearrange(self, values: Sequence[Any], places: Sequence[Slot], wanted: Sequence[Slot]) -> list[Any]:
        self.wait_for_readers()
        for value, slot in zip(values, places, strict=True):
            with guard(slot.conditions):
                self.array[slot.place] = value
        vc.barrier()
        taken = []
        for slot in wanted:
            if not slot.conditions:
                taken.append(self.array[slot.place].to_register())
                continue
            taken.append(vc.new_register(self.array.var_type))
            with guard(slot.conditions):
                taken[-1][:] = self.array[slot.place]
        return taken

    def _move(self, values: list[Any], source: Stage, target: Stage, thread: Any) -> list[Any]:
        taken: list[Any] = [None] * target.registers
        for chunk in range(self.layout.chunks):
            self.wait_for_readers()
            self._write(values, source, thread, chunk)
            vc.barrier()
            self._read(taken, target, thread, chunk)
        return taken

    def _write(self, values: list[Any], stage: Stage, thread: Any, chunk: int) -> None:
        layout = self.layout
        piece = stage.length // layout.chunks
        for turn in range(stage.rounds):
            first = stage.first_output(thread, turn)
            conditions = stage.conditions(thread, turn)
            if stage.previous == 1 and layout.padding:
                base = multiply(stage.butterfly(thread, turn), layout.step(stage.radix))
            else:
                base = layout.place_of(first)
            base = add(self.row, base)
            if layout.chunks > 1:
                conditions.append(first // piece == chunk)
                base = base - layout.step(chunk * piece) if chunk else base
            base = hold(base)
            step = layout.step(stage.previous) if stage.previous > 1 else 1
            with guard(conditions):
                for i in range(stage.radix):
                    self.array[add(base, i * step)] = values[turn * stage.radix + i]

    def _read(self, taken: list[Any], stage: Stage, thread: Any, chunk: int) -> None:
        layout = self.layout
        piece = stage.length // layout.chunks
        per_chunk = stage.radix // layout.chunks
        step = layout.step(stage.butterflies)
        for turn in range(stage.rounds):
            base = hold(add(self.row, layout.place_of(stage.butterfly(thread, turn))))
            for i in (
                range(chunk * per_chunk, (chunk + 1) * per_chunk) if layout.chunks > 1 else range(stage.radix)
            ):
                offset = i * step - (layout.step(chunk * piece) if chunk else 0)
                taken[turn * stage.radix + i] = self.array[add(base, offset)].to_register()


@contextmanager
def guard(conditions: Sequence[Any]) -> Iterator[None]:
    """Trace the body under some conditions. True needs no code; under False, the body is traced in vain."""
    dynamic = [condition for condition in conditions if condition is not True]
    if any(condition is False for condition in dynamic):
        mark = current().mark()
        yield
        current().rewind(mark)
    elif dynamic:
        with vc.if_block(vc.all(*dynamic)):
            yield
    else:
        yield


def move_in_parts(values: Sequence[Any], parts: int, move: Callable[[list[Any]], list[Any]]) -> list[Any]:
    """Move complex values, or with 2 parts first the real and then the imaginary parts."""
    if parts == 1:
        return move(list(values))
    real, imaginary = move([value.real for value in values]), move([value.imag for value in values])
    return [hold(vc.to_complex(re, im)) for re, im in zip(real, imaginary, strict=True)]


def values_in_order(count: int, threads: int, total: int) -> Iterator[tuple[Any, Any]]:
    """Yield the values of an invocation, each within its guard: neighbours have neighbouring values.

    Yields the position of a value in the whole array, and its position in the workgroup.

    Parameters
    ----------
    count, threads
        Values and invocations of the workgroup.
    total
        Values of all workgroups; the last one may have fewer.
    """
    start = hold(vc.workgroup_id().x * count)
    for turn in range(-(-count // threads)):
        element = hold(vc.local_invocation_index() + turn * threads)
        conditions: list[Any] = []
        if (turn + 1) * threads > count:
            conditions.append(element < count)
        if total % count:
            conditions.append(start + element < total)
        with guard(conditions):
            yield start + element, element


# ---- The transform of a line that is held in registers ---------------------------------------------------


def transform(registers: FFTRegisters, shared: SharedLines | None, thread: Any, inverse: bool) -> None:
    """Transform a line in place, unnormalized.

    Parameters
    ----------
    registers
        The input of the first stage, replaced by the output of the last.
    shared
        Workgroup memory; None for a transform of one stage.
    thread
        Number of the invocation in its line.
    inverse
        Whether the exponent is positive.
    """
    split = registers.split
    stages, sign = split.stages, 1 if inverse else -1
    values = list(registers)
    for number, stage in enumerate(stages):
        if number:
            assert shared is not None
            values = shared.exchange(values, stages[number - 1], stage, thread)
        factors = _Factors(split, number, thread, registers.compute_type, inverse) if number else None
        outcome: list[Any] = []
        for turn in range(stage.rounds):
            taken = values[turn * stage.radix : (turn + 1) * stage.radix]
            outcome += dft(_Twiddled(taken, factors.of_turn(turn)) if factors else taken, sign)
        values = outcome
    for index, value in enumerate(values):
        registers[index] = value


class _Twiddled(Sequence[Any]):
    """Values times powers of a twiddle factor, multiplied on access.

    A butterfly accesses few of them at a time, so that few powers occupy registers.
    """

    def __init__(self, values: Sequence[Any], powers: Powers) -> None:
        self._values, self._powers = values, powers

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: Any) -> Any:
        value = self._values[index]
        if not index:
            return value
        # twiddle factors never have half precision
        turned = value * self._powers[index]
        return hold(turned.to_dtype(value.var_type))


class _Factors:
    """The twiddle factors of a stage: exp(-+2 pi i k / (previous radix)), k being the butterfly's place."""

    def __init__(self, split: Split, number: int, thread: Any, compute_type: DType, inverse: bool) -> None:
        self._stage = split.stages[number]
        self._table = vc.constant_array(twiddles(split, compute_type))
        self._offset = twiddle_offsets(split)[number]
        self._thread, self._inverse = thread, inverse
        self._roots: dict[int, Any] = {}

    def of_turn(self, turn: int) -> Powers:
        """Powers for a butterfly."""
        stage = self._stage
        # where all butterflies of an invocation have the same place
        if not self._roots or stage.threads % stage.previous:
            index = hold(add(multiply(stage.twiddle_index(self._thread, turn), 2), self._offset))
            second = second_power(stage.radix)
            self._roots = {1: self._root(index)}
            if second > 1:
                self._roots[second] = self._root(add(index, 1))
        return Powers(self._roots, stage.radix)

    def _root(self, index: Any) -> Any:
        root = hold(self._table[index])
        return hold(vc.to_complex(root.real, -root.imag)) if self._inverse else root


class Powers:
    """Powers of a complex number, computed from two of them. Intermediate powers are stored."""

    def __init__(self, roots: dict[int, Any], radix: int) -> None:
        self._step = second_power(radix)
        self._known = dict(roots)

    def __getitem__(self, exponent: int) -> Any:
        if exponent in self._known:
            return self._known[exponent]
        high, low = divmod(exponent, self._step)
        if high and low:
            return hold(self[high * self._step] * self[low])
        half = high // 2 * self._step if high else exponent // 2
        self._known[exponent] = hold(self[half] * self[exponent - half])
        return self._known[exponent]
