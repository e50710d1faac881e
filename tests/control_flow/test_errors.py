"""What plain Python cannot be on the GPU is an error that names the line, never another program."""

from __future__ import annotations

import colorsys
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.errors import VkDispatchError
from vkdispatch.codegen.abbreviations import Buff, i32, v4

SHARED = 3


def index() -> Any:
    return vc.global_invocation_id().x.to_dtype(i32)


def one_path(out: Any) -> None:
    if index() > 3:
        y = 5
    out[0] = y  # HERE


def two_types(out: Any) -> None:
    y: Any = 0
    if index() > 3:
        y = "text"
    out[0] = y  # HERE


def vector_or_number(out: Any) -> None:
    y = vc.to_vec3(1, 2, 3) if index() > 3 else 1.0  # HERE
    out[0] = y


def changed_list(out: Any) -> None:
    found: list[int] = []
    if index() > 3:  # HERE
        found.append(1)
    out[0] = len(found)


def changed_dict_in_a_loop(out: Any) -> None:
    found = {"a": 1}
    for k in range(index()):  # HERE
        found["a"] = k


class Box:
    def __init__(self) -> None:
        self.value: Any = 1


def changed_object(out: Any) -> None:
    box = Box()
    if index() > 3:  # HERE
        box.value = 2
    out[0] = box.value


@dataclasses.dataclass(slots=True)
class SlottedBox:
    value: Any = 1


def changed_slots(out: Any) -> None:
    state = {"box": [SlottedBox()]}
    if index() > 3:  # HERE
        state["box"][0].value = 2
    out[0] = state["box"][0].value


def changed_array(out: Any) -> None:
    table = np.zeros(4, np.int32)
    if index() > 3:  # HERE
        table[2] = 1
    out[0] = table[2]


def changed_global(out: Any) -> None:
    global SHARED
    while index() > SHARED:  # HERE
        SHARED = 7


def text_in_a_loop(out: Any) -> None:
    mode = "a"
    k = index()
    while k > 3:  # HERE
        mode = mode + "b"
        k -= 1
    out[0] = len(mode)


def only_in_a_loop(out: Any) -> None:
    k = index()
    while k > 3:
        last = k
        k -= 1
    out[0] = last  # HERE


def kernel_returns(out: Any) -> None:
    if index() > 3:
        return index()  # HERE
    return None


def kernel_returns_what_it_reads(out: Any) -> None:
    if SHARED > 30:
        return None
    return out[index()]  # HERE


def kernel_returns_a_number(out: Any) -> None:
    for k in range(2):
        if k:
            return k  # HERE
    return None


def sometimes_nothing(out: Any) -> None:
    def function(x: Any) -> Any:
        if x > 3:
            return 1
        return None  # HERE

    out[0] = function(index())


def returned_text(out: Any) -> None:
    def function(x: Any) -> Any:
        if x > 3:
            return "many"  # HERE
        return "few"

    out[0] = len(function(index()))


def chosen_text(out: Any) -> None:
    out[0] = len("many" if index() > 3 else "few")  # HERE


def break_out_of_a_block(out: Any) -> None:
    k = index()
    while k > 3:
        with vc.if_block(k == 5):
            break  # HERE
        k -= 1


def return_out_of_a_block(out: Any) -> None:
    with vc.if_block(index() > 3):
        return  # HERE
    out[0] = 1


def endless(out: Any) -> None:
    k = index()
    while True:  # HERE
        if k > 3:
            continue
        k += 1


def comprehension(out: Any) -> None:
    out[0] = sum([k for k in range(4) if index() > k])  # HERE


def list_of_range(out: Any) -> None:
    out[0] = len(list(range(index())))  # HERE


LOG: list[int] = []


def changed_global_list(out: Any) -> None:
    if index() > 3:  # HERE
        LOG.append(1)


def count_in_a_helper() -> None:
    global SHARED
    SHARED += 1


def changed_global_in_a_helper(out: Any) -> None:
    if index() > 3:  # HERE
        count_in_a_helper()


def changed_iterator(out: Any) -> None:
    numbers = iter([1, 2, 3])
    if index() > 3:  # HERE
        out[0] = next(numbers)


def changed_generator(out: Any) -> None:
    numbers = (k for k in range(9))
    for _ in range(index()):  # HERE
        out[0] = next(numbers)


def matched_by_type(out: Any) -> None:
    match index():  # HERE
        case int():
            out[0] = 1
        case _:
            out[0] = 2


def element_of_a_list(out: Any) -> None:
    if index() > 3:
        out[0] = [1, 2, 3][index()]  # HERE


def key_of_a_dict(out: Any) -> None:
    if index() > 3:
        out[0] = {1: 2}[index()]  # HERE


def compared_tuples(out: Any) -> None:
    if (index(), 1) < (2, 3):  # HERE
        out[0] = 1


def text_on_one_path(out: Any) -> None:
    mode = "a"
    for k in range(4):
        if index() > k:
            mode = "b"
    out[0] = mode == "b"  # HERE


def recursive_lambda(out: Any) -> None:
    f: Any = lambda n: 1 if n < 2 else n * f(n - 1)  # noqa: E731  # HERE
    out[0] = f(index())


def long_while(out: Any) -> None:
    k = 0
    while k < 10:  # HERE
        vc.memory_barrier()


def generator(out: Any) -> None:
    def numbers() -> Iterator[int]:
        if index() > 3:  # HERE
            yield 1

    for number in numbers():
        out[0] = number


def caught_outside(out: Any) -> None:
    try:
        if index() > 3:  # HERE
            raise ValueError
    except ValueError:
        out[0] = 1


def fibonacci(n: Any) -> Any:
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)  # HERE


def recursive(out: Any) -> None:
    out[0] = fibonacci(index())


def zero_step(out: Any) -> None:
    for k in range(0, index(), 0):  # HERE
        out[0] = k


def wide_range(out: Any) -> None:
    for k in range(index().to_dtype(vd.int64)):  # HERE
        out[0] = k


def unpacked_range(out: Any) -> None:
    for a, b in range(index()):  # HERE
        out[0] = a + b


def iterated(out: Any) -> None:
    for k in index():  # HERE
        out[0] = k


def break_past_finally(out: Any) -> None:
    for k in range(index()):
        try:
            if k > 3:
                break  # HERE
        finally:
            out[0] += 1


class Noted:
    def __enter__(self) -> None: ...

    def __exit__(self, *reason: object) -> None: ...


def return_past_exit(out: Any) -> None:
    with Noted():
        if index() > 3:
            return  # HERE
    out[0] = 1


def declared_in_a_manual_block(out: Any) -> None:
    k = 0
    while k < index():
        x = 0
        with vc.if_block(k > 1):
            x = k * 2
        out[x] = 1  # HERE
        k += 1


CASES: list[tuple[Callable[..., Any], type[Exception], str]] = [
    (one_path, NameError, "'y' has a value only on one path through the if"),
    (two_types, NameError, r"'y' is 'text' \(str\) on one path .* and 0 \(int\) on the other"),
    (vector_or_number, TypeError, "vec3 and the number 1.0 have no common type"),
    (changed_list, RuntimeError, "the list 'found' changes inside the if"),
    (changed_dict_in_a_loop, RuntimeError, "the dict 'found' changes inside the for loop"),
    (changed_object, RuntimeError, "the object 'box' changes"),
    (changed_slots, RuntimeError, "the object 'state' changes"),
    (changed_array, RuntimeError, "the ndarray 'table' changes"),
    (changed_global, RuntimeError, "the global variable 'SHARED' changes"),
    (text_in_a_loop, TypeError, r"'mode' is 'a' \(str\) before the while loop .* and 'ab' \(str\) in it"),
    (only_in_a_loop, NameError, "'last' gets its value inside the while loop"),
    (kernel_returns, TypeError, "a kernel returns no value"),
    (kernel_returns_what_it_reads, TypeError, "a kernel returns no value, got a GPU value of type int32"),
    (kernel_returns_a_number, TypeError, r"a kernel returns no value, got 1 \(int\)"),
    (sometimes_nothing, TypeError, "returns a value on some of the paths"),
    (returned_text, TypeError, "returns 'many'"),
    (chosen_text, TypeError, "decides between 'many'"),
    (break_out_of_a_block, RuntimeError, "break: it would leave the if block"),
    (return_out_of_a_block, RuntimeError, "return: it would leave the if block"),
    (endless, RuntimeError, "never ends"),
    (comprehension, TypeError, "the if of a comprehension is decided while"),
    (list_of_range, RuntimeError, "only be looped over by a for statement"),
    (changed_global_list, RuntimeError, "the list 'LOG' changes inside the if"),
    (changed_global_in_a_helper, RuntimeError, "the global variable 'SHARED' changes inside the if"),
    (changed_iterator, RuntimeError, "the list_iterator 'numbers' changes"),
    (changed_generator, RuntimeError, "the generator 'numbers' changes"),
    (matched_by_type, TypeError, "a match by other patterns"),
    (element_of_a_list, TypeError, "Python cannot choose an element of a list"),
    (key_of_a_dict, TypeError, "a GPU value has no hash"),
    (compared_tuples, ValueError, "comparisons of whole tuples"),
    (text_on_one_path, NameError, r"'mode' is 'b' \(str\) on one path through the if"),
    (recursive_lambda, RuntimeError, "call one another too deeply"),
    (long_while, RuntimeError, "has taken 65536 rounds while the kernel is traced"),
    (generator, ValueError, "'numbers' is a generator"),
    (caught_outside, RuntimeError, "was caught outside of it"),
    (recursive, RuntimeError, "calls itself as often as the GPU decides"),
    (zero_step, ValueError, "step must not be zero"),
    (wide_range, TypeError, "int64, but loops of the GPU count in 32 bits"),
    (unpacked_range, ValueError, "one plain variable"),
    (iterated, TypeError, "scalar"),
    (break_past_finally, RuntimeError, "break: the GPU decides whether it leaves a try with `finally`"),
    (return_past_exit, RuntimeError, "return: the GPU decides whether it leaves"),
    (declared_in_a_manual_block, RuntimeError, "exist"),
]


def trace(function: Callable[..., Any], **options: Any) -> Any:
    return vd.shader(1, arg_type_annotations=[Buff[i32]], arg_names=["out"], **options)(function)


def marked_line(function: Callable[..., Any]) -> int:
    import inspect

    module = inspect.getmodule(function)
    lines, first = inspect.getsourcelines(fibonacci if function is recursive else function)
    assert module is not None
    return first + next(number for number, line in enumerate(lines) if "# HERE" in line)


@pytest.mark.parametrize(
    ("function", "kind", "message"), CASES, ids=lambda case: getattr(case, "__name__", "")
)
def test_error_names_the_line(function: Callable[..., Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        trace(function)
    assert isinstance(caught.value, VkDispatchError)
    assert f"(test_errors.py:{marked_line(function)})" in str(caught.value)
    # the thread is free for other kernels
    trace(lambda out: None)


def test_component_of_a_carried_variable_cannot_be_assigned() -> None:
    def kernel(out: Buff[v4]) -> None:
        v = out[0]
        for _ in range(index()):
            v.x = 1
            v = v * 2

    with pytest.raises(ValueError, match=r"assign to the variable itself.*\(test_errors\.py"):
        vd.shader(1)(kernel)


def needs_rewriting(out: Any) -> None:
    if index() > 3:
        out[0] = 1


def test_kernel_with_a_return_value_is_refused() -> None:
    def nothing(out: Any) -> Any:
        out[0] = 1
        return None

    def bare(out: Any) -> None:
        if SHARED > 0:
            return
        out[0] = 1

    trace(nothing)
    trace(bare, rewrite=False)
    # the value of a lambda is its only statement
    trace(lambda out: vc.atomic_add(out[0], 1))
    with pytest.raises(TypeError, match=r"returns no value.*\(test_errors\.py"):
        trace(lambda out: out[0] + 1)
    with pytest.raises(TypeError, match=r"returns no value.*\(test_errors\.py"):
        trace(kernel_returns_what_it_reads, rewrite=False)


def test_map_with_a_wrong_return_type_is_refused() -> None:
    def trace_map(mapping: Any) -> None:
        with vc.shader_context() as context:
            mapping.callback(*context.declare_input_arguments([Buff[i32]]))

    @vd.map
    def silent(x: Buff[i32]) -> i32:
        x[0] = 1

    @vd.map
    def undeclared(x: Buff[i32]):
        return x[0]

    with pytest.raises(ValueError, match="'silent' must return a int32, got None"):
        trace_map(silent)
    with pytest.raises(ValueError, match="'undeclared' returns a value, but has no return annotation"):
        trace_map(undeclared)


def test_exception_raised_by_the_kernel() -> None:
    def kernel(out: Buff[i32]) -> None:
        if index() > 3:
            raise KeyError("no such thing")

    with pytest.raises(KeyError, match="no such thing") as caught:
        vd.shader(1)(kernel)
    assert "code that the GPU decides about (test_errors.py" in caught.value.__notes__[0]


def test_generator_kernels_are_refused() -> None:
    def generator(out: Buff[i32]) -> Iterator[int]:
        out[0] = 1
        yield 1

    async def coroutine(out: Buff[i32]) -> None:
        out[0] = 1

    for function in (generator, coroutine):
        for rewrite in (True, False):
            with pytest.raises(TypeError, match="a kernel is a plain function"):
                vd.shader(1, rewrite=rewrite)(function)


def test_rewriting_can_be_turned_off() -> None:
    with pytest.raises(ValueError, match=r"rewrite=False.*\(test_errors\.py"):
        trace(needs_rewriting, rewrite=False)
    trace(needs_rewriting)


def test_function_without_source_explains_the_error() -> None:
    names: dict[str, Any] = {"index": index}
    exec("def kernel(out):\n    if index() > 3:\n        out[0] = 1\n", names)
    with pytest.raises(ValueError, match="the source of 'kernel' was not found"):
        trace(names["kernel"])
    exec("def simple(out):\n    for k in range(3):\n        out[k] = index() if k else 7\n", names)
    trace(names["simple"])


def test_edited_source_file_is_not_used(tmp_path: Any) -> None:
    import importlib.util

    path = tmp_path / "edited.py"
    text = "def kernel(out, index):\n    if index() > 3:\n        out[0] = 1\n"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("edited", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path.write_text(text.replace("> 3", "> 99"))
    with pytest.raises(ValueError, match="edited since"):
        trace(lambda out: module.kernel(out, index))


def test_a_recursion_that_ends_in_another_file_names_the_kernels_line(tmp_path: Any) -> None:
    # IPython looks for its shell where a place is described, and may be what runs out of frames
    path = tmp_path / "shell.py"
    path.write_text("def get_ipython():\n    raise RecursionError\n")
    shell: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), shell)

    def kernel(out: Any) -> None:
        def endless(n: Any) -> Any:
            if len(depth) > 5:
                shell["get_ipython"]()
            depth.append(n)
            return endless(n)

        out[0] = endless(1)

    depth: list[int] = []
    with pytest.raises(RuntimeError, match="call one another too deeply") as caught:
        trace(kernel)
    assert 'shell["get_ipython"]()' in str(caught.value)


def test_what_the_standard_library_computes_is_at_the_users_line() -> None:
    def kernel(out: Any) -> None:
        out[0] = colorsys.rgb_to_hls(index(), 1, 2)[0]  # HERE

    with pytest.raises(VkDispatchError) as caught:
        trace(kernel)
    assert "# HERE" in str(caught.value)
    assert "(test_errors.py:" in str(caught.value)


def test_a_signature_that_does_not_fit_names_the_function() -> None:
    at = r"\(test_errors\.py:\d+\): argument "
    with pytest.raises(ValueError, match=f"^scaled {at}'n' has no annotation"):

        @vd.shader("x.size")
        def scaled(x: Buff[i32], n) -> None:  # type: ignore[no-untyped-def]
            x[0] = n

    with pytest.raises(ValueError, match=rf"^scaled {at}\*rest"):

        @vd.shader("x.size")
        def scaled(x: Buff[i32], *rest: Any) -> None:
            x[0] = 1

    with pytest.raises(TypeError, match=f"^scaled {at}'n': the annotation"):

        @vd.shader("x.size")
        def scaled(x: Buff[i32], n: "Nothing") -> None:  # type: ignore[name-defined]  # noqa: F821, UP037
            x[0] = n

    with pytest.raises(ValueError, match=f"^mapped {at}'x' has no annotation"):

        @vd.map
        def mapped(x):  # type: ignore[no-untyped-def]
            return x

    with pytest.raises(TypeError, match=f"^mapped {at}'x': expected an annotation"):

        @vd.map
        def mapped(x: int) -> i32:
            return x
