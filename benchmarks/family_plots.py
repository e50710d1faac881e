"""Pictures of a family of cases: throughput over the length of transforms, bars for the others."""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.case import (
    CONVOLUTION,
    ENGINE,
    FFT,
    MATRICES,
    RANDOM,
    REARRANGING,
    REDUCTIONS,
    SCANS,
    SELECTION,
    SORTING,
)
from benchmarks.cases import CASES
from benchmarks.plot import COLOURS, bars_of, draw, draw_bars, headless, save, shown
from benchmarks.report import Report, middle
from benchmarks.table import Line, lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ALL = ("",)
AXIS_REDUCTIONS = ("sum-columns-", "max-columns-", "var-columns-", "sum-rows-", "sum-middle")
WHOLE_REDUCTIONS = ("sum-all", "sum-f", "mean-", "var-all", "norm-", "max-all", "argmax-", "count-", "dot")
# Cases of a family that share an axis: heading, its unit, the beginnings of their names.
BARS: dict[str, tuple[tuple[str, str, tuple[str, ...]], ...]] = {
    FFT: (("other types", "GB/s", ("fft-f64", "fft-f16")), ("real transforms", "GB/s", ("rfft-",))),
    CONVOLUTION: (
        ("many small planes, and a transform scaled in its spectrum", "GB/s", ("fft2-", "scaled-")),
        ("large planes (less is better)", "ms", ("fft2-", "convolution-")),
    ),
    REDUCTIONS: (
        ("vd.reduce", "GB/s", ("reduce-",)),
        ("vd.sum and others, whole arrays", "GB/s", WHOLE_REDUCTIONS),
        ("vd.sum and others, along an axis", "GB/s", AXIS_REDUCTIONS),
    ),
    SCANS: (("scans", "GB/s", ALL),),
    SORTING: (("sorts", "Gkeys/s", ALL),),
    SELECTION: (("selection", "GB/s", ALL),),
    MATRICES: (
        ("float32", "TFLOP/s", ("matmul-f32",)),
        ("float16, sums of float32", "TFLOP/s", ("matmul-f16", "matmul-relu", "matmul-transposed")),
        ("float64", "TFLOP/s", ("matmul-f64",)),
    ),
    RANDOM: (("random numbers", "GB/s", ALL),),
    REARRANGING: (("elements that move", "GB/s", ALL),),
}


def draw_family(report: Report, family: str, path: Path) -> None:
    """Draw a family's cases, and write them in the format that the path's suffix names.

    Raises
    ------
    ValueError
        The report has nothing of it to draw.
    """
    if family == ENGINE:
        draw(report, path)
        return
    pyplot = headless()
    found = [line for line in lines(report, family) if line.ours is not None or line.peers]
    panels = [(f"{title}, {unit}", _chosen(found, unit, starts)) for title, unit, starts in BARS[family]]
    panels = [panel for panel in panels if panel[1]]
    curves = [
        (title, series) for title, series in CURVES.items() if family == FFT and _points(report, series)
    ]
    if not panels and not curves:
        raise ValueError(f"the file has no case of {family} that is drawn")
    heights = [4.5] * len(curves) + [1 + 0.19 * sum(map(bars_of, chosen)) for _, chosen in panels]
    figure, axes = pyplot.subplots(
        len(heights), 1, figsize=(9, sum(heights)), height_ratios=heights, squeeze=False, layout="constrained"
    )
    for axis, (title, series) in zip(axes[:, 0], curves, strict=False):
        draw_curves(axis, report, title, series)
    for axis, (title, chosen) in zip(axes[len(curves) :, 0], panels, strict=True):
        draw_bars(axis, title, chosen, "linear")
    figure.suptitle(f"{report['device']}, {report['date'][:10]}")
    save(figure, path)


def _chosen(found: list[Line], unit: str, starts: tuple[str, ...]) -> list[Line]:
    return [line for line in found if line.row.case.startswith(starts) and line.row.shown_unit == unit]


# Title, and for each style the sizes that its cases have beside their lengths.
Series = tuple[tuple[str, dict[str, float]], ...]
CURVES: dict[str, Series] = {
    "complex64 along the last axis, GB/s (one read and one write)": (("o-", {}),),
    "complex64 along other axes, GB/s: first of two solid, middle of three dashed": (
        ("o-", {"axis": 0}),
        ("s--", {"axis": 1}),
    ),
}


def _points(report: Report, series: Series) -> list[int]:
    return [n for _, sizes in series for n, name in _cases(sizes) if name in report["cases"]]


def _cases(sizes: dict[str, float]) -> list[tuple[int, str]]:
    """Return lengths and names of the transforms that have these sizes and a length, and no others."""
    return sorted(
        (int(case.sizes["n"]), case.name)
        for case in CASES
        if case.work == "fft" and case.sizes == sizes | {"n": case.sizes["n"]}
    )


def draw_curves(axis: "Axes", report: Report, title: str, series: Series) -> None:
    """Draw throughput over length: a line through the powers of two, marks at the others."""
    for name in reversed(list(report["participants"])):
        for number, (style, sizes) in enumerate(series):
            values = [(n, middle(report, case, name, "gbps")) for n, case in _cases(sizes)]
            known = [(n, value) for n, value in values if value is not None]
            powers = [point for point in known if point[0] & (point[0] - 1) == 0]
            others = [point for point in known if point not in powers]
            colour, label = COLOURS.get(name, "black"), shown(name) if number == 0 else None
            if powers:
                axis.plot(*zip(*powers, strict=True), style, color=colour, label=label, markersize=4)
            if others:
                axis.plot(*zip(*others, strict=True), "x", color=colour, markersize=5)
    axis.set_xscale("log", base=2)
    axis.set_ylim(bottom=0)
    axis.set_xlabel("length")
    crosses = " (crosses: not powers of two)" if len(series) == 1 else ""
    axis.set_title(title + crosses, fontsize=9)
    axis.legend(fontsize=7, ncols=2)
