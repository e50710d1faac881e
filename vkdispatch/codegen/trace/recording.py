"""What records statements while a kernel's Python body runs."""

from types import CodeType
from typing import Any, Literal

from vkdispatch.base.dtype import DType, bool_
from vkdispatch.base.errors import ArgumentValueError, UsageError
from vkdispatch.base.record import field, record, replace
from vkdispatch.codegen.trace.declarations import Declarations
from vkdispatch.codegen.trace.operands import Placeholder
from vkdispatch.compiler import ir
from vkdispatch.compiler.ir.expressions import construct, literal
from vkdispatch.compiler.ir.location import Loc, Warned, here, located, show_warnings, warn
from vkdispatch.compiler.passes.reads import Copy, Whole, unread_copies, unused_updates

# ---- Open blocks of a kernel, and the statements that they become when they are closed -------------------


@record(eq=False, frozen=False)
class Contents:
    """The values that registers get in an open block, by register, and how many statements leave it early.

    They are counted up as the block grows, since each look at a program would else walk all of it.
    """

    values: dict[int, list[ir.Expr]] = field(factory=dict)
    exits: int = 0
    # the statements that are counted, with their registers and exits
    _counted: list[tuple[ir.Statement, list[int], int]] = field(factory=list)

    def update(self, statements: list[ir.Statement]) -> None:
        """Count what was added to a block, after what was removed from its end or replaced."""
        counted = self._counted
        while counted and (
            len(counted) > len(statements) or statements[len(counted) - 1] is not counted[-1][0]
        ):
            _, registers, exits = counted.pop()
            self.exits -= exits
            for key in registers:
                self.values[key].pop()
        for statement in statements[len(counted) :]:
            registers, before = [], self.exits
            for inner in ir.walk((statement,)):
                if isinstance(inner, ir.Declare):
                    register, value = inner.register, inner.value
                elif isinstance(inner, ir.Store):
                    root, value = ir.root_of(inner.place).value, inner.value
                    if not isinstance(root, ir.Register):
                        continue
                    register = root
                    if inner.operator is not None:
                        value = ir.Expr(ir.Op.BINARY, inner.place.dtype, (inner.place, value), inner.operator)
                else:
                    self.exits += isinstance(inner, (ir.Break, ir.Return))
                    continue
                registers.append(id(register))
                self.values.setdefault(id(register), []).append(value)
            counted.append((statement, registers, self.exits - before))


@record(eq=False, frozen=False)
class Frame:
    """A block being filled. `branches` are the finished branches of the if that it continues."""

    kind: Literal["body", "if", "else", "while", "for", "switch", "case", "default", "scope"]
    loc: Loc | None = None
    condition: ir.Expr | None = None
    branches: tuple[tuple[ir.Expr, ir.Block], ...] = ()
    loop: ir.For | None = None
    values: tuple[int, ...] = ()
    cases: list[tuple[tuple[int, ...], ir.Block]] = field(factory=list)
    default: ir.Block | None = None
    comment: str | None = None
    rolled: bool = False
    # opened by `open_block`: whoever takes its statements places them
    detached: bool = False
    statements: list[ir.Statement] = field(factory=list)
    # registers by identity, as they were read here since they last changed
    reads: dict[int, ir.Expr] = field(factory=dict)
    _contents: Contents = field(factory=Contents)

    @property
    def contents(self) -> Contents:
        """What its statements hold by now."""
        self._contents.update(self.statements)
        return self._contents


def close_block(frame: Frame, block: ir.Block) -> ir.Statement:
    """Return the statement that an open block becomes; `block` is its statements."""
    if frame.loop is not None:
        return replace(frame.loop, body=block)
    if frame.kind == "switch":
        assert frame.condition is not None
        return ir.Switch(frame.condition, tuple(frame.cases), frame.default, frame.loc)
    if frame.kind == "while":
        assert frame.condition is not None
        return ir.While(frame.condition, block, frame.loc, frame.rolled)
    if frame.kind == "scope":
        return ir.Scope(block, frame.comment, frame.loc)
    if frame.kind == "else":
        return ir.If(frame.branches, block, frame.loc)
    assert frame.condition is not None
    return ir.If((*frame.branches, (frame.condition, block)), None, frame.loc)


def make_zero(kind: DType) -> ir.Expr:
    """Return the initial value of a register that is assigned before it is read."""
    return literal(False, bool_) if kind is bool_ else construct(kind, ())


_MEMORY = (ir.Op.ELEMENT, ir.Op.IMAGE_LOAD, ir.Op.REGISTER)


@record
class Mark:
    """A point of a recording to go back to: sizes of what grows, other values, the innermost block.

    `statements` are counts: of the innermost block, and while that is a plain scope, of the one around it.
    """

    sizes: dict[str, int]
    values: dict[str, Any]
    statements: tuple[int, ...]
    last: ir.Statement | None


class Recorder(Declarations):
    """The kernel being traced: its declarations, and its statements in a stack of open blocks."""

    def __init__(self, flags: ir.ShaderFlags = ir.ShaderFlags.NONE) -> None:
        self.flags = ir.ShaderFlags(flags)
        self.warnings: list[Warned] = []
        self._clear()

    def _clear(self) -> None:
        super()._clear()
        self._frames = [Frame("body")]
        self.placeholders: list[Placeholder] = []
        # where random numbers begin that are the same in all invocations
        self.uniform_streams: list[Loc | None] = []
        self._fixed: dict[ir.Register, ir.Expr] = {}
        # whether what is read from a place goes on to mean the place: kernels without the source rewrite
        self.aliasing = False
        self._updates: list[tuple[ir.Expr, Loc | None]] = []
        self._localized: list[tuple[Any, ir.Expr]] = []
        # by register: the register, and what it is a copy of
        self._origins: dict[int, tuple[ir.Expr, ir.Expr]] = {}
        # by register of a copy: the variable that still holds what was copied
        self.copied_variables: dict[int, Any] = {}
        self._changed_copies: list[Copy] = []
        self._structures: dict[int, Whole] = {}
        self.marked_reads: set[int] = set()
        self.marked_writes: set[int] = set()
        self.warnings.clear()
        # state of the source rewrite for this trace
        self.extension: object | None = None
        # by code object: why its control flow could not be rewritten
        self.truth_notes: dict[CodeType | None, str] = {}

    # -- registers

    def declare(
        self,
        kind: DType,
        value: ir.Expr,
        name: str | None = None,
        *,
        fixed: bool = False,
        position: bool = False,
        precise: bool = False,
        local: bool = False,
    ) -> ir.Expr:
        """Declare a register that holds `value`, for good if it is `fixed`; returns it as an expression.

        A `position` is an index into a buffer, even where `value` does not show it. The value of a `precise`
        register is computed exactly as it is written.
        """
        register = ir.Register(
            self.claim_name(name), kind, fixed=fixed, position=position, precise=precise, local=local
        )
        loc = here()
        self.emit(ir.Declare(register, value, loc))
        if fixed:
            self._fixed[register] = value
        return ir.Expr(ir.Op.REGISTER, kind, (), register, loc)

    def fixed_value(self, place: ir.Expr) -> ir.Expr | None:
        """Return the value of a fixed register, or None for another place."""
        register = place.value
        return self._fixed.get(register) if isinstance(register, ir.Register) else None

    def declare_around(self, kind: DType, value: ir.Expr, name: str | None = None) -> ir.Expr:
        """Declare a register for a local variable outside the open plain scopes, and assign to it."""
        if self._frames[-1].kind != "scope":
            return self.declare(kind, value, name, local=True)
        place = self.declare_array(kind, make_zero(kind), name, local=True)
        self.store(place, value)
        return place

    def declare_array(
        self, kind: DType, value: ir.Expr, name: str | None = None, *, local: bool = False
    ) -> ir.Expr:
        """Declare an array of one invocation outside the open plain scopes."""
        frame = next(frame for frame in reversed(self._frames) if frame.kind != "scope")
        loc = here()
        register = ir.Register(self.claim_name(name), kind, local=local)
        frame.statements.append(ir.Declare(register, value, loc))
        return ir.Expr(ir.Op.REGISTER, kind, (), register, loc)

    # -- statements and blocks

    def emit(self, statement: ir.Statement) -> None:
        """Append a statement to the innermost open block. Raises RuntimeError between a switch's cases."""
        if self._frames[-1].kind == "switch":
            raise located(UsageError, "a switch block can have only case and default blocks", statement.loc)
        if isinstance(statement, ir.RawStatement):
            self._forget_reads()
        self._frames[-1].statements.append(statement)

    def read(self, value: ir.Expr) -> ir.Expr:
        """Record that an expression has its value of this point, wherever it is used; returns it."""
        if self.aliasing:
            return value
        # directly inside a switch there are no statements
        frame = self._frames[-2 if self._frames[-1].kind == "switch" else -1]
        frame.statements.append(ir.Read(value, value.loc))
        return value

    def read_register(self, place: ir.Expr) -> ir.Expr:
        """Return the value that a register has at this point."""
        register = place.value
        assert isinstance(register, ir.Register)
        if self.aliasing or place.read or register.counter or register.fixed:
            return place
        known = self._frames[-1].reads
        value = known.get(id(register))
        if value is None:
            value = known[id(register)] = self.read(
                ir.Expr(ir.Op.REGISTER, place.dtype, (), register, place.loc, (), True)
            )
        return value

    def _forget_reads(self, register: object = None) -> None:
        """Have the next use of a register read it again; of all registers by default."""
        for frame in self._frames:
            if register is None:
                frame.reads.clear()
            else:
                frame.reads.pop(id(register), None)

    def declare_local(self, value: ir.Expr, name: str | None) -> ir.Expr:
        """Make a register for a local variable, which is declared if a component of it is assigned to."""
        if self._frames[-1].kind in ("scope", "switch"):
            return self.declare_around(value.dtype, value, name)
        register = ir.Register(self.claim_name(name), value.dtype, local=True)
        self.emit(ir.Read(value, here(), register))
        return ir.Expr(ir.Op.REGISTER, value.dtype, (), register, here())

    def localize(self, variable: Any, place: ir.Expr) -> None:
        """Make a variable stand for a register, for all that hold the variable."""
        self._localized.append((variable, variable.expr))
        self.note_origin(place, variable.expr)
        object.__setattr__(variable, "expr", place)

    def note_origin(self, copy: ir.Expr, source: ir.Expr) -> None:
        """Note what a register is a copy of."""
        noted = self._origins.get(id(source.value)) if source.op is ir.Op.REGISTER else None
        if copy.op is ir.Op.REGISTER:
            self._origins[id(copy.value)] = copy, source if noted is None else noted[1]

    def origin_of(self, copy: ir.Expr) -> ir.Expr | None:
        """Return the element or part that a whole register is a copy of, if it is one."""
        noted = self._origins.get(id(copy.value)) if copy.op is ir.Op.REGISTER else None
        return noted[1] if noted is not None and ir.is_part(noted[1]) else None

    def note_structure(self, registers: Whole) -> None:
        """Note that registers are the fields of one copy."""
        self._structures.update((id(register), registers) for register in registers)

    def note_copy(self, place: ir.Expr) -> None:
        """Note that the user's line changes a copy that a name holds, if the place is part of one."""
        register = ir.root_of(place).value
        if isinstance(register, ir.Register) and register.local:
            whole = self._structures.get(id(register), (register,))
            self._changed_copies.append(Copy(register, whole, here()))

    def note_update(self, value: ir.Expr) -> None:
        """Note the value of `name += x` of a name that was read from memory, which stays as it is."""
        self._updates.append((value, here()))

    def store(self, place: ir.Expr, value: ir.Expr, operator: str | None = None) -> None:
        """Record an assignment."""
        if operator is not None and ir.is_encoded(place):
            value, operator = ir.Expr(ir.Op.BINARY, place.dtype, (place, value), operator, here()), None
        self._note_change(place)
        self.emit(ir.Store(place, value, operator, here()))

    def update(self, place: ir.Expr, value: ir.Expr) -> None:
        """Record `place op= operand`, where `value` is that operation on the value read from the place."""
        self._note_change(place)
        self.emit(ir.Store(place, value, None, here(), update=True))

    def _note_change(self, place: ir.Expr) -> None:
        root = ir.root_of(place)
        if root.op is ir.Op.REGISTER:
            self._forget_reads(root.value)
        elif root.op is ir.Op.RAW:
            self._forget_reads()

    def _open(self, frame: Frame) -> None:
        """Open a block. Raises RuntimeError between a switch's cases."""
        if self._frames[-1].kind == "switch" and frame.kind not in ("case", "default"):
            raise located(UsageError, "a switch block can have only case and default blocks")
        self._frames.append(frame)

    def open_if(self, condition: ir.Expr) -> None:
        """Open the first branch of an if."""
        self._open(Frame("if", here(), condition))

    def open_else_if(self, condition: ir.Expr) -> None:
        """Reopen the if that was just closed, with another branch."""
        previous = self._reopen_if("else_if")
        self._open(Frame("if", previous.loc, condition, previous.branches))

    def open_else(self) -> None:
        """Reopen the if that was just closed, with its last branch."""
        previous = self._reopen_if("else")
        self._open(Frame("else", previous.loc, None, previous.branches))

    def _reopen_if(self, what: str) -> ir.If:
        statements = self._frames[-1].statements
        # reads of the else_if's condition: nothing stands between them and the if
        reads: list[ir.Statement] = []
        while statements and isinstance(statements[-1], ir.Read):
            reads.insert(0, statements.pop())
        if not statements or not isinstance(statements[-1], ir.If) or statements[-1].orelse is not None:
            raise located(UsageError, f"{what} block: it must follow an if or else_if block directly")
        previous = statements.pop()
        assert isinstance(previous, ir.If)
        statements += reads
        # these reads come before the assignments of the branches
        self._forget_reads()
        return previous

    def open_while(self, condition: ir.Expr, rolled: bool = False) -> None:
        """Open a loop. Fixed registers in its condition are computed again in each round."""
        self._open(Frame("while", here(), self._evaluate_anew(condition), rolled=rolled))

    def _evaluate_anew(self, expr: ir.Expr) -> ir.Expr:
        """Copy an expression so that it reads memory and registers where it is evaluated."""
        if isinstance(expr.value, ir.Register) and expr.value in self._fixed:
            return self._evaluate_anew(self._fixed[expr.value])
        if not any(node.op in _MEMORY for node in ir.nodes((expr,))):
            return expr
        return replace(expr, args=tuple(map(self._evaluate_anew, expr.args)))

    def open_for(self, start: ir.Expr, stop: ir.Expr, step: ir.Expr, name: str | None = None) -> ir.Expr:
        """Open a loop over a range whose bounds have one integer type; returns its counter."""
        loc = here()
        stop, step = self._fix_bound(stop), self._fix_bound(step)
        counter = ir.Register(self.claim_name(name), start.dtype, counter=True)
        self._open(Frame("for", loc, loop=ir.For(counter, start, stop, step, (), loc)))
        return ir.Expr(ir.Op.REGISTER, start.dtype, (), counter, loc)

    def _fix_bound(self, bound: ir.Expr) -> ir.Expr:
        """Return a loop bound that the body of the loop cannot change."""
        return bound if bound.op in (ir.Op.LITERAL, ir.Op.ARGUMENT) else self.declare(bound.dtype, bound)

    def open_switch(self, value: ir.Expr) -> None:
        """Open a switch, which cases follow."""
        self._open(Frame("switch", here(), value))

    def open_case(self, values: tuple[int, ...]) -> None:
        """Open the case for some values.

        Raises RuntimeError outside a switch, ValueError for a value that has a case already.
        """
        switch = self._require_switch("case")
        for value in values:
            if any(value in known for known, _ in switch.cases):
                raise located(ArgumentValueError, f"case block: {value} has a case already")
        self._open(Frame("case", here(), values=values))

    def open_default(self) -> None:
        """Open the case for all other values. Raises RuntimeError outside a switch or the second time."""
        if self._require_switch("default").default is not None:
            raise located(UsageError, "default block: the switch has one already")
        self._open(Frame("default", here()))

    def _require_switch(self, what: str) -> Frame:
        if self._frames[-1].kind != "switch":
            raise located(UsageError, f"{what} block: it must be directly inside a switch block")
        return self._frames[-1]

    @property
    def switch_value(self) -> ir.Expr:
        """Value that selects a case of the open switch. Raises RuntimeError outside a switch."""
        value = self._require_switch("case").condition
        assert value is not None
        return value

    def leave_loop(self) -> None:
        """Record a break. Raises RuntimeError outside a loop."""
        self._require_loop("break")
        self.emit(ir.Break(here()))

    def next_round(self) -> None:
        """Record a continue. Raises RuntimeError outside a loop."""
        self._require_loop("continue")
        self.emit(ir.Continue(here()))

    def _require_loop(self, what: str) -> None:
        if not any(frame.kind in ("while", "for") for frame in self._frames):
            raise located(UsageError, f"{what}: no loop is open here that runs on the GPU")

    def open_scope(self, comment: str | None = None) -> None:
        """Open a block of its own."""
        self._open(Frame("scope", here(), comment=comment))

    @property
    def depth(self) -> int:
        """Count of open blocks."""
        return len(self._frames) - 1

    @property
    def open_kind(self) -> str:
        """Kind of the innermost open block: body, if, else, while, for, switch, case, default or scope."""
        return self._frames[-1].kind

    def close(self, depth: int | None = None) -> None:
        """Close the innermost block, or all blocks deeper than `depth`.

        Raises RuntimeError if none is open.
        """
        if not self.depth:
            raise located(UsageError, "end: no block is open")
        goal = self.depth - 1 if depth is None else depth
        while self.depth > goal:
            frame = self._frames.pop()
            block = tuple(frame.statements)
            if frame.detached:
                # an exception is passing, or there was an end too many, which take_block reports
                continue
            if frame.kind == "case":
                self._frames[-1].cases.append((frame.values, block))
            elif frame.kind == "default":
                self._frames[-1].default = block
            else:
                self.emit(close_block(frame, block))

    # -- blocks that are placed in the program after they are recorded

    def open_block(self, kind: Literal["if", "while"]) -> None:
        """Open a detached block: the branch of an if or the body of a loop, for `take_block`."""
        self._frames.append(Frame(kind, here(), detached=True))

    def take_block(self, depth: int) -> list[ir.Statement]:
        """Close the block that `open_block` opened at a depth; returns its statements.

        Raises RuntimeError if a block inside it is still open.
        """
        if self.depth <= depth:
            raise located(UsageError, "end: it closes a block that it did not open")
        if self.depth != depth + 1:
            opened = self._frames[-1]
            raise located(UsageError, f"the {opened.kind} block opened here was never closed", opened.loc)
        return self._frames.pop().statements

    @property
    def recorded(self) -> int:
        """Count of statements in the innermost open block."""
        return len(self._frames[-1].statements)

    def values_of(self, register: ir.Register) -> list[ir.Expr]:
        """Return the values stored in a register or a part of it so far; `r -= x` gives `r - x`."""
        key = id(register)
        return [value for frame in self._frames for value in frame.contents.values.get(key, ())]

    def start_of(self, counter: ir.Register) -> ir.Expr | None:
        """Return where the counter of an open loop starts."""
        loops = (frame.loop for frame in self._frames)
        return next((loop.start for loop in loops if loop and loop.counter is counter), None)

    @property
    def innermost(self) -> list[ir.Statement]:
        """Statements of the innermost open block; changes to the list count."""
        return self._frames[-1].statements

    def kinds_above(self, depth: int) -> list[str]:
        """Kinds of the open blocks deeper than a depth."""
        return [frame.kind for frame in self._frames[depth + 1 :]]

    @property
    def is_conditional(self) -> bool:
        """Whether a branch or `while` of the GPU is open, or invocations may have left it before."""
        return any(
            frame.kind in ("if", "else", "case", "default", "while") or frame.contents.exits
            for frame in self._frames
        )

    def mark(self) -> Mark:
        """Return a point that `rewind` goes back to. Cheap, since lists and dicts only ever grow."""
        statements = self._frames[-1].statements
        sizes: dict[str, int] = {}
        values: dict[str, Any] = {}
        for name, value in vars(self).items():
            kind = type(value)
            if kind is list or kind is dict:
                sizes[name] = len(value)
            elif kind is set:
                values[name] = value if name == "_names" else value.copy()
            else:
                values[name] = value
        counts = [len(statements)]
        for inner, outer in zip(reversed(self._frames), reversed(self._frames[:-1]), strict=False):
            if inner.kind != "scope":
                break
            # registers may be declared around scopes
            counts.append(len(outer.statements))
        return Mark(sizes, values, tuple(counts), statements[-1] if statements else None)

    def rewind(self, mark: Mark) -> None:
        """Forget all that was recorded since a mark."""
        for variable, before in reversed(self._localized[mark.sizes["_localized"] :]):
            object.__setattr__(variable, "expr", before)
        gone = self._named[mark.sizes["_named"] :]
        self._names.difference_update(gone)
        for name in gone:
            # the next name then gets the same number as before
            self._copies.pop(name.rpartition("_")[0], None)
            self._copies.pop(name, None)
        for name, size in mark.sizes.items():
            now = getattr(self, name)
            if isinstance(now, list):
                del now[size:]
            else:
                for key in list(now)[size:]:
                    del now[key]
        for name, before in mark.values.items():
            setattr(self, name, before)
        for frame, count in zip(reversed(self._frames), mark.statements, strict=False):
            del frame.statements[count:]
        statements = self._frames[-1].statements
        if mark.last is not None:
            # an else block may have replaced it
            statements[-1] = mark.last
        self._forget_reads()

    def show_warnings(self, settled: ir.Block) -> None:
        """Show the warnings of the trace; `settled` are its statements without reads."""
        for copy in unread_copies(settled, self._changed_copies):
            warn(self._explain_copy(copy.register), copy.loc)
        for loc in unused_updates(self.body(), self._updates):
            warn(
                "this changes the name only: it holds a value that was read, and the memory that it was read "
                "from stays as it is. Assign to the element, as in buffer[i] += x",
                loc,
            )
        show_warnings(self.warnings)

    def _explain_copy(self, register: ir.Register) -> str:
        noted = self._origins.get(id(register))
        source = None if noted is None else noted[1]
        if source is not None and ir.is_part(source) and not ir.is_constant(ir.root_of(source)):
            return (
                "this changes the copy that the name holds, which nothing reads afterwards, and the element "
                "that it was read from stays as it is. Assign to the element, as in buffer[i].x = value, or "
                "to all of it by name[:] = value"
            )
        if source is not None and isinstance(source.value, ir.Argument):
            return (
                f"this changes a copy of the argument {source.value.name!r}, which nothing reads afterwards: "
                "what the caller passed stays as it is. Pass a buffer, and assign to its element"
            )
        return "this changes a value that nothing reads afterwards"

    def body(self) -> ir.Block:
        """Statements recorded so far. Raises RuntimeError if a block is still open."""
        if self.depth:
            opened = self._frames[-1]
            raise located(UsageError, f"the {opened.kind} block opened here was never closed", opened.loc)
        return tuple(self._frames[0].statements)
