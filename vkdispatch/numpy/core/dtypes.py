"""NumPy dtypes of arrays, the dtypes of kernels for them, and NumPy's rules of promotion."""

from functools import lru_cache
from typing import Any, cast

import numpy as np

from vkdispatch.base import dtype as dt
from vkdispatch.base.context import get_context
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, BackendUnavailableError

Kind = np.dtype[Any]

bool_ = np.dtype(np.bool_)
int64 = np.dtype(np.int64)
float32 = np.dtype(np.float32)
float64 = np.dtype(np.float64)

_KERNEL_TYPES: dict[Kind, DType] = {
    bool_: dt.bool_,
    np.dtype(np.int8): dt.int8,
    np.dtype(np.int16): dt.int16,
    np.dtype(np.int32): dt.int32,
    int64: dt.int64,
    np.dtype(np.uint8): dt.uint8,
    np.dtype(np.uint16): dt.uint16,
    np.dtype(np.uint32): dt.uint32,
    np.dtype(np.uint64): dt.uint64,
    np.dtype(np.float16): dt.float16,
    float32: dt.float32,
    float64: dt.float64,
    np.dtype(np.complex64): dt.complex64,
    np.dtype(np.complex128): dt.complex128,
}
_NUMPY_TYPES = {kernel: kind for kind, kernel in _KERNEL_TYPES.items()}
_KINDS: dict[type, Kind] = {kind.type: kind for kind in _KERNEL_TYPES}
_NARROWER = {float64: float32, np.dtype(np.complex128): np.dtype(np.complex64)}
_REAL: dict[str, Kind] = {}


def kernel_type(kind: Kind) -> DType:
    """Return the dtype that kernels have for a NumPy dtype. Raises TypeError if there is none."""
    try:
        return _KERNEL_TYPES[kind]
    except KeyError:
        raise ArgumentTypeError(
            f"dtype: arrays can have booleans, integers, real and complex numbers, got {kind}"
        ) from None


def numpy_type(kind: DType) -> Kind:
    """Return the NumPy dtype of a dtype of kernels. Raises TypeError if there is none."""
    try:
        return _NUMPY_TYPES[kind]
    except KeyError:
        raise ArgumentTypeError(f"dtype: an array has no elements of type {kind.name}") from None


def parse_dtype(value: object, name: str = "dtype") -> Kind:
    """Return the NumPy dtype that an argument stands for. Raises TypeError if arrays cannot have it."""
    if isinstance(value, type):
        if value in _KINDS:
            return _KINDS[value]
        if issubclass(value, dt.dtype):
            return numpy_type(value)
    try:
        kind: Kind = np.dtype(cast(Any, value)).newbyteorder("=")
    except TypeError:
        raise ArgumentTypeError(f"{name}: expected a dtype such as float32, got {value!r}") from None
    if value is None or kind not in _KERNEL_TYPES:
        raise ArgumentTypeError(
            f"{name}: arrays can have booleans, integers, real and complex numbers, got {value!r}"
        )
    return kind


def part_kind(kind: Kind) -> Kind:
    """Return the dtype of the parts of complex numbers; of other numbers their own."""
    return np.dtype(f"f{kind.itemsize // 2}") if kind.kind == "c" else kind


def has_float64() -> bool:
    """Whether the devices of the current context compute with float64; true without any device."""
    try:
        return bool(get_context().device_infos[0].float_64_support)
    except BackendUnavailableError:
        return True  # arrays without elements can have it


def default_real() -> Kind:
    """Return the dtype of real numbers that nothing else decides."""
    if "real" not in _REAL:
        return float64 if has_float64() else float32
    return _REAL["real"]


def default_complex() -> Kind:
    """Return the complex dtype that goes with `default_real`."""
    return np.dtype(np.complex128) if default_real() == float64 else np.dtype(np.complex64)


def set_default_dtype(dtype: object) -> None:
    """Let new real arrays have this dtype unless another one is given.

    Parameters
    ----------
    dtype
        float32 or float64; None restores the default: float64 where the device has it, else float32.

    Raises
    ------
    TypeError
        `dtype` is neither.

    Examples
    --------
    >>> vnp.set_default_dtype(vnp.float32)
    >>> vnp.ones(2)
    Array([1., 1.], dtype=float32)
    >>> vnp.set_default_dtype(None)
    """
    if dtype is None:
        _REAL.clear()
        return
    kind = parse_dtype(dtype)
    if kind not in (float32, float64):
        raise ArgumentTypeError(f"dtype: expected float32, float64 or None, got {dtype!r}")
    _REAL["real"] = kind


@lru_cache(4096)
def resolve(ufunc: np.ufunc, operands: tuple[Any, ...], wide: bool) -> tuple[Kind, ...]:
    """Return the dtypes with which a ufunc computes: of each input, then of each output.

    Parameters
    ----------
    operands
        The dtype of each input; of a Python number its type, which adapts to the others.
    wide
        Whether integers become float64 where they become real; else float32.

    Raises
    ------
    TypeError
        NumPy's function does not take these dtypes.
    """
    kinds = ufunc.resolve_dtypes((*operands, *(None,) * ufunc.nout))
    if not wide and not any(isinstance(each, np.dtype) and each in _NARROWER for each in operands):
        kinds = tuple(_NARROWER.get(each, each) for each in kinds)
    return tuple(kinds)
