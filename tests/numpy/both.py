"""The same statement run with NumPy and with `vkdispatch.numpy`: values, dtypes, shapes and errors agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import numpy as np
import vkdispatch.numpy as vnp
from vkdispatch.base.native_module import native

_KINDS = (IndexError, OverflowError, ValueError, TypeError)


def run_both(function: Callable[..., Any], *arrays: Any) -> None:
    """Call a function of a namespace and arrays twice, and compare what it returns and writes."""
    own = [each.copy() for each in arrays]
    theirs = [vnp.asarray(each) for each in arrays]
    expected, error = _attempt(lambda: function(np, *own))
    found, failure = _attempt(lambda: _on_host(function(vnp, *theirs)))
    if error is not None or failure is not None:
        assert error is not None and failure is not None, (error, failure)
        assert _kind_of(failure) is _kind_of(error), (error, failure)
        return
    compare(found, expected)
    for host, array in zip(own, theirs, strict=True):
        compare(array.numpy(), host)


def run_texts(texts: str, *arrays: Any) -> None:
    """Run each line with the namespace `m` and the arrays `x`, `y`, `z`; what it sets `r` to is compared."""
    for line in texts.strip().splitlines():
        code = compile(line.strip(), line.strip(), "exec")

        def run(m: Any, *values: Any, code: Any = code) -> Any:
            names = {"m": m, "np": np, **dict(zip("xyz", values, strict=False))}
            exec(code, names)
            return names.get("r")

        try:
            run_both(run, *arrays)
        except AssertionError as error:
            raise AssertionError(f"{line.strip()}: {error}") from None


def compare(found: Any, expected: Any) -> None:
    """Compare arrays, or sequences of arrays, with their bits but for those of NaN."""
    if isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            compare(one, other)
        return
    one, other = np.asarray(found), np.asarray(expected)
    assert (one.dtype, one.shape) == (other.dtype, other.shape)
    assert np.array_equal(one, other, equal_nan=other.dtype.kind in "fc"), (one, other)


def _attempt(function: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        return function(), None
    except Exception as error:
        return None, error


def _kind_of(error: Exception) -> Any:
    return next((kind for kind in _KINDS if isinstance(error, kind)), Exception)


def _on_host(value: Any) -> Any:
    if isinstance(value, vnp.ndarray):
        return value.numpy()
    return [_on_host(each) for each in value] if isinstance(value, (list, tuple)) else value


def check_evaluations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have all expressions computed by the checking path, in which tests replace functions."""

    def look_up(value: native.Node | native.View) -> native.View | None:
        return value if isinstance(value, native.View) else value.result

    monkeypatch.setattr(native, "evaluate_known", look_up)
