"""Which launches make a product: found once for equal operands, sizes and devices."""

from typing import Any

from vkdispatch.arrays.facts import DeviceFacts
from vkdispatch.arrays.maps.operand import plain_source
from vkdispatch.arrays.maps.output import Sink
from vkdispatch.arrays.maps.source import Source
from vkdispatch.base.devices import MatrixProduct
from vkdispatch.base.dtype import DType, bfloat16, float16, float32, uvec4
from vkdispatch.base.record import record, replace
from vkdispatch.matrices import planning
from vkdispatch.matrices.cooperative import WORD, CooperativeForm, cooperative_kernel
from vkdispatch.matrices.factors import Factors, Sizes
from vkdispatch.matrices.lines import LineForm, line_kernel
from vkdispatch.matrices.panels import PanelForm, fits, panel_form, product_kernel
from vkdispatch.matrices.partials import PartialsForm, partials_kernel
from vkdispatch.matrices.planning import (
    cooperative_tile_for,
    is_small,
    lanes_across,
    lanes_along,
    lanes_of_parts,
    lines_for,
    processor_lanes,
    subgroup_product,
    tile_for,
    whole_loads,
    with_parts,
)
from vkdispatch.matrices.small import small_kernel
from vkdispatch.matrices.tiles import TileForm, tile_kernel
from vkdispatch.matrices.vectors import VectorForm, vector_kernel
from vkdispatch.shader.shader_function import ShaderFunction

_HALVES = (float16, bfloat16)
_MOST_PLANS = 1024


@record
class Asked:
    """What a plan depends on.

    Attributes
    ----------
    a, b
        Where the elements come from.
    sink
        Where the result goes.
    kind
        The type of sums.
    """

    a: Source
    b: Source
    transpose_a: bool
    transpose_b: bool
    sizes: Sizes
    kind: DType
    sink: Sink
    device: DeviceFacts
    tuning: planning.Tuning


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
        What the operands are given as words of: halves of this type; None for operands as they are.
    panels
        The form of the panels that the operands are given as; None for operands as they are.
    splits
        Parts of the sums, each in a scratch buffer.
    parts
        What adds these up, unless the kernel stores to the result.
    """

    asked: Asked
    kernel: ShaderFunction | None
    numbers: tuple[int, ...] = ()
    views: tuple[bool, bool] = (False, False)
    words: DType | None = None
    panels: PanelForm | None = None
    splits: int = 1
    parts: ShaderFunction | None = None


_plans: dict[tuple[Any, ...], Plan] = {}


def plan_for(asked: Asked) -> Plan:
    """Return the plan of a product that has elements."""
    # Sources and sinks are made once for equal ones, and hashing them takes longer than all else here. The
    # plan keeps what the identities are of.
    key = (
        *(id(asked.a), id(asked.b), asked.transpose_a, asked.transpose_b, asked.sizes.key),
        *(asked.kind, id(asked.sink), id(asked.device), id(asked.tuning)),
    )
    found = _plans.get(key)
    if found is None:
        found = _made(asked)
        while len(_plans) >= _MOST_PLANS:
            _plans.pop(next(iter(_plans)), None)
        _plans[key] = found
    return found


def _made(asked: Asked) -> Plan:
    sizes = asked.sizes
    if sizes.length == 0:
        # the sum of nothing: of no parts
        return Plan(asked, None, splits=0, parts=_parts(asked, sizes))
    if is_small(sizes):
        return Plan(asked, small_kernel(_factors(asked, sizes, 1, 1)), sizes.numbers)
    if min(sizes.rows, sizes.columns) == 1:
        return _vector(asked)
    if asked.device.is_cpu:
        form = panel_form(asked.kind, asked.sink, sizes, asked.device)
        if fits(form, sizes):
            return _panels(asked, form)
        return _tiles(asked)
    device = _cooperative_product(asked)
    return _tiles(asked) if device is None else _cooperative(asked, device)


def _planned(asked: Asked, kernel: ShaderFunction, sizes: Sizes, *together: int) -> Plan:
    views = together[0] > 1, together[1] > 1
    parts = None if sizes.splits == 1 else _parts(asked, sizes)
    return Plan(asked, kernel, sizes.numbers, views, splits=sizes.splits, parts=parts)


def _parts(asked: Asked, sizes: Sizes) -> ShaderFunction:
    factors = replace(_factors(asked, sizes, 1, 1), partial=False)
    return partials_kernel(PartialsForm(factors, lanes_of_parts(sizes)))


def _factors(asked: Asked, sizes: Sizes, *together: int) -> Factors:
    a, b = (
        source if count > 1 else source.elementwise()
        for source, count in zip((asked.a, asked.b), together, strict=True)
    )
    swapped = asked.transpose_a, asked.transpose_b
    return Factors(a, b, *swapped, asked.kind, asked.sink, sizes.splits > 1)


def _panels(asked: Asked, form: PanelForm) -> Plan:
    sizes = with_parts(asked.sizes, -(-asked.sizes.length // planning.tuning.chunk_cpu), form.step)
    sink = asked.sink
    plain = sink.mapping is None and sink.out_type is form.kind
    parts = None if plain and sizes.splits == 1 else _parts(asked, sizes)
    return Plan(asked, product_kernel(form), sizes.numbers, panels=form, splits=sizes.splits, parts=parts)


def _tiles(asked: Asked) -> Plan:
    tile, sizes = tile_for(asked.sizes, asked.kind.item_size, cpu=asked.device.is_cpu)
    together = [
        _together(source, sizes, along=along, side=side, most=tile.step if along else most)
        for source, along, side, most in (
            (asked.a, not asked.transpose_a, sizes.rows, tile.rows),
            (asked.b, asked.transpose_b, sizes.columns, tile.columns),
        )
    ]
    factors = _factors(asked, sizes, *together)
    ragged = any(size % tile.step for size in (sizes.length, sizes.chunk))
    sides = tile.rows, tile.columns, tile.step, tile.height, tile.width
    kernel = tile_kernel(TileForm(factors, *sides, tile.unroll, ragged, planning.tuning.band))
    return _planned(asked, kernel, sizes, *together)


def _together(source: Source, sizes: Sizes, *, along: bool, side: int, most: int) -> int:
    """Return how many elements of a matrix a load takes."""
    fits = whole_loads(sizes, along=along, side=side, together=source.together)
    return source.together if fits and source.together <= most else 1


def _vector(asked: Asked) -> Plan:
    sizes = asked.sizes
    turned = sizes.rows == 1 and sizes.columns > 1
    matrix, vector = (asked.b, asked.a) if turned else (asked.a, asked.b)
    along = asked.transpose_b if turned else not asked.transpose_a
    side = sizes.columns if turned else sizes.rows
    together = matrix.together
    if not whole_loads(sizes, along=along, side=side, together=together) or (
        along and vector.together != together
    ):
        together = 1
    of_vector = together if along else 1
    both = (of_vector, together) if turned else (together, of_vector)
    if asked.device.is_cpu:
        lanes = processor_lanes(asked.device)
        count, sizes = lines_for(sizes, lanes, together, along=along)
        line = LineForm(_factors(asked, sizes, *both), turned, along, lanes, count)
        return _planned(asked, line_kernel(line), sizes, *both)
    lanes, sizes = (lanes_along if along else lanes_across)(sizes, together)
    form = VectorForm(_factors(asked, sizes, *both), turned, along, lanes, planning.tuning.unroll)
    return _planned(asked, vector_kernel(form), sizes, *both)


def _cooperative_product(asked: Asked) -> MatrixProduct | None:
    """Return the device's product of cooperative matrices for this one, if it has one."""
    kind, sizes = asked.a.out_type, asked.sizes
    fits = kind in _HALVES and asked.b.out_type is kind and asked.kind is float32
    if not fits or min(sizes.rows, sizes.columns, sizes.length) < planning.tuning.least_cooperative:
        return None
    return subgroup_product(asked.device, kind)


def _cooperative(asked: Asked, device: MatrixProduct) -> Plan:
    kind = asked.a.out_type
    tile, sizes = cooperative_tile_for(asked.sizes)
    words = plain_source(uvec4)
    swapped = asked.transpose_a, asked.transpose_b
    factors = Factors(words, words, *swapped, asked.kind, asked.sink, sizes.splits > 1)
    stored = factors.sink.mapping is None and factors.sink.out_type in (float16, float32)
    form = CooperativeForm(
        *(factors, kind, tile.rows, tile.columns, tile.step, tile.height, tile.width),
        *(device.m, device.n, device.k, asked.device.subgroup_size),
        ragged=any(size % tile.step for size in (sizes.length, sizes.chunk)),
        exact_rows=sizes.rows % tile.rows == 0,
        exact_columns=sizes.columns % tile.columns == 0,
        plain=stored or factors.partial,
        band=planning.tuning.band_cooperative,
        apart=planning.tuning.apart,
    )
    plan = _planned(asked, cooperative_kernel(form), sizes, 1, 1)
    a_width = sizes.rows if asked.transpose_a else sizes.length
    b_width = sizes.length if asked.transpose_b else sizes.columns
    numbers = (*plan.numbers, -(-a_width // WORD), -(-b_width // WORD))
    return replace(plan, words=kind, numbers=numbers)
