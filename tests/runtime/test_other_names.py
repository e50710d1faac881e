"""Names of other libraries: errors say what is called so here, and the advice works."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch.numpy as vnp
from vkdispatch.base import IN_CODEGEN, IN_PACKAGE


@pytest.mark.parametrize(("module", "advice"), [(vd, IN_PACKAGE), (vc, IN_CODEGEN)], ids=["vd", "vc"])
def test_names_with_advice_are_missing(module: Any, advice: dict[str, str]) -> None:
    for name, text in advice.items():
        with pytest.raises(AttributeError) as caught:
            getattr(module, name)
        assert text in str(caught.value) and caught.value.name == name
        assert not hasattr(module, name) and name not in dir(module)


def test_advice_names_what_exists() -> None:
    for text in (*IN_PACKAGE.values(), *IN_CODEGEN.values()):
        for word in text.replace("(", " ").replace(",", " ").replace(";", " ").split():
            if word.startswith("vc.random."):
                assert hasattr(vc.random, word[10:])
            elif word.startswith(("vc.", "vd.")):
                assert hasattr({"vc": vc, "vd": vd}[word[:2]], word[3:]), word


def test_types_are_not_called() -> None:
    for kind in (vd.vec3, vd.float32, vd.bool_):
        with pytest.raises(TypeError, match=rf"vc.to_dtype\(vd.{kind.__name__}, ...\) makes"):
            kind(1, 2, 3)  # type: ignore[call-arg]


@pytest.fixture
def buf() -> Any:
    return vd.asbuffer(np.arange(6, dtype=np.float32).reshape(2, 3))


def test_elements_of_buffers_on_the_host(buf: Any) -> None:
    with pytest.raises(TypeError, match=r"buf.read\(0\) .* vkdispatch.numpy.asarray\(buf\)"):
        buf[0, 1]
    with pytest.raises(
        TypeError, match=r"buf.write\(array\) .* vkdispatch.numpy.asarray\(buf\)\[...\] = value"
    ):
        buf[:] = 0
    vnp.asarray(buf)[0] = 7  # as the message says
    assert buf.read(0).tolist() == [[7, 7, 7], [3, 4, 5]]


def test_arithmetic_of_buffers(buf: Any) -> None:
    operations = [lambda: buf + 1, lambda: 2 * buf, lambda: buf @ buf, lambda: buf**2, lambda: buf < 3]
    for operation in operations:
        with pytest.raises(TypeError, match=r"buffers have no operators; use vkdispatch\.numpy\.asarray"):
            operation()


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("numpy", "buf.read(0)"),
        ("dtype", "buf.var_type"),
        ("fill", "vkdispatch.numpy.asarray(buf)"),
        ("sum", "vd.sum(buf)"),
        ("copy", "copy.copy(buf)"),
    ],
)
def test_attributes_that_buffers_lack(buf: Any, name: str, advice: str) -> None:
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'; ") as caught:
        getattr(buf, name)
    assert advice in str(caught.value)
    assert not hasattr(buf, name) and name not in dir(buf)
