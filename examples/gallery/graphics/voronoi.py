"""
Voronoi diagram by jump flooding
================================

Which of 300 sites is nearest to each pixel? In jump flooding (Rong and Tan, 2006), each pixel asks
eight others for the nearest site that they know, first far away, then at half the distance, and so
on. Nine passes are enough for this picture, however many sites there are. The method is
approximate; the title says how often it differs from a k-d tree of SciPy.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial import cKDTree

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, i32, v2

HEIGHT, WIDTH, SITES = 420, 640, 300


@vd.shader("(old.shape[1], old.shape[0])", local_size=(16, 16))
def ask(old: Buff[i32], new: Buff[i32], sites: Buff[v2], jump: Const[i32]) -> None:
    at = vc.global_invocation_id()
    x, y = vc.to_int(at.x), vc.to_int(at.y)
    here = vc.to_vec2(x, y)
    best, least = -1, 1e9
    for dy in (-1, 0, 1):
        for dx in (-1, 0, 1):
            u, v = x + dx * jump, y + dy * jump
            if u >= 0 and u < WIDTH and v >= 0 and v < HEIGHT:
                site = old[v, u]
                if site >= 0:
                    distance = vc.distance(here, sites[site])
                    if distance < least:
                        best, least = site, distance
    new[y, x] = best


rng = np.random.default_rng(8)
points = rng.uniform(0, 1, (SITES, 2)) * (WIDTH - 1, HEIGHT - 1)
sites = vd.asbuffer(points, vd.vec2)
start = np.full((HEIGHT, WIDTH), -1, np.int32)
start[tuple(points.round().astype(int).T[::-1])] = np.arange(SITES)
old, new = vd.asbuffer(start), vd.Buffer(start.shape, vd.int32)
for jump in (256, 128, 64, 32, 16, 8, 4, 2, 1):
    ask(old, new, sites, jump)
    old, new = new, old
nearest = old.read(0)

pixels = np.stack(np.meshgrid(np.arange(WIDTH), np.arange(HEIGHT)), -1)
away, closest = cKDTree(points).query(pixels, 2)
wrong = (nearest != closest[..., 0]).sum()
between = np.linalg.norm(points[closest[..., 0]] - points[closest[..., 1]], axis=-1)
to_edge = (away[..., 1] ** 2 - away[..., 0] ** 2) / (2 * between)

colours = plt.cm.Spectral(rng.permutation(SITES) / SITES)[nearest, :3]
shade = np.clip(to_edge / 1.5, 0, 1) * (0.72 + 0.28 * np.clip(to_edge / 14, 0, 1))
plt.figure(figsize=(9, 6.1), layout="constrained")
plt.imshow(colours * shade[..., None])
plt.title(f"{wrong} of {nearest.size:,} pixels name another site than the nearest")
plt.axis("off")
plt.show()
