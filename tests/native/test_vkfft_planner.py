"""Planning with VkFFT on the virtual device; failures are raised as exceptions."""

from __future__ import annotations

from typing import Any

import pytest

import vkdispatch_native as native

NVIDIA = (0x10DE, 1024, 49152, (2147483647, 65535, 65535), (1024, 1024, 64))
OTHER = (0x10005, 1024, 32768, (65535, 65535, 65535), (1024, 1024, 1024))


def plan(length: int, run: Any = None, device: Any = OTHER, **options: int) -> Any:
    def zeros(kernels: Any, buffers: Any, passes: Any) -> Any:
        return [bytes(size) for size, _ in buffers]

    return native.plan_fft(
        device, [(length, False, None, 0)], {"buffer_size": length * 8, **options}, run or zeros
    )


def test_version() -> None:
    assert native.vkfft_version() >= (1, 3, 0)


@pytest.mark.parametrize("device", [NVIDIA, OTHER])
def test_passes(device: Any) -> None:
    kernels, buffers, forward, inverse = plan(64, device=device)
    assert len(forward) == len(inverse) == 1 and len(kernels) == 2
    number, bound, push_constants, groups = forward[0]
    source, binding_count, push_constant_size = kernels[number]
    assert "void main()" in source and binding_count == len(bound) and push_constants == b""
    assert push_constant_size == 0 and min(groups) >= 1
    # in place, with a table
    assert bound[:2] == (0, 0) and all(
        len(buffers[place - 3][1]) == buffers[place - 3][0] for place in bound[2:]
    )


def test_several_passes_use_scratch_memory() -> None:
    _, buffers, forward, inverse = plan(1 << 20, inverse=0)
    assert len(forward) > 1 and inverse == ()
    assert any(contents == b"" and size >= 8 << 20 for size, contents in buffers)


def test_tables_computed_by_transforms() -> None:
    seen = []

    def run(kernels: Any, buffers: Any, passes: Any) -> Any:
        seen.append(len(passes))
        return [bytes([len(seen)]) * size for size, _ in buffers]

    _, buffers, _, _ = plan(1021, run)
    assert len(seen) == 2
    assert {contents[:4] for _, contents in buffers} >= {b"\1\1\1\1", b"\2\2\2\2"}


def test_exceptions_of_the_callback_are_raised() -> None:
    def fails(*_: object) -> Any:
        raise KeyError("mine")

    for _ in range(3):
        with pytest.raises(KeyError, match="mine"):
            plan(1021, fails)
    with pytest.raises(ValueError, match="expected the contents"):
        plan(1021, lambda *_: [])
    with pytest.raises(ValueError, match="bytes"):
        plan(1021, lambda kernels, buffers, passes: [b""] * len(buffers))
    with pytest.raises(TypeError):
        plan(1021, lambda *_: None)


def test_invalid_requests() -> None:
    with pytest.raises(ValueError, match="VKFFT_ERROR"):
        plan(64, buffer_size=0)
    with pytest.raises(ValueError, match="unknown"):
        plan(64, colour=3)
    with pytest.raises(ValueError, match="axes"):
        native.plan_fft(OTHER, [], {"buffer_size": 8}, list)
    with pytest.raises(ValueError, match="positive"):
        plan(0)
    with pytest.raises((OverflowError, TypeError)):
        plan(64, batches=-1)
