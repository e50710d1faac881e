"""The user's mapping function inside a kernel on arrays: the index it asks for, and the buffers it reads."""

import inspect
from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.values.elements import (
    count_per_load,
    unpack_elements,
    view_type,
    wide_type,
    wrap_integer,
)
from vkdispatch.base.dtype import DType, compute_type
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record, replace
from vkdispatch.codegen.analysis import nodes
from vkdispatch.codegen.buffers import BufferVariable
from vkdispatch.codegen.ir import Kernel, Op, Register, expressions_of, walk
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.rewrite.functions import kernel
from vkdispatch.shader.map import MappingFunction, mapped_at, mapped_index


def identity_map(kind: DType) -> MappingFunction:
    """Return the mapping function that gives each element of its one buffer."""

    def element(buffer: Any) -> Any:
        return buffer[mapped_index()]

    annotation: Any = vc.Buff
    return MappingFunction([annotation[kind]], kind, element)


class _Element(BufferVariable):
    """A buffer whose element at the mapped index is known already."""

    __slots__ = ("asked", "known")

    asked: bool
    known: Any

    def __init__(self, buffer: BufferVariable, known: Any = None) -> None:
        super().__init__(buffer.storage)
        self.asked = False
        self.known = known

    def __getitem__(self, index: Any) -> ShaderVariable:
        if isinstance(index, ShaderVariable) and index.expr is mapped_index().expr:
            self.asked = True
            if self.known is not None:
                return ShaderVariable(self.known._value())
        return super().__getitem__(index)


def any_element(variable: Any) -> Any:
    """Return an argument of which no element is known: where `mapped_index` is not the kernel's own."""
    return BufferVariable(variable.storage) if isinstance(variable, _Element) else variable


@record
class Source:
    """Where a kernel's values come from: a mapping function, and how its buffers are loaded.

    Attributes
    ----------
    mapping
        What gives a value for each index.
    is_plain
        Whether it gives the elements of its one buffer as they are.
    out_type
        The result's dtype; `wide_type` of it is what values are combined in.
    together
        How many elements one load takes.
    views
        Positions of the arguments that are loaded so, and the types of the loads.
    is_writing
        Whether the mapping function writes to its buffers: then it runs exactly once for each element.
    named
        Whether it does more with the index than to look there: then that is a register, so that in kernels
        for large buffers conversions of it see all of its bits.
    """

    mapping: MappingFunction
    is_plain: bool
    out_type: DType
    together: int = 1
    views: tuple[tuple[int, DType], ...] = ()
    is_writing: bool = False
    named: bool = False

    @property
    def item_size(self) -> int:
        """Bytes of an element of the first buffer."""
        size: int = self.mapping.buffer_types[0].__args__[0].item_size
        return size

    @property
    def names(self) -> list[str]:
        """Names of the mapping function's arguments."""
        return argument_names(self.mapping)

    @property
    def annotations(self) -> list[Any]:
        """Annotations of the mapping function's arguments."""
        return self.mapping.buffer_types

    @property
    def parameters(self) -> list[tuple[str, Any]]:
        """Names and annotations of the mapping function's arguments, as `traced` takes them."""
        return list(zip(self.names, self.annotations, strict=True))

    def prefix_parameters(self, prefix: str) -> list[tuple[str, Any]]:
        """Return the parameters with names that begin with `prefix` and an underscore."""
        return [(f"{prefix}_{name}", annotation) for name, annotation in self.parameters]

    def elementwise(self) -> "Source":
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
            return element if element.var_type is wide else element.to_dtype(wide)
        variables = list(arguments)
        for (position, _), element in zip(self.views, known, strict=False):
            narrow = compute_type(_kind(self.mapping, position))
            if element.var_type is not narrow:
                element = element.to_dtype(narrow)
            variables[position] = _Element(arguments[position], element)
        return self.trace(variables, index)

    def trace(self, variables: Sequence[Any], index: Any) -> Any:
        """Trace the mapping function for an index, on variables for its arguments."""
        wide, narrow = wide_type(self.out_type), compute_type(self.out_type)
        register = vc.new_register(wide)
        with vc.scope_block(), mapped_at(name_position(index) if self.named else index):
            result = self.mapping.trace(*variables)
            if result is None:
                raise ArgumentValueError(
                    f"map {_name(self.mapping)!r} must return a {self.out_type.name}, got None"
                )
            if not (isinstance(result, ShaderVariable) and result.var_type is wide) and narrow is not wide:
                stored = vc.new_register(narrow)
                stored[:] = result
                result = stored.to_dtype(wide)
            register[:] = result
            # what is not stored is no larger than what would be
            register[:] = wrap_integer(register, self.out_type)
        return register

    def load(self, views: Sequence[Any], position: Any) -> list[Any]:
        """Load from every view at a position, counted in loads."""
        return [view[position].to_register() for view in views]

    def values(self, arguments: Sequence[Any], position: Any, words: Sequence[Any]) -> list[Any]:
        """Return the values of all elements of what was loaded at a position."""
        if self.together == 1:
            return [self.value(arguments, position)]
        known = [
            unpack_elements(_kind(self.mapping, argument), self.together, word)
            for (argument, _), word in zip(self.views, words, strict=True)
        ]
        return [
            self.value(arguments, position * self.together + i, [elements[i] for elements in known])
            for i in range(self.together)
        ]


def make_source(mapping: MappingFunction, out_type: DType, *, plain: bool) -> Source:
    """Find out how a mapping function's buffers can be loaded, by tracing it once.

    Raises
    ------
    TypeError, ValueError
        What the mapping function does is wrong, or what it returns is not of `out_type`.
    """
    single = Source(mapping, plain, out_type)
    asked, stores, named = ([0], False, False) if plain else _asked(single)
    single = replace(single, named=named)
    if stores:
        # what is loaded ahead would be out of date
        return replace(single, is_writing=True)
    together = count_per_load([_kind(mapping, position) for position in asked])
    views = tuple(
        (position, view)
        for position in asked
        if (view := view_type(_kind(mapping, position), together)) is not None
    )
    return replace(single, together=together, views=views) if views and together > 1 else single


def _asked(source: Source) -> tuple[list[int], bool, bool]:
    """Find out what a map does.

    Returns
    -------
    list
        The arguments of which it reads the element at the mapped index.
    bool
        Whether it writes to any.
    bool
        Whether it uses the index in another way.
    """
    with vc.shader_context(vc.ShaderFlags.NO_EXEC_BOUNDS) as context:
        arguments = context.declare_input_arguments(source.mapping.buffer_types, source.names)
        wrapped = [_Element(each) if type(each) is BufferVariable else each for each in arguments]
        registers: list[Any] = []

        def probe(*variables: Any) -> None:
            index = vc.global_invocation_id().x.to_register()
            registers.append(index.expr.value)
            source.trace(variables, ShaderVariable(index.expr))

        kernel(probe, rewrite=True)(*wrapped)
        description = context.get_description("probe")
    stores = any(writes for _, writes in description.binding_access)
    asked = [i for i, each in enumerate(wrapped) if isinstance(each, _Element) and each.asked]
    return asked, stores, _used(description.kernel, registers[0])


def name_position(index: Any) -> ShaderVariable:
    """Return an index in a register that is known to be a position."""
    builder = vc.get_builder()
    return ShaderVariable(builder.declare(index.var_type, index.expr, "mapped_index", position=True))


def _used(traced: Kernel, register: Register) -> bool:
    """Whether a register is read other than as a place in a buffer."""
    values = [expr for statement in walk(traced.body) for expr in expressions_of(statement)]
    operands = [arg for expr in nodes(values) if expr.op is not Op.ELEMENT for arg in expr.args]
    return any(expr.value is register for expr in (*values, *operands))


class MapName(str):
    """Name of a mapping function's argument: a kernel that has the same name itself gives it another."""

    __slots__ = ()


def argument_names(mapping: MappingFunction) -> list[str]:
    """Return the names of a mapping function's arguments."""
    names = list(inspect.signature(mapping.mapping_function).parameters)
    count = len(mapping.buffer_types)
    return [*map(MapName, names if len(names) == count else [f"param{i}" for i in range(count)])]


def make_distinct(names: Sequence[str]) -> list[str]:
    """Return unique names: parameters of maps are renamed where they clash."""
    own = {name for name in names if not isinstance(name, MapName)}
    taken: set[str] = set()
    distinct = []
    for wanted in names:
        name, others = str(wanted), taken | own if isinstance(wanted, MapName) else taken
        while name in others:
            name += "_"
        taken.add(name)
        distinct.append(name)
    return distinct


def _kind(mapping: MappingFunction, position: int) -> DType:
    kind: DType = mapping.buffer_types[position].__args__[0]
    return kind


def _name(mapping: MappingFunction) -> str:
    return getattr(mapping.mapping_function, "__name__", "map")
