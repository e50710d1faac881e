"""Kernels planned for GPUs and for CPUs, on any device, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from tests.fft.signals import bound, check_convolution, complex_signal, device_has, error, filled
from vkdispatch.base.record import replace
from vkdispatch.families.tuning import device_facts
from vkdispatch.fft import calls as kernels
from vkdispatch.fft.convolving import plan_convolution
from vkdispatch.fft.kernels import passes as long
from vkdispatch.fft.plan import passes
from vkdispatch.fft.plan import planes as columns
from vkdispatch.fft.plan.passes import Transform, make_grid, plan_pass, plan_staged, suits_pairs
from vkdispatch.fft.plan.planes import choose_factors
from vkdispatch.fft.plan.planner import find_planner
from vkdispatch.fft.plan.stages import Split, choose_split, list_splits
from vkdispatch.fft.plan.tuning import tuning

# short lines through workgroup memory, padded and split exchanges, columns, passes that turn lines over
SHAPES = [
    ((5, 7), 1),
    ((3, 210), 1),
    ((1, 4096), 1),
    ((2, 64, 5), 1),
    ((2, 8192), 1),
    ((1050, 3), 0),
    ((5, 37), 1),
]


def _check(shape: tuple[int, ...], axis: int) -> None:
    signal = complex_signal(*shape)
    buffer = filled(signal, vd.complex64)
    vd.fft.fft(buffer, axis=axis)
    assert error(buffer.read(0), np.fft.fft(signal, axis=axis)) < bound(shape[axis])
    vd.fft.ifft(buffer, axis=axis)
    assert error(buffer.read(0), signal) < 2 * bound(shape[axis])


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.usefixtures("plans_of_gpus")
def test_plans_of_gpus(shape: tuple[int, ...], axis: int) -> None:
    _check(shape, axis)


# a part of a workgroup's lines, whole workgroups, a part of the last one
@pytest.mark.parametrize("shape", [(1, 5), (32, 7), (67, 12), (3, 3, 9)])
@pytest.mark.usefixtures("plans_of_gpus")
def test_staged_lines(shape: tuple[int, ...]) -> None:
    plan = plan_staged(shape, len(shape) - 1, vd.complex64)
    assert plan is not None and plan.split.threads == 1
    _check(shape, len(shape) - 1)


@pytest.mark.usefixtures("plans_of_gpus")
def test_lengths_of_staged_lines() -> None:
    plans = {n: plan_staged((40, n), 1, vd.complex64) for n in (1, 2, 13, 15, 16, 17, 32, 105)}
    assert [n for n, plan in plans.items() if plan is not None] == [2, 13, 15, 17]
    assert plan_staged((40, 7, 2), 1, vd.complex64) is None


@pytest.mark.parametrize("count", [1, 32, 69])
@pytest.mark.usefixtures("plans_of_gpus")
def test_pairs_of_invocations_for_prime_lines(count: int) -> None:
    assert suits_pairs((count, 43), 1, vd.complex64)
    _check((count, 43), 1)
    kernel = vd.fft.make_fft_shader((count, 43))
    assert kernel.local_size == (64, 1, 1)


@pytest.mark.usefixtures("plans_of_gpus")
def test_pairs_of_invocations_scale_and_convert() -> None:
    signal = complex_signal(3, 43)
    buffer = filled(signal, vd.complex64)
    vd.fft.fft(buffer, norm="ortho")
    assert error(buffer.read(0), np.fft.fft(signal, norm="ortho")) < bound(43)
    if device_has(vd.complex32):
        half = filled(signal, vd.complex32)
        vd.fft.fft(half)
        assert error(half.read(0), np.fft.fft(signal)) < bound(43, vd.complex32)


@pytest.mark.usefixtures("plans_of_gpus")
def test_lengths_of_pairs_of_invocations() -> None:
    # 31 is too short, 37 of another kind, 83 too long
    lengths = [n for n in range(2, 200) if suits_pairs((5, n), 1, vd.complex64)]
    assert lengths == [43, 47, 59, 67, 71, 79]
    assert not suits_pairs((5, 67, 2), 1, vd.complex64)
    assert not suits_pairs((5, 67), 1, vd.complex128)


@pytest.mark.parametrize("n", [8, 16, 32, 64, 128, 256, 512, 1024, 60, 100])
@pytest.mark.usefixtures("plans_of_gpus")
def test_convolutions_exchange_seldom(n: int) -> None:
    a, k = complex_signal(7, n), complex_signal(7, n, seed=1)
    check_convolution(a, k)
    plans = plan_convolution(Transform((7, n), 1, vd.complex64))
    assert plans is not None
    stages = {64: 2, 128: 2, 256: 2, 512: 3}
    assert n not in stages or len(plans[0].split.radices) == stages[n]


@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        *SHAPES,
        ((9, 24), 1),
        ((3, 37, 6), 1),
        ((2, 20000), 1),
        # whole lines of an invocation, two stages of 32, three passes of up to 64
        ((70, 64), 1),
        ((3, 1024), 1),
        ((65536, 1), 0),
        # in pieces, the last of which is shorter
        ((3, 8192, 7), 1),
    ],
)
@pytest.mark.usefixtures("plans_of_cpus")
def test_plans_of_cpus(shape: tuple[int, ...], axis: int) -> None:
    _check(shape, axis)


# one to eight invocations share columns, which come in fours or pairs and leave as rows or as columns
COLUMNS: list[tuple[tuple[int, ...], int, tuple[int, ...]]] = [
    ((3, 256), 1, (16, 16)),
    ((5, 36), 1, (18, 2)),
    ((3, 1000), 1, (20, 50)),
    ((2, 96, 6), 1, (12, 8)),
    ((4096, 4), 0, (128, 32)),
    ((5, 16384), 1, (128, 128)),
    ((2, 8, 20000), 2, (8, 25, 100)),
]


@pytest.mark.parametrize(("shape", "axis", "radices"), COLUMNS)
@pytest.mark.usefixtures("plans_of_cpus")
def test_columns(
    shape: tuple[int, ...], axis: int, radices: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not columns.suits_columns(find_planner(), vd.complex64):
        pytest.skip("the device has no 64-bit words")
    monkeypatch.setattr(tuning, "column_least_values", 1)
    monkeypatch.setattr(long, "choose_radices", lambda *_: radices)
    kernels.build_fft_kernel.cache_clear()
    vd.fft.cache_clear()
    # those of the last piece are kernels of their own
    assert len(vd.fft.make_fft_shader(shape, axis).get_src()) in (len(radices), 2 * len(radices))
    _check(shape, axis)
    kernels.build_fft_kernel.cache_clear()
    vd.fft.cache_clear()


@pytest.mark.usefixtures("plans_of_cpus")
def test_radices_of_columns() -> None:
    planner = find_planner()
    if not columns.suits_columns(planner, vd.complex64):
        pytest.skip("the device has no 64-bit words")
    assert columns.choose_radices(4096, 1, vd.complex128) is None
    assert columns.choose_radices(1155, 1, vd.complex64) is None  # no two of its columns are a vector
    assert columns.choose_radices(64 * 37, 1, vd.complex64) is None
    facts = planner.device
    if facts.subgroup_size % 8 or not (facts.has_shuffle and facts.has_full_subgroups):
        return
    assert columns.choose_radices(16384, 1, vd.complex64) == (128, 128)
    assert columns.choose_lanes(planner, 16) == 1 and columns.choose_lanes(planner, 20) == 2
    assert columns.choose_lanes(planner, 50) == 2 and columns.choose_lanes(planner, 100) == 4
    for length in (60, 100, 1000, 3000, 65536, 100000):
        radices = columns.choose_radices(length, 1, vd.complex64)
        assert radices is not None and np.prod(radices) == length
        assert max(radix // columns.choose_lanes(planner, radix) for radix in radices) <= 25


@pytest.mark.usefixtures("plans_of_cpus")
def test_passes_of_columns_take_words_of_64_bits() -> None:
    shape = (4, 16384)
    if not columns.suits_columns(find_planner(), vd.complex64):
        pytest.skip("the device has no 64-bit words")
    kernel = vd.fft.make_fft_shader(shape)
    sources = kernel.get_src()
    assert len(sources) == 2
    assert all("vec2 data[]; } buf0;" not in source.code.replace("dvec2", "") for source in sources)
    # what callers give is complex64 all the same
    with pytest.raises(ValueError, match="expected elements of complex64"):
        kernel(vd.Buffer(shape, vd.uint64))


@pytest.mark.usefixtures("plans_of_cpus")
def test_maps_see_the_buffers_that_they_ask_for() -> None:
    if "shaderInt64" not in vd.get_context().features:
        pytest.skip("the device has no 64-bit integers")
    signal = complex_signal(3, 40)
    words, spectrum = vd.asbuffer(signal.view(np.uint64)), vd.Buffer((3, 40), vd.complex64)

    @vd.map
    def read(buffer: vc.Buffer[vd.uint64]) -> None:  # type: ignore[valid-type]
        op = vd.fft.read_op()
        pair = vc.unpack_uint2x32(buffer[op.io_index]).to_register()
        op.register[:] = vc.to_complex(vc.uint_bits_to_float(pair.y), vc.uint_bits_to_float(pair.x))

    vd.fft.fft(spectrum, words, input_map=read, buffer_shape=(3, 40))
    swapped = signal.imag + 1j * signal.real
    assert error(spectrum.read(0), np.fft.fft(swapped)) < bound(40)


@pytest.mark.parametrize("length", [62, 1024])
@pytest.mark.usefixtures("plans_of_gpus")
def test_real_lines_of_gpus(length: int) -> None:
    signal = complex_signal(3, length).real.astype(np.float32)
    buffer = vd.asrfftbuffer(signal)
    vd.fft.rfft(buffer)
    assert error(buffer.read_fourier(0), np.fft.rfft(signal.astype(np.float64))) < bound(length)
    vd.fft.irfft(buffer)
    assert error(buffer.read_real(0), signal) < 2 * bound(length)


@pytest.mark.parametrize(
    ("axis", "threads", "lines"), [(1, 1, 8), (1, 6, 5), (0, 4, 3), (0, 1, 3), (0, 4, 1)]
)
def test_workgroups_of_one_row(axis: int, threads: int, lines: int) -> None:
    """What lies along x fills vectors: all invocations where lines, or the invocations of one, do not."""
    grid = make_grid((24, 24), axis, threads, lines, 8)
    assert grid.flat and grid.local_size == (threads * lines, 1, 1)
    assert not make_grid((24, 24), axis, 8, 8, 8).flat
    assert not make_grid((24, 24), axis, threads, lines).flat


def test_splits_of_cpus_have_the_fewest_exchanges() -> None:
    for length in (64, 100, 315, 512, 1155, 2048, 4096):
        found = choose_split(length, 16, 1024, 4096)
        assert found is not None
        choices = [split for _, split in list_splits(length, 16, 1024)]
        assert len(found.radices) == min(len(split.radices) for split in choices)
    # idle invocations read behind the line, for which there must be room as well
    found = choose_split(4000, 16, 1024, 4096)
    assert found is not None and all(s.rounds * s.threads - s.butterflies <= 96 for s in found.stages)
    assert choose_split(64, 16, 1024, 4096) == Split(64, (8, 8), 8)


def test_kernels_are_kept_for_devices_of_one_subgroup_size(monkeypatch: pytest.MonkeyPatch) -> None:
    limits, facts = passes.device_limits(), device_facts()
    other = replace(facts, subgroup_size=2 * facts.subgroup_size)
    monkeypatch.setattr(passes, "device_facts", lambda context: other)
    assert passes.device_limits() != limits


@pytest.mark.usefixtures("plans_of_cpus")
def test_plans_on_a_cpu() -> None:
    assert device_facts().is_cpu
    # a short line is one invocation's, whose vectors are made of neighbours in x
    plan = plan_pass((100, 24), 1, vd.complex64)
    assert plan is not None and plan.layout is None and plan.grid.local_size == (64, 1, 1)
    # no room is lost to padding: all of a line is there at once
    plan = plan_pass((2, 4096), 1, vd.complex64)
    assert plan is not None and plan.layout is not None and (plan.layout.parts, plan.layout.row) == (1, 4096)
    assert max(choose_factors(8192, vd.complex64) or ()) <= 32
    assert sorted(choose_factors(65536, vd.complex64) or ()) == [32, 32, 64]
    # the least registers that save an exchange
    for length, registers in ((64, 64), (62, 16), (256, 16), (1000, 16), (1024, 32), (600, 25)):
        assert find_planner().choose_registers(length, False) == registers


@pytest.mark.parametrize("plans", ["cpu", "gpu"])
@pytest.mark.parametrize(("shape", "axis", "most"), [((2, 64, 3), 1, 8), ((3, 480), 1, 16), ((1, 7), 1, 7)])
@pytest.mark.parametrize("place", ["input", "kernel", "output"])
def test_long_maps_are_written_out_for_few_values(
    monkeypatch: pytest.MonkeyPatch, plans: str, shape: tuple[int, ...], axis: int, most: int, place: str
) -> None:
    monkeypatch.setenv("VKDISPATCH_PLAN", plans)
    traces: list[str] = []

    def multiply(op: Any, factor: Any) -> None:
        traces.append(place)
        for number in tuple(range(40)):
            with vc.if_block(factor > number):
                op.register[:] = op.register * 2

    def read(source: vc.Buff[vc.c64], factor: vc.Const[vc.f32]) -> None:
        op = vd.fft.read_op()
        op.read_from_buffer(source)
        multiply(op, factor)

    def change(factor: vc.Const[vc.f32]) -> None:
        multiply(vd.fft.read_op(), factor)

    def write(target: vc.Buff[vc.c64], factor: vc.Const[vc.f32]) -> None:
        op = vd.fft.write_op()
        multiply(op, factor)
        op.write_to_buffer(target)

    signal = complex_signal(*shape)
    buffer = filled(signal, vd.complex64)
    truth = 4 * np.fft.fft(signal, axis=axis)
    if place == "input":
        vd.fft.fft(buffer, filled(signal, vd.complex64), 2.0, axis=axis, input_map=vd.map(read))
    elif place == "kernel":
        vd.fft.convolve(buffer, 2.0, axis=axis, kernel_map=vd.map(change))
        truth = 4 * signal
    else:
        vd.fft.fft(buffer, 2.0, filled(signal, vd.complex64), axis=axis, output_map=vd.map(write))
    assert error(buffer.read(0), truth) < 4 * bound(shape[axis])
    # it may be measured once
    assert len(traces) <= most + 1
