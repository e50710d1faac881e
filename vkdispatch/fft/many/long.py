"""Kernels of long lines, and of lengths with large prime factors."""

import math
from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.families.tuning import device_facts
from vkdispatch.fft.line.chirp import chirp_spectrum, chirp_table, conjugate_if
from vkdispatch.fft.line.convolved import LineBuffers, trace_bluestein, trace_rader
from vkdispatch.fft.line.pairs import make_pair_kernel
from vkdispatch.fft.many.passes import Lines, make_passes
from vkdispatch.fft.many.program import Program
from vkdispatch.fft.plan.columns import choose_radices
from vkdispatch.fft.plan.indices import add, hold, multiply
from vkdispatch.fft.plan.lengths import choose_padded_length
from vkdispatch.fft.plan.lines import plan_convolved, suits_pairs
from vkdispatch.fft.plan.long_lines import choose_factors
from vkdispatch.fft.plan.passes import Pass
from vkdispatch.fft.plan.transforms import Transform
from vkdispatch.fft.plan.tuning import tuning
from vkdispatch.fft.trace.ends import Element, Ends, Load, Store, ends_of
from vkdispatch.fft.trace.line_kernel import LineKernel, trace_line_kernel
from vkdispatch.fft.trace.ops import guard
from vkdispatch.fft.trace.words import annotation_of, unwrap
from vkdispatch.shader.shader_function import ShaderFunction


def make_long_fft(transform: Transform) -> Any:
    """Make the kernels of a transform that is not a single pass of small radices.

    Returns
    -------
    ShaderFunction or Program
        One or several kernels, which are called alike.
    """
    shape, axis = transform.shape, transform.axis
    found = make_column_fft(transform)
    if found is not None:
        return found
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
    # a CPU reads values in any order at the same speed
    whole = _reads_whole_lines(transform) and not device_facts().is_cpu

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
        raise ArgumentValueError(f"buffer_shape: lines of {length} values are too long to transform")
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
            return hold(hold(unwrap(arguments[0])[element.flat]) * hold(conjugate_if(spectrum, inverse)))

        return read

    def store_plain(arguments: Sequence[Any]) -> Store:
        return lambda element, value: unwrap(arguments[0]).__setitem__(element.flat, value)

    own = (annotation_of(kind),)
    there = Ends(ends.read_types, own, load_chirped, store_plain, write_slot=2)
    back = Ends(own, ends.write_types, load_product, store_chirped, read_slot=2)
    first = make_passes(f"{name}_there", around, factors, there, kind, inverse)
    second = make_passes(f"{name}_back", around, factors, back, kind, not inverse)
    between = tuple(max(a, b) for a, b in zip(first.scratch, second.scratch, strict=True))
    sizes = (*between, *([1] * (2 - len(between))), lines.outer * padded * lines.inner)
    return Program(name, (*first.steps, *second.steps), tuple((size, kind) for size in sizes), ends.outputs)
