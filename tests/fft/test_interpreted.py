"""Kernels run by the interpreter, which detects races and accesses out of bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
from tests.fft.signals import bound, complex_signal, error


@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        ((2, 859, 1), vd.complex128),  # Rader's, more invocations than values of a round
        ((5, 101, 1), vd.complex64),
        ((3, 103, 1), vd.complex64),
        ((3, 167, 2), vd.complex64),  # Bluestein's
        ((3, 125, 3), vd.complex64),
    ],
    ids=str,
)
def test_kernels_have_no_races_and_stay_in_bounds(shape: tuple[int, ...], kind: Any) -> None:
    signal = complex_signal(*shape, dtype=np.complex128 if kind is vd.complex128 else np.complex64)
    kernel = vd.fft.make_fft_shader(shape, 1, input_type=kind, output_type=kind)
    buffer = signal.ravel().copy()
    kernel.interpret(buffer, races=True)
    truth = np.fft.fft(signal.astype(np.complex128), axis=1)
    assert error(buffer.reshape(shape), truth) < bound(shape[1], kind)


@pytest.mark.parametrize(
    ("shape", "kind", "memory"),
    [
        ((1, 59, 32), vd.complex128, 16384),
        ((1, 613, 5), vd.complex64, 16384),
        ((1, 526, 5), vd.complex64, 32752),
    ],
    ids=str,
)
def test_reversed_radices_without_enough_memory(
    shape: tuple[int, ...], kind: Any, memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = vd.get_context()
    for info in context.device_infos:
        monkeypatch.setattr(type(info), "is_cpu", lambda self: False)
    monkeypatch.setattr(context, "max_shared_memory", memory)
    test_kernels_have_no_races_and_stay_in_bounds(shape, kind)
