"""How functions are planned without a form: numbers of tuning tables change, or functions of planners."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from importlib import import_module
from itertools import count
from typing import Any

from benchmarks.forms.calls import patch_attributes
from vkdispatch.base.record import replace

# Not by name: some names of modules are names of functions in their packages as well.
_scans = import_module("vkdispatch.scans.planning")
_topk, _selection = (import_module(f"vkdispatch.selection.{name}") for name in ("topk", "tuning"))
_passes, _transposing = (
    import_module("vkdispatch.fft.plan.passes"),
    import_module("vkdispatch.rearrange.transposing"),
)


_tokens = count()


def patch(module: Any, **attributes: Any) -> Callable[[], AbstractContextManager[None]]:
    """Return what replaces attributes of a module for a while."""
    return lambda: patch_attributes(module, **attributes)


def patch_transforms(module: Any, **attributes: Any) -> Callable[[], AbstractContextManager[None]]:
    """Return the same for transforms, whose kernels are kept by the limits of devices: these differ then."""
    limits, token = _passes.device_limits, next(_tokens)

    @contextlib.contextmanager
    def enter() -> Iterator[None]:
        with (
            patch_attributes(_passes, device_limits=lambda: (*limits(), token)),
            patch_attributes(module, **attributes),
        ):
            yield

    return enter


def change(table: Any, **numbers: Any) -> Callable[[], AbstractContextManager[None]]:
    """Return what changes numbers of a tuning table for a while."""
    return lambda: table.change(**numbers)


def find_by_digits(keys: Any, order: Any, rows: Any, k: int, plan: Any, graph: Any) -> Any:
    """Return candidates as `topk.find_candidates`, by the radix select alone."""
    narrowing = _topk._Narrowing(keys, order, rows, (k, k), graph)
    count, parts, _ = narrowing._shape
    starts = narrowing._words(count * parts + 1)
    _topk.clear_buffer(starts, graph)
    narrowing.collect_exactly(starts, narrowing.select_code(starts))
    return narrowing.targets


def plan_by_digits(length: int, k: int) -> Any:
    """Return the plan for `find_by_digits`."""
    return None if length < _selection.tuning.sample_length else _topk.Plan(0, 0, k)


def split_single_rows(
    planner: Any, outer: int, *others: int, split: Any = _scans.Planner.split_by_rows
) -> Any:
    """Return the ranges of a scan of one row; None for several rows."""
    return split(planner, outer, *others) if outer == 1 else None


def find_small_plane(*args: Any, find: Any = _transposing.find_plane) -> Any:
    """Return a plane that is too small for tiles."""
    return replace(find(*args), batches=2, rows=1, columns=1)
