"""The models glsl and vkdispatch against NumPy and native code."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from tests.orders.here import require
from tests.runtime.test_queues import twice_the_cpu_driver
from vkdispatch.codegen.abbreviations import Buff, f32
from vkdispatch.orders import Accel, Order, OrderBuildError, OrderMismatchError

Array = npt.NDArray[Any]

ENGINE = ("glsl", "vkdispatch")
# In this mode traced kernels copy their buffers, and the interpreter does not support empty ones.
INTERPRETED = os.environ.get("VKDISPATCH_INTERPRET") == "1"
DTYPES = ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16")

ADD = """
set_argnames(("x", "y"), "z")
[glsl]
    uint i = gl_GlobalInvocationID.x;
    if (i < x.size) z(i) = x(i) + y(i);
[vkdispatch]
    i = vc.global_invocation_id().x
    if i < x.size:
        z[i] = x[i] + y[i]
[cpp, openmp_cpp]
    for (int i = 0; i < x.size; i++) z(i) = x(i) + y(i);
"""

ADD_3D = """
set_argnames(("x", "y", "alpha"), "z")
[glsl]
    uvec3 at = gl_GlobalInvocationID;
    if (at.z < x.shape[2]) z(at.x, at.y, at.z) = x(at.x, at.y, at.z) + alpha * y(at.x, at.y, at.z);
[vkdispatch]
    i, j, k = (vc.global_invocation_id()[d] for d in (0, 1, 2))
    z[i, j, k] = x[i, j, k] + alpha * y[i, j, k]
"""

PRODUCT = """
set_argnames(("a", "b"), "c")
[glsl]
    int i = int(gl_GlobalInvocationID.x), j = int(gl_GlobalInvocationID.y);
    float sum = 0.0;
    for (int k = 0; k < a.shape[1]; k++) sum += a(i, k) * b(k, j);
    c(i, j) = sum;
[vkdispatch]
    i, j = vc.global_invocation_id().x, vc.global_invocation_id().y
    sum = vc.new_float_register(0)
    for k in range(a.shape[1]):
        sum += a[i, k] * b[k, j]
    c[i, j] = sum
"""


def _numbers(shape: int | tuple[int, ...], dtype: str = "f4") -> Array:
    rng = np.random.default_rng(7)
    if np.dtype(dtype).kind == "c":
        return (rng.integers(-9, 9, shape) + 1j * rng.integers(-9, 9, shape)).astype(dtype)
    return rng.integers(0, 2 if dtype == "?" else 60, shape).astype(dtype)


def _has(dtype: str) -> bool:
    device = vd.get_devices()[0]
    kind = np.dtype(dtype)
    size = kind.itemsize // (2 if kind.kind == "c" else 1)
    if kind.kind in "fc":
        return bool({2: device.float_16_support, 8: device.float_64_support}.get(size, 1))
    return bool(
        {1: device.storage_buffer_8_bit_access, 2: device.int_16_support, 8: device.int_64_support}.get(
            size, 1
        )
    )


@pytest.mark.parametrize("kind", ENGINE)
@pytest.mark.parametrize("size", [0, 1, 10007])
def test_sum_of_vectors(kind: str, size: int) -> None:
    x, y, z = _numbers(size), _numbers(size) + np.float32(0.5), np.full(size, np.nan, np.float32)
    accel = Accel(x, y, Order(ADD), z, kind=kind)
    assert accel.model == kind
    # as one team with more members than a workgroup supports, and as several with idle members
    for workers in ((size,), (64, size // 64 + 1), (100, 5000)):
        z[:] = np.nan
        accel.run(*workers)
        accel.stop()
        np.testing.assert_array_equal(z, x + y)


@pytest.mark.parametrize("kind", ENGINE)
@pytest.mark.parametrize("order", ["C", "F", "gaps"])
def test_sum_of_three_dimensions_in_any_memory(kind: str, order: str) -> None:
    shape = (5, 7, 11)

    def laid(values: Array) -> Array:
        if order == "gaps":
            wide = np.zeros((10, 7, 33), values.dtype)[::2, ::-1, ::3]
            wide[...] = values
            return wide
        return np.array(values, order="C" if order == "C" else "F")

    x, y, z = laid(_numbers(shape)), laid(_numbers(shape)[::-1]), laid(np.full(shape, np.nan, np.float32))
    accel = Accel(x, y, np.float32(2.5), Order(ADD_3D), z, kind=kind)
    for workers in (((5, 7, 11),), ((5, 7), (1, 1, 11)), (1, (5, 7, 11))):
        z[...] = np.nan
        accel.run(*workers)
        accel.stop()
        np.testing.assert_array_equal(z, x + np.float32(2.5) * y)


@pytest.mark.parametrize("kind", ENGINE)
@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (67, 31, 13), (4, 0, 3)])
def test_product_of_matrices(kind: str, m: int, k: int, n: int) -> None:
    if INTERPRETED and k == 0:
        pytest.skip("empty buffers")
    a, b, c = _numbers((m, k)), _numbers((k, n)).T.copy().T, np.full((m, n), np.nan, np.float32)
    accel = Accel(a, b, Order(PRODUCT), c, kind=kind)
    accel.run((m, n))
    assert np.asarray(accel.output) is c
    np.testing.assert_array_equal(c, a @ b)


COPY = """
set_argnames(("x", "by"), ("y", "z"))
[glsl]
    uint i = gl_GlobalInvocationID.x;
    y(i) = {0}(x(i));
    z = {0}(by);
[vkdispatch]
    i = vc.global_invocation_id().x
    y[i] = x[i]
    z[0] = by
"""


@pytest.mark.parametrize("kind", ENGINE)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(kind: str, dtype: str) -> None:
    x, by = _numbers(23, dtype), _numbers((), dtype)
    y, z = np.zeros(23, dtype), np.zeros((), dtype)
    order = Order(COPY.format("uint8_t" if dtype == "?" else ""))
    if not _has(dtype):
        with pytest.raises(OrderBuildError, match="has no"):
            Accel(x, by, order, y, z, kind=kind)
        return
    with Accel(x, by, order, y, z, kind=kind) as accel:
        accel.run(23)
    np.testing.assert_array_equal(y, x)
    np.testing.assert_array_equal(z, by)
    swapped = x.astype(x.dtype.newbyteorder())
    wide = np.zeros(46, swapped.dtype)[::-2]
    with Accel(swapped, by, order, wide, z, kind=kind) as accel:
        accel.run(23)
    np.testing.assert_array_equal(wide, x)


ATTRIBUTES = """
set_argnames("x", "n")
[glsl]
    int at = 0;
    n(at++) = x.ndim;
    n(at++) = x.size;
    for (int d = 0; d < x.ndim; d++) { n(at++) = x.shape[d]; n(at++) = x.stride[d]; }
    n(at++) = n.size;
[vkdispatch]
    n[0] = x.ndim
    n[1] = x.size
    for d in range(x.ndim):
        n[2 + 2 * d] = x.shape[d]
        n[3 + 2 * d] = x.stride[d]
    n[2 + 2 * x.ndim] = n.size
"""


@pytest.mark.parametrize("kind", ENGINE)
@pytest.mark.parametrize("shape", [(7,), (2, 3), (2, 3, 5), (2, 0, 5), (2, 3, 5, 7)])
def test_attributes_of_arrays(kind: str, shape: tuple[int, ...]) -> None:
    if INTERPRETED and 0 in shape:
        pytest.skip("empty buffers")
    x, n = np.zeros(shape, np.float32), np.zeros(12, np.int32)
    order = Order(ATTRIBUTES)
    if kind == "vkdispatch" and len(shape) > 3:
        with pytest.raises(OrderBuildError, match="x has 4 dimensions, but buffers have at most 3"):
            Accel(x, order, n, kind=kind)
        return
    with Accel(x, order, n, kind=kind) as accel:
        accel.run()
    strides = [int(np.prod(shape[d + 1 :])) for d in range(len(shape))]
    expected = [len(shape), x.size, *(item for pair in zip(shape, strides, strict=True) for item in pair), 12]
    assert n.tolist() == expected + [0] * (12 - len(expected))


GRID = """
set_argnames((), ("n", "run"))
[glsl]
    n(0) = ACCELPY_WORKER_DIM0; n(1) = ACCELPY_WORKER_DIM1; n(2) = ACCELPY_WORKER_DIM2;
    n(3) = ACCELPY_TEAM_DIM0; n(4) = ACCELPY_TEAM_DIM1; n(5) = ACCELPY_TEAM_DIM2;
    n(6) = ACCELPY_ASSIGN_DIM0; n(7) = ACCELPY_ASSIGN_DIM1; n(8) = ACCELPY_ASSIGN_DIM2;
    run = ACCELPY_ACCEL_RUNID;
[vkdispatch]
    n[0], n[1], n[2] = ACCELPY_WORKER_DIM0, ACCELPY_WORKER_DIM1, ACCELPY_WORKER_DIM2
    n[3], n[4], n[5] = ACCELPY_TEAM_DIM0, ACCELPY_TEAM_DIM1, ACCELPY_TEAM_DIM2
    n[6], n[7], n[8] = ACCELPY_ASSIGN_DIM0, ACCELPY_ASSIGN_DIM1, ACCELPY_ASSIGN_DIM2
    run[0] = ACCELPY_ACCEL_RUNID
"""


@pytest.mark.parametrize("kind", ENGINE)
def test_grid_macros(kind: str) -> None:
    n, run = np.zeros(9, np.int32), np.full((), -1, np.int32)
    accel = Accel(Order(GRID), n, run, kind=kind)
    calls: list[tuple[tuple[Any, ...], list[int]]] = [
        ((), [1] * 9),
        ((5,), [5] + [1] * 8),
        (((2, 3), 4), [2, 3, 1, 4, 1, 1, 1, 1, 1]),
        (((2, 3, 4), [5, 6], (np.int64(7), 8, 9)), [2, 3, 4, 5, 6, 1, 7, 8, 9]),
    ]
    for workers, expected in calls:
        run_id = accel.run(*workers)
        accel.stop()
        assert n.tolist() == expected
        assert run == run_id
    n[:] = 0
    for nobody in ((0,), (3, 0), ((2, 0, 2), 5)):
        accel.run(*nobody)
    accel.stop()
    assert not n.any()


GROUPS = """
set_argnames((), ("seen", "groups"))
[glsl]
    uint i = gl_WorkGroupID.x * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    seen(i) = int(gl_WorkGroupID.x);
    if (i == 0u) groups = int(gl_NumWorkGroups.x);
[vkdispatch]
    i = vc.workgroup_id().x * vc.workgroup_size().x + vc.local_invocation_id().x
    seen[i] = vc.to_int(vc.workgroup_id().x)
    if i == 0:
        groups[0] = vc.to_int(vc.num_workgroups().x)
"""


@pytest.mark.parametrize("kind", ENGINE)
def test_teams_are_workgroups_in_bodies_that_use_them(kind: str) -> None:
    seen, groups = np.zeros(60, np.int32), np.zeros((), np.int32)
    accel = Accel(Order(GROUPS), seen, groups, kind=kind)
    for members, teams in ((60, 1), (12, 5), (1, 60), (7, 8)):
        seen[:] = -1
        accel.run(members, teams)
        accel.stop()
        expected = np.full(60, -1)
        expected[: members * teams] = np.repeat(np.arange(teams), members)
        np.testing.assert_array_equal(seen, expected)
        assert groups == teams
    most = vd.get_context().max_workgroup_invocations
    with pytest.raises(ValueError, match=f"members: .*{most} in all"):
        accel.run(most + 1)
    limits = vd.get_context().max_workgroup_count
    for axis, limit in enumerate(limits):
        if limit < 2**31 - 1:  # the limit of an order
            teams = tuple(limit + 1 if axis == i else 1 for i in range(3))
            with pytest.raises(ValueError, match=rf"teams: {re.escape(str(teams))} are more than"):
                accel.run(1, teams)
    with pytest.raises(ValueError, match=r"device: .* has 1 devices in this context, counted from 0, got 1"):
        accel.run(device=len(vd.get_context().device_infos))
    accel.run((3, 2), 5)
    accel.stop()


@pytest.mark.parametrize("kind", ENGINE)
def test_buffers_are_not_copied(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    values, quarter = _numbers(1000), np.float32(0.25)
    x, y = vd.asbuffer(values), vd.asbuffer(values + quarter)
    z, total = (vd.asbuffer(np.zeros(1000, np.float32)) for _ in range(2))

    @vd.shader("target.size")
    def take(target: Buff[f32], source: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        target[i] = target[i] + source[i]

    take(total, x)  # compiled
    accel = Accel(x, y, Order(ADD), z, kind=kind)
    copied: list[int] = []
    write = vd.Buffer.write
    monkeypatch.setattr(
        vd.Buffer, "write", lambda self, *args: copied.append(self.mem_size) or write(self, *args)
    )
    run = accel.run(1000)
    # in the order of submission, without a wait in between
    take(total, z)
    np.testing.assert_array_equal(total.read(0), 3 * values + quarter)
    accel.wait(run)
    assert accel.output == z
    accel.stop()
    np.testing.assert_array_equal(z.read(0), 2 * values + quarter)
    # shapes, strides and sizes
    assert INTERPRETED or sum(copied) < 1000


@pytest.mark.parametrize("kind", [*ENGINE, "cpp"])
def test_an_output_can_be_an_input(kind: str) -> None:
    x = vd.asbuffer(_numbers(333))
    accel = Accel(x, x, Order(ADD), x, kind=kind)
    for _ in range(3):
        accel.run(333)
        accel.stop()
    np.testing.assert_array_equal(x.read(0), 8 * _numbers(333))


@pytest.mark.parametrize("kind", [*ENGINE, "cpp", "fortran"])
@pytest.mark.parametrize("step", [1, -2])
def test_an_array_that_is_two_arguments_is_copied_once(kind: str, step: int) -> None:
    require(kind)
    # each element once, unlike threads that all run the whole body
    order = Order(ADD.replace(", openmp_cpp", "") + "[fortran]\nz = x + y\n")
    x = _numbers(333 * abs(step))[::step]
    before = x.copy()
    with Accel(x, x, order, x, kind=kind) as accel:
        for _ in range(3):
            accel.run(333)
    np.testing.assert_array_equal(x, 8 * before)
    # also for the compared sections
    with Accel(x, x, order, x, kind=kind, verify=True) as accel:
        accel.run(333)
        accel.run(333)
        accel.wait(1)
        assert accel.verification is not None
        assert len(accel.verification.models) > 1
    np.testing.assert_array_equal(x, 32 * before)


VECTORS = """
set_argnames(("x", "by"), ("y", "sum"))
[glsl]
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    y(at.x, at.y) = x(at.x, at.y) * by;
    if (at.x == 0 && at.y == 0) sum = x(0, 0) + x(4, 2);
[vkdispatch]
    i, j = vc.global_invocation_id().x, vc.global_invocation_id().y
    y[i, j] = x[i, j] * by
    if i + j == 0:
        sum[0] = x[0, 0] + x[4, 2]
[cpp]
    for (int i = 0; i < x.shape[0]; i++)
        for (int j = 0; j < x.shape[1]; j++) y(i, j) = x(i, j) * by;
    sum = x(0, 0) + x(4, 2);
"""


@pytest.mark.parametrize("kind", [*ENGINE, "cpp"])
def test_buffers_of_vectors_are_arrays_of_scalars(kind: str) -> None:
    values = np.arange(15, dtype=np.float32).reshape(5, 3) + 1
    x = vd.Buffer((5,), vd.vec3)
    x.write(values)
    y, by = vd.Buffer((5,), vd.vec3), vd.asbuffer(np.array(0.5, np.float32))
    total: vd.Buffer[Any] = vd.Buffer((), vd.float32)
    accel = Accel(x, by, Order(VECTORS), y, total, kind=kind)
    accel.run((5, 3))
    accel.stop()
    np.testing.assert_array_equal(y.read(0), values * np.float32(0.5))
    assert total.read(0) == 16


ACCUMULATE = """
set_argnames(("x", "by"), "y")
[glsl]
    uint i = gl_GlobalInvocationID.x;
    y(i) += by * x(i);
[vkdispatch]
    i = vc.global_invocation_id().x
    y[i] += by * x[i]
[cpp]
    for (int i = 0; i < x.size; i++) y(i) += by * x(i);
"""


@pytest.mark.parametrize("kind", ENGINE)
def test_record_to_a_graph(kind: str) -> None:
    x, y = vd.asbuffer(np.arange(100, dtype=np.float32)), vd.asbuffer(np.zeros(100, np.float32))
    accel = Accel(x, 2, Order(ACCUMULATE.replace("by *", "float(by) *")), y, kind="glsl")
    if kind == "vkdispatch":
        accel = Accel(x, 2, Order(ACCUMULATE), y, kind=kind)
    graph = vd.CommandGraph()
    first = accel.run(100, graph=graph)
    assert accel.run(50, graph=graph) == first + 1
    accel.stop()
    assert not y.read(0).any()
    graph.submit(3)
    graph.submit()
    expected = 8 * np.arange(100.0) + 8 * np.where(np.arange(100) < 50, np.arange(100), 0)
    np.testing.assert_array_equal(y.read(0), expected)
    # the arguments outlive the task
    del accel
    graph.submit()
    np.testing.assert_array_equal(y.read(0), expected * 1.25)


@pytest.mark.parametrize("kind", ENGINE)
def test_invalid_recordings_raise(kind: str) -> None:
    x, y = np.arange(10, dtype=np.float32), vd.asbuffer(np.ones(10, np.float32))
    graph = vd.CommandGraph()
    order, by = Order(ACCUMULATE), np.float32(3)
    with pytest.raises(ValueError, match=r"graph: the input 'x' is a NumPy array.*vd.asbuffer"):
        Accel(x, by, order, y, kind=kind).run(10, graph=graph)
    with pytest.raises(ValueError, match="graph: the output 'y' is a NumPy array"):
        Accel(y, by, order, x, kind=kind).run(10, graph=graph)
    with pytest.raises(ValueError, match="graph: the model cpp cannot be recorded; glsl and vkdispatch can"):
        Accel(y, by, order, y, kind="cpp").run(10, graph=graph)
    with pytest.raises(ValueError, match="graph: verify compares runs"):
        Accel(y, by, order, y, kind=kind, verify=True).run(10, graph=graph)
    with pytest.raises(TypeError, match=r"graph: expected a vd\.CommandGraph, got str"):
        Accel(y, by, order, y, kind=kind).run(10, graph="here")  # type: ignore[arg-type]
    # the graph of the thread is not changed
    vd.set_global_graph(graph)
    try:
        with Accel(y, by, order, x, kind=kind) as accel:
            accel.run(10)
        assert vd.global_graph() is graph
    finally:
        vd.set_global_graph(None)
    np.testing.assert_array_equal(x, np.arange(10) + 3)


def test_swap_between_runs() -> None:
    x, y, by = np.arange(64, dtype=np.float32), np.zeros(64, np.float32), np.float32(1)
    accel = Accel(x, by, Order(ACCUMULATE), y, kind="glsl")
    accel.run(64)
    accel.wait(0)
    x[:] = 0  # the data stays on the device
    accel.swap("vkdispatch")
    accel.run(64)
    accel.wait(1)
    assert not y.any()
    accel.swap("cpp")
    np.testing.assert_array_equal(y, 2 * np.arange(64))
    x[:] = np.arange(64)
    accel.run()
    accel.swap("glsl")
    accel.run(64)
    accel.stop()
    np.testing.assert_array_equal(y, 4 * np.arange(64))
    assert accel.model == "glsl"


def test_sections_check_one_another() -> None:
    x, y, z = _numbers(500), vd.asbuffer(_numbers(500)), np.zeros(500, np.float32)
    kinds = ["vkdispatch", "glsl", "openmp_cpp", "cpp"]
    accel = Accel(x, y, Order(ADD), z, verify=True)
    accel.run(500)
    accel.stop()
    assert accel.verification is not None
    assert list(accel.verification.models) == kinds
    assert set(accel.race(500)) == set(kinds)
    wrong = Accel(x, y, Order(ADD.replace("= x[i] + y[i]", "= x[i] - y[i]")), z, verify=True)
    wrong.run(500)
    with pytest.raises(OrderMismatchError, match="the sections vkdispatch and glsl disagree"):
        wrong.stop()


SEED = """
set_argnames(("a", "b"), "c")

[hip, cuda]
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if(id < a.size) c(id) = a(id) + b(id);

[vkdispatch]
    id = vc.global_invocation_id().x
    c[id] = a[id] + b[id]

[openacc_cpp]
    #pragma acc loop gang worker vector
    for (int id = 0; id < a.shape[0]; id++) {
        c(id) = a(id) + b(id);
    }

[openmp_fortran]
    INTEGER id

    !$omp do
    DO id=1, a_attr%shape(1)
        c(id) = a(id) + b(id)
    END DO
    !$omp end do
"""


def test_an_engine_section_added_to_an_order() -> None:
    if not _has("i8"):
        pytest.skip("the device has no 64-bit integers")
    a, b, c = np.arange(100), np.arange(100)[::-1] * 3, np.zeros(100, dtype=np.int64)
    accel = Accel(a, b, Order(SEED), c, kind=["vkdispatch", "openacc_cpp"])
    accel.run(100)
    accel.stop()
    assert accel.model == "vkdispatch"
    assert np.array_equal(c, a + b)


@pytest.mark.parametrize("devices", ["two queues", "two devices"])
def test_arguments_are_on_the_chosen_device(
    devices: str, tmp_path: Path, run_python: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    environment, context = {"VKDISPATCH_DEBUG": "1"}, f"device_ids={vd.get_context().device_ids[0]}"
    if devices == "two devices":
        environment |= twice_the_cpu_driver(tmp_path)
        context = "multi_device=True, use_cpu=True"
    code = f"""
import numpy as np, vkdispatch as vd, vkdispatch_native as native
from vkdispatch.orders import Accel, Order
context = vd.make_context({context}, queue_counts=2)
text = {ACCUMULATE!r}
x, by = np.arange(300, dtype=np.float32), np.float32(2)
for kind in ("glsl", "vkdispatch"):
    y = np.zeros(300, np.float32)
    accel = Accel(x, by, Order(text), y, kind=kind)
    for device in range(len(context.device_infos)):
        accel.run(300, device=device)
        accel.run(300, device=device)
    accel.stop()
    assert (y == 4 * len(context.device_infos) * x).all(), y
    z = vd.asbuffer(np.zeros(300, np.float32))
    graph = vd.CommandGraph()
    Accel(vd.asbuffer(x), by, Order(text), z, kind=kind).run(300, graph=graph)
    graph.submit()
    assert (z.read() == 2 * x).all()
    last = len(context.device_infos) - 1
    with Accel(x, by, Order(text), z, kind=kind) as accel:
        accel.run(300, device=last)
    # only on the first queue of the device: each device has two
    assert [(row == 4 * x).all() for row in z.read()] == [queue == 2 * last for queue in range(2 * last + 2)]
assert not native.take_messages()
print(len(context.device_infos), "good")
"""
    done = run_python(code, **environment)
    assert done.returncode == 0, done.stderr
    # a warning about a missing validation layer may precede it
    assert done.stdout.splitlines()[-1] == ("2 good" if devices == "two devices" else "1 good")
