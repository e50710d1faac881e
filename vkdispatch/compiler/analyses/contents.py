"""Contents of a kernel: its statements, accesses, types, scopes, and the layout of its arguments."""

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from vkdispatch.base import dtype as dt
from vkdispatch.base.derived_dtypes import leaves_of
from vkdispatch.base.errors import UsageError
from vkdispatch.base.record import field, record
from vkdispatch.compiler import ir
from vkdispatch.compiler.forms import (
    INT16,
    PLAIN,
    SHORT_ARGUMENTS,
    STORAGE,
    ArgumentLayout,
    StructElement,
    Variant,
    emulates,
)
from vkdispatch.compiler.ir import evaluated
from vkdispatch.compiler.ir import nodes as nodes
from vkdispatch.compiler.ir.location import Loc, located
from vkdispatch.compiler.ir.names import FreshNames

# ---- Contents of a kernel: its statements and expressions, accesses, types and scopes --------------------


_RESOURCE_NAME = r"\b(?:buf|tex|img)(\d+)\b"
# Operations whose value depends on their operands only, not on memory or on other invocations.
PURE = frozenset(ir.Op) - {
    *(ir.Op.REGISTER, ir.Op.ELEMENT, ir.Op.SUBGROUP, ir.Op.ATOMIC),
    *(ir.Op.SAMPLE, ir.Op.IMAGE_LOAD, ir.Op.RAW),
}


_Fact = TypeVar("_Fact")


def remember(find: Callable[[ir.Kernel], _Fact]) -> Callable[[ir.Kernel], _Fact]:
    """Cache the result of a function of a kernel with the kernel. Callers must not change the result."""

    @functools.wraps(find)
    def known(kernel: ir.Kernel) -> _Fact:
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

    statements: tuple[ir.Statement, ...]
    evaluated: tuple[ir.Expr, ...]
    places: tuple[ir.Expr, ...]

    @property
    def expressions(self) -> tuple[ir.Expr, ...]:
        """All expressions."""
        return self.evaluated + self.places


@remember
def contents(kernel: ir.Kernel) -> Contents:
    """Take a kernel apart."""
    statements = tuple(ir.walk(kernel.body))
    roots: list[ir.Expr] = []
    places: list[ir.Expr] = []
    for statement in statements:
        if isinstance(statement, ir.Store):
            places.append(statement.place)
        elif isinstance(statement, ir.Declare) and statement.value.op is ir.Op.ATOMIC:
            places.append(statement.value)
        elif isinstance(statement, ir.MatrixLoad):
            places.append(statement.matrix)
        elif isinstance(statement, ir.MatrixStore):
            places.append(statement.place)
        roots += evaluated(statement)
    used = ir.sort_operands_first(roots)
    known = set(map(id, used))
    return Contents(statements, tuple(used), tuple([e for e in nodes(places) if id(e) not in known]))


@remember
def _sort_by_operation(kernel: ir.Kernel) -> dict[ir.Op, list[ir.Expr]]:
    found: dict[ir.Op, list[ir.Expr]] = {}
    for expr in contents(kernel).expressions:
        found.setdefault(expr.op, []).append(expr)
    return found


def find_operations(kernel: ir.Kernel, op: ir.Op) -> Sequence[ir.Expr]:
    """Return the expressions of a kernel that are of one kind, operands first, places last."""
    return _sort_by_operation(kernel).get(op, ())


# ---- accesses ------------------------------------------------------------------------------------


@record(eq=False, frozen=False)
class Access:
    """Indices of the resources that a kernel reads and writes."""

    reads: set[int] = field(factory=set)
    writes: set[int] = field(factory=set)


@remember
def resource_access(kernel: ir.Kernel) -> Access:
    """Return what a kernel reads and writes; resources that raw GLSL mentions count as both."""
    access = Access(set(kernel.reads), set(kernel.writes))
    found = contents(kernel)
    for expr in found.evaluated:
        if expr.op not in _READ_NOTHING:
            _note_read(expr, access)
    for statement in found.statements:
        if isinstance(statement, ir.Store):
            _note_written(statement.place, access, also_read=statement.operator is not None)
        elif isinstance(statement, ir.ImageStore):
            access.writes.add(statement.image.index)
        elif isinstance(statement, ir.MatrixStore):
            _note_written(statement.place, access, also_read=False)
        elif isinstance(statement, ir.Declare) and statement.value.op is ir.Op.ATOMIC:
            _note_written(statement.value.args[0], access, also_read=True)
        elif isinstance(statement, ir.RawStatement):
            named = mentioned(statement.text)
            access.reads |= named
            access.writes |= named
    # Sampled images and constant arrays are never written, even if raw GLSL mentions them.
    access.writes -= {r.index for r in kernel.resources if isinstance(r, ir.ImageBinding) and not r.storage}
    access.writes -= {
        r.index for r in kernel.resources if isinstance(r, ir.Storage) and r.constant is not None
    }
    return access


def mentioned(text: str) -> set[int]:
    """Return the positions of the resources that raw GLSL names."""
    return {int(number) for number in re.findall(_RESOURCE_NAME, text)}


# Most expressions. All others may read a resource, or their raw text may.
_READ_NOTHING = frozenset(
    (ir.Op.LITERAL, ir.Op.ARGUMENT, ir.Op.BUILTIN, ir.Op.REGISTER, ir.Op.BINARY, ir.Op.CALL, ir.Op.COMPARE)
)


def _note_read(expr: ir.Expr, access: Access) -> None:
    # its size is no part of what a buffer or image holds
    if isinstance(expr.value, (ir.Storage, ir.ImageBinding)) and expr.op not in (
        ir.Op.LENGTH,
        ir.Op.IMAGE_SIZE,
    ):
        access.reads.add(expr.value.index)
    elif isinstance(expr.value, ir.RawText):
        access.reads |= mentioned(expr.value.text)


def _note_written(place: ir.Expr, access: Access, *, also_read: bool) -> None:
    root = ir.root_of(place)
    touched: set[int] = set()
    if isinstance(root.value, ir.Storage):
        touched = {root.value.index}
    elif isinstance(root.value, ir.RawText):
        touched = {node.value.index for node in nodes((root,)) if isinstance(node.value, ir.Storage)}
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

    dtypes: set[dt.DType] = field(factory=set)
    stored: set[dt.DType] = field(factory=set)
    subgroup_functions: set[str] = field(factory=set)
    subgroup_dtypes: set[dt.DType] = field(factory=set)
    atomics: set[tuple[str, dt.DType, bool]] = field(factory=set)
    addresses: bool = False
    windows: bool = False
    hints: bool = False


@remember
def usage(kernel: ir.Kernel) -> Usage:
    """Collect what a kernel uses."""
    found = Usage()
    found.dtypes.update(member.dtype for member in kernel.arguments)
    found.dtypes.update(array.dtype for array in kernel.shared)
    for buffer in kernel.resources:
        if isinstance(buffer, ir.Storage):
            found.stored.update(dt.item_of(leaf) for _, leaf, _ in leaves_of(buffer.dtype))
    found.dtypes.update(map(dt.compute_type, found.stored))
    for statement in contents(kernel).statements:
        if isinstance(statement, ir.Effect) and statement.function.startswith("subgroup"):
            found.subgroup_functions.add(statement.function)
        elif isinstance(statement, (ir.MatrixLoad, ir.MatrixStore)) and statement.window:
            found.windows = True
        elif (isinstance(statement, ir.While) and statement.rolled) or (
            isinstance(statement, ir.For) and statement.unrolled
        ):
            found.hints = True
    found.dtypes.update([expr.dtype for expr in contents(kernel).expressions])
    for expr in find_operations(kernel, ir.Op.SUBGROUP):
        found.subgroup_functions.add(str(expr.value))
        found.subgroup_dtypes.update(dt.component_type(value.dtype) for value in (expr, *expr.args))
    for expr in find_operations(kernel, ir.Op.ATOMIC):
        shared = isinstance(ir.root_of(expr.args[0]).value, ir.SharedArray)
        found.atomics.add((str(expr.value), expr.dtype, shared))
    for expr in find_operations(kernel, ir.Op.BUILTIN):
        if isinstance(expr.value, ir.Builtin) and "SUBGROUP" in expr.value.name:
            masked = expr.value.name.endswith("_MASK")
            found.subgroup_functions.add("subgroupMask" if masked else "subgroupBuiltin")
    return found


_OF_WORKGROUPS = frozenset(
    (
        ir.Builtin.LOCAL_INVOCATION_ID,
        ir.Builtin.LOCAL_INVOCATION_INDEX,
        ir.Builtin.WORKGROUP_ID,
        ir.Builtin.WORKGROUP_SIZE,
        ir.Builtin.NUM_WORKGROUPS,
        ir.Builtin.NUM_SUBGROUPS,
        ir.Builtin.SUBGROUP_ID,
    )
)


@remember
def depends_on_workgroups(kernel: ir.Kernel) -> bool:
    """Whether results may depend on the size of workgroups; with raw GLSL they may."""
    if kernel.shared or kernel.exec_count is None:
        return True
    found = contents(kernel)
    if any(isinstance(statement, (ir.Effect, ir.RawStatement)) for statement in found.statements):
        return True
    return any(
        expr.op is ir.Op.RAW
        or dt.is_cooperative(expr.dtype)
        or (expr.op is ir.Op.BUILTIN and expr.value in _OF_WORKGROUPS)
        for expr in found.expressions
    )


# ---- scopes --------------------------------------------------------------------------------------


def check_scopes(kernel: ir.Kernel) -> None:
    """Raise RuntimeError if a register, argument or buffer is used where it does not exist."""
    things = (*kernel.arguments, *kernel.resources, *kernel.shared)
    _Scopes(set(map(id, things))).block(kernel.body)


class _Scopes:
    """The things that exist at a statement, and the expressions that use no others, by identity."""

    def __init__(self, known: set[int]) -> None:
        self._known = known
        self._right: set[int] = set()

    def block(self, block: ir.Block, owner: ir.Assert | None = None) -> None:
        """Check a block, and the condition of its `owner`, which may use what the block declares."""
        known = self._known
        declared: list[int] = []
        checked: list[int] = []
        for statement in block:
            if isinstance(statement, ir.Declare):
                self._check(ir.expressions_of(statement), checked, statement)
                register = id(statement.register)
                if register not in known:
                    declared.append(register)
                    known.add(register)
                continue
            if isinstance(statement, ir.Assert):
                self.block(statement.body, statement)
                continue
            self._check(ir.expressions_of(statement), checked, statement)
            if isinstance(statement, ir.ImageStore):
                _check_known(statement.image, known, statement, None)
            counter = id(statement.counter) if isinstance(statement, ir.For) else None
            if counter is not None:
                known.add(counter)
            for inner in ir.blocks_of(statement):
                self.block(inner)
            if counter is not None:
                known.discard(counter)
        if owner is not None:
            self._check((owner.condition,), checked, owner)
        known.difference_update(declared)
        self._right.difference_update(checked)

    def _check(self, roots: Iterable[ir.Expr], checked: list[int], statement: ir.Statement) -> None:
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
_WITHOUT_SCOPE = frozenset((str, int, float, bool, ir.Builtin))


def _check_known(thing: ir.Value, known: set[int], statement: ir.Statement, loc: Loc | None) -> None:
    if type(thing) in _WITHOUT_SCOPE:
        return
    if isinstance(thing, ir.Storage) and thing.whole is not None:
        thing = thing.whole
    if id(thing) not in known and isinstance(
        thing, (ir.Register, ir.Argument, ir.Storage, ir.SharedArray, ir.ImageBinding)
    ):
        what = f"register {thing.name!r}" if isinstance(thing, ir.Register) else repr(thing.name)
        raise located(
            UsageError,
            f"{what} does not exist here: it was made in a block that has ended, or in another kernel",
            statement.loc or loc,
        )


def stored_to(expr: ir.Expr) -> bool:
    """Whether an expression is a place inside a buffer or workgroup memory that holds the value as it is."""
    root = ir.root_of(expr)
    return (
        ir.is_place(root) and isinstance(root.value, (ir.Storage, ir.SharedArray)) and not ir.is_encoded(root)
    )


# ---- Buffers of elements that a device has no storage for: which of a kernel's they are ------------------


def is_lacking(kind: dt.DType, variant: Variant) -> bool:
    """Whether a form of a kernel does without buffers of such elements."""
    scalar = dt.component_type(kind)
    if STORAGE.get(scalar.item_size) in variant.lacks or (scalar is dt.bfloat16 and INT16 in variant.lacks):
        return True
    return scalar.item_size == 2 and emulates(scalar, variant.lacks)


def packed_buffers(kernel: ir.Kernel, variant: Variant) -> frozenset[int]:
    """Return which of a kernel's buffers are words in this form, by position among its resources."""
    return frozenset(
        resource.index
        for resource in kernel.resources
        if isinstance(resource, ir.Storage)
        and any(is_lacking(leaf, variant) for _, leaf, _ in leaves_of(resource.dtype))
    )


def reaches_elements(kernel: ir.Kernel, buffers: frozenset[int]) -> bool:
    """Whether a kernel accesses any of the buffers other than by loading and storing elements."""
    for statement in contents(kernel).statements:
        if isinstance(statement, ir.RawStatement) and mentioned(statement.text) & buffers:
            return True
        if isinstance(statement, (ir.MatrixLoad, ir.MatrixStore)):
            element = statement.source if isinstance(statement, ir.MatrixLoad) else statement.place
            if isinstance(element.value, ir.Storage) and element.value.index in buffers:
                return True
    expressions = contents(kernel).expressions
    return any(
        isinstance(expr.value, ir.RawText) and mentioned(expr.value.text) & buffers for expr in expressions
    )


# ---- Layout of the argument block of a kernel, and bindings of its resources -----------------------------


# Every device takes push constants of this size.
PUSH_CONSTANT_BYTES = 128
GROUP_COUNT = "group_count"


def argument_layout(kernel: ir.Kernel, variant: Variant = PLAIN) -> ArgumentLayout:
    """Lay out a kernel's arguments: largest components first, so that no padding is needed."""
    fields: list[tuple[str, dt.DType]] = [(argument.name, argument.dtype) for argument in kernel.arguments]
    names = FreshNames.of_arguments(kernel)
    addresses: dict[int, str] = {}
    lengths: dict[int, str] = {}
    if variant.addressed:
        buffers = (resource for resource in kernel.resources if isinstance(resource, ir.Storage))
        addresses = {buffer.index: names.claim(f"buf{buffer.index}_address") for buffer in buffers}
        lengths = {index: names.claim(f"buf{index}_bytes") for index in _find_measured(kernel)}
        fields += [(name, dt.uint64) for name in (*addresses.values(), *lengths.values())]
    elif packed := packed_buffers(kernel, variant):
        lengths = {
            index: names.claim(f"buf{index}_bytes") for index in _find_measured(kernel) if index in packed
        }
        fields += [(name, dt.uvec2) for name in lengths.values()]
    # The folded form must bind like the plain one, so the larger of them decides.
    total = sum(kind.item_size for _, kind in fields) + dt.uvec3.item_size
    if variant.folded:
        fields.append((GROUP_COUNT, dt.uvec3))
    fields.sort(key=lambda item: -dt.component_type(item[1]).item_size)
    offsets, size = dt.scalar_layout([(kind, 1) for _, kind in fields])
    members = tuple(
        StructElement(name, kind, 1, offset) for (name, kind), offset in zip(fields, offsets, strict=True)
    )
    by_name = {member.name: member.offset for member in members}
    limit = None if kernel.exec_count is None else by_name[kernel.exec_count.name]
    # a multiple of 4, as push constant ranges need
    size = -(-size // 4) * 4
    group_count = by_name[GROUP_COUNT] if variant.folded else None
    uniform = total > PUSH_CONSTANT_BYTES
    halves: dict[str, int] = {}
    if SHORT_ARGUMENTS in variant.lacks:
        small = [member for member in members if dt.component_type(member.dtype).item_size == 2]
        halves = {member.name: (member.offset - small[0].offset) // 2 for member in small}
    return ArgumentLayout(members, size, uniform, limit, group_count, addresses, lengths, halves)


def _find_measured(kernel: ir.Kernel) -> list[int]:
    """Return the positions of the buffers whose length the kernel reads."""
    lengths = (expr.value for expr in find_operations(kernel, ir.Op.LENGTH))
    return sorted({buffer.index for buffer in lengths if isinstance(buffer, ir.Storage)})


def resource_bindings(kernel: ir.Kernel, layout: ArgumentLayout) -> dict[int, int]:
    """Return the binding of each bound resource, by its position."""
    first = 1 if layout.uniform else 0
    # a view has the index of its buffer
    bound = dict.fromkeys(
        resource.index
        for resource in kernel.resources
        if isinstance(resource, ir.ImageBinding) or resource.index not in layout.addresses
    )
    return {index: first + position for position, index in enumerate(bound)}
