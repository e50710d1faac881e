"""Index expressions as linear forms of the global invocation id, given the arguments of one launch.

The forms are exact: an expression that might leave the range of its integer type has none.
"""

from collections.abc import Callable, Mapping

from vkdispatch.analyses.linear import (
    Extent,
    Linear,
    Ranges,
    Remainder,
    Variable,
    can_shift,
    combine,
    compare_with_zero,
    linear,
    pair_components,
    quotient,
)
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
from vkdispatch.ir import Argument, Builtin, Expr, Op, Register

_LETTERS = "xyzw"
_INTEGERS = (int16, uint16, int32, uint32, int64, uint64)
# Deeper expressions are not looked into: no index is.
_DEEPEST = 60


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
        self._ranges = Ranges({_axis(axis): count for axis, count in enumerate(extent)})
        self._value_of = value_of
        self._definitions = definitions
        self._known: dict[int, tuple[Linear, ...] | None] = {}

    # -- values

    def form(self, expr: Expr) -> Linear | None:
        """Return an integer scalar as a form, or None if it is none."""
        forms = self._forms(expr, 0)
        return forms[0] if forms is not None and len(forms) == 1 else None

    def limits(self, form: Linear) -> tuple[int, int]:
        """Return bounds of a form's value; of one with axes alone they are the least and the largest."""
        return self._ranges.bounds(form)

    def _forms(self, expr: Expr, depth: int) -> tuple[Linear, ...] | None:
        if id(expr) not in self._known:
            forms = self._compute(expr, depth) if depth < _DEEPEST else None
            if forms is not None and not all(self._fits(form, expr.dtype) for form in forms):
                forms = None
            self._known[id(expr)] = forms
        return self._known[id(expr)]

    def _fits(self, form: Linear, kind: DType) -> bool:
        scalar = component_type(kind)
        if scalar not in _INTEGERS:
            return False
        bits = 8 * scalar.item_size
        least = -(1 << (bits - 1)) if is_signed_dtype(scalar) else 0
        low, high = self.limits(form)
        return least <= low and high < least + (1 << bits)

    def _compute(self, expr: Expr, depth: int) -> tuple[Linear, ...] | None:
        if not is_integer_dtype(expr.dtype) or not (is_scalar(expr.dtype) or is_vector(expr.dtype)):
            return None
        if expr.op is Op.LITERAL:
            return (Linear(int(expr.value)),)  # type: ignore[arg-type]
        if expr.op is Op.ARGUMENT and isinstance(expr.value, Argument):
            known = self._value_of(expr.value)
            return None if known is None else tuple(map(Linear, known))
        if expr.op is Op.BUILTIN:
            if expr.value is not Builtin.GLOBAL_INVOCATION_ID:
                return None
            # an axis of one invocation is not there
            return tuple(linear(0, {axis: int(self._ranges.of(axis) > 1)}) for axis in map(_axis, range(3)))
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
            return None if not at.is_constant or not 0 <= at.constant < len(base) else (base[at.constant],)
        if expr.op is Op.CONSTRUCT:
            return self._construct(expr, known_parts)
        if expr.op is Op.UNARY and expr.value == "-":
            return tuple(form.times(-1) for form in known_parts[0])
        if expr.op is Op.BINARY:
            left, right = known_parts
            found = [self._binary(str(expr.value), a, b) for a, b in pair_components(left, right)]
            forms = tuple(form for form in found if form is not None)
            return forms if len(forms) == len(found) else None
        return None

    def _construct(self, expr: Expr, parts: list[tuple[Linear, ...]]) -> tuple[Linear, ...] | None:
        given = tuple(form for part in parts for form in part)
        wanted = 1 if is_scalar(expr.dtype) else expr.dtype.child_count
        if len(given) == 1:
            return given * wanted
        return given[:wanted] if len(given) >= wanted else None

    def _binary(self, symbol: str, a: Linear, b: Linear) -> Linear | None:
        combined = combine(symbol, a, b)
        if combined is not None or not b.is_constant:
            return combined
        if symbol == ">>" and can_shift(b):
            return self._divide("/", a, 1 << b.constant)
        if symbol == "&" and b.constant >= 0 and b.constant & (b.constant + 1) == 0:
            return self._divide("%", a, b.constant + 1)
        if symbol in ("/", "%") and b.constant > 0:
            return self._divide(symbol, a, b.constant)
        return None

    def _divide(self, symbol: str, form: Linear, by: int) -> Linear | None:
        low, high = self.limits(form)
        if low < 0:
            return None
        if high < by:
            return Linear(0) if symbol == "/" else form
        if by == 1:
            return form if symbol == "/" else Linear(0)
        if form.is_constant:
            return Linear(low // by if symbol == "/" else low % by)
        if symbol == "%":
            return linear(0, {Remainder(form, by): 1})
        return linear(0, {quotient(form, by): 1})

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
        return compare_with_zero(str(condition.value), *self.limits(left.plus(right, -1)))

    def is_injective(self, form: Linear) -> bool:
        """Whether a form provably differs between any two invocations."""
        steps = {atom: abs(factor) for atom, factor in form.terms if isinstance(atom, tuple)}
        if len(steps) < len(form.terms):
            return False
        if any(size > 1 and axis not in steps for axis, size in self._ranges.sizes.items()):
            return False
        reach = 0
        for step, count in sorted((step, self._ranges.of(axis)) for axis, step in steps.items()):
            if step <= reach:
                return False
            reach += step * (count - 1)
        return True


def _axis(axis: int) -> Variable:
    return "global", axis
