"""GLSL to SPIR-V, without a program beside Python."""

from vkdispatch.base.compilation import compiler
from vkdispatch.base.errors import ArgumentTypeError


def compile_glsl(source: str, name: str = "shader") -> bytes:
    """Compile a GLSL compute shader to SPIR-V, in this process and without a device.

    Parameters
    ----------
    source
        GLSL for Vulkan, with `#version` and `void main()`.
    name
        What messages call it.

    Returns
    -------
    The module, for `kp.Manager.algorithm` (which takes GLSL as well) or a file.

    Raises
    ------
    TypeError
        `source` is no text.
    ShaderBuildError
        The source does not compile; a RuntimeError with the compiler's whole log.
    """
    if not isinstance(source, str):
        raise ArgumentTypeError(f"source: expected GLSL text, got {type(source).__name__}")
    return compiler.compile_glsl(source, name)
