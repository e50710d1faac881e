"""Edge-preserving smoothing of a photograph, as one order in five programming models that check one another.

Run as a program it writes orders_smoothing.png (or what `--output` names) and fails if any section and
NumPy disagree.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image
from sklearn.datasets import load_sample_image

from vkdispatch.orders import Accel, Order

Picture = npt.NDArray[Any]

OUTPUT = Path("orders_smoothing.png")  # in the current folder
RADIUS = 3  # pixels: the window is 7 x 7
ALIKE = 0.12  # neighbours count whose brightness differs by less; from 0 to 1
NOISE = 0.05  # standard deviation
TOLERANCE = 1e-5  # of single precision sums against NumPy's double precision

# Each pixel becomes the mean of those around it that are alike (Lee's sigma filter, 1983).
_PIXEL = """
    float sum = 0;
    int count = 0;
    for (int di = -radius; di <= radius; di++)
        for (int dj = -radius; dj <= radius; dj++) {
            int m = i + di, n = j + dj;
            if (m < 0 || m >= noisy.shape[0] || n < 0 || n >= noisy.shape[1]) continue;
            float difference = noisy(m, n) - noisy(i, j);
            if (difference < alike && -difference < alike) {
                sum += noisy(m, n);
                count++;
            }
        }
    clean(i, j) = sum / count;
"""
_LOOPS = f"""
    for (int i = 0; i < noisy.shape[0]; i++)
    for (int j = 0; j < noisy.shape[1]; j++) {{{_PIXEL}}}
"""
ORDER = f"""
set_argnames(("noisy", "radius", "alike"), "clean")

[cuda, hip]
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= noisy.shape[0] || j >= noisy.shape[1]) return;
{_PIXEL}

[openacc_cpp]
    #pragma acc loop gang worker vector
{_LOOPS}

[openmp_cpp]
    #pragma omp for
{_LOOPS}

[openmp_fortran]
    integer i, j, m, n, number
    real total

    !$omp do
    do j = 1, noisy_attr%shape(2)
        do i = 1, noisy_attr%shape(1)
            total = 0
            number = 0
            do n = max(1, j - radius), min(size(noisy, 2), j + radius)
                do m = max(1, i - radius), min(size(noisy, 1), i + radius)
                    if (abs(noisy(m, n) - noisy(i, j)) < alike) then
                        total = total + noisy(m, n)
                        number = number + 1
                    end if
                end do
            end do
            clean(i, j) = total / number
        end do
    end do

[cpp]
{_LOOPS}
"""
MEMBERS = (32, 8)


def workers(shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return members and teams for one thread a pixel of a picture of (rows, columns)."""
    return MEMBERS, (-(-shape[1] // MEMBERS[0]), -(-shape[0] // MEMBERS[1]))


def noisy_photo() -> Picture:
    """Return the brightness of a photograph (rows, columns; from 0 to 1, float32), with noise."""
    photo: Picture = load_sample_image("china.jpg").astype(np.float32) @ np.array(
        [0.2126, 0.7152, 0.0722], np.float32
    )
    noise = np.random.default_rng(2026).normal(0, NOISE, photo.shape)
    noisy: Picture = np.clip(photo / 255 + noise, 0, 1)
    return noisy.astype(np.float32)


def numpy_smoothed(noisy: Picture) -> Picture:
    """Return what the order computes, by NumPy in double precision, one window position at a time."""
    rows, columns = noisy.shape
    # what is outside the picture is like nothing in it
    padded = np.pad(noisy, RADIUS, constant_values=np.inf)
    total, count = np.zeros((2, rows, columns))
    for di in range(2 * RADIUS + 1):
        for dj in range(2 * RADIUS + 1):
            other = padded[di : di + rows, dj : dj + columns]
            alike = np.abs(other - noisy) < np.float32(ALIKE)
            total += np.where(alike, other, 0)
            count += alike
    smoothed: Picture = total / count
    return smoothed


def smooth(noisy: Picture, clean: Picture) -> tuple[Accel, dict[str, float]]:
    """Smooth into `clean`, by all sections that can be built here; return the task and their times."""
    accel = Accel(noisy, RADIUS, np.float32(ALIKE), Order(ORDER), clean, verify=True)
    accel.run(*workers(noisy.shape))
    # Python is free meanwhile; this waits, and raises an error if two sections disagree.
    accel.stop()
    return accel, accel.race(*workers(noisy.shape))


def main(output: Path = OUTPUT) -> int:
    """Smooth the photograph; return the exit status."""
    noisy = noisy_photo()
    clean = np.zeros_like(noisy)
    accel, times = smooth(noisy, clean)
    window = 2 * RADIUS + 1
    print(f"A photograph of {noisy.shape[1]} x {noisy.shape[0]} pixels, window {window} x {window}")
    assert accel.verification is not None
    print("  sections that agree: " + ", ".join(accel.verification.models))
    for attempt in accel.attempts:
        print(f"  not here: {attempt.model} ({attempt.message.splitlines()[0]})")
    for model, seconds in times.items():
        print(f"  {model:<16}{seconds * 1e3:8.2f} ms")
    error = float(np.abs(clean - numpy_smoothed(noisy)).max())
    print(f"Against NumPy: max error {error:.1e}, allowed {TOLERANCE:.0e}")
    output.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray((np.concatenate((noisy, clean), axis=1) * 255 + 0.5).astype(np.uint8)).save(output)
    print(f"Noisy, clean: {output}")
    return 0 if error <= TOLERANCE else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=OUTPUT, help="the picture to write")
    sys.exit(main(parser.parse_args().output))
