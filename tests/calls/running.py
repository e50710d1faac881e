"""Makes calls, and judges what comes of them."""

from __future__ import annotations

import functools
import re
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.errors import (
    CheckError,
    OutOfDeviceMemoryError,
    ShaderBuildError,
    UnsupportedError,
    VkDispatchError,
    VulkanError,
)

from . import documented, draws, kernels, maps, memory
from .case import Case
from .choices import Choices, shrink
from .surface import parameters
from .truth import Expected, compare
from .values import Array, Shape, kind_of, values

EQUAL, REFUSED, GAP, FAILED = "equal", "refused", "gap", "failed"
VERDICTS = (EQUAL, REFUSED, GAP, FAILED)
_NUMPYS = (TypeError, ValueError, IndexError, OverflowError, NotImplementedError, ZeroDivisionError)
# Names of parameters that are words of English too: as names they are followed by one of these.
_WORDS = {
    "a",
    "out",
    "where",
    "values",
    "sorted",
    "range",
    "order",
    "all",
    "sum",
    "type",
    "data",
    "size",
    "start",
    "stop",
}


@dataclass(frozen=True)
class Outcome:
    """What came of a call: a verdict, and for gaps and failures a cause, the same for those of one kind."""

    verdict: str
    cause: str = ""
    text: str = ""


class WrongResultError(Exception):
    """A result is none of what it may be."""


def the_same(result: Any, out: Any) -> Any:
    """Return a result, which has to be `out`."""
    if result is not out:
        raise WrongResultError("the result is not out")
    return result


def context_of(queues: int) -> Any:
    """Return a context of so many queues."""
    return vd.get_context() if queues == 1 else _make_context(queues)


@functools.cache
def _make_context(queues: int) -> Any:
    device = vd.get_context().device_infos[0].sorted_index
    return vd.Context([device], [vd.select_queue_families(device, queues)])


def fresh(kind: str, shape: Shape) -> Any:
    """Return a buffer that holds something, but no result."""
    made: Any = vd.Buffer(shape, kind_of(kind))
    made.write(values(kind, shape, "few", 5))
    return made


class _Run:
    """A case in a context."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.hosts = [
            {name: each.make(variant) for name, each in case.arrays.items()}
            for variant in range(case.variants)
        ]
        self.namespace: dict[str, Any] = {
            "np": np, "vd": vd, "vc": vc, "maps": maps, "values": values, "draws": draws, "memory": memory,
            "kernels": kernels, "fresh": fresh, "the_same": the_same, "SEED": case.seed,
        }  # fmt: skip

    def make_buffers(self, before: _Run | None = None) -> None:
        """Make the buffers, or write into those of a run before."""
        for name, each in self.case.arrays.items():
            self.namespace[name] = self.hosts[0][name]
            known = None if before is None else before.namespace[name.upper()]
            self.namespace[name.upper()] = (
                vd.Buffer(each.shape, kind_of(each.kind)) if known is None else known
            )
        self.write(0)

    def write(self, first: int) -> None:
        for name in self.case.arrays:
            for queue in range(self.case.queues):
                self.namespace[name.upper()].write(self.hosts[first + queue][name], queue)

    def call(self) -> Any:
        """Make the call; return what it gave."""
        graph = vd.CommandGraph() if self.case.graph else None
        self.namespace["GRAPH"] = graph
        for line in self.case.lines:
            exec(line, self.namespace)
        self.namespace["result"] = eval(self.case.call, self.namespace)
        vd.queue_wait_idle()  # what the device refuses, it refuses by now
        if graph is not None:
            self.write(1)
            graph.submit()
        return self.evaluate_results()

    def evaluate_results(self) -> Any:
        return eval(self.case.results, self.namespace)

    def judge(self, results: Any, queue: int, wanted: tuple[Expected, ...]) -> None:
        """Raise WrongResultError if results are none."""
        found = results if isinstance(results, tuple) else (results,)
        if len(found) != len(wanted):
            raise WrongResultError(f"{len(found)} results, right are {len(wanted)}")
        for at, (one, right) in enumerate(zip(found, wanted, strict=True)):
            where = f"result {at}: " if len(found) > 1 else ""
            if self.case.queues > 1:
                where += f"queue {queue}: "
            wrong = _compared(one, queue, right)
            if wrong:
                raise WrongResultError(where + wrong)

    def check_inputs(self) -> None:
        """Raise WrongResultError if an array was written that is only read."""
        for name in self.case.arrays:
            if name in self.case.changed:
                continue
            for queue in range(self.case.queues):
                right = self.hosts[queue + self.case.graph][name]
                actual = self.namespace[name.upper()].read(queue)
                if actual.tobytes() != right.tobytes():
                    raise WrongResultError(f"the input {name} was written")


def _compared(one: Any, queue: int, right: Expected) -> str | None:
    if isinstance(one, vd.Buffer):
        if one.shape != right.shape:
            return f"shape {one.shape}, right is {right.shape}"
        if one.var_type is not kind_of(right.kind):
            return f"dtype {one.var_type.name}, right is {right.kind}"
        return compare(one.read(queue), right)
    return compare(one[queue] if isinstance(one, list) else one, right)


def expectations(case: Case) -> tuple[list[tuple[Expected, ...]], str]:
    """Return what is expected of each set of values, and why the call has to be refused, or ""."""
    found = []
    for variant in range(case.variants):
        try:
            found.append(case.expectations(variant))
        except _NUMPYS as error:
            return [], f"{type(error).__name__}: {error}"
    if case.queues > 1 and any(
        one.shape != other.shape for one, other in zip(found[0], found[1], strict=True)
    ):
        return [], "results of the queues have different shapes"
    return found, ""


def run(case: Case) -> Outcome:
    """Make a call, and compare with NumPy."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call = Call(case)
        return call.make() or call.look()


class Call:
    """A call that is made, and of which the results can be looked at, also again.

    Attributes
    ----------
    refusal
        Why the call has to be refused, or "".
    """

    def __init__(self, case: Case) -> None:
        self.case = case
        self._right, self.refusal = expectations(case)

    def make(self, before: Call | None = None) -> Outcome | None:
        """Make the call; return what came of it if that is known already.

        Parameters
        ----------
        before
            A call of which the arrays are to be used again.
        """
        with vd.use_context(context_of(self.case.queues)):
            self._run = _Run(self.case)
            self._run.make_buffers(None if before is None else before._run)
            self.results: Any = None
            try:
                self.results = self._run.call()
            except WrongResultError as error:
                return _failed(self.case, str(error))
            except VkDispatchError as error:
                outcome = _of_refusal(self.case, error, self.refusal)
                return outcome if outcome.verdict == FAILED else (self._look_at_inputs() or outcome)
            except Exception as error:
                where = traceback.extract_tb(error.__traceback__)[-1]
                return _failed(
                    self.case,
                    f"raised {type(error).__name__}: {error}",
                    f"{where.filename}:{where.lineno} {where.line}",
                )
            if self.refusal:
                return _failed(self.case, f"accepted: {self.refusal}", _shown(self.results))
            return None

    def look(self, *, inputs: bool = True) -> Outcome:
        """Compare what the call gave with NumPy's result; `inputs`: look whether they are as before."""
        with vd.use_context(context_of(self.case.queues)):
            try:
                for queue in range(self.case.queues):
                    self._run.judge(self.results, queue, self._right[queue + self.case.graph])
            except WrongResultError as error:
                return _failed(self.case, f"wrong: {error}")
            return (self._look_at_inputs() if inputs else None) or Outcome(EQUAL)

    def look_again(self, *, inputs: bool) -> Outcome:
        """Compare once more, now that other calls were made."""
        self.results = self._run.evaluate_results()
        return self.look(inputs=inputs)

    def drop(self) -> None:
        """Hold no result any longer, only the arrays."""
        names = [name.upper() for name in self.case.arrays]
        self.results = None
        self._run.namespace = {name: self._run.namespace[name] for name in names}

    def _look_at_inputs(self) -> Outcome | None:
        try:
            if self.results is not None or not self.case.graph:
                self._run.check_inputs()
        except WrongResultError as error:
            return _failed(self.case, str(error))
        return None


def _of_refusal(case: Case, error: VkDispatchError, refusal: str) -> Outcome:
    message = f"{type(error).__name__}: {error}"
    lacking = isinstance(error, OutOfDeviceMemoryError) and not isinstance(error, ValueError)
    if (lacking and not refusal) or isinstance(error, (VulkanError, ShaderBuildError, CheckError)):
        return _failed(case, f"raised {message}")
    if not names_argument(case, str(error)):
        return _failed(case, f"refused without an argument's name: {message}")
    if refusal or case.excuse:
        return Outcome(REFUSED)
    if isinstance(error, UnsupportedError) or documented.is_documented(case.function, str(error)):
        return Outcome(REFUSED)
    return Outcome(GAP, f"{case.function}: {masked(message)}", f"{describe(case)}\n# {message}")


def names_argument(case: Case, message: str) -> bool:
    """Whether a message has the name of a parameter of the function, as a name."""
    where = case.function if case.signature is None else case.signature
    own = parameters(where) if where else set()
    names = own | set(case.names)
    for name in names:
        if name in _WORDS:
            pattern = rf"(^|[^\w]){name}(\[\d+\])*(:|=|'|,| of the shape)|^{name}\b"
        else:
            pattern = rf"(^|[^\w]){name}($|[^\w])"
        if re.search(pattern, message):
            return True
    return False


def _failed(case: Case, what: str, more: str = "") -> Outcome:
    told = f"# {what}" + (f"\n# {more}" if more else "")
    return Outcome(FAILED, f"{case.function}: {masked(what)}", f"{describe(case)}\n{told}")


def _shown(results: Any) -> str:
    several = results if isinstance(results, tuple) else (results,)
    try:
        given = [each.read(0) if isinstance(each, vd.Buffer) else each for each in several]
        return f"gave {', '.join(map(str, given))[:300]}"
    except Exception as error:
        return f"and then {type(error).__name__}: {error}"


def masked(text: str) -> str:
    """Return the first line of a message without what is different in each call."""
    first = text.split("\n")[0]
    first = re.sub(r"(value|right is) .*", "value", first)
    first = re.sub(r"\([^()]*\)|'[^']*'", "#", first)
    return re.sub(r"-?\d+(\.\d+)?(e[-+]?\d+)?", "#", first)[:140]


def describe(case: Case, again: bool = False) -> str:
    """Return a call as lines of Python; `again`: in the buffers of one before."""
    lines = ["import numpy as np", "import vkdispatch as vd"]
    text = " ".join([*case.lines, case.call])
    used = [name for name in ("draws", "kernels", "maps", "memory") if f"{name}." in text + case.results]
    if used:
        lines.append(f"from tests.calls import {', '.join(used)}")
    if "fresh(" in text:
        lines.append("from tests.calls.running import fresh")
    hosts = [each.text(0) for each in case.arrays.values()]
    if any("values(" in each for each in hosts) or "values(" in text:
        lines.append("from tests.calls.values import values")
    if case.queues > 1:
        lines.append("# in a context of two queues, each with values of its own")
    if case.seed is not None:
        lines.append(f"SEED = {case.seed}")
    for each in case.arrays.values():
        lines.append(f"{each.name} = {each.text(0)}")
        if case.queues > 1:
            lines.append(f"{each.name}_of_queue_1 = {each.text(1)}")
        lines.append(_buffer_line(each.name, each.kind, each.shape, again))
        if case.queues > 1:
            lines.append(f"{each.name.upper()}.write({each.name}_of_queue_1, 1)")
    if case.graph or "GRAPH" in case.call:
        lines.append(f"GRAPH = {'vd.CommandGraph()' if case.graph else None}")
    lines += [*case.lines, f"result = {case.call}"]
    if case.graph:
        lines += [f"{each.name.upper()}.write({each.text(1)})" for each in case.arrays.values()]
        lines.append("GRAPH.submit()")
    return "\n".join([*lines, f"# results: {case.results}", f"# right: {case.truth}"])


def _buffer_line(name: str, kind: str, shape: Shape, again: bool) -> str:
    if again:
        return f"{name.upper()}.write({name})"
    if "vec" in kind:
        made = f"vd.Buffer({shape}, vd.{kind})"
        return f"{name.upper()} = {made}; {name.upper()}.write({name})"
    return f"{name.upper()} = vd.asbuffer({name})"


_Written = TypeVar("_Written")


def check(
    writer: Callable[[Choices, str], _Written],
    runner: Callable[[_Written], Outcome],
    function: str,
    choices: Choices,
    known: set[str],
    seconds: float = 60.0,
) -> tuple[Outcome, list[int]]:
    """Make a call by choices; a failure that is not known is made smaller first."""
    found = runner(writer(choices, function))
    if found.verdict not in (FAILED, GAP) or found.cause in known:
        return found, choices.made
    kept = [found]

    def fails(made: list[int]) -> bool:
        try:
            again = runner(writer(Choices(made), function))
        except Exception:
            return False
        if (again.verdict, again.cause) == (found.verdict, found.cause):
            kept.append(again)
            return True
        return False

    if not fails(choices.made):
        return Outcome(found.verdict, f"{found.cause} (not again)", found.text), choices.made
    made = shrink(choices.made, fails, seconds if found.verdict == FAILED else seconds / 4)
    return kept[-1], made


__all__ = ["Array", "Outcome", "check", "describe", "run"]
