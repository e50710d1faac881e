"""Barriers of workgroups and subgroups."""

from vkdispatch.codegen.trace.current import current
from vkdispatch.compiler.ir import Effect
from vkdispatch.compiler.ir.location import here

__all__ = [
    "barrier",
    "group_memory_barrier",
    "memory_barrier",
    "memory_barrier_buffer",
    "memory_barrier_image",
    "memory_barrier_shared",
    "subgroup_barrier",
    "subgroup_memory_barrier",
    "subgroup_memory_barrier_buffer",
    "subgroup_memory_barrier_image",
    "subgroup_memory_barrier_shared",
]


def _effect(function: str) -> None:
    current().emit(Effect(function, here()))


def barrier() -> None:
    """Wait until every invocation of the workgroup is here.

    Its writes to shared memory are then visible to all.
    """
    _effect("barrier")


def memory_barrier() -> None:
    """Order this invocation's memory accesses before and after."""
    _effect("memoryBarrier")


def memory_barrier_buffer() -> None:
    """Order this invocation's buffer accesses before and after."""
    _effect("memoryBarrierBuffer")


def memory_barrier_shared() -> None:
    """Order this invocation's accesses to shared memory before and after."""
    _effect("memoryBarrierShared")


def memory_barrier_image() -> None:
    """Order this invocation's image accesses before and after."""
    _effect("memoryBarrierImage")


def group_memory_barrier() -> None:
    """Order memory accesses before and after, as the workgroup sees them."""
    _effect("groupMemoryBarrier")


def subgroup_barrier() -> None:
    """Wait until every invocation of the subgroup is here."""
    _effect("subgroupBarrier")


def subgroup_memory_barrier() -> None:
    """Order this invocation's memory accesses before and after, as the subgroup sees them."""
    _effect("subgroupMemoryBarrier")


def subgroup_memory_barrier_buffer() -> None:
    """Order this invocation's buffer accesses before and after, as the subgroup sees them."""
    _effect("subgroupMemoryBarrierBuffer")


def subgroup_memory_barrier_shared() -> None:
    """Order this invocation's accesses to shared memory before and after, as the subgroup sees them."""
    _effect("subgroupMemoryBarrierShared")


def subgroup_memory_barrier_image() -> None:
    """Order this invocation's image accesses before and after, as the subgroup sees them."""
    _effect("subgroupMemoryBarrierImage")
