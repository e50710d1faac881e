"""The grammar of section headers: `[model, model: option=value, ...]`, over as many lines as it takes."""

import ast
import tokenize
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from vkdispatch.base.record import record

GRAMMAR = "[model, model: option=value, ...]"

_OPENING, _CLOSING = "([{", ")]}"
_IGNORED_TOKENS = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


@record
class Header:
    """The header of a section.

    Attributes
    ----------
    models
        The names before the colon.
    options
        The option expressions, by name.
    lines
        The number of lines of the header.
    arguments
        The names before the options, which only kernels have: `[cpp: a, b, enable=True]`.
    """

    models: tuple[str, ...]
    options: dict[str, ast.expr]
    lines: int
    arguments: tuple[str, ...] = ()


def parse_header(lines: Sequence[str], fail: Callable[[int, str], Exception]) -> Header:
    """Parse the header at the beginning of some lines.

    Parameters
    ----------
    lines
        The text, from the header's `[` on.
    fail
        Makes the error for a line, counted from 0, and a message.

    Raises
    ------
    ValueError
        The text is not a valid header. `fail` makes the error.
    """
    tokens = _read_tokens(lines, fail)
    colon = next((i for i, (token, depth) in enumerate(tokens) if token.string == ":" and depth == 1), None)
    last = tokens[-1][0].end
    names = [token for token, _ in tokens[1 : len(tokens) - 1 if colon is None else colon]]
    models = _parse_models(names, fail)
    options: dict[str, ast.expr] = {}
    arguments: tuple[str, ...] = ()
    if colon is not None:
        arguments, options = _parse_options(lines, tokens[colon][0].end, tokens[-1][0].start, fail)
    rest = lines[last[0] - 1][last[1] :].split("#", 1)[0].strip()
    if rest:
        raise fail(last[0] - 1, f"{rest!r} after the header's ]; the body begins on the next line")
    return Header(models, options, last[0], arguments)


def _read_tokens(
    lines: Sequence[str], fail: Callable[[int, str], Exception]
) -> list[tuple[tokenize.TokenInfo, int]]:
    """Return the tokens up to the bracket that closes the header, each with its depth in brackets."""
    tokens: list[tuple[tokenize.TokenInfo, int]] = []
    open_brackets = ""
    reading: Iterator[tokenize.TokenInfo] = tokenize.generate_tokens(_make_reader(lines))
    try:
        for token in reading:
            if token.type in _IGNORED_TOKENS:
                continue
            if token.type == tokenize.ERRORTOKEN and not token.string.strip():
                continue
            if token.type == tokenize.OP and token.string in _OPENING:
                open_brackets += token.string
            tokens.append((token, len(open_brackets)))
            if token.type == tokenize.OP and token.string in _CLOSING:
                expected = _CLOSING[_OPENING.index(open_brackets[-1])]
                if token.string != expected:
                    raise fail(token.start[0] - 1, f"expected {expected}, got {token.string}")
                open_brackets = open_brackets[:-1]
                if not open_brackets:
                    return tokens
    except (tokenize.TokenError, SyntaxError) as error:
        raise fail(0, f"this header does not end ({error.args[0]}); expected {GRAMMAR}") from None
    raise fail(0, f"this header has no ]; expected {GRAMMAR}")


def _make_reader(lines: Sequence[str]) -> Callable[[], str]:
    source = iter(lines)
    return lambda: next(source, "")


def _parse_models(
    names: Sequence[tokenize.TokenInfo], fail: Callable[[int, str], Exception]
) -> tuple[str, ...]:
    models: list[str] = []
    line = 0
    for position, token in enumerate(names):
        line = token.start[0] - 1
        expected = tokenize.NAME if position % 2 == 0 else tokenize.OP
        if token.type != expected or (expected == tokenize.OP and token.string != ","):
            what = "the name of a model" if expected == tokenize.NAME else "a comma, a colon or ]"
            raise fail(line, f"expected {what}, got {token.string!r}; a header is {GRAMMAR}")
        if expected == tokenize.NAME:
            if token.string in models:
                raise fail(line, f"the model {token.string} is named twice")
            models.append(token.string)
    if not models:
        raise fail(line, f"this header names no model; expected {GRAMMAR}")
    return tuple(models)


def _parse_options(
    lines: Sequence[str],
    start: tuple[int, int],
    end: tuple[int, int],
    fail: Callable[[int, str], Exception],
) -> tuple[tuple[str, ...], dict[str, ast.expr]]:
    first, last = start[0] - 1, end[0] - 1
    rows = [line.rstrip("\r\n") for line in lines[first : last + 1]]
    rows[-1] = rows[-1][: end[1]]
    rows[0] = rows[0][start[1] :]
    # Parsed as the keywords of a call. The line feed ends a comment.
    try:
        call: Any = ast.parse("f(" + "\n".join(rows) + "\n)", mode="eval").body
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", 1) or 1
        raise fail(
            min(first + line - 1, last),
            f"the options are not valid Python ({error.args[0]}); expected option=value",
        ) from None
    if not isinstance(call, ast.Call) or not all(isinstance(name, ast.Name) for name in call.args):
        raise fail(first, "an option without a name; expected option=value")
    options: dict[str, ast.expr] = {}
    for keyword in call.keywords:
        if keyword.arg is None:
            raise fail(first, "** among the options; expected option=value")
        if keyword.arg in options:
            raise fail(first, f"the option {keyword.arg} occurs twice")
        options[keyword.arg] = keyword.value
    return tuple(name.id for name in call.args if isinstance(name, ast.Name)), options
