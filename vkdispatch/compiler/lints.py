"""Warnings about kernels that forget that they have many invocations."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from vkdispatch.base.dtype import is_array
from vkdispatch.base.record import record
from vkdispatch.compiler import ir
from vkdispatch.compiler.analyses.contents import contents, find_operations
from vkdispatch.compiler.ir import nodes as nodes
from vkdispatch.compiler.ir.location import Loc, warn, warn_once_each
from vkdispatch.compiler.ir.program import is_alike, is_same_place

# ---- What values are computed from, through the variables of a kernel ------------------------------------


class Origins:
    """Whether values of a kernel are computed from some kind of expression, its sources.

    Indices of what is read from memory do not count. Registers are looked through once for all values, so
    that the work is in proportion to the kernel.
    """

    def __init__(self, kernel: ir.Kernel, is_source: Callable[[ir.Expr], bool]) -> None:
        self.values: dict[ir.Register, list[ir.Expr]] = {}
        for statement in contents(kernel).statements:
            for register, value in ir.assignments_of(statement):
                self.values.setdefault(register, []).append(value)
        self._is_source = is_source
        self._reached = self._find_registers()

    def reaches(self, root: ir.Expr) -> bool:
        """Whether a value is computed from a source."""
        return any(self._is_source(node) or self._is_reached(node) for node in _nodes(root))

    def _is_reached(self, node: ir.Expr) -> bool:
        register = node.value
        return isinstance(register, ir.Register) and (
            register in self._reached or register not in self.values
        )

    def _find_registers(self) -> set[ir.Register]:
        """Return the registers that get a value computed from a source."""
        users: dict[ir.Register, list[ir.Register]] = {}
        waiting: list[ir.Register] = []
        for register, values in self.values.items():
            for node in (node for value in values for node in _nodes(value)):
                if self._is_source(node):
                    waiting.append(register)
                elif isinstance(node.value, ir.Register):
                    users.setdefault(node.value, []).append(register)
        reached: set[ir.Register] = set()
        while waiting:
            register = waiting.pop()
            if register not in reached:
                reached.add(register)
                waiting += users.get(register, ())
        return reached


def _nodes(root: ir.Expr) -> Iterator[ir.Expr]:
    """Yield what a value is computed from, without the indices of elements."""
    return ir.reach((root,), lambda node: () if node.op is ir.Op.ELEMENT else node.args)


# ---- Indices of shared memory ----------------------------------------------------------------------------
#
# Whether an invocation means its own element, that of a neighbour, or any.


_IDS = frozenset((ir.Builtin.GLOBAL_INVOCATION_ID, ir.Builtin.LOCAL_INVOCATION_ID))
_OWN = _IDS | {ir.Builtin.LOCAL_INVOCATION_INDEX, ir.Builtin.SUBGROUP_ID, ir.Builtin.SUBGROUP_INVOCATION_ID}


@record
class Index:
    """The index along one axis.

    Its `kind` is "own" for an id plus an offset, "free" if it holds no id, and else "unknown". `key` tells
    ids apart, which have `span` values. An `offset` that is no number, as in `63 - lane`, is None.
    """

    kind: Literal["own", "free", "unknown"]
    key: tuple[object, ...] = ()
    offset: int | None = 0
    is_number: bool = False
    span: int = 0


_DEFAULT_SPAN = 32
_UNKNOWN = Index("unknown")


def meet(store: tuple[Index, ...], other: tuple[Index, ...]) -> str:
    """Compare the index of a store with that of another access to the same array.

    Returns "own" if an invocation meets its own store, "shifted" if it meets that of a neighbour, "all" if
    many invocations meet one store, "" if that is not known.
    """
    if len(store) != len(other) or all(mine.kind == "free" for mine in store):
        return ""
    found = "own"
    for mine, theirs in zip(store, other, strict=True):
        if mine.kind != "own":
            if mine.kind == "unknown" or mine != theirs:
                found = "" if found == "own" else found
            continue
        if theirs.kind == "free":
            return "all"
        if theirs.kind == "unknown":
            return ""
        if mine.key == theirs.key and mine.offset == theirs.offset:
            found = "" if mine.offset is None else found
        elif mine.key != theirs.key or mine.offset is None or theirs.offset is None:
            found = "shifted" if mine.key == theirs.key or _is_transposed(mine, theirs) else ""
            if not found:
                return ""
        elif abs(mine.offset - theirs.offset) < mine.span:
            found = "shifted"
        else:
            return ""
    return found


def _is_transposed(a: Index, b: Index) -> bool:
    """Whether two indices are different ids, as of t[y, x] and t[x, y]."""
    return len(a.key) == len(b.key) == 1 and a.offset == b.offset == 0


def _is_own(node: ir.Expr) -> bool:
    return node.op is ir.Op.SUBGROUP or node.value in _OWN


class Indices:
    """The indices of a kernel's shared arrays."""

    def __init__(self, kernel: ir.Kernel, local_size: object) -> None:
        size = (local_size,) if isinstance(local_size, int) else local_size
        self._size = tuple(size) if isinstance(size, (tuple, list)) else None
        self._origins = Origins(kernel, _is_own)

    def of(self, place: ir.Expr) -> tuple[Index, ...]:
        """Return the index of an element along each axis."""
        entries = tuple(entry for entry, _ in place.axes) or place.args
        return tuple(map(self._classify, entries))

    def has_id(self, root: ir.Expr) -> bool:
        """Whether a value is computed from ids of the invocation; what is read from memory is not."""
        return self._origins.reaches(root)

    def _classify(self, entry: ir.Expr) -> Index:
        if not self.has_id(entry):
            return Index("free", is_number=entry.op is ir.Op.LITERAL)
        while entry.op is ir.Op.CONSTRUCT and len(entry.args) == 1:
            (entry,) = entry.args
        if isinstance(entry.value, ir.Register):
            # `for j in range(lane, n, 64)` gives each invocation elements of its own
            start = self._classify(self._origins.values[entry.value][0]) if entry.value.counter else _UNKNOWN
            return Index("own", ("loop", entry.value), None) if start.kind == "own" else _UNKNOWN
        ids, offset, rest = self._split(entry)
        if not any(factor == 1 for _, factor in ids):
            return _UNKNOWN
        if rest:
            return Index("own", (ids[0][0],), None) if len(ids) == 1 else _UNKNOWN
        key: tuple[object, ...] = (ids[0][0],) if len(ids) == 1 else tuple(ids)
        return Index("own", key, offset, span=self._span(key))

    def _span(self, key: tuple[object, ...]) -> int:
        """Return how many numbers an id has in a workgroup; a few where the size is not known."""
        if self._size is None:
            return _DEFAULT_SPAN
        axis = str(key[0])[-1]
        along = len(key) == 1 and axis in "xyz"
        return self._size["xyz".index(axis)] if along else math.prod(self._size)

    def _split(self, entry: ir.Expr) -> tuple[list[tuple[object, int]], int, bool]:
        """Take a sum apart: its ids with their factors, its number, and whether it has other parts."""
        ids: list[tuple[object, int]] = []
        offset, rest = 0, False
        waiting = [(entry, 1)]
        while waiting:
            node, factor = waiting.pop()
            key = self._key_of(node)
            if key is not None:
                ids.append((key, factor))
            elif node.op is ir.Op.LITERAL and isinstance(node.value, int):
                offset += factor * node.value
            elif node.op is ir.Op.CONSTRUCT and len(node.args) == 1:
                waiting.append((node.args[0], factor))
            elif node.op is ir.Op.BINARY and node.value in ("+", "-"):
                waiting.append((node.args[0], factor))
                waiting.append((node.args[1], factor if node.value == "+" else -factor))
            elif node.op is ir.Op.BINARY and node.value == "*" and isinstance(node.args[1].value, int):
                waiting.append((node.args[0], factor * node.args[1].value))
            elif node.op is ir.Op.BINARY and node.value == "^" and self._key_of(node.args[0]) is not None:
                ids.append((self._key_of(node.args[0]), 1))
                rest = True
            elif self.has_id(node):
                return [], 0, True
            else:
                rest = True
        if len(ids) == 1 and ids[0][1] == -1:
            return [(ids[0][0], 1)], 0, True
        return sorted(ids, key=repr), offset, rest

    def _key_of(self, node: ir.Expr) -> object:
        """Return what tells an id apart, or None for other values."""
        if node.value is ir.Builtin.LOCAL_INVOCATION_INDEX:
            return node.value
        if node.op is ir.Op.COMPONENT and node.args[0].value in _IDS:
            axis = "xyz".index(str(node.value))
            if self._size is not None and (axis >= len(self._size) or self._size[axis] == 1):
                return None
            return f"{node.args[0].value}.{node.value}"
        return None


# ---- A warning about shared memory that invocations read from --------------------------------------------
#
# Or write for, each other without a barrier.


# Pairs of accesses that are compared before the search ends: kernels may be unrolled without limit.
_MAX_PAIRS = 50_000
_JUMPS = (ir.Break, ir.Continue, ir.Return)


def check_barriers(kernel: ir.Kernel, local_size: object) -> None:
    """Warn of accesses to shared memory that a barrier has to separate, where no barrier lies between."""
    if not kernel.shared or _is_one(local_size):
        return
    found = contents(kernel)
    if any(isinstance(statement, ir.RawStatement) for statement in found.statements):
        return
    if find_operations(kernel, ir.Op.RAW):
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
    place: ir.Expr
    index: tuple[Index, ...]
    branches: tuple[ir.Expr, ...]
    round: int


class _Order:
    """Accesses in the order of the program. `late` and `early` are places that lack a barrier before them."""

    def __init__(self, indices: Indices) -> None:
        self.late: list[Loc | None] = []
        self.early: list[Loc | None] = []
        self._indices = indices
        self._round = 0
        self._left = _MAX_PAIRS

    def follow(self, block: ir.Block, branches: tuple[ir.Expr, ...], before: list[_Access]) -> list[_Access]:
        """Go through a block. `before`, and the result, are the accesses since the last barrier."""
        for statement in block:
            if self._left < 0:
                return before
            if isinstance(statement, ir.Effect):
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
        self, statement: ir.Statement, branches: tuple[ir.Expr, ...], before: list[_Access]
    ) -> list[_Access]:
        inner = ir.blocks_of(statement)
        if isinstance(statement, (ir.For, ir.While)):
            self._round += 1
            once = self.follow(statement.body, branches, before)
            self._round += 1
            again = self.follow(statement.body, branches, _join(before, once))
            return _join(before, once, again)
        if not isinstance(statement, (ir.If, ir.Switch)):
            for body in inner:
                before = self.follow(body, branches, before)
            return before
        conditions = ir.expressions_of(statement)
        on_ids = tuple(condition for condition in conditions if self._indices.has_id(condition))
        ends = [
            self.follow(body, (*branches, *_find_conditions(on_ids, conditions, number)), before)
            for number, body in enumerate(inner)
        ]
        rest = statement.orelse if isinstance(statement, ir.If) else statement.default
        return _join(before, *ends) if rest is None else _join(*ends)

    def _accesses(self, statement: ir.Statement, branches: tuple[ir.Expr, ...]) -> Iterator[_Access]:
        """Yield the accesses of a statement itself, in the order in which they happen."""
        for root in ir.evaluated(statement):
            # `i < 32 and s[i] > s[i + 32]` reads under its own condition
            is_condition = isinstance(statement, ir.If) and self._indices.has_id(root)
            for expr in nodes((root,)):
                if _is_shared(expr):
                    yield self._access("load", expr, (*branches, root) if is_condition else branches)
        if isinstance(statement, ir.Store) and _is_shared(ir.root_of(statement.place)):
            place = ir.root_of(statement.place)
            if statement.operator is not None:
                yield self._access("load", place, branches)
            yield self._access("store", place, branches)
        elif isinstance(statement, ir.Declare) and statement.value.op is ir.Op.ATOMIC:
            place = ir.root_of(statement.value.args[0])
            if _is_shared(place):
                yield self._access("atomic", place, branches)

    def _access(self, kind: str, place: ir.Expr, branches: tuple[ir.Expr, ...]) -> _Access:
        return _Access(kind, place, self._indices.of(place), branches, self._round)

    def _check(self, access: _Access, before: Sequence[_Access], loc: Loc | None) -> None:
        self._left -= len(before) + 1
        earlier = [other for other in before if other.place.value is access.place.value]
        if access.kind == "store":
            loads = [load for load in earlier if load.kind == "load" and not _has_guard(access, load)]
            if any(_means_another(access, load) for load in loads):
                self.early.append(loc)
            return
        stored = [other for other in earlier if other.kind == "store"]
        after_atomic = access.kind == "load" and any(
            other.kind == "atomic" and not _is_together(other, access) for other in earlier
        )
        if any(_is_own_store(store, access) for store in stored) and not after_atomic:
            return
        if after_atomic or any(_is_read(store, access) for store in stored):
            self.late.append(access.place.loc or loc)


def _has_guard(store: _Access, load: _Access) -> bool:
    """Whether a condition on ids, under which both are, may keep others from reading what is stored."""
    return bool(load.branches) and _begins(store.branches, load.branches) and _stays(store, load)


def _is_own_store(store: _Access, access: _Access) -> bool:
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
        one = any(branch.op is ir.Op.COMPARE and branch.value == "==" for branch in store.branches)
        return not alone and not (together and one)
    return found == "shifted" and not together


def _is_shared(expr: ir.Expr) -> bool:
    """Whether an expression is an element of shared memory; of items of arrays too little is known here."""
    return expr.op is ir.Op.ELEMENT and isinstance(expr.value, ir.SharedArray) and not is_array(expr.dtype)


def _find_conditions(
    on_ids: tuple[ir.Expr, ...], conditions: Sequence[ir.Expr], number: int
) -> tuple[ir.Expr, ...]:
    """Conditions on ids that lead to the branch of a number: the last branch has all of them."""
    if not on_ids:
        return ()
    return (conditions[number],) if number < len(conditions) else (*on_ids, on_ids[-1])


def _is_together(a: _Access, b: _Access) -> bool:
    """Whether the same invocations come to both: conditions on a variable change in a loop."""
    return len(a.branches) == len(b.branches) and _begins(a.branches, b.branches) and _stays(a, b)


def _stays(a: _Access, b: _Access) -> bool:
    """Whether the conditions hold for both accesses: those on a variable may change from round to round."""
    return a.round == b.round or not any(node.op is ir.Op.REGISTER for node in nodes(a.branches))


def _begins(a: tuple[ir.Expr, ...], b: tuple[ir.Expr, ...]) -> bool:
    """Whether the branches `a` lie within `b`, as far as conditions are written alike."""
    return len(a) >= len(b) and all(is_alike(x, y) for x, y in zip(a, b, strict=False))


def _join(*states: list[_Access]) -> list[_Access]:
    return list({id(access): access for state in states for access in state}.values())


# ---- Warnings about kernels that forget that they have many invocations ----------------------------------
#
# Lost sums, equal random numbers.


# What an index or a condition is made of that does not tell invocations apart.
_FIXED = frozenset(
    (
        *(ir.Op.LITERAL, ir.Op.ARGUMENT, ir.Op.BINARY, ir.Op.UNARY, ir.Op.CONSTRUCT, ir.Op.COMPONENT),
        *(ir.Op.COMPARE, ir.Op.LOGICAL, ir.Op.SELECT, ir.Op.CALL),
    )
)
_ID_BUILTINS = frozenset(
    (ir.Builtin.GLOBAL_INVOCATION_ID, ir.Builtin.LOCAL_INVOCATION_ID, ir.Builtin.LOCAL_INVOCATION_INDEX)
)
_ORDERS = frozenset(("<", "<=", ">", ">="))
_SYMBOLS = frozenset("+-")


def check_sums(kernel: ir.Kernel, exec_size: object, workgroups: object, local_size: object) -> None:
    """Warn of `out[0] += x[i]` and `counts[x[i]] += 1` in a kernel that tells its invocations apart."""
    if _is_one(exec_size) or (_is_one(workgroups) and _is_one(local_size)):
        return
    if not any(expr.value in _ID_BUILTINS for expr in find_operations(kernel, ir.Op.BUILTIN)):
        return
    stores = (statement for statement in contents(kernel).statements if isinstance(statement, ir.Store))
    if not any(map(_is_sum, stores)):
        return
    sums = _Sums(kernel)
    found = [store for store in sums.find_stores(kernel.body) if _is_sum(store)]
    warn_once_each(
        "every invocation adds to this one element of a buffer, and nothing orders them, so additions are "
        "lost: use vc.atomic_add(buffer[0], value), or vd.sum(x) for the sum of a buffer",
        [store.loc for store in found if sums.is_fixed(store)],
    )
    warn_once_each(
        "invocations that get the same index add to the same element of a buffer, and nothing orders them, "
        "so additions are lost: use vc.atomic_add(buffer[index], value). If no index occurs twice, the sum "
        "is right",
        [store.loc for store in found if sums.is_looked_up(store)],
    )


def check_streams(
    streams: list[Loc | None], exec_size: object, workgroups: object, local_size: object
) -> None:
    """Warn of random numbers that are the same in all invocations, unless there is one."""
    if not (_is_one(exec_size) or (_is_one(workgroups) and _is_one(local_size))):
        warn_once_each(
            "Philox: all invocations draw the same numbers: give each a stream of its own, as in "
            "vc.random.Philox(seed, sequence=vc.global_invocation_id().x), or sequence=0 if that is meant",
            streams,
        )


class _Sums:
    """Stores of a kernel, and whether their index tells invocations apart by more than what they read."""

    def __init__(self, kernel: ir.Kernel) -> None:
        self._origins = Origins(kernel, _may_tell_apart)

    def find_stores(self, block: ir.Block) -> Iterator[ir.Store]:
        """Yield the stores that many invocations may come to: no condition on an id picks one of them."""
        for statement in block:
            if isinstance(statement, ir.Store):
                yield statement
            elif isinstance(statement, ir.If):
                if all(map(self._admits_many, ir.expressions_of(statement))):
                    for inner in ir.blocks_of(statement):
                        yield from self.find_stores(inner)
                elif _returns(statement):
                    return
            elif isinstance(statement, (ir.For, ir.While, ir.Scope)):
                yield from self.find_stores(statement.body)
                if _returns(statement):
                    return

    def is_fixed(self, store: ir.Store) -> bool:
        """Whether all invocations store to the same element."""
        return all(node.op in _FIXED for node in nodes(tuple(ir.place_operands(store.place))))

    def is_looked_up(self, store: ir.Store) -> bool:
        """Whether the index of a store was read from a buffer or counted, and holds no id besides."""
        return not self.is_fixed(store) and not any(
            map(self._origins.reaches, ir.place_operands(store.place))
        )

    def _admits_many(self, condition: ir.Expr) -> bool:
        """Whether a condition depends on what was read, or compares an id with a size."""
        if condition.op is ir.Op.LOGICAL:
            return all(map(self._admits_many, condition.args))
        ordered = condition.op is ir.Op.COMPARE and condition.value in _ORDERS
        if ordered and any(node.op is ir.Op.ARGUMENT for node in nodes(condition.args)):
            return True
        return not self._origins.reaches(condition)


def _returns(statement: ir.Statement) -> bool:
    return any(isinstance(inner, ir.Return) for inner in ir.walk((statement,)))


def _may_tell_apart(node: ir.Expr) -> bool:
    """Whether an expression may have another value in each invocation, besides what is read and variables."""
    if isinstance(node.value, ir.Register):
        return False
    return node.op not in _FIXED and not (node.op is ir.Op.ELEMENT and isinstance(node.value, ir.Storage))


def _is_sum(store: ir.Store) -> bool:
    root = ir.root_of(store.place)
    if root.op is not ir.Op.ELEMENT or not isinstance(root.value, ir.Storage):
        return False
    return store.operator in _SYMBOLS or _is_sum_with(store.value, store.place)


def _is_sum_with(value: ir.Expr, place: ir.Expr) -> bool:
    return value.op is ir.Op.BINARY and value.value in _SYMBOLS and is_same_place(value.args[0], place)


# ---- Warnings about launches whose size does not fit the ids that the kernel reads -----------------------


def check_dimensions(kernel: ir.Kernel, exec_size: object) -> None:
    """Warn if `exec_size` has one number and the kernel reads y, or has two and the kernel reads x only."""
    if not isinstance(exec_size, str):
        return
    text = exec_size.replace(" ", "")
    name = text.partition(".")[0]
    used = _read_axes(kernel)
    if re.fullmatch(r"\w+\.(size|shape\[\d\])", text):
        if "y" in used:
            warn(
                f"exec_size {exec_size!r} counts along x only, so y is 0 in all invocations. Write exec_size "
                f"'{name}.shape[::-1]' for {name}[gid.y, gid.x], or index all elements by {name}[gid.x]",
                used["y"],
            )
    elif text == f"{name}.shape[::-1]" and set(used) == {"x"}:
        warn(
            f"exec_size {exec_size!r} counts along x and y, and the kernel reads x only, so all rows of "
            f"invocations do the same. Write exec_size '{name}.size', or {name}[gid.y, gid.x]",
            used["x"],
        )


def _read_axes(kernel: ir.Kernel) -> dict[str, Loc | None]:
    """Return the components of the global id that a kernel reads, with places; none if it reads other ids."""
    axes: dict[str, Loc | None] = {}
    for expr in contents(kernel).expressions:
        if expr.op is ir.Op.COMPONENT and expr.args[0].value is ir.Builtin.GLOBAL_INVOCATION_ID:
            axes.setdefault(str(expr.value), expr.loc)
            continue
        if any(arg.value is ir.Builtin.GLOBAL_INVOCATION_ID for arg in expr.args):
            return {}
        if expr.op is ir.Op.BUILTIN and expr.value is not ir.Builtin.GLOBAL_INVOCATION_ID:
            return {}
    return axes


def check_orientation(kernel: ir.Kernel, exec_size: object) -> None:
    """Warn if `exec_size` is the shape of a matrix, and the kernel indexes the matrix the other way round."""
    if not isinstance(exec_size, str):
        return
    text = exec_size.replace(" ", "")
    name = text.lstrip("(").partition(".")[0]
    columns = text in (f"{name}.shape[::-1]", f"({name}.shape[1],{name}.shape[0])")
    if not columns and text != f"{name}.shape":
        return
    wrong, right = (("x", "y"), ("y", "x")) if columns else (("y", "x"), ("x", "y"))
    orders: dict[tuple[str, ...], Loc | None] = {}
    for expr in contents(kernel).expressions:
        if isinstance(expr.value, ir.Storage) and expr.value.label == name and len(expr.axes) == 2:
            orders.setdefault(tuple(_letter_of(entry) for entry, _ in expr.axes), expr.loc)
    if wrong not in orders or right in orders:
        return
    size, other = (
        (f"{name}.shape[::-1]", f"{name}.shape") if columns else (f"{name}.shape", f"{name}.shape[::-1]")
    )
    first, second = wrong
    warn(
        f"exec_size {size!r} and {name}[gid.{first}, gid.{second}] do not go together, unless the matrix is "
        f"square: the first number of a size counts along x. Write exec_size {other!r}, or "
        f"{name}[gid.{second}, gid.{first}]",
        orders[wrong],
    )


def _letter_of(entry: ir.Expr) -> str:
    """Return "x" for the x of a global id, or a conversion of it; "" for others."""
    while entry.op is ir.Op.CONSTRUCT and len(entry.args) == 1:
        (entry,) = entry.args
    is_id = entry.op is ir.Op.COMPONENT and entry.args[0].value is ir.Builtin.GLOBAL_INVOCATION_ID
    return str(entry.value) if is_id else ""


def _is_one(size: object) -> bool:
    """Whether a size is known to be of a single invocation, or workgroup."""
    return isinstance(size, (int, tuple)) and size in (1, (1,), (1, 1), (1, 1, 1))
