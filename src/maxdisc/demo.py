"""``make demo``: the main job on data that every machine has, next to naive Bayes on the same folds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.naive_bayes import GaussianNB, MultinomialNB

from maxdisc import MaxDiscClassifier
from maxdisc.datasets import load_docstrings
from maxdisc.matrices import Matrix
from maxdisc.ranking import ranking_table

FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)


@dataclass(frozen=True)
class Task:
    """A data set, the peer to compare with, and what its features are called."""

    title: str
    X: Matrix
    y: npt.NDArray[np.str_]
    names: npt.NDArray[np.generic]
    peer_name: str
    peer: Any


def length_scaled(counts: Matrix) -> Matrix:
    """Word counts with every document scaled to the mean length, so that a long one is not louder."""
    length = np.asarray(counts.sum(axis=1)).ravel()
    factor = length.mean() / np.maximum(length, 1)
    return sp.csr_array(sp.diags_array(factor) @ counts)


def docstring_task(level: Literal["package", "subpackage"] = "subpackage") -> Task:
    """Which package, or subpackage, does a docstring document?"""
    documents = load_docstrings(level)
    vectorizer = CountVectorizer(min_df=3, stop_words="english", token_pattern=r"(?u)\b[a-zA-Z]{2,}\b")
    counts = vectorizer.fit_transform(documents.data)
    return Task(
        f"docstrings: which {level} do they document?",
        length_scaled(counts),
        documents.target,
        vectorizer.get_feature_names_out(),
        "MultinomialNB, alpha on inner folds",
        GridSearchCV(MultinomialNB(), {"alpha": [0.01, 0.1, 1.0]}, cv=3),
    )


def breast_cancer_task() -> Task:
    """Is a tumour malignant?"""
    data = load_breast_cancer()
    return Task(
        "breast cancer: is the tumour malignant?",
        data.data,
        data.target_names[data.target],
        data.feature_names,
        "GaussianNB, var_smoothing on inner folds",
        GridSearchCV(GaussianNB(), {"var_smoothing": [1e-12, 1e-9, 1e-6]}, cv=3),
    )


def run(task: Task, say: Callable[[str], None] = print) -> dict[str, float]:
    """Cross-validate ours and the peer on the same folds, then show what the model of all rows learnt."""
    n, d = task.X.shape
    say(f"\n{task.title}")
    say(f"  {n:,} rows, {d:,} features, {len(np.unique(task.y))} classes")
    ours: list[float] = []
    theirs: list[float] = []
    for train, test in FOLDS.split(task.X, task.y):
        for model, scores in ((MaxDiscClassifier(), ours), (task.peer, theirs)):
            scores.append(model.fit(task.X[train], task.y[train]).score(task.X[test], task.y[test]))
    result = {"maxdisc": float(np.mean(ours)), "peer": float(np.mean(theirs))}
    say(f"  accuracy, 3 folds   maxdisc {result['maxdisc']:.3f}   {task.peer_name} {result['peer']:.3f}")
    start = time.perf_counter()
    model = MaxDiscClassifier().fit(task.X, task.y)
    seconds = time.perf_counter() - start
    family = model.families_[0][0].name
    say(
        f"  {family} densities, {model.n_selected_:,} of {d:,} features kept, "
        f"smoothing {model.smoothing_.amount:g}, fitted in {seconds:.2f} s"
    )
    say("  what sets the largest classes apart (a minus: less of it than elsewhere)")
    for label, features in top_features(model, task.names, n=6).items():
        say(f"    {label:22.22} {', '.join(features)}")
    return result


def top_features(model: MaxDiscClassifier, names: Any, n: int) -> dict[str, list[str]]:
    """For the largest classes, the kept features that set them apart most; a minus: by being low."""
    table = ranking_table(model, names)
    largest = model.classes_[np.argsort(-model.class_prior_, kind="stable")[:8]]
    return {
        str(label): [f"{'' if sign > 0 else '-'}{name}" for name, sign, _ in table.of_class(label, n)]
        for label in largest
    }


def main() -> None:
    """Run both tasks."""
    start = time.perf_counter()
    for task in (docstring_task(), breast_cancer_task()):
        run(task)
    print(f"\ndone in {time.perf_counter() - start:.0f} s; README.md shows how to fit your own data")


if __name__ == "__main__":
    main()
