"""`vd.searchsorted`: where values belong in a sorted array.

    sorted     s0 s1 s2 ...  s(n-1)                 n elements
    tops       every (n / T)-th of them             in workgroup memory, read once for many values; where
                                                    there are few, all of them
    a value    binary search in the tops, log2(T) steps there, then log2(n / T) steps in the array

The steps halve `length`, the same for all values, so that invocations stay together; each invocation searches
for several values at once, so that as many loads are under way. Invariant: the answer lies in
[base, base + length].
"""

from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.arrays.aliasing import check_overlap
from vkdispatch.arrays.calls import array_function, is_recorded
from vkdispatch.arrays.elements import wide_type
from vkdispatch.arrays.facts import device_facts
from vkdispatch.arrays.kernels import traced
from vkdispatch.arrays.mapping import Source
from vkdispatch.arrays.operand import Operand, operand
from vkdispatch.arrays.output import Sink, output
from vkdispatch.arrays.remembering import remembered
from vkdispatch.arrays.results import result
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import DType, from_numpy_dtype, is_integer_dtype, is_scalar
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.rearrange.indices import is_long, note_bad_index, resolved
from vkdispatch.selection.histograms.binning import converted, is_below
from vkdispatch.selection.histograms.histogram import host_type
from vkdispatch.selection.histograms.streaming import group_size
from vkdispatch.shader.shader_function import ShaderFunction

# Places of more elements need 64 bits.
_MOST = 1 << 32


@record(frozen=False)
class Tuning:
    """Numbers that were found by measurement, on GPUs.

    Attributes
    ----------
    group
        Invocations of a workgroup.
    each
        Values that an invocation searches for at once.
    groups
        Workgroups of a launch; each goes over as many values as it takes.
    tops
        Bytes of the sorted array in workgroup memory; 0 for none.
    whole
        Bytes of sorted arrays that are in workgroup memory as a whole.
    whole_group, whole_each
        As `group` and `each`, for these.
    """

    group: int = 256
    each: int = 4
    groups: int = 2112
    tops: int = 16384
    whole: int = 32768
    whole_group: int = 512
    whole_each: int = 8


tuning = Tuning()


@record
class _Form:
    array: Source
    values: Source
    sorter: Source | None
    kind: DType
    right: bool
    sink: Sink
    group: int
    each: int
    tops: int
    whole: int
    long: bool
    big: bool


@array_function
def searchsorted(
    sorted: Any,
    values: Any,
    side: str = "left",
    sorter: Any = None,
    *,
    output_map: Any = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Find where values belong in a sorted array: `np.searchsorted`.

    Parameters
    ----------
    sorted
        A rising array of one axis: a buffer, or a map called with its arguments. NaN comes after all numbers.
    values
        An array of any shape.
    side
        "left": the first place that a value may take; "right": the last one, behind all that equal it.
    sorter
        An array of integers, of the length of `sorted`: the element at place i is `sorted[sorter[i]]`.
        Those that are no index are taken for the nearest; a recorded call does not check them.
    output_map
        A map that is given each place (int64).
    graph
        Where to record; None takes the thread's `vd.global_graph()`.

    Returns
    -------
    A buffer of the shape of `values`, int64, of places from 0 to the length of `sorted`. Types are compared
    as NumPy promotes them.

    Raises
    ------
    TypeError
        An argument is no array of real numbers; `sorter` is none of integers.
    ValueError
        `sorted` has more axes than one, `sorter` another length, or `side` is neither.
    IndexError
        From a later wait or read: an element of `sorter` is not an index of `sorted`.
    """
    array, wanted = _checked(sorted, "sorted"), _checked(values, "values")
    if len(array.shape) != 1:
        raise ArgumentValueError(f"sorted: expected an array of one axis, got the shape {array.shape}")
    if side not in ("left", "right"):
        raise ArgumentValueError(f'side: expected "left" or "right", got {side!r}')
    order = None if sorter is None else _checked_sorter(sorter, array.size)
    sink = output(output_map, dtype.int64, wanted.shape)
    check_overlap((), sink, elsewhere=[array, wanted] if order is None else [array, wanted, order])
    if order is not None and not is_recorded(graph):
        remedy = "give what vd.argsort returns"
        note_bad_index("searchsorted", order, array.size, "an array", "sorter", remedy, negative=False)
    places = result(None, wanted.shape, sink.out_type, wanted.context)
    if wanted.size == 0:
        return places
    length = array.size
    common = np.result_type(host_type(array.var_type), host_type(wanted.var_type))
    # bindings of an array of no elements hold one all the same, which no search looks at
    kind = wide_type(from_numpy_dtype(common))
    whole = _whole(length, wanted.size, kind)
    tops = 0 if whole or length < 4 * _tops(kind) else _tops(kind)
    group = group_size(tuning.whole_group if whole else tuning.group)
    each = tuning.whole_each if whole else tuning.each
    form = _Form(
        array.source.elementwise(),
        wanted.source.elementwise(),
        None if order is None else order.source.elementwise(),
        kind,
        side == "right",
        sink.sink,
        group,
        each,
        tops,
        whole,
        order is not None and is_long(order, length),
        length > _MOST,
    )
    at_once = group * each
    rounds = max(1, wanted.size // (at_once * tuning.groups))
    numbers = (length & 0x7FFFFFFF, length >> 31, rounds, -(-wanted.size // (at_once * rounds)))
    own = () if order is None else order.arguments
    _searching(form)(
        places, *array.arguments, *wanted.arguments, *own, *sink.arguments, *numbers, graph=graph
    )
    return places


def _tops(kind: DType) -> int:
    return tuning.tops // kind.item_size


def _whole(length: int, values: int, kind: DType) -> int:
    """Return how many elements of workgroup memory hold the whole array; 0 where they do not."""
    size = max(64, 1 << (length - 1).bit_length()) if length else 0
    most = min(tuning.whole, device_facts().memory)
    return size if values > 4 * length and size * kind.item_size <= most else 0


def _checked(array: Any, name: str) -> Operand:
    found = operand(array, name)
    if not is_scalar(found.var_type):
        raise ArgumentTypeError(
            f"{name}: expected integers, floats or truth values, got {found.var_type.name}, not ordered"
        )
    return found


def _checked_sorter(sorter: Any, length: int) -> Operand:
    found = operand(sorter, "sorter")
    if not is_integer_dtype(wide_type(found.var_type)) or not is_scalar(found.var_type):
        raise ArgumentTypeError(f"sorter: expected integers, got {found.var_type.name}")
    if found.shape != (length,):
        raise ArgumentValueError(f"sorter: expected an array of the shape ({length},), got {found.shape}")
    return found


@remembered
def _searching(form: _Form) -> ShaderFunction:
    buffer: Any = vc.Buff
    constant: Any = vc.Const
    sources = [form.array, form.values, *([form.sorter] if form.sorter else [])]
    arguments = [("places", buffer[form.sink.out_type])]
    for source in sources:
        arguments += zip(source.names, source.annotations, strict=True)
    arguments += zip(form.sink.names, form.sink.annotations, strict=True)
    numbers = ("search_low", "search_high", "search_rounds", "search_groups")
    arguments += [(name, constant[dtype.uint32]) for name in numbers]

    def trace(*variables: Any) -> None:
        _search(form, sources, variables)

    return traced(
        f"searchsorted_{'right' if form.right else 'left'}", trace, arguments, form.group, numbers[-1]
    )


def _search(form: _Form, sources: list[Source], variables: Any) -> None:
    places, rest = variables[0], list(variables[1:-4])
    low, high, rounds = variables[-4:-1]
    own = []
    for source in sources:
        own.append(rest[: len(source.annotations)])
        del rest[: len(source.annotations)]
    lane = vc.local_invocation_id().x
    length = (low + high * (1 << 31)).to_register("search_length")
    array_length = _length_of(form, own, length)
    size = places.shape.w

    def element(place: Any) -> Any:
        if form.sorter is not None:
            place = resolved(
                form.sorter.value(own[2], place),
                array_length.to_dtype,
                mode="clip",
                long=form.long,
                big=form.big,
            )
        value = form.array.value(own[0], place)
        return _number(value, form.kind)

    def before(found: Any, value: Any) -> Any:
        """Whether the answer lies behind an element."""
        return ~is_below(value, found) if form.right else is_below(found, value)

    stride: Any = None
    memory: Any = None
    look = element
    if form.whole:
        memory = vc.shared_buffer(form.kind, form.whole)
        with vc.for_block(lane, array_length, form.group) as place:
            memory[place] = element(place)
        vc.barrier()

        def look(place: Any) -> Any:
            return memory[place]

    if form.tops:
        stride = (array_length // form.tops).to_register("search_stride")
        memory = vc.shared_buffer(form.kind, form.tops)
        with vc.for_block(lane, form.tops, form.group) as top:
            memory[top] = element(top * stride)
        vc.barrier()
    first = vc.workgroup_id().x * rounds * (form.group * form.each) + lane
    with vc.for_block(0, rounds) as number:
        begin = first + number * (form.group * form.each)
        indices = [begin + i * form.group for i in range(form.each)]
        safe = [vc.select(index.to_dtype(dtype.int32) < size, index, 0) for index in indices]
        wanted = [_number(form.values.value(own[1], index), form.kind).to_register() for index in safe]
        bases = [_zero_position(array_length) for _ in indices]
        left = (array_length + 0).to_register("search_left")
        if form.tops:
            _in_tops(form, memory, wanted, bases, before)
            for base in bases:
                base[:] = base * stride
            # what is not divided evenly comes with the last top
            left[:] = stride + (array_length - stride * form.tops)
        with vc.while_block(left > 1):
            half = (left >> 1).to_register()
            found = [look(base + (half - 1)).to_register() for base in bases]
            for base, each, value in zip(bases, found, wanted, strict=True):
                base[:] = vc.select(before(each, value), base + half, base)
            left[:] = left - half
        with vc.if_block(array_length > 0):
            last = [look(vc.min(base, array_length - 1)).to_register() for base in bases]
            for base, each, value in zip(bases, last, wanted, strict=True):
                inside = vc.all(base < array_length, before(each, value))
                base[:] = vc.select(inside, base + 1, base)
        for index, base in zip(indices, bases, strict=True):
            with vc.if_block(index.to_dtype(dtype.int32) < size):
                form.sink.store(places, rest, index, base.to_dtype(dtype.int64))


def _number(value: Any, kind: DType) -> Any:
    if value.var_type is dtype.bool_:
        value = vc.select(value, 1, 0)
    return converted(value, kind)


def _length_of(form: _Form, own: Any, length: Any) -> Any:
    """Return the sorted array's length, which is given for maps."""
    # sizes of buffers have as many bits as a kernel's form needs
    return own[0][0].shape.w if form.array.plain else length


def _zero_position(length: Any) -> Any:
    return (length * 0).to_register("search_base")


def _in_tops(form: _Form, memory: Any, wanted: Any, bases: Any, before: Any) -> None:
    """Leave in each base the last top that the answer lies behind; 0 if there is none."""
    left = vc.new_uint_register(form.tops)
    with vc.while_block(left > 1):
        half = (left >> 1).to_register()
        for base, value in zip(bases, wanted, strict=True):
            middle = (base + half).to_register()
            base[:] = vc.select(before(memory[middle], value), middle, base)
        left[:] = left - half
