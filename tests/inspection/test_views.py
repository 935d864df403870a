"""Views of fitted models: measures, curves, odds, rankings and matched columns."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris

from maxdisc import MaxDiscClassifier
from maxdisc.inspection.curves import density_curves
from maxdisc.inspection.matching import MatchedColumns
from maxdisc.inspection.measures import class_scores, confusion_counts, reliability_bins
from maxdisc.inspection.model_view import ModelView
from maxdisc.inspection.odds import feature_odds, log_odds
from maxdisc.inspection.ranking import ranking_table
from maxdisc.inspection.safe_text import counted, listed


@pytest.fixture(scope="module")
def iris():
    return load_iris()


@pytest.fixture(scope="module")
def model(iris):
    return MaxDiscClassifier().fit(iris.data, iris.target_names[iris.target])


def test_empty_reliability_bins_are_left_out():
    _, accuracy, rows = reliability_bins(np.array([True, False, True]), np.array([0.95, 0.98, 0.41]))
    assert accuracy.tolist() == [1.0, 0.5]
    assert rows.tolist() == [1, 2]


def test_scores_follow_from_the_confusion_matrix():
    counts = confusion_counts(np.array([0, 1, 1]), np.array([0, 0, 1]), 2)
    assert counts.tolist() == [[1, 0], [1, 1]]
    precision, recall, f1 = class_scores(counts)
    assert precision.tolist() == [0.5, 1.0]
    assert recall.tolist() == [1.0, 0.5]
    np.testing.assert_allclose(f1, [2 / 3, 2 / 3])


def test_curves_name_the_classes_from_the_highest_down(model):
    (curves,) = density_curves(model, [2])
    assert curves.kind == "density"
    assert curves.classes == ["virginica", "versicolor", "setosa"]


def test_log_odds_name_the_classes_and_add_up(model, iris):
    found = log_odds(model, iris.data[:1], n=2)
    assert (found.first, found.second, found.features) == ("setosa", "versicolor", ["x2", "x3"])
    said = feature_odds(model, iris.data[:1])
    scores = model.predict_joint_log_proba(iris.data[:1])[0]
    assert abs(said.prior + said.odds.sum() - (scores[0] - scores[1])) < 1e-9


def test_a_ranking_lists_features_and_those_of_a_class(model):
    table = ranking_table(model, names=["sl", "sw", "pl", "pw"], n=2)
    assert [(row.feature, row.label, row.direction) for row in table] == [
        ("pl", "setosa", -1),
        ("pw", "setosa", -1),
    ]
    assert [(name, sign) for name, sign, _ in table.of_class("virginica", 2)] == [("pl", 1), ("pw", 1)]


def test_columns_are_matched_by_name():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [0.0, 1.0, 5.0, 6.0], "b": [3.0, 2.0, 2.0, 3.5]})
    model = MaxDiscClassifier("gaussian", n_features="all", smoothing=1.0, evidence="raw")
    matched = MatchedColumns.of(ModelView.of(model.fit(frame, [0, 0, 1, 1])), ["c", "a"])
    assert matched.missing == ["b"]
    np.testing.assert_array_equal(matched.aligned([[7.0, 0.5]]), [[0.5, np.nan]])


def test_rows_of_a_file_are_read_as_the_model_takes_them():
    pa = pytest.importorskip("pyarrow")
    from maxdisc.files import Batch
    from maxdisc.inspection.model_input import ModelInput

    rows = pa.table({"size": [1.0, 2.0, 8.0, 9.0]})
    model = MaxDiscClassifier(evidence="raw").fit(rows, ["low", "low", "high", "high"])
    taker = ModelInput.of(model)
    said = taker.said(taker.raw(Batch(pa.table({"size": ["8.5"]}), "new.csv", 1)))
    assert taker.columns == ["size"]
    assert said.label(said.first) == ["high"]


def test_numbers_and_lists_in_sentences():
    assert counted(1, "row") == "1 row"
    assert counted(1200, "row") == "1,200 rows"
    assert counted(2, "class", "classes") == "2 classes"
    assert listed(["a", "b", "c"]) == "a, b and c"
