"""Values as scalars and as words of 32 bits, and the dtypes as which elements are moved."""

from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType, component_type, is_complex, is_matrix, is_scalar, is_vector

_WORDS: dict[int, DType] = {
    1: dtype.uint8,
    2: dtype.uint16,
    4: dtype.uint32,
    8: dtype.uvec2,
    16: dtype.uvec4,
}


def word_type(size: int) -> DType:
    """Return the unsigned dtype as which 1, 2, 4, 8 or 16 bytes are moved."""
    return _WORDS[size]


def split_scalars(value: Any) -> list[Any]:
    """Return the scalars of a GPU value; those of a matrix column by column."""
    kind = value.var_type
    if is_complex(kind):
        return [value.real, value.imag]
    if is_matrix(kind):
        return [value[column][row] for column in range(kind.child_count) for row in range(kind.child_count)]
    return [value[i] for i in range(kind.child_count)] if is_vector(kind) else [value]


def split_words(value: Any) -> list[Any]:
    """Return the bits of a GPU value as words of 32 bits, the lowest first; a uint16 becomes one word."""
    words = []
    for part in split_scalars(value):
        if part.var_type is dtype.uint32:
            words.append(part)
        elif part.var_type is dtype.uint16:
            words.append(part.to_dtype(dtype.uint32))
        elif part.var_type.item_size == 4:
            words.append(vc.reinterpret(dtype.uint32, part))
        else:
            pair = vc.reinterpret(dtype.uvec2, part).to_register()
            words += [pair.x, pair.y]
    return words


def join_words(kind: DType, words: Sequence[Any]) -> Any:
    """Return the GPU value of these words; see `split_words`."""
    part = component_type(kind)
    parts = list(words)
    if part.item_size == 8:
        pairs = [vc.to_uvec2(words[i], words[i + 1]) for i in range(0, len(words), 2)]
        parts = [vc.reinterpret(part, pair) for pair in pairs]
    elif part is dtype.uint16:
        parts = [word.to_dtype(part) for word in words]
    elif part.item_size == 4 and part is not dtype.uint32:
        parts = [vc.reinterpret(part, word) for word in words]
    return parts[0] if is_scalar(kind) else vc.to_dtype(kind, *parts)


def word_count(kind: DType) -> int:
    """Return how many words `split_words` gives."""
    return max(1, kind.item_size // 4)
