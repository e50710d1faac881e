"""The look-back. CPU drivers do not use it by default, but it works there with one thread."""

from __future__ import annotations

from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

import vkdispatch as vd
from vkdispatch.base.record import replace
from vkdispatch.families.tuning import NVIDIA, device_facts
from vkdispatch.scans.planning import LaneFacts, make_planner

_CODE = """
import numpy as np
import vkdispatch as vd
import vkdispatch.codegen as vc
from tests.scans.truth import scanned, tuned

rng = np.random.default_rng(0)

@vd.scan(identity=0)
def latest(a: vd.int32, b: vd.int32) -> vd.int32:
    return vc.select(b != 0, b, a)

def check(result, expected, what):
    np.testing.assert_array_equal(result.read(0), expected, str(what))

with tuned(lookback=1, packed={packed}, tickets={tickets}, native={packed}, looking_bytes_each=16):
    for shape in ((1100,), (70_001,), (40_000,), (3, 9000), (5, 5001), (70, 640)):
        axis = len(shape) - 1
        x = rng.integers(-9, 9, shape).astype(np.int32)
        starts = rng.random(shape) < 0.001
        for reverse in (False, True):
            found = vd.cumsum(vd.asbuffer(x), axis, dtype=np.int32, reverse=reverse)
            check(found, scanned("cumsum", x, axis, dtype=np.int32, reverse=reverse), (shape, reverse))
        found = vd.cumsum(vd.asbuffer(x), axis, np.int32, exclusive=True)
        check(found, scanned("cumsum", x, axis, dtype=np.int32, exclusive=0), (shape, "exclusive"))
        here = vd.asbuffer(x)
        found = vd.cumsum(here, axis, np.int32, here)
        check(found, scanned("cumsum", x, axis, dtype=np.int32), (shape, "in place"))
        flags = vd.asbuffer(starts)
        found = vd.cummax(vd.asbuffer(x > 6), axis, segments=flags, out=flags)
        check(found, scanned("cummax", x > 6, axis, starts=starts), (shape, "over the segments"))
        found = vd.cummax(vd.asbuffer(x), axis)
        check(found, scanned("cummax", x, axis), (shape, "cummax"))
        found = vd.cumsum(vd.asbuffer(x), axis, np.int32, segments=vd.asbuffer(starts))
        check(found, scanned("cumsum", x, axis, dtype=np.int32, starts=starts), (shape, "segments"))
    # boards are reused: launches of other sizes, dtypes and rows in turn, and again in a graph
    graph = vd.CommandGraph()
    x = rng.integers(-9, 9, (8, 9000))
    buffer, flat = vd.asbuffer(x), vd.asbuffer(x.reshape(-1)[:30_000].astype(np.int32))
    later = vd.cumsum(buffer, 1, graph=graph), vd.cumsum(flat, graph=graph)
    for _ in range(4):
        check(vd.cumsum(buffer, 1), np.cumsum(x, 1), "rows")
        check(vd.cumsum(flat), np.cumsum(x.reshape(-1)[:30_000]), "one row")
        graph.submit()
        check(later[0], np.cumsum(x, 1), "rows of a graph")
        check(later[1], np.cumsum(x.reshape(-1)[:30_000]), "a row of a graph")
    y = np.where(rng.random(50_000) < 0.001, rng.integers(1, 99, 50_000), 0).astype(np.int32)
    expected = y[np.maximum.accumulate(np.where(y != 0, np.arange(y.size), np.argmin(y)))]
    check(latest(vd.asbuffer(y)), expected, "latest")
    # bits are reproducible
    z = vd.asbuffer(rng.random(100_000, np.float32))
    first = vd.cumsum(z).read(0)
    for _ in range(3):
        check(vd.cumsum(z), first, "bits")
    np.testing.assert_allclose(first, np.cumsum(z.read(0), dtype=np.float64), rtol=1e-6)
print("right")
"""


@pytest.mark.parametrize("packed", [1, 0])
def test_look_back(run_python: Callable[..., CompletedProcess[str]], packed: int) -> None:
    # workgroups start in order on NVIDIA's devices, and on one thread of llvmpipe
    infos = vd.get_devices()
    ordered = all(info.is_llvmpipe() or info.vendor_id == NVIDIA for info in infos)
    code = _CODE.format(packed=packed, tickets=int(packed or not ordered))
    done = run_python(code, LP_NUM_THREADS="1")
    assert "right" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("vendor", "kind", "looks", "takes"),
    [(0x10DE, 2, True, False), (0x1002, 2, True, True), (0x106B, 1, False, True), (0x10005, 4, False, True)],
)
def test_device_decides_on_look_back(vendor: int, kind: int, looks: bool, takes: bool) -> None:
    device = replace(device_facts(), vendors=frozenset([vendor]), is_cpu=kind == 4)
    lanes = LaneFacts(
        32, has_shuffle=True, has_long_arithmetic=True, has_long_atomics=True, has_arithmetic=True
    )
    assert make_planner(device).can_look_back(lanes) is looks
    assert make_planner(device).needs_tickets() is takes
    assert not make_planner(device).can_look_back(replace(lanes, has_shuffle=False))
