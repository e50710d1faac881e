"""What functions on arrays take: a buffer, or a map called with its arguments."""

from typing import Any

from vkdispatch.arrays.lowering import Number, Stored, Tree, Whole, lowered, spread
from vkdispatch.arrays.mapping import Source, identity_map, make_source
from vkdispatch.arrays.remembering import remembered
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.context import Context
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import BoundVariable
from vkdispatch.shader.map import MappedArray, is_value
from vkdispatch.shader.observation import checks_of
from vkdispatch.shader.parameters import given

# What functions on arrays take.
ArrayLike = Buffer[Any] | MappedArray


@record(eq=False)
class Operand:
    """An array as a kernel takes it.

    Attributes
    ----------
    shape, size, var_type
        Of the array.
    context
        Where it is.
    source
        How a kernel gets its elements.
    arguments
        What the kernel is launched with: one for each of `source.annotations`.
    name
        What messages call it.
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
        """What the kernel is launched with for `source.views`, if it takes them."""
        return tuple(self.arguments[position] for position, _ in self.source.views)


def operand(x: object, name: str = "x") -> Operand:
    """Return an array as kernels take it.

    Parameters
    ----------
    name
        What messages call it.

    Raises
    ------
    TypeError
        It is neither a buffer nor a map called with its arguments.
    """
    if isinstance(x, Buffer):
        x.require_alive()
        source = fitting(plain_source(x.var_type), x.size)
        return Operand(x.shape, x.size, x.var_type, x.context, source, (x,), name)
    if not isinstance(x, MappedArray):
        raise ArgumentTypeError(
            f"{name}: expected a vd.Buffer or a map called with its arguments, got {given(x)}; make a buffer "
            "with vd.asbuffer(...)"
        )
    tree, arguments = tree_of(x)
    source = fitting(_mapped_source(tree), x.size)
    if any(_lacks(arguments[position], kind, x.size) for position, kind in _viewed(source)):
        source = source.elementwise()
    return Operand(x.shape, x.size, x.var_type, x.context, source, arguments, name)


def fitting(source: Source, size: int) -> Source:
    """Return the source as arrays of a size allow: a checked kernel's views must have an element."""
    return source.elementwise() if size < source.together and checks_of(None) else source


@remembered
def plain_source(kind: DType) -> Source:
    """Return the source of a buffer's elements as they are."""
    return make_source(identity_map(kind), kind, plain=True)


@remembered
def _mapped_source(tree: Tree) -> Source:
    assert tree.mapping.return_type is not None
    return make_source(lowered(tree), tree.mapping.return_type, plain=False)


def _viewed(source: Source) -> list[tuple[int, DType]]:
    return [(position, source.annotations[position].__args__[0]) for position, _ in source.views]


def _lacks(buffer: Any, kind: DType, size: int) -> bool:
    """Whether a buffer lacks some of the elements that loads of several would read ahead of the map."""
    return bool(buffer.mem_size < size * kind.item_size)


def tree_of(x: MappedArray) -> tuple[Tree, tuple[Any, ...]]:
    """Return what the kernels of a map depend on, and the arguments of their launches."""
    children, arguments, sizes = _parts_of(x.mapping.buffer_types, x.arguments, x.shape)
    return Tree(x.mapping, children, x.size == 1), (*arguments, *sizes)


def children_of(
    annotations: Any, values: tuple[Any, ...], shape: tuple[int, ...]
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the parts of a tree for some parameters of a map to a shape, and the arguments of launches."""
    children, arguments, sizes = _parts_of(annotations, values, shape)
    return tuple(children), (*arguments, *sizes)


def _parts_of(
    annotations: Any, values: tuple[Any, ...], shape: tuple[int, ...]
) -> tuple[tuple[Any, ...], list[Any], list[int]]:
    """Return the parts of a tree, and what launches are given: the leaves, and the sizes of spreads."""
    children: list[Any] = []
    arguments: list[Any] = []
    sizes: list[int] = []
    for annotation, value in zip(annotations, values, strict=True):
        if isinstance(value, MappedArray):
            kinds, own = spread(shape, value.shape)
            inner, leaves, spreads = _parts_of(value.mapping.buffer_types, value.arguments, value.shape)
            children.append(Tree(value.mapping, inner, value.size == 1, kinds))
            arguments += leaves
            sizes += (*own, *spreads)
            continue
        if not is_value(annotation):
            children.append(Whole(annotation))
        elif isinstance(value, Buffer):
            value.require_alive()
            kinds, own = spread(shape, value.shape)
            children.append(Stored(value.var_type, value.size == 1, kinds))
            sizes += own
        else:
            children.append(Number(annotation, isinstance(value, BoundVariable)))
        arguments.append(value)
    return tuple(children), arguments, sizes
