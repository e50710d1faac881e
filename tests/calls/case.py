"""One call: the arrays that it takes, how it is written, and what NumPy makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from . import maps, truth
from .choices import Choices
from .surface import parameters
from .truth import Expected, expected, refuse
from .values import INTEGERS, KINDS, VECTORS, Array, Shape, host_of, values

_EDGES = (
    1, 2, 3, 5, 7, 8, 4, 16, 17, 31, 33, 0, 64, 63, 65, 100, 127, 128, 129, 255, 256, 257, 300, 513, 1000,
    1023, 1025, 1, 2, 3, 2049, 4097,
)  # fmt: skip
_LONG = (6000, 8192, 8193, 10007, 16385, 33000, 65537)
_MOST = 12_000
# Names that truths may use; a truth is an expression over the host arrays by their names.
TRUTHS: dict[str, Any] = {"np": np, "refuse": refuse, "maps": maps, "truth": truth}


@dataclass(frozen=True)
class Host:
    """An array of the call: made anew, with other values, for each queue or submit."""

    name: str
    kind: str
    shape: Shape
    fill: str
    seed: int
    limit: int = 0

    def make(self, variant: int) -> Array:
        return values(self.kind, self.shape, self.fill, self.seed + 7919 * variant, self.limit)

    def text(self, variant: int) -> str:
        limit = f", {self.limit}" if self.limit else ""
        call = f"values({self.kind!r}, {self.shape}, {self.fill!r}, {self.seed + 7919 * variant}{limit})"
        array = self.make(variant)
        if not array.size:
            return f"np.empty({array.shape}, np.{host_of(self.kind).name})"
        if array.size > 24 or self.fill == "bits":
            return call
        numbers = repr(array.tolist()).replace("nan", "np.nan").replace("inf", "np.inf")
        return f"np.array({numbers}, np.{host_of(self.kind).name})"


@dataclass
class Case:
    """A call, as text.

    Attributes
    ----------
    function
        The public function, such as "vd.sum".
    arrays
        Host arrays; each is a buffer too, by the same name in capitals.
    lines
        What is done before the call: statements.
    call
        An expression.
    results
        An expression of the buffers, arrays or futures to look at, in which `result` is what the call
        returned.
    truth
        An expression over the host arrays: one of what is expected, or a tuple.
    changed
        Names of the arrays that may be written.
    graph
        Whether the call is recorded, and submitted once the arrays have other values.
    queues
        How many queues the context has; each has values of its own.
    excuse
        Why the call may be refused, though NumPy computes it.
    signature
        Where the names of arguments are, if not in `function`; "" for those in `names`.
    names
        Further names that a refusal may give.
    seed
        What the generator of the call begins with: SEED in `lines` and `truth`.
    """

    function: str
    arrays: dict[str, Host] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    call: str = ""
    results: str = "result"
    truth: str = ""
    changed: set[str] = field(default_factory=set)
    graph: bool = False
    queues: int = 1
    excuse: str = ""
    signature: str | None = None
    names: tuple[str, ...] = ()
    seed: int | None = None

    def renew(self, round: int) -> Case:
        """Return the same call with other values."""
        hosts = {name: replace(each, seed=each.seed + 104729 * round) for name, each in self.arrays.items()}
        return replace(self, arrays=hosts, seed=None if self.seed is None else self.seed + round)

    @property
    def variants(self) -> int:
        """How many sets of values there are."""
        return 2 if self.graph else self.queues

    def expectations(self, variant: int) -> tuple[Expected, ...]:
        """Return what is expected of a set of values; raises what NumPy raises."""
        namespace = {
            **TRUTHS,
            "SEED": self.seed,
            **{name: each.make(variant) for name, each in self.arrays.items()},
        }
        with np.errstate(all="ignore"):
            found = eval(self.truth, namespace)
        return tuple(expected(each) for each in (found if isinstance(found, tuple) else (found,)))


class Sketch:
    """A case being written by choices."""

    def __init__(self, choices: Choices, function: str) -> None:
        self.choices = choices
        self.case = Case(function)
        self.options: list[str] = []
        self._count = 0
        self._in_place = ("", "")  # an output that is an input, and one that is none
        mode = choices.below(100)
        self.case.queues = 2 if mode >= 88 else 1
        self.case.graph = 76 <= mode < 88

    # -- choices

    def below(self, count: int) -> int:
        return self.choices.below(count)

    def chance(self, percent: int) -> bool:
        return self.choices.chance(percent)

    def pick(self, options: Sequence[Any]) -> Any:
        return self.choices.pick(options)

    def shape(self, least: int = 0, most: int = 5, smallest: int = 0) -> Shape:
        """Return a shape, of not too many elements."""
        axes = self.pick([axes for axes in (1, 2, 3, 0, 4, 5) if least <= axes <= most])
        if axes == 1 and self.chance(12):
            return (int(self.pick(_LONG)),)
        sizes: list[int] = []
        for _ in range(axes):
            room = _MOST // max(1, int(np.prod(sizes, dtype=int)))
            sizes.append(self.pick([each for each in _EDGES if smallest <= each <= room]))
        return tuple(sizes)

    def kind(self, kinds: Sequence[str] = KINDS) -> str:
        kind: str = self.pick(kinds)
        return kind

    # -- arrays

    def array(self, kind: str, shape: Shape, fill: str, limit: int = 0) -> str:
        """Add an array, and return its name."""
        name = "abcdefgh"[self._count]
        self._count += 1
        self.case.arrays[name] = Host(name, kind, shape, fill, self.below(1000), limit)
        return name

    def input(
        self, kind: str, shape: Shape, fill: str, limit: int = 0, *, maps: bool = True
    ) -> tuple[str, str]:
        """Add an array, perhaps behind a map; return how it is written, and how for the truth."""
        mapped = self.below(12) if maps and kind not in VECTORS and shape else 0
        arithmetic = kind != "bool_" and fill in ("small", "few", "normal", "flags")
        if mapped == 9 and arithmetic:
            name = self.array(kind, shape, fill)
            return f"maps.twice({kind!r})({name.upper()})", f"maps.host_twice({name})"
        if mapped == 10 and arithmetic:
            name, other = self.array(kind, shape, fill), self.array(kind, shape, fill)
            return (
                f"maps.total({kind!r})({name.upper()}, {other.upper()})",
                f"maps.host_total({name}, {other})",
            )
        if mapped == 11 and kind in ("int32", "uint8", "int64", "float32"):
            source = {"int32": "int16", "uint8": "uint32", "int64": "uint8", "float32": "int32"}[kind]
            if fill in ("small", "few", "flags", "index", "below"):
                if (fill == "index" or fill == "below") and limit > 250:
                    source = "int32" if kind != "int32" else "int64"
                name = self.array(source, shape, fill, limit)
                return (
                    f"maps.convert({source!r}, {kind!r})({name.upper()})",
                    f"maps.host_convert({name}, {kind!r})",
                )
        name = self.array(kind, shape, fill, limit)
        return name.upper(), name

    # -- arguments

    def axis(self, dimensions: int, *, several: bool = False, none: bool = True) -> tuple[str, bool]:
        """Return an axis as text, and whether it is a right one."""
        right: list[str] = ["None"] if none else []
        right += [str(axis) for axis in range(-dimensions, dimensions)]
        right += [f"np.int64({dimensions - 1})"] if dimensions else []
        if several and dimensions:
            right += ["(0,)", "(-1,)", "()"]
        if several and dimensions > 1:
            right += ["(0, 1)", "(-1, 0)", "(1, -2)"]
        if several and dimensions > 2:
            right += ["(0, 2)", "(0, 1, 2)", "(2, 1)"]
        if self.chance(94) and right:
            # the simplest choice is the first
            return right[self.below(len(right))], True
        wrong = [
            str(dimensions),
            str(-dimensions - 1),
            "True",
            "1.0",
            "'0'",
            "9",
            "np.bool_(False)",
            "10**30",
        ]
        if several and dimensions:
            wrong += ["(0, 0)", f"(0, {dimensions})", "(0, 0.0)", f"(0, -{dimensions})"]
        if not none:
            wrong.append("None")
        return self.pick(wrong), False

    def option(self, name: str, text: str) -> None:
        self.options.append(f"{name}={text}")

    def flag(self, name: str, percent: int = 25) -> bool:
        """Perhaps add an option that is True."""
        if not self.chance(percent):
            return False
        self.option(name, "True")
        return True

    def wrong_dtype(self) -> bool:
        """Perhaps give a dtype that is none."""
        if not self.chance(3):
            return False
        self.option("dtype", self.pick(["'no'", "3", "object", "np.longdouble", "[1.0]", "vd.Buffer"]))
        self.refuses("dtype")
        return True

    # -- results

    def refuses(self, why: str) -> None:
        """Say that the call has to be refused."""
        self.case.truth = f"refuse({why!r})"

    def out(self, name: str = "out", *, inputs: Sequence[str] = ()) -> None:
        """Perhaps give a buffer for the result: a right one, a wrong one, or one of the inputs.

        To be called once the truth is written, of one result.
        """
        how, adds = self.below(20), self.chance(7)
        if how < 13 and not adds:
            return
        try:
            found = self.case.expectations(0)
        except (TypeError, ValueError, IndexError, OverflowError, ArithmeticError):
            return
        if len(found) != 1:
            return
        kind, shape = found[0].kind, found[0].shape
        if adds and found[0].bound is None:
            self._add_input(kind, shape)
        if how < 13:
            return
        if how >= 18 and inputs:
            # aliasing: to be computed as if there were none, or refused
            given = self.case.arrays[self.pick(inputs)]
            buffer = given.name.upper()
            self.option(name, f"{buffer}.view(vd.{given.kind})" if self.chance(25) else buffer)
            self._in_place = (self.options[-1], f"{name}=fresh({kind!r}, {shape})")
            self.case.changed.add(given.name)
            self.case.excuse = "aliasing"
            if (given.kind, given.shape) != (kind, shape):
                self.refuses("out: another shape or dtype")
            return
        if how == 17:
            wrong = self.pick(["shape", "dtype", "array", "number"])
            if wrong == "array":
                self.option(name, f"np.zeros({(*shape, 2)}, np.float32)")
            elif wrong == "number":
                self.option(name, "3")
            else:
                other = (*shape, 2) if len(shape) < 3 else (*shape[:2], shape[2] + 1)
                made = (
                    (kind, other) if wrong == "shape" else ("int16" if kind != "int16" else "uint16", shape)
                )
                self.option(name, f"fresh({made[0]!r}, {made[1]})")
            self.refuses(f"out: wrong {wrong}")
            return
        self.case.lines.append(f"OUT = fresh({kind!r}, {shape})")
        self.option(name, "OUT")
        self.case.results = "the_same(result, OUT)"

    def _add_input(self, kind: str, shape: Shape) -> None:
        """Let an output map add one of the inputs, if there is such."""
        case = self.case
        fits = [name for name, each in case.arrays.items() if (each.kind, each.shape) == (kind, shape)]
        taken = any(option.startswith(("output_map", "dtype")) for option in self.options)
        if not fits or taken or kind not in INTEGERS or "output_map" not in parameters(case.function):
            return
        name = self.pick(fits)
        self.option("output_map", f"maps.plus({kind!r})({name.upper()})")
        case.truth = f"truth.after(maps.host_total, {case.truth}, {name})"

    def output_map(self, kind: str, percent: int = 8) -> str:
        """Perhaps add an output map; return what to put around the truth, with {} for it.

        Only for results that are exact.
        """
        if not self.chance(percent) or kind in VECTORS or kind == "bool_":
            return "{}"
        if self.chance(30):
            self.option("output_map", f"maps.convert({kind!r}, 'float64')")
            if kind not in ("complex64", "complex128"):
                return "truth.after(maps.host_convert, {}, 'float64')"
            self.options.pop()
        self.option("output_map", f"maps.twice({kind!r})")
        return "truth.after(maps.host_twice, {})"

    def finish(self, arguments: Sequence[str], truth: str | None = None) -> Case:
        """Write the call of the function."""
        options = [*self.options, *(["graph=GRAPH"] if self.case.graph else [])]
        self.case.call = f"{self.case.function}({', '.join([*arguments, *options])})"
        if truth is not None and not self.case.truth.startswith("refuse"):
            self.case.truth = truth
        self._warm_up()
        return self.case

    def _warm_up(self) -> None:
        """Perhaps make the call before: what is checked once for a signature has been checked by then."""
        case = self.case
        plain = case.function.count(".") == 1 and case.function not in ("vd.scan", "vd.shader")
        if not plain or case.graph or not self.chance(12) or case.truth.startswith("refuse"):
            return
        if self._in_place[0]:
            case.lines.append(case.call.replace(*self._in_place))
        elif not case.changed:
            case.lines.append(case.call)
