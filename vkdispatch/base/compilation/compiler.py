"""GLSL to SPIR-V: the compiler, its cached results, and SPIR-V as text."""

import os
import struct
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from vkdispatch.base import init
from vkdispatch.base.compilation import disk_cache
from vkdispatch.base.devices import DeviceInfo
from vkdispatch.base.errors import ShaderBuildError
from vkdispatch.base.host_numpy import is_absent
from vkdispatch.base.native_module import native
from vkdispatch.base.process import show_wait
from vkdispatch.base.record import record

if TYPE_CHECKING:
    from vkdispatch.base.compilation.includes import Preprocessing

# ---- bfloat16 in compiled code, for compilers that do not support it -------------------------------------
#
# The GLSL of a kernel with cooperative matrices of bfloat16 contains `MARK` and no other 16-bit floats. The
# compiler sees float16_t; afterwards all 16-bit floats in the SPIR-V become bfloat16 (SPV_KHR_bfloat16).


MARK = "#define bfloat16_t float16_t"

_HEADER = 5
_EXTENSION, _CAPABILITY, _TYPE_FLOAT = 10, 17, 22
_FLOAT16, _BFLOAT16_TYPE, _BFLOAT16_MATRIX = 9, 5116, 5118
_ENCODING = 0  # BFloat16KHR
_NAME = b"SPV_KHR_bfloat16"


def replace_float16(code: bytes) -> bytes:
    """Return the SPIR-V with all 16-bit floats replaced by bfloat16."""
    words = struct.unpack(f"<{len(code) // 4}I", code)
    result = list(words[:_HEADER])
    result += [2 << 16 | _CAPABILITY, _BFLOAT16_TYPE, 2 << 16 | _CAPABILITY, _BFLOAT16_MATRIX]
    named = False
    for instruction in split_instructions(words):
        opcode = instruction[0] & 0xFFFF
        if opcode == _CAPABILITY and instruction[1] == _FLOAT16:
            continue
        if opcode != _CAPABILITY and not named:
            # extensions come after the capabilities
            name = _NAME + b"\0" * (4 - len(_NAME) % 4)
            result += [(1 + len(name) // 4) << 16 | _EXTENSION, *struct.unpack(f"<{len(name) // 4}I", name)]
            named = True
        if opcode == _TYPE_FLOAT and instruction[2] == 16:
            result += [4 << 16 | _TYPE_FLOAT, *instruction[1:3], _ENCODING]
        else:
            result += instruction
    return struct.pack(f"<{len(result)}I", *result)


def split_instructions(words: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield the instructions of a module, as words."""
    at = _HEADER
    while at < len(words):
        size = max(words[at] >> 16, 1)
        yield words[at : at + size]
        at += size


# ---- Compilation of GLSL to SPIR-V, and the cached results of compiler and drivers -----------------------


_SPIRV = "spirv"
_PIPELINE = "pipeline"
_PROGRAM = "program"

_expects_kernels = False
_identity = ""
_program_is_stored = False


def can_compile() -> bool:
    """Whether there is a compiler: it is part of the native module."""
    return not is_absent(native)


def compile_glsl(source: str, name: str, preprocessing: "Preprocessing | None" = None) -> bytes:
    """Compile a compute shader to SPIR-V, without a device.

    Parameters
    ----------
    source
        GLSL.
    name
        Its name in messages.
    preprocessing
        The texts that the source includes, and macros.

    Raises
    ------
    ShaderBuildError
        The source does not compile. The full log is in the message.
    """
    if preprocessing is None:
        key = f"{_identify_compiler()}\n{_strip_lines(source)}"
    else:
        key = f"{_identify_compiler()}\n{preprocessing.key}\n{source}"
    code = disk_cache.load(_SPIRV, key)
    if code is None:
        try:
            with show_wait(f"compiling kernel {name!r}"):
                code = native.compile_glsl(source, **({} if preprocessing is None else preprocessing.options))
        except ValueError as error:
            log = str(error).strip()
            if preprocessing is not None:
                log = preprocessing.explain(log)
            raise ShaderBuildError(
                f"the GLSL of {name!r} does not compile:\n{log}", shader_source=source, compiler_log=log
            ) from error
        if MARK in source:
            code = replace_float16(code)
        disk_cache.store(_SPIRV, key, code)
    store_program_run()
    return code


def compile_glsl_file(path: str, vulkan_minor: int = 2) -> bytes:
    """Compile the compute shader in a file to SPIR-V, without a device and without the disk cache.

    Parameters
    ----------
    path
        The path of the file. With `#extension GL_GOOGLE_include_directive : require`, the directive
        `#include "other.glsl"` includes a file of the same folder.
    vulkan_minor
        0 to 3 for Vulkan 1.0 to 1.3 (SPIR-V 1.0, 1.3, 1.5 or 1.6).

    Raises
    ------
    ShaderBuildError
        The source does not compile. The full log, with files and lines, is in the message.
    OSError, UnicodeDecodeError
        The file cannot be read, or is not text.
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
    """Return the cache key of a plan's pipeline on each device, or [] if the disk cache is off."""
    if not disk_cache.is_enabled():
        return []
    plan = f"{list(binding_types)} {push_constant_size} {entry_point} {list(specialization)} {spirv.hex()}"
    return [
        f"{(device.uuid or b'').hex()} {device.driver_version} {device.vendor_id} {device.device_id} {plan}"
        for device in devices
    ]


def load_pipelines(keys: Sequence[str]) -> list[bytes]:
    """Return the cached pipelines of these keys, b"" where there is none."""
    return [disk_cache.load(_PIPELINE, key) or b"" for key in keys]


def store_pipelines(keys: Sequence[str], pipelines: Sequence[bytes]) -> None:
    """Store pipelines under these keys. Empty data means that the stored pipeline is up to date."""
    for key, data in zip(keys, pipelines, strict=True):
        if data:
            disk_cache.store(_PIPELINE, key, data)


def expect_kernels() -> None:
    """Note that the program has kernels, so that the compiler can be prepared early."""
    global _expects_kernels
    if not _expects_kernels:
        _expects_kernels = True
        if init.is_initialized() and init.is_vulkan():
            prepare_for_context()


def prepare_while_loading() -> None:
    """Prepare the compiler on another thread while Vulkan is loaded, if the program has kernels."""
    if _expects_kernels:
        prepare_for_context()


def prepare_for_context() -> None:
    """Prepare the compiler on another thread, as a context is about to be made."""
    # An unchanged program that ran before finds its kernels in the cache and needs no compiler.
    if disk_cache.load(_PROGRAM, _identify_program()) is None:
        native.prepare_compiler()


def store_program_run() -> None:
    """Store that this program has run: next time it will find its kernels in the cache."""
    global _program_is_stored
    if not _program_is_stored:
        _program_is_stored = True
        if disk_cache.is_enabled() and disk_cache.load(_PROGRAM, _identify_program()) is None:
            disk_cache.store(_PROGRAM, _identify_program(), b"")


def _identify_program() -> str:
    path = getattr(sys.modules.get("__main__"), "__file__", None) or ""
    try:
        changed = os.stat(path).st_mtime_ns
        path = os.path.abspath(path)
    except (OSError, ValueError):
        changed = 0  # an interactive session, or a program in an archive
    return f"{_identify_compiler()}\n{path}\n{changed}"


def _identify_compiler() -> str:
    global _identity
    if not _identity:
        _identity = native.compiler_identity()
    return _identity


def _strip_lines(source: str) -> str:
    """Return a source without #line directives, unless it uses the line or file."""
    if "#line" not in source or "__LINE__" in source or "__FILE__" in source:
        return source
    return "\n".join([line for line in source.split("\n") if not line.startswith("#line")])


init.before_loading.append(prepare_while_loading)
init.after_contexts.append(store_program_run)


# OpSourceContinued, OpSource and OpModuleProcessed, which repeat the source and tell of the compiler.
_ABOUT_SOURCE = frozenset((2, 3, 330))
# The text shows names already, and `SpirvLine.line` has the line.
_LEFT_OUT = frozenset(("OpName", "OpMemberName", "OpString", "OpLine", "OpNoLine"))


@record
class SpirvLine:
    """An instruction as text, and the line (from 1) of the source that it comes from, if that is known."""

    text: str
    line: int | None


def compile_with_lines(source: str) -> bytes:
    """Compile GLSL to SPIR-V with names and lines, without the disk cache. Raises ValueError."""
    return native.compile_glsl(source, debug=True)


def disassemble(spirv: bytes) -> list[SpirvLine]:
    """Return a module as text. Raises ValueError if it is malformed."""
    words = struct.unpack(f"<{len(spirv) // 4}I", spirv)
    kept = list(words[:5])
    for instruction in split_instructions(words):
        if instruction[0] & 0xFFFF not in _ABOUT_SOURCE:
            kept += instruction
    lines: list[SpirvLine] = []
    number: int | None = None
    for text in native.disassemble_spirv(struct.pack(f"<{len(kept)}I", *kept)).splitlines():
        # "%result = OpName operands", or without a result
        fields = text.split()
        opcode = fields[2] if fields[1:2] == ["="] else "".join(fields[:1])
        if opcode == "OpLine":
            number = int(fields[2])
        elif opcode in ("OpNoLine", "OpFunctionEnd"):
            number = None
        if opcode not in _LEFT_OUT:
            lines.append(SpirvLine(text.rstrip(), number))
    return lines
