"""The brightness of a photograph is spread evenly: a count, a running sum, and a look-up.

The map from colour to brightness runs inside of both the count and the look-up: the brightness of the
pixels is never written. Run as a program it writes equalize.png (or what `--output` names) and fails if
device and CPU disagree.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image
from skimage.exposure import equalize_hist
from sklearn.datasets import load_sample_image

import vkdispatch as vd
from vkdispatch.codegen.abbreviations import Const, f32, i32, v3

Picture = npt.NDArray[Any]

OUTPUT = Path("equalize.png")  # in the current folder
LEVELS = 256
TOLERANCE = 1e-6


@vd.map
def brightness(colour: v3) -> i32:
    """Return how bright a colour is, from 0 to 255."""
    # times 256: numbers that floats have exactly, so that the CPU's are the same
    return (colour.x * 54 + colour.y * 183 + colour.z * 19).to_dtype(vd.int32) // 256


@vd.map
def share(pixels: f32, all_pixels: Const[f32]) -> f32:
    """Return which part of all pixels some are."""
    return pixels / all_pixels


def equalized(photo: Picture) -> Picture:
    """Return, for each pixel of a photograph (rows, columns, RGB from 0 to 255), the share of darker ones."""
    rows, columns, _ = photo.shape
    pixels = vd.Buffer((rows, columns), vd.vec3)
    pixels.write(photo.astype(np.float32))
    counts = vd.bincount(brightness(pixels), size=LEVELS)
    shares = vd.cumsum(counts, dtype=vd.float32, output_map=share(float(rows * columns)))
    result: Picture = vd.take(shares, brightness(pixels)).read(0)
    return result


def reference(photo: Picture) -> tuple[Picture, Picture]:
    """Return the brightness, and what scikit-image makes of it."""
    grey = (photo.astype(np.int64) @ np.array([54, 183, 19]) // 256).astype(np.uint8)
    return grey, equalize_hist(grey)


def main(output: Path = OUTPUT) -> int:
    """Run everything; return the exit status."""
    photo = load_sample_image("china.jpg")
    ours = equalized(photo)
    grey, theirs = reference(photo)
    error = float(np.abs(ours - theirs).max())
    good = error <= TOLERANCE
    print(f"A photograph of {photo.shape[1]} x {photo.shape[0]} pixels, its brightness spread evenly.")
    verdict = "ok" if good else "FAILED"
    print(f"  against scikit-image: max error {error:.1e}; allowed {TOLERANCE:.0e}: {verdict}")
    output.parent.mkdir(parents=True, exist_ok=True)
    panels = np.concatenate((grey, (ours * 255 + 0.5).astype(np.uint8)), axis=1)
    Image.fromarray(panels).save(output)
    print(f"Before, after: {output}")
    return 0 if good else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=OUTPUT, help="the picture to write")
    sys.exit(main(parser.parse_args().output))
