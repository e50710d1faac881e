"""Buffers whose elements are packed in words, and names in one form of a kernel."""

import re

from vkdispatch.base import dtype as dt
from vkdispatch.base.derived_dtypes import leaves_of
from vkdispatch.base.record import field, record
from vkdispatch.compiler.analyses.naming import NamingPlan
from vkdispatch.compiler.forms import emulates
from vkdispatch.compiler.glsl.emulation import stand_in
from vkdispatch.compiler.glsl.spelling import BUILTINS
from vkdispatch.compiler.ir import Builtin, Expr, Storage

# ---- Buffers of elements that a device cannot address, as 32-bit words that hold several elements --------
#
# Each type of element that a kernel loads or stores gets functions in the generated GLSL, which take the
# byte offset of the element. A store of less than a word is a compare-and-swap loop, so that concurrent
# stores to neighbours are kept, as is one of two concurrent stores to the same element.


# From the bits of an element, a uint or a uvec2, to its value, and back.
_LOADED: dict[tuple[dt.DType, dt.DType], str] = {
    (dt.bool_, dt.bool_): "{} != 0u",
    (dt.int8, dt.int32): "bitfieldExtract(int({}), 0, 8)",
    (dt.uint8, dt.uint32): "{}",
    (dt.int16, dt.int16): "int16_t({})",
    (dt.int16, dt.int32): "bitfieldExtract(int({}), 0, 16)",
    (dt.uint16, dt.uint16): "uint16_t({})",
    (dt.uint16, dt.uint32): "{}",
    (dt.bfloat16, dt.float32): "uintBitsToFloat({} << 16)",
    (dt.float16, dt.float16): "unpackFloat2x16({}).x",
    (dt.float16, dt.float32): "half_value({})",
    (dt.int32, dt.int32): "int({})",
    (dt.uint32, dt.uint32): "{}",
    (dt.float32, dt.float32): "uintBitsToFloat({})",
    (dt.int64, dt.int64): "int64_t(packUint2x32({}))",
    (dt.uint64, dt.uint64): "packUint2x32({})",
    (dt.float64, dt.float64): "packDouble2x32({})",
}
_STORED: dict[tuple[dt.DType, dt.DType], str] = {
    (dt.bool_, dt.bool_): "uint({})",
    (dt.int8, dt.int32): "uint({})",
    (dt.uint8, dt.uint32): "{}",
    (dt.int16, dt.int16): "uint(int({}))",
    (dt.int16, dt.int32): "uint({})",
    (dt.uint16, dt.uint16): "uint({})",
    (dt.uint16, dt.uint32): "{}",
    (dt.bfloat16, dt.float32): "brain_bits({})",
    (dt.float16, dt.float16): "packFloat2x16(f16vec2({}, 0.0hf))",
    (dt.float16, dt.float32): "half_bits({})",
    (dt.int32, dt.int32): "uint({})",
    (dt.uint32, dt.uint32): "{}",
    (dt.float32, dt.float32): "floatBitsToUint({})",
    (dt.int64, dt.int64): "unpackUint2x32(uint64_t({}))",
    (dt.uint64, dt.uint64): "unpackUint2x32({})",
    (dt.float64, dt.float64): "unpackDouble2x32({})",
}


@record(eq=False, frozen=False)
class Packing:
    """The buffers of a kernel that are words, and the functions that its statements have asked for so far.

    `words` has how a word of each buffer is written, but for its place in bytes, for which braces stand;
    `position` is the type of such a place. `lacks` is what the form of the kernel does without.
    """

    words: dict[int, str] = field(factory=dict)
    position: str = "uint"
    lacks: frozenset[str] = frozenset()
    _functions: dict[str, list[str]] = field(factory=dict)

    def lines(self) -> list[str]:
        """Return the definitions of the functions."""
        return [line for lines in self._functions.values() for line in lines]

    def at(self, storage: Storage, index: str, kind: dt.DType) -> str:
        """Write where an element lies in bytes; the index is of type `kind`."""
        size = storage.element_size
        offset = 0
        if storage.whole is not None:
            leaves = leaves_of(storage.whole.dtype)
            offset = next(start for path, _, start in leaves if path == storage.path)
        suffix = "ul" if self.position == "uint64_t" else "u"
        plain = kind.glsl_type == self.position and (size == 1 or index.isidentifier())
        text = index if plain else f"{self.position}({index})"
        text = f"{text} * {size}{suffix}" if size > 1 else text
        return f"{text} + {offset}{suffix}" if offset else text

    def beyond(self, at: str, octets: str) -> str:
        """Write a place that lies some bytes behind another one."""
        return f"{at} + {self.position}({octets})"

    def load(self, storage: Storage, kind: dt.DType, value: dt.DType, at: str) -> str:
        """Write the value of what a buffer holds as `kind` at a place; kernels compute with `value`."""
        return f"{self._loader(storage.index, kind, value)}({at})"

    def store(self, storage: Storage, kind: dt.DType, value: dt.DType, at: str, text: str) -> str:
        """Write the call that stores a value of type `value` at a place, as `kind`."""
        return f"{self._storer(storage.index, kind, value)}({at}, {text})"

    def value(self, kind: dt.DType, bits: str) -> str:
        """Write the value of a scalar of 16 bits that kernels compute with."""
        return _LOADED[kind, stand_in(kind, self.lacks)].format(bits)

    def _word(self, index: int, shift: int = 0) -> str:
        return self.words[index].format(f"(at + {shift}u)" if shift else "at")

    def _loader(self, index: int, kind: dt.DType, value: dt.DType) -> str:
        """Return the name of the function that loads, which is defined when first asked for."""
        name = f"buf{index}_load_{kind.name}"
        if name not in self._functions:
            self._functions[name] = self._load(index, name, kind, value)
        return name

    def _storer(self, index: int, kind: dt.DType, value: dt.DType) -> str:
        """Return the name of the function that stores; see `_loader`."""
        name = f"buf{index}_store_{kind.name}"
        if name not in self._functions:
            self._functions[name] = self._store(index, name, kind, value)
        return name

    def _load(self, index: int, name: str, kind: dt.DType, value: dt.DType) -> list[str]:
        count, scalar, computed = dt.component_count(kind), dt.component_type(kind), dt.component_type(value)
        size = scalar.item_size
        begin = f"{value.glsl_type} {name}({self.position} at) {{"
        if count > 1:
            inner = self._loader(index, scalar, computed)
            parts = (f"{inner}(at + {part * size}u)" for part in range(count))
            return [begin, f"    return {value.glsl_type}({', '.join(parts)});", "}", ""]
        if size == 8:
            bits = f"uvec2({self._word(index)}, {self._word(index, 4)})"
        elif size == 4:
            bits = self._word(index)
        else:
            bits = f"bitfieldExtract({self._word(index)}, int(at & {4 - size}u) << 3, {8 * size})"
        form = _LOADED[scalar, stand_in(computed, self.lacks)]
        text = bits if size == 8 and emulates(scalar, self.lacks) else form.format(bits)
        return [begin, f"    return {text};", "}", ""]

    def _store(self, index: int, name: str, kind: dt.DType, value: dt.DType) -> list[str]:
        count, scalar, computed = dt.component_count(kind), dt.component_type(kind), dt.component_type(value)
        size = scalar.item_size
        begin = f"void {name}({self.position} at, {value.glsl_type} value) {{"
        if count > 1:
            inner = self._storer(index, scalar, computed)
            places = _component_places(value)
            calls = (f"    {inner}(at + {part * size}u, value{place});" for part, place in enumerate(places))
            return [begin, *calls, "}", ""]
        form = _STORED[scalar, stand_in(computed, self.lacks)]
        bits = "value" if size == 8 and emulates(scalar, self.lacks) else form.format("value")
        if size == 8:
            lines = [f"uvec2 bits = {bits};", f"{self._word(index)} = bits.x;"]
            lines.append(f"{self._word(index, 4)} = bits.y;")
        elif size == 4:
            lines = [f"{self._word(index)} = {bits};"]
        else:
            word = self._word(index)
            lines = [
                f"int shift = int(at & {4 - size}u) << 3;",
                f"uint bits = {bits}, seen = {word}, old;",
                "do {",
                "    old = seen;",
                f"    seen = atomicCompSwap({word}, old, bitfieldInsert(old, bits, shift, {8 * size}));",
                "} while (seen != old);",
            ]
        return [begin, *(f"    {line}" for line in lines), "}", ""]


def _component_places(kind: dt.DType) -> list[str]:
    """Return how the components of a value are written, in the order of memory."""
    if kind.dimentions == 2:
        return [f"[{i}][{j}]" for i in range(kind.child_count) for j in range(kind.shape[1])]
    return [f".{letter}" for letter in "xyzw"[: dt.component_count(kind)]]


# ---- Names of built-in values, arguments and expressions in one form of a kernel -------------------------


@record(eq=False, frozen=False)
class Names:
    """Names of built-in values, of the argument block, and of expressions that have a name."""

    builtins: dict[Builtin, str] = field(factory=lambda: BUILTINS)
    block: str = "PC"
    plan: NamingPlan | None = None
    of_number: dict[int, str] = field(factory=dict)
    # of buffers that are reached by address: members of the argument block, by position of the resource
    addresses: dict[int, str] = field(factory=dict)
    lengths: dict[int, str] = field(factory=dict)
    # buffers whose elements are packed in words
    packing: Packing = field(factory=Packing)
    # features that the form does without
    lacks: frozenset[str] = frozenset()
    # where arguments of 16 bits lie that are packed in words, by name
    halves: dict[str, int] = field(factory=dict)
    # counts of elements of shared arrays, by identity
    shared: dict[int, int] = field(factory=dict)
    # whether integers of 64 bits become float64
    rounds_integers: bool = False
    # whether halves made of float32 become float32 again
    rounds_halves: bool = False

    def name_of(self, expr: Expr) -> str | None:
        """Return the name that an expression was given, if any."""
        if not self.of_number or self.plan is None:
            return None
        number = self.plan.numbering.by_id.get(id(expr))
        if number is None:
            number = self.plan.numbering.number(expr)
        return self.of_number.get(number)

    def raw(self, text: str) -> str:
        """Adapt raw GLSL, which was written against the default names."""
        renamed = {BUILTINS[key]: name for key, name in self.builtins.items() if BUILTINS[key] != name}
        if self.block != "PC":
            renamed["PC"] = self.block
        if not renamed:
            return text
        pattern = r"\b(" + "|".join(renamed) + r")\b"
        return re.sub(pattern, lambda match: renamed[match[0]], text)
