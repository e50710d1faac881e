import gc

import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, f32


def test_garbage_is_collected_again_after_a_trace() -> None:
    """While a kernel is traced the collector waits; afterwards it is as it was, whatever happened."""
    seen = []

    @vd.shader(1)
    def store(out: Buff[f32]):
        seen.append(gc.isenabled())
        out[0] = 1

    assert gc.isenabled()
    out = vd.Buffer(1, vd.float32)
    store(out)
    assert seen == [False] and gc.isenabled()

    with pytest.raises(ZeroDivisionError):

        @vd.shader(1)
        def fail(out: Buff[f32]):
            out[0] = 1 // 0

    assert gc.isenabled()


def test_traces_leave_a_disabled_collector_alone() -> None:
    gc.disable()
    try:
        with vc.shader_context():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
