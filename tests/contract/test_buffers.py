"""Buffers: shapes, what can be written and read, RFFT buffers, allocators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.sharing.cuda_link import can_link

ALLOCATORS = (
    "u32 uv2 uv3 uv4 i32 iv2 iv3 iv4 f32 v2 v3 v4 c64 u16 uhv2 uhv3 uhv4 i16 ihv2 ihv3 ihv4 f16 hv2 hv3 hv4 "
    "f64 dv2 dv3 dv4"
)


@pytest.mark.parametrize(
    ("given", "shape"), [(5, (5,)), ([2, 3], (2, 3)), ((2, 3, 4), (2, 3, 4)), ((), ()), (np.int64(4), (4,))]
)
def test_shapes(given: Any, shape: tuple[int, ...]) -> None:
    buffer = vd.Buffer(given, vd.float32)
    count = int(np.prod(shape))
    assert (buffer.shape, buffer.size, buffer.mem_size) == (shape, count, 4 * count)
    assert tuple(buffer.shader_shape) == (*(*shape, 1, 1, 1)[:3], count)
    assert buffer.read(0).shape == shape and buffer.read().shape == (len(buffer.signals), *shape)
    assert buffer.read(0).flags.writeable and buffer.read().flags.writeable
    assert (buffer.is_external, buffer.owns_memory, buffer.is_writable) == (False, True, True)
    assert buffer.cuda_source is None and hasattr(buffer, "cuda_array_stream")
    if not can_link(buffer.context):  # 0.1.0 had them on its CUDA backend only
        assert buffer.cuda_ptr is None and not hasattr(buffer, "__cuda_array_interface__")


# Of 0.1.0's limits of 3 axes and 2**30 elements only what the device cannot hold is left.
@pytest.mark.parametrize("shape", [(1, 2, -3, 4), 2**46, (2**20, 2**26)])
def test_bad_shapes(shape: Any) -> None:
    with pytest.raises(ValueError):
        vd.Buffer(shape, vd.float32)


# What 0.1.0 could not make, and then nothing else either.
def test_empty_buffers() -> None:
    assert vd.Buffer((3, 0), vd.float32).read(0).shape == (3, 0)


@pytest.mark.parametrize(
    ("kind", "tail", "host"),
    [
        (vd.vec2, (2,), np.float32),
        (vd.mat3, (3, 3), np.float32),
        (vd.complex64, (), np.complex64),
        (vd.complex32, (), np.complex64),
        (vd.uhvec4, (4,), np.uint16),
        (vd.int64, (), np.int64),
    ],
)
def test_arrays_read(kind: Any, tail: tuple[int, ...], host: Any) -> None:
    buffer = vd.Buffer((4, 3), kind)
    buffer.write(bytes(buffer.mem_size))
    assert buffer.read(0).shape == (4, 3, *tail) and buffer.read(0).dtype == host


def test_writes() -> None:
    data = np.arange(12, dtype=np.float32)
    buffer = vd.Buffer((3, 4), vd.float32)
    for given in (data, data.reshape(4, 3).T, data.reshape(3, 4), np.arange(24, dtype=np.float32)[::2]):
        buffer.write(given)
        np.testing.assert_array_equal(buffer.read(0).ravel(), given.ravel())
    # 0.1.0 took any array of as many bytes, and got numbers wrong in silence; bytes are still taken so.
    with pytest.raises(ValueError):
        buffer.write(data.view(np.int32))
    buffer.write(data.view(np.int32).tobytes())
    np.testing.assert_array_equal(buffer.read(0).ravel(), data)
    for text in (data.tobytes(), bytearray(data.tobytes()), memoryview(data)):
        buffer.write(text, 0)
    buffer.write(np.float32([99]).tobytes())
    assert buffer.read(0).ravel().tolist() == [99, *range(1, 12)]
    for bad in (data[:5], np.zeros(13, np.float32), bytes(49)):
        with pytest.raises(ValueError):
            buffer.write(bad)
    for other in ([1.0] * 12, 1.0, np.float32(1), None):
        with pytest.raises(TypeError):
            buffer.write(other)
    for index in (len(buffer.signals), -1, "0", 0.0):
        with pytest.raises(ValueError):
            buffer.write(data, index)
        with pytest.raises(ValueError):
            buffer.read(index)


def test_asbuffer() -> None:
    for bad in (np.float32(1), [1, 2], 3):
        with pytest.raises(TypeError):
            vd.asbuffer(bad)
    for unknown in (np.array(["a"]), np.array([None])):
        with pytest.raises(ValueError):
            vd.asbuffer(unknown)
    assert vd.asbuffer(np.array(3.0)).shape == ()
    strided = np.arange(12.0).reshape(3, 4)[:, ::2]
    np.testing.assert_array_equal(vd.asbuffer(strided).read(0), strided)
    with pytest.raises((RuntimeError, TypeError)):  # the latter where CUDA knows the device
        vd.from_cuda_array(object())


@pytest.mark.parametrize("kind", [vd.complex32, vd.complex64, vd.complex128])
@pytest.mark.parametrize("shape", [(8,), (3, 7), (2, 3, 4)])
def test_rfft_buffers(shape: tuple[int, ...], kind: Any) -> None:
    buffer = vd.RFFTBuffer(shape, kind)
    fourier = (*shape[:-1], shape[-1] // 2 + 1)
    assert (buffer.real_shape, buffer.fourier_shape, buffer.shape) == (shape, fourier, fourier)
    assert buffer.var_type is kind and buffer.real_type is kind.child_type
    real = np.arange(np.prod(shape)).reshape(shape).astype(np.float64)
    buffer.write_real(real)
    np.testing.assert_array_equal(buffer.read_real(0), real)
    assert buffer.read_real().shape == (len(buffer.signals), *shape)
    if kind is vd.complex64:
        rows = buffer.read(0).view(np.float32)
        assert (rows[..., : shape[-1]] == real).all() and not rows[..., shape[-1] :].any()
    values = np.arange(np.prod(fourier)).reshape(fourier) + 1j
    buffer.write_fourier(values, 0)
    np.testing.assert_array_equal(buffer.read_fourier(0), values)
    for bad in (np.zeros(99, np.float32), np.zeros(shape, np.complex64)):
        with pytest.raises(ValueError):
            buffer.write_real(bad)
    for bad in (np.zeros(99, np.complex64), np.zeros(fourier, np.float32)):
        with pytest.raises(ValueError):
            buffer.write_fourier(bad)


def test_asrfftbuffer() -> None:
    for names, kind in (
        ("int16 uint16 float16", vd.complex32),
        ("int32 uint32 float32", vd.complex64),
        ("int64 uint64 float64", vd.complex128),
    ):
        for name in names.split():
            buffer = vd.asrfftbuffer(np.arange(8).astype(name))
            assert buffer.var_type is kind
            np.testing.assert_array_equal(buffer.read_real(0), np.arange(8))
    with pytest.raises(ValueError):
        vd.asrfftbuffer(np.zeros(4, np.complex64))
    with pytest.raises(ValueError):
        vd.RFFTBuffer(8, vd.float32)


@pytest.mark.parametrize("name", ALLOCATORS.split())
def test_allocators(name: str) -> None:
    buffer = getattr(vd, f"buffer_{name}")((2, 3))
    assert buffer.var_type is getattr(vc, name) and buffer.shape == (2, 3)
