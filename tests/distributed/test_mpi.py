"""Arrays and buffers sent by mpi4py between two processes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mpi4py")
EXAMPLE = Path(__file__).parents[2] / "examples" / "mpi_exchange.py"
AS_ROOT = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")  # what Open MPI asks of root


def run_ranks(*arguments: str, **environment: str) -> str:
    """Run Python in two processes of MPI, and return what they print."""
    beside = Path(sys.executable).with_name("mpiexec")
    launcher = str(beside) if beside.exists() else shutil.which("mpiexec")
    if launcher is None:
        pytest.skip("there is no mpiexec")
    done = subprocess.run(
        [launcher, "-n", "2", sys.executable, *arguments],
        env={**os.environ, **dict.fromkeys(AS_ROOT, "1"), **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode and re.search(
        r"cannot load MPI|libmpi\S* *: cannot open|not enough slots", done.stderr
    ):
        pytest.skip(f"MPI does not run here: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr
    return done.stdout


# With transfers staged, device memory is not memory of the host: the rows are copied.
@pytest.mark.parametrize("staged", ["0", "1"])
def test_example(staged: str) -> None:
    output = run_ranks(str(EXAMPLE), VKDISPATCH_FORCE_STAGING=staged)
    assert re.fullmatch(r"2 ranks, largest difference from NumPy: \S+\n", output)


OBJECTS = """
import numpy as np
from mpi4py import MPI
import vkdispatch as vd
import vkdispatch.numpy as vnp

comm = MPI.COMM_WORLD
rank, other = comm.rank, 1 - comm.rank
x = vnp.arange(6, dtype=np.float32).reshape(2, 3) + 10 * rank
buffer = vd.asbuffer(np.arange(4, dtype=np.int32) + rank)
try:
    view = np.from_dlpack(buffer)
except BufferError:
    view = None
if view is not None:
    # mpi4py itself takes what has DLPack, and reads expressions that are not computed yet
    received, total = vnp.zeros((2, 3), np.float32), vnp.zeros(4, np.int32)
    comm.Sendrecv(x * 2, other, recvbuf=received, source=other)
    np.testing.assert_array_equal(received, (np.arange(6).reshape(2, 3) + 10 * other) * 2)
    comm.Allreduce(buffer, total)
    np.testing.assert_array_equal(total + 1, np.arange(4) * 2 + 2)
    try:
        comm.Send(x[:, ::2], other)
    except BufferError as error:
        assert "not contiguous" in str(error)
    else:
        raise AssertionError("sent what is not contiguous")
# pickles work everywhere: they hold the elements
np.testing.assert_array_equal(comm.sendrecv(x, other, source=other), np.arange(6).reshape(2, 3) + 10 * other)
assert comm.sendrecv(buffer, other, source=other).read(0).tolist() == [other, other + 1, other + 2, other + 3]
if rank == 0:
    print("done")
"""


def test_messages_of_mpi4py(tmp_path: Path) -> None:
    path = tmp_path / "objects.py"
    path.write_text(OBJECTS)
    assert run_ranks(str(path)) == "done\n"
