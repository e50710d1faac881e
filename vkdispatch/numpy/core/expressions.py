"""Expressions: element-wise operations that wait until something needs their values."""

from collections.abc import Callable
from os.path import dirname, join
from sys import getrefcount
from threading import RLock
from typing import Any
from weakref import ref

from vkdispatch.base.buffer import Buffer, OversizedBufferError, function_buffer
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import describe_place
from vkdispatch.base.native_module import native
from vkdispatch.execution_pipeline import timings
from vkdispatch.execution_pipeline.command_graph import current, pause_recording
from vkdispatch.numpy.core import memory
from vkdispatch.numpy.core.memory import Kind, View, refuse_recording

_PACKAGE = join(dirname(dirname(dirname(__file__))), "")
# Larger expressions are computed in parts: kernels have bounded size, and bind a bounded number of buffers.
_MAX_NODES = 96
_MAX_READS = 12
# Bytes of memory beyond the result's size that an expression may keep while nothing else does.
_MAX_HELD = 1 << 26

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
    __match_args__ = ("name", "compute")

    def __init__(self, name: str, compute: Callable[..., Any]) -> None:
        self.name = name
        self.compute = compute

    def __repr__(self) -> str:
        return f"<operation {self.name}>"


# Its operand as it is.
TAKE = Operation("copy", lambda value, kind: value)
# The parts of complex numbers: of expressions that something else shows, too, they are views, as NumPy's.
REAL = Operation("real", lambda z, kind: z.real)
IMAG = Operation("imag", lambda z, kind: z.imag)
# Expressions of which there are parts that may have to show what is written to them.
_have_parts: dict[int, "ref[Node]"] = {}  # by identity


Loop = native.Loop
_loops: dict[tuple[Any, ...], Loop] = {}


def find_loop(operation: Operation, kinds: tuple[Kind, ...], dtype: Kind) -> Loop:
    """Return the loop of an operation and dtypes."""
    key = (operation, dtype.num, *(kind.num for kind in kinds))
    found = _loops.get(key)
    if found is None:
        found = _loops.setdefault(key, Loop(operation, kinds, dtype))
    return found


Node = native.Node
Program = native.Program
Value = Node | View
INDEX, READ, NUMBER, PLACE = native.INDEX, native.READ, native.NUMBER, native.PLACE
make_node = native.make_node
is_same_view = native.is_same_view


def shown_view(value: Node) -> View | None:
    """Return the view whose elements an expression has as they are; None if it computes something."""
    operands = value.operands
    if value.loop.operation is not TAKE or value.result is not None or not operands:
        return None
    (shown,) = operands
    if type(shown) is not View or shown.dtype != value.dtype or shown.shape != value.shape:
        return None
    return shown


def make_part(operation: Operation, value: Value, kind: Kind) -> Node:
    """Return the expression of the real or imaginary parts of complex numbers, as a view of them."""
    if type(value) is Node:
        number = id(value)
        _have_parts[number] = ref(value, lambda _: _have_parts.pop(number, None))
    return make_node(find_loop(operation, (value.dtype,), kind), (value,), value.shape, value.size)


def shows_parts(value: Node) -> bool:
    """Whether a write to an array of this expression has to show in another array.

    One is the real or imaginary parts of the other.
    """
    return id(value) in _have_parts or _find_whole(value) is not None


def _find_whole(value: Node) -> Node | None:
    """Return the expression whose parts an expression is; None if nothing else shows it, or there is none."""
    if value.loop.operation is not REAL and value.loop.operation is not IMAG:
        return None
    whole = value.operands[0] if value.operands else None
    if type(whole) is not Node or id(whole) not in _have_parts:
        return None
    # one reference is that of the operands
    is_alone = whole.result is None and getrefcount(whole) - _LOCAL == 1
    return None if is_alone else whole


# Kernels for new memory and views that begin where their memory does, by steps and kinds, with the type of
# the result's elements: what is looked up most.
plain_kernels: dict[tuple[Any, ...], tuple[Any, DType]] = {}

# What computes a program into a view; the module of kernels sets it.
_computing: list[Callable[[Program, Kind, View | None, Node | None], View]] = []


def compute_with(function: Callable[[Program, Kind, View | None, Node | None], View]) -> None:
    """Have expressions computed by a function of the module above."""
    _computing[:] = [function]


def _shrink(operands: tuple[Any, ...], held: int, most_nodes: int, most_reads: int) -> tuple[int, int, int]:
    """Compute parts of operands until an expression of them is small enough; return its bounds."""
    while True:
        count, reads = native.count_distinct(operands)
        part = _choose_part(operands) if count > most_nodes or reads > most_reads else None
        if part is None:
            return count, reads, held
        evaluate_apart(part)
        held = sum(map(_count_held, operands))


def _choose_part(operands: tuple[Any, ...]) -> Node | None:
    """Return the part of operands to compute first: each takes memory until its readers are computed.

    It is what several operands share, if that is most of one of them, or else the largest of them.
    """
    parts = [each for each in (_pending(operand) for operand in operands) if len(each) > 1]
    if not parts:
        return None
    largest = max(parts, key=len)
    others = {id(node) for part in parts if part[-1] is not largest[-1] for node in part}
    shared = [node for node in largest if id(node) in others]
    if shared and 2 * len(_pending(shared[-1])) > len(largest):
        return shared[-1]
    return largest[-1]


def _count_held(operand: Any) -> int:
    if type(operand) is Node:
        return operand.held
    return operand.storage.nbytes if type(operand) is View else 0


def _bytes_of(node: Node) -> int:
    return node.size * node.dtype.itemsize


def _trim(readers: list[Any]) -> None:
    with lock:
        length = len(readers)
        readers[:length] = [r for r in readers[:length] if (n := r()) is not None and n.result is None]


def evaluate(value: Value) -> View:
    """Return the view that holds the values of an expression, which are computed if they are not yet.

    Raises
    ------
    UsageError
        A graph records the calls of this thread.
    VkDispatchError, MemoryError
        They cannot be computed; the message names the operation and its line.
    """
    known = native.evaluate_known(value)
    if known is not None:
        return known
    assert isinstance(value, Node)
    if value.result is None:
        refuse_recording()
        with lock:
            if value.result is None:
                program = None
                try:
                    whole = _find_whole(value)
                    if whole is not None and value.size:
                        return _show_parts(value, evaluate(whole))
                    program = Program(value)
                    result = _computing[0](program, value.dtype, None, value)
                except Exception as error:
                    _name_operation(error, value, program)
                    raise
                result.storage.readers = value.readers
                value.result = result
                value.operands = ()
                value.count, value.reads, value.held = 1, 1, _bytes_of(value)
    return value.result


def evaluate_apart(value: Value) -> View:
    """Do as `evaluate`, but not refuse while a graph records: nothing is recorded.

    For what the program cannot see: that a view needs memory, or that a write, or the size of an expression,
    makes it be computed early.
    """
    if type(value) is View or current.chosen is None:
        return evaluate(value)
    with pause_recording():
        return evaluate(value)


def _show_parts(value: Node, whole: View) -> View:
    """Turn an expression into a view of the real or imaginary parts of complex numbers."""
    value.result = shown = memory.part_of(whole, int(value.loop.operation is IMAG), value.dtype)
    value.operands = ()
    value.count, value.reads, value.held = 1, 1, shown.storage.nbytes
    for reader in value.readers:
        node = reader()
        if node is not None and node.result is None:
            native.wait_to_read(shown.storage, node)
    return shown


def _name_operation(error: Exception, value: Value, program: Program | None) -> None:
    """Let the message of an error say which operation cannot be computed, and where it was made."""
    if type(value) is not Node or getattr(error, "_is_named", False):
        return
    kinds, step = getattr(error, "_dtypes", ()), getattr(error, "_step", None)
    found = value
    for node in _pending(value):
        if step is None and memory.kernel_type(node.dtype) in kinds:
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
            _computing[0](program, value.dtype, target, value if type(value) is Node else None)
        except Exception as error:
            _name_operation(error, value, program)
            raise
        if type(value) is Node and value.result is None:
            # whatever shows the expression has its values until the target is written again
            value.loop, value.operands = find_loop(TAKE, (value.dtype,), value.dtype), (target,)
            value.count, value.reads, value.held = 1, 1, target.storage.nbytes
            native.wait_to_read(target.storage, value)


def settle_readers(target: View, writing: Value | None = None) -> None:
    """Compute the expressions that wait to read the memory of a view; after that it may be written.

    With `writing`, the expression that is written there is left out, and what only it refers to.

    Raises UsageError while a graph records the calls of this thread.
    """
    refuse_recording()
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
                        evaluate_apart(node)
                    except Exception as error:
                        # its operands are about to change: the error comes when its values are used
                        node.failure, node.operands = error, ()
            done += 1
    finally:
        del readers[:done]


def _settle_memory(buffer: native.Buffer) -> None:
    memory.require_writable(buffer)
    native.forbid_repeating()  # a recorded call would compute them again each time
    with lock:
        _settle(buffer.readers, None)
        _unwatch(buffer)


def _unwatch(buffer: native.Buffer) -> None:
    buffer.unwatch()
    if buffer.readers:  # another thread has made one
        buffer.watch()


native.settle_with(_settle_memory)
native.bound_expressions(_MAX_NODES, _MAX_READS, _MAX_HELD)
native.serve_expressions(
    package=_PACKAGE,
    oversized=OversizedBufferError,
    allocate=function_buffer,
    wrap=Buffer.of_memory,
    evaluate=evaluate,
    lock=lock,
    show=lambda node: shown_view(node) or evaluate(node),
    shrink=_shrink,
    trim=_trim,
    kernels=plain_kernels,
    parts=(REAL, IMAG),
    graphs=current,
    profiles=timings.holders,
)


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
