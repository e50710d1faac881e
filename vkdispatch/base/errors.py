"""The exception classes of vkdispatch.

Each is a `VkDispatchError` and a built-in exception that Python users expect.
"""

import sys
from typing import Any


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
        from vkdispatch.base.tracebacks import render  # few programs need it

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
