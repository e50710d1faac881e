"""Kompute's Python module: the names of `__init__.py`, for type checkers and editors."""

from vkdispatch.kompute.algorithms.algorithm import Algorithm
from vkdispatch.kompute.enums import DataTypes, MemoryTypes
from vkdispatch.kompute.enums import MemoryTypes as TensorTypes
from vkdispatch.kompute.errors import KomputeError
from vkdispatch.kompute.generation import use
from vkdispatch.kompute.log import log_level
from vkdispatch.kompute.manager import Manager
from vkdispatch.kompute.memory.image import Image
from vkdispatch.kompute.memory.memory import Memory
from vkdispatch.kompute.memory.tensor import ListTensor, Tensor
from vkdispatch.kompute.operations.dispatches import OpAlgoDispatch, OpMult
from vkdispatch.kompute.operations.operation import OpBase, OpMemoryBarrier
from vkdispatch.kompute.operations.transfers import OpCopy, OpSyncDevice, OpSyncLocal
from vkdispatch.kompute.operations.transfers import OpCopy as OpTensorCopy
from vkdispatch.kompute.operations.transfers import OpSyncDevice as OpTensorSyncDevice
from vkdispatch.kompute.operations.transfers import OpSyncLocal as OpTensorSyncLocal
from vkdispatch.kompute.sequences.sequence import Sequence
from vkdispatch.kompute.shaders.glsl import compile_glsl
from vkdispatch.kompute.shaders.shader import Shader

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
