"""The picture of an accuracy sweep, by matplotlib."""

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.plot import COLOURS, headless, save, shown

# 2e-7 sqrt(log2 n) is drawn for these, in their own units.
UNITS = {"complex64": 1.0, "complex128": 2.0**-29}


def draw(found: dict[str, Any], path: Path) -> None:
    """Draw each library's errors over the length, a panel for each type.

    Raises
    ------
    ValueError
        There is nothing to draw.
    """
    pyplot = headless()
    kinds = [
        kind
        for kind, results in found["results"].items()
        if any(entry.get("errors") for entry in results.values())
    ]
    if not kinds:
        raise ValueError("the file has no errors")
    figure, axes = pyplot.subplots(
        len(kinds), 1, figsize=(9, 4.5 * len(kinds)), squeeze=False, layout="constrained"
    )
    for axis, kind in zip(axes[:, 0], kinds, strict=True):
        longest = 2
        # ours last, above the others
        for name, entry in reversed(found["results"][kind].items()):
            if not entry.get("errors"):
                continue
            longest = max(longest, *entry["lengths"])
            colour = COLOURS.get(name, "black")
            # thousands of points: as a picture within the picture
            axis.plot(
                entry["lengths"],
                entry["errors"],
                ".",
                color=colour,
                markersize=2,
                label=shown(name),
                rasterized=True,
            )
        lengths = np.unique(np.geomspace(2, longest, 200))
        axis.plot(lengths, 2e-7 * UNITS[kind] * np.sqrt(np.log2(lengths)), "k--", linewidth=1, label="bound")
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_xlabel("length")
        axis.set_title(f"{kind}: relative L2 error of one transform", fontsize=9)
        axis.legend(fontsize=7, markerscale=4, ncols=3)
    figure.suptitle(f"{found['device']}, {found['date'][:10]}")
    save(figure, path)
