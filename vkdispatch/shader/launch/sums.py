"""Warnings about kernels that forget that they have many invocations: lost sums, equal random numbers."""

from collections.abc import Iterator

from vkdispatch.analyses.contents import contents, find_operations
from vkdispatch.ir.nodes import is_same_place
from vkdispatch.codegen.trace.kernel_warnings import warn_once_each
from vkdispatch.ir import (
    Block,
    Builtin,
    Expr,
    For,
    If,
    Kernel,
    Op,
    Register,
    Return,
    Scope,
    Statement,
    Storage,
    Store,
    While,
    blocks_of,
    expressions_of,
    nodes,
    place_operands,
    root_of,
    walk,
)
from vkdispatch.ir.location import Loc
from vkdispatch.shader.launch.origins import Origins
from vkdispatch.shader.launch.size import is_one

# What an index or a condition is made of that does not tell invocations apart.
_FIXED = frozenset(
    (
        *(Op.LITERAL, Op.ARGUMENT, Op.BINARY, Op.UNARY, Op.CONSTRUCT, Op.COMPONENT, Op.COMPARE, Op.LOGICAL),
        *(Op.SELECT, Op.CALL),
    )
)
_IDS = frozenset((Builtin.GLOBAL_INVOCATION_ID, Builtin.LOCAL_INVOCATION_ID, Builtin.LOCAL_INVOCATION_INDEX))
_ORDERS = frozenset(("<", "<=", ">", ">="))
_SYMBOLS = frozenset("+-")


def check_sums(kernel: Kernel, exec_size: object, workgroups: object, local_size: object) -> None:
    """Warn of `out[0] += x[i]` and `counts[x[i]] += 1` in a kernel that tells its invocations apart."""
    if is_one(exec_size) or (is_one(workgroups) and is_one(local_size)):
        return
    if not any(expr.value in _IDS for expr in find_operations(kernel, Op.BUILTIN)):
        return
    if not any(isinstance(each, Store) and _is_sum(each) for each in contents(kernel).statements):
        return
    sums = _Sums(kernel)
    found = [store for store in sums.find_stores(kernel.body) if _is_sum(store)]
    warn_once_each(
        "every invocation adds to this one element of a buffer, and nothing orders them, so additions are "
        "lost: use vc.atomic_add(buffer[0], value), or vd.sum(x) for the sum of a buffer",
        [store.loc for store in found if sums.is_fixed(store)],
    )
    warn_once_each(
        "invocations that get the same index add to the same element of a buffer, and nothing orders them, "
        "so additions are lost: use vc.atomic_add(buffer[index], value). If no index occurs twice, the sum "
        "is right",
        [store.loc for store in found if sums.is_looked_up(store)],
    )


def check_streams(
    streams: list[Loc | None], exec_size: object, workgroups: object, local_size: object
) -> None:
    """Warn of random numbers that are the same in all invocations, unless there is one."""
    if not (is_one(exec_size) or (is_one(workgroups) and is_one(local_size))):
        warn_once_each(
            "Philox: all invocations draw the same numbers: give each a stream of its own, as in "
            "vc.random.Philox(seed, sequence=vc.global_invocation_id().x), or sequence=0 if that is meant",
            streams,
        )


class _Sums:
    """Stores of a kernel, and whether their index tells invocations apart by more than what they read."""

    def __init__(self, kernel: Kernel) -> None:
        self._origins = Origins(kernel, _may_tell_apart)

    def find_stores(self, block: Block) -> Iterator[Store]:
        """Yield the stores that many invocations may come to: no condition on an id picks one of them."""
        for statement in block:
            if isinstance(statement, Store):
                yield statement
            elif isinstance(statement, If):
                if all(map(self._admits_many, expressions_of(statement))):
                    for inner in blocks_of(statement):
                        yield from self.find_stores(inner)
                elif _returns(statement):
                    return
            elif isinstance(statement, (For, While, Scope)):
                yield from self.find_stores(statement.body)
                if _returns(statement):
                    return

    def is_fixed(self, store: Store) -> bool:
        """Whether all invocations store to the same element."""
        return all(node.op in _FIXED for node in nodes(tuple(place_operands(store.place))))

    def is_looked_up(self, store: Store) -> bool:
        """Whether the index of a store was read from a buffer or counted, and holds no id besides."""
        return not self.is_fixed(store) and not any(map(self._origins.reaches, place_operands(store.place)))

    def _admits_many(self, condition: Expr) -> bool:
        """Whether a condition depends on what was read, or compares an id with a size."""
        if condition.op is Op.LOGICAL:
            return all(map(self._admits_many, condition.args))
        ordered = condition.op is Op.COMPARE and condition.value in _ORDERS
        if ordered and any(node.op is Op.ARGUMENT for node in nodes(condition.args)):
            return True
        return not self._origins.reaches(condition)


def _returns(statement: Statement) -> bool:
    return any(isinstance(inner, Return) for inner in walk((statement,)))


def _may_tell_apart(node: Expr) -> bool:
    """Whether an expression may have another value in each invocation, besides what is read and variables."""
    if isinstance(node.value, Register):
        return False
    return node.op not in _FIXED and not (node.op is Op.ELEMENT and isinstance(node.value, Storage))


def _is_sum(store: Store) -> bool:
    root = root_of(store.place)
    if root.op is not Op.ELEMENT or not isinstance(root.value, Storage):
        return False
    return store.operator in _SYMBOLS or _is_sum_with(store.value, store.place)


def _is_sum_with(value: Expr, place: Expr) -> bool:
    return value.op is Op.BINARY and value.value in _SYMBOLS and is_same_place(value.args[0], place)
