"""Windows for spectra: computed on the host, and uploaded in the default real dtype."""

from typing import Any

import numpy as np

from vkdispatch.numpy.core.array import Array, parse_index
from vkdispatch.numpy.core.conversion import asarray
from vkdispatch.numpy.core.dtypes import default_real
from vkdispatch.numpy.special import i0

__all__ = ["bartlett", "blackman", "hamming", "hanning", "i0", "kaiser"]


def _upload(values: "np.ndarray[Any, Any]") -> Array:
    return asarray(values.astype(default_real()))


def bartlett(M: int) -> Array:  # noqa: N803
    """Return the triangular window of `M` points. See `numpy.bartlett`.

    Examples
    --------
    >>> vnp.bartlett(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float64)
    """
    return _upload(np.bartlett(parse_index(M, "M")))


def blackman(M: int) -> Array:  # noqa: N803
    """Return Blackman's window of `M` points. See `numpy.blackman`.

    Examples
    --------
    >>> vnp.blackman(5)
    Array([-1.38777878e-17,  3.40000000e-01,  1.00000000e+00,  3.40000000e-01,
           -1.38777878e-17], dtype=float64)
    """
    return _upload(np.blackman(parse_index(M, "M")))


def hamming(M: int) -> Array:  # noqa: N803
    """Return Hamming's window of `M` points. See `numpy.hamming`.

    Examples
    --------
    >>> vnp.hamming(5)
    Array([0.08, 0.54, 1.  , 0.54, 0.08], dtype=float64)
    """
    return _upload(np.hamming(parse_index(M, "M")))


def hanning(M: int) -> Array:  # noqa: N803
    """Return von Hann's window of `M` points. See `numpy.hanning`.

    Examples
    --------
    >>> vnp.hanning(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float64)
    """
    return _upload(np.hanning(parse_index(M, "M")))


def kaiser(M: int, beta: float) -> Array:  # noqa: N803
    """Return Kaiser's window of `M` points. See `numpy.kaiser`.

    Examples
    --------
    >>> vnp.kaiser(5, 14)
    Array([7.72686684e-06, 1.64932188e-01, 1.00000000e+00, 1.64932188e-01,
           7.72686684e-06], dtype=float64)
    """
    return _upload(np.kaiser(parse_index(M, "M"), beta))
