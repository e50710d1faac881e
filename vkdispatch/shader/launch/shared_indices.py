"""Indices of shared memory: whether an invocation means its own element, that of a neighbour, or any."""

import math
from typing import Literal

from vkdispatch.base.record import record
from vkdispatch.ir import Builtin, Expr, Kernel, Op, Register
from vkdispatch.shader.launch.origins import Origins

_IDS = frozenset((Builtin.GLOBAL_INVOCATION_ID, Builtin.LOCAL_INVOCATION_ID))
_OWN = _IDS | {Builtin.LOCAL_INVOCATION_INDEX, Builtin.SUBGROUP_ID, Builtin.SUBGROUP_INVOCATION_ID}


@record
class Index:
    """The index along one axis.

    Its `kind` is "own" for an id plus an offset, "free" if it holds no id, and else "unknown". `key` tells
    ids apart, which have `span` values. An `offset` that is no number, as in `63 - lane`, is None.
    """

    kind: Literal["own", "free", "unknown"]
    key: tuple[object, ...] = ()
    offset: int | None = 0
    is_number: bool = False
    span: int = 0


_FEW = 32
_UNKNOWN = Index("unknown")


def meet(store: tuple[Index, ...], other: tuple[Index, ...]) -> str:
    """Compare the index of a store with that of another access to the same array.

    Returns "own" if an invocation meets its own store, "shifted" if it meets that of a neighbour, "all" if
    many invocations meet one store, "" if that is not known.
    """
    if len(store) != len(other) or all(mine.kind == "free" for mine in store):
        return ""
    found = "own"
    for mine, theirs in zip(store, other, strict=True):
        if mine.kind != "own":
            if mine.kind == "unknown" or mine != theirs:
                found = "" if found == "own" else found
            continue
        if theirs.kind == "free":
            return "all"
        if theirs.kind == "unknown":
            return ""
        if mine.key == theirs.key and mine.offset == theirs.offset:
            found = "" if mine.offset is None else found
        elif mine.key != theirs.key or mine.offset is None or theirs.offset is None:
            found = "shifted" if mine.key == theirs.key or _is_transposed(mine, theirs) else ""
            if not found:
                return ""
        elif abs(mine.offset - theirs.offset) < mine.span:
            found = "shifted"
        else:
            return ""
    return found


def _is_transposed(a: Index, b: Index) -> bool:
    """Whether two indices are different ids, as of t[y, x] and t[x, y]."""
    return len(a.key) == len(b.key) == 1 and a.offset == b.offset == 0


def _is_own(node: Expr) -> bool:
    return node.op is Op.SUBGROUP or node.value in _OWN


class Indices:
    """The indices of a kernel's shared arrays."""

    def __init__(self, kernel: Kernel, local_size: object) -> None:
        size = (local_size,) if isinstance(local_size, int) else local_size
        self._size = tuple(size) if isinstance(size, (tuple, list)) else None
        self._origins = Origins(kernel, _is_own)

    def of(self, place: Expr) -> tuple[Index, ...]:
        """Return the index of an element along each axis."""
        entries = tuple(entry for entry, _ in place.axes) or place.args
        return tuple(map(self._classify, entries))

    def has_id(self, root: Expr) -> bool:
        """Whether a value is computed from ids of the invocation; what is read from memory is not."""
        return self._origins.reaches(root)

    def _classify(self, entry: Expr) -> Index:
        if not self.has_id(entry):
            return Index("free", is_number=entry.op is Op.LITERAL)
        while entry.op is Op.CONSTRUCT and len(entry.args) == 1:
            (entry,) = entry.args
        if isinstance(entry.value, Register):
            # `for j in range(lane, n, 64)` gives each invocation elements of its own
            start = self._classify(self._origins.values[entry.value][0]) if entry.value.counter else _UNKNOWN
            return Index("own", ("loop", entry.value), None) if start.kind == "own" else _UNKNOWN
        ids, offset, rest = self._split(entry)
        if not any(factor == 1 for _, factor in ids):
            return _UNKNOWN
        if rest:
            return Index("own", (ids[0][0],), None) if len(ids) == 1 else _UNKNOWN
        key: tuple[object, ...] = (ids[0][0],) if len(ids) == 1 else tuple(ids)
        return Index("own", key, offset, span=self._span(key))

    def _span(self, key: tuple[object, ...]) -> int:
        """Return how many numbers an id has in a workgroup; a few where the size is not known."""
        if self._size is None:
            return _FEW
        axis = str(key[0])[-1]
        along = len(key) == 1 and axis in "xyz"
        return self._size["xyz".index(axis)] if along else math.prod(self._size)

    def _split(self, entry: Expr) -> tuple[list[tuple[object, int]], int, bool]:
        """Take a sum apart: its ids with their factors, its number, and whether it has other parts."""
        ids: list[tuple[object, int]] = []
        offset, rest = 0, False
        waiting = [(entry, 1)]
        while waiting:
            node, factor = waiting.pop()
            key = self._key_of(node)
            if key is not None:
                ids.append((key, factor))
            elif node.op is Op.LITERAL and isinstance(node.value, int):
                offset += factor * node.value
            elif node.op is Op.CONSTRUCT and len(node.args) == 1:
                waiting.append((node.args[0], factor))
            elif node.op is Op.BINARY and node.value in ("+", "-"):
                waiting.append((node.args[0], factor))
                waiting.append((node.args[1], factor if node.value == "+" else -factor))
            elif node.op is Op.BINARY and node.value == "*" and isinstance(node.args[1].value, int):
                waiting.append((node.args[0], factor * node.args[1].value))
            elif node.op is Op.BINARY and node.value == "^" and self._key_of(node.args[0]) is not None:
                ids.append((self._key_of(node.args[0]), 1))
                rest = True
            elif self.has_id(node):
                return [], 0, True
            else:
                rest = True
        if len(ids) == 1 and ids[0][1] == -1:
            return [(ids[0][0], 1)], 0, True
        return sorted(ids, key=repr), offset, rest

    def _key_of(self, node: Expr) -> object:
        """Return what tells an id apart, or None for other values."""
        if node.value is Builtin.LOCAL_INVOCATION_INDEX:
            return node.value
        if node.op is Op.COMPONENT and node.args[0].value in _IDS:
            axis = "xyz".index(str(node.value))
            if self._size is not None and (axis >= len(self._size) or self._size[axis] == 1):
                return None
            return f"{node.args[0].value}.{node.value}"
        return None
