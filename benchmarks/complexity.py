"""The paper's table of complexities, measured: how time grows with rows N, features D and classes C.

For every row of the table a counterpart is run on Gaussian classes at several sizes along one axis, the other
two held fixed. An exponent is the slope of log time over log size, by least squares. Sizes take turns, each
time is the best of several repeats, and everything runs in one thread. Run with ``make bench-complexity``;
``--quick`` takes small sizes and stores nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits

from maxdisc import DiscriminativeMaxEnt, Joint, MaxDiscClassifier

HERE = Path(__file__).resolve().parent
N_TEST = 300
STEPS = 10


@dataclass(frozen=True)
class Row:
    """A row of the paper's table and its counterpart.

    ``paper`` has, for each phase, the paper's order and its exponents in N, D and C; a phase without them
    explains the others. ``axes`` has the sizes along each axis, and the other two numbers.
    """

    name: str
    run: Callable[[np.ndarray, np.ndarray, np.ndarray], dict[str, float]]
    paper: dict[str, tuple[str, tuple[int, int, int] | None]]
    axes: dict[str, tuple[tuple[int, ...], dict[str, int]]]


def seconds(work):
    start = time.process_time()  # one thread: what it worked, whatever else the machine was doing
    result = work()
    return time.process_time() - start, result


def prediction(model, T):
    return {"prediction, a row": seconds(lambda: model.predict(T))[0] / len(T)}


def memd(divergence):
    def run(X, y, T):
        model = MaxDiscClassifier("gaussian", divergence=divergence, n_features="all", smoothing=1.0)
        # A batch only adds sums: densities, ranking and decision are made when they are first asked for.
        estimation = seconds(lambda: model.partial_fit(X, y))[0]
        ranking = seconds(lambda: model.scores_)[0]
        return {"estimation": estimation, "ranking": ranking, **prediction(model, T)}

    return run


def greedy(X, y, T):
    structure = Joint(covariance="shared", shrinkage=0.2, search="greedy", transform=None)
    model = MaxDiscClassifier("gaussian", structure=structure, n_features=0.25, evidence="raw", smoothing=1.0)
    return {"training": seconds(lambda: (model.fit(X, y), model.scores_))[0], **prediction(model, T)}


def libsvm(X, y, T):
    model = SVC(kernel="linear")
    training = seconds(lambda: model.fit(X, y))[0]
    counts = {"iterations": float(model.n_iter_.sum()), "support vectors": float(model.n_support_.sum())}
    return {"training": training, **counts, **prediction(model, T)}


def liblinear(X, y, T):
    model = LinearSVC()
    return {"training": seconds(lambda: model.fit(X, y))[0], **prediction(model, T)}


def dme(X, y, T):
    few = DiscriminativeMaxEnt("lbfgs", max_iter=STEPS, tol=0.0)
    model = DiscriminativeMaxEnt("lbfgs", tol=1e-4)
    a_step = seconds(lambda: few.fit(X, y))[0] / STEPS
    training = seconds(lambda: model.fit(X, y))[0]
    return {"training": training, "one step": a_step, "steps": float(model.n_iter_), **prediction(model, T)}


def dme_by_scaling(X, y, T):
    model = DiscriminativeMaxEnt("gis", max_iter=STEPS, tol=0.0)
    return {"one step": seconds(lambda: model.fit(X, y))[0] / STEPS, **prediction(model, T)}


PREDICT_K = {"prediction, a row": ("O(MK)", (0, 1, 1))}
ESTIMATE = {"estimation": ("O(MNd)", (1, 1, 1))}
SVM = {
    "training": ("#iterations O(Md), #iterations ~ N^2", (2, 1, 1)),
    "iterations": ("~ N^2", (2, 0, 0)),
    "support vectors": ("S", None),
    "prediction, a row": ("O(M^2 Sd)", (1, 1, 2)),
}
ONE_STEP = {"one step": ("O(MNd)", (1, 1, 1))}
WIDE = {
    "N": ((2000, 4000, 8000, 16000, 32000), {"D": 1000, "C": 8}),
    "D": ((4000, 8000, 16000, 32000, 64000), {"N": 400, "C": 8}),
    "C": ((8, 16, 32, 64, 128, 256), {"N": 1000, "D": 4000}),
}
MEDIUM = {
    "N": ((2000, 4000, 8000, 16000, 32000), {"D": 400, "C": 8}),
    "D": ((400, 800, 1600, 3200, 6400), {"N": 1000, "C": 8}),
    "C": ((8, 16, 32, 64, 128), {"N": 2000, "D": 1000}),
}
SMALL = {
    "N": ((500, 1000, 2000, 4000), {"D": 200, "C": 4}),
    "D": ((200, 400, 800, 1600, 3200), {"N": 1000, "C": 4}),
    "C": ((2, 4, 8, 16, 32), {"N": 2000, "D": 200}),
}
JOINT = {
    "N": ((1000, 2000, 4000, 8000, 16000), {"D": 200, "C": 2}),
    "D": ((100, 200, 400, 800), {"N": 1000, "C": 2}),
    "C": ((2, 4, 8, 16), {"N": 1000, "D": 200}),
}
PREDICT_D = {"prediction, a row": ("O(Md)", (0, 1, 1))}
ROWS = [
    Row(
        "MeMd-J",
        memd("jeffreys"),
        ESTIMATE | {"ranking": ("O(Md + d log d)", (0, 1, 1))} | PREDICT_K,
        WIDE,
    ),
    Row(
        "MeMd-JS",
        memd("js_gm"),
        ESTIMATE | {"ranking": ("O(M^2 d + d log d)", (0, 1, 2))} | PREDICT_K,
        WIDE,
    ),
    Row("MeMd, greedy", greedy, {"training": ("O(Nd^2)", (1, 2, 0))} | PREDICT_D, JOINT),
    Row("SVM (LIBSVM)", libsvm, SVM, SMALL),
    Row("SVM (LIBLINEAR)", liblinear, {"training": ("", None), "prediction, a row": ("", None)}, SMALL),
    Row(
        "DME (L-BFGS)",
        dme,
        {"training": ("#iterations O(MNd), #iterations ~ 1", (1, 1, 1))}
        | ONE_STEP
        | {"steps": ("~ 1", (0, 0, 0))}
        | PREDICT_D,
        MEDIUM,
    ),
    Row("DME (GIS)", dme_by_scaling, ONE_STEP | PREDICT_D, MEDIUM),
]


def gaussian_classes(N, D, C):
    """Rows of C classes whose centres are about three deviations apart, whatever D is."""
    rng = np.random.default_rng(0)
    centers = rng.normal(scale=2 / np.sqrt(D), size=(C, D))
    y = np.arange(N + N_TEST) % C
    X = rng.normal(size=(N + N_TEST, D)) + centers[y]
    return X[:N], y[:N], X[N:]


def measured(row, axis, sizes, fixed, repeats):
    """The best of each phase, shape (sizes,), sizes taking turns."""
    data = [gaussian_classes(**fixed, **{axis: size}) for size in sizes]
    for one in data[:2]:
        row.run(*one)  # compiles, loads, warms
    runs = [[row.run(*one) for one in data] for _ in range(repeats)]
    return {phase: [min(run[i][phase] for run in runs) for i in range(len(sizes))] for phase in runs[0][0]}


def exponent(sizes, values):
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(values, 1e-12)), 1)[0])


def show(row, exponents):
    for position, (phase, (order, paper)) in enumerate(row.paper.items()):
        cells = "".join(
            f"  {exponents[axis][phase]:5.2f}" + (f" ({paper[i]})" if paper else "    ")
            for i, axis in enumerate("NDC")
        )
        print(f"{row.name if position == 0 else '':16} {phase:18} {order:38}{cells}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, two repeats, nothing stored")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)  # a few steps are asked for on purpose
    os.environ["MAXDISC_NUM_THREADS"] = "1"
    threadpool_limits(1)
    results = {}
    print(f"{'':16} {'phase':18} {'order in the paper':38}  exponent in N, D, C (the paper's)")
    for row in ROWS:
        exponents, times = {}, {}
        for axis, (sizes, fixed) in row.axes.items():
            if options.quick:
                sizes = sizes[:4] if axis == "C" else tuple(size // 8 for size in sizes[:4])
            found = measured(row, axis, sizes, fixed, 2 if options.quick else options.repeats)
            times[axis] = {"sizes": sizes, "fixed": fixed, **found}
            exponents[axis] = {phase: exponent(sizes, values) for phase, values in found.items()}
        show(row, exponents)
        results[row.name] = {
            "paper": {phase: order for phase, (order, _) in row.paper.items()},
            "exponents": exponents,
            "seconds or counts": times,
        }
    if options.quick:
        return
    record = {
        "command": "make bench-complexity",
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "versions": {p: version(p) for p in ("maxdisc", "numpy", "scikit-learn", "scipy")},
        "threads": 1,
        "best of": options.repeats,
        "rows": results,
    }
    (HERE / "results" / "complexity.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
