"""`vd.searchsorted`: the places of values in a sorted array.

A binary search finds the place of a value, in the sorted array or, on GPUs, in a copy of a short one in
workgroup memory. The steps halve `length`, which is the same for all values, so invocations do not diverge.
Each invocation searches for several values at once, to have as many loads in flight. Invariant: the result is
in [base, base + length].
"""

from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import DType, from_numpy_dtype, is_integer_dtype, is_scalar
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.calls import array_function, is_recorded
from vkdispatch.families.kernels import buffers, numbers, trace_kernel
from vkdispatch.families.operands import ArrayLike, Operand, ResultMap, Sink, parse_operand, prepare_output
from vkdispatch.families.sources import Source
from vkdispatch.families.stored import store_results
from vkdispatch.families.tuning import device_facts
from vkdispatch.families.values import wide_type
from vkdispatch.rearrange.taking import is_long, note_bad_index, resolve_index
from vkdispatch.selection.counting import is_below
from vkdispatch.selection.histogram import host_type
from vkdispatch.selection.tuning import choose_group, find_planner, tuning
from vkdispatch.shader.shader_function import ShaderFunction

# Places in longer arrays need 64 bits.
_LENGTH_LIMIT = 1 << 32


@record
class _Form:
    """What a kernel is specialised for.

    Attributes
    ----------
    array, values, sorter, sink
        The arguments and the result.
    kind
        dtype in which elements are compared.
    is_right
        Whether a value comes after elements that equal it.
    group, each
        Invocations of a workgroup, and values that each searches for at once.
    whole
        Elements of workgroup memory for the whole array; 0 if it stays in its buffer.
    has_long_sorter
        Whether indices in the sorter are resolved in 64 bits.
    is_big
        Whether places need 64 bits.
    """

    array: Source
    values: Source
    sorter: Source | None
    kind: DType
    is_right: bool
    sink: Sink
    group: int
    each: int
    whole: int
    has_long_sorter: bool
    is_big: bool


@array_function
def searchsorted(
    sorted: ArrayLike,
    values: ArrayLike,
    side: str = "left",
    sorter: ArrayLike | None = None,
    *,
    output_map: ResultMap | None = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Find the indices at which to insert values into a sorted array, like `numpy.searchsorted`.

    Parameters
    ----------
    sorted
        An ascending array of one axis: a buffer, or a map called with its arguments. NaN is larger than all
        numbers.
    values
        An array of any shape.
    side
        "left": the index before elements that equal the value; "right": the index after them.
    sorter
        An array of integers, of the length of `sorted`: element i in sorted order is `sorted[sorter[i]]`.
        Invalid indices are clipped. They raise an error, unless the call is recorded.
    output_map
        A `vd.map` that is applied to each index (int64).
    graph
        The graph to record into; None means the thread's `vd.global_graph()`.

    Returns
    -------
    A buffer of the shape of `values`, int64, with indices from 0 to the length of `sorted`. Elements and
    values are compared in the dtype to which NumPy promotes them.

    Raises
    ------
    TypeError
        An argument is not an array of real numbers, or `sorter` is not an array of integers.
    ValueError
        `sorted` has more than one axis, `sorter` has another length, or `side` is invalid.
    IndexError
        From a later wait or read: an element of `sorter` is not an index of `sorted`.

    Examples
    --------
    >>> table = vd.asbuffer(np.array([1, 3, 5], np.float32))
    >>> vd.searchsorted(table, vd.asbuffer(np.array([0, 3, 6], np.float32))).read(0)
    array([0, 1, 3])
    """
    array, wanted = _parse_array(sorted, "sorted"), _parse_array(values, "values")
    if len(array.shape) != 1:
        raise ArgumentValueError(f"sorted: expected an array of one axis, got the shape {array.shape}")
    if side not in ("left", "right"):
        raise ArgumentValueError(f'side: expected "left" or "right", got {side!r}')
    order = None if sorter is None else _parse_sorter(sorter, array.size)
    arrays = [array, wanted] if order is None else [array, wanted, order]
    sink, places = prepare_output(
        None, output_map, wanted.shape, dtype.int64, wanted.context, elsewhere=arrays
    )
    if order is not None and not is_recorded(graph):
        remedy = "pass the result of vd.argsort"
        note_bad_index("searchsorted", order, array.size, "an array", "sorter", remedy, negative=False)
    if wanted.size == 0:
        return places
    length = array.size
    common = np.result_type(host_type(array.var_type), host_type(wanted.var_type))
    # the binding of an empty array has an element, which no search reads
    kind = wide_type(from_numpy_dtype(common))
    whole = _choose_whole(length, wanted.size, kind)
    group = choose_group(tuning.search_whole_group if whole else tuning.search_group)
    each = tuning.search_whole_each if whole else tuning.search_each
    form = _Form(
        array.source.elementwise(),
        wanted.source.elementwise(),
        None if order is None else order.source.elementwise(),
        kind,
        side == "right",
        sink.sink,
        group,
        each,
        whole,
        order is not None and is_long(order, length),
        length > _LENGTH_LIMIT,
    )
    at_once = group * each
    rounds = max(1, wanted.size // (at_once * tuning.search_groups))
    sizes = (length & 0x7FFFFFFF, length >> 31, rounds, -(-wanted.size // (at_once * rounds)))
    order_arguments = () if order is None else order.arguments
    _make_search_kernel(form)(
        places, *array.arguments, *wanted.arguments, *order_arguments, *sink.arguments, *sizes, graph=graph
    )
    return places


def _choose_whole(length: int, values: int, kind: DType) -> int:
    """Return how many elements of workgroup memory hold the whole array; 0 if it stays in the buffer."""
    if not find_planner().copies_tables:
        return 0
    size = max(64, 1 << (length - 1).bit_length()) if length else 0
    most = min(tuning.search_whole, device_facts().shared_memory)
    return size if values > 4 * length and size * kind.item_size <= most else 0


def _parse_array(array: ArrayLike, name: str) -> Operand:
    parsed = parse_operand(array, name)
    if not is_scalar(parsed.var_type):
        raise ArgumentTypeError(
            f"{name}: expected integers, floats or booleans, got {parsed.var_type.name}, not ordered"
        )
    return parsed


def _parse_sorter(sorter: ArrayLike, length: int) -> Operand:
    parsed = parse_operand(sorter, "sorter")
    if not is_integer_dtype(wide_type(parsed.var_type)) or not is_scalar(parsed.var_type):
        raise ArgumentTypeError(f"sorter: expected integers, got {parsed.var_type.name}")
    if parsed.shape != (length,):
        raise ArgumentValueError(f"sorter: expected an array of the shape ({length},), got {parsed.shape}")
    return parsed


@store_results
def _make_search_kernel(form: _Form) -> ShaderFunction:
    arguments = [
        *buffers(places=form.sink.out_type),
        form.array.parameters,
        form.values.parameters,
        form.sorter.parameters if form.sorter else [],
        form.sink.parameters,
        numbers("search_low", "search_high", "search_rounds", "search_groups"),
    ]

    def trace(*variables: Any) -> None:
        _search(form, variables)

    name = f"searchsorted_{'right' if form.is_right else 'left'}"
    return trace_kernel(name, trace, arguments, form.group, "search_groups")


def _search(form: _Form, variables: Any) -> None:
    places, *inputs, rest, (low, high, rounds, _) = variables
    lane = vc.local_invocation_id().x
    length = (low + high * (1 << 31)).to_register("search_length")
    array_length = _length_of(form, inputs, length)
    size = places.shape.w

    def element(place: Any) -> Any:
        if form.sorter is not None:
            place = resolve_index(
                form.sorter.value(inputs[2], place),
                array_length.to_dtype,
                mode="clip",
                long=form.has_long_sorter,
                big=form.is_big,
            )
        value = form.array.value(inputs[0], place)
        return _convert_number(value, form.kind)

    def before(element_value: Any, value: Any) -> Any:
        """Return whether the result is after an element."""
        return ~is_below(value, element_value) if form.is_right else is_below(element_value, value)

    load = element
    if form.whole:
        memory = vc.shared_buffer(form.kind, form.whole)
        with vc.for_block(lane, array_length, form.group) as place:
            memory[place] = element(place)
        vc.barrier()

        def load(place: Any) -> Any:
            return memory[place]

    first = vc.workgroup_id().x * rounds * (form.group * form.each) + lane
    with vc.for_block(0, rounds) as number:
        begin = first + number * (form.group * form.each)
        indices = [begin + i * form.group for i in range(form.each)]
        inside = [vc.select(index.to_dtype(dtype.int32) < size, index, 0) for index in indices]
        wanted = [
            _convert_number(form.values.value(inputs[1], index), form.kind).to_register() for index in inside
        ]
        bases = [_zero_position(array_length) for _ in indices]
        left = (array_length + 0).to_register("search_left")
        with vc.while_block(left > 1):
            half = (left >> 1).to_register()
            middles = [load(base + (half - 1)).to_register() for base in bases]
            for base, middle, value in zip(bases, middles, wanted, strict=True):
                base[:] = vc.select(before(middle, value), base + half, base)
            left[:] = left - half
        with vc.if_block(array_length > 0):
            last = [load(vc.min(base, array_length - 1)).to_register() for base in bases]
            for base, middle, value in zip(bases, last, wanted, strict=True):
                is_after = vc.all(base < array_length, before(middle, value))
                base[:] = vc.select(is_after, base + 1, base)
        for index, base in zip(indices, bases, strict=True):
            with vc.if_block(index.to_dtype(dtype.int32) < size):
                form.sink.store(places, rest, index, base.to_dtype(dtype.int64))


def _convert_number(value: Any, kind: DType) -> Any:
    if value.var_type is dtype.bool_:
        value = vc.select(value, 1, 0)
    return value.to_dtype(kind)


def _length_of(form: _Form, own: Any, length: Any) -> Any:
    """Return the length of the sorted array: that of its buffer, or for maps the one that is given."""
    # the shape of a buffer has as many bits as the kernel needs
    return own[0][0].shape.w if form.array.is_plain else length


def _zero_position(length: Any) -> Any:
    return (length * 0).to_register("search_base")
