"""Components, indexing, stores, registers, buffers, images."""

import pytest

import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.codegen.abbreviations import (
    Buff,
    Const,
    Img1,
    Img2,
    Img3,
    b8,
    c64,
    f16,
    f32,
    f64,
    i16,
    i32,
    i64,
    iv2,
    m2,
    m3,
    u16,
    u32,
    u64,
    uhv4,
    uv3,
    v2,
    v3,
    v4,
)
from vkdispatch.compiler.forms import Variant

from .tracing import compiled, statements, trace


def test_components_of_vectors():
    def body(v, out):
        r = v.to_register("r")
        r.x = 2
        r.y = v.z
        r[2] = r.x
        r[out[0].to_dtype(i32)] = 1.5
        out[0] = r.x
        assert not hasattr(r, "w")
        with pytest.raises(AttributeError, match="no component"):
            _ = r.w
        with pytest.raises(ValueError, match="no component"):
            r.w = 1
        a, b, c = r
        assert len(r) == 3
        assert [part.name for part in (a, b, c)] == ["r.x", "r.y", "r.z"]

    compiled(body, [Const[v3], Buff[f32]])


@pytest.mark.parametrize("letters", ["x", "zyx", "xx", "zzzz"])
def test_swizzle(letters):
    def body(v, _):
        result = v.swizzle(letters)
        assert result.var_type is (f32 if len(letters) == 1 else dt.to_vector(f32, len(letters)))
        assert result.settable == (v.settable and len(letters) == 1)
        result.to_register()
        v.x.swizzle("xxx").to_register()

    compiled(body, [Const[v3], Buff[f32]])


@pytest.mark.parametrize("letters", ["", "w", "xyzxy", "a", 3])
def test_bad_swizzle(letters):
    with pytest.raises(ValueError, match=r"swizzle: expected .*test_variables\.py"):
        trace(lambda v: v.swizzle(letters), [Const[v3]])


def test_unknown_attributes_are_refused():
    def body(v):
        with pytest.raises(AttributeError, match="'foo'"):
            v.foo = 1
        with pytest.raises(AttributeError):
            _ = v.foo

    trace(body, [Const[v3]])


def test_complex_parts():
    def body(c, out):
        r = c.to_register("r")
        r.real = 2
        r.imag = r.real
        r[0] = 1.5
        out[0] = r[1]
        with pytest.raises(AttributeError):
            _ = r.x
        with pytest.raises(ValueError):
            r.x = 1
        with pytest.raises(AttributeError):
            _ = out[0].real

    assert statements(compiled(body, [Const[c64], Buff[f32]], ["c", "out"])) == [
        "vec2 r = PC.c;",
        "r.x = 2.0f;",
        "r.y = r.x;",
        "r.x = 1.5f;",
        "buf0.data[0] = r.y;",
    ]


def test_matrices_index_by_column():
    def body(m, out):
        r = m.to_register("r")
        r[0] = r[1]
        r[1][2] = 3
        r[2].y = 4
        out[0] = r[0][1]
        with pytest.raises(IndexError):
            r[3]

    text = compiled(body, [Const[m3], Buff[f32]])
    assert "r[1].z = 3.0f;" in text


@pytest.mark.parametrize("index", [1.5, "0", True, None, (0, 1)])
def test_bad_vector_index(index):
    with pytest.raises(ValueError, match=r"test_variables\.py"):
        trace(lambda v: v[index], [Const[v3]])


@pytest.mark.parametrize("index", [3, -1, 100])
def test_vector_index_out_of_range(index):
    with pytest.raises(IndexError):
        trace(lambda v: v[index], [Const[v3]])


def test_scalars_cannot_be_indexed():
    with pytest.raises(ValueError, match="scalar"):
        trace(lambda s: s[0], [Const[f32]])


@pytest.mark.parametrize("index", [1.5, "0", True, None])
def test_bad_buffer_index(index):
    with pytest.raises(TypeError, match=r"test_variables\.py"):
        trace(lambda b: b[index], [Buff[f32]])
    with pytest.raises(TypeError):
        trace(lambda b, x: b[x], [Buff[f32], Const[f32]])


def test_buffer_index_forms():
    def body(b, i, j, k, v):
        for index in (0, (3,), i, j, k, v.x, i + j, (1 << 31) - 1):
            b[index] = b[index] + 1

    compiled(body, [Buff[f32], Const[i16], Const[u64], Const[i64], Const[iv2]])


def test_buffer_misuse():
    def body(b):
        with pytest.raises(ValueError, match="one to three indices"):
            b[0, 1, 2, 3]
        with pytest.raises(ValueError, match="slice"):
            b[:]
        with pytest.raises(ValueError, match="slice"):
            b[:] = 1
        for index in (-1, 1 << 31):
            with pytest.raises(IndexError, match="out of range"):
                b[index]
        for misuse in (
            lambda: b + 1,
            lambda: iter(b),
            lambda: len(b),
            lambda: b < 1,
            lambda: vc.to_register(b) if hasattr(vc, "to_register") else vc.new_register(f32, b),
            b.to_register,
        ):
            with pytest.raises(TypeError):
                misuse()

    trace(body, [Buff[f32]])


def test_buffer_attributes():
    def body(a, b):
        assert (a.binding, b.binding) == (0, 1)
        assert a.name == "buf0.data"
        assert b.shape_name == "buf1_shape"
        assert b.settable
        assert b.var_type is v3
        assert b.shape.var_type is dt.ivec4
        assert b.shape.name == "PC.buf1_shape"
        a[0] = b.shape.w.to_dtype(f32)
        a[1] = b[0].x

    description = trace(body, [Buff[f32], Buff[v3]], ["a", "b"])
    infos = description.shader_arg_infos
    assert [info.shader_shape_name for info in infos] == [None, "buf1_shape"]
    assert description.binding_access == [(False, True), (True, False)]


# ---- stores --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [f32, f64, f16, i32, u32, i16, u16, i64, u64, v3, uv3, uhv4, m2, c64])
@pytest.mark.parametrize("value", [0, 1, -1, 100])
def test_store_numbers(kind, value):
    def body(b):
        b[0] = value
        r = vc.new_register(kind)
        r[:] = value

    if value < 0 and dt.is_integer_dtype(kind) and not dt.is_signed_dtype(kind):
        with pytest.raises(ValueError, match=r"cannot store -1 in uint.* has the same bits"):
            compiled(body, [Buff[kind]])
    else:
        compiled(body, [Buff[kind]])


def test_store_broadcasts_to_every_entry():
    def body(b, m):
        b[0] = 1
        m[0] = 1

    assert statements(compiled(body, [Buff[v3], Buff[m2]])) == [
        "buf0.data[0] = vec3(1.0f);",
        "buf1.data[0] = mat2(1.0f, 1.0f, 1.0f, 1.0f);",
    ]


@pytest.mark.parametrize("value", [None, True, "1", [1], object()])
def test_store_of_wrong_values_is_refused(value):
    with pytest.raises(TypeError, match=r"cannot store .*test_variables\.py"):
        trace(lambda b: b.__setitem__(0, value), [Buff[f32]])


@pytest.mark.parametrize(("kind", "value"), [(i32, 1.5), (u16, 70000), (i16, -40000), (u32, 1 << 32)])
def test_store_of_numbers_that_do_not_fit_is_refused(kind, value):
    with pytest.raises(ValueError, match=r"store|fit"):
        trace(lambda b: b.__setitem__(0, value), [Buff[kind]])


@pytest.mark.parametrize(
    ("target", "source"), [(f32, i32), (f64, f32), (i32, u32), (v3, f32), (c64, f32), (c64, v2)]
)
def test_store_needs_the_same_type(target, source):
    def body(b, x):
        b[0] = x

    with pytest.raises(ValueError, match=r"\.to_dtype\(vd\.\w+\) \(test_variables\.py"):
        trace(body, [Buff[target], Const[source]])


def test_complex_number_needs_a_complex_place():
    def body(c, f):
        c[0] = 1 - 2j
        with pytest.raises(TypeError):
            f[0] = 1j

    assert statements(compiled(body, [Buff[c64], Buff[f32]])) == ["buf0.data[0] = vec2(1.0f, -2.0f);"]


def test_values_cannot_be_assigned_to():
    def body(x, v):
        with pytest.raises(ValueError, match="cannot be assigned"):
            x[:] = 1
        with pytest.raises(ValueError, match="cannot be assigned"):
            v.x = 1
        with pytest.raises(ValueError, match="slice"):
            v[0:1] = 1

    trace(body, [Const[f32], Const[v3]])


def test_truth_values_are_cast_on_store():
    def body(b, x):
        b[0] = x > 1
        r = (x > 2).to_register()
        assert r.var_type is b8
        r |= b[1] == 3
        b[2] = r

    text = compiled(body, [Buff[i32], Const[f32]], ["b", "x"])
    assert "buf0.data[0] = int(PC.x > 1.0f);" in text
    assert "bool var0 = PC.x > 2.0f;" in text
    assert "buf0.data[2] = int(var0);" in text


def test_reads_are_evaluated_where_they_are_used_if_nothing_changes_them():
    def changed(b):
        value = b[0]
        b[0] = 5
        b[1] = value

    def unchanged(b, counts):
        value = b[0]
        counts[0] = 5
        b[1] = value

    assert statements(compiled(changed, [Buff[f32]])) == [
        "float var0 = buf0.data[0];",
        "buf0.data[0] = 5.0f;",
        "buf0.data[1] = var0;",
    ]
    assert statements(compiled(unchanged, [Buff[f32], Buff[i32]])) == [
        "buf1.data[0] = 5;",
        "buf0.data[1] = buf0.data[0];",
    ]


# ---- registers and conversions -------------------------------------------------------------------


def test_register_names():
    def body(b):
        r = vc.new_float_register(1, var_name="speed")
        s = vc.new_float_register(var_name="speed")
        t = vc.new_register(f32, r, var_name="sin")
        u = b[0].to_register("float")
        assert [x.name for x in (r, s, t, u)] == ["speed", "speed_1", "sin_", "float_"]
        assert r.is_register()
        assert r.is_setable()
        assert r.lexical_unit
        assert (r + 1).resolve() == "(speed + 1.0f)"
        assert vc.new_register(f32).name == "var0"
        b[0] = vc.sin(t)

    compiled(body, [Buff[f32]])


@pytest.mark.parametrize("name", [3, "", b"x"])
def test_bad_register_name(name):
    with pytest.raises(TypeError, match="var_name"):
        trace(lambda b: b[0].to_register(name), [Buff[f32]])


ALL = [
    getattr(dt, name)
    for name in dir(dt)
    if isinstance(getattr(dt, name), type)
    and issubclass(getattr(dt, name), dt.dtype)
    and hasattr(getattr(dt, name), "item_size")
    and getattr(dt, name) not in (dt.bool_, dt.int8, dt.uint8, dt.bfloat16)
    and not name.startswith("_")
]


@pytest.mark.parametrize("kind", ALL)
def test_every_type_has_constructors(kind):
    short = {"float32": "float", "int32": "int", "uint32": "uint"}.get(kind.name, kind.name)

    def body(x, i, y, _):
        make, convert = getattr(vc, f"new_{short}_register"), getattr(vc, f"to_{short}")
        count = dt.component_count(kind)
        assert make().var_type is convert(1).var_type is kind
        make(2)
        make(x, var_name="named")
        make(*[i] * count)
        make(*range(count))
        convert(y).to_register()
        convert(i > 1).to_register()
        vc.to_dtype(kind, make()).to_register()
        vc.new_register(kind, i > 0)

    compiled(body, [Const[f32], Const[i32], Const[f64], Buff[kind]])


def test_constructors():
    def body(p, q, m, out):
        vc.to_vec3(p, 1).to_register()
        vc.to_vec4(p, p).to_register()
        vc.to_vec2(q).to_register()
        vc.to_ivec3(q).to_register()
        vc.to_mat2(m).to_register()
        vc.to_mat3(q, q, q).to_register()
        vc.to_float(q).to_register()
        assert vc.new_complex64_register(1).var_type is c64
        assert vc.new_complex_register().var_type is c64
        assert vc.new_complex_register(out[0].to_dtype(f64)).var_type is dt.complex128
        vc.new_complex_register(1 + 2j)
        assert vc.to_complex(out[0], 1).var_type is c64
        assert vc.to_complex(1j).var_type is c64
        assert vc.to_complex(q.x.to_dtype(i16)).var_type is dt.complex32
        for bad in ((p, p), (p,), (1, 2), (m, 1)):
            with pytest.raises(ValueError):
                vc.to_vec3(*bad)
        with pytest.raises(TypeError):
            vc.to_vec3("1")
        with pytest.raises(TypeError):
            vc.to_vec3(True)
        with pytest.raises(TypeError):
            vc.to_complex(p)
        with pytest.raises(IndexError):
            vc.to_complex()
        with pytest.raises(ValueError):
            vc.to_complex(1, 2, 3)
        with pytest.raises(TypeError):
            vc.new_register("float")

    compiled(body, [Const[v2], Const[v3], Const[m3], Buff[f32]])


def test_one_real_number_makes_a_real_complex_register():
    lines = statements(compiled(lambda b: vc.new_register(c64, 1, var_name="z"), [Buff[f32]]))
    assert lines == ["vec2 z = vec2(1.0f, 0.0f);"]


def test_raw_glsl():
    def body(x, out):
        tripled = vc.str_to_dtype(f32, f"3.0 * {x.resolve()}", parents=[x])
        out[0] = tripled * 2
        vc.str_to_dtype(f32, f"{out.name}[1]", lexical_unit=True, settable=True)[:] = 2
        gid = vc.global_invocation_id()
        out[2] = vc.str_to_dtype(f32, f"float({gid.x.resolve()})")
        vc.get_builder().append_contents("buf0.data[3] = 7.0;\n")

    many = [Const[m3], Const[m3], Const[m3], Const[m3]]
    for extra in ([], many):
        description = trace(lambda x, out, *_: body(x, out), [Const[f32], Buff[f32], *extra], None)
        assert description.binding_access[-1] == (True, True)
        from .tracing import compile_glsl

        for folded in (False, True):
            source = description.make_source(32, 1, 1, Variant(folded))
            compile_glsl(source)
            assert ("UBO.param0" in source) == bool(extra)
            assert "gl_GlobalInvocationID.x)" not in source or not folded


# ---- shared memory and images --------------------------------------------------------------------


def test_shared_buffers():
    def body(b):
        tile = vc.shared_buffer(f32, 64, "tile")
        other = vc.shared_buffer(v3, 3)
        lid = vc.local_invocation_index()
        tile[lid] = b[lid]
        vc.barrier()
        b[lid] = tile[63 - lid] + other[0].x
        assert tile.binding == -1
        assert tile.shape.name == "ivec4(64, 1, 1, 64)"
        with pytest.raises(IndexError):
            tile[64]
        for bad in (0, -1):
            with pytest.raises(ValueError, match="shared_buffer"):
                vc.shared_buffer(f32, bad)
        for bad in (1.5, "1", True):
            with pytest.raises(TypeError, match="shared_buffer"):
                vc.shared_buffer(f32, bad)

    description = trace(body, [Buff[f32]])
    assert "shared float tile[64];" in description.header
    compiled(body, [Buff[f32]])


def test_images_are_sampled_at_texel_centres():
    def body(a, b, c, out):
        x = vc.global_invocation_id()
        out[0] = a.sample(x.x)
        out[1] = b.sample(x.swizzle("xy"))
        out[2] = c.sample(x, 1)
        out[3] = b.sample(x, out[0].x)
        out[4] = a.sample(2.5)
        with pytest.raises(ValueError):
            b.sample(1)
        with pytest.raises(ValueError):
            c.sample(x.swizzle("xy"))
        with pytest.raises(TypeError):
            a[0]

    text = compiled(body, [Img1[f32], Img2[f32], Img3[f32], Buff[v4]])
    assert (
        "textureLod(tex0, (float(gl_GlobalInvocationID.x) + 0.5f) / float(textureSize(tex0, 0)), 0.0f)"
        in text
    )


def test_unsigned_ids():
    def body(b):
        for value in (
            vc.global_invocation_id(),
            vc.local_invocation_id(),
            vc.workgroup_id(),
            vc.workgroup_size(),
            vc.num_workgroups(),
        ):
            assert value.var_type is dt.uvec3
            b[value.x] = value.y
        for value in (
            vc.local_invocation_index(),
            vc.num_subgroups(),
            vc.subgroup_id(),
            vc.subgroup_size(),
            vc.subgroup_invocation_id(),
        ):
            assert value.var_type is u32
            b[value] = value
        for value in (vc.inf_f32(), vc.ninf_f32(), vc.inf_f64(), vc.ninf_f64(), vc.inf_f16(), vc.ninf_f16()):
            value.to_register()

    compiled(body, [Buff[u32]])


@pytest.mark.parametrize("kind", [u16, i16, f16])
def test_sixteen_bit_arguments(kind):
    def body(b, c):
        b[0] = b[1] + c

    compiled(body, [Buff[kind], Const[kind]])
