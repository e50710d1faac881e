"""Merge modules of the package into fewer, by a plan; a tool for one step, not kept.

    python merge_modules.py PLAN [--check]

A plan has paragraphs, one for a target:

    vkdispatch/fft/plan/passes.py "Plans of kernels that transform lines."
        vkdispatch/fft/plan/grids.py
        vkdispatch/fft/plan/passes.py          rename _choose=_choose_registers

Sources come in the order in which their code is to stand. A target may be one of its sources, or a package's
`__init__.py`. With --check nothing is written: conflicts of names, cycles of imports and sources that are
missing are listed.
"""

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path.cwd()
SUFFIXES = (".py", ".pyi", ".pyx", ".pxi", ".rst", ".md", ".toml", ".cfg", ".txt", ".inc")


def module_of(path: str) -> str:
    name = path.removesuffix(".py").replace("/", ".")
    return name.removesuffix(".__init__")


@dataclass
class Source:
    path: str
    renames: dict[str, str] = field(default_factory=dict)

    @property
    def module(self) -> str:
        return module_of(self.path)


@dataclass
class Target:
    path: str
    title: str
    sources: list[Source]

    @property
    def module(self) -> str:
        return module_of(self.path)


def read_plan(text: str) -> list[Target]:
    targets: list[Target] = []
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not line[0].isspace():
            path, _, title = line.partition(" ")
            targets.append(Target(path, title.strip().strip('"'), []))
            continue
        path, *words = line.split()
        renames = dict(word.split("=") for word in words if "=" in word)
        targets[-1].sources.append(Source(path, renames))
    return targets


# ---- one source ------------------------------------------------------------------------------------------


def rename_tokens(text: str, renames: dict[str, str]) -> str:
    """Rename names that are no attributes and no keywords of calls."""
    if not renames:
        return text
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    lines = text.splitlines(keepends=True)
    edits: list[tuple[int, int, int, str]] = []
    depth = 0
    for position, token in enumerate(tokens):
        depth += (token.string in "([{" and token.type == tokenize.OP) - (
            token.string in ")]}" and token.type == tokenize.OP
        )
        if token.type != tokenize.NAME or token.string not in renames:
            continue
        before = tokens[position - 1].string if position else ""
        after = tokens[position + 1].string if position + 1 < len(tokens) else ""
        if before == "." or (after == "=" and depth > 0):
            continue
        edits.append((token.start[0] - 1, token.start[1], token.end[1], renames[token.string]))
    for row, begin, end, new in reversed(edits):
        lines[row] = lines[row][:begin] + new + lines[row][end:]
    return "".join(lines)


@dataclass
class Parts:
    title: str
    imports: list[ast.stmt]
    guarded: list[ast.stmt]  # imports for type checkers
    exported: list[str] | None
    body: str
    names: set[str]


def is_type_checking(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def split_source(text: str) -> Parts:
    tree = ast.parse(text)
    lines = text.splitlines(keepends=True)
    drop: set[int] = set()
    imports: list[ast.stmt] = []
    guarded: list[ast.stmt] = []
    exported: list[str] | None = None
    names: set[str] = set()

    def cut(node: ast.stmt) -> None:
        drop.update(range(node.lineno - 1, node.end_lineno or node.lineno))

    title = ast.get_docstring(tree) or ""
    for index, node in enumerate(tree.body):
        if index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            cut(node)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            imports.append(node)
            cut(node)
        elif is_type_checking(node) and all(isinstance(inner, (ast.Import, ast.ImportFrom)) for inner in node.body):
            guarded += node.body
            cut(node)
        elif isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets
        ):
            exported = list(ast.literal_eval(node.value))
            cut(node)
        else:
            names |= bound_names(node)
    body = "".join(line for row, line in enumerate(lines) if row not in drop)
    return Parts(title, imports, guarded, exported, body.strip("\n"), names)


def bound_names(node: ast.stmt) -> set[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    found = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            found.add(inner.id)
    return found


# ---- the merge -------------------------------------------------------------------------------------------


class Merge:
    def __init__(self, targets: list[Target]) -> None:
        self.targets = targets
        self.new = {source.module: target.module for target in targets for source in target.sources}
        self.renamed = {
            (source.module, old): new
            for target in targets
            for source in target.sources
            for old, new in source.renames.items()
        }

    def build(self, target: Target) -> str:
        inside = {source.module for source in target.sources}
        texts = [rename_tokens((ROOT / s.path).read_text(), s.renames) for s in target.sources]
        texts = [self.unqualify(text, inside) for text in texts]
        parts = [split_source(text) for text in texts]
        plain: dict[str, None] = {}
        wanted: dict[str, set[str]] = defaultdict(set)
        guarded: dict[str, set[str]] = defaultdict(set)
        aliases: list[str] = []
        for part in parts:
            for node in part.imports:
                self.collect(node, inside, plain, wanted, aliases)
            for node in part.guarded:
                self.collect(node, inside, plain, guarded, aliases)
        lines = [f'"""{target.title}"""', ""]
        lines += [f"import {name}" for name in plain]
        lines += [f"from {m} import {', '.join(sorted(names))}" for m, names in sorted(wanted.items())]
        if any(guarded.values()):
            lines += ["", "if TYPE_CHECKING:"]
            lines += [f"    from {m} import {', '.join(sorted(names))}" for m, names in sorted(guarded.items())]
        exported = [name for part in parts for name in part.exported or ()]
        body = ["\n".join(lines)]
        if aliases:
            body.append("\n".join(dict.fromkeys(aliases)))
        for part in parts:
            text = self.drop_inner_imports(part.body, inside)
            if not text.strip():
                continue
            if sum(bool(p.body.strip()) for p in parts) > 1:
                subject = part.title.splitlines()[0].rstrip(".") if part.title else ""
                head = f"# ---- {(subject[:1].lower() + subject[1:])[:90]} "
                text = head + "-" * max(105 - len(head), 4) + "\n\n\n" + text
            body.append(text)
        if exported:
            body.insert(1, "__all__ = [" + ", ".join(f'"{n}"' for n in dict.fromkeys(exported)) + ",]")
        return "\n\n\n".join(body) + "\n"

    def collect(
        self, node: ast.stmt, inside: set[str], plain: dict[str, None], wanted: dict[str, set[str]], aliases: list[str]
    ) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = self.new.get(alias.name, alias.name)
                plain[f"{name} as {alias.asname}" if alias.asname else name] = None
            return
        assert isinstance(node, ast.ImportFrom) and node.module and not node.level, ast.unparse(node)
        for alias in node.names:
            whole = f"{node.module}.{alias.name}"
            if whole in inside:
                continue
            if whole in self.new:  # a module
                parent, _, name = self.new[whole].rpartition(".")
                wanted[parent].add(f"{name} as {alias.asname or alias.name}")
            elif node.module in inside:
                new = self.renamed.get((node.module, alias.name), alias.name)
                if (alias.asname or alias.name) != new:
                    aliases.append(f"{alias.asname or alias.name} = {new}")
            else:
                new = self.renamed.get((node.module, alias.name), alias.name)
                given = alias.asname or alias.name
                module = self.new.get(node.module, node.module)
                wanted[module].add(new if given == new else f"{new} as {given}")

    def unqualify(self, text: str, inside: set[str]) -> str:
        """Write `module.name` of a module that becomes the same one as `name`, and drop its import."""
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.ImportFrom):
                continue
            for alias in node.names:
                module = f"{node.module}.{alias.name}"
                if module in inside:
                    given = alias.asname or alias.name

                    def change(match: re.Match[str], module: str = module) -> str:
                        return self.renamed.get((module, match[1]), match[1])

                    text = re.sub(rf"(?<![\w.\"'`/]){given}\.([A-Za-z_]\w*)", change, text)
        return text

    def drop_inner_imports(self, text: str, inside: set[str]) -> str:
        """Drop imports in functions that import from the target itself."""
        tree = ast.parse(text)
        lines = text.splitlines(keepends=True)
        for node in sorted(
            (n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module in inside),
            key=lambda n: -n.lineno,
        ):
            names = [(a.asname or a.name, self.renamed.get((node.module or "", a.name), a.name)) for a in node.names]
            indent = lines[node.lineno - 1][: node.col_offset]
            rest = [f"{indent}{given} = {new}\n" for given, new in names if given != new]
            lines[node.lineno - 1 : node.end_lineno] = rest
        return "".join(lines)

    # -- all other files

    def rewrite_imports(self, text: str) -> str:
        """Rewrite `from old import name` in a file, wherever it stands, and every mention of a module's path."""

        def change(match: re.Match[str]) -> str:
            indent, module, names = match[1], match[2], match[3]
            listed = [n.strip() for n in re.sub(r"[()\n]", " ", re.sub(r"#[^\n]*", "", names)).split(",") if n.strip()]
            known = {module, *(f"{module}.{item.partition(' as ')[0].strip()}" for item in listed)}
            if not any(self.new.get(each, each) != each for each in known) and not any(
                (module, item.partition(" as ")[0].strip()) in self.renamed for item in listed
            ):
                return match[0]
            groups: dict[str, list[str]] = defaultdict(list)
            for item in listed:
                name, _, given = item.partition(" as ")
                name, given = name.strip(), given.strip()
                whole = f"{module}.{name}"
                if whole in self.new:
                    parent, _, last = self.new[whole].rpartition(".")
                    groups[parent].append(last if (given or name) == last else f"{last} as {given or name}")
                    continue
                new = self.renamed.get((module, name), name)
                shown = given or name
                plain = shown == new and given != name
                groups[self.new.get(module, module)].append(new if plain else f"{new} as {shown}")
            return "\n".join(f"{indent}from {m} import {', '.join(v)}" for m, v in groups.items())

        pattern = r"(?m)^([ \t]*(?:>>> )?)from (vkdispatch[\w.]*) import (\([^)]*\)|[^\n(]+)"
        text = re.sub(pattern, change, text)
        moved = {old: new for old, new in self.new.items() if old != new}
        if moved:
            names = "|".join(sorted(map(re.escape, moved), key=len, reverse=True))
            text = re.sub(rf"(?<![\w.])({names})(?![\w])", lambda m: moved[m[1]], text)
            paths = {o.replace(".", "/") + ".py": n.replace(".", "/") + ".py" for o, n in moved.items()}
            names = "|".join(sorted(map(re.escape, paths), key=len, reverse=True))
            text = re.sub(names, lambda m: paths[m[0]], text)
        return text

    def check(self) -> list[str]:
        said = []
        for target in self.targets:
            seen: dict[str, str] = {}
            for source in target.sources:
                if not (ROOT / source.path).exists():
                    said.append(f"{source.path} does not exist")
                    continue
                part = split_source(rename_tokens((ROOT / source.path).read_text(), source.renames))
                for name in part.names - {"_"}:
                    if name in seen:
                        said.append(f"{target.path}: {name} is of {seen[name]} and {source.path}")
                    seen[name] = source.path
        return said + self.find_cycles()

    def find_cycles(self) -> list[str]:
        graph: dict[str, set[str]] = defaultdict(set)
        modules = {module_of(str(p.relative_to(ROOT))): p for p in (ROOT / "vkdispatch").rglob("*.py")}
        for module, path in modules.items():
            for node in ast.parse(path.read_text()).body:
                if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("vkdispatch"):
                    continue
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    used = whole if whole in modules else node.module or ""
                    a, b = self.new.get(module, module), self.new.get(used, used)
                    if a != b:
                        graph[a].add(b)
        said, state = [], {}

        def visit(name: str, path: list[str]) -> None:
            state[name] = 1
            for other in graph.get(name, ()):
                if state.get(other) == 1:
                    said.append("cycle: " + " -> ".join([*path[path.index(other):], other]) if other in path else "")
                elif other not in state:
                    visit(other, [*path, other])
            state[name] = 2

        sys.setrecursionlimit(10000)
        for name in list(graph):
            if name not in state:
                visit(name, [name])
        return [text for text in said if text]

    def run(self) -> None:
        built = {target.path: self.build(target) for target in self.targets}
        for target in self.targets:
            longest = max(target.sources, key=lambda s: len((ROOT / s.path).read_text()))
            for source in target.sources:
                if source is not longest and source.path != target.path:
                    subprocess.run(["git", "rm", "-q", "-f", source.path], check=True)
            if longest.path != target.path:
                (ROOT / target.path).parent.mkdir(parents=True, exist_ok=True)
                if (ROOT / target.path).exists():
                    subprocess.run(["git", "rm", "-q", "-f", target.path], check=True)
                subprocess.run(["git", "mv", longest.path, target.path], check=True)
            (ROOT / target.path).write_text(built[target.path])
        files = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True).stdout.split("\n")
        for name in files:
            path = ROOT / name
            if path.suffix in SUFFIXES and path.is_file() and not name.startswith("benchmarks/results"):
                before = path.read_text()
                after = self.rewrite_imports(before)
                if after != before:
                    path.write_text(after)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("plan", type=Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    merge = Merge(read_plan(options.plan.read_text()))
    said = merge.check()
    print("\n".join(said))
    if not options.check:
        merge.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
