"""Subgroup operations and atomics on NumPy rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from vkdispatch.base.errors import UnsupportedError
from vkdispatch.compiler.interpreter.memory import Array, Place, broadcast_rows
from vkdispatch.compiler.ir.location import Loc, located

# ---- Subgroup operations on NumPy rows: over the active invocations of each subgroup ---------------------


_UFUNCS: dict[str, np.ufunc] = {
    "Add": np.add,
    "Mul": np.multiply,
    "Min": np.minimum,
    "Max": np.maximum,
    "And": np.bitwise_and,
    "Or": np.bitwise_or,
    "Xor": np.bitwise_xor,
}


@dataclass(frozen=True)
class Subgroups:
    """The active invocations of subgroups.

    Attributes
    ----------
    size
        Invocations in a full subgroup.
    slot
        For each active invocation, its index in a table of all subgroups with rows of `size`.
    count
        The number of subgroups.
    """

    size: int
    slot: Array
    count: int

    @property
    def lane(self) -> Array:
        """The position of each active invocation in its subgroup."""
        return self.slot % self.size

    @cached_property
    def active(self) -> Array:
        """A table of the active lanes."""
        table = np.zeros(self.count * self.size, np.bool_)
        table[self.slot] = True
        return table.reshape(self.count, self.size)

    def table(self, value: Array, rest: Any) -> Array:
        """Return a table of a value by subgroup, with `rest` for inactive lanes."""
        table = np.full((self.count * self.size, *value.shape[1:]), rest, value.dtype)
        table[self.slot] = value
        return table.reshape(self.count, self.size, *value.shape[1:])

    def rows(self, table: Array) -> Array:
        """Return the entry of a table for each active invocation."""
        flat: Array = table.reshape(self.count * self.size, *table.shape[2:])[self.slot]
        return flat

    def gather(self, value: Array, lane: Array) -> Array:
        """Return the value of another lane of the same subgroup; 0 if that lane is inactive."""
        inside = (lane >= 0) & (lane < self.size)
        source = self.slot // self.size * self.size + np.where(inside, lane, 0)
        table = self.table(value, 0)
        found: Array = table.reshape(self.count * self.size, *value.shape[1:])[source]
        found[~inside] = 0
        return found


def run_subgroup_function(name: str, groups: Subgroups, args: Sequence[Array], loc: Loc | None) -> Array:
    """Call a GLSL subgroup function. Raises UnsupportedError for unknown functions."""
    rows = len(groups.slot)
    values = [broadcast_rows(arg, rows) for arg in args]
    short = name.removeprefix("subgroup")
    rule = _RULES.get(short)
    if rule is not None:
        return rule(groups, *values)
    for prefix, family in _FAMILIES.items():
        ufunc = _UFUNCS.get(short.removeprefix(prefix))
        if short.startswith(prefix) and ufunc is not None:
            return family(groups, ufunc, *values)
    raise located(UnsupportedError, f"interpret: the GLSL function {name} is not known here", loc)


# ---- reductions and scans ------------------------------------------------------------------------


def _find_neutral(ufunc: np.ufunc, kind: np.dtype[Any]) -> Any:
    if ufunc in (np.minimum, np.maximum):
        if kind.kind == "f":
            return kind.type(np.inf if ufunc is np.minimum else -np.inf)
        limits = np.iinfo(kind)
        return kind.type(limits.max if ufunc is np.minimum else limits.min)
    if ufunc is np.bitwise_and:
        return kind.type(True) if kind.kind == "b" else np.invert(kind.type(0))
    return kind.type(1 if ufunc is np.multiply else 0)


def _reduce_clusters(groups: Subgroups, ufunc: np.ufunc, value: Array, cluster: Array) -> Array:
    size = min(int(cluster[0]), groups.size)
    table = groups.table(value, _find_neutral(ufunc, value.dtype))
    parts = table.reshape(groups.count, groups.size // size, size, *value.shape[1:])
    result = ufunc.reduce(parts, axis=2, dtype=value.dtype, keepdims=True)
    return groups.rows(np.broadcast_to(result, parts.shape).reshape(table.shape))


def _scan_inclusive(groups: Subgroups, ufunc: np.ufunc, value: Array) -> Array:
    table = groups.table(value, _find_neutral(ufunc, value.dtype))
    return groups.rows(ufunc.accumulate(table, axis=1, dtype=value.dtype))


def _scan_exclusive(groups: Subgroups, ufunc: np.ufunc, value: Array) -> Array:
    table = groups.table(value, _find_neutral(ufunc, value.dtype))
    scanned = np.roll(ufunc.accumulate(table, axis=1, dtype=value.dtype), 1, axis=1)
    scanned[:, 0] = _find_neutral(ufunc, value.dtype)
    return groups.rows(scanned)


_FAMILIES: dict[str, Callable[..., Array]] = {
    "InclusiveClustered": _reduce_clusters,
    "Inclusive": _scan_inclusive,
    "Exclusive": _scan_exclusive,
    "Clustered": _reduce_clusters,
    "": lambda groups, ufunc, value: _reduce_clusters(groups, ufunc, value, np.full(1, groups.size)),
}

# ---- votes, broadcasts, shuffles -----------------------------------------------------------------


def _find_first(groups: Subgroups) -> Array:
    """Return the lowest active lane of each invocation's subgroup."""
    lowest: Array = groups.active.argmax(axis=1)[groups.slot // groups.size]
    return lowest


def _vote(groups: Subgroups, table: Array) -> Array:
    result: Array = table[groups.slot // groups.size]
    return result


def _all(groups: Subgroups, value: Array) -> Array:
    return _vote(groups, np.all(groups.table(value, True), axis=1))


def _all_equal(groups: Subgroups, value: Array) -> Array:
    same = value == groups.gather(value, _find_first(groups))
    return _all(groups, same if same.ndim == 1 else same.all(axis=tuple(range(1, same.ndim))))


def _as_signed(value: Array) -> Array:
    return value.astype(np.int64)


def _shuffle(groups: Subgroups, value: Array, lane: Array) -> Array:
    return groups.gather(value, _as_signed(lane))


def _make_quad_swap(flip: int) -> Callable[..., Array]:
    return lambda groups, value: groups.gather(value, groups.lane ^ flip)


def _rotate(groups: Subgroups, value: Array, delta: Array, cluster: Array | None = None) -> Array:
    size = groups.size if cluster is None else min(int(cluster[0]), groups.size)
    start = groups.lane // size * size
    return groups.gather(value, start + (groups.lane - start + _as_signed(delta)) % size)


# ---- ballots -------------------------------------------------------------------------------------


def _pack_words(table: Array) -> Array:
    """Pack booleans, 128 in a row, to four words."""
    packed = np.packbits(table, axis=1, bitorder="little")
    return np.ascontiguousarray(packed).view("<u4")


def _unpack_bits(words: Array) -> Array:
    """Return the 128 booleans of each row of four words."""
    octets = np.ascontiguousarray(words).view(np.uint8)
    return np.unpackbits(octets, axis=1, bitorder="little").astype(np.bool_)


def _ballot(groups: Subgroups, value: Array) -> Array:
    table = np.zeros((groups.count, 128), np.bool_)
    table[:, : groups.size] = groups.table(value, False)
    return _vote(groups, _pack_words(table))


def _select_bits(groups: Subgroups, words: Array, rule: Callable[[Array, Array], Array]) -> Array:
    """Return the bits of ballots for the lanes that `rule(lane, own lane)` selects."""
    numbers = np.arange(128)
    return _unpack_bits(words) & (numbers < groups.size) & rule(numbers, groups.lane[:, None])


def _make_count_rule(rule: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    return lambda groups, words: _select_bits(groups, words, rule).sum(axis=1).astype(np.uint32)


def _accept_all(number: Array, lane: Array) -> Array:
    return number >= 0


def _ballot_lsb(groups: Subgroups, words: Array) -> Array:
    result: Array = _select_bits(groups, words, _accept_all).argmax(axis=1).astype(np.uint32)
    return result


def _ballot_msb(groups: Subgroups, words: Array) -> Array:
    result: Array = (127 - _select_bits(groups, words, _accept_all)[:, ::-1].argmax(axis=1)).astype(np.uint32)
    return result


def _extract(groups: Subgroups, words: Array, number: Array) -> Array:
    place = np.clip(_as_signed(number), 0, 127)[:, None]
    return np.take_along_axis(_unpack_bits(words), place, axis=1)[:, 0]


def make_lane_mask(lane: Array, size: int, rule: Callable[[Array, Array], Array]) -> Array:
    """Return four words with a bit for each lane for which `rule(lane, own lane)` holds."""
    numbers = np.arange(128)
    return _pack_words((numbers < size) & rule(numbers, lane[:, None]))


_RULES: dict[str, Callable[..., Array]] = {
    "Elect": lambda groups: groups.lane == _find_first(groups),
    "All": _all,
    "Any": lambda groups, value: _vote(groups, np.any(groups.table(value, False), axis=1)),
    "AllEqual": _all_equal,
    "Broadcast": _shuffle,
    "BroadcastFirst": lambda groups, value: groups.gather(value, _find_first(groups)),
    "Shuffle": _shuffle,
    "ShuffleXor": lambda groups, value, mask: groups.gather(value, groups.lane ^ _as_signed(mask)),
    "ShuffleUp": lambda groups, value, delta: groups.gather(value, groups.lane - _as_signed(delta)),
    "ShuffleDown": lambda groups, value, delta: groups.gather(value, groups.lane + _as_signed(delta)),
    "Rotate": _rotate,
    "ClusteredRotate": _rotate,
    "QuadBroadcast": lambda groups, value, lane: groups.gather(
        value, groups.lane // 4 * 4 + _as_signed(lane)
    ),
    "QuadSwapHorizontal": _make_quad_swap(1),
    "QuadSwapVertical": _make_quad_swap(2),
    "QuadSwapDiagonal": _make_quad_swap(3),
    "Ballot": _ballot,
    "InverseBallot": lambda groups, words: _extract(groups, words, groups.lane),
    "BallotBitExtract": _extract,
    "BallotBitCount": _make_count_rule(_accept_all),
    "BallotInclusiveBitCount": _make_count_rule(np.less_equal),
    "BallotExclusiveBitCount": _make_count_rule(np.less),
    "BallotFindLSB": _ballot_lsb,
    "BallotFindMSB": _ballot_msb,
}


# ---- Atomic operations: in order of the invocations, each of which gets the previous value ---------------


_ATOMIC_UFUNCS: dict[str, np.ufunc] = {
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
    ufunc = _ATOMIC_UFUNCS.get(function)
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
            after = _ATOMIC_UFUNCS[function](before, values[0][chosen])
        place.cells.store(here, after)
