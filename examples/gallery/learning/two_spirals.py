"""
A network learns two spirals
============================

Telling two interleaved spirals apart is a classic test for neural networks, since no straight line
separates them. Here a network with two hidden layers learns it. The forward pass, the gradients and
Adam's update (Kingma and Ba, 2015) are written out with arrays of `vkdispatch.numpy`. Chains of
element-wise operations run as single kernels.
"""

import matplotlib.pyplot as plt
import numpy as np

import vkdispatch as vd
import vkdispatch.numpy as vnp

POINTS, WIDTH, STEPS, RATE = 600, 32, 400, 0.01
rng = np.random.default_rng(1)
turn = np.sqrt(rng.uniform(0.02, 1, POINTS)) * 3.2 * np.pi
side = np.arange(POINTS) % 2
spiral = np.stack([turn * np.cos(turn + np.pi * side), turn * np.sin(turn + np.pi * side)], 1) / 10
points = vnp.asarray((spiral + rng.normal(0, 0.02, spiral.shape)).astype(np.float32))
truth = vnp.asarray(side[:, None].astype(np.float32))

sizes = [(2, WIDTH), (WIDTH, WIDTH), (WIDTH, 1)]
weights = [vnp.asarray(rng.normal(0, (2 / n) ** 0.5, (n, m)).astype(np.float32)) for n, m in sizes]
weights[0] *= 3
weights += [vnp.asarray(rng.normal(0, 1, m).astype(np.float32)) for _, m in sizes]
means, squares = ([vnp.zeros_like(w) for w in weights] for _ in range(2))


def layers(x: vd.Array) -> tuple[vd.Array, vd.Array, vd.Array]:
    """Return what the hidden layers and the last one give: the probability of the second spiral."""
    first = vnp.tanh(x @ weights[0] + weights[3])
    second = vnp.tanh(first @ weights[1] + weights[4])
    return first, second, 1 / (1 + vnp.exp(-(second @ weights[2] + weights[5])))


for step in range(1, STEPS + 1):
    first, second, guess = layers(points)
    error = (guess - truth) / POINTS
    back_two = (error @ weights[2].T) * (1 - second**2)
    back_one = (back_two @ weights[1].T) * (1 - first**2)
    slopes = [points.T @ back_one, first.T @ back_two, second.T @ error]
    slopes += [back_one.sum(axis=0), back_two.sum(axis=0), error.sum(axis=0)]
    for k, slope in enumerate(slopes):
        means[k] = 0.9 * means[k] + 0.1 * slope
        squares[k] = 0.999 * squares[k] + 0.001 * slope**2
        ahead = means[k] / (1 - 0.9**step)
        weights[k] = weights[k] - RATE * ahead / (vnp.sqrt(squares[k] / (1 - 0.999**step)) + 1e-8)

right = float(vnp.mean((layers(points)[2] > 0.5) == (truth > 0.5)))
grid = np.stack(np.meshgrid(*[np.linspace(-1.15, 1.15, 240)] * 2), -1).reshape(-1, 2).astype(np.float32)
surface = layers(vnp.asarray(grid))[2].numpy().reshape(240, 240)
plt.figure(figsize=(6.4, 6.6), layout="constrained")
plt.imshow(surface, origin="lower", extent=(-1.15, 1.15, -1.15, 1.15), cmap="PuOr", vmin=-0.15, vmax=1.15)
x, y = points.numpy().T
plt.scatter(x, y, c=side, cmap="PuOr", edgecolors="white", linewidths=0.5, s=22)
plt.title(f"{100 * right:.1f} % of the points are right")
plt.axis("off")
plt.show()
