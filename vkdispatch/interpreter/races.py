"""Finds accesses whose order nothing settles: what lock-step execution would otherwise hide.

Of every component of memory it remembers who wrote it last and who read it since, and how many barriers that
workgroup had passed by then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from vkdispatch.base.errors import UsageError
from vkdispatch.codegen.location import Loc, located
from vkdispatch.interpreter.memory import Cells, Place
from vkdispatch.interpreter.values import Array

if TYPE_CHECKING:
    from vkdispatch.interpreter.evaluation import Batch, Lanes

_NOBODY = -1


@dataclass(eq=False, slots=True)
class Shadow:
    """Who touched each component: the last writer, the lowest and highest of the readers since, and when."""

    writer: Array
    written: Array
    lowest: Array
    highest: Array
    read: Array


@dataclass(frozen=True, eq=False, slots=True)
class _Access:
    """Some invocations at their components: their numbers, workgroups and counts of barriers passed."""

    index: tuple[Any, ...]
    number: Array
    group: Array
    epoch: Array


class RaceDetector:
    """Watches over one run of a kernel. Accesses by atomics are ordered and not watched."""

    def __init__(self) -> None:
        self._shadows: dict[Cells, Shadow] = {}

    def forget(self, cells: Cells) -> None:
        """Drop what is known of memory that is gone."""
        self._shadows.pop(cells, None)

    def _shadow(self, cells: Cells) -> Shadow:
        if cells not in self._shadows:
            fields = (np.full(cells.data.shape, _NOBODY, np.int64) for _ in range(5))
            self._shadows[cells] = Shadow(*fields)
        return self._shadows[cells]

    def _access(
        self, batch: Batch, cells: Cells, index: tuple[Any, ...], lanes: Lanes, rows: Array | None
    ) -> _Access:
        mine = lanes.index if rows is None else lanes.index[rows]
        index = tuple(np.broadcast_to(part, len(mine)) for part in index)
        trailing = (1,) * (cells.data.ndim - len(index))
        group = batch.group[mine]
        number = batch.first_group * batch.local + mine
        shaped = (part.reshape(-1, *trailing) for part in (number, batch.first_group + group, batch.epoch[group]))
        return _Access(index, *shaped)

    def read(
        self,
        batch: Batch,
        cells: Cells,
        index: tuple[Any, ...],
        lanes: Lanes,
        rows: Array | None,
        loc: Loc | None,
    ) -> None:
        """Note a read. Raises UsageError where another invocation wrote with no barrier between."""
        shadow, access = self._shadow(cells), self._access(batch, cells, index, lanes, rows)
        self._need(
            batch, cells, access, ~_ordered(batch, shadow.writer[access.index], shadow.written[access.index], access),
            shadow.writer, "written", "read", loc,
        )  # fmt: skip
        lowest, highest = shadow.lowest[access.index], shadow.highest[access.index]
        stale = _ordered(batch, lowest, shadow.read[access.index], access)
        stale &= _ordered(batch, highest, shadow.read[access.index], access)
        fresh = np.broadcast_to(access.number, lowest.shape)
        shadow.lowest[access.index] = np.where(stale, fresh, lowest)
        shadow.highest[access.index] = np.where(stale, fresh, highest)
        np.minimum.at(shadow.lowest, access.index, fresh)
        np.maximum.at(shadow.highest, access.index, fresh)
        shadow.read[access.index] = access.epoch

    def write(
        self, batch: Batch, place: Place, value: Array, lanes: Lanes, loc: Loc | None, *, update: bool
    ) -> None:
        """Note a write that is about to happen.

        Raises UsageError where another invocation wrote something else, or read, with no barrier between.
        """
        cells = place.cells
        shadow, access = self._shadow(cells), self._access(batch, cells, place.index, lanes, place.rows)
        if not len(access.number):
            return
        new = value if cells.encode is None else cells.encode(value)
        differs = np.ones(1, np.bool_) if update else _differs(cells.data[access.index], new)
        for who, when, what in (
            (shadow.writer, shadow.written, "written"),
            (shadow.lowest, shadow.read, "read"),
            (shadow.highest, shadow.read, "read"),
        ):
            bad = differs & ~_ordered(batch, who[access.index], when[access.index], access)
            self._need(batch, cells, access, bad, who, what, "written", loc)
        shadow.writer[access.index] = access.number
        shadow.written[access.index] = access.epoch
        # of several invocations at one component one stands there now; the others wrote the same or clash
        winner = shadow.writer[access.index]
        rivals = winner != access.number
        if not update and rivals.any():
            trial = np.zeros_like(cells.data)
            trial[access.index] = new
            rivals = rivals & _differs(trial[access.index], new)
        self._need(batch, cells, access, rivals, shadow.writer, "written", "written", loc)

    def _need(
        self,
        batch: Batch,
        cells: Cells,
        access: _Access,
        bad: Array,
        others: Array,
        what: str,
        now: str,
        loc: Loc | None,
    ) -> None:
        if not bad.any():
            return
        bad = np.broadcast_to(bad, others[access.index].shape)
        row = int(np.argmax(bad.reshape(len(bad), -1).any(axis=1)))
        other = int(others[access.index].reshape(len(bad), -1)[row][np.argmax(bad.reshape(len(bad), -1)[row])])
        first, second = (_invocation(batch, number) for number in (other, int(access.number.flat[row])))
        element = int(access.index[0][row]) % cells.size
        raise located(
            UsageError,
            f"{batch.program.who}: {cells.what}: element {element} is {what} by invocation {first} and {now} by "
            f"invocation {second}, and nothing orders the two",
            loc,
        )


def _ordered(batch: Batch, who: Array, when: Array, access: _Access) -> Array:
    """Whether what somebody did comes before what invocations do now."""
    same_group = (who // batch.local == access.group) & (when < access.epoch)
    result: Array = (who == _NOBODY) | (who == access.number) | same_group
    return result


def _differs(a: Array, b: Array) -> Array:
    result: Array = (a != b) & ~((a != a) & (b != b))
    return result


def _invocation(batch: Batch, number: int) -> tuple[int, int, int]:
    group, position = divmod(number, batch.local)
    axes = []
    for size, count in zip(batch.program.local_size, batch.program.groups, strict=True):
        group, of_group = divmod(group, count)
        position, of_position = divmod(position, size)
        axes.append(of_group * size + of_position)
    return (axes[0], axes[1], axes[2])
