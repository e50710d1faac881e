"""Integers of a kernel in one launch: as linear forms of ids, and as the sizes of shared memory."""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence

from vkdispatch.base import dtype as dt
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import field, record
from vkdispatch.compiler import ir
from vkdispatch.compiler.ir import nodes as nodes
from vkdispatch.compiler.ir.location import located

# ---- Integers as linear forms ----------------------------------------------------------------------------
#
# `constant + sum(coefficient * variable)` over the invocations of a launch.
#
# A variable runs over 0, 1, ... up to, without it, its range: an axis of the invocations, a workgroup's, or
# the rounds of a loop.


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

    def plus(self, other: "Linear", factor: int = 1) -> "Linear":
        """Return the sum of this and `factor` times another."""
        terms = dict(self.terms)
        for atom, coefficient in other.terms:
            terms[atom] = terms.get(atom, 0) + factor * coefficient
        return _join_divided(self.constant + factor * other.constant, terms)

    def times(self, factor: int) -> "Linear":
        """Return a multiple of this."""
        terms = {atom: factor * coefficient for atom, coefficient in self.terms}
        return linear(self.constant * factor, terms)


def linear(constant: int, terms: Mapping[Atom, int]) -> Linear:
    """Make a form of a constant and coefficients, some of which may be 0."""
    return Linear(constant, frozenset([term for term in terms.items() if term[1]]))


def _quotient(form: Linear, by: int) -> Quotient:
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
        whole = _quotient(of, by)
        if terms.get(whole) == factor * by:
            rest = {atom: number for atom, number in terms.items() if atom not in (remainder, whole)}
            return linear(constant, rest).plus(of, factor)
    return linear(constant, terms)


@record(eq=False, frozen=False)
class Ranges:
    """How many values each variable of a launch has; 1 for those that are not named."""

    sizes: dict[Variable, int] = field(factory=dict)

    def of(self, atom: Atom) -> int:
        """Return how many values a variable has; of a divided form at most."""
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
            return 0, self.sizes.get(atom, 1) - 1
        low, high = self.bounds(atom.of)
        if isinstance(atom, Quotient):
            return low // atom.by, high // atom.by
        return 0, min(high, atom.by - 1)


# ---- Index expressions as linear forms, given the arguments of one launch --------------------------------


_LETTERS = "xyzw"
_INTEGERS = (dt.int16, dt.uint16, dt.int32, dt.uint32, dt.int64, dt.uint64)
# Deeper expressions are not looked into: no index is.
_DEEPEST = 60

Forms = tuple[Linear, ...]
"""The components of a scalar or a vector."""


def definitions_of(statements: Iterable[ir.Statement]) -> dict[ir.Register, ir.Expr]:
    """Return the values of registers that are declared once and never stored to."""
    definitions: dict[ir.Register, ir.Expr] = {}
    changing: set[ir.Register] = set()
    for statement in statements:
        for register, value in ir.assignments_of(statement):
            if not isinstance(statement, ir.Declare) or register in definitions:
                changing.add(register)
            definitions.setdefault(register, value)
    return {register: value for register, value in definitions.items() if register not in changing}


class Space:
    """The invocations of one launch, and what of its arguments is known.

    Attributes
    ----------
    ranges
        How many values each variable has.
    builtins, counters
        Forms of built-in values, and of the counters of loops. Without additions these are the global id.
    """

    def __init__(
        self,
        extent: Extent,
        value_of: Callable[[ir.Argument], tuple[int, ...] | None],
        definitions: Mapping[ir.Register, ir.Expr],
        *,
        check_overflow: bool = True,
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
        check_overflow
            Whether an expression has no form if it might leave the range of its integer type.
        """
        self.ranges = Ranges()
        self.builtins: dict[ir.Builtin, Forms] = {}
        self.counters: dict[ir.Register, Linear] = {}
        self._value_of = value_of
        self._definitions = definitions
        self._check_overflow = check_overflow
        self._known: dict[int, Forms | None] = {}
        self.add_id(ir.Builtin.GLOBAL_INVOCATION_ID, extent)

    def add_id(self, builtin: ir.Builtin, extent: Sequence[int]) -> None:
        """Give a built-in id a variable for each axis; an axis of one value has none."""
        variables = [(builtin.name, axis) for axis in range(len(extent))]
        self.ranges.sizes.update(zip(variables, extent, strict=True))
        self.builtins[builtin] = tuple(
            linear(0, {variable: int(size > 1)}) for variable, size in zip(variables, extent, strict=True)
        )

    # -- values

    def form(self, expr: ir.Expr) -> Linear | None:
        """Return an integer scalar as a form, or None if it is none."""
        forms = self.forms(expr)
        return forms[0] if forms is not None and len(forms) == 1 else None

    def forms(self, expr: ir.Expr, depth: int = 0) -> Forms | None:
        """Return the components of integers as forms, or None if they are none."""
        if id(expr) not in self._known:
            forms = self._compute(expr, depth) if depth < _DEEPEST else None
            if forms is not None and not all(self._fits(form, expr.dtype) for form in forms):
                forms = None
            self._known[id(expr)] = forms
        return self._known[id(expr)]

    def _fits(self, form: Linear, kind: dt.DType) -> bool:
        scalar = dt.component_type(kind)
        if scalar not in _INTEGERS or not self._check_overflow:
            return scalar in _INTEGERS
        bits = 8 * scalar.item_size
        least = -(1 << (bits - 1)) if dt.is_signed_dtype(scalar) else 0
        low, high = self.ranges.bounds(form)
        return least <= low and high < least + (1 << bits)

    def _compute(self, expr: ir.Expr, depth: int) -> Forms | None:
        if not dt.is_integer_dtype(expr.dtype) or not (dt.is_scalar(expr.dtype) or dt.is_vector(expr.dtype)):
            return None
        if expr.op is ir.Op.LITERAL:
            return (Linear(int(expr.value)),)  # type: ignore[arg-type]
        if isinstance(expr.value, ir.Argument) and expr.op is ir.Op.ARGUMENT:
            known = self._value_of(expr.value)
            return None if known is None else tuple(map(Linear, known))
        if isinstance(expr.value, ir.Builtin):
            return self.builtins.get(expr.value)
        if isinstance(expr.value, ir.Register) and expr.op is ir.Op.REGISTER:
            if expr.value in self.counters:
                return (self.counters[expr.value],)
            definition = self._definitions.get(expr.value)
            return None if definition is None else self.forms(definition, depth + 1)
        operands: list[Forms] = []
        for arg in expr.args:
            forms = self.forms(arg, depth + 1)
            if forms is None:
                return None
            operands.append(forms)
        if expr.op in (ir.Op.COMPONENT, ir.Op.SWIZZLE):
            (base,) = operands
            letters = [_LETTERS.index(letter) for letter in str(expr.value)]
            return tuple(base[letter] for letter in letters) if max(letters) < len(base) else None
        if expr.op is ir.Op.INDEX:
            base, (at, *_) = operands
            return None if not at.is_constant or not 0 <= at.constant < len(base) else (base[at.constant],)
        if expr.op is ir.Op.CONSTRUCT:
            return _construct(expr, operands)
        if expr.op is ir.Op.UNARY and expr.value == "-":
            return tuple(form.times(-1) for form in operands[0])
        if expr.op is ir.Op.BINARY:
            return self._combine(str(expr.value), *operands)
        return None

    def _combine(self, symbol: str, left: Forms, right: Forms) -> Forms | None:
        size = max(len(left), len(right))
        left, right = (side * size if len(side) == 1 else side for side in (left, right))
        forms: list[Linear] = []
        for a, b in zip(left, right, strict=False):
            form = self._binary(symbol, a, b)
            if form is None:
                return None
            forms.append(form)
        return tuple(forms)

    def _binary(self, symbol: str, a: Linear, b: Linear) -> Linear | None:
        if symbol in ("+", "-"):
            return a.plus(b, 1 if symbol == "+" else -1)
        if symbol == "*" and a.is_constant:
            return b.times(a.constant)
        if not b.is_constant:
            return None
        number = b.constant
        if symbol == "*":
            return a.times(number)
        if symbol in ("<<", ">>") and 0 <= number < 64:
            return a.times(1 << number) if symbol == "<<" else self._divide("/", a, 1 << number)
        if symbol == "&" and number >= 0 and number & (number + 1) == 0:
            return self._divide("%", a, number + 1)
        if symbol in ("/", "%") and number > 0:
            return self._divide(symbol, a, number)
        return None

    def _divide(self, symbol: str, form: Linear, by: int) -> Linear | None:
        low, high = self.ranges.bounds(form)
        if low < 0:
            return None
        if high < by:
            return Linear(0) if symbol == "/" else form
        if by == 1:
            return form if symbol == "/" else Linear(0)
        if form.is_constant:
            return Linear(low // by if symbol == "/" else low % by)
        return linear(0, {Remainder(form, by) if symbol == "%" else _quotient(form, by): 1})

    # -- what follows

    def holds(self, condition: ir.Expr, depth: int = 0) -> bool | None:
        """Return what a condition is in every invocation, or None where it may differ or is not known."""
        if condition.op is ir.Op.LITERAL:
            return bool(condition.value)
        if depth >= _DEEPEST or condition.dtype is not dt.bool_:
            return None
        if condition.op is ir.Op.LOGICAL:
            values = [self.holds(arg, depth + 1) for arg in condition.args]
            decisive = condition.value == "||"
            if decisive in values:
                return decisive
            return None if None in values else not decisive
        if condition.op is ir.Op.UNARY:
            value = self.holds(condition.args[0], depth + 1)
            return None if value is None else not value
        if condition.op is not ir.Op.COMPARE:
            return None
        left, right = (self.form(arg) for arg in condition.args)
        if left is None or right is None:
            return None
        return _compare_with_zero(str(condition.value), *self.ranges.bounds(left.plus(right, -1)))

    def is_injective(self, form: Linear) -> bool:
        """Whether a form provably differs between any two invocations."""
        steps = {atom: abs(factor) for atom, factor in form.terms if isinstance(atom, tuple)}
        if len(steps) < len(form.terms):
            return False
        if any(size > 1 and axis not in steps for axis, size in self.ranges.sizes.items()):
            return False
        reach = 0
        for step, count in sorted((step, self.ranges.of(axis)) for axis, step in steps.items()):
            if step <= reach:
                return False
            reach += step * (count - 1)
        return True


def _construct(expr: ir.Expr, parts: Sequence[Forms]) -> Forms | None:
    given = tuple(form for part in parts for form in part)
    size = dt.component_count(expr.dtype)
    if len(given) == 1:
        return given * size
    return given[:size] if len(given) >= size else None


_COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def _compare_with_zero(symbol: str, low: int, high: int) -> bool | None:
    """Return whether all numbers from low to high compare so with 0, or none does (False); None for some."""
    if symbol in ("==", "!="):
        if low == high == 0:
            return symbol == "=="
        return symbol == "!=" if low > 0 or high < 0 else None
    ends = {_COMPARISONS[symbol](end, 0) for end in (low, high)}
    return ends.pop() if len(ends) == 1 else None


# ---- shared memory whose size a call decides -------------------------------------------------------

_SIZING: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "%": operator.mod,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "min": min,
    "max": max,
}


def may_size(expr: ir.Expr) -> bool:
    """Whether an expression may be the size of shared memory: integers known before a launch."""
    for node in nodes((expr,)):
        if not dt.is_integer_dtype(node.dtype) or not dt.is_scalar(node.dtype):
            return False
        if node.op is ir.Op.ARGUMENT and isinstance(node.value, ir.Argument) and not node.value.shape:
            continue
        if node.op is ir.Op.LITERAL or (node.op is ir.Op.CONSTRUCT and len(node.args) == 1):
            continue
        if node.op not in (ir.Op.BINARY, ir.Op.CALL) or node.value not in _SIZING:
            return False
    return True


def _evaluate_size(expr: ir.Expr, arguments: Mapping[str, int]) -> int | None:
    """Return the value of an expression that `may_size`; None if an operation has none."""
    if expr.op is ir.Op.LITERAL:
        return int(expr.value)  # type: ignore[arg-type]
    if isinstance(expr.value, ir.Argument):
        return arguments.get(expr.value.name)
    operands = [_evaluate_size(arg, arguments) for arg in expr.args]
    numbers = [operand for operand in operands if operand is not None]
    if len(numbers) < len(operands) or expr.op is ir.Op.CONSTRUCT:
        return operands[0] if expr.op is ir.Op.CONSTRUCT else None
    try:
        return _SIZING[str(expr.value)](*numbers)
    except (ZeroDivisionError, ValueError):
        return None


def is_sized_by_calls(kernel: ir.Kernel) -> bool:
    """Whether calls decide the size of shared memory of a kernel."""
    return any(array.size is None for array in kernel.shared)


def find_shared_sizes(who: str, kernel: ir.Kernel, arguments: Mapping[str, int]) -> tuple[int, ...]:
    """Return the counts of elements of the shared arrays that a call sizes, in their order.

    `arguments` are the integers of the argument block, by name. Raises ValueError for a size below 1.
    """
    sizes: list[int] = []
    for array in kernel.shared:
        if array.size is not None:
            continue
        size = 1
        for axis in array.shape:
            count = axis if isinstance(axis, int) else _evaluate_size(axis, arguments)
            if count is None or count < 1:
                loc = axis.loc if isinstance(axis, ir.Expr) else None
                raise located(
                    ArgumentValueError,
                    f"{who}: shared buffer {array.name!r}: its size is {count} with these arguments; it must "
                    "be at least 1",
                    loc,
                )
            size *= count
        sizes.append(size)
    return tuple(sizes)


def sizes_of_shared(kernel: ir.Kernel, sized: Sequence[int]) -> dict[int, int]:
    """Return the count of elements of each shared array, by identity; `sized` are those of a call."""
    rest = iter(sized)
    sizes: dict[int, int] = {}
    for array in kernel.shared:
        size = next(rest, None) if array.size is None else array.size
        if size is not None:
            sizes[id(array)] = size
    return sizes
