"""Positions in 64 bits: what the pass widens, what it leaves alone, and that both forms do the same."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.dtype import int64, uint64
from vkdispatch.base.record import replace
from vkdispatch.codegen.abbreviations import Buff, Const, f32, i32, i64, u8, u32, u64
from vkdispatch.compiler.analyses.verify import verify
from vkdispatch.compiler.forms import Variant
from vkdispatch.compiler.interpreter.execution import run_kernel
from vkdispatch.compiler.interpreter.memory import Cells
from vkdispatch.compiler.interpreter.program import Memory
from vkdispatch.compiler.ir import Kernel, Op, Storage, expressions_of, nodes, walk
from vkdispatch.compiler.passes.widen import widen

WIDE = Variant(addressed=True, wide=True)
# what keeps compilers from knowing a quotient
ZERO = "(PC.buf0_address >> 63ul)"


def source(kernel: Any) -> str:
    verify(widen(kernel.shader_description.kernel))
    text: str = kernel.shader_description.shader_source((64, 1, 1), WIDE).code
    return text.partition("void main() {")[2]


def index_types(kernel: Kernel) -> set[str]:
    """Types of the indices of buffers."""
    return {
        expr.args[0].dtype.name
        for statement in walk(kernel.body)
        for expr in nodes(expressions_of(statement))
        if expr.op is Op.ELEMENT and isinstance(expr.value, Storage)
    }


def test_ids_shapes_and_arithmetic_on_them_are_widened() -> None:
    @vd.shader("data.size")
    def kernel(data: Buff[u8], stride: Const[u32]) -> None:
        tid = vc.global_invocation_id().x
        data[tid * stride + 1] = data[data.shape.w - 1] + data[tid % 7 + (tid >> 2)]

    body = source(kernel)
    assert "long_gid_x * uint64_t(PC.stride) + 1ul" in body
    assert "PC.buf0_shape_w - 1l" in body
    assert f"((long_gid_x % 7ul) ^ {ZERO}) + (long_gid_x >> 2ul)" in body
    assert index_types(widen(kernel.shader_description.kernel)) == {"uint64", "int64"}


def test_constant_indices_and_loaded_ones_stay_narrow() -> None:
    @vd.shader("data.size")
    def kernel(data: Buff[u32], order: Buff[u32]) -> None:
        data[3] = data[order[5]]

    assert index_types(widen(kernel.shader_description.kernel)) <= {"uint32", "int32"}


def test_stored_values_keep_32_bits() -> None:
    @vd.shader("data.size")
    def kernel(data: Buff[u32]) -> None:
        tid = vc.global_invocation_id().x
        data[tid] = (tid * 747796405 + 3) ^ (tid & 0xFFFF)

    stored = source(kernel).splitlines()[-2]
    assert stored.split("=", 1)[1].strip() == "(gid_x * 747796405u + 3u) ^ (gid_x & 65535u);"


def test_parts_of_ids_use_all_bits() -> None:
    @vd.shader("data.size")
    def kernel(data: Buff[u32], ramp: Buff[f32]) -> None:
        tid = vc.global_invocation_id().x
        data[tid] = tid // 1000 % 7 + (tid >> 16)
        ramp[tid] = (tid % 1000).to_dtype(f32)
        row = vc.new_register(vd.uint32, tid // 3)
        data[tid] += row % 5
        data[tid] += (tid * 747796405) >> 3

    body = source(kernel)
    thousands = f"((long_gid_x / 1000ul) ^ {ZERO})"
    assert f"uint(({thousands} % 7ul) ^ {ZERO}) + uint(long_gid_x >> 16ul)" in body
    assert f"float((long_gid_x % 1000ul) ^ {ZERO})" in body
    assert re.search(r"uint\(\(long_\w+ % 5ul\) \^ ", body)
    assert "(gl_GlobalInvocationID.x * 747796405u) >> 3u" in body


def test_comparisons_of_positions_are_wide_and_others_are_not() -> None:
    @vd.shader(10)
    def kernel(data: Buff[f32], count: Const[u32], level: Const[i32]) -> None:
        tid = vc.global_invocation_id().x
        last = (tid + 1).to_register()
        if last < data.shape.w:
            data[0] = 1.0
        if last == count:
            data[1] = 1.0
        if level < 3:
            data[2] = 1.0

    body = source(kernel)
    assert re.search(r"if \(long_\w+ < uint64_t\(PC.buf0_shape_w\)\)", body)
    assert re.search(r"if \(long_\w+ == uint64_t\(PC.count\)\)", body)
    assert "if (PC.level < 3)" in body


def test_conversions_of_an_id_have_all_of_it() -> None:
    @vd.shader("data.size")
    def kernel(data: Buff[u64], real: Buff[f32]) -> None:
        tid = vc.global_invocation_id().x
        data[tid] = tid.to_dtype(vd.uint64) * 3
        real[tid] = tid.to_dtype(vd.float32)

    body = source(kernel)
    assert "= uint64_t(long_gid_x) * 3ul;" in body
    assert "= float(long_gid_x);" in body


def test_hash_products_wrap_around_at_32_bits() -> None:
    @vd.shader("data.size")
    def kernel(data: Buff[u32]) -> None:
        tid = vc.global_invocation_id().x
        data[tid * 2654435761 % 1000] = 1

    assert "uint64_t(gl_GlobalInvocationID.x * 2654435761u % 1000u)" in source(kernel)


def test_a_mask_keeps_32_bits() -> None:
    @vd.shader("data.size")
    def kernel(data: Buff[u32]) -> None:
        tid = vc.global_invocation_id().x
        data[(tid * 1664525 + 1013904223) & 0xFFFFFFFF] = 1

    assert "& 4294967295ul" in source(kernel)


def test_loops_over_a_shape_count_in_64_bits_and_others_in_32() -> None:
    @vd.shader(1)
    def kernel(data: Buff[f32], count: Const[i32]) -> None:
        total = vc.new_float_register(0)
        for i in vc.range(data.shape.w):
            total += data[i]
        for j in vc.range(count):
            total += data[j] * j
        data[0] = total

    body = source(kernel)
    assert re.search(r"for \(int64_t long_\w+ = 0l; long_\w+ < \w+;", body)
    assert re.search(r"for \(int \w+ = 0; \w+ < PC.count;", body)


def test_exec_size_limit_has_64_bits() -> None:
    @vd.shader(1)
    def kernel(data: Buff[f32]) -> None:
        data[0] = 1.0

    assert "long_gid_x >= PC.exec_count || long_gid_y >= PC.exec_count_y" in source(kernel)
    layout = kernel.shader_description.layout(WIDE)
    offset = layout.offset_of("exec_count")
    assert layout.exec_offset == offset
    assert [layout.offset_of(f"exec_count_{axis}") - offset for axis in "yz"] == [8, 16]


def test_registers_assigned_in_raw_glsl_stay_narrow() -> None:
    @vd.shader("data.size")
    def kernel(data: Buff[f32]) -> None:
        place = vc.new_uint_register(var_name="place")
        place[:] = vc.global_invocation_id().x
        vc.str_to_dtype(vd.uint32, "place", settable=True)[:] = 7
        data[place] = 1.0

    assert "long_place" not in source(kernel)


# -- quotients in addresses ------------------------------------------------------------------------


@pytest.mark.parametrize("coarse", [1, 4])
def test_quotients_are_hidden_from_compilers(coarse: int) -> None:
    @vd.shader("out.size")
    def kernel(out: Buff[f32], x: Buff[f32], n: Const[u32]) -> None:
        tid = vc.global_invocation_id().x
        row = (tid // 12).to_register()
        out[tid] = x[tid % 12] + x[tid // 5 % 3] + x[(tid + 256) // n] + x[tid % x.shape.w] + x[row % 7]

    variant = Variant(addressed=True, wide=True, coarse=coarse)
    text = kernel.shader_description.shader_source((64, 1, 1), variant).code
    quotients = text.count(" / ") + text.count(" % ")
    assert quotients == 8 * (1 if coarse == 1 else coarse + 1)
    hidden = re.findall(r"[\w)] [/%] [\w.()]+\) \^ (?:int64_t)?" + re.escape(ZERO), text)
    assert len(hidden) == quotients


def test_safe_quotients_are_unchanged() -> None:
    @vd.shader("out.size")
    def kernel(out: Buff[f32], x: Buff[f32]) -> None:
        tid = vc.global_invocation_id().x
        out[tid] = x[tid % 8] + x[tid // 16]

    assert " >> 63ul" not in source(kernel)
    text = kernel.shader_description.shader_source((64, 1, 1), Variant(addressed=True)).code
    assert " >> 63ul" not in text


@pytest.mark.parametrize("variant", [Variant(addressed=True), WIDE])
def test_quotients_of_64_bit_values(variant: Variant) -> None:
    @vd.shader("out.size")
    def kernel(out: Buff[f32], x: Buff[f32], n: Const[i64]) -> None:
        long = vc.global_invocation_id().x.to_dtype(vd.int64)
        place = long.to_register()
        place %= n
        out[long] = x[(long + 5) // 12] + x[place]

    signed = f"int64_t{ZERO}"
    lines = kernel.shader_description.shader_source((64, 1, 1), variant).code
    assert re.search(rf"(\w+) = \(\1 % PC.n\) \^ {re.escape(signed)};", lines)
    assert f"+ 5l) / 12l) ^ {signed}" in lines


def test_bound_buffers_leave_quotients_visible() -> None:
    @vd.shader("out.size")
    def kernel(out: Buff[f32], n: Const[i64]) -> None:
        place = vc.global_invocation_id().x.to_dtype(vd.int64).to_register()
        place %= n
        out[place // 3] = 1.0

    text = kernel.shader_description.shader_source((64, 1, 1), Variant()).code
    assert "%= PC.n;" in text
    assert "/ 3l" in text
    assert "^" not in text


# -- both forms do the same ------------------------------------------------------------------------


def interpreted(kernel: Any, arrays: list[Any], values: dict[str, Any], count: int) -> None:
    """Run the widened form on arrays with NumPy."""
    wide = widen(kernel.shader_description.kernel)
    verify(wide)
    arguments: dict[str, Any] = {}
    for argument in wide.arguments:
        name, _, axis = argument.name.rpartition("_")
        found = values.get(argument.name)
        for position, array in enumerate(arrays):
            if argument.name == f"buf{position}_shape":
                found = len(array)
            elif name == f"buf{position}_shape" and axis in "yzw":
                found = len(array) if axis == "w" else 1
        if argument.name == "exec_count":
            found = count
        elif name == "exec_count":
            found = 1
        kind = {int64: np.int64, uint64: np.uint64}.get(argument.dtype)
        arguments[argument.name] = np.array([found], kind or np.array(found).dtype)
    buffers = {
        position: Cells(f"buffer {position}", array.reshape(-1, 1)[:, 0], array.shape, len(array))
        for position, array in enumerate(arrays)
    }
    run_kernel(
        "kernel",
        replace(wide, exec_count=None),
        Memory(arguments, buffers),
        groups=(-(-count // 64), 1, 1),
        local_size=(64, 1, 1),
    )


def _walking(data: Buff[u32], steps: Const[u32]) -> None:  # type: ignore[valid-type]
    tid = vc.global_invocation_id().x
    place = tid.to_register()
    total = vc.new_uint_register(0)
    for i in vc.range(steps):
        if place >= data.shape.w:
            place -= data.shape.w.to_dtype(vd.uint32)
        total += place * 3 + i
        place += 2 * i + 1
    data[tid] = total * 2654435761


def _stencil(data: Buff[i32], other: Buff[i32]) -> None:  # type: ignore[valid-type]
    tid = vc.global_invocation_id().x.to_dtype(vd.int32)
    left = vc.max(tid - 1, 0)
    right = vc.min(tid + 1, data.shape.w - 1)
    data[tid] = other[left] + 2 * other[tid] + other[right] - (other[-(tid * -1)] << 1)


def _swapping(data: Buff[u32], gap: Const[u32]) -> None:  # type: ignore[valid-type]
    tid = vc.global_invocation_id().x
    a, b = tid.to_register(), (tid ^ gap).to_register()
    while a > b:
        c = a.to_register()
        a[:] = b
        b[:] = c
    data[tid] = a * 10 + b


@pytest.mark.parametrize("function", [_walking, _stencil, _swapping], ids=lambda f: f.__name__)
@pytest.mark.parametrize("count", [1, 5, 64, 130])
def test_widened_kernel_gives_the_same_results(function: Callable[..., None], count: int) -> None:
    kernel = vd.shader("data.size")(function)
    rng = np.random.default_rng(count)
    kinds = np.int32 if function is _stencil else np.uint32
    arrays = [rng.integers(0, 1000, count).astype(kinds) for _ in range(2 if function is _stencil else 1)]
    values = {_walking: {"steps": np.uint32(9)}, _swapping: {"gap": np.uint32(1)}}.get(function, {})
    plain, wide = [a.copy() for a in arrays], [a.copy() for a in arrays]
    kernel.interpret(*plain, *(int(v) for v in values.values()))
    interpreted(kernel, wide, values, count)
    for one, other in zip(plain, wide, strict=True):
        np.testing.assert_array_equal(one, other)
    on_device = [vd.asbuffer(a) for a in arrays]
    kernel(*on_device, *(int(v) for v in values.values()))
    for one, buffer in zip(plain, on_device, strict=True):
        np.testing.assert_array_equal(one, buffer.read(0))
