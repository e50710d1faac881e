"""The trials: which form of a kernel, how to plan without it, and the calls that choose it."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from benchmarks.forms.calls import (
    SEQUENCES,
    Case,
    axpy,
    choosing,
    convolution,
    counting,
    drawing,
    keeping,
    on,
    product,
    searching,
    sequence,
    stacking,
    taking,
    transform,
)
from benchmarks.forms.without import (
    change,
    find_by_digits,
    find_small_plane,
    patch,
    patch_transforms,
    plan_by_digits,
    split_single_rows,
)
from vkdispatch.base.record import replace
from vkdispatch.families.tuning import device_facts

# Not by name: some names of modules are names of functions in their packages as well.
_sorts, _products = import_module("vkdispatch.sorting.launching"), import_module("vkdispatch.matrices.plans")
_topk, _counting, _searching, _selection = (
    import_module(f"vkdispatch.selection.{name}") for name in ("topk", "counting", "searchsorted", "tuning")
)
_random = import_module("vkdispatch.random.launching")
_reductions, _scans = (import_module(f"vkdispatch.{name}.planning") for name in ("reduce", "scans"))
_passes, _fft_tuning = (import_module(f"vkdispatch.fft.plan.{name}") for name in ("passes", "tuning"))
_calls, _convolve, _long = (
    import_module(f"vkdispatch.fft.{name}") for name in ("calls", "convolving", "kernels.passes")
)
_taking, _transposing, _joining, _choosing = (
    import_module(f"vkdispatch.rearrange.{name}") for name in ("taking", "transposing", "joining", "choosing")
)

_NEVER, _MANY = 1 << 60, 1 << 30
_SQUARE = on("transpose", 2048, 2048)


class Trial(NamedTuple):
    """A form, the next general one, how to plan without it, and the calls for GPUs and for CPUs.

    `also` is how both are planned.
    """

    name: str
    form: str
    other: str
    without: Callable[[], AbstractContextManager[Any]]
    gpu: tuple[Case, ...] = ()
    cpu: tuple[Case, ...] = ()
    also: Callable[[], AbstractContextManager[Any]] = nullcontext


# ---- The trials ------------------------------------------------------------------------------------------


_LONG = (on("sort", 1 << 20), on("argsort", 1 << 17), on("sort", 3, 10000))

_SORTS = (
    Trial(
        "sort short",
        "each key of a short row counts the keys before it",
        "a workgroup for as many rows as fit; on CPUs, a merge for each row",
        lambda: _sorts.tuning.change(short=0, short_work=0, merge_short=0),
        (on("sort", 1 << 20, 8), on("sort", 1 << 18, 32), on("argsort", 1 << 18, 16), on("sort", 30)),
        (on("sort", 20000, 8), on("sort", 16, 100), on("sort", 300), on("argsort", 4000, 15)),
    ),
    Trial(
        "sort blocks",
        "a workgroup sorts the rows that fit its tile",
        "launches for each digit",
        patch(_sorts, choose_block=lambda *_: None),
        (on("sort", 1 << 14, 1024), on("sort", 1 << 17, 100), on("sort", 4000), on("argsort", 256, 4000)),
    ),
    Trial(
        "sort onesweep",
        "one launch does a digit",
        "three launches",
        change(_sorts.tuning, onesweep=0),
        (on("sort", 1 << 24), on("argsort", 1 << 22), on("sort", 1 << 16), on("sort", 64, 1 << 17)),
    ),
    Trial(
        "sort tiles",
        "rows too long for onesweep: three launches, which rank tiles by votes",
        "the same by tables of invocations, as on devices without votes",
        patch(_sorts, device_facts=lambda: replace(device_facts(), has_ballot=False)),
        (on("sort", 1 << 24), on("argsort", 1 << 22)),
        also=change(_sorts.tuning, onesweep=0),
    ),
    Trial(
        "sort merged",
        "CPUs: an invocation merges a row",
        "long runs of keys",
        change(_sorts.tuning, merge_rows=_NEVER),
        cpu=(on("sort", 1000, 1000), on("sort", 20000, 20), on("sort", 16, 3000), on("argsort", 500, 200)),
    ),
    Trial(
        "sort runs",
        "CPUs: an invocation sorts a long run of keys",
        "the launches of GPUs over tiles",
        patch(
            _sorts._LongSort,
            run_by_runs=lambda self: self._count_tiles(
                _sorts.choose_tile(self._device, self._order.raw, self._payload_type)
            ),
        ),
        cpu=_LONG,
    ),
)

_VECTORS = (
    product((2048, 2048), (2048,)),
    product((2048,), (2048, 2048)),
    product((1 << 17, 16), (16,)),
    product((1 << 20,), (1 << 20,)),
    product((16, 256, 256), (16, 256, 1)),
)

_PRODUCTS = (
    Trial(
        "matmul small",
        "an invocation computes an element of many small products",
        "tiles, or a product with a vector",
        patch(_products, is_small=lambda *_: False),
        (
            product((1 << 18, 4, 4), (1 << 18, 4, 4)),
            product((1 << 20, 3, 3), (1 << 20, 3, 1)),
            product((1 << 16, 8, 8), (1 << 16, 8, 8)),
            product((4, 4), (4, 4)),
            product((1 << 12, 8, 256), (1 << 12, 256, 8)),
        ),
        (
            product((1 << 14, 4, 4), (1 << 14, 4, 4)),
            product((1 << 14, 3, 3), (1 << 14, 3, 1)),
            product((1 << 12, 8, 8), (1 << 12, 8, 8)),
            product((4, 4), (4, 4)),
        ),
    ),
    Trial(
        "matmul vector",
        "products with a vector, at the speed of memory",
        "tiles",
        patch(_products, _plan_vector=_products._plan_matrices),
        (
            product((4096, 4096), (4096,)),
            product((4096,), (4096, 4096)),
            product((1 << 20, 16), (16,)),
            product((1 << 22,), (1 << 22,)),
            product((64, 512, 512), (64, 512, 1)),
        ),
    ),
    Trial(
        "matmul lines as vector",
        "CPUs: products with a vector without barriers",
        "the kernel of GPUs",
        patch(_products, _plan_lines=_products._plan_vector),
        cpu=_VECTORS,
    ),
    Trial(
        "matmul lines",
        "CPUs: products with a vector",
        "panels of matrices",
        patch(_products, _plan_lines=_products._plan_panels),
        cpu=_VECTORS,
    ),
    Trial(
        "matmul panels",
        "CPUs: operands copied to panels",
        "tiles",
        patch(_products, fits_panels=lambda *_: False),
        cpu=(
            product((512, 512), (512, 512)),
            product((100, 100), (100, 100)),
            product((64, 64, 64), (64, 64, 64)),
            product((2000, 16, 16), (2000, 16, 16)),
        ),
    ),
    Trial(
        "matmul cooperative",
        "halves by cooperative matrices",
        "tiles",
        patch(_products, _find_product=lambda request: None),
        (
            product((4096, 4096), (4096, 4096), np.float16),
            product((512, 512), (512, 512), np.float16),
            product((64, 64, 64), (64, 64, 64), np.float16),
        ),
    ),
    Trial(
        "matmul words",
        "halves of odd rows copied to rows of words for cooperative matrices",
        "tiles",
        patch(_products, _find_product=lambda request: None),
        (product((4001, 4001), (4001, 4001), np.float16), product((501, 501), (501, 501), np.float16)),
    ),
    Trial(
        "matmul parts",
        "long sums are computed in parts",
        "in one part",
        patch(_products, _SPLITS=(1,)),
        (product((64, 1 << 16), (1 << 16, 64)), product((256, 4096), (4096, 256))),
    ),
)

_TRANSFORMS = (
    Trial(
        "fft staged",
        "short lines are copied to workgroup memory whole",
        "invocations read their lines",
        patch_transforms(_passes, plan_staged=lambda *_: None),
        (transform("fft", 1 << 20, 3), transform("fft", 1 << 19, 8), transform("fft", 1 << 18, 25)),
    ),
    Trial(
        "fft pairs",
        "pairs of invocations transform lines of primes",
        "Rader's algorithm",
        change(_fft_tuning.tuning, pair_longest=0),
        (transform("fft", 1 << 17, 43), transform("fft", 1 << 17, 67), transform("fft", 1 << 17, 71)),
    ),
    Trial(
        "fft rader",
        "Rader's algorithm",
        "Bluestein's algorithm",
        patch_transforms(_passes, is_rader_length=lambda length: False),
        (transform("fft", 1 << 16, 97), transform("fft", 1 << 13, 1009), transform("fft", 1 << 16, 37)),
        (transform("fft", 1 << 9, 97), transform("fft", 1 << 6, 1009), transform("fft", 1 << 10, 37)),
    ),
    Trial(
        "fft rader lines",
        "workgroups read the lines of Rader's algorithm in the order of memory",
        "invocations read them in the order of the algorithm",
        patch_transforms(_long, _reads_whole_lines=lambda transform: False),
        (transform("fft", 1 << 16, 97), transform("fft", 1 << 13, 1009), transform("fft", 1 << 12, 2017)),
    ),
    Trial(
        "fft real",
        "real lines as complex ones of half the length",
        "complex lines of the same length",
        patch_transforms(_calls, _make_real_fft=lambda transform: None),
        (
            *(transform("rfft", 1 << 24 >> bits, 1 << bits) for bits in (4, 5, 6, 10)),
            *(transform("irfft", 1 << 24 >> bits, 1 << bits) for bits in (4, 6, 10)),
            transform("rfft", 1 << 17, 100),
            transform("irfft", 256, 16384),
        ),
        (transform("rfft", 1 << 8, 1024), transform("rfft", 1 << 12, 64), transform("rfft", 64, 4096)),
    ),
    Trial(
        "fft real linear",
        "spectra of short real lines are written in the order of memory",
        "line by line",
        change(_fft_tuning.tuning, real_few_threads=0),
        (transform("rfft", 1 << 18, 64), transform("rfft", 1 << 20, 16), transform("rfft", 1 << 17, 128)),
    ),
    Trial(
        "fft long real",
        "CPUs: long real lines as complex ones of half the length",
        "complex lines of the same length",
        patch_transforms(_calls, make_long_real_fft=lambda transform: None),
        cpu=(transform("rfft", 1 << 18), transform("rfft", 4, 1 << 16), transform("rfft", 16, 1 << 14)),
    ),
    Trial(
        "fft columns",
        "CPUs: passes of columns",
        "one pass with workgroup memory, or passes of lines",
        change(_fft_tuning.tuning, column_least_values=_NEVER),
        cpu=(transform("fft", 1 << 18), transform("fft", 64, 1024), transform("fft", 512, 512, axis=0)),
    ),
    Trial(
        "fft planes",
        "one kernel transforms planes",
        "one for rows and one for columns",
        patch_transforms(_calls, get_plane_kernel=lambda transform: None),
        (
            transform("fft2", 1 << 12, 64, 64),
            transform("fft2", 1 << 14, 32, 32),
            transform("fft2", 1 << 10, 128, 128),
            transform("fft2", 1 << 16, 8, 8),
            transform("fft2", 1, 64, 64),
        ),
    ),
    Trial(
        "fft planes staged",
        "planes of short rows are copied to workgroup memory whole",
        "invocations read their rows",
        change(_fft_tuning.tuning, plane_staged_width=0),
        (
            *(transform("fft2", 1 << 20 >> 2 * bits, 4 << bits, 4 << bits) for bits in range(4)),
            transform("fft2", 1 << 14, 64, 4),
            convolution(1 << 16, 8, 8),
        ),
    ),
    Trial(
        "fft plane convolution",
        "one kernel convolves planes",
        "one for rows, one for columns, one back",
        patch_transforms(_convolve, get_plane_convolution=lambda planes: None),
        (convolution(1 << 12, 64, 64), convolution(1 << 14, 32, 32), convolution(1, 64, 64)),
    ),
)

_FIRST = (on("topk", 1 << 20, k=16), on("topk", 16, 1 << 16, k=100))

_SELECTIONS = (
    Trial(
        "topk rows",
        "a workgroup takes the first elements of a row",
        "rows are sorted",
        patch(_topk.topk_kernels, suits_rows=lambda *_: False),
        (on("topk", 4096, 1024, k=8), on("topk", 1024, 8192, k=64), on("topk", 1, 4096, k=16)),
        (on("topk", 256, 1024, k=8), on("topk", 64, 8192, k=64), on("topk", 4096, k=16)),
    ),
    Trial(
        "topk narrow",
        "long rows are narrowed down to candidates",
        "rows are sorted",
        patch(_topk, plan_narrowing=lambda *_: None),
        (on("topk", 1 << 24, k=16), on("topk", 64, 1 << 17, k=100), on("topk", 1 << 20, k=1000)),
        _FIRST,
        also=change(_selection.tuning, row_longest=0),
    ),
    Trial(
        "topk narrow or rows",
        "long rows are narrowed down to candidates",
        "a workgroup takes the first elements of a row",
        patch(_topk, plan_narrowing=lambda *_: None),
        (on("topk", 1 << 12, 1 << 15, k=16), on("topk", 64, 1 << 17, k=100), on("topk", 1 << 20, k=100)),
        _FIRST,
        also=change(_selection.tuning, row_longest=1 << 30),
    ),
    Trial(
        "topk sample",
        "a sample bounds the candidates",
        "radix select alone",
        patch(_topk, plan_narrowing=plan_by_digits, find_candidates=find_by_digits),
        (
            on("topk", 1 << 24, k=16),
            on("topk", 64, 1 << 17, k=100),
            on("topk", 1 << 20, k=1000),
            on("topk", 1 << 26, k=100),
        ),
        _FIRST,
    ),
    Trial(
        "topk runs",
        "CPUs: invocations collect the candidates of runs",
        "workgroups flag the candidates of tiles",
        patch(_topk, _RunNarrowing=_topk._Narrowing),
        cpu=_FIRST,
    ),
    Trial(
        "bincount shared",
        "few bins are counted in workgroup memory",
        "in the buffer",
        patch(_counting, shared_words=lambda *_: 0),
        (counting(1 << 24, 256), counting(1 << 24, 4000), counting(1 << 16, 10)),
        (counting(1 << 20, 256), counting(1 << 16, 10)),
    ),
    Trial(
        "bincount weights shared",
        "weights of few bins are summed in workgroup memory",
        "in the buffer",
        patch(_counting, _shared_bins=lambda *_: 0),
        (counting(1 << 24, 256, weighed=True), counting(1 << 22, 1000, weighed=True)),
        (counting(1 << 18, 256, weighed=True),),
    ),
    Trial(
        "searchsorted whole",
        "workgroup memory holds a short table",
        "the table stays in its buffer",
        change(_selection.tuning, search_whole=0),
        (searching(1000, 1 << 24), searching(4000, 1 << 22)),
    ),
)

_MOVES = (
    Trial(
        "transpose tiles",
        "planes are transposed through workgroup memory",
        "an invocation gathers each word",
        patch(_transposing, find_plane=find_small_plane, _plan_narrow=lambda *_: None),
        (on("transpose", 8192, 8192), on("transpose", 256, 256, 256)),
        (on("transpose", 2048, 2048), on("transpose", 100, 100, 100)),
    ),
    Trial(
        "transpose split",
        "reversed axes are planes, one side of which is two axes",
        "an invocation gathers each word",
        patch(_transposing, find_plane=find_small_plane),
        (on("transpose", 256, 256, 256), on("transpose", 1000, 30, 1000), on("transpose", 4096, 3, 4096)),
        (on("transpose", 100, 100, 100), on("transpose", 500, 3, 500)),
    ),
    Trial(
        "transpose blocks",
        "small elements are transposed in the registers of words",
        "elements are moved one by one",
        patch(_transposing, _BLOCK_WORDS=()),
        (on("transpose", 8192, 8192, kind=np.uint8), on("transpose", 8192, 8192, kind=np.float16), _SQUARE),
        (on("transpose", 2048, 2048, kind=np.uint8), on("transpose", 2048, 2048, kind=np.float16), _SQUARE),
    ),
    Trial(
        "transpose sector",
        "parts of odd rows begin at multiples of what memory stores",
        "they begin anywhere",
        change(_transposing.tuning, sector=0),
        (
            on("transpose", 8191, 8193),
            on("transpose", 4097, 4099),
            on("transpose", 4097, 4099, kind=np.float64),
        ),
        (on("transpose", 2047, 2049),),
    ),
    Trial(
        "transpose strip",
        "tiles follow each other in strips",
        "row by row",
        change(_transposing.tuning, strip=0),
        (
            on("transpose", 8192, 8192),
            on("transpose", 1 << 20, 64),
            on("transpose", 64, 1 << 20),
            on("transpose", 4096, 4096, kind=np.float64),
        ),
        (on("transpose", 2048, 2048),),
    ),
    Trial(
        "compact sparse",
        "tiles that keep few elements are written bit by bit",
        "element by element",
        change(_selection.tuning, flag_sparse=_MANY),
        (keeping(1 << 24, 1000), keeping(1 << 24, 30), keeping(1 << 24, 1000, "nonzero")),
        (keeping(1 << 20, 1000), keeping(1 << 20, 30), keeping(1 << 20, 1000, "nonzero")),
    ),
    Trial(
        "random exchange",
        "invocations exchange the words of blocks that begin within an element",
        "each computes the blocks of its elements",
        change(_random.tuning, exchange=0),
        (drawing(1 << 24), drawing(1 << 20)),
        (drawing(1 << 20),),
    ),
    Trial(
        "sort serial",
        "devices without votes: launches over tiles",
        "CPUs' launches over long runs of keys",
        patch(_sorts._LongSort, _count_tiles=lambda self, _: self.run_by_runs()),
        (on("sort", 1 << 22), on("sort", 1 << 18), on("argsort", 64, 1 << 16)),
        also=patch(_sorts, device_facts=lambda: replace(device_facts(), has_ballot=False)),
    ),
    Trial(
        "sort serial blocks",
        "devices without votes: a workgroup sorts the rows that fit its tile",
        "CPUs' merge, an invocation for each row",
        patch(_sorts, choose_form=lambda *_, **__: _sorts.SortForm.MERGED),
        (on("sort", 1 << 14, 1000), on("sort", 1 << 17, 100)),
        also=patch(_sorts, device_facts=lambda: replace(device_facts(), has_ballot=False)),
    ),
)

_OTHERS = (
    Trial(
        "reduce cpu",
        "CPUs: reductions without barriers",
        "the plans of GPUs",
        patch(_reductions, CpuPlanner=_reductions.Planner),
        cpu=(
            on("sum", 1 << 22),
            on("sum", 1000, 1000, axis=1),
            on("sum", 1000, 1000, axis=0),
            on("max", 5000),
        ),
    ),
    Trial(
        "reduce finishing",
        "the last workgroup adds up partial results",
        "another launch",
        patch(_reductions.Planner, _is_finishing=False),
        (on("sum", 1 << 24), on("sum", 1 << 20), on("sum", 1 << 16), on("sum", 8192, 512, axis=0)),
    ),
    Trial(
        "scan look-back",
        "one pass over memory, whose tiles look back",
        "partial results in three launches",
        change(_scans.tuning, lookback=0),
        (on("cumsum", 1 << 24), on("cumsum", 1 << 20), on("cumsum", 64, 1 << 18, axis=1)),
    ),
    Trial(
        "scan native",
        "subgroups add by operations of the device",
        "by shuffles",
        change(_scans.tuning, native=0),
        (on("cumsum", 1 << 24), on("cumsum", 1 << 14, 1000, axis=1), on("cumsum", 1 << 24, kind=np.int32)),
    ),
    Trial(
        "scan rows apart",
        "long rows have tiles of their own",
        "tiles hold parts of rows",
        change(_scans.tuning, rows_apart=_NEVER),
        (on("cumsum", 64, 1 << 18, axis=1), on("cumsum", 8, 1 << 20, axis=1)),
    ),
    Trial(
        "scan rows inside",
        "ranges of whole rows are independent",
        "tiles look back; on CPUs, partial results",
        patch(_scans.Planner, split_by_rows=split_single_rows),
        (on("cumsum", 1 << 14, 1000, axis=1), on("cumsum", 1 << 18, 64, axis=1)),
        (on("cumsum", 2000, 500, axis=1), on("cumsum", 1 << 14, 64, axis=1)),
    ),
    Trial(
        "take staged",
        "rows lie in workgroup memory",
        "elements are taken from the buffer",
        patch(_taking, choose_rows=lambda *_: 0),
        (taking(1 << 16, 256, 256), taking(1 << 14, 1000, 1000, "take_along_axis"), taking(1 << 16, 100, 50)),
    ),
    Trial(
        "transpose narrow",
        "planes of few rows or columns",
        "tiles",
        patch(_transposing, _plan_narrow=lambda *_: None),
        (
            on("transpose", 1 << 24, 3, kind=np.uint8),
            on("transpose", 3, 1 << 22),
            on("transpose", 1 << 22, 5, kind=np.uint8),
        ),
        (
            on("transpose", 1 << 20, 3, kind=np.uint8),
            on("transpose", 3, 1 << 18),
            on("transpose", 1 << 18, 5, kind=np.uint8),
        ),
    ),
    Trial(
        "stack narrow",
        "arrays are interleaved by words",
        "one launch for each array",
        patch(_joining, plan_interleave=lambda *_: None),
        (stacking(3, 1 << 24, np.uint8), stacking(2, 1 << 22, np.float32), stacking(3, 1 << 10, np.float32)),
        (stacking(3, 1 << 20, np.uint8), stacking(2, 1 << 18, np.float32)),
    ),
    Trial(
        "where words",
        "an invocation chooses the elements of a word",
        "one element",
        patch(_choosing, _choose_word=lambda *_, **__: None),
        (choosing(1 << 24), choosing(1 << 24, np.uint8), choosing(1 << 24, np.int16)),
        (choosing(1 << 20), choosing(1 << 20, np.uint8)),
    ),
    Trial(
        "kernel coarse",
        "an invocation of a user's kernel handles several elements",
        "one element",
        nullcontext,
        (axpy(1 << 24, np.float32), axpy(1 << 24, np.float16), axpy(1 << 20, np.float32)),
        (axpy(1 << 20, np.float32), axpy(1 << 18, np.float32)),
    ),
    Trial(
        "spirv repeat",
        "Kompute: repeated dispatches of a sequence become one",
        "a dispatch and a barrier each",
        nullcontext,
        gpu=tuple(sequence(*arguments) for arguments in (*SEQUENCES, ("steps", 1 << 21, 20))),
        cpu=tuple(sequence(*arguments) for arguments in (*SEQUENCES, ("steps", 1 << 18, 20))),
    ),
)

TRIALS = (*_SORTS, *_PRODUCTS, *_TRANSFORMS, *_SELECTIONS, *_MOVES, *_OTHERS)
