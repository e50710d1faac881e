"""Tuning numbers: defaults, what is kept for a device, and what is no value for a number."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
from vkdispatch.base.compilation import disk_cache
from vkdispatch.base.record import replace
from vkdispatch.families import tuning as tuning_module
from vkdispatch.families.tuning import (
    LLVMPIPE,
    Number,
    PlanCache,
    Table,
    device_facts,
    forget,
    keep,
    load_kept,
)
from vkdispatch.sorting.launching import Tuning, plan_runs, tuning

RunPython = Callable[..., "CompletedProcess[str]"]
LENGTH = 5000


class Small(Table, family="small"):
    number = Number(4, (2, 4, 8))
    fixed = Number(3, found_on=LLVMPIPE)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    kept = vd.get_context().kept
    monkeypatch.setenv("VKDISPATCH_CACHE", str(tmp_path))
    kept.pop(tuning_module._STATE_KEY, None)
    yield tmp_path
    kept.pop(tuning_module._STATE_KEY, None)


def load_again() -> None:
    vd.get_context().kept.pop(tuning_module._STATE_KEY, None)


def check_sort() -> None:
    keys = np.random.default_rng(1).integers(0, 1 << 30, LENGTH).astype(np.int32)
    assert np.array_equal(vd.sort(vd.asbuffer(keys)).read(0), np.sort(keys))


def test_a_kept_number_changes_plans_until_it_is_forgotten() -> None:
    context = vd.get_context()
    before = plan_runs(device_facts(), (32,), LENGTH)
    check_sort()
    keep(context, {Tuning.run_least: 2048})
    assert tuning.run_least == 2048
    assert plan_runs(device_facts(), (32,), LENGTH).runs < before.runs
    check_sort()
    load_again()
    assert tuning.run_least == 2048
    assert forget(context) == ["sorting.run_least"]
    assert plan_runs(device_facts(), (32,), LENGTH) == before
    check_sort()


def test_other_processes_find_what_is_kept(run_python: RunPython, cache: Path) -> None:
    keep(vd.get_context(), {Tuning.run_least: 1024, Tuning.run_group: 4})
    code = """
import vkdispatch as vd
from vkdispatch.sorting.launching import tuning
print(tuning.run_least, tuning.run_group, tuning.group)
vd.get_context()
print(tuning.run_least, tuning.run_group, tuning.group)
"""
    found = run_python(code, VKDISPATCH_CACHE=str(cache))
    assert found.stdout.split() == ["512", "8", "256", "1024", "4", "256"], found.stderr
    without = run_python(code, VKDISPATCH_CACHE="off")
    assert without.stdout.split()[3:] == ["512", "8", "256"], without.stderr


def test_numbers_are_forgotten_one_by_one() -> None:
    context = vd.get_context()
    keep(context, {Tuning.run_least: 1024})
    keep(context, {Tuning.run_group: 4})
    assert forget(context, ["sorting.run_least", "sorting.window"]) == ["sorting.run_least"]
    assert (tuning.run_least, tuning.run_group) == (512, 4)
    assert forget(context) == ["sorting.run_group"]
    assert forget(context) == []


def test_a_damaged_file_is_no_table(cache: Path) -> None:
    keep(vd.get_context(), {Tuning.run_least: 1024})
    (path,) = (cache / "tuning").glob("*.vkd")
    whole = path.read_bytes()
    for content in (b"", whole[:-1], whole[:20], whole.replace(b"1024", b"2048"), b"\x00" * 100):
        path.write_bytes(content)
        load_again()
        assert tuning.run_least == 512
    check_sort()


@pytest.mark.parametrize(
    "content",
    [b"\xff\xfe", b"nonsense", b"a\tb", b"a\tb\tc\td", b"\n\n", b"sorting.run_least\t{0}\t1e99", b"{0}"],
    ids=repr,
)
def test_text_that_makes_no_sense_is_no_table(content: bytes) -> None:
    key = tuning_module._key(vd.get_context())
    checksum = Tuning.run_least.checksum.encode()
    disk_cache.store("tuning", key, content.replace(b"{0}", checksum))
    load_again()
    assert tuning.run_least == 512


@pytest.mark.parametrize("text", ["4096", "512.0", "__import__('os')", "True", ""])
def test_values_are_candidates_or_nothing(text: str) -> None:
    kept = {"sorting.run_least": (text, Tuning.run_least.checksum)}
    assert Tuning.run_least.find_in(kept) == 512


def test_values_for_another_definition_do_not_count() -> None:
    class Other(Table, family="small"):
        number = Number(2, (2, 4, 8))

    context = vd.get_context()
    keep(context, {Small.number: 8})
    assert Small().number == 8
    assert Other().number == 2


def test_values_for_another_device_or_driver_do_not_count() -> None:
    info = vd.get_context().device_infos[0]
    mine = {"uuid": info.uuid, "device_name": info.device_name, "driver_version": info.driver_version}
    others = ({"driver_version": info.driver_version + 1}, {"device_name": "another"}, {"uuid": b"1"})
    for change in others:
        other = SimpleNamespace(runs=True, kept={}, device_infos=[SimpleNamespace(**mine | change)])
        keep(other, {Tuning.run_least: 2048})  # type: ignore[arg-type]
        load_again()
        assert tuning.run_least == 512
        assert load_kept(other)  # type: ignore[arg-type]


def test_numbers_that_are_given_or_assigned_come_first() -> None:
    keep(vd.get_context(), {Small.number: 8})
    table = Small()
    assert (table.number, table.fixed) == (8, 3)
    assert Small(number=2).number == 2
    assert replace(table, fixed=5).fixed == 5
    with table.change(number=2):
        assert table.number == 2
    assert table.number == 8
    table.number = 4
    assert table.values() == (4, 3)
    with pytest.raises(TypeError, match="numbr"):
        Small(numbr=2)


def test_keys_tell_numbers_apart() -> None:
    table, other = Small(), Small()
    assert table.key() is other.key()
    assert table.edition != other.edition
    key, edition = table.key(), table.edition
    with table.change(number=2):
        assert table.key() is not key
        assert table.edition != edition
    assert table.key() is key
    assert table.edition != edition
    keep(vd.get_context(), {Small.number: 8})
    assert table.key() is not key


def test_repeated_calls_read_no_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []
    get = Number.__get__

    def count(self: Any, table: Any, owner: Any) -> Any:
        reads.append(self.name)
        return get(self, table, owner)

    monkeypatch.setattr(Number, "__get__", count)
    x = vd.asbuffer(np.arange(1000, dtype=np.float32))
    functions: list[Callable[[Any], Any]] = [vd.sum, vd.cumsum, vd.sort, vd.fft.fft]
    for function in functions:
        y = vd.asbuffer(np.ones(1000, np.complex64)) if function is vd.fft.fft else x
        for _ in range(3):
            function(y)
        assert reads
        reads.clear()
        function(y)
        assert reads == []


def test_a_plan_of_earlier_numbers_is_not_kept() -> None:
    table, plans = Small(), PlanCache[int]()
    started, changed = threading.Event(), threading.Event()

    def plan_slowly() -> int:
        number = table.number
        started.set()
        changed.wait(10)
        return number

    thread = threading.Thread(target=plans.find, args=(table, "key", plan_slowly))
    thread.start()
    started.wait(10)
    with table.change(number=8):
        assert plans.find(table, "other key", lambda: table.number) == 8
        changed.set()
        thread.join()
        assert plans.find(table, "key", lambda: table.number) == 8
