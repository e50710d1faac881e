"""Conversion of `match` by values to a chain of ifs, which also works for GPU values."""

import ast

from vkdispatch.rewrite.syntax.nodes import constant, copy_position, load, store


def convert_match(node: ast.Match, subject: str) -> ast.If | None:
    """Return the chain of ifs that does what a match of values does, or None for other patterns.

    `subject` names the variable that will hold what is matched.
    """
    branches: list[tuple[ast.expr | None, list[ast.stmt]]] = []
    for case in node.cases:
        found = _convert_case(case, subject)
        if found is None:
            return None
        test, prologue = found
        branches.append((test, [*prologue, *case.body]))
    orelse: list[ast.stmt] = []
    for test, body in reversed(branches):
        if test is None:
            orelse = body
            continue
        orelse = [ast.If(test, body, orelse)]
    chain = orelse[0] if len(orelse) == 1 else None
    if not isinstance(chain, ast.If):
        return None
    for case, inner in zip(node.cases, _list_branches(chain), strict=False):
        copy_position(inner.test, case.pattern)
        for statement in inner.body:
            copy_position(statement, case.pattern)
        ast.copy_location(inner, case.pattern)
    return ast.fix_missing_locations(chain)


def _list_branches(node: ast.If) -> list[ast.If]:
    found = [node]
    while (
        len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If) and not hasattr(node.orelse[0], "lineno")
    ):
        node = node.orelse[0]
        found.append(node)
    return found


def _convert_case(case: ast.match_case, subject: str) -> tuple[ast.expr | None, list[ast.stmt]] | None:
    """Return the condition of a case (None: always) and its assignments, or None for other patterns."""
    pattern = case.pattern
    if isinstance(pattern, ast.MatchAs) and pattern.pattern is None:
        if pattern.name is None:
            return case.guard, []
        if case.guard is not None:
            return None
        return None, [ast.Assign([store(pattern.name)], load(subject))]
    prologue: list[ast.stmt] = []
    if (
        isinstance(pattern, ast.MatchAs)
        and pattern.pattern is not None
        and pattern.name
        and case.guard is None
    ):
        prologue = [ast.Assign([store(pattern.name)], load(subject))]
        pattern = pattern.pattern
    test = _convert_pattern(pattern, subject)
    if test is None:
        return None
    if case.guard is not None:
        test = ast.BoolOp(ast.And(), [test, case.guard])
    return test, prologue


def _convert_pattern(pattern: ast.pattern, subject: str) -> ast.expr | None:
    if isinstance(pattern, ast.MatchValue):
        return ast.Compare(load(subject), [ast.Eq()], [pattern.value])
    if isinstance(pattern, ast.MatchSingleton) and pattern.value is None:
        return ast.Compare(load(subject), [ast.Is()], [constant(None)])
    if isinstance(pattern, ast.MatchOr):
        tests = [_convert_pattern(inner, subject) for inner in pattern.patterns]
        known = [test for test in tests if test is not None]
        return ast.BoolOp(ast.Or(), known) if len(known) == len(tests) else None
    return None
