"""Buffers in other libraries: the same memory, as the consumer asks for it."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch_native as native
from vkdispatch.base.sharing.dlpack import Elements, export, parse_request

from .arrays import address, double

DTYPES = [
    (vd.bool_, np.bool_),
    (vd.int8, np.int8),
    (vd.int16, np.int16),
    (vd.int32, np.int32),
    (vd.int64, np.int64),
    (vd.uint8, np.uint8),
    (vd.uint16, np.uint16),
    (vd.uint32, np.uint32),
    (vd.uint64, np.uint64),
    (vd.float16, np.float16),
    (vd.float32, np.float32),
    (vd.float64, np.float64),
    (vd.complex64, np.complex64),
    (vd.complex128, np.complex128),
]


@pytest.mark.parametrize(("kind", "host"), DTYPES)
def test_numpy_sees_the_memory_itself(on_host: None, kind: Any, host: Any) -> None:
    data = (np.arange(6).reshape(2, 3) % 2).astype(host)
    buffer = vd.Buffer((2, 3), kind)
    buffer.write(data)
    view = np.from_dlpack(buffer)
    assert view.dtype == host and view.shape == (2, 3) and view.flags.writeable
    np.testing.assert_array_equal(view, data)
    view[1, 2] = 1 - view[1, 2]  # writes of either side are seen by the other one
    data[1, 2] = 1 - data[1, 2]
    np.testing.assert_array_equal(buffer.read(0), data)
    buffer.write(1 - data if host is not np.bool_ else ~data)
    np.testing.assert_array_equal(view, 1 - data if host is not np.bool_ else ~data)
    assert address(np.from_dlpack(buffer)) == address(view)


@pytest.mark.parametrize(
    ("kind", "tail", "host"),
    [
        (vd.vec2, (2,), np.float32),
        (vd.vec3, (3,), np.float32),
        (vd.vec4, (4,), np.float32),
        (vd.uvec3, (3,), np.uint32),
        (vd.dvec2, (2,), np.float64),
        (vd.mat2, (2, 2), np.float32),
        (vd.mat3, (3, 3), np.float32),
    ],
)
def test_vectors_and_matrices_have_axes_of_their_own(on_host: None, kind: Any, tail: Any, host: Any) -> None:
    data = np.random.default_rng(1).integers(0, 99, (5, *tail)).astype(host)
    buffer = vd.Buffer(5, kind)
    buffer.write(data)
    np.testing.assert_array_equal(np.from_dlpack(buffer), data)


def test_kernels_write_what_numpy_sees_before_they_return(on_host: None) -> None:
    buffer = vd.asbuffer(np.arange(1000, dtype=np.float32))
    view = np.from_dlpack(buffer)
    for power in range(1, 20):
        double(buffer)
        assert view[999] == 999 * 2.0**power
        view[0] += 1
    assert buffer.read(0)[0] == view[0]


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1, 1, 1), (7,)])
def test_shapes(on_host: None, shape: Any) -> None:
    buffer = vd.Buffer(shape, vd.float32)
    if buffer.size:
        buffer.write(np.ones(shape, np.float32))
    view = np.from_dlpack(buffer)
    assert view.shape == shape and view.sum() == buffer.size


class _Tensor(ctypes.Structure):
    # as the specification of DLPack has it
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


def _pointer(capsule: Any, name: bytes) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(get(capsule, name))


def test_capsules_hold_what_the_specification_says(on_host: None) -> None:
    buffer = vd.Buffer((4, 2), vd.vec3)
    old = _Tensor.from_address(_pointer(capsule := buffer.__dlpack__(), b"dltensor"))
    new_capsule = buffer.__dlpack__(max_version=(1, 0))
    new = _Versioned.from_address(_pointer(new_capsule, b"dltensor_versioned"))
    assert (new.major, new.flags) == (1, 0)
    for tensor in (old, new.tensor):
        assert (tensor.device_type, tensor.device_id, tensor.byte_offset) == (1, 0, 0)
        assert (tensor.code, tensor.bits, tensor.lanes) == (2, 32, 1)
        assert tensor.shape[: tensor.ndim] == [4, 2, 3]
        assert tensor.strides[: tensor.ndim] == [6, 3, 1]
        assert tensor.data == address(np.from_dlpack(buffer))
    copied = buffer.__dlpack__(max_version=(1, 1), copy=True)
    assert _Versioned.from_address(_pointer(copied, b"dltensor_versioned")).flags == 2
    assert buffer._native.lent
    del capsule, new_capsule, copied
    assert not buffer._native.lent  # capsules that nobody took


@pytest.mark.parametrize(
    ("version", "name"), [(None, "dltensor"), ((0, 8), "dltensor"), ((2, 3), "dltensor_versioned")]
)
def test_the_consumer_chooses_the_version(on_host: None, version: Any, name: str) -> None:
    assert f'"{name}"' in repr(vd.Buffer(4, vd.int32).__dlpack__(max_version=version))


def test_copies(on_host: None) -> None:
    buffer = vd.asbuffer(np.arange(4, dtype=np.int32))
    copy = np.from_dlpack(buffer, copy=True)
    copy[:] = 9
    np.testing.assert_array_equal(buffer.read(0), np.arange(4))
    assert not buffer._native.lent
    same = np.from_dlpack(buffer, copy=False)
    same[:] = 9
    np.testing.assert_array_equal(buffer.read(0), 9)


@pytest.mark.parametrize(
    ("copy", "device", "expected"),
    [
        (None, None, "lend"),
        (False, None, "lend"),
        (None, (2, 1), "lend"),
        (False, (2, 1), "lend"),
        (True, None, "copy on the device"),
        (True, (2, 1), "copy on the device"),
        (None, (1, 0), "copy"),
        (True, (1, 0), "copy"),
        (False, (1, 0), "error"),
        (None, (2, 0), "error"),
        (True, (2, 0), "error"),
    ],
)
def test_what_consumers_get_of_memory_on_a_device(copy: Any, device: Any, expected: str) -> None:
    """CUDA's device 1 has the memory; no such device is needed to decide this."""
    host, theirs = np.zeros(4, np.float32), (2, 1)

    def elements(place: Any, start: int, flags: int = 0) -> Elements:
        return Elements(host, address(host) + start, place, vd.float32, (1,), (1,), flags)

    def ask() -> Any:
        return export(
            parse_request(None, (1, 1), device, copy),
            lambda: theirs,
            lambda: elements(theirs, 0),
            lambda: elements((1, 0), 4, flags=2),
            lambda: elements(theirs, 8),
        )

    if expected == "error":
        with pytest.raises(BufferError, match="dl_device"):
            ask()
        return
    tensor = native.ForeignTensor(ask())
    start = (tensor.address - address(host)) // 4
    assert ("lend", "copy", "copy on the device")[start] == expected
    assert tensor.device == ((1, 0) if expected == "copy" else theirs)
    assert tensor.flags == (0 if expected == "lend" else 2)


def test_devices_and_streams(on_host: None) -> None:
    buffer = vd.Buffer(4, vd.int32)
    assert buffer.__dlpack_device__() == (1, 0)
    buffer.__dlpack__(dl_device=(1, 0), stream=None)
    with pytest.raises(BufferError, match="dl_device"):
        buffer.__dlpack__(dl_device=(2, 0))
    with pytest.raises(ValueError, match="stream"):
        buffer.__dlpack__(stream=1)
    for wrong in ({"copy": "yes"}, {"max_version": 1}, {"dl_device": (1,)}):
        with pytest.raises(TypeError, match=next(iter(wrong))):
            buffer.__dlpack__(**wrong)  # type: ignore[arg-type]


def test_types_that_numpy_lacks(on_host: None) -> None:
    halves = np.random.default_rng(2).normal(size=6).astype(np.float32)
    buffer = vd.Buffer(6, vd.bfloat16)
    buffer.write(halves)
    tensor = native.ForeignTensor(buffer.__dlpack__(max_version=(1, 0)))
    assert (tensor.dtype, tensor.shape) == ((4, 16, 1), (6,))
    bits = np.asarray(vd.share(buffer))
    np.testing.assert_array_equal((bits.astype(np.uint32) << 16).view(np.float32), buffer.read(0))
    again = vd.from_dlpack(_Relayed(buffer), copy=True)
    assert again.var_type is vd.bfloat16
    np.testing.assert_array_equal(again.read(0), buffer.read(0))
    pairs = vd.Buffer(3, vd.complex32)
    pairs.write(np.array([1 + 2j, 3j, 4], np.complex64))
    assert native.ForeignTensor(pairs.__dlpack__()).dtype == (5, 32, 1)
    np.testing.assert_array_equal(np.asarray(vd.share(pairs)), [[1, 2], [0, 3], [4, 0]])
    np.testing.assert_array_equal(vd.from_dlpack(_Relayed(pairs)).read(0), pairs.read(0))


class _Relayed:
    """A buffer in the guise of another library's array."""

    def __init__(self, buffer: Any) -> None:
        self.buffer = buffer

    def __dlpack__(self, **options: Any) -> Any:
        return self.buffer.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.buffer.__dlpack_device__()


@dataclass
class Particle:
    place: vd.vec3
    mass: vd.float32


def test_structures_are_refused(on_host: None) -> None:
    buffer = vd.Buffer(4, Particle)
    with pytest.raises(BufferError, match="structure"):
        buffer.__dlpack__()
    assert np.from_dlpack(buffer.view(vd.uint8)).shape == (4 * 16,)


def test_views_of_buffers(on_host: None) -> None:
    buffer = vd.asbuffer(np.arange(8, dtype=np.float32))
    pairs = np.from_dlpack(buffer.view(vd.vec2))
    assert pairs.shape == (4, 2) and address(pairs) == address(np.from_dlpack(buffer))


def test_share_gives_the_protocols_of_the_host(on_host: None) -> None:
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    buffer = vd.asbuffer(data)
    shared = vd.share(buffer)
    assert shared.source is buffer and shared.ordered
    view = memoryview(shared)
    assert (view.format, view.shape, view.strides, view.readonly) == ("f", (2, 3), (12, 4), False)
    by_interface = np.asarray(type("Interface", (), {"__array_interface__": shared.__array_interface__})())
    for array in (np.asarray(shared), np.from_dlpack(shared), np.asarray(view), by_interface):
        np.testing.assert_array_equal(array, data)
        assert address(array) == shared.address
    assert bytes(shared) == data.tobytes()
    double(shared)  # stands for the buffer
    np.testing.assert_array_equal(np.asarray(shared), 2 * data)
    assert vd.share(shared).source is buffer
    assert vd.from_dlpack(shared)._native is buffer._native


def test_numpy_asarray_still_copies(on_host: None) -> None:
    buffer = vd.asbuffer(np.arange(4, dtype=np.float32))
    copy = np.asarray(buffer)
    copy[:] = 9
    np.testing.assert_array_equal(buffer.read(0), np.arange(4))
    with pytest.raises(TypeError):
        memoryview(buffer)  # type: ignore[arg-type]


def test_pending_work_is_finished_first(on_host: None) -> None:
    buffer = vd.asbuffer(np.ones(1 << 16, np.float32))
    for _ in range(20):
        double(buffer)
    assert (np.from_dlpack(buffer) == 2.0**20).all()


STAGED = """
import numpy as np, pytest
import vkdispatch as vd, vkdispatch.numpy as vnp
buffer = vd.asbuffer(np.arange(4, dtype=np.float32))
for x, name in ((buffer, "buf.read"), (vnp.arange(4), r"x\\.numpy\\(\\)")):
    for call in (x.__dlpack_device__, x.__dlpack__, lambda: np.from_dlpack(x), lambda: vd.share(x)):
        with pytest.raises(BufferError, match=name):
            call()
    with pytest.raises(BufferError, match=name):
        x.__dlpack__(dl_device=(1, 0), copy=False)
    assert np.from_dlpack(x, device="cpu").tolist() == [0, 1, 2, 3]
    assert x.__dlpack__(dl_device=(1, 0), copy=True) is not None
host = np.arange(64, dtype=np.float32)
for library in (vd, vnp):
    with pytest.raises(ValueError, match="memory of its own"):
        library.from_dlpack(host, copy=False)
    x = library.from_dlpack(host)
    host[0] = 9
    assert np.asarray(x)[0] == 0
    host[0] = 0
with pytest.raises(BufferError, match="from_dlpack"):
    vd.share(host)
from tests.sharing.arrays import add, double
whole, graph = host.copy(), vd.CommandGraph()
for call in (
    lambda: double(host),
    lambda: add(host, buffer),
    lambda: double(host, graph=graph),
    lambda: vd.share(memoryview(host)),
    lambda: vd.copyto(vd.share(host), vd.Buffer(64, vd.float32)),
):
    with pytest.raises(ValueError, match=r"memory of its own.*copy it, with vd\\.(from_dlpack|asbuffer)"):
        call()
own = vd.from_dlpack(host)
for call in (lambda: vd.sum(host), lambda: vd.fft.fft(host), lambda: vd.cumsum(own, out=host)):
    with pytest.raises((TypeError, ValueError)) as refused:
        call()
    note = refused.value.__notes__[0]
    assert "memory of its own" in note and "vd.from_dlpack" in note
assert (host == whole).all()
with vd.profile() as profile:
    vd.from_dlpack(host)
assert not profile.hand_overs
print("done")
"""


def test_devices_with_memory_of_their_own(run_python: Any) -> None:
    done = run_python(STAGED, VKDISPATCH_FORCE_STAGING="1", VKDISPATCH_NO_EXPORT="1")
    assert done.stdout.strip() == "done", done.stderr


TWO_QUEUES = """
import numpy as np, pytest
import vkdispatch as vd
vd.make_context(queue_counts=2, multi_queue=True)
if vd.get_context().queue_count == 2:
    buffer = vd.asbuffer(np.arange(4, dtype=np.float32))
    with pytest.raises(BufferError, match="each of the 2 queues has a copy"):
        np.from_dlpack(buffer)
    assert np.from_dlpack(buffer, device="cpu").tolist() == [0, 1, 2, 3]
print("done")
"""


def test_buffers_with_a_copy_for_each_queue(run_python: Any) -> None:
    done = run_python(TWO_QUEUES)
    assert done.stdout.strip() == "done", done.stderr
