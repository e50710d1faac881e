"""What the functions refuse, and how they say it; what holds for all of them."""

from __future__ import annotations

from collections.abc import Callable
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
from vkdispatch.codegen.abbreviations import *  # noqa: F403

X = np.arange(12, dtype=np.float32).reshape(3, 4)
WRONG: list[tuple[str, type[Exception], str, Callable[[Any, Any], Any]]] = [
    ("no buffer", TypeError, "(?s)x: .*list.*asbuffer", lambda x, i: vd.transpose([1, 2])),
    ("axes", ValueError, "axes: repeated", lambda x, i: vd.transpose(x, (0, 0))),
    ("fewer axes", ValueError, "axes: expected each", lambda x, i: vd.transpose(x, (0,))),
    ("no axis", ValueError, "axes: .*2", lambda x, i: vd.transpose(x, (0, 2))),
    ("itself", ValueError, "out: ", lambda x, i: vd.roll(x, 1, out=x)),
    ("shape of out", ValueError, r"out: .*\(4, 3\)", lambda x, i: vd.transpose(x, out=x)),
    ("dtype of out", ValueError, "out: .*int32", lambda x, i: vd.flip(x, out=vd.Buffer((3, 4), vd.int32))),
    ("out is no buffer", TypeError, "out: ", lambda x, i: vd.flip(x, out=[1, 2])),
    ("float indices", TypeError, "indices: expected integers", lambda x, i: vd.take(x, x)),
    ("no mode", ValueError, "mode: .*'wrap'", lambda x, i: vd.take(x, i, mode="fill")),
    ("no mode of put", ValueError, "mode: .*'wrap'", lambda x, i: vd.put(x, i, 1.0, "fill")),
    ("take axis", ValueError, "axis: 2", lambda x, i: vd.take(x, i, 2)),
    ("along", ValueError, "indices: expected the shape", lambda x, i: vd.take_along_axis(x, i, 0)),
    ("put into a map", TypeError, "x: ", lambda x, i: vd.put(halved(x), i, 1.0)),
    ("put complex", TypeError, "values: ", lambda x, i: vd.put(x, i, 1j)),
    (
        "more than a byte",
        ValueError,
        "y: -1 is out of bounds",
        lambda x, i: vd.where(x, vd.Buffer((3, 4), vd.uint8), -1),
    ),
    ("put too much", ValueError, "values: ", lambda x, i: vd.put(i, i, 10**30)),
    (
        "fill with a text",
        TypeError,
        "constant_values: ",
        lambda x, i: vd.pad(x, 1, constant_values=np.str_("a")),
    ),
    ("put a list", TypeError, "values: ", lambda x, i: vd.put(x, i, [1, 2])),
    ("put its own", ValueError, "x: .* values,", lambda x, i: vd.put(x, i, x)),
    ("where alone", ValueError, "nonzero", lambda x, i: vd.where(x)),
    ("where with one", ValueError, "both", lambda x, i: vd.where(x, x)),
    ("where shapes", ValueError, r"condition, x, y: .*\(3, 4\)", lambda x, i: vd.where(x, i, 1)),
    ("where a text", TypeError, "x: ", lambda x, i: vd.where(x, "a", 1)),
    (
        "where dtypes",
        TypeError,
        "no common dtype",
        lambda x, i: vd.where(i, vd.buffer_v2(2), vd.buffer_v3(2)),
    ),
    ("join nothing", ValueError, "arrays: ", lambda x, i: vd.concatenate([])),
    ("join one", TypeError, "arrays: expected a list", lambda x, i: vd.concatenate(x)),
    ("join shapes", ValueError, r"arrays: .*\(2,\)", lambda x, i: vd.concatenate([x, i])),
    ("stack shapes", ValueError, "arrays: ", lambda x, i: vd.stack([x, i])),
    ("roll by half", TypeError, "shift: ", lambda x, i: vd.roll(x, 1.5)),
    ("roll by texts", TypeError, "shift: ", lambda x, i: vd.roll(x, "a")),
    ("shifts", ValueError, "3 shifts for 2 axes", lambda x, i: vd.roll(x, (1, 2, 3), (0, 1))),
    ("roll axis", ValueError, "axis: ", lambda x, i: vd.roll(x, 1, 2)),
    ("repeats", ValueError, "repeats: .*-1", lambda x, i: vd.repeat(x, -1)),
    ("negative width", ValueError, "pad_width: .*-1", lambda x, i: vd.pad(x, -1)),
    ("widths", ValueError, "pad_width: ", lambda x, i: vd.pad(x, ((1, 1), (1, 1), (1, 1)))),
    ("half a width", TypeError, "pad_width: ", lambda x, i: vd.pad(x, 0.5)),
    ("mean", ValueError, "mode: .*'mean'", lambda x, i: vd.pad(x, 1, "mean")),
    ("pad with nothing", ValueError, "no elements", lambda x, i: vd.pad(empty((0, 3)), 1, "edge")),
    ("filling", TypeError, "constant_values: ", lambda x, i: vd.pad(x, 1, constant_values="a")),
    ("map", TypeError, "output_map: ", lambda x, i: vd.flip(x, output_map=X)),
]


@vd.map
def halved(x: f32) -> f32:  # noqa: F405
    return x * 0.5


def empty(shape: tuple[int, ...]) -> Any:
    """Return a buffer of no elements."""
    return vd.Buffer(shape, vd.int32)


@pytest.mark.parametrize(
    ("kind", "text", "call"), [each[1:] for each in WRONG], ids=[each[0] for each in WRONG]
)
def test_refused_arguments(kind: type[Exception], text: str, call: Callable[[Any, Any], Any]) -> None:
    x, indices = vd.asbuffer(X), vd.asbuffer(np.int32([1, 2]))
    with pytest.raises(kind, match=text):
        call(x, indices)
    assert x.read(0).tobytes() == X.tobytes()


def test_results_are_made_where_the_first_array_is() -> None:
    x = vd.asbuffer(X)
    assert vd.transpose(x).context is x.context
    assert vd.take(x, vd.asbuffer(np.int32([0]))).context is x.context


def test_the_threads_graph_is_recorded_into() -> None:
    x = vd.asbuffer(X)
    graph = vd.CommandGraph()
    vd.set_global_graph(graph)
    try:
        turned, chosen = vd.transpose(x), vd.take(x, vd.asbuffer(np.int32([9, -1])))
    finally:
        vd.set_global_graph(None)
    x.write(X * 2)
    graph.submit()
    assert (turned.read(0) == X.T * 2).all()
    assert chosen.read(0).tolist() == [18, 22]


def test_equal_arguments_twice() -> None:
    x = vd.asbuffer(np.random.default_rng(0).random((513, 130), np.float32))
    indices = vd.asbuffer(np.random.default_rng(1).integers(0, 130, 99))
    calls: list[Callable[[], vd.Buffer[Any]]] = [
        lambda: vd.transpose(x),
        lambda: vd.take(x, indices, 1),
        lambda: vd.where(x, x, 0.5),
        lambda: vd.pad(x, 3, "reflect"),
    ]
    for call in calls:
        assert call().read(0).tobytes() == call().read(0).tobytes()


FORMS = """
import os, numpy as np, vkdispatch as vd
from vkdispatch.rearrange import moves
if os.environ["LARGE"] == "yes":
    moves._TOO_LARGE = 1
rng = np.random.default_rng(0)
def same(got, expected):
    assert got.read(0).tobytes() == np.ascontiguousarray(expected).tobytes(), (got.shape, expected.shape)
for kind, shapes in ((np.uint8, [(37, 41)]), (np.float32, [(132, 64), (37, 41), (5, 70, 6)])):
    for shape in shapes:
        a = rng.integers(0, 50, shape).astype(kind)
        x = vd.asbuffer(a)
        for axes in ((1, 0), (2, 1, 0), (1, 0, 2)):
            if len(axes) != len(shape): continue
            same(vd.transpose(x, axes), a.transpose(axes))
    i = rng.integers(-5, 5, 9)
    same(vd.take(x, vd.asbuffer(i), 0), a[i])
    same(vd.roll(x, (1, 2), (0, -1)), np.roll(a, (1, 2), (0, -1)))
    same(vd.pad(x, 4, "reflect"), np.pad(a, 4, "reflect"))
    same(vd.where(x, x, 3), np.where(a, a, kind(3)))
    same(vd.concatenate([x, x], 1), np.concatenate([a, a], 1))
    places = rng.integers(0, a.size, 999)
    values = rng.integers(0, 50, 999).astype(kind)
    same(vd.take(x, vd.asbuffer(places)), a.ravel()[places])
    vd.put(x, vd.asbuffer(places), vd.asbuffer(values))
    np.put(a, places, values)
    same(x, a)
print("fine")
"""


@pytest.mark.parametrize("large", ["no", "yes"])
def test_forms_for_large_buffers_give_the_same_results(
    run_python: Callable[..., CompletedProcess[str]], large: str
) -> None:
    ran = run_python(FORMS, VKDISPATCH_FORCE_VARIANT="wide,addressed", LARGE=large)
    assert ran.stdout.strip() == "fine", ran.stderr
