"""Finding coins that look like one of them: template matching by cross-correlation in frequency space.

Run as a program it writes template_matching.png (or what `--output` names) and fails if the device and the
CPU disagree. The picture, of Greek coins from Pompeii, comes with scikit-image.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import ndimage, signal
from skimage import data
from skimage.feature import match_template

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, c64, f32

Picture = npt.NDArray[Any]

OUTPUT = Path("template_matching.png")  # in the current folder
COIN = (slice(172, 218), slice(78, 126))  # rows and columns of the template
ALIKE = 0.55  # likeness (at most 1) from which on a place counts as found

# The largest error allowed; likeness is between -1 and 1.
TOLERANCE = {"correlation, SciPy": 1e-5, "likeness, scikit-image": 2e-4}


@vd.shader("likeness.size")
def normalize(
    likeness: Buff[f32], correlation: Buff[c64], sums: Buff[c64], pixels: Const[f32], energy: Const[f32]
) -> None:
    """Divide a correlation by the contrast of the picture under the template, and by the template's own."""
    i = vc.global_invocation_id().x
    # the sum under the template, and that of the squares
    total = sums[i].to_register()
    contrast = vc.max(total.imag - total.real * total.real / pixels, 1e-6)
    likeness[i] = correlation[i].real / vc.sqrt(contrast * energy)


def spectrum(values: Picture, shape: tuple[int, int]) -> "vd.Buffer[Any]":
    """Return the spectrum of a small array at the corner of a big one of zeros."""
    padded = np.zeros(shape, np.complex64)
    padded[: values.shape[0], : values.shape[1]] = values
    buffer = vd.asbuffer(padded)
    vd.fft.fft2(buffer)
    return buffer


def match(picture: Picture, template: Picture) -> tuple[Picture, Picture]:
    """Return the correlation of a template without its mean, and its likeness, wherever it fits."""
    shape = (picture.shape[0], picture.shape[1])
    sought = template - template.mean()
    # less to cancel: neither outcome depends on the brightness of the whole
    level = picture - picture.mean()
    correlation = vd.asbuffer(level.astype(np.complex64))
    vd.fft.convolve2D(correlation, spectrum(sought, shape))
    # two real correlations as one: with ones, of the picture and of its square
    sums = vd.asbuffer((level + 1j * level**2).astype(np.complex64))
    vd.fft.convolve2D(sums, spectrum(np.ones_like(template), shape))
    likeness = vd.Buffer(shape, vd.float32)
    normalize(likeness, correlation, sums, template.size, float((sought.astype(np.float64) ** 2).sum()))
    # further down and to the right the template would wrap around
    fits = tuple(slice(n - m + 1) for n, m in zip(shape, template.shape, strict=True))
    return correlation.read(0).real[fits], likeness.read(0)[fits]


def places(likeness: Picture, shape: tuple[int, int]) -> list[tuple[int, int]]:
    """Return (row, column) of each local maximum of the likeness, the best one first."""
    highest = ndimage.maximum_filter(likeness, size=shape)
    rows, columns = np.nonzero((likeness == highest) & (likeness >= ALIKE))
    order = np.argsort(-likeness[rows, columns])
    return [(int(rows[i]), int(columns[i])) for i in order]


def agrees(what: str, ours: Picture, reference: Picture, size: float = 1.0) -> bool:
    """Print the error against a reference, as a part of `size`; return whether it is within the tolerance."""
    worst = np.abs(ours - reference).max() / size if ours.shape == reference.shape else np.inf
    # Written so that NaN fails.
    good = bool(worst <= TOLERANCE[what])
    print(f"  {what:<24} {worst:.1e}; allowed {TOLERANCE[what]:.0e}: {'ok' if good else 'FAILED'}")
    return good


def check(picture: Picture, template: Picture) -> tuple[bool, Picture]:
    """Match on the device and on the CPU; return whether they agree, and the likeness."""
    correlation, likeness = match(picture, template)
    exact = picture.astype(np.float64), template.astype(np.float64)
    reference = signal.correlate(exact[0], exact[1] - exact[1].mean(), mode="valid", method="fft")
    checks = [
        agrees("correlation, SciPy", correlation, reference, np.abs(reference).max()),
        agrees("likeness, scikit-image", likeness, match_template(*exact)),
    ]
    return all(checks), likeness


def draw(picture: Picture, template: Picture, likeness: Picture, path: Path) -> None:
    """Draw template, likeness, and what was found."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    figure = Figure(figsize=(10, 3.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(1, 3, 3))
    left.imshow(template, cmap="gray", vmin=0, vmax=1)
    left.set_title("sought")
    image = middle.imshow(likeness, cmap="magma", vmin=0, vmax=1)
    middle.set_title("likeness")
    figure.colorbar(image, ax=middle)
    right.imshow(picture, cmap="gray", vmin=0, vmax=1)
    found = places(likeness, (template.shape[0], template.shape[1]))
    for number, (row, column) in enumerate(found):
        colour = "#e4572e" if number == 0 else "#f3a712"
        size = template.shape[1], template.shape[0]
        right.add_patch(Rectangle((column, row), *size, fill=False, edgecolor=colour, linewidth=1.5))
        right.text(column + 2, row + 9, f"{likeness[row, column]:.2f}", color=colour, fontsize=7)
    right.set_title("found")
    for axes in (left, middle, right):
        axes.set_axis_off()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def make_figure(path: Path) -> bool:
    """Compute, compare and draw; return whether the device and the CPU agree."""
    picture: Picture = data.coins().astype(np.float32) / 255
    template = picture[COIN]
    print(f"A picture of {picture.shape} pixels, a template of {template.shape}.")
    correct, likeness = check(picture, template)
    row, column = places(likeness, (template.shape[0], template.shape[1]))[0]
    print(f"  best at row {row}, column {column}: {likeness[row, column]:.3f}")
    draw(picture, template, likeness, path)
    return correct and (row, column) == (COIN[0].start, COIN[1].start)


def main(output: Path = OUTPUT) -> int:
    """Run everything; return the exit status."""
    correct = make_figure(output)
    print(f"Template, likeness, matches: {output}")
    return 0 if correct else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=OUTPUT, help="the picture to write")
    sys.exit(main(parser.parse_args().output))
