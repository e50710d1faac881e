"""
Mandelbrot set
==============

Each invocation iterates one point of the complex plane until it escapes.
"""

import matplotlib.pyplot as plt

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, i32


@vd.shader("steps.size")
def mandelbrot(steps: Buff[i32], most: Const[i32]) -> None:
    tid = vc.global_invocation_id().x
    height, width = steps.shape.x, steps.shape.y
    x, y = tid % width, tid // width
    cx, cy = 3.0 * x / width - 2.2, 2.4 * y / height - 1.2
    zx, zy = 0.0, 0.0
    count = 0
    while zx * zx + zy * zy < 4.0 and count < most:
        zx, zy = zx * zx - zy * zy + cx, 2 * zx * zy + cy
        count += 1
    steps[tid] = count


steps = vd.Buffer((480, 600), vd.int32)
mandelbrot(steps, 200)

plt.imshow(steps.read(0) ** 0.3, cmap="magma", extent=(-2.2, 0.8, -1.2, 1.2))
plt.xlabel("real part")
plt.ylabel("imaginary part")
plt.show()
