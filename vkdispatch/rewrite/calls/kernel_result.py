"""A check that a kernel returns no value."""

import dis
from collections.abc import Callable
from typing import Any

from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.codegen.trace.current import current
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir.location import Loc, located
from vkdispatch.compiler.passes.reads import acts
from vkdispatch.rewrite.state.values import describe


def check_result(function: Callable[..., Any], result: object) -> None:
    """Raise TypeError at the line of a kernel's `return` if that has a value.

    A lambda always returns the value of its expression. That is an error only if the lambda records nothing.
    """
    if result is None:
        return
    code = getattr(function, "__code__", None)
    is_lambda = code is not None and code.co_name == "<lambda>"
    if is_lambda and (acts(current().innermost) or not isinstance(result, ShaderVariable)):
        return
    raise located(
        ArgumentTypeError,
        f"return: a kernel returns no value, got {describe(result)}; store it: out[i] = ...",
        _find_return(code),
    )


def _find_return(code: Any) -> Loc | None:
    """Return the place of the first `return` with a value, or None if there is none."""
    if code is None:
        return None
    before = None
    for instruction in dis.get_instructions(code):
        nothing = before is not None and before.opname == "LOAD_CONST" and before.argval is None
        returns = instruction.opname == "RETURN_VALUE" and not nothing
        constant = instruction.opname == "RETURN_CONST" and instruction.argval is not None
        if returns or constant:
            return Loc(code, instruction.offset)
        before = instruction
    return None
