"""CPU time of a default fit of 90 rows and 8 features, dense and sparse, compared with scikit-learn's.

Run with ``make bench-small``. One thread, warm; the goal is 40 ms. Estimators take turns, and the least time
of each counts, so that other work on the machine matters little.
"""

from __future__ import annotations

import json
import platform
import time
from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB

from maxdisc import MaxDiscClassifier

HERE = Path(__file__).resolve().parent
GOAL_MS = 40.0
TURNS = 20


def main() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    dense = rng.normal(size=(90, 8)) + y[:, None] * rng.normal(size=8)
    sparse = sp.csr_array(rng.poisson(1 + y[:, None] * rng.random(8)).astype(float))
    fits = {
        "MaxDiscClassifier, dense": (MaxDiscClassifier(n_jobs=1), dense),
        "MaxDiscClassifier, sparse": (MaxDiscClassifier(n_jobs=1), sparse),
        "MaxDiscClassifier(evidence='raw'), dense": (MaxDiscClassifier(evidence="raw", n_jobs=1), dense),
        "GaussianNB, dense": (GaussianNB(), dense),
        "MultinomialNB, sparse": (MultinomialNB(), sparse),
        "LogisticRegression, dense": (LogisticRegression(), dense),
    }
    times: dict[str, list[float]] = {name: [] for name in fits}
    for _ in range(TURNS):
        for name, (estimator, X) in fits.items():
            start = time.process_time()
            estimator.fit(X, y)
            times[name].append(1000 * (time.process_time() - start))
    milliseconds = {name: min(taken) for name, taken in times.items()}
    for name, taken in milliseconds.items():
        print(f"{name:42} {taken:7.1f} ms of CPU" + (f", goal {GOAL_MS:g}" if "Classifier," in name else ""))
    record = {
        "command": "make bench-small",
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "versions": {package: version(package) for package in ("maxdisc", "numpy", "scikit-learn")},
        "CPU ms, best of": TURNS,
        "CPU ms": milliseconds,
    }
    (HERE / "results" / "small_fits.json").write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
