"""Products as they are planned for processors, which any device can run; and the reverse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
from vkdispatch.codegen.abbreviations import Buff, f16, f32
from vkdispatch.families.tuning import device_facts
from vkdispatch.matrices import plans as tuning

from .products import check, numbers, plan_for

# Sums of all sizes, and elements that are not of their type.
TYPES = [np.bool_, np.uint8, np.int64, np.float16, np.float32, np.float64, np.complex64, np.complex128]


@pytest.mark.parametrize("kind", TYPES)
def test_panels(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sides and lengths of whole panels and words, and around them."""
    plan_for(monkeypatch, cpu=True)
    for m, k, n in [(16, 8, 32), (17, 9, 33), (35, 13, 70), (2, 1, 9), (15, 4, 31)]:
        for flip_a, flip_b in ((False, False), (True, False), (False, True), (True, True)):
            check((m, k), (k, n), kind, transpose_a=flip_a, transpose_b=flip_b)
    check((3, 20, 15), (1, 15, 36), kind)
    check((1, 20, 16), (3, 16, 36), kind)
    check((3, 20, 16), (3, 16, 36), kind, transpose_b=True)


@pytest.mark.parametrize("kind", TYPES)
def test_lines(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrices by vectors: whole loads, single elements, rows and columns beyond those of a workgroup."""
    plan_for(monkeypatch, cpu=True)
    for m, k in [(40, 64), (41, 67), (257, 16)]:
        for flip in (False, True):
            check((m, k), (k,), kind, transpose_a=flip)
            check((k,), (k, m), kind, transpose_b=flip)


def test_lines_of_other_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    plan_for(monkeypatch, cpu=True)
    for m, k in [(3, 100), (12, 7), (1, 333), (600, 9)]:
        for flip in (False, True):
            check((m, k), (k,), transpose_a=flip)
            check((k,), (k, m), transpose_b=flip)
    check((3, 40, 50), (50,))
    check((50,), (3, 50, 40))
    check((2, 1, 48), (2, 48, 32))


@pytest.mark.parametrize("lanes", [1, 4])
def test_few_lanes(lanes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on devices of small subgroups, or of none that read each other's values."""
    plan_for(monkeypatch, cpu=True, lanes_cpu=lanes)
    for kind in (np.float32, np.complex64):
        check((17, 9), (9, 37), kind)
        check((40, 67), (67,), kind)
        check((67,), (67, 40), kind)


@pytest.mark.parametrize(("height", "width"), [(1, 2), (4, 1)])
def test_other_panels(height: int, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plan_for(monkeypatch, cpu=True, panel_height=height, panel_width=width)
    check((50, 21), (21, 130))


@pytest.mark.parametrize("kind", [np.bool_, np.int8, np.float64])
def test_sums_of_parts(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The length has parts, the last of them shorter."""
    plan_for(monkeypatch, cpu=True, chunk_cpu=24, longest_line=2)
    for length in (48, 50, 129):
        check((20, length), (length, 35), kind)
        check((20, length), (length,), kind)
        check((length,), (length, 35), kind)
        check((length,), (length,), kind)


def test_operands_too_large_for_panels(monkeypatch: pytest.MonkeyPatch) -> None:
    plan_for(monkeypatch, cpu=True, panel_words=8)
    check((33, 40), (40, 35))
    check((33, 40), (40, 35), np.float16, transpose_b=True)


def test_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    """They see the index in the operand, and in the result."""

    @vd.map
    def places(x: Buff[f32]) -> f32:  # type: ignore[valid-type]
        return x[vd.mapped_index()] * 0 + (vd.mapped_index() % 7).to_dtype(f32)  # type: ignore[no-any-return]

    @vd.map
    def shifted(value: f32, bias: Buff[f32]) -> f16:  # type: ignore[valid-type]
        return (value + bias[vd.mapped_index() % bias.shape.w]).to_dtype(f16)  # type: ignore[no-any-return]

    plan_for(monkeypatch, cpu=True)
    for m, k, n in [(20, 24, 36), (19, 23, 35), (1, 40, 30), (30, 40, 1)]:
        a, b, bias = numbers((m, k), np.float32, 1), numbers((k, n), np.float32, 2), np.arange(n) % 5
        of_places = (np.arange(m * k) % 7).astype(np.float32).reshape(m, k)
        left, right, added = vd.asbuffer(a), vd.asbuffer(b), vd.asbuffer(bias.astype(np.float32))
        got = vd.matmul(places(left), right, output_map=shifted(added))
        assert got.var_type is f16
        assert np.array_equal(got.read(0), (of_places @ b + bias).astype(np.float16))


def test_neighbouring_memory_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies beyond the edges of a matrix, NaN here, is not seen; nor is it where there is nothing."""
    plan_for(monkeypatch, cpu=True)
    whole = np.full((3, 19, 21), np.nan, np.float32)
    whole[1] = numbers((19, 21), np.float32)
    for width in (5, 1):
        b = numbers((21, width), np.float32)
        got = vd.matmul(vd.asbuffer(whole), vd.asbuffer(np.stack([b] * 3))).read(0)
        assert np.array_equal(got[1], whole[1] @ b) and np.isnan(got[[0, 2]]).all()


def test_the_same_bits_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    plan_for(monkeypatch, cpu=True)
    rng = np.random.default_rng(8)
    for a, b in [((70, 5000), (5000, 40)), ((5000,), (5000, 30)), ((50, 9000), (9000,))]:
        x, y = (rng.standard_normal(shape).astype(np.float32) for shape in (a, b))
        left, right = vd.asbuffer(x), vd.asbuffer(y)
        first = vd.matmul(left, right).read(0)
        assert all(np.array_equal(vd.matmul(left, right).read(0), first) for _ in range(3))
        want = x.astype(np.float64) @ y
        assert np.abs(first - want).max() < 5e-6 * np.abs(want).max()


def test_plans_for_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other way round: a processor runs what is planned for GPUs."""
    plan_for(monkeypatch, cpu=False, tiles_4=(small_tile(),))
    check((33, 40), (40, 35))
    check((1000,), (1000, 33))
    if device_facts().subgroup_size < 8:
        pytest.skip("SwiftShader compiles the kernel whose lanes share a row for minutes")
    check((33, 1000), (1000,))
    check((1000,), (1000,), np.float64)


def small_tile() -> Any:
    """Return a tile that compiles soon."""
    return tuning.Tile(16, 16, 16, 2, 2, 1, 1.0)
