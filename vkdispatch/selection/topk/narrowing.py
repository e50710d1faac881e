"""The launches that narrow long rows down to candidates for their first k elements; see `sampling`."""

import math
from typing import Any

import numpy as np

from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.context import Context
from vkdispatch.base.dtype import component_type, is_complex, is_float_dtype, is_signed_dtype, to_numpy_dtype
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.kernels import clear_buffer
from vkdispatch.families.tuning import device_facts
from vkdispatch.scans.sums import exclusive_sum
from vkdispatch.selection.topk.cpu_runs import (
    RUN,
    make_collect_runs_exactly_kernel,
    make_collect_runs_kernel,
    make_count_runs_exactly_kernel,
    make_count_runs_kernel,
)
from vkdispatch.selection.topk.form import BINS, NarrowForm, choose_together
from vkdispatch.selection.topk.radix_select import (
    make_begin_kernel,
    make_choose_kernel,
    make_collect_exactly_kernel,
    make_count_kernel,
    make_exact_kernel,
)
from vkdispatch.selection.topk.sampling import (
    make_bound_kernel,
    make_collect_kernel,
    make_flag_kernel,
    make_pad_kernel,
    make_sample_kernel,
)
from vkdispatch.selection.topk.whole_rows import can_take_rows, take_first_of_rows
from vkdispatch.selection.tuning import choose_group, tuning
from vkdispatch.sorting.keys import Order
from vkdispatch.sorting.launching import Rows, sort_rows
from vkdispatch.sorting.planning import MOST_NARROW

# Rounds of a loop that llvmpipe does not leave early.
_MOST_ROUNDS = 1 << 15


@record
class Plan:
    """How rows are narrowed down.

    Attributes
    ----------
    samples
        Elements of the sample of each row.
    rank
        The number of the sample, in their order, that is the bound.
    room
        The most candidates of a row.
    """

    samples: int
    rank: int
    room: int


def plan_narrowing(length: int, k: int) -> Plan | None:
    """Return how rows of a length are narrowed down to their first k elements; None to sort them whole.

    If m samples are expected among the first k elements, more than m + 6 sqrt(m) + 8 are found in one of
    billions of cases, unless the order of the array is related to that of the sample. The room is chosen in
    the same way.
    """
    if length < tuning.sample_length or length > MOST_NARROW:
        return None
    samples = min(tuning.samples if length < tuning.many else tuning.many_samples, length // 4)
    among = k * samples / length
    rank = math.ceil(among + 6 * math.sqrt(among) + 8)
    room = math.ceil(length / samples * (rank + 6 * math.sqrt(rank) + 6))
    if room > length // 4 or rank >= samples:
        return None
    return Plan(samples, rank, max(room, k))


def find_candidates(
    keys: Buffer[Any], order: Order, rows: Rows, k: int, plan: Plan, graph: CommandGraph | None
) -> tuple[Buffer[Any], Buffer[Any]]:
    """Return `plan.room` candidates for the first k elements of each row, and their positions.

    GPUs flag the candidates of tiles. CPU drivers, where workgroups that return at once are expensive, count
    those of runs.
    """
    context = keys.context
    together = choose_together(order, rows.count, rows.length)
    form = NarrowForm(order, choose_group(tuning.sample_group), together, tuning.sample_loads)
    has_runs = device_facts(context).is_cpu
    parts = -(-rows.length // (RUN if has_runs else form.tile))
    shape = (rows.count, parts, rows.length)
    limits = (k, plan.room)

    def words(count: int) -> Buffer[Any]:
        return function_buffer(count, dtype.uint32, context=context)

    bounds = _find_bounds(keys, order, rows, plan, graph)
    bits = () if has_runs else (words(rows.count * parts * form.group),)
    sums = words(rows.count * parts)
    if has_runs:
        make_count_runs_kernel(form)(keys, sums, bounds, *shape, graph=graph)
    else:
        make_flag_kernel(form)(keys, keys, *bits, sums, bounds, *shape, graph=graph)
    starts = exclusive_sum(sums, graph=graph)
    candidates: Buffer[Any] = function_buffer(rows.count * plan.room, order.raw, context=context)
    positions = words(rows.count * plan.room)
    make_pad_kernel(form, _last_words(order))(candidates, positions, starts, *limits, parts, graph=graph)
    found = (candidates, positions)
    if has_runs:
        make_collect_runs_kernel(form)(keys, starts, *found, bounds, *limits, *shape, graph=graph)
    else:
        make_collect_kernel(form)(keys, *bits, starts, *found, *limits, *shape, graph=graph)
    # the following launches do nothing in rows whose sample was good, so on GPUs they have few workgroups
    states = _select_code(keys, form, starts, limits, shape, context, graph)
    if has_runs:
        sums = words(2 * rows.count * parts)
        make_count_runs_exactly_kernel(form)(keys, sums, states, starts, *limits, *shape, graph=graph)
        own = exclusive_sum(sums, graph=graph)
        collect = make_collect_runs_exactly_kernel(form)
        collect(keys, own, *found, states, starts, *limits, *shape, graph=graph)
        return found
    exact = NarrowForm(order, choose_group(tuning.sample_exact_group), together, tuning.sample_loads)
    tiles = -(-rows.length // exact.tile)
    shape = (rows.count, tiles, rows.length)
    flags, sums = words(2 * rows.count * tiles * exact.group), words(2 * rows.count * tiles)
    make_exact_kernel(exact)(keys, keys, flags, sums, states, starts, parts, *limits, *shape, graph=graph)
    own = exclusive_sum(sums, graph=graph)
    collect = make_collect_exactly_kernel(exact)
    collect(keys, flags, own, *found, states, starts, parts, *limits, *shape, graph=graph)
    return found


def _find_bounds(
    keys: Buffer[Any], order: Order, rows: Rows, plan: Plan, graph: CommandGraph | None
) -> Buffer[Any]:
    """Return the bound of each row: one of its samples."""
    context = keys.context
    samples: Buffer[Any] = function_buffer(rows.count * plan.samples, order.raw, context=context)
    make_sample_kernel(order)(
        keys, samples, plan.samples, rows.length, rows.length // plan.samples, graph=graph
    )
    sampled = Rows(rows.count, plan.samples)
    if can_take_rows(order, plan.rank):
        positions, count = take_first_of_rows(samples, order, sampled, plan.rank, graph), plan.rank
    else:
        positions, count = function_buffer(samples.size, dtype.uint32, context=context), plan.samples
        sort_rows(samples, order, sampled, positions_to=positions, graph=graph)
    bounds: Buffer[Any] = function_buffer(rows.count, order.raw, context=context)
    make_bound_kernel(order)(samples, positions, bounds, plan.samples, count, plan.rank - 1, graph=graph)
    return bounds


def _select_code(
    keys: Buffer[Any],
    form: NarrowForm,
    starts: Buffer[Any],
    limits: tuple[int, int],
    shape: tuple[int, int, int],
    context: Context,
    graph: CommandGraph | None,
) -> Buffer[Any]:
    """Return the code of the k-th element of each row, and how many candidates have that code."""
    rows, _, length = shape
    states: Buffer[Any] = function_buffer(rows * (form.parts + 1), dtype.uint32, context=context)
    make_begin_kernel(form.parts)(states, limits[0], graph=graph)
    counts: Buffer[Any] = function_buffer(rows * BINS, dtype.uint32, context=context)
    clear_buffer(counts, graph)
    most = tuning.digit_groups
    if device_facts(context).is_cpu:
        most = max(tuning.digit_groups_cpu, rows * -(-length // (_MOST_ROUNDS * form.group)))
    groups = max(1, min(most // rows, -(-length // (8 * form.group))))
    for digit in form.digits:
        make_count_kernel(form, digit)(keys, counts, states, starts, *limits, groups, *shape, graph=graph)
        make_choose_kernel(form, digit)(counts, states, rows, graph=graph)
    return states


def _last_words(order: Order) -> tuple[int, ...]:
    """Return an element after all others, as words of 32 bits."""
    kind = component_type(order.kind)
    if kind is dtype.bool_:
        return (int(not order.descending),)
    if kind is dtype.bfloat16:
        return (0xFF80 if order.descending else 0x7FC0,)
    numbers = np.dtype(to_numpy_dtype(kind))
    if is_float_dtype(kind):
        value: Any = -np.inf if order.descending else np.nan
    elif not is_signed_dtype(kind) and order.descending:
        value = 0
    else:
        value = np.iinfo(numbers).min if order.descending else np.iinfo(numbers).max
    data = np.array([value] * (2 if is_complex(order.kind) else 1), numbers).tobytes()
    padded = data + b"\0" * (-len(data) % 4)
    return tuple(int(word) for word in np.frombuffer(padded, np.uint32))
