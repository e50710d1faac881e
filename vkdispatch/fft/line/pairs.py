"""Prime lengths p with odd (p - 1) / 2: two invocations hold a line in registers.

Let g be a primitive root and h = g^2. The powers of h are half of the positions 1 ... p - 1, and p - h^q the
other half, as p - 1 is not a power of h. With s_q = x[h^q] + x[p - h^q] and d_q = x[h^q] - x[p - h^q], the
transform is

    X[h^-m], X[p - h^-m] = x[0] + sum of s_q cos(2 pi h^(q - m) / p) -+ i sum of d_q sin(2 pi h^(q - m) / p)

Rader's convolution of p - 1 values (C. M. Rader, 1968) consists of these two cyclic convolutions of odd
length. One invocation computes that of the sums, another that of the differences.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType, complex64, float32
from vkdispatch.fft.plan.indices import add, hold
from vkdispatch.fft.plan.lengths import find_primitive_root
from vkdispatch.fft.plan.transforms import Transform
from vkdispatch.fft.plan.tuning import tuning
from vkdispatch.fft.trace.butterflies import dft
from vkdispatch.fft.trace.line_kernel import buffer_types
from vkdispatch.fft.trace.shared import trace_if
from vkdispatch.shader.shader_function import ShaderFunction


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
            trace_if(within, lambda at=at, value=value: self._memory.__setitem__(at, value))  # type: ignore[misc]
        vc.barrier()

    def write(self, target: Any, kind: DType) -> None:
        """Copy the lines out."""
        vc.barrier()
        values = [self._memory[at].to_register() for at, _ in self._pieces()]
        for (at, within), value in zip(self._pieces(), values, strict=True):
            index = add(self._start, at).to_register()
            conditions = [*within, index < self._all] if self._ragged else within
            trace_if(
                conditions,
                lambda index=index, value=value: target.__setitem__(index, vc.to_dtype(kind, value)),  # type: ignore[misc]
            )

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
        with self._if_sums():
            total[:] = first + spectrum[0]
            values[0][:] = first * scale + spectrum[0] * float(cosines[0].real)
            for value, each, factor in zip(values[1:], spectrum[1:], cosines[1:], strict=True):
                value[:] = each * complex(factor)
        with vc.else_block():
            for value, each, factor in zip(values, spectrum, sines, strict=True):
                value[:] = each * complex(factor)
        outcome = dft(values, 1)
        self._combine(outcome, total if scale == 1 else hold(total * scale))

    def _combine(self, outcome: Sequence[Any], total: Any) -> None:
        """Store the sums and differences of the results of the two invocations, half of them each."""
        order = _half_order(self._length)
        half, middle = len(order), len(order) // 2 + 1
        memory, row = self._memory, self._row
        vc.barrier()
        with self._if_sums():
            for m in range(middle, half):
                memory[add(row, m)] = outcome[m]
        with vc.else_block():
            for m in range(middle):
                memory[add(row, m)] = outcome[m]
        vc.barrier()
        evens = [vc.new_register(complex64) for _ in range(middle)]
        odds = [vc.new_register(complex64) for _ in range(middle)]
        with self._if_sums():
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

        with self._if_sums():
            memory[row] = total
            for m in range(middle):
                put(m, evens[m], odds[m])
        with vc.else_block():
            for m in range(middle, half):
                put(m, evens[m - middle], odds[m - middle])

    @contextmanager
    def _if_sums(self) -> Iterator[None]:
        with vc.if_block(self._sums):
            yield


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
