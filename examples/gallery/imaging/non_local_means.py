"""
Denoising by non-local means
============================

Non-local means replaces each pixel by an average of the pixels around it, weighted by how similar
their surroundings are (Buades, Coll and Morel, CVPR 2005). Each invocation compares the patch
around its pixel with the 169 patches in a window. The kernel reads the picture through a sampler,
which extends it beyond its edges.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage import data

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, Img2, f32

NOISE, PATCH, WINDOW = 0.12, 2, 6  # deviation; pixels to each side


@vd.shader("(clean.shape[1], clean.shape[0])", local_size=(16, 16))
def denoise(noisy: Img2[f32], clean: Buff[f32], strength: Const[f32]) -> None:
    at = vc.global_invocation_id()
    x, y = vc.to_int(at.x), vc.to_int(at.y)
    total, weights = 0.0, 0.0
    for dy in vc.range(-WINDOW, WINDOW + 1):
        for dx in vc.range(-WINDOW, WINDOW + 1):
            distance = 0.0
            for v in range(-PATCH, PATCH + 1):
                for u in range(-PATCH, PATCH + 1):
                    gap = noisy.sample((x + u, y + v)).x - noisy.sample((x + dx + u, y + dy + v)).x
                    distance += gap * gap
            weight = vc.exp(-distance * strength)
            total += weight * noisy.sample((x + dx, y + dy)).x
            weights += weight
    clean[y, x] = total / weights


photo = data.camera()[60:260, 110:390].astype(np.float32) / 255
noisy = (photo + np.random.default_rng(0).normal(0, NOISE, photo.shape)).astype(np.float32)
image = vd.Image2D(photo.shape)
image.write(noisy)
clean = vd.Buffer(photo.shape, vd.float32)
denoise(image.sample(mag_filter=vd.Filter.NEAREST), clean, 1 / (25 * NOISE**2))

figure, panels = plt.subplots(1, 2, figsize=(10, 4.05), layout="constrained")
for panel, name, picture in zip(panels, ("noisy", "denoised"), (noisy, clean.read(0)), strict=True):
    error = np.sqrt(np.mean((picture - photo) ** 2))
    panel.imshow(picture, cmap="gray", vmin=0, vmax=1)
    panel.set_title(f"{name}: error {error:.3f}")
    panel.axis("off")
plt.show()
