"""Maps of which the result is known, for inputs and outputs of functions on arrays."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import vkdispatch as vd
import vkdispatch.codegen as vc

from .values import Array, host_of, kind_of


@functools.cache
def twice(kind: str) -> Any:
    """Return the map of x + x."""

    def twice(value: Any) -> Any:
        return value + value

    return vd.map(twice, kind_of(kind), [kind_of(kind)])


@functools.cache
def total(kind: str) -> Any:
    """Return the map of x + y."""

    def total(value: Any, other: Any) -> Any:
        return value + other

    return vd.map(total, kind_of(kind), [kind_of(kind), kind_of(kind)])


@functools.cache
def plus(kind: str) -> Any:
    """Return the map that adds the element of a buffer at the mapped index."""

    def plus(value: Any, addend: Any) -> Any:
        return value + addend[vd.mapped_index()]

    buffer: Any = vc.Buff
    return vd.map(plus, kind_of(kind), [kind_of(kind), buffer[kind_of(kind)]])


@functools.cache
def convert(kind: str, to: str) -> Any:
    """Return the map that converts numbers."""

    def convert(value: Any) -> Any:
        return value.to_dtype(vd.base.dtype.compute_type(kind_of(to)))

    return vd.map(convert, kind_of(to), [kind_of(kind)])


@functools.cache
def positive(kind: str) -> Any:
    """Return the map of x > 0."""

    def positive(value: Any) -> Any:
        return value > 0

    return vd.map(positive, vd.bool_, [kind_of(kind)])


# -- the same on the host


def host_twice(x: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(x + x)


def host_total(x: Array, y: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(x + y)


def host_convert(x: Array, to: str) -> Array:
    with np.errstate(all="ignore"):
        return x.astype(host_of(to))


def host_positive(x: Array) -> Array:
    return np.asarray(x > 0)


# -- scans and reductions of one's own


@functools.cache
def scan_of(name: str, kind: str) -> Any:
    """Return a scan: "total", or "latest", the last one that is not 0."""
    wanted = kind_of(kind)

    def total(a: Any, b: Any) -> Any:
        return a + b

    def latest(a: Any, b: Any) -> Any:
        return vc.select(b != 0, b, a)

    function = total if name == "total" else latest
    function.__annotations__ = {"a": wanted, "b": wanted, "return": wanted}
    return vd.scan(function, identity=0)


@functools.cache
def reduction_of(name: str, kind: str, axes: tuple[int, ...] | None) -> Any:
    """Return a reduction of one's own: "total", "largest", or "squares", which maps first."""
    wanted = kind_of(kind)
    buffer: Any = vc.Buff

    def total(a: Any, b: Any) -> Any:
        return a + b

    def largest(a: Any, b: Any) -> Any:
        return vc.max(a, b)

    def squares(x: Any) -> Any:
        value = x[vd.reduce.mapped_io_index()].to_register()
        return value * value

    chosen = None if axes is None else list(axes)
    if name == "squares":
        squares.__annotations__ = {"x": buffer[wanted], "return": wanted}
        return vd.reduce.map_reduce(vd.reduce.SubgroupAdd, axes=chosen)(squares)
    function = total if name == "total" else largest
    function.__annotations__ = {"a": wanted, "b": wanted, "return": wanted}
    return vd.reduce.reduce(0 if name == "total" else "-inf", axes=chosen)(function)
