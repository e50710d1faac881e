"""Statements of the features of random kernels."""

from __future__ import annotations

from .source_statements import Rule, Statements
from .source_tree import Block, Clause, Line, Parts, Statement, Value
from .source_values import BOOL, FLOAT, INT, NATURAL, SMALL, Scope


class Features(Statements):
    """Draws the statements of features as well."""

    def rules(self, depth: int) -> list[tuple[float, Rule]]:
        """Statements that may stand here, and how likely they are."""
        rules = super().rules(depth)
        if self.has("functions"):
            rules.append((3, self._nested_function))
        if self.has("conversions"):
            rules.append((5, self._same_value))
        if self.has("loops"):
            rules += [(2, self._gathered), (1, self._endless)]
        if not self.in_kernel:
            return rules
        if self.has("shared") and self.uniform:
            rules.append((6, self._exchange))
        of_kernels: list[tuple[str, float, Rule]] = [
            ("reads", 5, self._reads),
            ("vectors", 6, self._vectors),
            ("atomics", 4, self._atomic),
            ("subgroups", 4, self._subgroup),
            ("loops", 3, self._long_loop),
            ("stores", 8, self._stores),
        ]
        return rules + [(weight, rule) for feature, weight, rule in of_kernels if self.has(feature)]

    def _reads(self, depth: int) -> Statement | None:
        """A name bound to an element, which then changes."""
        name, other = self.own(), self.own()
        element = self.elements[name]
        form = self.random.randrange(10)
        if form in (0, 1, 2):
            read = self._own_read(name)
            return Line([[f"{self.declared(element, 'd')} = ", read]])
        if form == 3 and self.elements[other].fits(element):
            one, two = self.fresh("d"), self.fresh("d")
            read = self._own_read(other)
            for each in (one, two):
                value = Value((each,), element.types, element.low, element.high, element.fraction)
                self.scope.known.append(value)
                self.scope.assignable.append(value)
            return Line([[f"{one} = {two} = ", read]])
        if form == 4 and name and self.kind(name) not in ("i8", "u8"):
            a, b = self.slot(), self.slot()
            return Line([[f"{name}[", a, f"], {name}[", b, f"] = {name}[", b, f"], {name}[", a, "]"]])
        if form == 5:
            first = self._own_read(name)
            second = self._own_read(other)
            names = f"{self.declared(element, 'd')}, {self.declared(self.elements[other], 'd')}"
            return Line([[f"{names} = ", first, ", ", second]])
        if form == 6:
            pair = self.fresh("t")
            first, second = self._own_read(name), self.any_value(other, 1)
            place, value = self.slot(), self.stored(name, self.any_value(name, 1))
            held = self.declared(element, "d")
            kind = self.pick(("(", ")"), ("[", "]"))
            return Line(
                [
                    [f"{pair} = {kind[0]}", first, ", ", second, kind[1]],
                    [f"{name}[", place, "] = ", value],
                    [f"{held} = {pair}[0]"],
                ]
            )
        if form == 7:
            late = self.fresh("g")
            held_read = self._own_read(name)
            place, value = self.slot(), self.stored(name, self.any_value(name, 1))
            held = self.declared(element, "d")
            return Line(
                [
                    [f"{late} = lambda: ", held_read],
                    [f"{name}[", place, "] = ", value],
                    [f"{held} = {late}()"],
                ]
            )
        if form == 8 and element.types not in (BOOL, FLOAT) and self.kind(name) == "i32":
            # a helper that stores between two reads
            read, again = self._own_read(name), self._own_read(name)
            place, value = self.slot(), self.stored(name, self.any_value(name, 1))
            target = self.declared(Value((), INT, -SMALL, SMALL))
            total = Value(
                (read, f" - poke({name}, ", place, ", ", value, ") + ", again), INT, -4 * SMALL, 4 * SMALL
            )
            return Line([[f"{target} = ", Value(("(", total, f") % {SMALL}"), INT, 0, SMALL)]])
        if form == 9 and element.types not in (BOOL, FLOAT) and self.kind(name) == "i32":
            step = self.coerced(self.integer(1), Value((), INT, 0, 100))
            read = self._own_read(name)
            held = self.declared(Value((), element.types, element.low, element.high), "d")
            return Line([[f"{held} = ", read], [f"{held} += ", step], [f"{held} %= {int(element.high) + 1}"]])
        return None

    def _own_read(self, name: str) -> Value:
        element = self.elements[name]
        return Value(
            (f"{name}[", self.slot(), "]"), element.types, element.low, element.high, element.fraction
        )

    def _same_value(self, depth: int) -> Statement | None:
        """Bind a name to another one's value through what changes nothing, and then change one of the two."""
        known = [each for each in self.scope.known if each.types in (INT, NATURAL, FLOAT)]
        if not known:
            return None
        old = self.random.choice(known)
        real = old.types == FLOAT
        forms = ["+{}", "({}, 0)[0]", "[{}][0]", "(lambda: {})()", "min({0}, {0})", "({0} if 1 < 2 else {0})"]
        forms += (
            ["float({})", "1.0 * {}"]
            if real
            else ["int({})", "vc.to_int({})", "{} + 0", "1 * {}", "({} | 0)"]
        )
        # a name that may be unsigned stays so, or becomes an int32
        target = old if real else Value((), NATURAL, old.low, old.high) if old.types == NATURAL else old
        text = self.random.choice([each for each in forms if "|" not in each or old.low >= 0]).format(old)
        new = self.declared(Value((), target.types, old.low, old.high, old.fraction))
        changed = self.random.choice([new, old] if old in self.scope.assignable else [new])
        by = self.pick("0.25", "-0.5") if real else str(self.random.randint(1, 9))
        rows: list[Parts] = [[f"{new} = {text}"], [f"{changed} += {by}"]]
        if real:
            rows.append([f"{changed} = float(int({changed}) % 64)"])
        else:
            rows.append([f"{changed} %= {int(old.high) + 1}"])
        return Line(rows)

    def _vectors(self, depth: int) -> Statement | None:
        """Vectors, which names share, and parts of them."""
        name = self.random.choice([each for each in self.owned if not self.is_scalar(each)])
        kind, element = self.kind(name), self.elements[name]
        known = [value for value, each in self.scope.vectors if each == kind]
        if not known or self.chance(0.25):
            return self._new_vector(name)
        vector, other = self.random.choice(known), self.random.choice(known)
        letters = "xyzw"[: int(kind[-1])]
        letter, order = self.random.choice(letters), "".join(self.random.sample(letters, len(letters)))
        place = Value((f"{name}[", self.slot(), "]"), frozenset({kind}))
        one, two = self.component(element), self.random.randint(1, 5)
        bound = int(element.high) + 1
        simple: list[Parts] = [
            [f"{vector}.{letter} = ", one],
            [f"{vector}[{letters.index(letter)}] = ", one],
            [f"{vector}.{order[:2]} = {other}.{order[-2:]}"],
            [f"{vector}.{order[0]}, {other}.{order[1]} = {other}.{order[1]}, {vector}.{order[0]}"],
            [place, f".{letter} = ", one],
            [place, f" = {vector}"],
            [place, f" = ({vector} + {other} * {two}) % {bound}"],
            [place, f" = {vector}.{order}"],
            [place, f" = {vector} if ", self.condition(1), f" else {other}"],
        ]
        form = self.random.randrange(len(simple) + 4)
        if form < len(simple):
            return Line([simple[form]])
        if form == len(simple):
            # a new vector: what other names share stays
            return (
                Line([[f"{vector} {self.pick('+=', '*=')} {other}"], [f"{vector} %= {bound}"]])
                if self.uniform
                else None
            )
        if form == len(simple) + 1:
            return Line([[place, f".{letter} += ", one], [place, f".{letter} %= {bound}"]])
        if form == len(simple) + 2:
            return Line([[place, f" += {vector}"], [place, f" %= {bound}"]])
        target = self.declared(Value((), INT, element.low, element.high))
        read = self.pick(
            f"{vector}.{letter}", f"{vector}[i % {len(letters)}]", f"{vector}.{order}.{letters[0]}"
        )
        # where the GPU decides, functions change only what is assigned to by its name too
        named: list[Parts] = [] if self.uniform else [[f"{vector}.{letter} = ", one]]
        return Line([*named, [f"touch({vector}, ", one, ")"], [f"{target} = {read}"]])

    def _new_vector(self, name: str) -> Statement:
        """Bind a name to an element, to a vector that is made, or to one that has a name."""
        kind, element = self.kind(name), self.elements[name]
        known = [value for value, each in self.scope.vectors if each == kind]
        count = int(kind[-1])
        value: Parts = [f"{name}[", self.slot(), "]"]
        form = self.random.randrange(4)
        if form == 0:
            value = [f"vc.to_ivec{count}("]
            for place in range(count):
                value += [", " if place else "", self.component(element)]
            value.append(")")
        elif form == 1 and known:
            value = [str(self.random.choice(known))]
        if known and self.uniform and not self.loops and self.chance(0.2):
            return Line([[f"{self.random.choice(known)} = ", *value]])
        vector = Value((self.fresh("v"),), frozenset({kind}), element.low, element.high)
        self.scope.vectors.append((vector, kind))
        return Line([[f"{vector} = ", *value]])

    def _stores(self, depth: int) -> Statement | None:
        """Stores by a name of an element, or of a part of one, and what the name reads then."""
        name = self.random.choice(self.owned)
        kind, element = self.kind(name), self.elements[name]
        part = ""
        if not self.is_scalar(name) and self.chance(0.6):
            letters = "xyzw"[: int(kind[-1])]
            part = "." + "".join(self.random.sample(letters, self.random.randint(1, len(letters))))
        count = len(part) - 1 if part else 0 if self.is_scalar(name) else int(kind[-1])

        def value() -> Parts:
            if self.is_scalar(name):
                return [self.stored(name, self.any_value(name, 1))]
            if count == 1:
                return [self.component(element)]
            parts = [part for _ in range(count) for part in (", ", self.component(element))]
            return [f"vc.to_ivec{count}(", *parts[1:], ")"]

        place, one, other = self.fresh("place"), self.slot(), self.slot()
        form = self.random.randrange(4)
        opening, closing = self.pick("[]", "()")
        rows: list[Parts] = [[f"{place} = {name}[", one, f"]{part}"]]
        if form == 0:
            rows.append([f"{place}_too = {place}"])
            place += "_too"
        elif form == 1:
            pair = [f"{opening}{name}[", other, f"]{part}, {name}[", one, f"]{part}{closing}"]
            rows = [[f"{place} = ", *pair]]
            place += "[1]"
        for _ in range(self.random.randint(1, 2)):
            form = self.random.randrange(6)
            if form == 0:
                rows.append([f"put({place}, ", *value(), ")"])
            elif form == 1:
                rows.append([f"put_all([{place}], ", *value(), ")"])
            elif form == 2:
                rows += [["if ", self.condition(1), ":"], [f"    {place}[:] = ", *value()]]
            elif form == 3:
                count_of = self.pick("range(2)", "vc.range(2)", "range(70)", "vc.range(i % 3)")
                rows += [[f"for {self.fresh('n')} in {count_of}:"], [f"    {place}[:] = ", *value()]]
            elif form == 4 and kind == "i32":
                rows += [[f"{place}[:] += ", *value()], [f"{place}[:] %= {int(element.high) + 1}"]]
            else:
                rows.append([f"{place}[:] = ", *value()])
        return Line([*rows, [f"{name}[", self.slot(), f"]{part} = now({place})"]])

    def component(self, element: Value) -> Value:
        return self.coerced(self.integer(1), Value((), INT, element.low, element.high))

    def _atomic(self, depth: int) -> Statement | None:
        form = self.random.randrange(5)
        name, operation, size = self.random.choice(self.counters)
        kind = self.kind(name)
        index = self.remainder(self.signed(self.reduced(self.integer(1))), size)
        operand = self.coerced(
            self.integer(1), Value((), INT if kind in ("i32", "i64") else NATURAL, 0, 1000)
        )
        if form < 3:
            return Line([[f"vc.atomic_{operation}({name}[", index, "], ", operand, ")"]])
        owned = [each for each in self.owned if self.kind(each) in ("i32", "u32")]
        if not owned:
            return None
        own = self.random.choice(owned)
        element = self.elements[own]
        operand = self.coerced(operand, Value((), NATURAL, 0, 500))
        # nobody else has this element: what was there before is known
        place, expected = self.slot(), self.coerced(self.integer(1), Value((), INT, 0, 3))
        held = self.declared(
            Value((), frozenset({self.kind(own)}), element.low, element.high), "d", assignable=False
        )
        if form == 3:
            return Line(
                [
                    [
                        f"{held} = vc.atomic_{self.pick('min', 'max', 'exchange')}({own}[",
                        place,
                        "], ",
                        operand,
                        ")",
                    ]
                ]
            )
        return Line(
            [[f"{held} = vc.atomic_compare_exchange({own}[", place, "], ", expected, ", ", operand, ")"]]
        )

    def _subgroup(self, depth: int) -> Statement | None:
        """Something whose outcome does not depend on the size of subgroups."""
        form = self.random.randrange(6)
        value = self.coerced(self.integer(1), Value((), INT, 0, 1000))
        whole = Value(("vc.to_int(", value, ")"), frozenset({"i32"}), 0, 1000)
        name, operation, size = self.random.choice(
            [each for each in self.counters if self.kind(each[0]) == "i32"]
        )
        part = self.fresh("s")
        if form <= 1:
            return Line(
                [
                    [f"{part} = vc.subgroup_{operation}(", whole, ")"],
                    ["if vc.subgroup_elect():"],
                    [f"    vc.atomic_{operation}({name}[{self.random.randrange(size)}], {part})"],
                ]
            )
        if form == 2:
            adds = [each for each in self.counters if each[1] == "add" and self.kind(each[0]) == "i32"]
            name, _, size = self.random.choice(adds)
            return Line(
                [
                    [f"{part} = vc.subgroup_ballot_bit_count(vc.subgroup_ballot(", self.condition(1), "))"],
                    ["if vc.subgroup_elect():"],
                    [f"    vc.atomic_add({name}[{self.random.randrange(size)}], {part})"],
                ]
            )
        if form == 3:
            target = self.declared(Value((), INT, 0, 1000))
            other = self.fresh("s")
            return Line(
                [
                    [f"{other} = ", whole],
                    [f"{part} = vc.subgroup_exclusive_add({other})"],
                    [f"{target} = vc.subgroup_inclusive_add({other}) - {part}"],
                ]
            )
        if form == 4:
            with self.divergent():
                flag = self.fresh("s")
                return Block(
                    [Clause([f"if vc.subgroup_any({flag}) and {flag}:"], self.block(max(0, depth - 1)))],
                    before=[[f"{flag} = ", self.condition(1)]],
                )
        target = self.declared(Value((), INT, 0, 1000))
        return Line([[f"{target} = vc.subgroup_shuffle(", whole, ", vc.subgroup_invocation_id())"]])

    def _long_loop(self, depth: int) -> Statement | None:
        targets = [each for each in self.scope.assignable if each.types in (INT, NATURAL)]
        if not targets or self.loops:
            return None
        target = self.random.choice(targets)
        name = self.fresh("n")
        count = self.pick(62, 63, 64, 65, 66, 100, 130)
        items = self.pick(
            f"range({count})",
            f"vc.range({count})",
            f"range(3, {count}, 2)",
            f"range({count}, 0, -1)",
            f"range({2 * count}, 3, -2)",
            f"reversed(range({count}))",
            f"reversed(vc.range(3, {count}, 2))",
        )
        high = 300
        with self.nested(), self.divergent(loop=True):
            counter = Value((name,), NATURAL, 0, high)
            self.scope.known.append(counter)
            calls, self.calls = self.calls, 0
            body: list[Statement] = [
                Line([[f"{target} = ", self.coerced(self.binary("+", target, self.integer(1)), target)]])
            ]
            if self.chance(0.5):
                body.append(self._jump(0) if self.chance(0.5) else self._assign(0))
            self.calls = calls
        clauses = [Clause([f"for {name} in {items}:"], body)]
        if self.chance(0.3):
            with self.divergent():
                clauses.append(Clause(["else:"], self.block(0, 1)))
        return Block(clauses)

    def _nested_function(self, depth: int) -> Statement | None:
        """Define a function inside, which may change names around it."""
        if len(self.scope.functions) > 4:
            return None
        name = self.fresh("inner")
        captured = [
            each for each in self.scope.assignable if each.types in (INT, NATURAL) and str(each)[0] != "u"
        ]
        parameter = Value((self.fresh("u"),), INT, -SMALL, SMALL)
        result = Value((), INT, -SMALL, SMALL)
        if self.chance(0.25):
            with self.nested():
                self.scope.known.append(parameter)
                value = self.coerced(self.integer(1), result)
            self.scope.functions.append((name, [parameter], result))
            return Line([[f"{name} = lambda {parameter}: ", value]])
        outer, self.scope = self.scope, Scope()
        before = self.result, self.uniform, self.loops, self.in_kernel, self.calls
        self.scope.known = [*outer.known, parameter]
        self.scope.functions = list(outer.functions)
        self.scope.assignable = [parameter]
        self.result, self.uniform, self.loops, self.in_kernel, self.calls = result, False, 0, False, 1
        body: list[Statement] = []
        if captured and self.chance(0.5):
            changed = self.random.choice(captured)
            body.append(Line([[f"nonlocal {changed}"]], fixed=True))
            body.append(Line([[f"{changed} = ", self.value_for(changed, 1)]]))
        extra: list[Value] = []
        head = f"def {name}({parameter}"
        if self.chance(0.4):
            default = Value((self.fresh("u"),), INT, -SMALL, SMALL)
            self.scope.known.append(default)
            extra.append(default)
        body += self.block(1, 2)
        body.append(Line([["return ", self.value_for(result, 1)]], fixed=True))
        known = self.scope
        self.scope = outer
        self.result, self.uniform, self.loops, self.in_kernel, self.calls = before
        del known
        parts: Parts = [head]
        for default in extra:
            parts += [f", {default}=", self.coerced(self.integer(1), default)]
        outer.functions.append((name, [parameter], result))
        return Block([Clause([*parts, "):"], body)])

    def _exchange(self, depth: int) -> Statement | None:
        """Give values to other invocations of the workgroup."""
        if self.loops == 0 and depth > 0 and self.chance(0.25):
            name = self.fresh("n")
            count = self.random.randint(1, 3)
            loops, self.loops = self.loops, 0
            with self.nested():
                self.scope.known.append(Value((name,), NATURAL, 0, 3))
                body = [self.statement(1), self._swap(), self.statement(1)]
            self.loops = loops
            items = self.pick(
                f"range({count})", f"vc.range({count})", f"range(1 + vc.workgroup_id().x % {count})"
            )
            return Block([Clause([f"for {name} in {items}:"], body)])
        return self._swap()

    def _swap(self) -> Statement:
        value = self.coerced(self.integer(2), Value((), INT, -SMALL, SMALL))
        step = self.random.randint(1, 7)
        if self.chance(0.3):
            target = self.declared(Value((), INT, -SMALL, SMALL))
            return Line([[f"{target} = exchange(tile, lane, (lane + {step}) % live, ", value, ")"]])
        if self.chance(0.3):
            condition = self.condition(1)
            target = self.declared(Value((), INT, 0, 1000))
            return Line(
                [
                    ["tile[lane] = 0"],
                    ["vc.barrier()"],
                    ["if ", condition, ":"],
                    [f"    vc.atomic_add(tile[(lane + {step}) % live], lane % 4)"],
                    ["vc.barrier()"],
                    [f"{target} = tile[lane]"],
                    ["vc.barrier()"],
                ]
            )
        target = self.declared(Value((), INT, -SMALL, SMALL))
        return Line(
            [
                ["tile[lane] = ", value],
                ["vc.barrier()"],
                [f"{target} = tile[(lane + {step}) % live]"],
                ["vc.barrier()"],
            ]
        )

    def _gathered(self, depth: int) -> Statement:
        """Python's own iterables and comprehensions."""
        target = Value((), INT, 0, SMALL)
        one, two = self.coerced(self.integer(1), target), self.coerced(self.integer(1), target)
        name = self.fresh("m")
        count = self.random.randint(1, 4)
        form = self.random.randrange(5)
        if form <= 1:
            with self.nested():
                self.scope.known.append(Value((name,), INT, 0, 4))
                calls, self.calls = self.calls, 0
                term = self.coerced(self.integer(1), target)
                self.calls = calls
            opening, closing = self.pick(("", ""), ("[", "]"))
            line: Parts = [f"sum({opening}", term, f" for {name} in range({count}){closing}) % {SMALL}"]
            return Line([[f"{self.declared(target)} = ", *line]])
        total = self.declared(target)
        if form == 2:
            head: Parts = [f"for {name}, {name}_too in enumerate((", one, ", ", two, ", 5)):"]
        elif form == 3:
            head = [f"for {name}, {name}_too in zip(range({count}), [", one, ", ", two, ", 7]):"]
        else:
            head = [f"for {name}_too, {name} in [(1, ", one, "), (2, ", two, ")]:"]
        body: list[Statement] = [Line([[f"{total} = ({total} * 3 + {name} + {name}_too) % {SMALL}"]])]
        if self.chance(0.3):
            with self.divergent(loop=True):
                body.append(self._jump(0))
        return Block([Clause(head, body)], before=[[f"{total} = 0"]])

    def _endless(self, depth: int) -> Statement:
        fuel = self.fresh("n")
        rounds = self.random.randint(1, 5)
        with self.divergent(loop=True):
            end = Line([[f"{fuel} += 1"], [f"if {fuel} > {rounds}:"], ["    break"]], fixed=True)
            body: list[Statement] = [end, *self.block(max(0, depth - 1)), self._jump(0)]
        return Block([Clause([self.pick("while True:", "while 1:")], body)], before=[[f"{fuel} = 0"]])
