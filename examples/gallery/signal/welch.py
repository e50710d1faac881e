"""
Welch's spectrum
================

The spectrum of a single stretch of noise is itself noisy, however long the stretch is. Welch's
method (1967) averages the spectra of many short, overlapping pieces. With arrays, an index with two
axes cuts the pieces, and window, transform and mean are one line each. The noise is filtered, so
its exact spectrum is known.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import signal

import vkdispatch as vd
import vkdispatch.numpy as vnp

N, LENGTH = 1 << 17, 512
low, high = signal.iirpeak(0.2, 12), signal.iirpeak(0.52, 25)
b = np.convolve(low[0], high[1]) + 0.5 * np.convolve(high[0], low[1]) + 0.04 * np.convolve(low[1], high[1])
a = np.convolve(low[1], high[1])
noise = signal.lfilter(b, a, np.random.default_rng(3).normal(size=N)).astype(np.float32)


def spectrum(samples: vd.Array, length: int) -> vd.Array:
    """Return the power for each frequency from 0 to 1/2, of pieces that overlap by a half."""
    window = vnp.asarray(np.hanning(length + 1)[:-1].astype(np.float32))
    starts = vnp.arange(0, samples.size - length + 1, length // 2)
    pieces = samples[starts[:, None] + vnp.arange(length)] * window
    return (vnp.abs(vnp.fft.rfft(pieces)) ** 2).mean(axis=0) / (window**2).sum()


frequencies, scipys = signal.welch(
    noise, nperseg=LENGTH, window="hann", detrend=False, scaling="density", return_onesided=False
)
averaged = spectrum(vnp.asarray(noise), LENGTH).numpy()
np.testing.assert_allclose(averaged[:-1], scipys[: LENGTH // 2], rtol=1e-3)

at, response = signal.freqz(b, a, 1000)
plt.figure(figsize=(9, 5), layout="constrained")
one = abs(np.fft.rfft(noise[:4096])) ** 2 / 4096
plt.semilogy(np.linspace(0, 0.5, one.size), one, color="0.8", linewidth=0.6, label="spectrum of one stretch")
plt.semilogy(np.linspace(0, 0.5, averaged.size), averaged, color="#0369a1", linewidth=2, label="Welch")
plt.semilogy(at / (2 * np.pi), abs(response) ** 2, "--", color="black", linewidth=1, label="exact")
plt.xlim(0, 0.5)
plt.ylim(1e-4, 1e1)
plt.xlabel("frequency, cycles a sample")
plt.ylabel("power")
plt.legend(frameon=False)
plt.show()
