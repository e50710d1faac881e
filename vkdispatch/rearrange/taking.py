"""`vd.take` and `vd.take_along_axis`: elements at places that an array of indices tells.

    x         outer x length x inner
    indices   count                        take: one for every row and every element after the axis
    result    outer x count x inner        result[o, j, n] = x[o, indices[j], n]

Each invocation moves one word of the result, or a few at a time. The elements after the axis lie together, so
words of up to 16 bytes are moved where there are several. Rows that indices jump about in are held in
workgroup memory (see `staging`).
"""

import functools
import math
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.aliasing import check_overlap
from vkdispatch.arrays.axes import parse_axis, split_shape
from vkdispatch.arrays.calls import array_function
from vkdispatch.arrays.deferred_errors import raise_if_checked
from vkdispatch.arrays.kernels import buffer, constant, trace_kernel
from vkdispatch.arrays.maps.operand import Operand, parse_operand
from vkdispatch.arrays.maps.output import Output, parse_output
from vkdispatch.arrays.maps.source import Source
from vkdispatch.arrays.memoize import memoize
from vkdispatch.arrays.results import prepare_result
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.rearrange.checking import checked_rank
from vkdispatch.rearrange.indices import (
    check_indices,
    checked_mode,
    index_notes,
    is_long,
    note_bad_index,
    note_bad_places,
    resolved,
)
from vkdispatch.rearrange.staging import staged_form, staged_kernel
from vkdispatch.rearrange.words import Moving, Numbers, largest_word, moves_words, numbers_of, word_type
from vkdispatch.shader.map import MappedArray
from vkdispatch.shader.shader_function import ShaderFunction

GROUP = 256
_AHEAD = 2
# As many words keep a device busy with one of them for each invocation.
_FEW = 1 << 20
Array = Buffer[Any] | MappedArray


@array_function
def take(
    x: Array,
    indices: Array,
    axis: int | None = None,
    out: Buffer[Any] | None = None,
    mode: str | None = None,
    *,
    output_map: Any = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return the elements of an array at indices, as `numpy.take`.

    Parameters
    ----------
    x
        A buffer, or a map called with its arguments.
    indices
        A buffer, or a map called with its arguments, of integers. Negative ones count from the end.
    axis
        The axis that they are places on; None: places in the flat array. The axes of `indices` take its place
        in the result, which may have three.
    out
        The buffer for the result; None makes one. It must not be `x` or `indices`.
    mode
        What is done about indices beyond the ends. "raise": an IndexError that names the first, when the
        program next waits or reads; until then they wrap; it cannot be recorded. "wrap": they go round and
        round.
        "clip": the first or the last element is meant, also by negative ones. None: "raise", or "wrap" where
        the call is recorded: indices within bounds mean the same in both.
    output_map
        A map that each value goes through on its way; its index is that in the result.
    graph
        Where to record; None takes the thread's `vd.global_graph()`.

    Raises
    ------
    TypeError
        An argument is not what it should be.
    ValueError
        There is no such axis or mode, the result would have more than three axes, `out` does not fit, or
        "raise" is to be recorded.
    IndexError
        There are indices and nothing to be found by them. With "raise", from a later wait or read: one is out
        of bounds.
    """
    array = parse_operand(x, "x")
    places = parse_operand(indices, "indices")
    if axis is None:
        outer, length, inner = 1, array.size, 1
        shape = places.shape
    else:
        chosen = parse_axis(axis, len(array.shape))
        outer, length, inner = split_shape(array.shape, chosen)
        shape = (*array.shape[:chosen], *places.shape, *array.shape[chosen + 1 :])
        checked_rank(len(shape), "indices")
    what = "the array" if axis is None else f"axis {axis}"
    lengths = (outer, length, places.size, inner)
    return _taken(array, places, shape, lengths, what, False, (out, mode, output_map, graph))


@array_function
def take_along_axis(
    x: Array,
    indices: Array,
    axis: int | None = -1,
    *,
    out: Buffer[Any] | None = None,
    mode: str | None = None,
    output_map: Any = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return one element of each line along an axis for each of its indices, as `numpy.take_along_axis`.

    What `vd.argsort(x, axis)` returns puts `x` in order so.

    Parameters
    ----------
    x
        A buffer, or a map called with its arguments.
    indices
        A buffer, or a map called with its arguments, of integers, of the shape of `x` but for `axis`.
    axis
        The axis; None: both are taken as flat.
    out, mode, output_map, graph
        As of `take`.

    Raises
    ------
    TypeError, ValueError, IndexError
        As of `take`; or the shapes differ elsewhere than along `axis`.
    """
    array = parse_operand(x, "x")
    places = parse_operand(indices, "indices")
    if axis is None:
        if len(places.shape) != 1:
            raise ArgumentValueError(
                f"indices: with axis=None expected one axis, got the shape {places.shape}"
            )
        outer, length, count, inner = 1, array.size, places.size, 1
    else:
        chosen = parse_axis(axis, len(array.shape))
        wanted = (*array.shape[:chosen], *array.shape[chosen + 1 :])
        if len(places.shape) != len(array.shape) or wanted != (
            *places.shape[:chosen],
            *places.shape[chosen + 1 :],
        ):
            raise ArgumentValueError(
                f"indices: expected the shape of x, {array.shape}, but for axis {chosen}; got {places.shape}"
            )
        outer, length, inner = split_shape(array.shape, chosen)
        count = places.shape[chosen]
    what = "the array" if axis is None else f"axis {axis}"
    lengths = (outer, length, count, inner)
    return _taken(array, places, places.shape, lengths, what, True, (out, mode, output_map, graph))


def _taken(
    array: Operand,
    places: Operand,
    shape: tuple[int, ...],
    lengths: tuple[int, int, int, int],
    what: str,
    along: bool,
    options: tuple[Any, Any, Any, Any],
) -> Buffer[Any]:
    out, mode, output_map, graph = options
    mode = checked_mode(mode, graph)
    check_indices(places, lengths[1] if math.prod(shape) else 1)
    target = parse_output(output_map, array.var_type, shape)
    buffer = prepare_result(out, shape, target.out_type, array.context)
    check_overlap([("out", out)], target, elsewhere=[array, places])
    noted = ("take_along_axis" if along else "take", places, lengths[1], what) if mode == "raise" else None
    if buffer.size:
        how = "clip" if mode == "clip" else "wrap"
        _launch(array, places, lengths, how, noted, along, target, buffer, graph)
    elif noted is not None:
        note_bad_index(*noted)
    return buffer


def _launch(
    array: Operand,
    places: Operand,
    lengths: tuple[int, int, int, int],
    mode: str,
    noted: tuple[str, Operand, int, str] | None,
    along: bool,
    target: Output,
    buffer: Buffer[Any],
    graph: CommandGraph | None,
) -> None:
    """Take elements; `noted` is what `note_bad_index` is told, None where it is not to look."""
    outer, length, count, inner = lengths
    # whether an index is looked at once, so that who takes may check
    once = along or outer == inner == 1
    moving, run = Moving(None, array.source, target.sink), 1
    if moves_words(array, target):
        item = array.var_type.item_size
        size = largest_word(item if along else inner * item)
        moving = Moving(word_type(size))
        run = item // size if along else 1
        inner = inner if along else inner * item // size
    long = is_long(places, length)
    arguments = (*array.arguments, *target.arguments, *places.arguments)
    staged = None
    if inner == run == 1:
        staged = staged_form(moving, places.source, mode, long, along, (outer, length, count))
    if noted is not None and (staged is not None or not once):
        note_bad_index(*noted)
        noted = None
    if staged is not None:
        form_, values = staged
        staged_kernel(form_)(buffer, *arguments, *values, graph=graph)
        return
    total = outer * count * inner * run
    numbers, values = numbers_of({"length": length, "count": count, "inner": inner, "total": total})
    ahead = _AHEAD if moving.word is not None and total > _FEW else 1
    checks = noted is not None
    form = _Form(moving, places.source, mode, along, run, outer > 1, inner > 1, long, ahead, checks, numbers)
    notes = () if noted is None else index_notes(*noted)
    _kernel(form)(buffer, *arguments, *values, *notes, graph=graph)
    if checks:
        raise_if_checked(places.context)


@record
class _Form:
    """What a kernel is specialised for.

    `along`: whether every element of the result has an index of its own; of `run` words each then. `rows` and
    `inner`: whether there is more than one element before, and after the axis. `ahead`: how many words an
    invocation has on their way at a time. `checks`: whether it notes indices that are out of bounds.
    """

    moving: Moving
    indices: Source
    mode: str
    along: bool
    run: int
    rows: bool
    inner: bool
    long: bool
    ahead: int
    checks: bool
    numbers: Numbers


@memoize
def _kernel(form: _Form) -> ShaderFunction:
    moving, own = form.moving, len(form.moving.arguments)
    first = own + len(form.indices.names)

    def body(*given: Any) -> None:
        variables = given[:-2] if form.checks else given
        number = form.numbers.read(variables[first:])
        length = functools.partial(form.numbers.value, variables[first:], "length")
        begin = vc.workgroup_id().x * (GROUP * form.ahead) + vc.local_invocation_index()
        own_words = [(begin + step * GROUP).to_register() for step in range(form.ahead)]
        asked: list[tuple[Any, Any, Any, Any]] = []
        looked_at = []
        for word in own_words:
            index = vc.min(word, number["total"] - 1).to_register()
            element: Any = (index // form.run).to_register() if form.run > 1 else index
            rest: Any = element
            if form.inner:
                rest = (element // number["inner"]).to_register()
            after = element - rest * number["inner"] if form.inner else None
            row = (rest // number["count"]).to_register() if form.rows else None
            position = rest - row * number["count"] if row is not None else rest
            at = element if form.along else position.to_register()
            found = form.indices.value(variables[own:first], at).to_register()
            asked.append((index, row, after, found))
            looked_at.append((at, found))
        values = []
        for index, row, after, found in asked:
            place: Any = resolved(found, length, mode=form.mode, long=form.long, big=form.numbers.big)
            if row is not None:
                place = row * number["length"] + place
            if after is not None:
                place = place * number["inner"] + after
            if form.run > 1:
                place = place * form.run + index % form.run
            values.append(moving.load(variables[:own], place.to_register()))
        for word, value in zip(own_words, values, strict=True):
            with vc.if_block(word < number["total"]):
                moving.store(variables[:own], word, value)
        if form.checks:
            note_bad_places(given[-2], given[-1], looked_at, length, long=form.long)

    what = moving.word.item_size if moving.word is not None else 0
    return trace_kernel(
        f"take_{what or 'mapped'}",
        body,
        [
            *moving.arguments,
            *zip((f"indices_{name}" for name in form.indices.names), form.indices.annotations, strict=True),
            *form.numbers.arguments,
            *([("journal", buffer[dtype.uint32]), ("ticket", constant[dtype.uint32])] if form.checks else []),
        ],
        GROUP,
        workgroups=f"-(-{form.numbers.text('total')} // {GROUP * form.ahead})",
    )
