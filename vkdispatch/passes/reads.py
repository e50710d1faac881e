"""Reads are values: every use of an expression gets the value that Python read.

While a kernel is traced, an expression that reads memory or a register stays an expression, and a `Read`
statement marks where Python evaluated it. If nothing between the mark and a use can change what it reads, the
use evaluates the expression, and the generated code is as short as the Python. Otherwise the `Read` becomes a
declaration, and all uses refer to its register.
"""

import re
from collections.abc import Callable, Iterable, Sequence

from vkdispatch.base.record import record, replace
from vkdispatch.ir import (
    Block,
    Declare,
    Expr,
    For,
    If,
    Op,
    RawStatement,
    RawText,
    Read,
    Register,
    Statement,
    Store,
    While,
    blocks_of,
    evaluated,
    expressions_in,
    is_encoded,
    map_statement,
    nodes,
    postorder,
    root_of,
    walk,
    with_args,
)
from vkdispatch.ir.location import Loc
from vkdispatch.passes.read_search import ReadSearch, operands_of

# The registers that together are a copy: one, or those of the fields of a structure.
Whole = tuple[Register, ...]


@record(eq=False)
class Copy:
    """A change by the user's line of a register that is, or is one of those that are, a copy."""

    register: Register
    registers: Whole
    loc: Loc | None


def acts(statements: Iterable[Statement]) -> bool:
    """Whether statements do more than mark reads."""
    return not all(isinstance(each, Read) and each.register is None for each in statements)


def settle_reads(body: Block, new_name: Callable[[], str]) -> Block:
    """Return the statements of a kernel without `Read`s; `new_name` makes names of registers."""
    search = ReadSearch()
    search.start(body)
    return _Rebuilding(search, new_name).block(body)


def _operands_and_axes(expr: Expr) -> tuple[Expr, ...]:
    if not expr.axes:
        return operands_of(expr)
    return (*operands_of(expr), *(part for axis in expr.axes for part in axis))


class _Rebuilding:
    """Replaces the `Read`s of candidates that need a register by declarations, and their uses."""

    def __init__(self, search: ReadSearch, new_name: Callable[[], str]) -> None:
        self._new_name = new_name
        self._changes = search.changes
        self._names = search.names
        self._staying = {key for key, candidate in search.of_statement.items() if candidate.stays}
        self._expressions: dict[int, Expr] = {}
        self._all_inline = not self._staying and not self._names

    def block(self, block: Block) -> Block:
        """Rebuild the statements of a block."""
        out: list[Statement] = []
        for statement in block:
            kind = type(statement)
            if kind is Declare and self._all_inline:
                out.append(statement)
                continue
            if isinstance(statement, Read):
                out += self._read(statement)
                continue
            if not (isinstance(statement, Store) and statement.update and self._changes_nothing(statement)):
                out.append(self._statement(statement))
        return tuple(out)

    def _read(self, statement: Read) -> Block:
        value, register = statement.value, statement.register
        if register is not None and register in self._changes:
            return (Declare(register, self._expr(value), statement.loc),)
        if id(statement) not in self._staying:
            return ()
        register = register or Register(self._new_name(), value.dtype)
        declared = Declare(register, self._with_operands(value), statement.loc)
        self._expressions[id(value)] = Expr(Op.REGISTER, value.dtype, (), register, value.loc)
        return (declared,)

    def _changes_nothing(self, statement: Store) -> bool:
        """Whether an update changes nothing, as `place *= 1`."""
        value = statement.value
        return value.op is not Op.BINARY and self._expr(value) is value

    def _statement(self, statement: Statement) -> Statement:
        if isinstance(statement, Store) and statement.update:
            return self._update(statement)
        if self._all_inline:
            changed = map_statement(statement, block=self.block)
        else:
            changed = map_statement(statement, self._expr, self.block, self._place)
        if isinstance(changed, If) and isinstance(statement, If):
            return _flatten(changed, statement.orelse)
        return changed

    def _update(self, statement: Store) -> Store:
        """Write `place op= operand` where the place still holds what Python read from it."""
        place, value = self._place(statement.place), statement.value
        if value.op is not Op.BINARY:
            return Store(place, self._expr(value), None, statement.loc)
        before, operand = value.args
        if self._expr(before) is not before or is_encoded(place):
            return Store(place, self._expr(value), None, statement.loc)
        assert isinstance(value.value, str)
        return Store(place, self._expr(operand), value.value, statement.loc)

    def _place(self, place: Expr) -> Expr:
        """Rebuild a place, whose indices are values."""
        if self._all_inline:
            return place
        if place.op in (Op.INDEX, Op.COMPONENT):
            return with_args(place, (self._place(place.args[0]), *map(self._expr, place.args[1:])))
        return self._with_operands(place)

    def _with_operands(self, expr: Expr) -> Expr:
        if self._all_inline:
            return expr
        for operand in _operands_and_axes(expr):
            self._expr(operand)
        return self._rebuild(expr)

    def _expr(self, root: Expr) -> Expr:
        """Rebuild the expression of a value."""
        known = self._expressions
        if self._all_inline:
            return root
        for expr in postorder(root, known, self._rebuilt_operands):
            named = self._names.get(id(expr.value))
            known[id(expr)] = self._rebuild(expr) if named is None else known[id(named)]
        return known[id(root)]

    def _rebuilt_operands(self, expr: Expr) -> tuple[Expr, ...]:
        named = self._names.get(id(expr.value))
        return _operands_and_axes(expr) if named is None else (named,)

    def _rebuild(self, expr: Expr) -> Expr:
        """Rebuild an expression whose operands have been rebuilt."""
        if expr.op is Op.RAW:
            return expr
        known = self._expressions
        changed = with_args(expr, tuple([known[id(arg)] for arg in expr.args]))
        if changed is expr or not expr.axes:
            return changed
        return replace(changed, axes=tuple((known[id(index)], known[id(size)]) for index, size in expr.axes))


def _flatten(statement: If, before: Block | None) -> If:
    """Make an `elif` of an `else` that held reads and one if; `before` is the `else` with its reads."""
    orelse = statement.orelse
    if before is None or orelse is None or len(orelse) != 1 or len(before) == 1:
        return statement
    if not isinstance(orelse[0], If):
        return statement
    inner = orelse[0]
    return If((*statement.branches, *inner.branches), inner.orelse, statement.loc)


def unused_updates(body: Block, updates: Sequence[tuple[Expr, Loc | None]]) -> list[Loc | None]:
    """Return the locations of the values that no statement uses, directly or through registers."""
    if not updates:
        return []
    declared: dict[int, Expr] = {}
    roots: list[Expr] = []
    for statement in walk(body):
        if isinstance(statement, Declare) and statement.value.op is not Op.ATOMIC:
            declared[id(statement.register)] = statement.value
        else:
            roots += evaluated(statement)
    seen: set[int] = set()
    while roots:
        expr = roots.pop()
        if id(expr) not in seen:
            seen.add(id(expr))
            roots += expr.args
            if id(expr.value) in declared:
                roots.append(declared[id(expr.value)])
    return [loc for value, loc in updates if id(value) not in seen]


def unread_copies(body: Block, noted: Sequence[Copy]) -> list[Copy]:
    """Return the changes of copies of which nothing reads the copy, or what is computed from it, afterwards.

    A change of a part of a copy counts as read if any part is. `body` is settled. Of the changes by one line,
    as in a function that is called twice, all have to be unread.
    """
    if not noted:
        return []
    search = _CopySearch(noted)
    search.block(body, search.named_by_raw_text(body))
    found = [copy for copy in noted if repr(copy.loc) not in search.read_at]
    return list({repr(copy.loc): copy for copy in found}.values())


class _CopySearch:
    """Walks a kernel backwards, with the copies that are read later."""

    def __init__(self, noted: Sequence[Copy]) -> None:
        self._whole = {id(part): copy.registers for copy in noted for part in copy.registers}
        self._noted = {(id(copy.register), repr(copy.loc)) for copy in noted}
        self._reads: dict[int, frozenset[Whole]] = {}
        # lines whose changes are read
        self.read_at: set[str] = set()

    def named_by_raw_text(self, body: Block) -> frozenset[Whole]:
        """Return the copies whose names stand in raw GLSL."""
        texts = [each.text for each in walk(body) if isinstance(each, RawStatement)]
        texts += [each.value.text for each in expressions_in(body) if isinstance(each.value, RawText)]
        words = {word for text in texts for word in re.findall(r"\w+", text)}
        wholes = set(self._whole.values())
        return frozenset(whole for whole in wholes if words & {part.name for part in whole})

    def block(self, block: Block, live: frozenset[Whole]) -> frozenset[Whole]:
        """Return what is read at the start of a block or later. Only its declaration begins a copy."""
        for statement in reversed(block):
            live = self._statement(statement, live)
        return live

    def _statement(self, statement: Statement, live: frozenset[Whole]) -> frozenset[Whole]:
        if isinstance(statement, Store):
            register = root_of(statement.place).value
            whole = self._whole.get(id(register))
            if whole is not None and whole not in live:
                return live
            if (id(register), repr(statement.loc)) in self._noted:
                self.read_at.add(repr(statement.loc))
        if isinstance(statement, Declare):
            whole = self._whole.get(id(statement.register))
            return (live if whole is None else live - {whole}) | self._read_by(statement)
        inner = blocks_of(statement)
        if inner:
            live = live.union(*(self.block(each, live) for each in inner), self._read_by(statement))
            if isinstance(statement, (For, While)):
                # a round reads what the one before it changed
                before: frozenset[Whole] = frozenset()
                while live != before:
                    before, live = live, live.union(*(self.block(each, live) for each in inner))
            return live
        return live | self._read_by(statement)

    def _read_by(self, statement: Statement) -> frozenset[Whole]:
        found: frozenset[Whole] = frozenset()
        for root in evaluated(statement):
            reads = self._reads.get(id(root))
            if reads is None:
                registers = (self._whole.get(id(each.value)) for each in nodes((root,)))
                reads = self._reads[id(root)] = frozenset(each for each in registers if each is not None)
            found |= reads
        return found
