"""Images in device memory, and the samplers through which kernels read between their texels."""

import math
import operator
from typing import Any, NoReturn

from vkdispatch.base import dtype as dt
from vkdispatch.base.context import Context, parse_queue
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError, UsageError
from vkdispatch.base.handle import Handle
from vkdispatch.base.host.data import Casting, check_casting, choice, fit, plain_array, raw_octets
from vkdispatch.base.host.fresh import fresh_array
from vkdispatch.base.host_numpy import np
from vkdispatch.base.images.format import (
    AddressMode,
    BorderColor,
    Filter,
    host_dtype,
    image_format,
    image_type,
    image_view_type,
    select_format,
)
from vkdispatch.base.images.mipmaps import level_count, level_shape, mip_chain
from vkdispatch.base.images.sampling import SamplerSettings, parse_settings
from vkdispatch.base.integers import as_int
from vkdispatch.base.native_module import native

Array = np.ndarray[Any, Any]

ALL_QUEUES = -1

_SAMPLED, _STORAGE, _FILTER_LINEAR = 0x1, 0x2, 0x1000  # VkFormatFeatureFlagBits
_RANKS = {
    image_view_type.VIEW_TYPE_1D: 1,
    image_view_type.VIEW_TYPE_2D: 2,
    image_view_type.VIEW_TYPE_3D: 3,
    image_view_type.VIEW_TYPE_2D_ARRAY: 2,
}
_TYPES = {1: image_type.TYPE_1D, 2: image_type.TYPE_2D, 3: image_type.TYPE_3D}


class Image(Handle):
    """An image of one to three axes in device memory, one copy for each queue of the context.

    The last axis of an array is x: `data[i, j]` is the texel x = j, y = i. Contents are undefined until
    written. Images of three channels take the memory of four, which is what devices have.

    Attributes
    ----------
    shape
        Texels along each axis, the number of layers in front when there are several.
    dtype, channels
        Type and number of the values of a texel.
    layers
        Number of layers; 1 except in arrays.
    extent
        Width, height and depth.
    array_shape
        Shape of the array that `read` returns: `shape`, with the channels as last axis unless there is one.
    block_size, mem_size
        Bytes of a texel and of the whole image.
    mip_levels
        Number of mip levels; 1 without mipmaps.
    type, view_type, format
        What Vulkan calls the image.
    """

    _instead = "write image.read() into an image of the same shape"

    def __init__(
        self,
        shape: int | tuple[int, ...],
        layers: int,
        dtype: DType,
        channels: int,
        view_type: image_view_type,
        enable_mipmaps: bool = False,
        *,
        context: Context | None = None,
    ) -> None:
        """Allocate an image; `Image1D` to `Image3D` are easier to use.

        In the current context, unless `context` is given.

        Raises
        ------
        ValueError
            The shape does not go with `view_type`, a size is no positive int or more than the device takes,
            `channels` is not 1 to 4, or `dtype` is none of float32, int32 and uint32.
        MemoryError
            The device has no room.
        """
        if not isinstance(view_type, image_view_type):
            raise ArgumentValueError(f"view_type: expected a vd.image_view_type, got {view_type!r}")
        sizes = _parse_sizes(shape, _RANKS[view_type])
        self.layers = _parse_count("layers", layers)
        if self.layers > 1 and view_type is not image_view_type.VIEW_TYPE_2D_ARRAY:
            raise ArgumentValueError(f"layers: only VIEW_TYPE_2D_ARRAY has several, got {self.layers}")
        self.channels = _parse_count("channels", channels)
        self.format = select_format(dtype, self.channels)
        self.dtype = dtype
        self.view_type = view_type
        self.type = _TYPES[len(sizes)]
        self.shape = (self.layers, *sizes) if self.layers > 1 else sizes
        width, height, depth = (*reversed(sizes), 1, 1)[:3]
        self.extent = (width, height, depth)
        self.array_shape = self.shape if self.channels == 1 else (*self.shape, self.channels)
        self.block_size = self.channels * dtype.item_size
        self.mem_size = math.prod(self.shape) * self.block_size
        self.mip_levels = level_count(sizes) if enable_mipmaps else 1
        self._sizes = sizes
        super().__init__(context)
        self._native = self._allocate()

    def _allocate(self) -> native.Image:
        engine = self.context._native
        stored = select_format(self.dtype, _device_channels(self.channels))
        features = engine.image_features(stored.value)
        if not features & (_SAMPLED | _STORAGE):
            raise UnsupportedError(f"the device has no images of {self._summary()}")
        storable = self.channels != 3 and bool(features & _STORAGE)
        self._filterable = bool(features & _FILTER_LINEAR)
        try:
            return native.Image(
                engine,
                self.view_type.value[0],
                stored.value,
                self.extent,
                self.layers,
                self.mip_levels,
                storable,
            )
        except (ValueError, OverflowError) as error:
            raise ArgumentValueError(f"{self._summary()}: {error}") from None

    def __class_getitem__(cls, key: object) -> NoReturn:
        """Refuse `vd.Image2D[...]`, which is meant for annotations. Raises RuntimeError."""
        raise UsageError(
            f"vd.{cls.__name__} is the image itself; the annotation of a kernel's argument is "
            f"vc.{cls.__name__}[...], from vkdispatch.codegen"
        )

    def write(
        self,
        data: "Array | bytes | bytearray | memoryview",
        device_index: int = ALL_QUEUES,
        *,
        casting: Casting = "equiv",
    ) -> None:
        """Copy host data in, after the work already given to the queue, and make the mip levels anew.

        Parameters
        ----------
        data
            An array of `array_shape` and the image's dtype, or one axis with all values in C order. Byte
            order and memory layout are free, and a single channel may have an axis of length 1. Or exactly
            `mem_size` bytes in the same order. `data` may be reused on return.
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
        self._write_smaller(queue, texels)

    def _write_smaller(self, queue: int, texels: Array) -> None:
        """Write the mip levels above 0 of texels as the device has them."""
        if self.mip_levels > 1:
            spatial = tuple(range(1, 1 + len(self._sizes)))
            for level, values in enumerate(mip_chain(texels, spatial), 1):
                self._native.write(queue, _as_bytes(values), level)

    def generate_mipmaps(self) -> None:
        """Make the mip levels anew from level 0, which a kernel may have stored to. Goes through the host."""
        self.require_alive()
        if self.mip_levels > 1:
            for queue in range(self.context.queue_count):
                self._write_smaller(queue, self._stored_texels(queue, 0))

    def _parse_texels(self, data: object, casting: str) -> Array:
        """Return the data as the device has it: (layers, axes..., channels)."""
        check_casting(casting)
        host = np.dtype(host_dtype(self.dtype))
        if isinstance(data, np.ndarray):
            array = plain_array(data, "data")
            wanted = choice(host, array.shape, self.array_shape, (*self.shape, self.channels))
            values = np.ascontiguousarray(fit(array, [wanted], casting)[1])
        else:
            octets = raw_octets(data)
            length = memoryview(octets).nbytes
            if length != self.mem_size:
                raise ArgumentValueError(
                    f"data: expected {self.mem_size} bytes ({self._summary()}), got {length}"
                )
            values = np.frombuffer(octets, np.uint8).view(host)
        texels = values.reshape(self.layers, *self._sizes, self.channels)
        missing = _device_channels(self.channels) - self.channels
        if missing:
            # What sampling gives for the alpha of an image without one.
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
        An array of `array_shape`; of a mip level above 0 the axes are smaller.

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
        texels = np.ascontiguousarray(self._stored_texels(queue, level)[..., : self.channels])
        layers, *sizes, channels = texels.shape
        shape = (layers, *sizes) if layers > 1 else tuple(sizes)
        return texels.reshape(shape if channels == 1 else (*shape, channels))

    def _stored_texels(self, queue: int, level: int) -> Array:
        """Return a level as the device has it: (layers, axes..., channels)."""
        sizes = level_shape(self._sizes, level)
        stored = fresh_array(
            (self.layers, *sizes, _device_channels(self.channels)), np.dtype(host_dtype(self.dtype))
        )
        self._native.read_into(queue, _as_bytes(stored), level)
        return stored

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ArgumentValueError("copy: an image lies in device memory; its array is always a copy")
        array = self.read()
        return array if dtype is None else array.astype(dtype, copy=False)

    def sample(
        self,
        mag_filter: Filter | None = None,
        min_filter: Filter | None = None,
        mip_filter: Filter | None = None,
        address_mode: AddressMode = AddressMode.CLAMP_TO_EDGE,
        mip_lod_bias: float = 0.0,
        min_lod: float = 0.0,
        max_lod: float = 0.0,
        border_color: BorderColor = BorderColor.FLOAT_OPAQUE_WHITE,
    ) -> "Sampler":
        """Return a way to sample this image, the argument for `Img1` to `Img3`; see `Sampler`."""
        return Sampler(
            self,
            mag_filter,
            min_filter,
            mip_filter,
            address_mode,
            mip_lod_bias,
            min_lod,
            max_lod,
            border_color,
        )

    @property
    def is_storable(self) -> bool:
        """Whether kernels can load and store single texels of this image."""
        self.require_alive()
        return self._native.storable

    def _summary(self) -> str:
        return f"shape {self.shape}, {self.channels} x {self.dtype.name}"

    def _release(self) -> None:
        # Absent when the allocation failed.
        memory = getattr(self, "_native", None)
        if memory is not None:
            memory.destroy()

    def __repr__(self) -> str:
        return self._describe(f"{self._summary()}, {self.mip_levels} mip level{'s' * (self.mip_levels != 1)}")


class Image1D(Image):
    """A row of texels."""

    def __init__(
        self,
        shape: int | tuple[int],
        dtype: DType,
        channels: int = 1,
        enable_mipmaps: bool = False,
        *,
        context: Context | None = None,
    ) -> None:
        """Allocate `shape` texels; raises as `Image`."""
        super().__init__(
            shape, 1, dtype, channels, image_view_type.VIEW_TYPE_1D, enable_mipmaps, context=context
        )


class Image2D(Image):
    """An image of (height, width) texels."""

    def __init__(
        self,
        shape: tuple[int, int],
        dtype: DType = dt.float32,
        channels: int = 1,
        enable_mipmaps: bool = False,
        *,
        context: Context | None = None,
    ) -> None:
        """Allocate an image; raises as `Image`."""
        super().__init__(
            shape, 1, dtype, channels, image_view_type.VIEW_TYPE_2D, enable_mipmaps, context=context
        )


class Image2DArray(Image):
    """Several images of one shape (height, width), its layers."""

    def __init__(
        self,
        shape: tuple[int, int],
        layers: int,
        dtype: DType = dt.float32,
        channels: int = 1,
        enable_mipmaps: bool = False,
        *,
        context: Context | None = None,
    ) -> None:
        """Allocate the layers; raises as `Image`."""
        super().__init__(
            shape,
            layers,
            dtype,
            channels,
            image_view_type.VIEW_TYPE_2D_ARRAY,
            enable_mipmaps,
            context=context,
        )


class Image3D(Image):
    """A volume of (depth, height, width) texels."""

    def __init__(
        self,
        shape: tuple[int, int, int],
        dtype: DType = dt.float32,
        channels: int = 1,
        enable_mipmaps: bool = False,
        *,
        context: Context | None = None,
    ) -> None:
        """Allocate an image; raises as `Image`."""
        super().__init__(
            shape, 1, dtype, channels, image_view_type.VIEW_TYPE_3D, enable_mipmaps, context=context
        )


class Sampler(Handle):
    """An image together with how values between and outside its texels are found.

    Attributes
    ----------
    image
        The image.
    settings
        How it is sampled.
    """

    _instead = "make another one with image.sample(...)"

    def __init__(
        self,
        image: Image,
        mag_filter: Filter | None = None,
        min_filter: Filter | None = None,
        mip_filter: Filter | None = None,
        address_mode: AddressMode = AddressMode.CLAMP_TO_EDGE,
        mip_lod_bias: float = 0.0,
        min_lod: float = 0.0,
        max_lod: float = 0.0,
        border_color: BorderColor = BorderColor.FLOAT_OPAQUE_WHITE,
    ) -> None:
        """Make a sampler.

        Parameters
        ----------
        image
            What to sample.
        mag_filter, min_filter
            How a value between texels is found at a level of detail up to 0, and above it. None: LINEAR, but
            NEAREST for integers, between which there is nothing.
        mip_filter
            How a value between two mip levels is found; None as above.
        address_mode
            What lies outside, along every axis.
        mip_lod_bias
            Added to the level of detail.
        min_lod, max_lod
            Bounds of the level of detail. As `max_lod` is 0 unless given, mip levels are not used.
        border_color
            What lies outside with `AddressMode.CLAMP_TO_BORDER`.

        Raises
        ------
        TypeError
            `image` is no image, or an argument is no member of its enumeration or no number.
        ValueError
            LINEAR was asked for of an image of integers, or a number is not possible.
        UnsupportedError
            The device cannot sample such images, or not so.
        """
        if not isinstance(image, Image):
            raise ArgumentTypeError(f"image: expected a vd.Image, got {type(image).__name__}")
        image.require_alive()
        settings = parse_settings(
            image.dtype,
            mag_filter,
            min_filter,
            mip_filter,
            address_mode,
            mip_lod_bias,
            min_lod,
            max_lod,
            border_color,
        )
        _check_filterable(image, settings)
        if not image._native.sampleable:
            raise UnsupportedError(f"the device cannot sample images of {image._summary()}")
        if address_mode is AddressMode.MIRROR_CLAMP_TO_EDGE and not all(
            device.sampler_mirror_clamp_to_edge for device in image.context.device_infos
        ):
            raise UnsupportedError("address_mode: the device has no MIRROR_CLAMP_TO_EDGE")
        integers = image.dtype is not dt.float32
        super().__init__(image.context)
        self.image = image
        self.settings = settings
        try:
            self._native: Any = native.Sampler(
                image._native,
                settings.mag_filter.value,
                settings.min_filter.value,
                settings.mip_filter.value,
                address_mode.value,
                settings.mip_lod_bias,
                settings.min_lod,
                settings.max_lod,
                # Each colour has two numbers, the odd one for integers.
                border_color.value // 2 * 2 + integers,
            )
        except ValueError as error:
            raise ArgumentValueError(str(error)) from None
        self.register_parent(image)

    def _release(self) -> None:
        self._native = None

    def __repr__(self) -> str:
        settings = self.settings
        found = f"{settings.min_filter.name.lower()}, {settings.address_mode.name.lower()}"
        image = self.image
        return self._describe(f"{type(image).__name__} {image._handle}, {image._summary()}, {found}")


def _as_bytes(texels: Array) -> Any:
    return texels.reshape(-1).view(np.uint8)


def _device_channels(channels: int) -> int:
    """Return how many channels a device keeps: none is sure to have three."""
    return 4 if channels == 3 else channels


def _parse_sizes(shape: object, rank: int) -> tuple[int, ...]:
    axes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if len(axes) != rank:
        raise ArgumentValueError(f"shape: expected {rank} ints, got {shape!r}")
    return tuple(_parse_count("shape", axis) for axis in axes)


def _parse_count(name: str, value: object) -> int:
    number = as_int(value)
    if number is None or number < 1:
        raise ArgumentValueError(f"{name}: expected positive ints, got {value!r}")
    return number


def _check_filterable(image: Image, settings: SamplerSettings) -> None:
    if image._filterable:
        return
    for name in ("mag_filter", "min_filter", "mip_filter"):
        if getattr(settings, name) is Filter.LINEAR:
            raise UnsupportedError(
                f"{name}: the device does not filter images of {image._summary()}; use Filter.NEAREST"
            )


__all__ = [
    "AddressMode",
    "BorderColor",
    "Filter",
    "Image",
    "Image1D",
    "Image2D",
    "Image2DArray",
    "Image3D",
    "Sampler",
    "image_format",
    "image_type",
    "image_view_type",
]
