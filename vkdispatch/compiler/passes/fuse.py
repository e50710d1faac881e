"""Fusion: several kernels over the same invocations become one, which passes values on in registers.

Every invocation runs the kernels one after the other. That equals consecutive dispatches if each element that
one kernel writes and another one accesses belongs to a single invocation. The caller of `fuse` guarantees
that, and tells which elements are the same *place*. The values of places are held in registers: they are
loaded at their first use and stored after their last change. Around loops, and where branches join with
different states, memory is updated. Going through memory is always correct, as an invocation sees its own
writes.
"""

from collections import ChainMap
from collections.abc import Iterable, Sequence

from vkdispatch.base.dtype import component_type, float32, is_float_dtype, is_scalar, uint32, uvec3
from vkdispatch.base.record import record, replace
from vkdispatch.compiler import ir
from vkdispatch.compiler.analyses.contents import GROUP_COUNT
from vkdispatch.compiler.ir import Block
from vkdispatch.compiler.ir import nodes as nodes
from vkdispatch.compiler.ir.names import FreshNames
from vkdispatch.compiler.passes import elementwise

_EXEC_COUNT = "exec_count"
_ZERO = "zero"


@record(eq=False)
class Fused:
    """A chain as one kernel.

    Attributes
    ----------
    kernel
        Its resources are those that are still touched.
    resources
        Their numbers, as the parts have them, in the order of binding.
    members
        For each part the new names of its arguments, shapes and execution size left out.
    shapes
        The names of the arguments that take buffers' shapes, by number.
    """

    kernel: ir.Kernel
    resources: tuple[int, ...]
    members: tuple[dict[str, str], ...]
    shapes: dict[int, str]


def fuse(name: str, parts: Sequence[elementwise.Part], discarded: frozenset[int] = frozenset()) -> Fused:
    """Make one kernel of several.

    Parameters
    ----------
    name
        What the new kernel is called.
    parts
        The kernels in order. Only the last one may have returns left.
    discarded
        Numbers of buffers whose contents are not used afterwards: stores to them are omitted unless the new
        kernel loads from them.
    """
    numbers = sorted({number for part in parts for number in part.resources})
    chain, body = _run_parts(parts, numbers, discarded)
    kept = chain.find_used(body, numbers)
    if kept != numbers:
        chain, body = _run_parts(parts, kept, discarded)
    return chain.make_kernel(name, kept, body)


def _run_parts(
    parts: Sequence[elementwise.Part], bound: Sequence[int], discarded: frozenset[int]
) -> "tuple[_Chain, Block]":
    """Rewrite all parts; `bound` has the numbers of the resources in the order of binding."""
    chain = _Chain(parts, bound)
    body: list[ir.Statement] = []
    ended = False
    for position, part in enumerate(parts):
        chain.begin(position, body)
        body.append(ir.Comment(part.element.kernel.name, preceding_new_line=position > 0))
        ended = chain.run(part.element.kernel.body, body)
    if not ended:
        chain.registers.store_all(body)
    return chain, elementwise.remove_stores((*chain.registers.prelude, *body), discarded, chain.resources)


class _Chain:
    """The kernel under construction, up to the current point of the program."""

    def __init__(self, parts: Sequence[elementwise.Part], bound: Sequence[int]) -> None:
        self._parts = parts
        self.resources: dict[int, ir.Storage | ir.ImageBinding] = {}
        self._exec_count = ir.Argument(_EXEC_COUNT, uvec3)
        self._zero = ir.Argument(_ZERO, uint32)
        self._uses_zero = False
        self._arguments: list[ir.Argument] = []
        self._members: list[dict[str, str]] = []
        self._shapes: dict[int, ir.Argument] = {}
        # resources that are not bound are not used: their index does not matter
        order = {number: position for position, number in enumerate(bound)}
        for part in parts:
            for number, resource in zip(part.resources, part.element.kernel.resources, strict=True):
                index = order.get(number, len(order))
                self.resources.setdefault(number, replace(resource, index=index))
        # how the writer calls them
        bound_names = (f"{kind}{index}" for kind in ("buf", "tex", "img") for index in range(len(order)))
        self._names = FreshNames((_EXEC_COUNT, GROUP_COUNT, _ZERO, *bound_names))
        self._shape_names()
        self._places = elementwise.collect_places(parts)
        self.registers = elementwise.PlaceRegisters(self._places, self._names)
        self._position = 0
        self._substitutes: dict[int, ir.Value] = {}
        self._steady: dict[int, ir.Expr] = {}
        self._place_of: dict[int, int] = {}

    def _shape_names(self) -> None:
        """Give each buffer whose shape is used one argument for it."""
        found = {number: argument for part in self._parts for argument, number in part.shapes}
        for number, argument in sorted(found.items(), key=lambda item: item[0]):
            name = self._claim(f"{self.resources[number].name}_shape")
            self._shapes[number] = replace(argument, name=name)

    def _claim(self, wanted: str) -> str:
        return self._names.claim_copy(wanted, first=2)

    # -- parts

    def begin(self, position: int, out: list[ir.Statement]) -> None:
        """Start another part: rename its arguments, registers and resources."""
        part = self._parts[position]
        kernel = part.element.kernel
        self._position = position
        self._substitutes, self._steady = {}, {}
        shapes = {id(argument): number for argument, number in part.shapes}
        members: dict[str, str] = {}
        for argument in kernel.arguments:
            if argument is kernel.exec_count:
                new = self._exec_count
            elif id(argument) in shapes:
                new = self._shapes[shapes[id(argument)]]
            else:
                new = replace(argument, name=self._claim(argument.name))
                self._arguments.append(new)
                members[argument.name] = new.name
            self._substitutes[id(argument)] = new
        self._members.append(members)
        for number, resource in zip(part.resources, kernel.resources, strict=True):
            self._substitutes[id(resource)] = self.resources[number]
        for statement in ir.walk(kernel.body):
            register = statement.counter if isinstance(statement, ir.For) else None
            register = statement.register if isinstance(statement, ir.Declare) else register
            if register is not None and id(register) not in self._substitutes:
                new_register = replace(register, name=self._claim(register.name))
                self._substitutes[id(register)] = new_register
        self._place_of = {
            id(element): place
            for element, place in zip(part.element.elements, part.places, strict=True)
            if place is not None
        }
        for element, place in zip(part.element.elements, part.places, strict=True):
            if place is not None and self._places[place].element is None:
                self._places[place].element = self._expand_element(element)
        self.registers.in_memory = self._find_read_back()
        self.registers.store_all(out, self.registers.in_memory)
        for place in self.registers.in_memory:
            self.registers.states.pop(place, None)

    def _expand_element(self, element: ir.Expr) -> ir.Expr:
        """Rewrite an element without registers of the part, so that other parts can use it."""
        definitions = self._parts[self._position].element.definitions
        known: dict[int, ir.Expr] = {}

        def expand(expr: ir.Expr) -> ir.Expr:
            if id(expr) not in known:
                if isinstance(expr.value, ir.Register):
                    known[id(expr)] = expand(definitions[expr.value])
                else:
                    args = tuple(map(expand, expr.args))
                    value = self._substitutes.get(id(expr.value), expr.value)
                    known[id(expr)] = ir.Expr(expr.op, expr.dtype, args, value, expr.loc)
            return known[id(expr)]

        return expand(element)

    def find_used(self, body: Block, numbers: Sequence[int]) -> list[int]:
        """Return the numbers of the resources that a program mentions."""
        used = {id(expr.value) for expr in ir.expressions_in(body) if expr.value is not None}
        return [
            number
            for number in numbers
            if id(self.resources[number]) in used or id(self._shapes.get(number)) in used
        ]

    def make_kernel(self, name: str, numbers: Sequence[int], body: Block) -> Fused:
        """Return the kernel; `numbers` are those of its resources."""
        shapes = {number: shape for number, shape in self._shapes.items() if number in numbers}
        arguments = [*self._arguments, *shapes.values()]
        if self._uses_zero:
            arguments.append(self._zero)
        flags = ir.ShaderFlags.NONE
        for part in self._parts:
            flags |= part.element.kernel.flags
        kernel = ir.Kernel(
            name,
            (*arguments, self._exec_count),
            tuple(self.resources[number] for number in numbers),
            (),
            body,
            self._exec_count,
            flags,
        )
        names = {number: shape.name for number, shape in shapes.items()}
        return Fused(kernel, tuple(numbers), tuple(self._members), names)

    # -- expressions

    def _substitute(self, root: ir.Expr) -> ir.Expr:
        """Rewrite an expression whose places are loaded: they become registers."""
        local: dict[int, ir.Expr] = {}
        known = ChainMap(local, self._steady)
        for expr in ir.postorder(root, known):
            place = self._place_of.get(id(expr))
            if place is not None and place in self.registers.states:
                local[id(expr)] = self.registers.read(place)
                continue
            args = tuple(known[id(arg)] for arg in expr.args)
            value = self._substitutes.get(id(expr.value), expr.value)
            steady = place is None and all(id(arg) in self._steady for arg in expr.args)
            results = self._steady if steady else local
            results[id(expr)] = ir.Expr(expr.op, expr.dtype, args, value, expr.loc)
        return known[id(root)]

    def _load_places(self, roots: Iterable[ir.Expr], out: list[ir.Statement]) -> None:
        """Load the places that expressions read, so that `_substitute` finds them in registers."""
        for expr in nodes(roots):
            place = self._place_of.get(id(expr))
            if place is not None:
                self.registers.load(place, out)

    # -- statements

    def run(self, block: Block, out: list[ir.Statement]) -> bool:
        """Rewrite statements; returns whether control never reaches the end of the block."""
        return any(self._run_statement(statement, out) for statement in block)

    def _run_nested(self, block: Block) -> tuple[list[ir.Statement], bool]:
        out: list[ir.Statement] = []
        self.registers.depth += 1
        left = self.run(block, out)
        self.registers.depth -= 1
        return out, left

    def _run_statement(self, statement: ir.Statement, out: list[ir.Statement]) -> bool:
        if isinstance(statement, ir.Store):
            self._store_value(statement, out)
        elif isinstance(statement, ir.Declare):
            self._load_places((statement.value,), out)
            register = self._substitutes[id(statement.register)]
            assert isinstance(register, ir.Register)
            out.append(ir.Declare(register, self._substitute(statement.value), statement.loc))
        elif isinstance(statement, ir.If):
            conditions = [condition for condition, _ in statement.branches]
            self._load_places(conditions, out)
            new = tuple(map(self._substitute, conditions))
            blocks, ended = self._run_branches(ir.blocks_of(statement), statement.orelse is not None)
            pairs = tuple(zip(new, blocks, strict=False))
            rest = blocks[-1] if len(blocks) > len(pairs) else None
            out.append(ir.If(pairs, rest, statement.loc))
            return ended
        elif isinstance(statement, ir.Switch):
            self._load_places((statement.value,), out)
            value = self._substitute(statement.value)
            blocks, ended = self._run_branches(ir.blocks_of(statement), statement.default is not None)
            cases = tuple((values, body) for (values, _), body in zip(statement.cases, blocks, strict=False))
            default = blocks[-1] if len(blocks) > len(cases) else None
            out.append(ir.Switch(value, cases, default, statement.loc))
            return ended
        elif isinstance(statement, (ir.For, ir.While)):
            self._run_loop(statement, out)
        elif isinstance(statement, ir.Scope):
            body, ended = self._run_nested(statement.body)
            out.append(replace(statement, body=tuple(body)))
            return ended
        elif isinstance(statement, ir.Return):
            self.registers.store_all(out)
            out.append(statement)
            return True
        else:
            out.append(statement)
            return isinstance(statement, (ir.Break, ir.Continue))
        return False

    def _store_value(self, statement: ir.Store, out: list[ir.Statement]) -> None:
        root = ir.root_of(statement.place)
        place = self._place_of.get(id(root))
        self._load_places(ir.evaluated(statement), out)
        whole = root is statement.place and statement.operator is None
        if place is not None and not whole:
            self.registers.load(place, out)
        value = self._substitute(statement.value)
        if place is None or place in self.registers.in_memory:
            out.append(
                ir.Store(self._substitute_place(statement.place), value, statement.operator, statement.loc)
            )
            return
        sealed = self._is_passed_on(place)
        if whole:
            at_once = sealed and (is_scalar(value.dtype) or component_type(value.dtype) is float32)
            self.registers.assign(place, self._seal_value(value) if at_once else value, out)
            sealed = sealed and not at_once
        else:
            target = self._substitute_place(statement.place)
            out.append(ir.Store(target, value, statement.operator, statement.loc))
        if sealed:
            out.append(ir.Store(self.registers.read(place), self._seal_value(self.registers.read(place))))
        self.registers.states[place] = elementwise.State.CHANGED

    def _substitute_place(self, place: ir.Expr) -> ir.Expr:
        """Rewrite what is stored to: an element in memory, a register, or a part of one of them."""
        if place.op in (ir.Op.INDEX, ir.Op.COMPONENT):
            base = self._substitute_place(place.args[0])
            rest = tuple(map(self._substitute, place.args[1:]))
            return ir.Expr(place.op, place.dtype, (base, *rest), place.value, place.loc)
        return self._substitute(place)

    def _run_branches(self, bodies: Sequence[Block], complete: bool) -> tuple[list[Block], bool]:
        """Rewrite blocks of which one runs, or none of them unless they are `complete`.

        Returns them, with one more if memory has to be brought up to date where none runs; and whether none
        of them comes to its end.
        """
        before = self.registers.states
        ways: list[tuple[list[ir.Statement], bool, dict[int, elementwise.State]]] = []
        for body in bodies:
            self.registers.states = dict(before)
            out, ended = self._run_nested(body)
            ways.append((out, ended, self.registers.states))
        if not complete:
            ways.append(([], False, dict(before)))
        open_ways = [(out, states) for out, ended, states in ways if not ended]
        self.registers.states = self.registers.join(before, open_ways)
        blocks = [tuple(out) for out, _, _ in ways]
        if not complete and not blocks[-1]:
            blocks.pop()
        return blocks, not open_ways

    def _run_loop(self, statement: ir.For | ir.While, out: list[ir.Statement]) -> None:
        touched, stored = self._find_touched(statement)
        around = self.registers.in_memory
        self.registers.store_all(out, stored)
        for place in stored:
            self.registers.states.pop(place, None)
        self.registers.in_memory = around | stored
        for place in sorted(touched - stored):
            self.registers.load(place, out)
        known = dict(self.registers.states)
        heads = ir.expressions_of(statement)
        self._load_places(heads, out)
        new = tuple(map(self._substitute, heads))
        body = tuple(self._run_nested(statement.body)[0])
        if isinstance(statement, ir.While):
            out.append(ir.While(new[0], body, statement.loc, statement.rolled))
        else:
            counter = self._substitutes[id(statement.counter)]
            assert isinstance(counter, ir.Register)
            start, stop, step = new
            out.append(ir.For(counter, start, stop, step, body, statement.loc))
        # the loop leaves these registers unchanged, and memory up to date
        self.registers.states = known
        self.registers.in_memory = around

    def _find_touched(self, loop: ir.Statement) -> tuple[set[int], frozenset[int]]:
        touched: set[int] = set()
        stored: set[int] = set()
        for statement in ir.walk((loop,)):
            for expr in nodes(ir.expressions_of(statement)):
                place = self._place_of.get(id(expr))
                if place is not None:
                    touched.add(place)
            if isinstance(statement, ir.Store):
                place = self._place_of.get(id(ir.root_of(statement.place)))
                if place is not None:
                    stored.add(place)
        return touched, frozenset(stored)

    # -- floating-point numbers

    def _is_passed_on(self, place: int) -> bool:
        """Whether the value being stored is a float that a later kernel reads.

        Within a kernel compilers may contract a product and a sum, or simplify `a + b - a` to `b`. Across
        memory they do not, so values that are passed on in registers have to be opaque to them.
        """
        known = self._places[place]
        return is_float_dtype(known.kind) and any(reader > self._position for reader in known.readers)

    def _find_read_back(self) -> frozenset[int]:
        """Return the float places that the part reads after it has stored to them.

        These stay in memory, so that drivers optimize them as in the kernel alone.
        """
        stored: set[int] = set()
        found: set[int] = set()
        for statement in ir.walk(self._parts[self._position].element.kernel.body):
            read = {self._place_of.get(id(expr)) for expr in nodes(ir.evaluated(statement))}
            target = None
            if isinstance(statement, ir.Store):
                target = self._place_of.get(id(ir.root_of(statement.place)))
                if statement.operator is not None:
                    read.add(target)
            found.update(place for place in read if place in stored)
            if target is not None:
                stored.add(target)
        return frozenset(place for place in found if is_float_dtype(self._places[place].kind))

    def _seal_value(self, value: ir.Expr) -> ir.Expr:
        self._uses_zero = True
        return elementwise.seal(value, self._zero)
