"""Outputs of functions on arrays: how results are stored in a buffer, perhaps through a map."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.arrays.maps.accesses import Access, find_accesses
from vkdispatch.arrays.maps.lowering import Tree, lower_map
from vkdispatch.arrays.maps.operand import build_children
from vkdispatch.arrays.maps.source import list_argument_names, name_position
from vkdispatch.arrays.memoize import memoize
from vkdispatch.arrays.values.elements import wide_type
from vkdispatch.base.dtype import DType, compute_type
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.record import record, replace
from vkdispatch.codegen.arguments import Annotation
from vkdispatch.shader.arguments.annotations import is_value
from vkdispatch.shader.arguments.parameters import describe
from vkdispatch.shader.map import MappingFunction, OutputMap, mapped_at

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
        return list_argument_names(self.mapping) if self.mapping else []

    @property
    def parameters(self) -> list[tuple[str, Annotation]]:
        """Names and annotations of the arguments, as `trace_kernel` takes them."""
        return list(zip(self.names, self.annotations, strict=True))

    def map_value(self, variables: Any, index: Any, value: Any) -> Any:
        """Return what is stored of a value at a flat index of the result."""
        kind = compute_type(self.out_type)
        if self.mapping is None:
            return value if value.var_type is kind else value.to_dtype(kind)
        register = vc.new_register(kind)
        with vc.scope_block(), mapped_at(name_position(index)):
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
    def annotations(self) -> list[Annotation]:
        """Annotations of the arguments."""
        return self.sink.annotations

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
    return Output(_make_sink(Tree(mapping, children), value_type), arguments)


def _check_broadcasts(output_map: OutputMap, shape: tuple[int, ...]) -> None:
    own = output_map.shape
    if own == shape or math.prod(own) == 1:
        return
    try:
        fits = np.broadcast_shapes(own, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ArgumentValueError(
            f"output_map: {output_map.mapping.name!r} is called with arrays of the shape {own}, which does "
            f"not broadcast to that of the result, {shape}"
        )


def _check_reaches(output_map: OutputMap, most: int) -> None:
    own = output_map.shape
    size = math.prod(own)
    if size != 1 and (len(own) != 1 or size < most):
        raise ArgumentValueError(
            f"output_map: {output_map.mapping.name!r} is called with arrays of the shape {own}; the result "
            f"has one axis and up to {most} elements, so expected one axis of at least {most}, or one element"
        )


def plain_output(value_type: DType) -> Output:
    """Return how a kernel stores values as they are."""
    return Output(_make_plain_sink(value_type))


@memoize
def _make_plain_sink(value_type: DType) -> Sink:
    return Sink(value_type, value_type)


@memoize
def _make_sink(tree: Tree, value_type: DType) -> Sink:
    assert tree.mapping.return_type is not None
    sink = Sink(value_type, tree.mapping.return_type, lower_map(tree))
    return replace(sink, is_writing=any(access.written for access in accesses_of_sink(sink)))


@memoize
def accesses_of_sink(sink: Sink) -> tuple[Access, ...]:
    """Return how the map uses its arguments behind the value."""
    if not any(getattr(kind, "__origin__", None) is vc.Buffer for kind in sink.annotations):
        return tuple(Access() for _ in sink.annotations)

    def trace(variables: Sequence[Any], index: Any) -> None:
        sink.map_value(variables, index, vc.new_register(compute_type(wide_type(sink.value_type))))

    return find_accesses(sink.names, sink.annotations, trace)


# What functions on arrays take as `output_map`, if not None.
ResultMap = MappingFunction | OutputMap
