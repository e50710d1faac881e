"""Parsing of SPIR-V modules into instructions, whose operands are listed here."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.base.spirv import opcodes as op
from vkdispatch.base.spirv.opcodes import NEWEST_OF_1_2, parse_ranges

# ---- Parsing of SPIR-V modules into instructions; malformed modules raise ValueError ---------------------
#
# Drivers trust SPIR-V code, and crash if it is malformed. The checks here cover the structure: the header,
# the lengths of instructions, identifiers, functions and blocks (Khronos, "SPIR-V Specification", sections
# 2.3 to 2.4). They do not replace `spirv-val`, which runs as well if it is installed.


MAGIC = 0x07230203
_HEADER_WORDS = 5
NEWEST = (1, 6)  # of Vulkan 1.3, which contexts ask for; `check_features` compares devices with it
_MAX_BOUND = 1 << 22
_VALIDATOR_SECONDS = 60

GL_COMPUTE = 5
_TYPES = parse_ranges("19-38")
# Of extensions: cooperative matrices, and the layouts and views of tensors that they are parts of.
_COOPERATIVE_MATRIX, _TENSOR_LAYOUT, _TENSOR_VIEW = 4456, 5370, 5371
_TYPES_OF_EXTENSIONS = frozenset((_COOPERATIVE_MATRIX, _TENSOR_LAYOUT, _TENSOR_VIEW))
_RESULT_ONLY = _TYPES | {7, 11, 73, op.LABEL}
_NO_RESULT = parse_ranges(
    "0 2-6 8 10 14-17 39 56 62-64 71 72 74 75 99 218-225 228 246 247 249-257 317 319 330-332"
)
# Types: where the types that they are made of begin among the operands, and how many they are (None: all).
_MADE_OF_TYPES: dict[int, tuple[int, int | None]] = {
    **dict.fromkeys((op.TYPE_VOID, op.TYPE_BOOL, op.TYPE_SAMPLER), (1, 0)),
    op.TYPE_INT: (3, 0),
    op.TYPE_FLOAT: (2, 0),
    **dict.fromkeys((op.TYPE_VECTOR, op.TYPE_MATRIX, op.TYPE_ARRAY), (1, 1)),
    **dict.fromkeys((op.TYPE_RUNTIME_ARRAY, op.TYPE_IMAGE, op.TYPE_SAMPLED_IMAGE), (1, 1)),
    **dict.fromkeys((op.TYPE_STRUCT, op.TYPE_FUNCTION), (1, None)),
    31: (1, 0),
    op.TYPE_POINTER: (3, 0),
    _COOPERATIVE_MATRIX: (1, 1),
    **dict.fromkeys((_TENSOR_LAYOUT, _TENSOR_VIEW), (1, 0)),
}
# From here on come extensions, whose forms this module does not know.
LAST_KNOWN = 403
_TERMINATORS = parse_ranges("249-255 4416 4448 4449 5294")
_MODULE_LEVEL = parse_ranges("0-12 14-17 19-52 59 71-75 317 330-332")
# Names, decorations, execution modes.
_ABOUT_IDENTIFIERS = parse_ranges("5 6 16 71 72 74 75 331 332")
# Instructions whose operands after type and result are all identifiers.
_ALL_IDENTIFIERS = parse_ranges(
    "44 51 57 65-67 70 77 78 80 83 84 109-124 126-152 154-191 194-205 207-215 224 225 227-242 245 249 254"
)
_LEADING_IDENTIFIERS = {61: 1, 62: 2, 79: 2, 81: 1, 82: 2, 246: 2, 247: 1, 250: 3, 251: 2, op.TYPE_VECTOR: 1}
_LEADING_IDENTIFIERS |= {
    op.TYPE_MATRIX: 1,
    op.TYPE_ARRAY: 2,
    op.TYPE_RUNTIME_ARRAY: 1,
    op.TYPE_IMAGE: 1,
    op.TYPE_SAMPLED_IMAGE: 1,
}


@record
class Instruction:
    """An instruction: its opcode, the words after the first, and where in the module it starts."""

    opcode: int
    operands: Sequence[int]
    at: int


def has_type(opcode: int) -> bool:
    """Whether an instruction's first two operands are the type and the identifier of its result."""
    return opcode <= LAST_KNOWN and opcode not in _NO_RESULT and opcode not in _RESULT_ONLY


def has_result(opcode: int) -> bool:
    """Whether an instruction defines an identifier."""
    return opcode <= LAST_KNOWN and opcode not in _NO_RESULT


# Makes the error for an instruction.
_Refuse = Callable[[Instruction, str], ArgumentValueError]


@record
class Module:
    """A module whose structure is sound."""

    words: "np.ndarray[tuple[int], np.dtype[np.uint32]]"
    version: tuple[int, int]
    instructions: tuple[Instruction, ...]

    def of(self, *opcodes: int) -> Iterator[Instruction]:
        """Return the instructions that have one of these opcodes."""
        return (instruction for instruction in self.instructions if instruction.opcode in opcodes)


def read_module(code: object, argument: str = "spirv") -> Module:
    """Take a module apart.

    Parameters
    ----------
    code
        The module, in either byte order.
    argument
        How messages call it.

    Raises
    ------
    TypeError
        `code` is no bytes.
    ValueError
        It is no SPIR-V, of a version that is newer than 1.6, or malformed.
    """
    words = _words(code, argument)
    version = (int(words[1]) >> 16 & 0xFF, int(words[1]) >> 8 & 0xFF)
    if int(words[1]) & 0xFF0000FF or not (1, 0) <= version <= (2, 0):
        raise ArgumentValueError(f"{argument}: {int(words[1]):#010x} is no version of SPIR-V")
    if version > NEWEST:
        raise ArgumentValueError(
            f"{argument}: SPIR-V {version[0]}.{version[1]} is newer than 1.6, which Vulkan 1.3 takes; "
            "compile it with --target-env=vulkan1.3"
        )
    bound = int(words[3])
    if not 0 < bound <= _MAX_BOUND or words[4] != 0:
        raise ArgumentValueError(f"{argument}: malformed SPIR-V: its header says {bound} identifiers")
    module = Module(words, version, tuple(_instructions(words, argument)))
    _check_structure(module, bound, argument)
    return module


def _words(code: object, argument: str) -> "np.ndarray[tuple[int], np.dtype[np.uint32]]":
    if isinstance(code, np.ndarray):
        code = np.ascontiguousarray(code).tobytes()
    if not isinstance(code, (bytes, bytearray, memoryview)):
        raise ArgumentTypeError(
            f"{argument}: expected the bytes of a SPIR-V module, got {type(code).__name__}"
        )
    data = bytes(code)
    if len(data) < 4 * _HEADER_WORDS or len(data) % 4:
        raise ArgumentValueError(f"{argument}: {len(data)} bytes are no SPIR-V module")
    words = np.frombuffer(data, "<u4").astype(np.uint32)
    if words[0] == int.from_bytes(MAGIC.to_bytes(4, "little"), "big"):
        words = words.byteswap()
    if words[0] != MAGIC:
        raise ArgumentValueError(
            f"{argument}: no SPIR-V module: it starts with {data[:4]!r}, not {MAGIC.to_bytes(4, 'little')!r}"
        )
    return words


def _instructions(
    words: "np.ndarray[tuple[int], np.dtype[np.uint32]]", argument: str
) -> Iterator[Instruction]:
    at, plain = _HEADER_WORDS, words.tolist()
    while at < len(plain):
        length, opcode = plain[at] >> 16, plain[at] & 0xFFFF
        if length == 0 or at + length > len(plain):
            raise ArgumentValueError(
                f"{argument}: malformed SPIR-V: instruction {opcode} at word {at} says {length} words, "
                f"{len(plain) - at} are left"
            )
        yield Instruction(opcode, plain[at + 1 : at + length], at)
        at += length


def _check_structure(module: Module, bound: int, argument: str) -> None:
    def refuse(instruction: Instruction, what: str) -> ArgumentValueError:
        return ArgumentValueError(
            f"{argument}: malformed SPIR-V: instruction {instruction.opcode} at word {instruction.at} {what}"
        )

    defined, types = _definitions(module, bound, refuse)
    _check_types(module, types, refuse, argument)
    for instruction in module.of(*_ABOUT_IDENTIFIERS):
        if not instruction.operands or instruction.operands[0] not in defined:
            raise refuse(instruction, "is about an identifier that is not defined")
    in_function = in_block = False
    blocks = 0
    for instruction in module.instructions:
        opcode = instruction.opcode
        _check_identifiers(instruction, defined, types, refuse)
        if opcode == op.FUNCTION:
            if in_function:
                raise refuse(instruction, "starts a function inside another")
            in_function, blocks = True, 0
        elif opcode == op.FUNCTION_END:
            if not in_function or in_block or not blocks:
                raise refuse(instruction, "ends a function that has no whole body")
            in_function = False
        elif opcode == op.LABEL:
            if not in_function or in_block:
                raise refuse(instruction, "starts a block where none can be")
            in_block, blocks = True, blocks + 1
        elif opcode in _TERMINATORS:
            if not in_block:
                raise refuse(instruction, "ends a block that did not start")
            in_block = False
        elif in_function and not in_block:
            if opcode not in (op.FUNCTION_PARAMETER, op.LINE, op.NO_LINE, op.NOP) or (
                blocks and opcode == op.FUNCTION_PARAMETER
            ):
                raise refuse(instruction, "lies outside the blocks of its function")
        elif not in_function and opcode <= LAST_KNOWN and opcode not in _MODULE_LEVEL:
            raise refuse(instruction, "lies outside of a function")
    if in_function:
        raise ArgumentValueError(f"{argument}: malformed SPIR-V: the last function has no end")
    if sum(1 for _ in module.of(op.MEMORY_MODEL)) != 1:
        raise ArgumentValueError(f"{argument}: malformed SPIR-V: it needs exactly one memory model")


def _definitions(module: Module, bound: int, refuse: _Refuse) -> tuple[set[int], set[int]]:
    """Return all identifiers that the module defines, and those of types."""
    defined: set[int] = set()
    types: set[int] = set()
    for instruction in module.instructions:
        opcode, operands = instruction.opcode, instruction.operands
        if opcode > LAST_KNOWN:
            # Which words are identifiers is unknown: those that could be count as defined.
            defined.update(word for word in operands[:2] if 0 < word < bound)
            if opcode in _TYPES_OF_EXTENSIONS:
                types.update(operands[:1])
            continue
        if opcode in _NO_RESULT:
            continue
        position = 0 if opcode in _RESULT_ONLY else 1
        if len(operands) <= position:
            raise refuse(instruction, "is too short")
        result = operands[position]
        if not 0 < result < bound:
            raise refuse(instruction, f"defines identifier {result}, the header allows 1 to {bound - 1}")
        if result in defined:
            raise refuse(instruction, f"defines identifier {result} once more")
        defined.add(result)
        if opcode in _TYPES:
            types.add(result)
    return defined, types


def _check_types(module: Module, types: set[int], refuse: _Refuse, argument: str) -> None:
    """Refuse types that are made of what comes later, or of no types."""
    earlier: set[int] = set()
    forward = {
        instruction.operands[0] for instruction in module.of(op.TYPE_FORWARD_POINTER) if instruction.operands
    }
    for instruction in module.of(*_MADE_OF_TYPES):
        operands = instruction.operands
        first, count = _MADE_OF_TYPES[instruction.opcode]
        for word in operands[first : None if count is None else first + count]:
            if word in types and word not in earlier:
                if word in forward:
                    raise ArgumentValueError(
                        f"{argument}: it has pointers in a block (buffer_reference), which are not "
                        "supported: bind the buffers themselves"
                    )
                raise refuse(instruction, f"is made of identifier {word}, which comes later")
            if word not in types:
                raise refuse(instruction, f"is made of identifier {word}, which is no type")
        if len(operands) < first + (count or 0):
            raise refuse(instruction, "is too short")
        earlier.add(operands[0])


def _check_identifiers(instruction: Instruction, defined: set[int], types: set[int], refuse: _Refuse) -> None:
    opcode, operands = instruction.opcode, instruction.operands
    if opcode > LAST_KNOWN:
        return
    skipped = 0 if opcode in _NO_RESULT else 1 if opcode in _RESULT_ONLY else 2
    if skipped == 2 and operands[0] not in types:
        raise refuse(instruction, f"has the type {operands[0]}, which is none")
    rest = operands[skipped:]
    if opcode in _LEADING_IDENTIFIERS:
        count = _LEADING_IDENTIFIERS[opcode]
        if len(rest) < count:
            raise refuse(instruction, "is too short")
        rest = rest[:count]
    elif opcode == op.TYPE_POINTER:
        # What it points at may come later.
        rest = rest[1:]
    elif opcode not in _ALL_IDENTIFIERS:
        return
    for word in rest:
        if word not in defined:
            raise refuse(instruction, f"uses identifier {word}, which is not defined")


def validate(code: bytes, argument: str = "spirv") -> None:
    """Have `spirv-val` look at a module, where it is installed.

    Raises
    ------
    ValueError
        It found an error; the message has what it says.
    """
    # Here, as they take longer to import than all else that a program with SPIR-V of its own needs.
    import shutil
    import subprocess

    validator = shutil.which("spirv-val")
    if validator is None:
        return
    environment = "vulkan1.2" if _words(code, argument)[1] >> 8 & 0xFF <= NEWEST_OF_1_2[1] else "vulkan1.3"
    command = [validator, "--target-env", environment, "--scalar-block-layout", "-"]
    try:
        done = subprocess.run(
            command, input=code, capture_output=True, timeout=_VALIDATOR_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return  # no verdict
    if done.returncode == 1:
        said = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
        raise ArgumentValueError(f"{argument}: invalid SPIR-V, says spirv-val:\n{said}")


def text(operands: Sequence[int]) -> tuple[str, int]:
    """Return the text that starts with the first of these words, and how many words it takes."""
    data = np.asarray(operands, np.uint32).tobytes()
    end = data.find(b"\0")
    if end < 0:
        return data.decode("utf-8", "replace"), len(operands)
    return data[:end].decode("utf-8", "replace"), end // 4 + 1


# ---- How long each instruction of SPIR-V is --------------------------------------------------------------
#
# Which  of its words are identifiers, and in which part it stands.


_ANY = 1 << 16

# Operands after the type and the result: the least number, the most, and how many of the first are
# identifiers (-1: all). "249-255" is a range.
_FORMS: tuple[tuple[str, int, int, int], ...] = (
    ("0 56 252 253 255 317 1 41 42 46 48 49 55 19 20 26 73 248", 0, 0, 0),
    ("2 7 10 11 330", 1, _ANY, 0),
    ("4", 1, _ANY, 0),
    ("3", 2, _ANY, 0),
    ("5 74", 1, _ANY, 1),
    ("6 71 16", 2, _ANY, 1),
    ("72", 3, _ANY, 1),
    ("331 332", 2, _ANY, 1),
    ("8", 3, 3, 1),
    ("14", 2, 2, 0),
    ("22", 1, 2, 0),
    ("17", 1, 1, 0),
    ("15", 3, _ANY, 0),
    ("21", 2, 2, 0),
    ("23 24", 2, 2, 1),
    ("25", 7, 8, 1),
    ("27 29", 1, 1, 1),
    ("28", 2, 2, 2),
    ("30 33", 0, _ANY, -1),
    ("32", 2, 2, 0),
    ("39", 2, 2, 1),
    ("43 50", 1, 2, 0),
    ("44 51", 1, _ANY, -1),
    ("52", 2, _ANY, 0),
    ("54", 2, 2, 0),
    ("57", 1, _ANY, -1),
    ("59", 1, 2, 0),
    ("60", 3, 3, -1),
    ("61", 1, _ANY, 1),
    ("62 63", 2, _ANY, 2),
    ("64", 3, _ANY, 3),
    ("65 66", 1, _ANY, -1),
    ("67 70", 2, _ANY, -1),
    ("68", 2, 2, 1),
    ("12", 2, _ANY, 1),
    ("77", 2, 2, -1),
    ("78", 3, 3, -1),
    ("79", 3, _ANY, 2),
    ("80", 1, _ANY, -1),
    ("81", 2, _ANY, 1),
    ("82", 3, _ANY, 2),
    ("83 84 100 101 102 104 106 107 109-122 124 126 154-160 168 200 204 205 400", 1, 1, -1),
    ("86 103 105", 2, 2, -1),
    ("87 91 95 98", 2, _ANY, 2),
    ("88 92", 4, _ANY, 2),
    ("89 93 96 97", 3, _ANY, 3),
    ("90 94", 5, _ANY, 3),
    ("99", 3, _ANY, 3),
    ("127", 1, 1, -1),
    ("128-152 161-167 170-191 194-199 401-403", 2, 2, -1),
    ("169 202 203", 3, 3, -1),
    ("201", 4, 4, -1),
    ("207-215", 1, 1, -1),
    ("224", 3, 3, -1),
    ("225", 2, 2, -1),
    ("227 232 233", 3, 3, -1),
    ("228", 4, 4, -1),
    ("229 234-242", 4, 4, -1),
    ("230 231", 6, 6, -1),
    ("245", 0, _ANY, -1),
    ("246", 3, _ANY, 2),
    ("247", 2, 2, 1),
    ("249 254", 1, 1, -1),
    ("250", 3, 5, 3),
    ("251", 2, _ANY, 2),
    ("333", 1, 1, -1),
    ("334-336 338-340 343 344", 2, 2, -1),
    ("337 341 345-348 365 366", 3, 3, -1),
    ("342", 3, 3, 1),
    ("349-364", 3, 4, 1),
)
_FORM_OF = {opcode: form[1:] for form in _FORMS for opcode in parse_ranges(form[0])}

# The parts of a module in their order. What stands in none of them may stand anywhere, or in functions.
_PARTS = ("17", "10", "11", "14", "15", "16 331", "2-7 330", "71-75 332", "19-52 59")
_PART_OF = {opcode: part for part, text in enumerate(_PARTS) for opcode in parse_ranges(text)}
_ANYWHERE = parse_ranges("0 1 8 12 317")
_SECOND_IDENTIFIERS = {342: (2,), **dict.fromkeys(range(349, 365), (2, 3))}


def wrong_form(instruction: Instruction) -> str | None:
    """Return what is wrong with the length of an instruction, or None."""
    form = _FORM_OF.get(instruction.opcode)
    if form is None:
        known = instruction.opcode > LAST_KNOWN  # of an extension
        return None if known else "is none that a compute shader has"
    count = len(instruction.operands) - _before(instruction.opcode)
    if count < form[0]:
        return "is too short"
    if count > form[1]:
        return "is too long"
    if instruction.opcode == 250 and count == 4:
        return "has one weight of two"
    if instruction.opcode in (245,) and count % 2:
        return "has a value without a block"
    return None


def identifiers(instruction: Instruction) -> Sequence[int]:
    """Return the identifiers that an instruction of right form uses, its type aside."""
    opcode, operands = instruction.opcode, instruction.operands
    form = _FORM_OF.get(opcode)
    if form is None:
        return ()
    begin = _before(opcode)
    if opcode == 12:
        return [operands[2], *operands[4:]]
    if opcode in _SECOND_IDENTIFIERS:
        return [operands[begin], *operands[begin + 2 :]]
    if opcode == 59 or opcode == 32:
        return operands[3:] if opcode == 59 else ()
    if opcode == 54:
        return operands[3:4]
    if opcode == 52:
        return () if operands[2] in (79, 81, 82) else operands[3:]
    return operands[begin:] if form[2] < 0 else operands[begin : begin + form[2]]


def find_misplaced(module: Module) -> Instruction | None:
    """Return the first instruction that stands in the wrong part of the module, or None."""
    part, inside = 0, False
    for instruction in module.instructions:
        opcode = instruction.opcode
        if opcode == op.FUNCTION:
            inside = True
        elif opcode == op.FUNCTION_END:
            part, inside = len(_PARTS), False
        elif opcode in _ANYWHERE or opcode > LAST_KNOWN:
            continue
        elif opcode in _PART_OF:
            if inside:
                if opcode != op.VARIABLE:
                    return instruction
            elif _PART_OF[opcode] < part:
                return instruction
            else:
                part = _PART_OF[opcode]
    return None


def _before(opcode: int) -> int:
    """Return how many operands come first: the type and the result."""
    return 2 if has_type(opcode) else 1 if opcode in _RESULT_FIRST else 0


_RESULT_FIRST = parse_ranges("7 11 19-38 73 248")
