"""The table of a result file: what | ours | goal | best peer | floor."""

from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.cases import BY_NAME, ROWS, Row
from benchmarks.processes import FLOOR, OURS
from benchmarks.report import Report, best, middle, values

HEADINGS = ("what", "unit", "ours", "spread", "goal", "best peer", "ratio", "floor")


@dataclass(frozen=True, slots=True)
class Line:
    """A row with its numbers."""

    row: Row
    ours: float | None
    spread: float | None
    goal: float | None
    peers: dict[str, float]
    floor: float | None
    reason: str

    @property
    def share(self) -> float | None:
        """Return the share of its yardstick that ours reaches; None if it has none."""
        return self.ours / self.floor if self.row.yardstick and self.ours and self.floor else None

    @property
    def best_peer(self) -> tuple[str, float] | None:
        """Return the peer that does best, and its value."""
        if not self.peers:
            return None
        choose = max if self.row.more_is_better else min
        name = choose(self.peers, key=lambda peer: self.peers[peer])
        return name, self.peers[name]

    @property
    def ratio(self) -> float | None:
        """Return how many times better ours is than the best peer."""
        if self.ours is None or self.best_peer is None:
            return None
        better, worse = self.ours, self.best_peer[1]
        if not self.row.more_is_better:
            better, worse = worse, better
        return better / worse if worse else None

    @property
    def met(self) -> bool | None:
        """Return whether the goal is reached; None without one."""
        if self.goal is None or self.ours is None:
            return None
        return self.ours >= self.goal if self.row.more_is_better else self.ours <= self.goal


def lines(report: Report, family: str | None = None) -> list[Line]:
    """Return the rows of the cases that ran: all, or those of a family."""
    names = [name for name in report["participants"] if name not in (OURS, FLOOR)]
    found = []
    for row in ROWS:
        if row.case not in report["cases"] or family not in (None, BY_NAME[row.case].family):
            continue
        rounds = values(report, row.case, OURS, row.figure)
        ours = middle(report, row.case, OURS, row.figure)
        medians = {name: middle(report, row.case, name, row.figure) for name in names}
        floor = middle(report, row.case, FLOOR, row.figure)
        goal = row.goal
        if row.yardstick:
            floor = _yardstick(report, row)
            goal = row.share * floor if row.share and floor else goal
        found.append(
            Line(
                row,
                ours,
                (max(rounds) - min(rounds)) / abs(ours) if ours else None,
                goal if report["size"] == "gpu" or row.anywhere else None,
                {name: value for name, value in medians.items() if value is not None},
                floor,
                _reason(report, row),
            )
        )
    return found


def _yardstick(report: Report, row: Row) -> float | None:
    """Return what the best library reaches in the case that judges a row, in the row's figure.

    Where that counts no bytes, it is how often the row's bytes would be moved so fast.
    """
    reached = best(report, row.yardstick, "gbps")
    if row.figure == "gbps" or reached is None:
        return reached
    figure, moved = best(report, row.case, row.figure), best(report, row.case, "gbps")
    return reached * figure / moved if figure and moved else None


def _reason(report: Report, row: Row) -> str:
    outcome = report["cases"][row.case]["results"].get(OURS, {})
    if "skipped" in outcome:
        return "skipped"
    if "error" in outcome:
        return "FAILED"
    return "WRONG" if outcome.get("correct") is False else "-"


def number(value: float | None) -> str:
    """Write a value with three digits or more."""
    if value is None:
        return "-"
    size = abs(value)
    if size >= 100 or value == 0:
        return f"{value:,.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 0.1 else f"{value:.2g}"


def cells(line: Line) -> tuple[str, ...]:
    """Write a line's cells, as `HEADINGS` names them."""
    best = line.best_peer
    goal = "-"
    if line.goal is not None:
        sign = "≥" if line.row.more_is_better else "≤"
        mark = {None: "", True: " ✓", False: " ✗"}[line.met]
        goal = f"{sign} {number(line.goal)}{mark}"
    return (
        line.row.label,
        line.row.shown_unit,
        line.reason if line.ours is None else number(line.ours),
        "-" if line.spread is None else f"{line.spread:.0%}",
        goal,
        "-" if best is None else f"{number(best[1])} {best[0]}",
        "-" if line.ratio is None else f"{number(line.ratio)}x",
        number(line.floor) + ("" if line.share is None else f" ({line.share:.0%})"),
    )


def as_text(report: Report, family: str | None = None) -> str:
    """Return the table to print."""
    rows = [HEADINGS, *(cells(line) for line in lines(report, family))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    return "\n".join(_aligned(row, widths) for row in rows)


def _aligned(row: Iterable[str], widths: list[int]) -> str:
    padded = [
        cell.ljust(width) if column in (0, 1, 5) else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(padded).rstrip()


def as_rst(report: Report, family: str | None = None) -> str:
    """Return the table as reStructuredText."""
    out = [".. list-table::", "   :header-rows: 1", ""]
    for row in [HEADINGS, *(cells(line) for line in lines(report, family))]:
        # a lone hyphen would be an empty list
        shown = ["" if cell == "-" else cell for cell in row]
        out += [f"   {'* -' if column == 0 else '  -'} {cell}".rstrip() for column, cell in enumerate(shown)]
    return "\n".join(out) + "\n"


def as_page(report: Report, family: str, picture: str) -> str:
    """Return a section of the documentation: what was measured on what, the family's table and picture."""
    machine = report["machine"]
    versions = [
        f"{name} ({about['version']})"
        for name, about in report["participants"].items()
        if name != OURS and "version" in about
    ]
    title = report["device"]
    return "\n".join(
        [
            title,
            "~" * len(title),
            "",
            (
                f"{report['date'][:10]}, commit {report['commit'] or 'unknown'}; {machine['cores']} cores,"
                f" {machine['processor']}; {report['rounds']} rounds in {report['seconds'] / 60:.1f} minutes;"
                f" beside {', '.join(versions)}."
            ),
            "",
            as_rst(report, family),
            f".. image:: {picture}",
            f"   :alt: {title}: the table's values, drawn",
            "   :width: 100%",
            "",
        ]
    )
