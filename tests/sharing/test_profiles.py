"""Profiles show the hand-overs of memory between a context and other libraries."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np

import vkdispatch as vd
import vkdispatch.numpy as vnp

from .arrays import add, aligned, double


def count(profile: vd.Profile) -> Counter[str]:
    return Counter(item.kind for item in profile.hand_overs)


def test_what_is_handed_over_is_counted(takes_host: None, tmp_path: Path) -> None:
    data = aligned(np.ones(64, np.float32))
    own, x = vd.asbuffer(data), vnp.ones(64, np.float32)
    double(own)
    with vd.profile() as profile:
        for _ in range(3):
            add(own, data)
        view = np.from_dlpack(own)
        shared = vd.share(x)
        part = vnp.from_dlpack(data[::2], copy=False)
        buffer = vd.from_dlpack(data, copy=False)
        vd.from_dlpack(data, copy=True)
    assert count(profile)["take"] == 5 and count(profile)["lend"] == 2
    for item in profile.hand_overs:
        assert profile._begin <= item.begin <= item.end <= profile._end
    assert "memory of other libraries taken: 5 times" in str(profile)
    assert "memory shared with other libraries: 2 times" in str(profile)
    profile.to_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert Counter(each["name"] for each in events if each.get("cat") == "hand-over") == count(profile)
    del view, shared, part, buffer


def test_the_host_waits_while_memory_is_shared(takes_host: None) -> None:
    buffer = vd.asbuffer(np.zeros(1 << 18, np.float32))
    graph = vd.CommandGraph()
    for _ in range(4):
        double(buffer, graph=graph)
    view = np.from_dlpack(buffer)
    with vd.profile() as profile:
        for _ in range(5):
            double(buffer)
        graph.submit()
    waits = [item for item in profile.hand_overs if item.kind == "host wait"]
    # a wait for what is done already is none
    assert 1 <= len(waits) <= 6 and count(profile) == {"host wait": len(waits)}
    assert all(item.duration > 0 for item in waits)
    del view
    with vd.profile() as profile:
        for _ in range(5):
            double(buffer)
        graph.submit()
    assert not profile.hand_overs and "shared" not in str(profile)


def test_profiles_see_their_own_time_and_context(takes_host: None) -> None:
    data = aligned(np.ones(64, np.float32))
    own = vd.asbuffer(data)
    with vd.profile() as outer:
        add(own, data)
        with vd.profile() as inner:
            add(own, data)
    assert count(inner)["take"] == 1 and count(outer)["take"] == 2
    with inner:
        pass
    add(own, data)
    assert not inner.hand_overs and count(outer)["take"] == 2
    try:
        with vd.profile() as failed:
            add(own, data)
            raise KeyError
    except KeyError:
        pass
    assert count(failed)["take"] == 1
