"""Buffers of structures: their layout, what kernels do with fields and whole elements, what is refused."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.derived_dtypes import structure_of
from vkdispatch.codegen.abbreviations import (
    Buff,
    Const,
    b8,
    bf16,
    c64,
    f16,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    iv3,
    m3,
    u8,
    u32,
    v2,
    v3,
)
from vkdispatch.compiler.analyses.verify import verify
from vkdispatch.shader import building

from .running import need


@dataclass
class Particle:
    position: v3
    mass: f32
    speed: v2
    kind: i32 = 0

    def momentum(self) -> Any:
        return self.speed * self.mass

    @property
    def weight(self) -> Any:
        return self.mass * 10

    def advance(self, step: Any) -> None:
        self.position.xy = self.position.xy + self.speed * step
        self.kind += 1


HOST = np.dtype([("position", "f4", 3), ("mass", "f4"), ("speed", "f4", 2), ("kind", "i4")])
FORMS = ["", "coarse", "addressed", "wide", "addressed,wide", "folded", "checked"]


def particles(count: int = 7) -> np.ndarray:
    rng = np.random.default_rng(count)
    made = np.zeros(count, HOST)
    made["position"] = rng.integers(-9, 9, (count, 3))
    made["mass"] = rng.integers(1, 9, count)
    made["speed"] = rng.integers(-9, 9, (count, 2))
    made["kind"] = np.arange(count)
    return made


def gid() -> Any:
    return vc.global_invocation_id().x


def run(
    body: Callable[..., Any], *arrays: np.ndarray, check: Any = None, size: Any = None
) -> list[np.ndarray]:
    """Run a kernel on a device and in the interpreter; both must agree, and what the arrays then hold."""
    kernel = vd.shader(size or (lambda args: args.p.size), check=check)(body)
    verify(kernel.shader_description.kernel)
    buffers = [vd.asbuffer(array) for array in arrays]
    kernel(*buffers)
    found = [buffer.read(0) for buffer in buffers]
    hosts = [array.copy() for array in arrays]
    kernel.interpret(*hosts)
    for device, host in zip(found, hosts, strict=True):
        assert np.array_equal(device, host.astype(device.dtype)), (device, host)
    return found


# ---- layout --------------------------------------------------------------------------------------


@dataclass
class Inner:
    small: i8
    large: f64


@dataclass
class Mixed:
    flag: b8
    real: f32
    inner: Inner
    short: i16
    byte: u8
    wave: c64
    turn: m3
    half: f16
    long: i64
    where: iv3


MIXED = np.dtype(
    [
        ("flag", "?"),
        ("real", "f4"),
        ("inner", np.dtype([("small", "i1"), ("large", "f8")], align=True)),
        ("short", "i2"),
        ("byte", "u1"),
        ("wave", "c8"),
        ("turn", "f4", (3, 3)),
        ("half", "f2"),
        ("long", "i8"),
        ("where", "i4", 3),
    ],
    align=True,
)


def mixed(count: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    made = np.zeros(count, MIXED)
    made["flag"] = rng.integers(0, 2, count)
    made["inner"]["small"] = rng.integers(-100, 100, count)
    made["inner"]["large"] = rng.random(count)
    for name in ("real", "half"):
        made[name] = rng.integers(-9, 9, count)
    for name in ("short", "byte", "long"):
        made[name] = rng.integers(0, 100, count)
    made["wave"] = rng.random(count) + 1j
    made["turn"] = rng.random((count, 3, 3))
    made["where"] = rng.integers(0, 9, (count, 3))
    return made


def test_the_layout_is_that_of_numpy() -> None:
    assert structure_of(Mixed).host == MIXED
    assert structure_of(Particle).host == HOST
    assert structure_of(Mixed).item_size == MIXED.itemsize
    # two of the same fields are one
    assert vd.Buffer(3, Particle).var_type is vd.Buffer(2, HOST).var_type is structure_of(Particle)


@pytest.mark.parametrize("form", FORMS)
def test_every_kind_of_field(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (f64, f16, i64, i16):
        need(kind)
    monkeypatch.setattr(building, "_FORCED", frozenset(form.split(",")) - {"", "checked"})

    def kernel(p: Buff[Mixed], q: Buff[Mixed]) -> None:
        i = gid()
        q[i] = p[i]
        q[i].flag = p[i].real > 0
        q[i].inner.small = p[i].inner.small + 100
        q[i].inner.large *= 2
        q[i].byte += 200
        q[i].wave = p[i].wave + p[i].wave
        q[i].turn[1].z = p[i].real
        q[i].where.zx = p[i].where.xy

    before = mixed(50)
    expected = before.copy()
    expected["flag"] = before["real"] > 0
    expected["inner"]["small"] = (before["inner"]["small"].astype(int) + 100).astype(np.int8)
    expected["inner"]["large"] *= 2
    expected["byte"] = before["byte"] + 200
    expected["wave"] = before["wave"] * 2
    expected["turn"][:, 1, 2] = before["real"]
    expected["where"][:, 2] = before["where"][:, 0]
    expected["where"][:, 0] = before["where"][:, 1]
    _, found = run(kernel, before, np.zeros(50, MIXED), check="bounds" if form == "checked" else False)
    for name in MIXED.names or ():
        if name == "wave":
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-6)
        else:
            assert np.array_equal(found[name], expected[name]), name


def test_packed_arrays_are_converted_to_the_device_layout() -> None:
    packed = np.dtype([("small", "i1"), ("large", "f8")])
    assert packed.itemsize == 9
    array = np.array([(-3, 0.5), (4, 1.5)], packed)

    @vd.shader("p.size")
    def double(p: Buff[Inner]) -> None:
        p[gid()].large *= 2

    need(f64)
    buffer = vd.asbuffer(array)
    assert buffer.var_type.item_size == 16 and buffer.shape == (2,)
    double(buffer)
    assert buffer.read(0).tolist() == [(-3, 1.0), (4, 3.0)]
    buffer.write(array[::-1])
    assert buffer.read(0).tolist() == [(4, 1.5), (-3, 0.5)]
    buffer.write_range(array[:1], 1)
    assert buffer.read_range(1, 2)[0].tolist() == [(-3, 0.5)]
    assert buffer.read_async().result().tolist() == [(4, 1.5), (-3, 0.5)]
    double.interpret(array)
    assert array.tolist() == [(-3, 1.0), (4, 3.0)]
    buffer.write(array.astype(array.dtype.newbyteorder()))
    assert buffer.read(0).tolist() == [(-3, 1.0), (4, 3.0)]
    buffer.write(buffer.read(0).tobytes())


def test_functions_that_move_elements_accept_structures() -> None:
    array = particles(12)
    buffer = vd.asbuffer(array)
    assert np.array_equal(vd.flip(buffer).read(0), array[::-1])
    assert np.array_equal(vd.roll(buffer, 5).read(0), np.roll(array, 5))
    assert np.array_equal(vd.take(buffer, vd.asbuffer(np.array([3, 1], np.int32))).read(0), array[[3, 1]])
    assert np.array_equal(vd.concatenate([buffer, buffer]).read(0), np.concatenate([array, array]))
    copied = vd.Buffer(12, Particle)
    vd.copyto(copied, buffer)
    assert np.array_equal(copied.read(0), array)
    graph, recorded = vd.CommandGraph(), vd.Buffer(12, Particle)
    vd.copyto(recorded, buffer, graph=graph)
    graph.submit()
    assert np.array_equal(recorded.read(0), array)
    with pytest.raises(TypeError, match="have no common dtype"):
        vd.concatenate([buffer, vd.asbuffer(np.zeros(3, np.float32))])
    for refusing in (vd.cumsum, vd.sum, vd.max, vd.sort, vd.unique):
        with pytest.raises((TypeError, ValueError), match="structure"):
            refusing(buffer)

    @vd.map
    def mass(which: u32, p: Buff[Particle]) -> f32:
        return p[which].mass

    which = vd.asbuffer(np.arange(12, dtype=np.uint32))
    assert vd.sum(mass(which, buffer)).read(0).sum() == array["mass"].sum()


# ---- kernels -------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_fields_in_memory(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "_FORCED", frozenset(form.split(",")) - {"", "checked"})

    def kernel(p: Buff[Particle], out: Buff[f32]) -> None:
        i = gid()
        p[i].mass += 1
        p[i].position.x = p[i].position.y
        p[i].position[2] -= 5
        p[i].speed.yx = p[i].speed.xy
        if p[i].kind % 2 == 0:
            p[i].kind = p[i].kind * 10
        vc.atomic_add(p[0].kind, 1)
        out[i] = p[i].momentum().x + p[i].weight

    before = particles()
    expected = before.copy()
    expected["mass"] += 1
    expected["position"][:, 0] = before["position"][:, 1]
    expected["position"][:, 2] -= 5
    expected["speed"] = before["speed"][:, ::-1]
    expected["kind"] = np.where(before["kind"] % 2 == 0, before["kind"] * 10, before["kind"])
    expected["kind"][0] += 7
    found, out = run(
        kernel, before, np.zeros(7, np.float32), check="bounds,nan" if form == "checked" else False
    )
    assert np.array_equal(found, expected)
    assert np.array_equal(out, expected["speed"][:, 0] * expected["mass"] + expected["mass"] * 10)


@pytest.mark.parametrize("rewrite", [True, False])
def test_copies_are_independent(rewrite: bool) -> None:
    def kernel(p: Buff[Particle], out: Buff[f32]) -> None:
        i = gid()
        s = p[i]
        t = s
        u = p[i]
        v = copy.copy(s)
        s.mass = 100
        s.mass += 1
        s.position.y = 7
        s.position.z += 1
        s.speed = s.speed + 1
        t.kind = 50  # s as well
        p[i].position.x = -1
        out[i] = s.mass + s.position.x * 1000 + s.position.y * 2 + s.position.z + s.speed.x
        out[i + 7] = s.kind.to_dtype(vd.float32)
        out[i + 14] = u.mass + v.mass * 100 + u.position.y

    before = particles()
    expected = before.copy()
    expected["position"][:, 0] = -1
    kernel = vd.shader(7, rewrite=rewrite)(kernel)
    p, out = vd.asbuffer(before), vd.asbuffer(np.zeros(21, np.float32))
    kernel(p, out)
    assert np.array_equal(p.read(0), expected)
    x, _, z = before["position"].T
    first = 101 + x * 1000 + 14 + z + 1 + before["speed"][:, 0] + 1
    third = before["mass"] * 101 + before["position"][:, 1]
    assert np.array_equal(out.read(0), np.concatenate([first, np.full(7, 50), third]))


def test_reads_of_a_copy_are_values() -> None:
    def kernel(p: Buff[Particle], out: Buff[f32]) -> None:
        i = gid()
        s = p[i]
        first, place = s.mass, s.position
        s.mass = 9
        s.position = s.position * 2
        second = s.mass
        s.mass = 10
        first += 1
        out[i] = first * 10000 + second * 1000 + s.mass * 10
        p[i].position = place + s.position

    before = particles()
    found, out = run(kernel, before, np.zeros(7, np.float32))
    assert np.array_equal(out, (before["mass"] + 1) * 10000 + 9100)
    assert np.array_equal(found["position"], before["position"] * 3)


def test_control_flow() -> None:
    def kernel(p: Buff[Particle], out: Buff[f32]) -> None:
        i = gid()
        s = p[i]
        if s.kind > 3:
            s.mass = -1
            s.position.x = 7
        else:
            s.mass += 0.5
        rounds = 0
        while s.mass > 0:
            s.mass -= 1
            rounds += 1
        best = copy.copy(p[0])
        for k in vc.range(1, 7):
            if p[k].mass > best.mass:
                best[:] = p[k]
        out[i] = s.mass + s.position.x * 10 + rounds * 1000
        out[i + 7] = best.mass + best.kind * 100

    before = particles()
    _, out = run(kernel, before, np.zeros(14, np.float32))
    expected = []
    for element in before:
        mass, x, rounds = float(element["mass"]), float(element["position"][0]), 0
        if element["kind"] > 3:
            mass, x = -1.0, 7.0
        else:
            mass += 0.5
        while mass > 0:
            mass, rounds = mass - 1, rounds + 1
        expected.append(mass + x * 10 + rounds * 1000)
    best = before[np.argmax(before["mass"])]
    assert out[:7].tolist() == expected
    assert np.array_equal(out[7:], np.full(7, best["mass"] + best["kind"] * 100))


def test_methods_and_helpers() -> None:
    def heavier(s: Any, factor: float) -> Any:
        s.mass = s.mass * factor
        return s.mass

    def kernel(p: Buff[Particle], out: Buff[f32], step: Const[f32] = 2.0) -> None:
        i = gid()
        p[i].advance(step)
        s = p[i]
        s.advance(1)
        out[i] = heavier(s, 3) + s.mass + s.position.x + s.kind
        out[i + 7] = heavier(p[i], 2)

    before = particles()
    after = before.copy()
    after["position"][:, :2] += before["speed"] * 2
    after["kind"] += 1
    found, out = run(kernel, before, np.zeros(14, np.float32))
    assert np.array_equal(found, after)
    first = before["mass"] * 6 + after["position"][:, 0] + before["speed"][:, 0] + after["kind"] + 1
    assert np.array_equal(out, np.concatenate([first, before["mass"] * 2]))


def test_whole_elements_are_stored() -> None:
    def kernel(p: Buff[Particle], q: Buff[Particle]) -> None:
        i = gid()
        q[i] = p[6 - i]
        q[i].kind = 1
        s = p[i]
        s.mass = 3
        q[i + 7] = s
        q[i + 14] = Particle(vc.to_vec3(1, 2, 3), p[i].mass, p[i].speed.yx, kind=5)
        # what the new element is made of is read before the old one is overwritten
        q[i] = Particle(q[i].position, q[i].speed.x, vc.to_vec2(q[i].mass, 0), q[i].kind)

    before = particles()
    expected = np.zeros(21, HOST)
    expected[:7] = before[::-1]
    expected["mass"][:7] = before["speed"][::-1, 0]
    expected["speed"][:7, 0], expected["speed"][:7, 1] = before["mass"][::-1], 0
    expected["kind"][:7] = 1
    expected[7:14] = before
    expected["mass"][7:14] = 3
    expected["position"][14:] = (1, 2, 3)
    expected["mass"][14:], expected["speed"][14:] = before["mass"], before["speed"][:, ::-1]
    expected["kind"][14:] = 5
    _, found = run(kernel, before, np.zeros(21, HOST))
    assert np.array_equal(found, expected)


def test_exchanging_elements() -> None:
    def kernel(p: Buff[Particle]) -> None:
        i = gid()
        p[i], p[i + 3] = p[i + 3], p[i]
        p[6].mass, p[6].speed.x = p[6].speed.x, p[6].mass

    before = particles()
    expected = before.copy()
    expected[:3], expected[3:6] = before[3:6], before[:3]
    expected["mass"][6], expected["speed"][6, 0] = before["speed"][6, 0], before["mass"][6]
    kernel = vd.shader(3)(kernel)
    p, host = vd.asbuffer(before), before.copy()
    kernel(p)
    kernel.interpret(host)
    for found in (p.read(0), host):
        assert np.array_equal(found[:6], expected[:6])


def test_nested_structures() -> None:
    @dataclass
    class Pair:
        first: Particle
        second: Particle
        count: u32

    host = np.dtype([("first", HOST), ("second", HOST), ("count", "u4")])
    assert structure_of(Pair).host == host

    def kernel(p: Buff[Pair]) -> None:
        i = gid()
        s = p[i]
        part = p[i].second
        part.mass = 5
        p[i].first.position.x += 1
        p[i].second = s.first
        p[i].count += 1
        s.first.mass += 2
        s.second = part
        p[i + 4] = s
        p[i + 4].first.speed = s.first.momentum()

    before = np.zeros(8, host)
    before["first"][:4], before["second"][:4] = particles(4), particles(9)[5:]
    expected = before.copy()
    expected["first"]["position"][:4, 0] += 1
    expected["second"][:4] = before["first"][:4]
    expected["count"][:4] += 1
    expected[4:] = before[:4]
    expected["first"]["mass"][4:] += 2
    expected["second"]["mass"][4:] = 5
    expected["first"]["speed"][4:] *= expected["first"]["mass"][4:, None]
    (found,) = run(kernel, before, size=4)
    assert np.array_equal(found, expected)


def test_several_axes() -> None:
    def kernel(p: Buff[Particle]) -> None:
        at = vc.global_invocation_id()
        p[at.y, at.x].mass = p[at.y, at.x].mass * 10 + (at.y * 100 + at.x)

    before = particles(12).reshape(3, 4)
    (found,) = run(kernel, before, size=(4, 3))
    y, x = np.mgrid[:3, :4]
    assert np.array_equal(found["mass"], before["mass"] * 10 + y * 100 + x)


def test_field_names_reserved_in_glsl() -> None:
    @dataclass
    class Odd:
        float: f32
        in_: f32
        sample: i32
        a__b: i32

    def kernel(p: Buff[Odd]) -> None:
        i = gid()
        p[i].float += 1
        p[i].sample = p[i].a__b
        p[i].in_ = p[i].float

    before = np.array([(1, 2, 3, 4)], [("float", "f4"), ("in_", "f4"), ("sample", "i4"), ("a__b", "i4")])
    (found,) = run(kernel, before)
    assert found.tolist() == [(2, 2, 4, 4)]


def test_bounds_are_checked_once_for_an_element() -> None:
    @vd.shader(1, check="bounds")
    def kernel(p: Buff[Particle], at: Const[u32]) -> None:
        s = p[at]
        p[0] = s

    p = vd.asbuffer(particles(3))
    kernel(p, 2)
    for launch in (kernel, kernel.interpret):
        with pytest.raises(IndexError, match=r"index 3 is out of bounds for buffer 'p' of"):
            launch(p, 3)
    assert str(kernel.get_src()).count(".length()") == 1


@pytest.mark.parametrize("count", [1, 255, 1000, 4099])
def test_several_elements_for_each_invocation(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "_FORCED", frozenset({"coarse"}))

    @dataclass
    class Small:
        value: f32
        count: i32

    @vd.shader("p.size")
    def kernel(p: Buff[Small], q: Buff[Small]) -> None:
        i = gid()
        s = p[i]
        s.value *= 2
        q[i] = s
        q[i].count = p[i].count + q[i].count
        p[i].value = q[i].value + 1

    before = np.zeros(count, [("value", "f4"), ("count", "i4")])
    before["value"], before["count"] = np.arange(count), np.arange(count) % 7
    p, q = vd.asbuffer(before), vd.Buffer(count, Small)
    kernel(p, q)
    assert {variant.coarse for _, variant in kernel._built} == {2}
    assert np.array_equal(q.read(0)["value"], before["value"] * 2)
    assert np.array_equal(q.read(0)["count"], before["count"] * 2)
    assert np.array_equal(p.read(0)["value"], before["value"] * 2 + 1)


def test_traffic_counts_fields() -> None:
    @vd.shader("p.size")
    def kernel(p: Buff[Particle]) -> None:
        i = gid()
        p[i].mass = p[i].speed.x

    p = vd.asbuffer(particles(700))
    with vd.profile() as profile:
        kernel(p)
    (item,) = profile.records
    assert (item.bytes_read, item.bytes_written) == (700 * 8, 700 * 4)


def test_in_graphs() -> None:
    @vd.shader("p.size")
    def kernel(p: Buff[Particle]) -> None:
        p[gid()].mass *= 2

    @vd.shader("out.size")
    def masses(p: Buff[Particle], out: Buff[f32]) -> None:
        out[gid()] = p[gid()].mass

    before = particles()
    p, out = vd.asbuffer(before), vd.Buffer(7, vd.float32)
    graph = vd.CommandGraph()
    kernel(p, graph=graph)
    masses(p, out, graph=graph)
    kernel(p, graph=graph)
    graph.optimize()
    graph.submit()
    assert np.array_equal(p.read(0)["mass"], before["mass"] * 4)
    assert np.array_equal(out.read(0), before["mass"] * 2)


def test_elements_as_plain_numbers() -> None:
    @vd.shader("x.size")
    def words(x: Buff[u32], out: Buff[u32]) -> None:
        out[gid()] = x[gid()]

    before = particles()
    out = vd.Buffer(7 * 7, vd.uint32)
    words(vd.asbuffer(before).view(vd.uint32), out)
    assert np.array_equal(out.read(0), before.view(np.uint32))


# ---- what is refused -----------------------------------------------------------------------------


REFUSED: list[tuple[Callable[..., Any], type[Exception], str]] = [
    (
        lambda p: setattr(p[0], "colour", 1),
        AttributeError,
        "Particle has no field 'colour'; its fields are posi",
    ),
    (lambda p: p[0].colour, AttributeError, "Particle has no field 'colour'"),
    (lambda p: p.__setitem__(0, 3), TypeError, "cannot store a int where there is a Particle"),
    (lambda p: p[0].__setattr__("mass", p[1]), TypeError, "cannot store <Particle of a kernel>"),
    (lambda p: p.__setitem__(0, Inner(1, 2)), TypeError, "cannot store a Inner where there is a Particle"),
    (lambda p: setattr(p[0], "kind", 2.5), ValueError, "cannot store the float 2.5 in int32"),
    (lambda p: bool(p[0]), ValueError, "a Particle has no truth value"),
    (lambda p: p[0.5], TypeError, "index"),
    (lambda p: p[-1], IndexError, "out of range"),
]


@pytest.mark.parametrize(("use", "error", "message"), REFUSED, ids=[message for _, _, message in REFUSED])
def test_wrong_structures_are_refused(use: Callable[..., Any], error: type[Exception], message: str) -> None:
    def kernel(p: Buff[Particle]) -> None:
        use(p)

    with pytest.raises(error, match=message) as caught:
        vd.shader(1)(kernel)
    assert "test_structures.py:" in str(caught.value)


def test_parts_of_values_are_not_assigned() -> None:
    def named(p: Buff[Particle]) -> None:
        s = p[0]
        place = s.position
        place.x = 3

    def indexed(p: Buff[Particle]) -> None:
        s = p[0]
        s.position[0] = 3

    def rebound(p: Buff[Particle]) -> None:
        s = p[0]
        if p[1].mass > 2:
            s = p[1]
        p[2] = s

    for body in (named, indexed):
        with pytest.raises(ValueError, match=r"assigning to a part would be lost.*\(test_structures\.py"):
            vd.shader(1)(body)
    with pytest.raises(
        NameError, match=r"Particle of a kernel> on the other; .* a whole structure is assigned by s\[:\] = "
    ):
        vd.shader(1)(rebound)


def test_wrong_annotations_are_refused() -> None:
    @dataclass
    class Text:
        name: str

    @dataclass
    class Brain:
        weight: bf16

    @dataclass
    class Empty:
        pass

    for kind, message in (
        (Text, "Text.name: a field"),
        (Brain, "a structure cannot have a field of bfloat16"),
        (Empty, "least"),
    ):
        with pytest.raises(ValueError, match=message):
            vd.shader(1, arg_type_annotations=[Buff[kind]])(lambda p: None)
        with pytest.raises(ValueError, match=message):
            vd.Buffer(1, kind)
    with pytest.raises(TypeError, match=r"as Buff\[...\] of a dataclass"):
        vd.shader(1, arg_type_annotations=[Buff[structure_of(Particle)]])(lambda p: None)
    with pytest.raises(TypeError, match="needs a dtype"):
        vd.shader(1, arg_type_annotations=[Const[Particle]])(lambda p: None)


def test_other_structures_are_refused_at_the_call() -> None:
    @vd.shader("p.size")
    def kernel(p: Buff[Particle]) -> None:
        p[gid()].mass = 1

    right = vd.asbuffer(particles())
    kernel(right)
    renamed = particles().astype([("place", "f4", 3), ("mass", "f4"), ("speed", "f4", 2), ("kind", "i4")])
    for wrong in (renamed, np.zeros(49, np.float32)):
        for launch in (kernel, kernel.interpret):
            with pytest.raises(TypeError, match=r"kernel .*argument 'p': expected elements of structure"):
                launch(vd.asbuffer(wrong))
        with pytest.raises(TypeError, match="argument 'p': expected an array of"):
            kernel.interpret(wrong)
    with pytest.raises(TypeError, match="data: expected an array of"):
        right.write(renamed)
    with pytest.raises(ValueError, match=r"data: expected shape \(7,\) of .*, got shape \(6,\)"):
        right.write(particles(6))
    for field in (("x", "O"), ("x", "U3"), ("x", "f16", 3)):
        with pytest.raises((ValueError, TypeError), match="field 'x': no dtype matches NumPy's"):
            vd.asbuffer(np.zeros(3, [field]))
