"""Sources: maps inside kernels, how their buffers are loaded, and maps of maps as one."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType, compute_type, uint32
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record, replace
from vkdispatch.codegen.annotations import Annotation, buffer, constant
from vkdispatch.families.stored import store_results
from vkdispatch.families.values import (
    count_per_load,
    divide,
    unpack_elements,
    view_type,
    wide_type,
    wrap_integer,
)
from vkdispatch.shader.map import DeferredMap, MappingFunction, mapped_at, mapped_index

# ---- Sources: mapping functions inside kernels on arrays, and how their buffers are loaded ---------------


def _element(array: Any) -> Any:
    return array[mapped_index()]


def identity_map(kind: DType) -> MappingFunction:
    """Return the mapping function that returns the elements of its only buffer."""
    return DeferredMap(_element, (kind,), (), kind)


def kind_of_argument(mapping: MappingFunction, position: int) -> DType:
    """Return the dtype of the elements of an argument of a mapping function, a buffer."""
    if isinstance(mapping, DeferredMap):
        return mapping.kinds[position]
    kind: DType = mapping.buffer_types[position].__args__[0]
    return kind


@record
class Source:
    """Where a kernel's values come from: a mapping function, and how its buffers are loaded.

    Attributes
    ----------
    mapping
        The function that returns a value for each index.
    is_plain
        Whether it returns the elements of its only buffer.
    out_type
        The dtype of the values; they are combined in `wide_type` of it.
    together
        Elements of a load.
    views
        Positions of the arguments that are loaded several elements at a time, and the types of the loads.
    is_writing
        Whether the mapping function writes to its buffers. Then it must run exactly once for each element.
    uses_index
        Whether it uses the index other than to access buffers. Then the index is a register, so that in
        kernels for large buffers conversions see all its bits.
    """

    mapping: MappingFunction
    is_plain: bool
    out_type: DType
    together: int = 1
    views: tuple[tuple[int, DType], ...] = ()
    is_writing: bool = False
    uses_index: bool = False

    @property
    def item_size(self) -> int:
        """Bytes of an element of the first buffer."""
        return kind_of_argument(self.mapping, 0).item_size

    @property
    def names(self) -> list[str]:
        """Names of the mapping function's arguments."""
        return list_argument_names(self.mapping)

    @property
    def annotations(self) -> list[Annotation]:
        """Annotations of the mapping function's arguments."""
        return self.mapping.buffer_types

    @property
    def parameters(self) -> list[tuple[str, Annotation]]:
        """Names and annotations of the arguments of the mapping function, as `trace_kernel` takes them."""
        return list(zip(self.names, self.annotations, strict=True))

    def prefix_parameters(self, prefix: str) -> list[tuple[str, Annotation]]:
        """Return the parameters with names that begin with `prefix` and an underscore."""
        return [(f"{prefix}_{name}", annotation) for name, annotation in self.parameters]

    def elementwise(self) -> Source:
        """Return the same source, loaded element by element."""
        return replace(self, together=1, views=())

    def value(self, arguments: Sequence[Any], index: Any, known: Sequence[Any] = ()) -> Any:
        """Trace the mapping function for the element at an index.

        `known` are the elements there of the arguments with views.
        """
        wide = wide_type(self.out_type)
        if self.is_plain:
            if known:
                return known[0]
            element = arguments[0][index].to_register()
            return element.to_dtype(wide)
        from vkdispatch.families.accesses import KnownElement  # something is traced

        variables = list(arguments)
        for (position, _), element in zip(self.views, known, strict=False):
            narrow = compute_type(kind_of_argument(self.mapping, position))
            if element.var_type is not narrow:
                element = element.to_dtype(narrow)
            variables[position] = KnownElement(arguments[position], element)
        return self.trace(variables, index)

    def trace(self, variables: Sequence[Any], index: Any) -> Any:
        """Trace the mapping function for an index, on variables for its arguments."""
        wide, narrow = wide_type(self.out_type), compute_type(self.out_type)
        register = vc.new_register(wide)
        with vc.scope_block(), mapped_at(name_position(index) if self.uses_index else index):
            result = self.mapping.trace(*variables)
            if result is None:
                raise ArgumentValueError(
                    f"map {self.mapping.name!r} must return a {self.out_type.name}, got None"
                )
            if not (isinstance(result, vc.ShaderVariable) and result.var_type is wide) and narrow is not wide:
                stored = vc.new_register(narrow)
                stored[:] = result
                result = stored.to_dtype(wide)
            register[:] = result
            # the value wraps around as a stored one would
            register[:] = wrap_integer(register, self.out_type)
        return register

    def load(self, views: Sequence[Any], position: Any) -> list[Any]:
        """Load from every view at a position that counts loads."""
        return [view[position].to_register() for view in views]

    def values(self, arguments: Sequence[Any], position: Any, words: Sequence[Any]) -> list[Any]:
        """Return the values of all elements of a load at a position."""
        if self.together == 1:
            return [self.value(arguments, position)]
        known = [
            unpack_elements(kind_of_argument(self.mapping, argument), self.together, word)
            for (argument, _), word in zip(self.views, words, strict=True)
        ]
        return [
            self.value(arguments, position * self.together + i, [elements[i] for elements in known])
            for i in range(self.together)
        ]


def make_source(mapping: MappingFunction, out_type: DType, *, is_plain: bool) -> Source:
    """Return the source of a mapping function, which is traced once to find how its buffers can be loaded.

    Raises
    ------
    TypeError, ValueError
        The mapping function cannot be traced, or does not return a value of `out_type`.
    """
    single = Source(mapping, is_plain, out_type)
    read, is_writing, uses_index = ([0], False, False) if is_plain else _find_uses(single)
    single = replace(single, uses_index=uses_index)
    if is_writing:
        # elements that are loaded ahead would be out of date
        return replace(single, is_writing=True)
    together = count_per_load([kind_of_argument(mapping, position) for position in read])
    views = tuple(
        (position, view)
        for position in read
        if (view := view_type(kind_of_argument(mapping, position), together)) is not None
    )
    return replace(single, together=together, views=views) if views and together > 1 else single


@store_results
def _find_uses(source: Source) -> tuple[list[int], bool, bool]:
    from vkdispatch.families.accesses import find_uses  # something is traced

    return find_uses(source.names, source.annotations, source.trace)


def name_position(index: Any) -> vc.ShaderVariable:
    """Return an index in a register that is marked as a position."""
    builder = vc.get_builder()
    return vc.ShaderVariable(builder.declare(index.var_type, index.expr, "mapped_index", position=True))


class MapName(str):
    """Name of an argument of a mapping function, which changes if the kernel has the same name."""

    __slots__ = ()


def list_argument_names(mapping: MappingFunction) -> list[str]:
    """Return the names of a mapping function's arguments."""
    return [*map(MapName, mapping.parameter_names)]


def make_distinct(names: Sequence[str]) -> list[str]:
    """Return unique names; names of maps change where they clash."""
    fixed = {name for name in names if not isinstance(name, MapName)}
    taken: set[str] = set()
    distinct = []
    for wanted in names:
        name, others = str(wanted), taken | fixed if isinstance(wanted, MapName) else taken
        while name in others:
            name += "_"
        taken.add(name)
        distinct.append(name)
    return distinct


def make_strided_source(source: Source, count: int, is_narrow: bool) -> Source:
    """Return a source of elements of another one that lie at steps along `count` axes.

    Behind its arguments are the lengths of all axes but the first, the steps of all axes, and if there are
    fewer than 2**31 elements (`is_narrow`), what divides by the lengths.
    """
    parts = ("length", "step", "multiplier", "shift")[: 4 if is_narrow else 2]
    names = [MapName(f"{part}{k}") for part in parts for k in range(part != "step", count)]

    def read_strided(*variables: Any) -> Any:
        from vkdispatch.families.accesses import forget_element  # something is traced

        inner = len(source.annotations)
        number = dict(zip(map(str, names), variables[inner:], strict=True))
        place: Any = None
        index: Any = vc.to_dtype(uint32, mapped_index()) if is_narrow else mapped_index()
        for k in range(count - 1, 0, -1):
            length = number[f"length{k}"]
            rest: Any = index // length
            if is_narrow:
                rest = divide(index, number[f"multiplier{k}"], number[f"shift{k}"])
            rest = rest.to_register()
            part = (index - rest * length) * number[f"step{k}"]
            place = part if place is None else part + place
            index = rest
        first = index * number["step0"]
        with mapped_at(name_position(first if place is None else first + place)):
            return source.mapping.trace(*map(forget_element, variables[:inner]))

    mapped = source.mapping.mapping_function
    read_strided.__name__ = read_strided.__qualname__ = source.mapping.name
    read_strided.stands_for = getattr(mapped, "stands_for", mapped)  # type: ignore[attr-defined]
    _name_parameters(read_strided, [*source.names, *names])
    annotations = [*source.annotations, *[constant[uint32]] * len(names)]
    mapping = MappingFunction(annotations, source.out_type, read_strided)
    return make_source(mapping, source.out_type, is_plain=False)


def _name_parameters(function: Any, names: Sequence[str]) -> None:
    """Name the parameters of a function that takes any number."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    function.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])


# ---- Lowering: maps of values and maps of maps become one map of buffers, as kernels need it -------------
#
# scaled(weighted(x, w), 2.0)        a call, as the user writes it
# Tree(scaled)                       its structure, without the arguments
# Tree(weighted)
# Stored, Stored
# Number
# scaled_(x: Buff, w: Buff, factor: Const)     its lowered map, of the leaves in order
#
# Arguments that broadcast have a spread, a text with a letter for each axis of the mapped array: "k" if the
# argument has the axis (it is kept), "b" if it is broadcast along it. Axes of size 1 are left out, and
# neighbours with the same letter are joined. The kernel depends on this text only. The sizes are constants
# of launches, behind all leaves.


@record
class Whole:
    """An argument that kernels take as it is: a buffer, a constant, an image."""

    annotation: Annotation | None


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
    children: tuple[Whole | Stored | Number | Tree, ...]
    single: bool = False
    spread: str = ""


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
    sizes = tuple(reversed(extents[2:]))
    if max(sizes) >> 32:
        raise ArgumentValueError(
            f"maps: an array of the shape {own} does not broadcast to {shape}: axes of 2**32 elements or "
            "more are too long"
        )
    return kinds, sizes


def _find_place(kinds: str, index: Any, sizes: Iterator[Any]) -> Any:
    """Return the flat index in an array that broadcasts, for the one in the mapped array."""
    place: Any = None
    step: Any = None
    for axis in reversed(range(len(kinds))):
        size = next(sizes) if axis else None
        if kinds[axis] == "k":
            part = index % size if axis else index
            part = part if step is None else part * step
            place = part if place is None else part + place
            step = size if step is None or size is None else step * size
        index = index // size if axis else index
    return name_position(place)


def lower_map(tree: Tree) -> MappingFunction:
    """Return the map of the leaves of a tree. A map that kernels can take is returned unchanged."""
    whole = len(tree.children) == tree.mapping.arity
    if whole and all(isinstance(child, Whole) for child in tree.children):
        return tree.mapping
    annotations = list(_list_annotations(tree))
    names = _list_names(tree)
    sizes = _count_sizes(tree)
    annotations += [constant[uint32]] * sizes
    names += [f"size{i}" for i in range(sizes)]
    value = len(tree.children) < tree.mapping.arity

    def function(*variables: Any) -> Any:
        leaves = iter(variables)
        spreads = iter(variables[len(variables) - sizes :])
        return _apply(tree, leaves, spreads, [next(leaves)] if value else [])

    function.__name__ = function.__qualname__ = tree.mapping.name
    function.stands_for = tree.mapping.mapping_function  # type: ignore[attr-defined]
    _name_parameters(function, names)
    return MappingFunction(annotations, tree.mapping.return_type, function)


def _apply(tree: Tree, variables: Iterator[Any], sizes: Iterator[Any], values: list[Any]) -> Any:
    """Trace a tree on variables for its leaves and sizes; `values` are the arguments before those."""
    annotations = tree.mapping.buffer_types
    arguments = [_convert(value, kind) for value, kind in zip(values, annotations, strict=False)]
    for child, annotation in zip(tree.children, annotations[len(values) :], strict=True):
        arguments.append(_make_argument(child, annotation, variables, sizes))
    return tree.mapping.trace(*arguments)


def _make_argument(child: Any, annotation: Any, variables: Iterator[Any], sizes: Iterator[Any]) -> Any:
    if isinstance(child, Tree):
        index: Any = vc.to_dtype(uint32, 0) if child.single else mapped_index()
        if child.spread:
            index = _find_place(child.spread, index, sizes)
        if child.single or child.spread:
            from vkdispatch.families.accesses import forget_element  # something is traced

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
            assert child.annotation is not None
            yield child.annotation


def _count_sizes(tree: Tree) -> int:
    spreads = [child.spread for child in tree.children if isinstance(child, (Stored, Tree))]
    sizes = sum(len(kinds) - 1 for kinds in spreads if kinds)
    return sizes + sum(_count_sizes(child) for child in tree.children if isinstance(child, Tree))


def _list_names(tree: Tree) -> list[str]:
    """Return the name of each leaf: the names of the parameters on the path to it, joined."""
    parameters = tree.mapping.parameter_names
    names: list[str] = []
    for name, child in zip(parameters[len(parameters) - len(tree.children) :], tree.children, strict=True):
        inner = [f"{name}_{leaf}" for leaf in _list_names(child)] if isinstance(child, Tree) else [name]
        names.extend(leaf if leaf not in names else f"{leaf}_{len(names)}" for leaf in inner)
    return names
