"""Helper functions in the generated GLSL, for operations that are not GLSL expressions.

`Op.CALL` calls them as it calls GLSL's functions. A kernel that calls one gets its definition before `main`.
"""

from collections.abc import Iterable

from vkdispatch.base.dtype import component_count, component_type, float16, float64, is_scalar, to_vector
from vkdispatch.ir import Expr, Op
from vkdispatch.ir.attributes import COMPONENTS
from vkdispatch.ir.own_functions import (
    DOUBLE,
    HALF_MODULO,
    HALF_OF_DOUBLE,
    HALF_QUOTIENT,
    SINGLE,
    UMUL_HIGH,
    WRAPPED,
)


def _of_halves(name: str, result: str) -> str:
    """Make a function of two halves, given as floats, from their remainder with the sign of the first."""
    # the quotients by 2**26, 2**13 and 1 times the divisor have so few bits that all products are exact
    return f"""
{{0}} {name}({{0}} a, {{0}} b) {{{{
    {{0}} rest = abs(a);
    for ({{0}} scale = 67108864.0; scale >= 1.0 && abs(b) <= 65504.0; scale *= 0.0001220703125) {{{{
        {{0}} part = abs(b) * scale;
        rest -= floor(rest / part) * part;
        // the division may be off by one
        if (rest < 0.0)
            rest += part;
        else if (rest >= part)
            rest -= part;
    }}}}
    rest = a < 0.0 ? -rest : rest;
    bool differ = rest != 0.0 && (rest < 0.0) != (b < 0.0);
    return {result};
}}}}
"""


_TEXTS = {
    UMUL_HIGH: """
{0} umul_high({0} a, {0} b) {{
    {0} high, low;
    umulExtended(a, b, high, low);
    return high;
}}
""",
    # what goes through it is a number of 32 bits, whatever the form of the kernel: see `passes.widen`
    WRAPPED: """
{0} wrapped({0} value) {{
    return value;
}}
""",
    # By way of a float32 of which the last bit tells that there was more: drivers round to the nearest one,
    # and then again. The signs are explained in `glsl.expressions`.
    HALF_OF_DOUBLE: """
float16_t half_of_double(double x) {{
    float nearest = -float(-x);
    uint bits = floatBitsToUint(nearest);
    if (double(nearest) != x && (bits & 1u) == 0u)
        bits += abs(double(nearest)) < abs(x) ? 1u : 0xFFFFFFFFu;
    return float16_t(uintBitsToFloat(bits));
}}
""",
    HALF_MODULO: _of_halves("half_modulo", "differ ? rest + b : rest"),
    HALF_QUOTIENT: _of_halves("half_quotient", "roundEven((a - rest) / b) - {0}(differ)"),
}


def helper_lines(expressions: Iterable[Expr]) -> list[str]:
    """Return the definitions of the functions that expressions call, each with an empty line behind it."""
    expressions = list(expressions)
    calls = [expr for expr in expressions if expr.op is Op.CALL]
    used = {(str(expr.value), expr.dtype.glsl_type) for expr in calls if expr.value in _TEXTS}
    narrowed = {
        arg.dtype.glsl_type: component_count(arg.dtype)
        for expr in expressions
        if expr.op is Op.CONSTRUCT and component_type(expr.dtype) is float16
        for arg in expr.args
        if component_type(arg.dtype) is float64
    }
    if narrowed:
        used.add((HALF_OF_DOUBLE, "double"))
    lines: list[str] = []
    for name, kind in sorted(used):
        lines += [*_TEXTS[name].format(kind).strip().splitlines(), ""]
    for kind, count in sorted(narrowed.items()):
        if count > 1:
            parts = ", ".join(f"{HALF_OF_DOUBLE}(x.{letter})" for letter in COMPONENTS[:count])
            result = to_vector(float16, count).glsl_type
            lines += [f"{result} {HALF_OF_DOUBLE}({kind} x) {{", f"    return {result}({parts});", "}", ""]
    return lines + _mathematics([expr for expr in calls if str(expr.value).startswith((SINGLE, DOUBLE))])


def _mathematics(calls: list[Expr]) -> list[str]:
    """Return the definitions of functions of mathematics, and their forms for vectors."""
    if not calls:
        return []
    # Few kernels have them, and there is much to import.
    from vkdispatch.glsl.mathematics.library import definitions

    lines = list(definitions(tuple(sorted({str(call.value) for call in calls}))))
    forms = {(str(call.value), call.dtype.glsl_type): call for call in calls if not is_scalar(call.dtype)}
    for (name, kind), call in sorted(forms.items()):
        count = component_count(call.dtype)
        names = "xy"[: len(call.args)]
        parameters = ", ".join(f"{kind} {each}" for each in names)
        parts = (", ".join(f"{each}.{'xyzw'[i]}" for each in names) for i in range(count))
        results = ", ".join(f"{name}({part})" for part in parts)
        lines += [f"{kind} {name}({parameters}) {{", f"    return {kind}({results});", "}", ""]
    return lines
