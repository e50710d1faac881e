"""Checked kernels that index by several axes: each index must lie within its own axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, f32, i32, i64, iv3, u32


def both_ways(kernel: Any, message: str, *args: Any) -> list[Any]:
    """Call a kernel and interpret it; both must fail alike. Returns the arrays that each has written."""
    results = []
    for interpreted in (False, True):
        arrays = [np.copy(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
        given = [arg if interpreted or np.ndim(arg) == 0 else vd.asbuffer(arg) for arg in arrays]
        with pytest.raises(IndexError, match=message):
            (kernel.interpret if interpreted else kernel)(*given)
        results.append([arg.read(0) if isinstance(arg, vd.Buffer) else arg for arg in given])
    return results


@vd.shader(1, check=True)
def pick(data: Buff[f32], i: Const[i32], j: Const[i32], out: Buff[f32]) -> None:
    out[0] = data[i, j] + 1


TABLE = np.arange(32, dtype=np.float32).reshape(4, 8)
OUT = np.zeros(1, np.float32)


@pytest.mark.parametrize(
    ("index", "axis"), [((2, 9), 1), ((0, 8), 1), ((1, -1), 1), ((4, 0), 0), ((-1, 3), 0), ((5, 20), 0)]
)
def test_each_axis(index: tuple[int, int], axis: int) -> None:
    what = rf"index \({index[0]}, {index[1]}\) is out of bounds for axis {axis}"
    message = rf"{what} of buffer 'data' of shape \(4, 8\), in invocation"
    (_, _, _, out), _ = both_ways(pick, message, TABLE, *index, OUT)
    assert out[0] == 1  # a bad read gives element 0


def test_good_indices_are_left_alone() -> None:
    data, out = vd.asbuffer(TABLE), vd.asbuffer(OUT)
    for i, j in np.ndindex(4, 8):
        pick(data, i, j, out)
        assert out.read(0)[0] == TABLE[i, j] + 1


def test_an_element_by_its_flat_index_is_not_bound_to_axes() -> None:
    @vd.shader(1, check=True)
    def flat(data: Buff[f32], i: Const[i32], out: Buff[f32]) -> None:
        out[0] = data[i * data.shape.y + 9] + data[i, 1]

    data, out = vd.asbuffer(TABLE), vd.asbuffer(OUT)
    flat(data, 2, out)
    assert out.read(0)[0] == TABLE[3, 1] + TABLE[2, 1]


def test_stores_in_three_axes_and_vectors() -> None:
    @vd.shader("(5, 3, 2)", local_size=(4, 2, 1), check=True)
    def fill(out: Buff[f32], d: Const[i32]) -> None:
        here = vc.global_invocation_id()
        place = vc.new_ivec3_register(here.z, here.y, here.x)
        place.z += d
        out[place] = 1.0

    volume = np.zeros((2, 3, 5), np.float32)
    message = r"\([01], [0-2], 5\) is out of bounds for axis 2 of buffer 'out' of shape \(2, 3, 5\)"
    for result, _ in both_ways(fill, message, volume, 1)[:1]:
        # nothing has come into the next row
        expected = np.ones((2, 3, 5))
        expected[..., 0] = 0
        np.testing.assert_array_equal(result, expected)


def test_updates_and_atomics_and_wide_indices() -> None:
    @vd.shader(8, local_size=8, check=True)
    def count(out: Buff[i32], wide: Const[i64], k: Const[u32]) -> None:
        i = vc.global_invocation_id().x
        vc.atomic_add(out[wide, i & 1], 1)
        out[1, i - k] += 1

    table = np.zeros((2, 8), np.int32)
    for wide in (1 << 32, (1 << 40) + 1):
        message = (
            r"index \((2147483647|\d+), [01]\) is out of bounds for axis 0 of buffer 'out' of shape \(2, 8\)"
        )
        (device, _, _), _ = both_ways(count, message, table, wide, 0)
        assert device.tolist() == [[0] * 8, [1] * 8]
    (device, _, _), _ = both_ways(count, r"index \(1, -1\) is out of bounds for axis 1", table, 0, 1)
    assert device.tolist() == [[4, 4] + [0] * 6, [1] * 7 + [0]]


def test_shared_arrays() -> None:
    @vd.shader(8, local_size=8, check=True)
    def turn(out: Buff[f32], k: Const[i32]) -> None:
        tile = vc.shared_buffer(f32, (2, 4))
        i = vc.local_invocation_id().x.to_dtype(i32)
        tile[i // 4, i % 4] = i.to_dtype(f32)
        vc.barrier()
        out[i] = tile[i // 4, i % 4 + k]

    message = r"index \([01], 4\) is out of bounds for axis 1 of shared buffer '\w+' of shape \(2, 4\)"
    (device, _), _ = both_ways(turn, message, np.zeros(8, np.float32), 1)
    assert device.tolist() == [1, 2, 3, 0, 5, 6, 7, 0]


def test_the_index_of_an_index_and_conditions() -> None:
    @vd.shader("out.size", check=True)
    def gather(table: Buff[f32], rows: Buff[i32], n: Const[i32], out: Buff[f32]) -> None:
        i = vc.global_invocation_id().x.to_dtype(i32)
        with vc.if_block(vc.all(rows[i] < n, table[rows[i], i] >= 0)):
            out[i] = table[rows[i], i]

    rows = np.array([0, 3, 4, 1], np.int32)
    data = vd.asbuffer(TABLE)
    out = vd.asbuffer(np.zeros(4, np.float32))
    gather(data, vd.asbuffer(rows), 4, out)
    assert out.read(0).tolist() == [0, 25, 0, 11]
    both_ways(gather, r"index \(4, 2\) .* axis 0 of buffer 'table'", TABLE, rows, 5, np.zeros(4, np.float32))


def test_a_row_of_one_axis() -> None:
    line = np.arange(8, dtype=np.float32)
    both_ways(
        pick, r"index \(1, 1\) is out of bounds for axis 1 of buffer 'data' of shape \(8,\)", line, 1, 1, OUT
    )


def test_without_checks_the_code_is_that_of_the_flat_index() -> None:
    @vd.shader(1, check=False)
    def axes(data: Buff[f32], i: Const[i32], out: Buff[f32]) -> None:
        out[0] = data[i, i + 1]

    @vd.shader(1, check=False)
    def flat(data: Buff[f32], i: Const[i32], out: Buff[f32]) -> None:
        out[0] = data[i * data.shape.y + (i + 1)]

    texts = [str(kernel.get_src(build=False)).split("void main")[1] for kernel in (axes, flat)]
    assert texts[0] == texts[1]


def test_the_vector_of_an_interpreted_kernel() -> None:
    @vd.shader(1)
    def kernel(out: Buff[f32], at: Buff[iv3]) -> None:
        out[at[0]] = 2.0

    out = np.zeros((2, 3, 4), np.float32)
    kernel.interpret(out, np.array([[1, 2, 3]], np.int32))
    assert out[1, 2, 3] == 2
    with pytest.raises(IndexError, match=r"index \(1, 3, 0\) is out of bounds for axis 1 of buffer 'out'"):
        kernel.interpret(out, np.array([[1, 3, 0]], np.int32))
    kernel.interpret(out, np.array([[0, 3, 0]], np.int32), check=False)  # by its flat index it exists
    assert out[1, 0, 0] == 2
