"""The syntax tree of an existing function, found in its file and verified against its bytecode."""

import ast
import linecache
import types
from functools import lru_cache
from itertools import pairwise
from typing import Any

from vkdispatch.base.record import record
from vkdispatch.rewrite.syntax.compilation import FunctionNode, compile_function
from vkdispatch.rewrite.syntax.nodes import list_children


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
    """Return the tree of a function, or None: no file, an edited file, or an ambiguous match.

    `module` are the variables of its module, whose loader reads files in archives.
    """
    lines = linecache.getlines(code.co_filename, module)
    if not lines:
        return None
    found_alone = _find_by_lines(code, lines, module or {})
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
        # several lambdas of one line: the columns tell them apart
        found = [source for source in found if _column_fits(source.node, code)]
    return found[0] if len(found) == 1 else None


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
        source = Source(node, _find_class(code), shared=False)
        imported = [name for inner in codes for name in inner.co_names if _is_imported(name, module)]
        # without them, as the compiler does not see those of another cell or statement of a notebook
        compiled = (
            compile_function(node, code, source.class_name, imported=names) for names in (imported, [])
        )
        same = any(other is not None and _is_same_code(other, code) for other in compiled)
    except (SyntaxError, ValueError, RecursionError):
        return None
    return source if same and _is_tree_of(source, code) else None


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
    same = a.co_code == b.co_code and a.co_names == b.co_names and a.co_varnames == b.co_varnames
    return same and _constants(a) == _constants(b)


def _has_pytest_names(code: types.CodeType) -> bool:
    return any(local.startswith("@py_") for local in code.co_varnames) or any(
        isinstance(value, types.CodeType) and _has_pytest_names(value) for value in code.co_consts
    )


def _constants(code: types.CodeType) -> list[object]:
    return [
        (type(value), value) for value in code.co_consts if not isinstance(value, (types.CodeType, frozenset))
    ]


def _arguments(args: ast.arguments) -> list[str]:
    named = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    rest = [arg for arg in (args.vararg, args.kwarg) if arg is not None]
    return [arg.arg for arg in (*named, *rest)]


def _code_arguments(code: types.CodeType, owner: str | None) -> list[str]:
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
    prefix = f"_{owner.lstrip('_')}__" if owner else None
    names = []
    for name in code.co_varnames[:count]:
        mangled = prefix is not None and name.startswith(prefix)
        names.append("__" + name[len(prefix or "") :] if mangled else name)
    return names


def _column_fits(node: ast.AST, code: types.CodeType) -> bool:
    columns = [
        (line, column)
        for line, _, column, _ in code.co_positions()
        if line is not None and column is not None
    ]
    body = node.body if isinstance(node, ast.Lambda) else node
    if not columns or not isinstance(body, ast.expr):
        return False
    first, last = min(columns[1:] or columns), max(columns)
    start = (body.lineno, body.col_offset)
    end = (body.end_lineno or body.lineno, body.end_col_offset or body.col_offset)
    return start <= first and last <= end
