"""Comparisons of functions on arrays with NumPy's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import vkdispatch as vd

# Relative errors allowed, by the bytes of a real number.
_RELATIVE = {2: 2e-3, 4: 2e-6, 8: 1e-13}


def outcome(call: Callable[[], Any]) -> Any:
    """Return what a call gives, or the type of error that it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call()
        except (TypeError, ValueError) as error:
            return ValueError if isinstance(error, ValueError) else TypeError


def same(found: Any, expected: Any, scale: float = 0.0, about: object = "") -> None:
    """Assert that two arrays agree in shape, dtype and values.

    `scale` is what errors are relative to, where that is more than the values.
    """
    if isinstance(expected, type):
        assert found is expected, (about, found, expected)
        return
    expected = np.asarray(expected)
    assert not isinstance(found, type), (about, found, expected)
    assert found.shape == expected.shape, (about, found.shape, expected.shape)
    assert found.dtype == expected.dtype, (about, found.dtype, expected.dtype)
    if expected.dtype.kind not in "fc":
        assert (found == expected).all(), (about, found, expected)
        return
    real = expected.real.dtype.itemsize
    np.testing.assert_allclose(
        found, expected, rtol=_RELATIVE[real], atol=_RELATIVE[real] * scale + 1e-30, err_msg=str(about)
    )


def check(
    name: str, x: np.ndarray[Any, Any], *args: Any, exact: Any = None, scale: float = 0.0, **kwargs: Any
) -> None:
    """Assert that `vd.name` gives what `np.name` does: its result, or its error.

    `exact` is a dtype in which NumPy is to compute what it gives in another.
    """
    theirs = getattr(np.linalg if name == "norm" else np, name)
    ours = getattr(vd, name)
    buffer = vd.asbuffer(x)
    found = outcome(lambda: ours(buffer, *args, **kwargs).read(0))
    expected = outcome(lambda: theirs(x, *args, **kwargs))
    if exact is not None and not isinstance(expected, type):
        kind = np.asarray(expected).dtype
        expected = outcome(lambda: np.asarray(theirs(x.astype(exact), *args, **kwargs)).astype(kind))
    same(found, expected, scale, (name, x.dtype, x.shape, args, kwargs))
