"""Which kernels make a product: chosen by sizes, types and device alone.

Times are estimated: of a tile, from how many of them a device does at once and how good its kernel is; the
shape of tiles and the number of parts of the length with the least time for all are taken.
"""

import math
from typing import TypeVar

from vkdispatch.arrays.facts import DeviceFacts
from vkdispatch.arrays.numbers import floor_power_of_two
from vkdispatch.base.devices import MatrixProduct
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record, replace
from vkdispatch.matrices.factors import Sizes

_MOST_SPLITS = 256
_SMALL_SIDE = 8
# All tiles are multiples of it.
_LARGEST_FRAGMENT = 16
_SMALL_LENGTH = 4096
_FEW_SPLITS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256)


@record
class Tile:
    """A shape of tiles; `cost` is the time of a product of two numbers, relative to that of the best."""

    rows: int
    columns: int
    step: int
    height: int
    width: int
    unroll: int
    cost: float


@record
class SubgroupTile:
    """A shape of tiles of cooperative matrices; `height` and `width` are a subgroup's part."""

    rows: int
    columns: int
    step: int
    height: int
    width: int
    cost: float


@record
class Tuning:
    """Numbers that were found by measurement, on GPUs where nothing else is said.

    Attributes
    ----------
    tiles_4, tiles_8, tiles_16
        Tiles for sums of 4, 8 and 16 bytes. The largest reach 45 TFLOP/s of float32 and 23 of float64 on an
        NVIDIA H200, the next ones 45 and 22.
    tiles_cpu
        Tiles on processors, whose compilers take long for large ones.
    chunk_cpu
        Elements of a sum that one invocation adds up at most: drivers for processors end long loops.
    lanes_cpu
        Invocations of a workgroup of panels and of lines, if they read each other's values.
    panel_height, panel_height_large, panel_width
        Words that an invocation of panels loads of each operand; see `panels`.
    panel_large
        Products of two numbers that make a product large: then its kernel may take longer to compile.
    panel_words
        Words of an operand's panels at most: what is larger is not copied.
    line_rows, line_words
        Rows of a workgroup of lines, or words of a line that each invocation loads; see `lines`.
    longest_line
        How many of its loads of the length an invocation of lines makes at most.
    groups_cpu
        Workgroups of lines that keep all cores at work.
    tiles_cooperative
        Tiles of cooperative matrices.
    slots, slots_cooperative
        Workgroups of tiles that a GPU works on at once.
    rate, rate_cooperative
        Products a second of tiles of cost 1, of sums of 4 bytes, and of cooperative matrices.
    least_cooperative
        Smallest side that cooperative matrices are used for.
    bandwidth, launch
        Bytes a second of memory, and seconds of a launch.
    groups
        Workgroups that share a product with a vector.
    lane_loads
        Loads that a lane of such a product has at least, before others help.
    across_lanes
        Lanes that share the length, where sums are neighbours.
    unroll
        Loads that a lane has in flight.
    band, band_cooperative, apart
        In which order workgroups make tiles; see `tile_place`.
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
_CPU_SLOTS = 8


def is_small(sizes: Sizes) -> bool:
    """Whether each element of the result is made by one invocation."""
    side = max(sizes.rows, sizes.columns)
    return side <= _SMALL_SIDE and sizes.length <= _SMALL_LENGTH and (sizes.batches > 1 or sizes.length <= 64)


def tile_for(sizes: Sizes, item: int, *, cpu: bool) -> tuple[Tile, Sizes]:
    """Return the tile for sums of `item` bytes, and the sizes with their parts."""
    known = {4: tuning.tiles_4, 8: tuning.tiles_8, 16: tuning.tiles_16}[item]
    known = (tuning.tiles_cpu if cpu else ()) or known
    slots = _CPU_SLOTS if cpu else tuning.slots
    return _best(known, sizes, slots, slots / tuning.rate, item, cpu=cpu)


def cooperative_tile_for(sizes: Sizes) -> tuple[SubgroupTile, Sizes]:
    """Return the tile of cooperative matrices, and the sizes with their parts."""
    slots = tuning.slots_cooperative
    one = slots / tuning.rate_cooperative
    return _best(tuning.tiles_cooperative, sizes, slots, one, 4, cpu=False)


_Shape = TypeVar("_Shape", Tile, SubgroupTile)


def _best(
    known: tuple[_Shape, ...], sizes: Sizes, slots: int, one: float, item: int, *, cpu: bool
) -> tuple[_Shape, Sizes]:
    """Return the shape with the least time; `one` is what a product takes in a slot, at cost 1."""
    least = -(-sizes.length // tuning.chunk_cpu) if cpu else 1
    best: tuple[float, _Shape, int] | None = None
    for tile in known:
        count = -(-sizes.rows // tile.rows) * -(-sizes.columns // tile.columns) * sizes.batches
        most = max(sizes.length // (4 * tile.step), least, 1)
        for splits in (least,) if cpu else _FEW_SPLITS:
            if splits > most:
                break
            steps = -(-sizes.length // (splits * tile.step))
            each = tile.rows * tile.columns * (steps + 2) * tile.step * tile.cost * one
            time = max(count * splits / slots, 1.0) * each
            if splits > 1:
                time += tuning.launch + 2 * splits * sizes.size * item / tuning.bandwidth
            if best is None or time < best[0]:
                best = time, tile, splits
    assert best is not None
    return best[1], with_parts(sizes, best[2], best[1].step)


def with_parts(sizes: Sizes, splits: int, unit: int) -> Sizes:
    """Return sizes with the length in parts, each but the last a multiple of `unit`."""
    each = -(-sizes.length // splits)
    chunk = -(-each // unit) * unit
    return replace(sizes, splits=-(-sizes.length // chunk), chunk=min(chunk, sizes.length))


def lanes_along(sizes: Sizes, together: int) -> tuple[int, Sizes]:
    """Return how many lanes share a row with a vector, and the sizes with their parts."""
    loads = sizes.length // together
    lanes = min(256, floor_power_of_two(max(loads // tuning.lane_loads, 1)))
    sums = sizes.batches * max(sizes.rows, sizes.columns)
    groups = -(-sums // (256 // lanes))
    splits = min(
        max(tuning.groups // groups, 1), max(loads // (lanes * tuning.lane_loads * 2), 1), _MOST_SPLITS * 4
    )
    return lanes, with_parts(sizes, splits, lanes * together)


def lanes_across(sizes: Sizes, together: int) -> tuple[int, Sizes]:
    """Return how many lanes share the length, and the sizes with their parts."""
    side = max(sizes.rows, sizes.columns)
    loads = -(-side // together)
    wide = min(256 // tuning.across_lanes, floor_power_of_two(loads))
    lanes = 256 // wide
    groups = sizes.batches * -(-loads // wide)
    most = max(sizes.length // (lanes * tuning.unroll * 2), 1)
    splits = min(max(tuning.groups // groups, 1), most, _MOST_SPLITS * 4)
    return lanes, with_parts(sizes, splits, lanes)


def processor_lanes(device: DeviceFacts) -> int:
    """Return how many invocations a workgroup of panels or lines has."""
    return (
        min(tuning.lanes_cpu, device.subgroup_size) if device.has_shuffle and device.has_full_subgroups else 1
    )


def lines_for(sizes: Sizes, lanes: int, together: int, *, along: bool) -> tuple[int, Sizes]:
    """Return how many rows, or words of a line of each lane, a workgroup has, and the sizes with parts."""
    side, load = max(sizes.rows, sizes.columns), lanes * together
    if along:
        count = tuning.line_rows if side >= tuning.line_rows else 1
        groups, longest = -(-side // count), tuning.longest_line * load
    else:
        count = min(tuning.line_words, floor_power_of_two(max(side // load, 1)))
        groups, longest = -(-side // (count * load)), tuning.longest_line
    wanted = -(-tuning.groups_cpu // (groups * sizes.batches))
    splits = max(-(-sizes.length // longest), min(wanted, sizes.length // max(longest // 4, 1)), 1)
    return count, with_parts(sizes, splits, load)


def lanes_of_parts(sizes: Sizes) -> int:
    """Return how many lanes add up the parts of a sum."""
    if sizes.size >= 1 << 15 or sizes.splits < 8:
        return 1
    return min(32, floor_power_of_two(sizes.splits // 4))


def subgroup_product(device: DeviceFacts, kind: DType) -> MatrixProduct | None:
    """Return the product of halves that subgroups of the devices compute, summed in float32."""
    found: list[MatrixProduct] = [
        each
        for each in device.products
        if each.a == each.b == kind.name
        and each.c == each.result == "float32"
        and each.scope == "subgroup"
        and not (each.flexible or each.saturating)
        and max(each.m, each.n, each.k) <= _LARGEST_FRAGMENT
    ]
    return max(found, key=lambda each: (each.m * each.n * each.k, each.m), default=None)


def whole_loads(sizes: Sizes, *, along: bool, side: int, together: int) -> bool:
    """Whether the rows of a matrix in memory, of the length or of `side` elements, are whole loads."""
    return math.gcd(sizes.length if along else side, together) == together
