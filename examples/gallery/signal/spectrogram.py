"""
Spectrogram
===========

Two synthetic birds sing: one whistles, the other trills. Each column of the picture is the spectrum
of a short piece of the sound. An input map of the Fourier transform reads the overlapping pieces
and weights them by a window; an output map stores decibels. So one kernel reads the sound and
writes the picture.
"""

import matplotlib.pyplot as plt
import numpy as np

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, f32, u32

RATE, LENGTH, HOP = 16000, 512, 64  # samples a second, in a piece, from one piece to the next


@vd.map
def piece(sound: Buff[f32], window: Buff[f32], hop: Const[u32]) -> None:
    op = vd.fft.read_op()
    start = op.io_index // LENGTH * hop
    op.register.real = sound[start + op.fft_index] * window[op.fft_index]
    op.register.imag = 0


@vd.map
def decibels(picture: Buff[f32]) -> None:
    op = vd.fft.write_op()
    power = op.register.real * op.register.real + op.register.imag * op.register.imag
    picture[op.io_index] = 10 * vc.log10(power + 1e-6)


t = np.arange(3 * RATE) / RATE
whistle = 2600 + 900 * np.sin(2 * np.pi * 0.7 * t) + 250 * np.sin(2 * np.pi * 5 * t)
trill = 5200 + 700 * np.sin(2 * np.pi * 14 * t)
sound = np.random.default_rng(0).normal(0, 0.003, t.size)
for frequency, loud in (
    (whistle, np.sin(2 * np.pi * 0.8 * t) ** 2),
    (trill, np.sin(2 * np.pi * 0.6 * t) ** 8),
):
    phase = 2 * np.pi * np.cumsum(frequency) / RATE
    sound += loud * (0.3 * np.sin(phase) + 0.03 * np.sin(2 * phase))

pieces = (t.size - LENGTH) // HOP + 1
window = np.hanning(LENGTH)
picture = vd.Buffer((pieces, LENGTH), vd.float32)
vd.fft.fft(
    picture,
    vd.asbuffer(sound, vd.float32),
    vd.asbuffer(window, vd.float32),
    HOP,
    input_map=piece,
    output_map=decibels,
)
shown = picture.read(0)[:, : LENGTH // 2].T
frames = np.lib.stride_tricks.sliding_window_view(sound, LENGTH)[::HOP] * window
expected = 10 * np.log10(abs(np.fft.rfft(frames)) ** 2 + 1e-6)[:, :-1].T
assert abs(shown - expected)[expected > -20].max() < 0.1

plt.figure(figsize=(9, 4.8), layout="constrained")
plt.imshow(
    shown, origin="lower", aspect="auto", cmap="magma", vmin=-25, vmax=35, extent=(0, 3, 0, RATE / 2000)
)
plt.xlabel("time, s")
plt.ylabel("frequency, kHz")
plt.show()
