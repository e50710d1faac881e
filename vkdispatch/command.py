"""Where the command `vkdispatch` starts. No other project has a file of this name, which could replace it."""

import sys

from vkdispatch.installation import explain_mixture, is_whole


def main() -> None:
    """Run the command, or say why it cannot run."""
    if not is_whole():
        sys.exit(f"error: {explain_mixture()}")
    from vkdispatch.cli import main as run

    run()
