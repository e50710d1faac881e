"""What type checkers know of arrays: see test_types.py."""

from typing import Any, assert_type

import numpy as np

import vkdispatch as vd
import vkdispatch.numpy as vnp

Matrix = vd.Array[tuple[int, int], np.float32]
Image = np.ndarray[tuple[int, int], np.dtype[np.float32]]


def scale(x: Matrix, factor: float) -> vd.Array:
    return x * factor


def keep(x: vd.Array[tuple[int, int]]) -> vd.Array[tuple[int, int]]:
    return x


def made(
    length: int, shape: tuple[int, int], image: np.ndarray[tuple[int, int], np.dtype[np.float32]]
) -> None:
    matrix = vnp.zeros(shape, np.float32)
    assert_type(matrix, Matrix)
    assert_type(matrix.shape, tuple[int, int])
    assert_type(matrix.dtype, np.dtype[np.float32])
    assert_type(matrix.numpy(), Image)
    assert_type(vnp.ones(length), vd.Array[tuple[int], Any])
    assert_type(vnp.ones(length, dtype=np.dtype(np.int8)), vd.Array[tuple[int], np.int8])
    assert_type(vnp.empty(matrix.shape, dtype=vnp.uint8), vd.Array[tuple[int, int], np.uint8])
    assert_type(vnp.full(shape, 1.5, dtype=vnp.float64), vd.Array[tuple[int, int], np.float64])
    assert_type(vnp.zeros_like(matrix), Matrix)
    assert_type(vnp.ones_like(matrix, dtype=vnp.int32), vd.Array[tuple[int, int], np.int32])
    assert_type(vnp.arange(10), vd.Array[tuple[int], Any])
    assert_type(vnp.arange(10, dtype=vnp.int16), vd.Array[tuple[int], np.int16])
    assert_type(vnp.asarray(image), Matrix)
    assert_type(vnp.asarray([[1, 2]], dtype=vnp.float32), vd.Array[tuple[Any, ...], np.float32])
    assert_type(vnp.array([1, 2]), vd.Array)
    assert_type(vnp.where(matrix > 0, matrix, 0), vd.Array)
    assert_type(vnp.where(matrix > 0), tuple[vd.Array, ...])
    keep(vnp.zeros((3, 4)))


def derived(matrix: Matrix, plain: vd.Array, shape: tuple[int, int, int]) -> None:
    assert_type(matrix.astype(np.int32), vd.Array[tuple[int, int], np.int32])
    assert_type(matrix.astype("f2"), vd.Array[tuple[int, int], Any])
    assert_type(matrix.copy(), Matrix)
    assert_type(-matrix, Matrix)
    assert_type(matrix.T, Matrix)
    assert_type(matrix[0], vd.Array[tuple[Any, ...], np.float32])
    assert_type(matrix.ravel(), vd.Array[tuple[int], np.float32])
    assert_type(matrix.reshape(-1), vd.Array[tuple[int], np.float32])
    assert_type(matrix.reshape(shape), vd.Array[tuple[int, int, int], np.float32])
    assert_type(matrix.reshape(2, 6), vd.Array[tuple[Any, ...], np.float32])
    assert_type(matrix > 0, vd.Array[tuple[Any, ...], np.bool_])
    assert_type(matrix.argmax(), vd.Array[tuple[Any, ...], np.int64])
    assert_type(matrix + plain, vd.Array)
    assert_type(matrix.sum(axis=0), vd.Array)
    scale(matrix, 2)
    keep(matrix)
    keep(plain)
    scale(plain, 2)
    scale(matrix + 1, 2)
