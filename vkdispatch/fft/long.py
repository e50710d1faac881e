"""Transforms for which there is no kernel of one pass: long lines, and lengths with large prime factors."""

import functools
from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.fft.io import IOProxy, reader, writer
from vkdispatch.fft.ops import Line, Spot
from vkdispatch.fft.passes import Element, Ends, Lines, Load, Store, make_passes, split_length
from vkdispatch.fft.program import Program, product
from vkdispatch.fft.stages import plus, times


def long_fft(spec: Any) -> Any:
    """Make the kernels of a transform that one pass cannot do; see `Transform`."""
    factors = split_length(spec.length, spec.compute_type)
    ends, outputs = ends_of(spec)
    shape, axis = spec.shape, spec.axis
    lines = Lines(product(shape[:axis]), spec.length, product(shape[axis + 1 :]))
    sizes = "x".join(map(str, shape))
    name = f"fft_{sizes}_axis{axis}"
    if factors is None:
        raise NotImplementedError
    plan = make_passes(name, lines, factors, ends, spec.compute_type, spec.inverse)
    scratch = tuple((size, spec.compute_type) for size in plan.scratch)
    return Program(name, plan.steps, scratch, outputs)


def ends_of(spec: Any) -> tuple[Ends, int | None]:
    """Where a transform's values come from and go to, and how many arguments belong to the output."""
    source, target = _proxies(spec)
    length, stride = spec.length, product(spec.shape[spec.axis + 1 :])
    scale = 1.0 / length if spec.inverse and spec.normalize else None

    def load(arguments: Sequence[Any]) -> Load:
        source.bind(arguments)
        read = reader(
            source, spec.compute_type, r2c=spec.r2c, inverse=spec.inverse, signal_range=spec.signal_range
        )
        layout = "natural" if not spec.r2c else "half" if spec.inverse else "real"
        return lambda element: read(spot_of(element, length, stride, layout))

    def store(arguments: Sequence[Any]) -> Store:
        target.bind(arguments)
        write = writer(target, r2c=spec.r2c, inverse=spec.inverse)
        layout = "natural" if not spec.r2c else "real" if spec.inverse else "half"
        limit = length // 2 + 1 if layout == "half" else length

        def put(element: Element, value: Any) -> None:
            if element.bounds[0] >= limit:
                return
            value = value if scale is None else value * scale
            spot = spot_of(element, length, stride, layout)
            if element.bounds[1] < limit:
                write(spot, value)
            else:
                with vc.if_block(element.index < limit):
                    write(spot, value)

        return put

    same = source.map_func is None and target.map_func is None and not spec.separate
    ends = Ends(tuple(source.buffer_types), tuple(target.buffer_types), load, store, same)
    return ends, None if same else len(target.buffer_types)


def _proxies(spec: Any) -> tuple[IOProxy, IOProxy]:
    return (
        IOProxy(spec.input_map or spec.input_type, "input"),
        IOProxy(spec.output_map or spec.output_type, "output"),
    )


def spot_of(element: Element, length: int, stride: int, layout: Any) -> Spot:
    """What maps and buffers know of a value."""
    number = plus(times(element.outer, stride), element.inner)
    first = plus(times(element.outer, length * stride), element.inner)
    line = Line(length, stride, first, element.inner, number)
    flat = element.flat
    if layout != "natural":
        flat = plus(line.origin(layout), element.index)
    return Spot(line, element.index, element.bounds, flat)
