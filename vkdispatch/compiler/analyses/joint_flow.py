"""Joint control flow, around barriers, and uniform values, which are the same in a whole workgroup.

In Vulkan either all invocations of a workgroup reach a barrier or none. So the control flow around barriers
is the same for all of them, and they may diverge only between barriers. A statement is `joint` if it is a
barrier, control flow around one, or a jump past one.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

from vkdispatch.base.record import record, replace
from vkdispatch.compiler import ir
from vkdispatch.compiler.analyses.contents import PURE, contents, remember, resource_access
from vkdispatch.compiler.ir import nodes as nodes

_BARRIERS = frozenset(("barrier", "controlBarrier"))
# Builtins that are the same in a whole workgroup.
_SHARED_BUILTINS = frozenset(
    (
        ir.Builtin.WORKGROUP_ID,
        ir.Builtin.WORKGROUP_SIZE,
        ir.Builtin.NUM_WORKGROUPS,
        ir.Builtin.NUM_SUBGROUPS,
        ir.Builtin.SUBGROUP_SIZE,
    )
)
# Builtins that differ within a workgroup, except along axes on which it has one invocation.
_OWN_BUILTINS = frozenset((ir.Builtin.GLOBAL_INVOCATION_ID, ir.Builtin.LOCAL_INVOCATION_ID))
_OWN_NUMBERS = frozenset((ir.Builtin.LOCAL_INVOCATION_INDEX, ir.Builtin.SUBGROUP_INVOCATION_ID))
_QUOTIENTS = frozenset(("/", ">>"))
_PASSING = frozenset((ir.Op.UNARY, ir.Op.BINARY, ir.Op.COMPARE, ir.Op.LOGICAL, ir.Op.CONSTRUCT))
Path = tuple[ir.Statement, ...]


def is_barrier(statement: ir.Statement) -> bool:
    """Whether a statement is a barrier of the workgroup."""
    return isinstance(statement, ir.Effect) and statement.function in _BARRIERS


@remember
def has_barriers(kernel: ir.Kernel) -> bool:
    """Whether a kernel has barriers of the workgroup."""
    return any(map(is_barrier, contents(kernel).statements))


def decisions(statement: ir.Statement) -> tuple[ir.Expr, ...]:
    """Return the expressions that decide on control flow."""
    return ir.expressions_of(statement) if isinstance(statement, (ir.If, ir.While, ir.For, ir.Switch)) else ()


@record
class _Ahead:
    """Whether a return, a `continue` or a `break` at a statement would skip something joint."""

    returns: bool = False
    continues: bool = False
    breaks: bool = False


@record(eq=False)
class _Assignment:
    """An assignment to a register: the values it depends on, and the statements around it."""

    statement: ir.Statement
    register: ir.Register
    values: tuple[ir.Expr, ...]
    path: Path


@record(eq=False)
class _Jump:
    """A `break` or `continue`, and the statements between its loop and it."""

    statement: ir.Statement
    path: Path


class JointFlow:
    """The joint statements of a kernel, and what is uniform: the same in all invocations of a workgroup.

    `joint` has the identities of the joint statements, and of the assignments that they depend on. All
    invocations have to run these, even if only some run the rest.
    """

    def __init__(self, kernel: ir.Kernel) -> None:
        self.joint: set[int] = set()
        self._body = kernel.body
        self._barriers = {
            id(statement) for statement in ir.walk(kernel.body) if any(map(is_barrier, ir.walk((statement,))))
        }
        self._mark(kernel.body, _Ahead())
        self._written = resource_access(kernel).writes
        self._assignments: dict[ir.Register, list[_Assignment]] = {}
        self._jumps: dict[int, list[_Jump]] = {}
        self._gather(kernel.body, ())
        self._differing: set[int] = set()
        self._same: set[int] = set()
        self._uniform = set(self._assignments)
        self._find_uniform()
        self._follow_decisions()

    # -- what is joint

    def _mark(self, block: ir.Block, ahead: _Ahead) -> bool:
        """Find the joint statements of a block; returns whether there are any."""
        found = False
        for statement in reversed(block):
            if self._is_joint(statement, ahead):
                self.joint.add(id(statement))
                found, ahead = True, replace(ahead, returns=True, continues=True)
        return found

    def _is_joint(self, statement: ir.Statement, ahead: _Ahead) -> bool:
        if isinstance(statement, ir.Return):
            return ahead.returns
        if isinstance(statement, ir.Break):
            return ahead.breaks
        if isinstance(statement, ir.Continue):
            return ahead.breaks and ahead.continues
        if isinstance(statement, (ir.While, ir.For)):
            waits = id(statement) in self._barriers
            round_ahead = _Ahead(returns=waits or ahead.returns, breaks=waits)
            if self._mark(statement.body, round_ahead) and not waits:
                # a return makes the loop joint, and with it the other jumps of the loop
                self._mark(statement.body, replace(round_ahead, breaks=True))
                return True
            return waits
        inside = [self._mark(inner, ahead) for inner in ir.blocks_of(statement)]
        return any(inside) or is_barrier(statement)

    # -- what is uniform

    def _gather(self, block: ir.Block, path: Path) -> None:
        """Collect assignments and jumps."""
        for statement in block:
            if isinstance(statement, ir.Declare):
                self._note(statement, statement.register, (statement.value,), path)
            elif isinstance(statement, ir.Store):
                root = ir.root_of(statement.place)
                if isinstance(root.value, ir.Register):
                    operands = (*ir.place_operands(statement.place), statement.value)
                    self._note(statement, root.value, operands, path)
            elif isinstance(statement, ir.For):
                ends = () if id(statement) in self.joint else (statement.stop,)
                self._note(statement, statement.counter, (statement.start, statement.step, *ends), path)
            elif isinstance(statement, (ir.Break, ir.Continue)):
                loop = max(depth for depth, outer in enumerate(path) if isinstance(outer, (ir.While, ir.For)))
                jump = _Jump(statement, path[loop + 1 :])
                self._jumps.setdefault(id(path[loop]), []).append(jump)
            for inner in ir.blocks_of(statement):
                self._gather(inner, (*path, statement))

    def _note(
        self, statement: ir.Statement, register: ir.Register, values: tuple[ir.Expr, ...], path: Path
    ) -> None:
        assignment = _Assignment(statement, register, values, path)
        self._assignments.setdefault(register, []).append(assignment)

    def _find_uniform(self) -> None:
        """Take the registers away that may differ, until none is left that does."""
        assignments = [assignment for some in self._assignments.values() for assignment in some]
        while True:
            before = len(self._uniform)
            self._same.clear()
            for assignment in assignments:
                if assignment.register in self._uniform and not self._is_shared(assignment):
                    self._uniform.discard(assignment.register)
            if len(self._uniform) == before:
                return

    def _is_shared(self, assignment: _Assignment) -> bool:
        """Whether all invocations that are there do an assignment, and assign the same."""
        return all(map(self.is_uniform, assignment.values)) and all(map(self._keeps, assignment.path))

    def _keeps(self, statement: ir.Statement) -> bool:
        """Whether the invocations that come to a statement go through it together."""
        joint = id(statement) in self.joint
        if not joint and not all(map(self.is_uniform, decisions(statement))):
            return False
        return all(
            id(jump.statement) in self.joint
            or (not joint and all(map(self.is_uniform, chain(*map(decisions, jump.path)))))
            for jump in self._jumps.get(id(statement), ())
        )

    def is_uniform(self, root: ir.Expr) -> bool:
        """Whether a value is provably the same in all invocations of a workgroup that compute it together."""
        stack = [root]
        while stack:
            expr = stack[-1]
            pending = [arg for arg in expr.args if id(arg) not in self._same]
            if id(expr) in self._differing or any(id(arg) in self._differing for arg in pending):
                self._differing.update(map(id, stack))  # each is an operand of the one before
                return False
            if pending:
                stack.append(pending[0])
                continue
            if not self._is_uniform_node(expr):
                self._differing.update(map(id, stack))
                return False
            self._same.add(id(expr))
            stack.pop()
        return True

    def _is_uniform_node(self, expr: ir.Expr) -> bool:
        """Whether an expression is uniform whose operands are."""
        if expr.op is ir.Op.REGISTER:
            return expr.value in self._uniform
        if expr.op is ir.Op.BUILTIN:
            return expr.value in _SHARED_BUILTINS
        if expr.op is ir.Op.ELEMENT:
            # what is written may be so by the time the others look
            return isinstance(expr.value, ir.Storage) and expr.value.index not in self._written
        return expr.op in PURE

    # -- what joint statements depend on

    def _follow_decisions(self) -> None:
        """Make the assignments joint that joint statements depend on."""
        asked = [
            expr
            for statement in ir.walk(self._body)
            if id(statement) in self.joint
            for expr in decisions(statement)
            if self.is_uniform(expr)
        ]
        done: set[ir.Register] = set()
        while asked:
            for register in registers_of((asked.pop(),)):
                if register not in done:
                    done.add(register)
                    for assignment in self._assignments[register]:
                        asked += assignment.values
                        asked += self._join((*assignment.path, assignment.statement))

    def _join(self, path: Path) -> Iterator[ir.Expr]:
        """Make statements joint; yields what they depend on."""
        for statement in path:
            if id(statement) not in self.joint:
                self.joint.add(id(statement))
                yield from decisions(statement)
                for jump in self._jumps.get(id(statement), ()):
                    yield from self._join((*jump.path, jump.statement))

    # -- what differs

    def divergent_statements(self) -> Iterator[ir.Statement]:
        """Yield the barriers, and returns before one, that depend on a position in the workgroup."""
        return self._divergent(self._body, divergent=False)

    def _divergent(self, block: ir.Block, *, divergent: bool) -> Iterator[ir.Statement]:
        for statement in block:
            is_return = isinstance(statement, ir.Return) and id(statement) in self.joint
            if divergent and (is_return or is_barrier(statement)):
                yield statement
            inside = divergent or any(map(self._differs, decisions(statement)))
            for inner in ir.blocks_of(statement):
                yield from self._divergent(inner, divergent=inside)

    def _differs(self, value: ir.Expr) -> bool:
        """Whether a value is that of a position in the workgroup, or compares one, as far as the text tells.

        Positions along y and z may be those of a workgroup that has one invocation there.
        """
        return any(
            (expr.op is ir.Op.BUILTIN and expr.value in _OWN_NUMBERS)
            or (expr.op is ir.Op.COMPONENT and expr.value == "x" and expr.args[0].value in _OWN_BUILTINS)
            for expr in ir.reach((value,), self._find_passed_on)
        )

    def _find_passed_on(self, expr: ir.Expr) -> Iterable[ir.Expr]:
        if isinstance(expr.value, ir.Register) and expr.op is ir.Op.REGISTER:
            assignments = self._assignments.get(expr.value, ())
            return (value for assignment in assignments for value in assignment.values)
        passes = expr.op in _PASSING and not (expr.op is ir.Op.BINARY and expr.value in _QUOTIENTS)
        return expr.args if passes else ()


def registers_of(roots: Iterable[ir.Expr]) -> Iterator[ir.Register]:
    """Return the registers that expressions mention."""
    return (expr.value for expr in nodes(roots) if isinstance(expr.value, ir.Register))
