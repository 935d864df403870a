"""Frames of any library are taken apart alike, and what is no column of one kind is said by its name."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxdisc import MaxDiscClassifier
from maxdisc.rows.frames import BOOLEAN, EMPTY, NUMBER, WORD, Levels, cells_of, is_frame, written_out


def mixed(n=6):
    return pd.DataFrame(
        {
            "size": np.arange(n) / 4,
            "count": pd.array([1, None, *range(n - 2)], dtype="Int64"),
            "colour": ["red", None, *["blue"] * (n - 2)],
            "kind": pd.Categorical(["a", "b", None, *["a"] * (n - 3)]),
            "open": [True, False] * (n // 2),
            "gaps": pd.array([True, None, *[False] * (n - 2)], dtype="boolean"),
        }
    )


@pytest.mark.parametrize("to", [pl.from_pandas, pa.Table.from_pandas, lambda frame: frame.convert_dtypes()])
def test_libraries_agree(to):
    frame = mixed()
    here, there = cells_of(frame), cells_of(to(frame))
    assert is_frame(to(frame))
    assert here.kinds.tolist() == [NUMBER, NUMBER, WORD, WORD, BOOLEAN, BOOLEAN] == there.kinds.tolist()
    np.testing.assert_array_equal(here.numbers, there.numbers)
    np.testing.assert_array_equal(here.words, there.words)
    np.testing.assert_array_equal(here.missing(), frame.isna())


def test_objects_are_what_their_cells_are():
    frame = pd.DataFrame(
        {
            "truth": [True, None, np.bool_(False)],
            "number": [1, np.nan, Decimal("2.5")],
            "word": ["x", pd.NA, None],
            "nothing": [None, np.nan, pd.NaT],
        },
        dtype=object,
    )
    cells = cells_of(frame)
    assert cells.kinds.tolist() == [BOOLEAN, NUMBER, WORD, EMPTY]
    np.testing.assert_array_equal(cells.numbers[:, :2], [[1, 1], [np.nan, np.nan], [0, 2.5]])
    assert cells.words.tolist() == [["x"], [None], [None]]


def test_categories_of_numbers_are_words():
    frame = pd.DataFrame({"code": pd.Categorical([3, 1, None]), "rate": pd.Categorical([0.5, 2.0, 0.5])})
    assert cells_of(frame).words.tolist() == [["3", "0.5"], ["1", "2"], [None, "0.5"]]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["a", 3, None], "column 'c' mixes numbers such as 3 and text such as 'a': make it all of one kind"),
        ([True, "no", None], "column 'c' mixes truth values such as True and text such as 'no'"),
        ([[1], [2], [3]], r"column 'c' holds a list, such as '\[1\]', neither a number nor a category"),
        ([1 + 2j, 0j, 1j], "column 'c' holds complex128, neither numbers nor categories"),
        ([datetime.datetime(2026, 1, 1)] * 3, "column 'c' holds datetime64.*neither numbers nor categories"),
    ],
)
def test_a_column_that_is_none_is_named(column, message):
    with pytest.raises(ValueError, match=message) as error:
        cells_of(pd.DataFrame({"b": [1, 2, 3], "c": column}))
    assert "\n" not in str(error.value)


def test_dates_of_polars_and_arrow_are_named():
    dates = {"b": [1], "c": [datetime.date(2026, 1, 1)]}
    for frame in (pl.DataFrame(dates), pa.table(dates)):
        with pytest.raises(ValueError, match=r"column 'c' holds .*neither numbers nor categories"):
            cells_of(frame)


cells = st.lists(
    st.tuples(st.sampled_from(["a", "b", "", "é", None]), st.sampled_from(["a", "z", None])),
    min_size=1,
    max_size=12,
)


@given(cells, cells)
def test_levels_are_a_dictionary_for_each_column(seen, new):
    at = np.array([2, 5])
    here = np.array(seen, dtype=object).reshape(-1, 2)
    there = np.array(new, dtype=object).reshape(-1, 2)
    levels = Levels.of(here, at)
    own = [sorted({row[c] for row in seen} - {None}) for c in range(2)]
    assert list(zip(levels.columns, levels.names, strict=True)) == [
        (column, word) for column, words in zip(at, own, strict=True) for word in words
    ]
    matrix, unseen = levels.indicators(there, at)
    for r, row in enumerate(new):
        found = {(levels.columns[e], levels.names[e]) for e in np.flatnonzero(matrix[[r]].toarray())}
        known = {(at[c], w) for c, w in enumerate(row) if w is not None and w in own[c]}
        assert found == known
        assert unseen[r].tolist() == [w is not None and w not in own[c] for c, w in enumerate(row)]
    both = levels.joined(Levels.of(there, at))
    np.testing.assert_array_equal(both.keys, Levels.of(np.concatenate([here, there]), at).keys)
    where = both.positions(levels)
    assert both.names[where].tolist() == levels.names.tolist()
    assert both.columns[where].tolist() == levels.columns.tolist()


def test_what_is_no_text_is_written_out():
    assert [written_out(v) for v in (3, 3.0, np.int8(3), True, 0.5, -0.0)] == [
        "3",
        "3",
        "3",
        "True",
        "0.5",
        "0",
    ]


@pytest.mark.parametrize("dtype", ["string", "category"])
def test_words_are_the_same_in_whatever_type_pandas_keeps_them(dtype):
    rng = np.random.default_rng(5)
    y = np.arange(60) % 2
    words = np.array(["red", "green", "blue", None], dtype=object)[rng.integers(0, 4, (60, 3))]
    words[:, 0] = np.where(y == 1, "up", words[:, 0])
    frame = pd.DataFrame(words, columns=["a", "b", "c"]).assign(x=rng.normal(y))
    other = frame.astype(dict.fromkeys("abc", dtype))
    np.testing.assert_array_equal(cells_of(other).words, cells_of(frame).words)
    model = MaxDiscClassifier(evidence="raw").fit(frame, y)
    again = MaxDiscClassifier(evidence="raw").fit(other, y)
    np.testing.assert_array_equal(again._schema.levels.keys, model._schema.levels.keys)
    new = frame.assign(b="violet")
    expected = model.predict_joint_log_proba(new)
    np.testing.assert_array_equal(
        again.predict_joint_log_proba(new.astype(dict.fromkeys("abc", dtype))), expected
    )
    np.testing.assert_array_equal(again.unseen_categories(new), [0, 60, 0, 0])


@pytest.mark.parametrize("to", [lambda f: f, pl.DataFrame, pa.Table.from_pandas])
def test_words_of_columns_that_are_not_wanted_are_not_read(to):
    frame = pd.DataFrame({"a": ["x", "y"], "b": [1.5, 2.5], "c": ["p", None], "d": ["r", "s"]})
    cells = cells_of(to(frame), wanted=np.array([1, 2]))
    assert cells.at.tolist() == [2]
    assert cells.words.tolist() == [["p"], [None]]
    np.testing.assert_array_equal(cells.numbers[:, 1], [1.5, 2.5])


def test_what_is_in_a_column_that_the_model_does_not_keep_does_not_matter():
    y = np.arange(40) % 2
    frame = pd.DataFrame({"a": np.where(y == 1, "up", "down"), "b": list("pqrs") * 10})
    model = MaxDiscClassifier(n_features=1, evidence="raw", smoothing=1.0).fit(frame, y)
    assert model.get_support().tolist() == [True, False]
    mixed = frame.assign(b=[1, "p"] * 20)
    np.testing.assert_array_equal(model.predict(mixed), model.predict(frame))
    with pytest.raises(ValueError, match="column 'a' mixes numbers such as 1 and text such as 'p'"):
        model.predict(frame.assign(a=[1, "p"] * 20))
