"""
An electron at a double slit
============================

A wave packet meets a wall with two slits, and the waves behind them interfere. The split-step
method multiplies the wave by phases, alternately in space for the potential and in frequency for
the kinetic energy. It takes one line with the arrays of `vkdispatch.numpy`. Brightness shows
:math:`|\\psi|`, and colour its phase. The total probability stays 1.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import hsv_to_rgb

import vkdispatch.numpy as vnp

N, STEPS, DT = 256, 240, 0.7
x, y = np.meshgrid(np.arange(N) - N / 2, np.arange(N) - N / 2)
k = 2 * np.pi * np.fft.fftfreq(N)

packet = np.exp(-((x + 70) ** 2) / (2 * 18**2) - y**2 / (2 * 24**2) + 0.7j * x)
wall = (abs(x) < 3) & (abs(abs(y) - 12) > 5)
kinetic = np.exp(-1j * DT * (k[:, None] ** 2 + k**2) / 2)
potential = np.exp(-1j * DT * 2.5 * wall)

wave = vnp.asarray((packet / np.linalg.norm(packet)).astype(np.complex64))
kinetic_phase = vnp.asarray(kinetic.astype(np.complex64))
potential_phase = vnp.asarray(potential.astype(np.complex64))
for _ in range(STEPS):
    wave = potential_phase * vnp.fft.ifft2(kinetic_phase * vnp.fft.fft2(wave))
print(f"total probability: {float(vnp.sum(vnp.abs(wave) ** 2)):.3f}")

psi = wave.numpy()[28:-28]
value = np.minimum(abs(psi) / np.quantile(abs(psi), 0.998), 1) ** 0.7
colour = np.stack([np.angle(psi) / (2 * np.pi) + 0.5, np.full(psi.shape, 0.75), value], axis=-1)
plt.figure(figsize=(8, 6.3), layout="constrained")
plt.imshow(np.where(wall[28:-28, :, None], 0.85, hsv_to_rgb(colour)), interpolation="bilinear")
plt.axis("off")
plt.show()
