"""Result files: what they hold, where they lie, and their medians."""

import datetime
import json
import os
import platform
import re
import subprocess
from collections.abc import Collection
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
SCHEMA = 1

Report = dict[str, Any]


def commit_of_checkout() -> str:
    """Return the git commit, with a plus sign if tracked files have changed; empty without git."""
    commands = (["rev-parse", "--short=12", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
    try:
        head, changes = (
            subprocess.run(
                ["git", "-C", str(ROOT), *command], capture_output=True, text=True, check=True
            ).stdout.strip()
            for command in commands
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return head + ("+" if changes else "")


def machine() -> dict[str, Any]:
    """Describe the machine."""
    processor = ""
    information = Path("/proc/cpuinfo")
    if information.exists():
        found = re.search(r"^model name\s*: (.*)$", information.read_text(), re.MULTILINE)
        processor = found[1] if found else ""
    return {
        "system": platform.platform(),
        "architecture": platform.machine(),
        "processor": processor,
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
    }


def slug(text: str) -> str:
    """Return small letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def default_path(device: str, tag: str) -> Path:
    """Return results/<device>-<date>[-tag].json."""
    words = [device, datetime.date.today().isoformat(), *([tag] if tag else [])]
    return RESULTS / f"{slug('-'.join(words))}.json"


def save(report: Report, path: Path) -> None:
    """Write a report."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")


def load(path: Path) -> Report:
    """Read a report; raises ValueError if the file is none, or of another version."""
    try:
        report = json.loads(path.read_text())
    except (OSError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is no result file: {error}") from error
    if not isinstance(report, dict) or report.get("schema") != SCHEMA:
        raise ValueError(f"{path} is no result file of version {SCHEMA}")
    return report


def values(report: Report, case: str, name: str, figure: str) -> list[float]:
    """Return the rounds' values; none if it was not measured, failed, or was wrong."""
    outcome = report["cases"].get(case, {}).get("results", {}).get(name, {})
    if not outcome.get("correct"):
        return []
    found: list[float] = outcome["values"].get(figure, [])
    return found


def middle(report: Report, case: str, name: str, figure: str) -> float | None:
    """Return the median over the rounds, or None."""
    found = values(report, case, name, figure)
    return median(found) if found else None


def best(report: Report, case: str, figure: str) -> float | None:
    """Return the median of the library that has most; None if it was not measured."""
    medians = [middle(report, case, name, figure) for name in report["participants"]]
    return max((value for value in medians if value is not None), default=None)


def latest(cases: Collection[str]) -> list[Path]:
    """Return, for each device, the result file that has most of these cases; the newest of several."""
    chosen: dict[str, tuple[int, str, Path]] = {}
    for path in sorted(RESULTS.glob("*.json")):
        try:
            report = load(path)
        except ValueError:
            continue
        count = sum(case in report["cases"] for case in cases)
        found = (count, report["date"], path)
        if count and found > chosen.get(report["device"], (0,)):
            chosen[report["device"]] = found
    return [path for *_, path in chosen.values()]
