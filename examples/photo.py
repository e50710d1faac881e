"""Edge-preserving denoising and an edge map of a photograph, as two kernels in one graph.

Run as a program it writes photo.png (or what `--output` names) and fails if the device and the CPU
disagree.
"""

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image
from scipy import ndimage
from skimage.restoration import denoise_bilateral
from sklearn.datasets import load_sample_image

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, f32, i32, v3

Picture = npt.NDArray[Any]

OUTPUT = Path("photo.png")  # in the current folder
NOISE = 0.08  # standard deviation, of colours from 0 to 1
RADIUS = 3  # pixels: the window is 7 x 7
SIGMA_SPACE = 1.5  # pixels
SIGMA_COLOUR = 0.3  # distance between two RGB colours
LUMA = (0.2126, 0.7152, 0.0722)
REPEATS = 5

# The largest error allowed, for values from 0 to 1 (edges: to about 4). scikit-image rounds colour distances
# to a table, here of 100,000 entries; the other two references are the same formula in float64.
TOLERANCE = {"denoised, scikit-image": 2e-4, "denoised, NumPy": 1e-5, "edges, SciPy": 1e-5}


def pixel(image: vc.BufferVariable, row: vc.ShaderVariable, column: vc.ShaderVariable) -> vc.ShaderVariable:
    """Colour of a pixel; outside the picture, that of the nearest one inside."""
    rows, columns = image.shape.x, image.shape.y
    inside = vc.clamp(row, 0, rows - 1) * columns + vc.clamp(column, 0, columns - 1)
    return image[inside].to_register()


@vd.shader("(noisy.shape[1], noisy.shape[0])", local_size=(16, 16))
def denoise(
    noisy: Buff[v3], near: Buff[f32], clean: Buff[v3], radius: Const[i32], sigma_colour: Const[f32]
) -> None:
    """Average each pixel with those around it: the nearer and the more alike, the more they count."""
    here = vc.global_invocation_id()
    row, column = vc.to_int(here.y).to_register("row"), vc.to_int(here.x).to_register("column")
    centre = pixel(noisy, row, column)
    colour = vc.new_vec3_register(var_name="colour")
    weights = vc.new_float_register(var_name="weights")
    tap = vc.new_int_register(var_name="tap")

    dy = vc.new_int_register(-radius, var_name="dy")
    with vc.while_block(dy <= radius):
        dx = vc.new_int_register(-radius, var_name="dx")
        with vc.while_block(dx <= radius):
            other = pixel(noisy, row + dy, column + dx)
            unlike = (vc.distance(other, centre) / sigma_colour).to_register("unlike")
            weight = (near[tap] * vc.exp(unlike * unlike * -0.5)).to_register("weight")
            colour += other * weight
            weights += weight
            tap += 1
            dx += 1
        dy += 1
    clean[row * noisy.shape.y + column] = colour / weights


@vd.shader("(image.shape[1], image.shape[0])", local_size=(16, 16))
def sobel(image: Buff[v3], edges: Buff[f32]) -> None:
    """Write how steeply brightness changes at each pixel."""
    here = vc.global_invocation_id()
    row, column = vc.to_int(here.y).to_register("row"), vc.to_int(here.x).to_register("column")
    across = vc.new_float_register(var_name="across")
    down = vc.new_float_register(var_name="down")
    # A Python loop: the kernel has its eight steps written out, each with its own two numbers.
    for dy in (-1, 0, 1):
        for dx in (-1, 0, 1):
            if dx or dy:
                colour = pixel(image, row + dy, column + dx)
                luma = (colour.x * LUMA[0] + colour.y * LUMA[1] + colour.z * LUMA[2]).to_register()
                if dx:
                    across += luma * (dx * (2 - abs(dy)))
                if dy:
                    down += luma * (dy * (2 - abs(dx)))
    edges[row * image.shape.y + column] = vc.sqrt(across * across + down * down)


class Device:
    """The two kernels recorded in one graph for pictures of one shape."""

    def __init__(self, shape: tuple[int, int]) -> None:
        """Allocate the buffers for (rows, columns) and record."""
        self.noisy = vd.Buffer(shape, vd.vec3)
        self.near = vd.Buffer((2 * RADIUS + 1, 2 * RADIUS + 1), vd.float32)
        self.clean = vd.Buffer(shape, vd.vec3)
        self.edges = vd.Buffer(shape, vd.float32)
        self.graph = vd.CommandGraph()
        denoise(self.noisy, self.near, self.clean, RADIUS, SIGMA_COLOUR, graph=self.graph)
        # It reads what the first one writes: the engine puts a barrier between them.
        sobel(self.clean, self.edges, graph=self.graph)

    def run(self, noisy: Picture, near: Picture) -> tuple[Picture, Picture]:
        """Upload, run both kernels, download; return the denoised picture and its edges."""
        self.noisy.write(noisy)
        self.near.write(near)
        self.graph.submit()
        return self.clean.read(0), self.edges.read(0)


def noisy_photo() -> Picture:
    """Return a photograph (rows, columns, RGB from 0 to 1, float32) with noise that is always the same."""
    photo: Picture = load_sample_image("china.jpg").astype(np.float32) / 255
    noise = np.random.default_rng(2026).normal(0, NOISE, photo.shape)
    noisy: Picture = np.clip(photo + noise, 0, 1)
    return noisy.astype(np.float32)


def gaussian_window() -> Picture:
    """Return how much each pixel of the window counts for being near."""
    steps = np.arange(-RADIUS, RADIUS + 1)
    window: Picture = np.exp(-0.5 * np.add.outer(steps**2, steps**2) / SIGMA_SPACE**2)
    return window.astype(np.float32)


def scikit_image_denoise(noisy: Picture, sigma_colour: float = SIGMA_COLOUR) -> Picture:
    """Denoise on the CPU. scikit-image divides colour distances by the number of channels."""
    result: Picture = denoise_bilateral(
        noisy.astype(np.float64),
        win_size=2 * RADIUS + 1,
        sigma_color=sigma_colour / noisy.shape[2],
        sigma_spatial=SIGMA_SPACE,
        bins=100_000,
        mode="edge",
        channel_axis=-1,
    )
    return result


def scikit_image_window() -> Picture:
    """Return the window that scikit-image really uses, as its answer to a single dot shows it.

    It is no Gaussian in 0.26 (its table is one entry wider than the index into it assumes).
    """
    dot = np.zeros((4 * RADIUS + 1, 4 * RADIUS + 1, 3))
    dot[2 * RADIUS, 2 * RADIUS] = 1
    answer = scikit_image_denoise(dot, sigma_colour=1e6)[RADIUS : 3 * RADIUS + 1, RADIUS : 3 * RADIUS + 1, 0]
    return answer[::-1, ::-1].astype(np.float32)


def numpy_denoise(noisy: Picture, near: Picture) -> Picture:
    """Apply the formula of `denoise` in float64, one window position at a time."""
    rows, columns, _ = noisy.shape
    image = noisy.astype(np.float64)
    padded = np.pad(image, ((RADIUS, RADIUS), (RADIUS, RADIUS), (0, 0)), mode="edge")
    colour, weights = np.zeros_like(image), np.zeros((rows, columns, 1))
    for (dy, dx), spatial in np.ndenumerate(near.astype(np.float64)):
        other = padded[dy : dy + rows, dx : dx + columns]
        unlike = ((other - image) ** 2).sum(axis=2, keepdims=True) / SIGMA_COLOUR**2
        weight = spatial * np.exp(-0.5 * unlike)
        colour += weight * other
        weights += weight
    return colour / weights


def scipy_edges(image: Picture) -> Picture:
    """Return the magnitude of the Sobel gradient of the brightness, on the CPU."""
    luma = image.astype(np.float64) @ np.array(LUMA)
    across, down = (ndimage.sobel(luma, axis=axis, mode="nearest") for axis in (1, 0))
    magnitude: Picture = np.hypot(across, down)
    return magnitude


def agrees(what: str, ours: Picture, reference: Picture) -> bool:
    """Print the errors against a reference; return whether they are within the tolerance."""
    errors = np.abs(ours - reference)
    # Written so that NaN fails.
    good = bool(errors.max() <= TOLERANCE[what])
    print(
        f"  {what:<24} max error {errors.max():.1e}, mean {errors.mean():.1e}; "
        f"allowed {TOLERANCE[what]:.0e}: {'ok' if good else 'FAILED'}"
    )
    return good


def median_ms(function: Callable[[], object]) -> float:
    """Return the median time of some runs, in milliseconds."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        function()
        times.append((time.perf_counter() - start) * 1e3)
    return median(times)


@dataclass(frozen=True)
class Result:
    """What the device made of the photograph."""

    noisy: Picture
    denoised: Picture
    edges: Picture
    correct: bool


def process() -> Result:
    """Denoise the photograph on the device, compare with the CPU and print both times."""
    noisy, window = noisy_photo(), gaussian_window()
    rows, columns, _ = noisy.shape
    print(f"A photograph of {columns} x {rows} pixels, window {2 * RADIUS + 1} x {2 * RADIUS + 1}.")
    start = time.perf_counter()
    device = Device((rows, columns))
    denoised, edges = device.run(noisy, window)
    print(f"  first run, kernels compiled in it: {(time.perf_counter() - start) * 1e3:.0f} ms")

    print("Against the CPU:")
    # The same graph with scikit-image's window.
    alike, _ = device.run(noisy, scikit_image_window())
    checks = [
        agrees("denoised, NumPy", denoised, numpy_denoise(noisy, window)),
        agrees("denoised, scikit-image", alike, scikit_image_denoise(noisy)),
        agrees("edges, SciPy", edges, scipy_edges(denoised)),
    ]

    print(f"Time (median of {REPEATS} runs):")
    info = vd.get_context().device_infos[0]
    gpu_ms = median_ms(lambda: device.run(noisy, window))
    cpu_ms = median_ms(lambda: scipy_edges(scikit_image_denoise(noisy)))
    print(f"  vkdispatch, transfers included   {gpu_ms:7.1f} ms   {info.device_name}")
    print(f"  scikit-image and SciPy           {cpu_ms:7.1f} ms   one CPU thread")
    return Result(noisy, denoised, edges, all(checks))


def write_png(result: Result, path: Path) -> None:
    """Write noisy picture, denoised picture and edges side by side."""
    edges = np.repeat((result.edges / result.edges.max())[..., None] ** 0.7, 3, axis=2)
    panels = np.concatenate((result.noisy, result.denoised, edges), axis=1)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray((np.clip(panels, 0, 1) * 255 + 0.5).astype(np.uint8)).save(path)


def main(output: Path = OUTPUT) -> int:
    """Run everything; return the exit status."""
    result = process()
    write_png(result, output)
    print(f"Noisy, denoised, edges: {output}")
    return 0 if result.correct else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=OUTPUT, help="the picture to write")
    sys.exit(main(parser.parse_args().output))
