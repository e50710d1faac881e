"""The names that a function binds and mentions."""

import ast
from collections.abc import Iterable, Sequence

from vkdispatch.rewrite.syntax.control_flow import iterate_own_nodes
from vkdispatch.rewrite.syntax.liveness import Liveness, analyze_liveness, list_bound_names
from vkdispatch.rewrite.syntax.nodes import walk_tree


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
        for found in (names, parts):
            found.update(source for target, source in copied if target in found)
    return names, parts


class LocalNames:
    """The names of a function that is rewritten, and names for its blocks."""

    def __init__(self, node: ast.FunctionDef, enclosing: frozenset[str]) -> None:
        self.node = node
        declared: dict[type[ast.stmt], set[str]] = {ast.Global: set(), ast.Nonlocal: set()}
        head = [node.args, *node.decorator_list, *([node.returns] if node.returns else [])]
        inners = [inner for statement in node.body for inner in walk_tree(statement)]
        own = list(iterate_own_nodes(node.body))
        for inner in own:
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
        self.early = any(isinstance(inner, ast.Return) and inner is not node.body[-1] for inner in own)
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
