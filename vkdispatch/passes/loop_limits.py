"""Loops on devices whose driver ends them after a number of rounds, counted over all loops of an invocation.

A loop that may be ended early is written so that one round of it does several, where its body is short, and
tells afterwards whether it has ended by itself:

    for (int i = start; i < stop; ++i) {      int i = start;
        body                                  while (i < stop) {
    }                                             [[unroll]] for (uint round = 0u; round < 16u; ++round) {
                                                      if (i < stop) {
                                                          body
                                                          i += 1;
                                                      }
                                                  }
                                              }
                                              if (ended == 0u && i < stop) { ended = 1u; }

At its end an invocation notes the first such loop in the journal of the device (see `base.kernel_errors`).
Loops that surely have fewer rounds stay as they are.
"""

import math
import re
from collections.abc import Callable

from vkdispatch.base.dtype import bool_, uint32, uvec3
from vkdispatch.base.record import record, replace
from vkdispatch.ir import (
    Argument,
    Block,
    Break,
    Builtin,
    Continue,
    Declare,
    Effect,
    Expr,
    For,
    If,
    Kernel,
    MatrixLoad,
    MatrixStore,
    Op,
    RawStatement,
    Register,
    Return,
    Scope,
    Statement,
    Storage,
    Store,
    While,
    blocks_of,
    expressions_of,
    map_statement,
    nodes,
    postorder,
    walk,
    with_args,
)
from vkdispatch.ir.location import Loc
from vkdispatch.ir.names import FreshNames
from vkdispatch.passes.builders import binary, compare, components, less, logical, negate, read, uint
from vkdispatch.passes.instrument import add_endings

# How many rounds may be written out, and how many expressions they may have together.
_COPIES = (16, 8, 4)
_MOST_EXPRESSIONS = 640
_HAS_LOOP = re.compile(r"\b(for|while|do)\b")


@record
class LimitedLoops:
    """A kernel that notes loops which were ended early.

    Attributes
    ----------
    kernel
        It has one more buffer, the journal, and one more argument.
    places
        The Python lines of the loops that may be ended; loop `n` is noted as n + 1.
    binding
        The position of the journal among the resources.
    ticket
        The name of the argument (uint32) that takes the ticket.
    """

    kernel: Kernel
    places: tuple[Loc | None, ...]
    binding: int
    ticket: str


def limit_loops(kernel: Kernel, limit: int, notes: range) -> LimitedLoops | None:
    """Return the form of a kernel for drivers that end loops after `limit` rounds; None if it needs none.

    `notes` are the first words of the notes in the journal.
    """
    if count_rounds(kernel.body) <= limit:
        return None
    journal = Storage(len(kernel.resources), uint32, "journal")
    ticket = Argument(FreshNames.of_arguments(kernel).claim("ticket"), uint32)
    rewriting = _Rewriting(kernel, limit)
    body = rewriting.block(kernel.body)
    if not rewriting.places:
        return None
    ending = rewriting.make_note(journal, ticket, notes)
    changed = replace(
        kernel,
        body=(Declare(rewriting.ended, uint(0)), *add_endings(body, lambda: ending), *ending),
        arguments=(*kernel.arguments, ticket),
        resources=(*kernel.resources, journal),
    )
    return LimitedLoops(changed, tuple(rewriting.places), journal.index, ticket.name)


# ---- counting ------------------------------------------------------------------------------------


def count_rounds(block: Block) -> float:
    """Return the most rounds of all loops of a block, with those in which they end."""
    return sum(map(_count_rounds_of, block))


def _count_rounds_of(statement: Statement) -> float:
    if isinstance(statement, RawStatement):
        return math.inf if _HAS_LOOP.search(statement.text) else 0
    inside = sum(map(count_rounds, blocks_of(statement)))
    if isinstance(statement, For):
        return (_count_own_rounds(statement) or 0) * (1 + inside) + 1
    if isinstance(statement, While):
        return 1 + inside if _is_single(statement) else math.inf
    return inside


def _count_own_rounds(loop: For) -> float:
    bounds = [bound.value for bound in (loop.start, loop.stop, loop.step) if bound.op is Op.LITERAL]
    if len(bounds) < 3:
        return math.inf
    start, stop, step = (int(bound) for bound in bounds if isinstance(bound, int))
    return len(range(start, stop, step)) if step else 0


def _is_single(loop: While) -> bool:
    """Whether a loop has one round at most: one that is left by jumps, as `break` would an `if`."""
    return bool(loop.body) and isinstance(loop.body[-1], Break) and not _has_jump(loop.body, Continue)


def _has_jump(block: Block, kind: type[Break] | type[Continue]) -> bool:
    """Whether a block has jumps of the loop that it is the body of."""
    return any(
        isinstance(statement, kind)
        or (
            not isinstance(statement, (For, While))
            and any(_has_jump(inner, kind) for inner in blocks_of(statement))
        )
        for statement in block
    )


# ---- rewriting -----------------------------------------------------------------------------------


class _Rewriting:
    """Rewrites the loops of a kernel in program order."""

    def __init__(self, kernel: Kernel, limit: int) -> None:
        self._names = FreshNames.of_variables(kernel)
        self._limit = limit
        self._spent: float = 0
        self.ended = self._register("ended_early")
        self.places: list[Loc | None] = []

    def _register(self, name: str) -> Register:
        return Register(self._names.claim(name), uint32)

    def block(self, block: Block) -> Block:
        """Rewrite a block."""
        return tuple(map(self._statement, block))

    def _statement(self, statement: Statement) -> Statement:
        rounds = _count_rounds_of(statement)
        if self._spent + rounds <= self._limit:
            self._spent += rounds
            return statement
        if isinstance(statement, (For, While)):
            self._spent = math.inf
            if isinstance(statement, For):
                return self._for(statement)
            if not _is_single(statement):
                return self._while(statement)
        if isinstance(statement, RawStatement):
            self._spent = math.inf
        return map_statement(statement, block=self.block)

    def _for(self, loop: For) -> Statement:
        old, loc = loop.counter, loop.loc
        counter = replace(old, counter=False, fixed=False)
        place = read(counter)
        holds = _make_condition(place, loop)
        count: tuple[Statement, ...] = (Store(place, loop.step, "+", loc),)
        body = (*_replace_register(self.block(loop.body), old, counter), *count)
        leave = (Store(place, loop.stop, None, loc),)
        body = _before_jumps(body, lambda jump: leave if isinstance(jump, Break) else count)
        split = _count_own_rounds(loop) > _COPIES[-1]
        loops = self._loop(While(holds, body, loc), holds, split=split)
        return Scope((Declare(counter, loop.start, loc), *loops), None, loc)

    def _while(self, loop: While) -> Statement:
        body, holds = self.block(loop.body), loop.condition
        before: Block = ()
        if _has_jump(body, Break):
            left = Register(self._names.claim_number("left"), bool_)
            before = (Declare(left, Expr(Op.LITERAL, bool_, (), False), loop.loc),)
            leave = (Store(read(left), Expr(Op.LITERAL, bool_, (), True), None, loop.loc),)
            body = _before_jumps(body, lambda jump: leave if isinstance(jump, Break) else ())
            stays = negate(read(left))
            always = holds.op is Op.LITERAL and holds.value is True
            holds = stays if always else logical("&&", stays, holds)
        loops = self._loop(replace(loop, body=body), holds, split=not loop.rolled)
        return Scope((*before, *loops), None, loop.loc)

    def _loop(self, loop: While, holds: Expr, *, split: bool) -> tuple[Statement, ...]:
        """Return a loop that goes on while `holds` is true, and the test behind it."""
        loc = loop.loc
        copies = _count_copies(loop.body) if split else 0
        if copies:
            number = Register(self._names.claim_number("round"), uint32, counter=True)
            once = If(((holds, loop.body),), None, loc)
            copied = For(number, uint(0), uint(copies), uint(1), (once,), loc, unrolled=True)
            loop = While(holds, (copied,), loc)
        self.places.append(loc)
        first = compare("==", read(self.ended), uint(0))
        note = Store(read(self.ended), uint(len(self.places)), None, loc)
        return loop, If(((logical("&&", first, holds), (note,)),), None, loc)

    def make_note(self, journal: Storage, ticket: Argument, notes: range) -> Block:
        """Return the statements that note the loop, in the first invocation to do so."""

        def word(index: Expr) -> Expr:
            return Expr(Op.ELEMENT, uint32, (index,), journal)

        def update(place: Expr, amount: Expr, function: str) -> Declare:
            atomic = Expr(Op.ATOMIC, uint32, (place, amount), function)
            return Declare(Register(self._names.claim_number("note"), uint32), atomic)

        number, ended = Expr(Op.ARGUMENT, uint32, (), ticket), read(self.ended)
        before = update(word(number), ended, "atomicMin")
        count = update(word(uint(0)), uint(1), "atomicAdd")
        start = Register(self._names.claim_number("note"), uint32)
        at = binary("*", binary("&", read(count.register), uint(len(notes) - 1)), uint(notes.step))
        x, y, z = components(Expr(Op.BUILTIN, uvec3, (), Builtin.GLOBAL_INVOCATION_ID))
        values = ((0, number), (1, ended), (2, x), (4, y), (6, z))
        stores = (Store(word(binary("+", read(start), uint(offset))), value) for offset, value in values)
        noting: Block = (count, Declare(start, binary("+", at, uint(notes.start))), *stores)
        first = If(((less(ended, read(before.register)), noting),))
        unknown = logical("&&", compare("!=", ended, uint(0)), less(ended, word(number)))
        return (If(((unknown, (before, first)),)),)


def _make_condition(counter: Expr, loop: For) -> Expr:
    """Return whether the counter of a loop is in its range."""
    below, above = less(counter, loop.stop), less(loop.stop, counter)
    zero = Expr(Op.LITERAL, loop.step.dtype, (), 0)
    if loop.step.op is Op.LITERAL and isinstance(loop.step.value, int):
        never = Expr(Op.LITERAL, bool_, (), False)
        return below if loop.step.value > 0 else above if loop.step.value < 0 else never
    down = logical("&&", less(loop.step, zero), above)
    return Expr(Op.SELECT, bool_, (less(zero, loop.step), below, down))


def _count_copies(body: Block) -> int:
    """Return how many rounds of a body are written out; 0 if it is too long, or others wait in it."""
    kinds = (Effect, MatrixLoad, MatrixStore, RawStatement, Return)
    if any(isinstance(statement, kinds) for statement in walk(body)):
        return 0
    length = _measure(body)
    return next((copies for copies in _COPIES if copies * length <= _MOST_EXPRESSIONS), 0)


def _measure(block: Block) -> int:
    """Return how many expressions compilers see in a block, as its loops will be unrolled."""
    length = 0
    for statement in block:
        inside = sum(map(_measure, blocks_of(statement)))
        copies = _count_own_rounds(statement) if isinstance(statement, For) and statement.unrolled else 1
        length += int(copies) * inside + sum(1 for _ in nodes(expressions_of(statement)))
    return length


def _before_jumps(block: Block, make: Callable[[Break | Continue], Block]) -> Block:
    """Insert statements before the jumps of the loop that a block is the body of."""
    out: list[Statement] = []
    for statement in block:
        if isinstance(statement, (Break, Continue)):
            out += make(statement)
        if isinstance(statement, (For, While)):
            out.append(statement)
        else:
            out.append(map_statement(statement, block=lambda inner: _before_jumps(inner, make)))
    return tuple(out)


def _replace_register(block: Block, old: Register, new: Register) -> Block:
    """Return a block in which another register takes the place of one."""
    known: dict[int, tuple[Expr, Expr]] = {}  # by identity of the original, which it keeps alive

    def replace_in(root: Expr) -> Expr:
        for expr in () if id(root) in known else postorder(root, known):
            changed = with_args(expr, tuple(known[id(arg)][0] for arg in expr.args))
            known[id(expr)] = (replace(expr, value=new) if expr.value is old else changed), expr
        return known[id(root)][0]

    def replace_all(inner: Block) -> Block:
        return tuple(map_statement(statement, replace_in, replace_all) for statement in inner)

    return replace_all(block)
