"""CUDA and HIP: run on an emulated GPU anywhere, compiled by nvcc and run on a GPU where there are such."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.orders.emulated_gpu import make_compiler
from tests.orders.tasks import ADD, ADD_3D, PRODUCT
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import replace
from vkdispatch.orders import Accel, Order, OrderBuildError, OrderRunError
from vkdispatch.orders.arguments import Parameter
from vkdispatch.orders.compilers import compile_library, find_compilers
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


@pytest.fixture(scope="module", params=["cuda", "hip"])
def gpu(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    """Name a model, and a compiler for it whose GPUs are emulated."""
    kind = request.param
    compiler = make_compiler(tmp_path_factory.mktemp(kind), kind)
    model = TABLE[kind]
    assert isinstance(model, NativeModel)
    TABLE[kind] = replace(model, ready=lambda: None, target=tuple)
    yield kind, compiler
    TABLE[kind] = model


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


def test_kernels_of_an_emulated_gpu(gpu: tuple[str, str]) -> None:
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
    twice = np.ones(60)[::2]  # an array that is input and output stays one
    with Accel(twice, twice, Order(ADD), twice, kind=kind, compile=compiler) as accel:
        accel.run(30)
        accel.run(30)
    assert set(twice) == {4}
    with Accel(x[:0], y[:0], Order(ADD), z[:0], kind=kind, compile=compiler) as accel:
        accel.run(0)
        accel.run(1)


def test_launches_that_are_too_large(gpu: tuple[str, str]) -> None:
    kind, compiler = gpu
    x, z = np.arange(30.0), np.zeros(30)
    accel = Accel(x, x, Order(ADD), z, kind=kind, compile=compiler)
    for workers, said in (
        ((65,), r"members: \(65, 1, 1\) are more than the \(64, 64, 8\) of the device"),
        (((16, 16),), r"members: 256 in a team are more than the 64 of the device; run\(members, teams\)"),
        (((1, 1, 9),), r"members: \(1, 1, 9\) are more"),
        ((1, (3, 101)), r"teams: \(3, 101, 1\) are more"),
    ):
        run_id = accel.run(*workers)
        with pytest.raises(OrderRunError, match=f"{kind}: {said}"):
            accel.wait(run_id)
    accel.run(30)
    accel.stop()
    np.testing.assert_array_equal(z, 2 * x)


def test_another_device_gets_the_data_and_memory_is_given_back(gpu: tuple[str, str]) -> None:
    kind, compiler = gpu
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
    with pytest.raises(ArgumentValueError, match=f"device: {kind} has 2 of them here, got 2"):
        accel.run(5, device=2)
    large = Accel(np.zeros(3_000_000), Order(text), y, kind=kind, compile=compiler)
    with pytest.raises(OrderRunError, match=f"{kind}, device 0: {kind}Malloc: out of memory"):
        large.run(5)
    assert loaded.emulated_allocations() == 0
    accel.run(5, device=1)
    accel.stop()
    np.testing.assert_array_equal(y, 5 * x)
    # one that is dropped, and was not stopped
    dropped = Accel(x, Order(text), y, kind=kind, compile=compiler)
    dropped.wait(dropped.run(5))
    assert loaded.emulated_allocations() == 2
    del dropped
    gc.collect()
    assert loaded.emulated_allocations() == 0


def test_a_task_moves_between_processor_and_gpu(gpu: tuple[str, str]) -> None:
    kind, compiler = gpu
    text = f"""
    set_argnames("x", "y")
    [{kind}: compile={compiler!r}]
        if (threadIdx.x < x.size) y(threadIdx.x) += x(threadIdx.x);
    [cpp]
        for (int i = 0; i < x.size; i++) y(i) += x(i);
    [fortran]
        y = y + x
    """
    x, y = np.arange(5.0), np.zeros(5)
    accel = Accel(x, Order(text), y, verify=True)
    assert accel.model == kind
    for other in ("cpp", kind, "fortran"):
        accel.run(5)
        accel.swap(other)
    accel.run(5)
    accel.stop()
    np.testing.assert_array_equal(y, 4 * x)
    assert accel.verification is not None
    assert set(accel.verification.models) == {kind, "cpp", "fortran"}
    times = accel.race(5, device=1)
    assert set(times) == {kind, "cpp", "fortran"}
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


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc here")
def test_nvcc_compiles_what_is_written_for_cuda(tmp_path: Path) -> None:
    model = TABLE["cuda"]
    assert isinstance(model, NativeModel)
    compiler = next(find_compilers(model.search, None))
    flags = model.flags_of(compiler)
    assert compile_library(compiler, flags, model.source(_task(EVERYTHING)))[:4] == b"\x7fELF"
    if cuda_hip.cuda_capability() is not None:
        _check("cuda")
        return
    with pytest.raises(OrderBuildError, match=r"nvcc .* is here, but there is no CUDA device"):
        Accel(Order("[cuda]\n"), kind="cuda")


_HIP_NAMES = (
    "Error_t Free GetDeviceCount GetDeviceProperties GetErrorString GetLastError Malloc Memcpy "
    "MemcpyDeviceToHost MemcpyHostToDevice MemcpyKind SetDevice StreamPerThread StreamSynchronize Success"
)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc here")
def test_nvcc_compiles_what_is_written_for_hip(tmp_path: Path) -> None:
    """HIP's functions are CUDA's by other names, which is what its headers do for NVIDIA's GPUs."""
    (tmp_path / "hip").mkdir()
    defines = "".join(f"#define hip{name} cuda{name}\n" for name in _HIP_NAMES.split())
    defines += "#define hipDeviceProp_t cudaDeviceProp\n"
    (tmp_path / "hip/hip_runtime.h").write_text(f"#include <cuda_runtime.h>\n{defines}")
    (tmp_path / "hip/hip_fp16.h").write_text("#include <cuda_fp16.h>\n")
    model = TABLE["hip"]
    assert isinstance(model, NativeModel)
    compiler = next(find_compilers(TABLE["cuda"].search, None))  # type: ignore[attr-defined]
    flags = ("-x", "cu", *cuda_hip._NVCC, f"-I{tmp_path}")
    assert compile_library(compiler, flags, model.source(_task(EVERYTHING)))[:4] == b"\x7fELF"
