"""Which language kernels are written in, and how sources are shown; both per thread."""

import threading
from typing import ClassVar

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError

__all__ = [
    "CUDABackend",
    "CodeGenBackend",
    "GLSLBackend",
    "OpenCLBackend",
    "get_codegen_backend",
    "get_shader_print_line_numbers",
    "set_codegen_backend",
    "set_shader_print_line_numbers",
]


class CodeGenBackend:
    """A language that kernels can be written in."""

    name: ClassVar[str] = ""


class GLSLBackend(CodeGenBackend):
    """GLSL for Vulkan."""

    name = "glsl"


class CUDABackend(CodeGenBackend):
    """CUDA C++: kernels can be traced for it; this package does not write it."""

    name = "cuda"


class OpenCLBackend(CodeGenBackend):
    """OpenCL C: kernels can be traced for it; this package does not write it."""

    name = "opencl"


_BACKENDS: dict[str, type[CodeGenBackend]] = {
    backend.name: backend for backend in (GLSLBackend, CUDABackend, OpenCLBackend)
}


class _Settings(threading.local):
    backend: CodeGenBackend | None = None
    line_numbers = False


_settings = _Settings()


def set_codegen_backend(backend: CodeGenBackend | str | None) -> None:
    """Choose the language of kernels that this thread traces, by name or object; None is the default, GLSL.

    Only GLSL is written: asking for the source of kernels in another language raises NotImplementedError.
    Raises ValueError for an unknown name.
    """
    if backend is None:
        _settings.backend = None
        return
    if isinstance(backend, str):
        if backend.strip().lower() not in _BACKENDS:
            raise ArgumentValueError(f"backend: expected one of {', '.join(_BACKENDS)}, got {backend!r}")
        backend = _BACKENDS[backend.strip().lower()]()
    if not isinstance(backend, CodeGenBackend):
        raise ArgumentTypeError(f"backend: expected a name, a CodeGenBackend or None, got {backend!r}")
    _settings.backend = backend


def get_codegen_backend() -> CodeGenBackend:
    """Return this thread's language."""
    return _settings.backend or GLSLBackend()


def set_shader_print_line_numbers(value: bool) -> None:
    """Say whether this thread's printed sources have line numbers."""
    _settings.line_numbers = bool(value)


def get_shader_print_line_numbers() -> bool:
    """Return whether this thread's printed sources have line numbers."""
    return _settings.line_numbers


# What GLSL cannot write in a string: it has no escapes.
