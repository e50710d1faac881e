"""What the identifiers of a SPIR-V module are, and the types that instructions take and give."""

from collections.abc import Callable, Sequence

from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.spirv import opcodes as op
from vkdispatch.base.spirv.module import LAST_KNOWN, Instruction, Module, has_type, text
from vkdispatch.base.spirv.opcodes import parse_ranges

# ---- The types that instructions of SPIR-V take and give, and those of the functions of GLSL.std.450 -----


Shape = tuple[int, int, int]  # opcode of the component's type, its bits, components
_BOOL, _INT, _FLOAT = op.TYPE_BOOL, op.TYPE_INT, op.TYPE_FLOAT
_Rule = Callable[[Shape, Sequence[Shape]], bool]


def _all_the_same(made: Shape, given: Sequence[Shape]) -> bool:
    return all(shape == made for shape in given)


def _floats(made: Shape, given: Sequence[Shape]) -> bool:
    return made[0] == _FLOAT and _all_the_same(made, given)


def _integers(made: Shape, given: Sequence[Shape]) -> bool:
    return made[0] == _INT and _all_the_same(made, given)


def _bits_of(made: Shape, given: Sequence[Shape]) -> bool:
    """Whether the first is an integer like the result, and the others (offset, count) are some integer."""
    first, *rest = given
    return _integers(made, [first]) and all(shape[0] == _INT and shape[2] == 1 for shape in rest)


def _inserted_bits(made: Shape, given: Sequence[Shape]) -> bool:
    return _bits_of(made, [given[0], *given[2:]]) and given[1] == made


def _has_count(made: Shape, given: Sequence[Shape]) -> bool:
    return made[0] == given[0][0] == _INT and made[2] == given[0][2]


def _from(source: int, target: int) -> _Rule:
    def convert(made: Shape, given: Sequence[Shape]) -> bool:
        return made[0] == target and given[0][0] == source and made[2] == given[0][2]

    return convert


def _same_bits(made: Shape, given: Sequence[Shape]) -> bool:
    return _BOOL not in (made[0], given[0][0]) and made[1] * made[2] == given[0][1] * given[0][2]


def _asks_vector(made: Shape, given: Sequence[Shape]) -> bool:
    return made[0] == given[0][0] == _BOOL and made[2] == 1


def _asks_floats(made: Shape, given: Sequence[Shape]) -> bool:
    return made[0] == _BOOL and all(shape[0] == _FLOAT and shape[2] == made[2] for shape in given)


def _is_scaling(made: Shape, given: Sequence[Shape]) -> bool:
    return made[0] == _FLOAT and made == given[0] and given[1] == (*made[:2], 1)


def _dot(made: Shape, given: Sequence[Shape]) -> bool:
    return made[0] == _FLOAT and given[0] == given[1] and given[0][:2] == made[:2] and made[2] == 1


def _element(made: Shape, given: Sequence[Shape]) -> bool:
    return given[0][:2] == made[:2] and made[2] == 1 and given[1][0] == _INT and given[1][2] == 1


def _with_element(made: Shape, given: Sequence[Shape]) -> bool:
    return given[0] == made and given[1] == (*made[:2], 1) and given[2][0] == _INT and given[2][2] == 1


RULES: dict[int, _Rule] = {
    77: _element,
    78: _with_element,
    **dict.fromkeys((109, 110), _from(_FLOAT, _INT)),
    **dict.fromkeys((111, 112), _from(_INT, _FLOAT)),
    **dict.fromkeys((113, 114), _from(_INT, _INT)),
    115: _from(_FLOAT, _FLOAT),
    116: _floats,
    142: _is_scaling,
    148: _dot,
    **dict.fromkeys((154, 155), _asks_vector),
    **dict.fromkeys(range(156, 164), _asks_floats),
    201: _inserted_bits,
    **dict.fromkeys((202, 203), _bits_of),
    204: _integers,
    205: _has_count,
    **dict.fromkeys((207, 208, 209, 210, 211, 212, 213, 214, 215), _floats),
}


def _packing(bits: int, count: int, width: int = 32) -> _Rule:
    def packs(made: Shape, given: Sequence[Shape]) -> bool:
        return given[0] == (_FLOAT if width == 32 else _INT, 32, count) and made[2] == 1 and made[1] == bits

    return packs


def _unpacking(bits: int, count: int, width: int = 32) -> _Rule:
    def unpacks(made: Shape, given: Sequence[Shape]) -> bool:
        return made == (_FLOAT if width == 32 else _INT, 32, count) and given[0][1:] == (bits, 1)

    return unpacks


def _length(made: Shape, given: Sequence[Shape]) -> bool:
    return made[0] == _FLOAT and made[2] == 1 and all(s[:2] == made[:2] and s == given[0] for s in given)


def _cross(made: Shape, given: Sequence[Shape]) -> bool:
    return _floats(made, given) and made[2] == 3


def _refract(made: Shape, given: Sequence[Shape]) -> bool:
    return _floats(made, given[:2]) and given[2][0] == _FLOAT and given[2][2] == 1


def _scaled_by_power(made: Shape, given: Sequence[Shape]) -> bool:
    return _floats(made, given[:1]) and given[1][0] == _INT and given[1][2] == made[2]


def _integers_of_a_width(made: Shape, given: Sequence[Shape]) -> bool:
    return made[0] == _INT and all(shape == made for shape in given)


def _found_bit(made: Shape, given: Sequence[Shape]) -> bool:
    return made[0] == given[0][0] == _INT and made[2] == given[0][2]


_NUMBERS: tuple[tuple[str, int, _Rule], ...] = (
    ("1-4 6 8-10 11-24 27-32 69", 1, _floats),
    ("25 26 37 40 48 71 79 80", 2, _floats),
    ("43 46 49 50 70 81", 3, _floats),
    ("5 7", 1, _integers_of_a_width),
    ("38 39 41 42", 2, _integers_of_a_width),
    ("44 45", 3, _integers_of_a_width),
    ("73-75", 1, _found_bit),
    ("53", 2, _scaled_by_power),
    ("54 55", 1, _packing(32, 4)),
    ("56-58", 1, _packing(32, 2)),
    ("59", 1, _packing(64, 2, 0)),
    ("60-62", 1, _unpacking(32, 2)),
    ("63 64", 1, _unpacking(32, 4)),
    ("65", 1, _unpacking(64, 2, 0)),
    ("66", 1, _length),
    ("67", 2, _length),
    ("68", 2, _cross),
    ("72", 3, _refract),
)
# Functions of numbers and vectors in GLSL.std.450: how many operands they take, and of what types.
GLSL_NUMBERS = {number: (count, rule) for text, count, rule in _NUMBERS for number in parse_ranges(text)}
# Those of matrices and structures, and those that write through a pointer: how many operands they take.
GLSL_OTHERS = {33: 1, 34: 1, 35: 2, 36: 1, 51: 2, 52: 1}


# ---- What the identifiers of a SPIR-V module are: types, values, constants, functions --------------------


_GLSL = "GLSL.std.450"
_READ_ONLY = (0, 1, 9)  # UniformConstant, Input, PushConstant


class Values:
    """Tables of a module's identifiers, and what the checks of its instructions ask of them."""

    def __init__(self, module: Module, argument: str) -> None:
        self.module = module
        self.argument = argument
        self.types: dict[int, Instruction] = {}
        self.type_of: dict[int, int] = {}
        self.integers: dict[int, int] = {}
        self.functions: dict[int, Instruction] = {}
        self.glsl: set[int] = set()
        self.constants: set[int] = set()
        self.labels: set[int] = set()
        self.sizes: dict[int, int] = {}
        for instruction in module.instructions:
            opcode, operands = instruction.opcode, instruction.operands
            if op.TYPE_VOID <= opcode <= op.TYPE_PIPE:
                self.types[operands[0]] = instruction
            elif opcode == op.LABEL:
                self.labels.add(operands[0])
            elif opcode == op.EXTENDED_INSTRUCTIONS:
                if text(operands[1:])[0] == _GLSL:
                    self.glsl.add(operands[0])
            elif opcode > LAST_KNOWN:
                # of an extension: most have a type and a result
                if len(operands) > 1 and operands[0] in self.types:
                    self.type_of.setdefault(operands[1], operands[0])
            elif has_type(opcode):
                self.type_of[operands[1]] = operands[0]
                if op.CONSTANT_TRUE <= opcode <= op.SPEC_CONSTANT_OP:
                    self.constants.add(operands[1])
                if opcode == op.CONSTANT and len(operands) > 2:
                    self.integers[operands[1]] = operands[2]
                elif opcode == op.FUNCTION:
                    self.functions[operands[1]] = instruction

    def _refuse(self, instruction: Instruction, what: str) -> ArgumentValueError:
        return ArgumentValueError(
            f"{self.argument}: malformed SPIR-V: instruction {instruction.opcode} at word {instruction.at} "
            f"{what}"
        )

    def _require(self, instruction: Instruction, holds: bool, what: str) -> None:
        if not holds:
            raise self._refuse(instruction, what)

    def _same(self, instruction: Instruction, first: int, second: int) -> None:
        self._require(instruction, first == second, f"mixes the types {first} and {second}")

    def _type(self, instruction: Instruction, position: int) -> int:
        """Return the type of the value that is an operand."""
        operands = instruction.operands
        if position >= len(operands) or operands[position] not in self.type_of:
            raise self._refuse(instruction, f"has no value as operand {position}")
        return self.type_of[operands[position]]

    def _is(self, kind: int, *wanted: int) -> bool:
        return kind in self.types and self.types[kind].opcode in wanted

    def _pointee(self, instruction: Instruction, kind: int) -> int:
        self._require(instruction, self._is(kind, op.TYPE_POINTER), "has no pointer where it needs one")
        return self.types[kind].operands[2]

    def _shape(self, kind: int) -> Shape | None:
        made = self.types.get(kind)
        count = 1
        if made is not None and made.opcode == op.TYPE_VECTOR:
            count = made.operands[2]
            made = self.types.get(made.operands[1])
        if made is None or made.opcode not in (op.TYPE_BOOL, op.TYPE_INT, op.TYPE_FLOAT):
            return None
        return (made.opcode, made.operands[1] if len(made.operands) > 1 else 0, count)

    def _signature(self, function: Instruction) -> Sequence[int]:
        """Return the types of a function's result and parameters."""
        operands = function.operands
        known = len(operands) > 3 and self._is(operands[3], op.TYPE_FUNCTION)
        self._require(function, known, "has no function type")
        signature = self.types[operands[3]].operands[1:]
        self._require(function, bool(signature), "has no function type")
        self._same(function, operands[0], signature[0])
        return signature

    def _endless(self, kind: int) -> bool:
        """Whether a type ends with an array without a fixed length."""
        made = self.types.get(kind)
        if made is not None and made.opcode == op.TYPE_STRUCT:
            return bool(made.operands[1:]) and self._endless(made.operands[-1])
        return made is not None and made.opcode == op.TYPE_RUNTIME_ARRAY

    def _size(self, kind: int) -> int:
        """Return the bytes of a type, about; its arrays have the lengths that the module says."""
        if kind not in self.sizes:
            self.sizes[kind] = self._measure(kind)
        return self.sizes[kind]

    def _measure(self, kind: int) -> int:
        made = self.types.get(kind)
        if made is None:
            return 0
        if made.opcode in (op.TYPE_INT, op.TYPE_FLOAT):
            return made.operands[1] // 8
        if made.opcode in (op.TYPE_VECTOR, op.TYPE_MATRIX):
            return made.operands[2] * self._size(made.operands[1])
        if made.opcode == op.TYPE_ARRAY:
            return self.integers.get(made.operands[2], 1) * self._size(made.operands[1])
        if made.opcode == op.TYPE_STRUCT:
            return sum(self._size(member) for member in made.operands[1:])
        return 4

    def _count(self, made: Instruction) -> int:
        """Return how many elements a type has, as far as that is known."""
        if made.opcode in (op.TYPE_VECTOR, op.TYPE_MATRIX):
            return made.operands[2]
        if made.opcode == op.TYPE_ARRAY:
            return self.integers.get(made.operands[2], 1 << 32)
        return 1 << 32

    def _follow(self, instruction: Instruction, kind: int, indices: Sequence[int]) -> int:
        """Return the type of a part of a composite."""
        for index in indices:
            made = self.types[kind]
            if made.opcode == op.TYPE_STRUCT:
                kind = self._member(instruction, made, index)
                continue
            kind = self._element(instruction, made)
            self._require(instruction, index < self._count(made), "has an index beyond the end")
        return kind

    def _member(self, instruction: Instruction, made: Instruction, index: int) -> int:
        members = made.operands[1:]
        self._require(instruction, 0 <= index < len(members), "names a member that is not there")
        return members[index]

    def _element(self, instruction: Instruction, made: Instruction) -> int:
        composites = (op.TYPE_VECTOR, op.TYPE_MATRIX, op.TYPE_ARRAY, op.TYPE_RUNTIME_ARRAY)
        self._require(instruction, made.opcode in composites, "looks into a type that has no elements")
        return made.operands[1]

    def _check_constants(self, instruction: Instruction, *positions: int) -> None:
        for position in positions:
            operand = instruction.operands[position]
            known = operand in self.constants and self._is(self.type_of[operand], op.TYPE_INT)
            self._require(instruction, known, "has a scope or semantics that are no constant")

    def _check_writable(self, instruction: Instruction, pointer: int) -> None:
        constant = self.types[pointer].operands[1] in _READ_ONLY
        self._require(instruction, not constant, "writes to what can only be read")
