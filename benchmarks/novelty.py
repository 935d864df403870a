"""Unknown classes: how well they are told from known ones, beside other ways: ``make bench-novelty``.

Some classes are left out of the training rows; then rows of known and unknown classes are to be told apart.
Newsgroups: five of the twenty are left out, five times; half of the rows train. The words are those of the
training rows. "by date" trains on the collection's own training part, so that rows of known classes have
changed, too, by the time they are tested. Digits: each of the ten is left out once. The area under the ROC
curve is printed for our p-values, for the largest probability and the log density of the same model, and for
an isolation forest and the local outlier factor, on tf-idf reduced to 100 dimensions for text. "flagged" is
the share of known test rows with a p-value of at most 0.01, "found" that of unknown ones. The result goes to
``benchmarks/results/novelty.json``.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Iterator
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import IsolationForest
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from text import newsgroups

from maxdisc import MaxDiscClassifier, TermFrequencyVectorizer

RESULTS = Path(__file__).resolve().parent / "results" / "novelty.json"
LEFT_OUT = 5
WORDS = {
    "posts": {"token_pattern": r"(?u)\b[a-zA-Z]{2,}\b", "min_df": 3},
    "bodies": {"token_pattern": r"(?u)\b[a-zA-Z]{3,}\b", "min_count": 3},
}

#: Training rows and labels, test rows, and which of these are of known classes.
Split = tuple[Any, Any, Any, Any]


def body(text: str) -> str:
    """A post without its header, which ends at the first blank line."""
    _, blank, rest = text.replace("\r\n", "\n").partition("\n\n")
    return rest if blank else text


def text_splits(kind: str, by_date: bool, n_splits: int) -> Iterator[Split]:
    parts = [newsgroups(part) for part in ("train", "test")]
    texts, labels = (np.concatenate([np.array(p[i], dtype=object) for p in parts]) for i in (0, 1))
    if kind == "bodies":
        texts = np.array([body(text) for text in texts], dtype=object)
    for seed in range(n_splits):
        rng = np.random.default_rng(seed)
        known = ~np.isin(labels, rng.choice(np.unique(labels.astype(str)), LEFT_OUT, replace=False))
        train = rng.random(len(texts)) < 0.5
        if by_date:
            train = np.arange(len(texts)) < len(parts[0][0])
        words = TermFrequencyVectorizer(stop_words="english", **WORDS[kind])
        X = words.fit_transform(texts[train & known])
        yield X, labels[train & known].astype(str), words.transform(texts[~train]), known[~train]


def digit_splits() -> Iterator[Split]:
    X, y = load_digits(return_X_y=True)
    for digit in range(10):
        known = y != digit
        train = known & (np.random.default_rng(digit).random(len(y)) < 0.5)
        yield X[train], y[train], X[~train], known[~train]


def areas(split: Split, text: bool) -> dict[str, float]:
    """Of one split, by every way."""
    X, y, T, known = split
    model = MaxDiscClassifier().fit(X, y)
    p = model.novelty(T)
    found = {
        "novelty": p,
        "largest probability": model.predict_proba(T).max(axis=1),
        "log density": model.score_samples(T),
    }
    if text:
        # The rows are counts scaled to one length already.
        reduced = make_pipeline(TfidfTransformer(), TruncatedSVD(100, random_state=0), Normalizer())
        X, T = reduced.fit_transform(X), reduced.transform(T)
    found["IsolationForest"] = IsolationForest(random_state=0).fit(X).score_samples(T)
    found["LocalOutlierFactor"] = LocalOutlierFactor(novelty=True).fit(X).score_samples(T)
    table = {name: float(roc_auc_score(known, score)) for name, score in found.items()}
    return {**table, "flagged": float((p[known] <= 0.01).mean()), "found": float((p[~known] <= 0.01).mean())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--no-record", action="store_true", help="do not store the results")
    options = parser.parse_args()
    tasks = {
        "posts": lambda: text_splits("posts", False, options.splits),
        "bodies": lambda: text_splits("bodies", False, options.splits),
        "posts, by date": lambda: text_splits("posts", True, options.splits),
        "digits": digit_splits,
    }
    results: dict[str, dict[str, dict[str, float]]] = {}
    for task, splits in tasks.items():
        tables = [areas(split, task != "digits") for split in splits()]
        results[task] = {
            name: {
                "mean": float(np.mean([t[name] for t in tables])),
                "deviation": float(np.std([t[name] for t in tables], ddof=1)),
            }
            for name in tables[0]
        }
        print(task)
        for name, row in results[task].items():
            print(f"  {name:22s} {row['mean']:.3f} +- {row['deviation']:.3f}", flush=True)
    if not options.no_record:
        record = {
            "date": date.today().isoformat(),
            "python": platform.python_version(),
            "versions": {name: version(name) for name in ("maxdisc", "numpy", "scikit-learn")},
            "splits": options.splits,
            "results": results,
        }
        RESULTS.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
