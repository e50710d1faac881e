"""``python -m benchmarks.floor build``."""

import sys

from benchmarks.floor.build import build


def main(arguments: list[str]) -> int:
    """Build the program; return the exit status."""
    if arguments != ["build"]:
        print("usage: python -m benchmarks.floor build", file=sys.stderr)
        return 2
    print(build())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
