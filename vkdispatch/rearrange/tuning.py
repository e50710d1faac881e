"""Numbers found by measurement, measured on an NVIDIA H200 where nothing else is said."""

from vkdispatch.base.record import record


@record
class TileTuning:
    """Numbers for transposing by tiles.

    Attributes
    ----------
    group
        The most invocations of a workgroup of tiles.
    segment_1 ... segment_16
        Bytes of a row of a tile, for elements of 1 to 16 bytes.
    flat_1
        Ratio of width to height of a tile of elements of 1 byte.
    strip
        See `TileForm`.
    sector
        If rows of the result do not begin at multiples of so many bytes, the parts of them that are stored
        do; 0: they begin anywhere.
    tall
        Ratio of height to width of a tile of cells.
    narrow
        The most rows or columns of a narrow plane.
    narrow_group
        Invocations of a workgroup for such a plane.
    cells
        Bytes of a row of a tile of cells that are smaller than 4 bytes.
    most
        Bytes of the largest word of blocks. On CPUs it is 8 at most: their compilers take long for larger
        blocks of small elements.
    """

    group: int = 256
    segment_1: int = 256
    segment_2: int = 256
    segment_4: int = 256
    segment_8: int = 256
    segment_16: int = 256
    flat_1: int = 2
    strip: int = 1
    sector: int = 32
    tall: int = 1
    narrow: int = 8
    narrow_group: int = 256
    cells: int = 256
    most: int = 16


@record
class StagingTuning:
    """Numbers for taking elements from rows in workgroup memory.

    Attributes
    ----------
    group
        Invocations of a workgroup.
    ahead
        Loads that an invocation has in flight.
    memory
        Bytes of workgroup memory for several rows.
    on_cpus
        Whether CPUs use workgroup memory, too: their caches already hold rows.
    """

    group: int = 256
    ahead: int = 4
    memory: int = 1 << 14
    on_cpus: bool = False


@record
class TakeTuning:
    """Numbers for taking elements one by one.

    Attributes
    ----------
    ahead
        Words that an invocation has in flight.
    few
        The most words for which each invocation has one, which keeps a device busy already.
    """

    ahead: int = 2
    few: int = 1 << 20


tile_tuning = TileTuning()
staging_tuning = StagingTuning()
take_tuning = TakeTuning()
