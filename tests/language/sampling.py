"""What sampling gives, in NumPy and float64: written from the Vulkan specification's texel operations."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vkdispatch import AddressMode, BorderColor, Filter

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Sampling:
    """The settings of a sampler."""

    mag_filter: Filter = Filter.LINEAR
    min_filter: Filter = Filter.LINEAR
    mip_filter: Filter = Filter.LINEAR
    address_mode: AddressMode = AddressMode.CLAMP_TO_EDGE
    mip_lod_bias: float = 0.0
    min_lod: float = 0.0
    max_lod: float = 0.0
    border_color: BorderColor = BorderColor.FLOAT_OPAQUE_WHITE


_BORDERS = ((0, 0, 0, 0), (0, 0, 0, 1), (1, 1, 1, 1))


def _mirror(i: Array) -> Array:
    return np.where(i >= 0, i, -(1 + i))


def wrap(i: Array, size: int, mode: AddressMode) -> Array:
    """Texel index inside the image, or -1 or `size` for the border."""
    if mode is AddressMode.REPEAT:
        return i % size
    if mode is AddressMode.MIRRORED_REPEAT:
        return (size - 1) - _mirror(i % (2 * size) - size)
    if mode is AddressMode.CLAMP_TO_EDGE:
        return np.clip(i, 0, size - 1)
    if mode is AddressMode.CLAMP_TO_BORDER:
        return np.clip(i, -1, size)
    return np.clip(_mirror(i), 0, size - 1)


def _texels(image: Array, indices: Sequence[Array], sampling: Sampling) -> Array:
    """Colours (rows, 4) of texels, x first in `indices`; `image` has axes in front, channels last."""
    sizes = image.shape[:-1][::-1]
    inside = np.ones(len(indices[0]), bool)
    places = []
    for index, size in zip(indices, sizes, strict=True):
        wrapped = wrap(index, size, sampling.address_mode)
        inside &= (wrapped >= 0) & (wrapped < size)
        places.append(np.clip(wrapped, 0, size - 1))
    channels = image.shape[-1]
    colours = np.zeros((len(inside), 4), image.dtype)
    colours[:, 3] = 1
    colours[:, :channels] = image[tuple(places[::-1])]
    border = np.array(_BORDERS[sampling.border_color.value // 2], image.dtype)
    # A format has no more channels at the border than elsewhere.
    outside = np.array([0, 0, 0, 1], image.dtype)
    outside[:channels] = border[:channels]
    if channels == 3:
        outside[3] = border[3]
    return np.where(inside[:, None], colours, outside)


def _sample_level(image: Array, uv: Array, filter: Filter, sampling: Sampling) -> Array:
    sizes = image.shape[:-1][::-1]
    position = uv * sizes
    if filter is Filter.NEAREST:
        floor = np.floor(position).astype(int)
        return _texels(image, list(floor.T), sampling)
    low = np.floor(position - 0.5).astype(int)
    weight = position - 0.5 - low
    total = np.zeros((len(uv), 4))
    for corner in itertools.product((0, 1), repeat=len(sizes)):
        share = np.ones(len(uv))
        for axis, side in enumerate(corner):
            share *= weight[:, axis] if side else 1 - weight[:, axis]
        total += share[:, None] * _texels(image, list((low + corner).T), sampling)
    return total


def sample(levels: Sequence[Array], coordinates: Array, lod: Array, sampling: Sampling) -> Array:
    """Sampled colours (rows, 4).

    `levels` are the mip levels, each with the channels as last axis; `coordinates` (rows, axes) are in texels
    of level 0, x first.
    """
    sizes = levels[0].shape[:-1][::-1]
    uv = (coordinates.astype(np.float64) + 0.5) / sizes
    detail = np.clip(lod.astype(np.float64) + sampling.mip_lod_bias, sampling.min_lod, sampling.max_lod)
    last = len(levels) - 1
    level = np.clip(detail, 0, last)
    low = np.floor(level).astype(int)
    if sampling.mip_filter is Filter.NEAREST:
        low = (np.ceil(level + 0.5) - 1).astype(int)
        level = low.astype(float)
    result = np.zeros((len(uv), 4))
    # Rows that are treated alike go together.
    for which in range(last + 1):
        for enlarged, filter in ((True, sampling.mag_filter), (False, sampling.min_filter)):
            rows = (low == which) & ((detail <= 0) == enlarged)
            if rows.any():
                near = _sample_level(levels[which], uv[rows], filter, sampling)
                far = _sample_level(levels[min(which + 1, last)], uv[rows], filter, sampling)
                result[rows] = near + (level - low)[rows, None] * (far - near)
    return result
