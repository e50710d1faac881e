"""How products are planned: measured numbers, the choice of kernels, and their launches."""

import math
from typing import TypeVar

from vkdispatch.base.devices import MatrixProduct
from vkdispatch.base.dtype import DType, bfloat16, bool_, float16, float32, uvec4
from vkdispatch.base.record import record, replace
from vkdispatch.families.operands import Sink, plain_source
from vkdispatch.families.sources import Source
from vkdispatch.families.tuning import LLVMPIPE, DeviceFacts, Number, PlanCache, Table, floor_power_of_two
from vkdispatch.matrices import vectors
from vkdispatch.matrices.cooperative import WORD, CooperativeForm, make_cooperative_kernel
from vkdispatch.matrices.factors import Factors, PartialsForm, Sizes, make_partials_kernel
from vkdispatch.matrices.panels import PanelForm, count_panel_words, make_product_kernel
from vkdispatch.matrices.tiles import TileForm, make_tile_kernel
from vkdispatch.shader.shader_function import ShaderFunction

# ---- Numbers found by measurement, which the plans of products depend on ---------------------------------


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


_TILES_4 = (
    Tile(128, 128, 8, 8, 8, 8, 1.0),
    Tile(64, 64, 16, 8, 8, 16, 1.02),
    Tile(128, 32, 16, 8, 8, 8, 1.25),
    Tile(32, 128, 16, 8, 8, 8, 1.25),
    Tile(32, 32, 16, 4, 4, 4, 1.7),
    Tile(128, 16, 16, 8, 4, 4, 1.9),
    Tile(16, 128, 16, 4, 8, 4, 1.9),
    Tile(16, 16, 32, 2, 2, 4, 3.5),
)
_TILES_8 = (
    Tile(128, 64, 8, 8, 8, 8, 1.53),
    Tile(64, 64, 8, 8, 8, 8, 1.6),
    Tile(32, 32, 16, 4, 4, 2, 2.0),
    Tile(128, 16, 8, 8, 4, 2, 2.5),
    Tile(16, 128, 8, 4, 8, 2, 2.5),
    Tile(16, 16, 16, 2, 2, 2, 4.0),
)
_TILES_16 = (Tile(32, 32, 8, 4, 4, 2, 6.0), Tile(16, 16, 8, 2, 2, 2, 9.0))
_TILE_CPU = Tile(16, 16, 16, 2, 2, 1, 1.0)
_TILES_COOPERATIVE = (
    SubgroupTile(128, 128, 64, 64, 64, 1.0),
    SubgroupTile(64, 128, 64, 32, 64, 1.3),
    SubgroupTile(128, 64, 64, 64, 32, 1.3),
    SubgroupTile(64, 64, 64, 32, 32, 1.8),
    SubgroupTile(32, 64, 64, 16, 32, 3.0),
    SubgroupTile(64, 32, 64, 32, 16, 3.0),
)


class Tuning(Table, family="matrices"):
    """Numbers of products; those of panels and lines, and those that end in "_cpu", are for CPUs.

    The largest tiles reach 45 TFLOP/s of float32 and 23 of float64 on an H200, the next ones 45 and 22. The
    numbers that estimates of time depend on decide which tile is taken, and how many parts the sums have.
    """

    # Tiles for sums of 4 bytes.
    tiles_4 = Number(_TILES_4, (_TILES_4, _TILES_4[1:]), changes_rounding=True)
    # Tiles for sums of 8 bytes.
    tiles_8 = Number(_TILES_8, (_TILES_8, _TILES_8[1:]), changes_rounding=True)
    # Tiles for sums of 16 bytes.
    tiles_16 = Number(_TILES_16, (_TILES_16, _TILES_16[1:]), changes_rounding=True)
    # The tile on CPUs, whose compilers take long for large ones.
    tile_cpu = Number(_TILE_CPU, found_on=LLVMPIPE)
    # The most elements of a sum that one invocation adds up: CPU drivers end long loops.
    chunk_cpu = Number(32768, found_on=LLVMPIPE)
    # Invocations of a workgroup of panels or lines, if they can exchange values. A power of two.
    lanes_cpu = Number(8, (1, 4, 8), found_on=LLVMPIPE, changes_rounding=True)
    # Words that an invocation of panels loads of A; see `panels`.
    panel_height = Number(2, (1, 2, 4), found_on=LLVMPIPE)
    # The same for large products.
    panel_height_large = Number(4, (2, 4), found_on=LLVMPIPE)
    # Words that it loads of B.
    panel_width = Number(1, (1, 2), found_on=LLVMPIPE)
    # Multiplications from which on a product is large: its kernel may take longer to compile.
    panel_large = Number(1 << 25, (1 << 22, 1 << 25, 1 << 28), found_on=LLVMPIPE)
    # The most words of the panels of an operand; larger ones are not copied.
    panel_words = Number(1 << 27, found_on=LLVMPIPE)
    # Rows of a workgroup of lines; see `vectors`.
    line_rows = Number(4, (1, 2, 4, 8), found_on=LLVMPIPE, changes_rounding=True)
    # Words of a line that each invocation loads. A power of two.
    line_words = Number(8, (2, 4, 8), found_on=LLVMPIPE, changes_rounding=True)
    # The most loads along the length that an invocation of lines makes.
    longest_line = Number(1024, (512, 1024, 4096), found_on=LLVMPIPE, changes_rounding=True)
    # Workgroups of lines that keep all cores busy.
    groups_cpu = Number(16, (4, 8, 16, 32, 64, 128), found_on=LLVMPIPE, changes_rounding=True)
    # Tiles of cooperative matrices.
    tiles_cooperative = Number(
        _TILES_COOPERATIVE, (_TILES_COOPERATIVE, _TILES_COOPERATIVE[1:]), changes_rounding=True
    )
    # Workgroups of tiles that a GPU works on at once.
    slots = Number(792, (64, 128, 256, 528, 792), changes_rounding=True)
    # The same for tiles of cooperative matrices.
    slots_cooperative = Number(264, (64, 128, 264), changes_rounding=True)
    # Multiplications per second of tiles of cooperative matrices of cost 1.
    rate_cooperative = Number(1.6e14, (1e13, 4e13, 1.6e14), changes_rounding=True)
    # Smallest side for cooperative matrices.
    least_cooperative = Number(32, (16, 32, 64, 128), changes_rounding=True)
    # Multiplications per second of tiles of cost 1, of sums of 4 bytes.
    rate = Number(2.2e13, (2e12, 7e12, 2.2e13), changes_rounding=True)
    # Bytes per second of memory.
    bandwidth = Number(3e12, (2e11, 8e11, 3e12), changes_rounding=True)
    # Seconds of a launch.
    launch = Number(4e-6, (4e-6, 1e-5), changes_rounding=True)
    # Workgroups that share a product with a vector.
    groups = Number(1056, (128, 264, 528, 1056, 2112), changes_rounding=True)
    # The least loads of a lane of such a product before others share its sum.
    lane_loads = Number(4, (1, 2, 4, 8), changes_rounding=True)
    # Lanes that share the length if sums are neighbours. A power of two.
    across_lanes = Number(8, (2, 4, 8, 16), changes_rounding=True)
    # Loads that a lane has in flight.
    unroll = Number(4, (1, 2, 4, 8), changes_rounding=True)
    # The order in which workgroups make tiles; see `find_tile`.
    band = Number(8, (1, 4, 8, 16))
    # The same for tiles of cooperative matrices.
    band_cooperative = Number(8, (1, 4, 8, 16))
    # The distance of such tiles; see `find_tile`.
    apart = Number(66, (16, 32, 66, 132))


tuning = Tuning()


# ---- The choice of kernels for a product, which depends on sizes, types and the device only --------------
#
# Times are estimated from the number of tiles that a device works on at once and the cost of a tile. The
# shape of tiles and the number of parts of the length with the least estimated time are chosen.


_MAX_SPLITS = 256
_SMALL_SIDE = 8
# On CPUs: elements of a product, one of several, beyond which panels are faster.
_SMALL_AREA_CPU = 40
# All tiles are multiples of this size.
_LARGEST_FRAGMENT = 16
_SMALL_LENGTH = 4096
_SPLITS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256)


def is_small(sizes: Sizes, device: DeviceFacts) -> bool:
    """Whether one invocation computes each element of the result."""
    if max(sizes.rows, sizes.columns) > _SMALL_SIDE or sizes.length > _SMALL_LENGTH:
        return False
    if sizes.batches == 1:
        return sizes.length <= 64
    return not device.is_cpu or sizes.rows * sizes.columns <= _SMALL_AREA_CPU


def choose_tile(sizes: Sizes, item: int) -> tuple[Tile, Sizes]:
    """Return the tile for sums of `item` bytes, and the sizes with their parts."""
    known = {4: tuning.tiles_4, 8: tuning.tiles_8, 16: tuning.tiles_16}[item]
    return _choose_best(known, sizes, tuning.slots, tuning.slots / tuning.rate, item)


def choose_cpu_tile(sizes: Sizes) -> tuple[Tile, Sizes]:
    """Return the tile on CPUs, and the sizes with their parts."""
    return tuning.tile_cpu, split_chunks(sizes, tuning.tile_cpu.step)


def choose_cooperative_tile(sizes: Sizes) -> tuple[SubgroupTile, Sizes]:
    """Return the tile of cooperative matrices, and the sizes with their parts."""
    slots = tuning.slots_cooperative
    one = slots / tuning.rate_cooperative
    return _choose_best(tuning.tiles_cooperative, sizes, slots, one, 4)


_Shape = TypeVar("_Shape", Tile, SubgroupTile)


def _choose_best(
    known: tuple[_Shape, ...], sizes: Sizes, slots: int, one: float, item: int
) -> tuple[_Shape, Sizes]:
    """Return the shape with the least time; `one` is the time of a multiplication in a slot at cost 1."""
    best: tuple[float, _Shape, int] | None = None
    for tile in known:
        count = -(-sizes.rows // tile.rows) * -(-sizes.columns // tile.columns) * sizes.batches
        most = max(sizes.length // (4 * tile.step), 1)
        for splits in _SPLITS:
            if splits > most:
                break
            steps = -(-sizes.length // (splits * tile.step))
            seconds = tile.rows * tile.columns * (steps + 2) * tile.step * tile.cost * one
            time = max(count * splits / slots, 1.0) * seconds
            if splits > 1:
                time += tuning.launch + 2 * splits * sizes.size * item / tuning.bandwidth
            if best is None or time < best[0]:
                best = time, tile, splits
    assert best is not None
    return best[1], split_length(sizes, best[2], best[1].step)


def split_length(sizes: Sizes, splits: int, unit: int) -> Sizes:
    """Return sizes whose length has parts; all parts but the last are multiples of `unit`."""
    share = -(-sizes.length // splits)
    chunk = -(-share // unit) * unit
    return replace(sizes, splits=-(-sizes.length // chunk), chunk=min(chunk, sizes.length))


def split_chunks(sizes: Sizes, unit: int) -> Sizes:
    """Return sizes whose length has parts that an invocation on a CPU adds up; see `split_length`."""
    return split_length(sizes, -(-sizes.length // tuning.chunk_cpu), unit)


def choose_lanes_along(sizes: Sizes, together: int) -> tuple[int, Sizes]:
    """Return how many lanes share a row with a vector, and the sizes with their parts."""
    loads = sizes.length // together
    lanes = min(256, floor_power_of_two(max(loads // tuning.lane_loads, 1)))
    sums = sizes.batches * max(sizes.rows, sizes.columns)
    groups = -(-sums // (256 // lanes))
    splits = min(
        max(tuning.groups // groups, 1), max(loads // (lanes * tuning.lane_loads * 2), 1), _MAX_SPLITS * 4
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
    splits = min(max(tuning.groups // groups, 1), most, _MAX_SPLITS * 4)
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
    products: list[MatrixProduct] = [
        each
        for each in device.products
        if each.a == each.b == kind.name
        and each.c == each.result == "float32"
        and each.scope == "subgroup"
        and not (each.flexible or each.saturating)
        and max(each.m, each.n, each.k) <= _LARGEST_FRAGMENT
    ]
    return max(products, key=lambda each: (each.m * each.n * each.k, each.m), default=None)


def has_whole_loads(sizes: Sizes, *, along: bool, side: int, together: int) -> bool:
    """Whether rows in memory, of the length (`along`) or of `side` elements, are multiples of a load."""
    return math.gcd(sizes.length if along else side, together) == together


_HALVES = (float16, bfloat16)


@record
class Request:
    """What a plan depends on.

    Attributes
    ----------
    a, b
        Where the elements come from.
    transpose_a, transpose_b
        Whether rows and columns of an operand are swapped.
    sizes, kind
        The sizes of the product, and the type of sums.
    sink
        How the result is stored.
    device
        What the choice of kernels depends on.
    """

    a: Source
    b: Source
    transpose_a: bool
    transpose_b: bool
    sizes: Sizes
    kind: DType
    sink: Sink
    device: DeviceFacts


@record(eq=False)
class Plan:
    """The launches of a product.

    Attributes
    ----------
    kernel, numbers
        The first kernel, and the numbers that it takes after the result.
    views
        Whether it takes the views of each operand.
    words
        The dtype of the halves that operands are as words; None for operands as they are.
    panels
        The form of the panels that operands are copied to; None for operands as they are.
    splits
        Number of parts of the sums, which lie in a scratch buffer.
    parts
        The kernel that adds up the parts; None if the first kernel stores the result.
    """

    request: Request
    kernel: ShaderFunction | None
    numbers: tuple[int, ...] = ()
    views: tuple[bool, bool] = (False, False)
    words: DType | None = None
    panels: PanelForm | None = None
    splits: int = 1
    parts: ShaderFunction | None = None


_plans: PlanCache[Plan] = PlanCache()


def find_plan(request: Request) -> Plan:
    """Return the plan of a product that has elements."""
    # Equal sources and sinks are the same objects, and hashing them takes longer than all else here. The plan
    # keeps them alive, so that identities stay unique.
    key = (
        *(id(request.a), id(request.b), request.transpose_a, request.transpose_b, request.sizes.key),
        *(request.kind, id(request.sink), id(request.device)),
    )
    return _plans.find(tuning, key, lambda: _plan_product(request))


def _plan_product(request: Request) -> Plan:
    sizes = request.sizes
    if sizes.length == 0:
        # sums of no parts are zeros
        return Plan(request, None, splits=0, parts=_make_parts_kernel(request, sizes))
    if is_small(sizes, request.device):
        return Plan(request, vectors.make_small_kernel(_make_factors(request, sizes, 1, 1)), sizes.numbers)
    has_vector = min(sizes.rows, sizes.columns) == 1
    if request.device.is_cpu:
        return _plan_lines(request) if has_vector else _plan_panels(request)
    return _plan_vector(request) if has_vector else _plan_matrices(request)


def _make_plan(request: Request, kernel: ShaderFunction, sizes: Sizes, *together: int) -> Plan:
    views = together[0] > 1, together[1] > 1
    parts = None if sizes.splits == 1 else _make_parts_kernel(request, sizes)
    return Plan(request, kernel, sizes.numbers, views, splits=sizes.splits, parts=parts)


def _make_parts_kernel(request: Request, sizes: Sizes) -> ShaderFunction:
    factors = replace(_make_factors(request, sizes, 1, 1), partial=False)
    return make_partials_kernel(PartialsForm(factors, choose_lanes_of_parts(sizes)))


def _make_factors(request: Request, sizes: Sizes, *together: int) -> Factors:
    a, b = (
        source if count > 1 else source.elementwise()
        for source, count in zip((request.a, request.b), together, strict=True)
    )
    swapped = request.transpose_a, request.transpose_b
    return Factors(a, b, *swapped, request.kind, request.sink, sizes.splits > 1)


def choose_panel_form(kind: DType, sink: Sink, sizes: Sizes, device: DeviceFacts) -> PanelForm:
    """Return the form of a product of a type on a device."""
    large = sizes.size * sizes.length >= tuning.panel_large
    height = tuning.panel_height_large if large else tuning.panel_height
    return PanelForm(kind, sink.value_type is bool_, choose_cpu_lanes(device), height, tuning.panel_width)


def fits_panels(form: PanelForm, sizes: Sizes) -> bool:
    """Whether the operands are small enough to be copied."""
    most = tuning.panel_words
    return max(count_panel_words(form, sizes, of_b=False), count_panel_words(form, sizes, of_b=True)) <= most


def _plan_panels(request: Request) -> Plan:
    """Return the plan on CPUs, which copies operands to panels if they fit."""
    sizes, sink = request.sizes, request.sink
    form = choose_panel_form(request.kind, sink, sizes, request.device)
    if not fits_panels(form, sizes):
        return _plan_tiles(request, *choose_cpu_tile(sizes))
    sizes = split_chunks(sizes, form.step)
    plain = sink.mapping is None and sink.out_type is form.kind
    parts = None if plain and sizes.splits == 1 else _make_parts_kernel(request, sizes)
    return Plan(
        request, make_product_kernel(form), sizes.numbers, panels=form, splits=sizes.splits, parts=parts
    )


def _plan_matrices(request: Request) -> Plan:
    """Return the plan on GPUs."""
    device = _find_product(request)
    if device is not None:
        return _plan_cooperative(request, device)
    return _plan_tiles(request, *choose_tile(request.sizes, request.kind.item_size))


def _plan_tiles(request: Request, tile: Tile, sizes: Sizes) -> Plan:
    together = [
        _choose_together(source, sizes, along=along, side=side, most=tile.step if along else most)
        for source, along, side, most in (
            (request.a, not request.transpose_a, sizes.rows, tile.rows),
            (request.b, request.transpose_b, sizes.columns, tile.columns),
        )
    ]
    factors = _make_factors(request, sizes, *together)
    form = TileForm(
        factors=factors,
        rows=tile.rows,
        columns=tile.columns,
        step=tile.step,
        height=tile.height,
        width=tile.width,
        unroll=tile.unroll,
        is_ragged=any(size % tile.step for size in (sizes.length, sizes.chunk)),
        band=tuning.band,
    )
    return _make_plan(request, make_tile_kernel(form), sizes, *together)


def _choose_together(source: Source, sizes: Sizes, *, along: bool, side: int, most: int) -> int:
    """Return the elements of a matrix that a load takes."""
    fits = has_whole_loads(sizes, along=along, side=side, together=source.together)
    return source.together if fits and source.together <= most else 1


@record
class _Sides:
    """A product of a matrix and a vector.

    Attributes
    ----------
    has_matrix_b
        Whether the matrix is the second operand.
    along
        Whether its rows in memory have the length that is summed.
    together
        Elements of the matrix that a load takes.
    both
        Elements of each operand that a load takes.
    """

    has_matrix_b: bool
    along: bool
    together: int
    both: tuple[int, int]


def _find_sides(request: Request) -> _Sides:
    sizes = request.sizes
    has_matrix_b = sizes.rows == 1 and sizes.columns > 1
    matrix, vector = (request.b, request.a) if has_matrix_b else (request.a, request.b)
    along = request.transpose_b if has_matrix_b else not request.transpose_a
    side = sizes.columns if has_matrix_b else sizes.rows
    together = matrix.together
    if not has_whole_loads(sizes, along=along, side=side, together=together) or (
        along and vector.together != together
    ):
        together = 1
    of_vector = together if along else 1
    both = (of_vector, together) if has_matrix_b else (together, of_vector)
    return _Sides(has_matrix_b, along, together, both)


def _plan_vector(request: Request) -> Plan:
    """Return the plan of a product with a vector on GPUs."""
    sides = _find_sides(request)
    choose = choose_lanes_along if sides.along else choose_lanes_across
    lanes, sizes = choose(request.sizes, sides.together)
    factors = _make_factors(request, sizes, *sides.both)
    form = vectors.VectorForm(factors, sides.has_matrix_b, sides.along, lanes, tuning.unroll)
    return _make_plan(request, vectors.make_vector_kernel(form), sizes, *sides.both)


def _plan_lines(request: Request) -> Plan:
    """Return the plan of a product with a vector on CPUs."""
    sides = _find_sides(request)
    lanes = choose_cpu_lanes(request.device)
    count, sizes = choose_lines(request.sizes, lanes, sides.together, along=sides.along)
    factors = _make_factors(request, sizes, *sides.both)
    form = vectors.LineForm(factors, sides.has_matrix_b, sides.along, lanes, count)
    return _make_plan(request, vectors.make_line_kernel(form), sizes, *sides.both)


def _find_product(request: Request) -> MatrixProduct | None:
    """Return the product of cooperative matrices that the device has for this product, or None."""
    kind, sizes = request.a.out_type, request.sizes
    fits = kind in _HALVES and request.b.out_type is kind and request.kind is float32
    if not fits or min(sizes.rows, sizes.columns, sizes.length) < tuning.least_cooperative:
        return None
    return find_subgroup_product(request.device, kind)


def _plan_cooperative(request: Request, device: MatrixProduct) -> Plan:
    kind = request.a.out_type
    tile, sizes = choose_cooperative_tile(request.sizes)
    words = plain_source(uvec4)
    swapped = request.transpose_a, request.transpose_b
    factors = Factors(words, words, *swapped, request.kind, request.sink, sizes.splits > 1)
    stored = factors.sink.mapping is None and factors.sink.out_type in (float16, float32)
    form = CooperativeForm(
        factors=factors,
        kind=kind,
        rows=tile.rows,
        columns=tile.columns,
        step=tile.step,
        height=tile.height,
        width=tile.width,
        m=device.m,
        n=device.n,
        k=device.k,
        subgroup=request.device.subgroup_size,
        is_ragged=any(size % tile.step for size in (sizes.length, sizes.chunk)),
        exact_rows=sizes.rows % tile.rows == 0,
        exact_columns=sizes.columns % tile.columns == 0,
        plain=stored or factors.partial,
        band=tuning.band_cooperative,
        apart=tuning.apart,
    )
    plan = _make_plan(request, make_cooperative_kernel(form), sizes, 1, 1)
    a_width = sizes.rows if request.transpose_a else sizes.length
    b_width = sizes.length if request.transpose_b else sizes.columns
    numbers = (*plan.numbers, -(-a_width // WORD), -(-b_width // WORD))
    return replace(plan, words=kind, numbers=numbers)
