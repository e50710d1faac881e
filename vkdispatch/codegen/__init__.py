"""The kernel language: types, functions and control flow of GPU kernels written in Python.

Import it as `import vkdispatch.codegen as vc`. Some names shadow built-in functions deliberately:
`vc.abs`, `vc.min`, `vc.any`, `vc.print`...

Each module below lists in its `__all__` what users name; this module gathers them.
"""

import sys as _sys
import typing as _typing
from importlib import import_module as _import_module

from vkdispatch.base import IN_CODEGEN as _IN_CODEGEN
from vkdispatch.base import make_getattr as _make_getattr

if _typing.TYPE_CHECKING:
    from vkdispatch.codegen.language import *  # noqa: F403
else:
    _refuse = _make_getattr(__name__, _IN_CODEGEN, _sys.modules[__name__])

    def __getattr__(name: str) -> object:
        # The package imports the language where it traces a kernel; many programs find theirs on disk.
        if name.startswith("__") and name != "__all__":
            return _refuse(name)
        language = _import_module("vkdispatch.codegen.language")
        names = globals()
        names.update({known: getattr(language, known) for known in language.__all__})
        names["__all__"] = language.__all__
        return names[name] if name in names else _refuse(name)

    def __dir__() -> list[str]:
        names = __getattr__("__all__")
        return sorted({*(name for name in globals() if name.startswith("__")), *names})
