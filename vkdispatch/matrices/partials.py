"""Sums of parts, added up in a fixed order; the sum of no parts is zero.

    part 0    [ sums of all elements of the result ]
    part 1    [ ...                                ]    each element: lane t of `lanes` adds parts t,
    part 2    [ ...                                ]    t + lanes, ...; then halves of the lanes are added

The order of additions depends on the form only: the same input gives the same bits.
"""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import int32, uint32
from vkdispatch.base.record import record
from vkdispatch.codegen.arguments import buffer, constant
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.families.tuning import memoize
from vkdispatch.matrices.arithmetic import add_sums, make_zero
from vkdispatch.matrices.factors import PREFIX, Factors, store_sum
from vkdispatch.shader.shader_function import ShaderFunction

GROUP = 256


@record
class PartialsForm:
    """What the kernel is specialised for. It uses only the type and the sink of `factors`."""

    factors: Factors
    lanes: int


@memoize
def make_partials_kernel(form: PartialsForm) -> ShaderFunction:
    """Trace the kernel; its arguments are the result, the parts, their number, and those of the sink."""
    factors = form.factors
    elements = GROUP // form.lanes

    def body(result: Any, parts: Any, count: Any, *rest: Any) -> None:
        lane = vc.local_invocation_index()
        own = (lane % form.lanes).to_register("lane")
        index = (vc.workgroup_id().x * elements + lane // form.lanes).to_register("index")
        total = make_zero(factors.kind).to_register("total")
        inside = index.to_dtype(int32) < result.shape.w
        with vc.if_block(inside), vc.for_block(own, count, form.lanes) as part:
            value = parts[part * result.shape.w + index]
            total[:] = add_sums(total, value, logical=factors.logical)
        total = add_lanes(total, lane, form.lanes, GROUP, factors)
        with vc.if_block(vc.all(inside, own == 0)):
            store_sum(factors, result, rest, index, total)

    arguments = [
        (f"{PREFIX}result", buffer[factors.sink.out_type]),
        (f"{PREFIX}parts", buffer[factors.kind]),
        (f"{PREFIX}count", constant[uint32]),
        *factors.sink.parameters,
    ]
    groups = f"-(-{PREFIX}result.size // {elements})"
    return trace_kernel(f"matmul_parts_{factors.kind.name}", body, arguments, GROUP, workgroups=groups)


def add_lanes(total: Any, lane: Any, lanes: int, group: int, factors: Factors) -> Any:
    """Add up the values of runs of `lanes` invocations; the first invocation of each has the sum."""
    if lanes == 1:
        return total
    memory = vc.shared_buffer(factors.kind, group)
    memory[lane] = total
    vc.barrier()
    half = lanes // 2
    while half:
        with vc.if_block(lane % lanes < half):
            memory[lane] = add_sums(memory[lane], memory[lane + half], logical=factors.logical)
        vc.barrier()
        half //= 2
    return memory[lane]
