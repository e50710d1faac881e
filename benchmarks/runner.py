"""Runs cases: every library ready, then rounds in which each has its turn, and who begins changes."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks.cases import FIGURES, Case
from benchmarks.processes import Participant, Reply

# Seconds that one answer may take.
PATIENCE = 150.0

Say = Callable[[str], None]
Result = dict[str, Any]


def run_case(case: Case, kind: str, participants: Sequence[Participant], rounds: int, say: Say) -> Result:
    """Return a case's entry in the results."""
    sizes = case.sized(kind)
    started = time.perf_counter()
    results: dict[str, Result] = {}
    ready = []
    able = [participant for participant in participants if _able(participant, case)]
    # what needs no device is done by all at once
    _together(able, lambda participant: participant.load(case.work, sizes, PATIENCE))
    for participant in participants:
        outcome = _prepare(participant, case, sizes)
        results[participant.name] = outcome
        if "values" in outcome:
            ready.append(participant)
    turns = case.turns(rounds)
    for turn in range(turns):
        first = turn % max(1, len(ready))
        for participant in [*ready[first:], *ready[:first]]:
            outcome = results[participant.name]
            if "error" not in outcome:
                _add(outcome, participant.round(PATIENCE))
    whole = []
    for participant in ready:
        if "error" in results[participant.name]:
            participant.stop()
        else:
            whole.append(participant)
    replies = _together(whole, lambda participant: participant.finish(PATIENCE))
    for participant, reply in zip(whole, replies, strict=True):
        outcome = results[participant.name]
        if "error" in reply:
            outcome["error"] = reply["error"]
        outcome["correct"] = reply.get("correct", False)
    seconds = time.perf_counter() - started
    say(f"{case.name}: {seconds:.1f} s; {_summary(results)}")
    figures = sorted({figure for outcome in results.values() for figure in outcome.get("values", {})})
    described = {figure: {"unit": FIGURES[figure][0], "counts": FIGURES[figure][2]} for figure in figures}
    return {
        "counts": case.counts,
        "sizes": sizes,
        "rounds": turns,
        "seconds": seconds,
        "figures": described,
        "results": results,
    }


def _able(participant: Participant, case: Case) -> bool:
    participant.start()
    return participant.why_not(case.work) is None


def _together(participants: Sequence[Participant], ask: Callable[[Participant], Reply]) -> list[Reply]:
    """Ask all at once, and return their answers in order."""
    with ThreadPoolExecutor(max(1, len(participants))) as pool:
        return list(pool.map(ask, participants))


def _prepare(participant: Participant, case: Case, sizes: dict[str, float]) -> Result:
    participant.start()
    reason = participant.why_not(case.work)
    if reason is not None:
        return {"skipped": reason}
    reply = participant.prepare(case.work, sizes, PATIENCE)
    if "skipped" in reply or "error" in reply:
        if "error" in reply:
            participant.stop()
        return dict(reply)
    return {"repetitions": reply["repetitions"], "values": {}}


def _add(outcome: Result, reply: Reply) -> None:
    if "error" in reply:
        outcome["error"] = reply["error"]
        return
    for figure, value in reply["values"].items():
        outcome["values"].setdefault(figure, []).append(value)


def _summary(results: dict[str, Result]) -> str:
    words = []
    for name, outcome in results.items():
        if "error" in outcome:
            words.append(f"{name} FAILED")
        elif "values" in outcome:
            words.append(name if outcome["correct"] else f"{name} WRONG")
    return ", ".join(words) or "nobody can"


def failures(cases: dict[str, Result], name: str) -> list[str]:
    """Return what failed or came out wrong of one library."""
    found = []
    for case, result in cases.items():
        outcome = result["results"].get(name, {})
        if "error" in outcome:
            found.append(f"{case}: {outcome['error']}")
        elif outcome.get("correct") is False:
            found.append(f"{case}: wrong result")
    return found
