"""Vulkan through ctypes, as programs have it that are not ours."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
from collections.abc import Sequence
from ctypes import POINTER, Structure, byref, c_char_p, c_float, c_uint32, c_uint64, c_void_p, cast
from typing import Any

VALIDATION = b"VK_LAYER_KHRONOS_validation"
DEBUG_UTILS = b"VK_EXT_debug_utils"
COMPUTE = 0x2
VULKAN_1_2 = 0x402000
_CORE_FEATURES = 55
_CORE = {"shaderStorageImageExtendedFormats": 29, "shaderFloat64": 39, "shaderInt64": 40, "shaderInt16": 41}
_FEATURES_12 = 47
_VULKAN_12 = {
    "samplerMirrorClampToEdge": 0,
    "storageBuffer8BitAccess": 2,
    "shaderFloat16": 7,
    "shaderInt8": 8,
    "scalarBlockLayout": 31,
    "hostQueryReset": 36,
    "timelineSemaphore": 37,
    "bufferDeviceAddress": 38,
}
REQUIRED = ("scalarBlockLayout", "timelineSemaphore")


class ApplicationInfo(Structure):
    _fields_ = (
        ("type", c_uint32),
        ("next", c_void_p),
        ("application", c_char_p),
        ("application_version", c_uint32),
        ("engine", c_char_p),
        ("engine_version", c_uint32),
        ("api_version", c_uint32),
    )


class InstanceInfo(Structure):
    _fields_ = (
        ("type", c_uint32),
        ("next", c_void_p),
        ("flags", c_uint32),
        ("application", POINTER(ApplicationInfo)),
        ("layer_count", c_uint32),
        ("layers", POINTER(c_char_p)),
        ("extension_count", c_uint32),
        ("extensions", POINTER(c_char_p)),
    )


class QueueInfo(Structure):
    _fields_ = (
        ("type", c_uint32),
        ("next", c_void_p),
        ("flags", c_uint32),
        ("family", c_uint32),
        ("count", c_uint32),
        ("priorities", POINTER(c_float)),
    )


class DeviceInfo(Structure):
    _fields_ = (
        ("type", c_uint32),
        ("next", c_void_p),
        ("flags", c_uint32),
        ("queue_count", c_uint32),
        ("queues", POINTER(QueueInfo)),
        ("layer_count", c_uint32),
        ("layers", POINTER(c_char_p)),
        ("extension_count", c_uint32),
        ("extensions", POINTER(c_char_p)),
        ("features", POINTER(c_uint32 * _CORE_FEATURES)),
    )


class Features12(Structure):
    _fields_ = (("type", c_uint32), ("next", c_void_p), ("on", c_uint32 * _FEATURES_12))


class Family(Structure):
    _fields_ = (("flags", c_uint32), ("count", c_uint32), ("others", c_uint32 * 4))


class LayerProperties(Structure):
    _fields_ = (
        ("name", ctypes.c_char * 256),
        ("versions", c_uint32 * 2),
        ("description", ctypes.c_char * 256),
    )


class Properties(Structure):
    _fields_ = (
        ("numbers", c_uint32 * 5),  # API version, driver version, vendor, device, type
        ("name", ctypes.c_char * 256),
        ("rest", c_uint64 * 512),
    )


vk: Any = ctypes.CDLL(ctypes.util.find_library("vulkan") or "libvulkan.so.1")


def call(name: str, *arguments: Any) -> None:
    """Call a function that returns a VkResult."""
    function = getattr(vk, name)
    function.restype = ctypes.c_int32
    result = function(*arguments)
    assert result == 0, f"{name}: {result}"


def names(given: Sequence[bytes]) -> Any:
    return cast((c_char_p * len(given))(*given), POINTER(c_char_p))


class Foreign:
    """An instance and a device with one queue of their own; validated in debug mode, where that can be."""

    def __init__(
        self, features: Sequence[str] = REQUIRED, extensions: Sequence[str] = (), wanted: str = ""
    ) -> None:
        self.instance = make_instance()
        self.physical = choose(self.instance, wanted or os.environ.get("VKDISPATCH_DEVICE", ""))
        self.family = compute_family(self.physical)
        self.device = make_device(self.physical, self.family, features, extensions)
        self.queue = get_queue(self.device, self.family)

    @property
    def handles(self) -> dict[str, Any]:
        """What `vd.make_context_from_handles` takes."""
        return {
            "instance": self.instance,
            "physical_device": self.physical,
            "device": self.device,
            "queues": [(self.family, self.queue)],
        }

    def destroy(self) -> None:
        """Destroy the device, then the instance."""
        vk.vkDestroyDevice(self.device, None)
        vk.vkDestroyInstance(self.instance, None)


def has_validation() -> bool:
    """Whether the Khronos validation layer is installed."""
    count = c_uint32()
    call("vkEnumerateInstanceLayerProperties", byref(count), None)
    found = (LayerProperties * count.value)()
    call("vkEnumerateInstanceLayerProperties", byref(count), found)
    return VALIDATION in [layer.name for layer in found]


def make_instance() -> c_void_p:
    debug = os.environ.get("VKDISPATCH_DEBUG") == "1" and has_validation()
    application = ApplicationInfo(type=0, api_version=VULKAN_1_2)
    info = InstanceInfo(type=1, application=ctypes.pointer(application))
    if debug:
        info.layer_count, info.layers = 1, names([VALIDATION])
        info.extension_count, info.extensions = 1, names([DEBUG_UTILS])
    instance = c_void_p()
    call("vkCreateInstance", byref(info), None, byref(instance))
    return instance


def choose(instance: c_void_p, wanted: str) -> c_void_p:
    """Return the physical device of this index, or with this in its name; else the first."""
    count = c_uint32()
    call("vkEnumeratePhysicalDevices", instance, byref(count), None)
    found = (c_void_p * count.value)()
    call("vkEnumeratePhysicalDevices", instance, byref(count), found)
    if wanted.isdigit():
        return c_void_p(found[int(wanted)])
    fitting = [handle for handle in found if wanted.lower() in device_name(c_void_p(handle)).lower()]
    return c_void_p(fitting[0])


def device_name(physical: c_void_p) -> str:
    properties = Properties()
    vk.vkGetPhysicalDeviceProperties(physical, byref(properties))
    name: bytes = properties.name
    return name.decode()


def compute_family(physical: c_void_p) -> int:
    count = c_uint32()
    vk.vkGetPhysicalDeviceQueueFamilyProperties(physical, byref(count), None)
    families = (Family * count.value)()
    vk.vkGetPhysicalDeviceQueueFamilyProperties(physical, byref(count), families)
    return next(index for index, family in enumerate(families) if family.flags & COMPUTE)


def make_device(
    physical: c_void_p, family: int, features: Sequence[str], extensions: Sequence[str]
) -> c_void_p:
    core = (c_uint32 * _CORE_FEATURES)()
    newer = Features12(type=51)
    for name in features:
        if name in _CORE:
            core[_CORE[name]] = 1
        else:
            newer.on[_VULKAN_12[name]] = 1
    priorities = (c_float * 1)(1.0)
    queues = QueueInfo(type=2, family=family, count=1, priorities=cast(priorities, POINTER(c_float)))
    info = DeviceInfo(
        type=3,
        next=ctypes.addressof(newer),
        queue_count=1,
        queues=ctypes.pointer(queues),
        extension_count=len(extensions),
        extensions=names([name.encode() for name in extensions]),
        features=ctypes.pointer(core),
    )
    device = c_void_p()
    call("vkCreateDevice", physical, byref(info), None, byref(device))
    return device


def get_queue(device: c_void_p, family: int, index: int = 0) -> c_void_p:
    queue = c_void_p()
    vk.vkGetDeviceQueue(device, family, index, byref(queue))
    return queue
