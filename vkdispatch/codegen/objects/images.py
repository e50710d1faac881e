"""Images inside a kernel: sampled between texels, or loaded and stored texel by texel."""

from typing import Any

from vkdispatch.base import dtype as dt
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.codegen.trace.current import current
from vkdispatch.codegen.trace.operands import parse_operand, parse_stored_value
from vkdispatch.codegen.variables import BoundVariable, ShaderVariable
from vkdispatch.compiler.ir import Expr, ImageBinding, ImageStore, Op
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import here, located
from vkdispatch.compiler.ir.nodes import COMPONENTS

__all__ = ["ImageVariable", "StorageImageVariable"]

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
