"""What kernels of sorts write: sorted keys, and their positions."""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.codegen.arguments import buffer


@record
class SortOutputs:
    """What a kernel writes that sorts whole rows.

    Attributes
    ----------
    has_keys, has_positions
        Whether it writes the sorted keys, and the positions in their rows that they had.
    is_wide
        Whether positions, of 32 bits, are written as numbers of 64 bits.
    """

    has_keys: bool
    has_positions: bool
    is_wide: bool = False

    def arguments(self, raw: DType) -> list[tuple[str, Any]]:
        """Return names and annotations of the kernel's arguments; `raw` is the type of keys."""
        arguments = [("sort_sorted", buffer[raw])] if self.has_keys else []
        if self.has_positions:
            arguments.append(("sort_positions", buffer[dtype.uvec2 if self.is_wide else dtype.uint32]))
        return arguments

    def position(self, value: Any) -> Any:
        """Return a position, a GPU value, as it is written."""
        return widen(value) if self.is_wide else value


def unpack_position(element: Any, name: str | None = None) -> Any:
    """Return a position that has one or two words as an integer, in a register."""
    position = element.to_register(name)
    return position if position.var_type is dtype.uint32 else vc.pack_uint2x32(position).to_register()


def widen(word: Any) -> Any:
    """Return a number of 32 bits as the two words of one of 64 bits."""
    return vc.to_uvec2(word, 0)
