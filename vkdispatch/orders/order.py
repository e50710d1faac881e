"""Orders: the text of one task in several programming models, taken apart."""

import ast
import builtins
import difflib
import functools
import os
import shlex
import textwrap
from collections.abc import Mapping
from typing import Any

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.orders.header import Header, parse_header

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
"""The names of all models, in the order in which sections are tried where nobody chooses."""

TEXT = "<order>"
"""What compilers call an order that comes from no file."""

_BUILTINS = (
    "abs all any bin bool complex dict divmod enumerate filter float frozenset hash hex int isinstance "
    "len list map max min oct ord pow print range reversed round set slice sorted str sum tuple zip "
    "ArithmeticError AssertionError Exception IndexError KeyError TypeError ValueError ZeroDivisionError "
)
_ARITHMETIC = _BUILTINS.split()
_OPTIONS = ("enable", "compile")


@record
class Section:
    """One body of an order, and the models that it is written in.

    Attributes
    ----------
    models
        Their names.
    options
        The options of its header, evaluated; without `enable` and `compile`.
    compile
        Compiler commands of its header, or None: those that are found.
    enabled
        False where the header says `enable=False`.
    line
        The line of the header, from 1.
    body
        The text below it.
    body_line
        The line where that begins.
    """

    models: tuple[str, ...]
    options: dict[str, Any]
    compile: tuple[str, ...] | None
    enabled: bool
    line: int
    body: str
    body_line: int


class Order:
    """A task as native code in one or more programming models.

    Parameters
    ----------
    source
        The text of an order, the path of a file that holds one, or an `Order`.

    Attributes
    ----------
    text
        The text.
    code
        The text without the indentation that all its lines have.
    path
        The file that it comes from, or None.
    inputs, outputs
        The names that `set_argnames` of the preamble gave, or None.
    names
        What the preamble assigned.
    sections
        The `Section` objects, in the order of the text.

    Raises
    ------
    TypeError
        `source` is none of these.
    ValueError
        The text is no order: the message has the line. So where the preamble raises.
    OSError
        The file cannot be read.

    Notes
    -----
    The preamble, which is the text before the first section, is Python and is run, with few builtins. That
    keeps nobody out who means harm: an order is code, as are its sections.
    """

    def __init__(self, source: "str | os.PathLike[str] | Order") -> None:
        self.text, self.path = _read_source(source)
        self.inputs: tuple[str, ...] | None = None
        self.outputs: tuple[str, ...] | None = None
        self.names: dict[str, Any] = {}
        self.code = textwrap.dedent(self.text.replace("\r\n", "\n"))
        # Not by splitlines, which has more ends of lines than compilers have.
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

    @property
    def label(self) -> str:
        """What messages call the order: its file, or `<order>`."""
        return self.path.replace("\n", " ") if self.path else TEXT

    def __repr__(self) -> str:
        models = ", ".join(model for section in self.sections for model in section.models)
        return f"Order({self.label}: {models})"

    def _make_error(self, start: int, line: int, text: str) -> ArgumentValueError:
        return ArgumentValueError(f"{self.label}:{start + line + 1}: {text}")

    def _run_preamble(self, text: str) -> None:
        def set_argnames(inputs: str | tuple[str, ...], outputs: str | tuple[str, ...]) -> None:
            """Name the arguments: a name or a tuple of names, each."""
            ours, theirs = _parse_names(inputs, "inputs"), _parse_names(outputs, "outputs")
            twice = [name for name in (*ours, *theirs) if (*ours, *theirs).count(name) > 1]
            if twice:
                raise ArgumentValueError(f"set_argnames: the name {twice[0]!r} is given twice")
            self.inputs, self.outputs = ours, theirs

        # that is what Python calls it when it is given too few
        set_argnames.__qualname__ = "set_argnames"
        namespace: dict[str, Any] = {"set_argnames": set_argnames}
        namespace["__builtins__"] = {name: getattr(builtins, name) for name in _ARITHMETIC}
        try:
            exec(compile(text, self.label, "exec", dont_inherit=True), namespace)
        except Exception as error:
            raise self._make_error(
                0, (find_line(error, self.label) or 1) - 1, f"the preamble failed: {_describe_error(error)}"
            ) from error
        del namespace["__builtins__"], namespace["set_argnames"]
        self.names = namespace

    def _make_section(self, header: Header, line: int, body: str, body_line: int) -> Section:
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
        return Section(header.models, options, compile_, bool(enabled), line + 1, body, body_line + 1)

    def _evaluate_option(self, name: str, expression: ast.expr, line: int) -> Any:
        namespace = {**self.names, "__builtins__": {word: getattr(builtins, word) for word in _ARITHMETIC}}
        try:
            code = compile(ast.Expression(expression), self.label, "eval", dont_inherit=True)
            return eval(code, namespace)
        except Exception as error:
            raise self._make_error(line, 0, f"the option {name} failed: {_describe_error(error)}") from error


def describe_unknown_model(name: str) -> str:
    """Return what is to be said of a name that no model has."""
    near = difflib.get_close_matches(name.lower(), MODELS, 1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(MODELS)}"
    return f"there is no model {name!r}; {hint}"


def parse_commands(given: object) -> tuple[str, ...] | None:
    """Return compiler commands, given as one or as a list or tuple of them; None stays.

    Raises
    ------
    TypeError
        They are something else.
    ValueError
        There is none, or one is empty.
    """
    if given is None:
        return None
    commands = (given,) if isinstance(given, str) else given
    if not isinstance(commands, (list, tuple)) or not all(isinstance(item, str) for item in commands):
        raise ArgumentTypeError(
            f"compile: expected a compiler command such as 'g++ -O2', or a list, got {given!r}"
        )
    if not commands or not all(item.strip() for item in commands):
        raise ArgumentValueError(f"compile: there is no command in {given!r}; such as 'g++ -O2' would do")
    for command in commands:
        try:
            shlex.split(command)
        except ValueError as error:
            raise ArgumentValueError(f"compile: {command!r} is no command: {str(error).lower()}") from None
    return tuple(commands)


def _read_source(source: object) -> tuple[str, str | None]:
    if isinstance(source, Order):
        return source.text, source.path
    if isinstance(source, str) and ("\n" in source or source.lstrip().startswith("[")):
        return source, None
    if not isinstance(source, (str, os.PathLike)):
        raise ArgumentTypeError(f"source: expected the text of an order, a path or an Order, got {source!r}")
    path = os.fspath(source)
    if not isinstance(path, str):
        raise ArgumentTypeError(f"source: expected a path of text, got {path!r}")
    if isinstance(source, str) and not os.path.isfile(path):
        raise ArgumentValueError(
            f"source: {source[:80]!r} is no file, and no order: that has a section, which begins with a line "
            f"such as [cpp]"
        )
    try:
        # -sig: editors of Windows put a mark at the beginning
        with open(path, encoding="utf-8-sig") as file:
            return file.read(), os.path.abspath(path)
    except UnicodeDecodeError as error:
        raise ArgumentValueError(f"source: {path} is no text in UTF-8 ({error})") from None


def _parse_names(given: object, what: str) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, (tuple, list)):
        raise ArgumentTypeError(f"set_argnames, {what}: expected a name or a tuple of names, got {given!r}")
    for name in names:
        if not isinstance(name, str) or not name.isascii() or not name.isidentifier():
            raise ArgumentValueError(
                f"set_argnames, {what}: {name!r} is no name; letters, digits and _ would do"
            )
        if name.lower().startswith("accelpy_"):
            raise ArgumentValueError(
                f"set_argnames, {what}: names such as {name!r} are kept for accelpy_ itself"
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
    words = error.args[0] if isinstance(error, SyntaxError) else error
    return f"{type(error).__name__}: {words}"


def check_options(section: Section, known: frozenset[str], label: str) -> Mapping[str, Any]:
    """Return the options of a section that a model takes.

    Raises
    ------
    ValueError
        There is another one.
    """
    for name in section.options:
        if name not in known:
            would = ", ".join((*_OPTIONS, *sorted(known)))
            raise ArgumentValueError(
                f"{label}:{section.line}: there is no option {name!r}; there are {would}"
            )
    return section.options
