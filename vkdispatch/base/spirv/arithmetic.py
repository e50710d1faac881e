"""Checks of the types that SPIR-V instructions calculate with: arithmetic, GLSL's functions, matrices."""

from vkdispatch.base.spirv import opcodes as op
from vkdispatch.base.spirv.module import Instruction
from vkdispatch.base.spirv.opcodes import parse_ranges
from vkdispatch.base.spirv.operations import GLSL_NUMBERS, GLSL_OTHERS, RULES
from vkdispatch.base.spirv.values import Values

_INTEGER_ARITHMETIC = parse_ranges("126 128 130 132 134 135 137-139 194-200")
_FLOAT_ARITHMETIC = parse_ranges("127 129 131 133 136 140 141")
_LOGIC = parse_ranges("164-168")
_INTEGER_COMPARISONS = parse_ranges("170-179")
_FLOAT_COMPARISONS = parse_ranges("180-191")
_SHIFTS = parse_ranges("194-196")
_MATRICES = frozenset((op.TRANSPOSE, *range(op.MATRIX_TIMES_SCALAR, op.OUTER_PRODUCT + 1)))


class ArithmeticChecks(Values):
    """Checks of instructions that calculate."""

    def _check_extended(self, instruction: Instruction) -> None:
        operands = instruction.operands
        if operands[2] not in self.glsl:
            return
        number, count = operands[3], len(operands) - 4
        if number in GLSL_OTHERS:
            self._require(instruction, GLSL_OTHERS[number] == count, f"has {count} operands")
            self._check_other(instruction)
            return
        self._require(instruction, number in GLSL_NUMBERS, f"calls function {number}, which is none")
        wanted, rule = GLSL_NUMBERS[number]
        self._require(instruction, count == wanted, f"has {count} operands instead of {wanted}")
        made = self._shape(operands[0])
        given = [self._shape(self._type(instruction, at)) for at in range(4, len(operands))]
        known = [shape for shape in given if shape is not None]
        fits = made is not None and len(known) == count and rule(made, known)
        self._require(instruction, fits, "calculates with types that do not fit")

    def _check_other(self, instruction: Instruction) -> None:
        """Look at a function of a matrix, or one with two results."""
        operands = instruction.operands
        number, kind = operands[3], self._type(instruction, 4)
        if number in (33, 34):
            self._require(instruction, self._is(kind, op.TYPE_MATRIX), "takes a matrix")
            column = self._shape(self.types[kind].operands[1])
            square = column is not None and column[2] == self.types[kind].operands[2]
            made = self.types[kind].operands[1] if number == 33 else kind
            wanted = self.types[made].operands[1] if number == 33 else kind
            self._require(instruction, square and operands[0] == wanted, "does not fit its matrix")
            return
        shape = self._shape(kind)
        self._require(instruction, shape is not None and shape[0] == op.TYPE_FLOAT, "takes no float")
        if number in (35, 51):
            self._same(instruction, operands[0], kind)
            second = self._shape(self._pointee(instruction, self._type(instruction, 5)))
        else:
            made_of = self.types[operands[0]]
            self._require(
                instruction,
                made_of.opcode == op.TYPE_STRUCT
                and len(made_of.operands) == 3
                and made_of.operands[1] == kind,
                "gives no structure of two",
            )
            second = self._shape(made_of.operands[2])
        wanted_kind = op.TYPE_FLOAT if number in (35, 36) else op.TYPE_INT
        fits = shape is not None and second is not None and second[0] == wanted_kind and second[2] == shape[2]
        self._require(instruction, fits, "has a second result that does not fit")

    def _check_matrix(self, instruction: Instruction) -> None:
        """Look at a product with a matrix, or at a transposition."""
        opcode, operands = instruction.opcode, instruction.operands
        made = self._extent(operands[0])
        given = [self._extent(self._type(instruction, at)) for at in range(2, len(operands))]
        if made is None or None in given:
            raise self._refuse(instruction, "calculates with what is no matrix or vector of floats")
        first, *rest = (extent for extent in given if extent is not None)
        width, columns, rows = made
        second = rest[0] if rest else first
        fits = first[0] == second[0] == width
        if opcode == op.TRANSPOSE:
            fits = fits and first[1:] == (rows, columns)
        elif opcode == op.MATRIX_TIMES_SCALAR:
            fits = fits and first == made and second[1:] == (1, 1)
        elif opcode == op.VECTOR_TIMES_MATRIX:
            fits = fits and first[1] == columns == 1 and first[2] == second[2] and rows == second[1]
        elif opcode == op.MATRIX_TIMES_VECTOR:
            fits = fits and second[1] == columns == 1 and first[1] == second[2] and rows == first[2]
        elif opcode == op.MATRIX_TIMES_MATRIX:
            fits = fits and first[1] == second[2] and (columns, rows) == (second[1], first[2])
        else:  # outer product
            fits = fits and first[1] == second[1] == 1 and (columns, rows) == (second[2], first[2])
        self._require(instruction, fits, "multiplies what does not fit")

    def _extent(self, kind: int) -> tuple[int, int, int] | None:
        """Return the bits, columns and rows of a matrix, vector or number of floats."""
        made = self.types.get(kind)
        columns = 1
        if made is not None and made.opcode == op.TYPE_MATRIX:
            columns, kind = made.operands[2], made.operands[1]
        shape = self._shape(kind)
        return (shape[1], columns, shape[2]) if shape and shape[0] == op.TYPE_FLOAT else None

    def _check_arithmetic(self, instruction: Instruction) -> None:
        opcode, operands = instruction.opcode, instruction.operands
        if opcode in _MATRICES:
            self._check_matrix(instruction)
            return
        rule = RULES.get(opcode)
        if rule is not None:
            made = self._shape(operands[0])
            shapes = [self._shape(self._type(instruction, at)) for at in range(2, len(operands))]
            known = [shape for shape in shapes if shape is not None]
            fits = made is not None and len(known) == len(shapes) and rule(made, known)
            self._require(instruction, fits, "calculates with types that do not fit")
            return
        for group, result, of in (
            (_INTEGER_ARITHMETIC, op.TYPE_INT, op.TYPE_INT),
            (_FLOAT_ARITHMETIC, op.TYPE_FLOAT, op.TYPE_FLOAT),
            (_LOGIC, op.TYPE_BOOL, op.TYPE_BOOL),
            (_INTEGER_COMPARISONS, op.TYPE_BOOL, op.TYPE_INT),
            (_FLOAT_COMPARISONS, op.TYPE_BOOL, op.TYPE_FLOAT),
        ):
            if opcode not in group:
                continue
            made = self._shape(operands[0])
            shapes = [self._shape(self._type(instruction, at)) for at in range(2, len(operands))]
            widths = {shape[1] for shape in shapes if shape}
            if result == of and made is not None:
                widths.add(made[1])
            fits = (
                made is not None
                and made[0] == result
                and bool(shapes)
                and all(shape is not None and shape[0] == of and shape[2] == made[2] for shape in shapes)
                and (len(widths) == 1 or opcode in _SHIFTS)
            )
            self._require(instruction, fits, "calculates with types that do not fit")
