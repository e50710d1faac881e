"""GPU values, memory and images as NumPy arrays: accesses, texels, sampling."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vkdispatch.base import dtype as dt
from vkdispatch.base.errors import UsageError
from vkdispatch.compiler.ir.location import Loc, located

# ---- GPU values as NumPy arrays: one row for each invocation, or a single row for all of them ------------
#
# A scalar is a row, a vector or complex number a row of components, a matrix a row of columns of
# components.


Array = np.ndarray[Any, Any]
Extent = tuple[int, int, int]


def host_dtype(kind: dt.DType) -> np.dtype[Any]:
    """Return the NumPy dtype of one component."""
    scalar = dt.component_type(kind)
    return np.dtype(np.bool_ if scalar is dt.bool_ else dt.to_numpy_dtype(scalar))


def value_shape(kind: dt.DType) -> tuple[int, ...]:
    """Return the shape of one value: () for scalars, (2,) for complex numbers, (N, N) for matrices."""
    if dt.is_scalar(kind):
        return ()
    if dt.is_matrix(kind):
        assert kind.child_type is not None
        return (kind.child_count, kind.child_type.child_count)
    if dt.is_array(kind):
        assert kind.child_type is not None
        return (kind.child_count, *value_shape(kind.child_type))
    return (kind.child_count,)


def make_uniform(value: Any, kind: dt.DType) -> Array:
    """Return a value as a single row for all invocations."""
    return np.asarray(value, host_dtype(kind)).reshape((1, *value_shape(kind)))


def broadcast_rows(value: Array, rows: int) -> Array:
    """Return a value with one row for each of `rows` invocations. Do not modify."""
    return value if len(value) == rows else np.broadcast_to(value, (rows, *value.shape[1:]))


def align(*values: Array) -> tuple[Array, ...]:
    """Add axes to scalars that are combined with vectors or matrices."""
    most = max(value.ndim for value in values)
    return tuple(value.reshape(value.shape + (1,) * (most - value.ndim)) for value in values)


def convert(value: Array, target: np.dtype[Any]) -> Array:
    """Convert components like GLSL constructors: integers wrap around, floats are truncated to integers."""
    if value.dtype == target:
        return value
    if target.kind == "b":
        result: Array = value != 0
        return result
    if value.dtype.kind == "f" and target.kind in "iu":
        # via the widest integer, so that overflow wraps around on every machine
        wide = np.uint64 if target == np.uint64 else np.int64
        return value.astype(wide).astype(target)
    return value.astype(target)


def construct(kind: dt.DType, kinds: Sequence[dt.DType], values: Sequence[Array]) -> Array:
    """Construct a value of type `kind` like the GLSL constructor."""
    target, shape = host_dtype(kind), value_shape(kind)
    if dt.is_array(kind):
        if not values:
            return np.zeros((1, *shape), target)
        rows = max(len(value) for value in values)
        return np.stack([broadcast_rows(value, rows) for value in values], axis=1)
    if len(values) == 1:
        return _construct_from_one(kind, kinds[0], convert(values[0], target))
    rows = max(len(value) for value in values)
    parts = [broadcast_rows(convert(value, target), rows).reshape(rows, -1) for value in values]
    return np.concatenate(parts, axis=1).reshape(rows, *shape)


def _construct_from_one(kind: dt.DType, source: dt.DType, value: Array) -> Array:
    rows, shape = len(value), value_shape(kind)
    if dt.is_scalar(kind):
        first: Array = value.reshape(rows, -1)[:, 0]
        return first
    if dt.is_matrix(kind):
        return _matrix_from_one(shape, source, value)
    if dt.is_scalar(source) and not dt.is_complex(kind):
        return np.repeat(value[:, None], shape[0], axis=1)
    return value.reshape(rows, -1)[:, : dt.component_count(kind)]


def _matrix_from_one(shape: tuple[int, ...], source: dt.DType, value: Array) -> Array:
    rows = len(value)
    columns, height = shape
    if dt.is_matrix(source):
        result = np.broadcast_to(np.eye(columns, height, dtype=value.dtype), (rows, *shape)).copy()
        fits = tuple(slice(min(a, b)) for a, b in zip(shape, value.shape[1:], strict=True))
        result[:, fits[0], fits[1]] = value[:, fits[0], fits[1]]
        return result
    if dt.is_scalar(source):
        result = np.zeros((rows, *shape), value.dtype)
        for place in range(min(shape)):
            result[:, place, place] = value
        return result
    return value.reshape(rows, *shape)


def as_unsigned(value: Array) -> Array:
    """Reinterpret integers as unsigned numbers."""
    return value if value.dtype.kind == "u" else value.view(np.dtype(f"u{value.dtype.itemsize}"))


def reinterpret(value: Array, target: np.dtype[Any]) -> Array:
    """Reinterpret bits as another type of the same size."""
    return np.ascontiguousarray(value).view(target)


# ---- Buffers and workgroup memory as NumPy arrays, and places in them ------------------------------------


Index = tuple[Any, ...]
Coder = Callable[[Array], Array]


@dataclass(eq=False, slots=True)
class Cells:
    """Memory of elements, shared by several invocations.

    Attributes
    ----------
    what
        The name in messages, such as "buffer 'data'".
    data
        One row for each element, in the type of the memory.
    shape
        The shape that the user knows; None if there is only a size.
    size
        The number of elements that indices may reach.
    decode, encode
        Conversion from the type of the memory to that of kernels, and back; None if both are the same.
    fields
        For structures: the memory of each field.
    """

    what: str
    data: Array
    shape: tuple[int, ...] | None
    size: int
    decode: Coder | None = None
    encode: Coder | None = None
    fields: dict[tuple[str, ...], Cells] = field(default_factory=dict)

    @property
    def extent(self) -> str:
        """The shape or size, for messages."""
        if self.shape is None:
            return str(self.size)
        flat = "" if self.shape == (self.size,) else f" ({self.size} elements)"
        return f"shape {self.shape}{flat}"

    def load(self, index: Index) -> Array:
        """Return the components at an index, in the type of kernels."""
        value: Array = self.data[index]
        return value if self.decode is None else self.decode(value)

    def store(self, index: Index, value: Array) -> None:
        """Write components. If several invocations write an element, the last one wins."""
        self.data[index] = value if self.encode is None else self.encode(value)


@dataclass(eq=False, slots=True)
class Place:
    """The places that some invocations access.

    Attributes
    ----------
    cells
        The memory; a register is memory of one element for each invocation.
    index
        The NumPy index of the components.
    rows
        Which of the invocations are in range; None for all of them.
    owned
        Whether the place is a register, which no other invocation can access.
    """

    cells: Cells
    index: Index
    rows: Array | None
    owned: bool

    def load(self) -> Array:
        """Return the components."""
        return self.cells.load(self.index)

    def select_rows(self, value: Array) -> Array:
        """Return the rows of a value that are in range."""
        return value if self.rows is None or len(value) == 1 else value[self.rows]

    def store(self, value: Array) -> None:
        """Write a value."""
        self.cells.store(self.index, self.select_rows(value))


def describe_index(index: Array, row: int) -> str:
    """Describe an index for messages; one that wrapped around below zero is shown as negative too."""
    number, meant = int(index[row if len(index) > 1 else 0]), signed_index(index, row)
    return str(number) if meant == number else f"{meant} (as {index.dtype.name}: {number})"


def signed_index(index: Array, row: int) -> int:
    """Return an index as a signed number, negative if it wrapped around below zero."""
    number, bits = int(index[row if len(index) > 1 else 0]), 8 * index.dtype.itemsize
    return number - (1 << bits) if number >= 1 << (bits - 1) else number


def find_outside(index: Array, size: int) -> Array | None:
    """Return which rows of an index are outside 0 to size - 1, or None if there are none."""
    bad: Array = index >= size
    if index.dtype.kind == "i":
        bad = bad | (index < 0)
    return bad if np.any(bad) else None


# ---- Detection of unordered accesses, which lockstep execution would hide --------------------------------
#
# For each component of memory, the detector stores the last writer, the readers since then, and the number
# of barriers that their workgroups had passed.


_NOBODY = -1


@dataclass(eq=False, slots=True)
class _Shadow:
    """For each component: the last writer, the lowest and highest reader since, and their epochs."""

    writer: Array
    written: Array
    lowest: Array
    highest: Array
    read: Array


@dataclass(frozen=True, eq=False, slots=True)
class Access:
    """An access of some invocations to memory.

    Attributes
    ----------
    cells, index
        The memory, and the index of the components.
    number, group, epoch
        For each invocation: its number, counted workgroup by workgroup, its workgroup, and the number of
        barriers that the workgroup has passed.
    loc
        The line of the user's source.
    """

    cells: Cells
    index: tuple[Any, ...]
    number: Array
    group: Array
    epoch: Array
    loc: Loc | None

    def add_axes(self, value: Array) -> Array:
        """Reshape a number for each invocation to the axes of the components that it accesses."""
        return value.reshape(-1, *(1,) * (self.cells.data.ndim - len(self.index)))


class RaceDetector:
    """Detects races in one run of a kernel. Atomic accesses are ordered and not recorded."""

    def __init__(self, who: str, groups: Extent, local_size: Extent) -> None:
        self._who = who
        self._groups = groups
        self._local_size = local_size
        self._local = local_size[0] * local_size[1] * local_size[2]
        self._shadows: dict[Cells, _Shadow] = {}

    def forget(self, cells: Cells) -> None:
        """Forget memory that no longer exists."""
        self._shadows.pop(cells, None)

    def _shadow(self, cells: Cells) -> _Shadow:
        if cells not in self._shadows:
            fields = (np.full(cells.data.shape, _NOBODY, np.int64) for _ in range(5))
            self._shadows[cells] = _Shadow(*fields)
        return self._shadows[cells]

    def read(self, access: Access) -> None:
        """Record a read. Raises UsageError after an unordered write of another invocation."""
        shadow, index = self._shadow(access.cells), access.index
        bad = ~self._ordered(shadow.writer, shadow.written, access)
        self._require_order(access, bad, shadow.writer, "written", "read")
        lowest, highest = shadow.lowest[index], shadow.highest[index]
        stale = self._ordered(shadow.lowest, shadow.read, access)
        stale = stale & self._ordered(shadow.highest, shadow.read, access)
        fresh = np.broadcast_to(access.add_axes(access.number), lowest.shape)
        shadow.lowest[index] = np.where(stale, fresh, lowest)
        shadow.highest[index] = np.where(stale, fresh, highest)
        np.minimum.at(shadow.lowest, index, fresh)
        np.maximum.at(shadow.highest, index, fresh)
        shadow.read[index] = access.add_axes(access.epoch)

    def write(self, access: Access, value: Array | None) -> None:
        """Record a write before it happens. `value` is None if it depends on the previous value.

        Raises UsageError after an unordered read, or write of another value, by another invocation.
        """
        if not len(access.number):
            return
        cells, index = access.cells, access.index
        shadow = self._shadow(cells)
        new = value if value is None or cells.encode is None else cells.encode(value)
        differs = np.ones(1, np.bool_) if new is None else _find_differences(cells.data[index], new)
        for who, when, what in (
            (shadow.writer, shadow.written, "written"),
            (shadow.lowest, shadow.read, "read"),
            (shadow.highest, shadow.read, "read"),
        ):
            self._require_order(access, differs & ~self._ordered(who, when, access), who, what, "written")
        number = access.add_axes(access.number)
        shadow.writer[index] = number
        shadow.written[index] = access.add_axes(access.epoch)
        # of several writers of a component one is recorded; the others must write the same value
        rivals = shadow.writer[index] != number
        if new is not None and rivals.any():
            trial = np.zeros_like(cells.data)
            trial[index] = new
            rivals = rivals & _find_differences(trial[index], new)
        self._require_order(access, rivals, shadow.writer, "written", "written")

    def _ordered(self, who: Array, when: Array, access: Access) -> Array:
        """Return whether earlier accesses are ordered before the present one."""
        who, when = who[access.index], when[access.index]
        same_group = who // self._local == access.add_axes(access.group)
        past = same_group & (when < access.add_axes(access.epoch))
        result: Array = (who == _NOBODY) | (who == access.add_axes(access.number)) | past
        return result

    def _require_order(self, access: Access, bad: Array, others: Array, what: str, now: str) -> None:
        if not bad.any():
            return
        others = others[access.index]
        table = np.broadcast_to(bad, others.shape).reshape(len(others), -1)
        row, column = np.unravel_index(int(np.argmax(table)), table.shape)
        first = self._invocation(int(others.reshape(table.shape)[row, column]))
        second = self._invocation(int(access.number[row]))
        element = int(access.index[0][row]) % access.cells.size
        raise located(
            UsageError,
            f"{self._who}: {access.cells.what}: element {element} is {what} by invocation {first} "
            f"and {now} by invocation {second}, and nothing orders the two",
            access.loc,
        )

    def _invocation(self, number: int) -> Extent:
        group, position = divmod(number, self._local)
        axes = []
        for size, count in zip(self._local_size, self._groups, strict=True):
            group, of_group = divmod(group, count)
            position, of_position = divmod(position, size)
            axes.append(of_group * size + of_position)
        return (axes[0], axes[1], axes[2])


def _find_differences(a: Array, b: Array) -> Array:
    result: Array = (a != b) & ~((a != a) & (b != b))
    return result


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
