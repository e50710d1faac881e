"""Copies between the host and an image, and its mip levels."""

import operator
from typing import Any

from vkdispatch.base.context import Handle, parse_queue
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.host_numpy import np
from vkdispatch.base.memory import data as conversions
from vkdispatch.base.memory.image_formats import device_channels, host_dtype
from vkdispatch.base.native_module import native

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
