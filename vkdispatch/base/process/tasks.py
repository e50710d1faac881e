"""Tasks of a scheduler, such as Dask's: an error of a task's work concerns its thread alone."""

from _thread import _local
from types import TracebackType


class _ThreadState(_local):
    depth = 0


_thread = _ThreadState()


class RunningTask:
    """A context manager: the thread runs a task, which waits for its own work before it ends."""

    def __enter__(self) -> None:
        _thread.depth += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _thread.depth -= 1


def is_in_task() -> bool:
    """Whether the running thread runs a task."""
    return _thread.depth > 0
