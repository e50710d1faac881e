"""Many dispatches of a kernel as one: which kernels can be taken so, and that results stay as they are."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vkdispatch as vd
from vkdispatch.base.compilation.compiler import compile_glsl
from vkdispatch.base.spirv import opcodes as op
from vkdispatch.base.spirv.module import read_module
from vkdispatch.base.spirv.reflection import reflect
from vkdispatch.base.spirv.repeat import MAX_REPEATS, Repeated, repeat_kernel
from vkdispatch.base.validation import read_valid_module
from vkdispatch.codegen.abbreviations import Buff, Const, f32, u32

HEADER = """#version 450
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_arithmetic : enable
layout(local_size_x = {local}) in;
layout(binding = 0) buffer A {{ float a[]; }};
layout(binding = 1) buffer B {{ uint b[]; }};
layout(binding = 2) readonly buffer C {{ float c[]; }};
layout(push_constant) uniform P {{ uint n; float s; }} pc;
"""
MAIN = "void main() {{ uint i = gl_GlobalInvocationID.x; {} }}"


def module(body: str, local: str = "8", before: str = "") -> bytes:
    """Return the SPIR-V of a kernel over the buffers a, b and c; `body` may be a whole `main`."""
    main = body if "void main" in body else MAIN.format(body)
    return compile_glsl(HEADER.format(local=local) + before + main, "test")


def accepted(code: bytes, fence: bool = True) -> Repeated:
    """Return the repeated kernel, which is valid."""
    made = repeat_kernel(code, fence=fence)
    assert made is not None
    read_valid_module(made.spirv)
    return made


# -- kernels that can be repeated: (body, global code, bindings written, bindings read)

ELEMENTWISE = {
    "in place": ("a[i] = a[i] * 0.5 + 1;", "", {0}, {0}),
    "guarded": ("if (i >= pc.n) return; a[i] += c[i];", "", {0}, {0, 2}),
    "guarded by a length": ("if (i < a.length()) a[i] += 1;", "", {0}, {0}),
    "guarded by a body": ("if (i < pc.n) { b[i] += 2; } else { b[i] ^= 1; }", "", {1}, {1}),
    "neighbours of what is only read": ("a[i] = c[i + 1] - c[b[0] + 3] + a[i];", "", {0}, {0, 1, 2}),
    "two buffers": ("float t = a[i]; a[i] = t + b[i]; b[i] = uint(t);", "", {0, 1}, {0, 1}),
    "written but not read": ("b[i] = i;", "", {1}, set()),
    "signed": ("int j = int(i); a[j] += 1;", "", {0}, {0}),
    "signed vector": ("ivec3 j = ivec3(gl_GlobalInvocationID); a[j.x] += 1;", "", {0}, {0}),
    "vectors": ("uvec3 j = gl_GlobalInvocationID; uvec2 k = j.zx; a[k.y] += 1;", "", {0}, {0}),
    "built of parts": ("uvec4 j = uvec4(pc.n, gl_GlobalInvocationID.yx, 1); a[j.z] += 1;", "", {0}, {0}),
    "the built-in itself": ("a[gl_GlobalInvocationID.x] += 1;", "", {0}, {0}),
    "a function's value": ("b[i] = f(b[i]);", "uint f(uint x) { return x * 3 + 1; }", {1}, {1}),
    "a function that gets the index": ("f(i, 2);", "void f(uint j, float x) { a[j] += x; }", {0}, {0}),
    "a function of a function": (
        "f(i);",
        "void g(const uint j) { a[j] += 1; } void f(uint j) { if (j > 2) g(j); else g(j); }",
        {0},
        {0},
    ),
    "a function that returns the index": (
        "a[f()]++;",
        "uint f() { return gl_GlobalInvocationID.x; }",
        {0},
        {0},
    ),
    "groups and invocations": (
        "uint j = gl_WorkGroupID.x * gl_WorkGroupSize.x + gl_LocalInvocationID.x; a[j] += 1;",
        "",
        {0},
        {0},
    ),
    "invocations and groups": ("a[gl_LocalInvocationIndex + 8 * gl_WorkGroupID.x] += 1;", "", {0}, {0}),
    "vectors of groups": (
        "uvec3 j = gl_WorkGroupID * gl_WorkGroupSize + gl_LocalInvocationID; a[int(j.x)] += 1;",
        "",
        {0},
        {0},
    ),
    "an index in a branch": ("if (pc.n > 3) { uint j = i; a[j] += 1; }", "", {0}, {0}),
    "branches": (
        "switch (b[i] % 3) { case 0: a[i] += 1; break; case 1: a[i] *= 2; default: b[i]++; }",
        "",
        {0, 1},
        {0, 1},
    ),
    "an array of its own": (
        "float t[4]; t[0] = a[i]; t[i % 4] = 3; a[i] = t[0] + t[b[0] % 4];",
        "",
        {0},
        {0, 1},
    ),
    "other built-ins": (
        "a[i] += gl_LocalInvocationID.x + gl_WorkGroupID.x + gl_NumWorkGroups.x + gl_WorkGroupSize.x;",
        "",
        {0},
        {0},
    ),
    "structures": (
        "s[i].x += s[i].y.z + s[i].m[1][0] * s[i].k[2];",
        """struct S { float x; vec3 y; mat2 m; float k[3]; };
        layout(binding = 3) coherent volatile buffer D { uint head; S s[]; };""",
        {3},
        {3},
    ),
    "an inner array": ("t[2][i] += 1;", "layout(binding = 3) buffer D { float t[4][64]; };", {3}, {3}),
    "an image": (
        "a[i] += imageLoad(im, ivec2(i, 0)).x + texture(sm, vec2(0.5)).x;",
        "layout(binding = 4, r32f) uniform readonly image2D im; layout(binding = 5) uniform sampler2D sm;",
        {0},
        {0, 4, 5},
    ),
    "a uniform buffer": ("a[i] += u[1].x;", "layout(binding = 6) uniform U { vec4 u[4]; };", {0}, {0, 6}),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_kernels_are_repeated(name: str) -> None:
    body, before, written, read = ELEMENTWISE[name]
    made = accepted(module(body, before=before))
    assert (made.written, made.read) == (written, read)


# -- kernels that must not be: what they do would come out differently, or nobody knows

SHARED = {
    "a neighbour is read": ("a[i] = a[i + 1];", ""),
    "a neighbour is written": ("a[i] += 1; a[i ^ 1] = 0;", ""),
    "reversed": ("a[pc.n - 1 - i] += 1;", ""),
    "reversed into the other": ("a[i] = c[i]; b[i] = uint(a[pc.n - 1 - i]);", ""),
    "a constant element is read": ("a[i] += a[0];", ""),
    "a constant element is written": ("a[3] = a[3] + 1;", ""),
    "an element that another buffer names": ("a[b[i]] += 1;", ""),
    "along y": ("a[gl_GlobalInvocationID.y] += 1;", ""),
    "within the workgroup": ("a[gl_LocalInvocationID.x] += 1;", ""),
    "the workgroup's": ("a[gl_WorkGroupID.x] += 1;", ""),
    "groups of another size": ("a[gl_WorkGroupID.x * 4 + gl_LocalInvocationID.x] += 1;", ""),
    "groups along y": ("a[gl_WorkGroupID.y * 8 + gl_LocalInvocationID.x] += 1;", ""),
    "a group and no invocation": ("a[gl_WorkGroupID.x * 8 + 1] += 1;", ""),
    "a group and another's invocation": ("a[gl_WorkGroupID.x * 8 + gl_LocalInvocationID.y] += 1;", ""),
    "a group of more": ("a[gl_WorkGroupID.x * 8 + gl_GlobalInvocationID.x] += 1;", ""),
    "the index and a constant": ("a[i + 8] += a[i];", ""),
    "half the index": ("a[i / 2] += 1;", ""),
    "the index as a number": ("a[uint(float(i))] += 1;", ""),
    "the wrong part": ("uvec3 j = gl_GlobalInvocationID.yxz; a[j.x] += 1;", ""),
    "a vector changed in part": ("uvec3 j = gl_GlobalInvocationID; j.x = pc.n; a[j.x] += 1;", ""),
    "a vector changed where": ("uvec3 j = gl_GlobalInvocationID; j[pc.n] = 3; a[j.x] += 1;", ""),
    "part of a vector that is chosen": ("uvec3 j = gl_GlobalInvocationID; a[j[pc.n]] += 1;", ""),
    "two stores to the index": ("uint j = i; if (pc.n > 3) j = 0; a[j] += 1;", ""),
    "an index of one branch": ("uint j; if (pc.n > 3) j = i; a[j] += 1;", ""),
    "an index that is chosen": ("a[pc.n > 3 ? i : 0] += 1;", ""),
    "an index changed by a function": ("uint j = i; f(j); a[j] += 1;", "void f(inout uint j) { j = 0; }"),
    "an index that a function changes": ("f(i);", "void f(uint j) { j /= 2; a[j] += 1; }"),
    "a function that gets another index": ("f(i); f(0);", "void f(uint j) { a[j] += 1; }"),
    "a function that returns another index": (
        "a[f()] += 1;",
        "uint f() { if (pc.n > 3) return 0; return gl_GlobalInvocationID.x; }",
    ),
    "an index from a structure": (
        "J j = J(uvec2(0, i), pc.n); a[j.y] += 1;",
        "struct J { uvec2 x; uint y; };",
    ),
    "a part chosen within the element": ("v[i][b[i]] += 1;", "layout(binding = 3) buffer D { vec4 v[]; };"),
    "a component chosen by the index": ("v[i] += 1;", "layout(binding = 3) buffer D { vec4 v; };"),
    "a loop": ("for (uint k = 0; k < 3; ++k) a[i] += k;", ""),
    "an index changed in a loop": ("for (uint j = i; j < pc.n; j += 4) a[j] += 1;", ""),
    "an atomic": ("atomicAdd(b[0], 1);", ""),
    "an atomic on its own": ("atomicAdd(b[i], 1);", ""),
    "shared memory": ("s[i % 8] = a[i]; a[i] = s[(i + 1) % 8];", "shared float s[8];"),
    "a barrier": ("b[i] += 1; barrier();", ""),
    "a memory barrier": ("b[i] += 1; memoryBarrierBuffer();", ""),
    "a subgroup": ("a[i] += subgroupAdd(a[i]);", ""),
    "a variable of the module": ("g += a[i]; a[i] = g;", "float g = 0;"),
    "a written image": (
        "imageStore(im, ivec2(0, 0), imageLoad(im, ivec2(1, 0)) + a[i]);",
        "layout(binding = 4, r32f) uniform image2D im;",
    ),
    "an atomic on an image": (
        "b[i] = imageAtomicAdd(im, ivec2(0), 1u);",
        "layout(binding = 4, r32ui) uniform uimage2D im;",
    ),
    "one buffer by two names": ("a[i] = d[i + 1];", "layout(binding = 0) buffer D { float d[]; };"),
    "another set": ("d[i] += 1;", "layout(set = 1, binding = 3) buffer D { float d[]; };"),
    "an array of buffers": ("d[1].x[i] += 1;", "layout(binding = 3) buffer D { float x[]; } d[2];"),
    "two arrays of a buffer": ("x[i] = y[i];", "layout(binding = 3) buffer D { float x[8]; float y[8]; };"),
    "the head of a buffer": ("x[i] += k;", "layout(binding = 3) buffer D { float k; float x[]; };"),
    "an address": (
        "Q(uvec2(b[0], b[1])).x = pc.s;",
        """#extension GL_EXT_buffer_reference : require
        #extension GL_EXT_buffer_reference_uvec2 : require
        layout(buffer_reference) buffer Q { float x; };""",
    ),
    "printing": ('debugPrintfEXT("x"); a[i] += 1;', "#extension GL_EXT_debug_printf : require\n"),
    "the clock": ("uvec2 t = clock2x32ARB(); b[i] += t.x;", "#extension GL_ARB_shader_clock : require\n"),
}


@pytest.mark.parametrize("name", SHARED)
def test_other_kernels_are_not(name: str) -> None:
    body, before = SHARED[name]
    assert repeat_kernel(module(body, before=before)) is None


@pytest.mark.parametrize(
    ("local", "taken"),
    [
        ("8", True),
        ("8, local_size_y = 1, local_size_z = 1", True),
        ("8, local_size_x_id = 3", True),
        ("8, local_size_y = 2", False),
        ("8, local_size_z = 2", False),
        ("8, local_size_y_id = 3", False),
        ("8, local_size_z_id = 0", False),
    ],
)
def test_workgroups_lie_along_x(local: str, taken: bool) -> None:
    assert (repeat_kernel(module("a[i] += 1;", local)) is not None) is taken


@pytest.mark.parametrize(("size", "taken"), [("gl_WorkGroupSize.x", True), ("8", False), ("0", False)])
def test_groups_of_a_size_that_is_replaced(size: str, taken: bool) -> None:
    body = f"a[gl_WorkGroupID.x * {size} + gl_LocalInvocationID.x] += 1;"
    assert (repeat_kernel(module(body, "8, local_size_x_id = 3")) is not None) is taken


def test_a_kernel_that_writes_nothing_is_left_alone() -> None:
    assert repeat_kernel(module("float x = a[i];")) is None
    assert repeat_kernel(module("void main() {}")) is None


def test_the_constant_takes_a_free_id() -> None:
    before = "layout(constant_id = 7) const float K = 3;"
    made = accepted(module("a[i] += K;", "8, local_size_x_id = 2", before))
    assert made.count_id == 8
    declared = reflect(read_module(made.spirv)).spec_constants
    assert {number: constant.default for number, constant in declared.items()} == {2: 8, 7: 3.0, 8: 1}
    assert not declared[8].signed and declared[8].width == 32


def test_old_blocks_are_storage_buffers() -> None:
    """Modules for the first Vulkan have their buffers among uniform blocks, set apart by a decoration."""
    parsed = read_module(module("a[i] = a[i] * 2 + c[i + 1];"))
    kept = [i.operands[1] for i in parsed.of(op.VARIABLE) if i.operands[2] == 1]
    blocks = {i.operands[2] for i in parsed.of(op.TYPE_POINTER) if i.operands[1] == 12}
    words = parsed.words[:5].tolist()
    words[1] = 0x10300
    for instruction in parsed.instructions:
        operands = list(instruction.operands)
        match instruction.opcode, operands:
            case op.ENTRY_POINT, _:
                operands[4:] = kept
            case op.DECORATE, [int(named), 2] if named in blocks:
                operands[1] = 3
            case op.TYPE_POINTER, [_, 12, _]:
                operands[1] = 2
            case op.VARIABLE, [_, _, 12]:
                operands[2] = 2
        words += [len(operands) + 1 << 16 | instruction.opcode, *operands]
    old = np.array(words, np.uint32).tobytes()
    assert [r.kind for r in reflect(read_module(old)).resources] == ["storage buffer"] * 3
    made = accepted(old)
    assert (made.written, made.read) == ({0}, {0, 2})


def test_invalid_modules_are_refused() -> None:
    with pytest.raises(TypeError, match="expected the bytes of a SPIR-V module"):
        repeat_kernel("x")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no SPIR-V module"):
        repeat_kernel(bytes(40))
    with pytest.raises(ValueError, match="no compute entry point 'other'"):
        repeat_kernel(module("a[i] += 1;"), "other")


def test_modules_with_changed_words_are_harmless() -> None:
    """A broken module is refused, left alone, or made into a module again; nothing else comes of it."""
    code = np.frombuffer(
        module(*ELEMENTWISE["structures"][:1], before=ELEMENTWISE["structures"][1]), np.uint32
    )
    choice = random.Random(5)
    outcomes = set()
    for _ in range(400):
        words = code.copy()
        for _ in range(choice.randint(1, 2)):
            words[choice.randrange(len(words))] = choice.choice(
                [choice.randrange(150), choice.randrange(2**32)]
            )
        try:
            read_valid_module(words.tobytes())
            made = repeat_kernel(words.tobytes())
        except ValueError:
            outcomes.add("refused")
            continue
        outcomes.add("left alone" if made is None else "made")
        if made is not None:
            read_valid_module(made.spirv)
    assert outcomes == {"refused", "left alone", "made"}


def test_long_ways_end() -> None:
    """Values that come a long way, or many ways, are given up, not followed for ever."""
    names = [f"j{k}" for k in range(300)]
    steps = "".join(f"uint {b} = {a};" for a, b in zip(["i", *names], names, strict=False))
    assert repeat_kernel(module(f"{steps} a[{names[-1]}] += 1;")) is None
    levels = "void f0(uint j) { a[j] += 1; }" + "".join(
        f"void f{k}(uint j) {{ f{k - 1}(j); f{k - 1}(j); }}" for k in range(1, 18)
    )
    assert repeat_kernel(module("f17(i);", before=levels)) is not None


# -- results


class Runs:
    """A kernel and the repeated one, on arrays of a, b and c."""

    def __init__(self, code: bytes, size: int, rounds: int, fence: bool) -> None:
        made = accepted(code, fence)
        arguments = [
            ("a", Buff[f32]),
            ("b", Buff[u32]),
            ("c", Buff[f32]),
            ("n", Const[u32]),
            ("s", Const[f32]),
        ]
        self.rounds = rounds
        self.plain = vd.spirv_kernel(code, arguments, exec_size=size)
        self.once = vd.spirv_kernel(
            made.spirv, arguments, exec_size=size, specialization={made.count_id: rounds}
        )

    def results(
        self, arrays: list[np.ndarray[Any, Any]], n: int, s: float
    ) -> list[list[np.ndarray[Any, Any]]]:
        """Return what a and b hold after many dispatches, and after one."""
        outcomes = []
        for kernel, times in ((self.plain, self.rounds), (self.once, 1)):
            buffers = [vd.Buffer(array.shape, array.dtype) for array in arrays]
            for buffer, array in zip(buffers, arrays, strict=True):
                buffer.write(array)
            for _ in range(times):
                kernel(*buffers, n, s)
            outcomes.append([buffer.read(0) for buffer in buffers[:2]])
        return outcomes


def arrays(size: int) -> list[np.ndarray[Any, Any]]:
    generator = np.random.default_rng(7)
    first = generator.normal(size=size).astype(np.float32)
    # Room for neighbours of the last element.
    return [first, generator.integers(0, 2**32, size, np.uint32), np.arange(size + 8, dtype=np.float32)]


ALL = """void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= pc.n) return;
    [[branch]] if (b[i] % 3 == 0) { a[i] = a[i] * pc.s + c[i + 1]; } else { a[i] = sin(a[i]) - c[0]; }
    b[i] = b[i] * 1664525u + floatBitsToUint(a[i]);
}"""


@pytest.mark.parametrize("fence", [True, False])
@pytest.mark.parametrize(
    ("size", "rounds"), [(1, 1), (7, 2), (13, 3), (64, 100), (1000, 17), (8, MAX_REPEATS)]
)
def test_a_repeated_kernel_does_what_dispatches_do(size: int, rounds: int, fence: bool) -> None:
    given_arrays = arrays(size)
    runs = Runs(module(ALL), size, rounds, fence)
    plain, once = runs.results(given_arrays, size - size // 5, 0.75)
    for one, other in zip(plain, once, strict=True):
        np.testing.assert_array_equal(one.view(np.uint32), other.view(np.uint32))
    assert not np.array_equal(once[0], given_arrays[0])
    end = size - size // 5
    np.testing.assert_array_equal(once[0][end:], given_arrays[0][end:])


@pytest.mark.parametrize("fence", [True, False])
@pytest.mark.parametrize("rounds", [2, 3, 4, 7, 100])
def test_every_round_is_rounded(rounds: int, fence: bool) -> None:
    """2**24 + 1 is 2**24 as float32, however often: a compiler that sums the ones sees more."""
    start = [np.full(16, 2**24, np.float32), np.zeros(16, np.uint32), np.zeros(16, np.float32)]
    _, (a, _) = Runs(module("a[i] = a[i] + 1.0;"), 16, rounds, fence).results(start, 16, 1.0)
    np.testing.assert_array_equal(a, 2**24)


def test_without_a_value_there_is_one_round() -> None:
    source = "layout(local_size_x = 8) in; layout(binding = 0) buffer B { uint b[]; };"
    code = compile_glsl(f"#version 450\n{source} {MAIN.format('b[i] += 1;')}", "test")
    kernel = vd.spirv_kernel(accepted(code).spirv, [("b", Buff[u32])], exec_size=8)
    counts = vd.Buffer((8,), np.uint32)
    counts.write(np.zeros(8, np.uint32))
    kernel(counts)
    np.testing.assert_array_equal(counts.read(0), 1)


# -- kernels at random


class Writer:
    """Writes kernels that work element by element, with the index by several ways."""

    INDICES = ("i", "int(i)", "gl_GlobalInvocationID.x", "id.x", "own()", "copy", "sum")
    BEFORE = (
        "uint own() { return gl_GlobalInvocationID.x; }"
        "float half_of(float x) { return x * 0.5; }"
        "void add(uint j, float x) { a[j] = a[j] + x; }"
    )

    def __init__(self, seed: int) -> None:
        self.choice = random.Random(seed)

    def index(self) -> str:
        return self.choice.choice(self.INDICES)

    def real(self, depth: int) -> str:
        if depth == 0:
            return self.choice.choice(
                [f"a[{self.index()}]", "pc.s", "t", "c[i + 2]", "c[b[i] % 8]", "1.0", "0.3", "float(i)"]
            )
        one, other = self.real(depth - 1), self.real(depth - 1)
        return self.choice.choice(
            [
                f"({one} {self.choice.choice('+-*')} {other})",
                f"half_of({one})",
                f"min({one}, {other})",
                f"({self.truth(depth - 1)} ? {one} : {other})",
            ]
        )

    def whole(self, depth: int) -> str:
        if depth == 0:
            return self.choice.choice([f"b[{self.index()}]", "i", "pc.n", "3u", "u"])
        one, other = self.whole(depth - 1), self.whole(depth - 1)
        operator = self.choice.choice("+*^&|-")
        return self.choice.choice([f"({one} {operator} {other})", f"({one} >> 3)", f"bitCount({one})"])

    def truth(self, depth: int) -> str:
        if self.choice.random() < 0.5:
            return f"({self.real(depth)} < {self.real(depth)})"
        return f"({self.whole(depth)} % 3 == 1)"

    def statement(self, depth: int) -> str:
        kind = self.choice.randrange(7 if depth else 5)
        if kind == 0:
            return f"a[{self.index()}] = clamp({self.real(2)}, -1e6, 1e6);"
        if kind == 1:
            return f"b[{self.index()}] = {self.whole(2)};"
        if kind == 2:
            return f"t = clamp({self.real(1)}, -1e3, 1e3);"
        if kind == 3:
            return f"add({self.index()}, 0.25);"
        if kind == 4:
            return f"u = {self.whole(1)};"
        if kind == 5:
            return f"if ({self.truth(1)}) {{ {self.block(depth - 1)} }}"
        last = "return;" if self.choice.random() < 0.3 else ""
        return f"if ({self.truth(1)}) {{ {self.block(depth - 1)} {last} }} else {{ {self.block(depth - 1)} }}"

    def block(self, depth: int) -> str:
        return " ".join(self.statement(depth) for _ in range(self.choice.randint(1, 4)))

    def kernel(self, extra: str = "") -> bytes:
        guard = "if (i >= pc.n) return;" if self.choice.random() < 0.7 else ""
        start = "uvec3 id = gl_GlobalInvocationID; uint copy = id.x; float t = 1; uint u = 2;"
        start += "uint sum = gl_WorkGroupID.x * 8 + gl_LocalInvocationID.x;"
        return module(
            f"{guard} {start} {self.block(2)} {extra} a[i] = half_of(a[i]) + t;", before=self.BEFORE
        )


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 3, 9]), st.booleans())
def test_random_kernels(seed: int, rounds: int, fence: bool) -> None:
    plain, once = Runs(Writer(seed).kernel(), 37, rounds, fence).results(arrays(37), 33, 0.75)
    for one, other in zip(plain, once, strict=True):
        np.testing.assert_array_equal(one.view(np.uint32), other.view(np.uint32))


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["a[i + 1]", "a[0]", "a[b[i]]", "a[copy / 2]", "a[gl_LocalInvocationID.x]", "a[u]"]),
    st.sampled_from(["t = {};", "{} = t;", "if (pc.n > 99) t += {};", "add(copy, {});"]),
)
def test_random_kernels_with_one_bad_access(seed: int, access: str, statement: str) -> None:
    assert repeat_kernel(Writer(seed).kernel(statement.format(access))) is None
