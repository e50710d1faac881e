"""The command: ``python -m benchmarks.scaling``."""

import datetime
import json
import os
import platform
import sys
import time
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import click

from benchmarks.scaling.measuring import HEAD, format_line, measure
from benchmarks.scaling.programs import CASES


def _parse_counts(_: click.Context, __: click.Parameter, value: str) -> list[int]:
    counts = [int(each) for each in value.split(",") if each.strip().isdigit() and int(each) > 0]
    if not counts:
        raise click.BadParameter("expected numbers of workers, such as 1,2,4")
    return counts


@click.command(help="Measure strong and weak scaling over devices under Dask.")
@click.option("--workers", default="1,2,4", callback=_parse_counts, help="Numbers of workers, one a device.")
@click.option("--size", default=1.0, help="A factor for all sizes: 1 fits GPUs of 80 GB, 1e-6 a laptop.")
@click.option("--rounds", default=5, help="Runs of each case that are timed.")
@click.option("--seconds", default=5.0, help="There are no more rounds of a case after this time.")
@click.option("--only", default="", help="Cases by the words that their names begin with, with commas.")
@click.option("--peer", type=click.Choice(["cupy", "numpy"]), help="Run the same on chunks of this library.")
@click.option("--peer-alone", is_flag=True, help="Run the peer alone.")
@click.option(
    "--json", "path", type=click.Path(path_type=Path), help="Where the figures go, after each case."
)
def main(
    workers: list[int],
    size: float,
    rounds: int,
    seconds: float,
    only: str,
    peer: str | None,
    peer_alone: bool,
    path: Path | None,
) -> None:
    """Measure, print each line, and write the figures. The exit code is 1 if a case fails or is wrong."""
    begins = tuple(each.strip() for each in only.split(",")) if only else ("",)
    cases = [case for case in CASES if case.startswith(begins)]
    reports: list[dict[str, Any]] = []
    facts = describe_run(size, rounds)
    start, failed = time.monotonic(), False
    click.echo(HEAD)
    for library in list_libraries(peer, peer_alone):
        found: dict[str, Any] = {case: {"strong": {}, "weak": {}} for case in cases}
        report: dict[str, Any] = {"library": library, "devices": [], "cases": found}
        reports.append(report)
        for count, devices, case, kind, figures in measure(library, workers, cases, size, rounds, seconds):
            report["devices"] = max(report["devices"], devices, key=len)
            found[case][kind][str(count)] = figures
            if count == 1:
                found[case]["weak"]["1"] = figures
            failed |= not figures.get("right", False)
            click.echo(format_line(library, case, kind, found[case][kind], str(count)))
            if path is not None:
                facts["elapsed"] = round(time.monotonic() - start, 1)
                path.write_text(json.dumps({**facts, "reports": reports}, indent=1) + "\n")
    click.echo(f"{time.monotonic() - start:.0f} s")
    sys.exit(failed)


def list_libraries(peer: str | None, peer_alone: bool) -> list[str]:
    """Return the libraries to measure. A peer that is not installed is left out."""
    libraries = [] if peer_alone and peer is not None else ["vkdispatch"]
    if peer is not None:
        try:
            import_module(peer)
            libraries.append(peer)
        except ImportError:
            click.echo(f"{peer} is not installed: it is left out", err=True)
    return libraries


def describe_run(size: float, rounds: int) -> dict[str, Any]:
    """Return when and where this runs, and with which versions."""
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "host": platform.node(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "versions": {
            "vkdispatch": import_module("vkdispatch").__version__,
            **{name: _find_version(name) for name in ("dask", "distributed", "cupy", "cupy-cuda13x")},
        },
        "size": size,
        "rounds": rounds,
    }


def _find_version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    main()
