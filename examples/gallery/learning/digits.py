"""
A map of handwritten digits
===========================

t-SNE (van der Maaten and Hinton, 2008) places pictures on a map so that similar ones are
neighbours. Arrays find by bisection what counts as similar for each picture. A kernel then sums the
forces between all points of the map, and a graph repeats it. The method never sees which digits the
pictures show; colours and labels are added afterwards.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits

import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch.numpy as vnp
from vkdispatch.codegen.abbreviations import Buff, Var, f32, v2, v4

COUNT, PERPLEXITY, STEPS, RATE = 1000, 30, 350, 100


@vd.shader("place.size")
def attract(place: Buff[v2], near: Buff[f32], forces: Buff[v4], share: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    here = place[i]
    force, total = vc.to_vec4(0, 0, 0, 0), -1.0
    for j in vc.range(COUNT):
        gap = place[j] - here
        weight = 1 / (1 + vc.dot(gap, gap))
        force += weight * vc.to_vec4(near[i, j] * gap, weight * gap)
        total += weight
    forces[i], share[i] = force, total


@vd.shader("place.size")
def move(place: Buff[v2], speed: Buff[v2], forces: Buff[v4], total: Buff[f32], near: Var[f32]) -> None:
    i = vc.global_invocation_id().x
    speed[i] = 0.8 * speed[i] + RATE * (near * forces[i].xy - forces[i].zw / total[0])
    place[i] += speed[i]


images, labels = (each[:COUNT] for each in load_digits(return_X_y=True))
distances = vnp.asarray(
    cdist(images, images, "sqeuclidean").astype(np.float32) + 1e6 * np.eye(COUNT, dtype="f4")
)
low, high = vnp.zeros((COUNT, 1), vnp.float32), vnp.full((COUNT, 1), 0.1, vnp.float32)
for _ in range(20):  # one over the squared distance that counts as near, for each digit
    middle = (low + high) / 2
    weights = vnp.exp(-middle * distances)
    total = weights.sum(axis=1, keepdims=True)
    entropy = vnp.log(total) + middle * (weights * distances).sum(axis=1, keepdims=True) / total
    wide = entropy > np.log(PERPLEXITY)
    low, high = vnp.where(wide, middle, low), vnp.where(wide, high, middle)
weights = vnp.exp(-low * distances)
near = weights / weights.sum(axis=1, keepdims=True) / (2 * COUNT)
near = vnp.asbuffer(near + near.T)

place = vd.asbuffer(np.random.default_rng(2).normal(0, 1e-2, (COUNT, 2)), vd.vec2)
speed = vd.asbuffer(np.zeros((COUNT, 2)), vd.vec2)
forces, share = vd.Buffer(COUNT, vd.vec4), vd.Buffer(COUNT, vd.float32)
graph = vd.CommandGraph()
attract(place, near, forces, share, graph=graph)
total = vd.sum(share, graph=graph)
move(place, speed, forces, total, graph.bind_var("near"), graph=graph)
graph.set_var("near", np.where(np.arange(STEPS) < 80, 10, 1))  # neighbours find each other first
graph.submit(STEPS)

x, y = place.read(0).T
plt.figure(figsize=(8, 6.2), layout="constrained")
plt.scatter(x, y, c=labels, cmap="tab10", s=18, alpha=0.8, linewidths=0)
for digit in range(10):
    here = np.median(x[labels == digit]), np.median(y[labels == digit])
    plt.annotate(str(digit), here, fontsize=24, ha="center", va="center")
plt.axis("off")
plt.show()
