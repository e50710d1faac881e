"""Calls that move data between host arrays, of every layout, and buffers."""

from __future__ import annotations

from typing import Any

import numpy as np

from .case import TRUTHS, Case, Sketch
from .truth import bits
from .values import KINDS, NUMBERS, VECTORS, Array, host_of

_LAYOUTS = (
    "plain", "fortran", "every other", "backwards", "swapped", "read-only", "unaligned", "turned", "part",
    "subclass", "repeated",
)  # fmt: skip


def laid_out(x: Array, layout: str) -> Array:
    """Return an array of the same elements that lies otherwise in memory."""
    if not x.ndim and layout not in ("swapped", "read-only"):
        return x
    match layout:
        case "fortran":
            return np.asfortranarray(x)
        case "every other":
            wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
            wide[..., ::2] = x
            return wide[..., ::2]
        case "backwards":
            return np.ascontiguousarray(x[::-1])[::-1]
        case "swapped":
            return x.astype(x.dtype.newbyteorder())
        case "read-only":
            found = x.copy()
            found.flags.writeable = False
            return found
        case "unaligned":
            octets = np.zeros(x.nbytes + 1, np.uint8)
            found = octets[1:].view(x.dtype).reshape(x.shape)
            found[...] = x
            return found
        case "turned":
            return np.ascontiguousarray(x.T).T
        case "part":
            wide = np.zeros((*x.shape[:-1], x.shape[-1] + 3), x.dtype)
            wide[..., 1:-2] = x
            return wide[..., 1:-2]
        case "subclass":
            return x.view(_Named)
        case "repeated":
            return np.broadcast_to(x[:1], x.shape)
    return x


class _Named(np.ndarray[Any, Any]):
    """A class of arrays of somebody's own."""


def structured(x: Array) -> Array:
    """Return an array of structures of two fields."""
    found = np.zeros(x.shape, [("first", x.dtype), ("second", np.int32)])
    found["first"], found["second"] = x, np.arange(x.size).reshape(x.shape)
    return found


def _host(sketch: Sketch, kind: str, shape: tuple[int, ...]) -> tuple[str, str]:
    """Add an array, laid out in some way; return it as text, and its name."""
    name = sketch.array(kind, shape, "small" if kind in VECTORS else sketch.pick(["normal", "bits"]))
    layout = sketch.pick(_LAYOUTS)
    if layout == "plain":
        return name, name
    return f"memory.laid_out({name}, {layout!r})", f"memory.laid_out({name}, {layout!r})"


def _one(sketch: Sketch) -> Case:
    sketch.case.graph, sketch.case.queues = False, 1
    return sketch.case


def _asbuffer(sketch: Sketch) -> Case:
    case = _one(sketch)
    if sketch.chance(8):
        wrong = sketch.pick(
            [
                "[1.0, 2.0]",
                "3.0",
                "'text'",
                "None",
                "np.array(['a'])",
                "np.array([1, None])",
                "np.zeros(3, np.longdouble)",
                "np.zeros(2, 'datetime64[s]')",
                "np.float32(3)",
                "b'abcd'",
                "np.zeros(2, 'S3')",
            ]
        )
        sketch.refuses("array")
        return sketch.finish([wrong])
    shape, kind = sketch.shape(), sketch.kind(NUMBERS)
    given, host = _host(sketch, kind, shape)
    if sketch.chance(8) and 0 not in shape:
        case.truth = f"memory.plain(memory.structured({host}))"
        case.results = "memory.plain(result.read(0))"
        return sketch.finish([f"memory.structured({given})"])
    case.truth = f"memory.plain({host})"
    return sketch.finish([given])


def plain(x: Array) -> Any:
    """Return what has to be the same in every bit, without fields."""
    if x.dtype.names is not None:
        packed = [np.ascontiguousarray(x[name]).reshape(-1).view(np.uint8) for name in x.dtype.names]
        return np.concatenate(packed)
    return bits(np.ascontiguousarray(x).astype(x.dtype.newbyteorder("=")).reshape(x.shape))


def _target(sketch: Sketch) -> tuple[str, str, tuple[int, ...]]:
    kind, shape = sketch.kind(KINDS), sketch.shape(smallest=1)
    name = sketch.array(kind, shape, "small")
    sketch.case.changed, sketch.case.results = {name}, name.upper()
    return name, kind, shape


def _write(sketch: Sketch, method: str) -> Case:
    case = sketch.case
    case.graph = False
    name, kind, shape = _target(sketch)
    buffer = name.upper()
    how = sketch.below(20)
    given, host = _host(sketch, kind, shape)
    own = f"truth.bits({host}, {kind!r})"
    size = int(np.prod(shape, dtype=int))
    if how == 14:
        given = f"np.ascontiguousarray({host}).tobytes()"
    elif how == 15:
        given = f"memoryview(np.ascontiguousarray({given}))"
        if kind not in VECTORS and not sketch.chance(50):
            given = f"bytearray(np.ascontiguousarray({host}).tobytes())"
    elif how == 16:  # another dtype of the same size
        other = {1: "int8", 2: "int16", 4: "int32", 8: "int64", 16: "complex128"}[host_of(kind).itemsize]
        if host_of(other) == host_of(kind):
            other = {1: "uint8", 2: "float16", 4: "float32", 8: "float64", 16: "complex128"}[
                host_of(kind).itemsize
            ]
        if other != "complex128":
            given = f"np.zeros({host}.shape, np.{other})"
            sketch.refuses("data: another dtype")
    elif how == 17 and size > 1:  # another shape
        given = f"{host}.reshape(-1)[:-1]" if sketch.chance(50) else f"{host}[None, None, None]"
        sketch.refuses("data: another shape")
    elif how == 18:
        given = sketch.pick(["[1, 2]", "3", "'text'", "None", "np.array([object()])"])
        sketch.refuses("data")
    arguments = [given]
    if sketch.chance(20):
        index = sketch.pick(
            ["0", "None", "np.int64(0)", str(case.queues), "-1", "1.5", "'0'", "True"]
            if sketch.chance(30)
            else ["0"]
        )
        sketch.option("index", index)
        if index not in ("0", "None", "np.int64(0)"):
            sketch.refuses("index")
        elif index != "None" and case.queues == 2:
            case.results = f"[{buffer}.read(0), {buffer}.read(0)]"
            case.queues = 1
    # what is written goes to every queue
    if not case.truth:
        case.truth = own
    if case.queues == 2:
        case.queues = 1
    sketch.finish(arguments)
    case.call = case.call.replace("vd.Buffer.", f"{buffer}.", 1)
    if method == "write_async" and not case.truth.startswith("refuse"):
        case.call += ".wait()"
    return case


def _write_range(sketch: Sketch) -> Case:
    case = _one(sketch)
    name, kind, shape = _target(sketch)
    size = int(np.prod(shape, dtype=int))
    start = sketch.below(size + 1)
    count = sketch.below(size - start + 1)
    other = sketch.array(kind, (count,), "small")
    layout = sketch.pick(_LAYOUTS)
    given = f"memory.laid_out({other}, {layout!r})" if count else other
    case.truth = f"memory.patched({name}, {given}, {start}, {kind!r})"
    if sketch.chance(10):
        start = sketch.pick([size - count + 1, -1, 1.5, None, "a"])
        sketch.refuses("start")
    sketch.finish([given, repr(start)])
    case.call = case.call.replace("vd.Buffer.", f"{name.upper()}.", 1)
    return case


def patched(x: Array, new: Array, start: int, kind: str) -> Any:
    parts = len(host_parts) if (host_parts := new.shape[1:]) else 0
    flat = x.reshape(-1, *new.shape[1:]) if parts else x.reshape(-1)
    found = flat.copy()
    found[start : start + len(new)] = new
    return bits(found.reshape(x.shape), kind)


def _source(sketch: Sketch) -> tuple[str, str, tuple[int, ...]]:
    kind, shape = sketch.kind(KINDS), sketch.shape()
    name = sketch.array(kind, shape, "small" if kind in VECTORS else "bits")
    return name, kind, shape


def _index(sketch: Sketch, variants: int) -> tuple[str, bool]:
    if sketch.chance(90):
        return sketch.pick(["0", "np.int64(0)", "np.uint8(0)"]), True
    return sketch.pick([str(variants), "-1", "1.5", "'0'", "0.0", "True"]), False


def _read(sketch: Sketch, method: str) -> Case:
    case = sketch.case
    case.graph = False
    case.queues = 1
    name, kind, shape = _source(sketch)
    host = host_of(kind)
    arguments: list[str] = []
    text = f"truth.bits({name}, {kind!r})"
    if method == "read_range":
        size = int(np.prod(shape, dtype=int))
        start = sketch.below(size + 1)
        stop = start + sketch.below(size - start + 1)
        parts = f", *{name}.shape[{len(shape)}:]" if kind in VECTORS else ""
        text = f"truth.bits({name}.reshape(-1{parts})[{start}:{stop}], {kind!r})"
        if sketch.chance(8):
            arguments = sketch.pick(
                [
                    [str(start), str(size + 1)],
                    ["-1", "0"],
                    ["1", "0"],
                    ["0.5", "1"],
                    ["'a'", "1"],
                    ["None", "None"],
                ]
            )
            sketch.refuses("start, stop")
        else:
            arguments = [str(start), str(stop)]
    index, right = _index(sketch, 1)
    sketch.option("index", index)
    if not right:
        sketch.refuses("index")
    if sketch.chance(25):
        target = f"np.zeros({_read_shape(name, text)}, np.{host.name})"
        if method == "read_async":
            target = f"vd.empty_pinned({_read_shape(name, text)}, np.{host.name})"
        if sketch.chance(30):
            target = sketch.pick(
                [
                    f"np.zeros({name}.shape + (1,), np.{host.name})",
                    f"np.zeros({_read_shape(name, text)}, 'S1')",
                    "[1, 2]",
                    f"memory.frozen(np.zeros({_read_shape(name, text)}, np.{host.name}))",
                ]
            )
            sketch.refuses("out")
        case.lines.append(f"OUT = {target}")
        sketch.option("out", "OUT")
        if not case.truth:
            case.results = "the_same(result, OUT)"
    if not case.truth:
        case.truth = text
    sketch.finish(arguments)
    case.call = case.call.replace("vd.Buffer.", f"{name.upper()}.", 1)
    if method == "read_async":
        case.call += ".result()"
    return case


def _read_shape(name: str, text: str) -> str:
    return f"({text.removeprefix('truth.bits(').rsplit(',', 1)[0]}).shape" if "[" in text else f"{name}.shape"


def frozen(x: Array) -> Array:
    x.flags.writeable = False
    return x


def _copy_between_queues(sketch: Sketch) -> Case:
    case = sketch.case
    case.graph, case.queues = False, 2
    kind, shape = sketch.kind(KINDS), sketch.shape(smallest=1)
    name = sketch.array(kind, shape, "small")
    case.changed = {name}
    buffer = name.upper()
    start = sketch.below(2)
    arguments = [str(start)]
    if sketch.chance(50):
        arguments.append(sketch.pick([str(1 - start), str(1 - start), "None"]))
    case.lines.append(f"BEFORE = {buffer}.read({start})")
    case.results = f"[np.asarray({buffer}.read(queue).tobytes() == BEFORE.tobytes()) for queue in (0, 1)]"
    case.truth = "np.True_"
    if sketch.chance(10):
        arguments = sketch.pick([["2"], ["-1"], ["0", "2"], ["0.5"], ["None"], ["0", "'1'"]])
        sketch.refuses("source, target")
    sketch.finish(arguments)
    case.call = case.call.replace("vd.Buffer.", f"{buffer}.", 1)
    return case


def _new(sketch: Sketch) -> Case:
    case = _one(sketch)
    kind, shape = sketch.kind(KINDS), sketch.shape(smallest=1)
    text = str(shape[0]) if len(shape) == 1 and sketch.chance(40) else str(shape)
    given = sketch.pick([f"vd.{kind}", f"np.{kind}" if kind not in VECTORS else f"vd.{kind}"])
    case.results = "memory.facts(result)"
    size = int(np.prod(shape, dtype=int))
    case.truth = f"np.array([{host_of(kind).itemsize * size * _parts(kind)}, {len(shape)}, {size}])"
    if sketch.chance(15):
        text = sketch.pick(["-1", "2.5", "(2, -1)", "'3'", "None", "(1.0,)", "True", "10**30", "(True,)"])
        sketch.refuses("shape")
    elif sketch.chance(10):
        given = sketch.pick(["'no'", "None", "3", "np.datetime64", "object", "str"])
        sketch.refuses("var_type")
    return sketch.finish([text, given])


def _parts(kind: str) -> int:
    return int(kind[-1]) if kind in VECTORS else 1


def facts(buffer: Any) -> Array:
    return np.array([buffer.mem_size, len(buffer.shape), buffer.size])


def _real(sketch: Sketch, method: str) -> Case:
    """Write a method of a buffer for real transforms."""
    case = _one(sketch)
    part = str(sketch.pick(["float32", "float64"]))
    shape = sketch.shape(1, smallest=1)
    spectrum = {"float32": "complex64", "float64": "complex128"}[part]
    half = (*shape[:-1], shape[-1] // 2 + 1)
    case.lines.append(f"R = vd.RFFTBuffer({shape}, vd.{spectrum})")
    if method in ("write_real", "read_real"):
        name = sketch.array(part, shape, "normal")
        case.results, case.truth = "R.read_real(0)", f"truth.bits({name})"
        writing = "write_real"
    else:
        name = sketch.array(spectrum, half, "normal")
        case.results, case.truth = "R.read_fourier(0)", f"truth.bits({name})"
        writing = "write_fourier"
    layout = sketch.pick(_LAYOUTS)
    given = f"memory.laid_out({name}, {layout!r})"
    case.truth = f"memory.plain({given})"
    if method.startswith("read"):
        case.lines.append(f"R.{writing}({given})")
        sketch.finish(["0"])
        case.results = "result"
    else:
        if sketch.chance(10):
            given = sketch.pick([f"{name}[..., :0]", "None", "[1.0]", f"{name}.astype('S3')"])
            sketch.refuses("arr")
        sketch.finish([given])
    case.call = case.call.replace("vd.RFFTBuffer.", "R.", 1)
    return case


def _asrfftbuffer(sketch: Sketch) -> Case:
    case = _one(sketch)
    part = str(sketch.pick(["float32", "float64", "int32", "uint8", "bool_", "int64"]))
    shape = sketch.shape(1, smallest=1)
    name = sketch.array(part, shape, "small")
    layout = sketch.pick(_LAYOUTS)
    given = f"memory.laid_out({name}, {layout!r})"
    case.results = "result.read_real(0).astype(np.float64)"
    case.truth = f"np.ascontiguousarray({given}).astype(np.float64)"
    if sketch.chance(10):
        given = sketch.pick(
            ["None", "[1.0, 2.0]", "np.zeros(3, np.complex64)", "np.float32(2)", "np.zeros((), np.float32)"]
        )
        sketch.refuses("arr")
    return sketch.finish([given])


def _array(sketch: Sketch) -> Case:
    case = _one(sketch)
    name, kind, _ = _source(sketch)
    sketch.finish([])
    case.truth = f"truth.bits({name}, {kind!r})"
    case.call = f"np.asarray({name.upper()})"
    return case


def _empty_pinned(sketch: Sketch) -> Case:
    case = _one(sketch)
    kind, shape = sketch.kind(NUMBERS), sketch.shape()
    name = sketch.array(kind, shape, "bits")
    case.results = f"memory.filled(result, {name})"
    case.truth = f"truth.bits({name}, {kind!r})"
    text = str(shape)
    if sketch.chance(10):
        text = sketch.pick(["-1", "2.5", "(2, -1)", "'3'", "None", "True", "10**30"])
        sketch.refuses("shape")
    return sketch.finish([text, f"np.{kind}"])


def _item(sketch: Sketch) -> Case:
    case = _one(sketch)
    kind = sketch.kind(NUMBERS)
    shape = sketch.pick([(1,), (), (1, 1), (2,), (0,), (1, 3)])
    name = sketch.array(kind, shape, sketch.pick(["normal", "wild", "bits"]))
    case.results = f"np.asarray(result).astype({name}.dtype)"
    case.truth = f"np.asarray({name}.item())[()].astype({name}.dtype)"
    sketch.finish([])
    case.call = f"{name.upper()}.item()"
    case.names = ("item",)
    return case


def _view(sketch: Sketch) -> Case:
    case = _one(sketch)
    kind, shape = sketch.kind(NUMBERS), sketch.shape()
    name = sketch.array(kind, shape, "bits")
    other = sketch.kind(NUMBERS)
    case.truth = f"memory.viewed({name}, {other!r})"
    if other == "bool_" and kind != "bool_":  # other bytes than 0 and 1 are no booleans
        other = "uint8"
        case.truth = f"memory.viewed({name}, 'uint8')"
    given = f"vd.{other}"
    if sketch.chance(8):
        given = sketch.pick(["None", "'no'", "3", "object"])
        sketch.refuses("var_type")
    sketch.finish([given])
    case.call = case.call.replace("vd.Buffer.", f"{name.upper()}.", 1)
    return case


def viewed(x: Array, kind: str) -> Any:
    host = host_of(kind)
    if host.itemsize != x.dtype.itemsize and not x.ndim:
        raise ValueError("an array of no axes keeps its size")
    return bits(x.view(host), kind)


def filled(target: Array, x: Array) -> Array:
    target[...] = x
    return target


_AT = "vd.Buffer."
FUNCTIONS: dict[str, Any] = {
    "vd.asbuffer": _asbuffer,
    "vd.Buffer": _new,
    **{_AT + name: (lambda sketch, name=name: _write(sketch, name)) for name in ("write", "write_async")},
    _AT + "write_range": _write_range,
    **{
        _AT + name: (lambda sketch, name=name: _read(sketch, name))
        for name in ("read", "read_range", "read_async")
    },
    _AT + "copy_between_queues": _copy_between_queues,
    _AT + "__array__": _array,
    _AT + "item": _item,
    _AT + "view": _view,
    "vd.asrfftbuffer": _asrfftbuffer,
    **{
        "vd.RFFTBuffer." + name: (lambda sketch, name=name: _real(sketch, name))
        for name in ("write_real", "read_real", "write_fourier", "read_fourier")
    },
    "vd.empty_pinned": _empty_pinned,
}
TRUTHS["memory"] = __import__(__name__, fromlist=["memory"])
