"""Reductions that several tests make."""

from __future__ import annotations

from typing import Any

import vkdispatch as vd
from vkdispatch.base.dtype import DType
from vkdispatch.families.sources import identity_map


def plain(
    operation: vd.reduce.ReduceOp, kind: DType, axes: Any = None, group: int | None = None
) -> vd.reduce.ReduceFunction:
    """Reduce the elements themselves."""
    return vd.reduce.ReduceFunction(operation, group, axes, identity_map(kind), plain=True)


def answer(result: vd.Buffer[Any]) -> Any:
    """Return what a call has computed."""
    return result.read(0)[0]
