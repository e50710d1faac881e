"""Images in the interpreter: sampled as NumPy's model and the device do, loaded, stored and checked."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from tests.language.sampling import Sampling, sample
from vkdispatch import AddressMode, BorderColor, Filter, HostSampler
from vkdispatch.codegen.abbreviations import (
    Buff,
    Const,
    Img1,
    Img2,
    Img3,
    SImg1,
    SImg2,
    SImg3,
    f32,
    i32,
    iv4,
    u32,
    uv4,
    v2,
    v3,
    v4,
)

Array = np.ndarray[Any, Any]

SHAPES = {"1D": (13,), "2D": (5, 12), "3D": (3, 7, 4)}
ANNOTATIONS: dict[str, Any] = {"1D": Img1, "2D": Img2, "3D": Img3}
COORDINATES: dict[str, Any] = {"1D": f32, "2D": v2, "3D": v3}
RESULTS: dict[Any, Any] = {f32: v4, i32: iv4, u32: uv4}
HOST = {f32: np.float32, i32: np.int32, u32: np.uint32}
KERNELS: dict[Any, vd.ShaderFunction] = {}


def texels_of(kind: str, scalar: Any, channels: int) -> Array:
    generator = np.random.default_rng(channels)
    shape = SHAPES[kind] if channels == 1 else (*SHAPES[kind], channels)
    if scalar is f32:
        return generator.random(shape, np.float32)
    info = np.iinfo(HOST[scalar])
    return generator.integers(info.min, info.max, shape, HOST[scalar], endpoint=True)


def sampling_kernel(kind: str, scalar: Any) -> vd.ShaderFunction:
    def kernel(image: Any, at: Any, lod: Any, out: Any) -> None:
        i = vc.global_invocation_id().x
        out[i] = image.sample(at[i], lod[i])

    if (kind, scalar) not in KERNELS:
        annotations = [ANNOTATIONS[kind][scalar], Buff[COORDINATES[kind]], Buff[f32], Buff[RESULTS[scalar]]]
        KERNELS[kind, scalar] = vd.shader("param3.size", arg_type_annotations=annotations)(kernel)
    return KERNELS[kind, scalar]


def check(kind: str, texels: Array, settings: Sampling, *, mips: bool = False) -> None:
    """Sample around an array by the interpreter and by the model of the language tests."""
    sizes = SHAPES[kind][::-1]
    generator = np.random.default_rng(7)
    at = generator.integers(-8 * 30, 8 * 30, (500, len(sizes))) / 8 + 1 / 16
    lods = np.float32(generator.integers(-24, 88, len(at)) / 16 + 1 / 32)
    scalar = {np.dtype(host): kind for kind, host in HOST.items()}[texels.dtype]
    out = np.zeros((len(at), 4), texels.dtype)
    sampler = HostSampler(texels, **dataclasses.asdict(settings), enable_mipmaps=mips)
    sampling_kernel(kind, scalar).interpret(sampler, np.float32(at).squeeze(), lods, out)
    whole = texels if texels.ndim > len(sizes) else texels[..., None]
    chain = [whole]
    if mips:
        image = {1: vd.Image1D, 2: vd.Image2D, 3: vd.Image3D}[len(sizes)]
        made = image(SHAPES[kind], scalar, whole.shape[-1], enable_mipmaps=True)  # type: ignore[operator]
        made.write(texels)
        chain = [
            made.read(level=n).reshape(*np.maximum(np.array(SHAPES[kind]) >> n, 1), -1)
            for n in range(made.mip_levels)
        ]
    expected = sample(chain, at, lods, settings)
    if scalar is f32:
        np.testing.assert_allclose(out, expected, atol=1e-6)
    else:
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("mode", AddressMode, ids=lambda m: m.name)
@pytest.mark.parametrize("kind", SHAPES)
def test_address_modes(kind: str, mode: AddressMode) -> None:
    for filter, channels in itertools.product(Filter, (1, 2, 3, 4)):
        texels = texels_of(kind, f32, channels)
        check(kind, texels, Sampling(filter, filter, address_mode=mode))


@pytest.mark.parametrize("colour", BorderColor, ids=lambda c: c.name)
@pytest.mark.parametrize("scalar", [f32, i32, u32], ids=lambda s: s.name)
def test_border_colours(scalar: Any, colour: BorderColor) -> None:
    filter = Filter.LINEAR if scalar is f32 else Filter.NEAREST
    for channels in (1, 2, 3, 4):
        settings = Sampling(filter, filter, filter, AddressMode.CLAMP_TO_BORDER, border_color=colour)
        check("2D", texels_of("2D", scalar, channels), settings)


@pytest.mark.parametrize("filters", list(itertools.product(Filter, repeat=3)))
@pytest.mark.parametrize("kind", SHAPES)
def test_levels_of_detail(kind: str, filters: tuple[Filter, Filter, Filter]) -> None:
    check(kind, texels_of(kind, f32, 2), Sampling(*filters, max_lod=10.0), mips=True)


@pytest.mark.parametrize("bounds", [(0.0, 0.0), (0.0, 1.5), (1.25, 2.0), (3.0, 9.0)])
def test_level_of_detail_bounds_and_bias(bounds: tuple[float, float]) -> None:
    settings = Sampling(min_lod=bounds[0], max_lod=bounds[1], mip_lod_bias=0.5)
    check("2D", texels_of("2D", f32, 1), settings, mips=True)


@vd.shader("(target.shape[1], target.shape[0])", local_size=(8, 8))
def enlarge(source: Img2[f32], target: SImg2[f32]) -> None:
    here = vc.global_invocation_id()
    x, y = vc.to_float(here.x), vc.to_float(here.y)
    target[here.x, here.y] = source.sample(((x - 0.5) / 2, (y - 0.5) / 2)).x


def test_arrays_images_and_samplers_give_the_same_result() -> None:
    picture = np.random.default_rng(0).random((7, 11), np.float32)
    image, target = vd.Image2D(picture.shape), vd.Image2D((14, 22))
    image.write(picture)
    enlarge(image.sample(), target)
    expected = target.read()
    array = np.zeros((14, 22), np.float32)
    enlarge.interpret(picture, array)
    cpu = vd.get_context().device_infos[0].is_cpu()
    np.testing.assert_allclose(array, expected, atol=1e-5 if cpu else 1 / 64)
    target.write(np.zeros((14, 22), np.float32))
    enlarge.interpret(image.sample(), target)
    np.testing.assert_array_equal(target.read(), array)
    scattered = np.zeros((22, 14), np.float32).T  # in another order in memory
    enlarge.interpret(np.asfortranarray(picture), scattered)
    np.testing.assert_array_equal(scattered, array)
    flipped = np.zeros((14, 22), np.float32)
    enlarge.interpret(HostSampler(picture, Filter.NEAREST), flipped)
    np.testing.assert_array_equal(flipped, picture.repeat(2, 0).repeat(2, 1))


def test_layers() -> None:
    @vd.shader("out.size")
    def kernel(image: vc.Image2DArray[f32], at: Buff[v3], out: Buff[f32], sizes: Buff[i32]) -> None:
        i = vc.global_invocation_id().x
        out[i] = image.sample(at[i]).x
        for axis in range(3):
            sizes[axis] = image.size()[axis]

    layers = np.arange(3 * 2 * 4, dtype=np.float32).reshape(3, 2, 4)
    numbers = np.float32([0, 1, 2, 0.75, 1.25, -3, 9, np.nan])
    at = np.column_stack((np.full(8, 3), np.full(8, 1), numbers)).astype(np.float32)
    out, sizes = np.zeros(8, np.float32), np.zeros(3, np.int32)
    kernel.interpret(layers, at, out, sizes)
    assert out.tolist() == layers[[0, 1, 2, 1, 1, 0, 2, 0], 1, 3].tolist()
    assert sizes.tolist() == [4, 2, 3]


def test_loads_stores_and_sizes_of_storage_images() -> None:
    @vd.shader("(4, 3, 2)", local_size=(2, 2, 2))
    def kernel(
        line: SImg1[i32],
        plane: SImg2[v2],
        volume: SImg3[u32],
        pages: vc.StorageImage2DArray[iv4],
        sizes: Buff[i32],
    ) -> None:
        here = vc.global_invocation_id()
        x, y, z = here.x, here.y, here.z
        plane[x, y] += vc.new_vec2_register(1, 2)
        volume[x, y, z] = volume.load((x, y, z)) + plane.size().y.to_dtype(u32)
        pages[x, y, z] = vc.new_ivec4_register(x, y, z, pages.size().z)
        with vc.if_block(vc.all(y == 0, z == 0)):
            line.store(x, line[x] * 2)
        sizes[0] = line.size()
        for axis in range(3):
            sizes[1 + axis] = volume.size()[axis]

    line = np.arange(4, dtype=np.int32)
    plane = np.zeros((3, 4, 2), np.float32)
    volume = np.arange(24, dtype=np.uint32).reshape(2, 3, 4)
    pages = np.zeros((2, 3, 4, 4), np.int32)
    sizes = np.zeros(4, np.int32)
    kernel.interpret(line, plane, volume, pages, sizes, check=True)
    assert line.tolist() == [0, 2, 4, 6]
    # each of the two layers adds once, but as plain loads and stores of one statement
    np.testing.assert_array_equal(plane, np.broadcast_to(np.float32([1, 2]), (3, 4, 2)))
    np.testing.assert_array_equal(volume, np.arange(24).reshape(2, 3, 4) + 3)
    for z, y, x in np.ndindex(2, 3, 4):
        assert pages[z, y, x].tolist() == [x, y, z, 2]
    assert sizes.tolist() == [4, 4, 3, 2]
    with pytest.raises(RuntimeError, match=r"image 'plane'.*nothing orders"):
        kernel.interpret(line, plane, volume, pages, sizes, races=True)


def test_loads_from_mip_levels() -> None:
    @vd.shader("out.size")
    def kernel(image: Img2[i32], level: Const[i32], out: Buff[i32]) -> None:
        i = vc.global_invocation_id().x
        size = image.size(level)
        with vc.if_block(i < size.x * size.y):
            out[i] = image.load((i % size.x, i // size.x), level).x

    texels = np.arange(40, dtype=np.int32).reshape(5, 8)
    image = vd.Image2D((5, 8), vd.int32, enable_mipmaps=True)
    image.write(texels)
    for level in range(image.mip_levels):
        expected, out = image.read(level=level).ravel(), np.zeros(40, np.int32)
        kernel.interpret(HostSampler(texels, enable_mipmaps=True), level, out)
        assert out[: len(expected)].tolist() == expected.tolist()
        again = np.zeros(40, np.int32)
        kernel.interpret(image.sample(), level, again)
        assert again.tolist() == out.tolist()
    with pytest.raises(IndexError, match=r"mip level 4 is out of bounds for image 'image' of 4, in invoc"):
        kernel.interpret(image.sample(), 4, out)


def test_out_of_range_texels() -> None:
    @vd.shader((4, 3), local_size=(2, 2))
    def shift(image: SImg2[f32], out: SImg2[f32], tex: Img2[f32], dx: Const[i32], dy: Const[i32]) -> None:
        gid = vc.global_invocation_id()
        x, y = gid.x.to_dtype(i32), gid.y.to_dtype(i32)
        value = image.load((x, y)) + tex.load((x, y + dy)).x
        out.store((x + dx, y), value)

    pixels = np.arange(12, dtype=np.float32).reshape(3, 4)
    out = np.zeros_like(pixels)
    shift.interpret(pixels, out, pixels, 0, 0)
    assert np.array_equal(out, 2 * pixels)
    where = r"test_images.py:\d+\)\n +out.store"
    with pytest.raises(
        IndexError,
        match=rf"shift .*texel \(4, 0\) .*image 'out' of \(4, 3\), in invocation \(3, 0, 0\) .*{where}",
    ):
        shift.interpret(pixels, out, pixels, 1, 0)
    with pytest.raises(IndexError, match=r"texel \(0, -1\) .*image 'tex' of \(4, 3\)"):
        shift.interpret(pixels, out, pixels, 0, -1)
    out[:] = 0
    shift.interpret(pixels, out, pixels, -1, 1, check=False)
    below = np.concatenate([pixels[1:], np.zeros((1, 4), np.float32)])
    assert np.array_equal(out[:, :3], (pixels + below)[:, 1:])
    assert not out[:, 3].any()
    with pytest.raises(FloatingPointError, match=r"NaN stored in image 'out'.* \(1, 1, 0\)"):
        shift.interpret(
            np.where(pixels == 5, np.nan, pixels).astype(np.float32), out, pixels, 0, 0, check="nan"
        )


def test_texels_behind_a_false_condition_are_not_loaded() -> None:
    @vd.shader("out.size")
    def kernel(image: Img1[f32], out: Buff[f32], n: Const[i32]) -> None:
        i = vc.global_invocation_id().x.to_dtype(i32)
        with vc.if_block(vc.all(i < n, image.load(i).x > 0)):
            out[i] = 1.0

    out = np.zeros(8, np.float32)
    kernel.interpret(np.ones(3, np.float32), out, 3)
    assert out.tolist() == [1, 1, 1, 0, 0, 0, 0, 0]


def test_wrong_image_arguments_are_refused() -> None:
    good, out = np.zeros((4, 4), np.float32), np.zeros((4, 4), np.float32)
    read_only = np.zeros((4, 4), np.float32)
    read_only.flags.writeable = False
    for source, target, message in [
        ([1], out, r"argument 'source': expected a NumPy array or a vd.HostSampler or vd.Sampler, got list"),
        (good, None, "argument 'target': expected a NumPy array or a vd.Image, got None"),
        (good.astype(np.float64), out, "texels of float32, the array is of float64"),
        (good, out.astype(np.int32), "texels of float32, the array is of int32"),
        (good[0], out, r"expected an array of 2 axes, .*got one of shape \(4,\)"),
        (np.zeros((4, 4, 5), np.float32), out, "one to four channels.*has 5"),
        (good, np.zeros((4, 4, 2), np.float32), r"expected 1 channels \(float32\).* has 2"),
        (np.zeros((0, 4), np.float32), out, r"got one of shape \(0, 4\)"),
        (good, read_only, "argument 'target': the kernel writes to it, and the array is read-only"),
        (vd.Image2D((4, 4)), out, "call .sample"),
        (good, vd.Image2D((4, 4)).sample(), "pass the image itself"),
        (good, HostSampler(out), "expected a NumPy array or a vd.Image, got HostSampler"),
        (vd.Image2D((4, 4), vd.int32).sample(), out, "this image has int32"),
    ]:
        with pytest.raises(ValueError, match=message):
            enlarge.interpret(source, target)
    gone = vd.Image2D((4, 4))
    gone.destroy()
    with pytest.raises(RuntimeError, match="destroyed"):
        enlarge.interpret(good, gone)
    enlarge.interpret(read_only, out)


def test_invalid_host_samplers_are_refused() -> None:
    with pytest.raises(TypeError, match="data: expected a NumPy array, got list"):
        HostSampler([1.0])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="data: images are of float32, int32 or uint32, got float64"):
        HostSampler(np.zeros(3))
    with pytest.raises(ValueError, match="mag_filter: integers cannot be interpolated"):
        HostSampler(np.zeros(3, np.int32), Filter.LINEAR)
    with pytest.raises(TypeError, match="address_mode"):
        HostSampler(np.zeros(3, np.float32), address_mode=2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"min_lod, max_lod: 1.0 is more than 0.0"):
        HostSampler(np.zeros(3, np.float32), min_lod=1)
