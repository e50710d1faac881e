"""GLSL to SPIR-V in this process, and files that contain SPIR-V."""

import re
import struct
from collections.abc import Iterable, Sequence
from keyword import iskeyword
from typing import Any

from vkdispatch.base.compilation import compiler
from vkdispatch.base.compilation.includes import Preprocessing
from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.base.record import record
from vkdispatch.kompute.enums import KomputeError, require_iterable

# ---- GLSL to SPIR-V with the built-in compiler -----------------------------------------------------------


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


# ---- The shader compiler of Kompute 0.7 ------------------------------------------------------------------


_NAME = re.compile(r"[A-Za-z_]\w*")
_MACRO = re.compile(r"[A-Za-z_]\w*(\([\w, ]*\))?")


class Shader:
    """GLSL to SPIR-V, as in Kompute 0.7. `kp.compile_glsl` does the same without options."""

    __slots__ = ()

    @staticmethod
    def compile_source(
        source: str, entry_point: str = "main", definitions: Iterable[tuple[str, str]] = (), **older: Any
    ) -> bytes:
        """Compile a GLSL compute shader, in this process and without a device.

        Parameters
        ----------
        source
            GLSL for Vulkan.
        entry_point
            The function that runs. Kompute 0.7 names this argument `entryPoint`. The module's entry point is
            always "main", as `kp.Manager.algorithm` expects.
        definitions
            Macros, as pairs of a name and a replacement text.

        Returns
        -------
        The SPIR-V module.

        Raises
        ------
        TypeError
            An argument has the wrong type.
        RuntimeError
            The source does not compile (the message has the compiler's log), or a name is invalid.
        """
        return Shader.compile_sources([source], (), entry_point, definitions, **older)

    @staticmethod
    def compile_sources(
        sources: Sequence[str],
        files: Sequence[str] = (),
        entry_point: str = "main",
        definitions: Iterable[tuple[str, str]] = (),
        **older: Any,
    ) -> bytes:
        """Compile several texts as one GLSL compute shader.

        Parameters
        ----------
        sources
            The texts, in order. `#version` belongs in the first one. Messages number the texts from 0.
        files
            The names of the texts in messages, or empty.
        entry_point, definitions
            As of `compile_source`. The result and the errors are the same too.
        """
        unknown = sorted({*older} - {"entryPoint"})
        if unknown:
            raise ArgumentTypeError(f"compile_source has no argument {unknown[0]!r}")
        texts = _parse_texts("sources", sources)
        names = _parse_texts("files", files)
        if not texts or len(names) not in (0, len(texts)):
            raise KomputeError(f"files: {len(names)} names for {len(texts)} sources")
        name = older.get("entryPoint", entry_point)
        if not isinstance(name, str):
            raise ArgumentTypeError(f"entry_point: expected the name of a function, got {name!r}")
        if not _NAME.fullmatch(name):
            raise KomputeError(f"entry_point: expected the name of a function, got {name!r}")
        macros = _parse_macros(definitions)
        joined = texts[0]
        for number, text in enumerate(texts[1:], 1):
            joined += f"\n#line 1 {number}\n{text}"
        if name != "main":  # swap the two names: the text may contain a `main` too
            renamed = {"main": f"main_beside_{name}", name: "main"}
            joined, macros = (
                re.sub(rf"\b(?:main|{name})\b", lambda match: renamed[match[0]], text)
                for text in (joined, macros)
            )
        preprocessing = Preprocessing(macros, (), {}) if macros else None
        return compiler.compile_glsl(joined, ", ".join(names) or "shader", preprocessing=preprocessing)


def _parse_texts(argument: str, value: object) -> list[str]:
    texts = list(require_iterable(argument, value, "a list of texts"))
    for text in texts:
        if not isinstance(text, str):
            raise ArgumentTypeError(f"{argument}: expected texts, got {type(text).__name__}")
    return texts


def _parse_macros(value: object) -> str:
    """Return the lines that define macros. Raises TypeError or RuntimeError for invalid definitions."""
    lines = ""
    for pair in require_iterable("definitions", value, "pairs of a name and a text"):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not all(isinstance(x, str) for x in pair):
            raise ArgumentTypeError(f"definitions: expected pairs of a name and a text, got {pair!r}")
        name, text = pair
        if not _MACRO.fullmatch(name) or "\n" in text:
            raise KomputeError(f"definitions: expected the name of a macro and a line of text, got {pair!r}")
        lines += f"#define {name} {text}\n"
    return lines


# ---- C++ headers and Python modules that contain SPIR-V --------------------------------------------------


_WORDS_IN_LINE, _BYTES_IN_LINE = 8, 16


@record
class CompiledShader:
    """A compiled shader.

    Attributes
    ----------
    path
        Its path relative to the folder, with "/" as the separator.
    spirv
        The SPIR-V module.
    """

    path: str
    spirv: bytes

    @property
    def cpp_name(self) -> str:
        """Its name in C++: `opmult_comp_spv` for opmult.comp."""
        return make_identifier(f"{self.path}.spv")

    @property
    def python_name(self) -> str:
        """Its name in Python: `opmult` for opmult.comp."""
        name = make_identifier(self.path.removesuffix(".comp"))
        return f"{name}_" if iskeyword(name) else name

    def words(self) -> tuple[int, ...]:
        """Return the words of the SPIR-V module."""
        return struct.unpack(f"<{len(self.spirv) // 4}I", self.spirv)


def make_identifier(text: str) -> str:
    """Return a C++ and Python identifier for a file name."""
    name = re.sub(r"[^0-9A-Za-z_]", "_", text)
    return f"shader_{name}" if name[:1].isdigit() else name


def format_header(shaders: Iterable[CompiledShader], namespace: str, guard: str) -> str:
    """Return a C++ header with shaders.

    It declares for each shader `<name>_words`, an array of std::uint32_t; `<name>`, an array of unsigned char
    with the same bytes; and `<name>_len`, the number of bytes.
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


def format_python_module(shaders: Iterable[CompiledShader]) -> str:
    """Return a Python module with the SPIR-V of shaders as bytes."""
    lines = ['"""SPIR-V of compute shaders, written by vkdispatch-convert-shaders."""', ""]
    for shader in shaders:
        pieces = [shader.spirv[i : i + _BYTES_IN_LINE] for i in range(0, len(shader.spirv), _BYTES_IN_LINE)]
        lines += [f"# {shader.path}", f"{shader.python_name} = bytes.fromhex("]
        lines += [f'    "{piece.hex()}"' for piece in pieces] + [")", ""]
    return "\n".join(lines)


def _format_rows(items: list[str], count: int) -> list[str]:
    return [f"    {', '.join(items[i : i + count])}," for i in range(0, len(items), count)]
