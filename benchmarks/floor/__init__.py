"""The limit's column: what raw Vulkan costs and moves, measured by a program of our own in C++."""

from pathlib import Path

FOLDER = Path(__file__).resolve().parent
BUILD = FOLDER / "build"
PROGRAM = BUILD / "floor"
