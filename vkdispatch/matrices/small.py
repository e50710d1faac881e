"""Products of many small matrices: one invocation computes each element of the result."""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import int32
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.families.tuning import memoize
from vkdispatch.families.values import convert_value
from vkdispatch.matrices.arithmetic import add_product, make_zero
from vkdispatch.matrices.factors import PREFIX, Factors, Variables, store_sum
from vkdispatch.shader.shader_function import ShaderFunction

_GROUP = 256


@memoize
def make_small_kernel(factors: Factors) -> ShaderFunction:
    """Trace a kernel; its arguments are those of `factors`, which have no parts and load single elements."""

    def body(*variables: Any) -> None:
        known = Variables(factors, variables)
        number, length = known.number, known.length
        rows, columns = number["rows"], number["columns"]
        index = (vc.workgroup_id().x * _GROUP + vc.local_invocation_index()).to_register("index")
        with vc.if_block(index.to_dtype(int32) < known.result.shape.w):
            column = (index % columns).to_register("column")
            rest = (index // columns).to_register("rest")
            row, batch = (rest % rows).to_register("row"), (rest // rows).to_register("batch")
            a_base = ((batch % number["a_batches"]) * rows * length).to_register("a_base")
            b_base = ((batch % number["b_batches"]) * columns * length).to_register("b_base")
            total = make_zero(factors.kind).to_register("total")
            with vc.for_block(0, length) as k:
                a = a_base + (k * rows + row if factors.transpose_a else row * length + k)
                b = b_base + (column * length + k if factors.transpose_b else k * columns + column)
                x = factors.a.value(known.a, a.to_register("at_a"))
                y = factors.b.value(known.b, b.to_register("at_b"))
                x, y = convert_value(x, factors.kind), convert_value(y, factors.kind)
                add_product(total, x.to_register(), y.to_register(), logical=factors.logical)
            store_sum(factors, known.result, known.rest, index, total)

    groups = f"-(-{PREFIX}result.size // {_GROUP})"
    return trace_kernel(
        f"matmul_{factors.kind.name}_small", body, factors.arguments, _GROUP, workgroups=groups
    )
