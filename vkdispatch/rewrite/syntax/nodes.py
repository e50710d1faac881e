"""Traversal of syntax trees: faster versions of `ast.walk` and `ast.iter_child_nodes`.

Contexts such as `ast.Load` are omitted.
"""

import ast
from collections.abc import Sequence
from typing import TypeVar

# Most nodes, with nothing below.
_LEAVES = frozenset((ast.Name, ast.Constant, ast.Pass, ast.Break, ast.Continue))
_NOTHING: list[ast.AST] = []
# What most fields hold besides.
_NO_NODES = frozenset((ast.Load, ast.Store, ast.Del, str, type(None), int))


def list_children(node: ast.AST) -> list[ast.AST]:
    """Return the children of a node, in order. Do not modify the list."""
    if type(node) in _LEAVES:
        return _NOTHING
    held = node.__dict__
    if not held:
        # an operator
        return _NOTHING
    found: list[ast.AST] = []
    for name in node._fields:
        value = held.get(name)
        if isinstance(value, list):
            found += [each for each in value if isinstance(each, ast.AST)]
        elif type(value) not in _NO_NODES and isinstance(value, ast.AST):
            found.append(value)
    return found


def walk_tree(root: ast.AST) -> list[ast.AST]:
    """Return a node and all of its descendants, parents first."""
    found = [root]
    for node in found:
        found += list_children(node)
    return found


_POSITION = ("lineno", "col_offset", "end_lineno", "end_col_offset")
_Node = TypeVar("_Node", bound=ast.AST)


def load(name: str) -> ast.Name:
    """Read a name."""
    return ast.Name(name, ast.Load())


def store(name: str) -> ast.Name:
    """Bind a name."""
    return ast.Name(name, ast.Store())


def constant(value: object) -> ast.Constant:
    """Write a constant."""
    return ast.Constant(value)  # type: ignore[arg-type]


def call(owner: ast.expr, method: str, *args: ast.expr) -> ast.Call:
    """Call a method."""
    return ast.Call(ast.Attribute(owner, method, ast.Load()), list(args), [])


def make_function(name: str, body: list[ast.stmt], parameters: Sequence[str] = ()) -> ast.FunctionDef:
    """Make a function of plain parameters."""
    arguments = ast.arguments([], [ast.arg(parameter) for parameter in parameters], None, [], [], None, [])
    function = ast.FunctionDef(name, arguments, body or [ast.Pass()], [], None)
    if "type_params" in ast.FunctionDef._fields:
        function.type_params = []  # type: ignore[attr-defined]
    return function


def copy_position(node: _Node, at: ast.AST) -> _Node:
    """Set the position of a node, and of nodes in it, to that of the user's node where they have none."""
    position = at.__dict__
    where = {name: position[name] for name in _POSITION if name in position}
    stack: list[ast.AST] = [node]
    while stack:
        inner = stack.pop()
        if inner._attributes:
            held = inner.__dict__
            if "lineno" in held:
                continue
            held.update(where)
        stack += list_children(inner)
    return node


def has_calls(node: ast.expr) -> bool:
    """Whether an expression calls anything, which may record statements."""
    return any(isinstance(inner, ast.Call) for inner in walk_tree(node))


PLACES = (ast.Subscript, ast.Attribute)
