"""Mathematical functions that GLSL lacks, computed in float64 with NumPy and the host functions."""

from collections.abc import Callable

import numpy as np

from vkdispatch.codegen import host_functions as host
from vkdispatch.interpreter.values import Array, align
from vkdispatch.ir.own_functions import DOUBLE, SINGLE

Rule = Callable[..., Array]


def _apply_each(rule: Callable[[float], float]) -> Rule:
    return lambda x: np.array([rule(value) for value in x.ravel().tolist()]).reshape(x.shape)


def _convert_to_double(rule: Rule) -> Rule:
    return lambda *args: rule(*(arg.astype(np.float64) for arg in align(*args)))


_NAMED: dict[str, Rule] = {
    **{
        name: getattr(np, name)
        for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "exp2", "expm1")
    },
    **{name: getattr(np, name) for name in ("log", "log2", "log10", "log1p", "cbrt", "hypot")},
    **{
        name: getattr(np, f"arc{name[1:]}")
        for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh", "atan2")
    },
    "pow": np.power,
    "trunc": np.trunc,
    "round": np.rint,
    "round_even": np.rint,
    **{
        name: _apply_each(getattr(host, name))
        for name in ("erf", "erfc", "gamma", "lgamma", "sinpi", "cospi")
    },
}
RULES: dict[str, Rule] = {
    prefix + name: _convert_to_double(rule) for name, rule in _NAMED.items() for prefix in (SINGLE, DOUBLE)
}
