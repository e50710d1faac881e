"""The interface before 0.7: named sequences, `record_...`, `eval_...`, `eval_async_..._def`."""

import logging
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import vkdispatch.kompute as kp

from .kernels import ADD_ONE, PRODUCT

SUM = PRODUCT.replace("*", "+")


# Code blocks of the documentation of that version, unchanged.
DOCUMENTED = """
from kp import Manager

# We'll assume we have the shader data available
from my_spv_shader_data import mult_shader, sum_shader

mgr = Manager()

t1 = mgr.build_tensor([2,2,2])
t2 = mgr.build_tensor([1,2,3])
t3 = mgr.build_tensor([1,2,3])

# Create multiple separate sequences
sq_mult = mgr.create_sequence("SQ_MULT")
sq_sum = mgr.create_sequence("SQ_SUM")
sq_sync = mgr.create_sequence("SQ_SYNC")

# Initialize sq_mult
sq_mult.begin()
sq_mult.record_algo_data([t1, t2, t3], add_shader)
sq_mult.end()

sq_sum.begin()
sq_sum.record_algo_data([t3, t2, t1], sum_shader)
sq_sum.end()

sq_sync.begin()
sq_sync.record_tensor_sync_local([t1, t3])
sq_sync.end()

# Run multiple iterations
for i in range(10):
    sq_mult.eval()
    sq_sum.eval()

sq_sync.eval()

print(t1.data(), t2.data(), t3.data())
"""
LEVEL = """
import kp
kp.log_level(1)
"""


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Provide the modules that the documentation imports. Return the one with the shaders."""
    shaders: Any = ModuleType("my_spv_shader_data")
    shaders.mult_shader, shaders.sum_shader = kp.compile_glsl(PRODUCT), kp.compile_glsl(SUM)
    monkeypatch.setitem(sys.modules, "kp", kp)
    monkeypatch.setitem(sys.modules, "my_spv_shader_data", shaders)
    return shaders  # type: ignore[no-any-return]


def test_the_documented_program(modules: Any, capsys: pytest.CaptureFixture[str]) -> None:
    # the program uses add_shader for a shader that it imports as mult_shader
    exec(compile(DOCUMENTED, "documented", "exec"), {"add_shader": modules.mult_shader})
    t1, t2, t3 = np.array([2, 2, 2]), np.array([1, 2, 3]), np.array([1, 2, 3])
    for _ in range(10):
        t3 = t1 * t2
        t1 = t3 + t2
    shown = [np.array(each, np.float32) for each in (t1, t2, t3)]
    assert capsys.readouterr().out == " ".join(map(str, shown)) + "\n"


def test_the_documented_log_level(modules: Any) -> None:
    logger = logging.getLogger("kp")
    before = logger.level
    exec(compile(LEVEL, "documented", "exec"), {})
    assert logger.level == 10
    logger.setLevel(before)


# -- sequences by name


def test_named_sequences(manager: kp.Manager) -> None:
    one = manager.create_sequence("one")
    assert manager.get_create_sequence("one") is one
    assert manager.create_sequence("one") is not one  # the name still refers to the first one
    assert manager.get_create_sequence("one") is one
    other = manager.get_create_sequence("other")
    assert other is not one and manager.get_create_sequence("other") is other
    assert manager.create_sequence() is not manager.create_sequence(name="", queueIndex=0)
    with pytest.raises(TypeError, match="name: expected text"):
        manager.create_sequence(3)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="queue_index"):
        manager.create_sequence("far", queueIndex=99)
    with pytest.raises(RuntimeError, match="there is no sequence 'nobody'"):
        manager.eval_await(sequenceName="nobody", waitFor=0)
    with pytest.raises(RuntimeError, match="there is no sequence"):
        manager.eval_await_def()


def test_waiting_without_an_evaluation(manager: kp.Manager, caplog: pytest.LogCaptureFixture) -> None:
    tensor = manager.build_tensor([1])
    manager.eval_tensor_sync_local_def([tensor])
    manager.eval_await_def(waitFor=1)
    manager.eval_tensor_sync_local([tensor], "name")
    manager.eval_await("name")
    assert not caplog.records


def test_begin_and_end(manager: kp.Manager) -> None:
    sequence = manager.create_sequence("one")
    assert not sequence.is_recording()
    assert sequence.begin() is sequence and sequence.is_recording()
    sequence.begin()
    assert sequence.is_rec() and sequence.init() is None  # type: ignore[func-returns-value]
    assert sequence.end() is sequence and not sequence.is_recording() and not sequence.is_rec()
    sequence.eval()


def test_begin_drops_the_previous_recording(manager: kp.Manager) -> None:
    a, b = manager.build_tensor([1, 2]), manager.build_tensor([3, 4])
    sequence = manager.create_sequence().begin()
    sequence.record_tensor_copy([a, b])
    sequence.end().eval()
    assert b.data().tolist() == [1, 2]
    b.set_data([5, 6])
    sequence.begin().record_tensor_sync_device([b]).end().eval()  # without the host part of the copy
    assert b.data().tolist() == [5, 6]
    sequence.rerecord()
    sequence.eval()
    manager.eval_tensor_sync_local_def([b])
    assert b.data().tolist() == [5, 6]


def test_built_tensors_are_on_the_device(manager: kp.Manager) -> None:
    tensor = manager.build_tensor([1, 2, 3])
    tensor.data()[:] = 0
    manager.sequence().eval(kp.OpSyncLocal([tensor]))
    assert tensor.data().tolist() == [1, 2, 3]
    assert manager.build_tensor(data=[1], tensorType=kp.staging).tensor_type() is kp.TensorTypes.staging
    with pytest.raises(TypeError, match=r"tensorType: expected a member of kp.MemoryTypes, got 1"):
        manager.build_tensor([1], 1)  # type: ignore[arg-type]


def test_record_methods(manager: kp.Manager, tmp_path: Path) -> None:
    a, b, c = (manager.build_tensor(data) for data in ([2, 3], [5, 7], [0, 0]))
    d, e, f, g = (manager.build_tensor([0, 0]) for _ in range(4))
    (tmp_path / "sum.spv").write_bytes(kp.compile_glsl(SUM))
    (tmp_path / "sum.comp").write_text(SUM)
    a.data()[:] = [11, 13]
    sequence = manager.create_sequence("all").begin()
    for same in (
        sequence.record_tensor_sync_device([a]),
        sequence.record_algo_data([a, b, c], kp.compile_glsl(PRODUCT)),
        sequence.record_algo_data(tensors=[a, b, d], bytes=kp.compile_glsl(SUM), work_group=(1, 1, 1)),
        sequence.record_algo_file(tensors=[a, b, e], file_path=tmp_path / "sum.spv", work_group=(0, 0, 0)),
        sequence.record_algo_file([a, b, f], str(tmp_path / "sum.comp"), (2, 0, 0), [], []),
        sequence.record_algo_mult([a, a, g]),
        sequence.record_tensor_copy([a, b]),
        sequence.record_tensor_sync_local([b, c, d, e, f, g]),
    ):
        assert same is sequence
    sequence.end().eval()
    assert b.data().tolist() == [11, 13] and c.data().tolist() == [55, 91]
    assert d.data().tolist() == [16, 0]
    assert e.data().tolist() == f.data().tolist() == [16, 20] and g.data().tolist() == [121, 169]


# -- eval_<operation>

FORMS = ["eval_{}", "eval_{}_def", "eval_async_{}", "eval_async_{}_def"]


def evaluate(manager: kp.Manager, form: str, operation: str, *arguments: Any) -> None:
    """Call a method of the Manager, and wait for it."""
    is_named, is_async = not form.endswith("_def"), "async" in form
    tensors, *others = arguments
    method = getattr(manager, form.format(operation))
    assert method(tensors, *(["name"] if is_named else []), *others) is None
    if is_async:
        if is_named:
            assert manager.get_create_sequence("name").is_running()
            manager.eval_await("name")
            assert not manager.get_create_sequence("name").is_running()
        else:
            manager.eval_await_def(10**10)


@pytest.mark.parametrize("form", FORMS)
def test_eval_methods(manager: kp.Manager, form: str, tmp_path: Path) -> None:
    a, b, c = (manager.tensor(data) for data in ([2, 3], [5, 7], [0, 0]))
    evaluate(manager, form, "tensor_sync_device", [a, b, c])
    evaluate(manager, form, "algo_data", [a, b, c], kp.compile_glsl(PRODUCT))
    evaluate(manager, form, "tensor_sync_local", [c])
    assert c.data().tolist() == [10, 21]
    evaluate(manager, form, "algo_data", [a, b, c], list(kp.compile_glsl(SUM)), (1, 1, 1))
    evaluate(manager, form, "tensor_sync_local", [c])
    assert c.data().tolist() == [7, 21]
    (tmp_path / "sum").write_text(SUM)
    evaluate(manager, form, "algo_file", [a, b, c], tmp_path / "sum")
    evaluate(manager, form, "tensor_sync_local", [c])
    assert c.data().tolist() == [7, 10]
    evaluate(manager, form, "algo_mult", [a, a, c])
    evaluate(manager, form, "tensor_sync_local", [c])
    assert c.data().tolist() == [4, 9]
    evaluate(manager, form, "tensor_copy", [c, a, b])
    evaluate(manager, form, "tensor_sync_local", [a, b])
    assert a.data().tolist() == b.data().tolist() == [4, 9]
    evaluate(manager, form, "algo_lro", [a, b, c], SUM)
    assert c.data().tolist() == [8, 18]  # without another operation
    made = kp.Tensor([1, 2, 3])
    evaluate(manager, form, "tensor_create", [made])
    evaluate(manager, form, "algo_str", [made], ADD_ONE)
    evaluate(manager, form, "tensor_sync_local", [made])
    assert made.data().tolist() == [2, 3, 4]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("operation", ["algo_str", "algo_data"])
def test_shaders_in_any_form(manager: kp.Manager, form: str, operation: str) -> None:
    tensor = manager.build_tensor([0, 0])
    spirv = kp.compile_glsl(ADD_ONE)
    shaders: list[Any] = [
        *(ADD_ONE, list(ADD_ONE), ADD_ONE.encode(), list(ADD_ONE.encode())),
        *(spirv, bytearray(spirv), memoryview(spirv), list(spirv), spirv.decode("latin-1")),
        list(spirv.decode("latin-1")),
    ]
    for shader in shaders:
        evaluate(manager, form, operation, [tensor], shader)
    evaluate(manager, form, operation, [tensor], ADD_ONE, (1, 1, 1))
    evaluate(manager, form, "tensor_sync_local", [tensor])
    assert tensor.data().tolist() == [len(shaders) + 1, len(shaders)]


def test_left_right_out(manager: kp.Manager) -> None:
    a, b, c, short = (manager.build_tensor(data) for data in ([1, 2], [3, 4], [0, 0], [0]))
    sequence = manager.create_sequence().begin()
    sequence.record_algo_lro([a, b, c], kp.compile_glsl(SUM)).end().eval()
    assert c.data().tolist() == [4, 6]
    sequence.begin().record_algo_lro(tensors=[a, b, c], shader=PRODUCT, work_group=(1, 1, 1)).end().eval()
    assert c.data().tolist() == [3, 6]
    for wrong in ([a, b], [a, b, c, a], [a, b, short], [short, b, c]):
        with pytest.raises(RuntimeError, match=r"algo_lro: expected left, right and out|the code uses"):
            manager.eval_algo_lro_def(wrong, SUM)
    for call in (manager.eval_algo_lro_def, sequence.record_algo_lro):
        with pytest.raises(RuntimeError, match="left, right and out need a shader"):
            call([a, b, c])
    with pytest.raises(TypeError, match="shader: expected SPIR-V or GLSL"):
        manager.eval_algo_lro_def([a, b, c], 3)


def test_an_evaluation_replaces_the_operations_of_its_sequence(manager: kp.Manager) -> None:
    tensor = manager.build_tensor([0])
    for _ in range(3):
        manager.eval_algo_data([tensor], "name", ADD_ONE)
    manager.eval_tensor_sync_local([tensor], "name")
    manager.get_create_sequence("name").eval()
    assert tensor.data().tolist() == [3]


def test_invalid_calls_raise(manager: kp.Manager, tmp_path: Path) -> None:
    tensor = manager.tensor([1])
    for operation in ("tensor_sync_device", "tensor_sync_local", "tensor_copy", "algo_data", "algo_mult"):
        for form in FORMS:
            with pytest.raises(TypeError):
                getattr(manager, form.format(operation))()
        with pytest.raises(TypeError, match="sequenceName: expected the name of a sequence"):
            getattr(manager, f"eval_{operation}")([tensor])
        with pytest.raises(TypeError):
            getattr(manager, f"eval_{operation}_def")(tensor, tensor, 3)
    sequence = manager.sequence()
    for call in (manager.eval_algo_data_def, sequence.record_algo_data):
        for data in ([300], ["a"], None, 3):
            with pytest.raises(
                TypeError if data != ["a"] else RuntimeError, match=r"bytes: |does not compile"
            ):
                call([tensor], data)
        for neither in ([1, 2, 3], b"\xff" * 8):
            with pytest.raises(RuntimeError, match="bytes: neither a SPIR-V module nor GLSL text"):
                call([tensor], neither)
    (tmp_path / "neither").write_bytes(b"\xff\xfe\0")
    for call in (manager.eval_algo_file_def, sequence.record_algo_file):
        with pytest.raises(FileNotFoundError):
            call([tensor], tmp_path / "nothing")
        with pytest.raises(TypeError, match="file_path: expected the path"):
            call([tensor], 3)
        with pytest.raises(RuntimeError, match="neither a SPIR-V module nor GLSL text"):
            call([tensor], tmp_path / "neither")


def test_the_manager_keeps_only_named_sequences(manager: kp.Manager) -> None:
    sequence = manager.create_sequence("name")
    other = kp.Manager().create_sequence("name")
    assert other is not sequence and not other.is_init() and sequence.is_init()
    manager.destroy()
    assert not sequence.is_init()


def test_a_rejected_operation_leaves_the_named_sequences(manager: kp.Manager) -> None:
    a, b, c = manager.tensor([1, 2]), manager.tensor([0, 0]), manager.tensor([0])
    manager.eval_async_tensor_copy_def([a, b])
    for refused in (
        manager.eval_tensor_copy_def,
        manager.eval_async_tensor_copy_def,
        lambda memories: manager.eval_tensor_copy(memories, "named"),
        lambda memories: manager.eval_async_tensor_copy(memories, "named"),
    ):
        for wrong in ([a, c], [a]):
            with pytest.raises(RuntimeError, match="OpCopy"):
                refused(wrong)
    with pytest.raises(RuntimeError, match="no sequence 'named'"):
        manager.eval_await("named")
    manager.eval_tensor_sync_device_def([c])
    assert b.data().tolist() == [0, 0]
    manager.eval_await_def()
    assert b.data().tolist() == [1, 2]
