"""Kompute's Python module on vkdispatch: `import vkdispatch.kompute as kp`.

Programs for kp 0.9, for its main branch, and for the module before 0.7 run as they are. What crashes or races
there raises an exception here, or is put in order. A tensor's memory is a `vd.Buffer`, an algorithm takes
SPIR-V, GLSL or a traced kernel, a sequence is a `vd.CommandGraph`; see the page "Programs for Kompute" of the
documentation.
"""

import logging as _logging

from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.kompute.algorithm import Algorithm
from vkdispatch.kompute.enums import DataTypes, MemoryTypes
from vkdispatch.kompute.errors import KomputeError
from vkdispatch.kompute.glsl import compile_glsl
from vkdispatch.kompute.manager import Manager
from vkdispatch.kompute.memory import Image, Memory, Tensor
from vkdispatch.kompute.operations import (
    OpAlgoDispatch,
    OpBase,
    OpCopy,
    OpMemoryBarrier,
    OpMult,
    OpSyncDevice,
    OpSyncLocal,
)
from vkdispatch.kompute.sequence import Sequence

__version__ = "0.9.0"

# Their names in 0.9.0.
TensorTypes = MemoryTypes
OpTensorSyncDevice = OpSyncDevice
OpTensorSyncLocal = OpSyncLocal
OpTensorCopy = OpCopy

# As Kompute does when it is imported: what the logger "kp" says is seen.
_logging.basicConfig()

_LEVELS = (5, _logging.DEBUG, _logging.INFO, _logging.WARNING, _logging.ERROR)


def log_level(level: int) -> None:
    """Choose what the logger "kp" lets through: 0 all, 1 debug, 2 info, 3 warnings, 4 errors.

    Raises
    ------
    TypeError
        `level` is no int.
    RuntimeError
        `level` is none of these.
    """
    if not hasattr(level, "__index__"):
        raise ArgumentTypeError(f"level: expected an int, 0 to 4, got {level!r}")
    if level not in range(len(_LEVELS)):
        raise KomputeError(
            f"level: expected 0 (trace), 1 (debug), 2 (info), 3 (warnings) or 4 (errors), got {level!r}"
        )
    _logging.getLogger("kp").setLevel(_LEVELS[level])


__all__ = [
    "Algorithm",
    "DataTypes",
    "Image",
    "KomputeError",
    "Manager",
    "Memory",
    "MemoryTypes",
    "OpAlgoDispatch",
    "OpBase",
    "OpCopy",
    "OpMemoryBarrier",
    "OpMult",
    "OpSyncDevice",
    "OpSyncLocal",
    "OpTensorCopy",
    "OpTensorSyncDevice",
    "OpTensorSyncLocal",
    "Sequence",
    "Tensor",
    "TensorTypes",
    "__version__",
    "compile_glsl",
    "log_level",
]

# Members of the enumerations, by their own names: `kp.host`, `kp.float`. They hide built-ins from here on.
globals().update(MemoryTypes.__members__)
globals().update(DataTypes.__members__)
__all__ += [*MemoryTypes.__members__, *DataTypes.__members__]
