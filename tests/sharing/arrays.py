"""Arrays and kernels for the tests of shared memory."""

from __future__ import annotations

from typing import Any

import numpy as np

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, f32

Array = np.ndarray[Any, Any]


@vd.shader("x.size")
def double(x: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    x[i] = x[i] * 2


@vd.shader("x.size")
def add(x: Buff[f32], y: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    x[i] = x[i] + y[i]


def address(array: Any) -> int:
    """Return where the first element of a NumPy array lies."""
    return int(array.__array_interface__["data"][0])


def aligned(data: Any) -> Array:
    """Return a copy of an array at an address that every device can bind."""
    data = np.asarray(data)
    octets = np.empty(data.nbytes + 256, np.uint8)
    start = -address(octets) % 256
    copy: Array = octets[start : start + data.nbytes].view(data.dtype).reshape(data.shape)
    copy[...] = data
    return copy


class Versionless:
    """An array of a library that knows DLPack without versions, devices and copies."""

    def __init__(self, data: Array) -> None:
        self.data = data

    def __dlpack__(self, *, stream: Any = None) -> Any:
        return self.data.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)
