"""The paper's gene sets: 10 folds, two-moment densities, K and smoothing chosen on inner folds."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from experiments.paper import EXACT
from maxdisc import MaxDiscClassifier


def accuracy(gene_set, name, seed=0):
    X, y = gene_set(name)
    folds = StratifiedKFold(10, shuffle=True, random_state=seed)
    model = MaxDiscClassifier("gaussian", evidence="raw")
    return 100 * (cross_val_predict(model, X, y, cv=folds) == y).mean()


@pytest.mark.parametrize(("name", "floor"), [("leukemia", 93.0), ("srbct", 93.0)])
def test_floors(gene_set, name, floor):
    assert accuracy(gene_set, name) >= floor


@pytest.mark.slow
def test_mean_over_the_six_exact_sets(gene_set):
    scores = {name: np.mean([accuracy(gene_set, name, seed) for seed in range(3)]) for name in EXACT}
    assert np.mean(list(scores.values())) >= 85.0, scores
