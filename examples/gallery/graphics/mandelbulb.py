"""
A walk to the Mandelbulb
========================

The Mandelbulb is a fractal in three dimensions (White and Nylander, 2009). There is a formula for
the distance from any point to its surface, so a ray can walk towards it in safe steps (sphere
tracing, Hart, 1996). One invocation follows one ray. Plain Python functions, such as `distance`
here, are traced into the kernel.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, v3

N, POWER, STEPS, NEAR = 400, 8, 80, 1.5e-3


def distance(point: v3) -> Any:
    """Return how far it is to the bulb, at least, and how near the orbit came to the origin."""
    z, slope, length, trap = point, 1.0, vc.length(point), 10.0
    for _ in vc.range(6):
        trap = vc.min(trap, vc.abs(z.x) + 0.3 * vc.dot(z, z))
        if length < 2:
            theta, phi = POWER * vc.acos(z.y / length), POWER * vc.atan2(z.z, z.x)
            slope = POWER * vc.pow(length, POWER - 1.0) * slope + 1
            direction = vc.to_vec3(vc.sin(theta) * vc.cos(phi), vc.cos(theta), vc.sin(theta) * vc.sin(phi))
            z = vc.pow(length, 1.0 * POWER) * direction + point
            length = vc.length(z)
    return 0.5 * vc.log(length) * length / slope, trap


@vd.shader("(picture.shape[1], picture.shape[0])", local_size=(8, 8))
def render(picture: Buff[v3]) -> None:
    at = vc.global_invocation_id()
    x, y = (vc.to_float(at.x) - N / 2) / N, (N / 2 - vc.to_float(at.y)) / N
    eye = vc.to_vec3(1.5, 1.0, 1.75)
    forward = vc.normalize(-eye)
    right = vc.normalize(vc.cross(forward, vc.to_vec3(0, 1, 0)))
    direction = vc.normalize(forward + x * right + y * vc.cross(right, forward))
    walked, steps, gap, trap = 0.9, 0, 1.0, 0.0
    while steps < STEPS and gap > NEAR and walked < 4:
        gap, trap = distance(eye + walked * direction)
        walked += gap
        steps += 1
    picture[at.y, at.x] = vc.to_vec3(0.03, 0.03, 0.05)
    if gap <= NEAR:
        place = eye + (walked - NEAR) * direction
        sides = [vc.to_vec3(NEAR, 0, 0), vc.to_vec3(0, NEAR, 0), vc.to_vec3(0, 0, NEAR)]
        slopes = [distance(place + side)[0] - distance(place - side)[0] for side in sides]
        outward = vc.normalize(vc.to_vec3(*slopes))
        sun = vc.max(vc.dot(outward, vc.normalize(vc.to_vec3(0.2, 0.9, 0.45))), 0)
        open_sky = vc.pow(1 - vc.to_float(steps) / STEPS, 1.6)
        tint = vc.mix(vc.to_vec3(1.0, 0.3, 0.08), vc.to_vec3(0.15, 0.42, 0.95), vc.clip(trap * 1.4, 0, 1))
        picture[at.y, at.x] = open_sky * tint * (0.4 + 1.1 * sun)


picture = vd.Buffer((N, N), vd.vec3)
render(picture)

plt.figure(figsize=(7, 7), layout="constrained")
plt.imshow(np.clip(picture.read(0), 0, 1) ** (1 / 1.6), interpolation="bilinear")
plt.axis("off")
plt.show()
