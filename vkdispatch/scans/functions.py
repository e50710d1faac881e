"""`vd.cumsum`, `cumprod`, `cummax`, `cummin`."""

from typing import Any

from vkdispatch.arrays.axes import around, checked_axis
from vkdispatch.arrays.calls import array_function
from vkdispatch.arrays.operand import operand
from vkdispatch.arrays.output import output
from vkdispatch.arrays.remembering import remembered
from vkdispatch.arrays.results import result
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import DType
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.scans.launching import Wish, scan_rows
from vkdispatch.scans.operations import (
    OURS,
    ScanOp,
    identity_parts,
    make_operation,
)
from vkdispatch.arrays.elements import wide_type


@remembered
def ours(name: str, kind: DType) -> ScanOp:
    """Return one of our operations on values of a type."""
    function, identity = OURS[name]
    return make_operation(name, function, kind, identity_parts(identity, kind))


def cumsum(x: Any, axis: int | None = None, *, exclusive: bool = False, reverse: bool = False, dtype: Any = None, graph: CommandGraph | None = None) -> Buffer[Any]:
    values = operand(x)
    kind = dtype or values.var_type
    op = ours("cumsum", wide_type(kind))
    o = output(None, kind)
    r = result(None, values.shape, kind, values.context)
    outer, length, inner = (1, values.size, 1) if axis is None else around(values.shape, axis)
    scan_rows(values, o, r, op, outer, length, Wish(reverse, exclusive), None, graph)
    return r
