"""The place of an invocation among the lines of a buffer."""

import vkdispatch.codegen as vc
from vkdispatch.fft.plan.grids import LineGrid
from vkdispatch.fft.plan.indices import add, hold, multiply


class Place:
    """The place of an invocation.

    Attributes
    ----------
    thread, line
        Number of the invocation in its line, and of the line in its workgroup; an int if there is one only.
    outer, inner
        Index of the line along the axes before and behind the transformed one.
    line_number
        Number of the line, in C order of the other axes.
    first
        Flat index of the line's first value.
    active
        Whether the line exists: a GPU bool, or True.
    """

    def __init__(self, grid: LineGrid) -> None:
        self.grid = grid
        local, width = vc.local_invocation_id(), grid.width
        if grid.flat and 1 < width < grid.local_size[0]:
            x, y = hold(local.x % width), hold(local.x // width)
        elif grid.flat:
            x, y = (local.x, 0) if width > 1 else (0, local.x)
        else:
            x = 0 if grid.local_size[0] == 1 else local.x
            y = 0 if grid.local_size[1] == 1 else local.y
        group = vc.workgroup_id().x
        if grid.is_interleaved:
            self.line, self.thread = x, y
            outer = hold(group // grid.blocks if grid.blocks > 1 else group)
            block = group % grid.blocks if grid.blocks > 1 else 0
            column = add(multiply(block, grid.lines), x)
            self.active = column < grid.inner if grid.inner % grid.lines else True
            self.outer, self.inner = outer, hold(column)
            self.line_number = hold(add(multiply(outer, grid.inner), column))
            self.first = hold(add(multiply(outer, grid.length * grid.stride), column))
        else:
            self.thread, self.line = x, y
            number = add(multiply(group, grid.lines), y)
            self.active = number < grid.outer if grid.outer % grid.lines else True
            self.line_number = hold(number)
            self.outer, self.inner = self.line_number, 0
            self.first = hold(multiply(self.line_number, grid.length))
