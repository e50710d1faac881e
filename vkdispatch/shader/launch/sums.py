"""Warnings about kernels that forget that they have many invocations: lost sums, equal random numbers."""

from collections.abc import Iterator

from vkdispatch.analyses.contents import contents
from vkdispatch.codegen.trace.assignment import is_same_place
from vkdispatch.codegen.trace.kernel_warnings import warn_once_each
from vkdispatch.ir import Block, Builtin, Expr, For, Kernel, Op, Return, Storage, Store, nodes, root_of, walk
from vkdispatch.ir.location import Loc

# What an index is made of that is the same for all invocations.
_FIXED = frozenset((Op.LITERAL, Op.ARGUMENT, Op.BINARY, Op.UNARY, Op.CONSTRUCT, Op.COMPONENT))
_IDS = frozenset((Builtin.GLOBAL_INVOCATION_ID, Builtin.LOCAL_INVOCATION_ID, Builtin.LOCAL_INVOCATION_INDEX))
_SYMBOLS = frozenset("+-")
_ONE = (1, (1,), (1, 1), (1, 1, 1))


def check_sums(kernel: Kernel, exec_size: object, workgroups: object, local_size: object) -> None:
    """Warn of `out[0] += x[i]` outside any condition, in a kernel that tells its invocations apart."""
    if _is_one(exec_size) or (_is_one(workgroups) and _is_one(local_size)):
        return
    found = [store for store in _unconditional_stores(kernel.body) if _adds_to_one_element(store)]
    if not found or not any(
        expr.value in _IDS for expr in contents(kernel).expressions if expr.op is Op.BUILTIN
    ):
        return
    warn_once_each(
        "every invocation adds to this one element of a buffer, and nothing orders them, so additions are "
        "lost: use vc.atomic_add(buffer[0], value), or vd.sum(x) for the sum of a buffer",
        [store.loc for store in found],
    )


def check_streams(
    streams: list[Loc | None], exec_size: object, workgroups: object, local_size: object
) -> None:
    """Warn of random numbers that are the same in all invocations, unless there is one."""
    if not (_is_one(exec_size) or (_is_one(workgroups) and _is_one(local_size))):
        warn_once_each(
            "Philox: all invocations draw the same numbers: give each a stream of its own, as in "
            "vc.random.Philox(seed, sequence=vc.global_invocation_id().x), or sequence=0 if that is meant",
            streams,
        )


def _is_one(size: object) -> bool:
    return isinstance(size, (int, tuple)) and size in _ONE


def _unconditional_stores(block: Block) -> Iterator[Store]:
    """Yield the stores that each invocation comes to, in loops of a counter too."""
    for statement in block:
        if isinstance(statement, Store):
            yield statement
        elif isinstance(statement, For):
            yield from _unconditional_stores(statement.body)
        if any(isinstance(inner, Return) for inner in walk((statement,))):
            return


def _adds_to_one_element(store: Store) -> bool:
    root = root_of(store.place)
    if root.op is not Op.ELEMENT or not isinstance(root.value, Storage):
        return False
    if not all(node.op in _FIXED for node in nodes(root.args)):
        return False
    return store.operator in _SYMBOLS or _is_sum_with(store.value, store.place)


def _is_sum_with(value: Expr, place: Expr) -> bool:
    return value.op is Op.BINARY and value.value in _SYMBOLS and is_same_place(value.args[0], place)
