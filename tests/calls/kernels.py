"""Calls of kernels: buffers of right and wrong dtypes, numbers that fit and that do not."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import vkdispatch as vd
import vkdispatch.codegen as vc

from .case import TRUTHS, Case, Sketch
from .truth import Expected, bits
from .values import Array, host_of, kind_of

_KINDS = (
    "float32",
    "int32",
    "int64",
    "uint32",
    "float64",
    "int16",
    "uint8",
    "float16",
    "int8",
    "uint64",
    "uint16",
)
_ALIKE = ({"complex64", "vec2"}, {"complex128", "dvec2"})


@functools.cache
def scaled(kind: str) -> Any:
    """Return the kernel of out = x * factor."""
    buffer: Any = vc.Buff
    constant: Any = vc.Const
    wanted = kind_of(kind)
    number = vd.base.dtype.compute_type(wanted)

    def scaled(out: Any, x: Any, factor: Any) -> None:
        i = vc.global_invocation_id().x
        out[i] = x[i] * factor

    annotations = [buffer[wanted], buffer[wanted], constant[number]]
    names = ["out", "x", "factor"]
    return vd.shader("out.size", arg_type_annotations=annotations, arg_names=names)(scaled)


@functools.cache
def copied(kind: str) -> Any:
    """Return the kernel of out = x."""
    buffer: Any = vc.Buff
    wanted = kind_of(kind)

    def copied(out: Any, x: Any) -> None:
        i = vc.global_invocation_id().x
        out[i] = x[i]

    annotations = [buffer[wanted], buffer[wanted]]
    return vd.shader("out.size", arg_type_annotations=annotations, arg_names=["out", "x"])(copied)


def product(x: Array, factor: Any) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(x * np.asarray(factor).astype(x.dtype)).astype(x.dtype)


def _number(sketch: Sketch, kind: str) -> tuple[str, bool]:
    """Return a number as text, and whether it fits."""
    host = host_of(kind)
    if host.kind == "f":
        right = ["2", "0.5", "-1.5", "np.float64(0.25)", "np.int8(3)", "True", "np.float32(2)"]
        wrong = ["'2'", "None", "1j", "[1.0, 2.0]", "np.zeros(2)"]
    else:
        wide = np.dtype(np.int32 if kind == "int8" else np.uint32 if kind == "uint8" else host)
        info = np.iinfo(wide)
        right = ["2", "0", str(info.max), str(info.min), "np.int64(3)", "np.uint8(1)", "True"]
        wrong = [
            str(int(info.max) + 1),
            str(int(info.min) - 1),
            "2.9",
            "np.float32(0.5)",
            "np.nan",
            "'2'",
            "None",
            "1j",
            "np.inf",
        ]
    if sketch.chance(65):
        return sketch.pick(right), True
    return sketch.pick(wrong), False


def _target(sketch: Sketch, kind: str, shape: tuple[int, ...]) -> str:
    name = sketch.array(kind, shape, "few")
    sketch.case.changed, sketch.case.results = {name}, name.upper()
    return name


def _scaled(sketch: Sketch) -> Case:
    case = sketch.case
    kind, shape = sketch.kind(_KINDS), sketch.shape(1, 3, smallest=1)
    out = _target(sketch, kind, shape)
    name = sketch.array(kind, shape, "small")
    factor, right = _number(sketch, kind)
    if not right:
        sketch.refuses("factor")
    else:
        case.truth = f"kernels.product({name}, {factor})"
    if sketch.chance(50):  # later calls take a shorter way
        case.lines.append(f"kernels.scaled({kind!r})({out.upper()}, {name.upper()}, 2)")
    sketch.finish([out.upper(), name.upper(), factor])
    case.call = case.call.replace("vd.shader(", f"kernels.scaled({kind!r})(", 1)
    case.signature, case.names = "", ("out", "x", "factor")
    return case


def _copied(sketch: Sketch) -> Case:
    """Write a call with a buffer of another dtype."""
    case = sketch.case
    every = (*_KINDS, "vec2", "ivec3", "complex64", "uvec4", "bool_", "complex128", "dvec2", "vec4")
    kind, shape = sketch.kind(every), sketch.shape(1, 3, smallest=1)
    other = kind if sketch.chance(40) else sketch.kind(every)
    out = _target(sketch, kind, shape)
    name = sketch.array(other, shape, "small")
    if _takes_components(kind, other):
        case.truth = f"kernels.components({name}, {kind!r}, {shape})"
    elif other != kind and {other, kind} not in _ALIKE:
        sketch.refuses("x: another dtype")
    else:
        case.truth = f"kernels.as_kind({name}, {kind!r})"
    if sketch.chance(50):
        right = f"fresh({kind!r}, {shape})"
        case.lines.append(f"kernels.copied({kind!r})({right}, {right})")
    given = name.upper()
    if other == kind and sketch.chance(8):
        given = sketch.pick(["None", "3", "'x'", f"{name}", "[1]"])
        sketch.refuses("x: no buffer")
    sketch.finish([out.upper(), given])
    case.call = case.call.replace("vd.shader(", f"kernels.copied({kind!r})(", 1)
    case.signature, case.names = "", ("out", "x")
    return case


def as_kind(x: Array, kind: str) -> Expected:
    """Return the same bits as numbers of a dtype: pairs of floats are complex numbers."""
    host = host_of(kind)
    if x.dtype.kind == "c" and host.kind != "c":
        return bits(x.view(host).reshape(*x.shape, 2), kind)
    if host.kind == "c" and x.dtype.kind != "c":
        return bits(x.view(host)[..., 0], kind)
    return bits(x, kind)


def _takes_components(kind: str, other: str) -> bool:
    """Whether a kernel of numbers takes the components of another dtype: the same numbers, or integers."""
    if kind not in _KINDS or other in (*_KINDS, "bool_"):
        return False
    part, wanted = np.zeros(0, host_of(other)).real.dtype, np.dtype(host_of(kind))
    return part == wanted or (wanted.kind in "iu" and wanted.itemsize == part.itemsize)


def components(x: Array, kind: str, shape: tuple[int, ...]) -> Expected:
    """Return the first components of an array, as numbers of a dtype."""
    flat = np.ascontiguousarray(x).reshape(-1).view(host_of(kind))
    return bits(flat[: int(np.prod(shape))].reshape(shape), kind)


def _reduction(sketch: Sketch, name: str) -> Case:
    """Write a call of a reduction of one's own."""
    case = sketch.case
    kind, shape = sketch.kind(("int32", "int64", "uint32", "float32")), sketch.shape(smallest=1)
    array = sketch.array(kind, shape, "small")
    axes: Any = None
    if shape and sketch.chance(60):
        axes = tuple(sorted({sketch.below(2 * len(shape)) - len(shape) for _ in range(1 + sketch.below(2))}))
        if len({axis % len(shape) for axis in axes}) < len(axes):
            axes = axes[:1]
    case.results = "[result.read(queue)[0] for queue in range(result.context.queue_count)]"
    case.truth = f"kernels.row({name!r}, {array}, {axes})"
    sketch.finish([array.upper()])
    case.call = case.call.replace(f"{case.function}(", f"maps.reduction_of({name!r}, {kind!r}, {axes})(", 1)
    case.signature, case.names = "", ("axes", "x", "a", "b")
    return case


def row(name: str, x: Array, axes: Any) -> Array:
    values = x * x if name == "squares" else x
    found = np.max(values, axes) if name == "largest" else np.sum(values, axes, dtype=x.dtype)
    return np.asarray(found).reshape(-1 if np.size(found) > 1 else ())


FUNCTIONS: dict[str, Any] = {
    "vd.shader": lambda sketch: sketch.pick([_scaled, _copied])(sketch),
    "vd.reduce.reduce": lambda sketch: _reduction(sketch, sketch.pick(["total", "largest"])),
    "vd.reduce.map_reduce": lambda sketch: _reduction(sketch, "squares"),
}
TRUTHS["kernels"] = __import__(__name__, fromlist=["kernels"])
