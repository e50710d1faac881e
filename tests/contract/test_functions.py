"""Functions of the language: folding, dtypes of results, both styles of control flow, index helpers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, f16, f32, f64, i16, i32, i64, iv3, u32, v3

FOLDED = [
    ("abs", (-2.0,), 2.0),
    ("sign", (-3,), -1.0),
    ("trunc", (-1.5,), -1.0),
    ("round", (2.5,), 2.0),
    ("fract", (1.25,), 0.25),
    ("mod", (-1, 3), 2.0),
    ("min", (1, 2.0), 1.0),
    ("max", (1.0, 2), 2.0),
    ("clip", (5.0, 0, 3), 3.0),
    ("clamp", (5, 0, 3.0), 3.0),
    ("mix", (0, 10, 2), 10.0),
    ("step", (1, 0.5), 0.0),
    ("smoothstep", (0, 1, 0.5), 0.5),
    ("fma", (2, 3, 4), 10.0),
    ("atan2", (1, 2), math.atan2(1, 2)),
    ("pow", (2, 3), 8.0),
    ("length", (-2,), 2.0),
    ("distance", (1, 4), 3.0),
    ("dot", (2, 3.0), 6.0),
    ("inversesqrt", (4,), 0.5),
    ("radians", (180,), math.pi),
]


@pytest.mark.parametrize(("name", "arguments", "expected"), FOLDED)
def test_numbers_are_folded(name: str, arguments: tuple[float, ...], expected: float) -> None:
    got = getattr(vc, name)(*arguments)
    assert type(got) is float and math.isclose(got, expected)
    with pytest.raises(ValueError):
        getattr(vc, name)(*["text"] * len(arguments))


def test_numbers_that_fold_to_something_else() -> None:
    # floats in 0.1.0, which is no difference in a kernel's meaning where it is one at all
    for got in (vc.min(2, 1), vc.max(0, 1), vc.clip(3, 0, 1), vc.clamp(1, 1, 3), vc.abs(-1), vc.dot(1, 1)):
        assert type(got) is int and got == 1
    assert vc.isnan(math.nan) is True and vc.isinf(1.0) is False
    assert vc.float_bits_to_int(1.0) == 0x3F800000 and vc.uint_bits_to_float(0xBF800000) == -1.0
    assert tuple(vc.modf(3.25, 1.0)) == (0.25, 3.0)
    assert vc.atan2(y=1.0, x=2.0) == math.atan2(1, 2) and vc.step(edge=1.0, x=2.0) == 1.0


ELEMENTWISE = """sign floor ceil trunc round round_even fract sin cos tan asin acos atan sinh cosh tanh asinh
acosh atanh radians degrees exp exp2 log log2 sqrt inversesqrt"""


def test_dtypes_of_results() -> None:
    kinds = (f32, i32, u32, f16, f64, i16, i64, v3, iv3)
    floating = (f32, f32, f32, f16, f64, f16, f64, v3, v3)
    with vc.shader_context() as context:
        values = [b[0] for b in context.declare_input_arguments([Buff[kind] for kind in kinds])]
        for name in ELEMENTWISE.split():
            assert tuple(getattr(vc, name)(value).var_type for value in values) == floating, name
        f, i, u, v = values[0], values[1], values[2], values[7]
        for value, kind in (
            *((vc.abs(i), i32), (vc.min(i, u), i32), (vc.max(u, 3), u32), (vc.clamp(i, 0, 5), i32)),
            *((vc.min(i, 1.5), f32), (vc.length(v), f32), (vc.dot(v, v), f32), (vc.distance(v, v), f32)),
            *((vc.cross(v, v), v3), (vc.normalize(v), v3), (vc.float_bits_to_uint(f), u32)),
            *((vc.outer_product(v, v), vd.mat3), (vc.to_vec3(vc.new_vec2_register(), 1), v3)),
            *((vc.global_invocation_id(), vd.uvec3), (vc.subgroup_size(), u32), (vc.inf_f16(), f16)),
            *((vc.subgroup_min(i), i32), (vc.subgroup_add(f), f32), (vc.mult_complex(1, 2j), vd.complex64)),
        ):
            assert value.var_type is kind
        for name in ("to_float16", "to_float", "to_float64", "to_int16", "to_int", "to_int64", "to_uint64"):
            assert isinstance(getattr(vc, name)(1), vc.ShaderVariable)
        raw = vc.str_to_dtype(vd.float32, "text")
        assert (raw.name, raw.settable, raw.register, raw.lexical_unit) == ("text", False, False, False)
        assert vc.new_float_register(1, var_name="mine").name == "mine"
        assert vc.shared_buffer(vd.float32, 64, "shm").binding == -1


WRONG: list[tuple[type[Exception], Callable[..., Any]]] = [
    (ValueError, lambda a, i: vc.cross(vc.new_vec2_register(), vc.new_vec2_register())),
    (ValueError, lambda a, i: vc.normalize(3.0)),
    (ValueError, lambda a, i: vc.transpose(a[0])),
    (TypeError, lambda a, i: vc.to_float("a")),
    (TypeError, lambda a, i: vc.complex_from_euler_angle(1.0)),
    (TypeError, lambda a, i: vc.mult_complex(a[0], 1j)),
    (IndexError, lambda a, i: vc.to_complex()),
    (ValueError, lambda a, i: vc.to_complex(1, 2, 3)),
    (TypeError, lambda a, i: vc.to_complex(vc.new_vec2_register())),
    (TypeError, lambda a, i: vc.if_block(None)),
    (TypeError, lambda a, i: vc.while_block(1)),
    (TypeError, lambda a, i: vc.any(a[0] > 1, 1)),
    (TypeError, lambda a, i: vc.if_statement(3)),
    (TypeError, lambda a, i: vc.atomic_add(vc.new_int_register(), 1)),
    (TypeError, lambda a, i: vc.atomic_add(i[0], 1.5)),
    (AttributeError, lambda a, i: vc.subgroup_add(1)),
    (RuntimeError, lambda a, i: vc.end()),
    (RuntimeError, lambda a, i: vc.else_statement()),
    (ValueError, lambda a, i: vc.ravel_index(a[0], (3, 4))),
    (ValueError, lambda a, i: vc.ravel_index(i[0], (3.0, 4))),
    (ValueError, lambda a, i: vc.ravel_index(i[0], (1, 2, 3, 4))),
    (ValueError, lambda a, i: vc.unravel_index((i[0], 1), (3, 4))),
    (ValueError, lambda a, i: vc.unravel_index((1, 2, 3), (3, 4))),
    (ValueError, lambda a, i: vc.unravel_index((1, 2, 3, 4), (3, 4, 5))),
]


@pytest.mark.parametrize("case", range(len(WRONG)))
def test_wrong_arguments(case: int) -> None:
    error, use = WRONG[case]
    with vc.shader_context() as context:
        variables = context.declare_input_arguments([Buff[f32], Buff[i32]])
        with pytest.raises(error):
            use(*variables)


@pytest.mark.parametrize(
    "name",
    ["barrier", "new_float_register", "else_block", "printf", "comment", "return_statement", "shared_buffer"],
)
def test_nothing_is_emitted_outside_of_a_trace(name: str) -> None:
    arguments: dict[str, tuple[Any, ...]] = {
        "printf": ("x",),
        "comment": ("x",),
        "shared_buffer": (vd.float32, 4),
    }
    with pytest.raises(RuntimeError):
        block = getattr(vc, name)(*arguments.get(name, ()))
        block.__enter__()


@pytest.mark.parametrize("n", [-1, 2, 3, 4])
def test_control_flow_of_both_styles(n: int) -> None:
    @vd.shader(1)
    def kernel(o: Buff[i32], n: Const[i32]) -> None:
        r = vc.new_int_register(0)
        vc.if_statement(cond=n > 3)
        r[:] = 1
        vc.else_if_statement(n > 2)
        r[:] = 2
        vc.else_statement()
        r[:] = 3
        vc.end()
        o[0] = r
        vc.if_any(n > 100, n == 3)
        r[:] = 4
        vc.else_if_all(n > 0, n < 3)
        r[:] = 5
        vc.else_if_any(n > 3, n < -5)
        r[:] = 6
        vc.end(indent=True)
        o[1] = r
        vc.while_statement(r < 20)
        r += 3
        vc.end()
        o[2] = r
        vc.new_scope(True, "named */ scope")
        vc.if_statement(vc.logical_or(vc.logical_and(n == 3, n < 5), n == -1))
        o[3] = 7
        vc.end()
        vc.end()
        vc.if_statement(n == 3, command="buf0.data[4] = 8;")
        with vc.if_block(n == 4):
            o[5] = 1
        with vc.else_if_block(vc.all(n == 3, np.bool_(True))):
            o[5] = 2
        with vc.else_block():
            o[5] = 3
        with vc.if_block(np.bool_(False)):
            o[6] = 1
        with vc.scope_block(comment="two\nlines"), vc.while_block(vc.any(r > 0, False)):
            r -= 10
            with vc.if_block(r < 5):
                o[7] = r
                vc.return_statement()
        o[8] = 1

    out = vd.Buffer(9, vd.int32)
    out.write(bytes(36))
    kernel(out, n)
    r = {4: 6, 3: 4, 2: 5}.get(n, 3)
    expected = [1 if n > 3 else 2 if n > 2 else 3, r]
    r += -(-(20 - r) // 3) * 3
    expected += [r, 7 if n in (3, -1) else 0, 8 if n == 3 else 0, {4: 1, 3: 2}.get(n, 3), 0]
    while r >= 5:
        r -= 10
    assert out.read(0).tolist() == [*expected, r, 0]


def test_index_helpers() -> None:
    assert vc.unravel_index((1, 2), (3, 4)) == 6 and vc.unravel_index((1, 2, 3), (4, 5, 6)) == 45
    assert vc.unravel_index(5, (3,)) == 5 and vc.unravel_index((5,), (3,)) == (5,)

    @vd.shader("a.size")
    def kernel(a: Buff[i32], b: Buff[vd.ivec4]) -> None:
        i = vc.global_invocation_id().x
        fixed, dynamic = vc.ravel_index(i, (3, 5)), vc.ravel_index(i, a.shape)
        assert fixed.var_type is vd.uvec2 and dynamic.var_type is vd.uvec3
        b[i] = vc.to_ivec4(fixed, dynamic.swizzle("xy"))
        a[vc.unravel_index(dynamic.to_register(), a.shape)] = i.to_dtype(vd.int32)

    a, b = vd.Buffer((3, 5), vd.int32), vd.Buffer(15, vd.ivec4)
    kernel(a, b)
    i, j = (x.ravel() for x in np.indices((3, 5)))
    np.testing.assert_array_equal(b.read(0), np.stack([i, j, i, j], axis=1))
    np.testing.assert_array_equal(a.read(0), np.arange(15).reshape(3, 5))


def test_atomic_add() -> None:
    @vd.shader("p.size")
    def kernel(c: Buff[u32], p: Buff[u32]) -> None:
        t = vc.global_invocation_id().x
        p[t] = vc.atomic_add(c[0], 2)
        assert vc.atomic_add(c[1], t.to_dtype(vd.int32)).is_register()

    c, p = vd.asbuffer(np.zeros(2, np.uint32)), vd.Buffer(1000, vd.uint32)
    kernel(c, p)
    assert c.read(0).tolist() == [2000, 499500]
    np.testing.assert_array_equal(np.sort(p.read(0)), np.arange(0, 2000, 2))
