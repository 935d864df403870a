"""Unknown things: p-values of known rows are uniform, of unknown ones small, however they come."""

from __future__ import annotations

import io
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from maxdisc import Joint, MaxDiscClassifier, ModelFileError, Smoothing, TermFrequencyVectorizer, load, save
from maxdisc.calibration.novelty import Novelty, _table
from maxdisc.decisions.linear import LinearDecision, ranked_decision, unknown_beside
from maxdisc.divergences import js_gm
from maxdisc.families import FAMILIES
from maxdisc.fitting.cross_validation import fold_plans
from maxdisc.model_file.container import Container, write
from maxdisc.moments.counting import class_moments
from maxdisc.rows import BatchRows
from maxdisc.rows.row_sources import ArrayRows
from maxdisc.selection.fold_models import FoldModels
from maxdisc.selection.sparse_fold_models import SparseFoldModels
from maxdisc.testing import random_data
from tests.conftest import examples


def simulated(kind, n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    # Features that repeat each other, so that densities alone would be far too sure.
    shared = rng.normal(size=(n, 1))
    if kind == "counts":
        means = np.random.default_rng(0).gamma(0.5, size=(3, 40))
        return sp.csr_array(rng.poisson(means[y] * np.exp(0.3 * shared)).astype(float)), y
    centers = 0.5 * np.random.default_rng(0).normal(size=(3, 12))
    X = centers[y] + shared + rng.normal(size=(n, 12))
    if kind == "gaps":
        X[rng.random(X.shape) < 0.2] = np.nan
    return X, y


def mixed(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return pd.DataFrame(
        {
            "size": y + rng.normal(size=n),
            "weight": 2.0 * (y == 1) + rng.normal(size=n),
            "kind": np.where(rng.random(n) < 0.7, np.array(["a", "b", "c"])[y], "d"),
            "count": rng.poisson(1 + 2 * y),
        }
    ), y


def require_uniform(p, n_held_out):
    """The share of p-values up to t is near t, as far as so many held-out rows and so many new ones tell."""
    assert (p > 0).all()
    assert (p <= 1).all()
    for t in (0.01, 0.05, 0.2):
        low, high = binom.ppf([1e-4, 1 - 1e-4], n_held_out, t) / n_held_out  # where the threshold may be
        least, most = binom.ppf(1e-4, len(p), low), binom.ppf(1 - 1e-4, len(p), high)
        # Models of all the rows are a little better than those of folds, and steps of the table are upwards.
        assert 0.7 * least <= (p <= t).sum() <= most


@pytest.mark.parametrize("evidence", ["calibrated", "refined"])
@pytest.mark.parametrize("kind", ["numbers", "gaps", "counts"])
def test_known_rows_have_uniform_p_values(kind, evidence):
    X, y = simulated(kind, 1500, 1)
    model = MaxDiscClassifier(evidence=evidence).fit(X, y)
    require_uniform(model.novelty(simulated(kind, 4000, 2)[0]), 1500)


def test_rows_of_mixed_columns_have_uniform_p_values(tmp_path):
    X, y = mixed(1500, 1)
    model = MaxDiscClassifier().fit(X, y)
    new = mixed(4000, 2)[0]
    p = model.novelty(new)
    require_uniform(p, 1500)
    assert model.novelty(new.assign(size=60.0)).max() < 0.01
    for moments in (True, False):
        save(model, tmp_path / "m", moments=moments)
        assert load(tmp_path / "m").novelty(new).tobytes() == p.tobytes()


def test_known_digits_are_known_and_an_unknown_one_is_not():
    X, y = load_digits(return_X_y=True)
    shares, areas = [], []
    for digit in (0, 3, 6):
        known = y != digit
        train, test, y_train, _ = train_test_split(X[known], y[known], random_state=digit)
        model = MaxDiscClassifier().fit(train, y_train)
        p, unknown = model.novelty(test), model.novelty(X[~known])
        require_uniform(p, len(train))
        shares.append((model.novelty(test + 100) <= 0.01).mean())
        areas.append(roc_auc_score(np.r_[np.ones(len(p)), np.zeros(len(unknown))], np.r_[p, unknown]))
    assert min(shares) == 1
    assert np.mean(areas) > 0.85  # 0.92; the largest probability alone has 0.85


def test_order_and_batches_of_rows_do_not_matter():
    for kind in ("numbers", "gaps", "counts"):
        model = MaxDiscClassifier().fit(*simulated(kind, 600, 1))
        X = simulated(kind, 300, 2)[0]
        X = sp.csr_array(sp.vstack([X, X[:1] * 0])) if sp.issparse(X) else X
        p, order = model.novelty(X), np.random.default_rng(3).permutation(X.shape[0])
        np.testing.assert_array_equal(model.novelty(X[order]), p[order])
        np.testing.assert_array_equal(
            np.concatenate([model.novelty(X[i : i + 7]) for i in range(0, X.shape[0], 7)]), p
        )


def test_a_row_without_cells_is_no_stranger_and_far_rows_are_the_strangest():
    X, y = simulated("gaps", 600, 1)
    model = MaxDiscClassifier().fit(X, y)
    assert model.novelty(np.full((1, 12), np.nan)).tolist() == [1.0]
    far = model.novelty(np.array([[1e130] * 12, [-1e5] * 12, [1e130] + [np.nan] * 11]))
    np.testing.assert_allclose(far, 1 / 601)


def test_the_prior_does_not_matter():
    X, y = simulated("numbers", 600, 1)
    one, other = (
        MaxDiscClassifier(n_features="all"),
        MaxDiscClassifier(n_features="all", prior=[0.9, 0.05, 0.05]),
    )
    # Bands follow the ranking, which follows the prior: all in one band are of one rank.
    X = X[:, :1]
    np.testing.assert_array_equal(one.fit(X, y).novelty(X), other.fit(X, y).novelty(X))


def test_any_source_of_rows_gives_the_same_p_values():
    X, y = simulated("counts", 900, 1)
    whole = MaxDiscClassifier("poisson", cv="hash", evidence="calibrated").fit(X, y)
    cuts = [0, 200, 210, 900]
    batches = BatchRows(lambda: [(X[a:b], y[a:b]) for a, b in pairwise(cuts)], 3)
    parts = MaxDiscClassifier("poisson", cv="hash", evidence="calibrated").fit_rows(batches, whole.classes_)
    np.testing.assert_allclose(parts.novelty(X), whole.novelty(X), rtol=1e-9)


def test_compiled_folds_say_the_same_of_unknown_classes():
    X, y = simulated("counts", 300, 1)
    for name in ("poisson", "geometric", "exponential"):
        plans = fold_plans(4, X, y, None, None, np.arange(300))
        rows, edges, smoothing = ArrayRows(X, y, 3), np.array([3, 11, 30]), Smoothing(1.0)
        general = FoldModels.of(rows, FAMILIES[name], js_gm, None, plans)
        compiled = SparseFoldModels(rows, FAMILIES[name], None, plans)
        (one,), (other,) = (m.held_out(edges, (smoothing,), 50) for m in (general, compiled))
        a, b = general.unknown(edges, smoothing, 50, one), compiled.unknown(edges, smoothing, 50, other)
        assert a.keys() == b.keys() == set(range(4))
        for fold in a:
            by_row = [p[np.argsort(h[fold].rows)] for p, h in ((a[fold], one), (b[fold], other))]
            np.testing.assert_allclose(*by_row, rtol=1e-9, atol=1e-9)


@examples(25)
@given(
    st.sampled_from(["gaussian", "poisson", "gamma", "bernoulli"]), st.integers(1, 6), st.integers(0, 10**6)
)
def test_all_classes_together_are_one_class(family, n_classes, seed):
    X, y = random_data(family, 60, n_classes, 5, seed=seed)
    X = X + (1e6 if family == "gaussian" else 0)
    rows = ArrayRows(X, y, n_classes), ArrayRows(X, np.zeros(60, dtype=np.intp), 1)
    several, one = (r.moments(FAMILIES[family])[0] for r in rows)
    together = several.together()
    assert together.sums.shape == one.sums.shape
    np.testing.assert_allclose(together.weight, one.weight)
    alike = LinearDecision.of(FAMILIES[family], together, Smoothing(1.0), np.arange(5))
    expected = LinearDecision.of(FAMILIES[family], one, Smoothing(1.0), np.arange(5))
    np.testing.assert_allclose(alike.scores(X), expected.scores(X), rtol=1e-6, atol=1e-6)


def test_what_says_nothing_of_classes_says_nothing_of_unknown_ones():
    X, y = np.array([[1.0, 0, 5], [2, 0, 5], [0, 0, 5], [4, 0, 5]]), np.array([0, 0, 1, 1])
    moments = class_moments(FAMILIES["poisson"].statistics, X, y, 2)
    _, decision = ranked_decision(FAMILIES["poisson"], moments, Smoothing(1.0), js_gm)
    unknown = unknown_beside(decision, moments, Smoothing(1.0))
    assert unknown.telling.tolist() == decision.telling.tolist()
    assert not decision.telling.all()


@examples(50)
@given(st.lists(st.integers(-50, 50), min_size=1, max_size=2000), st.integers(0, 10**6))
def test_p_values_are_never_below_the_share_of_rows_as_strange(found, seed):
    values = np.array(found) / 7
    evidence = np.stack([values, values - 100], axis=1)[:, :, None]
    nothing = np.zeros((len(values), 2, 1))
    novelty = Novelty.learnt(evidence, nothing, np.ones(len(values)), np.ones(1), np.zeros(2))
    new = np.r_[novelty.familiarity[1:], np.random.default_rng(seed).normal(scale=8, size=50)]
    p, n = novelty.p_values(new), len(values)
    own = -np.logaddexp(-100.0, np.logaddexp(*(novelty.unknown[:, None] - values)))
    exact = (1 + (own[None] <= new[:, None] + 1e-9).sum(axis=1)) / (n + 1)
    np.testing.assert_allclose(p, exact)  # there are as many places as values


def test_a_short_table_is_on_the_safe_side():
    values = np.random.default_rng(0).normal(size=20_000)
    familiarity, p_value = _table(values, np.ones(20_000))
    assert len(familiarity) <= 513
    p = Novelty(np.ones(1), np.zeros(2), np.zeros(2), familiarity, p_value).p_values(np.sort(values))
    exact = (1 + np.arange(1, 20_001)) / 20_001
    assert (p >= exact - 1e-12).all()
    assert (p <= 1.021 * exact).all()


def test_models_without_held_out_rows_say_what_to_do():
    X, y = simulated("numbers", 200, 1)
    fits = [MaxDiscClassifier(evidence="raw", structure=s).fit(X, y) for s in ("independent", "joint")]
    for model in (*fits, MaxDiscClassifier().partial_fit(X, y)):
        with pytest.raises(ValueError, match=r"call fit with evidence='calibrated'") as error:
            model.novelty(X)
        assert "\n" not in str(error.value)
    model = MaxDiscClassifier().partial_fit(X, y).choose_n_features(X, y)
    assert model.novelty(X).shape == (200,)


@pytest.mark.parametrize("covariance", ["shared", "per_class"])
def test_joint_densities_know_what_is_usual(covariance, tmp_path):
    rng = np.random.default_rng(0)
    means, mixing = 4 * rng.normal(size=(4, 6)), rng.normal(size=(6, 6))
    y = rng.integers(0, 4, size=1200)
    X = means[y] + rng.normal(size=(1200, 6)) @ mixing
    known = y < 3
    train, test = known & (np.arange(1200) < 600), known & (np.arange(1200) >= 600)
    model = MaxDiscClassifier(structure=Joint(covariance, transform=None)).fit(X[train], y[train])
    usual = model.novelty(X[test])
    for level in (0.05, 0.2, 0.5):
        assert abs((usual <= level).mean() - level) < 4 * np.sqrt(level / len(usual)) + 0.02
    assert np.median(model.novelty(X[~known])) < 0.1
    assert (model.novelty(1e3 * X[:5]) < 0.02).all()
    assert model.novelty(np.full((1, 6), np.nan)).tolist() == [1.0]
    gaps = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    save(model, tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").novelty(gaps), model.novelty(gaps))


def test_p_values_go_on_with_new_rows_and_classes():
    X, y = simulated("numbers", 900, 1)
    model = MaxDiscClassifier(structure="independent").fit(X[y < 2], y[y < 2])
    before = model.novelty(X[y == 2])
    model.partial_fit(X[y == 2], y[y == 2])
    assert np.median(model.novelty(X[y == 2])) > np.median(before)


# ------------------------------------------------------------------ model files


@pytest.mark.parametrize("moments", [True, False])
@pytest.mark.parametrize(
    ("kind", "evidence"), [("gaps", "calibrated"), ("numbers", "refined"), ("counts", "refined")]
)
def test_files_keep_every_bit_of_p_values(tmp_path, kind, evidence, moments):
    X, y = simulated(kind, 600, 1)
    model = MaxDiscClassifier(evidence=evidence).fit(X, y)
    save(model, tmp_path / "m", moments=moments)
    assert load(tmp_path / "m").novelty(X).tobytes() == model.novelty(X).tobytes()


def test_files_from_before_say_what_to_do():
    old = load(Path(__file__).parents[1] / "model_file" / "fixtures" / "weighed-refined.maxdisc")
    names = getattr(old, "feature_names_in_", np.arange(old.n_features_in_))
    with pytest.raises(ValueError, match="call fit"):
        old.novelty(pd.DataFrame(np.zeros((1, old.n_features_in_)), columns=names))


WRONG = {
    "p-values that fall": lambda _, t: t.update({"novelty.p_value": t["novelty.p_value"][::-1].copy()}),
    "a p-value of 0": lambda _, t: t["novelty.p_value"].__setitem__(0, 0.0),
    "a p-value above 1": lambda _, t: t["novelty.p_value"].__setitem__(-1, 1.5),
    "a table out of order": lambda _, t: t["novelty.familiarity"].__setitem__(0, 1e9),
    "a table of two lengths": lambda _, t: t.update({"novelty.p_value": t["novelty.p_value"][:-1].copy()}),
    "a NaN": lambda _, t: t["novelty.familiarity"].__setitem__(0, np.nan),
    "weights below 0": lambda _, t: t["novelty.weights"].__setitem__(0, -1.0),
    "a level too few": lambda _, t: t.update({"novelty.level": t["novelty.level"][:-1].copy()}),
    "no table": lambda _, t: t.pop("novelty.p_value"),
    "no density": lambda _, t: t.pop("unknown0.weights"),
    "a density too many": lambda _, t: t.update(
        {"unknown0.weights": t["unknown0.weights"].repeat(2, axis=1)}
    ),
    "a density that is none": lambda _, t: t["unknown0.baseline"].__imul__(7.0),
    "a word that is none": lambda d, _: d["model"]["fitted"].update(novelty=1.0),
    "a table that nothing asks for": lambda d, _: d["model"]["fitted"].pop("novelty"),
    "an entry that is none": lambda d, _: d["model"]["fitted"].update(novelties=1.0),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_tables_are_refused(tmp_path, name):
    X, y = simulated("gaps", 200, 1)
    save(MaxDiscClassifier(structure="independent").fit(X, y), tmp_path / "m")
    container = Container.of((tmp_path / "m").read_bytes())
    document, tensors = container.document, {k: v.copy() for k, v in container.tensors().items()}
    WRONG[name](document, tensors)
    file = io.BytesIO()
    write(file, tensors, document)
    (tmp_path / "wrong").write_bytes(file.getvalue())
    with pytest.raises(ModelFileError) as error:
        load(tmp_path / "wrong")
    assert "\n" not in str(error.value)


# ------------------------------------------------------------------ newsgroups


@pytest.mark.slow
def test_newsgroups_that_were_left_out_are_noticed(paper_data):
    table = pd.read_parquet(paper_data / "text" / "20newsgroups_bydate.parquet")
    groups, areas, alone, flagged = np.unique(table["label"]), [], [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        known = ~table["label"].isin(rng.choice(groups, 5, replace=False)).to_numpy()
        train = rng.random(len(table)) < 0.5
        words = TermFrequencyVectorizer(stop_words="english", min_df=3)
        X = words.fit_transform(table["text"][train & known])
        T = words.transform(table["text"][~train])
        # P-values are of densities: they are compared with probabilities of these, without corrections.
        for evidence in ("auto", "calibrated"):
            model = MaxDiscClassifier(evidence=evidence).fit(X, table["label"][train & known])
            p, best = model.novelty(T), model.predict_proba(T).max(axis=1)
            areas.append((evidence, roc_auc_score(known[~train], p)))
            alone.append(roc_auc_score(known[~train], best))
            flagged.append((p[known[~train]] <= 0.01).mean())
    of_densities = [area for evidence, area in areas if evidence == "calibrated"]
    assert np.mean([area for _, area in areas]) >= 0.85
    assert np.mean(of_densities) >= np.mean(alone[1::2])
    assert 0.005 < np.mean(flagged) < 0.015
