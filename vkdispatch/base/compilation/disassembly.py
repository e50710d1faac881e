"""SPIR-V as text, with the line of the source that each instruction comes from."""

import struct

from vkdispatch.base.compilation.compiler import split_instructions
from vkdispatch.base.native_module import native
from vkdispatch.base.record import record

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
