"""Kompute's Python module: the names of `__init__.py`, for type checkers and editors."""

from vkdispatch.kompute.algorithm import Algorithm
from vkdispatch.kompute.enums import DataTypes, KomputeError, MemoryTypes, use
from vkdispatch.kompute.enums import MemoryTypes as TensorTypes
from vkdispatch.kompute.log import log_level
from vkdispatch.kompute.manager import Manager
from vkdispatch.kompute.memory import Image, ListTensor, Memory, Tensor
from vkdispatch.kompute.operations import (
    OpAlgoDispatch,
    OpBase,
    OpCopy,
    OpMemoryBarrier,
    OpMult,
    OpSyncDevice,
    OpSyncLocal,
)
from vkdispatch.kompute.operations import OpCopy as OpTensorCopy
from vkdispatch.kompute.operations import OpSyncDevice as OpTensorSyncDevice
from vkdispatch.kompute.operations import OpSyncLocal as OpTensorSyncLocal
from vkdispatch.kompute.sequences import Sequence
from vkdispatch.kompute.shaders import Shader, compile_glsl

__version__: str

device: MemoryTypes
host: MemoryTypes
storage: MemoryTypes
deviceAndHost: MemoryTypes  # noqa: N816  (a public name)
staging: MemoryTypes

bool: DataTypes
int: DataTypes
uint: DataTypes
float: DataTypes
double: DataTypes
custom: DataTypes
short: DataTypes
ushort: DataTypes
char: DataTypes
uchar: DataTypes

__all__ = [
    "Algorithm",
    "DataTypes",
    "Image",
    "KomputeError",
    "ListTensor",
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
    "Shader",
    "Tensor",
    "TensorTypes",
    "__version__",
    "bool",
    "char",
    "compile_glsl",
    "custom",
    "device",
    "deviceAndHost",
    "double",
    "float",
    "host",
    "int",
    "log_level",
    "short",
    "staging",
    "storage",
    "uchar",
    "uint",
    "use",
    "ushort",
]
