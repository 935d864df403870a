"""A stream of labelled batches in Python: text, sparse and dense rows, labels of any kind."""

from __future__ import annotations

from itertools import islice, pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline

from maxdisc import MaxDiscClassifier, TermFrequencyVectorizer
from maxdisc.engines import Journal, LabelledStream
from maxdisc.engines import labelled_stream as streams
from maxdisc.testing import batches_of
from tests.conftest import examples

RNG = np.random.default_rng(0)
Y = np.array(["ham", "spam", "eggs"])[np.arange(150) % 3]
TEXTS = [
    " ".join([*RNG.choice([f"{y}{k}" for k in range(4)], 2), *RNG.choice(list("abcdefgh"), 4)]) for y in Y
]
TEXTS = [text.replace(" ", "x ") + " end" for text in TEXTS]
COUNTS = RNG.poisson(0.5 + (np.arange(150)[:, None] % 3 == np.arange(9) % 3)).astype(float)


def stream_of(X, y, cuts, *more, **given):
    ends = [0, *sorted(cuts), len(y)]

    def batches(done):
        pairs = pairwise(ends)
        return islice(((X[start:stop], y[start:stop]) for start, stop in pairs), done, None)

    return LabelledStream(batches, *more, **given)


@examples(8)
@given(cuts=st.lists(st.integers(1, 149), max_size=9, unique=True), segment=st.integers(1, 4))
def test_documents_in_any_chunks_give_the_pipeline_of_all(cuts, segment):
    here = make_pipeline(TermFrequencyVectorizer(min_df=2), MaxDiscClassifier(cv="hash")).fit(TEXTS, Y)
    words = TermFrequencyVectorizer(min_df=2)
    with batches_of(segment):
        there = stream_of(TEXTS, Y, cuts, words).fit(MaxDiscClassifier(cv="hash"))
    assert words.get_feature_names_out().tolist() == here[0].get_feature_names_out().tolist()
    assert words.mean_length_ == here[0].mean_length_
    assert there.n_selected_ == here[1].n_selected_
    np.testing.assert_allclose(there.moments_.sums, here[1].moments_.sums, rtol=1e-12)
    np.testing.assert_array_equal(there.predict(words.transform(TEXTS)), here.predict(TEXTS))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.coo_array])
@pytest.mark.parametrize(
    "labels", [Y, np.arange(150) % 3, np.arange(150) % 3 == 1], ids=["str", "int", "bool"]
)
def test_rows_of_any_form_and_labels_of_any_kind(form, labels, tmp_path):
    X = sp.csr_array(COUNTS) if form is not np.asarray else COUNTS
    here = MaxDiscClassifier(structure="independent", cv="hash").fit(X, labels)
    ends = [0, 40, 41, 150]

    def batches(done):
        for start, stop in list(pairwise(ends))[done:]:
            yield form(X[start:stop]), labels[start:stop]

    for _ in range(2):  # the second time from the checkpoint
        journal = Journal(tmp_path, {"data": "counts"}, resume=True)
        there = LabelledStream(batches, journal=journal).fit(MaxDiscClassifier(cv="hash"))
        assert there.classes_.dtype == here.classes_.dtype
        np.testing.assert_array_equal(there.classes_, here.classes_)
        np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(X), rtol=1e-9)


def test_names_of_columns_stay():
    names = [f"column {k}" for k in range(9)]
    model = stream_of(COUNTS, Y, [70], names=names).fit(MaxDiscClassifier())
    assert model.feature_names_in_.tolist() == names
    broken = COUNTS.copy()
    broken[100, 4] = -1.0
    with pytest.raises(ValueError, match="'column 4'"):
        stream_of(broken, Y, [70], names=names).fit(MaxDiscClassifier("poisson"))


def test_a_negative_value_anywhere_rules_counts_out():
    X = sp.csr_array(COUNTS)
    assert stream_of(X, Y, [70]).fit(MaxDiscClassifier()).families_[0][0].name == "poisson"
    X.data[-1] = -1.0
    assert stream_of(X, Y, [70]).fit(MaxDiscClassifier()).families_[0][0].name == "gaussian"


def test_what_does_not_fit_is_told(monkeypatch):
    def ragged(done):
        return iter([(COUNTS[:50], Y[:50]), (COUNTS[50:, :5], Y[50:])][done:])

    with pytest.raises(ValueError, match="some batches have 9 columns, others 5"):
        LabelledStream(ragged).fit(MaxDiscClassifier())
    passes = []

    def changing(done):
        passes.append(done)
        return iter([(COUNTS, Y if len(passes) == 1 else np.char.add(Y, "?"))])

    with pytest.raises(ValueError, match="labels that the first pass did not find"):
        LabelledStream(changing).fit(MaxDiscClassifier())
    with pytest.raises(ValueError, match="no rows"):
        LabelledStream(lambda _: iter([])).fit(MaxDiscClassifier())
    monkeypatch.setattr(streams, "MOST_CLASSES", 20)
    with pytest.raises(ValueError, match="more than 20 different labels"):
        stream_of(COUNTS, np.arange(150), [50]).look()
