"""Expressions: element-wise operations that wait until something needs their values."""

import math
import sys
from collections.abc import Callable, Sequence
from os.path import dirname
from threading import RLock
from typing import Any, Union
from weakref import ref

from vkdispatch.numpy.core.dtypes import Kind
from vkdispatch.numpy.core.memory import Shape, View

_PACKAGE = dirname(dirname(dirname(__file__)))
# Larger expressions are computed in parts: kernels have bounded size, and bind a bounded number of buffers.
_MOST_NODES = 48
_MOST_READS = 12

# Evaluation and writes; expressions of different threads may share operands.
lock = RLock()


class Operation:
    """An element-wise operation.

    Attributes
    ----------
    name
        What NumPy calls it.
    compute
        Records it in a kernel: of the operands, already of the dtypes of `Node.kinds`, and the dtype of the
        result, returns the result.
    """

    __slots__ = ("compute", "name")

    def __init__(self, name: str, compute: Callable[..., Any]) -> None:
        self.name = name
        self.compute = compute

    def __repr__(self) -> str:
        return f"<operation {self.name}>"


class Node:
    """An operation and its operands. Once it is computed, it knows its result and no operands.

    Attributes
    ----------
    operation, operands
        What is to be done, with expressions, views and numbers.
    kinds
        The dtypes to which operands are converted before.
    shape, dtype, size
        Of the result.
    result
        The view that holds the values, or None while nothing has needed them.
    count, reads
        Upper bounds of the nodes of the expression and of its reads of memory.
    line
        The file and the line of the program that made it.
    """

    __slots__ = (
        "__weakref__",
        "count",
        "dtype",
        "kinds",
        "line",
        "operands",
        "operation",
        "reads",
        "result",
        "shape",
        "size",
    )

    operands: tuple[Any, ...]
    result: View | None

    def __init__(
        self,
        operation: Operation,
        operands: tuple[Any, ...],
        kinds: tuple[Kind, ...],
        shape: Shape,
        dtype: Kind,
    ) -> None:
        self.operation = operation
        self.operands = operands
        self.kinds = kinds
        self.shape = shape
        self.dtype = dtype
        self.size = math.prod(shape)
        self.result = None
        self.line = _caller()
        count = reads = 0
        for each in operands:
            kind = type(each)
            if kind is Node:
                count += each.count
                reads += each.reads
            elif kind is View:
                reads += 1
                readers = each.storage.readers
                if len(readers) > 32:
                    readers[:] = [r for r in readers if (n := r()) is not None and n.result is None]
                readers.append(ref(self))
        self.count = count + 1
        self.reads = reads


Value = Union[Node, View]

# An operand: the flat index of the element that is computed.
INDEX = object()


class Program:
    """An expression as kernels need it: its structure, the views that it reads, and its numbers.

    Attributes
    ----------
    steps
        What is computed, in order: `(operation, arguments, kinds, dtype)` for nodes, `("read", slot)` for
        elements of `views[slot]`, `("number", slot, kind)` for `numbers[slot]`, `("index", kind)` for the flat
        index. Arguments are positions of earlier steps.
    views, numbers
        What the steps read.
    shape
        The shape of the result.
    """

    __slots__ = ("numbers", "shape", "steps", "views")

    def __init__(self, root: Value) -> None:
        self.steps: list[tuple[Any, ...]] = []
        self.views: list[View] = []
        self.numbers: list[Any] = []
        self.shape = root.shape
        places: dict[int, int] = {}
        self._add(root, places)

    def _add(self, value: Any, places: dict[int, int], kind: Kind | None = None) -> int:
        known = places.get(id(value)) if type(value) is Node or type(value) is View else None
        if known is not None:
            return known
        if type(value) is Node:
            if value.result is None and value.shape == self.shape:
                arguments = tuple(
                    self._add(each, places, as_kind)
                    for each, as_kind in zip(value.operands, value.kinds, strict=True)
                )
                step: tuple[Any, ...] = (value.operation, arguments, value.kinds, value.dtype)
            else:
                view = value.result or evaluate(value)
                position = places[id(value)] = self._add(view, places)
                return position
        elif type(value) is View:
            slot = next((i for i, each in enumerate(self.views) if _is_same(each, value)), None)
            if slot is None:
                slot = len(self.views)
                self.views.append(value)
            step = ("read", slot)
            if step in self.steps:
                return self.steps.index(step)
        elif value is INDEX:
            step = ("index", kind)
        else:
            step = ("number", len(self.numbers), kind)
            self.numbers.append(value)
        self.steps.append(step)
        position = len(self.steps) - 1
        if type(value) is Node or type(value) is View:
            places[id(value)] = position
        return position


def _is_same(first: View, second: View) -> bool:
    return first is second or (
        first.storage is second.storage
        and first.offset == second.offset
        and first.dtype == second.dtype
        and first.shape == second.shape
        and first.strides == second.strides
    )


# What computes a program into a view; the module of kernels sets it.
_computing: list[Callable[[Program, Kind, View | None, tuple[str, int]], View]] = []


def compute_with(function: Callable[[Program, Kind, View | None, tuple[str, int]], View]) -> None:
    """Have expressions computed by a function of the module above."""
    _computing[:] = [function]


def make_node(
    operation: Operation,
    operands: Sequence[Any],
    kinds: tuple[Kind, ...],
    shape: Shape,
    dtype: Kind,
) -> Node:
    """Return an expression, whose operands are computed if it would become too large with them."""
    node = Node(operation, tuple(operands), kinds, shape, dtype)
    if node.count > _MOST_NODES or node.reads > _MOST_READS:
        for each in operands:
            if type(each) is Node and each.result is None and each.count > 1:
                evaluate(each)
        node = Node(operation, tuple(operands), kinds, shape, dtype)
    for each in operands:
        if type(each) is View and each.storage.is_shared:
            evaluate(node)
            break
    return node


def evaluate(value: Value) -> View:
    """Return the view that holds the values of an expression, which are computed if they are not yet."""
    if type(value) is View:
        return value
    assert isinstance(value, Node)
    with lock:
        if value.result is None:
            value.result = _computing[0](Program(value), value.dtype, None, value.line)
            value.operands = ()
            value.count, value.reads = 1, 1
        return value.result


def evaluate_into(value: Value, target: View) -> None:
    """Compute an expression of the shape and dtype of a view, and write it there.

    Expressions that wait to read what is overwritten are computed first.
    """
    with lock:
        settle_readers(target, value)
        _computing[0](Program(value), value.dtype, target, value.line if type(value) is Node else ("", 0))


def settle_readers(target: View, writing: Value | None = None) -> None:
    """Compute the expressions that wait to read the memory of a view; after that it may be written."""
    storage = target.storage
    with lock:
        waiting, storage.readers = storage.readers, []
        for each in waiting:
            node = each()
            if node is not None and node.result is None and node is not writing:
                evaluate(node)


def _caller() -> tuple[str, int]:
    """Return the file and line outside this package at which the running operation was called."""
    frame = sys._getframe(3)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno
