"""Annotations of kernel arguments, what each becomes inside the kernel, and constant arrays."""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from vkdispatch.base import derived_dtypes
from vkdispatch.base import dtype as dt
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.host_numpy import np
from vkdispatch.codegen.constant_arrays import ConstantArray as ConstantArray
from vkdispatch.codegen.description import ArgType, ShaderArgumentInfo
from vkdispatch.codegen.objects.resources import BufferVariable, ImageVariable, StorageImageVariable
from vkdispatch.codegen.objects.structures import ItemArray, StructureBuffer
from vkdispatch.codegen.trace.recording import Recorder
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir import Argument, Expr, ImageBinding, Op
from vkdispatch.compiler.ir.expressions import condition
from vkdispatch.compiler.ir.location import here, located

__all__ = [
    "Buffer",
    "Constant",
    "ConstantArray",
    "Image1D",
    "Image2D",
    "Image2DArray",
    "Image3D",
    "StorageImage1D",
    "StorageImage2D",
    "StorageImage2DArray",
    "StorageImage3D",
    "Variable",
    "_ArgType",
]


# ---- Annotations of kernel arguments, and what each becomes inside the kernel ----------------------------


_ArgType = TypeVar("_ArgType")


if TYPE_CHECKING:
    from vkdispatch.codegen.argument_types import *  # noqa: F403
else:

    class Constant(ShaderVariable, Generic[_ArgType]):
        """`Const[D]`: a value of dtype D, fixed when the call is recorded."""

        is_constant = True  # what fields of dataclasses are told by

    class Variable(ShaderVariable, Generic[_ArgType]):
        """`Var[D]`: a value of dtype D that a command graph may set anew for each submission."""

    class Buffer(BufferVariable, Generic[_ArgType]):
        """`Buff[D]`: a buffer, seen as elements of dtype D, or of a dataclass whose fields are dtypes."""

    class Image1D(ImageVariable, Generic[_ArgType]):
        """`Img1[D]`: a sampled image of one dimension."""

    class Image2D(ImageVariable, Generic[_ArgType]):
        """`Img2[D]`: a sampled image of two dimensions."""

    class Image2DArray(ImageVariable, Generic[_ArgType]):
        """A sampled array of images of two dimensions; a coordinate is (x, y, layer)."""

    class Image3D(ImageVariable, Generic[_ArgType]):
        """`Img3[D]`: a sampled image of three dimensions."""

    class StorageImage1D(StorageImageVariable, Generic[_ArgType]):
        """`SImg1[D]`: an image of one dimension whose texels, of dtype D, are loaded and stored."""

    class StorageImage2D(StorageImageVariable, Generic[_ArgType]):
        """`SImg2[D]`: an image of two dimensions whose texels, of dtype D, are loaded and stored."""

    class StorageImage2DArray(StorageImageVariable, Generic[_ArgType]):
        """An array of images of two dimensions whose texels, at (x, y, layer), are loaded and stored."""

    class StorageImage3D(StorageImageVariable, Generic[_ArgType]):
        """`SImg3[D]`: an image of three dimensions whose texels, of dtype D, are loaded and stored."""


_SAMPLED: dict[Any, int] = {Image1D: 1, Image2D: 2, Image2DArray: 2, Image3D: 3}
_STORAGE: dict[Any, int] = {StorageImage1D: 1, StorageImage2D: 2, StorageImage2DArray: 2, StorageImage3D: 3}
_ARRAYED = (Image2DArray, StorageImage2DArray)
# Items of an array that is passed with the arguments of a call.
_MAX_ITEMS = 256
_AS_NAME = str.maketrans({".": "_", "[": "_", "]": None})
_WANTED = "expected an annotation such as Buff[f32], Const[f32] or Var[f32], or a dataclass of dtypes"


def declare_argument(
    recorder: Recorder, name: str, annotation: object, default: Any
) -> tuple[Any, ShaderArgumentInfo]:
    """Add an argument to a kernel; returns the variable that stands for it, and its description.

    Raises TypeError for an annotation without a dtype and ValueError for one that is not known.
    """
    if isinstance(annotation, type) and hasattr(annotation, "__dataclass_fields__"):
        return _declare_dataclass(recorder, name, annotation, default)
    origin, kind, owner = _split(name, annotation)
    if origin is Buffer:
        storage = recorder.add_storage(kind, name)
        variable = (
            StructureBuffer(storage, owner, kind)
            if owner is not None and derived_dtypes.is_structure(kind)
            else BufferVariable(storage)
        )
        return variable, ShaderArgumentInfo(
            name, ArgType.BUFFER, default, storage.name, binding=storage.index, dtype=kind
        )
    if is_image(origin):
        return _declare_image(recorder, name, origin, kind, default)
    arg_type = ArgType.CONSTANT if origin is Constant else ArgType.VARIABLE
    value, member = _declare_value(recorder, name, name, kind)
    if arg_type is ArgType.VARIABLE:
        recorder.note_variable(member)
    return value, ShaderArgumentInfo(
        name,
        arg_type,
        default,
        member.name,
        dtype=kind,
        members=(member.name,),
        member_dtypes=(member.dtype,),
    )


def _declare_image(
    recorder: Recorder, name: str, origin: Any, kind: dt.DType, default: Any
) -> tuple[Any, ShaderArgumentInfo]:
    like = image_binding(0, name, origin, kind)
    image = recorder.add_image(like.dimensions, name, like.dtype, storage=like.storage, arrayed=like.arrayed)
    variable = StorageImageVariable(image) if image.storage else ImageVariable(image)
    arg_type = ArgType.STORAGE_IMAGE if image.storage else ArgType.IMAGE
    return variable, ShaderArgumentInfo(
        name, arg_type, default, image.name, binding=image.index, dtype=kind, image=image
    )


def is_image(origin: Any) -> bool:
    """Whether an annotation's class is that of an image."""
    return origin in _SAMPLED or origin in _STORAGE


def image_binding(index: int, name: str, origin: Any, kind: dt.DType) -> ImageBinding:
    """Return the image that an annotation means. Raises ValueError for texels that no format has."""
    storage = origin in _STORAGE
    dimensions = (_STORAGE if storage else _SAMPLED)[origin]
    texel = _storage_texel(name, kind) if storage else _sampled_kind(kind)
    return ImageBinding(index, dimensions, name, texel, storage, origin in _ARRAYED)


def _sampled_kind(kind: dt.DType) -> dt.DType:
    """Return what sampling gives four of: an annotation of integers means an image of integers."""
    scalar = dt.component_type(kind)
    if not dt.is_integer_dtype(scalar):
        return dt.float32
    return dt.int32 if dt.is_signed_dtype(scalar) else dt.uint32


def _storage_texel(name: str, kind: dt.DType) -> dt.DType:
    scalar, count = dt.component_type(kind), dt.component_count(kind)
    plain = dt.is_scalar(kind) or dt.is_vector(kind)
    if not plain or scalar not in (dt.float32, dt.int32, dt.uint32):
        raise located(
            ArgumentValueError,
            f"argument {name!r}: the texels of a storage image are f32, i32 or u32, or vectors of 2 or 4 of "
            f"them, got {kind.name}",
        )
    if count == 3:
        raise located(
            ArgumentValueError, f"argument {name!r}: no device stores texels of three components; use four"
        )
    return kind


def _declare_value(
    recorder: Recorder, argument: str, name: str, kind: dt.DType
) -> tuple[ShaderVariable, Argument]:
    """Add a member `name` to the argument block; returns the value it gives, and the member."""
    if dt.is_buffer_only(kind):
        raise located(
            ArgumentValueError,
            f"argument {argument!r}: {kind.name} is only for buffers; use {dt.compute_type(kind).name}",
        )
    # a block holds no booleans
    member = recorder.add_argument(name, dt.uint32 if kind is dt.bool_ else kind)
    value = Expr(Op.ARGUMENT, member.dtype, (), member, here())
    return ShaderVariable(condition(value) if kind is dt.bool_ else value), member


def _hint(annotation: object) -> str:
    """Return what to write instead of a type of Python or NumPy."""
    if annotation is getattr(np, "ndarray", None):
        return "; annotate arrays as Buff[f32]"
    kind = dt.find_twin(annotation)
    return f"; annotate numbers as Const[vd.{kind}]" if kind else ""


def _describe(origin: object) -> str:
    """Return the name of a class of annotations, as users write it."""
    names: dict[object, str] = {Buffer: "Buff", Constant: "Const", Variable: "Var"}
    return names.get(origin) or str(getattr(origin, "__name__", origin))


def _split(name: str, annotation: object) -> tuple[Any, dt.DType, type[Any] | None]:
    """Return the class of an annotation, its dtype, and the dataclass that this is made of."""
    origin, args = getattr(annotation, "__origin__", None), getattr(annotation, "__args__", ())
    if origin is None or not args:
        raise located(
            ArgumentTypeError, f"argument {name!r}: {_WANTED}, got {annotation!r}{_hint(annotation)}"
        )
    if origin not in (Buffer, Constant, Variable, *_SAMPLED, *_STORAGE):
        raise located(ArgumentValueError, f"argument {name!r}: {_WANTED}, got {annotation!r}")
    if len(args) != 1:
        raise located(ArgumentValueError, f"argument {name!r}: {annotation!r} must have one dtype")
    (kind,) = args
    if origin is Buffer and derived_dtypes.is_dataclass(kind):
        try:
            return origin, derived_dtypes.structure_of(kind), kind
        except ArgumentValueError as error:
            raise located(ArgumentValueError, f"argument {name!r}: {error}") from None
    if not isinstance(kind, type) or not dt.is_dtype(kind):
        twin = dt.find_twin(kind)
        hint = "" if twin is None else f"; write vd.{twin}"
        if derived_dtypes.is_dataclass(kind):
            hint = f"; a dataclass is an argument by itself, {name}: {getattr(kind, '__name__', 'Class')}"
        elif isinstance(kind, type) and getattr(kind, "__annotations__", None):
            hint = f"; @dataclass makes a structure of {kind.__name__}"
        raise located(
            ArgumentTypeError,
            f"argument {name!r}: {_describe(origin)}[...] needs a dtype such as vd.float32, got "
            f"{kind!r}{hint}",
        )
    if derived_dtypes.is_structure(kind):
        raise located(
            ArgumentTypeError,
            f"argument {name!r}: elements of {kind.name} are no numbers; a kernel takes them as Buff[...] of "
            "a dataclass, a function on arrays takes a map that gives a field",
        )
    if not hasattr(kind, "item_size"):
        raise located(ArgumentValueError, f"argument {name!r}: {kind.__name__} is no complete dtype")
    if dt.is_array(kind):
        raise located(
            ArgumentTypeError,
            f"argument {name!r}: {_describe(origin)}[...] takes no array such as {kind.__name__}; make it "
            "the field of a dataclass"
            + (f", or take a buffer of {dt.item_of(kind).name} of several axes" if origin is Buffer else ""),
        )
    return origin, kind, None


def _declare_dataclass(
    recorder: Recorder, name: str, annotation: type[Any], default: Any
) -> tuple[Any, ShaderArgumentInfo]:
    members: dict[str, Argument] = {}
    instance = _declare_fields(recorder, name, (annotation,), "", members)
    info = ShaderArgumentInfo(
        name,
        ArgType.CONSTANT_DATACLASS,
        default,
        name,
        members=tuple(member.name for member in members.values()),
        member_dtypes=tuple(member.dtype for member in members.values()),
        fields=tuple(members),
    )
    return instance, info


def _declare_fields(
    recorder: Recorder, name: str, nesting: tuple[type[Any], ...], path: str, members: dict[str, Argument]
) -> Any:
    """Add the fields of the innermost of nested dataclasses to `members`; returns an instance of GPU values.

    `path` leads to it, as in "inner.".
    """
    annotation = nesting[-1]
    values: dict[str, Any] = {}
    for field, kind in derived_dtypes.field_types(annotation).items():
        if is_nested(kind) and kind not in nesting:
            values[field] = _declare_fields(recorder, name, (*nesting, kind), f"{path}{field}.", members)
            continue
        if isinstance(kind, derived_dtypes.FixedArray) or (
            isinstance(kind, type) and dt.is_dtype(kind) and dt.is_array(kind)
        ):
            values[field] = _declare_array(recorder, name, f"{path}{field}", kind, members)
            continue
        if not isinstance(kind, type) or not dt.is_dtype(kind) or not hasattr(kind, "item_size"):
            raise located(
                ArgumentValueError,
                f"argument {name!r}: field {field!r} of {annotation.__name__} must be a dtype such as "
                f"vd.float32, an array of fixed size such as vd.float32[4], or a dataclass of such, got "
                f"{kind!r}",
            )
        member = f"{name}_{path}{field}".replace(".", "_")
        values[field], members[path + field] = _declare_value(recorder, name, member, kind)
    return _instance(annotation, values)


def _declare_array(
    recorder: Recorder, name: str, path: str, kind: Any, members: dict[str, Argument]
) -> ItemArray:
    """Add the items of an array to `members`; returns the array, which is fixed.

    Each is a member of its own, so that the block has no arrays, which layouts pad.
    """
    owner = kind.owner if isinstance(kind, derived_dtypes.FixedArray) else None
    try:
        array = (
            kind
            if owner is None
            else derived_dtypes.wrap_array(derived_dtypes.structure_of(owner), kind.shape)
        )
    except ArgumentValueError as error:
        raise located(ArgumentValueError, f"argument {name!r}: {error}") from None
    shape = dt.array_shape(array)
    if math.prod(shape) > _MAX_ITEMS:
        raise located(
            ArgumentValueError,
            f"argument {name!r}: {path!r} has {math.prod(shape)} items, more than {_MAX_ITEMS}; pass a "
            "buffer",
        )
    registers: dict[tuple[str, ...], Expr] = {}
    for inner, leaf, _ in derived_dtypes.leaves_of(array):
        items: list[Expr] = []
        for position in itertools.product(*map(range, dt.array_shape(leaf))):
            place = _item_path(path, array, inner, position)
            member = place.translate(_AS_NAME)
            value, members[place] = _declare_value(recorder, name, f"{name}_{member}", dt.item_of(leaf))
            items.append(value.expr)
        label = "_".join((name, *path.split("."), *inner))
        whole = _nest(items, dt.compute_type(leaf))
        registers[inner] = recorder.declare(whole.dtype, whole, label, fixed=True)
    return ItemArray(registers.__getitem__, (), (), array, owner)


def _item_path(path: str, kind: dt.DType, inner: tuple[str, ...], position: Sequence[int]) -> str:
    """Return the path to an item: "lights[1].w[0]"."""
    rest = list(position)
    for name in (*inner, None):
        path += "".join(f"[{rest.pop(0)}]" for _ in dt.array_shape(kind))
        item = dt.item_of(kind)
        if name is not None:
            assert derived_dtypes.is_structure(item)
            path, field = f"{path}.{name}", derived_dtypes.field_type(item, name)
            assert field is not None
            kind = field
    return path


def _nest(items: list[Expr], kind: dt.DType) -> Expr:
    """Return an array made of its items, in row-major order."""
    if not dt.is_array(kind):
        return items[0]
    assert kind.child_type is not None
    length = len(items) // kind.child_count
    rows = [_nest(items[start : start + length], kind.child_type) for start in range(0, len(items), length)]
    return Expr(Op.CONSTRUCT, kind, tuple(rows), None, here())


def leaf_fields(annotation: type[Any], around: tuple[type[Any], ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a dataclass, of nested ones as "inner.field", and their types."""
    around = (*around, annotation)
    for field, kind in derived_dtypes.field_types(annotation).items():
        if is_nested(kind) and kind not in around:
            yield from ((f"{field}.{name}", inner) for name, inner in leaf_fields(kind, around))
        else:
            yield field, kind


def is_nested(kind: object) -> bool:
    """Whether a field of a dataclass is a dataclass itself."""
    return isinstance(kind, type) and hasattr(kind, "__dataclass_fields__") and not dt.is_dtype(kind)


def _instance(annotation: type[Any], values: dict[str, Any]) -> Any:
    # not through __init__, whose checks are meant for host values
    instance = object.__new__(annotation)
    for field, value in values.items():
        object.__setattr__(instance, field, value)
    return instance


# ---- Annotations of kernel arguments as values, for dtypes that are known at run time only ---------------
#
# Type checkers refuse `Buff[kind]` where `kind` is a variable; `buffer[kind]` is the same object, with a
# type.
