"""Copies by CUDA between the memory of two contexts, which may be on two GPUs."""

from vkdispatch.base.native_module import native
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
    stream = driver.CUstream(LEGACY_STREAM)
    # two threads that copy in opposite directions take the locks in one order
    first, second = sorted((source, target), key=id)
    with first.hold(), second.hold():
        addresses = target.blocks.map(target_memory), source.blocks.map(source_memory)
        _open_peers(target, source)
        _open_peers(source, target)
        source.give(LEGACY_STREAM)
        with source.enter():
            check_result(driver.cuEventRecord(source.event, stream))
        target.give(LEGACY_STREAM)
        with target.enter():
            check_result(driver.cuStreamWaitEvent(stream, source.event, 0))
            check_result(
                driver.cuMemcpyPeerAsync(
                    addresses[0], target.primary, addresses[1], source.primary, size, stream
                )
            )
            check_result(driver.cuEventRecord(target.event, stream))
        target.take(LEGACY_STREAM)
        with source.enter():
            check_result(driver.cuStreamWaitEvent(stream, target.event, 0))
        source.take(LEGACY_STREAM)


def _open_peers(link: CudaLink, other: CudaLink) -> None:
    """Let a device access another one's memory, without which copies go through the host's."""
    if other in link.peers or link.ordinal == other.ordinal:
        return
    driver = load_driver()
    if check_result(driver.cuDeviceCanAccessPeer(link.device, other.device)):
        with link.enter():
            result = driver.cuCtxEnablePeerAccess(other.primary, 0)
        if result[0] != driver.CUresult.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED:
            check_result(result)
    link.peers.add(other)
