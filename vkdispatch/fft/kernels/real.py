"""Real transforms of even length by complex transforms of half the length.

Neighbouring reals x[2j], x[2j + 1] form a complex number z[j]. Its transform Z contains those of the even and
of the odd positions: with h = n / 2 and w = exp(-2 pi i / n)

    X[k] = (Z[k] + conj Z[h - k]) / 2 - i/2 w^k (Z[k] - conj Z[h - k])        k = 0 ... h, Z[h] = Z[0]

and back, unnormalized, Z[k] = (X[k] + conj X[h - k]) + i w^-k (X[k] - conj X[h - k]).
(J. W. Cooley, P. A. W. Lewis, P. D. Welch, The fast Fourier transform algorithm: programming considerations
in the calculation of sine, cosine and Laplace transforms, 1970.)

A line of the buffer is h + 1 complex numbers; a workgroup reads all of its lines before it writes them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType, complex64, complex128
from vkdispatch.fft.plan.passes import RealPlan, Transform
from vkdispatch.fft.plan.stages import Stage, add, hold, multiply
from vkdispatch.fft.trace.line_kernel import Place, buffer_of
from vkdispatch.fft.trace.transform import (
    FFTRegisters,
    SharedLines,
    guard,
    host_type,
    multiply_by_i,
    roots_of_unity,
    rotate,
    transform,
    values_in_order,
)
from vkdispatch.shader.shader_function import ShaderFunction


def make_real_kernel(plan: RealPlan, transform: Transform) -> ShaderFunction:
    """Make the kernel of a real transform in place, by a plan that `plan_real` made."""
    kind = transform.output_type
    assert kind is not None
    with vc.shader_context(vc.ShaderFlags.NO_EXEC_BOUNDS) as shader:
        (buffer,) = shader.declare_input_arguments([buffer_of(kind)], ["buffer"])
        lines = _Lines(plan, kind, buffer)
        (_trace_inverse if transform.inverse else _trace_forward)(lines, transform.factor)
        description = shader.get_description(transform.name)
    grid = plan.half.grid
    return ShaderFunction(description, grid.local_size, (grid.workgroups, 1, 1))


@functools.lru_cache(maxsize=256)
def _roots(half: int, double: bool) -> vc.ConstantArray:
    """Return the table of exp(-2 pi i k / n) for k = 0 ... h."""
    kind = host_type(complex128 if double else complex64)
    return vc.ConstantArray(roots_of_unity(half + 1, 2 * half).astype(kind))


class _Lines:
    """The lines of a workgroup in a kernel that is being traced."""

    def __init__(self, plan: RealPlan, kind: DType, buffer: Any) -> None:
        self.plan, self.kind, self.buffer = plan, kind, buffer
        half = plan.half
        self.split, self.grid, self.compute_type = half.split, half.grid, half.compute_type
        self.half = self.split.length
        self.place = Place(self.grid)
        self.thread = self.place.thread
        self.first = hold(multiply(self.place.line_number, self.half + 1))
        self.registers = FFTRegisters(self.split, self.compute_type)
        self.shared: SharedLines | None = None
        if plan.layout is not None:
            self.shared = SharedLines(
                plan.layout, self.split, self.compute_type, self.place.line, self.grid.lines * plan.row
            )
        self.row = hold(multiply(self.place.line, plan.row))

    def memory(self) -> SharedLines:
        """Return workgroup memory, which the plan has."""
        assert self.shared is not None
        return self.shared

    def exchange(self) -> SharedLines | None:
        """Return workgroup memory for the transform, or None if it needs none."""
        return None if self.plan.half.layout is None else self.shared

    def load(self, index: Any) -> Any:
        """Return a value of the buffer in a register."""
        return hold(self.buffer[index].to_dtype(self.compute_type))

    def store(self, index: Any, value: Any) -> None:
        """Write a value into the buffer."""
        self.buffer[index] = value.to_dtype(self.kind)

    def root(self, index: Any) -> Any:
        """Return exp(-2 pi i index / n)."""
        return hold(vc.constant_array(_roots(self.half, self.compute_type is complex128))[index])

    def butterflies(self, stage: Stage, *, everywhere: bool) -> Iterator[tuple[int, Any]]:
        """Yield turns and butterflies, each within its guard.

        With `everywhere`, lines beyond the last one have butterflies, too.
        """
        for turn in range(stage.rounds):
            butterfly = stage.butterfly(self.thread, turn)
            conditions = [True if everywhere else self.place.active, *stage.conditions(self.thread, turn)]
            with guard(conditions):
                yield turn, butterfly

    def in_order(self) -> Iterator[tuple[Any, Any, Any]]:
        """Yield all values of the lines in the order of memory, each within its guard.

        A value is given by its index in the buffer, its place in workgroup memory, its position in the line.
        """
        values, row, grid = self.half + 1, self.plan.row, self.grid
        threads = grid.lines * grid.threads
        for index, element in values_in_order(grid.lines * values, threads, grid.outer * values):
            line, rest = hold(element // values), hold(element % values)
            yield index, element if row == values else line * row + rest, rest

    def write_out(self) -> None:
        """Copy the lines from workgroup memory to the buffer."""
        shared = self.memory()
        vc.barrier()
        for index, place, _ in self.in_order():
            self.store(index, shared.array[place])


def combine(a: Any, b: Any) -> tuple[Any, Any]:
    """Return a + conj b and a - conj b."""
    return (
        hold(vc.to_complex(a.real + b.real, a.imag - b.imag)),
        hold(vc.to_complex(a.real - b.real, a.imag + b.imag)),
    )


def spectrum_pair(a: Any, b: Any, root: Any) -> tuple[Any, Any]:
    """Return X[k] and X[h - k] for a = Z[k], b = Z[h - k] and the root w^k."""
    total, difference = combine(a, b)
    return _join_odd(total, hold(hold(multiply_by_i(difference, -1)) * root))


def _join_odd(total: Any, odd: Any) -> tuple[Any, Any]:
    left, right = hold((total + odd) * 0.5), hold((total - odd) * 0.5)
    return left, hold(vc.to_complex(right.real, -right.imag))


# ---- forward ---------------------------------------------------------------------------------------


def _trace_forward(lines: _Lines, scale: float) -> None:
    stage, half = lines.split.stages[0], lines.half
    for turn, butterfly in lines.butterflies(stage, everywhere=False):
        base = add(lines.first, butterfly)
        for i in range(stage.radix):
            lines.registers[turn * stage.radix + i] = lines.load(add(base, i * stage.butterflies))
    transform(lines.registers, lines.exchange(), lines.thread, inverse=False)
    if scale != 1:
        lines.registers.scale(scale)
    if lines.plan.half.layout is None:
        _write_alone(lines)
    elif lines.plan.linear:
        _store_pairs(lines, list(lines.registers), 0)
        vc.barrier()
        array = lines.memory().array
        for index, place, k in lines.in_order():
            opposite = place + half - 2 * k
            root = lines.root(k)
            a, b = hold(array[place]), hold(array[opposite])
            lines.store(index, spectrum_pair(a, b, root)[0])
    else:
        _write_middle(lines)
        _write_pairs(lines)


def _write_alone(lines: _Lines) -> None:
    """Write the spectrum of a line that one invocation holds."""
    half, values = lines.half, list(lines.registers)
    spectrum: dict[int, Any] = {}
    for k in range((half + 1) // 2):
        total, difference = combine(values[k], values[-k % half])
        odd = rotate(hold(multiply_by_i(difference, -1)), k, 2 * half, -1)
        spectrum[k], spectrum[half - k] = _join_odd(total, odd)
    if half % 2 == 0:
        spectrum[half // 2] = hold(vc.to_complex(values[half // 2].real, -values[half // 2].imag))
    if lines.plan.linear:
        array = lines.memory().array
        for k in range(half + 1):
            array[add(lines.row, k)] = spectrum[k]
        lines.write_out()
        return
    with guard([lines.place.active]):
        for k in range(half + 1):
            lines.store(add(lines.first, k), spectrum[k])


def _write_middle(lines: _Lines) -> None:
    """Write X[h / 2] = conj Z[h / 2], which has no partner."""
    half, stage = lines.half, lines.split.stages[-1]
    if half % 2:
        return
    i, butterfly = divmod(half // 2, stage.butterflies)
    turn, thread = divmod(butterfly, stage.threads)
    value = lines.registers[turn * stage.radix + i]
    with guard([lines.thread == thread, lines.place.active]):
        lines.store(add(lines.first, half // 2), vc.to_complex(value.real, -value.imag))


def _write_pairs(lines: _Lines) -> None:
    """Exchange Z[k] and Z[h - k], and write X[k] and X[h - k]."""
    half, threads, layout = lines.half, lines.grid.threads, lines.memory().layout
    count = (half + 1) // 2
    rounds = -(-count // threads)
    values = list(lines.registers)
    parts: list[Sequence[Any]] = [values]
    if layout.parts == 2:
        parts = [[value.real for value in values], [value.imag for value in values]]
    pairs = [[[vc.new_register(part[0].var_type) for _ in range(rounds)] for _ in range(2)] for part in parts]
    for part, (near, far) in zip(parts, pairs, strict=True):
        for chunk in range(layout.chunks):
            _store_pairs(lines, part, chunk)
            vc.barrier()
            _load_pairs(lines, near, far, chunk, rounds, count)
    for turn in range(rounds):
        k = hold(add(lines.thread, turn * threads))
        conditions: list[Any] = [lines.place.active]
        if (turn + 1) * threads > count:
            conditions.append(k < count)
        with guard(conditions):
            root = lines.root(k)
            if layout.parts == 1:
                a, b = pairs[0][0][turn], pairs[0][1][turn]
            else:
                a = hold(vc.to_complex(pairs[0][0][turn], pairs[1][0][turn]))
                b = hold(vc.to_complex(pairs[0][1][turn], pairs[1][1][turn]))
            left, right = spectrum_pair(a, b, root)
            lines.store(lines.first + k, left)
            lines.store(lines.first + half - k, right)


def _store_pairs(lines: _Lines, values: Sequence[Any], chunk: int) -> None:
    """Store a line, or the pairs of a piece of it, in workgroup memory; Z[0] is stored as Z[h] as well.

    Piece c of a line has the k from c q to (c + 1) q - 1, followed by the h - k in descending order, where
    q = h / 2 / pieces. Z[h / 2] is in no piece.
    """
    stage, half, shared = lines.split.stages[-1], lines.half, lines.memory()
    pieces = shared.layout.chunks
    size = half // 2 // pieces if pieces > 1 else half
    shared.wait_for_readers()
    for turn, butterfly in lines.butterflies(stage, everywhere=True):
        for i in range(stage.radix):
            value, bounds = values[turn * stage.radix + i], stage.input_bounds(turn, i)
            k = add(butterfly, i * stage.butterflies)
            near, low = add(lines.row, k), chunk * size
            with guard(_conditions_between(k, bounds, low, low + size)):
                shared.array[near - low] = value
            if pieces > 1:
                opposite = add(lines.row, half + size - low) - k
                with guard(_conditions_between(k, bounds, half - low - size + 1, half - low + 1)):
                    shared.array[opposite] = value
            if turn == i == chunk == 0:
                with guard([k == 0]):
                    shared.array[add(lines.row, size)] = value


def _conditions_between(k: Any, bounds: tuple[int, int], low: int, high: int) -> list[Any]:
    """Return the conditions of low <= k < high for a k that is known to be within `bounds`."""
    if bounds[1] < low or bounds[0] >= high:
        return [False]
    conditions = [k >= low] if bounds[0] < low else []
    return [*conditions, k < high] if bounds[1] >= high else conditions


def _load_pairs(lines: _Lines, near: list[Any], far: list[Any], chunk: int, rounds: int, count: int) -> None:
    threads, half, shared = lines.grid.threads, lines.half, lines.memory()
    pieces = shared.layout.chunks
    size = half // 2 // pieces if pieces > 1 else count
    low = chunk * size
    for turn in range(rounds):
        k = hold(add(lines.thread, turn * threads))
        bounds = turn * threads, (turn + 1) * threads - 1
        near_place = add(lines.row, k) - low
        far_place = near_place + size if pieces > 1 else add(lines.row, half) - k
        with guard(_conditions_between(k, bounds, low, low + size)):
            near[turn][:] = shared.array[near_place]
            far[turn][:] = shared.array[far_place]


# ---- inverse ---------------------------------------------------------------------------------------


def _trace_inverse(lines: _Lines, scale: float) -> None:
    stage = lines.split.stages[0]
    alone = lines.plan.half.layout is None
    for turn, butterfly in lines.butterflies(stage, everywhere=False):
        near, far = add(lines.first, butterfly), add(lines.first, lines.half) - butterfly
        for i in range(stage.radix):
            k = add(butterfly, i * stage.butterflies)
            a = lines.load(add(near, i * stage.butterflies))
            b = lines.load(far - i * stage.butterflies if i else far)
            if turn == i == 0:
                # the imaginary parts of X[0] and X[n / 2] are zero for real lines
                with guard([k == 0]):
                    a.imag, b.imag = 0, 0
            total, difference = combine(a, b)
            turned = hold(multiply_by_i(difference, 1))
            if alone:
                odd = rotate(turned, i, 2 * lines.half, 1)
            else:
                root = lines.root(k)
                odd = hold(turned * vc.to_complex(root.real, -root.imag))
            value = total + odd if scale == 1 else hold((total + odd) * scale)
            lines.registers[turn * stage.radix + i] = value
    transform(lines.registers, lines.exchange(), lines.thread, inverse=True)
    last = lines.split.stages[-1]
    if not lines.plan.linear:
        for turn, butterfly in lines.butterflies(last, everywhere=False):
            base = add(lines.first, butterfly)
            for i in range(last.radix):
                lines.store(add(base, i * last.butterflies), lines.registers[turn * last.radix + i])
        return
    shared = lines.memory()
    shared.wait_for_readers()
    for turn, butterfly in lines.butterflies(last, everywhere=True):
        base = add(lines.row, butterfly)
        for i in range(last.radix):
            shared.array[add(base, i * last.butterflies)] = lines.registers[turn * last.radix + i]
    # the padding behind the reals
    with guard([lines.thread == 0]):
        shared.array[add(lines.row, lines.half)] = 0
    lines.write_out()
