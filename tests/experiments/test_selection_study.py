"""Rankings and stability of the selection study, against scikit-learn and by enumeration."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_selection import mutual_info_classif
from sklearn.metrics import mutual_info_score

from experiments.rankings import binned_information, in_turn, presence_information
from experiments.selection import mean_jaccard, nogueira


def test_information_of_presence_is_scikit_learns():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, size=60)
    X = sp.csr_array(rng.poisson(0.4 + 0.5 * (y[:, None] == np.arange(12) % 4)))
    binary = (X.toarray() > 0).astype(int)
    oracle = mutual_info_classif(binary, y, discrete_features=True)
    np.testing.assert_allclose(presence_information(X, y), oracle, atol=1e-12)
    assert oracle.max() > 0.05


def test_information_of_bins():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, size=50)
    X = rng.normal(size=(50, 4)) + y[:, None] * np.arange(4)
    bins = (np.quantile(X, [1 / 3, 2 / 3], axis=0)[:, None] < X).sum(axis=0)
    oracle = [mutual_info_score(y, bins[:, j]) for j in range(4)]
    np.testing.assert_allclose(binned_information(X, y), oracle, atol=1e-12)


def test_a_copy_of_what_is_chosen_comes_later():
    relevance = np.array([1.0, 0.99, 0.5, 0.1])
    shared = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], dtype=float)
    assert in_turn(relevance, lambda j: shared[j], 3).tolist() == [0, 2, 3, 1]


def test_stability_of_equal_and_of_random_sets():
    same = np.tile(np.arange(20) < 5, (4, 1))
    assert mean_jaccard(same) == 1.0
    assert nogueira(same) == pytest.approx(1.0)
    rng = np.random.default_rng(2)
    random = np.argsort(rng.random((500, 40)), axis=1) < 10
    assert nogueira(random) == pytest.approx(0.0, abs=0.02)


def test_stability_by_hand():
    sets = np.array([[1, 1, 0, 0], [1, 0, 1, 0]], dtype=bool)
    assert mean_jaccard(sets) == pytest.approx(1 / 3)
    # Variances of presence (unbiased): 0, 1/2, 1/2, 0; of a random half: 1/4.
    assert nogueira(sets) == pytest.approx(1 - (1 / 4) / (1 / 4))
