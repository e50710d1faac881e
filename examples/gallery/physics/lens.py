"""
A lens for waves
================

A row of sources sends plane waves through a lens, in which waves travel more slowly, and they meet
in a focus. The kernel is one step of the wave equation, by central differences in space and time. A
graph records two of them. The phase of the sources is a variable of the graph, with a new value for
each replay. The borders absorb waves.
"""

import matplotlib.pyplot as plt
import numpy as np

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Var, f32

HEIGHT, WIDTH, PERIOD = 300, 460, 30  # cells, cells, steps
STEP = 0.5  # how far a wave travels in one step, in cells


@vd.shader("(now.shape[1], now.shape[0])", local_size=(16, 16))
def advance(now: Buff[f32], then: Buff[f32], speed: Buff[f32], damping: Buff[f32], phase: Var[f32]) -> None:
    """Replace the field of the step before (`then`) with that of the step to come."""
    at = vc.global_invocation_id()
    x, y = vc.to_int(at.x), vc.to_int(at.y)
    if x > 0 and y > 0 and x < WIDTH - 1 and y < HEIGHT - 1:
        around = now[y, x - 1] + now[y, x + 1] + now[y - 1, x] + now[y + 1, x] - 4 * now[y, x]
        change = now[y, x] - then[y, x]
        then[y, x] = now[y, x] + damping[y, x] * change + speed[y, x] * speed[y, x] * around
    if x == 12 and y > 20 and y < HEIGHT - 20:
        then[y, x] = vc.sin(phase)


y, x = np.mgrid[:HEIGHT, :WIDTH].astype(np.float32)
middle, across = 150, HEIGHT / 2
glass = np.hypot(abs(x - middle) + 130, y - across) < 175  # two arcs of a circle
border = np.minimum(np.minimum(x, WIDTH - 1 - x), np.minimum(y, HEIGHT - 1 - y))
speed = vd.asbuffer(np.where(glass, 0.7 * STEP, STEP).astype(np.float32))
damping = vd.asbuffer((1 - 0.15 * np.clip(1 - border / 30, 0, 1) ** 2).astype(np.float32))
now, then = (vd.asbuffer(np.zeros((HEIGHT, WIDTH), np.float32)) for _ in range(2))

graph = vd.CommandGraph()
advance(now, then, speed, damping, graph.bind_var("first"), graph=graph)
advance(then, now, speed, damping, graph.bind_var("second"), graph=graph)
phases = 2 * np.pi / PERIOD * np.arange(1400, dtype=np.float32)
graph.set_var("first", phases[0::2])
graph.set_var("second", phases[1::2])
graph.submit(700)

plt.figure(figsize=(9, 5.55), layout="constrained")
plt.imshow(now.read(0)[20:-20, 8:-25], cmap="berlin", vmin=-2.2, vmax=2.2, interpolation="bilinear")
plt.contour(glass[20:-20, 8:-25], levels=[0.5], colors="white", linewidths=1.2)
plt.axis("off")
plt.show()
