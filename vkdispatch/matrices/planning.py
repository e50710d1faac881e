"""The choice of kernels for a product, which depends on sizes, types and the device only.

Times are estimated from the number of tiles that a device works on at once and the cost of a tile. The shape
of tiles and the number of parts of the length with the least estimated time are chosen.
"""

import math
from typing import TypeVar

from vkdispatch.base.devices import MatrixProduct
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import replace
from vkdispatch.families.arguments import floor_power_of_two
from vkdispatch.families.tuning import DeviceFacts
from vkdispatch.matrices.factors import Sizes
from vkdispatch.matrices.tuning import SubgroupTile, Tile
from vkdispatch.matrices.tuning import tuning as tuning

_MOST_SPLITS = 256
_SMALL_SIDE = 8
# All tiles are multiples of this size.
_LARGEST_FRAGMENT = 16
_SMALL_LENGTH = 4096
_FEW_SPLITS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256)


_CPU_SLOTS = 8


def is_small(sizes: Sizes) -> bool:
    """Whether one invocation computes each element of the result."""
    side = max(sizes.rows, sizes.columns)
    return side <= _SMALL_SIDE and sizes.length <= _SMALL_LENGTH and (sizes.batches > 1 or sizes.length <= 64)


def choose_tile(sizes: Sizes, item: int, *, cpu: bool) -> tuple[Tile, Sizes]:
    """Return the tile for sums of `item` bytes, and the sizes with their parts."""
    known = {4: tuning.tiles_4, 8: tuning.tiles_8, 16: tuning.tiles_16}[item]
    known = (tuning.tiles_cpu if cpu else ()) or known
    slots = _CPU_SLOTS if cpu else tuning.slots
    return _choose_best(known, sizes, slots, slots / tuning.rate, item, cpu=cpu)


def choose_cooperative_tile(sizes: Sizes) -> tuple[SubgroupTile, Sizes]:
    """Return the tile of cooperative matrices, and the sizes with their parts."""
    slots = tuning.slots_cooperative
    one = slots / tuning.rate_cooperative
    return _choose_best(tuning.tiles_cooperative, sizes, slots, one, 4, cpu=False)


_Shape = TypeVar("_Shape", Tile, SubgroupTile)


def _choose_best(
    known: tuple[_Shape, ...], sizes: Sizes, slots: int, one: float, item: int, *, cpu: bool
) -> tuple[_Shape, Sizes]:
    """Return the shape with the least time; `one` is the time of a multiplication in a slot at cost 1."""
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
    return best[1], split_length(sizes, best[2], best[1].step)


def split_length(sizes: Sizes, splits: int, unit: int) -> Sizes:
    """Return sizes whose length has parts; all parts but the last are multiples of `unit`."""
    each = -(-sizes.length // splits)
    chunk = -(-each // unit) * unit
    return replace(sizes, splits=-(-sizes.length // chunk), chunk=min(chunk, sizes.length))


def choose_lanes_along(sizes: Sizes, together: int) -> tuple[int, Sizes]:
    """Return how many lanes share a row with a vector, and the sizes with their parts."""
    loads = sizes.length // together
    lanes = min(256, floor_power_of_two(max(loads // tuning.lane_loads, 1)))
    sums = sizes.batches * max(sizes.rows, sizes.columns)
    groups = -(-sums // (256 // lanes))
    splits = min(
        max(tuning.groups // groups, 1), max(loads // (lanes * tuning.lane_loads * 2), 1), _MOST_SPLITS * 4
    )
    return lanes, split_length(sizes, splits, lanes * together)


def choose_lanes_across(sizes: Sizes, together: int) -> tuple[int, Sizes]:
    """Return how many lanes share the length, and the sizes with their parts."""
    side = max(sizes.rows, sizes.columns)
    loads = -(-side // together)
    wide = min(256 // tuning.across_lanes, floor_power_of_two(loads))
    lanes = 256 // wide
    groups = sizes.batches * -(-loads // wide)
    most = max(sizes.length // (lanes * tuning.unroll * 2), 1)
    splits = min(max(tuning.groups // groups, 1), most, _MOST_SPLITS * 4)
    return lanes, split_length(sizes, splits, lanes)


def choose_cpu_lanes(device: DeviceFacts) -> int:
    """Return the invocations of a workgroup of panels or lines."""
    return (
        min(tuning.lanes_cpu, device.subgroup_size) if device.has_shuffle and device.has_full_subgroups else 1
    )


def choose_lines(sizes: Sizes, lanes: int, together: int, *, along: bool) -> tuple[int, Sizes]:
    """Return the rows of a workgroup, or the words of each lane in a line, and the sizes with their parts."""
    side, load = max(sizes.rows, sizes.columns), lanes * together
    if along:
        count = tuning.line_rows if side >= tuning.line_rows else 1
        groups, longest = -(-side // count), tuning.longest_line * load
    else:
        count = min(tuning.line_words, floor_power_of_two(max(side // load, 1)))
        groups, longest = -(-side // (count * load)), tuning.longest_line
    wanted = -(-tuning.groups_cpu // (groups * sizes.batches))
    splits = max(-(-sizes.length // longest), min(wanted, sizes.length // max(longest // 4, 1)), 1)
    return count, split_length(sizes, splits, load)


def choose_lanes_of_parts(sizes: Sizes) -> int:
    """Return how many lanes add up the parts of a sum."""
    if sizes.size >= 1 << 15 or sizes.splits < 8:
        return 1
    return min(32, floor_power_of_two(sizes.splits // 4))


def find_subgroup_product(device: DeviceFacts, kind: DType) -> MatrixProduct | None:
    """Return the product of half-precision matrices, with sums in float32, that subgroups compute."""
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


def has_whole_loads(sizes: Sizes, *, along: bool, side: int, together: int) -> bool:
    """Whether rows in memory, of the length (`along`) or of `side` elements, are multiples of a load."""
    return math.gcd(sizes.length if along else side, together) == together
