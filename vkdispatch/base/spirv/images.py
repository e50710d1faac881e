"""Checks of the instructions of SPIR-V that are about images."""

from vkdispatch.base.spirv import opcodes as op
from vkdispatch.base.spirv.module import Instruction
from vkdispatch.base.spirv.opcodes import parse_ranges
from vkdispatch.base.spirv.values import Values

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
