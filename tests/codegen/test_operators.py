"""Operators: types, text, errors, and that everything legal compiles."""

import itertools
import math
import operator

import numpy as np
import pytest

import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.codegen.abbreviations import (
    Buff,
    Const,
    c32,
    c64,
    c128,
    dv3,
    f16,
    f32,
    f64,
    i16,
    i32,
    i64,
    ihv3,
    iv3,
    m2,
    m3,
    u16,
    u32,
    u64,
    uv3,
    v2,
    v3,
)

from .tracing import compiled, statements, trace

SCALARS = [u16, i16, u32, i32, u64, i64, f16, f32, f64]
INTEGERS = [u16, i16, u32, i32, u64, i64]
ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv]
INTEGER_ONLY = [
    operator.floordiv,
    operator.mod,
    operator.lshift,
    operator.rshift,
    operator.and_,
    operator.or_,
    operator.xor,
]
COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


def store_result(rule, *kinds):
    """Compile a kernel that computes `rule` of constants of these types; returns the type of the result."""
    found = []

    def body(*args):
        *values, _ = args
        result = rule(*values)
        found.append(result.var_type)
        result.to_register("result")

    compiled(body, [Const[kind] for kind in kinds] + [Buff[f32]])
    return found[0]


@pytest.mark.parametrize(("a", "b"), list(itertools.combinations_with_replacement(SCALARS, 2)))
def test_arithmetic_of_every_pair_of_scalars(a, b):
    for rule in ARITHMETIC:
        expected = dt.cross_type(a, b)
        if rule is operator.truediv:
            expected = dt.make_floating_dtype(expected)
        assert store_result(rule, a, b) is expected
        assert store_result(rule, b, a) is expected


@pytest.mark.parametrize(("a", "b"), list(itertools.combinations_with_replacement(INTEGERS, 2)))
def test_integer_operators_of_every_pair(a, b):
    def body(x, y, _):
        for rule in INTEGER_ONLY:
            for left, right in ((x, y), (y, x)):
                result = rule(left, right)
                shifts = rule in (operator.lshift, operator.rshift)
                assert result.var_type is (left.var_type if shifts else dt.cross_type(a, b))
                result.to_register()

    compiled(body, [Const[a], Const[b], Buff[f32]])


@pytest.mark.parametrize("rule", INTEGER_ONLY)
@pytest.mark.parametrize("kinds", [(f32, i32), (i32, f32), (f64, u32), (v3, i32)])
def test_integer_operators_refuse_floats(rule, kinds):
    with pytest.raises(TypeError, match="integers"):
        trace(lambda a, b: rule(a, b), [Const[kinds[0]], Const[kinds[1]]])


@pytest.mark.parametrize("kind", SCALARS)
def test_comparisons_give_truth_values(kind):
    def body(x, y, out):
        for rule in COMPARISONS:
            result = rule(x, y)
            assert result.var_type is dt.bool_
            flag = vc.new_int_register()
            flag[:] = result
            with vc.if_block(rule(x, 1)):
                out[0] = 1

    compiled(body, [Const[kind], Const[kind], Buff[f32]])


@pytest.mark.parametrize("kind", [v2, v3, dv3, iv3, uv3, ihv3, m2, m3, c64])
def test_vectors_and_matrices_compare_only_for_equality(kind):
    def body(x, y, out):
        with vc.if_block(x == y):
            out[0] = 1
        with vc.if_block(x != y):
            out[0] = 2

    compiled(body, [Const[kind], Const[kind], Buff[f32]])
    with pytest.raises(TypeError, match=r"no order.*test_operators\.py"):
        trace(lambda x, y: x < y, [Const[kind], Const[kind]])


@pytest.mark.parametrize("kind", SCALARS)
@pytest.mark.parametrize("number", [0, 1, 3, 200])
def test_whole_literals_adopt_the_type(kind, number):
    def body(x, _):
        for rule in (operator.add, operator.sub, operator.mul):
            assert rule(x, number).var_type is kind
            assert rule(number, x).var_type is kind
            rule(number, x).to_register()

    compiled(body, [Const[kind], Buff[f32]])


@pytest.mark.parametrize(
    ("kind", "number", "expected"),
    [
        (u16, -1, u16),
        (u32, -5, u32),
        (u64, -1, u64),
        (i32, 1.5, f32),
        (f16, 1.5, f16),
        (f64, 1.5, f64),
        (u64, 0.5, f32),
        (i16, np.float64(2), f32),
        (f16, np.int64(7), f16),
        (i16, 0.5, f32),
    ],
)
def test_other_literals_promote(kind, number, expected):
    assert store_result(lambda x: x + number, kind) is expected
    assert store_result(lambda x: number + x, kind) is expected


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (u32, 3, "3u"),
        (i32, -5, "-5"),
        (i32, -(1 << 31), "int(0x80000000u)"),
        (u64, 1 << 40, "1099511627776ul"),
        (i64, -7, "-7l"),
        (i64, -(1 << 63), "int64_t(0x8000000000000000ul)"),
        (i16, 4, "4s"),
        (u16, 4, "4us"),
        (f32, 2, "2.0f"),
        (f32, 1e-20, "1e-20f"),
        (f32, np.float32(0.1), "0.1f"),
        (f64, 0.1, "0.1lf"),
        (f16, 0.5, "0.5hf"),
        (f32, float("inf"), "uintBitsToFloat(0x7F800000u)"),
        (f64, float("-inf"), "double(uintBitsToFloat(0xFF800000u))"),
        (f32, float("nan"), "uintBitsToFloat(0x7FC00000u)"),
        (f32, np.float64(1.25), "1.25f"),
        (f32, np.int16(3), "3.0f"),
        (f64, 1e16, "1e+16lf"),
    ],
)
def test_literal_text(kind, value, text):
    lines = statements(compiled(lambda buffer: buffer.__setitem__(0, value), [Buff[kind]]))
    assert lines == [f"buf0.data[0] = {text};"]


@pytest.mark.parametrize("other", [None, "2", [1], True, np.bool_(True), 1j, object()])
@pytest.mark.parametrize("rule", [*ARITHMETIC, *COMPARISONS])
def test_wrong_operands_are_refused(rule, other):
    with pytest.raises(TypeError, match=r"\(test_operators\.py:\d+\)\n"):
        trace(lambda x: rule(x, other), [Const[f32]])
    with pytest.raises(TypeError):
        trace(lambda x: rule(other, x), [Const[f32]])


@pytest.mark.parametrize("kind", [v3, dv3, iv3, uv3, ihv3, m3])
def test_vectors_and_matrices_with_scalars(kind):
    def body(x, s, i, _):
        rules = ARITHMETIC if kind is not m3 else ARITHMETIC[:3]
        for rule in rules:
            for other in (s, i, 2, 0.5):
                rule(x, other).to_register()
                rule(other, x).to_register()
            rule(x, x).to_register()
        (-x).to_register()
        (x / 2).to_register()

    compiled(body, [Const[kind], Const[f32], Const[i32], Buff[f32]])


def test_integer_vectors_shift_and_mask():
    def body(x, y, s, _):
        for rule in INTEGER_ONLY:
            for other in (y, s, 2):
                rule(x, other).to_register()
                rule(other, x).to_register()
        (~x).to_register()

    compiled(body, [Const[iv3], Const[uv3], Const[u32], Buff[f32]])


def test_multiplying_by_one_gives_the_same_object():
    def body(x, i):
        assert x * 1 is x
        assert 1 * x is x
        assert x * 1.0 is x
        assert i // 1 is i
        assert (i * 1.0).var_type is f32

    trace(body, [Const[f32], Const[i32]])


def test_floor_division():
    def body(i, u, out):
        out[0] = i // 8
        out[1] = i // 3
        out[2] = 8 // i
        out[3] = (u // 8).to_dtype(i32)

    assert statements(compiled(body, [Const[i32], Const[u32], Buff[i32]], ["i", "u", "out"])) == [
        "buf0.data[0] = PC.i >> 3;",
        "buf0.data[1] = PC.i / 3;",
        "buf0.data[2] = 8 / PC.i;",
        "buf0.data[3] = int(PC.u / 8u);",
    ]


def test_powers():
    def body(x, i, d, _):
        assert x**0 == 1
        assert (x**2).var_type is f32
        assert (i**2).var_type is i32 and (i**2.0).var_type is f32
        assert (d**2.5).var_type is f64
        for exponent in (1, 2, 3, 4, 7, 16, 17, -1, -4, 0.5, x, i, d):
            (x**exponent).to_register()
            (i**exponent).to_register()
            (d**exponent).to_register()
        (2**x).to_register()
        (2**i).to_register()
        r = x.to_register()
        r **= 3
        r **= 0
        r **= x

    text = compiled(body, [Const[f32], Const[i32], Const[f64], Buff[f32]], ["x", "i", "d", "out"])
    assert "= PC.x * PC.x;" in text


def test_unary_operators():
    def body(x, i, u, _):
        operator.neg(-x).to_register()
        (-(-5 + x)).to_register()
        (x - (-x)).to_register()
        (-u).to_register()
        (~i).to_register()
        (+x).to_register()
        assert abs(u) is not None
        assert abs(i).var_type is i32
        abs(x).to_register()
        (x - -2).to_register()

    compiled(body, [Const[f32], Const[i32], Const[u32], Buff[f32]])


# ---- in place ------------------------------------------------------------------------------------


def test_in_place_operators_write_one_statement():
    def body(out, i):
        out[3] += 1
        out[3] -= out[4]
        out[3] *= 2.5
        out[3] /= i[0]
        i[0] //= 3
        i[0] %= 4
        i[0] <<= 1
        i[0] >>= 1
        i[0] &= 7
        i[0] |= 8
        i[0] ^= 9

    assert statements(compiled(body, [Buff[f32], Buff[i32]])) == [
        "buf0.data[3] += 1.0f;",
        "buf0.data[3] -= buf0.data[4];",
        "buf0.data[3] *= 2.5f;",
        "buf0.data[3] /= float(buf1.data[0]);",
        "buf1.data[0] = buf1.data[0] / 3;",
        "buf1.data[0] %= 4;",
        "buf1.data[0] <<= 1;",
        "buf1.data[0] >>= 1;",
        "buf1.data[0] &= 7;",
        "buf1.data[0] |= 8;",
        "buf1.data[0] ^= 9;",
    ]


@pytest.mark.parametrize(
    ("kind", "operand"), [(i32, 1.5), (f32, "f64"), (u32, "i32"), (i16, "i32"), (i32, "v3")]
)
def test_in_place_type_mismatch(kind, operand):
    def body(out, d, i, v):
        value = {"f64": d, "i32": i, "v3": v}.get(operand, operand)
        out[0] += value

    with pytest.raises(TypeError, match=r"does not go into .*test_operators\.py:\d+"):
        trace(body, [Buff[kind], Const[f64], Const[i32], Const[v3]])


def test_in_place_allows_what_promotes_to_the_target():
    def body(out, i, u):
        out[0] += i
        i32_register = i.to_register()
        i32_register += u
        v = vc.new_vec3_register(1)
        v *= i
        v.x += 1
        v *= vc.new_mat3_register(2)

    compiled(body, [Buff[f32], Const[i32], Const[u32]])


def test_in_place_operators_of_values_give_new_values():
    def body(x, b):
        y = x
        y += 1
        b[0] = x
        b[1] = y

    lines = statements(compiled(body, [Const[f32], Buff[f32]], ["x", "b"]))
    assert lines == ["buf0.data[0] = PC.x;", "buf0.data[1] = PC.x + 1.0f;"]


def test_in_place_division_of_integers():
    def body(x):
        x[0] /= 2

    with pytest.raises(ValueError, match="//="):
        trace(body, [Buff[i32]])


def test_in_place_returns_the_same_object():
    def body(x):
        r = same = vc.new_register(f32)
        r += 1
        assert r is same

    trace(body, [Buff[f32]])


# ---- complex -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [c32, c64, c128])
def test_complex_algebra_compiles(kind):
    def body(a, b, x, i, out):
        for value in (
            a + b,
            a - b,
            a * b,
            a / b,
            a + x,
            x - a,
            a * x,
            a / x,
            x / a,
            a + 1,
            2 / a,
            a * 2.5,
            1 - a,
            a**2,
            a**-1,
            -a,
            a.conjugate() * b,
            a + 1j,
            2j * a,
            a * i,
        ):
            assert value.is_complex
            out[0] = value.to_dtype(kind)
        assert not abs(a).is_complex
        abs(a).to_register()
        c = a.to_register()
        c *= b
        c += x.to_dtype(kind.child_type)
        c /= b

    compiled(body, [Const[kind], Const[kind], Const[f32], Const[i32], Buff[kind]])


def test_real_numbers_are_stored_in_the_real_part():
    def body(a, out):
        out[0] = a + 1
        out[1] = 2 - a
        out[2] = a * 2

    assert statements(compiled(body, [Const[c64], Buff[c64]], ["a", "out"])) == [
        "buf0.data[0] = PC.a + vec2(1.0f, 0.0f);",
        "buf0.data[1] = vec2(2.0f, 0.0f) - PC.a;",
        "buf0.data[2] = PC.a * 2.0f;",
    ]


def test_conjugation_is_not_lost():
    def body(a, out):
        z = a.conjugate()
        assert z.is_conjugate
        out[0] = z
        out[1] = z * 2
        out[2] = z.imag.to_dtype(c64)
        out[3] = z.conjugate()

    assert statements(compiled(body, [Const[c64], Buff[c64]], ["a", "out"]))[-4:] == [
        "buf0.data[0] = t0;",
        "buf0.data[1] = t0 * 2.0f;",
        "buf0.data[2] = vec2(-PC.a.y, 0.0f);",
        "buf0.data[3] = vec2(PC.a.x, PC.a.y);",
    ]


def test_mult_complex():
    def body(a, b, x, out):
        out[0] = vc.mult_complex(a, b)
        out[0] = vc.mult_complex(a, 2)
        out[0] = vc.mult_complex(1 + 2j, a)
        assert vc.mult_complex(2, 3j).var_type is c64
        with pytest.raises(TypeError):
            vc.mult_complex(a, x)

    compiled(body, [Const[c64], Const[c64], Const[f32], Buff[c64]])


# ---- matrices ------------------------------------------------------------------------------------


def test_matrix_products():
    def body(a, b, v, s, _):
        assert (a @ b).var_type is m3
        assert (a * b).var_type is m3
        assert (a @ v).var_type is v3
        assert (v @ a).var_type is v3
        assert (v @ v).var_type is f32
        for value in (a @ b, a * v, v * a, v @ v, a * s, a + b, a - b, 2 * a, a / 2, a * 1.5):
            value.to_register()
        for bad in (lambda: a / b, lambda: a + v, lambda: a * vc.to_vec2(1)):
            with pytest.raises(ValueError):
                bad()
        with pytest.raises(TypeError):
            a @ s
        with pytest.raises(TypeError):
            a @ 2

    compiled(body, [Const[m3], Const[m3], Const[v3], Const[f32], Buff[f32]])


# ---- truth ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "misuse",
    [lambda x: bool(x), lambda x: x and 1, lambda x: 1 if x > 0 else 2, lambda x: not x, lambda x: x in [1]],
)
def test_python_truth_is_refused_with_the_line(misuse):
    with pytest.raises(ValueError, match=r"vc\.if_block.*\(test_operators\.py:\d+\)\n"):
        trace(misuse, [Const[f32]])


def test_truth_values_combine():
    def body(x, i, out):
        both = (x > 0) & (i > 0)
        out[0] = ((x > 1) | (i > 1)).to_dtype(f32)
        out[1] = (~(x > 1)).to_dtype(f32)
        out[2] = ((x > 1) ^ both).to_dtype(f32)
        out[3] = (x > 1) + 1.5
        with vc.if_block(both):
            out[4] = 1

    compiled(body, [Const[f32], Const[i32], Buff[f32]])


@pytest.mark.parametrize("misuse", [hash, len, int, float, lambda x: x(), iter])
def test_unsupported_python_protocols_are_refused(misuse):
    with pytest.raises(TypeError):
        trace(misuse, [Const[f32]])


def test_numpy_scalars_on_the_left():
    def body(x):
        assert (np.float32(2) * x).var_type is f32
        assert (np.int64(2) + x).var_type is f32
        assert (np.float64(2) - x).var_type is f32
        assert (np.int32(3) < x).var_type is dt.bool_

    trace(body, [Const[f32]])


@pytest.mark.parametrize("function", [np.sin, np.add.reduce, np.hypot, np.logical_and])
def test_numpy_functions_are_refused(function):
    def body(b):
        function(*[b[0]] * getattr(function, "nin", 1))

    with pytest.raises(TypeError, match=r"NumPy computes on the host.*test_operators\.py:\d+"):
        trace(body, [Buff[f32]])


@pytest.mark.parametrize("function", [int, float, complex, range, math.sin, "abc".__getitem__])
def test_conversion_to_a_python_number_is_refused(function):
    def body(b):
        function(b[0])

    with pytest.raises(TypeError, match="not known while the kernel is traced"):
        trace(body, [Buff[i32]])


def test_numpy_arrays_do_not_broadcast_over_gpu_values():
    with pytest.raises(TypeError, match="NumPy computes on the host"):
        trace(lambda b: np.arange(3) * b[0], [Buff[f32]])
