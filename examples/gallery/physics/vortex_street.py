"""
Vortex street
=============

Behind a cylinder in a flow, vortices form on either side in turn. The lattice Boltzmann method
(nine directions, one relaxation time) moves populations of particles from cell to cell. Each
invocation gathers those that arrive at its cell and lets them collide. The directions are a Python
list, so the loops over them are unrolled when the kernel is traced.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Circle

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, f32, u8

HEIGHT, WIDTH, SPEED, RADIUS, REYNOLDS = 84, 280, 0.12, 7, 150
RATE = 1 / (3 * SPEED * 2 * RADIUS / REYNOLDS + 0.5)
# x, y, weight, number of the opposite direction
DIRECTIONS = [(0, 0, 4 / 9, 0), (1, 0, 1 / 9, 2), (-1, 0, 1 / 9, 1), (0, 1, 1 / 9, 4), (0, -1, 1 / 9, 3)]
DIRECTIONS += [(1, 1, 1 / 36, 6), (-1, -1, 1 / 36, 5), (1, -1, 1 / 36, 8), (-1, 1, 1 / 36, 7)]


def equilibrium(density: Any, u: Any, v: Any) -> list[Any]:
    """Return the nine populations of a fluid that moves evenly, of GPU values or of arrays."""
    along = [3 * (dx * u + dy * v) for dx, dy, _, _ in DIRECTIONS]
    common = 1 - 1.5 * (u * u + v * v)
    return [w * density * (common + a + a * a / 2) for a, (_, _, w, _) in zip(along, DIRECTIONS, strict=True)]


@vd.shader("(wall.shape[1], wall.shape[0])", local_size=(32, 8))
def stream_and_collide(old: Buff[f32], new: Buff[f32], wall: Buff[u8]) -> None:
    at = vc.global_invocation_id()
    x, y = vc.to_int(at.x), vc.to_int(at.y)
    f = [
        old[k, (y - dy + HEIGHT) % HEIGHT, (x - dx + WIDTH) % WIDTH]
        for k, (dx, dy, _, _) in enumerate(DIRECTIONS)
    ]
    density = sum(f)
    u = sum(dx * n for n, (dx, _, _, _) in zip(f, DIRECTIONS, strict=True)) / density
    v = sum(dy * n for n, (_, dy, _, _) in zip(f, DIRECTIONS, strict=True)) / density
    rest = equilibrium(density, u, v)
    inflow = equilibrium(1.0, SPEED, 0.0)
    for k, (_, _, _, opposite) in enumerate(DIRECTIONS):
        if wall[y, x] != 0:
            new[k, y, x] = f[opposite]
        elif x == 0:
            new[k, y, x] = inflow[k]
        else:
            new[k, y, x] = f[k] + RATE * (rest[k] - f[k])


y, x = np.mgrid[:HEIGHT, :WIDTH]
cylinder = np.hypot(x - 45, y - HEIGHT / 2) < RADIUS
u, v = np.full((HEIGHT, WIDTH), SPEED), 0.02 * np.sin(2 * np.pi * x / WIDTH) * np.ones((HEIGHT, WIDTH))
old = vd.asbuffer(np.array(equilibrium(1.0, u, v)), vd.float32)
new, wall = vd.Buffer(old.shape, vd.float32), vd.asbuffer(cylinder.astype(np.uint8))

graph = vd.CommandGraph()
stream_and_collide(old, new, wall, graph=graph)
stream_and_collide(new, old, wall, graph=graph)
graph.submit(2000)

f = old.read(0)
u, v = (sum(d[axis] * n for n, d in zip(f, DIRECTIONS, strict=True)) / f.sum(axis=0) for axis in (0, 1))
curl = np.gradient(v, axis=1) - np.gradient(u, axis=0)
plt.figure(figsize=(10, 3.35), layout="constrained")
plt.imshow(curl[:, 20:-8], cmap="berlin", vmin=-0.025, vmax=0.025, interpolation="bilinear")
plt.gca().add_patch(Circle((25, HEIGHT / 2), RADIUS, color="0.85"))
plt.axis("off")
plt.show()
