"""Formats of texels, enumerations of images and samplers, and copies between the host and an image."""

import math
import operator
from enum import Enum
from typing import Any

from vkdispatch.base import dtype
from vkdispatch.base.context import Handle, parse_queue
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, check_type
from vkdispatch.base.host_numpy import np
from vkdispatch.base.memory import data as conversions
from vkdispatch.base.native_module import native
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


# ---- The mip levels of an image, computed on the host ----------------------------------------------------
#
# A Vulkan blit needs a graphics queue, and the compute queues of discrete GPUs are not graphics queues. The
# arithmetic here is that of a linear blit (nearest for integers), the same on every device.


Array = np.ndarray[Any, Any]


def level_count(sizes: tuple[int, ...]) -> int:
    """Return the number of levels of a full chain, the image itself included."""
    return max(sizes).bit_length()


def level_shape(sizes: tuple[int, ...], level: int) -> tuple[int, ...]:
    """Return the sizes of a mip level: each half of the one before, rounded down, and at least 1."""
    return tuple(max(size >> level, 1) for size in sizes)


def mip_chain(image: Array, axes: tuple[int, ...]) -> list[Array]:
    """Return levels 1, 2... of an image, down to one texel along each of `axes`."""
    levels: list[Array] = []
    while any(image.shape[axis] > 1 for axis in axes):
        for axis in axes:
            image = _halve(image, axis)
        levels.append(np.ascontiguousarray(image))
    return levels


def _halve(image: Array, axis: int) -> Array:
    size = image.shape[axis]
    if size == 1:
        return image
    half = size // 2
    # The centers of the texels of the smaller image, in texels of the larger one.
    centers = (np.arange(half) + 0.5) * (size / half)
    if image.dtype.kind != "f":
        nearest: Array = image.take(np.floor(centers).astype(np.intp), axis)
        return nearest
    left = np.floor(centers - 0.5)
    shape = [1] * image.ndim
    shape[axis] = half
    weight = (centers - 0.5 - left).astype(image.dtype).reshape(shape)
    first = np.clip(left, 0, size - 1).astype(np.intp)
    second = np.clip(left + 1, 0, size - 1).astype(np.intp)
    result: Array = image.take(first, axis) * (1 - weight) + image.take(second, axis) * weight
    return result


# ---- Copies between the host and an image, and the mip levels that follow from level 0 -------------------


ALL_QUEUES = -1


class ImageTransfers(Handle):
    """The methods of an image that copy between host and device."""

    shape: tuple[int, ...]
    dtype: DType
    channels: int
    layers: int
    array_shape: tuple[int, ...]
    mem_size: int
    mip_levels: int
    _sizes: tuple[int, ...]
    _native: native.Image

    def _summary(self) -> str:
        return f"shape {self.shape}, {self.channels} x {self.dtype.name}"

    def write(
        self,
        data: "Array | bytes | bytearray | memoryview",
        device_index: int = ALL_QUEUES,
        *,
        casting: conversions.Casting = "equiv",
    ) -> None:
        """Copy host data in, after the work already given to the queue, and recompute the mip levels.

        Parameters
        ----------
        data
            An array of `array_shape` and the image's dtype, or one axis with all values in C order. Byte
            order and memory layout are free, and a single channel may have an axis of length 1. The two
            channels of an image of float32 may be the parts of complex64 numbers. Or exactly `mem_size`
            bytes in the same order. `data` may be reused on return.
        device_index
            The queue whose copy is written; -1 writes every copy.
        casting
            Which conversions are allowed, as in `numpy.can_cast`: "no", "equiv" (byte order), "safe" or
            "same_kind".

        Raises
        ------
        TypeError
            `data` is neither an array nor bytes, holds Python objects, or has a mask.
        ValueError
            `data` has another shape, dtype or size, or there is no such queue or casting rule.
        """
        self.require_alive()
        everywhere = device_index == ALL_QUEUES
        queue = ALL_QUEUES if everywhere else parse_queue(device_index, self.context, "device_index")
        texels = self._parse_texels(data, casting)
        self._native.write(queue, _as_bytes(texels))
        self._write_mip_levels(queue, texels)

    def _write_mip_levels(self, queue: int, texels: Array) -> None:
        """Write the mip levels above 0, computed from level 0 in the layout of the device."""
        if self.mip_levels > 1:
            spatial = tuple(range(1, 1 + len(self._sizes)))
            for level, values in enumerate(mip_chain(texels, spatial), 1):
                self._native.write(queue, _as_bytes(values), level)

    def generate_mipmaps(self) -> None:
        """Recompute the mip levels on the host from level 0, for example after a kernel has stored to it."""
        self.require_alive()
        if self.mip_levels > 1:
            for queue in range(self.context.queue_count):
                self._write_mip_levels(queue, self._read_level(queue, 0))

    def _parse_texels(self, data: object, casting: str) -> Array:
        """Return the data in the layout of the device: (layers, axes..., channels)."""
        conversions.check_casting(casting)
        host = np.dtype(host_dtype(self.dtype))
        if isinstance(data, np.ndarray):
            array = conversions.plain_array(data, "data")
            if array.dtype.kind == "c" and self.channels == 2 and array.shape == self.array_shape[:-1]:
                array = np.ascontiguousarray(array).view(array.real.dtype).reshape(self.array_shape)
            wanted = conversions.choice(host, array.shape, self.array_shape, (*self.shape, self.channels))
            values = np.ascontiguousarray(conversions.fit(array, [wanted], casting)[1])
        else:
            octets = conversions.raw_octets(data)
            length = memoryview(octets).nbytes
            if length != self.mem_size:
                raise ArgumentValueError(
                    f"data: expected {self.mem_size} bytes ({self._summary()}), got {length}"
                )
            values = np.frombuffer(octets, np.uint8).view(host)
        texels = values.reshape(self.layers, *self._sizes, self.channels)
        missing = device_channels(self.channels) - self.channels
        if missing:
            # Sampling returns this alpha for images without an alpha channel.
            alpha = np.ones((*texels.shape[:-1], missing), texels.dtype)
            texels = np.concatenate((texels, alpha), axis=-1)
        return texels

    def read(self, device_index: int = 0, level: int = 0) -> Array:
        """Wait for the work that writes this image, and return its contents.

        Parameters
        ----------
        device_index
            The queue whose copy is read.
        level
            The mip level.

        Returns
        -------
        An array of `array_shape`; the axes of mip levels above 0 are smaller.

        Raises
        ------
        ValueError
            There is no such queue or level.
        """
        self.require_alive()
        queue = parse_queue(device_index, self.context, "device_index")
        level = operator.index(level)
        if not 0 <= level < self.mip_levels:
            raise ArgumentValueError(f"level: expected 0 to {self.mip_levels - 1}, got {level}")
        texels = np.ascontiguousarray(self._read_level(queue, level)[..., : self.channels])
        layers, *sizes, channels = texels.shape
        shape = (layers, *sizes) if layers > 1 else tuple(sizes)
        return texels.reshape(shape if channels == 1 else (*shape, channels))

    def _read_level(self, queue: int, level: int) -> Array:
        """Return a mip level in the layout of the device: (layers, axes..., channels)."""
        sizes = level_shape(self._sizes, level)
        stored = conversions.fresh_array(
            (self.layers, *sizes, device_channels(self.channels)), np.dtype(host_dtype(self.dtype))
        )
        self._native.read_into(queue, _as_bytes(stored), level)
        return stored

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ArgumentValueError("copy: an image is in device memory, so its array is always a copy")
        array = self.read()
        return array if dtype is None else array.astype(dtype, copy=False)


def _as_bytes(texels: Array) -> Any:
    return texels.reshape(-1).view(np.uint8)
