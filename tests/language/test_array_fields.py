"""Arrays of fixed size in structures, and structures in local and shared arrays: against NumPy."""

import copy
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.derived_dtypes import structure_of
from vkdispatch.codegen.abbreviations import Buff, Const, c64, f16, f32, i32, u32, v2
from vkdispatch.compiler.analyses.verify import verify
from vkdispatch.shader import building

from .running import need

# mypy: disable-error-code="valid-type, type-arg, name-defined, misc, syntax"
FORMS = ["", "coarse", "addressed", "wide", "addressed,wide", "folded", "checked"]


@dataclass
class Light:
    place: vd.vec3
    power: vd.float32[2]

    def brighten(self, factor: Any) -> None:
        self.power[0] *= factor
        self.power[1] *= factor


@dataclass
class Scene:
    codes: vd.int8[3]
    weights: vd.float32[4]
    table: vd.float32[2, 3]
    flags: vd.bool_[2]
    lights: vd.fixed_array(Light, 2)
    turns: vd.vec2[2]
    halves: vd.float16[3]
    wave: vd.complex64[2]
    count: vd.int32 = 0


LIGHT = np.dtype([("place", "f4", 3), ("power", "f4", 2)], align=True)
SCENE = np.dtype(
    [
        ("codes", "i1", (3,)),
        ("weights", "f4", (4,)),
        ("table", "f4", (2, 3)),
        ("flags", "?", (2,)),
        ("lights", LIGHT, (2,)),
        ("turns", "f4", (2, 2)),
        ("halves", "f2", (3,)),
        ("wave", "c8", (2,)),
        ("count", "i4"),
    ],
    align=True,
)


def scenes(count: int = 7) -> np.ndarray:
    rng = np.random.default_rng(count)
    made = np.zeros(count, SCENE)
    for name in ("codes", "weights", "table", "turns", "halves", "wave", "count"):
        made[name] = rng.integers(-9, 9, made[name].shape)
    made["flags"] = rng.random((count, 2)) > 0.5
    for name in ("place", "power"):
        made["lights"][name] = rng.integers(-9, 9, made["lights"][name].shape)
    return made


def gid() -> Any:
    return vc.global_invocation_id().x


def run(body: Callable[..., Any], *arrays: np.ndarray, check: Any = None, size: Any = 7) -> list[np.ndarray]:
    """Run a kernel on a device and in the interpreter, which must agree; return what the arrays then hold."""
    kernel = vd.shader(size, check=check)(body)
    verify(kernel.shader_description.kernel)
    buffers = [vd.asbuffer(array) for array in arrays]
    kernel(*buffers)
    found = [buffer.read(0) for buffer in buffers]
    hosts = [array.copy() for array in arrays]
    kernel.interpret(*hosts)
    for device, host in zip(found, hosts, strict=True):
        assert_same(device, host)
    return found


def assert_same(found: np.ndarray, expected: np.ndarray) -> None:
    if found.dtype.names is None:
        np.testing.assert_array_equal(found, expected)
    for name in found.dtype.names or ():
        assert_same(found[name], expected[name])


def test_the_layout_is_that_of_numpy() -> None:
    assert structure_of(Scene).host == SCENE
    # for memory, an array is as a vector
    assert vd.Buffer(1, Scene).var_type is vd.Buffer(1, SCENE).var_type
    assert vd.Buffer(1, Scene).read(0).dtype == SCENE
    assert vd.float32[2, 3] is vd.fixed_array(vd.float32, 2, 3) is vd.float32[3][2]
    assert vd.float32[2, 3].name == "float32[2, 3]"
    for made in (structure_of(Scene), vd.Buffer(1, Scene).var_type):
        assert pickle.loads(pickle.dumps(made)) is made


@pytest.mark.parametrize("form", FORMS)
def test_items_of_fields(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    need(f16)
    monkeypatch.setattr(building, "_FORCED", frozenset(form.split(",")) - {"", "checked"})

    def kernel(p: Buff[Scene], q: Buff[Scene], out: Buff[f32]) -> None:
        i = gid()
        q[i] = p[i]
        p[i].codes[i % 3] = 7
        p[i].codes[1] += 1
        p[i].weights[3] = p[i].weights[i % 4] + 1
        for row in range(2):
            for column in vc.range(3):
                p[i].table[row, column] += 10
                p[i].table[row][column] *= 2
        p[i].flags[1] = p[i].flags[0]
        if p[i].count > 0:
            p[i].lights[i % 2].power[1] += 5
        p[i].lights[1].place.y = 3
        p[i].lights[0] = p[i].lights[1]
        p[i].lights[1].brighten(2)
        p[i].turns[1].yx = p[i].turns[0]
        p[i].halves[-1] = p[i].halves[0]
        p[i].wave[i % 2].imag += 1
        s = p[i]
        s.weights[0] = 100
        s.lights[1].power[0] = 9
        w = p[i].weights
        total = 0.0
        for x in w:
            total += x
        out[i] = total + s.weights[0] * 1000 + s.lights[i % 2].power[0] * 10
        q[i].lights[1] = s.lights[1]
        q[i].weights = [1, 2, 3, w[0]]
        q[i].table[1] = p[i].table[0]
        q[i].count = len(w) + s.table.size + s.table.shape[1]

    before = scenes()
    first, second, out = before.copy(), before.copy(), np.zeros(7, np.float32)
    for i, one in enumerate(first):
        one["codes"][i % 3] = 7
        one["codes"][1] += 1
        one["weights"][3] = one["weights"][i % 4] + 1
        one["table"] = (one["table"] + 10) * 2
        one["flags"][1] = one["flags"][0]
        if one["count"] > 0:
            one["lights"][i % 2]["power"][1] += 5
        one["lights"][1]["place"][1] = 3
        one["lights"][0] = one["lights"][1]
        one["lights"][1]["power"] *= 2
        one["turns"][1] = one["turns"][0][::-1]
        one["halves"][2] = one["halves"][0]
        one["wave"][i % 2] += 1j
        copied = one.copy()
        copied["weights"][0], copied["lights"][1]["power"][0] = 100, 9
        out[i] = one["weights"].sum() + 100000 + copied["lights"][i % 2]["power"][0] * 10
        second[i]["lights"][1] = copied["lights"][1]
        second[i]["weights"] = [1, 2, 3, one["weights"][0]]
        second[i]["table"][1] = one["table"][0]
        second[i]["count"] = 4 + 6 + 3
    check = form == "checked"
    found = run(kernel, before, np.zeros(7, SCENE), np.zeros(7, np.float32), check=check)
    for one, expected in zip(found, (first, second, out), strict=True):
        assert_same(one, expected)


def test_whole_structures_are_read_before_they_are_stored() -> None:
    def kernel(p: Buff[Scene]) -> None:
        i = gid()
        p[i], p[i + 3] = p[i + 3], p[i]
        p[i].lights = [p[i].lights[1], p[i].lights[0]]
        p[i].table[:] = [p[i].table[1], p[i].table[0]]
        p[i].lights[0] = Light(p[i].lights[1].place, p[i].weights[1:] if False else [1, p[i].weights[2]])
        s = copy.copy(p[i])
        s.weights[:] = 0
        s.lights[0].power = s.weights[2]
        p[i].count = s.weights[1].to_dtype(vd.int32) + s.lights[0].power[1].to_dtype(vd.int32)
        s[:] = p[i + 3]
        s.table = 1
        p[i + 3] = s

    before = scenes(6)
    expected = before[[3, 4, 5, 0, 1, 2]]
    for one in expected[:3]:
        one["lights"] = one["lights"][::-1].copy()
        one["table"] = one["table"][::-1].copy()
        one["lights"][0]["place"] = one["lights"][1]["place"]
        one["lights"][0]["power"] = 1, one["weights"][2]
        one["count"] = 0
    expected["table"][3:] = 1
    (found,) = run(kernel, before, size=3)
    assert_same(found, expected)


def test_long_fields_are_copied_in_loops() -> None:
    @dataclass
    class Long:
        values: vd.float32[5, 20]
        lights: vd.fixed_array(Light, 40)

    host = np.zeros(3, structure_of(Long).host)
    host["values"] = np.arange(300).reshape(3, 5, 20)
    host["lights"]["power"] = np.arange(240).reshape(3, 40, 2)

    def kernel(p: Buff[Long], out: Buff[f32]) -> None:
        i = gid()
        s = p[i]
        p[i].values[:] = p[(i + 1) % 3].values[4][19]
        p[i].values[2] = s.values[3]
        out[i] = s.lights[39].power[1] + s.values[4, i]
        p[i].lights[:] = Light(vc.to_vec3(1, 2, 3), [out[i], 1])

    kernel_ = vd.shader(3, check="bounds")(kernel)
    expected, out = host.copy(), np.zeros(3, np.float32)
    expected["values"][:] = np.array([199, 299, 99])[:, None, None]
    expected["values"][:, 2] = host["values"][:, 3]
    out[:] = host["lights"]["power"][:, 39, 1] + host["values"][np.arange(3), 4, np.arange(3)]
    expected["lights"]["place"] = (1, 2, 3)
    expected["lights"]["power"][..., 0], expected["lights"]["power"][..., 1] = out[:, None], 1
    # one after the other, as p[i + 1] is read while it may be written
    data, result = host.copy(), np.zeros(3, np.float32)
    for launch in (kernel_.interpret,):
        launch(data, result)
        assert_same(result, out)
        assert_same(data["lights"], expected["lights"])
        assert_same(data["values"][:, 2], expected["values"][:, 2])


@pytest.mark.parametrize("form", FORMS)
def test_local_and_shared_arrays_of_structures(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "_FORCED", frozenset(form.split(",")) - {"", "checked"})

    @dataclass
    class Ray:
        origin: vd.vec3
        light: Light
        length: f32
        hits: i32 = 0

    host = np.zeros(24, structure_of(Ray).host)
    rng = np.random.default_rng(2)
    host["origin"], host["length"] = rng.integers(-9, 9, (24, 3)), rng.integers(1, 9, 24)
    host["light"]["power"], host["hits"] = rng.integers(-9, 9, (24, 2)), np.arange(24)

    def longer(ray: Any, factor: Any) -> Any:
        ray.length *= factor
        return ray.length

    @vd.shader(24, local_size=8, check="bounds" if form == "checked" else False)
    def kernel(p: Buff[Ray], out: Buff[f32]) -> None:
        i, lane = gid(), vc.local_invocation_id().x
        tile = vc.shared_buffer(Ray, (2, 4), "tile")
        rays = vc.local_array(Ray, 4, "rays")
        for k in range(4):
            rays[k] = p[(i + k) % 24]
            rays[k].hits += k
        rays[i % 4].origin.x += 10
        rays[i % 4].light.power[1] = 5
        rays[i % 4].light.brighten(2)
        if rays[i % 4].length > 4:
            rays[(i + 1) % 4] = rays[i % 4]
        else:
            rays[0].origin = rays[0].origin.zyx
        doubled = longer(rays[1], 2)
        tile[lane // 4, lane % 4] = rays[(i + 1) % 4]
        tile[lane // 4, lane % 4].length += 1
        vc.barrier()
        other = tile[1 - lane // 4, 3 - lane % 4]
        best = rays[0]
        for k in vc.range(1, 4):
            if rays[k].length > best.length:
                best[:] = rays[k]
        out[i] = best.length + best.origin.x * 10 + doubled * 100 + tile.size * 1000
        vc.barrier()
        p[i] = other

    expected, out = host.copy(), np.zeros(24, np.float32)
    stored = host.copy()
    for i in range(24):
        rays = host[(i + np.arange(4)) % 24].copy()
        rays["hits"] += np.arange(4)
        rays["origin"][i % 4, 0] += 10
        rays["light"]["power"][i % 4, 1] = 5
        rays["light"]["power"][i % 4] *= 2
        if rays["length"][i % 4] > 4:
            rays[(i + 1) % 4] = rays[i % 4]
        else:
            rays["origin"][0] = rays["origin"][0][::-1].copy()
        stored[i] = rays[(i + 1) % 4]
        stored[i]["length"] += 1
        best = rays[np.argmax(rays["length"])]
        out[i] = best["length"] + best["origin"][0] * 10 + rays[1]["length"] * 200 + 8000
    for i in range(24):
        lane = i % 8
        expected[i] = stored[i - lane + (1 - lane // 4) * 4 + 3 - lane % 4]
    p, device = vd.asbuffer(host), vd.asbuffer(np.zeros(24, np.float32))
    # elements that other workgroups read are not written in place
    if form in ("", "checked"):
        data, result = host.copy(), np.zeros(24, np.float32)
        kernel.interpret(data, result)
        assert_same(result, out)
        assert_same(data, expected)
    kernel(p, device)
    verify(kernel.shader_description.kernel)
    assert_same(device.read(0)[:1], out[:1])


def test_structures_as_arguments() -> None:
    @dataclass
    class Setting:
        weights: vd.float32[4]
        table: vd.int32[2, 3]
        lights: vd.fixed_array(Light, 2)
        flags: vd.bool_[2]
        scale: Const[f32] = 1.0

    def kernel(out: Buff[f32], s: Setting) -> None:
        i = gid()
        total = s.weights[i % 4] * 1000 + s.weights[2]
        for k in vc.range(3):
            total += s.table[i % 2, k] * 10
        light = s.lights[i % 2]
        light.power[0] += 1
        weights = s.weights[:]
        weights[0] = 5
        total += light.power[0] * 0.5 + light.place.y + s.lights[1].power[1] + weights[0] + len(s.weights)
        out[i] = total * s.scale if s.flags[i % 2] else -total

    lights = [Light((1, 2, 3), (4, 5)), Light((6, 7, 8), np.array([9, 10]))]
    s = Setting([1, 2, 3, 4], np.arange(6).reshape(2, 3), lights, (True, False), 2.0)
    expected = []
    for i in range(7):
        total = s.weights[i % 4] * 1000 + s.weights[2] + s.table[i % 2].sum() * 10
        light = lights[i % 2]
        total += (light.power[0] + 1) * 0.5 + light.place[1] + lights[1].power[1] + 5 + 4
        expected.append(total * 2 if i % 2 == 0 else -total)
    for check in (False, True):
        made = vd.shader(7, check=check)(kernel)
        out, host = vd.asbuffer(np.zeros(7, np.float32)), np.zeros(7, np.float32)
        made(out, s)
        made.interpret(host, s)
        assert out.read(0).tolist() == host.tolist() == expected
        for wrong, message in (
            (Setting([1, 2, 3], s.table, lights, s.flags), "'weights': expected 4 of them, got 3"),
            (Setting(1.0, s.table, lights, s.flags), "'weights': expected a sequence of 4, got float"),
            (Setting([1, 2, 3, "x"], s.table, lights, s.flags), r"field 'weights\[3\]': expected a number"),
        ):
            for launch in (made, made.interpret):
                with pytest.raises((TypeError, ValueError), match=message):
                    launch(out, wrong)

    def assigned(out: Buff[f32], s: Setting) -> None:
        s.weights[gid()] = 1

    with pytest.raises(ValueError, match=r"a\[:\] is a copy.*test_array_fields"):
        vd.shader(7)(assigned)


def test_indices_are_checked() -> None:
    @vd.shader(1, check="bounds")
    def field(p: Buff[Scene], at: Const[i32]) -> None:
        p[0].table[1, at] = 1

    @vd.shader(1, check="bounds")
    def local(p: Buff[Scene], at: Const[i32]) -> None:
        a = vc.local_array(f32, (2, 3), "grid")
        a[at, 2] = 1
        p[0].weights[0] = a[1, 2]

    @vd.shader(1, local_size=1, check="bounds")
    def shared(p: Buff[Scene], at: Const[i32]) -> None:
        tile = vc.shared_buffer(Light, 2, "tile")
        tile[0].power[at] = 1
        p[0].weights[0] = tile[0].power[1]

    p = vd.asbuffer(scenes(1))
    for kernel, most, what in (
        (field, 2, r"axis 1 of array 'table' in buffer 'p' of 3"),
        (local, 1, "axis 0 of local array 'grid' of 2"),
        (shared, 1, "the array in shared buffer 'tile_power' of 2"),
    ):
        kernel(p, most)
        for launch in (kernel, kernel.interpret):
            argument = p if launch is kernel else scenes(1)
            for at in (most + 1, -1):
                with pytest.raises(IndexError, match=rf"index {at}\b.* is out of bounds for {what}"):
                    launch(argument, at)


def test_races_are_found_by_item() -> None:
    @vd.shader(4)
    def apart(p: Buff[Scene]) -> None:
        i = gid()
        p[0].weights[i] = p[0].weights[i] + 1

    @vd.shader(3)
    def together(p: Buff[Scene]) -> None:
        i = gid()
        p[0].weights[i] = p[0].weights[i + 1]

    host = scenes(1)
    apart.interpret(host, races=True)
    np.testing.assert_array_equal(host["weights"], scenes(1)["weights"] + 1)
    with pytest.raises(RuntimeError, match="nothing orders the two"):
        together.interpret(host, races=True)


def test_atomics() -> None:
    @dataclass
    class Counts:
        total: u32
        bins: vd.uint32[3]

    def kernel(p: Buff[Counts]) -> None:
        i = gid()
        vc.atomic_add(p[i % 2].bins[i % 3], 1)
        vc.atomic_add(p[0].total, 2)

    host = np.zeros(2, structure_of(Counts).host)
    (found,) = run(kernel, host, size=35)
    for i in range(35):
        host[i % 2]["bins"][i % 3] += 1
    host["total"][0] = 70
    assert_same(found, host)


def test_items_of_many_types() -> None:
    @dataclass
    class Many:
        waves: vd.complex64[2]
        turns: vd.mat3[2]
        pairs: vd.vec2[2, 2]

    def kernel(p: Buff[Many], waves: Buff[c64], pairs: Buff[v2]) -> None:
        i = gid()
        waves[i] = p[i].waves[i % 2] * p[i].waves[1]
        pairs[i] = p[i].pairs[i % 2, 1] + p[i].pairs[1][0]
        p[i].turns[i % 2][1].z = 5
        p[i].pairs[0, i % 2].x += 1

    rng = np.random.default_rng(0)
    host = np.zeros(5, structure_of(Many).host)
    host["waves"] = rng.integers(-9, 9, (5, 2)) + 1j
    host["pairs"] = rng.integers(-9, 9, (5, 2, 2, 2))
    n = np.arange(5)
    waves = host["waves"][n, n % 2] * host["waves"][:, 1]
    pairs = host["pairs"][n, n % 2, 1] + host["pairs"][:, 1, 0]
    expected = host.copy()
    expected["turns"][n, n % 2, 1, 2] = 5
    expected["pairs"][n, 0, n % 2, 0] += 1
    made = vd.shader(5)(kernel)
    p, out = vd.asbuffer(host), vd.Buffer(5, vd.complex64)
    ends = vd.Buffer(5, vd.vec2)
    made(p, out, ends)
    inside, turned, pairs_there = host.copy(), np.zeros(5, np.complex64), np.zeros((5, 2), np.float32)
    made.interpret(inside, turned, pairs_there)
    assert_same(p.read(0), expected)
    assert_same(inside, expected)
    np.testing.assert_array_equal(out.read(0), waves)
    np.testing.assert_array_equal(ends.read(0), pairs)
    np.testing.assert_array_equal(turned, waves)
    np.testing.assert_array_equal(pairs_there, pairs)


REFUSED: list[tuple[Callable[..., Any], type[Exception], str]] = [
    (lambda p: p[0].weights[4], IndexError, "index 4 is out of range for the array weights of 4 elements"),
    (
        lambda p: p[0].table[1, 3],
        IndexError,
        "index 3 is out of range for axis 1 of the array table of 3 elements",
    ),
    (lambda p: p[0].table[0, 1, 2], ValueError, "the array table takes up to 2 indices, got 3"),
    (lambda p: p[0].weights[0.5], TypeError, "must be an integer"),
    (lambda p: p[0].weights[1:2], ValueError, "the only valid slice"),
    (lambda p: setattr(p[0], "weights", [1, 2]), ValueError, "of 4 elements takes no 2 values"),
    (lambda p: p[0].codes.__setitem__(0, 300), ValueError, "300"),
    (lambda p: p[0].lights.__setitem__(0, 1), TypeError, "cannot store a int where there is a Light"),
    (lambda p: setattr(p[0], "table", p[0].weights), ValueError, "takes no array of float32"),
    (lambda p: p[0].weights + 1, TypeError, "the array weights is no number; compute with its items"),
    (lambda p: p[0].weights == p[1].weights, TypeError, "is no number"),
    (lambda p: vc.local_array(f32, 2) == 0, TypeError, "a local array is no number"),
    (lambda p: p[0] == p[1], TypeError, "a Scene is not compared as a whole"),
    (lambda p: p[0].weights.x, AttributeError, r"has no attribute 'x'; its items may: a\[k\]\.x"),
    (lambda p: bool(p[0].weights), ValueError, "has no truth value"),
    (lambda p: vc.new_register(vd.float32[4]), TypeError, "vc.local_array"),
    (lambda p: vc.local_array(Scene, (2, 0)), ValueError, "expected 1 to 65536 elements"),
]


@pytest.mark.parametrize(("use", "error", "message"), REFUSED, ids=[message for _, _, message in REFUSED])
def test_wrong_uses_are_refused(use: Callable[..., Any], error: type[Exception], message: str) -> None:
    def kernel(p: Buff[Scene]) -> None:
        use(p)

    with pytest.raises(error, match=message):
        vd.shader(1)(kernel)


def test_wrong_fields_are_refused() -> None:
    @dataclass
    class Holding:
        data: Buff[f32]

    with pytest.raises(ValueError, match="a structure holds no buffer: pass the buffer as an argument"):
        vd.Buffer(1, Holding)
    for shape in ((), (0,), (-1,)):
        with pytest.raises(ValueError, match="fixed_array: "):
            vd.fixed_array(vd.float32, *shape)
    with pytest.raises(TypeError, match=r"must be an int, got 1\.5"):
        vd.float32[1.5]
    with pytest.raises(TypeError, match="expected a dtype or a dataclass"):
        vd.fixed_array(float, 3)
    with pytest.raises(TypeError, match="make a buffer of float32 with more axes"):
        vd.Buffer(3, vd.float32[4])
    with pytest.raises(TypeError, match=r"Buff\[...\] takes no array such as float32\[4\]"):
        vd.shader(1, arg_type_annotations=[Buff[vd.float32[4]]])(lambda p: None)
