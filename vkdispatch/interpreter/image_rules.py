"""Expressions that read images: texels, samples and sizes."""

from __future__ import annotations

import numpy as np

from vkdispatch.base.errors import BoundsError
from vkdispatch.interpreter.batch import Batch
from vkdispatch.interpreter.images import Texels
from vkdispatch.interpreter.program import Lanes, list_operands
from vkdispatch.interpreter.values import Array, broadcast_rows, value_shape
from vkdispatch.ir import Expr, ImageBinding
from vkdispatch.ir.location import Loc


def check_texels(
    batch: Batch, texels: Texels, coordinate: Array, level: Array | None, lanes: Lanes, loc: Loc | None
) -> Array | None:
    """Return which texels exist, or None if all do. Coordinates and levels have a row for each lane.

    Raises IndexError for a missing texel if the program checks bounds.
    """
    sizes = texels.sizes()
    good = np.ones(len(lanes), np.bool_)
    if level is not None:
        good = check_levels(batch, texels, level, lanes, loc)
        sizes = sizes[np.where(good, level, 0)]
    inside = np.all((coordinate >= 0) & (coordinate < sizes), axis=1)
    if batch.program.checks.bounds and not inside.all():
        row = int(np.argmin(inside))
        numbers = (coordinate[row], sizes[row if level is not None else 0])
        texel, size = (", ".join(map(str, part.tolist())) for part in numbers)
        text = f"texel ({texel}) is out of bounds for {texels.what} of ({size})"
        raise batch.make_error(BoundsError, text, int(lanes.index[row]), loc)
    good = good & inside
    return None if good.all() else good


def check_levels(batch: Batch, texels: Texels, level: Array, lanes: Lanes, loc: Loc | None) -> Array:
    """Return which mip levels exist. Raises IndexError for a missing one if the program checks bounds."""
    count = len(texels.levels)
    good: Array = (level >= 0) & (level < count)
    if batch.program.checks.bounds and not good.all():
        row = int(np.argmin(good))
        text = f"mip level {level[row]} is out of bounds for {texels.what} of {count}"
        raise batch.make_error(BoundsError, text, int(lanes.index[row]), loc)
    return good


def fill_rows(found: Array, rows: Array | None, count: int) -> Array:
    """Return what some invocations found, with 0 for the others; `rows` is None if all found something."""
    if rows is None:
        return found
    value = np.zeros((count, *found.shape[1:]), found.dtype)
    value[rows] = found
    return value


def _find_texels(batch: Batch, expr: Expr) -> Texels:
    assert isinstance(expr.value, ImageBinding)
    return batch.program.memory.images[expr.value.index]


def add_axis(value: Array) -> Array:
    """Return coordinates with an axis for their components, which one-dimensional images lack."""
    return value[:, None] if value.ndim == 1 else value


def sample(batch: Batch, expr: Expr, lanes: Lanes) -> Array:
    """Return the value of a SAMPLE."""
    coordinate, lod = list_operands(expr, lanes)
    rows = max(len(coordinate), len(lod))
    coordinate = add_axis(broadcast_rows(coordinate, rows))
    return _find_texels(batch, expr).sample(coordinate, broadcast_rows(lod, rows))


def load_texels(batch: Batch, expr: Expr, lanes: Lanes) -> Array:
    """Return the value of an IMAGE_LOAD. Missing texels are 0 if the program does not check bounds."""
    texels = _find_texels(batch, expr)
    coordinate, *levels = (broadcast_rows(arg, len(lanes)) for arg in list_operands(expr, lanes))
    coordinate = add_axis(coordinate)
    level = levels[0] if levels else None
    rows = check_texels(batch, texels, coordinate, level, lanes, expr.loc)
    reached = slice(None) if rows is None else rows
    found: Array
    if texels.cells is None:
        assert level is not None
        found = texels.load(coordinate[reached], level[reached])
    else:
        place = (texels.flatten_coordinates(coordinate[reached]),)
        if batch.program.races is not None:
            batch.program.races.read(batch.describe_access(texels.cells, place, lanes, rows, expr.loc))
        found = texels.cells.load(place)
    return fill_rows(found, rows, len(lanes))


def find_image_size(batch: Batch, expr: Expr, lanes: Lanes) -> Array:
    """Return the value of an IMAGE_SIZE. The size of a missing level is 0."""
    texels = _find_texels(batch, expr)
    sizes = texels.sizes()
    if expr.args:
        (level,) = list_operands(expr, lanes)
        good = check_levels(batch, texels, broadcast_rows(level, len(lanes)), lanes, expr.loc)[: len(level)]
        sizes = np.where(good[:, None], sizes[np.where(good, level, 0)], 0)
    else:
        sizes = sizes[:1]
    return sizes if value_shape(expr.dtype) else sizes[:, 0]
