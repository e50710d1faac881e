"""Compile the program: its shaders by our own glslang, its C++ against the headers that the engine uses."""

import shlex
import subprocess
import sys
from pathlib import Path

from benchmarks.floor import BUILD, FOLDER, PROGRAM

ROOT = FOLDER.parents[1]
FLAGS = ["-std=c++17", "-O2", "-Wall", "-Wextra", "-Wshadow", "-static-libstdc++", "-static-libgcc"]


def compile_shaders() -> str:
    """Write the shaders' SPIR-V beside the program, for peers without a compiler; return a C++ header."""
    import vkdispatch_native as native

    arrays = []
    for source in sorted((FOLDER / "shaders").glob("*.comp")):
        spirv = native.compile_glsl(source.read_text())
        (BUILD / f"{source.stem}.spv").write_bytes(spirv)
        words = memoryview(spirv).cast("I").tolist()
        values = ", ".join(f"{word:#x}" for word in words)
        arrays.append(f"inline const std::vector<uint32_t> {source.stem} = {{{values}}};\n")
    include = "#pragma once\n#include <cstdint>\n#include <vector>\nnamespace floor_program::shaders {\n"
    return f"{include}{''.join(arrays)}}}\n"


def dependencies() -> tuple[list[str], Path]:
    """Return the compiler and the folder that has volk and the Vulkan headers, as for the engine."""
    sys.path.insert(0, str(ROOT / "deps"))
    import fetch_deps

    return fetch_deps.compiler(), fetch_deps.prepare()


def build() -> Path:
    """Build the program and return its path; raises RuntimeError with the compiler's output."""
    BUILD.mkdir(exist_ok=True)
    compiler, prefix = dependencies()
    (BUILD / "shaders.hpp").write_text(compile_shaders())
    includes = [f"-I{FOLDER}", f"-I{BUILD}", "-isystem", str(prefix / "include")]
    sources = [*sorted(FOLDER.glob("*.cpp")), prefix / "include" / "volk.c"]
    command = [
        *compiler,
        *FLAGS,
        *includes,
        "-x",
        "c++",
        *map(str, sources),
        "-o",
        str(PROGRAM),
        "-ldl",
        "-lpthread",
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{shlex.join(command)} failed:\n{done.stdout}")
    return PROGRAM
