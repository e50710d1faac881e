"""accelpy's commands: `config`, the compilers and the folder of libraries, and `cache`, what is in it."""

import os

import click

from vkdispatch import __version__
from vkdispatch.base.errors import VkDispatchError
from vkdispatch.orders import storage
from vkdispatch.orders.compilers import BuildFailure, find_compilers
from vkdispatch.orders.models import TABLE
from vkdispatch.orders.models.native import NativeModel


@click.group()
@click.version_option(__version__, prog_name="vkdispatch.orders")
def main() -> None:
    """Orders: compilers of this machine, and libraries that are kept."""


@main.command()
@click.option("-d", "--dir", "folder", metavar="FOLDER", help="Keep libraries in FOLDER/lib from now on.")
@click.option("-l", "--libdir", metavar="FOLDER", help="Keep libraries in FOLDER from now on.")
@click.option("--default", is_flag=True, help="Keep libraries in the disk cache again.")
def config(folder: str | None, libdir: str | None, default: bool) -> None:
    """Show the compilers that are found and the folder of libraries, or set that folder."""
    if (folder is not None) + (libdir is not None) + default > 1:
        raise click.UsageError("--dir, --libdir and --default name a folder each; give one of them")
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
        for line in _compilers_of(model) if isinstance(model, NativeModel) else ["needs none"]:
            click.echo(f"\t{model.name:<18} {line}")


@main.command()
@click.option("-a", "--clear-all", is_flag=True, help="Delete all that is kept.")
def cache(clear_all: bool) -> None:
    """Show what is kept of libraries, or delete it."""
    _show_folder()
    usage = storage.usage()
    click.echo(f"kept: {usage.count} files, {usage.size:,} bytes")
    if clear_all:
        try:
            click.echo(f"deleted: {storage.clear()} files")
        except OSError as error:
            raise click.ClickException(str(error)) from None


def _show_folder() -> None:
    place = storage.folder()
    if place is None:
        click.echo("libraries: none are kept (VKDISPATCH_CACHE)")
    else:
        click.echo(f"libraries: {place} ({storage.origin()})")


def _compilers_of(model: NativeModel) -> list[str]:
    """Return a line for each compiler that can be used for a model, or what is missing."""
    try:
        found = [each for each in find_compilers(model.search, None) if each.vendor in model.flags]
    except BuildFailure as failure:
        return [str(failure)]
    if not found:
        return ["none of the compilers here is known for it"]
    idle = model.ready()
    return [f"{each.path}: {each.title}{f'; but {idle}' if idle else ''}" for each in found]
