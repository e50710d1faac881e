"""Invocations together: ids, shared memory, barriers, atomics, subgroups, flat indices."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType
from vkdispatch.codegen.abbreviations import (
    Buff,
    Const,
    Var,
    f16,
    f32,
    f64,
    i16,
    i32,
    i64,
    iv4,
    u16,
    u32,
    u64,
    uv2,
    uv3,
    v2,
    v3,
)
from vkdispatch.shader import launchable

from .running import SIZES, buffer_of, close, evaluate, filled, floats, host, integers, need, same, wrapped

GRIDS = [
    ((257,), (64, 1, 1)),
    ((1,), (1, 1, 1)),
    ((4099,), (128, 1, 1)),
    ((10, 7), (8, 4, 1)),
    ((33, 17), (16, 16, 1)),
    ((5, 6, 7), (2, 3, 4)),
    ((1, 1, 9), (1, 1, 4)),
]


# -- ids


@pytest.mark.parametrize(("grid", "local"), GRIDS)
def test_ids_of_every_invocation(grid: tuple[int, ...], local: tuple[int, int, int]) -> None:
    nx, ny, nz = (*grid, 1, 1)[:3]

    @vd.shader(exec_size=grid, local_size=local)
    def body(
        where: Buff[uv3],
        inside: Buff[uv3],
        group: Buff[uv3],
        sizes: Buff[uv3],
        counts: Buff[uv3],
        flat: Buff[u32],
    ) -> None:
        gid = vc.global_invocation_id()
        i = (gid.z * ny + gid.y) * nx + gid.x
        where[i] = gid
        inside[i] = vc.local_invocation_id()
        group[i] = vc.workgroup_id()
        sizes[i] = vc.workgroup_size()
        counts[i] = vc.num_workgroups()
        flat[i] = vc.local_invocation_index()

    count = nx * ny * nz
    buffers = [filled(count, uv3, 99) for _ in range(5)]
    flat = filled(count, u32, 99)
    body(*buffers, flat)
    where, inside, group, sizes, counts = (buffer.read(0).astype(int) for buffer in buffers)
    ids = np.array([(x, y, z) for z, y, x in itertools.product(range(nz), range(ny), range(nx))])
    size = np.array(local)
    same(where, ids)
    same(inside, ids % size)
    same(group, ids // size)
    same(sizes, np.broadcast_to(size, ids.shape))
    same(counts, np.broadcast_to(-(-np.array([nx, ny, nz]) // size), ids.shape))
    same(flat.read(0), (inside[:, 2] * local[1] + inside[:, 1]) * local[0] + inside[:, 0])


@pytest.mark.parametrize("local", [1, 7, 32, 64, 256])
def test_no_invocation_runs_beyond_exec_size(local: int) -> None:
    @vd.shader(exec_size=100, local_size=local)
    def body(out: Buff[i32]) -> None:
        out[vc.global_invocation_id().x] += 1

    out = filled(512, i32)
    body(out)
    same(out.read(0), [1] * 100 + [0] * 412)


def test_launches_by_workgroup_count() -> None:
    @vd.shader(workgroups=3, local_size=64, flags=vc.ShaderFlags.NO_EXEC_BOUNDS)
    def body(out: Buff[i32]) -> None:
        out[vc.global_invocation_id().x] += 1

    out = filled(512, i32)
    body(out)
    same(out.read(0), [1] * 192 + [0] * 320)


@pytest.mark.parametrize("shape", [(7,), (4, 5), (3, 4, 5), (1,), (1, 64)])
def test_shapes(shape: tuple[int, ...]) -> None:
    @vd.shader(exec_size=1)
    def body(out: Buff[iv4], data: Buff[f32], other: Buff[f32]) -> None:
        out[0] = data.shape
        out[1] = other.shape
        out[2].x = data.shape.w // 2
        out[2].y = data.shape[1]

    out = filled(3, iv4)
    body(out, vd.Buffer(shape, vd.float32), vd.Buffer((2, 9), vd.float32))
    expected = [*(*shape, 1, 1)[:3], int(np.prod(shape))]
    found = out.read(0)
    same(found[:2], [expected, [2, 9, 1, 18]])
    same(found[2, :2], [expected[3] // 2, expected[1]])


def test_a_shape_follows_the_buffer_of_each_call() -> None:
    @vd.shader(exec_size=1)
    def body(out: Buff[i32], data: Buff[f32]) -> None:
        out[0] = data.shape.w

    out = filled(1, i32)
    for size in (3, 70, 1):
        body(out, vd.Buffer((size,), vd.float32))
        same(out.read(0), size)


# -- flat indices and positions


@pytest.mark.parametrize("shape", [(7, 9), (3, 4, 5), (1, 6), (2, 1, 8)])
def test_flat_to_position_and_back(shape: tuple[int, ...]) -> None:
    size, axes = int(np.prod(shape)), len(shape)
    kind = uv2 if axes == 2 else uv3

    @vd.shader(exec_size=size)
    def body(fixed: Buff[kind], dynamic: Buff[uv3], back: Buff[u32], data: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        fixed[i] = vc.ravel_index(i, shape)
        dynamic[i] = vc.ravel_index(i, data.shape)
        back[i] = vc.unravel_index(vc.ravel_index(i, shape), shape)
        back[i + size] = vc.unravel_index(
            vc.ravel_index(i.to_dtype(i32), shape).to_register(), data.shape
        ).to_dtype(u32)

    fixed, dynamic, back = filled(size, kind), filled(size, uv3), filled(2 * size, u32)
    body(fixed, dynamic, back, vd.Buffer(shape, vd.float32))
    positions = np.stack(np.unravel_index(np.arange(size), shape), 1)
    same(fixed.read(0), positions)
    same(dynamic.read(0)[:, :axes], positions)
    same(dynamic.read(0)[:, axes:], 0)
    same(back.read(0), np.tile(np.ravel_multi_index(tuple(positions.T), shape), 2))


def test_flat_indices_of_python_numbers() -> None:
    assert vc.unravel_index((1, 2), (3, 4)) == 6
    assert vc.unravel_index((1, 2, 3), (3, 4, 5)) == np.ravel_multi_index((1, 2, 3), (3, 4, 5))
    assert vc.unravel_index(5, (3, 4)) == 5
    assert vc.unravel_index((5,), (3, 4)) == (5,)

    @vd.shader(exec_size=1)
    def body(out: Buff[uv3], data: Buff[f32]) -> None:
        out[0] = vc.ravel_index(17, (2, 3, 4))
        out[1] = vc.ravel_index(17, data.shape)
        out[2].x = vc.unravel_index((1, 2), data.shape).to_dtype(u32)

    out = filled(3, uv3)
    body(out, vd.Buffer((5, 6), vd.float32))
    same(out.read(0), [[1, 1, 1], [2, 5, 0], [8, 0, 0]])


def test_reindexing_a_smaller_image_into_a_larger() -> None:
    small, large = (5, 6), (9, 11)

    @vd.shader("source.size")
    def paste(out: Buff[f32], source: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        out[vc.unravel_index(vc.ravel_index(i, small).to_register(), large)] = source[i]

    values = floats(f32, 30, 1).reshape(small)
    out = vd.asbuffer(np.zeros(large, np.float32))
    paste(out, vd.asbuffer(values))
    expected = np.zeros(large)
    expected[:5, :6] = values
    same(out.read(0), expected)


# -- shared memory and barriers


@pytest.mark.parametrize("local", [32, 64, 128, 256])
@pytest.mark.parametrize("groups", [1, 5])
def test_sum_of_blocks(groups: int, local: int) -> None:
    @vd.shader(workgroups=groups, local_size=local)
    def block_sum(out: Buff[f32], data: Buff[f32]) -> None:
        lane = vc.local_invocation_id().x
        part = vc.shared_buffer(f32, local, "part")
        part[lane] = data[vc.global_invocation_id().x]
        vc.barrier()
        step = local // 2
        while step:
            with vc.if_block(lane < step):
                part[lane] += part[lane + step]
            vc.barrier()
            step //= 2
        with vc.if_block(lane == 0):
            out[vc.workgroup_id().x] = part[0]

    values = np.random.default_rng(1).integers(-1000, 1000, groups * local).astype(np.float32)
    out = filled(groups, f32)
    block_sum(out, buffer_of(f32, values))
    same(out.read(0), values.reshape(groups, local).sum(1))


def test_sum_of_blocks_with_a_loop_on_the_device() -> None:
    local, groups = 128, 9

    @vd.shader(workgroups=groups, local_size=local)
    def block_max(out: Buff[i32], data: Buff[i32]) -> None:
        lane = vc.local_invocation_index()
        part = vc.shared_buffer(i32, local)
        part[lane] = data[vc.global_invocation_id().x]
        vc.barrier()
        step = vc.new_uint_register(local // 2)
        with vc.while_block(step > 0):
            with vc.if_block(lane < step):
                part[lane] = vc.max(part[lane], part[lane + step])
            vc.memory_barrier_shared()
            vc.barrier()
            step >>= 1
        with vc.if_block(lane == 0):
            out[vc.workgroup_id().x] = part[0]

    values = integers(i32, groups * local, 1)
    out = filled(groups, i32)
    block_max(out, buffer_of(i32, values))
    same(out.read(0), values.reshape(groups, local).max(1))


@pytest.mark.parametrize("shape", [(16, 16), (64, 48), (33, 70), (1, 100)])
def test_transpose_through_shared_memory(shape: tuple[int, int]) -> None:
    tile, (rows, columns) = 16, shape
    grid = (-(-columns // tile), -(-rows // tile))

    @vd.shader(workgroups=grid, local_size=(tile, tile), flags=vc.ShaderFlags.NO_EXEC_BOUNDS)
    def transpose(out: Buff[f32], data: Buff[f32]) -> None:
        patch = vc.shared_buffer(f32, tile * (tile + 1), "patch")
        lane, group = vc.local_invocation_id(), vc.workgroup_id()
        x, y = group.x * tile + lane.x, group.y * tile + lane.y
        with vc.if_block(vc.all(x < columns, y < rows)):
            patch[lane.y * (tile + 1) + lane.x] = data[y * columns + x]
        vc.barrier()
        x2, y2 = group.y * tile + lane.x, group.x * tile + lane.y
        with vc.if_block(vc.all(x2 < rows, y2 < columns)):
            out[y2 * rows + x2] = patch[lane.x * (tile + 1) + lane.y]

    values = floats(f32, rows * columns, 1).reshape(shape)
    out = vd.asbuffer(np.zeros((columns, rows), np.float32))
    transpose(out, vd.asbuffer(values))
    same(out.read(0), values.T)


@pytest.mark.parametrize("kind", [f16, f64, i16, u16, i32, u32, i64, u64, v2, v3], ids=lambda kind: kind.name)
def test_shared_arrays_of_every_type(kind: DType) -> None:
    need(kind)
    local = 64

    @vd.shader("data.size", local_size=local)
    def reverse(data: Buff[kind]) -> None:
        lane, i = vc.local_invocation_id().x, vc.global_invocation_id().x
        kept, doubled = vc.shared_buffer(kind, local), vc.shared_buffer(kind, local)
        kept[lane] = data[i]
        doubled[local - 1 - lane] = data[i] + data[i]
        vc.barrier()
        data[i] = kept[local - 1 - lane] + doubled[lane]

    values = np.random.default_rng(1).integers(0, 50, (192, *kind.true_numpy_shape)).astype(host(kind))
    data = buffer_of(kind, values)
    reverse(data)
    same(data.read(0), 3 * values.reshape(3, local, -1)[:, ::-1].reshape(values.shape))


def test_scan_with_double_buffering() -> None:
    local = 256

    @vd.shader("data.size", local_size=local)
    def scan(data: Buff[i32]) -> None:
        lane = vc.local_invocation_id().x.to_register("lane")
        i = vc.global_invocation_id().x
        sums = vc.shared_buffer(i32, 2 * local, "sums")
        side = vc.new_uint_register(var_name="side")
        sums[lane] = data[i]
        vc.barrier()
        step = 1
        while step < local:
            other = local - side
            with vc.if_block(lane >= step):
                sums[other + lane] = sums[side + lane] + sums[side + lane - step]
            with vc.else_block():
                sums[other + lane] = sums[side + lane]
            side[:] = local - side
            vc.barrier()
            step *= 2
        data[i] = sums[side + lane]

    values = np.random.default_rng(1).integers(-100, 100, 4 * local).astype(np.int32)
    data = buffer_of(i32, values)
    scan(data)
    same(data.read(0), values.reshape(4, local).cumsum(1).ravel())


def test_matrix_product_in_tiles() -> None:
    tile, size = 8, 40

    @vd.shader(exec_size=(size, size), local_size=(tile, tile))
    def product(out: Buff[f32], left: Buff[f32], right: Buff[f32]) -> None:
        a, b = vc.shared_buffer(f32, tile * tile, "a"), vc.shared_buffer(f32, tile * tile, "b")
        gid, lane = vc.global_invocation_id(), vc.local_invocation_id()
        total, k = vc.new_float_register(), vc.new_uint_register()
        with vc.while_block(k < size):
            a[lane.y * tile + lane.x] = left[gid.y * size + k + lane.x]
            b[lane.y * tile + lane.x] = right[(k + lane.y) * size + gid.x]
            vc.barrier()
            for j in range(tile):
                total += a[lane.y * tile + j] * b[j * tile + lane.x]
            vc.barrier()
            k += tile
        out[gid.y * size + gid.x] = total

    a, b = floats(f32, size * size, 1).reshape(size, size), floats(f32, size * size, 2).reshape(size, size)
    out = vd.asbuffer(np.zeros((size, size), np.float32))
    product(out, vd.asbuffer(a), vd.asbuffer(b))
    close(out.read(0), a.astype(float) @ b, 1e-4, 1e-3)


# -- atomics


@pytest.mark.parametrize("kind", [i32, u32], ids=lambda kind: kind.name)
@pytest.mark.parametrize("count", SIZES)
def test_histogram(count: int, kind: DType) -> None:
    @vd.shader("data.size")
    def histogram(bins: Buff[kind], data: Buff[u32]) -> None:
        vc.atomic_add(bins[data[vc.global_invocation_id().x] % 13], 1)

    data = integers(u32, count, 1)
    bins = filled(13, kind)
    histogram(bins, buffer_of(u32, data))
    same(bins.read(0), np.bincount(data % 13, minlength=13))


def test_atomics_return_the_previous_value() -> None:
    count = 4099

    @vd.shader(exec_size=count)
    def ticket(counter: Buff[u32], tickets: Buff[u32], weights: Buff[i32], total: Buff[i32]) -> None:
        i = vc.global_invocation_id().x
        before = vc.atomic_add(counter[0], 1)
        tickets[i] = before
        vc.atomic_add(total[0], weights[i])
        vc.atomic_add(total[1], -2)
        vc.atomic_add(total[2], i)

    counter, tickets, total = filled(1, u32, 5), filled(count, u32), filled(3, i32)
    weights = np.random.default_rng(1).integers(-1000, 1000, count).astype(np.int32)
    ticket(counter, tickets, buffer_of(i32, weights), total)
    same(counter.read(0), count + 5)
    same(np.sort(tickets.read(0)), np.arange(count) + 5)
    same(total.read(0), [weights.sum(), -2 * count, count * (count - 1) // 2])


def test_histogram_in_shared_memory() -> None:
    local = 128

    @vd.shader("data.size", local_size=local)
    def histogram(bins: Buff[u32], data: Buff[u32]) -> None:
        lane = vc.local_invocation_id().x
        own = vc.shared_buffer(u32, 16, "own")
        with vc.if_block(lane < 16):
            own[lane] = 0
        vc.barrier()
        vc.atomic_add(own[data[vc.global_invocation_id().x] & 15], 1)
        vc.barrier()
        with vc.if_block(lane < 16):
            vc.atomic_add(bins[lane], own[lane])

    data = integers(u32, 10 * local, 1)
    bins = filled(16, u32)
    histogram(bins, buffer_of(u32, data))
    same(bins.read(0), np.bincount(data & 15, minlength=16))


# -- subgroups


def subgroups_of(rule: Any, kind: DType, values: Any, local: int = 64) -> tuple[Any, Any]:
    """Results of `rule` in every invocation, and in which subgroup of the whole grid each one was."""
    count = len(values)

    @vd.shader(exec_size=count, local_size=local)
    def body(out: Buff[kind], groups: Buff[u32], data: Buff[kind]) -> None:
        i = vc.global_invocation_id().x
        groups[i] = vc.workgroup_id().x * vc.num_subgroups() + vc.subgroup_id()
        out[i] = rule(data[i].to_register())

    out, groups = filled(count, kind), filled(count, u32)
    body(out, groups, buffer_of(kind, values))
    return out.read(0), groups.read(0)


REDUCTIONS = {
    "add": (vc.subgroup_add, np.add),
    "mul": (vc.subgroup_mul, np.multiply),
    "min": (vc.subgroup_min, np.minimum),
    "max": (vc.subgroup_max, np.maximum),
    "and": (vc.subgroup_and, np.bitwise_and),
    "or": (vc.subgroup_or, np.bitwise_or),
    "xor": (vc.subgroup_xor, np.bitwise_xor),
}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("kind", [i32, u32], ids=lambda kind: kind.name)
def test_subgroup_reductions_of_integers(kind: DType, name: str) -> None:
    function, twin = REDUCTIONS[name]
    values = integers(kind, 256, 1)
    found, groups = subgroups_of(function, kind, values)
    for group in np.unique(groups):
        inside = groups == group
        same(found[inside], twin.reduce(values[inside], dtype=host(kind)), name)


@pytest.mark.parametrize("name", ["add", "mul", "min", "max"])
@pytest.mark.parametrize("kind", [f32, f64], ids=lambda kind: kind.name)
def test_subgroup_reductions_of_floats(kind: DType, name: str) -> None:
    need(kind)
    function, twin = REDUCTIONS[name]
    values = floats(kind, 256, 1, 0.5, 1.5)
    found, groups = subgroups_of(function, kind, values)
    for group in np.unique(groups):
        inside = groups == group
        close(found[inside], np.full(inside.sum(), twin.reduce(values[inside])), 1e-5, what=name)


def test_subgroup_ids() -> None:
    local = 64

    @vd.shader(workgroups=3, local_size=local)
    def body(where: Buff[iv4], elected: Buff[u32]) -> None:
        i = vc.global_invocation_id().x
        where[i] = vc.to_ivec4(
            vc.subgroup_id(), vc.num_subgroups(), vc.subgroup_size(), vc.subgroup_invocation_id()
        )
        with vc.if_block(vc.subgroup_elect()):
            elected[i] = 1
        vc.subgroup_barrier()

    where, elected = filled(3 * local, iv4), filled(3 * local, u32)
    body(where, elected)
    found, chosen = where.read(0).reshape(3, local, 4), elected.read(0).reshape(3, local)
    count, size = found[0, 0, 1], found[0, 0, 2]
    same(found[..., 1], count)
    same(found[..., 2], size)
    assert size == vd.get_context().subgroup_size
    assert count == -(-local // size)
    for group in range(3):
        pairs = {(int(row[0]), int(row[3])) for row in found[group]}
        assert pairs == {(i // size, i % size) for i in range(local)}
        # one elected invocation in each subgroup
        same(np.bincount(found[group, :, 0][chosen[group] == 1], minlength=count), 1)


def test_subgroups_and_shared_memory_sum_a_block() -> None:
    local, groups = 256, 7

    @vd.shader(workgroups=groups, local_size=local)
    def block_sum(out: Buff[u32], data: Buff[u32]) -> None:
        parts = vc.shared_buffer(u32, local, "parts")
        total = vc.subgroup_add(data[vc.global_invocation_id().x]).to_register("total")
        with vc.if_block(vc.subgroup_elect()):
            parts[vc.subgroup_id()] = total
        vc.barrier()
        with vc.if_block(vc.local_invocation_index() == 0):
            sum_, k = vc.new_uint_register(), vc.new_uint_register()
            with vc.while_block(k < vc.num_subgroups()):
                sum_ += parts[k]
                k += 1
            out[vc.workgroup_id().x] = sum_

    values = integers(u32, groups * local, 1)
    out = filled(groups, u32)
    block_sum(out, buffer_of(u32, values))
    same(out.read(0), values.reshape(groups, local).sum(1, dtype=np.uint32))


@pytest.mark.parametrize("kind", [v2, v3], ids=lambda kind: kind.name)
def test_subgroup_sums_of_vectors(kind: DType) -> None:
    values = np.random.default_rng(1).integers(-50, 50, (128, kind.child_count)).astype(np.float32)
    found, groups = subgroups_of(vc.subgroup_add, kind, values)
    for group in np.unique(groups):
        inside = groups == group
        same(found[inside], np.broadcast_to(values[inside].sum(0), found[inside].shape))


# -- memory


def test_every_barrier_function_runs() -> None:
    @vd.shader("out.size", local_size=64)
    def body(out: Buff[i32]) -> None:
        i = vc.global_invocation_id().x
        for fence in (
            vc.barrier, vc.memory_barrier, vc.memory_barrier_buffer, vc.memory_barrier_shared,
            vc.memory_barrier_image, vc.group_memory_barrier, vc.subgroup_barrier,
        ):  # fmt: skip
            out[i] += 1
            fence()

    out = filled(256, i32)
    body(out)
    same(out.read(0), 7)


def test_one_kernel_after_another_sees_its_writes() -> None:
    @vd.shader("out.size")
    def shift(out: Buff[i32], data: Buff[i32]) -> None:
        i = vc.global_invocation_id().x
        size = out.shape.w.to_dtype(u32)
        out[i] = data[(i + 1) % size] + 1

    values = integers(i32, 4099, 1) % 1000
    buffers = [buffer_of(i32, values), filled(4099, i32)]
    for step in range(101):
        shift(buffers[(step + 1) % 2], buffers[step % 2])
    same(buffers[1].read(0), np.roll(values, -101) + 101)


def test_writes_through_computed_indices() -> None:
    @vd.shader("order.size")
    def scatter(out: Buff[i32], order: Buff[u32], scale: Const[i32]) -> None:
        i = vc.global_invocation_id().x
        out[order[i]] = i.to_dtype(i32) * scale
        out[order[order[i]] + 1000] = order[i].to_dtype(i32)

    order = np.random.default_rng(1).permutation(1000).astype(np.uint32)
    out = filled(2000, i32)
    scatter(out, buffer_of(u32, order), 3)
    expected = np.zeros(2000, int)
    expected[order] = np.arange(1000) * 3
    expected[order[order] + 1000] = order
    same(out.read(0), expected)


def test_negative_numbers_survive_index_arithmetic() -> None:
    def forms(a: Any) -> list[Any]:
        return [vc.abs(a) % 5, (a + 1000).to_dtype(u32) % 7]

    x = np.arange(-50, 50, dtype=np.int32)
    magnitude, wrapped_around = evaluate(forms, (i32, x))
    same(magnitude, np.abs(x) % 5)
    same(wrapped_around, wrapped(x + 1000, u32) % 7)


# -- shared memory of which calls decide the size


def sum_pieces(x: Buff[f32], facts: Buff[i32], n: Const[i32], rows: Const[u32]) -> None:
    lane, group = vc.local_invocation_id().x, vc.workgroup_id().x
    tile = vc.shared_buffer(f32, 2 * n, "tile")
    grid = vc.shared_buffer(i32, (n // 2 + 1, rows), "grid")
    for k in vc.range(2 * n):
        if k % 8 == lane:
            tile[k] = x[group * 8 + lane] + k
    grid[0, 1] = 5
    vc.barrier()
    total = 0.0
    for k in vc.range(2 * n):
        total += tile[k]
    x[group * 8 + lane] = total
    facts[0] = tile.size * 1000 + grid.size * 10 + grid[0, 1] + grid.shape.y * 100000


@pytest.mark.parametrize("check", [False, True])
def test_calls_decide_the_size_of_shared_memory(check: bool) -> None:
    kernel = vd.shader(workgroups="x.size // 8", local_size=8, check=check)(sum_pieces)
    assert "tile[/* as calls decide */]" in str(kernel.get_src())
    with pytest.raises(RuntimeError, match="calls decide the size"):
        kernel.build()
    before = np.arange(24, dtype=np.float32)
    for n, rows in ((1, 2), (5, 3), (8, 3), (5, 3)):
        tiles = np.array([[before[g * 8 + k % 8] + k for k in range(2 * n)] for g in range(3)])
        x, facts = vd.asbuffer(before), vd.asbuffer(np.zeros(1, np.int32))
        kernel(x, facts, n, rows)
        hosts = before.copy(), np.zeros(1, np.int32)
        kernel.interpret(*hosts, n, rows)
        for found in (x.read(0), hosts[0]):
            np.testing.assert_array_equal(found, np.repeat(tiles.sum(axis=1), 8))
        count = 2000 * n + (n // 2 + 1) * rows * 10 + 5 + rows * 100000
        assert facts.read(0)[0] == hosts[1][0] == count
    for n in (0, -3):
        for launch, arguments in ((kernel, (x, facts)), (kernel.interpret, hosts)):
            with pytest.raises(ValueError, match=rf"'tile': its size is {2 * n} .* at least 1 \(test_work"):
                launch(*arguments, n, 2)  # type: ignore[operator]
    with pytest.raises(ValueError, match=r"shared buffers take \d+ bytes .*'tile' 2000000.* has \d+"):
        kernel(x, facts, 10**6, 2)


def test_sizes_of_shared_memory_are_kept_in_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launchable, "_MAX_SIZES", 8)
    kernel = vd.shader(workgroups="x.size // 8", local_size=8)(sum_pieces)
    x, facts = vd.asbuffer(np.zeros(8, np.float32)), vd.asbuffer(np.zeros(1, np.int32))
    for n in range(1, 14):
        kernel(x, facts, n, 2)
        assert facts.read(0)[0] == 2000 * n + (n // 2 + 1) * 20 + 5 + 200000
    assert len(kernel._built) == 8
    graph = vd.CommandGraph()
    x.write(np.arange(8, dtype=np.float32))
    kernel(x, facts, 4, 2, graph=graph)
    kernel(x, facts, 6, 3, graph=graph)
    graph.submit()
    first = np.arange(8).sum() + 28
    assert x.read(0)[0] == 12 * first + 66 and facts.read(0)[0] == 12000 + 120 + 5 + 300000


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (lambda x, n, v: n * 1.5, "integers made of Const"),
        (lambda x, n, v: v, "a Var may change"),
        (lambda x, n, v: 2 * v + n, "a Var may change"),
        (lambda x, n, v: x.size, "integers made of Const"),
        (lambda x, n, v: vc.global_invocation_id().x, "integers made of Const"),
        (lambda x, n, v: (n, 0), "must be at least 1"),
        (lambda x, n, v: (n, 1, 1, 1), "tuple of 1 to 3"),
    ],
)
def test_other_sizes_of_shared_memory_are_refused(size: Any, message: str) -> None:
    def kernel(x: Buff[f32], n: Const[i32], v: Var[i32]) -> None:
        vc.shared_buffer(f32, size(x, n, v))

    with pytest.raises((TypeError, ValueError), match=message):
        vd.shader(1)(kernel)
