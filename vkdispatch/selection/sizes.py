"""The argument `size` of functions whose result has a size that depends on the data."""

from vkdispatch.base.errors import UsageError
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.arguments import parse_int
from vkdispatch.families.calls import is_recorded


def parse_size(size: object, graph: CommandGraph | None, unknown: str) -> int | None:
    """Return the size of a result; None if the call waits for the device to find it out.

    Parameters
    ----------
    unknown
        What is not known in a graph, for the message.

    Raises
    ------
    TypeError
        It is no int.
    ValueError
        It is negative.
    RuntimeError
        It is None, and the call is recorded.
    """
    if size is not None:
        return parse_int(size, "size", least=0)
    if is_recorded(graph):
        raise UsageError(f"size: {unknown} is not known in a graph; pass size=")
    return None
