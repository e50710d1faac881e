"""How mapping functions access their arguments: found by tracing them once."""

from collections.abc import Callable, Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch import control_flow
from vkdispatch.codegen.annotations import Annotation
from vkdispatch.codegen.description import ShaderDescription
from vkdispatch.codegen.objects.resources import BufferVariable
from vkdispatch.compiler.analyses.launch_values import definitions_of
from vkdispatch.compiler.ir import Expr, Kernel, Op, Register, Storage, expressions_of, nodes, walk
from vkdispatch.families.values import Access
from vkdispatch.shader.map import mapped_index

# ---- How maps use their buffers: whether only at the mapped index, and whether they write ----------------


_Trace = Callable[[Sequence[Any], Any], object]


def _trace_map(
    names: Sequence[str],
    annotations: Sequence[Annotation],
    trace: _Trace,
    wrap: Callable[[Any], Any] = lambda variable: variable,
) -> tuple[list[Any], ShaderDescription, Register]:
    """Trace a map in a kernel of its own. Return its arguments, the kernel, and the register of the index.

    `wrap` makes the arguments of the variables of the kernel.
    """
    registers: list[Any] = []

    def probe(*arguments: Any) -> None:
        index = vc.global_invocation_id().x.to_register()
        registers.append(index.expr.value)
        trace(arguments, vc.ShaderVariable(index.expr))

    with vc.shader_context(vc.ShaderFlags.NO_EXEC_BOUNDS) as context:
        arguments = [*map(wrap, context.declare_input_arguments(list(annotations), list(names)))]
        control_flow.prepare_kernel(probe, rewrite=True)(*arguments)
        description = context.get_description("probe")
    return arguments, description, registers[0]


def find_accesses(
    names: Sequence[str], annotations: Sequence[Annotation], trace: _Trace
) -> tuple[Access, ...]:
    """Return how a map uses each of its arguments.

    Parameters
    ----------
    names, annotations
        Names and annotations of the arguments.
    trace
        Traces the map, given variables for the arguments and a mapped index.
    """
    variables, description, mapped = _trace_map(names, annotations, trace)
    elsewhere = _find_elsewhere(description.kernel, mapped)
    touched = description.binding_access[description.resource_binding_base :]
    return tuple(
        Access(variable.storage.index not in elsewhere, touched[variable.storage.index][1])
        if isinstance(variable, BufferVariable) and isinstance(variable.storage, Storage)
        else Access()
        for variable in variables
    )


def _find_elsewhere(traced: Kernel, mapped: Register) -> set[int]:
    """Return the indices of the buffers that a kernel accesses elsewhere than at the mapped index."""
    statements = list(walk(traced.body))
    known = definitions_of(statements)

    def is_mapped(index: Expr) -> bool:
        while True:
            if index.value is mapped:
                return True
            if index.op is Op.CONSTRUCT and len(index.args) == 1:
                index = index.args[0]
            elif isinstance(index.value, Register) and index.value in known:
                index = known[index.value]
            else:
                return False

    # raw GLSL: its buffers are known, but not which elements it accesses
    used = set(traced.reads | traced.writes)
    for expr in nodes(expr for statement in statements for expr in expressions_of(statement)):
        if expr.op is Op.ELEMENT and isinstance(expr.value, Storage) and not is_mapped(expr.args[0]):
            used.add(expr.value.index)
    return used


# ---- Elements that are known before a map reads them -----------------------------------------------------


class KnownElement(BufferVariable):
    """A buffer whose element at the mapped index may be known already."""

    __slots__ = ("is_read", "known")

    is_read: bool
    known: Any

    def __init__(self, buffer: BufferVariable, known: Any = None) -> None:
        super().__init__(buffer.storage)
        self.is_read = False
        self.known = known

    def __getitem__(self, index: Any) -> vc.ShaderVariable:
        if isinstance(index, vc.ShaderVariable) and index.expr is mapped_index().expr:
            self.is_read = True
            if self.known is not None:
                return vc.ShaderVariable(self.known._value())
        return super().__getitem__(index)


def forget_element(variable: Any) -> Any:
    """Return an argument without its known element, for another `mapped_index` than that of the kernel."""
    return BufferVariable(variable.storage) if isinstance(variable, KnownElement) else variable


def find_uses(
    names: Sequence[str], annotations: Sequence[Annotation], trace: _Trace
) -> tuple[list[int], bool, bool]:
    """Find how a map uses its arguments. The parameters are those of `find_accesses`.

    Returns
    -------
    list
        Positions of the arguments whose element at the mapped index it reads.
    bool
        Whether it writes to any argument.
    bool
        Whether it uses the index other than to access buffers.
    """

    def wrap(variable: Any) -> Any:
        return KnownElement(variable) if type(variable) is BufferVariable else variable

    arguments, description, mapped = _trace_map(names, annotations, trace, wrap)
    is_writing = any(writes for _, writes in description.binding_access)
    read = [
        i for i, argument in enumerate(arguments) if isinstance(argument, KnownElement) and argument.is_read
    ]
    return read, is_writing, _is_used_elsewhere(description.kernel, mapped)


def _is_used_elsewhere(traced: Kernel, register: Register) -> bool:
    """Whether a register is used other than as a place in a buffer."""
    values = [expr for statement in walk(traced.body) for expr in expressions_of(statement)]
    operands = [arg for expr in nodes(values) if expr.op is not Op.ELEMENT for arg in expr.args]
    return any(expr.value is register for expr in (*values, *operands))
