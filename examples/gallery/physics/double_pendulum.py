"""
When does a double pendulum flip?
=================================

Each pixel is a double pendulum, released at rest with its two arms at the angles of the axes. The
colour shows how long it takes until one of the arms turns over. Black pendulums do not flip in the
time computed. Each invocation leaves its `while` loop when its pendulum flips. Inside the white
curve, :math:`2\\cos a + \\cos b = 1`, the energy is too low for a flip.
"""

import matplotlib.pyplot as plt
import numpy as np

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, f32

N, DT, LONGEST = 360, 0.02, 4000  # pixels, time of a step where g and the arms are 1, steps


@vd.shader("(time.shape[1], time.shape[0])", local_size=(16, 16))
def swing(time: Buff[f32], dt: Const[f32]) -> None:
    at = vc.global_invocation_id()
    a = (vc.to_float(at.x) + 0.5) * (vc.tau / N) - vc.pi
    b = vc.pi - (vc.to_float(at.y) + 0.5) * (vc.tau / N)
    u, v, steps = 0.0, 0.0, 0
    while steps < LONGEST and abs(a) < vc.pi and abs(b) < vc.pi:
        # Lagrange's equations of two equal masses on two equal arms
        sine, cosine = vc.sin(a - b), vc.cos(a - b)
        pull, twist = -2 * vc.sin(a) - v * v * sine, u * u * sine - vc.sin(b)
        scale = dt / (2 - cosine * cosine)
        u, v = u + scale * (pull - cosine * twist), v + scale * (2 * twist - cosine * pull)
        a, b = a + dt * u, b + dt * v
        steps += 1
    time[at.y, at.x] = dt * steps


time = vd.Buffer((N, N), vd.float32)
swing(time, DT)
found = time.read(0)

plt.figure(figsize=(7, 7), layout="constrained")
extent = (-180, 180, -180, 180)
shown = np.where(found < DT * LONGEST * 0.999, np.log(found), np.nan)
plt.imshow(shown, cmap="twilight_shifted", extent=extent)
plt.gca().set_facecolor("black")
a, b = np.meshgrid(*[np.linspace(-np.pi, np.pi, N)] * 2)
plt.contour(2 * np.cos(a) + np.cos(b), levels=[1], colors="white", linewidths=1, extent=extent)
plt.xlabel("upper arm, degrees")
plt.ylabel("lower arm, degrees")
plt.xticks([-180, -90, 0, 90, 180])
plt.yticks([-180, -90, 0, 90, 180])
plt.show()
