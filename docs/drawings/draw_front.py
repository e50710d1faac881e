"""Draw the charts of README and front page from benchmarks/results: python docs/drawings/draw_front.py."""

import json
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
OUT = ROOT / "docs" / "_static"
OURS, TORCH, COMPILED, CUPY, CUFFT = "#d62728", "#ff7f0e", "#c9a227", "#2ca02c", "#1f77b4"
# a label hides the line behind it
_BEHIND = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}


def main() -> None:
    """Draw the three charts."""
    draw_expressions()
    draw_functions()
    draw_transforms()


def load(name: str) -> Any:
    """Return the contents of a file of results."""
    return json.loads((RESULTS / name).read_text())


def draw_bars(
    name: str, title: str, groups: list[str], bars: dict[str, tuple[str, list[float | None]]]
) -> None:
    """Draw how many times as long as the first library each one takes: a group of bars for each program.

    Values are milliseconds, which the bars are labelled with.
    """
    from matplotlib import pyplot

    height = 0.8 / len(bars)
    _, first = next(iter(bars.values()))
    figure, axis = pyplot.subplots(figsize=(6.4, 0.85 + 0.22 * len(groups) * len(bars)), layout="constrained")
    for number, (library, (colour, values)) in enumerate(bars.items()):
        for group, (value, unit) in enumerate(zip(values, first, strict=True)):
            if value is not None and unit is not None:
                place = group + number * height
                label = library if group == 0 else None
                axis.barh(place, value / unit, height * 0.9, color=colour, label=label)
                axis.text(value / unit, place, f" {value:.2g} ms", va="center", fontsize=8, bbox=_BEHIND)
    axis.set_yticks([group + 0.4 - height / 2 for group in range(len(groups))], groups, fontsize=9)
    axis.invert_yaxis()
    axis.axvline(1, color="black", linewidth=0.5, zorder=0)
    axis.set_xlim(0, axis.get_xlim()[1] * 1.08)
    axis.set_xlabel("time relative to vkdispatch; shorter is better", fontsize=8)
    axis.tick_params(axis="x", labelsize=8)
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_title(title, fontsize=10, loc="left")
    figure.legend(loc="outside lower center", ncols=len(bars), frameon=False, fontsize=8)
    save(figure, name)


def draw_expressions() -> None:
    """Draw how long ten element-wise operations take, and other programs."""
    found = load("expressions-NVIDIA-H200-580.159.04-2026-11-24.json")
    cases = {
        "ten operations\non 2^26 numbers": "ten operations, 67108864",
        "stencil, 8192 x 8192": "stencil, 8192 x 8192",
        "ten operations\non 2^12 numbers": "ten operations, 4096",
        "Black-Scholes, 2^24": "Black-Scholes, 2^24",
    }
    libraries = {
        "vkdispatch.numpy": (OURS, "vkdispatch"),
        "torch.compile": (COMPILED, "torch.compile"),
        "PyTorch": (TORCH, "torch"),
        "CuPy": (CUPY, "cupy"),
    }
    bars: dict[str, tuple[str, list[float | None]]] = {
        name: (colour, [found[key][case][0] / 1000 for case in cases.values()])
        for name, (colour, key) in libraries.items()
    }
    draw_bars("front-expressions", "NumPy expressions (NVIDIA H200)", list(cases), bars)


def draw_functions() -> None:
    """Draw how long functions on 2^26 numbers take."""
    called = load("nvidia-h200-2026-11-23-array-calls.json")["libraries"]
    later = load("nvidia-h200-2026-11-23-kernels.json")["array calls, 2^26 elements, us"]
    names = {"sum": "sum", "cumsum": "cumsum", "sort": "sort", "topk 16 of": "topk"}

    def find(library: str, name: str) -> float | None:
        newer = later.get(f"{name} float32", {}).get(library)
        older = called.get(library, {}).get(f"{name} 67108864")
        value = newer if newer is not None else older and older[0]
        return None if value is None else value / 1000

    libraries = {"vkdispatch": (OURS, "vkdispatch"), "PyTorch": (TORCH, "torch"), "CuPy": (CUPY, "cupy")}
    bars = {name: (colour, [find(key, case) for case in names]) for name, (colour, key) in libraries.items()}
    groups = ["top 16" if label == "topk" else label for label in names.values()]
    draw_bars("front-functions", "Functions of 2^26 float32 (NVIDIA H200)", groups, bars)


def draw_transforms() -> None:
    """Draw the bandwidth of Fourier transforms by length, beside the better of two bindings of cuFFT."""
    from matplotlib import pyplot

    cases = load("nvidia-h200-2026-11-21-transforms.json")["cases"]
    lengths = sorted(int(name[4:]) for name in cases if name.startswith("fft-") and name[4:].isdigit())

    def find(length: int, library: str) -> float:
        result = cases[f"fft-{length}"]["results"].get(library, {})
        return median(result["values"]["gbps"]) if result.get("values") else 0.0

    figure, axis = pyplot.subplots(figsize=(6.4, 2.8), layout="constrained")
    for label, colour, libraries in (
        ("vkdispatch", OURS, ["vkdispatch"]),
        ("cuFFT", CUFFT, ["cupy", "torch"]),
    ):
        values = [max(find(length, library) for library in libraries) for length in lengths]
        axis.plot(range(len(lengths)), values, "o", color=colour, label=label, markersize=4)
    axis.set_xticks(range(len(lengths)), [str(length) for length in lengths], rotation=60, fontsize=8)
    axis.set_ylim(bottom=0)
    axis.set_xlabel("length", fontsize=8)
    axis.set_ylabel("GB/s; higher is better", fontsize=8)
    axis.tick_params(axis="y", labelsize=8)
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_title("Fourier transforms of 2^26 complex64 (NVIDIA H200)", fontsize=10, loc="left")
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    save(figure, "front-transforms")


def save(figure: Any, name: str) -> None:
    """Write a chart, the same bytes each time."""
    figure.savefig(OUT / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "vkdispatch"
    main()
