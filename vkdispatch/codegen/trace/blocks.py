"""Open blocks of a kernel, and the statements that they become when they are closed."""

from typing import Literal

from vkdispatch.base.record import field, record, replace
from vkdispatch.compiler.ir import (
    Block,
    Break,
    Declare,
    Expr,
    For,
    If,
    Op,
    Register,
    Return,
    Scope,
    Statement,
    Store,
    Switch,
    While,
    root_of,
    walk,
)
from vkdispatch.compiler.ir.location import Loc


@record(eq=False, frozen=False)
class Contents:
    """The values that registers get in an open block, by register, and how many statements leave it early.

    They are counted up as the block grows, since each look at a program would else walk all of it.
    """

    values: dict[int, list[Expr]] = field(factory=dict)
    exits: int = 0
    # the statements that are counted, with their registers and exits
    _counted: list[tuple[Statement, list[int], int]] = field(factory=list)

    def update(self, statements: list[Statement]) -> None:
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
            for each in walk((statement,)):
                if isinstance(each, Declare):
                    register, value = each.register, each.value
                elif isinstance(each, Store):
                    root, value = root_of(each.place).value, each.value
                    if not isinstance(root, Register):
                        continue
                    register = root
                    if each.operator is not None:
                        value = Expr(Op.BINARY, each.place.dtype, (each.place, value), each.operator)
                else:
                    self.exits += isinstance(each, (Break, Return))
                    continue
                registers.append(id(register))
                self.values.setdefault(id(register), []).append(value)
            counted.append((statement, registers, self.exits - before))


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
    _contents: Contents = field(factory=Contents)

    @property
    def contents(self) -> Contents:
        """What its statements hold by now."""
        self._contents.update(self.statements)
        return self._contents


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
