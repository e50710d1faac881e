"""Names of users that GLSL or the generated code has for itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import make_dataclass
from pathlib import Path

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch.compiler.glsl
import vkdispatch_native as native
from vkdispatch.codegen.abbreviations import Buff, Const, f16, f32, i64
from vkdispatch.compiler.forms import FLOAT16, INT16, INT64, SHORT_ARGUMENTS, STORAGE, Variant
from vkdispatch.compiler.glsl.writer import write_kernel
from vkdispatch.compiler.ir.names import legal_name

from .running import filled, same

# What GLSL reserves: functions, keywords, types, macros, names with two underscores; and names of our own.
_NAMES = """
    length min mix texture input output sample buffer gl_x gl_WorkGroupID GL_KHR_memory_scope VULKAN
    a__b __LINE__
    shared inout out image2DArray usampler3D imageBuffer f16mat3x2 i64vec2 u64vec3 dmat2x2 precise
    subpassInput
    workgroupcoherent nonprivate tileImageEXT pervertexNV coopmat subgroupAdd barrier buf0 buf1 tex0 Buffer0
    view0 buf0_load_float32 halves_ halves
    group_count exec_count PC UBO Arguments long_add half_value float_of_long
    umul_high f32_exp lanes_Add_float32 input_ length_ t0 var0 gid gid_x workgroup_index data main
"""
RESERVED = _NAMES.split()
FORMS = (
    Variant(),
    Variant(folded=True),
    Variant(wide=True, addressed=True),
    Variant(lacks=frozenset((INT64, INT16, FLOAT16, SHORT_ARGUMENTS, *STORAGE.values()))),
)


def name_arguments(names: list[str]) -> vc.ShaderContext:
    with vc.shader_context() as context:
        out, *values = context.declare_input_arguments(
            [Buff[f32], *[Const[f32] for _ in names]], ["o", *names]
        )
        for value in values:
            out[0] += value
        return context


def name_fields(names: list[str]) -> vc.ShaderContext:
    kind = make_dataclass("Record", [(name, f32) for name in names])
    with vc.shader_context() as context:
        out, records = context.declare_input_arguments([Buff[f32], Buff[kind]], ["o", "r"])
        record = records[1]
        for name in names:
            out[0] += getattr(record, name)
        return context


def name_variables(names: list[str]) -> vc.ShaderContext:
    """Registers, arrays, shared memory and counters, in a kernel with functions of our own."""
    with vc.shader_context() as context:
        out, longs, halves = context.declare_input_arguments(
            [Buff[f32], Buff[i64], Buff[f16]], ["o", "l", "h"]
        )
        for number, name in enumerate(names):
            if number % 4 == 0:
                out[0] += vc.new_register(f32, out[1], var_name=name)
            elif number % 4 == 3:
                with vc.for_block(0, 3, var_name=name) as k:
                    out[k] += 1.0
            else:
                make = vc.shared_buffer if number % 4 == 1 else vc.local_array
                array = make(f32, 2, var_name=name)
                array[0] = 1.0
                out[0] += array[1]
        longs[0] = vc.abs(longs[0] * longs[1]) + longs[2] // longs[3] - vc.clip(longs[1], 2, 5)
        halves[0] = vc.subgroup_add(halves[0] * 2) + vc.floor_mod(halves[1], halves[2]) + vc.min(halves[1], 1)
        out[1] = vc.exp(vc.length(out[0])) + vc.subgroup_add(out[2]) + longs[0].to_dtype(f32)
        return context


@pytest.mark.parametrize("form", FORMS, ids=["plain", "folded", "addressed", "lacking"])
@pytest.mark.parametrize("use", [name_arguments, name_fields, name_variables])
def test_any_name_compiles_in_any_form(use: Callable[[list[str]], vc.ShaderContext], form: Variant) -> None:
    for start in range(4):  # each name has each of the uses
        kernel = use(RESERVED[start:] + RESERVED[:start]).get_description().kernel
        source = write_kernel(kernel, form).source((32, 1, 1))[0]
        native.compile_glsl(source)
        assert re.findall(r"\w*__\w*|\bgl_x", source) == []


def test_functions_of_our_own_are_no_names() -> None:
    folder = Path(vkdispatch.compiler.glsl.__file__).parent
    defined = {
        name
        for path in folder.glob("*.py")
        for name in re.findall(
            r"^(?:u?int|float|bool|void|[iu]?vec[234]|\{0\}) (\w+)\(", path.read_text(), re.M
        )
    }
    assert len(defined) > 20
    assert {name for name in defined if legal_name(name) == name} == set()


def test_arguments_with_reserved_names_have_their_values() -> None:
    @vd.shader("out.size")
    def body(
        out: Buff[f32], length: Const[f32], input: Const[f32], a__b: Const[f32], a_b: Const[f32]
    ) -> None:
        i = vc.global_invocation_id().x
        min = length + input
        out[i] = vc.min(min, 1000.0) * vc.length(a__b) - a_b

    out = filled(3, f32)
    body(out, 2.0, 3.0, -7.0, 11.0)
    same(out.read(0), np.full(3, 5 * 7 - 11))
