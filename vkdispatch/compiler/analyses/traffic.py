"""Memory traffic of a launch, derived from the accesses of the kernel."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum

from vkdispatch.base.dtype import (
    DType,
    bool_,
    component_type,
    int16,
    int32,
    int64,
    is_array,
    is_integer_dtype,
    is_scalar,
    is_signed_dtype,
    is_vector,
    uint16,
    uint32,
    uint64,
)
from vkdispatch.base.record import record
from vkdispatch.compiler.analyses.launch_values import (
    Environment,
    Extent,
    Launch,
    LaunchValues,
    Linear,
    Ranges,
    Remainder,
    Term,
    Variable,
    can_shift,
    combine,
    compare_with_zero,
    linear,
    pair_components,
    quotient,
)
from vkdispatch.compiler.ir import (
    Argument,
    Block,
    Break,
    Builtin,
    Continue,
    Declare,
    Expr,
    For,
    If,
    ImageBinding,
    ImageStore,
    Kernel,
    MatrixStore,
    Op,
    RawStatement,
    Register,
    Return,
    Statement,
    Storage,
    Store,
    Switch,
    While,
    blocks_of,
    expressions_of,
    walk,
    without_asserts,
)

# ---- How many elements indices touch together, found without running anything ----------------------------
#
# Variables whose steps do not fit between those of the others are like the digits of a number.


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


# ---- Index expressions as linear forms of the global invocation id, given the arguments of one launch ----
#
# The forms are exact: an expression that might leave the range of its integer type has none.


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


# Each element that a launch accesses counts once as read and once as written, as with a perfect cache. So
# an index that is the same in all invocations counts one element, the neighbours of a stencil count once, a
# loop counts what its rounds touch, and no buffer counts more than its size. Elements of vectors count
# whole. An atomic operation reads and writes.
#
# Control flow that depends on data is not known: an access counts if it happens on every path, and
# otherwise not at all. An index that depends on data counts one element for each invocation.


class Known(IntEnum):
    """How well a number of bytes is known."""

    EXACT = 0
    ABOUT = 1  # conditions or indices are too intricate
    AT_LEAST = 2  # the data decide on more


@record
class Traffic:
    """Bytes that a launch reads and writes."""

    read: int
    written: int
    known: Known


@record
class _Access:
    """`form` is None if the index is not linear; `variables` are those that it depends on."""

    resource: Storage | ImageBinding
    writes: bool
    form: Linear | None
    variables: frozenset[Variable]
    data: bool  # whether the index depends on data
    expr: int  # distinguishes indices that are not linear

    @property
    def key(self) -> tuple[object, ...]:
        return (self.resource, self.writes, self.form if self.form is not None else self.expr)


@record
class _Flow:
    """How a block ends: `env` is valid after it, None if its end is not reached; `data` may decide that."""

    env: Environment | None
    data: bool = False


# Larger than any image, so that axes do not overlap.
_IMAGE_AXIS = 1 << 40


def traffic(kernel: Kernel, launch: Launch) -> Traffic:
    """Count the bytes that a launch of a kernel moves."""
    body = without_asserts(kernel.body)
    counter = _Counter(body, launch)
    counter.walk(body, {})
    totals = {False: 0, True: 0}
    for (resource, writes), accesses in counter.by_resource().items():
        totals[writes] += counter.bytes_of(resource, accesses)
    return Traffic(totals[False], totals[True], counter.known)


class _Counter:
    """Walks a kernel once."""

    def __init__(self, body: Block, launch: Launch) -> None:
        self.launch = launch
        self.accesses: list[_Access] = []
        self._values = LaunchValues(body, launch)
        self._doubts = Known.EXACT
        if any(isinstance(statement, RawStatement) for statement in walk(body)):
            self._doubt(Known.AT_LEAST)

    @property
    def known(self) -> Known:
        """How well the bytes counted so far are known."""
        return max(self._doubts, Known.ABOUT if self._values.about else Known.EXACT)

    def _doubt(self, known: Known) -> None:
        self._doubts = max(self._doubts, known)

    # -- statements

    def walk(self, block: Block, env: Environment) -> _Flow:
        """Count the accesses of a block."""
        for position, statement in enumerate(block):
            flow = self._statement(statement, env)
            if flow.env is None:
                return flow
            env = flow.env
            if flow.data:
                self._perhaps(block[position + 1 :], env)
                return flow
        return _Flow(env)

    def _statement(self, statement: Statement, env: Environment) -> _Flow:
        if isinstance(statement, (Return, Break, Continue)):
            return _Flow(None)
        self._expressions(statement, env)
        if isinstance(statement, If):
            return self._branches(statement, env)
        if isinstance(statement, For):
            self._loop(statement, env)
        elif isinstance(statement, While):
            self._perhaps(statement.body, env)
        elif isinstance(statement, Switch):
            return self._switch(statement, env)
        else:
            for inner in blocks_of(statement):
                return self.walk(inner, env)
        return _Flow(env)

    def _branches(self, statement: If, env: Environment) -> _Flow:
        remaining: list[tuple[Block, Environment]] = []
        inner = env
        for condition, body in statement.branches:
            truth = self._values.truth(condition, inner)
            if truth is not False:
                plain = all(isinstance(only, (Return, Break, Continue)) for only in body)
                remaining.append((body, inner if plain else self._values.confine(condition, inner, True)))
            if truth is True:
                break
            if len(statement.branches) > 1 or statement.orelse or _leaves(body):
                inner = self._values.confine(condition, inner, False)
        else:
            remaining.append((statement.orelse or (), inner))
        data = any(self._values.is_data(condition) for condition, _ in statement.branches)
        return self._choose(remaining, env, data=data and len(remaining) > 1)

    def _choose(self, choices: list[tuple[Block, Environment]], env: Environment, *, data: bool) -> _Flow:
        """Count several blocks, one of which runs; if `data` decides, only their common accesses."""
        outer, found, flows = self.accesses, [], []
        for body, inner in choices:
            self.accesses = []
            flows.append(self.walk(body, inner))
            found.append(self.accesses)
        self.accesses = outer
        if data:
            keys = [{access.key for access in accesses} for accesses in found]
            common = set.intersection(*keys)
            found = [[access for access in found[0] if access.key in common]]
            if any(some != common for some in keys):
                self._doubt(Known.AT_LEAST)
        for accesses in found:
            self.accesses += accesses
        staying = [flow.env for flow in flows if flow.env is not None]
        uncertain = any(flow.data for flow in flows)
        if not staying:
            return _Flow(None)
        if len(staying) == len(flows) and len(flows) > 1:
            return _Flow(env, uncertain)
        if data:
            return _Flow(env, data=True)
        return _Flow(staying[0] if len(staying) == 1 else env, uncertain)

    def _perhaps(self, body: Block, env: Environment) -> None:
        self._choose([(body, env), ((), env)], env, data=True)

    def _switch(self, statement: Switch, env: Environment) -> _Flow:
        chosen = self._values.constant(statement.value, env)
        bodies = [body for values, body in statement.cases if chosen is None or chosen in values]
        if chosen is None or not bodies:
            bodies.append(statement.default or ())
        data = len(bodies) > 1 and self._values.is_data(statement.value)
        if len(bodies) > 1 and not data:
            self._doubt(Known.ABOUT)
        return self._choose([(body, env) for body in bodies], env, data=data)

    def _loop(self, statement: For, env: Environment) -> None:
        bounds = (statement.start, statement.stop, statement.step)
        start, stop, step = (self._values.linear(expr, env) for expr in bounds)
        if start is None or stop is None or step is None or not step.is_constant:
            self._values.counters[id(statement.counter)] = None
            self._perhaps(statement.body, env)
            return
        length, by = stop.plus(start, -1), step.constant
        low, high = self._values.ranges.bounds(length)
        rounds = 0 if by == 0 else max(0, -(-(high if by > 0 else low) // by))
        if rounds == 0:
            return
        if low != high:
            self._doubt(Known.ABOUT)  # the counts differ: the longest counts
        if _ends_early(statement.body):
            self._doubt(Known.AT_LEAST)
            rounds = 1
        variable = ("loop", id(statement.counter))
        self._values.ranges.sizes[variable] = rounds
        counter = start.plus(linear(0, {variable: by})) if rounds > 1 else start
        self._values.counters[id(statement.counter)] = counter
        self.walk(statement.body, env)

    # -- expressions

    def _expressions(self, statement: Statement, env: Environment) -> None:
        if isinstance(statement, Store):
            self._write(statement.place, env, reads=statement.operator is not None)
            self._read((statement.value,), env)
        elif isinstance(statement, ImageStore):
            self._note(statement.image, True, statement.coordinate, env)
            self._read((statement.coordinate, statement.value), env)
        elif isinstance(statement, MatrixStore):
            self._write(statement.place, env, reads=False)
            self._read((statement.value, statement.stride, *statement.window), env)
        elif isinstance(statement, Declare) and statement.value.op is Op.ATOMIC:
            place, *operands = statement.value.args
            self._write(place, env, reads=True)
            self._read(operands, env)
        elif isinstance(statement, If):
            self._read((statement.branches[0][0],), env)
            for condition, _ in statement.branches[1:]:
                self._read_perhaps(condition, env)
        else:
            self._read(expressions_of(statement), env)

    def _write(self, place: Expr, env: Environment, *, reads: bool) -> None:
        while place.op in (Op.INDEX, Op.COMPONENT):
            self._read(place.args[1:], env)
            place = place.args[0]
        if place.op is Op.ELEMENT and isinstance(place.value, Storage):
            self._note(place.value, True, place.args[0], env)
            if reads:
                self._note(place.value, False, place.args[0], env)
        self._read(place.args, env)

    def _read_perhaps(self, expr: Expr, env: Environment) -> None:
        outer, self.accesses = self.accesses, []
        self._read((expr,), env)
        found, self.accesses = self.accesses, outer
        noted = {access.key for access in outer}
        if any(access.key not in noted for access in found):
            self._doubt(Known.AT_LEAST)

    def _read(self, roots: Iterable[Expr], env: Environment) -> None:
        """Count what expressions read; of conditional operands only reads that happen in any case."""
        perhaps: list[Expr] = []
        stack, seen = list(roots), set[int]()
        while stack:
            expr = stack.pop()
            if id(expr) in seen:
                continue
            seen.add(id(expr))
            image = expr.op in (Op.SAMPLE, Op.IMAGE_LOAD)
            if (image or expr.op is Op.ELEMENT) and isinstance(expr.value, (Storage, ImageBinding)):
                self._note(expr.value, False, expr.args[0], env)
            elif expr.op is Op.RAW:
                self._doubt(Known.AT_LEAST)
            if expr.op in (Op.SELECT, Op.LOGICAL):
                stack.append(expr.args[0])
                perhaps += expr.args[1:]
            else:
                stack.extend(expr.args)
        for expr in perhaps:
            self._read_perhaps(expr, env)

    def _note(self, resource: Storage | ImageBinding, writes: bool, index: Expr, env: Environment) -> None:
        if isinstance(resource, Storage):
            form = self._values.linear(index, env)
        else:
            axes = self._values.axes(index, env)
            form = None if axes is None else Linear(0)
            for axis, part in enumerate(axes or ()):
                form = form.plus(part, _IMAGE_AXIS**axis) if form is not None else None
        data = form is None and self._values.is_data(index)
        variables = form.variables if form else self._values.variables(index)
        self.accesses.append(_Access(resource, writes, form, variables, data, id(index)))

    # -- bytes

    def by_resource(self) -> dict[tuple[Storage | ImageBinding, bool], list[_Access]]:
        """Return the accesses of each resource, reads (False) and writes (True) apart."""
        found: dict[tuple[Storage | ImageBinding, bool], list[_Access]] = {}
        for access in self.accesses:
            found.setdefault((access.resource, access.writes), []).append(access)
        return found

    def bytes_of(self, resource: Storage | ImageBinding, accesses: list[_Access]) -> int:
        """Return the bytes that accesses to one resource touch."""
        if isinstance(resource, Storage):
            size = resource.dtype.item_size
            if is_array(resource.dtype):
                # items of arrays are not told apart
                self._doubt(Known.ABOUT)
        else:
            size = self.launch.texels.get(resource.index, resource.texel.item_size)
        most = self.launch.sizes.get(resource.index)
        count, exact = count_touched([a.form for a in accesses if a.form is not None], self._values.ranges)
        others = {access.expr: access for access in accesses if access.form is None}
        for access in others.values():
            count += self._combinations(access.variables)
        if any(access.data for access in others.values()):
            self._doubt(Known.AT_LEAST)
        total = count * size
        if most is not None and total >= most:
            return most
        if others or not exact:
            self._doubt(Known.ABOUT)
        return total

    def _combinations(self, variables: frozenset[Variable]) -> int:
        rounds = invocations = 1
        for variable in variables:
            if variable[0] == "loop":
                rounds *= self._values.ranges.of(variable)
            else:
                invocations *= self._values.ranges.of(variable)
        x, y, z = self.launch.invocations
        return rounds * min(invocations, x * y * z)


def _leaves(body: Block) -> bool:
    """Whether some way through a block ends the invocation, or the round of the loop around it."""
    returns = any(isinstance(statement, Return) for statement in walk(body))
    return returns or any(isinstance(statement, (Break, Continue)) for statement in _outside_loops(body))


def _ends_early(body: Block) -> bool:
    """Whether a loop with this body may end before its last round."""
    returns = any(isinstance(statement, Return) for statement in walk(body))
    return returns or any(isinstance(statement, Break) for statement in _outside_loops(body))


def _outside_loops(body: Block) -> Iterator[Statement]:
    for statement in body:
        yield statement
        if not isinstance(statement, (For, While)):
            for inner in blocks_of(statement):
                yield from _outside_loops(inner)
