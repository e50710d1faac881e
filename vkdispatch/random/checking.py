"""Arguments of generators."""

from collections.abc import Sequence

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.memory.data import parse_shape
from vkdispatch.execution_pipeline.command_graph import CommandGraph, global_graph
from vkdispatch.families.arguments import is_int, parse_dtype


def parse_size(size: object, out: object) -> tuple[int, ...]:
    """Return the shape of a draw.

    Raises
    ------
    TypeError, ValueError
        `size` is neither a nonnegative int nor up to three of them.
    """
    if size is None:
        return out.shape if isinstance(out, Buffer) else ()
    whole = (size,) if is_int(size) else size
    if not isinstance(whole, Sequence) or isinstance(whole, str) or not all(map(is_int, whole)):
        raise ArgumentTypeError(f"size: expected an int or up to 3 ints, got {size!r}")
    if len(whole) > 3 or min(whole, default=0) < 0:
        raise ArgumentValueError(f"size: expected up to 3 ints of 0 or more, got {size!r}")
    return parse_shape(tuple(whole))


def parse_graph(graph: object) -> CommandGraph:
    """Return the graph to record into. Raises TypeError if the argument is neither a graph nor None."""
    if graph is None:
        return global_graph()
    if not isinstance(graph, CommandGraph):
        raise ArgumentTypeError(f"graph: expected a CommandGraph or None, got {type(graph).__name__}")
    return graph


def parse_known_dtype(value: object, known: tuple[DType, ...]) -> DType:
    """Return one of the known dtypes, value as vkdispatch's or NumPy's. Raises TypeError for another."""
    try:
        kind = parse_dtype(value)
    except (ArgumentTypeError, ArgumentValueError):
        kind = None
    if kind not in known:
        names = ", ".join(each.name for each in known)
        raise ArgumentTypeError(f"dtype: expected one of {names}, got {kind.name if kind else repr(value)}")
    return kind
