"""What syntax trees contain: names bound, mentioned and alive, and control flow."""

import ast
from collections.abc import Iterable, Sequence
from typing import TypeVar

from vkdispatch.base.record import field, record

# ---- Traversal of syntax trees: faster versions of `ast.walk` and `ast.iter_child_nodes` -----------------
#
# Contexts such as `ast.Load` are omitted.


# Most nodes, with nothing below.
_LEAVES = frozenset((ast.Name, ast.Constant, ast.Pass, ast.Break, ast.Continue))
_NO_CHILDREN: list[ast.AST] = []
# What most fields hold besides.
_NO_NODES = frozenset((ast.Load, ast.Store, ast.Del, str, type(None), int))


def list_children(node: ast.AST) -> list[ast.AST]:
    """Return the children of a node, in order. Do not modify the list."""
    if type(node) in _LEAVES:
        return _NO_CHILDREN
    held = node.__dict__
    if not held:
        # an operator
        return _NO_CHILDREN
    children: list[ast.AST] = []
    for name in node._fields:
        value = held.get(name)
        if isinstance(value, list):
            children += [child for child in value if isinstance(child, ast.AST)]
        elif type(value) not in _NO_NODES and isinstance(value, ast.AST):
            children.append(value)
    return children


def walk_tree(root: ast.AST) -> list[ast.AST]:
    """Return a node and all of its descendants, parents first."""
    nodes = [root]
    for node in nodes:
        nodes += list_children(node)
    return nodes


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


def call(owner: str, method: str, *args: ast.expr) -> ast.Call:
    """Call a method of what a name holds."""
    return ast.Call(ast.Attribute(load(owner), method, ast.Load()), list(args), [])


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


# ---- Detection of control flow in syntax trees -----------------------------------------------------------


_GENERATORS = (ast.Yield, ast.YieldFrom, ast.Await)
_CONTROL = (
    *(ast.If, ast.While, ast.For, ast.Match, ast.BoolOp, ast.IfExp, ast.Invert, ast.Not, ast.Assert),
    *(ast.comprehension, ast.In, ast.NotIn),
)
_COMPUTING_ERRORS = (
    *("ArithmeticError", "FloatingPointError", "IndexError", "LookupError"),
    *("OverflowError", "ZeroDivisionError"),
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


# ---- Liveness of local names: a backward analysis over the syntax tree of a function ---------------------


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


# ---- The names that a function binds and mentions --------------------------------------------------------


def list_nonlocals(inners: Iterable[ast.AST]) -> set[str]:
    """Return the names that a function or its nested functions declare nonlocal."""
    return {name for inner in inners if isinstance(inner, ast.Nonlocal) for name in inner.names}


def is_whole(target: ast.AST) -> bool:
    """Whether a target is `name[:]`, which stores to the place that a value was read from."""
    return isinstance(target, ast.Subscript) and ast.dump(target.slice) == "Slice()"


def find_aliases(inners: Iterable[ast.AST]) -> tuple[set[str], set[str]]:
    """Return names of variables that are assigned to by parts or by `[:]`, and names that these come from.

    Such variables are not copied: `w = v` makes two names of one object. The second set has those that are
    assigned to by parts.
    """
    names: set[str] = set()
    parts: set[str] = set()
    copied: list[tuple[str, str]] = []
    for node in inners:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            copied += [(target.id, node.value.id) for target in node.targets if isinstance(target, ast.Name)]
        if isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            root: ast.expr = node
            while isinstance(root, (ast.Subscript, ast.Attribute)):
                root = root.value
            if isinstance(root, ast.Name):
                (names if is_whole(node) else parts).add(root.id)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Name):
            function = node.func
            called = getattr(function, "attr", None) or getattr(function, "id", "")
            if str(called).startswith("atomic"):
                names.add(node.args[0].id)
    names |= parts
    for _ in copied:
        for group in (names, parts):
            group.update(source for target, source in copied if target in group)
    return names, parts


class LocalNames:
    """The names of a function that is rewritten, and names for its blocks."""

    def __init__(self, node: ast.FunctionDef, enclosing: frozenset[str]) -> None:
        self.node = node
        declared: dict[type[ast.stmt], set[str]] = {ast.Global: set(), ast.Nonlocal: set()}
        head = [node.args, *node.decorator_list, *([node.returns] if node.returns else [])]
        inners = [inner for statement in node.body for inner in walk_tree(statement)]
        nodes = list(iterate_own_nodes(node.body))
        for inner in nodes:
            if isinstance(inner, (ast.Global, ast.Nonlocal)):
                declared[type(inner)].update(inner.names)
        self.globals = declared[ast.Global]
        self.nonlocals = declared[ast.Nonlocal]
        args = node.args
        rest = [arg for arg in (args.vararg, args.kwarg) if arg is not None]
        self.parameters = [arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs, *rest)]
        self.assigned = list_bound_names(node.body) - self.globals - self.nonlocals
        local = self.assigned | set(self.parameters)
        self.mentioned = {inner.id for inner in inners if isinstance(inner, ast.Name)}
        self.mentioned.update(
            inner.id for root in head for inner in walk_tree(root) if isinstance(inner, ast.Name)
        )
        self.free = (self.mentioned & enclosing - local) | self.nonlocals
        self.rebound = self.free & list_nonlocals(inners)
        # whether it may return before its end
        self.early = any(isinstance(inner, ast.Return) and inner is not node.body[-1] for inner in nodes)
        self.enclosing = enclosing | local
        self.liveness: Liveness = analyze_liveness(node.body, inners)
        self.aliases, self.parts = find_aliases(inners)
        # open constructs around a statement: loops, and `with` and `finally` blocks
        self.around: list[str] = []
        self._count = 0

    def new_name(self) -> str:
        """Return a name for the function of a block."""
        self._count += 1
        return f"_vd_b{self._count}"

    def list_declarations(self, body: Sequence[ast.AST]) -> list[ast.stmt]:
        """Return the declarations of the names that a block binds and the function owns."""
        bound = list_bound_names(body)
        result: list[ast.stmt] = []
        shared = bound & (self.assigned | set(self.parameters) | self.nonlocals)
        if shared:
            result.append(ast.Nonlocal(sorted(shared)))
        if bound & self.globals:
            result.append(ast.Global(sorted(bound & self.globals)))
        return result
