"""What ``maxdisc demo`` prints and writes."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score

from maxdisc import MaxDiscClassifier
from maxdisc.cli.demo import FOLDS, Task, breast_cancer_task, explain_one, run, write_report
from maxdisc.numerics.blas_threads import limited_blas


@pytest.fixture(scope="module")
def table():
    """The demo's table, what is said of it, its results and our first model."""
    lines: list[str] = []
    task = breast_cancer_task()
    results, model = run(task, lines.append)
    return task, "\n".join(lines), results, model


def test_classifiers_are_compared_on_the_same_folds(table):
    task, text, results, model = table
    assert list(results) == ["maxdisc", "LinearSVC", "logistic regression", "naive Bayes"]
    for name, result in results.items():
        loss = "" if result.log_loss is None else f"{result.log_loss:.3f}"
        assert re.search(rf"^  {name} +{result.accuracy:.1%} +{loss}", text, flags=re.MULTILINE)
    assert [name for name, result in results.items() if result.log_loss is None] == ["LinearSVC"]
    assert results["maxdisc"].accuracy > 0.93
    # scikit-learn does the same sums.
    with limited_blas(1):
        bayes = cross_val_score(task.peers["naive Bayes"], task.X, task.y, cv=FOLDS)
    assert results["naive Bayes"].accuracy == pytest.approx(bayes.mean())
    _, test = next(FOLDS.split(task.X, task.y))
    assert log_loss(task.y[test], model.predict_proba(task.X[test])) < 0.2


def test_the_model_is_the_default(table):
    _, text, _, model = table
    assert isinstance(model, MaxDiscClassifier)
    assert model.get_params() == MaxDiscClassifier().get_params()
    assert f"Selected: {model.n_selected_} of 30 columns." in text
    assert "malignant" in text
    assert "worst" in text


def test_one_prediction_is_explained():
    rng = np.random.default_rng(0)
    words = {"sea": ["ship", "wave", "salt", "port"], "air": ["wing", "cloud", "wind", "port"]}
    y = np.array(["sea", "air"] * 30)
    X = np.array([" ".join(rng.choice(words[label], 8)) for label in y], dtype=object)
    task = Task("Where?", "documents", "words", X, y, {}, "")
    train, test = next(FOLDS.split(y, y))
    model = MaxDiscClassifier().fit(X[train], y[train])
    lines: list[str] = []
    explain_one(task, model, lines.append)
    text = "\n".join(lines)
    assert text.startswith("\nOne prediction explained: a held-out document of ")
    terms = [float(each) for each in re.findall(r"^ +([+-]\d+\.\d+)  ", text, flags=re.MULTILINE)]
    assert sum(terms[:-1]) == pytest.approx(terms[-1], abs=0.005 * len(terms))
    label, probability = re.search(r"Predicted: (\w+), probability ([\d.]+)%", text).groups()
    of_label = model.predict_proba(X[test])[:, list(model.classes_).index(label)]
    assert np.isclose(of_label * 100, float(probability), atol=0.051).any()


def test_the_report_of_the_demo_is_written(table, tmp_path):
    task, _, _, model = table
    write_report(task, model, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "malignant" in page
    assert "<svg" in page
