"""The two precisions that the functions are written in: types, constants, and how GLSL writes them."""

import struct
from collections.abc import Callable, Iterable
from fractions import Fraction

from vkdispatch.base.record import record

PI = Fraction("3.141592653589793238462643383279502884197169399375105820974944592307816")
LN_2 = Fraction("0.6931471805599453094172321214581765680755001343602552541206800094933936")
LOG10_2 = Fraction("0.3010299956639811952137388947244930267681898814621085413104274611271082")
LOG10_E = Fraction("0.4342944819032518276511289189166050822943970058036665661144537831658646")
HALF_LOG_2_PI = Fraction("0.9189385332046727417803297364056176398613974736377834128171515404827657")


@record
class Precision:
    """One of float64 and float32.

    `prefix` starts the names of its functions; `bits` is the precision, `least` and `most` are the exponents
    of the smallest normal and of the largest number.
    """

    prefix: str
    real: str
    pair: str
    suffix: str
    format: str
    bits: int
    least: int
    most: int

    @property
    def double(self) -> bool:
        """Whether it is float64."""
        return self.bits > 24

    def rounded(self, value: Fraction | float) -> float:
        """Return the number of this precision that is nearest."""
        number: float = struct.unpack(self.format, struct.pack(self.format, float(value)))[0]
        return number

    def text(self, value: Fraction | float) -> str:
        """Write a constant, rounded to this precision."""
        number = self.rounded(value)
        digits = repr(number)
        if not self.double:
            # the fewest digits that come back as the same number
            digits = next(t for n in range(1, 10) if self.rounded(float(t := f"{number:.{n}g}")) == number)
        if not any(letter in digits for letter in ".e"):
            digits += ".0"
        return digits + self.suffix

    def pair_text(self, value: Fraction) -> str:
        """Write a constant as the sum of two numbers."""
        first, second = self.pieces(value)
        return f"{self.pair}({self.text(first)}, {self.text(second)})"

    def pieces(self, value: Fraction, *lengths: int) -> list[Fraction]:
        """Cut a constant into numbers of these many bits, and what is left into one of all bits.

        Without lengths, it is two numbers of all bits.
        """
        found: list[Fraction] = []
        for length in lengths or (self.bits,):
            scale = Fraction(2) ** (length - _exponent(value))
            found.append(Fraction(round(value * scale)) / scale)
            value -= found[-1]
        return [*found, Fraction(self.rounded(value))]


def _exponent(value: Fraction) -> int:
    """Return the least e with |value| < 2**e."""
    exponent = 0
    while abs(value) >= Fraction(2) ** exponent:
        exponent += 1
    while abs(value) < Fraction(2) ** (exponent - 1):
        exponent -= 1
    return exponent


DOUBLE = Precision("f64_", "double", "dvec2", "lf", "d", 53, -1022, 1023)
SINGLE = Precision("f32_", "float", "vec2", "f", "f", 24, -126, 127)

# A definition in GLSL: in it `@name` is another definition, a constant, or the type `@real` or `@pair`.
Text = str | Callable[[Precision], str]


def both(double: str, single: str) -> Text:
    """Make a definition of two texts."""
    return lambda precision: double if precision.double else single


def constant(rule: Callable[[Precision], Fraction | float]) -> Text:
    """Make a constant; `rule` may depend on the precision."""
    return lambda precision: precision.text(rule(precision))


def number(double: float, single: float) -> Text:
    """Make a constant of two numbers."""
    return constant(lambda precision: double if precision.double else single)


def polynomial(
    name: str, rule: Callable[[Precision], Iterable[Fraction | float]]
) -> Callable[[Precision], str]:
    """Make a function: the polynomial with these coefficients, the constant first, by Horner's rule."""

    def text(precision: Precision) -> str:
        *others, last = (precision.text(coefficient) for coefficient in rule(precision))
        lines = [f"    precise @real y = {last};"]
        lines += [f"    y = y * x + {other};" for other in reversed(others)]
        return "\n".join((f"@real @{name}(@real x) {{", *lines, "    return y;", "}"))

    return text


__all__ = [
    "DOUBLE",
    "HALF_LOG_2_PI",
    "LN_2",
    "LOG10_2",
    "LOG10_E",
    "PI",
    "SINGLE",
    "Precision",
    "Text",
    "both",
    "constant",
    "number",
    "polynomial",
]
