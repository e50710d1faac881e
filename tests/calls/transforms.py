"""Calls of Fourier transforms, cosine and sine transforms, and convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.fft

from .case import TRUTHS, Case, Sketch
from .truth import Expected, Refused, axes_of, epsilon, moved
from .values import KINDS, VECTORS, Array, Shape, host_of, name_of

_LENGTHS = (
    4,
    8,
    2,
    1,
    3,
    5,
    6,
    7,
    12,
    15,
    16,
    17,
    31,
    32,
    37,
    60,
    64,
    67,
    100,
    105,
    121,
    128,
    135,
    211,
    256,
    360,
    512,
    1000,
    1021,
    1024,
)


def _norm(x: Array, axes: tuple[int, ...]) -> Array:
    return np.sqrt(np.sum(np.abs(x.astype(np.clongdouble)) ** 2, axis=axes, keepdims=True))


def transformed(function: str, x: Array, kind: str, scale: float = 1.0, **options: Any) -> Expected:
    """Return what a function of scipy.fft gives, with a bound by the length of each line."""
    plural = "axes" in options
    given = options.get("axes") if plural else options.get("axis", -1)
    axes = axes_of(tuple(given) if plural and given is not None else given, x.ndim)
    wide = x.astype(np.clongdouble if x.dtype.kind == "c" else np.longdouble)
    found = getattr(scipy.fft, function)(wide, **options)
    count = max(2, int(np.prod([found.shape[axis] for axis in axes], dtype=int)), x.size and 2)
    sizes = _norm(wide, axes)
    forward = _factor(function, count, options.get("norm"))
    error = epsilon(kind) * (40 + 20 * np.log2(count)) * sizes * forward * abs(scale)
    bound = np.broadcast_to(error, found.shape).real
    return Expected(found * scale, kind, bound)


def _factor(function: str, count: int, norm: str | None) -> float:
    """Return the largest by which the norm of a line becomes an element's size."""
    inverse = function.startswith("i")
    if norm == "ortho":
        return 4 / np.sqrt(count)
    small = (norm == "forward") != inverse
    return 4 / count if small else 4.0


# -- writers


def _lines(sketch: Sketch, least: int, most: int = 3) -> Shape:
    axes = least + sketch.below(most - least + 1)
    sizes: list[int] = []
    for _ in range(axes):
        room = 6000 // max(1, int(np.prod(sizes, dtype=int)))
        sizes.append(int(sketch.pick([each for each in _LENGTHS if each <= room])))
    if axes == 1 and sketch.chance(8):
        return (int(sketch.pick([2048, 4099, 8192, 10007, 12000])),)
    return tuple(sizes)


def _complex(sketch: Sketch, least: int = 1, most: int = 3) -> tuple[str, str, Shape]:
    kind = str(sketch.pick(["complex64", "complex64", "complex128"]))
    shape = _lines(sketch, least, most)
    name = sketch.array(kind, shape, sketch.pick(["normal", "small"]))
    sketch.case.changed, sketch.case.results = {name}, name.upper()
    return kind, name, shape


def _norm_option(sketch: Sketch) -> str:
    if not sketch.chance(30):
        return ""
    norm = sketch.pick(["ortho", "forward", "backward"])
    if sketch.chance(5):
        sketch.option("norm", sketch.pick(["'no'", "3", "True"]))
        sketch.refuses("norm")
        return ""
    sketch.option("norm", repr(norm))
    return f", norm={norm!r}"


def _fft(sketch: Sketch, function: str) -> Case:
    dimensions = int(function[-1]) if function[-1] in "23" else 0
    kind, name, shape = _complex(sketch, max(1, dimensions), 3)
    case = sketch.case
    options = ""
    if not dimensions and sketch.chance(60):
        axis, right = sketch.axis(len(shape), none=False)
        sketch.option("axis", axis)
        options = f", axis={axis}"
        if not right and axis != "None":
            sketch.refuses("axis")
        if axis == "None":
            options = ""
    options += _norm_option(sketch)
    base = function.rstrip("23")
    scale = ""
    if base == "ifft" and "norm" not in options and sketch.chance(15):
        sketch.option("normalize", "False")
        options += ", norm='forward'"
    if dimensions:
        axes = tuple(range(-dimensions, 0))
        options += f", axes={axes}"
        base += "n"
    if function == "fft" and sketch.chance(15):
        sketch.option("inverse", "True")
        base = "ifft"
    if not case.truth:
        case.truth = f"transforms.transformed({base!r}, {name}, {kind!r}{scale}{options})"
    return sketch.finish([name.upper()])


def _fftn(sketch: Sketch, function: str) -> Case:
    kind, name, shape = _complex(sketch)
    options = ""
    if sketch.chance(70):
        axes, right = sketch.axis(len(shape), several=True)
        if axes == "()":
            axes = "None"
        sketch.option("axes", axes)
        if not right:
            sketch.refuses("axes")
        options = f", axes={axes if axes.startswith('(') or axes == 'None' else f'({axes},)'}"
    options += _norm_option(sketch)
    if not sketch.case.truth:
        sketch.case.truth = (
            f"transforms.transformed({function!r}, {name}, {kind!r}{options or ', axes=None'})"
        )
        if "axes" not in options:
            sketch.case.truth = f"transforms.transformed({function!r}, {name}, {kind!r}{options}, axes=None)"
    return sketch.finish([name.upper()])


def _real(sketch: Sketch, function: str) -> Case:
    """Write a transform of a buffer of reals."""
    case = sketch.case
    case.graph, case.queues = False, 1
    dimensions = int(function[-1]) if function[-1] in "23" else 0
    shape = _lines(sketch, max(1, dimensions), 3)
    part = str(sketch.pick(["float32", "float32", "float64"]))
    kind = {"float32": "complex64", "float64": "complex128"}[part]
    name = sketch.array(part, shape, "normal")
    case.lines.append(f"R = vd.asrfftbuffer({name})")
    options = _norm_option(sketch)
    inverse = function.startswith("i")
    if function.endswith("n"):
        axes = f"tuple(range({len(shape)}))"
    else:
        axes = str(tuple(range(-(dimensions or 1), 0)))
    spectrum = f"np.fft.rfftn({name}, axes={axes}).astype(np.{kind})"
    if inverse:
        case.lines.append(f"R.write_fourier({spectrum})")
        sizes = f"s=[{name}.shape[axis] for axis in {axes}], "
        truth = f"transforms.transformed('irfftn', {spectrum}, {part!r}, {sizes}axes={axes}{options})"
        case.results = "R.read_real(0)"
    else:
        truth = f"transforms.transformed('rfftn', {name}, {kind!r}, axes={axes}{options})"
        case.results = "R.read_fourier(0)"
    if not case.truth:
        case.truth = truth
    return sketch.finish(["R"])


def _hermitian(sketch: Sketch, function: str) -> Case:
    case = sketch.case
    case.graph, case.queues = False, 1
    shape = _lines(sketch, 1, 2)
    part = str(sketch.pick(["float32", "float64"]))
    kind = {"float32": "complex64", "float64": "complex128"}[part]
    name = sketch.array(part, shape, "normal")
    case.lines.append(f"R = vd.asrfftbuffer({name})")
    options = _norm_option(sketch)
    spectrum = f"np.fft.ihfft({name}).astype(np.{kind})"
    if function == "hfft":
        case.lines.append(f"R.write_fourier({spectrum})")
        truth = f"transforms.transformed('hfft', {spectrum}, {part!r}, n={shape[-1]}{options})"
        case.results = "R.read_real(0)"
    else:
        truth = f"transforms.transformed('ihfft', {name}, {kind!r}{options})"
        case.results = "R.read_fourier(0)"
    if not case.truth:
        case.truth = truth
    return sketch.finish(["R"])


def _cosine(sketch: Sketch, function: str) -> Case:
    kind = str(sketch.pick(["float32", "float32", "float64", "float16"]))
    several = function.endswith("n")
    shape = _lines(sketch, 1, 3)
    name = sketch.array(kind, shape, sketch.pick(["normal", "small"]))
    case = sketch.case
    options = ""
    type_ = sketch.pick([2, 1, 3, 4])
    if type_ != 2 or sketch.chance(30):
        text = str(type_)
        if sketch.chance(4):
            text = sketch.pick(["0", "5", "'2'", "2.0", "True"])
            sketch.refuses("type")
        sketch.option("type", text)
        options = f", type={type_}"
    if sketch.chance(50):
        axis, right = sketch.axis(len(shape), several=several, none=several)
        if axis == "()":
            axis = "None"
        sketch.option("axes" if several else "axis", axis)
        if not right:
            sketch.refuses("axis, axes")
        options += (
            f", axes={axis if axis.startswith('(') or axis == 'None' else f'({axis},)'}"
            if several
            else f", axis={axis}"
        )
    elif several:
        options += ", axes=None"
    options += _norm_option(sketch)
    if sketch.chance(10):
        sketch.option("orthogonalize", "True")
        options += ", orthogonalize=True"
    if not case.truth:
        case.truth = f"transforms.cosine({function!r}, {name}, {kind!r}{options})"
    sketch.out(inputs=[name])
    return sketch.finish([name.upper()])


def cosine(function: str, x: Array, kind: str, **options: Any) -> Expected:
    plural = "axes" in options
    given = options.get("axes") if plural else options.get("axis", -1)
    axes = axes_of(tuple(given) if plural and given is not None else given, x.ndim)
    if options.get("type", 2) == 1 and "dct" in function and any(x.shape[axis] < 2 for axis in axes):
        raise Refused("type")
    wide = x.astype(np.float64)
    found = getattr(scipy.fft, function)(wide, **options)
    count = max(2, int(np.prod([2 * x.shape[axis] + 2 for axis in axes], dtype=int)))
    own = "float32" if kind == "float16" else kind
    forward = 4 * _factor(function, count, options.get("norm"))
    ratio = 2.0 ** len(axes)
    error = epsilon(own) * (60 + 20 * np.log2(count)) * _norm(wide, axes).astype(float) * forward * ratio
    if kind == "float16" and len(axes) > 1:
        # the result of an axis is rounded to halves before the next
        error = error + epsilon(kind) * len(axes) * _norm(wide, axes).astype(float) * forward / 2
    return Expected(
        found,
        kind,
        np.broadcast_to(error, found.shape) + epsilon(kind) * np.abs(found) + 1e-7 * (kind == "float16"),
    )


def _shift(sketch: Sketch, function: str) -> Case:
    kind = sketch.kind(KINDS)
    shape = sketch.shape(1)
    name = sketch.array(kind, shape, "small" if kind in VECTORS else "bits")
    axes, right = sketch.axis(len(shape), several=True) if sketch.chance(60) else ("None", True)
    if axes != "None":
        sketch.option("axes", axes)
    if not right:
        sketch.refuses("axes")
    if not sketch.case.truth:
        sketch.case.truth = f"truth.moved(lambda i: np.fft.{function}(i, {axes}), {name}, {kind!r})"
    sketch.out(inputs=[name])
    return sketch.finish([name.upper()])


def correlated(x: Array, kernel: Array, kind: str, axes: tuple[int, ...]) -> Expected:
    """Return the inverse transform of a spectrum times the conjugate of a kernel, which is one."""
    wide, other = x.astype(np.clongdouble), kernel.astype(np.clongdouble)
    found = scipy.fft.ifftn(scipy.fft.fftn(wide, axes=axes) * np.conj(other), axes=axes)
    count = int(np.prod([x.shape[axis] for axis in axes], dtype=int))
    most = np.max(np.abs(other), axis=axes, keepdims=True, initial=0)
    error = epsilon(kind) * (80 + 40 * np.log2(max(2, count))) * _norm(wide, axes) * most * 2
    return Expected(found, kind, np.broadcast_to(error, found.shape))


def _convolve(sketch: Sketch, function: str) -> Case:
    kind, name, shape = _complex(sketch, 2 if function.endswith("2D") else 1)
    kernel = sketch.array(kind, shape, "normal")
    axes: tuple[int, ...] = (-2, -1)
    if function == "convolve":
        axis, right = sketch.axis(len(shape), none=False) if sketch.chance(60) else ("-1", True)
        if axis != "-1":
            sketch.option("axis", axis)
        if not right and axis != "None":
            sketch.refuses("axis")
        axes = (int(axis.removeprefix("np.int64(").rstrip(")")),) if right else (-1,)
    if not sketch.case.truth:
        sketch.case.truth = f"transforms.correlated({name}, {kernel}, {kind!r}, {axes})"
    return sketch.finish([name.upper(), kernel.upper()])


def _convolve_real(sketch: Sketch) -> Case:
    case = sketch.case
    case.graph, case.queues = False, 1
    shape = _lines(sketch, 2, 3)
    part = "float32"
    name, kernel = sketch.array(part, shape, "normal"), sketch.array(part, shape, "normal")
    case.lines += [f"R = vd.asrfftbuffer({name})", f"K = vd.asrfftbuffer({kernel})", "vd.fft.rfft2(K)"]
    case.results = "R.read_real(0)"
    case.truth = f"transforms.correlated_reals({name}, {kernel})"
    return sketch.finish(["R", "K"])


def correlated_reals(x: Array, kernel: Array) -> Expected:
    found = correlated(x, scipy.fft.fftn(kernel.astype(np.longdouble), axes=(-2, -1)), "complex64", (-2, -1))
    assert found.bound is not None
    return Expected(found.value.real, name_of(x.dtype), found.bound * 2)


def _frequencies(sketch: Sketch, function: str) -> Case:
    case = sketch.case
    case.graph, case.queues = False, 1
    n = sketch.pick(["8", "1", "7", "1000"])
    arguments = [n]
    if sketch.chance(40):
        arguments.append(sketch.pick(["0.5", "2", "1e-3"]))
    case.truth = f"np.fft.{function}({', '.join(arguments)})"
    if sketch.chance(15):
        arguments[0] = sketch.pick(["0", "-3", "2.5", "'8'", "None"])
        sketch.refuses("n")
    return sketch.finish(arguments)


_AT = "vd.fft."
FUNCTIONS: dict[str, Any] = {
    **{
        _AT + name: (lambda sketch, name=name: _fft(sketch, name))
        for name in ("fft", "ifft", "fft2", "ifft2", "fft3", "ifft3")
    },
    **{_AT + name: (lambda sketch, name=name: _fftn(sketch, name)) for name in ("fftn", "ifftn")},
    **{
        _AT + name: (lambda sketch, name=name: _real(sketch, name))
        for name in ("rfft", "irfft", "rfft2", "irfft2", "rfft3", "irfft3", "rfftn", "irfftn")
    },
    **{_AT + name: (lambda sketch, name=name: _hermitian(sketch, name)) for name in ("hfft", "ihfft")},
    **{
        _AT + name: (lambda sketch, name=name: _cosine(sketch, name))
        for name in ("dct", "idct", "dst", "idst", "dctn", "idctn", "dstn", "idstn")
    },
    **{_AT + name: (lambda sketch, name=name: _shift(sketch, name)) for name in ("fftshift", "ifftshift")},
    **{
        _AT + name: (lambda sketch, name=name: _convolve(sketch, name)) for name in ("convolve", "convolve2D")
    },
    _AT + "convolve2DR": _convolve_real,
    **{
        _AT + name: (lambda sketch, name=name: _frequencies(sketch, name)) for name in ("fftfreq", "rfftfreq")
    },
}
TRUTHS["transforms"] = __import__(__name__, fromlist=["transforms"])
__all__ = ["FUNCTIONS", "host_of", "moved"]
