"""Names of NumPy that arrays of a device do not have: what to use instead."""

from collections.abc import Callable
from typing import Any

from vkdispatch.base.errors import UnsupportedError

__all__ = [
    "apply_along_axis",
    "asmatrix",
    "bmat",
    "broadcast",
    "frompyfunc",
    "memmap",
    "ndenumerate",
    "ndindex",
    "nditer",
    "poly1d",
]


def _refuse(name: str, advice: str) -> Callable[..., Any]:
    def refuse(*arguments: Any, **options: Any) -> Any:
        raise UnsupportedError(f"{name}: not supported for arrays on a device; {advice}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Raise NotImplementedError: {advice}."
    return refuse


_BY_ELEMENT = (
    "it would call Python for each line of the array; use functions with axis=, or broadcasting, "
    "or a kernel made with vd.shader"
)
_BY_LOOP = "it would read each element; use functions of whole arrays, or loop over x.numpy()"

apply_along_axis = _refuse("apply_along_axis", _BY_ELEMENT)
frompyfunc = _refuse("frompyfunc", "use functions of whole arrays, or a kernel made with vd.shader")
nditer = _refuse("nditer", _BY_LOOP)
ndenumerate = _refuse("ndenumerate", _BY_LOOP)
ndindex = _refuse("ndindex", "use numpy.ndindex, which needs no array")
memmap = _refuse("memmap", "use numpy.memmap, and upload parts of it with asarray")
asmatrix = _refuse("asmatrix", "use arrays of two axes, and @ for products")
bmat = _refuse("bmat", "use block")
broadcast = _refuse("broadcast", "use broadcast_arrays or broadcast_shapes")
poly1d = _refuse("poly1d", "use polyval, polyfit and other functions of coefficients")
