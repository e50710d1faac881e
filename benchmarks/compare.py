"""Two result files: what got slower or faster beyond the noise of their rounds."""

from dataclasses import dataclass
from statistics import median

from benchmarks.cases import FIGURES, better_if_more
from benchmarks.processes import OURS
from benchmarks.report import Report, values
from benchmarks.table import number


@dataclass(frozen=True, slots=True)
class Change:
    """One figure in both files.

    Attributes
    ----------
    slowdown
        How many times worse the second is: 1.2 is a fifth more time, or the rate divided by 1.2.
    beyond_noise
        No round of one file reaches into the range of the other's rounds.
    """

    case: str
    figure: str
    before: float
    after: float
    slowdown: float
    beyond_noise: bool


def changes(before: Report, after: Report, name: str = OURS) -> list[Change]:
    """Return every figure that both files have of a library, the worst first."""
    found = []
    for case, entry in after["cases"].items():
        for figure in entry["figures"]:
            first, second = values(before, case, name, figure), values(after, case, name, figure)
            if first and second:
                found.append(_change(case, figure, first, second))
    return sorted(found, key=lambda change: -change.slowdown)


def _change(case: str, figure: str, first: list[float], second: list[float]) -> Change:
    before, after = median(first), median(second)
    better, worse = (after, before) if better_if_more(case, figure) else (before, after)
    slowdown = worse / better if better > 0 and worse > 0 else 1.0
    apart = max(first) < min(second) or max(second) < min(first)
    return Change(case, figure, before, after, slowdown, apart)


def differences(before: Report, after: Report) -> list[str]:
    """Return what else differs between the files and makes figures hard to compare."""
    keys = ("device", "driver_version", "size")
    return [f"{key}: {before[key]} and {after[key]}" for key in keys if before[key] != after[key]]


def lost(before: Report, after: Report) -> list[str]:
    """Return the cases that had a right result in the first file and have none in the second."""
    had = {case for case, entry in before["cases"].items() if entry["results"].get(OURS, {}).get("correct")}
    asked = after["cases"].keys()
    has = {case for case in asked if after["cases"][case]["results"].get(OURS, {}).get("correct")}
    return sorted((had & asked) - has)


def as_text(found: list[Change], least: float) -> str:
    """Write the changes beyond noise that are at least `least` (0.05: five per cent), slower ones first."""
    shown = [
        change
        for change in found
        if change.beyond_noise and max(change.slowdown, 1 / change.slowdown) >= 1 + least
    ]
    if not shown:
        return f"nothing changed by more than {least:.0%} beyond noise, in {len(found)} figures"
    return "\n".join(_line(change) for change in shown)


def _line(change: Change) -> str:
    unit = FIGURES[change.figure][0]
    word, factor = "slower", change.slowdown
    if factor < 1:
        word, factor = "faster", 1 / factor
    what = f"{change.case} {change.figure}"
    return (
        f"{what:<42}{number(change.before):>10} -> {number(change.after):>10} {unit:<5}{factor:6.2f}x {word}"
    )
