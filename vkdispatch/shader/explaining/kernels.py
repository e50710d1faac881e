"""What becomes of one kernel: its program after each pass, its GLSL and its SPIR-V."""

import functools
from contextlib import suppress

from vkdispatch.base.compilation.compiler import can_compile, compile_glsl
from vkdispatch.base.compilation.disassembly import SpirvLine, compile_with_lines, disassemble
from vkdispatch.base.context import Context
from vkdispatch.base.errors import ShaderBuildError
from vkdispatch.base.record import record, replace
from vkdispatch.codegen import ShaderSource
from vkdispatch.compiler.passes.diagnostics import Checks
from vkdispatch.compiler.passes.order import keep_steps, make_form
from vkdispatch.compiler.passes.versions import ProgramVersion, list_versions
from vkdispatch.shader.program import Build
from vkdispatch.shader.raw.kernel import RawProgram
from vkdispatch.shader.size import Extent
from vkdispatch.shader.stored import StoredProgram
from vkdispatch.shader.traced.generation import adapt_kernel, adapt_variant
from vkdispatch.shader.traced.lacks import find_lacks
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
