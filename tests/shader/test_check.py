"""Checked kernels: bad indices, NaNs and endless loops are errors with a place, and do no harm."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, Var, f32, i32, i64, u32, v2, v4
from vkdispatch.compiler.ir import expressions as ex


def _buffer(values: Any, kind: Any = np.float32) -> vd.Buffer[Any]:
    return vd.asbuffer(np.array(values, kind))


def _line(marker: str) -> int:
    """Line of this file that has a marker."""
    lines = Path(__file__).read_text().splitlines()
    (found,) = [number for number, text in enumerate(lines, 1) if text.endswith(f"# {marker}")]
    return found


@pytest.mark.parametrize(("shift", "index", "invocation"), [(1, 8, 7), (-1, -1, 0), (8, None, None)])
def test_off_by_one_at_both_ends(shift: int, index: int | None, invocation: int | None) -> None:
    @vd.shader("data.size", local_size=4, check=True)
    def move(data: Buff[f32], k: Const[i32], out: Buff[f32]) -> None:
        i = vc.global_invocation_id().x.to_dtype(i32)
        out[i] = data[i + k]  # read

    data, out = _buffer(np.arange(1, 9)), _buffer(np.full(8, 7))
    with pytest.raises(IndexError) as caught:
        move(data, shift, out)
    message = str(caught.value)
    assert isinstance(caught.value, vd.BoundsError)
    assert "move (test_check.py:" in message
    assert "buffer 'data' of shape (8,)" in message
    assert f"(test_check.py:{_line('read')})" in message
    assert "out[i] = data[i + k]" in message
    assert message.splitlines()[-1].strip() == "^" * len("data[i + k]")
    if index is not None:
        assert f"index {index} is out of bounds" in message
        assert f"in invocation ({invocation}, 0, 0)" in message
        assert "in all" not in message
    else:
        assert "8 violations in all" in message
    # what was right was done, a bad read gave element 0
    wanted = [i + shift + 1 if 0 <= i + shift < 8 else 1 for i in range(8)]
    assert out.read(0).tolist() == wanted
    # all goes on as if nothing had been
    move(data, 0, out)
    assert out.read(0).tolist() == list(range(1, 9))


@pytest.mark.parametrize("shift", [-1, 0, 1])
def test_stores_beyond_the_ends_are_left_out(shift: int) -> None:
    @vd.shader("data.size", local_size=8, check="bounds")
    def store(data: Buff[f32], k: Const[i32]) -> None:
        data[vc.global_invocation_id().x.to_dtype(i32) + k] = 1

    data = _buffer(np.zeros(8))
    if shift:
        with pytest.raises(IndexError, match=f"index {8 if shift > 0 else -1} "):
            store(data, shift)
    else:
        store(data, shift)
    wanted = np.zeros(8)
    wanted[max(shift, 0) : 8 + min(shift, 0)] = 1
    assert data.read(0).tolist() == wanted.tolist()


def test_three_dimensions() -> None:
    @vd.shader((4, 3, 2), local_size=(2, 2, 2), check=True)
    def fill(data: Buff[f32], k: Const[u32]) -> None:
        gid = vc.global_invocation_id()
        data[(gid.z * 3 + gid.y) * 4 + gid.x + k] = gid.z * 100.0 + gid.y * 10.0 + gid.x

    data = _buffer(np.zeros((2, 3, 4)))
    fill(data, 0)
    z, y, x = np.indices((2, 3, 4))
    assert data.read(0).tolist() == (z * 100 + y * 10 + x).tolist()
    with pytest.raises(IndexError, match=r"index 24 .*shape \(2, 3, 4\).*invocation \(3, 2, 1\)"):
        fill(data, 1)


def test_unsigned_numbers_below_zero_are_shown_as_such() -> None:
    @vd.shader(1, check=True)
    def kernel(data: Buff[f32]) -> None:
        data[vc.global_invocation_id().x - 1] = 1

    with pytest.raises(IndexError, match=r"index -1 \(as uint(32: 4294967295|64: 18446744073709551615)\)"):
        kernel(_buffer([1]))


@pytest.mark.parametrize("index", [-1, 1 << 32, (1 << 32) + 1, -(1 << 40), 5])
def test_wide_indices_are_not_cut(index: int) -> None:
    if not vd.get_context().device_infos[0].int_64_support:
        pytest.skip("the device has no 64-bit integers")

    @vd.shader(1, check=True)
    def kernel(data: Buff[f32], at: Const[i64]) -> None:
        data[at] = 1

    data = _buffer([0, 0, 0])
    with pytest.raises(IndexError, match=f"index {index} "):
        kernel(data, index)
    assert data.read(0).tolist() == [0, 0, 0]
    kernel(data, 2)
    assert data.read(0).tolist() == [0, 0, 1]


@pytest.mark.parametrize("kind", [np.uint16, np.int16, np.float64, np.complex64])
@pytest.mark.parametrize("size", [1, 3, 5])
def test_every_element_size_ends_where_it_ends(kind: Any, size: int) -> None:
    info = vd.get_context().device_infos[0]
    if np.dtype(kind).itemsize == 2 and not (info.storage_buffer_16_bit_access and info.int_16_support):
        pytest.skip("the device has no 16-bit buffers")
    data = vd.asbuffer(np.zeros(size, kind))

    def body(data: Any, n: Any) -> None:
        data[n] = data[n] + data[n]

    kernel = vd.shader(1, arg_type_annotations=[Buff[data.var_type], Const[u32]], check=True)(body)
    kernel(data, size - 1)
    with pytest.raises(IndexError, match=f"index {size} "):
        kernel(data, size)


def test_views_of_another_dtype() -> None:
    @vd.shader(1, check=True)
    def kernel(data: Buff[v4], at: Const[u32], out: Buff[f32]) -> None:
        out[0] = data[at].x

    out = _buffer([5])
    with pytest.raises(TypeError, match="argument 'data': expected elements of vec4, the buffer has float32"):
        kernel(_buffer([1, 2, 3, 4]), 0, out)
    quads = _buffer([1, 2, 3, 4]).view(vd.vec4)
    kernel(quads, 0, out)
    assert out.read(0)[0] == 1
    with pytest.raises(IndexError, match=r"index 1 .*shape \(1,\)"):
        kernel(quads, 1, out)


def test_kinds_of_access() -> None:
    def run(body: Any, match: str) -> None:
        kernel = vd.shader(
            1,
            check=True,
            local_size=1,
            arg_type_annotations=[Buff[f32], Buff[i32], Const[i32]],
            arg_names=["x", "n", "k"],
        )(body)
        x, n = _buffer([1, 2, 3, 4]), _buffer([3, 9, 0, -2], np.int32)
        with pytest.raises(IndexError, match=match) as caught:
            kernel(x, n, 4)
        assert "violations" not in str(caught.value)
        assert x.read(0).tolist() == [1, 2, 3, 4]
        assert n.read(0).tolist() == [3, 9, 0, -2]

    def in_place(x: Any, n: Any, k: Any) -> None:
        x[k] += 1

    def atomic(x: Any, n: Any, k: Any) -> None:
        before = vc.atomic_add(n[k], 5)
        with vc.if_block(before != 0):
            x[0] = 100

    def nested(x: Any, n: Any, k: Any) -> None:
        x[n[1]] = 5

    def nested_read(x: Any, n: Any, k: Any) -> None:
        x[2] = x[2] + x[n[3]] * 0

    def literal(x: Any, n: Any, k: Any) -> None:
        x[4] = 1

    def value_in_condition(x: Any, n: Any, k: Any) -> None:
        with vc.if_block(x[k + 1] > 1):
            x[0] = 9

    def else_if(x: Any, n: Any, k: Any) -> None:
        with vc.if_block(k < 0):
            x[0] = 9
        with vc.else_if_block(x[k] > 1):
            x[0] = 8

    def switch(x: Any, n: Any, k: Any) -> None:
        recorder = vc.get_builder()
        recorder.open_switch(n[k].expr)
        recorder.open_case((1,))
        x[0] = 5
        recorder.close()
        recorder.close()

    def vector(x: Any, n: Any, k: Any) -> None:
        v = vc.new_vec3_register(1, 2, 3)
        v[k] = 5
        x[0] = v.x

    def matrix(x: Any, n: Any, k: Any) -> None:
        m = vc.new_mat2_register(1)
        x[0] = m[k - 2][0]

    def printed(x: Any, n: Any, k: Any) -> None:
        vc.print(x[k])

    def in_a_loop(x: Any, n: Any, k: Any) -> None:
        i = vc.new_int_register(0)
        total = vc.new_float_register(0)
        with vc.while_block(i <= 4):
            total += x[i]
            i += 1
        with vc.if_block(total != 11):
            x[0] = 99

    def loop_condition(x: Any, n: Any, k: Any) -> None:
        i = vc.new_int_register(1)
        with vc.while_block(x[i] != 1):
            i += 1
        with vc.if_block(i != 4):
            x[0] = 99

    run(in_place, r"index 4 .*buffer 'x'")
    run(atomic, r"index 4 .*buffer 'n'")
    run(nested, r"index 9 .*buffer 'x'")
    run(nested_read, r"index -2 .*buffer 'x'")
    run(literal, r"index 4 .*buffer 'x'")
    run(value_in_condition, r"index 5 .*buffer 'x'")
    run(else_if, r"index 4 .*buffer 'x'")
    run(switch, r"index 4 .*buffer 'n'")
    run(vector, r"index 4 .*a vec3 of 3")
    run(matrix, r"index 2 .*the columns of a mat2 of 2")
    run(printed, r"index 4 .*buffer 'x'")
    run(in_a_loop, r"index 4 .*buffer 'x'")
    run(loop_condition, r"index 4 .*buffer 'x'")


def test_what_is_not_evaluated_is_not_checked() -> None:
    @vd.shader("out.size", local_size=8, check=True)
    def kernel(data: Buff[f32], n: Const[u32], out: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        with vc.if_block(vc.all(i < n, data[i] > 0)):
            out[i] = 1
        with vc.else_if_block(vc.any(i >= n, data[i] < -1, i == 0)):
            out[i] = 2
        with vc.else_if_block(data[i] == 0):
            out[i] = 3
        k = vc.new_uint_register(i)
        with vc.while_block(vc.all(k < n, data[k] > 0)):
            k += 1

    values = np.array([1, 0, -1, -2], np.float32)
    out = _buffer(np.zeros(16))
    kernel(_buffer(values), 4, out)
    assert out.read(0).tolist() == [1, 3, 0, 2] + [2] * 12
    with pytest.raises(IndexError, match=r"index 4 .*invocation \(4, 0, 0\)"):
        kernel(_buffer(values), 5, out)


def test_choices_evaluate_one_side() -> None:
    @vd.shader("out.size", local_size=8, check=True)
    def kernel(data: Buff[f32], n: Const[u32], out: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        value = ex.select((i < n).expr, data[i].expr, ex.literal(-1, f32))
        out[i] = vc.ShaderVariable(value) * 2

    out = _buffer(np.zeros(8))
    kernel(_buffer([1, 2, 3]), 3, out)
    assert out.read(0).tolist() == [2, 4, 6] + [-2] * 5
    with pytest.raises(IndexError, match="index 3 "):
        kernel(_buffer([1, 2, 3]), 4, out)


def test_shared_arrays_and_barriers() -> None:
    @vd.shader("out.size", local_size=16, check=True)
    def kernel(out: Buff[f32], k: Const[i32]) -> None:
        tile = vc.shared_buffer(f32, 16)
        lane = vc.local_invocation_id().x.to_dtype(i32)
        tile[lane + k] = lane * 1.0
        vc.barrier()
        out[vc.global_invocation_id().x] = tile[15 - lane]

    out = _buffer(np.zeros(48))
    kernel(out, 0)
    assert out.read(0).tolist() == list(range(15, -1, -1)) * 3
    with pytest.raises(IndexError, match=r"index 16 .*shared buffer '.*' of 16, .*3 violations in all"):
        kernel(out, 1)


WIDE_BARRIERS = """
import numpy as np, vkdispatch as vd, vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import *

@vd.shader("out.size", local_size=16, check=True)
def kernel(out: Buff[f32], k: Const[i32]) -> None:
    tile = vc.shared_buffer(f32, 16)
    lane = vc.local_invocation_id().x.to_dtype(i32)
    vc.barrier()
    tile[lane + k] = lane * 1.0
    vc.barrier()
    out[vc.global_invocation_id().x] = tile[lane ^ 1]

out = vd.asbuffer(np.zeros(40, np.float32))
kernel(out, 0)
print(out.read(0).tolist())
try:
    kernel(out, 14)
except IndexError as error:
    print(error)
"""


def test_a_wide_kernel_has_barriers_for_invocations_beyond_the_limit(run_python: Any) -> None:
    ran = run_python(WIDE_BARRIERS, VKDISPATCH_FORCE_VARIANT="wide,coarse")
    assert ran.returncode == 0, ran.stderr
    found, error = ran.stdout.splitlines()
    assert found == str([float(i % 16 ^ 1) for i in range(40)])
    assert re.search(r"index 16 .*shared buffer '.*' of 16, .*\b34 violations in all", error), error


def test_deep_expressions_and_many_accesses() -> None:
    @vd.shader(4, local_size=4, check=True)
    def kernel(data: Buff[f32], out: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        total = data[i]
        for step in list(range(1, 100)):
            total = total + data[(i + step) % 4]
        out[i] = total

    data, out = _buffer([1, 2, 3, 4]), _buffer(np.zeros(4))
    kernel(data, out)
    assert out.read(0).tolist() == [250] * 4


def test_nan() -> None:
    @vd.shader("x.size", check="nan")
    def stores(x: Buff[f32], out: Buff[v2]) -> None:
        i = vc.global_invocation_id().x
        out[i].y = vc.sqrt(x[i])
        out[i].x += x[i]

    x, out = _buffer([1, 4, 9]), vd.Buffer(3, v2)
    out.write(np.zeros((3, 2), np.float32))
    stores(x, out)
    x.write(np.array([1, 4, -9], np.float32))
    with pytest.raises(FloatingPointError, match=r"NaN .*buffer 'out' at index 2, in invocation \(2, 0, 0\)"):
        stores(x, out)
    assert out.read(0).tolist()[:2] == [[2, 1], [8, 2]]

    @vd.shader(1, check={"nan", "bounds"})
    def registers(x: Const[f32], z: Const[f32]) -> None:
        a = vc.new_complex64_register(x, z, var_name="a")
        a[:] = a * 2
        b = (x / z).to_register("quotient")
        b += 1

    registers(1, 2)
    with pytest.raises(vd.NanError, match="register 'quotient'"):
        registers(0, 0)
    with pytest.raises(vd.NanError, match="register 'a'"):
        registers(np.nan, 1)


def test_endless_loops_end() -> None:
    @vd.shader(2, check="loops=100")
    def kernel(out: Buff[u32], n: Const[u32]) -> None:
        k = vc.new_uint_register(0)
        with vc.while_block(k < n):
            k += 1
        out[vc.global_invocation_id().x] = k

    out = _buffer([0, 0], np.uint32)
    kernel(out, 100)
    assert out.read(0).tolist() == [100, 100]
    with pytest.raises(vd.LoopLimitError, match=r"ended after 100 rounds, in invocation .*2 violations"):
        kernel(out, 101)
    assert out.read(0).tolist() == [100, 100]

    @vd.shader(1, check=True)
    def endless(out: Buff[u32]) -> None:
        with vc.while_block(out[0] == 7):
            out[1] += 1

    with pytest.raises(RuntimeError, match="loop was ended"):
        endless(_buffer([7, 0], np.uint32))


def test_graphs() -> None:
    @vd.shader("data.size", check=True)
    def checked(data: Buff[f32], k: Var[i32]) -> None:
        i = vc.global_invocation_id().x.to_dtype(i32)
        data[i + k] = 1

    @vd.shader("data.size")
    def plain(data: Buff[f32]) -> None:
        data[vc.global_invocation_id().x] += 1

    data, other = _buffer(np.zeros(4)), _buffer(np.zeros(2))
    graph = vd.CommandGraph()
    checked(data, 0, graph=graph)
    plain(data, graph=graph)
    checked(other, graph.bind_var("k"), graph=graph)
    graph.set_var("k", [0, 0, 2, 0])
    with pytest.raises(IndexError, match=r"shape \(2,\).*2 violations"):
        graph.submit(4)
    assert data.read(0).tolist() == [2] * 4
    graph.set_var("k", 0)
    graph.submit(3)
    assert other.read(0).tolist() == [1, 1]
    vd.set_global_graph(graph)
    try:
        checked(data, 1)
    finally:
        vd.set_global_graph(None)
    with pytest.raises(IndexError, match=r"index 4 .*shape \(4,\)"):
        graph.submit()
    for _ in range(2):
        with pytest.raises(IndexError, match="index 4 "):
            checked(data, 1, graph=vd.default_graph())
    checked(data, 0, graph=vd.default_graph())


def test_folded_grids() -> None:
    most = vd.get_context().max_workgroup_count[0]
    if most > 1 << 20:
        pytest.skip("the grid would be too large")

    @vd.shader(local_size=1, check=True)
    def kernel(data: Buff[u32]) -> None:
        data[vc.global_invocation_id().x] = vc.global_invocation_id().x

    count = most + 10
    data = vd.asbuffer(np.zeros(count, np.uint32))
    kernel(data, exec_size=count)
    assert np.array_equal(data.read(0), np.arange(count))
    with pytest.raises(IndexError, match=rf"index {count} .*invocation \({count}, 0, 0\)"):
        kernel(data, exec_size=count + 1)


def test_mapping_functions() -> None:
    @vd.map
    def shifted(data: Buff[f32], i: Const[u32]) -> f32:
        return data[i + 1]  # mapped

    @vd.shader("out.size", check=True)
    def kernel(data: Buff[f32], out: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        out[i] = shifted.callback(data, i)

    with pytest.raises(IndexError, match=rf"(?s)index 2 .*test_check.py:{_line('mapped')}"):
        kernel(_buffer([1, 2]), _buffer([1, 2]))


def test_many_buffers() -> None:
    def body(*buffers: Any) -> None:
        for buffer in buffers:
            buffer[0] = 1

    def kernel(count: int, check: bool) -> vd.ShaderFunction:
        return vd.shader(1, arg_type_annotations=[Buff[f32]] * count, check=check)(body)

    with pytest.raises(ValueError, match="checks take one buffer"):
        kernel(256, True).build()


def test_environment_and_attribute(monkeypatch: Any) -> None:
    def kernel(**options: Any) -> vd.ShaderFunction:
        @vd.shader(1, **options)
        def store(data: Buff[f32]) -> None:
            data[vc.global_invocation_id().x + 5] = 1

        return store

    monkeypatch.delenv("VKDISPATCH_CHECK", raising=False)
    assert kernel().check is None
    assert kernel(check="nan").check == "nan"
    assert "diagnostics" not in kernel().get_src(build=False).code
    monkeypatch.setenv("VKDISPATCH_CHECK", "1")
    assert "diagnostics" in kernel().get_src(build=False).code
    assert "diagnostics" not in kernel(check=False).get_src(build=False).code
    with pytest.raises(IndexError):
        kernel()(_buffer([1]))
    monkeypatch.setenv("VKDISPATCH_CHECK", "bounds, nan")
    with pytest.raises(IndexError):
        kernel()(_buffer([1]))
    monkeypatch.setenv("VKDISPATCH_CHECK", "0")
    assert "diagnostics" not in kernel().get_src(build=False).code
    monkeypatch.setenv("VKDISPATCH_CHECK", "everything")
    with pytest.raises(ValueError, match="VKDISPATCH_CHECK"):
        kernel()
    # the kernel itself stays what it is
    assert len(kernel(check=True).shader_description.kernel.resources) == 1


@pytest.mark.parametrize("check", ["all", "bounds=3", "loops=0", ["bounds", 3], "loops=x", 1.5])
def test_bad_checks_are_refused(check: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="check: expected"):
        vd.shader(1, check=check)


def test_each_queue_is_checked(tmp_path: Path) -> None:
    script = tmp_path / "queues.py"
    script.write_text(
        inspect.cleandoc(
            """
            import numpy as np
            import vkdispatch as vd
            import vkdispatch.codegen as vc
            from vkdispatch.codegen.abbreviations import *

            context = vd.make_context(device_ids=0, queue_families=[[0, 0]])

            @vd.shader(2, check=True)
            def kernel(data: Buff[f32], n: Const[u32]):
                i = vc.global_invocation_id().x
                vc.print(i, data[i])
                with vc.if_block(data[i] == n):
                    data[i + 2] = 1

            data = vd.Buffer(2, vd.float32)
            for queue in range(2):
                data.write(np.array([queue, queue], np.float32), queue)
            kernel(data, 5)
            try:
                kernel(data, 1)
            except IndexError as error:
                print(str(error).splitlines()[0])
            graph = vd.CommandGraph()
            kernel(data, 5, graph=graph)
            graph.submit(None, 1)
            """
        )
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    if "queue" not in done.stdout and "families" in done.stderr:
        pytest.skip("the device has one queue")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    each = [f"queue {q}: {i} {q}.0" for q in range(2) for i in range(2)]
    assert lines[:4] == each
    assert lines[4:8] == each
    assert re.search(r"index [23] is out of bounds .*2 violations", lines[8])
    assert lines[9:] == each[2:]
