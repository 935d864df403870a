"""The two switches, and what they must not change: results."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.sparse as sp

from maxdisc import MaxDiscClassifier, TermFrequencyVectorizer
from maxdisc.numerics.switches import batch_size, is_compiled
from maxdisc.testing import batches_of, taking

OTHER_WAYS = {
    "compiled": lambda: taking("compiled"),
    "plain": lambda: taking("plain"),
    "small batches": lambda: batches_of(7),
}
either_way = pytest.mark.parametrize("other_way", OTHER_WAYS.values(), ids=OTHER_WAYS)


class TestTaking:
    def test_the_way_asked_for_is_taken_whatever_the_size(self):
        with taking("compiled"):
            assert is_compiled(0, least=1)
            with taking("plain"):
                assert not is_compiled(1, least=1)
                with taking("by size"):
                    assert [is_compiled(size, least=2) for size in (1, 2)] == [False, True]
            assert is_compiled(0, least=1)
        assert not is_compiled(0, least=1)

    def test_an_error_inside_ends_it(self):
        with pytest.raises(KeyError), taking("compiled"):
            raise KeyError
        assert not is_compiled(0, least=1)

    @pytest.mark.parametrize("bad", ["fast", "", None, True])
    def test_there_is_no_other_way(self, bad):
        with (
            pytest.raises(ValueError, match=r"Unknown way .* 'by size', 'compiled', 'plain'"),
            taking(bad),
        ):
            pass
        assert not is_compiled(0, least=1)

    def test_without_numba_there_is_only_one_way(self):
        code = (
            "import sys; sys.modules['numba'] = None\n"
            "from maxdisc.numerics.switches import is_compiled\n"
            "from maxdisc.testing import taking\n"
            "with taking('compiled'): print(is_compiled(1, least=1))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout == "False\n"
        assert done.stderr.count("numba cannot be used") == 1

    def test_threads_that_run_already_take_it_too(self):
        begin, ways = threading.Event(), []
        thread = threading.Thread(target=lambda: (begin.wait(60), ways.append(is_compiled(0, least=1))))
        thread.start()
        with taking("compiled"):
            begin.set()
            thread.join()
        assert ways == [True]


class TestBatchesOf:
    def test_items_are_counted_and_bytes_by_what_an_item_takes(self):
        with batches_of(3):
            assert (batch_size(100), batch_size(100, unit=64)) == (3, 192)
            with batches_of(5):
                assert batch_size(100) == 5
            assert batch_size(100) == 3
        assert (batch_size(100), batch_size(100, unit=64)) == (100, 100)

    def test_an_error_inside_ends_it(self):
        with pytest.raises(KeyError), batches_of(3):
            raise KeyError
        assert batch_size(100) == 100

    @pytest.mark.parametrize("bad", [0, -1])
    def test_an_empty_batch_is_refused(self, bad):
        with pytest.raises(ValueError, match=f"items must be at least 1, got {bad}"), batches_of(bad):
            pass
        assert batch_size(100) == 100


FIT = """
import sys
{before}
import numpy as np, scipy.sparse as sp
from maxdisc import MaxDiscClassifier
rng = np.random.default_rng(0)
y = np.arange(300) % 4
X = sp.csr_array(rng.poisson(rng.gamma(0.2, 0.6, (4, 3000))[y]).astype(float))
assert 80_000 < X.nnz < 120_000
model = MaxDiscClassifier().fit(X, y)
np.savez(sys.argv[1], p=model.predict_proba(X), weights=model.decision_.weights, scores=model.scores_)
print(*sorted(name for name in sys.modules if ".compiled_" in name))
"""


def test_the_way_does_not_depend_on_what_has_been_imported(tmp_path):
    told, results = [], []
    for before in ("", "import numba"):
        out = tmp_path / f"{len(told)}.npz"
        command = [sys.executable, "-c", FIT.format(before=before), out]
        told.append(subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout)
        results.append(dict(np.load(out)))
    assert told[0] == told[1]
    for name, found in results[0].items():
        np.testing.assert_array_equal(results[1][name], found, err_msg=name)


def counts():
    rng = np.random.default_rng(0)
    y = np.arange(240) % 3
    return sp.csr_array(rng.poisson(rng.gamma(0.4, 1.0, (3, 60))[y]).astype(float)), y


def measurements():
    rng = np.random.default_rng(1)
    y = np.arange(240) % 3
    X = rng.normal(0.5 * rng.normal(size=(3, 12))[y]) + 100.0 * np.arange(12)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, y


def documents():
    rng = np.random.default_rng(2)
    words = np.array([f"{a}{b}" for a in ("Wort", "mot", "слово", "ord_", "x9") for b in range(40)])
    y = np.arange(240) % 3
    shares = rng.dirichlet(np.full(len(words), 0.2), size=3)
    texts = [", ".join(rng.choice(words, size=rng.integers(1, 60), p=shares[c])) for c in y]
    return texts, np.array(["a", "b", "c"])[y]


def fitted(X, y):
    """All that a model of rows says: numbers that must not depend on the way."""
    model = MaxDiscClassifier(cv=3).fit(X, y)
    return {
        "n_selected": model.n_selected_,
        "scores": model.scores_,
        "path": model.path_.accuracy,
        "probabilities": model.predict_proba(X),
    }


def agree(found, due):
    for name, value in due.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-9, atol=1e-300, err_msg=name)


@either_way
@pytest.mark.parametrize("data", [counts, measurements])
def test_a_model_of_rows_is_the_same_either_way(data, other_way):
    X, y = data()
    due = fitted(X, y)
    with other_way():
        agree(fitted(X, y), due)


@either_way
def test_a_model_of_documents_is_the_same_either_way(other_way):
    texts, y = documents()

    def words_and_model():
        vectorizer = TermFrequencyVectorizer(min_count=2)
        X = vectorizer.fit_transform(texts)
        return vectorizer.terms_.tolist(), X, fitted(X, y)

    terms, X, due = words_and_model()
    with other_way():
        again, X_again, found = words_and_model()
    assert again == terms
    for part in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(X_again, part), getattr(X, part), err_msg=part)
    agree(found, due)


TINY = {
    "no cells": np.zeros((12, 3)),
    "one column": np.arange(12.0)[:, None] % 2,
    "two rows": np.eye(2),
    "cells in the last row": np.vstack([np.zeros((11, 3)), [[1.0, 0.0, 1.0]]]),
}


@either_way
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("family", ["poisson", "exponential", "geometric", "bernoulli", "gaussian"])
@pytest.mark.parametrize("name", TINY)
def test_a_tiny_table_is_no_exception(name, family, form, other_way):
    X = form(TINY[name])
    y = np.arange(X.shape[0]) % 2

    def scores():
        model = MaxDiscClassifier(family, smoothing=1.0, n_features="all", evidence="raw").fit(X, y)
        return [model.scores_, *(model.decision_.scores(X[:n]) for n in (0, 1, len(y)))]

    due = scores()
    with other_way():
        found = scores()
    for one, other in zip(found, due, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@either_way
@pytest.mark.parametrize("texts", [[""], ["", "."], ["aa", ""], ["aa bb", "bb"]], ids=str)
def test_a_tiny_text_is_no_exception(texts, other_way):
    def counted():
        vectorizer = TermFrequencyVectorizer(vocabulary=["aa", "zz"]).fit(texts)
        return [vectorizer.transform(some).toarray() for some in (texts, ["zz aa"], [""])]

    due = counted()
    with other_way():
        for one, other in zip(counted(), due, strict=True):
            np.testing.assert_array_equal(one, other)
