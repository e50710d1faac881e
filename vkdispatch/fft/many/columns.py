"""Passes of transforms on CPU drivers, without barriers: each invocation transforms neighbouring columns.

These drivers load and store for one invocation after another, and the cost of an access depends little on its
bytes. So an invocation transforms two or four neighbouring columns, which it reads and writes as vectors of
64-bit words. The invocations of a subgroup are the lanes of a processor's register, and exchange values with
one instruction. So up to eight of them share columns: invocation l of L has rows l, l + L, ... With
k = k1 + R k2, columns of R L values have the transform

    X[k] = sum over l of exp(-2 pi i l k2 / L) exp(-2 pi i l k1 / (R L)) (transform of l's rows)[k1]

whose outer sum is a transform across the subgroup. The memory between passes stays in the cache of a core.
"""

import cmath
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import complex64, float32, uint32
from vkdispatch.codegen.abbreviations import Const
from vkdispatch.fft.plan.columns import VECTORS, Columns
from vkdispatch.fft.plan.indices import add, hold, multiply
from vkdispatch.fft.plan.tuning import tuning
from vkdispatch.fft.trace.butterflies import dft, rotate
from vkdispatch.fft.trace.line_kernel import buffer_of
from vkdispatch.fft.trace.ops import guard
from vkdispatch.fft.trace.roots import root_power, second_power
from vkdispatch.fft.trace.transform import Powers
from vkdispatch.shader.shader_function import ShaderFunction


def make_column_kernel(name: str, plan: Columns, inverse: bool, scale: float) -> ShaderFunction:
    """Make the kernel of a pass, of the buffers and the number of the first line.

    The last pass multiplies by `scale`.
    """
    annotations = [buffer_of(VECTORS[plan.width]), buffer_of(VECTORS[plan.words])]
    if plan.last:
        annotations.reverse()
    total = plan.outer * plan.groups * plan.lanes
    with vc.shader_context(vc.ShaderFlags.NO_EXEC_BOUNDS) as context:
        *buffers, start = context.declare_input_arguments([*annotations, Const[uint32]])
        for buffer in buffers:
            vc.get_builder().take_argument_as(buffer, complex64)
        source, target = reversed(buffers) if plan.last else buffers
        number = _invocation(plan)
        with guard([number < total] if total % tuning.column_group else []):
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
        columns = [dft([vector[w] for vector in vectors], self._sign) for w in range(plan.width)]
        if plan.lanes > 1:
            columns = self._across(columns)
        if plan.last:
            self._write_last(columns, target, scale)
        elif plan.stride == 1:
            self._write_rows(columns, target)
        else:
            self._write_columns(columns, target)

    def _across(self, columns: list[list[Any]]) -> list[list[Any]]:
        """Transform across the subgroup."""
        plan = self._plan
        powers = self._powers(self._lane, 0, plan.radix)
        columns = [[hold(value * powers[i]) if i else value for i, value in enumerate(c)] for c in columns]
        distance = plan.lanes // 2
        while distance:
            step = _Step(self._lane, distance, self._sign)
            columns = [[step.exchange(value) for value in column] for column in columns]
            distance //= 2
        return columns

    def _powers(self, exponent: Any, beyond: int, denominator: int) -> Powers:
        """Return the powers of exp(-+2 pi i (exponent + beyond) / denominator)."""
        rows = self._plan.rows
        roots = {}
        for power in sorted({1, second_power(rows)}):
            root = root_power(multiply(exponent, power), denominator, complex64, self._inverse)
            roots[power] = rotate(root, power * beyond, denominator, self._sign)
        return Powers(roots, rows)

    def _factors(self, remainder: Any, beyond: int) -> list[Any]:
        """Return the twiddle factors of column `remainder + beyond`; None for a 1."""
        plan = self._plan
        circle = plan.radix * plan.rest
        powers = self._powers(remainder, beyond, circle)
        if plan.lanes == 1:
            return [None, *(powers[i] for i in range(1, plan.rows))]
        exponent = add(remainder, beyond) * (self._k2 * plan.rows)
        first = root_power(hold(exponent), circle, complex64, self._inverse)
        return [first, *(hold(first * powers[i]) for i in range(1, plan.rows))]

    # -- writes

    def _write_last(self, columns: list[list[Any]], target: Any, scale: float) -> None:
        plan = self._plan
        row = add(multiply(self._caller_line, plan.radix), multiply(self._k2, plan.rows))
        begin = hold(add(multiply(row, plan.groups), self._group))
        for i in range(plan.rows):
            row = [each[i] if scale == 1 else hold(each[i] * scale) for each in columns]
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
        columns = [_multiply_by_factors(each, factors) for each in columns]
        row = add(
            multiply(add(multiply(self._line, plan.rest), remainder), plan.radix),
            multiply(self._k2, plan.rows),
        )
        begin = hold(add(multiply(row, behind), inner))
        for i in range(plan.rows):
            target[add(begin, i * behind)] = _pack([each[i] for each in columns])


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
    """Return the value of this lane."""
    found: Any = vc.new_register(float32, values[-1])
    for number, value in enumerate(values[:-1]):
        found = hold(vc.select(lane == number, value, found))
    return found


def _reverse_bits(lane: Any, lanes: int) -> Any:
    if isinstance(lane, int):
        return lane
    found: Any = 0
    bits = lanes.bit_length() - 1
    for bit in range(bits):
        found = add(found, (lane >> bit & 1) << (bits - 1 - bit))
    return hold(found)


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
