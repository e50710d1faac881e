"""The enumerations of images and samplers, with Vulkan's numbers, and the formats of texels."""

from enum import Enum

from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.host_numpy import np
from vkdispatch.base.integers import as_int


class Filter(Enum):
    """The filter between texels, or between mip levels."""

    NEAREST = 0
    LINEAR = 1


class AddressMode(Enum):
    """How values outside an image are defined."""

    REPEAT = 0
    MIRRORED_REPEAT = 1
    CLAMP_TO_EDGE = 2
    CLAMP_TO_BORDER = 3
    MIRROR_CLAMP_TO_EDGE = 4


class BorderColor(Enum):
    """The color outside an image with `AddressMode.CLAMP_TO_BORDER`.

    Each color has a FLOAT and an INT member. Both mean the same: the dtype of the image decides.
    """

    FLOAT_TRANSPARENT_BLACK = 0
    INT_TRANSPARENT_BLACK = 1
    FLOAT_OPAQUE_BLACK = 2
    INT_OPAQUE_BLACK = 3
    FLOAT_OPAQUE_WHITE = 4
    INT_OPAQUE_WHITE = 5


class image_type(Enum):  # noqa: N801  (a public name)
    """The number of axes of an image."""

    TYPE_1D = (0,)
    TYPE_2D = (1,)
    TYPE_3D = (2,)


class image_view_type(Enum):  # noqa: N801  (a public name)
    """How kernels see an image."""

    VIEW_TYPE_1D = (0,)
    VIEW_TYPE_2D = (1,)
    VIEW_TYPE_3D = (2,)
    VIEW_TYPE_2D_ARRAY = (5,)


class image_format(Enum):  # noqa: N801  (a public name)
    """The channels of a texel and their type, with the number of the VkFormat."""

    R8_UINT = 13
    R8_SINT = 14
    R8G8_UINT = 20
    R8G8_SINT = 21
    R8G8B8_UINT = 27
    R8G8B8_SINT = 28
    R8G8B8A8_UINT = 41
    R8G8B8A8_SINT = 42
    R16_UINT = 74
    R16_SINT = 75
    R16_SFLOAT = 76
    R16G16_UINT = 81
    R16G16_SINT = 82
    R16G16_SFLOAT = 83
    R16G16B16_UINT = 88
    R16G16B16_SINT = 89
    R16G16B16_SFLOAT = 90
    R16G16B16A16_UINT = 95
    R16G16B16A16_SINT = 96
    R16G16B16A16_SFLOAT = 97
    R32_UINT = 98
    R32_SINT = 99
    R32_SFLOAT = 100
    R32G32_UINT = 101
    R32G32_SINT = 102
    R32G32_SFLOAT = 103
    R32G32B32_UINT = 104
    R32G32B32_SINT = 105
    R32G32B32_SFLOAT = 106
    R32G32B32A32_UINT = 107
    R32G32B32A32_SINT = 108
    R32G32B32A32_SFLOAT = 109
    R64_UINT = 110
    R64_SINT = 111
    R64_SFLOAT = 112
    R64G64_UINT = 113
    R64G64_SINT = 114
    R64G64_SFLOAT = 115
    R64G64B64_UINT = 116
    R64G64B64_SINT = 117
    R64G64B64_SFLOAT = 118
    R64G64B64A64_UINT = 119
    R64G64B64A64_SINT = 120
    R64G64B64A64_SFLOAT = 121


# dtype -> its suffix in names of formats, its NumPy dtype, and its number in the native module.
_KINDS: dict[DType, tuple[str, type[np.generic], int]] = {
    dtype.float32: ("SFLOAT", np.float32, 0),
    dtype.int32: ("SINT", np.int32, 1),
    dtype.uint32: ("UINT", np.uint32, 2),
}


def select_format(kind: object, channels: int) -> image_format:
    """Return the format of `channels` channels of a dtype.

    Raises
    ------
    ValueError
        There are no such images.
    """
    if not isinstance(kind, type) or kind not in _KINDS:
        name = kind.__name__ if isinstance(kind, type) else repr(kind)
        raise ArgumentValueError(f"dtype: images are of vd.float32, vd.int32 or vd.uint32, got {name}")
    if channels not in (1, 2, 3, 4):
        raise ArgumentValueError(f"channels: expected 1 to 4, got {channels}")
    return image_format[f"{'R32G32B32A32'[: 3 * channels]}_{_KINDS[kind][0]}"]


def parse_format(value: object) -> tuple[image_format, DType, int]:
    """Return a format of images, given as a `vd.image_format` or its number, with its dtype and channels.

    Raises
    ------
    TypeError
        It is neither.
    ValueError
        There are no such images.
    """
    number = value.value if isinstance(value, image_format) else as_int(value)
    if number is None:
        raise ArgumentTypeError(
            f"format: expected a vd.image_format or the number of a VkFormat, got {type(value).__name__}"
        )
    for kind in _KINDS:
        for channels in (1, 2, 4):
            found = select_format(kind, channels)
            if found.value == number:
                return found, kind, channels
    name = value.name if isinstance(value, image_format) else f"VkFormat {number}"
    raise ArgumentValueError(
        "format: images have 1, 2 or 4 channels of 32 bits, such as image_format.R32G32B32A32_SFLOAT, got "
        f"{name}"
    )


def host_dtype(kind: DType) -> type[np.generic]:
    """Return the NumPy dtype of a channel."""
    return _KINDS[kind][1]


def numeric_kind(kind: DType) -> int:
    """Return the number of a dtype in the native module: 0 floating, 1 signed, 2 unsigned."""
    return _KINDS[kind][2]


def device_channels(channels: int) -> int:
    """Return how many channels a device stores. Three become four: devices need not support three."""
    return 4 if channels == 3 else channels
