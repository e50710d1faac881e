"""
Colliding galaxies
==================

Two discs of stars pass each other, and tides draw out bridges and tails (Toomre and Toomre,
*Astrophysical Journal* 178, 1972). Every star attracts every other star. Each invocation sums the
forces on one of them, and a graph replays the steps of a leapfrog integrator. The total angular
momentum, printed for each picture, is conserved.
"""

import matplotlib.pyplot as plt
import numpy as np

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, f32, v3, v4

SOFTENING = 0.05  # stars nearer than this attract each other less


@vd.shader("position.size")
def attract(position: Buff[v4], velocity: Buff[v3], dt: Const[f32]) -> None:
    i = vc.global_invocation_id().x
    here = position[i]
    pull = vc.to_vec3(0, 0, 0)
    for j in vc.range(position.size):
        there = position[j]
        away = there.xyz - here.xyz
        near = vc.inversesqrt(vc.dot(away, away) + SOFTENING**2)
        pull += there.w * near * near * near * away
    velocity[i] += dt * pull


@vd.shader("position.size")
def drift(position: Buff[v4], velocity: Buff[v3], dt: Const[f32]) -> None:
    i = vc.global_invocation_id().x
    position[i] += vc.to_vec4(dt * velocity[i], 0)


rng = np.random.default_rng(1972)
STARS, DT = 1500, 0.03  # stars of each galaxy
places, speeds = np.zeros((2, STARS, 4)), np.zeros((2, STARS, 3))
for galaxy, side in enumerate((-1, 1)):  # a heavy core, and light stars on circles around it
    radius, angle = np.sqrt(rng.uniform(0.02, 1, STARS)), rng.uniform(0, 2 * np.pi, STARS)
    radius[0] = 0
    speed = radius / (radius**2 + SOFTENING**2) ** 0.75
    tilt = np.array([[1, 0, 0], [0, np.cos(0.6), side * np.sin(0.6)]])
    places[galaxy, :, :3] = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1) @ tilt
    places[galaxy, :, :2] += side * np.array([1.6, 0.9])
    places[galaxy, :, 3] = np.where(radius == 0, 1, 0.05 / STARS)
    speeds[galaxy] = np.stack([-speed * np.sin(angle), speed * np.cos(angle)], 1) @ tilt
    speeds[galaxy, :, 0] -= side * 0.55
position = vd.asbuffer(places.reshape(-1, 4), vd.vec4)
velocity = vd.asbuffer(speeds.reshape(-1, 3), vd.vec3)

graph = vd.CommandGraph()
drift(position, velocity, DT / 2, graph=graph)
attract(position, velocity, DT, graph=graph)
drift(position, velocity, DT / 2, graph=graph)

figure = plt.figure(figsize=(9.4, 6.3), facecolor="black", layout="constrained")
panels = figure.subplot_mosaic([["first", "last", "last"], ["second", "last", "last"]])
for name, steps in (("first", 1), ("second", 79), ("last", 60)):
    graph.submit(steps)
    r, v = position.read(0), velocity.read(0)
    for part, colour in ((slice(STARS), "#8ecbff"), (slice(STARS, None), "#ffb067")):
        size = 3.5 if name == "last" else 1
        panels[name].scatter(r[part, 0], r[part, 1], s=size, color=colour, linewidths=0)
    panels[name].set(aspect="equal", xlim=(-2.8, 2.8), ylim=(-2.8, 2.8))
    panels[name].axis("off")
    momentum = r[:, 3] * np.cross(r[:, :3], v)[:, 2]
    print(f"angular momentum: {momentum.sum(dtype=float):.5f}")
plt.show()
