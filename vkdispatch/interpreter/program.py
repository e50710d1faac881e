"""A kernel with all that a run of it shares, and which invocations run together."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from vkdispatch.codegen.analysis import nodes
from vkdispatch.codegen.ir import Kernel, Op, expressions_of, walk
from vkdispatch.interpreter.images import Texels
from vkdispatch.interpreter.memory import Cells
from vkdispatch.interpreter.races import RaceDetector
from vkdispatch.interpreter.values import Array, Extent

# What may fail or differ where it is not chosen, so that a choice must not compute it.
_CONDITIONAL = frozenset((Op.ELEMENT, Op.INDEX, Op.SUBGROUP, Op.RAW, Op.IMAGE_LOAD, Op.IMAGE_SIZE))


@dataclass(eq=False, slots=True)
class Lanes:
    """Invocations that run together: their positions in the batch, ascending.

    `known` holds values of expressions until the next statement.
    """

    index: Array
    whole: bool
    known: dict[int, Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.index)

    def split(self, truth: Array) -> tuple[Lanes, Lanes]:
        """Return the invocations for which a condition holds, and the others."""
        if truth.all():
            return self, NOBODY
        if not truth.any():
            return NOBODY, self
        return Lanes(self.index[truth], False), Lanes(self.index[~truth], False)


NOBODY = Lanes(np.empty(0, np.int64), False)


@dataclass(frozen=True, slots=True)
class Checks:
    """What of a kernel's doings is an error.

    Attributes
    ----------
    bounds
        An index out of range; if it is none, reads there give 0 and writes do nothing.
    nan
        A NaN that is stored, in memory or a register.
    rounds
        More rounds of a while loop than this; None for any number.
    asserts
        An assert whose condition does not hold.
    """

    bounds: bool = True
    nan: bool = False
    rounds: int | None = None
    asserts: bool = True


@dataclass(frozen=True, eq=False, slots=True)
class Program:
    """A kernel with all that a run of it shares.

    Attributes
    ----------
    who
        The kernel, as messages call it.
    arguments, buffers, images
        Values of the argument block by name (one row each), and memory by the position of the resource.
    groups, local_size, subgroup_size
        The grid.
    checks
        What is an error.
    races
        What watches over unordered accesses, or None.
    lazy
        Identities of choices whose parts must not be computed for all.
    """

    who: str
    kernel: Kernel
    arguments: dict[str, Array]
    buffers: dict[int, Cells]
    images: dict[int, Texels]
    groups: Extent
    local_size: Extent
    subgroup_size: int
    checks: Checks
    races: RaceDetector | None
    lazy: frozenset[int]


def find_lazy_choices(kernel: Kernel) -> frozenset[int]:
    """Identities of the LOGICAL and SELECT expressions whose later operands must wait for the first."""
    found: set[int] = set()
    for statement in walk(kernel.body):
        for expr in nodes(expressions_of(statement)):
            if expr.op in (Op.LOGICAL, Op.SELECT) and any(
                node.op in _CONDITIONAL for node in nodes(expr.args[1:])
            ):
                found.add(id(expr))
    return frozenset(found)
