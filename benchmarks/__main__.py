"""The command line: ``python -m benchmarks [case ...]``, and what is done with result files."""

import datetime
import os
import subprocess
import sys
import time
from pathlib import Path

import click

from benchmarks import (
    accuracy,
    accuracy_plot,
    cases,
    compare,
    family_plots,
    processes,
    report,
    runner,
    size,
    table,
)
from benchmarks.case import ENGINE, FAMILIES
from benchmarks.processes import OURS, PEER_NAMES, Participant


class DefaultRun(click.Group):
    """A group of commands in which arguments that name no command are those of `run`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the missing `run` in front."""
        if not args or (args[0] not in self.commands and args[0] != "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(cls=DefaultRun)
def main() -> None:
    """Measure vkdispatch beside its peers and raw Vulkan; `run` is the default and need not be written."""


def _peer_names(_: click.Context, __: click.Parameter, value: str) -> list[str]:
    if value == "none":
        return []
    if value == "all":
        return list(PEER_NAMES)
    names = [name.strip() for name in value.split(",") if name.strip()]
    wrong = [name for name in names if name not in PEER_NAMES]
    if wrong:
        raise click.BadParameter(f"{', '.join(wrong)}; there are: {', '.join(PEER_NAMES)}")
    return names


def _places(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> dict[str, Path]:
    places = {}
    for word in given:
        name, equals, path = word.rpartition("=")
        if equals and name not in processes.MODULES:
            raise click.BadParameter(f"{name}; there are: {', '.join(processes.MODULES)}")
        # not resolved: the python of a virtual environment is a link
        places[name or processes.OLD] = Path(path).absolute()
    return places


@main.command()
@click.argument("case", nargs=-1)
@click.option(
    "--size", type=click.Choice(["auto", *cases.SIZES]), default="auto", help="How much is measured."
)
@click.option("--rounds", type=click.IntRange(1), help="Rounds of each case; 5 on a GPU, 3 on a CPU.")
@click.option(
    "--peers",
    callback=_peer_names,
    default="all",
    help=f"Who else takes part, with commas between: {', '.join(PEER_NAMES)}; all (that are there), none.",
)
@click.option(
    "--peer-python",
    "places",
    metavar="[NAME=]PATH",
    multiple=True,
    callback=_places,
    help="A Python that has a peer (without NAME: vkdispatch-0.1.0), or a folder of pip install --target.",
)
@click.option(
    "--install-peers", is_flag=True, help="Make benchmarks/.peers: environments for vkdispatch 0.1.0 and kp."
)
@click.option("--list", "listing", is_flag=True, help="Say what the cases are, and measure nothing.")
@click.option("--json", "path", type=click.Path(path_type=Path), help="Where the results go.")
@click.option("--tag", default="", help="A word for the name of the result file.")
@click.option("--minutes", default=60.0, show_default=True, help="Begin no case after so many.")
@click.option("--commit", default=None, help="The commit that is measured, where git cannot tell.")
def run(
    case: tuple[str, ...],
    size: str,
    rounds: int | None,
    peers: list[str],
    places: dict[str, Path],
    install_peers: bool,
    listing: bool,
    path: Path | None,
    tag: str,
    minutes: float,
    commit: str | None,
) -> None:
    """Measure all cases, or those that are named. Exit code 1: a result of vkdispatch was wrong."""
    try:
        chosen = cases.select(case)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if listing:
        for each in chosen:
            click.echo(f"{each.name:<27} {each.counts}")
        return
    if install_peers:
        try:
            processes.install_peers()
        except subprocess.CalledProcessError as error:
            raise click.ClickException(str(error)) from error
    participants = [processes.participant(name, places) for name in [OURS, *peers]]
    try:
        ours = participants[0]
        ours.start()
        if "absent" in ours.about:
            raise click.ClickException(f"vkdispatch does not start: {ours.about['absent']}")
        kind = size if size != "auto" else ("cpu" if ours.about["device_type"] == 4 else "gpu")
        path = path or report.default_path(ours.about["device"], tag)
        commit = report.commit_of_checkout() if commit is None else commit
        found = _measure(chosen, kind, rounds or cases.ROUNDS[kind], participants, minutes, commit, path)
    finally:
        for participant in participants:
            participant.stop()
    click.echo(table.as_text(found))
    click.echo(f"written to {path}")
    wrong = runner.failures(found["cases"], OURS)
    if wrong:
        raise click.ClickException("\n".join(wrong))


def _measure(
    chosen: list[cases.Case],
    kind: str,
    rounds: int,
    participants: list[Participant],
    minutes: float,
    commit: str,
    path: Path,
) -> report.Report:
    """Run the cases; the file is written after each, so that an end in between loses no more than one."""
    started = time.perf_counter()
    found: report.Report = {
        "schema": report.SCHEMA,
        "date": datetime.datetime.now().isoformat(timespec="seconds"),
        "device": participants[0].about["device"],
        "driver_version": participants[0].about["driver_version"],
        "commit": commit,
        "size": kind,
        "rounds": rounds,
        "machine": report.machine(),
        "cases": {},
    }
    for case in chosen:
        if time.perf_counter() - started > minutes * 60:
            click.echo(f"{case.name}: left out, the {minutes:g} minutes are over", err=True)
            continue
        found["cases"][case.name] = runner.run_case(
            case, kind, participants, rounds, lambda text: click.echo(text, err=True)
        )
        hidden = ("cases", "skips")
        found["participants"] = {
            each.name: {key: value for key, value in each.about.items() if key not in hidden}
            for each in participants
        }
        found["seconds"] = time.perf_counter() - started
        report.save(found, path)
    return found


def _load(path: Path) -> report.Report:
    try:
        return report.load(path)
    except ValueError as error:
        raise click.ClickException(str(error)) from error


NO_RESULTS = "No results are kept yet.\n"
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@main.command("compare")
@click.argument("before", type=_FILE)
@click.argument("after", type=_FILE)
@click.option("--least", default=0.05, show_default=True, help="Show changes of at least this share.")
@click.option(
    "--threshold", default=0.10, show_default=True, help="Exit with 1 if something is slower by more."
)
def compare_files(before: Path, after: Path, least: float, threshold: float) -> None:
    """Say what got slower or faster from one result file to another, beyond the noise of their rounds."""
    first, second = _load(before), _load(after)
    for difference in compare.differences(first, second):
        click.echo(f"note: {difference}")
    found = compare.changes(first, second)
    click.echo(compare.as_text(found, least))
    gone = compare.lost(first, second)
    if gone:
        click.echo(f"no right result any more: {', '.join(gone)}")
    if gone or any(change.beyond_noise and change.slowdown > 1 + threshold for change in found):
        sys.exit(1)


@main.command("plot")
@click.argument("result", type=_FILE)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), required=True)
@click.option("--family", type=click.Choice(FAMILIES), default=ENGINE, show_default=True)
def plot_file(result: Path, output: Path, family: str) -> None:
    """Draw a family's cases of a result file; the output's suffix (.svg, .png, .pdf) is the format."""
    try:
        family_plots.draw_family(_load(result), family, output)
    except ImportError as error:
        raise click.ClickException(f"{error}; pip install matplotlib") from error
    except ValueError as error:
        raise click.ClickException(str(error)) from error


@main.command("table")
@click.argument("result", type=_FILE)
@click.option("--rst", is_flag=True, help="As reStructuredText.")
@click.option("--family", type=click.Choice(FAMILIES), help="Of these cases alone.")
def show_table(result: Path, rst: bool, family: str | None) -> None:
    """Print the table of a result file."""
    found = _load(result)
    click.echo(table.as_rst(found, family) if rst else table.as_text(found, family))


@main.command("soak")
@click.option("--minutes", type=click.FloatRange(0, min_open=True), default=30.0, show_default=True)
@click.option("--json", "path", type=click.Path(path_type=Path), help="Where the results go.")
@click.option("--commit", default=None, help="The commit that is measured, where git cannot tell.")
def run_soak(minutes: float, path: Path | None, commit: str | None) -> None:
    """Do everything a user does, mixed; what the process holds must stay flat. Exit code 1: it grew."""
    from benchmarks import soak  # makes kernels, which no other command wants

    samples = []
    click.echo(soak.HEADER)
    for found in soak.work(minutes):
        click.echo(soak.row(found))
        samples.append(found)
    try:
        verdicts = soak.judge(samples)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    commit = report.commit_of_checkout() if commit is None else commit
    written = soak.as_report(samples, verdicts, commit)
    path = path or report.default_path(f"soak-{written['device']}", "")
    report.save(written, path)
    for verdict in verdicts:
        click.echo(verdict)
    click.echo(f"written to {path}")
    if not written["flat"]:
        sys.exit(1)


@main.command("tune")
@click.option("--only", default="", help="Families or numbers, with commas between: reduce, sorting.window.")
@click.option("--device", help="An index of vdlist or a part of a name, as VKDISPATCH_DEVICE.")
@click.option("--quick", is_flag=True, help="Small arrays, one round: shows that it works, finds nothing.")
@click.option(
    "--allow-other-rounding",
    "other_rounding",
    is_flag=True,
    help="Also numbers that change the order of floating-point sums, and so the last bits of results.",
)
@click.option("--show", is_flag=True, help="Print what is kept for the device, and measure nothing.")
@click.option("--forget", is_flag=True, help="Drop what is kept for the device, and measure nothing.")
def tune(only: str, device: str | None, quick: bool, other_rounding: bool, show: bool, forget: bool) -> None:
    """Find the tuning numbers of functions on arrays for a device, and keep them in the cache folder.

    Exit code 1: a number gave a wrong result.
    """
    if show and forget:
        raise click.UsageError("--show and --forget exclude each other")
    if device is not None:
        os.environ["VKDISPATCH_DEVICE"] = device
    from benchmarks.tuning import search  # makes a context and kernels, which no other command wants

    words = [word.strip() for word in only.split(",") if word.strip()]
    try:
        search.require_cache()
        # what is kept may be of numbers that decide nothing on this device
        numbers = [] if show or forget else search.select_numbers(words, other_rounding)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    click.echo(search.name_device())
    if show:
        click.echo("\n".join(search.list_kept(words)) or "nothing is kept: all numbers are the defaults")
        return
    if forget:
        click.echo(
            "\n".join(f"{key:<40} forgotten" for key in search.forget_kept(words)) or "nothing was kept"
        )
        return
    wrong = False
    for finding in search.search(numbers, search.choose_effort(quick)):
        click.echo(search.describe(finding))
        wrong |= bool(finding.wrong)
    if wrong:
        raise click.ClickException("a number gave a wrong result; please report it")


@main.command("size")
def report_size() -> None:
    """Print the files and lines of code of each folder of the package, and what is over its budget."""
    sys.exit(size.main())


@main.command("docs")
@click.option(
    "-o", "--output", type=click.Path(file_okay=False, path_type=Path), default=report.ROOT / "docs"
)
def write_docs(output: Path) -> None:
    """Write tables and plots of each device's latest results, for the documentation's pages."""
    pages = output / "reference" / "benchmarks"
    pages.mkdir(parents=True, exist_ok=True)
    for family in FAMILIES:
        prefix = "benchmarks" if family == ENGINE else f"benchmarks-{family}"
        parts = []
        for path in report.latest(cases.of_family(family)):
            found = report.load(path)
            picture = output / "_static" / f"{prefix}-{report.slug(found['device'])}.svg"
            family_plots.draw_family(found, family, picture)
            parts.append(table.as_page(found, family, f"/_static/{picture.name}"))
        name = "benchmarks-results.inc" if family == ENGINE else f"{prefix}.inc"
        (pages / name).write_text("\n".join(parts) or NO_RESULTS)
    parts = []
    for path in accuracy.latest():
        swept = accuracy.load(path)
        picture = output / "_static" / f"benchmarks-accuracy-{report.slug(swept['device'])}.svg"
        accuracy_plot.draw(swept, picture)
        parts.append(accuracy.as_page(swept, f"/_static/{picture.name}"))
    (pages / "benchmarks-accuracy.inc").write_text("\n".join(parts) or NO_RESULTS)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
