"""Proof that a SPIR-V kernel works element by element: no invocation reads what another one writes.

Invocations of such a kernel are independent, so each may run the kernel several times in a row instead of
repeating the whole dispatch. The proof knows few forms of kernels, and fails for all others:

- Each storage buffer that is written is loaded from and stored to only at an index equal to
  `gl_GlobalInvocationID.x` of one array in it, all other indices being constants. Workgroups are of one
  invocation along y and z; dispatches have to be of one workgroup along these, which is up to the caller.
- Instructions come from a list: no atomics, no barriers, nothing that shares values among invocations, no
  writes to images, no memory but buffers, images and variables of functions, no loops (see `spirv_repeat`).
- Pointers into buffers go nowhere but into access chains, loads and stores.

An index equals `gl_GlobalInvocationID.x` where it is that value, or `gl_WorkGroupID.x * gl_WorkGroupSize.x +
gl_LocalInvocationID.x`, copied, cast between signed and unsigned, passed through vectors, by value or by
pointer to functions, or through variables of functions with exactly one store, which dominates the load (that
is, every way to the load passes it).

The module is taken to be valid: it passed `read_module` here, and `spirv-val` there.
"""

from collections.abc import Sequence

from vkdispatch.base.record import record
from vkdispatch.base.spirv import opcodes as op
from vkdispatch.base.spirv.capabilities import Capability
from vkdispatch.base.spirv.elementwise.code import (
    BINDING,
    BUILT_IN,
    CHAINS,
    FUNCTION_STORAGE,
    WITHOUT_EFFECT,
    Code,
    read_code,
)
from vkdispatch.base.spirv.elementwise.own_index import MOST_STEPS, OWN, UNKNOWN, count_integers, find_known
from vkdispatch.base.spirv.module import Instruction, Module, text
from vkdispatch.base.spirv.opcodes import parse_ranges
from vkdispatch.base.spirv.reflection import reflect

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

_MOST_BLOCKS = 4000

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
    if len(leads_to) > _MOST_BLOCKS:
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
    if len(path) > MOST_STEPS:
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
