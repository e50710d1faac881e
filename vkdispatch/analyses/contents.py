"""Contents of a kernel: its statements and expressions, accesses, types and scopes."""

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from vkdispatch.base.dtype import DType, component_type, compute_type, is_cooperative, item_of
from vkdispatch.base.errors import UsageError
from vkdispatch.base.record import field, record
from vkdispatch.base.structures import leaves_of
from vkdispatch.ir import (
    Argument,
    Assert,
    Block,
    Builtin,
    Declare,
    Effect,
    Expr,
    For,
    ImageBinding,
    ImageStore,
    Kernel,
    MatrixLoad,
    MatrixStore,
    Op,
    RawStatement,
    RawText,
    Register,
    SharedArray,
    Statement,
    Storage,
    Store,
    Value,
    While,
    blocks_of,
    evaluated,
    expressions_of,
    is_encoded,
    is_place,
    nodes,
    root_of,
    sort_operands_first,
    walk,
)
from vkdispatch.ir.location import Loc, located

_RESOURCE_NAME = r"\b(?:buf|tex|img)(\d+)\b"
# Operations whose value depends on their operands only.
PURE = frozenset(
    (
        Op.LITERAL,
        Op.ARGUMENT,
        Op.BUILTIN,
        Op.INDEX,
        Op.COMPONENT,
        Op.SWIZZLE,
        Op.UNARY,
        Op.BINARY,
        Op.COMPARE,
        Op.LOGICAL,
        Op.SELECT,
        Op.LENGTH,
        Op.CALL,
        Op.CONSTRUCT,
        Op.IMAGE_SIZE,
    )
)


_Fact = TypeVar("_Fact")


def remember(find: Callable[[Kernel], _Fact]) -> Callable[[Kernel], _Fact]:
    """Cache the result of a function of a kernel with the kernel. Callers must not change the result."""

    @functools.wraps(find)
    def known(kernel: Kernel) -> _Fact:
        facts = kernel.facts
        if find not in facts:
            facts[find] = find(kernel)
        fact: _Fact = facts[find]
        return fact

    return known


@record
class Contents:
    """All statements of a kernel in program order, and its expressions, each object once.

    `evaluated` are the expressions whose value is used, operands first; `places` are only stored to.
    """

    statements: tuple[Statement, ...]
    evaluated: tuple[Expr, ...]
    places: tuple[Expr, ...]

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """All expressions."""
        return self.evaluated + self.places


@remember
def contents(kernel: Kernel) -> Contents:
    """Take a kernel apart."""
    statements = tuple(walk(kernel.body))
    roots: list[Expr] = []
    places: list[Expr] = []
    for statement in statements:
        if isinstance(statement, Store):
            places.append(statement.place)
        elif isinstance(statement, Declare) and statement.value.op is Op.ATOMIC:
            places.append(statement.value)
        elif isinstance(statement, MatrixLoad):
            places.append(statement.matrix)
        elif isinstance(statement, MatrixStore):
            places.append(statement.place)
        roots += evaluated(statement)
    used = sort_operands_first(roots)
    known = set(map(id, used))
    return Contents(statements, tuple(used), tuple([e for e in nodes(places) if id(e) not in known]))


@remember
def _sort_by_operation(kernel: Kernel) -> dict[Op, list[Expr]]:
    found: dict[Op, list[Expr]] = {}
    for expr in contents(kernel).expressions:
        found.setdefault(expr.op, []).append(expr)
    return found


def find_operations(kernel: Kernel, op: Op) -> Sequence[Expr]:
    """Return the expressions of a kernel that are of one kind, operands first, places last."""
    return _sort_by_operation(kernel).get(op, ())


# ---- accesses ------------------------------------------------------------------------------------


@record(eq=False, frozen=False)
class Access:
    """Indices of the resources that a kernel reads and writes."""

    reads: set[int] = field(factory=set)
    writes: set[int] = field(factory=set)


@remember
def resource_access(kernel: Kernel) -> Access:
    """Return what a kernel reads and writes; resources that raw GLSL mentions count as both."""
    access = Access(set(kernel.reads), set(kernel.writes))
    found = contents(kernel)
    for expr in found.evaluated:
        if expr.op not in _READ_NOTHING:
            _note_read(expr, access)
    for statement in found.statements:
        if isinstance(statement, Store):
            _note_written(statement.place, access, also_read=statement.operator is not None)
        elif isinstance(statement, ImageStore):
            access.writes.add(statement.image.index)
        elif isinstance(statement, MatrixStore):
            _note_written(statement.place, access, also_read=False)
        elif isinstance(statement, Declare) and statement.value.op is Op.ATOMIC:
            _note_written(statement.value.args[0], access, also_read=True)
        elif isinstance(statement, RawStatement):
            named = mentioned(statement.text)
            access.reads |= named
            access.writes |= named
    # Sampled images and constant arrays are never written, even if raw GLSL mentions them.
    access.writes -= {r.index for r in kernel.resources if isinstance(r, ImageBinding) and not r.storage}
    access.writes -= {r.index for r in kernel.resources if isinstance(r, Storage) and r.constant is not None}
    return access


def mentioned(text: str) -> set[int]:
    """Return the positions of the resources that raw GLSL names."""
    return {int(number) for number in re.findall(_RESOURCE_NAME, text)}


# Most expressions. All others may read a resource, or their raw text may.
_READ_NOTHING = frozenset((Op.LITERAL, Op.ARGUMENT, Op.BUILTIN, Op.REGISTER, Op.BINARY, Op.CALL, Op.COMPARE))


def _note_read(expr: Expr, access: Access) -> None:
    # its size is no part of what a buffer or image holds
    if isinstance(expr.value, (Storage, ImageBinding)) and expr.op not in (Op.LENGTH, Op.IMAGE_SIZE):
        access.reads.add(expr.value.index)
    elif isinstance(expr.value, RawText):
        access.reads |= mentioned(expr.value.text)


def _note_written(place: Expr, access: Access, *, also_read: bool) -> None:
    root = root_of(place)
    touched: set[int] = set()
    if isinstance(root.value, Storage):
        touched = {root.value.index}
    elif isinstance(root.value, RawText):
        touched = {node.value.index for node in nodes((root,)) if isinstance(node.value, Storage)}
        touched |= mentioned(root.value.text)
    access.writes |= touched
    if also_read:
        access.reads |= touched


# ---- types and features --------------------------------------------------------------------------


@record(eq=False, frozen=False)
class Usage:
    """Types, functions and features that a kernel uses; GLSL extensions follow from them.

    Attributes
    ----------
    dtypes, stored
        Types that it computes with, and types in its buffers.
    subgroup_functions, subgroup_dtypes
        Subgroup functions, and the scalar types that they exchange.
    atomics
        (GLSL function, type, whether in workgroup memory) of atomic operations.
    addresses
        Whether buffers are accessed by device address.
    windows
        Whether cooperative matrices are windows of larger matrices.
    hints
        Whether loops have hints for compilers.
    """

    dtypes: set[DType] = field(factory=set)
    stored: set[DType] = field(factory=set)
    subgroup_functions: set[str] = field(factory=set)
    subgroup_dtypes: set[DType] = field(factory=set)
    atomics: set[tuple[str, DType, bool]] = field(factory=set)
    addresses: bool = False
    windows: bool = False
    hints: bool = False


@remember
def usage(kernel: Kernel) -> Usage:
    """Collect what a kernel uses."""
    found = Usage()
    found.dtypes.update(member.dtype for member in kernel.arguments)
    found.dtypes.update(array.dtype for array in kernel.shared)
    for buffer in kernel.resources:
        if isinstance(buffer, Storage):
            found.stored.update(item_of(leaf) for _, leaf, _ in leaves_of(buffer.dtype))
    found.dtypes.update(map(compute_type, found.stored))
    for statement in contents(kernel).statements:
        if isinstance(statement, Effect) and statement.function.startswith("subgroup"):
            found.subgroup_functions.add(statement.function)
        elif isinstance(statement, (MatrixLoad, MatrixStore)) and statement.window:
            found.windows = True
        elif (isinstance(statement, While) and statement.rolled) or (
            isinstance(statement, For) and statement.unrolled
        ):
            found.hints = True
    found.dtypes.update([expr.dtype for expr in contents(kernel).expressions])
    for expr in find_operations(kernel, Op.SUBGROUP):
        found.subgroup_functions.add(str(expr.value))
        found.subgroup_dtypes.update(component_type(value.dtype) for value in (expr, *expr.args))
    for expr in find_operations(kernel, Op.ATOMIC):
        found.atomics.add((str(expr.value), expr.dtype, _is_shared(expr.args[0])))
    for expr in find_operations(kernel, Op.BUILTIN):
        if isinstance(expr.value, Builtin) and "SUBGROUP" in expr.value.name:
            masked = expr.value.name.endswith("_MASK")
            found.subgroup_functions.add("subgroupMask" if masked else "subgroupBuiltin")
    return found


_OF_WORKGROUPS = frozenset(
    (
        Builtin.LOCAL_INVOCATION_ID,
        Builtin.LOCAL_INVOCATION_INDEX,
        Builtin.WORKGROUP_ID,
        Builtin.WORKGROUP_SIZE,
        Builtin.NUM_WORKGROUPS,
        Builtin.NUM_SUBGROUPS,
        Builtin.SUBGROUP_ID,
    )
)


@remember
def depends_on_workgroups(kernel: Kernel) -> bool:
    """Whether results may depend on the size of workgroups; with raw GLSL they may."""
    if kernel.shared or kernel.exec_count is None:
        return True
    found = contents(kernel)
    if any(isinstance(statement, (Effect, RawStatement)) for statement in found.statements):
        return True
    return any(
        expr.op is Op.RAW
        or is_cooperative(expr.dtype)
        or (expr.op is Op.BUILTIN and expr.value in _OF_WORKGROUPS)
        for expr in found.expressions
    )


def _is_shared(place: Expr) -> bool:
    return isinstance(root_of(place).value, SharedArray)


# ---- scopes --------------------------------------------------------------------------------------


def check_scopes(kernel: Kernel) -> None:
    """Raise RuntimeError if a register, argument or buffer is used where it does not exist."""
    things = (*kernel.arguments, *kernel.resources, *kernel.shared)
    _Scopes(set(map(id, things))).block(kernel.body)


class _Scopes:
    """The things that exist at a statement, and the expressions that use no others, by identity."""

    def __init__(self, known: set[int]) -> None:
        self._known = known
        self._right: set[int] = set()

    def block(self, block: Block, owner: Assert | None = None) -> None:
        """Check a block, and the condition of its `owner`, which may use what the block declares."""
        known = self._known
        declared: list[int] = []
        checked: list[int] = []
        for statement in block:
            if isinstance(statement, Declare):
                self._check(expressions_of(statement), checked, statement)
                register = id(statement.register)
                if register not in known:
                    declared.append(register)
                    known.add(register)
                continue
            if isinstance(statement, Assert):
                self.block(statement.body, statement)
                continue
            self._check(expressions_of(statement), checked, statement)
            if isinstance(statement, ImageStore):
                _check_known(statement.image, known, statement, None)
            counter = id(statement.counter) if isinstance(statement, For) else None
            if counter is not None:
                known.add(counter)
            for inner in blocks_of(statement):
                self.block(inner)
            if counter is not None:
                known.discard(counter)
        if owner is not None:
            self._check((owner.condition,), checked, owner)
        known.difference_update(declared)
        self._right.difference_update(checked)

    def _check(self, roots: Iterable[Expr], checked: list[int], statement: Statement) -> None:
        """Check the expressions of a statement, and list those that had not been."""
        known, right = self._known, self._right
        stack = [root for root in roots if id(root) not in right]
        while stack:
            expr = stack.pop()
            if id(expr) not in right:
                right.add(id(expr))
                checked.append(id(expr))
                if expr.args:
                    stack += expr.args
                if expr.value is not None and id(expr.value) not in known:
                    _check_known(expr.value, known, statement, expr.loc)


# What most expressions hold.
_WITHOUT_SCOPE = frozenset((str, int, float, bool, Builtin))


def _check_known(thing: Value, known: set[int], statement: Statement, loc: Loc | None) -> None:
    if type(thing) in _WITHOUT_SCOPE:
        return
    if isinstance(thing, Storage) and thing.whole is not None:
        thing = thing.whole
    if id(thing) not in known and isinstance(thing, (Register, Argument, Storage, SharedArray, ImageBinding)):
        what = f"register {thing.name!r}" if isinstance(thing, Register) else repr(thing.name)
        raise located(
            UsageError,
            f"{what} does not exist here: it was made in a block that has ended, or in another kernel",
            statement.loc or loc,
        )


def stored_to(expr: Expr) -> bool:
    """Whether an expression is a place inside a buffer or workgroup memory that holds the value as it is."""
    root = root_of(expr)
    return is_place(root) and isinstance(root.value, (Storage, SharedArray)) and not is_encoded(root)
