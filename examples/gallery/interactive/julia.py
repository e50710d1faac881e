"""
Julia sets under a slider
=========================

As the constant c of z² + c moves around the edge of the Mandelbrot set, the Julia set changes its
shape. Calling a kernel with other numbers compiles nothing, so the picture can follow a slider. To
try it, download this page as a notebook (the link is at the end) and install `ipywidgets`. The page
itself shows a single frame.
"""

from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, f32, v2

HEIGHT, WIDTH = 480, 720


@vd.shader("(rounds.shape[1], rounds.shape[0])", local_size=(16, 16))
def julia(rounds: Buff[f32], c: Const[v2]) -> None:
    at = vc.global_invocation_id()
    x = (vc.to_float(at.x) - WIDTH / 2) * (2.3 / HEIGHT)
    y = (HEIGHT / 2 - vc.to_float(at.y)) * (2.3 / HEIGHT)
    count = 0
    while x * x + y * y < 1e4 and count < 400:
        x, y = x * x - y * y + c.x, 2 * x * y + c.y
        count += 1
    rounds[at.y, at.x] = count + 1 - vc.log2(vc.log(vc.max(x * x + y * y, 2)) / vc.log(1e4))


rounds = vd.Buffer((HEIGHT, WIDTH), vd.float32)


def draw(angle: float = 111.0, outside: float = 1.03) -> None:
    """Draw the set of a point near the edge, at this angle; it is connected if `outside` is below 1."""
    turn = np.exp(1j * np.radians(angle))
    c = outside * (turn / 2 - turn**2 / 4)
    julia(rounds, (c.real, c.imag))
    plt.figure(figsize=(9, 6), layout="constrained")
    plt.imshow(np.log(rounds.read(0)), cmap="twilight", interpolation="bilinear")
    plt.title(f"c = {c:.3f}")
    plt.axis("off")
    plt.show()


# %%
# In a notebook, moving a slider calls `draw`. Elsewhere, as in the build of this page, it is called once.

if "get_ipython" in globals() and find_spec("ipywidgets"):
    from ipywidgets import interact

    interact(draw, angle=(0.0, 360.0, 0.5), outside=(0.9, 1.1, 0.005))
else:
    draw()
