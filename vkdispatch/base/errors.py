"""The exception classes of vkdispatch.

Each is a `VkDispatchError` and the built-in a Python user would catch.
"""

import sys
from typing import Any


def notebook_shell() -> Any:
    """Return IPython's shell, which also runs notebooks, or None outside of IPython."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None


def describe_place(path: str, line: int) -> str:
    """Return "kernel.py:12", or "Cell In[3], line 12" for a line of a notebook, as IPython calls it."""
    name = getattr(getattr(notebook_shell(), "compile", None), "format_code_name", None)
    cell = name(path) if name is not None else None
    if cell is not None:
        return f"{' '.join(cell)}, line {line}"
    file = path.replace("\\", "/").rpartition("/")[2]
    return f"{file}:{line}"


def check_for_errors() -> None:
    """Do nothing: every call raises its own error, and leaves none behind to be asked for."""


class VkDispatchError(Exception):
    """Base class of every error that vkdispatch raises by itself."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython prints: the lines of the user's code alone."""
        from vkdispatch.base.tracebacks import render  # which few programs need

        return render(self, notebook_shell())


class KernelWarning(UserWarning):
    """A kernel that is traced does something that is rarely meant."""


class ArgumentValueError(VkDispatchError, ValueError):
    """An argument has the right type and a value that cannot be used."""


class ArgumentTypeError(VkDispatchError, TypeError):
    """An argument has a type that cannot be used."""


class ArgumentIndexError(VkDispatchError, IndexError):
    """An index lies outside what it indexes."""


class AxisError(ArgumentValueError, ArgumentIndexError):
    """An axis is out of range, or is named twice; like `numpy.exceptions.AxisError`."""


class OverlapError(ArgumentValueError):
    """Two arguments of a call share memory, and the call would overwrite data that it still needs."""


class CheckError(VkDispatchError):
    """A checked kernel did what its checks forbid; the classes below say what."""


class BoundsError(CheckError, ArgumentIndexError):
    """A checked kernel used an index that lies outside a buffer, shared buffer, vector or matrix."""


class NanError(CheckError, FloatingPointError):
    """A kernel that is checked for it stored a NaN."""


class LoopLimitError(CheckError, RuntimeError):
    """A while loop of a checked kernel took more rounds than it may."""


class KernelAssertionError(CheckError, AssertionError):
    """The condition of an `assert` in a checked kernel did not hold."""


class ComponentError(VkDispatchError, AttributeError):
    """A GPU value has no component or attribute of that name."""


class UsageError(VkDispatchError, RuntimeError):
    """A right call at the wrong time or in the wrong place."""


class UnassignedError(VkDispatchError, NameError):
    """A local variable of a kernel is used where it has no value on some of the ways of the GPU."""


class UnsupportedError(VkDispatchError, NotImplementedError):
    """The device, backend or version cannot do what was asked for."""

    # the dtypes that a device does not compute with, where that is the reason
    _dtypes: tuple[object, ...] = ()
    # of a message that names an argument of a function on arrays: what it was before
    _reason = ""


class VulkanError(VkDispatchError, RuntimeError):
    """Vulkan, its loader or a driver reported a failure."""


class DeviceLostError(VulkanError):
    """The device stopped working; the next use makes a new context."""


class DeviceTimeoutError(DeviceLostError, TimeoutError):
    """Work took longer than its context's `timeout`; that was given up, and the next use makes a new one."""


class OutOfDeviceMemoryError(VkDispatchError, MemoryError):
    """The device has no memory left for an allocation."""


class WaitTimeoutError(VkDispatchError, TimeoutError):
    """Work on the device did not finish in the time given."""


class ShaderBuildError(VkDispatchError, RuntimeError):
    """A kernel's GLSL did not compile, or the driver refused it.

    Attributes
    ----------
    shader_source
        The `ShaderSource` that failed, or its text.
    compiler_log
        What the compiler said, or None.
    """

    def __init__(self, message: str, *, shader_source: object, compiler_log: str | None = None) -> None:
        super().__init__(message)
        self.shader_source = shader_source
        self.compiler_log = compiler_log


def explain_backend(backend: str) -> str:
    """Say that there is no such backend here, for messages."""
    return f"the {backend!r} backend is not part of this package, and Vulkan reaches the same device"


class MissingPackageError(VkDispatchError, ImportError):
    """A Python package that this needs is not installed."""


class BackendUnavailableError(VkDispatchError, ImportError):
    """A backend cannot be used on this machine.

    Attributes
    ----------
    backend_name
        The name of that backend, such as "vulkan".
    """

    def __init__(self, backend_name: str, message: str) -> None:
        super().__init__(message)
        self.backend_name = backend_name
