"""Random plain-Python functions with functions inside them, as source text.

Nested functions read and reassign variables around them, take default arguments, return early from loops and
branches, and outlive the functions that make them. Numbers are as in `programs`.
"""

from __future__ import annotations

from .programs import Writer


class ClosureWriter(Writer):
    """Writes functions of `i` that define others."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        # names of the functions that may be called here, with their counts of arguments
        self.callable: list[tuple[str, int]] = []
        self.made = 0
        # nested functions around the code being written
        self.level = 0

    def value(self, depth: int = 2) -> str:
        if depth and self.callable and self.random.random() < 0.3:
            return self.call(depth - 1)
        return super().value(depth)

    def condition(self, depth: int = 2) -> str:
        if self.random.random() < 0.15:
            # what Python knows
            return self.random.choice(["True", "1 < 2", "2 < 1", "not True"])
        return super().condition(depth)

    def function(self, head: str, budget: int) -> str:
        super().function(head, budget)
        # what is not read in the end may have no value there
        read = self.random.sample(self.names, self.random.randrange(1, 4))
        self.lines[-1] = f"    return ({' + 31 * '.join(read)}) % 10007"
        return "\n".join(self.lines)

    def call(self, depth: int = 1) -> str:
        name, count = self.random.choice(self.callable)
        return f"{name}({', '.join(self.value(depth) for _ in range(count))})"

    def statement(self, budget: int) -> None:
        kind = self.random.random()
        if kind < 0.16 and self.level < 2 and budget > 0:
            self.define(budget)
        elif kind < 0.2:
            self.make_lambda()
        elif kind < 0.24:
            self.use_counter()
        elif kind < 0.32 and self.callable:
            self.line(f"{self.random.choice(self.names[:3])} = {self.call()}")
        elif kind < 0.36 and self.callable:
            self.line(self.call())
        else:
            super().statement(budget)

    def block(self, budget: int) -> None:
        known = list(self.callable)
        super().block(budget)
        self.callable = known

    def new_name(self) -> str:
        self.made += 1
        return f"f{self.made}"

    def define(self, budget: int) -> None:
        name = self.new_name()
        count = self.random.randrange(3)
        arguments = [f"{name}_{position}" for position in range(count)]
        head = list(arguments)
        if self.random.random() < 0.3:
            head.append(f"{name}_d={self.leaf()}")
            arguments.append(f"{name}_d")
        self.line(f"def {name}({', '.join(head)}):")
        self.depth += 1
        self.level += 1
        names, loops, known = self.names, self.loops, list(self.callable)
        # counters of loops are only read, and only those that have a value for certain
        rebound = [other for other in ("a", "b", "c") if self.random.random() < 0.4]
        if rebound:
            self.line(f"nonlocal {', '.join(rebound)}")
        local = [f"{name}_v"]
        self.line(f"{name}_v = {self.leaf()}")
        # `names` are also those that assignments choose from
        self.names = [*rebound, *local, *arguments]
        while len(self.names) < 3:
            self.names.append(f"{name}_v")
        self.loops = 0
        for _ in range(self.random.randrange(1, 3)):
            self.statement(budget - 1)
        self.line(f"return {self.value(1)}")
        self.names, self.loops, self.callable = names, loops, known
        self.depth -= 1
        self.level -= 1
        self.callable.append((name, count))

    def leaf(self) -> str:
        if self.level and self.random.random() < 0.35:
            return self.random.choice(["a", "b", "c", "i"])
        return super().leaf()

    def make_lambda(self) -> None:
        name = self.new_name()
        body = self.random.choice([f"({name}_0 + {self.leaf()}) % 1009", f"{self.leaf()} + {name}_0 % 7"])
        default = f", {name}_1={self.leaf()}" if self.random.random() < 0.3 else ""
        self.line(f"{name} = lambda {name}_0{default}: {body}")
        self.callable.append((name, 1))

    def use_counter(self) -> None:
        """Make a closure of a function that has ended."""
        name = self.new_name()
        self.line(f"{name} = make({self.leaf()})")
        self.callable.append((name, 1))


MAKE = """def make(start):
    total = start

    def add(amount):
        nonlocal total
        total = (total + amount) % 1009
        return total

    return add
"""


def program(seed: int, size: int = 2) -> str:
    """Write a module with the functions `make`, `helper` and `main`."""
    writer = ClosureWriter(seed)
    writer.in_function = True
    helper = writer.function("def helper(i, j):", 1).replace("3, i\n", "3, j\n", 1)
    writer.in_function = False
    writer.callable = []
    main = writer.function("def main(i):", size)
    return f"{MAKE}\n\n{helper}\n\n\n{main}\n"
