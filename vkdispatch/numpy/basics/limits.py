"""Limits of dtypes: `finfo` of dtypes and of arrays."""

from typing import Any

import numpy as np

from vkdispatch.numpy.core.array import Array
from vkdispatch.numpy.core.dtypes import Kind

__all__ = ["finfo"]


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
