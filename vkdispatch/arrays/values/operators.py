"""User functions that combine two values, and their identities."""

from collections.abc import Callable
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType, is_complex
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.control_flow.replacement import prepare_function, prepare_kernel


def is_expression(function: Callable[[Any, Any], Any], kind: DType, who: str) -> bool:
    """Whether a function, traced once, returns one expression of the type of its two operands.

    Raises
    ------
    ValueError
        The function returns nothing; the message calls it `who`.
    """
    plain: list[bool] = []

    def probe() -> None:
        x, y = vc.new_register(kind), vc.new_register(kind)
        before = vc.get_builder().contents
        result = prepare_function(function)(x, y)
        if result is None:
            raise ArgumentValueError(f"{who} must return a {kind.name}, got None")
        alone = isinstance(result, ShaderVariable) and result.var_type is kind
        plain.append(alone and vc.get_builder().contents == before)

    with vc.shader_context(vc.ShaderFlags.NO_EXEC_BOUNDS):
        prepare_kernel(probe, rewrite=True)()
    return plain[0]


def parse_infinity(identity: str, kind: DType) -> float:
    """Return what "inf" or "-inf" stands for. Raises ValueError for another text, or a complex type."""
    if identity not in ("inf", "-inf"):
        raise ArgumentValueError(f"identity: expected a number, 'inf' or '-inf', got {identity!r}")
    if is_complex(kind):
        raise ArgumentValueError(f"identity: {kind.name} has no {identity!r}; pass a number")
    return float(identity)
