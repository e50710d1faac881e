"""Augmented assignments."""

import operator
from collections.abc import Callable
from typing import Any


def _inplace_power(value: Any, operand: Any) -> Any:
    value **= operand
    return value


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.iadd,
    "Sub": operator.isub,
    "Mult": operator.imul,
    "MatMult": operator.imatmul,
    "Div": operator.itruediv,
    "FloorDiv": operator.ifloordiv,
    "Mod": operator.imod,
    "Pow": _inplace_power,
    "LShift": operator.ilshift,
    "RShift": operator.irshift,
    "BitAnd": operator.iand,
    "BitOr": operator.ior,
    "BitXor": operator.ixor,
}


def augment(symbol: str, value: Any, operand: Any) -> Any:
    """Evaluate `value += operand` or another augmented assignment, named as its class in `ast`."""
    return _OPERATORS[symbol](value, operand)
