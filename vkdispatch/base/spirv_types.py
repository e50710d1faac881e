"""Whether the instructions of a SPIR-V module agree on their types, as far as drivers rely on it unseen.

These are the rules that a slip in the bytes breaks most easily: operands of arithmetic, pointers and what
they point at, indices into structures, calls and returns, targets of branches. `spirv-val` knows all others.
"""

from collections.abc import Callable, Iterator, Sequence

from vkdispatch.base import spirv
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.spirv import Instruction, Module, opcodes

_INTEGER_ARITHMETIC = opcodes("126 128 130 132 134 135 137-139 194-200")
_FLOAT_ARITHMETIC = opcodes("127 129 131 133 136 140 141")
_LOGIC = opcodes("164-168")
_INTEGER_COMPARISONS = opcodes("170-179")
_FLOAT_COMPARISONS = opcodes("180-191")
_SHIFTS = opcodes("194-196")
_LOAD, _STORE, _ACCESS_CHAINS, _EXTRACT, _SHUFFLE, _CONSTRUCT = 61, 62, (65, 66), 81, 79, 80
_SELECT, _PHI, _RETURN, _RETURN_VALUE = 169, 245, 253, 254
_LABELS = {246: (0, 1), 247: (0,), 249: (0,), 250: (1, 2), 251: (1,)}
_ANY_COMPONENT = 0xFFFFFFFF

Shape = tuple[int, int, int]  # opcode of the component's type, its bits, components


def check_types(module: Module, argument: str = "spirv") -> None:
    """Raise ValueError where instructions do not agree on their types."""
    _Checker(module, argument).check()


class _Checker:
    """What identifiers are, and a check for each kind of instruction."""

    def __init__(self, module: Module, argument: str) -> None:
        self.module = module
        self.argument = argument
        self.types: dict[int, Instruction] = {}
        self.type_of: dict[int, int] = {}
        self.integers: dict[int, int] = {}
        self.functions: dict[int, Instruction] = {}
        self.labels: set[int] = set()
        for instruction in module.instructions:
            opcode, operands = instruction.opcode, instruction.operands
            if spirv.TYPE_VOID <= opcode <= spirv.TYPE_PIPE:
                self.types[operands[0]] = instruction
            elif opcode == spirv.LABEL:
                self.labels.add(operands[0])
            elif spirv.has_type(opcode):
                self.type_of[operands[1]] = operands[0]
                if opcode == spirv.CONSTANT and len(operands) > 2:
                    self.integers[operands[1]] = operands[2]
                elif opcode == spirv.FUNCTION:
                    self.functions[operands[1]] = instruction

    def check(self) -> None:
        """Look at every instruction."""
        instruction = self.module.instructions[0]
        try:
            for instruction in self._checked():  # noqa: B007
                pass
        except (IndexError, KeyError):
            raise self._refuse(instruction, "or the one after it makes no sense") from None

    def _checked(self) -> Iterator[Instruction]:
        function: Instruction | None = None
        parameters: Iterator[int] = iter(())
        for instruction in self.module.instructions:
            opcode, operands = instruction.opcode, instruction.operands
            if opcode == spirv.FUNCTION:
                function = instruction
                parameters = iter(self._signature(instruction)[1:])
            elif opcode == spirv.FUNCTION_PARAMETER:
                self._same(instruction, operands[0], next(parameters, -1))
            elif opcode == spirv.LABEL:
                self._require(instruction, next(parameters, None) is None, "lacks a parameter before it")
            elif opcode == _RETURN_VALUE and function is not None:
                self._same(instruction, self._type(instruction, 0), function.operands[0])
            elif opcode == _RETURN and function is not None:
                void = self.types[function.operands[0]].opcode == spirv.TYPE_VOID
                self._require(instruction, void, "returns nothing")
            elif opcode == spirv.ENTRY_POINT:
                entry = self.functions.get(operands[1]) if len(operands) > 1 else None
                self._require(instruction, entry is not None, "names no function")
            else:
                self._check_operation(instruction)
            yield instruction

    def _check_operation(self, instruction: Instruction) -> None:
        opcode = instruction.opcode
        special: dict[int, Callable[[Instruction], None]] = {
            _LOAD: self._check_load,
            _STORE: self._check_store,
            _SELECT: self._check_select,
            _PHI: self._check_phi,
            _EXTRACT: self._check_extract,
            _SHUFFLE: self._check_shuffle,
            _CONSTRUCT: self._check_construct,
            spirv.CONSTANT_COMPOSITE: self._check_construct,
            spirv.FUNCTION_CALL: self._check_call,
            spirv.VARIABLE: self._check_variable,
            spirv.CONSTANT: self._check_constant,
            spirv.SPEC_CONSTANT: self._check_constant,
        }
        if opcode in special:
            special[opcode](instruction)
        elif opcode in _ACCESS_CHAINS:
            self._check_chain(instruction)
        elif opcode in _LABELS:
            for position in _LABELS[opcode]:
                known = instruction.operands[position] in self.labels
                self._require(instruction, known, "leads to no block")
            if opcode == 250:
                self._require(
                    instruction, self._is(self._type(instruction, 0), spirv.TYPE_BOOL), "asks no bool"
                )
        elif spirv.has_type(opcode):
            self._check_arithmetic(instruction)

    # -- helpers

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
        self._require(instruction, self._is(kind, spirv.TYPE_POINTER), "has no pointer where it needs one")
        return self.types[kind].operands[2]

    def _shape(self, kind: int) -> Shape | None:
        made = self.types.get(kind)
        count = 1
        if made is not None and made.opcode == spirv.TYPE_VECTOR:
            count = made.operands[2]
            made = self.types.get(made.operands[1])
        if made is None or made.opcode not in (spirv.TYPE_BOOL, spirv.TYPE_INT, spirv.TYPE_FLOAT):
            return None
        return (made.opcode, made.operands[1] if len(made.operands) > 1 else 0, count)

    def _signature(self, function: Instruction) -> Sequence[int]:
        """Return the types of a function's result and parameters."""
        operands = function.operands
        known = len(operands) > 3 and self._is(operands[3], spirv.TYPE_FUNCTION)
        self._require(function, known, "has no function type")
        signature = self.types[operands[3]].operands[1:]
        self._require(function, bool(signature), "has no function type")
        self._same(function, operands[0], signature[0])
        return signature

    # -- one kind of instruction each

    def _check_arithmetic(self, instruction: Instruction) -> None:
        opcode, operands = instruction.opcode, instruction.operands
        for group, result, of in (
            (_INTEGER_ARITHMETIC, spirv.TYPE_INT, spirv.TYPE_INT),
            (_FLOAT_ARITHMETIC, spirv.TYPE_FLOAT, spirv.TYPE_FLOAT),
            (_LOGIC, spirv.TYPE_BOOL, spirv.TYPE_BOOL),
            (_INTEGER_COMPARISONS, spirv.TYPE_BOOL, spirv.TYPE_INT),
            (_FLOAT_COMPARISONS, spirv.TYPE_BOOL, spirv.TYPE_FLOAT),
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

    def _check_load(self, instruction: Instruction) -> None:
        self._same(
            instruction, self._pointee(instruction, self._type(instruction, 2)), instruction.operands[0]
        )

    def _check_store(self, instruction: Instruction) -> None:
        pointee = self._pointee(instruction, self._type(instruction, 0))
        self._same(instruction, pointee, self._type(instruction, 1))

    def _check_variable(self, instruction: Instruction) -> None:
        operands = instruction.operands
        self._pointee(instruction, operands[0])
        storage = self.types[operands[0]].operands[1]
        fits = len(operands) > 2 and storage == operands[2]
        self._require(instruction, fits, "lies elsewhere than its pointer says")

    def _check_constant(self, instruction: Instruction) -> None:
        made = self.types[instruction.operands[0]]
        fits = made.opcode in (spirv.TYPE_INT, spirv.TYPE_FLOAT)
        words = max(made.operands[1], 32) // 32 if fits else 0
        self._require(instruction, words == len(instruction.operands) - 2, "is no number of its type")

    def _check_select(self, instruction: Instruction) -> None:
        for position in (3, 4):
            self._same(instruction, self._type(instruction, position), instruction.operands[0])
        shape = self._shape(self._type(instruction, 2))
        self._require(instruction, shape is not None and shape[0] == spirv.TYPE_BOOL, "asks no bool")

    def _check_phi(self, instruction: Instruction) -> None:
        operands = instruction.operands
        self._require(instruction, len(operands) > 2 and len(operands) % 2 == 0, "is too short")
        for position in range(2, len(operands), 2):
            self._same(instruction, self._type(instruction, position), operands[0])
            self._require(instruction, operands[position + 1] in self.labels, "comes from no block")

    def _check_call(self, instruction: Instruction) -> None:
        operands = instruction.operands
        function = self.functions.get(operands[2]) if len(operands) > 2 else None
        if function is None:
            raise self._refuse(instruction, "calls no function")
        signature = self._signature(function)
        given = [self._type(instruction, position) for position in range(3, len(operands))]
        fits = list(signature) == [operands[0], *given]
        self._require(instruction, fits, "does not fit the function that it calls")

    def _check_chain(self, instruction: Instruction) -> None:
        operands = instruction.operands
        kind = self._pointee(instruction, self._type(instruction, 2))
        for position in range(3, len(operands)):
            made = self.types[kind]
            if made.opcode == spirv.TYPE_STRUCT:
                kind = self._member(instruction, made, self.integers.get(operands[position], -1))
                continue
            shape = self._shape(self._type(instruction, position))
            fits = shape is not None and shape[0] == spirv.TYPE_INT and shape[2] == 1
            self._require(instruction, fits, "has an index that is no integer")
            kind = self._element(instruction, made)
        self._same(instruction, kind, self._pointee(instruction, operands[0]))

    def _check_extract(self, instruction: Instruction) -> None:
        operands = instruction.operands
        kind = self._type(instruction, 2)
        for index in operands[3:]:
            made = self.types[kind]
            if made.opcode == spirv.TYPE_STRUCT:
                kind = self._member(instruction, made, index)
                continue
            kind = self._element(instruction, made)
            bounded = made.opcode in (spirv.TYPE_VECTOR, spirv.TYPE_MATRIX)
            self._require(instruction, not bounded or index < made.operands[2], "has an index beyond the end")
        self._same(instruction, kind, operands[0])

    def _check_construct(self, instruction: Instruction) -> None:
        operands = instruction.operands
        made = self.types[operands[0]]
        given = [self._type(instruction, position) for position in range(2, len(operands))]
        if made.opcode == spirv.TYPE_STRUCT:
            self._require(instruction, given == list(made.operands[1:]), "does not fit its structure")
        elif made.opcode == spirv.TYPE_VECTOR:
            shapes = [self._shape(kind) for kind in given]
            whole = self._shape(operands[0])
            fits = whole is not None and all(shape and shape[:2] == whole[:2] for shape in shapes)
            count = sum(shape[2] for shape in shapes if shape)
            self._require(instruction, fits and count == made.operands[2], "does not fill its vector")
        elif made.opcode in (spirv.TYPE_MATRIX, spirv.TYPE_ARRAY):
            fits = bool(given) and all(kind == made.operands[1] for kind in given)
            filled = made.opcode == spirv.TYPE_ARRAY or len(given) == made.operands[2]
            self._require(instruction, fits and filled, "does not fill its matrix or array")
        else:
            raise self._refuse(instruction, "makes a composite of a type that is none")

    def _check_shuffle(self, instruction: Instruction) -> None:
        shapes = [self._shape(self._type(instruction, position)) for position in (2, 3)]
        made = self._shape(instruction.operands[0])
        count = sum(shape[2] for shape in shapes if shape)
        indices = instruction.operands[4:]
        fits = made is not None and all(shape and shape[:2] == made[:2] for shape in shapes)
        inside = all(index < count or index == _ANY_COMPONENT for index in indices)
        filled = made is not None and len(indices) == made[2]
        self._require(instruction, fits and inside and filled, "does not fit the vectors that it shuffles")

    def _member(self, instruction: Instruction, made: Instruction, index: int) -> int:
        members = made.operands[1:]
        self._require(instruction, 0 <= index < len(members), "names a member that is not there")
        return members[index]

    def _element(self, instruction: Instruction, made: Instruction) -> int:
        composites = (spirv.TYPE_VECTOR, spirv.TYPE_MATRIX, spirv.TYPE_ARRAY, spirv.TYPE_RUNTIME_ARRAY)
        self._require(instruction, made.opcode in composites, "looks into a type that has no elements")
        return made.operands[1]
