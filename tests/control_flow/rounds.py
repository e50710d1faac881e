"""Random plain-Python functions with loops over many of Python's numbers, as source text."""

from __future__ import annotations

from .closures import MAKE, ClosureWriter


class RoundsWriter(ClosureWriter):
    """Writes functions whose loops have about as many rounds as become a loop of the GPU."""

    def for_loop(self, budget: int) -> None:
        if self.loops or self.level or self.in_function or self.random.random() < 0.2:
            # one in another one takes Python long
            super().for_loop(budget)
            return
        counter = f"n{self.counters}"
        self.counters += 1
        count = self.random.choice((63, 64, 65, 70))
        start = self.random.randrange(0, 9)
        items = self.random.choice(
            [f"range({count})", f"range({start}, {count + start})", f"range({2 * count}, 0, -2)"]
        )
        if self.random.random() < 0.5:
            self.line(f"{counter} = {self.leaf()}")
            self.line(f"for {counter} in {items}:")
        else:
            self.line(f"for {counter} in {items}:")
        self.names.append(counter)
        self.inside(budget)
        if self.random.random() < 0.5:
            self.assignment()
        self.names.remove(counter)

    def assignment(self) -> None:
        sums = [name for name in self.names if name in ("a", "b", "c")]
        if self.loops and sums and self.random.random() < 0.4:
            # of a loop's usual kind
            name, counter = self.random.choice(sums), self.random.choice(self.names)
            self.line(
                self.random.choice(
                    [
                        f"{name} = ({name} * 3 + {counter}) % 1009",
                        f"{name} = max({name}, {self.value(1)})",
                        f"{name} += {counter} // 2",
                        f"{name} = ({self.value(1)} + {counter} % 5) % 1009",
                    ]
                )
            )
            if "+=" in self.lines[-1]:
                self.line(f"{name} %= 1009")
            return
        super().assignment()


def program(seed: int, size: int = 2) -> str:
    """Write a module with the functions `make`, `helper` and `main`."""
    writer = RoundsWriter(seed)
    writer.in_function = True
    helper = writer.function("def helper(i, j):", 1).replace("3, i\n", "3, j\n", 1)
    writer.in_function = False
    writer.callable = []
    main = writer.function("def main(i):", size)
    return f"{MAKE}\n\n{helper}\n\n\n{main}\n"
