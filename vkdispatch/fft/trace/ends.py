"""Where a long transform's values come from and go to."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.record import record
from vkdispatch.fft.plan.indices import plus, times
from vkdispatch.fft.trace.io import IOProxy, reader, writer
from vkdispatch.fft.trace.ops import Line, Spot


@record
class Element:
    """A value of a long line.

    Attributes
    ----------
    outer, inner
        Which line along the axes before and behind the transformed one.
    index
        Position in the line.
    bounds
        Least and greatest position that it can be.
    flat
        Where it lies in memory in the natural layout.
    """

    outer: Any
    inner: Any
    index: Any
    bounds: tuple[int, int]
    flat: Any


Load = Callable[[Element], Any]
Store = Callable[[Element, Any], None]


@record
class Ends:
    """Where a long transform's values come from and go to.

    Attributes
    ----------
    read_types, write_types
        Annotations of the kernel arguments of either end.
    load, store
        Of these arguments, make what traces a read and a write.
    read_slot, write_slot
        Which of a program's own buffers it is, if it is none of the caller's.
    scale
        Where both ends are plain buffers of complex numbers: what the outcome is multiplied by.
    """

    read_types: tuple[Any, ...]
    write_types: tuple[Any, ...]
    load: Callable[[Sequence[Any]], Load]
    store: Callable[[Sequence[Any]], Store]
    read_slot: int | None = None
    write_slot: int | None = None
    scale: float | None = None


def scale_of(spec: Any) -> float:
    """Return what the outcome is multiplied by."""
    return spec.scale / spec.length if spec.inverse and spec.normalize else float(spec.scale)


def ends_of(spec: Any) -> tuple[Ends, int | None]:
    """Return where a transform's values come from and go to, and how many arguments belong to the output."""
    source, target = _proxies(spec)
    length, stride = spec.length, math.prod(spec.shape[spec.axis + 1 :])
    scale = scale_of(spec)

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
            value = value if scale == 1 else value * scale
            spot = spot_of(element, length, stride, layout)
            if element.bounds[1] < limit:
                write(spot, value)
            else:
                with vc.if_block(element.index < limit):
                    write(spot, value)

        return put

    same = source.map_func is None and target.map_func is None and not spec.separate
    maps = source.map_func is not None or target.map_func is not None
    kinds = {source.var_type, target.var_type, spec.compute_type}
    plain = not (maps or spec.r2c or spec.signal_range) and len(kinds) == 1
    ends = Ends(
        tuple(source.buffer_types),
        tuple(target.buffer_types),
        load,
        store,
        scale=scale if plain else None,
    )
    return ends, None if same else len(target.buffer_types)


def _proxies(spec: Any) -> tuple[IOProxy, IOProxy]:
    return (
        IOProxy(spec.input_map or spec.input_type, "input", words=not spec.r2c),
        IOProxy(spec.output_map or spec.output_type, "output", words=not spec.r2c),
    )


def spot_of(element: Element, length: int, stride: int, layout: Any) -> Spot:
    """Return what maps and buffers know of a value."""
    number = plus(times(element.outer, stride), element.inner)
    first = plus(times(element.outer, length * stride), element.inner)
    line = Line(length, stride, first, element.inner, number)
    flat = element.flat
    if layout != "natural":
        flat = plus(line.origin(layout), element.index)
    return Spot(line, element.index, element.bounds, flat)
