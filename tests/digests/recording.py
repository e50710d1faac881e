"""Calls families, arrays and kernels of the language, and keeps digests of their GLSL and results.

    python -m tests.digests.recording --group families      # prints what is made here, as JSON
    python -m tests.digests.recording --write               # writes the file of this device
    python -m tests.digests.recording --texts /tmp/glsl     # writes the GLSL, to compare two checkouts

A digest is of GLSL without comments whose names are numbered. Where results may depend on the processor, the
file says which one made them.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.snapshots import digest, digest_text, watch

Digests = dict[str, dict[str, list[str]]]

_FOLDER = Path(__file__).parent
# Every which function of arrays is called, and seeds of kernels of the language.
_STEP = 3
_KERNELS = 60
GROUPS = ("families", "arrays", "language")
# What LAPACK computes on the host, with bits that depend on the processor.
_ON_HOST = ("linalg.eigvals",)


def _call_families() -> Iterator[tuple[str, Callable[[], Any]]]:
    from tests.calls.random_calls import TOOL

    # what has to do with memory alone has few kernels
    yield from _list_calls(TOOL, [family for family in TOOL.families if family != "memory"])


def _call_arrays() -> Iterator[tuple[str, Callable[[], Any]]]:
    from tests.numpy.random_calls import TOOL

    yield from list(_list_calls(TOOL, TOOL.families))[::_STEP]


def _list_calls(tool: Any, families: Iterable[str]) -> Iterator[tuple[str, Callable[[], Any]]]:
    from tests.calls.choices import Choices

    for family in families:
        for function in tool.writers(family):
            yield function, partial(tool.check, function, Choices(seed=1), set(), 0.0)


def _run_language() -> Iterator[tuple[str, Callable[[], Any]]]:
    from tests.language.random_kernels import features_of
    from tests.language.random_sources import FEATURES
    from tests.language.source_running import check

    for seed in range(_KERNELS):
        features = features_of(seed, FEATURES)
        yield f"{seed} {' '.join(features)}", partial(check, seed, features)


_CASES = {"families": _call_families, "arrays": _call_arrays, "language": _run_language}


def record(group: str, texts: Path | None = None) -> Digests:
    """Make the calls of a group; return the digests of the kernels and results of each."""
    import vkdispatch as vd
    from vkdispatch.shader.traced.program import find_loop_limit

    find_loop_limit(vd.get_context())  # measured by a kernel once for each driver, and kept on disk
    found: Digests = {}
    with watch() as seen, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, call in _CASES[group]():
            with contextlib.redirect_stdout(io.StringIO()):
                call()
            kernels, results = seen.take()
            if kernels:
                of_results = (
                    [] if name in _ON_HOST else [digest("".join(sorted(map(digest, results))).encode())]
                )
                found[name] = {"kernels": sorted(map(digest_text, kernels)), "results": of_results}
            if texts is not None:
                for text in kernels:
                    (texts / f"{digest_text(text)}.glsl").write_text(f"// {group}: {name}\n{text}")
    return found


def describe_device() -> dict[str, Any]:
    """Return what the text of kernels depends on."""
    import vkdispatch as vd

    info = vd.get_context().device_infos[0]
    return {
        "device": info.device_name,
        "driver": info.driver_version,
        "subgroup": vd.get_context().subgroup_size,
        "group": vd.get_context().max_invocations_along_x,
        "shared": vd.get_context().max_shared_memory,
    }


def describe_processor() -> str:
    """Return the instructions of this processor that results of a CPU driver may depend on."""
    import numpy._core._multiarray_umath as core

    return " ".join(name for name in ("AVX2", "FMA3", "AVX512F") if core.__cpu_features__.get(name))


def find_file(device: dict[str, Any]) -> Path:
    """Return the file with the digests of a device."""
    return _FOLDER / f"{device['device'].split()[0].lower()}.json"


def _record_apart(group: str, *options: str) -> Any:
    command = [sys.executable, "-m", "tests.digests.recording", "--group", group, *options]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    """Print or write digests; each group in a process of its own, as kernels are built once."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--group", choices=GROUPS)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--texts", type=Path)
    options = parser.parse_args()
    if options.texts is not None:
        options.texts.mkdir(parents=True, exist_ok=True)
    if options.group:
        found = {"digests": record(options.group, options.texts), "device": describe_device()}
        print(json.dumps(found))
        return
    more = [] if options.texts is None else ["--texts", str(options.texts)]
    groups = {group: _record_apart(group, *more) for group in GROUPS}
    if options.write:
        device = groups["families"]["device"]
        content = {
            "device": device,
            "processor": describe_processor(),
            "digests": {group: found["digests"] for group, found in groups.items()},
        }
        find_file(device).write_text(json.dumps(content, indent=1) + "\n")
    count = len(
        {text for found in groups.values() for case in found["digests"].values() for text in case["kernels"]}
    )
    print(f"{count} kernels")


if __name__ == "__main__":
    main()
