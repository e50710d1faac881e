"""Numbers found by measurement, which the plans of products depend on."""

from vkdispatch.base.record import record


@record
class Tile:
    """A shape of tiles; `cost` is the time of a multiplication relative to that of the best shape."""

    rows: int
    columns: int
    step: int
    height: int
    width: int
    unroll: int
    cost: float


@record
class SubgroupTile:
    """A shape of tiles of cooperative matrices; `height` and `width` are the part of a subgroup."""

    rows: int
    columns: int
    step: int
    height: int
    width: int
    cost: float


@record
class Tuning:
    """Numbers measured on an NVIDIA H200, and those for CPUs with llvmpipe.

    Attributes
    ----------
    tiles_4, tiles_8, tiles_16
        Tiles for sums of 4, 8 and 16 bytes. The largest reach 45 TFLOP/s of float32 and 23 of float64, the
        next ones 45 and 22.
    tiles_cpu
        Tiles on CPUs, whose compilers take long for large ones.
    chunk_cpu
        The most elements of a sum that one invocation adds up: CPU drivers end long loops.
    lanes_cpu
        Invocations of a workgroup of panels or lines, if they can exchange values.
    panel_height, panel_height_large, panel_width
        Words that an invocation of panels loads of each operand; see `panels`.
    panel_large
        Number of multiplications from which on a product is large: its kernel may take longer to compile.
    panel_words
        The most words of the panels of an operand; larger ones are not copied.
    line_rows, line_words
        Rows of a workgroup of lines, or words of a line that each invocation loads; see `lines`.
    longest_line
        The most loads along the length that an invocation of lines makes.
    groups_cpu
        Workgroups of lines that keep all cores busy.
    tiles_cooperative
        Tiles of cooperative matrices.
    slots, slots_cooperative
        Workgroups of tiles that a GPU works on at once.
    rate, rate_cooperative
        Multiplications per second of tiles of cost 1, of sums of 4 bytes, and of cooperative matrices.
    least_cooperative
        Smallest side for cooperative matrices.
    bandwidth, launch
        Bytes per second of memory, and seconds of a launch.
    groups
        Workgroups that share a product with a vector.
    lane_loads
        The least loads of a lane of such a product before others share its sum.
    across_lanes
        Lanes that share the length if sums are neighbours.
    unroll
        Loads that a lane has in flight.
    band, band_cooperative, apart
        The order in which workgroups make tiles; see `find_tile`.
    """

    tiles_4: tuple[Tile, ...] = (
        Tile(128, 128, 8, 8, 8, 8, 1.0),
        Tile(64, 64, 16, 8, 8, 16, 1.02),
        Tile(128, 32, 16, 8, 8, 8, 1.25),
        Tile(32, 128, 16, 8, 8, 8, 1.25),
        Tile(32, 32, 16, 4, 4, 4, 1.7),
        Tile(128, 16, 16, 8, 4, 4, 1.9),
        Tile(16, 128, 16, 4, 8, 4, 1.9),
        Tile(16, 16, 32, 2, 2, 4, 3.5),
    )
    tiles_8: tuple[Tile, ...] = (
        Tile(128, 64, 8, 8, 8, 8, 1.53),
        Tile(64, 64, 8, 8, 8, 8, 1.6),
        Tile(32, 32, 16, 4, 4, 2, 2.0),
        Tile(128, 16, 8, 8, 4, 2, 2.5),
        Tile(16, 128, 8, 4, 8, 2, 2.5),
        Tile(16, 16, 16, 2, 2, 2, 4.0),
    )
    tiles_16: tuple[Tile, ...] = (
        Tile(32, 32, 8, 4, 4, 2, 6.0),
        Tile(16, 16, 8, 2, 2, 2, 9.0),
    )
    tiles_cpu: tuple[Tile, ...] = (Tile(16, 16, 16, 2, 2, 1, 1.0),)
    chunk_cpu: int = 32768
    lanes_cpu: int = 8
    panel_height: int = 2
    panel_height_large: int = 4
    panel_width: int = 1
    panel_large: int = 1 << 25
    panel_words: int = 1 << 27
    line_rows: int = 4
    line_words: int = 8
    longest_line: int = 1024
    groups_cpu: int = 16
    tiles_cooperative: tuple[SubgroupTile, ...] = (
        SubgroupTile(128, 128, 64, 64, 64, 1.0),
        SubgroupTile(64, 128, 64, 32, 64, 1.3),
        SubgroupTile(128, 64, 64, 64, 32, 1.3),
        SubgroupTile(64, 64, 64, 32, 32, 1.8),
        SubgroupTile(32, 64, 64, 16, 32, 3.0),
        SubgroupTile(64, 32, 64, 32, 16, 3.0),
    )
    slots: int = 792
    slots_cooperative: int = 264
    rate_cooperative: float = 1.6e14
    least_cooperative: int = 32
    rate: float = 2.2e13
    bandwidth: float = 3e12
    launch: float = 4e-6
    groups: int = 1056
    lane_loads: int = 4
    across_lanes: int = 8
    unroll: int = 4
    band: int = 8
    band_cooperative: int = 8
    apart: int = 66


tuning = Tuning()
