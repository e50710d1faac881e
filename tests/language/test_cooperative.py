"""Cooperative matrices of the kernel language: what they become, and what is refused; no device is asked."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.compilation.compiler import MARK, compile_glsl, replace_float16
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.validation import read_valid_module
from vkdispatch.codegen.abbreviations import Buff, bf16, c64, f16, f32, i8, i32, u32, uv4
from vkdispatch.compiler.glsl.writer import write_kernel

Body = Callable[..., None]


def written(body: Body, *kinds: Any) -> str:
    """Return the GLSL of a kernel."""
    with vc.shader_context(vc.ShaderFlags.NO_EXEC_BOUNDS) as context:
        body(*context.declare_input_arguments(list(kinds), [f"x{i}" for i in range(len(kinds))]))
    return write_kernel(context.get_description("body").kernel).source((32, 1, 1))[0]


def product(kind: Any, total: Any, scope: str = "subgroup", window: Any = None) -> Body:
    """Return a kernel that multiplies two matrices of 16 x 16."""

    def body(result: Any, a: Any, b: Any) -> None:
        x = vc.cooperative_matrix(kind, 16, 16, "a", scope)
        y = vc.cooperative_matrix(kind, 16, 16, "b", scope)
        z = vc.cooperative_matrix(total, 16, 16, scope=scope)
        x.load(a, 0, 16, window=window)
        y.load(b, 0, 16, "column", window=window)
        z[:] = vc.matrix_multiply_add(x, y, z)
        z.store(result, 0, 16, window=window)

    return body


def test_generated_code() -> None:
    text = written(product(f16, f32), Buff[f32], Buff[f16], Buff[f16])
    assert "GL_KHR_cooperative_matrix" in text and "GL_NV_cooperative_matrix2" not in text
    assert "coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>" in text
    assert "coopMatLoad(" in text and "gl_CooperativeMatrixLayoutColumnMajor" in text
    assert "coopMatMulAdd(" in text and "coopMatStore(" in text
    read_valid_module(compile_glsl(text, "body"))


def test_integers_and_words() -> None:
    def body(result: Any, a: Any) -> None:
        x = vc.cooperative_matrix(i8, 16, 32, "a")
        y = vc.cooperative_matrix(i8, 32, 16, "b")
        memory = vc.shared_buffer(uv4, 64)
        x.load(a, 0, 2)
        y.load(memory, 0, 1)
        vc.matrix_multiply_add(x, y, vc.cooperative_matrix(i32, 16, 16)).store(result, 0, 16)

    text = written(body, Buff[i32], Buff[uv4])
    assert "coopmat<int8_t, gl_ScopeSubgroup, 16, 32, gl_MatrixUseA>" in text
    read_valid_module(compile_glsl(text, "body"))


def test_workgroup_scope_loads_windows_of_a_buffer() -> None:
    text = written(product(f16, f32, "workgroup", (20, 30, 0, 16)), Buff[f32], Buff[f16], Buff[f16])
    assert "GL_NV_cooperative_matrix2" in text and "gl_ScopeWorkgroup" in text
    assert "coopMatLoadTensorNV(" in text and "setTensorLayoutDimensionNV(whole, 20u, 30u)" in text
    assert compile_glsl(text, "body")[4:8] == (0x10600).to_bytes(4, "little")


def instructions(code: bytes) -> list[tuple[int, ...]]:
    words, found, at = struct.unpack(f"<{len(code) // 4}I", code), [], 5
    while at < len(words):
        found.append(words[at : at + (words[at] >> 16)])
        at += words[at] >> 16
    return found


def test_bfloat16() -> None:
    text = written(product(bf16, f32), Buff[f32], Buff[u32], Buff[u32])
    assert MARK in text and "coopmat<bfloat16_t," in text
    code = compile_glsl(text, "body")
    read_valid_module(code)
    found = instructions(code)
    capabilities = [each[1] for each in found if each[0] & 0xFFFF == 17]
    assert {5116, 5118} <= set(capabilities) and 9 not in capabilities
    floats = [each[2:] for each in found if each[0] & 0xFFFF == 22]
    assert sorted(floats) == [(16, 0), (32,)]
    # capabilities come first, then extensions
    kinds = [each[0] & 0xFFFF for each in found]
    assert kinds[: len(capabilities) + 1] == [17] * len(capabilities) + [10]
    again = instructions(replace_float16(code))
    assert len(again) == len(found) + 3


def test_arithmetic_keeps_types() -> None:
    def body(result: Any) -> None:
        x = vc.cooperative_matrix(f32, 8, 8, value=2)
        half = x.to_dtype(f16)
        assert (half.component, x.shape, x.use) == (f16, (8, 8), "accumulator")
        for value in (x + x, x - 1, 3 - x, x * 2.0, 2 * x, x / x, -x, x.to_register()):
            assert value.var_type is x.var_type
        x[0] = x[0] + x.length().to_dtype(f32)
        x.store(result, 0, 8)

    read_valid_module(compile_glsl(written(body, Buff[f32]), "body"))


REFUSED: list[tuple[type[Exception], str, Callable[[Any], Any]]] = [
    (ArgumentTypeError, "expected a scalar dtype", lambda _: vc.cooperative_matrix(c64, 8, 8)),
    (ArgumentTypeError, "expected a scalar dtype", lambda _: vc.cooperative_matrix(3, 8, 8)),  # type: ignore[arg-type]
    (ArgumentValueError, "positive ints", lambda _: vc.cooperative_matrix(f16, 0, 8)),
    (ArgumentValueError, "positive ints", lambda _: vc.cooperative_matrix(f16, 8, True)),
    (ArgumentValueError, 'use is "a"', lambda _: vc.cooperative_matrix(f16, 8, 8, "c")),
    (ArgumentValueError, 'scope is "sub', lambda _: vc.cooperative_matrix(f16, 8, 8, "a", "device")),
    (ArgumentValueError, "filled with 0|float", lambda _: vc.cooperative_matrix(bf16, 8, 8, value=1)),
    (ArgumentTypeError, "expected a buffer", lambda _: vc.cooperative_matrix(f16, 8, 8).load(3, 0, 8)),  # type: ignore[arg-type]
    (ArgumentValueError, 'layout is "row"', lambda x: vc.cooperative_matrix(f32, 8, 8).load(x, 0, 8, "rows")),
    (ArgumentTypeError, "window is", lambda x: vc.cooperative_matrix(f32, 8, 8).load(x, 0, 8, window=3)),
    (ArgumentValueError, "out of range", lambda x: vc.cooperative_matrix(f32, 8, 8).load(x, 0, -1)),
    (
        ArgumentValueError,
        'use "b"',
        lambda _: vc.matrix_multiply_add(*(vc.cooperative_matrix(f16, 8, 8, "a"),) * 3),
    ),
    (ArgumentTypeError, "got 3", lambda _: vc.matrix_multiply_add(3, 4, 5)),  # type: ignore[arg-type]
    (
        ArgumentValueError,
        "do not fit",
        lambda _: vc.matrix_multiply_add(
            vc.cooperative_matrix(f16, 8, 16, "a"),
            vc.cooperative_matrix(f16, 8, 8, "b"),
            vc.cooperative_matrix(f16, 8, 8),
        ),
    ),
    (
        ArgumentTypeError,
        "see to_dtype",
        lambda _: vc.cooperative_matrix(f16, 8, 8) + vc.cooperative_matrix(f32, 8, 8),
    ),
]


@pytest.mark.parametrize(("kind", "match", "call"), REFUSED, ids=range(len(REFUSED)))
def test_wrong_arguments_are_refused(kind: type[Exception], match: str, call: Callable[[Any], Any]) -> None:
    with pytest.raises((kind, ArgumentTypeError), match=match):
        written(lambda x: call(x), Buff[f32])


def test_device_without_cooperative_matrices_raises() -> None:
    body = product(f16, f32)
    if "cooperativeMatrix" in vd.get_devices()[0].features:
        pytest.skip("the device has cooperative matrices")
    from vkdispatch.base.errors import UnsupportedError
    from vkdispatch.families.kernels import trace_kernel

    kernel = trace_kernel(
        "body", body, [("r", Buff[f32]), ("a", Buff[f16]), ("b", Buff[f16])], 32, workgroups="1"
    )
    buffers = [vd.Buffer(256, kind) for kind in (f32, f16, f16)]
    with pytest.raises(UnsupportedError, match=r"cooperative|products"):
        kernel(*buffers)
