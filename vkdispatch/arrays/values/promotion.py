"""Promotion of dtypes by NumPy's rules, and conversion of values."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.arrays.values.elements import wide_type
from vkdispatch.base import dtype
from vkdispatch.base.dtype import (
    DType,
    component_count,
    component_type,
    from_numpy_dtype,
    is_complex,
    is_matrix,
    is_scalar,
    is_vector,
    to_numpy_dtype,
    to_vector,
)
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError

# dtypes that NumPy lacks, and those that promote like them.
_LIKE: dict[Any, Any] = {dtype.bfloat16: np.float16, dtype.complex32: np.complex64}

# Integers of fewer than 64 bits are summed up and multiplied in 64 bits, as NumPy does on Linux.
_SUMS: dict[DType, DType] = {
    dtype.bool_: dtype.int64,
    dtype.int8: dtype.int64,
    dtype.int16: dtype.int64,
    dtype.int32: dtype.int64,
    dtype.uint8: dtype.uint64,
    dtype.uint16: dtype.uint64,
    dtype.uint32: dtype.uint64,
}


def sum_type(kind: DType) -> DType:
    """Return the dtype of sums and products of elements, as NumPy chooses it."""
    return _SUMS.get(kind, kind)


def promote_dtypes(kinds: Sequence[DType | bool | int | float | complex], name: str) -> DType:
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
    if any(not is_scalar(kind) and not is_complex(kind) for kind in dtypes):
        return _of_parts(kinds, dtypes, name)
    return _of_scalars(kinds)


def _of_scalars(kinds: Sequence[Any]) -> DType:
    dtypes = {kind for kind in kinds if isinstance(kind, type)}
    hosts = [_LIKE.get(kind) or to_numpy_dtype(kind) if isinstance(kind, type) else kind for kind in kinds]
    host = np.result_type(*hosts)
    if dtype.bfloat16 in dtypes and host == np.float16:
        return dtype.float32 if dtype.float16 in dtypes else dtype.bfloat16
    if dtype.complex32 in dtypes and host == np.complex64:
        narrow = {dtype.complex32, dtype.float16, dtype.bool_, dtype.int8, dtype.uint8}
        return dtype.complex32 if dtypes <= narrow else dtype.complex64
    return from_numpy_dtype(host)


def _of_parts(kinds: Sequence[Any], dtypes: Sequence[DType], name: str) -> DType:
    shaped = [kind for kind in dtypes if is_vector(kind) or is_matrix(kind)]
    if not shaped:  # structures
        names = ", ".join(kind.name for kind in dtypes)
        raise ArgumentTypeError(f"{name}: the dtypes {names} have no common dtype")
    first = shaped[0]
    fits = all(is_matrix(kind) == is_matrix(first) and kind.shape == first.shape for kind in shaped)
    if not fits or any(is_complex(kind) for kind in dtypes):
        names = ", ".join(kind.name for kind in dtypes)
        raise ArgumentTypeError(f"{name}: the dtypes {names} have no common dtype")
    component = _of_scalars([component_type(kind) if isinstance(kind, type) else kind for kind in kinds])
    if is_matrix(first):
        if component is not dtype.float32:
            raise ArgumentTypeError(f"{name}: {first.name} meets float32 only, not {component.name}")
        return first
    try:
        return to_vector(component, first.child_count)
    except ArgumentValueError as error:
        raise ArgumentTypeError(f"{name}: {error}") from None


def convert_value(value: Any, kind: DType) -> Any:
    """Return a GPU value as one of `wide_type(kind)`."""
    wide = wide_type(kind)
    if value.var_type is wide:
        return value
    if is_complex(wide) and not is_complex(value.var_type):
        real = value.to_dtype(component_type(wide))
        return vc.to_dtype(wide, real, vc.to_dtype(component_type(wide), 0))
    if (is_vector(wide) or is_matrix(wide)) and is_scalar(value.var_type):
        part = value.to_dtype(component_type(wide))
        return vc.to_dtype(wide, *[part] * component_count(wide))
    return value.to_dtype(wide)


def is_nonzero(value: Any) -> Any:
    """Return whether a number is not 0; NaN is not 0, as in NumPy."""
    if value.var_type is dtype.bool_:
        return value
    if is_complex(value.var_type):
        return vc.any(value.real != 0, value.imag != 0)
    return value != 0
