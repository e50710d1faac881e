"""Whether what a SPIR-V module declares makes sense, and where the blocks of its functions lead."""

from collections.abc import Callable, Sequence

from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import field, record
from vkdispatch.base.spirv import opcodes as op
from vkdispatch.base.spirv.module import (
    GL_COMPUTE,
    LAST_KNOWN,
    Instruction,
    Module,
    has_result,
    has_type,
    identifiers,
    text,
)
from vkdispatch.base.spirv.opcodes import parse_ranges

# ---- Blocks of a SPIR-V function -------------------------------------------------------------------------
#
# Where they lead, what is defined before it is used, and whether they nest.


_FUNCTION_STORAGE = 7
_MAX_INSTRUCTIONS = 1 << 22  # of a function with all that it calls, which drivers inline

Refuse = Callable[[Instruction, str], ArgumentValueError]


@record(eq=False, frozen=False)
class Block:
    """A block: its instructions from the label to the terminator, and where those lead.

    Attributes
    ----------
    merge, proceed
        Labels of the merge block and of the continue target, of a block that is a header.
    number
        Its place in reverse postorder; -1 where nothing leads to it.
    dominator
        The number of the block that comes right before it on all ways.
    """

    label: int
    code: list[Instruction] = field(factory=list)
    targets: tuple[int, ...] = ()
    merge: int | None = None
    proceed: int | None = None
    number: int = -1
    dominator: int = -1


def check_flow(module: Module, widths: dict[int, int], refuse: Refuse) -> None:
    """Raise where a function's blocks are not as drivers expect them.

    Parameters
    ----------
    widths
        The bits of each integer value, which say how long the literals of a switch are.
    refuse
        Makes the error.
    """
    everywhere: set[int] = set()
    functions: list[list[Instruction]] = []
    for instruction in module.instructions:
        if instruction.opcode == op.FUNCTION:
            functions.append([])
            everywhere.add(instruction.operands[1])
        if functions and not _is_last_complete(functions):
            functions[-1].append(instruction)
        elif not functions:
            everywhere.update(_definitions(instruction))
    _check_calls(functions, refuse)
    for function in functions:
        _Function(function, everywhere, widths, refuse).check()


def _check_calls(functions: list[list[Instruction]], refuse: Refuse) -> None:
    """Refuse functions that call themselves, or are endless once each call is replaced by what it calls."""
    calls = {
        function[0].operands[1]: [each for each in function if each.opcode == op.FUNCTION_CALL]
        for function in functions
    }
    lengths = {function[0].operands[1]: len(function) for function in functions}
    whole: dict[int, int] = {}
    for function in functions:
        # A function is done once all that it calls is.
        stack = [(function[0].operands[1], iter(calls[function[0].operands[1]]))]
        begun = {stack[0][0]}
        while stack:
            identifier, remaining = stack[-1]
            call = next(remaining, None)
            if call is None:
                stack.pop()
                begun.discard(identifier)
                called = (whole[each.operands[2]] for each in calls[identifier])
                whole[identifier] = lengths[identifier] + sum(called)
                if whole[identifier] > _MAX_INSTRUCTIONS:
                    raise refuse(
                        function[0], f"begins a function of {whole[identifier]} instructions, with its calls"
                    )
            elif call.operands[2] in begun:
                raise refuse(call, "calls a function that is under way")
            elif call.operands[2] not in whole:
                stack.append((call.operands[2], iter(calls[call.operands[2]])))
                begun.add(call.operands[2])


def _is_last_complete(functions: list[list[Instruction]]) -> bool:
    return bool(functions[-1]) and functions[-1][-1].opcode == op.FUNCTION_END


def _definitions(instruction: Instruction) -> Sequence[int]:
    """Return the identifier that an instruction defines, as a sequence."""
    opcode, operands = instruction.opcode, instruction.operands
    if opcode > LAST_KNOWN:
        return operands[:2]
    if has_type(opcode):
        return operands[1:2]
    return operands[:1] if has_result(opcode) else ()


class _Function:
    def __init__(
        self, code: list[Instruction], everywhere: set[int], widths: dict[int, int], refuse: Refuse
    ) -> None:
        self.code, self.everywhere, self.widths, self.refuse = code, everywhere, widths, refuse
        self.blocks: dict[int, Block] = {}
        self.parameters: set[int] = set()
        block: Block | None = None
        for instruction in code:
            if instruction.opcode == op.FUNCTION_PARAMETER:
                self.parameters.add(instruction.operands[1])
            elif instruction.opcode == op.LABEL:
                block = self.blocks[instruction.operands[0]] = Block(instruction.operands[0])
            if block is not None and instruction.opcode != op.FUNCTION_END:
                block.code.append(instruction)

    def check(self) -> None:
        for block in self.blocks.values():
            self._read(block)
        entry = next(iter(self.blocks.values()))
        for block in self.blocks.values():
            for target in block.targets:
                if target not in self.blocks or target == entry.label:
                    raise self.refuse(block.code[-1], "leads to no block that it may lead to")
        order = self._number(entry)
        self._find_dominators(order)
        self._check_variables(entry)
        self._check_uses(order)
        self._check_structure(order)

    def _read(self, block: Block) -> None:
        """Note where a block leads, and look at the order of its instructions."""
        last = block.code[-1]
        opcode, operands = last.opcode, last.operands
        if opcode == op.BRANCH:
            block.targets = (operands[0],)
        elif opcode == op.BRANCH_CONDITIONAL:
            block.targets = (operands[1], operands[2])
        elif opcode == op.SWITCH:
            words = max(self.widths.get(operands[0], 0), 32) // 32
            cases = operands[2:]
            if operands[0] not in self.widths or len(cases) % (words + 1):
                raise self.refuse(last, "chooses by no integer, or has a case without a block")
            block.targets = (operands[1], *cases[words :: words + 1])
        phis = True
        for index, instruction in enumerate(block.code[1:], 1):
            if instruction.opcode in (op.LOOP_MERGE, op.SELECTION_MERGE):
                self._read_merge(block, index)
            if instruction.opcode == op.PHI and not phis:
                raise self.refuse(instruction, "does not come first in its block")
            phis = phis and instruction.opcode in (op.PHI, op.LINE, op.NO_LINE)

    def _read_merge(self, block: Block, index: int) -> None:
        instruction, last = block.code[index], block.code[-1]
        follows = (
            (op.BRANCH, op.BRANCH_CONDITIONAL)
            if instruction.opcode == op.LOOP_MERGE
            else (op.BRANCH_CONDITIONAL, op.SWITCH)
        )
        if index != len(block.code) - 2 or last.opcode not in follows:
            raise self.refuse(instruction, "is not followed by the branch that it is about")
        block.merge = instruction.operands[0]
        if instruction.opcode == op.LOOP_MERGE:
            block.proceed = instruction.operands[1]
        for label in (block.merge, block.proceed):
            if label is not None and (label not in self.blocks or label == block.label == block.merge):
                raise self.refuse(instruction, "names no block of its function")

    def _number(self, entry: Block) -> list[Block]:
        """Return the blocks that can be reached, with their numbers, in that order."""
        order: list[Block] = []
        visited = {entry.label}
        stack = [(entry, iter(entry.targets))]
        while stack:
            block, targets = stack[-1]
            for target in targets:
                if target not in visited:
                    visited.add(target)
                    following = self.blocks[target]
                    stack.append((following, iter(following.targets)))
                    break
            else:
                order.append(block)
                stack.pop()
        order.reverse()
        for number, block in enumerate(order):
            block.number = number
        return order

    def _find_dominators(self, order: list[Block]) -> None:
        before: list[list[int]] = [[] for _ in order]
        for block in order:
            for target in block.targets:
                before[self.blocks[target].number].append(block.number)
        self.before = before
        order[0].dominator = 0
        changed = True
        while changed:
            changed = False
            for block in order[1:]:
                known = [number for number in before[block.number] if order[number].dominator >= 0]
                dominator = known[0]
                for number in known[1:]:
                    dominator = self._common(order, dominator, number)
                if dominator != block.dominator:
                    block.dominator, changed = dominator, True

    @staticmethod
    def _common(order: list[Block], first: int, second: int) -> int:
        while first != second:
            while first > second:
                first = order[first].dominator
            while second > first:
                second = order[second].dominator
        return first

    @staticmethod
    def _dominates(order: list[Block], first: int, second: int) -> bool:
        while second > first:
            second = order[second].dominator
        return first == second

    def _check_variables(self, entry: Block) -> None:
        for block in self.blocks.values():
            first = block is entry
            for instruction in block.code[1:]:
                if instruction.opcode == op.VARIABLE:
                    if not first or instruction.operands[2] != _FUNCTION_STORAGE:
                        raise self.refuse(instruction, "declares a variable where none can be")
                elif instruction.opcode not in (0, 1, 8, 12, 317):
                    first = False

    def _check_uses(self, order: list[Block]) -> None:
        """Refuse what is used where it is not defined on every way there."""
        where: dict[int, tuple[int, int]] = {}
        for block in self.blocks.values():
            for place, instruction in enumerate(block.code):
                for result in _definitions(instruction):
                    where.setdefault(result, (block.number, place))  # what extensions define is a guess
        for block in self.blocks.values():
            for place, instruction in enumerate(block.code):
                if instruction.opcode == op.PHI:
                    self._check_phi(order, block, instruction, where)
                    continue
                for used in identifiers(instruction):
                    if used in self.everywhere or used in self.parameters or used in self.blocks:
                        continue
                    if used not in where:
                        raise self.refuse(instruction, f"uses identifier {used} of another function")
                    number, begin = where[used]
                    if block.number < 0:
                        continue
                    same = number == block.number and begin < place
                    if not same and (
                        number in (-1, block.number) or not self._dominates(order, number, block.number)
                    ):
                        raise self.refuse(instruction, f"uses identifier {used} before it is defined")

    def _check_phi(
        self, order: list[Block], block: Block, instruction: Instruction, where: dict[int, tuple[int, int]]
    ) -> None:
        values, labels = instruction.operands[2::2], instruction.operands[3::2]
        if block.number < 0:
            return
        before = {order[number].label for number in self.before[block.number]}
        reached = [label for label in labels if label in self.blocks and self.blocks[label].number >= 0]
        if set(reached) != before or len(reached) != len(before):
            raise self.refuse(instruction, "does not name the blocks that lead to its own")
        for value, label in zip(values, labels, strict=True):
            if value in self.everywhere or value in self.parameters or label not in before:
                continue
            number = where.get(value, (-1, 0))[0]
            if number < 0 or not self._dominates(order, number, self.blocks[label].number):
                raise self.refuse(instruction, f"uses identifier {value} before it is defined")

    # -- constructs

    def _check_structure(self, order: list[Block]) -> None:
        merges = [label for block in order for label in (block.merge,) if label is not None]
        if len(set(merges)) != len(merges):
            raise self.refuse(
                order[0].code[0], "belongs to a function in which two constructs end in one block"
            )
        for block in order:
            last = block.code[-1]
            for target in block.targets:
                back = self.blocks[target]
                if self._dominates(order, back.number, block.number) and back.proceed is None:
                    raise self.refuse(last, "leads back to what is no header of a loop")
            for label in (block.merge, block.proceed):
                number = -1 if label is None else self.blocks[label].number
                if number >= 0 and not self._dominates(order, block.number, number):
                    raise self.refuse(last, "heads a construct whose end can be reached otherwise")
            if block.proceed is not None:
                backs = [number for number in self.before[block.number] if number >= block.number]
                if len(backs) > 1:
                    raise self.refuse(last, "heads a loop that is begun anew from two blocks")
            if back_edges := [t for t in block.targets if 0 <= self.blocks[t].number <= block.number]:
                header = self.blocks[back_edges[0]]
                if not self._dominates(order, header.number, block.number):
                    raise self.refuse(last, "leads back into a construct from outside of it")


# ---- Whether what a SPIR-V module declares outside of its functions makes sense --------------------------


_SPEC_ID, _BLOCK, _BUFFER_BLOCK, _ROW_MAJOR, _COLUMN_MAJOR, _ARRAY_STRIDE, _MATRIX_STRIDE = range(1, 8)
_BUILT_IN, _BINDING, _SET, _OFFSET = 11, 33, 34, 35
_LITERALS = dict.fromkeys((_SPEC_ID, _ARRAY_STRIDE, _MATRIX_STRIDE, _BUILT_IN, _BINDING, _SET, _OFFSET), 1)
_WORKGROUP_SIZE, _INPUT, _OUTPUT, _FUNCTION = 25, 1, 3, 7
_COMPOSITES = (op.TYPE_ARRAY, op.TYPE_RUNTIME_ARRAY, op.TYPE_STRUCT)
_DEEPEST, _MAX_MEMBERS = 255, 16383  # limits that SPIR-V allows for
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
            if depth > _DEEPEST or members > _MAX_MEMBERS:
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
