"""
Mandelbrot set
==============

Each invocation takes one point c of the complex plane and repeats z = z² + c until z is far away.
The loop is a Python `while`. Its condition is known only on the device, so it becomes a loop of the
shader. The size of the last z gives a fraction of a round, and with it smooth colours (Peitgen and
Richter, *The Beauty of Fractals*, 1986).
"""

import matplotlib.pyplot as plt
import numpy as np

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, f32, i32, v2

HEIGHT, WIDTH = 600, 900


@vd.shader("(rounds.shape[1], rounds.shape[0])", local_size=(16, 16))
def mandelbrot(rounds: Buff[f32], centre: Const[v2], width: Const[f32], most: Const[i32]) -> None:
    at = vc.global_invocation_id()
    pixel = width / WIDTH
    cx = centre.x + (vc.to_float(at.x) - WIDTH / 2) * pixel
    cy = centre.y - (vc.to_float(at.y) - HEIGHT / 2) * pixel
    x, y, count = 0.0, 0.0, 0
    while x * x + y * y < 1e4 and count < most:
        x, y = x * x - y * y + cx, 2 * x * y + cy
        count += 1
    rounds[at.y, at.x] = -1.0
    if count < most:
        rounds[at.y, at.x] = count + 1 - vc.log2(vc.log(x * x + y * y) / vc.log(1e4))


rounds = vd.Buffer((HEIGHT, WIDTH), vd.float32)
mandelbrot(rounds, (-0.74364, 0.13183), 0.0045, 2500)

shown = rounds.read(0)
shown = np.where(shown < 0, np.nan, np.log(np.maximum(shown, 1)) % 1.6)
colours = plt.cm.twilight_shifted.with_extremes(bad="black")
plt.figure(figsize=(9, 6), layout="constrained")
plt.imshow(shown, cmap=colours, interpolation="bilinear")
plt.axis("off")
plt.show()
