"""Liveness of local names: a backward analysis over the syntax tree of a function."""

import ast
from collections.abc import Iterable, Sequence

from vkdispatch.base.record import field, record
from vkdispatch.rewrite.syntax.nodes import list_children, walk_tree

Names = frozenset[str]
_NOTHING: Names = frozenset()
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


@record(frozen=False)
class Liveness:
    """Names that are read after each if, loop and match, and for loops from the start of a round on."""

    after: dict[ast.stmt, Names] = field(factory=dict)
    head: dict[ast.stmt, Names] = field(factory=dict)


@record
class _JumpTargets:
    broken: Names = _NOTHING
    continued: Names = _NOTHING


def analyze_liveness(body: Sequence[ast.stmt], inners: Iterable[ast.AST]) -> Liveness:
    """Analyse the body of a function. `inners` are all of its nodes.

    Names that nested functions mention are live everywhere.
    """
    result = Liveness()
    _Analysis(result, _list_captured_names(inners)).block(body, _NOTHING, _JumpTargets())
    return result


def _list_captured_names(inners: Iterable[ast.AST]) -> Names:
    names: set[str] = set()
    for node in inners:
        if isinstance(node, _SCOPES):
            for inner in walk_tree(node):
                if isinstance(inner, ast.Name):
                    names.add(inner.id)
                elif isinstance(inner, (ast.Nonlocal, ast.Global)):
                    names.update(inner.names)
    return frozenset(names)


def list_read_names(node: ast.AST | None) -> Names:
    """Names that an expression or statement reads, nested scopes included."""
    if node is None:
        return _NOTHING
    names: set[str] = set()
    for inner in walk_tree(node):
        if isinstance(inner, ast.Name):
            if not isinstance(inner.ctx, ast.Store):
                names.add(inner.id)
        elif isinstance(inner, ast.AugAssign) and isinstance(inner.target, ast.Name):
            names.add(inner.target.id)
    return frozenset(names)


def list_bound_names(roots: Iterable[ast.AST]) -> set[str]:
    """Names that statements bind or delete in their own scope, without those of nested functions."""
    names: set[str] = set()
    for root in roots:
        # kept at the node: each block around a statement asks
        known = getattr(root, "_vd_bound", None)
        if known is None:
            known = frozenset(_list_names_of(root) | list_bound_names(_list_binding_nodes(root)))
            root._vd_bound = known  # type: ignore[attr-defined]
        names |= known
    return names


def _list_names_of(node: ast.AST) -> set[str]:
    """Names that a node itself binds."""
    if isinstance(node, ast.Name):
        return set() if isinstance(node.ctx, ast.Load) else {node.id}
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
        return {node.name} if node.name else set()
    if isinstance(node, ast.MatchMapping):
        return {node.rest} if node.rest else set()
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    return set()


def _list_binding_nodes(node: ast.AST) -> Iterable[ast.AST]:
    """Nodes in a node that may bind names of the same scope."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return node.decorator_list
    if isinstance(node, ast.Lambda):
        return ()
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        # its own variables are its own; a walrus inside binds outside
        return [inner.target for inner in walk_tree(node) if isinstance(inner, ast.NamedExpr)]
    return list_children(node)


class _Analysis:
    def __init__(self, result: Liveness, always: Names) -> None:
        self.result = result
        self.always = always
        self._read: dict[ast.AST, Names] = {}

    def reads(self, node: ast.AST | None) -> Names:
        """Names that a node reads; loops ask again and again."""
        if node is None:
            return _NOTHING
        if node not in self._read:
            self._read[node] = list_read_names(node)
        return self._read[node]

    def block(self, statements: Sequence[ast.stmt], out: Names, targets: _JumpTargets) -> Names:
        for statement in reversed(statements):
            out = self.statement(statement, out, targets)
        return out

    def statement(self, node: ast.stmt, out: Names, targets: _JumpTargets) -> Names:
        if isinstance(node, ast.If):
            self.result.after[node] = out | self.always
            chosen = self.block(node.body, out, targets)
            return self.reads(node.test) | chosen | self.block(node.orelse, out, targets)
        if isinstance(node, (ast.While, ast.For)):
            return self.loop(node, out, targets)
        if isinstance(node, (ast.With, ast.AsyncWith)):
            inner = self.block(node.body, out, targets)
            for item in reversed(node.items):
                inner = (inner - _list_assigned_names(item.optional_vars)) | self.reads(item)
            return inner
        if isinstance(node, (ast.Try, ast.AsyncFor)) or type(node).__name__ == "TryStar":
            # a jump may come from anywhere inside
            everything = out | self.reads(node)
            for name in ("body", "orelse", "finalbody"):
                self.block(getattr(node, name, []), everything, targets)
            for handler in getattr(node, "handlers", []):
                self.block(handler.body, everything, targets)
            return everything
        if isinstance(node, ast.Match):
            self.result.after[node] = out | self.always
            entry = out | self.reads(node.subject)
            for case in node.cases:
                inner = self.block(case.body, out, targets)
                entry |= inner | self.reads(case.pattern) | self.reads(case.guard)
            return entry
        if isinstance(node, (ast.Return, ast.Raise)):
            return self.reads(node)
        if isinstance(node, ast.Break):
            return targets.broken
        if isinstance(node, ast.Continue):
            return targets.continued
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return (out - {node.name}) | self.reads(node)
        if isinstance(node, ast.Assign):
            for target in node.targets:
                out -= _list_assigned_names(target)
            return out | self.reads(node)
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            return (
                (out - _list_assigned_names(node.target)) | self.reads(node.value) | self.reads(node.target)
            )
        return out | self.reads(node)

    def loop(self, node: ast.While | ast.For, out: Names, targets: _JumpTargets) -> Names:
        self.result.after[node] = out | self.always
        ended = self.block(node.orelse, out, targets)
        test = self.reads(node.test) if isinstance(node, ast.While) else _NOTHING
        assigned = _list_assigned_names(node.target) if isinstance(node, ast.For) else _NOTHING
        head = ended | test
        while True:
            body = self.block(node.body, head, _JumpTargets(out, head))
            grown = head | (body - assigned)
            if grown == head:
                break
            head = grown
        self.result.head[node] = head | self.always
        if isinstance(node, ast.For):
            return head | self.reads(node.iter) | self.reads(node.target)
        return head


def _list_assigned_names(target: ast.AST | None) -> Names:
    """Names that an assignment certainly binds."""
    if target is None:
        return _NOTHING
    return frozenset(
        inner.id
        for inner in walk_tree(target)
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)
    )
