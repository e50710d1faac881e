"""The enumerations of images and samplers, with Vulkan's numbers, and what a texel is made of."""

from enum import Enum

from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.host_numpy import np


class Filter(Enum):
    """How a value between texels, or between mip levels, is found."""

    NEAREST = 0
    LINEAR = 1


class AddressMode(Enum):
    """What lies outside an image."""

    REPEAT = 0
    MIRRORED_REPEAT = 1
    CLAMP_TO_EDGE = 2
    CLAMP_TO_BORDER = 3
    MIRROR_CLAMP_TO_EDGE = 4


class BorderColor(Enum):
    """The colour outside an image with `AddressMode.CLAMP_TO_BORDER`.

    Of the two kinds of each colour the one that suits the image is taken, whichever is given.
    """

    FLOAT_TRANSPARENT_BLACK = 0
    INT_TRANSPARENT_BLACK = 1
    FLOAT_OPAQUE_BLACK = 2
    INT_OPAQUE_BLACK = 3
    FLOAT_OPAQUE_WHITE = 4
    INT_OPAQUE_WHITE = 5


class image_type(Enum):  # noqa: N801  (a public name)
    """How many axes an image has."""

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
    """Channels of a texel and their type: the number of the VkFormat."""

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


# dtype -> the word of its formats, its NumPy dtype, and its number in the native module.
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
        There are no images of it.
    """
    if not isinstance(kind, type) or kind not in _KINDS:
        name = kind.__name__ if isinstance(kind, type) else repr(kind)
        raise ArgumentValueError(f"dtype: images are of vd.float32, vd.int32 or vd.uint32, got {name}")
    if channels not in (1, 2, 3, 4):
        raise ArgumentValueError(f"channels: expected 1 to 4, got {channels}")
    return image_format[f"{'R32G32B32A32'[: 3 * channels]}_{_KINDS[kind][0]}"]


def host_dtype(kind: DType) -> type[np.generic]:
    """Return the NumPy dtype of a channel."""
    return _KINDS[kind][1]


def numeric_kind(kind: DType) -> int:
    """Return 0 for floating, 1 for signed and 2 for unsigned channels, as the native module counts."""
    return _KINDS[kind][2]
