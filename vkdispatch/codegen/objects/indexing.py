"""From indices along several axes to the flat, row-major index of an element."""

import math
from collections.abc import Sequence

from vkdispatch.base.dtype import int32, is_signed_dtype, uint32
from vkdispatch.compiler.ir import Expr
from vkdispatch.compiler.ir import expressions as ex

Entry = int | Expr


def flat_index(entries: Sequence[Entry], sizes: Sequence[Entry]) -> Entry:
    """Return the flat index of a position.

    Parameters
    ----------
    entries
        One index per axis: ints, or integer scalars.
    sizes
        Elements along every axis but the first, whose size does not matter.

    Returns
    -------
    An int if all is known, else an expression: int32 if an index has a sign, else uint32.
    """
    if all(isinstance(value, int) for value in (*entries, *sizes)):
        strides = [math.prod(_known(sizes)[axis:]) for axis in range(len(entries))]
        return sum(entry * stride for entry, stride in zip(_known(entries), strides, strict=True))
    indices = [ex.index_value(entry) if isinstance(entry, Expr) else entry for entry in entries]
    signed = any(is_signed_dtype(index.dtype) for index in indices if isinstance(index, Expr))
    kind = int32 if signed else uint32
    parts = [_as(index, kind) for index in indices]
    flat = parts[0]
    for size, part in zip(sizes, parts[1:], strict=True):
        flat = ex.add("+", ex.multiply(flat, _as(size, kind)), part)
    return flat


def _known(values: Sequence[Entry]) -> list[int]:
    return [value for value in values if isinstance(value, int)]


def _as(value: Entry, kind: type) -> Expr:
    return ex.cast(value, kind) if isinstance(value, Expr) else ex.literal(value, kind)
