"""Which kernels can be fused with others, and what fusion has to know of them."""

from collections.abc import Iterator, Mapping

from vkdispatch.analyses.index_space import Space
from vkdispatch.base.dtype import is_cooperative
from vkdispatch.base.record import record, replace
from vkdispatch.base.structures import is_structure
from vkdispatch.ir import (
    Argument,
    Block,
    Builtin,
    Declare,
    Effect,
    Expr,
    For,
    If,
    ImageBinding,
    ImageStore,
    Kernel,
    MatrixLoad,
    MatrixStore,
    Op,
    Print,
    RawStatement,
    Register,
    Return,
    Scope,
    SharedArray,
    Statement,
    Storage,
    Store,
    blocks_of,
    expressions_in,
    expressions_of,
    map_statement,
    nodes,
    place_operands,
    root_of,
    walk,
)
from vkdispatch.passes.builders import negate

_FORBIDDEN_STATEMENTS = (Effect, RawStatement, Print, ImageStore, MatrixLoad, MatrixStore)
_FORBIDDEN_OPERATIONS = (Op.RAW, Op.ATOMIC, Op.SUBGROUP)


@record(eq=False)
class Elementwise:
    """A kernel whose invocations are independent of each other and of workgroups.

    Attributes
    ----------
    kernel
        The kernel, without branches that a launch never takes.
    elements
        Its elements of buffers, read or written, each expression once.
    written
        By identity of each element that is stored to: whether it is read as well.
    definitions
        The values of registers that never change.
    conditions
        Conditions of its branches, in order.
    deciding
        Arguments that indices and conditions depend on.
    size
        Number of expressions and statements.
    returns
        Whether an invocation may end early, so that nothing can come after the kernel.
    """

    kernel: Kernel
    elements: tuple[Expr, ...]
    written: Mapping[int, bool]
    definitions: Mapping[Register, Expr]
    conditions: tuple[Expr, ...]
    deciding: tuple[Argument, ...]
    size: int
    returns: bool


def elementwise(kernel: Kernel) -> Elementwise | None:
    """Analyze a kernel; None if its invocations may depend on each other or on workgroups, or run GLSL."""
    if kernel.shared or kernel.exec_count is None or kernel.reads or kernel.writes:
        return None
    if any(isinstance(resource, ImageBinding) and resource.storage for resource in kernel.resources):
        return None
    if any(isinstance(resource, Storage) and is_structure(resource.dtype) for resource in kernel.resources):
        return None
    statements = list(walk(kernel.body))
    if any(isinstance(statement, _FORBIDDEN_STATEMENTS) for statement in statements):
        return None
    found = list(expressions_in(kernel.body))
    if any(map(_is_forbidden, found)):
        return None
    definitions = definitions_of(statements)
    elements = tuple(expr for expr in found if expr.op is Op.ELEMENT)
    conditions = tuple(_list_conditions(kernel.body))
    body, returns = _remove_returns(kernel.body)
    return Elementwise(
        kernel if body is kernel.body else replace(kernel, body=body),
        elements,
        dict(_find_written(statements)),
        definitions,
        conditions,
        _arguments_of((*(element.args[0] for element in elements), *conditions), definitions),
        len(found) + len(statements),
        returns,
    )


def decide_branches(kernel: Elementwise, space: Space) -> tuple[bool | None, ...]:
    """Return the value of each condition in all invocations of a launch; None where it may differ."""
    return tuple(space.holds(condition) for condition in kernel.conditions)


def resolve_branches(original: Kernel, known: tuple[bool | None, ...]) -> Elementwise | None:
    """Return a kernel without the branches that are always or never taken.

    Parameters
    ----------
    original
        A kernel for which there is an `Elementwise`.
    known
        As `decide_branches` gives them.
    """
    if not any(answer is not None for answer in known):
        return elementwise(original)
    return elementwise(replace(original, body=_resolve(original.body, iter(known))))


def _is_forbidden(expr: Expr) -> bool:
    if expr.op in _FORBIDDEN_OPERATIONS or isinstance(expr.value, SharedArray) or is_cooperative(expr.dtype):
        return True
    return expr.op is Op.BUILTIN and expr.value is not Builtin.GLOBAL_INVOCATION_ID


def definitions_of(statements: list[Statement]) -> dict[Register, Expr]:
    """Return the values of registers that are declared once and never stored to."""
    definitions: dict[Register, Expr] = {}
    changing: set[Register] = set()
    for statement in statements:
        if isinstance(statement, Declare):
            if statement.register in definitions:
                changing.add(statement.register)
            definitions[statement.register] = statement.value
        elif isinstance(statement, For):
            changing.add(statement.counter)
        elif isinstance(statement, Store):
            root = root_of(statement.place)
            if isinstance(root.value, Register):
                changing.add(root.value)
    return {register: value for register, value in definitions.items() if register not in changing}


def _find_written(statements: list[Statement]) -> Iterator[tuple[int, bool]]:
    read: set[int] = set()
    written: list[int] = []
    for statement in statements:
        roots: tuple[Expr, ...] = expressions_of(statement)
        if isinstance(statement, Store):
            root = root_of(statement.place)
            if root.op is Op.ELEMENT:
                written.append(id(root))
                if statement.operator is not None or root is not statement.place:
                    read.add(id(root))
            roots = (*place_operands(statement.place), statement.value)
        read.update(id(expr) for expr in nodes(roots) if expr.op is Op.ELEMENT)
    return ((element, element in read) for element in written)


def _list_conditions(block: Block) -> Iterator[Expr]:
    for statement in block:
        if isinstance(statement, If):
            yield from (condition for condition, _ in statement.branches)
        for inner in blocks_of(statement):
            yield from _list_conditions(inner)


def _arguments_of(roots: tuple[Expr, ...], definitions: Mapping[Register, Expr]) -> tuple[Argument, ...]:
    """Return the arguments that expressions depend on, directly or through registers."""
    found: dict[Argument, None] = {}
    seen: set[int] = set()
    waiting = list(roots)
    while waiting:
        expr = waiting.pop()
        if id(expr) in seen:
            continue
        seen.add(id(expr))
        waiting.extend(expr.args)
        if isinstance(expr.value, Argument):
            found[expr.value] = None
        elif isinstance(expr.value, Register) and expr.value in definitions:
            waiting.append(definitions[expr.value])
    return tuple(found)


def _resolve(block: Block, known: Iterator[bool | None]) -> Block:
    out: list[Statement] = []
    for statement in block:
        if not isinstance(statement, If):
            out.append(map_statement(statement, block=lambda inner: _resolve(inner, known)))
            continue
        # in the order of _conditions: those of one statement, then those within its blocks
        answers = [next(known) for _ in statement.branches]
        bodies = [_resolve(body, known) for _, body in statement.branches]
        orelse = None if statement.orelse is None else _resolve(statement.orelse, known)
        branches: list[tuple[Expr, Block]] = []
        for (condition, _), answer, body in zip(statement.branches, answers, bodies, strict=True):
            if answer is None:
                branches.append((condition, body))
            elif answer:
                orelse = body
                break
        if branches:
            out.append(replace(statement, branches=tuple(branches), orelse=orelse))
        else:
            out.extend(orelse or ())
    return tuple(out)


# ---- returns -------------------------------------------------------------------------------------


def _has_returns(block: Block) -> bool:
    return any(isinstance(statement, Return) for statement in walk(block))


def _remove_returns(block: Block) -> tuple[Block, bool]:
    """Replace early returns by branches; returns the block, and whether a return is left."""
    if not _has_returns(block):
        return block, False
    lowered = _lower(block)
    return (block, True) if lowered is None else (lowered[0], False)


def _lower(block: Block) -> tuple[Block, bool] | None:
    """Return a block without its returns, and whether it always ends in one; None if that is impossible."""
    for position, statement in enumerate(block):
        before, after = block[:position], block[position + 1 :]
        if isinstance(statement, Return):
            return before, True
        if not _has_returns((statement,)):
            continue
        if isinstance(statement, Scope):
            inner = _lower((*statement.body, *after))
            return None if inner is None else ((*before, replace(statement, body=inner[0])), inner[1])
        if not isinstance(statement, If):
            return None
        return _split_branches(before, statement, after)
    return block, False


def _split_branches(before: Block, statement: If, after: Block) -> tuple[Block, bool] | None:
    bodies = [body for _, body in statement.branches] + [statement.orelse or ()]
    lowered = [_lower(body) for body in bodies]
    going_on = [number for number, body in enumerate(lowered) if body is not None and not body[1]]
    # the statements after the if are not duplicated
    if None in lowered or len(going_on) > 1:
        return None
    ended = True
    if going_on:
        inner = _lower((*bodies[going_on[0]], *after))
        if inner is None:
            return None
        lowered[going_on[0]], ended = inner, inner[1]
    *branches, orelse = [body[0] for body in lowered if body is not None]
    if len(branches) == 1 and not branches[0]:
        condition = statement.branches[0][0]
        negated = negate(condition, condition.loc)
        return (*before, If(((negated, orelse),), None, statement.loc)), ended
    pairs = tuple(
        (condition, body) for (condition, _), body in zip(statement.branches, branches, strict=True)
    )
    return (*before, If(pairs, orelse or None, statement.loc)), ended
