"""Images and samplers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, Img1, Img2, Img3, f32, v2, v4

HOST = {vd.float32: np.float32, vd.int32: np.int32, vd.uint32: np.uint32}
IMAGES: list[tuple[Callable[[], Any], tuple[int, ...], int]] = [
    (lambda: vd.Image1D(5, vd.float32), (5,), 4),
    (lambda: vd.Image1D(np.int64(5), vd.int32, 4), (5, 4), 16),
    (lambda: vd.Image2D((3, 4)), (3, 4), 4),
    (lambda: vd.Image2D((3, 4), vd.uint32, 2, False), (3, 4, 2), 8),
    (lambda: vd.Image3D((2, 3, 4), vd.float32, 4), (2, 3, 4, 4), 16),
    (lambda: vd.Image2DArray((3, 4), 2), (2, 3, 4), 4),
    (lambda: vd.Image2D([3, 4], channels=4, enable_mipmaps=True), (3, 4, 4), 16),
]


@pytest.mark.parametrize("case", range(len(IMAGES)))
def test_round_trip(case: int) -> None:
    make, shape, block = IMAGES[case]
    image = make()
    assert image.array_shape == shape and image.block_size == block and len(image.extent) == 3
    data = (np.random.default_rng(case).random(shape) * 100).astype(HOST[image.dtype])
    assert image.mem_size == data.nbytes
    image.write(data)
    image.write(data.tobytes(), -1)
    image.write(data, device_index=0)
    np.testing.assert_array_equal(image.read(), data)
    assert image.read(device_index=0).dtype == data.dtype
    for bad in (data.ravel()[:-1], bytes(3)):
        with pytest.raises(ValueError):
            image.write(bad)
    with pytest.raises(TypeError):
        image.write([1])


BAD: list[Callable[[], Any]] = [
    lambda: vd.Image1D((3, 4), vd.float32),
    lambda: vd.Image2D(4),
    lambda: vd.Image2D((1, 2, 3)),
    lambda: vd.Image3D((1, 2)),
    lambda: vd.Image2D((1.5, 2)),
    lambda: vd.Image2D((4, 4), np.float32),
    lambda: vd.Image2D((4, 4), vd.float64),
    lambda: vd.Image2D((4, 4), vd.float32, 1.0),
    lambda: vd.Image2D((4, 4), vd.float32, 5),
    lambda: vd.Image2DArray((4, 4), 0),
]


@pytest.mark.parametrize("case", range(len(BAD)))
def test_bad_images(case: int) -> None:
    with pytest.raises(ValueError):
        BAD[case]()


def test_enumerations() -> None:
    assert [(f.name, f.value) for f in vd.Filter] == [("NEAREST", 0), ("LINEAR", 1)]
    assert [a.name for a in vd.AddressMode] == [
        *("REPEAT", "MIRRORED_REPEAT", "CLAMP_TO_EDGE", "CLAMP_TO_BORDER", "MIRROR_CLAMP_TO_EDGE")
    ]
    assert [b.value for b in vd.BorderColor] == [
        0,
        1,
        2,
        3,
        4,
        5,
    ] and vd.BorderColor.INT_OPAQUE_WHITE.value == 5
    assert len(vd.image_format) == 44 and vd.Image2D((1, 1)).format.value == 100
    assert [vd.image_type[f"TYPE_{n}D"].value for n in (1, 2, 3)] == [(0,), (1,), (2,)]
    assert vd.image_view_type.VIEW_TYPE_2D_ARRAY.value == (5,)


@vd.shader("out.size")
def sampled(out: Buff[f32], image: Img2[f32], offset: Const[v2]) -> None:
    i = vc.global_invocation_id().x
    at = vc.ravel_index(i, out.shape)
    out[i] = image.sample(vc.new_vec2_register(at.y, at.x) + offset).x


def test_sampling_in_two_dimensions() -> None:
    data = np.random.default_rng(5).random((5, 7)).astype(np.float32)
    image, out = vd.Image2D((5, 7)), vd.Buffer((5, 7), vd.float32)
    image.write(data)
    nearest, repeat = vd.Filter.NEAREST, vd.AddressMode.REPEAT
    sampler = vd.Sampler(image, nearest, nearest, nearest, repeat, 0.0, 0.0, 0.0)
    assert sampler.image is image
    for how, offset in ((image.sample(), (0, 0)), (sampler, (7, 5))):
        sampled(out, how, offset)
        np.testing.assert_allclose(out.read(0), data, atol=1e-6)
    border = vd.AddressMode.CLAMP_TO_BORDER
    sampled(out, image.sample(address_mode=border), (100, 100))
    assert (out.read(0) == 1).all()
    sampled(
        out, image.sample(address_mode=border, border_color=vd.BorderColor.FLOAT_OPAQUE_BLACK), (100, 100)
    )
    assert (out.read(0) == 0).all()
    with pytest.raises(ValueError):
        sampled(out, image, (0, 0))


def test_sampling_in_one_and_three_dimensions() -> None:
    random = np.random.default_rng(6)
    line, block = random.random((60, 2)).astype(np.float32), random.random((3, 4, 5, 4)).astype(np.float32)
    image1, image3 = vd.Image1D(60, vd.float32, 2), vd.Image3D((3, 4, 5), vd.float32, 4)
    image1.write(line)
    image3.write(block)

    @vd.shader("a.size")
    def kernel(a: Buff[v4], b: Buff[v4], i: Img1[f32], j: Img3[f32]) -> None:
        t = vc.global_invocation_id().x
        a[t] = i.sample(vc.to_float(t))
        b[t] = j.sample(vc.ravel_index(t, (3, 4, 5)).swizzle("zyx"))

    a, b = vd.Buffer(60, vd.vec4), vd.Buffer(60, vd.vec4)
    kernel(a, b, image1.sample(), image3.sample())
    np.testing.assert_allclose(a.read(0)[:, :2], line, atol=1e-6)
    np.testing.assert_allclose(b.read(0), block.reshape(60, 4), atol=1e-6)


def test_mip_levels() -> None:
    data = np.arange(64, dtype=np.float32).reshape(8, 8)
    image, out = vd.Image2D((8, 8), enable_mipmaps=True), vd.Buffer(4, vd.float32)
    image.write(data)

    @vd.shader(1)
    def kernel(o: Buff[f32], i: Img2[f32], lod: Const[f32]) -> None:
        corner = vc.new_vec2_register(0.5, 0.5)
        o[0] = i.sample(corner, lod).x
        o[1] = i.sample(corner, 1).x
        o[2] = i.sample(vc.new_vec2_register(3.5, 3.5), lod=3.0).x
        o[3] = i.sample(vc.to_ivec2(1, 2)).x

    kernel(out, image.sample(max_lod=10.0), 1.0)
    corner = data[:2, :2].mean()
    np.testing.assert_allclose(out.read(0), [corner, corner, data.mean(), data[2, 1]], atol=0.05)
