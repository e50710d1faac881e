"""`vkdispatch-convert-shaders`: a folder of GLSL into SPIR-V files, C++ headers and a Python module.

Takes the options of Kompute's `convert_shaders.py`. The compiler is our own, in this process, unless another
is named.
"""

import os
import re
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from keyword import iskeyword
from pathlib import Path

import click

from vkdispatch.base.compilation.compiler import compile_glsl_file
from vkdispatch.base.errors import ShaderBuildError
from vkdispatch.base.record import record

_SUFFIXES = (".comp", ".glsl")
# As Kompute's own headers have it.
_NAMESPACE = "kp::shader_data"
_ENVIRONMENTS = ("vulkan1.0", "vulkan1.1", "vulkan1.2")
_WORDS_IN_LINE, _BYTES_IN_LINE = 8, 16
_NAME = re.compile(r"[A-Za-z_]\w*(::[A-Za-z_]\w*)*", re.ASCII)
_MAIN = re.compile(r"\bvoid\s+main\s*\(")


@record
class Shader:
    """A compiled shader: its path below the folder, with "/" between the parts, and its SPIR-V."""

    path: str
    spirv: bytes

    @property
    def cpp_name(self) -> str:
        """What it is called in C++: `opmult_comp_spv` of opmult.comp."""
        return _make_identifier(f"{self.path}.spv")

    @property
    def python_name(self) -> str:
        """What it is called in Python: `opmult` of opmult.comp."""
        name = _make_identifier(self.path.removesuffix(".comp"))
        return f"{name}_" if iskeyword(name) else name

    def words(self) -> tuple[int, ...]:
        """Return the words of its SPIR-V."""
        return struct.unpack(f"<{len(self.spirv) // 4}I", self.spirv)


def _make_identifier(text: str) -> str:
    name = re.sub(r"[^0-9A-Za-z_]", "_", text)
    return f"shader_{name}" if name[:1].isdigit() else name


def find_shaders(folder: Path) -> list[str]:
    """Return the shaders in a folder and those below it, as paths relative to it.

    A `.glsl` file without a `main` is there to be included, and left out.
    """
    found = sorted(path for path in folder.rglob("*") if path.suffix in _SUFFIXES and path.is_file())
    return [path.relative_to(folder).as_posix() for path in found if not _is_include(path)]


def _is_include(path: Path) -> bool:
    return path.suffix == ".glsl" and not _MAIN.search(path.read_text(encoding="utf-8", errors="replace"))


def format_header(shaders: Iterable[Shader], namespace: str, guard: str) -> str:
    """Return a C++ header with shaders.

    Of each: `<name>_words`, an array of std::uint32_t; the same bytes as `<name>`, an array of unsigned char;
    and their count, `<name>_len`.
    """
    spaces = namespace.split("::") if namespace else []
    lines = [f"#ifndef {guard}", f"#define {guard}", "", "#include <cstdint>", ""]
    lines += [f"namespace {space} {{" for space in spaces]
    for shader in shaders:
        name, words = shader.cpp_name, [f"0x{word:08x}" for word in shader.words()]
        lines += ["", f"// {shader.path}", f"static const std::uint32_t {name}_words[{len(words)}] = {{"]
        lines += _format_rows(words, _WORDS_IN_LINE)
        lines += ["};", f"alignas(4) static const unsigned char {name}[{len(shader.spirv)}] = {{"]
        lines += _format_rows([f"0x{byte:02x}" for byte in shader.spirv], _BYTES_IN_LINE)
        lines += ["};", f"static const unsigned int {name}_len = {len(shader.spirv)};"]
    lines += ["", *[f"}}  // namespace {space}" for space in reversed(spaces)], "", f"#endif  // {guard}"]
    return "\n".join(lines) + "\n"


def format_python_module(shaders: Iterable[Shader]) -> str:
    """Return a Python module with the SPIR-V of shaders as bytes."""
    lines = ['"""SPIR-V of compute shaders, written by vkdispatch-convert-shaders."""', ""]
    for shader in shaders:
        pieces = [shader.spirv[i : i + _BYTES_IN_LINE] for i in range(0, len(shader.spirv), _BYTES_IN_LINE)]
        lines += [f"# {shader.path}", f"{shader.python_name} = bytes.fromhex("]
        lines += [f'    "{piece.hex()}"' for piece in pieces] + [")", ""]
    return "\n".join(lines)


def _format_rows(items: list[str], count: int) -> list[str]:
    return [f"    {', '.join(items[i : i + count])}," for i in range(0, len(items), count)]


def compile_with(binary: str, path: Path, environment: str) -> bytes:
    """Compile a shader with a `glslangValidator` or `glslang` of the user's.

    Raises
    ------
    ShaderBuildError
        It refused the shader, or cannot be run.
    """
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "shader.spv")
        command = [binary, "-V", "--target-env", environment, "-S", "comp", str(path), "-o", str(made)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        except OSError as error:
            raise ShaderBuildError(f"{binary} cannot be run: {error.strerror}", shader_source="") from error
        log = (done.stdout + done.stderr).strip()
        if done.returncode or not made.exists():
            raise ShaderBuildError(
                f"{path} does not compile:\n{log}", shader_source=path.read_text(), compiler_log=log
            )
        return made.read_bytes()


def compile_all(
    folder: Path, paths: Iterable[str], compiler: Callable[[Path], bytes]
) -> tuple[list[Shader], list[str]]:
    """Return the shaders that compile, and what is wrong with the others."""
    shaders, failures = [], []
    for path in paths:
        try:
            shaders.append(Shader(path, compiler(folder / path)))
        except (ShaderBuildError, OSError, UnicodeDecodeError) as error:
            failures.append(
                str(error) if isinstance(error, ShaderBuildError) else f"{folder / path}: {error}"
            )
    return shaders, failures


def _refuse_equal_names(shaders: Iterable[Shader], name_of: Callable[[Shader], str]) -> None:
    known: dict[str, Shader] = {}
    for shader in shaders:
        other = known.setdefault(name_of(shader), shader)
        if other is not shader:
            raise click.ClickException(
                f"{other.path} and {shader.path} would both be called {name_of(shader)}; rename one of them"
            )


def _make_headers(
    folder: Path, header_path: str | None, namespace: str, shaders: list[Shader]
) -> list[tuple[Path, str]]:
    """Return headers as paths with contents: one for all if `header_path` is a file, else one for each."""
    if header_path and not (header_path.endswith(("/", os.sep)) or Path(header_path).is_dir()):
        guard = f"KP_{_make_identifier(Path(header_path).name).upper()}"
        return [(Path(header_path), format_header(shaders, namespace, guard))]
    target = Path(header_path) if header_path else folder
    return [
        (
            target / f"{shader.path}.hpp",
            format_header([shader], namespace, f"KP_{shader.cpp_name.upper()}_HPP"),
        )
        for shader in shaders
    ]


@click.command()
@click.option(
    "--shader-path",
    "-p",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The folder with the shaders: *.comp, and *.glsl with a main.",
)
@click.option(
    "--shader-binary", "-s", help="A glslangValidator to compile with, instead of our own compiler."
)
@click.option(
    "--header-path",
    "-c",
    help="The C++ header for all shaders; or a folder, for one header each. Default: beside each shader.",
)
@click.option("--namespace", default=_NAMESPACE, show_default=True, help="The C++ namespace; '' for none.")
@click.option(
    "--python", "python_path", type=click.Path(path_type=Path), help="A Python module to write too."
)
@click.option(
    "--target-env",
    type=click.Choice(_ENVIRONMENTS),
    default="vulkan1.1",
    show_default=True,
    help="The Vulkan that is to run them: SPIR-V 1.0, 1.3 or 1.5.",
)
@click.option("--verbose", "-v", is_flag=True, help="Say what is done.")
def convert_shaders(
    shader_path: Path,
    shader_binary: str | None,
    header_path: str | None,
    namespace: str,
    python_path: Path | None,
    target_env: str,
    verbose: bool,
) -> None:
    """Compile the compute shaders of a folder to SPIR-V, with C++ headers that hold it.

    FILE.comp becomes FILE.comp.spv beside it, and FILE.comp.hpp. Nothing is written where a shader is wrong.
    """
    if namespace and not _NAME.fullmatch(namespace):
        raise click.BadParameter(f"{namespace!r} is no C++ namespace", param_hint="--namespace")
    paths = find_shaders(shader_path)
    if not paths:
        raise click.ClickException(f"{shader_path}: there is no *.comp, and no *.glsl with a main")

    def compile_one(path: Path) -> bytes:
        if verbose:
            click.echo(f"compiling {path}")
        if shader_binary:
            return compile_with(shader_binary, path, target_env)
        return compile_glsl_file(str(path), _ENVIRONMENTS.index(target_env))

    shaders, failures = compile_all(shader_path, paths, compile_one)
    if failures:
        raise click.ClickException("\n".join(failures))
    _refuse_equal_names(shaders, lambda shader: shader.cpp_name)
    outputs: list[tuple[Path, bytes]] = [(shader_path / f"{s.path}.spv", s.spirv) for s in shaders]
    headers = _make_headers(shader_path, header_path, namespace, shaders)
    outputs += [(path, text.encode()) for path, text in headers]
    if python_path:
        _refuse_equal_names(shaders, lambda shader: shader.python_name)
        outputs.append((python_path, format_python_module(shaders).encode()))
    for path, data in outputs:
        if verbose:
            click.echo(f"writing {path}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        except OSError as error:
            raise click.ClickException(f"{path}: {error.strerror}") from error


if __name__ == "__main__":
    convert_shaders()
