"""Kernels of long lines, complex and real, and of lengths with large prime factors."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType, complex32
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.fft.line.real import combine, spectrum_pair
from vkdispatch.fft.line.special_lengths import (
    LineBuffers,
    chirp_spectrum,
    chirp_table,
    conjugate_if,
    make_pair_kernel,
    trace_bluestein,
    trace_rader,
)
from vkdispatch.fft.many.passes import Lines, Program, Step, make_passes
from vkdispatch.fft.plan.passes import Pass, Transform, plan_convolved, suits_pairs
from vkdispatch.fft.plan.planes import choose_factors, choose_radices
from vkdispatch.fft.plan.planner import get_planner
from vkdispatch.fft.plan.stages import add, choose_padded_length, hold, multiply
from vkdispatch.fft.plan.tuning import tuning
from vkdispatch.fft.trace.io import Element, Ends, Load, Store, ends_of
from vkdispatch.fft.trace.line_kernel import LineKernel, buffer_of, trace_line_kernel
from vkdispatch.fft.trace.transform import guard, multiply_by_i, root_power
from vkdispatch.shader.shader_function import ShaderFunction

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
    whole = _reads_whole_lines(transform) and get_planner().coalesces

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
# With the names of `line.real`, the passes write Z[k] to the place of X[k], and another kernel computes
# X[k] and X[h - k] from Z[k] and Z[h - k]. In an inverse transform that kernel comes first.


def make_long_real_fft(transform: Transform) -> Program | None:
    """Make the kernels of a real transform of even length in place, or None if there are none."""
    half, kind = transform.length // 2, transform.compute_type
    # the buffer must hold the values between the kernels without loss
    if (
        not get_planner().has_long_reals
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
