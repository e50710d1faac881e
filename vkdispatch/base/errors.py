"""The exception classes of vkdispatch, and tracebacks for notebooks without frames of this package."""

import functools
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from vkdispatch.base import make_getattr


def notebook_shell() -> Any:
    """Return the shell of IPython, which also runs notebooks, or None outside of IPython."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None


def describe_place(path: str, line: int) -> str:
    """Return "kernel.py:12", or IPython's "Cell In[3], line 12" for a line of a notebook."""
    name = getattr(getattr(notebook_shell(), "compile", None), "format_code_name", None)
    cell = name(path) if name is not None else None
    if cell is not None:
        return f"{' '.join(cell)}, line {line}"
    file = path.replace("\\", "/").rpartition("/")[2]
    return f"{file}:{line}"


def check_for_errors() -> None:
    """Do nothing. It is part of 0.1.0's interface; here every call raises its own errors."""


class VkDispatchError(Exception):
    """Base class of the errors of vkdispatch."""

    def __reduce__(self) -> tuple[Any, ...]:
        # without a call of the class, which may take other arguments
        return _restore, (type(self), self.args), self.__dict__.copy()

    def _render_traceback_(self) -> list[str]:
        """Return what IPython prints: a traceback with the user's code only."""
        return render(self, notebook_shell())


def _restore(cls: type[VkDispatchError], args: tuple[Any, ...]) -> VkDispatchError:
    built_in: Any = cls  # the one that has the layout
    while built_in.__module__ != "builtins":
        built_in = built_in.__base__
    error: VkDispatchError = built_in.__new__(cls, *args)
    error.args = args
    return error


class KernelWarning(UserWarning):
    """A traced kernel does something that is probably a mistake."""


class ArgumentValueError(VkDispatchError, ValueError):
    """An argument has the right type but an invalid value."""


class ArgumentOverflowError(VkDispatchError, OverflowError):
    """A Python integer does not fit the dtype that it is for."""


class ArgumentTypeError(VkDispatchError, TypeError):
    """An argument has an unsupported type."""


def check_type(name: str, value: object, kind: type[Any], expected: str) -> None:
    """Raise ArgumentTypeError, which says what was expected, for a value of another class."""
    if not isinstance(value, kind):
        raise ArgumentTypeError(f"{name}: expected {expected}, got {type(value).__name__}")


class ArgumentIndexError(VkDispatchError, IndexError):
    """An index is out of range."""


class OverlapError(ArgumentValueError):
    """Two arguments of a call share memory, and the call would overwrite data that it still needs."""


class SharingError(ArgumentValueError, BufferError):
    """Memory cannot be shared with another library in the way that was asked for."""


class CheckError(VkDispatchError):
    """A check in a kernel failed; the subclasses say which."""


class BoundsError(CheckError, ArgumentIndexError):
    """A checked kernel used an index outside a buffer, shared buffer, vector or matrix."""


class NanError(CheckError, FloatingPointError):
    """A kernel with NaN checks stored a NaN."""


class LoopLimitError(CheckError, RuntimeError):
    """The driver ended a loop of a kernel, or a while loop of a checked kernel had too many iterations."""


class KernelAssertionError(CheckError, AssertionError):
    """The condition of an `assert` in a checked kernel did not hold."""


class ComponentError(VkDispatchError, AttributeError):
    """A GPU value has no component or attribute of that name."""


class UsageError(VkDispatchError, RuntimeError):
    """A valid call at the wrong time or in the wrong place."""


class UnassignedError(VkDispatchError, NameError):
    """A local variable of a kernel is used where it has no value on some paths of control flow."""


class UnsupportedError(VkDispatchError, NotImplementedError):
    """The device, backend or version does not support the operation."""

    # the dtypes that the device lacks, if that is the reason
    _dtypes: tuple[object, ...] = ()
    # the original message, before the name of an argument was added
    _reason = ""


class VulkanError(VkDispatchError, RuntimeError):
    """Vulkan, its loader or a driver reported a failure."""


class DeviceLostError(VulkanError):
    """The device stopped working. The next use makes a new context."""


class DeviceTimeoutError(DeviceLostError, TimeoutError):
    """Work exceeded the `timeout` of its context, which was abandoned. The next use makes a new one."""


class OutOfDeviceMemoryError(VkDispatchError, MemoryError):
    """The device does not have enough memory for an allocation."""


class WaitTimeoutError(VkDispatchError, TimeoutError):
    """Work on the device did not finish within the timeout."""


class ShaderBuildError(VkDispatchError, RuntimeError):
    """The GLSL of a kernel did not compile, or the driver rejected it.

    Attributes
    ----------
    shader_source
        The `ShaderSource` that failed, or its text.
    compiler_log
        The log of the compiler, or None.
    """

    def __init__(self, message: str, *, shader_source: object, compiler_log: str | None = None) -> None:
        super().__init__(message)
        self.shader_source = shader_source
        self.compiler_log = compiler_log

    def __reduce__(self) -> tuple[Any, ...]:
        restore, arguments, state = super().__reduce__()
        # as text: what the source was made of may not be picklable
        return restore, arguments, {**state, "shader_source": str(self.shader_source)}


def explain_backend(backend: str) -> str:
    """Return the part of messages that explains the missing backend."""
    return f"the {backend!r} backend is not part of this package, and Vulkan reaches the same device"


class MissingPackageError(VkDispatchError, ImportError):
    """A required Python package is not installed."""


class BackendUnavailableError(VkDispatchError, ImportError):
    """A backend cannot be used on this machine.

    Attributes
    ----------
    backend_name
        The name of the backend, such as "vulkan".
    """

    def __init__(self, backend_name: str, message: str) -> None:
        super().__init__(message)
        self.backend_name = backend_name


# The frames of the native module name its sources, which are not beside it.
_OWN = (os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep, "vkdispatch_native/")


def is_full_traceback() -> bool:
    """Whether VKDISPATCH_TRACEBACK asks for full tracebacks."""
    return os.environ.get("VKDISPATCH_TRACEBACK") == "full"


def hide_own_frames(error: Exception, shell: Any) -> None:
    """Let IPython, if there is a `shell`, print an error of the user without the frames of this package."""
    if shell is None or hasattr(error, "_render_traceback_"):
        return
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    file = "" if last is None else last.tb_frame.f_code.co_filename
    if not file.startswith(_OWN) or file == make_getattr.__code__.co_filename:
        error._render_traceback_ = functools.partial(render, error, shell)  # type: ignore[attr-defined]


def render(error: BaseException, shell: Any) -> list[str]:
    """Return the lines of an error's traceback in the style of IPython's `shell`, or of Python if None."""
    with _fold_frames(error):
        if shell is None:
            return traceback.format_exception(error)
        written: list[str] = shell.InteractiveTB.structured_traceback(
            type(error), error, error.__traceback__, tb_offset=1
        )
        return written


@contextmanager
def _fold_frames(error: BaseException) -> Iterator[None]:
    """Remove the frames of the package from the tracebacks of an error and its causes."""
    whole: list[tuple[BaseException, TracebackType | None]] = []
    current: BaseException | None = error
    while current is not None and all(current is not other for other, _ in whole):
        whole.append((current, current.__traceback__))
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    try:
        if not is_full_traceback():
            for current, trace in whole:
                current.__traceback__ = _fold_trace(trace)
        yield
    finally:
        # restored, as debuggers need all frames
        for current, trace in whole:
            current.__traceback__ = trace


def _fold_trace(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames of this package. If there are no others, return it unchanged."""
    kept = []
    step = trace
    while step is not None:
        if not step.tb_frame.f_code.co_filename.startswith(_OWN):
            kept.append(step)
        step = step.tb_next
    folded = None
    for step in reversed(kept):
        folded = TracebackType(folded, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return folded or trace
