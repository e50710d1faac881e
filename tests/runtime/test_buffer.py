"""Buffers: shapes, dtypes, writes, reads, lifetimes, and what is refused."""

from __future__ import annotations

import gc
import re
from typing import Any, ClassVar

import numpy as np
import pytest

from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, asbuffer, from_cuda_array
from vkdispatch.base.buffers import kinds as allocators
from vkdispatch.base.buffers.kinds import RFFTBuffer, asrfftbuffer
from vkdispatch.base.context import get_context

HOST_DTYPES = [
    np.int16,
    np.uint16,
    np.int32,
    np.uint32,
    np.int64,
    np.uint64,
    np.float16,
    np.float32,
    np.float64,
    np.complex64,
    np.complex128,
]
SHAPES = [1, 2, 7, 997, (), (1,), (3, 4), (2, 3, 5), (1, 1, 1), [6, 2], (np.int64(4),)]
ALL_DTYPES = [
    getattr(dtype, name)
    for name in [
        "int16",
        "uint16",
        "int32",
        "uint32",
        "int64",
        "uint64",
        "float16",
        "float32",
        "float64",
        "complex32",
        "complex64",
        "complex128",
        "hvec2",
        "hvec3",
        "hvec4",
        "vec2",
        "vec3",
        "vec4",
        "dvec2",
        "dvec3",
        "dvec4",
        "ihvec2",
        "ihvec3",
        "ihvec4",
        "ivec2",
        "ivec3",
        "ivec4",
        "uhvec2",
        "uhvec3",
        "uhvec4",
        "uvec2",
        "uvec3",
        "uvec4",
        "mat2",
        "mat3",
        "mat4",
    ]
]


@pytest.mark.parametrize("host", HOST_DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 4), (2, 3, 5)])
def test_round_trip(host: Any, shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(1).integers(0, 100, shape).astype(host)
    buffer = asbuffer(np.asarray(values))
    read = buffer.read(0)
    assert read.dtype == host and read.shape == shape
    np.testing.assert_array_equal(read, values)
    np.testing.assert_array_equal(buffer.read(), values[None])
    assert buffer.var_type is dtype.from_numpy_dtype(host)


@pytest.mark.parametrize("shape", SHAPES)
def test_shape(shape: Any) -> None:
    buffer = Buffer(shape, dtype.float32)
    axes = (int(shape),) if isinstance(shape, int) else tuple(int(axis) for axis in shape)
    assert buffer.shape == axes
    assert buffer.size == int(np.prod(axes))
    assert buffer.mem_size == 4 * buffer.size
    assert buffer.shader_shape == (*(*axes, 1, 1, 1)[:3], buffer.size)
    assert all(type(axis) is int for axis in buffer.shader_shape)


@pytest.mark.parametrize("kind", ALL_DTYPES, ids=lambda kind: kind.name)
def test_dtypes(kind: Any) -> None:
    buffer = Buffer((3, 2), kind)
    assert buffer.mem_size == 6 * kind.item_size
    raw = np.arange(buffer.mem_size, dtype=np.uint8) % 50
    buffer.write(raw.tobytes())
    read = buffer.read(0)
    assert read.shape == (3, 2, *kind.true_numpy_shape)
    if kind is dtype.complex32:
        halves = raw.view(np.float16).astype(np.float32).view(np.complex64)
        np.testing.assert_array_equal(read.reshape(-1), halves)
    else:
        assert read.tobytes() == raw.tobytes()


@pytest.mark.parametrize("host", [np.float32, np.dtype("int16"), "uint32"])
def test_numpy_dtype_is_understood(host: Any) -> None:
    assert Buffer(3, host).var_type is dtype.from_numpy_dtype(host)


def test_reads_are_writable_copies() -> None:
    buffer = asbuffer(np.zeros(4, np.float32))
    one, stacked = buffer.read(0), buffer.read()
    one += 1
    stacked += 1
    assert not buffer.read(0).any()


def test_read_into_own_memory() -> None:
    buffer = asbuffer(np.arange(4, dtype=np.float32))
    out = np.empty(4, np.float32)
    assert buffer.read(0, out=out) is out
    np.testing.assert_array_equal(out, range(4))


def test_array_protocol() -> None:
    buffer = asbuffer(np.arange(4, dtype=np.float32))
    np.testing.assert_array_equal(np.asarray(buffer), range(4))
    assert np.asarray(buffer, dtype=np.float64).dtype == np.float64


def test_views_are_made_contiguous() -> None:
    values = np.arange(24, dtype=np.float32).reshape(4, 6)
    for view in (values.T, values[::2], values[:, ::-1], values[1:3, 2:5]):
        buffer = asbuffer(view)
        assert buffer.shape == view.shape
        np.testing.assert_array_equal(buffer.read(0), view)


def test_foreign_byte_order() -> None:
    values = np.arange(5, dtype=">f4")
    np.testing.assert_array_equal(asbuffer(values).read(0), values)


def test_partial_writes() -> None:
    buffer = asbuffer(np.zeros(4, np.uint32))
    buffer.write(np.array([1, 2], np.uint32).tobytes())
    buffer.write(bytearray(b"\x07\x00"))
    buffer.write(memoryview(np.array([9], np.uint8)))
    np.testing.assert_array_equal(buffer.read(0), [9, 2, 0, 0])
    buffer.write(b"")
    buffer.write(memoryview(np.arange(8, dtype=np.uint16))[::2])
    np.testing.assert_array_equal(buffer.read(0), [0x20000, 0x60004, 0, 0])


@pytest.mark.parametrize("queue", [None, 0])
def test_write_to_queue(queue: int | None) -> None:
    buffer = Buffer(2, dtype.int32)
    buffer.write(np.array([3, 4], np.int32), queue)
    np.testing.assert_array_equal(buffer.read(queue).reshape(-1), [3, 4])


@pytest.mark.parametrize(
    ("shape", "error", "text"),
    [
        (-1, ValueError, "negative"),
        (2.5, TypeError, "shape"),
        ("3", TypeError, "shape"),
        (None, TypeError, "shape"),
        ((1, "2"), TypeError, "shape"),
        (True, TypeError, "shape"),
        (2**62, (ValueError, MemoryError), "shape|memory"),
    ],
)
def test_wrong_shapes_are_refused(shape: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        Buffer(shape, dtype.float32)


@pytest.mark.parametrize(
    "kind", [float, int, None, 3, "bogus", np.longdouble, np.str_, dtype.dtype, object()]
)
def test_wrong_dtypes_are_refused(kind: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"dtype|stored"):
        Buffer(3, kind)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ([1.0, 2.0], TypeError),
        (1.0, TypeError),
        (np.float32(1), TypeError),
        (None, TypeError),
        ("text", TypeError),
        (np.zeros(3, np.float32), ValueError),
        (np.zeros(1, np.float32), ValueError),
        (np.zeros(2, np.float64), ValueError),
        (bytes(9), ValueError),
        (np.array([None], object), TypeError),
    ],
)
def test_wrong_writes_are_refused(data: Any, error: Any) -> None:
    buffer = Buffer(2, dtype.float32)
    with pytest.raises(error, match="data"):
        buffer.write(data)


@pytest.mark.parametrize("index", [-1, 99, 1.0, "0", True])
def test_wrong_queue_is_refused(index: Any) -> None:
    buffer = asbuffer(np.zeros(2, np.float32))
    with pytest.raises(ValueError, match="index"):
        buffer.write(bytes(4), index)
    with pytest.raises(ValueError, match="index"):
        buffer.read(index)


@pytest.mark.parametrize(
    "out",
    [
        np.empty(3, np.float32),
        np.empty(2, np.float64),
        np.empty(4, np.float32)[::2],
        [0, 0],
        np.empty((1, 2)),
    ],
)
def test_wrong_out_is_refused(out: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="out"):
        asbuffer(np.zeros(2, np.float32)).read(0, out=out)
    frozen = np.zeros(2, np.float32)
    frozen.setflags(write=False)
    with pytest.raises(ValueError, match="writable"):
        asbuffer(np.zeros(2, np.float32)).read(0, out=frozen)


@pytest.mark.parametrize("array", [[1, 2], 3.0, np.float32(2), None, "x"])
def test_asbuffer_needs_an_array(array: Any) -> None:
    with pytest.raises(TypeError, match="array"):
        asbuffer(array)


@pytest.mark.parametrize("host", ["U3", object, "M8[s]"])
def test_asbuffer_needs_a_known_dtype(host: Any) -> None:
    with pytest.raises(ValueError, match="dtype"):
        asbuffer(np.zeros(3, host))


def test_from_cuda_array() -> None:
    class FromCuda:
        __cuda_array_interface__: ClassVar[dict[str, Any]] = {}

    with pytest.raises((RuntimeError, ValueError), match="cuda"):  # the latter where CUDA knows the device
        from_cuda_array(FromCuda())
    with pytest.raises((RuntimeError, ValueError), match="cuda"):
        asbuffer(FromCuda())  # type: ignore[arg-type]


def test_too_big_for_the_device() -> None:
    with pytest.raises(MemoryError, match=re.compile("bytes|memory", re.IGNORECASE)):
        Buffer(1 << 50, dtype.float32)
    for size in (1 << 50, 1 << 61):
        with pytest.raises(ValueError, match=r"shape: .*bytes"):
            Buffer(size, dtype.float32)
    asbuffer(np.zeros(4, np.float32))


def test_destroy() -> None:
    buffer = asbuffer(np.zeros(4, np.float32))
    assert not buffer.destroyed
    buffer.destroy()
    buffer.destroy()
    assert buffer.destroyed
    for use in (buffer.read, lambda: buffer.write(bytes(4))):
        with pytest.raises(RuntimeError, match="destroyed"):
            use()
    assert "4" in repr(buffer)


def test_dropped_buffers_are_freed() -> None:
    context = get_context()
    gc.collect()
    before = context._native.statistics()["live_objects"]
    for _ in range(500):
        asbuffer(np.zeros(100, np.float32))
    gc.collect()
    context._native.wait_idle()
    Buffer(1, dtype.float32)
    assert context._native.statistics()["live_objects"] <= before + 2


def test_typing_alias() -> None:
    assert Buffer[dtype.float32] is not None


@pytest.mark.parametrize("name", [name for name in vars(allocators) if name.startswith("buffer_")])
def test_allocators(name: str) -> None:
    buffer = getattr(allocators, name)((2, 3))
    assert buffer.shape == (2, 3)
    assert buffer.var_type.name[0] == {"v": "v", "h": "h", "d": "d"}.get(name[7], name[7])


# -- RFFT buffers


@pytest.mark.parametrize("shape", [(8,), (5,), (3, 6), (2, 3, 7), (1,)])
@pytest.mark.parametrize("host", [np.float16, np.float32, np.float64])
def test_rfft_real(shape: tuple[int, ...], host: Any) -> None:
    values = np.random.default_rng(2).random(shape).astype(host)
    buffer = asrfftbuffer(values)
    assert buffer.real_shape == shape
    assert buffer.fourier_shape == buffer.shape == (*shape[:-1], shape[-1] // 2 + 1)
    np.testing.assert_array_equal(buffer.read_real(0), values)
    np.testing.assert_array_equal(buffer.read_real(), values[None])
    assert buffer.read_real(0).dtype == host
    row = buffer.read(0).view(np.float32 if host is np.float16 else host)
    assert not row[..., shape[-1] :].any()


@pytest.mark.parametrize("kind", [dtype.complex32, dtype.complex64, dtype.complex128])
def test_rfft_fourier(kind: Any) -> None:
    buffer = RFFTBuffer((3, 6), kind)
    spectrum = (np.arange(12).reshape(3, 4) + 1j).astype(np.complex64)
    buffer.write_fourier(spectrum)
    np.testing.assert_array_equal(buffer.read_fourier(0), spectrum)


def test_rfft_errors() -> None:
    buffer = RFFTBuffer((3, 6))
    for call in (
        lambda: RFFTBuffer(4, dtype.float32),
        lambda: RFFTBuffer(()),
        lambda: buffer.write_real(np.zeros((3, 7), np.float32)),
        lambda: buffer.write_real(np.zeros((3, 6), np.complex64)),
        lambda: buffer.write_fourier(np.zeros((3, 4), np.float32)),
        lambda: buffer.write_fourier(np.zeros((3, 6), np.complex64)),
        lambda: asrfftbuffer(np.zeros(4, np.complex64)),
        lambda: asrfftbuffer(np.zeros(4, np.int8)),
    ):
        with pytest.raises(ValueError, match=r"data|type|shape"):
            call()
