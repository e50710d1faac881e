"""Annotations of kernel arguments, and what each becomes inside the kernel."""

import dataclasses
import typing
from typing import Any, Generic, TypeVar

from vkdispatch.base.dtype import DType, bool_, compute_type, is_buffer_only, is_dtype, uint32
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.codegen.description import ArgType, ShaderArgumentInfo
from vkdispatch.codegen.expressions import condition
from vkdispatch.codegen.ir import Argument, Expr, Op
from vkdispatch.codegen.location import here, located
from vkdispatch.codegen.recording import Recorder
from vkdispatch.codegen.variables import BufferVariable, ImageVariable, ShaderVariable

_ArgType = TypeVar("_ArgType")


class Constant(ShaderVariable, Generic[_ArgType]):
    """`Const[D]`: a value of dtype D, fixed when the call is recorded."""


class Variable(ShaderVariable, Generic[_ArgType]):
    """`Var[D]`: a value of dtype D that a command graph may set anew for each submission."""


class Buffer(BufferVariable, Generic[_ArgType]):
    """`Buff[D]`: a buffer, seen as elements of dtype D."""


class Image1D(ImageVariable, Generic[_ArgType]):
    """`Img1[D]`: a sampled image of one dimension."""


class Image2D(ImageVariable, Generic[_ArgType]):
    """`Img2[D]`: a sampled image of two dimensions."""


class Image2DArray(ImageVariable, Generic[_ArgType]):
    """A sampled array of images of two dimensions."""


class Image3D(ImageVariable, Generic[_ArgType]):
    """`Img3[D]`: a sampled image of three dimensions."""


_IMAGE_DIMENSIONS: dict[Any, int] = {Image1D: 1, Image2D: 2, Image2DArray: 2, Image3D: 3}
_WANTED = "expected an annotation such as Buff[f32], Const[f32] or Var[f32], or a dataclass of dtypes"


def declare_argument(
    recorder: Recorder, name: str, annotation: Any, default: Any
) -> tuple[Any, ShaderArgumentInfo]:
    """Add an argument to a kernel; returns the variable that stands for it, and its description.

    Raises TypeError for an annotation without a dtype and ValueError for one that is not known.
    """
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        return _declare_dataclass(recorder, name, annotation, default)
    origin, kind = _split(name, annotation)
    if origin is Buffer:
        storage = recorder.add_storage(kind, name)
        return BufferVariable(storage), ShaderArgumentInfo(
            name, ArgType.BUFFER, default, storage.name, binding=storage.index, dtype=kind
        )
    if origin in _IMAGE_DIMENSIONS:
        image = recorder.add_image(_IMAGE_DIMENSIONS[origin], name)
        return ImageVariable(image), ShaderArgumentInfo(
            name, ArgType.IMAGE, default, image.name, binding=image.index, dtype=kind
        )
    arg_type = ArgType.CONSTANT if origin is Constant else ArgType.VARIABLE
    value, member = _declare_value(recorder, name, name, kind)
    return value, ShaderArgumentInfo(
        name,
        arg_type,
        default,
        member.name,
        dtype=kind,
        members=(member.name,),
        member_dtypes=(member.dtype,),
    )


def _declare_value(
    recorder: Recorder, argument: str, name: str, kind: DType
) -> tuple[ShaderVariable, Argument]:
    """Add a member `name` to the argument block; returns the value it gives, and the member."""
    if is_buffer_only(kind):
        raise located(
            ArgumentValueError,
            f"argument {argument!r}: {kind.name} lies in buffers only; use {compute_type(kind).name}",
        )
    # a block holds no truth values
    member = recorder.add_argument(name, uint32 if kind is bool_ else kind)
    value = Expr(Op.ARGUMENT, member.dtype, (), member, here())
    return ShaderVariable(condition(value) if kind is bool_ else value), member


def _split(name: str, annotation: Any) -> tuple[Any, DType]:
    origin, args = getattr(annotation, "__origin__", None), getattr(annotation, "__args__", ())
    if origin is None or not args:
        raise located(ArgumentTypeError, f"argument {name!r}: {_WANTED}, got {annotation!r}")
    if origin not in (Buffer, Constant, Variable, *_IMAGE_DIMENSIONS):
        raise located(ArgumentValueError, f"argument {name!r}: {_WANTED}, got {annotation!r}")
    if len(args) != 1:
        raise located(ArgumentValueError, f"argument {name!r}: {annotation!r} must have one dtype")
    (kind,) = args
    if not isinstance(kind, type) or not is_dtype(kind):
        raise located(
            ArgumentTypeError,
            f"argument {name!r}: {annotation!r} needs a dtype such as vd.float32, got {kind!r}",
        )
    if not hasattr(kind, "item_size"):
        raise located(ArgumentValueError, f"argument {name!r}: {kind.__name__} is no complete dtype")
    return origin, kind


def _declare_dataclass(
    recorder: Recorder, name: str, annotation: type[Any], default: Any
) -> tuple[Any, ShaderArgumentInfo]:
    kinds = _field_types(annotation)
    members: list[Argument] = []
    values: dict[str, ShaderVariable] = {}
    for field, kind in kinds.items():
        if not isinstance(kind, type) or not is_dtype(kind) or not hasattr(kind, "item_size"):
            raise located(
                ArgumentValueError,
                f"argument {name!r}: field {field!r} of {annotation.__name__} must be a dtype such as "
                f"vd.float32, got {kind!r}",
            )
        values[field], member = _declare_value(recorder, name, f"{name}_{field}", kind)
        members.append(member)
    info = ShaderArgumentInfo(
        name,
        ArgType.CONSTANT_DATACLASS,
        default,
        name,
        members=tuple(member.name for member in members),
        member_dtypes=tuple(member.dtype for member in members),
        fields=tuple(kinds),
    )
    return _instance(annotation, values), info


def _field_types(annotation: type[Any]) -> dict[str, Any]:
    try:
        hints = typing.get_type_hints(annotation)
    except Exception:
        # names that are not visible here: the fields' own annotations must do
        hints = {}
    return {field.name: hints.get(field.name, field.type) for field in dataclasses.fields(annotation)}


def _instance(annotation: type[Any], values: dict[str, ShaderVariable]) -> Any:
    # not through __init__, whose checks are meant for host values
    instance = object.__new__(annotation)
    for field, value in values.items():
        object.__setattr__(instance, field, value)
    return instance
