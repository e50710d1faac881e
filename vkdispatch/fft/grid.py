"""Which lines of a buffer a workgroup works on, and which of them an invocation."""

import dataclasses
import math

import vkdispatch.codegen as vc
from vkdispatch.base.record import record
from vkdispatch.fft.stages import kept, plus, times


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
        Whether the workgroup is one row of invocations: drivers that make vectors of neighbours in x alone
        leave most of a vector idle where x is short.
    """

    length: int
    stride: int
    outer: int
    inner: int
    threads: int
    lines: int
    flat: bool = False

    @property
    def interleaved(self) -> bool:
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
        """How many neighbours differ in their line where lines are interleaved, else in their thread."""
        return self.lines if self.interleaved else self.threads

    @property
    def blocks(self) -> int:
        """Workgroups along the inner axes, or the outer ones where there are no inner ones."""
        return -(-(self.inner if self.interleaved else self.outer) // self.lines)

    @property
    def workgroups(self) -> int:
        """Workgroups in all."""
        return self.blocks * (self.outer if self.interleaved else 1)


def line_grid(
    shape: tuple[int, ...], axis: int, threads: int, lines: int, vector: int | None = None
) -> LineGrid:
    """Return the grid of the lines along an axis of a shape.

    `vector`: of so many neighbours in x the device makes a vector.
    """
    inner = math.prod(shape[axis + 1 :])
    grid = LineGrid(shape[axis], inner, math.prod(shape[:axis]), inner, threads, lines)
    if vector is None or grid.width % vector == 0:
        return grid
    return dataclasses.replace(grid, flat=True)


class Place:
    """Where an invocation is.

    Attributes
    ----------
    thread, line
        Which invocation of its line, which line of its workgroup: an int where there is only one.
    outer, inner
        Which line along the axes before the transformed one, and along those after it.
    line_number
        Which line of all, counted in C order of the other axes.
    first
        Flat index of the line's first value.
    active
        Whether there is such a line: a GPU bool, or True where there always is.
    """

    def __init__(self, grid: LineGrid) -> None:
        self.grid = grid
        local, width = vc.local_invocation_id(), grid.width
        if grid.flat and 1 < width < grid.local_size[0]:
            x, y = kept(local.x % width), kept(local.x // width)
        elif grid.flat:
            x, y = (local.x, 0) if width > 1 else (0, local.x)
        else:
            x = 0 if grid.local_size[0] == 1 else local.x
            y = 0 if grid.local_size[1] == 1 else local.y
        group = vc.workgroup_id().x
        if grid.interleaved:
            self.line, self.thread = x, y
            outer = kept(group // grid.blocks if grid.blocks > 1 else group)
            block = group % grid.blocks if grid.blocks > 1 else 0
            column = plus(times(block, grid.lines), x)
            self.active = column < grid.inner if grid.inner % grid.lines else True
            self.outer, self.inner = outer, kept(column)
            self.line_number = kept(plus(times(outer, grid.inner), column))
            self.first = kept(plus(times(outer, grid.length * grid.stride), column))
        else:
            self.thread, self.line = x, y
            number = plus(times(group, grid.lines), y)
            self.active = number < grid.outer if grid.outer % grid.lines else True
            self.line_number = kept(number)
            self.outer, self.inner = self.line_number, 0
            self.first = kept(times(self.line_number, grid.length))
