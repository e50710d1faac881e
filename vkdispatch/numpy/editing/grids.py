"""Grids and sequences by slices in brackets: `mgrid`, `ogrid`, `r_`, `c_`, `s_`."""

from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentTypeError, UnsupportedError
from vkdispatch.numpy.basics.inputs import to_array
from vkdispatch.numpy.basics.joining import column_stack, concatenate, stack
from vkdispatch.numpy.basics.manipulation import atleast_1d, broadcast_to
from vkdispatch.numpy.basics.sequences import arange, linspace
from vkdispatch.numpy.core.array import Array
from vkdispatch.numpy.core.conversion import asarray
from vkdispatch.numpy.core.dtypes import default_real

__all__ = ["c_", "index_exp", "mgrid", "ogrid", "r_", "s_"]

s_, index_exp = np.s_, np.index_exp


class _Grid:
    """See `numpy.mgrid` and `numpy.ogrid`."""

    def __init__(self, *, sparse: bool) -> None:
        self._sparse = sparse

    def __getitem__(self, key: Any) -> Any:
        try:
            axes: Any = np.ogrid[key]
        except (TypeError, AttributeError):
            raise ArgumentTypeError(f"expected slices such as 0:5 or 0:1:11j, got {key!r}") from None
        if isinstance(axes, np.ndarray):
            return asarray(_narrow(axes))
        found = [asarray(_narrow(each)) for each in axes]
        if self._sparse:
            return tuple(found)
        shape = tuple(each.shape[i] for i, each in enumerate(found))
        return stack([broadcast_to(each, shape) for each in found])


def _narrow(values: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    return values.astype(default_real()) if values.dtype.kind == "f" else values


class _Joiner:
    """See `numpy.r_` and `numpy.c_`. Texts, which give the axes, are not implemented."""

    def __init__(self, *, columns: bool) -> None:
        self._columns = columns

    def __getitem__(self, key: Any) -> Array:
        parts = []
        for each in key if isinstance(key, tuple) else (key,):
            if isinstance(each, str):
                raise UnsupportedError(f"{each!r}: texts are not implemented; use concatenate with axis=")
            if isinstance(each, slice):
                start, step = each.start or 0, 1 if each.step is None else each.step
                if isinstance(step, complex):
                    parts.append(linspace(start, each.stop, int(abs(step))))
                else:
                    parts.append(arange(start, each.stop, step))
            else:
                parts.append(atleast_1d(to_array(each)))
        return column_stack(parts) if self._columns else concatenate(parts)


mgrid, ogrid = _Grid(sparse=False), _Grid(sparse=True)
r_, c_ = _Joiner(columns=False), _Joiner(columns=True)
