"""bfloat16 in compiled code, for compilers that do not support it.

The GLSL of a kernel with cooperative matrices of bfloat16 contains `MARK` and no other 16-bit floats. The
compiler sees float16_t; afterwards all 16-bit floats in the SPIR-V become bfloat16 (SPV_KHR_bfloat16).
"""

import struct
from collections.abc import Iterator

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
    for instruction in _split_instructions(words):
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


def _split_instructions(words: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    at = _HEADER
    while at < len(words):
        size = words[at] >> 16
        yield words[at : at + size]
        at += size
