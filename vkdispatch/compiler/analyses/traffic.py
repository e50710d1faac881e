"""Estimate of the memory traffic of a launch, from the accesses of the kernel.

Each element that a launch accesses counts once as read and once as written, as with a perfect cache:

* An index counts the values that it takes over the invocations and the rounds of loops. Several indices of a
  buffer whose values lie among each other, such as those of a stencil, count at most the range of all.
* Branches count unless the arguments and the number of invocations rule them out, and loops all their rounds.
* An index that is no linear form of ids, counters and arguments, such as one that is read from a buffer,
  counts one element in each invocation and round.
* No buffer counts more than its size. Elements of vectors count whole. Atomic operations read and write.
"""

import math
from collections.abc import Iterable, Mapping
from enum import IntEnum

from vkdispatch.base import dtype as dt
from vkdispatch.base.record import field, record
from vkdispatch.compiler import ir
from vkdispatch.compiler.analyses.launch_values import Extent, Linear, Ranges, Space, definitions_of, linear
from vkdispatch.compiler.ir import walk


class Known(IntEnum):
    """How well a number of bytes is known."""

    EXACT = 0
    ABOUT = 1  # conditions or indices are too intricate
    AT_LEAST = 2  # a loop of unknown length, or code in GLSL


@record
class Traffic:
    """Bytes that a launch reads and writes."""

    read: int
    written: int
    known: Known


@record
class Launch:
    """What is known of a launch.

    Attributes
    ----------
    invocations, groups, local_size
        Along x, y and z.
    arguments
        Components of each member of the argument block, by name.
    sizes, texels
        By index of a resource: bytes that are bound, and bytes of a texel of an image.
    """

    invocations: Extent
    groups: Extent
    local_size: Extent
    arguments: Mapping[str, tuple[int | float, ...]]
    sizes: Mapping[int, int]
    texels: Mapping[int, int] = field(factory=dict)

    def integers_of(self, argument: ir.Argument) -> tuple[int, ...] | None:
        """Return the components of an argument, or None if they are not known integers."""
        values = self.arguments.get(argument.name)
        return None if values is None else tuple(value for value in values if isinstance(value, int))


def estimate_traffic(kernel: ir.Kernel, launch: Launch) -> Traffic:
    """Estimate the bytes that a launch of a kernel moves."""
    body = ir.without_asserts(kernel.body)
    counter = _Counter(body, launch)
    counter.walk(body)
    return counter.total()


# ---- How many elements indices touch ---------------------------------------------------------------------


def count_values(forms: Iterable[Linear], ranges: Ranges) -> tuple[int, bool]:
    """Return how many values forms take together, and whether that is exact.

    Forms whose ranges overlap count at most as many values as the range of all of them has.
    """
    total, last, exact = 0, None, True
    for form in sorted(forms, key=lambda form: ranges.bounds(form)):
        low, high = ranges.bounds(form)
        count, certain = _count_values_of(form, ranges)
        exact &= certain
        if last is not None and low <= last[1]:
            first, end = last[0], max(high, last[1])
            joined = last[2] + count
            exact &= joined > end - first
            total -= last[2]
            low, high, count = first, end, min(joined, end - first + 1)
        total += count
        last = (low, high, count)
    return total, exact


def _count_values_of(form: Linear, ranges: Ranges) -> tuple[int, bool]:
    steps = sorted((abs(factor), ranges.of(atom)) for atom, factor in form.terms)
    unit = math.gcd(*(step for step, _ in steps)) or 1
    reach, apart, dense = 0, True, True
    for step, count in steps:
        apart &= step > reach  # the values of different terms are like digits of a number
        dense &= step <= reach + unit
        reach += step * (count - 1)
    most = reach // unit + 1
    return min(most, math.prod(count for _, count in steps)), apart or dense


# ---- The accesses of a kernel ----------------------------------------------------------------------------


Resource = ir.Storage | ir.ImageBinding
_READS = (ir.Op.ELEMENT, ir.Op.SAMPLE, ir.Op.IMAGE_LOAD)


@record
class _Access:
    """`forms` has the axes of an index; without, `expr` identifies it and `count` is an estimate."""

    resource: Resource
    writes: bool
    forms: tuple[Linear, ...] | None
    count: int = 0
    expr: int = 0


def _reads(roots: Iterable[ir.Expr]) -> bool:
    return any(expr.op in _READS for expr in ir.nodes(roots))


class _Counter:
    """Walks a kernel once."""

    def __init__(self, body: ir.Block, launch: Launch) -> None:
        self._launch = launch
        self._known = Known.EXACT
        self._accesses: set[_Access] = set()
        self._rounds = 1  # of the loops around
        definitions = definitions_of(walk(body))
        space = Space(launch.invocations, launch.integers_of, definitions, check_overflow=False)
        space.add_id(ir.Builtin.LOCAL_INVOCATION_ID, launch.local_size)
        space.add_id(ir.Builtin.LOCAL_INVOCATION_INDEX, (math.prod(launch.local_size),))
        space.add_id(ir.Builtin.WORKGROUP_ID, launch.groups)
        space.builtins[ir.Builtin.WORKGROUP_SIZE] = tuple(map(Linear, launch.local_size))
        space.builtins[ir.Builtin.NUM_WORKGROUPS] = tuple(map(Linear, launch.groups))
        self._space = space

    def _doubt(self, known: Known) -> None:
        self._known = max(self._known, known)

    # -- statements

    def walk(self, block: ir.Block) -> bool:
        """Note the accesses of a block, and return whether its end is never reached."""
        for statement in block:
            if isinstance(statement, (ir.Return, ir.Break, ir.Continue)):
                return True
            if isinstance(statement, ir.RawStatement):
                self._doubt(Known.AT_LEAST)
            self._note_expressions(statement)
            if isinstance(statement, ir.For):
                self._walk_loop(statement)
            elif isinstance(statement, (ir.While, ir.Switch)):
                self._walk_choices(ir.blocks_of(statement))
                if isinstance(statement, ir.While):
                    self._doubt(Known.AT_LEAST)
            elif self._walk_choices(self._possible_blocks(statement)):
                return True
        return False

    def _possible_blocks(self, statement: ir.Statement) -> tuple[ir.Block, ...]:
        if not isinstance(statement, ir.If):
            return ir.blocks_of(statement)
        blocks: list[ir.Block] = []
        for condition, body in statement.branches:
            holds = self._space.holds(condition)
            if holds is not False:
                blocks.append(body)
            if holds:
                return tuple(blocks)
        return (*blocks, statement.orelse or ())

    def _walk_choices(self, blocks: tuple[ir.Block, ...]) -> bool:
        """Note the accesses of several blocks, one of which runs; return whether the end is never reached."""
        before = len(self._accesses)
        ends = [self.walk(block) for block in blocks]
        if len(blocks) > 1 and (len(self._accesses) > before or any(ends)):
            self._doubt(Known.ABOUT)
        return bool(ends) and all(ends)

    def _walk_loop(self, statement: ir.For) -> None:
        space = self._space
        start, stop, step = (space.form(expr) for expr in (statement.start, statement.stop, statement.step))
        if start is None or stop is None or step is None or not step.is_constant:
            self._doubt(Known.AT_LEAST)
            self.walk(statement.body)
            return
        by = step.constant
        low, high = space.ranges.bounds(stop.plus(start, -1))
        rounds = 0 if by == 0 else max(0, -(-(high if by > 0 else low) // by))
        if rounds == 0:
            return
        if low != high or any(isinstance(inner, (ir.Return, ir.Break)) for inner in walk(statement.body)):
            self._doubt(Known.ABOUT)  # the invocation with the most rounds counts
        variable = ("loop", id(statement.counter))
        space.ranges.sizes[variable] = rounds
        space.counters[statement.counter] = start.plus(linear(0, {variable: by * (rounds > 1)}))
        around, self._rounds = self._rounds, self._rounds * rounds
        self.walk(statement.body)
        self._rounds = around

    # -- expressions

    def _note_expressions(self, statement: ir.Statement) -> None:
        for expr in ir.nodes(ir.evaluated(statement)):
            if expr.op in _READS:
                self._note(expr, False)
            elif expr.op is ir.Op.RAW:
                self._doubt(Known.AT_LEAST)
            elif expr.op in (ir.Op.SELECT, ir.Op.LOGICAL) and _reads(expr.args[1:]):
                self._doubt(Known.ABOUT)
        if isinstance(statement, ir.ImageStore):
            self._note_index(statement.image, True, statement.coordinate)
        elif isinstance(statement, (ir.Store, ir.MatrixStore)):
            place = ir.root_of(statement.place)
            self._note(place, True)
            if isinstance(statement, ir.Store) and statement.operator is not None:
                self._note(place, False)
        elif isinstance(statement, ir.Declare) and statement.value.op is ir.Op.ATOMIC:
            place = ir.root_of(statement.value.args[0])
            self._note(place, True)
            self._note(place, False)

    def _note(self, place: ir.Expr, writes: bool) -> None:
        if isinstance(place.value, (ir.Storage, ir.ImageBinding)):
            self._note_index(place.value, writes, place.args[0])

    def _note_index(self, resource: Resource, writes: bool, index: ir.Expr) -> None:
        forms = self._space.forms(index)
        if forms is not None:
            self._accesses.add(_Access(resource, writes, forms))
            return
        count = self._rounds * math.prod(self._launch.invocations)
        self._accesses.add(_Access(resource, writes, None, count, id(index)))

    # -- bytes

    def total(self) -> Traffic:
        """Return the bytes of all accesses."""
        groups: dict[tuple[Resource, bool], list[_Access]] = {}
        for access in self._accesses:
            groups.setdefault((access.resource, access.writes), []).append(access)
        totals = {False: 0, True: 0}
        for (resource, writes), accesses in groups.items():
            totals[writes] += self._count_bytes(resource, accesses)
        return Traffic(totals[False], totals[True], self._known)

    def _count_bytes(self, resource: Resource, accesses: list[_Access]) -> int:
        size = self._launch.texels.get(resource.index, 0)
        if isinstance(resource, ir.Storage):
            size = resource.dtype.item_size
        elif not size:
            size = resource.texel.item_size
        indices = [access.forms for access in accesses if access.forms is not None]
        axes = [count_values(set(axis), self._space.ranges) for axis in zip(*indices, strict=False)]
        total = size * sum(access.count for access in accesses)
        if axes:
            total += size * math.prod(count for count, _ in axes)
        most = self._launch.sizes.get(resource.index)
        full = most is not None and total >= most
        certain = full or (all(exact for _, exact in axes) and not dt.is_array(resource.dtype))
        if not certain or len(indices) < len(accesses):
            self._doubt(Known.ABOUT)
        return most if most is not None and full else total
