"""Expressions: element-wise operations that wait until something needs their values."""

import sys
from collections.abc import Callable
from os.path import dirname
from threading import RLock
from typing import Any
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
        Records it in a kernel: of the operands, already of the dtypes of the loop, and the dtype of the
        result, returns the result.
    """

    __slots__ = ("compute", "name")

    def __init__(self, name: str, compute: Callable[..., Any]) -> None:
        self.name = name
        self.compute = compute

    def __repr__(self) -> str:
        return f"<operation {self.name}>"


class Loop:
    """An operation with its dtypes. Loops with the same ones are one object: see `find_loop`.

    Attributes
    ----------
    operation
        What is computed.
    kinds
        The dtypes to which operands are converted before.
    dtype
        Of the result.
    """

    __slots__ = ("dtype", "kinds", "operation")

    def __init__(self, operation: Operation, kinds: tuple[Kind, ...], dtype: Kind) -> None:
        self.operation = operation
        self.kinds = kinds
        self.dtype = dtype


_loops: dict[tuple[Any, ...], Loop] = {}


def find_loop(operation: Operation, kinds: tuple[Kind, ...], dtype: Kind) -> Loop:
    """Return the loop of an operation and dtypes."""
    key = (operation, dtype.num, *(kind.num for kind in kinds))
    found = _loops.get(key)
    if found is None:
        found = _loops.setdefault(key, Loop(operation, kinds, dtype))
    return found


class Node:
    """An operation and its operands. Once it is computed, it knows its result and no operands.

    Attributes
    ----------
    loop, operands
        What is to be done, with expressions, views and numbers.
    shape, dtype, size
        Of the result.
    result
        The view that holds the values, or None while nothing has needed them.
    count, reads
        Upper bounds of the nodes of the expression and of its reads of memory.
    users
        Weak references to the expressions that have it as an operand: once it is computed they wait to read
        its result.
    line
        The file and the line of the program that made it.
    """

    __slots__ = (
        "__weakref__",
        "count",
        "dtype",
        "line",
        "loop",
        "operands",
        "reads",
        "result",
        "shape",
        "size",
        "users",
    )

    operands: tuple[Any, ...]
    result: View | None

    def __init__(self, loop: Loop, operands: tuple[Any, ...], shape: Shape, size: int) -> None:
        self.loop = loop
        self.operands = operands
        self.shape = shape
        self.dtype = loop.dtype
        self.size = size
        self.result = None
        self.users: list[ref[Node]] = []
        frame = sys._getframe(3)
        while frame.f_code.co_filename.startswith(_PACKAGE) and frame.f_back is not None:
            frame = frame.f_back
        self.line = (frame.f_code.co_filename, frame.f_lineno)
        count = 1
        reads = 0
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
        self.count = count
        self.reads = reads


Value = Node | View

# An operand: the flat index of the element that is computed.
INDEX = object()
# What steps of programs are that are no loops.
READ, NUMBER, PLACE = "read", "number", "place"


class Program:
    """An expression as kernels need it: its structure, the views that it reads, and its numbers.

    Attributes
    ----------
    steps
        What is computed, in order: `(loop, *arguments)` for nodes, `(READ, slot)` for elements of
        `views[slot]`, `(NUMBER, dtype.num)` for the next of `numbers`, `(PLACE, dtype.num)` for the flat
        index. Arguments are positions of earlier steps.
    views, numbers
        What the steps read.
    shape, size
        Of the result.
    """

    __slots__ = ("numbers", "places", "shape", "size", "steps", "views")

    def __init__(self, root: Value) -> None:
        self.steps: list[tuple[Any, ...]] = []
        self.views: list[View] = []
        self.numbers: list[Any] = []
        self.shape = root.shape
        self.size = root.size
        self.places: dict[int, int] = {}
        self._add(root)

    def _add(self, value: Value) -> int:
        """Add the steps of an expression; return the position of the last one."""
        known = self.places.get(id(value))
        if known is not None:
            return known
        if type(value) is View:
            position = self._add_view(value)
        else:
            assert type(value) is Node
            if value.result is not None:
                position = self._add_view(value.result)
            elif value.shape != self.shape:
                position = self._add_view(evaluate(value))
            else:
                step: list[Any] = [value.loop]
                for at, each in enumerate(value.operands):
                    if type(each) is View or type(each) is Node:
                        step.append(self._add(each))
                    else:
                        num = value.loop.kinds[at].num
                        if each is INDEX:
                            self.steps.append((PLACE, num))
                        else:
                            self.numbers.append(each)
                            self.steps.append((NUMBER, num))
                        step.append(len(self.steps) - 1)
                self.steps.append(tuple(step))
                position = len(self.steps) - 1
        self.places[id(value)] = position
        return position

    def _add_view(self, view: View) -> int:
        views = self.views
        for slot, each in enumerate(views):
            if _is_same(each, view):
                return self.steps.index((READ, slot))
        views.append(view)
        self.steps.append((READ, len(views) - 1))
        return len(self.steps) - 1


def _is_same(first: View, second: View) -> bool:
    return first is second or (
        first.storage is second.storage
        and first.size == second.size
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


def make_node(loop: Loop, operands: tuple[Any, ...], shape: Shape, size: int) -> Node:
    """Return an expression, whose operands are computed if it would become too large with them."""
    node = Node(loop, operands, shape, size)
    if node.count > _MOST_NODES or node.reads > _MOST_READS:
        for each in operands:
            if type(each) is Node and each.result is None and each.count > 1:
                evaluate(each)
        node = Node(loop, operands, shape, size)
    for each in operands:
        if type(each) is Node:
            waiting = each.users if each.result is None else each.result.storage.readers
            if len(waiting) > 32:
                waiting[:] = [r for r in waiting if (n := r()) is not None and n.result is None]
            waiting.append(ref(node))
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
            value.result.storage.readers += value.users
            value.users = []
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
