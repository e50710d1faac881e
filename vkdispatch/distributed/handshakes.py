"""What processes of one machine share: each says so in the handshakes of `distributed`.

A process says in the handshake of each connection whether it deserializes what it gets, and names an
anonymous file of its own. A peer that can open that file is one that it can share memory with, in both
directions. It also says whether CUDA shares the memory of its device.
"""

import functools
import os
import secrets
from collections.abc import Mapping
from typing import Any

import dask

from vkdispatch.base.contexts.current import find_current_context
from vkdispatch.base.errors import SharingError
from vkdispatch.base.sharing.cuda_link import can_link, load_driver
from vkdispatch.distributed.loading import wrap

KEY = "vkdispatch-memory"


@functools.cache
def _own_mark(pid: int) -> dict[str, Any] | None:
    """Return what shows peers whether they can open files of this process: a file with a secret."""
    if not (hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd")):
        return None
    secret = secrets.token_bytes(16)
    try:
        descriptor = os.memfd_create("vkdispatch-mark", os.MFD_CLOEXEC)
        os.write(descriptor, secret)
    except OSError:
        return None
    return {"pid": pid, "file": descriptor, "secret": secret.hex()}


def _has_cuda() -> bool:
    """Whether this process computes on a device whose memory CUDA shares."""
    context = find_current_context()
    if context is None or not context.usable or not can_link(context):
        return False
    try:
        load_driver()
    except SharingError:
        return False
    return True


def watch_handshakes() -> None:
    """Have the connections of `distributed` in this process say what memory frames may lie in."""
    from distributed.comm.core import Comm

    @wrap(Comm, "handshake_info")
    def handshake_info(inform: Any, comm: Any) -> dict[str, Any]:
        info: dict[str, Any] = inform(comm)
        # whoever passes messages on may do so to other machines
        if getattr(comm, "deserialize", False) and comm.same_host:
            mark = _own_mark(os.getpid())
            if mark is not None and dask.config.get("vkdispatch.shared-memory", True):
                info[KEY] = {**mark, "cuda": _has_cuda()}
        return info


def can_share(context: Mapping[str, Any] | None) -> bool:
    """Whether the recipient of a message can open files of this process.

    Parameters
    ----------
    context
        What `distributed` says of the message: its sender and its recipient, as in their handshakes.
    """
    own, other = _marks_of(context)
    return bool(own and other) and _can_open(other["pid"], other["file"], other["secret"])


def find_cuda_recipient(context: Mapping[str, Any] | None) -> str | None:
    """Return a name of the recipient of a message if CUDA may share this process's memory with it."""
    _, other = _marks_of(context)
    return str(other["secret"]) if can_share(context) and other.get("cuda") else None


def _marks_of(context: Mapping[str, Any] | None) -> tuple[dict[str, Any], dict[str, Any]]:
    context = context or {}
    own, other = (context.get(side, {}).get(KEY) or {} for side in ("sender", "recipient"))
    return own, other


@functools.lru_cache(256)
def _can_open(pid: int, descriptor: int, secret: str) -> bool:
    """Whether this process can open a file of another process. If so, the reverse holds too."""
    try:
        if os.stat(f"/proc/{pid}").st_uid != os.geteuid():
            return False
        with open(f"/proc/{pid}/fd/{descriptor}", "rb", buffering=0) as file:
            return file.read(16).hex() == secret
    except OSError:
        return False
