"""Rewriting of assignments: a local variable gets a value of its own, a container a frozen one."""

import ast
import copy
from collections.abc import Sequence

from vkdispatch.rewrite.syntax.expressions import ExpressionRewriter
from vkdispatch.rewrite.syntax.local_names import LocalNames, is_whole
from vkdispatch.rewrite.syntax.nodes import (
    PLACES,
    call,
    constant,
    copy_position,
    has_calls,
    load,
    make_function,
    store,
)


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
        value = call(load("_vd_f"), "augment", *operands, constant(name))
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
            own = call(load("_vd_f"), "make_assignable", self.rewrite_expr(value), constant(label), whole)
            return copy_position(own, value)
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
                parts = [copy_position(call(load("_vd_f"), "value_of", part), part) for part in parts]
            return ast.copy_location(ast.Tuple(parts, ast.Load()), value)
        if isinstance(value, ast.Name) and value.id == "_vd_item":
            return value
        fresh = isinstance(value, ast.Call)
        return copy_position(
            call(load("_vd_f"), "bind", self.rewrite_expr(value), constant(label), constant(fresh)),
            value,
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
            own = call(
                *(load("_vd_f"), "make_assignable", self.rewrite_expr(owner)),
                *(constant(root.id), constant(is_whole(node))),
            )
            held = ast.BoolOp(ast.And(), [call(load("_vd_f"), "is_container", load(root.id)), own])
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
        return copy_position(call(load("_vd_f"), "freeze_for_place", place, self.rewrite_expr(value)), value)
