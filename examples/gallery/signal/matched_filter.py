"""
A chirp in the noise
====================

Two merging black holes send a wave whose pitch rises faster and faster. It is much weaker than the
noise of a detector. A matched filter finds it: it correlates the data with the expected wave. Here
200 waves of different masses are the rows of one array, and Fourier transforms correlate all of
them with the data, at all times at once.
"""

import matplotlib.pyplot as plt
import numpy as np

import vkdispatch as vd
import vkdispatch.numpy as vnp

RATE, N = 1024, 4096  # samples a second, samples
t = np.arange(N) / RATE


def chirp(mass: vd.Array, end: float) -> vd.Array:
    """Return waves that end at a time, one for each chirp mass (Newton's approximation), of norm 1."""
    left = vnp.maximum(end - vnp.asarray(t.astype(np.float32)), 1e-4)
    phase = -2 * (left / (5 * 4.925e-6 * mass[:, None])) ** 0.625
    wave = vnp.where(left > 4e-3, left**-0.25 * vnp.cos(phase), 0) * (left < 1.5)
    vnp.eval(wave)  # it is used twice: compute it once
    return wave / vnp.linalg.norm(wave, axis=1, keepdims=True)


masses = vnp.linspace(4, 20, 200, dtype=vnp.float32)
true_mass, true_end, strength = 9.3, 2.8, 12.0
hidden = strength * chirp(vnp.asarray(np.array([true_mass], np.float32)), true_end)[0]
data = vnp.random.default_rng(5).normal(size=N).astype(vnp.float32) + hidden

templates = vnp.fft.rfft(chirp(masses, 1.6))
correlation = vnp.fft.irfft(vnp.fft.rfft(data) * vnp.conj(templates))
ratio = vnp.abs(vnp.roll(correlation, int(1.6 * RATE), axis=1)).numpy()
row, column = np.unravel_index(ratio.argmax(), ratio.shape)

figure, panels = plt.subplots(2, 1, figsize=(9, 6), height_ratios=[1, 1.8], layout="constrained")
panels[0].plot(t, data.numpy(), color="0.7", linewidth=0.5, label="data")
panels[0].plot(t, hidden.numpy(), color="#c2410c", linewidth=1, label="wave hidden in it")
panels[0].legend(loc="upper left", ncols=2, frameon=False)
panels[0].set(ylim=(-5, 7), ylabel="strain", xlim=(0, N / RATE))
image = panels[1].imshow(
    ratio, origin="lower", aspect="auto", cmap="inferno", vmin=1, vmax=10, extent=(0, N / RATE, 4, 20)
)
panels[1].plot(true_end, true_mass, "o", color="white", markersize=16, fillstyle="none")
panels[1].set(xlabel="time of the merger, s", ylabel="chirp mass, suns", xlim=(2, 3.5))
figure.colorbar(image, ax=panels[1], label="signal to noise", pad=0.01)
plt.show()
print(
    f"found: {float(masses[row]):.1f} suns at {column / RATE:.3f} s; hidden: {true_mass} suns at {true_end} s"
)
