"""`vd.where`.

Neighbouring axes along which the same arrays are broadcast become one axis: arrays of one shape are flat, and
a row or a column with a matrix leaves two axes.

    condition   rows x 1            along axes (rows,  -     )      axis 0: read by condition, x
    x           rows x columns                 (rows, columns)      axis 1: read by x, y
    y                  columns                 ( -  , columns)
    result      rows x columns      one invocation each; a number has no axes

If nothing is broadcast, and x and y need no conversion, an invocation has as many elements as 16 bytes of the
widest array hold: masks made of the conditions select bits.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import DType, is_complex, is_scalar
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.calls import array_function
from vkdispatch.families.kernels import Argument, buffers, numbers, trace_kernel
from vkdispatch.families.operands import (
    ArrayLike,
    Number,
    Operand,
    OutputLike,
    Sink,
    parse_operand,
    plain_source,
    prepare_output,
)
from vkdispatch.families.sources import Source
from vkdispatch.families.stored import store_results
from vkdispatch.families.values import convert_value, is_nonzero, promote_dtypes, unpack_elements, wide_type
from vkdispatch.rearrange import moves
from vkdispatch.shader.shader_function import ShaderFunction

GROUP = 256
_WORDS = (1, 2, 4, 8, 16)
_MAX_TOGETHER = 16


class _Missing:
    """The default of a required argument."""

    def __repr__(self) -> str:
        return "..."


_MISSING: Any = _Missing()


@array_function
def where(
    condition: ArrayLike,
    x: ArrayLike | Number = _MISSING,
    y: ArrayLike | Number = _MISSING,
    *,
    out: Buffer[Any] | None = None,
    output_map: OutputLike = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return the elements of `x` where a condition is true, and those of `y` elsewhere, like `numpy.where`.

    The three are broadcast against each other.

    Parameters
    ----------
    condition
        A buffer, or a map called with its arguments, of numbers; nonzero ones are true, and NaN is nonzero.
    x, y
        Buffers, maps called with their arguments, or numbers. Their dtypes are promoted as in NumPy; Python
        numbers adapt to the dtype of arrays.
    out
        A buffer for the result; None creates one. It can be one of the arrays if that has the size of the
        result, or an argument that a map of that size reads only at the mapped index.
    output_map
        A map for the results; its index is that in the result.
    graph
        The graph to record into; None means the thread's `vd.global_graph()`.

    Raises
    ------
    TypeError
        An argument is invalid, or the dtypes have no common dtype.
    ValueError
        `x` or `y` is missing (`vd.nonzero` finds where a condition is true), the shapes do not broadcast, or
        `out` does not match.

    Examples
    --------
    >>> mask = vd.asbuffer(np.array([True, False]))
    >>> vd.where(mask, vd.asbuffer(np.array([1, 2], np.float32)), 0).read(0)
    array([1., 0.], dtype=float32)
    """
    if x is _MISSING or y is _MISSING:
        given_one = x is not _MISSING or y is not _MISSING
        raise ArgumentValueError(
            "where: pass both x and y, or neither"
            if given_one
            else "where: pass x and y; vd.nonzero(condition) returns the indices where a condition is true"
        )
    tests = parse_operand(condition, "condition")
    if not is_scalar(tests.var_type) and not is_complex(tests.var_type):
        raise ArgumentTypeError(f"condition: expected numbers or booleans, got {tests.var_type.name}")
    parts = [_parse_value(x, "x"), _parse_value(y, "y")]
    kind = promote_dtypes([part.var_type if isinstance(part, Operand) else part for part in parts], "x, y")
    arrays = [tests, *(part for part in parts if isinstance(part, Operand))]
    shape = _broadcast_shapes([array.shape for array in arrays])
    target, buffer = prepare_output(out, output_map, shape, kind, tests.context, alongside=arrays)
    if not buffer.size:
        return buffer
    sizes, layouts = _find_layouts(shape, [array.shape for array in arrays])
    word = _choose_word(parts, kind, plain=target.sink.mapping is None)
    together = 1
    if word is not None and all(all(layout) for layout in layouts) and tests.source.is_plain:
        together = _choose_together(tests.var_type, kind, buffer.size)
        word = moves.word_type(kind.item_size * together)
    packed, values = moves.pack_numbers({"total": buffer.size // together} | _name_sizes(sizes, layouts))
    slots = iter(layouts[1:])
    form = _Form(
        condition=tests.source,
        condition_axes=layouts[0],
        sources=tuple(part.source if isinstance(part, Operand) else None for part in parts),
        axes=tuple(next(slots) if isinstance(part, Operand) else () for part in parts),
        kind=kind,
        sink=target.sink,
        word=word,
        together=together,
        count=len(sizes),
        numbers=packed,
    )
    arguments: list[Any] = [buffer, *tests.arguments]
    for name, part in zip("xy", parts, strict=True):
        if isinstance(part, Operand):
            arguments.extend(part.arguments)
        else:
            number = moves.cast_number(part, kind, name)
            held = form.register_type
            arguments.append(
                moves.to_word(number, kind, held) if word else moves.to_value(number, kind, held)
            )
    _make_kernel(form)(*arguments, *target.arguments, *values, graph=graph)
    return buffer


def _parse_value(value: Any, name: str) -> Any:
    if isinstance(value, (bool, int, float, complex, np.generic)):
        return value
    return parse_operand(value, name)


def _broadcast_shapes(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ArgumentValueError(
            f"condition, x, y: the shapes {', '.join(map(str, shapes))} do not broadcast"
        ) from None


def _choose_word(parts: Sequence[Any], kind: DType, *, plain: bool) -> DType | None:
    """Return the type of the words as which elements are moved; None if they are converted or mapped."""
    arrays = [part for part in parts if isinstance(part, Operand)]
    same = all(array.source.is_plain and array.var_type is kind for array in arrays)
    return moves.word_type(kind.item_size) if plain and same and kind.item_size in _WORDS else None


def _choose_together(condition: DType, kind: DType, size: int) -> int:
    """Return the elements of an invocation: up to 16 bytes of each array, and at least a word; else 1."""
    if is_complex(condition):
        return 1
    together = min(16 // max(condition.item_size, kind.item_size, 1), _MAX_TOGETHER)
    while together > 1 and size % together:
        together //= 2
    return together if together * kind.item_size >= 4 else 1


def _find_layouts(
    shape: tuple[int, ...], shapes: Sequence[tuple[int, ...]]
) -> tuple[list[int], list[tuple[bool, ...]]]:
    """Join axes. Return their lengths and, for each array, along which of them it is not broadcast."""
    filled = [(1,) * (len(shape) - len(extents)) + extents for extents in shapes]
    sizes: list[int] = []
    patterns: list[tuple[bool, ...]] = []
    for axis, size in enumerate(shape):
        if size == 1:
            continue
        pattern = tuple(extents[axis] != 1 for extents in filled)
        if patterns and patterns[-1] == pattern:
            sizes[-1] *= size
        else:
            sizes.append(size)
            patterns.append(pattern)
    return sizes, [tuple(pattern[k] for pattern in patterns) for k in range(len(shapes))]


def _name_sizes(sizes: Sequence[int], layouts: Sequence[tuple[bool, ...]]) -> dict[str, int]:
    if all(all(layout) or not any(layout) for layout in layouts):
        return {}
    return {f"size{k}": size for k, size in enumerate(sizes) if k}


@record
class _Form:
    """What a kernel is specialised for.

    Attributes
    ----------
    condition, sources
        The sources of the condition, and of x and y; None for a number.
    condition_axes, axes
        Along which axes each array is not broadcast.
    kind, sink
        The dtype of the values, and how they are stored.
    word, together
        The type of the words as which elements are moved, and the elements of a word; None if elements are
        converted or mapped.
    count
        Number of axes.
    numbers
        The numbers of a launch: `total`, and the lengths of the axes but the first.
    """

    condition: Source
    condition_axes: tuple[bool, ...]
    sources: tuple[Source | None, ...]
    axes: tuple[tuple[bool, ...], ...]
    kind: DType
    sink: Sink
    word: DType | None
    together: int
    count: int
    numbers: moves.Numbers

    @property
    def register_type(self) -> DType:
        """The type of the number that replaces an array."""
        if self.word is not None:
            return moves.Move(self.word).register_type
        wide = wide_type(self.kind)
        return dtype.uint32 if wide is dtype.bool_ else wide


@store_results
def _make_kernel(form: _Form) -> ShaderFunction:
    view = _condition_view(form)
    condition = form.condition if view is None else plain_source(view)

    def declare(name: str, source: Source | None) -> list[Argument]:
        if source is None:
            return numbers(name, kind=form.register_type)
        return source.prefix_parameters(name) if form.word is None else buffers(**{name: form.word})

    def body(result: Any, tested: Any, x: Any, y: Any, mapping: Any, variables: Any) -> None:
        number = form.numbers.read(variables)
        index = vc.global_invocation_id().x
        parts: list[Any] = []
        if len(number) > 1:
            parts = moves.split_index(index, [number[f"size{k}"] for k in range(1, form.count)])

        def place(axes: tuple[bool, ...]) -> Any:
            if all(axes) and axes:
                return index
            if not any(axes):
                return vc.to_dtype(dtype.uint32, 0)
            flat: Any = None
            for k, read in enumerate(axes):
                if read:
                    flat = parts[k] if flat is None else flat * number[f"size{k}"] + parts[k]
            return flat.to_register()

        if form.together > 1:
            truths = _load_truths(form, view, tested[0], index)
            words = [
                given if source is None else given[index].to_register()
                for source, (given,) in zip(form.sources, (x, y), strict=True)
            ]
            result[index] = _merge_words(form, truths, *words)
            return
        tests = form.condition.value(tested, place(form.condition_axes))
        values: list[Any] = []
        for source, axes, given in zip(form.sources, form.axes, (x, y), strict=True):
            if source is None:
                value = given[0]
                if form.word is None and form.kind is dtype.bool_:
                    value = value != 0
            elif form.word is not None:
                value = given[0][place(axes)].to_register()
                value = value.to_dtype(moves.Move(form.word).register_type)
            else:
                value = convert_value(source.value(given, place(axes)), form.kind).to_register()
            values.append(value)
        chosen = vc.select(is_nonzero(tests), *values).to_register()
        if form.word is not None:
            result[index] = chosen.to_dtype(dtype.uint16) if form.word is dtype.uint16 else chosen
        else:
            form.sink.store(result, mapping, index, chosen)

    arguments = [
        *buffers(result=form.word or form.sink.out_type),
        condition.prefix_parameters("condition"),
        *(declare(name, source) for name, source in zip("xy", form.sources, strict=True)),
        form.sink.parameters,
        form.numbers.arguments,
    ]
    name, size = f"where_{form.kind.name}", form.numbers.text("total")
    return trace_kernel(name, body, arguments, GROUP, exec_size=size)


def _condition_view(form: _Form) -> DType | None:
    """Return the type of a load of several conditions; None if they are loaded one by one."""
    size = form.condition.out_type.item_size * form.together
    return moves.word_type(size) if form.together > 1 and size >= 4 else None


def _load_truths(form: _Form, view: DType | None, condition: Any, index: Any) -> list[Any]:
    """Return whether the condition holds for each element of a word."""
    kind = form.condition.out_type
    if view is None:
        return [is_nonzero(condition[index * form.together + i].to_register()) for i in range(form.together)]
    # booleans are bytes of 0 and 1
    held = dtype.uint8 if kind is dtype.bool_ else kind
    return [
        is_nonzero(element)
        for element in unpack_elements(held, form.together, condition[index].to_register())
    ]


def _merge_words(form: _Form, truths: Sequence[Any], x: Any, y: Any) -> Any:
    """Return a word with the elements of `x` where `truths` are true, and those of `y` elsewhere."""
    assert form.word is not None
    words, bits = form.word.item_size // 4, 8 * form.kind.item_size
    parts: list[Any] = []
    for k in range(words):
        mask: Any = None
        for i in range(max(1, 32 // bits)):
            truth = truths[32 * k // bits + i]
            ones = ((1 << min(bits, 32)) - 1) << bits * i
            part = vc.select(truth, vc.to_dtype(dtype.uint32, ones), vc.to_dtype(dtype.uint32, 0))
            mask = part if mask is None else mask | part
        mask = mask.to_register()
        first, second = (x, y) if words == 1 else (x[k], y[k])
        parts.append(((first & mask) | (second & ~mask)).to_register())
    return parts[0] if words == 1 else vc.to_dtype(form.word, *parts)
