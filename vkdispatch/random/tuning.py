"""Numbers found by measurement, which random draws depend on. None changes a stream."""

from vkdispatch.families.tuning import H200_AND_LLVMPIPE, Number, Table


class Tuning(Table, family="random"):
    """Numbers that the forms of kernels depend on."""

    few = Number(
        1 << 15,
        "Number of blocks up to which one kernel serves all places in the stream, which compiles faster.",
    )
    group = Number(
        512,
        "Invocations of a workgroup.",
        (64, 128, 256, 512, 1024),
        found_on=H200_AND_LLVMPIPE,
        constraint="a power of two",
    )
    unroll = Number(
        4,
        "Blocks of Philox4x32 that an invocation computes; of Philox4x64 it computes half as many. On CPUs "
        "it computes one, which compiles faster.",
        (1, 2, 4, 8),
    )
    long_products = Number(
        1,
        "Whether products of 32-bit words are computed in 64 bits if the device has such integers: 0 or 1.",
        (0, 1),
        found_on=H200_AND_LLVMPIPE,
    )
    exchange = Number(
        1, "Whether neighbours exchange words if elements come from two blocks: 0 or 1.", (0, 1)
    )
    everywhere = Number(0, "Whether CPUs use the forms of GPUs: 0 or 1.")


tuning = Tuning()
