"""Checked kernels: texels beyond the edges of images."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, Img2, SImg1, SImg2, f32, i32


def test_stores_and_loads_of_storage_images() -> None:
    @vd.shader((4, 3), local_size=(2, 2), check="bounds,nan")
    def shift(image: SImg2[f32], out: SImg2[f32], dx: Const[i32], dy: Const[i32]) -> None:
        gid = vc.global_invocation_id()
        x, y = gid.x.to_dtype(i32), gid.y.to_dtype(i32)
        value = image.load((x, y))
        out.store((x + dx, y + dy), value)

    pixels = np.arange(12, dtype=np.float32).reshape(3, 4)
    image, out = vd.Image2D((3, 4), vd.float32), vd.Image2D((3, 4), vd.float32)
    image.write(pixels)
    out.write(np.zeros_like(pixels))
    shift(image, out, 0, 0)
    assert np.array_equal(out.read(0), pixels)
    with pytest.raises(IndexError, match=r"texel \(4, [0-2]\) .*image 'out' of \(4, 3\), .*3 violations"):
        shift(image, out, 1, 0)
    expected = np.concatenate([pixels[:, :1], pixels[:, :3]], axis=1)
    assert np.array_equal(out.read(0), expected)
    with pytest.raises(IndexError, match=r"texel \([0-3], -1\)"):
        shift(image, out, 0, -1)
    image.write(np.where(pixels == 5, np.nan, pixels).astype(np.float32))
    with pytest.raises(FloatingPointError, match=r"image 'out', in invocation \(1, 1, 0\)"):
        shift(image, out, 0, 0)


def test_loads_at_a_mip_level_and_in_conditions() -> None:
    @vd.shader("out.size", local_size=8, check=True)
    def kernel(image: Img2[f32], out: Buff[f32], n: Const[i32], line: SImg1[f32]) -> None:
        i = vc.global_invocation_id().x.to_dtype(i32)
        with vc.if_block(vc.all(i < n, image.load((i, 0)).x > 0)):
            out[i] = image.load((i, 1)).x
        line.store(0, 1.0)

    image = vd.Image2D((2, 4), vd.float32)
    image.write(np.arange(1, 9, dtype=np.float32).reshape(2, 4))
    out: Any = vd.asbuffer(np.zeros(8, np.float32))
    line = vd.Image1D(1, vd.float32)
    kernel(image.sample(), out, 4, line)
    assert out.read(0).tolist() == [5, 6, 7, 8, 0, 0, 0, 0]
    with pytest.raises(
        IndexError, match=r"texel \(4, 0\) .*image 'image' of \(4, 2\), in invocation \(4, 0, 0\)"
    ):
        kernel(image.sample(), out, 5, line)
