"""Buffers of small elements on devices that store only words: the same values, neighbours apart."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from tests.language.running import evaluate, integers, need, same
from vkdispatch.base import dtype as dt
from vkdispatch.codegen.abbreviations import Buff, b8, bf16, f16, f32, i8, i16, i32, i64, u8, u16, u32, u64
from vkdispatch.shader import building

KINDS = [(b8, np.bool_), (i8, np.int8), (u8, np.uint8), (i16, np.int16), (u16, np.uint16), (f16, np.float16)]
SIZES = [1, 2, 3, 4, 5, 255, 1031]


@pytest.fixture(autouse=True)
def _words(monkeypatch: pytest.MonkeyPatch) -> bool:
    """Take from the device what stores elements of 8 and 16 bits; whether it has what stores those of 16."""
    infos = vd.get_context().device_infos
    has = all(info.storage_buffer_16_bit_access for info in infos)
    for info in infos:
        monkeypatch.setattr(info, "storage_buffer_8_bit_access", 0)
        monkeypatch.setattr(info, "storage_buffer_16_bit_access", 0)
    return has


def _values(host: Any, size: int, seed: int = 0) -> Any:
    """Return any bits but those of infinities and NaNs."""
    bits = np.random.default_rng((size, seed)).integers(0, 1 << 16, size).astype(np.uint16)
    if host is np.bool_:
        return bits % 2 == 1
    if host is np.float16:
        bits &= 0xFBFF
    return bits.astype(np.uint8).view(host) if np.dtype(host).itemsize == 1 else bits.view(host)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("kind", "host"), KINDS)
def test_elements_are_loaded_and_stored(kind: Any, host: Any, size: int) -> None:
    need(kind)
    values = _values(host, size)

    @vd.shader("b.size", arg_type_annotations=[Buff[kind], Buff[kind]], arg_names=["a", "b"])
    def reverse(a: Any, b: Any) -> None:
        t = vc.global_invocation_id().x
        b[size - 1 - vc.to_int(t)] = a[t]

    b = vd.Buffer(size, kind)
    reverse(vd.asbuffer(values), b)
    np.testing.assert_array_equal(b.read(0), values[::-1])
    source = reverse.get_src().code
    assert "uint data[]" in source
    assert not any(f"{name} data[]" in source for name in ("uint8_t", "int8_t", "uint16_t", "int16_t"))


@pytest.mark.parametrize("step", [2, 3, 5])
@pytest.mark.parametrize(("kind", "host"), KINDS)
def test_neighbouring_elements_are_unchanged(kind: Any, host: Any, step: int) -> None:
    need(kind)
    old, new = _values(host, 1031), _values(host, 1031, seed=1)

    @vd.shader("b.size", arg_type_annotations=[Buff[kind], Buff[kind]], arg_names=["a", "b"])
    def some(a: Any, b: Any) -> None:
        t = vc.global_invocation_id().x
        with vc.if_block(t % step == 1):
            b[t] = a[t]

    b = vd.asbuffer(old)
    some(vd.asbuffer(new), b)
    np.testing.assert_array_equal(b.read(0), np.where(np.arange(1031) % step == 1, new, old))


def test_concurrent_stores_to_one_element_keep_one_value() -> None:
    @vd.shader(4096)
    def meet(out: Buff[u8]) -> None:
        t = vc.global_invocation_id().x
        out[t % 7] = vc.select(t % 2 == 0, vc.to_uint(0x55), vc.to_uint(0xAA))

    out = vd.asbuffer(np.zeros(7, np.uint8))
    for _ in range(20):
        meet(out)
        assert set(out.read(0).tolist()) <= {0x55, 0xAA}


def test_bfloat16_is_rounded_to_even(monkeypatch: pytest.MonkeyPatch, _words: bool) -> None:
    if not _words:
        pytest.skip("the device has no storage of 16 bits")
    values = np.random.default_rng(0).integers(0, 1 << 32, 4099, dtype=np.uint64).astype(np.uint32)
    values = values.view(np.float32)

    def body(a: Any, b: Any) -> None:
        t = vc.global_invocation_id().x
        b[t] = a[t]

    made = []
    for packed in (True, False):
        monkeypatch.setattr(vd.get_context().device_infos[0], "storage_buffer_16_bit_access", int(not packed))
        kernel = vd.shader("a.size", arg_type_annotations=[Buff[f32], Buff[bf16]], arg_names=["a", "b"])(body)
        out = vd.Buffer(values.size, bf16)
        kernel(vd.asbuffer(values), out)
        made.append(out.read(0))
        assert ("brain_bits" in kernel.get_src().code) == packed
    np.testing.assert_array_equal(made[0].view(np.uint32), made[1].view(np.uint32))


@dataclass
class Particle:
    alive: b8
    weight: f32
    charge: i8
    kind: u8
    level: i8


def test_fields_of_structures() -> None:
    @vd.shader("out.size")
    def age(particles: Buff[Particle], out: Buff[i32]) -> None:
        t = vc.global_invocation_id().x
        out[t] = particles[t].charge.to_dtype(i32) * 1000 + particles[t].level
        particles[t].alive = particles[t].weight > 0.5
        particles[t].weight *= 2
        particles[t].kind += 1

    kind = vd.Buffer(1, Particle).var_type
    host = np.zeros(1031, kind.host)
    random = np.random.default_rng(3)
    host["weight"] = random.random(1031, np.float32)
    for name in ("charge", "level"):
        host[name] = random.integers(-128, 128, 1031)
    host["kind"] = random.integers(0, 256, 1031)
    particles, out = vd.asbuffer(host), vd.Buffer(1031, i32)
    age(particles, out)
    result = particles.read(0)
    np.testing.assert_array_equal(out.read(0), host["charge"].astype(int) * 1000 + host["level"])
    np.testing.assert_array_equal(result["alive"], host["weight"] > 0.5)
    np.testing.assert_array_equal(result["weight"], host["weight"] * 2)
    np.testing.assert_array_equal(result["kind"], host["kind"] + np.uint8(1))
    np.testing.assert_array_equal(result["level"], host["level"])


@pytest.mark.parametrize("count", [2, 3, 4])
def test_vectors_and_their_components(count: int) -> None:
    need(i16)
    kind = {2: vd.ihvec2, 3: vd.ihvec3, 4: vd.ihvec4}[count]

    @vd.shader("a.size", arg_type_annotations=[Buff[kind], Buff[kind]], arg_names=["a", "b"])
    def change(a: Any, b: Any) -> None:
        t = vc.global_invocation_id().x
        b[t] = a[t]
        b[t].y = a[t].x
        b[t] += a[t]
        b[t][t % count] = b[t][t % count] + vc.to_dtype(vd.int16, 1)

    values = np.random.default_rng(count).integers(-9000, 9000, (257, count)).astype(np.int16)
    b = vd.Buffer(257, kind)
    change(_filled(values, kind), b)
    wanted = values.copy()
    wanted[:, 1] = values[:, 0]
    wanted += values
    wanted[np.arange(257), np.arange(257) % count] += 1
    np.testing.assert_array_equal(b.read(0), wanted)


def _filled(values: Any, kind: Any) -> vd.Buffer[Any]:
    made: vd.Buffer[Any] = vd.Buffer(len(values), kind)
    made.write(values)
    return made


@pytest.mark.parametrize("size", [5, 6, 8])
def test_checks_know_the_length(size: int) -> None:
    @vd.shader(size + 1, check=True)
    def beyond(flags: Buff[b8], out: Buff[u8]) -> None:
        t = vc.global_invocation_id().x
        out[t] = vc.select(flags[t], vc.to_uint(1), vc.to_uint(2))

    flags, out = vd.asbuffer(np.ones(size, np.bool_)), vd.asbuffer(np.zeros(size + 1, np.uint8))
    with pytest.raises(vd.BoundsError, match=rf"index {size} is out of bounds"):
        beyond(flags, out)


def test_raw_glsl_names_the_missing_feature() -> None:
    @vd.shader(1)
    def raw(a: Buff[u8], b: Buff[u32]) -> None:
        vc.get_builder().append_contents("buf1.data[0] = uint(buf0.data[0]);")
        b[1] = a[1]

    with pytest.raises(vd.UnsupportedError, match="no storageBuffer8BitAccess: elements are packed in words"):
        raw.build()


WIDE = """
import numpy as np
import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, b8, i8, u32

@vd.shader("b.size")
def signs(a: Buff[i8], b: Buff[b8]) -> None:
    t = vc.global_invocation_id().x
    b[t] = a[t] < 0

a = np.random.default_rng(0).integers(-128, 128, 5001).astype(np.int8)
b = vd.Buffer(a.size, vd.bool_)
signs(vd.asbuffer(a), b)
np.testing.assert_array_equal(b.read(0), a < 0)
print(signs)
mask = a > 3
assert vd.any(vd.asbuffer(mask)).read(0).all() and not vd.all(vd.asbuffer(mask)).read(0).any()
assert vd.count_nonzero(vd.asbuffer(a)).read(0) == np.count_nonzero(a)
x = np.arange(5001, dtype=np.float32)
found = vd.where(vd.asbuffer(mask), vd.asbuffer(x), vd.asbuffer(-x)).read(0)
np.testing.assert_array_equal(found, np.where(mask, x, -x))
np.testing.assert_array_equal(vd.compact(vd.asbuffer(x), vd.asbuffer(mask)).read(0), x[mask])
np.testing.assert_array_equal(vd.sort(vd.asbuffer(a)).read(0), np.sort(a))
places = vd.asbuffer(np.arange(0, 5001, 7, np.int32))
np.testing.assert_array_equal(vd.take(vd.asbuffer(a), places).read(0), a[::7])
print("done")
"""


@pytest.mark.parametrize("form", ["packed", "packed,addressed", "packed,wide,coarse"])
def test_every_form(run_python: Callable[..., subprocess.CompletedProcess[str]], form: str) -> None:
    if form != "packed":
        need(i64)
    ran = run_python(WIDE, VKDISPATCH_FORCE_VARIANT=form)
    assert ran.stdout.endswith("done\n"), ran.stdout + ran.stderr
    assert "uint data[]" in ran.stdout


ARITHMETIC = """
import numpy as np
import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, f16, f32, i16, i32, i64, u16, u64

@vd.shader("x.size")
def longs(
    x: Buff[i64], y: Buff[i64], out: Buff[i64], more: Buff[i64], wide: Buff[u64], low: Buff[i32], f: Buff[f32]
):
    i = vc.global_invocation_id().x
    out[i] = x[i] * y[i] - (x[i] >> vc.to_dtype(vd.int64, i % 64)) + (y[i] << vc.to_dtype(vd.int64, i % 63))
    more[i] = x[i] // y[i] + vc.min(x[i], y[i]) - abs(y[i])
    wide[i] = vc.to_dtype(vd.uint64, x[i]) // 1000003 + vc.to_dtype(vd.uint64, y[i]) % 77
    low[i] = vc.select(x[i] < y[i], vc.to_int(x[i]), vc.to_int(y[i] & 255))
    f[i] = vc.to_float(x[i])

@vd.shader("h.size")
def halves(h: Buff[f16], g: Buff[f16], s: Buff[i16], u: Buff[u16], k: Const[i16], c: Const[f16]):
    i = vc.global_invocation_id().x
    h[i] = (h[i] * g[i] + c) / (g[i] * g[i] + 1)
    s[i] = s[i] * 37 + k
    u[i] -= u[i] // 3 * 5

@vd.shader("u.size")
def turned(l: Buff[i64], u: Buff[u16]):
    i = vc.global_invocation_id().x
    longs, shorts = vc.local_array(i64, 3), vc.local_array(u16, 3)
    for k in range(2):
        longs[(i + k) % 3], shorts[(i + k) % 3] = l[i] + k, u[i] + k
    l[i], u[i] = longs[i % 2], shorts[i % 2]

random = np.random.default_rng(0)
n = 4099
x = random.integers(-(2**63), 2**63, n) >> random.integers(0, 63, n)
y = random.integers(-(2**63), 2**63, n) >> random.integers(0, 63, n)
y[y == 0] = 3
# halfway between two values of float32
x[:6] = [2**24 + 1, 2**24 + 3, -(2**24) - 5, 2**62 + 2**38, 2**62 + 2**38 + 1, 2**63 - 1]
out, more, wide = vd.Buffer(n, i64), vd.Buffer(n, i64), vd.Buffer(n, u64)
low, f = vd.Buffer(n, i32), vd.Buffer(n, f32)
longs(vd.asbuffer(x), vd.asbuffer(y), out, more, wide, low, f)
i = np.arange(n)
np.testing.assert_array_equal(out.read(0), x * y - (x >> (i % 64)) + (y << (i % 63)))
pairs = [(int(a), int(b)) for a, b in zip(x, y)]
quotient = [abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) for a, b in pairs]
wanted = [q + min(pair) - abs(pair[1]) for q, pair in zip(quotient, pairs)]
wanted = np.array([(each + 2**63) % 2**64 - 2**63 for each in wanted], np.int64)
np.testing.assert_array_equal(more.read(0), wanted)
np.testing.assert_array_equal(wide.read(0), x.view(np.uint64) // 1000003 + y.view(np.uint64) % 77)
np.testing.assert_array_equal(low.read(0), np.where(x < y, x, y & 255).astype(np.int32))
np.testing.assert_array_equal(f.read(0), x.astype(np.float32))

h, g = (random.normal(size=(2, n)) * 10.0 ** random.integers(-6, 3, (2, n))).astype(np.float16)
s, u = random.integers(-32768, 32768, n).astype(np.int16), random.integers(0, 65536, n).astype(np.uint16)
buffers = [vd.asbuffer(each) for each in (h, g, s, u)]
halves(*buffers, -12345, 0.3)
one, c = np.float16(1), np.float16(0.3)
np.testing.assert_array_equal(buffers[0].read(0), (h * g + c) / (g * g + one))
np.testing.assert_array_equal(buffers[2].read(0), s * np.int16(37) + np.int16(-12345))
np.testing.assert_array_equal(buffers[3].read(0), u - u // np.uint16(3) * np.uint16(5))

l, u = x.copy(), np.arange(n, dtype=np.uint16)
buffers = [vd.asbuffer(l), vd.asbuffer(u)]
turned(*buffers)
more = np.select([i % 2 == i % 3, i % 2 == (i + 1) % 3], [0, 1], -1)
with np.errstate(over="ignore"):
    np.testing.assert_array_equal(buffers[0].read(0), np.where(more < 0, 0, l + more))
np.testing.assert_array_equal(buffers[1].read(0), np.where(more < 0, 0, u + more))

for kind in (np.int32, np.int64, np.uint64):
    a = (random.integers(0, 1 << 30, 70001) * (1 if kind is np.int32 else 1 << 33)).astype(kind)
    b = vd.asbuffer(a)
    assert vd.sum(b).read(0) == a.sum()
    assert vd.max(b).read(0) == a.max() and vd.argmin(b).read(0) == a.argmin()
    np.testing.assert_array_equal(vd.cumsum(b).read(0), a.cumsum())
    np.testing.assert_array_equal(vd.sort(b).read(0), np.sort(a))
text = str(longs) + str(halves) + str(turned)
print(sorted({word for word in ("int64_t", "int16_t", "float16_t", "uint16_t") if word in text}), "done")
"""


def test_missing_types_are_emulated(run_python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    ran = run_python(ARITHMETIC, VKDISPATCH_FORCE_VARIANT="packed")
    assert ran.stdout == "[] done\n", ran.stdout + ran.stderr


def test_choices_of_emulated_types_hold_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "_FORCED", frozenset(("packed",)))

    def rule(x: Any, y: Any) -> list[Any]:
        chosen = vc.select(x < y, x, y)  # converted to its own words, without a function around it
        return [
            vc.select(chosen.to_dtype(u64) == y.to_dtype(u64), 1, 2),
            vc.select(chosen.to_dtype(u64).to_dtype(dt.bool_), 1, 2),
            chosen.to_dtype(u64) + y.to_dtype(u64),
            -chosen.to_dtype(u64).to_dtype(i64),
            vc.select(x.to_dtype(i16) < y.to_dtype(i16), x.to_dtype(u16), y.to_dtype(u16)) // 3,
        ]

    x, y = integers(i64, 67, 1), integers(i64, 67, 2)
    x[10:30] = y[10:30]
    x[30:35] = 0
    found = evaluate(rule, (i64, x), (i64, y))
    least = np.minimum(x, y)
    same(found[0], np.where(least == y, 1, 2))
    same(found[1], np.where(least != 0, 1, 2))
    same(found[2], least.astype(np.uint64) + y.astype(np.uint64))
    same(found[3], -least)
    halves = np.where(x.astype(np.int16) < y.astype(np.int16), x, y).astype(np.uint16)
    same(found[4], halves // 3)
