"""A million launches: memory must stay flat. Prints what there is, and exits with 1 if it grows.

python benchmarks/soak.py [--launches 1000000] [--bound-mib 8]
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np

import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch_native as native
from vkdispatch.codegen.abbreviations import Buff, Const, u32

ROUNDS = 10


@vd.shader("data.size")
def add(data: Buff[u32], value: Const[u32]) -> None:
    """Add a number to each element."""
    i = vc.global_invocation_id().x
    data[i] = data[i] + value


def resident() -> int:
    """Return the bytes of memory that this process really has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def allocations() -> int:
    """Return how often the native module has asked for memory."""
    return native.allocation_count() or 0


def main() -> int:
    """Launch, and look at memory ten times on the way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--launches", type=int, default=1_000_000)
    parser.add_argument("--bound-mib", type=float, default=8.0, help="growth after the first tenth")
    options = parser.parse_args()
    data = vd.asbuffer(np.zeros(4, np.uint32))
    each = options.launches // ROUNDS
    print(vd.get_context().device_infos[0].device_name)
    print(f"{'launches':>9} {'MiB':>8} {'allocations':>12} {'Python blocks':>14} {'s':>6}")
    first = 0
    begin = time.perf_counter()
    for turn in range(ROUNDS):
        asked, blocks = allocations(), sys.getallocatedblocks()
        for _ in range(each):
            add(data, 1)
        vd.queue_wait_idle()
        asked, blocks = allocations() - asked, sys.getallocatedblocks() - blocks
        now = resident()
        first = first or now
        row = f"{(turn + 1) * each:9} {now / 2**20:8.1f} {asked:12} {blocks:14}"
        print(f"{row} {time.perf_counter() - begin:6.1f}")
    if not (data.read(0) == each * ROUNDS).all():
        print("a launch was lost")
        return 1
    grown = (resident() - first) / 2**20
    print(f"grown after the first tenth: {grown:.2f} MiB")
    return int(grown > options.bound_mib)


if __name__ == "__main__":
    sys.exit(main())
