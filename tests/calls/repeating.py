"""A call that is made several times: each with other values, and once another call in between."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, replace

from .case import Case
from .choices import Choices
from .random_calls import write
from .running import EQUAL, FAILED, GAP, REFUSED, Call, Outcome, describe, masked

# When results are compared; and whether they stay, so that no other call may take their memory.
_AGAIN = "results are compared at once, and again at the end"
_LATE = "results are compared at the end"
_DROPPED = "results are compared at once, and dropped"
# Values for which a call is refused, at the call or only at a wait.
_OF_VALUES = re.compile(r"out of bounds|sorter|indices|x, minlength")


@dataclass(frozen=True)
class Step:
    """A call of a series: `other` if it is not the repeated one, `again` if it is in the same buffers."""

    case: Case
    other: bool = False
    again: bool = False


@dataclass(frozen=True)
class Series:
    """Calls to be made one after the other."""

    steps: tuple[Step, ...]
    keeping: str

    def text(self, count: int) -> str:
        """Return the first calls as lines of Python."""
        parts = [f"# {self.keeping}"]
        for at, step in enumerate(self.steps[:count]):
            parts += [f"# -- call {at}", describe(step.case, again=step.again)]
        return "\n".join(parts)


def write_series(choices: Choices, function: str, rounds: int) -> Series:
    """Return the calls that choices make: so many of one kind, and one of another kind among them."""
    case = write(choices, function)
    made = list(choices.made)
    keeping = choices.pick((_AGAIN, _LATE, _DROPPED))
    # the first choice is that of graphs and queues
    at = 0 if choices.chance(15) else choices.below(len(made))
    other = write(Choices([*made[:at], choices.below(100), *made[at + 1 :]]), function)
    steps: list[Step] = []
    for turn in range(rounds):
        if turn == rounds // 2:
            steps.append(Step(other.renew(turn), other=True))
        renewed = case.renew(turn)
        if _may_be_eager(case) and choices.chance(40):
            renewed = replace(renewed, graph=False)
        reuses = turn > 0 and not steps[-1].other and renewed.queues == steps[-1].case.queues
        method = function.startswith(("vd.Buffer.", "vd.RFFTBuffer."))
        again = choices.chance(40) and reuses and not case.changed and not method
        steps.append(Step(renewed, again=again))
    return Series(tuple(steps), keeping)


def _may_be_eager(case: Case) -> bool:
    """Whether a call that goes into a graph gives the same without one: graphs let bad indices pass."""
    bad = any(each.fill == "beyond" for each in case.arrays.values())
    return case.graph and not bad and not case.truth.startswith("refuse")


def run_series(series: Series) -> Outcome:
    """Make the calls, and compare each with NumPy."""
    calls = [Call(step.case) for step in series.steps]
    refused = {bool(call.refusal) for call, step in zip(calls, series.steps, strict=True) if not step.other}
    if len(refused) > 1 or any(map(_is_of_values, calls)):
        return Outcome(REFUSED)
    return _Running(series, calls).run()


def _is_of_values(call: Call) -> bool:
    return (
        not call.case.truth.startswith("refuse")
        and not call.refusal.startswith("AxisError")
        and _OF_VALUES.search(call.refusal) is not None
    )


class _Running:
    """A series that is being made."""

    def __init__(self, series: Series, calls: list[Call]) -> None:
        self.series, self.calls = series, calls
        self.pending: list[int] = []
        self.told: dict[bool, tuple[str, list[str]]] = {}

    def run(self) -> Outcome:
        for at in range(len(self.calls)):
            found = self._step(at)
            if found is not None:
                return found
        for at in self.pending:
            found = self.calls[at].look_again(inputs=not self._is_overwritten(at))
            if found.verdict != EQUAL:
                return self._failed(at, f"at the end: {found.cause}", len(self.calls))
        return Outcome(EQUAL if self.pending or self.series.keeping == _DROPPED else REFUSED)

    def _step(self, at: int) -> Outcome | None:
        """Make a call; return what is wrong with it."""
        call, step = self.calls[at], self.series.steps[at]
        before = self.calls[at - 1] if step.again else None
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = call.make(before)
        if found is None and self.series.keeping != _LATE:
            found = call.look()
        elif found is None:
            found = Outcome(EQUAL)
        if found.verdict == FAILED or (found.verdict == GAP and (at == 0 or step.other)):
            return found if found.verdict == GAP else self._failed(at, found.cause, at + 1)
        if not step.other:
            texts = [str(each.message) for each in told if each.category is RuntimeWarning]
            first = self.told.setdefault(step.case.graph, (found.verdict, texts))
            if first != (found.verdict, texts):
                what = f"{found.verdict}, warnings {texts}; at the first call {first[0]}, warnings {first[1]}"
                return self._failed(at, what, at + 1)
        if found.verdict == EQUAL and self.series.keeping != _DROPPED:
            self.pending.append(at)
        else:
            call.drop()
        return None

    def _is_overwritten(self, at: int) -> bool:
        """Whether a later call has other values in the same buffers."""
        return at + 1 < len(self.calls) and self.series.steps[at + 1].again

    def _failed(self, at: int, what: str, count: int) -> Outcome:
        function = self.series.steps[at].case.function
        which = "first call" if at == 0 else "later call"
        told = f"{which}: {what.removeprefix(f'{function}: ')}"
        return Outcome(
            FAILED, f"{function}, {masked(told)}", f"{self.series.text(count)}\n# call {at}: {what}"
        )


__all__ = ["Series", "Step", "run_series", "write_series"]
