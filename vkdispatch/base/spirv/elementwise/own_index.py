"""Which values of a SPIR-V module equal `gl_GlobalInvocationID.x`."""

from collections.abc import Sequence

from vkdispatch.base.spirv import opcodes as op
from vkdispatch.base.spirv.elementwise.code import BUILT_IN, CHAINS, FUNCTION_STORAGE, Code, Known

# What an index of an access chain may be besides a constant.
OWN, UNKNOWN = -1, -2
# What else a value may be known to be, for the sake of sums that are `OWN`: all of it along x.
_GROUP, _LOCAL, _SIZE, _START = -3, -4, -5, -6
_BUILT_INS = {26: _GROUP, 27: _LOCAL, 28: OWN, 29: _LOCAL}
_SUMS = {
    (op.INTEGER_MULTIPLY, _GROUP, _SIZE): _START,
    (op.INTEGER_MULTIPLY, _SIZE, _GROUP): _START,
    (op.INTEGER_ADD, _START, _LOCAL): OWN,
    (op.INTEGER_ADD, _LOCAL, _START): OWN,
}
MOST_STEPS = 100


def count_integers(code: Code, identifier: int) -> int:
    """Return how many integers of 32 bits a value consists of; 0 where it is of another kind."""
    made = code.types.get(code.type_of.get(identifier, -1))
    count = 1
    if made is not None and made.opcode == op.TYPE_VECTOR:
        count = made.operands[2]
        made = code.types.get(made.operands[1])
    return count if made is not None and made.opcode == op.TYPE_INT and made.operands[1] == 32 else 0


def find_known(code: Code, identifier: int, steps: int = 0) -> Known:
    """Return what the components of a value, or of what a parameter points to, are known to be."""
    if identifier not in code.known:
        # A value that depends on itself, or on too many others, is not looked into.
        code.known[identifier] = {}
        if steps < MOST_STEPS:
            code.known[identifier] = _find(code, identifier, steps + 1)
    return code.known[identifier]


def _find(code: Code, identifier: int, steps: int) -> Known:
    number = code.made.get(identifier)
    if number is None:
        return {}
    opcode, operands = code.instructions[number].opcode, code.instructions[number].operands
    if opcode == op.FUNCTION_PARAMETER:
        function, place = code.parameter_of[identifier]
        given = [(call, code.instructions[call].operands[3 + place]) for call in code.calls.get(function, ())]
        if code.storage(identifier) < 0:
            return _common([find_known(code, value, steps) for _, value in given])
        if code.storage(identifier) != FUNCTION_STORAGE or _stores(code, identifier) != []:
            return {}
        return _common([_known_in(code, pointer, call, steps) for call, pointer in given])
    if not count_integers(code, identifier):
        return {}
    if identifier == code.size or (
        identifier in code.integers and code.integers[identifier] == code.size_value
    ):
        return {0: _SIZE}
    if opcode == op.LOAD:
        return _known_in(code, operands[2], number, steps)
    if opcode == op.COPY_OBJECT:
        return find_known(code, operands[2], steps)
    if opcode == op.BITCAST and count_integers(code, identifier) == count_integers(code, operands[2]):
        return find_known(code, operands[2], steps)
    if opcode == op.COMPOSITE_EXTRACT and len(operands) == 4:
        return _component(find_known(code, operands[2], steps), operands[3])
    if opcode in (op.INTEGER_ADD, op.INTEGER_MULTIPLY):
        one, other = (find_known(code, operand, steps) for operand in operands[2:])
        sums = {lane: _SUMS.get((opcode, one[lane], other[lane])) for lane in one.keys() & other.keys()}
        return {lane: what for lane, what in sums.items() if what is not None}
    if opcode in (
        op.VECTOR_SHUFFLE,
        op.COMPOSITE_CONSTRUCT,
        op.CONSTANT_COMPOSITE,
        op.SPEC_CONSTANT_COMPOSITE,
    ):
        parts: list[int | None] = []
        for part in operands[2:4] if opcode == op.VECTOR_SHUFFLE else operands[2:]:
            found = find_known(code, part, steps)
            parts += [found.get(lane) for lane in range(count_integers(code, part))]
        sources = operands[4:] if opcode == op.VECTOR_SHUFFLE else range(len(parts))
        taken = {lane: parts[source] for lane, source in enumerate(sources) if source < len(parts)}
        return {lane: what for lane, what in taken.items() if what is not None}
    if opcode == op.FUNCTION_CALL:
        return _common([find_known(code, value, steps) for value in code.returned.get(operands[2], ())])
    return {}


def _common(found: Sequence[Known]) -> Known:
    """Return what is known whichever of these it is."""
    return dict(set.intersection(*(set(each.items()) for each in found))) if found else {}


def _component(known: Known, index: int | None) -> Known:
    return {0: known[index]} if index in known else {}


def _known_in(code: Code, pointer: int, at: int, steps: int) -> Known:
    """Return what the components of what lies in memory are known to be when `at` is executed."""
    number = code.made.get(pointer)
    if number is None or steps > MOST_STEPS:
        return {}
    opcode, operands = code.instructions[number].opcode, code.instructions[number].operands
    if opcode == op.FUNCTION_PARAMETER:
        return find_known(code, pointer, steps)
    if opcode in CHAINS and len(operands) == 4:
        return _component(_known_in(code, operands[2], at, steps + 1), code.integers.get(operands[3]))
    if opcode != op.VARIABLE:
        return {}
    built_in = _BUILT_INS.get(code.decorations.get((pointer, BUILT_IN), -1))
    if built_in is not None:
        return {0: built_in}
    if operands[2] == FUNCTION_STORAGE and len(operands) == 3:
        stores = _stores(code, pointer)
        if stores is not None and len(stores) == 1 and _comes_before(code, stores[0], at):
            return find_known(code, code.instructions[stores[0]].operands[1], steps)
    return {}


def _stores(code: Code, pointer: int) -> list[int] | None:
    """Return the stores to a variable of a function as a whole; None where parts of it may be changed."""
    if pointer not in code.stores:
        code.stores[pointer] = None
        code.stores[pointer] = _stores_of(code, pointer)
    return code.stores[pointer]


def _stores_of(code: Code, pointer: int) -> list[int] | None:
    found = []
    for number, instruction, position in code.users(pointer):
        opcode, operands = instruction.opcode, instruction.operands
        if opcode == op.LOAD:
            continue
        if opcode == op.STORE and position == 0:
            found.append(number)
        elif opcode in CHAINS and position == 2:
            if _stores(code, operands[1]) != []:
                return None
        elif opcode == op.FUNCTION_CALL:
            if _stores(code, code.parameters[operands[2]][position - 3]) != []:
                return None
        else:
            return None
    return found


def _comes_before(code: Code, first: int, second: int) -> bool:
    """Whether every way to one instruction of a function passes another. There are no loops."""
    one, other = code.block_of[first], code.block_of[second]
    return first < second if one == other else bool(code.dominators[other] & code.bits[one])
