"""Values of a kernel in one launch: integers as linear forms of ids and loop counters."""

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from vkdispatch.base.dtype import component_type, is_float_dtype, is_integer_dtype, is_scalar
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
# the rounds of a loop. `traffic` and the rest of this module write expressions so.


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


Environment = dict[Variable, Linear]
"""For variables that the conditions around a place restrict: their form within the restriction."""


@record
class Launch:
    """What is known of a launch.

    Attributes
    ----------
    invocations, groups, local_size
        Along x, y and z.
    arguments
        Components of each member of the argument block, by name.
    sizes, texels
        By index of a resource: bytes that are bound, and bytes of a texel of an image.
    """

    invocations: Extent
    groups: Extent
    local_size: Extent
    arguments: Mapping[str, tuple[int | float, ...]]
    sizes: Mapping[int, int]
    texels: Mapping[int, int] = field(factory=dict)


_AXES = {"x": 0, "y": 1, "z": 2, "w": 3}
IDS = {
    ir.Builtin.GLOBAL_INVOCATION_ID: "global",
    ir.Builtin.LOCAL_INVOCATION_ID: "local",
    ir.Builtin.WORKGROUP_ID: "group",
}
_ALL: frozenset[Variable] = frozenset(("global", axis) for axis in range(3))
_DATA = frozenset((ir.Op.ELEMENT, ir.Op.ATOMIC, ir.Op.SUBGROUP, ir.Op.SAMPLE, ir.Op.IMAGE_LOAD, ir.Op.RAW))
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "/": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "%": lambda a, b: a % b,
    ">>": lambda a, b: a >> b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
}
_NEGATED = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}


class LaunchValues:
    """What is known of the values of a kernel.

    Attributes
    ----------
    ranges
        How many values each variable has.
    counters
        Forms of the loop counters so far, by identity of the register; None if unknown.
    about
        Whether there was a condition that `confine` could not use.
    """

    def __init__(self, body: ir.Block, launch: Launch) -> None:
        self.launch = launch
        self.about = False
        self.ranges = Ranges()
        for kind, extent in (
            ("global", launch.invocations),
            ("local", launch.local_size),
            ("group", launch.groups),
        ):
            self.ranges.sizes.update({(kind, axis): count for axis, count in enumerate(extent)})
        local = launch.local_size
        self.ranges.sizes["local index", 0] = local[0] * local[1] * local[2]
        self.counters: dict[int, Linear | None] = {}
        self._held: dict[int, list[ir.Expr]] = {}
        self._stored: set[int] = set()
        for statement in ir.walk(body):
            if isinstance(statement, ir.Declare):
                self._held.setdefault(id(statement.register), []).append(statement.value)
            elif isinstance(statement, ir.Store):
                self._note_store(statement)

    def _note_store(self, statement: ir.Store) -> None:
        place = ir.root_of(statement.place)
        if isinstance(place.value, ir.Register):
            self._stored.add(id(place.value))
            self._held.setdefault(id(place.value), []).append(statement.value)

    def _parts(self, root: ir.Expr) -> Iterator[ir.Expr]:
        """Every expression that a value may depend on, through registers."""
        done: set[int] = set()
        stack = [root]
        while stack:
            for expr in nodes((stack.pop(),)):
                yield expr
                register = expr.value
                if isinstance(register, ir.Register) and id(register) not in done:
                    done.add(id(register))
                    stack += self._held.get(id(register), ())

    def is_data(self, root: ir.Expr) -> bool:
        """Whether a value depends on what buffers hold, or in an unknown way on the loops."""
        return any(
            expr.op in _DATA
            or (isinstance(expr.value, ir.Builtin) and "SUBGROUP" in expr.value.name)
            or (isinstance(expr.value, ir.Register) and self._changes(expr.value))
            for expr in self._parts(root)
        )

    def _changes(self, register: ir.Register) -> bool:
        """Whether a register is assigned to anew, or counts in a way that is not known."""
        if register.counter:
            return self.counters.get(id(register)) is None
        return id(register) in self._stored

    def variables(self, root: ir.Expr) -> frozenset[Variable]:
        """Return the variables that a value depends on."""
        found: set[Variable] = set()
        for expr in self._parts(root):
            if expr.op is ir.Op.COMPONENT and expr.args[0].value in IDS:
                found.add((IDS[expr.args[0].value], _AXES[str(expr.value)]))
            elif expr.op in (ir.Op.ATOMIC, ir.Op.SUBGROUP) or (
                isinstance(expr.value, ir.Register) and self._changes(expr.value)
            ):
                return _ALL
            elif isinstance(expr.value, ir.Register) and expr.value.counter:
                form = self.counters.get(id(expr.value))
                found.update(form.variables if form else ())
            elif isinstance(expr.value, ir.Builtin) and "SUBGROUP" in expr.value.name:
                return _ALL
            elif expr.value is ir.Builtin.LOCAL_INVOCATION_INDEX:
                found.add(("local index", 0))
        # An id that is used as a whole shows up without its components.
        whole = {expr.value for expr in self._parts(root) if expr.op is ir.Op.BUILTIN}
        for builtin, kind in IDS.items():
            if builtin in whole and not any(variable[0] == kind for variable in found):
                found.update((kind, axis) for axis in range(3))
        return frozenset(found)

    def constant(self, expr: ir.Expr, env: Environment) -> int | None:
        """Return the value of an integer that is the same everywhere, or None."""
        form = self.linear(expr, env)
        return form.constant if form is not None and form.is_constant else None

    def linear(self, expr: ir.Expr, env: Environment, depth: int = 100) -> Linear | None:
        """Return an integer expression as a linear form, or None."""
        if depth == 0 or is_float_dtype(component_type(expr.dtype)):
            return None
        if expr.op is ir.Op.LITERAL:
            return Linear(int(expr.value)) if isinstance(expr.value, (int, bool)) else None
        if expr.op is ir.Op.ARGUMENT and isinstance(expr.value, ir.Argument):
            return self._argument(expr.value, 0)
        if expr.op is ir.Op.REGISTER and isinstance(expr.value, ir.Register):
            register = expr.value
            if register.counter:
                return self.counters.get(id(register))
            values = self._held.get(id(register), [])
            if len(values) != 1 or id(register) in self._stored:
                return None
            return self.linear(values[0], env, depth - 1)
        if expr.op in (ir.Op.COMPONENT, ir.Op.INDEX):
            axis = (
                _AXES.get(str(expr.value)) if expr.op is ir.Op.COMPONENT else self.constant(expr.args[1], env)
            )
            parts = self.axes(expr.args[0], env, depth - 1)
            return parts[axis] if parts is not None and axis is not None and axis < len(parts) else None
        if expr.op is ir.Op.CONSTRUCT and len(expr.args) == 1:
            return self.linear(expr.args[0], env, depth - 1)
        if expr.op is ir.Op.BUILTIN and expr.value is ir.Builtin.LOCAL_INVOCATION_INDEX:
            return self._variable(("local index", 0), env)
        if expr.op is ir.Op.LENGTH and isinstance(expr.value, ir.Storage):
            size = self.launch.sizes.get(expr.value.index)
            return None if size is None else Linear(size // expr.value.element_size)
        if expr.op is ir.Op.UNARY and expr.value == "-":
            form = self.linear(expr.args[0], env, depth - 1)
            return None if form is None else form.times(-1)
        if expr.op is ir.Op.BINARY:
            left, right = (self.linear(arg, env, depth - 1) for arg in expr.args)
            return None if left is None or right is None else _combine(str(expr.value), left, right)
        if expr.op is ir.Op.CALL and expr.value in ("min", "max") and len(expr.args) == 2:
            left, right = (self.linear(arg, env, depth - 1) for arg in expr.args)
            return None if left is None or right is None else self._extreme(str(expr.value), left, right)
        return None

    def _extreme(self, function: str, left: Linear, right: Linear) -> Linear | None:
        low, high = self.ranges.bounds(left.plus(right, -1))
        if low < 0 < high:
            return None
        return left if (low >= 0) == (function == "max") else right

    def axes(self, expr: ir.Expr, env: Environment, depth: int = 100) -> list[Linear] | None:
        """Return the components of a vector as linear forms, or None."""
        if depth == 0:
            return None
        if expr.op is ir.Op.BUILTIN:
            if expr.value in IDS:
                kind = IDS[expr.value]
                return [self._variable((kind, axis), env) for axis in range(3)]
            extents = {
                ir.Builtin.WORKGROUP_SIZE: self.launch.local_size,
                ir.Builtin.NUM_WORKGROUPS: self.launch.groups,
            }
            extent = extents.get(expr.value)  # type: ignore[arg-type]
            return None if extent is None else [Linear(size) for size in extent]
        if expr.op is ir.Op.ARGUMENT and isinstance(expr.value, ir.Argument):
            values = self.launch.arguments.get(expr.value.name, ())
            return [Linear(value) for value in values if isinstance(value, int)]
        if expr.op is ir.Op.REGISTER and isinstance(expr.value, ir.Register):
            held = self._held.get(id(expr.value), [])
            single = len(held) == 1 and id(expr.value) not in self._stored
            return self.axes(held[0], env, depth - 1) if single else None
        if expr.op is ir.Op.SWIZZLE:
            parts = self.axes(expr.args[0], env, depth - 1)
            return None if parts is None else [parts[_AXES[letter]] for letter in str(expr.value)]
        if expr.op is ir.Op.BINARY:
            sides = [self.axes(arg, env, depth - 1) for arg in expr.args]
            if sides[0] is None or sides[1] is None:
                return None
            found = [_combine(str(expr.value), a, b) for a, b in pair_components(sides[0], sides[1])]
            return None if None in found else found  # type: ignore[return-value]
        if expr.op is ir.Op.CONSTRUCT and len(expr.args) == 1:
            return self.axes(expr.args[0], env, depth - 1)
        if expr.op is ir.Op.CONSTRUCT:
            forms = [self.linear(arg, env, depth - 1) for arg in expr.args]
            return None if None in forms else forms  # type: ignore[return-value]
        form = self.linear(expr, env, depth - 1)
        return None if form is None else [form]

    def _argument(self, argument: ir.Argument, axis: int) -> Linear | None:
        values = self.launch.arguments.get(argument.name, ())
        value = values[axis] if axis < len(values) else None
        return Linear(value) if isinstance(value, int) else None

    def _variable(self, variable: Variable, env: Environment) -> Linear:
        if variable in env:
            return env[variable]
        return linear(0, {variable: 1}) if self.ranges.of(variable) > 1 else Linear(0)

    # -- conditions

    def _difference(self, expr: ir.Expr, env: Environment) -> Linear | None:
        left, right = (self.linear(arg, env) for arg in expr.args)
        return None if left is None or right is None else left.plus(right, -1)

    def truth(self, expr: ir.Expr, env: Environment) -> bool | None:
        """Whether a condition holds for all invocations, for none (False), or that is not known (None)."""
        if expr.op is ir.Op.LITERAL:
            return bool(expr.value)
        if expr.op is ir.Op.UNARY and expr.value == "!":
            truth = self.truth(expr.args[0], env)
            return None if truth is None else not truth
        if expr.op is ir.Op.LOGICAL:
            truths = [self.truth(arg, env) for arg in expr.args]
            decisive = expr.value == "||"
            if decisive in truths:
                return decisive
            return None if None in truths else not decisive
        if expr.op is not ir.Op.COMPARE:
            return None
        form = self._difference(expr, env)
        if form is None:
            return None
        low, high = self.ranges.bounds(form)
        return compare_with_zero(str(expr.value), low, high)

    def confine(self, expr: ir.Expr, env: Environment, holds: bool) -> Environment:
        """Return the environment of a place that is reached if a condition is true, or false.

        Sets `about` if the condition cannot be used.
        """
        if self.truth(expr, env) is holds:
            return env
        if expr.op is ir.Op.UNARY and expr.value == "!":
            return self.confine(expr.args[0], env, not holds)
        if expr.op is ir.Op.LOGICAL and (expr.value == "&&") is holds:
            for arg in expr.args:
                env = self.confine(arg, env, holds)
            return env
        form = self._difference(expr, env) if expr.op is ir.Op.COMPARE else None
        if form is None or len(form.terms) != 1:
            if not self.is_data(expr):
                self.about = True
            return env
        operator = str(expr.value) if holds else _NEGATED[str(expr.value)]
        return self._narrow(form, operator, env)

    def _narrow(self, form: Linear, operator: str, env: Environment) -> Environment:
        ((variable, factor),) = form.terms
        assert isinstance(variable, tuple)
        count = self.ranges.of(variable)
        inside = [0, count - 1]
        # factor * v + constant OP 0, for v in 0 ... count - 1
        if operator == "==":
            if form.constant % factor:
                return env
            inside = [-form.constant // factor] * 2
        elif operator == "!=":
            self.about = True
            return env
        else:
            if operator in (">", ">="):
                factor, constant = -factor, -form.constant
            else:
                constant = form.constant
            most = -constant - (operator in ("<", ">"))  # factor * v <= most
            if factor > 0:
                inside[1] = min(inside[1], most // factor)
            else:
                inside[0] = max(inside[0], -(most // -factor))
        low, high = inside
        if high < low:
            return env
        narrow: Variable = (f"{variable[0]}, {low} to {high}", variable[1])
        self.ranges.sizes[narrow] = high - low + 1
        value = linear(low, {narrow: int(high > low)})
        narrowed = {known: _substitute(form, variable, value) for known, form in env.items()}
        narrowed.setdefault(variable, value)
        return narrowed


def _substitute(form: Linear, variable: Variable, value: Linear) -> Linear:
    terms = dict(form.terms)
    factor = terms.pop(variable, 0)
    return linear(form.constant, terms).plus(value, factor) if factor else form


def _combine(symbol: str, left: Linear, right: Linear) -> Linear | None:
    combined = combine(symbol, left, right)
    if combined is not None or not (left.is_constant and right.is_constant):
        return combined
    function = _ARITHMETIC.get(symbol)
    if (
        function is None
        or (symbol in "/%" and not right.constant)
        or (symbol == ">>" and not can_shift(right))
    ):
        return None
    return Linear(function(left.constant, right.constant))


# ---- shared memory whose size a call decides -------------------------------------------------------

_SIZING = frozenset(("+", "-", "*", "/", "%", ">>", "&", "|"))


def may_size(expr: ir.Expr) -> bool:
    """Whether an expression may be the size of shared memory: integers known before a launch."""
    for node in nodes((expr,)):
        if not is_integer_dtype(node.dtype) or not is_scalar(node.dtype):
            return False
        if node.op is ir.Op.ARGUMENT and isinstance(node.value, ir.Argument) and not node.value.shape:
            continue
        if node.op is ir.Op.LITERAL or (node.op is ir.Op.CONSTRUCT and len(node.args) == 1):
            continue
        if not (node.op is ir.Op.BINARY and node.value in _SIZING) and not (
            node.op is ir.Op.CALL and node.value in ("min", "max")
        ):
            return False
    return True


def is_sized_by_calls(kernel: ir.Kernel) -> bool:
    """Whether calls decide the size of shared memory of a kernel."""
    return any(array.size is None for array in kernel.shared)


def find_shared_sizes(who: str, kernel: ir.Kernel, arguments: Mapping[str, int]) -> tuple[int, ...]:
    """Return the counts of elements of the shared arrays that a call sizes, in their order.

    `arguments` are the integers of the argument block, by name. Raises ValueError for a size below 1.
    """
    one = (1, 1, 1)
    launch = Launch(one, one, one, {name: (value,) for name, value in arguments.items()}, {})
    values = LaunchValues((), launch)
    sizes: list[int] = []
    for array in kernel.shared:
        if array.size is not None:
            continue
        counts = [axis if isinstance(axis, int) else values.constant(axis, {}) for axis in array.shape]
        for axis, count in zip(array.shape, counts, strict=True):
            if count is None or count < 1:
                loc = axis.loc if isinstance(axis, ir.Expr) else None
                raise located(
                    ArgumentValueError,
                    f"{who}: shared buffer {array.name!r}: its size is {count} with these arguments; it must "
                    "be at least 1",
                    loc,
                )
        sizes.append(math.prod(count for count in counts if count is not None))
    return tuple(sizes)


def sizes_of_shared(kernel: ir.Kernel, sized: Sequence[int]) -> dict[int, int]:
    """Return the count of elements of each shared array, by identity; `sized` are those of a call."""
    rest = iter(sized)
    found: dict[int, int] = {}
    for array in kernel.shared:
        size = next(rest, None) if array.size is None else array.size
        if size is not None:
            found[id(array)] = size
    return found
