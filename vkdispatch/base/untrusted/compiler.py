"""Compilation of untrusted code in a child process with limits on time and memory."""

import hashlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from vkdispatch.base.compilation import disk_cache
from vkdispatch.base.context import Context
from vkdispatch.base.errors import ShaderBuildError, UnsupportedError
from vkdispatch.base.native_module import native
from vkdispatch.base.untrusted import child as untrusted_child

if TYPE_CHECKING:
    import subprocess

    from vkdispatch.base.compilation.includes import Preprocessing

SECONDS = 10
"""Maximum processor time of a compilation."""
MEMORY = 1 << 30
"""Maximum bytes of memory of a compilation."""
PATIENCE = 60
"""Maximum seconds of a compilation, including time without processor use."""
LONGEST_SOURCE = 1 << 20
"""Maximum bytes of a source."""
LONGEST_CODE = 16 << 20
"""Maximum bytes of a compiled module."""

_LONGEST_LOG = 1 << 16
_SLICE = 0.02
# The variables that drivers need. The child process gets no other part of the environment.
_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "HOME", "DISPLAY", "CUDA_VISIBLE_DEVICES")
_PREFIXES = ("VK_", "XDG_", "NVIDIA_", "MESA_", "GALLIUM_", "LP_", "ASAN_", "LSAN_", "UBSAN_", "TSAN_")
_NO_FILES = {"MESA_SHADER_CACHE_DISABLE": "true", "__GL_SHADER_DISK_CACHE": "0"}

_checked_digests: set[bytes] = set()


def compile_untrusted(source: str, name: str, preprocessing: "Preprocessing | None" = None) -> bytes:
    """Compile the GLSL of a compute shader in a child process. The result is not checked.

    Raises
    ------
    ShaderBuildError
        The source does not compile, or the compiler crashed or exceeded a limit.
    """
    text = source.encode("utf-8", "surrogatepass")
    if len(text) > LONGEST_SOURCE:
        raise ShaderBuildError(
            f"the GLSL of {name!r} has {len(text)} bytes; untrusted code may have {LONGEST_SOURCE}",
            shader_source=source,
        )
    key = f"untrusted\n{native.compiler_identity()}\n{preprocessing.key if preprocessing else ''}\n{source}"
    code = disk_cache.load("spirv", key)
    if code is None:
        request: dict[str, Any] = {"source": source}
        if preprocessing is not None:
            request |= preprocessing.options
        explain = preprocessing.explain if preprocessing is not None else None
        code = _run("compile", json.dumps(request).encode(), f"the GLSL of {name!r}", source, explain)
        disk_cache.store("spirv", key, code)
    return code


def find_untrusted_error(spirv: bytes, argument: str) -> str | None:
    """Return the rule that a module breaks, as a validator in a child process says it; None if it is valid.

    Raises
    ------
    ShaderBuildError
        The validator crashed or exceeded a limit.
    """
    return _run("validate", spirv, f"{argument}: the module", argument).decode("utf-8", "replace") or None


def check_pipeline(
    context: Context,
    spirv: bytes,
    binding_types: Sequence[int],
    push_constant_size: int,
    entry_point: str,
    specialization: Sequence[tuple[int, bytes]],
    name: str,
) -> None:
    """Compile a module with the drivers of a context in child processes, as drivers may crash.

    Raises
    ------
    ShaderBuildError
        A driver rejected the module, crashed or exceeded a limit.
    """
    for info, families in zip(context.device_infos, context.queue_families, strict=True):
        request = {
            "uuid": (info.uuid or b"").hex(),
            "driver": info.driver_version,
            "families": families,
            "kinds": list(binding_types),
            "pushed": push_constant_size,
            "entry_point": entry_point,
            "specialization": [(number, value.hex()) for number, value in specialization],
        }
        head = json.dumps(request).encode()
        data = len(head).to_bytes(4, "little") + head + spirv
        digest = hashlib.sha256(data).digest()
        if digest not in _checked_digests:
            _run("create", data, f"the kernel {name!r} on {info.device_name}", name)
            _checked_digests.add(digest)


def _run(
    what: str, data: bytes, about: str, source: str, explain: Callable[[str], str] | None = None
) -> bytes:
    """Run the child process and return its output. `explain` makes its messages readable."""
    # imported here, as few programs need them
    import subprocess
    import tempfile

    if not sys.executable:
        raise UnsupportedError(
            "untrusted: this program has no Python interpreter to start for a child process"
        )
    memory = 0 if what == "create" else MEMORY  # drivers map far more than they use: it is watched
    command = [
        *(sys.executable, "-I", "-S", untrusted_child.__file__, what),
        *(str(Path(native.__file__).parent), str(SECONDS), str(memory)),
    ]
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as made, tempfile.TemporaryFile() as log:
        given.write(data)
        given.seek(0)
        process = subprocess.Popen(
            command, stdin=given, stdout=made, stderr=log, env=_environment(), start_new_session=True
        )
        try:
            reason = _watch(process)
        finally:
            # also after an interrupt
            if process.poll() is None:
                process.kill()
            process.wait()
        reason = reason or _explain_status(process.returncode)
        said = _read(log, _LONGEST_LOG).decode("utf-8", "replace").strip()
        said = explain(said) if explain else said
        if process.returncode == untrusted_child.REFUSED:
            verb = "does not compile" if what == "compile" else "is refused"
            raise ShaderBuildError(f"{about} {verb}:\n{said}", shader_source=source, compiler_log=said)
        if reason:
            raise ShaderBuildError(
                f"{about} {reason}, in a process of its own (untrusted=True)"
                + (f":\n{said}" if said else ""),
                shader_source=source,
                compiler_log=said,
            )
        code = _read(made, LONGEST_CODE + 1)
    if len(code) > LONGEST_CODE:
        raise ShaderBuildError(
            f"{about} compiles to more than {LONGEST_CODE} bytes, the limit for untrusted code",
            shader_source=source,
        )
    return code


def _watch(process: "subprocess.Popen[bytes]") -> str:
    """Wait for the child. Return why it was killed, or an empty text."""
    import subprocess

    end = time.monotonic() + PATIENCE
    while True:
        try:
            process.wait(_SLICE)
        except subprocess.TimeoutExpired:
            pass
        else:
            return ""
        if _measure_memory(process.pid) > MEMORY:
            process.kill()
            return _TOO_MUCH_MEMORY.format(MEMORY >> 20)
        if time.monotonic() > end:
            process.kill()
            return f"takes the compiler more than {PATIENCE} s, the limit for untrusted code"


_TOO_MUCH_MEMORY = "takes the compiler more than {} MiB of memory, the limit for untrusted code"


def _explain_status(status: int) -> str:
    """Return what an exit status of the child means, or an empty text for success."""
    if status in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"takes the compiler more than {SECONDS} s of processor time, the limit for untrusted code"
    if status == untrusted_child.OUT_OF_MEMORY:
        return _TOO_MUCH_MEMORY.format(MEMORY >> 20)
    if status < 0:
        return f"crashes the compiler ({signal.Signals(-status).name})"
    return "fails to compile" if status else ""


def _measure_memory(pid: int) -> int:
    """Return the resident memory of a process in bytes; 0 if unknown."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _read(file: IO[bytes], most: int) -> bytes:
    file.seek(0)
    return file.read(most)


def _environment() -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if name in _VARIABLES or name.startswith(_PREFIXES)
    }
    return kept | _NO_FILES
