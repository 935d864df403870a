"""Missing cells are no evidence, wherever rows come from; where there are none, no bit changes."""

from __future__ import annotations

import tracemalloc
from itertools import islice, pairwise

import numpy as np
import pandas as pd
import pytest

from maxdisc import MaxDiscClassifier
from maxdisc.engines import LabelledStream

RAW = {"evidence": "raw", "n_features": "all", "smoothing": 1.0}
OWN_TYPES = {"size": "Float64", "count": "Int64", "truth": "boolean", "word": "string"}


def frame(n=150, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    columns = {
        "size": rng.normal(y),
        "count": rng.poisson(1.0 + y),
        "truth": rng.random(n) < 0.2 + 0.3 * y,
        "word": np.array(["low", "mid", "high"], dtype=object)[(y + rng.integers(0, 2, n)) % 3],
    }
    return pd.DataFrame(columns), np.array(["a", "b", "c"])[y]


def with_gaps(n=240, d=6, share=0.3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.normal(0.7 * (y[:, None] == np.arange(d) % 3), size=(n, d))
    X[rng.random(X.shape) < share] = np.nan
    return X, y


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_gaps_of_one_column_change_no_bit_of_the_others(family):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 200)
    X = rng.poisson(1.0 + (y[:, None] == np.arange(5) % 3)).astype(float)
    gaps = X.copy()
    gaps[::7, 4] = np.nan
    whole, holed = (MaxDiscClassifier(family=family, **RAW).fit(Z, y) for Z in (X, gaps))
    np.testing.assert_array_equal(whole.scores_[:4], holed.scores_[:4])
    a, b = whole.explain(X), holed.explain(X)
    for column in range(4):
        places = [int(np.flatnonzero(m.decision_.columns == column)[0]) for m in (whole, holed)]
        np.testing.assert_array_equal(a.contributions[:, :, places[0]], b.contributions[:, :, places[1]])


@pytest.mark.parametrize("given", [{}, RAW], ids=["chosen", "raw"])
def test_types_that_could_have_gaps_change_no_bit(given):
    X, y = frame()
    plain, able = (MaxDiscClassifier(**given).fit(Z, y) for Z in (X, X.astype(OWN_TYPES)))
    assert plain.n_selected_ == able.n_selected_
    assert plain.smoothing_ == able.smoothing_
    np.testing.assert_array_equal(plain.scores_, able.scores_)
    np.testing.assert_array_equal(plain.predict_proba(X), able.predict_proba(X.astype(OWN_TYPES)))
    # ... and a gap in one row changes no other row.
    holed = X.astype(OWN_TYPES)
    holed.iloc[3] = pd.NA
    others = np.arange(len(X)) != 3
    np.testing.assert_allclose(able.predict_proba(holed)[others], plain.predict_proba(X)[others], rtol=1e-12)
    prior = able.predict_joint_log_proba(holed)[3]
    np.testing.assert_allclose(prior, able.decision_.log_prior, rtol=1e-12)


def test_a_stream_with_gaps_gives_the_model_of_the_rows_in_memory():
    X, y = with_gaps()
    here = MaxDiscClassifier(cv="hash").fit(X, y)

    def batches(done):
        cuts = pairwise([0, 50, 51, 200, 240])
        return islice(((X[start:stop], y[start:stop]) for start, stop in cuts), done, None)

    there = LabelledStream(batches).fit(MaxDiscClassifier(cv="hash"))
    assert there.n_selected_ == here.n_selected_
    np.testing.assert_allclose(there.moments_.observed, here.moments_.observed)
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(X), rtol=1e-9)


def test_batches_with_gaps_add_up_where_only_some_have_any():
    X, y = with_gaps()
    X[:80] = np.nan_to_num(X[:80])
    whole, parts = MaxDiscClassifier(**RAW).fit(X, y), MaxDiscClassifier(**RAW)
    for some in (slice(0, 80), slice(80, 240)):
        parts.partial_fit(X[some], y[some])
    np.testing.assert_allclose(parts.predict_proba(X), whole.predict_proba(X), rtol=1e-9)


def test_the_path_is_that_of_models_of_each_size_with_gaps():
    X, y = with_gaps()
    half = np.arange(240) % 2 == 0
    folds = [(np.flatnonzero(half), np.flatnonzero(~half))]
    path = MaxDiscClassifier(cv=folds, evidence="raw", smoothing=1.0).fit(X, y).path_
    for place, size in enumerate(path.sizes.tolist()):
        model = MaxDiscClassifier(n_features=size, evidence="raw", smoothing=1.0).fit(X[half], y[half])
        assert path.accuracy[0, place] == pytest.approx(model.score(X[~half], y[~half]))
        own = model.predict_log_proba(X[~half])[np.arange(120), y[~half]]
        assert path.log_loss[0, place] == pytest.approx(-own.mean())


def test_many_levels_stay_sparse():
    rng = np.random.default_rng(0)
    n, n_levels = 20_000, 10_000
    y = rng.integers(0, 2, n)
    number = 2 * rng.integers(0, n_levels // 2, n) + np.where(rng.random(n) < 0.9, y, 1 - y)
    X = pd.DataFrame({"word": [f"w{i}" for i in number]})
    tracemalloc.start()
    try:
        model = MaxDiscClassifier(cv=3).fit(X, y)
        accuracy = model.score(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert accuracy > 0.85
    # One number for each row and level would be 1,600 MB.
    assert peak < 100e6
