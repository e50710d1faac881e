"""What records statements while a kernel's Python body runs.

The stack of open blocks, and the thread's recorder.
"""

import math
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any, Literal

from vkdispatch.base.dtype import DType, bool_, float32, ivec4
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UsageError
from vkdispatch.base.record import field, record, replace
from vkdispatch.codegen.trace.kernel_warnings import Warned, collect_warnings, show_warnings, warn
from vkdispatch.ir import (
    Argument,
    Block,
    Break,
    Continue,
    Declare,
    Expr,
    For,
    If,
    ImageBinding,
    Op,
    RawStatement,
    Read,
    Register,
    Scope,
    ShaderFlags,
    SharedArray,
    Statement,
    Storage,
    Store,
    Switch,
    While,
    is_encoded,
    nodes,
    root_of,
    walk,
)
from vkdispatch.ir.expressions import construct, literal
from vkdispatch.ir.location import Loc, here, located
from vkdispatch.ir.names import legal_name
from vkdispatch.passes.reads import unused_updates

# An f-string has text only: a GPU value goes in as its number in the recorder between two marks, and a text
# for those who look. The characters are of Unicode's private use area.
_PLACEHOLDER = "\ue000([0-9]+)\ue001[^\ue002]*\ue002"
MARK_LETTERS = "\ue000\ue001\ue002"
_MEMORY = (Op.ELEMENT, Op.IMAGE_LOAD, Op.REGISTER)


@record(eq=False, frozen=False)
class _Placeholder:
    """A value in an f-string, its format specification, and whether it was printed."""

    value: Expr
    spec: str
    loc: Loc | None
    printed: bool = False


@record(eq=False, frozen=False)
class _Frame:
    """A block being filled. `branches` are the finished branches of the if that it continues."""

    kind: Literal["body", "if", "else", "while", "for", "switch", "case", "default", "scope"]
    loc: Loc | None = None
    condition: Expr | None = None
    branches: tuple[tuple[Expr, Block], ...] = ()
    loop: For | None = None
    values: tuple[int, ...] = ()
    cases: list[tuple[tuple[int, ...], Block]] = field(factory=list)
    default: Block | None = None
    comment: str | None = None
    rolled: bool = False
    # whether open_block made it: who took its statements knows what to make of them
    apart: bool = False
    statements: list[Statement] = field(factory=list)
    # registers by identity, as they were read here since they last changed
    reads: dict[int, Expr] = field(factory=dict)


@record
class Mark:
    """A moment of a recording: sizes of what grows, other values, and the innermost block's statements."""

    sizes: dict[str, int]
    values: dict[str, Any]
    statements: int
    last: Statement | None


class Recorder:
    """Statements, names and resources of the kernel being traced."""

    def __init__(self, flags: ShaderFlags = ShaderFlags.NONE) -> None:
        self.flags = ShaderFlags(flags)
        self._warnings: list[Warned] = []
        self._clear()

    def _clear(self) -> None:
        self._frames = [_Frame("body")]
        self._names: set[str] = set()
        # the names in order, to take back the last ones
        self._named: list[str] = []
        # of a name that is wanted again and again, the last number that is taken
        self._copies: dict[str, int] = {}
        self._counter = 0
        self._arguments: list[Argument] = []
        self._resources: list[Storage | ImageBinding] = []
        self._shared: list[SharedArray] = []
        self._shapes: dict[int, Argument] = {}
        self._fields: dict[tuple[int, tuple[str, ...]], Storage] = {}
        self._placeholders: list[_Placeholder] = []
        self._planar: set[int] = set()
        self._fixed: dict[Register, Expr] = {}
        # whether names stay names of the places that they were read from, as without the source rewrite
        self.aliasing = False
        self._updates: list[tuple[Expr, Loc | None]] = []
        self._localized: list[tuple[Any, Expr]] = []
        self.marked_reads: set[int] = set()
        self.marked_writes: set[int] = set()
        self._warnings.clear()
        # what a layer above keeps about this trace, and why code that asks for a truth value has to
        self.extension: object | None = None
        self.truth_notes: dict[CodeType | None, str] = {}

    # -- names and declarations

    def new_name(self) -> str:
        """Return a name that nothing else in the kernel has: var0, var1..."""
        while (name := f"var{self._counter}") in self._names:
            self._counter += 1
        self._add_name(name)
        return name

    def claim_name(self, wanted: str | None, *, member: bool = False) -> str:
        """Return `wanted` as a legal name of its own, or a new name. Raises TypeError if it is no text."""
        if wanted is None:
            return self.new_name()
        if not wanted or not isinstance(wanted, str):
            raise located(ArgumentTypeError, f"var_name: expected a non-empty str, got {wanted!r}")
        refuse_placeholders(wanted, "var_name")
        base = name = legal_name(wanted, member=member)
        if not member and re.fullmatch(r"(buf|tex|img)\d+", base):
            base = name = base + "_"
        if name in self._names:
            copies = self._copies.get(base, 0)
            while name in self._names:
                copies += 1
                name = f"{base}_{copies}"
            self._copies[base] = copies
        self._add_name(name)
        return name

    def reserve_name(self, name: str) -> None:
        """Keep a name that was claimed before a `rewind`."""
        if name not in self._names:
            self._add_name(name)

    def _add_name(self, name: str) -> None:
        self._names.add(name)
        self._named.append(name)

    def declare(
        self,
        kind: DType,
        value: Expr,
        name: str | None = None,
        *,
        fixed: bool = False,
        position: bool = False,
        precise: bool = False,
        local: bool = False,
    ) -> Expr:
        """Declare a register that starts as `value`, and stays so if `fixed`; returns what names it.

        A `position` is a place in a buffer, also where nothing in `value` tells; what goes into a `precise`
        one is computed as it is written.
        """
        register = Register(
            self.claim_name(name), kind, fixed=fixed, position=position, precise=precise, local=local
        )
        loc = here()
        self.emit(Declare(register, value, loc))
        if fixed:
            self._fixed[register] = value
        return Expr(Op.REGISTER, kind, (), register, loc)

    def declare_around(self, kind: DType, value: Expr, name: str | None = None) -> Expr:
        """Declare a register of a local variable, which outlives the plain scopes that are open.

        It gets its value here.
        """
        frame = next(frame for frame in reversed(self._frames) if frame.kind != "scope")
        loc = here()
        register = Register(self.claim_name(name), kind, local=True)
        if frame is self._frames[-1]:
            self.emit(Declare(register, value, loc))
            return Expr(Op.REGISTER, kind, (), register, loc)
        zero = literal(False, bool_) if kind is bool_ else construct(kind, ())
        frame.statements.append(Declare(register, zero, loc))
        place = Expr(Op.REGISTER, kind, (), register, loc)
        self.store(place, value)
        return place

    def declare_array(self, kind: DType, value: Expr, name: str | None = None) -> Expr:
        """Declare an array of one invocation, which outlives the plain scopes that are open."""
        frame = next(frame for frame in reversed(self._frames) if frame.kind != "scope")
        loc = here()
        register = Register(self.claim_name(name), kind)
        frame.statements.append(Declare(register, value, loc))
        return Expr(Op.REGISTER, kind, (), register, loc)

    def add_argument(self, name: str, kind: DType, *, shape: bool = False) -> Argument:
        """Add a member to the argument block."""
        argument = Argument(self.claim_name(name, member=True), kind, shape)
        self._arguments.append(argument)
        return argument

    def add_storage(self, kind: DType, label: str, constant: tuple[int, ...] | None = None) -> Storage:
        """Add a storage buffer, or a constant array of a shape, behind the resources already there."""
        storage = Storage(len(self._resources), kind, label, constant)
        self._resources.append(storage)
        return storage

    def field_of(self, storage: Storage, path: tuple[str, ...], kind: DType) -> Storage:
        """Return the storage of a field of a buffer of structures."""
        key = (storage.index, path)
        if key not in self._fields:
            self._fields[key] = Storage(storage.index, kind, storage.label, None, storage, path)
        return self._fields[key]

    def add_image(
        self,
        dimensions: int,
        label: str,
        kind: DType = float32,
        *,
        storage: bool = False,
        arrayed: bool = False,
    ) -> ImageBinding:
        """Add an image behind the resources already there; see `ImageBinding`."""
        image = ImageBinding(len(self._resources), dimensions, label, kind, storage, arrayed)
        self._resources.append(image)
        return image

    def add_shared(self, kind: DType, size: int | tuple[int, ...], name: str | None = None) -> SharedArray:
        """Add an array in workgroup memory. Raises TypeError or ValueError for a bad size."""
        axes = tuple(size) if isinstance(size, (tuple, list)) else (size,)
        if not 1 <= len(axes) <= 3 or any(
            isinstance(axis, bool) or not hasattr(axis, "__index__") for axis in axes
        ):
            raise located(
                ArgumentTypeError, f"shared_buffer: size must be an int or a tuple of 1 to 3, got {size!r}"
            )
        shape = tuple(int(axis) for axis in axes)
        if min(shape) < 1:
            raise located(ArgumentValueError, f"shared_buffer: size must be at least 1, got {size}")
        array = SharedArray(self.claim_name(name), kind, math.prod(shape), shape)
        self._shared.append(array)
        return array

    def shape_of(self, storage: Storage) -> Argument:
        """Argument (ivec4) that holds a buffer's shape; it exists from the first time it is asked for."""
        if storage not in self._resources:
            raise located(UsageError, f"the buffer {storage.label!r} belongs to another kernel")
        if storage.index not in self._shapes:
            self._shapes[storage.index] = self.add_argument(f"{storage.name}_shape", ivec4, shape=True)
        return self._shapes[storage.index]

    # -- values in f-strings

    def placeholder(self, value: Expr, spec: str, text: str) -> str:
        """Return what stands for a value in an f-string until a print takes it; `text` describes it."""
        self._placeholders.append(_Placeholder(value, spec, here()))
        return f"\ue000{len(self._placeholders) - 1}\ue001{text}\ue002"

    def split_placeholders(self, text: str) -> list[str | _Placeholder]:
        """Split a text into text and marked values."""
        pieces = re.split(_PLACEHOLDER, text)
        found: list[str | _Placeholder] = []
        for position, piece in enumerate(pieces):
            if position % 2 == 0:
                refuse_placeholders(piece, "print")
                found += [piece] if piece else []
            elif int(piece) < len(self._placeholders):
                found.append(self._placeholders[int(piece)])
            else:
                raise located(UsageError, "print: the f-string holds a value of another kernel")
        return found

    def resolve_placeholders(self, text: str) -> list[str | tuple[Expr, str]]:
        """Split a text that is printed into text and (value, format specification)."""
        pieces: list[str | tuple[Expr, str]] = []
        for piece in self.split_placeholders(text):
            if isinstance(piece, str):
                pieces.append(piece)
            else:
                piece.printed = True
                pieces.append((piece.value, piece.spec))
        return pieces

    def plain_text(self, text: str) -> str:
        """Return a text for the host in which descriptions stand for GPU values."""
        pieces = self.split_placeholders(text)
        for piece in pieces:
            if not isinstance(piece, str):
                piece.printed = True
        return "".join(piece if isinstance(piece, str) else "{...}" for piece in pieces)

    def check_placeholders(self) -> None:
        """Raise RuntimeError for a value that was formatted with a specification and never printed."""
        for mark in self._placeholders:
            if mark.spec and not mark.printed:
                raise located(
                    UsageError,
                    "the value of this f-string is not known while the kernel is traced; only vc.print and "
                    "vc.printf take it",
                    mark.loc,
                )

    def need_planar(self, storage: Storage) -> None:
        """Note that the kernel indexes a buffer by two axes, so that its shape must have no third."""
        self._planar.add(storage.index)

    # -- statements and blocks

    def emit(self, statement: Statement) -> None:
        """Append a statement to the innermost open block. Raises RuntimeError between a switch's cases."""
        if self._frames[-1].kind == "switch":
            raise located(UsageError, "a switch block holds case and default blocks only", statement.loc)
        if isinstance(statement, RawStatement):
            self._forget_reads()
        self._frames[-1].statements.append(statement)

    def read(self, value: Expr) -> Expr:
        """Note that Python evaluates an expression here, which the use may do later; returns it."""
        if self.aliasing:
            return value
        # the cases of a switch hold no statements but in their blocks
        frame = self._frames[-2 if self._frames[-1].kind == "switch" else -1]
        frame.statements.append(Read(value, value.loc))
        return value

    def read_register(self, place: Expr) -> Expr:
        """Return what a register holds here."""
        register = place.value
        assert isinstance(register, Register)
        if self.aliasing or place.read or register.counter or register.fixed:
            return place
        known = self._frames[-1].reads
        value = known.get(id(register))
        if value is None:
            value = known[id(register)] = self.read(
                Expr(Op.REGISTER, place.dtype, (), register, place.loc, (), True)
            )
        return value

    def _forget_reads(self, register: object = None) -> None:
        """Read a register anew when it is used next; all of them by default."""
        for frame in self._frames:
            if register is None:
                frame.reads.clear()
            else:
                frame.reads.pop(id(register), None)

    def declare_local(self, value: Expr, name: str | None) -> Expr:
        """Make a register for a local variable, which is declared if one of its components is assigned to."""
        if self._frames[-1].kind in ("scope", "switch"):
            return self.declare_around(value.dtype, value, name)
        register = Register(self.claim_name(name), value.dtype, local=True)
        self.emit(Read(value, here(), register))
        return Expr(Op.REGISTER, value.dtype, (), register, here())

    def localize(self, variable: Any, place: Expr) -> None:
        """Make a variable one of a register, which all who hold the variable share."""
        self._localized.append((variable, variable.expr))
        object.__setattr__(variable, "expr", place)

    def note_update(self, value: Expr) -> None:
        """Note the value of `name += x` where the name was read from memory, which is not changed."""
        self._updates.append((value, here()))

    def store(self, place: Expr, value: Expr, operator: str | None = None) -> None:
        """Record an assignment."""
        if operator is not None and is_encoded(place):
            value, operator = Expr(Op.BINARY, place.dtype, (place, value), operator, here()), None
        self._changes(place)
        self.emit(Store(place, value, operator, here()))

    def update(self, place: Expr, value: Expr) -> None:
        """Record `place op= operand` as a value of that operation on what Python read from the place."""
        self._changes(place)
        self.emit(Store(place, value, None, here(), update=True))

    def _changes(self, place: Expr) -> None:
        root = root_of(place)
        if root.op is Op.REGISTER:
            self._forget_reads(root.value)
        elif root.op is Op.RAW:
            self._forget_reads()

    def _open(self, frame: _Frame) -> None:
        """Open a block. Raises RuntimeError between a switch's cases."""
        if self._frames[-1].kind == "switch" and frame.kind not in ("case", "default"):
            raise located(UsageError, "a switch block holds case and default blocks only")
        self._frames.append(frame)

    def open_if(self, condition: Expr) -> None:
        """Open the first branch of an if."""
        self._open(_Frame("if", here(), condition))

    def open_else_if(self, condition: Expr) -> None:
        """Reopen the if that was just closed, with another branch."""
        previous = self._take_if("else_if")
        self._open(_Frame("if", previous.loc, condition, previous.branches))

    def open_else(self) -> None:
        """Reopen the if that was just closed, with its last branch."""
        previous = self._take_if("else")
        self._open(_Frame("else", previous.loc, None, previous.branches))

    def _take_if(self, what: str) -> If:
        statements = self._frames[-1].statements
        # what the condition of an else_if reads: nothing between the if and that changes it
        reads: list[Statement] = []
        while statements and isinstance(statements[-1], Read):
            reads.insert(0, statements.pop())
        if not statements or not isinstance(statements[-1], If) or statements[-1].orelse is not None:
            raise located(UsageError, f"{what} block: it must follow an if or else_if block directly")
        previous = statements.pop()
        assert isinstance(previous, If)
        statements += reads
        # they stand in front of what the branches change
        self._forget_reads()
        return previous

    def open_while(self, condition: Expr, rolled: bool = False) -> None:
        """Open a loop. What fixed registers in its condition hold is computed anew each time."""
        self._open(_Frame("while", here(), self._anew(condition), rolled=rolled))

    def _anew(self, expr: Expr) -> Expr:
        """Copy an expression, so that it reads what there is when it is evaluated."""
        if isinstance(expr.value, Register) and expr.value in self._fixed:
            return self._anew(self._fixed[expr.value])
        if not any(node.op in _MEMORY for node in nodes((expr,))):
            return expr
        return replace(expr, args=tuple(map(self._anew, expr.args)))

    def open_for(self, start: Expr, stop: Expr, step: Expr, name: str | None = None) -> Expr:
        """Open a loop over a range, of bounds of one integer type; returns its counter."""
        loc = here()
        stop, step = self._steady(stop), self._steady(step)
        counter = Register(self.claim_name(name), start.dtype, counter=True)
        self._open(_Frame("for", loc, loop=For(counter, start, stop, step, (), loc)))
        return Expr(Op.REGISTER, start.dtype, (), counter, loc)

    def _steady(self, bound: Expr) -> Expr:
        """Return a bound that the body of a loop cannot change."""
        return bound if bound.op in (Op.LITERAL, Op.ARGUMENT) else self.declare(bound.dtype, bound)

    def open_switch(self, value: Expr) -> None:
        """Open a switch, to be filled with cases."""
        self._open(_Frame("switch", here(), value))

    def open_case(self, values: tuple[int, ...]) -> None:
        """Open the case for some values.

        Raises RuntimeError outside a switch, ValueError for a value that has a case already.
        """
        switch = self._switch("case")
        for value in values:
            if any(value in known for known, _ in switch.cases):
                raise located(ArgumentValueError, f"case block: {value} has a case already")
        self._open(_Frame("case", here(), values=values))

    def open_default(self) -> None:
        """Open the case for all other values. Raises RuntimeError outside a switch or the second time."""
        if self._switch("default").default is not None:
            raise located(UsageError, "default block: the switch has one already")
        self._open(_Frame("default", here()))

    def _switch(self, what: str) -> _Frame:
        if self._frames[-1].kind != "switch":
            raise located(UsageError, f"{what} block: it must stand directly inside a switch block")
        return self._frames[-1]

    @property
    def switch_value(self) -> Expr:
        """What the switch that is being filled decides by. Raises RuntimeError outside a switch."""
        value = self._switch("case").condition
        assert value is not None
        return value

    def leave_loop(self) -> None:
        """Record a break. Raises RuntimeError outside a loop."""
        self._need_loop("break")
        self.emit(Break(here()))

    def next_round(self) -> None:
        """Record a continue. Raises RuntimeError outside a loop."""
        self._need_loop("continue")
        self.emit(Continue(here()))

    def _need_loop(self, what: str) -> None:
        if not any(frame.kind in ("while", "for") for frame in self._frames):
            raise located(UsageError, f"{what}: no loop is open here that runs on the GPU")

    def open_scope(self, comment: str | None = None) -> None:
        """Open a block of its own."""
        self._open(_Frame("scope", here(), comment=comment))

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
            if frame.apart:
                # an error passes, or an end too many, of which take_block will hear
                continue
            if frame.kind == "case":
                self._frames[-1].cases.append((frame.values, block))
            elif frame.kind == "default":
                self._frames[-1].default = block
            else:
                self.emit(_finished(frame, block))

    # -- blocks whose place in the program is decided once they are recorded

    def open_block(self, kind: Literal["if", "while"]) -> None:
        """Start to record statements apart, as the branch of an if or the body of a loop."""
        self._frames.append(_Frame(kind, here(), apart=True))

    def take_block(self, depth: int) -> list[Statement]:
        """Return the statements of the block that `open_block` started at a depth, and go on behind it.

        Raises RuntimeError if blocks opened inside are open still.
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

    def values_of(self, register: Register) -> list[Expr]:
        """Return what has been stored in a register, or in a part of it; `r -= x` gives `r - x`."""
        found: list[Expr] = []
        for frame in self._frames:
            for statement in walk(tuple(frame.statements)):
                if isinstance(statement, Declare) and statement.register is register:
                    found.append(statement.value)
                elif isinstance(statement, Store) and root_of(statement.place).value is register:
                    place, value, symbol = statement.place, statement.value, statement.operator
                    whole = Expr(Op.BINARY, place.dtype, (place, value), symbol)
                    found.append(value if symbol is None else whole)
        return found

    @property
    def innermost(self) -> list[Statement]:
        """The statements of the innermost open block, to be changed in place."""
        return self._frames[-1].statements

    def kinds_above(self, depth: int) -> list[str]:
        """Kinds of the open blocks deeper than a depth."""
        return [frame.kind for frame in self._frames[depth + 1 :]]

    def mark(self) -> Mark:
        """Note what is recorded, to come back to it by `rewind`. Cheap: lists and dicts only ever grow."""
        statements = self._frames[-1].statements
        sizes: dict[str, int] = {}
        values: dict[str, Any] = {}
        for name, value in vars(self).items():
            if isinstance(value, (list, dict)):
                sizes[name] = len(value)
            elif isinstance(value, set):
                values[name] = value if name == "_names" else value.copy()
            else:
                values[name] = value
        return Mark(sizes, values, len(statements), statements[-1] if statements else None)

    def rewind(self, mark: Mark) -> None:
        """Forget all that was recorded since a mark."""
        for variable, before in reversed(self._localized[mark.sizes["_localized"] :]):
            object.__setattr__(variable, "expr", before)
        gone = self._named[mark.sizes["_named"] :]
        self._names.difference_update(gone)
        for name in gone:
            # what is wanted next finds the same number
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
        statements = self._frames[-1].statements
        del statements[mark.statements :]
        if mark.last is not None:
            # an else block may have taken its place
            statements[-1] = mark.last
        self._forget_reads()

    def show_warnings(self) -> None:
        """Show what was warned about during the trace."""
        for loc in unused_updates(self.body(), self._updates):
            warn(
                "this changes the name only: it holds a value that was read, and the memory that it was read "
                "from stays as it is. Assign to the element, as in buffer[i] += x",
                loc,
            )
        show_warnings(self._warnings)

    def body(self) -> Block:
        """Statements recorded so far. Raises RuntimeError if a block is still open."""
        if self.depth:
            opened = self._frames[-1]
            raise located(UsageError, f"the {opened.kind} block opened here was never closed", opened.loc)
        return tuple(self._frames[0].statements)


def _finished(frame: _Frame, block: Block) -> Statement:
    if frame.loop is not None:
        return replace(frame.loop, body=block)
    if frame.kind == "switch":
        assert frame.condition is not None
        return Switch(frame.condition, tuple(frame.cases), frame.default, frame.loc)
    if frame.kind == "while":
        assert frame.condition is not None
        return While(frame.condition, block, frame.loc, frame.rolled)
    if frame.kind == "scope":
        return Scope(block, frame.comment, frame.loc)
    if frame.kind == "else":
        return If(frame.branches, block, frame.loc)
    assert frame.condition is not None
    return If((*frame.branches, (frame.condition, block)), None, frame.loc)


def refuse_placeholders(text: str, what: str, loc: Loc | None = None) -> None:
    """Raise TypeError for a text that an f-string made of a GPU value."""
    if any(letter in text for letter in MARK_LETTERS):
        raise located(
            ArgumentTypeError,
            f"{what}: the text has a GPU value in it, by an f-string; only vc.print and vc.printf take that",
            loc,
        )


class _ThreadState(threading.local):
    recorder: Recorder | None = None


_state = _ThreadState()


def current() -> Recorder:
    """Return the recorder of this thread. Raises RuntimeError outside tracing."""
    recorder = _state.recorder
    if recorder is None:
        raise located(
            UsageError, "this is only possible while a kernel is traced: inside a @vd.shader function"
        )
    return recorder


def is_tracing() -> bool:
    """Whether this thread is tracing a kernel."""
    return _state.recorder is not None


def has_flag(flag: ShaderFlags) -> bool:
    """Whether this thread is tracing a kernel that has an option."""
    return _state.recorder is not None and bool(_state.recorder.flags & flag)


@contextmanager
def precise_math(switch: bool = True) -> Iterator[None]:
    """Let functions of mathematics be the precise ones in what is traced here, if `switch`."""
    recorder = _state.recorder
    if not switch or recorder is None:
        yield
        return
    before = recorder.flags
    recorder.flags |= ShaderFlags.PRECISE_MATH
    try:
        yield
    finally:
        recorder.flags = before


def set_current(recorder: Recorder | None) -> None:
    """Make a recorder the thread's, or none. Raises RuntimeError if another one is active."""
    if recorder is not None and _state.recorder is not None and recorder is not _state.recorder:
        raise located(UsageError, "a kernel is being traced in this thread already; kernels cannot be nested")
    _state.recorder = recorder
    collect_warnings(None if recorder is None else recorder._warnings)
