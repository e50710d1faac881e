"""Integers as linear forms: `constant + sum(coefficient * variable)` over the invocations of a launch.

A variable runs over 0, 1, ... up to, without it, its range: an axis of the invocations, a workgroup's, or the
rounds of a loop. `index_space` and `launch_values` write the expressions of a kernel as such forms.
"""

import operator
from collections.abc import Mapping, Sequence
from typing import TypeVar

from vkdispatch.base.record import field, record

Extent = tuple[int, int, int]
Variable = tuple[str, int]
"""A kind such as "global", and an axis or the identity of a loop."""


@record
class Quotient:
    """A form that is never negative, divided by a positive number and rounded down."""

    of: "Linear"
    by: int


@record
class Remainder:
    """What the division of a `Quotient` leaves."""

    of: "Linear"
    by: int


Atom = Variable | Quotient | Remainder
Term = tuple[Atom, int]


@record
class Linear:
    """`constant` plus each atom times its coefficient, which is never 0."""

    constant: int
    terms: frozenset[Term] = frozenset()

    @property
    def is_constant(self) -> bool:
        """Whether it is the same for every invocation and round."""
        return not self.terms

    @property
    def variables(self) -> frozenset[Variable]:
        """Variables of its terms, apart from those of divided forms."""
        return frozenset([atom for atom, _ in self.terms if isinstance(atom, tuple)])

    def plus(self, other: "Linear", factor: int = 1) -> "Linear":
        """Return the sum of this and `factor` times another."""
        terms = dict(self.terms)
        for atom, coefficient in other.terms:
            terms[atom] = terms.get(atom, 0) + factor * coefficient
        return _join_divided(self.constant + factor * other.constant, terms)

    def times(self, factor: int) -> "Linear":
        """Return a multiple of this."""
        return linear(self.constant * factor, {atom: each * factor for atom, each in self.terms})


def linear(constant: int, terms: Mapping[Atom, int]) -> Linear:
    """Make a form of a constant and coefficients, some of which may be 0."""
    return Linear(constant, frozenset([term for term in terms.items() if term[1]]))


def quotient(form: Linear, by: int) -> Quotient:
    """Divide a form; a quotient of a quotient is one."""
    if not form.constant and len(form.terms) == 1:
        ((atom, coefficient),) = form.terms
        if isinstance(atom, Quotient) and coefficient == 1:
            return Quotient(atom.of, atom.by * by)
    return Quotient(form, by)


def _join_divided(constant: int, terms: dict[Atom, int]) -> Linear:
    """Put divided numbers together again: n * (e / n) + e % n is e."""
    for remainder, factor in terms.items():
        if not isinstance(remainder, Remainder) or not factor:
            continue
        of, by = remainder.of, remainder.by
        whole = quotient(of, by)
        if terms.get(whole) == factor * by:
            rest = {atom: each for atom, each in terms.items() if atom not in (remainder, whole)}
            return linear(constant, rest).plus(of, factor)
    return linear(constant, terms)


def combine(symbol: str, left: Linear, right: Linear) -> Linear | None:
    """Return `left symbol right` for a sum, a difference, a product with a constant, or a shift to the left.

    None for all other operations.
    """
    if symbol in ("+", "-"):
        return left.plus(right, 1 if symbol == "+" else -1)
    if symbol == "*" and right.is_constant:
        return left.times(right.constant)
    if symbol == "*" and left.is_constant:
        return right.times(left.constant)
    return left.times(1 << right.constant) if symbol == "<<" and can_shift(right) else None


def can_shift(form: Linear) -> bool:
    """Whether a form is a constant that integers can be shifted by."""
    return form.is_constant and 0 <= form.constant < 64


_Item = TypeVar("_Item")


def pair_components(left: Sequence[_Item], right: Sequence[_Item]) -> list[tuple[_Item, _Item]]:
    """Return the components of two vectors side by side; a scalar goes with each."""
    size = max(len(left), len(right))
    first, second = ([*side] * size if len(side) == 1 else side for side in (left, right))
    return list(zip(first, second, strict=False))


@record(eq=False, frozen=False)
class Ranges:
    """How many values each variable of a launch has; 1 for those that are not named."""

    sizes: dict[Variable, int] = field(factory=dict)

    def of(self, atom: Atom) -> int:
        """Return how many values a variable has; of a divided form at most."""
        if isinstance(atom, tuple):
            return self.sizes.get(atom, 1)
        low, high = self._ends(atom)
        return high - low + 1

    def bounds(self, form: Linear) -> tuple[int, int]:
        """Return bounds of a form; of one of variables alone they are its least and its greatest value."""
        low = high = form.constant
        for atom, coefficient in form.terms:
            least, greatest = self._ends(atom)
            ends = coefficient * least, coefficient * greatest
            low, high = low + min(ends), high + max(ends)
        return low, high

    def _ends(self, atom: Atom) -> tuple[int, int]:
        if isinstance(atom, tuple):
            return 0, self.of(atom) - 1
        low, high = self.bounds(atom.of)
        if isinstance(atom, Quotient):
            return low // atom.by, high // atom.by
        return 0, min(high, atom.by - 1)


_ORDER = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def compare_with_zero(symbol: str, low: int, high: int) -> bool | None:
    """Return whether all numbers from low to high compare so with 0, or none does (False); None for some."""
    if symbol in ("==", "!="):
        if low == high == 0:
            return symbol == "=="
        return symbol == "!=" if low > 0 or high < 0 else None
    ends = {_ORDER[symbol](end, 0) for end in (low, high)}
    return ends.pop() if len(ends) == 1 else None
