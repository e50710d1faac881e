"""The modules of deps/ are beside the package: they build it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "deps"))
