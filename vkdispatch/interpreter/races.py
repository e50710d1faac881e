"""Detection of unordered accesses, which lockstep execution would hide.

For each component of memory, the detector stores the last writer, the readers since then, and the number of
barriers that their workgroups had passed.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from vkdispatch.base.errors import UsageError
from vkdispatch.interpreter.memory import Cells
from vkdispatch.interpreter.values import Array, Extent
from vkdispatch.ir.location import Loc, located

_NOBODY = -1


@dataclass(eq=False, slots=True)
class _Shadow:
    """For each component: the last writer, the lowest and highest reader since, and their epochs."""

    writer: Array
    written: Array
    lowest: Array
    highest: Array
    read: Array


@dataclass(frozen=True, eq=False, slots=True)
class Access:
    """An access of some invocations to memory.

    Attributes
    ----------
    cells, index
        The memory, and the index of the components.
    number, group, epoch
        For each invocation: its number, counted workgroup by workgroup, its workgroup, and the number of
        barriers that the workgroup has passed.
    loc
        The line of the user's source.
    """

    cells: Cells
    index: tuple[Any, ...]
    number: Array
    group: Array
    epoch: Array
    loc: Loc | None

    def add_axes(self, value: Array) -> Array:
        """Reshape a number for each invocation to the axes of the components that it accesses."""
        return value.reshape(-1, *(1,) * (self.cells.data.ndim - len(self.index)))


class RaceDetector:
    """Detects races in one run of a kernel. Atomic accesses are ordered and not recorded."""

    def __init__(self, who: str, groups: Extent, local_size: Extent) -> None:
        self._who = who
        self._groups = groups
        self._local_size = local_size
        self._local = local_size[0] * local_size[1] * local_size[2]
        self._shadows: dict[Cells, _Shadow] = {}

    def forget(self, cells: Cells) -> None:
        """Forget memory that no longer exists."""
        self._shadows.pop(cells, None)

    def _shadow(self, cells: Cells) -> _Shadow:
        if cells not in self._shadows:
            fields = (np.full(cells.data.shape, _NOBODY, np.int64) for _ in range(5))
            self._shadows[cells] = _Shadow(*fields)
        return self._shadows[cells]

    def read(self, access: Access) -> None:
        """Record a read. Raises UsageError after an unordered write of another invocation."""
        shadow, index = self._shadow(access.cells), access.index
        bad = ~self._ordered(shadow.writer, shadow.written, access)
        self._require_order(access, bad, shadow.writer, "written", "read")
        lowest, highest = shadow.lowest[index], shadow.highest[index]
        stale = self._ordered(shadow.lowest, shadow.read, access)
        stale = stale & self._ordered(shadow.highest, shadow.read, access)
        fresh = np.broadcast_to(access.add_axes(access.number), lowest.shape)
        shadow.lowest[index] = np.where(stale, fresh, lowest)
        shadow.highest[index] = np.where(stale, fresh, highest)
        np.minimum.at(shadow.lowest, index, fresh)
        np.maximum.at(shadow.highest, index, fresh)
        shadow.read[index] = access.add_axes(access.epoch)

    def write(self, access: Access, value: Array | None) -> None:
        """Record a write before it happens. `value` is None if it depends on the previous value.

        Raises UsageError after an unordered read, or write of another value, by another invocation.
        """
        if not len(access.number):
            return
        cells, index = access.cells, access.index
        shadow = self._shadow(cells)
        new = value if value is None or cells.encode is None else cells.encode(value)
        differs = np.ones(1, np.bool_) if new is None else _find_differences(cells.data[index], new)
        for who, when, what in (
            (shadow.writer, shadow.written, "written"),
            (shadow.lowest, shadow.read, "read"),
            (shadow.highest, shadow.read, "read"),
        ):
            self._require_order(access, differs & ~self._ordered(who, when, access), who, what, "written")
        number = access.add_axes(access.number)
        shadow.writer[index] = number
        shadow.written[index] = access.add_axes(access.epoch)
        # of several writers of a component one is recorded; the others must write the same value
        rivals = shadow.writer[index] != number
        if new is not None and rivals.any():
            trial = np.zeros_like(cells.data)
            trial[index] = new
            rivals = rivals & _find_differences(trial[index], new)
        self._require_order(access, rivals, shadow.writer, "written", "written")

    def _ordered(self, who: Array, when: Array, access: Access) -> Array:
        """Return whether earlier accesses are ordered before the present one."""
        who, when = who[access.index], when[access.index]
        same_group = who // self._local == access.add_axes(access.group)
        past = same_group & (when < access.add_axes(access.epoch))
        result: Array = (who == _NOBODY) | (who == access.add_axes(access.number)) | past
        return result

    def _require_order(self, access: Access, bad: Array, others: Array, what: str, now: str) -> None:
        if not bad.any():
            return
        others = others[access.index]
        table = np.broadcast_to(bad, others.shape).reshape(len(others), -1)
        row, column = np.unravel_index(int(np.argmax(table)), table.shape)
        first = self._invocation(int(others.reshape(table.shape)[row, column]))
        second = self._invocation(int(access.number[row]))
        element = int(access.index[0][row]) % access.cells.size
        raise located(
            UsageError,
            f"{self._who}: {access.cells.what}: element {element} is {what} by invocation {first} "
            f"and {now} by invocation {second}, and nothing orders the two",
            access.loc,
        )

    def _invocation(self, number: int) -> Extent:
        group, position = divmod(number, self._local)
        axes = []
        for size, count in zip(self._local_size, self._groups, strict=True):
            group, of_group = divmod(group, count)
            position, of_position = divmod(position, size)
            axes.append(of_group * size + of_position)
        return (axes[0], axes[1], axes[2])


def _find_differences(a: Array, b: Array) -> Array:
    result: Array = (a != b) & ~((a != a) & (b != b))
    return result
