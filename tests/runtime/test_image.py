"""vd.Image and vd.Sampler: shapes, formats, copies, mip levels, binding by hand, errors."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.command_list import CommandList
from vkdispatch.base.compute_plan import ComputePlan
from vkdispatch.base.descriptor_set import DescriptorSet
from vkdispatch.base.memory.images import mip_chain

HOST = {vd.float32: np.float32, vd.int32: np.int32, vd.uint32: np.uint32}
WORDS = {vd.float32: "SFLOAT", vd.int32: "SINT", vd.uint32: "UINT"}


def texels_of(image: vd.Image, seed: int = 0) -> np.ndarray[Any, Any]:
    generator = np.random.default_rng(seed)
    return generator.integers(0, 1 << 24, image.array_shape).astype(HOST[image.dtype])


MAKERS: list[tuple[Callable[..., vd.Image], tuple[int, ...], tuple[int, int, int], str]] = [
    (lambda *a: vd.Image1D(7, *a), (7,), (7, 1, 1), "1D"),
    (lambda *a: vd.Image2D((5, 9), *a), (5, 9), (9, 5, 1), "2D"),
    (lambda *a: vd.Image2D((1, 1), *a), (1, 1), (1, 1, 1), "2D"),
    (lambda *a: vd.Image2DArray((5, 9), 3, *a), (3, 5, 9), (9, 5, 1), "2D_ARRAY"),
    (lambda *a: vd.Image2DArray((5, 9), 1, *a), (5, 9), (9, 5, 1), "2D_ARRAY"),
    (lambda *a: vd.Image3D((2, 5, 9), *a), (2, 5, 9), (9, 5, 2), "3D"),
    (lambda *a: vd.Image3D((64, 31, 127), *a), (64, 31, 127), (127, 31, 64), "3D"),
]


@pytest.mark.parametrize("kind", HOST, ids=lambda kind: kind.name)
@pytest.mark.parametrize(
    ("make", "shape", "extent", "view"), MAKERS, ids=[f"{m[3]}{m[1]}".replace(" ", "") for m in MAKERS]
)
def test_attributes_and_round_trip(
    make: Callable[..., vd.Image], shape: tuple[int, ...], extent: tuple[int, int, int], view: str, kind: Any
) -> None:
    for channels in (1, 2, 3, 4):
        image = make(kind, channels)
        assert (image.shape, image.extent, image.channels) == (shape, extent, channels)
        assert image.dtype is kind
        assert image.array_shape == (shape if channels == 1 else (*shape, channels))
        assert image.block_size == 4 * channels
        assert image.mem_size == math.prod(shape) * 4 * channels
        assert image.view_type is vd.image_view_type[f"VIEW_TYPE_{view}"]
        assert image.type is vd.image_type[f"TYPE_{view[:2]}"]
        letters = "R32G32B32A32"[: 3 * channels]
        assert image.format is vd.image_format[f"{letters}_{WORDS[kind]}"]
        texels = texels_of(image, channels)
        image.write(texels)
        result = image.read()
        assert result.dtype == HOST[kind]
        assert result.flags.writeable
        np.testing.assert_array_equal(result, texels)


def test_enumerations() -> None:
    assert len(vd.image_format) == 44
    assert vd.image_format.R8_UINT.value == 13
    assert vd.image_format.R32G32B32A32_SFLOAT.value == 109
    assert vd.image_format.R64G64B64A64_SFLOAT.value == 121
    assert [member.value for member in vd.image_type] == [(0,), (1,), (2,)]
    assert [member.value for member in vd.image_view_type] == [(0,), (1,), (2,), (5,)]
    assert [member.value for member in vd.Filter] == [0, 1]
    assert [member.name for member in vd.AddressMode] == [
        "REPEAT",
        "MIRRORED_REPEAT",
        "CLAMP_TO_EDGE",
        "CLAMP_TO_BORDER",
        "MIRROR_CLAMP_TO_EDGE",
    ]
    assert [member.value for member in vd.BorderColor] == list(range(6))


def test_data_that_can_be_written() -> None:
    image = vd.Image2D((4, 6), vd.float32, 2)
    big = np.random.default_rng(0).random((12, 8, 2), np.float32)
    for data in (big[::3, 1:7], big[:6, :4].transpose(1, 0, 2), big[::-2, ::-1][:4, :6]):
        assert not data.flags.c_contiguous
        image.write(data)
        np.testing.assert_array_equal(image.read(), data)
    plain = np.ascontiguousarray(big[:4, :6])
    for data in (plain.tobytes(), bytearray(plain.tobytes()), memoryview(plain), memoryview(big)[::2]):
        if isinstance(data, memoryview) and data.nbytes != image.mem_size:
            continue
        image.write(np.zeros((4, 6, 2), np.float32))
        image.write(data)
        np.testing.assert_array_equal(image.read(), plain)
    strided = memoryview(bytes(2 * image.mem_size))[::2]
    image.write(strided)
    assert (image.read() == 0).all()
    image.write(plain.reshape(-1), 0)
    np.testing.assert_array_equal(image.read(0), plain)
    read_only = plain.copy()
    read_only.flags.writeable = False
    image.write(read_only)
    np.testing.assert_array_equal(image.read(), plain)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (np.zeros((4, 5), np.float32), ValueError),
        (np.zeros((4, 6), np.float64), ValueError),
        (bytes(95), ValueError),
        (b"", ValueError),
        ([0.0] * 24, TypeError),
        (1.0, TypeError),
        (None, TypeError),
        (np.full(12, None), TypeError),
        (np.zeros((6, 4), np.float32), ValueError),
        (np.zeros((4, 6), np.int32), ValueError),
        (np.zeros((1, 4, 6), np.float32), ValueError),
        (np.ma.zeros((4, 6), np.float32), TypeError),
    ],
)
def test_data_that_cannot_be_written(data: Any, error: type[Exception]) -> None:
    image = vd.Image2D((4, 6))
    image.write(np.ones((4, 6), np.float32))
    with pytest.raises(error, match="data: "):
        image.write(data)
    assert (image.read() == 1).all()


@pytest.mark.parametrize("index", [1, -2, 1.0, "0", None, True])
def test_unknown_queues_are_refused(index: Any) -> None:
    image = vd.Image2D((4, 6))
    with pytest.raises(ValueError, match="device_index"):
        image.write(np.ones((4, 6), np.float32), index)
    with pytest.raises(ValueError, match="device_index"):
        image.read(index)


# ---- construction --------------------------------------------------------------------------------


def test_sizes_may_be_numpy_ints() -> None:
    image = vd.Image2D((np.int64(3), np.uint8(4)), vd.float32, np.int32(2))  # type: ignore[arg-type]
    assert image.shape == (3, 4)
    assert all(type(size) is int for size in (*image.shape, *image.extent, image.channels))
    assert vd.Image1D((5,), vd.int32).shape == (5,)
    assert vd.Image2D([3, 4]).shape == (3, 4)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: vd.Image2D((3,)), "shape"),  # type: ignore[arg-type]
        (lambda: vd.Image2D(3), "shape"),  # type: ignore[arg-type]
        (lambda: vd.Image2D((3, 4, 5)), "shape"),  # type: ignore[arg-type]
        (lambda: vd.Image1D((3, 4), vd.float32), "shape"),  # type: ignore[arg-type]
        (lambda: vd.Image3D((3, 4)), "shape"),  # type: ignore[arg-type]
        (lambda: vd.Image2D((3, 0)), "shape"),
        (lambda: vd.Image2D((3, -1)), "shape"),
        (lambda: vd.Image2D((3, 2.0)), "shape"),  # type: ignore[arg-type]
        (lambda: vd.Image2D((3, True)), "shape"),
        (lambda: vd.Image2D("34"), "shape"),  # type: ignore[arg-type]
        (lambda: vd.Image2D((3, 10**9)), "texels"),
        (lambda: vd.Image2D((3, 10**12)), "shape"),
        (lambda: vd.Image2D((3, 4), vd.float64), "dtype"),
        (lambda: vd.Image2D((3, 4), vd.vec4), "dtype"),
        (lambda: vd.Image2D((3, 4), vd.complex64), "dtype"),
        (lambda: vd.Image2D((3, 4), np.float32), "dtype"),  # type: ignore[arg-type]
        (lambda: vd.Image2D((3, 4), "f32"), "dtype"),  # type: ignore[arg-type]
        (lambda: vd.Image2D((3, 4), vd.float32, 0), "channels"),
        (lambda: vd.Image2D((3, 4), vd.float32, 5), "channels"),
        (lambda: vd.Image2D((3, 4), vd.float32, 1.0), "channels"),  # type: ignore[arg-type]
        (lambda: vd.Image2DArray((3, 4), 0), "layers"),
        (lambda: vd.Image2DArray((3, 4), 10**7), "texels"),
        (lambda: vd.Image((3, 4), 1, vd.float32, 1, 1), "view_type"),  # type: ignore[arg-type]
        (lambda: vd.Image((3, 4), 2, vd.float32, 1, vd.image_view_type.VIEW_TYPE_2D), "layers"),
        (lambda: vd.Image((3, 4), 1, vd.float32, 1, vd.image_view_type.VIEW_TYPE_3D), "shape"),
    ],
)
def test_invalid_images_are_refused(make: Callable[[], Any], name: str) -> None:
    with pytest.raises(ValueError, match=name):
        make()


@pytest.mark.parametrize("name", ["Image1D", "Image2D", "Image2DArray", "Image3D"])
def test_image_as_annotation_is_refused(name: str) -> None:
    with pytest.raises(RuntimeError, match=f"vc.{name}"):
        getattr(vd, name)[vd.float32]
    assert getattr(vc, name)[vd.float32].__args__ == (vd.float32,)


# ---- mip levels ----------------------------------------------------------------------------------


def linear_half(row: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Half as many texels of one row, each from the two around its centre, in float64."""
    size, half = len(row), max(len(row) // 2, 1)
    if size == 1:
        return row
    result = np.empty(half)
    for i in range(half):
        position = (i + 0.5) * size / half - 0.5
        left = math.floor(position)
        first, second = (row[min(max(k, 0), size - 1)] for k in (left, left + 1))
        result[i] = first + (position - left) * (second - first)
    return result


@pytest.mark.parametrize("shape", [(7,), (8, 8), (5, 12), (1, 9), (3, 7, 4), (16, 1, 2)])
def test_levels_are_those_of_linear_blits(shape: tuple[int, ...]) -> None:
    maker: Any = {1: vd.Image1D, 2: vd.Image2D, 3: vd.Image3D}[len(shape)]
    image = maker(shape, vd.float32, 1, True)
    assert image.mip_levels == int(math.log2(max(shape))) + 1
    texels = np.random.default_rng(0).random(shape, np.float32)
    image.write(texels)
    expected = texels.astype(np.float64)
    for level in range(image.mip_levels):
        np.testing.assert_allclose(image.read(level=level), expected, atol=1e-6)
        for axis in range(len(shape)):
            expected = np.apply_along_axis(linear_half, axis, expected)


def test_levels_of_layers_and_channels_are_separate() -> None:
    image = vd.Image2DArray((4, 6), 3, vd.float32, 2, True)
    texels = np.random.default_rng(0).random(image.array_shape, np.float32)
    image.write(texels)
    means = texels.reshape(3, 2, 2, 3, 2, 2).mean((2, 4))
    np.testing.assert_allclose(image.read(level=1), means, atol=1e-6)
    assert image.read(level=2).shape == (3, 1, 1, 2)


def test_levels_of_integers_are_texels_of_the_image() -> None:
    image = vd.Image2D((6, 8), vd.uint32, 1, True)
    texels = np.arange(48, dtype=np.uint32).reshape(6, 8) + (1 << 31)
    image.write(texels)
    np.testing.assert_array_equal(image.read(level=1), texels[1::2, 1::2])
    assert mip_chain(texels, (0, 1))[-1].shape == (1, 1)


def test_levels_follow_each_write() -> None:
    image = vd.Image2D((4, 4), vd.float32, 1, True)
    for value in (1.0, 5.0):
        image.write(np.full((4, 4), value, np.float32))
        assert [image.read(level=level).flat[0] for level in range(3)] == [value] * 3
    for level in (-1, 3):
        with pytest.raises(ValueError, match="level: expected 0 to 2"):
            image.read(level=level)
    assert vd.Image2D((4, 4)).mip_levels == 1


def test_levels_after_a_kernel() -> None:
    @vd.shader("(img.shape[1], img.shape[0])", local_size=(8, 8))
    def fill(img: vc.StorageImage2D[vd.float32]) -> None:
        at = vc.global_invocation_id()
        img[at.x, at.y] = vc.to_float(at.x)

    image = vd.Image2D((4, 8), vd.float32, 1, True)
    image.write(np.zeros((4, 8), np.float32))
    fill(image)
    assert (image.read(level=1) == 0).all()
    image.generate_mipmaps()
    assert image.read(level=0)[3].tolist() == list(range(8))
    assert image.read(level=1)[1].tolist() == [0.5, 2.5, 4.5, 6.5]
    assert image.read(level=3).tolist() == [[3.5]]
    vd.Image2D((4, 8)).generate_mipmaps()


def test_as_an_array() -> None:
    image = vd.Image2D((2, 3), vd.int32)
    image.write(np.arange(6, dtype=np.int32))
    np.testing.assert_array_equal(np.asarray(image), np.arange(6).reshape(2, 3))
    assert np.asarray(image, dtype=np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="copy"):
        np.asarray(image, copy=False)


# ---- samplers ------------------------------------------------------------------------------------


def test_samplers() -> None:
    image = vd.Image2D((4, 4))
    assert image.sample().image is image
    assert vd.Sampler(image, vd.Filter.NEAREST).image is image
    many = [image.sample() for _ in range(6000)]  # more than devices have
    assert all(not sampler.destroyed for sampler in many)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"mag_filter": 1}, TypeError),
        ({"min_filter": "LINEAR"}, TypeError),
        ({"mip_filter": vd.AddressMode.REPEAT}, TypeError),
        ({"address_mode": 0}, TypeError),
        ({"border_color": None}, TypeError),
        ({"mip_lod_bias": "0"}, TypeError),
        ({"mip_lod_bias": 1e9}, ValueError),
        ({"mip_lod_bias": math.nan}, ValueError),
        ({"min_lod": math.inf}, ValueError),
        ({"min_lod": 1.0}, ValueError),
        ({"max_lod": -1}, ValueError),
        ({"max_lod": None}, TypeError),
    ],
)
def test_invalid_samplers_are_refused(settings: dict[str, Any], error: type[Exception]) -> None:
    image = vd.Image2D((4, 4))
    (name,) = settings
    with pytest.raises(error, match=name):
        image.sample(**settings)
    with pytest.raises(TypeError, match="image: expected"):
        vd.Sampler(vd.Buffer(4, vd.float32), **settings)  # type: ignore[arg-type]


def test_lifetimes() -> None:
    image = vd.Image2D((4, 4))
    sampler = image.sample()
    other = image.sample()
    other.destroy()
    assert not image.destroyed
    image.destroy()
    image.destroy()
    assert sampler.destroyed
    for use in (image.read, image.sample, lambda: image.write(bytes(64)), lambda: image.is_storable):
        with pytest.raises(RuntimeError, match="destroyed"):
            use()
    kept = vd.Image2D((4, 4)).sample()  # holds its image
    gc.collect()
    assert kept.image.read().shape == (4, 4)


def test_memory_is_freed() -> None:
    engine = vd.get_context()._native
    vd.Image2D((256, 256)).write(np.zeros((256, 256), np.float32))
    vd.queue_wait_idle()
    before = engine.statistics()["live_objects"]
    for _ in range(1000):  # many: each may be gone as soon as its batch is submitted
        image = vd.Image2D((256, 256))
        image.write(np.zeros((256, 256), np.float32))
        image.sample()
    del image
    vd.queue_wait_idle()
    assert engine.statistics()["live_objects"] <= before


# ---- binding by hand -----------------------------------------------------------------------------

SOURCE = """#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0) uniform sampler2D source;
layout(set = 0, binding = 1, r32f) uniform image2D target;
layout(set = 0, binding = 2) buffer Out { float data[]; };
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    if (any(greaterThanEqual(at, imageSize(target)))) return;
    float value = texelFetch(source, at, 0).x + imageLoad(target, at).x;
    imageStore(target, at, vec4(value));
    data[at.y * imageSize(target).x + at.x] = value;
}
"""


def test_descriptor_sets() -> None:
    plan = ComputePlan(SOURCE, [5, 4, 1], 0, "sum")
    source, target, out = vd.Image2D((7, 11)), vd.Image2D((7, 11)), vd.Buffer((7, 11), vd.float32)
    texels = np.random.default_rng(0).random((7, 11), np.float32)
    source.write(texels)
    target.write(texels)
    bound = DescriptorSet(plan)
    bound.bind_sampler(source.sample(), 0)
    bound.bind_image(target, 1)
    bound.bind_buffer(out, 2, read_access=False)
    commands = CommandList()
    commands.record_compute_plan(plan, bound, (2, 1, 1))
    for _ in range(4):
        commands.submit(b"")
    np.testing.assert_allclose(target.read(), 5 * texels, rtol=1e-6)
    np.testing.assert_array_equal(out.read(0), target.read())
    source.destroy()
    assert bound.destroyed
    assert commands.destroyed


def test_descriptor_sets_check_their_arguments() -> None:
    plan = ComputePlan(SOURCE, [5, 4, 1], 0, "sum")
    image = vd.Image2D((4, 4))
    bound = DescriptorSet(plan)
    for bind, error, message in (
        (lambda: bound.bind_sampler(image, 0), TypeError, "expected a vd.Sampler"),  # type: ignore[arg-type]
        (lambda: bound.bind_image(image.sample(), 1), TypeError, "expected a vd.Image"),  # type: ignore[arg-type]
        (lambda: bound.bind_sampler(image.sample(), 1), ValueError, "1 is a storage image, not a sampler"),
        (lambda: bound.bind_image(image, 0), ValueError, "0 is a sampler, not a storage image"),
        (lambda: bound.bind_image(image, 2), ValueError, "2 is a storage buffer, not a storage image"),
        (lambda: bound.bind_sampler(image.sample(), 3), ValueError, "has 0 to 2"),
        (lambda: bound.bind_image(vd.Image2D((4, 4), channels=3), 1), ValueError, "cannot store"),
        (lambda: bound.bind_buffer(image, 2), TypeError, "expected a vd.Buffer"),  # type: ignore[arg-type]
    ):
        with pytest.raises(error, match=message):
            bind()
    image.destroy()
    with pytest.raises(RuntimeError, match="destroyed"):
        bound.bind_image(image, 1)


def test_descriptor_sets_require_the_declared_image() -> None:
    plan = ComputePlan(SOURCE, [5, 4, 1], 0, "sum")
    source, target, out = vd.Image2D((4, 4)), vd.Image2D((4, 4)), vd.Buffer(16, vd.float32)
    wrong = [
        (vd.Image3D((4, 4, 4)), target),
        (source, vd.Image2D((4, 4), vd.int32)),
        (source, vd.Image1D(4, vd.float32)),
    ]
    for sampled, stored in wrong:
        bound = DescriptorSet(plan)
        bound.bind_sampler(sampled.sample(), 0)
        bound.bind_image(stored, 1)
        bound.bind_buffer(out, 2)
        with pytest.raises(vd.ArgumentValueError, match=r"'sum': binding .: the shader declares"):
            CommandList().record_compute_plan(plan, bound, (1, 1, 1))
    with pytest.raises(vd.ArgumentValueError, match="sum: the shader declares a sampler at set 0, binding 0"):
        ComputePlan(SOURCE, [1, 4, 1], 0, "sum")


def test_bind_infos() -> None:
    sampler = vd.Image2D((4, 4)).sample()
    info = vd.ImageBindInfo(sampler, 1, True, False)
    assert (info.sampler, info.binding, info.read_access, info.write_access) == (sampler, 1, True, False)
