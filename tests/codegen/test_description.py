"""Arguments, their layout, golden sources, source lines, and the checker of the IR."""

import dataclasses
import typing

import pytest

import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.codegen.abbreviations import (
    Buff,
    Const,
    Img2,
    Var,
    c64,
    f16,
    f32,
    f64,
    i16,
    i32,
    i64,
    m2,
    m4,
    u32,
    v2,
    v3,
)  # fmt: skip
from vkdispatch.compiler import ir
from vkdispatch.compiler.analyses.verify import verify
from vkdispatch.compiler.forms import Variant

from .tracing import compile_glsl, compiled, statements, trace

GUARD = "    if (any(greaterThanEqual(gl_GlobalInvocationID, PC.exec_count))) return;"


def scale(data, alpha):
    tid = vc.global_invocation_id().x
    data[tid] = data[tid] * alpha


def test_the_readme_kernel():
    source = trace(scale, [Buff[f32], Const[f32]], ["data", "alpha"]).make_source(256, 1, 1)
    assert (
        source
        == f"""#version 450
#extension GL_EXT_scalar_block_layout : require

layout(local_size_x = 256, local_size_y = 1, local_size_z = 1) in;

layout(push_constant, scalar) uniform Arguments {{
    float alpha;
    uvec3 exec_count;
}} PC;

layout(set = 0, binding = 0, scalar) buffer Buffer0 {{ float data[]; }} buf0;  // data

void main() {{
{GUARD}

    uint gid_x = gl_GlobalInvocationID.x;
    buf0.data[gid_x] = buf0.data[gid_x] * PC.alpha;
}}
"""
    )


def test_a_folded_kernel():
    source = trace(scale, [Buff[f32], Const[f32]], ["data", "alpha"]).make_source(
        256, 1, 1, Variant(folded=True)
    )
    compile_glsl(source)
    assert (
        source.split("void main() {\n")[1]
        == """    uvec3 group_count = PC.group_count;
    uint workgroup_index = gl_WorkGroupID.z * gl_NumWorkGroups.y + gl_WorkGroupID.y;
    workgroup_index = workgroup_index * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    if (workgroup_index >= group_count.x * group_count.y * group_count.z) return;
    uint workgroup_row = workgroup_index / group_count.x;
    uvec3 workgroup_id = uvec3(workgroup_index, workgroup_row, workgroup_row);
    workgroup_id.xy %= group_count.xy;
    workgroup_id.z /= group_count.y;
    uvec3 global_id = workgroup_id * gl_WorkGroupSize + gl_LocalInvocationID;
    if (any(greaterThanEqual(global_id, PC.exec_count))) return;

    uint gid_x = global_id.x;
    buf0.data[gid_x] = buf0.data[gid_x] * PC.alpha;
}
"""
    )


def test_a_stencil():
    def body(source, target, width):
        gid = vc.global_invocation_id()
        index = gid.y * width + gid.x
        total = vc.new_float_register(var_name="total")
        for dx in (0, 1, 2):
            total += source[index + dx] * 0.25
        with vc.if_block(vc.all(gid.x > 0, gid.y > 0)):
            target[index] = vc.sqrt(total)

    text = compiled(body, [Buff[f32], Buff[f32], Const[u32]], ["source", "target", "width"])
    assert (
        text
        == f"""void main() {{
{GUARD}

    float total = 0.0f;
    uint gid_y = gl_GlobalInvocationID.y;
    uint gid_x = gl_GlobalInvocationID.x;
    uint t0 = gid_y * PC.width + gid_x;
    total += buf0.data[t0 + 0u] * 0.25f;
    total += buf0.data[t0 + 1u] * 0.25f;
    total += buf0.data[t0 + 2u] * 0.25f;
    if (gid_x > 0u && gid_y > 0u) {{
        buf1.data[t0] = sqrt(total);
    }}
}}
"""
    )


def test_a_reduction_in_shared_memory():
    def body(data, sums):
        tile = vc.shared_buffer(f32, 64, "tile")
        lid = vc.local_invocation_id().x
        tile[lid] = data[vc.global_invocation_id().x]
        stride = vc.new_uint_register(32, var_name="stride")
        with vc.while_block(stride > 0):
            vc.barrier()
            with vc.if_block(lid < stride):
                tile[lid] += tile[lid + stride]
            stride >>= 1
        with vc.if_block(lid == 0):
            sums[vc.workgroup_id().x] = tile[0]

    description = trace(body, [Buff[f32], Buff[f32]], ["data", "sums"], vc.ShaderFlags.NO_EXEC_BOUNDS)
    source = description.make_source(64, 1, 1)
    compile_glsl(source)
    assert (
        source
        == """#version 450
#extension GL_EXT_scalar_block_layout : require

layout(local_size_x = 64, local_size_y = 1, local_size_z = 1) in;

layout(set = 0, binding = 0, scalar) buffer Buffer0 { float data[]; } buf0;  // data
layout(set = 0, binding = 1, scalar) writeonly buffer Buffer1 { float data[]; } buf1;  // sums

shared float tile[64];

void main() {
    uint lid_x = gl_LocalInvocationID.x;
    tile[lid_x] = buf0.data[gl_GlobalInvocationID.x];
    uint stride = 32u;
    while (stride > 0u) {
        barrier();
        if (lid_x < stride) {
            tile[lid_x] += tile[lid_x + stride];
        }
        stride >>= 1u;
    }
    if (lid_x == 0u) {
        buf1.data[gl_WorkGroupID.x] = tile[0];
    }
}
"""
    )


def test_a_complex_butterfly():
    def body(data, angle):
        w = vc.complex_from_euler_angle(angle)
        even, odd = data[0].to_register("even"), (data[1] * w).to_register("odd")
        data[0] = even + odd
        data[1] = even - odd

    text = compiled(body, [Buff[c64], Const[f32]], ["data", "angle"])
    assert (
        text
        == f"""void main() {{
{GUARD}

    vec2 even = buf0.data[0];
    float t0 = cos(PC.angle);
    float t1 = sin(PC.angle);
    vec2 t2 = buf0.data[1];
    vec2 odd = vec2(t2.x * t0 - t2.y * t1, t2.x * t1 + t2.y * t0);
    buf0.data[0] = even + odd;
    buf0.data[1] = even - odd;
}}
"""
    )


def test_large_arguments_go_through_a_uniform_block():
    description = trace(
        lambda data, *matrices: data.__setitem__(0, matrices[0][0][0]), [Buff[f32], Const[m4], Const[m4]]
    )
    assert description.layout().uniform
    assert description.layout(Variant(folded=True)).uniform
    assert description.binding_type_list == [3, 1]
    assert description.binding_access == [(True, False), (False, True)]
    assert description.resource_binding_base == 1
    assert description.pc_size == 0
    assert [member.name for member in description.uniform_structure] == ["param1", "param2", "exec_count"]
    source = description.make_source(64, 1, 1)
    assert "layout(set = 0, binding = 0, scalar) uniform Arguments {" in source
    assert "buf0.data[0] = UBO.param1[0].x;" in source
    compile_glsl(source)


def test_folding_never_changes_the_bindings():
    kinds = [f32] * 27
    description = trace(lambda *args: None, [Const[kind] for kind in kinds])
    assert description.layout().size == 120
    assert description.layout().uniform == description.layout(Variant(folded=True)).uniform is True


# ---- layout --------------------------------------------------------------------------------------


def test_members_need_no_padding():
    kinds = [v3, f64, f16, i64, dt.ihvec3, m2, c64, i16, f32, v2]
    description = trace(
        lambda *args: None, [Const[kind] if n % 2 else Var[kind] for n, kind in enumerate(kinds)]
    )
    layout = description.layout()
    end = 0
    for member in layout.members:
        assert member.offset == end
        assert member.offset % dt.component_type(member.dtype).item_size == 0
        end += member.dtype.item_size
    assert layout.size == -(-end // 4) * 4
    assert layout.exec_offset == layout.offset_of("exec_count")
    assert layout.group_count_offset is None
    folded = description.layout(Variant(folded=True))
    assert folded.group_count_offset == folded.offset_of("group_count")
    with pytest.raises(ValueError, match="no member 'nothing'"):
        layout.offset_of("nothing")


@dataclasses.dataclass(frozen=True)
class Wave:
    frequency: f32
    direction: v3

    def __post_init__(self):
        raise AssertionError("host checks do not run while tracing")


def test_arguments_of_every_kind():
    def body(data, wave, alpha, phase, image):
        assert isinstance(wave, Wave)
        data[0] = wave.frequency * alpha + wave.direction.x + phase + image.sample(vc.to_vec2(1)).x
        data[1] = data.shape.w.to_dtype(f32)

    with vc.shader_context() as context:
        body(
            *context.declare_input_arguments(
                [Buff[f32], Wave, Const[f32], Var[f32], Img2[f32]],
                ["data", "wave", "alpha", "phase", "image"],
                [None, None, 2.0, None, None],
            )
        )
    description = context.get_description("all")
    verify(description.kernel)
    compile_glsl(description.make_source(8, 8, 1))
    infos = {info.name: info for info in description.shader_arg_infos}
    assert [info.arg_type for info in infos.values()] == [
        vc.ArgType.BUFFER, vc.ArgType.CONSTANT_DATACLASS, vc.ArgType.CONSTANT, vc.ArgType.VARIABLE,
        vc.ArgType.IMAGE,
    ]  # fmt: skip
    assert infos["wave"].members == ("wave_frequency", "wave_direction")
    assert infos["wave"].member_dtypes == (f32, v3)
    assert infos["wave"].fields == ("frequency", "direction")
    assert infos["data"].shader_shape_name == "buf0_shape"
    assert infos["alpha"].members == ("alpha",)
    assert (infos["data"].binding, infos["image"].binding) == (0, 1)
    assert description.get_arg_names_and_defaults()[2] == ("alpha", 2.0)
    assert description.binding_type_list == [1, 5]
    for info in infos.values():
        for member, kind in zip(info.members, info.member_dtypes, strict=True):
            assert {m.name: m.dtype for m in description.pc_structure}[member] is kind


@pytest.mark.parametrize(
    "name",
    [
        "float",
        "input",
        "buffer",
        "gl_x",
        "a__b",
        "exec_count",
        "group_count",
        "buf0",
        "sin",
        "Größe",
        "PC",
        "_",
        "__",
    ],
)
def test_awkward_argument_names(name):
    compiled(lambda x, out: out.__setitem__(0, x), [Const[f32], Buff[f32]], [name, "out"])
    compiled(lambda x, out: out.__setitem__(0, x[0]), [Buff[f32], Buff[f32]], [name + "\\", "out"])


T = typing.TypeVar("T")


class Foreign(typing.Generic[T]):
    pass


@dataclasses.dataclass
class NotOfDtypes:
    value: float


@pytest.mark.parametrize("annotation", [f32, int, "Buff[f32]", None, Buff, Buff[int], Buff["f32"], 3])
def test_annotations_without_a_dtype(annotation):
    with pytest.raises(TypeError, match=r"argument 'param0'.*tracing\.py"):
        trace(lambda x: None, [annotation])


@pytest.mark.parametrize(
    "annotation", [Foreign[f32], list[f32], NotOfDtypes, Const[dt.int8], Var[dt.bfloat16], Buff[dt.dtype]]
)
def test_unknown_annotations_are_refused(annotation):
    with pytest.raises(ValueError, match="argument 'param0'"):
        trace(lambda x: None, [annotation])


def test_annotations_are_generic_aliases():
    assert Buff[f32].__origin__ is vc.Buffer
    assert Buff[f32].__args__ == (f32,)
    assert Const is vc.Constant
    assert Var is vc.Variable


def test_both_spellings_of_the_abbreviations():
    from vkdispatch.codegen import abbreviations, abreviations

    names = [name for name in dir(abbreviations) if not name.startswith("_")]
    assert names == [name for name in dir(abreviations) if not name.startswith("_")]
    for name in names:
        assert getattr(abbreviations, name) is getattr(abreviations, name) is getattr(vc, name)


# ---- accesses ------------------------------------------------------------------------------------


def access_of(body, count=2):
    return trace(body, [Buff[f32]] * count).binding_access


def test_read_buffers_are_found_in_every_statement():
    def condition(a, b):
        with vc.if_block(a[0] > 1):
            b[0] = 1

    def loop(a, b):
        with vc.while_block(a[0] > 1):
            b[0] = 1

    def index(a, b):
        b[a[0].to_dtype(u32)] = 1

    def printed(a, b):
        vc.print(a[0])
        b[0] = 1

    for body in (condition, loop, index, printed, lambda a, b: b.__setitem__(0, a[1])):
        assert access_of(body) == [(True, False), (False, True)]
    assert access_of(lambda a, b: None) == [(False, False), (False, False)]

    def in_place(a, b):
        a[0] += 1
        b[0] = 1

    assert access_of(in_place) == [(True, True), (False, True)]

    def marked(a, b):
        a.read_callback()
        b[0].write_callback()

    assert access_of(marked) == [(True, False), (False, True)]


# ---- reuse ---------------------------------------------------------------------------------------


def test_shared_expressions_are_declared_in_the_innermost_common_block():
    def body(b, x):
        with vc.if_block(x > 1):
            b[0] = vc.sin(x * 2)
            b[1] = vc.sin(x * 2)
        with vc.else_block():
            b[2] = vc.cos(x * 3)
        b[3] = vc.cos(x * 3)

    assert statements(compiled(body, [Buff[f32], Const[f32]], ["b", "x"])) == [
        "float t0 = cos(PC.x * 3.0f);",
        "if (PC.x > 1.0f) {",
        "float t1 = sin(PC.x * 2.0f);",
        "buf0.data[0] = t1;",
        "buf0.data[1] = t1;",
        "} else {",
        "buf0.data[2] = t0;",
        "}",
        "buf0.data[3] = t0;",
    ]


def test_loads_before_a_store_keep_their_value():
    def body(b, i):
        big = b[i] + b[i + 1] * 2
        b[0] = big * big
        b[1] = big * big

    lines = statements(compiled(body, [Buff[f32], Const[u32]], ["b", "i"]))
    assert lines[:2] == ["float var0 = buf0.data[PC.i];", "float var1 = buf0.data[PC.i + 1u];"]
    total = "var0 + var1 * 2.0f"
    assert lines[2:4] == [f"float t0 = {total};", "buf0.data[0] = t0 * t0;"]
    assert lines[4:] == [f"float t1 = {total};", "buf0.data[1] = t1 * t1;"]


def test_the_right_side_of_and_is_not_evaluated_early():
    def body(b, i):
        big = b[i] + b[i + 1] + b[i + 2]
        with vc.if_block(vc.all(i < 10, big * big > 1)):
            b[0] = 1

    lines = statements(compiled(body, [Buff[f32], Const[u32]], ["b", "i"]))
    assert not any(line.startswith("float") for line in lines)


def test_conditions_of_loops_are_evaluated_each_time():
    def body(b):
        r = b[0].to_register("r")
        big = r * r + r * 2 + b[0]
        with vc.while_block(big * big < 100):
            r += 1
        with vc.if_block(big * big > 1):
            b[1] = big

    lines = statements(compiled(body, [Buff[f32]]))
    # what is read behind the loop is what there was when Python computed it
    assert lines[:2] == ["float r = buf0.data[0];", "float var0 = r;"]
    value = "r * r + r * 2.0f + buf0.data[0]"
    assert lines[2] == f"while (({value}) * ({value}) < 100.0f) {{"
    assert lines[5] == "float t0 = var0 * var0 + var0 * 2.0f + buf0.data[0];"


def test_repeated_squaring_stays_small():
    def body(b, x):
        value, pure = b[0], x
        for _ in range(40):
            value = value * value + value
            pure = pure * pure + pure
        b[0] = value + pure

    assert len(compiled(body, [Buff[f32], Const[f32]])) < 10_000


def test_deep_expressions_are_cut():
    def body(b, x):
        value, pure = b[0], x
        for i in range(3000):
            value = value + b[i]
            pure = vc.sin(pure) + i
        b[0] = value + pure

    text = compiled(body, [Buff[f32], Const[f32]])
    assert max(len(line) for line in text.splitlines()) < 5000


# ---- source lines --------------------------------------------------------------------------------


def test_every_statement_knows_its_python_line():
    def body(b):
        b[0] = 1  # here
        with vc.if_block(b[0] > 2):  # there
            b[1] = 3

    description = trace(body, [Buff[f32]])
    source = description.shader_source((1, 1, 1))
    first = body.__code__.co_firstlineno
    found = {}
    for number, line in enumerate(source.code.splitlines(), 1):
        found[line.strip()] = source.python_line(number)
    assert len(source.line_map) == len(source.code.splitlines())
    assert (place := found["buf0.data[0] = 1.0f;"]) is not None
    assert (place.file, place.line) == (__file__, first + 1)
    assert found["if (buf0.data[0] > 2.0f) {"].line == first + 2
    assert found["buf0.data[1] = 3.0f;"].line == first + 3
    assert found["#version 450"] is None
    assert source.python_line(0) is source.python_line(10_000) is None


def test_shader_source_text():
    source = trace(scale, [Buff[f32], Const[f32]]).shader_source((4, 2, 1))
    assert repr(source).startswith("// ====== kernel, workgroup_size=(4, 2, 1) ======\n#version 450")
    assert source.numbered().code.startswith("   1: #version 450\n   2: ")
    assert bool(source)


# ---- the checker ---------------------------------------------------------------------------------


def lit(value, kind=f32):
    return ir.Expr(ir.Op.LITERAL, kind, (), value)


REGISTER = ir.Register("r", f32)
R = ir.Expr(ir.Op.REGISTER, f32, (), REGISTER)
OTHER = ir.Expr(ir.Op.REGISTER, f32, (), ir.Register("s", f32))
STORAGE = ir.Storage(0, f32, "b")
B = ir.Expr(ir.Op.ELEMENT, f32, (lit(0, u32),), STORAGE)


@pytest.mark.parametrize(
    "statement",
    [
        ir.Store(R, lit(1, i32)),
        ir.Store(lit(1.0), lit(1.0)),
        ir.Store(R, OTHER),
        ir.Store(R, lit(1, f32)),
        ir.Store(R, lit(True, f32)),
        ir.Store(R, lit(1 << 40, u32)),
        ir.Store(R, lit(2.0), "%"),
        ir.Store(R, ir.Expr(ir.Op.BINARY, f32, (R, lit(1, i32)), "+")),
        ir.Store(R, ir.Expr(ir.Op.BINARY, i32, (R, R), "+")),
        ir.Store(R, ir.Expr(ir.Op.BINARY, f32, (R, R), "&")),
        ir.Store(R, ir.Expr(ir.Op.BINARY, f32, (R, R), "?")),
        ir.Store(R, ir.Expr(ir.Op.UNARY, f32, (R,), "~")),
        ir.Store(R, ir.Expr(ir.Op.COMPONENT, f32, (R,), "x")),
        ir.Store(R, ir.Expr(ir.Op.ELEMENT, f32, (lit(0.0),), STORAGE)),
        ir.Store(R, ir.Expr(ir.Op.ELEMENT, f32, (lit(0, u32),), ir.Storage(1, f32, "c"))),
        ir.Store(R, ir.Expr(ir.Op.ARGUMENT, f32, (), ir.Argument("a", f32))),
        ir.Store(R, ir.Expr(ir.Op.ATOMIC, f32, (B, lit(1.0)), "atomicAdd")),
        ir.Store(R, ir.Expr(ir.Op.CALL, f32, (), "not a name")),
        ir.If(((R, ()),)),
        ir.If(()),
        ir.While(lit(1, i32), ()),
        ir.Declare(ir.Register("t", i32), R),
        ir.Declare(ir.Register("t", v3), ir.Expr(ir.Op.CONSTRUCT, v3, (R, R))),
        ir.Declare(ir.Register("t", dt.bool_), ir.Expr(ir.Op.COMPARE, dt.bool_, (R, lit(1, i32)), "<")),
        ir.Declare(ir.Register("t", dt.bool_), ir.Expr(ir.Op.LOGICAL, dt.bool_, (R, R), "&&")),
        ir.Declare(ir.Register("t", c64), ir.Expr(ir.Op.CONSTRUCT, c64, (R,))),
    ],
)
def test_verify_finds_invalid_programs(statement):
    good = ir.Declare(REGISTER, lit(0.0))
    verify(ir.Kernel("k", (), (STORAGE,), (), (good, ir.Store(R, B)), None))
    with pytest.raises((ValueError, RuntimeError)):
        verify(ir.Kernel("k", (), (STORAGE,), (), (good, statement), None))


def test_buffer_that_another_name_may_write_is_not_readonly() -> None:
    # A call may pass one buffer for both.
    def body(x, y, z, n):
        i = vc.global_invocation_id().x
        y[i] = x[i]
        z[i] = n[i].to_dtype(f32)

    source = trace(body, [Buff[f32], Buff[f32], Buff[f32], Buff[u32]], list("xyzn")).make_source(64, 1, 1)
    compile_glsl(source)
    assert "scalar) buffer Buffer0" in source
    assert "scalar) writeonly buffer Buffer1" in source
    assert "scalar) readonly buffer Buffer3" in source
