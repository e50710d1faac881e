"""Rewriting of syntax trees: control flow becomes calls of methods of a frame."""

import ast
import copy
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from vkdispatch.control_flow.expressions import AssignmentRewriter, ExpressionRewriter
from vkdispatch.control_flow.names import (
    LocalNames,
    call,
    constant,
    copy_position,
    find_computing_error,
    is_generator,
    iterate_own_nodes,
    list_bound_names,
    list_read_names,
    load,
    make_function,
    store,
    walk_tree,
)

# ---- Conversion of `match` by values to a chain of ifs, which also works for GPU values ------------------


def convert_match(node: ast.Match, subject: str) -> ast.If | None:
    """Return the chain of ifs that does what a match of values does, or None for other patterns.

    `subject` names the variable that will hold what is matched.
    """
    chain: list[ast.stmt] = []
    for case in reversed(node.cases):
        conversion = _convert_case(case, subject)
        if conversion is None:
            return None
        test, prologue = conversion
        body = [*prologue, *case.body]
        if test is None:
            chain = body
            continue
        for new in (test, *body):
            copy_position(new, case.pattern)
        chain = [ast.copy_location(ast.If(test, body, chain), case.pattern)]
    if len(chain) != 1 or not isinstance(chain[0], ast.If):
        return None
    return ast.fix_missing_locations(chain[0])


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


# Every block of statements becomes a nested function without arguments whose assigned names are nonlocal.
# The frame can then run the block once, repeatedly or not at all, and access the local variables through
# their cells. A block function returns None at its end, and a signal if a jump leaves it. Positions remain
# those of the user's source.


# An if with more branches is rewritten without nesting.
_LONG_CHAIN = 8


def rewrite_function(node: ast.FunctionDef, enclosing: frozenset[str]) -> ast.FunctionDef:
    """Rewrite a function. `enclosing` are the local names of the functions around it."""
    names = LocalNames(node, enclosing)
    new_names = sorted(names.assigned - set(names.parameters))
    prologue: list[ast.stmt] = []
    if names.globals:
        prologue.append(ast.Global(sorted(names.globals)))
    if new_names:
        # never runs: makes the names local to this function, so that the blocks share them
        nothing = ast.Assign([store(name) for name in new_names], constant(None))
        prologue.append(ast.If(constant(0), [nothing], []))
    every = sorted(names.enclosing & (names.assigned | set(names.parameters)) | names.free)
    cells = make_function("_vd_cells", [ast.Return(ast.Tuple([load(name) for name in every], ast.Load()))])
    sets = (names.free, names.rebound, names.aliases, names.parts, names.globals)
    mentioned = tuple(sorted(names.mentioned - names.enclosing - names.free - names.globals))
    lists = (tuple(sorted(group)) for group in sets)
    facts = (node.name, names.early, tuple(names.parameters), *lists, mentioned)
    frame = call("_vd_rt", "enter", load("_vd_cells"), constant(facts))
    prologue += [cells, ast.Assign([store("_vd_f")], frame)]
    block = _Statements(names).make_block("_vd_body", node.body, node)
    ending = ast.Return(call("_vd_f", "run", load("_vd_body")))
    statements = [*prologue, block, ending]
    for statement in statements:
        copy_position(statement, node)
    result = ast.FunctionDef(
        node.name, node.args, statements, node.decorator_list, node.returns, node.type_comment
    )
    if hasattr(node, "type_params"):
        result.type_params = node.type_params  # type: ignore[attr-defined]
    return ast.copy_location(result, node)


def rewrite_lambda(node: ast.Lambda) -> ast.Lambda:
    """Rewrite a lambda."""
    return ast.copy_location(ast.Lambda(node.args, ExpressionRewriter(in_scope=True).visit(node.body)), node)


def _split_branches(node: ast.If) -> tuple[list[ast.If], list[ast.stmt]]:
    """Return the branches of an if in order, and the statements of its else."""
    branches = [node]
    while len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        node = node.orelse[0]
        branches.append(node)
    return branches, node.orelse


def _opens_kernel_block(context: ast.expr) -> bool:
    """Whether a `with` statement opens a block of the kernel, such as `vc.scope_block()`."""
    function = context.func if isinstance(context, ast.Call) else context
    return str(getattr(function, "attr", None) or getattr(function, "id", "")).endswith("_block")


def _make_tuple(names: Iterable[str]) -> ast.expr:
    return constant(tuple(sorted(names)))


class _Statements(AssignmentRewriter):
    """Rewrites the statements of one block function."""

    def rewrite_block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        saved, self.out = self.out, []
        for statement in statements:
            self.rewrite_statement(statement)
        result, self.out = self.out, saved
        return result

    def make_block(
        self, name: str, body: Sequence[ast.stmt], at: ast.AST, prologue: Sequence[ast.stmt] = ()
    ) -> ast.FunctionDef:
        """Make the nested function of a block; `prologue` runs first and is rewritten too."""
        statements = [*prologue, *body]
        inner = _Statements(self.names).rewrite_block(statements)
        return copy_position(make_function(name, [*self.names.list_declarations(statements), *inner]), at)

    def define_block(self, body: Sequence[ast.stmt]) -> ast.expr:
        """Define the nested function of a block; returns its name, or None for no statements."""
        if not body:
            return constant(None)
        block = self.make_block(self.names.new_name(), body, body[0])
        self.out.append(block)
        return load(block.name)

    def rewrite_statement(self, node: ast.stmt) -> None:
        method = getattr(self, f"on_{type(node).__name__}", None)
        if method is not None:
            method(node)
            return
        rewriter = ExpressionRewriter(make_thunk=self.define_thunk)
        self.out.append(rewriter.generic_visit(node))  # type: ignore[arg-type]

    def leave_block(self, method: str, at: ast.AST, *values: ast.expr) -> None:
        """Leave the block, and tell whether this leaves a `with` or `finally` block too."""
        guarded = False
        for entry in reversed(self.names.around):
            if entry == "loop" and method != "return_":
                break
            guarded |= entry == "guard"
        value = call("_vd_f", method, constant(guarded), *values)
        self.out.append(copy_position(ast.Return(value), at))

    @contextmanager
    def open_entries(self, *entries: str) -> Iterator[None]:
        """Note open constructs around the statements that are rewritten meanwhile."""
        self.names.around.extend(entries)
        yield
        del self.names.around[len(self.names.around) - len(entries) :]

    def call_construct(self, value: ast.expr, at: ast.AST) -> None:
        """Append the call of a construct, and leave the block if the call returns a signal."""
        name = "_vd_s"
        test = ast.Compare(ast.NamedExpr(store(name), value), [ast.IsNot()], [constant(None)])
        self.out.append(copy_position(ast.If(test, [ast.Return(load(name))], []), at))

    # -- jumps

    def on_Return(self, node: ast.Return) -> None:  # noqa: N802
        value = [] if node.value is None else [self.rewrite_expr(node.value)]
        self.leave_block("return_", node, *value)

    def on_Break(self, node: ast.Break) -> None:  # noqa: N802
        self.leave_block("break_", node)

    def on_Continue(self, node: ast.Continue) -> None:  # noqa: N802
        self.leave_block("continue_", node)

    # -- constructs

    def on_If(self, node: ast.If) -> None:  # noqa: N802
        function = self.names
        branches, last = _split_branches(node)
        if len(branches) > _LONG_CHAIN:
            self.rewrite_long_chain(node, branches, last)
            return
        test = self.rewrite_test(node.test)
        blocks = [self.define_block(body) for body in (node.body, node.orelse)]
        after = _make_tuple(function.liveness.after[node])
        self.call_construct(call("_vd_f", "if_", test, *blocks, after), node.test)

    def rewrite_long_chain(self, node: ast.If, branches: Sequence[ast.If], last: Sequence[ast.stmt]) -> None:
        """Rewrite many branches without nesting, which would be too deep for Python."""
        pairs: list[ast.expr] = []
        for branch in branches:
            test = self.define_test(branch.test)
            pairs.append(ast.Tuple([load(test), self.define_block(branch.body)], ast.Load()))
        orelse = self.define_block(last)
        after = _make_tuple(self.names.liveness.after[node])
        self.call_construct(call("_vd_f", "ifs_", ast.Tuple(pairs, ast.Load()), orelse, after), node.test)

    def define_test(self, test: ast.expr) -> str:
        """Define a function that evaluates a condition; returns its name."""
        function = make_function(self.names.new_name(), [])
        inner = _Statements(self.names)
        value = inner.rewrite_test(test)
        function.body = [
            *self.names.list_declarations([test]),
            *inner.out,
            copy_position(ast.Return(value), test),
        ]
        self.out.append(copy_position(function, test))
        return function.name

    def on_While(self, node: ast.While) -> None:  # noqa: N802
        test = load(self.define_test(node.test))
        with self.open_entries("loop"):
            body = self.define_block(node.body)
        facts = self.make_loop_arguments(node, list_bound_names([node.test, *node.body]))
        self.call_construct(call("_vd_f", "while_", test, body, *facts), node.test)

    def on_For(self, node: ast.For) -> None:  # noqa: N802
        function = self.names
        items = self.rewrite_expr(node.iter)
        name = function.new_name()
        # the target is assigned like any other, from the block's one parameter
        prologue = copy_position(ast.Assign([node.target], load("_vd_item")), node.target)
        with self.open_entries("loop"):
            body = self.make_block(name, node.body, node.body[0], [prologue])
        body.args.args.append(copy_position(ast.arg("_vd_item"), node.target))
        self.out.append(body)
        target = node.target.id if isinstance(node.target, ast.Name) else None
        assigned = list_bound_names([node.target, *node.body])
        facts = self.make_loop_arguments(node, assigned)
        self.call_construct(call("_vd_f", "for_", items, load(name), constant(target), *facts), node.iter)

    def make_loop_arguments(self, node: ast.While | ast.For, assigned: set[str]) -> list[ast.expr]:
        """Return the else block of a loop and its `LoopNames`, the last arguments of `while_` and `for_`."""
        function = self.names
        orelse = self.define_block(node.orelse)
        jumps = any(
            isinstance(inner, (ast.Break, ast.Continue, ast.Return)) for inner in iterate_own_nodes(node.body)
        )
        names = (assigned, function.liveness.head[node], function.liveness.after[node])
        return [orelse, constant((*(tuple(sorted(group)) for group in names), jumps))]

    def on_Match(self, node: ast.Match) -> None:  # noqa: N802
        name = self.names.new_name()
        branches = convert_match(node, name)
        if branches is not None:
            self.out.append(
                copy_position(ast.Assign([store(name)], self.rewrite_expr(node.subject)), node.subject)
            )
            after = self.names.liveness.after[node]
            for branch in walk_tree(branches):
                if isinstance(branch, ast.If) and branch not in self.names.liveness.after:
                    self.names.liveness.after[branch] = after | list_read_names(branches)
            self.on_If(branches)
            return
        cases = [
            ast.match_case(
                case.pattern,
                None if case.guard is None else self.rewrite_expr(case.guard),
                self.rewrite_block(case.body),
            )
            for case in node.cases
        ]
        what = constant("a match by other patterns than values, | and _")
        subject = copy_position(
            call("_vd_rt", "require_known", self.rewrite_expr(node.subject), what), node.subject
        )
        self.out.append(ast.copy_location(ast.Match(subject, cases), node))

    def on_Assert(self, node: ast.Assert) -> None:  # noqa: N802
        test = load(self.define_test(node.test))
        arguments = ast.arguments([], [], None, [], [], None, [])
        message = constant(None) if node.msg is None else ast.Lambda(arguments, self.rewrite_expr(node.msg))
        holds = call("_vd_rt", "check_assert", test, copy_position(message, node))
        again = None if node.msg is None else self.rewrite_expr(copy.deepcopy(node.msg))
        self.out.append(ast.copy_location(ast.Assert(copy_position(holds, node.test), again), node))

    # -- statements that hold others

    def on_With(self, node: ast.With) -> None:  # noqa: N802
        items = [
            ast.withitem(
                self.rewrite_expr(item.context_expr),
                None if item.optional_vars is None else self.rewrite_expr(item.optional_vars),
            )
            for item in node.items
        ]
        known = all(_opens_kernel_block(item.context_expr) for item in node.items)
        with self.open_entries(*([] if known else ["guard"])):
            body = self.rewrite_block(node.body)
        self.out.append(ast.copy_location(ast.With(items, body), node))

    def on_Try(self, node: ast.Try) -> None:  # noqa: N802
        with self.open_entries(*(["guard"] if node.finalbody else [])):
            body = self.rewrite_block(node.body)
            caught = find_computing_error(node)
            if caught:
                begin = call("_vd_rt", "begin_try", constant(node.lineno))
                end = call("_vd_rt", "end_try", constant(node.lineno), constant(caught))
                body = [
                    copy_position(ast.Expr(begin), node),
                    *body,
                    copy_position(ast.Expr(end), node.handlers[0].type or node),
                ]
            # what the tracer raises for itself is not the kernel's to catch
            retry = ast.Attribute(load("_vd_rt"), "Retry", ast.Load())
            handlers = [] if type(node) is not ast.Try else [ast.ExceptHandler(retry, None, [ast.Raise()])]
            handlers = [copy_position(handler, node) for handler in handlers] if node.handlers else []
            handlers += [
                ast.copy_location(
                    ast.ExceptHandler(handler.type, handler.name, self.rewrite_block(handler.body)), handler
                )
                for handler in node.handlers
            ]
            orelse = self.rewrite_block(node.orelse)
        last = self.rewrite_block(node.finalbody)
        self.out.append(ast.copy_location(type(node)(body, handlers, orelse, last), node))

    on_TryStar = on_Try  # noqa: N815

    def on_FunctionDef(self, node: ast.FunctionDef) -> None:  # noqa: N802
        if not is_generator(node, walk_tree(node)):
            outer = ExpressionRewriter(make_thunk=self.define_thunk)
            node = rewrite_function(node, frozenset(self.names.enclosing))
            node.decorator_list = [outer.visit(decorator) for decorator in node.decorator_list]
            node.args = outer.visit(node.args)
        self.out.append(node)

    def keep_statement(self, node: ast.stmt) -> None:
        self.out.append(node)

    on_AsyncFunctionDef = on_ClassDef = keep_statement  # noqa: N815

    def drop_declaration(self, node: ast.stmt) -> None:
        """Drop a declaration that each block repeats."""
        self.out.append(ast.copy_location(ast.Pass(), node))

    on_Global = on_Nonlocal = drop_declaration  # noqa: N815
