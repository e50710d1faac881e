"""Calls of scans: running sums, products and extremes, and scans of one's own."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from . import truth
from .case import TRUTHS, Case, Sketch
from .truth import Expected, Refused, axes_of, epsilon, expected
from .values import COMPLEX, FLOATS, INTEGERS, NUMBERS, Array, host_of, name_of

_STEPS = 48


def _latest(x: Array) -> Array:
    places = np.maximum.accumulate(np.where(x != 0, np.arange(len(x)), -1))
    return np.where(places < 0, x[:1], x[places])


_ACCUMULATE: dict[str, Any] = {
    "cumsum": np.add.accumulate,
    "cumprod": np.multiply.accumulate,
    "cummax": np.maximum.accumulate,
    "cummin": np.minimum.accumulate,
    "latest": _latest,
}


def _identity(name: str, host: np.dtype[Any]) -> Any:
    if name in ("cumsum", "latest"):
        return host.type(0)
    if name == "cumprod":
        return host.type(1)
    if host.kind == "b":
        return host.type(name == "cummin")
    if host.kind in "iu":
        return np.iinfo(host).min if name == "cummax" else np.iinfo(host).max
    return host.type(-np.inf if name == "cummax" else np.inf)


def _default(name: str, x: Array) -> str:
    if name in ("cumsum", "cumprod"):
        return name_of(np.cumsum(np.empty(0, x.dtype)).dtype)
    return name_of(x.dtype)


def running(
    name: str,
    x: Array,
    axis: Any = None,
    dtype: str | None = None,
    exclusive: bool = False,
    reverse: bool = False,
    segments: Array | None = None,
) -> Expected:
    """Return the running sums, products or extremes of each line, and segment."""
    if axis is not None:
        (axis,) = axes_of(axis, x.ndim)
    kind = dtype or _default(name, x)
    host = host_of(kind)
    lines = x.reshape(-1) if axis is None else x
    axis = 0 if axis is None else axis
    begins = _begins(lines.shape, axis, segments)
    floats = host.kind in "fc" and name in ("cumsum", "cumprod")
    given = (
        truth.wide(lines.astype(host) if not (lines.dtype.kind in "fc" and floats) else lines)
        if floats
        else lines.astype(host)
    )
    compute = _line(name, exclusive, reverse, given.dtype)
    value = _along(compute, given, begins, axis)
    if not floats:
        return expected(value.astype(host))
    sizes = np.abs(given)
    one = epsilon(truth.accumulated(kind))
    limit = truth.most(truth.accumulated(kind)) / 4
    if name == "cumsum":
        magnitude = _along(
            _line("cumsum", exclusive, reverse, sizes.dtype),
            np.where(np.isfinite(sizes), sizes, 0),
            begins,
            axis,
        )
        error = one * (_STEPS + 2 * np.log2(lines.shape[axis] + 2)) * magnitude
    else:
        product = _line("cumprod", exclusive, reverse, sizes.dtype)
        magnitude = _along(product, np.maximum(np.where(np.isnan(sizes), 1, sizes), 1), begins, axis)
        small = _along(
            product, np.where(sizes == 0, 1, np.minimum(np.where(np.isnan(sizes), 1, sizes), 1)), begins, axis
        )
        error = 8 * one * (lines.shape[axis] + 2) * _along(product, sizes, begins, axis)
        magnitude = np.where(small < 16 * truth.least(truth.accumulated(kind)), np.inf, magnitude)
        if host.kind == "c":
            magnitude = np.where(np.isfinite(value), magnitude, np.inf)
    bound = error + epsilon(kind) * np.abs(value) + 4 * truth.least(kind)
    bound = np.where(magnitude > limit, np.inf, bound)
    if host.kind == "c":
        # one part may be a NaN, and the other a number
        bound = np.where(np.isfinite(value), bound, np.inf)
    return Expected(value, kind, np.nan_to_num(bound, nan=0.0, posinf=np.inf))


def _begins(shape: tuple[int, ...], axis: int, segments: Array | None) -> Array:
    """Return where segments begin, of the shape of the array."""
    flags = np.zeros(shape, bool)
    if segments is not None and segments.dtype == bool:
        if segments.size != flags.size:
            raise Refused("segments: another shape")
        flags = segments.reshape(shape).copy()
    elif segments is not None:
        if len(shape) != 1 and int(np.prod(shape, dtype=int)) != shape[axis]:
            raise Refused("segments: places need one row")
        places = segments[segments < shape[axis]]
        flags.reshape(-1)[places] = True
    if shape[axis]:
        np.moveaxis(flags, axis, 0)[0] = True
    return flags


def _line(name: str, exclusive: bool, reverse: bool, host: np.dtype[Any]) -> Any:
    accumulate = _ACCUMULATE[name]

    def compute(part: Array) -> Array:
        part = part[::-1] if reverse else part
        if host.kind == "b" and name in ("cummax", "cummin"):
            found = accumulate(part)
        else:
            found = accumulate(part) if name == "latest" else accumulate(part, dtype=host)
        if exclusive:
            found = np.concatenate([np.array([_identity(name, host)], host), found[:-1]])
        return np.asarray(found[::-1] if reverse else found)

    return compute


def _along(compute: Any, x: Array, begins: Array, axis: int) -> Array:
    found = np.empty(x.shape, x.dtype)
    source, target, starts = (np.moveaxis(each, axis, -1) for each in (x, found, begins))
    for place in np.ndindex(*source.shape[:-1]):
        line = source[place]
        if not len(line):
            continue
        cuts = [*np.flatnonzero(starts[place]), len(line)]
        for first, last in pairwise(cuts):
            target[(*place, slice(first, last))] = compute(line[first:last])
    return found


# -- writers


def _scan(sketch: Sketch, name: str) -> Case:
    own = name in ("total", "latest")
    sums = name in ("cumsum", "cumprod")
    kind = sketch.kind(("int32", "float32", "int64", "uint8", "float64") if own else NUMBERS)
    shape = sketch.shape()
    fill = sketch.pick(["small", "few", "normal", "wild", "flags"] if not own else ["small", "flags"])
    if name == "cumprod":
        fill = sketch.pick(["few", "small", "wild"])
    given, host = sketch.input(kind, shape, fill)
    case = sketch.case
    options = ""
    axis = "None"
    if sketch.chance(75):
        axis, right = sketch.axis(len(shape))
        sketch.option("axis", axis)
        if not right:
            sketch.refuses("axis")
        options += f", axis={axis}"
    if not own and sketch.wrong_dtype():
        options += ", dtype=None"
    elif not own and sketch.chance(20):
        fits = (
            COMPLEX
            if kind in COMPLEX
            else FLOATS
            if kind in FLOATS or fill == "wild"
            else (*INTEGERS, *FLOATS)
        )
        chosen = sketch.kind(fits)
        sketch.option("dtype", sketch.pick([f"vd.{chosen}", f"np.{chosen}"]))
        options += f", dtype={chosen!r}"
    for flag in ("exclusive", "reverse"):
        if sketch.flag(flag):
            options += f", {flag}=True"
    if sketch.chance(25):
        options += _segments(sketch, shape, axis)
    inner = {"total": "cumsum", "latest": "latest"}.get(name, name)
    if own:
        options += "" if "dtype" in options else f", dtype={kind!r}"
    around = sketch.output_map(kind) if not sums and not own and "dtype" not in options else "{}"
    if not case.truth.startswith("refuse"):
        case.truth = around.format(f"scans.running({inner!r}, {host}{options})")
    sketch.out(inputs=list(case.arrays))
    if own:
        sketch.finish([given])
        case.call = case.call.replace("vd.scan(", f"maps.scan_of({name!r}, {kind!r})(", 1)
        case.signature = "vd.ScanFunction.__call__"
        return case
    return sketch.finish([given])


def _segments(sketch: Sketch, shape: tuple[int, ...], axis: str) -> str:
    """Add segments: flags, or places for one row; rarely wrong ones."""
    length = int(np.prod(shape, dtype=int))
    if sketch.chance(5):
        name = sketch.array("bool_", (length + 1,), "flags")
        sketch.option("segments", name.upper())
        sketch.refuses("segments: another shape")
        return ""
    if len(shape) == 1 and sketch.chance(50):
        kind = sketch.kind(("int32", "uint32", "int64", "uint64"))
        name = sketch.array(kind, (sketch.pick([1, 3, 9, 40]),), "starts", length + 2)
    elif sketch.chance(5):
        name = sketch.array("float32", shape, "flags")
        sketch.option("segments", name.upper())
        sketch.refuses("segments: floats")
        return ""
    else:
        name = sketch.array("bool_", shape, "flags")
    sketch.option("segments", name.upper())
    return f", segments={name}"


def _own(sketch: Sketch) -> Case:
    return _scan(sketch, sketch.pick(["total", "latest"]))


FUNCTIONS = {
    "vd.cumsum": lambda sketch: _scan(sketch, "cumsum"),
    "vd.cumprod": lambda sketch: _scan(sketch, "cumprod"),
    "vd.cummax": lambda sketch: _scan(sketch, "cummax"),
    "vd.cummin": lambda sketch: _scan(sketch, "cummin"),
    "vd.scan": _own,
}
TRUTHS["scans"] = __import__(__name__, fromlist=["scans"])
