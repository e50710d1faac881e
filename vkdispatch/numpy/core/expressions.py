"""Expressions: element-wise operations that wait until something needs their values."""

import sys
from collections.abc import Callable, Sequence
from os.path import dirname, join
from sys import getrefcount
from threading import RLock
from typing import Any
from weakref import ref

from vkdispatch.base.errors import describe_place
from vkdispatch.base.native_module import native
from vkdispatch.numpy.core.dtypes import Kind, kernel_type
from vkdispatch.numpy.core.memory import Shape, Storage, View, broadcast_strides, require_writable

_PACKAGE = join(dirname(dirname(dirname(__file__))), "")
# Larger expressions are computed in parts: kernels have bounded size, and bind a bounded number of buffers.
_MOST_NODES = 96
_MOST_READS = 12
# Bytes of memory beyond the result's size that an expression may keep while nothing else does.
_MOST_HELD = 1 << 26

Line = tuple[str, int]

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


# Its operand as it is.
TAKE = Operation("copy", lambda value, kind: value)


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
    failure
        The error of an attempt to compute it before its operands were overwritten, or None.
    readers
        Weak references to the expressions that have it as an operand: they will read its result's memory.
    count, reads, held
        Upper bounds of the nodes of the expression, of its reads of memory, and of the bytes that it keeps.
    line
        The file and the line of the program that made it.
    """

    __slots__ = (
        "__weakref__",
        "count",
        "dtype",
        "failure",
        "held",
        "line",
        "loop",
        "operands",
        "readers",
        "reads",
        "result",
        "shape",
        "size",
    )

    operands: tuple[Any, ...]
    result: View | None
    failure: Exception | None

    def __init__(
        self,
        loop: Loop,
        operands: tuple[Any, ...],
        shape: Shape,
        size: int,
        count: int,
        reads: int,
        held: int,
    ) -> None:
        self.loop = loop
        self.operands = operands
        self.shape = shape
        self.dtype = loop.dtype
        self.size = size
        self.result = self.failure = None
        self.readers: list[Any] = []
        self.count = count
        self.reads = reads
        self.held = held
        frame = sys._getframe(3)
        while frame.f_code.co_filename.startswith(_PACKAGE) and frame.f_back is not None:
            frame = frame.f_back
        self.line = (frame.f_code.co_filename, frame.f_lineno)


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

    def permute(self, order: Sequence[int]) -> None:
        """Give the result its axes in another order. No step may use the flat index."""
        whole = self.shape
        self.shape = tuple(whole[axis] for axis in order)
        for slot, view in enumerate(self.views):
            own = broadcast_strides(whole, view)
            strides = tuple(own[axis] for axis in order)
            self.views[slot] = View(view.storage, self.shape, view.dtype, view.offset, strides)

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
            elif value.failure is not None:
                raise value.failure.with_traceback(None)
            elif value.shape != self.shape:
                position = self._add_view(shown_view(value) or evaluate(value))
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
            if is_same_view(each, view):
                return self.steps.index((READ, slot))
        views.append(view)
        self.steps.append((READ, len(views) - 1))
        return len(self.steps) - 1


def is_same_view(first: View, second: View) -> bool:
    """Whether two views show the same elements, in the same shape and order."""
    return first is second or (
        first.storage is second.storage
        and first.size == second.size
        and first.offset == second.offset
        and first.dtype == second.dtype
        and first.shape == second.shape
        and first.strides == second.strides
    )


def shown_view(value: Node) -> View | None:
    """Return the view whose elements an expression has as they are; None if it computes something."""
    operands = value.operands
    if value.loop.operation is not TAKE or value.result is not None or not operands:
        return None
    (shown,) = operands
    if type(shown) is not View or shown.dtype != value.dtype or shown.shape != value.shape:
        return None
    return shown


# What computes a program into a view; the module of kernels sets it.
_computing: list[Callable[[Program, Kind, View | None, Line], View]] = []


def compute_with(function: Callable[[Program, Kind, View | None, Line], View]) -> None:
    """Have expressions computed by a function of the module above."""
    _computing[:] = [function]


def make_node(loop: Loop, operands: tuple[Any, ...], shape: Shape, size: int) -> Node:
    """Return an expression, of which parts are computed if it would become too large."""
    count, reads, held = 1, 0, 0
    for each in operands:
        kind = type(each)
        if kind is Node:
            count += each.count
            reads += each.reads
            held += each.held
        elif kind is View:
            reads += 1
            held += each.storage.nbytes
    if count > _MOST_NODES or reads > _MOST_READS:
        count, reads = _count_distinct(operands)
    if count > _MOST_NODES or reads > _MOST_READS:
        for each in operands:
            if type(each) is Node and each.result is None and each.count > 1:
                evaluate(each)
        nodes = [each for each in operands if type(each) is Node]
        count = 1 + sum(each.count for each in nodes)
        reads = sum(each.reads if type(each) is Node else 1 for each in operands)
        held = sum(each.held for each in nodes)
    node = Node(loop, operands, shape, size, count, reads, held)
    for each in operands:
        kind = type(each)
        if kind is View:
            _wait_to_read(each.storage, node)
        elif kind is Node:
            if each.result is None:
                each.readers.append(ref(node))
            else:
                _wait_to_read(each.result.storage, node)
    if held > _MOST_HELD and node.result is None and _count_dropped(node) > _MOST_HELD + _bytes_of(node):
        evaluate(node)
    return node


def _count_distinct(operands: tuple[Any, ...]) -> tuple[int, int]:
    """Return the number of nodes of an expression with these operands, and of the views that it reads."""
    nodes: set[int] = set()
    views: set[tuple[int, int, Shape, Shape]] = set()
    waiting = list(operands)
    while waiting:
        value = waiting.pop()
        if type(value) is Node and value.result is not None:
            value = value.result
        if type(value) is View:
            views.add((id(value.storage), value.offset, value.shape, value.strides))
        elif type(value) is Node and id(value) not in nodes:
            nodes.add(id(value))
            waiting += value.operands
    return len(nodes) + 1, len(views)


def _bytes_of(node: Node) -> int:
    return node.size * node.dtype.itemsize


def _wait_to_read(storage: Storage, node: Node) -> None:
    """Note that an expression reads a memory: it is computed before that is written."""
    readers = storage.readers
    length = len(readers)
    if length >= 64 and not length & (length - 1):
        with lock:
            length = len(readers)
            readers[:length] = [r for r in readers[:length] if (n := r()) is not None and n.result is None]
    readers.append(ref(node))
    if storage.watched is not None:
        storage.watched.watch()
        if storage.is_immediate:
            evaluate(node)


def evaluate(value: Value) -> View:
    """Return the view that holds the values of an expression, which are computed if they are not yet.

    Raises
    ------
    VkDispatchError, MemoryError
        They cannot be computed; the message names the operation and its line.
    """
    if type(value) is View:
        return value
    assert isinstance(value, Node)
    if value.result is None:
        with lock:
            if value.result is None:
                program = None
                try:
                    program = Program(value)
                    result = _computing[0](program, value.dtype, None, value.line)
                except Exception as error:
                    _name_operation(error, value, program)
                    raise
                result.storage.readers = value.readers
                value.result = result
                value.operands = ()
                value.count, value.reads, value.held = 1, 1, _bytes_of(value)
    return value.result


def _name_operation(error: Exception, value: Value, program: Program | None) -> None:
    """Let the message of an error say which operation cannot be computed, and where it was made."""
    if type(value) is not Node or getattr(error, "_is_named", False):
        return
    kinds, step = getattr(error, "_dtypes", ()), getattr(error, "_step", None)
    found = value
    for node in _pending(value):
        if step is None and kernel_type(node.dtype) in kinds:
            found = node  # the first that has a dtype which the device lacks
            break
        if step is not None and program is not None and program.places.get(id(node)) == step:
            found = node
            break
    place = f"in {found.loop.operation.name}() at {describe_place(*found.line)}"
    if error.args and isinstance(error.args[0], str):
        error.args = (f"{error.args[0]}, {place}", *error.args[1:])
    else:
        error.add_note(place)
    error._is_named = True  # type: ignore[attr-defined]


def _pending(value: Any) -> list[Node]:
    """Return the nodes of an expression that are not computed, each once, operands first."""
    found: dict[int, Node] = {}
    _visit(value, found)
    return list(found.values())


def _visit(value: Any, found: dict[int, Node]) -> None:
    if type(value) is Node and value.result is None and id(value) not in found:
        for operand in value.operands:
            _visit(operand, found)
        found[id(value)] = value


def evaluate_into(value: Value, target: View) -> None:
    """Compute an expression of the shape and dtype of a view, and write it there.

    Expressions that wait to read what is overwritten are computed first. Raises as `evaluate`.
    """
    with lock:
        settle_readers(target, value)
        program = None
        try:
            program = Program(value)
            line = value.line if type(value) is Node else ("", 0)
            _computing[0](program, value.dtype, target, line)
        except Exception as error:
            _name_operation(error, value, program)
            raise
        if type(value) is Node and value.result is None:
            # whatever shows the expression has its values until the target is written again
            value.loop, value.operands = find_loop(TAKE, (value.dtype,), value.dtype), (target,)
            value.count, value.reads, value.held = 1, 1, target.storage.nbytes
            _wait_to_read(target.storage, value)


def settle_readers(target: View, writing: Value | None = None) -> None:
    """Compute the expressions that wait to read the memory of a view; after that it may be written.

    With `writing`, the expression that is written there is left out, and what only it refers to.
    """
    storage = target.storage
    with lock:
        if storage.readers:
            _settle(storage.readers, writing)
        if storage.watched is not None:
            _unwatch(storage.watched)
        storage.move()


def _settle(readers: list[Any], writing: Value | None) -> None:
    """Compute what waits to read a memory. Errors come when the values are used."""
    own: set[int] | None = None
    done = 0
    try:
        while done < len(readers):
            node = readers[done]()
            if node is not None and node is not writing and node.result is None and node.failure is None:
                if own is None:
                    node = None  # it would count as another reference
                    own = _own_nodes(writing) if type(writing) is Node else set()
                    continue
                if id(node) not in own:
                    try:
                        evaluate(node)
                    except Exception as error:
                        # its operands are about to change: the error comes when its values are used
                        node.failure, node.operands = error, ()
            done += 1
    finally:
        del readers[:done]


def _settle_memory(memory: native.Buffer) -> None:
    require_writable(memory)
    native.forbid_repeating()  # a recorded call would compute them again each time
    with lock:
        _settle(memory.readers, None)
        _unwatch(memory)


def _unwatch(memory: native.Buffer) -> None:
    memory.unwatch()
    if memory.readers:  # another thread has made one
        memory.watch()


native.settle_with(_settle_memory)


def _count_local() -> int:
    local = object()
    return getrefcount(local)


# How many references `getrefcount` finds to what a local variable alone refers to.
_LOCAL = _count_local()


def _own_nodes(root: Node) -> set[int]:
    """Return the identities of an expression's nodes that nothing outside of it shows."""
    nodes = _pending(root)
    uses: dict[int, int] = {}
    for node in nodes:
        for each in node.operands:
            uses[id(each)] = uses.get(id(each), 0) + 1
    each = None  # it would count as another reference
    own: set[int] = set()
    shown: set[int] = set()
    for node in reversed(nodes):  # what uses a node comes before it
        number = id(node)
        if node is root or (number not in shown and getrefcount(node) - _LOCAL - 1 == uses[number]):
            own.add(number)
        else:
            shown.update(map(id, node.operands))
    return own


def _count_dropped(root: Node) -> int:
    """Return the bytes of memory that an expression alone keeps."""
    found: dict[int, Value] = {}
    uses: dict[int, int] = {}
    for node in _pending(root):
        for each in node.operands:
            if type(each) is View or (type(each) is Node and each.result is not None):
                found[id(each)] = each
                uses[id(each)] = uses.get(id(each), 0) + 1
    each = None  # it would count as another reference
    dropped: dict[int, tuple[View, int]] = {}  # by storage: a view, and how many there are
    for number in found:
        value = found[number]  # not by items(), whose tuple refers to it too
        if getrefcount(value) - _LOCAL - 1 != uses[number]:
            continue
        if type(value) is Node:
            assert value.result is not None
            if id(value.result) in found or getrefcount(value.result) > 2:
                continue
            view = value.result
        else:
            assert type(value) is View
            view = value
        storage = id(view.storage)
        dropped[storage] = view, dropped.get(storage, (view, 0))[1] + 1
    return sum(
        view.storage.nbytes
        for view, count in dropped.values()
        if not view.storage.is_shared and getrefcount(view.storage) - 1 == count
    )
