"""The arguments of a kernel given as GLSL or SPIR-V, as the user declares them."""

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.derived_dtypes import FixedArray
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.codegen import BindingType
from vkdispatch.codegen.arguments import image_binding, is_image, leaf_fields
from vkdispatch.compiler.ir import ImageBinding

Place = tuple[int, int]
_WANTED = "Buff[...], Const[...], Var[...], Img2[...], a dataclass of dtypes, dict or a dictionary of dtypes"
_MOST_FIELDS = 4096


@record
class Field:
    """A value of an argument: its path in the argument, its dtype, and the shape if it is an array."""

    path: str
    kind: DType
    shape: tuple[int, ...] = ()

    def __str__(self) -> str:
        return self.kind.name + "".join(f"[{count}]" for count in self.shape)


@record
class RawArgument:
    """An argument as the user declares it.

    Attributes
    ----------
    origin
        The annotation's class, such as `vc.Buffer`, or a dataclass, or dict.
    fields
        Its values; None for `dict`, which takes those of the code.
    place
        Set and binding, or the name of a block, if the user gave one.
    """

    name: str
    origin: Any
    fields: tuple[Field, ...] | None
    place: Place | str | None = None

    @property
    def is_resource(self) -> bool:
        """Whether it is bound rather than passed by value."""
        return self.origin is vc.Buffer or is_image(self.origin)

    @property
    def is_tree(self) -> bool:
        """Whether calls give it as a dataclass or a dictionary."""
        return self.by_name or (isinstance(self.origin, type) and dataclasses.is_dataclass(self.origin))

    @property
    def by_name(self) -> bool:
        """Whether its values go only to members of the same names."""
        return self.origin is dict

    @property
    def kind(self) -> DType:
        """The dtype of a resource's elements, or of a single value."""
        assert self.fields is not None
        return self.fields[0].kind

    @property
    def image(self) -> ImageBinding | None:
        """The image, or None. Raises ValueError for texels that no format has."""
        return image_binding(0, self.name, self.origin, self.kind) if is_image(self.origin) else None

    @property
    def binding_type(self) -> BindingType:
        """How a resource is bound, unless the code has a uniform block there."""
        image = self.image
        if image is None:
            return BindingType.STORAGE_BUFFER
        return BindingType.STORAGE_IMAGE if image.storage else BindingType.SAMPLER

    def __str__(self) -> str:
        kinds = ", ".join(map(str, self.fields or ()))
        called = getattr(self.origin, "__name__", self.origin)
        return f"argument {self.name!r} ({called}{' of ' if kinds else ''}{kinds})"


def read_arguments(arguments: object) -> tuple[RawArgument, ...]:
    """Parse the `arguments` of `glsl_kernel` or `spirv_kernel`.

    Raises
    ------
    TypeError
        They are not pairs of name and annotation, or an annotation has no dtype.
    ValueError
        A name is not a Python name or occurs twice, or an annotation is not supported.
    """
    if isinstance(arguments, Mapping):
        arguments = list(arguments.items())
    if isinstance(arguments, (str, bytes)) or not isinstance(arguments, Sequence):
        raise ArgumentTypeError(
            "arguments: expected a list such as [('data', Buff[f32]), ('alpha', Const[f32])], "
            f"got {arguments!r}"
        )
    found: list[RawArgument] = []
    for item in arguments:
        if not isinstance(item, (tuple, list)) or len(item) not in (2, 3):
            raise ArgumentTypeError(
                f"arguments: expected (name, annotation) or (name, annotation, binding), got {item!r}"
            )
        name, annotation, *place = item
        if not isinstance(name, str) or not name.isidentifier():
            raise ArgumentValueError(f"arguments: expected a Python name, got {name!r}")
        if name in [argument.name for argument in found]:
            raise ArgumentValueError(f"arguments: {name!r} is there twice")
        found.append(_parse_argument(name, annotation, _parse_place(name, place[0]) if place else None))
    return tuple(found)


def _parse_place(name: str, value: object) -> Place | str:
    if isinstance(value, str) and value:
        return value
    numbers = value if isinstance(value, tuple) else (0, value)
    match numbers:
        case (int(in_set), int(binding)) if in_set >= 0 and binding >= 0:
            return (in_set, binding)
    raise ArgumentValueError(
        f"argument {name!r}: expected a binding, a tuple of set and binding, or the name of a block, got "
        f"{value!r}"
    )


def _parse_argument(name: str, annotation: Any, place: Place | str | None) -> RawArgument:
    if annotation is dict:
        return RawArgument(name, dict, None, place)
    if isinstance(annotation, Mapping):
        fields = tuple(_read_fields(f"argument {name!r}", annotation))
        if not fields:
            raise ArgumentValueError(f"argument {name!r}: expected {_WANTED}, got {annotation!r}")
        return RawArgument(name, dict, fields, place)
    if _is_dataclass(annotation):
        return RawArgument(name, annotation, tuple(_read_fields(f"argument {name!r}", annotation)), place)
    origin = getattr(annotation, "__origin__", None)
    kinds: tuple[Any, ...] = getattr(annotation, "__args__", ())
    if origin is None or len(kinds) != 1:
        raise ArgumentTypeError(f"argument {name!r}: expected {_WANTED}, got {annotation!r}")
    if origin not in (vc.Buffer, vc.Constant, vc.Variable) and not is_image(origin):
        raise ArgumentValueError(f"argument {name!r}: expected {_WANTED}, got {annotation!r}")
    return RawArgument(name, origin, (Field("", _parse_kind(f"argument {name!r}", kinds[0])),), place)


def _is_dataclass(annotation: object) -> bool:
    return isinstance(annotation, type) and dataclasses.is_dataclass(annotation)


def _parse_kind(who: str, kind: Any) -> DType:
    if not (isinstance(kind, type) and dtype.is_dtype(kind) and hasattr(kind, "item_size")):
        raise ArgumentTypeError(f"{who}: expected a dtype such as vd.float32, got {kind!r}")
    return kind


def _read_fields(who: str, annotation: Any, prefix: str = "") -> Iterator[Field]:
    """Yield the values of a dataclass or a dictionary of dtypes."""
    if _is_dataclass(annotation):
        for path, kind in leaf_fields(annotation):
            if isinstance(kind, FixedArray):
                yield from _read_member(who, prefix + path, (kind.owner, kind.shape))
                continue
            if isinstance(kind, type) and dtype.is_dtype(kind) and dtype.is_array(kind):
                yield from _read_member(who, prefix + path, (dtype.item_of(kind), dtype.array_shape(kind)))
                continue
            yield Field(prefix + path, _parse_kind(f"{who}: {prefix + path!r}" if prefix else who, kind))
        return
    for key, kind in annotation.items():
        if not isinstance(key, str) or not key.isidentifier():
            raise ArgumentValueError(f"{who}: expected names of members, got {key!r}")
        yield from _read_member(who, prefix + key, kind)


def _read_member(who: str, path: str, kind: Any) -> Iterator[Field]:
    shape: tuple[int, ...] = ()
    if isinstance(kind, tuple) and len(kind) == 2:
        kind, counts = kind
        shape = counts if isinstance(counts, tuple) else (counts,)
        if not all(type(count) is int and count > 0 for count in shape):
            raise ArgumentValueError(
                f"{who}: {path!r}: expected an array as (dtype, length) or (dtype, shape), got {shape!r}"
            )
        if math.prod(shape) > _MOST_FIELDS and (isinstance(kind, Mapping) or _is_dataclass(kind)):
            raise ArgumentValueError(f"{who}: {path!r}: {math.prod(shape)} structures; bind a buffer")
    if getattr(kind, "__origin__", None) in (vc.Constant, vc.Variable):
        (kind,) = kind.__args__
    if not isinstance(kind, Mapping) and not _is_dataclass(kind):
        yield Field(path, _parse_kind(f"{who}: {path!r}", kind), shape)
    elif not shape:
        yield from _read_fields(who, kind, f"{path}.")
    else:
        for index in range(shape[0]):
            yield from _read_member(who, f"{path}[{index}]", (kind, shape[1:]) if shape[1:] else kind)
