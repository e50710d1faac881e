"""`dir()` and completion show what is documented, and `repr` says in one line what an object is and where."""

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch.kompute as kp
from vkdispatch.codegen.abbreviations import Buff, Const, f32

DOCS = Path(__file__).resolve().parents[2] / "docs"
MODULES = (vd, vc, kp, vd.fft, vd.random, vd.reduce, vd.orders, vd.vkfft)


@vd.shader("data.size")
def scale(data: Buff[f32], factor: Const[f32]) -> None:
    i = vc.global_invocation_id().x
    data[i] = data[i] * factor


@vd.map
def shifted(x: f32, by: Const[f32], table: Buff[f32]) -> f32:
    return x + by + table[0]


def public(thing: object) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("__")}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_dir_of_modules_lists_public_names(module: ModuleType) -> None:
    named = {name for name in module.__all__ if not name.startswith("__")}
    if module is vd:
        named = {*vd._HOMES, *vd._DOCUMENTED}
    assert public(module) == named
    text = "".join(page.read_text() for page in DOCS.rglob("*.rst"))
    modules = {name for name in named if isinstance(getattr(module, name), ModuleType)}
    assert [name for name in modules if not re.search(rf"(vkdispatch|v[dcr]|fft)\.{name}\b", text)] == []


def make_objects() -> dict[str, Any]:
    data = vd.asbuffer(np.ones(4, np.float32))
    graph = vd.CommandGraph()
    scale(data, 2.0, graph=graph)
    image = vd.Image2D((4, 8), vd.float32)
    future = data.read_async()
    future.wait()
    return {
        "buffer": data,
        "graph": graph,
        "context": data.context,
        "kernel": scale,
        "image": image,
        "sampler": image.sample(),
        "map": shifted,
        "mapped": shifted(data, 1, data),
        "output_map": shifted(1, data),
        "future": future,
    }


# Some of what each must show, and internals that it has had.
SHOWN = {
    "buffer": "shape size var_type mem_size context read write read_async write_range destroy destroyed",
    "graph": "submit submit_any bind_var set_var reset length optimize destroy context",
    "context": "close closed device_infos queue_count subgroup_size max_shared_memory make_current",
    "kernel": "name build get_src interpret autotune exec_size ready source",
    "image": "shape format sample read write generate_mipmaps mip_levels destroy",
    "sampler": "image settings destroy",
    "map": "name return_type mapping_function",
    "mapped": "shape size var_type mapping",
    "output_map": "mapping arguments",
    "future": "done wait result",
}
# what 0.1.0 had is still there, and so is what others of our layers use
HIDDEN = {
    *(
        "children_dict",
        "parents",
        "register_parent",
        "clear_parents",
        "require_alive",
        "handles_dict",
        "kept",
    ),
    *("require_usable", "of_memory", "recording_together"),
    *("truncate", "pc_builder", "internal", "owns_memory"),
}


def test_dir_lists_documented_names() -> None:
    for name, thing in make_objects().items():
        shown = public(thing)
        assert set(SHOWN[name].split()) <= shown, name
        assert not shown & HIDDEN, name
        assert not [each for each in shown if each.startswith("_")], name
        missing = [each for each in shown if not hasattr(thing, each)]
        assert missing == [], name


def test_hidden_members_still_work() -> None:
    data = make_objects()["buffer"]
    assert data.parents == {} and len(data.children_dict) == 0 and data.is_external is False
    assert public(type(data)) > {"read", "children_dict"}  # classes are shown whole


def test_repr_is_one_line_with_kind_and_device() -> None:
    things = make_objects()
    device = things["context"].device_infos[0].device_name
    for name in ("graph", "context", "image", "sampler"):
        text = repr(things[name])
        assert device in text and "\n" not in text and " at 0x" not in text
    assert "1 command, on" in repr(things["graph"]) and "(4, 8)" in repr(things["image"])
    things["graph"].bind_var("speed")
    assert "1 command, variable 'speed'" in repr(things["graph"])
    assert repr(shifted) == "<map 'shifted': (float32, Const[float32], Buff[float32]) -> float32>"
    assert repr(things["output_map"]) == "<'shifted' for an output: 2 arguments beyond the value>"


def test_repr_of_destroyed_objects() -> None:
    with vd.use_context(vd.Context([0], [[0]])) as context:
        things = make_objects()
        things["image"].destroy()
        things["graph"].destroy()
        assert "destroyed" in repr(things["image"]) and "destroyed" in repr(things["sampler"])
        assert "destroyed" in repr(things["graph"])
        context.close()
    for thing in things.values():
        assert repr(thing)
    assert (
        "closed" in repr(context) and "closed" in repr(things["graph"]) and "done" in repr(things["future"])
    )


class _Printer:
    written = ""

    def text(self, written: str) -> None:
        self.written += written


def test_notebooks_show_kernels_and_devices_in_a_line() -> None:
    make_objects()
    vd.queue_wait_idle()
    scale.build()
    for thing, parts in (
        (scale, ("scale(data, factor)", "test_listing.py:", "exec_size='data.size'", "built for")),
        (vd.get_devices()[0], (vd.get_devices()[0].device_name, "Vulkan 1.")),
    ):
        printer = _Printer()
        thing._repr_pretty_(printer, False)
        assert all(part in printer.written for part in parts) and "\n" not in printer.written
