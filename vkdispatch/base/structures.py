"""Structures: dtypes with named fields, made from dataclasses or from structured dtypes of NumPy."""

import copyreg
import functools
import typing
from collections.abc import Iterator
from typing import Any, ClassVar

from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.host_numpy import np


class _StructureType(type):
    """Class of the structures. They are made at run time, so a pickle holds their fields."""

    @property
    def host(cls) -> "np.dtype[Any]":
        """The NumPy dtype."""
        return _host_dtype(cls)


class Structure(dtype.dtype, metaclass=_StructureType):
    """Base class of structures. Structures with equal fields are the same class.

    Attributes
    ----------
    fields
        Name, dtype and byte offset of each field, in order.
    alignment
        Bytes; offsets of the structure within another one are multiples of it.
    """

    fields: ClassVar[tuple[tuple[str, DType, int], ...]]
    alignment: ClassVar[int]


def is_structure(kind: object) -> typing.TypeGuard[type[Structure]]:
    """Whether `kind` is a structure."""
    return isinstance(kind, type) and issubclass(kind, Structure)


def leaves_of(kind: DType) -> Iterator[tuple[tuple[str, ...], DType, int]]:
    """Yield path, dtype and byte offset of every leaf of a structure, or of another dtype itself."""
    if not is_structure(kind):
        yield (), kind, 0
        return
    for name, field, offset in kind.fields:
        for path, leaf, within in leaves_of(field):
            yield (name, *path), leaf, offset + within


@functools.cache
def structure(fields: tuple[tuple[str, DType], ...]) -> type[Structure]:
    """Return the structure with these fields, each at a multiple of its alignment, as in C.

    This is also GLSL's scalar block layout and that of NumPy with `align=True`. Raises ValueError if there
    are no fields.
    """
    if not fields:
        raise ArgumentValueError("a structure needs at least one field")
    placed: list[tuple[str, DType, int]] = []
    end, most = 0, 1
    for name, kind in fields:
        alignment = kind.alignment if is_structure(kind) else dtype.component_type(kind).item_size
        offset = -(-end // alignment) * alignment
        placed.append((name, kind, offset))
        end, most = offset + kind.item_size, max(most, alignment)
    size = -(-end // most) * most
    text = ", ".join(f"{name}: {kind.name}" for name, kind in fields)
    made: Any = _StructureType(
        "Structure",
        (Structure,),
        {
            "__doc__": f"Structure of the fields {text}.",
            "name": f"structure({text})",
            "glsl_type": "struct",
            "item_size": size,
            "format_str": "%s",
            "dimentions": 0,
            "child_type": None,
            "child_count": 0,
            "scalar": None,
            "shape": (1,),
            "numpy_shape": (1,),
            "true_numpy_shape": (),
            "fields": tuple(placed),
            "alignment": most,
        },
    )
    return made  # type: ignore[no-any-return]


def _reduce_structure(kind: type[Any]) -> "str | tuple[Any, ...]":
    if kind is Structure:
        return "Structure"
    return structure, (tuple((name, field) for name, field, _ in kind.fields),)


copyreg.pickle(_StructureType, _reduce_structure)


class _Fields:
    """What a structure is made of, which becomes the structure when it is unpickled."""

    def __init__(self, kind: type[Structure]) -> None:
        self.kind = kind

    def __reduce__(self) -> tuple[Any, ...]:
        return structure, (tuple((name, as_pickled(field)) for name, field, _ in self.kind.fields),)


def as_pickled(value: Any) -> Any:
    """Return what to pickle in place of a value that may be a structure.

    cloudpickle takes no notice of `copyreg` for classes: it would copy a structure as another class.
    """
    return _Fields(value) if is_structure(value) else value


@functools.cache
def _host_dtype(kind: Any) -> "np.dtype[Any]":
    return np.dtype(
        {
            "names": [name for name, _, _ in kind.fields],
            "formats": [_host_format(field) for _, field, _ in kind.fields],
            "offsets": [offset for _, _, offset in kind.fields],
            "itemsize": kind.item_size,
        }
    )


def _host_format(kind: DType) -> Any:
    if is_structure(kind):
        return kind.host
    if dtype.is_complex(kind):
        return np.dtype(dtype.to_numpy_dtype(kind))
    component = np.dtype(dtype.to_numpy_dtype(dtype.component_type(kind)))
    return (component, kind.true_numpy_shape) if kind.true_numpy_shape else component


def field_types(owner: type[Any]) -> dict[str, Any]:
    """Return the annotations of the fields of a dataclass; strings are evaluated if possible.

    For `Const[D]`, which type checkers match with numbers, it returns D.
    """
    try:
        hints = typing.get_type_hints(owner)
    except Exception:
        # Some names are not visible here: use the annotations as they are.
        hints = {}
    fields = owner.__dataclass_fields__.values()
    return {field.name: _strip_constant(hints.get(field.name, field.type)) for field in fields}


def _strip_constant(annotation: Any) -> Any:
    constant = getattr(getattr(annotation, "__origin__", None), "is_constant", False)
    return annotation.__args__[0] if constant else annotation


def is_dataclass(value: object) -> typing.TypeGuard[type[Any]]:
    """Whether a value is a dataclass (not an instance)."""
    return isinstance(value, type) and hasattr(value, "__dataclass_fields__")


def structure_of(owner: type[Any]) -> type[Structure]:
    """Return the structure of a dataclass whose fields are dtypes, or dataclasses of them.

    Raises
    ------
    ValueError
        A field has another type, or one that NumPy lacks (bfloat16, complex32).
    """
    fields: list[tuple[str, DType]] = []
    for name, kind in field_types(owner).items():
        if is_dataclass(kind):
            kind = structure_of(kind)
        if not (isinstance(kind, type) and issubclass(kind, dtype.dtype) and hasattr(kind, "item_size")):
            raise ArgumentValueError(
                f"{owner.__name__}.{name}: a field of a structure is a dtype such as vd.float32, or a "
                f"dataclass of such fields, got {kind!r}"
            )
        if kind in (dtype.bfloat16, dtype.complex32):
            raise ArgumentValueError(
                f"{owner.__name__}.{name}: a structure cannot have a field of {kind.name}, which NumPy "
                f"lacks; use {'uint16 or float32' if kind is dtype.bfloat16 else 'hvec2'}"
            )
        fields.append((name, kind))
    return structure(tuple(fields))


def structure_from_numpy(host: np.dtype[Any]) -> type[Structure]:
    """Return the structure with the fields of a NumPy structured dtype, whatever their offsets.

    Raises
    ------
    ValueError
        A field has no dtype.
    """
    assert host.names is not None and host.fields is not None
    return structure(tuple((name, _from_field(name, host.fields[name][0])) for name in host.names))


def _from_field(name: str, host: np.dtype[Any]) -> DType:
    base, shape = host.subdtype or (host, ())
    if base.names is not None and not shape:
        return structure_from_numpy(base)
    try:
        scalar = dtype.from_numpy_dtype(base.newbyteorder("="))
        if not shape:
            return scalar
        if len(shape) == 1:
            return dtype.to_vector(scalar, shape[0])
        if scalar is dtype.float32 and len(shape) == 2 and shape[0] == shape[1]:
            return dtype.to_matrix(shape[0])
    except ArgumentValueError:
        pass
    raise ArgumentValueError(
        f"field {name!r}: no dtype matches NumPy's {host}: a field is a number, a vector of 2 to 4 "
        "numbers, a square float32 matrix, or a structure"
    )


def as_structure(kind: type[Structure], array: "np.ndarray[Any, Any]", what: str) -> "np.ndarray[Any, Any]":
    """Return a structured array with the field offsets of a structure.

    Raises
    ------
    TypeError
        The array has other fields.
    """
    if array.dtype == kind.host:
        return array
    if array.dtype.hasobject or structure_from_numpy(array.dtype) is not kind:
        raise ArgumentTypeError(f"{what}: expected an array of {kind.host}, got one of {array.dtype}")
    return array.astype(kind.host)
