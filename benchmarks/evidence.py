"""Calibrated and refined evidence beside raw evidence and a tuned linear SVM: ``make bench-evidence``.

All are fitted to the same counts of the training part of 20 Newsgroups (20 classes), in turns, several times;
the best time of each counts. Ours choose smoothing, the number of features and the weights of the evidence on
five folds; the SVM chooses C among six values on three folds of tf-idf rows, which is in its time as the
scaling of the counts is in ours. All libraries are held to the same number of threads. Accuracy, log-loss and
expected calibration error are those of the test part, by date. The result goes to
``benchmarks/results/evidence.json``.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from text import newsgroups
from threadpoolctl import threadpool_limits

from maxdisc import MaxDiscClassifier, TermFrequencyVectorizer
from maxdisc.words import CountScaler

RESULTS = Path(__file__).resolve().parent / "results" / "evidence.json"
COSTS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


def calibration_error(probability: np.ndarray, right: np.ndarray, n_bins: int = 15) -> float:
    """Mean distance between confidence and accuracy, over bins of confidence."""
    confidence = probability.max(axis=1)
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    counts = np.bincount(bins, minlength=n_bins)
    gaps = np.abs(np.bincount(bins, confidence - right, minlength=n_bins))
    return float(gaps[counts > 0].sum() / len(right))


def models() -> dict[str, object]:
    search = GridSearchCV(LinearSVC(), {"C": list(COSTS)}, cv=3)
    ours = {
        f"{scale}, {evidence}": make_pipeline(CountScaler(scale), MaxDiscClassifier(evidence=evidence))
        for scale, evidence in (
            ("length", "raw"),
            ("length", "calibrated"),
            ("log", "raw"),
            ("log", "calibrated"),
            ("log", "refined"),
        )
    }
    return {**ours, "LinearSVC, C chosen": make_pipeline(TfidfTransformer(sublinear_tf=True), search)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--no-record", action="store_true", help="do not store the results")
    options = parser.parse_args()
    texts, labels = newsgroups("train")
    test_texts, test_labels = newsgroups("test")
    vectorizer = TermFrequencyVectorizer(scale=None, min_df=2)
    X, T = vectorizer.fit_transform(texts), vectorizer.transform(test_texts)
    table: dict[str, dict[str, float]] = {}
    with threadpool_limits(options.threads):
        for repeat in range(options.repeats):
            for name, model in models().items():
                start = time.perf_counter()
                model.fit(X, labels)
                seconds = time.perf_counter() - start
                row = table.setdefault(name, {"seconds": seconds})
                row["seconds"] = min(row["seconds"], seconds)
                if repeat:
                    continue
                right = model.predict(T) == test_labels
                row["accuracy"] = 100 * float(right.mean())
                if hasattr(model, "predict_proba"):
                    probability = model.predict_proba(T)
                    row["log_loss"] = float(log_loss(test_labels, probability))
                    row["ece"] = 100 * calibration_error(probability, right)
                print(f"{name:24} {row}", flush=True)
    raw, svm = table["log, raw"]["seconds"], table["LinearSVC, C chosen"]["seconds"]
    print(f"{'':24} {'seconds':>8} {'to raw':>7} {'to SVM':>7} {'accuracy':>9} {'log-loss':>9} {'ECE':>6}")
    for name, row in table.items():
        own = table["length, raw"]["seconds"] if name.startswith("length") else raw
        row["to_raw"], row["to_svm"] = row["seconds"] / own, row["seconds"] / svm
        shown = f"{row['seconds']:8.2f} {row['to_raw']:7.2f} {row['to_svm']:7.2f} {row['accuracy']:9.2f}"
        print(f"{name:24} {shown} {row.get('log_loss', np.nan):9.3f} {row.get('ece', np.nan):6.2f}")
    if not options.no_record:
        facts = {
            "command": "make bench-evidence",
            "date": date.today().isoformat(),
            "rows": X.shape[0],
            "features": X.shape[1],
            "threads": options.threads,
            "versions": {p: version(p) for p in ("maxdisc", "numpy", "scipy", "scikit-learn")}
            | {"python": platform.python_version()},
            "table": table,
        }
        RESULTS.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
