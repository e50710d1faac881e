"""Large conditional expressions become if statements.

Operands that `a if c else b`, `and`, `or`, `elif` and `while` evaluate conditionally cannot be computed in
advance and named, so they are written out at every use, and nested repeated uses grow exponentially. In the
branch of an if statement, or at the head of a loop, they can be named.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from vkdispatch.analyses.contents import PURE, contents, find_operations
from vkdispatch.base.dtype import DType, bool_
from vkdispatch.base.record import replace
from vkdispatch.ir import (
    Assert,
    Block,
    Break,
    Declare,
    Expr,
    If,
    Kernel,
    Op,
    Register,
    Statement,
    Store,
    While,
    expressions_of,
    map_statement,
    postorder,
)
from vkdispatch.ir.expressions import construct, literal
from vkdispatch.ir.location import Loc
from vkdispatch.passes.builders import negate

_CONDITIONAL = (Op.SELECT, Op.LOGICAL)
# Operations, as written out, that make operands too large: in any case, or if most of them are repetitions.
_LARGE = 2048
_REPETITIVE = 512
_REPEATS = 4


def unfold_conditionals(kernel: Kernel, new_name: Callable[[], str]) -> Kernel:
    """Return a kernel whose large conditional expressions are if statements.

    `new_name` makes names that are not used in the kernel.
    """
    found = contents(kernel)
    late = [condition for statement in found.statements for condition in _list_late(statement)]
    if not late and not any(find_operations(kernel, op) for op in _CONDITIONAL):
        return kernel
    sizes = _Sizes(found.evaluated)
    if not sizes.any_large and not any(map(sizes.is_large_operand, late)):
        return kernel
    return replace(kernel, body=_Unfolding(sizes, new_name).block(kernel.body))


def _list_late(statement: Statement) -> tuple[Expr, ...]:
    """Return the conditions that are not evaluated at the start of the statement."""
    if isinstance(statement, While):
        return (statement.condition,)
    return expressions_of(statement)[1:] if isinstance(statement, If) else ()


class _Sizes:
    """Sizes of expressions as written out, and which of them contain a large conditional."""

    def __init__(self, expressions: Iterable[Expr]) -> None:
        # by identity; pure expressions, which get a name if they are used twice, have the size 1
        self._sizes: dict[int, int] = {}
        self._pure: set[int] = set()
        self._large: set[int] = set()
        self._holding: set[int] = set()
        for expr in expressions:  # operands first
            self._measure(expr)

    @property
    def any_large(self) -> bool:
        """Whether any expression is a large conditional."""
        return bool(self._large)

    def holds_large(self, root: Expr) -> bool:
        """Whether an expression is or contains a large conditional."""
        if id(root) not in self._sizes:  # such as what only a place holds
            for expr in postorder(root, self._sizes):
                self._measure(expr)
        return id(root) in self._holding

    def is_large(self, expr: Expr) -> bool:
        """Whether a measured expression is a large conditional."""
        return id(expr) in self._large

    def is_large_operand(self, expr: Expr) -> bool:
        """Whether a conditionally evaluated expression is too large, or contains a large conditional."""
        return self.holds_large(expr) or self._is_too_large((expr,))

    def _measure(self, expr: Expr) -> None:
        args = expr.args
        size = 1
        if expr.op in PURE and (not args or self._pure.issuperset(map(id, args))):
            self._pure.add(id(expr))
        else:
            size += sum([self._sizes[id(arg)] for arg in args])
            if self._holding and not self._holding.isdisjoint(map(id, args)):
                self._holding.add(id(expr))
            if expr.op in _CONDITIONAL and self._is_too_large(args[1:]):
                self._large.add(id(expr))
                self._holding.add(id(expr))
                size = 1
        self._sizes[id(expr)] = size

    def _is_too_large(self, operands: Sequence[Expr]) -> bool:
        if not self._holding.isdisjoint(map(id, operands)):
            # statements before this expression would run unconditionally
            return True
        size = sum([self._sizes[id(operand)] for operand in operands])
        if size >= _LARGE:
            return True
        if size < _REPETITIVE:
            return False
        distinct: set[int] = set()
        stack = list(operands)
        while stack and len(distinct) * _REPEATS <= size:
            expr = stack.pop()
            if id(expr) not in distinct:
                distinct.add(id(expr))
                if id(expr) not in self._pure and id(expr) not in self._large:
                    stack += expr.args
        return not stack


class _Unfolding:
    """Rewrites blocks."""

    def __init__(self, sizes: _Sizes, new_name: Callable[[], str]) -> None:
        self._sizes = sizes
        self._new_name = new_name
        # new expressions by identity of the old ones, as long as they are valid
        self._values: dict[int, Expr] = {}
        self._precise = False

    def block(self, block: Block) -> Block:
        """Rewrite a block."""
        out: list[Statement] = []
        for statement in block:
            with self._inside():
                # registers and memory may have changed
                self._values = {}
                self._statement(statement, out)
        return tuple(out)

    @contextmanager
    def _inside(self) -> Iterator[None]:
        before = self._values
        self._values = dict(before)
        try:
            yield
        finally:
            self._values = before

    def _statement(self, statement: Statement, out: list[Statement]) -> None:
        if isinstance(statement, If):
            self._if(statement, out)
            return
        if isinstance(statement, While):
            out.append(self._while(statement))
            return
        if any(map(self._sizes.holds_large, expressions_of(statement))):
            if isinstance(statement, Assert):
                inside: list[Statement] = list(self.block(statement.body))
                condition = self._value(statement.condition, inside)
                out.append(replace(statement, body=tuple(inside), condition=condition))
                return
            self._precise = isinstance(statement, Declare) and statement.register.precise
            statement = map_statement(statement, lambda expr: self._value(expr, out))
        out.append(map_statement(statement, block=self.block))

    def _if(self, statement: If, out: list[Statement]) -> None:
        done: list[tuple[Expr, Block]] = []
        for position, (condition, body) in enumerate(statement.branches):
            if position and self._sizes.is_large_operand(condition):
                # evaluated only if the conditions before did not hold
                nested: list[Statement] = []
                with self._inside():
                    self._if(replace(statement, branches=statement.branches[position:]), nested)
                out.append(If(tuple(done), tuple(nested), statement.loc))
                return
            done.append((self._value(condition, out), self.block(body)))
        orelse = None if statement.orelse is None else self.block(statement.orelse)
        out.append(replace(statement, branches=tuple(done), orelse=orelse))

    def _while(self, statement: While) -> While:
        if not self._sizes.is_large_operand(statement.condition):
            return replace(statement, body=self.block(statement.body))
        loc = statement.loc
        head: list[Statement] = []
        value = self._value(statement.condition, head)
        head.append(If(((negate(value, value.loc), (Break(loc),)),), None, loc))
        return While(literal(True, bool_), (*head, *self.block(statement.body)), loc, statement.rolled)

    # -- expressions

    def _value(self, root: Expr, out: list[Statement]) -> Expr:
        """Rewrite an expression; statements that compute its large conditionals are added to `out`."""
        if not self._sizes.holds_large(root):
            return root
        for expr in postorder(root, self._values, self._unfolded_operands):
            if self._sizes.is_large(expr):
                self._values[id(expr)] = self._unfold(expr, out)
            else:
                self._values[id(expr)] = replace(expr, args=tuple(map(self._new, expr.args)))
        return self._new(root)

    def _unfolded_operands(self, expr: Expr) -> list[Expr]:
        """Return the operands to rewrite before an expression; of a large one only those that always run."""
        operands = expr.args[:1] if self._sizes.is_large(expr) else expr.args
        return [operand for operand in operands if self._sizes.holds_large(operand)]

    def _new(self, expr: Expr) -> Expr:
        return self._values.get(id(expr), expr)

    def _unfold(self, expr: Expr, out: list[Statement]) -> Expr:
        """Compute a conditional expression in a register."""
        loc = expr.loc
        register = Register(self._new_name(), expr.dtype, precise=self._precise)
        result = Expr(Op.REGISTER, expr.dtype, (), register, loc)
        first = self._new(expr.args[0])
        if expr.op is Op.SELECT:
            out.append(Declare(register, _zero(expr.dtype), loc))
            arms = [self._store_operand(result, arg, loc) for arg in expr.args[1:]]
            out.append(If(((first, arms[0]),), arms[1], loc))
            return result
        out.append(Declare(register, first, loc))
        for arg in expr.args[1:]:
            condition = result if expr.value == "&&" else negate(result, result.loc)
            out.append(If(((condition, self._store_operand(result, arg, loc)),), None, loc))
        return result

    def _store_operand(self, place: Expr, value: Expr, loc: Loc | None) -> Block:
        inside: list[Statement] = []
        with self._inside():
            inside.append(Store(place, self._value(value, inside), None, loc))
        return tuple(inside)


def _zero(kind: DType) -> Expr:
    return literal(False, bool_) if kind is bool_ else construct(kind, ())
