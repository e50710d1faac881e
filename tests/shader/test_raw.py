"""Kernels given as GLSL and SPIR-V: called, recorded, specialised, held against what they declare."""

from __future__ import annotations

import dataclasses
import itertools
import subprocess
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.compilation.compiler import compile_glsl
from vkdispatch.codegen.abbreviations import Buff, Const, Img2, Var, c64, f32, i32, m2, u32, v2, v3, v4
from vkdispatch_native import compile_glsl as compile_glsl_text

HEAD = "#version 450\n#extension GL_EXT_scalar_block_layout : require\n"
SCALE = (
    HEAD
    + """
layout(local_size_x = 64) in;
layout(binding = 0) buffer Data { float data[]; };
layout(push_constant) uniform Values { float alpha; uint count; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < count) data[i] *= alpha;
}
"""
)
SCALE_ARGUMENTS = [("data", Buff[f32]), ("alpha", Var[f32]), ("count", Const[u32])]


def both(source: str, arguments: Any, **options: Any) -> list[vd.RawKernel]:
    """Return a kernel made of GLSL, and the same made of its SPIR-V."""
    return [
        vd.glsl_kernel(source, arguments, **options),
        vd.spirv_kernel(compile_glsl(source, "test"), arguments, **options),
    ]


@pytest.mark.parametrize("kernel", both(SCALE, SCALE_ARGUMENTS, exec_size="data.size"), ids=["glsl", "spirv"])
@pytest.mark.parametrize("size", [1, 63, 64, 65, 1009])
def test_calls(kernel: vd.RawKernel, size: int) -> None:
    host = np.arange(size, dtype=np.float32)
    data = vd.asbuffer(host)
    kernel(data, 2.0, size)
    kernel(data, alpha=0.5, count=size - 1)
    kernel(data, 3.0, count=1, exec_size=1)
    kernel(data, 5.0, 1, workgroups=1)
    expected = host * 2
    expected[:-1] *= 0.5
    expected[0] *= 15
    assert (data.read(0) == expected).all()


@pytest.mark.parametrize("kernel", both(SCALE, SCALE_ARGUMENTS), ids=["glsl", "spirv"])
def test_in_graphs_beside_traced_kernels(kernel: vd.RawKernel) -> None:
    @vd.shader("data.size")
    def add(data: Buff[f32], amount: Var[f32]) -> None:
        i = vc.global_invocation_id().x
        data[i] = data[i] + amount

    data = vd.asbuffer(np.ones(300, np.float32))
    graph = vd.CommandGraph()
    add(data, graph.bind_var("amount"), graph=graph)
    kernel(data, graph.bind_var("alpha"), 300, graph=graph, exec_size=300)
    graph.set_var("amount", [1, 2, 3])
    graph.set_var("alpha", [2, 3, 4])
    graph.submit(3)
    expected = 1.0
    for amount, alpha in ((1, 2), (2, 3), (3, 4)):
        expected = (expected + amount) * alpha
    assert (data.read(0) == expected).all()
    graph.set_var("amount", 0)
    graph.set_var("alpha", 0.5)
    for _ in range(4):
        graph.submit()
    assert (data.read(0) == expected / 16).all()


def test_attributes() -> None:
    kernel = vd.glsl_kernel(SCALE, SCALE_ARGUMENTS, exec_size="data.size", name="halve")
    assert isinstance(kernel, vd.ShaderFunction)
    assert not kernel.ready and kernel.get_src(build=False).code == SCALE
    kernel.build()
    assert kernel.ready and kernel.source == SCALE and kernel.name == "halve"
    assert kernel.bounds is not None and kernel.bounds.local_size == (64, 1, 1)
    assert kernel.plan is not None and kernel.plan.pc_size == 8 and kernel.plan.binding_list == [1]
    assert "halve" in repr(kernel) and "   1: #version" in kernel.get_src(line_numbers=True).code
    description = kernel.shader_description
    assert description.get_arg_names_and_defaults() == [("data", None), ("alpha", None), ("count", None)]
    assert [(member.name, member.offset) for member in description.pc_structure] == [
        ("alpha", 0),
        ("count", 4),
    ]
    assert description.uniform_structure == [] and description.make_source(1, 1, 1) == SCALE
    with pytest.raises(NotImplementedError, match="traced"):
        _ = description.kernel
    shown = vd.spirv_kernel(compile_glsl(SCALE, "x"), SCALE_ARGUMENTS)
    assert shown.name == "main" and "binding 0: storage buffer" in str(shown)


def test_no_arguments_at_all() -> None:
    vd.glsl_kernel("#version 450\nlayout(local_size_x = 8) in; void main() {}", exec_size=5)()


def test_arguments_as_a_dictionary() -> None:
    kernel = vd.glsl_kernel(SCALE, {"data": Buff[f32], "alpha": Const[f32], "count": Const[i32]})
    data = vd.asbuffer(np.ones(5, np.float32))
    kernel(data, 7, 5, exec_size=5)
    assert (data.read(0) == 7).all()


@dataclasses.dataclass
class Pair:
    first: vd.float32  # type: ignore[valid-type]
    second: vd.vec3  # type: ignore[valid-type]


@pytest.mark.parametrize(
    "layout",
    ["layout(push_constant)", "layout(push_constant, scalar)", "layout(binding = 0)", "layout(binding = 2)"],
)
def test_values_go_to_where_the_block_has_them(layout: str) -> None:
    """Layouts std430, scalar and std140; push constants and a uniform block before and after the buffers."""
    source = f"""{HEAD}
layout(local_size_x = 1) in;
struct Inner {{ float first; vec3 second; }};
{layout} uniform Values {{ float a; vec2 d; vec3 b; int c; Inner pair; mat4 m; }} values;
layout(binding = {1 if layout.endswith("0)") else 0}) buffer Out {{ float data[]; }};
void main() {{
    data[0] = values.a; data[1] = values.b.z; data[2] = values.c; data[3] = values.pair.first;
    data[4] = values.pair.second.y; data[5] = values.d.y; data[6] = values.m[1][2]; data[7] = values.m[3][3];
}}
"""
    arguments = [("out", Buff[f32]), ("a", Const[f32]), ("d", Const[c64]), ("b", Var[v3]), ("c", Const[i32])]
    arguments += [("pair", Pair), ("m", Const[vc.m4])]
    matrix = np.arange(16).reshape(4, 4)
    for kernel in both(source, arguments, exec_size=1):
        data = vd.asbuffer(np.zeros(8, np.float32))
        kernel(data, 1.5, 10 + 11j, (2, 3, 4), -5, Pair(6.5, (7, 8, 9)), matrix)  # type: ignore[arg-type]
        assert data.read(0).tolist() == [1.5, 4, -5, 6.5, 8, 11, 6, 15]


@dataclasses.dataclass
class Twice:
    scale: vd.float32  # type: ignore[valid-type]
    pair: Pair


def test_nested_structures() -> None:
    source = f"""{HEAD}
layout(local_size_x = 1) in;
struct Inner {{ float first; vec3 second; }};
struct Outer {{ float scale; Inner pair; }};
layout(push_constant) uniform Values {{ Outer twice; float last; }} values;
layout(binding = 0) buffer Out {{ float data[]; }};
void main() {{
    data[0] = values.twice.scale; data[1] = values.twice.pair.first; data[2] = values.twice.pair.second.z;
    data[3] = values.last;
}}
"""
    for kernel in both(source, [("out", Buff[f32]), ("twice", Twice), ("last", Const[f32])], exec_size=1):
        data = vd.asbuffer(np.zeros(4, np.float32))
        kernel(data, Twice(1.5, Pair(2.5, (3, 4, 5))), 7)  # type: ignore[arg-type]
        assert data.read(0).tolist() == [1.5, 2.5, 5, 7]


def test_bindings_and_sets_of_any_numbers() -> None:
    source = f"""{HEAD}
layout(local_size_x = 32) in;
layout(set = 2, binding = 7) readonly buffer A {{ float a[]; }};
layout(set = 0, binding = 9) writeonly buffer B {{ float b[]; }};
layout(set = 0, binding = 3) readonly buffer C {{ float c[]; }};
void main() {{ uint i = gl_GlobalInvocationID.x; if (i < b.length()) b[i] = a[i] - c[i]; }}
"""
    arguments = [("a", Buff[f32], (2, 7)), ("b", Buff[f32], 9), ("c", Buff[f32], 3)]
    for kernel in both(source, arguments, exec_size="b.size"):
        a, c = np.random.default_rng(0).random((2, 100), np.float32)
        b = vd.Buffer(100, vd.float32)
        kernel(vd.asbuffer(a), b, vd.asbuffer(c))
        assert (b.read(0) == a - c).all()
        access = {
            name: (reads, writes)
            for (reads, writes), name in zip(kernel.shader_description.binding_access, "cba", strict=True)
        }
        assert access == {"a": (True, False), "b": (False, True), "c": (True, False)}


def test_access_saves_barriers() -> None:
    source = f"""{HEAD}
layout(local_size_x = 8) in;
layout(binding = 0) readonly buffer A {{ float a[]; }};
layout(binding = 1) writeonly buffer B {{ float b[]; }};
void main() {{ b[gl_GlobalInvocationID.x] = a[gl_GlobalInvocationID.x] + 1; }}
"""
    kernel = vd.glsl_kernel(source, [("a", Buff[f32]), ("b", Buff[f32])], exec_size=8)
    a = vd.asbuffer(np.zeros(8, np.float32))
    others = [vd.Buffer(8, vd.float32) for _ in range(10)]
    engine = vd.get_context()._native
    kernel(a, others[0])
    vd.queue_wait_idle()
    before = engine.statistics()["barriers"]
    for other in others[1:]:
        kernel(a, other)
    vd.queue_wait_idle()
    assert engine.statistics()["barriers"] - before <= 1
    for first, second in itertools.pairwise(others):
        kernel(first, second)
    assert (others[-1].read(0) == 10).all()


def test_a_buffer_that_the_code_does_not_use() -> None:
    source = SCALE.replace(
        "layout(push", "layout(binding = 1) buffer Unused { float unused[]; };\nlayout(push"
    )
    arguments = [SCALE_ARGUMENTS[0], ("unused", Buff[f32]), *SCALE_ARGUMENTS[1:]]
    data = vd.asbuffer(np.ones(4, np.float32))
    for kernel in both(source, arguments, exec_size=4):
        kernel(data, vd.Buffer(3, vd.float32), 2.0, 4)
    assert (data.read(0) == 4).all()


# -- specialization

SPECIAL = f"""{HEAD}
layout(local_size_x_id = 10, local_size_y_id = 11) in;
layout(constant_id = 0) const int COUNT = 4;
layout(constant_id = 1) const float FACTOR = 0.5;
layout(constant_id = 2) const bool ON = true;
layout(constant_id = 3) const uint SIZE = 2;
layout(binding = 0) buffer Out {{ float data[]; }};
shared float scratch[SIZE * 2];
void main() {{
    if (gl_GlobalInvocationID.xy != uvec2(0)) return;
    data[0] = COUNT; data[1] = FACTOR; data[2] = ON ? 1 : 0; data[3] = scratch.length();
    data[4] = gl_WorkGroupSize.x; data[5] = gl_WorkGroupSize.y; data[6] = gl_NumWorkGroups.x;
}}
"""


def special(kernel: vd.RawKernel, **size: Any) -> list[float]:
    data = vd.asbuffer(np.zeros(7, np.float32))
    kernel(data, **(size or {"exec_size": (100, 3)}))
    values: list[float] = data.read(0).tolist()
    return values


@pytest.mark.parametrize("index", [0, 1], ids=["glsl", "spirv"])
def test_specialization(index: int) -> None:
    arguments = [("out", Buff[f32])]
    kernel = both(SPECIAL, arguments)[index]
    assert special(kernel) == [4, 0.5, 1, 4, 1, 1, 100]
    assert kernel.specialization == {}
    chosen = both(SPECIAL, arguments, specialization={0: -7, "FACTOR": 2.25, 2: False, 10: 16})[index]
    assert special(chosen) == [-7, 2.25, 0, 4, 16, 1, 7]
    again = chosen.specialize({"SIZE": 5, 0: 9, 11: 2})
    assert special(again) == [9, 2.25, 0, 10, 16, 2, 7]
    assert again.bounds is not None and again.bounds.local_size == (16, 2, 1)
    assert special(chosen) == [-7, 2.25, 0, 4, 16, 1, 7]
    sized = both(SPECIAL, arguments, local_size=(25, 2))[index]
    assert special(sized) == [4, 0.5, 1, 4, 25, 2, 4]
    assert special(sized.specialize({10: 50})) == [4, 0.5, 1, 4, 50, 2, 2]
    assert special(sized, workgroups=9)[4:] == [25, 2, 9]


def test_specialization_of_every_type() -> None:
    need = "GL_EXT_shader_explicit_arithmetic_types"
    source = f"""#version 450
#extension {need} : require
layout(constant_id = 0) const double D = 0; layout(constant_id = 1) const int64_t L = 0;
layout(constant_id = 2) const uint64_t U = 0; layout(constant_id = 3) const int16_t H = int16_t(0);
layout(binding = 0) buffer Out {{ double data[]; }};
void main() {{ data[0] = D; data[1] = double(L); data[2] = double(U); data[3] = double(int(H)); }}
"""
    device = vd.get_context().device_infos[0]
    if not (device.float_64_support and device.int_64_support and device.int_16_support):
        pytest.skip("the device lacks a type")
    values = {0: 1e-300, 1: -(2**40), 2: 2**63, 3: -5}
    data = vd.asbuffer(np.zeros(4, np.float64))
    vd.glsl_kernel(source, [("out", Buff[vc.f64])], specialization=values)(data, exec_size=1)
    assert data.read(0).tolist() == list(values.values())


@pytest.mark.parametrize(
    ("values", "error", "text"),
    [
        ({99: 1}, ValueError, r"no constant 99; it has 0 \(COUNT\), 1 \(FACTOR\)"),
        ({"NOPE": 1}, ValueError, "no constant 'NOPE'"),
        ({0: 1.5}, TypeError, r"constant 0 \(COUNT\): expected an int, got 1.5"),
        ({0: 2**31}, ValueError, "does not fit a signed int of 32 bits"),
        ({3: -1}, ValueError, "does not fit an unsigned int"),
        ({1: "x"}, TypeError, "expected a number"),
        ({10: 0}, ValueError, r"workgroup of \(0, 1, 1\)"),
        ([1], TypeError, "expected a dictionary"),
    ],
)
def test_bad_specialization(values: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        vd.glsl_kernel(SPECIAL, [("out", Buff[f32])], specialization=values)
    with pytest.raises(error, match=text):
        vd.glsl_kernel(SPECIAL, [("out", Buff[f32])]).specialize(values)


def test_workgroup_sizes() -> None:
    with pytest.raises(ValueError, match=r"local_size: \(32, 1, 1\) is passed, the code says \(64, 1, 1\)"):
        vd.glsl_kernel(SCALE, SCALE_ARGUMENTS, local_size=32)
    assert vd.glsl_kernel(SCALE, SCALE_ARGUMENTS, local_size=64).local_size == (64, 1, 1)
    with pytest.raises(ValueError, match=r"local_size: .* is passed"):
        vd.glsl_kernel(SPECIAL, [("out", Buff[f32])], local_size=8, specialization={10: 4})
    with pytest.raises(ValueError, match="local_size"):
        special(vd.glsl_kernel(SPECIAL, [("out", Buff[f32])], local_size=(1 << 20)))
    most = vd.get_context().max_workgroup_count[0]
    kernel = vd.glsl_kernel(SPECIAL, [("out", Buff[f32])])
    if most < 2**31:
        with pytest.raises(ValueError, match="at most"):
            special(kernel, workgroups=most + 1)


# -- what does not fit

BUFFER, ALPHA, COUNT = SCALE_ARGUMENTS


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ([ALPHA, COUNT], ValueError, r"storage buffer at set 0, binding 0 \(Data\) has no argument"),
        ([BUFFER, ALPHA], ValueError, r"has 2 values \(alpha float32, count uint32\), the arguments have 1"),
        ([BUFFER, COUNT, ALPHA], ValueError, r"argument 'count' \(Constant of uint32\) goes to 'alpha'"),
        ([BUFFER, ("alpha", Const[v2]), COUNT], ValueError, "'alpha' of the push constant block"),
        ([BUFFER, BUFFER, ALPHA, COUNT], ValueError, "'data' is there twice"),
        ([BUFFER, ("b", Buff[f32]), ALPHA, COUNT], ValueError, "binding 1, where the code declares nothing"),
        ([("data", Buff[f32], 4), ALPHA, COUNT], ValueError, "binding 4, where the code declares nothing"),
        ([("data", Buff[f32], "0"), ALPHA, COUNT], ValueError, "nothing called '0'; it has the storage"),
        ([("data", Buff[f32], -1), ALPHA, COUNT], ValueError, "expected a binding"),
        ([BUFFER, ("alpha", Const[f32], 1), COUNT], ValueError, "binding 1 is no uniform block"),
        (
            [("data", Img2[f32]), ALPHA, COUNT],
            ValueError,
            "a sampled image is passed, and the code has the storage",
        ),
        ([("data", f32), ALPHA, COUNT], TypeError, "expected Buff"),
        ([("data", Buff[int]), ALPHA, COUNT], TypeError, "expected a dtype"),  # type: ignore[type-arg, list-item]
        ([("data", list[int]), ALPHA, COUNT], ValueError, "expected Buff"),
        ([("not a name", Buff[f32]), ALPHA, COUNT], ValueError, "expected a Python name"),
        (["data"], TypeError, r"expected \(name, annotation\)"),
        ("data", TypeError, "expected a list"),
        (5, TypeError, "expected a list"),
    ],
)
def test_arguments_that_do_not_fit(arguments: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        vd.glsl_kernel(SCALE, arguments)


@pytest.mark.parametrize(
    ("declared", "arguments", "text"),
    [
        (
            "layout(binding = 0) buffer A { vec3 a[]; };",
            [("a", Buff[v3])],
            r"16 bytes apart, a vec3 takes 12.*scalar",
        ),
        ("layout(push_constant) uniform P { mat3 a; };", [("a", Const[m2])], "is matrix of 3 vector of 3"),
        ("layout(binding = 0) uniform A { float a; };", [], r"binding 0 \(A\) has no argument; values or a"),
        (
            "layout(binding = 0) uniform A { float a; }; layout(binding = 1) uniform B { float b; };",
            [("a", Const[f32])],
            "say which block it goes to, by name or binding",
        ),
        (
            "layout(binding = 0) uniform sampler2D a;",
            [],
            "sampled image at set 0, binding 0 .* has no argument",
        ),
    ],
)
def test_layouts_that_do_not_fit(declared: str, arguments: Any, text: str) -> None:
    uses = [part for part in ("a[0]", "a", "b") if f" {part.partition('[')[0]}" in declared]
    used = "a[0][0]" if "mat" in declared else "texture(a, vec2(0)).x" if "sampler" in declared else uses[0]
    used = "a[0].x" if "vec3" in declared else "a + b" if " b;" in declared else used
    used = "a" if used == "a[0]" else used
    source = f"{HEAD}{declared}\nlayout(binding = 9) buffer O {{ float o; }};\nvoid main() {{ o = {used}; }}"
    with pytest.raises(ValueError, match=text):
        vd.glsl_kernel(source, [*arguments, ("o", Buff[f32], 9)])


def test_wider_elements_are_reinterpreted() -> None:
    source = HEAD + "layout(binding = 0) buffer A { vec4 a[]; };\nvoid main() { a[1] = vec4(1, 2, 3, 4); }"
    data = vd.asbuffer(np.zeros(8, np.float32))
    vd.glsl_kernel(source, [("a", Buff[f32])])(data, exec_size=1)
    assert data.read(0).tolist() == [0, 0, 0, 0, 1, 2, 3, 4]
    pairs = vd.asbuffer(np.zeros((2, 4), np.float32))
    with pytest.raises(TypeError, match="argument 'a': expected elements of vec4, the buffer has float32"):
        vd.glsl_kernel(source, [("a", Buff[v4])])(pairs, exec_size=1)
    vd.glsl_kernel(source, [("a", Buff[v4])])(pairs.view(vd.vec4), exec_size=1)
    assert pairs.read(0)[1].tolist() == [1, 2, 3, 4]


def test_bad_calls() -> None:
    kernel = vd.glsl_kernel(SCALE, SCALE_ARGUMENTS, name="scale", exec_size="data.size")
    data = vd.asbuffer(np.ones(4, np.float32))
    for args, text in (
        ((data, 1.0), "'count' is missing"),
        ((1, 1.0, 1), "expected a vd.Buffer"),
        ((data, "x", 1), "alpha"),
        ((data, 1.0, -1), "does not fit"),
    ):
        with pytest.raises((ValueError, TypeError), match=text) as caught:
            kernel(*args)
        assert "scale (test_raw.py:" in str(caught.value)
    with pytest.raises(ValueError, match="no launch size"):
        vd.glsl_kernel(SCALE, SCALE_ARGUMENTS)(data, 1.0, 4)
    with pytest.raises(ValueError, match="not both"):
        vd.glsl_kernel(SCALE, SCALE_ARGUMENTS, exec_size=1, workgroups=1)
    kernel(data, 3.0, 4)
    assert (data.read(0) == 3).all()


def test_code_that_does_not_compile() -> None:
    with pytest.raises(vd.ShaderBuildError, match=r"'oops'.*\n.*3.*nonsense") as caught:
        vd.glsl_kernel("#version 450\nvoid main() {\n  nonsense;\n}", name="oops")
    assert caught.value.compiler_log and "nonsense" in str(caught.value.shader_source)
    with pytest.raises(TypeError, match="source: expected GLSL"):
        vd.glsl_kernel(b"#version 450")  # type: ignore[arg-type]
    for bad in (5, ""):
        with pytest.raises(TypeError, match="name"):
            vd.glsl_kernel(SCALE, SCALE_ARGUMENTS, name=bad)  # type: ignore[arg-type]


def test_shared_memory_and_features(monkeypatch: pytest.MonkeyPatch) -> None:
    context = vd.get_context()
    count = context.max_shared_memory // 4 + 1
    source = HEAD + f"shared float s[{count}]; void main() {{ s[gl_LocalInvocationIndex] = 1; }}"
    with pytest.raises(ValueError, match=f"shared arrays take {count * 4} bytes"):
        vd.glsl_kernel(source, exec_size=1)()
    monkeypatch.setattr(context.device_infos[0], "float_64_support", 0)
    source = HEAD + "layout(binding = 0) buffer A { double a; }; void main() { a = a * 2.0lf; }"
    with pytest.raises(NotImplementedError, match="float64"):
        vd.glsl_kernel(source, [("a", Buff[vc.f64])], exec_size=1)(vd.asbuffer(np.ones(1)))


@pytest.mark.parametrize("minor", [0, 1, 2, 3])
def test_versions_of_spirv(monkeypatch: pytest.MonkeyPatch, minor: int) -> None:
    """With 1.6, the size of workgroups is in an execution mode instead of a built-in constant."""
    source = HEAD + (
        "layout(local_size_x_id = 3) in; layout(constant_id = 4) const float step = 1;"
        "layout(binding = 0) buffer A { float a[]; };"
        "void main() { a[gl_GlobalInvocationID.x] += step * gl_WorkGroupSize.x; }"
    )
    kernel = vd.spirv_kernel(
        compile_glsl_text(source, "", minor), [("a", Buff[f32])], "a.size", specialization={3: 5, 4: 0.5}
    )
    assert kernel.interface.version == (1, (0, 3, 5, 6)[minor])
    device = vd.get_context().device_infos[0]
    if minor < 3 or (device.version_major, device.version_minor) >= (1, 3):
        data = vd.asbuffer(np.arange(10, dtype=np.float32))
        kernel(data)
        assert (data.read(0) == np.arange(10) + 2.5).all()
    monkeypatch.setattr(device, "version_minor", 2)
    if minor == 3:
        with pytest.raises(
            NotImplementedError, match=r"SPIR-V 1.6 needs Vulkan 1.3, .* has 1.2; .*vulkan1.2"
        ):
            kernel.specialize({4: 2.0})(vd.asbuffer(np.zeros(10, np.float32)))


def test_kernels_survive_their_context(run_python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = run_python(f"""
import numpy as np, vkdispatch as vd
from vkdispatch.base.context import destroy_context
from vkdispatch.codegen.abbreviations import *
arguments = [("data", Buff[f32]), ("alpha", Const[f32]), ("count", Const[u32])]
kernel = vd.glsl_kernel({SCALE!r}, arguments, "data.size")
assert not vd.is_initialized()
for _ in range(2):
    data = vd.asbuffer(np.ones(9, np.float32))
    kernel(data, 2, 9); kernel(data, 2, 9)
    assert (data.read(0) == 4).all()
    destroy_context()
print("good")
""")
    assert done.stdout.strip() == "good", done.stderr
