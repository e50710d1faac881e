"""
Finding coins
=============

The Hough transform finds circles by voting (Duda and Hart, *Communications of the ACM* 15, 1972).
Each edge pixel votes for the centres of the circles that it may lie on, one for each radius, along
the slope of the picture. Votes are atomic additions to a buffer with three axes: radius, row and
column. The peaks are coins.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Circle
from scipy import ndimage
from skimage import data
from skimage.feature import peak_local_max

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, f32, u32

SMALLEST, LARGEST = 17, 32  # radii, pixels


@vd.shader("(across.shape[1], across.shape[0])", local_size=(16, 16))
def vote(across: Buff[f32], down: Buff[f32], votes: Buff[u32], least: Const[f32]) -> None:
    at = vc.global_invocation_id()
    x, y = vc.to_float(at.x), vc.to_float(at.y)
    u, v = across[at.y, at.x], down[at.y, at.x]
    steepness = vc.sqrt(u * u + v * v)
    if steepness < least:
        return
    for radius in vc.range(SMALLEST, LARGEST):  # coins are brighter than the ground: uphill is inward
        column = vc.to_int(x + radius * u / steepness + 0.5)
        row = vc.to_int(y + radius * v / steepness + 0.5)
        if row >= 0 and row < votes.shape.y and column >= 0 and column < votes.shape.z:
            vc.atomic_add(votes[radius - SMALLEST, row, column], 1)


coins = data.coins()
smooth = ndimage.gaussian_filter(coins / 255, 2).astype(np.float32)
across, down = ndimage.sobel(smooth, axis=1), ndimage.sobel(smooth, axis=0)
votes = vd.asbuffer(np.zeros((LARGEST - SMALLEST, *coins.shape), np.uint32))
vote(vd.asbuffer(across), vd.asbuffer(down), votes, 0.2)

radii = np.arange(SMALLEST, LARGEST)
score = ndimage.gaussian_filter(votes.read(0).astype(float), 1.2) / radii[:, None, None]
best = score.max(axis=0)
centres = peak_local_max(best, min_distance=20, threshold_rel=0.3)

figure, panels = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
panels[0].imshow(coins, cmap="gray")
panels[1].imshow(np.sqrt(best), cmap="magma")
for row, column in centres:
    radius = SMALLEST + int(score[:, row, column].argmax())
    panels[0].add_patch(Circle((column, row), radius, fill=False, color="#ffb000", linewidth=2))
panels[0].set_title(f"{len(centres)} circles")
panels[1].set_title("votes for centres, of the best radius")
for panel in panels:
    panel.axis("off")
plt.show()
