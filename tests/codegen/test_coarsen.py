"""Kernels whose invocations do several elements: which may be, and what becomes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.compute_plan import compile_glsl
from vkdispatch.codegen.abbreviations import Buff, Const, c64, f16, f32, f64, i32, u8, u32, v4
from vkdispatch.compiler.analyses.verify import verify
from vkdispatch.compiler.forms import Variant
from vkdispatch.compiler.ir import Declare, Kernel, Store, walk
from vkdispatch.compiler.passes.coarsen import choose_elements, coarsen


def traced(function: Any, *annotations: Any) -> Any:
    return vd.shader(1, arg_type_annotations=annotations or None)(function).shader_description


def plus_one(data: Any) -> None:
    i = vc.global_invocation_id().x
    data[i] = data[i] + 1


@pytest.mark.parametrize(
    ("kind", "elements"), [(u8, 16), (f16, 8), (f32, 4), (i32, 4), (f64, 2), (c64, 2), (v4, 1)]
)
def test_bytes_in_flight(kind: Any, elements: int) -> None:
    assert choose_elements(traced(plus_one, Buff[kind]).kernel) == elements


def test_the_widest_buffer_decides() -> None:
    def widen(data: Buff[f64], small: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        data[i] = small[i].to_dtype(vd.float64)

    assert choose_elements(traced(widen).kernel) == 2


def barrier(data: Buff[f32]) -> None:
    vc.barrier()
    data[vc.global_invocation_id().x] = 1


def shared(data: Buff[f32]) -> None:
    shared = vc.shared_buffer(vd.float32, 4)
    shared[0] = 1
    data[vc.global_invocation_id().x] = shared[0]


def workgroup(data: Buff[f32]) -> None:
    data[vc.global_invocation_id().x] = vc.workgroup_id().x.to_dtype(vd.float32)


def subgroup(data: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    data[i] = vc.subgroup_add(data[i])


def lane(data: Buff[u32]) -> None:
    data[vc.global_invocation_id().x] = vc.subgroup_invocation_id()


def loop(data: Buff[f32], n: Const[i32]) -> None:
    i = vc.global_invocation_id().x
    for _ in range(n):
        data[i] = data[i] + 1


def late_return(data: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    data[i] = 1
    if data[i] > 0:
        return
    data[i] = 2


def printed(data: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    vc.print(f"{data[i]}")
    data[i] = 1


def without_id(data: Buff[f32]) -> None:
    data[0] = 1


def only_y(data: Buff[f32]) -> None:
    data[vc.global_invocation_id().y] = 1


@pytest.mark.parametrize(
    "function", [barrier, shared, workgroup, subgroup, lane, loop, late_return, printed, without_id, only_y]
)
def test_kernels_that_are_not_coarsened(function: Any) -> None:
    assert choose_elements(traced(function).kernel) == 1


def test_kernels_without_bounds_are_not_coarsened() -> None:
    kernel = vd.shader(1, arg_type_annotations=[Buff[f32]], flags=vc.ShaderFlags.NO_EXEC_BOUNDS)
    assert choose_elements(kernel(plus_one).shader_description.kernel) == 1


def test_long_programs_are_not_coarsened() -> None:
    def long(data: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        value = data[i]
        for step in range(400):
            value = value * (step + 0.5) + step
        data[i] = value

    assert choose_elements(traced(long).kernel) == 1


def coarse_body(function: Any, elements: int = 4) -> Kernel:
    return coarsen(traced(function).kernel, elements)


def saxpy(data: Buff[f32], x: Buff[f32], a: Const[f32]) -> None:
    i = vc.global_invocation_id().x
    data[i] = a * x[i] + data[i]


def test_values_come_before_stores() -> None:
    kernel = coarse_body(saxpy)
    verify(kernel)
    whole = kernel.body[-1].branches[0][1]  # type: ignore[union-attr]
    assert [type(statement) for statement in whole] == [Declare] * 4 + [Store] * 4


def guarded(data: Buff[f32], x: Buff[f32], n: Const[i32]) -> None:
    i = vc.global_invocation_id().x
    if i >= n:
        return
    t = x[i] * 2
    if t > 3:
        t = t + 1
    else:
        t = t - 1
        t = t * 2
    match n % 3:
        case 0:
            t = t * 2
        case _:
            t = t * 3
    data[i] += t


def names_taken(data: Buff[f32], x: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    element_1 = vc.new_register(vd.float32, x[i], var_name="element_1")
    first = vc.new_register(vd.float32, element_1 * 2, var_name="first")
    data[i] = first


def whole_id(data: Buff[f32], x: Buff[f32]) -> None:
    gid = vc.global_invocation_id()
    flat = gid.swizzle("xy")
    data[gid.x + 0 * flat.y] = x[gid.x]


def histogram(data: Buff[u32], x: Buff[u32]) -> None:
    vc.atomic_add(data[x[vc.global_invocation_id().x] % 16], 1)


@pytest.mark.parametrize("function", [saxpy, guarded, names_taken, whole_id, histogram])
def test_forms_compile(function: Any) -> None:
    description = traced(function)
    verify(coarsen(description.kernel, 4))
    for folded in (False, True):
        for elements in (2, 4, 16):
            source = description.shader_source((64, 2, 1), Variant(folded=folded, coarse=elements))
            compile_glsl(source.with_line_directives(), "coarse")


def test_each_element_has_its_own_registers() -> None:
    names = [s.register.name for s in walk(coarse_body(guarded).body) if isinstance(s, Declare)]
    assert len(names) == len(set(names))


def test_statements_keep_their_source_lines() -> None:
    source = traced(saxpy).shader_source((64, 1, 1), Variant(coarse=4))
    line = saxpy.__code__.co_firstlineno + 2
    of_line = [text for text, loc in zip(source.code.splitlines(), source.line_map, strict=True) if loc]
    assert len([text for text in of_line if "buf0.data[element_3]" in text]) == 2
    assert {loc.line for loc in source.line_map if loc} == {line}


def test_interpreter_runs_the_original_kernel() -> None:
    data = np.arange(5, dtype=np.float32)
    vd.shader("data.size")(saxpy).interpret(data, np.ones(5, np.float32), 2.0)
    np.testing.assert_array_equal(data, np.arange(5) + 2)
