"""Every atomic on every type that the device has, in buffers and in shared memory, against NumPy."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType
from vkdispatch.codegen.abbreviations import (
    Buff,
    Const,
    c64,
    f16,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    iv3,
    u32,
    u64,
    v2,
    v3,
)
from vkdispatch.compiler.analyses.contents import usage
from vkdispatch.compiler.passes.lowering import replace_float_atomics
from vkdispatch.shader.traced import generation
from vkdispatch.shader.traced.generation import find_atomic_feature, find_missing_operation

from .running import Array, buffer_of, close, filled, host, integers, need, same

COUNT = 1000
INTEGERS: list[DType] = [i32, u32, i64, u64]
FLOATS: list[DType] = [f16, f32, f64]
RULES: dict[str, Callable[[Any], Any]] = {
    "add": lambda values: np.add.reduce(values, dtype=values.dtype),
    "sub": lambda values: np.subtract.reduce(np.append(values[:1] * 0, values), dtype=values.dtype),
    "min": np.minimum.reduce,
    "max": np.maximum.reduce,
    "and": np.bitwise_and.reduce,
    "or": np.bitwise_or.reduce,
    "xor": np.bitwise_xor.reduce,
}
_GLSL = {"add": "atomicAdd", "sub": "atomicAdd", "min": "atomicMin", "max": "atomicMax"}
_GLSL["exchange"] = "atomicExchange"


def has(operation: str, kind: DType, *, shared: bool) -> bool:
    """Whether the device has an atomic."""
    need(kind)
    feature = find_atomic_feature(_GLSL.get(operation, operation), kind, shared=shared)
    return feature is None or feature in vd.get_context().device_infos[0].features


def run(operation: str, kind: DType, values: Array, start: Any, *, shared: bool) -> Any:
    """Apply the atomic to one element for all values, each workgroup to its own if in shared memory."""
    function = getattr(vc, f"atomic_{operation}")

    @vd.shader("values.size", local_size=64)
    def in_buffer(result: Buff[kind], values: Buff[kind]) -> None:  # type: ignore[valid-type]
        function(result[1], values[vc.global_invocation_id().x])

    @vd.shader(workgroups=1, local_size=64)
    def in_shared(result: Buff[kind], values: Buff[kind]) -> None:  # type: ignore[valid-type]
        place = vc.shared_buffer(kind, 3)
        lane = vc.local_invocation_id().x
        with vc.if_block(lane == 0):
            place[1] = result[1]
        vc.barrier()
        with vc.for_block(lane, COUNT, 64) as i:
            function(place[1], values[i])
        vc.barrier()
        with vc.if_block(lane == 0):
            result[1] = place[1]

    result = filled(3, kind, start)
    (in_shared if shared else in_buffer)(result, buffer_of(kind, values))
    found = result.read(0)
    assert found[0] == found[2] == np.array(start, host(kind))
    return found[1]


@pytest.mark.parametrize("shared", [False, True], ids=["buffer", "shared"])
@pytest.mark.parametrize("kind", INTEGERS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("operation", list(RULES))
def test_integers(operation: str, kind: DType, shared: bool) -> None:
    if not has(operation, kind, shared=shared):
        pytest.skip("the device has no such atomic")
    values = integers(kind, COUNT, 3)
    start = np.array(5, host(kind))
    with np.errstate(over="ignore"):
        whole = RULES[operation](values)
        expected = (
            start + whole if operation in ("add", "sub") else RULES[operation](np.append(values, start))
        )
    same(run(operation, kind, values, 5, shared=shared), expected)


@pytest.fixture
def without_float_atomics(monkeypatch: pytest.MonkeyPatch) -> None:
    """Build kernels as for a device that has no atomics of floats."""
    monkeypatch.setattr(
        generation,
        "without_float_atomics",
        lambda kernel, devices: replace_float_atomics(kernel, lambda *wanted: True),
    )


@pytest.mark.parametrize("shared", [False, True], ids=["buffer", "shared"])
@pytest.mark.parametrize("kind", [f32, f64], ids=lambda kind: kind.name)
@pytest.mark.parametrize("operation", ["add", "sub", "min", "max"])
@pytest.mark.usefixtures("without_float_atomics")
def test_floats_by_their_bits(operation: str, kind: DType, shared: bool) -> None:
    need(kind)
    values = (np.random.default_rng(1).integers(-8, 8, COUNT) / 4).astype(host(kind))
    expected = RULES[operation](values.astype(np.float64))
    expected = 5 + expected if operation in ("add", "sub") else RULES[operation](np.append(values, 5))
    assert run(operation, kind, values, 5, shared=shared) == expected


@pytest.mark.usefixtures("without_float_atomics")
def test_all_uses_of_floats_whose_atomics_are_those_of_bits() -> None:
    @vd.shader("before.size", local_size=64)
    def kernel(x: Buff[v3], z: Buff[c64], place: Buff[i32], before: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        tile = vc.shared_buffer(v2, 4)
        if vc.local_invocation_id().x < 4:
            tile[vc.local_invocation_id().x] = vc.to_vec2(1.5)
        vc.barrier()
        x[i] *= 2
        x[i].z += x[i].y
        vc.atomic_add(x[place[0]].x, 0.5)
        vc.atomic_max(tile[i % 4].y, i.to_dtype(f32))
        vc.atomic_sub(z[1].imag, 1)
        before[i] = vc.atomic_exchange(z[i % 2].real, i.to_dtype(f32))
        vc.barrier()
        if i == 0:
            z[2] = vc.to_complex(tile[3].x, tile[3].y)

    x = buffer_of(v3, np.arange(195).reshape(65, 3))
    z, before = buffer_of(c64, [1 + 2j, 3 + 4j, 0]), filled(64, f32)
    kernel(x, z, buffer_of(i32, [64]), before)
    expected = np.arange(195.0).reshape(65, 3)
    expected[:64] *= 2
    expected[:64, 2] += expected[:64, 1]
    expected[64, 0] += 32
    same(x.read(0), expected)
    found = z.read(0)
    assert found[1].imag == 4 - 64 and found[0].imag == 2 and found[2] == 1.5 + 63j
    same(np.sort([*before.read(0), *found[:2].real]), np.sort([1.0, 3.0, *range(64)]))


@pytest.mark.parametrize("shared", [False, True], ids=["buffer", "shared"])
@pytest.mark.parametrize("kind", [f32, f64], ids=lambda kind: kind.name)
def test_compare_exchange_of_floats(kind: DType, shared: bool) -> None:
    if not has("exchange", i64 if kind is f64 else i32, shared=shared):
        pytest.skip("the device has no atomics of 64 bits")
    need(kind)

    @vd.shader(64, local_size=64)
    def kernel(won: Buff[i32], slots: Buff[kind], out: Buff[kind]) -> None:  # type: ignore[valid-type]
        i = vc.global_invocation_id().x
        tile = vc.shared_buffer(kind, 8)
        place = tile if shared else slots
        if i < 8:
            place[i] = slots[i]
        vc.barrier()
        before = vc.atomic_compare_exchange(place[i % 4], 0.5, i + 1)
        won[i] = before == 0.5
        # by bits: a NaN is equal to itself, 0.0 is not -0.0
        out[i] = vc.atomic_compare_exchange(place[4], vc.nan, 3)
        vc.atomic_compare_exchange(place[5], 0.0, 3)
        vc.atomic_compare_exchange(place[6], 1, 2.5)
        vc.barrier()
        if i < 8:
            slots[i] = place[i]

    for interpret in (False, True):
        slots = np.array([0.5, 0.5, 0.5, 7, np.nan, -0.0, 1, 9], host(kind))
        won, out = np.zeros(64, np.int32), np.zeros(64, host(kind))
        if interpret:
            kernel.interpret(won, slots, out)
        else:
            buffers = buffer_of(i32, won), buffer_of(kind, slots), buffer_of(kind, out)
            kernel(*buffers)
            won, slots, out = (buffer.read(0) for buffer in buffers)
        winners = np.flatnonzero(won)
        assert sorted(winners % 4) == [0, 1, 2] and slots[3] == 7
        same(slots[winners % 4], winners + 1)
        assert np.isnan(out).sum() == 1 and (out == 3).sum() == 63
        assert slots[4:].tolist() == [3, 0, 2.5, 9] and np.signbit(slots[5])


def test_a_lock_free_maximum_of_magnitudes() -> None:
    def keep_largest(place: Any, k: Any, value: Any) -> None:
        seen = place[k]
        while abs(value) > abs(seen):
            before = vc.atomic_compare_exchange(place[k], seen, value)
            if before == seen:
                break
            seen = before

    @vd.shader("x.size")
    def kernel(x: Buff[f32], largest: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        keep_largest(largest, i % 3, x[i])

    x = np.random.default_rng(5).permutation(np.arange(-500, 499)).astype(np.float32)
    largest = filled(3, f32)
    kernel(buffer_of(f32, x), largest)
    same(np.abs(largest.read(0)), [np.abs(x[k::3]).max() for k in range(3)])


@pytest.mark.parametrize("shared", [False, True], ids=["buffer", "shared"])
@pytest.mark.parametrize("kind", FLOATS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("operation", ["add", "sub", "min", "max"])
def test_floats(operation: str, kind: DType, shared: bool) -> None:
    values = (np.random.default_rng(1).integers(-8, 8, COUNT) / 4).astype(host(kind))
    if kind is f16 and not has(operation, kind, shared=shared):
        with pytest.raises(NotImplementedError, match=r"has no atomic.*float.*\(shader(Buffer|Shared)Float"):
            run(operation, kind, values, 5, shared=shared)
        return
    expected = RULES[operation](values.astype(np.float64))
    expected = 5 + expected if operation in ("add", "sub") else RULES[operation](np.append(values, 5))
    close(run(operation, kind, values, 5, shared=shared), expected, rtol=1e-6)


@pytest.mark.parametrize("kind", [*INTEGERS, *FLOATS], ids=lambda kind: kind.name)
def test_exchange_passes_each_value_to_exactly_one_invocation(kind: DType) -> None:
    if not has("exchange", kind, shared=False):
        pytest.skip("the device has no such atomic")

    @vd.shader("before.size", local_size=64)
    def kernel(before: Buff[kind], place: Buff[kind]) -> None:  # type: ignore[valid-type]
        i = vc.global_invocation_id().x
        before[i] = vc.atomic_exchange(place[0], (i + 1).to_dtype(kind))

    before, place = filled(500, kind), filled(1, kind)
    kernel(before, place)
    seen = np.append(before.read(0), place.read(0))
    same(np.sort(seen), np.arange(501))


@pytest.mark.parametrize("relaxed", [False, True])
@pytest.mark.parametrize("kind", INTEGERS, ids=lambda kind: kind.name)
def test_atomic_loads_and_stores_are_visible_to_all_workgroups(kind: DType, relaxed: bool) -> None:
    if not has("exchange", kind, shared=False):
        pytest.skip("the device has no such atomic")

    @vd.shader("words.size", local_size=64)
    def kernel(words: Buff[kind], copies: Buff[kind]) -> None:  # type: ignore[valid-type]
        i = vc.global_invocation_id().x
        vc.atomic_store(words[i], vc.atomic_load(words[i], relaxed=relaxed) + 1, relaxed=relaxed)
        copies[i] = vc.atomic_load(words[i], relaxed=relaxed)

    words, copies = buffer_of(kind, np.arange(500)), filled(500, kind)
    kernel(words, copies)
    same(words.read(0), np.arange(1, 501))
    same(copies.read(0), np.arange(1, 501))


@pytest.mark.parametrize("shared", [False, True], ids=["buffer", "shared"])
def test_atomic_flag_publishes_earlier_writes(shared: bool) -> None:
    """One invocation waits for another of its workgroup, of a subgroup of its own."""

    @vd.shader(workgroups=1, local_size=256)
    def kernel(data: Buff[i32], flags: Buff[u32], out: Buff[i32]) -> None:
        lane = vc.local_invocation_id().x
        place = vc.shared_buffer(u32, 1)
        flag = place[0] if shared else flags[0]
        with vc.if_block(lane == 0):
            vc.atomic_store(flag, 0)
        vc.barrier()
        with vc.if_block(lane == 255):
            data[0] = 42
            vc.atomic_store(flag, 7)
        vc.barrier()
        with vc.if_block(lane == 0):
            out[1] = vc.atomic_load(flag).to_dtype(i32)
            out[0] = data[0]

    out = filled(2, i32)
    kernel(filled(1, i32), filled(1, u32), out)
    same(out.read(0), [42, 7])


@pytest.mark.parametrize("kind", INTEGERS, ids=lambda kind: kind.name)
def test_compare_exchange_chooses_one(kind: DType) -> None:
    if not has("exchange", kind, shared=False):
        pytest.skip("the device has no such atomic")

    @vd.shader("won.size", local_size=64)
    def kernel(won: Buff[i32], slots: Buff[kind]) -> None:  # type: ignore[valid-type]
        i = vc.global_invocation_id().x
        before = vc.atomic_compare_exchange(slots[i % 7], 0, i + 1)
        won[i] = before == 0

    won, slots = filled(500, i32), filled(7, kind)
    kernel(won, slots)
    winners = np.flatnonzero(won.read(0))
    assert len(winners) == 7
    same(np.sort(slots.read(0)), np.sort(winners + 1))
    same(slots.read(0)[winners % 7], winners + 1)


def test_a_float_sum_by_compare_exchange() -> None:
    """What the documentation recommends where a device lacks an atomic of floats."""

    @vd.shader("values.size", local_size=64)
    def kernel(total: Buff[u32], values: Buff[f32]) -> None:
        value = values[vc.global_invocation_id().x].to_register()
        seen = total[0].to_register()
        with vc.for_block(1 << 16):
            wanted = vc.float_bits_to_uint(vc.uint_bits_to_float(seen) + value)
            before = vc.atomic_compare_exchange(total[0], seen, wanted)
            with vc.if_block(before == seen):
                vc.break_statement()
            seen[:] = before

    total = filled(1, u32)
    kernel(total, buffer_of(f32, np.arange(300) % 8))
    assert total.read(0).view(np.float32)[0] == sum(n % 8 for n in range(300))


def test_components() -> None:
    @vd.shader(exec_size=100, local_size=32)
    def kernel(v: Buff[iv3], z: Buff[c64]) -> None:
        i = vc.global_invocation_id().x
        vc.atomic_add(v[1].y, i)
        vc.atomic_max(v[0][2], i)
        vc.atomic_or(v[0].x, 1 << (i % 31))

    v, z = filled(2, iv3), filled(1, c64)
    kernel(v, z)
    same(v.read(0), [[2**31 - 1, 0, 99], [0, 4950, 0]])


def test_operands_are_converted_and_previous_values_returned() -> None:
    @vd.shader(exec_size=1)
    def kernel(out: Buff[i32], u: Buff[u32], n: Const[i16]) -> None:
        out[0] = vc.atomic_sub(out[1], n)
        out[2] = vc.atomic_min(u[0], n).to_dtype(i32)
        out[3] = vc.atomic_exchange(out[1], vc.global_invocation_id().x + 9)
        vc.atomic_sub(u[1], 1)

    out, u = buffer_of(i32, [0, 50, 0, 0]), buffer_of(u32, [70, 0])
    kernel(out, u, 8)
    same(out.read(0), [50, 9, 70, 42])
    same(u.read(0), [8, 2**32 - 1])


def test_wrong_arguments_are_refused() -> None:
    with vc.shader_context() as context:
        a, f, h, small, x, y = context.declare_input_arguments(
            [Buff[i32], Buff[f32], Buff[i16], Buff[i8], Const[i32], Const[f32]]
        )
        register = x.to_register()
        for message, misuse in (
            ("mem must be an int32, uint32", lambda: vc.atomic_add(register, 1)),
            ("no element of a buffer", lambda: vc.atomic_min(register, 1)),
            ("got int16", lambda: vc.atomic_min(h[0], 1)),
            ("elements of int8 have no atomics; use a buffer of int32", lambda: vc.atomic_add(small[0], 1)),
            (r"got 3 \(int\)", lambda: vc.atomic_xor(3, 1)),
            ("got float32", lambda: vc.atomic_or(f[0], 1)),
            ("got int16", lambda: vc.atomic_compare_exchange(h[0], 1, 2)),
            ("y must be an integer scalar where mem is int32, got float32", lambda: vc.atomic_add(a[0], y)),
            ("got 1.5", lambda: vc.atomic_max(a[0], 1.5)),
            ("got True", lambda: vc.atomic_max(a[0], True)),
            ("desired must be", lambda: vc.atomic_compare_exchange(a[0], 1, 2.5)),
            ("expected must be", lambda: vc.atomic_compare_exchange(a[0], y, 2)),
        ):
            with pytest.raises(TypeError, match=message) as raised:
                misuse()
            assert "test_atomics.py:" in str(raised.value)
        with pytest.raises(ValueError, match="does not fit"):
            vc.atomic_add(a[0], 1 << 40)


def test_missing_atomics_are_reported_before_compilation() -> None:
    bare = dataclasses.replace(vd.get_devices()[0], features=frozenset())
    for operation, kind, shared, feature in (
        ("add", f32, False, "shaderBufferFloat32AtomicAdd"),
        ("max", f32, True, "shaderSharedFloat32AtomicMinMax"),
        ("exchange", f64, False, "shaderBufferFloat64Atomics"),
        ("min", i64, True, "shaderSharedInt64Atomics"),
        ("add", u64, False, "shaderBufferInt64Atomics"),
        ("add", i32, True, None),
    ):
        with vc.shader_context() as context:
            (buffer,) = context.declare_input_arguments([Buff[kind]])
            target = vc.shared_buffer(kind, 2) if shared else buffer
            getattr(vc, f"atomic_{operation}")(target[0], 1)
        found = find_missing_operation(usage(context.get_description().kernel), bare)
        if feature is None:
            assert found is None
        else:
            assert feature in str(found) and kind.name in str(found)


# -- loops whose subgroups take rounds of their own


@pytest.mark.parametrize("size", [8, 40, 64, 100, 256])
@pytest.mark.parametrize("way", ["load", "store", "add", "subgroup"])
def test_order_in_loops_of_different_length(way: str, size: int) -> None:
    """What llvmpipe takes for no barrier of the workgroup may stand anywhere."""

    @vd.shader(exec_size=size, local_size=64)
    def body(words: Buff[u32], rounds: Buff[u32]) -> None:
        i, n = vc.global_invocation_id().x, vc.new_register(u32, 0)
        while n < i // 8 + 1:
            if way == "load":
                n += vc.atomic_load(words[0], relaxed=True)
            elif way == "store":
                vc.atomic_store(words[0], 1, relaxed=True)
                n += 1
            elif way == "add":
                n += vc.atomic_add(words[0], 0)
            else:
                vc.subgroup_memory_barrier()
                n += 1
        rounds[i] = n

    words, rounds = vd.asbuffer(np.ones(1, np.uint32)), vd.asbuffer(np.zeros(size, np.uint32))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        body(words, rounds)
    np.testing.assert_array_equal(rounds.read(0), np.arange(size) // 8 + 1)


def test_order_in_loops_with_barriers() -> None:
    """All invocations come equally often, those beyond the size too: nothing to warn of."""

    @vd.shader(exec_size=70, local_size=64)
    def body(x: Buff[u32], y: Buff[u32]) -> None:
        shared = vc.shared_buffer(u32, 1)
        i, n = vc.global_invocation_id().x, vc.new_register(u32, 0)
        while n < 5:
            if vc.local_invocation_index() == 0:
                shared[0] = n + x[0]
            vc.memory_barrier_shared()
            vc.barrier()
            y[i] += shared[0]
            vc.memory_barrier()
            vc.barrier()
            n += 1

    x, y = vd.asbuffer(np.ones(1, np.uint32)), vd.asbuffer(np.zeros(70, np.uint32))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        body(x, y)
    np.testing.assert_array_equal(y.read(0), 15)


@pytest.mark.parametrize("way", ["load", "store", "memory_barrier", "group_memory_barrier"])
def test_llvmpipe_warns_about_loops_that_wait(way: str) -> None:
    @vd.shader(exec_size=64, local_size=64)
    def body(words: Buff[u32]) -> None:
        n = vc.new_register(u32, 0)
        while n < words[1]:
            if way == "load":
                vc.atomic_load(words[0])
            elif way == "store":
                vc.atomic_store(words[0], 1)
            else:
                getattr(vc, way)()
            n += 1

    words = vd.asbuffer(np.ones(2, np.uint32))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        body(words)
    if not vd.get_context().device_infos[0].is_llvmpipe():
        assert not caught
        return
    assert [each.category for each in caught] == [vd.KernelWarning]
    assert "relaxed=True" in str(caught[0].message)
    assert caught[0].filename == __file__
