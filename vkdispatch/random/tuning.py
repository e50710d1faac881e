"""Numbers found by measurement, on an NVIDIA H200 where nothing else is said."""

from vkdispatch.base.record import record


@record(frozen=False)
class Tuning:
    """Numbers that the forms of kernels depend on.

    Attributes
    ----------
    group
        Invocations of a workgroup.
    unroll
        Blocks of Philox4x32 that an invocation computes; of Philox4x64 it computes half as many. On CPUs it
        computes one, which compiles faster.
    long_products
        Whether products of 32-bit words are computed in 64 bits if the device has such integers: 0 or 1.
    exchange
        Whether neighbours exchange words if elements come from two blocks: 0 or 1.
    few
        Number of blocks up to which one kernel serves all places in the stream, which compiles faster.
    everywhere
        Whether CPUs use the forms of GPUs: 0 or 1.
    """

    group: int = 512
    unroll: int = 4
    long_products: int = 1
    exchange: int = 1
    few: int = 1 << 15
    everywhere: int = 0


tuning = Tuning()
