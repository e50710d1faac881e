"""The launches of a product, planned once for equal operands, sizes and devices."""

from vkdispatch.base.devices import MatrixProduct
from vkdispatch.base.dtype import DType, bfloat16, bool_, float16, float32, uvec4
from vkdispatch.base.record import record, replace
from vkdispatch.families.operands import Sink, plain_source
from vkdispatch.families.sources import Source
from vkdispatch.families.tuning import DeviceFacts, PlanCache
from vkdispatch.matrices import planning
from vkdispatch.matrices.cooperative import WORD, CooperativeForm, make_cooperative_kernel
from vkdispatch.matrices.factors import Factors, PartialsForm, Sizes, make_partials_kernel
from vkdispatch.matrices.panels import PanelForm, count_panel_words, make_product_kernel
from vkdispatch.matrices.tiles import TileForm, make_tile_kernel
from vkdispatch.matrices.vectors import (
    LineForm,
    VectorForm,
    make_line_kernel,
    make_small_kernel,
    make_vector_kernel,
)
from vkdispatch.shader.shader_function import ShaderFunction

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
    return _plans.find(planning.tuning, key, lambda: _plan_product(request))


def _plan_product(request: Request) -> Plan:
    sizes = request.sizes
    if sizes.length == 0:
        # sums of no parts are zeros
        return Plan(request, None, splits=0, parts=_make_parts_kernel(request, sizes))
    if planning.is_small(sizes):
        return Plan(request, make_small_kernel(_make_factors(request, sizes, 1, 1)), sizes.numbers)
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
    return make_partials_kernel(PartialsForm(factors, planning.choose_lanes_of_parts(sizes)))


def _make_factors(request: Request, sizes: Sizes, *together: int) -> Factors:
    a, b = (
        source if count > 1 else source.elementwise()
        for source, count in zip((request.a, request.b), together, strict=True)
    )
    swapped = request.transpose_a, request.transpose_b
    return Factors(a, b, *swapped, request.kind, request.sink, sizes.splits > 1)


def choose_panel_form(kind: DType, sink: Sink, sizes: Sizes, device: DeviceFacts) -> PanelForm:
    """Return the form of a product of a type on a device."""
    large = sizes.size * sizes.length >= planning.tuning.panel_large
    height = planning.tuning.panel_height_large if large else planning.tuning.panel_height
    return PanelForm(
        kind, sink.value_type is bool_, planning.choose_cpu_lanes(device), height, planning.tuning.panel_width
    )


def fits_panels(form: PanelForm, sizes: Sizes) -> bool:
    """Whether the operands are small enough to be copied."""
    most = planning.tuning.panel_words
    return max(count_panel_words(form, sizes, of_b=False), count_panel_words(form, sizes, of_b=True)) <= most


def _plan_panels(request: Request) -> Plan:
    """Return the plan on CPUs, which copies operands to panels if they fit."""
    sizes, sink = request.sizes, request.sink
    form = choose_panel_form(request.kind, sink, sizes, request.device)
    if not fits_panels(form, sizes):
        return _plan_tiles(request, *planning.choose_cpu_tile(sizes))
    sizes = planning.split_chunks(sizes, form.step)
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
    return _plan_tiles(request, *planning.choose_tile(request.sizes, request.kind.item_size))


def _plan_tiles(request: Request, tile: planning.Tile, sizes: Sizes) -> Plan:
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
        band=planning.tuning.band,
    )
    return _make_plan(request, make_tile_kernel(form), sizes, *together)


def _choose_together(source: Source, sizes: Sizes, *, along: bool, side: int, most: int) -> int:
    """Return the elements of a matrix that a load takes."""
    fits = planning.has_whole_loads(sizes, along=along, side=side, together=source.together)
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
    if not planning.has_whole_loads(sizes, along=along, side=side, together=together) or (
        along and vector.together != together
    ):
        together = 1
    of_vector = together if along else 1
    both = (of_vector, together) if has_matrix_b else (together, of_vector)
    return _Sides(has_matrix_b, along, together, both)


def _plan_vector(request: Request) -> Plan:
    """Return the plan of a product with a vector on GPUs."""
    sides = _find_sides(request)
    choose = planning.choose_lanes_along if sides.along else planning.choose_lanes_across
    lanes, sizes = choose(request.sizes, sides.together)
    factors = _make_factors(request, sizes, *sides.both)
    form = VectorForm(factors, sides.has_matrix_b, sides.along, lanes, planning.tuning.unroll)
    return _make_plan(request, make_vector_kernel(form), sizes, *sides.both)


def _plan_lines(request: Request) -> Plan:
    """Return the plan of a product with a vector on CPUs."""
    sides = _find_sides(request)
    lanes = planning.choose_cpu_lanes(request.device)
    count, sizes = planning.choose_lines(request.sizes, lanes, sides.together, along=sides.along)
    factors = _make_factors(request, sizes, *sides.both)
    form = LineForm(factors, sides.has_matrix_b, sides.along, lanes, count)
    return _make_plan(request, make_line_kernel(form), sizes, *sides.both)


def _find_product(request: Request) -> MatrixProduct | None:
    """Return the product of cooperative matrices that the device has for this product, or None."""
    kind, sizes = request.a.out_type, request.sizes
    fits = kind in _HALVES and request.b.out_type is kind and request.kind is float32
    if not fits or min(sizes.rows, sizes.columns, sizes.length) < planning.tuning.least_cooperative:
        return None
    return planning.find_subgroup_product(request.device, kind)


def _plan_cooperative(request: Request, device: MatrixProduct) -> Plan:
    kind = request.a.out_type
    tile, sizes = planning.choose_cooperative_tile(request.sizes)
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
        band=planning.tuning.band_cooperative,
        apart=planning.tuning.apart,
    )
    plan = _make_plan(request, make_cooperative_kernel(form), sizes, 1, 1)
    a_width = sizes.rows if request.transpose_a else sizes.length
    b_width = sizes.length if request.transpose_b else sizes.columns
    numbers = (*plan.numbers, -(-a_width // WORD), -(-b_width // WORD))
    return replace(plan, words=kind, numbers=numbers)
