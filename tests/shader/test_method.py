"""`@vd.shader` on methods: a kernel for each instance, for what its attributes hold."""

from __future__ import annotations

import gc
import warnings
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, f32
from vkdispatch.shader.shader_function import ShaderFunction


def array(*values: float) -> vd.Buffer[Any]:
    return vd.asbuffer(np.array(values, np.float32))


def read(buffer: vd.Buffer[Any]) -> list[float]:
    return buffer.read(0).tolist()


class Filter:
    offset = 0.5

    def __init__(self, factor: float, taps: tuple[float, ...] = ()) -> None:
        self.factor = factor
        self.taps = list(taps)
        self.calls = 0

    @vd.shader("x.size")
    def scale(self, x: Buff[f32], least: Const[f32] = -100.0):
        """Scale what is large enough."""
        i = vc.global_invocation_id().x
        if x[i] > least:
            x[i] = self.scaled(x[i])

    def scaled(self, value: Any) -> Any:
        for tap in self.taps:
            value = value + tap
        return value * self.factor + self.offset

    @vd.shader(lambda args: args.x.size)
    def negate(self, x: Buff[f32]):
        i = vc.global_invocation_id().x
        x[i] = -x[i] * self.factor

    @vd.shader("self.calls")
    def mark(self, x: Buff[f32]):
        x[vc.global_invocation_id().x] = 7

    @vd.shader("x.size")
    @staticmethod
    def double(x: Buff[f32]):
        i = vc.global_invocation_id().x
        if x[i] > 0:
            x[i] *= 2

    @staticmethod
    @vd.shader("x.size")
    def halve(x: Buff[f32]):
        x[vc.global_invocation_id().x] /= 2

    @vd.shader("x.size")
    @classmethod
    def shift(cls, x: Buff[f32]):
        x[vc.global_invocation_id().x] += cls.offset


class Inverted(Filter):
    offset = 2.0

    @vd.shader("x.size")
    def negate(self, x: Buff[f32]):
        x[vc.global_invocation_id().x] = 1


def test_each_instance_has_its_own_kernel() -> None:
    a, b = Filter(3.0), Filter(2.0, (1, 4))
    x = array(1, 2, -3)
    a.scale(x)
    assert read(x) == [3.5, 6.5, -8.5]
    b.scale(x, least=0)
    assert read(x) == [17.5, 23.5, -8.5]
    a.negate(x)
    assert read(x) == [-52.5, -70.5, 25.5]
    host = np.array([1, 2], np.float32)
    b.scale.interpret(host)
    assert host.tolist() == [12.5, 14.5]


def test_it_is_a_kernel_and_the_same_one_each_time() -> None:
    a = Filter(3.0)
    assert isinstance(a.scale, ShaderFunction)
    kernel = a.scale
    assert a.scale is kernel
    assert Filter(3.0).scale is not kernel
    assert kernel.name == "scale" and "3.0f" in str(kernel.get_src(build=False))
    assert Filter.scale.__doc__ == "Scale what is large enough."


def test_a_changed_attribute_is_seen() -> None:
    a = Filter(3.0)
    first = a.scale
    a.calls += 1
    assert a.scale is first  # it does not read that
    a.factor = 2.0
    second = a.scale
    x = array(1)
    a.scale(x)
    assert read(x) == [2.5]
    a.taps.append(10)
    a.scale(x)
    assert read(x) == [25.5]
    a.taps.clear()
    assert a.scale is second
    a.factor = 3.0
    assert a.scale is first
    a.factor = 3
    assert a.scale is not first  # an int is not a float


def test_a_changed_attribute_of_the_class_is_seen() -> None:
    class Local(Filter):
        offset = 1.0

    a, x = Local(1.0), array(1)
    a.scale(x)
    Local.offset = 4.0
    a.scale(x)
    assert read(x) == [6]


def test_arrays_and_objects_as_attributes() -> None:
    @dataclass
    class Setting:
        gain: float

    class Table:
        def __init__(self) -> None:
            self.table = np.array([1, 2, 3], np.float32)
            self.setting = Setting(2.0)

        @vd.shader("x.size")
        def add(self, x: Buff[f32]):
            i = vc.global_invocation_id().x
            x[i] += vc.constant_array(self.table)[i] * self.setting.gain

    t, x = Table(), array(0, 0, 0)
    t.add(x)
    t.table[1] = 20
    t.add(x)
    t.setting.gain = 0.5
    t.add(x)
    assert read(x) == [4.5, 54, 13.5]


def test_what_hands_its_instance_on_may_read_everything() -> None:
    def factor_of(item: Any) -> float:
        return item.factor

    class Handing(Filter):
        @vd.shader("x.size")
        def scale(self, x: Buff[f32]):
            x[vc.global_invocation_id().x] *= factor_of(self)

    a, x = Handing(3.0), array(1)
    a.scale(x)
    a.factor = 5.0
    a.scale(x)
    assert read(x) == [15]


def test_sizes_may_name_the_instance() -> None:
    a, x = Filter(1.0), array(1, 1, 1)
    a.calls = 2
    a.mark(x)
    assert read(x) == [7, 7, 1]
    mark = a.mark
    assert isinstance(mark, ShaderFunction) and mark.name == "mark"
    a.calls = 3
    mark(x)
    assert read(x) == [7, 7, 7]
    x = array(1, 1)
    a.mark.interpret(host := np.zeros(4, np.float32))
    assert host.tolist() == [7, 7, 7, 0]
    del a
    mark(x, exec_size=1)
    assert read(x) == [7, 1]
    del mark

    def fresh(calls: int) -> Filter:
        made = Filter(1.0)
        made.calls = calls
        return made

    fresh(2).mark(x)  # the kernel keeps its instance
    assert read(x) == [7, 7]


def test_static_methods_and_methods_of_classes() -> None:
    x = array(1, -2)
    Filter.double(x)
    Filter(1.0).double(x)
    assert read(x) == [4, -2]
    Filter.halve(x)
    Filter(1.0).halve(x)
    assert read(x) == [1, -0.5]
    Filter.shift(x)
    Inverted.shift(x)
    Inverted(1.0).shift(x)
    assert read(x) == [5.5, 4]


def test_overriding_and_super() -> None:
    class Twice(Filter):
        @vd.shader("x.size")
        def scale(self, x: Buff[f32], least: Const[f32] = -100.0):
            x[vc.global_invocation_id().x] = -1

        def both(self, x: vd.Buffer[Any]) -> None:
            super().scale(x)
            assert read(x) == [4.5]
            self.scale(x)
            assert read(x) == [-1]

    Twice(4.0).both(array(1))
    x = array(1)
    Inverted(3.0).negate(x)
    assert read(x) == [1]
    Filter.negate(Inverted(3.0), x)  # as Python does
    assert read(x) == [-3]


def test_instances_are_not_kept_alive() -> None:
    a = Filter(3.0)
    a.calls = 1
    a.scale(array(1))
    a.mark(array(1))
    known = weakref.ref(a)
    del a
    gc.collect()
    assert known() is None
    assert not vars(Filter)["mark"]._entries


@pytest.mark.parametrize(
    "use",
    [lambda: Filter.scale(array(1)), lambda: Filter.scale(), lambda: Filter.scale.get_src()],
    ids=["call", "call without arguments", "attribute"],
)
def test_the_class_has_no_kernel(use: Any) -> None:
    with pytest.raises(
        (TypeError, AttributeError), match=r"Filter\.scale: its first parameter 'self' has no"
    ):
        use()


def test_a_parameter_without_annotation_is_the_instance() -> None:
    class Wrong:
        @vd.shader("y.size")
        def add(x, y: Buff[f32]):  # noqa: N805
            y[0] = 1

    with pytest.raises(TypeError, match="annotate 'x' to make it an argument"):
        Wrong.add(array(1), array(1))

    with pytest.raises(ValueError, match="argument 'self' has no annotation"):

        @vd.shader("x.size")
        def outside(self, x: Buff[f32]):
            x[0] = 1


def test_errors_of_the_signature_come_at_once() -> None:
    with pytest.raises(ValueError, match="argument 'y' has no annotation"):

        class Wrong:
            @vd.shader("x.size")
            def add(self, x: Buff[f32], y):
                x[0] = 1


def test_annotations_given_apart() -> None:
    class Apart:
        value = 3

        @vd.shader("x.size", arg_type_annotations=[Buff[f32]], arg_names=["x"])
        def fill(self, x):
            x[vc.global_invocation_id().x] = self.value

    x = array(1, 2)
    Apart().fill(x)
    assert read(x) == [3, 3]


def test_instances_without_weak_references_are_refused() -> None:
    @dataclass(slots=True)
    class Slotted:
        factor: float

        @vd.shader("x.size")
        def scale(self, x: Buff[f32]):
            x[vc.global_invocation_id().x] *= self.factor

    with pytest.raises(TypeError, match="weakref_slot=True"):
        Slotted(2.0).scale(array(1))


def test_slots() -> None:
    class Slotted:
        __slots__ = ("__weakref__", "factor")

        @vd.shader("x.size")
        def scale(self, x: Buff[f32]):
            x[vc.global_invocation_id().x] *= self.factor

    a, x = Slotted(), array(1)
    a.factor = 2.0
    a.scale(x)
    a.factor = 5.0
    a.scale(x)
    assert read(x) == [10]


def test_kernels_do_not_call_kernels() -> None:
    class Nested:
        @vd.shader("x.size")
        def inner(self, x: Buff[f32]):
            x[0] = 1

        @vd.shader("x.size")
        def outer(self, x: Buff[f32]):
            self.inner(x)

    with pytest.raises(RuntimeError, match=r"Nested\.inner: a kernel cannot call another one") as caught:
        Nested().outer(array(1))
    assert "self.inner" in str(caught.value)


def test_too_many_traces_warn() -> None:
    a = Filter(0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(31):
            a.factor = float(n)
            assert "factor" in vars(a) and a.negate.name == "negate"
    a.factor = 31.0
    with pytest.warns(vd.KernelWarning, match=r"Filter\.negate was traced 32 times"):
        assert a.negate.name == "negate"
    assert len(vars(Filter)["negate"]._entries[id(a)].kernels.made) == 16
