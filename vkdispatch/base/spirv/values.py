"""What the identifiers of a SPIR-V module are: types, values, constants, functions."""

from collections.abc import Sequence

from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.spirv import opcodes as op
from vkdispatch.base.spirv.module import LAST_KNOWN, Instruction, Module, has_type, text
from vkdispatch.base.spirv.operations import Shape

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
