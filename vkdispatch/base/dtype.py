"""Data types of kernels and buffers: the classes, their properties, and the matching NumPy dtypes.

A dtype is a class and is never instantiated. All memory that host and device share is C-ordered without
padding ("scalar block layout"): a vec3 takes 12 bytes, and each value is aligned to the size of its scalar
component. `vkdispatch.base.derived_dtypes` has promotion and the types that kernels make.
"""
# The class names follow shading languages.
# ruff: noqa: N801

import functools
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from vkdispatch.base import names_elsewhere
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.host_numpy import np, require
from vkdispatch.base.record import record

if TYPE_CHECKING:
    from vkdispatch.base.kernel_values import Value
else:
    Value = object

_Function = TypeVar("_Function", bound=Callable[..., Any])


def cache(function: _Function) -> _Function:
    """Cache the results of a function of dtypes, which tracing calls many times, and keep its signature."""
    return cast(_Function, functools.cache(function))


class dtype(Value):
    """Base class of all data types.

    Attributes
    ----------
    name
        The name in `vkdispatch`, such as "float32" or "vec3".
    item_size
        Bytes of one element in memory.
    glsl_type
        The name of the type in GLSL.
    dimentions
        0 for scalars and complex numbers, 1 for vectors, 2 for matrices.
    format_str
        printf format of a value.
    child_type, child_count
        Type and number of the items that indexing a value gives (None and 0 for scalars).
    scalar
        Scalar type of the components of a vector or matrix; None for scalars and complex numbers.
    shape, numpy_shape, true_numpy_shape
        Shape of a value: its components; and, padded to at least one axis or not, its axes in a NumPy array.
    """

    name: ClassVar[str]
    item_size: ClassVar[int]
    glsl_type: ClassVar[str]
    dimentions: ClassVar[int]
    format_str: ClassVar[str]
    child_type: ClassVar["type[dtype] | None"]
    child_count: ClassVar[int]
    scalar: ClassVar["type[dtype] | None"]
    shape: ClassVar[tuple[int, ...]]
    numpy_shape: ClassVar[tuple[int, ...]]
    true_numpy_shape: ClassVar[tuple[int, ...]]

    if not TYPE_CHECKING:

        def __new__(cls, *args: object, **kwargs: object) -> "dtype":
            """Raise TypeError: functions make GPU values."""
            raise ArgumentTypeError(
                f"vd.{cls.__name__} is a type and cannot be called; in a kernel, "
                f"vc.to_dtype(vd.{cls.__name__}, ...) makes a value of it"
            )

        def __class_getitem__(cls, shape: object) -> "DType":
            """Return the type of an array of fixed shape, such as `vd.float32[4]`; see `vd.fixed_array`."""
            axes = shape if isinstance(shape, tuple) else (shape,)
            return sys.modules[__name__].fixed_array(cls, *axes)


DType = type[dtype]


def find_twin(value: object) -> str | None:
    """Return the name here of a type of Python or NumPy; None if it has none."""
    names = {float: "float32", int: "int32", bool: "bool_", complex: "complex64"}
    name = names.get(value) if isinstance(value, type) else None
    if name is None and isinstance(value, type) and value.__module__ == "numpy":
        name = value.__name__.replace("bool", "bool_").replace("__", "_")
    kind = globals().get(name) if name is not None else None
    return name if isinstance(kind, type) and issubclass(kind, dtype) and kind is not dtype else None


class Single(dtype):
    """Base class of types of values that have no components by number: scalars and structures."""

    dimentions = 0
    child_type = None
    child_count = 0
    scalar = None
    shape = (1,)
    numpy_shape = (1,)
    true_numpy_shape = ()


class _Scalar(Single):
    def __init_subclass__(cls, glsl: str = "", size: int = 0, fmt: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.name = cls.__name__.rstrip("_")
        cls.glsl_type = glsl
        cls.item_size = size
        cls.format_str = fmt


class _Complex(dtype):
    dimentions = 0
    child_count = 2
    scalar = None
    shape = (2,)
    numpy_shape = (1,)
    true_numpy_shape = ()

    def __init_subclass__(cls, of: DType, glsl: str, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.name = cls.__name__
        cls.glsl_type = glsl
        cls.child_type = of
        cls.item_size = 2 * of.item_size
        cls.format_str = f"({of.format_str}, {of.format_str})"


class _Vector(dtype):
    dimentions = 1

    def __init_subclass__(cls, of: DType, count: int, glsl: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.name = cls.__name__
        cls.glsl_type = glsl or cls.__name__
        cls.child_type = cls.scalar = of
        cls.child_count = count
        cls.item_size = count * of.item_size
        cls.shape = cls.numpy_shape = cls.true_numpy_shape = (count,)
        cls.format_str = "(" + ", ".join([of.format_str] * count) + ")"


class _Matrix(dtype):
    dimentions = 2

    def __init_subclass__(cls, of: DType, count: int, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        assert of.scalar is not None
        cls.name = cls.glsl_type = cls.__name__
        cls.child_type = of
        cls.child_count = count
        cls.scalar = of.scalar
        cls.item_size = count * of.item_size
        cls.shape = cls.numpy_shape = cls.true_numpy_shape = (count, count)
        row = "[" + ", ".join([of.scalar.format_str] * count) + "]"
        cls.format_str = "\\n".join([row] * count)


class Cooperative(dtype):
    """Matrix whose elements are spread over the invocations of a subgroup or workgroup."""

    dimentions = 2
    rows: ClassVar[int]
    columns: ClassVar[int]
    use: ClassVar[str]
    scope: ClassVar[str]


class LocalArray(dtype):
    """Array of `child_count` values of `child_type`, in one invocation or as a field of a structure."""

    dimentions = 1


class Placed(dtype):
    """Array of scalars or complex numbers of `child_type` with strides in bytes, in a block."""

    dimentions = 1
    strides: ClassVar[tuple[int, ...]]


class bool_(_Scalar, glsl="bool", size=1, fmt="%d"):
    """Boolean, the type of comparisons. In a buffer it takes one byte, as in NumPy."""


class int8(_Scalar, glsl="int8_t", size=1, fmt="%d"):
    """Signed integer of 8 bits, in buffers only: kernels compute with int32 and store the low 8 bits."""


class uint8(_Scalar, glsl="uint8_t", size=1, fmt="%u"):
    """Unsigned integer of 8 bits, in buffers only: kernels compute with uint32 and store the low 8 bits."""


class bfloat16(_Scalar, glsl="uint16_t", size=2, fmt="%f"):
    """The upper half of a float32, in buffers only: kernels compute with float32; stores round to even."""


class uint16(_Scalar, glsl="uint16_t", size=2, fmt="%u"):
    """Unsigned integer of 16 bits."""


class int16(_Scalar, glsl="int16_t", size=2, fmt="%d"):
    """Signed integer of 16 bits."""


class uint32(_Scalar, glsl="uint", size=4, fmt="%u"):
    """Unsigned integer of 32 bits."""


class int32(_Scalar, glsl="int", size=4, fmt="%d"):
    """Signed integer of 32 bits."""


class uint64(_Scalar, glsl="uint64_t", size=8, fmt="%llu"):
    """Unsigned integer of 64 bits."""


class int64(_Scalar, glsl="int64_t", size=8, fmt="%lld"):
    """Signed integer of 64 bits."""


class float16(_Scalar, glsl="float16_t", size=2, fmt="%f"):
    """Half-precision floating point."""


class float32(_Scalar, glsl="float", size=4, fmt="%f"):
    """Single-precision floating point."""


class float64(_Scalar, glsl="double", size=8, fmt="%lf"):
    """Double-precision floating point."""


class complex32(_Complex, of=float16, glsl="f16vec2"):
    """Complex number of two float16."""


class complex64(_Complex, of=float32, glsl="vec2"):
    """Complex number of two float32."""


class complex128(_Complex, of=float64, glsl="dvec2"):
    """Complex number of two float64."""


class hvec2(_Vector, of=float16, count=2, glsl="f16vec2"):
    """Vector of 2 float16."""


class hvec3(_Vector, of=float16, count=3, glsl="f16vec3"):
    """Vector of 3 float16."""


class hvec4(_Vector, of=float16, count=4, glsl="f16vec4"):
    """Vector of 4 float16."""


class vec2(_Vector, of=float32, count=2):
    """Vector of 2 float32."""


class vec3(_Vector, of=float32, count=3):
    """Vector of 3 float32."""


class vec4(_Vector, of=float32, count=4):
    """Vector of 4 float32."""


class dvec2(_Vector, of=float64, count=2):
    """Vector of 2 float64."""


class dvec3(_Vector, of=float64, count=3):
    """Vector of 3 float64."""


class dvec4(_Vector, of=float64, count=4):
    """Vector of 4 float64."""


class ihvec2(_Vector, of=int16, count=2, glsl="i16vec2"):
    """Vector of 2 int16."""


class ihvec3(_Vector, of=int16, count=3, glsl="i16vec3"):
    """Vector of 3 int16."""


class ihvec4(_Vector, of=int16, count=4, glsl="i16vec4"):
    """Vector of 4 int16."""


class ivec2(_Vector, of=int32, count=2):
    """Vector of 2 int32."""


class ivec3(_Vector, of=int32, count=3):
    """Vector of 3 int32."""


class ivec4(_Vector, of=int32, count=4):
    """Vector of 4 int32."""


class uhvec2(_Vector, of=uint16, count=2, glsl="u16vec2"):
    """Vector of 2 uint16."""


class uhvec3(_Vector, of=uint16, count=3, glsl="u16vec3"):
    """Vector of 3 uint16."""


class uhvec4(_Vector, of=uint16, count=4, glsl="u16vec4"):
    """Vector of 4 uint16."""


class uvec2(_Vector, of=uint32, count=2):
    """Vector of 2 uint32."""


class uvec3(_Vector, of=uint32, count=3):
    """Vector of 3 uint32."""


class uvec4(_Vector, of=uint32, count=4):
    """Vector of 4 uint32."""


class mat2(_Matrix, of=vec2, count=2):
    """Matrix of 2 columns of 2 float32; the first axis of host data is the column."""


class mat3(_Matrix, of=vec3, count=3):
    """Matrix of 3 columns of 3 float32; the first axis of host data is the column."""


class mat4(_Matrix, of=vec4, count=4):
    """Matrix of 4 columns of 4 float32; the first axis of host data is the column."""


# ---- the tables ----------------------------------------------------------------------------------

# Two scalars promote to the later one in this order. Vectors and matrices promote their components.
RANKS: dict[DType, int] = {
    kind: rank
    for rank, kind in enumerate((uint16, int16, uint32, int32, uint64, int64, float16, float32, float64))
}
# Types that exist in buffers only -> the type that a kernel sees instead.
COMPUTED_AS: dict[DType, DType] = {int8: int32, uint8: uint32, bfloat16: float32}
_FLOATS: tuple[DType, ...] = (float16, float32, float64)
_FLOAT_OF_SIZE: dict[int, DType] = {2: float16, 4: float32, 8: float64}
_COMPLEX_OF: dict[DType, DType] = {float16: complex32, float32: complex64, float64: complex128}
_VECTORS: dict[tuple[DType, int], DType] = {
    (kind.scalar, kind.child_count): kind for kind in _Vector.__subclasses__() if kind.scalar is not None
}
_MATRICES: dict[int, DType] = {kind.child_count: kind for kind in _Matrix.__subclasses__()}


@record(sealed=True, slots=False)
class HostDtype:
    """A type of host memory that NumPy lacks.

    `format` is the format of an element in the notation of the `struct` module, `itemsize` its bytes.
    """

    name: str
    itemsize: int
    format: str
    kind: str


COMPLEX32_HOST = HostDtype("complex32", 4, "ee", "complex")
BFLOAT16_HOST = HostDtype("bfloat16", 2, "H", "float")
# Names of dtypes that other packages such as ml_dtypes register with NumPy.
_BY_NAME: dict[str, DType] = {"complex32": complex32, "bfloat16": bfloat16}

_NUMPY_TYPES: dict[DType, type[Any]] = {
    kind: getattr(np, kind.__name__)
    for kind in (
        *(int16, uint16, int32, uint32, int64, uint64, float16, float32, float64, bool_, int8, uint8),
        *(complex64, complex128),
    )
}


# For speed: tracing asks for categories a hundred times per line of a kernel.
_CATEGORIES: dict[DType, DType] = {
    kind: category for category in (_Scalar, _Complex, _Vector, _Matrix) for kind in category.__subclasses__()
}


# ---- properties of dtypes -----------------------------------------------------------------------------


def is_dtype(in_type: type[Any]) -> bool:
    """Whether a class is a vkdispatch dtype. Raises TypeError if `in_type` is not a class.

    Examples
    --------
    >>> from vkdispatch.base.dtype import is_dtype
    >>> is_dtype(vd.float32)
    True
    """
    if not isinstance(in_type, type):
        raise ArgumentTypeError(f"is_dtype: expected a class such as vd.float32, got {in_type!r}")
    return issubclass(in_type, dtype)


def is_scalar(dtype: DType) -> bool:
    """Whether `dtype` is a scalar type.

    Examples
    --------
    >>> from vkdispatch.base.dtype import is_scalar
    >>> is_scalar(vd.vec2)
    False
    """
    category = _CATEGORIES.get(dtype)
    return category is _Scalar if category else is_dtype(dtype) and issubclass(dtype, _Scalar)


def is_complex(dtype: DType) -> bool:
    """Whether `dtype` is a complex type.

    Examples
    --------
    >>> from vkdispatch.base.dtype import is_complex
    >>> is_complex(vd.complex64)
    True
    """
    category = _CATEGORIES.get(dtype)
    return category is _Complex if category else is_dtype(dtype) and issubclass(dtype, _Complex)


def is_vector(dtype: DType) -> bool:
    """Whether `dtype` is a vector type.

    Examples
    --------
    >>> from vkdispatch.base.dtype import is_vector
    >>> is_vector(vd.vec2)
    True
    """
    category = _CATEGORIES.get(dtype)
    return category is _Vector if category else is_dtype(dtype) and issubclass(dtype, _Vector)


def is_matrix(dtype: DType) -> bool:
    """Whether `dtype` is a matrix type.

    Examples
    --------
    >>> from vkdispatch.base.dtype import is_matrix
    >>> is_matrix(vd.mat2)
    True
    """
    category = _CATEGORIES.get(dtype)
    return category is _Matrix if category else is_dtype(dtype) and issubclass(dtype, _Matrix)


@cache
def component_type(kind: DType) -> DType:
    """Scalar type of the components: float32 for vec3, mat2 and complex64; a scalar type itself."""
    if is_scalar(kind):
        return kind
    return kind.scalar or kind.child_type or kind


@cache
def component_count(kind: DType) -> int:
    """Count of scalar components of a value: 1 for scalars, 2 for complex64, 9 for mat3."""
    return kind.item_size // component_type(kind).item_size


@cache
def pair_twin(kind: DType) -> DType | None:
    """Vector type of two with the memory layout of a complex type, or the reverse. None for other types."""
    if is_complex(kind):
        return _VECTORS.get((component_type(kind), 2))
    if is_vector(kind):
        return next((twin for twin in (complex32, complex64, complex128) if pair_twin(twin) is kind), None)
    return None


@cache
def memory_type(kind: DType) -> DType:
    """Type that memory may be read as while it is written as `kind`: its components, or a whole structure."""
    return component_type(kind) if hasattr(kind, "dimentions") else kind


def is_float_dtype(dtype: DType) -> bool:
    """Whether the components are floating-point numbers.

    Examples
    --------
    >>> from vkdispatch.base.dtype import is_float_dtype
    >>> is_float_dtype(vd.vec2)
    True
    """
    return component_type(dtype) in _FLOATS


def is_integer_dtype(dtype: DType) -> bool:
    """Whether the components are integers.

    Examples
    --------
    >>> from vkdispatch.base.dtype import is_integer_dtype
    >>> is_integer_dtype(vd.int32)
    True
    """
    return component_type(dtype) in RANKS and not is_float_dtype(dtype)


def is_signed_dtype(kind: DType) -> bool:
    """Whether the components are signed integers."""
    return component_type(kind) in (int16, int32, int64)


def is_buffer_only(kind: DType) -> bool:
    """Whether values of `kind` exist in buffers only: int8, uint8 and bfloat16."""
    return kind in COMPUTED_AS


def compute_type(kind: DType) -> DType:
    """Type in kernels of an element of `kind`: int32 for int8, float32 for bfloat16, else `kind` itself."""
    return COMPUTED_AS.get(kind, kind)


def vector_size(dtype: DType) -> int:
    """Count of components of a vector type. Raises ValueError for other types.

    Examples
    --------
    >>> from vkdispatch.base.dtype import vector_size
    >>> vector_size(vd.vec3)
    3
    """
    if not is_vector(dtype):
        raise ArgumentValueError(f"vector_size: {dtype.name} is not a vector type")
    return dtype.child_count


def is_cooperative(kind: DType) -> bool:
    """Whether `kind` is a cooperative matrix type."""
    return kind not in _CATEGORIES and is_dtype(kind) and issubclass(kind, Cooperative)


def is_array(kind: DType) -> bool:
    """Whether `kind` is the type of an array of one invocation, or of a field."""
    return kind not in _CATEGORIES and is_dtype(kind) and issubclass(kind, LocalArray)


def item_of(kind: DType) -> DType:
    """Return the type of the items of an array, however many axes it has; another dtype itself."""
    while kind not in _CATEGORIES and is_array(kind):
        assert kind.child_type is not None
        kind = kind.child_type
    return kind


def array_shape(kind: DType) -> tuple[int, ...]:
    """Return the shape of an array; () for another dtype."""
    shape: list[int] = []
    while is_array(kind):
        assert kind.child_type is not None
        shape.append(kind.child_count)
        kind = kind.child_type
    return tuple(shape)


def is_placed(kind: DType) -> bool:
    """Whether `kind` is the type of an array with strides in a block."""
    return kind not in _CATEGORIES and is_dtype(kind) and issubclass(kind, Placed)


# ---- dtypes made from dtypes ---------------------------------------------------------------------


@cache
def to_vector(dtype: DType, count: int) -> DType:
    """Vector type of `count` components; 1 gives the scalar type. Raises ValueError if there is none.

    Examples
    --------
    >>> from vkdispatch.base.dtype import to_vector
    >>> to_vector(vd.float32, 3)
    <class 'vkdispatch.base.dtype.vec3'>
    """
    if not is_scalar(dtype):
        raise ArgumentValueError(f"to_vector: {dtype.name} is not a scalar type")
    if count == 1 and (dtype, 2) in _VECTORS:
        return dtype
    vector = _VECTORS.get((dtype, count))
    if vector is None:
        raise ArgumentValueError(
            f"to_vector: there is no vector of {count} {dtype.name}; "
            "vectors have 2 to 4 components of 16 or 32 bits, or float64"
        )
    return vector


def to_matrix(size: int) -> DType:
    """Square float32 matrix type of 2, 3 or 4 columns. Raises ValueError for other sizes."""
    if size not in _MATRICES:
        raise ArgumentValueError(f"to_matrix: matrices have 2, 3 or 4 columns, got {size}")
    return _MATRICES[size]


def complex_from_float(dtype: DType) -> DType:
    """Complex type of a float type. Raises ValueError for other types.

    Examples
    --------
    >>> from vkdispatch.base.dtype import complex_from_float
    >>> complex_from_float(vd.float32)
    <class 'vkdispatch.base.dtype.complex64'>
    """
    if dtype not in _COMPLEX_OF:
        raise ArgumentValueError(f"complex_from_float: {dtype.name} is not a floating-point scalar type")
    return _COMPLEX_OF[dtype]


@cache
def make_floating_dtype(dtype: DType) -> DType:
    """Type with float components of the width of an integer type (float32 for `bool_`), or `dtype` itself.

    Examples
    --------
    >>> from vkdispatch.base.dtype import make_floating_dtype
    >>> make_floating_dtype(vd.int32)
    <class 'vkdispatch.base.dtype.float32'>
    """
    if dtype is bool_:
        return float32
    if not is_integer_dtype(dtype):
        return dtype
    real = _FLOAT_OF_SIZE[component_type(dtype).item_size]
    return to_vector(real, dtype.child_count) if is_vector(dtype) else real


# ---- NumPy dtypes and layout ----------------------------------------------------------------------------


@functools.cache
def _map_numpy_dtypes() -> "dict[np.dtype[Any], DType]":
    return {np.dtype(host): kind for kind, host in _NUMPY_TYPES.items()}


def from_numpy_dtype(dtype: Any, name: str = "") -> DType:
    """Return the dtype of a NumPy dtype, type or name, or of a `HostDtype`.

    Raises ValueError if there is none. The message names the argument `name`.

    Examples
    --------
    >>> from vkdispatch.base.dtype import from_numpy_dtype
    >>> from_numpy_dtype(np.float32)
    <class 'vkdispatch.base.dtype.float32'>
    """
    if isinstance(dtype, HostDtype):
        dtype = dtype.name
    dtype_name = dtype if isinstance(dtype, str) else getattr(dtype, "name", getattr(dtype, "__name__", None))
    if dtype_name in _BY_NAME:
        return _BY_NAME[dtype_name]
    try:
        # np.dtype(None) would be float64
        kind = None if dtype is None else _map_numpy_dtypes().get(np.dtype(dtype))
    except TypeError:
        kind = None
    if kind is None:
        names = ", ".join(known.name for known in _NUMPY_TYPES)
        raise ArgumentValueError(
            f"{name}{': ' if name else ''}NumPy dtype {dtype!r} has no vkdispatch dtype; supported: {names}, "
            "bfloat16, complex32"
        )
    return kind


@cache
def to_numpy_dtype(shader_type: DType) -> Any:
    """NumPy type of a scalar or complex dtype, or the `HostDtype` of complex32 and bfloat16.

    Raises ValueError for others, ImportError without NumPy.

    Examples
    --------
    >>> from vkdispatch.base.dtype import to_numpy_dtype
    >>> to_numpy_dtype(vd.float32)
    <class 'numpy.float32'>
    """
    if shader_type is complex32:
        return COMPLEX32_HOST
    if shader_type is bfloat16:
        return BFLOAT16_HOST
    if shader_type not in _NUMPY_TYPES:
        raise ArgumentValueError(
            f"{shader_type.name} has no NumPy dtype; only scalar and complex types have one"
        )
    require(np)
    return _NUMPY_TYPES[shader_type]


def scalar_layout(members: Sequence[tuple[DType, int]]) -> tuple[tuple[int, ...], int]:
    """Lay out (dtype, count) members in GLSL's scalar block layout.

    Returns the byte offset of each member and the total bytes up to the end of the last one.
    """
    offsets: list[int] = []
    end = 0
    for kind, count in members:
        alignment = component_type(kind).item_size
        end = -(-end // alignment) * alignment
        offsets.append(end)
        end += kind.item_size * count
    return tuple(offsets), end


if not TYPE_CHECKING:
    __getattr__ = names_elsewhere(
        __name__,
        {
            "base.derived_dtypes": (
                "cross_matrix cross_multiply_type cross_scalar_scalar cross_type cross_vector "
                "cross_vector_scalar cross_vector_vector fixed_array"
            )
        },
    )
