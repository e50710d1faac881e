"""C++ headers and Python modules that contain SPIR-V."""

import re
import struct
from collections.abc import Iterable
from keyword import iskeyword

from vkdispatch.base.record import record

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
