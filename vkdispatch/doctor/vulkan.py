"""The Vulkan loader and its devices, asked through ctypes: without the engine, which may be what is broken.

A broken driver may crash the process that calls these functions: `child` does.
"""

import ctypes
import os
import sys
from typing import Any

# An instance is made for this version, as by the engine: VK_API_VERSION_1_2.
_API_VERSION = 0x402000
_PORTABILITY = b"VK_KHR_portability_enumeration"
_MAX_HEAPS = 16
_DEVICE_LOCAL = 1
_LIBRARIES = {
    "win32": ("vulkan-1.dll",),
    "darwin": ("libvulkan.1.dylib", "libvulkan.dylib", "libMoltenVK.dylib"),
}
_RESULTS = {
    -1: "VK_ERROR_OUT_OF_HOST_MEMORY",
    -2: "VK_ERROR_OUT_OF_DEVICE_MEMORY",
    -3: "VK_ERROR_INITIALIZATION_FAILED",
    -6: "VK_ERROR_LAYER_NOT_PRESENT",
    -7: "VK_ERROR_EXTENSION_NOT_PRESENT",
    -9: "VK_ERROR_INCOMPATIBLE_DRIVER",
}
# VkStructureType
_INSTANCE_INFO = 1
_PROPERTIES, _DRIVER_PROPERTIES = 1000059001, 1000196000
_MEMORY_PROPERTIES, _MEMORY_BUDGET = 1000059006, 1000237000


_WORD, _POINTER, _TEXT, _NAME = ctypes.c_uint32, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char * 256


def _structure(**members: Any) -> Any:
    """Return a structure of C, with the types of its members by name."""
    return type("_Structure", (ctypes.Structure,), {"_fields_": tuple(members.items())})


_Layer = _structure(name=_NAME, api_version=_WORD, version=_WORD, description=_NAME)
_Extension = _structure(name=_NAME, version=_WORD)
_Application = _structure(
    type=_WORD, next=_POINTER, name=_TEXT, version=_WORD, engine=_TEXT, engine_version=_WORD, api=_WORD
)
_InstanceInfo = _structure(
    type=_WORD,
    next=_POINTER,
    flags=_WORD,
    application=ctypes.POINTER(_Application),
    layer_count=_WORD,
    layers=_POINTER,
    extension_count=_WORD,
    extensions=ctypes.POINTER(_TEXT),
)
_Driver = _structure(
    type=_WORD, next=_POINTER, id=_WORD, name=_NAME, info=_NAME, conformance=ctypes.c_uint8 * 4
)
# VkPhysicalDeviceProperties has 824 bytes, which begin with the members below.
_Device = _structure(type=_WORD, next=_POINTER, properties=ctypes.c_uint64 * 256)
_Properties = _structure(
    api_version=_WORD, driver_version=_WORD, vendor=_WORD, device=_WORD, kind=_WORD, name=_NAME
)
_Heap = _structure(size=ctypes.c_uint64, flags=_WORD)
_Memory = _structure(
    type=_WORD, next=_POINTER, type_count=_WORD, types=_WORD * 64, heap_count=_WORD, heaps=_Heap * _MAX_HEAPS
)
_Heaps = ctypes.c_uint64 * _MAX_HEAPS
_Budget = _structure(type=_WORD, next=_POINTER, budget=_Heaps, usage=_Heaps)


class LoaderError(Exception):
    """There is no Vulkan loader, or it fails."""


def open_loader() -> ctypes.CDLL:
    """Load the system's Vulkan loader. Raises LoaderError."""
    reason = ""
    for name in _LIBRARIES.get(sys.platform, ("libvulkan.so.1", "libvulkan.so")):
        try:
            library = ctypes.CDLL(name)
        except OSError as error:
            reason = reason or str(error)
            continue
        if not hasattr(library, "vkGetInstanceProcAddr"):
            raise LoaderError(f"{find_path(library)} is not a Vulkan loader: it lacks vkGetInstanceProcAddr")
        return library
    raise LoaderError(f"no Vulkan loader could be loaded ({reason})")


def find_path(library: ctypes.CDLL) -> str:
    """Return the file of a loaded library, or its name where that is unknown."""
    name = os.path.basename(library._name)
    try:
        with open("/proc/self/maps") as file:
            paths = {line.split(None, 5)[5].strip() for line in file if "/" in line}
    except OSError:
        return library._name
    stem = name.partition(".so")[0]
    return next((path for path in sorted(paths) if os.path.basename(path).startswith(stem)), library._name)


def describe_loader(library: ctypes.CDLL) -> dict[str, Any]:
    """Return the path of the loader, its version of Vulkan, and the layers that are installed."""
    version = ctypes.c_uint32(0x400000)
    ask = getattr(library, "vkEnumerateInstanceVersion", None)  # not in Vulkan 1.0
    if ask is not None:
        ask(ctypes.byref(version))
    layers = _list(library.vkEnumerateInstanceLayerProperties, _Layer)
    return {
        "path": find_path(library),
        "version": format_version(version.value),
        "layers": sorted(layer.name.decode("utf-8", "replace") for layer in layers),
    }


def list_devices(library: ctypes.CDLL) -> list[dict[str, Any]]:
    """Return the name, driver and memory of each device, in the loader's order. Raises LoaderError."""
    instance = _make_instance(library)
    try:
        devices = _list(library.vkEnumeratePhysicalDevices, ctypes.c_void_p, instance)
        describe = _function(library, instance, "vkGetPhysicalDeviceProperties2")
        measure = _function(library, instance, "vkGetPhysicalDeviceMemoryProperties2")
        return [_describe(ctypes.c_void_p(device), describe, measure) for device in devices]
    finally:
        destroy = library.vkDestroyInstance
        destroy.restype = None
        destroy(instance, None)


def format_version(version: int) -> str:
    """Return a packed version of Vulkan as text."""
    return f"{version >> 22 & 0x7F}.{version >> 12 & 0x3FF}.{version & 0xFFF}"


def _make_instance(library: ctypes.CDLL) -> ctypes.c_void_p:
    application = _Application(api=_API_VERSION)
    info = _InstanceInfo(type=_INSTANCE_INFO, application=ctypes.pointer(application))
    extensions = _list(library.vkEnumerateInstanceExtensionProperties, _Extension, None)
    if any(extension.name == _PORTABILITY for extension in extensions):  # without it macOS shows no device
        info.flags, info.extension_count = 1, 1
        info.extensions = (ctypes.c_char_p * 1)(_PORTABILITY)
    instance = ctypes.c_void_p()
    _check("vkCreateInstance", library.vkCreateInstance(ctypes.byref(info), None, ctypes.byref(instance)))
    return instance


def _describe(device: ctypes.c_void_p, describe: Any, measure: Any) -> dict[str, Any]:
    driver = _Driver(type=_DRIVER_PROPERTIES)
    answer = _Device(type=_PROPERTIES, next=ctypes.addressof(driver))
    describe(device, ctypes.byref(answer))
    properties = _Properties.from_buffer(answer, _Device.properties.offset)
    budget = _Budget(type=_MEMORY_BUDGET)
    memory = _Memory(type=_MEMORY_PROPERTIES, next=ctypes.addressof(budget))
    measure(device, ctypes.byref(memory))
    heaps = [
        {
            "size": heap.size,
            "device_local": bool(heap.flags & _DEVICE_LOCAL),
            # zeros where the driver lacks VK_EXT_memory_budget
            "free": max(0, budget.budget[index] - budget.usage[index]) if budget.budget[index] else None,
        }
        for index, heap in enumerate(memory.heaps[: memory.heap_count])
    ]
    return {
        "name": properties.name.decode("utf-8", "replace"),
        "vendor": properties.vendor,
        "api_version": format_version(properties.api_version),
        "driver": b" ".join(filter(None, (driver.name, driver.info))).decode("utf-8", "replace"),
        "heaps": heaps,
    }


def _function(library: ctypes.CDLL, instance: ctypes.c_void_p, name: str) -> Any:
    get = library.vkGetInstanceProcAddr
    get.restype = ctypes.c_void_p
    address = get(instance, name.encode())
    if not address:
        raise LoaderError(f"the loader lacks {name}")
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(address)


def _list(function: Any, kind: Any, *arguments: Any) -> list[Any]:
    """Return what a function of Vulkan lists that is called twice: for the count, then for the items."""
    count = ctypes.c_uint32()
    _check(function.__name__, function(*arguments, ctypes.byref(count), None))
    items = (kind * count.value)()
    _check(function.__name__, function(*arguments, ctypes.byref(count), items))
    return list(items)[: count.value]


def _check(name: str, result: int) -> None:
    if result < 0:
        raise LoaderError(f"{name} failed: {_RESULTS.get(result, f'VkResult {result}')}")
