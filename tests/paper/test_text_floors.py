"""20 Newsgroups as in the paper: 2 folds, raw evidence, K and smoothing chosen inside the training half."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold, cross_val_score
from text_tasks import TEXT_TASKS

from maxdisc import MaxDiscClassifier


def accuracy(text_task, name, family):
    X, y = text_task(name)
    folds = StratifiedKFold(2, shuffle=True, random_state=0)
    return 100 * cross_val_score(MaxDiscClassifier(family), X, y, cv=folds).mean()


def test_the_rows_have_the_papers_sizes(text_task):
    X, y = text_task("autos / motorcycles")
    assert len(y) == 1588
    assert abs(X.shape[1] - 7777) < 0.03 * 7777


@pytest.mark.parametrize(
    ("name", "family", "floor"),
    [
        ("autos / motorcycles", "poisson", 96.0),
        ("ibm / mac", "poisson", 89.5),
        ("talk", "geometric", 93.0),
        ("religion", "exponential", 90.5),
    ],
)
def test_floors(text_task, name, family, floor):
    assert accuracy(text_task, name, family) >= floor


@pytest.mark.slow
@pytest.mark.parametrize(("family", "floor"), [("poisson", 94.5), ("geometric", 94.5), ("exponential", 93.2)])
def test_mean_over_the_eleven_rows(text_task, family, floor):
    scores = {name: accuracy(text_task, name, family) for name in TEXT_TASKS}
    assert np.mean(list(scores.values())) >= floor, scores
