"""Whether what a SPIR-V module declares outside of its functions makes sense."""

from collections.abc import Sequence

from vkdispatch.base.spirv import opcodes as op
from vkdispatch.base.spirv.flow import Refuse
from vkdispatch.base.spirv.grammar import identifiers
from vkdispatch.base.spirv.module import GL_COMPUTE, Instruction, Module, has_result, has_type, text
from vkdispatch.base.spirv.opcodes import parse_ranges

_SPEC_ID, _BLOCK, _BUFFER_BLOCK, _ROW_MAJOR, _COLUMN_MAJOR, _ARRAY_STRIDE, _MATRIX_STRIDE = range(1, 8)
_BUILT_IN, _BINDING, _SET, _OFFSET = 11, 33, 34, 35
_LITERALS = dict.fromkeys((_SPEC_ID, _ARRAY_STRIDE, _MATRIX_STRIDE, _BUILT_IN, _BINDING, _SET, _OFFSET), 1)
_WORKGROUP_SIZE, _INPUT, _OUTPUT, _FUNCTION = 25, 1, 3, 7
_COMPOSITES = (op.TYPE_ARRAY, op.TYPE_RUNTIME_ARRAY, op.TYPE_STRUCT)
_DEEPEST, _MOST_MEMBERS = 255, 16383  # limits that SPIR-V allows for
_OF_BLOCKS = (2, 9, 12)  # Uniform, PushConstant, StorageBuffer
_FARTHEST = 1 << 31  # bytes: an offset or a stride

# Built-in inputs of compute shaders: how many unsigned integers of 32 bits they are.
_INPUTS = {
    **dict.fromkeys((24, 26, 27, 28), 3),
    **dict.fromkeys((29, 36, 38, 40, 41, 4438, *range(4160, 4165), *range(5374, 5378)), 1),
    **dict.fromkeys(range(4416, 4421), 4),
}
# What instructions a decoration may be about.
_TARGETS = {
    _SPEC_ID: parse_ranges("48-50"),
    **dict.fromkeys((_BLOCK, _BUFFER_BLOCK), frozenset((op.TYPE_STRUCT,))),
    _ARRAY_STRIDE: frozenset((op.TYPE_ARRAY, op.TYPE_RUNTIME_ARRAY, op.TYPE_POINTER)),
    **dict.fromkeys((_BINDING, _SET), frozenset((op.VARIABLE,))),
    **dict.fromkeys((_ROW_MAJOR, _COLUMN_MAJOR, _MATRIX_STRIDE, _OFFSET), frozenset[int]()),
}
_MEMBERS_ONLY = (_ROW_MAJOR, _COLUMN_MAJOR, _MATRIX_STRIDE, _OFFSET)
_CONSTANTS = parse_ranges("41-52")


def check_declarations(module: Module, refuse: Refuse) -> None:
    """Raise where a declaration makes no sense."""
    _Declarations(module, refuse).check()


class _Declarations:
    def __init__(self, module: Module, refuse: Refuse) -> None:
        self.module, self.refuse = module, refuse
        self.by_identifier: dict[int, Instruction] = {}
        self.built_ins: dict[int, tuple[Instruction, int]] = {}
        self.blocks: set[int] = set()
        self.strides: set[int] = set()
        self.laid_out: set[tuple[int, int, int]] = set()  # structure, member, decoration
        self.whole: set[int] = set()  # types whose layout was looked at
        for instruction in module.instructions:
            if instruction.opcode == op.FUNCTION:
                break
            if has_type(instruction.opcode) and len(instruction.operands) > 1:
                self.by_identifier[instruction.operands[1]] = instruction
            elif has_result(instruction.opcode) and instruction.operands:
                self.by_identifier[instruction.operands[0]] = instruction

    def check(self) -> None:
        """Look at all declarations."""
        entries = list(self.module.of(op.ENTRY_POINT))
        compute = [entry for entry in entries if entry.operands[0] == GL_COMPUTE]
        self._check_nesting()
        for instruction in self.module.of(op.DECORATE):
            self._check_decoration(instruction, only_compute=len(compute) == len(entries))
        for instruction in self.module.of(op.MEMBER_DECORATE, op.MEMBER_NAME):
            self._check_member(instruction)
        self._check_order()
        variables = [each for each in self.by_identifier.values() if each.opcode == op.VARIABLE]
        for variable in variables:
            if variable.operands[2] in _OF_BLOCKS:
                self._check_block(variable)
        if len(compute) == len(entries):
            self._check_inputs(variables)
        for entry in compute:
            self._check_entry(entry)

    def _check_decoration(self, instruction: Instruction, only_compute: bool) -> None:
        target, decoration, *literals = instruction.operands
        about = self.by_identifier.get(target)
        if len(literals) < _LITERALS.get(decoration, 0):
            raise self.refuse(instruction, "lacks the number of its decoration")
        if decoration in _TARGETS and (about is None or about.opcode not in _TARGETS[decoration]):
            raise self.refuse(instruction, "decorates what cannot have that")
        if decoration == _ARRAY_STRIDE and not 0 < literals[0] < _FARTHEST:
            raise self.refuse(instruction, f"has a stride of {literals[0]} bytes")
        if decoration in (_BLOCK, _BUFFER_BLOCK):
            self.blocks.add(target)
        elif decoration == _ARRAY_STRIDE:
            self.strides.add(target)
        if decoration == _BUILT_IN and only_compute:
            known = self.built_ins.get(target, (None, literals[0]))[1] == literals[0]
            constant = about is not None and about.opcode in _CONSTANTS
            variable = about is not None and about.opcode == op.VARIABLE
            if not known or not ((constant and literals[0] == _WORKGROUP_SIZE) or variable):
                raise self.refuse(instruction, "decorates what cannot be built in, or is built in otherwise")
            self.built_ins[target] = instruction, literals[0]

    def _check_nesting(self) -> None:
        """Refuse types that are nested deeper, or have more members in all, than any compiler is made for."""
        sizes: dict[int, tuple[int, int]] = {}  # depth, members
        for instruction in self.module.of(*_COMPOSITES):
            operands = instruction.operands
            parts = operands[1:] if instruction.opcode == op.TYPE_STRUCT else operands[1:2]
            known = [sizes.get(part, (0, 1)) for part in parts]
            depth = 1 + max((part[0] for part in known), default=0)
            members = sum(part[1] for part in known)
            if depth > _DEEPEST or members > _MOST_MEMBERS:
                raise self.refuse(instruction, f"has {members} members in all, nested {depth} deep")
            sizes[operands[0]] = depth, members

    def _check_member(self, instruction: Instruction) -> None:
        target, member, *rest = instruction.operands
        about = self.by_identifier.get(target)
        if about is None or about.opcode != op.TYPE_STRUCT or member >= len(about.operands) - 1:
            raise self.refuse(instruction, "is about a member that is not there")
        if instruction.opcode != op.MEMBER_DECORATE:
            return
        decoration, *literals = rest
        if len(literals) < _LITERALS.get(decoration, 0):
            raise self.refuse(instruction, "lacks the number of its decoration")
        if decoration in (_OFFSET, _MATRIX_STRIDE) and literals[0] >= _FARTHEST:
            raise self.refuse(instruction, f"has an offset or stride of {literals[0]} bytes")
        if decoration in _TARGETS and decoration not in _MEMBERS_ONLY:
            raise self.refuse(instruction, "decorates what cannot have that")
        self.laid_out.add((target, member, decoration))

    def _check_block(self, variable: Instruction) -> None:
        """Refuse a buffer or push constants that are no block, or have something without a place in it."""
        pointer = self.by_identifier[variable.operands[0]]
        kind = pointer.operands[2] if pointer.opcode == op.TYPE_POINTER else 0
        made = self.by_identifier.get(kind)
        while made is not None and made.opcode in (op.TYPE_ARRAY, op.TYPE_RUNTIME_ARRAY):
            kind = made.operands[1]
            made = self.by_identifier.get(kind)
        if kind not in self.blocks:
            raise self.refuse(variable, "is of a type that is no block")
        self._check_layout(variable, kind)

    def _check_layout(self, variable: Instruction, kind: int) -> None:
        made = self.by_identifier[kind]
        if kind in self.whole:
            return
        self.whole.add(kind)
        if made.opcode in (op.TYPE_ARRAY, op.TYPE_RUNTIME_ARRAY):
            if kind not in self.strides:
                raise self.refuse(variable, "has an array without a stride")
            self._check_layout(variable, made.operands[1])
        elif made.opcode == op.TYPE_STRUCT:
            for index, member in enumerate(made.operands[1:]):
                if (kind, index, _OFFSET) not in self.laid_out:
                    raise self.refuse(variable, "has a member without an offset")
                if self._has_matrix(member) and (kind, index, _MATRIX_STRIDE) not in self.laid_out:
                    raise self.refuse(variable, "has a matrix without a stride")
                self._check_layout(variable, member)

    def _has_matrix(self, kind: int) -> bool:
        made = self.by_identifier[kind]
        while made.opcode in (op.TYPE_ARRAY, op.TYPE_RUNTIME_ARRAY):
            made = self.by_identifier[made.operands[1]]
        return made.opcode == op.TYPE_MATRIX

    def _check_order(self) -> None:
        """Refuse constants and variables that are made of what comes later."""
        seen: set[int] = set()
        forward = {instruction.operands[0] for instruction in self.module.of(op.TYPE_FORWARD_POINTER)}
        for identifier, instruction in self.by_identifier.items():
            if instruction.opcode in _CONSTANTS or instruction.opcode == op.VARIABLE:
                uses: Sequence[int] = identifiers(instruction)
                if any(used not in seen for used in (instruction.operands[0], *uses)):
                    raise self.refuse(instruction, "is made of what comes later, or is not there")
                wrong = instruction.opcode in _CONSTANTS and any(
                    self.by_identifier[used].opcode not in _CONSTANTS | {1} for used in uses
                )
                if wrong:
                    raise self.refuse(instruction, "is made of what is no constant")
            later = instruction.opcode == op.TYPE_POINTER and instruction.operands[2] not in seen
            if later and identifier not in forward:
                raise self.refuse(instruction, "points at what comes later, or is not there")
            if instruction.opcode == op.VARIABLE and instruction.operands[2] == _FUNCTION:
                raise self.refuse(instruction, "is a variable of a function and in none")
            seen.add(identifier)

    def _check_inputs(self, variables: Sequence[Instruction]) -> None:
        taken: set[int] = set()
        for variable in variables:
            storage = variable.operands[2]
            if storage == _OUTPUT:
                raise self.refuse(variable, "is an output, which compute shaders have none of")
            found = self.built_ins.get(variable.operands[1])
            if storage != _INPUT:
                if found is not None:
                    raise self.refuse(variable, "is built in and no input")
                continue
            if found is None:
                raise self.refuse(variable, "is an input without a BuiltIn decoration")
            number = found[1]
            if number in taken or self._components(variable.operands[0]) != _INPUTS.get(number, 0):
                raise self.refuse(
                    variable, f"is the built-in input {number} once more, of another type, or not of compute"
                )
            taken.add(number)

    def _components(self, pointer: int) -> int:
        """Return how many 32-bit integers a pointer's target consists of; -1 where it is something else."""
        made = self.by_identifier[pointer]
        if made.opcode != op.TYPE_POINTER or made.operands[2] not in self.by_identifier:
            return -1
        kind = self.by_identifier[made.operands[2]]
        count = 1
        if kind.opcode == op.TYPE_VECTOR:
            count = kind.operands[2]
            kind = self.by_identifier[kind.operands[1]]
        return count if kind.opcode == op.TYPE_INT and kind.operands[1] == 32 else -1

    def _check_entry(self, entry: Instruction) -> None:
        _, words = text(entry.operands[2:])
        interface = entry.operands[2 + words :]
        for identifier in interface:
            about = self.by_identifier.get(identifier)
            if about is None or about.opcode != op.VARIABLE:
                raise self.refuse(entry, f"has {identifier} in its interface, which is no variable")
        if len(set(interface)) != len(interface):
            raise self.refuse(entry, "has a variable in its interface twice")
