"""Forms on trial: other kernels are planned without a form, and results are compared."""

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.forms.__main__ import Row, agree, main
from benchmarks.forms.trials import TRIALS
from vkdispatch.families.tuning import device_facts


def test_every_trial_has_calls_and_a_name_of_its_own() -> None:
    assert len({trial.name for trial in TRIALS}) == len(TRIALS)
    assert all(trial.gpu or trial.cpu for trial in TRIALS)


def test_other_kernels_are_planned_without_a_form() -> None:
    if not device_facts().is_cpu:
        pytest.skip("these are trials of CPUs")
    names = "sort merged,matmul lines,fft rader,topk rows,transpose narrow"
    done = CliRunner().invoke(main, ["--plans", "--only", names])
    assert done.exit_code == 0, done.output
    lines = [line for line in done.output.splitlines() if line.startswith("    ") and "->" not in line]
    assert len(lines) > 15 and all("other kernels" in line for line in lines), done.output


def test_results_are_compared() -> None:
    x = np.array([1.0, 2.0], np.float32)
    assert agree([x], [x * np.float32(1 + 1e-6)]) and not agree([x], [x * np.float32(1.01)])
    assert not agree([np.array([1, 2])], [np.array([1, 3])])
    assert not agree([x], [np.array([1, np.nan], np.float32)])


def test_rows_without_a_measurement_gain_nothing() -> None:
    assert Row("a", "b", "eager", (2, 3), (2, 3), ([], [])).gain == 1.5
    assert Row("a", "b", "eager", (2, 3), (2, 3), ([], []), "same kernels").gain == 0
