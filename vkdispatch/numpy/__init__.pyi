"""NumPy's way of computing on Vulkan devices: what `__init__.py` gives, for type checkers and editors.

Each module below lists in its `__all__` what the namespace has of it.
"""
# ruff: noqa: F403

from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi

from numpy import bool_ as bool_
from numpy import byte as byte
from numpy import cdouble as cdouble
from numpy import complex64 as complex64
from numpy import complex128 as complex128
from numpy import complexfloating as complexfloating
from numpy import csingle as csingle
from numpy import double as double
from numpy import dtype as dtype
from numpy import errstate as errstate
from numpy import euler_gamma as euler_gamma
from numpy import float16 as float16
from numpy import float32 as float32
from numpy import float64 as float64
from numpy import floating as floating
from numpy import generic as generic
from numpy import get_printoptions as get_printoptions
from numpy import half as half
from numpy import iinfo as iinfo
from numpy import inexact as inexact
from numpy import int8 as int8
from numpy import int16 as int16
from numpy import int32 as int32
from numpy import int64 as int64
from numpy import int_ as int_
from numpy import intc as intc
from numpy import integer as integer
from numpy import intp as intp
from numpy import issubdtype as issubdtype
from numpy import iterable as iterable
from numpy import longlong as longlong
from numpy import number as number
from numpy import printoptions as printoptions
from numpy import set_printoptions as set_printoptions
from numpy import short as short
from numpy import signedinteger as signedinteger
from numpy import single as single
from numpy import ubyte as ubyte
from numpy import uint as uint
from numpy import uint8 as uint8
from numpy import uint16 as uint16
from numpy import uint32 as uint32
from numpy import uint64 as uint64
from numpy import uintc as uintc
from numpy import uintp as uintp
from numpy import ulonglong as ulonglong
from numpy import unsignedinteger as unsignedinteger
from numpy import ushort as ushort

from vkdispatch.numpy import fft as fft
from vkdispatch.numpy import lib as lib
from vkdispatch.numpy import linalg as linalg
from vkdispatch.numpy import random as random
from vkdispatch.numpy import special as special
from vkdispatch.numpy.averages import *
from vkdispatch.numpy.basics.creation import *
from vkdispatch.numpy.basics.elementwise import *
from vkdispatch.numpy.basics.joining import *
from vkdispatch.numpy.basics.manipulation import *
from vkdispatch.numpy.basics.parts import *
from vkdispatch.numpy.basics.reductions import *
from vkdispatch.numpy.basics.sequences import *
from vkdispatch.numpy.calculus import *
from vkdispatch.numpy.core.array import Array as Array
from vkdispatch.numpy.core.memory import *
from vkdispatch.numpy.core.memory import set_default_dtype as set_default_dtype
from vkdispatch.numpy.counting import *
from vkdispatch.numpy.editing import *
from vkdispatch.numpy.index_arrays import *
from vkdispatch.numpy.indexing import *
from vkdispatch.numpy.interchange.exchange import *
from vkdispatch.numpy.interchange.inspection import *
from vkdispatch.numpy.interchange.lazy import *
from vkdispatch.numpy.interchange.vectorizing import *
from vkdispatch.numpy.linalg import cross as cross
from vkdispatch.numpy.linalg import dot as dot
from vkdispatch.numpy.linalg import inner as inner
from vkdispatch.numpy.linalg import kron as kron
from vkdispatch.numpy.linalg import matmul as matmul
from vkdispatch.numpy.linalg import matvec as matvec
from vkdispatch.numpy.linalg import outer as outer
from vkdispatch.numpy.linalg import tensordot as tensordot
from vkdispatch.numpy.linalg import vdot as vdot
from vkdispatch.numpy.linalg import vecdot as vecdot
from vkdispatch.numpy.linalg import vecmat as vecmat
from vkdispatch.numpy.linalg.products import *
from vkdispatch.numpy.polynomials import *
from vkdispatch.numpy.quantiles import *
from vkdispatch.numpy.searching import *
from vkdispatch.numpy.selections import *

__array_api_version__: str
bool = bool_
ndarray = Array
newaxis: None
