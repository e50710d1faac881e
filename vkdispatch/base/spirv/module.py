"""Parsing of SPIR-V modules into instructions, whose operands are listed here."""

from collections.abc import Iterator, Sequence

import numpy as np

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.base.spirv import opcodes as op
from vkdispatch.base.spirv.opcodes import parse_ranges

# ---- Parsing of SPIR-V modules into instructions; malformed modules raise ValueError ---------------------
#
# Drivers trust SPIR-V code, and crash if it is invalid. Checked here are the header and the lengths of
# instructions, and below, what drivers cannot take. SPIRV-Tools checks all other rules (`base.validation`).


MAGIC = 0x07230203
_HEADER_WORDS = 5
NEWEST = (1, 6)  # of Vulkan 1.3, which contexts ask for; `check_features` compares devices with it
_MAX_BOUND = 1 << 22

GL_COMPUTE = 5
_TYPES = parse_ranges("19-38")
_RESULT_ONLY = _TYPES | {7, 11, 73, op.LABEL}
_NO_RESULT = parse_ranges(
    "0 2-6 8 10 14-17 39 56 62-64 71 72 74 75 99 218-225 228 246 247 249-257 317 319 330-332"
)
# From here on come extensions, whose forms this module does not know.
_LAST_KNOWN = 403


@record
class Instruction:
    """An instruction: its opcode, the words after the first, and where in the module it starts."""

    opcode: int
    operands: Sequence[int]
    at: int


def has_type(opcode: int) -> bool:
    """Whether an instruction's first two operands are the type and the identifier of its result."""
    return opcode <= _LAST_KNOWN and opcode not in _NO_RESULT and opcode not in _RESULT_ONLY


@record
class Module:
    """A module. Its instructions have the lengths that they say; all else is known once it is validated."""

    words: "np.ndarray[tuple[int], np.dtype[np.uint32]]"
    version: tuple[int, int]
    instructions: tuple[Instruction, ...]

    def of(self, *opcodes: int) -> Iterator[Instruction]:
        """Return the instructions that have one of these opcodes."""
        return (instruction for instruction in self.instructions if instruction.opcode in opcodes)


def read_module(code: object, argument: str = "spirv") -> Module:
    """Take a module apart. `vkdispatch.base.validation` also validates it.

    Parameters
    ----------
    code
        The module, in either byte order.
    argument
        How messages call it.

    Raises
    ------
    TypeError
        `code` is no bytes.
    ValueError
        It is no SPIR-V, of a version that is newer than 1.6, or malformed.
    """
    words = _words(code, argument)
    version = (int(words[1]) >> 16 & 0xFF, int(words[1]) >> 8 & 0xFF)
    if int(words[1]) & 0xFF0000FF or not (1, 0) <= version <= (2, 0):
        raise ArgumentValueError(f"{argument}: {int(words[1]):#010x} is no version of SPIR-V")
    if version > NEWEST:
        raise ArgumentValueError(
            f"{argument}: SPIR-V {version[0]}.{version[1]} is newer than 1.6, which Vulkan 1.3 takes; "
            "compile it with --target-env=vulkan1.3"
        )
    bound = int(words[3])
    if not 0 < bound <= _MAX_BOUND or words[4] != 0:
        raise ArgumentValueError(f"{argument}: malformed SPIR-V: its header says {bound} identifiers")
    return Module(words, version, tuple(_instructions(words, argument)))


def _words(code: object, argument: str) -> "np.ndarray[tuple[int], np.dtype[np.uint32]]":
    if isinstance(code, np.ndarray):
        code = np.ascontiguousarray(code).tobytes()
    if not isinstance(code, (bytes, bytearray, memoryview)):
        raise ArgumentTypeError(
            f"{argument}: expected the bytes of a SPIR-V module, got {type(code).__name__}"
        )
    data = bytes(code)
    if len(data) < 4 * _HEADER_WORDS or len(data) % 4:
        raise ArgumentValueError(f"{argument}: {len(data)} bytes are no SPIR-V module")
    words = np.frombuffer(data, "<u4").astype(np.uint32)
    if words[0] == int.from_bytes(MAGIC.to_bytes(4, "little"), "big"):
        words = words.byteswap()
    if words[0] != MAGIC:
        raise ArgumentValueError(
            f"{argument}: no SPIR-V module: it starts with {data[:4]!r}, not {MAGIC.to_bytes(4, 'little')!r}"
        )
    return words


def _instructions(
    words: "np.ndarray[tuple[int], np.dtype[np.uint32]]", argument: str
) -> Iterator[Instruction]:
    at, plain = _HEADER_WORDS, words.tolist()
    while at < len(plain):
        length, opcode = plain[at] >> 16, plain[at] & 0xFFFF
        if length == 0 or at + length > len(plain):
            raise ArgumentValueError(
                f"{argument}: malformed SPIR-V: instruction {opcode} at word {at} says {length} words, "
                f"{len(plain) - at} are left"
            )
        yield Instruction(opcode, plain[at + 1 : at + length], at)
        at += length


def text(operands: Sequence[int]) -> tuple[str, int]:
    """Return the text that starts with the first of these words, and how many words it takes."""
    data = np.asarray(operands, np.uint32).tobytes()
    end = data.find(b"\0")
    if end < 0:
        return data.decode("utf-8", "replace"), len(operands)
    return data[:end].decode("utf-8", "replace"), end // 4 + 1


# ---- What is valid, but more than drivers take --------------------------------------------------------


_COMPOSITES = (op.TYPE_ARRAY, op.TYPE_RUNTIME_ARRAY, op.TYPE_STRUCT)
_DEEPEST, _MAX_MEMBERS = 255, 16383  # limits that SPIR-V allows for
_MAX_INSTRUCTIONS = 1 << 22  # of a function with all that it calls, which drivers inline
_MAX_BYTES = 1 << 26  # of a variable that is not in a buffer
_MAX_OFFSET = 1 << 31  # bytes: an offset or a stride
_INPUT, _WORKGROUP, _PRIVATE, _FUNCTION = 1, 4, 6, 7
_ARRAY_STRIDE, _MATRIX_STRIDE, _BUILT_IN, _OFFSET = 6, 7, 11, 35


class Limits:
    """Checks of a module against what drivers cannot take although SPIR-V allows it."""

    def __init__(self, module: Module, argument: str) -> None:
        self.module, self.argument = module, argument
        self.types: dict[int, Instruction] = {}
        self.type_of: dict[int, int] = {}
        self.integers: dict[int, int] = {}
        self.sizes: dict[int, int] = {}

    def _require(self, instruction: Instruction, condition: bool, what: str) -> None:
        if not condition:
            raise ArgumentValueError(
                f"{self.argument}: malformed SPIR-V: instruction {instruction.opcode} at word "
                f"{instruction.at} {what}"
            )

    def check_nesting(self) -> None:
        """Refuse types that are nested deeper, or have more members in all, than any compiler is made for."""
        extents: dict[int, tuple[int, int]] = {}  # depth, members
        for instruction in self.module.of(*_COMPOSITES):
            result, *parts = instruction.operands or (0,)
            if instruction.opcode != op.TYPE_STRUCT:
                parts = parts[:1]
            known = [extents.get(part, (0, 1)) for part in parts]
            depth = 1 + max((part[0] for part in known), default=0)
            members = sum(part[1] for part in known)
            fits = depth <= _DEEPEST and members <= _MAX_MEMBERS
            self._require(instruction, fits, f"has {members} members in all, nested {depth} deep")
            extents[result] = depth, members

    def check(self) -> None:
        """Check a valid module."""
        for instruction in self.module.instructions:
            opcode, operands = instruction.opcode, instruction.operands
            if opcode in _TYPES:
                self.types[operands[0]] = instruction
                self.sizes[operands[0]] = self._measure(instruction)
            elif has_type(opcode):
                self.type_of[operands[1]] = operands[0]
            if opcode == op.CONSTANT:
                self.integers[operands[1]] = operands[2]
            elif opcode == op.VARIABLE and operands[2] in (_WORKGROUP, _PRIVATE, _FUNCTION):
                size = self.sizes.get(self.types[operands[0]].operands[2], 0)
                self._require(instruction, size <= _MAX_BYTES, f"is a variable of {size} bytes")
            elif opcode in (op.ACCESS_CHAIN, op.IN_BOUNDS_ACCESS_CHAIN):
                self._check_indices(instruction)
            elif opcode in (op.DECORATE, op.MEMBER_DECORATE):
                decoration, *literals = operands[1 if opcode == op.DECORATE else 2 :]
                near = decoration not in (_ARRAY_STRIDE, _MATRIX_STRIDE, _OFFSET) or literals[0] < _MAX_OFFSET
                self._require(instruction, near, f"has an offset or stride of {literals[:1]} bytes")
        self._check_inputs()
        self._check_calls()

    def _measure(self, made: Instruction) -> int:
        """Return the bytes of a type, about."""
        operands = made.operands
        if made.opcode in (op.TYPE_INT, op.TYPE_FLOAT):
            return operands[1] // 8
        if made.opcode in (op.TYPE_VECTOR, op.TYPE_MATRIX):
            return operands[2] * self.sizes.get(operands[1], 0)
        if made.opcode == op.TYPE_ARRAY:
            return self.integers.get(operands[2], 1) * self.sizes.get(operands[1], 0)
        if made.opcode == op.TYPE_STRUCT:
            return sum(self.sizes.get(member, 0) for member in operands[1:])
        return 4

    def _check_indices(self, instruction: Instruction) -> None:
        pointer = self.types.get(self.type_of.get(instruction.operands[2], 0))
        kind = pointer.operands[2] if pointer is not None else 0
        for index in instruction.operands[3:]:
            made = self.types.get(kind)
            if made is None:
                return  # of an extension
            number = self.integers.get(index, 0)
            if made.opcode == op.TYPE_STRUCT:
                kind = made.operands[1 + number]
                continue
            if made.opcode == op.TYPE_ARRAY:
                inside = number < self.integers.get(made.operands[2], 1 << 32)
                self._require(instruction, inside, "has an index beyond the end")
            kind = made.operands[1]

    def _check_inputs(self) -> None:
        """Refuse inputs that are not built in, and what is built in and no input."""
        if any(entry.operands[0] != GL_COMPUTE for entry in self.module.of(op.ENTRY_POINT)):
            return
        built_in = {
            decoration.operands[0]
            for decoration in self.module.of(op.DECORATE)
            if decoration.operands[1] == _BUILT_IN
        }
        for variable in self.module.of(op.VARIABLE):
            if variable.operands[2] == _INPUT:
                self._require(
                    variable, variable.operands[1] in built_in, "is an input without a BuiltIn decoration"
                )
            else:
                self._require(variable, variable.operands[1] not in built_in, "is built in and no input")

    def _check_calls(self) -> None:
        """Refuse functions that call themselves, or are endless with each call replaced by what it calls."""
        calls: dict[int, list[Instruction]] = {}
        lengths: dict[int, int] = {}
        functions = list(self.module.of(op.FUNCTION))
        function = 0
        for instruction in self.module.instructions:
            if instruction.opcode == op.FUNCTION:
                function = instruction.operands[1]
                calls[function], lengths[function] = [], 0
            elif function:
                lengths[function] += 1
                if instruction.opcode == op.FUNCTION_CALL:
                    calls[function].append(instruction)
        whole: dict[int, int] = {}
        for begin in functions:
            # A function is done once all that it calls is.
            stack = [(begin.operands[1], iter(calls[begin.operands[1]]))]
            begun = {begin.operands[1]}
            while stack:
                identifier, remaining = stack[-1]
                call = next(remaining, None)
                if call is None:
                    stack.pop()
                    begun.discard(identifier)
                    whole[identifier] = lengths[identifier] + sum(
                        whole[called.operands[2]] for called in calls[identifier]
                    )
                    self._require(
                        begin,
                        whole[identifier] <= _MAX_INSTRUCTIONS,
                        f"begins a function of {whole[identifier]} instructions, with its calls",
                    )
                    continue
                called = call.operands[2]
                self._require(call, called not in begun, "calls a function that is under way")
                if called not in whole:
                    stack.append((called, iter(calls[called])))
                    begun.add(called)
