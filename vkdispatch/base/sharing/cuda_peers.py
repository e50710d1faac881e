"""Copies by CUDA between the memory of two contexts, which may be on two GPUs."""

from typing import Any

from vkdispatch.base.native_module import native
from vkdispatch.base.sharing.cuda_lanes import PART, Lanes
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
        in_parts = target.ordinal != source.ordinal and _open_peers(driver, source, target)
        copy = _copy_in_parts if in_parts else _copy
        source.give(LEGACY_STREAM)
        target.give(LEGACY_STREAM)
        copy(driver, target, addresses[0], source, addresses[1], size)
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


def _copy_in_parts(driver: Any, target: CudaLink, to: int, source: CudaLink, start: int, size: int) -> None:
    """Send parts to memory of the target's lanes, which copy one while the next one arrives."""
    senders, receivers = _fork(driver, source), _fork(driver, target)
    with target.enter():
        memory = receivers.find_memory()
    for number, first in enumerate(range(0, size, PART)):
        lane = number % 2
        sender, receiver, part = senders.both[lane], receivers.both[lane], memory + lane * PART
        count = min(PART, size - first)
        # streams and events know their contexts
        check_result(driver.cuStreamWaitEvent(sender.stream, receiver.event, 0))  # the part is empty
        check_result(
            driver.cuMemcpyPeerAsync(
                part, target.primary, start + first, source.primary, count, sender.stream
            )
        )
        check_result(driver.cuEventRecord(sender.event, sender.stream))
        check_result(driver.cuStreamWaitEvent(receiver.stream, sender.event, 0))
        check_result(driver.cuMemcpyDtoDAsync(to + first, part, count, receiver.stream))
        check_result(driver.cuEventRecord(receiver.event, receiver.stream))
    _join(driver, source, senders)
    _join(driver, target, receivers)


def _fork(driver: Any, link: CudaLink) -> Lanes:
    """Let the lanes of a link wait for the default stream, and return them."""
    with link.enter():
        if link.lanes is None:
            link.lanes = Lanes(driver)
        check_result(driver.cuEventRecord(link.event, driver.CUstream(LEGACY_STREAM)))
        for lane in link.lanes.both:
            check_result(driver.cuStreamWaitEvent(lane.stream, link.event, 0))
    return link.lanes


def _join(driver: Any, link: CudaLink, lanes: Lanes) -> None:
    """Let the default stream wait for the lanes of a link."""
    with link.enter():
        for lane in lanes.both:
            check_result(driver.cuStreamWaitEvent(driver.CUstream(LEGACY_STREAM), lane.event, 0))


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
