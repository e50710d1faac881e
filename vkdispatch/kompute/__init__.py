"""Kompute's Python module on vkdispatch: `import vkdispatch.kompute as kp`.

Programs for kp 0.5 to 0.9 and for its main branch run unchanged; `kp.use` chooses a generation where these
disagree. Calls that crash in Kompute raise an exception, and commands that race there are ordered. A tensor's
memory is a `vd.Buffer`, an algorithm takes SPIR-V, GLSL or a traced kernel, and a sequence is a
`vd.CommandGraph`; see the page "Programs for Kompute" of the documentation.

Every program uses the Manager, so it is imported here. Other names import their modules on first access.
"""

import gc
from importlib import import_module

from vkdispatch import installation as _installation

if not _installation.is_whole():
    _installation.refuse_mixture()

# A garbage collection during the imports would take a quarter of the import time.
_collects = gc.isenabled()
gc.disable()
try:
    from vkdispatch.kompute import log
    from vkdispatch.kompute.manager import Manager as Manager
finally:
    if _collects:
        gc.enable()

__version__ = "0.9.0"

# The names of each module. `__init__.pyi` lists the same for type checkers and editors.
_NAMES = {
    "algorithm": "Algorithm",
    "enums": "DataTypes KomputeError MemoryTypes use",
    "log": "log_level",
    "manager": "Manager",
    "memory": "Image ListTensor Memory Tensor",
    "operations": "OpAlgoDispatch OpBase OpCopy OpMemoryBarrier OpMult OpSyncDevice OpSyncLocal",
    "sequences": "Sequence",
    "shaders": "Shader compile_glsl",
}
# Names of Kompute 0.9.0, and their current names.
_OLDER = {
    "OpTensorCopy": "OpCopy",
    "OpTensorSyncDevice": "OpSyncDevice",
    "OpTensorSyncLocal": "OpSyncLocal",
    "TensorTypes": "MemoryTypes",
}
# Members of the enumerations that are also names of the module: `kp.host`, `kp.float`.
_MEMBERS = {
    "DataTypes": "bool int uint float double custom short ushort char uchar",
    "MemoryTypes": "device host storage deviceAndHost staging",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}
_CLASSES = {name: kind for kind, names in _MEMBERS.items() for name in names.split()}

__all__ = sorted([*_HOMES, *_OLDER, *_CLASSES, "__version__"])


def __getattr__(name: str) -> object:
    if name in _HOMES:
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    elif name in _OLDER:
        value = __getattr__(_OLDER[name])
    elif name in _CLASSES:
        value = getattr(__getattr__(_CLASSES[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__})


log.configure()
