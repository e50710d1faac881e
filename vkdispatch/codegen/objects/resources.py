"""Buffers, shared arrays and images as a kernel's Python body sees them."""

import dis
import functools
import math
from collections.abc import Sequence
from types import CodeType, FrameType
from typing import Any, TypeAlias

from vkdispatch.base import dtype as dt
from vkdispatch.base.errors import ArgumentIndexError, ArgumentTypeError, ArgumentValueError
from vkdispatch.codegen.trace.current import current
from vkdispatch.codegen.trace.operands import parse_index, parse_operand, parse_stored_value
from vkdispatch.codegen.trace.range_checks import check_index
from vkdispatch.codegen.variables import BoundVariable, ShaderVariable
from vkdispatch.compiler.ir import (
    Builtin,
    Expr,
    ImageBinding,
    ImageStore,
    Op,
    SharedArray,
    Storage,
    is_constant,
)
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import here, located, warn
from vkdispatch.compiler.ir.program import COMPONENTS

__all__ = ["BufferVariable", "ImageVariable", "StorageImageVariable"]


class BufferVariable(BoundVariable):
    """A storage buffer, a constant array, or an array in workgroup memory.

    `buf[i]` is an element that can be read and stored, by its flat index; `buf[i, j]` and `buf[i, j, k]` take
    one index for each axis of the buffer's shape, the last one running fastest; so does an integer vector.
    Elements of a constant array are only read.
    """

    __slots__ = ("storage",)

    storage: Storage | SharedArray

    def __init__(self, storage: Storage | SharedArray) -> None:
        shared = isinstance(storage, SharedArray)
        text = storage.name if shared else f"{storage.name}.data"
        super().__init__(
            dt.compute_type(storage.dtype), text, -1 if isinstance(storage, SharedArray) else storage.index
        )
        self.storage = storage

    def _noun(self) -> str:
        return "buffer"

    @property
    def settable(self) -> bool:
        """Whether elements can be assigned to: of a constant array they cannot."""
        return isinstance(self.storage, SharedArray) or self.storage.constant is None

    @property
    def can_index(self) -> bool:
        """Whether the buffer has elements: always."""
        return True

    @property
    def _known_shape(self) -> tuple[int, ...] | None:
        """Sizes of the axes, where they are known while the kernel is traced."""
        if not isinstance(self.storage, SharedArray):
            return self.storage.constant
        shape = tuple(axis for axis in self.storage.shape if isinstance(axis, int))
        return shape if len(shape) == len(self.storage.shape) else None

    @property
    def shape(self) -> ShaderVariable:
        """Shape of the bound buffer as ivec4: up to three axes padded with 1, then the count of elements."""
        known = self._known_shape
        if known is not None:
            return ShaderVariable(ex.construct(dt.ivec4, (*(*known, 1, 1, 1)[:3], math.prod(known))))
        if isinstance(self.storage, SharedArray):
            axes = [
                ex.literal(axis, dt.int32) if isinstance(axis, int) else ex.cast(axis, dt.int32)
                for axis in self.storage.shape
            ]
            ones = [ex.literal(1, dt.int32)] * (3 - len(axes))
            whole = functools.reduce(ex.multiply, axes)
            return ShaderVariable(ex.construct(dt.ivec4, (*axes, *ones, whole)))
        argument = current().shape_of(self.storage)
        return ShaderVariable(Expr(Op.ARGUMENT, argument.dtype, (), argument, here()))

    @property
    def size(self) -> ShaderVariable:
        """How many elements the bound buffer has: `shape.w`."""
        return self.shape.w

    @property
    def shape_name(self) -> str:
        """Name of the shape in the generated code."""
        return f"{self.storage.name}_shape"

    def read_lambda(self) -> None:
        """Tell that raw GLSL reads this buffer."""
        self._mark_touched(current().marked_reads)

    def write_lambda(self) -> None:
        """Tell that raw GLSL writes this buffer."""
        self._mark_touched(current().marked_writes)

    def _mark_touched(self, marked: set[int]) -> None:
        if self.binding >= 0:
            marked.add(self.binding)

    def read_callback(self) -> None:
        """Tell that raw GLSL reads this buffer."""
        self.read_lambda()

    def write_callback(self) -> None:
        """Tell that raw GLSL writes this buffer."""
        self.write_lambda()

    def __getitem__(self, index: Any) -> ShaderVariable:
        element = self._at(index)
        return ShaderVariable(element if is_constant(element) else current().read(element))

    def __setitem__(self, index: Any, value: object) -> None:
        ShaderVariable(self._at(index))._assign(value)

    def _at(self, index: Any) -> Expr:
        if isinstance(index, slice):
            raise located(ArgumentValueError, "a buffer in a kernel is indexed by element, not by a slice")
        for extreme in _extreme_indices(index):
            # what is wrong with these numbers is an error here
            self._at(extreme)
        entries = _entries(index)
        axes: tuple[tuple[Expr, Expr], ...] = ()
        position = entries[0]
        if len(entries) > 1:
            sizes = self._sizes(entries)
            position = flat_index(entries, sizes[1:])
            axes = tuple(zip(map(_axis_index, entries), map(_axis_index, sizes), strict=True))
        if not isinstance(position, Expr):
            size = None if self._known_shape is None else math.prod(self._known_shape)
            # compilers take constant indices below 2^31 only
            if not 0 <= position < (1 << 31 if size is None else size):
                limit = "" if size is None else f" of {size} elements"
                hint = "; kernels do not count from the end: buf[buf.size - 1] is the last element"
                raise located(
                    ArgumentIndexError,
                    f"index {position} is out of range for the buffer{limit}{hint if position < 0 else ''}",
                )
            position = ex.literal(position, ex.literal_dtype(position))
        kind = dt.compute_type(self.storage.dtype)
        return Expr(Op.ELEMENT, kind, (ex.index_value(position),), self.storage, here(), axes)

    def _sizes(self, entries: list[int | Expr]) -> list[int | Expr]:
        """Return the sizes of the axes.

        Raises IndexError or ValueError for indices that fit no shape.
        """
        count = len(entries)
        shape: tuple[int | Expr, ...] | None = self._known_shape
        if isinstance(self.storage, SharedArray):
            shape = self.storage.shape
        if shape is not None:
            if len(shape) != count:
                what = "shared buffer" if isinstance(self.storage, SharedArray) else "constant array"
                axes = ", ".join(str(axis) if isinstance(axis, int) else "?" for axis in shape)
                raise located(
                    ArgumentValueError, f"{count} indices do not fit a {what} of the shape ({axes})"
                )
            limits = [axis if isinstance(axis, int) else None for axis in shape]
            sizes: list[int | Expr] = list(shape)
        else:
            limits = [None] * count
            whole = self.shape._value()
            sizes = [ex.component(whole, axis) for axis in range(count)]
            if count == 2 and isinstance(self.storage, Storage):
                current().require_planar(self.storage)
        for axis, (entry, limit) in enumerate(zip(entries, limits, strict=True)):
            if isinstance(entry, int) and (entry < 0 or (limit is not None and entry >= limit)):
                size = "" if limit is None else f" of {limit} elements"
                raise located(ArgumentIndexError, f"index {entry} is out of range for axis {axis}{size}")
        return sizes


def _axis_index(entry: int | Expr) -> Expr:
    """Return an index as a checker looks at it: of 32 bits or 64, and as the user means it."""
    if isinstance(entry, Expr):
        return entry if entry.dtype.item_size == 8 else ex.index_value(entry)
    return ex.literal(entry, ex.literal_dtype(entry))


# Built-in positions, and how kernels mostly call them.
_IDS = {
    Builtin.GLOBAL_INVOCATION_ID: "gid",
    Builtin.LOCAL_INVOCATION_ID: "lid",
    Builtin.WORKGROUP_ID: "group",
}


def _warn_of_columns_first(index: Expr) -> None:
    """Warn about `buf[gid.xy]`: buffers take the row first, images the column."""
    source = index
    while source.op is Op.CONSTRUCT and len(source.args) == 1:
        (source,) = source.args
    letters = "xyz"[: index.dtype.child_count]
    if source.op is Op.SWIZZLE and source.value == letters:
        (source,) = source.args
    name = _IDS.get(source.value) if isinstance(source.value, Builtin) else None
    if name is None:
        return
    written = f"{name}.{letters}" if index.dtype.child_count < 3 else name
    rows_first = ", ".join(f"{name}.{letter}" for letter in reversed(letters))
    as_written = ", ".join(f"{name}.{letter}" for letter in letters)
    warn(
        f"buf[{written}] is buf[{as_written}]: its first index, x, counts rows, as in buf[row, column] "
        f"(images are img[x, y]). Write buf[{rows_first}], or buf[{as_written}] if that is meant"
    )


def _extreme_indices(index: Any) -> list[Any]:
    """Return an index that stands for numbers of Python with the least and the greatest of them."""
    parts = index if isinstance(index, tuple) else (index,)
    extremes = [part._extremes() if isinstance(part, ShaderVariable) else () for part in parts]
    if not any(extremes):
        return []
    ends = [
        tuple(extreme[end] if extreme else part for extreme, part in zip(extremes, parts, strict=True))
        for end in (0, 1)
    ]
    return [end if isinstance(index, tuple) else end[0] for end in ends]


def _entries(index: Any) -> list[int | Expr]:
    """Return the indices given to a buffer: one for a flat index, else one for each axis."""
    if isinstance(index, ShaderVariable):
        value = index._as_index()
        if dt.is_vector(value.dtype) and dt.is_integer_dtype(value.dtype) and value.dtype.child_count <= 3:
            _warn_of_columns_first(value)
            return [ex.component(value, axis) for axis in range(value.dtype.child_count)]
    if not isinstance(index, tuple) or len(index) == 1:
        return [_entry(index)]
    if not 2 <= len(index) <= 3:
        raise located(ArgumentValueError, f"a buffer takes one to three indices, got {len(index)}")
    return list(map(_entry, index))


def _entry(index: Any) -> int | Expr:
    if isinstance(index, ShaderVariable) and index._extremes():
        return index._as_index()
    entry = parse_index(index, "a buffer", ArgumentTypeError)
    check_index(entry)
    return entry


# ---- From indices along several axes to the flat, row-major index of an element --------------------------


Entry: TypeAlias = int | Expr


def flat_index(entries: Sequence[Entry], sizes: Sequence[Entry]) -> Entry:
    """Return the flat index of a position.

    Parameters
    ----------
    entries
        One index per axis: ints, or integer scalars.
    sizes
        Elements along every axis but the first, whose size does not matter.

    Returns
    -------
    An int if all is known, else an expression: dt.int32 if an index has a sign, else dt.uint32.
    """
    if all(isinstance(value, int) for value in (*entries, *sizes)):
        strides = [math.prod(_select_known(sizes)[axis:]) for axis in range(len(entries))]
        return sum(entry * stride for entry, stride in zip(_select_known(entries), strides, strict=True))
    indices = [ex.index_value(entry) if isinstance(entry, Expr) else entry for entry in entries]
    signed = any(dt.is_signed_dtype(index.dtype) for index in indices if isinstance(index, Expr))
    kind = dt.int32 if signed else dt.uint32
    parts = [_as(index, kind) for index in indices]
    flat = parts[0]
    for size, part in zip(sizes, parts[1:], strict=True):
        flat = ex.add("+", ex.multiply(flat, _as(size, kind)), part)
    return flat


def _select_known(values: Sequence[Entry]) -> list[int]:
    return [value for value in values if isinstance(value, int)]


def _as(value: Entry, kind: type) -> Expr:
    return ex.cast(value, kind) if isinstance(value, Expr) else ex.literal(value, kind)


# ---- Whether `p[i]` of a buffer of structures is the place in `p[i].x`, or a value -----------------------


_ATTRIBUTES = frozenset(("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR"))
_COPIES = frozenset(("COPY", "DUP_TOP"))


@functools.lru_cache(maxsize=1024)
def _attribute_follows(code: CodeType) -> frozenset[int]:
    """Return the offsets of the instructions whose result is at once asked for an attribute, or gets one.

    The offsets of their inline caches are included, because a frame may point to one.
    """
    instructions = list(dis.get_instructions(code))
    offsets: set[int] = set()
    for position, instruction in enumerate(instructions[:-1]):
        end = instructions[position + 1].offset
        following = instructions[position + 1]
        if following.opname in _COPIES and position + 2 < len(instructions):
            # p[i].x += 1
            following = instructions[position + 2]
            if following.opname == "STORE_ATTR":
                continue
        if following.opname in _ATTRIBUTES:
            offsets.update(range(instruction.offset, end, 2))
    return frozenset(offsets)


def is_place_in(frame: FrameType) -> bool:
    """Whether the expression that a frame evaluates is the `p[i]` of `p[i].x`: a place, not a value."""
    return frame.f_lasti in _attribute_follows(frame.f_code)


_AXES = {1: "x", 2: "(x, y)", 3: "(x, y, z)"}


class BoundImage(BoundVariable):
    """What sampled and storage images have in common."""

    __slots__ = ("image",)

    image: ImageBinding

    def __init__(self, image: ImageBinding) -> None:
        super().__init__(image.texel, image.name, image.index)
        self.image = image

    def _noun(self) -> str:
        return "image"

    @property
    def dimensions(self) -> int:
        """Count of axes: 1, 2 or 3; the layer of an array is none."""
        return self.image.dimensions

    def _coordinate(self, given: Any, what: str, kind: dt.DType) -> Expr:
        """Return as many components of a coordinate as the image has, as `kind`."""
        count = self.image.coordinates
        axes = "(x, y, layer)" if self.image.arrayed else _AXES[count]
        if isinstance(given, (tuple, list)):
            parts = [parse_operand(part, what) for part in given]
            if not parts or sum(dt.component_count(part.dtype) for part in parts) != count:
                raise located(ArgumentValueError, f"{what}: expected {axes}, got {len(parts)} values")
            for part in parts:
                _check_kind(part, what, kind)
            scalars = [part if dt.is_vector(part.dtype) else ex.cast(part, kind) for part in parts]
            if len(scalars) == 1:
                return ex.cast(scalars[0], dt.to_vector(kind, count))
            return Expr(Op.CONSTRUCT, dt.to_vector(kind, count), tuple(scalars), None, here())
        position = parse_operand(given, what)
        size = position.dtype.child_count if dt.is_vector(position.dtype) else 1
        if dt.component_count(position.dtype) != size or size < count:
            raise located(
                ArgumentValueError,
                f"{what}: expected {axes}: a vector of {count} coordinates, got {position.dtype.name}"
                if count > 1
                else f"{what}: expected a number x, got {position.dtype.name}",
            )
        _check_kind(position, what, kind)
        if dt.is_vector(position.dtype) and size > count:
            position = ex.swizzle(position, COMPONENTS[:count])
        return ex.cast(position, dt.to_vector(kind, count))

    def _load_texel(self, coordinate: Expr, *level: Expr) -> ShaderVariable:
        texel = Expr(Op.IMAGE_LOAD, self.image.texel, (coordinate, *level), self.image, here())
        return ShaderVariable(current().read(texel) if self.image.storage else texel)

    def _size(self, *level: Expr) -> ShaderVariable:
        kind = dt.to_vector(dt.int32, self.image.coordinates)
        return ShaderVariable(Expr(Op.IMAGE_SIZE, kind, level, self.image, here()))


class ImageVariable(BoundImage):
    """A sampled image: `Img1[D]`, `Img2[D]`, `Img3[D]` or `vc.Image2DArray[D]`.

    Values have four components, of float32, int32 or uint32 as D says. What an image of fewer channels lacks
    is 0, and 1 in the last.
    """

    __slots__ = ()

    def __getitem__(self, index: Any) -> ShaderVariable:
        raise located(
            ArgumentTypeError,
            "an image is read with .sample(coordinate), or with .load(texel) without filtering",
        )

    def sample(self, coord: Any, lod: Any = None) -> ShaderVariable:
        """Sample at texel coordinates, whose integers are texel centres; returns four components.

        Parameters
        ----------
        coord
            A number for one axis; for more, a vector of at least as many components, or a tuple: (x, y),
            (x, y, z), or (x, y, layer) of an array.
        lod
            The mip level, 0 by default; fractions lie between two levels. Coordinates stay those of level 0.

        Raises
        ------
        ValueError
            The coordinates have another shape.
        """
        position = self._coordinate(coord, "sample", dt.float32)
        level = parse_operand(0 if lod is None else lod, "sample")
        args = (position, ex.cast(level, dt.float32))
        return ShaderVariable(Expr(Op.SAMPLE, self.image.texel, args, self.image, here()))

    def load(self, texel: Any, lod: Any = 0) -> ShaderVariable:
        """Return one texel, four components, with no filter. Beyond the edges the value is undefined.

        Parameters
        ----------
        texel
            Integers: x, (x, y), (x, y, z), or (x, y, layer) of an array.
        lod
            The mip level, an integer; `texel` counts in that level.

        Raises
        ------
        ValueError
            The coordinates have another shape, or are no integers.
        """
        return self._load_texel(self._coordinate(texel, "load", dt.int32), _level(lod, "load"))

    def size(self, lod: Any = 0) -> ShaderVariable:
        """Return the size of a mip level in texels, width first; of an array the count of layers last."""
        return self._size(_level(lod, "size"))


class StorageImageVariable(BoundImage):
    """A storage image: `SImg1[D]`, `SImg2[D]`, `SImg3[D]` or `vc.StorageImage2DArray[D]`.

    `img[x, y]` is the texel at column x and row y, a value of type D, and can be assigned to. Other
    invocations of the same launch need not see what one of them stores; the next launch does.
    """

    __slots__ = ()

    @property
    def settable(self) -> bool:
        """Whether texels can be assigned to: always."""
        return True

    @property
    def can_index(self) -> bool:
        """Whether the image has texels: always."""
        return True

    def load(self, texel: Any) -> ShaderVariable:
        """Return one texel. Beyond the edges the value is undefined.

        Parameters
        ----------
        texel
            Integers: x, (x, y), (x, y, z), or (x, y, layer) of an array.

        Raises
        ------
        ValueError
            The coordinates have another shape, or are no integers.
        """
        return self._load_texel(self._coordinate(texel, "load", dt.int32))

    def store(self, texel: Any, value: Any) -> None:
        """Write one texel. Beyond the edges nothing is written.

        Parameters
        ----------
        texel
            As for `load`.
        value
            A value or number that converts to the type of a texel.

        Raises
        ------
        ValueError
            The coordinates have another shape or are no integers, or the value does not convert.
        """
        coordinate = self._coordinate(texel, "store", dt.int32)
        texels = parse_stored_value(value, self.image.dtype)
        current().emit(ImageStore(self.image, coordinate, texels, here()))

    def size(self) -> ShaderVariable:
        """Return the size in texels, width first; of an array the count of layers last."""
        return self._size()

    def __getitem__(self, index: Any) -> ShaderVariable:
        return self.load(_checked_index(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        self.store(_checked_index(index), value)


def _check_kind(value: Expr, what: str, kind: dt.DType) -> None:
    if kind is dt.int32 and not dt.is_integer_dtype(dt.component_type(value.dtype)):
        raise located(
            ArgumentValueError,
            f"{what}: a texel has integer coordinates, got {value.dtype.name}; convert them, or use .sample",
        )


def _level(lod: Any, what: str) -> Expr:
    level = parse_operand(lod, what)
    if dt.component_count(level.dtype) != 1 or not dt.is_integer_dtype(level.dtype):
        raise located(ArgumentValueError, f"{what}: lod must be an integer, got {level.dtype.name}")
    return ex.cast(level, dt.int32)


def _checked_index(index: Any) -> Any:
    if isinstance(index, slice) or (isinstance(index, tuple) and any(isinstance(i, slice) for i in index)):
        raise located(ArgumentValueError, "an image takes the coordinates of one texel, not a slice")
    return index
