"""Our memory in DLPack capsules."""

from collections.abc import Callable
from typing import Any

from vkdispatch.base.context import Context
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, SharingError
from vkdispatch.base.integers import as_int
from vkdispatch.base.native_module import native
from vkdispatch.base.record import record, replace
from vkdispatch.base.sharing.cuda import CUDA, can_link, find_link
from vkdispatch.base.sharing.cuda_streams import parse_dlpack_stream
from vkdispatch.base.sharing.formats import dlpack_format
from vkdispatch.base.sharing.journal import note, start_clock

# DLPack's numbers of devices, and its flags.
CPU = 1
HOST = (CPU, 0)
READ_ONLY, IS_COPY = 1, 2
Place = tuple[int, int]


@record(eq=False)
class Elements:
    """Elements in memory, as DLPack describes them.

    Attributes
    ----------
    owner
        What keeps the memory. Consumers release it, from any thread.
    address
        Of the first element, on the device.
    device
        DLPack's device type and number.
    kind
        A scalar or complex dtype.
    shape, strides
        Lengths of the axes, and how far apart neighbours along them are, in elements.
    flags
        `READ_ONLY`, `IS_COPY`.
    stream
        The CUDA stream in whose order the elements are what they are; None on other devices.
    """

    owner: Any
    address: int
    device: Place
    kind: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    flags: int = 0
    stream: int | None = None


def make_capsule(elements: Elements, max_version: tuple[int, int] | None) -> Any:
    """Return a DLPack capsule, of the newest version that its consumer knows.

    Raises SharingError if the elements are read-only and the consumer does not know of that.
    """
    is_versioned = max_version is not None and max_version[0] >= 1
    if elements.flags & READ_ONLY and not is_versioned:
        raise SharingError(
            "the elements are read-only, which DLPack 0.x cannot express; share a copy, or pass "
            "max_version=(1, 0)"
        )
    return native.make_dlpack(
        elements.owner,
        elements.address,
        elements.device,
        dlpack_format(elements.kind),
        elements.shape,
        elements.strides,
        versioned=is_versioned,
        flags=elements.flags,
    )


@record(eq=False)
class Request:
    """What a consumer asks of `__dlpack__`."""

    stream: Any
    max_version: tuple[int, int] | None
    device: Place | None
    copy: bool | None


def parse_request(stream: Any, max_version: Any, dl_device: Any, copy: Any) -> Request:
    """Return the arguments of `__dlpack__`, checked. Raises TypeError or ValueError."""
    if copy not in (None, False, True):
        raise ArgumentTypeError(f"copy: expected None, False or True, got {copy!r}")
    return Request(stream, _parse_pair("max_version", max_version), _parse_pair("dl_device", dl_device), copy)


def _parse_pair(name: str, value: Any) -> tuple[int, int] | None:
    if value is None:
        return None
    try:
        # device types may be members of an enumeration
        first, second = (as_int(getattr(each, "value", each)) for each in value)
    except (TypeError, ValueError):
        first = second = None
    if first is None or second is None:
        raise ArgumentTypeError(f"{name}: expected None or a tuple of two ints, got {value!r}")
    return first, second


def has_host_memory(context: Context) -> bool:
    """Whether buffers of a context lie in memory of the host, one for all queues."""
    return context.queue_count == 1 and context._native.host_mapped


def place_of(context: Context, instead: str) -> Place:
    """Return the DLPack device of a context's memory; see `__dlpack_device__`.

    Raises SharingError, which says to call `instead`, if other libraries cannot use the memory.
    """
    if has_host_memory(context):
        return HOST
    if can_link(context):
        return CUDA, find_link(context).ordinal
    if context.queue_count > 1:
        raise SharingError(
            f"each of the {context.queue_count} queues has a copy of the memory, and other libraries can "
            f"share only one; copy to the host with {instead}"
        )
    raise SharingError(
        f"other libraries cannot use memory of {context._devices} in place; copy to the host with {instead}"
    )


def export(
    request: Request,
    place: Callable[[], Place],
    lend: Callable[[], Elements],
    copy: Callable[[], Elements],
    lend_copy: Callable[[], Elements],
) -> Any:
    """Return the capsule that a consumer asks for.

    Parameters
    ----------
    place
        Returns the device of the memory, or raises SharingError.
    lend
        Returns the elements in place.
    copy
        Returns a copy of the elements on the host.
    lend_copy
        Returns a copy of the elements on their device.

    Raises
    ------
    SharingError
        The memory cannot be shared as the consumer asks.
    ValueError
        A stream is given for memory of the host.
    """
    may_copy_to_host = request.device == HOST and request.copy is not False
    try:
        device = place()
    except SharingError:
        if not may_copy_to_host:
            raise
        return make_capsule(copy(), request.max_version)
    if request.device not in (None, device) and not may_copy_to_host:
        raise SharingError(
            f"dl_device: the memory is on the DLPack device {device}, and cannot be shared as memory of "
            f"{request.device}"
        )
    if device == HOST and request.stream is not None:
        raise ArgumentValueError(
            f"stream: memory of the host has no streams; expected None, got {request.stream!r}"
        )
    if request.device not in (None, device) or (request.copy and device == HOST):
        return make_capsule(copy(), request.max_version)
    if request.copy:
        elements = lend_copy()
        return make_capsule(replace(elements, flags=elements.flags | IS_COPY), request.max_version)
    return make_capsule(lend(), request.max_version)


def lend_host_memory(
    context: Context, memory: native.Buffer, kind: DType, shape: tuple[int, ...], ordered: bool = True
) -> Elements:
    """Return the elements of a buffer in C order, in memory of the host.

    All work that uses the buffer is finished. While anyone holds the memory, calls that use the buffer return
    when the device is done, unless `ordered` is false.

    Raises
    ------
    SharingError
        The buffer does not lie in memory of the host.
    """
    begin = start_clock()
    loan = memory.lend(0, ordered)
    if loan is None:
        raise SharingError("the buffer is not in host memory; copy it with buf.read(0)")
    note("lend", context, begin)
    if context.borrowed:
        context.loans.add(loan)
    flags = READ_ONLY if memory.read_only else 0
    return Elements(loan, loan.address, HOST, kind, shape, native.c_strides(shape), flags)


def lend_memory(
    context: Context, memory: native.Buffer, kind: DType, shape: tuple[int, ...], stream: Any
) -> Elements:
    """Return the elements of a buffer in C order, where the consumer of a DLPack capsule may use them.

    `stream` is the consumer's, if CUDA maps the memory: its later work waits for ours up to now. Memory of
    the host is lent as by `lend_host_memory`.

    Raises
    ------
    SharingError
        Other libraries cannot use the memory in place.
    """
    if has_host_memory(context):
        return lend_host_memory(context, memory, kind, shape)
    begin = start_clock()
    link = find_link(context)
    handle = parse_dlpack_stream(stream)
    if handle is not None:
        link.check_stream(handle, "stream")
    loan = link.lend(memory, handle)
    note("lend", context, begin)
    flags = READ_ONLY if memory.read_only else 0
    return Elements(loan, loan.address, (CUDA, link.ordinal), kind, shape, native.c_strides(shape), flags)
