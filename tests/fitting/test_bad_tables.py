"""Tables that cannot be what they should: one line that names the column, at fit and at predict."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from maxdisc import MaxDiscClassifier

N = 60
Y = np.arange(N) % 2
PLAIN = {"n_features": "all", "smoothing": 1.0, "evidence": "raw"}


def table(**columns):
    rng = np.random.default_rng(0)
    good = {
        "size": rng.normal(Y),
        "income": rng.gamma(2.0 + Y),
        "visits": rng.poisson(1 + Y),
        "colour": np.array(["red", "blue", "green"], dtype=object)[(Y + rng.integers(0, 2, N)) % 3],
    }
    return pd.DataFrame(good | columns)


def every_third(odd, usual):
    return np.where(np.arange(N) % 3 == 0, odd, np.asarray(usual, dtype=object))


def gaps_in_class(label):
    income = table()["income"].to_numpy()
    return np.where(label == Y, np.nan, income)


AT_FIT = {
    "text among numbers": (
        {},
        {"size": every_third("tall", range(N))},
        "column 'size' mixes numbers such as 1 and text such as 'tall'",
    ),
    "text among truth values": (
        {},
        {"size": every_third("yes", [True] * N)},
        "column 'size' mixes truth values such as True and text such as 'yes'",
    ),
    "numbers as text, and a family of numbers": (
        {"family": {"size": "gaussian"}},
        {"size": [f"{v}" for v in range(N)]},
        "column 'size' holds text: its family is 'categorical', not 'gaussian'",
    ),
    "a family of numbers for all": (
        {"family": "gaussian"},
        {},
        "column 'colour'",
    ),
    "negative numbers, and a family of positive ones": (
        {"family": {"income": "gamma"}},
        {"income": np.linspace(-1, 1, N)},
        "gamma family takes .* but column 'income' has -1",
    ),
    "fractions, and a family of counts": (
        {"family": {"income": "poisson"}},
        {"income": np.linspace(-1, 1, N)},
        "poisson family takes .* but column 'income' has -1",
    ),
    "numbers beyond 1, and a family of shares": (
        {"family": {"income": "beta"}},
        {"income": np.linspace(0.1, 2, N)},
        "beta family takes .* but column 'income' has",
    ),
    "counts, and a family of presence": (
        {"family": {"visits": "bernoulli"}},
        {"visits": np.arange(N)},
        "bernoulli family takes .* but column 'visits' has",
    ),
    "no cell at all": (
        {},
        {"income": np.full(N, np.nan)},
        "all cells of column 'income' are missing: drop the column",
    ),
    "no cell of a category": (
        {"categorical_features": ["colour"]},
        {"colour": np.full(N, None, dtype=object)},
        "all cells of column 'colour' are missing: drop the column",
    ),
}


@pytest.mark.parametrize("case", AT_FIT)
def test_fit_names_the_column_in_one_line(case):
    parameters, columns, message = AT_FIT[case]
    model = MaxDiscClassifier(**PLAIN | parameters)
    with pytest.raises(ValueError, match=message) as error:
        model.fit(table(**columns), Y)
    assert "\n" not in str(error.value)
    assert not hasattr(model, "classes_")


AT_PREDICT = {
    "a category as numbers": ({"colour": np.arange(N)}, "column 'colour' held categories .* now numbers"),
    "a category as truth values": ({"colour": Y == 1}, "column 'colour' held categories .* now"),
    "numbers as text": ({"size": ["tall"] * N}, "column 'size' held numbers .* now text such as 'tall'"),
    "numbers as a category": ({"visits": pd.Categorical(["few"] * N)}, "column 'visits' held numbers"),
    "text among numbers": ({"size": every_third("tall", range(N))}, "column 'size' mixes numbers"),
    "dates": ({"size": pd.Timestamp("2026-01-01")}, "column 'size' holds datetime64"),
}


@pytest.mark.parametrize("case", AT_PREDICT)
def test_predict_names_the_column_in_one_line(case):
    columns, message = AT_PREDICT[case]
    model = MaxDiscClassifier(**PLAIN).fit(table(), Y)
    with pytest.raises(ValueError, match=message) as error:
        model.predict(table(**columns))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("to", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_other_types_of_one_kind_are_no_matter(to):
    frame = table()
    model = MaxDiscClassifier(**PLAIN).fit(frame, Y)
    expected = model.predict_proba(frame)
    other = frame.assign(colour=frame["colour"].astype("category"), visits=frame["visits"].astype(float))
    np.testing.assert_array_equal(model.predict_proba(to(other)), expected)


def test_a_class_without_a_cell_is_named_in_one_line():
    with pytest.warns(UserWarning, match="all cells of column 'income' are missing in class 1") as warned:
        model = MaxDiscClassifier(**PLAIN).fit(table(income=gaps_in_class(1)), Y)
    assert all("\n" not in str(one.message) for one in warned)
    assert np.isfinite(model.predict_log_proba(table())).all()


def test_batches_that_contradict_the_first_are_named():
    model = MaxDiscClassifier().partial_fit(table(), Y)
    before = model.predict_proba(table())
    for columns, message in (
        ({"colour": np.arange(N)}, "column 'colour' held categories"),
        ({"size": ["tall"] * N}, "column 'size' held numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(table(**columns), Y)
    np.testing.assert_array_equal(model.predict_proba(table()), before)
