"""Images in device memory, and the samplers through which kernels read between their texels."""

import math
from typing import Any, NoReturn, Self

from vkdispatch.base import dtype as dt
from vkdispatch.base import errors
from vkdispatch.base.context import Context, Handle
from vkdispatch.base.dtype import DType
from vkdispatch.base.memory import images
from vkdispatch.base.memory.images import AddressMode as AddressMode
from vkdispatch.base.memory.images import BorderColor as BorderColor
from vkdispatch.base.memory.images import Filter as Filter
from vkdispatch.base.memory.images import ImageTransfers, level_count
from vkdispatch.base.memory.images import image_format as image_format
from vkdispatch.base.memory.images import image_type as image_type
from vkdispatch.base.memory.images import image_view_type as image_view_type
from vkdispatch.base.native_module import native
from vkdispatch.base.process import as_int

_SAMPLED, _STORAGE, _FILTER_LINEAR = 0x1, 0x2, 0x1000  # VkFormatFeatureFlagBits
_RANKS = {
    image_view_type.VIEW_TYPE_1D: 1,
    image_view_type.VIEW_TYPE_2D: 2,
    image_view_type.VIEW_TYPE_3D: 3,
    image_view_type.VIEW_TYPE_2D_ARRAY: 2,
}
_TYPES = {1: image_type.TYPE_1D, 2: image_type.TYPE_2D, 3: image_type.TYPE_3D}


class Image(ImageTransfers):
    """An image of one to three axes in device memory, one copy for each queue of the context.

    The last axis of an array is x: `data[i, j]` is the texel x = j, y = i. Contents are undefined until
    written. Images of three channels take the memory of four, because devices store them so.

    Attributes
    ----------
    shape
        Texels along each axis. If there are several layers, their number comes first.
    dtype, channels
        Type and number of the values of a texel.
    layers
        Number of layers; 1 except in arrays.
    extent
        Width, height and depth.
    array_shape
        Shape of the array that `read` returns: `shape`, plus an axis for the channels if there are several.
    block_size, mem_size
        Bytes of a texel and of the whole image.
    mip_levels
        Number of mip levels; 1 without mipmaps.
    type, view_type, format
        Vulkan's type, view type and format of the image.
    is_external
        Whether the image belongs to another library.
    """

    _instead = "write image.read() to an image of the same shape"
    _view_type: image_view_type  # of subclasses
    is_external = False

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

        The image belongs to the current context unless `context` is given.

        Raises
        ------
        ValueError
            The shape does not match `view_type`, a size is not a positive int or exceeds the limits of the
            device, `channels` is not 1 to 4, or `dtype` is not float32, int32 or uint32.
        MemoryError
            The device does not have enough memory.
        """
        if not isinstance(view_type, image_view_type):
            raise errors.ArgumentValueError(f"view_type: expected a vd.image_view_type, got {view_type!r}")
        self._set_texels(shape, layers, dtype, channels, view_type)
        self.mip_levels = level_count(self._sizes) if enable_mipmaps else 1
        super().__init__(context)
        self._native = self._allocate()

    def _set_texels(
        self, shape: object, layers: object, dtype: DType, channels: object, view_type: image_view_type
    ) -> None:
        sizes = _parse_sizes(shape, _RANKS[view_type])
        self.layers = _parse_count("layers", layers)
        if self.layers > 1 and view_type is not image_view_type.VIEW_TYPE_2D_ARRAY:
            raise errors.ArgumentValueError(f"layers: only VIEW_TYPE_2D_ARRAY has several, got {self.layers}")
        self.channels = _parse_count("channels", channels)
        self.format = images.select_format(dtype, self.channels)
        self.dtype = dtype
        self.view_type = view_type
        self.type = _TYPES[len(sizes)]
        self.shape = (self.layers, *sizes) if self.layers > 1 else sizes
        width, height, depth = (*reversed(sizes), 1, 1)[:3]
        self.extent = (width, height, depth)
        self.array_shape = self.shape if self.channels == 1 else (*self.shape, self.channels)
        self.block_size = self.channels * dtype.item_size
        self.mem_size = math.prod(self.shape) * self.block_size
        self._sizes = sizes

    @classmethod
    def from_handle(  # noqa: PLR0913  public: each is an option of its own
        cls,
        handle: object,
        shape: int | tuple[int, ...],
        format: "image_format | int",
        *,
        layers: int = 1,
        mip_levels: int = 1,
        layout: int = images.GENERAL_LAYOUT,
        usage: int = images.ALL_USAGES,
        owner: object = None,
        context: Context | None = None,
    ) -> Self:
        """Return an image on a `VkImage` of another library, which keeps the ownership.

        Both work on the same memory, on one `VkDevice`: that of `vd.make_context_from_handles`, or one whose
        handles the other library got from `context.handles`. The image is brought to
        `VK_IMAGE_LAYOUT_GENERAL` before the first use, and stays in it: that is its layout when the other
        library uses it again. You order the work: wait for the other library's work before this call and
        before calls that use the image, and call `vd.queue_wait_idle()` before the other library uses it. The
        queues of both must be of one family, or the image shared by their families.

        Call it on `Image1D`, `Image2D`, `Image2DArray` or `Image3D`.

        Parameters
        ----------
        handle
            The `VkImage`, as an int or a pointer. It must have one sample and be bound to memory. This and
            the following parameters cannot be checked.
        shape
            Texels along each axis, x last, as for a new image.
        format
            Its format, of 1, 2 or 4 channels of 32 bits: a `vd.image_format`, or the number of a `VkFormat`.
        layers, mip_levels
            The numbers of layers and mip levels. Only `Image2DArray` has several layers.
        layout
            The number of its `VkImageLayout`. VK_IMAGE_LAYOUT_UNDEFINED (0) discards its contents.
        usage
            The `VkImageUsageFlags` it was created with. They must include TRANSFER_SRC and TRANSFER_DST,
            SAMPLED for sampling, and STORAGE for kernels that load and store texels.
        owner
            An object to keep until the device has finished with the image, such as the one that destroys the
            `VkImage`.
        context
            The context on the device. None means the current context.

        Raises
        ------
        TypeError, ValueError
            An argument has the wrong type or value, or the device does not support such images.
        """
        from vkdispatch.base.contexts.selection import as_handle

        number = as_handle("handle", handle)
        if cls is Image:
            raise errors.ArgumentTypeError(
                "from_handle: call it on Image1D, Image2D, Image2DArray or Image3D"
            )
        _, dtype, channels = images.parse_format(format)
        image = cls.__new__(cls)
        image._set_texels(shape, layers, dtype, channels, cls._view_type)
        image.mip_levels = _parse_count("mip_levels", mip_levels)
        levels = level_count(image._sizes)
        if image.mip_levels > levels:
            raise errors.ArgumentValueError(
                f"mip_levels: the image has at most {levels}, got {image.mip_levels}"
            )
        first_layout, usages = images.parse_layout(layout), images.parse_usage(usage)
        Handle.__init__(image, context)
        image.is_external = True
        features = image._find_features(image.format)
        for bit, feature, what in (
            (images.SAMPLED_USAGE, _SAMPLED, "sample"),
            (images.STORAGE_USAGE, _STORAGE, "store to"),
        ):
            if usages & bit and not features & feature:
                raise errors.UnsupportedError(f"the device cannot {what} images of {image._summary()}")
        try:
            view, stored = image.view_type.value[0], image.format.value
            sizes = image.extent, image.layers, image.mip_levels
            image._native = native.Image.over_handle(
                image.context._native, number, view, stored, *sizes, first_layout, usages, owner
            )
        except (ValueError, OverflowError) as error:
            raise errors.ArgumentValueError(f"{image._summary()}: {error}") from None
        return image

    def _find_features(self, stored: image_format) -> int:
        """Return what the device can do with images of a format."""
        features = self.context._native.image_features(stored.value)
        self._filterable = bool(features & _FILTER_LINEAR)
        return features

    def _allocate(self) -> native.Image:
        engine = self.context._native
        stored = images.select_format(self.dtype, images.device_channels(self.channels))
        features = self._find_features(stored)
        if not features & (_SAMPLED | _STORAGE):
            raise errors.UnsupportedError(f"the device has no images of {self._summary()}")
        storable = self.channels != 3 and bool(features & _STORAGE)
        try:
            sizes = self.extent, self.layers, self.mip_levels
            return native.Image(engine, self.view_type.value[0], stored.value, *sizes, storable)
        except (ValueError, OverflowError) as error:
            raise errors.ArgumentValueError(f"{self._summary()}: {error}") from None

    def __class_getitem__(cls, key: object) -> NoReturn:
        """Raise RuntimeError for `vd.Image2D[...]`, which is meant to be an annotation."""
        raise errors.UsageError(
            f"vd.{cls.__name__} is the class of images; the annotation of a kernel's argument is "
            f"vc.{cls.__name__}[...], from vkdispatch.codegen"
        )

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
        """Return a sampler of this image, an argument for `Img1` to `Img3`; see `Sampler`."""
        filters, lods = (mag_filter, min_filter, mip_filter), (mip_lod_bias, min_lod, max_lod)
        return Sampler(self, *filters, address_mode, *lods, border_color)

    @property
    def is_storable(self) -> bool:
        """Whether kernels can load and store single texels of this image."""
        self.require_alive()
        return self._native.storable

    def _release(self) -> None:
        # It is missing if the allocation failed.
        memory = getattr(self, "_native", None)
        if memory is not None:
            memory.destroy()

    def __repr__(self) -> str:
        return self._describe(f"{self._summary()}, {self.mip_levels} mip level{'s' * (self.mip_levels != 1)}")


class Image1D(Image):
    """A row of texels.

    Examples
    --------
    >>> image = vd.Image1D((8,), f32)
    >>> image.write(np.arange(8, dtype=np.float32))
    >>> image.read(0)
    array([0., 1., 2., 3., 4., 5., 6., 7.], dtype=float32)
    """

    _view_type = image_view_type.VIEW_TYPE_1D

    def __init__(
        self,
        shape: int | tuple[int],
        dtype: DType,
        channels: int = 1,
        enable_mipmaps: bool = False,
        *,
        context: Context | None = None,
    ) -> None:
        """Allocate `shape` texels. Raises the errors of `Image`."""
        super().__init__(shape, 1, dtype, channels, self._view_type, enable_mipmaps, context=context)


class Image2D(Image):
    """An image of (height, width) texels.

    Examples
    --------
    >>> image = vd.Image2D((4, 8), f32)
    >>> image.write(np.ones((4, 8), np.float32))
    >>> image.read(0).shape
    (4, 8)
    """

    _view_type = image_view_type.VIEW_TYPE_2D

    def __init__(
        self,
        shape: tuple[int, int],
        dtype: DType = dt.float32,
        channels: int = 1,
        enable_mipmaps: bool = False,
        *,
        context: Context | None = None,
    ) -> None:
        """Allocate an image. Raises the errors of `Image`."""
        super().__init__(shape, 1, dtype, channels, self._view_type, enable_mipmaps, context=context)


class Image2DArray(Image):
    """Several images of one shape (height, width), its layers.

    Examples
    --------
    >>> image = vd.Image2DArray((3, 4), 2, f32)
    >>> image.write(np.ones((2, 3, 4), np.float32))
    >>> image.read(0).shape
    (2, 3, 4)
    """

    _view_type = image_view_type.VIEW_TYPE_2D_ARRAY

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
        """Allocate the layers. Raises the errors of `Image`."""
        super().__init__(shape, layers, dtype, channels, self._view_type, enable_mipmaps, context=context)


class Image3D(Image):
    """A volume of (depth, height, width) texels.

    Examples
    --------
    >>> image = vd.Image3D((2, 3, 4), f32)
    >>> image.write(np.ones((2, 3, 4), np.float32))
    >>> image.read(0).shape
    (2, 3, 4)
    """

    _view_type = image_view_type.VIEW_TYPE_3D

    def __init__(
        self,
        shape: tuple[int, int, int],
        dtype: DType = dt.float32,
        channels: int = 1,
        enable_mipmaps: bool = False,
        *,
        context: Context | None = None,
    ) -> None:
        """Allocate an image. Raises the errors of `Image`."""
        super().__init__(shape, 1, dtype, channels, self._view_type, enable_mipmaps, context=context)


class Sampler(Handle):
    """An image with the filters and other settings for sampling it.

    Attributes
    ----------
    image
        The image.
    settings
        The filters and other settings.
    """

    _instead = "make another one with image.sample(...)"

    def __init__(  # noqa: PLR0913  public: each is an option of its own
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
            The image to sample.
        mag_filter, min_filter
            The filters between texels for a level of detail up to 0, and above 0. None means LINEAR, or
            NEAREST for integers, which cannot be interpolated.
        mip_filter
            The filter between two mip levels. None as above.
        address_mode
            How values outside the image are defined, along every axis.
        mip_lod_bias
            A value to add to the level of detail.
        min_lod, max_lod
            Bounds of the level of detail. With the default `max_lod` of 0, mip levels are not used.
        border_color
            The color outside the image with `AddressMode.CLAMP_TO_BORDER`.

        Raises
        ------
        TypeError
            `image` is not an image, or an argument is not a member of its enumeration or not a number.
        ValueError
            A filter is LINEAR for an image of integers, or a number is not allowed.
        UnsupportedError
            The device cannot sample such images, or not with these settings.
        """
        errors.check_type("image", image, Image, "a vd.Image")
        image.require_alive()
        filters, lods = (mag_filter, min_filter, mip_filter), (mip_lod_bias, min_lod, max_lod)
        settings = images.parse_settings(image.dtype, filters, address_mode, lods, border_color)
        _check_filterable(image, settings)
        if not image._native.sampleable:
            raise errors.UnsupportedError(f"the device cannot sample images of {image._summary()}")
        if address_mode is AddressMode.MIRROR_CLAMP_TO_EDGE and not all(
            device.sampler_mirror_clamp_to_edge for device in image.context.device_infos
        ):
            raise errors.UnsupportedError("address_mode: the device has no MIRROR_CLAMP_TO_EDGE")
        # Each color has two numbers. The odd one is for integers.
        color = border_color.value // 2 * 2 + (image.dtype is not dt.float32)
        super().__init__(image.context)
        self.image = image
        self.settings = settings
        try:
            mag, minified, mip = (
                settings.mag_filter.value,
                settings.min_filter.value,
                settings.mip_filter.value,
            )
            lods = settings.mip_lod_bias, settings.min_lod, settings.max_lod
            self._native: Any = native.Sampler(
                image._native, mag, minified, mip, address_mode.value, *lods, color
            )
        except ValueError as error:
            raise errors.ArgumentValueError(str(error)) from None
        self.register_parent(image)

    def _release(self) -> None:
        self._native = None

    def __repr__(self) -> str:
        image, settings = self.image, self.settings
        names = f"{settings.min_filter.name.lower()}, {settings.address_mode.name.lower()}"
        return self._describe(f"{type(image).__name__} {image._handle}, {image._summary()}, {names}")


def _parse_sizes(shape: object, rank: int) -> tuple[int, ...]:
    axes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if len(axes) != rank:
        raise errors.ArgumentValueError(f"shape: expected {rank} ints, got {shape!r}")
    return tuple(_parse_count("shape", axis) for axis in axes)


def _parse_count(name: str, value: object) -> int:
    number = as_int(value)
    if number is None or number < 1:
        raise errors.ArgumentValueError(f"{name}: expected positive ints, got {value!r}")
    return number


def _check_filterable(image: Image, settings: images.SamplerSettings) -> None:
    if image._filterable:
        return
    for name in ("mag_filter", "min_filter", "mip_filter"):
        if getattr(settings, name) is Filter.LINEAR:
            raise errors.UnsupportedError(
                f"{name}: the device does not filter images of {image._summary()}; use Filter.NEAREST"
            )
