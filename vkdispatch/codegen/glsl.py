"""The GLSL writer: the only place that makes GLSL text from the intermediate representation."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from vkdispatch.base.dtype import (
    DType,
    bfloat16,
    bool_,
    component_count,
    component_type,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from vkdispatch.codegen.analysis import (
    Access,
    NamingPlan,
    local_names,
    plan_names,
    resource_access,
    usage,
)
from vkdispatch.codegen.extensions import extensions
from vkdispatch.codegen.ir import (
    Argument,
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
    ImageBinding,
    ImageStore,
    Kernel,
    Op,
    Print,
    RawStatement,
    RawText,
    Register,
    Return,
    Scope,
    SharedArray,
    Statement,
    Storage,
    Store,
    Switch,
    While,
    blocks_of,
    walk,
)
from vkdispatch.codegen.layout import GROUP_COUNT, ArgumentLayout, argument_layout
from vkdispatch.codegen.location import Loc

_INDENT = "    "

# ---- tables --------------------------------------------------------------------------------------

# Binding strength of operators, weakest first.
(
    _CHOICE,
    _OR,
    _AND,
    _BIT_OR,
    _BIT_XOR,
    _BIT_AND,
    _EQUAL,
    _ORDER,
    _SHIFT,
    _SUM,
    _PRODUCT,
    _PREFIX,
    _POSTFIX,
) = range(13)
_STRENGTH = {
    "||": _OR,
    "&&": _AND,
    "|": _BIT_OR,
    "^": _BIT_XOR,
    "&": _BIT_AND,
    "==": _EQUAL,
    "!=": _EQUAL,
    "<": _ORDER,
    "<=": _ORDER,
    ">": _ORDER,
    ">=": _ORDER,
    "<<": _SHIFT,
    ">>": _SHIFT,
    "+": _SUM,
    "-": _SUM,
    "*": _PRODUCT,
    "/": _PRODUCT,
    "%": _PRODUCT,
}
# Nobody remembers how these bind, so mixtures of them keep their parentheses.
_UNFAMILIAR = frozenset(("|", "^", "&", "<<", ">>"))

_SUFFIXES: dict[DType, str] = {
    uint16: "us",
    int16: "s",
    uint32: "u",
    int32: "",
    uint64: "ul",
    int64: "l",
    float16: "hf",
    float32: "f",
    float64: "lf",
}
_LOWEST: dict[DType, str] = {
    int16: "int16_t(0x8000us)",
    int32: "int(0x80000000u)",
    int64: "int64_t(0x8000000000000000ul)",
}
_LARGEST_FLOAT: dict[DType, float] = {float16: 65519.99, float32: 3.4028235677973366e38, float64: math.inf}

_BUILTINS: dict[Builtin, str] = {
    Builtin.GLOBAL_INVOCATION_ID: "gl_GlobalInvocationID",
    Builtin.LOCAL_INVOCATION_ID: "gl_LocalInvocationID",
    Builtin.LOCAL_INVOCATION_INDEX: "gl_LocalInvocationIndex",
    Builtin.WORKGROUP_ID: "gl_WorkGroupID",
    Builtin.WORKGROUP_SIZE: "gl_WorkGroupSize",
    Builtin.NUM_WORKGROUPS: "gl_NumWorkGroups",
    Builtin.NUM_SUBGROUPS: "gl_NumSubgroups",
    Builtin.SUBGROUP_ID: "gl_SubgroupID",
    Builtin.SUBGROUP_SIZE: "gl_SubgroupSize",
    Builtin.SUBGROUP_INVOCATION_ID: "gl_SubgroupInvocationID",
    Builtin.SUBGROUP_EQ_MASK: "gl_SubgroupEqMask",
    Builtin.SUBGROUP_GE_MASK: "gl_SubgroupGeMask",
    Builtin.SUBGROUP_GT_MASK: "gl_SubgroupGtMask",
    Builtin.SUBGROUP_LE_MASK: "gl_SubgroupLeMask",
    Builtin.SUBGROUP_LT_MASK: "gl_SubgroupLtMask",
}
# A folded kernel runs a grid of any shape in a launch of another one; see _fold_prologue.
_FOLDED_GLOBAL_ID, _FOLDED_WORKGROUP_ID = "global_id", "workgroup_id"

# Names of components of built-in values, where they get one.
_COMPONENT_NAMES: dict[Builtin, str] = {
    Builtin.GLOBAL_INVOCATION_ID: "gid",
    Builtin.LOCAL_INVOCATION_ID: "lid",
    Builtin.WORKGROUP_ID: "group",
    Builtin.WORKGROUP_SIZE: "group_size",
    Builtin.NUM_WORKGROUPS: "groups",
}


@dataclass(frozen=True, slots=True)
class _Stored:
    """How a type that kernels do not compute with lies in a buffer, is read and is stored."""

    glsl: str
    load: str
    store: str


_STORED: dict[DType, _Stored] = {
    bool_: _Stored("uint8_t", "bool(uint({}))", "uint8_t(uint({}))"),
    int8: _Stored("int8_t", "int({})", "int8_t({})"),
    uint8: _Stored("uint8_t", "uint({})", "uint8_t({})"),
    bfloat16: _Stored("uint16_t", "uintBitsToFloat(uint({}) << 16)", "bfloat16_bits({})"),
}
_BFLOAT16_BITS = """
uint16_t bfloat16_bits(float value) {
    uint bits = floatBitsToUint(value);
    uint rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
    return uint16_t(isnan(value) ? (bits >> 16) | 0x40u : rounded);
}
"""


# How the names of image and vector types start, by what a texel is made of, and the letter of their formats.
_GVEC: dict[DType, str] = {float32: "", int32: "i", uint32: "u"}
_FORMAT_LETTERS: dict[DType, str] = {float32: "f", int32: "i", uint32: "ui"}


# ---- literals ------------------------------------------------------------------------------------


def literal_text(value: int | float | bool, kind: DType) -> str:
    """Write a scalar literal of type `kind`."""
    if kind is bool_:
        return "true" if value else "false"
    if kind in _LARGEST_FLOAT:
        return _float_text(float(value), kind)
    if kind in _LOWEST and value == -(1 << (8 * kind.item_size - 1)):
        # the digits without the sign would not fit
        return _LOWEST[kind]
    return f"{value}{_SUFFIXES[kind]}"


def _float_text(value: float, kind: DType) -> str:
    if not math.isfinite(value) or abs(value) > _LARGEST_FLOAT[kind]:
        bits = "0x7FC00000u" if math.isnan(value) else "0x7F800000u" if value > 0 else "0xFF800000u"
        text = f"uintBitsToFloat({bits})"
        return text if kind is float32 else f"{kind.glsl_type}({text})"
    digits = repr(value)
    if kind is float32 and float(np.float32(value)) == value:
        # a value that came from float32 is written with float32's shorter digits
        digits = min(digits, str(np.float32(value)), key=len)
    if not any(letter in digits for letter in ".e"):
        digits += ".0"
    return digits + _SUFFIXES[kind]


# ---- expressions ---------------------------------------------------------------------------------


@dataclass(slots=True)
class _Names:
    """How leaves are called: built-in values, the argument block, and expressions that have a name."""

    builtins: dict[Builtin, str] = field(default_factory=lambda: _BUILTINS)
    block: str = "PC"
    plan: NamingPlan | None = None
    of_number: dict[int, str] = field(default_factory=dict)

    def name_of(self, expr: Expr) -> str | None:
        if self.plan is None or not self.of_number:
            return None
        return self.of_number.get(self.plan.numbering.number(expr))

    def raw(self, text: str) -> str:
        """Adapt raw GLSL, which was written against the default names."""
        renamed = {_BUILTINS[key]: name for key, name in self.builtins.items() if _BUILTINS[key] != name}
        if self.block != "PC":
            renamed["PC"] = self.block
        if not renamed:
            return text
        pattern = r"\b(" + "|".join(renamed) + r")\b"
        return re.sub(pattern, lambda match: renamed[match[0]], text)


def expression_text(expr: Expr) -> str:
    """Write one expression, with the names of an unfolded kernel that takes push constants."""
    return _written(expr, _Names())[0]


def _written(expr: Expr, names: _Names) -> tuple[str, int]:
    """Text of an expression and how strongly it holds together."""
    name = names.name_of(expr)
    return (name, _POSTFIX) if name is not None else _WRITERS[expr.op](expr, names)


def _full(expr: Expr, names: _Names) -> str:
    return _written(expr, names)[0]


def _operand(expr: Expr, names: _Names, strength: int) -> str:
    """Text of an operand, in parentheses if it holds together less than `strength`."""
    text, own = _written(expr, names)
    return text if own >= strength else f"({text})"


def _list(args: tuple[Expr, ...], names: _Names) -> str:
    return ", ".join(_full(arg, names) for arg in args)


def _literal(expr: Expr, names: _Names) -> tuple[str, int]:
    assert isinstance(expr.value, (int, float))
    text = literal_text(expr.value, expr.dtype)
    return text, _PREFIX if text.startswith("-") else _POSTFIX


def _argument(expr: Expr, names: _Names) -> tuple[str, int]:
    assert isinstance(expr.value, Argument)
    return f"{names.block}.{expr.value.name}", _POSTFIX


def _builtin(expr: Expr, names: _Names) -> tuple[str, int]:
    assert isinstance(expr.value, Builtin)
    return names.builtins[expr.value], _POSTFIX


def _register(expr: Expr, names: _Names) -> tuple[str, int]:
    assert isinstance(expr.value, Register)
    return expr.value.name, _POSTFIX


def _element(expr: Expr, names: _Names) -> tuple[str, int]:
    text = _element_place(expr, names)
    if isinstance(expr.value, Storage) and expr.value.dtype in _STORED:
        return _STORED[expr.value.dtype].load.format(text), _POSTFIX
    return text, _POSTFIX


def _element_place(expr: Expr, names: _Names) -> str:
    assert isinstance(expr.value, (Storage, SharedArray))
    member = ".data" if isinstance(expr.value, Storage) else ""
    return f"{expr.value.name}{member}[{_full(expr.args[0], names)}]"


def _index(expr: Expr, names: _Names) -> tuple[str, int]:
    base, position = expr.args
    return f"{_operand(base, names, _POSTFIX)}[{_full(position, names)}]", _POSTFIX


def _component(expr: Expr, names: _Names) -> tuple[str, int]:
    return f"{_operand(expr.args[0], names, _POSTFIX)}.{expr.value}", _POSTFIX


def _unary(expr: Expr, names: _Names) -> tuple[str, int]:
    text, strength = _written(expr.args[0], names)
    # "--x" would be a decrement
    safe = strength >= _PREFIX and not (expr.value == "-" and text.startswith("-"))
    return f"{expr.value}{text}" if safe else f"{expr.value}({text})", _PREFIX


def _binary(expr: Expr, names: _Names) -> tuple[str, int]:
    symbol = str(expr.value)
    strength = _STRENGTH[symbol]
    left, right = expr.args
    left_text = _mixed(left, names, symbol, strength)
    return f"{left_text} {symbol} {_mixed(right, names, symbol, strength + 1)}", strength


def _mixed(expr: Expr, names: _Names, symbol: str, strength: int) -> str:
    text, own = _written(expr, names)
    compound = own < _PREFIX
    other = expr.op is Op.BINARY and expr.value != symbol
    unfamiliar = symbol in _UNFAMILIAR or (expr.op is Op.BINARY and expr.value in _UNFAMILIAR)
    return f"({text})" if own < strength or (compound and other and unfamiliar) else text


def _logical(expr: Expr, names: _Names) -> tuple[str, int]:
    strength = _STRENGTH[str(expr.value)]
    parts = []
    for arg in expr.args:
        text, own = _written(arg, names)
        nested = own in (_OR, _AND)
        parts.append(f"({text})" if nested else text)
    return f" {expr.value} ".join(parts), strength


def _call(expr: Expr, names: _Names) -> tuple[str, int]:
    return f"{expr.value}({_list(expr.args, names)})", _POSTFIX


def _select(expr: Expr, names: _Names) -> tuple[str, int]:
    condition, chosen, other = (_operand(arg, names, _OR) for arg in expr.args)
    return f"{condition} ? {chosen} : {other}", _CHOICE


def _length(expr: Expr, names: _Names) -> tuple[str, int]:
    if isinstance(expr.value, SharedArray):
        return literal_text(expr.value.size, uint32), _POSTFIX
    assert isinstance(expr.value, Storage)
    return f"uint({expr.value.name}.data.length())", _POSTFIX


def _construct(expr: Expr, names: _Names) -> tuple[str, int]:
    return f"{expr.dtype.glsl_type}({_list(expr.args, names)})", _POSTFIX


def _sample(expr: Expr, names: _Names) -> tuple[str, int]:
    assert isinstance(expr.value, ImageBinding)
    coordinate, level = expr.args
    texture, kind = expr.value.name, coordinate.dtype.glsl_type
    # Layers are counted, not measured: theirs is the only coordinate that is not divided.
    half = "vec3(0.5f, 0.5f, 0.0f)" if expr.value.arrayed else "0.5f"
    size = f"textureSize({texture}, 0)"
    extent = f"vec3({size}.xy, 1)" if expr.value.arrayed else f"{kind}({size})"
    position = f"({_operand(coordinate, names, _SUM)} + {half}) / {extent}"
    return f"textureLod({texture}, {position}, {_full(level, names)})", _POSTFIX


def _image_load(expr: Expr, names: _Names) -> tuple[str, int]:
    assert isinstance(expr.value, ImageBinding)
    name, args = expr.value.name, _list(expr.args, names)
    if not expr.value.storage:
        return f"texelFetch({name}, {args})", _POSTFIX
    swizzle = {1: ".x", 2: ".xy"}.get(component_count(expr.dtype), "")
    return f"imageLoad({name}, {args}){swizzle}", _POSTFIX


def _image_size(expr: Expr, names: _Names) -> tuple[str, int]:
    assert isinstance(expr.value, ImageBinding)
    if expr.value.storage:
        return f"imageSize({expr.value.name})", _POSTFIX
    return f"textureSize({expr.value.name}, {_full(expr.args[0], names)})", _POSTFIX


def _raw(expr: Expr, names: _Names) -> tuple[str, int]:
    assert isinstance(expr.value, RawText)
    return names.raw(expr.value.text), _POSTFIX if expr.value.lexical_unit else 0


_WRITERS: dict[Op, Callable[[Expr, _Names], tuple[str, int]]] = {
    Op.LITERAL: _literal,
    Op.ARGUMENT: _argument,
    Op.BUILTIN: _builtin,
    Op.REGISTER: _register,
    Op.ELEMENT: _element,
    Op.INDEX: _index,
    Op.COMPONENT: _component,
    Op.SWIZZLE: _component,
    Op.UNARY: _unary,
    Op.BINARY: _binary,
    Op.COMPARE: _binary,
    Op.LOGICAL: _logical,
    Op.CALL: _call,
    Op.SUBGROUP: _call,
    Op.SELECT: _select,
    Op.LENGTH: _length,
    Op.ATOMIC: _call,
    Op.CONSTRUCT: _construct,
    Op.SAMPLE: _sample,
    Op.IMAGE_LOAD: _image_load,
    Op.IMAGE_SIZE: _image_size,
    Op.RAW: _raw,
}


# ---- statements ----------------------------------------------------------------------------------


class _BodyWriter:
    """Writes statements as lines, remembering the Python line of each."""

    def __init__(self, names: _Names, plan: NamingPlan, taken: set[str]) -> None:
        self._names = names
        self._plan = plan
        self._taken = taken
        self._counter = 0
        self._depth = 1
        self._local: list[int] = []
        self.lines: list[str] = []
        self.line_map: list[Loc | None] = []

    def line(self, text: str, loc: Loc | None = None) -> None:
        """Write one line, indented."""
        self.lines.append(_INDENT * self._depth + text if text else "")
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
        text = _WRITERS[expr.op](expr, self._names)[0]
        name = self._new_name(expr)
        self.line(f"{expr.dtype.glsl_type} {name} = {text};", expr.loc)
        self._names.of_number[number] = name

    def _new_name(self, expr: Expr) -> str:
        name = ""
        if expr.op is Op.COMPONENT and isinstance(expr.args[0].value, Builtin):
            prefix = _COMPONENT_NAMES.get(expr.args[0].value)
            name = f"{prefix}_{expr.value}" if prefix else ""
        if not name or name in self._taken:
            while (name := f"t{self._counter}") in self._taken:
                self._counter += 1
        self._taken.add(name)
        return name

    def _text(self, expr: Expr) -> str:
        return _full(expr, self._names)

    def _statement(self, statement: Statement) -> None:
        loc = statement.loc
        if isinstance(statement, Declare):
            register = statement.register
            self.line(f"{register.dtype.glsl_type} {register.name} = {self._text(statement.value)};", loc)
        elif isinstance(statement, Store):
            self.line(f"{self._assignment(statement)};", loc)
        elif isinstance(statement, ImageStore):
            target, texel = statement.image.name, self._texel(statement.value)
            self.line(f"imageStore({target}, {self._text(statement.coordinate)}, {texel});", loc)
        elif isinstance(statement, If):
            self._if(statement)
        elif isinstance(statement, While):
            self.line(f"while ({self._text(statement.condition)}) {{", loc)
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
            # GLSL has none: `instrument` turns prints into statements that have
            self._comment(f"print {statement.format!r}", loc)
        elif isinstance(statement, Return):
            self.line("return;", loc)
        elif isinstance(statement, Comment):
            if statement.preceding_new_line and self.lines and not self.lines[-1].endswith("{"):
                self.line("")
            self._comment(statement.text, loc)
        elif isinstance(statement, RawStatement):
            for text in self._names.raw(statement.text).splitlines():
                self.line(text, loc)

    def _assignment(self, statement: Store) -> str:
        place, value = statement.place, self._text(statement.value)
        if place.op is not Op.ELEMENT:
            return f"{_WRITERS[place.op](place, self._names)[0]} {statement.operator or ''}= {value}"
        target = _element_place(place, self._names)
        if isinstance(place.value, Storage) and place.value.dtype in _STORED:
            return f"{target} = {_STORED[place.value.dtype].store.format(value)}"
        return f"{target} {statement.operator or ''}= {value}"

    def _texel(self, value: Expr) -> str:
        """Write a value as the four components that an image store takes."""
        text, prefix = self._text(value), _GVEC[component_type(value.dtype)]
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
        self.line(f"for ({kind} {name} = {start}; {condition}; {change}) {{", statement.loc)
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
        lines = text.replace("*/", "* /").splitlines() or [""]
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


# ---- the whole shader ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GlslText:
    """A kernel as GLSL, but for its workgroup size.

    `header` is extensions and interface, `body` the main function; `body_map` has the Python line of each
    line of the body.
    """

    extensions: tuple[str, ...]
    interface: tuple[str, ...]
    body: tuple[str, ...]
    body_map: tuple[Loc | None, ...]

    @property
    def header(self) -> str:
        """Everything before the main function, without the workgroup size."""
        return "\n".join((*self.extensions, "", *self.interface))

    def source(self, local_size: tuple[int, int, int]) -> tuple[str, tuple[Loc | None, ...]]:
        """Return the complete text, and the Python line of each of its lines."""
        x, y, z = local_size
        size = f"layout(local_size_x = {x}, local_size_y = {y}, local_size_z = {z}) in;"
        before = (*self.extensions, "", size, "", *self.interface)
        return "\n".join((*before, *self.body)) + "\n", (*(None for _ in before), *self.body_map)


def write_kernel(kernel: Kernel, *, folded: bool = False) -> GlslText:
    """Write a kernel as GLSL. A folded kernel takes the true count of workgroups as an argument."""
    layout = argument_layout(kernel, folded=folded)
    block = "UBO" if layout.uniform else "PC"
    body = _write_body(kernel, block, folded=folded)
    return GlslText(
        (
            "#version 450",
            *(f"#extension {name} : require" for name in extensions(usage(kernel), kernel.flags)),
        ),
        tuple(_interface(kernel, layout)),
        ("void main() {", *body.lines, "}"),
        (None, *body.line_map, None),
    )


def _interface(kernel: Kernel, layout: ArgumentLayout) -> list[str]:
    lines: list[str] = []
    if layout.members:
        kind = "set = 0, binding = 0, scalar" if layout.uniform else "push_constant, scalar"
        lines.append(f"layout({kind}) uniform Arguments {{")
        lines += [f"{_INDENT}{member.dtype.glsl_type} {member.name};" for member in layout.members]
        lines += [f"}} {'UBO' if layout.uniform else 'PC'};", ""]
    access = resource_access(kernel)
    for resource in kernel.resources:
        binding = resource.index + (1 if layout.uniform else 0)
        label = (
            f"  // {resource.label}"
            if resource.label.isprintable() and not resource.label.endswith("\\")
            else ""
        )
        if isinstance(resource, ImageBinding):
            lines.append(_image_declaration(resource, binding, access) + label)
            continue
        qualifier = _qualifier(resource.index, access)
        kind = _STORED[resource.dtype].glsl if resource.dtype in _STORED else resource.dtype.glsl_type
        block = f"buffer Buffer{resource.index} {{ {kind} data[]; }} {resource.name};"
        lines.append(f"layout(set = 0, binding = {binding}, scalar) {qualifier}{block}{label}")
    if kernel.resources:
        lines.append("")
    if any(isinstance(resource, Storage) and resource.dtype is bfloat16 for resource in kernel.resources):
        lines += [*_BFLOAT16_BITS.strip().splitlines(), ""]
    for array in kernel.shared:
        lines.append(f"shared {array.dtype.glsl_type} {array.name}[{array.size}];")
    if kernel.shared:
        lines.append("")
    return lines


def _qualifier(index: int, access: Access) -> str:
    reads, writes = index in access.reads, index in access.writes
    return "readonly " if not writes else "writeonly " if not reads else ""


def _image_declaration(image: ImageBinding, binding: int, access: Access) -> str:
    scalar = component_type(image.dtype)
    shape = f"{image.dimensions}D{'Array' if image.arrayed else ''} {image.name};"
    if not image.storage:
        return f"layout(set = 0, binding = {binding}) uniform {_GVEC[scalar]}sampler{shape}"
    channels = {1: "r", 2: "rg", 4: "rgba"}[component_count(image.dtype)]
    texel = f"{channels}32{_FORMAT_LETTERS[scalar]}"
    qualifier = _qualifier(image.index, access)
    return f"layout(set = 0, binding = {binding}, {texel}) {qualifier}uniform {_GVEC[scalar]}image{shape}"


def _write_body(kernel: Kernel, block: str, *, folded: bool) -> _BodyWriter:
    plan = plan_names(kernel)
    builtins = dict(_BUILTINS)
    if folded:
        builtins[Builtin.GLOBAL_INVOCATION_ID] = _FOLDED_GLOBAL_ID
        builtins[Builtin.WORKGROUP_ID] = _FOLDED_WORKGROUP_ID
        builtins[Builtin.NUM_WORKGROUPS] = GROUP_COUNT
    taken = {statement.register.name for statement in walk(kernel.body) if isinstance(statement, Declare)}
    taken.update(statement.counter.name for statement in walk(kernel.body) if isinstance(statement, For))
    taken.update(array.name for array in kernel.shared)
    writer = _BodyWriter(_Names(builtins, block, plan), plan, taken)
    if folded:
        _fold_prologue(writer, block)
    if kernel.exec_count is not None:
        global_id = builtins[Builtin.GLOBAL_INVOCATION_ID]
        writer.line(f"if (any(greaterThanEqual({global_id}, {block}.{kernel.exec_count.name}))) return;")
    if writer.lines and kernel.body:
        writer.line("")
    writer.block(kernel.body)
    return writer


def _fold_prologue(writer: _BodyWriter, block: str) -> None:
    """Find the workgroup's id in the true grid from its position in the launched one.

    Surplus workgroups end.
    """
    lines = (
        f"uvec3 {GROUP_COUNT} = {block}.{GROUP_COUNT};",
        "uint workgroup_index = gl_WorkGroupID.z * gl_NumWorkGroups.y + gl_WorkGroupID.y;",
        "workgroup_index = workgroup_index * gl_NumWorkGroups.x + gl_WorkGroupID.x;",
        f"if (workgroup_index >= {GROUP_COUNT}.x * {GROUP_COUNT}.y * {GROUP_COUNT}.z) return;",
        f"uint workgroup_row = workgroup_index / {GROUP_COUNT}.x;",
        f"uvec3 {_FOLDED_WORKGROUP_ID} = uvec3(workgroup_index, workgroup_row, workgroup_row);",
        f"{_FOLDED_WORKGROUP_ID}.xy %= {GROUP_COUNT}.xy;",
        f"{_FOLDED_WORKGROUP_ID}.z /= {GROUP_COUNT}.y;",
        f"uvec3 {_FOLDED_GLOBAL_ID} = {_FOLDED_WORKGROUP_ID} * gl_WorkGroupSize + gl_LocalInvocationID;",
    )
    for line in lines:
        writer.line(line)


def statements_text(block: Block) -> str:
    """Write statements on their own, as they stand in the main function."""
    kernel = Kernel("", (), (), (), block, None)
    return "".join(line + "\n" for line in _write_body(kernel, "PC", folded=False).lines)
