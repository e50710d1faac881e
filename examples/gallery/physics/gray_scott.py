"""
Patterns of Gray and Scott
==========================

Two chemicals diffuse and react with each other. The rates at which they are fed and removed decide
whether spots, stripes or mazes grow (Pearson, *Complex patterns in a simple system*, Science 261,
1993). In this picture the feed rate grows from bottom to top. The two concentrations are the
components of a `vec2`, which kernels add and multiply like a number.
"""

import matplotlib.pyplot as plt
import numpy as np

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, v2

HEIGHT, WIDTH, DECAY = 200, 300, 0.0615


@vd.shader("(old.shape[1], old.shape[0])", local_size=(32, 8))
def react(old: Buff[v2], new: Buff[v2]) -> None:
    at = vc.global_invocation_id()
    x, y = at.x, at.y
    left, right, up, down = (
        (x + WIDTH - 1) % WIDTH,
        (x + 1) % WIDTH,
        (y + HEIGHT - 1) % HEIGHT,
        (y + 1) % HEIGHT,
    )
    here = old[y, x]
    straight = old[y, left] + old[y, right] + old[up, x] + old[down, x]
    diagonal = old[up, left] + old[up, right] + old[down, left] + old[down, right]
    spread = 0.2 * straight + 0.05 * diagonal - here
    feed = 0.062 - 0.044 * vc.to_float(y) / HEIGHT
    eaten = here.x * here.y * here.y
    change = vc.to_vec2(feed * (1 - here.x) - eaten, eaten - (feed + DECAY) * here.y)
    new[y, x] = here + vc.to_vec2(1.0, 0.5) * spread + change


rng = np.random.default_rng(5)
start = np.zeros((HEIGHT, WIDTH, 2))
start[..., 0] = 1
for y, x in rng.integers(0, (HEIGHT - 6, WIDTH - 6), (150, 2)):
    start[y : y + 6, x : x + 6] = 0.5, 0.5
old, new = vd.asbuffer(start, vd.vec2), vd.Buffer((HEIGHT, WIDTH), vd.vec2)

graph = vd.CommandGraph()
react(old, new, graph=graph)
react(new, old, graph=graph)
graph.submit(1500)

plt.figure(figsize=(9, 5.55), layout="constrained")
plt.imshow(old.read(0)[8:-8, :, 1], cmap="YlGnBu_r", interpolation="bicubic")
plt.axis("off")
plt.show()
