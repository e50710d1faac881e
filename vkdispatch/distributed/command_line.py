"""`vkdispatch worker`: workers for a scheduler that runs somewhere."""

import asyncio
import sys
from typing import Any

import click

from vkdispatch.base.errors import MissingPackageError, VkDispatchError


@click.command()
@click.argument("scheduler", required=False)
@click.option(
    "--device",
    "devices",
    multiple=True,
    help="Index, UUID or part of the name of a device, as vdlist shows them; may be repeated. "
    "Default: all GPUs, or the CPU driver.",
)
@click.option("--nworkers", type=int, help="Number of workers; default: one for each device.")
@click.option(
    "--nthreads", type=int, default=1, show_default=True, help="Tasks that a worker runs at a time."
)
@click.option(
    "--memory-limit", default="auto", show_default=True, help="Host memory of each worker, such as 8GiB."
)
@click.option(
    "--device-memory-limit",
    default="auto",
    show_default=True,
    help="Bytes of results that stay on a device, such as 8GiB; 0: no limit.",
)
@click.option("--name", help="Name of the workers; several have a number added.")
@click.option("--resources", default="", help="Further resources, such as 'FAST=1 DISK=2'.")
@click.option(
    "--local-directory", type=click.Path(file_okay=False), help="Folder for what is spilled to disk."
)
@click.option(
    "--scheduler-file", type=click.Path(exists=True), help="File of the scheduler with its address."
)
@click.option("--dashboard-address", help="Address of each worker's dashboard; default: none.")
@click.option("--host", help="Address at which the workers can be reached.")
@click.option("--interface", help="Network interface, such as eth0.")
@click.option("--death-timeout", help="Seconds to wait for the scheduler before closing; default: no limit.")
@click.option("--preload", multiple=True, help="Module to load in each worker; may be repeated.")
@click.option("--tls-ca-file", type=click.Path(exists=True), help="Certificates of authorities, as PEM.")
@click.option("--tls-cert", type=click.Path(exists=True), help="Certificate of the workers, as PEM.")
@click.option("--tls-key", type=click.Path(exists=True), help="Private key of the workers, as PEM.")
def worker(**options: Any) -> None:
    """Start a Dask worker process for each GPU of this machine.

    SCHEDULER is the address of the scheduler, such as tcp://10.0.0.1:8786. The workers run until the
    scheduler closes them, or until this process gets SIGINT or SIGTERM.
    """
    if bool(options["scheduler"]) == bool(options["scheduler_file"]):
        raise click.UsageError("pass the address of the scheduler, or --scheduler-file")
    try:
        sys.exit(asyncio.run(_run(options)))
    except VkDispatchError as error:
        raise click.ClickException(str(error)) from None


# Options that a nanny takes as they are.
_PASSED_ON = ("scheduler_file", "host", "interface", "death_timeout", "dashboard_address")


async def _run(options: dict[str, Any]) -> int:
    """Run workers until they are closed, and return the exit status."""
    try:
        from distributed import Security
        from distributed._signals import wait_for_signals
    except ImportError as error:
        raise MissingPackageError(
            f"workers need the packages of the extra: pip install 'vkdispatch-gpu[dask]' ({error})"
        ) from error
    from vkdispatch.distributed.cluster import VulkanNanny, nanny_options, parse_host_limit
    from vkdispatch.distributed.worker import choose_devices, pin

    # a whole number is an index
    wanted = list(options["devices"]) or None
    infos = choose_devices(wanted, options["nworkers"])
    limit = options["memory_limit"]
    files = {"tls_ca_file": "tls_ca_file", "tls_cert": "tls_worker_cert", "tls_key": "tls_worker_key"}
    security: dict[str, Any] = {files[name]: options[name] for name in files if options[name]}
    if security:
        security["require_encryption"] = True
    common = nanny_options(
        options["nthreads"],
        parse_host_limit(limit if limit == "auto" else _as_number(limit), len(infos)),
        _as_number(options["device_memory_limit"]),
        _parse_resources(options["resources"]),
        options["local_directory"],
        {
            "preload": list(options["preload"]) or None,
            **{name: options[name] for name in _PASSED_ON},
            "dashboard": options["dashboard_address"] is not None,
            "security": Security(**security),
        },
    )
    name = options["name"]
    nannies = [
        VulkanNanny(
            options["scheduler"],
            name=name if name is None or len(infos) == 1 else f"{name}-{number}",
            env=pin(info),
            **common,
        )
        for number, info in enumerate(infos)
    ]
    for info, nanny in zip(infos, nannies, strict=True):
        click.echo(f"Worker on {info.device_name} for {nanny.scheduler_addr}")
    signals = asyncio.create_task(wait_for_signals())
    started = asyncio.create_task(_run_all(nannies))
    try:
        await asyncio.wait([signals, started], return_when=asyncio.FIRST_COMPLETED)
        if started.done():
            await started
    except Exception as error:
        reason = error.__cause__ or error  # `distributed` says only that its server failed to start
        text = f"{type(reason).__name__}: {reason}".removesuffix(": ")
        click.echo(f"Error: the workers could not be started: {text}", err=True)
        return 1
    finally:
        signals.cancel()
        started.cancel()
        await asyncio.gather(*(nanny.close() for nanny in nannies), return_exceptions=True)
    return 0


async def _run_all(nannies: list[Any]) -> None:
    """Start workers, and return when all of them are closed."""
    await asyncio.gather(*nannies)
    await asyncio.gather(*(nanny.finished() for nanny in nannies))


def _as_number(text: str) -> int | float | str:
    """Return a size as a number of bytes, or of parts of the memory, if the text is a number."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _parse_resources(text: str) -> dict[str, float]:
    resources = {}
    for entry in text.replace(",", " ").split():
        name, equals, value = entry.partition("=")
        try:
            resources[name] = float(value)
        except ValueError:
            equals = ""
        if not (name and equals):
            raise click.BadParameter(
                f"expected entries such as FAST=1, got {entry!r}", param_hint="--resources"
            )
    return resources
