"""Vulkan handles for other libraries, and engines on the handles of other libraries."""

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from vkdispatch.base.contexts.selection import check_extensions, parse_names
from vkdispatch.base.devices import DeviceInfo
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError
from vkdispatch.base.init import device_info, is_debug_enabled, is_staging_forced
from vkdispatch.base.native_module import native
from vkdispatch.base.record import record

# VK_API_VERSION_1_2: of the engine's own instance, and the minimum for another library's.
API_VERSION = 0x402000
_COMPUTE = 0x2
_INDEX_LIMIT = 1 << 16  # smaller numbers cannot be addresses
_HANDLE_LIMIT = 1 << 64


@record
class QueueHandle:
    """A queue: its family, its index in the family (None if it was passed by handle), and its VkQueue."""

    family: int
    index: int | None
    handle: int


@record
class DeviceHandles:
    """A VkPhysicalDevice and a VkDevice as ints, the queues in use, and the enabled extensions and features.

    `queues` are those of the context, in order. `transfer_queues` run concurrent copies, and can be empty.
    """

    physical_device: int
    device: int
    queues: tuple[QueueHandle, ...]
    transfer_queues: tuple[QueueHandle, ...]
    extensions: tuple[str, ...]
    features: frozenset[str]


@record
class ContextHandles:
    """The Vulkan objects of a context as ints: the instance, and the objects of each device.

    `api_version` is the Vulkan version in use, in Vulkan's packed form. The handles are valid until the
    context is closed; if another library owns the device, they are valid until that library destroys it.
    """

    instance: int
    devices: tuple[DeviceHandles, ...]
    api_version: int = API_VERSION


def get_handles(engine: native.Engine) -> ContextHandles:
    """Return the handles of an engine."""
    instance, devices = engine.handles
    return ContextHandles(
        instance,
        tuple(
            DeviceHandles(
                physical,
                device,
                tuple(QueueHandle(*queue) for queue in queues),
                tuple(QueueHandle(*queue) for twins in transfers for queue in twins),
                entry["extensions"],
                entry["features"],
            )
            for (physical, device, queues, transfers), entry in zip(
                devices, engine.device_properties, strict=True
            )
        ),
    )


def required_device_features() -> tuple[str, ...]:
    """Return the Vulkan names of the features that a device must be created with.

    Examples
    --------
    >>> vd.required_device_features()
    ('timelineSemaphore', 'scalarBlockLayout')
    """
    return tuple(name for name, required, _ in native.known_features() if required)


def optional_device_features() -> dict[str, str | None]:
    """Return the Vulkan names of the features that are used if they are enabled.

    Each name maps to the extension that it belongs to, which must be enabled as well, or to None if the
    feature is part of Vulkan 1.2.

    Examples
    --------
    >>> vd.optional_device_features()["shaderBufferFloat32Atomics"]
    'VK_EXT_shader_atomic_float'
    """
    return {name: extension for name, required, extension in native.known_features() if not required}


def as_handle(argument: str, value: object) -> int:
    """Return a Vulkan handle as an int.

    Parameters
    ----------
    argument
        The name of the value in messages.
    value
        An int, a pointer of ctypes or cffi (such as those of the package `vulkan`), or an object with
        `__int__`.

    Raises
    ------
    TypeError
        `value` is none of these.
    ValueError
        It is null or not an address.
    """
    number = _as_int(value)
    if number is None:
        raise ArgumentTypeError(
            f"{argument}: expected a Vulkan handle (an int, or a pointer of ctypes or cffi), got "
            f"{type(value).__name__}"
        )
    if number == 0:
        raise ArgumentValueError(f"{argument}: the handle is null")
    if not 0 < number < _HANDLE_LIMIT:
        raise ArgumentValueError(f"{argument}: {number} is not a Vulkan handle")
    return number


def _as_int(value: Any) -> int | None:
    if isinstance(value, (bool, str, bytes, float)) or value is None:
        return None
    # A program that has such pointers has loaded their module.
    ctypes: Any = sys.modules.get("ctypes")
    cffi: Any = sys.modules.get("_cffi_backend")
    if ctypes is not None and isinstance(value, (ctypes.c_void_p, ctypes._Pointer)):
        return ctypes.cast(value, ctypes.c_void_p).value or 0
    if cffi is not None and isinstance(value, cffi._CDataBase):
        try:
            return int(cffi.cast(cffi.new_primitive_type("uintptr_t"), value))
        except TypeError:
            return None
    try:
        return int(value)
    except (TypeError, ValueError):
        return None


def make_foreign_engine(
    instance: object,
    physical_device: object,
    device: object,
    queues: object,
    extensions: object,
    features: object,
    timeout_ns: int,
) -> native.Engine:
    """Return an engine on a device of another library. See `make_context_from_handles` for the errors."""
    objects = {"instance": instance, "physical_device": physical_device, "device": device}
    handles = {name: as_handle(name, value) for name, value in objects.items()}
    names = parse_names("extensions", extensions)
    enabled = parse_names("features", features)
    try:
        info = device_info(0, native.foreign_properties(handles["instance"], handles["physical_device"]))
        _check_enabled(info, names, enabled)
        checked_queues = _parse_queues(queues, info)
        _check_distinct(handles, checked_queues)
        return native.Engine.on_handles(
            handles["instance"],
            handles["physical_device"],
            handles["device"],
            checked_queues,
            names,
            enabled,
            is_debug_enabled(),
            is_staging_forced(),
            timeout_ns=timeout_ns,
        )
    except ArgumentValueError:
        raise
    except ValueError as error:
        raise ArgumentValueError(str(error)) from None


def _check_distinct(handles: dict[str, int], queues: Sequence[tuple[int, int, int]]) -> None:
    """Raise ValueError if one handle appears in two places."""
    owners: dict[int, str] = {}
    named = [
        *handles.items(),
        *(("queues", handle) for handle in {handle for *_, handle in queues if handle}),
    ]
    for name, handle in named:
        if handle in owners:
            raise ArgumentValueError(f"{name}: {handle} is the handle that was passed as {owners[handle]}")
        owners[handle] = name


def _check_enabled(info: DeviceInfo, extensions: Sequence[str], features: Sequence[str]) -> None:
    if info.missing:
        raise UnsupportedError(f"{info.device_name} cannot be used: it lacks {', '.join(info.missing)}")
    check_extensions(extensions, [info])
    known = {name: extension for name, _, extension in native.known_features()}
    for name in features:
        if name not in known:
            raise ArgumentValueError(
                f"features: {name!r} is not a feature that vkdispatch uses; see vd.optional_device_features()"
            )
        if name not in info.features:
            raise UnsupportedError(f"features: {info.device_name} has no {name}")
        extension = known[name]
        if extension is not None and extension not in extensions:
            raise ArgumentValueError(f"features: {name} belongs to {extension}, which is not in extensions")


def _parse_queues(queues: object, info: DeviceInfo) -> list[tuple[int, int, int]]:
    """Return family, index and handle of each queue. The handle is 0 for a queue that is given by index."""
    if isinstance(queues, (str, bytes)) or not isinstance(queues, Iterable):
        raise ArgumentTypeError(f"queues: expected a list of (family, queue), got {queues!r}")
    checked = []
    for item in queues:
        if isinstance(item, QueueHandle):
            family, queue = item.family, item.handle if item.index is None else item.index
        else:
            try:
                family, queue = item
            except (TypeError, ValueError):
                raise ArgumentTypeError(f"queues: expected pairs (family, queue), got {item!r}") from None
        checked.append(_parse_queue(family, queue, info))
    if not checked:
        raise ArgumentValueError("queues: at least one queue is needed, got none")
    return checked


def _parse_queue(family: Any, queue: Any, info: DeviceInfo) -> tuple[int, int, int]:
    families = info.queue_properties
    number = _as_int(family)
    if number is None or not 0 <= number < len(families):
        raise ArgumentValueError(
            f"queues: {info.device_name} has families 0 to {len(families) - 1}, got {family!r}"
        )
    count, flags = families[number]
    if not flags & _COMPUTE:
        raise ArgumentValueError(f"queues: family {number} of {info.device_name} does not support compute")
    index = _as_int(queue)
    if isinstance(queue, int) and index is not None and index < _INDEX_LIMIT:
        if not 0 <= index < count:
            raise ArgumentValueError(
                f"queues: family {number} of {info.device_name} has queues 0 to {count - 1}, got {index}"
            )
        return number, index, 0
    return number, 0, as_handle("queues", queue)
