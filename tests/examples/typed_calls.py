"""What type checkers must accept, and refuse on the lines marked so: checked by test_types.py, never run."""

from dataclasses import dataclass
from typing import Any

import numpy as np

import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch.numpy as vnp
from vkdispatch.codegen.abbreviations import Buff, Const, Img2, SImg2, Var, b8, f32, i32, u8, v2


@vd.shader("data.size")
def scale(data: Buff[f32], factor: Const[f32], offset: Const[f32] = 0.0) -> None:
    i = vc.global_invocation_id().x
    total = 0.0
    for k in range(3):
        total += data[i] * k
    if data[i] > total and not factor > 2:
        total = data[i]
    twice = (2 * data[i]).to_dtype(i32)
    data[i] += 2 * factor * total - offset + vc.max(factor, 1) + twice
    data[i] = data.shape.w + factor.to_dtype(i32) + vc.subgroup_add(total)


@vd.shader("data.size")
def bound(data: Buff[f32], amount: Var[f32], source: Img2[f32], target: SImg2[f32]) -> None:
    target[vc.global_invocation_id().xy] = source.sample(data[0].xy).x * amount


@dataclass
class Lens:
    centre: Const[v2]
    strength: Const[f32]


@vd.shader(exec_size=lambda args: args.data.size)
def bend(data: Buff[f32], lens: Lens, middle: Const[v2]) -> None:
    i = vc.global_invocation_id().x
    data[i] = lens.strength * (lens.centre - middle).x


class Smoother:
    weight = 0.5

    @vd.shader("data.size")
    def apply(self, data: Buff[f32], rounds: Const[i32]) -> None:
        data[0] *= self.weight * rounds


@vd.map
def blend(x: f32, y: f32, share: Const[f32], table: Buff[f32]) -> f32:
    if x > 0:
        return share * x + (1 - share) * y
    if x == y:
        return table[vd.mapped_index()]
    if vc.any(x > y):
        return 2.0 * vc.sin(x)
    return vc.clip(vc.sqrt(-x), 0, 1) if x < 1 else vc.pow(x, 2).to_dtype(f32)


@vd.map
def is_even(x: i32) -> b8:
    return x % 2 == 0


@vd.reduce.reduce(0.0)
def largest(a: f32, b: f32) -> f32:
    return vc.max(a, b)


data = vd.Buffer(100, vd.float32)
counts = vd.buffer_i32(100)
graph = vd.CommandGraph()
image = vd.Image2D((8, 8), vd.float32)


def accepted(unknown: vd.Buffer[Any]) -> None:
    scale(data, 1.0)
    scale(data, 1, 2)
    scale(data, np.float32(1), np.int64(2))
    scale(data, offset=1.0, factor=2.0)
    scale(data, 1.0, graph=graph)
    scale(data, 1.0, 2.0, exec_size=10, queue_index=0)
    scale(data, 1.0, 2.0, workgroups=lambda args: args.data.size // 64)
    scale(data=data, factor=1.0, exec_size="data.size")
    scale(unknown, 1.0)
    scale(vd.asbuffer(np.zeros(3, np.float32)), 1.0)
    scale(vd.asbuffer(np.zeros(3), vd.float32), 1.0)
    bound(data, graph.bind_var("amount"), image.sample(), image, graph=graph)
    bound(data, 2.0, image.sample(), image)
    bend(data, Lens((1, 2), 0.5), (1.0, 2.0))
    bend(data, Lens(np.zeros(2), strength=1), [1, 2])
    Smoother().apply(data, 3)
    Smoother().apply(data, 3, graph=graph)
    vd.sum(blend(data, data, 0.5, data))
    vd.compact(counts, is_even)
    largest(data)
    print(scale.get_src(), scale.name, scale.exec_size)


def refused(unknown: vd.Buffer[Any]) -> None:
    scale(data)  # refused
    scale(data, "no")  # refused
    scale(data, b"no")  # refused
    scale(data, None)  # refused
    scale(data, data)  # refused
    scale(data, graph.bind_var("x"))  # refused
    scale(2.0, 2.0)  # refused
    scale(np.zeros(3), 2.0)  # refused
    scale(counts, 2.0)  # refused
    scale(image, 2.0)  # refused
    scale(unknown, "no")  # refused
    scale(data, 1.0, 2.0, 3.0)  # refused
    scale(data, 1.0, size=3)  # refused
    scale(data, factor="no")  # refused
    scale(data, 1.0, factor=1.0)  # refused
    scale(data, graph=graph)  # refused
    scale(data, "no", graph=graph)  # refused
    scale(data, 1.0, 2.0, 3.0, graph=graph)  # refused
    scale(data, 1.0, graph="g")  # refused
    scale(data, 1.0, exec_size=2.5)  # refused
    scale(data, 1.0, exec_sise=3)  # refused
    bound(data, "no", image.sample(), image)  # refused
    bound(data, 1.0, image, image)  # refused
    bound(data, 1.0, image.sample(), image.sample())  # refused
    bend(data, 0.5, (1.0, 2.0))  # refused
    Smoother().apply(data)  # refused
    Smoother().apply(data, "no")  # refused
    vd.Buffer(10, vd.float31)  # refused
    pixels: vd.Buffer[u8] = data  # refused
    print(pixels)
    print(scale.nothing)  # refused
    matrix = vnp.zeros((2, 2), vnp.float32)
    doubles: vd.Array[tuple[int, int], np.float64] = matrix  # refused
    vector: vd.Array[tuple[int]] = matrix  # refused
    print(doubles, vector, matrix.shapes)  # refused
