"""Control flow for drivers that take only so many nested conditions: Mesa's llvmpipe ignores those beyond 80.

What lies too deep at the end of a statement runs after it, if a flag says so:

    if (a) {                              uint rest0 = 0u;
        ...                               if (a) {
    } else if (b) {                           ...
        ...                               } else {
    }                                         rest0 = 1u;
                                          }
                                          if (rest0 != 0u) {
                                              if (b) {
                                                  ...
                                              }
                                          }

Deep conditional expressions become such statements. The driver puts what follows a jump into an `else`;
where there are many, jumps set a flag too, and what follows each runs if the flag is not set.
"""

from collections.abc import Iterable
from functools import partial
from operator import itemgetter

from vkdispatch.base.dtype import is_complex, is_matrix, is_scalar, is_vector, uint32
from vkdispatch.base.errors import UsageError
from vkdispatch.base.record import replace
from vkdispatch.compiler import ir
from vkdispatch.compiler.analyses.contents import contents, find_operations, remember
from vkdispatch.compiler.ir.location import Loc, located
from vkdispatch.compiler.ir.names import FreshNames
from vkdispatch.compiler.passes.builders import assign, is_nonzero, is_zero, read, uint, when, zero
from vkdispatch.compiler.passes.loop_limits import has_jump, is_single, replace_registers

_Jump = type[ir.Statement] | tuple[type[ir.Statement], ...]

# Kernels below this depth stay as they are; what is moved starts anew.
_FLAT = 48
# Expressions beyond this depth become statements, in kernels that are deeper than `_FLAT`.
_SHALLOW = 16
# How many conditional expressions of a kernel may become statements: shared ones are written several times.
_MAX_SELECTIONS = 4096
# What the driver takes, with a margin for conditions of its own.
DEEPEST = 72
_SELECTIONS = frozenset((ir.Op.SELECT, ir.Op.LOGICAL))
# How deep kernels may be at all.
_MAX_LEVELS = 120


class _Depths:
    """How many conditions and loops are around the innermost parts of blocks, statements, expressions."""

    def __init__(self) -> None:
        # by identity, which the values keep
        self._exprs: dict[int, tuple[int, ir.Expr]] = {}
        self._statements: dict[tuple[int, _Jump], tuple[tuple[int, Loc | None], ir.Statement]] = {}

    def block(self, block: ir.Block) -> int:
        """Return the depth of a block."""
        return self.find(block, (ir.Return,))[0]

    def statement(self, statement: ir.Statement) -> int:
        """Return the depth of a statement."""
        return self._find(statement, (ir.Return,))[0]

    def find(self, block: ir.Block, jumps: _Jump) -> tuple[int, Loc | None]:
        """Return the depth of a block, and where it is. What follows jumps is as deep as there are jumps."""
        deepest: tuple[int, Loc | None] = (0, None)
        before = 0
        for statement in block:
            depth, loc = self._find(statement, jumps)
            if before + depth > deepest[0]:
                deepest = (before + depth, loc)
            before += _count_jumps(statement, jumps)
        return deepest

    def _find(self, statement: ir.Statement, jumps: _Jump) -> tuple[int, Loc | None]:
        key = id(statement), jumps
        if key not in self._statements:
            self._statements[key] = self._measure(statement, jumps), statement
        return self._statements[key][0]

    def _measure(self, statement: ir.Statement, jumps: _Jump) -> tuple[int, Loc | None]:
        first = 0 if isinstance(statement, ir.Scope) else 2 if isinstance(statement, ir.Switch) else 1
        chain = isinstance(statement, ir.If) or (
            isinstance(statement, ir.Switch)
            and any(has_jump(inner, ir.Break) for inner in ir.blocks_of(statement))
        )
        last = len(statement.branches) - 1 if isinstance(statement, ir.If) else len(ir.blocks_of(statement))
        deepest = 0, statement.loc
        for position, expr in enumerate(ir.expressions_of(statement)):
            depth = self.expression(expr) + (position if isinstance(statement, ir.If) else 0)
            deepest = max(deepest, (depth, statement.loc), key=itemgetter(0))
        for position, inner in enumerate(ir.blocks_of(statement)):
            depth, loc = self.find(inner, _jumps_in(statement) or jumps)
            depth += first + (min(position, last) if chain else 0)
            deepest = max(deepest, (depth, loc or statement.loc), key=itemgetter(0))
        return deepest

    def expression(self, root: ir.Expr) -> int:
        """Return how many conditions of `?:`, `&&` and `||` are around the innermost operand."""
        known = self._exprs
        for expr in ir.postorder(root, known):
            known[id(expr)] = _join_depths(expr, [known[id(arg)][0] for arg in expr.args]), expr
        return known[id(root)][0]


def _join_depths(expr: ir.Expr, inner: list[int]) -> int:
    """Return the depth of an expression whose operands have the depths `inner`."""
    if expr.op in _SELECTIONS:
        inner[1:] = [depth + 1 for depth in inner[1:]]
    return max(inner, default=0)


def _jumps_in(statement: ir.Statement) -> _Jump:
    """Return the jumps in the body of a loop after which the driver nests what follows."""
    if isinstance(statement, ir.While) and is_single(statement):
        return (ir.Return, ir.Break)
    return (ir.Return, ir.Continue) if isinstance(statement, (ir.While, ir.For)) else ()


def _count_jumps(statement: ir.Statement, jumps: _Jump) -> int:
    if isinstance(statement, jumps):
        return 1
    if isinstance(statement, (ir.While, ir.For)):
        # of the jumps in an inner loop, only returns leave the outer one
        jumps = (ir.Return,) if issubclass(ir.Return, jumps) else ()
    return sum(_count_jumps(inner, jumps) for block in ir.blocks_of(statement) for inner in block)


def check_nesting(body: ir.Block) -> None:
    """Raise if a block nests deeper than the passes, which recurse, take."""
    stack: list[tuple[ir.Block, int]] = [(body, 0)]
    while stack:
        block, depth = stack.pop()
        for statement in block:
            # a guarded loop has an `if` inside
            inner = depth + (2 if isinstance(statement, (ir.For, ir.While)) else 1)
            blocks = ir.blocks_of(statement)
            if blocks and inner > _MAX_LEVELS:
                raise located(
                    UsageError,
                    f"conditions and loops are nested too deeply here: more than {_MAX_LEVELS} levels, "
                    "where loops count twice; join conditions by `and`, or keep one in a variable "
                    "and test it after the nest",
                    statement.loc,
                )
            stack += [(block, inner) for block in blocks]


def find_depth(kernel: ir.Kernel) -> tuple[int, Loc | None]:
    """Return how many conditions and loops are around the innermost statement of a kernel, and its line."""
    return _Depths().find(kernel.body, (ir.Return,))


@remember
def is_flat(kernel: ir.Kernel) -> bool:
    """Whether a kernel surely has few nested conditions: a quick bound, which most kernels meet."""
    found = contents(kernel)
    jumps = sum([type(statement) in (ir.Return, ir.Break, ir.Continue) for statement in found.statements])
    levels = _count_levels(kernel.body) + jumps
    if levels > _FLAT:
        return False
    if not any(find_operations(kernel, op) for op in _SELECTIONS):
        return True
    # what places hold that is not evaluated has no conditions
    depths: dict[int, int] = {}
    for expr in found.evaluated:
        if depths or expr.op in _SELECTIONS:
            depths[id(expr)] = _join_depths(expr, [depths.get(id(arg), 0) for arg in expr.args])
    return levels + max(depths.values(), default=0) <= _FLAT


def _count_levels(block: ir.Block) -> int:
    """Return how many conditions and loops are around the innermost statement of a block, at most."""
    deepest = 0
    for statement in block:
        for position, inner in enumerate(ir.blocks_of(statement)):
            deepest = max(deepest, 2 + position + _count_levels(inner))
    return deepest


def flatten(kernel: ir.Kernel) -> ir.Kernel:
    """Return a kernel with fewer nested conditions; the same one if they are few."""
    if is_flat(kernel) or find_depth(kernel)[0] <= _FLAT:
        return kernel
    names = FreshNames.of_variables(kernel)
    try:
        body = _Jumps(names).kernel(_Selections(names).block(kernel.body))
        return replace(kernel, body=_Nests(names).block(body, _FLAT))
    except _FixedError:
        return kernel


# ---- Deep conditional expressions as statements ----------------------------------------------------------


class _Selections:
    """Writes deep conditional expressions as statements, which evaluate as little."""

    def __init__(self, names: FreshNames) -> None:
        self._names = names
        self._depths = _Depths()
        self._count = 0

    def block(self, block: ir.Block) -> ir.Block:
        """Rewrite a block."""
        return tuple(part for statement in block for part in self._statement(statement))

    def _statement(self, statement: ir.Statement) -> ir.Block:
        before: list[ir.Statement] = []
        if isinstance(statement, (ir.Declare, ir.Store)) and statement.value.op is not ir.Op.ATOMIC:
            value = self._lower(statement.value, before, statement.loc)
            if before:
                return (*before, replace(statement, value=value))
        return (ir.map_statement(statement, block=self.block),)

    def _lower(self, root: ir.Expr, before: list[ir.Statement], loc: Loc | None) -> ir.Expr:
        """Replace the deep selections of an expression that are evaluated in any case."""
        if self._depths.expression(root) <= _SHALLOW:
            return root

        def operands(expr: ir.Expr) -> tuple[ir.Expr, ...]:
            if expr.op is ir.Op.SELECT or self._depths.expression(expr) <= _SHALLOW:
                return ()
            return expr.args[:1] if expr.op is ir.Op.LOGICAL else expr.args

        known: dict[int, ir.Expr] = {}
        for expr in ir.postorder(root, known, operands):
            if expr.op is ir.Op.SELECT and self._depths.expression(expr) > _SHALLOW:
                known[id(expr)] = self._select(expr, before, loc)
            else:
                known[id(expr)] = ir.with_args(expr, tuple(known.get(id(arg), arg) for arg in expr.args))
        return known[id(root)]

    def _select(self, expr: ir.Expr, before: list[ir.Statement], loc: Loc | None) -> ir.Expr:
        self._count += 1
        if self._count > _MAX_SELECTIONS or not _has_zero(expr):
            return expr
        chosen = ir.Register(self._names.claim_number("chosen"), expr.dtype)
        branches: list[tuple[ir.Expr, ir.Block]] = []
        while expr.op is ir.Op.SELECT:
            condition, value, expr = expr.args
            branches.append((condition, self._statement(assign(chosen, value, loc))))
        orelse = self._statement(assign(chosen, expr, loc))
        before += (ir.Declare(chosen, zero(chosen.dtype), loc), ir.If((*branches,), orelse, loc))
        return read(chosen)


def _has_zero(expr: ir.Expr) -> bool:
    kind = expr.dtype
    return is_scalar(kind) or is_vector(kind) or is_complex(kind) or is_matrix(kind)


# ---- Many jumps as flags ---------------------------------------------------------------------------------


class _Jumps:
    """Replaces jumps by flags, where they are many."""

    def __init__(self, names: FreshNames) -> None:
        self._names = names

    def kernel(self, body: ir.Block) -> ir.Block:
        """Rewrite the body of a kernel."""
        return self._replace(self._loops(body), ir.Return)

    def _loops(self, block: ir.Block) -> ir.Block:
        """Rewrite the loops of a block, inner ones first."""
        out: list[ir.Statement] = []
        for statement in block:
            statement = ir.map_statement(statement, block=self._loops)
            if isinstance(statement, (ir.For, ir.While)):
                if isinstance(statement, ir.While) and is_single(statement):
                    body = self._replace(statement.body, ir.Break)
                    if body is not statement.body:
                        statement = when(statement.condition, *body, loc=statement.loc)
                else:
                    statement = replace(statement, body=self._replace(statement.body, ir.Continue))
            out.append(statement)
        return tuple(out)

    def _replace(self, block: ir.Block, jump: type[ir.Statement]) -> ir.Block:
        """Replace the jumps of a block, unless they are few or other invocations wait in it."""
        count = sum(_count_jumps(statement, jump) for statement in block)
        if count < _SHALLOW or any(isinstance(inner, ir.Effect) for inner in ir.walk(block)):
            return block
        flag = ir.Register(self._names.claim_number("leaves"), uint32)
        outside = _Outside(self._names)
        return (ir.Declare(flag, uint(0)), *outside.declare(self._guard(block, jump, flag, outside)))

    def _guard(
        self, block: ir.Block, jump: type[ir.Statement], flag: ir.Register, outside: "_Outside"
    ) -> ir.Block:
        """Return a block whose jumps set a flag, without which what follows them runs."""
        groups: list[list[ir.Statement]] = [[]]
        for statement in block:
            if isinstance(statement, jump):
                groups[-1].append(assign(flag, uint(1), statement.loc))
                break
            if not _count_jumps(statement, jump):
                groups[-1].append(statement)
                continue
            if isinstance(statement, (ir.For, ir.While)):
                groups[-1].append(ir.map_statement(statement, block=lambda inner: _leave(inner, flag)))
            else:
                groups[-1].append(
                    ir.map_statement(statement, block=lambda inner: self._guard(inner, jump, flag, outside))
                )
            groups.append([])
        out = groups[0]
        last = {
            register: at for at, group in enumerate(groups) for register in _find_registers((tuple(group),))
        }
        for at, group in enumerate(groups[1:], 1):
            declared = {id(part.register) for part in group if isinstance(part, ir.Declare)}
            later = {register for register in declared if last.get(register, at) > at}
            body = tuple(outside.move(statement, later) for statement in group)
            if body:
                out.append(when(is_zero(read(flag)), *body, loc=body[0].loc))
        return tuple(out)


def _leave(block: ir.Block, flag: ir.Register) -> ir.Block:
    """Return a block of a loop whose returns leave it, and set a flag."""
    out: list[ir.Statement] = []
    for statement in block:
        if isinstance(statement, ir.Return):
            out += (assign(flag, uint(1), statement.loc), ir.Break(statement.loc))
            continue
        out.append(ir.map_statement(statement, block=lambda inner: _leave(inner, flag)))
        if isinstance(statement, (ir.For, ir.While)) and _count_jumps(statement, (ir.Return,)):
            leaves = is_nonzero(read(flag))
            out.append(when(leaves, ir.Break(statement.loc), loc=statement.loc))
    return tuple(out)


class _Outside:
    """Variables whose declarations are moved out of blocks that end before they are used."""

    def __init__(self, names: FreshNames) -> None:
        self._names = names
        self._others: dict[int, ir.Register] = {}
        self._moved: list[ir.Declare] = []

    def move(self, statement: ir.Statement, used: set[int]) -> ir.Statement:
        """Return the assignment that takes the place of a declaration of one of the variables `used`."""
        if not isinstance(statement, ir.Declare) or id(statement.register) not in used:
            return statement
        if statement.value.op is ir.Op.ATOMIC or not _has_zero(statement.value):
            raise _FixedError
        old = statement.register
        new = replace(old, name=self._names.claim_copy(old.name), counter=False, fixed=False)
        self._others[id(old)] = new
        self._moved.append(replace(statement, register=new, value=zero(new.dtype)))
        return assign(new, statement.value, statement.loc)

    def declare(self, block: ir.Block) -> ir.Block:
        """Return a block with the declarations before it."""
        return (*self._moved, *replace_registers(block, self._others)) if self._moved else block


class _FixedError(Exception):
    """A declaration cannot be moved."""


def _find_registers(blocks: Iterable[ir.Block]) -> set[int]:
    return {
        id(expr.value) for block in blocks for expr in ir.expressions_in(block) if expr.op is ir.Op.REGISTER
    }


# ---- Deep blocks behind the statements that they end -----------------------------------------------------


class _Nests:
    """Moves deep blocks behind the statements that they end."""

    def __init__(self, names: FreshNames) -> None:
        self._names = names
        self._depths = _Depths()

    def block(self, block: ir.Block, room: int) -> ir.Block:
        """Return a block whose statements are at most `room` deep, where that is possible."""
        out: list[ir.Statement] = []
        for statement in block:
            if self._depths.statement(statement) <= room or room < _SHALLOW:
                out.append(statement)
            elif isinstance(statement, ir.If):
                out += _Moving(self, self._names, room).convert(statement)
            else:
                inner = partial(self.block, room=room - (not isinstance(statement, ir.Scope)))
                out.append(ir.map_statement(statement, block=inner))
        return tuple(out)

    def depth(self, block: ir.Block) -> int:
        """Return the depth of a block."""
        return self._depths.block(block)


class _Moving:
    """Cuts one statement into several, each under the flag that a former one sets."""

    def __init__(self, nests: _Nests, names: FreshNames, room: int) -> None:
        self._nests = nests
        self._names = names
        self._room = room
        self._moved: list[tuple[ir.Register, ir.Block]] = []
        self._outside = _Outside(names)

    def convert(self, statement: ir.If) -> ir.Block:
        """Return the statements that take the place of one."""
        out: list[ir.Statement] = [self._if(statement, self._room)]
        flags: list[ir.Statement] = []
        waiting = self._moved[::-1]
        while waiting:
            flag, block = waiting.pop()
            flags.append(ir.Declare(flag, uint(0), statement.loc))
            self._moved = []
            body = self._split(block, self._room - 1)
            out.append(when(is_nonzero(read(flag)), *body, loc=block[0].loc))
            waiting += self._moved[::-1]  # which run before what waits already
        return (*flags, *self._outside.declare(tuple(out)))

    def _if(self, statement: ir.If, room: int) -> ir.If:
        branches, orelse = statement.branches, statement.orelse
        count = min(len(branches), max(room - 1, 1))
        kept = tuple(
            (condition, self._cut(body, room - position - 1))
            for position, (condition, body) in enumerate(branches[:count])
        )
        if count < len(branches):
            orelse = self._move((ir.If(branches[count:], orelse, branches[count][0].loc or statement.loc),))
        elif orelse is not None:
            orelse = self._cut(orelse, room - count)
        return ir.If(kept, orelse, statement.loc)

    def _cut(self, block: ir.Block, room: int) -> ir.Block:
        """Return a block of a depth of `room`; what does not fit is moved."""
        if self._nests.depth(block) <= room:
            return block
        position = self._find_deep(block, room)
        shallow = room > 1 and self._nests.depth(block[:position]) <= room
        return (
            self._split(block, room) if shallow and isinstance(block[position], ir.If) else self._move(block)
        )

    def _find_deep(self, block: ir.Block, room: int) -> int:
        """Return the position of the first deep statement of a block, or of the last statement."""
        deep = (self._nests.depth((statement,)) > room for statement in block)
        return next((position for position, is_deep in enumerate(deep) if is_deep), len(block) - 1)

    def _move(self, block: ir.Block) -> ir.Block:
        flag = ir.Register(self._names.claim_number("rest"), uint32)
        self._moved.append((flag, block))
        return (assign(flag, uint(1), block[0].loc),)

    def _split(self, block: ir.Block, room: int) -> ir.Block:
        """Cut the first deep statement of a block. What is moved uses variables that are declared outside."""
        position = self._find_deep(block, room)
        before, deep, after = block[:position], block[position], block[position + 1 :]
        if not isinstance(deep, ir.If):
            return self._nests.block(block, room)
        first = len(self._moved)
        cut: ir.Block = (self._if(deep, room),)
        if after:
            cut += self._move(after) if len(self._moved) > first else after
        used = _find_registers(inner for _, inner in self._moved[first:])
        return (*(self._outside.move(statement, used) for statement in before), *cut)
