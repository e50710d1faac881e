"""NumPy's way of computing on Vulkan devices: what `__init__.py` gives, for type checkers and editors.

Each module below lists in its `__all__` what the namespace has of it.
"""
# ruff: noqa: F403

from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi

from numpy import bool_ as bool_
from numpy import complex64 as complex64
from numpy import complex128 as complex128
from numpy import dtype as dtype
from numpy import finfo as finfo
from numpy import float16 as float16
from numpy import float32 as float32
from numpy import float64 as float64
from numpy import iinfo as iinfo
from numpy import int8 as int8
from numpy import int16 as int16
from numpy import int32 as int32
from numpy import int64 as int64
from numpy import uint8 as uint8
from numpy import uint16 as uint16
from numpy import uint32 as uint32
from numpy import uint64 as uint64

from vkdispatch.numpy import fft as fft
from vkdispatch.numpy import linalg as linalg
from vkdispatch.numpy import special as special
from vkdispatch.numpy.core.array import Array as Array
from vkdispatch.numpy.core.devices import *
from vkdispatch.numpy.core.dtypes import set_default_dtype as set_default_dtype
from vkdispatch.numpy.creation import *
from vkdispatch.numpy.differences import *
from vkdispatch.numpy.elementwise import *
from vkdispatch.numpy.exchange import *
from vkdispatch.numpy.gathering import *
from vkdispatch.numpy.indexing import *
from vkdispatch.numpy.inspection import *
from vkdispatch.numpy.linalg import cross as cross
from vkdispatch.numpy.linalg import dot as dot
from vkdispatch.numpy.linalg import inner as inner
from vkdispatch.numpy.linalg import kron as kron
from vkdispatch.numpy.linalg import matmul as matmul
from vkdispatch.numpy.linalg import outer as outer
from vkdispatch.numpy.linalg import tensordot as tensordot
from vkdispatch.numpy.linalg import trace as trace
from vkdispatch.numpy.linalg import vdot as vdot
from vkdispatch.numpy.linalg import vecdot as vecdot
from vkdispatch.numpy.manipulation import *
from vkdispatch.numpy.parts import *
from vkdispatch.numpy.printing import *
from vkdispatch.numpy.reductions import *
from vkdispatch.numpy.searching import *

__array_api_version__: str
bool = bool_
ndarray = Array
newaxis: None
