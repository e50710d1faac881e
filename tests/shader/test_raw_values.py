"""Values of kernels given as GLSL or SPIR-V: by name and in order, in blocks of any layout."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.compilation.compiler import compile_glsl
from vkdispatch.codegen.abbreviations import (
    Buff,
    Const,
    Img2,
    Img3,
    Var,
    b8,
    c64,
    f32,
    f64,
    i32,
    i64,
    m3,
    u32,
    v2,
    v3,
    v4,
)

HEAD = """#version 450
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
layout(local_size_x = 1) in;
"""


def both(source: str, arguments: Any, **options: Any) -> list[vd.RawKernel]:
    """Return a kernel made of GLSL, and the same made of its SPIR-V."""
    return [
        vd.glsl_kernel(source, arguments, **options),
        vd.spirv_kernel(compile_glsl(source, "test"), arguments, **options),
    ]


def out(size: int) -> vd.Buffer[Any]:
    return vd.asbuffer(np.full(size, -1, np.float32))


# -- layouts

LAYOUTS = {
    "push std430": "layout(push_constant)",
    "push scalar": "layout(push_constant, scalar)",
    "std140": "layout(set = 1, binding = 2, std140)",
    "std430": "layout(binding = 2, std430)",
    "scalar": "layout(binding = 0, scalar)",
    "row_major": "layout(binding = 2, row_major)",
}
EVERYTHING = """
struct Light { vec3 position; float power; vec2 size[2]; };
%s uniform Values {
    float first; bool on; float weights[5]; vec3 direction; float after; mat3 turn; mat3x2 slim[2]; vec2 z;
    layout(row_major) mat2 rows; ivec3 counts[2]; float grid[2][3]; Light lights[2]; uint last;
} values;
layout(binding = 1) buffer Out { float data[]; };
int at = 0;
void put(float x) { data[at++] = x; }
void main() {
    put(values.first); put(values.on ? 1 : 0);
    for (int i = 0; i < 5; i++) put(values.weights[i]);
    for (int i = 0; i < 3; i++) put(values.direction[i]);
    put(values.after);
    for (int c = 0; c < 3; c++) for (int r = 0; r < 3; r++) put(values.turn[c][r]);
    for (int i = 0; i < 2; i++) for (int c = 0; c < 3; c++) for (int r = 0; r < 2; r++)
        put(values.slim[i][c][r]);
    put(values.z.x); put(values.z.y);
    for (int c = 0; c < 2; c++) for (int r = 0; r < 2; r++) put(values.rows[c][r]);
    for (int i = 0; i < 2; i++) for (int k = 0; k < 3; k++) put(values.counts[i][k]);
    for (int i = 0; i < 2; i++) for (int k = 0; k < 3; k++) put(values.grid[i][k]);
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 3; k++) put(values.lights[i].position[k]);
        put(values.lights[i].power);
        for (int k = 0; k < 2; k++) { put(values.lights[i].size[k].x); put(values.lights[i].size[k].y); }
    }
    put(values.last);
}
"""
_LIGHT = {"position": v3, "power": f32, "size": (v2, 2)}
NAMED = {
    "last": u32,  # in another order than the block has
    "first": f32,
    "on": b8,
    "weights": (f32, 5),
    "direction": v3,
    "after": f32,
    "turn": m3,
    "slim": (f32, (2, 3, 2)),
    "z": c64,
    "rows": (v2, 2),
    "counts": (vc.iv3, 2),
    "grid": (f32, (2, 3)),
    "lights": (_LIGHT, 2),
}


def everything(seed: int) -> tuple[dict[str, Any], list[float]]:
    """Return values for all members, and what the code makes of them."""
    rng = np.random.default_rng(seed)

    def numbers(*shape: int) -> Any:
        return rng.integers(-100, 100, shape).astype(np.float32)

    lights = [{"position": numbers(3), "power": float(numbers()), "size": numbers(2, 2)} for _ in range(2)]
    values = {
        "first": float(numbers()),
        "on": bool(seed % 2),
        "weights": numbers(5),
        "direction": numbers(3),
        "after": float(numbers()),
        "turn": numbers(3, 3),
        "slim": numbers(2, 3, 2),
        "z": complex(*numbers(2)),
        "rows": numbers(2, 2),
        "counts": numbers(2, 3).astype(np.int32),
        "grid": numbers(2, 3),
        "lights": lights,
        "last": 4_000_000 + seed,
    }
    flat = {**values, "z": [values["z"].real, values["z"].imag]}
    flat["lights"] = np.concatenate([np.ravel(part) for light in lights for part in light.values()])
    return values, np.concatenate([np.ravel(value) for value in flat.values()]).tolist()


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_every_layout(layout: str) -> None:
    source = HEAD + EVERYTHING % layout
    for kernel in both(source, [("out", Buff[f32], 1), ("values", NAMED)], exec_size=1):
        if kernel.interface.push_constants and kernel.interface.push_constants.size > 256:
            return  # llvmpipe takes 256
        for seed in range(3):
            values, expected = everything(seed)
            data = out(len(expected))
            kernel(data, values)
            assert data.read(0).tolist() == expected


def test_members_as_the_code_has_them() -> None:
    source = HEAD + EVERYTHING % LAYOUTS["std140"]
    for kernel in both(source, [("out", Buff[f32], 1), ("values", dict)], exec_size=1):
        values, expected = everything(5)
        values["z"] = (values["z"].real, values["z"].imag)
        values["on"] = True
        data = out(len(expected))
        kernel(data, values)
        assert data.read(0).tolist() == expected
        values["lights"] = np.array(
            [(light["position"], light["power"], light["size"]) for light in values["lights"]],
            [("position", "f4", 3), ("power", "f4"), ("size", "f4", (2, 2))],
        )
        data = out(len(expected))
        kernel(out=data, values=values)
        assert data.read(0).tolist() == expected


def test_values_in_order_of_a_padded_block() -> None:
    source = f"""{HEAD}
layout(binding = 0, std140) uniform Values {{ float w[3]; mat3 m; vec2 p[2]; float last; }};
layout(binding = 1) buffer Out {{ float data[]; }};
void main() {{
    for (int i = 0; i < 3; i++) data[i] = w[i];
    for (int i = 0; i < 9; i++) data[3 + i] = m[i / 3][i % 3];
    data[12] = p[0].y; data[13] = p[1].x; data[14] = last;
}}"""
    for w in (Const[v3], Var[v3]):
        arguments = {"out": Buff[f32], "w": w, "m": Var[m3], "p": Const[vc.m2], "last": Var[f32]}
        for kernel in both(source, arguments, exec_size=1):
            m = np.arange(9).reshape(3, 3)
            data = out(15)
            kernel(data, (1, 2, 3), m, [[4, 5], [6, 7]], 8)
            assert data.read(0).tolist() == [1, 2, 3, *range(9), 5, 6, 8]
            if w is Const[v3]:
                continue
            graph = vd.CommandGraph()
            kernel(data, graph.bind_var("w"), graph.bind_var("m"), [[4, 5], [6, 7]], 9, graph=graph)
            graph.set_var("w", [7, 8, 9])
            graph.set_var("m", m.T)
            graph.submit()
            assert data.read(0).tolist() == [7, 8, 9, *m.T.ravel(), 5, 6, 9]


@pytest.mark.parametrize("layout", ["layout(push_constant)", "layout(binding = 2)"])
def test_64_bits(layout: str) -> None:
    device = vd.get_context().device_infos[0]
    if not (device.float_64_support and device.int_64_support):
        pytest.skip("the device lacks a type")
    source = f"""{HEAD}
{layout} uniform V {{ int i; double d; int64_t l; f64vec3 v; float f; }};
layout(binding = 1) buffer Out {{ double data[]; }};
void main() {{ data[0] = i; data[1] = d; data[2] = double(l); data[3] = v.z; data[4] = f; }}"""
    members = {"f": f32, "v": vc.dv3, "l": i64, "d": f64, "i": i32}
    for annotation in (members, dict):
        for kernel in both(source, [("out", Buff[f64], 1), ("v", annotation)], exec_size=1):
            data = vd.asbuffer(np.zeros(5))
            kernel(data, {"i": -3, "d": 1e-300, "l": 2**62, "v": (1, 2, 1e300), "f": 0.5})
            assert data.read(0).tolist() == [-3, 1e-300, 2**62, 1e300, 0.5]


# -- names

SIMPLE = f"""{HEAD}
layout(push_constant) uniform Params {{ float alpha; uint count; float beta; }} params;
layout(binding = 0) buffer Data {{ float data[]; }};
void main() {{ data[0] = params.alpha; data[1] = params.count; data[2] = params.beta; }}"""


@dataclasses.dataclass
class Shuffled:
    beta: f32  # type: ignore[valid-type]
    alpha: f32  # type: ignore[valid-type]
    count: u32  # type: ignore[valid-type]


@dataclasses.dataclass
class Otherwise:
    x: f32  # type: ignore[valid-type]
    y: u32  # type: ignore[valid-type]
    z: f32  # type: ignore[valid-type]


@dataclasses.dataclass
class Half:
    beta: f32  # type: ignore[valid-type]
    y: u32  # type: ignore[valid-type]
    z: f32  # type: ignore[valid-type]


def test_dictionaries_and_dataclasses_go_by_name() -> None:
    given = {"count": 100, "beta": -1.5, "alpha": 2.0}
    for annotation in ({"beta": f32, "alpha": Var[f32], "count": Const[u32]}, dict, Shuffled):
        kernel = vd.glsl_kernel(SIMPLE, [("data", Buff[f32]), ("params", annotation)], exec_size=1)
        for value in (given, Shuffled(-1.5, 2.0, 100)):  # type: ignore[arg-type]
            data = out(3)
            kernel(data, value)
            assert data.read(0).tolist() == [2, 100, -1.5]
    in_order = vd.glsl_kernel(SIMPLE, {"data": Buff[f32], "params": Otherwise}, exec_size=1)
    data = out(3)
    in_order(data, Otherwise(2.0, 100, -1.5))  # type: ignore[arg-type]
    assert data.read(0).tolist() == [2, 100, -1.5]
    with pytest.raises(ValueError, match=r"field 'beta' would go to 'alpha' .* by its order: name all"):
        vd.glsl_kernel(SIMPLE, {"data": Buff[f32], "params": Half})


def test_names_beside_values_in_order() -> None:
    arguments = {"data": Buff[f32], "first": Const[f32], "rest": {"count": u32}, "last": Const[f32]}
    data = out(3)
    vd.glsl_kernel(SIMPLE, arguments, exec_size=1)(data, 1, {"count": 2}, 3)
    assert data.read(0).tolist() == [1, 2, 3]


def test_variables_in_dictionaries() -> None:
    kernel = vd.glsl_kernel(SIMPLE, [("data", Buff[f32]), ("params", dict)], exec_size=1)
    data, graph = out(3), vd.CommandGraph()
    kernel(data, {"alpha": graph.bind_var("a"), "count": 7, "beta": graph.bind_var("b")}, graph=graph)
    for a, b in ((1, 2), (3, 4)):
        graph.set_var("a", a)
        graph.set_var("b", b)
        graph.submit()
        assert data.read(0).tolist() == [a, 7, b]
    with pytest.raises(ValueError, match="bind_var needs graph="):
        kernel(data, {"alpha": graph.bind_var("a"), "count": 7, "beta": 1})


def test_structures_by_the_name_of_the_argument() -> None:
    source = f"""{HEAD}
struct P {{ float a; float b; }};
layout(push_constant) uniform Block {{ P one; P two; }};
layout(binding = 0) buffer Out {{ float data[]; }};
void main() {{ data[0] = one.a; data[1] = one.b; data[2] = two.a; data[3] = two.b; }}"""
    for given in ({"two": dict, "one": {"b": f32, "a": f32}}, {"two": {"a": f32, "b": f32}, "one": dict}):
        for kernel in both(source, {"data": Buff[f32], **given}, exec_size=1):
            data = out(4)
            kernel(data, {"a": 3, "b": 4}, {"a": 1, "b": 2})
            assert data.read(0).tolist() == [1, 2, 3, 4]
    nested = {"one": {"a": f32, "b": f32}, "two": {"b": f32, "a": f32}}
    kernel = vd.glsl_kernel(source, {"data": Buff[f32], "all": nested}, exec_size=1)
    data = out(4)
    kernel(data, {"two": {"a": 3, "b": 4}, "one": {"a": 1, "b": 2}})
    assert data.read(0).tolist() == [1, 2, 3, 4]
    with pytest.raises(ValueError, match=r"no value is passed for 'one.b', 'two.a'; there is no 'two.c'"):
        kernel(data, {"two": {"c": 3, "b": 4}, "one": {"a": 1}})
    with pytest.raises(TypeError, match="'two': expected a dictionary or a dataclass instance, got int 5"):
        kernel(data, {"two": 5, "one": {"a": 1, "b": 2}})


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        ({"alpha": f32, "count": u32}, r"has 1 values left \(beta float32\), the arguments have 0"),
        (
            {"alhpa": f32, "count": u32, "beta": f32},
            "no free member 'alhpa'; no value is passed for 'alpha'; its members are alpha float32, count ",
        ),
        (
            {"alpha": u32, "count": u32, "beta": f32},
            "goes to 'alpha' of the push constant block, which is float32",
        ),
        ({"alpha": f32, "count": (u32, 2), "beta": f32}, "goes to 'count' .*, which is uint32"),
        ({}, "expected Buff"),
        ({"alpha": (f32, 0)}, r"'alpha': expected an array as \(dtype, length\)"),
        ({"al pha": f32}, "expected names of members, got 'al pha'"),
    ],
)
def test_names_that_do_not_fit(annotation: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        vd.glsl_kernel(SIMPLE, [("data", Buff[f32]), ("params", annotation)])


def test_bad_calls() -> None:
    kernel = vd.glsl_kernel(SIMPLE, [("data", Buff[f32]), ("params", dict)], exec_size=1, name="simple")
    data = out(3)
    for value, error, text in (
        (
            {"alpha": 1, "count": 2},
            ValueError,
            "no value is passed for 'beta'; its members are alpha, count, beta",
        ),
        ({"alpha": 1, "count": 2, "beta": 3, "x": 4}, ValueError, "there is no 'x'"),
        (
            {"alpha": "a", "count": 2, "beta": 3},
            TypeError,
            "field 'alpha': expected a value of float32, got str 'a'",
        ),
        ({"alpha": 1, "count": -2, "beta": 3}, ValueError, "field 'count': -2 does not fit"),
        (5, TypeError, "expected a dictionary or a dataclass instance, got int 5"),
        (None, TypeError, "expected a dictionary"),
        (Half(1, 2, 3), ValueError, "no value is passed for 'alpha', 'count'"),  # type: ignore[arg-type]
    ):
        with pytest.raises(error, match=text) as caught:
            kernel(data, value)
        assert "simple (test_raw_values.py:" in str(caught.value) and "argument 'params'" in str(caught.value)
    with pytest.raises(ValueError, match="'params' is missing; expected a dictionary of alpha, count, beta"):
        kernel(data)
    arrays = vd.glsl_kernel(
        HEAD + EVERYTHING % LAYOUTS["std140"], [("out", Buff[f32], 1), ("values", dict)], exec_size=1
    )
    values, expected = everything(1)
    values["z"] = (0, 0)
    for name, value, text in (
        ("weights", [1, 2, 3], r"field 'weights': expected numbers of shape \(5,\)"),
        ("lights", values["lights"][:1], "'lights': expected 2 of them, got 1"),
        ("lights", 5, "'lights': expected a sequence of 2, got int 5"),
    ):
        with pytest.raises((ValueError, TypeError), match=text):
            arrays(out(len(expected)), {**values, name: value})


# -- several blocks

SEVERAL = f"""{HEAD}
layout(push_constant) uniform Push {{ float scale; uint count; }} push;
layout(binding = 3, std140) uniform Camera {{ mat3 turn; vec3 position; }} camera;
layout(set = 1, binding = 0) uniform Filter {{ float weights[3]; bool on; }};
layout(binding = 0) buffer Data {{ float data[]; }};
void main() {{
    data[0] = push.scale; data[1] = push.count; data[2] = camera.turn[2][1]; data[3] = camera.position.z;
    data[4] = weights[2]; data[5] = on ? 1 : 0;
}}"""
TURN = np.arange(9).reshape(3, 3)


@dataclasses.dataclass
class Camera:
    turn: m3  # type: ignore[valid-type]
    position: v3  # type: ignore[valid-type]


@pytest.mark.parametrize(
    "arguments",
    [
        [("camera", Camera), ("filter", {"weights": (f32, 3), "on": b8}), ("push", dict)],
        [("camera", dict), ("filter", dict, (1, 0)), ("push", {"count": u32, "scale": f32})],
        [("c", Camera, 3), ("f", dict, "Filter"), ("p", dict, "push")],
        [("c", dict, "Camera"), ("f", dict, "Filter"), ("p", dict)],
    ],
    ids=["named", "as declared", "told", "one left"],
)
def test_several_blocks(arguments: Any) -> None:
    for kernel in both(SEVERAL, [("data", Buff[f32]), *arguments], exec_size=1):
        for step in range(3):
            data = out(6)
            kernel(
                data,
                {"turn": TURN + step, "position": (1, 2, 3 + step)},
                {"weights": [4, 5, 6 + step], "on": step == 1},
                {"scale": 7 + step, "count": 8 + step},
            )
            assert data.read(0).tolist() == [7 + step, 8 + step, 7 + step, 3 + step, 6 + step, step == 1]


def test_several_blocks_of_untrusted_code() -> None:
    arguments = [("data", Buff[f32]), ("camera", Camera), ("weights", Buff[f32], "Filter"), ("push", dict)]
    kernel = vd.glsl_kernel(SEVERAL, arguments, exec_size=1, untrusted=True)
    data, weights = out(6), np.zeros(13, np.float32)
    weights[[8, 9]] = 6, 7
    kernel(data, {"turn": TURN, "position": (1, 2, 3)}, vd.asbuffer(weights), {"scale": 7, "count": 8})
    assert data.read(0)[:5].tolist() == [7, 8, 7, 3, 6]


def test_single_values_of_several_blocks() -> None:
    arguments = [("data", Buff[f32]), ("turn", Var[m3], "Camera"), ("scale", Var[f32]), ("count", Const[u32])]
    arguments += [("position", Const[v3], 3), ("weights", Var[v3], "Filter"), ("on", Const[u32], (1, 0))]
    for kernel in both(SEVERAL, arguments, exec_size=1):
        data, graph = out(6), vd.CommandGraph()
        kernel(data, TURN, 1, 2, (3, 4, 5), (6, 7, 8), 1)
        assert data.read(0).tolist() == [1, 2, 7, 5, 8, 1]
        variables = [graph.bind_var(name) for name in ("turn", "scale", "weights")]
        kernel(data, variables[0], variables[1], 2, (3, 4, 5), variables[2], 0, graph=graph)
        kernel(data, TURN, 1, 2, (3, 4, 5), (6, 7, 8), 1, graph=graph)
        kernel(data, variables[0], variables[1], 9, (3, 4, 5), variables[2], 1, graph=graph)
        graph.set_var("turn", [TURN, TURN + 1])
        graph.set_var("scale", [10, 20])
        graph.set_var("weights", [(1, 2, 3), (4, 5, 6)])
        graph.submit(2)
        assert data.read(0).tolist() == [20, 9, 8, 5, 6, 1]


def test_many_launches_in_one_batch() -> None:
    """Each launch has its own copy of all blocks, however many go to the device at once."""
    source = f"""{HEAD}
layout(push_constant) uniform P {{ uint at; }};
layout(binding = 1) uniform A {{ float a[100]; }};
layout(binding = 2) uniform B {{ float b; }};
layout(binding = 0) buffer Data {{ float data[]; }};
void main() {{ data[at] = a[at % 100] * b; }}"""
    kernel = vd.glsl_kernel(source, {"data": Buff[f32], "p": dict, "a": dict, "b": dict}, exec_size=1)
    a = np.random.default_rng(0).random((331, 100), np.float32)
    data = out(331)
    for at in range(331):
        kernel(data, {"at": at}, {"a": a[at]}, {"b": at})
    expected = a[np.arange(331), np.arange(331) % 100] * np.arange(331, dtype=np.float32)
    assert (data.read(0) == expected).all()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            [("c", Camera), ("scale", Const[f32]), ("count", Const[u32])],
            r"binding 0 \(Filter\) has no argument",
        ),
        ([("c", dict)], r"set 0, binding 3 \(camera\) has no argument; values or a buffer go there"),
        ([("c", dict, 7)], "set 0, binding 7 is no uniform block .* set 0, binding 3 "),
        (
            [("c", dict, "Nope")],
            "there is no 'Nope' among the blocks .* push constant block, the uniform block",
        ),
        ([("c", dict, 0)], "set 0, binding 0 is no uniform block"),
        ([("c", Buff[f32], "push")], "binds nothing called 'push'"),
    ],
)
def test_blocks_that_do_not_fit(arguments: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        vd.glsl_kernel(SEVERAL, [("data", Buff[f32]), *arguments])


def test_limits_of_values() -> None:
    source = f"""{HEAD}
layout(binding = 1) uniform A {{ vec4 a[1024]; }};
layout(binding = 2) uniform B {{ float b; }};
layout(binding = 0) buffer Data {{ float data[]; }};
void main() {{ data[0] = a[1023].w + b; }}"""
    with pytest.raises(ValueError, match=r"take 16400 bytes .* 16384 are possible; bind a buffer"):
        vd.glsl_kernel(source, {"data": Buff[f32], "a": dict, "b": dict})
    kernel = vd.glsl_kernel(source, [("data", Buff[f32]), ("a", Buff[v4], "A"), ("b", dict)], exec_size=1)
    data = out(1)
    kernel(data, vd.asbuffer(np.arange(4096, dtype=np.float32).reshape(1024, 4)).view(v4), {"b": 0.5})
    assert data.read(0).tolist() == [4095.5]
    most = source.replace("+ b", "").replace("layout(binding = 2) uniform B { float b; };", "")
    a = np.random.default_rng(0).random((1024, 4), np.float32)
    vd.glsl_kernel(most, {"data": Buff[f32], "a": dict}, exec_size=1)(data, {"a": a})
    assert data.read(0)[0] == a[1023, 3]


# -- buffers at uniform blocks


def test_buffers_bound_as_uniform_buffers() -> None:
    source = f"""{HEAD}
layout(binding = 0) uniform Table {{ vec4 rows[7]; }};
layout(binding = 1) buffer Data {{ float data[]; }};
layout(push_constant) uniform P {{ uint count; }};
void main() {{ uint i = gl_GlobalInvocationID.x; if (i < count) data[i] = rows[i / 4][i % 4]; }}"""
    table = np.random.default_rng(0).random((9, 1, 4), np.float32)
    for arguments in (
        [("table", Buff[v4]), ("data", Buff[f32]), ("count", Const[u32])],
        [("data", Buff[f32], 1), ("table", Buff[v4], "Table"), ("count", Const[u32])],
    ):
        for kernel in both(source, arguments, exec_size="data.size", name="table"):
            for size in (1, 27, 28):
                buffer, data = vd.asbuffer(table[:, 0]).view(v4), vd.asbuffer(np.zeros(size, np.float32))
                named = {"table": buffer, "data": data, "count": size}
                kernel(**named)
                assert (data.read(0) == table.ravel()[:size]).all()
            graph = vd.CommandGraph()
            kernel(**named, graph=graph)
            buffer.write(2 * table)
            graph.submit()
            assert (data.read(0) == 2 * table.ravel()[:28]).all()
            small = vd.Buffer(6, v4)
            for _ in range(2):  # the second time with a kernel that is built
                with pytest.raises(
                    ValueError, match=r"'table': the buffer has 96 bytes, the uniform block .* 112"
                ):
                    kernel(**{**named, "table": small})


def test_a_uniform_buffer_that_a_kernel_wrote() -> None:
    """What writes it comes before what reads it as uniforms, and what overwrites it after that."""
    source = f"""{HEAD}
layout(binding = 0) uniform Table {{ vec4 first; }};
layout(binding = 1) buffer Data {{ float data[]; }};
void main() {{ data[0] += first.y; }}"""

    @vd.shader("buffer.size")
    def fill(buffer: Buff[f32], value: Const[f32]) -> None:
        buffer[vc.global_invocation_id().x] = value

    kernel = vd.glsl_kernel(source, {"table": Buff[f32], "data": Buff[f32]}, exec_size=1)
    table, data = vd.Buffer(1000, f32), vd.asbuffer(np.zeros(1, np.float32))
    for value in range(50):
        fill(table, value)
        kernel(table, data)
    assert data.read(0).tolist() == [sum(range(50))]


def test_a_head_before_the_last_array() -> None:
    source = f"""{HEAD}
layout(binding = 0) buffer Data {{ uint count; float scale; float data[]; }};
void main() {{ for (uint i = 0; i < count; i++) data[i] *= scale; }}"""
    kernel = vd.glsl_kernel(source, {"data": Buff[f32]}, exec_size=1)
    host = np.arange(9, dtype=np.float32)
    host[:2] = np.array([5], np.uint32).view(np.float32)[0], 3
    data = vd.asbuffer(host)
    kernel(data)
    assert data.read(0)[2:].tolist() == [6, 9, 12, 15, 18, 7, 8]
    with pytest.raises(ValueError, match=r"'data': the buffer has 4 bytes, what precedes .* takes 8"):
        kernel(vd.Buffer(1, f32))


# -- specialization


def test_specialized_sizes() -> None:
    source = f"""{HEAD}
layout(constant_id = 0) const uint SIZE = 3;
layout(constant_id = 1) const bool ON = false;
layout(constant_id = 2) const float HALF = 0.25;
layout(push_constant) uniform P {{ float first; float w[SIZE]; }};
layout(binding = 0) buffer Data {{ float data[]; }};
struct S {{ float inner[SIZE + 1]; float last; }};
shared S held[2];
void main() {{
    held[1].inner[SIZE] = first; held[1].last = 2;
    data[0] = held[1].inner[SIZE] + held[1].last; data[1] = held[1].inner.length();
    for (uint i = 0; i < SIZE; i++) data[2 + i] = ON ? HALF * w[i] : w[i];
}}"""
    for size, on in ((3, False), (5, True), (8, True)):
        values = {"SIZE": size, "ON": on, "HALF": 0.5}
        for kernel in both(source, {"data": Buff[f32], "p": dict}, exec_size=1, specialization=values):
            data, w = out(2 + size), np.arange(1, size + 1)
            kernel(data, {"first": 4, "w": w})
            assert data.read(0).tolist() == [6, size + 1, *(w * (0.5 if on else 1))]
    followed = source.replace("float w[SIZE]; }", "float w[SIZE]; float after; }")
    vd.glsl_kernel(followed, {"data": Buff[f32], "p": dict})
    with pytest.raises(ValueError, match=r"'w' .* ends at byte 24, behind the start of 'after' at 16.*put"):
        vd.glsl_kernel(followed, {"data": Buff[f32], "p": dict}, specialization={"SIZE": 5})


def test_stripped_names() -> None:
    """SPIR-V without debug names: constants and members go by number, and messages say so."""
    source = f"""{HEAD}
layout(constant_id = 4) const int FACTOR = 3;
layout(push_constant) uniform P {{ float alpha; uint count; }};
layout(binding = 0) buffer Data {{ float data[]; }};
void main() {{ data[0] = alpha * FACTOR; data[1] = count; }}"""
    words = np.frombuffer(compile_glsl(source, "named"), np.uint32)
    kept, at = list(words[:5]), 5
    while at < len(words):
        length, opcode = int(words[at]) >> 16, int(words[at]) & 0xFFFF
        if opcode not in (5, 6):
            kept += list(words[at : at + length])
        at += length
    code = np.array(kept, np.uint32).tobytes()
    arguments = {"data": Buff[f32], "alpha": Const[f32], "count": Const[u32]}
    data = out(2)
    vd.spirv_kernel(code, arguments, exec_size=1, specialization={4: 5})(data, 2, 7)
    assert data.read(0).tolist() == [10, 7]
    with pytest.raises(
        ValueError, match="no constant 'FACTOR'; it has 4: the code has no names, so pass ids"
    ):
        vd.spirv_kernel(code, arguments, specialization={"FACTOR": 5})
    with pytest.raises(ValueError, match=r"no free member 'alpha', 'count'.*the code has no names, so pass"):
        vd.spirv_kernel(code, {"data": Buff[f32], "p": {"alpha": f32, "count": u32}})


# -- what Vulkan's rules ask for, and what cannot be bound


@pytest.mark.parametrize(
    ("declared", "used", "text"),
    [
        (
            "layout(binding = 0) uniform samplerBuffer t;",
            "texelFetch(t, 0).x",
            "the texel buffer at .* storage buffer",
        ),
        ("layout(binding = 0, r32f) uniform imageBuffer t;", "imageLoad(t, 0).x", "the texel buffer at"),
        (
            "layout(binding = 0) uniform texture2D t; layout(binding = 1) uniform sampler s;",
            "texture(sampler2D(t, s), vec2(0)).x",
            r"texture without a sampler at set 0, binding 0 \(t\) cannot be bound: declare both as one",
        ),
        (
            "layout(binding = 0) uniform sampler2D t[2];",
            "texture(t[1], vec2(0)).x",
            "the array of sampled images",
        ),
        ("layout(binding = 0) uniform samplerCube t;", "texture(t, vec3(0)).x", "cube or rectangle image"),
        ("layout(binding = 0) buffer T { float x[]; } t[3];", "t[1].x[0]", "array of (storage )?buffers"),
        ("layout(binding = 0) uniform T { float x; } t[3];", "t[1].x", "the array of uniform buffers at"),
        ("layout(binding = 0) uniform sampler2DMS t;", "texelFetch(t, ivec2(0), 0).x", "multisampled image"),
    ],
)
def test_resources_that_cannot_be_bound(declared: str, used: str, text: str) -> None:
    source = f"{HEAD}{declared}\nlayout(binding = 9) buffer O {{ float o; }};\nvoid main() {{ o = {used}; }}"
    for make in (
        lambda a: vd.glsl_kernel(source, a),
        lambda a: vd.spirv_kernel(compile_glsl(source, "x"), a),
    ):
        with pytest.raises(ValueError, match=text):
            make([("o", Buff[f32], 9)])


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        ("buffer Data { float data[]; };", "binding"),
        ("layout(binding = 0) buffer D { float x; }; uniform sampler2D t;", "binding"),
        ("uniform float x;", "non-opaque uniforms outside a block"),
        (
            "layout(input_attachment_index = 0, binding = 0) uniform subpassInput s;",
            "subpass|input_attachment",
        ),
    ],
)
def test_declarations_that_vulkan_refuses(declared: str, text: str) -> None:
    with pytest.raises(vd.ShaderBuildError, match=text):
        vd.glsl_kernel(f"{HEAD}{declared}\nvoid main() {{}}")


def test_images_of_other_axes() -> None:
    source = f"""{HEAD}
layout(binding = 0, r32f) uniform image3D t; layout(binding = 1) buffer O {{ float o; }};
void main() {{ o = imageLoad(t, ivec3(0)).x; }}"""
    vd.glsl_kernel(source, {"t": vc.StorageImg3[f32], "o": Buff[f32]}) if hasattr(vc, "StorageImg3") else None
    with pytest.raises(ValueError, match="a sampled image is passed, and the code has the storage image"):
        vd.glsl_kernel(source, {"t": Img3[f32], "o": Buff[f32]})
    sampled = source.replace(", r32f) uniform image3D", ") uniform sampler3D")
    sampled = sampled.replace("imageLoad(t, ivec3(0))", "texture(t, vec3(0))")
    with pytest.raises(ValueError, match=r"the sampled image at set 0, binding 0 \(t\) has 3 axes"):
        vd.glsl_kernel(sampled, {"t": Img2[f32], "o": Buff[f32]})
    vd.glsl_kernel(sampled, {"t": Img3[f32], "o": Buff[f32]})


def test_buffer_references() -> None:
    source = f"""{HEAD}
#extension GL_EXT_buffer_reference : require
layout(buffer_reference, std430) buffer Ref {{ float x[]; }};
layout(push_constant) uniform P {{ Ref ref; uint count; }};
void main() {{ ref.x[0] = count; }}"""
    with pytest.raises(ValueError, match="buffer_reference"):
        vd.glsl_kernel(source, {"p": dict})


def test_kernels_with_blocks_are_pickled() -> None:
    import pickle

    kernel = vd.glsl_kernel(
        SEVERAL,
        [("data", Buff[f32]), ("camera", Camera), ("filter", dict, "Filter"), ("push", dict)],
        exec_size=1,
    )
    again = pickle.loads(pickle.dumps(kernel))
    data = out(6)
    again(data, Camera(TURN, (1, 2, 3)), {"weights": [4, 5, 6], "on": True}, {"scale": 7, "count": 8})  # type: ignore[arg-type]
    assert data.read(0).tolist() == [7, 8, 7, 3, 6, 1]
