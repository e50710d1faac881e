"""Proof that a SPIR-V kernel works element by element: no invocation reads what another one writes."""

from collections.abc import Iterator, Sequence

from vkdispatch.base.record import field, record
from vkdispatch.base.spirv import opcodes as op
from vkdispatch.base.spirv.module import Instruction, Module, has_type, text
from vkdispatch.base.spirv.opcodes import Capability, parse_ranges
from vkdispatch.base.spirv.reflection import reflect

# ---- Tables over the instructions of a SPIR-V module, for the proof that it works element by element -----


CHAINS = (op.ACCESS_CHAIN, op.IN_BOUNDS_ACCESS_CHAIN)
WITHOUT_EFFECT = (op.NOP, op.UNDEF, op.LINE, op.NO_LINE)
FUNCTION_STORAGE = 7
BUILT_IN, BINDING = 11, 33

# Component (0 is a scalar's only one) -> what it is known to be.
Known = dict[int, int]


@record(eq=False, frozen=False)
class Code:
    """Tables over a module. Instructions are known by their number in it."""

    instructions: Sequence[Instruction]
    types: dict[int, Instruction] = field(factory=dict)
    type_of: dict[int, int] = field(factory=dict)
    # Identifier -> number of the instruction whose result it is.
    made: dict[int, int] = field(factory=dict)
    integers: dict[int, int] = field(factory=dict)
    composites: dict[int, Sequence[int]] = field(factory=dict)
    # Constant, or value, that is the size of a workgroup along x.
    size: int = 0
    size_value: int = -1
    decorations: dict[tuple[int, int], int] = field(factory=dict)
    # Identifier -> (number, operand) of each instruction inside a function that uses it.
    uses: dict[int, list[tuple[int, int]]] = field(factory=dict)
    functions: dict[int, int] = field(factory=dict)
    parameters: dict[int, list[int]] = field(factory=dict)
    # Parameter -> its function and place among the parameters.
    parameter_of: dict[int, tuple[int, int]] = field(factory=dict)
    calls: dict[int, list[int]] = field(factory=dict)
    returned: dict[int, list[int]] = field(factory=dict)
    block_of: dict[int, int] = field(factory=dict)
    # Block -> a number whose bits are the blocks that dominate it, and its own bit.
    dominators: dict[int, int] = field(factory=dict)
    bits: dict[int, int] = field(factory=dict)
    without_meaning: set[int] = field(factory=set)
    # What was found by `find_known` and `_stores`; nothing for what is being looked into.
    known: dict[int, Known] = field(factory=dict)
    stores: dict[int, list[int] | None] = field(factory=dict)

    def users(self, identifier: int) -> Iterator[tuple[int, Instruction, int]]:
        """Return number, instruction and operand wherever functions use an identifier."""
        for number, position in self.uses.get(identifier, ()):
            yield number, self.instructions[number], position

    def storage(self, pointer: int) -> int:
        """Return the storage class that a pointer points to, -1 where it is none."""
        made = self.types.get(self.type_of.get(pointer, -1))
        return made.operands[1] if made is not None and made.opcode == op.TYPE_POINTER else -1


def read_code(module: Module) -> Code:
    """Fill the tables of a module."""
    code = Code(module.instructions)
    function = block = 0
    for number, instruction in enumerate(module.instructions):
        opcode, operands = instruction.opcode, instruction.operands
        if op.TYPE_VOID <= opcode <= op.TYPE_PIPE:
            code.types[operands[0]] = instruction
        elif opcode == op.DECORATE:
            code.decorations[operands[0], operands[1]] = operands[2] if len(operands) > 2 else 0
        elif opcode in (op.CONSTANT_COMPOSITE, op.SPEC_CONSTANT_COMPOSITE):
            code.composites[operands[1]] = operands[2:]
        elif opcode == op.EXTENDED_INSTRUCTIONS and text(operands[1:])[0].startswith("NonSemantic."):
            code.without_meaning.add(operands[0])
        elif opcode == op.LABEL:
            block = operands[0]
        if opcode == op.FUNCTION:
            function = operands[1]
            code.functions[function] = number
        elif opcode == op.FUNCTION_PARAMETER:
            known = code.parameters.setdefault(function, [])
            code.parameter_of[operands[1]] = (function, len(known))
            known.append(operands[1])
        elif opcode == op.FUNCTION_CALL:
            code.calls.setdefault(operands[2], []).append(number)
        elif opcode == op.RETURN_VALUE:
            code.returned.setdefault(function, []).append(operands[0])
        if has_type(opcode):
            code.type_of[operands[1]] = operands[0]
            code.made[operands[1]] = number
            kind = code.types.get(operands[0])
            if opcode == op.CONSTANT and kind is not None and kind.opcode == op.TYPE_INT:
                # Those of 64 bits have another word: no buffer has so many elements.
                code.integers[operands[1]] = operands[2] if len(operands) == 3 else 2**32
        if function:
            code.block_of[number] = block
            for position in _identifiers(instruction, code.without_meaning):
                code.uses.setdefault(operands[position], []).append((number, position))
    return code


def _identifiers(instruction: Instruction, without_meaning: set[int]) -> Sequence[int]:
    """Return which operands are identifiers that the instruction uses, types and labels apart."""
    opcode, count = instruction.opcode, len(instruction.operands)
    if opcode in (*WITHOUT_EFFECT, op.FUNCTION, op.FUNCTION_PARAMETER, op.FUNCTION_END, op.LABEL):
        return ()
    if opcode in (op.SELECTION_MERGE, op.BRANCH, op.RETURN, op.UNREACHABLE):
        return ()
    if opcode == op.EXTENDED_INSTRUCTION:
        return () if instruction.operands[2] in without_meaning else range(4, count)
    if opcode in (op.BRANCH_CONDITIONAL, op.SWITCH, op.RETURN_VALUE):
        return (0,)
    if opcode == op.STORE:
        return (0, 1)
    if opcode in (op.LOAD, op.ARRAY_LENGTH, op.COMPOSITE_EXTRACT):
        return (2,)
    if opcode in (op.VECTOR_SHUFFLE, op.COMPOSITE_INSERT):
        return (2, 3)
    return range(3 if opcode in (op.VARIABLE, op.FUNCTION_CALL) else 2, count)


# ---- Which values of a SPIR-V module equal `gl_GlobalInvocationID.x` -------------------------------------


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
MAX_STEPS = 100


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
        if steps < MAX_STEPS:
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
    if number is None or steps > MAX_STEPS:
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


# Invocations of such a kernel are independent, so each may run the kernel several times in a row instead of
# repeating the whole dispatch. The proof knows few forms of kernels, and fails for all others:
#
# - Each storage buffer that is written is loaded from and stored to only at an index equal to
#   `gl_GlobalInvocationID.x` of one array in it, all other indices being constants. Workgroups are of one
#   invocation along y and z; dispatches have to be of one workgroup along these, which is up to the caller.
# - Instructions come from a list: no atomics, no barriers, nothing that shares values among invocations, no
#   writes to images, no memory but buffers, images and variables of functions, no loops (see `repeat`).
# - Pointers into buffers go nowhere but into access chains, loads and stores.
#
# An index equals `gl_GlobalInvocationID.x` where it is that value, or `gl_WorkGroupID.x *
# gl_WorkGroupSize.x + gl_LocalInvocationID.x`, copied, cast between signed and unsigned, passed through
# vectors, by value or by pointer to functions, or through variables of functions with exactly one store,
# which dominates the load (that is, every way to the load passes it).
#
# The module is taken to be valid: `read_valid_module` had it validated.


_FUNCTIONS = (op.FUNCTION, op.FUNCTION_PARAMETER, op.FUNCTION_END, op.FUNCTION_CALL)
_MEMORY = (op.VARIABLE, op.LOAD, op.STORE, *CHAINS, op.ARRAY_LENGTH)
_COMPOSITES = (
    *(op.VECTOR_EXTRACT_DYNAMIC, op.VECTOR_INSERT_DYNAMIC, op.VECTOR_SHUFFLE, op.COMPOSITE_CONSTRUCT),
    *(op.COMPOSITE_EXTRACT, op.COMPOSITE_INSERT, op.COPY_OBJECT, op.TRANSPOSE, op.BITCAST, op.COPY_LOGICAL),
)
_READS_OF_IMAGES = (
    *(op.SAMPLED_IMAGE, op.SAMPLE_EXPLICIT_LOD, op.SAMPLE_DREF_EXPLICIT_LOD, op.IMAGE_FETCH, op.IMAGE_GATHER),
    *(op.IMAGE_DREF_GATHER, op.IMAGE_READ, op.IMAGE),
    *(op.IMAGE_SIZE_OF_LEVEL, op.IMAGE_SIZE, op.IMAGE_LEVELS, op.IMAGE_SAMPLES),
)
_BRANCHES = (
    *(op.PHI, op.SELECTION_MERGE, op.LABEL, op.BRANCH, op.BRANCH_CONDITIONAL, op.SWITCH),
    *(op.RETURN, op.RETURN_VALUE, op.UNREACHABLE),
)
# Inside functions. Branches are no loops: these have OpLoopMerge.
_ALLOWED = frozenset(
    (
        *_FUNCTIONS,
        *WITHOUT_EFFECT,
        op.EXTENDED_INSTRUCTION,
        *_MEMORY,
        *_COMPOSITES,
        *_READS_OF_IMAGES,
        *_BRANCHES,
    )
).union(op.CONVERSIONS, op.ARITHMETIC, op.TESTS, op.LOGIC_AND_COMPARISONS, op.BIT_OPERATIONS)
# Arrays of blocks may be indexed dynamically: no buffer here is one.
_CAPABILITIES = frozenset(
    (
        Capability.MATRIX,
        Capability.SHADER,
        Capability.FLOAT16,
        Capability.FLOAT64,
        Capability.INT64,
        Capability.INT16,
        Capability.IMAGE_GATHER_EXTENDED,
        Capability.UNIFORM_BUFFER_ARRAY_DYNAMIC_INDEXING,
        Capability.SAMPLED_IMAGE_ARRAY_DYNAMIC_INDEXING,
        Capability.STORAGE_BUFFER_ARRAY_DYNAMIC_INDEXING,
        Capability.STORAGE_IMAGE_ARRAY_DYNAMIC_INDEXING,
        Capability.INT8,
        Capability.SAMPLED_1D,
        Capability.IMAGE_1D,
        Capability.SAMPLED_BUFFER,
        Capability.IMAGE_BUFFER,
        Capability.STORAGE_IMAGE_EXTENDED_FORMATS,
        Capability.IMAGE_QUERY,
        Capability.STORAGE_IMAGE_READ_WITHOUT_FORMAT,
        Capability.STORAGE_IMAGE_WRITE_WITHOUT_FORMAT,
        Capability.STORAGE_BUFFER_16_BIT_ACCESS,
        Capability.UNIFORM_AND_STORAGE_BUFFER_16_BIT_ACCESS,
        Capability.STORAGE_PUSH_CONSTANT_16,
        Capability.STORAGE_INPUT_OUTPUT_16,
        Capability.STORAGE_BUFFER_8_BIT_ACCESS,
        Capability.UNIFORM_AND_STORAGE_BUFFER_8_BIT_ACCESS,
        Capability.STORAGE_PUSH_CONSTANT_8,
        Capability.DENORM_PRESERVE,
        Capability.DENORM_FLUSH_TO_ZERO,
        Capability.SIGNED_ZERO_INF_NAN_PRESERVE,
        Capability.ROUNDING_MODE_RTE,
        Capability.ROUNDING_MODE_RTZ,
    )
)
# LocalSize, LocalSizeId; how floats are rounded.
_EXECUTION_MODES = parse_ranges("17 38 4459-4463")
_INSTRUCTION_SETS = ("GLSL.std.450", "NonSemantic.Shader.DebugInfo.100")
# UniformConstant, Input, Uniform, PushConstant, StorageBuffer; Function.
_STORAGE_CLASSES = (0, 1, 2, 9, 12)
_WORKGROUP_SIZE = 25
_LOCAL_SIZE, _LOCAL_SIZE_ID = 17, 38

_MAX_BLOCKS = 4000

_Path = tuple[int, ...]


class NoProof(Exception):
    """The proof failed; the message says why."""


@record
class Touched:
    """Which bindings of set 0 a kernel writes, and which it reads; those of buffers and of images."""

    written: frozenset[int]
    read: frozenset[int]


def prove_elementwise(module: Module, entry_point: str = "main") -> Touched | None:
    """Return which bindings a kernel accesses, or None without a proof that it works element by element.

    All resources have different bindings of set 0. The caller has to check that no buffer that is written is
    bound at another of these bindings.

    Raises
    ------
    ValueError
        The module has no such compute entry point, or its declarations make no sense.
    """
    interface = reflect(module, entry_point)
    places = [(resource.set, resource.binding) for resource in interface.resources]
    if any(resource.kind == "other" or resource.set for resource in interface.resources):
        return None
    if len(set(places)) < len(places):
        return None
    buffers = {r.binding for r in interface.resources if r.kind == "storage buffer"}
    try:
        _check_declarations(module)
        code = read_code(module)
        _check_workgroup(code)
        _check_functions(code)
        written, read = _find_touched(code, buffers)
    except (NoProof, KeyError, IndexError):
        return None
    return Touched(written, read | {binding for _, binding in places if binding not in buffers})


# -- the module as a whole


def _check_declarations(module: Module) -> None:
    if sum(1 for _ in module.of(op.ENTRY_POINT)) != 1:
        raise NoProof("several entry points")
    for instruction in module.instructions:
        opcode, operands = instruction.opcode, instruction.operands
        if opcode == op.CAPABILITY and operands[0] not in _CAPABILITIES:
            raise NoProof(f"capability {operands[0]}")
        # Logical addresses; the memory model before Vulkan's.
        if opcode == op.MEMORY_MODEL and (operands[0] != 0 or operands[1] > 1):
            raise NoProof("memory model")
        if opcode in (op.EXECUTION_MODE, op.EXECUTION_MODE_ID) and operands[1] not in _EXECUTION_MODES:
            raise NoProof(f"execution mode {operands[1]}")
        if opcode == op.EXTENDED_INSTRUCTIONS and text(operands[1:])[0] not in _INSTRUCTION_SETS:
            raise NoProof("instructions of an unknown set")
        if opcode in op.DECORATION_GROUPS:
            raise NoProof("groups of decorations")


def _check_workgroup(code: Code) -> None:
    """See to it that workgroups have one invocation along y and z, whatever constants are replaced."""
    sizes: Sequence[int] = ()
    for (identifier, decoration), value in code.decorations.items():
        if decoration == BUILT_IN and value == _WORKGROUP_SIZE:
            sizes = code.composites.get(identifier, ())
            break
    else:
        for instruction in code.instructions:
            if instruction.opcode not in (op.EXECUTION_MODE, op.EXECUTION_MODE_ID):
                continue
            _, mode, *operands = instruction.operands
            if mode == _LOCAL_SIZE and operands[1:] == [1, 1]:
                code.size_value = operands[0]
                return
            if mode == _LOCAL_SIZE_ID:
                sizes = operands
    if [code.integers.get(size) for size in sizes[1:]] != [1, 1]:
        raise NoProof("workgroup size")
    code.size = sizes[0]
    code.size_value = code.integers.get(sizes[0], -1)


def _check_functions(code: Code) -> None:
    """Refuse instructions and variables that are not known to be harmless."""
    inside = False
    block = 0
    leads_to: dict[int, set[int]] = {}
    for instruction in code.instructions:
        opcode, operands = instruction.opcode, instruction.operands
        inside = inside or opcode == op.FUNCTION
        if not inside:
            if opcode == op.VARIABLE and operands[2] not in _STORAGE_CLASSES:
                raise NoProof(f"a variable of storage class {operands[2]}")
            continue
        if opcode not in _ALLOWED:
            raise NoProof(f"instruction {opcode}")
        if opcode == op.STORE and code.storage(operands[0]) not in (FUNCTION_STORAGE, 2, 12):
            raise NoProof("a store to what is no buffer")
        if opcode == op.LABEL:
            block = operands[0]
            leads_to[block] = set()
        leads_to.get(block, set()).update(_targets(code, instruction))
    _find_dominators(code, leads_to)


def _find_dominators(code: Code, leads_to: dict[int, set[int]]) -> None:
    """Note which blocks dominate which; refuse loops. Blocks are taken after all those that lead to them."""
    if len(leads_to) > _MAX_BLOCKS:
        raise NoProof("too long")
    comes_from = dict.fromkeys(leads_to, 0)
    for targets in leads_to.values():
        for target in targets:
            comes_from[target] += 1
    ready = [block for block, count in comes_from.items() if not count]
    before: dict[int, int] = dict.fromkeys(ready, 0)
    while ready:
        block = ready.pop()
        code.bits[block] = 1 << len(code.bits)
        code.dominators[block] = before[block] | code.bits[block]
        for target in leads_to[block]:
            before[target] = before.get(target, -1) & code.dominators[block]
            comes_from[target] -= 1
            if not comes_from[target]:
                ready.append(target)
    if len(code.bits) < len(leads_to):
        raise NoProof("a loop")


def _targets(code: Code, instruction: Instruction) -> Sequence[int]:
    """Return the blocks that a branch leads to."""
    opcode, operands = instruction.opcode, instruction.operands
    if opcode == op.BRANCH:
        return operands[:1]
    if opcode == op.BRANCH_CONDITIONAL:
        return operands[1:3]
    if opcode == op.SWITCH:
        selector = code.types[code.type_of[operands[0]]]
        if selector.operands[1] > 32:
            raise NoProof("a switch over 64 bits")
        return [operands[1], *operands[3::2]]
    return ()


# -- what is done to buffers


def _find_touched(code: Code, bindings: set[int]) -> tuple[frozenset[int], frozenset[int]]:
    """Return the bindings of the buffers that are written, and that are read."""
    written, read = set(), set()
    for instruction in code.instructions:
        if instruction.opcode != op.VARIABLE or instruction.operands[2] not in (2, 12):
            continue
        variable = instruction.operands[1]
        binding = code.decorations[variable, BINDING]
        loads: set[_Path] = set()
        stores: set[_Path] = set()
        _follow(code, variable, (), loads, stores)
        if loads:
            read.add(binding)
        if not stores:
            continue
        if binding not in bindings:
            raise NoProof("a store to what is no storage buffer")
        written.add(binding)
        block = code.types[code.types[instruction.operands[0]].operands[2]]
        arrays = {_array(code, block, path) for path in loads | stores}
        if len(arrays) > 1:
            raise NoProof("several arrays in one buffer")
    return frozenset(written), frozenset(read)


def _follow(code: Code, pointer: int, path: _Path, loads: set[_Path], stores: set[_Path]) -> None:
    """Note where in a buffer it is loaded from and stored to through this pointer."""
    if len(path) > MAX_STEPS:
        raise NoProof("too long")
    for _, instruction, position in code.users(pointer):
        opcode, operands = instruction.opcode, instruction.operands
        if opcode in CHAINS and position == 2:
            if len(operands) == 3:
                raise NoProof("an access chain without an index")
            indices = tuple(_index(code, index) for index in operands[3:])
            _follow(code, operands[1], path + indices, loads, stores)
        elif opcode == op.LOAD:
            loads.add(path)
        elif opcode == op.STORE and position == 0:
            stores.add(path)
        elif opcode != op.ARRAY_LENGTH:
            raise NoProof("a pointer into a buffer that goes elsewhere")


def _index(code: Code, identifier: int) -> int:
    if identifier in code.integers:
        return code.integers[identifier]
    is_own = count_integers(code, identifier) == 1 and find_known(code, identifier) == {0: OWN}
    return OWN if is_own else UNKNOWN


def _array(code: Code, block: Instruction, path: _Path) -> _Path:
    """Return which array of a buffer a path leads into, at the invocation's own element and within it."""
    if UNKNOWN in path or path.count(OWN) != 1:
        raise NoProof("an element that may be another invocation's")
    kind = block
    for index in path:
        if kind.opcode == op.TYPE_STRUCT:
            members = kind.operands[1:]
            if not 0 <= index < len(members):
                raise NoProof("a member that is not there")
            kind = code.types[members[index]]
            continue
        if kind.opcode in (op.TYPE_VECTOR, op.TYPE_MATRIX):
            length = kind.operands[2]
        elif kind.opcode == op.TYPE_ARRAY:
            length = code.integers.get(kind.operands[2], 0)
        elif kind.opcode == op.TYPE_RUNTIME_ARRAY and index == OWN:
            length = 0
        else:
            raise NoProof("an index into what has no elements")
        arrays = (op.TYPE_ARRAY, op.TYPE_RUNTIME_ARRAY)
        if kind.opcode not in arrays if index == OWN else not 0 <= index < length:
            raise NoProof("an index that may lead out of an element")
        kind = code.types[kind.operands[1]]
    return path[: path.index(OWN)]
