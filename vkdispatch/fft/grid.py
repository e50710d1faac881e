"""Which lines of a buffer a workgroup works on, and which of them an invocation."""

import math
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.record import record
from vkdispatch.fft.stages import plus, times


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
    """

    length: int
    stride: int
    outer: int
    inner: int
    threads: int
    lines: int

    @property
    def interleaved(self) -> bool:
        """Whether neighbouring invocations work on neighbouring lines rather than on one."""
        return self.stride > 1

    @property
    def local_size(self) -> tuple[int, int, int]:
        """Workgroup size."""
        pair = (self.lines, self.threads) if self.interleaved else (self.threads, self.lines)
        return (*pair, 1)

    @property
    def blocks(self) -> int:
        """Workgroups along the inner axes, or the outer ones where there are no inner ones."""
        return -(-(self.inner if self.interleaved else self.outer) // self.lines)

    @property
    def workgroups(self) -> int:
        """Workgroups in all."""
        return self.blocks * (self.outer if self.interleaved else 1)


def line_grid(shape: tuple[int, ...], axis: int, threads: int, lines: int) -> LineGrid:
    """Return the grid of the lines along an axis of a shape."""
    inner = math.prod(shape[axis + 1 :])
    return LineGrid(shape[axis], inner, math.prod(shape[:axis]), inner, threads, lines)


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
        local = vc.local_invocation_id()
        x = 0 if grid.local_size[0] == 1 else local.x
        y = 0 if grid.local_size[1] == 1 else local.y
        group = vc.workgroup_id().x
        if grid.interleaved:
            self.line, self.thread = x, y
            outer = _register(group // grid.blocks if grid.blocks > 1 else group)
            block = group % grid.blocks if grid.blocks > 1 else 0
            column = plus(times(block, grid.lines), x)
            self.active = column < grid.inner if grid.inner % grid.lines else True
            self.outer, self.inner = outer, _register(column)
            self.line_number = _register(plus(times(outer, grid.inner), column))
            self.first = _register(plus(times(outer, grid.length * grid.stride), column))
        else:
            self.thread, self.line = x, y
            number = plus(times(group, grid.lines), y)
            self.active = number < grid.outer if grid.outer % grid.lines else True
            self.line_number = _register(number)
            self.outer, self.inner = self.line_number, 0
            self.first = _register(times(self.line_number, grid.length))


def _register(value: Any) -> Any:
    return value if isinstance(value, int) else value.to_register()
