"""
Newton's fractal
================

Newton's method finds a root of a polynomial from almost any starting point, but which one? Each
pixel starts at its own complex number. Its colour shows the root that it reaches, and its
brightness how quickly. Complex numbers are a type of the kernel language, and the arithmetic is
written as in Python.
"""

import matplotlib.pyplot as plt
import numpy as np

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, c64, f32

POLYNOMIAL = [1, 0, 0, 0, 15, 0, 0, 0, -16]  # z^8 + 15 z^4 - 16
SLOPE = np.polyder(POLYNOMIAL).tolist()
HEIGHT, WIDTH, SCALE = 480, 720, 3.2


@vd.shader("(ends.shape[1], ends.shape[0])", local_size=(16, 16))
def search(ends: Buff[c64], rounds: Buff[f32], tolerance: Const[f32]) -> None:
    at = vc.global_invocation_id()
    z = vc.to_complex(vc.to_float(at.x) + 0.5 - WIDTH / 2, HEIGHT / 2 - 0.5 - vc.to_float(at.y)) * (
        SCALE / HEIGHT
    )
    length, count = 1.0, 0.0
    while length > tolerance and count < 100:
        value, slope = z * 0, z * 0
        for coefficient in POLYNOMIAL:
            value = value * z + coefficient
        for coefficient in SLOPE:
            slope = slope * z + coefficient
        step = value / slope
        if abs(z.real) + abs(z.imag) > 99:  # where powers of z might overflow
            step = z / 8
        length = vc.sqrt(step.real * step.real + step.imag * step.imag)
        z -= step
        count += 1
    ends[at.y, at.x] = z
    # a fraction of a round makes the shades smooth
    rounds[at.y, at.x] = count - vc.log2(vc.log(vc.clip(length, 1e-9, 0.5)) / vc.log(tolerance))


ends, rounds = vd.Buffer((HEIGHT, WIDTH), vd.complex64), vd.Buffer((HEIGHT, WIDTH), vd.float32)
search(ends, rounds, 1e-3)

roots = np.roots(POLYNOMIAL)
nearest = abs(ends.read(0)[..., None] - roots).argmin(axis=-1)
assert np.mean(abs(ends.read(0) - roots[nearest]) < 1e-4) > 0.999
hue = plt.cm.hsv((np.angle(roots) / (2 * np.pi) + 0.08) % 1)[:, :3]
tint = 0.25 + 0.75 * hue * [0.95, 0.75, 0.95]
light = np.exp(-np.maximum(rounds.read(0) - 2, 0) / 9)
plt.figure(figsize=(9, 6), layout="constrained")
plt.imshow(np.clip(tint[nearest] * light[..., None], 0, 1), interpolation="bilinear")
plt.axis("off")
plt.show()
