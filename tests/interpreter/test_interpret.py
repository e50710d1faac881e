"""`kernel.interpret(...)`: what it takes, what it runs, and what it refuses, against NumPy alone."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
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
    Var,
    bf16,
    c32,
    c64,
    c128,
    dv2,
    f16,
    f32,
    f64,
    hv4,
    i8,
    i16,
    i32,
    i64,
    iv3,
    m2,
    m3,
    u8,
    u16,
    u32,
    u64,
    uhv3,
    v2,
    v3,
)
from vkdispatch.codegen.trace.current import current
from vkdispatch.compiler.ir import expressions as ex


@vd.shader("data.size")
def scale(data: Buff[f32], alpha: Const[f32] = 3.0) -> None:
    i = vc.global_invocation_id().x
    data[i] = data[i] * alpha


# ---- sizes and arguments -------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 7, 256, 257, 1000])
def test_arrays_change_in_place(count: int) -> None:
    data = np.arange(count, dtype=np.float32)
    assert scale.interpret(data, 2.0) is None
    np.testing.assert_array_equal(data, np.arange(count) * 2)
    scale.interpret(data=data)
    np.testing.assert_array_equal(data, np.arange(count) * 6)


def test_grid_larger_than_a_batch() -> None:
    data = np.ones(1_000_003, np.float32)
    scale.interpret(data, 2.0)
    assert (data == 2).all()


def test_interpreting_needs_no_device() -> None:
    code = (
        "import numpy as np, vkdispatch as vd, vkdispatch.codegen as vc\n"
        "@vd.shader('data.size')\n"
        "def kernel(data: vc.Buff[vd.float32]):\n"
        "    data[vc.global_invocation_id().x] += 1\n"
        "data = np.zeros(5, np.float32)\n"
        "kernel.interpret(data)\n"
        "from vkdispatch.base.context import is_context_initialized\n"
        "print(data.sum(), is_context_initialized())\n"
    )
    nowhere = {"VK_DRIVER_FILES": "/nonexistent", "VK_ICD_FILENAMES": "/nonexistent"}
    # without a source file the kernel cannot show its lines, which is fine
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **nowhere},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["5.0", "False"]


@pytest.mark.parametrize(
    ("size", "groups"),
    [
        ({"exec_size": (5, 3, 2)}, (3, 2, 2)),
        ({"workgroups": (2, 1, 3)}, (2, 1, 3)),
        ({"exec_size": 4}, (2, 1, 1)),
    ],
)
def test_built_in_values(size: dict[str, Any], groups: tuple[int, int, int]) -> None:
    local = (2, 2, 1)

    @vd.shader(local_size=local)
    def body(out: Buff[u32]) -> None:
        gid, lid, group = vc.global_invocation_id(), vc.local_invocation_id(), vc.workgroup_id()
        shape, count = vc.workgroup_size(), vc.num_workgroups()
        at = ((gid.z * 64 + gid.y) * 64 + gid.x) * 8
        out[at] = 1
        out[at + 1] = lid.x + lid.y * 10 + lid.z * 100
        out[at + 2] = group.x + group.y * 10 + group.z * 100
        out[at + 3] = vc.local_invocation_index()
        out[at + 4] = count.x + count.y * 10 + count.z * 100
        out[at + 5] = shape.x + shape.y * 10 + shape.z * 100

    out = np.zeros((4, 64, 64, 8), np.uint32).reshape(-1, 64, 8)
    body.interpret(out, **size)
    out = out.reshape(4, 64, 64, 8)
    extent = tuple(n * s for n, s in zip(groups, local, strict=True))
    if "exec_size" in size:
        extent = size["exec_size"] if isinstance(size["exec_size"], tuple) else (size["exec_size"], 1, 1)
    assert out[..., 0].sum() == np.prod(extent)
    for z in range(extent[2]):
        for y in range(extent[1]):
            for x in range(extent[0]):
                row = out[z, y, x]
                assert row[1] == x % 2 + y % 2 * 10
                assert row[2] == x // 2 + y // 2 * 10 + z * 100
                assert row[3] == x % 2 + y % 2 * 2
                assert row[4] == groups[0] + groups[1] * 10 + groups[2] * 100
                assert row[5] == 122


def test_shapes_and_launch_sizes_count_elements() -> None:
    @vd.shader(lambda args: (args.data.shape[1], args.data.shape[0]))
    def body(data: Buff[v3], out: Buff[i32]) -> None:
        at = vc.global_invocation_id()
        index = at.y * data.shape.y.to_dtype(u32) + at.x
        data[index] = data[index] + 1.0
        for axis in range(4):
            out[axis] = data.shape[axis]

    data, out = np.zeros((4, 5, 3), np.float32), np.zeros(4, np.int32)
    body.interpret(data, out)
    assert (data == 1).all()
    assert out.tolist() == [4, 5, 1, 20]


@dataclass
class Wave:
    height: f32
    direction: v2
    count: i32


def test_arguments_of_every_form() -> None:
    @vd.shader(exec_size=1)
    def body(out: Buff[f32], matrix: Const[m2], wave: Wave, z: Var[c64], flag: Const[dt.bool_]) -> None:
        out[0] = matrix[1][0] * 100 + matrix[0][1]
        out[1] = wave.height + wave.direction.y * wave.count.to_dtype(f32)
        out[2] = z.real * 10 + z.imag
        out[3] = flag.to_dtype(f32)

    out = np.zeros(4, np.float32)
    body.interpret(out, [[1, 2], [3, 4]], Wave(0.5, (1, 2), 3), 4 + 5j, True)
    assert out.tolist() == [302, 6.5, 45, 1]


# ---- every type ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", [i16, u16, i32, u32, i64, u64, f16, f32, f64, v3, dv2, hv4, iv3, uhv3], ids=lambda k: k.name
)
def test_types_compute_in_their_own_width(kind: DType) -> None:
    @vd.shader("data.size")
    def body(data: Buff[kind]) -> None:
        i = vc.global_invocation_id().x
        value = data[i].to_register()
        data[i] = value * value + value * 3

    host = np.dtype(dt.to_numpy_dtype(dt.component_type(kind)))
    values = np.arange(40 * 3 * 4).reshape(40, -1)[:, : dt.component_count(kind)].astype(host) * 7
    data = values.reshape(40, *kind.true_numpy_shape).copy()
    body.interpret(data)
    with np.errstate(all="ignore"):
        expected = values * values + values * host.type(3)
    np.testing.assert_array_equal(data, expected.reshape(data.shape))


@pytest.mark.parametrize("kind", [c64, c128], ids=lambda k: k.name)
def test_complex_numbers(kind: DType) -> None:
    @vd.shader("a.size")
    def body(a: Buff[kind], b: Buff[kind]) -> None:
        i = vc.global_invocation_id().x
        b[i] = a[i] * b[i] / (a[i] + 2) - a[i].conjugate()

    host = dt.to_numpy_dtype(kind)
    a = (np.arange(9) + 1j * np.arange(9)[::-1]).astype(host)
    b = (np.arange(9) - 3j).astype(host)
    given = b.copy()
    body.interpret(a, b)
    np.testing.assert_allclose(b, a * given / (a + 2) - a.conj(), rtol=1e-5)


def test_complex_numbers_of_halves_are_pairs() -> None:
    @vd.shader("a.size")
    def body(a: Buff[c32]) -> None:
        i = vc.global_invocation_id().x
        a[i] = a[i] * a[i]

    a = np.array([[1, 2], [3, -1]], np.float16)
    body.interpret(a)
    assert a.tolist() == [[-3, 4], [8, -6]]


def test_matrices_hold_columns() -> None:
    @vd.shader("a.size")
    def body(a: Buff[m3], b: Buff[m3], v: Buff[v3], w: Buff[v3]) -> None:
        i = vc.global_invocation_id().x
        v[i], w[i] = a[i] * v[i], w[i] * a[i]
        a[i] = a[i] * b[i]
        b[i] = vc.transpose(b[i])

    generator = np.random.default_rng(1)
    a, b = (generator.uniform(-2, 2, (11, 3, 3)).astype(np.float32) for _ in range(2))
    v, w = (generator.uniform(-2, 2, (11, 3)).astype(np.float32) for _ in range(2))
    # as mathematics writes them: rows first
    first, second = a.swapaxes(1, 2), b.swapaxes(1, 2)
    image, row = np.einsum("nij,nj->ni", first, v), np.einsum("ni,nij->nj", w, first)
    product = (first @ second).swapaxes(1, 2)
    transposed = b.swapaxes(1, 2).copy()
    body.interpret(a, b, v, w)
    for actual, expected in ((v, image), (w, row), (a, product), (b, transposed)):
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


def test_small_types_are_stored_in_their_own_size() -> None:
    @vd.shader("a.size")
    def body(a: Buff[i8], b: Buff[u8], c: Buff[dt.bool_], d: Buff[bf16]) -> None:
        i = vc.global_invocation_id().x
        a[i] = a[i] * 2
        b[i] += 100
        c[i] = a[i] > 0
        d[i] = d[i] + 1.00390625

    a, b = np.array([100, -100, 5], np.int8), np.array([200, 10, 155], np.uint8)
    c, d = np.array([False, True, False]), np.array([0x3F80, 0, 0x4000], np.uint16)
    body.interpret(a, b, c, d)
    assert a.tolist() == [-56, 56, 10]
    assert b.tolist() == [44, 110, 255]
    assert c.tolist() == [False, True, True]
    # 2.00390625 and 3.00390625 lie between multiples of 2**-6: to the nearest; 1.00390625 is a tie: to even
    assert d.tolist() == [0x4000, 0x3F80, 0x4040]


def test_non_contiguous_arrays() -> None:
    whole = np.zeros((6, 4), np.float32)
    scale.interpret(whole[:, 1], 2.0)
    whole[:, 1] = 1
    scale.interpret(whole[::2, 1], 5.0)
    assert whole[:, 1].tolist() == [5, 1, 5, 1, 5, 1]
    assert not whole[:, (0, 2, 3)].any()


def test_buffers_of_a_device() -> None:
    data = vd.asbuffer(np.arange(10, dtype=np.float32))
    scale.interpret(data, 2.0)
    assert data.read(0).tolist() == list(range(0, 20, 2))


# ---- what it refuses -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.zeros(4), "'data'.*expected a NumPy array of float32.*float64"),
        (np.zeros(4, ">f4"), "'data'.*float32"),
        ([1.0], "'data'.*expected a NumPy array"),
    ],
)
def test_wrong_arrays_are_refused(data: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        scale.interpret(data)


def test_wrong_arguments_are_refused() -> None:
    data = np.zeros(4, np.float32)
    with pytest.raises(TypeError, match=r"'alpha'.*expected a number"):
        scale.interpret(data, "two")
    with pytest.raises(TypeError, match="no argument 'beta'"):
        scale.interpret(data, beta=1)
    with pytest.raises(ValueError, match=r"subgroup_size.*power of two up to 128, got 3"):
        scale.interpret(data, subgroup_size=3)
    with pytest.raises(ValueError, match="not both"):
        scale.interpret(data, exec_size=1, workgroups=1)
    data.flags.writeable = False
    with pytest.raises(ValueError, match=r"'data'.*read-only"):
        scale.interpret(data)
    with pytest.raises(ValueError, match="last axes are"):
        vectors = vd.shader(exec_size=1, arg_type_annotations=[Buff[v3]])(lambda data: None)
        vectors.interpret(np.zeros((4, 2), np.float32))


def test_raw_glsl_is_refused() -> None:
    @vd.shader(exec_size=1)
    def body(out: Buff[f32]) -> None:
        vc.if_statement(out[0] > 0, "return;")
        out[0] = vc.str_to_dtype(f32, "1.0")

    with pytest.raises(NotImplementedError, match=r"GLSL.*test_interpret.py:\d+"):
        body.interpret(np.zeros(1, np.float32))
    with pytest.raises(NotImplementedError, match=r"GLSL.*test_interpret.py:\d+"):
        body.interpret(np.ones(1, np.float32))


# ---- indices out of range ------------------------------------------------------------------------


def _line(function: Any, text: str) -> int:
    lines = open(__file__, encoding="utf-8").read().splitlines()  # noqa: SIM115, PTH123
    return next(n for n, line in enumerate(lines, 1) if text in line)


@pytest.mark.parametrize(("count", "size"), [(10, 11), (1, 2)])
def test_index_out_of_range_raises(count: int, size: int) -> None:
    data = np.zeros(count, np.float32)
    with pytest.raises(IndexError) as caught:
        scale.interpret(data, exec_size=size)
    text = str(caught.value)
    line = _line(scale, "data[i] = data[i] * alpha")
    for part in (
        "scale",
        "'data'",
        f"index {count} ",
        f"shape ({count},)",
        f"invocation ({count}, 0, 0)",
        f"test_interpret.py:{line}",
    ):
        assert part in text
    scale.interpret(data, exec_size=size, check=False)


def test_negative_indices_and_unchecked_accesses() -> None:
    @vd.shader(exec_size=(2, 3), local_size=(2, 3))
    def body(data: Buff[f32], out: Buff[f32]) -> None:
        gid = vc.global_invocation_id()
        place = (gid.y * 2 + gid.x).to_dtype(i32)
        out[place - 2] = data[place - 1] + 1.0

    data, out = np.arange(10, 14, dtype=np.float32), np.zeros(4, np.float32)
    with pytest.raises(
        IndexError,
        match=r"index -1 is out of bounds for buffer 'data' of shape \(4,\), in invocation \(0, 0, 0\)",
    ):
        body.interpret(data, out)
    assert not out.any()
    body.interpret(data, out, check=False)
    # reads beyond give 0, writes beyond do nothing
    assert out.tolist() == [12, 13, 14, 1]


def test_operands_that_are_not_evaluated_are_not_checked() -> None:
    @vd.shader(exec_size=8)
    def body(data: Buff[i32], out: Buff[i32]) -> None:
        i = vc.global_invocation_id().x.to_dtype(i32)
        inside = vc.all(i < 4, data[i] > 1)
        chosen = vc.ShaderVariable(ex.select((i >= 4).expr, ex.literal(-1, i32), data[i].expr))
        out[i] = chosen * 2 + inside.to_dtype(i32)

    data, out = np.arange(4, dtype=np.int32), np.zeros(8, np.int32)
    body.interpret(data, out)
    assert out.tolist() == [0, 2, 5, 7, -2, -2, -2, -2]


@pytest.mark.parametrize("far", [1 << 32, -(1 << 40), (1 << 32) + 1])
def test_64_bit_indices_are_not_truncated(far: int) -> None:
    @vd.shader(exec_size=4)
    def body(out: Buff[i32], far: Const[i64]) -> None:
        out[vc.global_invocation_id().x.to_dtype(i64) + far] = 1

    out = np.zeros(4, np.int32)
    with pytest.raises(IndexError, match=f"index {far} is out of bounds"):
        body.interpret(out, far)
    body.interpret(out, far, check=False)
    assert not out.any()
    body.interpret(out, 0)
    assert out.all()


def test_buffers_viewed_as_another_type() -> None:
    data = vd.asbuffer(np.arange(5, dtype=np.float32))

    @vd.shader(exec_size=2)
    def body(pairs: Buff[v2]) -> None:
        i = vc.global_invocation_id().x
        pairs[i] = pairs[i] * 10

    with pytest.raises(TypeError, match="'pairs': expected elements of vec2, the buffer has float32"):
        body.interpret(data)
    data = vd.asbuffer(np.arange(6, dtype=np.float32))
    body.interpret(data.view(vd.vec2))
    assert data.read(0).tolist() == [0, 10, 20, 30, 4, 5]


def test_indices_of_shared_arrays_and_vectors() -> None:
    @vd.shader(exec_size=8, local_size=8)
    def tile(out: Buff[i32], at: Const[i32]) -> None:
        values = vc.shared_buffer(i32, 8)
        values[vc.local_invocation_index() + at.to_dtype(u32)] = 1

    @vd.shader(exec_size=8)
    def lane(out: Buff[f32], at: Const[i32]) -> None:
        value = vc.new_vec3_register(1, 2, 3)
        out[vc.global_invocation_id().x] = value[at]

    with pytest.raises(IndexError, match=r"index 8 .*shared buffer.* of 8, in invocation \(5, 0, 0\)"):
        tile.interpret(np.zeros(1, np.int32), 3)
    with pytest.raises(IndexError, match="index 3 is out of bounds for a vec3 of 3"):
        lane.interpret(np.zeros(8, np.float32), 3)
    out = np.zeros(8, np.float32)
    lane.interpret(out, 2)
    assert (out == 3).all()


@pytest.mark.parametrize("stored", ["register", "buffer 'out' at index 3"])
def test_stored_nan_raises(stored: str) -> None:
    @vd.shader(exec_size=5)
    def body(out: Buff[v2], values: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        root = vc.sqrt(values[i])
        if stored == "register":
            root = root.to_register()
        out[i].y = root

    values = np.array([0, 1, 2, -1, 4], np.float32)
    body.interpret(np.zeros((5, 2), np.float32), values)
    with pytest.raises(FloatingPointError, match=rf"NaN stored in {stored}.*, in invocation \(3, 0, 0\)"):
        body.interpret(np.zeros((5, 2), np.float32), values, check="nan")


def test_loop_limit_raises() -> None:
    @vd.shader(exec_size=4)
    def body(out: Buff[i32]) -> None:
        i = vc.global_invocation_id().x
        rounds = vc.new_int_register()
        with vc.while_block(rounds < i.to_dtype(i32) * 10):
            rounds += 1
        out[i] = rounds

    out = np.zeros(4, np.int32)
    body.interpret(out, check={"bounds", "loops=30"})
    assert out.tolist() == [0, 10, 20, 30]
    with pytest.raises(RuntimeError, match=r"more than 29 rounds.*invocation \(3, 0, 0\)"):
        body.interpret(out, check="loops=29")
    for check, error in (("speed", ValueError), (5, TypeError), ("nan=3", ValueError)):
        with pytest.raises(error, match="check: expected a bool"):
            body.interpret(out, check=check)


# ---- workgroups ----------------------------------------------------------------------------------


@vd.shader("data.size", local_size=64)
def reverse(data: Buff[i32], waits: Const[i32]) -> None:
    tile = vc.shared_buffer(i32, 64)
    lane, i = vc.local_invocation_index(), vc.global_invocation_id().x
    tile[lane] = data[i]
    with vc.if_block(waits == 1):
        vc.barrier()
    data[i] = tile[63 - lane]


def test_each_workgroup_has_its_own_shared_memory() -> None:
    data = np.arange(64 * 2000, dtype=np.int32)
    expected = data.reshape(-1, 64)[:, ::-1].ravel()
    reverse.interpret(data, 1, races=True)
    np.testing.assert_array_equal(data, expected)


def test_missing_barrier_is_a_race() -> None:
    data = np.arange(128, dtype=np.int32)
    with pytest.raises(
        RuntimeError, match=r"shared buffer.*element \d+ is written by invocation .* and read by"
    ):
        reverse.interpret(data, 0, races=True)


def test_races_between_workgroups() -> None:
    @vd.shader(exec_size=512, local_size=64)
    def body(out: Buff[i32], form: Const[i32]) -> None:
        i = vc.global_invocation_id().x.to_dtype(i32)
        with vc.if_block(form == 0):
            out[i % 256] = i
        with vc.else_if_block(form == 1):
            out[0] = 5
        with vc.else_if_block(form == 2):
            out[i % 256] += 1
        with vc.else_block():
            out[(i + 1) % 512] = out[i] + 1

    for form in (0, 2, 3):
        with pytest.raises(RuntimeError, match=r"element.*nothing orders"):
            body.interpret(np.zeros(512, np.int32), form, races=True)
    out = np.zeros(512, np.int32)
    # one value from all is no clash
    body.interpret(out, 1, races=True)
    assert out[0] == 5


def test_barrier_that_only_some_invocations_reach_raises() -> None:
    @vd.shader(exec_size=128, local_size=64)
    def body(out: Buff[i32], limit: Const[u32]) -> None:
        with vc.if_block(vc.global_invocation_id().x < limit):
            vc.barrier()
        out[0] = 1

    with pytest.raises(
        RuntimeError, match=r"only 6 of the 64 invocations of workgroup \(1, 0, 0\).*test_interpret.py:"
    ):
        body.interpret(np.zeros(1, np.int32), 70)
    # a whole workgroup may leave it out, and invocations beyond the execution size hold nobody up
    body.interpret(np.zeros(1, np.int32), 64)
    body.interpret(np.zeros(1, np.int32), 128, exec_size=70)


def test_barrier_after_a_return_raises() -> None:
    @vd.shader(exec_size=64, local_size=64)
    def body(out: Buff[i32]) -> None:
        with vc.if_block(vc.local_invocation_index() == 5):
            vc.return_statement()
        vc.barrier()

    with pytest.raises(RuntimeError, match="only 63 of the 64"):
        body.interpret(np.zeros(1, np.int32))


# ---- control flow --------------------------------------------------------------------------------


def test_collatz() -> None:
    @vd.shader("out.size")
    def body(out: Buff[i32]) -> None:
        n = vc.global_invocation_id().x.to_dtype(i32).to_register()
        n += 1
        steps = vc.new_int_register()
        with vc.while_block(n != 1):
            with vc.if_block(n % 2 == 0):
                n[:] = n // 2
            with vc.else_block():
                n[:] = n * 3 + 1
            steps += 1
        out[vc.global_invocation_id().x] = steps

    def steps_of(n: int) -> int:
        steps = 0
        while n != 1:
            n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
        return steps

    out = np.zeros(500, np.int32)
    body.interpret(out)
    assert out.tolist() == [steps_of(n) for n in range(1, 501)]


@pytest.mark.parametrize(
    "bounds", [(0, 5, 1), (5, 0, -2), (0, 5, 0), (3, 3, 1), (-4, 9, 3), (2, -9, 4), (-1, -8, -3)]
)
def test_loops_run_as_often_as_range(bounds: tuple[int, int, int]) -> None:
    @vd.shader(exec_size=3)
    def body(out: Buff[i32], start: Const[i32], stop: Const[i32], step: Const[i32]) -> None:
        row = vc.global_invocation_id().x.to_dtype(i32)
        total = vc.new_int_register()
        recorder = current()
        first = (start + row).to_register()
        counter = vc.ShaderVariable(recorder.open_for(first.expr, stop.expr, step.expr))
        with_seven = (counter == 7).expr
        recorder.open_if(with_seven)
        recorder.next_round()
        recorder.close()
        recorder.open_if((total > 20).expr)
        recorder.leave_loop()
        recorder.close()
        total[:] = total * 3 + counter
        recorder.close()
        out[row] = total

    out = np.full(3, 99, np.int32)
    body.interpret(out, *bounds)
    for row in range(3):
        total = 0
        start, stop, step = bounds
        for counter in range(start + row, stop, step) if step else ():
            if counter == 7:
                continue
            if total > 20:
                break
            total = total * 3 + counter
        assert out[row] == total


def test_deep_and_shared_expressions() -> None:
    @vd.shader("out.size")
    def body(out: Buff[u32]) -> None:
        i = vc.global_invocation_id().x
        value = i
        for _ in range(3000):
            value = value + 1
        for _ in range(40):
            value = value + value
        out[i] = value

    out = np.zeros(9, np.uint32)
    body.interpret(out)
    assert out.tolist() == [(i + 3000) * 2**40 % 2**32 for i in range(9)]


def test_kernels_that_print(capsys: pytest.CaptureFixture[str]) -> None:
    @vd.shader(exec_size=3, local_size=2)
    def body(out: Buff[i32]) -> None:
        i = vc.global_invocation_id().x
        with vc.if_block(i != 1):
            vc.print("here", i, "100%")
        vc.printf("%d and %.2f", i, 0.5)

    body.interpret(np.zeros(1, np.int32))
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["here 0 100%", "0 and 0.50", "1 and 0.50", "here 2 100%", "2 and 0.50"]


def test_buffer_given_twice_is_the_same_memory() -> None:
    @vd.shader(exec_size=4)
    def fill(first: Buff[v2], second: Buff[v2]) -> None:
        i = vc.global_invocation_id().x
        with vc.if_block(i < 2):
            first[i] = vc.to_vec2(i, 1)
        with vc.else_block():
            second[i] = vc.to_vec2(i, 10 * i)

    @vd.shader(exec_size=4)
    def mix(words: Buff[u32], pairs: Buff[v2]) -> None:
        words[0] = pairs[0].x.to_dtype(u32)

    data = vd.asbuffer(np.zeros(4, np.complex64))
    fill.interpret(data, data)
    assert data.read(0).tolist() == [1j, 1 + 1j, 2 + 20j, 3 + 30j]
    data = vd.asbuffer(np.zeros(4, np.complex64))
    fill.interpret(data, data.view(vd.vec2))
    assert data.read(0).tolist() == [1j, 1 + 1j, 2 + 20j, 3 + 30j]
    with pytest.raises(ValueError, match="'words' and argument 'pairs' share memory"):
        mix.interpret(data.view(vd.uint32), data)
