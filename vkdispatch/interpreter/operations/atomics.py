"""Atomic operations: in order of the invocations, each of which gets the previous value."""

from collections.abc import Sequence

import numpy as np

from vkdispatch.base.errors import UnsupportedError
from vkdispatch.interpreter.memory import Place
from vkdispatch.interpreter.values import Array, broadcast_rows
from vkdispatch.ir.location import Loc, located

_UFUNCS: dict[str, np.ufunc] = {
    "atomicAdd": np.add,
    "atomicMin": np.minimum,
    "atomicMax": np.maximum,
    "atomicAnd": np.bitwise_and,
    "atomicOr": np.bitwise_or,
    "atomicXor": np.bitwise_xor,
}


def run_atomic_function(
    function: str, place: Place, operands: Sequence[Array], rows: int, loc: Loc | None
) -> Array:
    """Run an atomic for `rows` invocations, and return the previous values; 0 out of bounds."""
    cells = place.cells
    values = [place.select_rows(broadcast_rows(operand, rows)) for operand in operands]
    result = np.zeros(rows, cells.data.dtype if not values else values[0].dtype)
    if function.startswith("atomicLoad"):
        result[slice(None) if place.rows is None else place.rows] = cells.load(place.index)
        return result
    if function.startswith("atomicStore"):
        function = "atomicExchange"
    count = len(values[0])
    if not count:
        return result
    index = tuple(np.broadcast_to(part, count) for part in place.index)
    flat = np.ravel_multi_index(index, cells.data.shape)
    order = np.argsort(flat, kind="stable")
    flat = flat[order]
    values = [value[order] for value in values]
    starts = np.flatnonzero(np.concatenate([[True], flat[1:] != flat[:-1]]))
    ends = np.append(starts[1:], count)
    places = tuple(part[order] for part in index)
    found = np.empty(count, values[0].dtype)
    ufunc = _UFUNCS.get(function)
    if ufunc is None and function not in ("atomicExchange", "atomicCompSwap"):
        raise located(UnsupportedError, f"interpret: the GLSL function {function} is not known here", loc)
    if ufunc is not None and len(starts) < np.max(ends - starts):
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            here = tuple(part[start : start + 1] for part in places)
            chain = np.concatenate([cells.load(here), values[0][start:end]])
            chain = ufunc.accumulate(chain, dtype=chain.dtype)
            found[start:end] = chain[:-1]
            cells.store(here, chain[-1:])
    elif function == "atomicExchange":
        firsts = tuple(part[starts] for part in places)
        found[1:] = values[0][:-1]
        found[starts] = cells.load(firsts)
        cells.store(firsts, values[0][ends - 1])
    else:
        turns = np.arange(count) - np.repeat(starts, ends - starts)
        _by_turns(function, place, places, turns, values, found)
    unsorted = np.empty_like(found)
    unsorted[order] = found
    result[slice(None) if place.rows is None else place.rows] = unsorted
    return result


def _by_turns(
    function: str,
    place: Place,
    places: tuple[Array, ...],
    turns: Array,
    values: Sequence[Array],
    found: Array,
) -> None:
    """Apply the first invocation at each element, then the second ones, and so on."""
    by_turn = np.argsort(turns, kind="stable")
    bounds = np.searchsorted(turns[by_turn], np.arange(int(turns.max()) + 2))
    for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        chosen = by_turn[start:end]
        here = tuple(part[chosen] for part in places)
        before = place.cells.load(here)
        found[chosen] = before
        if function == "atomicCompSwap":
            after = np.where(before == values[0][chosen], values[1][chosen], before)
        else:
            after = _UFUNCS[function](before, values[0][chosen])
        place.cells.store(here, after)
