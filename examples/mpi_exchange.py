"""The heat equation on several processes: each has some rows, and MPI exchanges those at the edges.

    mpiexec -n 2 python examples/mpi_exchange.py

needs `pip install mpi4py mpich`, or another MPI. Where the memory of the device is memory of the host, MPI
sends it from where it is, and receives into it. Elsewhere the rows at the edges are copied.
"""

from typing import Any

import numpy as np
from mpi4py import MPI

import vkdispatch.numpy as vnp

ROWS, COLUMNS, STEPS = 64, 48, 50


def share_memory(x: vnp.Array) -> Any:
    """Return a NumPy array on the memory of an Array, or None where the device has memory of its own."""
    try:
        return np.from_dlpack(x)
    except BufferError:
        return None


def exchange(comm: MPI.Comm, sent: vnp.Array, to: int, received: vnp.Array, source: int) -> None:
    """Send an Array to one rank while receiving another from one. MPI.PROC_NULL sends or receives nothing."""
    outgoing, incoming = share_memory(sent), share_memory(received)
    if outgoing is None or incoming is None:
        outgoing, incoming = sent.numpy(), received.numpy()
        comm.Sendrecv(outgoing, to, recvbuf=incoming, source=source)
        received[...] = incoming
    else:
        comm.Sendrecv(outgoing, to, recvbuf=incoming, source=source)


def step(u: Any) -> Any:
    """Return the temperatures inside an array after one step."""
    return u[1:-1, 1:-1] + 0.2 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])


def run(comm: MPI.Comm, whole: np.ndarray[Any, Any], steps: int) -> np.ndarray[Any, Any]:
    """Compute steps of an array, of which each rank has as many rows. Return the rows of this rank."""
    count = len(whole) // comm.size
    above = comm.rank - 1 if comm.rank > 0 else MPI.PROC_NULL
    below = comm.rank + 1 if comm.rank < comm.size - 1 else MPI.PROC_NULL
    # a row more on each side belongs to the neighbours, or stays 0
    u = vnp.zeros((count + 2, whole.shape[1]), np.float32)
    u[1:-1] = whole[comm.rank * count : (comm.rank + 1) * count]
    for _ in range(steps):
        exchange(comm, u[1], above, u[-1], below)
        exchange(comm, u[-2], below, u[0], above)
        u[1:-1, 1:-1] = step(u)
    rows: np.ndarray[Any, Any] = u[1:-1].numpy()
    return rows


def main() -> None:
    """Compare the result of all ranks with NumPy's on one."""
    comm = MPI.COMM_WORLD
    whole = np.random.default_rng(0).random((ROWS, COLUMNS), np.float32)
    whole[:, [0, -1]] = 0
    parts = comm.gather(run(comm, whole, STEPS))
    if parts is None:
        return
    expected = np.pad(whole, ((1, 1), (0, 0)))
    for _ in range(STEPS):
        expected[1:-1, 1:-1] = step(expected)
    difference = float(abs(np.concatenate(parts) - expected[1:-1]).max())
    print(f"{comm.size} ranks, largest difference from NumPy: {difference:.1e}")
    if difference > 1e-6:
        raise SystemExit("the results differ")


if __name__ == "__main__":
    main()
