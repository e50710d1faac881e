"""Runs the source of a kernel as ordinary Python, one invocation at a time.

Integers are Python's: programs are drawn so that none leaves the range of its type on the device. Workgroups
run in lockstep from barrier to barrier. A subgroup is one invocation here, so programs may only use subgroups
in ways whose outcome does not depend on their size.
"""

from __future__ import annotations

import ast
import builtins
import itertools
import math
from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeGuard

import numpy as np

from . import source_items

RANGES: dict[str, tuple[int, int]] = {
    f"{sign}{bits}": (0, (1 << bits) - 1) if sign == "u" else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    for sign in "iu"
    for bits in (8, 16, 32, 64)
}


class ModelError(Exception):
    """The program leaves what is defined: it was drawn, or made smaller, badly."""


class Vector:
    """A vector of numbers: mutable, and shared by the names that are bound to it."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.__dict__["values"] = list(values)

    def __getattr__(self, name: str) -> Any:
        if not set(name) <= set("xyzw"):
            raise AttributeError(name)
        found = [self.values["xyzw".index(letter)] for letter in name]
        return found[0] if len(found) == 1 else Vector(found)

    def __setattr__(self, name: str, value: Any) -> None:
        if len(name) == 1:
            self.values["xyzw".index(name)] = value
        else:
            for letter, each in zip(name, list(value.values), strict=True):
                self.values["xyzw".index(letter)] = each

    def __getitem__(self, place: int) -> Any:
        return self.values[place]

    def __setitem__(self, place: int, value: Any) -> None:
        self.values[place] = value

    def _with(self, other: Any, rule: Callable[[Any, Any], Any]) -> Vector:
        others = other.values if isinstance(other, Vector) else [other] * len(self.values)
        return Vector([rule(a, b) for a, b in zip(self.values, others, strict=True)])

    def __add__(self, other: Any) -> Vector:
        return self._with(other, lambda a, b: a + b)

    def __sub__(self, other: Any) -> Vector:
        return self._with(other, lambda a, b: a - b)

    def __mul__(self, other: Any) -> Vector:
        return self._with(other, lambda a, b: a * b)

    def __mod__(self, other: Any) -> Vector:
        return self._with(other, lambda a, b: a % b)

    def __floordiv__(self, other: Any) -> Vector:
        return self._with(other, lambda a, b: a // b)

    def __and__(self, other: Any) -> Vector:
        return self._with(other, lambda a, b: a & b)

    __radd__ = __add__
    __rmul__ = __mul__


def _scalar(kind: str) -> str:
    return {"iv": "i32", "uv": "u32", "v": "f32"}.get(kind.rstrip("234"), kind)


def checked(kind: str, value: Any) -> Any:
    """Make a value one of a type, as a store does; refuse what the device would not hold exactly."""
    if isinstance(value, Vector):
        return Vector([checked(_scalar(kind), each) for each in value.values])
    kind = _scalar(kind)
    if kind == "b8":
        return bool(value)
    if kind == "f32":
        if float(np.float32(value)) != value:
            raise ModelError(f"{value} is no float32")
        return float(value)
    low, high = RANGES[kind]
    if kind in ("i8", "u8"):
        return wrapped(kind, int(value))
    if not low <= value <= high:
        raise ModelError(f"{value} is no {kind}")
    return int(value)


class Place:
    """An element, to be changed in place."""

    def __init__(self, cells: Cells, index: int) -> None:
        self.__dict__["cells"], self.__dict__["index"] = cells, index

    def get(self) -> Any:
        return self.cells[self.index]

    def set(self, value: Any) -> None:
        self.cells[self.index] = value

    def part(self, letters: str) -> Part:
        return Part(self, letters)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.get(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        vector = self.get()
        setattr(vector, name, value)
        self.set(vector)


class Part:
    """Components of an element, to be changed in place."""

    def __init__(self, place: Place, letters: str) -> None:
        self.place, self.letters = place, letters

    def get(self) -> Any:
        return getattr(self.place.get(), self.letters)

    def set(self, value: Any) -> None:
        setattr(self.place, self.letters, value)


class Cells:
    """A buffer or shared array. Reading an element gives a value."""

    def __init__(self, kind: str, data: list[Any], *, wraps: bool = False) -> None:
        self.kind = kind
        self.wraps = wraps
        self.data = [Vector(each) if isinstance(each, list) else each for each in data]

    def _index(self, index: Any) -> int:
        if not 0 <= index < len(self.data):
            raise ModelError(f"index {index} of {len(self.data)}")
        return int(index)

    def __getitem__(self, index: Any) -> Any:
        value = self.data[self._index(index)]
        if value is None:
            raise ModelError("shared memory that nobody wrote")
        return Vector(value.values) if isinstance(value, Vector) else value

    def __setitem__(self, index: Any, value: Any) -> None:
        if self.wraps:
            value = wrapped(self.kind, value)
        self.data[self._index(index)] = checked(self.kind, value)

    def at(self, index: Any) -> Place:
        return Place(self, self._index(index))

    def plain(self) -> list[Any]:
        return [each.values if isinstance(each, Vector) else each for each in self.data]


class Ids:
    """Numbers of the invocation that runs."""

    def __init__(self) -> None:
        self.place: tuple[int, ...] = (0, 0, 0)
        self.local: tuple[int, ...] = (0, 0, 0)
        self.group: tuple[int, ...] = (0, 0, 0)
        self.index = 0
        self.shared: dict[str, Cells] = {}


_ATOMICS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "min": min,
    "max": max,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "exchange": lambda a, b: b,
}
_NEUTRAL: dict[str, Any] = {"add": 0, "mul": 1, "or": 0, "xor": 0}
_MADE = {
    "to_int": "i32", "to_uint": "u32", "to_int16": "i16", "to_uint16": "u16", "to_int64": "i64",
    "to_uint64": "u64",
}  # fmt: skip


def _atomic(rule: Callable[[Any, Any], Any]) -> Callable[[Place, Any], Any]:
    def change(place: Place, operand: Any) -> Any:
        old = place.get()
        place.set(rule(old, operand))
        return old

    return change


def _compare_exchange(place: Place, expected: Any, desired: Any) -> Any:
    old = place.get()
    if old == expected:
        place.set(desired)
    return old


def _convert(kind: str, wraps: bool) -> Callable[[Any], Any]:
    def convert(value: Any) -> Any:
        return checked(kind, wrapped(kind, int(value)) if wraps else int(value))

    return convert


def wrapped(kind: str, value: int) -> int:
    """Take a number around the range of a type until it is in it."""
    low, high = RANGES[kind]
    return (value - low) % (high - low + 1) + low


def language(ids: Ids, local_size: tuple[int, ...], wraps: bool) -> Any:
    """Return the stand-in for `vc`."""

    class Language:
        pass

    vc: Any = Language()
    vc.global_invocation_id = lambda: Vector(ids.place)
    vc.local_invocation_id = lambda: Vector(ids.local)
    vc.local_invocation_index = lambda: ids.index
    vc.workgroup_id = lambda: Vector(ids.group)
    vc.workgroup_size = lambda: Vector((*local_size, 1, 1)[:3])

    def shared_buffer(kind: str, size: int, name: str) -> Cells:
        return ids.shared.setdefault(name, Cells(kind, [None] * size))

    vc.shared_buffer = shared_buffer
    vc.local_array = source_items.local_array
    for kind in (*RANGES, "f32"):
        setattr(vc, kind, kind)
    vc.range, vc.min, vc.max, vc.abs = range, min, max, abs
    vc.clip = lambda x, low, high: min(max(x, low), high)
    vc.select = lambda condition, a, b: a if condition else b
    for name, kind in _MADE.items():
        setattr(vc, name, _convert(kind, wraps))
    vc.to_float = float
    vc.fmod, vc.copysign, vc.floor_mod = math.fmod, math.copysign, lambda a, b: a % b
    for count, kind in itertools.product((2, 3, 4), ("ivec", "uvec", "vec")):
        setattr(vc, f"to_{kind}{count}", lambda *values: Vector(values))
    for name, rule in _ATOMICS.items():
        setattr(vc, f"atomic_{name}", _atomic(rule))
    vc.atomic_compare_exchange = _compare_exchange
    for name in ("add", "mul", "min", "max", "and", "or", "xor"):
        setattr(vc, f"subgroup_{name}", lambda x: x)
        setattr(vc, f"subgroup_inclusive_{name}", lambda x: x)
    for name, neutral in _NEUTRAL.items():
        setattr(vc, f"subgroup_exclusive_{name}", lambda x, neutral=neutral: neutral)
    vc.subgroup_elect = lambda: True
    vc.subgroup_all = vc.subgroup_any = bool
    vc.subgroup_all_equal = lambda x: True
    vc.subgroup_broadcast_first = lambda x: x
    vc.subgroup_ballot = bool
    vc.subgroup_ballot_bit_count = int
    vc.subgroup_invocation_id = lambda: 0
    vc.subgroup_shuffle = lambda x, lane: x
    return vc


class _Rewriter(ast.NodeTransformer):
    """Says what Python cannot know: places of elements, and where a workgroup waits."""

    def __init__(self, waiting: set[str]) -> None:
        self.waiting = waiting

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Subscript):
            node.value = _at(node.value)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        target = node.targets[0]
        if isinstance(target, ast.Name) and target.id.startswith("place"):
            self.generic_visit(node)
            return ast.Assign(node.targets, _reference(node.value), lineno=node.lineno)
        self.generic_visit(node)
        if isinstance(node.value, ast.Tuple):
            node.value.elts = list(map(_copied, node.value.elts))
        node.value = _copied(node.value)
        return ast.Expr(_call(target.value, "set", node.value)) if _is_whole(target) else node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if not _is_whole(node.target):
            return node
        value = ast.BinOp(_call(node.target.value, "get"), node.op, node.value)
        return ast.Expr(_call(node.target.value, "set", value))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "now":
            return _call(node.args[0], "get")
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
            name = node.func.attr
            if name.startswith("atomic_") and isinstance(node.args[0], ast.Subscript):
                node.args[0] = _at(node.args[0])
            if name == "barrier":
                return ast.Yield(None)
        if isinstance(node.func, ast.Name) and node.func.id in self.waiting:
            return ast.YieldFrom(node)
        if isinstance(node.func, ast.Name):
            node.args = list(map(_copied, node.args))
        return node


def _copied(node: ast.expr) -> ast.expr:
    """Copy a structure that is read from an array."""
    if not isinstance(node, (ast.Subscript, ast.Attribute)):
        return node
    return ast.Call(ast.Name("_copied", ast.Load()), [node], [])


def _call(owner: ast.expr, name: str, *values: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(owner, name, ast.Load()), list(values), [])


def _at(node: ast.Subscript) -> ast.Call:
    return _call(node.value, "at", node.slice)


def _is_whole(target: ast.expr) -> TypeGuard[ast.Subscript]:
    return isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Slice)


def _reference(node: ast.expr) -> ast.expr:
    """Make the element, or the part of one, that a name is bound to a place."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return type(node)([_reference(each) for each in node.elts], ast.Load())
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Subscript):
        return _call(_at(node.value), "part", ast.Constant(node.attr))
    return _at(node) if isinstance(node, ast.Subscript) else node


def _waiting(tree: ast.Module) -> set[str]:
    """Names of functions with barriers."""
    return {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and "vc.barrier()" in ast.unparse(node)
    }


def _round(value: float) -> int:
    return math.floor(value)


def run(
    source: str,
    buffers: list[tuple[str, list[Any]]],
    arguments: list[int],
    exec_size: tuple[int, ...],
    local_size: tuple[int, ...],
    *,
    wraps: bool = False,
) -> list[list[Any]]:
    """Run the function `kernel` of a module for every invocation; returns what the buffers hold then.

    A store of what does not fit is an error, or wraps around.
    """
    tree = ast.parse(source)
    waiting = _waiting(tree)
    # a kernel's own name is not called
    tree = ast.fix_missing_locations(_Rewriter(waiting - {"kernel"}).visit(tree))
    tree.body = [node for node in tree.body if not isinstance(node, (ast.Import, ast.ImportFrom))]
    cells = [Cells(kind, data, wraps=wraps) for kind, data in buffers]
    ids = Ids()
    namespace: dict[str, Any] = {
        "vc": language(ids, local_size, wraps),
        "math": math,
        "vd": source_items.Types,
        "dataclass": source_items.structure,
        "_copied": source_items.copied,
        "__builtins__": builtins,
        "__name__": "model",
    }
    exec(compile(tree, "<model>", "exec", dont_inherit=True), namespace)
    kernel = namespace["kernel"]
    parameters = [cells[place] for place in arguments]
    size, local = (*exec_size, 1, 1)[:3], (*local_size, 1, 1)[:3]
    groups = [-(-n // m) for n, m in zip(size, local, strict=True)]
    for group in itertools.product(*map(range, reversed(groups))):
        _run_group(kernel, parameters, ids, tuple(reversed(group)), size, local)
    return [each.plain() for each in cells]


def _run_group(
    kernel: Callable[..., Any],
    parameters: list[Cells],
    ids: Ids,
    group: tuple[int, ...],
    size: tuple[int, ...],
    local: tuple[int, ...],
) -> None:
    shared: dict[str, Cells] = {}
    running: list[tuple[tuple[Any, ...], Generator[None]]] = []
    for index, backwards in enumerate(itertools.product(*map(range, reversed(local)))):
        lane = tuple(reversed(backwards))
        place = tuple(g * m + n for g, m, n in zip(group, local, lane, strict=True))
        if any(n >= m for n, m in zip(place, size, strict=True)):
            continue
        ids.place, ids.local, ids.group, ids.index, ids.shared = place, lane, group, index, shared
        result = kernel(*parameters)
        if isinstance(result, Generator):
            running.append(((place, lane, group, index, shared), result))
    while running:
        left = []
        for state, routine in running:
            ids.place, ids.local, ids.group, ids.index, ids.shared = state
            try:
                next(routine)
            except StopIteration:
                continue
            left.append((state, routine))
        if left and len(left) != len(running):
            raise ModelError("invocations that wait at different barriers")
        running = left
