"""Which contexts CUDA knows, and their links."""

import weakref
from _thread import RLock

from vkdispatch.base.context import Context
from vkdispatch.base.errors import SharingError
from vkdispatch.base.sharing.cuda_link import CudaLink

CUDA, MANAGED = 2, 13  # DLPack's numbers
_NVIDIA = 0x10DE

_links: "weakref.WeakKeyDictionary[Context, CudaLink]" = weakref.WeakKeyDictionary()
_lock = RLock()  # the garbage collector may run anything while a link is made


def can_link(context: Context) -> bool:
    """Whether CUDA may know the device of a context."""
    return (
        context.queue_count == 1
        and context._native.exports
        and context.device_infos[0].vendor_id == _NVIDIA
        and context.device_infos[0].uuid is not None
    )


def find_link(context: Context) -> CudaLink:
    """Return the link of a context and CUDA, which the first call makes.

    Raises
    ------
    SharingError
        CUDA cannot share the device's memory, or the package cuda-bindings is missing.
    """
    with _lock:
        link = _links.get(context)
        if link is None:
            if not can_link(context):
                raise SharingError(f"CUDA cannot share memory of {context._devices}")
            link = _links[context] = CudaLink(context)
        return link


def end_visits(context: Context) -> None:
    """Let the CUDA streams whose arrays were arguments of a call wait for its work."""
    link = _links.get(context) if _links else None
    if link is not None:
        link.dismiss_visitors()
