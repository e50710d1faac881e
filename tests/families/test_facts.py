"""Facts of devices, which the planners of all families read."""

from types import SimpleNamespace

import numpy as np
import pytest

import vkdispatch as vd
from vkdispatch.base import dtype
from vkdispatch.base.context import Context
from vkdispatch.base.record import replace
from vkdispatch.families.tuning import AMD, INTEL, NVIDIA, device_facts
from vkdispatch.scans.planning import make_planner
from vkdispatch.sorting.launching import choose_tile

BASIC, ARITHMETIC, BALLOT, SHUFFLE, SHIFT = 0x1, 0x4, 0x8, 0x10, 0x20
EVERY = BASIC | ARITHMETIC | BALLOT | SHUFFLE | SHIFT


def of(*changes):
    """Return the facts of devices that are like the context's, but for some changes."""
    own = vd.get_context()
    gpu = {"device_type": 2, "vendor_id": NVIDIA, "sub_group_size": 32, "supported_operations": EVERY}
    infos = [replace(own.device_infos[0], **(gpu | each)) for each in changes]
    context = SimpleNamespace(device_infos=infos, runs=True, kept={}, max_invocations_along_x=1024)
    context.features = frozenset.intersection(*(info.features for info in infos))
    context.is_cpu = lambda: any(info.is_cpu() for info in infos)
    context._keep = lambda name, make: context.kept.setdefault(name, make())
    Context.refresh_limits_from_device_infos(context)
    return device_facts(context)


def test_facts_are_gathered_once():
    context = vd.get_context()
    facts = device_facts()
    assert device_facts(context) is facts
    info = context.device_infos[0]
    assert (facts.is_cpu, facts.subgroup_size, facts.shared_memory) == (
        info.is_cpu(),
        info.sub_group_size,
        info.max_compute_shared_memory_size,
    )
    assert facts.power_group(200) == 128 and facts.power_group(1 << 20) <= facts.max_group


@pytest.mark.parametrize("missing", [0, ARITHMETIC, BALLOT, SHUFFLE, SHIFT, BASIC])
def test_operations_are_those_of_all_devices(missing):
    for facts in (
        of({"supported_operations": EVERY & ~missing}),
        of({}, {"supported_operations": EVERY & ~missing}),
    ):
        found = facts.has_arithmetic, facts.has_ballot, facts.has_shuffle, facts.has_shift
        kinds = (ARITHMETIC, BALLOT, SHUFFLE, SHIFT)
        assert found == tuple(missing not in (kind, BASIC) for kind in kinds)


@pytest.mark.parametrize(
    ("changes", "scans", "sorts"),
    [
        (({},), (32, True), 32),
        (({"vendor_id": AMD, "sub_group_size": 64},), (64, True), 64),
        (({"vendor_id": INTEL},), (32, True), 1),  # may run with smaller subgroups
        (({"supported_operations": EVERY & ~SHIFT},), (64, False), 32),
        (({"supported_operations": EVERY & ~BALLOT},), (32, True), 1),
        (({"sub_group_size": 2},), (64, False), 1),  # tables of so many subgroups have no room
        (({}, {"sub_group_size": 64}), (64, False), 1),
    ],
)
def test_families_plan_by_them(changes, scans, sorts):
    facts = of(*changes)
    lanes = make_planner(facts).choose_lanes(dtype.float32)
    assert (lanes.size, lanes.has_shuffle) == scans
    assert choose_tile(facts, dtype.uint32, None).subgroup == sorts


def test_plans_for_the_other_kind_of_device(monkeypatch: pytest.MonkeyPatch) -> None:
    for chosen in ("gpu", "cpu"):
        monkeypatch.setenv("VKDISPATCH_PLAN", chosen)
        assert device_facts().is_cpu is (chosen == "cpu")
        assert vd.sum(vd.asbuffer(np.arange(1000, dtype=np.int32))).read(0) == 499500
    for wrong in ("tpu", "cpu,gpu"):
        with pytest.raises(ValueError, match="VKDISPATCH_PLAN"):
            monkeypatch.setenv("VKDISPATCH_PLAN", wrong)
            device_facts(vd.make_context())
