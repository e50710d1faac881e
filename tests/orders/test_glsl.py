"""The model glsl: features of GLSL, and compiler messages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import vkdispatch as vd
from vkdispatch.orders import Accel, Order, OrderBuildError

TILED = """
set_argnames(("a", "b"), "c")
[glsl]
    // a shader of its own: with shared arrays, functions and more
    #define TILE 4
    shared float tile_a[TILE][TILE], tile_b[TILE][TILE];

    float element_a(int i, int j) { return i < a.shape[0] && j < a.shape[1] ? a(i, j) : 0.0; }
    float element_b(int i, int j) { return i < b.shape[0] && j < b.shape[1] ? b(i, j) : 0.0; }

    void main() {
        const ivec2 at = ivec2(gl_GlobalInvocationID.yx), me = ivec2(gl_LocalInvocationID.yx);
        float sum = 0.0;
        for (int k = 0; k < a.shape[1]; k += TILE) {
            tile_a[me.x][me.y] = element_a(at.x, k + me.y);
            tile_b[me.x][me.y] = element_b(k + me.x, at.y);
            barrier();
            for (int n = 0; n < TILE; n++) sum += tile_a[me.x][n] * tile_b[n][me.y];
            barrier();
        }
        if (at.x < c.shape[0] && at.y < c.shape[1]) c(at.x, at.y) = sum;
    }
"""


def test_a_body_with_its_own_main() -> None:
    rng = np.random.default_rng(3)
    a = rng.integers(0, 9, (13, 10)).astype(np.float32)
    b = rng.integers(0, 9, (10, 7)).astype(np.float32)
    c = np.full((13, 7), np.nan, np.float32)
    with Accel(a, b, Order(TILED), c) as accel:
        accel.run((4, 4), (2, 4))
    np.testing.assert_array_equal(c, a @ b)


def test_additional_invocations_do_nothing() -> None:
    count, last = np.zeros((), np.int32), np.zeros((), np.int32)
    text = """
    set_argnames((), ("count", "last"))
    [glsl]
    atomicAdd(count, 1);
    atomicMax(last, int(gl_GlobalInvocationID.x));
    return;
    """
    accel = Accel(Order(text), count, last)
    for workers in ((1,), (777,), (10_007,), (3, 70_001)):
        count[...] = 0
        accel.run(*workers)
        accel.stop()
        assert (count, last) == (np.prod(workers), np.prod(workers) - 1)


def test_arguments_named_like_components() -> None:
    text = """
    set_argnames(("x", "y", "z", "s"), ("r", "w"))
    [glsl]
    uvec4 at = uvec4(gl_GlobalInvocationID, 3);
    vec4 colour = vec4(x(at.x), y ? 1 : 0, z, s);
    if (at.x == 4) { r = colour.r + colour.g; w(at.y, at.z) = colour.b + colour.a + ACCELPY_WORKER_DIM0; }
    """
    x, w, r = np.arange(5, dtype=np.float32), np.zeros((1, 1), np.float32), np.zeros((), np.float32)
    with Accel(x, True, np.float32(0.5), np.int32(2), Order(text), r, w) as accel:
        accel.run(5)
    assert (r, w[0, 0]) == (5, 7.5)


def test_extensions_and_bools() -> None:
    text = """
    set_argnames(("a", "flag"), ("b", "sums"))
    [glsl]
    #extension GL_KHR_shader_subgroup_arithmetic : require
    int i = int(gl_GlobalInvocationID.x);
    bool here = a(i) && !a((i + 1) % a.size);
    b(i) = uint8_t(here || flag);
    int sum = subgroupAdd(1);
    if (subgroupElect()) atomicAdd(sums, sum);
    """
    a = np.array([1, 0, 1, 1, 0, 0, 1], bool)
    for flag in (False, True):
        b, sums = np.zeros(7, bool), np.zeros((), np.int32)
        with Accel(a, flag, Order(text), b, sums) as accel:
            accel.run(7)
        np.testing.assert_array_equal(b, (a & ~np.roll(a, -1)) | flag)
        assert sums == 7


@pytest.mark.parametrize(
    ("body", "line", "said"),
    [
        ("y(0) = foo(1);", 4, "'foo' : no matching overloaded function found"),
        ("y(0) = x(0)\n", 4, "unexpected RIGHT_BRACE"),
        ("\n\n  x(0) = 1;", 6, "can't modify a readonly buffer"),
        ("by = 2;", 4, "readonly"),
        ("y(0, 0) = x(0);", 4, "Too many args in macro y"),
        ("#extension GL_EXT_no_such : require", 4, "GL_EXT_no_such"),
        ("/* an own one:\n*/ void main() {\n  y(0) = z; }", 6, "'z' : undeclared identifier"),
        ("shared float s[4];", 4, "above your own void main"),
    ],
)
def test_messages_show_lines_of_the_order(body: str, line: int, said: str, tmp_path: Path) -> None:
    text = f'set_argnames(("x", "by"), "y")\n[glsl:\n]\n{body}\n[cpp: enable=False]\n'
    path = tmp_path / "task.order"
    path.write_text(text)
    x, y = np.zeros(3, np.float32), np.zeros(3, np.float32)
    for order, label in ((Order(text), "<order>"), (Order(path), str(path))):
        with pytest.raises(OrderBuildError) as caught:
            Accel(x, np.float32(1), order, y)
        message = caught.value.attempts[0].message
        assert f"{label}:{line}: error: " in message, message
        assert said in message
        assert f"    {text.splitlines()[line - 1].strip()}\n" in f"{message}\n"


@pytest.mark.parametrize("name", ["input", "sample", "vec3", "gl_x", "a__b"])
def test_reserved_names_of_glsl_raise(name: str) -> None:
    order = Order(f'set_argnames((), "{name}")\n[glsl]\n')
    with pytest.raises(OrderBuildError, match=f"argument's name {name} is reserved in GLSL"):
        Accel(order, np.zeros(3))


def test_other_invalid_uses_raise() -> None:
    out = np.zeros(3, np.float32)
    with pytest.raises(OrderBuildError, match=r"compile: g\+\+ was named, but this model"):
        Accel(Order("[glsl]\n"), out, compile="g++")
    with pytest.raises(ValueError, match="there is no option 'check'"):
        Accel(Order("[glsl: check=True]\n"), out)
    accel = Accel(Order("[glsl]\n"), out)
    with pytest.raises(
        ValueError, match=r"members, teams: .* are more than 2147483647 workers along an axis"
    ):
        accel.run(2**20, 2**12)
    accel.run(5)
    accel.stop()
    with pytest.raises(OrderBuildError, match=r"workgroups? .*hold|shared arrays take"):
        Accel(Order("[glsl]\nshared float s[1 << 20];\nvoid main() { s[0] = 1.0; }\n"), out)


def test_nothing_is_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    order = '\nset_argnames("x", "y")\n[glsl]\ny(gl_GlobalInvocationID.x) = x(gl_GlobalInvocationID.x) + 3;\n'
    for size in (5, 7):
        x, y = np.arange(size), np.zeros(size, np.int64)
        if not vd.get_devices()[0].int_64_support:
            x, y = x.astype(np.int32), y.astype(np.int32)
        with Accel(x, Order(order), y) as accel:
            accel.run(size)
        np.testing.assert_array_equal(y, x + 3)
        monkeypatch.setattr("vkdispatch.orders.models.glsl.glsl_kernel", None)
