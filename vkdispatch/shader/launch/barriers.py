"""A warning about shared memory that invocations read from, or write for, each other without a barrier."""

from collections.abc import Iterator, Sequence

from vkdispatch.analyses.contents import contents, find_operations
from vkdispatch.base.dtype import is_array
from vkdispatch.base.record import record
from vkdispatch.ir.nodes import is_same_place
from vkdispatch.codegen.trace.kernel_warnings import warn_once_each
from vkdispatch.ir import (
    Block,
    Break,
    Continue,
    Declare,
    Effect,
    Expr,
    For,
    If,
    Kernel,
    Op,
    RawStatement,
    Return,
    SharedArray,
    Statement,
    Store,
    Switch,
    While,
    blocks_of,
    evaluated,
    nodes,
    root_of,
)
from vkdispatch.ir.location import Loc
from vkdispatch.shader.launch.shared_indices import Index, Indices, meet
from vkdispatch.shader.launch.size import is_one

# Pairs of accesses that are compared before the search ends: kernels may be unrolled without limit.
_MOST = 50_000
_JUMPS = (Break, Continue, Return)


def check_barriers(kernel: Kernel, local_size: object) -> None:
    """Warn of accesses to shared memory that a barrier has to separate, where no barrier lies between."""
    if not kernel.shared or is_one(local_size):
        return
    found = contents(kernel)
    if any(isinstance(each, RawStatement) for each in found.statements):
        return
    if find_operations(kernel, Op.RAW):
        return
    order = _Order(Indices(kernel, local_size))
    order.follow(kernel.body, (), [])
    late = {(loc.file, loc.line) for loc in order.late if loc}
    early = [loc for loc in order.early if loc and (loc.file, loc.line) not in late]
    for what, places in (
        ("other invocations have stored the element of shared memory that is read here", order.late),
        ("other invocations may still have to read the element of shared memory that is stored here", early),
    ):
        warn_once_each(
            f"{what}, and no barrier lies between: write vc.barrier() before it, where all invocations pass",
            places,
        )


@record(eq=False)
class _Access:
    """An access to shared memory: its place, the branches around it that ids choose, the round of a loop."""

    kind: str  # "load", "store" or "atomic"
    place: Expr
    index: tuple[Index, ...]
    branches: tuple[Expr, ...]
    round: int


class _Order:
    """Accesses in the order of the program. `late` and `early` are places that lack a barrier before them."""

    def __init__(self, indices: Indices) -> None:
        self.late: list[Loc | None] = []
        self.early: list[Loc | None] = []
        self._indices = indices
        self._round = 0
        self._left = _MOST

    def follow(self, block: Block, branches: tuple[Expr, ...], before: list[_Access]) -> list[_Access]:
        """Go through a block. `before`, and the result, are the accesses since the last barrier."""
        for statement in block:
            if self._left < 0:
                return before
            if isinstance(statement, Effect):
                if "arrier" in statement.function:
                    before = []
                continue
            for access in self._accesses(statement, branches):
                self._check(access, before, statement.loc)
                before = [*before, access]
            before = self._follow_inner(statement, branches, before)
        jumps = bool(block) and isinstance(block[-1], _JUMPS)
        return [] if jumps else before

    def _follow_inner(
        self, statement: Statement, branches: tuple[Expr, ...], before: list[_Access]
    ) -> list[_Access]:
        inner = blocks_of(statement)
        if isinstance(statement, (For, While)):
            self._round += 1
            once = self.follow(statement.body, branches, before)
            self._round += 1
            again = self.follow(statement.body, branches, _join(before, once))
            return _join(before, once, again)
        if not isinstance(statement, (If, Switch)):
            for body in inner:
                before = self.follow(body, branches, before)
            return before
        conditions = (
            [each for each, _ in statement.branches] if isinstance(statement, If) else [statement.value]
        )
        own = tuple(each for each in conditions if self._indices.has_id(each))
        ends = [
            self.follow(body, (*branches, *_find_conditions(own, conditions, number)), before)
            for number, body in enumerate(inner)
        ]
        rest = statement.orelse if isinstance(statement, If) else statement.default
        return _join(before, *ends) if rest is None else _join(*ends)

    def _accesses(self, statement: Statement, branches: tuple[Expr, ...]) -> Iterator[_Access]:
        """Yield the accesses of a statement itself, in the order in which they happen."""
        for root in evaluated(statement):
            # `i < 32 and s[i] > s[i + 32]` reads under its own condition
            is_condition = isinstance(statement, If) and self._indices.has_id(root)
            for expr in nodes((root,)):
                if _is_shared(expr):
                    yield self._access("load", expr, (*branches, root) if is_condition else branches)
        if isinstance(statement, Store) and _is_shared(root_of(statement.place)):
            place = root_of(statement.place)
            if statement.operator is not None:
                yield self._access("load", place, branches)
            yield self._access("store", place, branches)
        elif isinstance(statement, Declare) and statement.value.op is Op.ATOMIC:
            place = root_of(statement.value.args[0])
            if _is_shared(place):
                yield self._access("atomic", place, branches)

    def _access(self, kind: str, place: Expr, branches: tuple[Expr, ...]) -> _Access:
        return _Access(kind, place, self._indices.of(place), branches, self._round)

    def _check(self, access: _Access, before: Sequence[_Access], loc: Loc | None) -> None:
        self._left -= len(before) + 1
        earlier = [each for each in before if each.place.value is access.place.value]
        if access.kind == "store":
            loads = [each for each in earlier if each.kind == "load" and not _has_guard(access, each)]
            if any(_means_another(access, each) for each in loads):
                self.early.append(loc)
            return
        stored = [each for each in earlier if each.kind == "store"]
        after_atomic = access.kind == "load" and any(
            each.kind == "atomic" and not _is_together(each, access) for each in earlier
        )
        if any(_is_own(each, access) for each in stored) and not after_atomic:
            return
        if after_atomic or any(_is_read(each, access) for each in stored):
            self.late.append(access.place.loc or loc)


def _has_guard(store: _Access, load: _Access) -> bool:
    """Whether a condition on ids, under which both are, may keep others from reading what is stored."""
    if not load.branches or not _begins(store.branches, load.branches):
        return False
    return _stays(store, load)


def _is_own(store: _Access, access: _Access) -> bool:
    """Whether an access is to what the same invocation stored."""
    if meet(store.index, access.index) == "own":
        return True
    same_round = store.round == access.round and is_same_place(access.place, store.place)
    return same_round and any(index.kind != "free" for index in access.index)


def _is_read(store: _Access, access: _Access) -> bool:
    """Whether a load, or an atomic, reads what other invocations have stored."""
    if _means_another(store, access):
        return True
    # one invocation has stored what all of them read
    one = bool(store.branches) and all(index.kind == "free" for index in store.index)
    within = _begins(access.branches, store.branches)
    return one and not within and is_same_place(access.place, store.place)


def _means_another(store: _Access, access: _Access) -> bool:
    """Whether an access is to elements that other invocations store."""
    found = meet(store.index, access.index)
    together = bool(store.branches) and _is_together(store, access)
    if found == "all":
        # a condition may pick the one invocation that stores this element
        alone = access.branches and all(index.is_number for index in access.index)
        return not alone and not (together and _picks_one(store.branches))
    return found == "shifted" and not together


def _is_shared(expr: Expr) -> bool:
    """Whether an expression is an element of shared memory; of items of arrays too little is known here."""
    return expr.op is Op.ELEMENT and isinstance(expr.value, SharedArray) and not is_array(expr.dtype)


def _find_conditions(own: tuple[Expr, ...], conditions: Sequence[Expr], number: int) -> tuple[Expr, ...]:
    """Conditions on ids that lead to the branch of a number: the last branch has all of them."""
    if not own:
        return ()
    return (conditions[number],) if number < len(conditions) else (*own, own[-1])


def _is_together(a: _Access, b: _Access) -> bool:
    """Whether the same invocations come to both: conditions on a variable change in a loop."""
    return len(a.branches) == len(b.branches) and _begins(a.branches, b.branches) and _stays(a, b)


def _stays(a: _Access, b: _Access) -> bool:
    """Whether the conditions hold for both accesses: those on a variable may change from round to round."""
    return a.round == b.round or not any(node.op is Op.REGISTER for node in nodes(a.branches))


def _begins(a: tuple[Expr, ...], b: tuple[Expr, ...]) -> bool:
    """Whether the branches `a` lie within `b`, as far as conditions are written alike."""
    return len(a) >= len(b) and all(x is y or _is_same(x, y) for x, y in zip(a, b, strict=False))


def _is_same(a: Expr, b: Expr) -> bool:
    if a.op is not b.op or a.value != b.value or len(a.args) != len(b.args):
        return False
    return a is b or all(map(_is_same, a.args, b.args))


def _picks_one(branches: tuple[Expr, ...]) -> bool:
    return any(each.op is Op.COMPARE and each.value == "==" for each in branches)


def _join(*states: list[_Access]) -> list[_Access]:
    return list({id(access): access for state in states for access in state}.values())
