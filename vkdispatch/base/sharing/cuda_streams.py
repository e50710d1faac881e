"""CUDA's driver functions, and CUDA's streams as other libraries name them."""

import sys
from typing import Any

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, SharingError, UsageError

# Handles that stand for a stream: the default one, and the default one of the calling thread.
LEGACY_STREAM, PER_THREAD_STREAM = 1, 2


class CaptureError(UsageError):
    """A CUDA stream whose work is being captured in a CUDA graph."""


def load_driver() -> Any:
    """Return the module of CUDA's driver functions. Raises SharingError if it is not installed."""
    try:
        from cuda.bindings import driver
    except ImportError:
        raise SharingError(
            "sharing memory with CUDA needs the package cuda-bindings: pip install 'vkdispatch-gpu[cuda]'"
        ) from None
    return driver


def check_result(result: tuple[Any, ...]) -> Any:
    """Return what a function of the driver gave. Raises SharingError if it failed."""
    code, *values = result
    if int(code) != 0:
        raise SharingError(f"CUDA: {code.name}")
    return values[0] if len(values) == 1 else tuple(values) or None


def parse_stream(stream: Any, name: str = "stream") -> int | None:
    """Return the handle of a CUDA stream: DLPack's int, or an object of CuPy, PyTorch or cuda-core.

    None and 0 stand for the legacy default stream, -1 for no order at all, for which this returns None.

    Raises
    ------
    TypeError, ValueError
        It is neither.
    """
    if stream is None:
        return LEGACY_STREAM
    for attribute in ("cuda_stream", "ptr", "handle"):
        stream = getattr(stream, attribute, stream)
    try:
        number = int(stream)
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            f"{name}: expected a CUDA stream, an int or None, got {type(stream).__name__}"
        ) from None
    if number == -1:
        return None
    if number < -1:
        raise ArgumentValueError(f"{name}: expected a CUDA stream, 1, 2 or -1, got {number}")
    return number or LEGACY_STREAM


def parse_dlpack_stream(stream: Any) -> int | None:
    """Return the handle of a stream in a protocol, as `parse_stream` does, but 0 raises ValueError."""
    if isinstance(stream, int) and stream == 0:
        raise ArgumentValueError(
            "stream: 0 may be one of two streams; expected 1 (the legacy default stream), 2 (the thread's "
            "default stream), a stream's handle, or -1"
        )
    return parse_stream(stream)


def current_stream(ordinal: int, x: Any = None) -> int:
    """Return the current stream of a device: in the library of an array, else in PyTorch or CuPy."""
    library = (type(x).__module__ or "").partition(".")[0]
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and library != "cupy" and torch.cuda.is_initialized():
        return int(torch.cuda.current_stream(ordinal).cuda_stream) or LEGACY_STREAM
    if cupy is not None:
        return int(cupy.cuda.get_current_stream(ordinal).ptr) or LEGACY_STREAM
    return LEGACY_STREAM
