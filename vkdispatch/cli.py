"""The commands: `vdlist` (devices and the disk cache), and `vkdispatch` with commands of its own."""

from contextlib import closing

import click

from vkdispatch import __version__
from vkdispatch.base.compilation import disk_cache
from vkdispatch.base.contexts.selection import default_device, select_queue_families
from vkdispatch.base.devices import DeviceInfo
from vkdispatch.base.errors import BackendUnavailableError, VkDispatchError
from vkdispatch.base.init import get_devices, initialize, is_dummy
from vkdispatch.base.process import LogLevel
from vkdispatch.distributed.command_line import worker

# Functions whose accuracy is shown without --verbose.
_SHOWN = ("sin", "exp", "log", "pow", "sqrt", "division")
_NEAR_ZERO = ("sin", "cos", "tan", "asin", "acos", "log", "log2")


@click.command()
@click.option("--verbose", is_flag=True, help="Also show driver, ids and limits.")
@click.option(
    "--measure/--no-measure",
    default=True,
    help="Whether devices run a kernel that measures their mathematics, where none ever did.",
)
@click.option("--log_info", is_flag=True, help="Print messages of level INFO.")
@click.option(
    "--vulkan_loader_debug_logs",
    "--loader_debug",
    "loader_debug",
    is_flag=True,
    help="Let the Vulkan loader log.",
)
@click.option("--debug", is_flag=True, help="Validation layer, INFO messages and loader messages.")
@click.option("--vulkan", is_flag=True, help="Use the Vulkan backend.")
@click.option("--cuda", is_flag=True, help="Use the CUDA backend.")
@click.option("--opencl", is_flag=True, help="Use the OpenCL backend.")
@click.option("--cache", is_flag=True, help="Show what the disk cache holds, instead of devices.")
@click.option("--clear", is_flag=True, help="With --cache: delete it all.")
@click.version_option(__version__, prog_name="vdlist")
# a parameter for each option of the command line
def cli_entrypoint(  # noqa: PLR0913  public: each is an option of its own
    verbose: bool,
    measure: bool,
    log_info: bool,
    loader_debug: bool,
    debug: bool,
    vulkan: bool,
    cuda: bool,
    opencl: bool,
    cache: bool,
    clear: bool,
) -> None:
    """List the devices that vkdispatch sees; the one it would use by itself is marked."""
    if clear and not cache:
        raise click.UsageError("--clear requires --cache")
    if cache:
        _show_cache(clear)
        return
    chosen = [name for name, wanted in (("vulkan", vulkan), ("cuda", cuda), ("opencl", opencl)) if wanted]
    if len(chosen) > 1:
        raise click.UsageError(f"choose one backend, not {' and '.join(chosen)}")
    level = LogLevel.INFO if log_info or debug else LogLevel.WARNING
    try:
        initialize(debug, level, loader_debug or debug, chosen[0] if chosen else None)
        _list_devices(verbose, measure)
    except BackendUnavailableError as error:
        click.secho(str(error), fg="red", err=True)
        raise SystemExit(1) from None


def _list_devices(verbose: bool, measure: bool) -> None:
    try:
        default: int | None = default_device()
    except BackendUnavailableError:
        raise
    except VkDispatchError as error:
        click.secho(str(error), fg="red", err=True)
        default = None
    for index, device in enumerate(get_devices()):
        click.echo(device.get_info_string(verbose))
        if not is_dummy() and not device.missing:
            _show_accuracy(index, device, verbose, measure)
        if index == default:
            click.echo("\t* vkdispatch uses this device by default.")
        if device.is_cpu():
            click.echo("\t! This is a CPU driver: kernels run on the processor, not on a GPU.")
        click.echo("")


def _show_accuracy(index: int, device: DeviceInfo, verbose: bool, measure: bool) -> None:
    """Print how far off the device's own functions are."""
    # what these import takes longer than all of `vdlist --cache`
    from vkdispatch.base.context import Context
    from vkdispatch.shader.measurement.devices import load_accuracy, measure_accuracy

    known = load_accuracy(device)
    if known is None and measure:
        try:
            with closing(Context([index], [select_queue_families(index, 1)])) as context:
                known = measure_accuracy(context)
        except (VkDispatchError, RuntimeError, MemoryError) as error:
            click.secho(f"\tMathematics of float32 could not be measured: {error}\n", fg="red", err=True)
    if known is None:
        return
    click.echo("\tFloat32 Functions (largest errors measured, in units in the last place):")
    for name in known if verbose else _SHOWN:
        accuracy = known[name]
        # where results come near zero, their units say little
        absolute = f", {accuracy.absolute:.2g} at most" if name in _NEAR_ZERO else ""
        click.echo(
            f"\t\t{name}: {accuracy.ulp:.4g}{absolute} (arguments from {accuracy.low:g} to {accuracy.high:g})"
        )
    click.echo("")


def _show_cache(clear: bool) -> None:
    folder = disk_cache.folder()
    if folder is None:
        click.echo("The disk cache is off (VKDISPATCH_CACHE).")
        return
    click.echo(str(folder))
    for kind, usage in disk_cache.entries().items():
        click.echo(f"\t{kind:<10} {usage.count:>8} entries {usage.size:>14,} bytes")
    total = disk_cache.size()
    click.echo(f"\t{'total':<10} {'':>8}         {total:>14,} bytes of at most {disk_cache.LIMIT:,}")
    if clear:
        click.echo(f"Deleted {disk_cache.clear()} entries.")


@click.group()
@click.version_option(__version__, prog_name="vkdispatch")
def main() -> None:
    """Commands of vkdispatch."""


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print the facts as JSON.")
@click.option("--measure/--no-measure", default=True, help="Whether to measure the bandwidth of copies.")
@click.option(
    "--timeout",
    default=60.0,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    help="Seconds that a driver or device may take before it counts as hanging.",
)
def doctor(as_json: bool, measure: bool, timeout: float) -> None:
    """Examine loader, drivers and devices, and say what to do about each problem.

    The exit status is 1 if something is broken.
    """
    import json

    from vkdispatch.doctor.report import format_facts, gather_facts, is_broken

    facts = gather_facts(measure, timeout)
    click.echo(json.dumps(facts, indent=2) if as_json else format_facts(facts))
    raise SystemExit(is_broken(facts))


main.add_command(worker)


if __name__ == "__main__":
    cli_entrypoint()
