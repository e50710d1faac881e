"""Vulkan handles that go out to other libraries, or come in from them."""

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from vkdispatch.base.devices.information import DeviceInfo
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError
from vkdispatch.base.init import device_info
from vkdispatch.base.native_module import native
from vkdispatch.base.record import record

# VK_API_VERSION_1_2: what the engine's own instance is made for, and somebody else's has to be.
API_VERSION = 0x402000
_COMPUTE = 0x2
_MOST_INDEX = 1 << 16  # smaller numbers are no addresses
_MOST_HANDLE = 1 << 64


@record
class QueueHandle:
    """A queue: its family, its index in there (None where it was given by its handle), and the VkQueue."""

    family: int
    index: int | None
    handle: int


@record
class DeviceHandles:
    """A VkPhysicalDevice and VkDevice as ints, the queues that are used, and what is enabled.

    `queues` are those of the context, in order; `transfer_queues` those that copy beside them, if any.
    """

    physical_device: int
    device: int
    queues: tuple[QueueHandle, ...]
    transfer_queues: tuple[QueueHandle, ...]
    extensions: tuple[str, ...]
    features: frozenset[str]


@record
class ContextHandles:
    """The Vulkan objects of a context, as ints: `instance`, and of each device its own.

    `api_version` is the Vulkan version that they are used by, as Vulkan packs it. All are valid until the
    context is closed, and those of a context on somebody else's device for as long as their owner says.
    """

    instance: int
    devices: tuple[DeviceHandles, ...]
    api_version: int = API_VERSION


def handles_of(engine: native.Engine) -> ContextHandles:
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
    """Return Vulkan's names of the features that a device must have been created with."""
    return tuple(name for name, required, _ in native.known_features() if required)


def optional_device_features() -> dict[str, str | None]:
    """Return Vulkan's names of the features that are used where they are enabled.

    With each the extension that it belongs to, which has to be enabled as well; None: Vulkan 1.2 has it.
    """
    return {name: extension for name, required, extension in native.known_features() if not required}


def as_handle(argument: str, value: object) -> int:
    """Return a Vulkan handle as an int.

    Parameters
    ----------
    argument
        How messages call it.
    value
        An int, a pointer of ctypes or cffi (as the package `vulkan` has them), or what has `__int__`.

    Raises
    ------
    TypeError
        It is none of these.
    ValueError
        It is null, or no address.
    """
    number = _as_int(value)
    if number is None:
        raise ArgumentTypeError(
            f"{argument}: expected a Vulkan handle (an int, or a pointer of ctypes or cffi), got "
            f"{type(value).__name__}"
        )
    if number == 0:
        raise ArgumentValueError(f"{argument}: the handle is null")
    if not 0 < number < _MOST_HANDLE:
        raise ArgumentValueError(f"{argument}: {number} is not a Vulkan handle")
    return number


def _as_int(value: Any) -> int | None:
    if isinstance(value, (bool, str, bytes, float)) or value is None:
        return None
    # Loaded by whoever has such pointers.
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


def foreign_engine(
    instance: object,
    physical_device: object,
    device: object,
    queues: object,
    extensions: object,
    features: object,
    *,
    debug: bool,
    force_staging: bool,
    timeout_ns: int,
) -> native.Engine:
    """Return an engine on somebody else's device; see `Context.from_handles` for arguments and errors."""
    instance_handle = as_handle("instance", instance)
    physical_handle = as_handle("physical_device", physical_device)
    device_handle = as_handle("device", device)
    names = parse_names("extensions", extensions)
    used = parse_names("features", features)
    try:
        info = device_info(0, native.foreign_properties(instance_handle, physical_handle))
        _check_offered(info, names, used)
        checked_queues = _parse_queues(queues, info)
        _check_distinct(instance_handle, physical_handle, device_handle, checked_queues)
        return native.Engine.on_handles(
            instance_handle,
            physical_handle,
            device_handle,
            checked_queues,
            names,
            used,
            debug,
            force_staging,
            timeout_ns=timeout_ns,
        )
    except ArgumentValueError:
        raise
    except ValueError as error:
        raise ArgumentValueError(str(error)) from None


def _check_distinct(
    instance: int, physical: int, device: int, queues: Sequence[tuple[int, int, int]]
) -> None:
    """Raise ValueError where one handle was given in two places."""
    names = {instance: "instance"}
    given = [("physical_device", physical), ("device", device)]
    for name, handle in given + [
        ("queues", handle) for handle in {handle for _, _, handle in queues if handle}
    ]:
        if handle in names:
            raise ArgumentValueError(f"{name}: {handle} is the handle that was given as {names[handle]}")
        names[handle] = name


def parse_names(argument: str, given: object) -> list[str]:
    """Return names, each once.

    Raises
    ------
    TypeError
        It is no iterable of strings.
    """
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise ArgumentTypeError(f"{argument}: expected names, as a list of str, got {given!r}")
    names = list(dict.fromkeys(given))
    for name in names:
        if not isinstance(name, str):
            raise ArgumentTypeError(f"{argument}: expected names, got {name!r}")
    return names


def check_extensions(names: Sequence[str], devices: Iterable[DeviceInfo]) -> None:
    """Raise UnsupportedError where a device lacks one of these extensions."""
    for info in devices:
        missing = [name for name in names if name not in info.extensions]
        if missing:
            raise UnsupportedError(f"extensions: {info.device_name} has no {', '.join(missing)}")


def _check_offered(info: DeviceInfo, extensions: Sequence[str], features: Sequence[str]) -> None:
    if info.missing:
        raise UnsupportedError(f"{info.device_name} cannot be used: it lacks {', '.join(info.missing)}")
    check_extensions(extensions, [info])
    belongs = {name: extension for name, _, extension in native.known_features()}
    for name in features:
        if name not in belongs:
            raise ArgumentValueError(
                f"features: {name!r} is none that vkdispatch uses; see vd.optional_device_features()"
            )
        if name not in info.features:
            raise UnsupportedError(f"features: {info.device_name} has no {name}")
        extension = belongs[name]
        if extension is not None and extension not in extensions:
            raise ArgumentValueError(f"features: {name} belongs to {extension}, which is not in extensions")


def _parse_queues(queues: object, info: DeviceInfo) -> list[tuple[int, int, int]]:
    """Return family, index and handle of each queue, the handle 0 where the index is given."""
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
        raise ArgumentValueError("queues: at least one is needed, got none")
    return checked


def _parse_queue(family: Any, queue: Any, info: DeviceInfo) -> tuple[int, int, int]:
    families = info.queue_properties
    number = _as_int(family)
    if number is None or not 0 <= number < len(families):
        raise ArgumentValueError(
            f"queues: {info.device_name} has the families 0 to {len(families) - 1}, got {family!r}"
        )
    count, flags = families[number]
    if not flags & _COMPUTE:
        raise ArgumentValueError(f"queues: family {number} of {info.device_name} cannot compute")
    index = _as_int(queue)
    if isinstance(queue, int) and index is not None and index < _MOST_INDEX:
        if not 0 <= index < count:
            raise ArgumentValueError(
                f"queues: family {number} of {info.device_name} has the queues 0 to {count - 1}, got {index}"
            )
        return number, index, 0
    return number, 0, as_handle("queues", queue)
