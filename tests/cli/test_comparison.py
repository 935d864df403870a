"""``baselines`` and ``compare``: scikit-learn's and scipy's own functions are the oracles."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, ttest_rel
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import StratifiedKFold

from maxdisc import MaxDiscClassifier, load
from maxdisc.cli.comparison import baselines, compare, peers
from maxdisc.cli.comparison.baselines import Comparison
from maxdisc.cli.comparison.compare import JudgedRows, accuracy_difference, compared, log_loss_difference
from maxdisc.cli.console import Speech
from maxdisc.cli.labelled import LabelledRows

NAMES = ["maxdisc", "linear SVM", "logistic regression", "naive Bayes"]


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_documents_are_compared_on_the_same_folds(run, files):
    done = run("baselines", files / "train.csv", "--label", "topic", "--text", "body", "--folds", 3, "--json")
    facts = done.json
    assert [m["method"] for m in facts["methods"]] == NAMES
    assert (facts["rows"], facts["classes"], facts["folds"]) == (150, 3, 3)
    rows = rows_of(files / "train.csv")
    X, y = [row["body"] for row in rows], np.array([row["topic"] for row in rows])
    assert facts["majority_accuracy"] == pytest.approx(
        np.bincount(np.unique(y, return_inverse=True)[1]).max() / 150
    )
    accuracy, loss = [], []
    for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(y, y):
        model = MaxDiscClassifier().fit([X[i] for i in train], y[train])
        proba = model.predict_proba([X[i] for i in test])
        accuracy.append(accuracy_score(y[test], model.classes_[proba.argmax(axis=1)]))
        loss.append(log_loss(y[test], proba, labels=model.classes_))
    ours = facts["methods"][0]
    assert ours["accuracy"] == pytest.approx(np.mean(accuracy))
    assert ours["log_loss"] == pytest.approx(np.mean(loss))
    for m in facts["methods"]:
        assert (m["log_loss"] is None) == (m["method"] == "linear SVM")
        assert m["accuracy"] > facts["majority_accuracy"]
        assert m["fit_seconds"] > 0
        assert m["model_bytes"] > 100
    assert {"C"} == set(facts["methods"][1]["chosen"][0])


def test_a_table_of_all_kinds_has_gradient_boosting(run, tmp_path):
    rng = np.random.default_rng(0)
    lines = ["age,hue,member,kind"]
    for i in range(90):
        age = "" if i % 9 == 0 else f"{rng.normal(30 + 20 * (i % 2)):.1f}"
        hue = "" if i % 11 == 0 else ("red", "blue")[int(rng.random() < 0.2 + 0.6 * (i % 2))]
        lines.append(f"{age},{hue},{rng.random() < 0.5},{'ab'[i % 2]}")
    (tmp_path / "t.csv").write_text("\n".join(lines))
    done = run("baselines", tmp_path / "t.csv", "--label", "kind", "--folds", 2)
    assert done.code == 0
    lines = done.out.splitlines()
    assert "2 folds of 90 rows in 2 classes (the largest class alone: 50.0%)" in lines[0]
    assert [line.split("  ")[0] for line in lines[2:]] == [*NAMES, "gradient boosting"]
    assert "\x1b" not in done.out


def test_a_small_class_bounds_the_folds():
    y = np.array(["a"] * 20 + ["b"] * 3)
    rows = LabelledRows([f"word{i} {label}" for i, label in enumerate(y)], y, [])
    speech = Speech()
    comparison = Comparison.of(rows, 5, {}, speech)
    assert len(comparison.folds) == 3
    list(comparison.run())
    assert all(len(scores.accuracy) == 3 for scores in comparison.methods.values())
    assert speech._notes == ["3 folds instead of 5: class 'b' has only 3 rows"]


def test_a_row_alone_in_its_class_is_refused(run, tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n" + "1,a\n2,a\n3,b\n4,b\n" * 5 + "9,c\n")
    done = run("baselines", tmp_path / "t.csv", "--label", "y")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "class 'c' has a single row" in done.err


def test_documents_without_words_are_refused_with_advice_that_can_be_followed(run, tmp_path):
    (tmp_path / "t.csv").write_text("body,y\n" + "a b,a\nc d,b\n" * 4)
    done = run("baselines", tmp_path / "t.csv", "--text", "body", "--label", "y")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "use maxdisc fit with --token-pattern" in done.err


def test_rows_without_a_label_are_not_learnt_from(run, files):
    done = run("baselines", files / "train.csv", "--unlabelled", "")
    assert done.code == 2
    assert "leave out --unlabelled" in done.err


def test_counts_without_names_have_no_negative_naive_bayes():
    import scipy.sparse as sp

    X = sp.csr_array(np.array([[1.0, 0.0], [-1.0, 2.0]]))
    assert "naive Bayes" not in peers.peers_of(X, 5)
    assert "naive Bayes" in peers.peers_of(abs(X), 5)
    assert "gradient boosting" in peers.peers_of(X, 5)


def test_words_and_pairs_are_terms():
    documents = ["one two three"]
    pipeline = peers.text_peers(documents, 5)["linear SVM"]
    assert isinstance(pipeline[0], TfidfVectorizer)
    pipeline[0].fit(documents)
    assert set(pipeline[0].vocabulary_) == {"one", "two", "three", "one two", "two three"}


def test_characters_are_terms_where_words_have_no_spaces():
    documents = ["今日は雨が降ります", "明日は晴れでしょう"]
    terms = peers.peers_of(documents, 5)["linear SVM"][0].fit(documents)
    assert {"雨", "が", "雨 が"} <= set(terms.vocabulary_)
    assert documents[0] not in terms.vocabulary_


@pytest.fixture(scope="module")
def rivals(files, tmp_path_factory):
    """A model of one word, to be compared with that of all words."""
    from maxdisc.cli import main

    path = tmp_path_factory.mktemp("rivals") / "poor.maxdisc"
    assert main(["fit", str(files / "train.csv"), "-o", str(path), "--n-features", "1", "-q"]) == 0
    return files / "topics.maxdisc", path


def test_two_models_are_compared_on_the_same_rows(run, files, rivals):
    facts = run("compare", *rivals, files / "test.csv", "--json").json
    rows = rows_of(files / "test.csv")
    X, y = [row["body"] for row in rows], np.array([row["topic"] for row in rows])
    models = [load(path) for path in rivals]
    right = [model.predict(X) == y for model in models]
    losses = [-np.log(m.predict_proba(X)[np.arange(len(y)), np.searchsorted(m.classes_, y)]) for m in models]
    for found, model, told in zip(right, losses, facts["models"], strict=True):
        assert told["accuracy"] == pytest.approx(found.mean())
        assert told["log_loss"] == pytest.approx(model.mean())
    b, c = (right[0] & ~right[1]).sum(), (right[1] & ~right[0]).sum()
    assert facts["accuracy"]["p_value"] == pytest.approx(binomtest(int(b), int(b + c)).pvalue)
    assert facts["accuracy"]["better"] == facts["log_loss"]["better"] == "first"
    # They are those of evaluate.
    for path, told in zip(rivals, facts["models"], strict=True):
        judged = run("evaluate", path, files / "test.csv", "--json").json
        assert (judged["accuracy"], judged["log_loss"]) == pytest.approx((told["accuracy"], told["log_loss"]))


def test_the_words_say_which_is_better(run, files, rivals):
    good, poor = rivals
    shown = run("compare", poor, good, files / "test.csv").out
    assert f"accuracy: {good} is better" in shown
    assert f"log-loss: {good} is better" in shown
    same = run("compare", good, good, files / "test.csv").out
    assert same.count("no difference beyond chance") == 2


def test_a_label_that_one_model_does_not_know_is_said_with_its_name(run, files, rivals, tmp_path):
    """The model of fewer classes has the lower log-loss only because its rows are not counted."""
    lines = (files / "train.csv").read_text().splitlines(keepends=True)
    (tmp_path / "few.csv").write_text("".join(line for line in lines if not line.endswith(",space\n")))
    few = tmp_path / "few.maxdisc"
    assert run("fit", tmp_path / "few.csv", "-o", few, "-q").code == 0
    done = run("compare", rivals[0], few, files / "test.csv")
    assert f"20 rows have a label that {few} does not know, such as 'space'" in done.err
    assert "(of 40 rows whose label both models know)" in done.out.splitlines()[-1]
    assert run("compare", rivals[0], few, files / "test.csv", "--json").json["log_loss"]["rows"] == 40


def test_what_cannot_be_compared_is_one_line(run, files, rivals):
    for arguments, told in (
        ((*rivals, "-"), "name a file"),
        ((rivals[0], files / "iris.maxdisc", files / "test.csv"), "has no"),
        ((rivals[0], files / "absent", files / "test.csv"), "does not exist"),
    ):
        done = run("compare", *arguments)
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
        assert told in done.err


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_swapped_models_swap_the_difference(pairs):
    first, second = (np.array(column) for column in zip(*pairs, strict=True))
    there, back = accuracy_difference(first, second), accuracy_difference(second, first)
    assert there["difference"] == pytest.approx(first.mean() - second.mean())
    assert there["p_value"] == back["p_value"]
    low, high = there["interval"]
    assert [-high, -low] == pytest.approx(back["interval"])
    assert low <= there["difference"] <= high
    assert (there["better"], back["better"]) in {(None, None), ("first", "second"), ("second", "first")}


@given(st.lists(st.tuples(*[st.floats(0.01, 9)] * 2), min_size=3, max_size=40))
def test_the_interval_of_log_losses_is_that_of_paired_differences(pairs):
    first, second = (np.array(column) for column in zip(*pairs, strict=True))
    found = log_loss_difference(first, second)
    if np.ptp(first - second) > 1e-6:
        oracle = ttest_rel(first, second).confidence_interval(0.95)
        assert found["interval"] == pytest.approx([oracle.low, oracle.high], rel=1e-6, abs=1e-9)
        assert (found["better"] is None) == (oracle.low <= 0 <= oracle.high)


def test_one_row_has_no_interval():
    assert log_loss_difference(np.array([1.0]), np.array([2.0]))["interval"] is None


@pytest.fixture
def narrow(monkeypatch):
    """A screen of 40 columns, which breaks lines by itself; figures that are cut are lost."""
    monkeypatch.setattr("maxdisc.cli.console._WIDE", 40)


@pytest.mark.usefixtures("narrow")
def test_a_narrow_terminal_has_all_figures_of_the_methods(capsys):
    method = {"method": "gradient boosting", "accuracy": 0.9713, "accuracy_standard_error": 0.0312}
    method |= {"log_loss": 0.6171, "fit_seconds": 12.345, "model_bytes": 34_567}
    baselines._show({"folds": 5, "rows": 9, "classes": 2, "majority_accuracy": 0.5, "methods": [method]})
    words = capsys.readouterr().out.splitlines()[-1].split()
    assert words == ["gradient", "boosting", "97.1%", "±", "3.1%", "0.617", "12.35", "s", "34.6", "kB"]


@pytest.mark.usefixtures("narrow")
def test_a_narrow_terminal_has_all_figures_of_a_comparison(capsys):
    rng = np.random.default_rng(0)
    right, log_p = rng.random((2, 9)) < 0.7, np.log(rng.uniform(0.2, 1, (2, 9)))
    judged = (JudgedRows("y", ["a"] * 9, *given) for given in zip(right, log_p, strict=True))
    facts = compared(*judged, ("old.maxdisc", "new.maxdisc"))
    compare._show(facts)
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("95 % interval"))
    (low, high), (least, most) = facts["accuracy"]["interval"], facts["log_loss"]["interval"]
    assert f"{low:+.1%} to {high:+.1%}  {least:+.4f} to {most:+.4f}" in line
