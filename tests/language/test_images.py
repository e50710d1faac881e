"""Images in kernels: sampling against a NumPy model, loads, stores, and both in turn."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch import AddressMode, BorderColor, Filter
from vkdispatch.codegen.abbreviations import (
    Buff,
    Const,
    Img1,
    Img2,
    Img3,
    SImg1,
    SImg2,
    SImg3,
    Var,
    f32,
    i32,
    iv2,
    iv3,
    iv4,
    u32,
    uv2,
    uv4,
    v2,
    v3,
    v4,
)
from vkdispatch.compiler.ir import ImageBinding

from .sampling import Sampling, sample

Array = np.ndarray[Any, Any]

HOST = {f32: np.float32, i32: np.int32, u32: np.uint32}
NEAREST, LINEAR = Filter.NEAREST, Filter.LINEAR


def supported(mode: AddressMode) -> bool:
    info = vd.get_context().device_infos[0]
    return mode is not AddressMode.MIRROR_CLAMP_TO_EDGE or bool(info.sampler_mirror_clamp_to_edge)


def tolerance() -> float:
    """GPUs filter with eight bits of fraction; values here lie between 0 and 1."""
    return 1e-5 if vd.get_context().device_infos[0].is_cpu() else 1 / 64


def random_texels(image: vd.Image, seed: int = 0) -> Array:
    generator = np.random.default_rng(seed)
    host = HOST[image.dtype]
    if image.dtype is f32:
        return generator.random(image.array_shape, np.float32)
    info = np.iinfo(host)
    return generator.integers(info.min, info.max, image.array_shape, host, endpoint=True)


def with_channels(image: vd.Image, texels: Array) -> Array:
    return texels if image.channels > 1 else texels[..., None]


# Sizes differ, so that no two axes can be mixed up.
MAKERS: dict[str, Callable[..., vd.Image]] = {
    "1D": lambda *args: vd.Image1D(13, *args),
    "2D": lambda *args: vd.Image2D((5, 12), *args),
    "3D": lambda *args: vd.Image3D((3, 7, 4), *args),
}
ANNOTATIONS: dict[str, Any] = {"1D": Img1, "2D": Img2, "3D": Img3}
COORDINATES: dict[str, Any] = {"1D": f32, "2D": v2, "3D": v3}

_samplers: dict[tuple[str, Any], vd.ShaderFunction] = {}


def sampling_kernel(kind: str, scalar: Any) -> vd.ShaderFunction:
    """Kernel (image, coordinates, lods, results), compiled once."""

    def kernel(image: Any, at: Any, lod: Any, out: Any) -> None:
        i = vc.global_invocation_id().x
        out[i] = image.sample(at[i], lod[i])

    if (kind, scalar) not in _samplers:
        result = {f32: v4, i32: iv4, u32: uv4}[scalar]
        annotations = [ANNOTATIONS[kind][scalar], Buff[COORDINATES[kind]], Buff[f32], Buff[result]]
        _samplers[kind, scalar] = vd.shader("param3.size", arg_type_annotations=annotations)(kernel)
    return _samplers[kind, scalar]


def spots(image: vd.Image, count: int = 300) -> Array:
    """Coordinates inside and around an image, odd sixteenths: never where two texels meet."""
    sizes = list(image.extent[: len(image.shape)])
    drawn = np.random.default_rng(7).integers(-20 * 8, 20 * 8, (count, len(sizes)))
    near = drawn % (np.array(sizes) * 3 * 8) - np.array(sizes) * 8
    return (near / 8 + 1 / 16).astype(np.float32)


def check_sampling(
    kind: str, image: vd.Image, settings: Sampling, lods: Array | None = None, atol: float | None = None
) -> None:
    at = spots(image)
    lods = np.zeros(len(at), np.float32) if lods is None else np.resize(lods, len(at)).astype(np.float32)
    coordinates, levels = vd.Buffer(len(at), COORDINATES[kind]), vd.asbuffer(lods)
    coordinates.write(at.reshape(-1))
    result = vd.Buffer(len(at), {f32: v4, i32: iv4, u32: uv4}[image.dtype])
    sampler = image.sample(**{f.name: getattr(settings, f.name) for f in dataclasses.fields(settings)})
    sampling_kernel(kind, image.dtype)(sampler, coordinates, levels, result)
    chain = [with_channels(image, image.read(level=level)) for level in range(image.mip_levels)]
    expected = sample(chain, at, lods, settings)
    found = result.read(0)
    if settings.address_mode is AddressMode.CLAMP_TO_BORDER:
        # What a border has in channels that the image lacks differs between devices.
        found, expected = found[:, : image.channels], expected[:, : image.channels]
    if image.dtype is f32:
        np.testing.assert_allclose(found, expected, atol=tolerance() if atol is None else atol)
    else:
        np.testing.assert_array_equal(found, expected)


# ---- sampling ------------------------------------------------------------------------------------


@pytest.mark.parametrize("filter", Filter, ids=lambda f: f.name)
@pytest.mark.parametrize("mode", AddressMode, ids=lambda m: m.name)
@pytest.mark.parametrize("kind", MAKERS)
def test_address_modes(kind: str, mode: AddressMode, filter: Filter) -> None:
    if not supported(mode):
        pytest.skip(f"the device has no {mode.name}")
    for channels in (1, 2, 3, 4):
        image = MAKERS[kind](f32, channels)
        image.write(random_texels(image, channels))
        check_sampling(kind, image, Sampling(mag_filter=filter, address_mode=mode))


@pytest.mark.parametrize("colour", BorderColor, ids=lambda c: c.name)
@pytest.mark.parametrize("scalar", [f32, i32, u32], ids=lambda s: s.name)
def test_border_colours(scalar: Any, colour: BorderColor) -> None:
    image = MAKERS["2D"](scalar, 4)
    image.write(random_texels(image))
    filter = LINEAR if scalar is f32 else NEAREST
    settings = Sampling(filter, filter, filter, AddressMode.CLAMP_TO_BORDER, border_color=colour)
    check_sampling("2D", image, settings)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("scalar", [i32, u32], ids=["i32", "u32"])
@pytest.mark.parametrize("kind", MAKERS)
def test_integers(kind: str, scalar: Any, channels: int) -> None:
    image = MAKERS[kind](scalar, channels)
    image.write(random_texels(image))
    check_sampling(kind, image, Sampling(NEAREST, NEAREST, NEAREST, AddressMode.REPEAT))


def test_integers_are_not_filtered() -> None:
    image = vd.Image2D((4, 4), vd.int32)
    assert image.sample() is not None
    for name in ("mag_filter", "min_filter", "mip_filter"):
        with pytest.raises(ValueError, match=rf"{name}: .*NEAREST"):
            image.sample(**{name: LINEAR})


LODS = np.arange(-24, 88) / 16 + 1 / 32


@pytest.mark.parametrize(
    "filters", list(itertools.product(Filter, repeat=3)), ids=lambda f: "-".join(x.name.lower() for x in f)
)
@pytest.mark.parametrize("kind", MAKERS)
def test_levels_of_detail(kind: str, filters: tuple[Filter, Filter, Filter]) -> None:
    image = MAKERS[kind](f32, 2, True)
    image.write(random_texels(image))
    check_sampling(kind, image, Sampling(*filters, max_lod=10.0), LODS)


@pytest.mark.parametrize("bounds", [(0.0, 0.0), (0.0, 1.5), (1.25, 2.0), (3.0, 9.0)])
def test_limits_of_the_level_of_detail(bounds: tuple[float, float]) -> None:
    image = MAKERS["2D"](f32, 1, True)
    image.write(random_texels(image))
    check_sampling("2D", image, Sampling(min_lod=bounds[0], max_lod=bounds[1]), LODS)


def test_bias() -> None:
    image = MAKERS["2D"](f32, 1, True)
    image.write(random_texels(image))
    check_sampling("2D", image, Sampling(max_lod=10.0, mip_lod_bias=1.5), LODS)


@pytest.mark.parametrize("scalar", [i32, u32], ids=["i32", "u32"])
def test_levels_of_integers(scalar: Any) -> None:
    image = MAKERS["2D"](scalar, 1, True)
    image.write(random_texels(image))
    check_sampling("2D", image, Sampling(NEAREST, NEAREST, NEAREST, max_lod=10.0), LODS)


def test_layers() -> None:
    @vd.shader("out.size")
    def kernel(image: vc.Image2DArray[f32], at: Buff[v3], out: Buff[v4]) -> None:
        i = vc.global_invocation_id().x
        out[i] = image.sample(at[i])

    image = vd.Image2DArray((5, 12), 3, vd.float32, 2)
    texels = random_texels(image)
    image.write(texels)
    at = spots(vd.Image2D((5, 12)))
    layers = np.resize(np.float32([0, 1, 2, 0.75, 1.25, -3, 9]), len(at))
    coordinates, result = vd.Buffer(len(at), v3), vd.Buffer(len(at), v4)
    coordinates.write(np.column_stack((at, layers)).astype(np.float32))
    kernel(image.sample(), coordinates, result)
    nearest = np.clip(np.floor(layers + 0.5), 0, 2).astype(int)
    whole = [sample([layer], at, np.zeros(len(at)), Sampling()) for layer in texels]
    expected = np.choose(nearest[:, None], whole)
    np.testing.assert_allclose(result.read(0), expected, atol=tolerance())


def test_coordinates_of_many_forms() -> None:
    image = vd.Image2D((6, 9))
    texels = random_texels(image)
    image.write(texels)

    @vd.shader(1)
    def kernel(tex: Img2[f32], out: Buff[f32]) -> None:
        where = vc.new_ivec3_register(4, 2, 77)
        out[0] = tex.sample(where).x
        out[1] = tex.sample((4, 2)).x
        out[2] = tex.sample((where.x, 2.0), 0).x
        out[3] = tex.sample(where.swizzle("xy")).x
        out[4] = tex.load(where).x
        out[5] = tex.load((where.x, 2)).x
        out[6] = tex.load((where.swizzle("xy"),)).x
        out[7] = tex.load(vc.new_uvec2_register(4, 2)).x

    out = vd.Buffer(8, f32)
    kernel(image.sample(), out)
    np.testing.assert_allclose(out.read(0), texels[2, 4], atol=tolerance())


# ---- loads and sizes -----------------------------------------------------------------------------


def test_load_and_size_of_levels() -> None:
    image = vd.Image2D((5, 12), vd.float32, 2, True)
    image.write(random_texels(image))

    @vd.shader("(12, 5)", local_size=(8, 8))
    def kernel(tex: Img2[f32], level: Const[i32], out: Buff[v4], sizes: Buff[iv2]) -> None:
        here = vc.global_invocation_id()
        size = tex.size(level)
        sizes[0] = size
        with vc.if_block((here.x < size.x) & (here.y < size.y)):
            out[here.y * size.x + here.x] = tex.load(here, level)

    for level in range(image.mip_levels):
        expected = image.read(level=level)
        rows, columns = expected.shape[:2]
        out, sizes = vd.Buffer((rows, columns), v4), vd.Buffer(1, iv2)
        kernel(image.sample(), level, out, sizes)
        assert sizes.read(0)[0].tolist() == [columns, rows]
        np.testing.assert_array_equal(out.read(0)[..., :2], expected)
        np.testing.assert_array_equal(out.read(0)[..., 2:], np.broadcast_to([0, 1], (rows, columns, 2)))


def test_sizes() -> None:
    @vd.shader(1)
    def sampled(a: Img1[i32], b: Img2[f32], c: Img3[u32], d: vc.Image2DArray[f32], out: Buff[i32]) -> None:
        out[0] = a.size()
        values = [b.size(), c.size(), d.size()]
        place = 1
        for value in values:
            for i in range(len(value)):
                out[place] = value[i]
                place += 1

    @vd.shader(1)
    def storage(
        a: SImg1[i32], b: SImg2[f32], c: SImg3[u32], d: vc.StorageImage2DArray[v2], out: Buff[i32]
    ) -> None:
        out[0] = a.size()
        values = [b.size(), c.size(), d.size()]
        place = 1
        for value in values:
            for i in range(len(value)):
                out[place] = value[i]
                place += 1

    images = [
        vd.Image1D(13, vd.int32),
        vd.Image2D((5, 12)),
        vd.Image3D((3, 7, 4), vd.uint32),
        vd.Image2DArray((2, 6), 11, vd.float32, 2),
    ]
    out = vd.Buffer(9, i32)
    sampled(*(image.sample() for image in images), out)
    assert out.read(0).tolist() == [13, 12, 5, 4, 7, 3, 6, 2, 11]
    out.write(np.zeros(9, np.int32))
    storage(*images, out)
    assert out.read(0).tolist() == [13, 12, 5, 4, 7, 3, 6, 2, 11]


# ---- storage images ------------------------------------------------------------------------------

TEXELS = {
    (f32, 1): f32,
    (f32, 2): v2,
    (f32, 4): v4,
    (i32, 1): i32,
    (i32, 2): iv2,
    (i32, 4): iv4,
    (u32, 1): u32,
    (u32, 2): uv2,
    (u32, 4): uv4,
}


@pytest.mark.parametrize(("scalar", "channels"), TEXELS, ids=lambda x: getattr(x, "name", str(x)))
@pytest.mark.parametrize("kind", ["1D", "2D", "3D", "array"])
def test_store_and_load(kind: str, scalar: Any, channels: int) -> None:
    makers = {**MAKERS, "array": lambda *args: vd.Image2DArray((5, 12), 3, *args)}
    annotation = {"1D": SImg1, "2D": SImg2, "3D": SImg3, "array": vc.StorageImage2DArray}[kind]
    source, target = (makers[kind](scalar, channels) for _ in range(2))
    texels = random_texels(source)
    source.write(texels)
    width, height, depth = (*reversed(source.shape), 1, 1)[:3]

    @vd.shader((width, height, depth), local_size=(4, 2, 2))
    def move(a: annotation[TEXELS[scalar, channels]], b: annotation[TEXELS[scalar, channels]]) -> None:
        here = vc.global_invocation_id()
        at = here.x if kind == "1D" else here
        b[at] = a[at]

    move(source, target)
    np.testing.assert_array_equal(target.read(), texels)


def test_axes() -> None:
    """`img[x, y]` is column x of row y: data[y, x]."""

    @vd.shader("(img.shape[1], img.shape[0])", local_size=(16, 4))
    def ramp(img: SImg2[f32]) -> None:
        here = vc.global_invocation_id()
        img[here.x, here.y] = vc.to_float(here.x + 1000 * here.y)

    image = vd.Image2D((37, 53))
    ramp(image)
    y, x = np.mgrid[:37, :53]
    np.testing.assert_array_equal(image.read(), x + 1000 * y)


def test_in_place_and_conversions() -> None:
    @vd.shader("(img.shape[1], img.shape[0])", local_size=(8, 8))
    def change(img: SImg2[i32], pairs: SImg2[v2]) -> None:
        x, y = vc.global_invocation_id().x, vc.global_invocation_id().y
        img[x, y] += 5
        img[x, y] *= 2
        img.store((x, y), img.load((x, y)) - x)
        pairs[x, y] = 1.5
        pairs[x, y] = pairs[x, y] * vc.new_vec2_register(2.0, 4.0) + vc.to_float(y)

    image, pairs = vd.Image2D((9, 17), vd.int32), vd.Image2D((9, 17), vd.float32, 2)
    texels = np.arange(9 * 17, dtype=np.int32).reshape(9, 17)
    image.write(texels)
    change(image, pairs)
    y, x = np.mgrid[:9, :17]
    np.testing.assert_array_equal(image.read(), (texels + 5) * 2 - x)
    np.testing.assert_array_equal(pairs.read(), np.stack((3.0 + y, 6.0 + y), -1))


def test_out_of_range_stores_write_nothing() -> None:
    @vd.shader((40, 40), local_size=(8, 8), check=False)
    def mark(img: SImg2[u32], beside: SImg2[u32]) -> None:
        here = vc.global_invocation_id()
        img[vc.to_int(here.x) - 10, vc.to_int(here.y) - 10] = 7

    image, beside = vd.Image2D((9, 17), vd.uint32), vd.Image2D((9, 17), vd.uint32)
    beside.write(np.zeros((9, 17), np.uint32))
    mark(image, beside)
    assert (image.read() == 7).all()
    assert (beside.read() == 0).all()


# ---- order ---------------------------------------------------------------------------------------


@vd.shader("(dst.shape[1], dst.shape[0])", local_size=(16, 8))
def rotate(src: Img2[f32], dst: SImg2[f32]) -> None:
    """Move everything one texel to the left and two up, around the edges."""
    here = vc.global_invocation_id()
    dst[here.x, here.y] = src.sample((here.x + 1, here.y + 2)).x


@vd.shader("(img.shape[1], img.shape[0])", local_size=(16, 8))
def add_one(img: SImg2[f32]) -> None:
    here = vc.global_invocation_id()
    img[here.x, here.y] += 1


def test_store_then_sample_then_read() -> None:
    a, b = vd.Image2D((37, 64)), vd.Image2D((37, 64))
    texels = np.arange(37 * 64, dtype=np.float32).reshape(37, 64)
    a.write(texels)
    sampler = a.sample(NEAREST, address_mode=AddressMode.REPEAT)
    for _ in range(20):
        add_one(a)
        rotate(sampler, b)
        add_one(b)
    np.testing.assert_array_equal(a.read(), texels + 20)
    np.testing.assert_array_equal(b.read(), np.roll(texels + 21, (-2, -1), (0, 1)))
    b.write(texels)
    add_one(b)
    np.testing.assert_array_equal(b.read(), texels + 1)


def test_ping_pong_in_a_graph() -> None:
    a, b = vd.Image2D((37, 64)), vd.Image2D((37, 64))
    texels = np.random.default_rng(1).random((37, 64), np.float32)
    a.write(texels)
    graph = vd.CommandGraph()
    rotate(a.sample(NEAREST, address_mode=AddressMode.REPEAT), b, graph=graph)
    rotate(b.sample(NEAREST, address_mode=AddressMode.REPEAT), a, graph=graph)
    for _ in range(100):
        graph.submit()
    np.testing.assert_array_equal(a.read(), np.roll(texels, (-400, -200), (0, 1)))
    graph.submit(instance_count=50)
    np.testing.assert_array_equal(a.read(), np.roll(texels, (-600, -300), (0, 1)))


def test_graph_with_writes_between() -> None:
    """What is written from the host between two replays is what the second one sees."""
    a, b = vd.Image2D((37, 64)), vd.Image2D((37, 64))
    graph = vd.CommandGraph()
    rotate(a.sample(NEAREST, address_mode=AddressMode.REPEAT), b, graph=graph)
    add_one(b, graph=graph)
    for seed in range(6):
        texels = np.random.default_rng(seed).random((37, 64), np.float32)
        a.write(texels)
        graph.submit()
        np.testing.assert_array_equal(b.read(), np.roll(texels, (-2, -1), (0, 1)) + 1)


def test_image_that_is_sampled_and_stored_in_one_kernel() -> None:
    @vd.shader(32)
    def copy_right(src: Img1[f32], dst: SImg1[f32]) -> None:
        x = vc.global_invocation_id().x
        dst[x + 32] = src.load(x).x

    image = vd.Image1D(64, vd.float32)
    image.write(np.arange(64, dtype=np.float32))
    copy_right(image.sample(), image)
    np.testing.assert_array_equal(image.read(), np.tile(np.arange(32), 2))


# ---- beside other arguments ----------------------------------------------------------------------


def test_images_beside_buffers_and_values() -> None:
    @vd.shader("out.size")
    def kernel(
        factor: Const[f32], tex: Img2[f32], out: Buff[f32], shift: Var[iv2], dst: SImg2[f32], bias: Buff[f32]
    ) -> None:
        i = vc.to_int(vc.global_invocation_id().x)
        x, y = i % out.shape.y, i // out.shape.y
        value = (tex.load((x, y)).x * factor + bias[i]).to_register()
        out[i] = value
        dst[x + shift.x, y + shift.y] = value

    tex, dst = vd.Image2D((6, 11)), vd.Image2D((8, 14))
    texels, bias = random_texels(tex), np.arange(66, dtype=np.float32)
    tex.write(texels)
    dst.write(np.full((8, 14), -1, np.float32))
    out = vd.Buffer((6, 11), f32)
    for _ in range(3):
        kernel(2.0, tex.sample(), out, (3, 2), dst, vd.asbuffer(bias))
    expected = texels * 2 + bias.reshape(6, 11)
    np.testing.assert_allclose(out.read(0), expected, rtol=1e-6)
    moved = np.full((8, 14), -1, np.float32)
    moved[2:, 3:] = out.read(0)
    np.testing.assert_array_equal(dst.read(), moved)
    graph = vd.CommandGraph()
    kernel(3.0, tex.sample(), out, graph.bind_var("shift"), dst, bias=vd.asbuffer(bias), graph=graph)
    for shift in ((0, 0), (1, 2), (3, 0)):
        dst.write(np.full((8, 14), -1, np.float32))
        graph.set_var("shift", shift)
        graph.submit()
        np.testing.assert_array_equal(
            dst.read()[shift[1] : shift[1] + 6, shift[0] : shift[0] + 11], out.read(0)
        )
        assert (dst.read() == -1).sum() == 8 * 14 - 66


def test_arguments_in_a_uniform_block() -> None:
    @vd.shader((8, 8), local_size=(8, 8))
    def kernel(
        tex: Img2[f32], a: Const[vd.mat4], b: Const[vd.mat4], c: Const[vd.mat4], dst: SImg2[v4]
    ) -> None:
        here = vc.global_invocation_id()
        dst[here.x, here.y] = (a + b + c) @ tex.load(here)

    tex, dst = vd.Image2D((8, 8), vd.float32, 4), vd.Image2D((8, 8), vd.float32, 4)
    texels = random_texels(tex)
    tex.write(texels)
    matrices = [np.random.default_rng(i).random((4, 4), np.float32) for i in range(3)]
    kernel(tex.sample(), *matrices, dst)
    kernel(tex.sample(), *matrices, dst)
    columns = sum(matrices)
    np.testing.assert_allclose(dst.read(), np.einsum("cr,ijc->ijr", columns, texels), rtol=1e-5)


# ---- what kernels say they do --------------------------------------------------------------------


def test_accesses() -> None:
    @vd.shader(1)
    def kernel(
        a: Img2[f32], b: SImg2[f32], c: SImg2[f32], d: SImg2[f32], e: SImg2[f32], f: Img2[f32]
    ) -> None:
        b[0, 0] = a.load((0, 0)).x
        c[0, 0] += d[0, 0]
        e.size()
        vc.get_builder().append_contents("imageStore(img4, ivec2(0), texelFetch(tex5, ivec2(0), 0));\n")

    description = kernel.shader_description
    assert description.binding_type_list == [5, 4, 4, 4, 4, 5]
    assert description.binding_access == [
        (True, False),
        (False, True),
        (True, True),
        (True, False),
        (True, True),
        (True, False),
    ]
    source = str(kernel.get_src())
    assert "layout(set = 0, binding = 1, r32f) writeonly uniform image2D img1;" in source
    assert "layout(set = 0, binding = 3, r32f) readonly uniform image2D img3;" in source
    assert "uniform sampler2D tex0;" in source
    assert all(isinstance(resource, ImageBinding) for resource in description.kernel.resources)


# ---- mistakes ------------------------------------------------------------------------------------


@vd.shader(1)
def reader(tex: Img2[f32], out: Buff[v4]) -> None:
    out[0] = tex.sample((0, 0))


@vd.shader(1)
def writer(img: SImg2[v2]) -> None:
    img[0, 0] = 1.0


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (lambda: vd.Image2D((2, 2)), r"'tex': expected a vd.Sampler, got Image2D.*\.sample\(\)"),
        (lambda: vd.Buffer(4, f32), "'tex': expected a vd.Sampler"),
        (lambda: None, "'tex': expected a vd.Sampler"),
        (lambda: vd.Image1D(4, vd.float32).sample(), "VIEW_TYPE_2D, this one is of VIEW_TYPE_1D"),
        (lambda: vd.Image2DArray((2, 2), 3).sample(), "VIEW_TYPE_2D, this one is of VIEW_TYPE_2D_ARRAY"),
        (lambda: vd.Image2D((2, 2), vd.int32).sample(), "texels of float32, this image has int32"),
    ],
)
def test_wrong_samplers(argument: Callable[[], Any], message: str) -> None:
    out = vd.Buffer(1, v4)
    for _ in range(2):  # before there is a fast path, and after
        with pytest.raises(ValueError, match=message):
            reader(argument(), out)
        with pytest.raises(ValueError, match=message):
            reader(argument(), out, graph=vd.CommandGraph())
        reader(vd.Image2D((2, 2)).sample(), out)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (lambda: vd.Image2D((2, 2), channels=2).sample(), r"'img': expected a vd.Image.*the image itself"),
        (lambda: vd.Buffer(4, f32), "'img': expected a vd.Image"),
        (lambda: vd.Image3D((2, 2, 2), channels=2), "VIEW_TYPE_2D, this one is of VIEW_TYPE_3D"),
        (lambda: vd.Image2D((2, 2), vd.uint32, 2), "texels of float32, this image has uint32"),
        (lambda: vd.Image2D((2, 2)), "texels of vec2, 2 channels, this image has 1"),
        (lambda: vd.Image2D((2, 2), channels=3), "texels of vec2, 2 channels, this image has 3"),
    ],
)
def test_wrong_storage_images(argument: Callable[[], Any], message: str) -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match=message):
            writer(argument())
        writer(vd.Image2D((2, 2), channels=2))


def test_destroyed_arguments() -> None:
    out = vd.Buffer(1, v4)
    image = vd.Image2D((2, 2))
    sampler = image.sample()
    reader(sampler, out)
    graph = vd.CommandGraph()
    reader(sampler, out, graph=graph)
    image.destroy()
    assert sampler.destroyed
    assert graph.destroyed
    with pytest.raises(RuntimeError, match="destroyed"):
        reader(sampler, out)
    with pytest.raises(RuntimeError, match="destroyed"):
        graph.submit()
    stored = vd.Image2D((2, 2), channels=2)
    stored.destroy()
    with pytest.raises(RuntimeError, match="destroyed"):
        writer(stored)


@pytest.mark.parametrize(
    ("annotation", "message"),
    [(SImg2[v3], "three components; use four"), (SImg2[vd.float64], "float64"), (SImg1[vd.mat2], "mat2")],
)
def test_out_of_range_storage_texels(annotation: Any, message: str) -> None:
    with pytest.raises(ValueError, match=rf"{message}.*test_images.py"):
        vd.shader(1, arg_type_annotations=[annotation])(lambda image: None)


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        (lambda tex, img: tex.sample(1.0), ValueError, "sample: expected .x, y.*vector of 2"),
        (lambda tex, img: tex.sample((1, 2, 3)), ValueError, "sample: expected .x, y.*3 values"),
        (lambda tex, img: tex.sample("here"), ValueError, "sample: expected a GPU value"),
        (lambda tex, img: tex.load((0.5, 1)), ValueError, "load: a texel has integer coordinates"),
        (lambda tex, img: tex.load((0, 1), 0.5), ValueError, "lod must be an integer"),
        (lambda tex, img: tex[0, 0], TypeError, "sample.*load"),
        (lambda tex, img: tex + 1, TypeError, "whole image is not a value"),
        (lambda tex, img: img[0], ValueError, "load: expected .x, y"),
        (lambda tex, img: img[0:2, 1], ValueError, "not a slice"),
        (lambda tex, img: img.store((0, 0), "red"), TypeError, "cannot store 'red'"),
        (lambda tex, img: img.store((0, 0), vc.new_vec3_register()), ValueError, "vec3"),
        (lambda tex, img: img.store((0, 0.5), 1.0), ValueError, "store: a texel has integer coordinates"),
    ],
)
def test_mistakes_in_kernels(body: Callable[[Any, Any], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=rf"{message}.*test_images.py:\d+"):
        vd.shader(1, arg_type_annotations=[Img2[f32], SImg2[v2]])(body)


def test_more_images_than_the_device_binds() -> None:
    with pytest.raises((ValueError, vd.ShaderBuildError), match=r"exceed|limit"):
        count = 5000
        kernel = vd.shader(1, arg_type_annotations=[SImg2[f32]] * count)(lambda *images: None)
        kernel.build()


def test_texel_loads_are_not_moved_across_stores() -> None:
    """A load is not moved across the store that changes it."""

    @vd.shader(1)
    def kernel(img: SImg2[f32], out: Buff[f32]) -> None:
        before = img[0, 0].to_register()
        img[0, 0] = before + 1
        out[0] = before
        out[1] = img[0, 0]

    image, out = vd.Image2D((1, 1)), vd.Buffer(2, f32)
    image.write(np.float32([[5]]))
    kernel(image, out)
    assert out.read(0).tolist() == [5, 6]


def test_iv3_texel_of_a_volume() -> None:
    @vd.shader(1)
    def kernel(volume: Img3[f32], at: Const[iv3], out: Buff[f32]) -> None:
        out[0] = volume.load(at).x

    volume = vd.Image3D((3, 5, 7))
    texels = random_texels(volume)
    volume.write(texels)
    out = vd.Buffer(1, f32)
    kernel(volume.sample(), (6, 4, 2), out)
    assert out.read(0)[0] == texels[2, 4, 6]
