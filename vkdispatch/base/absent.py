"""Stand-ins for libraries that are not installed.

Tracing a kernel to text needs neither NumPy nor the native module. If one is missing, each of its names is a
class without instances, so that `isinstance` checks keep working. Calling such a class raises an error that
says what to install.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn


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
