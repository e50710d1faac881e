"""Real transforms of even lengths, by complex transforms of half the length, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
from tests.fft.signals import bound, device_has, error, real_signal
from vkdispatch.base.record import replace
from vkdispatch.fft.kernels.real import make_real_kernel
from vkdispatch.fft.plan.passes import Pass, PassChoices, SharedLayout, Transform, plan_pass, plan_real
from vkdispatch.fft.plan.stages import Split

_HOST = {vd.complex32: np.complex64, vd.complex64: np.complex64, vd.complex128: np.complex128}


def _filled(signal: Any, kind: Any) -> Any:
    buffer = vd.RFFTBuffer(signal.shape, kind)
    buffer.write_real(signal)
    return buffer


def _spectrum(buffer: Any) -> Any:
    found = buffer.read_fourier(0)
    return found if np.iscomplexobj(found) else found[..., 0] + 1j * found[..., 1]


def _check(forward: Any, backward: Any, *shape: int, kind: Any = vd.complex64) -> None:
    dtype = np.float64 if kind is vd.complex128 else np.float32
    signal = real_signal(*shape, dtype=dtype)
    if kind is vd.complex32:
        signal = signal.astype(np.float16).astype(np.float32)
    buffer = _filled(signal, kind)
    truth = np.fft.rfft(signal.astype(np.float64))
    forward(buffer)
    assert error(_spectrum(buffer), truth) < bound(shape[-1], kind)
    # the imaginary parts of the first value and of the last one belong to no real line
    truth[..., 0] += 3j
    truth[..., -1] -= 2j
    buffer.write_fourier(truth.astype(_HOST[kind]))
    backward(buffer)
    assert error(buffer.read_real(0).astype(np.float64), signal) < 2 * bound(shape[-1], kind)


def test_every_even_length_to_64() -> None:
    # by the interpreter, which compiles nothing
    for length in range(2, 65, 2):
        plan = plan_real(3, length, vd.complex64)
        _check_plan(plan, 3, length, interpreted=True)


@pytest.mark.parametrize("shape", [(3, 2), (5, 12), (9, 64), (1, 1210), (2, 3, 128), (2, 4096)])
def test_on_the_device(shape: tuple[int, ...]) -> None:
    _check(vd.fft.rfft, vd.fft.irfft, *shape)


@pytest.mark.parametrize(("shape", "passes"), [((2, 3, 10000), 4), ((17, 16384), 7)])
@pytest.mark.usefixtures("plans_of_cpus")
def test_long_lines_on_cpus(shape: tuple[int, ...], passes: int) -> None:
    """By complex transforms of half the length, whose last lines may be fewer."""
    if vd.get_context().is_cpu():  # others have workgroup memory for longer lines
        assert len(vd.fft.make_fft_shader(shape, r2c=True).get_src()) == passes
    _check(vd.fft.rfft, vd.fft.irfft, *shape)


@pytest.mark.parametrize("kind", [vd.complex32, vd.complex128])
@pytest.mark.parametrize("shape", [(301, 10), (3, 128)])
def test_other_types(kind: Any, shape: tuple[int, ...]) -> None:
    if not device_has(kind):
        pytest.skip("the device lacks the type")
    _check(vd.fft.rfft, vd.fft.irfft, *shape, kind=kind)


def test_last_workgroup_with_fewer_lines_writes_nothing_else() -> None:
    count, length = 259, 32
    signal = real_signal(count, length)
    buffer = _filled(np.concatenate([signal, np.full((3, length), 7, np.float32)]), vd.complex64)
    before = buffer.read_fourier(0)[count:]
    vd.fft.fft(buffer, buffer_shape=(count, length), r2c=True)
    found = buffer.read_fourier(0)
    assert error(found[:count], np.fft.rfft(signal)) < bound(length)
    assert np.array_equal(found[count:], before)


def test_inverse_without_normalization() -> None:
    signal = real_signal(4, 48)
    buffer = _filled(signal, vd.complex64)
    vd.fft.rfft(buffer)
    vd.fft.irfft(buffer, normalize=False)
    assert error(buffer.read_real(0), signal * 48) < bound(48)


# ---- every kind of kernel --------------------------------------------------------------------------


def _check_plan(plan: Any, count: int, length: int, interpreted: bool = False) -> None:
    assert plan is not None
    kind = vd.complex64
    forward = Transform((count, length), 1, kind, r2c=True, input_type=kind, output_type=kind)
    kernels: list[Any] = [
        make_real_kernel(plan, replace(forward, inverse=inverse)) for inverse in (False, True)
    ]
    if interpreted:
        kernels = [kernel.interpret for kernel in kernels]
    _check(*kernels, count, length)


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("length", [16, 90])
def test_forms_of_exchange(length: int, linear: bool) -> None:
    half = plan_pass((37, length // 2), 1, vd.complex64, PassChoices(lines=8))
    plan = plan_real(37, length, vd.complex64, half=half, linear=linear)
    assert plan is not None and plan.linear == linear
    _check_plan(plan, 37, length, interpreted=length > 16)


@pytest.mark.parametrize("length", [128, 210, 420])
def test_exchange_of_real_and_imaginary_parts_in_turn(length: int) -> None:
    half = plan_pass((19, length // 2), 1, vd.complex64, PassChoices(registers=16, lines=4, parts=2))
    plan = plan_real(19, length, vd.complex64, half=half)
    assert plan is not None and plan.half.layout is not None
    assert plan.half.layout.parts == 2
    _check_plan(plan, 19, length, interpreted=True)


@pytest.mark.parametrize("chunks", [2, 4])
def test_lines_exchanged_in_pieces(chunks: int) -> None:
    split = Split(512, (16, 8, 4), 32)
    half = plan_pass((3, 512), 1, vd.complex64, PassChoices(split=split, lines=2, parts=2))
    assert half is not None
    piece = 512 // chunks
    layout = SharedLayout(512, 2, 16, piece + piece // 16, 2, chunks)
    plan = plan_real(3, 1024, vd.complex64, half=Pass(split, half.grid, layout, vd.complex64))
    _check_plan(plan, 3, 1024, interpreted=chunks == 4)


def test_lengths_and_types_without_a_real_plan() -> None:
    assert plan_real(3, 15, vd.complex64) is None
    assert plan_real(3, 16, vd.complex32) is None
    assert plan_real(3, 2 * 37, vd.complex64) is None


@pytest.mark.parametrize("name", ["fft", "fft2"])
def test_complex_transforms_of_reals_name_the_real_ones(name: str) -> None:
    data = real_signal(4, 6, dtype=np.float32)
    with pytest.raises(
        ValueError, match=r"got float32; .*vd\.asbuffer\(data, vd\.complex64\).*vd\.fft\.rfft"
    ):
        getattr(vd.fft, name)(vd.asbuffer(data))
    with pytest.raises(ValueError, match=r"got int32$"):
        getattr(vd.fft, name)(vd.asbuffer(data.astype(np.int32)))


def test_complex_transforms_of_half_a_spectrum_raise() -> None:
    signal = real_signal(4, 6, 8)
    buffer = _filled(signal, vd.complex64)
    with pytest.raises(TypeError, match="RFFTBuffer holds real numbers or half a spectrum"):
        vd.fft.fft(buffer)
    for transform in (vd.fft.ifft, vd.fft.fft2, vd.fft.ifft2, vd.fft.fft3, vd.fft.ifft3):
        with pytest.raises(TypeError, match="RFFTBuffer"):
            transform(buffer)
    vd.fft.rfft(buffer)
    vd.fft.fft(buffer, axis=1)  # whole along the other axes
    vd.fft.fft(buffer, axis=-3)
    assert error(_spectrum(buffer), np.fft.rfftn(signal)) < bound(4 * 6 * 8)
