"""A photograph turned, enlarged and shrunk by sampling: filters and mip levels instead of arithmetic.

Run as a program it writes warp.png (or what `--output` names) and fails if the device and the CPU disagree.
"""

import argparse
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image
from scipy import ndimage
from sklearn.datasets import load_sample_image

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Const, Img2, SImg2, f32, m2, v2, v4

Picture = npt.NDArray[Any]

OUTPUT = Path("warp.png")  # in the current folder
ANGLE = math.radians(20)
ZOOM = 1.5
SHRINK = 4
# Colours go from 0 to 1. GPUs weigh neighbouring texels with eight bits, along each axis.
TOLERANCE = 2 / 256


@vd.shader("(target.shape[1], target.shape[0])", local_size=(16, 16))
def warp(source: Img2[f32], target: SImg2[v4], turn: Const[m2], middle: Const[v2], level: Const[f32]) -> None:
    """Fill the target with the source seen through a linear map around the middles of both."""
    here = vc.global_invocation_id()
    size = target.size()
    across = vc.to_float(vc.to_int(here.x)) - (vc.to_float(size.x) - 1) / 2
    down = vc.to_float(vc.to_int(here.y)) - (vc.to_float(size.y) - 1) / 2
    from_middle = vc.new_vec2_register(across, down)
    target[here.x, here.y] = source.sample(turn @ from_middle + middle, level)


class Warper:
    """A picture on the device, ready to be seen at any angle and scale."""

    def __init__(self, picture: Picture) -> None:
        """Upload a picture (rows, columns, RGB) and its smaller copies."""
        rows, columns, _ = picture.shape
        self.image = vd.Image2D((rows, columns), vd.float32, 3, enable_mipmaps=True)
        self.image.write(picture)
        self.sampler = self.image.sample(max_lod=float(self.image.mip_levels))
        self.middle = ((columns - 1) / 2, (rows - 1) / 2)

    def run(self, shape: tuple[int, int], angle: float, scale: float) -> Picture:
        """Return a picture of (rows, columns), turned by `angle` (radians) and `scale` times as large."""
        target = vd.Image2D(shape, vd.float32, 4)
        level = max(-math.log2(scale), 0.0)
        # A mat2 is columns: transposed, as NumPy has rows.
        warp(self.sampler, target, inverse_map(angle, scale).T.astype(np.float32), self.middle, level)
        result: Picture = target.read()[..., :3]
        return result


def inverse_map(angle: float, scale: float) -> Picture:
    """Return the matrix from offsets (x, y) in the result to offsets in the source."""
    c, s = math.cos(angle) / scale, math.sin(angle) / scale
    return np.array([[c, s], [-s, c]])


def scipy_warp(picture: Picture, shape: tuple[int, int], angle: float, scale: float) -> Picture:
    """Sample between four pixels on the CPU, in float64."""
    y, x = np.indices(shape, np.float64)
    offsets = np.stack((x - (shape[1] - 1) / 2, y - (shape[0] - 1) / 2))
    x, y = np.tensordot(inverse_map(angle, scale), offsets, 1)
    places = [y + (picture.shape[0] - 1) / 2, x + (picture.shape[1] - 1) / 2]
    channels = [
        ndimage.map_coordinates(picture[..., i].astype(np.float64), places, order=1, mode="nearest")
        for i in range(3)
    ]
    return np.stack(channels, axis=-1)


def block_means(picture: Picture, size: int) -> Picture:
    """Return the mean of each square of size x size pixels."""
    rows, columns, channels = picture.shape
    blocks = picture.astype(np.float64).reshape(rows // size, size, columns // size, size, channels)
    means: Picture = blocks.mean(axis=(1, 3))
    return means


def agrees(what: str, ours: Picture, reference: Picture) -> bool:
    """Print the errors against a reference; return whether they are within the tolerance."""
    errors = np.abs(ours - reference)
    # Written so that NaN fails.
    good = bool(errors.max() <= TOLERANCE)
    print(
        f"  {what:<28} max error {errors.max():.1e}, mean {errors.mean():.1e}; "
        f"allowed {TOLERANCE:.0e}: {'ok' if good else 'FAILED'}"
    )
    return good


def photo() -> Picture:
    """Return a photograph (rows, columns, RGB from 0 to 1, float32) whose sides are multiples of 4."""
    whole: Picture = load_sample_image("china.jpg")[:424, :640].astype(np.float32) / 255
    return whole


def main(output: Path = OUTPUT) -> int:
    """Run everything; return the exit status."""
    picture = photo()
    rows, columns, _ = picture.shape
    warper = Warper(picture)
    turned = warper.run((rows, columns), ANGLE, ZOOM)
    small = warper.run((rows // SHRINK, columns // SHRINK), 0.0, 1 / SHRINK)
    print(f"A photograph of {columns} x {rows} pixels on {vd.get_context().device_infos[0].device_name}:")
    correct = agrees("turned and enlarged, SciPy", turned, scipy_warp(picture, (rows, columns), ANGLE, ZOOM))
    correct &= agrees("shrunk, mean of blocks", small, block_means(picture, SHRINK))
    panel = np.zeros((rows, columns // SHRINK, 3), np.float32)
    panel[: rows // SHRINK] = small
    output.parent.mkdir(parents=True, exist_ok=True)
    shown = np.concatenate((picture, turned, panel), axis=1)
    Image.fromarray((np.clip(shown, 0, 1) * 255 + 0.5).astype(np.uint8)).save(output)
    print(f"Photograph, turned, shrunk: {output}")
    return 0 if correct else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=OUTPUT, help="the picture to write")
    sys.exit(main(parser.parse_args().output))
