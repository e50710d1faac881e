"""Transforms for which there is no kernel of one pass: long lines, and lengths with large prime factors."""

import math
from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.facts import device_facts
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.fft.line.chirp import chirp_spectrum, chirp_table, conjugated
from vkdispatch.fft.line.convolved import Whole, trace_bluestein, trace_rader
from vkdispatch.fft.line.pairs import make_pair_kernel
from vkdispatch.fft.many.passes import Lines, make_passes
from vkdispatch.fft.many.program import Program
from vkdispatch.fft.plan.columns import split_columns
from vkdispatch.fft.plan.indices import held, plus, times
from vkdispatch.fft.plan.lengths import padded_length
from vkdispatch.fft.plan.lines import plan_convolved, suits_pairs
from vkdispatch.fft.plan.long_lines import split_length
from vkdispatch.fft.plan.passes import Pass
from vkdispatch.fft.trace.ends import Element, Ends, Load, Store, ends_of, scale_of
from vkdispatch.fft.trace.line_kernel import LineKernel, traced
from vkdispatch.fft.trace.ops import guard
from vkdispatch.fft.trace.words import argument_of, values_in
from vkdispatch.shader.shader_function import ShaderFunction

# Fewer values are soon transformed in any way, and passes of columns take longer to compile than others.
_MANY_VALUES = 1 << 16


def long_fft(spec: Any) -> Any:
    """Make the kernels of a transform that one pass cannot do by radices; see `Transform`.

    Returns
    -------
    ShaderFunction or Program
        One kernel, or several; they are called alike.
    """
    shape, axis = spec.shape, spec.axis
    found = column_fft(spec)
    if found is not None:
        return found
    ends, outputs = ends_of(spec)
    factors = split_length(spec.length, spec.compute_type)
    if factors is not None:
        return _in_passes(spec, factors, ends, outputs)
    name = _name_of(spec)
    if suits_pairs(shape, axis, spec.compute_type) and _reads_whole_lines(spec):
        return make_pair_kernel(
            name,
            (math.prod(shape[:axis]), spec.length),
            spec.input_type,
            spec.output_type,
            spec.inverse,
            scale_of(spec),
            spec.separate,
        )
    convolved = plan_convolved(shape, axis, spec.compute_type)
    if convolved is not None:
        return _one_kernel(name, spec, ends, outputs, *convolved)
    return _long_convolution(name, spec, _lines_of(spec), ends, outputs)


def column_fft(spec: Any) -> Program | None:
    """Make the kernels of a transform of many values in passes of columns; None where there are none."""
    if math.prod(spec.shape) < _MANY_VALUES:
        return None
    ends, outputs = ends_of(spec)
    if ends.scale is None:
        return None
    factors = split_columns(spec.length, _lines_of(spec).inner, spec.compute_type)
    return None if factors is None else _in_passes(spec, factors, ends, outputs)


def _in_passes(spec: Any, factors: tuple[int, ...], ends: Ends, outputs: int | None) -> Program:
    name = _name_of(spec)
    plan = make_passes(name, _lines_of(spec), factors, ends, spec.compute_type, spec.inverse)
    return Program(name, plan.steps, tuple((size, spec.compute_type) for size in plan.scratch), outputs)


def _name_of(spec: Any) -> str:
    return f"{'ifft' if spec.inverse else 'fft'}_{'x'.join(map(str, spec.shape))}_axis{spec.axis}"


def _lines_of(spec: Any) -> Lines:
    return Lines(math.prod(spec.shape[: spec.axis]), spec.length, math.prod(spec.shape[spec.axis + 1 :]))


def _one_kernel(
    name: str, spec: Any, ends: Ends, outputs: int | None, plan: Pass, rader: bool
) -> ShaderFunction:
    """Rader's or Bluestein's algorithm in one kernel."""
    # CPUs read values in any order alike
    whole = _reads_whole_lines(spec) and not device_facts().cpu

    def body(kernel: LineKernel, *arguments: Any) -> None:
        written = arguments[: len(ends.write_types)]
        read = arguments if outputs is None else arguments[len(ends.write_types) :]
        if rader and whole:
            trace_rader(kernel, Whole(read[0], written[0], spec.output_type, scale_of(spec)), spec.inverse)
        elif rader:
            trace_rader(kernel, (ends.load(read), ends.store(written)), spec.inverse)
        else:
            trace_bluestein(kernel, ends.load(read), ends.store(written), spec.inverse)

    types = ends.write_types if outputs is None else (*ends.write_types, *ends.read_types)
    return traced(name, types, plan, body, returns=True)


def _reads_whole_lines(spec: Any) -> bool:
    """Whether lines lie one after another in buffers that are read and written as they are."""
    whole = spec.input_type is not None and spec.output_type is not None and spec.signal_range is None
    return whole and not spec.r2c and math.prod(spec.shape[spec.axis + 1 :]) == 1


def _long_convolution(name: str, spec: Any, lines: Lines, ends: Ends, outputs: int | None) -> Program:
    """Bluestein's algorithm over transforms of several passes."""
    length, padded, kind = spec.length, padded_length(spec.length), spec.compute_type
    factors = split_length(padded, kind)
    if factors is None:
        raise ArgumentValueError(f"buffer_shape: lines of {length} values are too long to transform")
    around = Lines(lines.outer, padded, lines.inner)

    def chirped(element: Element, value: Any) -> Any:
        chirp = vc.constant_array(chirp_table(length, kind))[element.index]
        return held(value * held(conjugated(chirp, spec.inverse)))

    def within(element: Element) -> Element:
        flat = plus(times(plus(times(element.outer, length), element.index), lines.inner), element.inner)
        return Element(element.outer, element.inner, element.index, element.bounds, flat)

    def load_chirped(arguments: Sequence[Any]) -> Load:
        load = ends.load(arguments)

        def read(element: Element) -> Any:
            value = vc.new_register(kind)
            if element.bounds[0] < length:
                with guard([element.index < length]):
                    value[:] = chirped(element, load(within(element)))
            return value

        return read

    def store_chirped(arguments: Sequence[Any]) -> Store:
        store = ends.store(arguments)

        def write(element: Element, value: Any) -> None:
            if element.bounds[0] < length:
                with guard([element.index < length]):
                    store(within(element), chirped(element, value))

        return write

    def load_product(arguments: Sequence[Any]) -> Load:
        def read(element: Element) -> Any:
            spectrum = vc.constant_array(chirp_spectrum(length, padded, kind))[element.index]
            return held(
                held(values_in(arguments[0])[element.flat]) * held(conjugated(spectrum, spec.inverse))
            )

        return read

    def store_plain(arguments: Sequence[Any]) -> Store:
        return lambda element, value: values_in(arguments[0]).__setitem__(element.flat, value)

    own = (argument_of(kind),)
    there = Ends(ends.read_types, own, load_chirped, store_plain, write_slot=2)
    back = Ends(own, ends.write_types, load_product, store_chirped, read_slot=2)
    first = make_passes(f"{name}_there", around, factors, there, kind, spec.inverse)
    second = make_passes(f"{name}_back", around, factors, back, kind, not spec.inverse)
    between = tuple(max(a, b) for a, b in zip(first.scratch, second.scratch, strict=True))
    sizes = (*between, *([1] * (2 - len(between))), lines.outer * padded * lines.inner)
    return Program(name, (*first.steps, *second.steps), tuple((size, kind) for size in sizes), outputs)
