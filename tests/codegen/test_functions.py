"""Built-in functions: types, folding of numbers, errors, compilation."""

import ast
import math
from pathlib import Path

import numpy as np
import pytest

import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.codegen.abbreviations import (
    Buff,
    Const,
    c64,
    dv2,
    dv3,
    f16,
    f32,
    f64,
    hv2,
    i16,
    i32,
    i64,
    iv3,
    m2,
    m3,
    u16,
    u32,
    u64,
    v3,
)
from vkdispatch.codegen.execution import registers, subgroups
from vkdispatch.codegen.functions import bits, vectors

from .tracing import compiled, statements, trace

UNARY = {
    "sign": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,
    "round_even": np.rint,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "radians": np.radians,
    "degrees": np.degrees,
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "sqrt": np.sqrt,
    "abs": np.abs,
}
UNARY_NAMES = [*UNARY, "fract", "inversesqrt"]
BINARY_NAMES = ["mod", "min", "max", "step", "atan2", "pow", "modf"]
TERNARY_NAMES = ["clip", "clamp", "mix", "smoothstep", "fma"]
KEEPS_INTEGERS = {"abs", "min", "max", "clip", "clamp"}
KINDS = [u16, i16, u32, i32, u64, i64, f16, f32, f64, v3, iv3, dv2, hv2]


@pytest.mark.parametrize("name", UNARY_NAMES)
def test_unary_functions_of_every_type(name):
    def body(*values):
        for value in values[:-1]:
            result = getattr(vc, name)(value)
            kind = value.var_type
            assert result.var_type is (kind if name in KEEPS_INTEGERS else dt.make_floating_dtype(kind))
            result.to_register()

    compiled(body, [*(Const[kind] for kind in KINDS), Buff[f32]])


@pytest.mark.parametrize("name", [*BINARY_NAMES, *TERNARY_NAMES])
@pytest.mark.parametrize("kind", KINDS)
def test_functions_of_several_values(name, kind):
    def body(x, f, i, _):
        function = getattr(vc, name)
        extra = (i,) if name in TERNARY_NAMES else ()
        for first, second in ((x, x), (x, f), (f, x), (x, 2), (2, x), (x, i), (0.5, x)):
            for args in ((first, second, *extra), (*extra, first, second)):
                result = function(*args)
                kinds = [arg.var_type for arg in args if isinstance(arg, vc.ShaderVariable)]
                assert dt.is_vector(result.var_type) == any(dt.is_vector(kind) for kind in kinds)
                if not any(isinstance(arg, float) or arg is f for arg in args) and name in KEEPS_INTEGERS:
                    assert dt.is_integer_dtype(result.var_type) == dt.is_integer_dtype(kind)
                result.to_register()

    compiled(body, [Const[kind], Const[f32], Const[i32], Buff[f32]])


@pytest.mark.parametrize("name", list(UNARY))
@pytest.mark.parametrize("value", [0.25, -0.75, 2, 2.5, -3.5, 0])
def test_numbers_are_folded(name, value):
    result = getattr(vc, name)(value)
    with np.errstate(all="ignore"):
        expected = UNARY[name](np.float64(value))
    assert type(result) is (int if name == "abs" and isinstance(value, int) else float)
    # Python's and NumPy's functions may differ in the last place
    np.testing.assert_array_max_ulp(result, float(expected), 1)


def test_other_numbers_are_folded():
    assert vc.mod(-1, 3) == 2
    assert math.isnan(vc.mod(1, 0))
    assert vc.modf(2.5, 1) == (0.5, 2.0)
    assert (vc.min(1, 2), vc.max(1, 2), vc.clip(5, 0, 3), vc.clamp(-5, 0, 3)) == (1, 2, 3, 0)
    assert (vc.mix(0, 10, 0.5), vc.mix(0, 10, 2), vc.step(1, 2), vc.smoothstep(0, 1, 0.5)) == (5, 10, 1, 0.5)
    assert (vc.fma(2, 3, 4), vc.pow(2, 3), vc.pow(2, -1), vc.fract(-0.25)) == (10, 8, 0.5, 0.75)
    assert (vc.length(-2), vc.distance(1, 4), vc.dot(2, 3)) == (2, 3, 6)
    assert (vc.isnan(math.nan), vc.isinf(1.0)) == (True, False)
    assert vc.isnan(1) is False
    assert vc.atan2(1, 0) == math.pi / 2
    assert vc.float_bits_to_uint(1.0) == 0x3F800000
    assert vc.float_bits_to_int(-0.0) == -(1 << 31)
    assert vc.uint_bits_to_float(0x3F800000) == 1.0
    assert vc.int_bits_to_float(0x3F800000) == 1.0
    assert vc.inversesqrt(4) == 0.5
    assert vc.exp(1000) == math.inf


@pytest.mark.parametrize("name", [*UNARY_NAMES, "isnan", "length", "float_bits_to_int", "int_bits_to_float"])
@pytest.mark.parametrize("bad", [None, "1", True, 1j, [1]])
def test_unary_functions_refuse_wrong_arguments(name, bad):
    with pytest.raises(ValueError, match=rf"{name}: expected .*\(test_functions\.py:\d+\)\n"):
        getattr(vc, name)(bad)


@pytest.mark.parametrize("name", [*BINARY_NAMES, "distance", "dot"])
def test_binary_functions_refuse_wrong_arguments(name):
    with pytest.raises(ValueError, match=name):
        getattr(vc, name)(1, "2")
    with pytest.raises(ValueError, match=name):
        trace(lambda x: getattr(vc, name)(x, None), [Const[f32]])


@pytest.mark.parametrize("name", ["sin", "floor", "sqrt"])
@pytest.mark.parametrize("kind", [c64, m2])
def test_functions_of_components_only(name, kind):
    with pytest.raises(ValueError, match="not defined for"):
        trace(lambda x: getattr(vc, name)(x), [Const[kind]])


def test_geometry():
    def body(a, b, d, i, x, _):
        for value in (vc.length(a), vc.distance(a, b), vc.dot(a, b), a @ b, vc.dot(a, 2)):
            assert value.var_type is f32
            value.to_register()
        assert vc.dot(d, d).var_type is f64
        assert vc.length(d).var_type is f64
        assert vc.dot(i, i).var_type is i32
        vc.dot(i, i).to_register()
        vc.length(i).to_register()
        vc.length(x).to_register()
        vc.dot(x, x).to_register()
        assert vc.cross(a, b).var_type is v3
        vc.cross(a, b).to_register()
        vc.normalize(a).to_register()
        with pytest.raises(ValueError):
            vc.cross(a, x)
        with pytest.raises(ValueError):
            vc.cross(a, 1)
        with pytest.raises(ValueError):
            vc.normalize(i)
        with pytest.raises(ValueError):
            vc.dot(a, d.swizzle("xy"))

    compiled(body, [Const[v3], Const[v3], Const[dv3], Const[iv3], Const[f32], Buff[f32]])


def test_matrices():
    def body(a, v, _):
        vc.matrix_comp_mult(a, a).to_register()
        assert vc.outer_product(v, v).var_type is m3
        vc.outer_product(v, v).to_register()
        vc.transpose(a).to_register()
        assert vc.determinant(a).var_type is f32
        vc.determinant(a).to_register()
        vc.inverse(a).to_register()
        for bad in (
            lambda: vc.transpose(v),
            lambda: vc.inverse(1),
            lambda: vc.outer_product(v, v.swizzle("xy")),
            lambda: vc.matrix_comp_mult(a, vc.to_mat2(1)),
        ):
            with pytest.raises(ValueError):
                bad()

    compiled(body, [Const[m3], Const[v3], Buff[f32]])


def test_bits_and_classes():
    def body(x, d, i, u, out):
        out[0] = vc.isnan(x)
        out[1] = vc.isinf(d)
        out[2] = vc.float_bits_to_int(x)
        out[3] = vc.float_bits_to_uint(x).to_dtype(i32)
        vc.int_bits_to_float(i).to_register()
        vc.uint_bits_to_float(u).to_register()
        with pytest.raises(ValueError, match="scalar"):
            vc.isnan(vc.to_vec2(x))

    compiled(body, [Const[f32], Const[f64], Const[i32], Const[u32], Buff[i32]])


def test_euler():
    def body(x, d, _):
        assert vc.complex_from_euler_angle(x).var_type is c64
        assert vc.complex_from_euler_angle(d).var_type is dt.complex128
        vc.complex_from_euler_angle(d).to_register()
        with pytest.raises(TypeError):
            vc.complex_from_euler_angle(1.0)

    compiled(body, [Const[f32], Const[f64], Buff[f32]])


def test_float64_functions_that_glsl_lacks():
    text = compiled(
        lambda d, out: out.__setitem__(0, vc.sin(d) + vc.sqrt(d)), [Const[f64], Buff[f64]], ["d", "out"]
    )
    assert statements(text) == ["buf0.data[0] = f64_sin(PC.d) + sqrt(PC.d);"]


# ---- barriers, subgroups, atomics, printing ------------------------------------------------------


def test_barriers():
    def body(b):
        for name in (
            "barrier",
            "memory_barrier",
            "memory_barrier_buffer",
            "memory_barrier_shared",
            "memory_barrier_image",
            "group_memory_barrier",
            "subgroup_barrier",
        ):
            getattr(vc, name)()
        b[0] = 1

    compiled(body, [Buff[f32]])


@pytest.mark.parametrize("kind", [i32, u32, f32, f64, v3, iv3])
def test_subgroup_operations(kind):
    def body(x, out):
        names = ["add", "mul", "min", "max"] + (["and", "or", "xor"] if dt.is_integer_dtype(kind) else [])
        for name in names:
            result = getattr(vc, f"subgroup_{name}")(x)
            assert result.var_type is kind
            out[0] = result
        with vc.if_block(vc.subgroup_elect()):
            out[1] = x

    compiled(body, [Const[kind], Buff[kind]])


def test_subgroup_operations_refuse_numbers():
    for name in ("add", "mul", "min", "max", "and", "or", "xor"):
        with pytest.raises(AttributeError, match=f"subgroup_{name}"):
            getattr(vc, f"subgroup_{name}")(1)
    with pytest.raises(ValueError, match="integers"):
        trace(lambda x: vc.subgroup_and(x), [Const[f32]])


def test_atomics():
    def body(i, u, v, f, n):
        shared = vc.shared_buffer(u32, 4)
        before = vc.atomic_add(i[0], 1)
        assert before.is_register()
        vc.atomic_add(u[before], n)
        vc.atomic_add(v[1].x, n)
        vc.atomic_add(shared[2], 3)
        for target, value in (
            (before, 1),
            (f[0], True),
            (i[0], 1.5),
            (i[0], f[0]),
            (i[0], True),
            (i[0], "1"),
            (3, 1),
            (n, 1),
            (v[0], 1),
        ):
            with pytest.raises(TypeError, match="atomic_add"):
                vc.atomic_add(target, value)

    annotations = [Buff[i32], Buff[u32], Buff[iv3], Buff[f32], Const[i32]]
    compiled(body, annotations)
    assert trace(body, annotations).binding_access == [(True, True)] * 3 + [(False, False)]


def test_comments():
    def body(b):
        vc.comment("first")
        b[0] = 1
        vc.comment("not the end: */ int x;\nsecond line")
        vc.comment("close", preceding_new_line=False)
        b[1] = 2
        with pytest.raises(TypeError):
            vc.comment(3)

    text = compiled(body, [Buff[f32]])
    assert "    /* first */\n    buf0.data[0] = 1.0f;\n\n    /*\n" in text


# ---- indices -------------------------------------------------------------------------------------


def test_ravel_index():
    def body(b, i, u):
        for shape in ((4, 5), (3, 4, 5), [2, 2], b.shape, u):
            position = vc.ravel_index(i, shape)
            size = 2 if isinstance(shape, (tuple, list)) and len(shape) == 2 else 3
            assert position.var_type is dt.to_vector(u32, size)
            position.to_register()
        vc.ravel_index(7, (4, 5)).to_register()

    compiled(body, [Buff[f32], Const[i32], Const[dt.uvec3]])


def test_unravel_index():
    def body(b, i, p, q):
        assert vc.unravel_index((1, 2), (4, 5)) == 7
        assert vc.unravel_index((1, 2, 3), (4, 5, 6)) == 45
        assert vc.unravel_index((3,), (4, 5)) == (3,)
        assert vc.unravel_index(3, (4, 5)) == 3
        assert vc.unravel_index(i, (4, 5)) is i
        for index in (p, q, (1, 2)):
            for shape in ((4, 5), (3, 4, 5), b.shape):
                if index is q and isinstance(shape, tuple) and len(shape) == 2:
                    continue
                flat = vc.unravel_index(index, shape)
                if not isinstance(flat, int):
                    b[flat] = 1

    compiled(body, [Buff[f32], Const[i32], Const[dt.ivec2], Const[dt.uvec3]])


@pytest.mark.parametrize(
    "call",
    [
        lambda i, f: vc.ravel_index(f, (2, 2)),
        lambda i, f: vc.ravel_index(i, (2,)),
        lambda i, f: vc.ravel_index(i, (2, 2.5)),
        lambda i, f: vc.ravel_index(i, (i, 2)),
        lambda i, f: vc.ravel_index(i, f),
        lambda i, f: vc.ravel_index(1.5, (2, 2)),
        lambda i, f: vc.unravel_index((1, 2, 3, 4), (1, 2, 3)),
        lambda i, f: vc.unravel_index((1, 2, 3), (4, 5)),
        lambda i, f: vc.unravel_index((i, 2), (4, 5)),
        lambda i, f: vc.unravel_index((1, 2), (4, "5")),
        lambda i, f: vc.unravel_index(f, (4, 5)),
        lambda i, f: vc.unravel_index((1.5, 2), (4, 5)),
        lambda i, f: vc.unravel_index((1, 2), 3.5),
        lambda i, f: vc.ravel_index(i, (1, 2, 3, 4)),
    ],
)
def test_wrong_indices_are_refused(call):
    with pytest.raises(ValueError, match=r"(index|shape): .*test_functions\.py"):
        trace(call, [Const[i32], Const[f32]])


@pytest.mark.parametrize(
    "call",
    [
        lambda: vc.new_register(f32),
        lambda: vc.shared_buffer(f32, 4),
        vc.barrier,
        lambda: vc.comment("x"),
        lambda: vc.print("x"),
        vc.return_statement,
        vc.get_builder,
        vc.end,
        lambda: vc.if_block(True).__enter__(),
        lambda: vc.if_statement(True),
        vc.else_statement,
    ],
)
def test_functions_outside_of_a_trace_raise(call):
    with pytest.raises(RuntimeError, match=r"traced|test_functions"):
        call()


def test_stub_names_the_functions_that_loops_make():
    stub = ast.parse(Path(vc.__file__).with_name("typed_names.pyi").read_text())
    shown = {node.name for node in stub.body if isinstance(node, ast.FunctionDef)}
    made = set()
    for module in (registers, subgroups, bits, vectors):
        listed = next(node for node in ast.parse(Path(module.__file__).read_text()).body if _is_listing(node))
        made |= set(module.__all__) - set(ast.literal_eval(listed.value))
    assert shown == made <= set(vc.__all__)


def _is_listing(node):
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
