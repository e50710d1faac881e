"""`vkdispatch-convert-shaders`: a folder of GLSL into SPIR-V files, C++ headers and a Python module.

The options are those of Kompute's `convert_shaders.py`. The built-in compiler is used unless
`--shader-binary` names another one.
"""

import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import click

from vkdispatch.base.compilation.compiler import compile_glsl_file
from vkdispatch.base.errors import ShaderBuildError
from vkdispatch.kompute.shaders import CompiledShader, format_header, format_python_module, make_identifier

_SUFFIXES = (".comp", ".glsl")


# The namespace of Kompute's own headers.
_NAMESPACE = "kp::shader_data"


_ENVIRONMENTS = ("vulkan1.0", "vulkan1.1", "vulkan1.2", "vulkan1.3")


_NAME = re.compile(r"[A-Za-z_]\w*(::[A-Za-z_]\w*)*", re.ASCII)


_MAIN = re.compile(r"\bvoid\s+main\s*\(")


def find_shaders(folder: Path) -> list[str]:
    """Return the shaders in a folder and its subfolders, as relative paths.

    `.glsl` files without a `main` are include files and are omitted.
    """
    files = sorted(path for path in folder.rglob("*") if path.suffix in _SUFFIXES and path.is_file())
    return [path.relative_to(folder).as_posix() for path in files if not _is_include(path)]


def _is_include(path: Path) -> bool:
    return path.suffix == ".glsl" and not _MAIN.search(path.read_text(encoding="utf-8", errors="replace"))


def compile_with(binary: str, path: Path, environment: str) -> bytes:
    """Compile a shader with the user's `glslangValidator` or `glslang`.

    Raises
    ------
    ShaderBuildError
        The compiler rejects the shader, or cannot be run.
    """
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "shader.spv")
        command = [binary, "-V", "--target-env", environment, "-S", "comp", str(path), "-o", str(output)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        except OSError as error:
            raise ShaderBuildError(f"{binary} cannot be run: {error.strerror}", shader_source="") from error
        log = (done.stdout + done.stderr).strip()
        if done.returncode or not output.exists():
            raise ShaderBuildError(
                f"{path} does not compile:\n{log}", shader_source=path.read_text(), compiler_log=log
            )
        return output.read_bytes()


def compile_all(
    folder: Path, paths: Iterable[str], compiler: Callable[[Path], bytes]
) -> tuple[list[CompiledShader], list[str]]:
    """Return the shaders that compile, and the error messages of the others."""
    shaders, failures = [], []
    for path in paths:
        try:
            shaders.append(CompiledShader(path, compiler(folder / path)))
        except (ShaderBuildError, OSError, UnicodeDecodeError) as error:
            failures.append(
                str(error) if isinstance(error, ShaderBuildError) else f"{folder / path}: {error}"
            )
    return shaders, failures


def _require_distinct_names(
    shaders: Iterable[CompiledShader], name_of: Callable[[CompiledShader], str]
) -> None:
    known: dict[str, CompiledShader] = {}
    for shader in shaders:
        other = known.setdefault(name_of(shader), shader)
        if other is not shader:
            raise click.ClickException(
                f"{other.path} and {shader.path} would both be named {name_of(shader)}; rename one of them"
            )


def _make_headers(
    folder: Path, header_path: str | None, namespace: str, shaders: list[CompiledShader]
) -> list[tuple[Path, str]]:
    """Return paths and contents of headers: one for all shaders if `header_path` is a file, else one each."""
    if header_path and not (header_path.endswith(("/", os.sep)) or Path(header_path).is_dir()):
        guard = f"KP_{make_identifier(Path(header_path).name).upper()}"
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
    "--shader-binary", "-s", help="A glslangValidator to compile with, instead of the built-in compiler."
)
@click.option(
    "--header-path",
    "-c",
    help="The C++ header for all shaders, or a folder for one header each. Default: next to each shader.",
)
@click.option("--namespace", default=_NAMESPACE, show_default=True, help="The C++ namespace; '' for none.")
@click.option(
    "--python", "python_path", type=click.Path(path_type=Path), help="A Python module to write as well."
)
@click.option(
    "--target-env",
    type=click.Choice(_ENVIRONMENTS),
    default="vulkan1.1",
    show_default=True,
    help="The Vulkan version to compile for: SPIR-V 1.0, 1.3, 1.5 or 1.6.",
)
@click.option("--verbose", "-v", is_flag=True, help="Print each step.")
def convert_shaders(
    shader_path: Path,
    shader_binary: str | None,
    header_path: str | None,
    namespace: str,
    python_path: Path | None,
    target_env: str,
    verbose: bool,
) -> None:
    """Compile the compute shaders of a folder to SPIR-V and C++ headers.

    FILE.comp becomes FILE.comp.spv and FILE.comp.hpp in the same folder. Nothing is written if a shader does
    not compile.
    """
    if namespace and not _NAME.fullmatch(namespace):
        raise click.BadParameter(f"{namespace!r} is not a C++ namespace", param_hint="--namespace")
    paths = find_shaders(shader_path)
    if not paths:
        raise click.ClickException(f"{shader_path}: no *.comp, and no *.glsl with a main")

    def compile_one(path: Path) -> bytes:
        if verbose:
            click.echo(f"compiling {path}")
        if shader_binary:
            return compile_with(shader_binary, path, target_env)
        return compile_glsl_file(str(path), _ENVIRONMENTS.index(target_env))

    shaders, failures = compile_all(shader_path, paths, compile_one)
    if failures:
        raise click.ClickException("\n".join(failures))
    _require_distinct_names(shaders, lambda shader: shader.cpp_name)
    outputs: list[tuple[Path, bytes]] = [(shader_path / f"{s.path}.spv", s.spirv) for s in shaders]
    headers = _make_headers(shader_path, header_path, namespace, shaders)
    outputs += [(path, text.encode()) for path, text in headers]
    if python_path:
        _require_distinct_names(shaders, lambda shader: shader.python_name)
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
