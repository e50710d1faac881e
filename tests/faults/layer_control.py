"""The layer as this process sees it: what is to fail, what was called, what lives."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass

FOREVER = 0


@dataclass(frozen=True)
class Fault:
    """What is to fail.

    Attributes
    ----------
    function, result
        The Vulkan function, and the VkResult that it gives.
    n, times
        The first call that fails, counted from now from 1, and how many do; `FOREVER`: all from then on.
    sticky
        With VK_ERROR_DEVICE_LOST: the device stays lost, and every call that can say so does.
    settles
        With VK_ERROR_DEVICE_LOST: the device has stopped. Otherwise what it was given goes on.
    """

    function: str
    result: int
    n: int = 1
    times: int = 1
    sticky: bool = False
    settles: bool = False


class Layer:
    """The layer that is loaded in this process."""

    def __init__(self) -> None:
        # the same file that the loader takes: one copy in the process
        self._library = ctypes.CDLL(os.environ["VKDISPATCH_FAULT_LAYER"])
        self._library.fault_name.restype = ctypes.c_char_p
        self._library.fault_arm.restype = ctypes.c_bool
        self._library.fault_problems.restype = ctypes.c_size_t
        for name in ("fault_made", "fault_calls"):
            getattr(self._library, name).restype = ctypes.c_uint64
        self._library.fault_live.restype = ctypes.c_int64
        self.functions = self._names()

    def _names(self) -> list[str]:
        names: list[str] = []
        while name := self._library.fault_name(ctypes.c_size_t(len(names))):
            names.append(name.decode())
        return names

    def arm(self, fault: Fault) -> None:
        """Have calls fail from here on, and no others."""
        armed = self._library.fault_arm(
            fault.function.encode(),
            ctypes.c_uint64(fault.n),
            ctypes.c_int(fault.result),
            ctypes.c_uint64(fault.times),
            ctypes.c_bool(fault.sticky),
            ctypes.c_bool(fault.settles),
        )
        if not armed:
            raise ValueError(f"the layer cannot make {fault} happen")

    def disarm(self) -> None:
        """Have nothing fail any more; a device that is lost stays so."""
        self._library.fault_disarm()

    @property
    def made(self) -> int:
        """How many calls failed since `arm`."""
        return int(self._library.fault_made())

    def calls(self) -> dict[str, int]:
        """Return how often each function was called."""
        return {name: int(self._library.fault_calls(name.encode())) for name in self.functions}

    def live(self) -> dict[str, int]:
        """Return how many objects there are of those that each function makes."""
        found = {name: int(self._library.fault_live(name.encode())) for name in self.functions}
        return {name: count for name, count in found.items() if count}

    def problems(self) -> list[str]:
        """Return what was destroyed twice, or while the device used it, since the last call."""
        text = ctypes.create_string_buffer(1 << 16)
        size = self._library.fault_problems(text, ctypes.c_size_t(len(text)))
        return text.raw[:size].decode().splitlines()
