"""Reads are values: every use of an expression gets the value that Python read."""

import re
from collections.abc import Callable, Iterable, Sequence

from vkdispatch.base.dtype import memory_type
from vkdispatch.base.record import record, replace
from vkdispatch.compiler import ir
from vkdispatch.compiler.ir import nodes as nodes
from vkdispatch.compiler.ir.location import Loc

# ---- Finds the values that Python read and that may change before their last use -------------------------


# Units of memory that statements change and expressions read: a register or a shared array, as itself; all
# buffers with components of one type, since a call may pass one of them twice; all images of one type; and
# these two.
_Memory = object
_SHARED = "what other invocations reach"
_ANYTHING = "anything"

_NEVER = 1 << 62
_NO_MEMORY: frozenset[_Memory] = frozenset()


@record(eq=False, frozen=False)
class _Candidate:
    """An expression that Python read after `time` changes of memory.

    `stays` if it needs a register, because memory changes before a use.
    """

    value: ir.Expr
    time: int
    memory: frozenset[_Memory]
    stays: bool = False


@record
class _Summary:
    """The memory that a tree reads.

    `loose` is read outside of candidates. `memory` is read by its candidates, the earliest of which was read
    after `oldest` changes.
    """

    loose: frozenset[_Memory] = _NO_MEMORY
    memory: frozenset[_Memory] = _NO_MEMORY
    oldest: int = _NEVER


_NOTHING = _Summary()


class ReadSearch:
    """Walks a kernel in program order, and marks candidates whose memory changes before a use."""

    def __init__(self) -> None:
        # memory that some statement of the kernel may change
        self.changes: frozenset[_Memory] = _NO_MEMORY
        # values of the registers of local variables that nothing assigns to
        self.names: dict[int, ir.Expr] = {}
        self.candidates: dict[int, _Candidate] = {}
        self.of_statement: dict[int, _Candidate] = {}
        # memory that candidates read, and whether any of it changed after the read, which is rare
        self._watched: set[_Memory] = set()
        self._any_stale = False
        self._clock = 0
        # time of the last change of each memory, up to the current statement
        self._changed: dict[_Memory, int] = {}
        # former entries of `_changed`, to undo the changes of a branch
        self._log: list[tuple[_Memory, int]] = []
        self._effects: dict[int, frozenset[_Memory]] = {}
        self._summaries: dict[int, _Summary] = {}
        # by what an expression reads and how: the memory in it that changes
        self._changing: dict[tuple[int, ir.Op], frozenset[_Memory]] = {}

    def start(self, body: ir.Block) -> None:
        """Search a whole kernel."""
        self.changes = self._effects_of(body)
        self.block(body)

    def block(self, block: ir.Block) -> None:
        """Search statements in order."""
        for statement in block:
            kind = type(statement)
            if kind is ir.Read:
                self._read(statement)  # type: ignore[arg-type]
                continue
            if isinstance(statement, (ir.While, ir.For)):
                self._loop(statement)
                continue
            if self._any_stale:
                self._use(ir.evaluated(statement))
            if kind is ir.Declare or kind is ir.Store:
                # most statements are
                pass
            elif isinstance(statement, (ir.If, ir.Switch)):
                self._branches(ir.blocks_of(statement))
            elif isinstance(statement, (ir.Scope, ir.Assert)):
                self.block(statement.body)
            self._change(_effects_of_statement(statement))

    def _loop(self, statement: ir.While | ir.For) -> None:
        if isinstance(statement, ir.For):
            self._use(ir.evaluated(statement))
        # a round sees the changes of the rounds before it
        self._change(self._effects_of(statement.body))
        if isinstance(statement, ir.While):
            self._use(ir.evaluated(statement))
        self.block(statement.body)

    def _branches(self, blocks: Iterable[ir.Block]) -> None:
        ends: dict[_Memory, int] = {}
        for block in blocks:
            begin = len(self._log)
            self.block(block)
            for memory, _ in self._log[begin:]:
                ends[memory] = max(ends.get(memory, 0), self._changed[memory])
            while len(self._log) > begin:
                memory, before = self._log.pop()
                self._changed[memory] = before
        for memory, time in ends.items():
            self._set(memory, time)

    def _change(self, memories: Iterable[_Memory]) -> None:
        for memory in memories:
            self._clock += 1
            self._set(memory, self._clock)
            self._any_stale |= memory in self._watched

    def _set(self, memory: _Memory, time: int) -> None:
        self._log.append((memory, self._changed.get(memory, 0)))
        self._changed[memory] = time

    def _effects_of(self, block: ir.Block) -> frozenset[_Memory]:
        """Return the memory that a block may change."""
        known = self._effects.get(id(block))
        if known is None:
            found: set[_Memory] = set()
            for statement in block:
                kind = type(statement)
                if kind is ir.Read:
                    continue
                found.update(_effects_of_statement(statement))
                for inner in () if kind is ir.Declare or kind is ir.Store else ir.blocks_of(statement):
                    found |= self._effects_of(inner)
            known = self._effects[id(block)] = frozenset(found)
        return known

    # -- reads and uses

    def _read(self, statement: ir.Read) -> None:
        value, register = statement.value, statement.register
        if register is not None:
            if register in self.changes:
                self._use((value,))
                return
            self.names[id(register)] = value
        if id(value) in self.candidates:
            return
        if value.op is ir.Op.REGISTER and value.value not in self.changes and _ANYTHING not in self.changes:
            # as most registers are
            return
        # a declaration here would use them
        self._use(value.args)
        memory = self._find_changing(value)
        for arg in value.args:
            memory = _union(memory, self._summary(arg).loose)
        if not memory:
            return
        self._watched |= memory
        candidate = _Candidate(value, self._clock, memory)
        self.candidates[id(value)] = self.of_statement[id(statement)] = candidate
        self._summaries[id(value)] = self._of_candidate(candidate)

    def _use(self, roots: Iterable[ir.Expr]) -> None:
        """Mark the candidates in these trees whose memory has changed since they were read."""
        for root in roots if self._any_stale else ():
            if self._is_stale(self._summary(root)):
                self._settle(root)

    def _settle(self, root: ir.Expr) -> None:
        stack, order, seen = [root], [], set()
        while stack:
            expr = stack.pop()
            if id(expr) in seen or not self._is_stale(self._summary(expr)):
                continue
            seen.add(id(expr))
            order.append(expr)
            candidate = self.candidates.get(id(expr))
            if candidate is not None and self._has_changed(candidate.memory, candidate.time):
                candidate.stays = True
            else:
                stack += self._operands(expr)
        for expr in reversed(order):
            self._summaries[id(expr)] = self._summarize(expr)

    def _is_stale(self, summary: _Summary) -> bool:
        return summary.oldest < self._clock and self._has_changed(summary.memory, summary.oldest)

    def _has_changed(self, memory: frozenset[_Memory], time: int) -> bool:
        changed = self._changed
        return any(changed.get(unit, 0) > time for unit in memory)

    # -- what trees read

    def _summary(self, root: ir.Expr) -> _Summary:
        summaries = self._summaries
        found = summaries.get(id(root))
        if found is not None:
            return found
        for expr in ir.postorder(root, summaries, self._operands):
            summaries[id(expr)] = self._summarize(expr)
        return summaries[id(root)]

    def _summarize(self, expr: ir.Expr) -> _Summary:
        candidate = self.candidates.get(id(expr))
        if candidate is not None:
            return self._of_candidate(candidate)
        summaries = self._summaries
        parts = [summaries[id(arg)] for arg in self._operands(expr)]
        loose = self._find_changing(expr)
        if not loose:
            distinct = {id(part): part for part in parts if part is not _NOTHING}
            if len(distinct) <= 1:
                return next(iter(distinct.values()), _NOTHING)
        memory, oldest = _NO_MEMORY, _NEVER
        for part in parts:
            loose, memory = _union(loose, part.loose), _union(memory, part.memory)
            oldest = min(oldest, part.oldest)
        return _Summary(loose, memory, oldest)

    def _of_candidate(self, candidate: _Candidate) -> _Summary:
        if candidate.stays:
            return _NOTHING
        memory, oldest = candidate.memory, candidate.time
        for arg in candidate.value.args:
            part = self._summaries[id(arg)]
            memory, oldest = _union(memory, part.memory), min(oldest, part.oldest)
        return _Summary(_NO_MEMORY, memory, oldest)

    def _find_changing(self, expr: ir.Expr) -> frozenset[_Memory]:
        """Return the memory that a node itself reads and that some statement changes."""
        if expr.op not in _READING:
            return _NO_MEMORY
        key = (id(expr.value), expr.op)
        known = self._changing.get(key)
        if known is None:
            known = self._changing[key] = _find_memory(expr) & self.changes
        return known

    def _operands(self, expr: ir.Expr) -> tuple[ir.Expr, ...]:
        if expr.op is ir.Op.REGISTER or expr.op is ir.Op.LENGTH:
            named = self.names.get(id(expr.value))
            if named is not None:
                return (named,)
        return operands_of(expr)


def _union(a: frozenset[_Memory], b: frozenset[_Memory]) -> frozenset[_Memory]:
    return a if a is b or not b else b if not a else a | b


def operands_of(expr: ir.Expr) -> tuple[ir.Expr, ...]:
    """Return the operands that are values; raw GLSL evaluates what it mentions when it runs."""
    return () if expr.op is ir.Op.RAW else expr.args


# Operations that may read memory.
_READING = frozenset((ir.Op.REGISTER, ir.Op.ELEMENT, ir.Op.IMAGE_LOAD))


def _find_memory(expr: ir.Expr) -> frozenset[_Memory]:
    """Return the memory that a node itself reads."""
    value = expr.value
    if expr.op is ir.Op.REGISTER:
        return frozenset((value, _ANYTHING))
    if expr.op is ir.Op.ELEMENT and not ir.is_constant(expr):
        assert isinstance(value, (ir.Storage, ir.SharedArray))
        return frozenset((_memory_of(value), _SHARED, _ANYTHING))
    if expr.op is ir.Op.IMAGE_LOAD and isinstance(value, ir.ImageBinding) and value.storage:
        return frozenset((_memory_of(value), _SHARED, _ANYTHING))
    return _NO_MEMORY


def _memory_of(thing: object) -> _Memory:
    if isinstance(thing, ir.Storage):
        # the fields of a structure do not overlap
        return ("buffer", memory_type((thing.whole or thing).dtype), thing.path)
    if isinstance(thing, ir.ImageBinding):
        return ("image", thing.dtype)
    return thing


def _effects_of_statement(statement: ir.Statement) -> tuple[_Memory, ...]:
    """Return the memory that a statement itself may change."""
    if isinstance(statement, ir.Declare):
        if statement.value.op is not ir.Op.ATOMIC:
            return ()
        return (_memory_of(ir.root_of(statement.value.args[0]).value),)
    if isinstance(statement, ir.Store):
        root = ir.root_of(statement.place)
        return (_ANYTHING,) if root.op is ir.Op.RAW else (_memory_of(root.value),)
    if isinstance(statement, ir.ImageStore):
        return (_memory_of(statement.image),)
    if isinstance(statement, ir.MatrixLoad):
        return (_memory_of(ir.root_of(statement.matrix).value),)
    if isinstance(statement, ir.MatrixStore):
        return (_memory_of(ir.root_of(statement.place).value),)
    if isinstance(statement, ir.Effect):
        return (_SHARED,)
    return (_ANYTHING,) if isinstance(statement, ir.RawStatement) else ()


# While a kernel is traced, an expression that reads memory or a register stays an expression, and a `Read`
# statement marks where Python evaluated it. If nothing between the mark and a use can change what it reads,
# the use evaluates the expression, and the generated code is as short as the Python. Otherwise the `Read`
# becomes a declaration, and all uses refer to its register.


# The registers that together are a copy: one, or those of the fields of a structure.
Whole = tuple[ir.Register, ...]


@record(eq=False)
class Copy:
    """A change by the user's line of a register that is, or is one of those that are, a copy."""

    register: ir.Register
    registers: Whole
    loc: Loc | None


def acts(statements: Iterable[ir.Statement]) -> bool:
    """Whether statements do more than mark reads."""
    return not all(isinstance(statement, ir.Read) and statement.register is None for statement in statements)


def settle_reads(body: ir.Block, new_name: Callable[[], str]) -> ir.Block:
    """Return the statements of a kernel without `Read`s; `new_name` makes names of registers."""
    search = ReadSearch()
    search.start(body)
    return _Rebuilding(search, new_name).block(body)


def _operands_and_axes(expr: ir.Expr) -> tuple[ir.Expr, ...]:
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
        self._expressions: dict[int, ir.Expr] = {}
        self._all_inline = not self._staying and not self._names

    def block(self, block: ir.Block) -> ir.Block:
        """Rebuild the statements of a block."""
        out: list[ir.Statement] = []
        for statement in block:
            kind = type(statement)
            if kind is ir.Declare and self._all_inline:
                out.append(statement)
                continue
            if isinstance(statement, ir.Read):
                out += self._read(statement)
                continue
            if not (
                isinstance(statement, ir.Store) and statement.update and self._changes_nothing(statement)
            ):
                out.append(self._statement(statement))
        return tuple(out)

    def _read(self, statement: ir.Read) -> ir.Block:
        value, register = statement.value, statement.register
        if register is not None and register in self._changes:
            return (ir.Declare(register, self._expr(value), statement.loc),)
        if id(statement) not in self._staying:
            return ()
        register = register or ir.Register(self._new_name(), value.dtype)
        declared = ir.Declare(register, self._with_operands(value), statement.loc)
        self._expressions[id(value)] = ir.Expr(ir.Op.REGISTER, value.dtype, (), register, value.loc)
        return (declared,)

    def _changes_nothing(self, statement: ir.Store) -> bool:
        """Whether an update changes nothing, as `place *= 1`."""
        value = statement.value
        return value.op is not ir.Op.BINARY and self._expr(value) is value

    def _statement(self, statement: ir.Statement) -> ir.Statement:
        if isinstance(statement, ir.Store) and statement.update:
            return self._update(statement)
        if self._all_inline:
            changed = ir.map_statement(statement, block=self.block)
        else:
            changed = ir.map_statement(statement, self._expr, self.block, self._place)
        if isinstance(changed, ir.If) and isinstance(statement, ir.If):
            return _flatten(changed, statement.orelse)
        return changed

    def _update(self, statement: ir.Store) -> ir.Store:
        """Write `place op= operand` where the place still holds what Python read from it."""
        place, value = self._place(statement.place), statement.value
        if value.op is not ir.Op.BINARY:
            return ir.Store(place, self._expr(value), None, statement.loc)
        before, operand = value.args
        if self._expr(before) is not before or ir.is_encoded(place):
            return ir.Store(place, self._expr(value), None, statement.loc)
        assert isinstance(value.value, str)
        return ir.Store(place, self._expr(operand), value.value, statement.loc)

    def _place(self, place: ir.Expr) -> ir.Expr:
        """Rebuild a place, whose indices are values."""
        if self._all_inline:
            return place
        if place.op in (ir.Op.INDEX, ir.Op.COMPONENT):
            return ir.with_args(place, (self._place(place.args[0]), *map(self._expr, place.args[1:])))
        return self._with_operands(place)

    def _with_operands(self, expr: ir.Expr) -> ir.Expr:
        if self._all_inline:
            return expr
        for operand in _operands_and_axes(expr):
            self._expr(operand)
        return self._rebuild(expr)

    def _expr(self, root: ir.Expr) -> ir.Expr:
        """Rebuild the expression of a value."""
        known = self._expressions
        if self._all_inline:
            return root
        for expr in ir.postorder(root, known, self._rebuilt_operands):
            named = self._names.get(id(expr.value))
            known[id(expr)] = self._rebuild(expr) if named is None else known[id(named)]
        return known[id(root)]

    def _rebuilt_operands(self, expr: ir.Expr) -> tuple[ir.Expr, ...]:
        named = self._names.get(id(expr.value))
        return _operands_and_axes(expr) if named is None else (named,)

    def _rebuild(self, expr: ir.Expr) -> ir.Expr:
        """Rebuild an expression whose operands have been rebuilt."""
        if expr.op is ir.Op.RAW:
            return expr
        known = self._expressions
        changed = ir.with_args(expr, tuple([known[id(arg)] for arg in expr.args]))
        if changed is expr or not expr.axes:
            return changed
        return replace(changed, axes=tuple((known[id(index)], known[id(size)]) for index, size in expr.axes))


def _flatten(statement: ir.If, before: ir.Block | None) -> ir.If:
    """Make an `elif` of an `else` that held reads and one if; `before` is the `else` with its reads."""
    orelse = statement.orelse
    if before is None or orelse is None or len(orelse) != 1 or len(before) == 1:
        return statement
    if not isinstance(orelse[0], ir.If):
        return statement
    inner = orelse[0]
    return ir.If((*statement.branches, *inner.branches), inner.orelse, statement.loc)


def unused_updates(body: ir.Block, updates: Sequence[tuple[ir.Expr, Loc | None]]) -> list[Loc | None]:
    """Return the locations of the values that no statement uses, directly or through registers."""
    if not updates:
        return []
    declared: dict[int, ir.Expr] = {}
    roots: list[ir.Expr] = []
    for statement in ir.walk(body):
        if isinstance(statement, ir.Declare) and statement.value.op is not ir.Op.ATOMIC:
            declared[id(statement.register)] = statement.value
        else:
            roots += ir.evaluated(statement)

    def operands(expr: ir.Expr) -> tuple[ir.Expr, ...]:
        return (declared[id(expr.value)],) if id(expr.value) in declared else expr.args

    used = {id(expr) for expr in ir.reach(roots, operands)}
    return [loc for value, loc in updates if id(value) not in used]


def unread_copies(body: ir.Block, noted: Sequence[Copy]) -> list[Copy]:
    """Return the changes of copies of which nothing reads the copy, or what is computed from it, afterwards.

    A change of a part of a copy counts as read if any part is. `body` is settled. Of the changes by one line,
    as in a function that is called twice, all have to be unread.
    """
    if not noted:
        return []
    search = _CopySearch(noted)
    search.block(body, search.find_named_by_raw_text(body))
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

    def find_named_by_raw_text(self, body: ir.Block) -> frozenset[Whole]:
        """Return the copies whose names stand in raw GLSL."""
        texts = [statement.text for statement in ir.walk(body) if isinstance(statement, ir.RawStatement)]
        texts += [expr.value.text for expr in ir.expressions_in(body) if isinstance(expr.value, ir.RawText)]
        words = {word for text in texts for word in re.findall(r"\w+", text)}
        wholes = set(self._whole.values())
        return frozenset(whole for whole in wholes if words & {part.name for part in whole})

    def block(self, block: ir.Block, live: frozenset[Whole]) -> frozenset[Whole]:
        """Return what is read at the start of a block or later. Only its declaration begins a copy."""
        for statement in reversed(block):
            live = self._statement(statement, live)
        return live

    def _statement(self, statement: ir.Statement, live: frozenset[Whole]) -> frozenset[Whole]:
        if isinstance(statement, ir.Store):
            register = ir.root_of(statement.place).value
            whole = self._whole.get(id(register))
            if whole is not None and whole not in live:
                return live
            if (id(register), repr(statement.loc)) in self._noted:
                self.read_at.add(repr(statement.loc))
        if isinstance(statement, ir.Declare):
            whole = self._whole.get(id(statement.register))
            return (live if whole is None else live - {whole}) | self._read_by(statement)
        inner = ir.blocks_of(statement)
        if inner:
            live = live.union(*(self.block(block, live) for block in inner), self._read_by(statement))
            if isinstance(statement, (ir.For, ir.While)):
                # a round reads what the one before it changed
                before: frozenset[Whole] = frozenset()
                while live != before:
                    before, live = live, live.union(*(self.block(block, live) for block in inner))
            return live
        return live | self._read_by(statement)

    def _read_by(self, statement: ir.Statement) -> frozenset[Whole]:
        found: frozenset[Whole] = frozenset()
        for root in ir.evaluated(statement):
            reads = self._reads.get(id(root))
            if reads is None:
                wholes = {self._whole.get(id(expr.value)) for expr in nodes((root,))}
                reads = self._reads[id(root)] = frozenset(whole for whole in wholes if whole is not None)
            found |= reads
        return found
