"""Images as NumPy arrays: access to texels, and sampling.

Follows "Image Operations" of the Vulkan specification, in float64 where devices use float32, and weights of
about eight bits.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from vkdispatch.compiler.interpreter.memory import Array, Cells

# Beyond the size of any image, and within the range of int64.
_FAR = 2.0**40
_ALPHA = 3


@dataclass(frozen=True, slots=True)
class Sampling:
    """The settings of a sampler.

    Attributes
    ----------
    enlarged, reduced, between
        Whether to interpolate between texels at levels of detail up to 0 and above 0, and between mip levels.
    address
        The address mode, as in Vulkan, such as "CLAMP_TO_EDGE".
    bias, lowest, highest
        The bias of the level of detail, and its bounds.
    border
        The colour outside, with "CLAMP_TO_BORDER".
    """

    enlarged: bool
    reduced: bool
    between: bool
    address: str
    bias: float
    lowest: float
    highest: float
    border: tuple[int, int, int, int]


@dataclass(frozen=True, eq=False, slots=True)
class Texels:
    """An image bound to a kernel.

    Attributes
    ----------
    what
        The name in messages, such as "image 'photo'".
    levels
        The mip levels, each of the axes (layers, z, y, x, channels), as many of z, y and x as there are.
    arrayed
        Whether the image has layers.
    sampling
        The sampler; None for a storage image.
    cells
        The texels of a storage image, row by row; None for a sampled one.
    """

    what: str
    levels: tuple[Array, ...]
    arrayed: bool
    sampling: Sampling | None = None
    cells: Cells | None = None

    def sizes(self) -> Array:
        """Return the sizes of all levels, x first and layers last."""
        layers = (self.levels[0].shape[0],) if self.arrayed else ()
        return np.array([(*level.shape[-2:0:-1], *layers) for level in self.levels], np.int32)

    def load(self, coordinate: Array, level: Array) -> Array:
        """Return the four components of existing texels; each has a row of coordinates and a level."""
        found = np.empty((len(coordinate), 4), self.levels[0].dtype)
        layer, axes = self._split(coordinate)
        for which in np.unique(level):
            rows = level == which
            index = (layer[rows], *(axis[rows] for axis in reversed(axes)))
            found[rows] = _complete_channels(self.levels[which][index])
        return found

    def flatten_coordinates(self, coordinate: Array) -> Array:
        """Return the indices in `cells` of existing texels."""
        layer, axes = self._split(coordinate)
        flat: Array = layer
        for axis, size in zip(reversed(axes), self.levels[0].shape[1:-1], strict=True):
            flat = flat * size + axis
        return flat

    def _split(self, coordinate: Array) -> tuple[Array, list[Array]]:
        """Return the layer, and the coordinates along the axes of the image, x first."""
        numbers = list(coordinate.astype(np.int64).T)
        layer = numbers.pop() if self.arrayed else np.zeros(len(coordinate), np.int64)
        return layer, numbers

    def sample(self, coordinate: Array, lod: Array) -> Array:
        """Sample at texel coordinates and levels of detail; returns four components for each row."""
        settings = self.sampling
        assert settings is not None
        position = np.clip(np.nan_to_num(coordinate.astype(np.float64)), -_FAR, _FAR)
        layer = np.zeros(len(position), np.int64)
        if self.arrayed:
            layer = np.clip(np.rint(position[:, -1]), 0, self.levels[0].shape[0] - 1).astype(np.int64)
            position = position[:, :-1]
        normal = (position + 0.5) / self.levels[0].shape[-2:0:-1]
        detail = np.nan_to_num(lod.astype(np.float64)) + settings.bias
        detail = np.clip(detail, settings.lowest, settings.highest)
        last = len(self.levels) - 1
        level = np.clip(detail, 0, last)
        # halfway between two levels, the more detailed one
        low = np.floor(level) if settings.between else np.ceil(level - 0.5)
        weight = level - low if settings.between else np.zeros(len(level))
        linear = np.where(detail <= 0, settings.enlarged, settings.reduced)
        found = np.empty((len(position), 4), self.levels[0].dtype)
        for which, smooth in set(zip(low.astype(int).tolist(), linear.tolist(), strict=True)):
            rows = np.flatnonzero((low == which) & (linear == smooth))
            value = self._sample_level(which, normal[rows], layer[rows], settings, smooth=smooth)
            if weight[rows].any():
                next_ = self._sample_level(
                    min(which + 1, last), normal[rows], layer[rows], settings, smooth=smooth
                )
                value = value + weight[rows, None] * (next_ - value)
            found[rows] = value
        return found

    def _sample_level(
        self, which: int, normal: Array, layer: Array, settings: Sampling, *, smooth: bool
    ) -> Array:
        level = self.levels[which]
        position = normal * level.shape[-2:0:-1]
        if not smooth:
            axes = list(np.floor(position).astype(np.int64).T)
            return _read_colours(level, layer, axes, settings)
        first = np.floor(position - 0.5)
        weight = position - 0.5 - first
        total = np.zeros((len(normal), 4))
        for corner in itertools.product((0, 1), repeat=position.shape[1]):
            share = np.prod(np.where(np.array(corner) == 1, weight, 1 - weight), axis=1)
            axes = list((first + corner).astype(np.int64).T)
            colours = _read_colours(level, layer, axes, settings)
            # a neighbor of weight zero has no effect, even if it is infinite
            total += np.where(share[:, None] > 0, share[:, None] * colours, 0)
        return total


def _complete_channels(texels: Array) -> Array:
    """Extend texels to four channels: missing channels are 0, and 1 in the last."""
    missing = 4 - texels.shape[-1]
    if not missing:
        return texels
    rest = np.zeros((*texels.shape[:-1], missing), texels.dtype)
    rest[..., -1] = 1
    return np.concatenate((texels, rest), axis=-1)


def _read_colours(level: Array, layer: Array, axes: Sequence[Array], settings: Sampling) -> Array:
    """Return the texels at integer positions, x first, which may lie outside."""
    inside = np.ones(len(layer), np.bool_)
    places = []
    for axis, size in zip(axes, level.shape[-2:0:-1], strict=True):
        if settings.address == "CLAMP_TO_BORDER":
            inside &= (axis >= 0) & (axis < size)
        places.append(_ADDRESSES[settings.address](axis, size))
    colours = _complete_channels(level[(layer, *reversed(places))])
    if inside.all():
        return colours
    channels = level.shape[-1]
    border = np.array([0, 0, 0, 1], level.dtype)
    border[:channels] = settings.border[:channels]
    if channels == _ALPHA:
        # devices store such an image with alpha
        border[_ALPHA] = settings.border[_ALPHA]
    result: Array = np.where(inside[:, None], colours, border)
    return result


def _mirror(i: Array, size: int) -> Array:
    around = i % (2 * size)
    result: Array = np.minimum(around, 2 * size - 1 - around)
    return result


def _clamp(i: Array, size: int) -> Array:
    return np.clip(i, 0, size - 1)


_ADDRESSES: dict[str, Callable[[Array, int], Array]] = {
    "REPEAT": lambda i, size: i % size,
    "MIRRORED_REPEAT": _mirror,
    "CLAMP_TO_EDGE": _clamp,
    # the border is applied separately
    "CLAMP_TO_BORDER": _clamp,
    "MIRROR_CLAMP_TO_EDGE": lambda i, size: _clamp(np.where(i < 0, -1 - i, i), size),
}
