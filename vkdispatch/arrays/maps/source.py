"""Sources: mapping functions inside kernels on arrays, and how their buffers are loaded."""

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
from vkdispatch.codegen.arguments import Annotation, buffer
from vkdispatch.codegen.objects.buffers import BufferVariable
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir import Kernel, Op, Register, expressions_of, nodes, walk
from vkdispatch.control_flow.replacement import prepare_kernel
from vkdispatch.shader.map import MappingFunction, mapped_at, mapped_index


def identity_map(kind: DType) -> MappingFunction:
    """Return the mapping function that returns the elements of its only buffer."""

    def element(array: Any) -> Any:
        return array[mapped_index()]

    return MappingFunction([buffer[kind]], kind, element)


class _Element(BufferVariable):
    """A buffer whose element at the mapped index may be known already."""

    __slots__ = ("is_read", "known")

    is_read: bool
    known: Any

    def __init__(self, buffer: BufferVariable, known: Any = None) -> None:
        super().__init__(buffer.storage)
        self.is_read = False
        self.known = known

    def __getitem__(self, index: Any) -> ShaderVariable:
        if isinstance(index, ShaderVariable) and index.expr is mapped_index().expr:
            self.is_read = True
            if self.known is not None:
                return ShaderVariable(self.known._value())
        return super().__getitem__(index)


def forget_element(variable: Any) -> Any:
    """Return an argument without its known element, for another `mapped_index` than that of the kernel."""
    return BufferVariable(variable.storage) if isinstance(variable, _Element) else variable


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
        size: int = self.mapping.buffer_types[0].__args__[0].item_size
        return size

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
        with vc.scope_block(), mapped_at(name_position(index) if self.uses_index else index):
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
            unpack_elements(_kind(self.mapping, argument), self.together, word)
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
    together = count_per_load([_kind(mapping, position) for position in read])
    views = tuple(
        (position, view)
        for position in read
        if (view := view_type(_kind(mapping, position), together)) is not None
    )
    return replace(single, together=together, views=views) if views and together > 1 else single


def _find_uses(source: Source) -> tuple[list[int], bool, bool]:
    """Find how a map uses its arguments.

    Returns
    -------
    list
        Positions of the arguments whose element at the mapped index it reads.
    bool
        Whether it writes to any argument.
    bool
        Whether it uses the index other than to access buffers.
    """
    with vc.shader_context(vc.ShaderFlags.NO_EXEC_BOUNDS) as context:
        arguments = context.declare_input_arguments(source.mapping.buffer_types, source.names)
        wrapped = [_Element(each) if type(each) is BufferVariable else each for each in arguments]
        registers: list[Any] = []

        def probe(*variables: Any) -> None:
            index = vc.global_invocation_id().x.to_register()
            registers.append(index.expr.value)
            source.trace(variables, ShaderVariable(index.expr))

        prepare_kernel(probe, rewrite=True)(*wrapped)
        description = context.get_description("probe")
    is_writing = any(writes for _, writes in description.binding_access)
    read = [i for i, each in enumerate(wrapped) if isinstance(each, _Element) and each.is_read]
    return read, is_writing, _is_used_elsewhere(description.kernel, registers[0])


def name_position(index: Any) -> ShaderVariable:
    """Return an index in a register that is marked as a position."""
    builder = vc.get_builder()
    return ShaderVariable(builder.declare(index.var_type, index.expr, "mapped_index", position=True))


def _is_used_elsewhere(traced: Kernel, register: Register) -> bool:
    """Whether a register is used other than as a place in a buffer."""
    values = [expr for statement in walk(traced.body) for expr in expressions_of(statement)]
    operands = [arg for expr in nodes(values) if expr.op is not Op.ELEMENT for arg in expr.args]
    return any(expr.value is register for expr in (*values, *operands))


class MapName(str):
    """Name of an argument of a mapping function, which changes if the kernel has the same name."""

    __slots__ = ()


def list_argument_names(mapping: MappingFunction) -> list[str]:
    """Return the names of a mapping function's arguments."""
    names = list(inspect.signature(mapping.mapping_function).parameters)
    count = len(mapping.buffer_types)
    return [*map(MapName, names if len(names) == count else [f"param{i}" for i in range(count)])]


def make_distinct(names: Sequence[str]) -> list[str]:
    """Return unique names; names of maps change where they clash."""
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
