"""Make invocations beyond `exec_count` reach the barriers of a kernel, and do nothing else.

A barrier that not all invocations of a workgroup reach is undefined in Vulkan. So in kernels with barriers
the invocations beyond the limit must not return at the start, as they do in other kernels:

    s[lid] = x[i]                   bool inside = i < exec_count;
    barrier()                       if (inside) { s[lid] = x[i]; }
    y[i] = s[63 - lid]              barrier();
                                    if (inside) { y[i] = s[63 - lid]; }

All invocations run the control flow around barriers (`JointFlow`). Each evaluates conditions that are uniform
in the workgroup. For other conditions the registers of invocations beyond the limit hold nothing meaningful.
These follow the first invocation of the workgroup, which is within the limit if any is: it writes the value
of the condition to shared memory.
"""

from collections import Counter
from itertools import pairwise

from vkdispatch.base.dtype import DType, bool_, is_cooperative, uint32, uint64, uvec3
from vkdispatch.base.record import replace
from vkdispatch.compiler import ir
from vkdispatch.compiler.analyses.contents import PURE, contents, remember
from vkdispatch.compiler.analyses.joint_flow import JointFlow, has_barriers, registers_of
from vkdispatch.compiler.ir import nodes as nodes
from vkdispatch.compiler.ir.location import Loc
from vkdispatch.compiler.ir.names import FreshNames
from vkdispatch.compiler.passes import builders as make
from vkdispatch.compiler.passes.widen import global_id

_SILENT = (ir.Comment, ir.Print, ir.Assert)


@remember
def keeps_workgroups(kernel: ir.Kernel) -> bool:
    """Whether invocations beyond the limit must stay in a kernel.

    False for kernels with raw GLSL, which cannot be guarded, or with cooperative matrices, which belong to
    whole subgroups.
    """
    if kernel.exec_count is None or not has_barriers(kernel):
        return False
    found = contents(kernel)
    return not any(isinstance(statement, ir.RawStatement) for statement in found.statements) and not any(
        expr.op is ir.Op.RAW or is_cooperative(expr.dtype) for expr in found.expressions
    )


@remember
def guard_effects(kernel: ir.Kernel) -> ir.Kernel:
    """Return a kernel that checks `exec_count` itself, and whose invocations all reach its barriers."""
    guards = _Guards(kernel)
    body = guards.block(kernel.body)
    return replace(kernel, body=(guards.start(), *body), shared=(*kernel.shared, *guards.shared.values()))


def _is_harmless(value: ir.Expr) -> bool:
    """Whether an invocation beyond the limit may compute a value: one of registers and ids only.

    Such a value must not be used as an index.
    """
    return all(
        node.op is ir.Op.REGISTER
        or (node.op in PURE and (node.op is not ir.Op.INDEX or node.args[1].op is ir.Op.LITERAL))
        for node in nodes((value,))
    )


def _find_registers(statement: ir.Statement) -> set[ir.Register]:
    """Return the registers that a statement mentions, apart from nested statements."""
    found = set(registers_of(ir.expressions_of(statement)))
    if isinstance(statement, ir.Declare):
        found.add(statement.register)
    elif isinstance(statement, ir.For):
        found.add(statement.counter)
    return found


def _count_uses(block: ir.Block) -> Counter[ir.Register]:
    """Return how many statements mention a register."""
    return Counter(register for statement in ir.walk(block) for register in _find_registers(statement))


def _find_assigned(outer: ir.Statement) -> set[ir.Register]:
    """Return the registers that a statement, or one nested in it, declares or stores to."""
    return {register for statement in ir.walk((outer,)) for register, _ in ir.assignments_of(statement)}


class _Guards:
    """Rewrites the blocks that all invocations run."""

    def __init__(self, kernel: ir.Kernel) -> None:
        assert kernel.exec_count is not None
        self._flow = JointFlow(kernel)
        self._kernel = kernel
        self._names = FreshNames.of_variables(kernel)
        # how many statements mention a register
        self._uses = _count_uses(kernel.body)
        self._inside = ir.Register(self._names.claim_copy("inside"), bool_, fixed=True)
        self.shared: dict[DType, ir.SharedArray] = {}

    def start(self) -> ir.Statement:
        """Declare whether the invocation lies within the limit."""
        kernel = self._kernel
        assert kernel.exec_count is not None
        if kernel.wide:
            first = kernel.arguments.index(kernel.exec_count)
            limits = kernel.arguments[first : first + 3]
            within = [
                make.less(global_id(axis), ir.Expr(ir.Op.ARGUMENT, uint64, (), limit))
                for axis, limit in enumerate(limits)
            ]
        else:
            limit = ir.Expr(ir.Op.ARGUMENT, uvec3, (), kernel.exec_count)
            position = ir.Builtin.GLOBAL_INVOCATION_ID
            within = [make.less(make.id_part(position, axis), make.part_of(limit, axis)) for axis in "xyz"]
        return ir.Declare(self._inside, make.all_of(within))

    # -- blocks

    def block(self, block: ir.Block) -> ir.Block:
        """Rewrite a block that all invocations run."""
        out: list[ir.Statement] = []
        apart: list[ir.Statement] = []
        for statement in block:
            if id(statement) in self._flow.joint or isinstance(statement, ir.Effect):
                self._flush(apart, out)
                self._rewrite_joint(statement, out)
            else:
                apart.append(statement)
        self._flush(apart, out)
        return tuple(out)

    def _flush(self, apart: list[ir.Statement], out: list[ir.Statement]) -> None:
        """Write the statements that only invocations within the limit run."""
        for piece in self._split_pieces(apart):
            self._flush_piece(piece, out)
        apart.clear()

    def _split_pieces(self, apart: list[ir.Statement]) -> list[list[ir.Statement]]:
        """Split statements after each fixed register that is used behind its piece: its guard has to end."""
        changed = {register for statement in apart for register in _find_assigned(statement)}
        ends = {0, len(apart)}
        while True:
            pieces = [apart[first:last] for first, last in pairwise(sorted(ends))]
            more = set(ends)
            first = 0
            for piece in pieces:
                uses = _count_uses(tuple(piece))
                for position, statement in enumerate(piece, first + 1):
                    if (
                        isinstance(statement, ir.Declare)
                        and statement.register.fixed
                        and self._uses[statement.register] > uses[statement.register]
                        and not self._needs_no_guard(statement, changed, [])
                    ):
                        more.add(position)
                first += len(piece)
            if more == ends:
                return pieces
            ends = more

    def _flush_piece(self, apart: list[ir.Statement], out: list[ir.Statement]) -> None:
        uses = _count_uses(tuple(apart))
        guarded: list[ir.Statement] = []
        changed: set[ir.Register] = set()
        for statement in apart:
            if self._needs_no_guard(statement, changed, guarded):
                out.append(statement)
                continue
            changed |= _find_assigned(statement)
            if (
                isinstance(statement, ir.Declare)
                and self._uses[statement.register] > uses[statement.register]
            ):
                self._declare_outside(statement, guarded, out)
            else:
                guarded.append(statement)
        self._guard(guarded, out)

    def _guard(self, guarded: list[ir.Statement], out: list[ir.Statement]) -> None:
        """Write statements under a guard, but for comments at their end."""
        end = len(guarded)
        while end and isinstance(guarded[end - 1], _SILENT):
            end -= 1
        if end:
            out.append(self._make_guard(tuple(guarded[:end])))
        out += guarded[end:]
        guarded.clear()

    def _make_guard(self, block: ir.Block) -> ir.If:
        inside, first = make.read(self._inside), block[0]
        if len(block) == 1 and isinstance(first, ir.If) and len(first.branches) == 1 and first.orelse is None:
            ((condition, body),) = first.branches
            return replace(first, branches=((make.all_of([inside, condition]), body),))
        return make.when(inside, *block, loc=first.loc)

    @staticmethod
    def _needs_no_guard(
        statement: ir.Statement, changed: set[ir.Register], guarded: list[ir.Statement]
    ) -> bool:
        """Whether all invocations may run a statement, which can then stand before the guard.

        It must not depend on statements under the guard; `changed` are the registers assigned there.
        """
        if isinstance(statement, ir.Declare):
            return _is_harmless(statement.value) and changed.isdisjoint(registers_of((statement.value,)))
        if guarded or isinstance(statement, _SILENT):
            return not guarded
        if not isinstance(statement, ir.Store) or ir.root_of(statement.place).op is not ir.Op.REGISTER:
            return False
        return _is_harmless(statement.place) and _is_harmless(statement.value)

    def _declare_outside(
        self, statement: ir.Declare, guarded: list[ir.Statement], out: list[ir.Statement]
    ) -> None:
        """Declare a register before the guard, and assign its value under the guard."""
        register, value, loc = statement.register, statement.value, statement.loc
        held = register
        if register.fixed:
            held = ir.Register(
                self._names.claim_copy(f"guarded_{register.name}"), register.dtype, position=register.position
            )
        out.append(ir.Declare(held, make.zero(held.dtype), loc))
        if value.op is ir.Op.ATOMIC:
            before = ir.Register(self._names.claim_copy(f"atomic_{register.name}"), register.dtype)
            guarded.append(ir.Declare(before, value, loc))
            value = make.read(before)
        guarded.append(make.assign(held, value, loc))
        if held is not register:
            self._guard(guarded, out)
            out.append(ir.Declare(register, make.read(held), loc))

    # -- control flow that all invocations run

    def _rewrite_joint(self, statement: ir.Statement, out: list[ir.Statement]) -> None:
        if isinstance(statement, ir.If):
            self._if(statement.branches, statement.orelse, statement.loc, out)
        elif isinstance(statement, ir.While):
            self._while(statement, out)
        elif isinstance(statement, ir.For):
            start, stop, step = (
                self._decide(bound, statement.loc, out)
                for bound in (statement.start, statement.stop, statement.step)
            )
            body = self.block(statement.body)
            out.append(replace(statement, start=start, stop=stop, step=step, body=body))
        else:
            if isinstance(statement, ir.Switch):
                statement = replace(statement, value=self._decide(statement.value, statement.loc, out))
            out.append(ir.map_statement(statement, block=self.block))

    def _if(
        self,
        branches: tuple[tuple[ir.Expr, ir.Block], ...],
        orelse: ir.Block | None,
        loc: Loc | None,
        out: list[ir.Statement],
    ) -> None:
        """Rewrite the branches of an if; conditions that the first invocation decides come just before it."""
        (condition, body), *others = branches
        done = [(self._decide(condition, loc, out), self.block(body))]
        while others and self._flow.is_uniform(others[0][0]):
            condition, body = others.pop(0)
            done.append((condition, self.block(body)))
        if others:
            nested: list[ir.Statement] = []
            self._if(tuple(others), orelse, loc, nested)
            last: ir.Block | None = tuple(nested)
        else:
            last = None if orelse is None else self.block(orelse)
        out.append(ir.If(tuple(done), last, loc))

    def _while(self, statement: ir.While, out: list[ir.Statement]) -> None:
        loc, condition = statement.loc, statement.condition
        head: list[ir.Statement] = []
        decided = self._decide(condition, loc, head)
        if head:
            head.append(make.when(make.negate(decided), ir.Break(loc), loc=loc))
            decided = make.truth(True, condition.loc)
        out.append(ir.While(decided, (*head, *self.block(statement.body)), loc, statement.rolled))

    def _decide(self, value: ir.Expr, loc: Loc | None, out: list[ir.Statement]) -> ir.Expr:
        """Return a condition or bound with the value that invocations beyond the limit have to use, too."""
        if self._flow.is_uniform(value):
            return value
        register = ir.Register(self._names.claim_copy("decision"), value.dtype)
        decision = make.read(register)
        if _is_harmless(value):
            out.append(ir.Declare(register, value, loc))
        else:
            out.append(ir.Declare(register, make.zero(value.dtype), loc))
            out.append(make.when(make.read(self._inside), make.assign(register, value, loc), loc=loc))
        place = ir.Expr(ir.Op.ELEMENT, value.dtype, (make.uint(0),), self._get_shared(value.dtype))
        is_first = make.is_zero(ir.Expr(ir.Op.BUILTIN, uint32, (), ir.Builtin.LOCAL_INVOCATION_INDEX))
        out += (
            make.when(is_first, ir.Store(place, decision, None, loc), loc=loc),
            ir.Effect("barrier", loc),
            make.when(make.negate(make.read(self._inside)), make.assign(register, place, loc), loc=loc),
            ir.Effect("barrier", loc),
        )
        return decision

    def _get_shared(self, kind: DType) -> ir.SharedArray:
        """Return the shared array to which the first invocation writes its decisions."""
        if kind not in self.shared:
            self.shared[kind] = ir.SharedArray(self._names.claim_copy("first_decision"), kind, 1, (1,))
        return self.shared[kind]
