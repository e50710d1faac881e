"""More keys than 32-bit indices can address, made and checked on the device."""

from __future__ import annotations

import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import *  # noqa: F403


@vd.shader("x.size")
def fill(x: Buff[u8]) -> None:  # noqa: F405
    i = vc.global_invocation_id().x
    x[i] = (i * 167 // 5 % 251).to_dtype(vd.uint32)


@vd.reduce.map_reduce(vd.reduce.SubgroupAdd)
def total(x: Buff[u8]) -> u64:  # noqa: F405
    return x[vd.reduce.mapped_io_index()].to_dtype(vd.uint64)


@vd.reduce.map_reduce(vd.reduce.SubgroupAdd)
def squares(x: Buff[u8]) -> u64:  # noqa: F405
    value = x[vd.reduce.mapped_io_index()].to_dtype(vd.uint64)
    return value * value


@vd.reduce.map_reduce(vd.reduce.SubgroupAdd)
def falls(x: Buff[u8]) -> u64:  # noqa: F405
    i = vd.reduce.mapped_io_index()
    return (x[i] < x[vc.max(i, 1) - 1]).to_dtype(vd.uint64)


@pytest.mark.parametrize("size", [100_003, (1 << 31) + 12_345])
def test_more_keys_than_32_bits_count(size: int) -> None:
    if size >= 1 << 31 and vd.get_context().device_infos[0].is_cpu():
        pytest.skip("takes a GPU")
    x = vd.Buffer(size, vd.uint8)
    fill(x)
    assert falls(x).read(0)[0] > 0
    result = vd.sort(x)
    assert falls(result).read(0)[0] == 0
    assert total(result).read(0)[0] == total(x).read(0)[0]
    assert squares(result).read(0)[0] == squares(x).read(0)[0]
