"""How exact the device's own functions are, as measured: against NumPy, on other arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.compilation import disk_cache
from vkdispatch.codegen.abbreviations import Buff, f32
from vkdispatch.shader.measurement import devices as accuracy

RULES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "sin": (lambda x: vc.sin(x), np.sin),
    "exp": (lambda x: vc.exp(x), np.exp),
    "sqrt": (lambda x: vc.sqrt(x), np.sqrt),
    "division": (lambda x: 3 / x, lambda x: 3 / x),
}


@pytest.fixture
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget in this process, and hide from disk, what was measured."""
    monkeypatch.setattr(accuracy, "_measured", {})
    monkeypatch.setattr(disk_cache, "load", lambda kind, key: None)
    monkeypatch.setattr(disk_cache, "store", lambda kind, key, data: None)


@pytest.mark.parametrize("name", RULES)
def test_measured_errors_are_those_of_other_arguments(name: str) -> None:
    rule, truth = RULES[name]
    found = vd.measure_accuracy()[name]
    x = np.linspace(found.low, found.high, 30_011).astype(np.float32)
    out = vd.Buffer(x.shape, f32)

    @vd.shader("x.size")
    def function(out: Buff[f32], x: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        out[i] = rule(x[i].to_register())

    function(out, vd.asbuffer(x))
    true = truth(x.astype(np.float64))
    error = np.abs(out.read(0) - true)
    # near zeros the largest error in units depends on which arguments come nearest
    measured, here = (
        (found.absolute, error.max())
        if name == "sin"
        else (found.ulp, (error / np.spacing(np.abs(true).astype(np.float32))).max())
    )
    assert measured / 2 <= here <= measured * 2


def test_every_function_is_measured() -> None:
    found = vd.measure_accuracy()
    assert list(found) == list(accuracy._FUNCTIONS) and {"sin", "pow", "atan2", "division"} < set(found)
    for each in found.values():
        # a result of 24 bits is off by a quarter of a unit somewhere
        assert 0.25 < each.ulp < np.inf and 0 < each.absolute < np.inf and each.low < each.high


@pytest.mark.usefixtures("unmeasured")
def test_a_function_that_is_off_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    off = accuracy._Function(lambda x, y: vc.sqrt(x) + 0.5, lambda x, y: np.sqrt(x), 1.0, 2.0)
    bad = accuracy._Function(lambda x, y: vc.sqrt(-x), lambda x, y: np.sqrt(x), 1.0, 2.0)
    right = accuracy._Function(lambda x, y: x, lambda x, y: x, 1.0, 2.0)
    functions = dict.fromkeys(accuracy._FUNCTIONS, right) | {"cos": off, "exp": bad}
    monkeypatch.setattr(accuracy, "_FUNCTIONS", functions)
    accuracy._make_kernel.cache_clear()
    try:
        found = vd.measure_accuracy()
    finally:
        accuracy._make_kernel.cache_clear()
    assert found["cos"].absolute == pytest.approx(0.5, rel=1e-5)
    assert found["cos"].ulp == pytest.approx(0.5 / 2**-23, rel=1e-5)
    assert found["exp"].ulp == found["exp"].absolute == np.inf
    assert found["sin"] == accuracy.Accuracy(1.0, 2.0, 0.0, 0.0)


def test_it_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[tuple[str, str], bytes] = {}
    monkeypatch.setattr(accuracy, "_measured", {})
    monkeypatch.setattr(disk_cache, "load", lambda kind, key: kept.get((kind, key)))
    monkeypatch.setattr(disk_cache, "store", lambda kind, key, data: kept.update({(kind, key): data}))
    runs = []
    real = accuracy._measure
    monkeypatch.setattr(accuracy, "_measure", lambda *arguments: runs.append(arguments) or real(*arguments))
    info = vd.get_context().device_infos[0]
    assert accuracy.load_accuracy(info) is None
    first = vd.measure_accuracy()
    assert vd.measure_accuracy() == first == accuracy.load_accuracy(info) and len(runs) == 1
    accuracy._measured.clear()  # as in another process
    assert accuracy.load_accuracy(info) == first and vd.measure_accuracy() == first and len(runs) == 1
    (key,) = (key for key in kept if key[0] == "measured")
    assert info.device_name in key[1] and str(info.driver_version) in key[1]
    kept[key] = b"x"
    accuracy._measured.clear()
    assert vd.measure_accuracy() == first and len(runs) == 2


@pytest.mark.usefixtures("unmeasured")
def test_a_global_graph_does_not_record_it() -> None:
    graph = vd.CommandGraph()
    vd.set_global_graph(graph)
    try:
        found = vd.measure_accuracy()
    finally:
        vd.set_global_graph(None)
    assert found["division"].ulp < np.inf
    assert not graph.length


def test_the_device_is_one_of_the_context() -> None:
    context = vd.get_context()
    assert vd.measure_accuracy(context, device=0) == vd.measure_accuracy()
    for wrong in (len(context.device_infos), -1, True, "0"):
        with pytest.raises(ValueError, match="device: expected a number from 0"):
            vd.measure_accuracy(device=wrong)  # type: ignore[arg-type]
