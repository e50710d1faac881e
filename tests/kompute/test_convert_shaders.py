"""The command that compiles shader files to SPIR-V, C++ headers and Python modules."""

from __future__ import annotations

import runpy
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import vkdispatch as vd
from vkdispatch.codegen.abbreviations import Buff, f32
from vkdispatch.kompute.convert_shaders import convert_shaders

RunPython = Callable[..., subprocess.CompletedProcess[str]]

DOUBLE = """#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer A { float a[]; };
void main() { a[gl_GlobalInvocationID.x] *= 2; }
"""
INCLUDING = """#version 450
#extension GL_GOOGLE_include_directive : require
#include "parts/more.glsl"
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer A { float a[]; };
void main() { a[gl_GlobalInvocationID.x] = more(a[gl_GlobalInvocationID.x]); }
"""


def convert(*arguments: object) -> Result:
    return CliRunner().invoke(convert_shaders, [str(argument) for argument in arguments])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shaders = tmp_path / "shaders"
    (shaders / "parts").mkdir(parents=True)
    (shaders / "double.comp").write_text(DOUBLE)
    (shaders / "sum-up.comp").write_text(INCLUDING)
    (shaders / "parts" / "more.glsl").write_text(
        '#include "one.glsl"\nfloat more(float x) { return x + one; }\n'
    )
    (shaders / "parts" / "one.glsl").write_text("const float one = 1.0;\n")
    (shaders / "parts" / "whole.glsl").write_text(DOUBLE.replace("2", "3"))
    (shaders / "notes.txt").write_text("void main() {}")
    return shaders


def files(folder: Path, suffix: str) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob(f"*{suffix}"))


def words(path: Path) -> list[int]:
    data = path.read_bytes()
    return list(struct.unpack(f"<{len(data) // 4}I", data))


def test_each_shader_gets_spirv_and_a_header(folder: Path) -> None:
    done = convert("-p", folder)
    assert (done.exit_code, done.output) == (0, "")
    names = ["double.comp", "parts/whole.glsl", "sum-up.comp"]
    assert files(folder, ".spv") == [f"{name}.spv" for name in names]
    assert files(folder, ".hpp") == [f"{name}.hpp" for name in names]
    for name in names:
        assert words(folder / f"{name}.spv")[:2] == [0x07230203, 0x00010300]  # of Vulkan 1.1


def test_compiled_shaders_run(folder: Path) -> None:
    assert convert("-p", folder).exit_code == 0
    for name, expected in (("double.comp", 14), ("sum-up.comp", 8), ("parts/whole.glsl", 21)):
        data = vd.asbuffer(np.full(5, 7, np.float32))
        kernel = vd.spirv_kernel((folder / f"{name}.spv").read_bytes(), [("a", Buff[f32])], workgroups=5)
        kernel(data)
        np.testing.assert_array_equal(data.read(0), np.full(5, expected))


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
@pytest.mark.parametrize("namespace", ["kp::shader_data", "mine", ""])
def test_a_common_header_compiles_and_contains_the_words(
    folder: Path, tmp_path: Path, namespace: str
) -> None:
    done = convert("-p", folder, "-c", tmp_path / "made" / "shaders.hpp", "--namespace", namespace)
    assert (done.exit_code, done.output, files(folder, ".hpp")) == (0, "", [])
    names = {
        "double_comp_spv": "double.comp",
        "sum_up_comp_spv": "sum-up.comp",
        "parts_whole_glsl_spv": "parts/whole.glsl",
    }
    spaces = f"{namespace}::" if namespace else ""
    prints = "".join(
        f"  for (std::uint32_t word : {spaces}{name}_words) std::cout << word << ' ';\n"
        f"  std::cout << {spaces}{name}_len << ' ';\n"
        f"  for (unsigned char byte : {spaces}{name}) std::cout << int(byte) << ' ';\n"
        f"  std::cout << reinterpret_cast<std::uintptr_t>({spaces}{name}) % 4 << '\\n';\n"
        for name in names
    )
    source = tmp_path / "main.cpp"
    source.write_text(
        '#include "made/shaders.hpp"\n#include "made/shaders.hpp"\n#include <iostream>\n'
        f"int main() {{\n{prints}}}\n"
    )
    program = tmp_path / "program"
    flags = ["-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    subprocess.run(["g++", *flags, str(source), "-o", str(program)], check=True)
    said = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout.splitlines()
    for line, name in zip(said, names.values(), strict=True):
        path = folder / f"{name}.spv"
        data = path.read_bytes()
        assert list(map(int, line.split())) == [*words(path), len(data), *data, 0]


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
def test_single_headers_can_be_included_together(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "include"
    assert convert("-p", folder, "-c", f"{out}/").exit_code == 0
    headers = files(out, ".hpp")
    assert headers == ["double.comp.hpp", "parts/whole.glsl.hpp", "sum-up.comp.hpp"]
    source = tmp_path / "all.cpp"
    source.write_text("".join(f'#include "{name}"\n' for name in headers))
    subprocess.run(["g++", "-fsyntax-only", f"-I{out}", str(source)], check=True)


def test_a_python_module_contains_the_bytes(folder: Path, tmp_path: Path) -> None:
    (folder / "import.comp").write_text(DOUBLE)
    (folder / "3d.comp").write_text(DOUBLE)
    module = tmp_path / "data.py"
    assert convert("-p", folder, "--python", module).exit_code == 0
    made = runpy.run_path(str(module))
    for name, path in (
        ("double", "double.comp"),
        ("sum_up", "sum-up.comp"),
        ("parts_whole_glsl", "parts/whole.glsl"),
        ("import_", "import.comp"),
        ("shader_3d", "3d.comp"),
    ):
        assert made[name] == (folder / f"{path}.spv").read_bytes()


@pytest.mark.parametrize(("environment", "version"), [("vulkan1.0", 0x10000), ("vulkan1.3", 0x10600)])
def test_the_version_of_vulkan(folder: Path, environment: str, version: int) -> None:
    assert convert("-p", folder, "--target-env", environment).exit_code == 0
    assert words(folder / "double.comp.spv")[1] == version


def test_verbose_prints_each_step(folder: Path) -> None:
    done = convert("-p", folder, "-v")
    assert f"compiling {folder / 'double.comp'}\n" in done.output
    assert f"writing {folder / 'double.comp.spv'}\n" in done.output


def test_errors_name_file_and_line_and_nothing_is_written(folder: Path) -> None:
    (folder / "bad.comp").write_text(DOUBLE.replace("*= 2", "*= two"))
    (folder / "parts" / "one.glsl").write_text("\nconst float one = one;\n")
    done = convert("-p", folder)
    assert done.exit_code == 1
    assert f"{folder / 'bad.comp'}:4: 'two' : undeclared identifier" in done.output
    assert f"{folder / 'parts' / 'one.glsl'}:2: 'one' : undeclared identifier" in done.output
    assert files(folder, ".spv") == files(folder, ".hpp") == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "parts" / "more.glsl").unlink(), "parts/more.glsl"),
        # it includes itself
        (lambda folder: (folder / "parts" / "one.glsl").write_text('#include "one.glsl"\n'), "one.glsl"),
        (lambda folder: (folder / "double.comp").write_bytes(b"\xff\xfe"), "double.comp"),
        (lambda folder: (folder / "double.comp").write_text(""), "double.comp"),
        (lambda folder: (folder / "double_comp").mkdir(), None),
        (lambda folder: (folder / "sum_up.comp").write_text(DOUBLE), "sum-up.comp and sum_up.comp"),
    ],
)
def test_invalid_folders(folder: Path, change: Callable[[Path], object], message: str | None) -> None:
    change(folder)
    done = convert("-p", folder)
    assert done.exit_code == (1 if message else 0), done.output
    assert (message or "") in done.output


def test_invalid_options(folder: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "part.glsl").write_text("// void main is elsewhere")
    for arguments, code, message in (
        ((), 2, "--shader-path"),
        (("-p", tmp_path / "nothing"), 2, "does not exist"),
        (("-p", empty), 1, "no *.comp"),
        (("-p", folder, "--namespace", "a b"), 2, "not a C++ namespace"),
        (("-p", folder, "--target-env", "vulkan9"), 2, "vulkan9"),
        (("-p", folder, "-s", tmp_path / "nothing"), 1, "cannot be run"),
        (("-p", folder, "-c", folder / "double.comp" / "x.hpp"), 1, "x.hpp"),
    ):
        done = convert(*arguments)
        assert (done.exit_code, message in done.output) == (code, True), done.output


@pytest.mark.skipif(shutil.which("glslangValidator") is None, reason="no glslangValidator")
def test_another_compiler(folder: Path) -> None:
    assert convert("-p", folder, "-s", "glslangValidator").exit_code == 0
    assert words(folder / "sum-up.comp.spv")[:2] == [0x07230203, 0x00010300]
    (folder / "bad.comp").write_text(DOUBLE.replace("*= 2", "*= two"))
    done = convert("-p", folder, "-s", "glslangValidator")
    assert done.exit_code == 1 and "bad.comp:4: 'two'" in done.output


def test_the_module_is_a_program(folder: Path) -> None:
    command = [sys.executable, "-m", "vkdispatch.kompute.convert_shaders", "-p", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert len(files(folder, ".spv")) == 3
