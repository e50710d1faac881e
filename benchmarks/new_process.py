"""What a new process pays for its first calls: ``python -m benchmarks.new_process``.

Two processes run each program of `expressions.py` once. The first one begins with an empty disk cache, the
second one with what the first has left there.
"""

import json
import time
from tempfile import TemporaryDirectory

import click

from benchmarks.expressions import SIZES, compute_on, load, programs
from benchmarks.libraries_apart import run_apart


def run_once(longest: int) -> dict[str, float]:
    """Run each program once, on axes cut to a length.

    Returns the seconds that all took, and how many kernels were compiled.
    """
    from vkdispatch.base.native_module import native

    library = load("vkdispatch")
    seconds = 0.0
    for _, function, arguments, _ in programs(library, longest):
        library.wait()
        start = time.perf_counter()
        compute_on(library, function, arguments)()
        library.wait()
        seconds += time.perf_counter() - start
    return {"seconds": round(seconds, 3), "compiled": native.compile_count()}


@click.command()
@click.option("--once", is_flag=True, help="Be one of the processes.")
@click.option("--longest", default=SIZES[-1], help="Cut longer axes to this length, for CPUs.")
def main(once: bool, longest: int) -> None:
    """Count the seconds and the compilations of first calls, with an empty disk cache and with a full one."""
    if once:
        click.echo(json.dumps(run_once(longest)))
        return
    with TemporaryDirectory() as folder:
        for what in ("empty cache", "the next process"):
            options = ("--once", f"--longest={longest}")
            found = run_apart("benchmarks.new_process", *options, VKDISPATCH_CACHE=folder)
            if found is None:
                raise SystemExit(1)
            click.echo(f"{what}: {found['seconds']:.2f} s, {found['compiled']} kernels compiled")


if __name__ == "__main__":
    main()
