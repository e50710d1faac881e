"""Reductions, as a program written for 0.1.0 uses them."""

from __future__ import annotations

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import *  # noqa: F403

NAMES = """reduce map_reduce ReduceOp SubgroupAdd SubgroupMul SubgroupMin SubgroupMax SubgroupAnd SubgroupOr
SubgroupXor ReduceFunction ReductionParams make_reduction_stage mapped_io_index"""


def test_names() -> None:
    for name in NAMES.split():
        assert hasattr(vd.reduce, name), name
    assert "reduce" in dir(vd)


@pytest.mark.parametrize(
    ("name", "identity"),
    [("Add", 0), ("Mul", 1), ("Min", "inf"), ("Max", "-inf"), ("And", -1), ("Or", 0), ("Xor", 0)],
)
def test_operations(name: str, identity: object) -> None:
    operation = getattr(vd.reduce, f"Subgroup{name}")
    assert (operation.name, operation.identity) == (name.lower(), identity)
    assert callable(operation.reduction)
    assert operation.subgroup_reduction is getattr(vc, f"subgroup_{name.lower()}")


def test_a_sum_of_all_elements() -> None:
    @vd.reduce.reduce(0)
    def sum_reduce(a: f32, b: f32) -> f32:  # noqa: F405
        return a + b

    data = np.random.default_rng(0).random((30, 500)).astype(np.float32)
    result = sum_reduce(vd.asbuffer(data))
    assert isinstance(result, vd.Buffer)
    assert len(result.shape) == 1
    assert np.allclose([result.read(0)[0]], [data.sum()])


def test_a_batch_of_one_gives_a_number() -> None:
    @vd.reduce.reduce(0, axes=[1])
    def sum_rows(a: f32, b: f32) -> f32:  # noqa: F405
        return a + b

    assert sum_rows(vd.asbuffer(np.ones((1, 50), np.float32))).read(0)[0] == 50
    assert (sum_rows(vd.asbuffer(np.ones((4, 50), np.float32))).read(0)[0] == [50] * 4).all()


def test_a_map_with_constants_in_a_graph() -> None:
    @vd.reduce.map_reduce(vd.reduce.SubgroupAdd, axes=[1, 2])
    def moment(x: Buff[f32], power: Const[f32], scale: Var[f32]) -> f32:  # noqa: F405
        return vc.pow(x[vd.reduce.mapped_io_index()], power) * scale

    data = np.random.default_rng(1).random((3, 20, 70)).astype(np.float32)
    graph = vd.CommandGraph()
    result = moment(vd.asbuffer(data), 2.0, graph.bind_var("scale"), graph=graph)
    graph.set_var("scale", 3.0)
    graph.submit()
    assert np.allclose(result.read(0)[0], 3 * (data**2).sum(axis=(1, 2)), rtol=1e-5)


def test_sources_are_two() -> None:
    @vd.reduce.map_reduce(vd.reduce.SubgroupMax, group_size=64)
    def largest(x: Buff[i32]) -> i32:  # noqa: F405
        return x[vd.reduce.mapped_io_index()]

    sources = largest.get_src()
    assert len(sources) == 2
    assert all(isinstance(source, vd.ShaderSource) for source in sources)
    assert largest.group_size == 64
    assert largest.stage1 is not None
    assert largest.stage1.local_size[0] == 64
