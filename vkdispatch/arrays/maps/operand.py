"""Operands of functions on arrays: buffers, and maps called with their arguments."""

import inspect
from collections.abc import Sequence
from typing import Any

from vkdispatch.arrays.maps.lowering import Number, Stored, Tree, Whole, find_spread, lower_map
from vkdispatch.arrays.maps.source import Source, identity_map, make_source
from vkdispatch.arrays.memoize import memoize
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.context import Context
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.base.record import record
from vkdispatch.base.sharing.dlpack import suggest_conversion
from vkdispatch.execution_pipeline.argument_bytes import BoundVariable
from vkdispatch.shader.arguments.annotations import is_value
from vkdispatch.shader.arguments.parameters import describe
from vkdispatch.shader.map import MappedArray, MappingFunction, OutputMap
from vkdispatch.shader.observation import parse_check

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
    source: Source
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
            f"{name}: map {x.mapping.name!r} takes {len(x.mapping.buffer_types)} arguments, got "
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


def fit_source(source: Source, size: int) -> Source:
    """Return the source for an array of a size. In checked kernels every view needs an element."""
    return source.elementwise() if size < source.together and parse_check(None) else source


@memoize
def plain_source(kind: DType) -> Source:
    """Return the source of the elements of a buffer."""
    return make_source(identity_map(kind), kind, is_plain=True)


@memoize
def _make_mapped_source(tree: Tree) -> Source:
    assert tree.mapping.return_type is not None
    return make_source(lower_map(tree), tree.mapping.return_type, is_plain=False)


def lacks_elements(source: Source, arguments: Sequence[Any], size: int) -> bool:
    """Whether a buffer lacks elements that loads of several elements would read before the map does."""
    return any(
        isinstance(arguments[position], Buffer)
        and arguments[position].mem_size < size * source.annotations[position].__args__[0].item_size
        for position, _ in source.views
    )


def build_tree(x: MappedArray) -> tuple[Tree, tuple[Any, ...]]:
    """Return the tree of a map, which its kernels depend on, and the arguments of their launches."""
    children, arguments, sizes = _split_arguments(x.mapping.buffer_types, x.arguments, x.shape)
    return Tree(x.mapping, children, x.size == 1), (*arguments, *sizes)


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
            kinds, own = find_spread(shape, value.shape)
            inner, leaves, spreads = _split_arguments(
                value.mapping.buffer_types, value.arguments, value.shape
            )
            children.append(Tree(value.mapping, inner, value.size == 1, kinds))
            arguments += leaves
            sizes += (*own, *spreads)
            continue
        if not is_value(annotation):
            children.append(Whole(annotation))
        elif isinstance(value, Buffer):
            value.require_alive()
            kinds, own = find_spread(shape, value.shape)
            children.append(Stored(value.var_type, value.size == 1, kinds))
            sizes += own
        else:
            children.append(Number(annotation, isinstance(value, BoundVariable)))
        arguments.append(value)
    return tuple(children), arguments, sizes
