"""Images for the interpreter: from the argument of a call to texels that are read and written."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from vkdispatch.base.dtype import DType, component_count, component_type
from vkdispatch.base.errors import ArgumentValueError, UsageError
from vkdispatch.base.image import Image, Sampler
from vkdispatch.base.memory.image_formats import BorderColor, Filter, HostSampler, SamplerSettings, host_dtype
from vkdispatch.base.memory.image_transfers import mip_chain
from vkdispatch.compiler.interpreter.images import Sampling, Texels
from vkdispatch.compiler.interpreter.memory import Array, Cells, value_shape
from vkdispatch.compiler.ir import ImageBinding
from vkdispatch.shader.arguments.parameters import describe
from vkdispatch.shader.arguments.slots import ImageSlot
from vkdispatch.shader.arguments.values import WrongBufferError, check_image

_MOST_CHANNELS = 4
_BORDERS = {
    BorderColor.FLOAT_TRANSPARENT_BLACK: (0, 0, 0, 0),
    BorderColor.INT_TRANSPARENT_BLACK: (0, 0, 0, 0),
    BorderColor.FLOAT_OPAQUE_BLACK: (0, 0, 0, 1),
    BorderColor.INT_OPAQUE_BLACK: (0, 0, 0, 1),
    BorderColor.FLOAT_OPAQUE_WHITE: (1, 1, 1, 1),
    BorderColor.INT_OPAQUE_WHITE: (1, 1, 1, 1),
}


@dataclass(frozen=True, eq=False)
class HostImage:
    """An image without a device; launch sizes such as "(out.shape[1], out.shape[0])" see this.

    Attributes
    ----------
    shape
        Texels along each axis, the number of layers in front when there are several.
    dtype, channels, layers
        As of a `vd.Image`.
    extent
        Width, height and depth.
    texels
        The texels that the interpreter accesses.
    given
        The argument of the caller.
    whole
        Level 0, in the shape of the argument.
    """

    shape: tuple[int, ...]
    dtype: DType
    channels: int
    layers: int
    extent: tuple[int, int, int]
    texels: Texels
    given: Any
    whole: Array

    @property
    def image(self) -> "HostImage":
        """The image itself, as of a sampler."""
        return self

    def write_back(self) -> None:
        """Write the texels of a storage image back to the argument, if `whole` is a copy."""
        if isinstance(self.given, Image):
            self.given.write(self.whole)
        elif self.whole is not self.given:
            self.given[...] = self.whole


def make_host_image(who: str, slot: ImageSlot, value: Any) -> HostImage:
    """Return a caller's NumPy array, `vd.HostSampler`, `vd.Image` or `vd.Sampler` as an image.

    Raises
    ------
    TypeError, ValueError
        It is none of these, or does not fit the declaration in the kernel.
    RuntimeError
        The image was destroyed.
    """
    label, binding = f"{who}: {slot.label}", slot.image
    if isinstance(value, (Image, Sampler)):
        image = check_image(who, slot, value)
        for each in (value, image):
            if each.destroyed:
                raise UsageError(f"{label}: the image was destroyed")
        settings = value.settings if isinstance(value, Sampler) else None
        levels = [image.read(level=level) for level in range(1 if settings is None else image.mip_levels)]
        levels[0] = levels[0] if levels[0].flags.writeable else levels[0].copy()
        shape = (image.layers, *image.shape[-binding.dimensions :], image.channels)
        parts = [_split_axes(level, image.layers, binding.dimensions, image.channels) for level in levels]
        return _make_host_image(slot, shape, parts, settings, image, levels[0])
    if isinstance(value, HostSampler) and not binding.storage:
        return _sample_host_image(label, slot, value)
    if not isinstance(value, np.ndarray):
        or_else = "vd.Image" if binding.storage else "vd.HostSampler or vd.Sampler"
        raise WrongBufferError(f"{label}: expected a NumPy array or a {or_else}, got {describe(value)}")
    if not binding.storage:
        _check_dtype(label, binding, value)
        return _sample_host_image(label, slot, HostSampler(value))
    shape = _find_shape(label, binding, value)
    if slot.writes and not value.flags.writeable:
        raise ArgumentValueError(f"{label}: the kernel writes to it, and the array is read-only")
    whole = value if value.flags.c_contiguous else value.copy()
    return _make_host_image(slot, shape, [whole.reshape(shape)], None, value, whole)


def _sample_host_image(label: str, slot: ImageSlot, sampler: HostSampler) -> HostImage:
    _check_dtype(label, slot.image, sampler.data)
    shape = _find_shape(label, slot.image, sampler.data)
    first = np.ascontiguousarray(sampler.data).reshape(shape)
    levels = [first]
    if sampler.enable_mipmaps:
        levels += mip_chain(first, tuple(range(1, len(shape) - 1)))
    return _make_host_image(slot, shape, levels, sampler.settings, sampler, first)


def _split_axes(level: Array, layers: int, dimensions: int, channels: int) -> Array:
    sizes = level.shape[1:] if layers > 1 else level.shape
    return level.reshape(layers, *sizes[:dimensions], channels)


def _check_dtype(label: str, binding: ImageBinding, array: Array) -> None:
    scalar = component_type(binding.dtype)
    if array.dtype != host_dtype(scalar):
        raise ArgumentValueError(
            f"{label}: the kernel declares texels of {scalar.name}, the array is of {array.dtype}"
        )


def _find_shape(label: str, binding: ImageBinding, array: Array) -> tuple[int, ...]:
    """Return (layers, axes..., channels) of an array."""
    _check_dtype(label, binding, array)
    axes = "(layers, height, width)" if binding.arrayed else f"{binding.dimensions} axes"
    shape, rank = array.shape, binding.coordinates
    if len(shape) not in (rank, rank + 1) or not all(shape):
        raise ArgumentValueError(
            f"{label}: expected an array of {axes}, and one for the channels if there are several; "
            f"got one of shape {shape}"
        )
    channels = shape[rank] if len(shape) > rank else 1
    wanted = component_count(binding.dtype) if binding.storage else channels
    if channels != wanted or channels > _MOST_CHANNELS:
        declared = f"{wanted} channels ({binding.dtype.name})" if binding.storage else "one to four channels"
        raise ArgumentValueError(f"{label}: expected {declared}, the array of shape {shape} has {channels}")
    return (*(() if binding.arrayed else (1,)), *shape[:rank], channels)


def _make_host_image(
    slot: ImageSlot,
    shape: tuple[int, ...],
    levels: list[Array],
    settings: SamplerSettings | None,
    value: Any,
    whole: Array,
) -> HostImage:
    binding = slot.image
    what = f"image {binding.label!r}"
    cells = None
    if binding.storage:
        rows = levels[0].reshape(-1, *value_shape(binding.dtype))
        cells = Cells(what, rows, None, len(rows))
    sampling = None if settings is None else _make_sampling(settings)
    texels = Texels(what, tuple(levels), binding.arrayed, sampling, cells)
    layers, *sizes, channels = shape
    width, height, depth = (*reversed(sizes), 1, 1)[:3]
    return HostImage(
        (layers, *sizes) if layers > 1 else tuple(sizes),
        component_type(binding.dtype),
        channels,
        layers,
        (width, height, depth),
        texels,
        value,
        whole,
    )


def _make_sampling(settings: SamplerSettings) -> Sampling:
    linear = [
        each is Filter.LINEAR for each in (settings.mag_filter, settings.min_filter, settings.mip_filter)
    ]
    return Sampling(
        linear[0],
        linear[1],
        linear[2],
        settings.address_mode.name,
        settings.mip_lod_bias,
        settings.min_lod,
        settings.max_lod,
        _BORDERS[settings.border_color],
    )
