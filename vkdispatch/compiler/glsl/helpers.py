"""Helper functions in the generated GLSL, for operations that are not GLSL expressions.

`Op.CALL` calls them as it calls GLSL's functions. A kernel that calls one gets its definition before `main`.
"""

from collections.abc import Callable

from vkdispatch.base import dtype as dt
from vkdispatch.compiler.analyses.contents import find_operations, resource_access
from vkdispatch.compiler.forms import FLOAT16
from vkdispatch.compiler.glsl.emulation import is_emulated_long
from vkdispatch.compiler.ir import Expr, Kernel, Op, Storage, is_place, program, root_of
from vkdispatch.compiler.ir.program import COMPONENTS


def _integer_power(kind: str) -> str:
    """Write powers of integers by squaring, without a loop: drivers may count the rounds of all loops."""
    lines = []
    for group in range(0, 64 if "64" in kind else 32, 8):
        lines.append(f"    {'if (n != zero) ' if group else ''}{{")
        lines += ["        power *= (n & one) != zero ? square : one, square *= square, n >>= 1;"] * 8
        lines.append("    }")
    result = "power"
    if kind[0] != "u":
        unit = "base == one || (base == -one && (exponent & one) == zero) ? one : base == -one ? base : zero"
        result = f"exponent < zero ? ({unit}) : power"
    return "\n".join(
        [
            f"{kind} {program.INTEGER_POWER}({kind} base, {kind} exponent) {{",
            f"    {kind} zero = {kind}(0), one = {kind}(1), power = one, square = base, n = exponent;",
            *lines,
            f"    return {result};",
            "}",
        ]
    )


def _remainder(name: str, word: str, real: str, fraction: int, exponent: int, top: str) -> str:
    """Write C's fmod in integers: the fraction of a times a power of two, modulo that of b.

    Products are reduced by a quotient in floating point, which is off by a few at most. There is no loop, as
    in powers of integers.
    """
    one = f"{word}(1)"
    spare, low = 8 * (4 if word == "uint" else 8) - fraction - 1, 3 if word == "uint" else 5
    squares = "\n".join(
        f"            power = {name}_product(power, power, m);\n"
        f"            power = (power << (n >> {place} & 1u)) % m;"
        for place in reversed(range(low))
    )
    return f"""
{word} {name}_product({word} a, {word} b, {word} m) {{
    return (a * b - {word}({real}(a) * {real}(b) / {real}(m)) * m + m * {word}(64)) % m;
}}
{word} {name}({word} a, {word} b) {{
    {word} one = {one}, hidden = one << {fraction}, infinite = {word}({2**exponent - 1}) << {fraction};
    {word} sign = a & (one << {fraction + exponent}), x = a ^ sign, y = b & ~(one << {fraction + exponent});
    {word} rest = a;
    if (x >= infinite || y > infinite || y == {word}(0)) {{
        rest = infinite | (hidden >> 1);
    }} else if (x >= y) {{
        uint place = max(uint(y >> {fraction}), 1u), n = max(uint(x >> {fraction}), 1u) - place;
        {word} m = (y & (hidden - one)) | (y >= hidden ? hidden : {word}(0));
        rest = (x & (hidden - one)) | (x >= hidden ? hidden : {word}(0));
        if (n <= {spare}u) {{
            rest = (rest << n) % m;
        }} else {{
            {word} power = (one << (n >> {low})) % m;
{squares}
            rest = {name}_product(rest % m, power, m);
        }}
        if (rest != {word}(0)) {{
            uint shift = uint({fraction} - {top});
            bool normal = shift < place;
            rest <<= normal ? shift : place - 1u;
            rest = normal ? ({word}(place - shift) << {fraction}) | (rest & (hidden - one)) : rest;
        }}
        rest |= sign;
    }}
    return rest;
}}
"""


_TEXTS: dict[str, Callable[[str], str]] = {
    program.UMUL_HIGH: """
{0} umul_high({0} a, {0} b) {{
    {0} high, low;
    umulExtended(a, b, high, low);
    return high;
}}
""".format,
    # what goes through it is a number of 32 bits, whatever the form of the kernel: see
    # `compiler.passes.widen`
    program.WRAPPED: """
{0} wrapped({0} value) {{
    return value;
}}
""".format,
    program.INTEGER_POWER: _integer_power,
    program.FLOAT_REMAINDER: lambda _: _remainder(
        program.FLOAT_REMAINDER, "uint", "float", 23, 8, "findMSB(rest)"
    ),
    program.DOUBLE_REMAINDER: lambda _: _remainder(
        program.DOUBLE_REMAINDER,
        "uint64_t",
        "double",
        52,
        11,
        "(uint(rest >> 32) != 0u ? 32 + findMSB(uint(rest >> 32)) : findMSB(uint(rest)))",
    ),
    # By way of a float32 of which the last bit tells that there was more: drivers round to the nearest one,
    # and then again. The signs are explained in `compiler.glsl.expressions`.
    program.HALF_OF_DOUBLE: """
float16_t half_of_double(double x) {{
    float nearest = -float(-x);
    uint bits = floatBitsToUint(nearest);
    if (double(nearest) != x && (bits & 1u) == 0u)
        bits += abs(double(nearest)) < abs(x) ? 1u : 0xFFFFFFFFu;
    return float16_t(uintBitsToFloat(bits));
}}
""".format,
}


# A zero is added that drivers do not know to be one.
_HALF_OF_FLOAT = """
float16_t half_of_float(float x) {
    return unpackFloat2x16(packFloat2x16(f16vec2(float16_t(x), 0.0hf)) | gl_NumWorkGroups.z >> 31).x;
}
"""


def narrows_float(arg: Expr) -> bool:
    """Whether a part of a value of halves is one of float32 that has to be rounded."""
    return (
        dt.component_type(arg.dtype) is dt.float32
        and arg.op is not Op.LITERAL
        and not dt.is_matrix(arg.dtype)
    )


def rounds_halves(kernel: Kernel, lacks: frozenset[str]) -> bool:
    """Whether a kernel makes halves of float32 and float32 of what may be such halves.

    NVIDIA's driver takes `float(float16_t(x))` for `x`, by any way that it can follow.
    """
    if FLOAT16 in lacks:
        return False
    written = resource_access(kernel).writes
    makes = find_operations(kernel, Op.CONSTRUCT)
    narrowed = any(
        dt.component_type(expr.dtype) is dt.float16 and any(map(narrows_float, expr.args)) for expr in makes
    )
    widened = (arg for expr in makes if dt.component_type(expr.dtype) is dt.float32 for arg in expr.args)
    return narrowed and any(
        dt.component_type(arg.dtype) is dt.float16 and not _is_input(arg, written) for arg in widened
    )


def _is_input(arg: Expr, written: set[int]) -> bool:
    """Whether a value lies in a buffer that the kernel does not write."""
    memory = root_of(arg).value
    return is_place(arg) and isinstance(memory, Storage) and memory.index not in written


def helper_lines(kernel: Kernel, lacks: frozenset[str]) -> list[str]:
    """Return the definitions of the functions that expressions call, each with an empty line behind it."""
    makes = [
        expr for expr in find_operations(kernel, Op.CONSTRUCT) if dt.component_type(expr.dtype) is dt.float16
    ]
    calls = [
        expr
        for expr in find_operations(kernel, Op.CALL)
        if not (expr.value == program.INTEGER_POWER and is_emulated_long(expr.dtype, lacks))
    ]
    used = {(str(expr.value), expr.dtype.glsl_type) for expr in calls if expr.value in _TEXTS}
    narrowed = {
        arg.dtype.glsl_type: dt.component_count(arg.dtype)
        for expr in makes
        for arg in expr.args
        if dt.component_type(arg.dtype) is dt.float64
    }
    if narrowed:
        used.add((program.HALF_OF_DOUBLE, "double"))
    halves = rounds_halves(kernel, lacks)
    lines: list[str] = []
    for name, kind in sorted(used):
        lines += [*_TEXTS[name](kind).strip().splitlines(), ""]
    for kind, count in sorted(narrowed.items()):
        if count > 1:
            lines += _by_component(program.HALF_OF_DOUBLE, kind, count)
    if halves:
        lines += [*_HALF_OF_FLOAT.strip().splitlines(), ""]
        counts = {dt.component_count(arg.dtype) for expr in makes for arg in expr.args if narrows_float(arg)}
        for count in sorted(counts - {1}):
            lines += _by_component(program.HALF_OF_FLOAT, f"vec{count}", count)
    return lines + _mathematics(
        [expr for expr in calls if str(expr.value).startswith((program.SINGLE, program.DOUBLE))]
    )


def _by_component(name: str, kind: str, count: int) -> list[str]:
    parts = ", ".join(f"{name}(x.{letter})" for letter in COMPONENTS[:count])
    result = dt.to_vector(dt.float16, count).glsl_type
    return [f"{result} {name}({kind} x) {{", f"    return {result}({parts});", "}", ""]


def _mathematics(calls: list[Expr]) -> list[str]:
    """Return the definitions of functions of mathematics, and their forms for vectors."""
    if not calls:
        return []
    # Few kernels have them, and there is much to import.
    from vkdispatch.compiler.glsl.mathematics import definitions

    lines = list(definitions(tuple(sorted({str(call.value) for call in calls}))))
    forms = {(str(call.value), call.dtype.glsl_type): call for call in calls if not dt.is_scalar(call.dtype)}
    for (name, kind), call in sorted(forms.items()):
        count = dt.component_count(call.dtype)
        names = "xy"[: len(call.args)]
        parameters = ", ".join(f"{kind} {name}" for name in names)
        parts = (", ".join(f"{name}.{'xyzw'[i]}" for name in names) for i in range(count))
        results = ", ".join(f"{name}({part})" for part in parts)
        lines += [f"{kind} {name}({parameters}) {{", f"    return {kind}({results});", "}", ""]
    return lines
