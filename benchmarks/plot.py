"""The picture of a file's engine cases, by matplotlib (the optional extra `bench`), and what others share."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.case import ENGINE
from benchmarks.cases import LENGTHS
from benchmarks.processes import FLOOR, OURS, VKFFT
from benchmarks.report import Report, middle
from benchmarks.table import Line, lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {
    OURS: "#d62728",
    "vkdispatch-0.1.0": "#8c564b",
    "kp": "#e377c2",
    "torch": "#ff7f0e",
    "cupy": "#2ca02c",
    "triton": "#1f77b4",
    VKFFT: "#9467bd",
    "pyvkfft": "#17becf",
    "numpy": "#bcbd22",
    FLOOR: "#7f7f7f",
    # what some are judged by
    "copy": "#7f7f7f",
    "fill": "#7f7f7f",
}
# Cases that share an axis: heading, the beginnings of their names.
PANELS = (
    ("host time of an eager call, µs", ("call-",)),
    ("launch, then wait or read, µs", ("launch-",)),
    ("memory, GB/s", ("upload", "download", "saxpy", "copy")),
    ("start, ms", ("startup", "compile")),
)


def draw(report: Report, path: Path) -> None:
    """Draw everything that the report has, and write it in the format that the path's suffix names.

    Raises
    ------
    ValueError
        The report has nothing to draw.
    """
    pyplot = headless()
    found = [line for line in lines(report, ENGINE) if line.ours is not None]
    panels: list[tuple[str, list[Line]]] = [
        (title, [line for line in found if line.row.case.startswith(starts)]) for title, starts in PANELS
    ]
    panels = [panel for panel in panels if panel[1]]
    graphs = any(line.row.case.startswith("graph-") for line in found)
    if not panels and not graphs:
        raise ValueError("the file has no case that is drawn")
    heights = [1 + 0.28 * sum(bars_of(line) for line in chosen) for _, chosen in panels] + [4.0] * graphs
    figure, axes = pyplot.subplots(
        len(heights), 1, figsize=(9, sum(heights)), height_ratios=heights, squeeze=False, layout="constrained"
    )
    for axis, (title, chosen) in zip(axes[:, 0], panels, strict=False):
        draw_bars(axis, title, chosen)
    if graphs:
        draw_graphs(axes[-1, 0], report)
    figure.suptitle(f"{report['device']}, {report['date'][:10]}")
    save(figure, path)


def headless() -> Any:
    """Return matplotlib's pyplot, made to draw without a screen; raises ImportError where there is none."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def save(figure: "Figure", path: Path) -> None:
    """Write a figure in the format that the path's suffix names: the same file from the same numbers."""
    import matplotlib

    path.parent.mkdir(parents=True, exist_ok=True)
    metadata: dict[str, Any] | None = {"Date": None} if path.suffix == ".svg" else None
    with matplotlib.rc_context({"svg.hashsalt": "benchmarks", "savefig.dpi": 150}):
        figure.savefig(path, metadata=metadata)
    headless().close(figure)


def bars_of(line: Line) -> int:
    """Return how many bars a row has, and a gap."""
    return 2 + len(line.peers) + (line.floor is not None)


def shown(name: str) -> str:
    """Return what the pictures call a library: one of the peers has our name."""
    return "ours" if name == OURS else name


def figure_of(value: float) -> str:
    """Write a value with three digits or more."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def draw_bars(axis: "Axes", title: str, chosen: Sequence[Line], scale: str = "log") -> None:
    """Draw bars for each row: ours, the peers, the floor; the goal as a line across them."""
    place = 0.0
    ticks = []
    for line in chosen:
        bars = dict(line.peers) if line.ours is None else {OURS: line.ours, **line.peers}
        if line.floor is not None:
            bars[line.row.yardstick.removeprefix("device-") or FLOOR] = line.floor
        first = place
        for name, value in bars.items():
            axis.barh(place, value, 0.9, color=COLOURS.get(name, "black"))
            axis.text(value, place, f" {shown(name)} {figure_of(value)}", va="center", fontsize=7)
            place += 1
        if line.goal:
            axis.vlines(line.goal, first - 0.5, place - 0.5, colors="black", linestyles="dashed")
        ticks.append(((first + place - 1) / 2, line.row.label))
        place += 1
    axis.set_yticks([at for at, _ in ticks], [label for _, label in ticks], fontsize=8)
    axis.invert_yaxis()
    axis.set_xscale(scale)
    axis.margins(x=0.25, y=0.01)
    notes = ["log"] * (scale == "log") + ["dashed: goal"] * any(line.goal is not None for line in chosen)
    axis.set_title(title + (f" ({'; '.join(notes)})" if notes else ""), fontsize=9)


def draw_graphs(axis: "Axes", report: Report) -> None:
    """Draw what a dispatch of a graph costs, over the graph's length."""
    for work, figure, style in (
        ("graph-dependent", "dispatch_us", "o-"),
        ("graph-independent", "dispatch_us", "s--"),
        ("graph-dependent", "record_us", "^:"),
    ):
        for name in report["participants"]:
            points = [(n, middle(report, f"{work}-{n}", name, figure)) for n in LENGTHS]
            known = [(n, value) for n, value in points if value is not None]
            if known:
                label = f"{shown(name)}: {work.removeprefix('graph-')} {figure.removesuffix('_us')}"
                axis.plot(
                    *zip(*known, strict=True), style, color=COLOURS.get(name), label=label, markersize=4
                )
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("dispatches in the graph")
    axis.set_title("graphs, µs a dispatch", fontsize=9)
    axis.legend(fontsize=6, ncols=2)
