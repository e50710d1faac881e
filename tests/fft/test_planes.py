"""Transforms of two axes in one kernel, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
from tests.fft.signals import bound, complex_signal, device_has, error, filled
from vkdispatch.base.record import replace
from vkdispatch.fft.convolving import PlaneConvolution, get_plane_convolution
from vkdispatch.fft.kernels.planes import make_plane_kernel
from vkdispatch.fft.plan.passes import Transform
from vkdispatch.fft.plan.planes import PlaneChoices, PlanePlan, plan_planes
from vkdispatch.fft.plan.stages import Split

# a CPU takes two kernels
pytestmark = pytest.mark.usefixtures("plans_of_gpus")


def _check(forward: Any, backward: Any, *shape: int, kind: Any = vd.complex64) -> None:
    dtype = np.complex128 if kind is vd.complex128 else np.complex64
    signal = complex_signal(*shape, dtype=dtype)
    if kind is vd.complex32:
        signal = (signal.real.astype(np.float16) + 1j * signal.imag.astype(np.float16)).astype(np.complex64)
    buffer = filled(signal, kind)
    values = shape[-1] * shape[-2]

    def read() -> Any:
        found = buffer.read(0)
        return found if np.iscomplexobj(found) else found[..., 0].astype(np.float64) + 1j * found[..., 1]

    forward(buffer)
    assert error(read(), np.fft.fft2(signal.astype(np.complex128))) < bound(values, kind)
    backward(buffer)
    assert error(read(), signal) < 2 * bound(values, kind)


def _check_plan(plan: PlanePlan | None, interpreted: bool = True) -> None:
    assert plan is not None
    shape, kind = (plan.count, plan.height, plan.width), vd.complex64
    forward = Transform(shape, 2, kind, input_type=kind, output_type=kind)
    kernels: list[Any] = [
        make_plane_kernel(plan, replace(forward, inverse=inverse)) for inverse in (False, True)
    ]
    if interpreted:  # which compiles nothing
        kernels = [kernel.interpret for kernel in kernels]
    _check(*kernels, plan.count, plan.height, plan.width)


@pytest.mark.parametrize("shape", [(5, 8, 8), (4, 6), (37, 2, 3), (2, 16, 32)])
def test_on_the_device(shape: tuple[int, ...]) -> None:
    with vd.profile() as profile:
        vd.fft.fft2(vd.Buffer(shape, vd.complex64))
        vd.queue_wait_idle()
    assert "axis" not in str(profile)  # it is one kernel, not one for each axis
    _check(vd.fft.fft2, vd.fft.ifft2, *shape)


@pytest.mark.parametrize("kind", [vd.complex32, vd.complex128])
def test_other_types(kind: Any) -> None:
    if not device_has(kind):
        pytest.skip("the device lacks the type")
    _check(vd.fft.fft2, vd.fft.ifft2, 3, 8, 10, kind=kind)


def test_three_axes() -> None:
    signal = complex_signal(5, 4, 6)
    buffer = filled(signal, vd.complex64)
    vd.fft.fft3(buffer)
    assert error(buffer.read(0), np.fft.fftn(signal)) < bound(120)
    vd.fft.ifft3(buffer)
    assert error(buffer.read(0), signal) < 2 * bound(120)


def test_inverse_without_normalization_in_a_graph() -> None:
    signal = complex_signal(7, 8, 8)
    buffer = filled(signal, vd.complex64)
    graph = vd.CommandGraph()
    vd.fft.fft2(buffer, graph=graph)
    vd.fft.ifft2(buffer, graph=graph, normalize=False)
    graph.submit()
    assert error(buffer.read(0), signal * 64) < 2 * bound(64)


@pytest.mark.parametrize("size", [(2, 2), (3, 5), (9, 6), (10, 6), (8, 64), (30, 42), (17, 17), (16, 15)])
def test_sizes(size: tuple[int, int]) -> None:
    # the last workgroup has fewer planes; where rows and columns need other numbers some invocations idle
    _check_plan(plan_planes(5, *size, vd.complex64, PlaneChoices(planes=2 if max(size) < 20 else None)))


@pytest.mark.parametrize("shape", [(3, 10, 3), (25, 8), (2, 28, 9)])
def test_columns_that_need_fewer_invocations_than_rows(shape: tuple[int, ...]) -> None:
    _check(vd.fft.fft2, vd.fft.ifft2, *shape)


def test_invocations_of_each_line() -> None:
    for height in range(2, 34):
        for width in range(2, 34):
            plan = plan_planes(3, height, width, vd.complex64)
            if plan is None:
                continue
            lanes = np.arange(plan.group)
            neighbours = plan.group // plan.columns.threads
            rows = {(lane // plan.rows.threads, lane % plan.rows.threads) for lane in lanes}
            columns = {(lane % neighbours, lane // neighbours) for lane in lanes}
            assert {(i, j) for i in range(height) for j in range(plan.rows.threads)} <= rows
            assert {(i, j) for i in range(width) for j in range(plan.columns.threads)} <= columns


@pytest.mark.parametrize("inner_only", [False, True])
@pytest.mark.parametrize("shape", [(5, 8, 8), (3, 6, 10)])
def test_convolutions(shape: tuple[int, ...], inner_only: bool) -> None:
    signal, kernel = complex_signal(*shape), complex_signal(*(shape[1:] if inner_only else shape), seed=1)
    buffer, spectrum = filled(signal, vd.complex64), filled(np.fft.fft2(kernel), vd.complex64)
    with vd.profile() as profile:
        vd.fft.convolve2D(buffer, spectrum, kernel_inner_only=inner_only)
        vd.queue_wait_idle()
    assert "convolve2D_" in str(profile)
    truth = np.fft.ifft2(np.fft.fft2(signal) * np.conj(np.fft.fft2(kernel)))
    assert error(buffer.read(0), truth) < 3 * bound(shape[-1] * shape[-2])


def _check_convolution(height: int, width: int) -> None:
    spec = PlaneConvolution(
        2, height, width, vd.complex64, vd.complex64, vd.complex64, inner_only=False, normalize=False
    )
    kernel = get_plane_convolution(spec)
    assert kernel is not None
    signal, other = complex_signal(2, height, width), complex_signal(2, height, width, seed=1)
    buffer = filled(signal, vd.complex64)
    kernel.interpret(buffer, filled(other, vd.complex64))
    truth = np.fft.ifft2(np.fft.fft2(signal) * np.conj(other)) * height * width
    assert error(buffer.read(0), truth) < 3 * bound(height * width)


@pytest.mark.parametrize("size", [(16, 16), (30, 42)])
def test_convolutions_through_several_stages(size: tuple[int, int]) -> None:
    _check_convolution(*size)


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("parts", [1, 2])
def test_forms_of_exchange(parts: int, staged: bool) -> None:
    split = Split(16, (4, 4), 4)
    plan = plan_planes(
        3, 16, 16, vd.complex64, PlaneChoices(split, split, planes=2, parts=parts, staged=staged)
    )
    assert plan is not None and plan.parts == parts and plan.staged == (staged and parts == 1)
    _check_plan(plan)


def test_planes_exchanged_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    context = vd.get_context()
    split = Split(32, (8, 4), 4)
    monkeypatch.setattr(context, "max_shared_memory", 3000)
    plan = plan_planes(2, 32, 32, vd.complex64, PlaneChoices(split, split, planes=1))
    assert plan is not None and plan.parts == 2 and plan.chunks == 2 and plan.size <= 3000
    assert plan.row_layout is not None and plan.row_layout.chunks == 2
    _check_plan(plan)
    _check_convolution(32, 32)


@pytest.mark.parametrize("size", [(37, 8), (4096, 4096), (1, 8)])
def test_planes_that_take_two_passes(size: tuple[int, int]) -> None:
    assert plan_planes(3, *size, vd.complex64) is None
