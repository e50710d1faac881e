"""Maps of values, and maps of maps, as one map of buffers: what kernels know.

scaled(weighted(x, w), 2.0)        a call, as the user writes it
Tree(scaled)                       what it is made of, without the arguments
Tree(weighted)
Stored, Stored
Number
scaled_(x: Buff, w: Buff, factor: Const)     its lowered map, of the leaves in order
"""

import inspect
from collections.abc import Iterator
from typing import Any, Union

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType, compute_type, uint32
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.rewrite.functions import inlined
from vkdispatch.shader.map import MappingFunction, mapped_at, mapped_index


@record
class Whole:
    """An argument as kernels take it: a buffer, a constant, an image."""

    annotation: Any


@record
class Stored:
    """Elements of a buffer of this dtype; of one element, if `single`, for all indices."""

    kind: DType
    single: bool


@record
class Number:
    """A number, of the parameter's dtype; `variable`: one that a graph binds."""

    kind: DType
    variable: bool = False


@record
class Tree:
    """A map, and what its parameters are; `single`: an array of one element."""

    mapping: MappingFunction
    children: tuple[Union[Whole, Stored, Number, "Tree"], ...]
    single: bool = False


def lowered(tree: Tree) -> MappingFunction:
    """Return the map of a tree's leaves. A map that takes what kernels take is returned as it is."""
    whole = len(tree.children) == len(tree.mapping.buffer_types)
    if whole and all(isinstance(child, Whole) for child in tree.children):
        return tree.mapping
    annotations = list(_annotations(tree))
    names = _names(tree)
    value = len(tree.children) < len(tree.mapping.buffer_types)

    def function(*variables: Any) -> Any:
        given = iter(variables)
        return _applied(tree, given, [next(given)] if value else [])

    function.__name__ = function.__qualname__ = tree.mapping.name
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    function.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, kind) for name in names]
    )
    return MappingFunction(annotations, tree.mapping.return_type, function)


def _applied(tree: Tree, variables: Iterator[Any], values: list[Any]) -> Any:
    """Trace a tree on variables for its leaves; `values` are the arguments before those."""
    own = tree.mapping.buffer_types
    arguments = [_converted(value, kind) for value, kind in zip(values, own, strict=False)]
    for child, annotation in zip(tree.children, own[len(values) :], strict=True):
        arguments.append(_argument(child, annotation, variables))
    return inlined(tree.mapping.mapping_function)(*arguments)


def _argument(child: Any, annotation: Any, variables: Iterator[Any]) -> Any:
    if isinstance(child, Tree):
        index: Any = vc.to_dtype(uint32, 0) if child.single else mapped_index()
        assert child.mapping.return_type is not None
        register = vc.new_register(compute_type(child.mapping.return_type))
        with vc.scope_block(), mapped_at(index):
            result = _applied(child, variables, [])
            if result is None:
                raise ArgumentValueError(f"map {child.mapping.name!r} must return a value, got None")
            register[:] = result
        return _converted(register, annotation)
    variable = next(variables)
    if isinstance(child, Stored):
        variable = variable[0 if child.single else mapped_index()]
    return variable if isinstance(child, Whole) else _converted(variable, annotation)


def _converted(value: Any, annotation: Any) -> Any:
    """Return a value as its parameter has it; loaded once, however often the map uses it."""
    kind = compute_type(annotation)
    value = value.to_register()
    return value if value.var_type is kind else value.to_dtype(kind)


def _annotations(tree: Tree) -> Iterator[Any]:
    buffer: Any = vc.Buff
    constant: Any = vc.Const
    for child in tree.children:
        if isinstance(child, Tree):
            yield from _annotations(child)
        elif isinstance(child, Stored):
            yield buffer[child.kind]
        elif isinstance(child, Number):
            yield (vc.Var if child.variable else constant)[compute_type(child.kind)]
        else:
            yield child.annotation


def _names(tree: Tree) -> list[str]:
    """Return the leaves' names: those of their parameters, with what they are arguments of in front."""
    count = len(tree.mapping.buffer_types)
    own = list(inspect.signature(tree.mapping.mapping_function).parameters)
    own = own if len(own) == count else [f"param{i}" for i in range(count)]
    names: list[str] = []
    for name, child in zip(own[count - len(tree.children) :], tree.children, strict=True):
        inner = [f"{name}_{each}" for each in _names(child)] if isinstance(child, Tree) else [name]
        names.extend(each if each not in names else f"{each}_{len(names)}" for each in inner)
    return names
