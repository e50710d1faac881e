"""NumPy and the native module, as `np` and `native`, and what takes the place of one that is missing.

The text of a kernel needs neither, and what is on the way to it takes them from here. Where one is not
installed, each of its names is a class that has no instances, so that type checks work as they are; calling
one raises an error that says what to install. A library is imported when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from vkdispatch.base.errors import (
    BackendUnavailableError,
    DeviceLostError,
    DeviceTimeoutError,
    MissingPackageError,
    OutOfDeviceMemoryError,
    VkDispatchError,
    VulkanError,
)

if TYPE_CHECKING:
    import numpy as np

    import vkdispatch_native as native

_MODULES = {"np": "numpy", "native": "vkdispatch_native"}


class _Absent(type):
    """Class of what stands for a name of a library that is not installed."""

    _library: str

    def __getattr__(cls, name: str) -> "_Absent":
        if name.startswith("__"):
            raise AttributeError(f"{cls.__name__} has no attribute {name!r}")
        inner = _Absent(f"{cls.__name__}.{name}", (), {"_library": cls._library})
        setattr(cls, name, inner)
        return inner

    def __getitem__(cls, item: object) -> "_Absent":
        return cls  # np.ndarray[Any, Any]

    def __call__(cls, *args: object, **kwargs: object) -> NoReturn:
        raise _missing(cls._library)


def is_installed(library: str) -> bool:
    """Whether "np" or "native" is there."""
    return not isinstance(_library(library), _Absent)


def require(library: str) -> None:
    """Raise ImportError unless "np" or "native" is there."""
    if not is_installed(library):
        raise _missing(library)


def _missing(library: str) -> VkDispatchError:
    if library == "np":
        return MissingPackageError(
            "NumPy is not installed, and only the text of kernels does without it; install it with "
            "`pip install numpy`"
        )
    return BackendUnavailableError(
        "vulkan",
        "the native module vkdispatch_native is not installed: the text of kernels can be had (get_src(), "
        "print_src()), and nothing can run; build it with `pip install .` in vkdispatch's sources",
    )


def _library(name: str) -> Any:
    found = globals().get(name)
    return _imported(name) if found is None else found


def _imported(name: str) -> Any:
    library: Any = None
    try:
        library = import_module(_MODULES[name])
    except ModuleNotFoundError as error:
        if error.name != _MODULES[name]:
            raise  # it is there, and lacks something itself
    # a folder of sources that were not built is imported as a package of nothing
    if getattr(library, "__file__", None) is None:
        library = _Absent(name, (), {"_library": name})
    elif name == "native":
        library.set_error_types(VulkanError, DeviceLostError, OutOfDeviceMemoryError, DeviceTimeoutError)
    globals()[name] = library
    return library


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _imported(name)


__all__ = ["is_installed", "native", "np", "require"]
