"""`python -m vkdispatch` is `vdlist`; with the name of a command it is `vkdispatch`."""

import sys

from vkdispatch.cli import cli_entrypoint, main

if sys.argv[1:2] and not sys.argv[1].startswith("-"):
    main(prog_name="vkdispatch")
else:
    cli_entrypoint()
