"""Calls of sorts."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from .case import TRUTHS, Case, Sketch
from .truth import Expected, Refused, axes_of, bits
from .values import KINDS, NUMBERS, VECTORS, Array, host_of


def order_of(x: Array, descending: bool = False) -> Array:
    """Return the stable order of a line; with `descending` equal keys keep theirs too."""
    if not descending:
        return np.argsort(x, kind="stable")
    return np.asarray(len(x) - 1 - np.argsort(x[::-1], kind="stable")[::-1])


def positions(x: Array, axis: Any = -1, descending: bool = False, segments: Any = None) -> tuple[Array, int]:
    """Return positions along an axis, and the axis."""
    if axis is None:
        x, axis = x.reshape(-1), 0
    (axis,) = axes_of(axis, x.ndim)
    found = np.empty(x.shape, np.int64)
    source, target = np.moveaxis(x, axis, -1), np.moveaxis(found, axis, -1)
    length = x.shape[axis]
    cuts = [0, length]
    if segments is not None:
        starts = np.asarray(segments)
        if starts.size and (np.any(starts[1:] < starts[:-1]) or starts[0] < 0 or starts[-1] > length):
            raise Refused("segments")
        cuts = [0, *(int(each) for each in starts), length]
    for place in np.ndindex(*source.shape[:-1]) if x.size else ():
        for first, last in pairwise(cuts):
            target[(*place, slice(first, last))] = first + order_of(source[place][first:last], descending)
    return found, axis


def in_order(x: Array, by: Array, kind: str, axis: Any = -1, **options: Any) -> Expected:
    """Return an array in the order of keys."""
    found, along = positions(by, axis, **options)
    if axis is None:
        x = x.reshape(-1, *x.shape[by.ndim :])
    places = found.reshape(*found.shape, *(1,) * (x.ndim - found.ndim))
    return bits(np.take_along_axis(x, places, along), kind)


def _options(sketch: Sketch, shape: tuple[int, ...]) -> str:
    axis, right = ("-1", bool(shape))
    found = ""
    if sketch.chance(60):
        axis, right = sketch.axis(len(shape))
        sketch.option("axis", axis)
        found += f", axis={axis}"
    if not right:
        sketch.refuses("axis")
    if sketch.flag("descending", 30):
        found += ", descending=True"
    if sketch.chance(5):
        sketch.option("stable", sketch.pick(["False", "None", "True"]))
    if right and sketch.chance(20):
        length = (
            int(np.prod(shape, dtype=int))
            if axis == "None"
            else shape[int(axis.removeprefix("np.int64(").rstrip(")"))]
        )
        if sketch.chance(40):
            kind = sketch.kind(("uint32", "int32", "int64", "uint64"))
            name = sketch.array(kind, (sketch.pick([1, 3, 9, 40]),), "starts", length + 1)
            sketch.option("segments", name.upper())
            return f"{found}, segments={name}"
        starts = sorted(sketch.below(length + 1) for _ in range(sketch.below(5)))
        if sketch.chance(8):
            starts = [*starts, sketch.pick([-1, length + 1])]
        sketch.option("segments", str(starts))
        found += f", segments={starts}"
    return found


def _sort(sketch: Sketch) -> Case:
    kind, shape = sketch.kind(NUMBERS), sketch.shape()
    fill = sketch.pick(["normal", "few", "wild", "small", "bits"])
    given, host = sketch.input(kind, shape, fill)
    options = _options(sketch, shape)
    around = sketch.output_map(kind) if fill not in ("bits", "wild") else "{}"
    if not sketch.case.truth:
        sketch.case.truth = around.format(f"sorts.in_order({host}, {host}, {kind!r}{options})")
    sketch.out(inputs=list(sketch.case.arrays))
    return sketch.finish([given])


def _argsort(sketch: Sketch) -> Case:
    kind, shape = sketch.kind(NUMBERS), sketch.shape()
    given, host = sketch.input(kind, shape, sketch.pick(["normal", "few", "wild", "small", "bits"]))
    options = _options(sketch, shape)
    result = "int64"
    if sketch.chance(25):
        result = sketch.kind(("uint32", "int32", "uint64", "int64"))
        sketch.option("dtype", sketch.pick([f"vd.{result}", f"np.{result}"]))
    if not sketch.case.truth:
        sketch.case.truth = f"sorts.positions({host}{options})[0].astype(np.{result})"
    # `out` of another integer type decides on that
    fits = [name for name, each in sketch.case.arrays.items() if each.kind in (result, "float32", "uint8")]
    sketch.out(inputs=fits)
    return sketch.finish([given])


def _sort_by_key(sketch: Sketch) -> Case:
    kind, shape = sketch.kind(NUMBERS), sketch.shape()
    keys, host = sketch.input(kind, shape, sketch.pick(["normal", "few", "wild", "small"]))
    count = sketch.pick([1, 1, 2, 3])
    found = []
    for _ in range(count):
        each = sketch.kind(KINDS)
        fits = shape if sketch.chance(97) else (*shape, 1) if len(shape) < 3 else shape[:2]
        found.append(
            (
                each,
                *sketch.input(each, fits, "small" if each in VECTORS else sketch.pick(["normal", "bits"])),
                fits,
            )
        )
    options = _options(sketch, shape)
    case = sketch.case
    if any(fits != shape for *_, fits in found):
        sketch.refuses("values: another shape")
    several = count > 1
    values = ", ".join(each for _, each, _, _ in found)
    given = f"[{values}]" if several else values
    case.results = "(result[0], *result[1])" if several else "result"
    if not case.truth:
        sorted_keys = f"sorts.in_order({host}, {host}, {kind!r}{options})"
        moved = ", ".join(f"sorts.in_order({each}, {host}, {own!r}{options})" for own, _, each, _ in found)
        case.truth = f"({sorted_keys}, {moved})"
        _outs(sketch, kind, found, several)
    return sketch.finish([keys, given])


def _outs(sketch: Sketch, kind: str, found: list[Any], several: bool) -> None:
    """Perhaps give buffers for the results: new ones, the arrays themselves, or one for two."""
    case = sketch.case
    how = sketch.below(10)
    if how < 7 or case.truth.startswith("refuse"):
        return
    try:
        wanted = case.expectations(0)
    except (TypeError, ValueError, IndexError):
        return
    names = [f"fresh({each.kind!r}, {each.shape})" for each in wanted]
    if how == 8:  # in place, where the shapes allow it
        mine = [next(iter(case.arrays)).upper(), *(each for _, each, _, _ in found)]
        names = [
            name if name in map(str.upper, case.arrays) and case.arrays[name.lower()].shape == each.shape
            and case.arrays[name.lower()].kind == each.kind else made
            for name, made, each in zip(mine, names, wanted, strict=True)
        ]  # fmt: skip
        case.changed |= {name.lower() for name in names if len(name) == 1}
    if (
        how == 9
        and len(wanted) > 1
        and (wanted[0].kind, wanted[0].shape) == (wanted[1].kind, wanted[1].shape)
    ):
        case.lines.append(f"OUT = {names[0]}")
        names[:2] = ["OUT", "OUT"]
        sketch.refuses("out: one buffer for two results")
    values = f"({', '.join(names[1:])},)" if several else names[1]
    sketch.option("out", f"({names[0]}, {values})")


FUNCTIONS = {"vd.sort": _sort, "vd.argsort": _argsort, "vd.sort_by_key": _sort_by_key}
TRUTHS["sorts"] = __import__(__name__, fromlist=["sorts"])
__all__ = ["FUNCTIONS", "host_of"]
