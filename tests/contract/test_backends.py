"""Backends of 0.1.0 that are not here: whoever asks for one learns it, and what to use instead."""

import subprocess
from collections.abc import Callable

import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.command_list import CommandList
from vkdispatch.base.sharing.cuda_link import can_link

RunPython = Callable[..., subprocess.CompletedProcess[str]]
SAID = "the '{}' backend is not part of this package, and Vulkan reaches the same device"


@pytest.mark.parametrize("name", ["cuda", "opencl"])
@pytest.mark.parametrize("by", ["argument", "variable"])
def test_asking_for_a_backend(run_python: RunPython, name: str, by: str) -> None:
    given = f"backend={name.upper()!r}" if by == "argument" else ""
    done = run_python(
        "import vkdispatch as vd\n"
        f"try: vd.initialize({given})\n"
        "except vd.BackendUnavailableError as error: print(error.backend_name, error, sep='\\n')\n"
        # another backend may be chosen then
        "vd.initialize(backend='dummy'); print(vd.get_backend(), vd.is_cuda(), vd.is_opencl())",
        **({"VKDISPATCH_BACKEND": name} if by == "variable" else {}),
    )
    assert not done.stderr
    asked, message, after = done.stdout.splitlines()
    assert (asked, after) == (name, "dummy False False")
    assert SAID.format(name) in message
    assert message.startswith("backend" if by == "argument" else "VKDISPATCH_BACKEND")


def test_without_asking_the_variable_is_named_where_a_device_is_needed(run_python: RunPython) -> None:
    done = run_python("import vkdispatch as vd; vd.Buffer(4, vd.float32)", VKDISPATCH_BACKEND="opencl")
    assert done.returncode and f"VKDISPATCH_BACKEND: {SAID.format('opencl')}" in done.stderr


def test_changing_to_a_backend_later() -> None:
    vd.initialize()
    with pytest.raises(RuntimeError, match=SAID.format("cuda")):
        vd.initialize(backend="cuda")


@pytest.mark.parametrize("backend", ["opencl", vc.CUDABackend(), vc.OpenCLBackend()])
def test_text_of_another_backend(backend: "str | vc.CodeGenBackend") -> None:
    vc.set_codegen_backend(backend)
    try:
        name = vc.get_codegen_backend().name

        @vd.shader(1)
        def kernel(a: vc.Buff[vc.f32]) -> None:  # type: ignore[valid-type]
            a[0] = 1.0
    finally:
        vc.set_codegen_backend(None)
    for use in (kernel.build, kernel.get_src, lambda: kernel(vd.Buffer(1, vd.float32))):
        with pytest.raises(RuntimeError, match=f"kernel: {SAID.format(name)}; call vc.set_codegen_backend"):
            use()


def test_features_of_the_cuda_backend() -> None:
    if not can_link(vd.get_context()):
        with pytest.raises(RuntimeError, match="from_cuda_array: CUDA cannot share memory of"):
            vd.from_cuda_array(obj=object())
    with pytest.raises(RuntimeError, match="cuda_graph_capture: a CUDA graph does not replay"):
        vd.cuda_graph_capture(cuda_stream=None)
    for what, use in (
        ("external_buffer", lambda: vd.Buffer((1,), vd.float32, external_buffer=object())),  # type: ignore[call-overload]
        ("cuda_stream", lambda: CommandList().submit(instance_count=1, cuda_stream=object())),
    ):
        with pytest.raises(RuntimeError, match=f"{what}: {SAID.format('cuda')}"):
            use()
