"""GLSL to SPIR-V with the built-in compiler."""

from vkdispatch.base.compilation import compiler
from vkdispatch.base.errors import ArgumentTypeError


def compile_glsl(source: str, name: str = "shader") -> bytes:
    """Compile a GLSL compute shader to SPIR-V, in this process and without a device.

    Parameters
    ----------
    source
        GLSL for Vulkan, with `#version` and `void main()`.
    name
        Its name in error messages.

    Returns
    -------
    The SPIR-V module, for `kp.Manager.algorithm` (which takes GLSL as well) or a file.

    Raises
    ------
    TypeError
        `source` is not a string.
    ShaderBuildError
        The source does not compile. This is a RuntimeError with the compiler's log.
    """
    if not isinstance(source, str):
        raise ArgumentTypeError(f"source: expected GLSL text, got {type(source).__name__}")
    return compiler.compile_glsl(source, name)
