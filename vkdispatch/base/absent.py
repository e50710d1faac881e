"""What takes the place of a library that is not installed.

The text of a kernel needs neither NumPy nor the native module. Where one is missing, each of its names is a
class that has no instances, so that type checks work as they are; calling one raises an error that says what
to install.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn


class _Absent(type):
    """Class of what stands for the names of a library that is not installed."""

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
    """Import a module, or return what stands for one that is missing: `error` makes what its uses raise."""
    try:
        module = import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name != name:
            raise  # it is there, and lacks something itself
    else:
        # a folder of sources that were not built is imported as a package of nothing
        if getattr(module, "__file__", None) is not None:
            return module
    return _Absent(name, (), {"_error": staticmethod(error)})


def is_absent(library: object) -> bool:
    """Whether something stands in the place of a library."""
    return isinstance(library, _Absent)


def require(library: Any) -> None:
    """Raise the library's error where it is not installed."""
    if is_absent(library):
        library()
