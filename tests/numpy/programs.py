"""Programs of a few lines, written at random from a template, and run with NumPy and with `vkdispatch.numpy`.

A template is an expression, or lines with `;` between of which one sets `r`. `m` is the namespace. `{x}` is
an argument: an array, a view of one, or an expression that is not computed yet. `{x:f2}` are real floats of
two axes, `{x:i1/rising}` are integers in ascending order; `{x}` again is the same argument, `{y}` one that
broadcasts with it, `{z}` one of any shape. `<, axis={axis}>` is there sometimes, and of `one || other` one.
"""

from __future__ import annotations

import contextlib
import functools
import re
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import vkdispatch.numpy as vnp
from tests.calls.case import Host, Sketch
from tests.calls.choices import Choices
from tests.calls.running import EQUAL, FAILED, GAP, REFUSED, Outcome, masked
from tests.calls.truth import Expected, compare
from tests.calls.values import COMPLEX, FLOATS, INTEGERS, NUMBERS, REALS, name_of
from vkdispatch.base.errors import VkDispatchError

_NUMPYS = (
    TypeError, ValueError, IndexError, OverflowError, NotImplementedError, ZeroDivisionError, AttributeError,
    MemoryError,
)  # fmt: skip
_SETS = {
    "n": NUMBERS, "r": REALS, "f": FLOATS, "i": INTEGERS, "b": ("bool_",), "c": COMPLEX,
    "j": ("int64", "int32"), "g": (*FLOATS, *COMPLEX), "d": ("float64", "float32"), "u": ("uint8",),
    "h": ("float64", "complex128"), "o": ("bool_", *INTEGERS),
    "s": ("float32", "float64", "complex64", "complex128"),
}  # fmt: skip
_STORES = re.compile(r"\w+(\[.*\])? (\+|-|\*\*?|//?|%|&|\||\^|<<|>>|@)?= ")
# What keeps the axes of an argument, what need not, and what delays its computation.
_VIEWS = (
    "{}[::-1]", "{}[..., ::2]", "{}[1:]", "{}[..., ::-2]", "{}[..., 1:]", "m.flip({})", "{}[:-1]", "{}.T",
    "{}.swapaxes(0, -1)",
)  # fmt: skip
_RESHAPES = (
    "m.broadcast_to({0}, (2, *{0}.shape))", "{}[None]", "{}[..., None]", "{}.reshape(-1)", "{}[0]",
    "{}[..., -1]", "m.broadcast_to({0}[:1], {0}.shape)",
)  # fmt: skip
_LAZY = ("m.maximum({0}, {0})", "m.where({0} == {0}, {0}, {0})", "m.minimum({0}, {0})", "{}.copy()")
_DELAYED = ("{} * 1", "-(-{})", "{} + 0", "m.add({}, 0)")
FILLS = ("small", "normal", "wild", "few", "wild", "flags", "tiny", "flat")
TAME = ("small", "normal", "few", "near", "flags")


# Arguments of other kinds.
_CHOICES = {
    "i": "1;0;2;-1;3;-2;7;-5;100",
    "n": "3;1;0;2;5;8;17;64;257;1000",
    "pair": "(1, 2);(0, 0);(0, 3);(2, 0);(1, 1);(5, 4)",
    "size": "(3,);3;();(2, 3);0;1;(2, 0);257;1000;(5, 1, 7)",
    "shape": "(2, 3);4;();(0,);(3, 0, 2);(1,);(257,);(17, 61);(2, 3, 4, 1);1025",
    "norm": "'ortho';'forward';'backward';None;'no'",
    "ord": "1;'fro';np.inf;-1;2",
    "ord:v": "1;2;np.inf;-np.inf;0",
    "positive": "2.0;1.0;0.5;3;10.0;100;0.01;0;-1.0",
    "probability": "0.5;0.1;0.9;0.0;1.0;1.5;-0.1",
    "index": "::-1;0;...;1:;::2;None;-1;..., 0;..., ::-2;1:1;:, None;0, 0;(1, 2)",
    "bool": "True;False",
    "number": "2;0;-1;1.5;3;True;-0.0;np.inf;np.nan;7;1e300;np.float32(0.1);np.int64(5);np.uint8(200);2j",
    "number:r": "2;0;-1.0;1.5;0.5;100",
}


def _words(text: str) -> list[str]:
    return text.split(";")


@dataclass(frozen=True)
class Writer:
    """How calls of a function are written.

    Attributes
    ----------
    template
        The text.
    ulps
        How many units in the last place results may differ from NumPy's; None: not at all.
    scale
        Of what numbers beside the result: an expression of `top`, the largest absolute value of the
        arguments, `size`, the largest number of elements, and `loss`, how much less precise an argument is
        than the result.
    fills
        What arguments hold where the template does not say.
    signs
        Whether zeros have the sign that NumPy's have.
    random
        Whether only dtypes and shapes are compared.
    """

    template: str
    ulps: float | None = None
    scale: str = "0"
    fills: tuple[str, ...] = FILLS
    signs: bool = False
    random: bool = False


@dataclass
class Program:
    """Lines of Python over the arrays, which are `a`, `b` and so on; `r` is the result."""

    function: str
    writer: Writer
    arrays: dict[str, Host] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def rehearse(self) -> None:
        """Run with `vkdispatch.numpy` on other values: the next run may repeat calls of this one."""
        names: dict[str, Any] = {"m": vnp, "np": np}
        with contextlib.suppress(Exception):
            for name, host in self.arrays.items():
                names[name] = vnp.asarray(np.roll(make(host), 1))
            for line in self.lines:
                exec(line, names)
        with contextlib.suppress(VkDispatchError):
            vnp.zeros(1).numpy()  # what the device found wrong would be raised by the next run

    def run(self, space: Any) -> tuple[dict[str, Any], str, Exception | None]:
        """Run with a namespace; return all variables, the line that raised, and its exception."""
        names: dict[str, Any] = {"m": space, "np": np}
        for name, host in self.arrays.items():
            names[name] = make(host).copy() if space is NUMPY else space.asarray(make(host))
        line = ""
        try:
            for line in self.lines:
                exec(line, names)
            if space is not NUMPY:
                line = "read"
                names = {name: _fetch(value) for name, value in names.items() if name not in ("m", "np")}
        except Exception as error:
            return names, line, error
        return names, "", None

    def describe(self) -> str:
        """Return the program as lines of Python."""
        made = [f"{name} = m.asarray({_text(host)})" for name, host in self.arrays.items()]
        head = ["import numpy as np", "import vkdispatch.numpy as m  # or np"]
        if any("make(" in each for each in made):
            head += ["from tests.calls.case import Host", "from tests.numpy.programs import make"]
        return "\n".join([*head, *made, *self.lines])


@functools.lru_cache(64)
def make(host: Host) -> Any:
    """Return the values of an array, those of "tiny" with subnormal numbers among them."""
    if host.fill != "tiny":
        found = host.make(0)
    else:
        found = Host(host.name, host.kind, host.shape, "few", host.seed).make(0)
        if found.dtype.kind in "fc":
            info = np.finfo(found.dtype)
            is_flushed = info.bits == 32 and _flushes()
            found = np.asarray(found * (info.smallest_normal if is_flushed else info.smallest_subnormal) * 3)
    return found


@functools.cache
def _flushes() -> bool:
    """Whether the device takes subnormal numbers of float32 for zeros."""
    return not (vnp.asarray(np.float32([1e-40])) * np.float32(1)).numpy().any()


def _text(host: Host) -> str:
    text = host.text(0)
    return f"make({host!r})" if "values(" in text or host.fill == "tiny" else text


class _Space:
    """NumPy, with what only `vkdispatch.numpy` has."""

    def __init__(self, *homes: Any, **more: Any) -> None:
        self._homes = homes
        self.__dict__.update(more)

    def __getattr__(self, name: str) -> Any:
        home = next((home for home in self._homes if hasattr(home, name)), None)
        if home is None:
            raise AttributeError(name)
        return getattr(home, name)


def _topk(x: Any, k: int, *, axis: int | None = -1, largest: bool = True) -> Any:
    lines, place = (x.reshape(-1), 0) if axis is None else (x, axis)
    if not 0 <= k <= lines.shape[place]:
        raise ValueError("k")
    order = vnp.argsort(vnp.asarray(lines), axis=place, descending=largest).numpy()
    where = np.take(order, np.arange(k), place)
    return np.take_along_axis(lines, where, place), where


def _scipy() -> Any:
    try:
        import scipy.special
    except ImportError:
        return None
    return scipy.special


NUMPY: Any = _Space(
    np,
    np.lib.stride_tricks,
    linalg=_Space(np.linalg, np),
    special=_scipy(),
    topk=_topk,
    asnumpy=np.array,
    from_numpy=np.array,
    to_device=lambda x, device: x,
    eval=lambda *arrays: None,
)


def _fetch(value: Any) -> Any:
    """Return a result with its arrays as NumPy's; what is an Array is one there, also without axes."""
    if isinstance(value, vnp.Array):
        return value.numpy()
    if isinstance(value, (tuple, list)):
        return [_fetch(each) for each in value]
    return value


class Draft(Sketch):
    """A program being written by choices."""

    def __init__(self, choices: Choices, function: str, writer: Writer) -> None:
        self.choices = choices
        self._count = 0
        self.program = Program(function, writer)
        self.case: Any = self.program  # what Sketch adds arrays to
        self.names: dict[str, Any] = {"m": NUMPY, "np": np}
        self._arguments: dict[str, Any] = {}
        self._results = 0

    def write(self) -> Program:
        """Return the program."""
        variants = self.program.writer.template.split(" || ")
        text = re.sub(r"<([^<>]*)>", lambda found: found[1] if self.chance(30) else "", self.pick(variants))
        text = re.sub(r"\{(\w+)(?::([\w/]*))?\}", lambda found: self._fill(found[1], found[2] or ""), text)
        text = text.replace("(, ", "(").replace("\0", "<").replace("\1", ">")
        if "OUT" in text:
            text = text.replace("OUT", self._out(text.replace("OUT", "None")))
        on_host = text.startswith(("m.as", "m.ar", "m.require"))  # of NumPy's arrays only
        if text.startswith("m.") and not on_host and self._arguments and self.chance(8):
            text = "np" + text[1:]  # NumPy's function, which asks the array
        for line in text.split("; "):
            self._add(line if _STORES.match(line) else f"r = {line}")
        if not any(line.startswith("r =") for line in self.program.lines):
            self._add("r = x")
        self._follow()
        return self.program

    # -- arguments

    def _fill(self, name: str, rest: str) -> str:
        """Return the text of a placeholder."""
        if len(name) == 1 and name in "xyzw":
            if name not in self._arguments:
                self._arguments[name] = self._argument(name, rest)
            return name
        words = _CHOICES.get(f"{name}:{rest}" if rest else name)
        return str(self.pick(_words(words)) if words else getattr(self, f"_{name}")(rest))

    def _argument(self, name: str, rest: str) -> Any:
        found = re.fullmatch(r"([a-z]?)(\d?)([a-z]?)(?:/(\w+))?", rest)
        assert found is not None, rest
        kinds, axes, form, fill = found.groups()
        kind = self.kind(_SETS[kinds or "n"])
        fill = fill or self.pick(self.program.writer.fills)
        limit = 0
        if "x" in self._arguments and name == "y":
            if self.chance(60) and (not kinds or name_of(self._arguments["x"].dtype) in _SETS[kinds]):
                kind = name_of(self._arguments["x"].dtype)
            shape = self._broadcast(self._arguments["x"].shape)
            if form == "e":
                shape = self._arguments["x"].shape
        elif axes and form not in ("m", "p"):  # so many axes, or at least so many ("m"), with elements ("p")
            shape = self._small(int(axes), form)
        else:
            shape = self.shape(int(axes or 0), 3, int(form == "p"))
        if fill.startswith(("index", "below")):
            fill, limit = fill[:5], int(fill[5:] or 3)
        base = self.array(kind, shape, fill, limit)
        text = base
        steps = self.pick([0, 1, 1, 2, 2, 3]) if shape != () else self.pick([0, 1])
        self.names[base] = make(self.program.arrays[base]).copy()
        for _ in range(steps):
            text = self._step(text, kind, bool(axes) or form == "e", fill)
        scalar = isinstance(eval(text, dict(self.names)), np.generic)  # an array with us
        self._add(f"{name} = m.asarray({text})" if scalar else f"{name} = {text}")
        return self.names.get(name, self.names[base])

    def _step(self, text: str, kind: str, keeps: bool, fill: str) -> str:
        lazy = (*_LAZY, *(_DELAYED if kind != "bool_" else ()))
        value = eval(text, dict(self.names))
        options: tuple[str, ...] = lazy
        if value.ndim and not keeps and self.chance(60):
            options = (*_VIEWS, *_RESHAPES) if self.chance(40) else _VIEWS
        elif value.ndim and self.chance(50):
            options = _VIEWS[:1] if fill != "rising" and fill != "order" else _LAZY
            if len(set(value.shape)) == 1 and value.ndim == 2:
                options = (".T", *options) if options == _VIEWS[:1] else options
        step: str = self.pick(options)
        if step == ".T":
            step = "{}.T"
        if fill in ("rising", "order", "starts") and "-" in step:
            step = _LAZY[0]
        new = (
            f"({step.format(text)})"
            if (step[0] in "{-" and " " in step) or step[0] == "-"
            else step.format(text)
        )
        try:
            changed = eval(new, dict(self.names))
        except (IndexError, ValueError, TypeError):
            return text
        return new if changed.dtype == value.dtype else text

    def _small(self, axes: int, form: str) -> tuple[int, ...]:
        """Return the lengths of exactly so many axes; square matrices for the form "q", and stacks."""
        sizes = (
            (3, 1, 2, 4, 5, 8, 16, 17, 33) if axes > 1 else (5, 3, 1, 2, 16, 17, 100, 257, 1000, 4097, 0, 64)
        )
        if form == "q":
            n = self.pick((3, 2, 1, 4, 5, 8, 16, 17, 0))
            return (*self.pick(((), (), (2,), (3,), (1,))), n, n)
        if form == "s":
            return tuple(self.pick((3, 2, 1, 5)) for _ in range(axes))
        return tuple(self.pick(sizes) for _ in range(axes))

    def _broadcast(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return a shape that broadcasts with one; seldom one that does not."""
        found = tuple(1 if self.chance(15) else each for each in shape)
        found = found[self.below(len(found) + 1) :] if found and self.chance(20) else found
        return (*found, 3) if self.chance(3) else found

    def _add(self, line: str) -> None:
        """Add a line, and what it does with NumPy."""
        self.program.lines.append(line)
        with (
            warnings.catch_warnings(),
            np.errstate(all="ignore"),
            contextlib.suppress(*_NUMPYS, RecursionError),
        ):
            warnings.simplefilter("ignore")
            exec(line, self.names)

    @property
    def _first(self) -> Any:
        return self._arguments.get("x", np.zeros((3, 4)))

    def _axis(self, rest: str) -> str:
        n = self._first.ndim
        if not n or self.chance(4):
            return str(self.pick([n, -n - 1, "1.0" if n else n]))
        return str(self.pick([*range(-n, n)]))

    def _axes(self, rest: str) -> str:
        n = self._first.ndim
        choices = _words("None;0;-1;();(0,);(0, -1);(-1, 0);(0, 1);(1, 2);(0, 2);(0, 1, 2)")
        right = [each for each in choices if n >= len(re.findall(r"\d", each))]
        return str(self.pick(choices if self.chance(5) else right))

    def _k(self, rest: str) -> str:
        """Return a place along the last axis."""
        n = self._first.shape[-1] if self._first.ndim else 1
        return str(self.pick([0, n // 2, n - 1, -1, -n, 1, *([n] if self.chance(20) else [])]))

    def _places(self, rest: str) -> str:
        """Return indices of the last axis, of the first one ("0"), or of the flat array ("flat")."""
        x = self._first
        n = x.size if rest == "flat" or not x.ndim else x.shape[0 if rest == "0" else -1]
        several = [0, n - 1, -1, n // 2, -n, 1 if n > 1 else 0]
        chosen = [self.pick(several) for _ in range(self.pick([3, 1, 0, 5, 2]))]
        chosen += [n] if self.chance(4) else []
        if rest == "flat" or self.chance(70):
            return f"m.asarray({chosen}, dtype=np.{self.pick(['int64', 'int32'])})"
        return str(chosen[0]) if chosen else "[]"

    def _reshaped(self, rest: str) -> str:
        x = self._first
        n = x.shape[-1] if x.ndim else 1
        options = [
            (x.size,),
            -1,
            (-1, x.size),
            (1, -1),
            x.shape[::-1],
            (1, *x.shape),
            (2, -1),
            (-1, n),
            (x.size + 1,),
        ]
        return str(self.pick(options))

    def _kind(self, rest: str) -> str:
        return f"np.{self.kind(_SETS[rest or 'n'])}"

    def _mask(self, rest: str) -> str:
        """Return a Boolean array of the shape of the first argument, or one that broadcasts to it."""
        shape = self._first.shape
        if rest != "e" and shape and self.chance(25):
            shape = shape[1:] if self.chance(50) else (*shape[:-1], 1)
        name = self.array("bool_", shape, self.pick(["flags", "small"]))
        self.names[name] = make(self.program.arrays[name]).copy()
        return self.pick(["{}", "({0} & {0})", "~{}"]).format(name)

    def _where(self, rest: str) -> str:
        return self._mask("") if self.chance(85) else str(self.pick(["True", "False"]))

    def _out(self, text: str) -> str:
        if text == "":
            return "OUT"
        names = dict(self.names)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                right = eval(text, names)
            except _NUMPYS:
                right = np.zeros(self._first.shape)
        if not isinstance(right, (np.ndarray, np.generic)):
            right = np.zeros(self._first.shape)
        kind, shape, how = name_of(right.dtype), right.shape, self.below(20)
        if "cum" in self.program.function:
            how %= 14  # NumPy 2.4 reads and writes outside of an `out` of another shape
        if "where=" in text and kind != name_of(self._first.dtype):
            how %= 16  # NumPy's buffers of an `out` that overlaps write where the mask does not hold
        if how >= 16 and "x" in self._arguments:
            return str(self.pick(["x", "x[::-1]", "a"]))
        if how == 15:
            kind = self.kind()
        if how == 14:
            shape = (*shape, 2)
        if how in (12, 13) and shape:
            name = self.array(kind, (*shape[:-1], 2 * shape[-1]), "small")
            self.names[name] = make(self.program.arrays[name]).copy()
            return f"{name}[..., ::2]"
        name = self.array(kind, shape, "small")
        self.names[name] = make(self.program.arrays[name]).copy()
        return name

    # -- what is done afterwards

    def _follow(self) -> None:
        """Perhaps use the result in a further expression, or write its sources before it is computed."""
        r = self.names.get("r")
        fixed = self.program.writer.random or re.search("asnumpy|dumps|__array__", self.program.function)
        if isinstance(r, np.ndarray) and r.ndim and not fixed and self.chance(30):
            uses = ["r.T", "r[..., None]", "r.ravel()", "m.flip(r)", "r[::-1]", "r[..., ::2]", "r[1:]"]
            self._add(f"s = {self.pick(uses)}")
        if self.program.arrays and self.chance(40):
            name = self.pick(list(self.program.arrays))
            ways = ["{}[...] = 1", "{}[:1] = 0", "{0}[...] = {0}[::-1]", "{0} += {0}", "{}[..., ::2] = 1"]
            self._add(self.pick(ways if self.names[name].ndim else ways[:1]).format(name))


# -- judging


def run(program: Program, documented: tuple[tuple[str, str, str], ...] = (), repeat: int = 1) -> Outcome:
    """Run a program with both, and compare; with `vkdispatch.numpy` `repeat` times, the last time counts."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        right, line, refusal = program.run(NUMPY)
        for _ in range(repeat - 1):
            program.rehearse()
        actual, where, error = program.run(vnp)
        with contextlib.suppress(VkDispatchError):
            vnp.zeros(1).numpy()  # what the device found wrong would be raised by the next program

    def bad(what: str, verdict: str = FAILED) -> Outcome:
        if any(
            re.search(name, program.function) and re.search(message, what) for name, message, _ in documented
        ):
            return Outcome(REFUSED)
        line = f"{program.function}: {masked(what)}"
        return Outcome(verdict, line, f"{program.describe()}\n# {what}")

    if error is not None and not isinstance(error, (VkDispatchError, *_NUMPYS)):
        return bad(f"raised {type(error).__name__}: {error}")
    if refusal is not None and error is not None:
        if not isinstance(error, VkDispatchError) and type(error) is not type(refusal):
            return bad(
                f"raised {type(error).__name__}: {error}, and NumPy {type(refusal).__name__}: {refusal}"
            )
        kinds = _kind_of(error), _kind_of(refusal)
        # of two mistakes, either may be told
        if isinstance(error, kinds[1]) or kinds[1] not in _KINDS or "out=" in line:
            return Outcome(REFUSED)
        return bad(f"raised {kinds[0].__name__} where NumPy raises {kinds[1].__name__}: {error} / {refusal}")
    if refusal is not None:
        return bad(f"accepted what NumPy refuses at {line}: {type(refusal).__name__}: {refusal}")
    if error is not None:
        return bad(
            f"at {where}: {type(error).__name__}: {error}",
            GAP if isinstance(error, VkDispatchError) else FAILED,
        )
    for name, value in right.items():
        if name in ("m", "np", "__builtins__") or name.startswith("_") or callable(value):
            continue
        is_result = name in ("r", "s")
        wrong = _differs(
            actual.get(name), value, program, right, rounds=is_result or name in _outputs(program)
        )
        if wrong:
            return bad(f"{name if name in 'rs' else 'an argument'}: {wrong}")
    return Outcome(EQUAL)


_KINDS = (IndexError, OverflowError, NotImplementedError, ValueError, TypeError)


def _kind_of(error: Exception) -> type:
    return next((kind for kind in _KINDS if isinstance(error, kind)), Exception)


def _outputs(program: Program) -> set[str]:
    """Return the arrays into which results may have been written, and their views."""
    text = " ".join(program.lines)
    return (
        {*program.arrays, *"xyzw"}
        if program.writer.ulps is not None and ("out=" in text or "=" in text)
        else set()
    )


def _differs(actual: Any, right: Any, program: Program, names: dict[str, Any], rounds: bool) -> str | None:
    """Return how a value differs from NumPy's, or None."""
    if isinstance(right, (tuple, list)):
        if not isinstance(actual, (tuple, list)) or len(actual) != len(right):
            return f"{_short(actual)} in place of {_short(right)}"
        for one, other in zip(actual, right, strict=True):
            wrong = _differs(one, other, program, names, rounds)
            if wrong:
                return wrong
        return None
    if isinstance(right, (np.ndarray, np.generic)) and (right.dtype.kind in "biufc"):
        if not isinstance(actual, (np.ndarray, np.generic)):
            same = isinstance(right, np.generic) and right.item() == actual
            return None if same else f"a {type(actual).__name__} in place of an array"
        if program.writer.random and rounds:
            if (actual.dtype, actual.shape) == (right.dtype, right.shape) and not np.isnan(actual).any():
                return None
            return f"{actual.dtype} of {actual.shape}, right is {right.dtype} of {right.shape}"
        right = np.asarray(right)
        wrong = compare(
            actual, Expected(right, name_of(right.dtype), _bound(right, program, names) if rounds else None)
        )
        return wrong or _differs_in_sign(actual, right, program)
    if not isinstance(actual, type(right)) or not (actual == right or actual != actual):
        return f"{_short(actual)} in place of {_short(right)}"
    return None


def _differs_in_sign(actual: Any, right: Any, program: Program) -> str | None:
    if not program.writer.signs or right.dtype.kind != "f":
        return None
    wrong = (right == 0) & (np.signbit(np.asarray(actual)) != np.signbit(right))
    return "the sign of a zero" if wrong.any() else None


def _bound(right: Any, program: Program, names: dict[str, Any]) -> Any:
    ulps: Any = program.writer.ulps
    if ulps is None or right.dtype.kind not in "fc":
        return None
    arrays = [np.asarray(names[name]) for name in "xyzw" if isinstance(names.get(name), np.ndarray)]
    sizes = [each.size for each in arrays]
    tops = [
        float(np.abs(each[np.isfinite(each)]).max(initial=0)) for each in arrays if each.dtype.kind in "biufc"
    ]
    info = np.finfo(right.dtype)
    eps = max(float(info.eps), _unit(program, arrays))
    losses = [float(np.finfo(each.dtype).eps / info.eps) for each in arrays if each.dtype.kind in "fc"]
    scope = {"top": max([1.0, *tops]), "size": max([1, *sizes]), "loss": max([1.0, *losses])}
    scale = float(eval(program.writer.scale, {"sqrt": np.sqrt}, scope))
    wide = np.abs(right.astype(np.clongdouble if right.dtype.kind == "c" else np.longdouble))
    if scale:
        finite = wide[np.isfinite(wide)]
        wide = np.where(np.isfinite(wide), finite.max(initial=0), wide)
    if right.dtype.kind == "c" and "pow" in program.function:
        # exp(y log x) is as many units off as its argument is large: that of y log x, up to 9 * 710
        wild = any(host.fill == "wild" for host in program.arrays.values())
        ulps = ulps + (6400 if wild else 30) + np.abs(np.log(np.clip(wide, info.tiny, info.max)))
    bound = ulps * eps * (np.where(np.isfinite(wide), wide, 0) + scale) + 4 * float(info.tiny)
    if right.dtype.kind == "c":
        bound = np.where(np.isfinite(right), bound, np.inf)
    return bound


def _unit(program: Program, arrays: list[Any]) -> float:
    """Return the relative distance of numbers of the dtype that a ufunc computes with; `out` may be wider."""
    if not arrays or not isinstance(getattr(np, program.function, None), np.ufunc):
        return 0
    named = re.search(r"dtype=np\.(\w+)", " ".join(program.lines))
    kind = np.dtype(named[1].rstrip("_")) if named else np.result_type(*arrays)
    return float(np.finfo(kind).eps) if kind.kind in "fc" else 0


def _short(value: Any) -> str:
    return f"{value!r} ({type(value).__name__})"[:120]


__all__ = ["FAILED", "GAP", "Draft", "Program", "Writer", "run"]
