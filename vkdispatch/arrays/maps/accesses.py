"""How maps use their buffers: whether only at the mapped index, and whether they write."""

from collections.abc import Callable, Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.record import record
from vkdispatch.codegen.arguments import Annotation
from vkdispatch.codegen.objects.buffers import BufferVariable
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir import Expr, Kernel, Op, Register, Storage, expressions_of, nodes, walk
from vkdispatch.compiler.passes.elementwise import definitions_of
from vkdispatch.control_flow.replacement import prepare_kernel


@record
class Access:
    """How a map uses an argument.

    Attributes
    ----------
    here
        Whether it accesses only the element at the mapped index.
    written
        Whether it writes to the argument.
    """

    here: bool = True
    written: bool = False


def find_accesses(
    names: Sequence[str], annotations: Sequence[Annotation], trace: Callable[[Sequence[Any], Any], object]
) -> tuple[Access, ...]:
    """Return how a map uses each of its arguments.

    Parameters
    ----------
    names, annotations
        Names and annotations of the arguments.
    trace
        Traces the map, given variables for the arguments and a mapped index.
    """
    with vc.shader_context(vc.ShaderFlags.NO_EXEC_BOUNDS) as context:
        variables = context.declare_input_arguments(list(annotations), list(names))
        mapped: list[Any] = []

        def probe(*traced: Any) -> None:
            index = vc.global_invocation_id().x.to_register()
            mapped.append(index.expr.value)
            trace(traced, ShaderVariable(index.expr))

        prepare_kernel(probe, rewrite=True)(*variables)
        description = context.get_description("probe")
    elsewhere = _find_elsewhere(description.kernel, mapped[0])
    touched = description.binding_access[description.resource_binding_base :]
    return tuple(
        Access(each.storage.index not in elsewhere, touched[each.storage.index][1])
        if isinstance(each, BufferVariable) and isinstance(each.storage, Storage)
        else Access()
        for each in variables
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
