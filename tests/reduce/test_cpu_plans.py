"""Reductions as they are laid out for CPU drivers, on every device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
from vkdispatch.base.record import replace
from vkdispatch.families.operands import parse_operand
from vkdispatch.families.tuning import device_facts
from vkdispatch.reduce import launching
from vkdispatch.reduce import planning as cpu_planning
from vkdispatch.reduce.accumulators import make_sum
from vkdispatch.reduce.moments import make_moments
from vkdispatch.reduce.planning import MAX_ROUNDS, CpuPlanner, Planner, Shape, cpu_tuning

# one load and none, part of a chunk, several workgroups and partial results, rows that loads do not divide
SHAPES: list[tuple[tuple[int, ...], Any]] = [
    ((3,), None),
    ((129,), None),
    ((70_003,), None),
    ((1 << 20,), None),
    ((3, 70_001), 1),
    ((2000, 4), 1),
    ((301, 7), 1),
    ((40, 1100), 1),
    ((70_001, 3), 0),
    ((5000, 64), 0),
    ((3, 700, 10), 1),
    ((13, 5, 220), (0, 2)),
]


@vd.map
def product(a: vd.float32, b: vd.float32) -> vd.float32:
    return a * b


@pytest.fixture(autouse=True)
def _cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VKDISPATCH_PLAN", "cpu")


@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
def test_all_layouts(shape: tuple[int, ...], axis: Any) -> None:
    rng = np.random.default_rng(7)
    data = rng.integers(-100, 100, shape).astype(np.int32)
    x = vd.asbuffer(data)
    assert (vd.sum(x, axis, dtype=vd.int32).read(0) == data.sum(axis)).all()
    assert (vd.max(x, axis).read(0) == data.max(axis)).all()
    floats = rng.normal(1000, 1, shape).astype(np.float32)
    found = vd.std(vd.asbuffer(floats), axis).read(0)
    assert np.allclose(found, floats.std(axis, dtype=np.float64), rtol=2e-5)
    if not isinstance(axis, tuple):
        places = vd.argmax(vd.asbuffer(floats.round(1)), axis, dtype=vd.int32).read(0)
        assert (places == floats.round(1).argmax(axis)).all()


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.float16, np.complex64, bool])
def test_other_types(kind: Any) -> None:
    rng = np.random.default_rng(8)
    for shape, axis in SHAPES[2:9]:
        data = rng.integers(0, 3, shape).astype(kind)
        total = np.float32 if kind is np.float16 else kind if kind is np.complex64 else np.int32
        found = vd.sum(vd.asbuffer(data), axis, dtype=total).read(0)
        assert np.array_equal(
            found, data.sum(axis, dtype=np.complex128 if kind is np.complex64 else np.float64)
        )


def test_maps() -> None:
    a, b = (np.random.default_rng(9).integers(-9, 9, (60, 1001)).astype(np.float32) for _ in range(2))
    for axis in (None, 0, 1):
        found = vd.sum(product(vd.asbuffer(a), vd.asbuffer(b)), axis).read(0)
        assert np.array_equal(found, (a * b).sum(axis))


def _forms(launches: launching.Launches) -> list[str]:
    kernels = [launches.first.kernel] + ([] if launches.second is None else [launches.second.kernel])
    return [str(kernel) for kernel in kernels]


@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
def test_kernels_have_no_barriers(monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...], axis: Any) -> None:
    facts = device_facts()
    if not (facts.has_shuffle and facts.has_one_subgroup_size):
        pytest.skip("invocations exchange values by workgroup memory here")
    made: list[str] = []
    launch = launching.launch

    def noted(launches: launching.Launches, *args: Any) -> None:
        made.extend(_forms(launches))
        launch(launches, *args)

    monkeypatch.setattr(launching, "launch", noted)
    x = vd.asbuffer(np.ones(shape, np.float32))
    vd.sum(x, axis)
    vd.std(x, axis)
    assert len(made) >= 2
    assert not any("barrier" in source or "shared " in source for source in made)


def test_rounding_errors_stay_small_and_loops_short() -> None:
    # llvmpipe leaves loops after 65,535 rounds
    x = parse_operand(vd.asbuffer(np.ones(4, np.float32)))
    kinds = (vd.float32, vd.float32, vd.float32)
    for accumulator in (make_sum(*kinds), make_moments(*kinds)):
        planner = CpuPlanner(x.source, accumulator, x.context, None)
        for shape in (
            Shape("rows", 1, 1 << 31),
            Shape("rows", 7, 1 << 26),
            Shape("rows", 1 << 20, 1000),
            Shape("columns", 1000, 1 << 20, 1000),
            Shape("columns", 2, 1 << 26, 2),
            Shape("split", 3, 1 << 24, 5),
        ):
            plan = planner.plan(shape)
            first = plan.first.params
            assert -(-first.full // first.segments) <= MAX_ROUNDS
            assert plan.second is None or plan.second.params.full <= 16 * MAX_ROUNDS


def test_equal_bits_and_errors_of_pairwise_sums() -> None:
    data = np.full(1 << 20, 0.1, np.float32)
    x = vd.asbuffer(data)
    found = [vd.sum(x).read(0) for _ in range(3)]
    assert len({each.tobytes() for each in found}) == 1
    assert abs(float(found[0]) - float(data.sum(dtype=np.float64))) <= 1e-6 * data.size * 0.1


def test_group_size_is_respected_on_cpus() -> None:
    x = parse_operand(vd.asbuffer(np.ones(4, np.float32)))
    accumulator = make_sum(vd.float32, vd.float32, vd.float32)
    size = 2 * device_facts().subgroup_size
    planner = cpu_planning.make_planner(x.source, accumulator, x.context, size)
    assert type(planner) is Planner
    assert planner.group == size
    assert type(cpu_planning.make_planner(x.source, accumulator, x.context, None)) is CpuPlanner


def test_wide_workgroups_of_short_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    data = np.random.default_rng(3).integers(-50, 50, (4099, 6)).astype(np.int32)
    for group in (8, 64, 256):
        tuning = replace(cpu_tuning, group=group, groups=1)
        monkeypatch.setattr(cpu_planning, "cpu_tuning", tuning)
        for axis in (0, 1):
            assert (vd.sum(vd.asbuffer(data), axis, dtype=vd.int32).read(0) == data.sum(axis)).all()
