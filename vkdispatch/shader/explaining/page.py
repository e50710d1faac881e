"""An explanation as one HTML page without network: Python, program, GLSL and SPIR-V side by side."""

import linecache
import os
import pkgutil
from collections.abc import Iterable, Sequence
from html import escape

from vkdispatch.base.record import record
from vkdispatch.compiler.ir.location import Loc
from vkdispatch.shader.explaining.kernels import KernelExplanation

# Lines around those that a program comes from which are shown, and where a file is cut between them.
_AROUND, _GAP = 2, 12


@record
class _Item:
    """A line of a column: its number, text, name in links, and the keys by which lines are related.

    `target` is the line in another column that it comes from.
    """

    number: str
    text: str
    name: str
    target: str
    python: str = ""
    glsl: str = ""


def write_page(title: str, plan: str, kernels: Sequence[KernelExplanation]) -> str:
    """Return an explanation as HTML."""
    contents = "".join(
        f'<li><a href="#k{number}">{escape(kernel.title)}</a></li>' for number, kernel in enumerate(kernels)
    )
    sections = "\n".join(_write_kernel(f"k{number}", kernel) for number, kernel in enumerate(kernels))
    heading = f"<h1>{escape(title)}</h1>"
    if plan or len(kernels) > 1:
        heading += f"\n<pre>{escape(plan)}</pre>\n<ol>{contents}</ol>"
    template = (pkgutil.get_data(__package__, "page.html") or b"").decode()
    page = template.replace("<!-- title -->", escape(title))
    return page.replace("<!-- body -->", f"{heading}\n{sections}")


def _write_kernel(name: str, kernel: KernelExplanation) -> str:
    launches = f" Launched with workgroups {', '.join(map(str, kernel.launches))}." if kernel.launches else ""
    parts = [f'<section class="kernel" id="{name}">\n<h2>{escape(kernel.title)}</h2>']
    parts.append(f"<p>{escape(kernel.form)}.{launches}</p>")
    for before, after in zip(kernel.programs, kernel.programs[1:], strict=False):
        lines = "".join(map(_write_diff_line, after.difference(before)))
        about = escape(f"the pass {after.name!r}: {after.about}")
        parts.append(f'<details><summary>{about}</summary>\n<pre class="diff">{lines}</pre></details>')
    columns = _list_columns(name, kernel)
    parts.append('<div class="columns">')
    parts += [_write_column(title, items) for title, items in columns.items() if items]
    parts.append("</div>\n</section>")
    return "\n".join(parts)


def _write_diff_line(line: str) -> str:
    kind = {"+": "plus", "-": "minus"}.get(line[:1], "same")
    return f'<span class="{kind}">{escape(line)}</span>'


def _write_column(title: str, items: Iterable[_Item]) -> str:
    lines: list[str] = []
    for item in items:
        link = f'<a href="#{item.target}">{item.number}</a>' if item.target else f"<a>{item.number}</a>"
        keys = "".join(
            f' data-{key}="{value}"' for key, value in (("python", item.python), ("glsl", item.glsl)) if value
        )
        lines.append(f'<span class="line" id="{item.name}"{keys}>{link}{escape(item.text) or " "}</span>')
    return f'<div><h3>{title}</h3><pre class="code">{"".join(lines)}</pre></div>'


def _list_columns(name: str, kernel: KernelExplanation) -> dict[str, list[_Item]]:
    """Return the lines of each column, with names that begin with that of the kernel."""
    program = kernel.programs[-1].lines if kernel.programs else ()
    code = kernel.glsl.code.splitlines()
    of_glsl = [kernel.glsl.python_line(number) for number in range(1, len(code) + 1)]
    files = _Files([line.loc for line in program] + of_glsl)

    def target(key: str) -> str:
        return f"{name}-python-{key}" if key else ""

    versions: list[_Item] = []
    first_of: dict[str, str] = {}
    for number, line in enumerate(program, 1):
        key, own = files.key(line.loc), f"{name}-program-{number}"
        if key:
            first_of.setdefault(key, own)
        versions.append(_Item(str(number), line.text, own, target(key), key))
    glsl: list[_Item] = []
    for number, (text, loc) in enumerate(zip(code, of_glsl, strict=True), 1):
        key, own = files.key(loc), f"{name}-glsl-{number}"
        if key:
            first_of.setdefault(key, own)
        glsl.append(_Item(str(number), text, own, target(key), key, str(number)))
    spirv: list[_Item] = []
    for number, instruction in enumerate(kernel.spirv, 1):
        at = instruction.line if instruction.line and instruction.line <= len(code) else None
        key = glsl[at - 1].python if at else ""
        to = glsl[at - 1].name if at else ""
        item = _Item(str(number), instruction.text, f"{name}-spirv-{number}", to, key, str(at or ""))
        spirv.append(item)
    python = [
        _Item(line, text, target(key) if key else f"{name}-file-{position}", first_of.get(key, ""), key)
        for position, (line, text, key) in enumerate(files.lines())
    ]
    return {"Python": python, "Program": versions, "GLSL": glsl, "SPIR-V": spirv}


class _Files:
    """The lines of Python that a kernel comes from, by the position of their file and their number."""

    def __init__(self, locs: Iterable[Loc | None]) -> None:
        self._used: dict[str, set[int]] = {}
        self._starts: dict[str, set[int]] = {}
        for loc in locs:
            if loc is not None:
                self._used.setdefault(loc.file, set()).add(loc.line)
                self._starts.setdefault(loc.file, set()).add(loc.code.co_firstlineno)
        self._positions = {file: position for position, file in enumerate(self._used)}

    def key(self, loc: Loc | None) -> str:
        """Return the key of a line; "" if it is unknown."""
        return "" if loc is None else f"{self._positions[loc.file]}-{loc.line}"

    def lines(self) -> Iterable[tuple[str, str, str]]:
        """Yield number, text and key of the lines to show, and of headings, which have no key."""
        for file, used in self._used.items():
            yield "", os.path.basename(file), ""
            wanted = sorted(used | self._starts[file])
            shown = {
                near
                for before, line in zip([wanted[0], *wanted], wanted, strict=False)
                for near in range(max(before if line - before <= _GAP else line - _AROUND, 1), line + 1)
            }
            previous = min(shown) - 1
            for number in sorted(shown):
                if number != previous + 1:
                    yield "", "...", ""
                previous = number
                text = linecache.getline(file, number).rstrip("\n")
                yield str(number), text, f"{self._positions[file]}-{number}"
