"""Which local names matter after a statement: backward analysis over a function's syntax tree."""

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

Names = frozenset[str]
_NOTHING: Names = frozenset()
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


@dataclass(slots=True)
class Liveness:
    """For each if, loop and match, by node: names read afterwards, and for a loop those read from its head."""

    after: dict[ast.stmt, Names] = field(default_factory=dict)
    head: dict[ast.stmt, Names] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Targets:
    broken: Names = _NOTHING
    continued: Names = _NOTHING


def liveness(body: Sequence[ast.stmt]) -> Liveness:
    """Analyse the body of a function. Names that nested functions mention are read everywhere."""
    result = Liveness()
    _Analysis(result, _captured(body)).block(body, _NOTHING, _Targets())
    return result


def _captured(body: Iterable[ast.AST]) -> Names:
    names: set[str] = set()
    for root in body:
        for node in ast.walk(root):
            if isinstance(node, _SCOPES):
                names.update(inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name))
                for inner in ast.walk(node):
                    if isinstance(inner, (ast.Nonlocal, ast.Global)):
                        names.update(inner.names)
    return frozenset(names)


def read_names(node: ast.AST | None) -> Names:
    """Names that an expression or statement reads, nested scopes included."""
    if node is None:
        return _NOTHING
    return frozenset(
        inner.id
        for inner in ast.walk(node)
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, (ast.Load, ast.Del))
    ) | frozenset(
        inner.target.id
        for inner in ast.walk(node)
        if isinstance(inner, ast.AugAssign) and isinstance(inner.target, ast.Name)
    )


def bound_names(roots: Iterable[ast.AST]) -> set[str]:
    """Names that statements bind or delete in their own scope, without those of nested functions."""
    names: set[str] = set()
    stack: list[ast.AST] = list(roots)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            names.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
            stack.extend(node.decorator_list)
            continue
        elif isinstance(node, ast.Lambda):
            continue
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            # its own variables are its own; a walrus inside binds outside
            names.update(
                inner.target.id
                for inner in ast.walk(node)
                if isinstance(inner, ast.NamedExpr) and isinstance(inner.target, ast.Name)
            )
            continue
        elif (isinstance(node, ast.ExceptHandler) and node.name) or (isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name):
            names.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            names.add(node.rest)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
        stack.extend(ast.iter_child_nodes(node))
    return names


class _Analysis:
    def __init__(self, result: Liveness, always: Names) -> None:
        self.result = result
        self.always = always

    def block(self, statements: Sequence[ast.stmt], out: Names, targets: _Targets) -> Names:
        for statement in reversed(statements):
            out = self.statement(statement, out, targets)
        return out

    def statement(self, node: ast.stmt, out: Names, targets: _Targets) -> Names:
        if isinstance(node, ast.If):
            self.result.after[node] = out | self.always
            chosen = self.block(node.body, out, targets)
            return read_names(node.test) | chosen | self.block(node.orelse, out, targets)
        if isinstance(node, (ast.While, ast.For)):
            return self.loop(node, out, targets)
        if isinstance(node, (ast.With, ast.AsyncWith)):
            inner = self.block(node.body, out, targets)
            for item in reversed(node.items):
                inner = (inner - _plain(item.optional_vars)) | read_names(item)
            return inner
        if isinstance(node, (ast.Try, ast.AsyncFor)) or type(node).__name__ == "TryStar":
            # a jump may come from anywhere inside
            everything = out | read_names(node)
            for name in ("body", "orelse", "finalbody"):
                self.block(getattr(node, name, []), everything, targets)
            for handler in getattr(node, "handlers", []):
                self.block(handler.body, everything, targets)
            return everything
        if isinstance(node, ast.Match):
            self.result.after[node] = out | self.always
            entry = out | read_names(node.subject)
            for case in node.cases:
                inner = self.block(case.body, out, targets)
                entry |= inner | read_names(case.pattern) | read_names(case.guard)
            return entry
        if isinstance(node, (ast.Return, ast.Raise)):
            return read_names(node)
        if isinstance(node, ast.Break):
            return targets.broken
        if isinstance(node, ast.Continue):
            return targets.continued
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return (out - {node.name}) | read_names(node)
        if isinstance(node, ast.Assign):
            for target in node.targets:
                out -= _plain(target)
            return out | read_names(node)
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            return (out - _plain(node.target)) | read_names(node.value) | read_names(node.target)
        return out | read_names(node)

    def loop(self, node: ast.While | ast.For, out: Names, targets: _Targets) -> Names:
        self.result.after[node] = out | self.always
        ended = self.block(node.orelse, out, targets)
        test = read_names(node.test) if isinstance(node, ast.While) else _NOTHING
        assigned = _plain(node.target) if isinstance(node, ast.For) else _NOTHING
        head = ended | test
        while True:
            body = self.block(node.body, head, _Targets(out, head))
            grown = head | (body - assigned)
            if grown == head:
                break
            head = grown
        self.result.head[node] = head | self.always
        if isinstance(node, ast.For):
            return head | read_names(node.iter) | read_names(node.target)
        return head


def _plain(target: ast.AST | None) -> Names:
    """Names that an assignment certainly binds."""
    if target is None:
        return _NOTHING
    return frozenset(
        inner.id
        for inner in ast.walk(target)
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)
    )
