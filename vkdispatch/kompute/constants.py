"""Specialization and push constants: which bytes a value becomes."""

from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.kompute.arguments import require_iterable
from vkdispatch.kompute.errors import KomputeError

Array = np.ndarray[Any, Any]

# Arrays of these are taken as they are; of others, and of lists, the values are.
_AS_THEY_ARE = ("float32", "int32", "uint32")
# What numbers become where the shader declares this kind, of so many bits.
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
    """Return constants as an array of what their bytes are to be.

    Parameters
    ----------
    argument
        How messages call them.
    values
        An array, or numbers in anything that can be iterated. Arrays of float32, int32 and uint32 keep their
        type. Other numbers become float32: unless all that the shader declares is of another type, which they
        then become (whole numbers alone become integers).
    declared
        The types that the shader declares there: kind (float, int or bool) and bits of each. Whether an
        integer has a sign is left to the values.

    Raises
    ------
    TypeError
        `values` are no numbers.
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
    """Return constants such that they can be looked at more than once. Raises TypeError for no numbers."""
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
            made = made.astype(np.float64)  # of more bits than integers of NumPy have
    except (ValueError, OverflowError) as error:
        raise ArgumentTypeError(f"{argument}: expected numbers, got {values!r}: {error}") from None
    if made.size == 0:
        return made.astype(np.float32)
    if made.dtype.kind not in "biuf":
        raise ArgumentTypeError(f"{argument}: expected numbers, got {values!r}")
    return made
