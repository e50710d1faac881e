"""The model vkdispatch: Python bodies that are traced to kernels."""

from __future__ import annotations

import linecache
from pathlib import Path

import numpy as np
import pytest

import vkdispatch as vd
from vkdispatch.orders import Accel, Order, OrderBuildError


def test_control_flow_and_names_in_scope() -> None:
    text = '''
    set_argnames(("x", "limit"), ("y", "count"))
    STEP = 3

    [vkdispatch]
    # a comment, less indented

    def collatz(start):
        """How many steps it takes to get to 1."""
        n, steps = vc.new_int_register(start), vc.new_register(i32, 0)
        while n > 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = STEP * n + 1
            steps += 1
        return steps

    i = vc.global_invocation_id().x
    if i >= x.size:
        return
    y[i] = collatz(x[i])
    if y[i] > limit:
        vc.atomic_add(count[0], 1)
    assert isinstance(np.pi, float) and vd.float32 is f32
    '''

    def steps(n: int) -> int:
        count = 0
        while n > 1:
            n, count = (n // 2 if n % 2 == 0 else 3 * n + 1), count + 1
        return count

    x, y, count = np.arange(1, 61, dtype=np.int32), np.zeros(60, np.int32), np.zeros((), np.int32)
    with Accel(x, np.int32(50), Order(text), y, count) as accel:
        accel.run(32, 2)
    assert y.tolist() == [steps(n) for n in range(1, 61)]
    assert count == (y > 50).sum()


def test_shared_memory_of_a_team() -> None:
    text = """
    set_argnames("x", "sums")
    [vkdispatch]
    me = vc.local_invocation_id().x
    mine = vc.shared_buffer(f32, 8)
    mine[me] = x[vc.workgroup_id().x, me]
    vc.barrier()
    if me == 0:
        sums[vc.workgroup_id().x] = sum(mine[k] for k in range(8))
    """
    x = np.random.default_rng(0).integers(0, 99, (5, 8)).astype(np.float32)
    sums = np.zeros(5, np.float32)
    with Accel(x, Order(text), sums) as accel:
        accel.run(8, 5)
    np.testing.assert_array_equal(sums, x.sum(1))


@pytest.mark.parametrize(
    ("body", "line", "said"),
    [
        ("    y[0] = foo", 4, "NameError: name 'foo' is not defined"),
        ("i = vc.global_invocation_id().x\nif i >\n  3", 5, "SyntaxError: invalid syntax"),
        ("  i = 0\n y[i] = 1", 5, "IndentationError: unindent"),
        ("\n\ny[0] = 1 / 0", 6, "ZeroDivisionError: division by zero"),
        ("import math\ny[0] = math.sqrt('a')", 5, "TypeError: must be real number"),
    ],
)
def test_python_errors_show_lines_of_the_order(body: str, line: int, said: str, tmp_path: Path) -> None:
    text = f'set_argnames("x", "y")\n[vkdispatch:\n]\n{body}\n[cpp: enable=False]\n'
    path = tmp_path / "task.order"
    path.write_text(text)
    x, y = np.zeros(3, np.float32), np.zeros(3, np.float32)
    for order, label in ((Order(text), "<order>"), (Order(path), str(path))):
        with pytest.raises(OrderBuildError) as caught:
            Accel(x, order, y)
        message = caught.value.attempts[0].message
        assert message.startswith(f"{label}:{line}: {said}"), message
        assert message.endswith(f"\n    {text.splitlines()[line - 1].strip()}")


@pytest.mark.parametrize("indentation", ["", "    "])
def test_tracing_errors_have_a_caret(indentation: str, tmp_path: Path) -> None:
    lines = ["i = vc.global_invocation_id().x", "", "y[i] = x[i] + x[i, 1, 2, 3]"]
    text = 'set_argnames("x", "y")\n[vkdispatch]\n' + "".join(f"{indentation}{line}\n" for line in lines)
    path = tmp_path / "task.order"
    path.write_text(text)
    x, y = np.zeros(3, np.float32), np.zeros(3, np.float32)
    for order, label in ((Order(text), "<order>"), (Order(path), "task.order")):
        for _ in range(2):
            with pytest.raises(OrderBuildError) as caught:
                Accel(x, order, y)
            message = caught.value.attempts[0].message
            assert message == (
                f"a buffer takes one to three indices, got 4 ({label}:5)\n"
                f"    {lines[2]}\n    {' ' * lines[2].index('x[i, 1')}^^^^^^^^^^^^^"
            )
            linecache.checkcache()  # as tracebacks do: the lines are kept


def test_the_option_check() -> None:
    text = """
    set_argnames("x", "y")
    [vkdispatch: check={"bounds"}]
        i = vc.global_invocation_id().x
        y[i] = x[i + 1]
    """
    x, y = vd.asbuffer(np.arange(4, dtype=np.float32)), np.zeros(3, np.float32)
    accel = Accel(x, Order(text), y)
    accel.run(3)
    accel.stop()
    assert y.tolist() == [1, 2, 3]
    with pytest.raises(vd.BoundsError, match=r"<order>:5"):
        accel.run(4)
    accel.stop()
    with pytest.raises(OrderBuildError, match="check"):
        Accel(x, Order("[vkdispatch: check='no such']\n"), y)


def test_other_invalid_uses_raise() -> None:
    out = np.zeros(3, np.float32)
    with pytest.raises(OrderBuildError, match="argument's name lambda is a keyword of Python"):
        Accel(Order('set_argnames((), "lambda")\n[vkdispatch]\n'), out)
    with pytest.raises(OrderBuildError, match="buffers have at most 3"):
        Accel(Order("[vkdispatch]\n"), np.zeros((1, 1, 1, 1)))
    with pytest.raises(ValueError, match="there is no option 'chekc'; there are enable, compile, check"):
        Accel(Order("[vkdispatch: chekc=True]\n"), out)
    with pytest.raises(vd.UsageError, match="destroyed"):
        gone = vd.asbuffer(out)
        gone.destroy()
        Accel(Order("[vkdispatch]\naccelpy_out0[0] = 1\n"), gone).run()
    for body in ("x[0] = 1", "x[0] += y[0]", "vc.atomic_add(x[0], 1)"):
        with pytest.raises(OrderBuildError, match="the body writes to x, an input"):
            Accel(out, Order(f'set_argnames("x", "y")\n[vkdispatch]\n{body}\n'), out)
    # an empty body has no effect
    for body in ("", "\n  # nothing\n\n"):
        accel = Accel(Order(f"[vkdispatch]\n{body}"), out)
        accel.run(3)
        accel.stop()
    assert not out.any()


def test_nothing_is_traced_again(monkeypatch: pytest.MonkeyPatch) -> None:
    order = "[vkdispatch]\ni = vc.global_invocation_id().x\naccelpy_out0[i] = accelpy_in0[i] + 3\n"
    for size in (5, 7):
        x, y = np.arange(size, dtype=np.float32), np.zeros(size, np.float32)
        with Accel(x, Order(order), y) as accel:
            accel.run(size)
        np.testing.assert_array_equal(y, x + 3)
        monkeypatch.setattr("vkdispatch.orders.models.engine._trace", None)
