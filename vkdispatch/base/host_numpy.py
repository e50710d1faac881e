"""Libraries that may be missing, and their stand-ins: NumPy as `np` for all modules that tracing needs."""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from vkdispatch.base.errors import ArgumentIndexError, ArgumentValueError, MissingPackageError

__all__ = ["AxisError", "np"]


# ---- Stand-ins for libraries that are not installed ------------------------------------------------------
#
# Tracing a kernel to text needs neither NumPy nor the native module. If one is missing, each of its names
# is a class without instances, so that `isinstance` checks keep working. Calling such a class raises an
# error that says what to install.


class _Absent(type):
    """Class of the stand-ins for the names of a missing library."""

    _error: Callable[[], Exception]

    def __getattr__(cls, name: str) -> "_Absent":
        if name.startswith("__"):
            raise AttributeError(f"{cls.__name__} has no attribute {name!r}")
        inner = _Absent(f"{cls.__name__}.{name}", (), {"_error": cls._error})
        setattr(cls, name, inner)
        return inner

    def __getitem__(cls, item: object) -> "_Absent":
        return cls  # np.ndarray[Any, Any]

    def __call__(cls, *args: object, **kwargs: object) -> NoReturn:
        raise cls._error()


def import_or_stand_in(name: str, error: Callable[[], Exception]) -> Any:
    """Import a module, or return a stand-in if it is missing. Uses of the stand-in raise `error()`."""
    try:
        module = import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name != name:
            raise  # the module exists, but one of its own imports is missing
    else:
        # A folder of unbuilt sources is imported as an empty namespace package.
        if getattr(module, "__file__", None) is not None:
            return module
    return _Absent(name, (), {"_error": staticmethod(error)})


def is_absent(library: object) -> bool:
    """Whether `library` is a stand-in."""
    return isinstance(library, _Absent)


def require(library: Any) -> None:
    """Raise the error of the library if it is not installed."""
    if is_absent(library):
        library()


# ---- NumPy as `np`, or its stand-in, for all modules that tracing needs; `AxisError` ------


if TYPE_CHECKING:
    import numpy as np
    from numpy.exceptions import AxisError as _NumpyAxisError
else:
    np = import_or_stand_in(
        "numpy",
        lambda: MissingPackageError(
            "NumPy is not installed, and everything but the text of kernels needs it; install it with "
            "`pip install numpy`"
        ),
    )
    _NumpyAxisError = IndexError if is_absent(np) else getattr(np, "exceptions", np).AxisError


class AxisError(ArgumentValueError, ArgumentIndexError, _NumpyAxisError):
    """An axis is out of range or appears twice; it is a `numpy.exceptions.AxisError`, too."""

    __str__ = Exception.__str__  # NumPy's would not show what is added to the message
