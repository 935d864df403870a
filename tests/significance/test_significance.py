"""Trust in a ranking: null distributions against simulation and scipy, false discoveries, stability."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import scipy.stats as ss
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris

from maxdisc import MaxDiscClassifier, Smoothing, load, save
from maxdisc.densities.class_densities import estimate
from maxdisc.divergences import js_gm
from maxdisc.families import FAMILIES, Gaussian, Hurdle, Poisson
from maxdisc.inspection.ranking import ranking_table
from maxdisc.moments.class_moments import ClassMoments
from maxdisc.moments.counting import class_moments
from maxdisc.rows.row_sources import ArrayRows, HashFolds
from maxdisc.selection.fold_models import Choice, FoldModels
from maxdisc.selection.sparse_fold_models import SparseFoldModels
from maxdisc.significance.p_values import effective_share, lump_p_values, p_values
from maxdisc.significance.permutation import permuted_p_values
from maxdisc.significance.table import Significance, debiased, location_of, lucky_rows, q_values


def moments_of(name, X, y):
    family = FAMILIES[name]
    return class_moments(family.statistics, X, y, int(y.max()) + 1, powers=family.translates)


@pytest.mark.parametrize(
    ("name", "draw"),
    [
        ("gaussian", lambda rng, shape: rng.normal(size=shape)),
        ("exponential", lambda rng, shape: rng.exponential(size=shape)),
        ("poisson", lambda rng, shape: rng.poisson(3.0, size=shape).astype(float)),
        ("gamma", lambda rng, shape: rng.gamma(2.0, size=shape)),
    ],
)
def test_luck_gives_as_much_as_is_taken_off(name, draw):
    rng = np.random.default_rng(0)
    for sizes in [(100, 300), (200, 150, 150)]:
        y = np.repeat(np.arange(len(sizes)), sizes)
        X = draw(rng, (len(y), 2000))
        X[rng.random(X.shape) < 0.3] = np.nan
        moments = moments_of(name, X, y)
        densities = estimate(FAMILIES[name], moments, Smoothing(0.0))
        scores, n = js_gm(densities), moments.cells.sum(axis=0)
        lucky = FAMILIES[name].n_statistics * (len(sizes) - 1)
        assert (scores / densities.coverage * n).mean() == pytest.approx(lucky, rel=0.1)
        # The scores of a model are those of observed rows times their share: what is taken off shrinks alike.
        assert debiased(scores, FAMILIES[name].n_statistics, len(sizes), len(y)) == pytest.approx(
            densities.coverage
            * debiased(scores / densities.coverage, FAMILIES[name].n_statistics, len(sizes), n)
        )


def test_nothing_is_left_of_what_nobody_saw():
    assert debiased([0.5], 1, 2, [0]).tolist() == [0.0]
    assert debiased([0.0, 1.0], 2, 1, 10).tolist() == [0.0, 1.0]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_q_values_are_those_of_benjamini_and_hochberg(p):
    assert q_values(p) == pytest.approx(ss.false_discovery_control(p))
    with_gaps = np.r_[np.nan, p, np.nan]
    assert q_values(with_gaps)[1:-1] == pytest.approx(ss.false_discovery_control(p))


@pytest.mark.parametrize("name", ["gaussian", "gamma", "hurdle"])
def test_permuted_p_values_are_uniform_whatever_the_distribution(name):
    rng, y = np.random.default_rng(0), np.repeat([0, 1, 2], [10, 20, 30])
    X = rng.lognormal(size=(60, 2000))
    X[rng.random(X.shape) < 0.2] = 0.0 if name == "hurdle" else np.nan
    p = permuted_p_values(FAMILIES[name], X, y, 3)
    assert ss.kstest(p, "uniform").pvalue > 1e-3
    assert np.mean(p <= 0.01) <= 0.017
    assert p.min() > 1e-6


def test_permuted_p_values_of_sparse_rows_are_those_of_dense_ones():
    rng, y = np.random.default_rng(1), np.arange(40) % 2
    X = rng.poisson(0.3 + 3 * y[:, None] * (np.arange(30) < 5), (40, 30)).astype(float)
    X[:, 7] = 0.0
    given = (y, 2, rng.random(40) + 0.5, 100)
    dense = permuted_p_values(FAMILIES["poisson"], X, *given)
    assert permuted_p_values(FAMILIES["poisson"], sp.csr_array(X), *given) == pytest.approx(dense)
    assert dense[7] == 1.0
    assert dense[:5].max() < 0.01
    # A test by ranks, or by variances, says much the same.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ss.ConstantInputWarning)  # of features that are all zero
        usual = ss.f_oneway(X[y == 0], X[y == 1]).pvalue
    assert ss.spearmanr(dense, usual, nan_policy="omit").statistic > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("draw", ["normal", "lognormal", "standard_cauchy"])
def test_false_discoveries_by_permutation(draw):
    y, shares = np.arange(60) % 2, []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = getattr(rng, draw)(size=(60, 10_000))
        X[:, :50] += 2.0 * y[:, None]
        found = q_values(permuted_p_values(FAMILIES["gaussian"], X, y, 2, seed=seed)) <= 0.1
        shares.append(found[50:].sum() / max(found.sum(), 1))
    assert np.mean(shares) <= 0.12


IRIS = load_iris(as_frame=True)
SPECIES = IRIS.target_names[IRIS.target]


def test_the_table_has_a_row_for_each_feature_best_first():
    model = MaxDiscClassifier().fit(IRIS.data, SPECIES)
    table = model.ranking_table()
    assert table["feature"].tolist() == IRIS.data.columns[model.ranking_].tolist()
    assert table["score"].tolist() == model.scores_[model.ranking_].tolist()
    assert table["kept"].sum() == model.n_selected_
    frame = table.set_index("feature")
    for label, rows in IRIS.data.groupby(SPECIES):
        rest = IRIS.data[label != SPECIES].mean()
        assert frame[f"mean[{label}]"].loc[rest.index].to_numpy() == pytest.approx(rows.mean().to_numpy())
        assert frame[f"deviation[{label}]"].loc[rest.index].to_numpy() == pytest.approx(
            rows.std(ddof=0).to_numpy()
        )
        assert (frame[f"direction[{label}]"].loc[rest.index] == np.sign(rows.mean() - rest)).all()
    assert (frame["q"] >= frame["p"]).all()
    assert frame["debiased"].to_numpy() == pytest.approx(np.maximum(frame["score"].to_numpy() - 4 / 150, 0))
    assert len(model.ranking_table(n=2)) == 2
    by_rows = model.ranking_table(IRIS.data, SPECIES)
    assert (by_rows["p"] < 1e-3).all()
    assert by_rows["stability"].tolist() == table["stability"].tolist()


def test_without_pandas_the_line_that_helps_comes_before_the_work(monkeypatch):
    model = MaxDiscClassifier(evidence="raw", n_features="all").fit(IRIS.data.to_numpy(), SPECIES)
    monkeypatch.setattr(MaxDiscClassifier, "_permuted", None)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"^a table of results needs pandas: pip install pandas$"):
        model.ranking_table(IRIS.data.to_numpy(), SPECIES)


def test_luck_is_taken_off_js_gm_whatever_the_ranking_is_by():
    fit = {"n_features": 2, "smoothing": 0.1, "evidence": "raw"}
    by_js, by_jeffreys = (
        MaxDiscClassifier(divergence=d, **fit).fit(IRIS.data, SPECIES).ranking_table()
        for d in ("js_gm", "jeffreys")
    )
    both = by_js.merge(by_jeffreys, on="feature")
    assert both["debiased_x"].to_numpy() == pytest.approx(both["debiased_y"].to_numpy())


def test_what_the_table_cannot_tell_it_says():
    rng, y = np.random.default_rng(2), np.arange(40) % 2
    X = rng.gamma(2.0, size=(40, 5))
    X[:, 0] += 20 * y
    model = MaxDiscClassifier(family="gamma", cv=3).fit(X, y)
    with pytest.warns(UserWarning, match="give ranking_table the rows"):
        assert np.isnan(model.ranking_table()["p"]).all()
    table = model.ranking_table(X, y)
    assert (table["feature"][0], table["stability"][0]) == ("x0", 1.0)
    assert table["p"][0] < 1e-3
    with pytest.raises(ValueError, match="pass y with X"):
        model.ranking_table(X)
    with pytest.raises(ValueError, match="a label the model has not seen, 5"):
        model.ranking_table(X, np.where(y == 1, 5, 0))
    with pytest.raises(ValueError, match="there are no q-values"):
        ranking_table(model, q=0.1)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_stability_is_the_share_of_the_folds_that_keep_a_feature(kind):
    rng, y = np.random.default_rng(3), np.arange(120) % 3
    X = rng.poisson(1.0, (120, 40)).astype(float)
    X[:, 4] += 30 * y
    model = MaxDiscClassifier(family="poisson", n_features=5, smoothing=1.0, evidence="raw")
    assert model.fit(X, y).stability_ is None
    model.set_params(evidence="calibrated").fit(sp.csr_array(X) if kind == "sparse" else X, y)
    kept = np.zeros(40)
    for fold in range(5):
        rows = np.ones(120, dtype=bool)
        for c in range(3):
            rows[np.flatnonzero(y == c)[fold::5]] = False
        part = clone(model).set_params(evidence="raw").fit(X[rows], y[rows])
        kept[part.ranking_[:5]] += 1
    assert model.stability_ == pytest.approx(kept / 5)
    assert model.stability_[4] == 1.0
    # The folds are no longer those of all the rows.
    assert model.partial_fit(X[:9], y[:9]).stability_ is None


def test_compiled_fold_models_count_the_same_features():
    rng = np.random.default_rng(4)
    X = sp.csr_array(rng.poisson(0.4, (90, 60)) * rng.random((90, 60)))
    rows, folds = ArrayRows(X, np.arange(90) % 3, 3), [HashFolds(4)]
    family, sizes, smoothing = FAMILIES["poisson"], np.array([3, 10, 60]), Smoothing(0.3)
    choices = []
    for models in (
        SparseFoldModels(rows, family, None, folds),
        FoldModels.of(rows, family, js_gm, None, folds),
    ):
        models.paths(sizes, [Smoothing(1.0), smoothing])
        choices.append(models.with_stability(Choice(smoothing, 10)).stability)
    assert choices[0].tolist() == choices[1].tolist()
    assert choices[0].sum() == pytest.approx(10)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["gaussian", "poisson"])
def test_a_file_tells_what_the_model_told(name, weighted, tmp_path):
    rng, y = np.random.default_rng(5), np.arange(60) % 2
    X = rng.poisson(2.0 + y[:, None] * np.arange(6), (60, 6)).astype(float)
    weights = rng.random(60) + 0.5 if weighted else None
    model = MaxDiscClassifier(family=name).fit(X, y, weights)
    save(model, tmp_path / "m.maxdisc", moments=True)
    before, after = model.ranking_table(), load(tmp_path / "m.maxdisc").ranking_table()
    for column in before:
        np.testing.assert_array_equal(before[column], after[column])


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_squares_add_as_sums_do(container):
    rng, y = np.random.default_rng(6), np.arange(30) % 3
    X = rng.poisson(1.0, (30, 5)).astype(float)
    weights = rng.random(30)
    X_and = [container(X), y, weights]
    model = MaxDiscClassifier(family="poisson", evidence="raw").fit(*X_and)
    expected = weights @ X**2
    assert model.moments_.squared == pytest.approx(expected)
    streamed = MaxDiscClassifier(family="poisson")
    for some in (slice(0, 7), slice(7, 30)):
        streamed.partial_fit(container(X[some]), y[some], sample_weight=weights[some])
    assert streamed.moments_.squared == pytest.approx(expected)
    assert streamed.moments_.select(np.array([3, 1])).squared == pytest.approx(expected[[3, 1]])


def mixed_frame(seed, differ):
    """Rows of every kind of column, of which the second half differs between classes, if any is to."""
    rng, n = np.random.default_rng(seed), 120
    y, apart = np.arange(n) % 3, differ * (np.arange(n) % 3)
    columns = {}
    for half, shift in (("same", np.zeros(n)), ("apart", apart)):
        columns |= {
            f"number {half}": rng.normal(3.0 * shift),
            f"count {half}": rng.poisson(1.0 + 5 * shift),
            f"word {half}": rng.choice(["a", "b", "c", "d"], n),
            f"switch {half}": rng.random(n) < 0.2 + 0.35 * shift,
        }
        columns[f"word {half}"][shift > 1] = "e"
    frame = pd.DataFrame(columns)
    frame.loc[rng.random(n) < 0.2, ["number same", "word same"]] = None
    return frame, np.array(["x", "y", "z"])[y]


def test_mixed_columns_have_p_values_too(tmp_path):
    frame, y = mixed_frame(0, differ=1)
    model = MaxDiscClassifier().fit(frame, y)
    for table in (model.ranking_table(), model.ranking_table(frame, y)):
        q = dict(zip(table["feature"], table["q"], strict=True))
        assert {name for name in q if q[name] < 0.01} == {name for name in q if name.endswith("apart")}
    assert np.isnan(table["mean[x]"][list(table["feature"]).index("word same")])
    kept = table["feature"].tolist().index("number apart")
    assert table["mean[z]"][kept] == pytest.approx(frame["number apart"][y == "z"].mean())
    assert table["direction[z]"][kept] == 1
    save(model, tmp_path / "m.maxdisc", moments=True)
    before, after = model.ranking_table(), load(tmp_path / "m.maxdisc").ranking_table()
    for column in before:
        np.testing.assert_array_equal(before[column], after[column])


@pytest.mark.slow
def test_nor_are_those_of_mixed_columns_too_small():
    found = []
    for seed in range(150):
        frame, y = mixed_frame(seed, differ=0)
        found.append(MaxDiscClassifier(n_features="all", evidence="raw").fit(frame, y).ranking_table()["p"])
    assert np.mean(np.concatenate(found) <= 0.05) <= 0.055


def test_small_formulas_of_significance():
    moments = ClassMoments(np.array([30.0, 10.0]), np.ones((1, 2, 1)))
    assert lucky_rows(moments, np.array([0.75, 0.25])) == (2, 40.0)
    assert lucky_rows(moments, np.array([0.5, 0.5])) == (2, 30.0)
    weighted = ClassMoments(np.array([6.0, 2.0]), np.ones((1, 2, 1)), squares=16.0)
    assert effective_share(weighted) == 0.5
    assert Significance.of(np.array([0.01, 0.5]), None).q.tolist() == [0.02, 0.5]
    assert (location_of(Poisson()), location_of(Hurdle())) == (0, 1)
    # All five ones in one half of twenty rows.
    sums, n = np.array([[5.0], [0.0]]), np.array([[10.0], [10.0]])
    np.testing.assert_allclose(lump_p_values(sums, n, np.array([5.0]), np.array([5.0])), 0.0325, atol=5e-5)


@pytest.mark.parametrize("unit", [2.0**-400, 1e-120, 1e100, 2.0**480, 4e152])
def test_the_unit_of_amounts_does_not_matter(unit):
    rng = np.random.default_rng(0)
    X = rng.poisson(0.7 * rng.gamma(2.0, size=(60, 8)))
    X[:, 7] = rng.random(60) < 0.3  # equal where it is not zero
    sums, n = np.stack([X[:25].sum(axis=0), X[25:].sum(axis=0)]).astype(float), np.tile([[25.0], [35.0]], 8)
    squared, nonzero = (X**2).sum(axis=0).astype(float), (X != 0).sum(axis=0).astype(float)
    due = lump_p_values(sums, n, squared, nonzero)
    assert ((due > 0) & (due <= 1)).all()
    found = lump_p_values(sums * unit, n, squared * unit * unit, nonzero)
    np.testing.assert_allclose(found, due, rtol=1e-9)


@pytest.mark.parametrize("many", [1e7, 1e9, 1e12])
def test_a_small_class_beside_a_very_large_one_keeps_its_rows(many):
    def p_of(rows):
        weight, center = np.array([rows, 45.0]), np.array([[0.0], [0.3]])
        sums = np.stack([np.zeros((2, 1)), weight[:, None] * np.array([[1.0], [1.3]])])
        (p,) = p_values(Gaussian(), ClassMoments(weight, sums, center))
        return p

    assert 0.01 < p_of(many) < 0.5
    np.testing.assert_allclose(p_of(many), p_of(9e5), rtol=1e-2)
    assert 0 < p_of(1e20) <= 1  # beyond the digits of the ratio
