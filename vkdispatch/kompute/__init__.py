"""Kompute's Python module on vkdispatch: `import vkdispatch.kompute as kp`.

Programs for kp 0.5 to 0.9 and for its main branch run as they are; `kp.use` chooses a generation where these
disagree. What crashes or races there raises an exception here, or is put in order. A tensor's memory is a
`vd.Buffer`, an algorithm takes SPIR-V, GLSL or a traced kernel, a sequence is a `vd.CommandGraph`; see the
page "Programs for Kompute" of the documentation.

The Manager is imported here, as every program uses it. Other names import their modules on first access.
"""

import gc
from importlib import import_module

# A garbage collection during the imports would take a quarter of their time.
_collects = gc.isenabled()
gc.disable()
try:
    from vkdispatch.kompute import log
    from vkdispatch.kompute.manager import Manager as Manager
finally:
    if _collects:
        gc.enable()

__version__ = "0.9.0"

# The module of each name; `__init__.pyi` has the same for type checkers and editors.
_NAMES = {
    "algorithm": "Algorithm",
    "enums": "DataTypes MemoryTypes",
    "errors": "KomputeError",
    "generations": "use",
    "glsl": "compile_glsl",
    "log": "log_level",
    "manager": "Manager",
    "memory": "Image ListTensor Memory Tensor",
    "operations": "OpAlgoDispatch OpBase OpCopy OpMemoryBarrier OpMult OpSyncDevice OpSyncLocal",
    "sequence": "Sequence",
    "shader": "Shader",
}
# Names of 0.9.0, and their present names.
_OLDER = {
    "OpTensorCopy": "OpCopy",
    "OpTensorSyncDevice": "OpSyncDevice",
    "OpTensorSyncLocal": "OpSyncLocal",
    "TensorTypes": "MemoryTypes",
}
# Members of the enumerations as names of the module: `kp.host`, `kp.float`.
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
