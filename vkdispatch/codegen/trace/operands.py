"""Arguments of the language's functions as expressions, and GPU values in f-strings."""

import re
from typing import Any

from vkdispatch.base import dtype as dt
from vkdispatch.base.derived_dtypes import is_structure
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UsageError, VkDispatchError
from vkdispatch.base.host_numpy import np
from vkdispatch.base.record import record
from vkdispatch.compiler.ir import Expr
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import Loc, here, located, warn_once_each

# ---- Arguments of the language's functions as expressions: GPU values, numbers, indices, dtypes ----------


class GpuValue:
    """A GPU value: an expression, and what it is to the functions that take it."""

    __slots__ = ("expr",)

    expr: Expr

    def _value(self) -> Expr:
        """Return the expression to compute with.

        Raises TypeError where there is no value, as for a whole buffer.
        """
        return self.expr

    def _as_stored(self, kind: dt.DType) -> Expr:
        """Return the expression that a store in a place of type `kind` writes."""
        return ex.storable(self._value(), kind)

    def _extremes(self) -> tuple[int, ...]:
        """Return the least and greatest of the Python integers that this stands for; () for a GPU value."""
        return ()

    def _pending_update(self) -> tuple[Expr, str] | None:
        """Return the place and the operator of `place op= x`, if this is its result, not yet stored."""
        return None


def check_dtype(kind: object, what: str) -> None:
    """Raise TypeError unless `kind` is the dtype of a value."""
    if not isinstance(kind, type) or not dt.is_dtype(kind):
        raise located(ArgumentTypeError, f"{what}: expected a dtype such as vd.float32, got {kind!r}")
    if dt.is_array(kind):
        raise located(
            ArgumentTypeError,
            f"{what}: {kind.__name__} is an array; vc.local_array(vd.{dt.item_of(kind).__name__}, "
            f"{dt.array_shape(kind)}) makes one",
        )
    if is_structure(kind):
        raise located(
            ArgumentTypeError, f"{what}: {kind.name} is no number; its fields are, which a map can give"
        )
    if dt.is_buffer_only(kind):
        raise located(
            ArgumentValueError,
            f"{what}: {kind.__name__} is only for buffers; kernels compute with {dt.compute_type(kind).name}",
        )


def is_integer_scalar(kind: dt.DType) -> bool:
    """Whether values of a dtype are single integers."""
    return dt.is_scalar(kind) and dt.is_integer_dtype(kind)


def mismatch(
    message: str, value: object, error: type[VkDispatchError] = ArgumentTypeError
) -> VkDispatchError:
    """Return an error that ends in what was given: the dtype of a GPU value, or a value and its type."""
    if isinstance(value, GpuValue):
        value = value._value()
    given = value.dtype.name if isinstance(value, Expr) else f"{value!r} ({type(value).__name__})"
    return located(error, f"{message}, got {given}")


def parse_operand(value: object, what: str, error: type[VkDispatchError] = ArgumentValueError) -> Expr:
    """Return the expression of a GPU value or number. Raises `error` for anything else."""
    if isinstance(value, GpuValue):
        return value._value()
    if ex.is_number(value):
        return ex.literal(value, ex.literal_dtype(value))
    raise mismatch(f"{what}: expected a GPU value or a number", value, error)


def parse_components(values: tuple[object, ...], what: str) -> list[Expr | int | float | complex]:
    """Check the arguments of a constructor. Raises TypeError for what is neither a GPU value nor a number."""
    parts: list[Expr | int | float | complex] = []
    for value in values:
        if isinstance(value, GpuValue):
            parts.append(value._value())
        elif ex.is_number(value) or isinstance(value, complex):
            parts.append(value)
        else:
            raise mismatch(f"{what}: expected GPU values or numbers", value)
    return parts


def parse_stored_value(value: object, kind: dt.DType) -> Expr:
    """Return what a store of `value` in a place of type `kind` writes.

    Raises TypeError or ValueError if it cannot.
    """
    if isinstance(value, GpuValue):
        return value._as_stored(kind)
    if kind is dt.bool_ and isinstance(value, (bool, np.bool_)):
        return ex.literal(bool(value), kind)
    if ex.is_number(value) or isinstance(value, complex):
        return ex.storable(value, kind)
    given, hint = f"{value!r} ({type(value).__name__})", _hint(value, kind)
    raise located(ArgumentTypeError, f"cannot store {given}; expected a GPU value or a number{hint}")


def _hint(value: object, kind: dt.DType) -> str:
    if not isinstance(value, (tuple, list)) or dt.is_scalar(kind):
        return ""
    maker = f"vc.to_{kind.name}(...)" if dt.is_vector(kind) else f"vc.to_dtype(vd.{kind.__name__}, ...)"
    return f"; {maker} makes a {kind.name} of components"


def parse_index(index: Any, what: str, error: type[VkDispatchError]) -> int | Expr:
    """Return an index as an int or an integer scalar. Raises `error` for anything else."""
    if isinstance(index, tuple):
        if len(index) != 1:
            raise located(ArgumentValueError, f"{what} takes one index, got {len(index)}")
        (index,) = index
    if isinstance(index, GpuValue):
        expr = index._value()
        if is_integer_scalar(expr.dtype):
            return expr
        raise mismatch(f"the index of {what} must be an integer scalar", expr, error)
    if ex.is_integer_number(index):
        return int(index)
    raise mismatch(f"the index of {what} must be an integer", index, error)


# ---- GPU values in f-strings: each stands in the text as a placeholder until a print takes it ------------


TEXT_IS_MADE_ONCE = "print and str run once, while the kernel is traced; vc.print shows values on the device"
# Text can hold no value, so it holds the number of the placeholder and a description between marks, which are
# characters of Unicode's private use area.
_PLACEHOLDER = "\ue000([0-9]+)\ue001[^\ue002]*\ue002"
_MARKS = "\ue000\ue001\ue002"


@record(eq=False, frozen=False)
class Placeholder:
    """A value in an f-string, its format specification, and whether it was printed."""

    value: Expr
    spec: str
    loc: Loc | None
    printed: bool = False


def add_placeholder(placeholders: list[Placeholder], value: Expr, spec: str, text: str) -> str:
    """Add a value; returns what stands for it in the f-string. `text` describes it."""
    placeholders.append(Placeholder(value, spec, here()))
    return f"\ue000{len(placeholders) - 1}\ue001{text}\ue002"


def split_text(placeholders: list[Placeholder], text: str) -> list[str | Placeholder]:
    """Split a text into plain text and placeholders. Raises RuntimeError for one of another kernel."""
    pieces: list[str | Placeholder] = []
    for position, piece in enumerate(re.split(_PLACEHOLDER, text)):
        if position % 2 == 0:
            refuse_placeholders(piece, "print")
            pieces += [piece] if piece else []
        elif int(piece) < len(placeholders):
            pieces.append(placeholders[int(piece)])
        else:
            raise located(UsageError, "print: the f-string contains a value of another kernel")
    return pieces


def take_placeholders(placeholders: list[Placeholder], text: str) -> list[str | Placeholder]:
    """Split a text that is printed, and mark its values as printed."""
    pieces = split_text(placeholders, text)
    for piece in pieces:
        if isinstance(piece, Placeholder):
            piece.printed = True
    return pieces


def check_printed(placeholders: list[Placeholder]) -> None:
    """Warn of a value that was never printed. Raise RuntimeError if it had a format specification."""
    warn_once_each(TEXT_IS_MADE_ONCE, [item.loc for item in placeholders if not (item.spec or item.printed)])
    for placeholder in placeholders:
        if placeholder.spec and not placeholder.printed:
            raise located(
                UsageError,
                "the value of this f-string is not known while the kernel is traced; only vc.print and "
                "vc.printf accept it",
                placeholder.loc,
            )


def refuse_placeholders(text: str, what: str, loc: Loc | None = None) -> None:
    """Raise TypeError for a text that an f-string made of a GPU value."""
    if any(letter in text for letter in _MARKS):
        raise located(
            ArgumentTypeError,
            f"{what}: the f-string contains a GPU value; only vc.print and vc.printf accept that",
            loc,
        )
