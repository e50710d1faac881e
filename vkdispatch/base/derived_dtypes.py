"""Dtypes made from dtypes: structures, the types that kernels make, and promotion."""

import copyreg
import functools
import math
import operator
import typing
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from vkdispatch.base import dtype
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.host_numpy import np
from vkdispatch.base.record import record

# ---- Types that kernels make -----------------------------------------------------------------------------
#
# Cooperative matrices, arrays of one invocation, members of blocks with strides.


@dtype.cache
def cooperative_type(scalar: dtype.DType, rows: int, columns: int, use: str, scope: str) -> dtype.DType:
    """Type of a matrix that a "subgroup" or a "workgroup" holds together.

    `use` is its role in a product: "a", "b" or "accumulator".
    """
    glsl = "bfloat16_t" if scalar is dtype.bfloat16 else scalar.glsl_type
    role = f"gl_MatrixUse{use.title()}"
    title = f"cooperative_{scalar.name}_{rows}x{columns}_{use}"
    properties = {
        "name": f"{scope} matrix {use} of {rows}x{columns} {scalar.name}",
        "glsl_type": f"coopmat<{glsl}, gl_Scope{scope.title()}, {rows}, {columns}, {role}>",
        "item_size": rows * columns * scalar.item_size,
        "child_count": rows * columns,
        "shape": (rows, columns),
        "rows": rows,
        "columns": columns,
        "use": use,
        "scope": scope,
    }
    return _make_type(title, dtype.Cooperative, scalar, (rows, columns), properties)


def _make_type(
    title: str, base: type[Any], kind: dtype.DType, axes: tuple[int, ...], properties: dict[str, Any]
) -> dtype.DType:
    """Return a type of values of type `kind` along axes of a NumPy array."""
    made: dtype.DType = type(
        title,
        (base,),
        {
            "format_str": kind.format_str,
            "child_type": kind,
            "scalar": dtype.component_type(kind),
            "numpy_shape": axes,
            "true_numpy_shape": axes,
            **properties,
        },
    )
    return made


@dtype.cache
def array_type(kind: dtype.DType, count: int) -> dtype.DType:
    """Type of an array in one invocation or structure, of `count` values of type `kind`."""
    axes, item = (count, *dtype.array_shape(kind)), dtype.item_of(kind)
    name = f"{item.name}[{', '.join(map(str, axes))}]"
    properties = {
        "name": name,
        "glsl_type": item.glsl_type + "".join(f"[{axis}]" for axis in axes),
        "item_size": count * kind.item_size,
        "child_count": count,
        "shape": (count, *kind.shape),
    }
    made = _make_type(name, dtype.LocalArray, kind, (count, *kind.true_numpy_shape), properties)
    if dtype.compute_type(kind) is not kind:
        dtype.COMPUTED_AS[made] = array_type(dtype.compute_type(kind), count)
    return made


def wrap_array(kind: dtype.DType, shape: Sequence[int]) -> dtype.DType:
    """Type of an array of a shape, of values of type `kind`; `kind` itself without axes."""
    for count in reversed(shape):
        kind = array_type(kind, count)
    return kind


@dtype.cache
def placed_type(
    name: str, kind: dtype.DType, shape: tuple[int, ...], strides: tuple[int, ...]
) -> dtype.DType:
    """Type of a member of a block: an array of shape `shape` of scalars or complex numbers of type `kind`.

    `strides` has the bytes between elements along each axis, and for a complex type also the bytes between
    the real and the imaginary part. The size ends with the last component: trailing padding does not count.
    """
    counts = (*shape, 2) if dtype.is_complex(kind) else shape
    last = sum((count - 1) * stride for count, stride in zip(counts, strides, strict=True))
    properties = {
        "name": name,
        "glsl_type": kind.glsl_type,
        "item_size": last + dtype.component_type(kind).item_size,
        "child_count": math.prod(shape),
        "shape": counts,
        "strides": strides,
    }
    return _make_type(name, dtype.Placed, kind, shape, properties)


# ---- Structures: dtypes with named fields, made from dataclasses or from structured dtypes of NumPy ------


class _StructureType(type):
    """Class of the structures. They are made at run time, so a pickle holds their fields."""

    @property
    def host(cls) -> "np.dtype[Any]":
        """The NumPy dtype."""
        return _host_dtype(cls)


class Structure(dtype.Single, metaclass=_StructureType):
    """Base class of structures. Structures with equal fields are the same class.

    Attributes
    ----------
    fields
        Name, dtype and byte offset of each field, in order.
    alignment
        Bytes; offsets of the structure within another one are multiples of it.
    """

    glsl_type = "struct"
    format_str = "%s"
    fields: ClassVar[tuple[tuple[str, dtype.DType, int], ...]]
    alignment: ClassVar[int]


def is_structure(kind: object) -> typing.TypeGuard[type[Structure]]:
    """Whether `kind` is a structure."""
    return isinstance(kind, type) and issubclass(kind, Structure)


def leaves_of(kind: dtype.DType) -> Iterator[tuple[tuple[str, ...], dtype.DType, int]]:
    """Yield path, dtype and byte offset of every leaf of a structure, or of another dtype itself.

    Leaves in arrays, and in arrays of structures, are arrays with all axes on the path.
    """
    item = dtype.item_of(kind)
    if not is_structure(item):
        yield (), kind, 0
        return
    shape = dtype.array_shape(kind)
    for name, field, offset in item.fields:
        for path, leaf, within in leaves_of(field):
            yield (name, *path), wrap_array(leaf, shape), offset + within


def leaf_type(kind: dtype.DType, path: tuple[str, ...]) -> dtype.DType:
    """Return the dtype of a leaf; see `leaves_of`."""
    return next(leaf for place, leaf, _ in leaves_of(kind) if place == path)


def field_type(kind: type[Structure], name: str) -> dtype.DType | None:
    """Return the dtype of a field, or None if there is none of the name."""
    return next((field for label, field, _ in kind.fields if label == name), None)


def strides_along(kind: dtype.DType, path: tuple[str, ...]) -> tuple[int, ...]:
    """Return the bytes from one item to the next, of each axis of the arrays on the path to a leaf."""
    strides: list[int] = []
    for name in (*path, None):
        while dtype.is_array(kind):
            assert kind.child_type is not None
            kind = kind.child_type
            strides.append(kind.item_size)
        if name is not None:
            assert is_structure(kind)
            field = field_type(kind, name)
            assert field is not None
            kind = field
    return tuple(strides)


@record
class FixedArray:
    """The annotation of a field that is an array of a dataclass; see `fixed_array`."""

    owner: type[Any]
    shape: tuple[int, ...]


def fixed_array(kind: Any, *shape: int) -> Any:
    """Return the type of an array of fixed shape, for a field of a structure.

    `vd.float32[4]` and `vd.float32[3, 4]` are the same as `vd.fixed_array(vd.float32, 4)` and
    `vd.fixed_array(vd.float32, 3, 4)`. The items of an array may also be a dataclass. They lie in C order
    without padding, as in NumPy.

    Raises
    ------
    TypeError
        `kind` is no dtype or dataclass, or a size is no int.
    ValueError
        A size is less than 1, or there is none.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Filter:
    ...     weights: vd.float32[4]
    ...     centers: vd.fixed_array(vd.vec2, 2)
    >>> vd.Buffer(10, Filter).read(0).dtype["weights"]
    dtype(('<f4', (4,)))
    """
    if not shape:
        raise ArgumentValueError("fixed_array: an array needs at least one size")
    for count in shape:
        if isinstance(count, bool) or not hasattr(count, "__index__"):
            raise ArgumentTypeError(f"fixed_array: a size of an array must be an int, got {count!r}")
        if count < 1:
            raise ArgumentValueError(f"fixed_array: a size of an array must be at least 1, got {count}")
    axes = tuple(operator.index(count) for count in shape)
    if isinstance(kind, FixedArray):
        return FixedArray(kind.owner, (*axes, *kind.shape))
    if is_dataclass(kind):
        return FixedArray(kind, axes)
    if not (isinstance(kind, type) and issubclass(kind, dtype.dtype) and hasattr(kind, "item_size")):
        raise ArgumentTypeError(f"fixed_array: expected a dtype or a dataclass, got {kind!r}")
    return wrap_array(kind, axes)


@functools.cache
def structure(fields: tuple[tuple[str, dtype.DType], ...]) -> type[Structure]:
    """Return the structure with these fields, each at a multiple of its alignment, as in C.

    This is also GLSL's scalar block layout and that of NumPy with `align=True`. Raises ValueError if there
    are no fields.
    """
    if not fields:
        raise ArgumentValueError("a structure needs at least one field")
    placed: list[tuple[str, dtype.DType, int]] = []
    end, most = 0, 1
    for name, kind in fields:
        item = dtype.item_of(kind)
        alignment = item.alignment if is_structure(item) else dtype.component_type(item).item_size
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
            "item_size": size,
            "fields": tuple(placed),
            "alignment": most,
        },
    )
    return made  # type: ignore[no-any-return]


def _reduce_structure(kind: type[Any]) -> "str | tuple[Any, ...]":
    return "Structure" if kind is Structure else as_pickled(kind).__reduce__()


copyreg.pickle(_StructureType, _reduce_structure)


class _Pickled:
    """What makes a structure or an array, and becomes the type when it is unpickled."""

    def __init__(self, make: Any, *arguments: Any) -> None:
        self.make = make
        self.arguments = arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return self.make, self.arguments


def as_pickled(value: Any) -> Any:
    """Return what to pickle in place of a value that may be a structure.

    cloudpickle takes no notice of `copyreg` for classes: it would copy a structure as another class.
    """
    if is_structure(value):
        return _Pickled(structure, tuple((name, as_pickled(field)) for name, field, _ in value.fields))
    if isinstance(value, type) and issubclass(value, dtype.dtype) and dtype.is_array(value):
        return _Pickled(wrap_array, as_pickled(dtype.item_of(value)), dtype.array_shape(value))
    return value


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


def _host_format(kind: dtype.DType) -> Any:
    if dtype.is_array(kind):
        item = _host_format(dtype.item_of(kind))
        base, tail = item if isinstance(item, tuple) else (item, ())
        return base, (*dtype.array_shape(kind), *tail)
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
    """Return the structure of a dataclass whose fields are dtypes, dataclasses of them, or arrays of these.

    Raises
    ------
    ValueError
        A field has another type, or one that NumPy lacks (bfloat16, complex32).
    """
    fields: list[tuple[str, dtype.DType]] = []
    for name, kind in field_types(owner).items():
        if isinstance(kind, FixedArray):
            kind = wrap_array(structure_of(kind.owner), kind.shape)
        elif is_dataclass(kind):
            kind = structure_of(kind)
        if not (isinstance(kind, type) and issubclass(kind, dtype.dtype) and hasattr(kind, "item_size")):
            hint = ""
            if getattr(getattr(kind, "__origin__", None), "__name__", "") == "Buffer":
                hint = (
                    "; a structure holds no buffer: pass the buffer as an argument of its own, and let the "
                    "structure hold an index into it"
                )
            raise ArgumentValueError(
                f"{owner.__name__}.{name}: a field of a structure is a dtype such as vd.float32, an array of "
                f"fixed size such as vd.float32[4], or a dataclass of such fields, got {kind!r}{hint}"
            )
        item = dtype.item_of(kind)
        if item in (dtype.bfloat16, dtype.complex32):
            raise ArgumentValueError(
                f"{owner.__name__}.{name}: a structure cannot have a field of {item.name}, which NumPy "
                f"lacks; use {'uint16 or float32' if item is dtype.bfloat16 else 'hvec2'}"
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


def _from_field(name: str, host: np.dtype[Any]) -> dtype.DType:
    base, shape = host.subdtype or (host, ())
    if base.names is not None:
        return wrap_array(structure_from_numpy(base), shape)
    try:
        scalar = dtype.from_numpy_dtype(base.newbyteorder("="))
        if not shape:
            return scalar
    except ArgumentValueError:
        raise ArgumentValueError(
            f"field {name!r}: no dtype matches NumPy's {host}: a field is a number, a structure, or an array "
            "of these"
        ) from None
    return _of_numbers(scalar, shape)


def _of_numbers(scalar: dtype.DType, shape: tuple[int, ...]) -> dtype.DType:
    """Return the type of numbers along axes: a vector or matrix where there is one, else an array."""
    try:
        if len(shape) == 1 and shape[0] > 1:
            return dtype.to_vector(scalar, shape[0])
        if scalar is dtype.float32 and len(shape) == 2 and shape[0] == shape[1]:
            return dtype.to_matrix(shape[0])
    except ArgumentValueError:
        pass  # there is none
    return wrap_array(scalar, shape)


@dtype.cache
def memory_type(kind: dtype.DType) -> dtype.DType:
    """Return the type of what lies in a buffer, which knows no more than NumPy: a vector is as an array.

    Structures whose NumPy dtypes are equal have the same. Other dtypes than structures and arrays stay.
    """
    item, shape = dtype.item_of(kind), dtype.array_shape(kind)
    if is_structure(item):
        inner = structure(tuple((name, memory_type(field)) for name, field, _ in item.fields))
        return wrap_array(inner, shape)
    if dtype.is_complex(item):
        return kind
    return _of_numbers(dtype.component_type(item), (*shape, *item.true_numpy_shape))


def as_structure(kind: type[Structure], array: "np.ndarray[Any, Any]", what: str) -> "np.ndarray[Any, Any]":
    """Return a structured array with the field offsets of a structure.

    Raises
    ------
    TypeError
        The array has other fields.
    """
    if array.dtype == kind.host:
        return array
    if array.dtype.hasobject or structure_from_numpy(array.dtype) is not memory_type(kind):
        raise ArgumentTypeError(f"{what}: expected an array of {kind.host}, got one of {array.dtype}")
    return array.astype(kind.host)


# ---- The promotion of dtypes: in which dtype two values meet, in `+` and `-` and in products -------------


def cross_scalar_scalar(dtype1: dtype.DType, dtype2: dtype.DType) -> dtype.DType:
    """Promoted type of two scalar types. bool_ counts as int32."""
    if not dtype.is_scalar(dtype1) or not dtype.is_scalar(dtype2):
        raise ArgumentValueError(
            f"cross_scalar_scalar: {dtype1.name} and {dtype2.name} are not both scalar types"
        )
    first, second = (dtype.int32 if kind is dtype.bool_ else kind for kind in (dtype1, dtype2))
    return first if dtype.RANKS[first] >= dtype.RANKS[second] else second


def cross_vector_scalar(dtype1: dtype.DType, dtype2: dtype.DType) -> dtype.DType:
    """Promoted type of a vector and a scalar type."""
    if not dtype.is_vector(dtype1) or not dtype.is_scalar(dtype2):
        raise ArgumentValueError(
            f"cross_vector_scalar: expected a vector and a scalar type, got {dtype1.name} and {dtype2.name}"
        )
    return dtype.to_vector(cross_scalar_scalar(dtype.component_type(dtype1), dtype2), dtype1.child_count)


def cross_vector_vector(dtype1: dtype.DType, dtype2: dtype.DType) -> dtype.DType:
    """Promoted type of two vector types of equal length. Raises ValueError if the lengths differ."""
    if not dtype.is_vector(dtype1) or not dtype.is_vector(dtype2) or dtype1.child_count != dtype2.child_count:
        raise ArgumentValueError(
            f"{dtype1.name} and {dtype2.name} cannot be combined: vectors must have the same length"
        )
    return dtype.to_vector(
        cross_scalar_scalar(dtype.component_type(dtype1), dtype.component_type(dtype2)), dtype1.child_count
    )


def cross_vector(dtype1: dtype.DType, dtype2: dtype.DType) -> dtype.DType:
    """Promoted type of a vector type and a vector or scalar type."""
    if dtype.is_vector(dtype2):
        return cross_vector_vector(dtype1, dtype2)
    if dtype.is_scalar(dtype2):
        return cross_vector_scalar(dtype1, dtype2)
    raise ArgumentValueError(
        f"{dtype1.name} and {dtype2.name} cannot be combined: a vector needs a vector or a scalar"
    )


def cross_matrix(dtype1: dtype.DType, dtype2: dtype.DType) -> dtype.DType:
    """Promoted type of a matrix type and the same matrix type or a scalar type."""
    if dtype1 is dtype2 or dtype.is_scalar(dtype2):
        return dtype1
    raise ArgumentValueError(
        f"{dtype1.name} and {dtype2.name} cannot be combined: a matrix needs an equal matrix or a scalar"
    )


def _cross_complex(a: dtype.DType, b: dtype.DType) -> dtype.DType:
    if dtype.is_vector(b) or dtype.is_matrix(b):
        raise ArgumentValueError(f"{a.name} and {b.name} cannot be combined: a complex number needs a number")
    real = dtype.make_floating_dtype(dtype.component_type(b))
    return dtype.complex_from_float(cross_scalar_scalar(dtype.component_type(a), real))


@dtype.cache
def cross_type(dtype1: dtype.DType, dtype2: dtype.DType) -> dtype.DType:
    """Promoted type of two types in `+` and `-`. Raises ValueError if there is none.

    Examples
    --------
    >>> from vkdispatch.base.dtype import cross_type
    >>> cross_type(vd.int32, vd.float32)
    <class 'vkdispatch.base.dtype.float32'>
    """
    for first, second in ((dtype1, dtype2), (dtype2, dtype1)):
        if dtype.is_complex(first):
            return _cross_complex(first, second)
        if dtype.is_matrix(first):
            return cross_matrix(first, second)
    if dtype.is_vector(dtype1):
        return cross_vector(dtype1, dtype2)
    if dtype.is_vector(dtype2):
        return cross_vector(dtype2, dtype1)
    return cross_scalar_scalar(dtype1, dtype2)


def cross_multiply_type(dtype1: dtype.DType, dtype2: dtype.DType) -> dtype.DType:
    """Type of a product: that of `cross_type`, but the vector if a matrix meets a vector of its size.

    Examples
    --------
    >>> from vkdispatch.base.dtype import cross_multiply_type
    >>> cross_multiply_type(vd.float32, vd.vec2)
    <class 'vkdispatch.base.dtype.vec2'>
    """
    for matrix, vector in ((dtype1, dtype2), (dtype2, dtype1)):
        if dtype.is_matrix(matrix) and dtype.is_vector(vector):
            if vector is not matrix.child_type:
                raise ArgumentValueError(
                    f"{dtype1.name} * {dtype2.name}: the matrix needs a float32 vector of its own size"
                )
            return vector
    return cross_type(dtype1, dtype2)


def vector_like(scalar: dtype.DType, kind: dtype.DType) -> dtype.DType:
    """Return a scalar type, or its vectors with as many components as `kind`."""
    return dtype.to_vector(scalar, kind.child_count) if dtype.is_vector(kind) else scalar
