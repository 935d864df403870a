"""The embedded corpus."""

from __future__ import annotations

import numpy as np
import pytest

from maxdisc.datasets import load_docstrings


@pytest.fixture(scope="module")
def documents():
    return load_docstrings()


def test_thousands_of_real_documents(documents):
    assert len(documents.data) == len(documents.target) == len(documents.names) > 3000
    labels, counts = np.unique(documents.target, return_counts=True)
    assert len(labels) > 10
    assert counts.min() >= 60
    assert {"scipy.stats", "sklearn.metrics"} <= set(labels.tolist())
    assert len(set(documents.data)) == len(documents.data)
    assert all(len(text.split()) >= 20 for text in documents.data)


def test_a_known_document_is_there_with_its_label(documents):
    at = documents.names.index("scipy.stats._stats_py.ttest_ind")
    assert documents.target[at] == "scipy.stats"
    assert "T-test" in documents.data[at]


def test_asking_for_too_much():
    with pytest.raises(ValueError, match="no docstrings were found"):
        load_docstrings(min_documents=10**6)
