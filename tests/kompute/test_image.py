"""Images: types of texels and memory, sizes, kernels, and copies from and to tensors."""

from typing import Any

import numpy as np
import pytest

import vkdispatch.kompute as kp

DTYPES = {
    "float32": (kp.DataTypes.float, "32f", ""),
    "uint32": (kp.DataTypes.uint, "32ui", "u"),
    "int32": (kp.DataTypes.int, "32i", "i"),
    "uint16": (kp.DataTypes.ushort, "16ui", "u"),
    "int16": (kp.DataTypes.short, "16i", "i"),
    "uint8": (kp.DataTypes.uchar, "8ui", "u"),
    "int8": (kp.DataTypes.char, "8i", "i"),
}
CHANNELS = {1: "r", 2: "rg", 4: "rgba"}
SIZES = ((1, 1), (3, 5), (17, 33))
VISIBLE = (kp.MemoryTypes.device, kp.MemoryTypes.host, kp.MemoryTypes.deviceAndHost)
Array = np.ndarray[Any, Any]


def random(dtype: str, size: int) -> Array:
    """Return values to which 1 can be added."""
    generator = np.random.default_rng(size)
    if dtype == "float32":
        return generator.normal(size=size).astype(np.float32)
    limits = np.iinfo(dtype)
    return generator.integers(limits.min, limits.max, size, dtype)


def add_one(dtype: str, channels: int) -> str:
    """Return a kernel that stores each texel plus 1 at the mirrored position."""
    _, bits, prefix = DTYPES[dtype]
    texel = f"{CHANNELS[channels]}{bits}"
    return f"""#version 450
#extension GL_EXT_shader_image_load_formatted : enable
layout(local_size_x = 1) in;
layout(set = 0, binding = 0, {texel}) uniform readonly {prefix}image2D from;
layout(set = 0, binding = 1, {texel}) uniform writeonly {prefix}image2D to;
void main() {{
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    imageStore(to, imageSize(to) - 1 - at, imageLoad(from, at) + {prefix}vec4(1));
}}
"""


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_kernels_load_and_store(manager: kp.Manager, dtype: str, channels: int) -> None:
    code = kp.compile_glsl(add_one(dtype, channels))
    for width, height in SIZES:
        data = random(dtype, width * height * channels)
        wanted = data.reshape(height, width, channels)[::-1, ::-1] + np.ones(1, dtype)
        for kind in VISIBLE:
            source = manager.image_t(data, width, height, channels, kind)
            target = manager.image_t(np.zeros_like(data), width, height, channels, kind)
            algorithm = manager.algorithm([source, target], code, (width, height, 1))
            sequence = manager.sequence().record(kp.OpSyncDevice([source]))
            sequence.record(kp.OpAlgoDispatch(algorithm)).record(kp.OpSyncLocal([target])).eval()
            np.testing.assert_array_equal(target.data(), wanted.ravel())
            np.testing.assert_array_equal(source.data(), data)


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_copies_between_all_kinds(manager: kp.Manager, dtype: str, channels: int) -> None:
    for width, height in SIZES:
        size = (width, height, channels)
        data = random(dtype, width * height * channels)
        for kind in kp.MemoryTypes:
            tensor = manager.tensor_t(data)
            image = manager.image_t(np.zeros_like(data), *size, kind)
            other = manager.image_t(np.zeros_like(data), *size, kp.MemoryTypes.storage)
            back = manager.tensor_t(np.zeros_like(data), kp.MemoryTypes.host)
            sequence = manager.sequence().record(kp.OpSyncDevice([tensor]))
            sequence.record(kp.OpCopy([tensor, image]))  # tensor to image
            sequence.record(kp.OpCopy([image, other]))  # image to image
            sequence.record(kp.OpCopy([other, back]))  # image to tensor
            sequence.eval()
            np.testing.assert_array_equal(back.data(), data)
            if kind is not kp.MemoryTypes.storage:
                np.testing.assert_array_equal(image.data(), data)


@pytest.mark.parametrize("dtype", DTYPES)
def test_views(manager: kp.Manager, dtype: str) -> None:
    for kind in VISIBLE:
        data = random(dtype, 30)
        image = manager.image_t(data, 3, 5, 2, kind)
        assert (image.size(), len(image), image.is_init()) == (30, 30, True)
        assert (image.memory_type(), image.data_type()) == (kind, DTYPES[dtype][0])
        assert (image.width(), image.height(), image.num_channels()) == (3, 5, 2)
        view = image.data()
        assert view.dtype == dtype and view.shape == (30,) and view.base is image and view.flags.writeable
        np.testing.assert_array_equal(view, data)
        assert np.shares_memory(view, image.data())


def test_device_memory_changes_only_with_a_sync(manager: kp.Manager) -> None:
    image = manager.image(np.arange(6), 3, 2, 1)
    manager.sequence().eval(kp.OpSyncDevice([image]))
    image.data()[:] = 7
    manager.sequence().eval(kp.OpSyncLocal([image]))
    assert image.data().tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("kind", [kp.MemoryTypes.host, kp.MemoryTypes.deviceAndHost])
def test_host_memory_needs_no_sync(manager: kp.Manager, kind: kp.MemoryTypes) -> None:
    source, target = manager.image([1, 2, 3, 4], 2, 2, 1, kind), manager.image(np.zeros(4), 2, 2, 1, kind)
    algorithm = manager.algorithm([source, target], add_one("float32", 1), (2, 2, 1))
    sequence = manager.sequence().record(kp.OpAlgoDispatch(algorithm))
    view = target.data()
    sequence.eval()
    assert view.tolist() == [5, 4, 3, 2]
    source.data()[:] = 0
    sequence.eval()
    assert view.tolist() == [1, 1, 1, 1]


def test_one_image_in_several_dispatches(manager: kp.Manager) -> None:
    data = np.arange(15, dtype=np.int32)
    one, other = manager.image_t(data, 3, 5, 1), manager.image_t(data, 3, 5, 1)
    code = add_one("int32", 1)
    forth = kp.OpAlgoDispatch(manager.algorithm([one, other], code, (3, 5, 1)))
    back = kp.OpAlgoDispatch(manager.algorithm([other, one], code, (3, 5, 1)))
    sequence = manager.sequence().record(kp.OpSyncDevice([one]))
    for _ in range(10):
        sequence.record(forth).record(back)
    sequence.record(kp.OpSyncLocal([one])).eval()
    np.testing.assert_array_equal(one.data(), data + 20)


def test_data_beyond_the_image_is_ignored(manager: kp.Manager) -> None:
    assert manager.image(range(9), 2, 2, 1).data().tolist() == [0, 1, 2, 3]
    assert manager.image([[1, 2], [3, 4]], 2, 1, 2).data().tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ((2, 2, 3), "num_channels: expected 1, 2 or 4, got 3"),
        ((2, 2, 0), "num_channels"),
        ((0, 2, 1), "width, height: expected 1 or more, got 0 and 2"),
        ((2, 0, 1), "width, height"),
        ((4, 4, 1), "data: 4 x 4 texels of 1 channels take 16 elements, got 12"),
        ((2**31, 1, 1), "data"),
        ((2**70, 2**70, 4), "data"),
    ],
)
def test_invalid_sizes_raise(manager: kp.Manager, arguments: Any, match: str) -> None:
    with pytest.raises(RuntimeError, match=match):
        manager.image(np.zeros(12), *arguments)


def test_an_image_wider_than_the_limit_raises(manager: kp.Manager) -> None:
    with pytest.raises(RuntimeError, match=r"width, height: 1000000 x 1 .* exceed the device.s limit"):
        manager.image(np.zeros(10**6), 10**6, 1, 1)


@pytest.mark.parametrize("arguments", [(-1, 1, 1), (1.0, 1, 1), (1, "1", 1), (1, 1, None), (1, 1, 1, 0)])
def test_invalid_arguments_raise_type_error(manager: kp.Manager, arguments: Any) -> None:
    with pytest.raises(TypeError, match=r"width|height|num_channels|memory_type"):
        manager.image(np.zeros(4), *arguments)


def test_invalid_data_raises(manager: kp.Manager) -> None:
    with pytest.raises(TypeError, match="data: expected numbers"):
        manager.image("abc", 1, 1, 1)
    with pytest.raises(TypeError, match="data: expected a NumPy array"):
        manager.image_t([1.0], 1, 1, 1)
    for dtype in ("float64", "bool", "int64", "float16", ">f4"):
        with pytest.raises(RuntimeError, match="data: expected an array of uint8, int8"):
            manager.image_t(np.zeros(1, dtype), 1, 1, 1)
    image = manager.image(data=[1, 2], width=1, height=1, num_channels=2, memory_type=kp.MemoryTypes.host)
    assert image.data().tolist() == [1, 2]


def test_mismatched_copies_raise(manager: kp.Manager) -> None:
    image = manager.image(np.zeros(4), 2, 2, 1)
    others: list[tuple[kp.Memory, str]] = [
        (manager.image(np.zeros(4), 4, 1, 1), "texels"),
        (manager.image(np.zeros(4), 1, 1, 4), "texels"),
        (manager.image(np.zeros(6), 2, 3, 1), "from 4 elements to 6"),
        (manager.tensor(np.zeros(5)), "from 4 elements to 5"),
        (manager.tensor_t(np.zeros(4, np.int32)), "from elements of float to elements of int"),
        (manager.image_t(np.zeros(4, np.int32), 2, 2, 1), "from elements of float to elements of int"),
        # types are checked before sizes
        (manager.tensor_t(np.zeros(5, np.int32)), "from elements of float to elements of int"),
    ]
    for other, match in others:
        with pytest.raises(RuntimeError, match=match):
            manager.sequence().record(kp.OpCopy([image, other]))


def test_kernels_for_other_images_raise(manager: kp.Manager) -> None:
    image, other = manager.image(np.zeros(4), 2, 2, 1), manager.image_t(np.zeros(4, np.int32), 2, 2, 1)
    for wrong in (add_one("float32", 2), add_one("int32", 1)):
        algorithm = manager.algorithm([image, image], wrong, (1, 1, 1))
        with pytest.raises(RuntimeError, match="binding 0: the shader declares an image with other"):
            manager.sequence().record(kp.OpAlgoDispatch(algorithm))
    with pytest.raises(RuntimeError, match=r"tensors: to .* is a storage image, got a kp\.Tensor"):
        manager.algorithm([image, manager.tensor([1])], add_one("float32", 1))
    assert manager.algorithm([other, other], add_one("int32", 1)).get_workgroup() == (4, 1, 1)


@pytest.mark.parametrize("kind", kp.MemoryTypes)
def test_destroyed(manager: kp.Manager, kind: kp.MemoryTypes) -> None:
    image = manager.image(np.zeros(4), 2, 2, 1, kind)
    image.destroy()
    image.destroy()
    assert (image.is_init(), image.size(), len(image)) == (False, 0, 0)
    assert image.memory_type() is kind and image.data_type() is kp.DataTypes.float
    for call in (
        image.data,
        lambda: manager.sequence().record(kp.OpSyncLocal([image])),
        lambda: manager.algorithm([image], add_one("float32", 1)),
    ):
        with pytest.raises(RuntimeError, match=r"kp\.Image was destroyed"):
            call()


def test_storage_has_no_host_view(manager: kp.Manager) -> None:
    stored = manager.image(np.zeros(4), 2, 2, 1, kp.MemoryTypes.storage)
    with pytest.raises(RuntimeError, match=r"a kp\.Image of type storage has no host view"):
        stored.data()
    manager.sequence().record(kp.OpSyncDevice([stored])).record(kp.OpSyncLocal([stored])).eval()
