"""Calls of what moves elements: transposes, gathers, joins."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from .case import TRUTHS, Case, Sketch
from .truth import Expected, Refused, bits, expected, moved
from .values import COMPLEX, INTEGERS, KINDS, NUMBERS, VECTORS, Array, host_of, name_of, parts_of


def _fill(sketch: Sketch, kind: str) -> str:
    return "small" if kind in VECTORS else str(sketch.pick(["small", "bits", "normal"]))


def _moving(sketch: Sketch, least: int = 0, kinds: Any = KINDS) -> tuple[str, str, str, tuple[int, ...]]:
    """Add an array, and return its dtype, how it is written twice, and its shape."""
    kind = sketch.kind(kinds)
    shape = sketch.shape(least)
    fill = _fill(sketch, kind)
    given, host = sketch.input(kind, shape, fill)
    return kind, given, host, shape


def _moved(
    sketch: Sketch, kind: str, given: str, host: str, function: str, *arguments: str, other: str = ""
) -> Case:
    """Finish a call of which NumPy's function moves elements."""
    around = "{}"
    fills = [each.fill for each in sketch.case.arrays.values()]
    if "bits" not in fills:
        around = sketch.output_map(kind)
    if not sketch.case.truth:
        sketch.case.truth = around.format(f"truth.moved(lambda i: {function}, {host}, {kind!r}{other})")
    sketch.out(inputs=list(sketch.case.arrays))
    return sketch.finish([given, *arguments])


def _transpose(sketch: Sketch) -> Case:
    kind, given, host, shape = _moving(sketch)
    count = len(shape)
    axes = "None"
    if sketch.chance(70) and count:
        order: list[Any] = list(range(count))
        for at in range(count):
            other = at + sketch.below(count - at)
            order[at], order[other] = order[other], order[at]
        order = [each - count if sketch.chance(20) else each for each in order]
        if sketch.chance(5):
            order = sketch.pick(
                [order[:-1], [*order[:-1], order[0]], [*order[:-1], count], [1.0, *order[1:]], [True] * count]
            )
            if sorted(
                each % count if isinstance(each, int) and not isinstance(each, bool) else -1 for each in order
            ) != list(range(count)):
                sketch.refuses("axes")
        axes = str(tuple(order))
    return _moved(sketch, kind, given, host, f"np.transpose(i, {axes})", axes)


def _indices(sketch: Sketch, shape: tuple[int, ...], length: int) -> tuple[str, str, str]:
    """Add indices, and a mode; return how they are written twice, and the mode."""
    kind = sketch.kind(INTEGERS)
    reach = min(length, int(np.iinfo(host_of(kind)).max) + 1)
    mode = sketch.pick(["None", "'raise'", "'wrap'", "'clip'"])
    fill = "index"
    if mode in ("'wrap'", "'clip'") or sketch.chance(4):
        fill = "beyond"
    if sketch.case.graph and mode == "'raise'":
        mode = "'wrap'"
    given, host = sketch.input(kind, shape, fill, reach)
    if mode != "None":
        sketch.option("mode", mode)
    truth_mode = "'wrap'" if sketch.case.graph and mode == "None" else "'raise'" if mode == "None" else mode
    return given, host, truth_mode


def _take(sketch: Sketch) -> Case:
    kind, given, host, shape = _moving(sketch)
    axis, right = sketch.axis(len(shape)) if sketch.chance(70) else ("None", True)
    length = (
        int(np.prod(shape, dtype=int))
        if axis == "None" or not right
        else shape[operator.index(eval(axis, {"np": np}))]
    )
    indices, places, mode = _indices(
        sketch, sketch.shape(0, 3) if np.prod(shape, dtype=int) < 100 else (2, 2), length
    )
    if not right:
        sketch.refuses("axis")
    if axis != "None":
        sketch.option("axis", axis)
    return _moved(sketch, kind, given, host, f"rearranging.take(i, {places}, {axis}, {mode})", indices)


def take(places: Array, indices: Array, axis: Any, mode: str) -> Array:
    if mode != "raise" and indices.dtype == np.uint64:
        length = places.size if axis is None else places.shape[axis]
        indices = (
            indices % np.uint64(max(length, 1))
            if mode == "wrap"
            else np.minimum(indices, np.uint64(max(length, 1) - 1))
        )
    return np.asarray(np.take(places, indices.astype(np.int64), axis, mode=mode))


def _take_along_axis(sketch: Sketch) -> Case:
    kind, given, host, shape = _moving(sketch, 1)
    axis, right = sketch.axis(len(shape), none=len(shape) == 1)
    place = operator.index(eval(axis, {"np": np})) if right and axis != "None" else -1
    length = shape[place]
    mine = list(shape)
    mine[place] = sketch.pick([length, 1, 3, 0, 17])
    if sketch.chance(4):
        mine.append(1)
    if np.prod(mine, dtype=int) > 20000:
        mine = list(shape)
    indices, places, mode = _indices(sketch, tuple(mine), length)
    sketch.option("axis", axis)
    if not right or len(mine) != len(shape):
        sketch.refuses("axis, indices")
    return _moved(sketch, kind, given, host, f"rearranging.along(i, {places}, {axis}, {mode})", indices)


def along(places: Array, indices: Array, axis: Any, mode: str) -> Array:
    axis = 0 if axis is None else axis
    length = places.shape[axis]
    wide = indices.astype(np.int64)
    if indices.size and not length and indices.size:
        raise Refused("indices: nothing to be found")
    if mode == "raise" and indices.size and (wide.min() < -length or wide.max() >= length):
        raise Refused("indices: out of bounds")
    wide = wide % max(length, 1) if mode != "clip" else np.clip(wide, 0, max(length - 1, 0))
    return np.asarray(np.take_along_axis(places, wide, axis))


def _put(sketch: Sketch) -> Case:
    kind = sketch.kind(NUMBERS)
    shape = sketch.shape()
    name = sketch.array(kind, shape, sketch.pick(["small", "bits"]))
    count = int(np.prod(shape, dtype=int))
    indices, places, mode = _indices(sketch, sketch.shape(), count)
    if sketch.chance(20):
        value = sketch.pick(["3", "1", "np.int8(2)"])
        values, given = value, value
    else:
        other = (
            kind if sketch.chance(70) else "int8" if kind in COMPLEX or host_of(kind).kind == "f" else kind
        )
        values, given = sketch.input(other, sketch.pick([(7,), (1,), (300,), (0,), (3, 4)]), "small")
    case = sketch.case
    case.changed = {name}
    case.results = name.upper()
    if not case.truth:
        case.truth = f"rearranging.put({name}, {places}, {given}, {mode}, {kind!r})"
    if sketch.chance(4):
        values = name.upper()
        case.truth = f"rearranging.put({name}, {places}, {name}, {mode}, {kind!r})"
        case.excuse = "aliasing"
    return sketch.finish([name.upper(), indices, values])


def put(x: Array, indices: Array, values: Any, mode: str, kind: str) -> Expected:
    new = np.asarray(values).astype(x.dtype).reshape(-1)
    if indices.size and not x.size:
        raise Refused("indices: x has no elements")
    found = x.copy()
    if mode != "raise" and indices.dtype == np.uint64 and x.size:
        indices = (
            indices % np.uint64(x.size) if mode == "wrap" else np.minimum(indices, np.uint64(x.size - 1))
        )
    wide = indices.astype(np.int64).reshape(-1)
    if mode == "raise" and wide.size and (wide.min() < -x.size or wide.max() >= x.size):
        raise Refused("indices: out of bounds")
    if new.size and wide.size:
        np.put(found, wide, new, mode)
    return bits(found, kind)


def _where(sketch: Sketch) -> Case:
    shape = sketch.shape()
    test = sketch.kind(NUMBERS)
    kind = sketch.kind(KINDS)
    parts: list[tuple[str, str, str]] = []
    for at in range(2):
        if kind not in VECTORS and sketch.chance(15):
            number = sketch.pick(["1", "0", "2.5", "True", "np.float32(1.5)", "-1", "1j", "300"])
            parts.append((number, number, ""))
            continue
        other = kind if at == 0 or kind in VECTORS or sketch.chance(80) else sketch.kind(NUMBERS)
        parts.append(
            (*sketch.input(other, _stretched(sketch, shape), _fill(sketch, other), maps=False), other)
        )
    condition, tested = sketch.input(
        test, _stretched(sketch, shape), sketch.pick(["flags", "small"]), maps=False
    )
    if kind in VECTORS:
        sketch.case.truth = f"rearranging.where_vectors({tested}, {parts[0][1]}, {parts[1][1]}, {kind!r})"
    else:
        sketch.case.truth = f"rearranging.where({tested}, {parts[0][1]}, {parts[1][1]})"
    sketch.out(inputs=list(sketch.case.arrays))
    return sketch.finish([condition, parts[0][0], parts[1][0]])


def _stretched(sketch: Sketch, shape: tuple[int, ...]) -> tuple[int, ...]:
    how = sketch.below(10)
    if how < 6 or not shape:
        return shape
    if how == 6:
        return shape[1:]
    at = sketch.below(len(shape))
    if how == 9 and sketch.chance(15):
        return (*shape[:at], shape[at] + 1, *shape[at + 1 :])
    return (*shape[:at], 1, *shape[at + 1 :])


def where(condition: Array, x: Any, y: Any) -> Expected:
    return expected(np.where(condition != 0, x, y))


def where_vectors(condition: Array, x: Array, y: Array, kind: str) -> Expected:
    return Expected(np.where((condition != 0)[..., None], x, y), kind)


def _concatenate(sketch: Sketch) -> Case:
    kind, shape = sketch.kind(KINDS), sketch.shape(1)
    axis, right = sketch.axis(len(shape))
    place = operator.index(eval(axis, {"np": np})) if right and axis != "None" else 0
    pieces = []
    for _ in range(1 + sketch.below(4)):
        mine = list(shape)
        if right:
            mine[place] = sketch.pick([shape[place], 1, 5, 0, 31])
        if sketch.chance(3):
            mine[-1] += 1
        if np.prod(mine, dtype=int) > 20000:
            mine = list(shape)
        other = kind if kind in VECTORS or sketch.chance(85) else sketch.kind(NUMBERS)
        pieces.append(sketch.input(other, tuple(mine), _fill(sketch, other)))
    if sketch.chance(5):
        pieces.append(pieces[0])
    sketch.option("axis", axis)
    _joined(sketch, kind, pieces, right, f"np.concatenate([%s], {axis})")
    return sketch.finish([f"[{', '.join(each for each, _ in pieces)}]"])


def _joined(sketch: Sketch, kind: str, pieces: list[tuple[str, str]], right: bool, call: str) -> None:
    hosts = ", ".join(host for _, host in pieces)
    if not right:
        sketch.refuses("axis")
    elif kind in VECTORS:
        sketch.case.truth = (
            f"rearranging.join_vectors(lambda each: {call.replace('[%s]', 'each')}, [{hosts}], {kind!r})"
        )
    else:
        sketch.case.truth = f"rearranging.join({call % hosts})"
    sketch.out(inputs=list(sketch.case.arrays))


def join(found: Array) -> Expected:
    return bits(found) if found.dtype.kind not in "fc" else expected(found)


def join_vectors(function: Any, arrays: list[Array], kind: str) -> Expected:
    parts = parts_of(kind)[0]
    found = [function([each[..., at] for each in arrays]) for at in range(parts)]
    return Expected(np.stack(found, -1), kind)


def _stack(sketch: Sketch) -> Case:
    kind, shape = sketch.kind(KINDS), sketch.shape(0, 4)
    axis, right = sketch.axis(len(shape) + 1, none=False)
    pieces = []
    for _ in range(1 + sketch.below(4)):
        other = kind if kind in VECTORS or sketch.chance(85) else sketch.kind(NUMBERS)
        mine = shape if sketch.chance(98) else (*shape[:-1], 77)
        pieces.append(sketch.input(other, mine, _fill(sketch, other)))
    sketch.option("axis", axis)
    _joined(sketch, kind, pieces, right, f"np.stack([%s], {axis})")
    return sketch.finish([f"[{', '.join(each for each, _ in pieces)}]"])


def _roll(sketch: Sketch) -> Case:
    kind, given, host, shape = _moving(sketch)
    shifts = sketch.pick(["1", "-1", "0", "7", "-100", "10**6", "np.int64(3)"])
    axis, right = ("None", True)
    if shape and sketch.chance(70):
        if sketch.chance(40):
            count = 1 + sketch.below(3)
            chosen = [sketch.below(2 * len(shape)) - len(shape) for _ in range(count)]
            by = [sketch.below(41) - 20 for _ in range(count if sketch.chance(95) else count + 1)]
            axis, shifts = str(tuple(chosen)), str(tuple(by))
        else:
            axis, right = sketch.axis(len(shape))
    if sketch.chance(3):
        shifts = sketch.pick(["1.5", "'1'", "True", "None"])
        sketch.refuses("shift")
    if not right:
        sketch.refuses("axis")
    if axis != "None":
        sketch.option("axis", axis)
    return _moved(sketch, kind, given, host, f"np.roll(i, {shifts}, {axis})", shifts)


def _flip(sketch: Sketch) -> Case:
    kind, given, host, shape = _moving(sketch)
    axis, right = sketch.axis(len(shape), several=True) if sketch.chance(70) else ("None", True)
    if axis != "None":
        sketch.option("axis", axis)
    if not right:
        sketch.refuses("axis")
    return _moved(sketch, kind, given, host, f"np.flip(i, {axis})", *[])


def _tile(sketch: Sketch) -> Case:
    kind, given, host, shape = _moving(sketch)
    if np.prod(shape, dtype=int) > 3000:
        reps = sketch.pick(["1", "(1, 2)", "0", "2"])
    else:
        reps = sketch.pick(["2", "1", "0", "(2, 3)", "(1, 2, 2)", "(2, 1, 1, 2)", "()", "np.int32(2)"])
    if sketch.chance(5):
        reps = sketch.pick(["-1", "1.5", "(2, -1)", "True", "'2'"])
        sketch.refuses("reps")
    return _moved(sketch, kind, given, host, f"np.tile(i, {reps})", reps)


def _repeat(sketch: Sketch) -> Case:
    kind, given, host, shape = _moving(sketch)
    axis, right = sketch.axis(len(shape)) if sketch.chance(60) else ("None", True)
    repeats = sketch.pick(["2", "1", "0", "3", "np.int64(2)"])
    if sketch.chance(4):
        repeats = sketch.pick(["-1", "1.5", "True", "'2'", "None"])
        sketch.refuses("repeats")
    if axis != "None":
        sketch.option("axis", axis)
    if not right:
        sketch.refuses("axis")
    return _moved(sketch, kind, given, host, f"np.repeat(i, {repeats}, {axis})", repeats)


def _pad(sketch: Sketch) -> Case:
    kind, given, host, shape = _moving(sketch, 1)
    mode = sketch.pick(["constant", "edge", "reflect", "symmetric", "wrap"])
    widths = [(sketch.below(12) >> len(shape) // 3, sketch.below(12) >> len(shape) // 3) for _ in shape]
    if len(shape) < 4 and sketch.chance(20):
        widths = [(sketch.below(60), sketch.below(60)) for _ in shape]
    width = sketch.pick([str(tuple(widths)), "1", "(2, 3)", "((1, 0),)", "0", "((4,),)"])
    other = ""
    if sketch.chance(3):
        mode = sketch.pick(["linear_ramp", "mean", "median", "no"])
        sketch.refuses("mode")
    if sketch.chance(3):
        width = sketch.pick(["-1", "1.5", "(1, 2, 3)", "True", "'1'", "((1, 2),) * 6"])
        sketch.refuses("pad_width")
    if mode != "constant" or sketch.chance(50):
        sketch.option("mode", repr(mode))
    function = f"np.pad(i, {width}, {mode!r})"
    if mode == "constant":
        number = "0"
        if sketch.chance(40) and kind != "bool_":
            number = sketch.pick(["3", "1", "7"])
            sketch.option("constant_values", number)
        function = f"np.pad(i, {width}, 'constant', constant_values=-1)"
        other = f", {number}"
    return _moved(sketch, kind, given, host, function, width, other=other)


def _copyto(sketch: Sketch) -> Case:
    kind, shape = sketch.kind(KINDS), sketch.shape(smallest=1)
    source = sketch.array(kind, shape, _fill(sketch, kind))
    how = sketch.below(10)
    other, mine = (
        (kind, shape)
        if how < 8
        else (("int16" if kind != "int16" else "int32"), shape)
        if how == 8
        else (kind, (*shape[:-1], 77))
    )
    target = sketch.array(other, mine, "small")
    case = sketch.case
    case.changed, case.results = {target}, target.upper()
    case.truth = f"truth.bits({source}, {kind!r})"
    if (other, mine) != (kind, shape):
        sketch.refuses("dst, src: another shape or dtype")
    if sketch.chance(5):
        case.changed, case.results = set(), source.upper()
        case.truth = f"truth.bits({source}, {kind!r})"
        return sketch.finish([source.upper(), source.upper()])
    return sketch.finish([target.upper(), source.upper()])


FUNCTIONS = {
    "vd.transpose": _transpose,
    "vd.take": _take,
    "vd.take_along_axis": _take_along_axis,
    "vd.put": _put,
    "vd.where": _where,
    "vd.concatenate": _concatenate,
    "vd.stack": _stack,
    "vd.roll": _roll,
    "vd.flip": _flip,
    "vd.tile": _tile,
    "vd.repeat": _repeat,
    "vd.pad": _pad,
    "vd.copyto": _copyto,
}
TRUTHS["rearranging"] = __import__(__name__, fromlist=["rearranging"])
__all__ = ["FUNCTIONS", "moved", "name_of"]
