"""What values are computed from, through the variables of a kernel."""

from collections.abc import Callable, Iterator

from vkdispatch.analyses.contents import contents
from vkdispatch.ir import Declare, Expr, For, Kernel, Op, Register, Statement, Store, root_of


class Origins:
    """Whether values of a kernel are computed from some kind of expression, its sources.

    Indices of what is read from memory do not count. Registers are looked through once for all values, so
    that the work is in proportion to the kernel.
    """

    def __init__(self, kernel: Kernel, is_source: Callable[[Expr], bool]) -> None:
        self.values: dict[Register, list[Expr]] = {}
        for statement in contents(kernel).statements:
            for register, value in _assignments(statement):
                self.values.setdefault(register, []).append(value)
        self._is_source = is_source
        self._reached = self._find_registers()

    def reaches(self, root: Expr) -> bool:
        """Whether a value is computed from a source."""
        return any(self._is_source(node) or self._is_reached(node) for node in _nodes(root))

    def _is_reached(self, node: Expr) -> bool:
        register = node.value
        return isinstance(register, Register) and (register in self._reached or register not in self.values)

    def _find_registers(self) -> set[Register]:
        """Return the registers that get a value computed from a source."""
        users: dict[Register, list[Register]] = {}
        waiting: list[Register] = []
        for register, values in self.values.items():
            for node in (node for value in values for node in _nodes(value)):
                if self._is_source(node):
                    waiting.append(register)
                elif isinstance(node.value, Register):
                    users.setdefault(node.value, []).append(register)
        reached: set[Register] = set()
        while waiting:
            register = waiting.pop()
            if register not in reached:
                reached.add(register)
                waiting += users.get(register, ())
        return reached


def _nodes(root: Expr) -> Iterator[Expr]:
    """Yield what a value is computed from, without the indices of elements."""
    waiting, seen = [root], set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            if node.op is not Op.ELEMENT:
                waiting += node.args


def _assignments(statement: Statement) -> Iterator[tuple[Register, Expr]]:
    if isinstance(statement, Declare):
        yield statement.register, statement.value
    elif isinstance(statement, For):
        yield statement.counter, statement.start
        yield statement.counter, statement.step
    elif isinstance(statement, Store):
        root = root_of(statement.place)
        if isinstance(root.value, Register):
            yield root.value, statement.value
