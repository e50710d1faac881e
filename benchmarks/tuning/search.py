"""The search for better tuning numbers: one after another, each by the calls that it decides.

The candidates of a number take turns. A candidate wins if it is faster than the default over all the calls of
the number, by more than 3 % and by more than the noise, and is not slower in any of them.
"""

import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import vkdispatch as vd
from benchmarks.tuning.calls import TABLES, Call, Trial, is_close, list_calls, list_numbers
from vkdispatch.base.compilation import disk_cache
from vkdispatch.base.errors import VkDispatchError
from vkdispatch.families.tuning import Number, Table, device_facts, forget, keep, load_kept

LEAST_GAIN = 0.03
# Elements of the calls' arrays.
GPU, CPU, QUICK = 1 << 25, 1 << 20, 1 << 14


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured.

    Attributes
    ----------
    size
        Elements of arrays.
    rounds
        Turns of each candidate.
    seconds
        What the calls of a turn take about.
    """

    size: int
    rounds: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Finding:
    """What came out for a number.

    Attributes
    ----------
    number
        The number.
    best
        The value that is kept, or the default.
    gains
        By value, how much faster than the default it is over all calls: 0.1 is 10 %.
    refused
        Values that cannot be used on this device, and why.
    wrong
        Values with which a result was wrong, and the calls.
    """

    number: Number[Any]
    best: Any
    gains: dict[Any, float]
    refused: dict[Any, str]
    wrong: dict[Any, str]


def choose_effort(quick: bool) -> Effort:
    """Return how much is measured on the current device."""
    if quick:
        return Effort(QUICK, 1, 0.0)
    return Effort(CPU, 5, 0.05) if device_facts().is_cpu else Effort(GPU, 7, 0.02)


def select_numbers(only: Sequence[str], other_rounding: bool) -> list[tuple[Table, Number[Any]]]:
    """Return the numbers that decide plans on the current device.

    Parameters
    ----------
    only
        Families, or keys of numbers; empty for all.
    other_rounding
        Whether numbers that change the last bits of results are among them.

    Raises
    ------
    ValueError
        A word of `only` names no number with candidates.
    """
    everything = list(list_numbers(device_facts().is_cpu))
    for word in only:
        if not any(_is_named(number.key, word) for _, number in everything):
            names = ", ".join(dict.fromkeys(table.family for table, _ in everything))
            raise ValueError(
                f"--only {word}: names no number that decides plans on this device and has candidates; "
                f"families are {names}, a number of them is {everything[0][1].key}"
            )
    return [
        (table, number)
        for table, number in everything
        if (other_rounding or not number.changes_rounding)
        and (not only or any(_is_named(number.key, word) for word in only))
    ]


def _is_named(key: str, word: str) -> bool:
    """Whether a word is a number's key, or its family."""
    return f"{key}.".startswith(f"{word}.")


def search(numbers: Sequence[tuple[Table, Number[Any]]], effort: Effort) -> Iterator[Finding]:
    """Measure the candidates of numbers, keep those that win, and yield what came out for each."""
    make = lru_cache(8)(lambda call: call.make(effort.size))
    for table, number in numbers:
        calls = [call for call in list_calls() if number.key in call.numbers]
        finding = judge(table, number, [(call, make(call)) for call in calls], effort)
        context = vd.get_context()
        if finding.best != number.default:
            keep(context, {number: finding.best})
        else:
            forget(context, [number.key])
        yield finding


Times = dict[Any, list[float]]


def judge(table: Table, number: Number[Any], calls: Sequence[tuple[Call, Trial]], effort: Effort) -> Finding:
    """Measure the candidates of a number by calls, and choose one."""
    refused: dict[Any, str] = {}
    wrong: dict[Any, str] = {}
    for call, trial in calls:
        with table.change(**{number.name: number.default}):
            want = trial.results()
        for value in number.candidates:
            if value in refused or value in wrong:
                continue
            try:
                with table.change(**{number.name: value}):
                    got = trial.results()
            except VkDispatchError as error:
                refused[value] = str(error).splitlines()[0]
                continue
            if not is_close(got, want, max(call.tolerance, 1e-6)):
                wrong[value] = call.name
            elif not number.changes_rounding and not is_close(got, want, 0.0):
                refused[value] = f"it changes the last bits of the {call.name}"
    values = [value for value in number.candidates if value not in refused and value not in wrong]

    def measure_all(values: Sequence[Any]) -> list[Times]:
        return [measure(table, number, values, trial, effort) for _, trial in calls]

    times = measure_all(values)
    gains = {value: find_gain(times, number.default, value) for value in values}
    best = max(values, key=lambda value: gains[value], default=number.default)
    # of many candidates one may have been lucky: it has to win again
    if not (
        wins(times, number.default, best) and wins(measure_all([number.default, best]), number.default, best)
    ):
        best = number.default
    return Finding(number, best, gains, refused, wrong)


def find_gain(times: Sequence[Times], default: Any, value: Any) -> float:
    """Return how much faster than the default a value is over all calls, by the medians of rounds."""
    return math.exp(statistics.fmean(map(math.log, _list_ratios(times, default, value)))) - 1


def wins(times: Sequence[Times], default: Any, value: Any) -> bool:
    """Whether a value is faster than the default over all calls, beyond the noise, and slower in none.

    It is beyond the noise if in one of the calls each of its rounds was faster than each of the default's.
    """
    return (
        find_gain(times, default, value) > LEAST_GAIN
        and min(_list_ratios(times, default, value)) > 1 - LEAST_GAIN
        and any(max(each[value]) < min(each[default]) for each in times)
    )


def _list_ratios(times: Sequence[Times], default: Any, value: Any) -> list[float]:
    return [statistics.median(each[default]) / statistics.median(each[value]) for each in times]


def measure(table: Table, number: Number[Any], values: Sequence[Any], trial: Trial, effort: Effort) -> Times:
    """Return the seconds of a call in each round, by value. Values take turns, and who begins changes."""
    with table.change(**{number.name: number.default}):
        trial.run()
        once = _time(trial.run, 1)
    repetitions = max(1, min(1000, int(effort.seconds / max(once, 1e-7))))
    times: Times = {value: [] for value in values}
    for turn in range(effort.rounds):
        first = turn % len(values)
        for value in [*values[first:], *values[:first]]:
            with table.change(**{number.name: value}):
                trial.run()  # planned, and compiled the first time
                trial.run()
                times[value].append(_time(trial.run, repetitions))
    return times


def _time(run: Callable[[], object], repetitions: int) -> float:
    vd.queue_wait_idle()
    start = time.perf_counter()
    for _ in range(repetitions):
        run()
    vd.queue_wait_idle()
    return (time.perf_counter() - start) / repetitions


def describe(finding: Finding) -> str:
    """Return a line about what came out for a number, and one for each value that cannot be used."""
    number, best = finding.number, finding.best
    if best == number.default:
        line = f"{number.key:<40} {_show(number, best):>12}  stays"
    else:
        line = f"{_show_change(number, best)} ({finding.gains[best]:+.1%})"
    for value, reason in finding.refused.items():
        line += f"\n    {_show(number, value)} cannot be used on this device: {reason}"
    for value, call in finding.wrong.items():
        line += f"\n    {_show(number, value)} GIVES A WRONG RESULT: {call}"
    return line


def _show_change(number: Number[Any], value: Any) -> str:
    return f"{number.key:<40} {_show(number, number.default):>12}  -> {_show(number, value)}"


def _show(number: Number[Any], value: Any) -> str:
    """Return a value's text, or of tables, which are long, their place among the candidates."""
    return f"table {number.candidates.index(value)}" if isinstance(value, tuple) else str(value)


def require_cache() -> None:
    """Raise ValueError if nothing can be kept."""
    if not disk_cache.is_enabled():
        raise ValueError("the disk cache is off, so nothing can be kept; see VKDISPATCH_CACHE")


def name_device() -> str:
    """Return the names of the current context's devices."""
    return ", ".join(info.device_name for info in vd.get_context().device_infos)


def list_kept(only: Sequence[str]) -> list[str]:
    """Return a line for each number that is kept for the current device and counts."""
    kept = load_kept(vd.get_context())
    numbers = [number for table in TABLES for number in table.numbers.values()]
    return [
        _show_change(number, value)
        for number in numbers
        if (not only or any(_is_named(number.key, word) for word in only))
        and (value := number.find_in(kept)) != number.default
    ]


def forget_kept(only: Sequence[str]) -> list[str]:
    """Drop what is kept for the current device, of all families or some; return the keys."""
    context = vd.get_context()
    keys = [key for key in load_kept(context) if not only or any(_is_named(key, word) for word in only)]
    return forget(context, keys)
