"""Blocks of a SPIR-V function: where they lead, what is defined before it is used, and whether they nest."""

from collections.abc import Callable, Sequence

from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import field, record
from vkdispatch.base.spirv import opcodes as op
from vkdispatch.base.spirv.grammar import identifiers
from vkdispatch.base.spirv.module import LAST_KNOWN, Instruction, Module, has_result, has_type

_FUNCTION_STORAGE = 7
_MOST_INSTRUCTIONS = 1 << 22  # of a function with all that it calls, which drivers inline

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
                if whole[identifier] > _MOST_INSTRUCTIONS:
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
