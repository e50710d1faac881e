"""Whether `p[i]` of a buffer of structures is the place in `p[i].x`, or a value."""

import dis
import functools
from types import CodeType, FrameType

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
