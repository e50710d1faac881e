"""
A coil cools down
=================

Heat spreads from a hot coil through a plate whose opposite edges are joined. The kernel is one
explicit step of the heat equation. A graph records two of them, and `graph.submit(n)` runs both n
times. The exact solution is known: each point of the coil becomes a Gaussian whose variance grows
as 2t. The titles give the largest error, relative to the highest temperature.
"""

import matplotlib.pyplot as plt
import numpy as np

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, f32

N, DT = 256, 0.2  # cells along each side; time of a step, where a cell has side 1 and diffusivity 1


@vd.shader("(old.shape[1], old.shape[0])", local_size=(16, 16))
def diffuse(old: Buff[f32], new: Buff[f32], dt: Const[f32]) -> None:
    here = vc.global_invocation_id()
    x, y = here.x, here.y
    left, right, up, down = (x + N - 1) % N, (x + 1) % N, (y + N - 1) % N, (y + 1) % N
    around = old[y, left] + old[y, right] + old[up, x] + old[down, x]
    new[y, x] = old[y, x] + dt * (around - 4 * old[y, x])


angle = 10 * np.pi * np.sqrt(np.linspace(0.01, 1, 240))
coil = np.stack([N / 2 + 3 * angle * np.cos(angle), N / 2 + 3 * angle * np.sin(angle)], 1)


def exact(time: float) -> np.ndarray:
    """Return the temperature of the plate: Gaussians, and their images on the other side of the edges."""
    variance = 2 * (time + 6)
    away = (np.arange(N) - coil[..., None] + N / 2) % N - N / 2
    x, y = np.exp(-(away**2) / (2 * variance)).transpose(1, 0, 2)
    return np.asarray(y.T @ x * 12 / variance, np.float32)


old, new = vd.asbuffer(exact(0)), vd.Buffer((N, N), vd.float32)
graph = vd.CommandGraph()
diffuse(old, new, DT, graph=graph)
diffuse(new, old, DT, graph=graph)

figure, panels = plt.subplots(1, 3, figsize=(10.5, 3.9), layout="constrained")
steps = 0
for panel, more in zip(panels, (1, 60, 240), strict=True):
    graph.submit(more)
    steps += 2 * more
    computed, expected = old.read(0), exact(steps * DT)
    error = abs(computed - expected).max() / expected.max()
    panel.imshow(computed, cmap="inferno", interpolation="bilinear")
    panel.set_title(f"t = {steps * DT:.0f}, error {100 * error:.2f} %")
    panel.axis("off")
plt.show()
