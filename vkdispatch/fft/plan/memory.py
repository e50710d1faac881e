"""Layouts of lines in workgroup memory."""

from typing import Any

from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.families.tuning import device_facts
from vkdispatch.fft.plan.stages import Split
from vkdispatch.fft.plan.tuning import tuning


@record
class SharedLayout:
    """The layout of the lines of a workgroup in its memory.

    Attributes
    ----------
    lines
        Lines of a workgroup.
    padding
        Number of values after which one element is skipped, so that strides of a power of two spread over
        the banks; 0 for none.
    row
        Distance of two lines.
    parts
        1: complex values; 2: first the real, then the imaginary parts, in half the memory.
    chunks
        Number of pieces of a line that are exchanged one after another in the same memory.
    """

    length: int
    lines: int
    padding: int
    row: int
    parts: int = 1
    chunks: int = 1

    def place_of(self, position: Any) -> Any:
        """Return the place of a position of a line."""
        if not self.padding or isinstance(position, int):
            return position + (position // self.padding if self.padding else 0)
        return position + position // self.padding

    def step(self, distance: int) -> int:
        """Return the distance in memory of two positions, a multiple of the padding apart."""
        return distance + (distance // self.padding if self.padding else 0)

    @property
    def elements(self) -> int:
        """Elements of the array."""
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
    """Choose a layout that fits into `most` bytes, or None if there is none.

    With `interleaved` lines, neighbouring invocations work on neighbouring lines.
    A `whole` layout has one chunk, and room for rows of one more value.
    """
    length, first = split.length, split.radices[0]
    on_cpu = device_facts().is_cpu
    padding = first if len(split.radices) > 1 and first % 2 == 0 and not on_cpu else 0
    chunk_counts = [1, 2, 4, 8] if split.radices[-1] > 1 else [1]
    if parts is None and lines * length * item_size > tuning.largest_whole_exchange and not on_cpu:
        parts = 2
    for count in [1, 2] if parts is None else [parts]:
        for chunks in chunk_counts if count == 2 and not whole else [1]:
            if chunks > 1 and not _can_cut(split, chunks):
                continue
            piece = -(-length // chunks)
            row = piece + max(-(-piece // padding) if padding else 0, 1 if whole else 0)
            if interleaved and lines > 1 and not on_cpu:
                banks = 32 * 4 * count // item_size
                # an odd distance uses all banks in turn, if there are lines for all of them
                row = row | 1 if lines >= banks else row + (banks // lines - row) % banks
            layout = SharedLayout(length, lines, padding, row, count, chunks)
            if count_allocated(split, layout) * item_size // count <= most:
                return layout
    return None


def _can_cut(split: Split, chunks: int) -> bool:
    """Whether the reads and writes of each stage fall into whole pieces of a line."""
    if split.length % chunks:
        return False
    piece = split.length // chunks
    stages = split.stages
    return all(
        stage.butterflies % split.threads == 0 and piece % (stage.previous * stage.radix) == 0
        for stage in stages[:-1]
    ) and all((stage.radix % chunks == 0 and stage.butterflies % split.threads == 0) for stage in stages[1:])


def _count_overrun(split: Split, layout: SharedLayout) -> int:
    """Return the elements behind the last line that idle invocations may read."""
    most = max(stage.rounds * stage.threads - stage.butterflies for stage in split.stages)
    return layout.step(most) + (1 if most else 0)


def count_allocated(split: Split, layout: SharedLayout) -> int:
    """Return the elements of workgroup memory that a transform needs."""
    return layout.elements + _count_overrun(split, layout)
