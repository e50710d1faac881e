"""Arrays of other libraries as buffers, in their own memory or copied, and as arguments."""

from __future__ import annotations

import ctypes
import gc
import sys
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch.numpy as vnp
import vkdispatch_native as native
from vkdispatch.codegen.abbreviations import Buff, Const, f32, v2

from .arrays import Versionless, add, address, aligned, double
from .test_exports import DTYPES


@pytest.mark.parametrize(("kind", "host"), DTYPES)
def test_buffers_are_the_array_itself(takes_host: None, kind: Any, host: Any) -> None:
    data = aligned((np.arange(40).reshape(2, 4, 5) % 2).astype(host))
    before = data.copy()
    buffer = vd.from_dlpack(data, copy=False)
    assert (buffer.var_type, buffer.shape) == (kind, (2, 4, 5))
    assert buffer.is_external and not buffer.owns_memory and buffer.is_writable
    np.testing.assert_array_equal(buffer.read(0), before)
    data[1, 3, 4] = 1 - before[1, 3, 4]
    np.testing.assert_array_equal(buffer.read(0), data)
    buffer.write(before)
    np.testing.assert_array_equal(data, before)
    assert address(np.from_dlpack(buffer)) == address(data)


@pytest.mark.parametrize("start", [0, 16, 1008, 4080])
def test_memory_may_begin_within_a_page(takes_host: None, start: int) -> None:
    if start % vd.get_context()._native.binding_alignment:
        pytest.skip("the device binds at larger multiples")
    octets = np.zeros(3 * 4096, np.uint8)
    first = -address(octets) % 4096 + start
    data = octets[first : first + 1000].view(np.float32)
    data[:] = np.arange(250)
    buffer = vd.from_dlpack(data, copy=False)
    double(buffer)
    np.testing.assert_array_equal(data, 2 * np.arange(250, dtype=np.float32))
    copy = vd.Buffer(250, vd.float32)
    vd.copyto(copy, buffer)  # as the source and the target of copies, too
    np.testing.assert_array_equal(copy.read(0), data)
    vd.copyto(buffer, vd.asbuffer(np.full(250, 7, np.float32)))
    assert (data == 7).all() and not octets[:first].any() and not octets[first + 1000 :].any()


def test_what_cannot_be_taken_in_place_is_copied_or_refused(takes_host: None) -> None:
    whole = aligned(np.arange(64, dtype=np.float32))
    odd = aligned(np.zeros(64, np.uint8))[:63]
    for data, why in (
        (whole[::2], "C order"),
        (whole[::-1], "C order"),
        (whole.reshape(8, 8).T, "C order"),
        (whole[1:], "multiple of"),
        (odd, "words"),
    ):
        with pytest.raises(BufferError, match=why):
            vd.from_dlpack(data, copy=False)
        with pytest.raises(ValueError, match=r"from_dlpack\(x, copy=True\)"):
            vd.share(data)
        copy = vd.from_dlpack(data)
        assert not copy.is_external
        np.testing.assert_array_equal(copy.read(0), data)


def test_copies_share_nothing() -> None:
    data = aligned(np.arange(8, dtype=np.float32))
    copy = vd.from_dlpack(data, copy=True)
    data[:] = 0
    np.testing.assert_array_equal(copy.read(0), np.arange(8))
    with pytest.raises(TypeError, match="copy"):
        vd.from_dlpack(data, copy="no")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="__dlpack__"):
        vd.from_dlpack([1.0, 2.0])
    with pytest.raises(TypeError, match="device"):
        vd.from_dlpack(data, device="cpu")  # type: ignore[arg-type]
    assert vd.from_dlpack(np.zeros((1, 2, 1, 3), np.float32)).shape == (1, 2, 1, 3)


def test_small_shapes() -> None:
    for data in (np.array(3.5, np.float32), np.zeros((0, 4), np.int16), aligned(np.float64(2.5))):
        buffer = vd.from_dlpack(data)
        assert buffer.shape == data.shape
        np.testing.assert_array_equal(buffer.read(0), data)


def test_our_own_arrays_are_the_same_memory() -> None:
    buffer = vd.asbuffer(np.arange(4, dtype=np.float32))
    same = vd.from_dlpack(buffer)
    double(same)
    np.testing.assert_array_equal(buffer.read(0), [0, 2, 4, 6])
    copy = vd.from_dlpack(buffer, copy=True)
    double(copy)
    np.testing.assert_array_equal(buffer.read(0), [0, 2, 4, 6])


def test_arrays_that_are_no_whole_buffer_are_copied_or_refused() -> None:
    x = vnp.arange(12, dtype=np.float32)
    assert vd.from_dlpack(x, copy=False)._native is vd.from_dlpack(x)._native
    for part in (x[::2], x[4:], x.reshape(3, 4).T, vnp.broadcast_to(x, (2, 12))):
        with pytest.raises(ValueError, match="copy: False"):
            vd.from_dlpack(part, copy=False)
        copy = vd.from_dlpack(part)
        np.testing.assert_array_equal(copy.read(0), part.numpy())
        double(copy)
    np.testing.assert_array_equal(x.numpy(), np.arange(12))


def test_read_only_memory(takes_host: None) -> None:
    data = aligned(np.arange(64, dtype=np.float32))
    data.flags.writeable = False
    buffer = vd.from_dlpack(data, copy=False)
    assert not buffer.is_writable and vd.sum(buffer).read(0) == data.sum()
    add(target := vd.asbuffer(data), buffer)
    np.testing.assert_array_equal(target.read(0), 2 * data)
    graph = vd.CommandGraph()
    for write in (
        lambda: double(buffer),
        lambda: double(data),
        lambda: buffer.write(data),
        lambda: buffer.write_async(data),
        lambda: buffer.write_range(data[:2]),
        lambda: vd.copyto(buffer, target),
        lambda: vd.sum(target, out=buffer) if False else vd.cumsum(target, out=buffer),
        lambda: double(buffer, graph=graph),
    ):
        with pytest.raises(ValueError, match=r"read.only"):
            write()
    np.testing.assert_array_equal(data, np.arange(64))
    view = np.from_dlpack(buffer)
    assert not view.flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        buffer.__dlpack__()  # DLPack 0.x has no flag
    assert memoryview(vd.share(buffer)).readonly
    copy = vd.from_dlpack(data, copy=True)
    double(copy)


def test_graphs_read_read_only_memory_and_refuse_to_record_writes(takes_host: None) -> None:
    data = aligned(np.arange(64, dtype=np.float32))
    data.flags.writeable = False
    own, theirs = vd.asbuffer(np.zeros(64, np.float32)), vd.from_dlpack(data, copy=False)
    graph = vd.CommandGraph()
    add(own, theirs, graph=graph)
    add(own, data, graph=graph)
    graph.record_copy(own._native, own._native, 4, 0, 128)
    for count in range(1, 3):
        graph.submit()
        np.testing.assert_array_equal(own.read(0)[:32], 2 * count * data[:32])
    length = graph.length
    for write in (
        lambda: add(theirs, own, graph=graph),
        lambda: add(data, own, graph=graph),
        lambda: graph.record_copy(own._native, theirs._native, 4),
    ):
        with pytest.raises(ValueError, match=r"read only"):
            write()
    assert graph.length == length


def test_libraries_that_know_no_versions() -> None:
    data = aligned(np.arange(8, dtype=np.int64))
    np.testing.assert_array_equal(vd.from_dlpack(Versionless(data)).read(0), data)


class _Wrong:
    def __init__(self, device: tuple[int, int], capsule: Any) -> None:
        self.device, self.capsule = device, capsule

    def __dlpack__(self, **options: Any) -> Any:
        if isinstance(self.capsule, Exception):
            raise self.capsule
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


def test_what_a_library_may_do_wrong() -> None:
    data = np.arange(4, dtype=np.float32)
    used = data.__dlpack__()
    native.ForeignTensor(used)
    for wrong, why in (
        (_Wrong((2, 0), None), "CUDA|no tensor"),
        (_Wrong((99, 0), None), "99"),
        (_Wrong((1, 0), BufferError("it requires grad")), "it requires grad"),
        (_Wrong((1, 0), used), "no tensor"),
        (_Wrong((1, 0), "capsule"), "no tensor"),
    ):
        for take in (vd.from_dlpack, vd.share):
            with pytest.raises(BufferError, match=why):
                take(wrong)
    for form, why in (
        ((2, 8, 1), "float8"),
        ((2, 32, 4), "float32 in vectors of 4"),
        ((3, 64, 1), "opaque64"),
    ):
        capsule = native.make_dlpack(data, address(data), (1, 0), form, (1,), (1,))
        with pytest.raises(BufferError, match=why):
            vd.from_dlpack(_Wrong((1, 0), capsule))
    for place, start, why in (((2, 0), address(data), r"\(1, 0\).*\(2, 0\)"), ((1, 0), 0, "no memory")):
        for take in (vd.from_dlpack, vnp.from_dlpack, vd.share):
            capsule = native.make_dlpack(data, start, place, (2, 32, 1), (4,), (1,))
            with pytest.raises(BufferError, match=why):
                take(_Wrong((1, 0), capsule))


_FAR = 2**63 - 1
# What is changed in a good tensor of four float32, and why it is refused.
_NO_TENSORS: list[tuple[dict[str, Any], str]] = [
    ({"ndim": 2**31 - 1}, "axes"),
    ({"ndim": 65}, "axes"),
    ({"ndim": -1}, "axes"),
    ({"ndim": -(2**31)}, "axes"),
    ({"shape": None}, "no shape"),
    ({"shape": (-4,)}, "negative"),
    ({"shape": (-2, -2), "ndim": 2}, "negative"),
    ({"shape": (0, -1), "ndim": 2}, "negative"),
    ({"shape": (_FAR,)}, "beyond"),
    ({"shape": (2**32, 2**32), "ndim": 2}, "beyond"),
    ({"shape": (2**62, 4, 0), "ndim": 3}, "beyond"),
    ({"shape": (2**61,)}, "beyond"),
    ({"strides": (_FAR,)}, "beyond"),
    ({"strides": (-_FAR - 1,)}, "beyond"),
    ({"shape": (2, 2), "ndim": 2, "strides": (2**60, 2**60)}, "beyond"),
    ({"strides": (-(2**48),)}, "beyond"),
    ({"offset": 2**64 - 4}, "beyond"),
    ({"data": 0}, "no memory"),
    ({"data": 0, "offset": 4096}, "no memory"),
    ({"data": 2**64 - 4}, "beyond"),
    ({"bits": 0}, "bits"),
    ({"lanes": 0}, "lanes"),
    ({"bits": 33}, "float33"),
    ({"lanes": 2}, "vectors of 2"),
    ({"code": 77}, "type code 77"),
    ({"device": 2}, "DLPack device"),
    ({"device": -1}, "DLPack device"),
]


class _DType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", _DType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _ManagedVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


class Handmade:
    """An array whose capsule is made by hand: a good one of four float32 with changes. It has no deleter."""

    def __init__(self, array: np.ndarray[Any, Any], versioned: bool, **changes: Any) -> None:
        self.kept = made = _ManagedVersioned(1, 0) if versioned else _Managed()
        shape, strides = changes.get("shape", (4,)), changes.get("strides")
        as_lengths = lambda lengths: None if lengths is None else (ctypes.c_int64 * len(lengths))(*lengths)  # noqa: E731
        made.tensor = _Tensor(
            changes.get("data", address(array)),
            changes.get("device", 1),
            0,
            changes.get("ndim", 1),
            _DType(changes.get("code", 2), changes.get("bits", 32), changes.get("lanes", 1)),
            as_lengths(shape),
            as_lengths(strides),
            changes.get("offset", 0),
        )
        self.name = b"dltensor_versioned" if versioned else b"dltensor"

    def __dlpack__(self, **_: Any) -> Any:
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.kept), self.name, None)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


@pytest.mark.parametrize("versioned", [False, True])
def test_capsules_are_not_believed(versioned: bool) -> None:
    data = aligned(np.arange(4, dtype=np.float32))
    for changes, why in _NO_TENSORS:
        for take in (vd.from_dlpack, vnp.from_dlpack, vd.share):
            with pytest.raises(BufferError, match=why):
                take(Handmade(data, versioned, **changes))


@pytest.mark.parametrize("versioned", [False, True])
def test_unusual_capsules(versioned: bool) -> None:
    data = aligned(np.arange(4, dtype=np.float32))
    for changes, expected in (
        ({}, data),
        ({"data": address(data) + 12, "strides": (-1,)}, data[::-1]),
        ({"shape": (3,), "strides": (0,), "offset": 8}, data[[2, 2, 2]]),
        ({"shape": (2, 0), "ndim": 2, "data": 0}, np.zeros((2, 0))),
        ({"shape": None, "ndim": 0}, data[0]),
        ({"shape": (1,), "strides": (_FAR,)}, data[:1]),
    ):
        for take in (vd.from_dlpack, vnp.from_dlpack):
            made = Handmade(data, versioned, **changes)
            np.testing.assert_array_equal(np.asarray(take(made)), expected)


class _OnDevice(_Wrong):
    def __dlpack_device__(self) -> Any:
        return self.device


@pytest.mark.parametrize("device", [(), (1,), (1, 0, 0), None, 1, "cpu", (1.5, 0), (2**40, 0)])
def test_devices_that_are_none(device: Any) -> None:
    with pytest.raises(BufferError, match=r"shared|device"):
        vd.from_dlpack(_OnDevice(device, None))


def test_masks_are_not_lost() -> None:
    data = np.ma.array(aligned(np.ones(4, np.float32)), mask=[0, 1, 0, 0], copy=False)
    for take in (vd.from_dlpack, vnp.from_dlpack, vd.share, double):
        with pytest.raises(TypeError, match="mask"):
            take(data)


def test_capsules_of_another_version_are_released() -> None:
    owner = np.zeros(4, np.float32)
    before = sys.getrefcount(owner)
    capsule = native.make_dlpack(owner, address(owner), (1, 0), (2, 32, 1), (4,), (1,))
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    ctypes.c_uint32.from_address(get(capsule, b"dltensor_versioned")).value = 2
    with pytest.raises(BufferError, match=r"2\.\d"):
        native.ForeignTensor(capsule)
    assert sys.getrefcount(owner) == before


def test_memory_without_dlpack(takes_host: None) -> None:
    data = aligned(np.arange(64, dtype=np.float32))
    buffer = vd.share(memoryview(data))
    double(buffer)
    np.testing.assert_array_equal(data, 2 * np.arange(64))
    assert not vd.share(memoryview(data).toreadonly()).is_writable
    with pytest.raises(ValueError, match=r"a memoryview .*vd.asbuffer\(np.array\(x\)\)"):
        vd.share(memoryview(data)[::2])
    with pytest.raises(TypeError, match="list"):
        vd.share([1, 2, 3])


# ---- arguments


@vd.shader("x.size")
def scale(x: Buff[v2], factor: Const[v2]) -> None:
    i = vc.global_invocation_id().x
    x[i] = x[i] * factor


def test_kernels_take_arrays_of_other_libraries(takes_host: None) -> None:
    x, y = aligned(np.ones(256, np.float32)), aligned(np.arange(256, dtype=np.float32))
    add(x, y)
    add(x=x, y=vd.asbuffer(y))
    np.testing.assert_array_equal(x, 1 + 2 * y)
    add(x, x)
    np.testing.assert_array_equal(x, 2 + 4 * y)
    with pytest.raises(ValueError, match=r"argument 'y'.*C order.*from_dlpack"):
        add(x, aligned(np.arange(512, dtype=np.float32))[::2])
    y.flags.writeable = False
    with pytest.raises(ValueError, match=r"argument 'x'.*read only"):
        add(y, x)
    add(x, y.reshape(2, 2, 2, 32))
    np.testing.assert_array_equal(x, 2 + 5 * y)
    pairs = vd.asbuffer(y).view(vd.vec2)
    scale(pairs, np.array([2, 3], np.float32))  # a value, which is no buffer
    np.testing.assert_array_equal(pairs.read(0), y.reshape(-1, 2) * [2, 3])


def test_kernels_take_vectors_as_last_axes(takes_host: None) -> None:
    x = aligned(np.arange(64, dtype=np.float32).reshape(4, 8, 2))
    before = x.copy()
    scale(x, np.array([2, 3], np.float32))
    scale(x=x, factor=np.array([1, 2], np.float32))
    np.testing.assert_array_equal(x, before * [2, 6])
    for wrong in (x.reshape(16, 4), aligned(np.ones((8, 2))), aligned(np.ones((8, 2), np.int32))):
        with pytest.raises(ValueError, match="expected elements of vec2"):
            scale(wrong, np.array([2, 3], np.float32))


def test_graphs_keep_arrays_of_other_libraries(takes_host: None) -> None:
    x = aligned(np.zeros(64, np.float32))
    graph = vd.CommandGraph()
    add(x, aligned(np.ones(64, np.float32)), graph=graph)
    gc.collect()
    for count in range(1, 4):
        graph.submit()
        assert (x == count).all()  # finished when submit returns
    before = sys.getrefcount(x)
    del graph
    gc.collect()
    assert sys.getrefcount(x) < before


def test_functions_take_arrays_of_other_libraries(takes_host: None) -> None:
    x = aligned(np.random.default_rng(3).normal(size=256).astype(np.float32))
    np.testing.assert_allclose(vd.sum(x).read(0), x.sum(), rtol=1e-5)
    np.testing.assert_array_equal(vd.sort(x).read(0), np.sort(x))
    spectrum = aligned(x.astype(np.complex64))
    vd.fft.fft(spectrum)
    np.testing.assert_allclose(spectrum, np.fft.fft(x), atol=1e-3)

    @vd.map
    def square(value: f32) -> f32:
        return value * value

    np.testing.assert_allclose(vd.sum(square(x)).read(0), (x * x).sum(), rtol=1e-5)
    with pytest.raises(TypeError, match=r"x: expected a vd.Buffer") as refused:
        vd.sum(x[::2])
    assert "C order" in refused.value.__notes__[0] and "from_dlpack" in refused.value.__notes__[0]
    with pytest.raises(ValueError, match="axis"):
        vd.sum(x, axis=3)


def test_repeated_calls_see_each_array(takes_host: None) -> None:
    out = vd.Buffer((), vd.float32)
    for seed in range(6):
        x = aligned(np.random.default_rng(seed).integers(0, 99, 512).astype(np.float32))
        vd.sum(vd.from_dlpack(x, copy=False), out=out)
        assert out.read(0) == x.sum()


# ---- memory that is shared already


def test_memory_of_ours_comes_back_as_itself(takes_host: None) -> None:
    buffer = vd.asbuffer(np.arange(64, dtype=np.float32))
    view = np.from_dlpack(buffer)
    again = vd.from_dlpack(view, copy=False)
    assert again._native is buffer._native
    add(view, buffer)  # one memory as two arguments
    np.testing.assert_array_equal(view, 2 * np.arange(64))
    vd.cumsum(view, out=buffer)
    np.testing.assert_array_equal(view, 2 * np.cumsum(np.arange(64)))
    part = vnp.from_dlpack(view[::-2], copy=False)
    assert part.shape == (32,) and float(part[0]) == view[63]
    part += 1
    assert buffer.read(0)[63] == view[63] == float(part[0])
    del view
    gc.collect()
    assert again._native.lent  # and used in order
    del again, part
    gc.collect()
    assert not buffer._native.lent


def test_memory_is_imported_once(takes_host: None) -> None:
    data = aligned(np.arange(64, dtype=np.float32))
    first, second = vd.from_dlpack(data), vd.from_dlpack(data)
    assert first._native is second._native
    half = vd.from_dlpack(data[:32])
    assert half._native is not first._native and half.read(0).shape == (32,)
    data.flags.writeable = False
    assert not vd.from_dlpack(data).is_writable and first.is_writable
    before = sys.getrefcount(data)
    del first
    double(second)
    assert data[1] == 2 and sys.getrefcount(data) == before
