"""Products of halves: by cooperative matrices where the driver has them, by tiles elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, f16, f32
from vkdispatch.families.tuning import device_facts
from vkdispatch.matrices import plans
from vkdispatch.matrices import plans as tuning

from .products import check, numbers, plan_for, swapped


def has_cooperative_matrices() -> bool:
    """Return whether the device multiplies halves by cooperative matrices."""
    return plans.find_subgroup_product(device_facts(), f16) is not None


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_halves(transpose_a: bool, transpose_b: bool) -> None:
    for m, k, n in [(64, 64, 32), (33, 35, 40), (40, 72, 41), (47, 100, 33), (32, 32, 32), (130, 33, 129)]:
        check((m, k), (k, n), np.float16, transpose_a=transpose_a, transpose_b=transpose_b)


def test_batches() -> None:
    for a, b in [
        ((3, 40, 48), (3, 48, 40)),
        ((40, 33), (2, 33, 50)),
        ((3, 34, 48), (48, 40)),
        ((1, 64, 64), (2, 64, 64)),
    ]:
        check(a, b, np.float16)


def test_sums_of_parts() -> None:
    check((33, 70001), (70001, 34), np.float16)
    check((32, 66000), (66000, 32), np.float16)


def test_results_of_other_types() -> None:
    a, b = numbers((48, 300), np.float16, 1), numbers((300, 64), np.float16, 2)
    want = a.astype(np.float32) @ b.astype(np.float32)
    for kind in (f32, f16, vd.bfloat16):
        got = vd.matmul(vd.asbuffer(a), vd.asbuffer(b), dtype=kind)
        assert got.var_type is kind
        rounding = {f32: 0.0, f16: 2.0**-11, vd.bfloat16: 2.0**-8}[kind]
        assert (np.abs(got.read(0).astype(np.float32) - want) <= rounding * np.abs(want)).all()


def test_maps() -> None:
    @vd.map
    def doubled(x: f16) -> f16:
        return x * 2

    @vd.map
    def shifted(value: f32, bias: Buff[f32]) -> f32:  # type: ignore[valid-type]
        return value + bias[vd.mapped_index() % bias.shape.w]  # type: ignore[no-any-return]

    a, b = numbers((40, 56), np.float16, 1), numbers((56, 48), np.float16, 2)
    bias = numbers((48,), np.float32, 3)
    got = vd.matmul(doubled(vd.asbuffer(a)), vd.asbuffer(b), output_map=shifted(vd.asbuffer(bias)))
    assert np.array_equal(got.read(0), 2 * (a.astype(np.float32) @ b.astype(np.float32)) + bias)


def test_neighbouring_memory_is_not_used() -> None:
    """What is beyond a matrix's edge, NaN here, is multiplied by nothing that is kept."""
    whole = np.full((3, 33, 40), np.nan, np.float16)
    whole[1] = numbers((33, 40), np.float16)
    b = numbers((40, 35), np.float16)
    got = vd.matmul(vd.asbuffer(whole), vd.asbuffer(np.stack([b] * 3))).read(0)
    assert np.array_equal(got[1], whole[1] @ b) and np.isnan(got[[0, 2]]).all()


@pytest.mark.parametrize("transpose_b", [False, True])
def test_bfloat16(transpose_b: bool) -> None:
    a, b = numbers((40, 56), np.float32, 1), numbers((56, 48), np.float32, 2)

    def buffer(x: Any) -> Any:
        made: vd.Buffer[Any] = vd.Buffer(x.shape, vd.bfloat16)
        made.write((np.ascontiguousarray(x).view(np.uint32) >> 16).astype(np.uint16))
        return made

    left, right = buffer(a), buffer(swapped(b, transpose_b))
    assert np.array_equal(vd.matmul(left, right, transpose_b=transpose_b, dtype=f32).read(0), a @ b)
    short = vd.matmul(left, right, transpose_b=transpose_b)
    assert short.var_type is vd.bfloat16
    assert (np.abs(short.read(0) - a @ b) <= 2.0**-8 * np.abs(a @ b)).all()


def test_the_same_bits_every_time() -> None:
    rng = np.random.default_rng(7)
    a, b = (vd.asbuffer(rng.standard_normal((70, 70)).astype(np.float16)) for _ in "ab")
    first = vd.matmul(a, b, dtype=f32).read(0)
    assert all(np.array_equal(vd.matmul(a, b, dtype=f32).read(0), first) for _ in range(3))
    x, y = (each.read(0).astype(np.float64) for each in (a, b))
    assert np.abs(first - x @ y).max() < 1e-4


def test_words_in_a_column(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles of which each invocation brings several words, as GPUs use them."""
    if not has_cooperative_matrices():
        pytest.skip("the driver has no cooperative matrices")
    product = plans.find_subgroup_product(device_facts(), f16)
    assert product is not None
    m, n, k = product.m, product.n, product.k
    tile = tuning.SubgroupTile(2 * m, 2 * n, 4 * k, m, n, 1.0)
    plan_for(monkeypatch, cpu=False, tiles_cooperative=(tile,), apart=1)
    check((64, 64), (64, 48), np.float16)
    check((60, 50), (50, 44), np.float16, transpose_a=True, transpose_b=True)


def test_user_kernel() -> None:
    """The example of the docs, where it can run."""
    if not has_cooperative_matrices():
        pytest.skip("the driver has no cooperative matrices")
    product = plans.find_subgroup_product(device_facts(), f16)
    assert product is not None
    m, n, k = product.m, product.n, product.k

    @vd.shader(workgroups=1, local_size=vd.get_devices()[0].sub_group_size)
    def multiply(result: Buff[f32], a: Buff[f16], b: Buff[f16]) -> None:  # type: ignore[valid-type]
        left = vc.cooperative_matrix(f16, m, k, "a")
        right = vc.cooperative_matrix(f16, k, n, "b")
        total = vc.cooperative_matrix(f32, m, n, value=1)
        left.load(a, 0, m, "column")
        right.load(b, 0, n)
        total[:] = vc.matrix_multiply_add(left, right, total)
        total = (total * 2 + total) - 1
        for i in vc.range(total.length()):  # type: ignore[attr-defined]
            total[i] = total[i] + 0.5
        total.store(result, 0, n)

    x, y = numbers((m, k), np.float16, 1), numbers((k, n), np.float16, 2)
    out = vd.Buffer((m, n), f32)
    multiply(out, vd.asbuffer(np.ascontiguousarray(x.T)), vd.asbuffer(y))
    assert np.array_equal(out.read(0), 3 * (x.astype(np.float32) @ y.astype(np.float32) + 1) - 0.5)
