"""Calls of reductions: vd.sum and the like, norms, dot products."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import case as case_module
from . import truth
from .case import Case, Sketch
from .truth import Expected, Refused, axes_of, by_parts, epsilon, expected, rounded, wide
from .values import COMPLEX, FLOATS, INTEGERS, NUMBERS, VECTORS, Array, host_of, name_of

_STEPS = 24  # additions of one invocation that an element takes part in, at most about


def _length(x: Array, axes: tuple[int, ...], where: Any) -> Any:
    if where is True:
        return np.prod([x.shape[axis] for axis in axes], dtype=int)
    return np.sum(np.broadcast_to(where, x.shape), axis=axes, keepdims=True)


def _steps(x: Array, axes: tuple[int, ...]) -> float:
    count = max(2, int(np.prod([x.shape[axis] for axis in axes], dtype=int)))
    return _STEPS + float(np.log2(count))


def total(
    x: Array,
    axis: Any = None,
    dtype: str | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Expected:
    axes = axes_of(axis, x.ndim)
    kind = dtype or name_of(np.sum(np.empty(0, x.dtype)).dtype)
    start = 0 if initial is None else initial
    if host_of(kind).kind in "iub":
        return expected(
            np.sum(x, axis=axes, dtype=host_of(kind), keepdims=keepdims, initial=start, where=where)
        )
    every = wide(x if x.dtype.kind in "fc" else x.astype(host_of(kind)))
    value = np.sum(every, axis=axes, keepdims=keepdims, initial=start, where=where)
    magnitude = np.sum(np.abs(every), axis=axes, keepdims=keepdims, initial=abs(start), where=where)
    error = epsilon(truth.accumulated(kind)) * _steps(x, axes) * magnitude
    return rounded(value, error, kind, magnitude)


def product(
    x: Array,
    axis: Any = None,
    dtype: str | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Expected:
    axes = axes_of(axis, x.ndim)
    kind = dtype or name_of(np.prod(np.empty(0, x.dtype)).dtype)
    start = 1 if initial is None else initial
    if host_of(kind).kind in "iub":
        return expected(
            np.prod(x, axis=axes, dtype=host_of(kind), keepdims=keepdims, initial=start, where=where)
        )
    every = wide(x if x.dtype.kind in "fc" else x.astype(host_of(kind)))
    options: dict[str, Any] = {"axis": axes, "keepdims": keepdims, "where": where}
    value = np.prod(every, initial=start, **options)
    sizes = np.abs(every)
    largest = np.prod(np.maximum(sizes, 1), initial=max(abs(start), 1), **options)
    smallest = np.prod(np.where(sizes == 0, 1, np.minimum(sizes, 1)), initial=1, **options)
    count = _length(x, axes, True)
    error = 4 * epsilon(truth.accumulated(kind)) * (count + 2) * np.abs(value)
    if every.dtype.kind == "c":
        error = 8 * epsilon(kind) * (count + 2) * np.prod(sizes, initial=abs(start), **options)
        # of infinities and NaNs the parts depend on the order
        largest = np.where(np.isfinite(value), largest, np.inf)
    magnitude = np.where(smallest < 16 * truth.least(truth.accumulated(kind)), np.inf, largest)
    return rounded(value, error, kind, magnitude)


def _mean_kind(x: Array, dtype: str | None) -> str:
    return dtype or (name_of(x.dtype) if x.dtype.kind in "fc" else "float64")


def mean(
    x: Array, axis: Any = None, dtype: str | None = None, keepdims: bool = False, where: Any = True
) -> Expected:
    axes = axes_of(axis, x.ndim)
    kind = _mean_kind(x, dtype)
    every = wide(x if x.dtype.kind in "fc" else x.astype(host_of(kind)))
    count = _length(x, axes, where)
    value = np.sum(every, axis=axes, keepdims=True, where=where)
    magnitude = np.sum(np.abs(every), axis=axes, keepdims=True, where=where)
    error = epsilon(truth.accumulated(kind)) * (_steps(x, axes) + 2) * magnitude / count
    found = rounded(value / count, error, kind, magnitude)
    return _kept(found, x, axes, keepdims)


def median(x: Array, axis: Any = None, dtype: str | None = None, keepdims: bool = False) -> Expected:
    axes = axes_of(axis, x.ndim)
    if x.dtype.kind == "c":
        raise Refused("x: complex numbers")
    kind = _mean_kind(x, dtype)
    shape = tuple(1 if each in axes else size for each, size in enumerate(x.shape))
    last = tuple(range(x.ndim - len(axes), x.ndim))
    length = int(np.prod([x.shape[each] for each in axes], dtype=int))
    rows = np.sort(np.moveaxis(x.astype(np.longdouble), axes, last).reshape(*shape, length), -1)
    value = low = high = np.full(shape, np.nan)
    if length:
        low, high = rows[..., (length - 1) // 2], rows[..., length // 2]
        value = np.where(np.isnan(rows[..., -1]), np.nan, (low + high) / 2)
    magnitude = np.abs(low) + np.abs(high)
    error = epsilon(truth.accumulated(kind)) * np.where(np.isfinite(magnitude), magnitude, 0)
    found = rounded(value, error, kind, np.where(np.isinf(low) & np.isinf(high), 0, magnitude))
    return _kept(found, x, axes, keepdims)


def _kept(found: Expected, x: Array, axes: tuple[int, ...], keepdims: bool) -> Expected:
    """Leave reduced axes out."""
    if keepdims:
        return found
    shape = tuple(size for axis, size in enumerate(x.shape) if axis not in axes)
    bound = None if found.bound is None else found.bound.reshape(shape)
    return Expected(found.value.reshape(shape), found.kind, bound)


def variance(
    x: Array,
    axis: Any = None,
    dtype: str | None = None,
    keepdims: bool = False,
    where: Any = True,
    ddof: float = 0,
    root: bool = False,
) -> Expected:
    axes = axes_of(axis, x.ndim)
    kind = _mean_kind(x, dtype)
    every = wide(x if x.dtype.kind in "fc" else x.astype(host_of(kind)))
    count = _length(x, axes, where)
    center = np.sum(every, axis=axes, keepdims=True, where=where) / count
    distances = np.abs(every - center)
    squares = np.sum(distances**2, axis=axes, keepdims=True, where=where)
    degrees = np.maximum(count - ddof, 0)
    value = squares / degrees
    widest = np.max(np.where(where, distances, 0), axis=axes, keepdims=True, initial=0)
    real = name_of(np.empty(0, host_of(kind)).real.dtype)
    one = epsilon(truth.accumulated(real))
    # all of it is computed about one of the elements
    error = one * (_steps(x, axes) + 8) * (value + widest**2 * np.minimum(count / degrees, 1e6))
    # the elements themselves are rounded if they are converted
    size = np.max(np.where(where, np.abs(every), 0), axis=axes, keepdims=True, initial=0)
    error = error + one**2 * size**2 * 4
    magnitude = 4 * widest**2 * (count + 1) + size * 2
    if root:
        with np.errstate(all="ignore"):
            error = np.where(value > error, error / np.sqrt(value), np.sqrt(2 * error))
        value = np.sqrt(value)
    return _kept(rounded(value, error, real, magnitude), x, axes, keepdims)


def extreme(
    function: str, x: Array, axis: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True
) -> Expected:
    axes = axes_of(axis, x.ndim)
    options: dict[str, Any] = {} if initial is None else {"initial": initial}
    found = getattr(np, function)(x, axis=axes, keepdims=keepdims, where=where, **options)
    return expected(found)


def place(
    function: str, x: Array, axis: Any = None, keepdims: bool = False, dtype: str = "int64"
) -> Expected:
    if axis is not None:
        (axis,) = axes_of(axis, x.ndim)
    found = getattr(np, function)(x, axis=axis, keepdims=keepdims)
    return expected(np.asarray(found).astype(host_of(dtype)))


def truth_of(
    function: str, x: Array, axis: Any = None, keepdims: bool = False, where: Any = True
) -> Expected:
    axes = axes_of(axis, x.ndim)
    return expected(getattr(np, function)(x != 0, axis=axes, keepdims=keepdims, where=where))


def count_nonzero(x: Array, axis: Any = None, keepdims: bool = False, dtype: str = "int64") -> Expected:
    axes = axes_of(axis, x.ndim)
    return expected(np.sum(x != 0, axis=axes, keepdims=keepdims).astype(host_of(dtype)))


def norm(
    x: Array, ord: Any = None, axis: Any = None, keepdims: bool = False, dtype: str | None = None
) -> Expected:
    axes = axes_of(axis, x.ndim)
    if ord is not None and len(axes) not in (1, 2):
        raise Refused("ord")
    if isinstance(ord, bool):
        raise Refused("ord")
    real = name_of(np.empty(0, x.dtype).real.dtype)
    kind = dtype or (real if host_of(real).kind == "f" else "float64")
    converted = x if x.dtype.kind in "fc" else x.astype(host_of(kind))
    every = np.abs(wide(converted))
    if ord is None:
        value = np.sqrt(np.sum(every**2, axis=axes, keepdims=keepdims))
    else:
        order = axes[0] if len(axes) == 1 else axes
        value = np.linalg.norm(every, ord, axis=order, keepdims=keepdims)
    value = np.asarray(value, np.longdouble)
    power = 2.0 if ord is None or isinstance(ord, str) else abs(float(ord))
    one = epsilon(truth.accumulated(kind))
    if ord is None or isinstance(ord, str) or power in (1, 2):
        error = one * (_steps(x, axes) + 4) * value
    elif power == 0 or np.isinf(power):
        error = 4 * one * value
    else:
        error = one * (1000 + 30 * _steps(x, axes)) * (1 + power + 1 / power) * value
    if np.isinf(power) or power in (0, 1):
        magnitude = np.sum(every, axis=axes, keepdims=keepdims) if power == 1 else None
    else:
        top = np.max(every, axis=axes, keepdims=keepdims, initial=0)
        low = np.min(np.where(every == 0, np.inf, every), axis=axes, keepdims=keepdims, initial=np.inf)
        number = -power if ord is not None and not isinstance(ord, str) and float(ord) < 0 else power
        powers = [np.power(np.maximum(each, 1e-300), number) for each in (top, low)]
        limit = truth.least(truth.accumulated(kind))
        magnitude = np.where(
            (np.minimum(*powers) < 64 * limit) & (top > 0), np.inf, np.maximum(*powers) * (x.size + 1)
        )
    return rounded(value, error, kind, magnitude)


def dot(a: Array, b: Array) -> Expected:
    if b.ndim > 1 or not a.ndim or not b.ndim:
        raise Refused("b: a vector")
    if (a.dtype == bool and b.dtype == bool) or np.result_type(a, b).kind in "iub":
        return expected(np.dot(a, b))
    kind = name_of(np.result_type(a, b))
    first, second = (wide(each.astype(host_of(kind))) for each in (a, b))
    value = np.dot(first, second) if first.shape[-1] == second.shape[0] else np.dot(a, b)
    magnitude = np.dot(np.abs(first), np.abs(second)).real
    error = 2 * epsilon(truth.accumulated(kind)) * (_STEPS + np.log2(b.size + 2)) * magnitude
    top = magnitude
    if first.dtype.kind == "c":
        top = np.where(np.isfinite(value), magnitude, np.inf)
    return rounded(value, error, kind, top)


# -- writers


def _fill(sketch: Sketch) -> str:
    return str(sketch.pick(["small", "normal", "few", "wild", "near", "small", "normal"]))


def _where(sketch: Sketch, shape: tuple[int, ...]) -> None:
    """Perhaps add a mask."""
    if not sketch.chance(12):
        return
    mine = list(shape)
    how = sketch.below(4)
    if how == 1 and mine:
        mine[sketch.below(len(mine))] = 1
    elif how == 2 and mine:
        mine = mine[1:]
    elif how == 3 and mine and sketch.chance(30):
        mine = [*mine[:-1], mine[-1] + 1]
    name = sketch.array("bool_", tuple(mine), "small")
    sketch.option("where", name.upper())
    sketch.case.truth += f", where={name}"


def _common(sketch: Sketch, shape: tuple[int, ...], *, several: bool = True) -> None:
    """Add an axis and keepdims; the truth so far gets them too."""
    if sketch.chance(75):
        axis, right = sketch.axis(len(shape), several=several)
        sketch.option("axis", axis)
        if right:
            sketch.case.truth += f", axis={axis}"
        else:
            sketch.refuses("axis")
            return
    if sketch.flag("keepdims"):
        sketch.case.truth += ", keepdims=True"


def _reduction(sketch: Sketch, name: str) -> Case:
    kinds = (
        (*NUMBERS, *VECTORS) if name in ("total", "product", "mean", "variance", "min", "max") else NUMBERS
    )
    kind = sketch.kind(kinds)
    shape, fill = sketch.shape(), _fill(sketch)
    vector = kind in VECTORS
    given, host = sketch.input(kind, shape, fill)
    case = sketch.case
    case.truth = ""
    function = case.function.removeprefix("vd.")
    _common(sketch, shape, several=name != "place")
    if not case.truth.startswith("refuse"):
        _rest(sketch, name, kind, shape, fill)
    if case.truth.startswith("refuse"):
        return sketch.finish([given])
    options = case.truth.lstrip(", ")
    inner = {"min": "extreme", "max": "extreme", "truth": "truth_of"}.get(name, name)
    named = f"{function!r}, " if inner in ("extreme", "place", "truth_of") else ""
    if function == "std":
        options = f"{options}, root=True".lstrip(", ")
    if vector:
        if name in ("total", "product") and "dtype=" not in options:
            options = f"{options}, dtype={name_of(host_of(kind))!r}".lstrip(", ")
        case.truth = f"truth.by_parts(lambda v: reductions.{inner}({named}v, {options}), {host}, {kind!r})"
        case.truth = f"reductions.vectors({case.truth}, {kind!r})"
    else:
        case.truth = f"reductions.{inner}({named}{host}, {options})"
    if name == "place" or name in ("truth", "count_nonzero"):
        sketch.out()
    elif not vector:
        sketch.out(inputs=[each for each in case.arrays if case.arrays[each].kind == kind])
    return sketch.finish([given])


def _rest(sketch: Sketch, name: str, kind: str, shape: tuple[int, ...], fill: str) -> None:
    """Add the options that only some of them have."""
    case = sketch.case
    plain = kind not in VECTORS
    if (
        name in ("total", "product", "mean", "median", "variance", "place", "count_nonzero")
        and sketch.wrong_dtype()
    ):
        return
    if name in ("total", "product", "mean", "median", "variance") and plain and sketch.chance(20):
        fits = (
            COMPLEX
            if kind in COMPLEX
            else (
                FLOATS if name in ("mean", "median", "variance") or fill == "wild" else (*INTEGERS, *FLOATS)
            )
        )
        if fill == "wild" or (kind in FLOATS and name in ("total", "product")):
            fits = COMPLEX if kind in COMPLEX else FLOATS
        chosen = sketch.kind(fits)
        sketch.option("dtype", sketch.pick([f"vd.{chosen}", f"np.{chosen}", f"{chosen!r}"]))
        case.truth += f", dtype={chosen!r}"
    elif name in ("total", "product") and plain and sketch.chance(2):
        sketch.option("dtype", "vd.bool_")
        case.truth += ", dtype='bool_'"
        return
    if name in ("place", "count_nonzero") and sketch.chance(20):
        chosen = sketch.kind(INTEGERS)
        if np.prod(shape, dtype=int) < 120 or host_of(chosen).itemsize >= 4:
            sketch.option("dtype", f"vd.{chosen}")
            case.truth += f", dtype={chosen!r}"
    if name in ("total", "product", "min", "max") and plain and kind != "bool_" and sketch.chance(15):
        first = sketch.pick(["3", "0", "np.int8(5)"])
        sketch.option("initial", first)
        case.truth += f", initial={first}"
    if name == "variance" and sketch.chance(40):
        degrees = sketch.pick(["1", "0.5", "2", "100"])
        sketch.option(sketch.pick(["ddof", "correction"]), degrees)
        case.truth += f", ddof={degrees}"
    if name in ("total", "product", "mean", "variance", "min", "max", "truth") and plain:
        _where(sketch, shape)


def _norm(sketch: Sketch) -> Case:
    kind, shape, fill = sketch.kind(NUMBERS), sketch.shape(), _fill(sketch)
    if kind == "bool_":
        kind = "int32"
    given, host = sketch.input(kind, shape, fill)
    case = sketch.case
    case.truth = ""
    if sketch.chance(60):
        ord = sketch.pick(
            [
                "None",
                "1",
                "2",
                "np.inf",
                "-np.inf",
                "0",
                "3",
                "0.5",
                "'fro'",
                "-1",
                "-2",
                "2.5",
                "'no'",
                "True",
                "'nuc'",
            ]
        )
        sketch.option("ord", ord)
        case.truth += f", ord={ord}"
    _common(sketch, shape)
    if not case.truth.startswith("refuse"):
        if sketch.chance(15):
            chosen = sketch.kind(FLOATS)
            sketch.option("dtype", f"vd.{chosen}")
            case.truth += f", dtype={chosen!r}"
        case.truth = f"reductions.norm({host}{case.truth})"
        sketch.out()
    return sketch.finish([given])


def _dot(sketch: Sketch) -> Case:
    kind, fill = sketch.kind(NUMBERS), sketch.pick(["small", "normal", "few", "wild"])
    other = kind if sketch.chance(70) else sketch.kind(NUMBERS)
    shape = sketch.shape(1)
    length = shape[-1] if sketch.chance(95) else shape[-1] + 1
    a, host_a = sketch.input(kind, shape, fill)
    b, host_b = sketch.input(other, (length,), fill, maps=len(shape) == 1)
    if sketch.chance(5):
        b, host_b = a, host_a
    sketch.case.truth = f"reductions.dot({host_a}, {host_b})"
    sketch.out(inputs=list(sketch.case.arrays))
    return sketch.finish([a, b])


def vectors(found: Expected, kind: str) -> Expected:
    """Return what was computed by components as vectors of the dtype of that."""
    names = {
        "float16": "hvec",
        "float32": "vec",
        "float64": "dvec",
        "int16": "ihvec",
        "uint16": "uhvec",
        "int32": "ivec",
        "uint32": "uvec",
    }
    part = name_of(found.value.dtype) if found.bound is None else _part_of(found, kind)
    if part not in names:
        raise Refused(f"dtype: there are no vectors of {part}")
    return Expected(found.value, f"{names[part]}{found.value.shape[-1]}", found.bound)


def _part_of(found: Expected, kind: str) -> str:
    part = name_of(host_of(kind))
    return part if host_of(kind).kind == "f" else "float64"


FUNCTIONS = {
    "vd.sum": lambda sketch: _reduction(sketch, "total"),
    "vd.prod": lambda sketch: _reduction(sketch, "product"),
    "vd.mean": lambda sketch: _reduction(sketch, "mean"),
    "vd.median": lambda sketch: _reduction(sketch, "median"),
    "vd.var": lambda sketch: _reduction(sketch, "variance"),
    "vd.std": lambda sketch: _reduction(sketch, "variance"),
    "vd.min": lambda sketch: _reduction(sketch, "min"),
    "vd.max": lambda sketch: _reduction(sketch, "max"),
    "vd.argmin": lambda sketch: _reduction(sketch, "place"),
    "vd.argmax": lambda sketch: _reduction(sketch, "place"),
    "vd.any": lambda sketch: _reduction(sketch, "truth"),
    "vd.all": lambda sketch: _reduction(sketch, "truth"),
    "vd.count_nonzero": lambda sketch: _reduction(sketch, "count_nonzero"),
    "vd.norm": _norm,
    "vd.dot": _dot,
}
case_module.TRUTHS["reductions"] = __import__(__name__, fromlist=["reductions"])
__all__ = ["FUNCTIONS", "by_parts"]
