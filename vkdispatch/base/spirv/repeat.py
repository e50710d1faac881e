"""Repetition: several dispatches of a SPIR-V kernel become one, whose invocations run it several times.

A dispatch and the barrier after it cost 20 us on a CPU driver, often more than a kernel that is dispatched
hundreds of times. If a kernel works element by element (`elementwise`), n dispatches with barriers
between them equal one dispatch whose invocations each run the kernel n times.
"""

import itertools
from collections.abc import Iterator

import numpy as np

from vkdispatch.base.record import record
from vkdispatch.base.spirv import opcodes as op
from vkdispatch.base.spirv.elementwise import prove_elementwise
from vkdispatch.base.spirv.module import Instruction, Module, read_module

# The largest number of rounds of a dispatch. A CPU driver ends loops after 65,535 rounds, counted over all
# loops together (which is why kernels with loops are not repeated), and a GPU that is busy for seconds with
# one dispatch may be reset.
MAX_REPEATS = 1024

_SPEC_ID = 1
_DONT_UNROLL = 2
_WORKGROUP, _ACQUIRE_RELEASE_BUFFERS = 2, 0x8 | 0x40
_BOUND_AT = 3


@record
class Repeated:
    """A kernel that runs several times in each invocation.

    Attributes
    ----------
    spirv
        The module, with the same entry point and bindings.
    count_id
        Id of the specialization constant, a uint32, that says how often: 1 to `MAX_REPEATS`; 1 unless given.
    written, read
        Bindings of set 0 whose buffers are written; whose buffers and images are read. What is bound at
        one of `written` must not be bound at another binding of either.
    """

    spirv: bytes
    count_id: int
    written: frozenset[int]
    read: frozenset[int]


def repeat_kernel(code: bytes, entry_point: str = "main", fence: bool = True) -> Repeated | None:
    """Return a kernel that does in one dispatch the work of several consecutive dispatches.

    The results are bit-identical unless the compiler simplifies arithmetic across rounds, such as three
    rounds of `x + 1` to `x + 3`.

    Parameters
    ----------
    code
        A valid SPIR-V module.
    entry_point
        The compute entry point.
    fence
        Whether to put a memory barrier between rounds, besides the request not to unroll the loop. Mesa's
        compiler honours the request, and barriers double the time on its CPU driver.

    Returns
    -------
    The kernel; None without a proof that dispatches of one workgroup along y and z, with equal constants and
    bindings, can be merged, or if the kernel writes nothing. The caller has to check the bindings; see
    `Repeated.written`.

    Raises
    ------
    TypeError, ValueError
        `code` is not a module, or has no such entry point.
    """
    module = read_module(code)
    touched = prove_elementwise(module, entry_point)
    if touched is None or not touched.written:
        return None
    words, count_id = _add_loop(module, fence)
    return Repeated(words.astype("<u4").tobytes(), count_id, touched.written, touched.read)


def _add_loop(module: Module, fence: bool) -> "tuple[np.ndarray[tuple[int], np.dtype[np.uint32]], int]":
    """Return the module with an entry point that calls the one it had, and the id of the constant."""
    entry = next(module.of(op.ENTRY_POINT))
    kernel = entry.operands[1]
    function = next(i for i in module.of(op.FUNCTION) if i.operands[1] == kernel)
    void, kind = function.operands[0], function.operands[3]
    count_id = max((i.operands[2] for i in _spec_ids(module)), default=-1) + 1
    names = itertools.count(int(module.words[_BOUND_AT]))
    uint, truth = _type(module, op.TYPE_INT, 32, 0), _type(module, op.TYPE_BOOL)
    declared: list[int] = []
    # There must be no two equal types.
    if uint is None:
        uint = next(names)
        declared += _words(op.TYPE_INT, uint, 32, 0)
    if truth is None:
        truth = next(names)
        declared += _words(op.TYPE_BOOL, truth)
    count, zero, one, scope, semantics = itertools.islice(names, 5)
    declared += _words(op.SPEC_CONSTANT, uint, count, 1)
    for constant, value in ((zero, 0), (one, 1), (scope, _WORKGROUP), (semantics, _ACQUIRE_RELEASE_BUFFERS)):
        declared += _words(op.CONSTANT, uint, constant, value)
    main, start, head, test, body, after, end = itertools.islice(names, 7)
    done, following, more, nothing = itertools.islice(names, 4)
    loop = [
        *_words(op.FUNCTION, void, main, 0, kind),
        *_words(op.LABEL, start),
        *_words(op.BRANCH, head),
        *_words(op.LABEL, head),
        *_words(op.PHI, uint, done, zero, start, following, after),
        *_words(op.LOOP_MERGE, end, after, _DONT_UNROLL),
        *_words(op.BRANCH, test),
        *_words(op.LABEL, test),
        *_words(op.UNSIGNED_LESS, truth, more, done, count),
        *_words(op.BRANCH_CONDITIONAL, more, body, end),
        *_words(op.LABEL, body),
        *_words(op.FUNCTION_CALL, void, nothing, kernel),
        *_words(op.BRANCH, after),
        *_words(op.LABEL, after),
        *(_words(op.MEMORY_BARRIER, scope, semantics) if fence else ()),
        *_words(op.INTEGER_ADD, uint, following, done, one),
        *_words(op.BRANCH, head),
        *_words(op.LABEL, end),
        *_words(op.RETURN),
        *_words(op.FUNCTION_END),
    ]
    words = module.words.copy()
    words[_BOUND_AT] = next(names)
    words[entry.at + 2] = main
    for mode in module.of(op.EXECUTION_MODE, op.EXECUTION_MODE_ID):
        if mode.operands[0] == kernel:
            words[mode.at + 1] = main
    first_function = next(module.of(op.FUNCTION)).at
    decoration = max(module.of(op.DECORATE), key=lambda instruction: instruction.at)
    decorated = decoration.at + 1 + len(decoration.operands)
    parts = [
        words[:decorated],
        _words(op.DECORATE, count, _SPEC_ID, count_id),
        words[decorated:first_function],
        declared,
        words[first_function:],
        loop,
    ]
    return np.concatenate([np.asarray(part, np.uint32) for part in parts]), count_id


def _words(opcode: int, *operands: int) -> list[int]:
    """Return the words of an instruction."""
    return [(len(operands) + 1) << 16 | opcode, *operands]


def _spec_ids(module: Module) -> Iterator[Instruction]:
    return (i for i in module.of(op.DECORATE) if i.operands[1] == _SPEC_ID)


def _type(module: Module, opcode: int, *parameters: int) -> int | None:
    """Return the identifier of a type that is there."""
    found = (i.operands[0] for i in module.of(opcode) if tuple(i.operands[1:]) == parameters)
    return next(found, None)
