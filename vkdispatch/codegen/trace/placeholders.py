"""GPU values in f-strings: each stands in the text as a placeholder until a print takes it."""

import re

from vkdispatch.base.errors import ArgumentTypeError, UsageError
from vkdispatch.base.record import record
from vkdispatch.compiler.ir import Expr
from vkdispatch.compiler.ir.location import Loc, here, located, warn_once_each

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
    found: list[str | Placeholder] = []
    for position, piece in enumerate(re.split(_PLACEHOLDER, text)):
        if position % 2 == 0:
            refuse_placeholders(piece, "print")
            found += [piece] if piece else []
        elif int(piece) < len(placeholders):
            found.append(placeholders[int(piece)])
        else:
            raise located(UsageError, "print: the f-string contains a value of another kernel")
    return found


def take_placeholders(placeholders: list[Placeholder], text: str) -> list[str | Placeholder]:
    """Split a text that is printed, and mark its values as printed."""
    pieces = split_text(placeholders, text)
    for piece in pieces:
        if isinstance(piece, Placeholder):
            piece.printed = True
    return pieces


def check_printed(placeholders: list[Placeholder]) -> None:
    """Warn of a value that was never printed. Raise RuntimeError if it had a format specification."""
    warn_once_each(TEXT_IS_MADE_ONCE, [each.loc for each in placeholders if not (each.spec or each.printed)])
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
