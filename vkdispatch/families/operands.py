"""Arguments and results of functions on buffers: axes, numbers, buffers, maps, and memory that they share."""

import inspect
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeGuard

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.context import Context
from vkdispatch.base.dtype import DType, compute_type, from_numpy_dtype
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, OverlapError
from vkdispatch.base.host_numpy import AxisError
from vkdispatch.base.process import as_int
from vkdispatch.base.record import record, replace
from vkdispatch.base.sharing.dlpack import suggest_conversion
from vkdispatch.codegen.annotations import Annotation, is_buffer
from vkdispatch.execution_pipeline.recordable import BoundVariable
from vkdispatch.families import sources
from vkdispatch.families.tuning import memoize
from vkdispatch.families.values import Access, find_multiplier, wide_type
from vkdispatch.shader.map import DeferredMap, MappedArray, MappingFunction, OutputMap, mapped_at
from vkdispatch.shader.program import is_checking
from vkdispatch.shader.signature import describe, is_value

# ---- Numbers as arguments: one rule for all functions; and powers of two ---------------------------------


Number = bool | int | float | complex | np.generic


def is_int(value: object) -> bool:
    """Whether a value is a Python or NumPy integer; booleans are not."""
    return as_int(value) is not None


def parse_int(
    value: object,
    name: str,
    *,
    least: int | None = None,
    most: int | None = None,
    wanted: str = "an int",
    note: str = "",
) -> int:
    """Return a Python or NumPy integer as an int.

    Parameters
    ----------
    least, most
        The limits, both included; `most` needs `least`.
    wanted
        The type of the argument in messages.
    note
        A text that messages add to the limits.

    Raises
    ------
    TypeError
        The value is not an integer. Booleans are not integers.
    ValueError
        The value is out of the limits.
    """
    number = as_int(value)
    if number is None:
        raise ArgumentTypeError(f"{name}: expected {wanted}, got {describe(value)}")
    if (least is not None and number < least) or (most is not None and number > most):
        limits = f"from {least} on" if most is None else f"from {least} to {most}"
        raise ArgumentValueError(f"{name}: expected an int {limits}{note}, got {number}")
    return number


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a Python or NumPy integer or float; booleans are not."""
    return isinstance(value, (float, np.floating)) or is_int(value)


def parse_number(value: Any, name: str) -> float:
    """Return a finite number as a float. Raises TypeError or ValueError for other values."""
    if not is_number(value):
        raise ArgumentTypeError(f"{name}: expected a number, got {describe(value)}")
    number = float(value)
    if not math.isfinite(number):
        raise ArgumentValueError(f"{name}: expected a finite number, got {number}")
    return number


# ---- Axes as arguments: one rule for all functions -------------------------------------------------------


def as_tuple(axes: object) -> tuple[Any, ...]:
    """Return one axis or several axes as a tuple."""
    alone = isinstance(axes, (str, bytes)) or (isinstance(axes, np.ndarray) and not axes.ndim)
    return tuple(axes) if isinstance(axes, Iterable) and not alone else (axes,)


def parse_axis(axis: object, dimensions: int, name: str = "axis") -> int:
    """Return an axis as a nonnegative int; negative axes count from the end.

    Raises
    ------
    TypeError
        The axis is not an int. NumPy integers are ints, booleans are not.
    AxisError
        The axis is out of range.
    """
    number = parse_int(axis, name)
    if not -dimensions <= number < dimensions:
        raise AxisError(
            f"{name}: {number} is out of bounds for an array of {dimensions} dimensions; expected "
            f"{-dimensions} to {dimensions - 1}"
            if dimensions
            else f"{name}: an array of no dimensions has no axes, got {number}"
        )
    return number % dimensions


def parse_axes(axes: object, dimensions: int, name: str = "axis") -> tuple[int, ...]:
    """Return one axis or several axes as nonnegative ints in the given order; None for all of them.

    Raises
    ------
    TypeError
        An axis is not an int.
    AxisError
        An axis is out of range or repeated.
    """
    if axes is None:
        return tuple(range(dimensions))
    result = tuple(parse_axis(axis, dimensions, name) for axis in as_tuple(axes))
    if len(set(result)) < len(result):
        raise AxisError(f"{name}: repeated axis in {axes!r}")
    return result


def split_shape(shape: tuple[int, ...], axis: int) -> tuple[int, int, int]:
    """Return the numbers of elements before, along, and after an axis."""
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


# ---- The argument `dtype` of functions on arrays ---------------------------------------------------------


# What functions on arrays take as `dtype`: vkdispatch's, NumPy's or Python's types, or their names.
DTypeLike = DType | type[Any] | np.dtype[Any] | str | None


def parse_dtype(value: Any, name: str = "dtype") -> DType:
    """Return the dtype for an argument: one of vkdispatch or NumPy, or bool, int, float, complex.

    Raises
    ------
    TypeError
        The value is not a dtype.
    ValueError
        Buffers cannot have elements of this dtype.
    """
    if isinstance(value, type) and issubclass(value, dtype.dtype) and hasattr(value, "name"):
        return value
    try:
        # NumPy does not know names such as "bfloat16"
        return from_numpy_dtype(value if isinstance(value, (str, np.dtype)) else np.dtype(value), name)
    except ArgumentValueError:
        raise
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            f"{name}: expected a dtype such as vd.float32 or np.float32, got {value!r}"
        ) from None


# ---- Operands of functions on arrays: buffers, and maps called with their arguments ----------------------


# What functions on arrays take.
ArrayLike = Buffer[Any] | MappedArray


@record(eq=False)
class Operand:
    """An array as a kernel takes it.

    Attributes
    ----------
    shape, size, var_type
        Shape, number of elements and dtype of the array.
    context
        The context of the array.
    source
        How a kernel gets its elements.
    arguments
        The arguments of launches, one for each of `source.annotations`.
    name
        The name of the array in messages.
    """

    shape: tuple[int, ...]
    size: int
    var_type: DType
    context: Context
    source: sources.Source
    arguments: tuple[Any, ...]
    name: str = "x"

    @property
    def views(self) -> tuple[Any, ...]:
        """The arguments of launches for `source.views`."""
        return tuple(self.arguments[position] for position, _ in self.source.views)


def parse_operand(x: object, name: str = "x") -> Operand:
    """Return an array as kernels take it.

    Parameters
    ----------
    name
        The name of the array in messages.

    Raises
    ------
    TypeError
        `x` is neither a buffer nor a map called with its arguments.
    """
    if isinstance(x, Buffer):
        x.require_alive()
        source = fit_source(plain_source(x.var_type), x.size)
        return Operand(x.shape, x.size, x.var_type, x.context, source, (x,), name)
    if isinstance(x, OutputMap):
        raise ArgumentTypeError(
            f"{name}: map {x.mapping.name!r} takes {x.mapping.arity} arguments, got "
            f"{len(x.arguments)}; without its first argument, the value, it is a map for an output_map="
        )
    if isinstance(x, MappingFunction) or inspect.isfunction(x):
        if isinstance(x, MappingFunction):
            given, instead = f"the map {x.name!r}", "call it"
        else:
            given, instead = f"the function {x.__name__!r}", "decorate it by @vd.map, and call it"
        raise ArgumentTypeError(
            f"{name}: expected a vd.Buffer or a map called with its arguments, got {given}; {instead} with "
            "its arguments, as in vd.sum(f(x))"
        )
    if not isinstance(x, MappedArray):
        raise ArgumentTypeError(
            f"{name}: expected a vd.Buffer or a map called with its arguments, got {describe(x)}; make a "
            f"buffer with {suggest_conversion(x)}"
        )
    tree, arguments = build_tree(x)
    source = fit_source(_make_mapped_source(tree), x.size)
    if lacks_elements(source, arguments, x.size):
        source = source.elementwise()
    return Operand(x.shape, x.size, x.var_type, x.context, source, arguments, name)


def fit_source(source: sources.Source, size: int) -> sources.Source:
    """Return the source for an array of a size. In checked kernels every view needs an element."""
    return source.elementwise() if size < source.together and is_checking() else source


def stride_operand(x: Operand, shape: Sequence[int], steps: Sequence[int]) -> Operand:
    """Return an array of elements of another one: along each axis, `steps` elements apart.

    Raises
    ------
    ValueError
        A length or a step has more than 32 bits.
    """
    numbers = (*shape[1:], *steps)
    if max(numbers) >> 32:
        raise ArgumentValueError(f"{x.name}: axes of 2**32 elements or more are too long, in {x.shape}")
    size = math.prod(shape)
    is_narrow = size < 1 << 31 and min(shape[1:], default=0) > 1
    if is_narrow:
        numbers += tuple(
            part for parts in zip(*map(find_multiplier, shape[1:]), strict=True) for part in parts
        )
    source = _make_strided_source(x.source, len(shape), is_narrow)
    arguments = (*x.arguments, *numbers)
    return Operand(tuple(shape), size, x.var_type, x.context, source, arguments, x.name)


_make_strided_source = memoize(sources.make_strided_source)


@memoize
def plain_source(kind: DType) -> sources.Source:
    """Return the source of the elements of a buffer."""
    return sources.make_source(sources.identity_map(kind), kind, is_plain=True)


@memoize
def _make_mapped_source(tree: sources.Tree) -> sources.Source:
    assert tree.mapping.return_type is not None
    return sources.make_source(sources.lower_map(tree), tree.mapping.return_type, is_plain=False)


def lacks_elements(source: sources.Source, arguments: Sequence[Any], size: int) -> bool:
    """Whether a buffer lacks elements that loads of several elements would read before the map does."""
    return any(
        isinstance(arguments[position], Buffer)
        and arguments[position].mem_size < size * sources.kind_of_argument(source.mapping, position).item_size
        for position, _ in source.views
    )


def build_tree(x: MappedArray) -> tuple[sources.Tree, tuple[Any, ...]]:
    """Return the tree of a map, which its kernels depend on, and the arguments of their launches."""
    if isinstance(x.mapping, DeferredMap):  # its arguments are as it takes them
        return sources.Tree(x.mapping, (sources.Whole(None),) * x.mapping.arity, x.size == 1), x.arguments
    children, arguments, sizes = _split_arguments(x.mapping.buffer_types, x.arguments, x.shape)
    return sources.Tree(x.mapping, children, x.size == 1), (*arguments, *sizes)


def build_children(
    annotations: Any, values: tuple[Any, ...], shape: tuple[int, ...]
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the parts of a tree for parameters of a map to a shape, and the arguments of launches."""
    children, arguments, sizes = _split_arguments(annotations, values, shape)
    return tuple(children), (*arguments, *sizes)


def _split_arguments(
    annotations: Any, values: tuple[Any, ...], shape: tuple[int, ...]
) -> tuple[tuple[Any, ...], list[Any], list[int]]:
    """Return the parts of a tree, its leaves, and the sizes of spreads."""
    children: list[Any] = []
    arguments: list[Any] = []
    sizes: list[int] = []
    for annotation, value in zip(annotations, values, strict=True):
        if isinstance(value, MappedArray):
            kinds, extents = sources.find_spread(shape, value.shape)
            inner, leaves, spreads = _split_arguments(
                value.mapping.buffer_types, value.arguments, value.shape
            )
            children.append(sources.Tree(value.mapping, inner, value.size == 1, kinds))
            arguments += leaves
            sizes += (*extents, *spreads)
            continue
        if not is_value(annotation):
            children.append(sources.Whole(annotation))
        elif isinstance(value, Buffer):
            value.require_alive()
            kinds, extents = sources.find_spread(shape, value.shape)
            children.append(sources.Stored(value.var_type, value.size == 1, kinds))
            sizes += extents
        else:
            children.append(sources.Number(annotation, isinstance(value, BoundVariable)))
        arguments.append(value)
    return tuple(children), arguments, sizes


# ---- Outputs of functions on arrays: how results are stored in a buffer, perhaps through a map -----------


# What functions on arrays take as `output_map`.
OutputLike = MappingFunction | OutputMap | None


@record
class Sink:
    """How a kernel stores values of `value_type`: as they are, or through a map.

    `is_writing` says whether the map writes to its buffers.
    """

    value_type: DType
    out_type: DType
    mapping: MappingFunction | None = None
    is_writing: bool = False

    @property
    def annotations(self) -> list[Annotation]:
        """Annotations of the arguments of the map behind the value."""
        return self.mapping.buffer_types if self.mapping else []

    @property
    def names(self) -> list[str]:
        """Names of the arguments of the map behind the value."""
        return sources.list_argument_names(self.mapping) if self.mapping else []

    @property
    def parameters(self) -> list[tuple[str, Annotation]]:
        """Names and annotations of the arguments, as `trace_kernel` takes them."""
        return list(zip(self.names, self.annotations, strict=True))

    def map_value(self, variables: Any, index: Any, value: Any) -> Any:
        """Return what is stored of a value at a flat index of the result."""
        kind = compute_type(self.out_type)
        if self.mapping is None:
            return value.to_dtype(kind)
        register = vc.new_register(kind)
        with vc.scope_block(), mapped_at(sources.name_position(index)):
            result = self.mapping.trace(value, *variables)
            if result is None:
                raise ArgumentValueError(
                    f"output_map {self.mapping.name!r} must return a {self.out_type.name}, got None"
                )
            register[:] = result
        return register

    def store(self, result: Any, variables: Any, index: Any, value: Any) -> None:
        """Store a value at an index of the buffer of the result; `variables` are those of the map."""
        result[index] = self.map_value(variables, index, value)


@record(eq=False)
class Output:
    """A sink and the arguments of launches for it, one for each of `sink.annotations`."""

    sink: Sink
    arguments: tuple[Any, ...] = ()

    @property
    def out_type(self) -> DType:
        """The dtype of the result's buffer."""
        return self.sink.out_type

    @property
    def names(self) -> list[str]:
        """Names of the arguments."""
        return self.sink.names


def parse_output(
    output_map: object, value_type: DType, shape: tuple[int, ...] = (), *, most: int | None = None
) -> Output:
    """Return how a kernel stores what it computes.

    Parameters
    ----------
    output_map
        A map whose first parameter is the value: alone, or called with all other arguments. None stores
        values as they are.
    value_type
        The dtype of the values.
    shape
        The shape of the result, to which the arguments of the map broadcast.
    most
        Given in place of `shape` if the length of the result is not known yet: it has one axis of at most
        `most` elements. Arguments have one element, or one axis of at least `most` elements.

    Raises
    ------
    TypeError, ValueError
        `output_map` is not such a map, returns nothing, or is called with arrays that do not broadcast to the
        shape of the result.
    """
    if output_map is None:
        return plain_output(value_type)
    if isinstance(output_map, MappingFunction):
        if not output_map.buffer_types or not is_value(output_map.buffer_types[0]):
            raise ArgumentTypeError(
                f"output_map: the first parameter of {output_map.name!r} gets the value; annotate it with a "
                f"dtype, such as value: {value_type.name}"
            )
        if len(output_map.buffer_types) != 1:
            raise ArgumentTypeError(
                f"output_map: {output_map.name!r} takes more than the value; call it with the rest: "
                f"output_map={output_map.name}(...)"
            )
        output_map = OutputMap(output_map, ())
    if not isinstance(output_map, OutputMap):
        raise ArgumentTypeError(
            f"output_map: expected a vd.map, whose first parameter gets the value, got {describe(output_map)}"
        )
    mapping = output_map.mapping
    if mapping.return_type is None:
        raise ArgumentValueError(
            f"output_map: {mapping.name!r} needs a return annotation, such as -> f32: the result's dtype"
        )
    target = output_map.shape if most is not None else shape
    if most is None:
        _check_broadcasts(output_map, shape)
    else:
        _check_reaches(output_map, most)
    children, arguments = build_children(mapping.buffer_types[1:], output_map.arguments, target)
    return Output(_make_sink(sources.Tree(mapping, children), value_type), arguments)


def _check_broadcasts(output_map: OutputMap, shape: tuple[int, ...]) -> None:
    mapped = output_map.shape
    if mapped == shape or math.prod(mapped) == 1:
        return
    try:
        fits = np.broadcast_shapes(mapped, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ArgumentValueError(
            f"output_map: {output_map.mapping.name!r} is called with arrays of the shape {mapped}, which "
            f"does not broadcast to that of the result, {shape}"
        )


def _check_reaches(output_map: OutputMap, most: int) -> None:
    mapped = output_map.shape
    size = math.prod(mapped)
    if size != 1 and (len(mapped) != 1 or size < most):
        raise ArgumentValueError(
            f"output_map: {output_map.mapping.name!r} is called with arrays of the shape {mapped}; the "
            f"result has one axis and up to {most} elements, so expected one axis of at least {most}, or one "
            "element"
        )


def plain_output(value_type: DType) -> Output:
    """Return how a kernel stores values as they are."""
    return Output(_make_plain_sink(value_type))


@memoize
def _make_plain_sink(value_type: DType) -> Sink:
    return Sink(value_type, value_type)


@memoize
def _make_sink(tree: sources.Tree, value_type: DType) -> Sink:
    assert tree.mapping.return_type is not None
    sink = Sink(value_type, tree.mapping.return_type, sources.lower_map(tree))
    return replace(sink, is_writing=any(access.written for access in accesses_of_sink(sink)))


@memoize
def accesses_of_sink(sink: Sink) -> tuple[Access, ...]:
    """Return how the map uses its arguments behind the value."""
    if not any(map(is_buffer, sink.annotations)):
        return tuple(Access() for _ in sink.annotations)

    from vkdispatch.families.accesses import find_accesses  # something is traced

    def trace(variables: Sequence[Any], index: Any) -> None:
        sink.map_value(variables, index, vc.new_register(compute_type(wide_type(sink.value_type))))

    return find_accesses(sink.names, sink.annotations, trace)


# What functions on arrays take as `output_map`, if not None.
ResultMap = MappingFunction | OutputMap


def require_buffer(buffer: object, name: str) -> Buffer[Any]:
    """Return a buffer. Raises TypeError for anything else."""
    if not isinstance(buffer, Buffer):
        raise ArgumentTypeError(f"{name}: expected a vd.Buffer, got {type(buffer).__name__}")
    return buffer


# ---- Arguments of a call that share memory ---------------------------------------------------------------
#
# A call reads some arrays and writes others, in an unspecified order. It may read the same memory several
# times. It may read memory that it writes only if each element is read before it is overwritten:
#
# before       arrays that are read as a whole before anything is written, as by sorts
# alongside    arrays whose elements are read only for the result with the same index, as by `cumsum`; and
#              the arguments of an output map, which is called right before its result is stored
# elsewhere    all other arrays
#
# A map that reads only the mapped index counts as the array that it reads. Everything else is refused.


def is_same_memory(a: object, b: object) -> bool:
    """Whether two arguments are buffers of the same memory: the same buffer, or views of it."""
    if not isinstance(a, Buffer) or not isinstance(b, Buffer):
        return False
    # a destroyed buffer has no memory
    memory = getattr(a, "_native", None)
    return memory is not None and memory is getattr(b, "_native", None)


def share_memory(a: object, b: object) -> bool:
    """Whether two arguments are buffers that have memory in common, as slices of a shared array may."""
    if is_same_memory(a, b):
        return True
    if not isinstance(a, Buffer) or not isinstance(b, Buffer) or a.destroyed or b.destroyed:
        return False
    return a._native.overlaps(b._native)


def check_apart(name: str, buffer: object, other_name: str, other: object) -> None:
    """Raise OverlapError if two arguments are the same memory: one is written while the other is read."""
    if share_memory(buffer, other):
        raise OverlapError(
            f"{name}: it shares memory with {other_name}, and one is written while the other is read; "
            "pass another buffer"
        )


def check_same_or_apart(name: str, buffer: object, other_name: str, other: object) -> None:
    """Raise OverlapError if two arguments share memory and are not the same memory, of a call in place."""
    if not is_same_memory(buffer, other):
        check_apart(name, buffer, other_name, other)


def check_overlap(
    outputs: Sequence[tuple[str, Any]],
    target: Output | None = None,
    *,
    elsewhere: Sequence[Operand] = (),
    alongside: Sequence[Operand] = (),
    before: Sequence[Operand] = (),
    map_once: bool = True,
) -> None:
    """Check that a call does not overwrite what it still has to read.

    Parameters
    ----------
    outputs
        Names of the results and the buffers that the caller gave for them, or None.
    target
        How the first result is stored.
    elsewhere, alongside, before
        The arrays that are read, by when they are read.
    map_once
        Whether the output map is called once for each result.

    Raises
    ------
    OverlapError
        The call might overwrite something.
    """
    written = [pair for pair in outputs if pair[1] is not None]
    if written:
        _check_outputs(written)
        for array in elsewhere:
            _check_array(written, array, apart=True)
        for array in alongside:
            _check_array(written, array, apart=False)
        if target is not None and target.arguments:
            _check_target(written, target, written[0] is outputs[0] and map_once)
    arrays = (*elsewhere, *alongside, *before)
    if any(array.source.is_writing for array in arrays) or (target is not None and target.sink.is_writing):
        _check_maps_that_write(written, arrays, target)


def _check_outputs(written: Sequence[tuple[str, Any]]) -> None:
    for number, (name, buffer) in enumerate(written):
        for other, same in written[:number]:
            if share_memory(buffer, same):
                raise OverlapError(
                    f"{other}, {name}: they share memory, and both are written; pass two buffers"
                )


def _check_array(written: Sequence[tuple[str, Any]], array: Operand, *, apart: bool) -> None:
    for position, argument in enumerate(array.arguments):
        for name, buffer in written:
            if not share_memory(argument, buffer):
                continue
            together = not apart and array.size == buffer.size
            if not together or not _is_safe(argument, buffer, accesses_of(array.source)[position]):
                raise _make_overlap_error(name, _name_of(array, position))


def _check_target(written: Sequence[tuple[str, Any]], target: Output, first: bool) -> None:
    for position, argument in enumerate(target.arguments):
        for number, (name, buffer) in enumerate(written):
            if not share_memory(argument, buffer):
                continue
            together = first and number == 0
            if not together or not _is_safe(argument, buffer, accesses_of_sink(target.sink)[position]):
                raise _make_overlap_error(name, _name_of(target, position))


def _is_safe(argument: Any, buffer: Any, access: Access) -> bool:
    """Whether a map reads, of the buffer of a result, only the element that the result overwrites."""
    here = access.here or argument.size == buffer.size == 1
    return here and not access.written and _is_aligned(argument, buffer)


def _is_aligned(argument: Any, buffer: Any) -> bool:
    """Whether elements with the same index are the same bytes."""
    same: bool = argument.var_type.item_size == buffer.var_type.item_size
    return same and is_same_memory(argument, buffer)


def _make_overlap_error(name: str, other: str) -> OverlapError:
    return OverlapError(
        f"{name}: it shares memory with {other}, which is read while {name} is written; pass another buffer"
    )


def _name_of(part: Operand | Output, position: int) -> str:
    if isinstance(part, Output):
        return f"{str(part.names[position])!r}, an argument of output_map"
    return part.name if part.source.is_plain else f"{str(part.source.names[position])!r} of {part.name}"


@memoize
def accesses_of(source: sources.Source) -> tuple[Access, ...]:
    """Return how a map uses its arguments."""
    if source.is_plain:
        return (Access(),)
    from vkdispatch.families.accesses import find_accesses  # something is traced

    return find_accesses(source.names, source.annotations, source.trace)


# ---- maps that write -----------------------------------------------------------------------------------


@record(eq=False)
class _Part:
    """A buffer of a call: its name in messages, the buffer, how it is used, and what it is an argument of."""

    name: str
    buffer: Any
    access: Access
    owner: object


def _check_maps_that_write(
    written: Sequence[tuple[str, Any]], arrays: Sequence[Operand], target: Output | None
) -> None:
    """Raise OverlapError if a map writes to a buffer that the rest of the call uses."""
    parts = [_Part(name, buffer, Access(), written) for name, buffer in written]
    parts += _list_parts(arrays, target)
    for part in parts:
        if not part.access.written:
            continue
        for other in parts:
            if other is part or not share_memory(part.buffer, other.buffer):
                continue
            both_here = part.access.here and other.access.here and _is_aligned(part.buffer, other.buffer)
            if part.owner is not other.owner or not both_here:
                raise OverlapError(
                    f"{other.name}: it shares memory with {part.name}, which the map writes; pass another "
                    "buffer"
                )


def _list_parts(arrays: Iterable[Operand], target: Output | None) -> Iterator[_Part]:
    for array in arrays:
        yield from _list_parts_of(array, accesses_of(array.source))
    if target is not None:
        yield from _list_parts_of(target, accesses_of_sink(target.sink))


def _list_parts_of(owner: Operand | Output, accesses: Sequence[Access]) -> Iterator[_Part]:
    for position, (argument, access) in enumerate(zip(owner.arguments, accesses, strict=True)):
        if isinstance(argument, Buffer):
            yield _Part(_name_of(owner, position), argument, access, owner)


# ---- The buffers that functions on arrays return ---------------------------------------------------------


def prepare_result(
    out: object, shape: tuple[int, ...], kind: DType, context: Context | None = None, name: str = "out"
) -> Buffer[Any]:
    """Return the buffer of a result: a new one, or the one that the caller gave as `out`.

    The function has to write all of it.

    Raises
    ------
    TypeError
        `out` is not a buffer.
    ValueError
        `out` has another shape or dtype, or is read-only.
    """
    if out is None:
        return function_buffer(shape, kind, context=context)
    if not isinstance(out, Buffer):
        raise ArgumentTypeError(f"{name}: expected a vd.Buffer, got {describe(out)}")
    out.require_alive()
    if out.shape != shape or out.var_type is not kind:
        raise ArgumentValueError(
            f"{name}: expected a buffer of the shape {shape} of {kind.name}, got {out.shape} of "
            f"{out.var_type.name}"
        )
    if not out.is_writable:
        raise ArgumentValueError(f"{name}: the buffer is read-only memory of another library")
    out._native.announce()
    return out


def prepare_output(
    out: Buffer[Any] | None,
    output_map: OutputLike,
    shape: tuple[int, ...],
    kind: DType,
    context: Context | None = None,
    *,
    elsewhere: Sequence[Operand] = (),
    alongside: Sequence[Operand] = (),
    before: Sequence[Operand] = (),
) -> tuple[Output, Buffer[Any]]:
    """Return how a call stores its results, of a shape and a dtype, and their buffer.

    `elsewhere`, `alongside` and `before` are the arrays that the call reads; see `check_overlap`.

    Raises
    ------
    TypeError, ValueError
        `out` or `output_map` is invalid; see `prepare_result` and `parse_output`.
    OverlapError
        The call might overwrite what it still has to read.
    """
    target = parse_output(output_map, kind, shape)
    buffer = prepare_result(out, shape, target.out_type, context)
    check_overlap([("out", out)], target, elsewhere=elsewhere, alongside=alongside, before=before)
    return target, buffer


def parse_pair(out: object, names: str) -> tuple[Any, Any]:
    """Return the two buffers of `out`; None for new ones. Raises TypeError if it is not a pair.

    `names` says in messages what the buffers are for.
    """
    if out is None:
        return None, None
    if not isinstance(out, (tuple, list)) or len(out) != 2:
        raise ArgumentTypeError(f"out: expected a pair, for {names}, got {describe(out)}")
    return out[0], out[1]
