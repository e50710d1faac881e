"""The syntax tree of an existing function, found in its file and verified against its bytecode."""

import ast
import inspect
import linecache
import types
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter
from typing import Any

from vkdispatch.base.errors import describe_place
from vkdispatch.base.record import record
from vkdispatch.rewrite.syntax.compilation import FunctionNode, compile_function
from vkdispatch.rewrite.syntax.nodes import list_children

# Whether a function takes *args and **kwargs.
_REST_FLAGS = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


@record
class Source:
    """A function's tree.

    `class_name` is the class around it, by which Python mangles private names; `shared` tells whether the
    tree is a part of its file's.
    """

    node: FunctionNode
    class_name: str | None
    shared: bool = True


@record
class _File:
    functions: dict[int, list[Source]]
    codes: dict[tuple[int, str], list[types.CodeType]]


@lru_cache(maxsize=256)
def _parse_file(text: str) -> _File | None:
    try:
        tree = ast.parse(text)
        compiled = compile(text, "<source>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError):
        return None
    functions: dict[int, list[Source]] = {}
    stack: list[tuple[ast.AST, str | None]] = [(tree, None)]
    while stack:
        node, owner = stack.pop()
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            line = node.lineno
            if isinstance(node, ast.FunctionDef) and node.decorator_list:
                # a code object starts at its first decorator
                line = node.decorator_list[0].lineno
            functions.setdefault(line, []).append(Source(node, owner))
        if isinstance(node, ast.ClassDef):
            owner = node.name
        stack.extend((child, owner) for child in list_children(node))
    return _File(functions, _group_codes([compiled]))


@lru_cache(maxsize=256)
def _compile_statements(text: str) -> dict[tuple[int, str], list[types.CodeType]]:
    """Compile each statement by itself, as IPython does with those of a cell: none sees another's imports."""
    parts = [ast.Module([statement], []) for statement in ast.parse(text).body]
    return _group_codes([compile(part, "<source>", "exec", dont_inherit=True) for part in parts])


def _group_codes(pending: list[types.CodeType]) -> dict[tuple[int, str], list[types.CodeType]]:
    """Return code objects and those inside of them by first line and name."""
    codes: dict[tuple[int, str], list[types.CodeType]] = {}
    while pending:
        code = pending.pop()
        codes.setdefault((code.co_firstlineno, code.co_name), []).append(code)
        pending.extend(value for value in code.co_consts if isinstance(value, types.CodeType))
    return codes


def find_source(code: types.CodeType, module: dict[str, Any] | None = None) -> Source | None:
    """Return the tree of a function, or None: no file, or an edited one; `explain_missing` says which.

    `module` are the variables of its module, whose loader reads files in archives.
    """
    lines = linecache.getlines(code.co_filename, module)
    found = _find_in_lines(code, lines, module or {})
    if found is None:
        # after a reload, linecache still has the lines of the file before
        linecache.checkcache(code.co_filename)
        renewed = linecache.getlines(code.co_filename, module)
        found = _find_in_lines(code, renewed, module or {}) if renewed != lines else None
    return found


def explain_missing(code: types.CodeType, module: dict[str, Any] | None = None) -> str:
    """Say why `find_source` did not find a function, and what to do."""
    name, file = code.co_name, code.co_filename
    if linecache.getlines(file, module):
        place = describe_place(file, code.co_firstlineno)
        why = f"{place} has other code: it was edited since, or a hook changed it on import; load it again"
    elif file.startswith("<"):
        why = (
            f"it was compiled from a text, and Python keeps no lines of {file!r}; write it into a file that "
            "is imported, or put its lines into linecache.cache under the file name that compile() gets"
        )
    else:
        why = f"{file!r} cannot be read; put that file where it was"
    return f"the source of {name!r} was not found ({why})"


def _find_in_lines(code: types.CodeType, lines: list[str], module: dict[str, Any]) -> Source | None:
    if not lines:
        return None
    found_alone = _find_by_lines(code, lines, module)
    if found_alone is not None:
        return found_alone
    text = "".join(lines)
    file = _parse_file(text)
    if file is None:
        return None
    # pytest compiles asserts in its own way
    if not _has_pytest_names(code):
        place = (code.co_firstlineno, code.co_name)
        alike = file.codes.get(place, [])
        if not any(_is_same_code(other, code) for other in alike):
            alike = _compile_statements(text).get(place, [])
            if not any(_is_same_code(other, code) for other in alike):
                return None
    found = [source for source in file.functions.get(code.co_firstlineno, []) if _is_tree_of(source, code)]
    if len(found) > 1:
        # several lambdas of one line: those of equal code mean the same, and the columns tell which it is
        same = [source for source in found if _compiles_to(source, code, module)]
        fitting = _choose_by_columns(same or found, code)
        return fitting or (same[0] if same else None)
    return found[0] if found else None


def _find_by_lines(code: types.CodeType, lines: list[str], module: dict[str, Any]) -> Source | None:
    """Find the tree of a function by parsing only its lines, which is fast in a long file.

    Returns None unless the lines compile to the same code.
    """
    first = code.co_firstlineno
    codes = _list_codes(code)
    last = max(end or first for inner in codes for _, end, _, _ in inner.co_positions())
    text = lines[first - 1 : last]
    if not text or code.co_name == "<lambda>" or "__class__" in code.co_freevars:
        return None
    # keep the indentation by an enclosing block, and the line numbers by empty lines
    block = "if 1:\n" if text[0][:1].isspace() else "\n"
    around = "\n" * (first - 2) + block if first > 1 else ""
    try:
        tree = ast.parse("".join((around, *text)))
        body = tree.body[0].body if isinstance(tree.body[0], ast.If) else tree.body
        node = body[0]
        if len(body) > 1 or not isinstance(node, ast.FunctionDef):
            return None
    except (SyntaxError, ValueError, RecursionError):
        return None
    source = Source(node, _find_class(code), shared=False)
    return source if _compiles_to(source, code, module) and _is_tree_of(source, code) else None


def _compiles_to(source: Source, code: types.CodeType, module: dict[str, Any]) -> bool:
    """Whether a tree by itself compiles to the same code."""
    names = [name for inner in _list_codes(code) for name in inner.co_names if _is_imported(name, module)]
    # without them, as the compiler does not see those of another cell or statement of a notebook
    for imported in (names, []) if names else ([],):
        try:
            other = compile_function(source.node, code, source.class_name, imported=imported)
        except (SyntaxError, ValueError, RecursionError):
            continue
        if other is not None and _is_same_code(other, code):
            return True
    return False


def _list_codes(code: types.CodeType) -> list[types.CodeType]:
    """Return a code object and those of the functions inside."""
    inner = [_list_codes(value) for value in code.co_consts if isinstance(value, types.CodeType)]
    return [code, *(each for group in inner for each in group)]


def _is_imported(name: str, module: dict[str, Any]) -> bool:
    """Whether a module has a name by an import, as far as can be told: Python compiles calls by it."""
    value = module.get(name)
    if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
        return bool(value.__module__ != module.get("__name__"))
    return isinstance(value, types.ModuleType)


def _find_class(code: types.CodeType) -> str | None:
    """Name of the innermost class around a function: what is inside a function is called <locals> of it."""
    names = code.co_qualname.split(".")
    classes = [name for name, inner in pairwise(names) if name != "<locals>" and inner != "<locals>"]
    return classes[-1] if classes else None


def _is_tree_of(source: Source, code: types.CodeType) -> bool:
    node = source.node
    name = node.name if isinstance(node, ast.FunctionDef) else "<lambda>"
    if name != code.co_name or _arguments(node.args) != _code_arguments(code, source.class_name):
        return False
    last = node.end_lineno or node.lineno
    lines = [line for _, _, line in code.co_lines() if line is not None]
    return not lines or code.co_firstlineno <= min(lines) <= max(lines) <= last


def _is_same_code(a: types.CodeType, b: types.CodeType) -> bool:
    return _summarize(a) == _summarize(b)


def _summarize(code: types.CodeType) -> tuple[Any, ...]:
    """Return all that a function does, for comparison: without names of its own, and places."""
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & _REST_FLAGS
    # the body of a class has its qualified name, which is another one where a function is compiled by itself
    own = None if code.co_flags & inspect.CO_OPTIMIZED else code.co_qualname
    constants = [_summarize_constant(each) for each in code.co_consts if own is None or each != own]
    return code.co_code, code.co_exceptiontable, names, counts, *constants


def _summarize_constant(value: object) -> Any:
    if isinstance(value, types.CodeType):
        return _summarize(value)
    # the text tells 0.0 from -0.0, and 1 from True inside of tuples
    return type(value), sorted(map(repr, value)) if isinstance(value, frozenset) else repr(value)


def _has_pytest_names(code: types.CodeType) -> bool:
    return any(local.startswith("@py_") for local in code.co_varnames) or any(
        isinstance(value, types.CodeType) and _has_pytest_names(value) for value in code.co_consts
    )


def _arguments(args: ast.arguments) -> list[str]:
    named = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    rest = [arg for arg in (args.vararg, args.kwarg) if arg is not None]
    return [arg.arg for arg in (*named, *rest)]


def _code_arguments(code: types.CodeType, owner: str | None) -> list[str]:
    count = code.co_argcount + code.co_kwonlyargcount
    count += (code.co_flags & _REST_FLAGS).bit_count()
    prefix = f"_{owner.lstrip('_')}__" if owner else None
    names = []
    for name in code.co_varnames[:count]:
        mangled = prefix is not None and name.startswith(prefix)
        names.append("__" + name[len(prefix or "") :] if mangled else name)
    return names


def _choose_by_columns(sources: list[Source], code: types.CodeType) -> Source | None:
    """Return the innermost function whose body has all of the columns of the code; None without columns."""
    # instructions of a function as a whole have an empty place, such as the return of a lambda in Python 3.12
    spans = [
        ((line, column), (last or line, end))
        for line, last, column, end in code.co_positions()
        if line is not None and column is not None and end is not None and column != end
    ]
    fitting = []
    for source in sources:
        body = source.node.body
        if spans and isinstance(body, ast.expr):
            start = (body.lineno, body.col_offset)
            end = (body.end_lineno or body.lineno, body.end_col_offset or body.col_offset)
            if start <= min(spans)[0] and max(stop for _, stop in spans) <= end:
                fitting.append((start, source))
    return max(fitting, key=itemgetter(0))[1] if fitting else None
