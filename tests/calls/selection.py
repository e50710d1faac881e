"""Calls of selection: topk, unique, compact, nonzero, searchsorted, histogram, bincount."""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import Any

import numpy as np

from . import sorts, truth
from .case import TRUTHS, Case, Sketch
from .truth import Expected, Refused, axes_of, bits, epsilon, expected
from .values import FLOATS, INTEGERS, KINDS, NUMBERS, REALS, VECTORS, Array, host_of, name_of, parts_of


def topk(x: Array, k: Any, kind: str, axis: Any = -1, largest: bool = True) -> tuple[Expected, Expected]:
    (axis,) = axes_of(axis, x.ndim)
    if isinstance(k, bool):
        raise Refused("k")
    k = operator.index(k)
    if not 0 <= k <= x.shape[axis]:
        raise Refused("k")
    order = sorts.positions(x, axis, largest)[0]
    found = np.take(order, np.arange(k), axis)
    return bits(np.take_along_axis(x, found, axis), kind), expected(found)


def unique(
    x: Array, index: bool, inverse: bool, counts: bool, equal_nan: bool, size: int | None, fill: Any
) -> tuple[Any, ...]:  # fmt: skip
    found = [np.asarray(each) for each in np.unique(x, True, True, True, equal_nan=equal_nan)]
    found[2] = found[2].reshape(x.shape)
    if size is not None:
        if not x.size and size and fill is None:
            raise Refused("size")
        have = min(size, len(found[0]))
        values, places, number = found[0][:have], found[1][:have], found[3][:have]
        more = size - have
        filling = (
            (found[0][:1] if len(found[0]) else np.zeros(1, x.dtype))
            if fill is None
            else np.array([fill], x.dtype)
        )
        found[0] = np.concatenate([values, np.repeat(filling, more)])
        first = found[1][:1] if len(found[1]) else np.zeros(1, np.int64)
        found[1] = np.concatenate([places, np.repeat(first, more)])
        found[3] = np.concatenate([number, np.zeros(more, np.int64)])
    asked = [True, index, inverse, counts]
    return tuple(each for each, want in zip(found, asked, strict=True) if want)


def compact(x: Array, condition: Array, kind: str, size: int | None = None, fill: Any = 0) -> Any:
    parts = parts_of(kind)
    flat = x.reshape(-1, *parts)
    keep = condition.reshape(-1) != 0
    if len(keep) > len(flat):
        raise Refused("condition")
    kept = flat[: len(keep)][keep]
    if size is None:
        return bits(kept, kind)
    filling = np.full((max(0, size - len(kept)), *parts), fill).astype(x.dtype)
    return bits(np.concatenate([kept[:size], filling]), kind), np.array([len(kept)])


def nonzero(x: Array, size: int | None = None, fill: int = 0) -> tuple[Array, ...]:
    if not x.ndim:
        raise Refused("x")
    found = np.nonzero(x)
    if size is None:
        return found
    return tuple(
        np.concatenate([each[:size], np.full(max(0, size - len(each)), fill, np.int64)]) for each in found
    )


def searchsorted(array: Array, wanted: Array, side: str = "left", sorter: Any = None) -> Array:
    if array.ndim != 1:
        raise Refused("sorted")
    if sorter is not None and (
        sorter.shape != array.shape or (sorter.size and (sorter.min() < 0 or sorter.max() >= sorter.size))
    ):
        raise Refused("sorter")
    return np.asarray(
        np.searchsorted(array, wanted, side, None if sorter is None else sorter.astype(np.int64))
    )


def histogram(
    x: Array, bins: Any = 10, range: Any = None, density: bool = False, weights: Array | None = None
) -> tuple[Any, Any]:
    if weights is not None and weights.shape != x.shape:
        raise Refused("weights")
    given = x.astype(np.uint8) if x.dtype == bool else x
    if x.dtype == np.float16 and np.ndim(bins):
        given = x.astype(np.float32)  # NumPy 2.4 miscounts halves among edges of float64
    counts, edges = np.histogram(given, bins, range)
    if weights is None and not density:
        return counts, edges
    if weights is not None:
        kind = "int64" if weights.dtype == bool else name_of(weights.dtype)
        numbers = weights.astype(
            np.longdouble if weights.dtype.kind == "f" else np.int64 if kind == "int64" else weights.dtype
        )
        places = np.searchsorted(edges, given.reshape(-1), "right") - 1
        places[given.reshape(-1) == edges[-1]] = len(edges) - 2
        inside = (places >= 0) & (places < len(edges) - 1) & ~np.isnan(given.reshape(-1).astype(float))
        sums = np.zeros(len(edges) - 1, numbers.dtype)
        np.add.at(sums, places[inside], numbers.reshape(-1)[inside])
        sizes = np.zeros(len(edges) - 1, np.longdouble)
        np.add.at(sizes, places[inside], np.abs(numbers.reshape(-1)[inside].astype(np.longdouble)))
    else:
        kind, sums, sizes = "int64", counts, counts.astype(np.longdouble)
    if density:
        widths = np.diff(edges).astype(np.longdouble)
        value = sums / widths / np.sum(sums)
        scale = sizes / widths / np.abs(np.sum(sums))
        return Expected(value, "float64", 1e-12 * (scale + np.abs(value)) + 1e-300), edges
    if host_of(kind).kind in "iu":
        return sums.astype(host_of(kind)), edges
    error = epsilon(kind) * np.abs(sums) + sizes * 2.0**-60 + truth.least(kind)
    bound = np.where(sizes > truth.most(kind) / 4, np.inf, error)
    return Expected(sums, kind, bound), edges


def bincount(x: Array, weights: Array | None = None, minlength: Any = 0, size: int | None = None) -> Any:
    if isinstance(minlength, bool):
        raise Refused("minlength")
    least = operator.index(minlength)
    if least < 0 or (size is None and x.size and x.min() < 0):
        raise Refused("x, minlength")
    flat = x.reshape(-1)
    if weights is not None and weights.shape != x.shape:
        raise Refused("weights")
    count = max(int(flat.max()) + 1 if flat.size else 0, least) if size is None else max(size, least)
    inside = (flat >= 0) & (flat < count)
    places = flat[inside].astype(np.int64)
    if weights is None:
        return np.bincount(places, minlength=count)
    sums, sizes = np.zeros(count, np.longdouble), np.zeros(count, np.longdouble)
    np.add.at(sums, places, weights.reshape(-1)[inside].astype(np.longdouble))
    np.add.at(sizes, places, np.abs(weights.reshape(-1)[inside].astype(np.longdouble)))
    bound = np.where(sizes > 1e307, np.inf, 2.0**-51 * np.abs(sums) + sizes * 2.0**-60)
    return Expected(sums, "float64", bound)


# -- writers


def _topk(sketch: Sketch) -> Case:
    kind, shape = sketch.kind(NUMBERS), sketch.shape(1)
    given, host = sketch.input(kind, shape, sketch.pick(["normal", "few", "wild", "small"]))
    axis, right = sketch.axis(len(shape), none=False) if sketch.chance(50) else ("-1", True)
    length = shape[int(axis)] if right and axis.lstrip("-").isdigit() else shape[-1]
    k: Any = sketch.pick([1, 2, 0, 5, 16, 64, length])
    if k > length or sketch.chance(4):
        k = sketch.pick([length, length, length + 1, -1, 1.0, True])
    options = ""
    if axis != "-1":
        sketch.option("axis", axis)
        options = f", axis={axis}"
    if sketch.chance(30):
        sketch.option("largest", "False")
        options += ", largest=False"
    if not right:
        sketch.refuses("axis")
    else:
        sketch.case.truth = f"selection.topk({host}, {k}, {kind!r}{options})"
    if sketch.chance(12) and right:
        _pair_out(sketch)
    return sketch.finish([given, str(k)])


def _pair_out(sketch: Sketch) -> None:
    try:
        found = sketch.case.expectations(0)
    except (TypeError, ValueError, IndexError):
        return
    how = sketch.below(3)
    made = [f"fresh({each.kind!r}, {each.shape})" for each in found]
    if how == 1:
        made[sketch.below(2)] = "None"
    if how == 2 and found[0].kind == found[1].kind:
        sketch.case.lines.append(f"OUT = {made[0]}")
        made = ["OUT", "OUT"]
        sketch.refuses("out: one buffer for two results")
    sketch.option("out", f"({', '.join(made)})")


def _size(sketch: Sketch, percent: int = 25) -> int | None:
    if not (sketch.case.graph or sketch.chance(percent)):
        return None
    if sketch.case.graph and sketch.chance(10):
        sketch.refuses("size: graphs need it")
        return None
    size = int(sketch.pick([0, 1, 3, 10, 100, 1000]))
    sketch.option("size", str(size))
    return size


def _unique(sketch: Sketch) -> Case:
    kind, shape = sketch.kind(NUMBERS), sketch.shape()
    given, host = sketch.input(kind, shape, sketch.pick(["few", "small", "wild", "normal"]))
    flags = [sketch.flag(f"return_{each}") for each in ("index", "inverse", "counts")]
    equal = not sketch.chance(15)
    if not equal:
        sketch.option("equal_nan", "False")
    size, fill = _size(sketch), None
    if size is not None and sketch.chance(30):
        fill = 7 if kind != "bool_" else 1
        sketch.option("fill_value", str(fill))
    if not sketch.case.truth:
        sketch.case.truth = f"selection.unique({host}, {', '.join(map(str, flags))}, {equal}, {size}, {fill})"
    return sketch.finish([given])


def _compact(sketch: Sketch) -> Case:
    kind, shape = sketch.kind(KINDS), sketch.shape()
    given, host = sketch.input(kind, shape, "small" if kind in VECTORS else sketch.pick(["normal", "bits"]))
    count = int(np.prod(shape, dtype=int))
    fits = sketch.pick([shape, shape, shape, (count // 2,), (count + 1,)])
    test = sketch.kind(NUMBERS)
    condition, tested = sketch.input(test, fits, sketch.pick(["flags", "small", "few"]))
    size, fill = _size(sketch), 0
    if size is not None and sketch.chance(30) and kind != "bool_":
        fill = 3
        sketch.option("fill_value", "3")
    if not sketch.case.truth:
        sketch.case.truth = f"selection.compact({host}, {tested}, {kind!r}, {size}, {fill})"
    return sketch.finish([given, condition])


def _nonzero(sketch: Sketch) -> Case:
    kind, shape = sketch.kind(NUMBERS), sketch.shape()
    given, host = sketch.input(kind, shape, sketch.pick(["flags", "small", "wild", "few"]))
    size, fill = _size(sketch), 0
    if size is not None and sketch.chance(30):
        fill = -1
        sketch.option("fill_value", "-1")
    if not sketch.case.truth:
        sketch.case.truth = f"selection.nonzero({host}, {size}, {fill})"
    return sketch.finish([given])


def _searchsorted(sketch: Sketch) -> Case:
    kind = sketch.kind(REALS)
    other = kind if sketch.chance(60) else sketch.kind(REALS)
    shape = sketch.shape(1, 1) if sketch.chance(98) else sketch.shape(2)
    length = shape[0]
    array, host = sketch.input(kind, shape, "rising", maps=False)
    values, wanted = sketch.input(other, sketch.shape(), sketch.pick(["normal", "small", "wild"]))
    options = ""
    if sketch.chance(50):
        side = sketch.pick(["right", "left", "middle"] if sketch.chance(10) else ["right"])
        sketch.option("side", repr(side))
        options = f", side={side!r}"
    if sketch.chance(12):
        order = sketch.array(sketch.kind(("int64", "int32", "uint32")), (length,), "order")
        sketch.option("sorter", order.upper())
        options += f", sorter={order}"
        # in any order it has to be sorted
        sketch.case.arrays[host] = replace(sketch.case.arrays[host], fill="flat")
    if not sketch.case.truth:
        sketch.case.truth = f"selection.searchsorted({host}, {wanted}{options})"
    return sketch.finish([array, values])


def _histogram(sketch: Sketch) -> Case:
    kind, shape = sketch.kind(REALS), sketch.shape()
    fill = sketch.pick(["normal", "small", "few", "wild", "near"])
    if kind == "bool_":
        fill = "small"
    elif fill == "wild" and sketch.case.graph:
        fill = "normal"  # graphs wait for no range, so that they do not refuse one that is not finite
    given, host = sketch.input(kind, shape, fill)
    options = ""
    arguments = [given]
    bins = sketch.pick(
        ["10", "1", "4", "100", "3", "[0, 1, 2.5, 7]", "[-1.0, 0.0, 0.0, 3.0]", "np.arange(-3, 5)"]
    )
    if sketch.chance(4):
        bins = sketch.pick(["0", "-1", "2.5", "[3, 2, 1]", "[1]", "True", "'auto'"])
        sketch.refuses("bins")
    if sketch.chance(60):
        sketch.option("bins", bins)
        options += f", bins={bins}"
    elif sketch.case.truth:
        sketch.case.truth = ""
    if sketch.chance(45):
        range_ = sketch.pick(
            ["(0, 1)", "(-2.5, 3)", "(0, 255)", "(1, 1)", "(2, 1)", "(0, np.inf)", "(np.nan, 1)"]
            if sketch.chance(10)
            else ["(-3, 3)", "(0, 8)", "(0.1, 0.7)"]
        )
        sketch.option("range", range_)
        options += f", range={range_}"
    if sketch.chance(15):
        sketch.option("density", "True")
        options += ", density=True"
    if sketch.chance(20):
        weight = sketch.kind((*FLOATS, "int64", "int32", "bool_"))
        _, name = sketch.input(weight, shape, sketch.pick(["small", "normal"]), maps=False)
        sketch.option("weights", name.upper())
        options += f", weights={name}"
    if not sketch.case.truth:
        sketch.case.truth = f"selection.histogram({host}{options})"
    return sketch.finish(arguments)


def _bincount(sketch: Sketch) -> Case:
    kind, shape = sketch.kind((*INTEGERS, "bool_")), sketch.shape()
    limit = 2 if kind == "bool_" else int(sketch.pick([10, 100, 1000])) if host_of(kind).itemsize > 1 else 100
    fill = sketch.pick(["below", "below", "below", "index"]) if kind != "bool_" else "below"
    given, host = sketch.input(kind, shape, fill, limit)
    options = ""
    if sketch.chance(30):
        weight = sketch.kind((*FLOATS, *INTEGERS))
        name = sketch.array(
            weight, shape if sketch.chance(95) else (*shape[1:], 3), sketch.pick(["small", "normal"])
        )
        sketch.option("weights", name.upper())
        options += f", weights={name}"
    if sketch.chance(25):
        least = sketch.pick(["5", "0", "2000", "-1", "1.0", "True"] if sketch.chance(15) else ["5", "300"])
        sketch.option("minlength", least)
        options += f", minlength={least}"
    size = _size(sketch)
    if size is not None:
        options += f", size={size}"
    if not sketch.case.truth:
        sketch.case.truth = f"selection.bincount({host}{options})"
    return sketch.finish([given])


FUNCTIONS = {
    "vd.topk": _topk,
    "vd.unique": _unique,
    "vd.compact": _compact,
    "vd.nonzero": _nonzero,
    "vd.searchsorted": _searchsorted,
    "vd.histogram": _histogram,
    "vd.bincount": _bincount,
}
TRUTHS["selection"] = __import__(__name__, fromlist=["selection"])
__all__ = ["FUNCTIONS"]
