"""Functions of `vkdispatch.numpy` against those of NumPy."""

from typing import Any

import pytest

import numpy as np
import vkdispatch.numpy as vnp

# Relative to the largest value, by the size of a real number.
_TOLERANCES = {2: 4e-3, 4: 2e-5, 8: 1e-11}


def upload(value: Any) -> Any:
    """Return arguments with arrays of NumPy as arrays of a device."""
    if isinstance(value, np.ndarray):
        return vnp.asarray(value)
    if isinstance(value, (list, tuple)) and any(isinstance(each, (np.ndarray, list)) for each in value):
        return type(value)(upload(each) for each in value)
    return value


def assert_same(found: Any, wanted: Any, what: object = "", tolerance: float | None = None) -> None:
    """Assert that results have the same structure, shapes, dtypes and values."""
    if isinstance(wanted, (list, tuple)):
        assert isinstance(found, (list, tuple)), what
        assert len(found) == len(wanted), what
        for one, other in zip(found, wanted, strict=True):
            assert_same(one, other, what, tolerance)
        return
    own = found.numpy() if isinstance(found, vnp.ndarray) else np.asarray(found)
    expected = np.asarray(wanted)
    assert (own.shape, own.dtype) == (expected.shape, expected.dtype), what
    if expected.dtype.kind not in "fc":
        np.testing.assert_array_equal(own, expected, str(what))
        return
    size = expected.dtype.itemsize // (2 if expected.dtype.kind == "c" else 1)
    finite = np.abs(expected[np.isfinite(expected)])
    scale = max(1.0, float(finite.max(initial=0)))
    allowed = (tolerance or _TOLERANCES[size]) * scale
    np.testing.assert_allclose(own, expected, rtol=0, atol=allowed, err_msg=str(what))


def check(name: str, *arguments: Any, tolerance: float | None = None, **options: Any) -> None:
    """Assert that a function returns, or raises, what NumPy's does."""
    shown = (name, *(each.shape if isinstance(each, np.ndarray) else each for each in arguments), options)
    given = [upload(each) for each in arguments]
    named = {key: upload(each) for key, each in options.items()}
    with np.errstate(all="ignore"):
        try:
            wanted = getattr(np, name)(*arguments, **options)
        except (TypeError, ValueError, IndexError) as error:
            kind = next(each for each in (IndexError, ValueError, TypeError) if isinstance(error, each))
            with pytest.raises(kind):
                getattr(vnp, name)(*given, **named)
            return
    assert_same(getattr(vnp, name)(*given, **named), wanted, shown, tolerance)


def check_write(name: str, target: "np.ndarray[Any, Any]", *arguments: Any, **options: Any) -> None:
    """Assert that a function writes what NumPy's does to its first argument, or raises the same."""
    own, wanted = upload(target), target.copy()
    given = [upload(each) for each in arguments]
    named = {key: upload(each) for key, each in options.items()}
    try:
        getattr(np, name)(wanted, *arguments, **options)
    except (TypeError, ValueError, IndexError) as error:
        kind = next(each for each in (IndexError, ValueError, TypeError) if isinstance(error, each))
        with pytest.raises(kind):
            getattr(vnp, name)(own, *given, **named)
            own.numpy()
        return
    getattr(vnp, name)(own, *given, **named)
    assert_same(own, wanted, (name, arguments, options))
