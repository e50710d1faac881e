"""Programs in the style of Kompute's documentation and examples, of its Python modules from 0.5 on."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import vkdispatch.kompute as kp
from tests.compatibility.programs import Collection

PROGRAMS = Collection()
program = PROGRAMS.add

_MULTIPLY = """
#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer A { float a[]; };
layout(set = 0, binding = 1) buffer B { float b[]; };
layout(set = 0, binding = 2) buffer Out { float product[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    product[i] = a[i] * b[i];
}
"""
_ADD = """
#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer A { float a[]; };
layout(set = 0, binding = 1) buffer B { float b[]; };
layout(set = 0, binding = 2) buffer Out { float sum[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    sum[i] = a[i] + b[i];
}
"""
_AFFINE = """
#version 450
layout(local_size_x = 1) in;
layout(constant_id = 0) const float OFFSET = 0;
layout(push_constant) uniform Values { float scale; };
layout(set = 0, binding = 0) buffer A { float a[]; };
void main() { a[gl_GlobalInvocationID.x] = a[gl_GlobalInvocationID.x] * scale + OFFSET; }
"""
_COUNT = """
#version 450
layout(local_size_x = 1) in;
layout(push_constant) uniform Values { int step; };
layout(set = 0, binding = 0) buffer A { int a[]; };
void main() { a[gl_GlobalInvocationID.x] += step; }
"""
_INVERT = """
#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0, r32f) uniform image2D pixels;
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    imageStore(pixels, at, 1 - imageLoad(pixels, at));
}
"""


@program("Tensors, an algorithm, a sequence of sync, dispatch and sync, `eval`, `data()`")
def multiply() -> None:
    manager = kp.Manager()
    a, b, out = manager.tensor([2, 2, 2]), manager.tensor([1, 2, 3]), manager.tensor([0, 0, 0])
    algorithm = manager.algorithm([a, b, out], kp.compile_glsl(_MULTIPLY))
    (
        manager.sequence()
        .record(kp.OpTensorSyncDevice([a, b, out]))
        .record(kp.OpAlgoDispatch(algorithm))
        .record(kp.OpTensorSyncLocal([out]))
        .eval()
    )
    assert out.data().tolist() == [2, 4, 6] and out.size() == 3 and out.is_init()


@program(
    "A sequence whose dispatches depend on each other, evaluated many times",
    "barriers stand wherever two commands need one; in Kompute such dispatches race",
)
def dependent_dispatches() -> None:
    manager = kp.Manager()
    a, b = manager.tensor(np.arange(70)), manager.tensor(np.ones(70))
    double = manager.algorithm([a, a, b], kp.compile_glsl(_ADD))
    back = manager.algorithm([b, b, a], kp.compile_glsl(_ADD))
    manager.sequence().eval(kp.OpTensorSyncDevice([a, b]))
    sequence = manager.sequence().record(kp.OpAlgoDispatch(double)).record(kp.OpAlgoDispatch(back))
    for _ in range(3):
        sequence.eval()
    manager.sequence().eval(kp.OpTensorSyncLocal([a]))
    assert (a.data() == 64 * np.arange(70)).all()


@program(
    "Specialization constants and push constants; other push constants for one dispatch",
    "push constants from an integer array are always integers; Kompute often converted them to float32",
)
def constants() -> None:
    manager = kp.Manager()
    a = manager.tensor([1, 2, 3])
    algorithm = manager.algorithm([a], kp.compile_glsl(_AFFINE), (3, 1, 1), [0.5], [2.0])
    (
        manager.sequence()
        .record(kp.OpTensorSyncDevice([a]))
        .record(kp.OpAlgoDispatch(algorithm))
        .record(kp.OpAlgoDispatch(algorithm, [10.0]))
        .record(kp.OpTensorSyncLocal([a]))
        .eval()
    )
    assert a.data().tolist() == [25.5, 45.5, 65.5]
    counts = manager.tensor_t(np.arange(4, dtype=np.int32))
    steps = manager.algorithm([counts], kp.compile_glsl(_COUNT), push_consts=np.array([7], np.int32))
    manager.sequence().record(kp.OpTensorSyncDevice([counts])).record(kp.OpAlgoDispatch(steps)).record(
        kp.OpTensorSyncLocal([counts])
    ).eval()
    assert counts.data().tolist() == [7, 8, 9, 10]


@program(
    "`eval_async`, `eval_await`, `is_running`",
    "a timeout of `eval_await` leaves the sequence running; await it again",
)
def asynchronous() -> None:
    manager = kp.Manager()
    a, b, out = (manager.tensor(np.full(50, value)) for value in (2, 3, 0))
    algorithm = manager.algorithm([a, b, out], kp.compile_glsl(_MULTIPLY))
    sequence = manager.sequence()
    sequence.eval(kp.OpTensorSyncDevice([a, b]))
    sequence.eval_async(kp.OpAlgoDispatch(algorithm))
    assert sequence.is_running()
    sequence.eval_await()
    sequence.eval_async(kp.OpTensorSyncLocal([out]))
    sequence.eval_await()
    assert (out.data() == 6).all() and not sequence.is_running()


@program(
    "Typed tensors: `tensor_t` of float32, float64, int32, uint32, bool", "8-bit and 16-bit integers as well"
)
def typed_tensors() -> None:
    manager = kp.Manager()
    for kind in ("float32", "float64", "int32", "uint32", "bool", "int16", "uint8"):
        values = np.array([0, 1, 1, 0, 1]).astype(kind)
        a, b = manager.tensor_t(values), manager.tensor_t(np.zeros_like(values))
        manager.sequence().record(kp.OpTensorSyncDevice([a])).record(kp.OpTensorCopy([a, b])).record(
            kp.OpTensorSyncLocal([b])
        ).eval()
        assert b.data().dtype == kind and (b.data() == values).all()


@program(
    "Memory types `device`, `host`, `storage`, `deviceAndHost`",
    "`data()` of a tensor of type `storage` raises an error; Kompute returned memory without meaning",
)
def memory_types() -> None:
    manager = kp.Manager()
    a = manager.tensor([1, 2, 3], kp.MemoryTypes.host)
    b = manager.tensor([4, 5, 6], kp.MemoryTypes.deviceAndHost)
    hidden = manager.tensor([0, 0, 0], kp.MemoryTypes.storage)
    out = manager.tensor([0, 0, 0], kp.MemoryTypes.device)
    code = kp.compile_glsl(_ADD)
    first, second = manager.algorithm([a, b, hidden], code), manager.algorithm([hidden, a, out], code)
    manager.sequence().record(kp.OpAlgoDispatch(first)).record(kp.OpAlgoDispatch(second)).record(
        kp.OpSyncLocal([out])
    ).eval()
    assert out.data().tolist() == [6, 9, 12]
    with pytest.raises(RuntimeError, match="storage"):
        hidden.data()


@program(
    "Storage images: `image`, `image_t`, `OpCopy` between images and tensors",
    "rows may have any length; Kompute relied on the driver's row pitch",
)
def images() -> None:
    manager = kp.Manager()
    values = np.random.default_rng(3).random((5, 7), dtype=np.float32)
    image = manager.image(values, 7, 5, 1)
    algorithm = manager.algorithm([image], kp.compile_glsl(_INVERT), (7, 5, 1))
    manager.sequence().record(kp.OpSyncDevice([image])).record(kp.OpAlgoDispatch(algorithm)).record(
        kp.OpSyncLocal([image])
    ).eval()
    assert np.array_equal(image.data().reshape(5, 7), 1 - values)
    pixels = np.arange(35, dtype=np.uint16)
    typed, copy = manager.image_t(pixels, 7, 5, 1), manager.tensor_t(np.zeros_like(pixels))
    manager.sequence().record(kp.OpSyncDevice([typed])).record(kp.OpCopy([typed, copy])).record(
        kp.OpSyncLocal([copy])
    ).eval()
    assert np.array_equal(copy.data(), pixels)


@program("`OpMult` with an algorithm of its own", "tensors of different sizes raise an error")
def multiply_operation() -> None:
    manager = kp.Manager()
    a, b, out = manager.tensor([1, 2, 3]), manager.tensor([4, 5, 6]), manager.tensor([0, 0, 0])
    manager.sequence().record(kp.OpTensorSyncDevice([a, b])).record(
        kp.OpMult([a, b, out], manager.algorithm())
    ).record(kp.OpTensorSyncLocal([out])).eval()
    assert out.data().tolist() == [4, 10, 18]


@program(
    "Timestamps: `sequence(total_timestamps=)`, `get_timestamps`",
    "more operations than there are timestamps for raise an error",
)
def timestamps() -> None:
    manager = kp.Manager()
    a = manager.tensor([1, 2, 3])
    sequence = manager.sequence(total_timestamps=2)
    sequence.record(kp.OpTensorSyncDevice([a])).record(kp.OpTensorSyncLocal([a])).eval()
    times = sequence.get_timestamps()
    assert len(times) == 3 and times == sorted(times)


@program("`rerecord`, `clear`, `is_recording`, `destroy`", "misuse raises an error where Kompute crashed")
def life_of_a_sequence() -> None:
    manager = kp.Manager()
    a = manager.tensor([1, 2, 3])
    sequence = manager.sequence().record(kp.OpTensorSyncDevice([a]))
    assert sequence.is_recording()
    sequence.eval()
    sequence.rerecord()
    sequence.clear()
    sequence.destroy()
    assert not sequence.is_init()
    with pytest.raises(RuntimeError):
        sequence.record(kp.OpTensorSyncDevice([a]))
    manager.destroy()
    with pytest.raises(RuntimeError):
        a.data()


@program("`list_devices`, `get_device_properties`, `get_tensors`, `memory_type`, `data_type`")
def properties() -> None:
    manager = kp.Manager(0)
    assert manager.get_device_properties()["device_name"] == manager.list_devices()[0]["device_name"]
    a = manager.tensor([1, 2])
    algorithm = manager.algorithm([a], kp.compile_glsl(_AFFINE), (2, 1, 1), [0], [1])
    assert algorithm.get_tensors()[0] is a
    assert a.memory_type() == kp.MemoryTypes.device and a.data_type() == kp.DataTypes.float


@program("0.7: `kp.Shader.compile_source`, `compile_sources`")
def shader_compiler() -> None:
    code = kp.Shader.compile_source(_MULTIPLY)
    manager = kp.Manager()
    a, b, out = manager.tensor([1, 2]), manager.tensor([3, 4]), manager.tensor([0, 0])
    manager.sequence().record(kp.OpTensorSyncDevice([a, b])).record(
        kp.OpAlgoDispatch(manager.algorithm([a, b, out], code))
    ).record(kp.OpTensorSyncLocal([out])).eval()
    assert out.data().tolist() == [3, 8]


@program(
    "0.5 and 0.6: `build_tensor`, `create_sequence(name)`, `begin`, `record_algo_data`, `end`, `eval`",
    '`kp.use("0.6")` makes `data()` a list, as it was; without it, it is an array',
)
def named_sequences() -> None:
    manager = kp.Manager()
    a, b, out = (
        manager.build_tensor([2, 2, 2]),
        manager.build_tensor([1, 2, 3]),
        manager.build_tensor([1, 2, 3]),
    )
    multiply, add = manager.create_sequence("MULTIPLY"), manager.create_sequence("ADD")
    sync = manager.create_sequence("SYNC")
    multiply.begin()
    multiply.record_algo_data([a, b, out], kp.compile_glsl(_MULTIPLY))
    multiply.end()
    add.begin()
    add.record_algo_data([out, b, a], kp.compile_glsl(_ADD))
    add.end()
    sync.begin()
    sync.record_tensor_sync_local([a, out])
    sync.end()
    expected = np.array([2.0, 2, 2])
    for _ in range(10):
        multiply.eval()
        add.eval()
        expected = expected * [1, 2, 3] + [1, 2, 3]
    sync.eval()
    assert a.data().tolist() == expected.tolist()
    kp.use("0.6")
    try:
        assert manager.build_tensor([2, 4]).data() == [2.0, 4.0]
    finally:
        kp.use()


@program(
    "0.5 and 0.6: tensors made without a manager, `eval_tensor_create_def`, `eval_algo_str_def`, "
    "`eval_async_…`, `eval_await_def`"
)
def anonymous_evaluations() -> None:
    a, b, out = kp.Tensor([2, 2, 2]), kp.Tensor([1, 2, 3]), kp.Tensor([0, 0, 0])
    manager = kp.Manager()
    manager.eval_tensor_create_def([a, b, out])
    manager.eval_algo_str_def([a, b, out], _MULTIPLY)
    manager.eval_async_tensor_sync_local_def([out])
    manager.eval_await_def()
    assert list(out.data()) == [2, 4, 6] and out[1] == 4 and 6.0 in out and len(out) == 3


@program(
    "`eval(op)` with an operation that is refused",
    "the sequence stays as it was; Kompute drops its operations first and checks `op` then",
)
def refused_operation() -> None:
    manager = kp.Manager()
    a, b = manager.tensor([1, 2, 3]), manager.tensor([0, 0])
    sequence = manager.sequence().record(kp.OpTensorSyncDevice([a]))
    with pytest.raises(RuntimeError):
        sequence.eval(kp.OpTensorCopy([a, b]))
    sequence.eval()
    with pytest.raises(RuntimeError):
        manager.algorithm([a], b"no SPIR-V")


@program(
    "Several managers", "managers of one device share it: tensors of one work with algorithms of another"
)
def several_managers() -> None:
    first, second = kp.Manager(), kp.Manager()
    a, b, out = first.tensor([1, 2]), second.tensor([3, 4]), second.tensor([0, 0])
    algorithm = first.algorithm([a, b, out], kp.compile_glsl(_ADD))
    first.sequence().record(kp.OpTensorSyncDevice([a, b])).record(kp.OpAlgoDispatch(algorithm)).record(
        kp.OpTensorSyncLocal([out])
    ).eval()
    assert out.data().tolist() == [4, 6]


@program(
    "Arrays of `data()` that outlive their tensor or manager",
    "they keep their memory; in Kompute they point to freed memory",
)
def views() -> None:
    manager = kp.Manager()
    tensor = manager.tensor([1, 2, 3])
    values = tensor.data()
    tensor.destroy()
    manager.destroy()
    assert values.tolist() == [1, 2, 3]


@program(
    "Threads that evaluate sequences of their own",
    "threads run while one of them waits; Kompute holds Python's lock during an evaluation",
)
def threads() -> None:
    manager = kp.Manager()
    code = kp.compile_glsl(_ADD)

    def work(value: int) -> list[float]:
        a, out = manager.tensor([value] * 5), manager.tensor([0] * 5)
        manager.sequence().record(kp.OpTensorSyncDevice([a])).record(
            kp.OpAlgoDispatch(manager.algorithm([a, a, out], code))
        ).record(kp.OpTensorSyncLocal([out])).eval()
        found: list[float] = out.data().tolist()
        return found

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(8))) == [[2.0 * value] * 5 for value in range(8)]


@program("Logging: `kp.log_level`, the logger `kp`")
def logs() -> None:
    level = 4
    kp.log_level(level)
    kp.Manager().tensor([1])
    kp.log_level(2)
