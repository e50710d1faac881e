"""`python -OO`, which leaves out docstrings and asserts."""

import subprocess
from collections.abc import Callable
from pathlib import Path

RunPython = Callable[..., subprocess.CompletedProcess[str]]

PROGRAM = '''
import importlib, pkgutil
import numpy as np
import vkdispatch as vd
import vkdispatch.codegen as vc

assert False, "asserts are left out"

for module in pkgutil.walk_packages(vd.__path__, "vkdispatch."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
for name in vd.__all__:
    getattr(vd, name)

host = np.arange(24, dtype=np.float32).reshape(4, 6) % 7
x = vd.asbuffer(host)

@vd.shader("out.size")
def double(out: vc.Buff[vc.f32], x: vc.Buff[vc.f32]):
    """Double."""
    i = vc.global_invocation_id().x
    out[i] = x[i] * 2

@vd.map
def halved(value: vc.f32) -> vc.f32:
    """Halve."""
    return value / 2

@vd.scan(identity=0)
def add(a: vc.f32, b: vc.f32) -> vc.f32:
    """Add."""
    return a + b

def spectrum():
    data = vd.asbuffer(host.astype(np.complex64))
    vd.fft.fft(data)
    vd.vkfft.ifft(data)
    return data

out = vd.Buffer((4, 6), vd.float32)
double(out, x)
random = vd.random.Generator(5)
found = {
    "kernel": (out, 2 * host),
    "reduce": (vd.sum(halved(x), 0), host.sum(0) / 2),
    "scan": (vd.cumsum(x, 1), host.cumsum(1)),
    "scan of a function": (add(x, 1), host.cumsum(1)),
    "sorting": (vd.sort(x), np.sort(host)),
    "selection": (vd.unique(x), np.unique(host)),
    "rearrange": (vd.transpose(x), host.T),
    "matrices": (vd.matmul(x, x, transpose_b=True), host @ host.T),
    "random": (vd.sort(random.permutation(x.size)), np.arange(24)),
    "fft": (spectrum(), host),
}
for name, (got, wanted) in found.items():
    print(name, bool(np.allclose(got.read(0), wanted, atol=1e-4)))
try:
    vd.cumsum(x, 2)
except vd.AxisError as error:
    print(error)
'''


def test_everything_works_without_docstrings_and_asserts(run_python: RunPython, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = run_python(None, "-OO", str(program))
    assert done.stderr == ""
    *lines, last = done.stdout.splitlines()
    assert [line for line in lines if not line.endswith(" True")] == []
    assert len(lines) == 10
    assert last.startswith("axis: 2 is out of bounds")
