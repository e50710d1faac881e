"""Programs as text."""

from __future__ import annotations

import re
import sys

import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from tests.language.random_kernels import features_of
from tests.language.random_sources import FEATURES, write
from tests.language.source_running import build
from vkdispatch.codegen.abbreviations import Buff, Const, Img2, f32, i32, u32, v4
from vkdispatch.compiler import ir
from vkdispatch.compiler.ir.text import ProgramWriter, join_lines


def text_of(kernel: ir.Kernel) -> str:
    return join_lines(ProgramWriter().write(kernel))


def test_statements_and_expressions_with_their_lines() -> None:
    @vd.shader("x.size")
    def many(x: Buff[f32], n: Const[u32], picture: Img2[f32]) -> None:
        i = vc.global_invocation_id().x
        tile = vc.shared_buffer(f32, 64, "tile")
        tile[i % 64] = (x[i] - 1) * -2
        vc.barrier()
        if x[i] > 0.5:
            x[i] += tile[0]
        elif n == 3:
            x[i] = vc.sin(x[i])
        else:
            vc.comment("nothing")
        for k in range(2, n):
            x[k] = vc.select(k > 7, 1.0, x[k])
        x[0] = picture.sample(vc.to_dtype(vd.vec2, 0.0, 0.0)).x

    lines = ProgramWriter().write(many.shader_description.kernel)
    line = test_statements_and_expressions_with_their_lines.__code__.co_firstlineno
    assert [text.text for text in lines] == [
        "buffer x: float32",
        "image picture: float32 2D",
        "shared tile: float32[64]",
        "argument n: uint32",
        "argument exec_count: uvec3",
        "",
        "tile[global_invocation_id.x % 64u] = (x[global_invocation_id.x] - 1.0) * -2.0",
        "barrier()",
        "if x[global_invocation_id.x] > 0.5:",
        "    x[global_invocation_id.x] += tile[0]",
        "elif n == 3u:",
        "    x[global_invocation_id.x] = sin(x[global_invocation_id.x])",
        "else:",
        "    # nothing",
        "for k in range(2u, n, 1u):",
        "    x[k] = 1.0 if k > 7u else x[k]",
        "x[0] = picture.sample(vec2(0.0, 0.0), 0.0).x",
    ]
    assert {text.text: text.loc.line - line for text in lines if text.loc}["barrier()"] == 6
    assert "  test_program_text.py:" in join_lines(lines)


def test_programs_deeper_than_pythons_stack_and_wider_than_memory() -> None:
    value = ir.Expr(ir.Op.LITERAL, f32, (), 1.5)
    register = ir.Register("y", f32)
    for _ in range(3 * sys.getrecursionlimit()):
        value = ir.Expr(ir.Op.BINARY, f32, (value, value), "*")  # as a tree, it has 2**3000 leaves
    kernel = ir.Kernel("deep", (), (), (), (ir.Declare(register, value),), None)
    lines = ProgramWriter().write(kernel)
    assert len(lines) < 3 * sys.getrecursionlimit()
    assert max(len(line.text) for line in lines) < 200
    names = [line.text.split(" = ")[0] for line in lines[:-1]]
    assert names == [f"%{number}" for number in range(1, len(lines))]
    assert lines[-1].text.startswith("y: float32 = ")


def test_an_expression_has_one_name_in_all_versions() -> None:
    shared = ir.Expr(ir.Op.CALL, f32, (ir.Expr(ir.Op.LITERAL, f32, (), 0.1234567890123456789),), "sin")
    other = ir.Expr(ir.Op.CALL, f32, (ir.Expr(ir.Op.LITERAL, f32, (), 0.9876543210987654321),), "cos")

    def make(*values: ir.Expr) -> ir.Kernel:
        doubled = [ir.Expr(ir.Op.BINARY, f32, (value, value), "+") for value in values]
        body = tuple(ir.Declare(ir.Register(f"r{n}", f32), value) for n, value in enumerate(doubled))
        return ir.Kernel("shared", (), (), (), body, None)

    writer = ProgramWriter()
    before = [line.text for line in writer.write(make(shared))]
    after = [line.text for line in writer.write(make(other, shared))]
    assert before == ["%1 = sin(0.12345678901234568)", "r0: float32 = %1 + %1"]
    assert after[2:] == ["%1 = sin(0.12345678901234568)", "r1: float32 = %1 + %1"]
    assert after[0].startswith("%2 = cos(")


@pytest.mark.parametrize("seed", range(12))
def test_random_kernels_name_all_that_they_use(seed: int) -> None:
    """Each register, argument and buffer that a statement uses is in the text, and each function."""
    kernel = build(write(seed, features_of(seed, FEATURES))).shader_description.kernel
    text = text_of(kernel)
    words = set(re.findall(r"[A-Za-z_]\w*", text))
    for expr in ir.expressions_in(kernel.body):
        if isinstance(expr.value, (ir.Register, ir.Argument)):
            assert expr.value.name in words
        elif isinstance(expr.value, ir.Storage):
            assert expr.value.label in words
        elif expr.op in (ir.Op.CALL, ir.Op.SUBGROUP, ir.Op.ATOMIC):
            assert expr.value in words
    counted = [s for s in ir.walk(kernel.body) if not isinstance(s, (ir.Comment, ir.RawStatement))]
    assert len(text.splitlines()) >= len(counted)


def test_types_that_literals_do_not_show() -> None:
    @vd.shader("x.size")
    def kernel(x: Buff[v4], y: Buff[i32]) -> None:
        x[0] = vc.to_dtype(vd.vec4, 1.0, 2.0, 3.0, 4.0).zyxw
        y[0] = vc.to_dtype(vd.int32, x[1].y)

    text = text_of(kernel.shader_description.kernel)
    assert "vec4(1.0, 2.0, 3.0, 4.0).zyxw" in text
    assert "y[0] = int32(x[1].y)" in text


def test_operators_hold_together_as_they_are_read() -> None:
    @vd.shader("x.size")
    def kernel(x: Buff[i32]) -> None:
        a, b, c = x[0], x[1], x[2]
        x[3] = (a | b) & c
        x[4] = a | b & c
        x[5] = (a ^ b) & c
        x[6] = (a & b) << c
        x[7] = (a - b) - c
        x[8] = a - (b - c)

    text = text_of(kernel.shader_description.kernel)
    for line in (
        *("x[3] = (var0 | var1) & var2", "x[4] = var0 | var1 & var2", "x[5] = (var0 ^ var1) & var2"),
        *("x[6] = (var0 & var1) << var2", "x[7] = var0 - var1 - var2", "x[8] = var0 - (var1 - var2)"),
    ):
        assert line in text
