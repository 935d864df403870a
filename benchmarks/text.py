"""Raw text to a fitted model, next to CountVectorizer + MultinomialNB: ``make bench-text``.

Both read the training part of 20 Newsgroups, in turns, several times; the best time of each counts. Ours
chooses K (and smoothing) on five folds, scikit-learn's chooses nothing. The result, with versions and the
number of cores, goes to ``benchmarks/results/text.json``.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable
from datetime import date
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import Pipeline, make_pipeline

from maxdisc import MaxDiscClassifier, TermFrequencyVectorizer

HERE = Path(__file__).resolve().parent
REPEATS = 7


def newsgroups(part: str) -> tuple[list[str], Any]:
    """Texts and labels of 20 Newsgroups, by date."""
    folder = Path(os.environ.get("MAXDISC_DATA") or HERE.parents[1] / "shared" / "data")
    posts = pd.read_parquet(folder / "text" / "20newsgroups_bydate.parquet")
    posts = posts[posts["split"] == part]
    return posts["text"].tolist(), posts["label"].to_numpy(dtype=str)


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    texts, labels = newsgroups("train")
    test_texts, test_labels = newsgroups("test")
    raw = partial(MaxDiscClassifier, evidence="raw")
    ours: dict[str, Pipeline] = {
        "maxdisc": make_pipeline(TermFrequencyVectorizer(), raw()),
        "maxdisc, min_count=2": make_pipeline(TermFrequencyVectorizer(min_count=2), raw()),
        "maxdisc, smoothing given": make_pipeline(TermFrequencyVectorizer(), raw(smoothing=0.1)),
    }
    theirs = "CountVectorizer + MultinomialNB"
    models = {**ours, theirs: make_pipeline(CountVectorizer(), MultinomialNB())}
    works: dict[str, Callable[[], Any]] = {
        name: lambda model=model: model.fit(texts, labels) for name, model in models.items()
    }
    works["TermFrequencyVectorizer alone"] = lambda: TermFrequencyVectorizer(scale=None).fit_transform(texts)
    works["CountVectorizer alone"] = lambda: CountVectorizer().fit_transform(texts)
    best = dict.fromkeys(works, float("inf"))
    for repeat in range(REPEATS):
        for name, work in works.items():
            took = seconds(work)
            if repeat:  # the first time, code is compiled or loaded
                best[name] = min(best[name], took)
    accuracy = {name: float(model.score(test_texts, test_labels)) for name, model in models.items()}
    for name, took in best.items():
        note = f"   test accuracy {accuracy[name]:.4f}" if name in accuracy else ""
        print(f"{name:34} {took:7.3f} s{note}")
    ratios = {name: best[theirs] / best[name] for name in ours}
    ratios["vectorizer"] = best["CountVectorizer alone"] / best["TermFrequencyVectorizer alone"]
    for name, ratio in ratios.items():
        print(f"{name:34} {ratio:7.2f} times as fast")
    record = {
        "command": "make bench-text",
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "versions": {p: version(p) for p in ("maxdisc", "numpy", "scipy", "scikit-learn", "numba")},
        "cores": len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count(),
        "documents": len(texts),
        "seconds, best of": REPEATS - 1,
        "seconds": best,
        "times as fast": ratios,
        "test accuracy": accuracy,
    }
    (HERE / "results" / "text.json").write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
