"""Run test files in processes of their own: the memory that a sanitizer holds back ends with them.

``python -m tests.files_apart [--jobs N] [--limit SECONDS] [--logs FOLDER] [PATH ...]`` prints a line for each
test file below the paths that fails or has a sanitizer's report. The exit status is 1 if there is any.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SANITIZERS = ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS")
REPORT = re.compile(r"ERROR: AddressSanitizer|runtime error:|WARNING: ThreadSanitizer|Fatal Python error")


def find_files(paths: list[Path]) -> list[Path]:
    """Return the test files below the paths, the largest first: they take longest."""
    files = {file for path in paths for file in ([path] if path.is_file() else path.rglob("test_*.py"))}
    return sorted(files, key=lambda file: (-file.stat().st_size, file))


def run_file(file: Path, log: Path, limit: float) -> tuple[str, str]:
    """Run one file and keep what it prints; return how it ended, "" for well, and pytest's last line."""
    # pytest takes the output of tests to itself, and with it what a sanitizer says before the process ends
    options = {name: f"{os.environ.get(name, '')}:log_path={log}.report" for name in SANITIZERS}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(file)],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **options},
            start_new_session=True,
        )
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return f"takes more than {limit:.0f} s", ""
    text = log.read_text(errors="replace")
    reports = [path.name for path in log.parent.glob(f"{log.name}.report*")]
    last = text.strip().rpartition("\n")[2]
    if reports or REPORT.search(text):
        return f"reports: {' '.join(reports) or log.name}", last
    return ("" if status in (0, 5) else f"exit status {status}"), last


def main() -> int:
    """Run the files and print what failed and a summary."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="*", type=Path, default=[Path("tests")])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--limit", type=float, default=1800.0, help="seconds that a file may take")
    parser.add_argument("--logs", type=Path, default=Path("build", "files_apart"))
    options = parser.parse_args()
    options.logs.mkdir(parents=True, exist_ok=True)
    for old in options.logs.iterdir():
        old.unlink()
    start, passed, bad = time.monotonic(), 0, 0
    files = find_files(options.paths)

    def run(file: Path) -> tuple[Path, str, str]:
        name = str(file.with_suffix(".log")).replace("/", ".")
        return file, *run_file(file, options.logs.resolve() / name, options.limit)

    with ThreadPoolExecutor(options.jobs) as pool:
        for file, trouble, last in pool.map(run, files):
            passed += sum(int(count) for count in re.findall(r"(\d+) passed", last))
            bad += bool(trouble)
            if trouble:
                print(f"{file}: {trouble}; {last}", flush=True)
    print(
        f"{len(files)} files, {bad} with trouble; {passed} tests passed in {time.monotonic() - start:.0f} s"
    )
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
