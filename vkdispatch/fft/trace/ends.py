"""The two ends of a long transform: what reads its values, and what writes them."""

from collections.abc import Callable, Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.record import record
from vkdispatch.fft.plan.indices import add, multiply
from vkdispatch.fft.plan.transforms import Transform
from vkdispatch.fft.trace.io import IOProxy, reader, writer
from vkdispatch.fft.trace.ops import Layout, Line, Spot


@record
class Element:
    """A value of a long line.

    Attributes
    ----------
    outer, inner
        Index of the line along the axes before and behind the transformed one.
    index
        Position in the line.
    bounds
        Least and greatest position that it can be.
    flat
        Flat index in the natural layout.
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
    """The two ends of a long transform.

    Attributes
    ----------
    read_types, write_types
        Annotations of the kernel arguments of either end.
    load, store
        Functions of these arguments that return what traces a read or a write.
    read_slot, write_slot
        Number of the scratch buffer, if it is not the caller's.
    scale
        Factor of the result, where both ends are buffers of the computation's type; else None.
    outputs
        How many of a call's arguments belong to the output; None: one buffer is both ends.
    """

    read_types: tuple[Any, ...]
    write_types: tuple[Any, ...]
    load: Callable[[Sequence[Any]], Load]
    store: Callable[[Sequence[Any]], Store]
    read_slot: int | None = None
    write_slot: int | None = None
    scale: float | None = None
    outputs: int | None = None


def ends_of(transform: Transform) -> Ends:
    """Return the ends of a transform."""
    source, target = _proxies(transform)
    length, stride = transform.length, transform.stride
    scale = transform.factor

    def load(arguments: Sequence[Any]) -> Load:
        source.bind(arguments)
        read = reader(
            source,
            transform.compute_type,
            r2c=transform.r2c,
            inverse=transform.inverse,
            signal_range=transform.signal_range,
        )
        layout: Layout = "natural" if not transform.r2c else "half" if transform.inverse else "real"
        return lambda element: read(spot_of(element, length, stride, layout))

    def store(arguments: Sequence[Any]) -> Store:
        target.bind(arguments)
        write = writer(target, r2c=transform.r2c, inverse=transform.inverse)
        layout: Layout = "natural" if not transform.r2c else "real" if transform.inverse else "half"
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

    in_place = not transform.is_mapped and not transform.separate
    kinds = {source.var_type, target.var_type, transform.compute_type}
    plain = not (transform.is_mapped or transform.r2c or transform.signal_range) and len(kinds) == 1
    return Ends(
        tuple(source.buffer_types),
        tuple(target.buffer_types),
        load,
        store,
        scale=scale if plain else None,
        outputs=None if in_place else len(target.buffer_types),
    )


def _proxies(transform: Transform) -> tuple[IOProxy, IOProxy]:
    return (
        IOProxy(transform.input_map or transform.input_type, "input", words=not transform.r2c),
        IOProxy(transform.output_map or transform.output_type, "output", words=not transform.r2c),
    )


def spot_of(element: Element, length: int, stride: int, layout: Layout) -> Spot:
    """Return a value as maps and buffers see it."""
    number = add(multiply(element.outer, stride), element.inner)
    first = add(multiply(element.outer, length * stride), element.inner)
    line = Line(length, stride, first, element.inner, number)
    flat = element.flat
    if layout != "natural":
        flat = add(line.origin(layout), element.index)
    return Spot(line, element.index, element.bounds, flat)
