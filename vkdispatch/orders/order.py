"""Orders: the parsed text of one task in several programming models."""

import ast
import builtins
import difflib
import functools
import os
import shlex
import textwrap
import tokenize
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.record import record

# ---- The grammar of section headers ----------------------------------------------------------------------
#
# `[model, model: option=value, ...]`, over as many lines as it takes.


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
    lines: Sequence[str], start: tuple[int, int], end: tuple[int, int], fail: Callable[[int, str], Exception]
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


MODELS = (
    "cuda",
    "hip",
    "vkdispatch",
    "glsl",
    "openacc_cpp",
    "openacc_fortran",
    "omptarget_cpp",
    "omptarget_fortran",
    "openmp_cpp",
    "openmp_fortran",
    "cpp",
    "fortran",
)
"""The names of all models, in the order in which sections are tried by default."""

TEXT = "<order>"
"""The name of an order without a file in compiler messages."""

_BUILTINS = (
    "abs all any bin bool complex dict divmod enumerate filter float frozenset hash hex int isinstance "
    "len list map max min oct ord pow print range reversed round set slice sorted str sum tuple zip "
    "ArithmeticError AssertionError Exception IndexError KeyError TypeError ValueError ZeroDivisionError "
)
_BUILTIN_NAMES = _BUILTINS.split()
_OPTIONS = ("enable", "compile")


@record
class Section:
    """A section of an order: a body, and the models that it is written in.

    Attributes
    ----------
    models
        Their names.
    options
        The evaluated options of its header, except `enable` and `compile`.
    compile
        The compiler commands of its header. None: search for compilers.
    enabled
        False if the header has `enable=False`.
    line
        The line of the header, from 1.
    body
        The text below the header.
    body_line
        The first line of the body.
    arguments
        The names of the arguments that the header of a kernel has.
    """

    models: tuple[str, ...]
    options: dict[str, Any]
    compile: tuple[str, ...] | None
    enabled: bool
    line: int
    body: str
    body_line: int
    arguments: tuple[str, ...] = ()


class Order:
    """A task as native code in one or more programming models.

    Parameters
    ----------
    source
        The text of an order, the path of a file with the text, or an `Order`.

    Attributes
    ----------
    text
        The text.
    code
        The text without common indentation.
    path
        The path of its file, or None.
    inputs, outputs
        The argument names that the preamble set with `set_argnames`, or None.
    names
        The variables of the preamble.
    sections
        The `Section` objects, in the order of the text.

    Raises
    ------
    TypeError
        `source` is none of these.
    ValueError
        The text is not a valid order, or the preamble raises. The message has the line.
    OSError
        The file cannot be read.

    Notes
    -----
    The preamble is the text before the first section. It is executed as Python with few builtins. This is not
    a sandbox: an order is code, as are its sections.
    """

    def __init__(self, source: "str | os.PathLike[str] | Order") -> None:
        self.text, self.path = self._read(source)
        self.inputs: tuple[str, ...] | None = None
        self.outputs: tuple[str, ...] | None = None
        self.names: dict[str, Any] = {}
        self.code = textwrap.dedent(self.text.replace("\r\n", "\n"))
        # Not with splitlines, which splits at more characters than compilers do.
        lines = self.code.removesuffix("\n").split("\n")
        lines = [line + "\n" for line in lines]
        starts = [number for number, line in enumerate(lines) if line.startswith("[")]
        if not starts:
            raise ArgumentValueError(
                f"{self.label}: the order has no section; a section begins with a line whose first "
                f"character is [, such as [cpp]"
            )
        self._run_preamble("".join(lines[: starts[0]]))
        sections = []
        position = starts[0]
        while position < len(lines):
            header = parse_header(lines[position:], functools.partial(self._make_error, position))
            begin = position + header.lines
            end = next((start for start in starts if start >= begin), len(lines))
            sections.append(self._make_section(header, position, "".join(lines[begin:end]), begin))
            position = end
        self.sections = tuple(sections)

    def _read(self, source: Any) -> tuple[str, str | None]:
        return read_source(source)

    @property
    def label(self) -> str:
        """The name of the order in messages: its file, or `<order>`."""
        return self.path.replace("\n", " ") if self.path else TEXT

    def __repr__(self) -> str:
        models = ", ".join(model for section in self.sections for model in section.models)
        return f"Order({self.label}: {models})"

    def _make_error(self, start: int, line: int, text: str) -> ArgumentValueError:
        return ArgumentValueError(f"{self.label}:{start + line + 1}: {text}")

    def _make_namespace(self) -> dict[str, Any]:
        """Return the names of the preamble."""

        def set_argnames(inputs: str | tuple[str, ...], outputs: str | tuple[str, ...]) -> None:
            """Name the arguments. Each side is a name or a tuple of names."""
            names = (parse_names(inputs, "inputs"), parse_names(outputs, "outputs"))
            every = (*names[0], *names[1])
            repeated = [name for name in every if every.count(name) > 1]
            if repeated:
                raise ArgumentValueError(f"set_argnames: the name {repeated[0]!r} occurs twice")
            self.inputs, self.outputs = names

        # Python's message for missing arguments has this name.
        set_argnames.__qualname__ = "set_argnames"
        return {"set_argnames": set_argnames}

    def _run_preamble(self, text: str) -> None:
        namespace = self._make_namespace()
        namespace["__builtins__"] = {name: getattr(builtins, name) for name in _BUILTIN_NAMES}
        try:
            exec(compile(text, self.label, "exec", dont_inherit=True), namespace)
        except Exception as error:
            raise self._make_error(
                0, (find_line(error, self.label) or 1) - 1, f"the preamble failed: {_describe_error(error)}"
            ) from error
        del namespace["__builtins__"], namespace["set_argnames"]
        self.names = namespace

    def _make_section(self, header: Header, line: int, body: str, body_line: int) -> Section:
        if header.arguments:
            raise self._make_error(
                line, 0, f"the option {header.arguments[0]} has no value; expected option=value"
            )
        return self._make_checked_section(header, line, body, body_line)

    def _make_checked_section(self, header: Header, line: int, body: str, body_line: int) -> Section:
        for model in header.models:
            if model not in MODELS:
                raise self._make_error(line, 0, describe_unknown_model(model))
        options = {name: self._evaluate_option(name, value, line) for name, value in header.options.items()}
        enabled = options.pop("enable", True)
        if not isinstance(enabled, (bool, int)):
            raise self._make_error(line, 0, f"enable: expected True or False, got {enabled!r}")
        commands = options.pop("compile", None)
        try:
            compile_ = parse_commands(commands)
        except (ArgumentTypeError, ArgumentValueError) as error:
            raise self._make_error(line, 0, str(error)) from None
        return Section(
            header.models, options, compile_, bool(enabled), line + 1, body, body_line + 1, header.arguments
        )

    def _evaluate_option(self, name: str, expression: ast.expr, line: int) -> Any:
        namespace = {**self.names, "__builtins__": {word: getattr(builtins, word) for word in _BUILTIN_NAMES}}
        try:
            code = compile(ast.Expression(expression), self.label, "eval", dont_inherit=True)
            return eval(code, namespace)
        except Exception as error:
            raise self._make_error(line, 0, f"the option {name} failed: {_describe_error(error)}") from error


def describe_unknown_model(name: str) -> str:
    """Return the error message for an unknown model."""
    matches = difflib.get_close_matches(name.lower(), MODELS, 1)
    hint = f"did you mean {matches[0]}?" if matches else f"there are {', '.join(MODELS)}"
    return f"there is no model {name!r}; {hint}"


def parse_commands(value: object) -> tuple[str, ...] | None:
    """Return compiler commands: a command, a list or tuple of commands, or None.

    Raises
    ------
    TypeError
        `value` is something else.
    ValueError
        There is no command, or one is empty or invalid.
    """
    if value is None:
        return None
    commands = (value,) if isinstance(value, str) else value
    if not isinstance(commands, (list, tuple)) or not all(isinstance(item, str) for item in commands):
        raise ArgumentTypeError(
            f"compile: expected a compiler command such as 'g++ -O2', or a list, got {value!r}"
        )
    if not commands or not all(item.strip() for item in commands):
        raise ArgumentValueError(f"compile: expected a command such as 'g++ -O2', got {value!r}")
    for command in commands:
        try:
            shlex.split(command)
        except ValueError as error:
            raise ArgumentValueError(
                f"compile: {command!r} is not a valid command: {str(error).lower()}"
            ) from None
    return tuple(commands)


def read_source(source: object) -> tuple[str, str | None]:
    """Return the text of an order, and the path of its file or None. Raises the errors of `Order`."""
    if isinstance(source, Order):
        return source.text, source.path
    if isinstance(source, str) and ("\n" in source or source.lstrip().startswith("[")):
        return source, None
    if not isinstance(source, (str, os.PathLike)):
        raise ArgumentTypeError(f"source: expected the text of an order, a path or an Order, got {source!r}")
    path = os.fspath(source)
    if not isinstance(path, str):
        raise ArgumentTypeError(f"source: expected a path as text, got {path!r}")
    if isinstance(source, str) and not os.path.isfile(path):
        raise ArgumentValueError(
            f"source: {source[:80]!r} is neither a file nor an order, which has a section that begins with a "
            f"line such as [cpp]"
        )
    try:
        # -sig: skip a byte order mark, which editors on Windows write
        with open(path, encoding="utf-8-sig") as file:
            return file.read(), os.path.abspath(path)
    except UnicodeDecodeError as error:
        raise ArgumentValueError(f"source: {path} is not UTF-8 text ({error})") from None


def parse_names(value: object, what: str) -> tuple[str, ...]:
    """Return names of arguments: a name, or a tuple or list. Raises TypeError or ValueError otherwise."""
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, (tuple, list)):
        raise ArgumentTypeError(f"set_argnames, {what}: expected a name or a tuple of names, got {value!r}")
    for name in names:
        if not isinstance(name, str) or not name.isascii() or not name.isidentifier():
            raise ArgumentValueError(
                f"set_argnames, {what}: expected a name of letters, digits and _, got {name!r}"
            )
        if name.lower().startswith("accelpy_"):
            raise ArgumentValueError(
                f"set_argnames, {what}: the name {name!r} is reserved, as it begins with accelpy_"
            )
    return tuple(names)


def find_line(error: BaseException, file: str) -> int | None:
    """Return the innermost line of a file where an exception was raised, or None."""
    if isinstance(error, SyntaxError) and error.filename == file:
        return error.lineno
    line, frame = None, error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == file:
            line = frame.tb_lineno
        frame = frame.tb_next
    return line


def _describe_error(error: BaseException) -> str:
    message = error.args[0] if isinstance(error, SyntaxError) else error
    return f"{type(error).__name__}: {message}"


def check_options(section: Section, known: frozenset[str], label: str) -> Mapping[str, Any]:
    """Return the options of a section.

    Raises
    ------
    ValueError
        The model does not know an option.
    """
    for name in section.options:
        if name not in known:
            names = ", ".join((*_OPTIONS, *sorted(known)))
            raise ArgumentValueError(
                f"{label}:{section.line}: there is no option {name!r}; there are {names}"
            )
    return section.options
