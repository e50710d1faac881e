"""Copies by CUDA between the memory of two contexts, which may be on two GPUs."""

from typing import Any

from vkdispatch.base.native_module import native
from vkdispatch.base.sharing.cuda_landing import PART, Landing
from vkdispatch.base.sharing.cuda_link import CudaLink
from vkdispatch.base.sharing.cuda_streams import LEGACY_STREAM, check_result, load_driver


def copy_between_links(
    target: CudaLink, target_memory: native.Buffer, source: CudaLink, source_memory: native.Buffer, size: int
) -> None:
    """Copy bytes to a buffer of another context, in the order of both contexts' work.

    The copy comes after all work up to now, and before all later work. The host waits for nothing.

    Raises
    ------
    SharingError
        CUDA cannot map the memory.
    """
    driver = load_driver()
    # two threads that copy in opposite directions take the locks in one order
    first, second = sorted((source, target), key=id)
    with first.hold(), second.hold():
        addresses = target.blocks.map(target_memory), source.blocks.map(source_memory)
        landing = _find_landing(driver, target, source)
        source.give(LEGACY_STREAM)
        target.give(LEGACY_STREAM)
        if landing is None:
            _copy(driver, target, addresses[0], source, addresses[1], size)
        else:
            _copy_in_parts(driver, landing, target, addresses[0], source, addresses[1], size)
        target.take(LEGACY_STREAM)
        source.take(LEGACY_STREAM)


def _copy(driver: Any, target: CudaLink, to: int, source: CudaLink, start: int, size: int) -> None:
    """Copy in one piece; a stream of each device waits for the other one's."""
    stream = driver.CUstream(LEGACY_STREAM)
    with source.enter():
        check_result(driver.cuEventRecord(source.event, stream))
    with target.enter():
        check_result(driver.cuStreamWaitEvent(stream, source.event, 0))
        check_result(driver.cuMemcpyPeerAsync(to, target.primary, start, source.primary, size, stream))
        check_result(driver.cuEventRecord(target.event, stream))
    with source.enter():
        check_result(driver.cuStreamWaitEvent(stream, target.event, 0))


def _copy_in_parts(
    driver: Any, landing: Landing, target: CudaLink, to: int, source: CudaLink, start: int, size: int
) -> None:
    """Send parts to memory of CUDA's own on the target, which copies one while the next one arrives."""
    stream = driver.CUstream(LEGACY_STREAM)
    for number, first in enumerate(range(0, size, PART)):
        part, emptied = landing.parts[number % 2], landing.emptied[number % 2]
        count = min(PART, size - first)
        with source.enter():
            check_result(driver.cuStreamWaitEvent(stream, emptied, 0))
            check_result(
                driver.cuMemcpyPeerAsync(part, target.primary, start + first, source.primary, count, stream)
            )
            check_result(driver.cuEventRecord(source.event, stream))
        with target.enter():
            check_result(driver.cuStreamWaitEvent(stream, source.event, 0))
            check_result(driver.cuMemcpyDtoDAsync(to + first, part, count, stream))
            check_result(driver.cuEventRecord(emptied, stream))


def _find_landing(driver: Any, target: CudaLink, source: CudaLink) -> Landing | None:
    """Return memory for copies from another device's; None if that cannot be accessed, or is the same."""
    if target.ordinal == source.ordinal or not _open_peers(driver, source, target):
        return None
    if target.landing is None:
        with target.enter():
            target.landing = Landing(driver)
    return target.landing


def _open_peers(driver: Any, link: CudaLink, other: CudaLink) -> bool:
    """Let a device access another one's memory. Return whether it does."""
    if other not in link.peers:
        if not check_result(driver.cuDeviceCanAccessPeer(link.device, other.device)):
            return False
        with link.enter():
            result = driver.cuCtxEnablePeerAccess(other.primary, 0)
        if result[0] != driver.CUresult.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED:
            check_result(result)
        link.peers.add(other)
    return True
