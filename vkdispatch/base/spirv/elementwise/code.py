"""Tables over the instructions of a SPIR-V module, for the proof that it works element by element."""

from collections.abc import Iterator, Sequence

from vkdispatch.base.record import field, record
from vkdispatch.base.spirv import opcodes as op
from vkdispatch.base.spirv.module import Instruction, Module, has_type, text

CHAINS = (op.ACCESS_CHAIN, op.IN_BOUNDS_ACCESS_CHAIN)
WITHOUT_EFFECT = (op.NOP, op.UNDEF, op.LINE, op.NO_LINE)
FUNCTION_STORAGE = 7
BUILT_IN, BINDING = 11, 33

# Component (0 is a scalar's only one) -> what it is known to be.
Known = dict[int, int]


@record(eq=False, frozen=False)
class Code:
    """Tables over a module. Instructions are known by their number in it."""

    instructions: Sequence[Instruction]
    types: dict[int, Instruction] = field(factory=dict)
    type_of: dict[int, int] = field(factory=dict)
    # Identifier -> number of the instruction whose result it is.
    made: dict[int, int] = field(factory=dict)
    integers: dict[int, int] = field(factory=dict)
    composites: dict[int, Sequence[int]] = field(factory=dict)
    # Constant, or value, that is the size of a workgroup along x.
    size: int = 0
    size_value: int = -1
    decorations: dict[tuple[int, int], int] = field(factory=dict)
    # Identifier -> (number, operand) of each instruction inside a function that uses it.
    uses: dict[int, list[tuple[int, int]]] = field(factory=dict)
    functions: dict[int, int] = field(factory=dict)
    parameters: dict[int, list[int]] = field(factory=dict)
    # Parameter -> its function and place among the parameters.
    parameter_of: dict[int, tuple[int, int]] = field(factory=dict)
    calls: dict[int, list[int]] = field(factory=dict)
    returned: dict[int, list[int]] = field(factory=dict)
    block_of: dict[int, int] = field(factory=dict)
    # Block -> a number whose bits are the blocks that dominate it, and its own bit.
    dominators: dict[int, int] = field(factory=dict)
    bits: dict[int, int] = field(factory=dict)
    without_meaning: set[int] = field(factory=set)
    # What was found by `find_known` and `_stores`; nothing for what is being looked into.
    known: dict[int, Known] = field(factory=dict)
    stores: dict[int, list[int] | None] = field(factory=dict)

    def users(self, identifier: int) -> Iterator[tuple[int, Instruction, int]]:
        """Return number, instruction and operand wherever functions use an identifier."""
        for number, position in self.uses.get(identifier, ()):
            yield number, self.instructions[number], position

    def storage(self, pointer: int) -> int:
        """Return the storage class that a pointer points to, -1 where it is none."""
        made = self.types.get(self.type_of.get(pointer, -1))
        return made.operands[1] if made is not None and made.opcode == op.TYPE_POINTER else -1


def read_code(module: Module) -> Code:
    """Fill the tables of a module."""
    code = Code(module.instructions)
    function = block = 0
    for number, instruction in enumerate(module.instructions):
        opcode, operands = instruction.opcode, instruction.operands
        if op.TYPE_VOID <= opcode <= op.TYPE_PIPE:
            code.types[operands[0]] = instruction
        elif opcode == op.DECORATE:
            code.decorations[operands[0], operands[1]] = operands[2] if len(operands) > 2 else 0
        elif opcode in (op.CONSTANT_COMPOSITE, op.SPEC_CONSTANT_COMPOSITE):
            code.composites[operands[1]] = operands[2:]
        elif opcode == op.EXTENDED_INSTRUCTIONS and text(operands[1:])[0].startswith("NonSemantic."):
            code.without_meaning.add(operands[0])
        elif opcode == op.LABEL:
            block = operands[0]
        if opcode == op.FUNCTION:
            function = operands[1]
            code.functions[function] = number
        elif opcode == op.FUNCTION_PARAMETER:
            known = code.parameters.setdefault(function, [])
            code.parameter_of[operands[1]] = (function, len(known))
            known.append(operands[1])
        elif opcode == op.FUNCTION_CALL:
            code.calls.setdefault(operands[2], []).append(number)
        elif opcode == op.RETURN_VALUE:
            code.returned.setdefault(function, []).append(operands[0])
        if has_type(opcode):
            code.type_of[operands[1]] = operands[0]
            code.made[operands[1]] = number
            kind = code.types.get(operands[0])
            if opcode == op.CONSTANT and kind is not None and kind.opcode == op.TYPE_INT:
                # Those of 64 bits have another word: no buffer has so many elements.
                code.integers[operands[1]] = operands[2] if len(operands) == 3 else 2**32
        if function:
            code.block_of[number] = block
            for position in _identifiers(instruction, code.without_meaning):
                code.uses.setdefault(operands[position], []).append((number, position))
    return code


def _identifiers(instruction: Instruction, without_meaning: set[int]) -> Sequence[int]:
    """Return which operands are identifiers that the instruction uses, types and labels apart."""
    opcode, count = instruction.opcode, len(instruction.operands)
    if opcode in (*WITHOUT_EFFECT, op.FUNCTION, op.FUNCTION_PARAMETER, op.FUNCTION_END, op.LABEL):
        return ()
    if opcode in (op.SELECTION_MERGE, op.BRANCH, op.RETURN, op.UNREACHABLE):
        return ()
    if opcode == op.EXTENDED_INSTRUCTION:
        return () if instruction.operands[2] in without_meaning else range(4, count)
    if opcode in (op.BRANCH_CONDITIONAL, op.SWITCH, op.RETURN_VALUE):
        return (0,)
    if opcode == op.STORE:
        return (0, 1)
    if opcode in (op.LOAD, op.ARRAY_LENGTH, op.COMPOSITE_EXTRACT):
        return (2,)
    if opcode in (op.VECTOR_SHUFFLE, op.COMPOSITE_INSERT):
        return (2, 3)
    return range(3 if opcode in (op.VARIABLE, op.FUNCTION_CALL) else 2, count)
