"""Invocations beyond the execution size in kernels with barriers: what they do, and what stays as it was."""

from __future__ import annotations

import math
import os
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.record import replace
from vkdispatch.codegen.abbreviations import Buff, Const, f32, i32, u32
from vkdispatch.compiler.analyses.verify import verify
from vkdispatch.compiler.forms import Variant
from vkdispatch.compiler.interpreter.execution import run_kernel
from vkdispatch.compiler.interpreter.memory import Cells
from vkdispatch.compiler.interpreter.program import Memory
from vkdispatch.compiler.ir import Effect, Kernel, walk
from vkdispatch.compiler.passes.bounds import guard_effects, keeps_workgroups
from vkdispatch.compiler.passes.widen import widen

EARLY = "if (any(greaterThanEqual(gl_GlobalInvocationID, PC.exec_count))) return;"
LOCAL = (8, 1, 1)
FLOWS = int(os.environ.get("VKDISPATCH_RANDOM_KERNELS", "40"))
FIRST = int(os.environ.get("VKDISPATCH_RANDOM_SEED", "0"))


def traced(function: Callable[..., None], **options: Any) -> Any:
    return vd.shader(**({"exec_size": 1, "local_size": LOCAL} | options))(function)


def text_of(kernel: Any, variant: Variant | None = None) -> str:
    text: str = kernel.shader_description.shader_source(LOCAL, variant or Variant()).code
    return text.partition("void main() {")[2]


def run_whole(kernel: Kernel, count: int, arrays: list[Any], values: dict[str, Any]) -> None:
    """Run a kernel on all invocations of its workgroups, none of which may miss a barrier."""
    kernel = replace(kernel, exec_count=None)
    verify(kernel)
    arguments: dict[str, Any] = {}
    for argument in kernel.arguments:
        size = {"exec_count": count}.get(argument.name, values.get(argument.name, 1))
        kind = np.dtype(np.uint64 if kernel.wide else np.uint32)
        if argument.name in values:
            kind = np.array(size).dtype
        row = [[size, 1, 1]] if argument.name == "exec_count" and not kernel.wide else [size]
        arguments[argument.name] = np.array(row, kind)
    buffers = {
        position: Cells(f"buffer {position}", array.reshape(-1, 1)[:, 0], array.shape, len(array))
        for position, array in enumerate(arrays)
    }
    groups = (math.ceil(count / LOCAL[0]), 1, 1)
    run_kernel("kernel", kernel, Memory(arguments, buffers), groups=groups, local_size=LOCAL, races=True)


# ---- kernels that are right, with the numbers they take ------------------------------------------


def _reversing(x: Buff[i32], y: Buff[i32], n: Const[u32]) -> None:
    shared = vc.shared_buffer(i32, 8)
    lid, i = vc.local_invocation_id().x, vc.global_invocation_id().x
    shared[lid] = x[i]
    vc.barrier()
    there = vc.min(8, n - vc.workgroup_id().x * 8)
    y[i] = shared[there - 1 - lid]


def _halving(x: Buff[i32], y: Buff[i32], n: Const[u32]) -> None:
    shared = vc.shared_buffer(i32, 8)
    lid, i = vc.local_invocation_id().x, vc.global_invocation_id().x
    there = vc.min(8, n - vc.workgroup_id().x * 8)
    shared[lid] = x[i]
    stride = vc.new_register(u32, 4)
    while stride > 0:
        vc.barrier()
        if (lid < stride) & (lid + stride < there):
            shared[lid] += shared[lid + stride]
        stride >>= 1
    vc.barrier()
    y[i] = shared[0]


def _deciding(x: Buff[i32], y: Buff[i32], n: Const[u32]) -> None:
    shared = vc.shared_buffer(i32, 8)
    lid, i = vc.local_invocation_id().x, vc.global_invocation_id().x
    value = vc.new_register(i32, x[i])
    if lid == 0:
        shared[0] = 3
    vc.barrier()
    while shared[0] > 0:
        left = vc.new_register(i32, shared[0])
        vc.barrier()
        if left == 2:
            value += 7
            vc.barrier()
        elif value > 1000000:
            vc.barrier()
        if lid == 0:
            shared[0] = left - 1
        vc.barrier()
    for k in vc.range(x[0] * 0 + 2):
        value += k + 1
        vc.barrier()
    y[i] = value


def _switching(x: Buff[i32], y: Buff[i32], n: Const[u32]) -> None:
    shared = vc.shared_buffer(i32, 8)
    lid, i = vc.local_invocation_id().x, vc.global_invocation_id().x
    shared[lid] = x[i]
    vc.barrier()
    for k in range(3):
        with vc.switch_block((shared[0] + k) % 3):
            with vc.case_block(0):
                vc.barrier()
                y[i] += 10
            with vc.case_block(1):
                y[i] += 3
                vc.barrier()
    y[i] += shared[0]


def _nested(x: Buff[i32], y: Buff[i32], n: Const[u32]) -> None:
    shared = vc.shared_buffer(i32, 8)
    lid, i = vc.local_invocation_id().x, vc.global_invocation_id().x
    total = vc.new_register(i32, 0)
    rounds = vc.new_register(u32, 0)
    while rounds < 3:
        limit = vc.new_register(u32, 0)
        # a loop without barriers that a later decision depends on
        for k in vc.range(4):
            if k == 2:
                break
            limit += 1
            total += x[i]
        inner = vc.new_register(u32, 0)
        while inner < limit:
            inner += 1
            vc.barrier()
            if lid == 0:
                shared[0] = vc.to_int(inner + rounds)
            vc.barrier()
            if x[i] % 2 == 0:
                continue
            total += shared[0]
        rounds += 1
    y[i] = total


RIGHT = [_reversing, _halving, _deciding, _switching, _nested]


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("count", [1, 3, 8, 13, 16, 23])
@pytest.mark.parametrize("function", RIGHT, ids=lambda f: f.__name__)
def test_whole_workgroups_give_the_same_results(
    function: Callable[..., None], count: int, wide: bool
) -> None:
    kernel = traced(function, exec_size=count)
    x = np.random.default_rng(count).integers(0, 99, count).astype(np.int32)
    plain, whole = [[x.copy(), np.zeros_like(x)] for _ in range(2)]
    kernel.interpret(*plain, count, races=True)
    guarded = guard_effects(kernel.shader_description.kernel)
    if wide:
        guarded = widen(guarded, bounded=False)
    # a store or load beyond the size would be out of bounds
    run_whole(guarded, count, whole, {"n": np.uint32(count)})
    for one, other in zip(plain, whole, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("function", RIGHT, ids=lambda f: f.__name__)
def test_kernels_with_barriers_do_not_return_early(function: Callable[..., None]) -> None:
    kernel = traced(function)
    for variant in (Variant(), Variant(wide=True, addressed=True), Variant(folded=True)):
        text = text_of(kernel, variant)
        assert "inside" in text
        assert text.count("return;") == (1 if variant.folded else 0)  # surplus workgroups return as a whole


@pytest.mark.parametrize("function", [_reversing, _halving], ids=lambda f: f.__name__)
def test_uniform_conditions_add_no_barriers(function: Callable[..., None]) -> None:
    kernel = traced(function)
    before = sum(isinstance(each, Effect) for each in walk(kernel.shader_description.kernel.body))
    assert text_of(kernel).count("barrier();") == before
    assert "first_decision" not in kernel.shader_description.shader_source(LOCAL, Variant()).code


def _without_barriers(x: Buff[i32]) -> None:
    x[vc.global_invocation_id().x] = vc.subgroup_add(x[0])
    vc.subgroup_barrier()
    vc.memory_barrier()


def _with_a_barrier(x: Buff[i32]) -> None:
    vc.barrier()
    x[vc.global_invocation_id().x] = 1


def _with_text(x: Buff[i32]) -> None:
    vc.get_builder().append_contents("int own = 1;\n")
    vc.barrier()
    vc.get_builder().append_contents("buf0.data[0] = own;\n")


def _with_a_text_value(x: Buff[i32]) -> None:
    vc.barrier()
    x[0] = vc.str_to_dtype(i32, "int(gl_WorkGroupSize.x)")


@pytest.mark.parametrize("function", [_without_barriers, _with_text, _with_a_text_value])
def test_other_kernels_return_early(function: Callable[..., None]) -> None:
    kernel = traced(function)
    assert EARLY in text_of(kernel)
    assert "inside" not in text_of(kernel)


def test_kernels_without_bounds_have_nothing_to_guard() -> None:
    assert EARLY not in text_of(traced(_with_a_barrier))
    unbounded = traced(_with_a_barrier, flags=vc.ShaderFlags.NO_EXEC_BOUNDS)
    assert not keeps_workgroups(unbounded.shader_description.kernel)
    assert "inside" not in text_of(unbounded)


def test_computed_indices_are_guarded() -> None:
    """An index made of an id beyond the size may lie anywhere."""

    @traced
    def kernel(x: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        vector = vc.new_register(vc.v4)
        vector[i] = 3.0
        vc.barrier()
        picked = vector[i].to_register()
        vc.barrier()
        x[0] = picked

    lines = [line.strip() for line in text_of(kernel).splitlines()]
    for position, line in enumerate(lines):
        assert "[gid_x]" not in line or lines[position - 1] == "if (inside) {"


def test_generated_names_do_not_clash_with_the_users() -> None:
    @traced
    def kernel(x: Buff[f32]) -> None:
        inside = vc.new_register(f32, 1, var_name="inside")
        first = vc.shared_buffer(f32, 8, var_name="first_decision")
        first[0] = inside
        while first[0] > 0:
            vc.barrier()
        x[0] = inside

    text = text_of(kernel)
    assert "bool inside_1 = " in text
    assert "bool first_decision_1[1]" in kernel.shader_description.shader_source(LOCAL, Variant()).code


# ---- random control flow around barriers ---------------------------------------------------------


class _Flow:
    """Writes a random kernel whose barriers all invocations of a workgroup reach.

    `same` holds registers that are the same in all of them, some for reasons that no text tells; `own` is
    each one's own.
    """

    def __init__(self, seed: int, x: Any, y: Any, table: Any) -> None:
        self.random = random.Random(seed)
        self.x, self.y, self.table = x, y, table
        self.i, self.lid = vc.global_invocation_id().x, vc.local_invocation_id().x
        self.shared = vc.shared_buffer(i32, 9)
        self.there = vc.min(8, self.table[0].to_dtype(u32) - vc.workgroup_id().x * 8)
        self.own = vc.new_register(i32, x[self.i])
        hidden = vc.new_register(i32, x[self.i] * 0 + 3)
        self.same = [vc.new_register(i32, 5), vc.new_register(i32, table[1]), hidden]
        self.loops = 0

    def value(self) -> Any:
        return self.random.choice(self.same)

    def condition(self) -> Any:
        return (self.value() + self.random.randint(0, 3)) % self.random.randint(2, 4) == 1

    def own_condition(self) -> Any:
        return (self.own + self.random.randint(0, 5)) % self.random.randint(2, 5) == 1

    def block(self, depth: int) -> None:
        for _ in range(self.random.randint(1, 4)):
            choices = ["add", "mix", "store", "exchange", "tell", "apart", "apart_loop", "assign", "hidden"]
            choices += ["branch", "chain", "loop", "count", "switch"] if depth else []
            choices += ["leave", "next"] if self.loops else []
            getattr(self, "_" + self.random.choice(choices))(depth - 1)

    def write(self) -> None:
        for _ in range(3):
            self.block(3)
        if self.random.random() < 0.3:
            with vc.if_block(self.condition()):
                vc.return_statement()
        self._exchange(0)
        with vc.if_block(self.own_condition()):
            self.y[self.i] += 1000
            vc.return_statement()
        self.y[self.i] += self.own + sum(self.same, 0)

    def _add(self, depth: int) -> None:
        self.own += self.x[self.i] * self.random.randint(1, 9)

    def _mix(self, depth: int) -> None:
        self.own[:] = (self.own * 31 + self.value() + self.lid.to_dtype(i32)) % 10007

    def _store(self, depth: int) -> None:
        self.y[self.i] = self.y[self.i] * 3 % 10007 + self.own

    def _assign(self, depth: int) -> None:
        value = self.random.choice([self.table[2], self.value() * 3 + 1, self.value() + self.value()])
        self.value()[:] = value % 11

    def _exchange(self, depth: int) -> None:
        vc.barrier()
        self.shared[self.lid] = self.own
        vc.barrier()
        # never negative: GLSL does not define remainders of negative numbers
        self.own[:] = (self.own + self.shared[(self.lid + 1) % self.there]) % 10007

    def _tell(self, depth: int) -> None:
        """Make a number of the first invocation everyone's."""
        vc.barrier()
        with vc.if_block(self.lid == 0):
            self.shared[8] = self.own % 7
        vc.barrier()
        self.value()[:] = self.shared[8]

    def _apart(self, depth: int) -> None:
        with vc.if_block(self.own_condition()):
            self._add(0)
            self._store(0)
        if self.random.random() < 0.5:
            with vc.else_block():
                self.own += 2

    def _apart_loop(self, depth: int) -> None:
        with vc.for_block(0, self.own % 4) as k:
            self.own += k
            with vc.if_block(self.own_condition()):
                vc.break_statement()
            self._store(0)

    def _hidden(self, depth: int) -> None:
        """Assign the same everywhere, but by control flow that only memory knows to be the same."""
        if self.random.random() < 0.5:
            with vc.if_block(self.x[self.i] >= 0):
                self.value()[:] = self.random.randint(0, 5)
            return
        target = self.value()
        with vc.for_block(0, 5) as k:
            with vc.if_block(self.x[self.i] * 0 + k == 2):
                vc.break_statement()
            target[:] = (target + 3) % 11

    def _branch(self, depth: int) -> None:
        with vc.if_block(self.condition()):
            self.block(depth)
        if self.random.random() < 0.5:
            with vc.else_block():
                self.block(depth)

    def _chain(self, depth: int) -> None:
        conditions = [self.condition() for _ in range(3)]
        with vc.if_block(conditions[0]):
            self.block(depth)
        for condition in conditions[1:]:
            with vc.else_if_block(condition):
                self.block(depth)

    def _switch(self, depth: int) -> None:
        with vc.switch_block(self.value() % 3):
            with vc.case_block(0):
                self.block(depth)
            with vc.case_block(1):
                self.block(depth)

    def _count(self, depth: int) -> None:
        self.loops += 1
        with vc.for_block(0, vc.abs(self.value()) % 4):
            self.block(depth)
            if self.random.random() < 0.5:
                with vc.if_block(self.own_condition()):
                    vc.continue_statement()
                self._store(0)
                self._add(0)
        self.loops -= 1

    def _loop(self, depth: int) -> None:
        fuel = vc.new_register(i32, self.random.randint(1, 4))
        self.loops += 1
        with vc.while_block((fuel > 0) & (self.value() != 7)):
            fuel -= 1
            self.block(depth)
        self.loops -= 1

    def _leave(self, depth: int) -> None:
        with vc.if_block(self.condition()):
            vc.break_statement()

    def _next(self, depth: int) -> None:
        with vc.if_block(self.condition()):
            vc.continue_statement()


def _run_plain(kernel: Kernel, count: int, arrays: list[Any]) -> None:
    assert kernel.exec_count is not None
    buffers = {
        position: Cells(f"buffer {position}", array, array.shape, len(array))
        for position, array in enumerate(arrays)
    }
    values = {"exec_count": np.array([[count, 1, 1]], np.uint32)}
    groups = (math.ceil(count / LOCAL[0]), 1, 1)
    run_kernel("plain", kernel, Memory(values, buffers), groups=groups, local_size=LOCAL, races=True)


@pytest.mark.parametrize("start", range(FIRST, FIRST + FLOWS, 20))
def test_random_control_flow(start: int) -> None:
    for seed in range(start, min(start + 20, FIRST + FLOWS)):
        with vc.shader_context() as context:
            _Flow(seed, *context.declare_input_arguments([Buff[i32]] * 3)).write()
        kernel = context.get_description().kernel
        count = random.Random(seed).choice([1, 3, 7, 9, 13])
        arrays = [
            np.random.default_rng(seed).integers(0, 50, count).astype(np.int32),
            np.zeros(count, np.int32),
        ]
        table = np.array([count, 4, 6], np.int32)
        plain, whole = ([*(each.copy() for each in arrays), table.copy()] for _ in range(2))
        _run_plain(kernel, count, plain)
        run_whole(guard_effects(kernel), count, whole, {})
        for one, other in zip(plain, whole, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=f"seed {seed}")


# ---- the warning ---------------------------------------------------------------------------------


def test_a_return_before_a_barrier_warns_at_its_line() -> None:
    def kernel(x: Buff[i32], n: Const[u32]) -> None:
        i = vc.global_invocation_id().x
        if i >= n:
            return
        vc.barrier()
        x[i] = 1

    with pytest.warns(vd.KernelWarning, match="a barrier follows") as caught:
        traced(kernel)
    line = kernel.__code__.co_firstlineno + 3
    assert [(each.filename, each.lineno) for each in caught] == [(__file__, line)]


def test_other_returns_do_not_warn() -> None:
    def behind(x: Buff[i32], n: Const[u32]) -> None:
        i = vc.global_invocation_id().x
        vc.barrier()
        if i >= n:
            return
        x[i] = 1

    def together(x: Buff[i32], n: Const[u32]) -> None:
        if (vc.workgroup_id().x >= n) | (vc.global_invocation_id().x // 8 >= n):
            return
        vc.barrier()
        x[0] = 1

    def without(x: Buff[i32], n: Const[u32]) -> None:
        if vc.global_invocation_id().x >= n:
            return
        x[0] = 1

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for function in (behind, together, without):
            traced(function)
