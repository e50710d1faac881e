"""Lowering: maps of values and maps of maps become one map of buffers, as kernels need it.

scaled(weighted(x, w), 2.0)        a call, as the user writes it
Tree(scaled)                       its structure, without the arguments
Tree(weighted)
Stored, Stored
Number
scaled_(x: Buff, w: Buff, factor: Const)     its lowered map, of the leaves in order

Arguments that broadcast have a spread, a text with a letter for each axis of the mapped array: "k" if the
argument has the axis (it is kept), "b" if it is broadcast along it. Axes of size 1 are left out, and
neighbours with the same letter are joined. The kernel depends on this text only. The sizes are constants of
launches, behind all leaves.
"""

import inspect
from collections.abc import Iterator
from typing import Any, Union

import vkdispatch.codegen as vc
from vkdispatch.arrays.maps.source import forget_element, name_position
from vkdispatch.arrays.values.elements import wrap_integer
from vkdispatch.base.dtype import DType, compute_type, uint32
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.codegen.arguments import Annotation, buffer, constant
from vkdispatch.shader.map import MappingFunction, mapped_at, mapped_index


@record
class Whole:
    """An argument that kernels take as it is: a buffer, a constant, an image."""

    annotation: Annotation


@record
class Stored:
    """Elements of a buffer of this dtype; if `single`, its only element for all indices."""

    kind: DType
    single: bool
    spread: str = ""


@record
class Number:
    """A number of the dtype of the parameter; if `variable`, a graph binds it."""

    kind: DType
    variable: bool = False


@record
class Tree:
    """A map and its parameters; if `single`, an array of one element."""

    mapping: MappingFunction
    children: tuple[Union[Whole, Stored, Number, "Tree"], ...]
    single: bool = False
    spread: str = ""


# Number of sizes that `_find_place` needs.
_SIZES = {"": 0, "kb": 1, "bk": 1, "kbk": 2, "bkb": 2}


def find_spread(shape: tuple[int, ...], own: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
    """Return how an array of the shape `own` broadcasts to `shape`, and the sizes that kernels need for it.

    "" and no sizes where flat indices are the same, or `shape` has no elements.

    Raises
    ------
    ValueError
        A size has more than 32 bits.
    """
    if own == shape or 0 in shape or set(own) <= {1}:
        return "", ()
    kinds, extents = "", [1]
    for size, have in zip(shape, (*(1,) * (len(shape) - len(own)), *own), strict=True):
        if size == 1:
            continue
        kind = "k" if have == size else "b"
        if not kinds.endswith(kind):
            kinds += kind
            extents.append(1)
        extents[-1] *= size
    if "b" not in kinds:
        return "", ()
    sizes = (extents[-1],) if len(kinds) == 2 else (extents[-1], extents[-2])
    if max(sizes) >> 32:
        raise ArgumentValueError(
            f"maps: an array of the shape {own} does not broadcast to {shape}: axes of 2**32 elements or "
            "more are too long"
        )
    return kinds, sizes


def _find_place(kinds: str, index: Any, sizes: Iterator[Any]) -> Any:
    """Return the flat index in an array that broadcasts, for the one in the mapped array."""
    inner, *rest = [next(sizes) for _ in range(_SIZES[kinds])]
    if kinds == "bk":
        place = index % inner
    elif kinds == "kb":
        place = index // inner
    elif kinds == "bkb":
        place = (index // inner) % rest[0]
    else:
        place = (index // inner) // rest[0] * inner + index % inner
    return name_position(place)


def lower_map(tree: Tree) -> MappingFunction:
    """Return the map of the leaves of a tree. A map that kernels can take is returned unchanged."""
    whole = len(tree.children) == len(tree.mapping.buffer_types)
    if whole and all(isinstance(child, Whole) for child in tree.children):
        return tree.mapping
    annotations = list(_list_annotations(tree))
    names = _list_names(tree)
    sizes = _count_sizes(tree)
    annotations += [constant[uint32]] * sizes
    names += [f"size{i}" for i in range(sizes)]
    value = len(tree.children) < len(tree.mapping.buffer_types)

    def function(*variables: Any) -> Any:
        leaves = iter(variables)
        spreads = iter(variables[len(variables) - sizes :])
        return _apply(tree, leaves, spreads, [next(leaves)] if value else [])

    function.__name__ = function.__qualname__ = tree.mapping.name
    function.stands_for = tree.mapping.mapping_function  # type: ignore[attr-defined]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    function.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, kind) for name in names]
    )
    return MappingFunction(annotations, tree.mapping.return_type, function)


def _apply(tree: Tree, variables: Iterator[Any], sizes: Iterator[Any], values: list[Any]) -> Any:
    """Trace a tree on variables for its leaves and sizes; `values` are the arguments before those."""
    own = tree.mapping.buffer_types
    arguments = [_convert(value, kind) for value, kind in zip(values, own, strict=False)]
    for child, annotation in zip(tree.children, own[len(values) :], strict=True):
        arguments.append(_make_argument(child, annotation, variables, sizes))
    return tree.mapping.trace(*arguments)


def _make_argument(child: Any, annotation: Any, variables: Iterator[Any], sizes: Iterator[Any]) -> Any:
    if isinstance(child, Tree):
        index: Any = vc.to_dtype(uint32, 0) if child.single else mapped_index()
        if child.spread:
            index = _find_place(child.spread, index, sizes)
        if child.single or child.spread:
            variables = map(forget_element, variables)
        assert child.mapping.return_type is not None
        register = vc.new_register(compute_type(child.mapping.return_type))
        with vc.scope_block(), mapped_at(index):
            result = _apply(child, variables, sizes, [])
            if result is None:
                raise ArgumentValueError(f"map {child.mapping.name!r} must return a value, got None")
            register[:] = result
            register[:] = wrap_integer(register, child.mapping.return_type)
        return _convert(register, annotation, child.mapping.return_type)
    variable = next(variables)
    if isinstance(child, Stored):
        index = 0 if child.single else mapped_index()
        if child.spread:
            index = _find_place(child.spread, index, sizes)
        variable = variable[index]
    if isinstance(child, Whole):
        return variable
    return _convert(variable, annotation, child.kind)


def _convert(value: Any, annotation: Any, known: DType | None = None) -> Any:
    """Return a value of the dtype of its parameter, in a register, however often the map uses it.

    `known` is the dtype that the value fits already.
    """
    kind = compute_type(annotation)
    value = value.to_register()
    if value.var_type is not kind:
        value = value.to_dtype(kind)
    return value if known is annotation else wrap_integer(value, annotation).to_register()


def _list_annotations(tree: Tree) -> Iterator[Annotation]:
    for child in tree.children:
        if isinstance(child, Tree):
            yield from _list_annotations(child)
        elif isinstance(child, Stored):
            yield buffer[child.kind]
        elif isinstance(child, Number):
            yield (vc.Var if child.variable else constant)[compute_type(child.kind)]
        else:
            yield child.annotation


def _count_sizes(tree: Tree) -> int:
    own = sum(_SIZES[child.spread] for child in tree.children if isinstance(child, (Stored, Tree)))
    return own + sum(_count_sizes(child) for child in tree.children if isinstance(child, Tree))


def _list_names(tree: Tree) -> list[str]:
    """Return the name of each leaf: the names of the parameters on the path to it, joined."""
    count = len(tree.mapping.buffer_types)
    own = list(inspect.signature(tree.mapping.mapping_function).parameters)
    own = own if len(own) == count else [f"param{i}" for i in range(count)]
    names: list[str] = []
    for name, child in zip(own[count - len(tree.children) :], tree.children, strict=True):
        inner = [f"{name}_{each}" for each in _list_names(child)] if isinstance(child, Tree) else [name]
        names.extend(each if each not in names else f"{each}_{len(names)}" for each in inner)
    return names
