"""Calls of vd.random.Generator: its numbers, made of Philox's words as the documentation says."""

from __future__ import annotations

import numpy as np

from tests.random_numbers import philox

from .case import TRUTHS, Case, Sketch
from .truth import Expected, Refused, expected
from .values import KINDS, VECTORS, Array, Shape, host_of

_SIGNED = ("int32", "int8", "int16", "int64")
_INTEGERS = (*_SIGNED, "uint8", "uint16", "uint32", "uint64")


def _key(seed: int) -> tuple[int, int]:
    low, high = np.random.SeedSequence(seed).generate_state(2, np.uint32)
    return int(low), int(high)


def words(seed: int, wide: bool, bits: int, first: int, count: int) -> Array:
    """Return words of 16, 32 or 64 bits from the stream of a seed, from a place on."""
    if wide:
        if not count:
            return np.empty(0, f"u{bits // 8}")
        raw = np.random.Philox(seed).random_raw((first + count) * bits // 64 + 1)
        return np.asarray(raw).astype("<u8").view(f"<u{bits // 8}")[first : first + count]
    total = (first + count) * bits // 32 + 2
    raw = np.asarray(philox.words(_key(seed), 0, total)).astype("<u4")
    return raw[: total // 2 * 2].view(f"<u{bits // 8}")[first : first + count]


def raw(seed: int, wide: bool, first: int, shape: Shape) -> Array:
    return words(seed, wide, 64 if wide else 32, first, int(np.prod(shape, dtype=int))).reshape(shape)


def uniform(
    seed: int, wide: bool, first: int, shape: Shape, kind: str, low: float = 0.0, high: float = 1.0
) -> Array:
    bits = 8 * host_of(kind).itemsize
    drawn = words(seed, wide, bits, first, int(np.prod(shape, dtype=int))).reshape(shape)
    kept = {16: 11, 32: 24, 64: 53}[bits]
    host = np.float64 if bits == 64 else np.float32
    numbers = (drawn >> drawn.dtype.type(bits - kept)).astype(host) * host(2.0**-kept)
    if (low, high) != (0.0, 1.0):
        numbers = host(low) + host(high - low) * numbers
    return np.asarray(numbers).astype(host_of(kind))


def normal(
    seed: int, wide: bool, first: int, shape: Shape, kind: str, loc: float = 0.0, scale: float = 1.0
) -> Expected:
    bits = 64 if kind == "float64" else 32
    count = int(np.prod(shape, dtype=int))
    drawn = words(seed, wide, bits, first, count + count % 2)
    if bits == 64:
        kept = (drawn >> np.uint64(11) | np.uint64(1)).astype(np.longdouble) * np.longdouble(2.0) ** -53
    else:
        kept = (drawn | np.uint32(1)).astype(np.longdouble) / 2**32
    turn = drawn.astype(np.longdouble) / np.longdouble(2.0) ** bits * 2 * np.longdouble(np.pi)
    radius = np.sqrt(-2 * np.log(kept[::2]))
    found = np.stack([radius * np.cos(turn[1::2]), radius * np.sin(turn[1::2])], -1).reshape(-1)[:count]
    error = 4e-15 if bits == 64 else 2e-6
    value = (loc + scale * found).reshape(shape)
    rounding = np.finfo(host_of(kind)).eps * (abs(loc) + scale * np.abs(found.reshape(shape)))
    return Expected(np.asarray(value), kind, error * scale * 1.5 + rounding)


def integers(seed: int, wide: bool, first: int, shape: Shape, kind: str, low: int, high: int) -> Expected:
    """Return integers; those whose word is rejected may be any, as far as is known here."""
    count = high - low
    bits = 64 if count > 1 << 32 else 32
    drawn = words(seed, wide, bits, first, int(np.prod(shape, dtype=int))).reshape(-1)
    host = host_of(kind)
    info = np.iinfo(host)
    if count <= 0 or low < info.min or high - 1 > info.max:
        raise Refused("low, high")
    products = [int(word) * count for word in drawn]
    found = np.array([low + (each >> bits) for each in products], object).astype(host).reshape(shape)
    surplus = (1 << bits) % count
    open_ = np.array([each % (1 << bits) < surplus for each in products], bool).reshape(shape)
    return Expected(found, kind, np.where(open_, np.inf, 0.0))


def rows(x: Array, axis: int) -> Array:
    """Return the parts of an array along an axis, in an order that does not depend on theirs."""
    lines = np.moveaxis(x, axis, 0)
    found = sorted(np.ascontiguousarray(line).tobytes() for line in lines)
    return np.frombuffer(b"".join(found), np.uint8)


# -- writers


def _begin(sketch: Sketch) -> bool:
    """Write the generator; return whether it is NumPy's."""
    sketch.case.graph = False
    sketch.case.seed = sketch.below(1000)
    wide = sketch.chance(40)
    kind = ', "philox4x64"' if wide else ""
    sketch.case.lines.append(f"RNG = vd.random.Generator(SEED{kind})")
    return wide


def _size(sketch: Sketch) -> tuple[str, Shape]:
    shape = sketch.shape()
    text = str(shape)
    if len(shape) == 1 and sketch.chance(50):
        text = str(shape[0])
    if sketch.chance(4):
        text = sketch.pick(["-1", "2.5", "True", "'3'", "(2, -1)"])
        sketch.refuses("size")
    return text, shape


def _before(sketch: Sketch, method: str, more: str, *, even: bool = False) -> int:
    """Perhaps draw before; return how many."""
    if not sketch.chance(50):
        return 0
    count = int(sketch.pick([1, 2, 3, 4, 7, 30, 101]))
    sketch.case.lines.append(f"RNG.{method}({more}size={count})")
    return count + count % 2 if even else count


def _finish(sketch: Sketch, method: str, arguments: list[str], truth: str) -> Case:
    if not sketch.case.truth:
        sketch.case.truth = truth
    sketch.out()
    sketch.finish(arguments)
    sketch.case.call = sketch.case.call.replace(f"vd.random.Generator.{method}(", f"RNG.{method}(", 1)
    return sketch.case


def _raw(sketch: Sketch) -> Case:
    wide = _begin(sketch)
    first = _before(sketch, "raw", "")
    size, shape = _size(sketch)
    return _finish(sketch, "raw", [f"size={size}"], f"draws.raw(SEED, {wide}, {first}, {shape})")


def _random(sketch: Sketch) -> Case:
    wide = _begin(sketch)
    kind = sketch.kind(("float32", "float64", "float16"))
    if sketch.chance(3):
        sketch.refuses("dtype")
        sketch.option("dtype", sketch.pick(["vd.int32", "'no'", "vd.vec2", "np.complex64"]))
        kind = "float32"
    elif kind != "float32" or sketch.chance(20):
        sketch.option("dtype", f"vd.{kind}")
    first = _before(sketch, "random", f"dtype=vd.{kind}, ")
    size, shape = _size(sketch)
    return _finish(
        sketch, "random", [f"size={size}"], f"draws.uniform(SEED, {wide}, {first}, {shape}, {kind!r})"
    )


def _uniform(sketch: Sketch) -> Case:
    wide = _begin(sketch)
    kind = sketch.kind(("float32", "float64", "float16"))
    low, high = sketch.pick(
        [("0.0", "1.0"), ("-1.0", "1.0"), ("2.5", "8.0"), ("3.0", "-3.0"), ("1.0", "1.0")]
    )
    first = _before(sketch, "uniform", f"dtype=vd.{kind}, ")
    size, shape = _size(sketch)
    if sketch.chance(4):
        low = sketch.pick(["np.nan", "np.inf", "'1'", "None", "1j"])
        sketch.refuses("low")
        high_text = high
        return _finish(sketch, "uniform", [low, high_text, f"size={size}", f"dtype=vd.{kind}"], "")
    truth = f"draws.uniform(SEED, {wide}, {first}, {shape}, {kind!r}, {low}, {high})"
    return _finish(sketch, "uniform", [low, high, f"size={size}", f"dtype=vd.{kind}"], truth)


def _normal(sketch: Sketch, method: str) -> Case:
    wide = _begin(sketch)
    kind = sketch.kind(("float32", "float64", "float16"))
    first = _before(sketch, method, f"dtype=vd.{kind}, ", even=True)
    size, shape = _size(sketch)
    arguments = []
    loc, scale = "0.0", "1.0"
    if method == "normal" and sketch.chance(60):
        loc, scale = sketch.pick([("1.0", "2.0"), ("-3.5", "0.5"), ("0.0", "0.0"), ("10", "3")])
        if sketch.chance(8):
            loc, scale = sketch.pick([("0.0", "-1.0"), ("np.nan", "1.0"), ("'a'", "1.0"), ("0", "np.inf")])
            sketch.refuses("loc, scale")
        arguments = [loc, scale]
    truth = f"draws.normal(SEED, {wide}, {first}, {shape}, {kind!r}, {loc}, {scale})"
    return _finish(sketch, method, [*arguments, f"size={size}", f"dtype=vd.{kind}"], truth)


def _integers(sketch: Sketch) -> Case:
    wide = _begin(sketch)
    kind = sketch.kind(_INTEGERS)
    info = np.iinfo(host_of(kind))
    ends = [
        (0, 10),
        (0, 64),
        (1, 7),
        (0, 100),
        (int(info.min), int(info.max) + 1),
        (0, 1),
        (int(info.max) - 5, int(info.max) + 1),
    ]
    if kind in _SIGNED:
        ends += [(-50, 50), (-1, 1)]
    if host_of(kind).itemsize == 8:
        ends += [(0, 1 << 40), (5, (1 << 33) + 12)]
    low, high = sketch.pick(ends)
    if sketch.chance(5):
        low, high = sketch.pick([(5, 5), (5, 3), (0, int(info.max) + 2), (int(info.min) - 1, 3)])
    first = (
        _before(sketch, "integers", f"low={low}, high={high}, dtype=vd.{kind}, ")
        if high > low and low >= info.min and high <= info.max + 1
        else 0
    )
    size, shape = _size(sketch)
    end = "high" if low or sketch.chance(70) else "low"
    arguments = [str(low), str(high)] if end == "high" else [str(high)]
    if sketch.chance(20) and high - 1 >= low:
        arguments[-1] = str(high - 1)
        sketch.option("endpoint", "True")
    if sketch.chance(3):
        arguments[0] = sketch.pick(["1.5", "'1'", "True", "None"])
        sketch.refuses("low")
    truth = f"draws.integers(SEED, {wide}, {first}, {shape}, {kind!r}, {low}, {high})"
    return _finish(sketch, "integers", [*arguments, f"size={size}", f"dtype=vd.{kind}"], truth)


def _permutation(sketch: Sketch) -> Case:
    _begin(sketch)
    case = sketch.case
    if sketch.chance(50):
        count = int(sketch.pick([10, 0, 1, 2, 52, 1024, 1025, 5000]))
        kind = sketch.kind(_INTEGERS)
        sketch.option("dtype", f"vd.{kind}")
        if count > np.iinfo(host_of(kind)).max + 1:
            sketch.refuses("dtype")
        if not case.truth:
            case.truth = f"np.arange({count}).astype(np.{kind})"
        case.results = "[np.sort(result.read(queue)) for queue in range(result.context.queue_count)]"
        sketch.finish([str(count)])
    else:
        kind, shape = sketch.kind(KINDS), sketch.shape(1)
        name = sketch.array(kind, shape, "small" if kind in VECTORS else "bits")
        axis, right = sketch.axis(len(shape), none=False) if sketch.chance(50) else ("0", True)
        if axis != "0":
            sketch.option("axis", axis)
        if not right:
            sketch.refuses("axis")
        else:
            place = f"({axis}) % {len(shape)}"
            case.truth = f"draws.rows({name}, {place})"
            case.results = (
                f"[draws.rows(result.read(queue), {place}) for queue in range(result.context.queue_count)]"
            )
        if sketch.chance(6) and right:
            sketch.option("out", name.upper())
            case.changed, case.excuse = {name}, "aliasing"
        sketch.finish([name.upper()])
    case.call = case.call.replace("vd.random.Generator.permutation(", "RNG.permutation(", 1)
    return case


def _shuffle(sketch: Sketch) -> Case:
    _begin(sketch)
    case = sketch.case
    kind, shape = sketch.kind(KINDS), sketch.shape(1, 3)
    name = sketch.array(kind, shape, "small" if kind in VECTORS else "bits")
    axis, right = sketch.axis(len(shape), none=False) if sketch.chance(50) else ("0", True)
    if axis != "0":
        sketch.option("axis", axis)
    case.changed = {name}
    if not right:
        sketch.refuses("axis")
    else:
        place = f"({axis}) % {len(shape)}"
        case.truth = f"draws.rows({name}, {place})"
        buffer = name.upper()
        case.results = (
            f"[draws.rows({buffer}.read(queue), {place}) for queue in range({buffer}.context.queue_count)]"
        )
    sketch.finish([name.upper()])
    case.call = case.call.replace("vd.random.Generator.shuffle(", "RNG.shuffle(", 1)
    return case


_AT = "vd.random.Generator."
FUNCTIONS = {
    f"{_AT}raw": _raw,
    f"{_AT}random": _random,
    f"{_AT}uniform": _uniform,
    f"{_AT}normal": lambda sketch: _normal(sketch, "normal"),
    f"{_AT}standard_normal": lambda sketch: _normal(sketch, "standard_normal"),
    f"{_AT}integers": _integers,
    f"{_AT}permutation": _permutation,
    f"{_AT}shuffle": _shuffle,
}
TRUTHS["draws"] = __import__(__name__, fromlist=["draws"])
__all__ = ["FUNCTIONS", "expected"]
