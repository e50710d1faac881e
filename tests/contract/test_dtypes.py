# ruff: noqa: SIM905
"""Element types: tables of attributes, mapping to NumPy, literals and promotion."""

from __future__ import annotations

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.base.dtype as dt
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, c64, f16, f32, f64, i16, i64, m2, u16, u32, u64, v2

SCALARS = {
    "int16": ("int16_t", 2, "%d"),
    "uint16": ("uint16_t", 2, "%u"),
    "int32": ("int", 4, "%d"),
    "uint32": ("uint", 4, "%u"),
    "int64": ("int64_t", 8, "%lld"),
    "uint64": ("uint64_t", 8, "%llu"),
    "float16": ("float16_t", 2, "%f"),
    "float32": ("float", 4, "%f"),
    "float64": ("double", 8, "%lf"),
}
VECTORS = {
    "hvec": ("f16vec", "float16"),
    "vec": ("vec", "float32"),
    "dvec": ("dvec", "float64"),
    "ihvec": ("i16vec", "int16"),
    "uhvec": ("u16vec", "uint16"),
    "ivec": ("ivec", "int32"),
    "uvec": ("uvec", "uint32"),
}


@pytest.mark.parametrize("name", SCALARS)
def test_scalars(name: str) -> None:
    kind = getattr(vd, name)
    glsl, size, text = SCALARS[name]
    assert isinstance(kind, type) and issubclass(kind, vd.dtype) and issubclass(kind, dt._Scalar)
    assert (kind.name, kind.glsl_type, kind.item_size, kind.dimentions) == (name, glsl, size, 0)
    assert (kind.child_type, kind.child_count, kind.scalar) == (None, 0, None)
    assert (kind.shape, kind.numpy_shape, kind.true_numpy_shape) == ((1,), (1,), ())
    assert kind.format_str == text


@pytest.mark.parametrize(
    ("name", "glsl", "part"),
    [
        ("complex32", "f16vec2", "float16"),
        ("complex64", "vec2", "float32"),
        ("complex128", "dvec2", "float64"),
    ],
)
def test_complex(name: str, glsl: str, part: str) -> None:
    kind, child = getattr(vd, name), getattr(vd, part)
    assert issubclass(kind, dt._Complex)
    assert (kind.name, kind.glsl_type, kind.item_size, kind.dimentions) == (
        name,
        glsl,
        2 * child.item_size,
        0,
    )
    assert (kind.child_type, kind.child_count, kind.scalar) == (child, 2, None)
    assert (kind.shape, kind.numpy_shape, kind.true_numpy_shape) == ((2,), (1,), ())
    assert kind.format_str == f"({child.format_str}, {child.format_str})"


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("family", VECTORS)
def test_vectors(family: str, count: int) -> None:
    kind = getattr(vd, f"{family}{count}")
    glsl, scalar = VECTORS[family]
    child = getattr(vd, scalar)
    assert issubclass(kind, dt._Vector)
    assert (kind.name, kind.glsl_type) == (f"{family}{count}", f"{glsl}{count}")
    assert (kind.item_size, kind.dimentions) == (count * child.item_size, 1)
    assert (kind.child_type, kind.child_count, kind.scalar) == (child, count, child)
    assert kind.shape == kind.numpy_shape == kind.true_numpy_shape == (count,)
    assert kind.format_str == "(" + ", ".join([child.format_str] * count) + ")"
    assert dt.to_vector(child, count) is kind
    assert dt.to_vector(child, 1) is child
    assert dt.vector_size(kind) == count


@pytest.mark.parametrize("count", [2, 3, 4])
def test_matrices(count: int) -> None:
    kind = getattr(vd, f"mat{count}")
    assert issubclass(kind, dt._Matrix)
    assert (kind.name, kind.glsl_type, kind.item_size, kind.dimentions) == (
        f"mat{count}",
        f"mat{count}",
        4 * count * count,
        2,
    )
    assert (kind.child_type, kind.child_count, kind.scalar) == (getattr(vd, f"vec{count}"), count, vd.float32)
    assert kind.shape == kind.numpy_shape == kind.true_numpy_shape == (count, count)
    assert isinstance(kind.format_str, str)


def test_hashable_and_compared_by_identity() -> None:
    assert len({vd.float32, vd.float32, vd.vec2}) == 2
    assert vd.complex64 != vd.vec2


@pytest.mark.parametrize(
    "name", "int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64 complex128".split()
)
def test_mapping_to_numpy(name: str) -> None:
    kind = getattr(vd, name)
    for given in (np.dtype(name), getattr(np, name), name):
        assert dt.from_numpy_dtype(given) is kind
    assert dt.to_numpy_dtype(kind) is getattr(np, name)
    assert dt.from_numpy_dtype(dt.to_numpy_dtype(kind)) is kind


def test_mapping_of_complex32() -> None:
    assert dt.from_numpy_dtype("complex32") is vd.complex32
    host = dt.to_numpy_dtype(vd.complex32)
    assert (host.name, host.itemsize) == ("complex32", 4)
    assert dt.from_numpy_dtype(host) is vd.complex32
    with pytest.raises(AttributeError):
        host.name = "other"
    assert "ee" in vars(host).values() or "ee" in [getattr(host, n) for n in dir(host) if n[0] != "_"]
    assert "complex" in [getattr(host, n) for n in dir(host) if n[0] != "_"]


@pytest.mark.parametrize("given", [np.dtype("U3"), "object", "float128x", np.datetime64, 3])
def test_no_mapping(given: object) -> None:
    with pytest.raises(ValueError):
        dt.from_numpy_dtype(given)


@pytest.mark.parametrize("kind", [vd.vec2, vd.mat3, vd.uhvec4])
def test_no_numpy_type_of_vectors(kind: type) -> None:
    with pytest.raises(ValueError):
        dt.to_numpy_dtype(kind)


RANKS = [vd.uint16, vd.int16, vd.uint32, vd.int32, vd.uint64, vd.int64, vd.float16, vd.float32, vd.float64]


@pytest.mark.parametrize("a", RANKS)
@pytest.mark.parametrize("b", RANKS)
def test_promotion_of_scalars(a: type, b: type) -> None:
    expected = max(a, b, key=RANKS.index)
    assert dt.cross_type(a, b) is expected
    assert dt.cross_scalar_scalar(a, b) is expected
    if a.item_size < 8 and b.item_size < 8:
        for n in (2, 3, 4):
            va, vb = dt.to_vector(a, n), dt.to_vector(b, n)
            result = dt.to_vector(expected, n)
            assert dt.cross_type(va, b) is dt.cross_type(a, vb) is dt.cross_type(va, vb) is result
            assert dt.cross_vector_scalar(va, b) is result
            assert dt.cross_vector_vector(va, vb) is result
            assert dt.cross_vector(va, vb) is result


def test_promotion_examples_of_the_contract() -> None:
    assert dt.cross_type(vd.uint32, vd.int32) is vd.int32
    assert dt.cross_type(vd.int64, vd.float16) is vd.float16


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (vd.complex64, vd.complex128, vd.complex128),
        (vd.complex32, vd.complex64, vd.complex64),
        (vd.complex32, vd.int16, vd.complex32),
        (vd.complex32, vd.uint16, vd.complex32),
        (vd.complex32, vd.int32, vd.complex64),
        (vd.complex32, vd.uint32, vd.complex64),
        (vd.complex64, vd.int64, vd.complex128),
        (vd.complex64, vd.uint64, vd.complex128),
        (vd.complex64, vd.float16, vd.complex64),
        (vd.complex64, vd.float64, vd.complex128),
        (vd.mat2, vd.mat2, vd.mat2),
        (vd.mat3, vd.float32, vd.mat3),
        (vd.int32, vd.mat4, vd.mat4),
    ],
)
def test_promotion_of_others(a: type, b: type, expected: type) -> None:
    assert dt.cross_type(a, b) is expected
    assert dt.cross_type(b, a) is expected


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (vd.vec2, vd.vec3),
        (vd.vec2, vd.complex64),
        (vd.mat2, vd.mat3),
        (vd.mat2, vd.vec2),
        (vd.mat2, vd.complex64),
    ],
)
def test_no_promotion(a: type, b: type) -> None:
    for pair in ((a, b), (b, a)):
        with pytest.raises(ValueError):
            dt.cross_type(*pair)


def test_products() -> None:
    for n in (2, 3, 4):
        m, v = getattr(vd, f"mat{n}"), getattr(vd, f"vec{n}")
        assert dt.cross_multiply_type(m, v) is v
        assert dt.cross_multiply_type(v, m) is v
        assert dt.cross_multiply_type(m, vd.float32) is m
        assert dt.cross_matrix(m, m) is m
    assert dt.cross_multiply_type(vd.int32, vd.float32) is vd.float32
    for a, b in ((vd.mat2, vd.vec3), (vd.mat2, vd.dvec2), (vd.ivec2, vd.mat2)):
        with pytest.raises(ValueError):
            dt.cross_multiply_type(a, b)


def test_floating() -> None:
    f = dt.make_floating_dtype
    for integer, real in (
        (vd.int16, vd.float16),
        (vd.uint16, vd.float16),
        (vd.int32, vd.float32),
        (vd.uint32, vd.float32),
        (vd.int64, vd.float64),
        (vd.uint64, vd.float64),
    ):
        assert f(integer) is real
    for same in (
        vd.float16,
        vd.float32,
        vd.float64,
        vd.complex32,
        vd.complex64,
        vd.complex128,
        vd.mat2,
        vd.mat4,
        vd.vec3,
        vd.hvec2,
    ):
        assert f(same) is same
    assert f(vd.ivec3) is vd.vec3
    assert f(vd.uhvec2) is vd.hvec2


def test_helpers() -> None:
    for bad in (
        (vd.float32, 0),
        (vd.float32, 5),
        (vd.int64, 2),
        (vd.uint64, 3),
        (vd.vec2, 2),
        (vd.complex64, 2),
        (vd.mat2, 2),
    ):
        with pytest.raises(ValueError):
            dt.to_vector(*bad)
    assert dt.is_dtype(vd.mat2) and not dt.is_dtype(int)
    for bad_class in (3, "float32", vd.float32.name):
        with pytest.raises(TypeError):
            dt.is_dtype(bad_class)
    assert dt.is_scalar(vd.int16) and not dt.is_scalar(vd.complex64)
    assert dt.is_complex(vd.complex64) and not dt.is_complex(vd.vec2)
    assert dt.is_vector(vd.vec2) and not dt.is_vector(vd.complex64)
    assert dt.is_matrix(vd.mat2) and not dt.is_matrix(vd.vec2)
    assert dt.is_float_dtype(vd.vec2) and dt.is_float_dtype(vd.mat2) and dt.is_float_dtype(vd.complex64)
    assert dt.is_integer_dtype(vd.uhvec3) and not dt.is_integer_dtype(vd.hvec3)
    assert dt.complex_from_float(vd.float16) is vd.complex32
    assert dt.complex_from_float(vd.float32) is vd.complex64
    assert dt.complex_from_float(vd.float64) is vd.complex128
    for bad_float in (vd.int32, vd.vec2, vd.complex64):
        with pytest.raises(ValueError):
            dt.complex_from_float(bad_float)


def test_matrix_times_vector() -> None:
    """Host data [i] is column i: m * v sums v[i] * host[i]."""

    @vd.shader(1)
    def product(out: Buff[v2], m: Const[m2], v: Const[v2]):
        out[0] = m * v
        out[1] = m[0]
        out[2][0] = m[1][0]

    out = vd.Buffer(3, vd.vec2)
    product(out, [[1, 2], [3, 4]], (5, 6))
    got = out.read(0)
    assert got[0].tolist() == [23, 34]
    assert got[1].tolist() == [1, 2]
    assert got[2][0] == 3


def test_host_memory_has_no_padding() -> None:
    data = np.arange(27, dtype=np.float32).reshape(3, 3, 3)
    buffer = vd.Buffer(3, vd.mat3)
    assert buffer.mem_size == 108
    buffer.write(data)
    assert np.array_equal(buffer.read(0), data)


LITERALS = [
    (3, "float32", 1.5 + 3),
    (np.int64(3), "float32", 4.5),
    (np.float64(0.1), "float32", np.float32(1.5) + np.float32(0.1)),
    (np.float16(2), "float32", 3.5),
    (float("inf"), "float32", np.inf),
    (float("-inf"), "float32", -np.inf),
    (1e-20, "float32", 1.5),
    (np.float32(2), "float64", 3.5),
]


@pytest.mark.parametrize(("value", "name", "expected"), LITERALS)
def test_literals(value: object, name: str, expected: float) -> None:
    kind = getattr(vd, name)

    @vd.shader(1)
    def add(out: vc.Buff[kind], x: vc.Const[kind]):
        out[0] = x + value

    out = vd.Buffer(1, kind)
    add(out, 1.5)
    assert out.read(0)[0] == expected


def test_types_of_literals() -> None:
    seen = {}

    @vd.shader(1)
    def kernel(
        u: Buff[u32], f: Buff[f32], h: Buff[f16], s: Buff[i16], us: Buff[u16], w: Buff[i64], d: Buff[f64]
    ):
        seen.update(
            u_int=(u[0] + 1).var_type,
            u_negative=(u[0] + -1).var_type,
            u_float=(u[0] + 1.0).var_type,
            u_numpy=(u[0] + np.float64(1)).var_type,
            l_int=(w[0] + 1).var_type,
            l_float=(w[0] + 1.5).var_type,
            f_int=(f[0] + 1).var_type,
            h_float=(h[0] + 1.5).var_type,
            s_int=(s[0] + 1).var_type,
            us_int=(us[0] + 1).var_type,
            d_float=(d[0] + 0.1).var_type,
        )
        with pytest.raises(TypeError):
            f[0] + True
        with pytest.raises(TypeError):
            f[0] * np.bool_(True)
        with pytest.raises(TypeError):
            f[True]
        with pytest.raises(ValueError, match="does not fit in uint32"):
            u[0] + (1 << 40)  # does not compile in 0.1.0
        for operation in ("+", "-", "*", "/"):
            with pytest.raises(TypeError):
                eval(f"f[0] {operation} 1j", {"f": f})

    assert seen == {
        "u_int": vd.uint32,
        # 0.1.0 makes it an int32, which is wrong from 2**31 on
        "u_negative": vd.uint32,
        "u_float": vd.float32,
        "u_numpy": vd.float32,
        "l_int": vd.int64,
        "l_float": vd.float32,
        "f_int": vd.float32,
        "h_float": vd.float16,
        "s_int": vd.int16,
        "us_int": vd.uint16,
        "d_float": vd.float64,
    }


def test_large_literals_and_double_literals() -> None:
    @vd.shader(1)
    def kernel(out: Buff[u64], signed: Buff[i64], d: Buff[f64]):
        out[0] = out[0] + (2**32)
        out[1] = 2**64 - 1
        signed[0] = signed[0] - (2**40)
        signed[1] = -(2**63)
        d[0] = d[0] + 0.1

    out, signed, d = (vd.Buffer(2, t) for t in (vd.uint64, vd.int64, vd.float64))
    out.write(np.ones(2, np.uint64))
    signed.write(np.ones(2, np.int64))
    d.write(np.ones(2, np.float64))
    kernel(out, signed, d)
    assert out.read(0).tolist() == [2**32 + 1, 2**64 - 1]
    assert signed.read(0).tolist() == [1 - 2**40, -(2**63)]
    assert d.read(0)[0] == 1.1


def test_adopted_types_of_literals() -> None:
    """14.14: a Python literal takes the type of the variable beside it."""

    @vd.shader(1)
    def kernel(a: Buff[u16], b: Buff[f16]):
        a[0] += 1
        b[0] += 0.5
        b[0] = b[0] * 2.0

    a, b = vd.Buffer(1, vd.uint16), vd.Buffer(1, vd.float16)
    a.write(np.array([7], np.uint16))
    b.write(np.array([1], np.float16))
    kernel(a, b)
    assert a.read(0)[0] == 8
    assert b.read(0)[0] == 3


def test_complex_literal_is_stored() -> None:
    @vd.shader(1)
    def kernel(out: Buff[c64]):
        out[0] = 1 + 2j
        r = out[0].to_register()
        r[:] = 3 - 4j
        out[1] = r
        out[2] = vc.mult_complex(r, 2j)

    out = vd.Buffer(3, vd.complex64)
    kernel(out)
    assert out.read(0).tolist() == [1 + 2j, 3 - 4j, 8 + 6j]
