"""Random kernels as Python source, whose truth is Python itself.

Every name and buffer has a fixed range, so that no integer leaves the type that the device gives it: then a
kernel means the same with Python's integers. Every invocation writes elements of its own only, but for
atomics whose order does not show and for shared memory between barriers.
"""

from __future__ import annotations

from typing import Any

from .edge_sources import write_edge
from .source_model import RANGES
from .source_structures import TEXT, Structures
from .source_tree import Block, Buffer, Clause, Line, Parts, Program, Statement, Value
from .source_values import BOOL, FLOAT, INT, SLOTS, SMALL, Scope

FEATURES = (
    "base", "reads", "alias", "functions", "conversions", "narrow", "wide", "floats", "vectors", "shared",
    "subgroups", "atomics", "edges", "partial", "loops", "arithmetic",
    "structures", "stores",
)  # fmt: skip


# Functions that programs of a feature may call.
_FUNCTIONS = (
    ("structures", TEXT),
    (
        "reads",
        """def poke(buffer, place, value):
    old = buffer[place]
    buffer[place] = value
    return old""",
    ),
    (
        "vectors",
        """def touch(vector, value):
    vector.x = value""",
    ),
    (
        "stores",
        """def put(element, value):
    element[:] = value""",
    ),
    (
        "stores",
        """def put_all(elements, value):
    for element in elements:
        element[:] = value""",
    ),
    (
        "stores",
        """def now(element):
    return element""",
    ),
    (
        "shared",
        """def exchange(tile, lane, other, value):
    tile[lane] = value
    vc.barrier()
    found = tile[other]
    vc.barrier()
    return found""",
    ),
    (
        "functions",
        """def powered(x, n=3):
    if n == 0:
        return 1
    return x * powered(x, n - 1) % 1009""",
    ),
    (
        "functions",
        """def applied(x, y):
    def twice(f, z):
        return f(f(z))
    if x > y:
        return twice(lambda z: (z + y) % 100, x)
    return twice(abs, x)""",
    ),
    (
        "functions",
        """def counted(x, y):
    count = 0
    def bump(by):
        nonlocal count
        if by > 3:
            count += 1
        return count
    for n in range(3):
        if bump(x % 7) > y % 3:
            return count
        x = x // 2
    return bump(y) - 1""",
    ),
)


class Writer(Structures):
    """Writes one program."""

    # -- the program

    def helper(self) -> None:
        """Write a function of the module."""
        name = self.fresh("helper")
        self.scope = Scope()
        parameters = [Value((self.fresh("u"),), INT, -SMALL, SMALL) for _ in range(self.random.randint(1, 2))]
        self.scope.known, self.scope.assignable = list(parameters), list(parameters)
        result = Value((), INT, -SMALL, SMALL)
        self.result, self.uniform, self.in_kernel = result, False, False
        body: list[Statement] = [self.statement(2) for _ in range(self.random.randint(1, 3))]
        body.append(Line([["return ", self.value_for(result, 1)]], fixed=True))
        head = f"def {name}({', '.join(map(str, parameters))}):"
        self.functions.append(Block([Clause([head], body)]))
        self.made.append((name, parameters, result))
        self.result, self.uniform, self.in_kernel = None, True, True

    made: list[tuple[str, list[Value], Value]]

    def sizes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Invocations, and invocations of a workgroup."""
        if not self.has("partial"):
            return self.random.choice([((16,), (8,)), ((32,), (16,)), ((32,), (32,)), ((8, 4), (8, 2))])
        local: tuple[int, ...] = self.pick((8,), (16,), (8, 2), (8, 4), (4, 2), (8, 2, 2), (4, 2, 2), (32,))
        return tuple(self.random.randint(1, 2 * n + 1) for n in local), local

    def buffer(self, name: str, kind: str, size: int, low: int, high: int, *, owned: bool) -> None:
        """Add a parameter with a buffer of its own."""
        place = len(self.buffers)
        count = int(kind[-1]) if "v" in kind else 0
        scale = 4 if kind in ("f32", "v2", "v3", "v4") else 1

        def one() -> Any:
            drawn = self.random.randint(low * scale, high * scale)
            return drawn / scale if scale > 1 else bool(drawn) if kind == "b8" else drawn

        data = [[one() for _ in range(count)] if count else one() for _ in range(size)]
        self.buffers.append(Buffer(kind, data))
        self.parameters.append((name, place))
        types = {
            "i32": frozenset({"i32"}),
            "i8": frozenset({"i32"}),
            "u8": frozenset({"u32"}),
            "f32": FLOAT,
            "b8": BOOL,
        }
        scalar = {"iv": "i32", "uv": "u32", "v": "f32"}.get(kind.rstrip("234"), kind)
        self.elements[name] = Value(
            (), types.get(scalar, frozenset({scalar})), low, high, 2 if scale > 1 else 0
        )
        (self.owned if owned else self.read_only).append(name)

    def memory(self, total: int) -> None:
        """Draw the buffers of the program."""
        self.buffer("p", "i32", total * SLOTS, -SMALL, SMALL, owned=True)
        self.buffer("q", "i32", total * SLOTS, -SMALL, SMALL, owned=True)
        self.buffer("r", "i32", 16, -SMALL, SMALL, owned=False)
        if self.has("narrow") or self.has("arithmetic"):
            for name, kind in zip("st", self.random.sample(["i8", "u8", "i16", "u16"], 2), strict=True):
                low, high = RANGES[kind] if kind[1] == "8" else (-30000 if kind[0] == "i" else 0, 30000)
                self.buffer(name, kind, total * SLOTS, low, high, owned=True)
        if self.has("wide") or self.has("arithmetic"):
            for name, kind, low, high in self.random.sample(
                [("x", "i64", -(2**40), 2**40), ("y", "u64", 0, 2**63), ("z", "u32", 0, 2**32 - 1)], 2
            ):
                self.buffer(name, kind, total * SLOTS, low, high, owned=True)
        if self.has("floats") or self.has("arithmetic"):
            self.buffer("f", "f32", total * SLOTS, -64, 64, owned=True)
            self.buffer("b", "b8", total * SLOTS, 0, 1, owned=True)
        if self.has("vectors"):
            for name in ("v", "w"):
                self.buffer(name, self.pick("iv2", "iv3", "iv4"), total * SLOTS, 0, SMALL, owned=True)
        if self.has("atomics") or self.has("subgroups"):
            operations = ["add", self.pick("min", "max"), self.pick("and", "or", "xor")]
            kinds = ["i32", "i32", "i32" if not self.has("atomics") else self.pick("i32", "u32")]
            for number_of, (operation, kind) in enumerate(zip(operations, kinds, strict=True)):
                name = f"c{number_of}"
                self.buffer(name, kind, 4, 0, 1000, owned=False)
                self.read_only.remove(name)
                self.counters.append((name, operation, 4))
        if self.has("alias"):
            for name in self.random.sample(self.owned, min(2, len(self.owned))):
                other = f"{name}_too"
                place = next(place for each, place in self.parameters if each == name)
                self.parameters.append((other, place))
                self.elements[other] = self.elements[name]
                self.owned.append(other)

    def program(self) -> Program:
        self.made = []
        exec_size, local_size = self.sizes()
        total = 1
        for each in exec_size:
            total *= each
        for _ in range(self.random.randint(0, 2) + self.has("functions")):
            self.helper()
        self.memory(total)
        for feature, text in _FUNCTIONS:
            if self.barriers if feature == "shared" else self.has(feature):
                self.functions.append(
                    Line([[row] for row in text.splitlines()], fixed=feature == "structures")
                )
        if self.has("functions"):
            wide = [Value((), INT, -SMALL, SMALL)] * 2
            self.made += [
                ("powered", [Value((), INT, 0, 9)], wide[0]),
                ("applied", wide, wide[0]),
                ("counted", wide, wide[0]),
            ]
        self.scope = Scope()
        self.scope.functions = list(self.made)
        body = self.prologue(exec_size, local_size, total)
        for _ in range(self.random.randint(3, 6)):
            body.append(self.statement(2))
            if self.has("partial") and self.barriers and self.chance(0.5):
                body.append(self._exchange(1) or Line([["pass"]]))
        body += self.epilogue()
        names = ", ".join(name for name, _ in self.parameters)
        self.functions.append(Block([Clause([f"def kernel({names}):"], body)], fixed=True))
        return Program(
            self.seed, self.features, self.functions, self.buffers, self.parameters, exec_size, local_size
        )

    def prologue(
        self, exec_size: tuple[int, ...], local_size: tuple[int, ...], total: int
    ) -> list[Statement]:
        body: list[Statement] = []
        if len(exec_size) == 1:
            rows: list[Parts] = [["i = int(vc.global_invocation_id().x)"]]
            types = INT
            if self.chance(0.2):
                rows, types = [["i = vc.global_invocation_id().x"]], frozenset({"u32"})
        else:
            flat = f"g.x + {exec_size[0]} * g.y"
            if len(exec_size) == 3:
                flat += f" + {exec_size[0] * exec_size[1]} * g.z"
            rows, types = [["g = vc.global_invocation_id()"], [f"i = int({flat})"]], INT
        if self.barriers:
            rows += self.lanes(exec_size, local_size)
        body.append(Line(rows, fixed=True))
        self.scope.known.append(Value(("i",), types, 0, total - 1))
        if not (self.has("reads") or self.has("vectors")):
            # with code of the GPU, names held copies before they always did
            body.append(Line([["if i == 1000:"], [f"    p[i * {SLOTS}] = 0"]], fixed=True))
        if self.has("structures"):
            body.append(self.declare_structures())
        return [*body, *(self._declare(0) for _ in range(3))]

    def lanes(self, exec_size: tuple[int, ...], local_size: tuple[int, ...]) -> list[Parts]:
        """Return the invocation's index among the active ones of its workgroup."""
        count = 1
        for each in local_size:
            count *= each
        rows: list[Parts] = [
            [f"tile = vc.shared_buffer(vc.i32, {count}, 'tile')"],
            ["at = vc.local_invocation_id()"],
            ["group = vc.workgroup_id()"],
        ]
        lane, live = "", ""
        for axis, (size, local) in enumerate(zip(exec_size, local_size, strict=True)):
            letter = "xyz"[axis]
            rows.append([f"live_{letter} = min({local}, {size} - int(group.{letter}) * {local})"])
            stride = "".join(f"live_{each} * " for each in "xyz"[:axis])
            lane += f"{' + ' if lane else ''}{stride}int(at.{letter})"
            live += f"{' * ' if live else ''}live_{letter}"
        return [*rows, [f"lane = {lane}"], [f"live = {live}"]]

    def epilogue(self) -> list[Statement]:
        """Store what the names hold."""
        found: list[Statement] = []
        for each in self.scope.known[1:]:
            if each.types == FLOAT:
                target = "p"
                value: Value = Value(("int(", each, " * 4)"), INT, -256, 256)
            elif each.types == BOOL:
                target, value = "q", Value(("(1 if ", each, " else 0)"), INT, 0, 1)
            else:
                target, value = self.pick("p", "q"), each
            name = target
            element = self.elements[name]
            stored = self.coerced(value, Value((), INT, element.low, element.high))
            found.append(Line([[f"{name}[i * {SLOTS} + {self.random.randrange(SLOTS)}] = ", stored]]))
        return [*found, *self.store_structures(SLOTS)] if self.has("structures") else found


def write(seed: int, features: tuple[str, ...]) -> Program:
    """Write the program of a seed."""
    if "edges" in features:
        return write_edge(seed, features)
    return Writer(seed, features).program()
