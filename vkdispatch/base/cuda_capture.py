"""CUDA graph capture: part of 0.1.0's interface, which needs its CUDA backend."""

from contextlib import AbstractContextManager
from typing import Any

from vkdispatch.base.errors import UsageError, explain_backend
from vkdispatch.base.record import field, record


@record(frozen=False)
class CUDAGraphCapture:
    """A capture in progress.

    Attributes
    ----------
    cuda_stream
        The stream of the submissions.
    uniform_buffers
        Buffers that the captured graph uses.
    """

    cuda_stream: Any = None
    uniform_buffers: list[Any] = field(factory=list)

    def add_uniform_buffer(self, buffer: Any) -> None:
        """Keep `buffer` alive with the capture."""
        self.uniform_buffers.append(buffer)


def require_cuda(what: str, instead: str) -> UsageError:
    """Return the error for a use of CUDA, for which there is no backend."""
    return UsageError(f"{what}: {explain_backend('cuda')}; {instead}")


def cuda_graph_capture(cuda_stream: Any = None) -> AbstractContextManager[CUDAGraphCapture]:
    """Capture the submissions of a `with` block in a CUDA graph.

    Raises
    ------
    RuntimeError
        Always: a CUDA graph cannot replay what the host submits to Vulkan. `vd.CommandGraph` can.
    """
    raise UsageError(
        "cuda_graph_capture: a CUDA graph does not replay work that the host submits to Vulkan; record a "
        "vd.CommandGraph instead"
    )


def get_cuda_capture() -> CUDAGraphCapture | None:
    """Return the capture of this thread: always None, as there is no CUDA backend."""
    return None
