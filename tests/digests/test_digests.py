import json

import pytest

from tests.digests.recording import GROUPS, describe_device, describe_processor, find_file

_EXPLANATION = (
    "A change that is meant to change kernels or results writes the file anew with `python -m "
    "tests.digests.recording --write`; `--texts FOLDER` writes the GLSL, to compare two checkouts."
)


@pytest.mark.parametrize("group", GROUPS)
def test_kernels_and_results_are_as_before(group: str, run_python) -> None:
    """Compare the GLSL and the results of known calls with the digests recorded on this device."""
    device = describe_device()
    path = find_file(device)
    if not path.exists():
        pytest.skip(f"no digests were made on {device['device']}")
    known = json.loads(path.read_text())
    if known["device"] != device:
        pytest.skip(f"the digests were made on another device: {known['device']}")
    done = run_python(None, "-m", "tests.digests.recording", "--group", group, timeout=600)
    assert done.returncode == 0, done.stderr
    new, old = json.loads(done.stdout)["digests"], known["digests"][group]
    whats = ("kernels", "results") if known["processor"] == describe_processor() else ("kernels",)
    changed = [
        f"{name}: {what}"
        for name in sorted(new.keys() | old.keys())
        for what in whats
        if new.get(name, {}).get(what) != old.get(name, {}).get(what)
    ]
    assert not changed, f"{len(changed)} differ: {', '.join(changed[:20])}. {_EXPLANATION}"
