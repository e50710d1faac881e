"""Buffers that another Vulkan program made, on a device of its own."""

from __future__ import annotations

import ctypes
import sys
from ctypes import byref, c_uint32, c_uint64, c_void_p
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.numpy as vnp
from tests.runtime.by_hand import Foreign, call, vk

from .arrays import double

# storage, and the source and the target of copies
USAGE = 0x20 | 0x1 | 0x2
HOST = 0x2 | 0x4  # visible and coherent


class _BufferInfo(ctypes.Structure):
    _fields_ = (
        ("type", c_uint32),
        ("next", c_void_p),
        ("flags", c_uint32),
        ("size", c_uint64),
        ("usage", c_uint32),
        ("sharing", c_uint32),
        ("count", c_uint32),
        ("families", c_void_p),
    )


class Needs(ctypes.Structure):
    _fields_ = (("size", c_uint64), ("alignment", c_uint64), ("types", c_uint32))


class Allocation(ctypes.Structure):
    _fields_ = (("type", c_uint32), ("next", c_void_p), ("size", c_uint64), ("index", c_uint32))


class _MemoryProperties(ctypes.Structure):
    _fields_ = (
        ("count", c_uint32),
        ("types", c_uint32 * 2 * 32),
        ("heap_count", c_uint32),
        ("heaps", c_uint64 * 2 * 16),
    )


class TheirBuffer:
    """A VkBuffer with memory that its program maps."""

    def __init__(self, foreign: Foreign, count: int) -> None:
        self.device = c_void_p(foreign.device) if isinstance(foreign.device, int) else foreign.device
        info = _BufferInfo(type=12, size=4 * count, usage=USAGE)
        self.handle, self.memory = c_uint64(), c_uint64()
        call("vkCreateBuffer", self.device, byref(info), None, byref(self.handle))
        needs = Needs()
        vk.vkGetBufferMemoryRequirements(self.device, self.handle, byref(needs))
        known = _MemoryProperties()
        vk.vkGetPhysicalDeviceMemoryProperties(foreign.physical, byref(known))
        index = next(
            i for i in range(known.count) if needs.types >> i & 1 and known.types[i][0] & HOST == HOST
        )
        wanted = Allocation(type=5, size=needs.size, index=index)
        call("vkAllocateMemory", self.device, byref(wanted), None, byref(self.memory))
        call("vkBindBufferMemory", self.device, self.handle, self.memory, c_uint64(0))
        mapped = c_void_p()
        whole = c_uint64(needs.size)
        call("vkMapMemory", self.device, self.memory, c_uint64(0), whole, c_uint32(0), byref(mapped))
        assert mapped.value is not None
        numbers = (ctypes.c_float * count).from_address(mapped.value)
        self.array = np.frombuffer(numbers, np.float32)

    def destroy(self) -> None:
        vk.vkDestroyBuffer(self.device, self.handle, None)
        vk.vkFreeMemory(self.device, self.memory, None)


def test_both_programs_use_the_memory(foreign: tuple[Foreign, vd.Context]) -> None:
    maker, context = foreign
    theirs = TheirBuffer(maker, 1000)
    theirs.array[:] = np.arange(1000)
    owner: Any = np.zeros(1)
    before = sys.getrefcount(owner)
    with vd.use_context(context):
        buffer = vd.Buffer.from_handle(theirs.handle.value, (10, 100), vd.float32, owner=owner)
        assert buffer.is_external and buffer.context is context and sys.getrefcount(owner) > before
        double(buffer)
        vd.queue_wait_idle()
        np.testing.assert_array_equal(theirs.array, 2 * np.arange(1000))
        np.testing.assert_array_equal(buffer.read(0).reshape(-1), theirs.array)
        buffer.write(np.full((10, 100), 7, np.float32))
        vd.queue_wait_idle()
        assert (theirs.array == 7).all()
        assert vd.sum(buffer).read(0) == 7000
        other = vd.asbuffer(np.ones((10, 100), np.float32))
        vd.copyto(buffer, other)
        vd.queue_wait_idle()
        assert (theirs.array == 1).all()
        buffer.destroy()
        vd.queue_wait_idle()
        theirs.array[:] = 3  # it is still there
    context.close()
    assert sys.getrefcount(owner) == before
    theirs.destroy()


def test_a_context_is_not_closed_while_its_memory_is_used(foreign: tuple[Foreign, vd.Context]) -> None:
    """The other program's device may go afterwards, and memory that lies there with it."""
    context = foreign[1]
    with vd.use_context(context):
        buffer, x = vd.asbuffer(np.arange(8, dtype=np.float32)), vnp.arange(8)
        if not context._native.host_mapped:
            pytest.skip("the device's memory is not the host's")
        views = [np.from_dlpack(buffer)[2:], np.asarray(vd.share(x)), np.from_dlpack(x, copy=True)]
        imported = vd.from_dlpack(views[2])
        for count in (2, 1):
            with pytest.raises(RuntimeError, match=f"in {count} place.*delete or copy"):
                context.close()
            assert not context.closed
            np.testing.assert_array_equal(views[0], np.arange(8)[-len(views[0]) :])
            views.pop(0)
        assert vd.sum(buffer).read(0) == 28
        del imported
        context.close()
    assert context.closed and views[0].sum() == 28


def test_wrong_handles() -> None:
    for wrong, kind, text in (
        ("buffer", TypeError, "handle"),
        (0, ValueError, "null"),
        (-5, ValueError, "handle"),
    ):
        with pytest.raises(kind, match=text):
            vd.Buffer.from_handle(wrong, 4, vd.float32)
    with pytest.raises(ValueError, match="at least one element"):
        vd.Buffer.from_handle(1, (0, 4), vd.float32)
