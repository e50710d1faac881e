"""Traversal of syntax trees: faster versions of `ast.walk` and `ast.iter_child_nodes`.

Contexts such as `ast.Load` are omitted.
"""

import ast

# Most nodes, with nothing below.
_LEAVES = frozenset((ast.Name, ast.Constant, ast.Pass, ast.Break, ast.Continue))
_NOTHING: list[ast.AST] = []


def children(node: ast.AST) -> list[ast.AST]:
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
        elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
            found.append(value)
    return found


def walk(root: ast.AST) -> list[ast.AST]:
    """Return a node and all of its descendants, parents first."""
    found = [root]
    for node in found:
        found += children(node)
    return found
