"""Random structured programs, written while a kernel is traced: every statement, shared memory, atomics.

A program is drawn from a seed by itself: tracing the same seed again gives the same kernel. Nothing in it
depends on the order in which invocations run.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.base.dtype import DType, bool_, int32, uint32
from vkdispatch.codegen.trace.current import current
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir import Expr, Op
from vkdispatch.compiler.ir import expressions as ex

from .random_values import Grower, Node, trace

SLOTS = 4
COUNTERS = 8
_UPDATES: dict[str, Callable[..., Any]] = {
    "+": operator.iadd,
    "-": operator.isub,
    "*": operator.imul,
    "&": operator.iand,
    "|": operator.ior,
    "^": operator.ixor,
}
# Each counter takes one kind of atomic only, so that the order of invocations does not show.
_ATOMICS = ["atomicAdd", "atomicMin", "atomicMax", "atomicAnd", "atomicOr", "atomicXor"]


def program_kinds(random: Random, kinds: list[DType]) -> list[DType]:
    """Scalar types of one program: int32 and uint32, and two more."""
    others = [kind for kind in kinds if kind not in (int32, uint32)]
    return [int32, uint32, *random.sample(others, min(2, len(others)))]


class Program:
    """Writes one program into the kernel that is being traced.

    `out` has `SLOTS` int32 elements for each invocation, which only it touches; `counters` has `COUNTERS`
    elements that all touch by atomics; `source` is read only and has `rows` elements.
    """

    def __init__(
        self,
        seed: int,
        kinds: list[DType],
        out: Any,
        source: Any,
        counters: Any,
        rows: int,
        local: int,
        *,
        nvidia: bool = False,
    ) -> None:
        self.random = Random(seed)
        self.kinds = program_kinds(self.random, kinds)
        self.out, self.source, self.counters = out, source, counters
        self.rows, self.local = rows, local
        self.nvidia = nvidia
        self.row = vc.global_invocation_id().x.to_dtype(int32).to_register("row")
        self.environment: dict[str, Any] = {}
        self.variables: list[Node] = []
        self.counter = 0
        self.loops = 0
        # a program has barriers or returns: all invocations must reach a barrier
        self.barriers = self.random.random() < 0.6
        self.tile = vc.shared_buffer(int32, local, "tile") if self.barriers else None

    # -- registers and expressions

    def name(self) -> str:
        self.counter += 1
        return f"r{self.counter}"

    def add(self, value: Any, *, assignable: bool = True) -> None:
        """Make a GPU value known to expressions."""
        name = self.name() if assignable else f"fixed{self.counter}_{len(self.variables)}"
        self.environment[name] = value
        self.variables.append(Node("variable", value.var_type, value=name, bound=8, fraction=2))

    def drawn(self, kind: DType, depth: int = 2, *, keep: bool = True) -> Node:
        grower = Grower(self.random, self.variables, self.kinds, keep=keep, nvidia=self.nvidia)
        return grower.node(kind, depth)

    def value(self, kind: DType, depth: int = 2, *, keep: bool = True) -> Any:
        """Draw a value; a float one is small, as later expressions take for granted."""
        if dt.is_float_dtype(kind):
            whole = int32 if dt.is_scalar(kind) else dt.to_vector(int32, kind.child_count)
            number = trace(self.drawn(whole, depth, keep=keep), self.environment)
            return (number & 63).to_dtype(kind) * 0.25 - 8
        return trace(self.drawn(kind, depth, keep=keep), self.environment)

    def index(self, size: int) -> Any:
        """Draw an index below a power of two."""
        return self.value(self.random.choice([int32, uint32]), 1) & (size - 1)

    def register_kind(self) -> DType:
        kind = self.random.choice(self.kinds)
        vectors = Grower(self.random, [], self.kinds).vectors(kind)
        return self.random.choice(vectors) if vectors and self.random.random() < 0.3 else kind

    # -- the program

    def write(self) -> None:
        """Write the whole program."""
        for kind in self.kinds:
            place = self.row if kind is int32 else (self.row * 7) % self.rows
            raw = self.source[place]
            for each in (raw, raw >> 3):
                small = (each & 63).to_dtype(kind) * 0.25 - 8
                self.add((small if dt.is_float_dtype(kind) else each.to_dtype(kind)).to_register())
        for _ in range(self.random.randint(3, 5)):
            self.statements(self.random.randint(2, 4), 3)
            if self.barriers:
                self.together()
        for place, node in enumerate([node for node in self.variables if node.kind in self.kinds][:SLOTS]):
            final = self.environment[node.value]
            scaled = final * 4 if dt.is_float_dtype(node.kind) else final
            self.out[self.row * SLOTS + place] ^= scaled.to_dtype(int32)

    def together(self) -> None:
        """Exchange values once, or in every round of a loop that is the same for all."""
        if self.random.random() < 0.7:
            self.exchange()
            return
        start, stop, step = (ex.literal(each, int32) for each in (0, self.random.randint(1, 3), 1))
        current().open_for(start, stop, step)
        with self.opened():
            known = list(self.variables)
            self.exchange()
            self.statements(2, 2)
            self.variables = known

    def exchange(self) -> None:
        """Give values to other invocations of the workgroup through shared memory."""
        assert self.tile is not None
        lane = vc.local_invocation_index()
        form = self.random.choice(["shift", "atomic", "subgroup"])
        if form == "subgroup":
            self.add(self.reduced())
            return
        vc.barrier()
        self.tile[lane] = self.value(int32)
        vc.barrier()
        if form == "atomic":
            self.atomic(self.tile[self.index(self.local)], self.random.choice(_ATOMICS))
            vc.barrier()
        self.add(self.tile[self.index(self.local)].to_register())

    def reduced(self) -> Any:
        name = self.random.choice(
            ["subgroup_add", "subgroup_min", "subgroup_max", "subgroup_xor", "subgroup_mul"]
        )
        return getattr(vc, name)(self.value(int32)).to_register()

    def statements(self, count: int, depth: int) -> None:
        known = list(self.variables)
        for _ in range(count):
            self.statement(depth)
        # what a block declares ends with it
        if depth < 3:
            self.variables = known

    @contextmanager
    def opened(self, *, loop: bool = False) -> Iterator[None]:
        recorder = current()
        depth = recorder.depth
        self.loops += loop
        yield
        self.loops -= loop
        recorder.close(depth - 1)

    def statement(self, depth: int) -> None:
        simple = ["assign", "assign", "update", "declare", "component", "write", "own", "count"]
        nested = ["branch", "branch", "while", "for", "switch", "scope"]
        jumps = ["jump"] * 4 + ["switch"] * (depth > 0) if self.loops else []
        jumps += ["return"] if not self.barriers and depth < 3 else []
        kind = self.random.choice(simple + (nested if depth else []) + jumps)
        getattr(self, f"_{kind}")(depth)

    def block(self, depth: int) -> None:
        self.statements(self.random.randint(1, 3), depth - 1)

    def condition(self, *, keep: bool = True) -> Any:
        return self.value(bool_, 2, keep=keep)

    # -- simple statements

    def assignable(self) -> Node:
        return self.random.choice([node for node in self.variables if node.value.startswith("r")])

    def _assign(self, depth: int) -> None:
        target = self.assignable()
        self.environment[target.value][:] = self.value(target.kind)

    def _update(self, depth: int) -> None:
        target = self.assignable()
        if dt.is_float_dtype(target.kind):
            self._assign(depth)
            return
        kind = dt.component_type(target.kind) if self.random.random() < 0.3 else target.kind
        _UPDATES[self.random.choice(list(_UPDATES))](self.environment[target.value], self.value(kind))

    def _declare(self, depth: int) -> None:
        self.add(self.value(self.register_kind()).to_register())

    def _component(self, depth: int) -> None:
        vectors = [node for node in self.variables if dt.is_vector(node.kind) and node.value.startswith("r")]
        if not vectors:
            self._declare(depth)
            return
        target = self.random.choice(vectors)
        value = self.value(dt.component_type(target.kind))
        if target.kind.child_count == 3 or self.random.random() < 0.5:
            setattr(
                self.environment[target.value], self.random.choice("xyz"[: target.kind.child_count]), value
            )
        else:
            self.environment[target.value][self.index(target.kind.child_count)] = value

    def slot(self) -> Any:
        """An element of its own, by a number or one that the GPU finds."""
        place = (
            self.random.randrange(SLOTS) if self.random.random() < 0.5 else self.index(SLOTS).to_dtype(int32)
        )
        return self.row * SLOTS + place

    def _write(self, depth: int) -> None:
        if self.random.random() < 0.4:
            value = self.value(int32)
            self.out[self.slot()] += value
            return
        self.out[self.slot()] = self.value(int32)

    def _own(self, depth: int) -> None:
        """Read an element of its own or one of the source, or find one by an atomic that nobody disputes."""
        form = self.random.randrange(3)
        if form == 0:
            self.add(self.out[self.slot()].to_register())
        elif form == 1:
            self.add(self.source[self.index(self.rows)].to_register())
        else:
            self.add(
                self.atomic(
                    self.out[self.slot()], self.random.choice([*_ATOMICS, "atomicExchange", "atomicCompSwap"])
                )
            )

    def _count(self, depth: int) -> None:
        which = self.random.randrange(len(_ATOMICS))
        self.atomic(self.counters[which], _ATOMICS[which])

    def atomic(self, place: Any, function: str) -> Any:
        operands = [self.value(int32) for _ in range(2 if function == "atomicCompSwap" else 1)]
        expr = Expr(Op.ATOMIC, int32, (place.expr, *(operand.expr for operand in operands)), function)
        return ShaderVariable(current().declare(int32, expr))

    # -- blocks

    def _branch(self, depth: int) -> None:
        # conditions of later cases are known first: nothing may stand between the branches
        truths = [ex.condition(self.condition().expr) for _ in range(self.random.randint(1, 3))]
        current().open_if(truths[0])
        with self.opened():
            self.block(depth)
        for truth in truths[1:]:
            current().open_else_if(truth)
            with self.opened():
                self.block(depth)
        if self.random.random() < 0.5:
            current().open_else()
            with self.opened():
                self.block(depth)

    def _while(self, depth: int) -> None:
        fuel = vc.new_int_register(self.random.randint(0, 5))
        truth = vc.all(fuel > 0, self.condition(keep=False))
        current().open_while(truth.expr)
        with self.opened(loop=True):
            # first, so that a continue does not skip it
            fuel -= 1
            self.block(depth)

    def _for(self, depth: int) -> None:
        kind = self.random.choice([int32, uint32])
        if kind is int32:
            start, stop = self.random.randint(-3, 3), self.random.randint(-3, 6)
            step: Any = self.random.choice([1, 1, 2, -1, -2, 3])
        else:
            start, stop, step = (
                self.random.randint(0, 2),
                self.random.randint(0, 6),
                self.random.choice([1, 2]),
            )
        bounds: list[Any] = [start, stop, step]
        if self.random.random() < 0.5:
            bounds[1] = self.value(kind, 1) & 7
        if self.random.random() < 0.3:
            bounds[0] = self.value(kind, 1) & 3
        if self.random.random() < 0.2 and kind is int32:
            bounds[2] = (self.value(kind, 1) & 3) - 1
        exprs = [each.expr if isinstance(each, ShaderVariable) else ex.literal(each, kind) for each in bounds]
        counter = current().open_for(*exprs)
        with self.opened(loop=True):
            known = list(self.variables)
            self.add(ShaderVariable(counter), assignable=False)
            self.block(depth)
            self.variables = known

    def _switch(self, depth: int) -> None:
        kind = self.random.choice([int32, uint32])
        value = self.value(kind) & self.random.choice([3, 7])
        current().open_switch(value.expr)
        with self.opened():
            numbers = self.random.sample(range(8), 4)
            for values in (tuple(numbers[:2]), (numbers[2],), (numbers[3],))[: self.random.randint(1, 3)]:
                current().open_case(values)
                with self.opened():
                    self.block(depth)
            if self.random.random() < 0.6:
                current().open_default()
                with self.opened():
                    self.block(depth)

    def _scope(self, depth: int) -> None:
        current().open_scope()
        with self.opened():
            self.block(depth)

    def _jump(self, depth: int) -> None:
        current().open_if(self.condition().expr)
        with self.opened():
            if self.random.random() < 0.5:
                current().leave_loop()
            else:
                current().next_round()

    def _return(self, depth: int) -> None:
        current().open_if(self.condition().expr)
        with self.opened():
            vc.return_statement()
