"""Rewriting of assignments and expressions whose meaning depends on whether Python knows a value."""

import ast
import copy
from collections.abc import Callable, Sequence
from typing import Any

from vkdispatch.control_flow.names import (
    PLACES,
    LocalNames,
    call,
    constant,
    copy_position,
    has_calls,
    is_whole,
    load,
    make_function,
    store,
    walk_tree,
)

# ---- Rewriting of expressions that mean other things for values of Python and of the GPU ------------------


_LEAVES = (ast.Name, ast.Constant, ast.expr_context, ast.operator, ast.cmpop, ast.unaryop)
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}


def _has_walrus(node: ast.expr) -> bool:
    return any(isinstance(inner, ast.NamedExpr) for inner in walk_tree(node))


class ExpressionRewriter(ast.NodeTransformer):
    """Rewrites one expression.

    `make_thunk` defines a function before the statement, for operands that bind names. Without it, in lambdas
    and comprehensions, such expressions are not rewritten.
    """

    def __init__(
        self, make_thunk: Callable[[ast.expr, ast.expr], ast.expr] | None = None, in_scope: bool = False
    ) -> None:
        self._make_thunk = make_thunk
        self._in_scope = in_scope

    def visit(self, node: ast.AST) -> Any:
        """Rewrite a node; leaves are returned as they are."""
        return node if isinstance(node, _LEAVES) else super().visit(node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Rewrite the children of a node."""
        held = node.__dict__
        for name in node._fields:
            value = held.get(name)
            if isinstance(value, list):
                value[:] = [self.visit(child) if isinstance(child, ast.AST) else child for child in value]
            elif isinstance(value, ast.AST):
                held[name] = self.visit(value)
        return node

    def _make_lazy(self, node: ast.expr, visit: Callable[[ast.expr], ast.expr] | None = None) -> ast.expr:
        """Wrap an operand in a function, so that it is evaluated only if needed."""
        rewritten = (visit or self.visit)(node)
        if _has_walrus(node):
            assert self._make_thunk is not None
            return self._make_thunk(node, rewritten)
        arguments = ast.arguments([], [], None, [], [], None, [])
        return ast.copy_location(ast.Lambda(arguments, rewritten), node)

    def _is_left_alone(self, operands: list[ast.expr]) -> bool:
        return (self._in_scope or self._make_thunk is None) and any(
            _has_walrus(operand) for operand in operands
        )

    def _call_runtime(self, node: ast.expr, method: str, *args: ast.expr) -> ast.expr:
        return copy_position(call("_vd_rt", method, *args), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """Rewrite `and` and `or`, which return one of their operands."""
        return self._join(node, self.visit, ("and_", "or_"))

    def test(self, node: ast.expr) -> ast.expr:
        """Rewrite an expression of which only the truth value is used."""
        if isinstance(node, ast.BoolOp):
            return self._join(node, self.test, ("test_and", "test_or"))
        result: ast.expr = self.visit(node)
        return result

    def _join(
        self, node: ast.BoolOp, visit: Callable[[ast.expr], ast.expr], names: tuple[str, str]
    ) -> ast.expr:
        if self._is_left_alone(node.values[1:]):
            kept: ast.expr = self.generic_visit(node)  # type: ignore[assignment]
            return kept
        first = visit(node.values[0])
        rest = [self._make_lazy(value, visit) for value in node.values[1:]]
        return self._call_runtime(node, names[0] if isinstance(node.op, ast.And) else names[1], first, *rest)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        """Rewrite `not` and `~`."""
        if isinstance(node.op, ast.Invert):
            return self._call_runtime(node, "invert", self.visit(node.operand))
        if not isinstance(node.op, ast.Not):
            return self.generic_visit(node)
        return self._call_runtime(node, "not_", self.test(node.operand))

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """Rewrite `a if test else b`."""
        if self._is_left_alone([node.body, node.orelse]):
            return self.generic_visit(node)
        test = self.test(node.test)
        return self._call_runtime(
            node, "choose", test, self._make_lazy(node.body), self._make_lazy(node.orelse)
        )

    def _freeze_items(self, nodes: list[ast.expr]) -> list[ast.expr]:
        """Rewrite the elements of a list or set."""
        values = [self.visit(node) for node in nodes]
        if all(isinstance(node, ast.Constant) for node in nodes):
            return values
        return [
            copy_position(
                ast.Starred(self._call_runtime(nodes[0], "freeze_items", *values), ast.Load()), nodes[0]
            )
        ]

    def visit_List(self, node: ast.List) -> ast.AST:
        """Rewrite a list, whose elements are frozen."""
        if not isinstance(node.ctx, ast.Load):
            return self.generic_visit(node)
        return ast.copy_location(ast.List(self._freeze_items(node.elts), node.ctx), node)

    def visit_Set(self, node: ast.Set) -> ast.AST:
        """Rewrite a set."""
        return ast.copy_location(ast.Set(self._freeze_items(node.elts)), node)

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        """Rewrite a dict, whose values are frozen."""
        result = self.generic_visit(node)
        assert isinstance(result, ast.Dict)
        pairs = zip(result.keys, result.values, strict=True)
        result.values = [value if key is None else self._freeze(value) for key, value in pairs]
        return result

    def _freeze(self, value: ast.expr) -> ast.expr:
        return value if isinstance(value, ast.Constant) else self._call_runtime(value, "freeze", value)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Rewrite chained comparisons and `in`."""
        if len(node.ops) == 1:
            if not isinstance(node.ops[0], (ast.In, ast.NotIn)):
                return self.generic_visit(node)
            left: ast.expr = self.visit(node.left)
            right: ast.expr = self.visit(node.comparators[0])
            negated = constant(isinstance(node.ops[0], ast.NotIn))
            return self._call_runtime(node, "contains", left, right, negated)
        if self._is_left_alone(node.comparators[1:]):
            return self.generic_visit(node)
        symbols = constant(tuple(_COMPARISONS[type(operator)] for operator in node.ops))
        first: ast.expr = self.visit(node.left)
        second: ast.expr = self.visit(node.comparators[0])
        rest = [self._make_lazy(value) for value in node.comparators[1:]]
        return self._call_runtime(node, "compare_chain", symbols, first, second, *rest)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Rewrite a call; the function that is called may be rewritten too."""
        node = ast.copy_location(
            ast.Call(
                self.visit(node.func),
                [self.visit(argument) for argument in node.args],
                [self.visit(keyword) for keyword in node.keywords],
            ),
            node,
        )
        node.func = self._call_runtime(node.func, "choose_callee", node.func)
        return node

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        """Rewrite `(name := value)`."""
        value: ast.expr = self.visit(node.value)
        label, fresh = constant(node.target.id), constant(isinstance(node.value, ast.Call))
        return ast.copy_location(
            ast.NamedExpr(node.target, self._call_runtime(node.value, "bind", value, label, fresh)), node
        )

    def visit_arguments(self, node: ast.arguments) -> ast.AST:
        """Rewrite the default values of parameters, which are frozen; annotations are left alone."""
        node = copy.copy(node)
        node.defaults = [self._freeze(self.visit(value)) for value in node.defaults]
        node.kw_defaults = [
            None if value is None else self._freeze(self.visit(value)) for value in node.kw_defaults
        ]
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        """Rewrite the body of a lambda."""
        args: ast.arguments = self.visit(node.args)
        inner = ExpressionRewriter(in_scope=True)
        return ast.copy_location(ast.Lambda(args, inner.visit(node.body)), node)

    def _comprehension(self, node: ast.expr) -> ast.AST:
        result = ExpressionRewriter(in_scope=True).generic_visit(node)
        if isinstance(result, ast.DictComp):
            result.value = self._freeze(result.value)
        elif isinstance(result, (ast.ListComp, ast.SetComp)):
            result.elt = self._freeze(result.elt)
        for generator in result.generators:  # type: ignore[attr-defined]
            generator.ifs = [
                self._call_runtime(test, "require_known", test, constant("the if of a comprehension"))
                for test in generator.ifs
            ]
        return result

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension  # noqa: N815

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        """Leave patterns alone: they are not expressions."""
        return node


# ---- Rewriting of assignments: a local variable gets a value of its own, a container a frozen one --------


class AssignmentRewriter:
    """Rewrites the assignments and expressions of one block; `out` are its new statements so far."""

    def __init__(self, names: LocalNames) -> None:
        self.names = names
        self.out: list[ast.stmt] = []

    def rewrite_expr(self, node: ast.expr) -> ast.expr:
        """Rewrite an expression; the functions that it needs are defined before the statement."""
        rewriter = ExpressionRewriter(make_thunk=self.define_thunk)
        result: ast.expr = rewriter.visit(node)
        return result

    def rewrite_test(self, node: ast.expr) -> ast.expr:
        """Rewrite an expression of which only the truth value is used."""
        return ExpressionRewriter(make_thunk=self.define_thunk).test(node)

    def define_thunk(self, node: ast.expr, rewritten: ast.expr) -> ast.expr:
        """Define a function that evaluates an expression which binds names; returns its name."""
        name = self.names.new_name()
        body = [*self.names.list_declarations([node]), ast.Return(rewritten)]
        self.out.append(copy_position(make_function(name, body), node))
        return copy_position(load(name), node)

    def on_Assign(self, node: ast.Assign) -> None:  # noqa: N802
        """Rewrite `target = value`."""
        value = self.rewrite_value(node.targets, node.value)
        targets = [self.rewrite_target(target) for target in node.targets]
        self.out.append(ast.copy_location(ast.Assign(targets, value), node))

    def on_AnnAssign(self, node: ast.AnnAssign) -> None:  # noqa: N802
        """Rewrite `target: annotation = value`; the annotation is dropped."""
        if node.value is None:
            self.out.append(ast.copy_location(ast.Pass(), node))
        else:
            self.on_Assign(ast.copy_location(ast.Assign([node.target], node.value), node))

    def on_AugAssign(self, node: ast.AugAssign) -> None:  # noqa: N802
        """Rewrite `target += value` and similar."""
        if not isinstance(node.target, ast.Name):
            value = self.freeze_for_place(node.target, node.value)
            target = self.rewrite_target(node.target)
            assert isinstance(target, PLACES)
            self.out.append(ast.copy_location(ast.AugAssign(target, node.op, value), node))
            return
        name = node.target.id
        operands = (constant(type(node.op).__name__), load(name), self.rewrite_expr(node.value))
        value = call("_vd_f", "augment", *operands, constant(name))
        self.out.append(copy_position(ast.Assign([node.target], copy_position(value, node)), node))

    def rewrite_value(self, targets: Sequence[ast.expr], value: ast.expr) -> ast.expr:
        """Rewrite an assigned value: a local variable gets a value of its own."""
        if len(targets) == 1 and isinstance(targets[0], PLACES):
            return self.freeze_for_place(targets[0], value)
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        patterns = [target for target in targets if isinstance(target, (ast.Tuple, ast.List))]
        if not names and not patterns:
            return self.rewrite_expr(value)
        label = names[0] if names and names[0] != "_" else None
        if any(name in self.names.aliases for name in names):
            whole = constant(not any(name in self.names.parts for name in names))
            copied = call("_vd_f", "make_assignable", self.rewrite_expr(value), constant(label), whole)
            return copy_position(copied, value)
        if isinstance(value, ast.Tuple) and not any(isinstance(part, ast.Starred) for part in value.elts):
            of_part = [
                [target.elts[i] for target in patterns if len(target.elts) == len(value.elts)] or [store("_")]
                for i in range(len(value.elts))
            ]
            parts = [
                self.rewrite_value(inner if not names else [store("_")], part)
                for inner, part in zip(of_part, value.elts, strict=True)
            ]
            if any(is_whole(target) for inner in of_part for target in inner):
                # a[:], b[:] = b, a stores what both were before
                parts = [copy_position(call("_vd_f", "value_of", part), part) for part in parts]
            return ast.copy_location(ast.Tuple(parts, ast.Load()), value)
        if isinstance(value, ast.Name) and value.id == "_vd_item":
            return value
        fresh = isinstance(value, ast.Call)
        return copy_position(
            call("_vd_f", "bind", self.rewrite_expr(value), constant(label), constant(fresh)), value
        )

    def rewrite_target(self, node: ast.expr) -> ast.expr:
        """Rewrite the target of an assignment, which may be a part of a vector in a list or object."""
        if isinstance(node, (ast.Tuple, ast.List)):
            node.elts = [self.rewrite_target(inner) for inner in node.elts]
            return node
        root: ast.expr = node
        while isinstance(root, PLACES):
            root = root.value
        if isinstance(node, PLACES) and isinstance(node.value, PLACES) and isinstance(root, ast.Name):
            owner = load(root.id) if has_calls(node.value) else copy.deepcopy(node.value)
            whole = constant(is_whole(node))
            copied = call("_vd_f", "make_assignable", self.rewrite_expr(owner), constant(root.id), whole)
            held = ast.BoolOp(ast.And(), [call("_vd_f", "is_container", load(root.id)), copied])
            self.out.append(copy_position(ast.Expr(held), node))
        return self.rewrite_expr(node)

    def freeze_for_place(self, target: ast.expr, value: ast.expr) -> ast.expr:
        """Rewrite a value for an element or attribute: lists and objects get a frozen value."""
        assert isinstance(target, PLACES)
        owner: ast.expr = target.value
        while isinstance(owner, ast.Attribute):
            owner = owner.value
        if isinstance(value, ast.Constant) or not isinstance(owner, ast.Name):
            return self.rewrite_expr(value)
        place = copy.deepcopy(target.value)
        return copy_position(call("_vd_f", "freeze_for_place", place, self.rewrite_expr(value)), value)
