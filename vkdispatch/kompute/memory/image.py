"""Storage images."""

import math

import numpy as np

from vkdispatch.base.context import Context
from vkdispatch.base.errors import OutOfDeviceMemoryError
from vkdispatch.base.native_module import native
from vkdispatch.kompute import log
from vkdispatch.kompute.enums import MemoryTypes
from vkdispatch.kompute.errors import KomputeError
from vkdispatch.kompute.memory.memory import (
    HOST_KINDS,
    Array,
    Memory,
    make_memory_error,
)

_STORAGE_IMAGE = 0x2  # VkFormatFeatureFlagBits


_VIEW_2D = 1


# VkFormat of 1, 2 and 4 channels.
IMAGE_FORMATS = {
    "uint8": (13, 20, 41),
    "int8": (14, 21, 42),
    "uint16": (74, 81, 95),
    "int16": (75, 82, 96),
    "uint32": (98, 101, 107),
    "int32": (99, 102, 108),
    "float32": (100, 103, 109),
}


_CHANNELS = (1, 2, 4)


class Image(Memory):
    """A two-dimensional storage image: rows of texels of 1, 2 or 4 channels."""

    __slots__ = ("_channels", "_extent")

    _maker = "kp.Manager.image or image_t"
    _channels: int
    _extent: tuple[int, int]

    def width(self) -> int:
        """Return the number of texels in a row."""
        return self._extent[0]

    def height(self) -> int:
        """Return the number of rows."""
        return self._extent[1]

    def num_channels(self) -> int:
        """Return the number of values in a texel."""
        return self._channels

    @property
    def _is_host_mirrored(self) -> bool:
        """Whether every dispatch copies the texels from the host view, and back.

        The host cannot view the texels themselves.
        """
        return self._memory_type in HOST_KINDS


def make_image(
    context: Context, data: Array, width: int, height: int, channels: int, memory_type: MemoryTypes
) -> Image:
    """Make an image of the first elements of a flat array.

    Raises
    ------
    RuntimeError
        The device does not support images of this kind or size, or `data` has too few elements.
    """
    if channels not in _CHANNELS:
        raise KomputeError(f"num_channels: expected 1, 2 or 4, got {channels}")
    if width < 1 or height < 1:
        raise KomputeError(f"width, height: expected 1 or more, got {width} and {height}")
    size = math.prod((width, height, channels))
    if data.size < size:
        raise KomputeError(
            f"data: {width} x {height} texels of {channels} channels take {size} elements, got {data.size}"
        )
    engine = context._native
    name = data.dtype.name
    texel = IMAGE_FORMATS[name][_CHANNELS.index(channels)]
    if not engine.image_features(texel) & _STORAGE_IMAGE:
        raise KomputeError(
            f"num_channels: this device has no storage images of {channels} channels of {name}"
        )
    image = Image.__new__(Image)
    image._set_up(context, data.dtype, size, memory_type)
    image._extent, image._channels = (width, height), channels
    try:
        image._native = native.Image(
            engine, _VIEW_2D, texel, (width, height, 1), 1, 1, True, shared=context.queue_count > 1
        )
        if memory_type is not MemoryTypes.storage:
            image._host_block("upload")
    except OutOfDeviceMemoryError as error:
        raise make_memory_error(data.nbytes, error) from None
    except (ValueError, OverflowError) as error:
        raise KomputeError(f"width, height: {error}") from None
    if image._interface:
        np.asarray(image)[:] = data[:size]
    log.debug(
        "image made: %d x %d texels, number of channels %d, %s, %s",
        width,
        height,
        channels,
        name,
        memory_type,
    )
    return image
