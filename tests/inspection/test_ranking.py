"""The table of features, and what it says of each class."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from maxdisc import MaxDiscClassifier
from maxdisc.densities.class_densities import estimate
from maxdisc.divergences.class_divergences import one_vs_rest
from maxdisc.families import FAMILIES
from maxdisc.inspection.model_view import ModelView
from maxdisc.inspection.ranking import ranking_table
from maxdisc.testing import batches_of, random_data

IRIS = load_iris()


def fitted(name, n_classes=4, **parameters):
    X, codes = random_data(name, 120, n_classes, 9, seed=3)
    return MaxDiscClassifier(name, smoothing=1.0, **parameters).fit(X, codes), X, codes


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_the_class_set_apart_is_the_one_farthest_from_all_others(name):
    model, *_ = fitted(name, n_features=6)
    table = ranking_table(model)
    densities = estimate(FAMILIES[name], model.moments_, model.smoothing_)
    apart = one_vs_rest(densities)
    np.testing.assert_array_equal(table.columns, model.ranking_[:6])
    np.testing.assert_array_equal(table.scores, model.scores_[table.columns])
    np.testing.assert_array_equal(table.classes, model.classes_[apart[:, table.columns].argmax(axis=0)])


@pytest.mark.parametrize("name", sorted(set(FAMILIES) - {"beta"}))
def test_the_direction_is_that_of_the_means_of_the_rows(name):
    X, codes = random_data(name, 3000, 3, 4, seed=1)
    model = MaxDiscClassifier(name, n_features="all", smoothing=0.1).fit(X, codes)
    for row in ranking_table(model):
        column = X[:, int(row.feature[1:])]
        more = column[codes == row.label].mean() - column[codes != row.label].mean()
        assert row.direction == np.sign(more), row


def test_more_of_an_amount_is_more_on_the_whole_not_more_often():
    rng = np.random.default_rng(0)
    often = np.where(rng.random(400) < 0.95, rng.exponential(1.0, 400), 0.0)
    much = np.where(rng.random(400) < 0.9, rng.exponential(20.0, 400), 0.0)
    labels = np.repeat(["often", "much"], 400)
    model = MaxDiscClassifier("hurdle", n_features="all", smoothing=1.0).fit(
        np.r_[often, much][:, None], labels
    )
    (row,) = ranking_table(model)
    assert (row.label, row.direction) == ("much", 1)


@pytest.mark.parametrize("block", [1, 7, 10**9])
def test_blocks_change_nothing(block):
    model, *_ = fitted("poisson", n_features="all")
    whole = ranking_table(model)
    with batches_of(block):
        again = ranking_table(model, per_class=9)
    assert whole.to_dict() == again.to_dict()
    for label in model.classes_:
        assert whole.of_class(label, 9) == again.of_class(label, 9)


def test_a_class_is_told_by_what_it_has_more_of_first():
    model, *_ = fitted("gaussian", n_features="all")
    densities = estimate(FAMILIES["gaussian"], model.moments_, model.smoothing_)
    apart = one_vs_rest(densities)
    table = ranking_table(model, n=2)
    for c, label in enumerate(model.classes_):
        rows = table.of_class(label, 9)
        assert sorted(name for name, *_ in rows) == sorted(f"x{j}" for j in np.flatnonzero(apart[c]))
        signs = [sign for _, sign, _ in rows]
        assert signs == sorted(signs, reverse=True)
        for sign in (1, -1):
            far = [each for _, s, each in rows if s == sign]
            assert far == sorted(far, reverse=True)
        for name, sign, far in rows:
            j = int(name[1:])
            assert far == pytest.approx(apart[c, j])
            assert sign == (1 if densities.mean[0, c, j] > densities.rest.mean[0, c, j] else -1)


def test_of_two_classes_the_one_with_more_is_named():
    model = MaxDiscClassifier().fit(IRIS.data[:100], IRIS.target_names[IRIS.target[:100]])
    table = ranking_table(model, n=4)
    assert (table.directions == 1).all()
    means = {
        name: IRIS.data[:100][IRIS.target[:100] == c].mean(axis=0)
        for c, name in enumerate(("setosa", "versicolor"))
    }
    for row, column in zip(table, table.columns, strict=True):
        other = "setosa" if row.label == "versicolor" else "versicolor"
        assert means[row.label][column] > means[other][column]


def test_names_come_from_the_caller_the_frame_or_the_vectorizer():
    plain = MaxDiscClassifier(n_features=2).fit(IRIS.data, IRIS.target)
    assert set(ranking_table(plain).features) == {"x2", "x3"}
    assert set(ranking_table(plain, names=["a", "b", "c", "d"]).features) == {"c", "d"}
    with pytest.raises(ValueError, match="one for each of the 4 features"):
        ranking_table(plain, names=["a"])
    scaled = make_pipeline(StandardScaler(), MaxDiscClassifier(n_features=2))
    frame = load_iris(as_frame=True).data
    assert "petal width (cm)" in ranking_table(scaled.fit(frame, IRIS.target)).features
    text = make_pipeline(CountVectorizer(), MaxDiscClassifier())
    text.fit(["red sky", "red sea", "green grass", "green leaf"] * 5, ["r", "r", "g", "g"] * 5)
    assert {row.feature for row in ranking_table(text, n=2)} == {"red", "green"}
    nameless = make_pipeline(FunctionTransformer(), MaxDiscClassifier(n_features=1))
    assert ranking_table(nameless.fit(IRIS.data, IRIS.target)).features[0] == "x2"


def test_what_says_nothing_speaks_for_no_class():
    X = np.c_[IRIS.data, np.ones(150)]
    table = ranking_table(MaxDiscClassifier(n_features="all").fit(X, IRIS.target))
    assert table.features[-1] == "x4"
    assert table.scores[-1] == 0
    assert all(name != "x4" for label in (0, 1, 2) for name, *_ in table.of_class(label, 10))


def test_more_than_is_kept_may_be_asked_for():
    model, *_ = fitted("gaussian", n_features=2)
    table = ranking_table(model, n=5)
    assert len(table) == 5
    told = {"feature", "score", "class", "direction", "p", "q", "stability", "by"}
    assert set(table.to_dict()) == told
    assert {name for name, *_ in table.of_class(0, 20)} <= set(table.features[:2])


@pytest.mark.parametrize("missing", ["ignore", "informative"])
def test_a_column_says_what_its_cells_say_together(missing):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 600)
    shares = np.array([[0.7, 0.2, 0.1], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7]])
    colour = np.array([rng.choice(["red", "green", "blue"], p=shares[c]) for c in codes])
    frame = pd.DataFrame({"x": rng.normal(codes * 0.3), "gap": rng.normal(size=600), "colour": colour})
    frame.loc[rng.random(600) < 0.1 + 0.35 * codes, "gap"] = np.nan
    labels = np.array(["a", "b", "c"])[codes]
    model = MaxDiscClassifier(n_features="all", smoothing=1.0, missing=missing).fit(frame, labels)
    table = ranking_table(model)
    for label, level in zip("abc", ["red", "green", "blue"], strict=True):
        name, sign, far = table.of_class(label, 1)[0]
        assert (name, sign) == (f"colour = {level}", 1)
        # Jeffreys' divergence of the smoothed shares; one pseudo-cell for each level on average.
        own, rest = (
            np.array([(colour[some] == c).sum() for c in ("blue", "green", "red")])
            for some in (labels == label, labels != label)
        )
        pooled = (own + rest) / 600
        p, q = ((counts + 3 * pooled) / (counts.sum() + 3) for counts in (own, rest))
        assert far == pytest.approx(((p - q) * np.log(p / q)).sum(), rel=1e-9)
    by = {row.feature: row for row in table}
    assert by["x"].by == "x"
    assert by["colour"].by in {"colour = red", "colour = green", "colour = blue"}
    if missing == "informative":
        told = {name: sign for name, sign, _ in table.of_class("c", 5)}
        assert told["gap missing"] == 1
        assert by["gap"].by == "gap missing"
    else:
        assert by["gap"].by == "gap"


def test_bad_requests_are_refused():
    X = sp.random_array((60, 50), density=0.5, random_state=0, format="csr")
    model = MaxDiscClassifier(n_features="all", smoothing=1.0).fit(X, np.arange(60) % 3)
    table = ranking_table(model)
    with pytest.raises(ValueError, match=r"has 20 features of each class.*per_class=30"):
        table.of_class(0, 30)
    assert len(ranking_table(model, per_class=30).of_class(0, 30)) == 30
    with pytest.raises(ValueError, match="'zebra' is not a class"):
        table.of_class("zebra")
    with pytest.raises(ValueError, match="at least 1"):
        ranking_table(model, n=0)
    with pytest.raises(ValueError, match="Pipeline that ends in LogisticRegression"):
        ModelView.of(make_pipeline(StandardScaler(), LogisticRegression()))
