"""Finished blocks of statements: recorded, and simplified at their ends."""

from collections.abc import Iterable

from vkdispatch.base.dtype import bool_
from vkdispatch.base.record import replace
from vkdispatch.codegen.trace.recording import Recorder
from vkdispatch.compiler.ir import (
    Break,
    Declare,
    If,
    Op,
    Read,
    Register,
    Scope,
    Statement,
    Store,
    Switch,
    While,
    expressions_of,
    nodes,
    walk,
)
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import here
from vkdispatch.rewrite.state.values import find_registers


def emit_all(recorder: Recorder, statements: Iterable[Statement]) -> None:
    """Record finished statements."""
    for statement in statements:
        recorder.emit(statement)


def emit_single_round(recorder: Recorder, statements: list[Statement]) -> None:
    """Record a block that breaks may leave: as a loop of one round, or as it is if it has no inner breaks."""
    shorter = drop_last_breaks(statements)
    if has_breaks(shorter):
        recorder.emit(While(ex.literal(True, bool_), (*statements, Break(here())), here()))
    else:
        emit_all(recorder, shorter)


def drop_last_breaks(block: list[Statement]) -> list[Statement]:
    """Return a block without the breaks at its end, which have no effect there."""
    if not block:
        return block
    last = block[-1]
    if isinstance(last, (Break, Read)):
        return drop_last_breaks(block[:-1])
    if isinstance(last, If):
        branches = tuple(
            (condition, tuple(drop_last_breaks(list(body)))) for condition, body in last.branches
        )
        orelse = None if last.orelse is None else tuple(drop_last_breaks(list(last.orelse))) or None
        return [*block[:-1], If(branches, orelse, last.loc)]
    return block


def has_breaks(block: list[Statement] | tuple[Statement, ...]) -> bool:
    """Whether a block has a break that leaves the enclosing loop."""
    for statement in block:
        if isinstance(statement, Break):
            return True
        inner: list[tuple[Statement, ...]] = []
        if isinstance(statement, If):
            inner = [body for _, body in statement.branches] + [statement.orelse or ()]
        elif isinstance(statement, Switch):
            inner = [body for _, body in statement.cases] + [statement.default or ()]
        elif isinstance(statement, Scope):
            inner = [statement.body]
        if any(has_breaks(body) for body in inner):
            return True
    return False


def inline_last_values(block: list[Statement]) -> None:
    """Replace `T t = value; r = t;` at the end of a block by `r = value;` if nothing else reads t."""
    start = len(block)
    while start and (isinstance(block[start - 1], Read) or _stores_register(block[start - 1])):
        start -= 1
    if start == len(block):
        return
    uses: dict[int, int] = {}
    for statement in walk(tuple(block)):
        for node in nodes(expressions_of(statement)):
            if isinstance(node.value, Register):
                uses[id(node.value)] = uses.get(id(node.value), 0) + 1
    known: dict[int, int] = {}
    for position in range(start - 1, -1, -1):
        statement = block[position]
        if isinstance(statement, Read):
            continue
        if not isinstance(statement, Declare) or statement.value.op is Op.ATOMIC:
            break
        known[id(statement.register)] = position
    gone: set[int] = set()
    stored: set[int] = set()
    for position in range(start, len(block)):
        store = block[position]
        if isinstance(store, Read):
            continue
        assert isinstance(store, Store)
        source = id(store.value.value)
        if store.value.op is Op.REGISTER and source in known and uses[source] == 1:
            first = block[known[source]]
            assert isinstance(first, Declare)
            if not find_registers(first.value) & stored:
                block[position] = replace(store, value=first.value)
                gone.add(known[source])
        stored.add(id(store.place.value))
    block[:] = [statement for position, statement in enumerate(block) if position not in gone]


def _stores_register(statement: Statement) -> bool:
    return isinstance(statement, Store) and statement.place.op is Op.REGISTER and statement.operator is None
