"""What arrays do while a graph records the calls of the running thread."""

from vkdispatch.base.errors import UsageError
from vkdispatch.execution_pipeline.command_graph import current


def refuse_recording() -> None:
    """Raise UsageError while a graph records the calls of this thread."""
    if current.chosen is not None:
        raise UsageError(
            "a graph records the calls of this thread (`with graph:` or vd.set_global_graph), but it cannot "
            "record operations on Arrays of vkdispatch.numpy: compute before the recording starts or after "
            "it ends. Kernels and functions on buffers can be recorded, and accept Arrays"
        )
