"""Compilation of a function's syntax tree to a code object that replaces the code of the function."""

import ast
import types
from collections.abc import Sequence

from vkdispatch.rewrite.syntax.nodes import copy_position, make_function

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
    pending = [code]
    while pending:
        code = pending.pop()
        inner = [value for value in code.co_consts if isinstance(value, types.CodeType)]
        if code.co_name == "_vd_factory":
            return inner[-1] if inner else None
        pending.extend(inner)
    return None
