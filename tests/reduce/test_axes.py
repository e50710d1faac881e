"""Shapes, axes and workgroup sizes, against NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
from vkdispatch.reduce import SubgroupAdd, SubgroupMin
from vkdispatch.reduce.planning import find_shape

from .reductions import answer, plain

SHAPES = [
    (1,),
    (7,),
    (1, 50),
    (50, 1),
    (1, 1, 1),
    (3, 5),
    (64, 1000),
    (1000, 3),
    (3, 30_000),
    (30_011, 4),
    (4, 6, 7),
    (5, 100, 37),
    (2, 3, 9000),
    (300, 40, 2),
    (13, 1, 8),
]
# small whole numbers: their sums are exact, whatever the order
DATA = np.random.default_rng(5).integers(-50, 50, 200_000).astype(np.float32)


@pytest.mark.parametrize("axes", [[0], [1], [2], [0, 1], [1, 2], [0, 2], [0, 1, 2]], ids=str)
def test_every_axis_of_every_shape(axes: list[int]) -> None:
    reduction = plain(SubgroupAdd, vd.float32, axes)
    for shape in SHAPES:
        if max(axes) >= len(shape):
            continue
        data = DATA[: np.prod(shape)].reshape(shape)
        found = answer(reduction(vd.asbuffer(data)))
        expected = data.sum(axis=tuple(axes)).ravel()
        assert np.shape(found) == (() if expected.size == 1 else expected.shape), shape
        assert (found == expected).all(), shape


@pytest.mark.parametrize("axes", [-1, [-1], (np.int64(1),), {1}, [1]], ids=str)
def test_axes_may_be_negative_and_of_any_container(axes: Any) -> None:
    data = DATA[:600].reshape(20, 30)
    assert (answer(plain(SubgroupAdd, vd.float32, axes)(vd.asbuffer(data))) == data.sum(axis=1)).all()


def test_the_buffer_has_the_shape_and_dtype_of_the_result() -> None:
    buffer = vd.asbuffer(DATA[:600].reshape(20, 30))
    for axes, batch in ((None, ()), ([1], (20,)), ([0], (30,)), ([0, 1], ())):
        result = plain(SubgroupAdd, vd.float32, axes)(buffer)
        assert result.shape[1:] == batch
        assert result.var_type is vd.float32


def test_rows_of_all_lengths() -> None:
    # one invocation for each, some of a subgroup, a subgroup, a workgroup; with and without whole loads
    reduction = plain(SubgroupAdd, vd.float32, [1])
    for length in (1, 2, 3, 4, 5, 8, 12, 31, 32, 33, 64, 100, 127, 260, 516, 1024, 4100, 9001):
        rows = 3 + 5000 // length
        data = np.resize(DATA, (rows, length))
        assert (answer(reduction(vd.asbuffer(data))) == data.sum(axis=1)).all(), length


def test_small_types_in_rows() -> None:
    rng = np.random.default_rng(2)
    for name, shape in itertools.product(("uint8", "float16"), ((70, 5), (70, 32), (9, 3000), (3, 40, 16))):
        data = rng.integers(0, 5, shape).astype(name)
        for axes in ([-1], [0]):
            found = answer(plain(SubgroupAdd, getattr(vd, name), axes)(vd.asbuffer(data)))
            assert (found == data.sum(axis=axes[0], dtype=np.int64).astype(name).ravel()).all(), (name, shape)


@pytest.mark.parametrize("times", [1, 3, 5, 13])
def test_workgroups_of_any_size(times: int) -> None:
    group = times * vd.get_context().device_infos[0].sub_group_size
    if group > vd.get_context().max_workgroup_size[0]:
        pytest.skip("the device has no such workgroups")
    data = np.random.default_rng(3).integers(-100, 100, 20_000).astype(np.int32)
    # shorter than a workgroup, rows, columns, pieces: also for an identity that is not 0
    for operation, shape, axes in itertools.product(
        (SubgroupAdd, SubgroupMin), ((20_000,), (5,), (20, 333), (4, 6, 700)), ([0], [-1], [0, -1])
    ):
        if len(axes) > len(shape):
            continue
        part = data[: np.prod(shape)].reshape(shape)
        ufunc = np.add if operation is SubgroupAdd else np.minimum
        expected = ufunc.reduce(part, axis=tuple(axis % len(shape) for axis in axes))
        found = answer(plain(operation, vd.int32, axes, group)(vd.asbuffer(part)))
        assert (found == expected.ravel()).all(), (operation.name, shape, axes)


def test_layouts() -> None:
    assert [find_shape((2, 3, 4), axes).layout for axes in (None, (2,), (0,), (1,), (0, 2))] == [
        "rows",
        "rows",
        "columns",
        "columns",
        "split",
    ]
    # what is one axis in memory is one
    assert find_shape((2, 3, 4), (1, 2)) == find_shape((2, 12), (1,))
    assert find_shape((2, 1, 4), (0, 2)) == find_shape((8,), None)
