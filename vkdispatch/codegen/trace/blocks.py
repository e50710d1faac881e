"""Open blocks of a kernel, and the statements that they become when they are closed."""

from typing import Literal

from vkdispatch.base.record import field, record, replace
from vkdispatch.ir import Block, Expr, For, If, Scope, Statement, Switch, While
from vkdispatch.ir.location import Loc


@record(eq=False, frozen=False)
class Frame:
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
    # opened by `open_block`: whoever takes its statements places them
    detached: bool = False
    statements: list[Statement] = field(factory=list)
    # registers by identity, as they were read here since they last changed
    reads: dict[int, Expr] = field(factory=dict)


def close_block(frame: Frame, block: Block) -> Statement:
    """Return the statement that an open block becomes; `block` is its statements."""
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
