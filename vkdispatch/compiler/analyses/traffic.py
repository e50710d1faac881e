"""Memory traffic of a launch, derived from the accesses of the kernel."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum

from vkdispatch.base import dtype as dt
from vkdispatch.base.record import record
from vkdispatch.compiler import ir
from vkdispatch.compiler.analyses import launch_values
from vkdispatch.compiler.ir import walk

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


def digits_of(form: launch_values.Linear, ranges: launch_values.Ranges) -> Digits:
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


def count_touched(forms: Sequence[launch_values.Linear], ranges: launch_values.Ranges) -> tuple[int, bool]:
    """Return how many elements several indices touch together, and whether that is exact.

    Those of a stencil differ by a constant: what they share counts once.
    """
    runs: list[tuple[int, int]] = []  # without gaps
    others: list[tuple[int, int, int]] = []  # (least, greatest, elements)
    exact = True
    groups: dict[frozenset[launch_values.Term], set[int]] = {}
    for form in forms:
        groups.setdefault(form.terms, set()).add(form.constant)
    for terms, constants in groups.items():
        values = digits_of(launch_values.Linear(0, terms), ranges)
        exact &= values.exact
        low, high = ranges.bounds(launch_values.Linear(0, terms))
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
_INTEGERS = (dt.int16, dt.uint16, dt.int32, dt.uint32, dt.int64, dt.uint64)
# Deeper expressions are not looked into: no index is.
_DEEPEST = 60


class Space:
    """The invocations of one launch, and what of its arguments is known."""

    def __init__(
        self,
        extent: launch_values.Extent,
        value_of: Callable[[ir.Argument], tuple[int, ...] | None],
        definitions: Mapping[ir.Register, ir.Expr],
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
        self._ranges = launch_values.Ranges({_axis(axis): count for axis, count in enumerate(extent)})
        self._value_of = value_of
        self._definitions = definitions
        self._known: dict[int, tuple[launch_values.Linear, ...] | None] = {}

    # -- values

    def form(self, expr: ir.Expr) -> launch_values.Linear | None:
        """Return an integer scalar as a form, or None if it is none."""
        forms = self._forms(expr, 0)
        return forms[0] if forms is not None and len(forms) == 1 else None

    def limits(self, form: launch_values.Linear) -> tuple[int, int]:
        """Return bounds of a form's value; of one with axes alone they are the least and the largest."""
        return self._ranges.bounds(form)

    def _forms(self, expr: ir.Expr, depth: int) -> tuple[launch_values.Linear, ...] | None:
        if id(expr) not in self._known:
            forms = self._compute(expr, depth) if depth < _DEEPEST else None
            if forms is not None and not all(self._fits(form, expr.dtype) for form in forms):
                forms = None
            self._known[id(expr)] = forms
        return self._known[id(expr)]

    def _fits(self, form: launch_values.Linear, kind: dt.DType) -> bool:
        scalar = dt.component_type(kind)
        if scalar not in _INTEGERS:
            return False
        bits = 8 * scalar.item_size
        least = -(1 << (bits - 1)) if dt.is_signed_dtype(scalar) else 0
        low, high = self.limits(form)
        return least <= low and high < least + (1 << bits)

    def _compute(self, expr: ir.Expr, depth: int) -> tuple[launch_values.Linear, ...] | None:
        if not dt.is_integer_dtype(expr.dtype) or not (dt.is_scalar(expr.dtype) or dt.is_vector(expr.dtype)):
            return None
        if expr.op is ir.Op.LITERAL:
            return (launch_values.Linear(int(expr.value)),)  # type: ignore[arg-type]
        if expr.op is ir.Op.ARGUMENT and isinstance(expr.value, ir.Argument):
            known = self._value_of(expr.value)
            return None if known is None else tuple(map(launch_values.Linear, known))
        if expr.op is ir.Op.BUILTIN:
            if expr.value is not ir.Builtin.GLOBAL_INVOCATION_ID:
                return None
            # an axis of one invocation is not there
            return tuple(
                launch_values.linear(0, {axis: int(self._ranges.of(axis) > 1)})
                for axis in map(_axis, range(3))
            )
        if expr.op is ir.Op.REGISTER and isinstance(expr.value, ir.Register):
            defined = self._definitions.get(expr.value)
            return None if defined is None else self._forms(defined, depth + 1)
        parts = [self._forms(arg, depth + 1) for arg in expr.args]
        known_parts = [part for part in parts if part is not None]
        if len(known_parts) != len(parts):
            return None
        if expr.op in (ir.Op.COMPONENT, ir.Op.SWIZZLE):
            (base,) = known_parts
            letters = [_LETTERS.index(letter) for letter in str(expr.value)]
            return tuple(base[letter] for letter in letters) if max(letters) < len(base) else None
        if expr.op is ir.Op.INDEX:
            base, position = known_parts
            at = position[0]
            return None if not at.is_constant or not 0 <= at.constant < len(base) else (base[at.constant],)
        if expr.op is ir.Op.CONSTRUCT:
            return self._construct(expr, known_parts)
        if expr.op is ir.Op.UNARY and expr.value == "-":
            return tuple(form.times(-1) for form in known_parts[0])
        if expr.op is ir.Op.BINARY:
            left, right = known_parts
            found = [
                self._binary(str(expr.value), a, b) for a, b in launch_values.pair_components(left, right)
            ]
            forms = tuple(form for form in found if form is not None)
            return forms if len(forms) == len(found) else None
        return None

    def _construct(
        self, expr: ir.Expr, parts: list[tuple[launch_values.Linear, ...]]
    ) -> tuple[launch_values.Linear, ...] | None:
        given = tuple(form for part in parts for form in part)
        wanted = 1 if dt.is_scalar(expr.dtype) else expr.dtype.child_count
        if len(given) == 1:
            return given * wanted
        return given[:wanted] if len(given) >= wanted else None

    def _binary(
        self, symbol: str, a: launch_values.Linear, b: launch_values.Linear
    ) -> launch_values.Linear | None:
        combined = launch_values.combine(symbol, a, b)
        if combined is not None or not b.is_constant:
            return combined
        if symbol == ">>" and launch_values.can_shift(b):
            return self._divide("/", a, 1 << b.constant)
        if symbol == "&" and b.constant >= 0 and b.constant & (b.constant + 1) == 0:
            return self._divide("%", a, b.constant + 1)
        if symbol in ("/", "%") and b.constant > 0:
            return self._divide(symbol, a, b.constant)
        return None

    def _divide(self, symbol: str, form: launch_values.Linear, by: int) -> launch_values.Linear | None:
        low, high = self.limits(form)
        if low < 0:
            return None
        if high < by:
            return launch_values.Linear(0) if symbol == "/" else form
        if by == 1:
            return form if symbol == "/" else launch_values.Linear(0)
        if form.is_constant:
            return launch_values.Linear(low // by if symbol == "/" else low % by)
        if symbol == "%":
            return launch_values.linear(0, {launch_values.Remainder(form, by): 1})
        return launch_values.linear(0, {launch_values.quotient(form, by): 1})

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
        return launch_values.compare_with_zero(str(condition.value), *self.limits(left.plus(right, -1)))

    def is_injective(self, form: launch_values.Linear) -> bool:
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


def _axis(axis: int) -> launch_values.Variable:
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

    resource: ir.Storage | ir.ImageBinding
    writes: bool
    form: launch_values.Linear | None
    variables: frozenset[launch_values.Variable]
    data: bool  # whether the index depends on data
    expr: int  # distinguishes indices that are not linear

    @property
    def key(self) -> tuple[object, ...]:
        return (self.resource, self.writes, self.form if self.form is not None else self.expr)


@record
class _Flow:
    """How a block ends: `env` is valid after it, None if its end is not reached; `data` may decide that."""

    env: launch_values.Environment | None
    data: bool = False


# Larger than any image, so that axes do not overlap.
_IMAGE_AXIS = 1 << 40


def traffic(kernel: ir.Kernel, launch: launch_values.Launch) -> Traffic:
    """Count the bytes that a launch of a kernel moves."""
    body = ir.without_asserts(kernel.body)
    counter = _Counter(body, launch)
    counter.walk(body, {})
    totals = {False: 0, True: 0}
    for (resource, writes), accesses in counter.by_resource().items():
        totals[writes] += counter.bytes_of(resource, accesses)
    return Traffic(totals[False], totals[True], counter.known)


class _Counter:
    """Walks a kernel once."""

    def __init__(self, body: ir.Block, launch: launch_values.Launch) -> None:
        self.launch = launch
        self.accesses: list[_Access] = []
        self._values = launch_values.LaunchValues(body, launch)
        self._doubts = Known.EXACT
        if any(isinstance(statement, ir.RawStatement) for statement in walk(body)):
            self._doubt(Known.AT_LEAST)

    @property
    def known(self) -> Known:
        """How well the bytes counted so far are known."""
        return max(self._doubts, Known.ABOUT if self._values.about else Known.EXACT)

    def _doubt(self, known: Known) -> None:
        self._doubts = max(self._doubts, known)

    # -- statements

    def walk(self, block: ir.Block, env: launch_values.Environment) -> _Flow:
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

    def _statement(self, statement: ir.Statement, env: launch_values.Environment) -> _Flow:
        if isinstance(statement, (ir.Return, ir.Break, ir.Continue)):
            return _Flow(None)
        self._expressions(statement, env)
        if isinstance(statement, ir.If):
            return self._branches(statement, env)
        if isinstance(statement, ir.For):
            self._loop(statement, env)
        elif isinstance(statement, ir.While):
            self._perhaps(statement.body, env)
        elif isinstance(statement, ir.Switch):
            return self._switch(statement, env)
        else:
            for inner in ir.blocks_of(statement):
                return self.walk(inner, env)
        return _Flow(env)

    def _branches(self, statement: ir.If, env: launch_values.Environment) -> _Flow:
        remaining: list[tuple[ir.Block, launch_values.Environment]] = []
        inner = env
        for condition, body in statement.branches:
            truth = self._values.truth(condition, inner)
            if truth is not False:
                plain = all(isinstance(only, (ir.Return, ir.Break, ir.Continue)) for only in body)
                remaining.append((body, inner if plain else self._values.confine(condition, inner, True)))
            if truth is True:
                break
            if len(statement.branches) > 1 or statement.orelse or _leaves(body):
                inner = self._values.confine(condition, inner, False)
        else:
            remaining.append((statement.orelse or (), inner))
        data = any(self._values.is_data(condition) for condition, _ in statement.branches)
        return self._choose(remaining, env, data=data and len(remaining) > 1)

    def _choose(
        self,
        choices: list[tuple[ir.Block, launch_values.Environment]],
        env: launch_values.Environment,
        *,
        data: bool,
    ) -> _Flow:
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

    def _perhaps(self, body: ir.Block, env: launch_values.Environment) -> None:
        self._choose([(body, env), ((), env)], env, data=True)

    def _switch(self, statement: ir.Switch, env: launch_values.Environment) -> _Flow:
        chosen = self._values.constant(statement.value, env)
        bodies = [body for values, body in statement.cases if chosen is None or chosen in values]
        if chosen is None or not bodies:
            bodies.append(statement.default or ())
        data = len(bodies) > 1 and self._values.is_data(statement.value)
        if len(bodies) > 1 and not data:
            self._doubt(Known.ABOUT)
        return self._choose([(body, env) for body in bodies], env, data=data)

    def _loop(self, statement: ir.For, env: launch_values.Environment) -> None:
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
        counter = start.plus(launch_values.linear(0, {variable: by})) if rounds > 1 else start
        self._values.counters[id(statement.counter)] = counter
        self.walk(statement.body, env)

    # -- expressions

    def _expressions(self, statement: ir.Statement, env: launch_values.Environment) -> None:
        if isinstance(statement, ir.Store):
            self._write(statement.place, env, reads=statement.operator is not None)
            self._read((statement.value,), env)
        elif isinstance(statement, ir.ImageStore):
            self._note(statement.image, True, statement.coordinate, env)
            self._read((statement.coordinate, statement.value), env)
        elif isinstance(statement, ir.MatrixStore):
            self._write(statement.place, env, reads=False)
            self._read((statement.value, statement.stride, *statement.window), env)
        elif isinstance(statement, ir.Declare) and statement.value.op is ir.Op.ATOMIC:
            place, *operands = statement.value.args
            self._write(place, env, reads=True)
            self._read(operands, env)
        elif isinstance(statement, ir.If):
            self._read((statement.branches[0][0],), env)
            for condition, _ in statement.branches[1:]:
                self._read_perhaps(condition, env)
        else:
            self._read(ir.expressions_of(statement), env)

    def _write(self, place: ir.Expr, env: launch_values.Environment, *, reads: bool) -> None:
        while place.op in (ir.Op.INDEX, ir.Op.COMPONENT):
            self._read(place.args[1:], env)
            place = place.args[0]
        if place.op is ir.Op.ELEMENT and isinstance(place.value, ir.Storage):
            self._note(place.value, True, place.args[0], env)
            if reads:
                self._note(place.value, False, place.args[0], env)
        self._read(place.args, env)

    def _read_perhaps(self, expr: ir.Expr, env: launch_values.Environment) -> None:
        outer, self.accesses = self.accesses, []
        self._read((expr,), env)
        found, self.accesses = self.accesses, outer
        noted = {access.key for access in outer}
        if any(access.key not in noted for access in found):
            self._doubt(Known.AT_LEAST)

    def _read(self, roots: Iterable[ir.Expr], env: launch_values.Environment) -> None:
        """Count what expressions read; of conditional operands only reads that happen in any case."""
        perhaps: list[ir.Expr] = []
        stack, seen = list(roots), set[int]()
        while stack:
            expr = stack.pop()
            if id(expr) in seen:
                continue
            seen.add(id(expr))
            image = expr.op in (ir.Op.SAMPLE, ir.Op.IMAGE_LOAD)
            if (image or expr.op is ir.Op.ELEMENT) and isinstance(expr.value, (ir.Storage, ir.ImageBinding)):
                self._note(expr.value, False, expr.args[0], env)
            elif expr.op is ir.Op.RAW:
                self._doubt(Known.AT_LEAST)
            if expr.op in (ir.Op.SELECT, ir.Op.LOGICAL):
                stack.append(expr.args[0])
                perhaps += expr.args[1:]
            else:
                stack.extend(expr.args)
        for expr in perhaps:
            self._read_perhaps(expr, env)

    def _note(
        self,
        resource: ir.Storage | ir.ImageBinding,
        writes: bool,
        index: ir.Expr,
        env: launch_values.Environment,
    ) -> None:
        if isinstance(resource, ir.Storage):
            form = self._values.linear(index, env)
        else:
            axes = self._values.axes(index, env)
            form = None if axes is None else launch_values.Linear(0)
            for axis, part in enumerate(axes or ()):
                form = form.plus(part, _IMAGE_AXIS**axis) if form is not None else None
        data = form is None and self._values.is_data(index)
        variables = form.variables if form else self._values.variables(index)
        self.accesses.append(_Access(resource, writes, form, variables, data, id(index)))

    # -- bytes

    def by_resource(self) -> dict[tuple[ir.Storage | ir.ImageBinding, bool], list[_Access]]:
        """Return the accesses of each resource, reads (False) and writes (True) apart."""
        found: dict[tuple[ir.Storage | ir.ImageBinding, bool], list[_Access]] = {}
        for access in self.accesses:
            found.setdefault((access.resource, access.writes), []).append(access)
        return found

    def bytes_of(self, resource: ir.Storage | ir.ImageBinding, accesses: list[_Access]) -> int:
        """Return the bytes that accesses to one resource touch."""
        if isinstance(resource, ir.Storage):
            size = resource.dtype.item_size
            if dt.is_array(resource.dtype):
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

    def _combinations(self, variables: frozenset[launch_values.Variable]) -> int:
        rounds = invocations = 1
        for variable in variables:
            if variable[0] == "loop":
                rounds *= self._values.ranges.of(variable)
            else:
                invocations *= self._values.ranges.of(variable)
        x, y, z = self.launch.invocations
        return rounds * min(invocations, x * y * z)


def _leaves(body: ir.Block) -> bool:
    """Whether some way through a block ends the invocation, or the round of the loop around it."""
    returns = any(isinstance(statement, ir.Return) for statement in walk(body))
    return returns or any(
        isinstance(statement, (ir.Break, ir.Continue)) for statement in _outside_loops(body)
    )


def _ends_early(body: ir.Block) -> bool:
    """Whether a loop with this body may end before its last round."""
    returns = any(isinstance(statement, ir.Return) for statement in walk(body))
    return returns or any(isinstance(statement, ir.Break) for statement in _outside_loops(body))


def _outside_loops(body: ir.Block) -> Iterator[ir.Statement]:
    for statement in body:
        yield statement
        if not isinstance(statement, (ir.For, ir.While)):
            for inner in ir.blocks_of(statement):
                yield from _outside_loops(inner)
