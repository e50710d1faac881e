"""Random plain-Python functions of integers, as source text.

Values stay small by `% 1009`, divisors are positive constants and operands of `//` and `%` are not negative,
so that Python and GLSL mean the same.
"""

from __future__ import annotations

import random


class Writer:
    """Writes one function of `i`."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.depth = 1
        self.loops = 0
        self.counters = 0
        self.names = ["a", "b", "c"]
        self.in_function = False

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def leaf(self) -> str:
        kind = self.random.random()
        if kind < 0.2:
            return str(self.random.randrange(0, 12))
        return self.random.choice([*self.names, "i"])

    def value(self, depth: int = 2) -> str:
        """Write a value that is not negative and not large."""
        if depth == 0:
            return self.leaf()
        kind = self.random.randrange(11)
        one, two = self.value(depth - 1), self.value(depth - 1)
        if kind < 3:
            return f"({one} + {two}) % 1009"
        if kind == 3:
            return f"({one} * {two}) % 1009"
        if kind == 4:
            return f"{one} // {self.random.randrange(1, 9)}"
        if kind == 5:
            return f"{one} % {self.random.randrange(1, 30)}"
        if kind == 6:
            return f"({one} if {self.condition(1)} else {two})"
        if kind == 7:
            return f"abs({one} - {two})"
        if kind == 8:
            return f"max({one}, {two})" if self.random.random() < 0.5 else f"min({one}, {two})"
        if kind == 9 and not self.in_function:
            return f"helper({one}, {two})"
        return one

    def condition(self, depth: int = 2) -> str:
        kind = self.random.randrange(8)
        if depth == 0 or kind < 3:
            symbol = self.random.choice(["<", "<=", ">", ">=", "==", "!="])
            return f"{self.value(1)} {symbol} {self.value(1)}"
        if kind == 3:
            return f"({self.condition(depth - 1)} and {self.condition(depth - 1)})"
        if kind == 4:
            return f"({self.condition(depth - 1)} or {self.condition(depth - 1)})"
        if kind == 5:
            return f"(not {self.condition(depth - 1)})"
        if kind == 6:
            return f"{self.leaf()} <= {self.value(1)} < {self.value(1)}"
        return f"{self.value(1)} % 3"

    def block(self, budget: int) -> None:
        self.depth += 1
        for _ in range(self.random.randrange(1, 4)):
            self.statement(budget - 1)
        self.depth -= 1

    def statement(self, budget: int) -> None:
        kind = self.random.randrange(16)
        if budget <= 0 or kind < 5:
            self.assignment()
        elif kind < 9:
            self.line(f"if {self.condition()}:")
            self.block(budget)
            while self.random.random() < 0.3:
                self.line(f"elif {self.condition()}:")
                self.block(budget)
            if self.random.random() < 0.6:
                self.line("else:")
                self.block(budget)
        elif kind < 11:
            self.while_loop(budget)
        elif kind < 13:
            self.for_loop(budget)
        elif kind == 13 and self.loops:
            self.jump()
        elif kind == 14:
            self.line(f"if {self.condition()}:")
            self.line(f"    return {self.value()}")
        else:
            self.assignment()

    def jump(self) -> None:
        self.line(f"if {self.condition()}:")
        self.depth += 1
        if self.random.random() < 0.5:
            self.assignment()
        self.line(self.random.choice(["break", "continue"]))
        self.depth -= 1

    def assignment(self) -> None:
        name = self.random.choice(self.names)
        kind = self.random.randrange(5)
        if kind == 0:
            self.line(f"{name} += {self.value(1)}")
            self.line(f"{name} %= 1009")
        elif kind == 1:
            other = self.random.choice(self.names)
            self.line(f"{name}, {other} = {self.value()}, {self.value()}")
        elif kind == 2:
            self.line(f"{name} = {self.random.choice([*self.names, 'i'])}")
        else:
            self.line(f"{name} = {self.value()}")

    def while_loop(self, budget: int) -> None:
        counter = f"n{self.counters}"
        self.counters += 1
        bound = self.random.choice([str(self.random.randrange(1, 4)), f"{self.value(1)} % 5", "i % 4"])
        self.line(f"{counter} = 0")
        self.line(
            f"while {counter} < {bound} and {self.condition(1)}:"
            if self.random.random() < 0.5
            else f"while {counter} < {bound}:"
        )
        self.line(f"    {counter} += 1")
        self.inside(budget)

    def for_loop(self, budget: int) -> None:
        counter = f"n{self.counters}"
        self.counters += 1
        items = self.random.choice(
            [
                f"range({self.random.randrange(0, 4)})",
                f"range({self.value(1)} % 5)",
                f"range({self.random.randrange(0, 3)}, i % 6, {self.random.randrange(1, 3)})",
                f"range(i % 5, -1, -{self.random.randrange(1, 3)})",
                f"[{self.leaf()}, {self.leaf()}]",
                f"({self.random.randrange(5)}, 2, {self.leaf()})",
            ]
        )
        self.line(f"{counter} = {self.leaf()}")
        self.line(f"for {counter} in {items}:")
        self.names.append(counter)
        self.inside(budget)
        if self.random.random() < 0.5:
            # its last value, behind the loop
            self.assignment()
        self.names.remove(counter)

    def inside(self, budget: int) -> None:
        self.loops += 1
        self.block(budget)
        if self.random.random() < 0.3:
            self.depth += 1
            self.jump()
            self.depth -= 1
        self.loops -= 1
        if self.random.random() < 0.2:
            self.line("else:")
            self.block(budget)

    def function(self, head: str, budget: int) -> str:
        self.lines = [head]
        self.line("a, b, c = i % 7, 3, i")
        for _ in range(self.random.randrange(2, 5)):
            self.statement(budget)
        self.line("return (a + 31 * b + 57 * c) % 10007")
        return "\n".join(self.lines)


def program(seed: int, size: int = 2) -> str:
    """Write a module with the functions `helper` and `main`."""
    writer = Writer(seed)
    writer.in_function = True
    helper = writer.function("def helper(i, j):", 1).replace("3, i\n", "3, j\n", 1)
    writer.in_function = False
    main = writer.function("def main(i):", size)
    return f"{helper}\n\n\n{main}\n"
