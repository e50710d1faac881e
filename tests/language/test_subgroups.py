"""Every subgroup operation, against NumPy on groups as large as the device's subgroups."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.base.dtype import DType
from vkdispatch.codegen.abbreviations import (
    Buff,
    Const,
    c64,
    f16,
    f32,
    f64,
    hv3,
    i16,
    i32,
    i64,
    m2,
    u16,
    u32,
    u64,
    uv4,
    v3,
)
from vkdispatch.compiler.analyses.contents import usage
from vkdispatch.shader.traced.generation import find_missing_operation

from .running import Array, buffer_of, close, filled, host, need, same

GROUPS, LOCAL = 3, 64
ROWS = GROUPS * LOCAL
REDUCTIONS: dict[str, Any] = {
    "add": np.add,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
KINDS: list[DType] = [i32, u32, f32, f64, i64, u64, i16, u16, f16, v3]


def device() -> Any:
    return vd.get_context().device_infos[0]


def grouped(values: Array) -> Array:
    """Rows as (subgroup, invocation); workgroups are multiples of a subgroup here."""
    return values.reshape(-1, device().sub_group_size, *values.shape[1:])


def run(rule: Callable[[Any, Any], Any], kind: DType, values: Array) -> Array:
    """Results of rule(value, lane) for whole subgroups; booleans as int32."""
    if LOCAL % device().sub_group_size:
        pytest.skip("a workgroup is no multiple of a subgroup")
    types: list[DType] = []

    def body(out: Any, data: Any) -> None:
        i = vc.global_invocation_id().x
        result = rule(data[i], vc.subgroup_invocation_id())
        types.append(result.var_type)
        out[i] = result

    with vc.shader_context() as context:
        out, data = context.declare_input_arguments([Buff[kind], Buff[kind]])
        found = rule(data[0], vc.subgroup_invocation_id()).var_type
    found = i32 if found is dt.bool_ else found
    kernel = vd.shader(workgroups=GROUPS, local_size=LOCAL, arg_type_annotations=[Buff[found], Buff[kind]])(
        body
    )
    out = filled(ROWS, found, 77)
    kernel(out, buffer_of(kind, values))
    return out.read(0)


def some(kind: DType, seed: int = 0) -> Array:
    """Small values, so that products stay exact."""
    shape = (ROWS, *kind.true_numpy_shape)
    drawn = np.random.default_rng(seed).integers(1, 4, shape)
    return drawn.astype(host(kind)) * np.array(1, host(kind))


def operations(kind: DType) -> list[str]:
    names = list(REDUCTIONS)
    return names if dt.is_integer_dtype(kind) else names[:4]


def check(found: Array, expected: Any, kind: DType, what: str) -> None:
    if dt.is_float_dtype(kind):
        close(found, expected, rtol=2e-3 if dt.component_type(kind) is f16 else 1e-5, what=what)
    else:
        same(found, expected, what)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_reductions(kind: DType) -> None:
    need(kind)
    values = some(kind)
    groups = grouped(values)
    for name in operations(kind):
        if name == "mul" and kind in (i16, u16, f16):
            continue
        with np.errstate(over="ignore"):
            whole = REDUCTIONS[name].reduce(groups, axis=1, dtype=values.dtype)
        expected = np.repeat(whole, groups.shape[1], axis=0)
        check(run(lambda x, _, n=name: getattr(vc, f"subgroup_{n}")(x), kind, values), expected, kind, name)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_scans(kind: DType) -> None:
    need(kind)
    values = some(kind, 1)
    groups = grouped(values)
    for name in operations(kind):
        if name == "mul" and kind in (i16, u16, f16):
            continue
        rule = REDUCTIONS[name]
        with np.errstate(over="ignore"):
            inclusive = rule.accumulate(groups, axis=1, dtype=values.dtype)
        found = run(lambda x, _, n=name: getattr(vc, f"subgroup_inclusive_{n}")(x), kind, values)
        check(grouped(found), inclusive, kind, name)
        found = run(lambda x, _, n=name: getattr(vc, f"subgroup_exclusive_{n}")(x), kind, values)
        check(grouped(found)[:, 1:], inclusive[:, :-1], kind, name)
        if name in ("add", "mul", "or", "xor"):
            same(grouped(found)[:, 0], np.full_like(groups[:, 0], 1 if name == "mul" else 0), name)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_clusters(kind: DType, size: int) -> None:
    need(kind)
    if size > device().sub_group_size:
        pytest.skip(f"subgroups have {device().sub_group_size} invocations")
    values = some(kind, 2)
    clusters = values.reshape(-1, size, *values.shape[1:])
    for name in operations(kind):
        rule = lambda x, _, n=name: getattr(vc, f"subgroup_clustered_{n}")(x, size)  # noqa: E731
        with np.errstate(over="ignore"):
            whole = REDUCTIONS[name].reduce(clusters, axis=1, dtype=values.dtype)
        check(run(rule, kind, values), np.repeat(whole, size, axis=0), kind, name)


@pytest.mark.parametrize("kind", [*KINDS, c64, hv3], ids=lambda kind: kind.name)
def test_exchanges(kind: DType) -> None:
    need(kind)
    values = np.arange(ROWS * max(1, dt.component_count(kind))).astype(host(dt.component_type(kind)))
    values = values[:ROWS].astype(host(kind)) if kind is c64 else values
    values = values.reshape(ROWS, *kind.true_numpy_shape) if kind is not c64 else values
    groups = grouped(values)
    size = groups.shape[1]
    lanes = np.arange(size)

    def check_move(rule: Callable[[Any, Any], Any], source: Any, defined: Any = slice(None)) -> None:
        found = grouped(run(rule, kind, values))
        same(found[:, defined], groups[:, source][:, defined])

    check_move(lambda x, lane: vc.subgroup_broadcast(x, 2), np.full(size, 2))
    check_move(lambda x, lane: vc.subgroup_broadcast(x, vc.subgroup_size() - 1), np.full(size, size - 1))
    check_move(lambda x, lane: vc.subgroup_broadcast_first(x), np.zeros(size, int))
    check_move(lambda x, lane: vc.subgroup_shuffle(x, vc.subgroup_size() - 1 - lane), lanes[::-1])
    check_move(lambda x, lane: vc.subgroup_shuffle_xor(x, size // 2 + 1), lanes ^ (size // 2 + 1))
    check_move(lambda x, lane: vc.subgroup_shuffle_up(x, 2), np.roll(lanes, 2), slice(2, None))
    check_move(lambda x, lane: vc.subgroup_shuffle_down(x, 3), np.roll(lanes, -3), slice(None, -3))
    check_move(lambda x, lane: vc.subgroup_quad_broadcast(x, 3), lanes // 4 * 4 + 3)
    check_move(lambda x, lane: vc.subgroup_quad_swap_horizontal(x), lanes ^ 1)
    check_move(lambda x, lane: vc.subgroup_quad_swap_vertical(x), lanes ^ 2)
    check_move(lambda x, lane: vc.subgroup_quad_swap_diagonal(x), lanes ^ 3)
    if kind is f16:
        check_move(lambda x, lane: vc.subgroup_shuffle(vc.to_complex(x, x), 1).real, np.full(size, 1))
    same(run(lambda x, lane: vc.subgroup_all_equal(x), kind, values), np.zeros(ROWS))
    same(run(lambda x, lane: vc.subgroup_all_equal(x), kind, values * 0), np.ones(ROWS))


@pytest.mark.parametrize("kind", [f64, i64, u64], ids=lambda kind: kind.name)
def test_sums_by_shuffles(kind: DType) -> None:
    need(kind)
    values = some(kind)

    def rule(x: Any, lane: Any) -> Any:
        rest = x + x
        for distance in (1, 2, 4):
            x = vc.select(lane >= distance, vc.subgroup_shuffle_up(x, distance) + x, x)
            rest = vc.select(lane >= distance, vc.subgroup_shuffle_up(rest, distance) + rest, rest)
        last = vc.subgroup_shuffle(x, 7)
        return vc.select(lane < 8, last + rest + vc.subgroup_shuffle(rest, 7), 0)

    groups = grouped(values)
    sums = groups[:, :8].cumsum(axis=1)
    expected = np.zeros_like(groups)
    expected[:, :8] = sums[:, 7:] * 3 + 2 * sums
    same(grouped(run(rule, kind, values)), expected)


def test_votes() -> None:
    size = device().sub_group_size
    values = np.zeros(ROWS, np.int32)
    values[:size] = 1
    values[size] = 2
    groups = grouped(values)

    def spread(per_group: Any) -> Array:
        return np.repeat(np.asarray(per_group, np.int32), size)

    same(run(lambda x, _: vc.subgroup_all(x > 0), i32, values), spread((groups > 0).all(1)))
    same(run(lambda x, _: vc.subgroup_any(x > 0), i32, values), spread((groups > 0).any(1)))
    same(run(lambda x, _: vc.subgroup_any(True), i32, values), spread((groups >= 0).any(1)))
    equal = (groups == groups[:, :1]).all(1)
    same(run(lambda x, _: vc.subgroup_all_equal(x), i32, values), spread(equal))
    same(run(lambda x, lane: vc.subgroup_elect(), i32, values), np.arange(ROWS) % size == 0)
    same(run(lambda x, _: vc.subgroup_or(x > 1), i32, values), spread((groups > 1).any(1)))
    same(run(lambda x, _: vc.subgroup_and(x >= 0), i32, values), spread((groups >= 0).all(1)))
    same(run(lambda x, lane: vc.subgroup_shuffle(x > 0, 0), i32, values), spread(groups[:, 0] > 0))


def test_ballots() -> None:
    size = device().sub_group_size
    values = np.random.default_rng(5).integers(0, 2, ROWS).astype(np.int32)
    values[:size] = 0
    values[1] = 1
    chosen = grouped(values) > 0
    lanes = np.arange(size)
    bits = [sum(1 << int(lane) for lane in np.flatnonzero(row)) for row in chosen]
    words = [[bit >> (32 * word) & 0xFFFFFFFF for word in range(4)] for bit in bits]
    ballot = lambda x: vc.subgroup_ballot(x > 0)  # noqa: E731

    same(run(lambda x, _: ballot(x), i32, values), np.repeat(words, size, axis=0))
    same(run(lambda x, _: vc.subgroup_inverse_ballot(ballot(x)), i32, values), values)
    same(run(lambda x, lane: vc.subgroup_ballot_bit_extract(ballot(x), lane), i32, values), values)
    same(
        run(lambda x, lane: vc.subgroup_ballot_bit_extract(ballot(x), 1), i32, values),
        np.repeat(chosen[:, 1], size),
    )
    same(
        run(lambda x, _: vc.subgroup_ballot_bit_count(ballot(x)), i32, values), np.repeat(chosen.sum(1), size)
    )
    running = np.cumsum(chosen, axis=1)
    same(run(lambda x, _: vc.subgroup_ballot_inclusive_bit_count(ballot(x)), i32, values), running.ravel())
    exclusive = (running - chosen).ravel()
    same(run(lambda x, _: vc.subgroup_ballot_exclusive_bit_count(ballot(x)), i32, values), exclusive)
    lowest = np.argmax(chosen, axis=1)
    highest = size - 1 - np.argmax(chosen[:, ::-1], axis=1)
    filled_ = np.repeat(chosen.any(1), size)
    for function, expected in ((vc.subgroup_ballot_find_lsb, lowest), (vc.subgroup_ballot_find_msb, highest)):
        found = run(lambda x, _, f=function: f(ballot(x)), i32, values)
        same(found[filled_], np.repeat(expected, size)[filled_])
    for name, rule in (
        ("eq", lambda lane: lanes == lane),
        ("ge", lambda lane: lanes >= lane),
        ("gt", lambda lane: lanes > lane),
        ("le", lambda lane: lanes <= lane),
        ("lt", lambda lane: lanes < lane),
    ):
        found = run(lambda x, _, n=name: getattr(vc, f"subgroup_{n}_mask")(), i32, values)[:size, 0]
        expected = [sum(1 << int(bit) for bit in np.flatnonzero(rule(lane)) if bit < 32) for lane in lanes]
        same(found, expected, name)


def test_reduction_runs_where_it_is_called() -> None:
    """Inside the branch only one invocation is active."""
    size = device().sub_group_size
    values = np.arange(ROWS, dtype=np.int32)

    @vd.shader(workgroups=GROUPS, local_size=LOCAL)
    def kernel(out: Buff[i32], data: Buff[i32]) -> None:
        i = vc.global_invocation_id().x
        total = vc.subgroup_add(data[i])
        with vc.if_block(vc.subgroup_elect()):
            out[i // vc.subgroup_size()] = total
        with pytest.raises(ValueError, match="cannot be assigned to"):
            total[:] = 1

    out = filled(ROWS // size, i32)
    kernel(out, buffer_of(i32, values))
    same(out.read(0), values.reshape(-1, size).sum(1))


def test_while_condition_with_a_vote_is_evaluated_each_round() -> None:
    size = device().sub_group_size

    @vd.shader("rounds.size", local_size=LOCAL)
    def kernel(rounds: Buff[u32], data: Buff[u32]) -> None:
        i = vc.global_invocation_id().x
        left = data[i].to_register()
        count = vc.new_uint_register(0)
        with vc.while_block(vc.all(vc.subgroup_any(left > 0), count < 1000)):
            with vc.if_block(left > 0):
                left -= 1
            count += 1
        rounds[i] = count

    values = np.random.default_rng(6).integers(0, 30, ROWS)
    rounds = filled(ROWS, u32)
    kernel(rounds, buffer_of(u32, values))
    same(rounds.read(0), np.repeat(values.reshape(-1, size).max(1), size))


def test_subgroup_barriers_compile_and_order_shared_memory() -> None:
    size = device().sub_group_size

    @vd.shader(workgroups=1, local_size=LOCAL)
    def kernel(out: Buff[u32]) -> None:
        lane, i = vc.subgroup_invocation_id(), vc.local_invocation_index()
        part = vc.shared_buffer(u32, LOCAL)
        part[i] = i
        vc.subgroup_barrier()
        vc.subgroup_memory_barrier()
        vc.subgroup_memory_barrier_buffer()
        vc.subgroup_memory_barrier_shared()
        vc.subgroup_memory_barrier_image()
        out[i] = part[i - lane + (lane + 1) % vc.subgroup_size()]

    out = filled(LOCAL, u32)
    kernel(out)
    i = np.arange(LOCAL)
    same(out.read(0), i - i % size + (i % size + 1) % size)


@pytest.mark.parametrize("local", [(8, 3, 1), (16, 2, 2), (64, 1, 1), (128, 1, 1)])
def test_a_slot_for_each_subgroup(local: tuple[int, int, int]) -> None:
    """Rows of 8 or more along x: what llvmpipe needs, whose ids of subgroups are wrong otherwise."""
    threads = local[0] * local[1] * local[2]
    x = np.arange(3 * threads, dtype=np.int32)

    @vd.shader(workgroups=3, local_size=local)
    def body(x: Buff[i32], sums: Buff[i32]) -> None:
        slots = vc.shared_buffer(i32, threads)
        index = vc.local_invocation_index()
        part = vc.subgroup_add(x[vc.workgroup_id().x * threads + index])
        if vc.subgroup_elect():
            slots[vc.subgroup_id()] = part
        vc.barrier()
        if index == 0:
            for k in vc.range(vc.to_int(vc.num_subgroups())):
                sums[vc.workgroup_id().x] += slots[k]

    sums = filled(3, i32)
    body(buffer_of(i32, x), sums)
    same(sums.read(0), x.reshape(3, -1).sum(axis=1))


@pytest.mark.parametrize("local", [(1, 1, 1), (4, 4, 1), (12, 2, 1), (20, 1, 1), (3, 5, 7)])
def test_sums_of_workgroups_of_any_shape(local: tuple[int, int, int]) -> None:
    threads = local[0] * local[1] * local[2]
    x = np.arange(3 * threads, dtype=np.int32)

    @vd.shader(workgroups=3, local_size=local)
    def body(x: Buff[i32], sums: Buff[i32]) -> None:
        part = vc.subgroup_add(x[vc.workgroup_id().x * threads + vc.local_invocation_index()])
        if vc.subgroup_elect():
            vc.atomic_add(sums[vc.workgroup_id().x], part)

    sums = filled(3, i32)
    body(buffer_of(i32, x), sums)
    same(sums.read(0), x.reshape(3, -1).sum(axis=1))


FEW = 0x1 | 0x8 | 0x10  # basic, ballots and shuffles


@pytest.fixture
def few_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take from the device the operations that others replace."""
    for info in vd.get_context().device_infos:
        if info.supported_operations & FEW != FEW:
            pytest.skip("the device has no ballots or no shuffles")
        monkeypatch.setattr(info, "supported_operations", FEW)


@pytest.mark.usefixtures("few_operations")
@pytest.mark.parametrize("kind", [i32, f32, i64, u16, v3], ids=lambda kind: kind.name)
def test_missing_operations_use_shuffles(kind: DType) -> None:
    test_reductions(kind)
    test_scans(kind)
    test_clusters(kind, 4)
    test_exchanges(kind)


@pytest.mark.usefixtures("few_operations")
def test_missing_votes_are_emulated() -> None:
    test_votes()
    test_while_condition_with_a_vote_is_evaluated_each_round()
    test_sums_of_workgroups_of_any_shape((3, 5, 7))


@pytest.mark.parametrize("few", [False, True])
def test_reductions_in_a_branch(few: bool, request: pytest.FixtureRequest) -> None:
    """Invocations that are elsewhere give nothing, and the first active one gets what is neutral."""
    if few:
        request.getfixturevalue("few_operations")

    @vd.shader(workgroups=GROUPS, local_size=LOCAL)
    def kernel(out: Buff[i32], data: Buff[i32]) -> None:
        i = vc.global_invocation_id().x
        if (data[i] + 99) % 3 != 0:  # GLSL says nothing of remainders of negative numbers
            out[i] = vc.subgroup_add(data[i])
            out[i + ROWS] = vc.subgroup_exclusive_min(data[i])
            out[i + 2 * ROWS] = vc.subgroup_inclusive_max(data[i])
            out[i + 3 * ROWS] = vc.subgroup_clustered_add(data[i], 2)

    values = np.random.default_rng(7).integers(-50, 50, ROWS).astype(np.int32)
    out = filled(4 * ROWS, i32, 77)
    kernel(out, buffer_of(i32, values))
    found = out.read(0).reshape(4, ROWS)
    expected = np.full_like(found, 77)
    size = device().sub_group_size
    for begin in range(0, ROWS, size):
        here = [i for i in range(begin, begin + size) if values[i] % 3]
        for place, i in enumerate(here):
            expected[0, i] = values[here].sum()
            expected[1, i] = values[here[:place]].min(initial=2**31 - 1)
            expected[2, i] = values[here[: place + 1]].max()
            expected[3, i] = sum(values[k] for k in here if k // 2 == i // 2)
    same(found, expected)


def test_wrong_arguments_are_refused() -> None:
    with vc.shader_context() as context:
        x, f, m, ballot = context.declare_input_arguments([Const[i32], Const[f32], Const[m2], Const[uv4]])
        for error, message, misuse in (
            (AttributeError, "subgroup_shuffle: expected a GPU value", lambda: vc.subgroup_shuffle(1, 2)),
            (AttributeError, "subgroup_inclusive_add", lambda: vc.subgroup_inclusive_add(1)),
            (ValueError, "integers or booleans, got float32", lambda: vc.subgroup_exclusive_xor(f)),
            (ValueError, "not defined for mat2", lambda: vc.subgroup_add(m)),
            (ValueError, "not defined for bool", lambda: vc.subgroup_add(x > 1)),
            (ValueError, "power of two", lambda: vc.subgroup_clustered_add(x, 3)),
            (ValueError, "power of two", lambda: vc.subgroup_clustered_add(x, x)),
            (TypeError, "expected an integer, got float32", lambda: vc.subgroup_shuffle(x, f)),
            (TypeError, "expected an integer, got 1.5", lambda: vc.subgroup_broadcast(x, 1.5)),
            (ValueError, "no subgroup has an invocation -1", lambda: vc.subgroup_broadcast(x, -1)),
            (ValueError, "of 0 to 3", lambda: vc.subgroup_quad_broadcast(x, 4)),
            (ValueError, "of 0 to 3", lambda: vc.subgroup_quad_broadcast(x, x)),
            (TypeError, "expected a uvec4", lambda: vc.subgroup_ballot_bit_count(x)),
            (TypeError, "expected a uvec4", lambda: vc.subgroup_inverse_ballot(3)),
            (TypeError, "expected an integer", lambda: vc.subgroup_ballot_bit_extract(ballot, f)),
            (TypeError, "expected a GPU value or a bool", lambda: vc.subgroup_all(3)),
        ):
            with pytest.raises(error, match=message) as raised:
                misuse()
            assert "test_subgroups.py:" in str(raised.value)


def test_missing_operations_are_reported_before_compilation() -> None:
    info = vd.get_devices()[0]
    every = frozenset({"shaderSubgroupExtendedTypes"})
    for rule, kind, changes, message in (
        (vc.subgroup_add, i32, {"supported_operations": 0x3}, "'arithmetic'"),
        (lambda x: vc.subgroup_all(x > 1), i32, {"supported_operations": 0x1}, "'vote'"),
        (lambda x: vc.subgroup_shuffle_up(x, 1), i32, {"supported_operations": 0x1F}, "'shuffle_relative'"),
        (lambda x: vc.subgroup_eq_mask(), i32, {"supported_operations": 0x7}, "'ballot'"),
        (vc.subgroup_add, i32, {"supported_stages": 0}, "compute kernels"),
        (vc.subgroup_add, i64, {"features": frozenset()}, "int64 (shaderSubgroupExtendedTypes)"),
        (vc.subgroup_add, i32, {"features": frozenset()}, None),
    ):
        with vc.shader_context() as context:
            (buffer,) = context.declare_input_arguments([Buff[kind]])
            rule(buffer[0]).to_register()
        have: dict[str, Any] = {"supported_operations": 0xFF, "supported_stages": 0x20, "features": every}
        found = find_missing_operation(
            usage(context.get_description().kernel), dataclasses.replace(info, **(have | changes))
        )
        assert (found is None) if message is None else (message in str(found))
