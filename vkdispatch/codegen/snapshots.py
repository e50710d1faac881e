"""Values of memory of one invocation as they were when they were read, and whether a place was meant."""

import dis
import functools
from types import CodeType, FrameType
from typing import Any, NoReturn

from vkdispatch.base.dtype import is_complex, is_vector
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.codegen.attributes import is_swizzle
from vkdispatch.codegen.ir import Expr
from vkdispatch.codegen.location import located
from vkdispatch.codegen.recording import current
from vkdispatch.codegen.variables import ShaderVariable

_set = object.__setattr__
_ATTRIBUTES = frozenset(("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR"))
_COPIES = frozenset(("COPY", "DUP_TOP"))


@functools.lru_cache(maxsize=1024)
def _attribute_follows(code: CodeType) -> frozenset[int]:
    """Return the offsets of the instructions whose result is at once asked for an attribute, or gets one.

    With those of their caches, to which frames may point as well.
    """
    instructions = list(dis.get_instructions(code))
    found: set[int] = set()
    for position, instruction in enumerate(instructions[:-1]):
        end = instructions[position + 1].offset
        following = instructions[position + 1]
        if following.opname in _COPIES and position + 2 < len(instructions):
            # p[i].x += 1
            following = instructions[position + 2]
            if following.opname == "STORE_ATTR":
                continue
        if following.opname in _ATTRIBUTES:
            found.update(range(instruction.offset, end, 2))
    return frozenset(found)


def is_place_in(frame: FrameType) -> bool:
    """Whether the expression that a frame evaluates is the `p[i]` of `p[i].x`: a place, not a value."""
    return frame.f_lasti in _attribute_follows(frame.f_code)


def held(value: Expr, name: str) -> Expr:
    """Copy a value, now, to a register, which is the kernel's to assign."""
    return current().declare_around(value.dtype, value, name)


class Snapshot(ShaderVariable):
    """What a place of one invocation holds at one moment.

    In-place operators make a new value, which `s.x += 1` and `a[i] += 1` then assign to the place. In
    `s.position.x = 1` the component of the place is assigned to; a value that got a name is nothing to assign
    to.
    """

    __slots__ = ("_place",)

    _place: Expr | None

    def __init__(self, place: Expr, name: str, *, is_place: bool) -> None:
        """Copy what a place holds; `is_place` tells that its components may be assigned to."""
        super().__init__(current().declare(place.dtype, place, name, fixed=True))
        _set(self, "_place", place if is_place else None)

    def _update(self, symbol: str, result: Any) -> Any:
        return result

    def _component(self, letter: str) -> ShaderVariable:
        return _Part(super()._component(letter).expr)

    def _part(self, index: int, name: str) -> ShaderVariable:
        return _Part(super()._part(index, name).expr)

    def __getitem__(self, index: Any) -> ShaderVariable:
        return _Part(super().__getitem__(index).expr)

    def __setattr__(self, attribute: str, value: object) -> None:
        kind = self.expr.dtype
        letters = is_swizzle(attribute) and is_vector(kind)
        if not letters and not (attribute in ("real", "imag") and is_complex(kind)):
            super().__setattr__(attribute, value)
        elif self._place is None:
            self._refuse()
        else:
            setattr(ShaderVariable(self._place), attribute, value)

    def __setitem__(self, index: Any, value: object) -> None:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise located(
            ArgumentValueError,
            "this is the value of a local structure's field or a local array's element, so assigning to a "
            "part of it would be lost; assign to the place itself (s.field = ..., s.field.x = ..., "
            "a[i].x = ...), or to a copy made by .to_register()",
        )


class _Part(ShaderVariable):
    """A component of a snapshot."""

    __slots__ = ()

    def _update(self, symbol: str, result: Any) -> Any:
        return result
