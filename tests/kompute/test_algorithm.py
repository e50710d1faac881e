"""Algorithms: workgroups, constants, memory, and valid and invalid code."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies

import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch.kompute as kp
import vkdispatch_native as native
from vkdispatch.codegen.abbreviations import Buff, Var, f32, i32

from .kernels import ADD_ONE, PRODUCT, PUSHED, typed

Array = np.ndarray[Any, Any]


def run(manager: kp.Manager, algorithm: kp.Algorithm, *constants: Any) -> None:
    manager.sequence().eval(kp.OpAlgoDispatch(algorithm, *constants))


# -- workgroups


@pytest.mark.parametrize(
    ("workgroup", "groups"),
    [
        ((0, 0, 0), (6, 1, 1)),
        ((0, 5, 5), (6, 1, 1)),
        ([3, 0, 0], (3, 1, 1)),
        ((2, 2, 0), (2, 2, 1)),
        (np.array([1, 2, 3]), (1, 2, 3)),
        (range(3), (6, 1, 1)),
        (iter((4, 1, 1)), (4, 1, 1)),
        ((np.int64(5), np.uint8(0), True), (5, 1, 1)),
    ],
)
def test_workgroups(manager: kp.Manager, workgroup: Any, groups: tuple[int, int, int]) -> None:
    code = """#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Sums { uint sums[]; };
void main() { atomicAdd(sums[gl_WorkGroupID.x], 1); }
"""
    tensor = manager.tensor_t(np.zeros(6, np.uint32), kp.MemoryTypes.host)
    algorithm = manager.algorithm([tensor], code, workgroup)
    assert algorithm.get_workgroup() == groups
    run(manager, algorithm)
    assert tensor.data().tolist() == [groups[1] * groups[2]] * groups[0] + [0] * (6 - groups[0])


@pytest.mark.parametrize(
    "workgroup",
    [(1, 1), (1, 1, 1, 1), (-1, 1, 1), (1.0, 1, 1), np.ones(3), "111", b"111", None, 3, (1, None, 1)],
)
def test_invalid_workgroups_raise_type_error(manager: kp.Manager, workgroup: Any) -> None:
    tensor = manager.tensor([1])
    algorithm = manager.algorithm([tensor], ADD_ONE)
    for call in (
        lambda: manager.algorithm([tensor], ADD_ONE, workgroup),
        lambda: algorithm.set_workgroup(workgroup),
        lambda: algorithm.rebuild([tensor], ADD_ONE, workgroup),
    ):
        with pytest.raises(TypeError, match="workgroup: expected three counts"):
            call()
    assert algorithm.get_workgroup() == (1, 1, 1)


def test_too_many_workgroups_raise(manager: kp.Manager) -> None:
    tensor = manager.tensor([1])
    algorithm = manager.algorithm([tensor], ADD_ONE, (1, 1, 1))
    for workgroup in ((1, 2**33, 1), (2**70, 1, 1)):
        with pytest.raises(RuntimeError, match=r"workgroup: .* one dispatch on this device takes"):
            manager.algorithm([tensor], ADD_ONE, workgroup)
        with pytest.raises(RuntimeError, match="workgroup"):
            algorithm.set_workgroup(workgroup)
    assert algorithm.get_workgroup() == (1, 1, 1)


def test_changed_workgroups_apply_from_the_next_record(manager: kp.Manager) -> None:
    tensor = manager.tensor(np.zeros(4), kp.MemoryTypes.host)
    algorithm = manager.algorithm([tensor], ADD_ONE)
    sequence = manager.sequence().record(kp.OpAlgoDispatch(algorithm))
    algorithm.set_workgroup((2, 0, 0))
    sequence.eval()
    assert tensor.data().tolist() == [1, 1, 1, 1]
    sequence.rerecord()
    sequence.eval()
    assert tensor.data().tolist() == [2, 2, 1, 1]


# -- constants

INT32, UINT32, FLOAT32 = np.int32, np.uint32, np.float32
FLOAT_7 = 0x40E00000
FLOAT_2 = 0x40000000


@pytest.mark.parametrize(
    ("spec", "push", "wanted"),
    [
        ((), np.array([7], INT32), (0, 7)),  # Kompute converts this to float
        ([], np.array([7], INT32), (0, 7)),
        ([2], np.array([7], INT32), (2, 7)),
        (np.array([], INT32), np.array([7], INT32), (0, 7)),
        (np.array([], np.float64), np.array([7], INT32), (0, 7)),
        (np.array([2], FLOAT32), np.array([7], INT32), (FLOAT_2, 7)),
        (np.array([2], INT32), np.array([7], FLOAT32), (2, FLOAT_7)),
        (np.array([2], UINT32), np.array([7], INT32), (2, 7)),
        (np.array([2], np.int64), np.array([7], np.int16), (2, 7)),
        (np.array([2], INT32), [7], (2, 7)),
        (np.array([2.0]), np.array([7.0]), (FLOAT_2, FLOAT_7)),  # float64 becomes float32
        ([2], [7], (2, 7)),
        ((2,), {7}, (2, 7)),
        ([2.0], [7.0], (FLOAT_2, FLOAT_7)),
        ([np.float64(2)], [np.int32(7)], (FLOAT_2, 7)),
        ([True], [-1], (1, -1)),
        ((k for k in (2,)), (k for k in (7,)), (2, 7)),
        ([-(2**31)], [2**32 - 1], (-(2**31), -1)),
        (np.arange(4, dtype=INT32)[2::2], np.arange(16, dtype=INT32)[7::9], (2, 7)),
    ],
)
def test_constants_of_an_int_shader(manager: kp.Manager, spec: Any, push: Any, wanted: Any) -> None:
    tensor = manager.tensor_t(np.zeros(2, INT32), kp.MemoryTypes.host)
    run(manager, manager.algorithm([tensor], typed("int", "int"), (1, 1, 1), spec, push))
    assert tuple(tensor.data().tolist()) == wanted


@pytest.mark.parametrize("push", ["float32", "int32", "uint32", "float64"])
@pytest.mark.parametrize("spec", ["float32", "int32", "uint32", "float64"])
def test_typed_constants_of_a_typed_shader(manager: kp.Manager, spec: str, push: str) -> None:
    name = {"float32": "float", "int32": "int", "uint32": "uint", "float64": "double"}
    code = f"""#version 450
layout(local_size_x = 1) in;
layout(constant_id = 0) const {name[spec]} s = {name[spec]}(0);
layout(constant_id = 1) const {name[spec]} unset = {name[spec]}(5);
layout(push_constant) uniform Constants {{ {name[push]} p; {name[push]} q; }};
layout(set = 0, binding = 0) buffer A {{ {name[spec]} a[]; }};
layout(set = 0, binding = 1) buffer B {{ {name[push]} b[]; }};
void main() {{ a[0] = s; a[1] = unset; b[0] = p; b[1] = q; }}
"""
    a = manager.tensor_t(np.zeros(2, spec), kp.MemoryTypes.host)
    b = manager.tensor_t(np.zeros(2, push), kp.MemoryTypes.host)
    algorithm = manager.algorithm([a, b], code, (1, 1, 1), np.array([3], spec), np.array([7, 8], push))
    run(manager, algorithm)
    assert a.data().tolist() == [3, 5] and b.data().tolist() == [7, 8]
    run(manager, algorithm, np.array([9, 10], push))
    assert b.data().tolist() == [9, 10]
    run(manager, algorithm)
    assert b.data().tolist() == [9, 10]


def test_more_and_fewer_specialization_constants_than_declared(manager: kp.Manager) -> None:
    tensor = manager.tensor_t(np.zeros(2, INT32), kp.MemoryTypes.host)
    for spec, wanted in (([], 0), ([4], 4), ([4, 5, 6], 4)):
        run(manager, manager.algorithm([tensor], typed("int", "int"), (1, 1, 1), spec, [1]))
        assert tensor.data().tolist() == [wanted, 1]


@pytest.mark.parametrize("constants", ["ab", b"ab", 3, None, [None], ["a"], [1j], [[1], [2, 3]], [object()]])
def test_constants_that_are_not_numbers_raise(manager: kp.Manager, constants: Any) -> None:
    tensor = manager.tensor(np.zeros(3))
    algorithm = manager.algorithm([tensor], PUSHED, (1, 1, 1), [], [1, 2, 3])
    with pytest.raises(TypeError, match="spec_consts: expected"):
        manager.algorithm([tensor], PUSHED, (1, 1, 1), constants, [1, 2, 3])
    for call in (
        lambda: manager.algorithm([tensor], PUSHED, (1, 1, 1), [], constants),
        lambda: kp.OpAlgoDispatch(algorithm, constants),
        lambda: algorithm.set_push_consts(constants),
    ):
        with pytest.raises(TypeError, match="push_consts: expected"):
            call()


def test_numbers_out_of_range_raise(manager: kp.Manager) -> None:
    tensor = manager.tensor_t(np.zeros(2, INT32))
    for spec, push, who in (([2**33], [1], "spec_consts"), ([1], [-(2**31) - 1], "push_consts")):
        with pytest.raises(RuntimeError, match=rf"{who}: .* do not all fit the int32"):
            manager.algorithm([tensor], typed("int", "int"), (1, 1, 1), spec, push)
    floats = manager.tensor(np.zeros(2), kp.MemoryTypes.host)
    run(manager, manager.algorithm([floats], typed("float", "float"), (1, 1, 1), [2**80], [2**33]))
    assert floats.data().tolist() == [2.0**80, 2.0**33]


@pytest.mark.parametrize(
    "constants",
    [
        [1, 2, 3],
        (1, 2, 3),
        {1, 2, 3},
        range(1, 4),
        np.array([1, 2, 3], FLOAT32),
        np.array([1, 2, 3], np.float64),
        np.array([[1, 2, 3]], FLOAT32),
        np.arange(1, 7, dtype=FLOAT32).reshape(3, 2)[:, 0] / 2 + 0.5,
        (float(k) for k in (1, 2, 3)),
        np.array([1, 2, 3], ">f4"),
    ],
)
def test_constants_of_a_dispatch(manager: kp.Manager, constants: Any) -> None:
    tensor = manager.tensor(np.zeros(3), kp.MemoryTypes.host)
    algorithm = manager.algorithm([tensor], PUSHED, (1, 1, 1), [], [10, 20, 30])
    operation = kp.OpAlgoDispatch(algorithm, constants)
    for turn in (1, 2):  # an operation can be recorded repeatedly
        manager.sequence().eval(operation)
        assert tensor.data().tolist() == [turn, 2 * turn, 3 * turn]
    run(manager, algorithm, [])  # uses the latest constants
    assert tensor.data().tolist() == [3, 6, 9]


def test_operations_copy_their_constants(manager: kp.Manager) -> None:
    tensor = manager.tensor(np.zeros(3), kp.MemoryTypes.host)
    constants = np.array([1, 2, 3], FLOAT32)
    algorithm = manager.algorithm([tensor], PUSHED, (1, 1, 1), [], constants)
    constants[:] = [4, 5, 6]
    operation = kp.OpAlgoDispatch(algorithm, constants)
    constants[:] = 100
    run(manager, algorithm)
    manager.sequence().eval(operation)
    assert tensor.data().tolist() == [1 + 4, 2 + 5, 3 + 6]


def test_constants_of_another_size_raise(manager: kp.Manager) -> None:
    tensor = manager.tensor(np.zeros(3), kp.MemoryTypes.host)
    algorithm = manager.algorithm([tensor], PUSHED, (1, 1, 1), [], [1, 2, 3])
    none = manager.algorithm([tensor], PUSHED, (1, 1, 1))
    sequence = manager.sequence()
    for wrong, constants, match in (
        (algorithm, [1, 2], "8 bytes; the algorithm was made with 12"),
        (algorithm, np.zeros(4, INT32), "16 bytes; the algorithm was made with 12"),
        (none, [1, 2, 3], "12 bytes; the algorithm was made with 0"),
    ):
        operation = kp.OpAlgoDispatch(wrong, constants)
        with pytest.raises(RuntimeError, match=match):
            sequence.record(operation)
        with pytest.raises(RuntimeError, match=match):
            wrong.set_push_consts(constants)
    bits = np.array([1, 2, 3], FLOAT32).view(INT32)  # other types of the same size
    sequence.record(kp.OpAlgoDispatch(algorithm, bits)).record(kp.OpAlgoDispatch(none)).eval()
    assert tensor.data().tolist() == [1, 2, 3]


def test_set_push_consts(manager: kp.Manager) -> None:
    tensor = manager.tensor(np.zeros(3), kp.MemoryTypes.host)
    algorithm = manager.algorithm([tensor], PUSHED, (1, 1, 1), (), [1, 2, 3])
    assert algorithm.get_push_consts().tolist() == [1, 2, 3] and algorithm.get_spec_consts().size == 0
    sequence = manager.sequence().record(kp.OpAlgoDispatch(algorithm))
    algorithm.set_push_consts([4, 5, 6])
    algorithm.get_push_consts()[:] = 100
    given = np.array([4, 5, 6], FLOAT32)
    algorithm.set_push_consts(given)
    given[:] = 100
    sequence.eval()
    assert tensor.data().tolist() == [1, 2, 3]
    sequence.rerecord()
    sequence.eval()
    assert tensor.data().tolist() == [5, 7, 9]
    kept = manager.algorithm([tensor], PUSHED, (1, 1, 1), {4}, [1, 2, 3])
    assert kept.get_spec_consts().tolist() == [4]


def test_more_constants_than_the_code_declares(manager: kp.Manager) -> None:
    tensor = manager.tensor(np.zeros(3), kp.MemoryTypes.host)
    run(manager, manager.algorithm([tensor], ADD_ONE, (3, 1, 1), [1.0], np.arange(20, dtype=FLOAT32)))
    run(manager, manager.algorithm([tensor], PUSHED, (1, 1, 1), [], [1.0]))  # the others are zero
    assert tensor.data().tolist() == [2, 1, 1]
    with pytest.raises(RuntimeError, match="push_consts: 40000 bytes; the device takes"):
        manager.algorithm([tensor], ADD_ONE, (3, 1, 1), [], np.zeros(10000, FLOAT32))


# -- memory


def test_bindings_follow_the_order_of_the_list(manager: kp.Manager) -> None:
    a, b, c = (manager.tensor(data, kp.MemoryTypes.host) for data in ([2, 3], [5, 7], [0, 0]))
    image = manager.image([1], 1, 1, 1)
    run(manager, manager.algorithm((a, b, c, image, a), PRODUCT, (2, 0, 0)))  # more memory than the code uses
    assert c.data().tolist() == [10, 21]
    run(manager, manager.algorithm([a, a, c], PRODUCT))
    assert c.data().tolist() == [4, 9]
    run(manager, manager.algorithm(iter([b, a, a]), PRODUCT))
    assert a.data().tolist() == [10, 21]
    with pytest.raises(RuntimeError, match=r"tensors: the code uses C \(set 0, binding 2\), got 2 tensors"):
        manager.algorithm([a, b], PRODUCT)
    with pytest.raises(RuntimeError, match=r"tensors: B .* is a storage buffer, got a kp\.Image"):
        manager.algorithm([a, image, c], PRODUCT)


@pytest.mark.parametrize("tensors", [None, 3, "ab", [None], [3], [[1, 2]]])
def test_invalid_lists_of_memory_raise(manager: kp.Manager, tensors: Any) -> None:
    with pytest.raises(TypeError, match="tensors: expected"):
        manager.algorithm(tensors, ADD_ONE)
    with pytest.raises(TypeError, match="tensors: expected a list"):
        manager.algorithm(manager.tensor([1]), ADD_ONE)


def test_resources_other_than_buffers_and_images_raise(manager: kp.Manager) -> None:
    tensor = manager.tensor([1])
    uniform = """#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) uniform A { float a; };
layout(set = 0, binding = 1) buffer B { float b; };
void main() { b = a; }
"""
    with pytest.raises(RuntimeError, match="uniform buffer; an algorithm has storage buffers and images"):
        manager.algorithm([tensor, tensor], uniform)
    with pytest.raises(RuntimeError, match=r"set 1, binding 0\): an algorithm has only descriptor set 0"):
        manager.algorithm([tensor], ADD_ONE.replace("set = 0", "set = 1"))


def test_an_empty_algorithm(manager: kp.Manager) -> None:
    tensor = manager.tensor([1])
    for tensors, code in (([], b""), ([tensor], b""), ([tensor], ""), ([], ADD_ONE), ((), b"junk")):
        empty = manager.algorithm(tensors, code)
        assert not empty.is_init() and empty.get_mem_objects() == list(tensors)
        with pytest.raises(RuntimeError, match="algorithm: it has no tensors or no code"):
            manager.sequence().record(kp.OpAlgoDispatch(empty))
        empty.destroy()


def test_an_algorithm_without_arguments_is_empty_until_rebuild(manager: kp.Manager) -> None:
    tensor = manager.tensor([1, 2], kp.MemoryTypes.host)
    algorithm = manager.algorithm()
    assert not algorithm.is_init() and algorithm.get_mem_objects() == []
    with pytest.raises(RuntimeError, match="algorithm: it has no tensors or no code"):
        manager.sequence().record(kp.OpAlgoDispatch(algorithm))
    algorithm.rebuild([tensor], ADD_ONE)
    assert algorithm.is_init() and algorithm.get_workgroup() == (2, 1, 1)
    manager.sequence().eval(kp.OpAlgoDispatch(algorithm))
    assert tensor.data().tolist() == [2, 3]
    algorithm.rebuild()
    assert not algorithm.is_init()


def test_destroyed(manager: kp.Manager) -> None:
    tensor = manager.tensor([1], kp.MemoryTypes.host)
    algorithm = manager.algorithm([tensor], ADD_ONE)
    sequence = manager.sequence().record(kp.OpAlgoDispatch(algorithm))
    algorithm.destroy()
    algorithm.destroy()
    assert not algorithm.is_init() and algorithm.get_mem_objects() == [tensor]
    with pytest.raises(RuntimeError, match="destroyed, so there is nothing to dispatch"):
        manager.sequence().record(kp.OpAlgoDispatch(algorithm))
    sequence.eval()  # recorded before
    assert tensor.data().tolist() == [2]
    with pytest.raises(RuntimeError, match="destroyed"):
        sequence.rerecord()


def test_rebuild(manager: kp.Manager) -> None:
    a, b = manager.tensor([1, 2, 3], kp.MemoryTypes.host), manager.tensor([0], kp.MemoryTypes.host)
    algorithm = manager.algorithm([], b"")
    algorithm.rebuild([a], ADD_ONE)
    assert algorithm.is_init() and algorithm.get_workgroup() == (3, 1, 1)
    sequence = manager.sequence().record(kp.OpAlgoDispatch(algorithm))
    algorithm.rebuild([b], kp.compile_glsl(ADD_ONE), (1, 1, 1))
    assert algorithm.get_mem_objects() == [b]
    run(manager, algorithm)
    sequence.eval()  # as recorded
    assert a.data().tolist() == [2, 3, 4] and b.data().tolist() == [1]
    for code in (b"junk", PRODUCT):
        with pytest.raises(RuntimeError):
            algorithm.rebuild([a], code)
        assert algorithm.is_init() and algorithm.get_mem_objects() == [b]


# -- code


def test_the_same_code_as_glsl_and_as_bytes(manager: kp.Manager) -> None:
    tensor = manager.tensor([0], kp.MemoryTypes.host)
    code = kp.compile_glsl(ADD_ONE)
    assert isinstance(code, bytes) and code[:4] == b"\x03\x02\x23\x07"
    for each in (ADD_ONE, code, code + b"\1", code + b"\1\2\3"):
        run(manager, manager.algorithm([tensor], each))
    assert tensor.data().tolist() == [4]


@pytest.mark.parametrize("wrap", [bytearray, memoryview, list, lambda code: np.frombuffer(code, np.uint32)])
def test_code_must_be_bytes(manager: kp.Manager, wrap: Any) -> None:
    for code in (wrap(kp.compile_glsl(ADD_ONE)), None, 3, lambda: None):
        with pytest.raises(TypeError, match="spirv: expected the bytes of a SPIR-V module, GLSL text or"):
            manager.algorithm([manager.tensor([1])], code)


@pytest.mark.parametrize("source", ["hello", "#version 450\nvoid main() {", "#version 450\nvoid f() {}"])
def test_invalid_glsl_raises(manager: kp.Manager, source: str) -> None:
    with pytest.raises(RuntimeError, match="does not compile"):
        manager.algorithm([manager.tensor([1])], source)
    with pytest.raises(RuntimeError, match="the GLSL of 'mine' does not compile"):
        kp.compile_glsl(source, "mine")
    with pytest.raises(TypeError, match="source: expected GLSL text"):
        kp.compile_glsl(source.encode())  # type: ignore[arg-type]


WHOLE = """#version 450
layout(local_size_x = 4) in;
layout(constant_id = 0) const int turns = 3;
layout(push_constant) uniform Constants { float x; };
layout(set = 0, binding = 0) buffer A { float a[]; };
layout(set = 0, binding = 1, r32f) uniform image2D texels;
shared float near[4];
void main() {
    uint i = gl_GlobalInvocationID.x;
    near[gl_LocalInvocationID.x] = a[i];
    barrier();
    float sum = 0;
    for (int k = 0; k < turns; ++k) { sum += near[k % 4] * x; if (sum > 100) break; }
    a[i] = sum + imageLoad(texels, ivec2(0)).x;
}
"""


@pytest.fixture(scope="module")
def target() -> Any:
    """Return a Manager with memory for invalid code, and the words of valid code."""
    manager = kp.Manager()
    memory = [manager.tensor(np.zeros(64)), manager.image([0], 1, 1, 1)]
    words = np.frombuffer(kp.compile_glsl(WHOLE), np.uint32)
    return manager, memory, words


@hypothesis.settings(max_examples=40, deadline=None)
@hypothesis.given(code=strategies.binary(min_size=1, max_size=200), is_headed=strategies.booleans())
def test_random_bytes_raise(target: Any, code: bytes, is_headed: bool) -> None:
    manager, memory, words = target
    with pytest.raises(RuntimeError, match="spirv: "):
        manager.algorithm(memory, words[: 5 * is_headed].tobytes() + code)


@hypothesis.settings(max_examples=40, deadline=None)
@hypothesis.given(part=strategies.floats(0, 1, exclude_max=True))
def test_truncated_code_raises(target: Any, part: float) -> None:
    manager, memory, words = target
    code = words.tobytes()
    length = max(1, int(part * (len(code) - 4)))
    with pytest.raises(RuntimeError, match="spirv: "):
        manager.algorithm(memory, code[:length])


# A few in 10,000 use graphics features or invalid decorations, which the validation layer reports.
@hypothesis.settings(max_examples=80, deadline=None, derandomize=True)
@hypothesis.given(
    changes=strategies.lists(
        strategies.tuples(
            strategies.integers(0, 10**6),
            strategies.one_of(strategies.integers(0, 80), strategies.integers(0, 2**32 - 1)),
            strategies.sampled_from(["set", "flip", "take", "drop"]),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_changed_words_never_crash(target: Any, changes: Any) -> None:
    manager, memory, words = target
    words = words.copy()
    for position, value, how in changes:
        index = position % len(words)
        if how == "set":
            words[index] = value
        elif how == "flip":
            words[index] ^= np.uint32(1 << value % 32)
        elif how == "take":
            words[index] = words[value % len(words)]
        else:
            words = np.delete(words, index)
    try:
        manager.algorithm(memory, words.tobytes(), (1, 1, 1), [2], [1.0])
    except RuntimeError as error:
        assert str(error)
    # only tests that the driver does not crash
    native.take_messages()


def test_too_large_workgroup_sizes_raise(manager: kp.Manager) -> None:
    tensor = manager.tensor([1])
    fixed = ADD_ONE.replace("local_size_x = 1", "local_size_x = 1024, local_size_y = 64")
    with pytest.raises(RuntimeError, match=r"spirv: workgroups of \(1024, 64, 1\) invocations exceed"):
        manager.algorithm([tensor], fixed)
    chosen = ADD_ONE.replace("local_size_x = 1", "local_size_x_id = 0, local_size_y_id = 1")
    for size in ([100000, 1], [1, 2**30], [4096, 4096]):
        with pytest.raises(RuntimeError, match="exceed the limits of this device"):
            manager.algorithm([tensor], chosen, (1, 1, 1), size)
    for size in ([0, 1], [1, -1]):
        with pytest.raises(RuntimeError, match="spec_consts: a workgroup of"):
            manager.algorithm([tensor], chosen, (1, 1, 1), size)
    shared = """#version 450
layout(local_size_x = 1) in;
layout(constant_id = 0) const int size = 4;
layout(set = 0, binding = 0) buffer A { float a[]; };
shared float near[size];
void main() { near[0] = 7; barrier(); a[0] = near[0] + size; }
"""
    with pytest.raises(RuntimeError, match="its shared arrays take 40000000 bytes"):
        manager.algorithm([tensor], shared, (1, 1, 1), [10**7])
    host = manager.tensor(np.zeros(64), kp.MemoryTypes.host)
    run(manager, manager.algorithm([host], shared, (1, 1, 1), [9]))
    assert host.data()[0] == 16
    run(manager, manager.algorithm([host], chosen, (1, 1, 1), [64, 1]))
    assert host.data().tolist() == [17] + [1] * 63


def test_entry_points_other_than_main_raise(manager: kp.Manager) -> None:
    code = kp.compile_glsl(ADD_ONE).replace(b"main\0\0\0\0", b"fain\0\0\0\0")
    with pytest.raises(RuntimeError, match="main"):
        manager.algorithm([manager.tensor([1])], code)


# In the form of pyshader: version 1.3, memory model Simple, BufferBlock, no names.
ASSEMBLY = """
OpCapability Shader
OpMemoryModel Logical Simple
OpEntryPoint GLCompute %main "main" %index
OpExecutionMode %main LocalSize 1 1 1
OpDecorate %index BuiltIn GlobalInvocationId
OpDecorate %array ArrayStride 4
OpMemberDecorate %block 0 Offset 0
OpDecorate %block BufferBlock
OpDecorate %a DescriptorSet 0
OpDecorate %a Binding 0
OpDecorate %b DescriptorSet 0
OpDecorate %b Binding 1
%void = OpTypeVoid
%function = OpTypeFunction %void
%int = OpTypeInt 32 1
%int3 = OpTypeVector %int 3
%float = OpTypeFloat 32
%zero = OpConstant %int 0
%array = OpTypeRuntimeArray %float
%block = OpTypeStruct %array
%to_block = OpTypePointer Uniform %block
%to_float = OpTypePointer Uniform %float
%to_int3 = OpTypePointer Input %int3
%index = OpVariable %to_int3 Input
%a = OpVariable %to_block Uniform
%b = OpVariable %to_block Uniform
%main = OpFunction %void None %function
%start = OpLabel
%three = OpLoad %int3 %index
%i = OpCompositeExtract %int %three 0
%from = OpAccessChain %to_float %a %zero %i
%to = OpAccessChain %to_float %b %zero %i
%value = OpLoad %float %from
%square = OpFMul %float %value %value
OpStore %to %square
OpReturn
OpFunctionEnd
"""


@pytest.mark.skipif(shutil.which("spirv-as") is None, reason="there is no assembler for SPIR-V")
def test_code_in_the_form_of_pyshader(manager: kp.Manager, tmp_path: Path) -> None:
    (tmp_path / "square.spvasm").write_text(ASSEMBLY)
    subprocess.run(
        ["spirv-as", "--target-env", "spv1.3", "square.spvasm", "-o", "square.spv"], cwd=tmp_path, check=True
    )
    a, b = manager.tensor([1, 2, 3]), manager.tensor([0, 0, 0])
    algorithm = manager.algorithm([a, b], (tmp_path / "square.spv").read_bytes())
    sequence = manager.sequence().record(kp.OpSyncDevice([a, b])).record(kp.OpAlgoDispatch(algorithm))
    sequence.record(kp.OpSyncLocal([a, b])).eval()
    assert a.data().tolist() == [1, 2, 3] and b.data().tolist() == [1, 4, 9]


@pytest.mark.parametrize("minor", [0, 1, 2, 3])
def test_versions_of_spirv(manager: kp.Manager, monkeypatch: pytest.MonkeyPatch, minor: int) -> None:
    device = vd.get_context().device_infos[0]
    code = native.compile_glsl(PRODUCT, "", minor)
    a, b, out = (manager.tensor([1, 2, 3]) for _ in range(3))
    if minor < 3 or (device.version_major, device.version_minor) >= (1, 3):
        sequence = manager.sequence().record(kp.OpSyncDevice([a, b, out]))
        sequence.record(kp.OpAlgoDispatch(manager.algorithm([a, b, out], code)))
        sequence.record(kp.OpSyncLocal([a, b, out])).eval()
        assert [1, 4, 9] in [tensor.data().tolist() for tensor in (a, b, out)]
    monkeypatch.setattr(device, "version_minor", 2)
    if minor == 3:
        with pytest.raises(RuntimeError, match=r"SPIR-V 1.6 needs Vulkan 1.3, .* has 1.2; .*vulkan1.2"):
            manager.algorithm([a, b, out], code)
    else:
        manager.algorithm([a, b, out], code)


# -- traced kernels


@vd.shader("out.size")
def sized(out: Buff[f32], a: Buff[f32], scale: Var[f32], offset: Var[i32]) -> None:
    i = vc.global_invocation_id().x
    out[i] = a[i] * scale + offset


@vd.shader()
def unsized(out: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    out[i] += 1


@vd.shader(workgroups=2, local_size=4)
def grouped(out: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    out[i] += 1


def test_a_traced_kernel(manager: kp.Manager) -> None:
    out = manager.tensor(np.zeros(101), kp.MemoryTypes.host)
    a = manager.tensor(np.arange(101), kp.MemoryTypes.host)
    algorithm = manager.algorithm([out, a], sized, push_consts=[2.5, 3])
    assert algorithm.is_init()
    run(manager, algorithm)
    np.testing.assert_array_equal(out.data(), np.arange(101) * np.float32(2.5) + 3)
    run(manager, algorithm, [-1, 7])
    np.testing.assert_array_equal(out.data(), 7 - np.arange(101))
    sequence = manager.sequence().record(kp.OpAlgoDispatch(algorithm, [1, 0]))
    a.data()[:] = 5
    sequence.eval()
    assert set(out.data().tolist()) == {5}


def test_integers_of_a_traced_kernel_are_not_rounded(manager: kp.Manager) -> None:
    out = manager.tensor(np.zeros(4), kp.MemoryTypes.host)
    algorithm = manager.algorithm([out, out], sized, push_consts=[1, 2])
    for wrong in (2.5, np.inf, np.nan):
        with pytest.raises(
            RuntimeError, match=r"push_consts: .* is not an integer; the kernel declares int32"
        ):
            run(manager, algorithm, [1, wrong])
    run(manager, algorithm, [1.0, 3.0])
    assert out.data().tolist() == [3] * 4


def test_sizes_of_a_traced_kernel(manager: kp.Manager) -> None:
    for kernel, workgroup, count in (
        (unsized, (0, 0, 0), 64),
        (grouped, (0, 0, 0), 8),
        (grouped, (3, 0, 0), 12),
    ):
        out = manager.tensor(np.zeros(64), kp.MemoryTypes.host)
        algorithm = manager.algorithm([out], kernel, workgroup)
        run(manager, algorithm)
        assert out.data().tolist() == [1] * count + [0] * (64 - count)
    algorithm.set_workgroup((1, 1, 1))
    run(manager, algorithm)
    assert out.data().tolist() == [2] * 4 + [1] * 8 + [0] * 52
    # none are chosen again: the kernel's own size, as when the algorithm was made without
    algorithm.set_workgroup((0, 0, 0))
    run(manager, algorithm)
    assert out.data().tolist() == [3] * 4 + [2] * 4 + [1] * 4 + [0] * 52


def test_traced_kernels_that_do_not_match_raise(manager: kp.Manager) -> None:
    a, image = manager.tensor([1]), manager.image([1], 1, 1, 1)
    for tensors, spec, push, match in (
        ([a], (), [1, 2], "tensors: sized takes 2 buffers, got 1"),
        ([a, a, a], (), [1, 2], "tensors: sized takes 2 buffers, got 3"),
        ([a, a], (), [1], "push_consts: sized takes 2 numbers, got 1"),
        ([a, a], (), (), "push_consts: sized takes 2 numbers, got 0"),
        ([a, a], [1], [1, 2], "spec_consts: a traced kernel has none"),
        ([a, image], (), [1, 2], "tensors: a traced kernel takes tensors"),
    ):
        with pytest.raises(RuntimeError, match=match):
            manager.algorithm(tensors, sized, (0, 0, 0), spec, push)
