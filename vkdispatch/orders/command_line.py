"""The commands of accelpy: `config` for compilers and the folder of libraries, `cache` for its contents."""

import os

import click

from vkdispatch import __version__
from vkdispatch.base.errors import VkDispatchError
from vkdispatch.orders import compilers as storage
from vkdispatch.orders.compilers import BuildFailure, find_compilers
from vkdispatch.orders.models import TABLE
from vkdispatch.orders.models.native import NativeModel


@click.group()
@click.version_option(__version__, prog_name="vkdispatch.orders")
def main() -> None:
    """Orders: the compilers of this machine, and the stored libraries."""


@main.command()
@click.option("-d", "--dir", "folder", metavar="FOLDER", help="Store libraries in FOLDER/lib from now on.")
@click.option("-l", "--libdir", metavar="FOLDER", help="Store libraries in FOLDER from now on.")
@click.option("--default", is_flag=True, help="Store libraries in the disk cache again.")
def config(folder: str | None, libdir: str | None, default: bool) -> None:
    """Show the compilers and the folder of libraries, or set that folder."""
    if (folder is not None) + (libdir is not None) + default > 1:
        raise click.UsageError("--dir, --libdir and --default exclude one another")
    if folder is not None:
        if not folder.strip():
            raise click.UsageError("--dir: expected the path of a folder, got ''")
        libdir = os.path.join(folder, "lib")
    if libdir is not None or default:
        try:
            storage.choose_folder(libdir)
        except (OSError, VkDispatchError) as error:
            raise click.ClickException(str(error)) from None
        _show_folder()
        return
    _show_folder()
    click.echo("compilers:")
    for model in TABLE.values():
        for line in _list_compilers(model) if isinstance(model, NativeModel) else ["needs none"]:
            click.echo(f"\t{model.name:<18} {line}")


@main.command()
@click.option("-a", "--clear-all", is_flag=True, help="Delete all stored files.")
def cache(clear_all: bool) -> None:
    """Show the number and size of the stored files, or delete them."""
    _show_folder()
    usage = storage.measure_usage()
    click.echo(f"stored: {usage.count} files, {usage.size:,} bytes")
    if clear_all:
        try:
            click.echo(f"deleted: {storage.clear()} files")
        except OSError as error:
            raise click.ClickException(str(error)) from None


def _show_folder() -> None:
    place = storage.find_folder()
    if place is None:
        click.echo("libraries: not stored (VKDISPATCH_CACHE)")
    else:
        click.echo(f"libraries: {place} ({storage.describe_origin()})")


def _list_compilers(model: NativeModel) -> list[str]:
    """Return a line for each compiler of a model, or one that states what is missing."""
    try:
        compilers = [
            compiler for compiler in find_compilers(model.search, None) if compiler.vendor in model.flags
        ]
    except BuildFailure as failure:
        return [str(failure)]
    if not compilers:
        return ["no known options for the compilers on this machine"]
    obstacle = model.find_obstacle()
    return [
        f"{compiler.path}: {compiler.title}{f'; but {obstacle}' if obstacle else ''}"
        for compiler in compilers
    ]
