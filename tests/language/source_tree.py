"""Programs as trees of statements and values, which can be written as Python text and made smaller."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Value:
    """An expression: text with other values inside, the types that the device may give it, and its range.

    `fraction` counts the binary places of a float.
    """

    parts: tuple[str | Value, ...]
    types: frozenset[str]
    low: float = 0
    high: float = 0
    fraction: int = 0

    def __str__(self) -> str:
        return "".join(map(str, self.parts))

    def fits(self, other: Value) -> bool:
        """Whether this may stand in the place of another value."""
        inside = other.low <= self.low and self.high <= other.high and self.fraction <= other.fraction
        return self.types <= other.types and inside


Parts = list[str | Value]


@dataclass(eq=False)
class Line:
    """Rows of text that belong together. A fixed one stays when programs are made smaller."""

    rows: list[Parts]
    fixed: bool = False


@dataclass(eq=False)
class Clause:
    head: Parts
    body: list[Statement]


@dataclass(eq=False)
class Block:
    """A compound statement: the clauses of an if, a loop and its else, the cases of a match, a function."""

    clauses: list[Clause]
    before: list[Parts] = field(default_factory=list)
    inside: list[Clause] | None = None
    fixed: bool = False


Statement = Line | Block


@dataclass(eq=False)
class Buffer:
    """Memory of a program. `kind` is a short name of a type; vectors are lists."""

    kind: str
    data: list[Any]


@dataclass(frozen=True)
class Edge:
    """What holds of a program whose numbers may not fit.

    `rule` is "wraps" where integers wrap around, and "exact" where they must not; `fits` tells that every
    number fits in the type that it meets, so that nothing may be refused.
    """

    rule: str
    fits: bool
    form: str


@dataclass(eq=False)
class Program:
    """A module of functions, the last of which is the kernel, and how to call it."""

    seed: int
    features: tuple[str, ...]
    functions: list[Statement]
    buffers: list[Buffer]
    parameters: list[tuple[str, int]]
    exec_size: tuple[int, ...]
    local_size: tuple[int, ...]
    edge: Edge | None = None

    def source(self) -> str:
        header = "import math\nimport vkdispatch as vd\nimport vkdispatch.codegen as vc\n"
        return header + "\n\n".join(["", *("\n".join(rows(each, 0)) for each in self.functions)]) + "\n"

    def kind(self, name: str) -> str:
        return next(self.buffers[place].kind for each, place in self.parameters if each == name)

    def description(self) -> str:
        """Return the program, its arguments and its size as text that runs."""
        names = ", ".join(
            f"{name}: {self.buffers[place].kind} buffer {place}" for name, place in self.parameters
        )
        data = "\n".join(
            f"# buffer {place}: {buffer.kind} {buffer.data[:12]}{'...' if len(buffer.data) > 12 else ''}"
            for place, buffer in enumerate(self.buffers)
        )
        size = f"exec_size={self.exec_size}, local_size={self.local_size}"
        return f"# seed {self.seed}, {', '.join(self.features)}; {names}; {size}\n{data}\n{self.source()}"


def rows(statement: Statement, depth: int) -> list[str]:
    """Lines of text of a statement."""
    margin = "    " * depth
    if isinstance(statement, Line):
        return [margin + "".join(map(str, parts)) for parts in statement.rows]
    found = [margin + "".join(map(str, parts)) for parts in statement.before]
    for clause in statement.clauses:
        found.append(margin + "".join(map(str, clause.head)))
        body = [row for each in clause.body for row in rows(each, depth + 1)]
        found += body or [margin + "    pass"]
    return found


# -- smaller programs ------------------------------------------------------------------------------------


class Edit:
    """A change that can be taken back."""

    def __init__(self, place: list[Any], start: int, stop: int, new: list[Any]) -> None:
        self.place, self.start, self.stop, self.new = place, start, stop, new
        self.old: list[Any] = []

    def do(self) -> None:
        self.old = self.place[self.start : self.stop]
        self.place[self.start : self.stop] = self.new

    def undo(self) -> None:
        self.place[self.start : self.start + len(self.new)] = self.old


def edits(program: Program) -> Iterator[Edit]:
    """Ways to make a program smaller, the boldest first. The program may be changed between them."""
    yield from _of_list(program.functions, spare=1)
    for body in list(_bodies(program.functions)):
        yield from _of_list(body)
    for body in list(_bodies(program.functions)):
        for place, statement in enumerate(list(body)):
            if isinstance(statement, Block) and not statement.fixed:
                yield from _of_block(body, place, statement)
    for parts in list(_all_parts(program.functions)):
        for place, part in enumerate(list(parts)):
            if isinstance(part, Value):
                for smaller in _smaller(part):
                    if parts[place : place + 1] == [part]:
                        yield Edit(parts, place, place + 1, [smaller])


def _of_list(body: list[Statement], spare: int = 0) -> Iterator[Edit]:
    """Leave statements out: many at once, then one."""
    size = len(body) - spare
    while size >= 1:
        start = max(0, len(body) - spare - size)
        while start >= 0:
            chosen = body[start : start + size]
            if chosen and not any(each.fixed for each in chosen):
                yield Edit(body, start, start + size, [])
            start -= max(1, size)
        size //= 2


def _of_block(body: list[Statement], place: int, block: Block) -> Iterator[Edit]:
    if body[place : place + 1] != [block]:
        return
    for clause in block.clauses:
        if not any(each.fixed for each in clause.body):
            yield Edit(body, place, place + 1, list(clause.body))
    for number in range(len(block.clauses) - 1, 0, -1):
        yield Edit(block.clauses, number, number + 1, [])


def _bodies(statements: list[Statement]) -> Iterator[list[Statement]]:
    for statement in statements:
        if isinstance(statement, Block):
            for clause in statement.clauses:
                yield clause.body
                yield from _bodies(clause.body)


def _all_parts(statements: list[Statement]) -> Iterator[Parts]:
    for statement in statements:
        if isinstance(statement, Line):
            yield from statement.rows
            continue
        yield from statement.before
        for clause in statement.clauses:
            yield clause.head
            yield from _all_parts(clause.body)


def _smaller(value: Value) -> Iterator[Value]:
    """Values that may stand for a larger one: a number, a part of it, or itself with a smaller part."""
    if len(value.parts) == 1 and isinstance(value.parts[0], str):
        return
    if "py" in value.types:
        number = int(min(max(value.low, 1), value.high))
        yield Value((str(number),), frozenset({"py"}), number, number)
    for part in value.parts:
        if isinstance(part, Value) and part.fits(value):
            yield part
    for place, part in enumerate(value.parts):
        if isinstance(part, Value):
            for smaller in _smaller(part):
                parts = (*value.parts[:place], smaller, *value.parts[place + 1 :])
                yield Value(parts, value.types, value.low, value.high, value.fraction)
