"""Random numbers in kernels: `vc.random.Philox` for a stream in each invocation, and the bare functions.

All are made of integers, sums and products only, so that every device gives the same numbers, bit for bit.
"""

from vkdispatch.codegen.random.philox import philox4x32, philox4x64
from vkdispatch.codegen.random.stream import Philox

__all__ = ["Philox", "philox4x32", "philox4x64"]
