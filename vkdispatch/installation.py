"""Which distributions bring a package called vkdispatch, and what to do where their files are mixed.

Another project has the same import name, and pip lets the files of one replace those of the other. This
module imports nothing of the package, since any part of it may then be the other project's.
"""

import os
import sys
from typing import NoReturn

DISTRIBUTION = "vkdispatch-gpu"
_PACKAGE = "vkdispatch"


def find_distributions() -> list[dict[str, str]]:
    """Return the installed distributions that bring the package: `name`, `version` and `folder` of each."""
    from importlib import metadata

    distributions: dict[str, dict[str, str]] = {}
    for package in metadata.distributions():
        name = package.metadata["Name"] or ""
        tops = (package.read_text("top_level.txt") or "").split()
        if name.lower() == _PACKAGE or _PACKAGE in tops:
            place = os.path.realpath(str(package.locate_file("")))
            # An editable install is found twice where its sources are also searched.
            distributions.setdefault(
                f"{name} {package.version}", {"name": name, "version": package.version, "folder": place}
            )
    return list(distributions.values())


def is_ours(name: str) -> bool:
    """Whether the distribution of this name is this project's."""
    return name.lower().replace("_", "-") == DISTRIBUTION


def write_repair(names: list[str]) -> str:
    """Return the command that uninstalls these distributions and reinstalls this one."""
    others = sorted({name for name in names if not is_ours(name)})
    return f"pip uninstall -y {' '.join([*others, DISTRIBUTION])} && pip install {DISTRIBUTION}"


def explain_mixture() -> str:
    """Return what is wrong where files of the package are another project's or missing, and what to do."""
    packages = find_distributions()
    titles = [(package["name"], f"{package['name']} {package['version']}") for package in packages]
    ours = [title for name, title in titles if is_ours(name)] or [DISTRIBUTION]
    theirs = [title for name, title in titles if not is_ours(name)]
    folder = next(iter(getattr(sys.modules.get(_PACKAGE), "__path__", [])), _PACKAGE)
    if theirs:
        what = (
            f"{ours[0]} and another project's {' and '.join(theirs)} have the same import name, vkdispatch, "
            f"and their files are mixed in {folder}. Only one of them can be installed at a time."
        )
    else:
        what = (
            f"Files of {ours[0]} are missing or replaced in {folder}. This is what another project's "
            "distribution vkdispatch, which has the same import name, leaves behind. Delete the folder if it "
            "is still there after the uninstallation."
        )
    repair = write_repair([package["name"] for package in packages])
    return f"{what} To repair the installation:\n\n    {repair}\n"


def refuse_mixture() -> NoReturn:
    """Raise ImportError, with what is mixed and how to repair it."""
    raise ImportError(explain_mixture(), name=_PACKAGE)


def is_whole() -> bool:
    """Whether the file `vkdispatch/__init__.py`, which was imported, is this project's."""
    return hasattr(sys.modules[_PACKAGE], "_HOMES")
