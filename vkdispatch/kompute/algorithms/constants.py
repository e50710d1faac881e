"""Conversion of specialization and push constants."""

from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.kompute.arguments import require_iterable
from vkdispatch.kompute.errors import KomputeError

Array = np.ndarray[Any, Any]

# Arrays of these dtypes are not converted.
_UNCONVERTED = ("float32", "int32", "uint32")
# The dtype of each kind and number of bits that shaders declare.
DECLARED = {
    ("float", 16): "float16",
    ("float", 32): "float32",
    ("float", 64): "float64",
    ("int", 8): "int8",
    ("int", 16): "int16",
    ("int", 32): "int32",
    ("int", 64): "int64",
    ("bool", 32): "uint32",
}


def parse_constants(argument: str, values: object, declared: "frozenset[tuple[str, int]]") -> Array:
    """Return constants as an array of the dtype that the shader takes.

    Parameters
    ----------
    argument
        The name of the argument, for messages.
    values
        An array or an iterable of numbers. Arrays of float32, int32 and uint32 keep their dtype. Other
        numbers become float32, or the type of all of the shader's constants if that is another one (only
        integers become integers).
    declared
        The types that the shader declares: kind (float, int or bool) and bits. The values determine whether
        integers are signed.

    Raises
    ------
    TypeError
        `values` are not numbers.
    RuntimeError
        A number does not fit the type that the shader declares.
    """
    array = _as_array(argument, values)
    if array.dtype.name in _UNCONVERTED and isinstance(values, np.ndarray) and values.dtype.isnative:
        return array
    declared_name = DECLARED.get(next(iter(declared)), "float32") if len(declared) == 1 else "float32"
    target = np.dtype(declared_name)
    if target.kind == "f":
        return array.astype(target)
    if array.dtype.kind not in "biu":
        return array.astype(np.float32)
    for integer in (target, np.dtype(f"u{target}".replace("uu", "u"))):
        limits = np.iinfo(integer)
        if not array.size or (int(array.min()) >= limits.min and int(array.max()) <= limits.max):
            return array.astype(integer)
    raise KomputeError(
        f"{argument}: {array.tolist()} do not all fit the {declared_name} that the shader declares"
    )


def copy_constants(argument: str, values: Any) -> Any:
    """Return a copy that can be iterated repeatedly. Raises TypeError if they are not numbers."""
    numbers = require_iterable(argument, values, "an array or a list of numbers")
    constants = values.copy() if isinstance(values, np.ndarray) else list(numbers)
    _as_array(argument, constants)
    return constants


def _as_array(argument: str, values: object) -> Array:
    """Return numbers as a flat, contiguous array of the dtype that NumPy chooses."""
    numbers = require_iterable(argument, values, "an array or a list of numbers")
    try:
        array = np.ascontiguousarray(values if isinstance(values, np.ndarray) else list(numbers)).ravel()
        if array.dtype.kind == "O" and all(isinstance(value, (int, float)) for value in array):
            array = array.astype(np.float64)  # integers beyond NumPy's range
    except (ValueError, OverflowError) as error:
        raise ArgumentTypeError(f"{argument}: expected numbers, got {values!r}: {error}") from None
    if array.size == 0:
        return array.astype(np.float32)
    if array.dtype.kind not in "biuf":
        raise ArgumentTypeError(f"{argument}: expected numbers, got {values!r}")
    return array
