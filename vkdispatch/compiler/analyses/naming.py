"""Equal expressions of a kernel, and which of them get a name in the generated code."""

from collections.abc import Iterable, Iterator

from vkdispatch.base.dtype import is_array
from vkdispatch.base.record import record
from vkdispatch.compiler.analyses.contents import PURE, contents
from vkdispatch.compiler.ir import Block, Expr, If, Kernel, Op, Statement, While, blocks_of, evaluated

_SELECTIONS = frozenset((Op.INDEX, Op.COMPONENT, Op.SWIZZLE))
_NEVER_NAMED = frozenset((Op.LITERAL, Op.ARGUMENT, Op.BUILTIN, Op.REGISTER, Op.RAW, Op.ATOMIC))
# Operations that evaluate their first operand, and others only if they matter.
_CONDITIONAL = frozenset((Op.LOGICAL, Op.SELECT))
# Deeper trees are cut into pieces, since compilers and Python limit recursion.
_DEEPEST = 40


# ---- equal expressions ---------------------------------------------------------------------------


class Numbering:
    """Numbers expressions so that structurally equal ones share a number; operands have smaller numbers.

    Attributes, all indexed by number: `exprs` (a representative), `args` (numbers of the operands), `pure`
    (the value is the same wherever it is computed). `by_id` has the numbers of expressions, by identity.
    """

    def __init__(self, expressions: Iterable[Expr] = ()) -> None:
        self.by_id: dict[int, int] = {}
        self._by_key: dict[tuple[object, ...], int] = {}
        self.exprs: list[Expr] = []
        self.args: list[tuple[int, ...]] = []
        self.pure: list[bool] = []
        by_id, intern = self.by_id, self._intern
        for expr in expressions:  # operands first
            args = expr.args
            intern(expr, tuple([by_id[id(arg)] for arg in args]) if args else ())

    def number(self, root: Expr) -> int:
        """Return the number of an expression, which must stay alive."""
        by_id = self.by_id
        known = by_id.get(id(root))
        if known is not None:
            return known
        stack = [root]
        while stack:
            expr = stack[-1]
            numbers = []
            for arg in expr.args:
                number = by_id.get(id(arg))
                if number is None:
                    if arg.args:
                        # visited again when the number of this one is known
                        stack.append(arg)
                        break
                    number = self._intern(arg, ())
                numbers.append(number)
            else:
                if id(expr) not in by_id:
                    self._intern(expr, tuple(numbers))
                stack.pop()
        return by_id[id(root)]

    def _intern(self, expr: Expr, args: tuple[int, ...]) -> int:
        op = expr.op
        # repr tells 0.0 from -0.0 and makes nan equal to itself
        value = repr(expr.value) if op is Op.LITERAL else expr.value
        key = (op, expr.dtype, value, args)
        number = self._by_key.get(key)
        if number is None:
            number = self._by_key[key] = len(self.exprs)
            self.exprs.append(expr)
            self.args.append(args)
            self.pure.append(op in PURE and (not args or False not in [self.pure[arg] for arg in args]))
        self.by_id[id(expr)] = number
        return number


class _Places:
    """The places of statements. A place has a number, and lies in a block, which may be inside a place."""

    def __init__(self) -> None:
        self._outer: list[int] = []
        self._depth: list[int] = []
        self._block: list[int] = []
        self._position: list[int] = []
        self._blocks = 0
        # what `NamingPlan.before` calls a place
        self.keys: list[tuple[int, int]] = []

    def find_roots(self, block: Block, outer: int = -1) -> Iterator[tuple[Expr, int]]:
        """Yield the expressions that the statements of a block use, with their places."""
        number = self._blocks
        self._blocks += 1
        depth = 0 if outer < 0 else self._depth[outer] + 1
        for position, statement in enumerate(block):
            place = len(self.keys)
            self.keys.append((id(block), position))
            self._outer.append(outer)
            self._depth.append(depth)
            self._block.append(number)
            self._position.append(position)
            for expr in evaluated(statement):
                yield expr, place
            for inner in blocks_of(statement):
                yield from self.find_roots(inner, place)

    def join(self, a: int, b: int) -> int:
        """Return the last place that comes before both and whose block contains both."""
        outer, depth, block = self._outer, self._depth, self._block
        while depth[a] > depth[b]:
            a = outer[a]
        while depth[b] > depth[a]:
            b = outer[b]
        while block[a] != block[b]:
            a, b = outer[a], outer[b]
        return a if self._position[a] <= self._position[b] else b


@record(eq=False, frozen=False)
class NamingPlan:
    """Expressions to compute once.

    `before` maps (block identity, statement index) to numbers, operands first. `tall` is whether some trees
    are so deep that statements have to cut them.
    """

    numbering: Numbering
    before: dict[tuple[int, int], list[int]]
    named: set[int]
    tall: bool = False


def plan_names(kernel: Kernel) -> NamingPlan:
    """Choose the pure expressions that get a name, and where each is declared.

    A name is declared just before the first statement that uses it, in the innermost block around all its
    uses.
    """
    numbering = Numbering(contents(kernel).evaluated)
    places = _Places()
    uses: dict[int, int] = {}
    where: dict[int, int] = {}

    for root, place in places.find_roots(kernel.body):
        number = numbering.number(root)
        known = where.get(number)
        where[number] = place if known is None or known == place else places.join(known, place)
        uses[number] = uses.get(number, 0) + 1
    heights: list[int] = []
    for args in numbering.args:
        # height above the last cut, to cut deep pure trees evenly
        heights.append(1 + max([heights[arg] % _DEEPEST for arg in args]) if args else 1)
    plan = NamingPlan(numbering, {}, set(), _DEEPEST in heights)
    for number in range(len(numbering.exprs) - 1, -1, -1):
        count = uses.get(number, 0)
        operands = numbering.args[number]
        if not count or not (operands or numbering.pure[number]):
            continue
        deep = heights[number] == _DEEPEST
        if numbering.pure[number] and (count >= 2 or deep) and _worth_a_name(numbering, number):
            plan.named.add(number)
            plan.before.setdefault(places.keys[where[number]], []).append(number)
            count = 1
        place = where[number]
        for arg in operands:
            known = where.get(arg)
            where[arg] = place if known is None or known == place else places.join(known, place)
            uses[arg] = uses.get(arg, 0) + count
    for numbers in plan.before.values():
        numbers.reverse()
    return plan


def _is_trivial(numbering: Numbering, number: int) -> bool:
    """Whether an expression is as short as a name."""
    expr = numbering.exprs[number]
    if expr.op in _NEVER_NAMED:
        return True
    if expr.op in _SELECTIONS or expr.op is Op.UNARY:
        return all(_is_trivial(numbering, arg) for arg in numbering.args[number])
    if expr.op is Op.CONSTRUCT:
        args = numbering.args[number]
        literals = all(numbering.exprs[arg].op is Op.LITERAL for arg in args)
        return literals or (len(args) == 1 and _is_trivial(numbering, args[0]))
    return False


def _worth_a_name(numbering: Numbering, number: int) -> bool:
    expr = numbering.exprs[number]
    if expr.op in _SELECTIONS:
        # the value selected from is named instead, except for the likes of gl_GlobalInvocationID.x
        return expr.op is Op.COMPONENT and expr.args[0].op is Op.BUILTIN
    return not _is_trivial(numbering, number)


def local_names(plan: NamingPlan, statement: Statement) -> list[int]:
    """Choose what one statement should compute once, before it: repeated loads and what is built on them.

    Only unconditionally evaluated expressions are chosen, not the right operands of && and || or the two
    values of a SELECT.
    """
    if isinstance(statement, While):
        return []
    roots = evaluated(statement)
    if isinstance(statement, If):
        roots = roots[:1]
    numbering = plan.numbering
    numbers = [numbering.number(root) for root in roots]
    if not plan.tall and not _repeats(plan, numbers):
        return []
    uses: dict[int, int] = {}
    for number in numbers:
        uses[number] = uses.get(number, 0) + 1
    order = _reachable(plan, list(uses))
    sizes, heights = _measure(plan, order)
    names: list[int] = []
    for number in reversed(order):
        count = uses.get(number, 0)
        repeated = count >= 2 and count * sizes[number] >= 8
        deep = heights[number] == _DEEPEST
        if (repeated or deep) and _may_be_local(numbering, number):
            names.append(number)
            count = 1
        for arg in _unconditional(plan, number):
            uses[arg] = uses.get(arg, 0) + count
    names.reverse()
    return names


def _repeats(plan: NamingPlan, roots: list[int]) -> bool:
    """Whether trees contain an expression with operands twice."""
    args, exprs, named = plan.numbering.args, plan.numbering.exprs, plan.named
    found: set[int] = set()
    stack = [number for number in roots if args[number]]
    while stack:
        number = stack.pop()
        if number in named:
            continue
        if number in found:
            return True
        found.add(number)
        operands = args[number]
        if exprs[number].op in _CONDITIONAL:
            operands = operands[:1]
        stack += [operand for operand in operands if args[operand]]
    return False


def _may_be_local(numbering: Numbering, number: int) -> bool:
    expr = numbering.exprs[number]
    if expr.op in _NEVER_NAMED or expr.op in _SELECTIONS or is_array(expr.dtype):
        return False
    return not _is_trivial(numbering, number)


def _unconditional(plan: NamingPlan, number: int) -> tuple[int, ...]:
    if number in plan.named:
        return ()
    args = plan.numbering.args[number]
    return args[:1] if plan.numbering.exprs[number].op in _CONDITIONAL else args


def _reachable(plan: NamingPlan, roots: list[int]) -> list[int]:
    """Return the numbers that are evaluated unconditionally and have no name yet, operands first."""
    found: set[int] = set()
    stack = [number for number in roots if number not in plan.named]
    while stack:
        number = stack.pop()
        if number not in found:
            found.add(number)
            stack.extend(arg for arg in _unconditional(plan, number) if arg not in plan.named)
    return sorted(found)


def _measure(plan: NamingPlan, order: list[int]) -> tuple[dict[int, int], dict[int, int]]:
    """Return the sizes of trees as written out, and their heights above the last cut."""
    sizes: dict[int, int] = {}
    heights: dict[int, int] = {}
    for number in order:
        args = plan.numbering.args[number]
        sizes[number] = 1 + sum([sizes.get(arg, 1) for arg in args])
        heights[number] = 1 + max([heights.get(arg, 0) % _DEEPEST for arg in args]) if args else 1
    return sizes, heights
