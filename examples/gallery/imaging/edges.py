"""
Edges and their directions
==========================

Sobel's operator estimates the slope of a picture at each pixel from its eight neighbours.
Brightness shows how steep the picture is, and colour in which direction. The weights are a Python
list: the loop over them is unrolled when the kernel is traced, and no code is generated for weights
of zero. The result is compared with SciPy's.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import hsv_to_rgb
from scipy import ndimage
from skimage import data

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, f32, v2

SOBEL = [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]


@vd.shader("(picture.shape[1], picture.shape[0])", local_size=(16, 16))
def slopes(picture: Buff[f32], slope: Buff[v2]) -> None:
    at = vc.global_invocation_id()
    last_x, last_y = picture.shape.y - 1, picture.shape.x - 1
    across, down = 0.0, 0.0
    for i in range(3):
        for j in range(3):
            x = vc.clip(vc.to_int(at.x) + j - 1, 0, last_x)
            y = vc.clip(vc.to_int(at.y) + i - 1, 0, last_y)
            if SOBEL[i][j]:
                across += SOBEL[i][j] * picture[y, x]
            if SOBEL[j][i]:
                down += SOBEL[j][i] * picture[y, x]
    slope[at.y, at.x] = vc.to_vec2(across, down)


coins = ndimage.gaussian_filter(data.coins() / 255, 0.8).astype(np.float32)
slope = vd.Buffer(coins.shape, vd.vec2)
slopes(vd.asbuffer(coins), slope)
across, down = np.moveaxis(slope.read(0), -1, 0)
np.testing.assert_allclose(across, ndimage.sobel(coins, axis=1, mode="nearest"), atol=1e-5)

direction = np.arctan2(down, across) / (2 * np.pi) % 1
steepness = np.minimum(np.hypot(across, down) / 1.0, 1) ** 0.8
colours = hsv_to_rgb(np.stack([direction, np.full(coins.shape, 0.65), steepness], axis=-1))
plt.figure(figsize=(9, 7.1), layout="constrained")
plt.imshow(colours, interpolation="bilinear")
plt.axis("off")
plt.show()
