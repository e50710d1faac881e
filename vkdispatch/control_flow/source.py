"""The syntax tree of an existing function, what its bytecode tells, and code that replaces it."""

import ast
import inspect
import linecache
import opcode
import sys
import types
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter
from typing import Any

from vkdispatch.base.errors import describe_place
from vkdispatch.base.record import record
from vkdispatch.control_flow.names import copy_position, list_children, make_function

# ---- What bytecode tells: whether a function has only calls to rewrite, and which variables it reads -----
#
# Most kernels are of this kind, and reading their source would take longer than the rest of the trace.


Call = tuple[str, ...]

# What the instructions of functions without control flow take from the stack and put there; None: as many as
# their argument says. A function with any other instruction is judged by its source.
_EFFECTS: dict[str, tuple[int | None, int | None]] = {
    **dict.fromkeys(("RESUME", "NOP", "COPY_FREE_VARS", "MAKE_CELL", "PRECALL", "KW_NAMES"), (0, 0)),
    **dict.fromkeys(("LOAD_CONST", "LOAD_SMALL_INT", "LOAD_FAST", "LOAD_FAST_CHECK"), (0, 1)),
    **dict.fromkeys(("LOAD_FAST_BORROW",), (0, 1)),
    **dict.fromkeys(("LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW"), (0, 2)),
    **dict.fromkeys(("POP_TOP", "STORE_FAST", "STORE_DEREF", "RETURN_VALUE"), (1, 0)),
    **dict.fromkeys(("UNARY_NEGATIVE", "UNARY_POSITIVE", "UNARY_INVERT", "FORMAT_SIMPLE"), (1, 1)),
    **dict.fromkeys(("CONVERT_VALUE", "STORE_FAST_LOAD_FAST"), (1, 1)),
    **dict.fromkeys(("STORE_ATTR", "STORE_FAST_STORE_FAST"), (2, 0)),
    **dict.fromkeys(("BINARY_OP", "BINARY_SUBSCR", "COMPARE_OP", "IS_OP", "FORMAT_WITH_SPEC"), (2, 1)),
    **dict.fromkeys(("BUILD_TUPLE", "BUILD_LIST", "BUILD_STRING", "BUILD_SLICE"), (None, 1)),
    "BINARY_SLICE": (3, 1),
    "RETURN_CONST": (0, 0),
    "STORE_SUBSCR": (3, 0),
    "UNPACK_SEQUENCE": (1, None),
}
# Instructions that matter here one by one.
_SPECIAL = (
    *("CACHE", "EXTENDED_ARG", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_ATTR", "LOAD_METHOD", "PUSH_NULL"),
    *("COPY", "SWAP", "CALL", "CALL_KW"),
)
_NAMES = {opcode.opmap[name]: name for name in (*_EFFECTS, *_SPECIAL) if name in opcode.opmap}
_KNOWN = frozenset(_NAMES)
# `BINARY_OP` of `+=` and its like.
_IN_PLACE = range(13, 26)
# From Python 3.12 on, the lowest bit of an attribute's number says whether it is a method to be called; from
# 3.13 on, NULL comes after what is called without an object.
_FLAGGED = sys.version_info >= (3, 12)
_NULL_AFTER = sys.version_info >= (3, 13)
_NULL: Call = ("NULL", "")
# An element of what a local variable holds.
_PART: Call = ("", "[]")
# Instructions that assign to a part of something, and where that lies on the stack.
_STORES = {"STORE_SUBSCR": -2, "STORE_ATTR": -1}
# What reads and assigns variables, and what reads an attribute of the value before.
_CACHE, _EXTENDED, _GLOBAL, _STORE_GLOBAL, _STORE_FREE, _IMPORT = (
    opcode.opmap[name]
    for name in ("CACHE", "EXTENDED_ARG", "LOAD_GLOBAL", "STORE_GLOBAL", "STORE_DEREF", "IMPORT_NAME")
)
_ATTRIBUTES, _FREE = (
    frozenset(opcode.opmap[name] for name in names if name in opcode.opmap)
    for names in (("LOAD_ATTR", "LOAD_METHOD"), ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"))
)
_MAX_READS = 1024


def find_calls(code: types.CodeType) -> frozenset[Call] | None:
    """Return the dotted names that a function without control flow calls; None where that is not certain.

    Of a method of a local variable or of the value of an expression, the first name is ""; where these
    themselves are called, there are no names. Of functions that assign `x += y`, that assign to a part of
    what a local variable holds, or that hold other functions it is never certain.
    """
    if code.co_exceptiontable or any(isinstance(value, types.CodeType) for value in code.co_consts):
        return None
    units = code.co_code
    # asserts may have been left out
    if sys.flags.optimize or not _KNOWN.issuperset(units[::2]):
        return None
    try:
        return _find_calls(code, units)
    except IndexError:
        return None


def _decode(units: bytes) -> Iterator[tuple[int, int]]:
    """Yield the number and the argument of each instruction, without caches."""
    extended = 0
    for op, low in zip(units[::2], units[1::2], strict=True):
        if op == _CACHE:
            continue
        argument, extended = extended | low, 0
        if op == _EXTENDED:
            extended = argument << 8
        else:
            yield op, argument


def _find_calls(code: types.CodeType, units: bytes) -> frozenset[Call] | None:
    calls: set[Call] = set()
    # the names that led to each value, if any did
    stack: list[Call] = []
    # local variables that may hold a vector: what functions return is a register or an array
    held: set[str] = set()
    before, in_place = "", False
    for op, argument in _decode(units):
        name = _NAMES[op]
        if in_place and name != "SWAP":
            # x += y
            return None
        in_place = False
        if name in _EFFECTS:
            taken, put = _EFFECTS[name]
            taken = argument if taken is None else taken
            if taken > len(stack):
                return None
            if name in _STORES and _is_held(stack[_STORES[name]], held, attribute=name == "STORE_ATTR"):
                return None
            owner = stack[-2] if name == "BINARY_SUBSCR" else ()
            if taken:
                del stack[-taken:]
            loaded, stored = _variables(code, name, argument)
            held.update(stored if before not in ("CALL", "CALL_KW") else ())
            stack += [(variable,) for variable in loaded]
            part = _PART if _is_held(owner, held, attribute=False) else ()
            stack += [part] * ((argument if put is None else put) - len(loaded))
            in_place = name == "BINARY_OP" and argument in _IN_PLACE
        elif name in ("LOAD_ATTR", "LOAD_METHOD"):
            names = stack.pop()
            attribute = code.co_names[argument >> 1 if _FLAGGED else argument]
            stack.append((*names, attribute) if names and names[0] else ("", attribute))
            if argument & 1 if _FLAGGED else name == "LOAD_METHOD":
                stack.append(())
        elif name == "LOAD_GLOBAL":
            values: list[Call] = [(code.co_names[argument >> 1],)]
            if argument & 1:
                values.insert(1 if _NULL_AFTER else 0, _NULL)
            stack += values
        elif name == "LOAD_DEREF":
            stack.append((_cell_names(code)[argument],))
        elif name == "PUSH_NULL":
            stack.append(_NULL)
        elif name == "COPY":
            stack.append(stack[-argument])
        elif name == "SWAP":
            stack[-1], stack[-argument] = stack[-argument], stack[-1]
        else:
            taken = argument + (2 if name == "CALL" else 3)
            first, second = stack[-taken], stack[1 - taken]
            calls.add(second if first is _NULL else first)
            del stack[-taken:]
            stack.append(())
        before = name
    return frozenset(calls)


def _is_held(owner: Call, held: set[str], *, attribute: bool) -> bool:
    """Whether what is assigned to is a part of what a variable holds, and not of an array that is passed."""
    if len(owner) == 1 and not attribute:
        return owner[0] in held
    return owner != ()


def _variables(code: types.CodeType, name: str, argument: int) -> tuple[list[str], list[str]]:
    """Return the local variables that an instruction reads and assigns."""
    if "_FAST" not in name or name == "COPY_FREE_VARS":
        return [], []
    names = code.co_varnames
    words = name.removesuffix("_CHECK").replace("_BORROW", "").split("_FAST")
    variables = [names[argument]] if len(words) == 2 else [names[argument >> 4], names[argument & 15]]
    kinds = [word.strip("_") for word in words[:-1]]
    pairs = list(zip(kinds, variables, strict=True))
    return [v for kind, v in pairs if kind == "LOAD"], [v for kind, v in pairs if kind == "STORE"]


def _cell_names(code: types.CodeType) -> Call:
    """Names of local variables, of those shared with inner functions, and of those of outer ones."""
    local_names = code.co_varnames
    return (*local_names, *(name for name in code.co_cellvars if name not in local_names), *code.co_freevars)


@record
class Reads:
    """What a function and the functions inside of it read by name.

    Attributes
    ----------
    variables
        Global and free variables, and the chains of attributes that are read of each: () is the value itself.
    assigned
        Those that are assigned to.
    names
        All names of variables and attributes.
    imports
        Whether it imports modules.
    """

    variables: dict[str, set[tuple[str, ...]]]
    assigned: frozenset[str]
    names: frozenset[str]
    imports: bool = False


@lru_cache(maxsize=_MAX_READS)
def find_reads(code: types.CodeType) -> Reads:
    """Find what a function reads from outside."""
    variables: dict[str, set[tuple[str, ...]]] = {}
    assigned: set[str] = set()
    names: set[str] = set()
    imports = False
    pending = [code]
    while pending:
        inner = pending.pop()
        pending += [value for value in inner.co_consts if isinstance(value, types.CodeType)]
        names.update(inner.co_names)
        cells = _cell_names(inner)
        chain: tuple[str, ...] = ()
        for op, argument in _decode(inner.co_code):
            if op in _ATTRIBUTES:
                if chain:
                    chain += (inner.co_names[argument >> 1 if _FLAGGED else argument],)
                continue
            if chain:
                variables.setdefault(chain[0], set()).add(chain[1:])
                chain = ()
            if op == _GLOBAL:
                chain = (inner.co_names[argument >> 1],)
            elif op in _FREE:
                name = cells[argument]
                chain = (name,) if name in code.co_freevars else ()
            elif op == _IMPORT:
                imports = True
            elif op == _STORE_GLOBAL:
                assigned.add(inner.co_names[argument])
            elif op == _STORE_FREE and cells[argument] in code.co_freevars:
                assigned.add(cells[argument])
    return Reads(variables, frozenset(assigned), frozenset(names), imports)


# ---- Compilation of a function's syntax tree to a code object that replaces the code of the function -----


# The flags of `from __future__` imports in a code object.
_FUTURE_FLAGS = 0x1FF0000
FunctionNode = ast.FunctionDef | ast.Lambda


def future_flags(code: types.CodeType) -> int:
    """Return the flags of the `from __future__` imports that a code object was compiled under."""
    return code.co_flags & _FUTURE_FLAGS


def compile_function(
    node: FunctionNode,
    code: types.CodeType,
    class_name: str | None,
    extra: tuple[str, ...] = (),
    imported: Sequence[str] = (),
) -> types.CodeType | None:
    """Compile a function's tree to a code object whose free names are those of `code` and `extra`.

    `imported` are names that its module has by imports. Raises SyntaxError or ValueError where Python refuses
    the tree.
    """
    if isinstance(node, ast.Lambda):
        bare: ast.stmt = ast.Expr(ast.Lambda(_strip_arguments(node.args), node.body))
    else:
        # under its own name, a function that calls itself would find this one instead of its global
        bare = ast.FunctionDef("_vd_target", _strip_arguments(node.args), node.body, [], None)
        if hasattr(node, "type_params"):
            bare.type_params = []  # type: ignore[attr-defined]
    ast.copy_location(bare, node)
    if isinstance(bare, ast.Expr):
        ast.copy_location(bare.value, node)
    free = [*code.co_freevars, *extra]
    names: list[ast.stmt] = [
        ast.Assign([ast.Name(name, ast.Store())], ast.Constant(None)) for name in free if name != "__class__"
    ]
    factory = make_function("_vd_factory", [*names, bare])
    outer: ast.stmt = factory
    if class_name is not None:
        outer = ast.ClassDef(class_name, [], [], [factory], [])
        if hasattr(factory, "type_params"):
            outer.type_params = []  # type: ignore[attr-defined]
    imports: list[ast.stmt] = [ast.Import([ast.alias(name)]) for name in imported]
    module = ast.Module([*imports, outer], [])
    for new in (*imports, outer, factory, *names):
        copy_position(new, node)
    flags = future_flags(code)
    try:
        compiled = compile(module, code.co_filename, "exec", flags=flags, dont_inherit=True)
    except TypeError:
        # positions are missing somewhere inside
        ast.fix_missing_locations(module)
        compiled = compile(module, code.co_filename, "exec", flags=flags, dont_inherit=True)
    return _find_inner_code(compiled)


def _strip_arguments(args: ast.arguments) -> ast.arguments:
    """Return the arguments without defaults and annotations, which the existing function keeps."""

    def bare(arg: ast.arg | None) -> ast.arg | None:
        return None if arg is None else ast.copy_location(ast.arg(arg.arg), arg)

    def all_bare(group: list[ast.arg]) -> list[ast.arg]:
        return [ast.copy_location(ast.arg(arg.arg), arg) for arg in group]

    return ast.arguments(
        all_bare(args.posonlyargs),
        all_bare(args.args),
        bare(args.vararg),
        all_bare(args.kwonlyargs),
        [None for _ in args.kwonlyargs],
        bare(args.kwarg),
        [],
    )


def _find_inner_code(code: types.CodeType) -> types.CodeType | None:
    """Return the one function inside the factory."""
    for factory in _list_codes(code):
        if factory.co_name == "_vd_factory":
            inner = [value for value in factory.co_consts if isinstance(value, types.CodeType)]
            return inner[-1] if inner else None
    return None


# ---- The syntax tree of an existing function, found in its file and verified against its bytecode --------


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


def _group_codes(outer: list[types.CodeType]) -> dict[tuple[int, str], list[types.CodeType]]:
    """Return code objects and those inside of them by first line and name."""
    codes: dict[tuple[int, str], list[types.CodeType]] = {}
    for code in (inner for module in outer for inner in _list_codes(module)):
        codes.setdefault((code.co_firstlineno, code.co_name), []).append(code)
    return codes


def find_source(code: types.CodeType, module: dict[str, Any] | None = None) -> Source | None:
    """Return the tree of a function, or None: no file, or an edited one; `explain_missing` says which.

    `module` are the variables of its module, whose loader reads files in archives.
    """
    lines = linecache.getlines(code.co_filename, module)
    source = _find_in_lines(code, lines, module or {})
    if source is None:
        # after a reload, linecache still has the lines of the file before
        linecache.checkcache(code.co_filename)
        renewed = linecache.getlines(code.co_filename, module)
        source = _find_in_lines(code, renewed, module or {}) if renewed != lines else None
    return source


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
    alone = _find_by_lines(code, lines, module)
    if alone is not None:
        return alone
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
    sources = [source for source in file.functions.get(code.co_firstlineno, []) if _is_tree_of(source, code)]
    if len(sources) > 1:
        # several lambdas of one line: those of equal code mean the same, and the columns tell which it is
        same = [source for source in sources if _compiles_to(source, code, module)]
        fitting = _choose_by_columns(same or sources, code)
        return fitting or (same[0] if same else None)
    return sources[0] if sources else None


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
    return [code, *(nested for codes in inner for nested in codes)]


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
    name = None if code.co_flags & inspect.CO_OPTIMIZED else code.co_qualname
    constants = [_summarize_constant(value) for value in code.co_consts if name is None or value != name]
    return code.co_code, code.co_exceptiontable, names, counts, *constants


def _summarize_constant(value: object) -> Any:
    if isinstance(value, types.CodeType):
        return _summarize(value)
    # the text tells 0.0 from -0.0, and 1 from True inside of tuples
    return type(value), sorted(map(repr, value)) if isinstance(value, frozenset) else repr(value)


def _has_pytest_names(code: types.CodeType) -> bool:
    return any(local.startswith("@py_") for inner in _list_codes(code) for local in inner.co_varnames)


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
