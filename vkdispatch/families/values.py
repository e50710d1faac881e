"""Values in kernels of functions on buffers: promotion, words, elements, and operators of users."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from types import BuiltinFunctionType
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch import control_flow
from vkdispatch.base import dtype
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.families.stored import store_results


def find_function(name: str) -> Callable[..., Any]:
    """Return a function of the kernel language by its name; it is imported when it is called."""

    def call(*values: Any) -> Any:
        return getattr(vc, name)(*values)

    return call


# ---- Kinds of numbers ------------------------------------------------------------------------------------


SIGNED_INTEGERS = (dtype.int8, dtype.int16, dtype.int32, dtype.int64)
LONG_INTEGERS = (dtype.int64, dtype.uint64)
INTEGERS = (dtype.int8, dtype.uint8, dtype.int16, dtype.uint16, dtype.int32, dtype.uint32, *LONG_INTEGERS)
FLOATS = (dtype.float16, dtype.bfloat16, dtype.float32, dtype.float64)


# ---- Values as scalars and as words of 32 bits, and the dtypes as which elements are moved ---------------


_WORDS: dict[int, dtype.DType] = {
    1: dtype.uint8,
    2: dtype.uint16,
    4: dtype.uint32,
    8: dtype.uvec2,
    16: dtype.uvec4,
}


def word_type(size: int) -> dtype.DType:
    """Return the unsigned dtype as which 1, 2, 4, 8 or 16 bytes are moved."""
    return _WORDS[size]


def split_scalars(value: Any) -> list[Any]:
    """Return the scalars of a GPU value; those of a matrix column by column."""
    kind = value.var_type
    if dtype.is_complex(kind):
        return [value.real, value.imag]
    if dtype.is_matrix(kind):
        return [value[column][row] for column in range(kind.child_count) for row in range(kind.child_count)]
    return [value[i] for i in range(kind.child_count)] if dtype.is_vector(kind) else [value]


def split_words(value: Any) -> list[Any]:
    """Return the bits of a GPU value as words of 32 bits, the lowest first; a uint16 becomes one word."""
    words = []
    for part in split_scalars(value):
        if part.var_type is dtype.uint32:
            words.append(part)
        elif part.var_type is dtype.uint16:
            words.append(part.to_dtype(dtype.uint32))
        elif part.var_type.item_size == 4:
            words.append(vc.reinterpret(dtype.uint32, part))
        else:
            pair = vc.reinterpret(dtype.uvec2, part).to_register()
            words += [pair.x, pair.y]
    return words


def join_words(kind: dtype.DType, words: Sequence[Any]) -> Any:
    """Return the GPU value of these words; see `split_words`."""
    part = dtype.component_type(kind)
    parts = list(words)
    if part.item_size == 8:
        pairs = [vc.to_uvec2(words[i], words[i + 1]) for i in range(0, len(words), 2)]
        parts = [vc.reinterpret(part, pair) for pair in pairs]
    elif part is dtype.uint16:
        parts = [word.to_dtype(part) for word in words]
    elif part.item_size == 4 and part is not dtype.uint32:
        parts = [vc.reinterpret(part, word) for word in words]
    return parts[0] if dtype.is_scalar(kind) else vc.to_dtype(kind, *parts)


def word_count(kind: dtype.DType) -> int:
    """Return how many words `split_words` gives."""
    return max(1, kind.item_size // 4)


# ---- Elements of buffers loaded 4 to 16 bytes at a time, through views of a buffer as words --------------


_LOAD = 16  # bytes of the widest load
_VIEWS = (4, 8, 16)

_WIDE: dict[dtype.DType, dtype.DType] = {
    dtype.float16: dtype.float32,
    dtype.bfloat16: dtype.float32,
    dtype.int8: dtype.int32,
    dtype.int16: dtype.int32,
    dtype.uint8: dtype.uint32,
    dtype.uint16: dtype.uint32,
    dtype.complex32: dtype.complex64,
}


def wide_type(kind: dtype.DType) -> dtype.DType:
    """Return the type in which values of `kind` are combined: one of at least 32 bits."""
    if dtype.is_vector(kind):
        component = dtype.component_type(kind)
        return dtype.to_vector(_WIDE.get(component, component), kind.child_count)
    return _WIDE.get(kind, kind)


_SIGNED: dict[dtype.DType, int] = {dtype.int8: 24, dtype.int16: 16}
_UNSIGNED: dict[dtype.DType, int] = {dtype.uint8: 0xFF, dtype.uint16: 0xFFFF}


def integer_limits(kind: dtype.DType) -> tuple[int, int]:
    """Return the least and the largest number of an integer type."""
    bits = 8 * kind.item_size
    if kind in SIGNED_INTEGERS:
        return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return 0, (1 << bits) - 1


def wrap_integer(value: Any, kind: dtype.DType) -> Any:
    """Return an integer wrapped around as a buffer of `kind` would hold it; other values unchanged."""
    if kind in _SIGNED and value.var_type is dtype.int32:
        return (value << _SIGNED[kind]) >> _SIGNED[kind]
    if kind in _UNSIGNED and value.var_type is dtype.uint32:
        return value & _UNSIGNED[kind]
    return value


def count_per_load(kinds: Sequence[dtype.DType]) -> int:
    """Return how many elements of each of some buffers one load takes."""
    if not kinds:
        return 1
    return _LOAD // max(kind.item_size for kind in kinds) or 1


def view_type(kind: dtype.DType, count: int) -> dtype.DType | None:
    """Return the type as which `count` elements are loaded at once; None if they cannot be."""
    if dtype.is_matrix(kind) or dtype.component_count(kind) == 3 or count == 1:
        return None
    size = kind.item_size * count
    return word_type(size) if size in _VIEWS else None


def unpack_elements(kind: dtype.DType, count: int, word: Any) -> list[Any]:
    """Return the `count` elements of a load, each of the type `wide_type(kind)`."""
    words = [word] if word.var_type is dtype.uint32 else [word[i] for i in range(len(word))]
    component = dtype.component_type(kind)
    parts = _PARTS[component.item_size](component, words)
    if dtype.is_scalar(kind):
        return parts[:count]
    size, wide = dtype.component_count(kind), wide_type(kind)
    if dtype.is_complex(kind):
        return [vc.to_dtype(wide, parts[2 * i], parts[2 * i + 1]) for i in range(count)]
    return [vc.to_dtype(wide, *parts[size * i : size * (i + 1)]) for i in range(count)]


def _unpack_bytes(kind: dtype.DType, words: list[Any]) -> list[Any]:
    if kind is dtype.int8:
        signed = [vc.to_int(word) for word in words]
        return [(word << (24 - 8 * i)) >> 24 for word in signed for i in range(4)]
    if kind is dtype.bool_:
        return [(word & (0xFF << (8 * i))) != 0 for word in words for i in range(4)]
    return [(word >> (8 * i)) & 0xFF for word in words for i in range(4)]


def _unpack_halves(kind: dtype.DType, words: list[Any]) -> list[Any]:
    if kind is dtype.float16:
        pairs = [vc.unpack_half2x16(word) for word in words]
        return [pair[i] for pair in pairs for i in range(2)]
    if kind is dtype.bfloat16:
        bits = [part for word in words for part in (word << 16, word & 0xFFFF0000)]
        return [vc.uint_bits_to_float(part) for part in bits]
    if kind is dtype.int16:
        signed = [vc.to_int(word) for word in words]
        return [part for word in signed for part in ((word << 16) >> 16, word >> 16)]
    return [part for word in words for part in (word & 0xFFFF, word >> 16)]


def _unpack_whole(kind: dtype.DType, words: list[Any]) -> list[Any]:
    return [word if kind is dtype.uint32 else vc.reinterpret(kind, word) for word in words]


def _unpack_pairs(kind: dtype.DType, words: list[Any]) -> list[Any]:
    pairs = [vc.to_uvec2(words[i], words[i + 1]) for i in range(0, len(words), 2)]
    if kind is dtype.float64:
        return [vc.pack_double2x32(pair) for pair in pairs]
    longs = [vc.pack_uint2x32(pair) for pair in pairs]
    return longs if kind is dtype.uint64 else [long.to_dtype(dtype.int64) for long in longs]


_PARTS: dict[int, Callable[[dtype.DType, list[Any]], list[Any]]] = {
    1: _unpack_bytes,
    2: _unpack_halves,
    4: _unpack_whole,
    8: _unpack_pairs,
}


# ---- Promotion of dtypes by NumPy's rules, and conversion of values --------------------------------------


# dtypes that NumPy lacks, and those that promote like them.
_LIKE: dict[Any, Any] = {dtype.bfloat16: np.float16, dtype.complex32: np.complex64}

# Integers of fewer than 64 bits are summed up and multiplied in 64 bits, as NumPy does on Linux.
_SUMS: dict[dtype.DType, dtype.DType] = {
    dtype.bool_: dtype.int64,
    dtype.int8: dtype.int64,
    dtype.int16: dtype.int64,
    dtype.int32: dtype.int64,
    dtype.uint8: dtype.uint64,
    dtype.uint16: dtype.uint64,
    dtype.uint32: dtype.uint64,
}


def sum_type(kind: dtype.DType) -> dtype.DType:
    """Return the dtype of sums and products of elements, as NumPy chooses it."""
    return _SUMS.get(kind, kind)


def promote_dtypes(kinds: Sequence[dtype.DType | bool | int | float | complex], name: str) -> dtype.DType:
    """Return the dtype to which arrays of these dtypes, and Python numbers, are promoted.

    As in `numpy.result_type`, a Python number takes the dtype of the arrays if its kind allows. bfloat16 is
    promoted like float16, and with float16 to float32. Vectors are promoted by components.

    Raises
    ------
    TypeError
        The dtypes have no common dtype, such as vectors of different lengths.
    """
    dtypes = [kind for kind in kinds if isinstance(kind, type)]
    if all(kind is dtypes[0] for kind in dtypes) and len(dtypes) == len(kinds):
        return dtypes[0]
    if any(not dtype.is_scalar(kind) and not dtype.is_complex(kind) for kind in dtypes):
        return _of_parts(kinds, dtypes, name)
    return _of_scalars(kinds)


def _of_scalars(kinds: Sequence[Any]) -> dtype.DType:
    dtypes = {kind for kind in kinds if isinstance(kind, type)}
    hosts = [
        _LIKE.get(kind) or dtype.to_numpy_dtype(kind) if isinstance(kind, type) else kind for kind in kinds
    ]
    host = np.result_type(*hosts)
    if dtype.bfloat16 in dtypes and host == np.float16:
        return dtype.float32 if dtype.float16 in dtypes else dtype.bfloat16
    if dtype.complex32 in dtypes and host == np.complex64:
        narrow = {dtype.complex32, dtype.float16, dtype.bool_, dtype.int8, dtype.uint8}
        return dtype.complex32 if dtypes <= narrow else dtype.complex64
    return dtype.from_numpy_dtype(host)


def _of_parts(kinds: Sequence[Any], dtypes: Sequence[dtype.DType], name: str) -> dtype.DType:
    shaped = [kind for kind in dtypes if dtype.is_vector(kind) or dtype.is_matrix(kind)]
    if not shaped:  # structures
        names = ", ".join(kind.name for kind in dtypes)
        raise ArgumentTypeError(f"{name}: the dtypes {names} have no common dtype")
    first = shaped[0]
    fits = all(
        dtype.is_matrix(kind) == dtype.is_matrix(first) and kind.shape == first.shape for kind in shaped
    )
    if not fits or any(dtype.is_complex(kind) for kind in dtypes):
        names = ", ".join(kind.name for kind in dtypes)
        raise ArgumentTypeError(f"{name}: the dtypes {names} have no common dtype")
    component = _of_scalars(
        [dtype.component_type(kind) if isinstance(kind, type) else kind for kind in kinds]
    )
    if dtype.is_matrix(first):
        if component is not dtype.float32:
            raise ArgumentTypeError(f"{name}: {first.name} meets float32 only, not {component.name}")
        return first
    try:
        return dtype.to_vector(component, first.child_count)
    except ArgumentValueError as error:
        raise ArgumentTypeError(f"{name}: {error}") from None


def convert_value(value: Any, kind: dtype.DType) -> Any:
    """Return a GPU value as one of `wide_type(kind)`."""
    wide = wide_type(kind)
    if value.var_type is wide:
        return value
    if dtype.is_complex(wide) and not dtype.is_complex(value.var_type):
        real = value.to_dtype(dtype.component_type(wide))
        return vc.to_dtype(wide, real, vc.to_dtype(dtype.component_type(wide), 0))
    if (dtype.is_vector(wide) or dtype.is_matrix(wide)) and dtype.is_scalar(value.var_type):
        part = value.to_dtype(dtype.component_type(wide))
        return vc.to_dtype(wide, *[part] * dtype.component_count(wide))
    return value.to_dtype(wide)


def is_nonzero(value: Any) -> Any:
    """Return whether a number is not 0; NaN is not 0, as in NumPy."""
    if value.var_type is dtype.bool_:
        return value
    if dtype.is_complex(value.var_type):
        return vc.any(value.real != 0, value.imag != 0)
    return value != 0


# ---- User functions that combine two values, and their identities ----------------------------------------


def is_expression(function: Callable[[Any, Any], Any], kind: dtype.DType, who: str) -> bool:
    """Whether a function, traced once, returns one expression of the type of its two operands.

    Raises
    ------
    ValueError
        The function returns nothing; the message calls it `who`.
    """
    find = _is_expression if isinstance(function, BuiltinFunctionType) else _trace_expression
    return find(function, kind, who)


def _trace_expression(function: Callable[[Any, Any], Any], kind: dtype.DType, who: str) -> bool:
    plain: list[bool] = []

    def probe() -> None:
        x, y = vc.new_register(kind), vc.new_register(kind)
        before = vc.get_builder().contents
        result = control_flow.prepare_function(function)(x, y)
        if result is None:
            raise ArgumentValueError(f"{who} must return a {kind.name}, got None")
        alone = isinstance(result, vc.ShaderVariable) and result.var_type is kind
        plain.append(alone and vc.get_builder().contents == before)

    with vc.shader_context(vc.ShaderFlags.NO_EXEC_BOUNDS):
        control_flow.prepare_kernel(probe, rewrite=True)()
    return plain[0]


# of `operator`; functions of users are not held
_is_expression = store_results(_trace_expression)


def parse_infinity(identity: str, kind: dtype.DType) -> float:
    """Return what "inf" or "-inf" stands for. Raises ValueError for another text, or a complex type."""
    if identity not in ("inf", "-inf"):
        raise ArgumentValueError(f"identity: expected a number, 'inf' or '-inf', got {identity!r}")
    if dtype.is_complex(kind):
        raise ArgumentValueError(f"identity: {kind.name} has no {identity!r}; pass a number")
    return float(identity)


# ---- Division by numbers that all invocations share, of which CPUs have no fast one ----------------------


@lru_cache(4096)
def find_multiplier(divisor: int) -> tuple[int, int]:
    """Return m and s with n // divisor == (n * m >> 32) >> s for all n below 2**31, of a divisor above 1.

    Source: T. Granlund and P. L. Montgomery, "Division by invariant integers using multiplication", 1994.
    """
    bits = (divisor - 1).bit_length()
    return -((-1 << (31 + bits)) // divisor), bits - 1


def divide(number: Any, multiplier: Any, shift: Any) -> Any:
    """Return a uint32 below 2**31 divided by what `find_multiplier` returned these for."""
    return vc.umul_extended(number, multiplier)[0] >> shift


# ---- Accesses of maps to their arguments -----------------------------------------------------------------


@record
class Access:
    """How a map uses an argument.

    Attributes
    ----------
    here
        Whether it accesses only the element at the mapped index.
    written
        Whether it writes to the argument.
    """

    here: bool = True
    written: bool = False
