"""Index expressions as linear forms of the global invocation id, with the numbers of one launch put in.

What is known of a form is exact: it is given up where a step might leave the range of its integer type.
"""

import operator
from collections.abc import Callable, Mapping

from vkdispatch.base.dtype import (
    DType,
    bool_,
    component_type,
    int16,
    int32,
    int64,
    is_integer_dtype,
    is_scalar,
    is_signed_dtype,
    is_vector,
    uint16,
    uint32,
    uint64,
)
from vkdispatch.base.record import record
from vkdispatch.ir import Argument, Builtin, Expr, Op, Register

Extent = tuple[int, int, int]
_LETTERS = "xyzw"
_INTEGERS = (int16, uint16, int32, uint32, int64, uint64)
_ORDER = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
# Deeper expressions are not looked into: no index is.
_DEEPEST = 60


@record
class Quotient:
    """A form that is never negative, divided by a positive number and rounded down."""

    of: "Form"
    by: int


@record
class Remainder:
    """What a division as of `Quotient` leaves."""

    of: "Form"
    by: int


Atom = int | Quotient | Remainder


@record
class Form:
    """A constant and a sum of (atom, factor); an atom is an axis of the global id or a part of a form."""

    constant: int
    terms: frozenset[tuple[Atom, int]]


def _constant(value: int) -> Form:
    return Form(value, frozenset())


def _form(constant: int, factors: Mapping[Atom, int]) -> Form:
    return Form(constant, frozenset((atom, factor) for atom, factor in factors.items() if factor))


class Space:
    """The invocations of one launch, and what of its arguments is known."""

    def __init__(
        self,
        extent: Extent,
        value_of: Callable[[Argument], tuple[int, ...] | None],
        definitions: Mapping[Register, Expr],
    ) -> None:
        """Prepare to look at expressions.

        Parameters
        ----------
        extent
            Invocations along x, y and z: all at least 1.
        value_of
            The components of an integer argument, or None if they are not known.
        definitions
            The values of registers that never change.
        """
        self.extent = extent
        self._value_of = value_of
        self._definitions = definitions
        self._known: dict[int, tuple[Form, ...] | None] = {}

    # -- values

    def form(self, expr: Expr) -> Form | None:
        """Return an integer scalar as a form, or None if it is none."""
        forms = self._forms(expr, 0)
        return forms[0] if forms is not None and len(forms) == 1 else None

    def limits(self, form: Form) -> tuple[int, int]:
        """Return bounds of a form's value; of one with axes alone they are the least and the largest."""
        low = high = form.constant
        for atom, factor in form.terms:
            ends = [factor * end for end in self._ends(atom)]
            low, high = low + min(ends), high + max(ends)
        return low, high

    def _ends(self, atom: Atom) -> tuple[int, int]:
        if isinstance(atom, int):
            return 0, self.extent[atom] - 1
        low, high = self.limits(atom.of)
        if isinstance(atom, Quotient):
            return low // atom.by, high // atom.by
        return 0, min(high, atom.by - 1)

    def _forms(self, expr: Expr, depth: int) -> tuple[Form, ...] | None:
        if id(expr) not in self._known:
            forms = self._computed(expr, depth) if depth < _DEEPEST else None
            if forms is not None and not all(self._fits(form, expr.dtype) for form in forms):
                forms = None
            self._known[id(expr)] = forms
        return self._known[id(expr)]

    def _fits(self, form: Form, kind: DType) -> bool:
        scalar = component_type(kind)
        if scalar not in _INTEGERS:
            return False
        bits = 8 * scalar.item_size
        least = -(1 << (bits - 1)) if is_signed_dtype(scalar) else 0
        low, high = self.limits(form)
        return least <= low and high < least + (1 << bits)

    def _computed(self, expr: Expr, depth: int) -> tuple[Form, ...] | None:
        if not is_integer_dtype(expr.dtype) or not (is_scalar(expr.dtype) or is_vector(expr.dtype)):
            return None
        if expr.op is Op.LITERAL:
            return (_constant(int(expr.value)),)  # type: ignore[arg-type]
        if expr.op is Op.ARGUMENT and isinstance(expr.value, Argument):
            known = self._value_of(expr.value)
            return None if known is None else tuple(map(_constant, known))
        if expr.op is Op.BUILTIN:
            if expr.value is not Builtin.GLOBAL_INVOCATION_ID:
                return None
            # an axis of one invocation is not there
            return tuple(_form(0, {axis: 1 if self.extent[axis] > 1 else 0}) for axis in range(3))
        if expr.op is Op.REGISTER and isinstance(expr.value, Register):
            defined = self._definitions.get(expr.value)
            return None if defined is None else self._forms(defined, depth + 1)
        parts = [self._forms(arg, depth + 1) for arg in expr.args]
        known_parts = [part for part in parts if part is not None]
        if len(known_parts) != len(parts):
            return None
        if expr.op in (Op.COMPONENT, Op.SWIZZLE):
            (base,) = known_parts
            letters = [_LETTERS.index(letter) for letter in str(expr.value)]
            return tuple(base[letter] for letter in letters) if max(letters) < len(base) else None
        if expr.op is Op.INDEX:
            base, position = known_parts
            at = position[0]
            return None if at.terms or not 0 <= at.constant < len(base) else (base[at.constant],)
        if expr.op is Op.CONSTRUCT:
            return self._constructed(expr, known_parts)
        if expr.op is Op.UNARY and expr.value == "-":
            return tuple(_scaled(form, -1) for form in known_parts[0])
        if expr.op is Op.BINARY:
            left, right = known_parts
            count = max(len(left), len(right))
            left, right = (side * count if len(side) == 1 else side for side in (left, right))
            pairs = [self._binary(str(expr.value), a, b) for a, b in zip(left, right, strict=True)]
            forms = [pair for pair in pairs if pair is not None]
            return tuple(forms) if len(forms) == count else None
        return None

    def _constructed(self, expr: Expr, parts: list[tuple[Form, ...]]) -> tuple[Form, ...] | None:
        given = tuple(form for part in parts for form in part)
        wanted = 1 if is_scalar(expr.dtype) else expr.dtype.child_count
        if len(given) == 1:
            return given * wanted
        return given[:wanted] if len(given) >= wanted else None

    def _binary(self, symbol: str, a: Form, b: Form) -> Form | None:
        if symbol == "+":
            return _sum(a, b)
        if symbol == "-":
            return _sum(a, _scaled(b, -1))
        if symbol == "*":
            if not b.terms:
                return _scaled(a, b.constant)
            return _scaled(b, a.constant) if not a.terms else None
        if b.terms:
            return None
        if symbol == "<<":
            return _scaled(a, 1 << b.constant) if 0 <= b.constant < 64 else None
        if symbol == ">>" and 0 <= b.constant < 64:
            return self._divided("/", a, 1 << b.constant)
        if symbol == "&" and b.constant >= 0 and b.constant & (b.constant + 1) == 0:
            return self._divided("%", a, b.constant + 1)
        if symbol in ("/", "%") and b.constant > 0:
            return self._divided(symbol, a, b.constant)
        return None

    def _divided(self, symbol: str, form: Form, by: int) -> Form | None:
        low, high = self.limits(form)
        if low < 0:
            return None
        if high < by:
            return _constant(0) if symbol == "/" else form
        if by == 1:
            return form if symbol == "/" else _constant(0)
        if not form.terms:
            return _constant(low // by if symbol == "/" else low % by)
        if symbol == "%":
            return _form(0, {Remainder(form, by): 1})
        if not form.constant and len(form.terms) == 1:
            # a quotient of a quotient is one
            ((atom, factor),) = form.terms
            if isinstance(atom, Quotient) and factor == 1:
                form, by = atom.of, by * atom.by
        return _form(0, {Quotient(form, by): 1})

    # -- what follows

    def holds(self, condition: Expr, depth: int = 0) -> bool | None:
        """Return what a condition is in every invocation, or None where it may differ or is not known."""
        if condition.op is Op.LITERAL:
            return bool(condition.value)
        if depth >= _DEEPEST or condition.dtype is not bool_:
            return None
        if condition.op is Op.LOGICAL:
            values = [self.holds(arg, depth + 1) for arg in condition.args]
            decisive = condition.value == "||"
            if decisive in values:
                return decisive
            return None if None in values else not decisive
        if condition.op is Op.UNARY:
            value = self.holds(condition.args[0], depth + 1)
            return None if value is None else not value
        if condition.op is not Op.COMPARE:
            return None
        left, right = (self.form(arg) for arg in condition.args)
        if left is None or right is None:
            return None
        return _always(str(condition.value), *self.limits(_sum(left, _scaled(right, -1))))

    def is_injective(self, form: Form) -> bool:
        """Whether a form provably differs between any two invocations."""
        factors = dict(form.terms)
        if any(not isinstance(atom, int) for atom in factors):
            return False
        if any(size > 1 and axis not in factors for axis, size in enumerate(self.extent)):
            return False
        reach = 0
        for factor, axis in sorted((abs(factors[axis]), axis) for axis in factors):
            if factor <= reach:
                return False
            reach += factor * (self.extent[axis] - 1)  # type: ignore[index]
        return True


def _always(symbol: str, low: int, high: int) -> bool | None:
    """Compare with zero a difference that lies between low and high."""
    if symbol in ("==", "!="):
        if low == high == 0:
            return symbol == "=="
        return symbol == "!=" if low > 0 or high < 0 else None
    ends = {_ORDER[symbol](end, 0) for end in (low, high)}
    return ends.pop() if len(ends) == 1 else None


def _scaled(form: Form, factor: int) -> Form:
    return _form(form.constant * factor, {atom: each * factor for atom, each in form.terms})


def _sum(a: Form, b: Form) -> Form:
    factors = dict(a.terms)
    for atom, factor in b.terms:
        factors[atom] = factors.get(atom, 0) + factor
    return _rejoined(a.constant + b.constant, factors)


def _rejoined(constant: int, factors: dict[Atom, int]) -> Form:
    """Put divided numbers together again: n * (e / n) + e % n is e."""
    for remainder, factor in list(factors.items()):
        if not isinstance(remainder, Remainder) or not factor:
            continue
        of, by = remainder.of, remainder.by
        quotient = Quotient(of, by)
        if not of.constant and len(of.terms) == 1:
            ((inner, one),) = of.terms
            if isinstance(inner, Quotient) and one == 1:
                quotient = Quotient(inner.of, inner.by * by)
        if factors.get(quotient) == factor * by:
            rest = {atom: each for atom, each in factors.items() if atom not in (remainder, quotient)}
            return _sum(_form(constant, rest), _scaled(of, factor))
    return _form(constant, factors)
