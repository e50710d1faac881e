"""Logistic regression on real data, as a program for Kompute and as one for vkdispatch.

Which of 569 tumours of the breast are benign is learned from 30 measures of their cells (the Wisconsin
data, which come with scikit-learn). Run as a program it writes logistic_regression.png (or what `--output`
names) and fails if the device and the CPU disagree.
"""

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.datasets import load_breast_cancer

import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch.kompute as kp
from vkdispatch.codegen.abbreviations import Buff, f32

Array = npt.NDArray[Any]

OUTPUT = Path("logistic_regression.png")  # in the current folder
STEPS = 500
REPEATS = 3  # of which the fastest counts
RATE = 0.3
RIDGE = 0.02  # weight of the squared weights in the loss; the constant term is free
# The largest errors allowed: of weights of about 1 after all steps in float64; of the least loss.
TOLERANCE = {"weights, NumPy": 1e-5, "loss, SciPy": 1e-5}


@dataclass
class Cases:
    """Measures, a row for each case and a last column of ones, and the outcomes: 0 or 1."""

    measures: Array
    outcomes: Array


def tumours() -> tuple[Cases, Cases]:
    """Return cases to learn from, and every fourth one, to be judged by them."""
    measures, outcomes = load_breast_cancer(return_X_y=True)
    judged = np.arange(len(outcomes)) % 4 == 3
    known = measures[~judged]
    scaled = (measures - known.mean(axis=0)) / known.std(axis=0)
    rows = np.column_stack((scaled, np.ones(len(outcomes)))).astype(np.float32)
    classes = outcomes.astype(np.float32)
    return Cases(rows[~judged], classes[~judged]), Cases(rows[judged], classes[judged])


# -- Kompute: the device finds slopes and losses of the cases; the host averages them and takes the step

SLOPES = """
#version 450
layout(local_size_x = 64) in;
layout(push_constant) uniform Sizes { uint cases; uint weights; };
layout(set = 0, binding = 0) readonly buffer Measures { float measure[]; };
layout(set = 0, binding = 1) readonly buffer Outcomes { float outcome[]; };
layout(set = 0, binding = 2) readonly buffer Weights { float weight[]; };
layout(set = 0, binding = 3) writeonly buffer Slopes { float slope[]; };
layout(set = 0, binding = 4) writeonly buffer Losses { float loss[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= cases) return;
    float z = 0.0;
    for (uint j = 0; j < weights; j++) z += weight[j] * measure[i * weights + j];
    float error = 1.0 / (1.0 + exp(-z)) - outcome[i];
    for (uint j = 0; j < weights; j++) slope[i * weights + j] = error * measure[i * weights + j];
    loss[i] = max(z, 0.0) - z * outcome[i] + log(1.0 + exp(-abs(z)));
}
"""


def train_with_kompute(cases: Cases, steps: int) -> tuple[Array, Array]:
    """Return weights after so many steps down the slope, and the mean loss before each."""
    count, width = cases.measures.shape
    manager = kp.Manager()
    measures, outcomes = manager.tensor(cases.measures), manager.tensor(cases.outcomes)
    weights = manager.tensor(np.zeros(width))
    slopes, losses = manager.tensor(np.zeros(count * width)), manager.tensor(np.zeros(count))
    tensors = [measures, outcomes, weights, slopes, losses]
    spirv = kp.compile_glsl(SLOPES)
    groups = (-(-count // 64), 1, 1)
    algorithm = manager.algorithm(tensors, spirv, groups, push_consts=np.array([count, width], np.uint32))

    manager.sequence().eval(kp.OpSyncDevice([measures, outcomes]))
    sequence = (
        manager.sequence()
        .record(kp.OpSyncDevice([weights]))
        .record(kp.OpAlgoDispatch(algorithm))
        .record(kp.OpSyncLocal([slopes, losses]))
    )
    # views of the host's memory: the same ones at all times
    weight, slope, loss = weights.data(), slopes.data().reshape(count, width), losses.data()
    history = np.empty(steps)
    for step in range(steps):
        sequence.eval()
        history[step] = loss.mean()
        down = slope.mean(axis=0)
        down[:-1] += RIDGE * weight[:-1]
        weight -= RATE * down
    return weight.copy(), history


# -- vkdispatch: the device takes the steps as well


@vd.shader("errors.size")
def find_errors(measures: Buff[f32], outcomes: Buff[f32], weights: Buff[f32], errors: Buff[f32]) -> None:
    """Compare what the weights say of each case with its outcome."""
    i = vc.global_invocation_id().x
    z = 0.0
    for j in range(weights.shape.x):
        z += weights[j] * measures[j, i]
    errors[i] = 1 / (1 + vc.exp(-z)) - outcomes[i]


@vd.shader(workgroups="weights.size", local_size=64)
def take_step(measures: Buff[f32], errors: Buff[f32], weights: Buff[f32]) -> None:
    """Go down the slope; each subgroup takes one weight, and sums up what the cases say of it."""
    j = vc.workgroup_id().x * vc.num_subgroups() + vc.subgroup_id()
    cases = errors.shape.x
    if j < weights.shape.x:
        part = 0.0
        for i in range(vc.subgroup_invocation_id(), cases, vc.subgroup_size()):
            part += errors[i] * measures[j, i]
        down = vc.subgroup_add(part) / cases
        if j + 1 < weights.shape.x:
            down += RIDGE * weights[j]
        if vc.subgroup_elect():
            weights[j] = weights[j] - RATE * down


def train_natively(cases: Cases, steps: int) -> Array:
    """Return weights after so many steps down the slope."""
    count, width = cases.measures.shape
    measures, outcomes = vd.asbuffer(cases.measures.T), vd.asbuffer(cases.outcomes)  # a row for each measure
    weights = vd.asbuffer(np.zeros(width, np.float32))
    errors = vd.Buffer(count, vd.float32)
    graph = vd.CommandGraph()
    find_errors(measures, outcomes, weights, errors, graph=graph)
    take_step(measures, errors, weights, graph=graph)
    graph.submit(steps)
    found: Array = weights.read(0)
    return found


# -- what they are compared with, in float64


def numpy_slope(weights: Array, cases: Cases) -> Array:
    """Return the slope of the loss."""
    measures = cases.measures.astype(np.float64)
    down: Array = measures.T @ (expit(measures @ weights) - cases.outcomes) / len(measures)
    down[:-1] += RIDGE * weights[:-1]
    return down


def numpy_loss(weights: Array, cases: Cases) -> float:
    """Return the loss: the mean of all cases, and the squares of the weights."""
    z = cases.measures.astype(np.float64) @ weights
    return float((np.logaddexp(0, z) - z * cases.outcomes).mean() + RIDGE / 2 * (weights[:-1] ** 2).sum())


def numpy_train(cases: Cases, steps: int) -> Array:
    """Return weights after so many steps down the slope."""
    weights = np.zeros(cases.measures.shape[1])
    for _ in range(steps):
        weights -= RATE * numpy_slope(weights, cases)
    return weights


def accuracy(weights: Array, cases: Cases) -> float:
    """Return the share of cases that are judged rightly."""
    return float(((cases.measures @ weights > 0) == (cases.outcomes > 0.5)).mean())


def agrees(who: str, what: str, error: float) -> bool:
    """Print an error; return whether it is within the tolerance."""
    good = error <= TOLERANCE[what]  # so that NaN fails
    print(f"  {who:<18} {what:<16} {error:.1e}; allowed {TOLERANCE[what]:.0e}: {'ok' if good else 'FAILED'}")
    return good


def check(who: str, weights: Array, cases: Cases, steps: int = STEPS) -> bool:
    """Compare weights with NumPy's after the same steps, and their loss with the least that SciPy finds."""
    best = minimize(
        numpy_loss, np.zeros(len(weights)), args=(cases,), jac=numpy_slope, options={"gtol": 1e-8}
    )
    above = numpy_loss(weights.astype(np.float64), cases) - best.fun
    return all(
        [
            agrees(who, "weights, NumPy", float(np.abs(weights - numpy_train(cases, steps)).max())),
            agrees(who, "loss, SciPy", above),
        ]
    )


def draw(history: Array, weights: Array, judged: Cases, path: Path) -> None:
    """Draw the way down, and what is said of the cases that were not learned from."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.loglog(np.arange(1, len(history) + 1), history, color="#2e6fe4")
    left.set(xlabel="step", ylabel="loss, mean of the cases", title="learning")
    said = expit(judged.measures @ weights)
    kinds = [said[judged.outcomes < 0.5], said[judged.outcomes > 0.5]]
    right.hist(
        kinds,
        bins=20,
        range=(0, 1),
        stacked=True,
        color=["#e4572e", "#2e6fe4"],
        label=["malignant", "benign"],
    )
    right.set(xlabel="probability of being benign", ylabel="cases", title="cases not learned from")
    right.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def make_figure(path: Path) -> bool:
    """Train both ways, time, compare and draw; return whether device and CPU agree."""
    known, judged = tumours()
    train_with_kompute(known, 1), train_natively(known, 1)  # compiles
    seconds: dict[str, list[float]] = {"vkdispatch.kompute": [], "vkdispatch": []}
    for _ in range(REPEATS):
        start = time.perf_counter()
        weights, history = train_with_kompute(known, STEPS)
        middle = time.perf_counter()
        native = train_natively(known, STEPS)
        seconds["vkdispatch.kompute"].append(middle - start)
        seconds["vkdispatch"].append(time.perf_counter() - middle)
    device = vd.get_context().device_infos[0].device_name
    print(f"{STEPS} steps over {len(known.outcomes)} tumours on {device}:")
    for who, found in (("vkdispatch.kompute", weights), ("vkdispatch", native)):
        share = f"right about {accuracy(found, judged):.1%} of {len(judged.outcomes)} other tumours"
        print(f"  {who:<18} {min(seconds[who]) * 1e3:.0f} ms; {share}")
    correct = check("vkdispatch.kompute", weights, known) & check("vkdispatch", native, known)
    draw(history, weights, judged, path)
    return correct


def main(output: Path = OUTPUT) -> int:
    """Run everything; return the exit status."""
    correct = make_figure(output)
    print(f"Losses, and what is said of other cases: {output}")
    return 0 if correct else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=OUTPUT, help="the picture to write")
    sys.exit(main(parser.parse_args().output))
