"""Modules of vkdispatch 0.1.0, and what the package exports."""

from __future__ import annotations

from importlib import import_module

import pytest

import vkdispatch as vd


@pytest.mark.parametrize("name", ["functions", "shader_factories", "src_functions"])
def test_modules_of_0_1_0_have_the_functions_of_the_package(name: str) -> None:
    module = import_module(f"vkdispatch.fft.{name}")
    public = [each for each in module.__all__ if each != "ensure_supported_complex_precision"]
    assert public
    for each in public:
        assert getattr(module, each) is getattr(vd.fft, each)


def test_the_package_exports_each_name_once() -> None:
    assert len(set(vd.fft.__all__)) == len(vd.fft.__all__)
    assert all(hasattr(vd.fft, name) for name in vd.fft.__all__)
    assert {name for name in dir(vd.fft) if not name.startswith("__")} == set(vd.fft.__all__)


def test_generated_functions_have_their_names() -> None:
    for name in ("dct", "idct", "dst", "idst", "dctn", "idctn", "dstn", "idstn", "fft_print_src"):
        function = getattr(vd.fft, name)
        assert function.__name__ == function.__qualname__ == name and function.__doc__
    with pytest.raises(TypeError, match=r"idstn\(\) got an unexpected keyword argument 'axis'"):
        vd.fft.idstn(vd.Buffer((4,), vd.float32), axis=0)  # type: ignore[call-arg]
