"""GLSL to SPIR-V, and SPIR-V to the driver's own form: each once, then from the disk cache."""

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from vkdispatch.base import init
from vkdispatch.base.absent import is_absent
from vkdispatch.base.compilation import disk_cache
from vkdispatch.base.compilation.bfloat16 import MARK, with_bfloat16
from vkdispatch.base.devices.information import DeviceInfo
from vkdispatch.base.errors import ShaderBuildError
from vkdispatch.base.native_module import native

if TYPE_CHECKING:
    from vkdispatch.base.compilation.includes import Preprocessing

_SPIRV = "spirv"
_PIPELINE = "pipeline"
_PROGRAM = "program"

_kernels_expected = False
_identity = ""
_program_noted = False


def can_compile() -> bool:
    """Whether there is a compiler, which is part of the native module."""
    return not is_absent(native)


def compile_glsl(
    source: str,
    name: str,
    with_lines: Callable[[], str] | None = None,
    preprocessing: "Preprocessing | None" = None,
) -> bytes:
    """Compile a compute shader to SPIR-V, without a device.

    Parameters
    ----------
    source
        GLSL.
    name
        What messages call it.
    with_lines
        Returns the source with #line directives, where it is to be compiled: they are for messages alone.
    preprocessing
        What it includes, and the macros that are defined for it.

    Raises
    ------
    ShaderBuildError
        The compiler refused it; the whole log is in the message.
    """
    if preprocessing is None:
        key = f"{_compiler()}\n{_without_lines(source)}"
    else:
        key = f"{_compiler()}\n{preprocessing.key}\n{source}"
    code = disk_cache.load(_SPIRV, key)
    if code is None:
        try:
            if preprocessing is None:
                code = native.compile_glsl(with_lines() if with_lines else source)
            else:
                code = native.compile_glsl(
                    source,
                    preamble=preprocessing.preamble,
                    includes=preprocessing.includes,
                    texts=preprocessing.texts,
                )
        except ValueError as error:
            log = str(error).strip()
            if preprocessing is not None:
                log = preprocessing.explain(log)
            raise ShaderBuildError(
                f"the GLSL of {name!r} does not compile:\n{log}", shader_source=source, compiler_log=log
            ) from error
        if MARK in source:
            code = with_bfloat16(code)
        disk_cache.store(_SPIRV, key, code)
    _note_program()
    return code


def compile_glsl_file(path: str, vulkan_minor: int = 2) -> bytes:
    """Compile the compute shader in a file to SPIR-V, without a device and without the disk cache.

    Parameters
    ----------
    path
        Its file. `#include "other.glsl"` finds files beside the one that it stands in, with
        `#extension GL_GOOGLE_include_directive : require`.
    vulkan_minor
        For Vulkan 1.0, 1.1 or 1.2: SPIR-V 1.0, 1.3 or 1.5.

    Raises
    ------
    ShaderBuildError
        The compiler refused it; its whole log, with files and lines, is in the message.
    OSError, UnicodeDecodeError
        The file cannot be read, or is no text.
    """
    with open(path, encoding="utf-8") as file:
        source = file.read()
    try:
        return native.compile_glsl(source, path, vulkan_minor)
    except ValueError as error:
        log = str(error).strip()
        raise ShaderBuildError(
            f"{path} does not compile:\n{log}", shader_source=source, compiler_log=log
        ) from error


def pipeline_keys(
    devices: Sequence[DeviceInfo],
    spirv: bytes,
    binding_types: Sequence[int],
    push_constant_size: int,
    entry_point: str,
    specialization: Sequence[tuple[int, bytes]],
) -> list[str]:
    """Return the key of a plan's pipeline on each device; none where the disk cache is off."""
    if not disk_cache.is_enabled():
        return []
    plan = f"{list(binding_types)} {push_constant_size} {entry_point} {list(specialization)} {spirv.hex()}"
    return [
        f"{(device.uuid or b'').hex()} {device.driver_version} {device.vendor_id} {device.device_id} {plan}"
        for device in devices
    ]


def load_pipelines(keys: Sequence[str]) -> list[bytes]:
    """Return what drivers made of these plans before, b"" where that is not known."""
    return [disk_cache.load(_PIPELINE, key) or b"" for key in keys]


def store_pipelines(keys: Sequence[str], made: Sequence[bytes]) -> None:
    """Keep what drivers made, less what is empty: that is as it was."""
    for key, data in zip(keys, made, strict=True):
        if data:
            disk_cache.store(_PIPELINE, key, data)


def expect_kernels() -> None:
    """Take note that the program has kernels: the compiler will be needed."""
    global _kernels_expected
    if not _kernels_expected:
        _kernels_expected = True
        if init.is_initialized() and init.is_vulkan():
            _prepare()


def prepare_while_loading() -> None:
    """Have the compiler get ready, on another thread, while the driver is loaded: if there are kernels."""
    if _kernels_expected:
        _prepare()


def prepare_for_context() -> None:
    """Have the compiler get ready: kernels are what a context is for."""
    _prepare()


def note_program_run() -> None:
    """Take note that the program has run: the next time it will find in the cache what it needs."""
    _note_program()


def _prepare() -> None:
    # A program that ran before, as it is, finds its kernels in the cache: the work would be in vain.
    if disk_cache.load(_PROGRAM, _program()) is None:
        native.prepare_compiler()


def _note_program() -> None:
    global _program_noted
    if not _program_noted:
        _program_noted = True
        if disk_cache.is_enabled() and disk_cache.load(_PROGRAM, _program()) is None:
            disk_cache.store(_PROGRAM, _program(), b"")


def _program() -> str:
    path = getattr(sys.modules.get("__main__"), "__file__", None) or ""
    try:
        changed = os.stat(path).st_mtime_ns
        path = os.path.abspath(path)
    except (OSError, ValueError):
        changed = 0  # an interactive session, or a program inside of an archive
    return f"{_compiler()}\n{path}\n{changed}"


def _compiler() -> str:
    global _identity
    if not _identity:
        _identity = native.compiler_identity()
    return _identity


def _without_lines(source: str) -> str:
    """Return a source without its #line directives, which show in messages only: unless it asks for them."""
    if "#line" not in source or "__LINE__" in source or "__FILE__" in source:
        return source
    return "\n".join([line for line in source.split("\n") if not line.startswith("#line")])


init.before_loading.append(prepare_while_loading)
init.after_contexts.append(note_program_run)
