"""Random element-wise kernels: every form of a kernel leaves the same bits as the plain one."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.base.dtype import DType
from vkdispatch.codegen.abbreviations import Buff, Const, b8, f32, i8, i32, i64, iv2, u16, u32, v4
from vkdispatch.shader import building

pytestmark = pytest.mark.filterwarnings("ignore:.*runs once, while Python traces")

Array = np.ndarray[Any, Any]

KINDS = [f32, i32, u32, i8, b8, u16, i64, v4, iv2]
FORMS = ["coarse", "blocks", "wide", "coarse,addressed", "coarse,wide"]
EXTENTS: dict[int, list[tuple[int, ...]]] = {
    1: [(1,), (63,), (1024,), (1025,), (4099,), (4104,)],
    2: [(5, 7), (257, 2), (16, 9), (8, 3)],
    3: [(33, 1, 2), (5, 3, 5)],
}


class Author:
    """Writes a kernel of a seed: loads and stores at the invocation's own element, branches, returns."""

    def __init__(self, seed: int, kinds: list[DType], buffers: list[Any], index: Any, ids: Any) -> None:
        self.random = Random(seed)
        self.kinds, self.buffers, self.index, self.ids = kinds, buffers, index, ids
        self.registers: list[Any] = []

    def load(self) -> Any:
        position = self.random.randrange(len(self.buffers))
        value = self.buffers[position][self.index]
        if dt.is_vector(self.kinds[position]):
            value = value.x + value.y
        return value.to_dtype(i32)

    def number(self, depth: int = 2) -> Any:
        draw = self.random.random()
        if not depth or draw < 0.4:
            return self.load()
        if draw < 0.5:
            return self.random.choice([self.index, self.ids.y, self.ids.zyx.z]).to_dtype(i32)
        if draw < 0.6 and self.registers:
            return self.random.choice(self.registers)
        a, b = self.number(depth - 1), self.number(depth - 1)
        return self.random.choice([lambda: a + b, lambda: a - b, lambda: a * b, lambda: a ^ b])()

    def condition(self) -> Any:
        a, b = self.number(1), self.number(1)
        return self.random.choice([lambda: a < b, lambda: (a & 3) == 0, lambda: vc.any(a > 3, b < -2)])()

    def store(self) -> None:
        position = self.random.randrange(len(self.buffers))
        buffer, kind = self.buffers[position], self.kinds[position]
        value, draw = self.number() & 63, self.random.random()
        if dt.is_vector(kind) and draw < 0.5:
            buffer[self.index].y = value.to_dtype(dt.component_type(kind))
        elif dt.is_vector(kind) and draw < 0.7:
            buffer[self.index].x += value.to_dtype(dt.component_type(kind))
        elif kind is b8:
            buffer[self.index] = value > 31
        elif draw < 0.3:
            buffer[self.index] += value.to_dtype(dt.compute_type(kind))
        else:
            buffer[self.index] = value.to_dtype(dt.compute_type(kind))

    def inside(self, depth: int) -> None:
        known = list(self.registers)
        for _ in range(self.random.randint(1, 2)):
            self.statement(depth)
        self.registers = known

    def statement(self, depth: int = 2) -> None:
        draw = self.random.random()
        if not depth or draw < 0.5:
            self.store()
        elif draw < 0.65:
            self.registers.append(self.number().to_register())
        elif draw < 0.75 and self.registers:
            register = self.random.choice(self.registers)
            register += self.number(1)
        elif draw < 0.9:
            with vc.if_block(self.condition()):
                self.inside(depth - 1)
            with vc.else_block():
                self.inside(depth - 1)
        else:
            with vc.switch_block(self.number(1) & 3):
                with vc.case_block(0, 2):
                    self.inside(depth - 1)
                with vc.default_block():
                    self.inside(depth - 1)

    def write(self) -> None:
        if self.random.random() < 0.5:
            with vc.if_block(self.condition()):
                vc.return_statement()
        for _ in range(self.random.randint(2, 4)):
            self.statement()


def kernel_of(seed: int, kinds: list[DType], axes: int) -> Callable[..., None]:
    def body(*arguments: Any) -> None:
        *buffers, width, height = arguments
        ids = vc.global_invocation_id()
        row = {1: 0, 2: ids.y, 3: ids.z * height + ids.y}[axes]
        Author(seed, kinds, buffers, row * width + ids.x if axes > 1 else ids.x, ids).write()

    return body


def random_values(kind: DType, count: int, random: np.random.Generator) -> Array:
    like = vd.Buffer((count,), kind).read(0)
    low = 0 if like.dtype.kind in "ub" else -60
    return random.integers(low, 2 if like.dtype.kind == "b" else 60, like.shape).astype(like.dtype)


@pytest.mark.parametrize("seed", range(8))
def test_every_form_does_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    kinds = [random.choice(KINDS) for _ in range(random.randint(2, 4))]
    twice = random.random() < 0.4  # one buffer for two parameters
    kinds[1] = kinds[0] if twice else kinds[1]
    axes = random.choice([1, 1, 2, 3])
    extent = random.choice(EXTENTS[axes])
    local_size = random.choice([None, None, (8, 8, 1), (7, 1, 1), (4, 4, 4)])
    count = int(np.prod(extent)) + random.choice([0, 5])
    data = [random_values(kind, count, np.random.default_rng(seed)) for kind in kinds]

    def outcome(form: str) -> list[Array]:
        monkeypatch.setattr(building, "_FORCED", frozenset(filter(None, form.split(","))))
        kernel = vd.shader(
            exec_size=extent,
            local_size=local_size,
            arg_type_annotations=[*(Buff[kind] for kind in kinds), Const[u32], Const[u32]],
        )(kernel_of(seed, kinds, axes))
        buffers = [vd.Buffer((count,), kind) for kind in kinds]
        for buffer, values in zip(buffers, data, strict=True):
            buffer.write(values)
        if twice:
            buffers[1] = buffers[0]
        kernel(*buffers, extent[0], extent[1] if axes > 1 else 1)
        return [buffer.read(0) for buffer in buffers]

    plain = outcome("")
    for form in FORMS:
        for position, (expected, found) in enumerate(zip(plain, outcome(form), strict=True)):
            np.testing.assert_array_equal(found, expected, f"{form}, buffer {position}")
