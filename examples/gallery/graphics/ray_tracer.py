"""
Path tracing
============

Path tracing follows light backwards, from the eye to the sky, as it bounces between objects
(Kajiya, *The rendering equation*, 1986). Each invocation follows 48 paths through its pixel and
averages them. The bounces are random, with numbers from a Philox stream for each pixel. The loops
and the `break` are plain Python and run on the device.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, u32, v3, v4

HEIGHT, WIDTH, RAYS, BOUNCES, FAR = 300, 460, 48, 5, 1e9


def sky(direction: v3) -> Any:
    """Return the light from a direction: a blue sky with a sun."""
    up = vc.clip(direction.y, 0, 1)
    sun = vc.pow(vc.max(vc.dot(direction, vc.normalize(vc.to_vec3(-0.6, 0.55, 0.5))), 0), 60)
    horizon, zenith = vc.to_vec3(0.85, 0.85, 0.85), vc.to_vec3(0.2, 0.4, 0.9)
    return horizon + up * (zenith - horizon) + 6 * sun * vc.to_vec3(1, 0.8, 0.5)


@vd.shader("(picture.shape[1], picture.shape[0])", local_size=(16, 16))
def render(picture: Buff[v3], spheres: Buff[v4], colours: Buff[v4], rays: Const[u32]) -> None:
    at = vc.global_invocation_id()
    rng = vc.random.Philox(1986, sequence=at.y * WIDTH + at.x)
    light = vc.to_vec3(0, 0, 0)
    for _ in vc.range(rays):
        x = (vc.to_float(at.x) + rng.uniform() - WIDTH / 2) / HEIGHT
        y = (HEIGHT / 2 - vc.to_float(at.y) - rng.uniform()) / HEIGHT
        place, direction = vc.to_vec3(0, 1.1, -5), vc.normalize(vc.to_vec3(x, y - 0.12, 1.1))
        colour = vc.to_vec3(1, 1, 1)
        for _ in vc.range(BOUNCES):
            nearest, hit = FAR, -1
            for k in vc.range(spheres.size):
                away = place - spheres[k].xyz
                along = vc.dot(away, direction)
                root = along * along - vc.dot(away, away) + spheres[k].w * spheres[k].w
                if root > 0:
                    distance = -along - vc.sqrt(root)
                    if distance > 1e-3 and distance < nearest:
                        nearest, hit = distance, k
            if hit < 0:
                light += colour * sky(direction)
                break
            place = place + nearest * direction
            outward = (place - spheres[hit].xyz) / spheres[hit].w
            colour = colour * colours[hit].xyz
            any_way = vc.normalize(vc.to_vec3(rng.normal(), rng.normal(), rng.normal()))
            scattered = vc.normalize(outward + any_way)
            mirrored = vc.reflect(direction, outward)
            direction = vc.normalize(scattered + (mirrored - scattered) * colours[hit].w)
    picture[at.y, at.x] = light / vc.to_float(rays)


SCENE = [  # centre and radius, colour and how much of a mirror
    [(0, -1000, 0, 1000), (0.55, 0.52, 0.48, 0)],
    [(0, 1, 0.6, 1), (0.95, 0.93, 0.88, 0.98)],
    [(-2, 0.7, 0, 0.7), (0.85, 0.12, 0.08, 0)],
    [(1.7, 0.6, -0.4, 0.6), (0.95, 0.62, 0.2, 0.9)],
    [(-0.75, 0.3, -1.3, 0.3), (0.05, 0.3, 0.8, 0)],
]
spheres, colours = (vd.asbuffer(np.array(each), vd.vec4) for each in zip(*SCENE, strict=True))
picture = vd.Buffer((HEIGHT, WIDTH), vd.vec3)
render(picture, spheres, colours, RAYS)

plt.figure(figsize=(9.2, 6), layout="constrained")
plt.imshow(np.clip(picture.read(0), 0, 1) ** (1 / 2.2), interpolation="bilinear")
plt.axis("off")
plt.show()
