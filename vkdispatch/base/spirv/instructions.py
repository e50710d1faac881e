"""Checks of SPIR-V instructions that calculate, read images, or share between invocations."""

from vkdispatch.base.spirv import opcodes as op
from vkdispatch.base.spirv.module import Instruction
from vkdispatch.base.spirv.opcodes import parse_ranges
from vkdispatch.base.spirv.values import GLSL_NUMBERS, GLSL_OTHERS, RULES, Values

# ---- Checks of the types that SPIR-V instructions calculate with -----------------------------------------
#
# Arithmetic, GLSL's functions, matrices.


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


# ---- Checks of the instructions of SPIR-V that are about images ------------------------------------------


_SAMPLED, _STORED = 1, 2
_OF_SAMPLERS = parse_ranges("87-94 96 97 100 105")
_COMPARING = parse_ranges("89 90 93 94")
# Where the operands of images begin: a mask, and what it says.
_OPERANDS_FROM = {
    **dict.fromkeys((87, 88, 91, 92, 95, 98), 4),
    **dict.fromkeys((89, 90, 93, 94, 96, 97), 5),
    99: 3,
}
_COORDINATES = (1, 2, 3, 3, 2, 1, 2)  # of each dimension of OpTypeImage


class ImageChecks(Values):
    """Checks of the instructions that are about images."""

    def _check_image(self, instruction: Instruction) -> None:
        opcode, operands = instruction.opcode, instruction.operands
        if opcode == 60:
            image = self._image(instruction, self._pointee(instruction, self._type(instruction, 2)), _STORED)
            self._same(instruction, self._pointee(instruction, operands[0]), image.operands[1])
            self._check_coordinates(instruction, image, 3, op.TYPE_INT)
            return
        if opcode == 86:
            made = self.types[operands[0]]
            self._require(instruction, made.opcode == op.TYPE_SAMPLED_IMAGE, "gives no sampled image")
            self._same(instruction, made.operands[1], self._type(instruction, 2))
            sampler = self._is(self._type(instruction, 3), op.TYPE_SAMPLER)
            self._require(instruction, sampler, "has no sampler")
            return
        kind = self._type(instruction, 0 if opcode == 99 else 2)
        combined = opcode in _OF_SAMPLERS
        if combined:
            sampled = self._is(kind, op.TYPE_SAMPLED_IMAGE)
            self._require(instruction, sampled, "has no sampled image where it needs one")
            kind = self.types[kind].operands[1]
        use = _STORED if opcode in (98, 99) else _SAMPLED if combined or opcode == 95 else 0
        image = self._image(instruction, kind, use)
        if opcode == 100:
            self._same(instruction, kind, operands[0])
            return
        if opcode >= 101:
            shape = self._shape(operands[0])
            number = op.TYPE_FLOAT if opcode == 105 else op.TYPE_INT
            self._require(
                instruction, shape is not None and shape[0] == number, "gives no numbers of the right kind"
            )
            if opcode in (103, 104):
                wanted = _COORDINATES[image.operands[2]] - (image.operands[2] == 3) + image.operands[4]
                self._require(
                    instruction, shape is not None and shape[2] == wanted, "gives more or fewer sizes"
                )
            if opcode == 103:
                level = self._shape(self._type(instruction, 3))
                whole = level is not None and level[0] == op.TYPE_INT and level[2] == 1
                self._require(instruction, whole, "has a level that is no integer")
            elif opcode == 105:
                self._check_coordinates(instruction, image, 3, op.TYPE_FLOAT)
            return
        whole = opcode in (95, 98, 99)
        self._check_coordinates(
            instruction, image, 1 if opcode == 99 else 3, op.TYPE_INT if whole else op.TYPE_FLOAT
        )
        texel = self._shape(self._type(instruction, 2) if opcode == 99 else operands[0])
        component = self._shape(image.operands[1])
        fits = texel is not None and component is not None and texel[:2] == component[:2]
        scalar = opcode in _COMPARING
        fits = (
            fits and texel is not None and (texel[2] == 1 if scalar else texel[2] == 4 or opcode in (98, 99))
        )
        self._require(instruction, fits, "has texels of another type")
        self._check_image_operands(instruction)

    def _check_image_operands(self, instruction: Instruction) -> None:
        at = _OPERANDS_FROM[instruction.opcode]
        operands = instruction.operands
        if len(operands) <= at:
            return
        count = sum(2 if bit == 2 else 1 for bit in range(8) if operands[at] >> bit & 1)
        plain = not operands[at] >> 8 and len(operands) - at - 1 == count
        extended = operands[at] >> 8 and len(operands) - at - 1 >= count
        self._require(instruction, bool(plain or extended), "has other operands than it says")
        for position in range(at + 1, at + 1 + count):
            self._type(instruction, position)

    def _image(self, instruction: Instruction, kind: int, use: int) -> Instruction:
        """Return the type of an image. `use`: how it is to be used, 0 where that does not matter."""
        fits = self._is(kind, op.TYPE_IMAGE) and self.types[kind].operands[2] < len(_COORDINATES)
        self._require(instruction, fits, "has no image where it needs one")
        self._require(instruction, use in (0, self.types[kind].operands[6]), "uses an image in the wrong way")
        return self.types[kind]

    def _check_coordinates(self, instruction: Instruction, image: Instruction, at: int, number: int) -> None:
        shape = self._shape(self._type(instruction, at))
        least = _COORDINATES[image.operands[2]] + (image.operands[4] if image.operands[2] != 3 else 0)
        fits = shape is not None and shape[2] >= least and shape[0] in (number, op.TYPE_INT)
        self._require(instruction, fits, "has coordinates that do not fit its image")


# ---- Checks of the instructions of SPIR-V by which invocations share: atomics and those of subgroups -----


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
