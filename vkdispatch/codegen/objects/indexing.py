"""From indices to elements: flat, row-major indices, and places of structures in `p[i].x`."""

import dis
import functools
import math
from collections.abc import Sequence
from types import CodeType, FrameType

from vkdispatch.base.dtype import int32, is_signed_dtype, uint32
from vkdispatch.compiler.ir import Expr
from vkdispatch.compiler.ir import expressions as ex

# ---- From indices along several axes to the flat, row-major index of an element --------------------------


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


# ---- Whether `p[i]` of a buffer of structures is the place in `p[i].x`, or a value -----------------------


_ATTRIBUTES = frozenset(("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR"))
_COPIES = frozenset(("COPY", "DUP_TOP"))


@functools.lru_cache(maxsize=1024)
def _attribute_follows(code: CodeType) -> frozenset[int]:
    """Return the offsets of the instructions whose result is at once asked for an attribute, or gets one.

    With those of their caches, to which frames may point as well.
    """
    instructions = list(dis.get_instructions(code))
    found: set[int] = set()
    for position, instruction in enumerate(instructions[:-1]):
        end = instructions[position + 1].offset
        following = instructions[position + 1]
        if following.opname in _COPIES and position + 2 < len(instructions):
            # p[i].x += 1
            following = instructions[position + 2]
            if following.opname == "STORE_ATTR":
                continue
        if following.opname in _ATTRIBUTES:
            found.update(range(instruction.offset, end, 2))
    return frozenset(found)


def is_place_in(frame: FrameType) -> bool:
    """Whether the expression that a frame evaluates is the `p[i]` of `p[i].x`: a place, not a value."""
    return frame.f_lasti in _attribute_follows(frame.f_code)
