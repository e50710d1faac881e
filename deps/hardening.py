"""Compiler and linker flags that make an error in the native code end the process instead of being exploited.

A compiler is asked first whether it knows a flag: clang, older versions and other architectures lack some.
"""

from __future__ import annotations

import functools
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

# Of each group the first flags that the compiler takes without a warning.
GROUPS: tuple[tuple[tuple[str, ...], ...], ...] = (
    (("-fstack-protector-strong",),),
    (("-fstack-clash-protection",),),
    (("-fcf-protection",), ("-mbranch-protection=standard",)),  # x86, and Arm's counterpart
    # -U: some distributions' compilers define it by themselves.
    (("-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=3"), ("-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2")),
    # All symbols are bound when the module is loaded, so calls need no stubs. This pays for the rest.
    (("-fno-plt",),),
)
# Relocated data is read-only once the module is loaded, all of it at once; no stack can be executed; code has
# no relocations, so that it is never writable.
LINK = ["-Wl,-z,relro", "-Wl,-z,now", "-Wl,-z,noexecstack", "-Wl,-z,text"]
PROBE = """
#include <cstring>
void probe(char* to, const char* from, unsigned long count) {
  char local[64];
  std::memcpy(local, from, count);
  std::memcpy(to, local, count);
}
"""


@functools.cache
def compile_flags(compiler: tuple[str, ...]) -> list[str]:
    """Return the flags that `compiler`, a command, knows."""
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, "probe.cpp")
        source.write_text(PROBE)
        first = [flag for group in GROUPS for flag in group[0]]
        if _accepts(compiler, first, source):
            return first
        chosen = (
            next((flags for flags in group if _accepts(compiler, flags, source)), ()) for group in GROUPS
        )
        return [flag for flags in chosen for flag in flags]


def _accepts(compiler: Sequence[str], flags: Sequence[str], source: Path) -> bool:
    command = [*compiler, "-O2", "-Werror", *flags, "-c", str(source), "-o", str(source.with_suffix(".o"))]
    return subprocess.run(command, capture_output=True).returncode == 0
