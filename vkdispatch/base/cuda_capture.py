"""Capturing submissions into a CUDA graph: part of the interface, and only the CUDA backend could do it."""

from contextlib import AbstractContextManager
from typing import Any

from vkdispatch.base.errors import UsageError, explain_backend
from vkdispatch.base.record import field, record


@record(frozen=False)
class CUDAGraphCapture:
    """A capture under way.

    Attributes
    ----------
    cuda_stream
        The stream that submissions go to.
    uniform_buffers
        Buffers that the captured graph needs as long as it lives.
    """

    cuda_stream: Any = None
    uniform_buffers: list[Any] = field(factory=list)

    def add_uniform_buffer(self, buffer: Any) -> None:
        """Keep `buffer` alive with the capture."""
        self.uniform_buffers.append(buffer)


def require_cuda(what: str, instead: str) -> UsageError:
    """Return the error for a use of CUDA; there is no CUDA backend, whatever else is active."""
    return UsageError(f"{what}: {explain_backend('cuda')}; {instead}")


def cuda_graph_capture(cuda_stream: Any = None) -> AbstractContextManager[CUDAGraphCapture]:
    """Capture what is submitted inside the `with` block into a CUDA graph.

    Raises
    ------
    RuntimeError
        The backend is not CUDA. `vd.CommandGraph` replays work on every backend.
    """
    raise require_cuda("cuda_graph_capture", "record a vd.CommandGraph instead")


def get_cuda_capture() -> CUDAGraphCapture | None:
    """Return this thread's capture, or None: without the CUDA backend there never is one."""
    return None
