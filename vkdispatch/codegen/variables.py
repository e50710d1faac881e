"""GPU values as a kernel's Python body sees them.

A `ShaderVariable` stands for an expression, whose value is that of the moment when Python made it. Only
registers are storage: `r += x` changes a register, and a name that holds anything else gets a new value.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from vkdispatch.base import dtype as dt
from vkdispatch.base.dtype import is_complex
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, ComponentError
from vkdispatch.base.record import replace
from vkdispatch.codegen.trace import operands, operators
from vkdispatch.codegen.trace.current import chosen_arithmetic, current, is_tracing
from vkdispatch.codegen.trace.range_checks import check_conversion
from vkdispatch.compiler.glsl.expressions import expression_text
from vkdispatch.compiler.ir import Argument, Expr, Op, RawText, Register, Storage, is_part, is_place
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import here, located, warn, within_library
from vkdispatch.compiler.ir.program import COMPONENTS, is_swizzle, unknown_attribute
from vkdispatch.compiler.passes.diagnostics import BRACES, FormatError, check_format

__all__ = ["BoundVariable", "ShaderVariable"]

if TYPE_CHECKING:
    from vkdispatch.codegen.any_dtype import OfAnyDtype
else:
    OfAnyDtype = object

_POSTFIX = (Op.ELEMENT, Op.INDEX, Op.COMPONENT, Op.SWIZZLE, Op.CALL, Op.CONSTRUCT, Op.ARGUMENT, Op.BUILTIN)
_UNITS = frozenset((*_POSTFIX, Op.REGISTER, Op.LITERAL, Op.SUBGROUP, Op.SAMPLE))


_assign = object.__setattr__


class ShaderVariable(operators.Operators, OfAnyDtype):  # type: ignore[misc]
    """A GPU value. Made by the functions of `vkdispatch.codegen` and by operators, not by its constructor."""

    __slots__ = ("is_conjugate",)

    is_conjugate: bool

    def __init__(self, expr: Expr) -> None:
        # past __setattr__, which is for the user's assignments
        _assign(self, "expr", expr)
        _assign(self, "is_conjugate", False)

    def _wrap(self, expr: Expr) -> "ShaderVariable":
        return ShaderVariable(expr)

    def _value(self) -> Expr:
        expr = self.expr
        if expr.op is Op.REGISTER:
            return current().read_register(expr)
        return current().read(replace(expr, read=False)) if expr.read else expr

    def _place(self) -> Expr:
        """Return the expression to assign to.

        Raises ValueError for what a register held, TypeError where there is none, as for a whole buffer.
        """
        if self.expr.read and self.expr.op is Op.REGISTER:
            raise located(
                ArgumentValueError,
                "this is the value of a register or field, so assigning to a part would be lost; assign "
                "to the place itself, or to a copy made by .to_register()",
            )
        return self.expr

    def _as_index(self) -> Expr:
        """Return the expression to index a buffer with."""
        return self._value()

    # -- what it is

    @property
    def var_type(self) -> dt.DType:
        """Data type of the value."""
        return self.expr.dtype

    @property
    def name(self) -> str:
        """The expression as GLSL."""
        return expression_text(self.expr)

    @property
    def raw_name(self) -> str:
        """The expression as GLSL."""
        return self.name

    @property
    def lexical_unit(self) -> bool:
        """Whether the expression needs no parentheses inside another one."""
        if isinstance(self.expr.value, RawText):
            return self.expr.value.lexical_unit
        return self.expr.op in _UNITS

    @property
    def settable(self) -> bool:
        """Whether the value can be assigned to."""
        return is_place(self.expr)

    @property
    def register(self) -> bool:
        """Whether the value is a register."""
        if isinstance(self.expr.value, RawText):
            return self.expr.value.register
        return self.expr.op is Op.REGISTER and not self.expr.read

    @property
    def parents(self) -> list["ShaderVariable"]:
        """The operands of the expression."""
        return [ShaderVariable(arg) for arg in self.expr.args]

    @property
    def can_index(self) -> bool:
        """Whether the value has components."""
        return not dt.is_scalar(self.var_type)

    @property
    def use_child_type(self) -> bool:
        """Whether indexing gives the component type."""
        return True

    @property
    def is_complex(self) -> bool:
        """Whether the value is a complex number."""
        return is_complex(self.var_type)

    def resolve(self) -> str:
        """Return the expression as GLSL, in parentheses where another expression needs them around it."""
        return self.name if self.lexical_unit else f"({self.name})"

    def is_setable(self) -> bool:
        """Whether the value can be assigned to."""
        return self.settable

    def is_register(self) -> bool:
        """Whether the value is a register."""
        return self.register

    def read_callback(self) -> None:
        """Tell that raw GLSL reads the buffer that this value lies in."""
        _mark(self.expr, reads=True)

    def write_callback(self) -> None:
        """Tell that raw GLSL writes the buffer that this value lies in."""
        _mark(self.expr, reads=False)

    def printf_args(self) -> str:
        """Return the components as the arguments of a printf with `var_type.format_str`."""
        return ", ".join(expression_text(part) for part in operators.split_components(self.expr))

    def __repr__(self) -> str:
        return f"<{self.var_type.name} {self.name}>"

    def __str__(self) -> str:
        """Return the text of `repr`, and warn: Python's print in a kernel asks for it during the trace."""
        if is_tracing() and not within_library():
            warn(operands.TEXT_IS_MADE_ONCE)
        return repr(self)

    def __format__(self, spec: str) -> str:
        """Let `vc.print(f"{x:.3f}")` print the value: it goes into the text as a placeholder."""
        if not is_tracing():
            return format(repr(self), spec)
        value = self._value()
        try:
            check_format(f"{{:{spec}}}", BRACES, (value.dtype,))
        except FormatError as error:
            raise located(ArgumentValueError, f"f-string: {error}") from None
        return operands.add_placeholder(current().placeholders, value, spec, repr(self))

    def __setattr__(self, attribute: str, value: object) -> None:
        if hasattr(type(self), attribute):
            object.__setattr__(self, attribute, value)
        elif is_swizzle(attribute) and dt.is_vector(self.var_type):
            self._set_swizzle(attribute, value)
        else:
            raise located(ComponentError, f"{attribute!r}: a GPU value has no such attribute")

    def __getattr__(self, attribute: str) -> "ShaderVariable":
        """Read a swizzle such as `v.zyx`; called for what is no attribute otherwise."""
        if attribute.startswith("_"):
            # Python and NumPy look for protocols this way
            raise AttributeError(attribute)
        known = getattr(type(self), attribute, None)
        if isinstance(known, property) and known.fget is not None:
            # its own error was an AttributeError, which led here
            known.fget(self)
        kind = self.var_type
        if is_swizzle(attribute) and dt.is_vector(kind):
            if all(letter in COMPONENTS[: kind.child_count] for letter in attribute):
                return self.swizzle(attribute)
            raise located(
                ComponentError,
                f"{kind.name} has no .{attribute}; its components are {COMPONENTS[: kind.child_count]}",
            )
        raise located(ComponentError, unknown_attribute(attribute, self._describe(), self._offered()))

    def _describe(self) -> str:
        return f"a GPU value of type {self.var_type.name}"

    def _offered(self) -> list[str]:
        """Names that a user may read, the components first."""
        kind = self.var_type
        lacking = {"x", "y", "z", "w", *(() if is_complex(kind) else ("real", "imag", "conjugate"))}
        components = list(COMPONENTS[: kind.child_count]) if dt.is_vector(kind) else []
        names = [name for name in dir(type(self)) if not name.startswith("_") and name not in lacking]
        return components + names

    # -- components

    def _component(self, letter: str) -> "ShaderVariable":
        return ShaderVariable(operators.select_component(self._value(), letter))

    def _set_component(self, letter: str, value: object) -> None:
        if self._warn_of_scalar(letter):
            return
        self._check_owner()
        try:
            target = operators.select_component(self._place(), letter)
        except ComponentError as error:
            raise ArgumentValueError(str(error)) from None
        operators.assign(target, value)

    def _warn_of_scalar(self, name: str) -> bool:
        """Warn that a scalar has no components; programs for 0.1.0 assign to them, without effect."""
        if dt.is_scalar(self.var_type):
            warn(f"{self.var_type.name} has no component .{name}, so this stores nothing; write x[:] = value")
        return dt.is_scalar(self.var_type)

    def _set_swizzle(self, letters: str, value: object) -> None:
        if len(set(letters)) < len(letters):
            raise located(ArgumentValueError, f".{letters}: a component cannot be set twice at once")
        target = dt.to_vector(dt.component_type(self.var_type), len(letters))
        stored = operands.parse_stored_value(value, target)
        if isinstance(value, ShaderVariable):
            # the new value may be made of the components that it replaces
            stored = current().declare(target, stored)
        for position, letter in enumerate(letters):
            self._set_component(letter, ShaderVariable(ex.component(stored, position)))

    def _check_owner(self) -> None:
        """Refuse `v.x = 1` of a name for an element, in a function that could not be rewritten."""
        if self.expr.op is not Op.ELEMENT or not is_tracing() or current().aliasing:
            return
        place = here()
        note = current().truth_notes.get(place.code) if place is not None else None
        if place is not None and note is not None and place.follows_name():
            raise located(
                ArgumentValueError,
                "a component is assigned to through a name that holds an element, which must not change the "
                f"element; {note}: assign to the element itself, as in buffer[i].x, or make the name a "
                "register by .to_register()",
            )

    @property
    def x(self) -> "ShaderVariable":
        """First component of a vector."""
        return self._component("x")

    @x.setter
    def x(self, value: object) -> None:
        self._set_component("x", value)

    @property
    def y(self) -> "ShaderVariable":
        """Second component of a vector."""
        return self._component("y")

    @y.setter
    def y(self, value: object) -> None:
        self._set_component("y", value)

    @property
    def z(self) -> "ShaderVariable":
        """Third component of a vector."""
        return self._component("z")

    @z.setter
    def z(self, value: object) -> None:
        self._set_component("z", value)

    @property
    def w(self) -> "ShaderVariable":
        """Fourth component of a vector."""
        return self._component("w")

    @w.setter
    def w(self, value: object) -> None:
        self._set_component("w", value)

    def _part(self, index: int, name: str) -> "ShaderVariable":
        return ShaderVariable(operators.select_part(self._value(), index, name))

    def _set_part(self, index: int, name: str, value: object) -> None:
        if not self._warn_of_scalar(name):
            self._check_owner()
            operators.assign(operators.select_part(self._place(), index, name), value)

    @property
    def real(self) -> "ShaderVariable":
        """Real part of a complex value."""
        return self._part(0, "real")

    @real.setter
    def real(self, value: object) -> None:
        self._set_part(0, "real", value)

    @property
    def imag(self) -> "ShaderVariable":
        """Imaginary part of a complex value."""
        return self._part(1, "imag")

    @imag.setter
    def imag(self, value: object) -> None:
        self._set_part(1, "imag", value)

    def conjugate(self) -> "ShaderVariable":
        """Complex conjugate. Raises ValueError for a value that is not complex."""
        if not self.is_complex:
            raise located(ArgumentValueError, f"conjugate: {self.var_type.name} is not complex")
        result = ShaderVariable(ex.conjugate(self._value()))
        result.is_conjugate = not self.is_conjugate
        return result

    def swizzle(self, components: str) -> "ShaderVariable":
        """Rearrange components: `v.swizzle("zyx")`. Raises ValueError for letters that the value lacks."""
        if not isinstance(components, str):
            raise located(ArgumentValueError, f"swizzle: expected a str such as 'zyx', got {components!r}")
        return ShaderVariable(ex.swizzle(self._value(), components))

    # -- indexing and assignment

    def __getitem__(self, index: Any) -> "ShaderVariable":
        if operators.is_whole_slice(index):
            return self
        return ShaderVariable(operators.select_element(self._value(), index))

    def __setitem__(self, index: Any, value: object) -> None:
        place = self._place()
        if not operators.is_whole_slice(index):
            operators.assign(operators.select_element(place, index), value)
        else:
            self._store_whole(place, value)

    def _store_whole(self, place: Expr, value: object) -> None:
        """Store to the place that the value was read from, which this variable stands for from now on."""
        recorder = current()
        origin = recorder.origin_of(place)
        if value is self:
            # r[:] += x ends with r[:] = r
            if origin is None:
                return
        elif place.op is Op.SWIZZLE:
            ShaderVariable(replace(place.args[0], read=False))._set_swizzle(str(place.value), value)
        else:
            operators.assign(place, value)
        if origin is not None:
            ShaderVariable(origin)[:] = ShaderVariable(place)
            copied = recorder.copied_variables.get(id(place.value))
            if copied is not None and is_part(copied.expr):
                recorder.localize(copied, _read_anew(copied.expr))
        elif is_part(place) and not recorder.aliasing:
            recorder.localize(self, _read_anew(place))

    def _assign(self, value: object) -> None:
        operators.assign(self._place(), value)

    def _update(self, symbol: str, result: Any) -> Any:
        place = self.expr
        aliasing = is_tracing() and current().aliasing
        if chosen_arithmetic() or (isinstance(place.value, Register) and (place.value.local or place.read)):
            return result
        if (place.op in (Op.REGISTER, Op.RAW) or aliasing) and is_place(place):
            operators.update_in_place(place, symbol, result.expr)
            return self
        if is_place(place):
            return Updated(place, symbol, result.expr)
        return result

    def __iter__(self) -> Iterator["ShaderVariable"]:
        count, loc = len(self), here()
        names = count if loc is None else loc.unpacked_count()
        if names not in (None, count):
            advice = (
                "; a shape in a kernel is three axes and the size: write rows, columns = x.shape.x, x.shape.y"
                if isinstance(self.expr.value, Argument) and self.expr.value.shape
                else ""
            )
            raise located(
                ArgumentValueError,
                f"unpacking: {self.var_type.name} has {count} components, got {names} names{advice}",
                loc,
            )
        return iter([self[i] for i in range(count)])

    def __len__(self) -> int:
        if dt.is_scalar(self.var_type):
            raise located(ArgumentTypeError, f"{self.var_type.name} is a scalar and has no length")
        return self.var_type.child_count

    # -- conversion

    def to_register(self, var_name: str | None = None) -> "ShaderVariable":
        """Copy the value into a new register, called `var_name` in the generated code."""
        value = self._value()
        return ShaderVariable(current().declare(value.dtype, value, var_name))

    def to_dtype(self, var_type: dt.DType) -> "ShaderVariable":
        """Convert the value. Raises ValueError where there is no such conversion."""
        operands.check_dtype(var_type, "to_dtype")
        value = self._value()
        check_conversion("to_dtype", value, var_type)
        return ShaderVariable(ex.construct(var_type, (value,)))


class Updated(ShaderVariable):
    """The result of `before op= x`, where `before` was read from a place: it may be stored there."""

    __slots__ = ("before", "symbol")

    before: Expr
    symbol: str

    def __init__(self, before: Expr, symbol: str, expr: Expr) -> None:
        super().__init__(expr)
        _assign(self, "before", before)
        _assign(self, "symbol", symbol)
        if expr is not before:
            current().note_update(expr)

    def _pending_update(self) -> tuple[Expr, str]:
        return self.before, self.symbol


# What a whole resource inherits and cannot do.
_OF_VALUES = frozenset(
    ["x", "y", "z", "w", "real", "imag", "conjugate", "swizzle", "to_register", "to_dtype", "is_conjugate"]
)


class BoundVariable(ShaderVariable):
    """A resource that is bound to the kernel; `binding` is its position among the resources, -1 if shared."""

    __slots__ = ("binding",)

    binding: int

    def __init__(self, kind: dt.DType, text: str, binding: int) -> None:
        super().__init__(Expr(Op.RAW, kind, (), RawText(text, lexical_unit=True), here()))
        self.binding = binding

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def _value(self) -> Expr:
        raise located(ArgumentTypeError, f"a whole {self._noun()} is not a value; use one element of it")

    _place = _value

    def _noun(self) -> str:
        return "resource"

    def _describe(self) -> str:
        return f"a {self._noun()} inside a kernel"

    def _offered(self) -> list[str]:
        return [name for name in dir(type(self)) if not name.startswith("_") and name not in _OF_VALUES]

    def __iter__(self) -> Iterator[ShaderVariable]:
        raise located(ArgumentTypeError, f"a {self._noun()} cannot be iterated over inside a kernel")

    def __len__(self) -> int:
        raise located(
            ArgumentTypeError,
            f"len() of a {self._noun()} is not known while the kernel is traced; use .size or .shape",
        )


def _read_anew(place: Expr) -> Expr:
    """Copy a place, so that each use of it reads it again."""
    if place.op is Op.REGISTER:
        return replace(place, read=False)
    if place.op is not Op.ELEMENT:
        place = replace(place, args=(_read_anew(place.args[0]), *place.args[1:]))
    return replace(place, read=True)


def _mark(expr: Expr, *, reads: bool) -> None:
    recorder = current()
    stack = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node.value, Storage):
            (recorder.marked_reads if reads else recorder.marked_writes).add(node.value.index)
        stack.extend(node.args)
