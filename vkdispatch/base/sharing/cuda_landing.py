"""Memory of CUDA's own on a device, through which copies from other GPUs arrive."""

from typing import Any

from vkdispatch.base.sharing.cuda_streams import check_result

PART = 16 << 20  # bytes that are on their way at a time


class Landing:
    """Two parts of memory, in turn: one is filled by another GPU while this one empties the other.

    CUDA copies between GPUs ten times faster if one end is memory that it has allocated, not imported.

    Attributes
    ----------
    parts
        The addresses of the parts.
    emptied
        For each part, the event of the last copy out of it.
    """

    __slots__ = ("_driver", "emptied", "parts")

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        first = int(check_result(driver.cuMemAlloc(2 * PART)))
        self.parts = first, first + PART
        flags = driver.CUevent_flags.CU_EVENT_DISABLE_TIMING
        self.emptied = tuple(check_result(driver.cuEventCreate(flags)) for _ in self.parts)

    def release(self) -> None:
        """Free the memory. The device's context is CUDA's current one."""
        for event in self.emptied:
            self._driver.cuEventDestroy(event)
        self._driver.cuMemFree(self.parts[0])
