"""A kernel with its arguments, and groups of invocations that run together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from vkdispatch.base.errors import NanError, UnsupportedError, VkDispatchError
from vkdispatch.compiler.interpreter import memory as mem
from vkdispatch.compiler.interpreter.memory import Texels
from vkdispatch.compiler.interpreter.subgroups import make_lane_mask
from vkdispatch.compiler.ir import Builtin, Expr, Kernel, Op, SharedArray, expressions_of, walk
from vkdispatch.compiler.ir import nodes as nodes
from vkdispatch.compiler.ir.location import Loc, located

# Operations that may fail or differ for inactive invocations, which must not evaluate them.
_CONDITIONAL = frozenset((Op.ELEMENT, Op.INDEX, Op.SUBGROUP, Op.RAW, Op.IMAGE_LOAD, Op.IMAGE_SIZE))


@dataclass(eq=False, slots=True)
class Lanes:
    """Invocations that run together: their positions in the batch, ascending.

    `known` caches the values of expressions until the next statement.
    """

    index: mem.Array
    whole: bool
    known: dict[int, mem.Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.index)

    def split(self, truth: mem.Array) -> tuple[Lanes, Lanes]:
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

    arguments: dict[str, mem.Array]
    buffers: dict[int, mem.Cells]
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
    groups: mem.Extent
    local_size: mem.Extent
    subgroup_size: int
    checks: Checks
    races: mem.RaceDetector | None
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


def list_operands(expr: Expr, lanes: Lanes) -> list[mem.Array]:
    """Return the values of the operands of an expression, which are known."""
    return [lanes.known[id(arg)] for arg in expr.args]


# ---- Workgroups that run together: their invocations, registers and shared memory ------------------------


_Error = TypeVar("_Error", bound=VkDispatchError)


class Batch:
    """Workgroups that run together: their invocations, registers and shared memory."""

    def __init__(self, program: Program, first_group: int, group_count: int) -> None:
        x, y, z = program.local_size
        self.program = program
        self.local = x * y * z
        self.width = group_count * self.local
        self.first_group = first_group
        self.group_count = group_count
        self.group = np.repeat(np.arange(group_count), self.local)
        self.position = np.tile(np.arange(self.local), group_count)
        self.registers: dict[int, mem.Cells] = {}
        self.shared = {id(array): self._make_shared(array) for array in program.kernel.shared}
        self.epoch = np.zeros(group_count, np.int64)
        self._builtins: dict[Builtin, mem.Array] = {}
        size = program.subgroup_size
        self.subgroups_per_group = -(-self.local // size)
        self.slot = self.group * (self.subgroups_per_group * size) + self.position

    def _make_shared(self, array: SharedArray) -> mem.Cells:
        kind = mem.host_dtype(array.dtype)
        size = self.program.shared_sizes[id(array)]
        data = np.empty((self.group_count * size, *mem.value_shape(array.dtype)), kind)
        # undefined in GLSL: a conspicuous value exposes kernels that rely on it
        data.fill(np.nan if kind.kind == "f" else np.array(0xA5A5A5A5A5A5A5A5, np.uint64).astype(kind))
        return mem.Cells(f"shared buffer {array.name!r}", data, None, size)

    def builtin(self, which: Builtin) -> mem.Array:
        """Return a built-in value for each invocation, or one row for all."""
        if which not in self._builtins:
            rule = _BUILTINS.get(which.name)
            if rule is None:
                who = self.program.who
                raise UnsupportedError(f"{who}: interpret: the built-in value {which.name} is not known here")
            self._builtins[which] = rule(self)
        return self._builtins[which]

    def invocation(self, position: int) -> mem.Extent:
        """Return the global id of the invocation at a position of the batch."""
        x, y, z = self.builtin(Builtin.GLOBAL_INVOCATION_ID)[position].tolist()
        return (x, y, z)

    def flat_ids(self, lanes: Lanes) -> mem.Array:
        """Return the linear indices of invocations in the whole grid, x fastest."""
        extent = [
            size * count for size, count in zip(self.program.local_size, self.program.groups, strict=True)
        ]
        ids = self.builtin(Builtin.GLOBAL_INVOCATION_ID)[lanes.index].astype(np.int64)
        return (ids[:, 2] * extent[1] + ids[:, 1]) * extent[0] + ids[:, 0]

    def select_rows(self, value: mem.Array, lanes: Lanes) -> mem.Array:
        """Return the rows of a value that belong to some invocations."""
        return value if lanes.whole or len(value) == 1 else value[lanes.index]

    def make_error(self, error: type[_Error], message: str, position: int, loc: Loc | None) -> _Error:
        """Make the error for an invocation."""
        where = self.invocation(position)
        return located(error, f"{self.program.who}: {message}, in invocation {where}", loc)

    def check_nan(
        self, value: mem.Array, what: str, index: mem.Array | None, lanes: Lanes, loc: Loc | None
    ) -> None:
        """Raise FloatingPointError if a value to be stored has a NaN."""
        if not self.program.checks.nan or value.dtype.kind != "f":
            return
        bad = np.isnan(value).reshape(len(value), -1).any(axis=1)
        if bad.any():
            row = int(np.argmax(bad))
            at = "" if index is None else f" at index {int(index[row if len(index) > 1 else 0])}"
            raise self.make_error(NanError, f"NaN stored in {what}{at}", int(lanes.index[row]), loc)

    def describe_access(
        self, cells: mem.Cells, index: mem.Index, lanes: Lanes, rows: mem.Array | None, loc: Loc | None
    ) -> mem.Access:
        """Describe an access for the race detector."""
        mine = lanes.index if rows is None else lanes.index[rows]
        index = tuple(np.broadcast_to(part, len(mine)) for part in index)
        group = self.group[mine]
        number = self.first_group * self.local + mine
        return mem.Access(cells, index, number, self.first_group + group, self.epoch[group], loc)


def _unflatten(flat: mem.Array, extent: mem.Extent) -> mem.Array:
    x, y, _ = extent
    return np.stack([flat % x, flat // x % y, flat // (x * y)], axis=1).astype(np.uint32)


def _global_id(batch: Batch) -> mem.Array:
    sizes = np.array(batch.program.local_size, np.uint32)
    return batch.builtin(Builtin.WORKGROUP_ID) * sizes + batch.builtin(Builtin.LOCAL_INVOCATION_ID)


def _lane(batch: Batch) -> mem.Array:
    return batch.position % batch.program.subgroup_size


def _make_mask_rule(rule: Callable[[mem.Array, mem.Array], mem.Array]) -> Callable[[Batch], mem.Array]:
    return lambda batch: make_lane_mask(_lane(batch), batch.program.subgroup_size, rule)


# By the names of `Builtin`.
_BUILTINS: dict[str, Callable[[Batch], mem.Array]] = {
    "LOCAL_INVOCATION_INDEX": lambda batch: batch.position.astype(np.uint32),
    "LOCAL_INVOCATION_ID": lambda batch: _unflatten(batch.position, batch.program.local_size),
    "WORKGROUP_ID": lambda batch: _unflatten(batch.first_group + batch.group, batch.program.groups),
    "GLOBAL_INVOCATION_ID": _global_id,
    "WORKGROUP_SIZE": lambda batch: np.array([batch.program.local_size], np.uint32),
    "NUM_WORKGROUPS": lambda batch: np.array([batch.program.groups], np.uint32),
    "NUM_SUBGROUPS": lambda batch: np.array([batch.subgroups_per_group], np.uint32),
    "SUBGROUP_ID": lambda batch: (batch.position // batch.program.subgroup_size).astype(np.uint32),
    "SUBGROUP_SIZE": lambda batch: np.array([batch.program.subgroup_size], np.uint32),
    "SUBGROUP_INVOCATION_ID": lambda batch: _lane(batch).astype(np.uint32),
    "SUBGROUP_EQ_MASK": _make_mask_rule(np.equal),
    "SUBGROUP_GE_MASK": _make_mask_rule(np.greater_equal),
    "SUBGROUP_GT_MASK": _make_mask_rule(np.greater),
    "SUBGROUP_LE_MASK": _make_mask_rule(np.less_equal),
    "SUBGROUP_LT_MASK": _make_mask_rule(np.less),
}
