"""Plans of scans for CPU drivers, on every device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
from vkdispatch.families.tuning import device_facts
from vkdispatch.scans import launching
from vkdispatch.scans.planning import make_planner

from .truth import scanned, tuned

# one tile and part of one, several ranges, rows within a tile and across ranges, few columns and many
SHAPES: list[tuple[tuple[int, ...], int]] = [
    ((1,), 0),
    ((63,), 0),
    ((20_011,), 0),
    ((700, 4), 1),
    ((301, 7), 1),
    ((3, 9001), 1),
    ((40, 1024), 1),
    ((9001, 3), 0),
    ((500, 40), 0),
    ((3, 90, 16), 1),
]


@pytest.fixture(autouse=True)
def _cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VKDISPATCH_PLAN", "cpu")


@pytest.mark.parametrize("few", [2, 128])
@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
def test_all_plans(shape: tuple[int, ...], axis: int, few: int) -> None:
    rng = np.random.default_rng(5)
    x = rng.integers(-100, 100, shape).astype(np.int32)
    buffer = vd.asbuffer(x)
    starts = rng.random(shape) < 0.01
    with tuned(few_cpu=few, rounds_cpu=8):
        for options in ({}, {"reverse": True}, {"exclusive": True}, {"reverse": True, "exclusive": True}):
            wanted = {**options, "exclusive": 0 if options.get("exclusive") else None}
            for segments in (None, starts):
                flags = None if segments is None else vd.asbuffer(segments)
                found = vd.cumsum(buffer, axis, np.int32, segments=flags, **options).read(0)
                exact = scanned("cumsum", x, axis, starts=segments, dtype=np.int32, **wanted)
                np.testing.assert_array_equal(found, exact)


@pytest.mark.parametrize("kind", [np.uint8, np.float16, np.complex64, np.float64])
def test_other_dtypes(kind: Any) -> None:
    rng = np.random.default_rng(6)
    for shape, axis in ((20_011,), 0), ((300, 7), 1), ((900, 16), 0):
        x = rng.integers(0, 2, shape).astype(kind)
        if kind is np.float16:
            x = x * (rng.random(shape) < 0.05)
        dtype = np.uint32 if kind is np.uint8 else kind
        with tuned(few_cpu=2):
            found = vd.cumsum(vd.asbuffer(x.astype(kind)), axis, dtype).read(0)
        np.testing.assert_array_equal(found, np.cumsum(x, axis, dtype=dtype))


def test_kernels_of_rows_have_no_barriers(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = device_facts()
    if not (
        facts.has_shuffle and facts.has_shift and facts.has_one_subgroup_size and facts.subgroup_size >= 4
    ):
        pytest.skip("invocations exchange values by workgroup memory here")
    made: list[str] = []
    make_rows_kernel = launching.make_rows_kernel

    def noted(*args: Any) -> Any:
        kernel = make_rows_kernel(*args)
        made.append(str(kernel))
        return kernel

    monkeypatch.setattr(launching, "make_rows_kernel", noted)
    with tuned(few_cpu=2):
        vd.cumsum(vd.asbuffer(np.ones(20_011, np.float32)))
        vd.cumsum(vd.asbuffer(np.ones((700, 4), np.float32)), 1)
    assert len(made) >= 4
    assert not any("barrier" in source or "shared " in source for source in made)


def test_loops_are_short_enough_for_llvmpipe() -> None:
    # llvmpipe leaves loops after 65,535 rounds
    planner, most = make_planner(device_facts()), 0xFFFF
    assert planner.split_evenly(1, 1 << 31, 64).rounds <= most
    for outer, length in ((1 << 20, 1000), (8, 1 << 27), (1 << 10, 1 << 18)):
        ranges = planner.split_by_rows(outer, length, 64, 4)
        assert ranges is None or ranges.rounds <= most
    for length, inner in ((1 << 28, 2), (1 << 24, 8), (1 << 20, 1000)):
        assert planner.plan_columns(vd.float32, (1, length, inner), 1, is_whole=False).numbers[-1] <= most
