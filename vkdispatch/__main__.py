"""`python -m vkdispatch` is `vdlist`."""

from vkdispatch.cli import cli_entrypoint

cli_entrypoint()
