"""Checks of the types of SPIR-V instructions, as far as drivers rely on them without checking.

These are the rules that corrupted modules break most easily: operands of arithmetic, pointers and pointees,
indices into structures, calls and returns, targets of branches. `spirv-val` checks all rules.
"""

from collections.abc import Callable, Iterator

from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.spirv import opcodes as op
from vkdispatch.base.spirv.declarations import check_declarations, check_flow
from vkdispatch.base.spirv.instructions import ArithmeticChecks, ImageChecks, SharingChecks
from vkdispatch.base.spirv.module import Instruction, Module, find_misplaced, has_type, wrong_form
from vkdispatch.base.spirv.opcodes import parse_ranges

_ACCESS_CHAINS = (op.ACCESS_CHAIN, op.IN_BOUNDS_ACCESS_CHAIN)
_LABELS = {
    op.LOOP_MERGE: (0, 1),
    op.SELECTION_MERGE: (0,),
    op.BRANCH: (0,),
    op.BRANCH_CONDITIONAL: (1, 2),
    op.SWITCH: (1,),
}
_ANY_COMPONENT = 0xFFFFFFFF
_ATOMICS = parse_ranges("227-242")
_BARRIERS = {op.CONTROL_BARRIER: (0, 1, 2), op.MEMORY_BARRIER: (0, 1)}
_SUBGROUP = parse_ranges("333-366")
_MAX_BYTES = 1 << 26  # of a variable that is not in a buffer
_STORAGE_CLASSES = frozenset((*range(13), 5349))
_ADDRESSED = 5349  # PhysicalStorageBuffer
_IMAGES = parse_ranges("60 86-107")
_OF_INVOCATIONS = (4, 6, 7)  # Workgroup, Private, Function


def check_types(module: Module, argument: str = "spirv") -> None:
    """Raise ValueError if instructions have an unknown form or operands of wrong types."""

    def refuse(instruction: Instruction, what: str) -> ArgumentValueError:
        return ArgumentValueError(
            f"{argument}: malformed SPIR-V: instruction {instruction.opcode} at word {instruction.at} {what}"
        )

    for instruction in module.instructions:
        what = wrong_form(instruction)
        if what is not None:
            raise refuse(instruction, what)
    stray = find_misplaced(module)
    if stray is not None:
        raise refuse(stray, "stands in a part of the module where it cannot be")
    try:
        check_declarations(module, refuse)
        checker = _Checker(module, argument)
        checker.check()
        check_flow(module, checker.integer_widths(), refuse)
    except (IndexError, KeyError):
        raise ArgumentValueError(f"{argument}: malformed SPIR-V: its identifiers make no sense") from None


class _Checker(ArithmeticChecks, ImageChecks, SharingChecks):
    """A check for each kind of instruction."""

    def check(self) -> None:
        """Check every instruction."""
        instruction = self.module.instructions[0]
        try:
            for instruction in self._check_each():  # noqa: B007
                pass
        except (IndexError, KeyError):
            raise self._refuse(instruction, "or the one after it makes no sense") from None

    def _check_each(self) -> Iterator[Instruction]:
        function: Instruction | None = None
        parameters: Iterator[int] = iter(())
        for instruction in self.module.instructions:
            opcode, operands = instruction.opcode, instruction.operands
            if opcode == op.FUNCTION:
                function = instruction
                parameters = iter(self._signature(instruction)[1:])
            elif opcode == op.FUNCTION_PARAMETER:
                self._same(instruction, operands[0], next(parameters, -1))
            elif opcode == op.LABEL:
                self._require(instruction, next(parameters, None) is None, "lacks a parameter before it")
            elif opcode == op.RETURN_VALUE and function is not None:
                self._same(instruction, self._type(instruction, 0), function.operands[0])
            elif opcode == op.RETURN and function is not None:
                void = self.types[function.operands[0]].opcode == op.TYPE_VOID
                self._require(instruction, void, "returns nothing")
            elif opcode == op.ENTRY_POINT:
                entry = self.functions.get(operands[1]) if len(operands) > 1 else None
                self._require(instruction, entry is not None, "names no function")
            else:
                self._check_operation(instruction)
            yield instruction

    def _check_operation(self, instruction: Instruction) -> None:
        opcode = instruction.opcode
        special: dict[int, Callable[[Instruction], None]] = {
            op.LOAD: self._check_load,
            op.STORE: self._check_store,
            op.SELECT: self._check_select,
            op.PHI: self._check_phi,
            op.COMPOSITE_EXTRACT: self._check_extract,
            op.VECTOR_SHUFFLE: self._check_shuffle,
            op.COMPOSITE_CONSTRUCT: self._check_construct,
            op.CONSTANT_COMPOSITE: self._check_construct,
            op.SPEC_CONSTANT_COMPOSITE: self._check_construct,
            op.EXTENDED_INSTRUCTION: self._check_extended,
            op.ARRAY_LENGTH: self._check_length,
            op.COPY_OBJECT: self._check_copy,
            op.BITCAST: self._check_bitcast,
            op.COMPOSITE_INSERT: self._check_insert,
            op.FUNCTION_CALL: self._check_call,
            op.VARIABLE: self._check_variable,
            op.CONSTANT: self._check_constant,
            op.SPEC_CONSTANT: self._check_constant,
        }
        if opcode in special:
            special[opcode](instruction)
        elif opcode in _ACCESS_CHAINS:
            self._check_chain(instruction)
        elif op.TYPE_VOID <= opcode <= op.TYPE_PIPE:
            self._check_type(instruction)
        elif opcode in _IMAGES:
            self._check_image(instruction)
        elif opcode in _ATOMICS:
            self._check_atomic(instruction)
        elif opcode in _BARRIERS:
            self._check_constants(instruction, *_BARRIERS[opcode])
        elif opcode in _SUBGROUP:
            self._check_constants(instruction, 2)
            self._check_subgroup(instruction)
        elif opcode in _LABELS:
            for position in _LABELS[opcode]:
                known = instruction.operands[position] in self.labels
                self._require(instruction, known, "leads to no block")
            if opcode == op.BRANCH_CONDITIONAL:
                self._require(instruction, self._is(self._type(instruction, 0), op.TYPE_BOOL), "asks no bool")
        elif has_type(opcode):
            self._check_arithmetic(instruction)

    def integer_widths(self) -> dict[int, int]:
        """Return the bits of each value that is an integer."""
        widths = {
            number: made.operands[1] for number, made in self.types.items() if made.opcode == op.TYPE_INT
        }
        return {value: widths[kind] for value, kind in self.type_of.items() if kind in widths}

    # -- one kind of instruction each

    def _check_type(self, instruction: Instruction) -> None:
        opcode, operands = instruction.opcode, instruction.operands
        if opcode == op.TYPE_VECTOR:
            scalar = self._is(operands[1], op.TYPE_BOOL, op.TYPE_INT, op.TYPE_FLOAT)
            self._require(instruction, scalar and operands[2] in (2, 3, 4), "is no vector of 2 to 4 numbers")
        elif opcode == op.TYPE_MATRIX:
            shape = self._shape(operands[1])
            fits = shape is not None and shape[0] == op.TYPE_FLOAT and shape[2] > 1
            self._require(instruction, fits and operands[2] in (2, 3, 4), "is no matrix of 2 to 4 columns")
        elif opcode in (op.TYPE_INT, op.TYPE_FLOAT):
            self._require(instruction, operands[1] in (8, 16, 32, 64), f"is a number of {operands[1]} bits")
        elif opcode == op.TYPE_POINTER:
            self._require(instruction, operands[1] in _STORAGE_CLASSES, "points into no known storage class")
        elif opcode in (op.TYPE_ARRAY, op.TYPE_RUNTIME_ARRAY, op.TYPE_STRUCT):
            members = operands[1:] if opcode == op.TYPE_STRUCT else operands[1:2]
            unusable = any(self._is(member, op.TYPE_VOID, op.TYPE_FUNCTION) for member in members)
            self._require(instruction, not unusable, "is made of what has no values")
            endless = any(self._endless(member) for member in members[:-1])
            if opcode != op.TYPE_STRUCT:
                endless = self._endless(members[0])
            what = "has something without an end before its own end"
            if endless and opcode == op.TYPE_ARRAY and self._is(members[0], op.TYPE_STRUCT):
                what = "is an array of buffers, which is not supported"
            self._require(instruction, not endless, what)
        if opcode == op.TYPE_ARRAY:
            length = operands[2]
            positive = self.integers.get(length, 1) > 0
            integer = length in self.constants and self._is(self.type_of[length], op.TYPE_INT)
            self._require(
                instruction, integer and positive, "is an array whose length is no positive constant"
            )

    def _check_length(self, instruction: Instruction) -> None:
        operands = instruction.operands
        block = self._pointee(instruction, self._type(instruction, 2))
        made = self.types[block]
        fits = made.opcode == op.TYPE_STRUCT and operands[3] == len(made.operands) - 2
        endless = fits and self._is(made.operands[-1], op.TYPE_RUNTIME_ARRAY)
        self._require(instruction, endless, "asks the length of what has a fixed one")
        self._require(instruction, self._shape(operands[0]) == (op.TYPE_INT, 32, 1), "gives no integer")

    def _check_copy(self, instruction: Instruction) -> None:
        self._same(instruction, self._type(instruction, 2), instruction.operands[0])

    def _check_bitcast(self, instruction: Instruction) -> None:
        kinds = instruction.operands[0], self._type(instruction, 2)
        pointers = any(
            self._is(kind, op.TYPE_POINTER) and self.types[kind].operands[1] == _ADDRESSED for kind in kinds
        )
        made, given = (self._shape(kind) for kind in kinds)
        fits = (
            made is not None
            and given is not None
            and op.TYPE_BOOL not in (made[0], given[0])
            and made[1] * made[2] == given[1] * given[2]
        )
        self._require(instruction, pointers or fits, "takes other bits than it gives")

    def _check_insert(self, instruction: Instruction) -> None:
        operands = instruction.operands
        self._same(instruction, self._type(instruction, 3), operands[0])
        kind = self._follow(instruction, operands[0], operands[4:])
        self._same(instruction, kind, self._type(instruction, 2))

    def _check_load(self, instruction: Instruction) -> None:
        self._same(
            instruction, self._pointee(instruction, self._type(instruction, 2)), instruction.operands[0]
        )

    def _check_store(self, instruction: Instruction) -> None:
        pointer = self._type(instruction, 0)
        self._same(instruction, self._pointee(instruction, pointer), self._type(instruction, 1))
        self._check_writable(instruction, pointer)

    def _check_variable(self, instruction: Instruction) -> None:
        operands = instruction.operands
        self._pointee(instruction, operands[0])
        storage = self.types[operands[0]].operands[1]
        fits = len(operands) > 2 and storage == operands[2]
        self._require(instruction, fits, "lies elsewhere than its pointer says")
        if storage in _OF_INVOCATIONS:
            size = self._size(self._pointee(instruction, operands[0]))
            self._require(instruction, size <= _MAX_BYTES, f"is a variable of {size} bytes")
            endless = self._endless(self._pointee(instruction, operands[0]))
            self._require(instruction, not endless, "is a variable without an end")
        if len(operands) > 3:
            self._same(instruction, self._type(instruction, 3), self._pointee(instruction, operands[0]))

    def _check_constant(self, instruction: Instruction) -> None:
        made = self.types[instruction.operands[0]]
        fits = made.opcode in (op.TYPE_INT, op.TYPE_FLOAT)
        words = max(made.operands[1], 32) // 32 if fits else 0
        self._require(instruction, words == len(instruction.operands) - 2, "is no number of its type")

    def _check_select(self, instruction: Instruction) -> None:
        for position in (3, 4):
            self._same(instruction, self._type(instruction, position), instruction.operands[0])
        shape = self._shape(self._type(instruction, 2))
        self._require(instruction, shape is not None and shape[0] == op.TYPE_BOOL, "asks no bool")

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
        base = self._type(instruction, 2)
        kind = self._pointee(instruction, base)
        for position in range(3, len(operands)):
            made = self.types[kind]
            number = self.integers.get(operands[position], -1)
            if made.opcode == op.TYPE_STRUCT:
                kind = self._member(instruction, made, number)
                continue
            shape = self._shape(self._type(instruction, position))
            fits = shape is not None and shape[0] == op.TYPE_INT and shape[2] == 1
            self._require(instruction, fits, "has an index that is no integer")
            self._require(instruction, number < self._count(made), "has an index beyond the end")
            kind = self._element(instruction, made)
        self._same(instruction, kind, self._pointee(instruction, operands[0]))
        self._same(instruction, self.types[base].operands[1], self.types[operands[0]].operands[1])

    def _check_extract(self, instruction: Instruction) -> None:
        operands = instruction.operands
        self._same(
            instruction, self._follow(instruction, self._type(instruction, 2), operands[3:]), operands[0]
        )

    def _check_construct(self, instruction: Instruction) -> None:
        operands = instruction.operands
        made = self.types[operands[0]]
        given = [self._type(instruction, position) for position in range(2, len(operands))]
        if made.opcode == op.TYPE_STRUCT:
            self._require(instruction, given == list(made.operands[1:]), "does not fit its structure")
        elif made.opcode == op.TYPE_VECTOR:
            shapes = [self._shape(kind) for kind in given]
            whole = self._shape(operands[0])
            fits = whole is not None and all(shape and shape[:2] == whole[:2] for shape in shapes)
            count = sum(shape[2] for shape in shapes if shape)
            self._require(instruction, fits and count == made.operands[2], "does not fill its vector")
        elif made.opcode in (op.TYPE_MATRIX, op.TYPE_ARRAY):
            fits = bool(given) and all(kind == made.operands[1] for kind in given)
            count = self._count(made)
            filled = len(given) == count or count == 1 << 32
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
