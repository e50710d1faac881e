"""Sums over the invocations of a workgroup, in a trace."""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.families.tuning import device_facts

# The sums of more subgroups are added up in a loop. Small subgroups loop earlier, and CPU drivers always do:
# SwiftShader compiles many conditions in a loop for minutes.
_MOST_UNROLLED = 32
_MOST_UNROLLED_SMALL = 16


def sum_group(value: Any, lane: Any, group: int) -> Any:
    """Return the sum of a value over the workgroup. Only the first invocation has it."""
    subgroup = device_facts().subgroup_size
    part = vc.subgroup_add(value).to_register()
    count = max(1, group // subgroup)
    memory = vc.shared_buffer(dtype.uint32, count)
    with vc.if_block(lane % subgroup == 0):
        memory[lane // subgroup] = part
    vc.barrier()
    total = vc.new_uint_register(0)
    with vc.if_block(lane == 0):
        if _adds_in_loop(count):
            with vc.for_block(0, count) as each:
                total += memory[each]
        else:
            for i in range(count):
                total += memory[i]
    return total


def sum_before(value: Any, lane: Any, group: int) -> Any:
    """Return the sum of a value over the invocations of the workgroup before this one."""
    subgroup = device_facts().subgroup_size
    own = vc.subgroup_exclusive_add(value).to_register()
    count = max(1, group // subgroup)
    memory = vc.shared_buffer(dtype.uint32, count)
    with vc.if_block(lane % subgroup == subgroup - 1):
        memory[lane // subgroup] = own + value
    vc.barrier()
    before = vc.new_uint_register(0)
    if _adds_in_loop(count):
        with vc.for_block(0, lane // subgroup) as each:
            before += memory[each]
        return (own + before).to_register()
    for i in range(count - 1):
        before += vc.select(lane // subgroup > i, memory[i], 0)
    return (own + before).to_register()


def _adds_in_loop(count: int) -> bool:
    facts = device_facts()
    return facts.is_cpu or count > (_MOST_UNROLLED if facts.subgroup_size >= 32 else _MOST_UNROLLED_SMALL)
