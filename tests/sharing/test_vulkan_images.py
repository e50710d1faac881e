"""Images that another Vulkan program made, on a device of its own."""

from __future__ import annotations

import ctypes
import sys
from ctypes import byref, c_uint32, c_uint64, c_void_p
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from tests.runtime.by_hand import Foreign, call, vk
from vkdispatch.codegen.abbreviations import Buff, Img2, SImg2, f32, v4

from .test_vulkan import Allocation, Needs

UNDEFINED, GENERAL, SHADER_READ, TRANSFER_SOURCE, TRANSFER_TARGET = 0, 1, 5, 6, 7  # VkImageLayout
EVERYTHING = 0x1 | 0x2 | 0x4 | 0x8  # copied, sampled and stored to
IGNORED = 0xFFFFFFFF
RGBA32F = vd.image_format.R32G32B32A32_SFLOAT


class ImageInfo(ctypes.Structure):
    _fields_ = (
        ("type", c_uint32),
        ("next", c_void_p),
        ("flags", c_uint32),
        ("image_type", c_uint32),
        ("format", c_uint32),
        ("extent", c_uint32 * 3),
        ("levels", c_uint32),
        ("layers", c_uint32),
        ("samples", c_uint32),
        ("tiling", c_uint32),
        ("usage", c_uint32),
        ("sharing", c_uint32),
        ("count", c_uint32),
        ("families", c_void_p),
        ("layout", c_uint32),
    )


class Range(ctypes.Structure):
    _fields_ = (
        ("aspect", c_uint32),
        ("first_level", c_uint32),
        ("levels", c_uint32),
        ("first_layer", c_uint32),
        ("layers", c_uint32),
    )


class ImageBarrier(ctypes.Structure):
    _fields_ = (
        ("type", c_uint32),
        ("next", c_void_p),
        ("before", c_uint32),
        ("after", c_uint32),
        ("old", c_uint32),
        ("new", c_uint32),
        ("families", c_uint32 * 2),
        ("image", c_uint64),
        ("range", Range),
    )


class PoolInfo(ctypes.Structure):
    _fields_ = (("type", c_uint32), ("next", c_void_p), ("flags", c_uint32), ("family", c_uint32))


class CommandsInfo(ctypes.Structure):
    _fields_ = (
        ("type", c_uint32),
        ("next", c_void_p),
        ("pool", c_uint64),
        ("level", c_uint32),
        ("count", c_uint32),
    )


class BeginInfo(ctypes.Structure):
    _fields_ = (("type", c_uint32), ("next", c_void_p), ("flags", c_uint32), ("inherited", c_void_p))


class Submit(ctypes.Structure):
    _fields_ = (
        ("type", c_uint32),
        ("next", c_void_p),
        ("waits", c_uint32),
        ("semaphores", c_void_p),
        ("stages", c_void_p),
        ("count", c_uint32),
        ("commands", c_void_p),
        ("signals", c_uint32),
        ("signalled", c_void_p),
    )


def pointer(handle: Any) -> c_void_p:
    return c_void_p(handle) if isinstance(handle, int) else handle


class TheirImage:
    """A VkImage of another program, which clears it on its own queue."""

    def __init__(
        self,
        foreign: Foreign,
        sizes: tuple[int, ...],
        format: vd.image_format = RGBA32F,
        *,
        layers: int = 1,
        levels: int = 1,
        usage: int = EVERYTHING,
    ) -> None:
        self.foreign, self.device = foreign, pointer(foreign.device)
        self.layout = UNDEFINED
        self.whole = Range(aspect=1, levels=levels, layers=layers)
        info = ImageInfo(type=14, image_type=len(sizes) - 1, format=format.value, usage=usage)
        info.extent = (c_uint32 * 3)(*(*reversed(sizes), 1, 1)[:3])
        info.levels, info.layers, info.samples = levels, layers, 1
        self.handle, self.memory = c_uint64(), c_uint64()
        call("vkCreateImage", self.device, byref(info), None, byref(self.handle))
        needs = Needs()
        vk.vkGetImageMemoryRequirements(self.device, self.handle, byref(needs))
        index = (needs.types & -needs.types).bit_length() - 1
        call(
            "vkAllocateMemory",
            self.device,
            byref(Allocation(type=5, size=needs.size, index=index)),
            None,
            byref(self.memory),
        )
        call("vkBindImageMemory", self.device, self.handle, self.memory, c_uint64(0))

    def clear(self, texel: tuple[float, ...], layout: int) -> None:
        """Make all texels equal, and leave the image in a layout."""
        pool, commands = c_uint64(), c_void_p()
        call(
            "vkCreateCommandPool",
            self.device,
            byref(PoolInfo(type=39, family=self.foreign.family)),
            None,
            byref(pool),
        )
        info = CommandsInfo(type=40, pool=pool.value, count=1)
        call("vkAllocateCommandBuffers", self.device, byref(info), byref(commands))
        call("vkBeginCommandBuffer", commands, byref(BeginInfo(type=42, flags=1)))
        self._change_layout(commands, TRANSFER_TARGET)
        values = (ctypes.c_float * 4)(*texel)
        target = c_uint32(TRANSFER_TARGET)
        vk.vkCmdClearColorImage(commands, self.handle, target, byref(values), c_uint32(1), byref(self.whole))
        self._change_layout(commands, layout)
        call("vkEndCommandBuffer", commands)
        submit = Submit(type=4, count=1, commands=ctypes.cast(ctypes.pointer(commands), c_void_p))
        queue = pointer(self.foreign.queue)
        call("vkQueueSubmit", queue, c_uint32(1), byref(submit), c_uint64(0))
        call("vkQueueWaitIdle", queue)
        vk.vkDestroyCommandPool(self.device, pool, None)

    def _change_layout(self, commands: Any, new: int) -> None:
        barrier = ImageBarrier(type=45, before=0x10000, after=0x18000, old=self.layout, new=new)
        barrier.families = (c_uint32 * 2)(IGNORED, IGNORED)
        barrier.image, barrier.range = self.handle.value, self.whole
        everywhere, none = c_uint32(0x10000), c_uint32(0)  # all stages
        vk.vkCmdPipelineBarrier(
            commands, everywhere, everywhere, none, none, None, none, None, c_uint32(1), byref(barrier)
        )
        self.layout = new

    def destroy(self) -> None:
        vk.vkDestroyImage(self.device, self.handle, None)
        vk.vkFreeMemory(self.device, self.memory, None)


@vd.shader("(image.shape[1], image.shape[0])")
def double_texels(image: SImg2[v4]) -> None:
    here = vc.global_invocation_id()
    image[here.x, here.y] = image[here.x, here.y] * 2


@vd.shader("out.size")
def sample_middle(out: Buff[f32], image: Img2[f32]) -> None:
    i = vc.global_invocation_id().x
    out[i] = image.sample((vc.to_float(i) + 1.0, 1.0)).y


@pytest.mark.parametrize("layout", [GENERAL, SHADER_READ, TRANSFER_SOURCE, TRANSFER_TARGET])
def test_both_programs_use_an_image(foreign: tuple[Foreign, vd.Context], layout: int) -> None:
    maker, context = foreign
    theirs = TheirImage(maker, (6, 10))
    theirs.clear((1, 2, 3, 4), layout)
    owner: Any = np.zeros(1)
    before = sys.getrefcount(owner)
    with vd.use_context(context):
        image = vd.Image2D.from_handle(theirs.handle.value, (6, 10), RGBA32F, layout=layout, owner=owner)
        assert image.is_external and image.context is context and image.is_storable
        assert (image.shape, image.channels, image.dtype) == ((6, 10), 4, vd.float32)
        assert sys.getrefcount(owner) > before
        np.testing.assert_array_equal(image.read(), np.broadcast_to([1, 2, 3, 4], (6, 10, 4)))
        double_texels(image)
        np.testing.assert_array_equal(image.read(), np.broadcast_to([2, 4, 6, 8], (6, 10, 4)))
        out = vd.Buffer(4, vd.float32)
        sample_middle(out, image.sample())
        np.testing.assert_array_equal(out.read(0), 4)
        vd.queue_wait_idle()
        theirs.layout = GENERAL
        theirs.clear((5, 6, 7, 8), GENERAL)
        np.testing.assert_array_equal(image.read(), np.broadcast_to([5, 6, 7, 8], (6, 10, 4)))
        data = np.random.default_rng(1).normal(size=(6, 10, 4)).astype(np.float32)
        image.write(data)
        vd.queue_wait_idle()
        again = vd.Image2D.from_handle(theirs.handle.value, (6, 10), RGBA32F.value)
        np.testing.assert_array_equal(again.read(), data)
        image.destroy()
        vd.queue_wait_idle()
        np.testing.assert_array_equal(again.read(), data)  # it is still there
        del again
    context.close()
    assert sys.getrefcount(owner) == before
    theirs.destroy()


def test_kinds_of_images(foreign: tuple[Foreign, vd.Context]) -> None:
    maker, context = foreign
    formats = vd.image_format
    with vd.use_context(context):
        for cls, sizes, format, layers, levels in (
            (vd.Image1D, (9,), formats.R32_SFLOAT, 1, 1),
            (vd.Image2D, (8, 4), formats.R32G32_SINT, 1, 4),
            (vd.Image2DArray, (4, 5), formats.R32_UINT, 3, 1),
            (vd.Image3D, (2, 3, 4), formats.R32G32B32A32_UINT, 1, 1),
        ):
            theirs = TheirImage(maker, sizes, format, layers=layers, levels=levels)
            image = cls.from_handle(
                theirs.handle.value, sizes, format, layers=layers, mip_levels=levels, layout=UNDEFINED
            )
            assert type(image) is cls and image.format is format and image.mip_levels == levels
            data = np.random.default_rng(2).integers(0, 99, image.array_shape)
            image.write(data.astype(image.read().dtype))
            np.testing.assert_array_equal(image.read(), data)
            image.destroy()
            vd.queue_wait_idle()
            theirs.destroy()


def test_usages_decide_what_kernels_may_do(foreign: tuple[Foreign, vd.Context]) -> None:
    maker, context = foreign
    with vd.use_context(context):
        sampled = TheirImage(maker, (6, 10), usage=0x1 | 0x2 | 0x4)
        image = vd.Image2D.from_handle(sampled.handle.value, (6, 10), RGBA32F, layout=UNDEFINED, usage=0x7)
        image.write(np.ones((6, 10, 4), np.float32))
        out = vd.Buffer(4, vd.float32)
        sample_middle(out, image.sample())
        assert not image.is_storable and (out.read(0) == 1).all()
        with pytest.raises(NotImplementedError, match="cannot store"):
            double_texels(image)
        stored = TheirImage(maker, (6, 10), usage=0x1 | 0x2 | 0x8)
        other = vd.Image2D.from_handle(stored.handle.value, (6, 10), RGBA32F, layout=UNDEFINED, usage=0xB)
        other.write(np.ones((6, 10, 4), np.float32))
        double_texels(other)
        assert (other.read() == 2).all()
        with pytest.raises(NotImplementedError, match="sample"):
            other.sample()
        image.destroy()
        other.destroy()
        vd.queue_wait_idle()
    sampled.destroy()
    stored.destroy()


def test_a_graph_uses_an_image_of_another_program(foreign: tuple[Foreign, vd.Context]) -> None:
    maker, context = foreign
    theirs = TheirImage(maker, (6, 10))
    theirs.clear((1, 2, 3, 4), GENERAL)
    with vd.use_context(context):
        image = vd.Image2D.from_handle(theirs.handle.value, (6, 10), RGBA32F)
        graph = vd.CommandGraph()
        double_texels(image, graph=graph)
        for _ in range(3):
            graph.submit()
        np.testing.assert_array_equal(image.read(), np.broadcast_to([8, 16, 24, 32], (6, 10, 4)))
        image.destroy()
        with pytest.raises(RuntimeError, match="destroyed"):
            graph.submit()
        del graph
        vd.queue_wait_idle()
    theirs.destroy()


TWO_QUEUES = """
from types import SimpleNamespace
from tests.sharing.test_vulkan_images import *
context = vd.make_context(queue_counts=2, multi_queue=True)
device = context.handles.devices[0]
queue = device.queues[0]
theirs = TheirImage(SimpleNamespace(device=device.device, family=queue.family, queue=queue.handle), (6, 10))
theirs.clear((1, 2, 3, 4), SHADER_READ)
image = vd.Image2D.from_handle(theirs.handle.value, (6, 10), RGBA32F, layout=SHADER_READ)
double_texels(image)  # one memory for all queues: doubled once
assert (image.read(0) == [2, 4, 6, 8]).all() and (image.read(1) == [2, 4, 6, 8]).all()
double_texels(image, queue_index=1)
assert (image.read(0) == [4, 8, 12, 16]).all()
image.destroy()
vd.queue_wait_idle()
theirs.destroy()
print("done")
"""


def test_queues_of_a_context_share_the_image(run_python: Any) -> None:
    done = run_python(TWO_QUEUES)
    assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"handle": "image"}, TypeError, "handle"),
        ({"handle": 0}, ValueError, "null"),
        ({"shape": (4,)}, ValueError, "shape"),
        ({"shape": (0, 4)}, ValueError, "shape"),
        ({"shape": (1 << 20, 4)}, ValueError, "exceed"),
        ({"format": "rgba"}, TypeError, "format"),
        ({"format": 44}, ValueError, "format: .*VkFormat 44"),
        ({"format": vd.image_format.R32G32B32_SFLOAT}, ValueError, "format: .*R32G32B32_SFLOAT"),
        ({"layers": 2}, ValueError, "layers"),
        ({"mip_levels": 5}, ValueError, "mip_levels: .* at most 4"),
        ({"mip_levels": 0}, ValueError, "mip_levels"),
        ({"layout": 3}, ValueError, "layout"),
        ({"layout": "general"}, ValueError, "layout"),
        ({"usage": 0x4}, ValueError, "usage"),
        ({"usage": 0x3}, ValueError, "usage"),
    ],
)
def test_wrong_arguments(changes: dict[str, Any], error: type[Exception], text: str) -> None:
    given = {"handle": 1, "shape": (8, 8), "format": RGBA32F, **changes}
    with pytest.raises(error, match=text):
        vd.Image2D.from_handle(**given)


def test_the_class_says_how_many_axes_there_are() -> None:
    with pytest.raises(TypeError, match="Image1D"):
        vd.Image.from_handle(1, (8, 8), RGBA32F)
