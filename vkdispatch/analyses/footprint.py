"""How many elements indices touch together, found without running anything.

Variables whose steps do not fit between those of the others are like the digits of a number.
"""

import math
from collections.abc import Sequence

from vkdispatch.analyses.linear import Linear, Ranges, Term
from vkdispatch.base.record import record


@record
class Digits:
    """The values of a sum: digits of (step, count), each step beyond what the smaller digits reach.

    `exact` tells whether they are all its values and no others.
    """

    digits: tuple[tuple[int, int], ...]
    exact: bool

    @property
    def count(self) -> int:
        """How many different values there are."""
        return math.prod(count for _, count in self.digits)

    def overlap(self, shift: int) -> int:
        """Return how many values are still values when `shift` is added."""
        common, rest = 1, shift
        for step, count in reversed(self.digits):
            moved = round(rest / step)
            rest -= moved * step
            common *= max(0, count - abs(moved))
        return common if rest == 0 else 0


def digits_of(form: Linear, ranges: Ranges) -> Digits:
    """Return the values of a sum, but for its constant."""
    terms = sorted((abs(c), ranges.of(variable)) for variable, c in form.terms)
    digits: list[tuple[int, int]] = []
    reach = 0  # from the least to the greatest value so far
    exact = True
    for step, count in terms:
        if count < 2:
            continue
        if step > reach:
            digits.append((step, count))
        elif len(digits) == 1 and step % digits[0][0] == 0:
            # Runs that overlap, such as those of a convolution, make one longer run.
            (smallest, _), span = digits[0], reach + step * (count - 1)
            digits = [(smallest, span // smallest + 1)]
        else:
            exact = False
            smallest = math.gcd(step, *(other for other, _ in digits))
            span = reach + step * (count - 1)
            most = math.prod(size for _, size in digits) * count
            digits = [(smallest, min(most, span // smallest + 1))]
        reach += step * (count - 1)
    return Digits(tuple(digits), exact)


def count_touched(forms: Sequence[Linear], ranges: Ranges) -> tuple[int, bool]:
    """Return how many elements several indices touch together, and whether that is exact.

    Those of a stencil differ by a constant: what they share counts once.
    """
    runs: list[tuple[int, int]] = []  # without gaps
    others: list[tuple[int, int, int]] = []  # (least, greatest, elements)
    exact = True
    groups: dict[frozenset[Term], set[int]] = {}
    for form in forms:
        groups.setdefault(form.terms, set()).add(form.constant)
    for terms, constants in groups.items():
        values = digits_of(Linear(0, terms), ranges)
        exact &= values.exact
        low, high = ranges.bounds(Linear(0, terms))
        if high - low + 1 == values.count:
            runs += [(low + constant, high + constant) for constant in constants]
            continue
        total, seen = 0, list[int]()
        for constant in sorted(constants):
            total += values.count - max((values.overlap(constant - other) for other in seen), default=0)
            seen.append(constant)
        low, high = low + min(constants), high + max(constants)
        if high - low + 1 == total:
            runs.append((low, high))
        else:
            others.append((low, high, total))
    merged = _merge(runs)
    loose = [
        elements
        for low, high, elements in others
        if not any(begin <= low and high <= end for begin, end in merged)
    ]
    count = sum(end - begin + 1 for begin, end in merged) + sum(loose)
    return count, exact and len(loose) + bool(merged) < 2


def _merge(runs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return runs of integers, ends included, joined where they meet."""
    joined: list[tuple[int, int]] = []
    for low, high in sorted(runs):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return joined
