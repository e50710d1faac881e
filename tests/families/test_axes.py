"""One rule for axes in all functions on arrays: ints, from the front or the end, each of them once."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd

HOST = np.random.default_rng(5).standard_normal((6, 8)).astype(np.float32)
Call = Callable[[Any], Any]


def real() -> vd.Buffer[Any]:
    return vd.asbuffer(HOST)


def complex_() -> vd.Buffer[Any]:
    return vd.asbuffer(HOST.astype(np.complex64))


def in_place(function: Any, buffer: vd.Buffer[Any], **options: Any) -> vd.Buffer[Any]:
    function(buffer, **options)
    return buffer


def indices() -> vd.Buffer[Any]:
    return vd.asbuffer(np.zeros((6, 8), np.int32))


def convolved(axis: Any) -> vd.Buffer[Any]:
    data = complex_()
    vd.fft.convolve(data, complex_(), axis=axis)
    return data


def reduced(axes: Any) -> vd.Buffer[Any]:
    reduction = vd.reduce.ReduceFunction(vd.reduce.SubgroupAdd, None, axes, mapping_function=_same)
    return reduction(real())


@vd.map
def _same(x: vd.codegen.Buff[vd.float32]) -> vd.float32:  # type: ignore[valid-type]
    return x[vd.reduce.mapped_io_index()]  # type: ignore[no-any-return]


def shuffled(axis: Any) -> vd.Buffer[Any]:
    data = real()
    vd.random.Generator(3).shuffle(data, axis)
    return data


ONE: dict[str, tuple[str, Call]] = {
    "argmax": ("axis", lambda axis: vd.argmax(real(), axis)),
    "cumsum": ("axis", lambda axis: vd.cumsum(real(), axis)),
    "sort": ("axis", lambda axis: vd.sort(real(), axis)),
    "argsort": ("axis", lambda axis: vd.argsort(real(), axis)),
    "sort_by_key": ("axis", lambda axis: vd.sort_by_key(real(), real(), axis)[1]),
    "topk": ("axis", lambda axis: vd.topk(real(), 2, axis)[0]),
    "concatenate": ("axis", lambda axis: vd.concatenate([real(), real()], axis)),
    "take": ("axis", lambda axis: vd.take(real(), vd.asbuffer(np.zeros(3, np.int32)), axis)),
    "take_along_axis": ("axis", lambda axis: vd.take_along_axis(real(), indices(), axis)),
    "repeat": ("axis", lambda axis: vd.repeat(real(), 2, axis)),
    "pad": ("pad_width", lambda axis: vd.pad(real(), {axis: 1})),
    "permutation": ("axis", lambda axis: vd.random.Generator(3).permutation(real(), axis)),
    "shuffle": ("axis", shuffled),
    "fft.fft": ("axis", lambda axis: in_place(vd.fft.fft, complex_(), axis=axis)),
    "fft.ifft": ("axis", lambda axis: in_place(vd.fft.ifft, complex_(), axis=axis)),
    "fft.dct": ("axis", lambda axis: vd.fft.dct(real(), axis=axis)),
    "fft.idst": ("axis", lambda axis: vd.fft.idst(real(), axis=axis)),
    "fft.convolve": ("axis", convolved),
    "fft.transpose": ("axis", lambda axis: vd.fft.transpose(complex_(), axis=axis)),
}
SEVERAL: dict[str, tuple[str, Call]] = {
    "sum": ("axis", lambda axis: vd.sum(real(), axis)),
    "std": ("axis", lambda axis: vd.std(real(), axis)),
    "norm": ("axis", lambda axis: vd.norm(real(), axis=axis)),
    "reduce": ("axes", reduced),
    "roll": ("axis", lambda axis: vd.roll(real(), 3, axis)),
    "flip": ("axis", lambda axis: vd.flip(real(), axis)),
    "fft.fftn": ("axes", lambda axes: in_place(vd.fft.fftn, complex_(), axes=axes)),
    "fft.fftshift": ("axes", lambda axes: vd.fft.fftshift(real(), axes)),
    "fft.dctn": ("axes", lambda axes: vd.fft.dctn(real(), axes=axes)),
    "vkfft.fft": ("axis", lambda axis: in_place(vd.vkfft.fft, complex_(), axis=axis)),
}
ALL = ONE | SEVERAL


@pytest.mark.parametrize("name", ALL)
def test_axis_out_of_range_is_refused(name: str) -> None:
    argument, call = ALL[name]
    for axis in (9, -3, np.int64(2)):
        with pytest.raises(
            vd.AxisError, match=rf"^{argument}: {int(axis)} is out of bounds .*-2 to 1"
        ) as caught:
            call(axis)
        assert isinstance(caught.value, IndexError)
        assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("name", ALL)
def test_invalid_axes(name: str) -> None:
    argument, call = ALL[name]
    call(1)  # what is kept of a right call does not let 1.0 and True pass
    for axis in (True, np.True_, 1.0, "1"):
        with pytest.raises(TypeError, match=rf"^{argument}: expected an int"):
            call(axis)


@pytest.mark.parametrize("name", ALL)
def test_axes_from_the_end_and_of_numpy(name: str) -> None:
    _, call = ALL[name]
    for axis, same in ((0, -2), (1, -1), (1, np.int8(1)), (0, np.uint64(0))):
        np.testing.assert_array_equal(call(axis).read(0), call(same).read(0))


@pytest.mark.parametrize("name", [name for name in SEVERAL if name != "roll"])
def test_repeated_axis_is_refused(name: str) -> None:
    argument, call = SEVERAL[name]
    for axes in ((0, 0), [1, -1]):
        with pytest.raises(vd.AxisError, match=f"^{argument}: repeated axis"):
            call(axes)


def test_the_axes_of_a_transposed_array() -> None:
    for axes, error in (((0, 2), vd.AxisError), ((0, -2), vd.AxisError), ((0, True), TypeError)):
        with pytest.raises(error, match=r"^axes: "):
            vd.transpose(real(), axes)
    with pytest.raises(vd.AxisError, match=r"^axis: 3 is out of bounds"):
        vd.stack([real(), real()], 3)


def test_roll_with_a_repeated_axis() -> None:
    np.testing.assert_array_equal(vd.roll(real(), (1, 2), (0, 0)).read(0), np.roll(HOST, (1, 2), (0, 0)))
    np.testing.assert_array_equal(vd.roll(real(), np.array(3), 1).read(0), np.roll(HOST, 3, 1))
