"""Arrays of `vkdispatch.numpy` in other libraries, and the other way round: views stay views."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.numpy as vnp
import vkdispatch_native as native

from .arrays import Versionless, address, aligned, double
from .test_exports import DTYPES

VIEWS = [
    lambda x: x,
    lambda x: x[1],
    lambda x: x[:, ::-1],
    lambda x: x[::-1, 1::2, ::-3],
    lambda x: x.T,
    lambda x: x[1, 2, 3, ...],
    lambda x: x[:, :0],
    lambda x: x[None, :, 2:3, None],
]


@pytest.mark.parametrize("view", VIEWS)
def test_views_are_exported_as_views(on_host: None, view: Any) -> None:
    data = np.arange(2 * 5 * 7, dtype=np.float32).reshape(2, 5, 7)
    x = vnp.asarray(data)
    part, expected = np.from_dlpack(view(x)), view(data)
    np.testing.assert_array_equal(part, expected)
    assert part.strides == np.asarray(expected).strides or part.size <= 1
    if part.size:
        part[...] = -1
        expected[...] = -1
    np.testing.assert_array_equal(x.numpy(), data)


@pytest.mark.parametrize("view", VIEWS)
def test_views_are_imported_as_views(takes_host: None, view: Any) -> None:
    data = aligned(np.arange(2 * 5 * 7, dtype=np.float32).reshape(2, 5, 7))
    part = view(data)
    x = vnp.from_dlpack(part, copy=False)
    np.testing.assert_array_equal(x.numpy(), part)
    np.testing.assert_array_equal((x + 1).numpy(), part + 1)
    before = data.copy()
    x *= 2
    view(before)[...] *= 2
    np.testing.assert_array_equal(data, before)


@pytest.mark.parametrize("host", [host for _, host in DTYPES])
def test_dtypes_both_ways(takes_host: None, host: Any) -> None:
    data = aligned((np.arange(24) % 2).astype(host))
    x = vnp.from_dlpack(data, copy=False)
    assert x.dtype == host
    assert address(np.from_dlpack(x)) == address(data)
    data[3] = 1 - data[3]
    np.testing.assert_array_equal(x.numpy(), data)


@pytest.mark.parametrize("rank", [0, 1, 4, 17, 32])
def test_arrays_have_any_number_of_axes(takes_host: None, rank: int) -> None:
    data = aligned(np.arange(2.0).reshape((1,) * (rank - 1) + (2,)) if rank else np.array(3.5))
    x = vnp.from_dlpack(data, copy=False)
    assert x.shape == data.shape and address(np.from_dlpack(x)) == address(data)
    np.testing.assert_array_equal(np.from_dlpack(vnp.asarray(data)), data)


def test_any_address_within_a_page_will_do(takes_host: None) -> None:
    octets = np.zeros(4 * 4096, np.uint8)
    for start in (0, 4, 20, 4092):
        data = octets[-address(octets) % 4096 + start :][:400].view(np.float32)
        data[:] = np.arange(100)
        x = vnp.from_dlpack(data, copy=False)
        x += 1
        np.testing.assert_array_equal(data, np.arange(1, 101))


def test_what_cannot_be_taken_in_place(takes_host: None) -> None:
    octets = aligned(np.zeros(64, np.uint8))
    records = np.zeros(8, [("a", "u1"), ("b", "f4")])["b"]
    for data in (octets[:63], octets[1:], records):
        with pytest.raises(ValueError, match=r"copy|multiple of itemsize"):
            vnp.from_dlpack(data, copy=False)
    copy = vnp.from_dlpack(octets[:63])
    octets[0] = 7
    assert copy[0] == 0
    with pytest.raises(TypeError, match="bfloat16"):
        vnp.from_dlpack(vd.Buffer(4, vd.bfloat16))


def test_expressions_are_computed_when_they_are_exported(on_host: None) -> None:
    x = vnp.arange(6, dtype=np.float32)
    lazy = x * 2 + 1
    view = np.from_dlpack(lazy)
    np.testing.assert_array_equal(view, np.arange(6) * 2 + 1)
    view[0] = 50
    assert lazy[0] == 50


def test_expressions_read_shared_memory_when_they_are_written(on_host: None) -> None:
    x = vnp.arange(6, dtype=np.float32)
    pending = x + 1  # computed before NumPy gets the memory
    view = np.from_dlpack(x)
    view[:] = 100
    later = x + 1
    view[:] = 200
    np.testing.assert_array_equal(pending.numpy(), np.arange(6) + 1)
    np.testing.assert_array_equal(later.numpy(), 101)
    del view
    gc.collect()
    np.testing.assert_array_equal((x + 1).numpy(), 201)


def test_expressions_read_a_shared_buffer_at_once(on_host: None) -> None:
    buffer = vd.asbuffer(np.arange(6, dtype=np.float32))
    x = vnp.asarray(buffer)
    pending = x + 1
    view = np.from_dlpack(buffer)
    view[:] = 100
    later = x + 1
    view[:] = 200
    np.testing.assert_array_equal(pending.numpy(), np.arange(6) + 1)
    np.testing.assert_array_equal(later.numpy(), 101)


def test_imported_memory_is_read_at_once(takes_host: None) -> None:
    data = aligned(np.arange(8, dtype=np.float32))
    x = vnp.from_dlpack(data, copy=False)
    later = x + 1
    data[:] = 0
    np.testing.assert_array_equal(later.numpy(), np.arange(8) + 1)
    x[2:4] = 5
    np.testing.assert_array_equal(data, [0, 0, 5, 5, 0, 0, 0, 0])


def test_read_only_memory(takes_host: None) -> None:
    data = aligned(np.arange(8, dtype=np.float32))
    data.flags.writeable = False
    x = vnp.from_dlpack(data, copy=False)
    assert float(x.sum()) == 28
    assert not x.flags.writeable and not x.flags.owndata
    assert vnp.from_dlpack(aligned(np.ones(8))).flags.writeable
    for write in (lambda: x.fill(1), lambda: x.__setitem__(0, 1), lambda: x.__iadd__(1), x.sort):
        with pytest.raises(ValueError, match=r"read.only"):
            write()
    with pytest.raises(ValueError, match=r"read.only"):
        double(x)
    np.testing.assert_array_equal(data, np.arange(8))


def test_elements_that_are_repeated_are_read_only(on_host: None) -> None:
    x = vnp.broadcast_to(vnp.arange(3), (4, 3))
    view = np.from_dlpack(x)
    assert not view.flags.writeable and view.strides[0] == 0
    with pytest.raises(BufferError, match="read-only"):
        x.__dlpack__()


@pytest.mark.parametrize("shape", [(3,), (1, 3), (4, 3), (0, 3), (2, 0, 3)])
def test_views_of_broadcast_to_are_read_only(on_host: None, shape: Any) -> None:
    """As NumPy's, whether elements are repeated or not."""
    for x in (vnp.broadcast_to(vnp.ones(3), shape), np.broadcast_to(np.ones(3), shape)):
        assert native.ForeignTensor(x.__dlpack__(max_version=(1, 1))).flags == 1 and not x.flags.writeable
        with pytest.raises(BufferError, match=r"read-?only"):
            x.__dlpack__()
    shared = vd.share(vnp.broadcast_to(vnp.ones(3), shape))
    assert shared.read_only and memoryview(shared).readonly
    assert native.ForeignTensor(vnp.zeros(shape).__dlpack__(max_version=(1, 1))).flags == 0


@pytest.mark.parametrize("shape", [(0,), (3, 0, 2), (0, 4), (2, 3), (), (1, 0)])
def test_strides_of_arrays_in_c_order(on_host: None, shape: Any) -> None:
    x = vnp.zeros(shape, np.float32)
    expected = np.zeros([max(length, 1) for length in shape], np.float32).strides
    assert x.strides == vd.share(x).strides == vd.share(vd.asbuffer(x)).strides == expected


def test_copies_and_requests(on_host: None) -> None:
    x = vnp.arange(4)
    copy = np.from_dlpack(x, copy=True)
    copy[:] = 9
    np.testing.assert_array_equal(x.numpy(), np.arange(4))
    assert x.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError, match="dl_device"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(ValueError, match="stream"):
        x.__dlpack__(stream=2)
    data = np.arange(8.0)
    mine = vnp.from_dlpack(data, copy=True)
    data[:] = 0
    np.testing.assert_array_equal(mine.numpy(), np.arange(8))
    np.testing.assert_array_equal(vnp.from_dlpack(Versionless(data)).numpy(), data)
    assert vnp.from_dlpack(x) is x
    with pytest.raises(TypeError, match="__dlpack__"):
        vnp.from_dlpack([1, 2])


def test_share(on_host: None) -> None:
    x = vnp.arange(12, dtype=np.float32).reshape(3, 4)
    shared = vd.share(x[:, 1:3])
    assert (shared.shape, shared.strides) == ((3, 2), (16, 4))
    view = np.asarray(shared)
    view[:] = 0
    np.testing.assert_array_equal(x.numpy()[:, 1:3], 0)
    with pytest.raises(BufferError, match="one behind the other"):
        np.frombuffer(shared, np.float32)
    np.testing.assert_array_equal(vnp.from_dlpack(shared).numpy(), view)
    with pytest.raises(TypeError):
        memoryview(x)  # type: ignore[arg-type]


def test_memory_outlives_the_array(on_host: None) -> None:
    view = np.from_dlpack(vnp.arange(1000) * 2)
    gc.collect()
    others = [vnp.full(1000, 7) * 1 for _ in range(8)]
    assert all(int(other.sum()) == 7000 for other in others)
    np.testing.assert_array_equal(view, np.arange(1000) * 2)
