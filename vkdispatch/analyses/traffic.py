"""Memory traffic of a launch, derived from the accesses of the kernel.

Each element that a launch accesses counts once as read and once as written, as with a perfect cache. So an
index that is the same in all invocations counts one element, the neighbours of a stencil count once, a loop
counts what its rounds touch, and no buffer counts more than its size. Elements of vectors count whole. An
atomic operation reads and writes.

Control flow that depends on data is not known: an access counts if it happens on every path, and otherwise
not at all. An index that depends on data counts one element for each invocation.
"""

from collections.abc import Iterable, Iterator
from enum import IntEnum

from vkdispatch.analyses.footprint import count_touched
from vkdispatch.analyses.launch_values import Environment, Launch, LaunchValues
from vkdispatch.analyses.linear import Linear, Variable, linear
from vkdispatch.base.dtype import is_array
from vkdispatch.base.record import record
from vkdispatch.ir import (
    Block,
    Break,
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
