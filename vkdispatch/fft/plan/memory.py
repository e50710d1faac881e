"""How the lines of a workgroup lie in its memory."""

from typing import Any

from vkdispatch.arrays.facts import device_facts
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.fft.plan.stages import Split

# Larger exchanges move real and imaginary parts in turn: half the memory makes room for more workgroups.
_HALVED = 8 << 10


@record
class SharedLayout:
    """How the lines of a workgroup lie in its memory.

    Attributes
    ----------
    lines
        Lines of a workgroup.
    padding
        After so many values one is left out, so that strides of a power of two spread over the banks;
        0: none.
    row
        Distance of two lines.
    parts
        1: whole complex values; 2: first the real, then the imaginary parts, in half of the memory.
    chunks
        Into how many pieces of a line an exchange is cut, one after another in the same memory.
    """

    length: int
    lines: int
    padding: int
    row: int
    parts: int = 1
    chunks: int = 1

    def padded(self, position: Any) -> Any:
        """Where a position of a line lies."""
        if not self.padding or isinstance(position, int):
            return position + (position // self.padding if self.padding else 0)
        return position + position // self.padding

    def step(self, distance: int) -> int:
        """Distance in memory of two positions, for multiples of the padding."""
        return distance + (distance // self.padding if self.padding else 0)

    @property
    def elements(self) -> int:
        """Elements of the array, with what idle invocations read behind the last line."""
        return self.lines * self.row

    def size(self, compute_type: DType) -> int:
        """Bytes of workgroup memory."""
        return self.elements * compute_type.item_size // self.parts


def plan_layout(
    split: Split,
    lines: int,
    interleaved: bool,
    item_size: int,
    most: int,
    parts: int | None = None,
    whole: bool = False,
) -> SharedLayout | None:
    """Choose a layout that fits into `most` bytes; None where there is none.

    `is_interleaved` lines are side by side in memory: neighbouring invocations work on neighbouring lines.
    `whole` layouts are not cut into chunks, and hold rows of one value more as well.
    """
    length, first = split.length, split.radices[0]
    on_cpu = device_facts().cpu
    padding = first if len(split.radices) > 1 and first % 2 == 0 and not on_cpu else 0
    chunk_counts = [1, 2, 4, 8] if split.radices[-1] > 1 else [1]
    if parts is None and lines * length * item_size > _HALVED and not on_cpu:
        parts = 2
    for count in [1, 2] if parts is None else [parts]:
        for chunks in chunk_counts if count == 2 and not whole else [1]:
            if chunks > 1 and not _can_cut(split, chunks):
                continue
            piece = -(-length // chunks)
            row = piece + max(-(-piece // padding) if padding else 0, 1 if whole else 0)
            if interleaved and lines > 1 and not on_cpu:
                banks = 32 * 4 * count // item_size
                # an odd distance takes all banks in turn, where there are lines for all of them
                row = row | 1 if lines >= banks else row + (banks // lines - row) % banks
            layout = SharedLayout(length, lines, padding, row, count, chunks)
            if allocation(split, layout) * item_size // count <= most:
                return layout
    return None


def _can_cut(split: Split, chunks: int) -> bool:
    """Whether each stage's reads and writes fall into whole pieces of a line."""
    if split.length % chunks:
        return False
    piece = split.length // chunks
    stages = split.stages
    return all(
        stage.butterflies % split.threads == 0 and piece % (stage.previous * stage.radix) == 0
        for stage in stages[:-1]
    ) and all((stage.radix % chunks == 0 and stage.butterflies % split.threads == 0) for stage in stages[1:])


def _overrun(split: Split, layout: SharedLayout) -> int:
    """Elements behind the last line that idle invocations may read."""
    most = max(stage.rounds * stage.threads - stage.butterflies for stage in split.stages)
    return layout.step(most) + (1 if most else 0)


def allocation(split: Split, layout: SharedLayout) -> int:
    """Elements of workgroup memory that a transform needs."""
    return layout.elements + _overrun(split, layout)
