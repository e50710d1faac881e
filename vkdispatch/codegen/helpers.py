"""Functions of our own in the generated GLSL, for what GLSL has no expression for.

They are called by `Op.CALL` as GLSL's functions are, and written in front of `main` where a kernel
calls them.
"""

from collections.abc import Iterable

from vkdispatch.codegen.ir import Expr, Op

UMUL_HIGH = "umul_high"
WRAPPED = "wrapped"
HALF_REMAINDER = "half_remainder"

_TEXTS = {
    UMUL_HIGH: """
{0} umul_high({0} a, {0} b) {{
    {0} high, low;
    umulExtended(a, b, high, low);
    return high;
}}
""",
    # what goes through it is a number of 32 bits, whatever the form of the kernel: see `widen`
    WRAPPED: """
{0} wrapped({0} value) {{
    return value;
}}
""",
    # the quotients of halves by 2**26, 2**13 and 1 times the divisor have so few bits that products are exact
    HALF_REMAINDER: """
{0} half_remainder({0} a, {0} b) {{
    {0} rest = abs(a);
    {0} divisor = abs(b);
    if (divisor > 65504.0)
        return a;
    for ({0} scale = 67108864.0; scale >= 1.0; scale *= 0.0001220703125) {{
        {0} part = divisor * scale;
        rest -= floor(rest / part) * part;
        // the division may be off by one
        if (rest < 0.0)
            rest += part;
        else if (rest >= part)
            rest -= part;
    }}
    return a < 0.0 ? -rest : rest;
}}
""",
}

NAMES = frozenset(_TEXTS)


def helper_lines(expressions: Iterable[Expr]) -> list[str]:
    """Return the definitions of the functions that expressions call, each with an empty line behind it."""
    used = {
        (str(expr.value), expr.dtype.glsl_type)
        for expr in expressions
        if expr.op is Op.CALL and expr.value in _TEXTS
    }
    lines: list[str] = []
    for name, kind in sorted(used):
        lines += [*_TEXTS[name].format(kind).strip().splitlines(), ""]
    return lines
