"""Calls of vd.matmul."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import truth
from .case import TRUTHS, Case, Sketch
from .truth import Expected, Refused, epsilon, expected, wide
from .values import COMPLEX, FLOATS, INTEGERS, NUMBERS, Array, host_of, name_of


def matmul(
    a: Array, b: Array, transpose_a: bool = False, transpose_b: bool = False, dtype: str | None = None
) -> Expected:
    for each, swap in ((a, transpose_a), (b, transpose_b)):
        if not each.ndim or (swap and each.ndim == 1):
            raise Refused("a, b")
    first = np.swapaxes(a, -1, -2) if transpose_a else a
    second = np.swapaxes(b, -1, -2) if transpose_b else b
    kind = dtype or name_of(np.result_type(a, b))
    host = host_of(kind)
    if host.kind in "iub":
        return expected(np.matmul(first.astype(host), second.astype(host)))
    x, y = (wide(each.astype(host)) for each in (first, second))
    value = np.matmul(x, y)
    magnitude = np.matmul(np.abs(x), np.abs(y))
    length = second.shape[-2] if second.ndim > 1 else second.shape[0]
    error = 2 * epsilon(truth.accumulated(kind)) * (length + 4) * magnitude
    if kind == "float16" and {a.dtype, b.dtype} != {host}:
        # whether factors are rounded to halves first is the kernel's choice
        error = error + epsilon(kind) * magnitude
        if any(np.any(np.abs(each.astype(float)) > truth.most(kind)) for each in (a, b)):
            magnitude = np.full(magnitude.shape, np.inf)
    if host.kind == "c":
        # products with infinities are parts of NaN and infinity in any order
        magnitude = np.where(np.isfinite(value), magnitude, np.inf)
    return truth.rounded(value, error, kind, magnitude)


def _matmul(sketch: Sketch) -> Case:
    kind = sketch.kind(NUMBERS)
    other = kind if sketch.chance(75) else sketch.kind(NUMBERS)
    sizes = (1, 2, 3, 5, 8, 16, 17, 31, 33, 0, 64, 65, 100, 130)
    rows, length, columns = (int(sketch.pick(sizes)) for _ in range(3))
    if sketch.chance(10):
        length = int(sketch.pick([300, 1000, 2049, 5000]))
        rows, columns = min(rows, 8), min(columns, 8)
    form = sketch.below(8)
    batch = int(sketch.pick([2, 1, 5, 0, 33]))
    if batch > 5 and rows * columns * length > 30000:
        batch = 3
    swap_a, swap_b = sketch.chance(20), sketch.chance(20)
    shape_a = (length, rows) if swap_a else (rows, length)
    shape_b = (columns, length) if swap_b else (length, columns)
    a: tuple[int, ...] = shape_a if form not in (3, 5) else (length,)
    b: tuple[int, ...] = shape_b if form not in (4, 5) else (length,)
    if form in (1, 6):
        a = (batch, *shape_a)
    if form in (2, 6):
        b = (batch if sketch.chance(80) else 1, *shape_b)
    if form == 0:
        a, b = (sketch.pick([(), (3,), (2, 1), (2, 3), (2, 1, 1)]) + sides for sides in (shape_a, shape_b))
    if sketch.chance(4):
        b = sketch.pick([(*b[:-1], b[-1] + 1), (b[0] + 1, *b[1:]), ()])
    fill = sketch.pick(["small", "normal", "few", "wild"])
    left, host_a = sketch.input(kind, a, fill)
    right, host_b = sketch.input(other, b, fill)
    if sketch.chance(4) and a == b:
        right, host_b = left, host_a
    options = ""
    for swap, name in ((swap_a, "transpose_a"), (swap_b, "transpose_b")):
        if swap:
            sketch.option(name, "True")
            options += f", {name}=True"
    if sketch.wrong_dtype():
        return sketch.finish([left, right])
    if sketch.chance(15):
        fits = (
            COMPLEX
            if {kind, other} & set(COMPLEX)
            else FLOATS
            if fill in ("wild", "normal") or {kind, other} & set(FLOATS)
            else (*FLOATS, *INTEGERS)
        )
        chosen = sketch.kind(fits)
        sketch.option("dtype", sketch.pick([f"vd.{chosen}", f"np.{chosen}", repr(chosen)]))
        options += f", dtype={chosen!r}"
    sketch.case.truth = f"products.matmul({host_a}, {host_b}{options})"
    sketch.out(inputs=list(sketch.case.arrays))
    return sketch.finish([left, right])


FUNCTIONS: dict[str, Any] = {"vd.matmul": _matmul}
TRUTHS["products"] = __import__(__name__, fromlist=["products"])
