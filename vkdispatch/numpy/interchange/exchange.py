"""Arrays to and from other libraries, by DLPack and by NumPy's protocols."""

from typing import Any

import numpy as np

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.numpy.basics.inputs import asnumpy
from vkdispatch.numpy.core.array import Array, view_of
from vkdispatch.numpy.core.conversion import asarray, from_numpy
from vkdispatch.numpy.core.devices import parse_device
from vkdispatch.numpy.core.kernels import as_buffer, gather

__all__ = [
    "asbuffer",
    "asnumpy",
    "from_dlpack",
    "to_device",
]

_CPU = (1, 0)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """Return an array with the values of an object that has `__dlpack__`. See `numpy.from_dlpack`.

    Memory of the host is copied to the device, so `copy=False` raises ValueError unless `x` is an Array.
    """
    if isinstance(x, Array):
        return asarray(x, device=device, copy=copy)
    if copy is False:
        raise ArgumentValueError("copy: False was given, but data of the host are copied to the device")
    return from_numpy(np.from_dlpack(x), device)


def to_dlpack(x: Array, options: dict[str, Any]) -> Any:
    """Return a DLPack capsule of the values, copied to the host."""
    if options.get("copy") is False:
        raise BufferError("copy: False was given, but values on the host are a copy of the device's")
    wanted = options.get("dl_device")
    if wanted is not None and tuple(wanted) != _CPU:
        raise BufferError(f"dl_device: only the host's memory, {_CPU}, is exported, got {wanted}")
    version = options.get("max_version")
    data = np.array(x.numpy())
    return data.__dlpack__() if version is None else data.__dlpack__(max_version=version)


def dlpack_device(x: Array) -> tuple[int, int]:
    """Return the device of `to_dlpack`: the host."""
    return _CPU


def to_device(x: Array, device: Any, /, *, stream: Any = None) -> Array:
    """Return an array on a device: itself if it is there, else a copy by way of the host.

    Raises ValueError for a stream: there are none.
    """
    if stream is not None:
        raise ArgumentValueError(f"stream: expected None, got {stream!r}")
    place = parse_device(device)
    return x if x.device == place else from_numpy(x.numpy(), place)


def asbuffer(x: Array) -> Buffer[Any]:
    """Return the memory of an array as a `vd.Buffer`; arrays of more than three axes have one axis there.

    The buffer and the array share their memory if the elements lie one behind the other, and are
    not read-only; else it is a copy.
    """
    view = view_of(x)
    if not view.is_whole or view.storage.is_read_only:
        view = gather(view)
    view.storage.share()
    return as_buffer(view, view.shape if len(view.shape) <= 3 else (view.size,))
