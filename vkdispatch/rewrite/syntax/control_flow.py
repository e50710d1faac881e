"""Detection of control flow in syntax trees."""

import ast
from collections.abc import Iterable

from vkdispatch.rewrite.syntax.nodes import PLACES, list_children, walk_tree

_GENERATORS = (ast.Yield, ast.YieldFrom, ast.Await)
_CONTROL = (
    ast.If,
    ast.While,
    ast.For,
    ast.Match,
    ast.BoolOp,
    ast.IfExp,
    ast.Invert,
    ast.Not,
    ast.Assert,
    ast.comprehension,
    ast.In,
    ast.NotIn,
)


_COMPUTING_ERRORS = frozenset(
    (
        "ArithmeticError",
        "FloatingPointError",
        "IndexError",
        "LookupError",
        "OverflowError",
        "ZeroDivisionError",
    )
)


def find_computing_error(node: ast.Try) -> str:
    """Return the name of an error of operations in Python, which the GPU does not raise, that is caught."""
    for handler in node.handlers:
        for inner in ast.walk(handler.type) if handler.type is not None else ():
            if isinstance(inner, ast.Name) and inner.id in _COMPUTING_ERRORS:
                return inner.id
    return ""


def iterate_own_nodes(roots: Iterable[ast.AST]) -> Iterable[ast.AST]:
    """Yield the nodes of a function's own scope, without those of nested functions and classes."""
    stack = list(roots)
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            stack.extend(list_children(node))


def has_control_flow(inners: Iterable[ast.AST]) -> bool:
    """Whether any node of a function needs rewriting, apart from calls."""
    inners = list(inners)
    bound = {node.id for node in inners if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for inner in inners:
        if isinstance(inner, _CONTROL) or (isinstance(inner, ast.Compare) and len(inner.ops) > 1):
            return True
        if isinstance(inner, ast.AugAssign) and isinstance(inner.target, ast.Name):
            return True
        if isinstance(inner, (ast.Global, ast.Nonlocal)):
            return True
        if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store):
            return True
        if isinstance(inner, ast.Subscript) and isinstance(inner.ctx, ast.Store):
            owner = inner.value
            # v[0] = x of a vector that a name holds, or of one in a list
            if isinstance(owner, PLACES) or (isinstance(owner, ast.Name) and owner.id in bound):
                return True
        if isinstance(inner, (ast.With, ast.Try)) and any(
            isinstance(jump, (ast.Return, ast.Break, ast.Continue)) for jump in walk_tree(inner)
        ):
            return True
        if isinstance(inner, ast.Try) and find_computing_error(inner):
            return True
    return False


def is_generator(node: ast.FunctionDef, inners: Iterable[ast.AST]) -> bool:
    """Whether a function yields or awaits; such functions are not rewritten."""
    return any(isinstance(inner, _GENERATORS) for inner in inners) and any(
        isinstance(inner, _GENERATORS) for inner in iterate_own_nodes(node.body)
    )
