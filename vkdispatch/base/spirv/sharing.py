"""Checks of the instructions of SPIR-V by which invocations share: atomics and those of subgroups."""

from vkdispatch.base.spirv import opcodes as op
from vkdispatch.base.spirv.module import Instruction
from vkdispatch.base.spirv.values import Values

_COMPARE_EXCHANGE = (230, 231)
# What the arithmetic of subgroups combines.
_OF_SUBGROUPS = {
    **dict.fromkeys((349, 351, 353, 354, 356, 357, 359, 360, 361), op.TYPE_INT),
    **dict.fromkeys((350, 352, 355, 358), op.TYPE_FLOAT),
    **dict.fromkeys((362, 363, 364), op.TYPE_BOOL),
}


class SharingChecks(Values):
    """Checks of atomics and of the instructions of subgroups."""

    def _check_atomic(self, instruction: Instruction) -> None:
        opcode, operands = instruction.opcode, instruction.operands
        stores = opcode == op.ATOMIC_STORE
        first = 0 if stores else 2
        kind = self._pointee(instruction, self._type(instruction, first))
        shape = self._shape(kind)
        fits = shape is not None and shape[0] != op.TYPE_BOOL and shape[2] == 1
        if opcode not in (227, 228, 229):
            fits = fits and shape is not None and shape[0] == op.TYPE_INT
        self._require(instruction, fits, "is about no number")
        self._check_writable(instruction, self._type(instruction, first))
        if not stores:
            self._same(instruction, kind, operands[0])
        scopes = 3 if opcode in _COMPARE_EXCHANGE else 2
        self._check_constants(instruction, *range(first + 1, first + 1 + scopes))
        for position in range(first + 1 + scopes, len(operands)):
            self._same(instruction, kind, self._type(instruction, position))

    def _check_subgroup(self, instruction: Instruction) -> None:
        opcode, operands = instruction.opcode, instruction.operands
        made = self._shape(operands[0])
        self._require(instruction, made is not None, "gives what is no number")
        if opcode in (334, 335, 340) or opcode == 333:
            self._require(instruction, made == (op.TYPE_BOOL, 0, 1), "gives no bool")
        if opcode in (334, 335, 339):
            asked = self._shape(self._type(instruction, 3))
            self._require(instruction, asked == (op.TYPE_BOOL, 0, 1), "asks no bool")
        if opcode in (339, 340, 341, 342, 343, 344):
            votes = made if opcode == 339 else self._shape(self._type(instruction, 4 if opcode == 342 else 3))
            self._require(instruction, votes == (op.TYPE_INT, 32, 4), "has no ballot")
        if opcode in (342, 343, 344):
            self._require(instruction, made is not None and made[0] == op.TYPE_INT, "gives no integer")
        if 349 <= opcode <= 364:
            self._require(instruction, operands[3] in (*range(4), *range(6, 9)), "is no known operation")
            self._same(instruction, self._type(instruction, 4), operands[0])
            kind = _OF_SUBGROUPS[opcode]
            self._require(instruction, made is not None and made[0] == kind, "combines other numbers")
            clustered = operands[3] == 3
            self._require(instruction, clustered == (len(operands) == 6), "has a cluster, or lacks it")
            if clustered:
                self._check_constants(instruction, 5)
        elif opcode in (337, 338, 345, 346, 347, 348, 365, 366):
            self._same(instruction, self._type(instruction, 3), operands[0])
            if opcode != 338:
                index = self._shape(self._type(instruction, 4))
                whole = index is not None and index[0] == op.TYPE_INT and index[2] == 1
                self._require(instruction, whole, "has an index that is no integer")
                if opcode in (337, 365, 366) and operands[4] not in self.constants and opcode != 337:
                    raise self._refuse(instruction, "has a direction that is no constant")
