"""Runs programs that others wrote for vkdispatch 0.1.0 on ours and on the original, and compares the results.

The programs are fetched by whoever runs this; nothing of them is kept here. In each of two interpreters, one
of which has vkdispatch 0.1.0, this file runs itself for each task and writes the arrays that came out:

    python -m tests.contract.programs_of_others --tm2d FOLDER --performance FOLDER --original PYTHON

`--ours` names the interpreter for ours (the one that runs this), `--only` a part of the names of the tasks.
tm2d is sharhar/tm2d, which needs tqdm; performance is sharhar/VkDispatchPerformanceTests. Inputs are
synthetic and small. `tm2d_utils`, which tm2d's scripts import and which is not public, is replaced by a
stand-in.
"""

import argparse
import csv
import os
import runpy
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np

Arrays = dict[str, Any]

# Results that differ by more than rounding, relative to the largest number of an array.
_TOLERANCE = 2e-5
# Arrays that differ by more, as task and name begin, and why.
_EXPLAINED = {
    ("tm2d: test", "Z_score0"): "the variance is a difference of sums a thousand times as large",
    ("tm2d: test0", "ca"): "template larger than the image: fft_index >= -32, which 0.1.0 compares unsigned",
    ("tm2d: test0", "cd"): "correlation with a constant, all of it rounding",
    ("performance: conv_2d/vkfft", "test_function, "): "scale of convolve2D with normalize=False",
}
# What tm2d's results hold where nothing was computed.
_UNKNOWN = -1_000_000
_ROOT = Path(__file__).resolve().parents[2]


# ---- what runs in either interpreter --------------------------------------------------------------------


def _atoms(count: int = 200, extent: float = 18.0) -> Any:
    return np.random.default_rng(3).normal(scale=extent / 2, size=(count, 3)).clip(-extent, extent)


def _density(size: int = 32) -> Any:
    """Blobs in a box: real, positive, and of no symmetry."""
    axes = np.meshgrid(*[np.arange(size) - size / 2] * 3, indexing="ij")
    blobs = [(4.0, (2, -3, 1)), (2.5, (-5, 4, -2)), (3.0, (0, 6, 5))]
    return sum(
        np.exp(-sum((axis - at) ** 2 for axis, at in zip(axes, place, strict=True)) / (2 * width**2))
        for width, place in blobs
    ).astype(np.float32)


def _image(shape: tuple[int, ...], seed: int = 5) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _ctf(tm2d: Any, **changes: Any) -> Any:
    values: Arrays = {"defocus": 9000.0, "B": 40.0, "lpp": 60.0, "A_mag": 150.0, "A_ang": 20.0}
    values["even_zernike"] = [0, 0.1, 0, 0.2, 0, 0, 0, 0, 0.05]
    values["odd_zernike"] = [0, 0.3, 0, 0.1, 0, 0]
    return tm2d.CTFParams(**{**values, **changes})


def _templates(tm2d: Any) -> dict[str, Any]:
    atoms, density = _atoms(), _density()
    spectrum = np.fft.fftn(np.fft.fftshift(density))
    return {
        "atomic": tm2d.TemplateAtomic((48, 48), atoms),
        "atomic fused": tm2d.TemplateAtomic((48, 48), atoms, fuse_ctf_convolution=True),
        "atomic without ctf": tm2d.TemplateAtomic((48, 48), atoms, disable_ctf=True),
        "atomic in volts": tm2d.TemplateAtomic((48, 48), atoms, disable_sigma_e=True),
        "atoms counted": tm2d.TemplateAtomic((48, 48), atoms, count_atoms=True),
        "density": tm2d.TemplateDensity(density, 1.5),
        "density without ctf": tm2d.TemplateDensity(density, 1.5, disable_ctf=True),
        "density padded": tm2d.TemplateDensity(density, 1.5, padding_factor=2),
        "density transformed": tm2d.TemplateDensity(spectrum, 1.5, transformed=True),
    }


def _run_templates(kind: str) -> Iterator[tuple[str, Any]]:
    import tm2d

    for name, template in _templates(tm2d).items():
        if name.startswith(kind):
            for count in (1, 3):
                buffer = template.make_template([20, 50, 110], 1.4, _ctf(tm2d), template_count=count)
                yield f"{name}, {count}", buffer.read_real(0)


def _run_comparisons() -> Iterator[tuple[str, Any]]:
    import tm2d

    for name in ("atomic", "density"):
        template = _templates(tm2d)[name]
        buffer = template.make_template([20, 50, 110], 1.4, _ctf(tm2d), template_count=2)
        for images, radius in ((1, None), (2, None), (1, 6), (2, 6)):
            comparator = tm2d.ComparatorCrossCorrelation((images, 64, 64), template.get_shape())
            comparator.set_data(_image((images, 64, 64)))
            found = comparator.compare_template(buffer, output_radius=radius).read_real(0)
            if radius is not None:  # the rest is not written
                found = np.fft.fftshift(found, axes=(1, 2))[:, 26:38, 26:38]
            yield f"{name}, {images}, {radius}", found


def _run_plan(
    name: str, results: str, radius: int | None, weights: bool = False
) -> Iterator[tuple[str, Any]]:
    import tm2d

    template = _templates(tm2d)[name]
    ctf = tm2d.make_ctf_set(
        _ctf(tm2d, B=None, defocus=None), B=np.array([0.0, 30, 90]), defocus=np.array([8e3, 9e3])
    )
    angles = np.array([[0.0, 0, 0], [20, 50, 110], [200, 80, 10]])
    given = {"rotations_weights": np.array([0.5, 1.0, 2.0])} if weights else {}
    params = tm2d.make_param_set(ctf, rotations=angles, pixel_sizes=np.array([1.3, 1.4]), **given)
    shape = (2, 64, 64)
    if results == "pixels":
        found = tm2d.ResultsPixel(shape, output_radius=radius)
    else:
        found = tm2d.ResultsParam(shape[0], params.get_total_count(), output_radius=radius)
    plan = tm2d.Plan(
        template,
        tm2d.ComparatorCrossCorrelation(shape, template.get_shape()),
        found,
        ctf_params=ctf.ctf_params,
        template_batch_size=2,
        output_radius=radius,
        enable_rotation_weights=weights,
    )
    plan.set_data(_image(shape))
    for run in range(2):
        plan.reset()
        plan.run(params, batch_size=8)
        if results == "pixels":
            yield f"{run} mip", found.get_mip()
            yield f"{run} sum", found.get_sum_cross()
            yield f"{run} sum of squares", found.get_sum2_cross()
            yield f"{run} z-scores", _pixel_scores(found)
            yield f"{run} best index", found.get_best_index_array()
        else:
            yield f"{run} z-scores", found.get_zscore_list(params)
            yield f"{run} mip", found.get_mip_list(params)


def _run_kernels() -> Iterator[tuple[str, Any]]:
    import tm2d
    from tm2d.templates import density

    import vkdispatch as vd
    import vkdispatch.codegen as vc

    source, target = vd.RFFTBuffer((2, 32, 32)), vd.RFFTBuffer((2, 32, 32))
    source.write_real(_image((2, 32, 32)))
    density.fftshift(target, source)
    yield "fftshift", target.read_real(0)

    params, types = _ctf(tm2d), _ctf(tm2d).get_type_list(1)

    @vd.shader(exec_size=lambda args: args.param0.size, arg_type_annotations=[vc.Buff[vc.c64], *types])
    def write_ctf(values: Any, *args: Any) -> None:
        i = vc.global_invocation_id().x
        spectrum = vc.new_complex64_register(1, 0)
        kept = [values[i]]
        tm2d.apply_ctfs_to_rfft_signals(spectrum, kept, [0], i, (1, 40, 21), 1.4, params, args)

    buffer = vd.asbuffer(np.zeros((1, 40, 21), np.complex64))
    write_ctf(buffer, *params.get_args(None, 1))
    yield "transfer function", buffer.read(0)

    image = vd.Image3D((16, 16, 16), vd.float32, 2)
    image.write(np.fft.fftn(_density(16)).astype(np.complex64))
    buffer = vd.asbuffer(np.zeros((16, 16, 1), np.complex64))
    density.template_slice(buffer, image.sample(), (16, 16, 16, 0), np.eye(4, dtype=np.float32))
    yield "slice", buffer.read(0)


# ---- scripts of tm2d, with a stand-in for the package that they import ----------------------------------


def _pixel_scores(results: Any) -> Any:
    count = results.get_templates_count()
    mean = results.get_sum_cross() / count
    variance = results.get_sum2_cross() / count - mean**2
    return (results.get_mip() - mean) / np.sqrt(np.maximum(variance, 1e-12))


def _stand_in(tm2d: Any) -> types.ModuleType:
    """Return a module with what the scripts use of `tm2d_utils`, on synthetic data."""
    module = types.ModuleType("tm2d_utils")

    def locate(results: Any) -> tuple[list[Any], list[int]]:
        best = [np.unravel_index(int(np.argmax(mip)), mip.shape) for mip in results.get_mip()]
        return best, [int(at[place]) for at, place in zip(results.get_best_index_array(), best, strict=True)]

    def search(template: Any, micrographs: Any, param_set: Any, output_radius: int, **_: Any) -> Any:
        results = tm2d.ResultsPixel(micrographs.shape, output_radius=output_radius)
        comparator = tm2d.ComparatorCrossCorrelation(micrographs.shape, template.get_shape())
        ctf = param_set.ctf_set.ctf_params
        plan = tm2d.Plan(template, comparator, results, ctf_params=ctf, output_radius=output_radius)
        plan.set_data(micrographs)
        plan.run(param_set)
        return results

    def score(results: Any) -> Any:
        np.save("sum.npy", results.get_sum_cross())
        np.save("sum_of_squares.npy", results.get_sum2_cross())
        return _pixel_scores(results)

    vars(module).update(
        ctf_like_krios=lambda **values: _ctf(tm2d, **values),
        load_coords_from_npz=lambda path: _atoms(extent=60.0),
        load_density_from_mrc=lambda path: types.SimpleNamespace(density=_density(64), pixel_size=1.1),
        whiten_image=lambda image, double_whiten=False: image - image.mean(),
        get_pixel_z_scores=score,
        get_locations_and_indicies_of_best_match=locate,
        run_tm2d_atomic_pixels=lambda template_box_size, atomic_coords, **given: search(
            tm2d.TemplateAtomic(template_box_size, atomic_coords), **given
        ),
        run_tm2d_density_pixels=lambda density, **given: search(
            tm2d.TemplateDensity(density.density, density.pixel_size), **given
        ),
    )
    return module


def _run_script(folder: str, *words: str) -> Iterator[tuple[str, Any]]:
    """Run a script of tm2d as it is, on fewer parameters and on images that it would read from files."""
    import tm2d

    figure = MagicMock(), [MagicMock(), MagicMock()]
    pyplot = MagicMock(subplots=MagicMock(return_value=figure))
    sys.modules.update({"matplotlib": MagicMock(pyplot=pyplot), "matplotlib.pyplot": pyplot})
    sys.modules["tm2d_utils"] = _stand_in(tm2d)
    arange, load = np.arange, np.load

    def fewer(*args: Any, **options: Any) -> Any:
        values = arange(*args, **options)  # the searched parameters are floats
        return values[:: len(values) // 3] if any(isinstance(each, float) for each in args) else values

    np.arange = fewer  # type: ignore[assignment]
    np.load = lambda path, *args: load(path, *args) if Path(path).exists() else _image((512, 512))
    sys.argv = list(words)
    try:
        runpy.run_path(str(Path(folder, words[0])), run_name="__main__")
    finally:
        np.arange, np.load = arange, load
    for path in sorted(Path().glob("*.npy")):
        yield path.stem, np.load(path)


# ---- the performance tests ------------------------------------------------------------------------------


def _run_speed(folder: str, name: str, script: str) -> Iterator[tuple[str, Any]]:
    """Run the script as it is on small data, and its functions on known data."""
    import vkdispatch as vd

    path = str(Path(folder, "tests", name, script))
    sys.path.insert(0, str(Path(folder, "tests")))
    parts = runpy.run_path(path, run_name="parts")
    common = sys.modules["common.run_test"]
    rng = np.random.default_rng(1)
    for function in ("test_function", "test_function_naive"):
        for size in (16, 64, 128):
            if function not in parts:
                continue
            config = parts["Config"](2**15, 1, 1, 1, 8)
            shape = config.make_shape(size)
            values = [rng.normal(size=(2, *shape)).astype(np.float32) for _ in range(2)]
            data, spectrum = (each[0] + 1j * each[1] for each in values)
            buffer = vd.asbuffer(data)
            kernel = vd.asbuffer(np.resize(spectrum, _kernel_shape(vd, name, shape)))
            if "conv_2d" in name and function == "test_function":
                # the layout of such a kernel is private
                kernel_data = vd.asbuffer(spectrum)
                if script.startswith("vkfft"):
                    vd.vkfft.transpose_kernel2D(kernel_data)
                    kernel = kernel_data
                else:
                    vd.fft.transpose(kernel_data, axis=1, out_buffer=kernel)
            np.random.seed(0)
            parts[function](config, size, buffer, kernel)
            yield f"{function}, {size}", buffer.read(0)
    common.get_fft_sizes = lambda: [16, 64]  # type: ignore[attr-defined]
    common.time = types.SimpleNamespace(perf_counter=time.perf_counter, sleep=lambda seconds: None)  # type: ignore[attr-defined]
    sys.argv = [script, str(2**15), "4", "2", "1"]
    runpy.run_path(path, run_name="__main__")
    for table in sorted(Path().glob("*.csv")):
        with table.open() as rows:
            yield f"{table.stem}: rows", np.array(len(list(csv.reader(rows))))


def _run_accuracy(folder: str) -> Iterator[tuple[str, Any]]:
    """Run the test of accuracy as it is, on fewer lengths; yield which relative errors are below 1e-6."""
    sys.path.insert(0, str(Path(folder, "tests", "accuracy")))
    sys.argv = ["accuracy_test.py", str(2**16), "1", "1", "2", "--vulkan"]
    import accuracy_test_utils

    accuracy_test_utils.get_fft_sizes = lambda: [8, 64, 256]
    runpy.run_path(str(Path(folder, "tests", "accuracy", "accuracy_test.py")), run_name="__main__")
    for table in sorted(Path().glob("*.csv")):
        with table.open() as rows:
            errors = [[float(each) for each in row[2:4]] for row in list(csv.reader(rows))[1:]]
        yield table.stem, (np.array(errors) < 1e-6).astype(np.int32)


def _kernel_shape(vd: Any, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    return (
        (max(int(np.prod(shape)), vd.fft.get_transposed_size(shape, axis=1)),) if "conv_2d" in name else shape
    )


def _tasks(tm2d: str, performance: str) -> dict[str, Callable[[], Iterator[tuple[str, Any]]]]:
    tasks: dict[str, Callable[[], Iterator[tuple[str, Any]]]] = {}
    if tm2d:
        tasks["tm2d: atomic templates"] = lambda: _run_templates("atom")
        tasks["tm2d: density templates"] = lambda: _run_templates("density")
        tasks["tm2d: comparisons"] = _run_comparisons
        tasks["tm2d: fftshift, transfer function, slice"] = _run_kernels
        for name in ("atomic", "atomic fused", "density", "density padded"):
            for results in ("pixels", "parameters"):
                for radius in (None, 6):
                    tasks[f"tm2d: plan of {name}, {results}, {radius}"] = (
                        lambda plan=(name, results, radius): _run_plan(*plan)  # type: ignore[misc]
                    )
        tasks["tm2d: plan of atomic, pixels, weights"] = lambda: _run_plan(
            "atomic", "pixels", None, weights=True
        )
        tasks["tm2d: plan of density, parameters, weights"] = lambda: _run_plan(
            "density", "parameters", 6, weights=True
        )
        for words in (
            ("test.py", "atomic"),
            ("test.py", "density"),
            ("test0.py",),
            ("test1.py", "atomic"),
            ("test1.py", "density"),
        ):
            tasks[f"tm2d: {' '.join(words)}"] = lambda words=words: _run_script(tm2d, *words)  # type: ignore[misc]
    if performance:
        tasks["performance: accuracy/accuracy_test.py"] = lambda: _run_accuracy(performance)
        for path in sorted(Path(performance, "tests").glob("*/vk*_test.py")):
            tasks[f"performance: {path.parent.name}/{path.name}"] = (
                lambda at=(path.parent.name, path.name): _run_speed(performance, *at)  # type: ignore[misc]
            )
    return tasks


def _run_task(task: Callable[[], Iterator[tuple[str, Any]]], target: str) -> None:
    import vkdispatch as vd

    vd.make_context(device_ids=0)  # 0.1.0 takes no CPU by itself
    vd.queue_wait_idle()
    began = time.perf_counter(), time.process_time()
    arrays = dict(task())
    seconds = time.perf_counter() - began[0], time.process_time() - began[1]
    np.savez(target, seconds=np.array(seconds), **{f"array {name}": value for name, value in arrays.items()})


# ---- the comparison -------------------------------------------------------------------------------------


def _run_apart(
    python: str, options: argparse.Namespace, task: str, folder: str, paths: list[str]
) -> Arrays | str:
    """Run a task in an interpreter; return the arrays, or the last line of what it said."""
    target = str(Path(folder, "arrays.npz"))
    command = [python, "-W", "ignore", __file__, "--tm2d", options.tm2d, "--performance", options.performance]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    done = subprocess.run(
        # 0.1.0 sometimes crashes or waits for ever when it ends
        [*command, "--task", task, "--target", target, *(["--abrupt"] if python == options.original else [])],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=options.timeout,
    )
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[-1]
        return f"exit status {done.returncode}, {said}"
    with np.load(target) as arrays:
        return dict(arrays)


def _difference(ours: Any, original: Any) -> float:
    """Return the largest difference relative to the largest number; for integers, how many differ."""
    if ours.shape != original.shape:
        return np.inf
    if original.dtype.kind in "iu":
        return float(np.mean(ours != original))
    if not np.array_equal(np.isfinite(ours), np.isfinite(original)):
        return np.inf
    known = np.isfinite(original) & ~((original == _UNKNOWN) & (ours == _UNKNOWN))
    ours, original = ours[known], original[known]
    return float(np.abs(ours - original).max(initial=0) / max(np.abs(original).max(initial=0), 1e-30))


def _explain(task: str, name: str) -> str:
    found = (
        why for (of, of_name), why in _EXPLAINED.items() if task.startswith(of) and name.startswith(of_name)
    )
    return next(found, "")


def _compare(options: argparse.Namespace) -> list[Arrays]:
    rows: list[Arrays] = []
    for task in _tasks(options.tm2d, options.performance):
        if options.only not in task:
            continue
        found: list[Any] = []
        for python, paths in ((options.ours, [str(_ROOT), options.tm2d]), (options.original, [options.tm2d])):
            with tempfile.TemporaryDirectory() as folder:
                found.append(_run_apart(python, options, task, folder, paths))
        row: Arrays = {"task": task, "arrays": 0, "worst": np.nan, "where": "", "agrees": False}
        if any(isinstance(each, str) for each in found):
            named = zip(("ours", "original"), found, strict=True)
            row["where"] = "; ".join(f"{who}: {text}" for who, text in named if isinstance(text, str))
        else:
            ours, original = found
            row["seconds"] = [float(each.pop("seconds")[1]) for each in found]
            missing = sorted(set(ours) ^ set(original))
            differences = {name: _difference(ours[name], original[name]) for name in ours if name in original}
            large = {name[6:]: much for name, much in differences.items() if not much <= _TOLERANCE}
            row["arrays"] = len(differences)
            row["worst"] = max(differences.values(), default=np.inf)
            reasons = {name: _explain(task, name) for name in large}
            texts = [f"{name} {much:.0e} ({reasons[name] or 'unexplained'})" for name, much in large.items()]
            row["where"] = "; ".join([*texts, *(f"{name[6:]} on one side only" for name in missing)])
            row["agrees"] = bool(differences) and not missing and all(reasons.values())
        print(_format(row), flush=True)
        rows.append(row)
    return rows


def _format(row: Arrays) -> str:
    task, count, worst, where = (row[name] for name in ("task", "arrays", "worst", "where"))
    ours, original = row.get("seconds", (np.nan, np.nan))
    return f"{task:52s} {count:3d} {worst:9.1e} {ours:7.2f} {original:7.2f}  {where}"


def _format_page(rows: list[Arrays]) -> str:
    """Return a table for the documentation."""
    lines = [".. list-table::", "   :header-rows: 1", "   :widths: 46 8 10 9 9 18", ""]
    head = ("Program", "Arrays", "Difference", "Ours", "0.1.0", "What differs by more, and why")
    for row in (head, *map(_list_cells, rows)):
        lines += [f"   {'*' if not at else ' '} - {cell}" for at, cell in enumerate(row)]
    return "\n".join(lines) + "\n"


def _list_cells(row: Arrays) -> tuple[str, ...]:
    worst = "" if row["where"] else f"{row['worst']:.0e}"
    ours, original = (f"{seconds:.2f} s" for seconds in row.get("seconds", (np.nan, np.nan)))
    return row["task"], str(row["arrays"]), worst, ours, original, row["where"] or "Nothing"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tm2d", default="", help="folder of tm2d")
    parser.add_argument("--performance", default="", help="folder of the performance tests")
    parser.add_argument("--original", help="Python with vkdispatch 0.1.0")
    parser.add_argument("--ours", default=sys.executable, help="Python for ours")
    parser.add_argument("--only", default="", help="a part of the names of the tasks to run")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for each task")
    parser.add_argument("--page", help="file for the results, a table in reStructuredText")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    parser.add_argument("--target", help=argparse.SUPPRESS)
    parser.add_argument("--abrupt", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        _run_task(_tasks(options.tm2d, options.performance)[options.task], options.target)
        if options.abrupt:
            os._exit(0)
        return 0
    print(f"{'task':52s} arrays  worst    ours  original (processor seconds)  what differs")
    rows = _compare(options)
    if options.page:
        Path(options.page).write_text(_format_page(rows))
    return int(not all(row["agrees"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
