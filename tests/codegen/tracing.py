"""Helpers of the codegen tests.

Trace a function, check its IR, compile its GLSL where there is a compiler.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.compiler.analyses.verify import verify
from vkdispatch.compiler.forms import Variant

try:
    import vkdispatch_native
except ImportError:
    vkdispatch_native = None

_VALIDATOR = shutil.which("glslangValidator")
HAS_COMPILER = vkdispatch_native is not None or _VALIDATOR is not None


def compile_glsl(source: str) -> None:
    """Fail with the compiler's log unless the source compiles; without any compiler do nothing."""
    if vkdispatch_native is not None:
        try:
            vkdispatch_native.compile_glsl(source)
        except ValueError as error:
            raise AssertionError(f"{error}\n{source}") from None
    elif _VALIDATOR is not None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "kernel.comp"
            path.write_text(source)
            command = [_VALIDATOR, "-V", "--target-env", "vulkan1.2", "-o", "/dev/null", str(path)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise AssertionError(f"{done.stdout}\n{source}")


def trace(
    body: Callable[..., Any],
    annotations: Sequence[Any] = (),
    names: Sequence[str] | None = None,
    flags: vc.ShaderFlags = vc.ShaderFlags.NONE,
) -> vc.ShaderDescription:
    """Trace `body` on arguments with these annotations and check the IR; nothing is compiled."""
    with vc.shader_context(flags) as context:
        body(*context.declare_input_arguments(annotations, names))
    description = context.get_description("kernel")
    verify(description.kernel)
    return description


def compiled(
    body: Callable[..., Any],
    annotations: Sequence[Any] = (),
    names: Sequence[str] | None = None,
    flags: vc.ShaderFlags = vc.ShaderFlags.NONE,
) -> str:
    """Trace `body`, compile both variants, and return the body of the plain one."""
    description = trace(body, annotations, names, flags)
    compile_glsl(description.make_source(64, 1, 1))
    compile_glsl(description.make_source(64, 1, 1, Variant(folded=True)))
    return description.body


def statements(text: str) -> list[str]:
    """Return the lines of a main function behind the bounds guard, without indentation."""
    lines = [line.strip() for line in text.splitlines()]
    return [line for line in lines[1:-1] if line and "exec_count" not in line]
