"""Mixed tables in batches: the same rows, in any batches and order, give the model of the frame in memory."""

from __future__ import annotations

from itertools import islice, pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxdisc import MaxDiscClassifier
from maxdisc.engines import Journal, LabelledStream
from maxdisc.rows.frames import cells_of
from maxdisc.rows.table_totals import TableTotals
from tests.conftest import examples


def people(n=600, seed=0):
    """Numbers, counts, codes, amounts, truth values and words, each with gaps, and labels."""
    rng = np.random.default_rng(seed)
    y, colours = rng.integers(0, 3, n), np.array(["red", "green", "blue", "grün"], dtype=object)
    frame = pd.DataFrame(
        {
            "size": rng.normal(y),
            "amount": rng.gamma(1.0 + y),
            "count": rng.poisson(1 + 3 * y).astype(float),
            "code": ((y + rng.integers(0, 2, n)) % 3 * 4).astype(float),
            "share": np.where(rng.random(n) < 0.4, 0.0, rng.gamma(2.0 + y)),
            "told": pd.array(rng.random(n) < 0.2 + 0.3 * y, dtype="boolean"),
            "colour": colours[(y + rng.integers(0, 2, n)) % 4],
            "city": np.array([f"city {i}" for i in range(40)], dtype=object)[rng.integers(0, 40, n)],
        }
    )
    for place, name in enumerate(frame):
        frame[name] = frame[name].mask(rng.random(n) < 0.02 * place)
    return frame, np.array(["low", "middle", "high"])[y]


def streamed(parts, journal=None, **given):
    def batches(done):
        return islice(iter(parts), done, None)

    return LabelledStream(batches, journal=journal).fit(MaxDiscClassifier(cv="hash", **given))


def cut(frame, y, sizes, to=lambda part: part):
    edges = np.r_[0, np.cumsum(sizes)]
    pairs = zip(edges[:-1], [*edges[1:-1], len(y)], strict=True)
    return [(to(frame.iloc[a:b]), y[a:b]) for a, b in pairs]


def alike(one, other, X):
    np.testing.assert_array_equal(one._schema.kinds, other._schema.kinds)
    assert [family for family, _ in one.families_] == [family for family, _ in other.families_]
    for (_, here), (_, there) in zip(one.families_, other.families_, strict=True):
        np.testing.assert_array_equal(here, there)
    np.testing.assert_array_equal(one._schema.levels.keys, other._schema.levels.keys)
    np.testing.assert_array_equal(one._schema.levels.words, other._schema.levels.words)
    for here, there in zip(one.moments_.parts, other.moments_.parts, strict=True):
        np.testing.assert_allclose(here.weight, there.weight, rtol=1e-12)
        scale = np.abs(there.sums).max(initial=1.0)
        np.testing.assert_allclose(here.centred()[1], there.centred()[1], rtol=1e-9, atol=1e-12 * scale)
    assert one.n_selected_ == other.n_selected_
    assert one.smoothing_ == other.smoothing_
    np.testing.assert_array_equal(one.ranking_, other.ranking_)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("given", [{}, {"evidence": "raw"}, {"missing": "informative"}], ids=str)
def test_batches_of_a_frame_give_the_model_of_the_frame(given):
    frame, y = people()
    whole = MaxDiscClassifier(cv="hash", **given).fit(frame, y)
    assert len(whole.families_) >= 4
    alike(streamed(cut(frame, y, [200, 150, 7, 200]), **given), whole, frame)
    order = np.random.default_rng(1).permutation(len(y))
    alike(streamed(cut(frame.iloc[order], y[order], [31] * 19), **given), whole, frame)


def test_the_order_of_rows_in_memory_does_not_matter_either():
    frame, y = people()
    order = np.random.default_rng(2).permutation(len(y))
    whole = MaxDiscClassifier(cv="hash").fit(frame, y)
    alike(MaxDiscClassifier(cv="hash").fit(frame.iloc[order], y[order]), whole, frame)


@pytest.mark.parametrize("to", [pl.from_pandas, lambda f: pa.Table.from_pandas(f, preserve_index=False)])
def test_batches_of_other_libraries_do_as_well(to):
    frame, y = people()
    whole = MaxDiscClassifier(cv="hash").fit(frame, y)
    alike(streamed(cut(frame, y, [250, 250], to)), whole, frame)


def test_families_may_be_given():
    frame, y = people()
    given = {"family": {"size": "gaussian", "count": "poisson"}, "categorical_features": ["code"]}
    alike(
        streamed(cut(frame, y, [100] * 5), **given),
        MaxDiscClassifier(cv="hash", **given).fit(frame, y),
        frame,
    )


def test_one_family_for_all_is_as_before():
    frame, y = people()
    numbers = frame[["size", "amount"]]
    one = streamed(cut(numbers, y, [100] * 5), family="gaussian")
    whole = MaxDiscClassifier(family="gaussian", cv="hash").fit(numbers, y)
    np.testing.assert_array_equal(one.predict(numbers), whole.predict(numbers))


@examples(25)
@given(st.lists(st.integers(1, 59), max_size=4), st.integers(0, 10))
def test_totals_are_a_commutative_monoid(edges, seed):
    frame, y = people(60, seed)
    whole = TableTotals.of(cells_of(frame), y, list(frame))
    edges = sorted({0, *edges, 60})
    parts = [TableTotals.of(cells_of(frame[a:b]), y[a:b], list(frame)) for a, b in pairwise(edges)]
    for order in (parts, parts[::-1]):
        total = order[0]
        for part in order[1:]:
            total = total + part
        for name in TableTotals.__dataclass_fields__:
            np.testing.assert_array_equal(getattr(total, name), getattr(whole, name), err_msg=name)


def test_a_checkpoint_holds_what_mixed_columns_need(tmp_path):
    frame, y = people()
    parts = cut(frame, y, [100] * 5)
    journal = Journal(tmp_path / "kept", {"of": "a test"}, every=0.0)
    alike(streamed(parts, journal), streamed(parts), frame)


def test_what_batches_cannot_have_is_said_by_its_name():
    frame, y = people()
    other = frame.assign(size="large")
    with pytest.raises(ValueError, match="column 'size' mixes numbers and text: make it all of one kind"):
        streamed([(frame, y), (other, y)])
    with pytest.raises(ValueError, match="all cells of column 'size' are missing: drop the column"):
        streamed(cut(frame.assign(size=np.nan), y, [300]))
    with pytest.raises(ValueError, match="column 'size' holds numbers, of more than 24 values"):
        streamed(cut(frame, y, [300]), categorical_features=["size"])
    with pytest.raises(ValueError, match="the columns of some batches have other names"):
        streamed([(frame, y), (frame.rename(columns={"size": "weight"}), y)])
    with pytest.raises(ValueError, match=r"X has other columns: leave them out, or use redundancy=0\.0"):
        streamed(cut(frame, y, [300]), redundancy=1.0)
    frame.loc[17, "size"] = np.inf
    with pytest.raises(ValueError, match="column 'size' has inf in row 17"):
        streamed(cut(frame, y, [300]))
