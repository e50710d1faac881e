"""CUDA and HIP on emulated GPUs, and on real ones if nvcc or hipcc and a device exist."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.orders.emulated_gpu import make_compiler
from tests.orders.here import available, other_model, require
from tests.orders.tasks import ADD, ADD_3D, PRODUCT
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import replace
from vkdispatch.orders import Accel, Order, OrderBuildError, OrderRunError
from vkdispatch.orders.arguments import Parameter
from vkdispatch.orders.compilers import BuildFailure, Compiler, compile_library, find_compilers
from vkdispatch.orders.models import TABLE, Task, cuda_hip
from vkdispatch.orders.models.native import NativeModel

EVERYTHING = """
set_argnames(("a", "z", "h", "b", "alpha"), ("c", "s", "w", "v", "n"))
[cuda, hip]
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= a.shape[0]) return;
    c(i, 0) = a(i) * alpha + ACCELPY_WORKER_DIM0;
    c(i, 1) = i;
    w(i) = z(i) * z(i);
    v(i) = h(i);
    if (b(i)) n = a.size + ACCELPY_TEAM_DIM0;
    if (i == 0) s = z(0).real() + ACCELPY_ACCEL_RUNID;
"""


def _arguments(size: int) -> tuple[list[Any], list[Any]]:
    a, z = np.arange(float(size)), (np.arange(size) + 2j).astype(np.complex64)
    h, b = (np.arange(size) / 8).astype(np.float16), np.arange(size) == size - 1
    outputs = [np.zeros((size, 2)), np.zeros(()), np.zeros_like(z), np.zeros_like(h), np.zeros((), np.int64)]
    return [a, z, h, b, 3], outputs


Gpu = tuple[str, str | None]  # a model, and a compiler for it, or None for the search


@pytest.fixture(scope="module")
def emulators(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return {kind: make_compiler(tmp_path_factory.mktemp(kind), kind) for kind in ("cuda", "hip")}


def _emulated(kind: str, emulators: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Gpu:
    """Make a model available for one test, as if its device existed."""
    model = TABLE[kind]
    assert isinstance(model, NativeModel)
    monkeypatch.setitem(TABLE, kind, replace(model, find_obstacle=lambda: None, find_device_flags=tuple))
    return kind, emulators[kind]


@pytest.fixture(params=["cuda", "hip"])
def emulated(
    request: pytest.FixtureRequest, emulators: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> Gpu:
    """Return a model and a compiler for two emulated GPUs."""
    return _emulated(request.param, emulators, monkeypatch)


@pytest.fixture(params=["emulated cuda", "emulated hip", "cuda", "hip"])
def gpu(request: pytest.FixtureRequest, emulators: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Gpu:
    """Return a model and a compiler for GPUs: emulated ones, or those of this machine."""
    kind = request.param.split()[-1]
    if kind != request.param:
        return _emulated(kind, emulators, monkeypatch)
    require(kind)
    return kind, None


def _check(kind: str, **options: Any) -> None:
    inputs, outputs = _arguments(100)
    a, z, h, b, alpha = inputs
    c, s, w, v, n = outputs
    accel = Accel(*inputs, Order(EVERYTHING), *outputs, kind=kind, **options)
    accel.run(32, 4)
    accel.run(32, 4)
    accel.stop()
    np.testing.assert_array_equal(c, np.stack((a * alpha + 32, np.arange(100)), 1))
    assert (s, n) == (z[0].real + 1, 104)
    np.testing.assert_array_equal(w, z * z)
    np.testing.assert_array_equal(v, h)
    assert b.sum() == 1


def test_kernels_of_a_gpu(gpu: Gpu) -> None:
    kind, compiler = gpu
    _check(kind, compile=compiler)
    x, y, z = np.arange(30.0), np.ones(60)[::-2], np.zeros(60)[::2]
    with Accel(x, y, Order(ADD), z, kind=kind, compile=compiler) as accel:
        assert not z.any()
        accel.run(16, 2)
        accel.wait(0)
        assert not z.any()  # it is still there
    np.testing.assert_array_equal(z, x + y)
    cube, sums = np.arange(60.0).reshape(3, 4, 5), np.zeros((3, 4, 5))
    with Accel(cube, cube, 0.5, Order(ADD_3D), sums, kind=kind, compile=compiler) as accel:
        accel.run(5, (3, 4))
    np.testing.assert_array_equal(sums, 1.5 * cube)
    m, n = np.arange(12.0).reshape(3, 4), np.arange(20.0).reshape(4, 5)
    product = np.zeros((3, 5))
    with Accel(m, n, Order(PRODUCT), product, kind=kind, compile=compiler) as accel:
        accel.run(5, 3)
    np.testing.assert_array_equal(product, m @ n)
    twice = np.ones(60)[::2]  # an array that is input and output
    with Accel(twice, twice, Order(ADD), twice, kind=kind, compile=compiler) as accel:
        accel.run(30)
        accel.run(30)
    assert set(twice) == {4}
    with Accel(x[:0], y[:0], Order(ADD), z[:0], kind=kind, compile=compiler) as accel:
        accel.run(0)
        accel.run(1)


def test_too_large_launches_raise(gpu: Gpu) -> None:
    kind, compiler = gpu
    x, z = np.arange(30.0), np.zeros(30)
    accel = Accel(x, x, Order(ADD), z, kind=kind, compile=compiler)
    for workers, said in (
        # beyond the limits of emulated and real GPUs
        ((1025,), r"members: \(1025, 1, 1\) are more than the \(\d+, \d+, \d+\) of the device"),
        (((64, 64),), r"members: 4096 in a team are more than the \d+ of the device; run\(members, teams\)"),
        (((1, 1, 1025),), r"members: \(1, 1, 1025\) are more"),
        ((1, (3, 65536)), r"teams: \(3, 65536, 1\) are more"),
    ):
        run_id = accel.run(*workers)
        with pytest.raises(OrderRunError, match=f"{kind}: {said}"):
            accel.wait(run_id)
    accel.run(30)
    accel.stop()
    np.testing.assert_array_equal(z, 2 * x)


def test_moving_to_another_device_frees_memory(emulated: Gpu) -> None:
    kind, compiler = emulated
    text = f'set_argnames("x", "y")\n[{kind}]\ny(threadIdx.x) += x(threadIdx.x);\n'
    x, y = np.arange(5.0), np.zeros(5)
    accel = Accel(x, Order(text), y, kind=kind, compile=compiler)
    loaded = accel._program.native._loaded  # type: ignore[attr-defined]
    for device in (1, 0, 0, 1):
        accel.run(5, device=device)
    assert loaded.emulated_allocations() == 2
    accel.stop()
    np.testing.assert_array_equal(y, 4 * x)
    assert loaded.emulated_allocations() == 0
    with pytest.raises(ArgumentValueError, match=f"device: {kind} has 2 devices here, counted from 0, got 2"):
        accel.run(5, device=2)
    large = Accel(np.zeros(3_000_000), Order(text), y, kind=kind, compile=compiler)
    with pytest.raises(OrderRunError, match=f"{kind}, device 0: {kind}Malloc: out of memory"):
        large.run(5)
    assert loaded.emulated_allocations() == 0
    accel.run(5, device=1)
    accel.stop()
    np.testing.assert_array_equal(y, 5 * x)
    # deleted without a stop
    dropped = Accel(x, Order(text), y, kind=kind, compile=compiler)
    dropped.wait(dropped.run(5))
    assert loaded.emulated_allocations() == 2
    del dropped
    gc.collect()
    assert loaded.emulated_allocations() == 0


_ADDED = {
    "fortran": "y = y + x",
    "openmp_cpp": "#pragma omp for\n        for (int i = 0; i < x.size; i++) y(i) += x(i);",
}


def test_a_task_moves_between_cpu_and_gpu(gpu: Gpu) -> None:
    kind, compiler = gpu
    other = other_model()
    text = f"""
    set_argnames("x", "y")
    [{kind}{f": compile={compiler!r}" if compiler else ""}]
        if (threadIdx.x < x.size) y(threadIdx.x) += x(threadIdx.x);
    [cpp]
        for (int i = 0; i < x.size; i++) y(i) += x(i);
    [{other}]
        {_ADDED[other]}
    """
    x, y = np.arange(5.0), np.zeros(5)
    accel = Accel(x, Order(text), y, verify=True)
    assert accel.model == kind
    for model in ("cpp", kind, other):
        accel.run(5)
        accel.swap(model)
    accel.run(5)
    accel.stop()
    np.testing.assert_array_equal(y, 4 * x)
    assert accel.verification is not None
    assert set(accel.verification.models) == {kind, "cpp", other}
    times = accel.race(5, device=1)
    assert set(times) == {kind, "cpp", other}
    np.testing.assert_array_equal(y, 4 * x)


def _task(text: str) -> Task:
    order = Order(text)
    inputs, outputs = _arguments(5)
    names = [*(order.inputs or ()), *(order.outputs or ())]
    arrays = [np.asarray(item) for item in (*inputs, *outputs)]
    parameters = tuple(
        Parameter(name, array.dtype, array.ndim, name in (order.outputs or ()))
        for name, array in zip(names, arrays, strict=True)
    )
    return Task(order, order.sections[0], parameters, None)


def _nvcc() -> Compiler:
    """Return the compiler that the package finds, or skip. It does not need a GPU."""
    model = TABLE["cuda"]
    assert isinstance(model, NativeModel)
    try:
        return next(find_compilers(model.search, None))
    except BuildFailure as failure:
        pytest.skip(str(failure))


def test_nvcc_compiles_cuda_sources() -> None:
    compiler, model = _nvcc(), TABLE["cuda"]
    assert isinstance(model, NativeModel)
    flags = model.find_flags(compiler)
    assert compile_library(compiler, flags, model.make_source(_task(EVERYTHING)))[:4] == b"\x7fELF"
    if available("cuda"):
        return  # the tests above run it
    with pytest.raises(OrderBuildError, match=r"nvcc .* is available, but there is no CUDA device"):
        Accel(Order("[cuda]\n"), kind="cuda")


_HIP_NAMES = (
    "Error_t Free GetDeviceCount GetDeviceProperties GetErrorString GetLastError Malloc Memcpy "
    "MemcpyDeviceToHost MemcpyHostToDevice MemcpyKind SetDevice StreamPerThread StreamSynchronize Success"
)


def test_nvcc_compiles_hip_sources(tmp_path: Path) -> None:
    """The functions of HIP are those of CUDA under other names, as in its headers for NVIDIA GPUs."""
    compiler = _nvcc()
    (tmp_path / "hip").mkdir()
    defines = "".join(f"#define hip{name} cuda{name}\n" for name in _HIP_NAMES.split())
    defines += "#define hipDeviceProp_t cudaDeviceProp\n"
    (tmp_path / "hip/hip_runtime.h").write_text(f"#include <cuda_runtime.h>\n{defines}")
    (tmp_path / "hip/hip_fp16.h").write_text("#include <cuda_fp16.h>\n")
    model = TABLE["hip"]
    assert isinstance(model, NativeModel)
    flags = ("-x", "cu", *cuda_hip._NVCC, f"-I{tmp_path}")
    assert compile_library(compiler, flags, model.make_source(_task(EVERYTHING)))[:4] == b"\x7fELF"
