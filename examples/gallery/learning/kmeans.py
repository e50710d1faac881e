"""
A photograph in twelve colours
==============================

Lloyd's k-means finds the colours that represent a photograph best. Each pixel is assigned to the
nearest colour, each colour becomes the mean of its pixels, and so on until little changes. With
`vkdispatch.numpy` each step is one line, as in NumPy. The differences of all pixels from all
colours are never stored: the sum computes them as it reads.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage import data

import vkdispatch.numpy as vnp

COLOURS, ROUNDS = 12, 20
photo = data.chelsea()[20:280, 60:420]
pixels = vnp.asarray(photo.reshape(-1, 3).astype(np.float32) / 255)
start = np.random.default_rng(4).choice(pixels.shape[0], COLOURS, replace=False)
colours = pixels[vnp.asarray(start)]

errors = []
for _ in range(ROUNDS):
    distances = vnp.sum((pixels[:, None, :] - colours) ** 2, axis=2)
    nearest = vnp.argmin(distances, axis=1)
    belongs = (nearest[:, None] == vnp.arange(COLOURS)).astype(vnp.float32)
    colours = (belongs.T @ pixels) / vnp.maximum(vnp.sum(belongs, axis=0), 1)[:, None]
    errors.append(float(vnp.sqrt(vnp.mean(vnp.min(distances, axis=1)))))
assert (np.diff(errors) <= 1e-6).all()

counts = vnp.bincount(nearest, minlength=COLOURS).numpy()
palette = colours.numpy()
order = np.argsort(palette.sum(axis=1))
figure, panels = plt.subplots(2, 1, figsize=(8, 6.6), height_ratios=[12, 1], layout="constrained")
panels[0].imshow(palette[nearest.numpy()].reshape(photo.shape))
left = np.concatenate([[0], np.cumsum(counts[order])[:-1]])
panels[1].barh(0, counts[order], left=left, color=palette[order], height=1)
panels[1].set(xlim=(0, counts.sum()), ylim=(-0.5, 0.5))
for panel in panels:
    panel.axis("off")
plt.show()
print("error from round to round:", " ".join(f"{error:.3f}" for error in errors[::4]))
