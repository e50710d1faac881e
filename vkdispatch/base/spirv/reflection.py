"""What a SPIR-V compute shader declares: entry point, bindings, push constants, constants, workgroup."""

import struct
from collections.abc import Mapping, Sequence

from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import field, record, replace
from vkdispatch.base.spirv import opcodes as op
from vkdispatch.base.spirv.interface import Interface, Resource, SpecConstant, Type, Value
from vkdispatch.base.spirv.module import GL_COMPUTE, Instruction, Module, text

_STORAGE_UNIFORM_CONSTANT, _STORAGE_UNIFORM, _STORAGE_WORKGROUP = 0, 2, 4
_STORAGE_PUSH_CONSTANT, _STORAGE_BUFFER = 9, 12
_SPEC_ID, _BLOCK, _BUFFER_BLOCK, _ROW_MAJOR, _ARRAY_STRIDE, _MATRIX_STRIDE, _BUILT_IN = 1, 2, 3, 4, 6, 7, 11
_NON_WRITABLE, _NON_READABLE, _BINDING, _DESCRIPTOR_SET, _OFFSET = 24, 25, 33, 34, 35
_LOCAL_SIZE, _LOCAL_SIZE_ID = 17, 38
_WORKGROUP_SIZE = 25
_STORAGE_IMAGE = 2
_THREE_AXES, _OF_BUFFER, _SUBPASS = 2, 5, 6  # dimensions of images


def reflect(
    module: Module,
    entry_point: str = "main",
    specialization: Mapping[int, Value] | None = None,
    argument: str = "spirv",
) -> Interface:
    """Return what a module declares, given values of specialization constants by id.

    Raises
    ------
    ValueError
        The module has no such compute entry point, or one of its declarations makes no sense.
    """
    return _Reader(module, specialization or {}, argument).interface(entry_point)


@record(eq=False, frozen=False)
class _Decorations:
    """Of one identifier: decoration -> (operands, word of the first operand); the same per member."""

    own: dict[int, tuple[Sequence[int], int]] = field(factory=dict)
    members: dict[int, dict[int, Sequence[int]]] = field(factory=dict)


class _Reader:
    """Tables over a module's declarations, filled in one pass."""

    def __init__(self, module: Module, specialization: Mapping[int, Value], argument: str) -> None:
        self.module = module
        self.argument = argument
        self.specialization = specialization
        self.names: dict[int, str] = {}
        self.member_names: dict[tuple[int, int], str] = {}
        self.decorations: dict[int, _Decorations] = {}
        self.types: dict[int, Type] = {}
        self.signed: set[int] = set()
        self.pointers: dict[int, int] = {}
        self.structs: dict[int, Instruction] = {}
        # Of images: dimension, whether it has layers, whether it is multisampled, how it is used.
        self.images: dict[int, tuple[int, bool, bool, int]] = {}
        self.samplers: set[int] = set()
        self.combined: dict[int, int] = {}
        self.elements: dict[int, int] = {}
        self.constants: dict[int, Value] = {}
        self.composites: dict[int, Sequence[int]] = {}
        self.spec_constants: dict[int, SpecConstant] = {}
        self.spec_ids: dict[int, int] = {}
        self.variables: list[tuple[int, int, int]] = []
        for instruction in module.instructions:
            self._note(instruction)

    def refuse(self, what: str) -> ArgumentValueError:
        return ArgumentValueError(f"{self.argument}: {what}")

    # -- the one pass

    def _note(self, instruction: Instruction) -> None:
        opcode, operands = instruction.opcode, instruction.operands
        try:
            if opcode == op.NAME:
                self.names[operands[0]] = text(operands[1:])[0]
            elif opcode == op.MEMBER_NAME:
                self.member_names[operands[0], operands[1]] = text(operands[2:])[0]
            elif opcode == op.DECORATE:
                entry = self.decorations.setdefault(operands[0], _Decorations())
                entry.own[operands[1]] = (operands[2:], instruction.at + 3)
            elif opcode == op.MEMBER_DECORATE:
                entry = self.decorations.setdefault(operands[0], _Decorations())
                entry.members.setdefault(operands[1], {})[operands[2]] = operands[3:]
            elif op.TYPE_VOID <= opcode <= op.TYPE_PIPE:
                self._note_type(opcode, operands)
            elif op.CONSTANT_TRUE <= opcode <= op.SPEC_CONSTANT_OP:
                self._note_constant(opcode, operands)
            elif opcode == op.VARIABLE and operands[2] != 7:  # of a function
                self.variables.append((operands[1], operands[0], operands[2]))
        except (IndexError, KeyError):
            raise self.refuse(
                f"malformed SPIR-V: instruction {opcode} at word {instruction.at} makes no sense"
            ) from None

    def _find_decoration(self, identifier: int, decoration: int) -> int | None:
        """Return the first operand of a decoration, 0 if it has none; None where it is not there."""
        entry = self.decorations.get(identifier)
        found = entry.own.get(decoration) if entry else None
        return None if found is None else (found[0][0] if found[0] else 0)

    def _note_type(self, opcode: int, operands: Sequence[int]) -> None:
        result, *rest = operands
        if opcode == op.TYPE_BOOL:
            made = Type("bool", 32)
        elif opcode in (op.TYPE_INT, op.TYPE_FLOAT):
            if rest[0] not in (8, 16, 32, 64):
                raise self.refuse(f"malformed SPIR-V: a type of {rest[0]} bits")
            signed = opcode == op.TYPE_INT and bool(rest[1])
            made = Type("int" if opcode == op.TYPE_INT else "float", rest[0], signed=signed)
            if opcode == op.TYPE_INT and rest[1]:
                self.signed.add(result)
        elif opcode == op.TYPE_VECTOR:
            made = Type("vector", count=rest[1], element=self.types[rest[0]])
        elif opcode == op.TYPE_MATRIX:
            made = Type("matrix", count=rest[1], element=self.types[rest[0]])
        elif opcode in (op.TYPE_ARRAY, op.TYPE_RUNTIME_ARRAY):
            stride = self._find_decoration(result, _ARRAY_STRIDE) or 0
            count = int(self.constants.get(rest[1], 0)) if opcode == op.TYPE_ARRAY else 0
            made = Type("array", count=count, element=self.types[rest[0]], stride=stride)
            self.elements[result] = rest[0]
        elif opcode == op.TYPE_STRUCT:
            made = self._struct(result, rest)
        elif opcode in (op.TYPE_IMAGE, op.TYPE_SAMPLED_IMAGE, op.TYPE_SAMPLER):
            made = Type("image")
            if opcode == op.TYPE_IMAGE:
                self.images[result] = (rest[1], bool(rest[3]), bool(rest[4]), rest[5])
            elif opcode == op.TYPE_SAMPLED_IMAGE:
                self.combined[result] = rest[0]
            else:
                self.samplers.add(result)
        elif opcode == op.TYPE_POINTER:
            made = Type("pointer", 64)
            self.pointers[result] = rest[1]
        else:
            made = Type("other")
        self.types[result] = made

    def _struct(self, identifier: int, members: Sequence[int]) -> Type:
        entry = self.decorations.get(identifier, _Decorations())
        made = []
        # Shared memory has no layout: its size is that of the members one after another, at least.
        laid_out = any(_OFFSET in decorations for decorations in entry.members.values())
        end = 0
        for index, member in enumerate(members):
            decorations = entry.members.get(index, {})
            if member not in self.types:  # a pointer that was declared in advance
                raise self.refuse(
                    "it has pointers in a block (buffer_reference), which are not supported: "
                    "bind the buffers themselves"
                )
            kind = self.types[member]
            if _MATRIX_STRIDE in decorations:
                kind = _with_strides(kind, decorations[_MATRIX_STRIDE][0], _ROW_MAJOR in decorations)
            offset = decorations[_OFFSET][0] if _OFFSET in decorations else 0 if laid_out else end
            end = offset + kind.size
            made.append((self.member_names.get((identifier, index), ""), offset, kind))
        every = [entry.members.get(index, {}) for index in range(len(members))]
        return Type(
            "struct",
            members=tuple(made),
            read_only=bool(every) and all(_NON_WRITABLE in decorations for decorations in every),
            write_only=bool(every) and all(_NON_READABLE in decorations for decorations in every),
            name=self.names.get(identifier, ""),
        )

    def _note_constant(self, opcode: int, operands: Sequence[int]) -> None:
        kind, result, *rest = operands
        if opcode in (op.CONSTANT_COMPOSITE, op.SPEC_CONSTANT_COMPOSITE):
            self.composites[result] = rest
            return
        if opcode == op.SPEC_CONSTANT_OP:
            value = self._compute(rest)
            if value is not None:
                self.constants[result] = value
            return
        value = self._literal(opcode, kind, rest)
        if value is None:
            return
        number = self._find_decoration(result, _SPEC_ID)
        if number is not None and opcode >= op.SPEC_CONSTANT_TRUE:
            made = self.types[kind]
            name = self.names.get(result, "")
            constant = SpecConstant(number, name, made.kind, made.width, kind in self.signed, value)
            self.spec_constants[number] = constant
            self.spec_ids[result] = number
            value = self.specialization.get(number, value)
        self.constants[result] = value

    def _literal(self, opcode: int, kind: int, words: Sequence[int]) -> Value | None:
        if opcode in (op.CONSTANT_TRUE, op.SPEC_CONSTANT_TRUE):
            return True
        if opcode in (op.CONSTANT_FALSE, op.SPEC_CONSTANT_FALSE):
            return False
        made = self.types[kind]
        if opcode not in (op.CONSTANT, op.SPEC_CONSTANT) or made.kind not in ("int", "float"):
            return None
        data = b"".join(word.to_bytes(4, "little") for word in words)[: made.width // 8]
        if len(data) < made.width // 8:
            raise IndexError
        if made.kind == "float":
            formats = {16: "<e", 32: "<f", 64: "<d"}
            number: float = struct.unpack(formats[made.width], data)[0]
            return number
        return int.from_bytes(data, "little", signed=kind in self.signed)

    def _compute(self, operands: Sequence[int]) -> Value | None:
        """Return the value of an operation on integer constants, for sizes that are computed from others."""
        values = [self.constants.get(word) for word in operands[1:3]]
        match operands[0], values:
            case (128, [int(a), int(b)]):
                return a + b
            case (130, [int(a), int(b)]):
                return a - b
            case (132, [int(a), int(b)]):
                return a * b
            case (134 | 135, [int(a), int(b)]) if a >= 0 and b > 0:
                return a // b
            case (137 | 138 | 139, [int(a), int(b)]) if a >= 0 and b > 0:
                return a % b
            case (194 | 195, [int(a), int(b)]) if a >= 0 and 0 <= b < 64:
                return a >> b
            case (196, [int(a), int(b)]) if a >= 0 and 0 <= b < 32:
                return (a << b) & 0xFFFFFFFF
        return None

    # -- the outcome

    def interface(self, entry_point: str) -> Interface:
        function = self._entry(entry_point)
        local_size, ids = self._local_size(function)
        push_constants: Type | None = None
        push_name = ""
        resources = []
        shared = 0
        for variable, pointer, storage in self.variables:
            pointee = self.pointers.get(pointer)
            if pointee is None or pointee not in self.types:
                raise self.refuse(f"malformed SPIR-V: variable {variable} is of no pointer type")
            kind = self.types[pointee]
            if storage == _STORAGE_PUSH_CONSTANT:
                push_constants, push_name = kind, self.names.get(variable, "")
            elif storage == _STORAGE_WORKGROUP:
                shared += kind.size
            elif storage in (_STORAGE_UNIFORM_CONSTANT, _STORAGE_UNIFORM, _STORAGE_BUFFER):
                resources.append(self._resource(variable, storage, pointee, kind))
        resources.sort(key=lambda resource: (resource.set, resource.binding))
        return Interface(
            entry_point,
            local_size,
            ids,
            tuple(resources),
            push_constants,
            self.spec_constants,
            shared,
            frozenset(word for instruction in self.module.of(op.CAPABILITY) for word in instruction.operands),
            push_name,
            self.module.version,
        )

    def _entry(self, entry_point: str) -> int:
        functions = {instruction.operands[1] for instruction in self.module.of(op.FUNCTION)}
        found = []
        for instruction in self.module.of(op.ENTRY_POINT):
            if len(instruction.operands) < 3:
                raise self.refuse("malformed SPIR-V: an entry point without a name")
            model, function, *rest = instruction.operands
            name = text(rest)[0]
            if model == GL_COMPUTE:
                found.append(name)
            if name == entry_point and model == GL_COMPUTE:
                if function not in functions:
                    raise self.refuse(f"malformed SPIR-V: the entry point {name!r} is no function")
                return function
        raise self.refuse(
            f"it has no compute entry point {entry_point!r}; it has {', '.join(map(repr, found)) or 'none'}"
        )

    def _local_size(
        self, function: int
    ) -> tuple[tuple[int, int, int] | None, tuple[int | None, int | None, int | None]]:
        # A constant that is the built-in WorkgroupSize goes before the execution mode.
        for identifier in self.decorations:
            if (
                self._find_decoration(identifier, _BUILT_IN) == _WORKGROUP_SIZE
                and identifier in self.composites
            ):
                return self._sizes(self.composites[identifier])
        for instruction in self.module.of(op.EXECUTION_MODE, op.EXECUTION_MODE_ID):
            if len(instruction.operands) < 5 or instruction.operands[0] != function:
                continue
            if instruction.operands[1] == _LOCAL_SIZE:
                x, y, z = instruction.operands[2:5]
                if min(x, y, z) < 1:
                    raise self.refuse(f"a workgroup of {(x, y, z)} invocations")
                return (x, y, z), (None, None, None)
            if instruction.operands[1] == _LOCAL_SIZE_ID:
                return self._sizes(instruction.operands[2:5])
        raise self.refuse("malformed SPIR-V: the entry point has no workgroup size")

    def _sizes(
        self, identifiers: Sequence[int]
    ) -> tuple[tuple[int, int, int] | None, tuple[int | None, int | None, int | None]]:
        if len(identifiers) != 3:
            raise self.refuse("malformed SPIR-V: a workgroup size has three components")
        values = [self.constants.get(identifier) for identifier in identifiers]
        x, y, z = (self.spec_ids.get(identifier) for identifier in identifiers)
        match values:
            case [int(a), int(b), int(c)]:
                if min(a, b, c) < 1:
                    raise self.refuse(f"a workgroup of {(a, b, c)} invocations")
                return (a, b, c), (x, y, z)
        return None, (x, y, z)

    def _resource(self, variable: int, storage: int, pointee: int, kind: Type) -> Resource:
        entry = self.decorations.get(variable, _Decorations())
        if _BINDING not in entry.own or not entry.own[_BINDING][0]:
            name = self.names.get(variable) or variable
            raise self.refuse(f"{name} is bound nowhere: it has no Binding")
        (number, *_), binding_at = entry.own[_BINDING]
        in_set, set_at = entry.own.get(_DESCRIPTOR_SET, ((0,), -1))
        what, readable, writable = self._what(storage, pointee, kind)
        axes, layered, *_ = self.images.get(self.combined.get(pointee, pointee), (-1, False))
        return Resource(
            in_set[0] if in_set else 0,
            number,
            what,
            self.names.get(variable, "") or self.names.get(pointee, ""),
            kind,
            readable and _NON_READABLE not in entry.own,
            writable and _NON_WRITABLE not in entry.own,
            set_at,
            binding_at,
            axes + 1,
            layered,
        )

    def _what(self, storage: int, pointee: int, kind: Type) -> tuple[str, bool, bool]:
        """Return the kind of a resource, and whether its type lets it be read and written."""
        if kind.kind == "array":
            element = self.elements[pointee]
            return f"array of {self._what(storage, element, self.types[element])[0]}s", True, True
        if storage == _STORAGE_UNIFORM_CONSTANT:
            return self._what_image(pointee), True, self.images.get(pointee, (0,))[-1] == _STORAGE_IMAGE
        buffer = storage == _STORAGE_BUFFER or self._find_decoration(pointee, _BUFFER_BLOCK) is not None
        if kind.kind != "struct":
            return "other resource", True, True
        if not buffer:
            return "uniform buffer", True, False
        return "storage buffer", not kind.write_only, not kind.read_only

    def _what_image(self, pointee: int) -> str:
        if pointee in self.samplers:
            return "sampler without a texture"
        image = self.images.get(self.combined.get(pointee, pointee))
        if image is None:
            return "other resource"
        dimension, _, multisampled, use = image
        if dimension == _OF_BUFFER:
            return "texel buffer"
        if dimension == _SUBPASS:
            return "subpass input"
        if multisampled or dimension > _THREE_AXES:
            return "multisampled image" if multisampled else "cube or rectangle image"
        if pointee in self.combined:
            return "sampled image"
        return "storage image" if use == _STORAGE_IMAGE else "texture without a sampler"


def _with_strides(kind: Type, stride: int, row_major: bool) -> Type:
    """Return a type with the matrices in it laid out: those of an array too."""
    if kind.kind == "matrix":
        return replace(kind, stride=stride, row_major=row_major)
    if kind.kind == "array" and kind.element is not None:
        return replace(kind, element=_with_strides(kind.element, stride, row_major))
    return kind


def rebind(module: Module, places: Mapping[tuple[int, int], int], interface: Interface) -> bytes:
    """Return the module with its resources moved to set 0 and to other bindings.

    Parameters
    ----------
    places
        The new binding of each (set, binding).
    """
    words = module.words.copy()
    for resource in interface.resources:
        words[resource.binding_at] = places[resource.set, resource.binding]
        if resource.set_at >= 0:
            words[resource.set_at] = 0
    return words.tobytes()
