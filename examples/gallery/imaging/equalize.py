"""
Equalising the moon
===================

This photograph of the moon uses few of its 256 grey levels. Histogram equalisation replaces each
level by the share of pixels that are at most as bright, and so spreads the levels evenly. Three
functions do it: `vd.bincount` counts the levels, `vd.cumsum` adds up the counts, and `vd.take`
looks up each pixel. Maps convert values on the way, inside the same kernels.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage import data

import vkdispatch as vd
from vkdispatch.codegen.abbreviations import Const, f32, i32, u8


@vd.map
def level(pixel: u8) -> i32:
    return pixel.to_dtype(vd.int32)


@vd.map
def share(pixels: f32, all_pixels: Const[f32]) -> f32:
    return pixels / all_pixels


moon = data.moon()
pixels = vd.asbuffer(moon)
counts = vd.bincount(level(pixels), size=256)
shares = vd.cumsum(counts, dtype=vd.float32, output_map=share(float(moon.size)))
equal = vd.take(shares, level(pixels)).read(0)
assert np.allclose(equal, (np.cumsum(np.bincount(moon.ravel(), minlength=256)) / moon.size)[moon])

figure = plt.figure(figsize=(9, 6.1), layout="constrained")
panels = figure.subplot_mosaic([["before", "after"], ["levels before", "levels after"]], height_ratios=[4, 1])
for name, picture in (("before", moon / 255), ("after", equal)):
    panels[name].imshow(picture, cmap="gray", vmin=0, vmax=1)
    panels[name].axis("off")
    panels[f"levels {name}"].hist(picture.ravel(), bins=64, range=(0, 1), color="0.35")
    panels[f"levels {name}"].set(yticks=[], xticks=[0, 1], xticklabels=["black", "white"], xlim=(0, 1))
    panels[f"levels {name}"].spines[["left", "right", "top"]].set_visible(False)
plt.show()
