"""
Clifford's attractor
====================

A point that jumps from (x, y) to (sin ay + c cos ax, sin bx + d cos by), again and again, never
settles, but visits some places more often than others (Pickover, *Chaos in Wonderland*, 1994). Each
of 32,768 invocations follows one point for 600 jumps. Atomic additions count the visits to each
pixel.
"""

import matplotlib.pyplot as plt
import numpy as np

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, u32, v4

HEIGHT, WIDTH = 600, 840
POINTS, JUMPS, UNSEEN = 1 << 15, 600, 20  # the first few jumps lead to the attractor


@vd.shader(exec_size=POINTS)
def follow(visits: Buff[u32], shape: Const[v4]) -> None:
    rng = vc.random.Philox(7, sequence=vc.global_invocation_id().x)
    x, y = rng.uniform(-1, 1), rng.uniform(-1, 1)
    for jump in vc.range(JUMPS):
        x, y = (
            vc.sin(shape.x * y) + shape.z * vc.cos(shape.x * x),
            vc.sin(shape.y * x) + shape.w * vc.cos(shape.y * y),
        )
        if jump >= UNSEEN:
            column, row = vc.to_int((x / 4.2 + 0.5) * WIDTH), vc.to_int((y / 3.5 + 0.5) * HEIGHT)
            vc.atomic_add(visits[row, column], 1)


visits = vd.asbuffer(np.zeros((HEIGHT, WIDTH), np.uint32))
follow(visits, (-1.4, 1.6, 1.0, 0.7))

counts = visits.read(0)
assert counts.sum() == POINTS * (JUMPS - UNSEEN)
plt.figure(figsize=(8.4, 6), layout="constrained")
plt.imshow(np.log1p(counts), cmap="magma", interpolation="bilinear")
plt.axis("off")
plt.show()
