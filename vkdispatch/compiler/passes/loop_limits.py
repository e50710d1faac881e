"""Loops on devices whose driver ends them after a number of rounds, counted over all loops of an invocation.

A loop that may be ended early is written so that one round of it does several, where its body is short, and
tells afterwards whether it has ended by itself:

    for (int i = start; i < stop; ++i) {      int i = start;
        body                                  while (i < stop) {
    }                                             [[unroll]] for (uint round = 0u; round < 20u; ++round) {
                                                      if (i < stop) {
                                                          body
                                                          i += 1;
                                                      }
                                                  }
                                              }
                                              if (ended == 0u && i < stop) { ended = 1u; }

At its end an invocation notes the first such loop in the journal of the device (see
`base.buffers.kernel_errors`). Loops that surely have fewer rounds stay as they are.
"""

import math
import re

from vkdispatch.base.dtype import bool_, is_scalar, uint32, uvec3
from vkdispatch.base.record import record, replace
from vkdispatch.compiler import ir
from vkdispatch.compiler.ir import nodes as nodes
from vkdispatch.compiler.ir.location import Loc
from vkdispatch.compiler.ir.names import FreshNames
from vkdispatch.compiler.passes import builders as make
from vkdispatch.compiler.passes.instrument import add_endings

# How many rounds may be written out, and how many expressions they may have together.
_COPIES = (20, 10, 5)
_MAX_EXPRESSIONS = 640
_LOOP = r"\b(for|while|do)\b"


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

    kernel: ir.Kernel
    places: tuple[Loc | None, ...]
    binding: int
    ticket: str


def limit_loops(kernel: ir.Kernel, limit: int, notes: range) -> LimitedLoops | None:
    """Return the form of a kernel for drivers that end loops after `limit` rounds; None if it needs none.

    `notes` are the first words of the notes in the journal.
    """
    if count_rounds(kernel.body) <= limit:
        return None
    journal = ir.Storage(len(kernel.resources), uint32, "journal")
    ticket = ir.Argument(FreshNames.of_arguments(kernel).claim("ticket"), uint32)
    rewriting = _Rewriting(kernel, limit, ticket)
    body = rewriting.block(kernel.body)
    if not rewriting.places:
        return None
    ending = rewriting.make_note(journal, notes)
    changed = replace(
        kernel,
        body=(ir.Declare(rewriting.ended, make.uint(0)), *add_endings(body, lambda: ending), *ending),
        arguments=(*kernel.arguments, ticket),
        resources=(*kernel.resources, journal),
    )
    return LimitedLoops(changed, tuple(rewriting.places), journal.index, ticket.name)


# ---- counting ------------------------------------------------------------------------------------


def count_rounds(block: ir.Block) -> float:
    """Return the most rounds of all loops of a block, with those in which they end."""
    return sum(map(_count_rounds_of, block))


def _count_rounds_of(statement: ir.Statement) -> float:
    if isinstance(statement, ir.RawStatement):
        return math.inf if re.search(_LOOP, statement.text) else 0
    inside = sum(map(count_rounds, ir.blocks_of(statement)))
    if isinstance(statement, ir.For):
        return (_count_own_rounds(statement) or 0) * (1 + inside) + 1
    if isinstance(statement, ir.While):
        return 1 + inside if is_single(statement) else math.inf
    return inside


def _count_own_rounds(loop: ir.For) -> float:
    bounds = [bound.value for bound in (loop.start, loop.stop, loop.step) if bound.op is ir.Op.LITERAL]
    if len(bounds) < 3:
        return math.inf
    start, stop, step = (int(bound) for bound in bounds if isinstance(bound, int))
    return len(range(start, stop, step)) if step else 0


def is_single(loop: ir.While) -> bool:
    """Whether a loop has one round at most: one that is left by jumps, as `break` would an `if`."""
    return bool(loop.body) and isinstance(loop.body[-1], ir.Break) and not has_jump(loop.body, ir.Continue)


def has_jump(block: ir.Block, kind: type[ir.Statement]) -> bool:
    """Whether a block has jumps of the loop that it is the body of."""
    return any(
        isinstance(statement, kind)
        or (
            not isinstance(statement, (ir.For, ir.While))
            and any(has_jump(inner, kind) for inner in ir.blocks_of(statement))
        )
        for statement in block
    )


# ---- rewriting -----------------------------------------------------------------------------------


@record
class _Parts:
    """A loop: what comes before it, its condition and body, and what else a Break and each round do.

    After `leave`, the condition `stays` is false, and so is `holds`. `step` ends every round.
    """

    before: ir.Block
    holds: ir.Expr
    body: ir.Block
    leave: ir.Block
    stays: ir.Expr
    step: ir.Block


class _Rewriting:
    """Rewrites the loops of a kernel in program order."""

    def __init__(self, kernel: ir.Kernel, limit: int, ticket: ir.Argument) -> None:
        self._names = FreshNames.of_variables(kernel)
        self._limit = limit
        self._spent: float = 0
        self._ticket = ir.Expr(ir.Op.ARGUMENT, uint32, (), ticket)
        self.ended = ir.Register(self._names.claim("ended_early"), uint32)
        self.places: list[Loc | None] = []

    def block(self, block: ir.Block) -> ir.Block:
        """Rewrite a block."""
        return tuple(part for statement in block for part in self._statement(statement))

    def _statement(self, statement: ir.Statement) -> ir.Block:
        rounds = _count_rounds_of(statement)
        if self._spent + rounds <= self._limit:
            self._spent += rounds
            return (statement,)
        if isinstance(statement, (ir.For, ir.While)):
            self._spent = math.inf
            if isinstance(statement, ir.For):
                return self._for(statement)
            if not is_single(statement):
                return self._while(statement)
        if isinstance(statement, ir.RawStatement):
            self._spent = math.inf
        return (ir.map_statement(statement, block=self.block),)

    def _flag(self, name: str, loc: Loc | None) -> tuple[ir.Declare, ir.Expr, ir.Store]:
        """Return the declaration of a flag, whether it is not set, and what sets it.

        It is a number: of a condition with which a loop ends, compilers know the value after the loop.
        """
        flag = ir.Register(self._names.claim_number(name), uint32)
        return (
            ir.Declare(flag, make.uint(0), loc),
            make.is_zero(make.read(flag)),
            make.assign(flag, make.uint(1), loc),
        )

    def _for(self, loop: ir.For) -> ir.Block:
        counter, loc = replace(loop.counter, counter=False, fixed=False), loop.loc
        place = make.read(counter)
        holds = _make_condition(place, loop)
        parts = _Parts(
            before=(ir.Declare(counter, loop.start, loc),),
            holds=holds,
            body=replace_registers(self.block(loop.body), {id(loop.counter): counter}),
            leave=(make.assign(counter, loop.stop, loc),),
            stays=holds,
            step=(ir.Store(place, loop.step, "+", loc),),
        )
        return self._loop(parts, loc, split=_count_own_rounds(loop) > _COPIES[-1])

    def _while(self, loop: ir.While) -> ir.Block:
        loc, holds, body = loop.loc, loop.condition, self.block(loop.body)
        before: ir.Block = ()
        step: ir.Block = ()
        if not _is_compared(holds):
            known = ir.Register(self._names.claim_number("holds"), uint32)
            before = (ir.Declare(known, make.cast(holds, uint32), loc),)
            step = (make.assign(known, make.cast(holds, uint32), loc),)
            holds = make.is_nonzero(make.read(known))
        declared, stays, leave = self._flag("left", loc)
        if has_jump(body, ir.Break) or has_jump(body, ir.Return):
            before = (declared, *before)
            always = holds.op is ir.Op.LITERAL and holds.value is True
            holds = stays if always else make.logical("&&", stays, holds)
        parts = _Parts(before, holds, body, (leave,), stays, step)
        return self._loop(parts, loc, split=not loop.rolled, rolled=loop.rolled)

    def _loop(self, parts: "_Parts", loc: Loc | None, *, split: bool, rolled: bool = False) -> ir.Block:
        """Return a loop, and what follows it: the test whether it has ended by itself."""
        before, holds, body, leave = parts.before, parts.holds, parts.body, parts.leave
        after: ir.Block = ()
        if has_jump(body, ir.Return):
            declared, still, returns = self._flag("returned", loc)
            before = (*before, declared)
            after = (make.when(make.negate(still), ir.Return(loc), loc=loc),)
            body = _before_jumps(body, ir.Return, (returns, ir.Break(loc)))
        copies = _count_copies(body) if split else 0
        if copies:
            skip = ir.Register(self._names.claim_number("skips"), bool_)
            once: ir.Block = (*_without_jumps(body, leave, parts.stays, skip),)
            if has_jump(body, ir.Continue):
                once = (ir.Declare(skip, make.truth(False), loc), *once)
            is_left = parts.step and has_jump(body, ir.Break)
            once += (make.when(parts.stays, *parts.step, loc=loc),) if is_left else parts.step
            number = ir.Register(self._names.claim_number("round"), uint32, counter=True)
            round_ = make.when(holds, *once, loc=loc)
            body = (
                ir.For(number, make.uint(0), make.uint(copies), make.uint(1), (round_,), loc, unrolled=True),
            )
        else:
            body = (
                *_before_jumps(_before_jumps(body, ir.Break, leave), ir.Continue, parts.step),
                *parts.step,
            )
        self.places.append(loc)
        early = make.logical("&&", make.is_zero(make.read(self.ended)), self._obscure(holds))
        note = make.assign(self.ended, make.uint(len(self.places)), loc)
        loop = ir.While(holds, body, loc, rolled)
        return (ir.Scope((*before, loop, make.when(early, note, loc=loc), *after), None, loc),)

    def _obscure(self, condition: ir.Expr) -> ir.Expr:
        """Return a condition whose value compilers do not know where a loop with the condition has ended.

        A zero is added that they do not know to be one: tickets are small.
        """
        if condition.op is ir.Op.COMPARE:
            left, right = condition.args
            unknown = make.cast(make.binary(">>", self._ticket, make.uint(31)), left.dtype)
            return ir.with_args(condition, (make.binary("+", left, unknown), right))
        if condition.op is ir.Op.LITERAL:
            return condition
        return ir.with_args(condition, tuple(map(self._obscure, condition.args)))

    def make_note(self, journal: ir.Storage, notes: range) -> ir.Block:
        """Return the statements that note the loop, in the first invocation to do so."""

        def word(index: ir.Expr) -> ir.Expr:
            return ir.Expr(ir.Op.ELEMENT, uint32, (index,), journal)

        def update(place: ir.Expr, amount: ir.Expr, function: str) -> ir.Declare:
            atomic = ir.Expr(ir.Op.ATOMIC, uint32, (place, amount), function)
            return ir.Declare(ir.Register(self._names.claim_number("note"), uint32), atomic)

        number, ended = self._ticket, make.read(self.ended)
        before = update(word(number), ended, "atomicMin")
        count = update(word(make.uint(0)), make.uint(1), "atomicAdd")
        start = ir.Register(self._names.claim_number("note"), uint32)
        at = make.binary(
            "*", make.binary("&", make.read(count.register), make.uint(len(notes) - 1)), make.uint(notes.step)
        )
        x, y, z = make.components(ir.Expr(ir.Op.BUILTIN, uvec3, (), ir.Builtin.GLOBAL_INVOCATION_ID))
        values = ((0, number), (1, ended), (2, x), (4, y), (6, z))
        stores = (
            ir.Store(word(make.binary("+", make.read(start), make.uint(offset))), value)
            for offset, value in values
        )
        noting: ir.Block = (count, ir.Declare(start, make.binary("+", at, make.uint(notes.start))), *stores)
        first = make.when(make.less(ended, make.read(before.register)), *noting)
        unknown = make.logical("&&", make.is_nonzero(ended), make.less(ended, word(number)))
        return (make.when(unknown, before, first),)


def _make_condition(counter: ir.Expr, loop: ir.For) -> ir.Expr:
    """Return whether the counter of a loop is in its range."""
    below, above = make.less(counter, loop.stop), make.less(loop.stop, counter)
    zero = ir.Expr(ir.Op.LITERAL, loop.step.dtype, (), 0)
    if loop.step.op is ir.Op.LITERAL and isinstance(loop.step.value, int):
        never = make.truth(False)
        return below if loop.step.value > 0 else above if loop.step.value < 0 else never
    down = make.logical("&&", make.less(loop.step, zero), above)
    return ir.Expr(ir.Op.SELECT, bool_, (make.less(zero, loop.step), below, down))


def _count_copies(body: ir.Block) -> int:
    """Return how many rounds of a body are written out; 0 if it is too long, or others wait in it."""
    kinds = (ir.Effect, ir.MatrixLoad, ir.MatrixStore, ir.RawStatement, ir.Return)
    if any(isinstance(statement, kinds) for statement in ir.walk(body)):
        return 0
    length = _measure(body)
    return next((copies for copies in _COPIES if copies * length <= _MAX_EXPRESSIONS), 0)


def _measure(block: ir.Block) -> int:
    """Return how many expressions compilers see in a block, as its loops will be unrolled."""
    length = 0
    for statement in block:
        inside = sum(map(_measure, ir.blocks_of(statement)))
        copies = _count_own_rounds(statement) if isinstance(statement, ir.For) and statement.unrolled else 1
        length += int(copies) * inside + sum(1 for _ in nodes(ir.expressions_of(statement)))
    return length


def _is_compared(condition: ir.Expr) -> bool:
    """Whether a condition consists of comparisons of numbers."""
    if condition.op is ir.Op.COMPARE:
        kind = condition.args[0].dtype
        return is_scalar(kind) and kind is not bool_ and kind is condition.args[1].dtype
    if condition.op in (ir.Op.LOGICAL, ir.Op.UNARY, ir.Op.SELECT):
        return all(map(_is_compared, condition.args))
    return condition.op is ir.Op.LITERAL


def _before_jumps(block: ir.Block, kind: type[ir.Statement], added: ir.Block) -> ir.Block:
    """Insert statements before the jumps of the loop that a block is the body of; a Return is replaced."""
    out: list[ir.Statement] = []
    for statement in block:
        if isinstance(statement, kind):
            out += added if kind is ir.Return else (*added, statement)
        elif isinstance(statement, (ir.For, ir.While)):
            out.append(statement)
        else:
            out.append(ir.map_statement(statement, block=lambda inner: _before_jumps(inner, kind, added)))
    return tuple(out)


def _without_jumps(block: ir.Block, leave: ir.Block, stays: ir.Expr, skip: ir.Register) -> ir.Block:
    """Return a block of a loop's body without jumps, which compilers do not write out several times.

    `leave` takes the place of a Break, after which `stays` is false; `skip` is set by a Continue.
    """
    out: list[ir.Statement] = []
    for position, statement in enumerate(block):
        if isinstance(statement, ir.Break):
            return (*out, *leave)
        if isinstance(statement, ir.Continue):
            return (*out, make.assign(skip, make.truth(True), statement.loc))
        breaks, continues = (has_jump((statement,), kind) for kind in (ir.Break, ir.Continue))
        if not (breaks or continues):
            out.append(statement)
            continue
        out.append(ir.map_statement(statement, block=lambda inner: _without_jumps(inner, leave, stays, skip)))
        rest = _without_jumps(block[position + 1 :], leave, stays, skip)
        if rest:
            goes_on = [stays] * breaks + [make.negate(make.read(skip))] * continues
            out.append(make.when(make.logical("&&", *goes_on), *rest, loc=statement.loc))
        break
    return tuple(out)


def replace_registers(block: ir.Block, others: dict[int, ir.Register]) -> ir.Block:
    """Return a block in which other registers take the places of some, by their identity."""
    known: dict[int, tuple[ir.Expr, ir.Expr]] = {}  # by identity of the original, which it keeps alive

    def replace_in(root: ir.Expr) -> ir.Expr:
        for expr in () if id(root) in known else ir.postorder(root, known):
            changed = ir.with_args(expr, tuple(known[id(arg)][0] for arg in expr.args))
            if expr.op is ir.Op.REGISTER and id(expr.value) in others:
                changed = make.read(others[id(expr.value)])
            known[id(expr)] = changed, expr
        return known[id(root)][0]

    def replace_all(inner: ir.Block) -> ir.Block:
        return tuple(ir.map_statement(statement, replace_in, replace_all) for statement in inner)

    return replace_all(block)
