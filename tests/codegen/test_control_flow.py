"""Blocks, loops, conditions, and the state they leave behind."""

import threading

import pytest

import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.codegen.abbreviations import Buff, Const, f32, i32, u32, v3

from .tracing import compiled, statements, trace


def test_if_else_chain():
    def body(b, x):
        with vc.if_block(x > 3):
            b[0] = 1
        with vc.else_if_block(x > 2):
            b[0] = 2
        with vc.else_if_block(True):
            with vc.if_block(x == 0):
                vc.return_statement()
            with vc.else_block():
                b[0] = 4
        with vc.else_block():
            b[0] = 3

    assert statements(compiled(body, [Buff[f32], Const[f32]], ["b", "x"])) == [
        "if (PC.x > 3.0f) {", "buf0.data[0] = 1.0f;", "} else if (PC.x > 2.0f) {", "buf0.data[0] = 2.0f;",
        "} else if (true) {", "if (PC.x == 0.0f) {", "return;", "} else {", "buf0.data[0] = 4.0f;", "}",
        "} else {", "buf0.data[0] = 3.0f;", "}",
    ]  # fmt: skip


def test_blocks_opened_by_hand_give_the_same_code():
    def by_hand(b, x):
        vc.if_statement(x > 3)
        b[0] = 1
        vc.else_if_statement(x > 2)
        b[0] = 2
        vc.else_if_any(x > 1, x < -1)
        b[0] = 3
        vc.else_if_all(x > 0, x < 1)
        b[0] = 4
        vc.else_statement()
        b[0] = 5
        vc.end()
        vc.while_statement(b[0] < 9)
        vc.new_scope(comment="inside")
        b[0] += 1
        vc.end()
        vc.end()
        vc.if_statement(x > 7, "return;")
        vc.if_any(x > 1, x < 2)
        vc.end()
        vc.if_all(vc.logical_and(x > 1, True), vc.logical_or(x > 3, x < 1))
        vc.end()

    def with_blocks(b, x):
        with vc.if_block(x > 3):
            b[0] = 1
        with vc.else_if_block(x > 2):
            b[0] = 2
        with vc.else_if_block(vc.any(x > 1, x < -1)):
            b[0] = 3
        with vc.else_if_block(vc.all(x > 0, x < 1)):
            b[0] = 4
        with vc.else_block():
            b[0] = 5
        with vc.while_block(b[0] < 9), vc.scope_block(comment="inside"):
            b[0] += 1
        with vc.if_block(x > 7):
            vc.get_builder().append_contents("return;")
        with vc.if_block(vc.any(x > 1, x < 2)):
            pass
        with vc.if_block(vc.all(vc.all(x > 1, True), vc.any(x > 3, x < 1))):
            pass

    annotations = [Buff[f32], Const[f32]]
    assert compiled(by_hand, annotations) == compiled(with_blocks, annotations)


@pytest.mark.parametrize("condition", [1, 0.0, None, "x", [True]])
@pytest.mark.parametrize("block", ["if_block", "else_if_block", "while_block", "any", "all", "if_statement"])
def test_wrong_conditions_are_refused(block, condition):
    with pytest.raises(TypeError, match=r"condition.*test_control_flow\.py"):
        trace(lambda b: getattr(vc, block)(condition), [Buff[f32]])


def test_vector_conditions_are_refused():
    with pytest.raises(TypeError, match=r"vc\.all"):
        trace(lambda v: vc.if_block(v), [Const[v3]])


def test_numbers_are_true_unless_zero():
    def body(b, i, u):
        with vc.if_block(i):
            b[0] = 1
        with vc.if_block(vc.any(u, b[1])):
            b[0] = 2

    compiled(body, [Buff[f32], Const[i32], Const[u32]])


def test_any_and_all():
    def body(b, x):
        assert vc.any(x > 1, False).var_type is dt.bool_
        with vc.if_block(vc.all(vc.any(x > 1, x < 0), vc.any(), vc.all(), x > 1)):
            b[0] = 1

    text = compiled(body, [Buff[f32], Const[f32]], ["b", "x"])
    assert "if ((t0 || PC.x < 0.0f) && false && true && t0) {" in text


@pytest.mark.parametrize("call", [vc.else_block, lambda: vc.else_if_block(True)])
def test_else_without_if_is_refused(call):
    def alone(b):
        with call():
            b[0] = 1

    def after_a_store(b):
        with vc.if_block(b[0] > 1):
            b[0] = 1
        b[1] = 1
        with call():
            b[0] = 2

    def after_else(b):
        with vc.if_block(b[0] > 1):
            b[0] = 1
        with vc.else_block():
            b[0] = 1
        with call():
            b[0] = 2

    for body in (alone, after_a_store, after_else):
        with pytest.raises(RuntimeError, match=r"follow an if.*test_control_flow\.py"):
            trace(body, [Buff[f32]])


def test_end_without_a_block_is_refused():
    with pytest.raises(RuntimeError, match="no block is open"):
        trace(lambda b: vc.end(), [Buff[f32]])


def test_open_block_at_the_end_is_refused():
    with pytest.raises(RuntimeError, match=r"never closed \(test_control_flow\.py"):
        trace(lambda b: vc.if_statement(b[0] > 1), [Buff[f32]])


def test_return_with_a_value_is_refused():
    with pytest.raises(TypeError):
        trace(lambda b: vc.return_statement(1), [Buff[f32]])


def test_registers_end_with_their_block():
    def body(b):
        with vc.if_block(b[0] > 1):
            r = b[0].to_register("inner")
        b[1] = r

    with pytest.raises(RuntimeError, match=r"'inner' does not exist here.*test_control_flow\.py:\d+"):
        trace(body, [Buff[f32]])


def test_an_expression_that_a_block_used_is_checked_again_after_it():
    """The sum is right inside the block, where its register exists, and wrong behind it."""

    def body(b, x):
        with vc.if_block(x > 3):
            inner = vc.new_float_register(1.0, var_name="inner")
            total = inner + x
            b[0] = total
        b[1] = total

    with pytest.raises(RuntimeError, match="'inner' does not exist here"):
        compiled(body, [Buff[f32], Const[f32]], ["b", "x"])


def test_values_of_another_kernel_are_refused():
    kept = []
    trace(lambda b, x: kept.extend((b, x, b[0], x + 1)), [Buff[f32], Const[f32]])
    for value in kept[1:]:
        with pytest.raises(RuntimeError, match="another kernel"):
            trace(lambda b, value=value: b.__setitem__(0, value), [Buff[f32]])
    with pytest.raises(RuntimeError, match="another kernel"):
        trace(lambda b: kept[0].__setitem__(0, 1), [Buff[f32]])
    with pytest.raises(RuntimeError, match="another kernel"):
        trace(lambda b: kept[0].shape, [Buff[f32]])


# ---- state ---------------------------------------------------------------------------------------


def test_builder_is_clean_after_an_exception():
    def body(b):
        with vc.if_block(b[0] > 1), vc.while_block(b[0] > 2):
            raise KeyError("mine")

    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            trace(body, [Buff[f32]])
        with pytest.raises(RuntimeError):
            vc.get_builder()
    assert statements(trace(lambda b: b.__setitem__(0, 1), [Buff[f32]]).body) == ["buf0.data[0] = 1.0f;"]


def test_blocks_close_when_their_body_raises():
    def body(b):
        with pytest.raises(KeyError), vc.if_block(b[0] > 1):
            vc.if_statement(b[0] > 2)
            raise KeyError
        b[1] = 1

    assert statements(compiled(body, [Buff[f32]]))[-2:] == ["}", "buf0.data[1] = 1.0f;"]


def test_nested_tracing_is_refused():
    def body(b):
        with pytest.raises(RuntimeError, match="nested"):
            trace(lambda c: None, [Buff[f32]])
        b[0] = 1

    trace(body, [Buff[f32]])
    with pytest.raises(TypeError):
        vc.set_builder("builder")


def test_threads_trace_at_the_same_time():
    barrier = threading.Barrier(4)
    texts: dict[int, str] = {}
    builders: set[int] = set()

    def work(number):
        def body(b):
            barrier.wait()
            builders.add(id(vc.get_builder()))
            for i in range(200):
                b[i] = number
                with vc.if_block(b[i] > number):
                    b[i + 1] = b[i].to_register()
            barrier.wait()

        texts[number] = trace(body, [Buff[f32]]).body

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(builders) == 4
    for number in range(4):
        assert texts[number] == texts[0].replace("= 0.0f", f"= {number}.0f").replace(
            "> 0.0f", f"> {number}.0f"
        )


def test_context_and_description():
    with vc.shader_context(vc.ShaderFlags.NO_EXEC_BOUNDS) as context:
        (b,) = context.declare_input_arguments([Buff[f32]])
        with pytest.raises(RuntimeError, match="declared already"):
            context.declare_input_arguments([Buff[f32]])
        b[0] = 1
        assert context.builder is vc.get_builder()
        assert context.builder.contents == "    buf0.data[0] = 1.0f;\n"
    description = context.get_description()
    assert description is context.get_description("other") is context.shader_description
    assert description.name == "shader"
    assert description.exec_count_name is None
    assert description.pc_size == 0
    assert "exec_count" not in description.make_source(1, 1, 1)
    assert [binding.binding_type for binding in context.builder.binding_list] == [
        vc.BindingType.STORAGE_BUFFER
    ]
    context.builder.reset()
    assert context.builder.contents == ""


def test_settings_belong_to_a_thread():
    vc.set_shader_print_line_numbers(True)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(vc.get_shader_print_line_numbers()))
    thread.start()
    thread.join()
    assert seen == [False]
    assert vc.get_shader_print_line_numbers()
    vc.set_shader_print_line_numbers(False)
    vc.set_codegen_backend("glsl")
    assert vc.get_codegen_backend().name == "glsl"
    vc.set_codegen_backend(None)
    for name in ("cuda", "opencl"):
        vc.set_codegen_backend(name)
        try:
            assert vc.get_codegen_backend().name == name
            with vc.shader_context() as context:
                context.declare_input_arguments([vc.Buff[vc.f32]])
            description = context.get_description("other")
        finally:
            vc.set_codegen_backend(None)
        assert description.backend.name == name
        # whoever builds it for Vulkan expects a RuntimeError
        with pytest.raises(RuntimeError, match=name):
            description.make_source(1, 1, 1)
    with pytest.raises(ValueError, match="expected one of"):
        vc.set_codegen_backend("metal")
    with pytest.raises(TypeError):
        vc.set_codegen_backend(3)
