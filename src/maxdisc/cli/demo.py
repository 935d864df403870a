"""``make demo``: the main job on data that every machine has, next to naive Bayes on the same folds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline

from maxdisc import MaxDiscClassifier, TermFrequencyVectorizer
from maxdisc.datasets import load_docstrings
from maxdisc.inspection.model_view import ModelView
from maxdisc.inspection.ranking import ranking_table
from maxdisc.model_file.atomic_writes import atomic_write
from maxdisc.report import evaluate

FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)


@dataclass(frozen=True, eq=False)
class Task:
    """A data set, our model, the peer to compare it with, and what the features are called."""

    title: str
    X: npt.NDArray[Any]
    y: npt.NDArray[np.str_]
    model: Any
    peer_name: str
    peer: Any
    names: npt.NDArray[np.generic] | None = None


def docstring_task(level: Literal["package", "subpackage"] = "subpackage") -> Task:
    """Which package, or subpackage, does a docstring document?"""
    documents = load_docstrings(level)
    words = TermFrequencyVectorizer(token_pattern=r"(?u)\b[a-zA-Z]{2,}\b", stop_words="english", min_df=3)
    return Task(
        f"docstrings: which {level} do they document?",
        np.array(documents.data, dtype=object),
        documents.target,
        make_pipeline(words, MaxDiscClassifier()),
        "MultinomialNB, alpha on inner folds",
        # The same counts as the model above.
        make_pipeline(words, GridSearchCV(MultinomialNB(), {"alpha": [0.01, 0.1, 1.0]}, cv=3)),
    )


def breast_cancer_task() -> Task:
    """Is a tumour malignant?"""
    data = load_breast_cancer()
    return Task(
        "breast cancer: is the tumour malignant?",
        data.data,
        data.target_names[data.target],
        MaxDiscClassifier(),
        "GaussianNB, var_smoothing on inner folds",
        GridSearchCV(GaussianNB(), {"var_smoothing": [1e-12, 1e-9, 1e-6]}, cv=3),
        data.feature_names,
    )


def run(task: Task, say: Callable[[str], None] = print) -> tuple[dict[str, float], Any]:
    """Cross-validate maxdisc and a peer on the same folds; return accuracies and the first fold's model."""
    say(f"\n{task.title}\n  {len(task.y):,} rows, {len(np.unique(task.y))} classes")
    ours: list[float] = []
    theirs: list[float] = []
    fitted, seconds = None, 0.0
    for fold, (train, test) in enumerate(FOLDS.split(task.y, task.y)):
        for name, model, scores in (("maxdisc", task.model, ours), ("naive Bayes", task.peer, theirs)):
            with progress(f"fold {fold + 1} of 3: {name}"):
                start = time.perf_counter()
                model = clone(model).fit(task.X[train], task.y[train])
                seconds = time.perf_counter() - start if scores is ours else seconds
                scores.append(model.score(task.X[test], task.y[test]))
            fitted = fitted or model
    result = {"maxdisc": float(np.mean(ours)), "peer": float(np.mean(theirs))}
    say(f"  accuracy, 3 folds   maxdisc {result['maxdisc']:.3f}   {task.peer_name} {result['peer']:.3f}")
    shown = ModelView.of(fitted)
    classifier = shown.classifier
    say(
        f"  {shown.family.name} densities, {classifier.n_selected_:,} of "
        f"{classifier.n_features_in_:,} features kept, smoothing {classifier.smoothing_.amount:g}, "
        f"fitted in {seconds:.2f} s"
    )
    say("  what sets the largest classes apart (a minus: less of it than elsewhere)")
    for label, features in top_features(fitted, task.names, n=6).items():
        say(f"    {label:22.22} {', '.join(features)}")
    return result, fitted


@contextmanager
def progress(what: str) -> Iterator[None]:
    """Say what is going on while it does, where someone is watching."""
    watched = sys.stderr.isatty()
    if watched:
        print(f"  {what} ...", end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        if watched:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def top_features(model: Any, names: Any, n: int) -> dict[str, list[str]]:
    """For the largest classes, the kept features that set them apart most; a minus: by being low."""
    table, classifier = ranking_table(model, names), ModelView.of(model).classifier
    largest = classifier.classes_[np.argsort(-classifier.class_prior_, kind="stable")[:8]]
    return {
        str(label): [f"{'' if sign > 0 else '-'}{name}" for name, sign, _ in table.of_class(label, n)]
        for label in largest
    }


def write_report(task: Task, model: Any, path: str | Path) -> None:
    """A page about the model of the first fold, judged on the rows which that fold holds out."""
    _, test = next(FOLDS.split(task.y, task.y))
    report = evaluate(model, list(task.X[test]), task.y[test], title=task.title)
    with atomic_write(path, "w") as file:
        file.write(report.html())


def main(report: str | Path = "demo-report.html") -> None:
    """Run both tasks, and write a page about the first."""
    start = time.perf_counter()
    with progress("reading the docstrings of the installed packages"):
        text = docstring_task()
    _, model = run(text)
    run(breast_cancer_task())
    with progress(f"writing {report}"):
        write_report(text, model, report)
    print(f"\nwrote {report}: the text model in pictures and plain words; open it in a browser")
    print(f"done in {time.perf_counter() - start:.0f} s; README.md shows how to fit your own data")


if __name__ == "__main__":
    main(*sys.argv[1:2])
