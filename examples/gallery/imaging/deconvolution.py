"""
Undoing a shaken camera
=======================

The iteration of Richardson (1972) and Lucy (1974) sharpens a photograph that was blurred by a known
motion: blur the estimate, compare it with the photograph, and correct it by their ratio. Blurring
is a product of Fourier transforms. The program uses arrays of `vkdispatch.numpy` only. The
operations between two transforms run as one kernel.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage import data

import vkdispatch as vd
import vkdispatch.numpy as vnp

ROUNDS = 30
photo = data.astronaut()[:256, 90:346].astype(np.float32).transpose(2, 0, 1) / 255  # a plane for each colour
SIZE = photo.shape[1:]

# how the camera moved: a point of light becomes this curve
time = np.linspace(0, 1, 400)
motion = np.zeros(SIZE, np.float32)
np.add.at(motion, ((10 * np.sin(3 * time)).astype(int), (16 * time).astype(int)), 1 / 400)
response = vnp.fft.rfft2(vnp.asarray(motion))


def blur(picture: vd.Array, response: vd.Array) -> vd.Array:
    return vnp.fft.irfft2(vnp.fft.rfft2(picture) * response, s=SIZE)


noise = np.random.default_rng(0).normal(0, 0.002, photo.shape).astype(np.float32)
shaken = vnp.clip(blur(vnp.asarray(photo), response) + vnp.asarray(noise), 0.001, 1)
sharp = vnp.full_like(shaken, 0.5)
for _ in range(ROUNDS):
    ratio = shaken / vnp.maximum(blur(sharp, response), 0.001)
    sharp = sharp * blur(ratio, vnp.conj(response))

figure, panels = plt.subplots(1, 2, figsize=(9, 4.95), layout="constrained")
for panel, name, picture in zip(panels, ("blurred", "after 30 rounds"), (shaken, sharp), strict=True):
    pixels = np.clip(picture.numpy(), 0, 1)
    panel.imshow(pixels.transpose(1, 2, 0))
    panel.set_title(f"{name}: error {np.sqrt(np.mean((pixels - photo) ** 2)):.3f}")
    panel.axis("off")
plt.show()
