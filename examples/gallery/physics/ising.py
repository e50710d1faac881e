"""
Ising model
===========

In the Ising model of a magnet, neighbouring spins tend to align. Below a critical temperature they
order themselves. The two colours of a chessboard are updated in turn by Metropolis' rule, with
random numbers drawn inside the kernel. Sixteen temperatures are simulated at once, as planes of one
buffer, and compared with Onsager's exact solution (1944).
"""

import matplotlib.pyplot as plt
import numpy as np

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, Var, f32, i32, u32

N, SWEEPS = 96, 400
CRITICAL = 2 / np.log(1 + np.sqrt(2))


@vd.shader("(spins.shape[2] // 2, spins.shape[1], spins.shape[0])", local_size=(16, 8, 1))
def update(spins: Buff[i32], temperature: Buff[f32], colour: Const[u32], sweep: Var[u32]) -> None:
    at = vc.global_invocation_id()
    plane, row, column = at.z, at.y, 2 * at.x + (at.y + colour) % 2
    around = spins[plane, row, (column + 1) % N] + spins[plane, row, (column + N - 1) % N]
    around += spins[plane, (row + 1) % N, column] + spins[plane, (row + N - 1) % N, column]
    cost = vc.to_float(2 * spins[plane, row, column] * around)
    rng = vc.random.Philox(sweep, sequence=(plane * N + row) * N + column)
    if rng.uniform() < vc.exp(-cost / temperature[plane]):
        spins[plane, row, column] *= -1


temperatures = np.linspace(1.2, 3.4, 16)
spins = vd.asbuffer(np.ones((16, N, N), np.int32))
heat = vd.asbuffer(temperatures, vd.float32)
graph = vd.CommandGraph()
for colour in (0, 1):
    update(spins, heat, colour, graph.bind_var(f"sweep {colour}"), graph=graph)
    graph.set_var(f"sweep {colour}", np.arange(colour, 2 * SWEEPS, 2))
graph.submit(SWEEPS)
final = spins.read(0)

figure = plt.figure(figsize=(9, 6.3), layout="constrained")
panels = figure.subplot_mosaic([["low", "near", "high"], ["curve"] * 3], height_ratios=[1, 0.9])
for name, plane in (("low", 6), ("near", 8), ("high", 14)):
    panels[name].imshow(final[plane], cmap="cividis", interpolation="nearest")
    panels[name].set_title(f"T = {temperatures[plane]:.2f}")
    panels[name].axis("off")
fine = np.linspace(1.2, CRITICAL, 500)
exact = np.maximum(1 - np.sinh(2 / fine) ** -4.0, 0) ** 0.125
panels["curve"].plot([*fine, 3.4], [*exact, 0], color="0.6", label="Onsager")
panels["curve"].plot(temperatures, abs(final.mean(axis=(1, 2))), "o", color="#00336f", label="simulated")
panels["curve"].set(xlabel="temperature", ylabel="magnetisation per spin")
panels["curve"].legend(frameon=False)
plt.show()
