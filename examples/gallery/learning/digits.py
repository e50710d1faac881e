"""
A map of handwritten digits
===========================

t-SNE (van der Maaten and Hinton, 2008) lays pictures out so that neighbours among them are
neighbours on the map. One kernel finds, for each picture, how near counts as near, by bisection;
another sums how each point of the map is pulled and pushed by all others, and a graph repeats it.
The digits have 8 x 8 pixels; the method is not told which they are.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Var, f32, v2

COUNT, PERPLEXITY, STEPS, RATE = 1000, 30, 350, 100


@vd.shader("distances.shape[0]")
def weigh(distances: Buff[f32], near: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    low, high, beta, total = 0.0, 1.0, 0.0, 1.0
    for _ in vc.range(24):
        beta = (low + high) / 2
        total, moment = 0.0, 0.0
        for j in vc.range(COUNT):
            weight = vc.select(j == i, 0.0, vc.exp(-beta * distances[i, j]))
            total += weight
            moment += weight * distances[i, j]
        if vc.log(total) + beta * moment / total > np.log(PERPLEXITY):
            low = beta
        else:
            high = beta
    for j in vc.range(COUNT):
        near[i, j] = vc.select(j == i, 0.0, vc.exp(-beta * distances[i, j]) / total)


@vd.shader("place.size")
def attract(place: Buff[v2], near: Buff[f32], pull: Buff[v2], push: Buff[v2], share: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    here = place[i]
    pulled, pushed, total = vc.to_vec2(0, 0), vc.to_vec2(0, 0), -1.0
    for j in vc.range(COUNT):
        gap = place[j] - here
        weight = 1 / (1 + vc.dot(gap, gap))
        pulled += (near[i, j] + near[j, i]) / (2 * COUNT) * weight * gap
        pushed += weight * weight * gap
        total += weight
    pull[i], push[i], share[i] = pulled, pushed, total


@vd.shader("place.size")
def move(
    place: Buff[v2], speed: Buff[v2], pull: Buff[v2], push: Buff[v2], total: Buff[f32], near: Var[f32]
) -> None:
    i = vc.global_invocation_id().x
    speed[i] = 0.8 * speed[i] + RATE * (near * pull[i] - push[i] / total[0])
    place[i] += speed[i]


images, labels = (each[:COUNT] for each in load_digits(return_X_y=True))
squares = (images**2).sum(axis=1)
near = vd.Buffer((COUNT, COUNT), vd.float32)
weigh(vd.asbuffer(squares[:, None] + squares - 2 * images @ images.T, vd.float32), near)

place = vd.asbuffer(np.random.default_rng(2).normal(0, 1e-2, (COUNT, 2)), vd.vec2)
speed = vd.asbuffer(np.zeros((COUNT, 2)), vd.vec2)
pull, push = vd.Buffer(COUNT, vd.vec2), vd.Buffer(COUNT, vd.vec2)
share = vd.Buffer(COUNT, vd.float32)
graph = vd.CommandGraph()
attract(place, near, pull, push, share, graph=graph)
total = vd.sum(share, graph=graph)
move(place, speed, pull, push, total, graph.bind_var("near"), graph=graph)
graph.set_var("near", np.where(np.arange(STEPS) < 80, 10, 1))  # neighbours find each other first
graph.submit(STEPS)

found = place.read(0)
plt.figure(figsize=(8, 6.2), layout="constrained")
plt.scatter(*found.T, c=labels, cmap="tab10", s=18, alpha=0.8, linewidths=0)
for digit in range(10):
    plt.text(*np.median(found[labels == digit], axis=0), digit, fontsize=24, ha="center", va="center")
plt.axis("off")
plt.show()
