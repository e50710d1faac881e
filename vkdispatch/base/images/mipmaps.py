"""The mip levels of an image, computed on the host.

A Vulkan blit needs a graphics queue, and the compute queues of discrete GPUs are not graphics queues. The
arithmetic here is that of a linear blit (nearest for integers), the same on every device.
"""

from typing import Any

from vkdispatch.base.host_numpy import np

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
