"""Conversion of specialization and push constants."""

from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.kompute.arguments import require_iterable
from vkdispatch.kompute.errors import KomputeError

Array = np.ndarray[Any, Any]

# Arrays of these dtypes are not converted.
_AS_THEY_ARE = ("float32", "int32", "uint32")
# The dtype for each kind and number of bits that shaders declare.
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
    given = _as_array(argument, values)
    if given.dtype.name in _AS_THEY_ARE and isinstance(values, np.ndarray) and values.dtype.isnative:
        return given
    wanted = DECLARED.get(next(iter(declared)), "float32") if len(declared) == 1 else "float32"
    target = np.dtype(wanted)
    if target.kind == "f":
        return given.astype(target)
    if given.dtype.kind not in "biu":
        return given.astype(np.float32)
    for integer in (target, np.dtype(f"u{target}".replace("uu", "u"))):
        limits = np.iinfo(integer)
        if not given.size or (int(given.min()) >= limits.min and int(given.max()) <= limits.max):
            return given.astype(integer)
    raise KomputeError(f"{argument}: {given.tolist()} do not all fit the {wanted} that the shader declares")


def copy_constants(argument: str, values: Any) -> Any:
    """Return a copy of constants that can be iterated repeatedly. Raises TypeError for no numbers."""
    numbers = require_iterable(argument, values, "an array or a list of numbers")
    found = values.copy() if isinstance(values, np.ndarray) else list(numbers)
    _as_array(argument, found)
    return found


def _as_array(argument: str, values: object) -> Array:
    """Return numbers as a flat, contiguous array of the dtype that NumPy gives them."""
    numbers = require_iterable(argument, values, "an array or a list of numbers")
    try:
        made = np.ascontiguousarray(values if isinstance(values, np.ndarray) else list(numbers)).ravel()
        if made.dtype.kind == "O" and all(isinstance(value, (int, float)) for value in made):
            made = made.astype(np.float64)  # integers beyond the range of NumPy
    except (ValueError, OverflowError) as error:
        raise ArgumentTypeError(f"{argument}: expected numbers, got {values!r}: {error}") from None
    if made.size == 0:
        return made.astype(np.float32)
    if made.dtype.kind not in "biuf":
        raise ArgumentTypeError(f"{argument}: expected numbers, got {values!r}")
    return made
