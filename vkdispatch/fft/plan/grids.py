"""How the lines of a buffer are distributed among workgroups and invocations."""

import dataclasses
import math

from vkdispatch.base.record import record


@record
class LineGrid:
    """Lines of `length` values along one axis of a shape.

    Attributes
    ----------
    length, stride
        Values of a line and their distance in memory.
    outer, inner
        Number of lines along the axes before and after the transformed one.
    threads, lines
        Invocations of a line, lines of a workgroup.
    flat
        Whether the workgroup has one row of invocations. Some drivers build vectors of neighbours in x only,
        and leave most lanes idle where x is short.
    """

    length: int
    stride: int
    outer: int
    inner: int
    threads: int
    lines: int
    flat: bool = False

    @property
    def is_interleaved(self) -> bool:
        """Whether neighbouring invocations work on neighbouring lines rather than on one."""
        return self.stride > 1

    @property
    def local_size(self) -> tuple[int, int, int]:
        """Workgroup size."""
        if self.flat:
            return (self.threads * self.lines, 1, 1)
        return (self.width, self.threads * self.lines // self.width, 1)

    @property
    def width(self) -> int:
        """Size of the workgroup along x unless it is flat."""
        return self.lines if self.is_interleaved else self.threads

    @property
    def blocks(self) -> int:
        """Workgroups along the inner axes, or along the outer axes if there are no inner ones."""
        return -(-(self.inner if self.is_interleaved else self.outer) // self.lines)

    @property
    def workgroups(self) -> int:
        """Total number of workgroups."""
        return self.blocks * (self.outer if self.is_interleaved else 1)


def make_grid(
    shape: tuple[int, ...], axis: int, threads: int, lines: int, vector: int | None = None
) -> LineGrid:
    """Return the grid of the lines along an axis of a shape.

    `vector` is the number of neighbours in x that the device combines to a vector.
    """
    inner = math.prod(shape[axis + 1 :])
    grid = LineGrid(shape[axis], inner, math.prod(shape[:axis]), inner, threads, lines)
    if vector is None or grid.width % vector == 0:
        return grid
    return dataclasses.replace(grid, flat=True)
