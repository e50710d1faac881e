"""Reductions of whole buffers or along axes, with mapping functions of the user's own."""

from vkdispatch.reduce.accumulators import (
    ReduceOp,
    SubgroupAdd,
    SubgroupAnd,
    SubgroupMax,
    SubgroupMin,
    SubgroupMul,
    SubgroupOr,
    SubgroupXor,
)
from vkdispatch.reduce.planning import ReductionParams
from vkdispatch.reduce.reduce_function import ReduceFunction, make_reduction_stage, map_reduce, reduce
from vkdispatch.shader.map import mapped_index as mapped_io_index

__all__ = [
    "ReduceFunction",
    "ReduceOp",
    "ReductionParams",
    "SubgroupAdd",
    "SubgroupAnd",
    "SubgroupMax",
    "SubgroupMin",
    "SubgroupMul",
    "SubgroupOr",
    "SubgroupXor",
    "make_reduction_stage",
    "map_reduce",
    "mapped_io_index",
    "reduce",
]


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__})
