"""Parameters of maps may share names with other maps of the call and with the library's kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
from vkdispatch.codegen.abbreviations import Const, f32

X = np.random.default_rng(8).integers(1, 50, 96).astype(np.float32)
Array = np.ndarray[Any, Any]


def maps_of(names: tuple[str, ...]) -> tuple[Any, Any]:
    """An input map and an output map with further parameters of these names: both multiply by them."""
    scope: dict[str, Any] = {}
    exec(f"def times(x, {', '.join(names)}):\n    return x * {' * '.join(names)}\n", scope)
    made = scope["times"]
    given, result = (vd.map(made, f32, [f32, *[Const[f32]] * len(names)]) for _ in range(2))
    return given, result


FAMILIES: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Array], Any]]] = {
    "sum": (lambda x, m: vd.sum(x, output_map=m), np.sum),
    "max of rows": (lambda x, m: vd.max(x, output_map=m), np.max),
    "argmax": (lambda x, m: vd.argmax(x), np.argmax),
    "var": (lambda x, m: vd.var(x, output_map=m), np.var),
    "norm": (lambda x, m: vd.norm(x, output_map=m), np.linalg.norm),
    "cumsum": (lambda x, m: vd.cumsum(x, output_map=m), np.cumsum),
    "sort": (lambda x, m: vd.sort(x, output_map=m), np.sort),
    "topk": (lambda x, m: vd.topk(x, 5, output_map=m)[0], lambda x: np.sort(x)[::-1][:5]),
    "median": (lambda x, m: vd.median(x, output_map=m), np.median),
    "unique": (lambda x, m: vd.unique(x, output_map=m), np.unique),
    "transpose": (lambda x, m: vd.transpose(x, output_map=m), np.transpose),
    "take": (
        lambda x, m: vd.take(x, vd.asbuffer(np.array([3, 1], np.int32)), output_map=m),
        lambda x: x[[3, 1]],
    ),
    "matmul": (lambda x, m: vd.matmul(x, x, output_map=m), lambda x: x @ x),
    "histogram": (
        lambda x, m: vd.histogram(x, 4, range=(0.0, 1200.0))[0],
        lambda x: np.histogram(x, 4, range=(0, 1200))[0],
    ),
}
COMMON = ("a", "graph", "exec_size", "PC")
OWN = {
    "sum": ("reduce_segments", "reduce_blocks", "reduce_result", "reduce_partials", "reduce_a_vec4", "self"),
    "max of rows": ("reduce_blocks", "reduce_initial"),
    "argmax": ("reduce_segments",),
    "var": ("reduce_result", "reduce_counters"),
    "norm": ("reduce_segments",),
    "cumsum": ("scan_result", "scan_length", "scan_tiles"),
    "sort": ("sort_result", "sort_length", "sort_keys"),
    "topk": ("top_values", "top_samples", "top_count"),
    "median": ("median_result", "median_rows", "median_length"),
    "unique": ("unique_values", "counts", "edges"),
    "transpose": ("result", "move_total"),
    "take": ("result", "move_count", "move_total", "indices_x"),
    "matmul": ("matmul_result", "matmul_rows", "matmul_splits"),
    "histogram": ("stream_groups", "dense", "counts", "edges"),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_all_argument_names_are_accepted(family: str) -> None:
    function, truth = FAMILIES[family]
    x = vd.asbuffer(X)
    # All at once: of some families a driver compiles each kernel for seconds.
    names = (*COMMON, *OWN[family])
    given, result = maps_of(names)
    rest = [2.0**place for place in range(1, len(names))]
    whole = float(np.prod(rest))
    actual = function(given(x, 3 / whole, *rest), result(2 / whole, *rest)).read(0)
    expected = np.asarray(truth(3 * X))
    if not family.startswith(("arg", "hist")):
        expected = 2 * expected
    np.testing.assert_allclose(actual, expected, rtol=1e-5)
