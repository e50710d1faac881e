"""How long each instruction of SPIR-V is, which of its words are identifiers, and in which part it stands."""

from collections.abc import Sequence

from vkdispatch.base.spirv import opcodes as op
from vkdispatch.base.spirv.module import LAST_KNOWN, Instruction, Module, has_type
from vkdispatch.base.spirv.opcodes import parse_ranges

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
