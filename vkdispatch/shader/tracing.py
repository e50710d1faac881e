"""VKDISPATCH_TRACE=1..4: kernels as they are built, their code, their passes, and what launches them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from vkdispatch.base.process import log_trace, read_number
from vkdispatch.compiler.forms import PLAIN, Variant
from vkdispatch.shader.size import Extent

if TYPE_CHECKING:
    from vkdispatch.codegen import ShaderSource
    from vkdispatch.compiler.ir import Kernel
    from vkdispatch.shader.program import Build

CODE, STEPS, LAUNCHES = 2, 3, 4
LEVEL = read_number("VKDISPATCH_TRACE", 0, LAUNCHES)
"""What is printed: 1, kernels and times; 2, also GLSL; 3, also programs after passes; 4, also launches."""

if LEVEL >= STEPS:
    from vkdispatch.compiler.passes.order import keep_steps

    _keeping = keep_steps()  # until the process ends
    _keeping.__enter__()


def describe_form(local_size: Extent, variant: Variant, times: Sequence[tuple[str, float]]) -> str:
    """Describe a form of a kernel, and how long it took to build it."""
    changed = [
        f"{name}={value!r}"
        for name in Variant.__match_args__
        if (value := getattr(variant, name)) != getattr(PLAIN, name)
    ]
    form = f", {' '.join(changed)}" if changed else ""
    shown = ", ".join(f"{name} {seconds * 1e3:.2f} ms" for name, seconds in times)
    return f"workgroups of {local_size}{form}; {shown or 'not built here'}"


def show_build(build: "Build", source: "ShaderSource", program: "Kernel | None") -> None:
    """Print a kernel that was built; `program` is what was written, with the steps that led to it."""
    if not LEVEL:
        return
    who = build.who
    log_trace(f"{who}: {describe_form(build.local_size, build.variant, build.times)}")
    if LEVEL >= CODE:
        log_trace(repr(source).rstrip())
    if program is not None:
        from vkdispatch.compiler.passes.order import list_versions

        for version in list_versions(program):
            log_trace(f"{who}: {version.name}: {version.about}\n{version.text}")


def show_launch(who: str, action: str, extent: Extent, in_groups: bool, local_size: Extent) -> None:
    """Print a launch that passes through Python. Equal calls of functions on buffers repeat natively."""
    unit = "workgroups" if in_groups else "invocations"
    log_trace(f"{action} {who}: {extent} {unit} in workgroups of {local_size}")


@contextmanager
def show_call(name: str) -> Iterator[None]:
    """Print which function on buffers decides the launches of a block."""
    log_trace(f"{name}: what it launches, until it ends")
    yield
    log_trace(f"{name}: ends")
