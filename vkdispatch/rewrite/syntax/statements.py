"""Rewriting of syntax trees: control flow becomes calls of the runtime module.

Every block of statements becomes a nested function without arguments whose assigned names are nonlocal. The
runtime can then run the block once, repeatedly or not at all, and access the local variables through their
cells. A block function returns None at its end, and a signal if a jump leaves it. Positions remain those of
the user's source.
"""

import ast
import copy
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from vkdispatch.rewrite.syntax.expressions import (
    ExpressionRewriter,
    call,
    constant,
    copy_position,
    has_calls,
    load,
    plain_def,
    store,
)
from vkdispatch.rewrite.syntax.liveness import Liveness, analyze_liveness, bound_names, read_names
from vkdispatch.rewrite.syntax.match_statements import convert_match
from vkdispatch.rewrite.syntax.nodes import children, walk

# An if with more branches is rewritten without nesting.
_LONG_CHAIN = 8
_PLACES = (ast.Subscript, ast.Attribute)
_GENERATORS = (ast.Yield, ast.YieldFrom, ast.Await)
_CONTROL = (
    ast.If,
    ast.While,
    ast.For,
    ast.Match,
    ast.BoolOp,
    ast.IfExp,
    ast.Not,
    ast.Assert,
    ast.comprehension,
    ast.In,
    ast.NotIn,
)


def own_nodes(roots: Iterable[ast.AST]) -> Iterable[ast.AST]:
    """Yield the nodes of a function's own scope, without those of nested functions and classes."""
    stack = list(roots)
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            stack.extend(children(node))


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
            if isinstance(owner, _PLACES) or (isinstance(owner, ast.Name) and owner.id in bound):
                return True
        if isinstance(inner, (ast.With, ast.Try)) and any(
            isinstance(jump, (ast.Return, ast.Break, ast.Continue)) for jump in walk(inner)
        ):
            return True
    return False


def is_generator(node: ast.FunctionDef, inners: Iterable[ast.AST]) -> bool:
    """Whether a function yields or awaits; such functions are not rewritten."""
    return any(isinstance(inner, _GENERATORS) for inner in inners) and any(
        isinstance(inner, _GENERATORS) for inner in own_nodes(node.body)
    )


def rewrite_function(node: ast.FunctionDef, enclosing: frozenset[str]) -> ast.FunctionDef:
    """Rewrite a function. `enclosing` are the local names of the functions around it."""
    return _Unit(node, enclosing).rewrite()


def rewrite_lambda(node: ast.Lambda) -> ast.Lambda:
    """Rewrite a lambda."""
    return ast.copy_location(ast.Lambda(node.args, ExpressionRewriter(in_scope=True).visit(node.body)), node)


class _Unit:
    """One function being rewritten: its names, and a counter for block names."""

    def __init__(self, node: ast.FunctionDef, enclosing: frozenset[str]) -> None:
        self.node = node
        declared: dict[type[ast.stmt], set[str]] = {ast.Global: set(), ast.Nonlocal: set()}
        head = [node.args, *node.decorator_list, *([node.returns] if node.returns else [])]
        inners = [inner for statement in node.body for inner in walk(statement)]
        own = list(own_nodes(node.body))
        for inner in own:
            if isinstance(inner, (ast.Global, ast.Nonlocal)):
                declared[type(inner)].update(inner.names)
        self.globals = declared[ast.Global]
        self.nonlocals = declared[ast.Nonlocal]
        args = node.args
        rest = [arg for arg in (args.vararg, args.kwarg) if arg is not None]
        self.parameters = [arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs, *rest)]
        self.assigned = bound_names(node.body) - self.globals - self.nonlocals
        local = self.assigned | set(self.parameters)
        self.mentioned = {inner.id for inner in inners if isinstance(inner, ast.Name)}
        self.mentioned.update(
            inner.id for root in head for inner in walk(root) if isinstance(inner, ast.Name)
        )
        self.free = (self.mentioned & enclosing - local) | self.nonlocals
        self.rebound = self.free & _list_nonlocals(inners)
        # whether it may return before its end
        self.early = any(isinstance(inner, ast.Return) and inner is not node.body[-1] for inner in own)
        self.enclosing = enclosing | local
        self.liveness: Liveness = analyze_liveness(node.body, inners)
        self.aliases = _find_aliases(inners)
        # open constructs around a statement: loops, and `with` and `finally` blocks
        self.around: list[str] = []
        self._count = 0

    def rewrite(self) -> ast.FunctionDef:
        node, body = self.node, self.node.body
        new_names = sorted(self.assigned - set(self.parameters))
        prologue: list[ast.stmt] = []
        if self.globals:
            prologue.append(ast.Global(sorted(self.globals)))
        if new_names:
            # never runs: makes the names local to this function, so that the blocks share them
            nothing = ast.Assign([store(name) for name in new_names], constant(None))
            prologue.append(ast.If(constant(0), [nothing], []))
        every = sorted(self.enclosing & (self.assigned | set(self.parameters)) | self.free)
        cells = plain_def("_vd_cells", [ast.Return(ast.Tuple([load(name) for name in every], ast.Load()))])
        sets = (self.free, self.rebound, self.aliases, self.globals)
        mentioned = tuple(sorted(self.mentioned - self.enclosing - self.free - self.globals))
        lists = (tuple(sorted(names)) for names in sets)
        facts = (node.name, self.early, tuple(self.parameters), *lists, mentioned)
        frame = call(load("_vd_rt"), "enter", load("_vd_cells"), constant(facts))
        prologue += [cells, ast.Assign([store("_vd_f")], frame)]
        block = self.block("_vd_body", body, node)
        ending = ast.Return(call(load("_vd_f"), "run", load("_vd_body")))
        statements = [*prologue, block, ending]
        for statement in statements:
            copy_position(statement, node)
        result = ast.FunctionDef(
            node.name, node.args, statements, node.decorator_list, node.returns, node.type_comment
        )
        if hasattr(node, "type_params"):
            result.type_params = node.type_params  # type: ignore[attr-defined]
        return ast.copy_location(result, node)

    def new_name(self) -> str:
        self._count += 1
        return f"_vd_b{self._count}"

    def declarations(self, body: Sequence[ast.AST]) -> list[ast.stmt]:
        """Return the declarations of the names that a block binds and the function owns."""
        bound = bound_names(body)
        result: list[ast.stmt] = []
        shared = bound & (self.assigned | set(self.parameters) | self.nonlocals)
        if shared:
            result.append(ast.Nonlocal(sorted(shared)))
        if bound & self.globals:
            result.append(ast.Global(sorted(bound & self.globals)))
        return result

    def block(
        self, name: str, body: Sequence[ast.stmt], at: ast.AST, prologue: Sequence[ast.stmt] = ()
    ) -> ast.FunctionDef:
        """Make the nested function of a block; `prologue` runs first and is rewritten too."""
        statements = [*prologue, *body]
        inner = _Statements(self).block(statements)
        return copy_position(plain_def(name, [*self.declarations(statements), *inner]), at)


def _list_nonlocals(inners: Iterable[ast.AST]) -> set[str]:
    """Return the names that a function or its nested functions declare nonlocal."""
    return {name for inner in inners if isinstance(inner, ast.Nonlocal) for name in inner.names}


def _find_aliases(inners: Iterable[ast.AST]) -> set[str]:
    """Return names of variables whose parts are assigned to, and names that these are assigned from.

    Such variables are not copied: `w = v` makes two names of one object.
    """
    names: set[str] = set()
    copied: list[tuple[str, str]] = []
    for node in inners:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            copied += [(target.id, node.value.id) for target in node.targets if isinstance(target, ast.Name)]
        if isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            root: ast.expr = node
            while isinstance(root, (ast.Subscript, ast.Attribute)):
                root = root.value
            if isinstance(root, ast.Name):
                names.add(root.id)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Name):
            function = node.func
            called = getattr(function, "attr", None) or getattr(function, "id", "")
            if str(called).startswith("atomic"):
                names.add(node.args[0].id)
    for _ in copied:
        names.update(source for target, source in copied if target in names)
    return names


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


class _Statements:
    """Rewrites the statements of one block function."""

    def __init__(self, unit: _Unit) -> None:
        self.unit = unit
        self.out: list[ast.stmt] = []

    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        saved, self.out = self.out, []
        for statement in statements:
            self.statement(statement)
        result, self.out = self.out, saved
        return result

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
        name = self.unit.new_name()
        body = [*self.unit.declarations([node]), ast.Return(rewritten)]
        self.out.append(copy_position(plain_def(name, body), node))
        return copy_position(load(name), node)

    def statement(self, node: ast.stmt) -> None:
        method = getattr(self, f"on_{type(node).__name__}", None)
        if method is not None:
            method(node)
            return
        rewriter = ExpressionRewriter(make_thunk=self.define_thunk)
        self.out.append(rewriter.generic_visit(node))  # type: ignore[arg-type]

    def jump(self, method: str, at: ast.AST, *values: ast.expr) -> None:
        """Leave the block, and tell whether this leaves a `with` or `finally` block too."""
        guarded = False
        for entry in reversed(self.unit.around):
            if entry == "loop" and method != "return_":
                break
            guarded |= entry == "guard"
        value = call(load("_vd_f"), method, constant(guarded), *values)
        self.out.append(copy_position(ast.Return(value), at))

    @contextmanager
    def open_entries(self, *entries: str) -> Iterator[None]:
        """Note open constructs around the statements that are rewritten meanwhile."""
        self.unit.around.extend(entries)
        yield
        del self.unit.around[len(self.unit.around) - len(entries) :]

    def emit_call(self, value: ast.expr, at: ast.AST) -> None:
        """Append the call of a construct, and leave the block if the call returns a signal."""
        name = "_vd_s"
        test = ast.Compare(ast.NamedExpr(store(name), value), [ast.IsNot()], [constant(None)])
        self.out.append(copy_position(ast.If(test, [ast.Return(load(name))], []), at))

    # -- jumps

    def on_Return(self, node: ast.Return) -> None:  # noqa: N802
        value = [] if node.value is None else [self.rewrite_expr(node.value)]
        self.jump("return_", node, *value)

    def on_Break(self, node: ast.Break) -> None:  # noqa: N802
        self.jump("break_", node)

    def on_Continue(self, node: ast.Continue) -> None:  # noqa: N802
        self.jump("continue_", node)

    # -- constructs

    def on_If(self, node: ast.If) -> None:  # noqa: N802
        unit = self.unit
        branches, last = _split_branches(node)
        if len(branches) > _LONG_CHAIN:
            self.long_chain(node, branches, last)
            return
        test = self.rewrite_test(node.test)
        names: list[ast.expr] = []
        for body in (node.body, node.orelse):
            if not body:
                names.append(constant(None))
                continue
            block = unit.block(unit.new_name(), body, body[0])
            self.out.append(block)
            names.append(load(block.name))
        after = _make_tuple(unit.liveness.after[node])
        self.emit_call(call(load("_vd_f"), "if_", test, *names, after), node.test)

    def long_chain(self, node: ast.If, branches: Sequence[ast.If], last: Sequence[ast.stmt]) -> None:
        """Rewrite many branches without nesting, which would be too deep for Python."""
        unit = self.unit
        pairs: list[ast.expr] = []
        for branch in branches:
            test = self.define_test(branch.test)
            body = unit.block(unit.new_name(), branch.body, branch.body[0])
            self.out.append(body)
            pairs.append(ast.Tuple([load(test), load(body.name)], ast.Load()))
        orelse: ast.expr = constant(None)
        if last:
            block = unit.block(unit.new_name(), last, last[0])
            self.out.append(block)
            orelse = load(block.name)
        after = _make_tuple(unit.liveness.after[node])
        self.emit_call(call(load("_vd_f"), "ifs_", ast.Tuple(pairs, ast.Load()), orelse, after), node.test)

    def define_test(self, test: ast.expr) -> str:
        """Define a function that evaluates a condition; returns its name."""
        function = plain_def(self.unit.new_name(), [])
        inner = _Statements(self.unit)
        value = inner.rewrite_test(test)
        function.body = [*self.unit.declarations([test]), *inner.out, copy_position(ast.Return(value), test)]
        self.out.append(copy_position(function, test))
        return function.name

    def on_While(self, node: ast.While) -> None:  # noqa: N802
        unit = self.unit
        test = self.define_test(node.test)
        with self.open_entries("loop"):
            body = unit.block(unit.new_name(), node.body, node.body[0])
        self.out.append(body)
        assigned = bound_names([node.test, *node.body])
        self.emit_call(
            call(
                load("_vd_f"),
                "while_",
                load(test),
                load(body.name),
                *self.make_loop_arguments(node, assigned),
            ),
            node.test,
        )

    def on_For(self, node: ast.For) -> None:  # noqa: N802
        unit = self.unit
        items = self.rewrite_expr(node.iter)
        name = unit.new_name()
        # the target is assigned like any other, from the block's one parameter
        prologue = copy_position(ast.Assign([node.target], load("_vd_item")), node.target)
        with self.open_entries("loop"):
            body = unit.block(name, node.body, node.body[0], [prologue])
        body.args.args.append(copy_position(ast.arg("_vd_item"), node.target))
        self.out.append(body)
        target = node.target.id if isinstance(node.target, ast.Name) else None
        assigned = bound_names([node.target, *node.body])
        facts = self.make_loop_arguments(node, assigned)
        self.emit_call(call(load("_vd_f"), "for_", items, load(name), constant(target), *facts), node.iter)

    def make_loop_arguments(self, node: ast.While | ast.For, assigned: set[str]) -> list[ast.expr]:
        """Return the else block of a loop and its `LoopNames`, the last arguments of `while_` and `for_`."""
        unit = self.unit
        orelse: ast.expr = constant(None)
        if node.orelse:
            block = unit.block(unit.new_name(), node.orelse, node.orelse[0])
            self.out.append(block)
            orelse = load(block.name)
        jumps = any(
            isinstance(inner, (ast.Break, ast.Continue, ast.Return)) for inner in own_nodes(node.body)
        )
        names = (assigned, unit.liveness.head[node], unit.liveness.after[node])
        return [orelse, constant((*(tuple(sorted(each)) for each in names), jumps))]

    def on_Match(self, node: ast.Match) -> None:  # noqa: N802
        name = self.unit.new_name()
        branches = convert_match(node, name)
        if branches is not None:
            self.out.append(
                copy_position(ast.Assign([store(name)], self.rewrite_expr(node.subject)), node.subject)
            )
            after = self.unit.liveness.after[node]
            for branch in walk(branches):
                if isinstance(branch, ast.If) and branch not in self.unit.liveness.after:
                    self.unit.liveness.after[branch] = after | read_names(branches)
            self.on_If(branches)
            return
        cases = [
            ast.match_case(
                case.pattern,
                None if case.guard is None else self.rewrite_expr(case.guard),
                self.block(case.body),
            )
            for case in node.cases
        ]
        what = constant("a match by other patterns than values, | and _")
        subject = copy_position(
            call(load("_vd_rt"), "require_known", self.rewrite_expr(node.subject), what), node.subject
        )
        self.out.append(ast.copy_location(ast.Match(subject, cases), node))

    def on_Assert(self, node: ast.Assert) -> None:  # noqa: N802
        test = load(self.define_test(node.test))
        arguments = ast.arguments([], [], None, [], [], None, [])
        message = constant(None) if node.msg is None else ast.Lambda(arguments, self.rewrite_expr(node.msg))
        holds = call(load("_vd_rt"), "check_assert", test, copy_position(message, node))
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
            body = self.block(node.body)
        self.out.append(ast.copy_location(ast.With(items, body), node))

    def on_Try(self, node: ast.Try) -> None:  # noqa: N802
        with self.open_entries(*(["guard"] if node.finalbody else [])):
            body = self.block(node.body)
            # what the tracer raises for itself is not the kernel's to catch
            retry = ast.Attribute(load("_vd_rt"), "Retry", ast.Load())
            handlers = [] if type(node) is not ast.Try else [ast.ExceptHandler(retry, None, [ast.Raise()])]
            handlers = [copy_position(handler, node) for handler in handlers] if node.handlers else []
            handlers += [
                ast.copy_location(
                    ast.ExceptHandler(handler.type, handler.name, self.block(handler.body)), handler
                )
                for handler in node.handlers
            ]
            orelse = self.block(node.orelse)
        last = self.block(node.finalbody)
        self.out.append(ast.copy_location(type(node)(body, handlers, orelse, last), node))

    on_TryStar = on_Try  # noqa: N815

    def on_FunctionDef(self, node: ast.FunctionDef) -> None:  # noqa: N802
        if not is_generator(node, walk(node)):
            outer = ExpressionRewriter(make_thunk=self.define_thunk)
            node = rewrite_function(node, frozenset(self.unit.enclosing))
            node.decorator_list = [outer.visit(decorator) for decorator in node.decorator_list]
            node.args = outer.visit(node.args)
        self.out.append(node)

    def keep(self, node: ast.stmt) -> None:
        self.out.append(node)

    on_AsyncFunctionDef = on_ClassDef = keep  # noqa: N815

    def drop(self, node: ast.stmt) -> None:
        """Drop a declaration that each block repeats."""
        self.out.append(ast.copy_location(ast.Pass(), node))

    on_Global = on_Nonlocal = drop  # noqa: N815

    # -- assignments

    def on_Assign(self, node: ast.Assign) -> None:  # noqa: N802
        value = self.rewrite_value(node.targets, node.value)
        targets = [self.rewrite_target(target) for target in node.targets]
        self.out.append(ast.copy_location(ast.Assign(targets, value), node))

    def on_AnnAssign(self, node: ast.AnnAssign) -> None:  # noqa: N802
        if node.value is None:
            self.drop(node)
        else:
            self.on_Assign(ast.copy_location(ast.Assign([node.target], node.value), node))

    def on_AugAssign(self, node: ast.AugAssign) -> None:  # noqa: N802
        if not isinstance(node.target, ast.Name):
            value = self.freeze_for_place(node.target, node.value)
            target = self.rewrite_target(node.target)
            assert isinstance(target, _PLACES)
            self.out.append(ast.copy_location(ast.AugAssign(target, node.op, value), node))
            return
        name = node.target.id
        operands = (constant(type(node.op).__name__), load(name), self.rewrite_expr(node.value))
        value = call(load("_vd_f"), "augment", *operands, constant(name))
        self.out.append(copy_position(ast.Assign([node.target], copy_position(value, node)), node))

    def rewrite_value(self, targets: Sequence[ast.expr], value: ast.expr) -> ast.expr:
        """Rewrite an assigned value: a local variable gets a value of its own."""
        if len(targets) == 1 and isinstance(targets[0], _PLACES):
            return self.freeze_for_place(targets[0], value)
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        patterns = [target for target in targets if isinstance(target, (ast.Tuple, ast.List))]
        if not names and not patterns:
            return self.rewrite_expr(value)
        label = names[0] if names and names[0] != "_" else None
        if any(name in self.unit.aliases for name in names):
            return copy_position(
                call(load("_vd_f"), "make_assignable", self.rewrite_expr(value), constant(label)), value
            )
        if isinstance(value, ast.Tuple) and not any(isinstance(part, ast.Starred) for part in value.elts):
            of_part = [
                [target.elts[i] for target in patterns if len(target.elts) == len(value.elts)] or [store("_")]
                for i in range(len(value.elts))
            ]
            parts = [
                self.rewrite_value(inner if not names else [store("_")], part)
                for inner, part in zip(of_part, value.elts, strict=True)
            ]
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
        while isinstance(root, _PLACES):
            root = root.value
        if isinstance(node, _PLACES) and isinstance(node.value, _PLACES) and isinstance(root, ast.Name):
            owner = load(root.id) if has_calls(node.value) else copy.deepcopy(node.value)
            own = call(load("_vd_f"), "make_assignable", self.rewrite_expr(owner), constant(root.id))
            held = ast.BoolOp(ast.And(), [call(load("_vd_f"), "is_container", load(root.id)), own])
            self.out.append(copy_position(ast.Expr(held), node))
        return self.rewrite_expr(node)

    def freeze_for_place(self, target: ast.expr, value: ast.expr) -> ast.expr:
        """Rewrite a value for an element or attribute: lists and objects get a frozen value."""
        assert isinstance(target, _PLACES)
        owner: ast.expr = target.value
        while isinstance(owner, ast.Attribute):
            owner = owner.value
        if isinstance(value, ast.Constant) or not isinstance(owner, ast.Name):
            return self.rewrite_expr(value)
        place = copy.deepcopy(target.value)
        return copy_position(call(load("_vd_f"), "freeze_for_place", place, self.rewrite_expr(value)), value)
