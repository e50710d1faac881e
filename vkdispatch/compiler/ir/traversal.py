"""How to walk a program and how to rebuild it: the one place that knows what each kind of statement holds."""

from collections.abc import Callable, Container, Iterable, Iterator
from functools import partial
from operator import attrgetter
from typing import Any

from vkdispatch.base.record import replace
from vkdispatch.compiler.ir import program
from vkdispatch.compiler.ir.program import Expr, Op, Register, root_of

MapExpr = Callable[[Expr], Expr]
MapBlock = Callable[[program.Block], program.Block]


# ---- parts of statements -------------------------------------------------------------------------


def _blocks_of_if(statement: program.If) -> tuple[program.Block, ...]:
    bodies = tuple([body for _, body in statement.branches])
    return bodies if statement.orelse is None else (*bodies, statement.orelse)


def _blocks_of_switch(statement: program.Switch) -> tuple[program.Block, ...]:
    bodies = tuple([body for _, body in statement.cases])
    return bodies if statement.default is None else (*bodies, statement.default)


_BLOCKS: dict[type, Callable[[Any], tuple[program.Block, ...]]] = {
    program.If: _blocks_of_if,
    program.Switch: _blocks_of_switch,
    **dict.fromkeys(
        (program.While, program.For, program.Scope, program.Assert), lambda statement: (statement.body,)
    ),
}


def blocks_of(statement: program.Statement) -> tuple[program.Block, ...]:
    """Return the blocks nested in a statement, in order."""
    find = _BLOCKS.get(type(statement))
    return () if find is None else find(statement)


_EXPRESSIONS: dict[type, Callable[[Any], tuple[Expr, ...]]] = {
    program.Declare: lambda statement: (statement.value,),
    program.Store: attrgetter("place", "value"),
    program.ImageStore: attrgetter("coordinate", "value"),
    program.MatrixLoad: lambda s: (s.matrix, s.source, s.stride, *s.window),
    program.MatrixStore: lambda s: (s.place, s.value, s.stride, *s.window),
    program.If: lambda statement: tuple([condition for condition, _ in statement.branches]),
    **dict.fromkeys((program.While, program.Assert), lambda statement: (statement.condition,)),
    program.For: attrgetter("start", "stop", "step"),
    program.Switch: lambda statement: (statement.value,),
    program.Print: attrgetter("args"),
}


def expressions_of(statement: program.Statement) -> tuple[Expr, ...]:
    """Return the expressions that a statement itself holds, places included, without nested blocks."""
    find = _EXPRESSIONS.get(type(statement))
    return () if find is None else find(statement)


def place_operands(place: Expr) -> Iterator[Expr]:
    """Expressions that are evaluated to find a place: its indices."""
    while place.op in (Op.INDEX, Op.COMPONENT):
        yield from place.args[1:]
        place = place.args[0]
    yield from place.args


def evaluated(statement: program.Statement) -> tuple[Expr, ...]:
    """Return the expressions whose value a statement itself uses; of a place these are its indices."""
    find = _EVALUATED.get(type(statement))
    return () if find is None else find(statement)


def _evaluated_of_declare(statement: program.Declare) -> tuple[Expr, ...]:
    if statement.value.op is not Op.ATOMIC:
        return (statement.value,)
    place, *operands = statement.value.args
    return (*place_operands(place), *operands)


_EVALUATED: dict[type, Callable[[Any], tuple[Expr, ...]]] = {
    **_EXPRESSIONS,
    program.Declare: _evaluated_of_declare,
    program.Store: lambda s: (*place_operands(s.place), s.value),
    program.MatrixLoad: lambda s: (s.source, s.stride, *s.window),
    program.MatrixStore: lambda s: (*place_operands(s.place), s.value, s.stride, *s.window),
}


def assignments_of(statement: program.Statement) -> Iterator[tuple[Register, Expr]]:
    """Yield the registers that a statement itself gives a value, with what the value is made of."""
    if isinstance(statement, program.Declare):
        yield statement.register, statement.value
    elif isinstance(statement, program.For):
        yield statement.counter, statement.start
        yield statement.counter, statement.step
    elif isinstance(statement, program.Store):
        root = root_of(statement.place)
        if isinstance(root.value, Register):
            yield root.value, statement.value


# ---- walking -------------------------------------------------------------------------------------


def walk(block: program.Block) -> Iterator[program.Statement]:
    """Every statement of a block and of the blocks nested in it, in program order."""
    for statement in block:
        yield statement
        for inner in blocks_of(statement):
            yield from walk(inner)


def nodes(roots: Iterable[Expr]) -> Iterable[Expr]:
    """Every expression reachable from the roots, each object once."""
    stack = list(roots)
    found: dict[int, Expr] = {}
    while stack:
        expr = stack.pop()
        if id(expr) not in found:
            found[id(expr)] = expr
            if expr.args:
                stack += expr.args
    return found.values()


def reach(roots: Iterable[Expr], operands: Callable[[Expr], Iterable[Expr]]) -> Iterator[Expr]:
    """Every expression to which `operands` lead from the roots, each object once."""
    stack, seen = list(roots), set[int]()
    while stack:
        expr = stack.pop()
        if id(expr) not in seen:
            seen.add(id(expr))
            yield expr
            stack += operands(expr)


def sort_operands_first(roots: Iterable[Expr]) -> list[Expr]:
    """Return every expression reachable from the roots, each object once and after its operands."""
    # `postorder`, without the cost of a generator
    done: set[int] = set()
    order: list[Expr] = []
    for root in roots:
        stack = [root]
        while stack:
            expr = stack[-1]
            known = id(expr)
            if known not in done:
                waiting = [arg for arg in expr.args if id(arg) not in done]
                if waiting:
                    stack += waiting[::-1]
                    continue
                done.add(known)
                order.append(expr)
            stack.pop()
    return order


def expressions_in(block: program.Block) -> Iterable[Expr]:
    """Every expression of the statements of a block, and of the blocks nested in it, each object once."""
    return nodes(expr for statement in walk(block) for expr in expressions_of(statement))


def postorder(
    root: Expr, done: Container[int], operands: Callable[[Expr], Iterable[Expr]] = attrgetter("args")
) -> Iterator[Expr]:
    """Every expression whose identity is not in `done`, operands first, from left to right.

    The caller adds each to `done`. Nothing recurses: expressions may be deeper than Python's stack.
    """
    if id(root) in done:
        return
    path, waiting = [root], [iter(operands(root))]
    while path:
        for operand in waiting[-1]:
            if id(operand) not in done:
                path.append(operand)
                waiting.append(iter(operands(operand)))
                break
        else:
            waiting.pop()
            yield path.pop()


# ---- rebuilding ----------------------------------------------------------------------------------


def with_args(expr: Expr, args: tuple[Expr, ...]) -> Expr:
    """Return an expression with other operands; the same one if these are its own."""
    if all(new is old for new, old in zip(args, expr.args, strict=True)):
        return expr
    return replace(expr, args=args)


def map_statement(
    statement: program.Statement,
    value: MapExpr | None = None,
    block: MapBlock | None = None,
    place: MapExpr | None = None,
) -> program.Statement:
    """Return a statement with its expressions and nested blocks replaced; the same one if nothing changes.

    Parameters
    ----------
    statement
        What to rebuild. Expressions are mapped in the order of `expressions_of`, then blocks in the order of
        `blocks_of`; an `Assert` maps its body before its condition, which may use what the body declares.
    value
        Maps expressions that are evaluated.
    block
        Maps nested blocks.
    place
        Maps what is written to, and the element at which a matrix lies in memory. Without it, `value` does.
    """
    rebuild = _REBUILD.get(type(statement))
    if rebuild is None:
        return statement
    value = value or _same
    changed: program.Statement = rebuild(statement, value, block or _same, place or value)
    return changed


def _same(part: Any) -> Any:
    return part


def _change(statement: program.Statement, **parts: Any) -> program.Statement:
    if all(getattr(statement, name) is part for name, part in parts.items()):
        return statement
    return replace(statement, **parts)


def _map_all(rule: MapExpr, exprs: tuple[Expr, ...]) -> tuple[Expr, ...]:
    changed = tuple(map(rule, exprs))
    return exprs if all(new is old for new, old in zip(changed, exprs, strict=True)) else changed


def _rebuild_declare(old: program.Declare, value: MapExpr, _: MapBlock, place: MapExpr) -> program.Statement:
    if old.value.op is Op.ATOMIC and place is not value:
        target, *operands = old.value.args
        return _change(old, value=with_args(old.value, (place(target), *map(value, operands))))
    changed = value(old.value)
    return old if changed is old.value else program.Declare(old.register, changed, old.loc)


def _rebuild_store(old: program.Store, value: MapExpr, _: MapBlock, place: MapExpr) -> program.Statement:
    target, changed = place(old.place), value(old.value)
    if target is old.place and changed is old.value:
        return old
    return program.Store(target, changed, old.operator, old.loc, old.update)


def _rebuild_if(old: program.If, value: MapExpr, block: MapBlock, _: MapExpr) -> program.Statement:
    conditions = [value(condition) for condition, _ in old.branches]
    bodies = [block(body) for _, body in old.branches]
    orelse = None if old.orelse is None else block(old.orelse)
    pairs = tuple(zip(conditions, bodies, strict=True))
    same = all(a is c and b is d for (a, b), (c, d) in zip(pairs, old.branches, strict=True))
    return _change(old, branches=old.branches if same else pairs, orelse=orelse)


def _rebuild_switch(old: program.Switch, value: MapExpr, block: MapBlock, _: MapExpr) -> program.Statement:
    chosen = value(old.value)
    cases = tuple([(values, block(body)) for values, body in old.cases])
    default = None if old.default is None else block(old.default)
    same = all(new is body for (_, new), (_, body) in zip(cases, old.cases, strict=True))
    return _change(old, value=chosen, cases=old.cases if same else cases, default=default)


# The fields of other statements, in the order in which they are mapped, and what maps them.
_FIELDS: dict[type, dict[str, str]] = {
    program.Read: {"value": "value"},
    program.ImageStore: {"coordinate": "value", "value": "value"},
    program.MatrixLoad: {"matrix": "place", "source": "place", "stride": "value", "window": "values"},
    program.MatrixStore: {"place": "place", "value": "value", "stride": "value", "window": "values"},
    program.While: {"condition": "value", "body": "block"},
    program.For: {"start": "value", "stop": "value", "step": "value", "body": "block"},
    program.Scope: {"body": "block"},
    program.Assert: {"body": "block", "condition": "value"},
    program.Print: {"args": "values"},
}


def _rebuild_fields(
    old: program.Statement, value: MapExpr, block: MapBlock, place: MapExpr
) -> program.Statement:
    rules: dict[str, Callable[[Any], Any]] = {
        "value": value,
        "values": partial(_map_all, value),
        "block": block,
        "place": place,
    }
    parts = {name: rules[kind](getattr(old, name)) for name, kind in _FIELDS[type(old)].items()}
    return _change(old, **parts)


_REBUILD: dict[type, Callable[[Any, MapExpr, MapBlock, MapExpr], program.Statement]] = {
    **dict.fromkeys(_FIELDS, _rebuild_fields),
    program.Declare: _rebuild_declare,
    program.Store: _rebuild_store,
    program.If: _rebuild_if,
    program.Switch: _rebuild_switch,
}


def without_asserts(block: program.Block) -> program.Block:
    """Return a block without its asserts; the same one if it has none."""
    if not any(isinstance(statement, program.Assert) for statement in walk(block)):
        return block
    return tuple(
        map_statement(statement, block=without_asserts)
        for statement in block
        if not isinstance(statement, program.Assert)
    )
