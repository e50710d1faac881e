"""The error of each library's transforms, length by length: ``python -m benchmarks.accuracy``.

The truth is SciPy's transform of the same numbers in long double (80 bits on x86, errors of some 1e-19); a
test compares it with sums of still more digits. An error is the L2 norm of the difference over all rows of a
length, by that of the truth.
"""

import concurrent.futures
import datetime
import json
import math
import os
import random
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt

from benchmarks import accuracy_plot, processes, report
from benchmarks.processes import OLD, OURS, Participant

SCHEMA = "accuracy-1"
LIBRARIES = (OURS, "torch", "cupy", "pyvkfft", processes.VKFFT, OLD, "numpy")
# What float32 is to reach: 2e-7 sqrt(log2 n); the others the same in units of their last places.
BOUNDS = {"complex64": 2e-7, "complex128": 2e-7 * 2.0**-29}
# Powers of two, of other primes, primes near them, and sizes that people meet.
BEYOND = (
    *(2**k for k in range(13, 21)),
    *(6561, 19683, 59049, 177147, 531441, 15625, 78125, 390625, 16807, 117649, 823543),
    *(14641, 161051, 28561, 371293, 9973, 10000, 44100, 48000, 65537, 99991, 100000, 131071, 524287),
    *(1_000_000, 999_983, 3 * 2**18, 10**6 + 3, 2**22, 2**24),
)
# A length has at least a row, and more while they have fewer points.
ROWS, POINTS = 4, 2**16
# Points in a file, and the seconds that a library may take for one.
CHUNK = 2**19
PATIENCE = 240.0

Lengths = list[int]


def lengths_of(text: str) -> Lengths:
    """Return the lengths that a text such as ``2-4096,8192,12-99/3`` names; `all` is 2-4096 and those beyond.

    Raises
    ------
    ValueError
        A part is neither a number nor a range.
    """
    found: set[int] = set()
    for part in text.split(","):
        if part == "all":
            found |= {*range(2, 4097), *BEYOND}
        elif part == "beyond":
            found |= set(BEYOND)
        else:
            span, _, step = part.partition("/")
            first, _, last = span.partition("-")
            found |= set(range(int(first), int(last or first) + 1, int(step or 1)))
    if not found or min(found) < 1:
        raise ValueError(f"no lengths: {text!r}")
    return sorted(found)


def rows_of(n: int) -> int:
    """Return how many rows of a length are transformed."""
    return max(1, min(ROWS, POINTS // n))


def chunks_of(lengths: Iterable[int]) -> Iterator[Lengths]:
    """Yield lengths together whose numbers fit into a file of `CHUNK` points."""
    chunk: Lengths = []
    points = 0
    for n in lengths:
        if chunk and points + n * rows_of(n) > CHUNK:
            yield chunk
            chunk, points = [], 0
        chunk.append(n)
        points += n * rows_of(n)
    if chunk:
        yield chunk


def numbers(n: int, dtype: str) -> npt.NDArray[Any]:
    """Return what is transformed: random complex numbers, the same each time, (rows, n)."""
    generator = np.random.default_rng(n)
    real, imaginary = generator.uniform(-1, 1, (2, rows_of(n), n))
    both: npt.NDArray[Any] = (real + 1j * imaginary).astype(dtype)
    return both


def truth(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the transforms of an array's rows in long double."""
    import scipy.fft

    found: npt.NDArray[Any] = scipy.fft.fft(array.astype(np.clongdouble))
    if found.dtype != np.clongdouble:
        raise TypeError(f"SciPy transformed {found.dtype}, not long double")
    return found


def error_of(got: npt.NDArray[Any], want: npt.NDArray[Any]) -> float:
    """Return the relative L2 error."""
    difference = got.astype(np.clongdouble) - want
    return float(np.sqrt((np.abs(difference) ** 2).sum() / (np.abs(want) ** 2).sum()))


def bound(n: int, dtype: str) -> float:
    """Return the largest error that is allowed."""
    return BOUNDS[dtype] * math.sqrt(math.log2(max(n, 2)))


def sweep(participant: Participant, lengths: Lengths, dtype: str, deadline: float) -> dict[int, float | str]:
    """Return a library's error at each length, or why there is none; no file is begun after the deadline."""
    found: dict[int, float | str] = {}
    with tempfile.TemporaryDirectory() as folder:
        source, to = Path(folder, "source.npz"), Path(folder, "to.npz")
        for chunk in chunks_of(lengths):
            if time.perf_counter() > deadline:
                break
            given = {n: numbers(n, dtype) for n in chunk}
            arrays: dict[str, Any] = {str(n): array for n, array in given.items()}
            np.savez(source, **arrays)
            reply = participant.transform(source, to, PATIENCE)
            if "refused" not in reply:
                reason = str(reply.get("error", reply))[-300:]
                found |= dict.fromkeys(chunk, reason)
                continue
            found |= {int(n): reason for n, reason in reply["refused"].items()}
            with np.load(to) as results:
                found |= {int(n): error_of(got, truth(given[int(n)])) for n, got in results.items()}
    return found


def measure(
    name: str, places: dict[str, Path], lengths: Lengths, dtype: str, together: int, deadline: float
) -> dict[str, Any]:
    """Return a library's entry in the results; `together` of its processes share the lengths."""
    started = time.perf_counter()
    # in any order, so that what the deadline cuts off is not one end
    shuffled = random.Random(0).sample(lengths, len(lengths))
    workers = [processes.participant(name, places) for _ in range(together)]
    try:
        workers[0].start()
        about = {key: value for key, value in workers[0].about.items() if key not in ("cases", "skips")}
        if "absent" in about:
            return about
        with concurrent.futures.ThreadPoolExecutor(together) as pool:
            shares = [
                pool.submit(sweep, worker, shuffled[k::together], dtype, deadline)
                for k, worker in enumerate(workers)
            ]
            found = {n: value for share in shares for n, value in share.result().items()}
    finally:
        for worker in workers:
            worker.stop()
    errors = {n: value for n, value in sorted(found.items()) if isinstance(value, float)}
    refused = {n: value for n, value in sorted(found.items()) if isinstance(value, str)}
    reasons: dict[str, Lengths] = {}
    for n, reason in refused.items():
        reasons.setdefault(reason, []).append(n)
    return {
        **about,
        "lengths": list(errors),
        "errors": [float(f"{value:.4g}") for value in errors.values()],
        "refused": reasons,
        "seconds": time.perf_counter() - started,
    }


def beyond_bound(entry: dict[str, Any], dtype: str) -> dict[int, float]:
    """Return the lengths, and by how many times, at which an entry's errors are too large."""
    return {
        n: error / bound(n, dtype)
        for n, error in zip(entry.get("lengths", ()), entry.get("errors", ()), strict=True)
        if not error <= bound(n, dtype)
    }


def summary(entry: dict[str, Any], dtype: str) -> str:
    """Say in a line what an entry has."""
    if "absent" in entry:
        return f"not there: {entry['absent'].splitlines()[-1]}"
    refused = sum(map(len, entry["refused"].values()))
    if not entry["errors"]:
        return f"no length; refused: {list(entry['refused'])[:2]}"
    shares = [e / bound(n, dtype) for n, e in zip(entry["lengths"], entry["errors"], strict=True)]
    worst = int(np.argmax(shares))
    return (
        f"{len(shares)} lengths in {entry['seconds']:.0f} s, {refused} refused; error by the bound: median"
        f" {np.median(shares):.2f}, largest {shares[worst]:.2f} at {entry['lengths'][worst]}"
    )


def few(lengths: Lengths) -> str:
    """Write some of the lengths, and how many others there are."""
    more = f" and {len(lengths) - 5} others" if len(lengths) > 5 else ""
    return ", ".join(map(str, lengths[:5])) + more


def load(path: Path) -> dict[str, Any]:
    """Read a file of results; raises ValueError if it is none."""
    try:
        found = json.loads(path.read_text())
    except (OSError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is no accuracy file: {error}") from error
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise ValueError(f"{path} is no accuracy file of version {SCHEMA}")
    return found


def latest() -> list[Path]:
    """Return the newest file of each device."""
    newest: dict[str, tuple[str, Path]] = {}
    for path in sorted(report.RESULTS.glob("accuracy-*.json")):
        found = load(path)
        known = newest.get(found["device"])
        if known is None or known[0] <= found["date"]:
            newest[found["device"]] = (found["date"], path)
    return [path for _, path in newest.values()]


def as_page(found: dict[str, Any], picture: str) -> str:
    """Return a section of the documentation: each library's errors in a line, and the picture."""
    title = found["device"]
    out = [title, "~" * len(title), "", f"{found['date'][:10]}, commit {found['commit'] or 'unknown'}.", ""]
    for kind, results in found["results"].items():
        out += [
            f"* {kind}, {'ours' if name == OURS else name}: {summary(entry, kind)}"
            for name, entry in results.items()
            if entry.get("errors")
        ]
    out += [
        "",
        f".. image:: {picture}",
        f"   :alt: {title}: each library's error over the length",
        "   :width: 100%",
        "",
    ]
    return "\n".join(out)


def _names(_: click.Context, __: click.Parameter, value: str) -> Sequence[str]:
    names = [name.strip() for name in value.split(",") if name.strip()]
    wrong = [name for name in names if name not in LIBRARIES]
    if wrong:
        raise click.BadParameter(f"{', '.join(wrong)}; there are: {', '.join(LIBRARIES)}")
    return names


def _lengths(_: click.Context, __: click.Parameter, value: str) -> Lengths:
    try:
        return lengths_of(value)
    except ValueError as error:
        raise click.BadParameter(f"{error}; a list such as 2-4096,8192,12-99/3, all, or beyond") from error


@click.command()
@click.option("--lengths", callback=_lengths, default="all", help="Such as 2-4096,8192,12-99/3; all; beyond.")
@click.option("--dtype", type=click.Choice(list(BOUNDS)), multiple=True, default=list(BOUNDS))
@click.option("--libraries", callback=_names, default=",".join(LIBRARIES), show_default=True)
@click.option(
    "--peer-python", "places", metavar="NAME=PATH", multiple=True, help="As of python -m benchmarks."
)
@click.option("--processes", "together", type=click.IntRange(1), help="Of each library; half the cores.")
@click.option(
    "--minutes",
    default=30.0,
    show_default=True,
    help="Shared fairly; lengths not begun by then are left out.",
)
@click.option("--json", "path", type=click.Path(path_type=Path), help="Where the results go.")
@click.option("--plot", type=click.Path(path_type=Path), help="A picture of them.")
@click.option("--commit", default=None, help="The commit that is measured, where git cannot tell.")
def main(
    lengths: Lengths,
    dtype: tuple[str, ...],
    libraries: Sequence[str],
    places: tuple[str, ...],
    together: int | None,
    minutes: float,
    path: Path | None,
    plot: Path | None,
    commit: str | None,
) -> None:
    """Sweep the transforms' accuracy over lengths. Exit code 1: ours is beyond the bound, or refuses one."""
    together = together or max(1, len(os.sched_getaffinity(0)) // 2)
    given = {name: Path(where).absolute() for name, _, where in (word.rpartition("=") for word in places)}
    started = time.perf_counter()
    found: dict[str, Any] = {
        "schema": SCHEMA,
        "date": datetime.datetime.now().isoformat(timespec="seconds"),
        "device": "",
        "commit": report.commit_of_checkout() if commit is None else commit,
        "results": {kind: {} for kind in dtype},
    }
    wrong: list[str] = []
    turns = [(kind, name) for kind in dtype for name in libraries]
    for number, (kind, name) in enumerate(turns):
        # what one does not take of its time is the others'
        now = time.perf_counter()
        share = (started + minutes * 60 - now) / (len(turns) - number)
        entry = measure(name, given, lengths, kind, together, now + share)
        found["results"][kind][name] = entry
        if name != "numpy" and not found["device"]:
            found["device"] = entry.get("device", "")
        click.echo(f"{kind} {name}: {summary(entry, kind)}")
        if name == OURS:
            wrong += [
                f"{kind} {n}: {times:.2f} x the bound" for n, times in beyond_bound(entry, kind).items()
            ]
            # a library that is not there refuses nothing
            refused = entry.get("refused", {}).items()
            wrong += [f"{kind} {few(of)}: refused: {reason}" for reason, of in refused]
        found["seconds"] = time.perf_counter() - started
        path = path or report.default_path(f"accuracy-{found['device'] or name}", "")
        path.parent.mkdir(parents=True, exist_ok=True)
        # after each, so that an end in between loses no more than one
        path.write_text(json.dumps(found) + "\n")
    click.echo(f"written to {path}")
    if plot is not None:
        accuracy_plot.draw(found, plot)
    if wrong:
        raise click.ClickException("\n".join(wrong))


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.accuracy")
