"""Reductions of whole buffers or along axes, with mapping functions of the user's own."""

import typing as _typing

from vkdispatch.base import list_public as _list_public
from vkdispatch.base import names_elsewhere as _names_elsewhere

if _typing.TYPE_CHECKING:
    from vkdispatch.reduce.accumulators import ReduceOp as ReduceOp
    from vkdispatch.reduce.accumulators import SubgroupAdd as SubgroupAdd
    from vkdispatch.reduce.accumulators import SubgroupAnd as SubgroupAnd
    from vkdispatch.reduce.accumulators import SubgroupMax as SubgroupMax
    from vkdispatch.reduce.accumulators import SubgroupMin as SubgroupMin
    from vkdispatch.reduce.accumulators import SubgroupMul as SubgroupMul
    from vkdispatch.reduce.accumulators import SubgroupOr as SubgroupOr
    from vkdispatch.reduce.accumulators import SubgroupXor as SubgroupXor
    from vkdispatch.reduce.planning import ReductionParams as ReductionParams
    from vkdispatch.reduce.reduce_function import ReduceFunction as ReduceFunction
    from vkdispatch.reduce.reduce_function import make_reduction_stage as make_reduction_stage
    from vkdispatch.reduce.reduce_function import map_reduce as map_reduce
    from vkdispatch.reduce.reduce_function import reduce as reduce
    from vkdispatch.shader.map import mapped_io_index as mapped_io_index
else:
    __getattr__ = _names_elsewhere(
        __name__,
        {
            "reduce.accumulators": (
                "ReduceOp SubgroupAdd SubgroupAnd SubgroupMax SubgroupMin SubgroupMul SubgroupOr SubgroupXor"
            ),
            "reduce.planning": "ReductionParams",
            "reduce.reduce_function": "ReduceFunction make_reduction_stage map_reduce reduce",
            "shader.map": "mapped_io_index",
        },
    )
    __dir__ = _list_public(__name__)
