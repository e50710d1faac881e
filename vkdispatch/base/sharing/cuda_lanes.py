"""What a device has for copies from and to other GPUs: two streams, and memory that CUDA has allocated."""

from typing import Any

from vkdispatch.base.sharing.cuda_streams import check_result

PART = 16 << 20  # bytes that a lane carries at a time


class Lane:
    """A stream, and the event of its last work."""

    __slots__ = ("event", "stream")

    def __init__(self, driver: Any) -> None:
        self.stream = check_result(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
        self.event = check_result(driver.cuEventCreate(driver.CUevent_flags.CU_EVENT_DISABLE_TIMING))


class Lanes:
    """Two lanes, for every second part: one carries a part while the other one waits for an event.

    Parts arrive in memory that CUDA has allocated, because copies between GPUs are ten times slower if both
    ends are imported memory. The device's context is CUDA's current one in all methods.
    """

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self._memory: int | None = None
        self.both = Lane(driver), Lane(driver)

    def find_memory(self) -> int:
        """Return the address of memory for a part on each lane."""
        if self._memory is None:
            self._memory = int(check_result(self._driver.cuMemAlloc(2 * PART)))
        return self._memory

    def release(self) -> None:
        """Free all, once the lanes' work is done."""
        for lane in self.both:
            self._driver.cuStreamSynchronize(lane.stream)
        for lane in self.both:
            self._driver.cuEventDestroy(lane.event)
            self._driver.cuStreamDestroy(lane.stream)
        if self._memory is not None:
            self._driver.cuMemFree(self._memory)
