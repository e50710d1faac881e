"""Numbers found by measurement, which the plans of moving elements depend on. None changes a result."""

from vkdispatch.families.tuning import H200_AND_LLVMPIPE, LLVMPIPE, Number, Table

_POWER = "a power of two"
# Twice as many do not fit into the workgroup memory that devices have at least for small elements.
_SEGMENTS = (64, 128, 256)


class TileTuning(Table, family="rearrange.tiles", found_on=H200_AND_LLVMPIPE):
    """Numbers for transposing by tiles."""

    group = Number(
        256, "The most invocations of a workgroup of tiles.", (64, 128, 256, 512), constraint=_POWER
    )
    segment_1 = Number(256, "Bytes of a row of a tile, of elements of 1 byte.", _SEGMENTS, constraint=_POWER)
    segment_2 = Number(256, "Bytes of a row of a tile, of elements of 2 bytes.", _SEGMENTS, constraint=_POWER)
    segment_4 = Number(256, "Bytes of a row of a tile, of elements of 4 bytes.", _SEGMENTS, constraint=_POWER)
    segment_8 = Number(256, "Bytes of a row of a tile, of elements of 8 bytes.", _SEGMENTS, constraint=_POWER)
    segment_16 = Number(
        256, "Bytes of a row of a tile, of elements of 16 bytes.", _SEGMENTS, constraint=_POWER
    )
    flat_1 = Number(2, "Ratio of width to height of a tile of elements of 1 byte.", (2, 4), constraint=_POWER)
    strip = Number(1, "See `TileForm`.", (0, 1))
    sector = Number(
        32,
        "If rows of the result do not begin at multiples of so many bytes, the parts of them that are "
        "stored do; 0: they begin anywhere.",
        (0, 32, 64),
    )
    tall = Number(1, "Ratio of height to width of a tile of cells.")
    narrow = Number(8, "The most rows or columns of a narrow plane.", (0, 4, 8))
    narrow_group = Number(
        256, "Invocations of a workgroup for such a plane.", (64, 128, 256, 512), constraint=_POWER
    )
    cells = Number(
        256,
        "Bytes of a row of a tile of cells that are smaller than 4 bytes.",
        (64, 128, 256),
        constraint=_POWER,
    )
    most = Number(
        16,
        "Bytes of the largest word of blocks. On CPUs it is 8 at most: their compilers take long for larger "
        "blocks of small elements.",
        (4, 8, 16),
    )


class StagingTuning(Table, family="rearrange.staging"):
    """Numbers for taking elements from rows in workgroup memory."""

    group = Number(256, "Invocations of a workgroup.", (64, 128, 256, 512), constraint=_POWER)
    ahead = Number(4, "Loads that an invocation has in flight.", (1, 2, 4, 8))
    memory = Number(1 << 14, "Bytes of workgroup memory for several rows.", (1 << 12, 1 << 13, 1 << 14))
    on_cpus = Number(
        False,
        "Whether CPUs use workgroup memory, too: their caches already hold rows.",
        (False, True),
        found_on=LLVMPIPE,
    )


class TakeTuning(Table, family="rearrange.take", found_on=H200_AND_LLVMPIPE):
    """Numbers for taking elements one by one."""

    ahead = Number(2, "Words that an invocation has in flight.", (1, 2, 4, 8))
    few = Number(
        1 << 20,
        "The most words for which each invocation has one, which keeps a device busy already.",
        (1 << 16, 1 << 18, 1 << 20, 1 << 22),
    )


tile_tuning = TileTuning()
staging_tuning = StagingTuning()
take_tuning = TakeTuning()
