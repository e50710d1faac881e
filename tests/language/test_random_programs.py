"""Random structured programs, run by kernels and, all rows in step, by a small interpreter."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType
from vkdispatch.codegen.abbreviations import Buff, i32, u32

from .running import buffer_of, filled, host, integers, same
from .trees import BOOL, Grower, Node, compute, trace

ROWS = 48
REGISTERS = [*(Node("variable", i32, name=f"i{n}") for n in range(3)), Node("variable", u32, name="u0")]
SLOTS = len(REGISTERS) + 2


@dataclass(frozen=True)
class Assign:
    target: Node
    value: Node
    symbol: str = ""


@dataclass(frozen=True)
class Declare:
    target: Node
    value: Node


@dataclass(frozen=True)
class Write:
    """Store in, or with `add` add to, an element of the output."""

    slot: int
    value: Node
    add: bool


@dataclass(frozen=True)
class Branch:
    cases: list[tuple[Node, Block]]
    orelse: Block | None


@dataclass(frozen=True)
class Loop:
    """At most `limit` rounds, as long as the condition holds."""

    limit: int
    condition: Node
    body: Block


@dataclass(frozen=True)
class Scope:
    body: Block


@dataclass(frozen=True)
class Return:
    pass


Statement = Assign | Declare | Write | Branch | Loop | Scope | Return
Block = list[Statement]


# -- drawing


class Author:
    """Draws programs; block-local registers are visible where Python's `with` blocks show them."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self.draw = draw
        self.names = (f"local{n}" for n in itertools.count())

    def expression(self, visible: list[Node], kind: DType) -> Node:
        return Grower(self.draw, visible).node(kind, self.draw(st.integers(1, 2)))

    def block(self, visible: list[Node], depth: int) -> Block:
        scope = list(visible)
        return [self.statement(scope, depth) for _ in range(self.draw(st.integers(1, 4)))]

    def statement(self, scope: list[Node], depth: int) -> Statement:
        simple = ["assign", "assign", "update", "declare", "write"]
        kind = self.draw(
            st.sampled_from(simple + (["branch", "branch", "loop", "scope", "return"] if depth else []))
        )
        if kind in ("assign", "update"):
            target = self.draw(st.sampled_from(scope))
            symbol = self.draw(st.sampled_from(["+", "-", "*", "&", "|", "^"])) if kind == "update" else ""
            return Assign(target, self.expression(scope, target.kind), symbol)
        if kind == "declare":
            target = Node("variable", self.draw(st.sampled_from([i32, u32])), name=next(self.names))
            value = self.expression(scope, target.kind)
            scope.append(target)
            return Declare(target, value)
        if kind == "write":
            slot = self.draw(st.integers(len(REGISTERS), SLOTS - 1))
            return Write(slot, self.expression(scope, i32), self.draw(st.booleans()))
        if kind == "branch":
            cases = [
                (self.expression(scope, BOOL), self.block(scope, depth - 1))
                for _ in range(self.draw(st.integers(1, 3)))
            ]
            return Branch(cases, self.block(scope, depth - 1) if self.draw(st.booleans()) else None)
        if kind == "loop":
            limit = self.draw(st.integers(0, 5))
            return Loop(limit, self.expression(scope, BOOL), self.block(scope, depth - 1))
        if kind == "scope":
            return Scope(self.block(scope, depth - 1))
        return Branch([(self.expression(scope, BOOL), [Return()])], None)


@st.composite
def programs(draw: Callable[[Any], Any]) -> Block:
    author = Author(draw)
    return [statement for _ in range(2) for statement in author.block(REGISTERS, 3)]


# -- emitting


class Emitter:
    """Writes a program into the kernel that is being traced, in one of the two styles of blocks."""

    def __init__(self, out: Any, row: Any, by_hand: bool) -> None:
        self.out, self.row, self.by_hand = out, row, by_hand

    @contextmanager
    def opened(
        self, context: Callable[..., Any], statement: Callable[..., Any], *args: Any
    ) -> Iterator[None]:
        if self.by_hand:
            statement(*args)
            yield
        else:
            with context(*args):
                yield

    def block(self, block: Block, variables: dict[str, Any]) -> None:
        own = dict(variables)
        for statement in block:
            self.statement(statement, own)

    def statement(self, statement: Statement, variables: dict[str, Any]) -> None:
        match statement:
            case Assign(target, value, symbol):
                register, traced = variables[target.name], trace(value, variables)
                if symbol == "+":
                    register += traced
                elif symbol == "-":
                    register -= traced
                elif symbol == "*":
                    register *= traced
                elif symbol == "&":
                    register &= traced
                elif symbol == "|":
                    register |= traced
                elif symbol == "^":
                    register ^= traced
                else:
                    register[:] = traced
            case Declare(target, value):
                variables[target.name] = trace(value, variables).to_register(target.name)
            case Write(slot, value, add):
                if add:
                    self.out[self.row * SLOTS + slot] += trace(value, variables)
                else:
                    self.out[self.row * SLOTS + slot] = trace(value, variables)
            case Branch(cases, orelse):
                self.branch(cases, orelse, variables)
            case Loop(limit, condition, body):
                rounds = vc.new_int_register()
                # a kept part of the condition would be computed only once, before the loop
                truth = vc.all(rounds < limit, trace(_nothing_kept(condition), variables))
                with self.opened(vc.while_block, vc.while_statement, truth):
                    self.block(body, variables)
                    rounds += 1
                self.close()
            case Scope(body):
                with self.opened(vc.scope_block, vc.new_scope):
                    self.block(body, variables)
                self.close()
            case Return():
                vc.return_statement()

    def branch(
        self, cases: list[tuple[Node, Block]], orelse: Block | None, variables: dict[str, Any]
    ) -> None:
        # conditions of later cases are registers: nothing may stand between the branches
        truths = [trace(condition, variables) for condition, _ in cases]
        for place, (truth, (_, body)) in enumerate(zip(truths, cases, strict=True)):
            openers = (vc.else_if_block, vc.else_if_statement) if place else (vc.if_block, vc.if_statement)
            with self.opened(*openers, truth):
                self.block(body, variables)
        if orelse is not None:
            with self.opened(vc.else_block, vc.else_statement):
                self.block(orelse, variables)
        self.close()

    def close(self) -> None:
        if self.by_hand:
            vc.end()


def _nothing_kept(node: Node) -> Node:
    args = tuple(_nothing_kept(arg) for arg in node.args)
    return Node(node.op, node.kind, args, node.name, node.number, node.bound, node.fraction)


# -- interpreting


class Interpreter:
    """Runs a program for all rows in step: `alive` says which rows have not returned."""

    def __init__(self, inputs: dict[str, Any]) -> None:
        self.out = np.zeros((ROWS, SLOTS), np.int32)
        self.alive = np.ones(ROWS, bool)
        self.inputs = inputs

    def block(self, block: Block, variables: dict[str, Any], mask: Any) -> None:
        own = dict(variables)
        for statement in block:
            self.statement(statement, own, mask & self.alive)
        for name in variables:
            variables[name] = own[name]

    def value(self, node: Node, variables: dict[str, Any]) -> Any:
        with np.errstate(all="ignore"):
            return np.broadcast_to(compute(node, variables), ROWS)

    def statement(self, statement: Statement, variables: dict[str, Any], mask: Any) -> None:
        match statement:
            case Assign(target, value, symbol):
                result = Node(symbol, target.kind, (target, value)) if symbol else value
                changed = np.where(mask, self.value(result, variables), variables[target.name])
                variables[target.name] = changed.astype(host(target.kind))
            case Declare(target, value):
                variables[target.name] = self.value(value, variables).copy()
            case Write(slot, value, add):
                base = self.out[:, slot] if add else np.int32(0)
                self.out[:, slot] = np.where(mask, base + self.value(value, variables), self.out[:, slot])
            case Branch(cases, orelse):
                truths = [self.value(condition, variables) for condition, _ in cases]
                for truth, (_, body) in zip(truths, cases, strict=True):
                    self.block(body, variables, mask & truth)
                    mask = mask & ~truth
                if orelse is not None:
                    self.block(orelse, variables, mask)
            case Loop(limit, condition, body):
                for _ in range(limit):
                    mask = mask & self.alive & self.value(condition, variables)
                    self.block(body, variables, mask)
            case Scope(body):
                self.block(body, variables, mask)
            case Return():
                self.alive = self.alive & ~mask


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(programs(), st.booleans())
def test_kernels_agree_with_an_interpreter(program: Block, by_hand: bool) -> None:
    @vd.shader(exec_size=ROWS, local_size=32)
    def body(out: Buff[i32], source: Buff[i32]) -> None:
        row = vc.global_invocation_id().x
        variables = {}
        for place, node in enumerate(REGISTERS):
            variables[node.name] = source[row + place * ROWS].to_dtype(node.kind).to_register(node.name)
        Emitter(out, row, by_hand).block(program, variables)
        for place, node in enumerate(REGISTERS):
            out[row * SLOTS + place] = variables[node.name].to_dtype(i32)

    columns = [
        integers(i32, ROWS, 1),
        integers(i32, ROWS, 2)[::-1] % 10,
        np.arange(ROWS) - 20,
        integers(i32, ROWS, 3),
    ]
    source = np.stack(columns).astype(np.int32)
    variables = {node.name: source[n].astype(host(node.kind)) for n, node in enumerate(REGISTERS)}
    interpreter = Interpreter(variables)
    interpreter.block(program, variables, np.ones(ROWS, bool))
    for place, node in enumerate(REGISTERS):
        final = variables[node.name].astype(np.int32)
        interpreter.out[:, place] = np.where(interpreter.alive, final, interpreter.out[:, place])

    out = filled(ROWS * SLOTS, i32)
    body(out, buffer_of(i32, source.ravel()))
    same(out.read(0).reshape(ROWS, SLOTS), interpreter.out, f"{program}\n{body.get_src()}")
