"""Statements as lines of GLSL, with the Python line of each."""

from vkdispatch.analyses.naming import NamingPlan, local_names
from vkdispatch.base.dtype import (
    DType,
    component_count,
    component_type,
    is_array,
)
from vkdispatch.base.record import replace
from vkdispatch.glsl.emulation import write_operation
from vkdispatch.glsl.expressions import (
    array_text,
    full_text,
    packed_place,
    place_text,
    stored_as,
    updated_text,
    value_text,
)
from vkdispatch.glsl.literals import literal_text
from vkdispatch.glsl.names import Names
from vkdispatch.glsl.spelling import COMPONENT_NAMES, GVEC, INDENT, STORED
from vkdispatch.ir import (
    Assert,
    Block,
    Break,
    Builtin,
    Comment,
    Continue,
    Declare,
    Effect,
    Expr,
    For,
    If,
    ImageStore,
    MatrixLoad,
    MatrixStore,
    Op,
    Print,
    RawStatement,
    Return,
    Scope,
    Statement,
    Storage,
    Store,
    Switch,
    While,
    blocks_of,
)
from vkdispatch.ir.location import Loc
from vkdispatch.ir.names import FreshNames
from vkdispatch.ir.variant import emulates
from vkdispatch.passes.builders import read


class BodyWriter:
    """Writes statements as lines, remembering the Python line of each."""

    def __init__(self, names: Names, plan: NamingPlan, variables: FreshNames) -> None:
        self._names = names
        self._plan = plan
        self._variables = variables
        self._depth = 1
        self._local: list[int] = []
        self.lines: list[str] = []
        self.line_map: list[Loc | None] = []

    def line(self, text: str, loc: Loc | None = None) -> None:
        """Write one line, indented."""
        self.lines.append(INDENT * self._depth + text if text else "")
        self.line_map.append(loc)

    def block(self, block: Block) -> None:
        """Write all statements of a block."""
        outside = dict(self._names.of_number)
        for position, statement in enumerate(block):
            for number in self._plan.before.get((id(block), position), ()):
                self._declare_name(number)
            self._local = local_names(self._plan, statement)
            for number in self._local:
                self._declare_name(number)
            self._statement(statement)
            self._forget_local()
        self._names.of_number = outside

    def _forget_local(self) -> None:
        """Drop the names that hold for one statement: what they were computed from may change now."""
        for number in self._local:
            del self._names.of_number[number]
        self._local = []

    def _declare_name(self, number: int) -> None:
        expr = self._plan.numbering.exprs[number]
        text = value_text(expr, self._names)[0]
        name = self._new_name(expr)
        self.line(f"{expr.dtype.glsl_type} {name} = {text};", expr.loc)
        self._names.of_number[number] = name

    def _new_name(self, expr: Expr) -> str:
        name = ""
        if expr.op is Op.COMPONENT and isinstance(expr.args[0].value, Builtin):
            prefix = COMPONENT_NAMES.get(expr.args[0].value)
            name = f"{prefix}_{expr.value}" if prefix else ""
        if not name or name in self._variables:
            return self._variables.claim_number("t")
        return self._variables.claim(name)

    def _text(self, expr: Expr) -> str:
        return full_text(expr, self._names)

    def _statement(self, statement: Statement) -> None:
        loc = statement.loc
        if isinstance(statement, Declare):
            self._declare(statement)
        elif isinstance(statement, Store):
            self.line(f"{self._assignment(statement)};", loc)
        elif isinstance(statement, ImageStore):
            target, texel = statement.image.name, self._texel(statement.value)
            self.line(f"imageStore({target}, {self._text(statement.coordinate)}, {texel});", loc)
        elif isinstance(statement, (MatrixLoad, MatrixStore)):
            self._matrix(statement)
        elif isinstance(statement, If):
            self._if(statement)
        elif isinstance(statement, While):
            hint = "[[dont_unroll]] " if statement.rolled else ""
            self.line(f"{hint}while ({self._text(statement.condition)}) {{", loc)
            self._nested(statement.body)
            self.line("}", loc)
        elif isinstance(statement, For):
            self._for(statement)
        elif isinstance(statement, Switch):
            self._switch(statement)
        elif isinstance(statement, Break):
            self.line("break;", loc)
        elif isinstance(statement, Continue):
            self.line("continue;", loc)
        elif isinstance(statement, Scope):
            self._comment(statement.comment, loc)
            self.line("{", loc)
            self._nested(statement.body)
            self.line("}", loc)
        elif isinstance(statement, Effect):
            self.line(f"{statement.function}();", loc)
        elif isinstance(statement, Print):
            # GLSL has none: `passes.instrument` turns prints into statements that have
            self._comment(f"print {statement.format!r}", loc)
        elif isinstance(statement, Assert):
            self._comment(f"assert {statement.message!r}", loc)
        elif isinstance(statement, Return):
            self.line("return;", loc)
        elif isinstance(statement, Comment):
            if statement.preceding_new_line and self.lines and not self.lines[-1].endswith("{"):
                self.line("")
            self._comment(statement.text, loc)
        elif isinstance(statement, RawStatement):
            for text in self._names.raw(statement.text).splitlines():
                self.line(text, loc)

    def _declare(self, statement: Declare) -> None:
        register, value = statement.register, statement.value
        precise = "precise " if register.precise else ""
        declared = f"{precise}{register.dtype.glsl_type} {register.name} = "
        if value.op is Op.CONSTRUCT and is_array(register.dtype) and not value.args:
            # `= {}` would be the value at the start of the invocation, not of each round of a loop
            zero = self._variables.claim(f"{register.name}_zero")
            self.line(f"const {register.dtype.glsl_type} {zero} = {self._text(value)};", statement.loc)
            self.line(f"{declared}{zero};", statement.loc)
            return
        if value.op is Op.ATOMIC and str(value.value).startswith("atomicStore"):
            # the one atomic that gives no value
            self.line(f"{declared}{self._text(value.args[1])};", statement.loc)
            stored = replace(value, args=(value.args[0], read(register)))
            self.line(f"{self._text(stored)};", statement.loc)
            return
        self.line(f"{declared}{self._text(value)};", statement.loc)

    def _assignment(self, statement: Store) -> str:
        place = statement.place
        packed = packed_place(place, self._names)
        if packed is not None:
            return self._packed_assignment(statement, packed)
        target = place_text(place, self._names)
        kind = stored_as(place)
        if kind is not None:
            return f"{target} = {STORED[kind].store.format(self._text(statement.value))}"
        if statement.operator is None:
            return f"{target} = {self._text(statement.value)}"
        if emulates(place.dtype, self._names.lacks):
            value = f"({self._text(statement.value)})"
            return f"{target} = {write_operation(statement.operator, place.dtype, target, value)}"
        return updated_text(target, statement.operator, place, statement.value, self._names)

    def _packed_assignment(self, statement: Store, packed: tuple[Storage, DType, DType, str]) -> str:
        """Write a store to an element, or a part of one, that lies in words."""
        storage, kind, value, at = packed
        text = self._text(statement.value)
        if statement.operator is not None:
            old = self._names.packing.load(storage, kind, value, at)
            if emulates(value, self._names.lacks):
                text = write_operation(statement.operator, value, old, f"({text})")
            else:
                text = f"{value.glsl_type}({old} {statement.operator} ({text}))"
        return self._names.packing.store(storage, kind, value, at, text)

    def _matrix(self, statement: MatrixLoad | MatrixStore) -> None:
        """Write the transfer of a cooperative matrix."""
        loads = isinstance(statement, MatrixLoad)
        if isinstance(statement, MatrixLoad):
            matrix, element, kind = statement.matrix, statement.source, statement.matrix.dtype
        else:
            matrix, element, kind = statement.value, statement.place, statement.value.dtype
        array, index = array_text(element, self._names)
        function, stride = f"coopMat{'Load' if loads else 'Store'}", self._text(statement.stride)
        start = f"{self._text(matrix)}, {array}, {index}, "
        if not statement.window:
            order = f"gl_CooperativeMatrixLayout{'Column' if statement.transposed else 'Row'}Major"
            self.line(f"{function}({start}{stride}, {order});", statement.loc)
            return
        rows, columns, row, column = map(self._text, statement.window)
        sizes: tuple[int, ...] = kind.shape
        spans = [(rows, row, sizes[0]), (columns, column, sizes[1])][:: -1 if statement.transposed else 1]
        clamp = "gl_CooperativeMatrixClampModeConstantNV"
        self.line("{", statement.loc)
        self._depth += 1
        self.line(f"tensorLayoutNV<2, {clamp}> whole = createTensorLayoutNV(2, {clamp});", statement.loc)
        self.line(f"whole = setTensorLayoutDimensionNV(whole, {spans[0][0]}, {spans[1][0]});", statement.loc)
        self.line(f"whole = setTensorLayoutStrideNV(whole, {stride}, 1);", statement.loc)
        part = "sliceTensorLayoutNV(whole, " + ", ".join(f"{first}, {size}" for _, first, size in spans) + ")"
        if statement.transposed:
            turn = "tensorViewNV<2, false, 1, 0> turned = createTensorViewNV(2, false, 1, 0);"
            self.line(turn, statement.loc)
            part += ", turned"
        self.line(f"{function}TensorNV({start}{part});", statement.loc)
        self._depth -= 1
        self.line("}", statement.loc)

    def _texel(self, value: Expr) -> str:
        """Write a value as the four components that an image store takes."""
        text, prefix = self._text(value), GVEC[component_type(value.dtype)]
        given = component_count(value.dtype)
        if given == 4:
            return text
        return f"{prefix}vec4({text})" if given == 1 else f"{prefix}vec4({text}, 0, 0)"

    def _if(self, statement: If) -> None:
        conditions = [self._text(condition) for condition, _ in statement.branches]
        self._forget_local()
        for position, (condition, body) in enumerate(statement.branches):
            keyword = "} else if" if position else "if"
            self.line(f"{keyword} ({conditions[position]}) {{", condition.loc or statement.loc)
            self._nested(body)
        if statement.orelse is not None:
            self.line("} else {", statement.loc)
            self._nested(statement.orelse)
        self.line("}", statement.loc)

    def _for(self, statement: For) -> None:
        name, kind = statement.counter.name, statement.counter.dtype.glsl_type
        start, stop, step = (self._text(bound) for bound in (statement.start, statement.stop, statement.step))
        upward, downward = f"{name} < {stop}", f"{name} > {stop}"
        change = f"{name} += {step}"
        amount = statement.step.value
        if statement.step.op is not Op.LITERAL or not isinstance(amount, int):
            condition = f"{step} > 0 ? {upward} : {step} < 0 && {downward}"
        elif amount > 0:
            condition = upward
        elif amount < 0:
            condition, change = downward, f"{name} -= {-amount}"
        else:
            condition = "false"
        change = {f"{name} += 1": f"++{name}", f"{name} += 1u": f"++{name}", f"{name} -= 1": f"--{name}"}.get(
            change, change
        )
        hint = "[[unroll]] " if statement.unrolled else ""
        self.line(f"{hint}for ({kind} {name} = {start}; {condition}; {change}) {{", statement.loc)
        self._nested(statement.body)
        self.line("}", statement.loc)

    def _switch(self, statement: Switch) -> None:
        loc = statement.loc
        value = self._text(statement.value)
        self._forget_local()
        if _leaves_loop(statement):
            # GLSL's break would leave the switch instead
            self._switch_by_if(statement, value)
            return
        self.line(f"switch ({value}) {{", loc)
        for values, body in statement.cases:
            labels = " ".join(f"case {literal_text(each, statement.value.dtype)}:" for each in values)
            self.line(f"{labels} {{", loc)
            self._nested(body)
            self.line("} break;", loc)
        self.line("default: {", loc)
        if statement.default is not None:
            self._nested(statement.default)
        self.line("} break;", loc)
        self.line("}", loc)

    def _switch_by_if(self, statement: Switch, value: str) -> None:
        loc, kind = statement.loc, statement.value.dtype
        name = self._new_name(statement.value)
        self.line(f"{kind.glsl_type} {name} = {value};", loc)
        for position, (values, body) in enumerate(statement.cases):
            keyword = "} else if" if position else "if"
            conditions = " || ".join(f"{name} == {literal_text(each, kind)}" for each in values)
            self.line(f"{keyword} ({conditions}) {{", loc)
            self._nested(body)
        if statement.default is not None:
            self.line("} else {" if statement.cases else "{", loc)
            self._nested(statement.default)
        if statement.cases or statement.default is not None:
            self.line("}", loc)

    def _nested(self, block: Block) -> None:
        self._depth += 1
        self.block(block)
        self._depth -= 1

    def _comment(self, text: str | None, loc: Loc | None) -> None:
        if text is None:
            return
        # NUL ends the source
        lines = text.replace("\0", "").replace("*/", "* /").splitlines() or [""]
        if len(lines) == 1:
            self.line(f"/* {lines[0]} */", loc)
            return
        self.line("/*", loc)
        for each in lines:
            self.line(f" * {each}".rstrip(), loc)
        self.line(" */", loc)


def _leaves_loop(statement: Statement) -> bool:
    """Whether a Break inside means a loop around the statement."""
    for block in blocks_of(statement):
        for inner in block:
            if isinstance(inner, Break):
                return True
            if not isinstance(inner, (While, For)) and _leaves_loop(inner):
                return True
    return False
