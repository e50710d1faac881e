"""The types that instructions of SPIR-V take and give, and those of the functions of GLSL.std.450."""

from collections.abc import Callable, Sequence

from vkdispatch.base.spirv import opcodes as op
from vkdispatch.base.spirv.opcodes import parse_ranges

Shape = tuple[int, int, int]  # opcode of the component's type, its bits, components
_BOOL, _INT, _FLOAT = op.TYPE_BOOL, op.TYPE_INT, op.TYPE_FLOAT
_Rule = Callable[[Shape, Sequence[Shape]], bool]


def _all_the_same(made: Shape, given: Sequence[Shape]) -> bool:
    return all(shape == made for shape in given)


def _floats(made: Shape, given: Sequence[Shape]) -> bool:
    return made[0] == _FLOAT and _all_the_same(made, given)


def _integers(made: Shape, given: Sequence[Shape]) -> bool:
    return made[0] == _INT and _all_the_same(made, given)


def _bits_of(made: Shape, given: Sequence[Shape]) -> bool:
    """Whether the first is an integer like the result, and the others (offset, count) are some integer."""
    first, *rest = given
    return _integers(made, [first]) and all(shape[0] == _INT and shape[2] == 1 for shape in rest)


def _inserted_bits(made: Shape, given: Sequence[Shape]) -> bool:
    return _bits_of(made, [given[0], *given[2:]]) and given[1] == made


def _has_count(made: Shape, given: Sequence[Shape]) -> bool:
    return made[0] == given[0][0] == _INT and made[2] == given[0][2]


def _from(source: int, target: int) -> _Rule:
    def convert(made: Shape, given: Sequence[Shape]) -> bool:
        return made[0] == target and given[0][0] == source and made[2] == given[0][2]

    return convert


def _same_bits(made: Shape, given: Sequence[Shape]) -> bool:
    return _BOOL not in (made[0], given[0][0]) and made[1] * made[2] == given[0][1] * given[0][2]


def _asks_vector(made: Shape, given: Sequence[Shape]) -> bool:
    return made[0] == given[0][0] == _BOOL and made[2] == 1


def _asks_floats(made: Shape, given: Sequence[Shape]) -> bool:
    return made[0] == _BOOL and all(shape[0] == _FLOAT and shape[2] == made[2] for shape in given)


def _is_scaling(made: Shape, given: Sequence[Shape]) -> bool:
    return made[0] == _FLOAT and made == given[0] and given[1] == (*made[:2], 1)


def _dot(made: Shape, given: Sequence[Shape]) -> bool:
    return made[0] == _FLOAT and given[0] == given[1] and given[0][:2] == made[:2] and made[2] == 1


def _element(made: Shape, given: Sequence[Shape]) -> bool:
    return given[0][:2] == made[:2] and made[2] == 1 and given[1][0] == _INT and given[1][2] == 1


def _with_element(made: Shape, given: Sequence[Shape]) -> bool:
    return given[0] == made and given[1] == (*made[:2], 1) and given[2][0] == _INT and given[2][2] == 1


RULES: dict[int, _Rule] = {
    77: _element,
    78: _with_element,
    **dict.fromkeys((109, 110), _from(_FLOAT, _INT)),
    **dict.fromkeys((111, 112), _from(_INT, _FLOAT)),
    **dict.fromkeys((113, 114), _from(_INT, _INT)),
    115: _from(_FLOAT, _FLOAT),
    116: _floats,
    142: _is_scaling,
    148: _dot,
    **dict.fromkeys((154, 155), _asks_vector),
    **dict.fromkeys(range(156, 164), _asks_floats),
    201: _inserted_bits,
    **dict.fromkeys((202, 203), _bits_of),
    204: _integers,
    205: _has_count,
    **dict.fromkeys((207, 208, 209, 210, 211, 212, 213, 214, 215), _floats),
}


def _packing(bits: int, count: int, width: int = 32) -> _Rule:
    def packs(made: Shape, given: Sequence[Shape]) -> bool:
        return given[0] == (_FLOAT if width == 32 else _INT, 32, count) and made[2] == 1 and made[1] == bits

    return packs


def _unpacking(bits: int, count: int, width: int = 32) -> _Rule:
    def unpacks(made: Shape, given: Sequence[Shape]) -> bool:
        return made == (_FLOAT if width == 32 else _INT, 32, count) and given[0][1:] == (bits, 1)

    return unpacks


def _length(made: Shape, given: Sequence[Shape]) -> bool:
    return made[0] == _FLOAT and made[2] == 1 and all(s[:2] == made[:2] and s == given[0] for s in given)


def _cross(made: Shape, given: Sequence[Shape]) -> bool:
    return _floats(made, given) and made[2] == 3


def _refract(made: Shape, given: Sequence[Shape]) -> bool:
    return _floats(made, given[:2]) and given[2][0] == _FLOAT and given[2][2] == 1


def _scaled_by_power(made: Shape, given: Sequence[Shape]) -> bool:
    return _floats(made, given[:1]) and given[1][0] == _INT and given[1][2] == made[2]


def _integers_of_a_width(made: Shape, given: Sequence[Shape]) -> bool:
    return made[0] == _INT and all(shape == made for shape in given)


def _found_bit(made: Shape, given: Sequence[Shape]) -> bool:
    return made[0] == given[0][0] == _INT and made[2] == given[0][2]


_NUMBERS: tuple[tuple[str, int, _Rule], ...] = (
    ("1-4 6 8-10 11-24 27-32 69", 1, _floats),
    ("25 26 37 40 48 71 79 80", 2, _floats),
    ("43 46 49 50 70 81", 3, _floats),
    ("5 7", 1, _integers_of_a_width),
    ("38 39 41 42", 2, _integers_of_a_width),
    ("44 45", 3, _integers_of_a_width),
    ("73-75", 1, _found_bit),
    ("53", 2, _scaled_by_power),
    ("54 55", 1, _packing(32, 4)),
    ("56-58", 1, _packing(32, 2)),
    ("59", 1, _packing(64, 2, 0)),
    ("60-62", 1, _unpacking(32, 2)),
    ("63 64", 1, _unpacking(32, 4)),
    ("65", 1, _unpacking(64, 2, 0)),
    ("66", 1, _length),
    ("67", 2, _length),
    ("68", 2, _cross),
    ("72", 3, _refract),
)
# Functions of numbers and vectors in GLSL.std.450: how many operands they take, and of what types.
GLSL_NUMBERS = {number: (count, rule) for text, count, rule in _NUMBERS for number in parse_ranges(text)}
# Those of matrices and structures, and those that write through a pointer: how many operands they take.
GLSL_OTHERS = {33: 1, 34: 1, 35: 2, 36: 1, 51: 2, 52: 1}
