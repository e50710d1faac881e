"""Explanations of kernels and calls: programs after each pass, GLSL, SPIR-V, as text and as one HTML page."""

import functools
import linecache
import os
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from html import escape
from os import PathLike
from typing import Any

from vkdispatch.base.compilation.compiler import (
    SpirvLine,
    can_compile,
    compile_glsl,
    compile_with_lines,
    disassemble,
)
from vkdispatch.base.context import Context, get_context
from vkdispatch.base.errors import BackendUnavailableError, ShaderBuildError
from vkdispatch.base.init import is_dummy
from vkdispatch.base.record import record, replace
from vkdispatch.base.synchronization import TimedCommand
from vkdispatch.codegen import ShaderSource
from vkdispatch.compiler.forms import PLAIN
from vkdispatch.compiler.ir.location import Loc
from vkdispatch.compiler.passes.diagnostics import Checks
from vkdispatch.compiler.passes.order import ProgramVersion, keep_steps, list_versions, make_form
from vkdispatch.execution_pipeline.timings import KernelFacts, Recording
from vkdispatch.shader.program import Build
from vkdispatch.shader.raw.kernel import RawProgram
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.shader.size import Extent
from vkdispatch.shader.stored import StoredProgram
from vkdispatch.shader.traced.generation import adapt_kernel, adapt_variant, find_lacks
from vkdispatch.shader.traced.program import TracedProgram
from vkdispatch.shader.tracing import describe_form


@record(eq=False, slots=False)
class KernelExplanation:
    """What becomes of a kernel. It has a `name`, and a `place` where it is defined.

    Attributes
    ----------
    form
        Its workgroups and form, and the times of its build.
    programs
        The program as traced, and after each pass that changed it. GLSL and SPIR-V kernels have none.
    glsl
        The GLSL.
    launches
        The workgroups of each launch of a call.
    """

    name: str
    place: str | None
    form: str
    programs: tuple[ProgramVersion, ...]
    glsl: ShaderSource
    launches: tuple[Extent, ...] = ()
    module: bytes | None = None

    @functools.cached_property
    def spirv(self) -> tuple[SpirvLine, ...]:
        """The SPIR-V as text, each line with that of the GLSL it comes from; empty without a compiler."""
        if not can_compile():
            return ()
        if self.module is None:
            return tuple(disassemble(compile_with_lines(self.glsl.code)))
        return tuple(disassemble(self.module))

    @property
    def title(self) -> str:
        """The kernel and where it is defined."""
        return self.name if self.place is None else f"{self.name} ({self.place})"

    def __str__(self) -> str:
        parts = [f"{self.title}: {self.form}"]
        if self.launches:
            parts.append(f"launched with workgroups {', '.join(map(str, self.launches))}")
        for before, version in zip((None, *self.programs), self.programs, strict=False):
            if before is None:
                parts.append(f"---- the program as traced\n{version.text}")
            else:
                changes = "\n".join(version.difference(before))
                parts.append(f"---- the pass {version.name!r}: {version.about}\n{changes}")
        return "\n".join([*parts, "---- GLSL", self.glsl.code.rstrip()])


def explain_build(build: Build, context: Context | None) -> KernelExplanation | None:
    """Explain a kernel that was built in a context; None if it is gone.

    Without a context, it is explained as any device has it.
    """
    program, form = build.find_program(), describe_form(build.local_size, build.variant, build.times)
    if program is None:
        return None
    name = program.description.name
    place = build.who[len(name) + 2 : -1] or None  # "name (place)"
    if isinstance(program, StoredProgram):
        program = program.traced
    if isinstance(program, TracedProgram):
        with keep_steps():
            programs, source = _repeat_passes(program, build, context)
        return KernelExplanation(name, place, form, programs, source)
    module = program.code.module.words.tobytes() if isinstance(program, RawProgram) else None
    source = program.description.shader_source(build.local_size)
    with suppress(ShaderBuildError):
        # without includes and macros, the text alone gives the module, and can be compiled with lines
        if module is not None and compile_glsl(source.code, name) == module:
            module = None
    return KernelExplanation(name, place, form, (), source, module=module)


def _repeat_passes(
    program: TracedProgram, build: Build, context: Context | None
) -> tuple[tuple[ProgramVersion, ...], ShaderSource]:
    """Return the versions of a program and the GLSL, by running its passes again."""
    variant, checks = build.variant, program.observation.checks if program.observation else Checks()
    fresh = TracedProgram(build.who, program.source, checks, None)
    description = fresh.description
    if context is not None:
        description, _ = fresh.prepare((), context, variant)
        kernel = adapt_kernel(build.who, description.kernel, context)
        description = replace(description, kernel=kernel)
        variant = adapt_variant(variant, find_lacks(kernel, context))
    form = make_form(description.kernel, variant)
    return list_versions(form), description.shader_source(build.local_size, variant)


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
    template = (pkgutil.get_data(__package__, "explaining.html") or b"").decode()
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


class Explanation:
    """What `vd.explain` returns: kernels, and what becomes of each. `print` shows it, notebooks show a page.

    Attributes
    ----------
    title
        What is explained.
    plan
        What a call launched, in order, as text; empty for a kernel.
    kernels
        The kernels, each a `KernelExplanation`.
    """

    def __init__(self, title: str, plan: str, kernels: Sequence[KernelExplanation]) -> None:
        self.title = title
        self.plan = plan
        self.kernels = tuple(kernels)

    def __str__(self) -> str:
        parts = [self.plan] if self.plan else []
        return "\n\n".join([*parts, *map(str, self.kernels)])

    __repr__ = __str__

    @property
    def html(self) -> str:
        """The page that `save` writes."""
        return write_page(self.title, self.plan, self.kernels)

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self.html)}" style="width: 100%; height: 40em; border: 0"></iframe>'

    def save(self, path: "str | PathLike[str]") -> None:
        """Write a page that needs no network. A click on a line marks those that it comes from and becomes.

        Raises
        ------
        OSError
            The file cannot be written.
        """
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html)


def explain_kernel(kernel: ShaderFunction) -> Explanation:
    """Explain the forms of a kernel that were built here. It is built if there is none."""
    launchable, context, builds = kernel._follow(), None, []
    if can_compile() and not is_dummy():
        with suppress(BackendUnavailableError):  # no driver: the kernel as any device has it
            context = get_context()
    if context is not None:
        if not launchable.is_sized_by_calls:
            kernel.build()
        launchable = kernel._follow()
        built = launchable.enter(context).built.values()
        builds = [facts.build for variant in built if isinstance(facts := variant.plan.facts, KernelFacts)]
    if not builds:
        size = launchable.assume_group(launchable.is_sized_in_groups)
        builds = [Build(lambda: launchable.program, launchable.who, PLAIN, size, ())]
    explained = (explain_build(build, context) for build in builds)
    return Explanation(launchable.who, "", list(filter(None, explained)))


def explain_call(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Explanation:
    """Call a function and wait, and explain the kernels that ran or were built."""
    context = get_context()
    recording = Recording(context)
    facts, known = recording.facts, set(recording.facts)
    try:
        with keep_steps():
            function(*args, **kwargs)
        commands = [command for command in recording.timing.finish()[0] if command.kind == 0]
    finally:
        recording.stop()
    launches: dict[int, list[Extent]] = {}
    for command in commands:
        launches.setdefault(command.plan, []).append(command.groups)
    kernels: list[KernelExplanation] = []
    for number in dict.fromkeys([*launches, *sorted(facts.keys() - known)]):
        known_facts = facts.get(number)
        if known_facts is None or known_facts.build is None:
            continue
        explained = explain_build(known_facts.build, context)
        if explained is not None:
            place = explained.place or known_facts.source
            kernels.append(replace(explained, place=place, launches=tuple(launches.get(number, ()))))
    title = getattr(function, "__name__", None) or repr(function)
    return Explanation(title, _describe_launches(title, commands), kernels)


def _describe_launches(title: str, commands: Sequence[TimedCommand]) -> str:
    if not commands:
        return f"{title} launched nothing"
    lines = [f"{title} launched {len(commands)} kernel{'s' * (len(commands) > 1)}:"]
    for number, command in enumerate(commands, 1):
        seconds = command.end - command.begin
        lines.append(f"  {number}. {command.name}: workgroups {command.groups}, {seconds * 1e6:.1f} us")
    return "\n".join(lines)
