"""PyTorch's functions on arrays: CUB's sorts and scans, cuBLAS, Philox."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from benchmarks.libraries import arrays
from benchmarks.problems.problem import Array, Problem
from benchmarks.timing import Work

DEVICE = "cuda"
# float32 is float32, and sums of 16-bit products are of 32
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False


def upload(array: Array) -> torch.Tensor:
    # some arrays are read-only, which torch warns of
    return torch.from_numpy(array if array.flags.writeable else array.view()).to(DEVICE, copy=True)


def download(tensor: torch.Tensor) -> Array:
    # NumPy has no bfloat16
    return np.asarray((tensor.float() if tensor.dtype == torch.bfloat16 else tensor).cpu().numpy())


def sort_by_key(keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    ordered = torch.sort(keys, stable=True)
    return ordered.values, values[ordered.indices]


def put(x: torch.Tensor, indices: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    x[indices] = values
    return x


def transposed(x: torch.Tensor, axes: tuple[int, ...]) -> torch.Tensor:
    return x.permute(axes).contiguous()


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sum": lambda x, axis=None: torch.sum(x, dim=axis),
    "sum-wide": lambda x: torch.sum(x, dtype=torch.float32),
    "mean": torch.mean,
    "var": lambda x, axis=None: torch.var(x, dim=axis, correction=0),
    "norm": torch.linalg.vector_norm,
    "max": lambda x, axis=None: torch.max(x) if axis is None else torch.amax(x, dim=axis),
    "count_nonzero": torch.count_nonzero,
    "argmax": torch.argmax,
    "dot": torch.dot,
    "cumsum": lambda x, axis=0: torch.cumsum(x, dim=axis),
    "cumsum-i32": lambda x: torch.cumsum(x, dim=0, dtype=torch.int32),
    "cumprod": lambda x: torch.cumprod(x, dim=0),
    "cummax": lambda x: torch.cummax(x, dim=0).values,
    "sort": lambda x, descending=False: torch.sort(x, descending=descending).values,
    "argsort": lambda x: torch.argsort(x, stable=True),
    "sort_by_key": sort_by_key,
    "topk": lambda x, k: tuple(torch.topk(x, k)),
    "unique": torch.unique,
    "nonzero": lambda x: torch.nonzero(x)[:, 0],
    "compact": torch.masked_select,
    "searchsorted": lambda table, x: torch.searchsorted(table, x, out_int32=True),
    "histogram": lambda x, bins: torch.histc(x, bins, 0, 1),
    "bincount": lambda x, below: torch.bincount(x, minlength=below),
    "matmul": torch.matmul,
    "matmul-relu": lambda a, b: torch.relu(a @ b),
    "matmul-transposed": lambda a, b: a @ b.T,
    "matmul-bf16": torch.matmul,
    "uniform": lambda count: torch.rand(count, device=DEVICE),
    "uniform-f64": lambda count: torch.rand(count, device=DEVICE, dtype=torch.float64),
    "normal": lambda count: torch.randn(count, device=DEVICE),
    "integers": lambda count: torch.randint(0, 1000, (count,), device=DEVICE, dtype=torch.int32),
    "permutation": lambda count: torch.randperm(count, device=DEVICE, dtype=torch.int32),
    "copy": torch.clone,
    "fill": lambda count, value: torch.full((count,), value, device=DEVICE),
    "transpose": transposed,
    "take": lambda x, indices, axis: torch.index_select(x, axis, indices),
    "put": put,
    "where": torch.where,
    "concatenate": lambda *parts: torch.cat(parts),
    "roll": lambda x, shift: torch.roll(x, shift),
    "pad": lambda x, width: torch.nn.functional.pad(x, (width,) * 4),
}
# What indexes by 64 bits alone, and would convert others in each call.
WIDE_INDICES = ("put",)
# Unsigned integers of 32 bits cannot be indexed in most versions.
SIGNED = {np.dtype(np.uint32): np.int32}


def prepare(problem: Problem) -> tuple[Work, arrays.Fetch]:
    """Return a call with tensors, and what fetches the last results."""

    def given(array: Array) -> torch.Tensor:
        if problem.function == "matmul-bf16":
            return upload(array.view(np.int16)).view(torch.bfloat16)
        array = array.view(SIGNED.get(array.dtype, array.dtype))
        if problem.function in WIDE_INDICES and array.dtype == np.int32:
            array = array.astype(np.int64)
        return upload(array)

    return arrays.eager(problem, FUNCTIONS, given, download)


CASES = arrays.cases(prepare, lambda: torch.cuda.synchronize())
