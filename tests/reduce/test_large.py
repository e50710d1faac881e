"""Buffers beyond the device's bindings, and the forms of kernels for still larger ones."""

from __future__ import annotations

import re
from collections.abc import Callable
from subprocess import CompletedProcess

import numpy as np
import pytest

import vkdispatch as vd
from vkdispatch.codegen.abbreviations import *  # noqa: F403
from vkdispatch.compiler.forms import Variant
from vkdispatch.families.operands import plain_output
from vkdispatch.reduce import SubgroupAdd, SubgroupMax, mapped_io_index
from vkdispatch.reduce.kernels import make_stage_kernel
from vkdispatch.reduce.planning import Plan, find_shape

from .reductions import answer, plain

FORMS = """
import itertools
import numpy as np, vkdispatch as vd
from vkdispatch.codegen.abbreviations import *
from vkdispatch.families.sources import identity_map
rng = np.random.default_rng(0)
def check(kind, shape, axes):
    data = rng.integers(0, 50, shape).astype(kind.name)
    reduction = vd.reduce.ReduceFunction(vd.reduce.SubgroupAdd, None, axes, identity_map(kind), plain=True)
    found = reduction(vd.asbuffer(data)).read(0)[0]
    expected = data.sum(axis=None if axes is None else tuple(axes), dtype=kind.name)
    assert (found == expected.ravel()).all(), (kind, shape, axes)
for shape in ((3,), (40_003,), (70, 8), (700, 5), (3, 30_000), (4, 6, 70), (3, 5, 3000)):
    for count in range(1, len(shape) + 1):
        for axes in itertools.combinations(range(len(shape)), count):
            check(vd.float32, shape, list(axes))
check(vd.uint8, (100_003,), None)
@vd.reduce.map_reduce(vd.reduce.SubgroupMax)
def last(x: Buff[u8]) -> u64:
    return vd.reduce.mapped_io_index().to_dtype(vd.uint64) + 0 * x[vd.reduce.mapped_io_index()]
assert last(vd.asbuffer(np.zeros(100_003, np.uint8))).read(0)[0] == 100_002
print("fine")
"""


@pytest.mark.parametrize("forms", ["wide,addressed", "addressed"])
def test_all_forms_are_equal(run_python: Callable[..., CompletedProcess[str]], forms: str) -> None:
    ran = run_python(FORMS, VKDISPATCH_FORCE_VARIANT=forms)
    assert ran.stdout.strip() == "fine", ran.stderr


def test_buffers_larger_than_a_binding() -> None:
    size = (128 << 20) + 4099

    @vd.reduce.map_reduce(SubgroupAdd)
    def total(x: Buff[u8]) -> u32:  # noqa: F405
        return x[mapped_io_index()]

    buffer = vd.Buffer(size, vd.uint8)
    data = np.resize(np.arange(251, dtype=np.uint8), size)
    buffer.write(data)
    assert answer(total(buffer)) == data.sum(dtype=np.uint64) % (1 << 32)


def _planned(reduction: vd.reduce.ReduceFunction, shape: tuple[int, ...]) -> Plan:
    """Plan for a buffer that need not exist."""
    source = reduction._parse_operand((vd.Buffer(1, vd.uint8),)).source
    planner = reduction._make_planner(source, vd.get_context())
    return planner.plan(find_shape(shape, reduction._axes))


def _wide_source(plan: Plan, reduction: vd.reduce.ReduceFunction) -> str:
    x = reduction._parse_operand((vd.Buffer(1, vd.uint8),))
    sink = plain_output(reduction.out_type).sink
    kernel = make_stage_kernel(plan.first.form, x.source, reduction._find_accumulator(x.context), sink)
    form = Variant(addressed=True, wide=True)
    return kernel.shader_description.shader_source((plan.first.form.group, 1, 1), form).code


@pytest.mark.parametrize(
    ("shape", "axes"),
    [((6 << 30,), None), ((1 << 32, 4), (1,)), ((3, 5 << 31), (1,)), ((1 << 20, 3, 1 << 12), (1,))],
    ids=str,
)
def test_plans_of_more_elements_than_32_bits_count(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    reduction = plain(SubgroupMax, vd.uint8, axes)
    plan = _planned(reduction, shape)
    form, numbers = plan.first.form, plan.first.params
    numbers.as_arguments()
    loads = numbers.full * form.lanes * form.unroll + numbers.rest
    assert loads * (form.together // form.columns) + numbers.tail == find_shape(shape, axes).length
    results = form.group // form.lanes * form.results
    columns = (numbers.blocks - 1) * results + numbers.last
    assert columns * form.columns == find_shape(shape, axes).count
    # no address is made of 32 bits
    lines = [
        line for line in _wide_source(plan, reduction).splitlines() if ".data[" in line and "[]" not in line
    ]
    assert lines
    assert all(re.search(r"\dul|uint64_t|long_", line) for line in lines)


def test_the_index_of_an_element_of_a_large_buffer_has_all_its_bits() -> None:
    @vd.reduce.map_reduce(SubgroupMax)
    def last(x: Buff[u8]) -> u64:  # noqa: F405
        return mapped_io_index().to_dtype(vd.uint64) + x[mapped_io_index()]

    if not vd.get_devices()[0].int_64_support:
        pytest.skip("the device lacks 64-bit integers")
    source = _wide_source(_planned(last, (6 << 30,)), last)
    sums = [line for line in source.splitlines() if "= uint64_t(" in line and ">>" in line]
    assert sums
    assert all("uint64_t(long_mapped_index" in line for line in sums)


def test_maps_that_only_read_elements_have_no_index() -> None:
    @vd.reduce.map_reduce(SubgroupAdd)
    def square(x: Buff[f32], k: Const[f32]) -> f32:  # noqa: F405
        return x[mapped_io_index()] * x[mapped_io_index()] * k

    assert "mapped_index" not in square.get_src()[0].code
