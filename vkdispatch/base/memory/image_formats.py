"""The enumerations of images and samplers, formats of texels, and settings of samplers."""

import math
from enum import Enum
from typing import Any

from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, check_type
from vkdispatch.base.host_numpy import np
from vkdispatch.base.process import as_int
from vkdispatch.base.record import record

# ---- The enumerations of images and samplers, with Vulkan's numbers, and the formats of texels -----------


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
            choice = select_format(kind, channels)
            if choice.value == number:
                return choice, kind, channels
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


# ---- The settings of samplers, checked; needs no device --------------------------------------------------


@record
class SamplerSettings:
    """The settings of a sampler after checks, with a filter in place of each None."""

    mag_filter: Filter
    min_filter: Filter
    mip_filter: Filter
    address_mode: AddressMode
    mip_lod_bias: float
    min_lod: float
    max_lod: float
    border_color: BorderColor


def parse_settings(
    kind: DType,
    filters: tuple[Filter | None, ...],
    address_mode: AddressMode,
    lods: tuple[float, ...],
    border_color: BorderColor,
) -> SamplerSettings:
    """Check the settings of a sampler for an image with channels of type `kind`.

    Parameters
    ----------
    filters
        `mag_filter`, `min_filter` and `mip_filter`; None as for `vd.Sampler`.
    lods
        `mip_lod_bias`, `min_lod` and `max_lod`.

    Raises
    ------
    TypeError
        An option is not a member of its enumeration or not a number.
    ValueError
        A filter is LINEAR for an image of integers, or a number is not allowed.
    """
    names = ("mag_filter", "min_filter", "mip_filter")
    mag, minified, mip = (_parse_filter(*option, kind) for option in zip(names, filters, strict=True))
    _check_member("address_mode", address_mode, AddressMode)
    _check_member("border_color", border_color, BorderColor)
    names = ("mip_lod_bias", "min_lod", "max_lod")
    bias, lowest, highest = (_parse_number(*option) for option in zip(names, lods, strict=True))
    if lowest > highest:
        raise ArgumentValueError(f"min_lod, max_lod: {lowest} is more than {highest}")
    return SamplerSettings(mag, minified, mip, address_mode, bias, lowest, highest, border_color)


def _check_member(name: str, value: object, kind: "type[Filter | AddressMode | BorderColor]") -> None:
    if not isinstance(value, kind):
        raise ArgumentTypeError(f"{name}: expected a vd.{kind.__name__}, got {value!r}")


def _parse_filter(name: str, value: Filter | None, kind: DType) -> Filter:
    integers = kind is not dtype.float32
    if value is None:
        return Filter.NEAREST if integers else Filter.LINEAR
    _check_member(name, value, Filter)
    if value is Filter.LINEAR and integers:
        raise ArgumentValueError(
            f"{name}: integers cannot be interpolated; an image of {kind.name} needs Filter.NEAREST"
        )
    return value


def _parse_number(name: str, value: object) -> float:
    if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool):
        number = float(value)
        if math.isfinite(number):
            return number
        raise ArgumentValueError(f"{name}: expected a finite number, got {value!r}")
    raise ArgumentTypeError(f"{name}: expected a number, got {value!r}")


class HostSampler:
    """A NumPy array to sample with `kernel.interpret`, which needs no device. Launches do not accept it.

    Attributes
    ----------
    data
        The texels.
    enable_mipmaps
        Whether there are mip levels.
    settings
        The filters and other settings.
    """

    def __init__(  # noqa: PLR0913  public: each is an option of its own
        self,
        data: np.ndarray[Any, Any],
        mag_filter: Filter | None = None,
        min_filter: Filter | None = None,
        mip_filter: Filter | None = None,
        address_mode: AddressMode = AddressMode.CLAMP_TO_EDGE,
        mip_lod_bias: float = 0.0,
        min_lod: float = 0.0,
        max_lod: float = 0.0,
        border_color: BorderColor = BorderColor.FLOAT_OPAQUE_WHITE,
        enable_mipmaps: bool = False,
    ) -> None:
        """Describe how to sample an array.

        Parameters
        ----------
        data
            An array of float32, int32 or uint32. Its axes are the layers, if there are several; the axes of
            the image; and the one to four channels, which can be omitted for one.
        mag_filter, min_filter, mip_filter, address_mode, mip_lod_bias, min_lod, max_lod, border_color
            As for `vd.Image.sample`.
        enable_mipmaps
            Whether there are mip levels, as for `vd.Image2D`.

        Raises
        ------
        TypeError
            `data` is not an array, or an argument is not a member of its enumeration or not a number.
        ValueError
            The dtype is not one of the three, a filter is LINEAR for integers, or a number is not allowed.
        """
        check_type("data", data, np.ndarray, "a NumPy array")
        kinds = [kind for kind in _KINDS if data.dtype == host_dtype(kind)]
        if not kinds:
            raise ArgumentValueError(f"data: images are of float32, int32 or uint32, got {data.dtype}")
        self.data = data
        self.enable_mipmaps = enable_mipmaps
        filters, lods = (mag_filter, min_filter, mip_filter), (mip_lod_bias, min_lod, max_lod)
        self.settings = parse_settings(kinds[0], filters, address_mode, lods, border_color)

    def __repr__(self) -> str:
        return f"<HostSampler of an array of {self.data.dtype} and shape {self.data.shape}>"


# ---- Images of other libraries: what they say of a `VkImage`, with Vulkan's numbers ----------------------


GENERAL_LAYOUT = 1
# VkImageLayout: undefined, general, color attachment, shader read-only, transfer source and target,
# preinitialized, presented, read-only, attachment. The others are of depths and stencils, and of video.
_LAYOUTS = (0, GENERAL_LAYOUT, 2, 5, 6, 7, 8, 1000001002, 1000314000, 1000314001)
# VkImageUsageFlagBits
SAMPLED_USAGE, STORAGE_USAGE = 0x4, 0x8
_TRANSFERS = 0x1 | 0x2
ALL_USAGES = _TRANSFERS | SAMPLED_USAGE | STORAGE_USAGE


def parse_layout(layout: object) -> int:
    """Return the number of a `VkImageLayout`. Raises ValueError if an image of colors cannot have it."""
    number = as_int(layout)
    if number not in _LAYOUTS:
        raise ArgumentValueError(f"layout: expected a VkImageLayout of images of colors, got {layout!r}")
    return number


def parse_usage(usage: object) -> int:
    """Return `VkImageUsageFlags`. Raises ValueError if kernels and transfers cannot use such an image."""
    number = as_int(usage)
    if number is None or number & _TRANSFERS != _TRANSFERS or not number & (SAMPLED_USAGE | STORAGE_USAGE):
        raise ArgumentValueError(
            "usage: expected VkImageUsageFlags with TRANSFER_SRC (1), TRANSFER_DST (2), and SAMPLED (4) or "
            f"STORAGE (8), got {usage!r}"
        )
    return number
