"""Mapping functions: several buffers, numbers, other elements than the mapped one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import *  # noqa: F403
from vkdispatch.reduce import SubgroupAdd, SubgroupMax, mapped_io_index

from .reductions import answer

SIZES = (1, 3, 4, 1237, 50_001)


@vd.reduce.map_reduce(SubgroupAdd)
def dot(x: Buff[f32], y: Buff[f32], factor: Const[f32]) -> f32:  # noqa: F405
    i = mapped_io_index()
    return x[i] * y[i] * factor


def pair(size: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(size)
    return rng.integers(-9, 9, size).astype(np.float32), rng.integers(-9, 9, size).astype(np.float32)


@pytest.mark.parametrize("size", SIZES)
def test_two_buffers_and_a_number(size: int) -> None:
    x, y = pair(size)
    assert answer(dot(vd.asbuffer(x), vd.asbuffer(y), 2.0)) == 2 * np.dot(x, y)


def test_one_buffer_as_both() -> None:
    x = vd.asbuffer(np.full(999, 3, np.float32))
    assert answer(dot(x, x, 1.0)) == 999 * 9


def test_several_elements_are_loaded_at_once() -> None:
    text = dot.get_src()[0].code
    assert text.count("uvec4 data[]") == 2
    assert dot.stage1 is not None
    # the first loads of both buffers come before the first use of any
    first = text[text.index("for (") :]
    assert (
        first[: first.index("*=") if "*=" in first else first.index(" * PC.factor")].count("uvec4 var") >= 8
    )


def test_elements_of_different_sizes() -> None:
    @vd.reduce.map_reduce(SubgroupAdd)
    def mixed(x: Buff[f64], y: Buff[u8], z: Buff[f16]) -> f64:  # noqa: F405
        i = mapped_io_index()
        return x[i] + y[i].to_dtype(vd.float64) * z[i].to_dtype(vd.float64)

    rng = np.random.default_rng(1)
    for size in (1, 2, 3001):
        x = rng.random(size)
        y, z = rng.integers(0, 200, size).astype(np.uint8), rng.random(size).astype(np.float16)
        expected = (x + y * z.astype(np.float64)).sum()
        assert answer(mixed(vd.asbuffer(x), vd.asbuffer(y), vd.asbuffer(z))) == pytest.approx(expected)


def test_neighbours_and_other_elements() -> None:
    @vd.reduce.map_reduce(SubgroupMax)
    def steepest(x: Buff[i32]) -> i32:  # noqa: F405
        i = mapped_io_index()
        after = vc.min(i.to_dtype(vd.int32) + 1, x.shape.w - 1)
        return vc.abs(x[after] - x[i])

    data = np.random.default_rng(2).integers(-1000, 1000, 40_000).astype(np.int32)
    assert answer(steepest(vd.asbuffer(data))) == np.abs(np.diff(data)).max()


def test_the_index_counts_through_the_whole_buffer() -> None:
    @vd.reduce.map_reduce(SubgroupMax, axes=[1])
    def last(x: Buff[u32]) -> u32:  # noqa: F405
        return mapped_io_index() + 0 * x[0]

    for shape in ((6, 40), (6, 41), (3, 5000)):
        buffer = vd.asbuffer(np.zeros(shape, np.uint32))
        assert (answer(last(buffer)) == np.arange(1, shape[0] + 1) * shape[1] - 1).all()


def test_map_argument_that_does_not_affect_elements() -> None:
    @vd.reduce.map_reduce(SubgroupAdd)
    def counted(x: Buff[i32], table: Buff[u32]) -> u32:  # noqa: F405
        return table[x[mapped_io_index()]]

    data = np.random.default_rng(3).integers(0, 10, 9000).astype(np.int32)
    table = np.arange(10, dtype=np.uint32) ** 2
    assert answer(counted(vd.asbuffer(data), vd.asbuffer(table))) == table[data].sum()


def test_control_flow_in_a_map() -> None:
    @vd.reduce.map_reduce(SubgroupAdd)
    def inside(x: Buff[f32], low: Const[f32], high: Const[f32]) -> u32:  # noqa: F405
        value = x[mapped_io_index()]
        if low <= value and value < high:
            return vc.to_uint(1)
        return vc.to_uint(0)

    data = np.random.default_rng(4).random(10_001, dtype=np.float32)
    found = answer(inside(vd.asbuffer(data), 0.25, 0.5))
    assert found == ((data >= np.float32(0.25)) & (data < np.float32(0.5))).sum()


def test_a_map_that_also_stores() -> None:
    @vd.reduce.map_reduce(SubgroupAdd)
    def doubled(x: Buff[f32]) -> f32:  # noqa: F405
        i = mapped_io_index()
        x[i] = x[i] * 2
        return x[i]

    for size in (1, 300, 5000, 50_001):
        data, _ = pair(size)
        buffer = vd.asbuffer(data)
        assert answer(doubled(buffer)) == 2 * data.sum()
        assert (buffer.read(0) == 2 * data).all()


@pytest.mark.parametrize("axes", [[0], [1]], ids=str)
@pytest.mark.parametrize("shape", [(700, 5), (5, 700), (3, 9001)], ids=str)
def test_a_map_that_counts_its_calls(shape: tuple[int, int], axes: list[int]) -> None:
    @vd.reduce.map_reduce(SubgroupAdd, axes=axes)
    def counted(x: Buff[u32], calls: Buff[u32]) -> u32:  # noqa: F405
        vc.atomic_add(calls[mapped_io_index() % 7], 1)
        return x[mapped_io_index()]

    calls = vd.asbuffer(np.zeros(7, np.uint32))
    data = np.arange(shape[0] * shape[1], dtype=np.uint32).reshape(shape)
    assert (answer(counted(vd.asbuffer(data), calls)) == data.sum(axis=axes[0])).all()
    assert calls.read(0).sum() == data.size


def test_results_of_fewer_bits() -> None:
    @vd.reduce.map_reduce(SubgroupAdd)
    def half(x: Buff[f32]) -> f16:  # noqa: F405
        return x[mapped_io_index()].to_dtype(vd.float16)

    result = half(vd.asbuffer(np.full(4000, 0.5, np.float32)))
    assert result.var_type is vd.float16
    assert answer(result) == 2000


def test_a_vector_of_sums() -> None:
    @vd.reduce.map_reduce(SubgroupAdd, axes=[1])
    def moments(x: Buff[f32]) -> v2:  # noqa: F405
        value = x[mapped_io_index()]
        return vc.to_vec2(value, value * value)

    data = pair(6000)[0].reshape(6, 1000)
    found = answer(moments(vd.asbuffer(data)))
    assert (found == np.stack([data.sum(axis=1), (data * data).sum(axis=1)], axis=1)).all()


def test_map_before_a_user_reduction() -> None:
    @vd.map
    def magnitude(x: Buff[c64]) -> f32:  # noqa: F405
        value = x[mapped_io_index()]
        return vc.sqrt(value.real * value.real + value.imag * value.imag)

    @vd.reduce.reduce(0, mapping_function=magnitude)
    def largest(a: f32, b: f32) -> f32:  # noqa: F405
        return vc.max(a, b)

    data = np.exp(1j * np.arange(3001)).astype(np.complex64) * np.arange(3001)
    assert answer(largest(vd.asbuffer(data.astype(np.complex64)))) == pytest.approx(3000)
    assert largest.map_func is magnitude


def test_no_mapped_index_outside_of_maps() -> None:
    assert mapped_io_index() is None


def test_map_arguments_with_the_names_of_kernel_arguments() -> None:
    @vd.reduce.map_reduce(SubgroupAdd)
    def named(result: Buff[f32], segments: Const[f32], lane: Const[f32]) -> f32:  # noqa: F405
        block = result[mapped_io_index()].to_register("reduce_block")
        return block * segments + lane

    data, _ = pair(3000)
    assert answer(named(vd.asbuffer(data), 2.0, 1.0)) == 2 * data.sum() + 3000


def test_a_shorter_second_buffer_is_read_only_where_the_map_reads_it() -> None:
    @vd.reduce.map_reduce(SubgroupAdd)
    def added(x: Buff[f32], y: Buff[f32]) -> f32:  # noqa: F405
        i = mapped_io_index()
        value = x[i].to_register()
        with vc.if_block(i < 100):
            value[:] = value + y[i]
        return value

    x, y = np.ones(4096, np.float32), np.full(100, 2, np.float32)
    for second, together in ((x, True), (y, False)):
        operand = added._parse_operand((vd.asbuffer(x), vd.asbuffer(second)))
        assert bool(operand.views) == added._find_launches(operand, None).form.is_vector == together
    assert added(vd.asbuffer(x), vd.asbuffer(x)).read(0)[0] == 4196
    assert added(vd.asbuffer(x), vd.asbuffer(y)).read(0)[0] == 4296
