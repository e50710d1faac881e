"""All compiled models against NumPy.

A model is left out only where it has no compiler, and CUDA where there is no GPU: `test_gpu.py` has more of
that, HIP and emulated ones.
"""

from __future__ import annotations

import ctypes
import itertools
import shutil
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.orders.here import available, missing, require
from tests.orders.tasks import ADD, ADD_3D, HOST, PRODUCT
from vkdispatch.orders import Accel, Order
from vkdispatch.orders.models.cuda_hip import find_cuda_capability
from vkdispatch.orders.order import MODELS

Array = npt.NDArray[Any]

DTYPES = ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16")


def _numbers(shape: int | tuple[int, ...], dtype: str = "f8") -> Array:
    rng = np.random.default_rng(7)
    if np.dtype(dtype).kind == "c":
        return (rng.integers(-9, 9, shape) + 1j * rng.integers(-9, 9, shape)).astype(dtype)
    return rng.integers(0, 2 if dtype == "?" else 60, shape).astype(dtype)


@pytest.mark.parametrize("kind", [*HOST, "cuda"])
@pytest.mark.parametrize("size", [0, 1, 2, 101, 10007])
def test_sum_of_vectors(kind: str, size: int) -> None:
    require(kind)
    x, y, z = _numbers(size), _numbers(size) + 0.5, np.full(size, np.nan)
    accel = Accel(x, y, Order(ADD), z, kind=kind)
    assert accel.model == kind
    accel.run(64, -(-size // 64))  # within the limits of any GPU
    accel.stop()
    np.testing.assert_array_equal(z, x + y)


@pytest.mark.parametrize("kind", [*HOST, "cuda"])
@pytest.mark.parametrize("order", ["C", "F", "gaps"])
def test_sum_of_three_dimensions_in_any_memory(kind: str, order: str) -> None:
    require(kind)
    shape = (5, 7, 11)

    def laid(values: Array) -> Array:
        if order == "gaps":
            wide = np.zeros((10, 7, 33), values.dtype)[::2, ::-1, ::3]
            wide[...] = values
            return wide
        return np.array(values, order="C" if order == "C" else "F")

    x, y, z = laid(_numbers(shape)), laid(_numbers(shape)[::-1]), laid(np.full(shape, np.nan))
    with Accel(x, y, 2.5, Order(ADD_3D), z, kind=kind) as accel:
        accel.run(11, (5, 7))
    np.testing.assert_array_equal(z, x + 2.5 * y)


@pytest.mark.parametrize("kind", [*HOST, "cuda"])
@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (3, 5, 7), (67, 31, 13), (4, 0, 3)])
def test_product_of_matrices(kind: str, m: int, k: int, n: int) -> None:
    require(kind)
    a, b, c = _numbers((m, k)), _numbers((k, n)).T.copy().T, np.full((m, n), np.nan)
    accel = Accel(a, b, Order(PRODUCT), c, kind=kind)
    accel.run(n, m)
    assert np.asarray(accel.output) is c
    np.testing.assert_array_equal(c, a @ b)


COPY = """
set_argnames(("x", "by"), ("y", "z"))
[cpp]
    for (int i = 0; i < x.size; i++) y(i) = x(i);
    z = by;
[cuda, hip]
    y(threadIdx.x) = x(threadIdx.x);
    if (threadIdx.x == 0) z = by;
[fortran]
    y = x
    z = by
"""


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        (kind, dtype)
        for kind in ("cpp", "fortran", "cuda")
        for dtype in DTYPES
        if (kind, dtype) != ("fortran", "f2")
    ],
)
def test_every_dtype(kind: str, dtype: str) -> None:
    require(kind)
    x, by = _numbers(23, dtype), _numbers((), dtype)
    y, z = np.zeros(23, dtype), np.zeros((), dtype)
    with Accel(x, by, Order(COPY), y, z, kind=kind) as accel:
        accel.run(23)
    np.testing.assert_array_equal(y, x)
    np.testing.assert_array_equal(z, by)
    # other values and sizes need no new build
    swapped = x.astype(x.dtype.newbyteorder())
    wide = np.zeros(46, swapped.dtype)[::-2]
    with Accel(swapped, by, Order(COPY), wide, z, kind=kind) as accel:
        accel.run(23)
    np.testing.assert_array_equal(wide, x)


ARITHMETIC = """
set_argnames(("x", "y", "alpha"), "z")
[cpp]
    for (int i = 0; i < x.size; i++) z(i) = x(i) * y(i) + alpha;
[cuda, hip]
    const int i = threadIdx.x;
    z(i) = x(i) * y(i) + alpha;
[fortran]
    z = x * y + alpha
"""


@pytest.mark.parametrize("kind", ["cpp", "fortran", "cuda"])
@pytest.mark.parametrize("dtype", ["f4", "c8", "c16", "i8"])
def test_arithmetic(kind: str, dtype: str) -> None:
    require(kind)
    x, y, z = _numbers(31, dtype), _numbers(31, dtype)[::-1], np.zeros(31, dtype)
    alpha = np.array(3, dtype)
    with Accel(x, y, alpha, Order(ARITHMETIC), z, kind=kind) as accel:
        accel.run(31)
    np.testing.assert_array_equal(z, x * y + alpha)


@pytest.mark.parametrize("kind", ["cpp", "cuda"])
def test_half_precision_rounds_as_numpy_does(kind: str) -> None:
    require(kind)
    x = np.array([1.0, 1.0009765625, 6.0e-8, 65504.0, np.inf], np.float16)
    z = np.zeros_like(x)
    with Accel(x, x, np.float16(0.5), Order(ARITHMETIC), z, kind=kind) as accel:
        accel.run(5)
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(z, x * x + np.float16(0.5), rtol=2e-3)


ATTRIBUTES = """
set_argnames("x", "n")
[cpp, cuda, hip]
    int at = 0;
    n(at++) = x.ndim;
    n(at++) = x.size;
    for (int d = 0; d < x.ndim; d++) { n(at++) = x.shape[d]; n(at++) = x.stride[d]; }
    n(at++) = n.size;
[fortran]
    integer at, d
    n(1) = x_attr%ndim
    n(2) = x_attr%size
    do d = 1, x_attr%ndim
        n(1 + 2 * d) = x_attr%shape(d)
        n(2 + 2 * d) = x_attr%stride(d)
    end do
    n(3 + 2 * x_attr%ndim) = n_attr%size
"""


@pytest.mark.parametrize("kind", ["cpp", "fortran", "cuda"])
def test_attributes_of_arrays(kind: str) -> None:
    require(kind)
    x, n = np.zeros((2, 3, 5), np.float32), np.zeros(9, np.int32)
    strides = (1, 2, 6) if kind == "fortran" else (15, 5, 1)
    with Accel(x, Order(ATTRIBUTES), n, kind=kind) as accel:
        accel.run()
    assert n.tolist() == [3, 30, 2, strides[0], 3, strides[1], 5, strides[2], 9]


@pytest.mark.parametrize("kind", ["cpp", "fortran"])
def test_strides_of_axes_of_length_0_and_1(kind: str) -> None:
    require(kind)
    # NumPy has other strides here for contiguous arrays
    for x in (np.zeros((8, 5), np.float32)[::3][2:], np.zeros((0, 3), np.float32)):
        m, n = x.shape
        out = np.zeros(7, np.int32)
        with Accel(x, Order(ATTRIBUTES), out, kind=kind) as accel:
            accel.run()
        strides = (n, 1) if kind == "cpp" else (1, m)
        assert out.tolist() == [2, m * n, m, strides[0], n, strides[1], 7]


GRID = """
set_argnames((), ("n", "run"))
[cpp, cuda, hip]
    const int all[9] = {ACCELPY_WORKER_DIM0, ACCELPY_WORKER_DIM1, ACCELPY_WORKER_DIM2,
                        ACCELPY_TEAM_DIM0,   ACCELPY_TEAM_DIM1,   ACCELPY_TEAM_DIM2,
                        ACCELPY_ASSIGN_DIM0, ACCELPY_ASSIGN_DIM1, ACCELPY_ASSIGN_DIM2};
    for (int i = 0; i < 9; i++) n(i) = all[i];
    run = ACCELPY_ACCEL_RUNID;
[fortran]
    n = [ACCELPY_WORKER_DIM0, ACCELPY_WORKER_DIM1, ACCELPY_WORKER_DIM2, &
         ACCELPY_TEAM_DIM0, ACCELPY_TEAM_DIM1, ACCELPY_TEAM_DIM2, &
         ACCELPY_ASSIGN_DIM0, ACCELPY_ASSIGN_DIM1, ACCELPY_ASSIGN_DIM2]
    run = ACCELPY_ACCEL_RUNID
"""


@pytest.mark.parametrize("kind", ["cpp", "fortran", "cuda"])
def test_grid_macros(kind: str) -> None:
    require(kind)
    n, run = np.zeros(9, np.int32), np.full((), -1)
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


THREADS = """
set_argnames((), ("seen", "count"))
[openmp_cpp]
    #pragma omp atomic
    seen(omp_get_thread_num())++;
    #pragma omp single
    count = omp_get_num_threads();
[openmp_fortran]
    !$omp atomic
    seen(omp_get_thread_num() + 1) = seen(omp_get_thread_num() + 1) + 1
    !$omp single
    count = omp_get_num_threads()
    !$omp end single
"""


@pytest.mark.parametrize("kind", ["openmp_cpp", "openmp_fortran"])
def test_members_are_threads(kind: str) -> None:
    require(kind)
    # OpenMP has looked at OMP_NUM_THREADS once, and other tests set it for processes that they start
    available = ctypes.CDLL("libgomp.so.1").omp_get_max_threads()
    seen, count = np.zeros(4096, np.int64), np.zeros((), np.int64)
    accel = Accel(Order(THREADS), seen, count, kind=kind)
    for workers in ((), (2,), (1, 2), (3000,), ((10, 10, 10), (10, 10))):
        seen[:] = count[...] = 0
        accel.run(*workers)
        accel.stop()
        wanted = int(np.prod([np.prod(item) for item in workers], dtype=np.int64))
        # at most the number of processors, or OMP_NUM_THREADS
        assert count == min(wanted, available)
        assert seen.tolist() == [1] * int(count) + [0] * (4096 - int(count))


INCLUDE = """
set_argnames("x", "y")
[cpp, openmp_cpp]
#include <numeric>
#include <vector>
    std::vector<double> parts;
    for (int i = 0; i < x.size; i++) parts.push_back(x(i));
    y = std::accumulate(parts.begin(), parts.end(), 0.0);
    return;
[cuda]
#include <cooperative_groups.h>
    if (cooperative_groups::this_grid().thread_rank() > 0) return;
    y = 0;
    for (int i = 0; i < x.size; i++) y += x(i);
    return;
[fortran]
    use iso_fortran_env, only: real64
    real(real64) :: parts(size(x))
    parts = x
    y = sum(parts)
    return
"""


@pytest.mark.parametrize("kind", ["cpp", "openmp_cpp", "fortran", "cuda"])
def test_bodies_with_includes_and_functions(kind: str) -> None:
    require(kind)
    x, y = _numbers(100), np.zeros(())
    with Accel(x, Order(INCLUDE), y, kind=kind) as accel:
        accel.run()
    assert y == x.sum()


REDUCTION = """
set_argnames("x", "total")
[cuda, hip]
    auto *const sum = reinterpret_cast<unsigned long long *>(&total);
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < x.size; i += gridDim.x * blockDim.x)
        atomicAdd(sum, static_cast<unsigned long long>(x(i)));
[openmp_cpp]
    #pragma omp for reduction(+ : total)
    for (int i = 0; i < x.size; i++) total += x(i);
[openacc_cpp]
    #pragma acc loop gang worker vector reduction(+ : total)
    for (int i = 0; i < x.size; i++) total += x(i);
[omptarget_cpp]
    #pragma omp distribute parallel for reduction(+ : total)
    for (int i = 0; i < x.size; i++) total += x(i);
[openmp_fortran]
    integer i
    !$omp do reduction(+ : total)
    do i = 1, size(x)
        total = total + x(i)
    end do
[openacc_fortran]
    integer i
    !$acc loop gang worker vector reduction(+ : total)
    do i = 1, size(x)
        total = total + x(i)
    end do
[omptarget_fortran]
    integer i
    !$omp teams distribute parallel do reduction(+ : total)
    do i = 1, size(x)
        total = total + x(i)
    end do
"""


@pytest.mark.parametrize("kind", [model for model in [*HOST, "cuda"] if model not in ("cpp", "fortran")])
def test_scalar_outputs(kind: str) -> None:
    require(kind)
    x, total = np.arange(1001), np.array(5)
    accel = Accel(x, Order(REDUCTION), total, kind=kind)
    for _ in range(2):
        accel.run(8, 2)
        accel.stop()
    assert total == 5 + 2 * x.sum()


def test_default_names_and_lists() -> None:
    out = np.zeros(3)
    order = Order("[cpp]\nfor (int i = 0; i < 3; i++) accelpy_out0(i) = accelpy_in0(i) * accelpy_in1;\n")
    with Accel([1, 2, 3], 7, order, out) as accel:
        accel.run()
    assert out.tolist() == [7, 14, 21]


def test_the_default_order_of_models() -> None:
    assert sorted(HOST) == sorted(model for model in MODELS if model in HOST)
    names = [model for model in MODELS if model in available(*HOST)]
    out = np.zeros(3)
    # later models replace those that are not available
    for first, second in itertools.pairwise(names):
        text = "".join(f"\n[{model}]\n" for model in (second, first))
        assert Accel(Order(text), out).model == first
        assert Accel(Order(text), out, kind=[second, first]).model == second
    last = names[-1]
    off = "".join(f"[{model}: enable=False]\n" for model in names[:-1])
    assert Accel(Order(f"{off}[{last}]\n"), out).model == last


@pytest.mark.parametrize(
    ("program", "models"),
    [
        ("g++", ("cpp", "openmp_cpp", "openacc_cpp", "omptarget_cpp")),
        ("gfortran", ("fortran", "openmp_fortran", "openacc_fortran", "omptarget_fortran")),
        ("nvcc", ("cuda",)),
    ],
)
def test_every_model_with_a_compiler_is_tested(program: str, models: tuple[str, ...]) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"there is no {program} here")
    no_device = program == "nvcc" and find_cuda_capability() is None
    assert {missing(model) for model in models} == {"there is no CUDA device" if no_device else None}
