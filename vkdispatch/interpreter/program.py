"""A kernel with its arguments, and groups of invocations that run together."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from vkdispatch.interpreter.images import Texels
from vkdispatch.interpreter.memory import Cells
from vkdispatch.interpreter.races import RaceDetector
from vkdispatch.interpreter.values import Array, Extent
from vkdispatch.ir import Expr, Kernel, Op, expressions_of, nodes, walk

# Operations that may fail or differ for inactive invocations, which must not evaluate them.
_CONDITIONAL = frozenset((Op.ELEMENT, Op.INDEX, Op.SUBGROUP, Op.RAW, Op.IMAGE_LOAD, Op.IMAGE_SIZE))


@dataclass(eq=False, slots=True)
class Lanes:
    """Invocations that run together: their positions in the batch, ascending.

    `known` caches the values of expressions until the next statement.
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
    """The errors that are checked for.

    Attributes
    ----------
    bounds
        Indices out of range. Without this check, reads there give 0 and writes have no effect.
    nan
        Stores of NaN, in memory or a register.
    rounds
        The largest number of rounds of a while loop; None: no limit.
    asserts
        Failed asserts.
    """

    bounds: bool = True
    nan: bool = False
    rounds: int | None = None
    asserts: bool = True


@dataclass(frozen=True, eq=False, slots=True)
class Memory:
    """What a kernel reads and writes.

    Attributes
    ----------
    arguments
        The members of the argument block by name, each as an array of one row.
    buffers
        Buffers by the index of the resource.
    images
        Images by the index of the resource.
    """

    arguments: dict[str, Array]
    buffers: dict[int, Cells]
    images: dict[int, Texels] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, slots=True)
class Program:
    """A kernel with its arguments and settings.

    Attributes
    ----------
    who
        The name of the kernel in messages.
    memory
        Its arguments, buffers and images.
    groups, local_size, subgroup_size
        The grid.
    checks
        The checks to make.
    races
        The detector of unordered accesses, or None.
    lazy
        Identities of the expressions whose operands are evaluated only for some invocations.
    shared_sizes
        Counts of elements of the shared arrays, by identity.
    """

    who: str
    kernel: Kernel
    memory: Memory
    groups: Extent
    local_size: Extent
    subgroup_size: int
    checks: Checks
    races: RaceDetector | None
    lazy: frozenset[int]
    shared_sizes: dict[int, int]


def find_lazy_choices(kernel: Kernel) -> frozenset[int]:
    """Return the LOGICAL and SELECT expressions, by identity, whose later operands depend on the first."""
    found: set[int] = set()
    for statement in walk(kernel.body):
        for expr in nodes(expressions_of(statement)):
            if expr.op in (Op.LOGICAL, Op.SELECT) and any(
                node.op in _CONDITIONAL for node in nodes(expr.args[1:])
            ):
                found.add(id(expr))
    return frozenset(found)


def list_operands(expr: Expr, lanes: Lanes) -> list[Array]:
    """Return the values of the operands of an expression, which are known."""
    return [lanes.known[id(arg)] for arg in expr.args]
