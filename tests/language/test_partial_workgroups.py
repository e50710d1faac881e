"""Kernels with barriers whose `exec_size` does not fill their workgroups."""

from __future__ import annotations

import math
import os
import random
import warnings
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, f32, i32, u32

from .random_programs import COUNTERS, SLOTS, Program
from .random_values import FLOATS, INTEGERS
from .running import Array, integers, on_nvidia, supports
from .test_random_kernels import FIRST, KERNELS, LOCAL, ROWS

pytestmark = pytest.mark.filterwarnings("ignore:.*runs once, while Python traces")

# Invocations along each axis, and of a workgroup.
GRIDS: list[tuple[tuple[int, ...], tuple[int, int, int]]] = [
    ((1,), (64, 1, 1)),
    ((5,), (64, 1, 1)),
    ((64,), (64, 1, 1)),
    ((67,), (64, 1, 1)),
    ((1009,), (128, 1, 1)),
    ((3, 1), (8, 8, 1)),
    ((13, 7), (8, 4, 1)),
    ((17, 31), (16, 16, 1)),
    ((1, 1, 1), (4, 4, 4)),
    ((5, 3, 2), (4, 2, 2)),
    ((7, 11, 3), (2, 4, 8)),
]
grids = pytest.mark.parametrize(("grid", "local"), GRIDS)


def ran(body: Any, grid: tuple[int, ...], local: tuple[int, int, int], *arrays: Array) -> list[Array]:
    """Run a kernel in every way there is on copies of arrays; returns what it leaves there."""
    results: list[list[Array]] = []
    kernel = vd.shader(exec_size=grid, local_size=local)(body)
    checked = vd.shader(exec_size=grid, local_size=local, check=True)(body)
    for run in (kernel, checked):
        buffers = [vd.asbuffer(array) for array in arrays]
        run(*buffers)
        results.append([buffer.read(0) for buffer in buffers])
    copies = [array.copy() for array in arrays]
    kernel.interpret(*copies)
    results.append(copies)
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(one, two)
    return results[0]


def groups_of(grid: tuple[int, ...], local: tuple[int, int, int]) -> Array:
    """Number of its workgroup for each invocation of a grid, x fastest."""
    nx, ny, nz = (*grid, 1, 1)[:3]
    z, y, x = np.indices((nz, ny, nx))
    counts = [math.ceil(n / size) for n, size in zip((nx, ny, nz), local, strict=True)]
    group = (z // local[2] * counts[1] + y // local[1]) * counts[0] + x // local[0]
    return group.ravel()


def flat_id(grid: tuple[int, ...]) -> Any:
    nx, ny, _ = (*grid, 1, 1)[:3]
    gid = vc.global_invocation_id()
    return (gid.z * ny + gid.y) * nx + gid.x


@grids
def test_a_loop_with_barriers_runs_all_its_rounds(grid: tuple[int, ...], local: tuple[int, int, int]) -> None:
    def body(out: Buff[u32]) -> None:
        shared = vc.shared_buffer(u32, 1)
        first = vc.local_invocation_index() == 0
        rounds = vc.new_register(u32, 0)
        total = vc.new_register(u32, 0)
        if first:
            shared[0] = 0
        while rounds < 5:
            vc.barrier()
            if first:
                j = vc.new_register(u32, 0)
                while j < 64:
                    shared[0] += j
                    j += 1
            vc.barrier()
            total += shared[0]
            rounds += 1
        out[flat_id(grid)] = total

    size = math.prod(grid)
    (out,) = ran(body, grid, local, np.full(size + 64, 7, np.uint32))
    np.testing.assert_array_equal(out[:size], 2016 * (1 + 2 + 3 + 4 + 5))
    np.testing.assert_array_equal(out[size:], 7)


@grids
def test_sums_of_workgroups(grid: tuple[int, ...], local: tuple[int, int, int]) -> None:
    groups, threads = groups_of(grid, local), math.prod(local)

    def body(x: Buff[i32], sums: Buff[i32], counts: Buff[i32]) -> None:
        shared = vc.shared_buffer(i32, threads)
        index = vc.local_invocation_index()
        nx, ny, nz = (*grid, 1, 1)[:3]
        gid = vc.global_invocation_id()
        size, group = vc.workgroup_size(), vc.workgroup_id()
        # invocations beyond the size store nothing: the sum is taken over those that do
        inside = vc.new_register(u32, 1)
        extents = []
        for axis, n in zip("xyz", (nx, ny, nz), strict=True):
            left = vc.to_uint(n) - getattr(group, axis) * getattr(size, axis)
            extents.append(vc.min(left, getattr(size, axis)))
            inside *= extents[-1]
        lid = vc.local_invocation_id()
        packed = (lid.z * extents[1] + lid.y) * extents[0] + lid.x
        shared[packed] = x[flat_id(grid)]
        vc.barrier()
        half = vc.new_register(u32, inside)
        while half > 1:
            upper = (half + 1) // 2
            value = vc.new_register(i32, shared[packed])
            if packed + upper < half:
                value += shared[packed + upper]
            vc.barrier()
            if packed < upper:
                shared[packed] = value
            vc.barrier()
            half[:] = upper
        counts_before = vc.workgroup_id()
        number = (counts_before.z * vc.num_workgroups().y + counts_before.y) * vc.num_workgroups().x
        if index == 0:
            sums[number + counts_before.x] = shared[0]
        vc.atomic_add(counts[number + counts_before.x], 1)
        del gid

    size = math.prod(grid)
    x = np.random.default_rng(3).integers(-1000, 1000, size).astype(np.int32)
    count = groups.max() + 1
    zeros = np.zeros(count, np.int32)
    _, sums, counts = ran(body, grid, local, x, zeros, zeros)
    np.testing.assert_array_equal(sums, np.bincount(groups, x).astype(np.int32))
    np.testing.assert_array_equal(counts, np.bincount(groups))


@pytest.mark.parametrize("size", [1, 2, 31, 64, 65, 127, 1009])
def test_a_stencil_in_shared_memory(size: int) -> None:
    def body(x: Buff[f32], y: Buff[f32]) -> None:
        tile = vc.shared_buffer(f32, 66)
        i, lid = vc.global_invocation_id().x, vc.local_invocation_id().x
        tile[lid + 1] = x[i]
        if lid == 0:
            tile[0] = x[i - 1] if i > 0 else 0.0
        if (lid == 63) | (i == size - 1):
            tile[lid + 2] = x[i + 1] if i + 1 < size else 0.0
        vc.barrier()
        y[i] = tile[lid] + 2 * tile[lid + 1] + tile[lid + 2]

    x = np.random.default_rng(4).integers(-50, 50, size).astype(np.float32)
    padded = np.pad(x, 1)
    _, y = ran(body, (size,), (64, 1, 1), x, np.full(size + 9, -1, np.float32))
    np.testing.assert_array_equal(y[:size], padded[:-2] + 2 * x + padded[2:])
    np.testing.assert_array_equal(y[size:], -1)


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 2, 5), (8, 8, 8), (17, 13, 11), (9, 16, 23)])
def test_a_tiled_product_of_matrices(shape: tuple[int, int, int]) -> None:
    rows, inner, columns = shape
    tiles = math.ceil(inner / 8)

    def body(a: Buff[f32], b: Buff[f32], c: Buff[f32], count: Const[i32] = tiles) -> None:
        left, right = vc.shared_buffer(f32, (8, 8)), vc.shared_buffer(f32, (8, 8))
        gid, lid = vc.global_invocation_id(), vc.local_invocation_id()
        total = vc.new_register(f32, 0)
        for tile in vc.range(count):
            # those at the edge load for the ones that are not there
            along = vc.new_register(u32, 0)
            while along < 8:
                k = tile * 8 + vc.to_int(along)
                if (lid.x == 0) & (k < inner):
                    left[lid.y, along] = a[gid.y * inner + vc.to_uint(k)]
                if (lid.y == 0) & (k < inner):
                    right[along, lid.x] = b[vc.to_uint(k) * columns + gid.x]
                along += 1
            vc.barrier()
            for k in range(8):
                if tile * 8 + k < inner:
                    total += left[lid.y, k] * right[k, lid.x]
            vc.barrier()
        c[gid.y * columns + gid.x] = total

    rng = np.random.default_rng(5)
    a = rng.integers(-9, 9, (rows, inner)).astype(np.float32)
    b = rng.integers(-9, 9, (inner, columns)).astype(np.float32)
    c = np.full(rows * columns + 5, -1, np.float32)
    *_, c = ran(body, (columns, rows), (8, 8, 1), a.ravel(), b.ravel(), c)
    np.testing.assert_array_equal(c[:-5].reshape(rows, columns), a @ b)
    np.testing.assert_array_equal(c[-5:], -1)


@grids
def test_invocations_beyond_the_bound_have_no_effects(
    grid: tuple[int, ...], local: tuple[int, int, int]
) -> None:
    size = math.prod(grid)

    def body(x: Buff[u32], counts: Buff[u32], last: Buff[u32]) -> None:
        shared = vc.shared_buffer(u32, 4)
        index, i = vc.local_invocation_index(), flat_id(grid)
        if index < 4:
            shared[index] = 0
        if index == 0:
            for slot in range(4):
                shared[slot] = 0
        vc.barrier()
        place = vc.atomic_add(counts[0], 1)
        within = vc.atomic_add(shared[0], 1)
        vc.atomic_max(shared[1], within + 1)
        vc.barrier()
        if shared[0] == shared[1]:
            vc.atomic_add(counts[1], 1)
        vc.atomic_max(last[0], place)
        x[i] += shared[0]

    groups = groups_of(grid, local)
    x, counts, last = ran(
        body, grid, local, np.full(size + 64, 3, np.uint32), np.zeros(2, np.uint32), np.zeros(1, np.uint32)
    )
    np.testing.assert_array_equal(x[:size], 3 + np.bincount(groups)[groups])
    np.testing.assert_array_equal(x[size:], 3)
    np.testing.assert_array_equal(counts, size)
    assert last[0] == size - 1


@pytest.mark.parametrize("size", [1, 7, 8, 61, 64, 100, 1009])
def test_subgroup_operations_count_invocations_within_bounds(size: int) -> None:
    def body(x: Buff[i32], sums: Buff[i32], counts: Buff[i32]) -> None:
        shared = vc.shared_buffer(i32, 128)
        lid, i = vc.local_invocation_id().x, vc.global_invocation_id().x
        total = vc.subgroup_add(x[i])
        members = vc.subgroup_add(vc.new_register(i32, 1))
        if vc.subgroup_elect():
            shared[2 * vc.subgroup_id()] = total
            shared[2 * vc.subgroup_id() + 1] = members
        vc.barrier()
        if lid == 0:
            subgroups = vc.min(
                (size - vc.workgroup_id().x * 64 + vc.subgroup_size() - 1) // vc.subgroup_size(),
                vc.num_subgroups(),
            )
            j = vc.new_register(u32, 0)
            while j < subgroups:
                sums[vc.workgroup_id().x] += shared[2 * j]
                counts[vc.workgroup_id().x] += shared[2 * j + 1]
                j += 1
        x[i] = total + members

    x = np.random.default_rng(6).integers(-99, 99, size).astype(np.int32)
    groups = np.arange(size) // 64
    buffers = [vd.asbuffer(array) for array in (x, *np.zeros((2, groups[-1] + 1), np.int32))]
    vd.shader(exec_size=size, local_size=(64, 1, 1))(body)(*buffers)
    result, sums, counts = (buffer.read(0) for buffer in buffers)
    np.testing.assert_array_equal(sums, np.bincount(groups, x))
    np.testing.assert_array_equal(counts, np.bincount(groups))
    subgroup = vd.get_context().device_infos[0].sub_group_size
    lanes = groups * 64 + np.arange(size) % 64 // subgroup
    np.testing.assert_array_equal(result, (np.bincount(lanes, x) + np.bincount(lanes))[lanes])


@pytest.mark.parametrize("size", [1, 5, 64, 69])
def test_loop_conditions_read_from_shared_memory(size: int) -> None:
    def body(x: Buff[i32], limit: Buff[i32], out: Buff[i32]) -> None:
        shared = vc.shared_buffer(i32, 2)
        lid, i = vc.local_invocation_id().x, vc.global_invocation_id().x
        # the same in all invocations, which nobody can tell from the text
        steps = vc.new_register(i32, x[i])
        if lid == 0:
            shared[0] = 0
            shared[1] = 1
        vc.barrier()
        while shared[1] != 0:
            vc.barrier()
            if lid == 0:
                shared[0] += 10
                shared[1] = vc.to_int(shared[0] < limit[0])
            vc.barrier()
            if shared[0] == 50:
                break
        vc.barrier()
        total = vc.new_register(i32, 0)
        for k in vc.range(steps):
            vc.barrier()
            if lid == 0:
                shared[0] += k
            vc.barrier()
            if k == limit[1]:
                continue
            total += shared[0]
            vc.barrier()
        if steps > 3:
            vc.barrier()
            if lid == 0:
                shared[0] = 1000
            vc.barrier()
        elif shared[0] > limit[0]:
            vc.barrier()
            total += 1
        out[i] = total + shared[0]

    for steps, limit in ((4, 30), (3, 100), (2, 20), (3, 20)):
        x = np.full(size, steps, np.int32)
        bounds = np.array([limit, 1], np.int32)
        *_, out = ran(body, (size,), (64, 1, 1), x, bounds, np.full(size + 64, -1, np.int32))
        shared = 10
        while shared < limit and shared != 50:
            shared += 10
        total = 0
        for k in range(steps):
            shared += k
            total += shared if k != 1 else 0
        if steps > 3:
            shared = 1000
        elif shared > limit:
            total += 1
        np.testing.assert_array_equal(out[:size], total + shared)
        np.testing.assert_array_equal(out[size:], -1)


def test_jumps_after_the_last_barrier_may_diverge() -> None:
    def body(x: Buff[i32], out: Buff[i32]) -> None:
        shared = vc.shared_buffer(i32, 64)
        lid, i = vc.local_invocation_id().x, vc.global_invocation_id().x
        total = vc.new_register(i32, 0)
        for k in vc.range(4):
            vc.barrier()
            if lid == 0:
                shared[0] = k
            vc.barrier()
            if x[i] % 4 == k:
                continue
            total += shared[0] + 1
        out[i] = total
        if x[i] % 3 == 0:
            return
        out[i] += 100

    x = np.arange(70, dtype=np.int32)
    _, out = ran(body, (70,), (64, 1, 1), x, np.zeros(128, np.int32))
    expected = 10 - (x % 4 + 1) + np.where(x % 3 == 0, 0, 100)
    np.testing.assert_array_equal(out, np.pad(expected, (0, 58)))


@pytest.mark.parametrize("size", [1, 5, 63, 70])
def test_uniform_return_before_the_barriers(size: int) -> None:
    def body(x: Buff[i32], out: Buff[i32], stop: Const[i32] = 1) -> None:
        shared = vc.shared_buffer(i32, 64)
        lid, i = vc.local_invocation_id().x, vc.global_invocation_id().x
        if stop == 0:
            return
        if x[0] == 3:
            return
        shared[lid] = x[i]
        vc.barrier()
        out[i] = shared[0]

    for first in (3, 4):
        x = np.full(size, first, np.int32)
        _, out = ran(body, (size,), (64, 1, 1), x, np.zeros(size, np.int32))
        np.testing.assert_array_equal(out, 0 if first == 3 else 4)


def test_checks_apply_to_invocations_within_bounds(capfd: pytest.CaptureFixture[str]) -> None:
    @vd.shader(exec_size=3, local_size=(64, 1, 1), check=True)
    def kernel(x: Buff[i32], y: Buff[i32]) -> None:
        shared = vc.shared_buffer(i32, 3)
        i = vc.global_invocation_id().x
        shared[i] = x[i]
        vc.barrier()
        assert i < 3
        if vc.local_invocation_index() < 1:
            vc.print("first", shared[i])
        y[i] = shared[2 - i]

    y = vd.asbuffer(np.zeros(3, np.int32))
    kernel(vd.asbuffer(np.array([5, 6, 7], np.int32)), y)
    np.testing.assert_array_equal(y.read(0), [7, 6, 5])
    vd.queue_wait_idle()
    assert capfd.readouterr().out == "first 5\n"


def test_checks_find_index_errors_within_bounds() -> None:
    @vd.shader(exec_size=3, local_size=(64, 1, 1), check=True)
    def kernel(x: Buff[i32]) -> None:
        shared = vc.shared_buffer(i32, 64)
        i = vc.global_invocation_id().x
        shared[i] = x[i]
        vc.barrier()
        while shared[0] < 10:
            x[i + shared[0]] = 1
            vc.barrier()
            if i == 0:
                shared[0] += 1
            vc.barrier()

    with pytest.raises(IndexError, match="index 3 is out of bounds"):
        kernel(vd.asbuffer(np.array([0, 0, 0], np.int32)))
        vd.queue_wait_idle()


# -- random programs -------------------------------------------------------------------------------


class PartialProgram(Program):
    """A random program that looks at no element of shared memory that no invocation wrote."""

    def index(self, size: int) -> Any:
        index = super().index(size)
        if size != self.local:
            return index
        there = vc.min(self.extent - vc.workgroup_id().x * self.local, self.local)
        return index % there.to_dtype(index.var_type)

    extent: Any


def random_kernel(seed: int, extent: int) -> Any:
    """The program of a seed as a kernel over out, source and counters that runs so many invocations."""
    kinds = [kind for kind in (*INTEGERS, *FLOATS) if supports(kind)]

    @vd.shader(exec_size=extent, local_size=LOCAL, rewrite=seed % 8 == 0)
    def body(out: Buff[i32], source: Buff[i32], counters: Buff[i32]) -> None:
        program = PartialProgram(seed, kinds, out, source, counters, ROWS, LOCAL, nvidia=on_nvidia())
        program.extent = vc.to_uint(extent)
        program.write()

    return body


def check_random(seed: int) -> None:
    """Compare a random program on the device with the interpreter's."""
    extent = random.Random(seed).choice([1, 3, 17, 31, 32, 33, 61, 97, 127])
    body = random_kernel(seed, extent)
    source = integers(i32, ROWS, seed)
    out, counters = np.zeros(ROWS * SLOTS, np.int32), np.zeros(COUNTERS, np.int32)
    buffers = [vd.asbuffer(array) for array in (out, source, counters)]
    body(*buffers)
    size = vd.get_context().device_infos[0].sub_group_size
    body.interpret(out, source, counters, subgroup_size=size, races=True)
    actual, _, counted = (buffer.read(0) for buffer in buffers)
    assert np.array_equal(actual, out), (seed, extent)
    assert np.array_equal(counted, counters), (seed, extent)


@pytest.mark.skipif(
    "wide" in os.environ.get("VKDISPATCH_FORCE_VARIANT", ""),
    reason="arithmetic on indices does not wrap around at 32 bits in wide kernels",
)
@pytest.mark.parametrize("start", range(FIRST, FIRST + KERNELS, 20))
def test_random_kernels(start: int) -> None:
    for seed in range(start, min(start + 5, FIRST + KERNELS)):
        check_random(seed)


def test_registers_used_after_a_subgroup_operation() -> None:
    @vd.shader((7, 4), local_size=(8, 2))
    def kernel(out: Buff[i32], source: Buff[i32]) -> None:
        i = vc.global_invocation_id().to_dtype(vd.ivec3)
        place = i.x + 7 * i.y
        if place == 1000:
            out[0] = -1
        before = source[place] * 3
        one = vc.subgroup_shuffle(vc.to_int(1), vc.subgroup_invocation_id())
        before += one
        vc.barrier()
        out[place] = before

    source = np.arange(28, dtype=np.int32)
    out = vd.Buffer((28,), i32)
    kernel(out, vd.asbuffer(source))
    assert out.read(0).tolist() == (source * 3 + 1).tolist()


def test_tiles_with_gaps_warn_at_the_store() -> None:
    @vd.shader("sums.size", local_size=64)
    def sum_all(x: Buff[f32], sums: Buff[f32]) -> None:
        i, own = vc.global_invocation_id().x, vc.local_invocation_id().x
        tile = vc.shared_buffer(f32, 64)
        total = 0.0
        for start in range(0, x.size, 64):
            tile[own] = x[start + own]
            vc.barrier()
            for k in range(64):
                total += tile[k]
            vc.barrier()
        sums[i] = total

    x = vd.asbuffer(np.ones(640, np.float32))
    whole, partial = vd.Buffer(128, vd.float32), vd.Buffer(100, vd.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sum_all(x, whole)
    assert (whole.read(0) == 640).all()
    with pytest.warns(vd.KernelWarning, match=r"exec_size \(99, 1, 1\) .* incomplete") as caught:
        sum_all(x, partial, exec_size=99)
    assert "tile[own] = x[start + own]" in str(caught[0].message)
    with warnings.catch_warnings():  # one warning for each kernel
        warnings.simplefilter("error")
        sum_all(x, partial, exec_size=98)


def test_own_elements_in_shared_memory_do_not_warn() -> None:
    @vd.shader("y.size", local_size=64)
    def largest(x: Buff[f32], y: Buff[f32]) -> None:
        i, own = vc.global_invocation_id().x, vc.local_invocation_id().x
        shared = vc.shared_buffer(f32, 64)
        shared[own] = x[i]
        vc.barrier()
        y[i] = shared[own]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        largest(vd.asbuffer(np.ones(100, np.float32)), vd.Buffer(100, vd.float32))
