"""Arguments of functions of the namespace, and limits of dtypes."""

from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.numpy.core.array import Array, parse_operand, value_of
from vkdispatch.numpy.core.conversion import asarray, host_data, is_of_python
from vkdispatch.numpy.core.memory import Kind, default_real

__all__ = ["finfo"]


# ---- Arguments of functions of the namespace: arrays, and small data of the host -------------------------


def require_array(x: Any, name: str = "x") -> Array:
    """Return an argument as an array; numbers are uploaded. Raises TypeError for anything else."""
    if isinstance(x, Array):
        return x
    parse_operand(x, name)
    return asarray(x)


def parse_value(x: Any, name: str = "x") -> Any:
    """Return the expression or view of an array or number. Raises TypeError for anything else."""
    return value_of(require_array(x, name))


def to_array(x: Any, name: str = "x") -> Array:
    """Return an argument as an array; numbers, lists and tuples are uploaded.

    Raises TypeError for anything else. NumPy's arrays are refused: they would be copied to the device in
    silence. All functions do so for elements that they compute with; see docs/reference/arrays/arrays.rst.
    """
    if isinstance(x, Array):
        return x
    return asarray(x) if isinstance(x, (list, tuple)) else require_array(x, name)


def require_choice(value: object, name: str, *choices: str) -> None:
    """Raise ValueError for an argument that is none of some texts."""
    if value not in choices:
        shown = ", ".join(map(repr, choices[:-1]))
        raise ArgumentValueError(f"{name}: expected {shown} or {choices[-1]!r}, got {value!r}")


def to_elements(x: Any, kind: Kind, name: str) -> Array:
    """Return as an array what becomes elements of a dtype.

    Raises OverflowError or TypeError for numbers of Python that the dtype does not hold, and as `to_array`.
    """
    return asarray(host_data(x, kind, name)) if is_of_python(x) else to_array(x, name)


def to_index(x: Any) -> Array:
    """Return indices as an array; those of the host, NumPy's arrays as well, are uploaded."""
    if isinstance(x, Array):
        return x
    data = np.asarray(x)
    return asarray(data.astype(np.int64) if data.size == 0 else data)


def asnumpy(x: Any) -> "np.ndarray[Any, Any]":
    """Return the values of an array, or of data of the host, as a NumPy array.

    Examples
    --------
    >>> vnp.asnumpy(vnp.arange(3))
    array([0, 1, 2])
    """
    return x.numpy() if isinstance(x, Array) else np.asarray(x)


def real_kind(kind: Kind) -> Kind:
    """Return the dtype that real results of arrays of a dtype have: the default one for integers."""
    return default_real() if kind.kind in "biu" else kind


# ---- Limits of dtypes: `finfo` of dtypes and of arrays ---------------------------------------------------


class finfo:  # noqa: N801
    """Limits of a real or complex dtype, also of an array's. See `numpy.finfo`.

    Attributes
    ----------
    bits
        How many bits a real number occupies.
    eps, max, min, smallest_normal, tiny, smallest_subnormal, resolution, epsneg
        As in NumPy, but Python floats for all dtypes, as the array API standard asks for.
    dtype
        The dtype of a real number; of complex dtypes that of their parts.

    All else is `numpy.finfo`'s.

    Raises
    ------
    ValueError
        It is a dtype of no real or complex numbers.
    """

    def __init__(self, dtype: Any, /) -> None:
        self._found = found = np.finfo(dtype.dtype if isinstance(dtype, (Array, np.ndarray)) else dtype)
        self.bits = int(found.bits)
        self.dtype: Kind = found.dtype
        self.eps, self.epsneg = float(found.eps), float(found.epsneg)
        self.max, self.min = float(found.max), float(found.min)
        self.smallest_normal = self.tiny = float(found.smallest_normal)
        self.smallest_subnormal = float(found.smallest_subnormal)
        self.resolution = float(found.resolution)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._found, name)

    def __repr__(self) -> str:
        return repr(self._found)
