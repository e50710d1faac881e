"""Operations that dispatch algorithms."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from vkdispatch.kompute.algorithms.algorithm import NO_CONSTANTS, Algorithm, check_algorithm
from vkdispatch.kompute.algorithms.constants import copy_constants
from vkdispatch.kompute.enums import DataTypes
from vkdispatch.kompute.errors import KomputeError
from vkdispatch.kompute.memory.memory import Memory

if TYPE_CHECKING:
    from vkdispatch.kompute.commands.commands import Commands
from vkdispatch.kompute.operations.operation import OpBase, parse_memories, require_attribute


class OpAlgoDispatch(OpBase):
    """Dispatches an algorithm."""

    __slots__ = ("_algorithm", "_push_consts")

    def __init__(self, algorithm: Algorithm, push_consts: Any = NO_CONSTANTS) -> None:
        """Make the dispatch of an algorithm.

        Parameters
        ----------
        push_consts
            An array or an iterable of numbers, of the size in bytes that the algorithm was made with. They
            become the algorithm's own when the dispatch is recorded. Empty: use the algorithm's.

        Raises
        ------
        TypeError
            `algorithm` is not an algorithm, or `push_consts` are not numbers.
        """
        self._algorithm = check_algorithm(algorithm)
        if push_consts is not NO_CONSTANTS:
            push_consts = copy_constants("push_consts", push_consts)
        self._push_consts = push_consts if len(push_consts) else NO_CONSTANTS

    def record(self, commands: "Commands") -> None:
        """Record the dispatch.

        Raises RuntimeError if the algorithm is empty or the constants do not fit.
        """
        commands.dispatch(require_attribute(self, "_algorithm"), self._push_consts)


class OpAlgoLro(OpAlgoDispatch):
    """Dispatches an algorithm on left, right and out, and copies out to the host view."""

    __slots__ = ("_out",)

    def __init__(self, memories: Sequence[Memory], algorithm: Algorithm) -> None:
        """Make the operation for the memory that the algorithm is bound to.

        Raises RuntimeError unless `memories` are three tensors of the same size.
        """
        found = parse_memories(memories, "algo_lro")
        if len(found) != 3 or len({memory.size() for memory in found}) != 1:
            raise KomputeError(
                "algo_lro: expected left, right and out of the same size, got "
                f"{[memory.size() for memory in found]}"
            )
        super().__init__(algorithm)
        self._out = found[2]

    def record(self, commands: "Commands") -> None:
        """Record the dispatch and the copy."""
        super().record(commands)
        commands.copy_to_host(self._out)


_MULTIPLY = """#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) readonly buffer Left { float left[]; };
layout(set = 0, binding = 1) readonly buffer Right { float right[]; };
layout(set = 0, binding = 2) writeonly buffer Product { float product[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    product[i] = left[i] * right[i];
}
"""


class OpMult(OpBase):
    """Multiplies two tensors of floats, element by element, into a third one."""

    __slots__ = ("_algorithm",)

    def __init__(self, memories: Sequence[Memory], algorithm: Algorithm, /) -> None:
        """Rebuild the algorithm, which may be empty, as the multiplication of these tensors.

        Raises
        ------
        TypeError
            An argument has the wrong type.
        RuntimeError
            `memories` are not three tensors of floats of the same size.
        """
        found = parse_memories(memories, "kp.OpMult")
        if len(found) != 3:
            raise KomputeError(f"Kompute OpMult expected 3 mem objects but got {len(found)}")
        check_algorithm(algorithm)
        for memory in found:
            memory._require()
            if memory._data_type is not DataTypes.float or memory._size != found[0]._size:
                raise KomputeError(
                    f"kp.OpMult: expected three tensors of {found[0]._size} floats, got {memory._size} "
                    f"elements of {memory._data_type.name}"
                )
        algorithm.rebuild(found, _MULTIPLY)
        self._algorithm = algorithm

    def record(self, commands: "Commands") -> None:
        """Record the dispatch."""
        commands.dispatch(require_attribute(self, "_algorithm"))
