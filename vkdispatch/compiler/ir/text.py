"""A program as text for people: compact, in the manner of Python, with the line of each statement.

    buffer x: float32
    argument exec_count: uvec3

    half: float32 = x[global_invocation_id.x] / 2.0        scale.py:8
    if half > 1.0:                                         scale.py:9
        x[global_invocation_id.x] = half                   scale.py:10

`%1 = ...` names an expression that is used several times, or is long. It is no statement: the expression is
evaluated where its name stands.
"""

import os
from collections import Counter
from collections.abc import Iterable

from vkdispatch.base.dtype import DType, bool_, float32, int32, uint32
from vkdispatch.base.record import record
from vkdispatch.compiler.ir import program as ir
from vkdispatch.compiler.ir.location import Loc
from vkdispatch.compiler.ir.program import Builtin, Expr, ImageBinding, Op, RawText, Storage
from vkdispatch.compiler.ir.traversal import expressions_of, nodes, postorder, walk

_INDENT = "    "
# How strongly operators hold together; a selection, as loosely as `&&` does.
_LOOSE, _PREFIX, _POSTFIX = 1, 10, 11
_BINARY = {"|": 4, "^": 5, "&": 6, "<<": 7, ">>": 7, "+": 8, "-": 8, "*": 9, "/": 9, "%": 9}
_COMPARE = 3
# Longer texts get a name if they are used again, or anyway.
_REPEATED, _LONGEST = 20, 72
_NEVER_NAMED = frozenset((Op.REGISTER, Op.ELEMENT, Op.INDEX, Op.COMPONENT, Op.ATOMIC))
_FORMS = {
    **dict.fromkeys((Op.CALL, Op.SUBGROUP, Op.ATOMIC), "{name}({args})"),
    Op.CONSTRUCT: "{kind}({args})",
    Op.ELEMENT: "{name}[{args}]{path}",
    Op.IMAGE_LOAD: "{name}[{args}]",
    Op.IMAGE_SIZE: "{name}.size({args})",
    Op.LENGTH: "len({name})",
    Op.SAMPLE: "{name}.sample({args})",
}
_SUFFIXES: dict[DType, str] = {float32: "", int32: "", bool_: "", uint32: "u"}


@record
class Line:
    """A line of a program as text, and the place in Python that it comes from."""

    text: str
    loc: Loc | None = None


class ProgramWriter:
    """Writes versions of a program. An expression that they share has one name in all of them."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._named: list[Expr] = []  # kept alive, as names are by identity
        self._lines: list[Line] = []
        self._texts: dict[int, tuple[str, int]] = {}
        self._uses: Counter[int] = Counter()

    def write(self, kernel: ir.Kernel) -> list[Line]:
        """Return the lines of a version: what it takes, and its statements."""
        roots = [expr for statement in walk(kernel.body) for expr in expressions_of(statement)]
        self._uses = Counter(map(id, roots))
        for expr in nodes(roots):
            self._uses.update(map(id, expr.args))
        self._lines, self._texts = [], {}
        for resource in kernel.resources:
            self._lines.append(Line(_describe_resource(resource)))
        for shared in kernel.shared:
            axes = ", ".join(self._value(n) if isinstance(n, Expr) else str(n) for n in shared.shape)
            self._lines.append(Line(f"shared {shared.name}: {shared.dtype.name}[{axes or shared.size}]"))
        for argument in kernel.arguments:
            self._lines.append(Line(f"argument {argument.name}: {argument.dtype.name}"))
        if self._lines:
            self._lines.append(Line(""))
        self._block(kernel.body, 0)
        return self._lines

    # -- statements

    def _block(self, block: ir.Block, depth: int) -> None:
        for statement in block:
            self._statement(statement, depth)

    def _statement(self, statement: ir.Statement, depth: int) -> None:
        loc = statement.loc

        def put(text: str, body: ir.Block | None = None) -> None:
            self._lines.append(Line(_INDENT * depth + text, loc))
            if body is not None:
                self._block(body, depth + 1)
                if not body:
                    self._lines.append(Line(_INDENT * (depth + 1) + "pass", loc))

        for expr in expressions_of(statement):
            self._prepare(expr, depth)
        if isinstance(statement, ir.If):
            for position, (condition, body) in enumerate(statement.branches):
                put(f"{'elif' if position else 'if'} {self._value(condition)}:", body)
            if statement.orelse is not None:
                put("else:", statement.orelse)
        elif isinstance(statement, ir.While):
            put(f"while {self._value(statement.condition)}:", statement.body)
        elif isinstance(statement, ir.For):
            bounds = self._list((statement.start, statement.stop, statement.step))
            put(f"for {statement.counter.name} in range({bounds}):", statement.body)
        elif isinstance(statement, ir.Switch):
            put(f"match {self._value(statement.value)}:")
            depth += 1
            for values, body in statement.cases:
                put(f"case {' | '.join(map(str, values))}:", body)
            put("case _:", statement.default or ())
        elif isinstance(statement, ir.Scope):
            put(f"scope:  # {statement.comment}" if statement.comment else "scope:", statement.body)
        elif isinstance(statement, ir.Assert):
            self._block(statement.body, depth)
            put(f"assert {self._value(statement.condition)}, {statement.message!r}")
        else:
            for text in self._simple(statement).splitlines() or [""]:
                put(text)

    def _simple(self, statement: ir.Statement) -> str:
        """Write a statement without blocks."""
        if isinstance(statement, ir.Declare):
            register = statement.register
            return f"{register.name}: {register.dtype.name} = {self._value(statement.value)}"
        if isinstance(statement, ir.Store):
            operator = statement.operator or ""
            return f"{self._value(statement.place)} {operator}= {self._value(statement.value)}"
        if isinstance(statement, ir.Read):
            return f"read {self._value(statement.value)}"
        if isinstance(statement, ir.ImageStore):
            texel = f"{statement.image.label}[{self._value(statement.coordinate)}]"
            return f"{texel} = {self._value(statement.value)}"
        if isinstance(statement, (ir.MatrixLoad, ir.MatrixStore)):
            loads = isinstance(statement, ir.MatrixLoad)
            name = "load_matrix" if loads else "store_matrix"
            order = ", transposed" if statement.transposed else ""
            return f"{name}({self._list(expressions_of(statement))}{order})"
        if isinstance(statement, ir.Print):
            return f"print({', '.join([repr(statement.format), *map(self._value, statement.args)])})"
        if isinstance(statement, (ir.Comment, ir.RawStatement)):
            mark = "#" if isinstance(statement, ir.Comment) else "glsl"
            return "\n".join(f"{mark} {line}" for line in statement.text.splitlines())
        return (
            f"{statement.function}()"
            if isinstance(statement, ir.Effect)
            else type(statement).__name__.lower()
        )

    # -- expressions: operands before what they are operands of, as trees may be deeper than Python's stack

    def _prepare(self, root: Expr, depth: int) -> None:
        """Write an expression and its operands, after the names that they need."""
        for expr in postorder(root, self._texts):
            text, strength = self._expression(expr)
            uses = self._uses[id(expr)]
            is_long = len(text) > _LONGEST or (uses > 1 and len(text) > _REPEATED)
            if is_long and expr is not root and expr.op not in _NEVER_NAMED:
                known = self._names.get(id(expr))
                if known is None:
                    known = self._names[id(expr)] = f"%{len(self._names) + 1}"
                    self._named.append(expr)
                self._lines.append(Line(f"{_INDENT * depth}{known} = {text}", expr.loc))
                text, strength = known, _POSTFIX
            self._texts[id(expr)] = text, strength

    def _value(self, expr: Expr) -> str:
        if id(expr) not in self._texts:
            self._prepare(expr, 0)
        return self._texts[id(expr)][0]

    def _list(self, args: Iterable[Expr]) -> str:
        return ", ".join(map(self._value, args))

    def _operand(self, expr: Expr, least: int) -> str:
        text, strength = self._texts[id(expr)]
        return text if strength >= least else f"({text})"

    def _expression(self, expr: Expr) -> tuple[str, int]:
        """Return the text of an expression whose operands are written, and how strongly it holds."""
        op, args, value = expr.op, expr.args, expr.value
        if op is Op.LITERAL:
            return _write_literal(value, expr.dtype)
        if op in (Op.BINARY, Op.COMPARE):
            level = _BINARY[str(value)] if op is Op.BINARY else _COMPARE
            # comparisons do not chain
            left = self._operand(args[0], level + (op is Op.COMPARE))
            right = self._operand(args[1], level + 1)
            return f"{left} {value} {right}", level
        if op is Op.LOGICAL:
            return f" {value} ".join(self._operand(arg, _COMPARE) for arg in args), _LOOSE
        if op is Op.SELECT:
            condition, yes, no = (self._operand(arg, _LOOSE + 1) for arg in args)
            return f"{yes} if {condition} else {no}", _LOOSE
        if op is Op.UNARY:
            return f"{value}{self._operand(args[0], _PREFIX)}", _PREFIX
        if op is Op.INDEX:
            return f"{self._operand(args[0], _POSTFIX)}[{self._value(args[1])}]", _POSTFIX
        if op in (Op.COMPONENT, Op.SWIZZLE):
            return f"{self._operand(args[0], _POSTFIX)}.{value}", _POSTFIX
        path = "".join(f".{part}" for part in getattr(value, "path", ()))
        form = _FORMS.get(op, "{name}")
        text = form.format(name=_name(value), path=path, kind=expr.dtype.name, args=self._list(args))
        return text, _POSTFIX


def _name(value: object) -> str:
    if isinstance(value, (Storage, ImageBinding)):
        return value.label
    if isinstance(value, RawText):
        return f"glsl {value.text!r}"
    if isinstance(value, Builtin):
        return value.name.lower()
    return str(getattr(value, "name", value))


def _write_literal(value: object, kind: DType) -> tuple[str, int]:
    suffix = _SUFFIXES.get(kind)
    if suffix is None:
        return f"{kind.name}({value})", _POSTFIX
    return f"{value}{suffix}", _PREFIX if str(value).startswith("-") else _POSTFIX


def _describe_resource(resource: Storage | ImageBinding) -> str:
    if isinstance(resource, Storage):
        kind = "buffer" if resource.constant is None else f"constant array {resource.constant}"
        return f"{kind} {resource.label}: {resource.dtype.name}"
    axes = f"{resource.dimensions}D{' array' if resource.arrayed else ''}"
    kind = "storage image" if resource.storage else "image"
    return f"{kind} {resource.label}: {resource.dtype.name} {axes}"


def join_lines(lines: Iterable[Line]) -> str:
    """Return lines as text, with their places in Python at the right."""
    listed = list(lines)
    width = min(max((len(line.text) for line in listed), default=0), _LONGEST)
    texts: list[str] = []
    before: tuple[str, int] | None = None
    for line in listed:
        place = None if line.loc is None else (line.loc.file, line.loc.line)
        # only the first of several lines shows their place
        if place is None or place == before:
            texts.append(line.text)
        else:
            texts.append(f"{line.text.ljust(width)}  {os.path.basename(place[0])}:{place[1]}")
        before = place
    return "\n".join(texts)
